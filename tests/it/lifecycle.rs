//! Workers that are replaced, stopped and versioned while they have work.

use crate::{PROGRAM, world};
use futures::future::join_all;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    process::Output,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};
use tests::{PATIENCE, World, if_right, wait_until};

fn text(output: &Output) -> String {
    String::from_utf8([output.stdout.clone(), output.stderr.clone()].concat()).unwrap()
}

fn log(name: &str) -> PathBuf {
    tests::directory().join(format!("lifecycle-{name}"))
}

/// Waits until a log contains a text a number of times.
async fn logged(log: &PathBuf, words: &str, times: usize) {
    wait_until(words, async || {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        if_right(text, |text| text.matches(words).count() >= times)
    })
    .await;
}

/// Creates posts to both accounts at once, and checks that each is published once.
async fn load(world: &World, name: &str, posts: usize) {
    let begun = (0..posts).map(|number| {
        world.post(json!({ "content": format!("{name} {number}"), "accounts": ["ada", "ada.bsky.social"] }))
    });
    let begun = join_all(begun).await;
    for post in join_all(begun.iter().map(|post| world.ended(post))).await {
        let targets = post["targets"].as_array().unwrap();
        assert!(targets.iter().all(|target| target["attempts"] == 1), "{post:#}");
        assert_eq!(post["status"], "published", "{post:#}");
    }
}

async fn connected(world: World) -> World {
    world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    world
}

/// The sandbox's journal shows duplicates that the API hides.
async fn accepted(world: &World, posts: usize) {
    for (platform, account) in [("x", "ada"), ("bluesky", "ada.bsky.social")] {
        assert_eq!(world.accepted(platform, account).await, posts, "{platform}");
    }
}

#[tokio::test]
async fn workers_are_replaced_under_load_and_every_post_is_published_once() {
    let mut world = connected(world().running(&[]).set("FANFARE_RECYCLE_AFTER", "10").start().await).await;
    let log = log("replaced");
    world.set("RUST_LOG", "warn,fanfare_activities=info");
    world.log_to(&log);
    world.run("all").await;
    let pid = world.pids()[0];
    for round in 0..3 {
        load(&world, &format!("Round {round}"), 20).await;
    }
    // Each round has more than enough activities for one in each of two queues; some begin in the same moment.
    logged(&log, "Replaced the worker of", 4).await;
    accepted(&world, 60).await;
    assert_eq!(world.pids(), [pid], "the process is the same");
    assert!(world.stop("all").await);
}

/// A call that takes longer than an orchestrator's default grace period.
#[tokio::test]
async fn a_worker_that_is_stopped_waits_for_the_publishing_call_and_takes_no_further_work() {
    let mut world = connected(world().pace(1.0).running(&[]).start().await).await;
    let log = log("stopped");
    world.set("RUST_LOG", "warn,fanfare_activities=info");
    world.log_to(&log);
    for command in ["api", "worker"] {
        world.run(command).await;
    }
    let hold = world.hold(json!({ "platform": "x", "account": "ada", "method": "POST", "path_prefix": "/2/tweets", "when": "before" })).await;
    let post = world.post(json!({ "content": "Held", "accounts": ["ada"] })).await;
    hold.until_held().await;
    let pid = Pid::from_raw(world.pids()[1].try_into().unwrap());
    kill(pid, Signal::SIGTERM).unwrap();
    logged(&log, "The workers take no further tasks", 1).await;
    let stopping = world.post(json!({ "content": "Later", "accounts": ["ada.bsky.social"] })).await;
    let id = stopping["id"].as_str().unwrap();
    world.until(id, "a started workflow", |post| post["targets"][0]["status"] == "queued").await;
    // That the grace period is longer than a call can take is asserted beside it.
    assert_eq!(hold.phase("held", Duration::ZERO).await, "held", "the call under way was given up");
    hold.release().await;
    assert!(world.stop("worker").await, "it ends successfully");
    let waiting = world.get(&format!("/posts/{id}")).await;
    assert!(waiting["targets"][0]["attempts"] == 0, "{waiting:#}");
    let ended = world.ended(&post).await;
    assert_eq!(
        (&ended["status"], &ended["targets"][0]["attempts"]),
        (&json!("published"), &json!(1)),
        "{ended:#}"
    );
    world.run("worker").await;
    assert_eq!(world.ended(&stopping).await["status"], "published");
    accepted(&world, 1).await;
}

