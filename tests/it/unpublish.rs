//! A published post is deleted from its platform, and its target keeps its status.

use crate::{
    api::{fail, key, request},
    world,
};
use domain::scope::Scope;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{World, samples};

fn path(post: &Value) -> String {
    let [id, target] = [&post["id"], &post["targets"][0]["id"]].map(|id| id.as_str().unwrap());
    format!("/posts/{id}/targets/{target}/unpublish")
}

async fn unpublish(world: &World, post: &Value) -> (StatusCode, Value) {
    world.call(Method::POST, &path(post), None).await
}

/// Ids of the posts that the sandbox was asked to delete, in order.
async fn deleted(world: &World, platform: &str, account: &str) -> Vec<String> {
    let journal = world.journal(platform, account).await;
    let deletions = journal.iter().filter(|entry| entry["method"] == "DELETE");
    deletions.map(|entry| entry["path"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_published_thread_is_deleted_last_to_first_and_stays_published() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let containers = json!([{ "content": "One" }, { "content": "Two" }, { "content": "Three" }]);
    let post = world.post(json!({ "containers": containers, "accounts": ["ada"] })).await;
    world.completed(&post, 1).await;
    let post = world.ended(&post).await;
    assert_eq!(post["targets"][0]["unpublished_at"], Value::Null);
    let (status, target) = unpublish(&world, &post).await;
    assert_eq!((status, &target["status"]), (StatusCode::OK, &json!("published")), "{target}");
    assert!(target["unpublished_at"].is_string(), "{target}");
    assert_eq!(target["platform_post_id"], post["targets"][0]["platform_post_id"]);
    let journal = world.journal("x", "ada").await;
    let accepted = journal.iter().filter_map(|entry| entry["post_id"].as_str());
    let mut ids: Vec<_> = accepted.map(str::to_owned).collect();
    ids.reverse();
    assert_eq!(ids.len(), 3, "{ids:?}");
    assert_eq!(deleted(&world, "x", "ada").await, ids);
    // Again: the same answer, and no call.
    assert_eq!(unpublish(&world, &post).await, (StatusCode::OK, target.clone()));
    assert_eq!(deleted(&world, "x", "ada").await.len(), 3);
    let id = post["id"].as_str().unwrap();
    let found = world.get(&format!("/posts/{id}")).await;
    assert_eq!((&found["status"], &found["targets"][0]), (&json!("published"), &target));
    let timeline = world.get(&format!("/posts/{id}/timeline")).await;
    let entries = timeline["data"].as_array().unwrap().iter();
    let entries: Vec<_> = entries.filter(|entry| entry["kind"] == "unpublished").collect();
    assert_eq!(entries.len(), 1, "{timeline:#}");
    assert_eq!(entries[0]["target_id"], target["id"]);
    // Nobody asks for metrics of what is gone.
    let calls = world.journal("x", "ada").await.len();
    let analytics = world.get(&format!("/posts/{id}/analytics")).await;
    assert_eq!(analytics["metrics_by_account"], json!([]));
    assert_eq!(world.journal("x", "ada").await.len(), calls);
}

#[tokio::test]
async fn a_post_that_was_deleted_by_hand_counts_as_unpublished() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let post = world.ended(&world.post(json!({ "content": "Oops", "accounts": ["ada"] })).await).await;
    let live = post["targets"][0]["platform_post_id"].as_str().unwrap();
    let url = format!("{}/api.x.com/2/tweets/{live}", world.sandbox_url);
    let token = world.account("x", "ada").await.grant.access_token;
    let by_hand = world.http.delete(url).bearer_auth(&token).send().await.unwrap();
    assert_eq!(by_hand.status(), StatusCode::OK);
    let (status, target) = unpublish(&world, &post).await;
    assert_eq!(status, StatusCode::OK, "{target}");
    assert!(target["unpublished_at"].is_string(), "{target}");
}

#[tokio::test]
async fn a_platform_that_fails_is_asked_again_by_the_client() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let containers = json!([{ "content": "One" }, { "content": "Two" }]);
    let post = world.post(json!({ "containers": containers, "accounts": ["ada"] })).await;
    world.completed(&post, 1).await;
    let post = world.ended(&post).await;
    world.set_sandbox(json!({ "refusals": { "/2/tweets/": 503 } })).await;
    let (headers, _) = fail(request(&world, Method::POST, &path(&post)), 503, "unavailable").await;
    assert!(headers.contains_key("Retry-After"));
    let target = |post: &Value| post["targets"][0].clone();
    let found = world.get(&format!("/posts/{}", post["id"].as_str().unwrap())).await;
    assert_eq!(target(&found)["unpublished_at"], Value::Null);
    world.set_sandbox(json!({ "refusals": { "/2/tweets/": 403 } })).await;
    let (status, problem) = unpublish(&world, &post).await;
    assert_eq!((status, &problem["code"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("unprocessable")));
    world.set_sandbox(json!({ "refusals": {} })).await;
    assert_eq!(unpublish(&world, &post).await.0, StatusCode::OK);
}

#[tokio::test]
async fn an_expired_token_is_refreshed_and_a_revoked_one_asks_to_reconnect() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let post = world.ended(&world.post(json!({ "content": "Hello", "accounts": ["ada"] })).await).await;
    let other = world.ended(&world.post(json!({ "content": "Bye", "accounts": ["ada"] })).await).await;
    world.expire_tokens("x", "ada").await;
    assert_eq!(unpublish(&world, &post).await.0, StatusCode::OK);
    world.revoke_grants("x", "ada").await;
    let (status, problem) = unpublish(&world, &other).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!("reconnect_required")),
        "{problem}"
    );
}

