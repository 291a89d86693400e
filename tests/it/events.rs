//! Payloads of webhook events, field by field.
//!
//! An event is written in the transaction of the change that it reports, with one delivery per endpoint. The
//! list of deliveries, read after a post has reached its final status, is therefore complete.

use crate::world;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{Receiver, World};

/// Waits for `count` events of a name and returns their data, sorted by network.
async fn data(receiver: &Receiver, name: &str, count: usize) -> Vec<Value> {
    let deliveries = receiver.events(&vec![name; count]).await;
    let bodies = deliveries.iter().map(tests::Delivery::json).filter(|body| body["event"] == name);
    let mut all: Vec<_> = bodies.map(|body| body["data"].clone()).collect();
    all.sort_by_key(|data| data["network"].as_str().map(str::to_owned));
    all
}

/// Returns the names of all events for an endpoint, sorted.
pub(crate) async fn names(world: &World, webhook: &Value) -> Vec<String> {
    let path = format!("/webhooks/{}/deliveries?limit=100", webhook["id"].as_str().unwrap());
    let listed = world.get(&path).await;
    let all = listed["data"].as_array().unwrap().iter();
    let mut names: Vec<_> = all.map(|one| one["event"].as_str().unwrap().to_owned()).collect();
    names.sort_unstable();
    names
}

/// Returns the targets of a post on X and on Bluesky.
fn targets(post: &Value) -> [&Value; 2] {
    ["x", "bluesky"].map(|platform| {
        let mut all = post["targets"].as_array().unwrap().iter();
        all.find(|target| target["platform"] == platform).unwrap()
    })
}

/// Returns the fields that identify an account.
fn subject(account: &str, network: &str, username: &str) -> Value {
    json!({ "accountId": account, "network": network, "username": username })
}

fn with(mut object: Value, members: Value) -> Value {
    object.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    object
}

#[tokio::test]
async fn post_published_is_sent_when_the_first_target_is_published() {
    let world = world().start().await;
    let x = world.connect("x", "ada").await;
    let bluesky = world.connect("bluesky", "ada.bsky.social").await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let call = json!({ "platform": "x", "method": "POST", "path_prefix": "/2/tweets", "when": "before" });
    let hold = world.hold(call).await;
    let post = world.post(json!({ "content": "Told", "accounts": [x, bluesky] })).await;
    hold.until_held().await;
    let id = post["id"].as_str().unwrap();
    let first = world.until(id, "one live target", |post| targets(post)[1]["status"] == "published").await;
    let reported = data(&receiver, "post.published", 1).await;
    let live = json!({ "platformPostId": targets(&first)[1]["platform_post_id"] });
    let expected = json!({
        "postId": id,
        "orgId": world.owner.org,
        "socialAccounts": [
            // Still publishing: neither an id nor an error.
            subject(&x, "x", "ada"),
            with(subject(&bluesky, "bluesky", "ada.bsky.social"), live),
        ],
    });
    assert_eq!(reported, [expected]);
    hold.release().await;

    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    assert_eq!(ended["published_at"], targets(&first)[1]["published_at"], "the time of the first target");
    assert!(ended["published_at"].as_str() < targets(&ended)[0]["published_at"].as_str(), "{ended:#}");
    let promised = ["post.published", "post.target.published", "post.target.published"];
    assert_eq!(names(&world, &webhook).await, promised);
    let expected = [(&bluesky, "bluesky", "ada.bsky.social", 1), (&x, "x", "ada", 0)];
    let expected = expected.map(|(account, network, username, at)| {
        let target = targets(&ended)[at];
        let members = json!({
            "postId": id,
            "targetId": target["id"],
            "orgId": world.owner.org,
            "platformPostId": target["platform_post_id"],
            "platformPostUrl": target["platform_post_url"],
        });
        assert!(members.as_object().unwrap().values().all(Value::is_string), "{members}");
        with(subject(account, network, username), members)
    });
    assert_eq!(data(&receiver, "post.target.published", 2).await, expected);
}

