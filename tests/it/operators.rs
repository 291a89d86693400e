//! Operations in Temporal's UI and CLI: terminate, cancel, reset, start again, signal.
//!
//! None of them duplicates a post, leaves a row open or reports two results, and a reset workflow continues.
//! The tests use the real CLI.

use crate::{PROGRAM, ops, replay, world};
use base64::{Engine, engine::general_purpose::STANDARD};
use futures::StreamExt;
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};
use tests::{Delivery, Receiver, World, if_right, temporal, wait_until};

fn id(of: &Value) -> &str {
    of["id"].as_str().unwrap()
}

/// Returns the workflow ids of a post and of its only target.
fn workflows(post: &Value) -> (String, String) {
    (format!("post-{}", id(post)), format!("target-{}", id(&post["targets"][0])))
}

async fn cli(args: &[&str]) -> String {
    temporal(&PROGRAM, args).await
}

/// Resets a workflow to its first task.
async fn reset(workflow: &str) {
    let args = ["workflow", "reset", "--type", "FirstWorkflowTask", "--reason", "a test", "-w"];
    cli(&[&args[..], &[workflow]].concat()).await;
}

/// Asserts that the post and its target each ended with one event, regardless of repeated deliveries.
async fn told_once(receiver: &Receiver, ended: &Value) {
    let (target, post) = match ended["status"].as_str() {
        Some("published") => ("post.target.published", "post.published"),
        _ => ("post.target.failed", "post.error"),
    };
    receiver.events(&[target, post]).await;
    let reported = receiver.all();
    let reported: BTreeSet<_> =
        reported.iter().map(|one| (one.event(), one.header("x-fanfare-event-id").to_owned())).collect();
    let mut names: Vec<_> = reported.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let mut expected = [target, post];
    expected.sort_unstable();
    assert_eq!(names, expected);
}

struct Scene {
    world: World,
    receiver: Receiver,
    /// Id of the workflow of its webhook endpoint.
    endpoint: String,
}

impl Scene {
    async fn at(pace: f64) -> Self {
        let world = world().pace(pace).platforms(&["threads"]).start().await;
        world.connect("threads", "ada").await;
        let receiver = Receiver::start().await;
        let webhook = world.subscribe(&receiver.url).await;
        Self { endpoint: format!("endpoint-{}", id(&webhook)), world, receiver }
    }

    async fn post(&self, content: &str) -> Value {
        self.world.post(json!({ "content": replay::marked(content), "accounts": ["ada"] })).await
    }

    async fn attempt_failed(&self, content: &str) -> Value {
        let post = self.post(content).await;
        let failed = |post: &Value| post["targets"][0]["status"] == "failed";
        self.world.until(id(&post), "a failed attempt", failed).await;
        replay::started(&replay::client().await, &workflows(&post).1).await;
        post
    }

    /// Creates a post whose second attempt, which the target's own workflow makes, is under way.
    async fn second_attempt(&self) -> Value {
        let post = self.post("Slow at last #sandbox-503x1 #sandbox-slow").await;
        let begun = |post: &Value| post["targets"][0]["attempts"] == 2;
        self.world.until(id(&post), "the second attempt to begin", begun).await;
        post
    }
}

#[tokio::test]
async fn a_post_that_is_reset_while_its_target_publishes_is_published_once() {
    let scene = Scene::at(0.01).await;
    let post = scene.post("Slow #sandbox-slow").await;
    scene.world.until(id(&post), "the attempt to begin", |post| post["status"] == "publishing").await;
    let (workflow, _) = workflows(&post);
    reset(&workflow).await;
    let ended = scene.world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    // The run that the reset started ends too.
    replay::replay(&scene.world, "publish_post-reset", &workflow).await;
    told_once(&scene.receiver, &ended).await;
    assert_eq!(scene.world.accepted("threads", "ada").await, 1);
}

#[tokio::test]
async fn waiting_targets_continue_after_a_reset() {
    // The next attempt is due in a minute, regardless of the pace.
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
async fn a_target_that_is_reset_while_it_publishes_is_published_once() {
    let scene = Scene::at(0.01).await;
    let post = scene.second_attempt().await;
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
        let post = scene.second_attempt().await;
        cli(&["workflow", ending, "-w", &workflows(&post).1]).await;
        let ended = scene.world.ended(&post).await;
        // The call was in flight: a look-up finds the post, regardless of how the workflow was stopped.
        assert_eq!(ended["status"], "published", "{ending}: {ended:#}");
        let name = if ending == "cancel" { "publish_post-stopped" } else { "again" };
        replay::replay(&scene.world, name, &workflows(&post).0).await;
        told_once(&scene.receiver, &ended).await;
        assert_eq!(scene.world.accepted("threads", "ada").await, 1);
    }
}

