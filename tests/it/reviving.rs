//! A target that failed for good is published after all when its user asks for it, and never twice.

use crate::{
    api::{fail, key, request},
    world,
};
use domain::scope::Scope;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tests::{Delivery, Receiver, World, login::joined};

fn path(post: &Value) -> String {
    format!("/posts/{}/retry", post["id"].as_str().unwrap())
}

async fn retry(world: &World, post: &Value) -> (StatusCode, Value) {
    world.call(Method::POST, &path(post), None).await
}

/// Creates a post that ends `failed`, and returns it.
async fn dead(world: &World, content: &str, account: &str) -> Value {
    let post = world.post(json!({ "content": content, "accounts": [account] })).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["targets"][0]["status"], "dead", "{ended:#}");
    ended
}

/// Checks that no event of a subject has the name and the round of another one, and that the last round is told as
/// the post shows it.
fn assert_told_once(deliveries: Vec<Delivery>, post: &Value) {
    let mut told = BTreeSet::new();
    for body in deliveries.iter().map(Delivery::json) {
        let (event, data) = (body["event"].as_str().unwrap().to_owned(), &body["data"]);
        let round = data["round"].as_u64();
        assert!(told.insert((event, round)), "twice: {body:#}");
    }
    let last = deliveries.iter().map(Delivery::json).rfind(|body| body["event"] == "post.retried").unwrap();
    let target = &post["targets"][0];
    let mut account = json!({
        "accountId": target["social_account_id"], "network": target["platform"], "username": "ada",
    });
    match target["status"].as_str().unwrap() {
        "published" => account["platformPostId"] = target["platform_post_id"].clone(),
        _ => account["error"] = target["error_message"].clone(),
    }
    let rounds: BTreeSet<_> = told.iter().filter_map(|(_, round)| *round).collect();
    let expected = json!({
        "postId": post["id"], "orgId": last["data"]["orgId"], "round": rounds.last(), "outcome": post["status"],
        "socialAccounts": [account],
    });
    assert_eq!(last["data"], expected);
    let of_rounds = |name: &str| told.iter().filter(|(event, _)| event.starts_with(name)).count();
    assert_eq!((of_rounds("post.target."), of_rounds("post.retried")), (rounds.len() + 1, rounds.len()));
    assert_eq!(of_rounds("post.error") + of_rounds("post.published"), 1, "the first outcome: {told:?}");
}

#[tokio::test]
async fn a_dead_post_that_is_retried_starts_over() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let post = dead(&world, "Refused once #sandbox-400x1", "ada").await;
    let (status, retried) = retry(&world, &post).await;
    assert_eq!((status, &retried["status"]), (StatusCode::ACCEPTED, &json!("publishing")), "{retried}");
    let target = &retried["targets"][0];
    assert_eq!((&target["attempts"], &target["error_code"]), (&json!(0), &Value::Null), "{target}");
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    assert_eq!(
        (&ended["targets"][0]["attempts"], &ended["targets"][0]["error_message"]),
        (&json!(1), &Value::Null)
    );
    assert!(ended["published_at"].is_string());
    assert_eq!(world.accepted("x", "ada").await, 1);
    let events = ["post.target.failed", "post.error", "post.target.published", "post.retried"];
    assert_told_once(receiver.events(&events).await, &ended);
    let timeline = world.get(&format!("/posts/{}/timeline", post["id"].as_str().unwrap())).await;
    let entries = timeline["data"].as_array().unwrap();
    let retries: Vec<_> = entries.iter().filter(|entry| entry["kind"] == "retry").collect();
    assert_eq!(retries.len(), 1, "{timeline:#}");
    assert_eq!(retries[0]["target_id"], ended["targets"][0]["id"]);
    assert_eq!(retry(&world, &post).await.0, StatusCode::CONFLICT);
}

#[tokio::test]
async fn a_retried_post_that_is_refused_again_fails_again() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let post = dead(&world, "Refused #sandbox-400", "ada").await;
    assert_eq!(retry(&world, &post).await.0, StatusCode::ACCEPTED);
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "failed", "{ended:#}");
    assert_eq!(ended["targets"][0]["error_code"], "rejected_400");
    let events = ["post.target.failed", "post.error", "post.target.failed", "post.retried"];
    assert_told_once(receiver.events(&events).await, &ended);
    assert_eq!(retry(&world, &post).await.0, StatusCode::ACCEPTED);
    let events = [&events[..], &["post.target.failed", "post.retried"]].concat();
    assert_told_once(receiver.events(&events).await, &world.ended(&post).await);
    assert_eq!(world.accepted("x", "ada").await, 0);
}