#[tokio::test]
async fn only_a_live_post_of_a_platform_that_deletes_posts_is_unpublished() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let far = "2040-01-01T00:00:00Z";
    let waiting = world.post(json!({ "content": "Far", "accounts": ["ada"], "scheduled_at": far })).await;
    let dead = world.post(json!({ "content": "Dead #sandbox-400", "accounts": ["ada"] })).await;
    assert_eq!(world.ended(&dead).await["status"], "failed");
    for post in [&waiting, &dead] {
        let (status, problem) = unpublish(&world, post).await;
        assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{problem}");
    }
    let other = path(&waiting).replace(waiting["id"].as_str().unwrap(), dead["id"].as_str().unwrap());
    for path in [other.as_str(), "/posts/7/targets/8/unpublish"] {
        assert_eq!(world.call(Method::POST, path, None).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    let instagram = world.connect("instagram", "ada").await;
    let picture = world.medium("a.jpg", None, samples::jpeg(640, 640)).await;
    let containers = json!([{ "content": "Look", "media": [{ "id": picture["id"] }] }]);
    let post = world.post(json!({ "containers": containers, "accounts": [instagram] })).await;
    let post = world.ended(&post).await;
    assert_eq!(post["status"], "published", "{post:#}");
    let (status, problem) = unpublish(&world, &post).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!("deletion_unsupported")),
        "{problem}"
    );
    let reader = key(&world, world.owner, &[Scope::PostsRead]).await;
    let read = world.http.post(format!("{}{}", world.base, path(&post))).bearer_auth(reader);
    fail(read, 403, "insufficient_scope").await;
}

#[tokio::test]
async fn an_account_without_the_scope_is_not_asked_to_delete() {
    let world = world().start().await;
    let tests::SandboxAccount { identity, mut grant } = world.account("threads", "ada").await;
    grant.scopes.retain(|scope| scope != "threads_delete");
    let account = world.keep("threads", identity.profile, &grant).await;
    let post = world.ended(&world.post(json!({ "content": "Hello", "accounts": [account] })).await).await;
    assert_eq!(post["status"], "published", "{post:#}");
    let (status, problem) = unpublish(&world, &post).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!("reconnect_required")),
        "{problem}"
    );
    assert!(problem["detail"].as_str().unwrap().contains("threads_delete"), "{problem}");
}