/// The first attempt is an activity of the post's workflow.
#[tokio::test]
async fn a_post_that_is_stopped_while_it_publishes_ends_once() {
    for ending in ["terminate", "cancel"] {
        let scene = Scene::at(0.01).await;
        let post = scene.post("Slow #sandbox-slow").await;
        scene.world.until(id(&post), "the attempt to begin", |post| post["status"] == "publishing").await;
        cli(&["workflow", ending, "-w", &workflows(&post).0]).await;
        let ended = scene.world.ended(&post).await;
        assert_eq!(ended["status"], "published", "{ending}: {ended:#}");
        told_once(&scene.receiver, &ended).await;
        assert_eq!(scene.world.accepted("threads", "ada").await, 1);
    }
}

#[tokio::test]
async fn a_waiting_target_that_is_stopped_names_an_operator_as_the_reason() {
    let scene = Scene::at(1.0).await;
    let post = scene.attempt_failed("Refused #sandbox-429").await;
    cli(&["workflow", "cancel", "-w", &workflows(&post).1]).await;
    let ended = scene.world.ended(&post).await;
    let target = &ended["targets"][0];
    assert_eq!((&ended["status"], &target["status"]), (&json!("failed"), &json!("dead")), "{ended:#}");
    assert_eq!(target["error_message"], "an operator stopped it in Temporal");
    assert_eq!((&target["error_code"], &target["error_source"]), (&json!("stopped"), &json!("service")));
    told_once(&scene.receiver, &ended).await;
    assert_eq!(scene.world.accepted("threads", "ada").await, 0);
}

#[tokio::test]
async fn a_target_whose_workflow_is_terminated_goes_on() {
    let scene = Scene::at(0.05).await;
    let post = scene.attempt_failed("Refused #sandbox-429x1").await;
    cli(&["workflow", "terminate", "-w", &workflows(&post).1]).await;
    let ended = scene.world.ended(&post).await;
    assert_eq!(
        (&ended["status"], &ended["targets"][0]["attempts"]),
        (&json!("published"), &json!(2)),
        "{ended:#}"
    );
    told_once(&scene.receiver, &ended).await;
    assert_eq!(scene.world.accepted("threads", "ada").await, 1);
    replay::replay(&scene.world, "publish_post-restarted", &workflows(&post).0).await;
}

/// Repeats something that makes a workflow's history longer, until it has continued as new.
async fn until_continued(workflow: &str, longer: impl AsyncFn(usize)) {
    let client = replay::client().await;
    let query = format!("WorkflowId = '{workflow}' and ExecutionStatus = 'ContinuedAsNew'");
    let mut turns = 0..;
    wait_until(&format!("{workflow} to continue as new"), async || {
        longer(turns.next().unwrap()).await;
        let runs = client.count_workflows(query.clone(), Default::default()).await.unwrap().count();
        if runs > 0 { Ok(()) } else { Err("not yet") }
    })
    .await;
}

async fn retry_now(scene: &Scene, post: &Value) {
    let path = format!("/posts/{}/targets/{}/retry", id(post), id(&post["targets"][0]));
    assert_eq!(scene.world.call(reqwest::Method::POST, &path, None).await.0, reqwest::StatusCode::ACCEPTED);
}

#[tokio::test]
async fn a_target_that_waits_long_continues_as_new() {
    let scene = Scene::at(1.0).await;
    let post = scene.attempt_failed("Refused #sandbox-429x1").await;
    let (workflow, target) = workflows(&post);
    until_continued(&target, async |_| {
        cli(&["workflow", "signal", "-w", &target, "--name", "retry_now"]).await;
    })
    .await;
    retry_now(&scene, &post).await;
    let ended = scene.world.ended(&post).await;
    assert_eq!(
        (&ended["status"], &ended["targets"][0]["attempts"]),
        (&json!("published"), &json!(2)),
        "{ended:#}"
    );
    replay::replay_run(&scene.world, "publish_target-continued", &target).await;
    replay::replay(&scene.world, "again", &workflow).await;
    told_once(&scene.receiver, &ended).await;
    assert_eq!(scene.world.accepted("threads", "ada").await, 1);
}