#[tokio::test]
async fn post_error_has_the_error_of_each_account() {
    let world = world().start().await;
    let x = world.connect("x", "ada").await;
    let bluesky = world.connect("bluesky", "ada.bsky.social").await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let post = world.post(json!({ "content": "No #sandbox-400", "accounts": [x, bluesky] })).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "failed", "{ended:#}");
    let promised = ["post.error", "post.target.failed", "post.target.failed"];
    assert_eq!(names(&world, &webhook).await, promised);
    let accounts = [(&x, "x", "ada"), (&bluesky, "bluesky", "ada.bsky.social")];
    let entries: Vec<_> = accounts
        .iter()
        .zip(targets(&ended))
        .map(|((account, network, username), target)| {
            assert!(target["error_message"].as_str().is_some_and(|message| !message.is_empty()), "{target}");
            with(subject(account, network, username), json!({ "error": target["error_message"] }))
        })
        .collect();
    let expected = json!({ "postId": post["id"], "orgId": world.owner.org, "socialAccounts": entries });
    assert_eq!(data(&receiver, "post.error", 1).await, [expected]);
    let mut expected: Vec<_> = entries
        .into_iter()
        .zip(targets(&ended))
        .map(|(entry, target)| {
            let members = json!({
                "postId": post["id"], "targetId": target["id"], "orgId": world.owner.org,
                "errorCode": "rejected_400",
            });
            with(entry, members)
        })
        .collect();
    expected.reverse();
    assert_eq!(data(&receiver, "post.target.failed", 2).await, expected);
}

#[tokio::test]
async fn a_partial_post_sends_post_published_once_and_no_post_error() {
    let world = world().start().await;
    let x = world.connect("x", "ada").await;
    let bluesky = world.connect("bluesky", "ada.bsky.social").await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    world.revoke_grants("x", "ada").await;
    let post = world.post(json!({ "content": "Partly", "accounts": [x, bluesky] })).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "partial", "{ended:#}");
    let promised =
        ["account.reauth_required", "post.published", "post.target.failed", "post.target.published"];
    assert_eq!(names(&world, &webhook).await, promised);
    let reported = data(&receiver, "post.target.failed", 1).await;
    let dead = targets(&ended)[0];
    let members = json!({
        "postId": post["id"], "targetId": dead["id"], "orgId": world.owner.org,
        "errorCode": "token_expired", "error": dead["error_message"],
    });
    assert_eq!(reported, [with(subject(&x, "x", "ada"), members)]);
}

#[tokio::test]
async fn reauth_required_has_the_tenant_and_the_error() {
    let world = world().start().await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let mut expected = Vec::new();
    for (username, tenant) in [("ada", Some("t-1")), ("bob", None)] {
        let account = world.connect("x", username).await;
        let path = format!("/social-accounts/{account}");
        let patch = json!({ "tenant_id": tenant });
        assert_eq!(world.call(Method::PATCH, &path, Some(&patch)).await.0, StatusCode::OK);
        world.revoke_grants("x", username).await;
        let health = world.get(&format!("{path}/health")).await;
        let members = json!({ "orgId": world.owner.org, "tenantId": tenant, "error": health["detail"] });
        assert!(members["error"].as_str().is_some_and(|error| !error.is_empty()), "{health}");
        expected.push(with(subject(&account, "x", username), members));
    }
    assert_eq!(names(&world, &webhook).await, ["account.reauth_required", "account.reauth_required"]);
    let mut reported = data(&receiver, "account.reauth_required", 2).await;
    reported.sort_by_key(|data| data["username"].to_string());
    assert_eq!(reported, expected);
}

