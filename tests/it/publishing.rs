//! Posts are published, or fail with a reason.

use crate::world;
use domain::Failure;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use store::accounts::grants;
use tests::{Receiver, now};

fn target<'a>(post: &'a Value, platform: &str) -> &'a Value {
    post["targets"].as_array().unwrap().iter().find(|target| target["platform"] == platform).unwrap()
}

#[tokio::test]
async fn a_post_is_published_to_every_account_and_its_events_are_delivered() {
    let world = world().start().await;
    let x = world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;

    let post = world.post(json!({ "content": "Hello, world", "accounts": [x, "ada.bsky.social"] })).await;
    assert_eq!(post["status"], "queued");
    for target in post["targets"].as_array().unwrap() {
        assert_eq!(target["status"], "pending");
        assert_eq!(target["platform_post_id"], Value::Null);
    }

    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    for target in ended["targets"].as_array().unwrap() {
        assert_eq!(target["status"], "published");
        assert_eq!(target["attempts"], 1);
        assert_eq!(target["error_code"], Value::Null);
        let url = target["platform_post_url"].as_str().unwrap();
        assert!(url.starts_with(&world.sandbox_url), "{url}");
        let page = world.http.get(url).send().await.unwrap();
        assert_eq!(page.status(), StatusCode::OK, "{url}");
        assert!(page.text().await.unwrap().contains("Hello, world"));
    }
    let deliveries =
        receiver.events(&["post.target.published", "post.target.published", "post.published"]).await;
    assert_eq!(deliveries.len(), 3);
    assert_eq!(world.accepted("x", "ada").await, 1);
    assert_eq!(world.accepted("bluesky", "ada.bsky.social").await, 1);
}

#[tokio::test]
async fn a_thread_is_published_in_order_below_its_main_container() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    let post = world
        .post(json!({
            "containers": [{ "content": "One" }, { "content": "Two" }, { "content": "Three" }],
            "accounts": ["ada", "ada.bsky.social"],
        }))
        .await;
    assert_eq!(post["containers"][1]["role"], "first_comment");
    assert_eq!(post["containers"][2]["role"], "thread");
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    world.completed(&post, 2).await;
    for (platform, account) in [("x", "ada"), ("bluesky", "ada.bsky.social")] {
        let entries = world.journal(platform, account).await;
        let published = entries.iter().filter(|entry| entry["accepted"] == true);
        assert_eq!(published.count(), 3, "{platform}: {entries:#?}");
    }
}