/// X's window is of fifteen minutes; a user who retries wants an attempt now.
#[tokio::test]
async fn a_dead_target_whose_account_rests_is_retried_at_once() {
    let mut world = world().pace(1.0).start().await;
    world.connect("x", "ada").await;
    let post = dead(&world, "Refused once #sandbox-400x1", "ada").await;
    let throttled = world.post(json!({ "content": "Too much #sandbox-429", "accounts": ["ada"] })).await;
    let waits = |post: &Value| post["targets"][0]["error_code"] == "rate_limited";
    world.until(throttled["id"].as_str().unwrap(), "it is throttled", waits).await;
    assert_eq!(retry(&world, &post).await.0, StatusCode::ACCEPTED);
    assert_eq!(world.ended(&post).await["status"], "published");
    world.leave_post(&throttled, "it is retried for a day");
}

/// The platform accepts the post, its reply is lost, and its lists can't be read: the target ends in doubt.
#[tokio::test]
async fn a_retried_target_that_is_live_is_found_and_not_published_again() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    world.set_sandbox(json!({ "refusals": { "/2/users/": 403 } })).await;
    let post = dead(&world, "Heard? #sandbox-lost-reply", "ada").await;
    let message = post["targets"][0]["error_message"].as_str().unwrap();
    assert!(message.contains("it may be live"), "{message}");
    assert_eq!(world.accepted("x", "ada").await, 1);
    // The look-up still fails: the retry ends as before, and publishes nothing.
    assert_eq!(retry(&world, &post).await.0, StatusCode::ACCEPTED);
    let again = world.ended(&post).await;
    let message = again["targets"][0]["error_message"].as_str().unwrap();
    assert!(message.contains("it may be live"), "{message}");
    world.set_sandbox(json!({ "refusals": {} })).await;
    assert_eq!(retry(&world, &post).await.0, StatusCode::ACCEPTED);
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    let journal = world.journal("x", "ada").await;
    let accepted: Vec<_> = journal.iter().filter(|entry| entry["accepted"] == true).collect();
    assert_eq!(accepted.len(), 1, "{journal:#?}");
    assert_eq!(ended["targets"][0]["platform_post_id"], accepted[0]["post_id"]);
}

#[tokio::test]
async fn a_retried_target_in_doubt_that_is_not_live_is_published_once() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    world.set_sandbox(json!({ "refusals": { "/2/users/": 403 } })).await;
    let post = dead(&world, "Lost #sandbox-dropx1", "ada").await;
    assert_eq!(world.accepted("x", "ada").await, 0);
    world.set_sandbox(json!({ "refusals": {} })).await;
    assert_eq!(retry(&world, &post).await.0, StatusCode::ACCEPTED);
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    assert_eq!(world.accepted("x", "ada").await, 1);
}