#[tokio::test]
async fn a_post_that_is_edited_often_continues_as_new() {
    let scene = Scene::at(1.0).await;
    let content = replay::marked("Later");
    let body = json!({ "content": content, "accounts": ["ada"], "scheduled_at": tests::soon() });
    let post = scene.world.post(body).await;
    let (workflow, _) = workflows(&post);
    let edit = async |at| {
        let path = format!("/posts/{}", id(&post));
        let edit = json!({ "scheduled_at": at });
        let (status, edited) = scene.world.call(reqwest::Method::PATCH, &path, Some(&edit)).await;
        assert_eq!(status, reqwest::StatusCode::OK, "{edited}");
    };
    until_continued(&workflow, async |turn| {
        edit(tests::now() + chrono::TimeDelta::minutes(60 + i64::try_from(turn).unwrap())).await;
    })
    .await;
    edit(tests::now()).await;
    let ended = scene.world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    replay::replay_run(&scene.world, "publish_post-continued", &workflow).await;
    told_once(&scene.receiver, &ended).await;
    assert_eq!(scene.world.accepted("threads", "ada").await, 1);
}

#[tokio::test]
async fn a_post_continues_as_new_while_its_targets_wait() {
    let scene = Scene::at(1.0).await;
    let post = scene.attempt_failed("Refused #sandbox-429x1").await;
    let (workflow, _) = workflows(&post);
    let waits = json!({ "target": post["targets"][0]["id"], "status": "failed", "code": "rate_limited" });
    until_continued(&workflow, async |_| {
        let signal = ["workflow", "signal", "-w", &workflow, "--name", "target_waits", "--input"];
        cli(&[&signal[..], &[&waits.to_string()]].concat()).await;
    })
    .await;
    retry_now(&scene, &post).await;
    let ended = scene.world.ended(&post).await;
    assert_eq!(
        (&ended["status"], &ended["targets"][0]["attempts"]),
        (&json!("published"), &json!(2)),
        "{ended:#}"
    );
    replay::replay_run(&scene.world, "publish_post-continued_while_publishing", &workflow).await;
    replay::replay(&scene.world, "publish_post-resumed", &workflow).await;
    told_once(&scene.receiver, &ended).await;
    assert_eq!(scene.world.accepted("threads", "ada").await, 1);
}

#[tokio::test]
async fn a_scheduled_post_that_is_terminated_is_still_published() {
    let scene = Scene::at(0.01).await;
    let body = json!({ "content": "Later", "accounts": ["ada"], "scheduled_at": tests::soon() });
    let post = scene.world.post(body).await;
    scene.world.until(id(&post), "a started workflow", |post| post["targets"][0]["status"] == "queued").await;
    cli(&["workflow", "terminate", "-w", &workflows(&post).0]).await;
    // The scheduled time arrives.
    tests::sql(&scene.world.db, &format!("update posts set scheduled_at = now() where id = '{}'", id(&post)))
        .await;
    let ended = scene.world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    told_once(&scene.receiver, &ended).await;
    assert_eq!(scene.world.accepted("threads", "ada").await, 1);
}