#[tokio::test]
async fn containers_that_a_platform_does_not_support_are_left_out_and_reported() {
    let world = world().approved().start().await;
    let x = world.connect("x", "ada").await;
    let google = world.connect("google_business", "ada").await;
    let facebook = world.connect("facebook", "ada").await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let texts =
        [json!({ "content": "Main" }), json!({ "content": "Comment" }), json!({ "content": "Thread" })];
    let body = json!({ "containers": texts, "accounts": [x, google, facebook] });
    let (_, verdict) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
    assert_eq!(verdict["valid"], true, "{verdict:#}");
    let mut reported: Vec<_> = verdict["issues"]
        .as_array()
        .unwrap()
        .iter()
        .map(|issue| json!([issue["platform"], issue["severity"], issue["code"], issue["path"]]))
        .collect();
    reported.sort_by_key(Value::to_string);
    assert_eq!(
        json!(reported),
        json!([
            ["facebook", "warning", "replies_not_supported", ["containers", 2]],
            ["google_business", "warning", "replies_not_supported", ["containers", 1]],
        ])
    );

    let post = world.post(body).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    world.completed(&post, 1).await;
    let words = [("google_business", "2 containers are left out"), ("facebook", "1 container is left out")];
    let is_told = |post: &Value| {
        words.iter().all(|(platform, words)| {
            target(post, platform)["error_message"].as_str().is_some_and(|reported| reported.contains(words))
        })
    };
    let ended = world.until(post["id"].as_str().unwrap(), "the omissions", is_told).await;
    for (platform, accepted) in [("x", 3), ("google_business", 1), ("facebook", 2)] {
        let target = target(&ended, platform);
        assert_eq!((&target["status"], &target["attempts"]), (&json!("published"), &json!(1)), "{target:#}");
        assert_eq!((&target["error_code"], &target["next_attempt_at"]), (&Value::Null, &Value::Null));
        assert_eq!(world.accepted(platform, "ada").await, accepted, "{platform}");
    }
    assert_eq!(target(&ended, "x")["error_message"], Value::Null);
    let timeline = world.get(&format!("/posts/{}/timeline", post["id"].as_str().unwrap())).await;
    let lines = timeline["data"].as_array().unwrap().iter().filter(|entry| entry["kind"] == "left_out");
    assert_eq!(lines.count(), 2, "{timeline:#}");
    // Its events may still be undelivered.
    let mut next = timeline["next"].as_array().unwrap().iter();
    assert!(next.all(|step| step["action"] == "deliver"), "no publishing is retried: {timeline:#}");
    let told = ["post.published", "post.target.published", "post.target.published", "post.target.published"];
    let deliveries = receiver.events(&told).await;
    assert_eq!(deliveries.len(), told.len(), "none has failed, and none was lost later");
    for (platform, left_out) in [("x", &[][..]), ("google_business", &[1, 2]), ("facebook", &[2])] {
        let reason = &target(&ended, platform)["error_message"];
        let missing = left_out
            .iter()
            .map(|position| json!({ "position": position, "error_code": null, "error_message": reason }));
        let missing: Value = missing.collect();
        assert_eq!(target(&ended, platform)["missing"], missing);
        let data = deliveries.iter().map(|delivery| delivery.json()["data"].clone());
        let data = data.filter(|data| data["network"] == platform).collect::<Vec<_>>();
        let known = Some(missing).filter(|_| !left_out.is_empty()).unwrap_or_default();
        assert_eq!((data.len(), &data[0]["missing"]), (1, &known), "{data:#?}");
    }
    // A retry could publish none of it.
    let (status, problem) =
        world.call(Method::POST, &format!("/posts/{}/retry", post["id"].as_str().unwrap()), None).await;
    assert_eq!(status, StatusCode::CONFLICT, "{problem}");
}

#[tokio::test]
async fn an_account_that_publishes_is_active_again() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let id = ada.parse().unwrap();
    let grant = grants::get(&world.db, world.owner, id).await.unwrap().unwrap();
    let failure = Failure::token_expired("Expired");
    grants::mark_lost(&world.db, world.owner, id, grant.version, &failure, now()).await.unwrap();
    let path = format!("/social-accounts/{ada}");
    assert_eq!(world.get(&path).await["status"], "token_expired");
    let post = world.post(json!({ "content": "Still here", "accounts": [ada] })).await;
    assert_eq!(world.ended(&post).await["status"], "published");
    let account = world.get(&path).await;
    assert_eq!((&account["status"], &account["last_error_code"]), (&json!("active"), &Value::Null));
}

#[tokio::test]
async fn rejected_content_ends_dead_with_the_platforms_message() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let post = world.post(json!({ "content": "No #sandbox-400", "accounts": ["ada"] })).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "failed");
    let target = target(&ended, "x");
    assert_eq!((&target["status"], &target["error_code"]), (&json!("dead"), &json!("rejected_400")));
    assert_eq!((&target["attempts"], &target["error_source"]), (&json!(1), &json!("user")));
    assert!(!target["error_message"].as_str().unwrap().is_empty());
    let deliveries = receiver.events(&["post.target.failed", "post.error"]).await;
    assert_eq!(deliveries.len(), 2);
    let failed = deliveries.iter().find(|delivery| delivery.event() == "post.target.failed").unwrap().json();
    assert_eq!(failed["data"]["errorCode"], "rejected_400");
}

#[tokio::test]
async fn a_duplicate_text_is_not_mistaken_for_the_earlier_post() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let first = world.post(json!({ "content": "The same words", "accounts": ["ada"] })).await;
    assert_eq!(world.ended(&first).await["status"], "published");
    let second = world.post(json!({ "content": "The same words", "accounts": ["ada"] })).await;
    let ended = world.ended(&second).await;
    let target = target(&ended, "x");
    assert_eq!(
        (&target["status"], &target["error_code"]),
        (&json!("dead"), &json!("rejected_403")),
        "{ended:#}"
    );
    assert_eq!(target["platform_post_id"], Value::Null);
    assert_eq!(world.accepted("x", "ada").await, 1);
}