/// The post's workflow runs for as long as one of its targets does.
#[tokio::test]
async fn a_dead_target_is_retried_while_another_one_is_open() {
    let mut world = world().pace(1.0).start().await;
    world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    world.revoke_grants("x", "ada").await;
    let accounts = ["ada", "ada.bsky.social"];
    let post = world.post(json!({ "content": "Hello #sandbox-503x20", "accounts": accounts })).await;
    let of = |post: &Value, platform: &str| {
        let targets = post["targets"].as_array().unwrap();
        targets.iter().find(|target| target["platform"] == platform).unwrap().clone()
    };
    let id = post["id"].as_str().unwrap();
    let is_mixed =
        |post: &Value| of(post, "x")["status"] == "dead" && of(post, "bluesky")["status"] == "failed";
    let post = world.until(id, "one dead and one failed target", is_mixed).await;
    let open = json!({ "targets": [of(&post, "bluesky")["id"]] });
    let (status, problem) = world.call(Method::POST, &path(&post), Some(&open)).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{problem}");
    world.connect("x", "ada").await;
    let body = json!({ "targets": [of(&post, "x")["id"]] });
    let (status, retried) = world.call(Method::POST, &path(&post), Some(&body)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{retried}");
    world.until(id, "an attempt", |post| of(post, "x")["error_code"] == "upstream_503").await;
    world.leave_post(&post, "both targets are retried for hours");
}

#[tokio::test]
async fn a_retry_of_a_post_says_what_is_wrong_with_it() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let live = world.ended(&world.post(json!({ "content": "Live", "accounts": ["ada"] })).await).await;
    let post = dead(&world, "Dead #sandbox-400", "ada").await;
    for (body, expected, code) in [
        (json!({ "targets": [live["targets"][0]["id"]] }), 422, "unprocessable"),
        (json!({ "targets": [] }), 400, "invalid_request"),
        (json!({ "targets": ["7"] }), 400, "invalid_request"),
    ] {
        fail(request(&world, Method::POST, &path(&post)).json(&body), expected, code).await;
    }
    fail(request(&world, Method::POST, &path(&live)), 409, "conflict").await;
    fail(request(&world, Method::POST, "/posts/7/retry"), 404, "not_found").await;
    let reader = key(&world, world.owner, &[Scope::PostsRead]).await;
    let read = world.http.post(format!("{}{}", world.base, path(&post))).bearer_auth(reader);
    fail(read, 403, "insufficient_scope").await;
    let gone = format!("/social-accounts/{account}");
    assert_eq!(world.call(Method::DELETE, &gone, None).await.0, StatusCode::OK);
    fail(request(&world, Method::POST, &path(&post)), 409, "conflict").await;
}

#[tokio::test]
async fn what_an_account_lost_with_its_grant_is_retried_when_it_is_back() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let refused = dead(&world, "Refused #sandbox-400", "ada").await;
    world.revoke_grants("x", "ada").await;
    let posts = [dead(&world, "One", &account).await, dead(&world, "Two", &account).await];
    for post in &posts {
        assert_eq!(post["targets"][0]["error_code"], "token_expired", "{post:#}");
    }
    let path = format!("/social-accounts/{account}/retry-failed");
    fail(request(&world, Method::POST, &path), 409, "conflict").await;
    assert_eq!(world.connect("x", "ada").await, account);
    let (status, retried) = world.call(Method::POST, &path, None).await;
    assert_eq!((status, &retried), (StatusCode::ACCEPTED, &json!({ "retried": 2 })), "{retried}");
    for post in &posts {
        assert_eq!(world.ended(post).await["status"], "published");
    }
    assert_eq!(world.accepted("x", "ada").await, 2);
    let (_, retried) = world.call(Method::POST, &path, None).await;
    assert_eq!(retried, json!({ "retried": 0 }));
    let refused = world.get(&format!("/posts/{}", refused["id"].as_str().unwrap())).await;
    assert_eq!(refused["status"], "failed");
    fail(request(&world, Method::POST, "/social-accounts/7/retry-failed"), 404, "not_found").await;
}

/// A post of two tenants is visible to neither's key, and neither publishes it.
#[tokio::test]
async fn a_limited_key_retries_no_post_that_it_does_not_see() {
    let world = world().start().await;
    let connect = async || joined(&world, "x", "ada", json!({ "tenant_id": "mine" })).await;
    let account = connect().await;
    joined(&world, "x", "bob", json!({ "tenant_id": "theirs" })).await;
    world.revoke_grants("x", "ada").await;
    dead(&world, "Mine", &account).await;
    let mixed =
        world.ended(&world.post(json!({ "content": "Both", "accounts": ["ada", "bob"] })).await).await;
    assert_eq!(mixed["status"], "partial", "{mixed:#}");
    assert_eq!(connect().await, account);
    let body = json!({ "name": "Limited", "scopes": ["*"], "tenant_id": "mine" });
    let (_, limited) = world.call(Method::POST, "/api-keys", Some(&body)).await;
    let path = format!("/social-accounts/{account}/retry-failed");
    let retry = async |key: &str| {
        let answer = world.http.post(format!("{}{path}", world.base)).bearer_auth(key).send().await.unwrap();
        answer.json::<Value>().await.unwrap()
    };
    assert_eq!(retry(limited["key"].as_str().unwrap()).await, json!({ "retried": 1 }));
    assert_eq!(retry(&world.key).await, json!({ "retried": 1 }));
    assert_eq!(
        world.until(mixed["id"].as_str().unwrap(), "the rest", |post| post["status"] == "published").await["status"],
        "published"
    );
}
