//! Accounts stay connected: each grant is renewed before it expires, by one process only.
//!
//! The sandbox's tokens expire within seconds here, instead of hours or months. Its journal has every refresh
//! with its status, so that a second refresh of the same grant shows.

use crate::{
    connect::finalize,
    replay::{client, replay, replay_run},
    world,
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::retry;
use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use store::{
    accounts::grants::{self, Ends},
    upkeep::vault,
};
use temporalio_client::{Client, errors::WorkflowGetResultError};
use temporalio_common::UntypedWorkflow;
use tests::{
    Delivery, Receiver, World, if_right,
    login::{joined, several},
    wait_until,
};
use workflows::renew_grant;

/// Platform, account and path of the token endpoints.
const ENDPOINTS: [(&str, &str, &str); 2] =
    [("linkedin", "ada", LINKEDIN), ("bluesky", "ada.bsky.social", BLUESKY)];
const BLUESKY: &str = "/xrpc/com.atproto.server.refreshSession";
const LINKEDIN: &str = "/oauth/v2/accessToken";
/// Renewed only when it is needed.
const X: &str = "/2/oauth2/token";

/// Waits until a token endpoint has received `count` requests, and returns the statuses of all of them.
async fn asked(world: &World, platform: &str, path: &str, count: usize) -> Vec<u64> {
    let patience = tests::PATIENCE.as_millis();
    let query = format!("platform={platform}&path={path}&count={count}&timeout_ms={patience}");
    let url = format!("{}/_journal/wait?{query}", world.sandbox_url);
    let answer = world.http.get(url).send().await.unwrap();
    let status = answer.status();
    let journal: Value = answer.json().await.unwrap();
    assert_eq!(status, StatusCode::OK, "{platform}: fewer than {count} token requests: {journal:#}");
    journal["entries"].as_array().unwrap().iter().map(|entry| entry["status"].as_u64().unwrap()).collect()
}

/// Returns the statuses of LinkedIn's token endpoint for all accounts.
async fn answers(world: &World) -> Vec<u64> {
    asked(world, "linkedin", LINKEDIN, 0).await
}

/// Creates `count` posts at once, and returns them in their final status.
async fn posts(world: &World, count: usize) -> Vec<Value> {
    let body = |n: usize| json!({ "content": format!("Post number {n}"), "accounts": ["ada"] });
    let created = join_all((0..count).map(|n| world.post(body(n)))).await;
    let mut ended = Vec::new();
    for post in &created {
        ended.push(world.ended(post).await);
    }
    ended
}

/// Returns the decrypted grant of an account.
async fn grant(world: &World, account: &str) -> Value {
    let id = account.parse().unwrap();
    let grant = grants::get(&world.db, world.owner, id).await.unwrap().unwrap();
    let opened = world.opener.open(&grant.sealed, &vault::aad_grant(world.owner, id)).unwrap();
    serde_json::from_slice(&opened).unwrap()
}

/// Waits until `right` holds for an account.
async fn until(world: &World, account: &str, what: &str, right: impl Fn(&Value) -> bool) {
    world.until_at(&format!("/social-accounts/{account}"), what, right).await;
}

async fn status(world: &World, account: &str) -> String {
    let account = world.get(&format!("/social-accounts/{account}")).await;
    account["status"].as_str().unwrap().to_owned()
}

/// Waits until the workflow that renews an account's grant ends.
async fn unkept(client: &Client, account: &str) {
    let handle = client.get_workflow_handle::<UntypedWorkflow>(renew_grant::id(account.parse().unwrap()));
    let ended = tokio::time::timeout(tests::PATIENCE, handle.get_result(Default::default())).await;
    assert!(ended.unwrap().is_ok(), "the workflow completes");
}

/// Runs the API and `workers` workers in processes of their own.
async fn with_workers(workers: usize, pace: f64) -> World {
    let mut world = world().approved().pace(pace).running(&["api"]).start().await;
    for _ in 0..workers {
        world.run("worker").await;
    }
    world
}

#[tokio::test]
async fn grants_are_renewed_before_they_expire_without_publishing() {
    let world = world().approved().start().await;
    world.set_sandbox(json!({ "token_seconds": 4 })).await;
    let mut ids = Vec::new();
    for (platform, account, _) in ENDPOINTS {
        ids.push(world.connect(platform, account).await);
    }
    for (platform, _, path) in ENDPOINTS {
        let answers = asked(&world, platform, path, 2).await;
        assert!(answers.iter().all(|answer| *answer == 200), "{platform}: {answers:?}");
    }
    let keeper = renew_grant::id(ids[0].parse().unwrap());
    replay_run(&world, "renew_grant-updated", &keeper).await;
    world.set_sandbox(json!({ "token_seconds": null })).await;
    // The next grants have their documented lifetime, and no request was rejected with an expired token.
    for ((platform, account, _), id) in ENDPOINTS.into_iter().zip(&ids) {
        until(&world, id, "a grant with its documented lifetime", |account| {
            let ends = account["token_expires_at"].as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
            ends > tests::now() + TimeDelta::minutes(30)
        })
        .await;
        let post = world.post(json!({ "content": "Still here", "accounts": [account] })).await;
        let ended = world.ended(&post).await;
        assert_eq!((&ended["status"], &ended["targets"][0]["attempts"]), (&json!("published"), &json!(1)));
        assert_eq!(status(&world, id).await, "active");
        let journal = world.journal(platform, account).await;
        assert!(journal.iter().all(|entry| entry["status"] != 401), "{platform}: {journal:#?}");
    }
}

#[tokio::test]
async fn accounts_connected_by_login_are_renewed() {
    let world = world().approved().start().await;
    world.set_sandbox(json!({ "token_seconds": 4 })).await;
    let password = world.account("bluesky", "ada.bsky.social").await.grant.extra["app_password"].clone();
    let body = json!({ "identifier": "ada.bsky.social", "app_password": password });
    let (status, _) = world.call(Method::POST, "/social-accounts/bluesky/connect", Some(&body)).await;
    assert_eq!(status, StatusCode::CREATED);
    let pinterest = joined(&world, "pinterest", "ada", json!({})).await;
    let token = several(&world, "google_business", "ada").await;
    let (_, offered) = world.call(Method::GET, &format!("/social-accounts/pending/{token}"), None).await;
    let pages: Vec<_> =
        offered["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    let (status, chosen) = finalize(&world, &token, &pages[..2]).await;
    assert_eq!(status, StatusCode::CREATED, "{chosen}");

    // The code of a login is exchanged at the same endpoint, so that the first call is not a renewal.
    for (platform, path, count) in [
        (ENDPOINTS[1].0, ENDPOINTS[1].2, 1),
        ("pinterest", "/v5/oauth/token", 2),
        ("google_business", "/oauth2.googleapis.com/token", 3),
    ] {
        let answers = asked(&world, platform, path, count).await;
        assert!(answers.iter().all(|answer| *answer == 200), "{platform}: {answers:?}");
    }
    for account in [
        pinterest.as_str(),
        chosen["account_ids"][0].as_str().unwrap(),
        chosen["account_ids"][1].as_str().unwrap(),
    ] {
        until(&world, account, "an active account", |account| account["status"] == "active").await;
        let id = account.parse().unwrap();
        let renewed = async || {
            let version = grants::get(&world.db, world.owner, id).await.unwrap().unwrap().version;
            if_right(version, |version| *version >= 2)
        };
        wait_until("the second version of the grant", renewed).await;
    }
}

#[tokio::test]
async fn two_workers_renew_a_grant_once() {
    let world = with_workers(2, 0.01).await;
    world.set_sandbox(json!({ "token_seconds": 4 })).await;
    let account = world.connect("bluesky", "ada.bsky.social").await;
    // Bluesky rejects a refresh token that is used twice.
    let answers = asked(&world, "bluesky", BLUESKY, 4).await;
    assert!(answers.iter().all(|answer| *answer == 200), "{answers:?}");
    assert_eq!(status(&world, &account).await, "active");
}

#[tokio::test]
async fn fifty_posts_with_an_expired_token_refresh_it_once_and_are_published() {
    // Nothing is retried, so that waits need not be shortened.
    let world = with_workers(2, 1.0).await;
    world.connect("x", "ada").await;
    world.expire_tokens("x", "ada").await;
    for post in posts(&world, 50).await {
        assert_eq!(post["status"], "published", "{post:#}");
    }
    assert_eq!(asked(&world, "x", X, 0).await, [200]);
    assert_eq!(world.accepted("x", "ada").await, 50);
}

/// The operator replaced the app's secret and is late with the new one.
#[tokio::test]
async fn a_refused_app_costs_no_account() {
    let world = world().approved().pace(0.0001).start().await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let account = world.connect("x", "ada").await;
    world.set_sandbox(json!({ "refusals": { (X): 401 } })).await;
    world.expire_tokens("x", "ada").await;
    let post = world.post(json!({ "content": "Soon", "accounts": [account] })).await;
    // More often than a post has attempts.
    asked(&world, "x", X, usize::try_from(retry::ATTEMPTS).unwrap() + 2).await;
    let held = world.get(&format!("/posts/{}", post["id"].as_str().unwrap())).await;
    let target = &held["targets"][0];
    assert_ne!(target["status"], "dead", "{held:#}");
    assert_eq!(status(&world, &account).await, "active");
    world.set_sandbox(json!({ "refusals": {} })).await;
    assert_eq!(world.ended(&post).await["status"], "published");
    receiver.events(&["post.published"]).await;
    assert!(
        receiver.all().iter().all(|one| !one.event().starts_with("account.")),
        "{:?}",
        receiver.all().len()
    );
}

#[tokio::test]
async fn a_throttled_refresh_costs_no_attempt() {
    let world = world().approved().pace(0.001).start().await;
    let account = world.connect("x", "ada").await;
    world.set_sandbox(json!({ "refusals": { (X): 429 } })).await;
    world.expire_tokens("x", "ada").await;
    let post = world.post(json!({ "content": "Soon", "accounts": [account] })).await;
    let path = format!("/posts/{}/timeline?limit=100", post["id"].as_str().unwrap());
    let has_waited_often = |timeline: &Value| {
        let entries = timeline["data"].as_array().unwrap();
        let is_wait = |entry: &&Value| entry["message"].as_str().unwrap().starts_with("No fresh token yet");
        entries.iter().filter(is_wait).count() > usize::try_from(retry::ATTEMPTS).unwrap()
    };
    world.until_at(&path, "more throttled refreshes than attempts", has_waited_often).await;
    world.set_sandbox(json!({ "refusals": {} })).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    assert_eq!(status(&world, &account).await, "active");
}

#[tokio::test]
async fn a_grant_lost_while_idle_sends_one_event() {
    let world = world().approved().start().await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    world.set_sandbox(json!({ "token_seconds": 3 })).await;
    let account = world.connect("linkedin", "ada").await;
    world.revoke_grants("linkedin", "ada").await;
    let reported = receiver.events(&["account.reauth_required"]).await;
    assert_eq!(reported[0].json()["data"]["accountId"], json!(account));
    assert_eq!(status(&world, &account).await, "reauth_required");
    assert_eq!(answers(&world).await.len(), 1, "a rejection is final");
    unkept(&client().await, &account).await;

    world.expire_tokens("linkedin", "ada").await;
    for post in posts(&world, 10).await {
        assert_eq!(post["targets"][0]["error_code"], "token_expired", "{post:#}");
    }
    receiver.events(&["post.error"; 10]).await;
    let reported: Vec<_> =
        receiver.all().into_iter().filter(|one| one.event().starts_with("account.")).collect();
    assert_eq!(reported.len(), 1, "{:?}", reported.iter().map(|one| one.event()).collect::<Vec<_>>());
    assert_eq!(status(&world, &account).await, "reauth_required");
    assert_eq!(answers(&world).await.len(), 1, "a revoked grant is not refreshed again");
    // Reconnecting starts the renewal again.
    assert_eq!(world.connect("linkedin", "ada").await, account);
    assert_eq!(status(&world, &account).await, "active");
    asked(&world, "linkedin", LINKEDIN, 2).await;
}

/// Facebook refuses the call that looks whether a Page's token still works, and not the token.
#[tokio::test]
async fn a_refusal_without_a_listed_word_costs_no_account() {
    let world = world().approved().start().await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let page = world.connect("facebook", "ada").await;
    world.set_sandbox(json!({ "refusals": { "/graph.facebook.com/v26.0/me": 403 } })).await;
    world.expire_tokens("facebook", "ada").await;
    let post = world.post(json!({ "content": "Soon", "accounts": [page] })).await;
    let path = format!("/posts/{}/timeline?limit=100", post["id"].as_str().unwrap());
    let is_refused = |timeline: &Value| {
        let entries = timeline["data"].as_array().unwrap();
        entries.iter().any(|entry| entry["message"].as_str().unwrap().starts_with("No fresh token yet"))
    };
    world.until_at(&path, "a refused refresh", is_refused).await;
    assert_eq!(status(&world, &page).await, "active");
    assert!(receiver.all().iter().all(|one| !one.event().starts_with("account.")));
}

#[tokio::test]
async fn renewal_is_retried_past_expiry_while_the_platform_is_unavailable() {
    is_retried_past_expiry(503).await;
}

/// The grant itself may be valid: LinkedIn names no reason.
#[tokio::test]
async fn renewal_is_retried_past_expiry_after_a_refusal_that_does_not_name_the_grant() {
    is_retried_past_expiry(400).await;
}

/// Has a token endpoint answer with this status until the access token has expired, and for a while after that.
async fn is_retried_past_expiry(status: u16) {
    let world = world().approved().start().await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    world.set_sandbox(json!({ "token_seconds": 2, "refusals": { (LINKEDIN): status } })).await;
    let account = world.connect("linkedin", "ada").await;
    let expires_at = grant(&world, &account).await["expires_at"].clone();
    let mut tries = 0;
    while tests::now() < expires_at.as_str().unwrap().parse::<DateTime<Utc>>().unwrap() {
        let answers = asked(&world, "linkedin", LINKEDIN, tries + 1).await;
        assert!(answers.iter().all(|answer| *answer == u64::from(status)), "{answers:?}");
        tries = answers.len();
    }
    asked(&world, "linkedin", LINKEDIN, tries + 1).await;
    assert_eq!(self::status(&world, &account).await, "active");
    world.set_sandbox(json!({ "token_seconds": null, "refusals": {} })).await;
    let deadline = tokio::time::Instant::now() + tests::PATIENCE;
    while answers(&world).await.last() != Some(&200) {
        assert!(tokio::time::Instant::now() < deadline, "the refresh was not retried");
        asked(&world, "linkedin", LINKEDIN, answers(&world).await.len() + 1).await;
    }
    assert_eq!(posts(&world, 1).await[0]["status"], "published");
    receiver.events(&["post.published"]).await;
    assert!(receiver.all().iter().all(|one| !one.event().starts_with("account.")));
    assert_eq!(self::status(&world, &account).await, "active");
}

#[tokio::test]
async fn an_empty_refresh_token_replaces_nothing() {
    let world = world().approved().start().await;
    world.set_sandbox(json!({ "token_seconds": 3, "empty_refresh": true })).await;
    let account = world.connect("linkedin", "ada").await;
    let before = grant(&world, &account).await;
    assert!(before["refresh_token"].as_str().is_some_and(|token| !token.is_empty()));
    let answers = asked(&world, "linkedin", LINKEDIN, 2).await;
    assert!(answers.iter().all(|answer| *answer == 200), "{answers:?}");
    let after = grant(&world, &account).await;
    assert_eq!(after["refresh_token"], before["refresh_token"]);
    assert_ne!(after["access_token"], before["access_token"]);
}

#[tokio::test]
async fn the_end_of_a_grant_is_told_once_a_week_before() {
    const WEEK: u32 = 7 * 86_400;
    let world = world().approved().start().await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    // Refresh tokens of an app in Testing, and of one whose grants last a while.
    world.set_sandbox(json!({ "refresh_seconds": WEEK - 3600, "token_seconds": 4 })).await;
    let soon = world.connect("youtube", "ada").await;
    world.set_sandbox(json!({ "refresh_seconds": WEEK + 86_400, "token_seconds": 4 })).await;
    let later = world.connect("tiktok", "ada").await;
    let ends =
        |account: &Value| account["grant_expires_at"].as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
    let before = ends(&world.get(&format!("/social-accounts/{soon}")).await);
    let expiring = |all: Vec<Delivery>| -> Vec<Value> {
        let expiring = all.into_iter().filter(|one| one.event() == "account.token_expiring");
        expiring.map(|one| one.json()["data"].clone()).collect()
    };
    let told = expiring(receiver.events(&["account.token_expiring"]).await);
    let data = &told[0];
    assert_eq!((&data["accountId"], &data["network"]), (&json!(soon), &json!("youtube")));
    let at = data["grantExpiresAt"].as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
    assert_eq!(at, before);
    // Refreshes tell the seconds that are left, and are no new grant.
    for (platform, path) in [("youtube", "/token"), ("tiktok", "/v2/oauth/token/")] {
        let answers = asked(&world, platform, path, 2).await;
        assert!(answers.iter().all(|answer| *answer == 200), "{platform}: {answers:?}");
    }
    let after = ends(&world.get(&format!("/social-accounts/{soon}")).await);
    assert!((after - before).abs() < TimeDelta::minutes(1), "{before} and {after}");
    let page = world.get(&format!("/social-accounts/{later}")).await;
    assert!(ends(&page) > tests::now() + TimeDelta::days(7), "{page}");
    // A new login gives a new grant, whose end is told when it comes.
    world.set_sandbox(json!({ "refresh_seconds": 3600 })).await;
    assert_eq!(world.connect("tiktok", "ada").await, later);
    let told = expiring(receiver.events(&["account.token_expiring", "account.token_expiring"]).await);
    let mut accounts: Vec<_> = told.iter().map(|data| data["accountId"].as_str().unwrap()).collect();
    accounts.sort_unstable();
    let mut expected = [soon.as_str(), later.as_str()];
    expected.sort_unstable();
    assert_eq!(accounts, expected, "once for each grant");
    assert_eq!(status(&world, &soon).await, "active", "it works until its end");
}

#[tokio::test]
async fn a_grant_without_a_refresh_token_is_active_until_it_expires() {
    let world = world().approved().start().await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let account = world.connect("linkedin", "ada").await;
    let id = account.parse().unwrap();
    let mut bare = grant(&world, &account).await;
    let ends = tests::now() + TimeDelta::seconds(4);
    bare["refresh_token"] = Value::Null;
    bare["expires_at"] = json!(ends);
    let plain = serde_json::to_vec(&bare).unwrap();
    let sealed = world.opener.sealer().seal(&plain, &vault::aad_grant(world.owner, id));
    let stored = grants::replace(
        &world.db,
        world.owner,
        id,
        &sealed,
        1,
        Ends { token: Some(ends), grant: None },
        tests::now(),
    );
    assert!(stored.await.unwrap());
    let reported = receiver.events(&["account.token_expired"]).await;
    let at = reported[0].json()["timestamp"].as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
    assert!(at >= ends, "sent at {at}, although the grant is valid until {ends}");
    assert_eq!(status(&world, &account).await, "token_expired");
    unkept(&client().await, &account).await;
}

#[tokio::test]
async fn a_refresh_on_demand_reschedules_the_renewal() {
    let world = world().approved().start().await;
    world.connect("linkedin", "ada").await;
    world.expire_tokens("linkedin", "ada").await;
    world.set_sandbox(json!({ "token_seconds": 4 })).await;
    assert_eq!(posts(&world, 1).await[0]["status"], "published");
    // Without the new expiry the next renewal would be in an hour and a half.
    assert_eq!(asked(&world, "linkedin", LINKEDIN, 2).await, [200, 200]);
}

#[tokio::test]
async fn disconnecting_stops_renewal_and_reconnecting_restarts_it() {
    let world = world().approved().start().await;
    let account = world.connect("linkedin", "ada").await;
    let client = client().await;
    let id = renew_grant::id(account.parse().unwrap());
    let handle = client.get_workflow_handle::<UntypedWorkflow>(&id);
    wait_until("the renewal workflow", async || handle.describe(Default::default()).await).await;
    let path = format!("/social-accounts/{account}");
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
    replay(&world, "renew_grant-disconnected", &id).await;

    world.set_sandbox(json!({ "token_seconds": 3 })).await;
    assert_eq!(world.connect("linkedin", "ada").await, account);
    assert_eq!(asked(&world, "linkedin", LINKEDIN, 1).await, [200]);
}

/// Each renewal of X's single-use refresh tokens is a risk, and its access tokens live two hours.
#[tokio::test]
async fn a_grant_of_x_is_renewed_when_it_is_needed() {
    let world = world().approved().start().await;
    world.set_sandbox(json!({ "token_seconds": 2 })).await;
    world.connect("linkedin", "bob").await;
    world.connect("x", "ada").await;
    let answers = asked(&world, "linkedin", LINKEDIN, 3).await;
    assert!(answers.iter().all(|answer| *answer == 200), "{answers:?}");
    assert_eq!(asked(&world, "x", X, 0).await, [0; 0]);
    world.set_sandbox(json!({ "token_seconds": null })).await;
    assert_eq!(posts(&world, 1).await[0]["status"], "published");
    assert_eq!(asked(&world, "x", X, 0).await, [200]);
}

#[tokio::test]
async fn a_grant_without_an_expiry_is_not_renewed() {
    let world = world().approved().start().await;
    let facebook = world.connect("facebook", "ada").await;
    let x = world.connect("x", "ada").await;
    let client = client().await;
    let describe = async |account: &str| {
        let id = renew_grant::id(account.parse().unwrap());
        let handle = client.get_workflow_handle::<UntypedWorkflow>(id);
        handle.describe(Default::default()).await.is_ok()
    };
    // The outbox is sent in order, so that the workflow of the first account would exist by now.
    wait_until("a workflow of X's account", async || if_right(describe(&x).await, |is_kept| *is_kept)).await;
    assert!(!describe(&facebook).await);
    let handle = client.get_workflow_handle::<UntypedWorkflow>(renew_grant::id(facebook.parse().unwrap()));
    assert!(matches!(handle.get_result(Default::default()).await, Err(WorkflowGetResultError::NotFound(_))));
}
