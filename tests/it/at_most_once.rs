//! A post is published exactly once despite lost responses and killed workers, and reaches a final status.
//!
//! `accepted` counts the posts in the sandbox's journal, so that a duplicate shows although the API hides it.

use crate::world;
use serde_json::{Value, json};
use std::time::Duration;
use tests::{Receiver, World, WorldBuilder};

const ACCOUNTS: [(&str, &str); 2] = [("x", "ada"), ("bluesky", "ada.bsky.social")];

async fn publishes_once(world: &World, content: &str, expected: usize) {
    let post = world.post(json!({ "content": content, "accounts": ["ada", "ada.bsky.social"] })).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{content}: {ended:#}");
    for (platform, account) in ACCOUNTS {
        assert_eq!(world.accepted(platform, account).await, expected, "{content} on {platform}");
    }
}

async fn connected() -> World {
    connect_to(world()).await
}

async fn connect_to(world: WorldBuilder) -> World {
    let world = world.start().await;
    for (platform, account) in ACCOUNTS {
        world.connect(platform, account).await;
    }
    world
}

#[tokio::test]
async fn a_lost_reply_publishes_once() {
    let world = connected().await;
    publishes_once(&world, "Heard? #sandbox-lost-reply", 1).await;
}

#[tokio::test]
async fn an_error_after_accepting_publishes_once() {
    let world = connected().await;
    publishes_once(&world, "Done, said 500 #sandbox-500-after", 1).await;
}

#[tokio::test]
async fn an_unreadable_response_publishes_once() {
    let world = connected().await;
    publishes_once(&world, "Done, said what? #sandbox-garbage", 1).await;
}

/// The publishing call of the first post is dropped; the second is published before the first is located.
#[tokio::test]
async fn two_posts_with_the_same_text_are_both_published() {
    let world = world().approved().pace(0.1).platforms(&["google_business"]).start().await;
    let account = world.connect("google_business", "ada").await;
    let body = json!({ "content": "The same words #sandbox-dropx1", "accounts": [account] });
    let first = world.post(body.clone()).await;
    let id = first["id"].as_str().unwrap();
    let first_failed = |post: &Value| post["targets"][0]["error_code"] == "network_error";
    world.until(id, "the first failed attempt", first_failed).await;
    let second = world.ended(&world.post(body).await).await;
    assert_eq!(second["status"], "published", "{second:#}");
    let first = world.ended(&first).await;
    assert_eq!(first["status"], "published", "{first:#}");
    let ids = [&first, &second].map(|post| post["targets"][0]["platform_post_id"].clone());
    assert_ne!(ids[0], ids[1], "both posts have the same platform post id");
    assert_eq!(world.accepted("google_business", "ada").await, 2);
}

#[tokio::test]
async fn a_lost_reply_within_a_thread_publishes_each_container_once() {
    let world = connected().await;
    let post = world
        .post(json!({
            "containers": [{ "content": "One #sandbox-lost-reply" }, { "content": "Two #sandbox-lost-reply" }],
            "accounts": ["ada", "ada.bsky.social"],
        }))
        .await;
    world.completed(&post, 2).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    for (platform, account) in ACCOUNTS {
        assert_eq!(world.accepted(platform, account).await, 2, "{platform}");
    }
}

/// Holds one call of an account at the sandbox, kills the worker during it, and starts another worker.
async fn killed_at(platform: &str, account: &str, nth: usize, when: &str) {
    let mut world = world().running(&["api", "worker"]).platforms(&[platform]).start().await;
    world.connect(platform, account).await;
    let hold = json!({ "platform": platform, "account": account, "nth": nth, "when": when });
    let hold = world.hold(hold).await;
    let post = world
        .post(json!({
            "containers": [{ "content": "Main" }, { "content": "Comment" }],
            "accounts": [account],
        }))
        .await;
    hold.until_held().await;
    world.kill("worker").await;
    hold.release().await;
    world.run("worker").await;
    world.completed(&post, 1).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{platform} call {nth} {when}: {ended:#}");
    assert_eq!(world.accepted(platform, account).await, 2, "{platform} killed {when} call {nth}");
}

#[tokio::test]
async fn a_worker_killed_before_the_publishing_call_of_x_publishes_once() {
    killed_at("x", "ada", 1, "before").await;
}

#[tokio::test]
async fn a_worker_killed_after_the_publishing_call_of_x_publishes_once() {
    killed_at("x", "ada", 1, "after").await;
}

#[tokio::test]
async fn a_worker_killed_after_the_comment_of_x_publishes_once() {
    killed_at("x", "ada", 2, "after").await;
}

#[tokio::test]
async fn a_worker_killed_before_the_publishing_call_of_bluesky_publishes_once() {
    killed_at("bluesky", "ada.bsky.social", 1, "before").await;
}

#[tokio::test]
async fn a_worker_killed_after_the_publishing_call_of_bluesky_publishes_once() {
    killed_at("bluesky", "ada.bsky.social", 1, "after").await;
}

#[tokio::test]
async fn a_worker_killed_within_the_comment_of_bluesky_publishes_once() {
    killed_at("bluesky", "ada.bsky.social", 2, "after").await;
}

#[tokio::test]
async fn posts_created_while_no_worker_runs_are_published_by_the_next_worker() {
    let mut world = connect_to(world().running(&["api"])).await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let post = world.post(json!({ "content": "Patience", "accounts": ["ada", "ada.bsky.social"] })).await;
    world.run("worker").await;
    assert_eq!(world.ended(&post).await["status"], "published");
    receiver.events(&["post.target.published", "post.target.published", "post.published"]).await;
    assert!(world.stop("worker").await && world.stop("api").await, "both exit with success");
}

/// Accounts of platforms that publish a text alone. All but Bluesky would publish it twice.
const LAGGING: [(&str, &str); 6] = [
    ("x", "ada"),
    ("linkedin", "ada"),
    ("facebook", "ada"),
    ("threads", "ada"),
    ("google_business", "ada"),
    ("bluesky", "ada.bsky.social"),
];

/// Publishes a text everywhere and loses the responses, after withholding them if `is_held`. Lists show the posts
/// later, and no platform refuses a duplicate.
async fn is_found_in_lists_that_lag(pace: f64, content: &str, is_held: bool) {
    let lag = Duration::from_millis(sandbox::Settings::default().lag_ms);
    assert!(lag > Duration::ZERO && lag * 2 <= publishing::READ_LAG_FLOOR, "{lag:?}");
    let platforms = LAGGING.map(|(platform, _)| platform);
    let world = world().approved().pace(pace).platforms(&platforms).start().await;
    world.set_sandbox(json!({ "duplicate_ms": 0 })).await;
    let mut accounts = Vec::new();
    let mut holds = Vec::new();
    for (platform, account) in LAGGING {
        accounts.push(world.connect(platform, account).await);
        if is_held {
            let hold = json!({ "platform": platform, "method": "POST", "when": "after" });
            holds.push(world.hold(hold).await);
        }
    }
    let post = world.post(json!({ "content": content, "accounts": accounts })).await;
    for hold in holds {
        hold.until_held().await;
        hold.release().await;
    }
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{content}: {ended:#}");
    for (platform, account) in LAGGING {
        let accepted = world.accepted(platform, account).await;
        assert_eq!(accepted, 1, "{platform}, pace {pace}, held {is_held}: {content}: {ended:#}");
    }
}

#[tokio::test]
async fn a_lost_reply_is_found_although_lists_lag_behind() {
    is_found_in_lists_that_lag(0.01, "Heard? #sandbox-lost-reply", false).await;
}

#[tokio::test]
async fn a_lost_reply_is_found_although_lists_lag_behind_and_waits_are_shortest() {
    is_found_in_lists_that_lag(0.001, "Heard? #sandbox-lost-reply", false).await;
}

#[tokio::test]
async fn a_hashtag_alone_is_found_after_its_reply_was_held_and_lost() {
    is_found_in_lists_that_lag(0.01, "#sandbox-lost-reply", true).await;
}
