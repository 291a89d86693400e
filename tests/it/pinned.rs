//! Shapes, tables and enumerations that the specification pins: nothing may be added to them.
//!
//! The expectations are copied from the specification, word by word, and not from the service: strict decoders are
//! built from the same words. An addition of our own belongs beside these shapes; a test that fails here is no reason
//! to change the expectation.

use crate::{api::request, attacks::operations, events, fetched, media, world};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tests::{Receiver, World, samples::png};

fn members(value: &Value) -> Vec<&str> {
    let mut names: Vec<_> =
        value.as_object().unwrap_or_else(|| panic!("{value}")).keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// Fails unless a value has exactly these members.
#[track_caller]
fn exactly(value: &Value, expected: &str) {
    let mut expected: Vec<_> = expected.split_whitespace().collect();
    expected.sort_unstable();
    assert_eq!(members(value), expected, "{value:#}");
}

/// Fails unless a value has at least these members.
#[track_caller]
fn at_least(value: &Value, expected: &str) {
    let found = members(value);
    let missing: Vec<_> = expected.split_whitespace().filter(|name| !found.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?} of {value:#}");
}

async fn call(world: &World, method: Method, path: &str, body: Value) -> Value {
    let body = Some(body).filter(|body| !body.is_null());
    let (status, answer) = world.call(method, path, body.as_ref()).await;
    assert!(status.is_success(), "{path}: {answer}");
    answer
}

#[tokio::test]
async fn pinned_objects_have_these_members_and_no_other() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let body = json!({
        "containers": [{ "content": "a" }], "accounts": ["ada"], "is_draft": true, "metadata": { "order": "7" },
    });
    let post = world.post(body.clone()).await;
    at_least(
        &post,
        "id status is_draft scheduled_at published_at default_config external_ref created_at updated_at containers \
         targets",
    );
    at_least(&post["containers"][0], "id position role content");
    at_least(
        &post["targets"][0],
        "id social_account_id platform status platform_post_id platform_post_url error_code error_message published_at",
    );
    let listed = world.get("/posts").await;
    exactly(&listed, "data next_cursor");
    exactly(&listed["data"][0], "id status is_draft scheduled_at published_at created_at");

    let batch = call(&world, Method::POST, "/posts/batch", json!({ "posts": [body, {}] })).await;
    exactly(&batch, "data errors");
    exactly(&batch["data"][0], "index status post");
    exactly(&batch["data"][0]["post"], "id status");
    at_least(&batch["errors"][0], "index status title detail");

    let path = format!("/posts/{}", post["id"].as_str().unwrap());
    exactly(&call(&world, Method::DELETE, &path, Value::Null).await, "id canceled");

    let accounts = world.get("/social-accounts").await;
    exactly(&accounts, "data next_cursor");
    at_least(
        &accounts["data"][0],
        "id platform tenant_id network_unique_id username display_name status created_at updated_at",
    );
    let asset = world.medium("a.png", None, png(8, 8)).await;
    at_least(&asset, "id kind status created_at");
    let assets = world.get("/media").await;
    exactly(&assets, "data pagination");
    exactly(&assets["pagination"], "limit offset total");

    let network = json!({ "platform": "x", "client_id": "c", "client_secret": "s" });
    let network = call(&world, Method::POST, "/social-networks", network).await;
    at_least(
        &network,
        "id platform display_name client_id redirect_uri scopes extra_config is_enabled created_at updated_at",
    );
    assert!(network.get("client_secret").is_none(), "{network}");
    exactly(&call(&world, Method::POST, "/social-networks/x/auth-url", json!({})).await, "auth_url");
    let path = format!("/social-networks/{}", network["id"].as_str().unwrap());
    exactly(&call(&world, Method::DELETE, &path, Value::Null).await, "id deleted");

    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    // The optional description is absent where there is none.
    at_least(&webhook, "id url events is_active signing_secret created_at updated_at");
    let path = format!("/webhooks/{}", webhook["id"].as_str().unwrap());
    assert!(world.get(&path).await.get("signing_secret").is_none(), "a secret is shown once");
    let tested = call(&world, Method::POST, &format!("{path}/test"), Value::Null).await;
    exactly(&tested, "event delivered response_status signed");
}

#[tokio::test]
async fn roles_follow_the_position_in_a_reply_too() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let texts = json!([{ "content": "a" }, { "content": "b" }, { "content": "c" }, { "content": "d" }]);
    let body = json!({ "containers": texts, "accounts": ["ada"], "scheduled_at": "2040-01-01T00:00:00Z" });
    let post = world.post(body.clone()).await;
    let mut reply = body;
    reply["reply_to"] = post["id"].clone();
    let reply = world.post(reply).await;
    let single = json!({ "content": "e", "reply_to": post["id"], "scheduled_at": "2040-01-01T00:00:00Z" });
    let single = world.post(single).await;
    let roles = |post: &Value| {
        let containers = post["containers"].as_array().unwrap().iter();
        containers.map(|one| (one["position"].clone(), one["role"].clone())).collect::<Vec<_>>()
    };
    let expected = ["main", "first_comment", "thread", "thread"];
    let expected: Vec<_> = (0..).zip(expected).map(|(at, role)| (json!(at), json!(role))).collect();
    assert_eq!(roles(&post), expected);
    assert_eq!(roles(&reply), expected);
    assert_eq!(roles(&single), expected[..1]);
    for post in [&post, &reply] {
        let path = format!("/posts/{}", post["id"].as_str().unwrap());
        assert_eq!(roles(&world.get(&path).await), expected);
    }
}

