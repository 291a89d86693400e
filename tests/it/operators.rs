//! Operations in Temporal's UI and CLI: terminate, cancel, reset, start again, signal.
//!
//! None of it doubles a post, leaves a row open or gives two ends, and what was reset goes on. Each is
//! done here with the real CLI.

use crate::{PROGRAM, replay, world};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};
use tests::{Delivery, Receiver, World, temporal};

fn id(of: &Value) -> &str {
    of["id"].as_str().unwrap()
}

/// The workflows of a post with one target.
fn workflows(post: &Value) -> (String, String) {
    (format!("post-{}", id(post)), format!("target-{}", id(&post["targets"][0])))
}

async fn cli(args: &[&str]) -> String {
    temporal(&PROGRAM, args).await
}

/// Starts a workflow over from its first task.
async fn reset(workflow: &str) {
    let args = ["workflow", "reset", "--type", "FirstWorkflowTask", "--reason", "a test", "-w"];
    cli(&[&args[..], &[workflow]].concat()).await;
}

/// Exactly one end: the post's and its target's, each told once, however often it was delivered.
async fn told_once(receiver: &Receiver, ended: &Value) {
    let (target, post) = match ended["status"].as_str() {
        Some("published") => ("post.target.published", "post.published"),
        _ => ("post.target.failed", "post.error"),
    };
    receiver.events(&[target, post]).await;
    let told = receiver.all();
    let told: BTreeSet<_> =
        told.iter().map(|one| (one.event(), one.header("x-fanfare-event-id").to_owned())).collect();
    let mut names: Vec<_> = told.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let mut expected = [target, post];
    expected.sort_unstable();
    assert_eq!(names, expected);
}

struct Scene {
    world: World,
    receiver: Receiver,
}

impl Scene {
    async fn at(pace: f64) -> Self {
        let world = world().pace(pace).start().await;
        world.connect("threads", "ada").await;
        let receiver = Receiver::start().await;
        world.subscribe(&receiver.url).await;
        Self { world, receiver }
    }

    async fn post(&self, content: &str) -> Value {
        self.world.post(json!({ "content": content, "accounts": ["ada"] })).await
    }

    async fn attempt_failed(&self, content: &str) -> Value {
        let post = self.post(content).await;
        let failed = |post: &Value| post["targets"][0]["status"] == "failed";
        self.world.until(id(&post), "a failed attempt", failed).await;
        post
    }
}

#[tokio::test]
async fn a_post_that_is_reset_while_its_target_publishes_goes_out_once() {
    let scene = Scene::at(0.01).await;
    let post = scene.post("Slow #sandbox-slow").await;
    scene.world.until(id(&post), "its attempt", |post| post["status"] == "publishing").await;
    let (workflow, _) = workflows(&post);
    reset(&workflow).await;
    let ended = scene.world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    // The run that the reset made ends too.
    replay::replay(&replay::client().await, "publish_post-reset", &workflow).await;
    told_once(&scene.receiver, &ended).await;
    assert_eq!(scene.world.accepted("threads", "ada").await, 1);
}

#[tokio::test]
async fn targets_that_wait_go_on_when_their_post_is_reset() {
    // The next attempt comes in a minute, whatever the pace.
    let scene = Scene::at(0.05).await;
    let post = scene.attempt_failed("Refused #sandbox-429x1").await;
    let (workflow, target) = workflows(&post);
    reset(&workflow).await;
    reset(&target).await;
    let ended = scene.world.ended(&post).await;
    assert_eq!(
        (&ended["status"], &ended["targets"][0]["attempts"]),
        (&json!("published"), &json!(2)),
        "{ended:#}"
    );
    told_once(&scene.receiver, &ended).await;
    assert_eq!(scene.world.accepted("threads", "ada").await, 1);
}

#[tokio::test]
async fn a_target_that_is_reset_while_it_publishes_goes_out_once() {
    let scene = Scene::at(0.01).await;
    let post = scene.post("Slow #sandbox-slow").await;
    scene.world.until(id(&post), "its attempt", |post| post["status"] == "publishing").await;
    reset(&workflows(&post).1).await;
    let ended = scene.world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    told_once(&scene.receiver, &ended).await;
    assert_eq!(scene.world.accepted("threads", "ada").await, 1);
}