#[tokio::test]
async fn one_published_and_one_dead_target_make_a_partial_post_with_one_event() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    world.revoke_grants("x", "ada").await;
    let post = world.post(json!({ "content": "Partly", "accounts": ["ada", "ada.bsky.social"] })).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "partial", "{ended:#}");
    receiver.events(&["post.target.published", "post.published", "post.target.failed"]).await;
    let all = receiver.all();
    assert_eq!(all.iter().filter(|delivery| delivery.event() == "post.published").count(), 1);
    assert!(all.iter().all(|delivery| delivery.event() != "post.error"));
}

#[tokio::test]
async fn transient_failures_are_retried_until_the_post_is_published() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    for fault in ["#sandbox-429x2", "#sandbox-503x2", "#sandbox-dropx1"] {
        let content = format!("Try again {fault}");
        let post = world.post(json!({ "content": content, "accounts": ["ada", "ada.bsky.social"] })).await;
        let ended = world.ended(&post).await;
        assert_eq!(ended["status"], "published", "{fault}: {ended:#}");
        for target in ended["targets"].as_array().unwrap() {
            assert!(target["attempts"].as_i64().unwrap() >= 2, "{fault}: {target:#}");
            assert_eq!(target["error_code"], Value::Null);
        }
    }
    assert_eq!(world.accepted("x", "ada").await, 3);
    assert_eq!(world.accepted("bluesky", "ada.bsky.social").await, 3);
}

/// LinkedIn throttles more attempts than a post has, and another post of the account waits meanwhile.
#[tokio::test]
async fn throttling_costs_no_attempt_and_rests_the_account() {
    let world = world().start().await;
    world.connect("linkedin", "ada").await;
    let throttled = world.post(json!({ "content": "Too much #sandbox-429x12", "accounts": ["ada"] })).await;
    world
        .until(throttled["id"].as_str().unwrap(), "throttled", |post| {
            target(post, "linkedin")["error_code"] == "rate_limited"
        })
        .await;
    let other = world.post(json!({ "content": "Me too", "accounts": ["ada"] })).await;
    let ended = world.ended(&throttled).await;
    let target_of = |post: &Value| target(post, "linkedin").clone();
    assert_eq!(target_of(&ended)["status"], "published", "{ended:#}");
    assert_eq!(target_of(&ended)["attempts"], 13, "{ended:#}");
    let other = world.ended(&other).await;
    assert_eq!(
        (&target_of(&other)["status"], &target_of(&other)["attempts"]),
        (&json!("published"), &json!(1))
    );
}

#[tokio::test]
async fn a_spent_retry_budget_ends_dead_with_the_last_error() {
    let world = world().pace(0.0005).start().await;
    world.connect("bluesky", "ada.bsky.social").await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let post = world.post(json!({ "content": "#sandbox-500", "accounts": ["ada.bsky.social"] })).await;
    let ended = world.ended(&post).await;
    let target = target(&ended, "bluesky");
    assert_eq!(
        (&target["status"], &target["error_code"]),
        (&json!("dead"), &json!("upstream_500")),
        "{ended:#}"
    );
    assert_eq!(target["next_attempt_at"], Value::Null);
    receiver.events(&["post.target.failed", "post.error"]).await;
    assert_eq!(world.accepted("bluesky", "ada.bsky.social").await, 0);
    let publishing = world.journal("bluesky", "ada.bsky.social").await;
    let tries =
        publishing.iter().filter(|entry| entry["path"].as_str().unwrap().ends_with("putRecord")).count();
    assert_eq!(tries, 10, "the contract's retry budget");
}

#[tokio::test]
async fn an_expired_token_is_refreshed_once_and_the_post_is_published() {
    let world = world().start().await;
    for (platform, account) in [("x", "ada"), ("bluesky", "ada.bsky.social")] {
        world.connect(platform, account).await;
        world.expire_tokens(platform, account).await;
        let post = world.post(json!({ "content": "Fresh token, please", "accounts": [account] })).await;
        let ended = world.ended(&post).await;
        assert_eq!(ended["status"], "published", "{platform}: {ended:#}");
        assert_eq!(target(&ended, platform)["attempts"], 2);
        let journal = world.journal(platform, account).await;
        let refreshes = journal
            .iter()
            .filter(|entry| {
                let path = entry["path"].as_str().unwrap();
                path.ends_with("refreshSession") || path.ends_with("oauth2/token")
            })
            .count();
        assert_eq!(refreshes, 1, "{platform}: {journal:#?}");
    }
}