/// The specification's table of rate limits: path, methods and calls a minute.
const BUCKETS: [(&str, &[&str], u64); 9] = [
    ("", &["GET", "POST", "PUT", "PATCH", "DELETE"], 600),
    ("/posts", &["POST", "PATCH", "DELETE"], 120),
    ("/media", &["POST", "DELETE"], 60),
    ("/social-accounts", &["POST", "DELETE"], 20),
    ("/scheduling", &["PUT"], 60),
    ("/team", &["POST", "DELETE"], 30),
    ("/profiles", &["POST", "PATCH", "DELETE"], 30),
    ("/webhooks", &["POST", "PATCH", "DELETE"], 60),
    ("/social-accounts/bluesky/connect", &["POST"], 10),
];

#[tokio::test]
async fn every_operation_counts_in_the_buckets_of_the_table() {
    let world = world().set("FANFARE_RATE_LIMITS", "").start().await;
    let (_, all) = operations(&world).await;
    let mut seen = BTreeSet::new();
    for (method, path, operation) in all {
        // The others are authorized by a link, and count by address.
        if operation["security"].as_array().is_none_or(|ways| ways.contains(&json!({}))) {
            continue;
        }
        let path = path.replace("{platform}", "x").replace(['{', '}'], "");
        let covering = BUCKETS.iter().filter(|(root, methods, _)| {
            let below = path.strip_prefix(root);
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                && methods.contains(&method.as_str())
        });
        let (root, _, limit) = covering.min_by_key(|(.., limit)| *limit).unwrap();
        seen.insert(*root);
        let answer = request(&world, method.clone(), &path).body("{").send().await.unwrap();
        let told = answer.headers().get("x-ratelimit-limit").map(|told| told.to_str().unwrap().to_owned());
        assert_eq!(told, Some(limit.to_string()), "{method} {path}: {}", answer.status());
    }
    assert_eq!(seen, BUCKETS.iter().map(|(root, ..)| *root).collect(), "each bucket has an operation");
}

