//! Organizations with something of everything, and what they see of it.

use super::{
    client::{Client, Request},
    document::Operation,
};
use domain::{Mode, Owner, scope::Scope};
use reqwest::Method;
use sandbox::Address;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use store::people::{
    keys::{self, NewKey},
    organizations,
};
use tests::{Receiver, World, samples::png};
use uuid::Uuid;

/// An organization in one mode: its key, and ids of what it has, by collection.
pub(crate) struct Tenant {
    pub(crate) owner: Owner,
    pub(crate) key: String,
    pub(crate) ids: BTreeMap<String, Vec<String>>,
}

impl Tenant {
    /// Creates a key for an owner.
    pub(crate) async fn of(world: &World, owner: Owner) -> Self {
        let new = NewKey { owner, name: "hostile".to_owned(), scopes: vec![Scope::All], expires_at: None };
        let key = keys::create(&world.db, new, tests::now()).await.unwrap().1;
        Self { owner, key, ids: BTreeMap::new() }
    }

    /// Creates an organization in test mode.
    pub(crate) async fn new(world: &World) -> Self {
        let org = organizations::create(&world.db, "Stranger").await.unwrap();
        Self::of(world, Owner { org, mode: Mode::Test }).await
    }

    /// Returns an id of a collection; a random one if the tenant has none.
    pub(crate) fn id(&self, collection: &str) -> String {
        let known = self.ids.get(collection).and_then(|ids| ids.first());
        known.cloned().unwrap_or_else(|| Uuid::now_v7().to_string())
    }

    /// Returns the operation's path with the tenant's own ids.
    pub(crate) fn path(&self, operation: &Operation) -> String {
        operation.filled(|parameter| self.parameter(operation, parameter))
    }

    /// Returns the tenant's own value of a path parameter.
    pub(crate) fn parameter(&self, operation: &Operation, parameter: &str) -> String {
        match parameter {
            "platform" => "x".to_owned(),
            "kind" => "privacy_levels".to_owned(),
            _ => self.id(operation.collection(parameter)),
        }
    }

    /// Returns an example body with the tenant's own ids.
    pub(crate) fn body(&self, example: &Value, receiver: &Receiver) -> Value {
        let mut body = example.clone();
        self.own(&mut body, receiver);
        body
    }