#[tokio::test]
async fn a_target_that_is_terminated_while_it_publishes_ends_once() {
    for ending in ["terminate", "cancel"] {
        let scene = Scene::at(0.01).await;
        let post = scene.post("Slow #sandbox-slow").await;
        scene.world.until(id(&post), "its attempt", |post| post["status"] == "publishing").await;
        cli(&["workflow", ending, "-w", &workflows(&post).1]).await;
        let ended = scene.world.ended(&post).await;
        // It was on its way: a look-up finds it, however its workflow was ended.
        assert_eq!(ended["status"], "published", "{ending}: {ended:#}");
        replay::replay(&replay::client().await, "publish_post-stopped", &workflows(&post).0).await;
        told_once(&scene.receiver, &ended).await;
        assert_eq!(scene.world.accepted("threads", "ada").await, 1);
    }
}

#[tokio::test]
async fn a_waiting_target_that_is_ended_says_that_an_operator_did() {
    for ending in ["terminate", "cancel"] {
        let scene = Scene::at(1.0).await;
        let post = scene.attempt_failed("Refused #sandbox-429").await;
        cli(&["workflow", ending, "-w", &workflows(&post).1]).await;
        let ended = scene.world.ended(&post).await;
        let target = &ended["targets"][0];
        assert_eq!((&ended["status"], &target["status"]), (&json!("failed"), &json!("dead")), "{ended:#}");
        assert_eq!(target["error_message"], "an operator stopped it in Temporal");
        told_once(&scene.receiver, &ended).await;
        assert_eq!(scene.world.accepted("threads", "ada").await, 0);
    }
}

#[tokio::test]
async fn a_scheduled_post_that_is_terminated_goes_out_all_the_same() {
    let scene = Scene::at(0.01).await;
    let body = json!({ "content": "Later", "accounts": ["ada"], "scheduled_at": "2040-01-01T00:00:00Z" });
    let post = scene.world.post(body).await;
    scene.world.until(id(&post), "its workflow", |post| post["targets"][0]["status"] == "queued").await;
    cli(&["workflow", "terminate", "-w", &workflows(&post).0]).await;
    // Its time comes.
    tests::sql(&scene.world.db, "update posts set scheduled_at = now()").await;
    let ended = scene.world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    told_once(&scene.receiver, &ended).await;
    assert_eq!(scene.world.accepted("threads", "ada").await, 1);
}

#[tokio::test]
async fn a_scheduled_post_that_is_canceled_in_temporal_ends() {
    let scene = Scene::at(0.01).await;
    let body = json!({ "content": "Never", "accounts": ["ada"], "scheduled_at": "2040-01-01T00:00:00Z" });
    let post = scene.world.post(body).await;
    scene.world.until(id(&post), "its workflow", |post| post["targets"][0]["status"] == "queued").await;
    cli(&["workflow", "cancel", "-w", &workflows(&post).0]).await;
    let ended = scene.world.ended(&post).await;
    assert_eq!(
        (&ended["status"], &ended["targets"][0]["status"]),
        (&json!("failed"), &json!("dead")),
        "{ended:#}"
    );
    assert_eq!(ended["targets"][0]["error_message"], "an operator stopped it in Temporal");
    told_once(&scene.receiver, &ended).await;
}

#[tokio::test]
async fn a_terminated_post_leaves_its_targets_alone() {
    let scene = Scene::at(0.05).await;
    let post = scene.attempt_failed("Refused #sandbox-429x1").await;
    cli(&["workflow", "terminate", "-w", &workflows(&post).0]).await;
    let ended = scene.world.ended(&post).await;
    assert_eq!(
        (&ended["status"], &ended["targets"][0]["attempts"]),
        (&json!("published"), &json!(2)),
        "{ended:#}"
    );
    told_once(&scene.receiver, &ended).await;
    assert_eq!(scene.world.accepted("threads", "ada").await, 1);
}

#[tokio::test]
async fn what_has_ended_may_be_started_again() {
    let scene = Scene::at(0.01).await;
    let post = scene.post("Once").await;
    let ended = scene.world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    told_once(&scene.receiver, &ended).await;
    let client = replay::client().await;
    let (workflow, target) = workflows(&post);
    let events = scene.receiver.all();
    let event = format!("event-{}", events[0].header("x-fanfare-event-id"));
    for workflow in [&workflow, &target, &event] {
        replay::replay(&client, "again", workflow).await;
        let run = cli(&["workflow", "describe", "-w", workflow, "--output", "json"]).await;
        let run: Value = serde_json::from_str(&run).unwrap();
        let shown = cli(&["workflow", "show", "-w", workflow, "--output", "json"]).await;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let begun = &shown["events"][0]["workflowExecutionStartedEventAttributes"];
        let input = begun["input"]["payloads"][0]["data"].as_str().unwrap();
        let input = String::from_utf8(STANDARD.decode(input).unwrap()).unwrap();
        let queue = begun["taskQueue"]["name"].as_str().unwrap();
        let kind = run["workflowExecutionInfo"]["type"]["name"].as_str().unwrap();
        // As the UI's "Start Workflow Like This One" does, first under the same id, then under another.
        for id in [workflow.clone(), format!("{workflow}-again")] {
            let start =
                ["workflow", "start", "--type", kind, "--task-queue", queue, "--input", &input, "-w", &id];
            cli(&start).await;
            replay::replay(&client, "again", &id).await;
        }
        reset(workflow).await;
        replay::replay(&client, "again", workflow).await;
    }
    assert_eq!(scene.receiver.all().len(), 2, "every end is told once");
    assert_eq!(scene.world.accepted("threads", "ada").await, 1);
    assert_eq!(scene.world.get(&format!("/posts/{}", id(&post))).await["targets"], ended["targets"]);
}

