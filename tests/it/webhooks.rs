//! Webhook endpoints and their deliveries: signatures, retries, test events and redelivery.

use crate::{
    api::{fail, key, request},
    replay, world,
};
use domain::{Mode, Owner, event::EventName, request_proof, scope::Scope};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    ops::Range,
    time::{Duration, Instant},
};
use store::{
    upkeep::vault::{self, Opener, PrivateKey},
    webhooks::events::{self, NewEvent},
};
use temporalio_client::{WorkflowGetResultOptions, WorkflowStartOptions};
use tests::{Receiver, World, login::joined, now};
use workflows::{WorkerRequest, activities::RevealSecretInput, queue, worker_request};

#[tokio::test]
async fn a_delivery_verifies_against_the_raw_body() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let secret = webhook["signing_secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_"));
    let post = world.post(json!({ "content": "Signed", "accounts": ["ada"] })).await;
    let deliveries = receiver.events(&["post.target.published", "post.published"]).await;
    for delivery in &deliveries {
        assert_eq!(delivery.header("content-type"), "application/json");
        assert_eq!(delivery.header("user-agent"), "Fanfare-Webhooks/1.0");
        let at = delivery.signed(secret).unwrap();
        assert!((now().timestamp() - at).abs() < 300);
    }
    let published = deliveries.iter().find(|delivery| delivery.event() == "post.published").unwrap().json();
    assert_eq!(published["data"]["postId"], post["id"]);
    assert_eq!(published["data"]["orgId"], json!(world.owner.org));
    let entry = &published["data"]["socialAccounts"][0];
    assert_eq!((&entry["accountId"], &entry["network"]), (&json!(account), &json!("x")));
    assert_eq!(entry["username"], "ada");
    assert!(entry["platformPostId"].is_string());
    assert_eq!(entry.get("error"), None);
}

#[tokio::test]
async fn the_deliveries_of_a_post_are_shown_to_who_may_see_webhooks() {
    let world = world().start().await;
    joined(&world, "x", "ada", json!({ "tenant_id": "a" })).await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let post = world.ended(&world.post(json!({ "content": "Told", "accounts": ["ada"] })).await).await;
    receiver.events(&["post.published"]).await;
    let path = format!("/posts/{}/timeline", post["id"].as_str().unwrap());
    let bound = json!({ "name": "Bound", "scopes": ["*"], "tenant_id": "a" });
    let bound = world.call(Method::POST, "/api-keys", Some(&bound)).await.1["key"].clone();
    let own = [&[Scope::PostsRead, Scope::WebhooksRead][..], &[Scope::PostsRead]];
    let [both, posts] = [key(&world, world.owner, own[0]).await, key(&world, world.owner, own[1]).await];
    for (key, are_shown) in [(both.as_str(), true), (posts.as_str(), false), (bound.as_str().unwrap(), false)]
    {
        let timeline = world.http.get(format!("{}{path}", world.base)).bearer_auth(key).send().await.unwrap();
        let timeline: Value = timeline.json().await.unwrap();
        let kinds: Vec<_> = timeline["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["kind"].as_str().unwrap())
            .collect();
        assert!(kinds.contains(&"published"), "{timeline:#}");
        assert_eq!(kinds.contains(&"delivery"), are_shown, "{timeline:#}");
        let steps = timeline["next"].as_array().unwrap();
        assert!(are_shown || steps.iter().all(|step| step["action"] != "deliver"), "{timeline:#}");
    }
}

#[tokio::test]
async fn a_failed_delivery_is_retried_with_the_same_body_and_event_id() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    let body = json!({ "url": receiver.url, "events": ["post.published"] });
    world.call(Method::POST, "/webhooks", Some(&body)).await;
    receiver.answer([500, 404]);
    world.post(json!({ "content": "Again", "accounts": ["ada"] })).await;
    let deliveries = receiver.events(&["post.published", "post.published", "post.published"]).await;
    assert_eq!(deliveries.len(), 3);
    for delivery in &deliveries[1..] {
        assert_eq!(delivery.body, deliveries[0].body);
        assert_eq!(delivery.header("x-fanfare-event-id"), deliveries[0].header("x-fanfare-event-id"));
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    let body = json!({ "url": receiver.url, "events": ["post.published"] });
    world.call(Method::POST, "/webhooks", Some(&body)).await;
    receiver.answer([302, 307]);
    world.post(json!({ "content": "Not elsewhere", "accounts": ["ada"] })).await;
    let deliveries = receiver.events(&["post.published", "post.published", "post.published"]).await;
    let paths: Vec<_> = deliveries.iter().map(|delivery| delivery.path.as_str()).collect();
    assert_eq!(paths, ["/hook", "/hook", "/hook"], "each is an attempt of its own");
}

#[tokio::test]
async fn a_deleted_endpoint_receives_no_events() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let (gone, kept) = (Receiver::start().await, Receiver::start().await);
    let webhook = world.subscribe(&gone.url).await;
    world.subscribe(&kept.url).await;
    let path = format!("/webhooks/{}", webhook["id"].as_str().unwrap());
    let (status, body) = world.call(Method::DELETE, &path, None).await;
    assert_eq!((status.as_u16(), &body["deleted"]), (200, &Value::Bool(true)));
    world.post(json!({ "content": "To one only", "accounts": ["ada"] })).await;
    kept.events(&["post.target.published", "post.published"]).await;
    assert!(gone.all().is_empty());
}

