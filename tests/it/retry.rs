//! A failed target waits for its next attempt, unless a client requests it immediately.

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
async fn a_failed_target_can_be_retried_immediately() {
    // In real time, five failures take about eight minutes without manual retries.
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
            // The next attempt has begun on its own between the poll and the call.
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
    let mut requests: Vec<_> =
        entries.iter().filter_map(|entry| entry["detail"]["request_id"].as_str()).collect();
    requests.sort_unstable();
    requests.dedup();
    assert_eq!(requests.len(), hurried + 1, "one creation and each retry: {timeline:#}");
    assert_eq!(timeline["next"], json!([]));
}

#[tokio::test]
async fn a_target_whose_account_rests_can_be_retried_immediately() {
    let mut world = world().pace(1.0).start().await;
    world.set_sandbox(json!({ "throttle_seconds": 900 })).await;
    world.connect("x", "ada").await;
    let throttled = world.post(json!({ "content": "Too much #sandbox-429", "accounts": ["ada"] })).await;
    failed(&world, &throttled).await;
    let post = world.post(json!({ "content": "Me too", "accounts": ["ada"] })).await;
    let rests = |post: &Value| post["targets"][0]["error_code"] == "rate_limited";
    world.until(post["id"].as_str().unwrap(), "its account rests", rests).await;
    let (status, target) = world.call(Method::POST, &path(&post), None).await;
    assert_eq!((status, &target["status"]), (StatusCode::ACCEPTED, &json!("queued")), "{target}");
    assert_eq!(world.ended(&post).await["status"], "published");
    world.leave_post(&throttled, "it is retried for a day");
}

#[tokio::test]
async fn an_early_lookup_consumes_no_attempt() {
    // X may publish and still return 503: a look-up is conclusive only once X's lists have caught up.
    let mut world = world().pace(1.0).start().await;
    world.connect("x", "ada").await;
    let post = world.post(json!({ "content": "Refused #sandbox-503", "accounts": ["ada"] })).await;
    failed(&world, &post).await;
    let reads = async |world: &World| {
        world.journal("x", "ada").await.iter().filter(|entry| entry["method"] == "GET").count()
    };
    let before = reads(&world).await;
    let timeline = format!("/posts/{}/timeline", post["id"].as_str().unwrap());
    let count = |timeline: &Value, kind: &str| {
        timeline["data"].as_array().unwrap().iter().filter(|entry| entry["kind"] == kind).count()
    };
    let mut requested_again = 0;
    for looks in 1..=3 {
        let (status, problem) = world.call(Method::POST, &path(&post), None).await;
        // A conflict if the look-up has begun on its own in between.
        assert!([StatusCode::ACCEPTED, StatusCode::CONFLICT].contains(&status), "{problem}");
        requested_again += usize::from(looks > 1 && status == StatusCode::ACCEPTED);
        tests::wait_until("another look-up", async || {
            let made = reads(&world).await;
            if made >= before + looks { Ok(()) } else { Err(made) }
        })
        .await;
        // The wait is noted once, and what comes of each further look that was requested.
        let is_told = |timeline: &Value| count(timeline, "waiting") > requested_again;
        world.until_at(&timeline, "the end of the look-up", is_told).await;
    }
    let target = &failed(&world, &post).await["targets"][0];
    assert!(target["error_message"].is_string() && target["next_attempt_at"].is_string(), "{target:#}");
    assert_eq!(target["attempts"], 1, "{target:#}");
    let timeline = world.get(&timeline).await;
    let counts = (count(&timeline, "failure"), count(&timeline, "waiting"));
    assert_eq!(counts, (1, 1 + requested_again), "{timeline:#}");
    world.leave_post(&post, "it is retried ten times within hours");
}

#[tokio::test]
async fn only_a_target_that_waits_for_an_attempt_can_be_retried() {
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
async fn the_timeline_lists_the_next_retry_and_its_time() {
    let world = world().pace(1.0).start().await;
    world.connect("x", "ada").await;
    let post = world.post(json!({ "content": "Refused #sandbox-503", "accounts": ["ada"] })).await;
    let path = format!("/posts/{}", post["id"].as_str().unwrap());
    loop {
        let before = failed(&world, &post).await;
        let timeline = world.get(&format!("{path}/timeline")).await;
        if world.get(&path).await != before {
            // The next attempt has begun between the two requests.
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

#[tokio::test]
async fn the_missing_comment_of_a_live_target_can_be_retried_immediately() {
    let world = world().pace(1.0).start().await;
    world.connect("bluesky", "ada.bsky.social").await;
    let containers = json!([{ "content": "Main" }, { "content": "Comment #sandbox-503x4" }]);
    let post = world.post(json!({ "containers": containers, "accounts": ["ada.bsky.social"] })).await;
    let timeline = format!("/posts/{}/timeline", post["id"].as_str().unwrap());
    let mut hurried = 0;
    loop {
        let found = world
            .until(post["id"].as_str().unwrap(), "the missing comment", |post| {
                let target = &post["targets"][0];
                target["status"] == "published"
                    && (target["next_attempt_at"].is_string() || target["error_code"].is_null())
            })
            .await;
        if found["targets"][0]["next_attempt_at"].is_null() {
            break;
        }
        let next = &world.get(&timeline).await["next"];
        let (status, target) = world.call(Method::POST, &path(&post), None).await;
        if status == StatusCode::CONFLICT {
            // The next attempt has begun on its own between the poll and the call.
            continue;
        }
        assert_eq!((status, &target["status"]), (StatusCode::ACCEPTED, &json!("published")), "{target}");
        assert!(next == &json!([]) || next[0]["action"] == "retry", "{next}");
        hurried += 1;
    }
    world.completed(&post, 1).await;
    assert!(hurried > 0, "no attempt was brought forward");
    assert_eq!(world.accepted("bluesky", "ada.bsky.social").await, 2);
}