/// Returns a part of the stream: the events and the next cursor.
async fn stream(world: &World, query: &str, after: Option<&str>) -> (Vec<Value>, String) {
    let after = after.map(|cursor| format!("&after={cursor}")).unwrap_or_default();
    let page = world.get(&format!("/events?{query}{after}")).await;
    let next = page["next_cursor"].as_str().unwrap_or_else(|| panic!("a stream has no end: {page}"));
    (page["data"].as_array().unwrap().clone(), next.to_owned())
}

#[tokio::test]
async fn events_are_kept_without_a_webhook_and_read_in_order() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let (none, start) = stream(&world, "", None).await;
    assert_eq!(none, Vec::<Value>::new());
    let one = world.post(json!({ "content": "One", "accounts": [ada] })).await;
    world.ended(&one).await;
    let (first, next) = stream(&world, "", Some(&start)).await;
    let names: Vec<_> = first.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["post.target.published", "post.published"], "{first:#?}");
    assert!(first.iter().all(|event| event["data"]["postId"] == one["id"]), "{first:#?}");
    assert_eq!(stream(&world, "", None).await.0, first, "from the beginning");

    // Nothing new, and the cursor still leads on; also one that was filtered to nothing.
    let (nothing, next) = stream(&world, "", Some(&next)).await;
    let (filtered, other) = stream(&world, "types=import.failed", None).await;
    assert_eq!((nothing.len(), filtered.len()), (0, 0));
    let two = world.post(json!({ "content": "No #sandbox-400", "accounts": [ada] })).await;
    world.ended(&two).await;
    for after in [next, other] {
        let (second, _) = stream(&world, "", Some(&after)).await;
        assert!(
            second.len() == 2 && second.iter().all(|event| event["data"]["postId"] == two["id"]),
            "{second:#?}"
        );
    }

    // Page by page, and by name.
    let (mut walked, mut after) = (Vec::new(), start);
    loop {
        let (page, next) = stream(&world, "limit=1", Some(&after)).await;
        after = next;
        let [event] = &page[..] else { break };
        walked.push(event["event"].clone());
    }
    assert_eq!(walked, ["post.target.published", "post.published", "post.target.failed", "post.error"]);
    let (some, _) = stream(&world, "types=post.error,post.published", None).await;
    let names: Vec<_> = some.iter().map(|event| event["event"].clone()).collect();
    assert_eq!(names, ["post.published", "post.error"]);

    for (query, path, code) in [("types=post.gone", "types", "invalid_enum_value"), ("after=x", "", "")] {
        let (status, problem) = world.call(Method::GET, &format!("/events?{query}"), None).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{problem}");
        match path {
            "" => assert_eq!(problem["code"], "invalid_cursor"),
            path => assert_eq!(
                (&problem["errors"][0]["path"], &problem["errors"][0]["code"]),
                (&json!([path]), &json!(code))
            ),
        }
    }
}

#[tokio::test]
async fn a_listed_event_is_what_its_webhook_carried() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let post = world.post(json!({ "content": "Both ways ünd é", "accounts": ["ada"] })).await;
    world.ended(&post).await;
    let delivered = receiver.events(&["post.published", "post.target.published"]).await;
    let response = world.http.get(format!("{}/events", world.base)).bearer_auth(&world.key);
    let text = response.send().await.unwrap().text().await.unwrap();
    let page: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(page["data"].as_array().unwrap().len(), delivered.len(), "{page:#}");
    for delivery in delivered {
        let event = page["data"].as_array().unwrap().iter();
        let event = event.clone().find(|event| event["id"] == delivery.header("x-fanfare-event-id")).unwrap();
        assert_eq!(with(delivery.json(), json!({ "id": event["id"] })), *event);
        let body = String::from_utf8(delivery.body.clone()).unwrap();
        let (_, data) = body.split_once(r#""data":"#).unwrap();
        let data = data.strip_suffix('}').unwrap();
        assert!(text.contains(&format!(r#""data":{data}"#)), "{data} in {text}");
    }
}
