//! Requests, and what every answer must be.

use reqwest::{
    Method,
    header::{self, HeaderMap, HeaderValue},
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tests::{PATIENCE, World};

/// A request of an API client.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// Path and query, below the API's prefix.
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, HeaderValue)>,
    pub(crate) body: Option<Vec<u8>>,
}

impl Request {
    pub(crate) fn new(method: &Method, path: impl Into<String>) -> Self {
        Self { method: method.clone(), path: path.into(), headers: Vec::new(), body: None }
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.bytes(body.to_string().into_bytes())
    }

    pub(crate) fn bytes(self, body: Vec<u8>) -> Self {
        Self { body: Some(body), ..self }
    }

    /// Returns the request in a few words.
    pub(crate) fn name(&self) -> String {
        let body = self.body.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        let headers: Vec<_> = self.headers.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
        let name = format!("{} {} {} {body}", self.method, self.path, headers.join(" "));
        name.chars().take(600).collect()
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// A client of the API that checks every answer.
pub(crate) struct Client {
    pub(crate) base: String,
    http: reqwest::Client,
    pub(crate) sent: usize,
    pub(crate) slowest: Duration,
}

impl Client {
    pub(crate) fn of(world: &World) -> Self {
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(PATIENCE);
        Self { base: world.base.clone(), http: http.build().unwrap(), sent: 0, slowest: Duration::ZERO }
    }

    /// Sends a request, and checks that it is answered, and without a 5xx; an error is a problem document.
    pub(crate) async fn send(&mut self, key: &str, request: &Request) -> Answer {
        let what = request.name();
        let mut call = self.http.request(request.method.clone(), format!("{}{}", self.base, request.path));
        if !key.is_empty() {
            call = call.bearer_auth(key);
        }
        if let Some(body) = &request.body {
            let is_typed = request.headers.iter().any(|(name, _)| name == "content-type");
            if !is_typed {
                call = call.header(header::CONTENT_TYPE, "application/json");
            }
            call = call.body(body.clone());
        }
        for (name, value) in &request.headers {
            call = call.header(name, value.clone());
        }
        let begun = Instant::now();
        let response = call.send().await.unwrap_or_else(|error| panic!("{what}: no answer: {error:?}"));
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap_or_else(|error| panic!("{what}: {status}, {error:?}"));
        self.slowest = self.slowest.max(begun.elapsed());
        self.sent += 1;
        let answer = Answer { status, headers, text };
        check(&what, &answer);
        answer
    }
}

/// Checks an answer.
fn check(what: &str, answer: &Answer) {
    let Answer { status, headers, text } = answer;
    assert!((200..500).contains(status), "{what}: {status} {text}");
    assert!(!headers.contains_key("x-injected"), "{what}: a header was injected: {headers:?}");
    if *status < 400 {
        return;
    }
    // The head was too long to be read.
    if *status == 431 && text.is_empty() {
        return;
    }
    let problem: Value =
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{what}: {status}, {error}: {text}"));
    let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    assert_eq!(content_type, Some(&b"application/problem+json"[..]), "{what}: {status}");
    assert_eq!(
        (&problem["type"], &problem["status"]),
        (&json!("about:blank"), &json!(status)),
        "{what}: {problem}"
    );
    for member in ["title", "detail", "code"] {
        assert!(problem[member].as_str().is_some_and(|text| !text.is_empty()), "{what}: {problem}");
    }
    let documented = [400, 401, 402, 403, 404, 405, 408, 409, 413, 422, 429];
    assert!(documented.contains(status), "{what}: an undocumented status: {problem}");
}

/// Returns how two answers differ, apart from the ids that were asked for and those of the requests; `None` if they
/// don't.
pub(crate) fn difference(one: (&str, &Answer), other: (&str, &Answer)) -> Option<String> {
    let plain = |(id, answer): (&str, &Answer)| {
        let headers = answer.headers.iter().filter(|(name, _)| {
            !["date", "x-ratelimit-remaining", "x-request-id", "content-length"].contains(&name.as_str())
        });
        let headers: Vec<_> = headers.map(|(name, value)| format!("{name}: {value:?}")).collect();
        let body = match answer.status {
            // Ids and times of what was created differ.
            ..400 => shape(&answer.json()).to_string(),
            _ => {
                let request = answer.headers.get("x-request-id").and_then(|id| id.to_str().ok());
                answer.text.replace(id, "ID").replace(request.unwrap_or("no id"), "REQUEST")
            }
        };
        (answer.status, headers, body)
    };
    let (one, other) = (plain(one), plain(other));
    (one != other).then(|| format!("{one:?}\n{other:?}"))
}

/// Returns a document with its values replaced by their types.
fn shape(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Bool(_) => json!("bool"),
        Value::Number(_) => json!("number"),
        Value::String(_) => json!("string"),
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), shape(value))).collect(),
    }
}
