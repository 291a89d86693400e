//! The search for the most expensive input of each operation: from its example, one parameter or member after the other is
//! set to a value at its limits, and what was accepted and cost more is changed further.

use super::{
    Finding,
    scene::{Call, MANY, Measured, Scene, to_all},
    values::Maker,
};
use crate::hostile::{document::Operation, seed};
use chrono::TimeDelta;
use rand::{SeedableRng, rngs::StdRng, seq::IndexedRandom};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tests::{now, proof::is_full};
use url::form_urlencoded;

/// Length of the longest body that the service reads, and of the longest address that the client sends, in bytes.
const LONGEST: (usize, usize) = (1 << 20, 60_000);

/// Operations that ask a worker, or a platform through one.
const ASKS_A_WORKER: [&str; 10] = [
    "POST /media/import",
    "PATCH /posts/{id}/targets/{target_id}",
    "POST /posts/{id}/targets/{target_id}/unpublish",
    "GET /posts/{id}/analytics",
    "POST /social-accounts/bluesky/connect",
    "GET /social-accounts/{id}/health",
    "POST /social-accounts/{id}/imports",
    "GET /social-accounts/{id}/options/{kind}",
    "POST /social-networks/{platform}/auth-url",
    "POST /webhooks/{id}/test",
];

/// Operations that can be done to a thing once.
fn is_final(operation: &Operation) -> bool {
    let ends = ["/retry", "/retry-failed", "/redeliver", "/replay", "/rotate", "/confirm", "/finalize"];
    operation.method == Method::DELETE || ends.iter().any(|end| operation.path.ends_with(end))
}

/// Returns the number of inputs that are tried for an operation.
fn tries() -> usize {
    if is_full() { 250 } else { 12 }
}

fn name(operation: &Operation) -> String {
    format!("{} {}", operation.method, operation.path)
}

/// Parts of a request of an operation.
#[derive(Clone, Debug, Default)]
struct Input {
    segments: BTreeMap<String, String>,
    query: BTreeMap<String, String>,
    body: Option<Value>,
}

impl Input {
    /// Returns the operation's example, with ids of the organization.
    fn of(scene: &Scene, operation: &Operation, index: usize) -> Self {
        let mut input = Self::default();
        for parameter in operation.parameters() {
            let collection = collection(operation, parameter);
            let known = scene.ids.get(collection).and_then(|ids| ids.get(index.min(ids.len() - 1)));
            let id = known.cloned().unwrap_or_else(|| uuid::Uuid::nil().to_string());
            input.segments.insert(parameter.to_owned(), id);
        }
        if operation.query.iter().any(|name| name == "account") {
            input.query.insert("account".to_owned(), scene.ids["social-accounts"][0].clone());
        }
        input.body = operation.body.as_ref().map(|body| {
            let mut body = body.example.clone();
            own(&mut body, scene);
            body
        });
        drafted(input)
    }

    fn call(&self, scene: &Scene, operation: &Operation) -> Call {
        let path = operation.filled(|parameter| self.segments[parameter].clone());
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.query).finish();
        let path = if query.is_empty() { path } else { format!("{path}?{query}") };
        scene.call(&operation.method, &path, self.body.as_ref())
    }

    fn name(&self) -> String {
        let body = self.body.as_ref().map(Value::to_string).unwrap_or_default();
        format!("{:?} {:?} {body}", self.segments, self.query)
    }
}

/// Replaces the ids of an example.
fn own(value: &mut Value, scene: &Scene) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| own(item, scene)),
        Value::Object(members) => {
            for (name, value) in members.iter_mut() {
                let id = |collection: &str| json!(scene.ids[collection][0]);
                match name.as_str() {
                    "accounts" | "account_ids" | "social_account_ids" => {
                        *value = json!([id("social-accounts")])
                    }
                    "social_account_id" | "queued_from_account" | "reconnect_account_id" => {
                        *value = id("social-accounts")
                    }
                    "media" => *value = json!([{ "id": id("media") }]),
                    "url" => *value = json!(scene.hook),
                    _ => own(value, scene),
                }
            }
        }
        _ => {}
    }
}

fn collection<'a>(operation: &'a Operation, parameter: &'a str) -> &'a str {
    if ["kind", "platform"].contains(&parameter) { parameter } else { operation.collection(parameter) }
}

/// Searches the operations that ask a worker.
pub(super) async fn with_a_worker(scene: &mut Scene) -> Vec<Finding> {
    over(scene, |operation| ASKS_A_WORKER.contains(&name(operation).as_str())).await
}

/// Searches the operations that can be repeated.
pub(super) async fn over_operations(scene: &mut Scene) -> Vec<Finding> {
    over(scene, |operation| !ASKS_A_WORKER.contains(&name(operation).as_str()) && !is_final(operation)).await
}

