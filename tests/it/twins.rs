//! Posts with the same text and picture on one account: which of them a live post belongs to.

use crate::world;
use serde_json::{Value, json};
use tests::{World, samples::png};

/// Reddit accepts a picture and names its post later. Its window of half an hour is nine seconds at this pace.
async fn start() -> World {
    let world = world().approved().pace(0.005).platforms(&["reddit"]).start().await;
    world.connect("reddit", "ada").await;
    world
}

async fn post(world: &World, filename: &str) -> Value {
    let medium = world.medium(filename, None, png(40, 40)).await;
    let container = json!({ "content": "The same words", "media": [{ "id": medium["id"] }] });
    world.post(json!({ "containers": [container], "accounts": ["ada"] })).await
}

/// Waits until a post was submitted.
async fn submitted(world: &World) {
    tests::wait_until("a submission", async || {
        let entries = world.journal("reddit", "ada").await;
        match entries.iter().any(|entry| entry["path"].as_str().unwrap().starts_with("/api/submit")) {
            true => Ok(()),
            false => Err("nothing was submitted"),
        }
    })
    .await;
}

fn is_lost_in_the_queue(post: &Value) {
    let target = &post["targets"][0];
    assert_eq!(
        (&target["status"], &target["error_code"]),
        (&json!("dead"), &json!("poll_timeout")),
        "{post:#}"
    );
    assert!(target["error_message"].as_str().unwrap().contains("it may be live"), "{post:#}");
}

/// The first picture is accepted and never processed. The answer to the second one is lost.
#[tokio::test]
async fn a_post_is_not_reported_by_the_id_of_another_with_the_same_text() {
    let world = start().await;
    let stuck = post(&world, "sandbox-stuck.png").await;
    submitted(&world).await;
    world.arm("reddit", "ada", "lost-reply", 1).await;
    let second = world.ended(&post(&world, "b.png").await).await;
    is_lost_in_the_queue(&world.ended(&stuck).await);
    assert_eq!(second["status"], "published", "{second:#}");
    assert_eq!(world.accepted("reddit", "ada").await, 1, "the second is posted once");
}

/// The first one has ended in doubt when the answer to the second one is lost.
#[tokio::test]
async fn a_post_that_ended_in_doubt_stands_in_nobodys_way() {
    let world = start().await;
    let stuck = world.ended(&post(&world, "sandbox-stuck.png").await).await;
    is_lost_in_the_queue(&stuck);
    world.arm("reddit", "ada", "lost-reply", 1).await;
    let second = world.ended(&post(&world, "b.png").await).await;
    assert_eq!(second["status"], "published", "{second:#}");
    let path = format!("/posts/{}/timeline", second["id"].as_str().unwrap());
    let timeline = world.get(&path).await;
    assert!(timeline["data"].as_array().unwrap().len() < 15, "{timeline:#}");
    assert_eq!(world.accepted("reddit", "ada").await, 1, "it is posted once");
}
