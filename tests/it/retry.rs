//! A failed target waits for its next attempt, unless somebody wants it now.

use crate::world;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::World;

fn path(post: &Value) -> String {
    format!(
        "/posts/{}/targets/{}/retry",
        post["id"].as_str().unwrap(),
        post["targets"][0]["id"].as_str().unwrap()
    )
}

async fn failed(world: &World, post: &Value) -> Value {
    let id = post["id"].as_str().unwrap();
    world.until(id, "a failed attempt", |post| post["targets"][0]["status"] == "failed").await
}

#[tokio::test]
async fn a_failed_target_is_tried_again_at_once() {
    // At the contract's own pace five refusals take some eight minutes by themselves.
    let world = world().pace(1.0).start().await;
    world.connect("bluesky", "ada.bsky.social").await;
    let body = json!({ "content": "Refused #sandbox-503x5", "accounts": ["ada.bsky.social"] });
    let post = world.post(body).await;
    let (mut seen, mut hurried) = (0, 0);
    let ended = loop {
        let found = world
            .until(post["id"].as_str().unwrap(), "another attempt", |post| {
                let target = &post["targets"][0];
                post["status"] == "published"
                    || target["status"] == "failed" && target["attempts"].as_i64() > Some(seen)
            })
            .await;
        if found["status"] == "published" {
            break found;
        }
        assert_eq!(found["targets"][0]["error_code"], "upstream_503");
        seen = found["targets"][0]["attempts"].as_i64().unwrap();
        let (status, target) = world.call(Method::POST, &path(&post), None).await;
        if status == StatusCode::CONFLICT {
            // The next attempt has begun by itself between the look and the call.
            continue;
        }
        assert_eq!((status, &target["status"]), (StatusCode::ACCEPTED, &json!("failed")), "{target}");
        assert!(target["next_attempt_at"].is_string(), "{target}");
        hurried += 1;
    };
    assert_eq!(ended["targets"][0]["attempts"], 6, "{ended:#}");
    assert!(hurried > 0, "no attempt was brought forward");
    assert_eq!(world.accepted("bluesky", "ada.bsky.social").await, 1);
    let timeline = world.get(&format!("/posts/{}/timeline", post["id"].as_str().unwrap())).await;
    let entries = timeline["data"].as_array().unwrap();
    assert_eq!(entries.iter().filter(|entry| entry["kind"] == "retry").count(), hurried, "{timeline:#}");
    assert_eq!(timeline["next"], json!([]));
}

#[tokio::test]
async fn a_look_that_comes_too_early_costs_no_attempt() {
    // X refuses after the fact: only when its lists have caught up can be said that nothing is live.
    let mut world = world().pace(1.0).start().await;
    world.connect("x", "ada").await;
    let post = world.post(json!({ "content": "Refused #sandbox-503", "accounts": ["ada"] })).await;
    failed(&world, &post).await;
    for looks in 1..=3 {
        let (status, problem) = world.call(Method::POST, &path(&post), None).await;
        // A conflict when the look has begun by itself in between.
        assert!([StatusCode::ACCEPTED, StatusCode::CONFLICT].contains(&status), "{problem}");
        let timeline = format!("/posts/{}/timeline", post["id"].as_str().unwrap());
        let has_failed = |timeline: &Value| {
            let entries = timeline["data"].as_array().unwrap();
            entries.iter().filter(|entry| entry["kind"] == "failure").count() > looks
        };
        world.until_at(&timeline, "another failure", has_failed).await;
    }
    let target = &failed(&world, &post).await["targets"][0];
    assert_eq!(target["attempts"], 1, "{target:#}");
    world.leave_post(&post, "it is tried ten times within hours");
}

#[tokio::test]
async fn what_waits_for_nothing_can_not_be_hurried() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let far = "2040-01-01T00:00:00Z";
    let waiting = world.post(json!({ "content": "Far", "accounts": ["ada"], "scheduled_at": far })).await;
    let live = world.post(json!({ "content": "Live", "accounts": ["ada"] })).await;
    let dead = world.post(json!({ "content": "Dead #sandbox-400", "accounts": ["ada"] })).await;
    assert_eq!(world.ended(&live).await["status"], "published");
    assert_eq!(world.ended(&dead).await["status"], "failed");
    for post in [&waiting, &live, &dead] {
        let (status, problem) = world.call(Method::POST, &path(post), None).await;
        assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{problem}");
    }
    let other = path(&live).replace(live["id"].as_str().unwrap(), dead["id"].as_str().unwrap());
    for path in [other.as_str(), "/posts/7/targets/8/retry"] {
        let (status, _) = world.call(Method::POST, path, None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn the_timeline_tells_what_comes_next_and_when() {
    let world = world().pace(1.0).start().await;
    world.connect("x", "ada").await;
    let post = world.post(json!({ "content": "Refused #sandbox-503", "accounts": ["ada"] })).await;
    let path = format!("/posts/{}", post["id"].as_str().unwrap());
    loop {
        let before = failed(&world, &post).await;
        let timeline = world.get(&format!("{path}/timeline")).await;
        if world.get(&path).await != before {
            // The next attempt has come between the two.
            continue;
        }
        let target = &before["targets"][0];
        assert!(target["next_attempt_at"].is_string(), "{target}");
        let step = json!({ "target_id": target["id"], "action": "retry", "at": target["next_attempt_at"] });
        assert_eq!(timeline["next"], json!([step]), "{timeline:#}");
        break;
    }
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
}