async fn over(scene: &mut Scene, is_searched: impl Fn(&Operation) -> bool) -> Vec<Finding> {
    let mut random = StdRng::seed_from_u64(seed());
    let mut findings = Vec::new();
    let operations: Vec<_> = scene.operations.iter().filter(|one| is_searched(one)).cloned().collect();
    for operation in operations {
        findings.extend(climb(scene, &operation, &mut random).await);
    }
    findings
}

/// Does what can be done once to some of the things that an operation names.
pub(super) async fn over_deletions(scene: &mut Scene) -> Vec<Finding> {
    let mut operations: Vec<_> = scene.operations.iter().filter(|one| is_final(one)).cloned().collect();
    // Deleted posts can't be retried.
    operations.sort_by_key(|operation| operation.method == Method::DELETE);
    let mut findings = Vec::new();
    for operation in operations {
        let mut worst = Worst::default();
        for index in 0..if operation.path.starts_with("/posts/") { 6 } else { 3 } {
            let mut input = Input::of(scene, &operation, index);
            if operation.path.ends_with("/replay") {
                input.body = Some(json!({ "since": (now() - TimeDelta::days(1)).to_rfc3339() }));
            } else if operation.path.ends_with("/retry") {
                input.body = input.body.map(|_| json!({}));
            }
            let call = input.call(scene, &operation);
            let measured = scene.send(&call).await;
            worst.weigh(Finding::of(name(&operation), &input.name(), call, &measured));
        }
        findings.extend(worst.findings(&operation));
    }
    findings
}

/// The most expensive inputs of an operation.
#[derive(Default)]
struct Worst {
    accepted: Option<Finding>,
    refused: Option<Finding>,
}

impl Worst {
    /// Keeps an input if it is the most expensive one. Returns whether it is, among those that were accepted.
    fn weigh(&mut self, finding: Finding) -> bool {
        let is_accepted = finding.status < 400;
        let kept = if is_accepted { &mut self.accepted } else { &mut self.refused };
        let is_worse = kept.as_ref().is_none_or(|kept| finding.weight() > kept.weight());
        if is_worse {
            *kept = Some(finding);
        }
        is_worse && is_accepted
    }

    /// Returns the most expensive input that was accepted, and one that was refused if it cost too much, or none was
    /// accepted.
    fn findings(self, operation: &Operation) -> Vec<Finding> {
        let Self { accepted, refused } = self;
        if accepted.is_none() {
            println!("{}: nothing was accepted: {refused:?}", name(operation));
        }
        let refused = refused.filter(|finding| accepted.is_none() || finding.excess().is_some());
        accepted.into_iter().chain(refused).collect()
    }
}

/// Returns inputs that are expensive by design, from which the search goes on.
fn suspects(scene: &Scene, operation: &Operation, example: &Input) -> Vec<Input> {
    let query = |pairs: &[(&str, &str)]| Input {
        query: pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..example.clone()
    };
    let body = |body: Value| Input { body: Some(body), ..example.clone() };
    let accounts = &scene.ids["social-accounts"];
    let all = accounts[..accounts.len().min(MANY as usize)].to_vec();
    match name(operation).as_str() {
        "GET /posts" => vec![
            query(&[("q", "no such text"), ("tenant_id", "tenant"), ("limit", "100")]),
            query(&[("tenant_id", "tenant"), ("limit", "100")]),
            query(&[
                ("q", "no such text"),
                ("profile_id", scene.ids["profiles"][0].as_str()),
                ("limit", "100"),
            ]),
            query(&[("q", "lorem"), ("limit", "100")]),
            query(&[("q", "no such text")]),
            query(&[("platform", "x"), ("status", "failed"), ("q", "nothing")]),
        ],
        "POST /posts" | "POST /posts/validate" => vec![
            body(to_all(scene, "Hello")),
            body(to_all(scene, &"é ".repeat(140))),
            body(json!({
                "containers": vec![json!({ "content": "Text @ada #a https://example.com/a" }); 10],
                "accounts": all, "is_draft": true,
            })),
        ],
        "POST /posts/batch" => vec![
            body(json!({ "posts": vec![to_all(scene, "Hello"); 20] })),
            body(json!({ "posts": vec![to_all(scene, &"x".repeat(1000)); 20] })),
            body(
                json!({ "posts": vec![json!({ "content": "a".repeat(40_000), "accounts": all[..1], "is_draft": true }); 20] }),
            ),
        ],
        "POST /profiles" | "PATCH /profiles/{id}" => {
            vec![body(json!({ "name": "All", "social_account_ids": all }))]
        }
        "POST /api-keys" => {
            vec![body(json!({ "name": "All", "scopes": ["posts:read"], "account_ids": all }))]
        }
        "GET /scheduling/find-slot" => vec![
            query(&[("account", all[0].as_str()), ("count", "100"), ("timezone", "America/St_Johns")]),
            query(&[("account", all[0].as_str()), ("count", "100"), ("after", "9999-12-31T00:00:00Z")]),
            query(&[("account", all[0].as_str()), ("count", "100"), ("after", "2400-01-01T00:00:00Z")]),
        ],
        _ => Vec::new(),
    }
}