#[tokio::test]
async fn signals_that_can_not_be_read_are_ignored() {
    // The next attempt comes when it is asked for, or in a minute.
    let scene = Scene::at(1.0).await;
    let post = scene.attempt_failed("Refused #sandbox-429x1").await;
    let (workflow, target) = workflows(&post);
    for (workflow, signal) in [(&workflow, "post_changed"), (&target, "attempt_failed"), (&target, "unknown")]
    {
        for input in ["\"garbage\"", "{}", "[1,2]"] {
            cli(&["workflow", "signal", "-w", workflow, "--name", signal, "--input", input]).await;
        }
        cli(&["workflow", "signal", "-w", workflow, "--name", signal]).await;
    }
    let path = format!("/posts/{}/targets/{}/retry", id(&post), id(&post["targets"][0]));
    let (status, _) = scene.world.call(reqwest::Method::POST, &path, None).await;
    assert_eq!(status, reqwest::StatusCode::ACCEPTED);
    cli(&["workflow", "signal", "-w", &target, "--name", "retry_now", "--input", "\"garbage\""]).await;
    let ended = scene.world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    // Neither workflow is stuck at a task that fails again and again.
    let client = replay::client().await;
    replay::replay(&client, "publish_target-signaled", &target).await;
    replay::replay(&client, "publish_post-signaled", &workflow).await;
    told_once(&scene.receiver, &ended).await;
    assert_eq!(scene.world.accepted("threads", "ada").await, 1);
}

#[tokio::test]
async fn a_delivery_whose_workflow_is_ended_is_made_all_the_same() {
    for ending in ["terminate", "cancel"] {
        let scene = Scene::at(0.01).await;
        // Both events are refused twice.
        scene.receiver.answer([500, 500, 500, 500]);
        let post = scene.post("Told").await;
        let first = scene.receiver.until("an attempt", |all| !all.is_empty()).await.remove(0);
        let event = format!("event-{}", first.header("x-fanfare-event-id"));
        cli(&["workflow", ending, "-w", &event]).await;
        let ended = scene.world.ended(&post).await;
        told_once(&scene.receiver, &ended).await;
    }
}

#[tokio::test]
async fn a_delivery_that_is_reset_is_not_made_twice() {
    let scene = Scene::at(0.01).await;
    scene.receiver.answer([500]);
    let post = scene.post("Told").await;
    let first = scene.receiver.until("an attempt", |all| !all.is_empty()).await.remove(0);
    let event = format!("event-{}", first.header("x-fanfare-event-id"));
    reset(&event).await;
    let ended = scene.world.ended(&post).await;
    told_once(&scene.receiver, &ended).await;
    replay::replay(&replay::client().await, "deliver_event-reset", &event).await;
    let same = |one: &&Delivery| one.header("x-fanfare-event-id") == first.header("x-fanfare-event-id");
    assert_eq!(scene.receiver.all().iter().filter(same).count(), 2, "refused once, then delivered");
}

/// The database's clock is a minute ahead of the worker's.
#[tokio::test]
async fn a_worker_whose_clock_is_far_off_does_not_start() {
    let world = world().start().await;
    tests::sql(
        &world.db,
        "create schema ahead;
         create function ahead.clock_timestamp() returns timestamptz language sql
           return pg_catalog.clock_timestamp() + interval '1 minute';
         do $$ begin
           execute format('alter database %I set search_path = ahead, pg_catalog, public', current_database());
         end $$;",
    )
    .await;
    let ended = tokio::time::timeout(Duration::from_secs(60), world.command(&["worker"])).await;
    let ended = ended.expect("it ends");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success(), "{told}");
    assert!(told.contains("this machine's clock and the database's differ by"), "{told}");
}