/// Returns the path of an endpoint.
pub(crate) fn at(webhook: &Value) -> String {
    format!("/webhooks/{}", webhook["id"].as_str().unwrap())
}

/// Waits until the deliveries to an endpoint satisfy `right`, and returns them.
pub(crate) async fn deliveries(
    world: &World,
    webhook: &Value,
    right: impl Fn(&[Value]) -> bool,
) -> Vec<Value> {
    let path = format!("{}/deliveries", at(webhook));
    let is_right = |found: &Value| right(found["data"].as_array().unwrap());
    world.until_at(&path, "deliveries", is_right).await["data"].as_array().unwrap().clone()
}

/// Appends numbered events in one transaction, for all endpoints.
pub(crate) async fn append(world: &World, numbers: Range<usize>) {
    let mut tx = ::store::begin(&world.db).await.unwrap();
    append_in(&mut tx, world.owner, numbers).await;
    tx.commit().await.unwrap();
}

/// Appends numbered events in a transaction, for all endpoints.
pub(crate) async fn append_in(tx: &mut ::store::Transaction, owner: Owner, numbers: Range<usize>) {
    let subscribers = events::subscribers(&mut *tx, owner).await.unwrap();
    for number in numbers {
        let data = json!({ "orgId": owner.org, "number": number });
        let new =
            NewEvent { name: EventName::AccountConnected, post: None, target: None, account: None, data };
        events::append_for(&mut *tx, owner, now(), &new, &subscribers).await.unwrap();
    }
}

#[tokio::test]
async fn updating_an_endpoint_changes_only_the_fields_sent() {
    let world = world().start().await;
    let receiver = Receiver::start().await;
    let body = json!({ "url": receiver.url, "events": ["post.error"], "description": "Mine" });
    let (_, mut known) = world.call(Method::POST, "/webhooks", Some(&body)).await;
    let known = known.as_object_mut().unwrap();
    known.remove("signing_secret");
    let webhook = Value::Object(known.clone());
    for (change, field, expected) in [
        (json!({ "description": null }), "description", Value::Null),
        (json!({ "description": "Ours" }), "description", json!("Ours")),
        (json!({ "is_active": false }), "is_active", json!(false)),
        (json!({ "events": ["*", "*"] }), "events", json!(["*"])),
        (json!({ "url": "https://8.8.8.8/hook" }), "url", json!("https://8.8.8.8/hook")),
        (json!({ "unknown": 1 }), "is_active", json!(false)),
    ] {
        let (status, changed) = world.call(Method::PATCH, &at(&webhook), Some(&change)).await;
        assert_eq!((status.as_u16(), &changed[field]), (200, &expected), "{change}: {changed}");
        assert!(changed["updated_at"].as_str() >= known["updated_at"].as_str());
        match expected {
            Value::Null => known.remove(field),
            expected => known.insert(field.to_owned(), expected),
        };
        known.insert("updated_at".to_owned(), changed["updated_at"].clone());
        assert_eq!(changed, Value::Object(known.clone()), "{change}");
        assert_eq!(world.get(&at(&webhook)).await, changed);
    }
}