#[tokio::test]
async fn a_revoked_grant_fails_the_target_and_notifies_the_owner() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    world.revoke_grants("x", "ada").await;
    let post = world.post(json!({ "content": "Too late", "accounts": ["ada"] })).await;
    let ended = world.ended(&post).await;
    assert_eq!(target(&ended, "x")["error_code"], "token_expired", "{ended:#}");
    let deliveries = receiver.events(&["account.reauth_required", "post.target.failed", "post.error"]).await;
    assert_eq!(deliveries.len(), 3);
    let accounts = world.get("/social-accounts").await;
    assert_eq!(accounts["data"][0]["status"], "reauth_required");
}

#[tokio::test]
async fn a_token_that_stays_rejected_fails_the_target_and_asks_to_reconnect() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let post = world.post(json!({ "content": "Refused #sandbox-401", "accounts": ["ada"] })).await;
    let ended = world.ended(&post).await;
    let dead = target(&ended, "x");
    assert_eq!(
        (&dead["status"], &dead["error_code"]),
        (&json!("dead"), &json!("token_expired")),
        "{ended:#}"
    );
    assert_eq!(dead["attempts"], 3, "{ended:#}");
    let deliveries = receiver.events(&["account.token_expired", "post.target.failed", "post.error"]).await;
    let reported: Vec<_> =
        deliveries.iter().filter(|delivery| delivery.event() == "account.token_expired").collect();
    assert_eq!(reported.len(), 1);
    let data = reported[0].json()["data"].clone();
    assert!(data["error"].as_str().is_some_and(|error| !error.is_empty()), "{data}");
    let expected = json!({
        "orgId": world.owner.org, "accountId": account, "network": "x", "username": "ada", "tenantId": null,
        "error": data["error"],
    });
    assert_eq!(data, expected);
    assert_eq!(world.get("/social-accounts").await["data"][0]["status"], "token_expired");
}

#[tokio::test]
async fn a_rejected_comment_leaves_its_post_published_and_is_reported() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let containers = json!([{ "content": "Main" }, { "content": "Comment #sandbox-400" }]);
    let post = world.post(json!({ "containers": containers, "accounts": ["ada"] })).await;
    let id = post["id"].as_str().unwrap();
    let lost = world.until(id, "an error", |post| post["targets"][0]["error_code"].is_string()).await;
    let target = target(&lost, "x");
    assert_eq!((&lost["status"], &target["status"]), (&json!("published"), &json!("published")), "{lost:#}");
    assert_eq!(target["error_code"], "rejected_400", "{lost:#}");
    assert!(target["platform_post_url"].is_string() && target["error_message"].is_string(), "{lost:#}");
    assert_eq!(world.accepted("x", "ada").await, 1);
}

#[tokio::test]
async fn the_timeline_lists_past_entries_and_the_next_step() {
    let world = world().pace(1.0).start().await;
    world.connect("bluesky", "ada.bsky.social").await;
    let post = world.post(json!({ "content": "#sandbox-503", "accounts": ["ada.bsky.social"] })).await;
    let id = post["id"].as_str().unwrap();
    world.until(id, "the first failure", |post| post["targets"][0]["status"] == "failed").await;
    let timeline = world.get(&format!("/posts/{id}/timeline")).await;
    let kinds: Vec<_> =
        timeline["data"].as_array().unwrap().iter().map(|entry| entry["kind"].clone()).collect();
    assert!(kinds.contains(&json!("attempt")) && kinds.contains(&json!("failure")), "{timeline:#}");
    assert!(timeline["next"][0]["at"].is_string(), "{timeline:#}");
    for entry in timeline["data"].as_array().unwrap() {
        // A request created the post; the service attempted it by itself.
        let id = entry["detail"]["request_id"].as_str();
        assert_eq!(id.is_some_and(|id| id.starts_with("req_")), entry["kind"] == "created", "{entry}");
    }
    let (status, _) = world.call(Method::DELETE, &format!("/posts/{id}"), None).await;
    assert_eq!(status, StatusCode::OK);
}