#[tokio::test]
async fn a_post_takes_media_that_are_ready_or_uploaded() {
    let world = fetched::start().await;
    world.connect("x", "ada").await;
    // It answers when it is let, which it is not.
    let (origin, permits, serving) = fetched::serve().await;
    let body = |id: &Value| {
        json!({
            "containers": [{ "content": "Look", "media": [{ "id": id }] }], "accounts": ["ada"],
            "scheduled_at": "2040-01-01T00:00:00Z",
        })
    };
    let import = json!({ "url": format!("{origin}/a.png") });
    let fetched = call(&world, Method::POST, "/media/import", import).await;
    assert_eq!(fetched["status"], "pending_upload", "{fetched}");
    let announced = world.declare(json!({ "filename": "a.png" })).await;
    let asset = world.medium("a.png", None, png(8, 8)).await;
    let set = async |status: &str| {
        let id: uuid::Uuid = asset["id"].as_str().unwrap().parse().unwrap();
        let update = sqlx::query("update media set status = $2 where id = $1").bind(id).bind(status);
        assert_eq!(update.execute(&world.db).await.unwrap().rows_affected(), 1);
        asset["id"].clone()
    };
    let draft = |mut body: Value| {
        body["is_draft"] = json!(true);
        body
    };
    let scheduled = json!({ "content": "a", "accounts": ["ada"], "scheduled_at": "2040-01-01T00:00:00Z" });
    let scheduled = format!("/posts/{}", world.post(scheduled).await["id"].as_str().unwrap());
    for (status, id, is_taken) in [
        ("ready", set("ready").await, true),
        ("uploaded", set("uploaded").await, true),
        ("failed", set("failed").await, false),
        ("announced", announced["id"].clone(), false),
        ("being fetched", fetched["id"].clone(), false),
    ] {
        let _ = set(if ["ready", "uploaded", "failed"].contains(&status) { status } else { "ready" }).await;
        let edit = json!({ "containers": body(&id)["containers"] });
        let of_platform = json!({
            "content": "a", "accounts": ["ada"], "config": { "x": { "media": [{ "id": id }] } }, "is_draft": true,
        });
        for (method, path, body) in [
            (Method::POST, "/posts", body(&id)),
            (Method::POST, "/posts", draft(body(&id))),
            (Method::POST, "/posts", of_platform),
            (Method::POST, "/posts/validate", body(&id)),
            (Method::PATCH, &*scheduled, edit),
        ] {
            let (code, answer) = world.call(method.clone(), path, Some(&body)).await;
            if is_taken {
                assert!(code.is_success(), "{status}: {method} {path}: {answer}");
            } else {
                let found = (code.as_u16(), answer["code"].as_str());
                assert_eq!(
                    found,
                    (422, Some("media_not_ready")),
                    "{status}: {method} {path} {body}: {answer}"
                );
            }
        }
        let batch = json!({ "posts": [draft(body(&id))] });
        let batch = call(&world, Method::POST, "/posts/batch", batch).await;
        let found = if is_taken { &batch["data"][0]["status"] } else { &batch["errors"][0]["status"] };
        assert_eq!(*found, json!(if is_taken { 201 } else { 422 }), "{status}: {batch}");
    }
    permits.add_permits(100);
    media::until(&world, &fetched["id"], "ready").await;
    serving.abort();
}

#[tokio::test]
async fn a_post_keeps_the_files_whose_addresses_it_named() {
    let world = fetched::start().await;
    world.connect("x", "ada").await;
    let (origin, permits, serving) = fetched::serve().await;
    let url = format!("{origin}/a.png");
    let body = json!({
        "containers": [{ "content": "Look", "media": [{ "url": url }] }], "accounts": ["ada"], "is_draft": true,
        "config": { "x": { "media": [{ "url": format!("{origin}/page") }] } },
    });
    let post = world.post(body.clone()).await;
    let path = format!("/posts/{}", post["id"].as_str().unwrap());
    // The content that the post shows can be sent back.
    for edit in [
        json!({ "containers": post["containers"] }),
        json!({ "config": post["default_config"] }),
        json!({ "containers": post["variants"][0]["containers"] }),
        json!({ "content": "Another text" }),
    ] {
        let (status, edited) = world.call(Method::PATCH, &path, Some(&edit)).await;
        assert_eq!(status, StatusCode::OK, "{edit}: {edited}");
    }
    // Another post does not get them before they are there.
    let other = json!({ "containers": post["containers"], "accounts": ["ada"], "is_draft": true });
    let (status, problem) = world.call(Method::POST, "/posts", Some(&other)).await;
    assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("media_not_ready")), "{problem}");
    permits.add_permits(100);
    media::until(&world, &post["containers"][0]["media"][0]["id"], "ready").await;
    media::until(&world, &post["variants"][0]["containers"][0]["media"][0]["id"], "failed").await;
    serving.abort();
}

/// The specification's table of events: what the data holds. `+` stands for what it leaves open.
const EVENTS: [(&str, &str); 4] = [
    ("post.published", "postId orgId socialAccounts"),
    ("post.error", "postId orgId socialAccounts"),
    ("post.target.published", "+ postId orgId"),
    ("post.target.failed", "+ postId orgId"),
];