#[tokio::test]
async fn an_invalid_update_of_an_endpoint_is_reported_and_changes_nothing() {
    let world = world().start().await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let known = world.get(&at(&webhook)).await;
    for (change, issues) in [
        (json!({ "signing_secret": "whsec_mine" }), json!([[["signing_secret"], "custom"]])),
        (json!({ "signing_secret": null }), json!([[["signing_secret"], "custom"]])),
        (
            json!({ "url": null, "events": null, "is_active": null }),
            json!([[["events"], "invalid_type"], [["is_active"], "invalid_type"], [["url"], "invalid_type"]]),
        ),
        (
            json!({ "url": 7, "events": "*", "is_active": "yes", "description": [] }),
            json!([
                [["description"], "invalid_type"],
                [["events"], "invalid_type"],
                [["is_active"], "invalid_type"],
                [["url"], "invalid_type"],
            ]),
        ),
        (json!({ "events": [] }), json!([[["events"], "too_small"]])),
        (json!({ "events": ["post.gone"] }), json!([[["events", 0], "invalid_enum_value"]])),
        (json!({ "url": "nowhere" }), json!([[["url"], "invalid_string"]])),
        (json!({ "url": "https://10.0.0.1/" }), json!([[["url"], "invalid_string"]])),
        (json!({ "url": "http://8.8.8.8/" }), json!([[["url"], "invalid_string"]])),
        (json!({ "description": "a\u{0}" }), json!([[["description"], "custom"]])),
    ] {
        let patch = request(&world, Method::PATCH, &at(&webhook)).json(&change);
        let (_, problem) = fail(patch, 400, "invalid_request").await;
        let reported = problem["errors"].as_array().unwrap().iter();
        let mut reported: Vec<_> = reported.map(|issue| json!([issue["path"], issue["code"]])).collect();
        reported.sort_by_key(Value::to_string);
        assert_eq!(Value::Array(reported), issues, "{change}");
    }
    assert_eq!(world.get(&at(&webhook)).await, known);

    let other = key(&world, Owner { mode: Mode::Live, ..world.owner }, &[Scope::All]).await;
    let reader = key(&world, world.owner, &[Scope::WebhooksRead]).await;
    let missing = format!("/webhooks/{}", uuid::Uuid::now_v7());
    let body = json!({ "is_active": false });
    for (method, suffix) in [(Method::PATCH, ""), (Method::POST, "/test")] {
        let url = format!("{}{}{suffix}", world.base, at(&webhook));
        let call = |key: &str| world.http.request(method.clone(), &url).bearer_auth(key).json(&body);
        fail(call(&other), 404, "not_found").await;
        fail(call(&reader), 403, "insufficient_scope").await;
        fail(request(&world, method, &format!("{missing}{suffix}")).json(&body), 404, "not_found").await;
    }
    assert_eq!(world.get(&at(&webhook)).await, known);
    assert!(receiver.all().is_empty());
}