#[tokio::test]
async fn a_scheduled_post_that_is_canceled_in_temporal_fails() {
    let scene = Scene::at(0.01).await;
    let body = json!({ "content": "Never", "accounts": ["ada"], "scheduled_at": tests::soon() });
    let post = scene.world.post(body).await;
    scene.world.until(id(&post), "a started workflow", |post| post["targets"][0]["status"] == "queued").await;
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
async fn a_terminated_post_does_not_stop_its_targets() {
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
async fn starting_an_ended_workflow_again_changes_nothing() {
    let scene = Scene::at(0.01).await;
    let post = scene.post("Once, at the second attempt #sandbox-503x1").await;
    let ended = scene.world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    told_once(&scene.receiver, &ended).await;
    let (workflow, target) = workflows(&post);
    for workflow in [&workflow, &target, &scene.endpoint] {
        replay::replay(&scene.world, "again", workflow).await;
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
            replay::replay(&scene.world, "again", &id).await;
        }
        reset(workflow).await;
        replay::replay(&scene.world, "again", workflow).await;
    }
    assert_eq!(scene.receiver.all().len(), 2, "each event is delivered once");
    assert_eq!(scene.world.accepted("threads", "ada").await, 1);
    assert_eq!(scene.world.get(&format!("/posts/{}", id(&post))).await["targets"], ended["targets"]);
}

#[tokio::test]
async fn unreadable_signals_are_ignored() {
    // The next attempt begins on request, or in a minute.
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
    // A workflow that has ended takes no signal.
    let hold = json!({ "platform": "threads", "account": "ada", "nth": 1, "when": "before" });
    let hold = scene.world.hold(hold).await;
    let (status, _) = scene.world.call(reqwest::Method::POST, &path, None).await;
    assert_eq!(status, reqwest::StatusCode::ACCEPTED);
    hold.until_held().await;
    cli(&["workflow", "signal", "-w", &target, "--name", "retry_now", "--input", "\"garbage\""]).await;
    hold.release().await;
    let ended = scene.world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    // Neither workflow is stuck in a task that keeps failing.
    replay::replay(&scene.world, "publish_target-signaled", &target).await;
    replay::replay(&scene.world, "publish_post-signaled", &workflow).await;
    told_once(&scene.receiver, &ended).await;
    assert_eq!(scene.world.accepted("threads", "ada").await, 1);
}

#[tokio::test]
async fn an_unreadable_signal_is_logged() {
    // The next attempt begins on request, or in a minute.
    let mut world = world().pace(1.0).running(&[]).platforms(&["threads"]).start().await;
    world.connect("threads", "ada").await;
    let log = tests::directory().join("unreadable-signal");
    world.log_to(&log);
    world.run("all").await;
    let post = world.post(json!({ "content": "Soon #sandbox-429x1", "accounts": ["ada"] })).await;
    let failed = |post: &Value| post["targets"][0]["status"] == "failed";
    let post = world.until(id(&post), "a failed attempt", failed).await;
    replay::backs_off(&post).await;
    let garbage = ["--name", "attempt_failed", "--input", "\"garbage\""];
    cli(&[&["workflow", "signal", "-w", &workflows(&post).1], &garbage[..]].concat()).await;
    let words = "Ignored a signal whose body can't be read";
    wait_until(words, async || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        if_right(text, |text| text.contains(words) && text.contains("attempt_failed"))
    })
    .await;
    let path = format!("/posts/{}/targets/{}/retry", id(&post), id(&post["targets"][0]));
    let (status, _) = world.call(reqwest::Method::POST, &path, None).await;
    assert_eq!(status, reqwest::StatusCode::ACCEPTED);
    assert_eq!(world.ended(&post).await["status"], "published");
}

#[tokio::test]
async fn a_delivery_whose_workflow_is_stopped_is_still_made() {
    for ending in ["terminate", "cancel"] {
        let scene = Scene::at(0.01).await;
        // Both events are refused twice.
        scene.receiver.answer([500, 500, 500, 500]);
        let post = scene.post("Told").await;
        scene.receiver.until("an attempt", |all| !all.is_empty()).await;
        cli(&["workflow", ending, "-w", &scene.endpoint]).await;
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
    reset(&scene.endpoint).await;
    let ended = scene.world.ended(&post).await;
    told_once(&scene.receiver, &ended).await;
    replay::replay(&scene.world, "drain_endpoint-reset", &scene.endpoint).await;
    let same = |one: &&Delivery| one.header("x-fanfare-event-id") == first.header("x-fanfare-event-id");
    assert_eq!(scene.receiver.all().iter().filter(same).count(), 2, "refused once, then delivered");
}

#[tokio::test]
async fn a_worker_serves_only_its_configured_platforms() {
    let mut world = world().running(&["api"]).start().await;
    let accounts = [world.connect("x", "ada").await, world.connect("bluesky", "ada.bsky.social").await];
    let of = |post: &Value, platform: &str| {
        let targets = post["targets"].as_array().unwrap();
        targets.iter().find(|target| target["platform"] == platform).unwrap()["status"].clone()
    };
    world.set("FANFARE_PLATFORMS", "x");
    world.run("worker").await;
    let post = world.post(json!({ "content": "One after the other", "accounts": accounts })).await;
    let half = world.until(id(&post), "the target on X", |post| of(post, "x") == "published").await;
    assert_eq!(of(&half, "bluesky"), "queued", "{half:#}");
    world.set("FANFARE_PLATFORMS", "bluesky");
    world.run("worker").await;
    world.until(id(&post), "both targets", |post| of(post, "bluesky") == "published").await;

    for (variable, wrong) in [("FANFARE_PLATFORMS", "x,elsewhere"), ("FANFARE_MODES", "dry")] {
        let before = world.set(variable, wrong).unwrap();
        let refused = world.command(&["worker"]).await;
        let reported = String::from_utf8_lossy(&refused.stderr);
        let word = wrong.rsplit(',').next().unwrap();
        assert!(!refused.status.success() && reported.contains(word), "{reported}");
        world.set(variable, &before);
    }
}

/// The database's clock is a minute ahead of the worker's.
#[tokio::test]
async fn a_worker_whose_clock_is_far_off_does_not_start() {
    let world = world().running(&[]).start().await;
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
    let reported = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success(), "{reported}");
    assert!(reported.contains("this machine's clock and the database's differ by"), "{reported}");
}