/// Searches the most expensive input of an operation.
async fn climb(scene: &mut Scene, operation: &Operation, random: &mut StdRng) -> Vec<Finding> {
    let mut best = Input::of(scene, operation, 0);
    let mut worst = Worst::default();
    let mut first = suspects(scene, operation, &best);
    // The next ids, of which some have more of something else.
    first.extend(
        (1..6).filter(|_| best.segments.contains_key("id")).map(|index| Input::of(scene, operation, index)),
    );
    first.insert(0, best.clone());
    let mut queue = first.into_iter();
    for _ in 0..tries() + queue.len() {
        let input = queue.next().unwrap_or_else(|| change(scene, operation, &best, random));
        let call = input.call(scene, operation);
        if call.body.len() > LONGEST.0 || call.url.len() > LONGEST.1 {
            continue;
        }
        let measured = scene.send(&call).await;
        undo(scene, operation, &measured).await;
        if worst.weigh(Finding::of(name(operation), &input.name(), call, &measured)) {
            best = input;
        }
    }
    worst.findings(operation)
}

/// Changes a part of an input.
fn change(scene: &Scene, operation: &Operation, input: &Input, random: &mut StdRng) -> Input {
    let mut input = input.clone();
    let description = &scene.document["paths"][&operation.path][operation.method.as_str().to_lowercase()];
    let parameters = description["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    let changed: Vec<_> = parameters
        .iter()
        .filter(|parameter| parameter["name"] != "cursor" && parameter["in"] != "header")
        .collect();
    let mut maker = Maker::of(scene, random);
    let schema = maker.resolve(&description["requestBody"]["content"]["application/json"]["schema"]);
    let members: Vec<_> = schema["properties"].as_object().into_iter().flatten().collect();
    let count = changed.len() + members.len();
    if count == 0 {
        return input;
    }
    let chosen = *(0..count).collect::<Vec<_>>().choose(maker.random()).expect("a part");
    if let Some(parameter) = changed.get(chosen) {
        let name = parameter["name"].as_str().expect("a name");
        if parameter["in"] == "path" {
            if let Some(id) = maker.segment(collection(operation, name)) {
                input.segments.insert(name.to_owned(), id);
            }
        } else if let Some(value) = maker.member(name, &parameter["schema"]) {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            match value.as_object() {
                Some(members) => {
                    let members = members.iter().take(10);
                    input.query.extend(members.map(|(key, value)| (format!("{name}[{key}]"), text(value))));
                }
                None => drop(input.query.insert(name.to_owned(), text(&value))),
            }
        }
    } else if let (Some((name, member)), Some(Value::Object(body))) =
        (members.get(chosen - changed.len()), &mut input.body)
        && let Some(value) = maker.member(name, member)
    {
        body.insert((*name).clone(), value);
    }
    drafted(input)
}

/// Makes all posts of a body drafts, which are checked and stored, and not published.
fn drafted(mut input: Input) -> Input {
    if let Some(Value::Object(body)) = &mut input.body {
        let posts = body.get_mut("posts").and_then(Value::as_array_mut).into_iter().flatten();
        for post in posts.filter_map(Value::as_object_mut) {
            post.insert("is_draft".to_owned(), json!(true));
        }
        if body.contains_key("accounts") {
            body.insert("is_draft".to_owned(), json!(true));
        }
    }
    input
}

/// Deletes what a request created, so that there is room for the next one.
async fn undo(scene: &Scene, operation: &Operation, measured: &Measured) {
    if operation.method != Method::POST || measured.status >= 300 || operation.path.contains('{') {
        return;
    }
    let answer: Value = serde_json::from_slice(&measured.body).unwrap_or_default();
    let collection = operation.path.split('/').nth(1).expect("a segment");
    let created = answer["data"].as_array().into_iter().flatten().map(|one| &one["post"]["id"]);
    for id in created.chain([&answer["id"]]).filter_map(Value::as_str) {
        let path = format!("/{collection}/{id}");
        let known = format!("/{collection}/{{id}}");
        if scene.document["paths"][&known]["delete"].is_object() {
            let (status, answer) = scene.world.call(Method::DELETE, &path, None).await;
            // The last owner of a team stays.
            assert!(status.is_success() || status == 409, "{path}: {status} {answer}");
        }
    }
}