#[tokio::test]
async fn a_test_sends_a_signed_sample_once_and_reports_the_response() {
    let world = world().start().await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let test = format!("{}/test", at(&webhook));
    let secret = webhook["signing_secret"].as_str().unwrap();
    receiver.answer([204, 302, 500]);
    for (number, (status, delivered)) in [(204, true), (302, false), (500, false)].into_iter().enumerate() {
        let (called, reported) = world.call(Method::POST, &test, None).await;
        let expected = json!({
            "event": "webhook.test", "delivered": delivered, "response_status": status, "signed": true,
        });
        assert_eq!((called.as_u16(), &reported), (200, &expected));
        let sent = receiver.all();
        assert_eq!(sent.len(), number + 1, "sent once, never retried");
        let sample = &sent[number];
        assert_eq!(sample.header("content-type"), "application/json");
        assert_eq!(sample.header("user-agent"), "Fanfare-Webhooks/1.0");
        assert!(sample.header("x-fanfare-event-id").parse::<uuid::Uuid>().is_ok());
        assert!(sample.signed(secret).is_some());
        let body = sample.json();
        assert_eq!(body["event"], "webhook.test");
        assert!(body["timestamp"].as_str().unwrap().ends_with('Z'));
        assert_eq!(body["data"], json!({ "orgId": world.owner.org, "webhookId": webhook["id"] }));
    }
    // A paused endpoint can be tested before it is resumed.
    world.call(Method::PATCH, &at(&webhook), Some(&json!({ "is_active": false }))).await;
    let (_, reported) = world.call(Method::POST, &test, None).await;
    assert_eq!(reported["delivered"], true);

    let nobody =
        world.call(Method::PATCH, &at(&webhook), Some(&json!({ "url": "http://127.0.0.1:1/" }))).await;
    assert_eq!(nobody.0, 200);
    let (called, reported) = world.call(Method::POST, &test, None).await;
    assert_eq!(
        (called.as_u16(), &reported["delivered"], &reported["response_status"]),
        (200, &json!(false), &json!(0))
    );
}

#[tokio::test]
async fn deliveries_are_listed_filtered_and_paged() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let (receiver, silent) = (Receiver::start().await, Receiver::start().await);
    let webhook = world.subscribe(&receiver.url).await;
    let body = json!({ "url": silent.url, "events": ["post.error"] });
    let (_, other) = world.call(Method::POST, "/webhooks", Some(&body)).await;
    world.post(json!({ "content": "One", "accounts": ["ada"] })).await;
    let all = deliveries(&world, &webhook, |all| {
        all.len() == 2 && all.iter().all(|delivery| delivery["status"] == "delivered")
    })
    .await;
    for delivery in &all {
        assert_eq!((&delivery["attempts"], &delivery["response_status"]), (&json!(1), &json!(200)));
        assert_eq!((&delivery["error"], &delivery["next_attempt_at"]), (&Value::Null, &Value::Null));
        assert!(delivery["delivered_at"].as_str() >= delivery["created_at"].as_str());
    }
    assert_eq!(world.get(&format!("{}/deliveries", at(&other))).await["data"], json!([]));

    let path = format!("{}/deliveries", at(&webhook));
    let page = world.get(&format!("{path}?limit=1")).await;
    assert_eq!(page["data"], json!([all[0]]));
    let cursor = page["next_cursor"].as_str().unwrap();
    let last = world.get(&format!("{path}?limit=1&cursor={cursor}")).await;
    assert_eq!((&last["data"], &last["next_cursor"]), (&json!([all[1]]), &Value::Null));
    let found = world.get(&format!("{path}?event=post.published&status=delivered")).await;
    assert_eq!(found["data"].as_array().unwrap().len(), 1);
    assert_eq!(world.get(&format!("{path}?status=failed")).await["data"], json!([]));

    let elsewhere = format!("{}/deliveries?cursor={cursor}", at(&other));
    fail(request(&world, Method::GET, &elsewhere), 400, "invalid_cursor").await;
    fail(request(&world, Method::GET, &format!("/posts?cursor={cursor}")), 400, "invalid_cursor").await;
    for query in ["status=gone", "event=*", "event=webhook.test", "limit=ten", "status=failed&status=failed"]
    {
        fail(request(&world, Method::GET, &format!("{path}?{query}")), 400, "invalid_request").await;
    }
    let live = key(&world, Owner { mode: Mode::Live, ..world.owner }, &[Scope::All]).await;
    fail(world.http.get(format!("{}{path}", world.base)).bearer_auth(live), 404, "not_found").await;
}

