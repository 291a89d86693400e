//! A Postman collection of requests that the platform publishes. It has examples and no schemas, so what is compared are
//! paths and names.

use super::Heard;
use serde_json::Value;
use std::{
    collections::{HashMap, HashSet},
    fs,
    path::Path,
};

/// A Postman collection.
pub(crate) struct Collection(Value);

/// A request of a collection.
pub(crate) struct Request {
    pub(crate) name: String,
    pub(crate) method: String,
    url: String,
}

/// Parameters that are documented outside the collection:
/// <https://developers.facebook.com/docs/threads/posts> and
/// <https://developers.facebook.com/docs/threads/retrieve-and-discover-posts/retrieve-posts>.
const DOCUMENTED: [&str; 6] =
    ["access_token", "topic_tag", "link_attachment", "poll_attachment", "since", "after"];

impl Collection {
    pub(crate) fn open(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("the collection can be read");
        Self::of(serde_json::from_str(&text).expect("it is JSON"))
    }

    pub(crate) fn of(root: Value) -> Self {
        Self(root)
    }

    /// Returns all requests, in order.
    pub(crate) fn requests(&self) -> Vec<Request> {
        let mut found = Vec::new();
        gather(&self.0, &mut found);
        found
    }

    /// Returns the variables that its requests contain.
    pub(crate) fn variables(&self) -> HashMap<String, String> {
        let all = self.0["variable"].as_array().expect("a collection has variables");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        all.iter().map(|one| (text(&one["key"]), text(&one["value"]))).collect()
    }

    /// Returns the faults of a request: it is not in the collection, or has an unknown parameter or field.
    pub(crate) fn faults(&self, call: &Heard) -> Vec<String> {
        let path = call.path.trim_start_matches("/graph.threads.com").trim_start_matches("/v1.0");
        let at = format!("{} {path}", call.method);
        let own: Vec<_> = self
            .requests()
            .into_iter()
            .filter(|request| request.method == call.method && request.fits(path))
            .collect();
        if own.is_empty() {
            return vec![format!("{at}: no such request")];
        }
        let (variables, mut faults) = (self.variables(), Vec::new());
        let known: HashSet<String> = own.iter().flat_map(Request::parameters).collect();
        let body: Vec<(String, String)> =
            url::form_urlencoded::parse(call.text.as_bytes()).into_owned().collect();
        let body = if call.mime.ends_with("urlencoded") { body } else { Vec::new() };
        for (name, value) in call.query.iter().chain(&body) {
            if !known.contains(name) && !DOCUMENTED.contains(&name.as_str()) {
                faults.push(format!("{at}: no parameter {name}"));
            }
            if name == "fields" {
                let fields: HashSet<String> = variables
                    .iter()
                    .filter(|(name, _)| name.starts_with("fields_"))
                    .flat_map(|(_, list)| names(list))
                    .collect();
                let unknown = names(value).into_iter().filter(|name| !fields.contains(name));
                faults.extend(unknown.map(|name| format!("{at}: no field {name}")));
            }
        }
        faults
    }
}

impl Request {
    /// Returns the URL with the variables filled in.
    pub(crate) fn filled(&self, variables: &HashMap<String, String>) -> String {
        let mut url = self.url.clone();
        for (name, value) in variables {
            let value = if name == "api_host" { value.clone() } else { encoded(value) };
            url = url.replace(&format!("{{{{{name}}}}}"), &value);
        }
        url
    }

    fn fits(&self, path: &str) -> bool {
        let own = self.url.split('?').next().unwrap_or_default().trim_start_matches("{{api_host}}");
        let split = |path: &str| path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let (own, path): (Vec<String>, Vec<String>) = (split(own), split(path));
        let is_id = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        own.len() == path.len()
            && own.iter().zip(&path).all(|(own, part)| {
                own == part || ((own == "me" || own.starts_with("{{")) && (part == "me" || is_id(part)))
            })
    }

    fn parameters(&self) -> Vec<String> {
        let query = self.url.split_once('?').map(|(_, query)| query).unwrap_or_default();
        query.split('&').filter_map(|pair| pair.split('=').next()).map(str::to_owned).collect()
    }
}

fn gather(folder: &Value, found: &mut Vec<Request>) {
    for item in folder["item"].as_array().into_iter().flatten() {
        gather(item, found);
        if let Some(method) = item["request"]["method"].as_str() {
            let url = &item["request"]["url"];
            found.push(Request {
                name: item["name"].as_str().unwrap_or_default().to_owned(),
                method: method.to_owned(),
                url: url["raw"].as_str().or(url.as_str()).unwrap_or_default().to_owned(),
            });
        }
    }
}

/// Returns the names in a list of fields, including those within braces.
fn names(list: &str) -> Vec<String> {
    list.split([',', '{', '}']).map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn encoded(value: &str) -> String {
    url::form_urlencoded::byte_serialize(value.as_bytes()).collect()
}