/// Waits until a query of Temporal finds exactly these workflows of an organization. Its list lags.
async fn finds(world: &World, query: &str, expected: &[&str]) {
    let client = replay::client().await;
    let query = format!("FanfareOrg = '{}' and {query}", world.owner.org);
    let expected: BTreeSet<_> = expected.iter().map(|id| (*id).to_owned()).collect();
    wait_until(&query, async || {
        let found: Vec<_> = client.list_workflows(query.clone(), Default::default()).collect().await;
        let ids: BTreeSet<_> = found.into_iter().map(|found| found.unwrap().id().to_owned()).collect();
        if ids == expected { Ok(()) } else { Err(format!("{ids:?}")) }
    })
    .await;
}

#[tokio::test]
async fn what_fails_or_waits_is_found_in_temporal_by_its_error_and_what_publishes_costs_nothing_for_it() {
    let world = world().pace(1.0).platforms(&["x", "threads"]).start().await;
    let frozen = world.connect("threads", "bob").await;
    world.connect("x", "ada").await;
    let client = replay::client().await;

    let post = world.post(json!({ "content": replay::marked("At once"), "accounts": ["ada"] })).await;
    assert_eq!(world.ended(&post).await["status"], "published");
    let (of_post, of_target) = workflows(&post);
    assert_eq!(
        replay::history(&client, &of_target).await,
        "",
        "the first attempt needs no workflow of its own"
    );
    let history = replay::history(&client, &of_post).await;
    assert!(!history.contains("Signaled"), "{history}");
    for costs in ["MarkerRecordedEventAttributes", "UpsertWorkflowSearchAttributesEventAttributes"] {
        assert!(!history.contains(costs), "{costs} in {history}");
    }

    let body = json!({ "content": replay::marked("Twice #sandbox-503x2"), "accounts": ["ada"] });
    let post = world.post(body).await;
    world.until(id(&post), "a failed attempt", |post| post["targets"][0]["status"] == "failed").await;
    let (of_post, of_target) = workflows(&post);
    let both = [of_post.as_str(), of_target.as_str()];
    let running =
        "ExecutionStatus = 'Running' and FanfareStatus = 'failed' and FanfareError = 'upstream_503'";
    finds(&world, running, &both).await;
    // Its second failure is of the same kind: the post's workflow is not told.
    for attempts in [2, 3] {
        ops::done(&world, &["retry", id(&post["targets"][0])]).await;
        world.until(id(&post), "the attempt", |post| post["targets"][0]["attempts"] == attempts).await;
    }
    assert_eq!(world.ended(&post).await["status"], "published");
    let history = replay::replay(&world, "publish_post-retried", &of_post).await;
    assert_eq!(history.matches("\"target_waits\"").count(), 0, "signals: {history}");
    replay::replay(&world, "publish_target-retried", &of_target).await;
    // It published after all.
    finds(&world, "FanfareStatus = 'published'", &both).await;

    ops::done(&world, &["freeze", "account", &frozen, "--reason", "a test"]).await;
    let post = world.post(json!({ "content": replay::marked("Frozen"), "accounts": ["bob"] })).await;
    let (of_post, of_target) = workflows(&post);
    let both = [of_post.as_str(), of_target.as_str()];
    finds(
        &world,
        "ExecutionStatus = 'Running' and FanfareStatus = 'queued' and FanfareError = 'frozen'",
        &both,
    )
    .await;
    ops::done(&world, &["release", "account", &frozen]).await;
    assert_eq!(world.ended(&post).await["status"], "published");
    replay::replay(&world, "publish_post-frozen", &of_post).await;
    replay::replay(&world, "publish_target-frozen", &of_target).await;
    finds(&world, "FanfareStatus in ('failed', 'queued')", &[]).await;
}
