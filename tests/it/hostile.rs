//! Hostile bodies of 1 MiB, which could be slow to validate, large in memory, or lead to a long response.
//!
//! The operations and their fields are read from the OpenAPI document, so that a new operation is covered
//! without a change here. The tests bound the memory and the CPU time of a request; CPU time rather than
//! duration, because it does not depend on the load of the machine.

use crate::world;
use reqwest::{Client, Method, RequestBuilder, StatusCode, header, redirect::Policy};
use serde_json::{Map, Value, json};
use std::{sync::LazyLock, time::Duration};
use tests::{World, login, meter::Meter};

/// Size of a body in bytes, the most that the service reads.
const SIZE: usize = 1 << 20;
/// Bytes of a body that [`VALUES`] leave for the rest of it.
const ROOM: usize = 4 << 10;
/// CPU time that a request may take, with that of the database. A debug build needs a tenth of it.
const TIME: Duration = Duration::from_secs(2);
/// Attempts of a request whose connection is closed.
const TRIES: usize = 5;
/// Bytes of memory that the service may use in addition for a request.
const MEMORY: u64 = 64 << 20;
/// Size of the longest response of the API, in bytes.
const ANSWER: usize = 256 << 10;
/// Size of the longest page, in bytes: it repeats the input, whose characters take six bytes at most.
const PAGE: usize = 7 << 20;

/// The service under attack.
struct Victim {
    meter: Meter,
    sent: usize,
    slowest: Duration,
    largest: u64,
}

impl Victim {
    async fn of(world: &World) -> Self {
        Self { meter: Meter::of(world).await, sent: 0, slowest: Duration::ZERO, largest: 0 }
    }

    /// Sends a request and checks its status, the size of the response, memory and CPU time.
    async fn send(&mut self, what: &str, request: RequestBuilder, longest: usize) -> (StatusCode, String) {
        let mut tries = 0;
        loop {
            tries += 1;
            let sending = async {
                let answer = request.try_clone().unwrap().send().await?;
                let status = answer.status();
                Ok::<_, reqwest::Error>((status, answer.text().await.unwrap()))
            };
            let (answer, cost) = self.meter.measure(sending).await;
            let (status, text) = match answer {
                Ok(answer) => answer,
                // A rejection before the body is read may close the connection while the body is sent.
                Err(_) if tries < TRIES => continue,
                Err(error) => panic!("{what}: no response: {error:?}"),
            };
            let (took, memory) = (cost.cpu(), cost.memory);
            assert!(!status.is_server_error(), "{what}: {status} {}", clipped(&text));
            assert!(text.len() <= longest, "{what}: {status}, a response of {} bytes", text.len());
            assert!(memory < MEMORY, "{what}: {status}, {} MiB", memory >> 20);
            assert!(took < TIME, "{what}: {status} after {took:?} of CPU time");
            if took > self.slowest || memory > self.largest {
                println!("{what}: {status}, {took:?}, {} KiB, {} bytes", memory >> 10, text.len());
            }
            self.slowest = self.slowest.max(took);
            self.largest = self.largest.max(memory);
            self.sent += 1;
            return (status, text);
        }
    }
}

fn clipped(text: &str) -> &str {
    text.get(..1000).unwrap_or(text)
}

/// Returns `item` repeated, with commas, between `begin` and `end`, in at most `size` bytes.
fn repeated(size: usize, begin: &str, item: &str, end: &str) -> String {
    let item = format!("{item},");
    let items = item.repeat((size - begin.len() - end.len()) / item.len());
    format!("{begin}{}{end}", items.trim_end_matches(','))
}

/// As [`repeated`], with items that are made from the numbers from 0.
fn numbered(size: usize, begin: &str, item: impl Fn(usize) -> String, end: &str) -> String {
    let mut body = begin.to_owned();
    for index in 0.. {
        let item = item(index);
        if body.len() + item.len() + end.len() + 1 > size {
            break;
        }
        if index > 0 {
            body.push(',');
        }
        body += &item;
    }
    body + end
}

