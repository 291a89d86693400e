//! Webhooks are signed, repeated, and told the truth.

use crate::world;
use serde_json::{Value, json};
use tests::Receiver;

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
        let signature = delivery.header("x-fanfare-signature");
        let at: i64 = signature.split(',').next().unwrap().trim_start_matches("t=").parse().unwrap();
        assert_eq!(signature, domain::signature::sign(secret, at, &delivery.body));
        assert!((tests::now().timestamp() - at).abs() < 300);
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
async fn a_failed_delivery_is_repeated_with_the_same_body_and_event_id() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    let body = json!({ "url": receiver.url, "events": ["post.published"] });
    world.call(reqwest::Method::POST, "/webhooks", Some(&body)).await;
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
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    let body = json!({ "url": receiver.url, "events": ["post.published"] });
    world.call(reqwest::Method::POST, "/webhooks", Some(&body)).await;
    receiver.answer([302, 307]);
    world.post(json!({ "content": "Not elsewhere", "accounts": ["ada"] })).await;
    let deliveries = receiver.events(&["post.published", "post.published", "post.published"]).await;
    let paths: Vec<_> = deliveries.iter().map(|delivery| delivery.path.as_str()).collect();
    assert_eq!(paths, ["/hook", "/hook", "/hook"], "each is an attempt of its own");
}

#[tokio::test]
async fn a_deleted_endpoint_gets_nothing_more() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let (gone, kept) = (Receiver::start().await, Receiver::start().await);
    let webhook = world.subscribe(&gone.url).await;
    world.subscribe(&kept.url).await;
    let path = format!("/webhooks/{}", webhook["id"].as_str().unwrap());
    let (status, body) = world.call(reqwest::Method::DELETE, &path, None).await;
    assert_eq!((status.as_u16(), &body["deleted"]), (200, &Value::Bool(true)));
    world.post(json!({ "content": "To one only", "accounts": ["ada"] })).await;
    kept.events(&["post.target.published", "post.published"]).await;
    assert!(gone.all().is_empty());
}