#[tokio::test]
async fn a_post_sends_each_event_with_these_data_and_this_often() {
    let world = world().start().await;
    let x = world.connect("x", "ada").await;
    let bluesky = world.connect("bluesky", "ada.bsky.social").await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let refused = json!({ "x": { "content": "No #sandbox-400" } });
    let partial = json!({ "content": "Partly", "accounts": [x, bluesky], "config": refused });
    let partial = world.ended(&world.post(partial).await).await;
    assert_eq!(partial["status"], "partial", "{partial:#}");
    let failed = json!({ "content": "No #sandbox-400", "accounts": [x, bluesky] });
    let failed = world.ended(&world.post(failed).await).await;
    assert_eq!(failed["status"], "failed", "{failed:#}");

    let promised = events::names(&world, &webhook).await;
    let deliveries = receiver.events(&promised.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let mut counts = BTreeMap::<_, u32>::new();
    for body in deliveries.iter().map(tests::Delivery::json) {
        let name = body["event"].as_str().unwrap().to_owned();
        assert!(body["timestamp"].as_str().is_some_and(|at| at.len() == 24 && at.ends_with('Z')), "{body}");
        let data = &body["data"];
        let (_, pinned) = EVENTS.iter().find(|(known, _)| *known == name).unwrap();
        match pinned.strip_prefix("+ ") {
            Some(least) => at_least(data, least),
            None => exactly(data, pinned),
        }
        for entry in data["socialAccounts"].as_array().into_iter().flatten() {
            at_least(entry, "accountId network username");
            let rest: Vec<_> = members(entry)
                .into_iter()
                .filter(|name| !["accountId", "network", "username"].contains(name))
                .collect();
            match &*name {
                "post.error" => assert_eq!(rest, ["error"], "{entry}"),
                _ => assert!(matches!(rest[..], [] | ["error"] | ["platformPostId"]), "{entry}"),
            }
        }
        *counts.entry((data["postId"].clone().to_string(), name)).or_default() += 1;
    }
    let of = |post: &Value| post["id"].to_string();
    let expected = [
        ((of(&partial), "post.published".to_owned()), 1),
        ((of(&partial), "post.target.published".to_owned()), 1),
        ((of(&partial), "post.target.failed".to_owned()), 1),
        ((of(&failed), "post.error".to_owned()), 1),
        ((of(&failed), "post.target.failed".to_owned()), 2),
    ];
    assert_eq!(counts, expected.into());
}

/// Returns the words that a schema of the document allows, wherever it refers to.
fn words<'a>(document: &'a Value, schema: &'a Value) -> BTreeSet<&'a str> {
    let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
    let schema = reference.map_or(schema, |name| document.pointer(&name[1..]).unwrap());
    schema["enum"].as_array().unwrap_or_else(|| panic!("{schema}")).iter().filter_map(Value::as_str).collect()
}

#[tokio::test]
async fn pinned_enumerations_have_these_words_and_no_other() {
    let world = world().start().await;
    let document = world.get("/openapi.json").await;
    let schemas = &document["components"]["schemas"];
    let of = |object: &str, member: &str| words(&document, &schemas[object]["properties"][member]);
    let platforms =
        "x linkedin instagram tiktok youtube facebook threads bluesky pinterest google_business reddit";
    for (object, member, expected) in [
        ("PostSummary", "status", "draft scheduled queued publishing published partial failed canceled"),
        ("Post", "status", "draft scheduled queued publishing published partial failed canceled"),
        ("Target", "status", "pending queued published failed dead canceled"),
        ("Container", "role", "main first_comment thread"),
        ("Target", "platform", platforms),
        ("SocialNetwork", "platform", platforms),
        ("Media", "kind", "image video gif document audio"),
    ] {
        assert_eq!(of(object, member), expected.split_whitespace().collect(), "{object}.{member}");
    }
    let parameters = document["paths"]["/posts"]["get"]["parameters"].as_array().unwrap();
    let status = parameters.iter().find(|parameter| parameter["name"] == "status").unwrap();
    assert_eq!(words(&document, &status["schema"]), of("Post", "status"));
    // No error of the specification has another status, and none of its request codes another name.
    for (path, method, status, code) in
        [("/nowhere", Method::GET, 404, "not_found"), ("/posts", Method::PUT, 405, "method_not_allowed")]
    {
        let (found, problem) = world.call(method, path, None).await;
        assert_eq!((found.as_u16(), problem["code"].as_str()), (status, Some(code)), "{problem}");
        assert_eq!((&problem["type"], &problem["status"]), (&json!("about:blank"), &json!(status)));
    }
}