    fn own(&self, value: &mut Value, receiver: &Receiver) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.own(item, receiver)),
            Value::Object(members) => self.own_members(members, receiver),
            _ => {}
        }
    }

    fn own_members(&self, members: &mut Map<String, Value>, receiver: &Receiver) {
        for (name, value) in members.iter_mut() {
            let account = self.id("social-accounts");
            match name.as_str() {
                "accounts" | "social_account_ids" => *value = json!([account]),
                "social_account_id" | "queued_from_account" | "reconnect_account_id" => {
                    *value = json!(account)
                }
                "profile_id" => *value = json!(self.id("profiles")),
                "page_ids" => *value = json!([self.id("pages")]),
                "media" => {
                    for medium in value.as_array_mut().into_iter().flatten() {
                        medium["id"] = json!(self.id("media"));
                    }
                }
                "url" => *value = json!(receiver.url),
                "default_config" | "config" => *value = json!({ "x": { "made_with_ai": true } }),
                _ => self.own(value, receiver),
            }
        }
        // Drafts are checked and stored, and not published.
        if members.contains_key("accounts") {
            members.insert("is_draft".to_owned(), json!(true));
            members.remove("external_ref");
        }
    }

    /// Creates something in every collection. A live tenant publishes nothing.
    pub(crate) async fn populate(&mut self, world: &mut World, receiver: &Receiver) {
        let root = world.variable("FANFARE_SANDBOX_URL").parse().unwrap();
        // A world of its own processes has a sandbox of its own.
        let token = world.environment().iter().find(|(name, _)| name == "FANFARE_SANDBOX_TOKEN");
        let sandbox = Address::new(root, token.map(|(_, token)| token.clone())).of(self.owner.org);
        let sandbox = sandbox.as_str().trim_end_matches('/').to_owned();
        let restored = (world.owner, world.key.clone(), world.sandbox_url.clone());
        (world.owner, world.key, world.sandbox_url) = (self.owner, self.key.clone(), sandbox);
        // The attacks log in more often than Bluesky allows.
        let limits =
            ["bluesky.logins", "bluesky.logins_day", "bluesky.requests"].map(|name| (name, 1_000_000));
        let limits: BTreeMap<_, _> = limits.into_iter().collect();
        world.set_sandbox(json!({ "lag_ms": 0, "limits": limits })).await;
        world.connect("x", "bob").await;
        let account = world.connect("x", "ada").await;
        let create = async |path: &str, body: Value| -> Value {
            let (status, made) = world.call(Method::POST, path, Some(&body)).await;
            assert!([200, 201, 202].contains(&status.as_u16()), "{path}: {status} {made}");
            made
        };
        create("/webhooks", json!({ "url": receiver.url, "events": ["*"] })).await;
        create("/profiles", json!({ "name": "Brand", "social_account_ids": [account] })).await;
        create("/social-networks", json!({ "platform": "youtube", "client_id": "mine" })).await;
        create("/api-keys", json!({ "name": "Other", "scopes": ["posts:read"] })).await;
        create("/team", json!({ "email": format!("ada@{}.example.com", self.owner.mode), "role": "viewer" }))
            .await;
        let slots =
            json!({ "social_account_id": account, "slots": [{ "weekday": "monday", "time": "09:00" }] });
        assert_eq!(world.call(Method::PUT, "/scheduling/slots", Some(&slots)).await.0.as_u16(), 200);
        world.declare(json!({ "filename": "later.png" })).await;
        let medium = world.medium("now.png", None, png(64, 64)).await;
        let queued = json!({ "content": "Later", "accounts": [account], "queued_from_account": account });
        create("/posts", queued).await;
        if self.owner.mode == Mode::Test {
            for content in ["Published", "Also published", "Refused #sandbox-400"] {
                world.ended(&world.post(json!({ "content": content, "accounts": [account] })).await).await;
            }
            // Two posts from elsewhere, to import.
            let token = world.account("x", "ada").await.grant.access_token;
            for text in ["From elsewhere", "Also from elsewhere"] {
                let url = format!("{}/api.x.com/2/tweets", world.sandbox_url);
                let sent = world.http.post(url).bearer_auth(&token).json(&json!({ "text": text }));
                assert_eq!(sent.send().await.unwrap().status().as_u16(), 201);
            }
            let imports = format!("/social-accounts/{account}/imports");
            let import = create(&imports, json!({})).await;
            let path = format!("{imports}/{}", import["id"].as_str().unwrap());
            world.until_at(&path, "the import to end", |import| import["status"] == "completed").await;
            receiver
                .until("the import's event", |all| {
                    all.iter().any(|delivery| delivery.json()["data"]["import_id"] == import["id"])
                })
                .await;
        }
        // The last, so that it is the first in the list of posts: it can be changed.
        let containers = json!([{ "content": "With a picture", "media": [{ "id": medium["id"] }] }]);
        let draft = json!({
            "containers": containers, "accounts": [account], "is_draft": true, "external_ref": "the first",
        });
        create("/posts", draft).await;
        (world.owner, world.key, world.sandbox_url) = restored;
    }

    /// Reads everything that the tenant can read, and remembers the ids.
    pub(crate) async fn view(
        &mut self,
        client: &mut Client,
        operations: &[Operation],
    ) -> BTreeMap<String, Value> {
        let mut seen = BTreeMap::new();
        // Lists first: their ids are in the paths of the others.
        let mut reads: Vec<_> =
            operations.iter().filter(|operation| operation.method == Method::GET).collect();
        reads.sort_by_key(|operation| operation.parameters().len());
        for operation in reads {
            // These ask the platform or a worker, and change what they read.
            if ["/health", "/analytics", "/options/{kind}", "{token}"]
                .iter()
                .any(|end| operation.path.ends_with(end))
            {
                continue;
            }
            let account = self.id("social-accounts");
            let query = if operation.path == "/scheduling/find-slot" {
                format!("?account={account}")
            } else if operation.query.iter().any(|name| name == "limit") {
                "?limit=100".to_owned()
            } else {
                String::new()
            };
            let collections = operation.parameters();
            let owners = match collections.first() {
                Some(parameter) => self.ids.get(operation.collection(parameter)).cloned().unwrap_or_default(),
                None => vec![String::new()],
            };
            for owner in owners {
                let mut is_first = true;
                let path = operation.filled(|parameter| match std::mem::take(&mut is_first) {
                    true => owner.clone(),
                    false => self.parameter(operation, parameter),
                });
                let answer =
                    client.send(&self.key, &Request::new(&Method::GET, format!("{path}{query}"))).await;
                let mut body = answer.json();
                self.remember(operation.path.rsplit('/').next().unwrap_or_default(), &body);
                forget_use(&mut body);
                seen.insert(path, json!([answer.status, body]));
            }
        }
        seen
    }

    /// Remembers the ids in a response, by the name of the list that they are in.
    fn remember(&mut self, collection: &str, body: &Value) {
        match body {
            Value::Array(items) => items.iter().for_each(|item| self.remember(collection, item)),
            Value::Object(members) => {
                if let Some(id) = members.get("id").and_then(Value::as_str)
                    && Uuid::parse_str(id).is_ok()
                    && !collection.starts_with('{')
                {
                    let known = self.ids.entry(collection.to_owned()).or_default();
                    if !known.iter().any(|known| known == id) {
                        known.push(id.to_owned());
                    }
                }
                for (name, value) in members {
                    self.remember(if name == "data" { collection } else { name }, value);
                }
            }
            _ => {}
        }
    }
}

/// Removes what reading changes: the use of keys and of the API, ids of requests, and the expiry of signed URLs.
fn forget_use(body: &mut Value) {
    match body {
        Value::Array(items) => items.iter_mut().for_each(forget_use),
        Value::Object(members) => {
            let is_signed = |value: &Value| value.as_str().is_some_and(|text| text.contains("/content/"));
            members.retain(|name, value| {
                !["last_used_at", "api_requests", "request_id"].contains(&name.as_str()) && !is_signed(value)
            });
            members.values_mut().for_each(forget_use);
        }
        _ => {}
    }
}