/// Its uploads are kept, and nothing has failed.
#[tokio::test]
async fn a_worker_that_is_stopped_while_it_prepares_hands_the_target_over() {
    let mut world = world().running(&["api", "worker"]).platforms(&["threads"]).start().await;
    world.connect("threads", "ada").await;
    // The container is created; publishing it comes after that.
    let hold =
        world.hold(json!({ "platform": "threads", "account": "ada", "nth": 1, "when": "before" })).await;
    let post = world.post(json!({ "content": "Handed over", "accounts": ["ada"] })).await;
    hold.until_held().await;
    assert!(world.stop("worker").await, "it ends successfully");
    hold.release().await;
    let path = format!("/posts/{}", post["id"].as_str().unwrap());
    let target = world.get(&path).await["targets"][0].clone();
    assert_eq!(
        (&target["status"], &target["attempts"], &target["error_code"]),
        (&json!("queued"), &json!(0), &Value::Null),
        "{target:#}"
    );
    let timeline = world.get(&format!("{path}/timeline")).await;
    let failed = timeline["data"].as_array().unwrap().iter().any(|entry| entry["kind"] == "failure");
    assert!(!failed, "{timeline:#}");
    world.run("worker").await;
    let ended = world.ended(&post).await;
    assert_eq!(
        (&ended["status"], &ended["targets"][0]["attempts"]),
        (&json!("published"), &json!(1)),
        "{ended:#}"
    );
    assert_eq!(world.accepted("threads", "ada").await, 1);
}

#[tokio::test]
async fn a_malformed_filter_of_the_log_is_reported() {
    let mut world = world().running(&[]).start().await;
    world.set("RUST_LOG", "fanfare=loudly");
    let ran = world.command(&["ops", "frozen"]).await;
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.contains("RUST_LOG is malformed"), "{said}");
}

#[tokio::test]
async fn a_wrong_setting_is_reported_by_its_variable_and_a_name_is_not_empty() {
    let mut world = world().running(&[]).start().await;
    for name in ["", "  ", "a\nb"] {
        let ran = world.command(&["org", "create", name]).await;
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(!ran.status.success() && said.contains("a name is needed"), "{said}");
    }
    world.set("FANFARE_RATE_LIMITS", "many");
    let ran = world.command(&["api"]).await;
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(
        ran.status.code() == Some(2) && said.contains("environment variable FANFARE_RATE_LIMITS"),
        "{said}"
    );
}

/// A publishing call is under way while the process finds that it uses more than a MiB.
#[tokio::test]
async fn a_process_beyond_its_memory_limit_finishes_what_it_has_begun_and_ends() {
    let mut world = connected(world().pace(1.0).running(&["api"]).start().await).await;
    let hold = world.hold(json!({ "platform": "x", "account": "ada", "method": "POST", "path_prefix": "/2/tweets", "when": "before" })).await;
    let post = world.post(json!({ "content": "Held", "accounts": ["ada"] })).await;
    let log = log("memory");
    world.set("RUST_LOG", "warn,fanfare_activities=info");
    world.log_to(&log);
    world.set("FANFARE_MEMORY_LIMIT", "1");
    let worker = world.run_watched("worker").await;
    hold.until_held().await;
    let metrics = world.metrics(&worker).await;
    assert_eq!(metrics.sum("fanfare_memory_limit_bytes", &[]), Some(f64::from(1 << 20)));
    assert!(metrics.sum("process_resident_memory_bytes", &[]) > Some(f64::from(1 << 20)));
    logged(&log, "FANFARE_MEMORY_LIMIT is 1 MiB: it finishes what it has begun and ends", 1).await;
    logged(&log, "The workers take no further tasks", 1).await;
    hold.release().await;
    let ended = world.ended(&post).await;
    assert_eq!(
        (&ended["status"], &ended["targets"][0]["attempts"]),
        (&json!("published"), &json!(1)),
        "{ended:#}"
    );
    assert!(!world.ended_by_itself("worker").await, "it asks to be started again");
    logged(&log, "FANFARE_MEMORY_LIMIT is 1 MiB: start it again", 1).await;
    assert_eq!(world.accepted("x", "ada").await, 1);
}