#[tokio::test]
async fn a_delivery_can_be_redelivered_repeatedly() {
    let world = world().pace(0.001).start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    let body = json!({ "url": receiver.url, "events": ["post.published"] });
    let (_, webhook) = world.call(Method::POST, "/webhooks", Some(&body)).await;
    receiver.answer([500; 8]);
    world.post(json!({ "content": "Again and again", "accounts": ["ada"] })).await;
    let given_up = deliveries(&world, &webhook, |all| all.iter().any(|one| one["status"] == "failed")).await;
    assert_eq!((&given_up[0]["attempts"], &given_up[0]["response_status"]), (&json!(8), &json!(500)));
    let id = given_up[0]["id"].as_str().unwrap();
    let again = format!("{}/deliveries/{id}/redeliver", at(&webhook));

    // A new retry budget: it fails twice more before the endpoint accepts it.
    receiver.answer([503, 429]);
    for round in 0..3_usize {
        let (status, queued) = world.call(Method::POST, &again, None).await;
        assert_eq!(
            (status.as_u16(), &queued["id"], &queued["attempts"]),
            (202, &json!(id), &json!(0)),
            "{queued}"
        );
        assert_eq!((&queued["status"], &queued["response_status"]), (&json!("pending"), &Value::Null));
        let done = deliveries(&world, &webhook, |all| all[0]["status"] == "delivered").await;
        assert_eq!(done[0]["attempts"], json!(if round == 0 { 3 } else { 1 }));
    }
    let sent = receiver.all();
    assert_eq!(sent.len(), 8 + 3 + 1 + 1);
    for delivery in &sent {
        assert_eq!(delivery.body, sent[0].body);
        assert_eq!(delivery.header("x-fanfare-event-id"), sent[0].header("x-fanfare-event-id"));
    }

    let other = world.subscribe("https://8.8.8.8/").await;
    let (known, nobody) = (at(&webhook), uuid::Uuid::now_v7());
    for path in [
        format!("{}/deliveries/{id}/redeliver", at(&other)),
        format!("{known}/deliveries/{nobody}/redeliver"),
        format!("{known}/deliveries/7/redeliver"),
        format!("/webhooks/{nobody}/deliveries/{id}/redeliver"),
    ] {
        fail(request(&world, Method::POST, &path), 404, "not_found").await;
    }
    let reader = key(&world, world.owner, &[Scope::WebhooksRead]).await;
    fail(world.http.post(format!("{}{again}", world.base)).bearer_auth(reader), 403, "insufficient_scope")
        .await;
    world.call(Method::PATCH, &known, Some(&json!({ "is_active": false }))).await;
    fail(request(&world, Method::POST, &again), 409, "conflict").await;
    world.call(Method::DELETE, &known, None).await;
    fail(request(&world, Method::POST, &again), 404, "not_found").await;
    assert_eq!(receiver.all().len(), 13);
}

/// Measures a time, since the contract promises one. A slow machine only makes the test wait longer.
#[tokio::test]
async fn an_endpoint_has_thirty_seconds_to_answer() {
    let world = world().pace(1.0).start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    let body = json!({ "url": receiver.url, "events": ["post.published"] });
    let (_, webhook) = world.call(Method::POST, "/webhooks", Some(&body)).await;
    receiver.hold();
    world.post(json!({ "content": "Late", "accounts": ["ada"] })).await;
    receiver.events(&["post.published"]).await;
    let arrived = Instant::now();
    let failed = deliveries(&world, &webhook, |all| all.iter().any(|one| one["error"].is_string())).await;
    assert!(arrived.elapsed() > Duration::from_secs(29), "{:?}", arrived.elapsed());
    assert_eq!(failed[0]["error"], "no answer within 30 s");
    assert_eq!((&failed[0]["attempts"], &failed[0]["response_status"]), (&json!(1), &Value::Null));
    receiver.release();
    world.call(Method::DELETE, &at(&webhook), None).await;
}