/// The platform refuses to delete anything: the post is live, and the rest of its thread still follows.
#[tokio::test]
async fn a_thread_goes_on_when_its_platform_did_not_delete_it() {
    let world = world().pace(1.0).start().await;
    // The reply waits until it is asked for, however slow this machine is.
    world.set_sandbox(json!({ "throttle_seconds": 900 })).await;
    world.connect("x", "ada").await;
    let containers = json!([{ "content": "One" }, { "content": "Two #sandbox-429x1" }]);
    let post = world.post(json!({ "containers": containers, "accounts": ["ada"] })).await;
    let id = post["id"].as_str().unwrap();
    let waits = |post: &Value| {
        let target = &post["targets"][0];
        target["status"] == "published" && target["error_code"] == "rate_limited"
    };
    let post = world.until(id, "a missing reply", waits).await;
    let main = post["targets"][0]["platform_post_id"].as_str().unwrap();
    world.set_sandbox(json!({ "refusals": { (format!("/2/tweets/{main}")): 403 } })).await;
    let (status, problem) = unpublish(&world, &post).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
    world.set_sandbox(json!({ "refusals": {} })).await;
    let kept = world.get(&format!("/posts/{id}")).await;
    let target = &kept["targets"][0];
    assert_eq!((&target["error_code"], &target["unpublished_at"]), (&json!("rate_limited"), &Value::Null));
    assert!(target["next_attempt_at"].is_string(), "{target}");
    let (status, problem) = world.call(Method::POST, &path(&post).replace("unpublish", "retry"), None).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{problem}");
    world.completed(&post, 1).await;
    assert_eq!(world.accepted("x", "ada").await, 2);
    assert_eq!(unpublish(&world, &post).await.0, StatusCode::OK);
    assert_eq!(deleted(&world, "x", "ada").await.len(), 3, "the refused deletion, and two");
}

/// Nobody knows whether the post is gone: the rest of its thread does not follow by itself, but when it is asked for.
#[tokio::test]
async fn a_thread_does_not_go_on_after_a_deletion_without_a_result() {
    let world = world().pace(1.0).start().await;
    world.set_sandbox(json!({ "throttle_seconds": 900 })).await;
    world.connect("x", "ada").await;
    let containers = json!([{ "content": "One" }, { "content": "Two #sandbox-429x1" }]);
    let post = world.post(json!({ "containers": containers, "accounts": ["ada"] })).await;
    let id = post["id"].as_str().unwrap();
    let waits = |post: &Value| {
        let target = &post["targets"][0];
        target["status"] == "published" && target["error_code"] == "rate_limited"
    };
    let post = world.until(id, "a missing reply", waits).await;
    let [main, target] = ["platform_post_id", "id"].map(|name| post["targets"][0][name].as_str().unwrap());
    world.set_sandbox(json!({ "refusals": { (format!("/2/tweets/{main}")): 503 } })).await;
    let (status, problem) = unpublish(&world, &post).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{problem}");
    world.set_sandbox(json!({ "refusals": {} })).await;
    // The hold is over.
    let over =
        "update targets set unpublish_until = now() - interval '1 second' where unpublish_until is not null";
    tests::sql(&world.db, &format!("{over} and id = '{target}'")).await;
    let (status, problem) = world.call(Method::POST, &path(&post).replace("unpublish", "retry"), None).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{problem}");
    let is_given_up = |post: &Value| post["targets"][0]["error_code"] == "network_error";
    let post = world.until(id, "a thread that is given up", is_given_up).await;
    let target = &post["targets"][0];
    assert_eq!(
        (&target["status"], &target["next_attempt_at"]),
        (&json!("published"), &Value::Null),
        "{target}"
    );
    assert!(target["error_message"].as_str().unwrap().contains("may have been deleted"), "{target}");
    assert_eq!(world.accepted("x", "ada").await, 1);
    let (status, problem) = world.call(Method::POST, &format!("/posts/{id}/retry"), None).await;
    assert!(status.is_success(), "{status} {problem}");
    world.completed(&post, 1).await;
    assert_eq!(world.accepted("x", "ada").await, 2);
}

/// A reply that fails keeps being retried for hours; unpublishing ends that.
#[tokio::test]
async fn what_was_to_follow_an_unpublished_post_is_given_up() {
    let world = world().pace(1.0).start().await;
    world.connect("x", "ada").await;
    let containers = json!([{ "content": "One" }, { "content": "Two #sandbox-429x20" }]);
    let post = world.post(json!({ "containers": containers, "accounts": ["ada"] })).await;
    let id = post["id"].as_str().unwrap();
    let waits = |post: &Value| {
        let target = &post["targets"][0];
        target["status"] == "published" && target["error_code"] == "rate_limited"
    };
    let post = world.until(id, "a missing reply", waits).await;
    let (status, target) = unpublish(&world, &post).await;
    assert_eq!(status, StatusCode::OK, "{target}");
    assert_eq!(target["next_attempt_at"], Value::Null, "{target}");
    assert_eq!(target["error_message"], "the post was deleted from its platform", "{target}");
    let (status, problem) = world.call(Method::POST, &path(&post).replace("unpublish", "retry"), None).await;
    assert_eq!(status, StatusCode::CONFLICT, "{problem}");
    assert_eq!(world.accepted("x", "ada").await, 1);
}