/// Runs `fanfare deployment`, and returns what it prints.
async fn deployment(world: &World, arguments: &[&str]) -> String {
    let ran = world.command(&[&["deployment"][..], arguments].concat()).await;
    assert!(ran.status.success(), "{arguments:?}: {}", text(&ran));
    String::from_utf8(ran.stdout).unwrap()
}

#[tokio::test]
async fn a_new_build_takes_over_and_every_post_is_published_once() {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("fanfare-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let world = world().running(&["api"]).set("FANFARE_DEPLOYMENT", &name).set("FANFARE_BUILD_ID", "one");
    let mut world = connected(world.start().await).await;
    world.set("FANFARE_START_TIMEOUT", &PATIENCE.as_secs().to_string());
    world.run("worker").await;
    let first = world.post(json!({ "content": "Before any build is current", "accounts": ["ada"] })).await;
    let shown = deployment(&world, &["current"]).await;
    assert_eq!(shown, format!("deployment {name}\nbuild one: current\n"));
    assert_eq!(world.ended(&first).await["status"], "published");
    load(&world, "On build one", 10).await;

    // It waits for its time while the builds change.
    let later = tests::now() + chrono::TimeDelta::hours(1);
    let body = json!({ "content": "Across builds", "accounts": ["ada.bsky.social"], "scheduled_at": later });
    let waiting = world.post(body).await;
    let path = format!("/posts/{}", waiting["id"].as_str().unwrap());
    world.until_at(&path, "a started workflow", |post| post["targets"][0]["status"] == "queued").await;

    world.set("FANFARE_BUILD_ID", "two");
    world.run("worker").await;
    let shown = deployment(&world, &["ramp", "--percent", "50"]).await;
    assert!(shown.contains("build one: current\n"), "{shown}");
    assert!(shown.contains("build two: gets 50 % of new workflows\n"), "{shown}");
    load(&world, "On both", 20).await;
    let shown = deployment(&world, &["current"]).await;
    assert!(shown.contains("build two: current\n"), "{shown}");
    let pid = Pid::from_raw(world.pids()[1].try_into().unwrap());
    kill(pid, Signal::SIGTERM).unwrap();
    load(&world, "On build two", 10).await;
    let now = json!({ "scheduled_at": null });
    assert_eq!(world.call(reqwest::Method::PATCH, &path, Some(&now)).await.0, 200);
    assert_eq!(world.ended(&waiting).await["status"], "published");
    for (platform, account, posts) in [("x", "ada", 41), ("bluesky", "ada.bsky.social", 41)] {
        assert_eq!(world.accepted(platform, account).await, posts, "{platform}");
    }

    // A workflow that began on the first build ended on the second, and says so.
    let workflow = format!("post-{}", waiting["id"].as_str().unwrap());
    let described =
        tests::temporal(&PROGRAM, &["workflow", "describe", "-w", &workflow, "--output", "json"]).await;
    let described: Value = serde_json::from_str(&described).unwrap();
    let versioning = &described["workflowExecutionInfo"]["versioningInfo"];
    assert_eq!(versioning["behavior"], "VERSIONING_BEHAVIOR_AUTO_UPGRADE", "{versioning:#}");
    assert_eq!(versioning["deploymentVersion"]["buildId"], "two", "{versioning:#}");
}