#[tokio::test]
async fn a_waiting_delivery_is_attempted_now_on_demand_and_ends_with_its_endpoint() {
    // In real time, the second attempt is a minute away.
    let world = world().pace(1.0).start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    let body = json!({ "url": receiver.url, "events": ["post.published"] });
    let (_, webhook) = world.call(Method::POST, "/webhooks", Some(&body)).await;
    receiver.answer([500, 503]);
    let post = world.post(json!({ "content": "Wait", "accounts": ["ada"] })).await;
    let waits = |attempts: u64| {
        move |all: &[Value]| {
            all.iter().any(|one| one["status"] == "pending" && one["attempts"].as_u64() == Some(attempts))
        }
    };
    let waiting = deliveries(&world, &webhook, waits(1)).await;
    assert!(waiting[0]["next_attempt_at"].is_string());
    let path = format!("{}/deliveries/{}", at(&webhook), waiting[0]["id"].as_str().unwrap());
    let again = format!("{path}/redeliver");
    let (status, hurried) = world.call(Method::POST, &again, None).await;
    assert_eq!((status, &hurried["attempts"]), (StatusCode::ACCEPTED, &json!(1)), "{hurried}");
    deliveries(&world, &webhook, waits(2)).await;
    world.call(Method::POST, &again, None).await;
    deliveries(&world, &webhook, |all| all.iter().any(|one| one["status"] == "delivered")).await;

    let details = world.get(&path).await;
    assert_eq!((&details["attempts"], &details["post_id"]), (&json!(3), &post["id"]), "{details:#}");
    let sent = receiver.all();
    assert_eq!(sent.len(), 3);
    assert_eq!(details["payload"], sent[0].json());
    assert_eq!(details["event_id"].as_str().unwrap(), sent[2].header("x-fanfare-event-id"));
    let responses = details["responses"].as_array().unwrap();
    let statuses: Vec<_> = responses.iter().map(|response| response["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [500, 503, 200], "{details:#}");
    assert!(responses.iter().all(|response| response["at"].is_string() && response["duration_ms"].is_u64()));
    assert!(responses[0]["error"].as_str().unwrap().contains("answered 500"), "{details:#}");
    assert_eq!(responses[2]["error"], Value::Null);
    // The answers of an earlier round are kept.
    world.call(Method::POST, &again, None).await;
    let repeated = |found: &Value| found["responses"].as_array().unwrap().len() == 4;
    world.until_at(&path, "another answer", repeated).await;
    fail(request(&world, Method::GET, &path.replace("/deliveries/", "/deliveries/0")), 404, "not_found")
        .await;

    receiver.answer([500]);
    world.post(json!({ "content": "Another", "accounts": ["ada"] })).await;
    deliveries(&world, &webhook, waits(1)).await;
    world.call(Method::DELETE, &at(&webhook), None).await;
    fail(request(&world, Method::GET, &format!("{}/deliveries", at(&webhook))), 404, "not_found").await;
    fail(request(&world, Method::GET, &path), 404, "not_found").await;
    assert_eq!(receiver.all().len(), 5);
}

#[tokio::test]
async fn events_during_a_pause_are_delivered_on_request_only() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let (receiver, witness) = (Receiver::start().await, Receiver::start().await);
    let body = json!({ "url": receiver.url, "events": ["post.published"] });
    let (_, webhook) = world.call(Method::POST, "/webhooks", Some(&body)).await;
    world.subscribe(&witness.url).await;
    world.call(Method::PATCH, &at(&webhook), Some(&json!({ "is_active": false }))).await;
    world.post(json!({ "content": "Unheard", "accounts": ["ada"] })).await;
    witness.events(&["post.published"]).await;
    world.call(Method::PATCH, &at(&webhook), Some(&json!({ "is_active": true }))).await;
    world.post(json!({ "content": "Heard", "accounts": ["ada"] })).await;
    receiver.events(&["post.published"]).await;
    assert_eq!(receiver.all().len(), 1);
    let kept = deliveries(&world, &webhook, |all| !all.is_empty()).await;
    assert_eq!(kept.len(), 2, "{kept:#?}");
    let missed = &kept[1];
    assert_eq!((&missed["status"], &missed["error"]), (&json!("failed"), &json!("endpoint paused")));
    assert_eq!((&missed["attempts"], &missed["next_attempt_at"]), (&json!(0), &Value::Null));
    let path = format!("{}/deliveries/{}/redeliver", at(&webhook), missed["id"].as_str().unwrap());
    assert_eq!(world.call(Method::POST, &path, None).await.0, StatusCode::ACCEPTED);
    receiver.until("the missed event", |all| all.len() == 2).await;
}

#[tokio::test]
async fn an_unresponsive_endpoint_delays_nobody() {
    const EVENTS: usize = 100;
    let world = world().own().start().await;
    world.connect("x", "ada").await;
    let (healthy, dead) = (Receiver::start().await, Receiver::start().await);
    dead.hold();
    world.subscribe(&healthy.url).await;
    let webhook = world.subscribe(&dead.url).await;
    let began = Instant::now();
    append(&world, 0..EVENTS).await;

    healthy.until("every event", |all| all.len() >= EVENTS).await;
    let post = world.post(json!({ "content": "Meanwhile", "accounts": ["ada"] })).await;
    assert_eq!(world.ended(&post).await["status"], "published");
    healthy.events(&["post.published"]).await;
    // One request waits at the dead endpoint, and one more for each second without an answer.
    let (most, limit) = (dead.most() as u64, 1 + began.elapsed().as_secs());
    assert!((1..=limit).contains(&most), "{most} requests waited for the dead endpoint, at most {limit} may");
    let open = deliveries(&world, &webhook, |all| !all.is_empty()).await;
    assert!(open.iter().all(|one| one["delivered_at"].is_null()), "{open:#?}");

    // Waiting has cost no attempt, and no event is lost.
    dead.release();
    dead.until("every event at last", |all| {
        let seen: HashSet<_> = all.iter().map(|one| one.header("x-fanfare-event-id")).collect();
        seen.len() >= EVENTS + 2
    })
    .await;
}

/// Anybody who reaches Temporal can start the workflow that reveals a signing secret, with a key of their own.
#[tokio::test]
async fn a_signing_secret_is_revealed_to_the_api_only() {
    let world = world().start().await;
    let webhook = world.subscribe("https://8.8.8.8/").await;
    let id = webhook["id"].as_str().unwrap();
    let opener = Opener::new((vault::KeyId(0), PrivateKey::generate()), []);
    let request = RevealSecretInput {
        webhook: id.parse().unwrap(),
        owner: world.owner,
        recipient: opener.sealer().to_string(),
        proof: String::new(),
    };
    // A proof for another key pair, as a history shows it.
    let key = request_proof::Key::derive(&[0; 32]);
    let other = RevealSecretInput { recipient: "another".to_owned(), ..request.clone() }.proven(&key);
    let replayed = RevealSecretInput { proof: other.proof.clone(), ..request.clone() };
    let guessed = request.clone().proven(&request_proof::Key::derive(&[1; 32]));
    let client = replay::client().await;
    let queue = queue::webhooks(world.variable("FANFARE_TASK_QUEUE"), world.owner.mode);
    let ask = async |request: RevealSecretInput| {
        let workflow = worker_request::id(uuid::Uuid::new_v4());
        let options = WorkflowStartOptions::new(&queue, workflow).build();
        let started = client.start_workflow(WorkerRequest::run, request.into(), options).await.unwrap();
        started.get_result(WorkflowGetResultOptions::default()).await
    };
    for forged in [request.clone(), replayed, guessed] {
        let error = ask(forged).await.unwrap_err();
        assert!(format!("{error:?}").contains("the API did not ask for this"), "{error:?}");
    }
    // The tests have the API's secret, which shows that nothing else was wrong with the requests.
    let worker_request::Output::RevealSecret(Some(sealed)) = ask(request.proven(&key)).await.unwrap() else {
        panic!("not revealed");
    };
    let aad = vault::aad_webhook_secret(world.owner, id.parse().unwrap());
    assert_eq!(opener.open(&sealed, &aad).unwrap(), webhook["signing_secret"].as_str().unwrap().as_bytes());
}