/// JSON values that fill a body except for [`ROOM`], each with its name.
static VALUES: LazyLock<Vec<(&str, String)>> = LazyLock::new(|| {
    let size = SIZE - ROOM;
    let text = |piece: &str| format!("\"{}\"", piece.repeat((size - 2) / piece.len()));
    let list = |item: &str| repeated(size, "[", item, "]");
    vec![
        ("zeros", list("0")),
        ("empty texts", list("\"\"")),
        ("different texts", numbered(size, "[", |index| format!("\"{index:x}\""), "]")),
        ("texts with U+0000", list(r#""\u0000""#)),
        ("objects", list(r#"{"":0}"#)),
        ("lists", list("[0]")),
        ("many keys", numbered(size, "{", |index| format!("\"{index:x}\":[]"), "}")),
        ("keys with values", numbered(size, "{", |index| format!("\"{index:x}\":\"\\u0000\""), "}")),
        ("deep lists", list(&format!("{}{}", "[".repeat(100), "]".repeat(100)))),
        ("dashes", text("-")),
        ("accents", text("é")),
        ("escapes", text("\\u0001")),
    ]
});

/// Resolves references, and the first alternative of `allOf` and `anyOf`.
fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(name) = schema["$ref"].as_str() {
        return resolve(document, document.pointer(&name[1..]).unwrap());
    }
    match ["allOf", "anyOf"].into_iter().find_map(|key| schema[key].get(0)) {
        Some(first) => resolve(document, first),
        None => schema,
    }
}

/// Returns a JSON object with one field set to `value`, which is JSON text.
fn with(object: &Map<String, Value>, name: &str, value: &str) -> String {
    let mut rest = object.clone();
    rest.remove(name);
    let rest = Value::Object(rest).to_string();
    let begin = rest.strip_suffix('}').unwrap();
    let comma = if begin == "{" { "" } else { "," };
    format!("{begin}{comma}{}:{value}}}", json!(name))
}

/// Returns the operations that have a body: method, path, schema and example.
async fn operations(world: &World) -> Vec<(Method, String, Value, Map<String, Value>)> {
    let url = format!("{}/openapi.json", world.base);
    let document: Value = world.http.get(url).send().await.unwrap().json().await.unwrap();
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let Some(content) = operation["requestBody"]["content"].as_object() else { continue };
            let content = &content["application/json"];
            let mut schema = resolve(&document, &content["schema"]).clone();
            for (_, property) in schema["properties"].as_object_mut().unwrap() {
                *property = resolve(&document, property).clone();
            }
            let example = content["example"].as_object().unwrap().clone();
            found.push((method.to_uppercase().parse().unwrap(), path.clone(), schema, example));
        }
    }
    assert!(found.len() > 15, "only {} operations were found", found.len());
    found
}

fn request(world: &World, method: &Method, path: &str, body: String) -> RequestBuilder {
    assert!(body.len() <= SIZE, "{} bytes", body.len());
    let request = world.http.request(method.clone(), format!("{}{path}", world.base));
    request.header(header::CONTENT_TYPE, "application/json").body(body)
}

#[tokio::test]
async fn large_bodies_have_bounded_cost_for_every_operation() {
    let world = world().own().platforms(&["x", "youtube", "facebook", "bluesky"]).start().await;
    let accounts = [world.connect("x", "ada").await, world.connect("youtube", "ada").await];
    let token = login::several(&world, "facebook", "ada,bob").await;
    let (mut victim, operations) = (Victim::of(&world).await, operations(&world).await);
    let mut is_first = true;
    for (method, path, schema, mut example) in operations {
        let fill = |segment: &str| match segment {
            "{token}" => token.clone(),
            "{platform}" => "x".to_owned(),
            segment if segment.starts_with('{') => "00000000-0000-0000-0000-000000000000".to_owned(),
            segment => segment.to_owned(),
        };
        let address = path.split('/').map(fill).collect::<Vec<_>>().join("/");
        if example.contains_key("accounts") {
            example.insert("accounts".to_owned(), json!(accounts));
            example.insert("is_draft".to_owned(), json!(true));
        }
        // A body that is no object is rejected before the schema is checked, so that one operation is enough.
        let whole =
            VALUES.iter().filter(|(name, value)| is_first || value.starts_with('{') || *name == "zeros");
        let mut bodies: Vec<(String, String)> =
            whole.map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        is_first = false;
        let (_, unknown) = VALUES.iter().find(|(name, _)| *name == "many keys").unwrap();
        let right = Value::Object(example.clone()).to_string();
        bodies.push((
            "unknown keys beside valid ones".to_owned(),
            format!("{},{}", right.strip_suffix('}').unwrap(), &unknown[1..]),
        ));
        bodies.push(("a long key".to_owned(), with(&Map::new(), &"k".repeat(SIZE - 10), "0")));
        for (name, property) in schema["properties"].as_object().unwrap() {
            // The fields of all platforms are alike here; their settings have a test of their own.
            if platforms::IDS.contains(&name.as_str()) && name != "x" {
                continue;
            }
            let kind = property["type"].as_str().unwrap_or_default();
            let values = VALUES.iter().filter(|(what, _)| {
                // The other values are sent only as whole bodies.
                !["empty texts", "lists", "keys with values", "deep lists", "accents"].contains(what)
            });
            for (what, value) in values {
                let is_text = value.starts_with('"');
                let fits = match kind {
                    "string" => is_text || *what == "zeros",
                    "array" => !is_text,
                    "object" => !is_text && *what != "zeros",
                    _ => *what == "zeros" || *what == "dashes",
                };
                if fits {
                    bodies.push((format!("{name}: {what}"), with(&example, name, value)));
                }
            }
            if let Some([item, ..]) = example.get(name).and_then(Value::as_array).map(Vec::as_slice) {
                let item = item.to_string();
                let items = repeated(SIZE - ROOM, "[", &item, "]");
                bodies.push((format!("{name}: one item again and again"), with(&example, name, &items)));
            }
        }
        for (index, (name, body)) in bodies.into_iter().enumerate() {
            let what = format!("{method} {path}, {name}");
            let sent = request(&world, &method, &address, body);
            // A pending login is authorized by its token, without a key.
            let sent = if path.contains("{token}") { sent } else { sent.bearer_auth(&world.key) };
            let (status, text) = victim.send(&what, sent, ANSWER).await;
            assert_ne!(status, StatusCode::UNAUTHORIZED, "{what}: {}", clipped(&text));
            assert!(index > 0 || status == 400, "{what}: {status} {}", clipped(&text));
        }
    }
    println!("{} bodies", victim.sent);
    assert!(victim.sent > 300, "only {} bodies were sent", victim.sent);
}

#[tokio::test]
async fn requests_without_a_key_have_bounded_cost() {
    let world = world().own().start().await;
    let (mut victim, operations) = (Victim::of(&world).await, operations(&world).await);
    for (method, path, _, _) in operations {
        let address = path.replace(['{', '}'], "");
        for (name, value) in VALUES.iter().take(2) {
            let what = format!("{method} {path} without a key, {name}");
            // The request is rejected before the body is read, so that a long body might not be sent whole.
            // Its first part is enough.
            let part = value[..16 << 10].to_owned();
            let (status, _) = victim.send(&what, request(&world, &method, &address, part), ANSWER).await;
            let expected = if path.contains("{token}") { 404 } else { 401 };
            assert_eq!(status, expected, "{what}");
        }
    }
}

#[tokio::test]
async fn large_texts_and_settings_have_bounded_cost() {
    let world = world().running(&["api"]).everywhere().start().await;
    let mut accounts = Vec::new();
    for platform in platforms::IDS {
        accounts.push(world.connect(platform, "ada").await);
    }
    let mut victim = Victim::of(&world).await;
    let mut posts = Vec::new();
    for piece in ["-", "é", "a.", "a.com ", "http://", "@", "👩\u{200d}", "\u{301}\u{316}", " #a", "(", "."]
    {
        let text = piece.repeat(100_000 / piece.chars().count());
        posts.push((format!("a text of {piece:?}"), json!({ "content": text, "accounts": accounts })));
        // As long as the longest text whose length is counted by X's rules.
        let short = piece.repeat(35_000 / piece.len());
        let containers: Vec<_> = (0..10).map(|_| json!({ "content": short })).collect();
        posts
            .push((format!("texts of {piece:?}"), json!({ "containers": containers, "accounts": accounts })));
    }
    for platform in platforms::all() {
        let schema = (platform.settings)();
        for (name, part) in schema["properties"].as_object().unwrap() {
            let value = match part["type"].as_str().unwrap() {
                "array" => json!(vec!["a"; 200_000]),
                "string" => json!("-".repeat(900_000)),
                "object" => (0..15_000).map(|index| (format!("{index:x}"), json!([]))).collect(),
                _ => continue,
            };
            let config = json!({ platform.id: { name: value } });
            let post = json!({ "content": "a", "accounts": accounts, "config": config });
            posts.push((format!("config.{}.{name}", platform.id), post));
        }
    }
    for (name, mut post) in posts {
        post["is_draft"] = json!(true);
        let what = format!("POST /posts/validate, {name}");
        let sent =
            request(&world, &Method::POST, "/posts/validate", post.to_string()).bearer_auth(&world.key);
        victim.send(&what, sent, ANSWER).await;
    }
    println!("{} posts", victim.sent);
}

#[tokio::test]
async fn mcp_messages_have_bounded_cost() {
    let world = world().own().start().await;
    world.connect("x", "ada").await;
    let mut victim = Victim::of(&world).await;
    let url = world.base.replace("/api/v1", "/api/mcp");
    let post = |body: String| {
        let request = world.http.post(&url).bearer_auth(&world.key);
        request.header(header::CONTENT_TYPE, "application/json").body(body)
    };
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let (_, listed) = victim.send("tools/list", post(list.to_owned()), ANSWER).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let mut bodies = Vec::new();
    for tool in listed["result"]["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let message = |arguments: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#
            )
        };
        for (kind, value) in VALUES.iter().filter(|(_, value)| value.starts_with('{')) {
            bodies.push((format!("{name}, {kind}"), message(value)));
        }
        let properties = tool["inputSchema"]["properties"].as_object().into_iter().flatten();
        for (property, schema) in properties.filter(|(name, _)| !platforms::IDS.contains(&name.as_str())) {
            let is_list = schema["type"] == "array" || schema["type"] == json!(["array", "null"]);
            for (kind, value) in VALUES.iter().filter(|(_, value)| value.starts_with('[') == is_list) {
                if ["zeros", "different texts", "objects", "dashes"].contains(kind) {
                    bodies.push((
                        format!("{name}.{property}, {kind}"),
                        message(&with(&Map::new(), property, value)),
                    ));
                }
            }
        }
    }
    for (kind, value) in VALUES.iter() {
        let message = |field: &str| format!(r#"{{"jsonrpc":"2.0",{field}}}"#);
        bodies.push((format!("a message of {kind}"), value.clone()));
        bodies.push((format!("an id of {kind}"), message(&format!(r#""method":"tools/list","id":{value}"#))));
        bodies.push((format!("a method of {kind}"), message(&format!(r#""id":1,"method":{value}"#))));
        for method in ["initialize", "tools/list", "tools/call", "nothing"] {
            let field = format!(r#""id":1,"method":"{method}","params":{value}"#);
            bodies.push((format!("{method} with params of {kind}"), message(&field)));
        }
        let field = format!(r#""id":1,"method":"tools/call","params":{{"name":{value}}}"#);
        bodies.push((format!("a tool of {kind}"), message(&field)));
    }
    for (name, body) in bodies {
        victim.send(&format!("MCP, {name}"), post(body), ANSWER).await;
    }
    println!("{} messages", victim.sent);
}

#[tokio::test]
async fn dashboard_forms_have_bounded_cost() {
    let world = world().own().platforms(&["x", "facebook"]).start().await;
    let account = world.connect("x", "ada").await;
    let token = login::several(&world, "facebook", "ada,bob").await;
    let mut victim = Victim::of(&world).await;
    let origin = world.base.trim_end_matches("/api/v1").to_owned();
    let http = Client::builder().redirect(Policy::none()).build().unwrap();
    let post = |path: &str, cookie: &str, body: String| {
        let request = http.post(format!("{origin}{path}")).header(header::COOKIE, cookie);
        let request = request.header(header::ORIGIN, &origin).header("sec-fetch-site", "same-origin");
        request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded").body(body)
    };
    let cookie = login::sign_in(&world).await;
    let id = "00000000-0000-0000-0000-000000000000";
    let paths = [
        "/dashboard/sign-in".to_owned(),
        "/dashboard/sign-out".to_owned(),
        format!("/dashboard/invite/{id}"),
        format!("/dashboard/posts/{id}/cancel"),
        format!("/dashboard/posts/{id}/release"),
        format!("/dashboard/posts/{id}/targets/{id}/retry"),
        "/dashboard/compose".to_owned(),
        "/dashboard/accounts/connect".to_owned(),
        "/dashboard/accounts/bluesky".to_owned(),
        format!("/dashboard/accounts/{id}/check"),
        format!("/dashboard/accounts/{id}/reconnect"),
        format!("/dashboard/accounts/{id}/disconnect"),
        "/dashboard/webhooks".to_owned(),
        format!("/dashboard/webhooks/{id}/test"),
        format!("/dashboard/webhooks/{id}/pause"),
        format!("/dashboard/webhooks/{id}/deliveries/{id}/redeliver"),
        "/dashboard/media".to_owned(),
        format!("/dashboard/media/{id}/delete"),
        "/dashboard/keys".to_owned(),
        format!("/dashboard/keys/{id}/rotate"),
        "/dashboard/team".to_owned(),
        format!("/dashboard/team/{id}/remove"),
        format!("/api/v1/connect/choose/{token}"),
        "/api/v1/connect/choose/none".to_owned(),
    ];
    let again = |piece: &str| piece.repeat(SIZE / piece.len());
    let mut bodies = vec![
        ("many fields", again("a&")),
        ("a long field", format!("next={}", again("a"))[..SIZE].to_owned()),
        ("fields of a name", again("page=1&")),
        ("a long name", format!("name={}", again("<"))[..SIZE].to_owned()),
    ];
    for path in &paths {
        for (name, body) in &bodies {
            for cookie in ["", &cookie] {
                // Signing out would end the session.
                if path.ends_with("sign-out") && !cookie.is_empty() {
                    continue;
                }
                // Without a session all other pages redirect before the body is read; one body is enough.
                let is_open = ["/sign-in", "/invite/", "/choose/"].iter().any(|part| path.contains(part));
                if cookie.is_empty() && !is_open && *name != bodies[0].0 {
                    continue;
                }
                let what =
                    format!("{path}, {name}, {}", if cookie.is_empty() { "stranger" } else { "known" });
                // The page that selects accounts reads a smaller body.
                let body = if path.contains("/choose/") { &body[..200 << 10] } else { body };
                victim.send(&what, post(path, cookie, body.to_owned()), PAGE).await;
            }
        }
    }
    let text = |sign: &str, count: usize| format!("text={}&", sign.repeat(count));
    bodies = vec![
        ("a text of dashes", format!("account={account}&{}", text("-", 100_000))),
        ("a text of brackets", format!("account={account}&{}", text("<", 1_000_000))),
        ("ten texts", format!("account={account}&{}", text("%C3%A9", 15_000).repeat(10))),
        ("one account again and again", format!("{}text=a", format!("account={account}&").repeat(480))),
        (
            "one medium again and again",
            format!("account={account}&text=a&{}", format!("media={id}&").repeat(480)),
        ),
        ("settings", format!("account={account}&text=a&settings={}", "[".repeat(1_000_000))),
        ("many settings", format!("account={account}&text=a&settings={}", "[{},".repeat(200_000))),
    ];
    for (name, body) in bodies {
        for action in ["preview", "edit", "more", "publish"] {
            let body = format!("action={action}&is_draft=true&{body}");
            let what = format!("compose, {action}, {name}");
            victim.send(&what, post("/dashboard/compose", &cookie, body), PAGE).await;
        }
    }
    println!("{} forms", victim.sent);
}
