//! Analytics: metrics are read from the platforms on request and on a schedule, and a platform that fails
//! does not hide the metrics of the others.

use crate::{
    api::{fail, key, request},
    replay::{client, marked, replay},
    world,
};
use domain::{Mode, Owner, scope::Scope};
use reqwest::Method;
use serde_json::{Value, json};
use temporalio_client::{
    Client,
    schedules::{ScheduleDescription, ScheduleError, ScheduleHandle, ScheduleOverlapPolicy},
    tonic::Code,
};
use tests::{World, WorldBuilder, wait_until};
use workflows::{CollectMetrics, collect_metrics};

const FIGURES: [&str; 8] =
    ["impressions", "reach", "likes", "comments", "shares", "saves", "clicks", "video_views"];

/// Creates a post and waits until it is published on both accounts.
async fn published(world: &World, content: &str) -> Value {
    let post = world.post(json!({ "content": content, "accounts": ["ada", "ada.bsky.social"] })).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    ended
}

async fn connected() -> World {
    connect_to(world()).await
}

async fn connect_to(world: WorldBuilder) -> World {
    let world = world.start().await;
    world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    // A post that the platform's read API does not show yet has no metrics either.
    world.set_sandbox(json!({ "lag_ms": 0 })).await;
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

#[tokio::test]
async fn each_published_target_has_metrics_and_the_post_has_totals() {
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

    // A later request reads the metrics again.
    tick(&world).await;
    let later = analytics(&world, &post).await;
    for platform in ["x", "bluesky"] {
        let at = |shown: &Value| of(shown, platform).unwrap()["captured_at"].as_str().unwrap().to_owned();
        assert!(at(&later) > at(&shown), "{platform}");
    }
}

/// Waits until the clock has advanced by a millisecond, the resolution of `captured_at`.
async fn tick(world: &World) {
    let began = tests::now().timestamp_millis();
    while tests::now().timestamp_millis() <= began {
        world.get("/posts").await;
    }
}

#[tokio::test]
async fn a_failing_account_is_skipped_and_its_last_metrics_are_returned() {
    let world = connected().await;
    let (known, unknown) = (published(&world, "Asked before").await, published(&world, "Never asked").await);
    let first = analytics(&world, &known).await;
    world.revoke_grants("x", "ada").await;

    let shown = analytics(&world, &unknown).await;
    assert!(of(&shown, "x").is_none() && of(&shown, "bluesky").is_some(), "{shown:#}");

    tick(&world).await;
    let shown = analytics(&world, &known).await;
    let mut stale = of(&first, "x").unwrap().clone();
    assert_eq!(stale["stale"], false);
    stale["stale"] = json!(true);
    assert_eq!(of(&shown, "x"), Some(&stale), "the last stored metrics, with the time of their capture");
    assert_eq!(of(&shown, "bluesky").unwrap()["stale"], false);
    let at = |shown: &Value| of(shown, "bluesky").unwrap()["captured_at"].as_str().unwrap().to_owned();
    assert!(at(&shown) > at(&first));

    let accounts = world.get("/social-accounts?platform=x").await;
    assert_eq!(accounts["data"][0]["status"], "reauth_required");
}

#[tokio::test]
async fn reading_analytics_refreshes_an_expired_token() {
    let world = connected().await;
    let post = published(&world, "Expired meanwhile").await;
    world.expire_tokens("x", "ada").await;
    assert!(of(&analytics(&world, &post).await, "x").is_some());
    assert_eq!(world.get("/social-accounts?platform=x").await["data"][0]["status"], "active");
}

#[tokio::test]
async fn an_unpublished_post_has_no_analytics() {
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
async fn analytics_require_the_scope_and_the_owner() {
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
async fn without_workers_stored_metrics_are_returned_or_else_503() {
    let mut world = connect_to(world().own()).await;
    let (known, unknown) = (published(&world, "Asked before").await, published(&world, "Never asked").await);
    let mut first = analytics(&world, &known).await;
    for latest in first["metrics_by_account"].as_array_mut().unwrap() {
        latest["stale"] = json!(true);
    }
    world.kill("all").await;
    world.run("api").await;
    let (shown, refused) = tokio::join!(
        analytics(&world, &known),
        fail(request(&world, Method::GET, &path(&unknown)), 503, "unavailable")
    );
    assert_eq!(shown, first);
    assert!(refused.0["retry-after"].to_str().unwrap().parse::<u32>().unwrap() > 0);
}

/// Waits until `right` holds for a schedule.
pub(crate) async fn scheduled(
    handle: &ScheduleHandle<Client>,
    mut right: impl FnMut(Result<&ScheduleDescription, Code>) -> bool,
) {
    let look = async || {
        let found = handle.describe(Default::default()).await;
        let found = found.as_ref().map_err(|error| match error {
            ScheduleError::Rpc(status) => status.code(),
            other => panic!("{other}"),
        });
        if right(found) { Ok(()) } else { Err(format!("{found:?}")) }
    };
    wait_until("the schedule", look).await;
}

pub(crate) fn every(found: Result<&ScheduleDescription, Code>) -> Option<i64> {
    let schedule = found.ok()?.raw().schedule.as_ref()?;
    Some(schedule.spec.as_ref()?.interval.first()?.interval?.seconds)
}

/// Triggers a schedule and returns the id of the workflow that it starts.
pub(crate) async fn triggered(handle: &ScheduleHandle<Client>) -> String {
    // Workflows that a schedule starts in the same second differ only in their run ids.
    let runs = |found: &ScheduleDescription| -> Vec<(String, String)> {
        found.recent_actions().into_iter().map(|run| (run.run_id, run.workflow_id)).collect()
    };
    let (mut before, mut after) = (Vec::new(), Vec::new());
    scheduled(handle, |found| found.map(|found| before = runs(found)).is_ok()).await;
    handle.trigger(ScheduleOverlapPolicy::AllowAll, Default::default()).await.unwrap();
    scheduled(handle, |found| {
        after = found.map(runs).unwrap_or_default();
        after.retain(|run| !before.contains(run));
        !after.is_empty()
    })
    .await;
    after.remove(0).1
}

/// Triggers a collection of metrics and returns the result of its workflow.
async fn collect(world: &World, temporal: &Client, handle: &ScheduleHandle<Client>) -> Value {
    let id = triggered(handle).await;
    replay(world, "collect_metrics", &id).await;
    let run = temporal.get_workflow_handle::<CollectMetrics>(&id);
    serde_json::to_value(run.get_result(Default::default()).await.unwrap()).unwrap()
}

#[tokio::test]
async fn metrics_are_collected_on_a_schedule() {
    // At this pace the waits of an hour take milliseconds.
    let mut world = world().pace(0.000_001).set("FANFARE_COLLECT_EVERY", "7200").everywhere().start().await;
    world.set_sandbox(json!({ "lag_ms": 0 })).await;
    world.connect("threads", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    let temporal = client().await;
    let handle = temporal.get_schedule_handle(collect_metrics::id(world.variable("FANFARE_TASK_QUEUE")));
    scheduled(&handle, |found| every(found) == Some(7200)).await;

    let (first, second) =
        (published(&world, &marked("First")).await, published(&world, &marked("Second")).await);
    let counts = |read: u32, failed: u32, left: u32| json!({ "read": read, "failed": failed, "left": left });
    // X charges for reading, so that its figures are read on request only.
    world.connect("x", "bob").await;
    world.ended(&world.post(json!({ "content": marked("Third"), "accounts": ["bob"] })).await).await;
    assert_eq!(collect(&world, &temporal, &handle).await, counts(4, 0, 0));
    // A failing account is tried once, skipped, and does not stop the collection for the others.
    world.revoke_grants("threads", "ada").await;
    assert_eq!(collect(&world, &temporal, &handle).await, counts(2, 1, 1));
    assert_eq!(world.get("/social-accounts?platform=threads").await["data"][0]["status"], "reauth_required");
    assert_eq!(collect(&world, &temporal, &handle).await, counts(2, 0, 0));

    for post in [&first, &second] {
        let plain = analytics(&world, post).await;
        assert_eq!(plain.get("history"), None);
        let shown = world.get(&format!("{}?history=true", path(post))).await;
        let history = shown["history"].as_array().unwrap();
        let of = |platform: &str| history.iter().filter(|entry| entry["platform"] == platform).count();
        // The collected ones, and one from each of the two requests.
        assert_eq!((of("threads"), of("bluesky")), (1, 5), "{shown:#}");
        let times: Vec<_> = history.iter().map(|entry| entry["captured_at"].as_str().unwrap()).collect();
        assert!(times.is_sorted(), "{times:?}");
        for latest in shown["metrics_by_account"].as_array().unwrap() {
            let mut latest = latest.clone();
            latest.as_object_mut().unwrap().remove("stale");
            assert!(history.contains(&latest), "{latest} is missing from {history:#?}");
        }
    }
    let wrong = format!("{}?history=often", path(&first));
    let (_, problem) = fail(request(&world, Method::GET, &wrong), 400, "invalid_request").await;
    assert_eq!(problem["errors"][0]["path"], json!(["history"]));

    // A process that starts with another interval updates the schedule; with zero it deletes it.
    world.set("FANFARE_COLLECT_EVERY", "3600");
    world.run("worker").await;
    scheduled(&handle, |found| every(found) == Some(3600)).await;
    world.set("FANFARE_COLLECT_EVERY", "0");
    world.run("worker").await;
    scheduled(&handle, |found| found.err() == Some(Code::NotFound)).await;
}
