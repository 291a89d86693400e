//! The surface of the service: its operations, tools, pages and actions, and how each is called.
//!
//! [`tables`] says what each is about. The operations are read from the OpenAPI document, and pages and actions from the
//! dashboard's table of routes, so that parts of the proof that try all of them miss no new one.

pub(crate) mod tables;

use domain::scope::Scope;
use reqwest::{Client, Method, RequestBuilder, StatusCode, header};
use serde_json::{Value, json};
use std::collections::HashMap;
use tests::{World, login::browser, samples::png};

/// Returns the OpenAPI document of the service.
pub(crate) async fn document_of(world: &World) -> Value {
    let url = format!("{}/openapi.json", world.base);
    world.http.get(url).send().await.unwrap().json().await.unwrap()
}

/// Returns the operations of a document: method, path and description.
pub(crate) fn operations(document: &Value) -> Vec<(Method, String, Value)> {
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            operations.push((method.to_uppercase().parse().unwrap(), path.clone(), operation.clone()));
        }
    }
    operations
}

/// Creates one of everything that belongs to an organization beside posts, with a name, for an end tenant and an account of
/// it. `url` is that of the webhook endpoint. Returns the ids, by kind.
pub(crate) async fn furnish(
    world: &World,
    name: &str,
    tenant: &str,
    account: &str,
    url: &str,
) -> HashMap<&'static str, String> {
    let mut made = HashMap::from([("social-accounts", account.to_owned())]);
    for (kind, body) in [
        ("profiles", json!({ "name": name, "tenant_id": tenant, "social_account_ids": [account] })),
        ("social-networks", json!({ "platform": "youtube", "client_id": name })),
        ("webhooks", json!({ "url": url, "events": ["import.failed"] })),
        ("api-keys", json!({ "name": name, "scopes": ["posts:read"] })),
        ("team", json!({ "email": format!("{name}@example.com"), "role": "viewer" })),
        ("client-tokens", json!({ "tenant_id": tenant })),
    ] {
        let path = format!("/{kind}");
        let (status, answer) = world.call(Method::POST, &path, Some(&body)).await;
        assert_eq!(status, StatusCode::CREATED, "{path}: {answer}");
        made.insert(kind, answer["id"].as_str().unwrap().to_owned());
    }
    let medium = world.medium(&format!("{name}.png"), None, png(64, 64)).await;
    made.insert("media", medium["id"].as_str().unwrap().to_owned());
    made
}

/// Returns the scope that an operation or a tool asks for, by its description; `None` if it asks for none.
pub(crate) fn needed(described: &Value) -> Option<Scope> {
    let (_, rest) = described["description"].as_str()?.split_once("Scope")?;
    let (scope, _) = rest.trim_start().strip_prefix('`')?.split_once('`')?;
    scope.parse().ok()
}

/// A browser without scripts.
pub(crate) struct Visitor {
    http: Client,
    origin: String,
    /// Cookie of the session; empty without one.
    pub(crate) cookie: String,
}

impl Visitor {
    /// A browser with a session.
    pub(crate) fn new(world: &World, cookie: &str) -> Self {
        let origin = world.base.trim_end_matches("/api/v1").to_owned();
        Self { http: browser(), origin, cookie: cookie.to_owned() }
    }

    /// Signs in with a key, and returns the status.
    pub(crate) async fn sign_in(&mut self, key: &str) -> StatusCode {
        let request = self.form("/sign-in").form(&[("key", key)]);
        let response = request.send().await.unwrap();
        if let Some(cookie) = response.headers().get(header::SET_COOKIE) {
            self.cookie = cookie.to_str().unwrap().split(';').next().unwrap().to_owned();
        }
        response.status()
    }

    fn form(&self, path: &str) -> RequestBuilder {
        let request = self.http.post(format!("{}/dashboard{path}", self.origin));
        let request = request.header(header::ORIGIN, &self.origin).header("sec-fetch-site", "same-origin");
        request.header(header::COOKIE, &self.cookie)
    }

    /// Opens a page, or sends a form, and returns status and text.
    pub(crate) async fn visit(
        &self,
        method: &Method,
        path: &str,
        form: &[(&str, &str)],
    ) -> (StatusCode, String) {
        let request = match *method {
            Method::GET => {
                let request = self.http.get(format!("{}/dashboard{path}", self.origin));
                request.header(header::COOKIE, &self.cookie)
            }
            _ => self.form(path).form(form),
        };
        let response = request.send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    }
}

/// Returns the path with every parameter replaced by `with`.
pub(crate) fn filled(path: &str, with: &str) -> String {
    let fill = |segment: &str| if segment.starts_with('{') { with.to_owned() } else { segment.to_owned() };
    path.split('/').map(fill).collect::<Vec<_>>().join("/")
}

/// Sends a message to the MCP server, and returns status and answer.
pub(crate) async fn ask(world: &World, key: &str, method: &str, params: Value) -> (u16, Value) {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut request = world.http.post(world.base.replace("/api/v1", "/api/mcp"));
    if !key.is_empty() {
        request = request.bearer_auth(key);
    }
    let request = request
        .header(header::ACCEPT, "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2025-11-25")
        .json(&message);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap_or_default())
}

/// Returns the example of an operation's body.
pub(crate) fn example(operation: &Value) -> Option<Value> {
    let body = operation.get("requestBody")?;
    Some(body["content"]["application/json"]["example"].clone())
}
