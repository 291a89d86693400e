//! Engagement is asked for when somebody asks, and one silent platform hides nothing of the others.

use crate::{
    api::{fail, key, request},
    world,
};
use domain::{Mode, Owner, scope::Scope};
use reqwest::Method;
use serde_json::{Value, json};
use tests::World;

const FIGURES: [&str; 8] =
    ["impressions", "reach", "likes", "comments", "shares", "saves", "clicks", "video_views"];

/// A post that is live on both accounts.
async fn published(world: &World, content: &str) -> Value {
    let post = world.post(json!({ "content": content, "accounts": ["ada", "ada.bsky.social"] })).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    ended
}

async fn connected() -> World {
    let world = world().start().await;
    world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    // A post that a platform's reads do not show yet has no figures either.
    let settings = world.http.post(format!("{}/_settings", world.sandbox_url)).json(&json!({ "lag_ms": 0 }));
    assert!(settings.send().await.unwrap().status().is_success());
    world
}

async fn analytics(world: &World, post: &Value) -> Value {
    world.get(&path(post)).await
}

fn path(post: &Value) -> String {
    format!("/posts/{}/analytics", post["id"].as_str().unwrap())
}

fn of<'a>(analytics: &'a Value, platform: &str) -> Option<&'a Value> {
    analytics["metrics_by_account"].as_array().unwrap().iter().find(|entry| entry["platform"] == platform)
}

/// Tells the sandbox to end an account's tokens, or its whole grant.
async fn end(world: &World, what: &str) {
    let url = format!("{}/_accounts/x/ada/{what}", world.sandbox_url);
    assert!(world.http.post(url).send().await.unwrap().status().is_success());
}

#[tokio::test]
async fn each_published_target_shows_its_figures_and_all_their_totals() {
    let world = connected().await;
    let post = published(&world, "Look at me").await;
    let before = tests::now();
    let shown = analytics(&world, &post).await;
    assert_eq!(shown["post_id"], post["id"]);
    let entries = shown["metrics_by_account"].as_array().unwrap();
    let targets = post["targets"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "{shown:#}");
    for (entry, target) in entries.iter().zip(targets) {
        assert_eq!((&entry["target_id"], &entry["platform"]), (&target["id"], &target["platform"]));
        let at: chrono::DateTime<chrono::Utc> = entry["captured_at"].as_str().unwrap().parse().unwrap();
        assert!((before.timestamp() - 2..=tests::now().timestamp() + 2).contains(&at.timestamp()));
        assert!(entry["engagement_rate"].is_number());
    }
    for figure in FIGURES {
        let sum: u64 = entries.iter().map(|entry| entry[figure].as_u64().unwrap()).sum();
        assert_eq!(shown["aggregated_metrics"][format!("total_{figure}")], sum, "{figure}");
    }

    // What is shown is what the platforms say now, not what they said first.
    tick(&world).await;
    let later = analytics(&world, &post).await;
    for platform in ["x", "bluesky"] {
        let at = |shown: &Value| of(shown, platform).unwrap()["captured_at"].as_str().unwrap().to_owned();
        assert!(at(&later) > at(&shown), "{platform}");
    }
}

/// Lets the clock of captures move on by at least what is shown of it.
async fn tick(world: &World) {
    let began = tests::now().timestamp_millis();
    while tests::now().timestamp_millis() <= began {
        world.get("/posts").await;
    }
}

#[tokio::test]
async fn an_account_that_fails_is_skipped_and_shows_what_was_known_of_it() {
    let world = connected().await;
    let (known, unknown) = (published(&world, "Asked before").await, published(&world, "Never asked").await);
    let first = analytics(&world, &known).await;
    end(&world, "revoke").await;

    let shown = analytics(&world, &unknown).await;
    assert!(of(&shown, "x").is_none() && of(&shown, "bluesky").is_some(), "{shown:#}");

    tick(&world).await;
    let shown = analytics(&world, &known).await;
    assert_eq!(of(&shown, "x"), of(&first, "x"), "the last that was heard of it, with its time");
    let at = |shown: &Value| of(shown, "bluesky").unwrap()["captured_at"].as_str().unwrap().to_owned();
    assert!(at(&shown) > at(&first));

    let accounts = world.get("/social-accounts?platform=x").await;
    assert_eq!(accounts["data"][0]["status"], "reauth_required");
}

#[tokio::test]
async fn an_expired_token_is_refreshed_on_the_way() {
    let world = connected().await;
    let post = published(&world, "Expired meanwhile").await;
    end(&world, "tokens/expire").await;
    assert!(of(&analytics(&world, &post).await, "x").is_some());
    assert_eq!(world.get("/social-accounts?platform=x").await["data"][0]["status"], "active");
}

#[tokio::test]
async fn what_is_not_published_has_no_analytics() {
    let world = connected().await;
    let later = tests::now() + chrono::TimeDelta::days(1);
    for body in [
        json!({ "content": "Draft", "accounts": ["ada"], "is_draft": true }),
        json!({ "content": "Later", "accounts": ["ada"], "scheduled_at": later }),
    ] {
        let post = world.post(body).await;
        let (_, problem) = fail(request(&world, Method::GET, &path(&post)), 422, "unprocessable").await;
        assert!(problem["detail"].as_str().unwrap().contains("only after publishing"), "{problem}");
    }

    let refused = world.post(json!({ "content": "No #sandbox-400", "accounts": ["ada"] })).await;
    assert_eq!(world.ended(&refused).await["status"], "failed");
    let empty = analytics(&world, &refused).await;
    assert_eq!(empty["metrics_by_account"], json!([]));
    for figure in FIGURES {
        assert_eq!(empty["aggregated_metrics"][format!("total_{figure}")], 0);
    }

    let body = json!({ "content": "Half #sandbox-400", "accounts": ["ada"] });
    let gone = world.post(body).await;
    world.ended(&gone).await;
    world.call(Method::DELETE, &format!("/posts/{}", gone["id"].as_str().unwrap()), None).await;
    for path in
        [path(&gone), format!("/posts/{}/analytics", uuid::Uuid::now_v7()), "/posts/7/analytics".into()]
    {
        fail(request(&world, Method::GET, &path), 404, "not_found").await;
    }
}

#[tokio::test]
async fn analytics_are_for_those_who_may_see_them() {
    let world = connected().await;
    let post = published(&world, "Mine").await;
    let url = format!("{}{}", world.base, path(&post));
    let unscoped = key(&world, world.owner, &[Scope::PostsRead]).await;
    let (_, problem) = fail(world.http.get(&url).bearer_auth(unscoped), 403, "insufficient_scope").await;
    assert!(problem["detail"].as_str().unwrap().contains("analytics:read"));
    let live = Owner { mode: Mode::Live, ..world.owner };
    let other = key(&world, live, &[Scope::All]).await;
    fail(world.http.get(&url).bearer_auth(other), 404, "not_found").await;
}

#[tokio::test]
async fn without_workers_what_is_known_is_shown_and_else_the_call_asks_to_come_back() {
    let mut world = connected().await;
    let (known, unknown) = (published(&world, "Asked before").await, published(&world, "Never asked").await);
    let first = analytics(&world, &known).await;
    world.kill("all").await;
    world.run("api").await;
    let (shown, refused) = tokio::join!(
        analytics(&world, &known),
        fail(request(&world, Method::GET, &path(&unknown)), 503, "unavailable")
    );
    assert_eq!(shown, first);
    assert!(refused.0["retry-after"].to_str().unwrap().parse::<u32>().unwrap() > 0);
}
