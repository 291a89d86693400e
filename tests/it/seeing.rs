//! Metrics and logs for operators.

use crate::world;
use regex::Regex;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};
use telemetry::metrics::{ALL, Kind, Metric, PROCESS};
use tests::{Receiver, Samples, World, directory, if_right, temporal, wait_until};

/// Waits until the sum of some samples of a process is at least a number.
async fn until(world: &World, url: &str, name: &str, labels: &[(&str, &str)], least: f64) -> Samples {
    wait_until(&format!("{name} {labels:?}"), async || {
        let metrics = world.metrics(url).await;
        if metrics.sum(name, labels).is_some_and(|sum| sum >= least) {
            Ok(metrics)
        } else {
            Err(metrics.text)
        }
    })
    .await
}

/// Fails if a sample of Fanfare's own is not declared, or names a row.
fn check(metrics: &Samples) {
    let id = Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-|[a-z]+_[0-9a-f]{32}").unwrap();
    for (name, labels) in metrics.names() {
        assert!(labels.values().all(|value| !id.is_match(value)), "{name} {labels:?}");
        if !name.starts_with("fanfare_") {
            continue;
        }
        let family = |metric: &&Metric| match metric.kind {
            Kind::Histogram(_) => ["_bucket", "_sum", "_count"]
                .iter()
                .any(|suffix| name.strip_suffix(suffix) == Some(metric.name)),
            Kind::Counter | Kind::Gauge => name == metric.name,
        };
        let metric = ALL.iter().find(family).unwrap_or_else(|| panic!("{name} is not declared"));
        assert!(metrics.described.contains(metric.name), "{name} has no help or no type");
        let found: BTreeSet<_> = labels.keys().map(String::as_str).filter(|label| *label != "le").collect();
        assert_eq!(found, metric.labels.iter().copied().collect(), "{name}");
    }
}

#[tokio::test]
async fn metrics_of_both_roles_tell_what_happened() {
    let mut world = world().running(&[]).start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    let api = world.run_watched("api").await;
    let worker = world.run_watched("worker").await;
    world.subscribe(&receiver.url).await;
    for content in ["Seen", "Refused #sandbox-400"] {
        let post = world.post(json!({ "content": content, "accounts": ["ada"] })).await;
        world.ended(&post).await;
    }
    receiver.events(&["post.target.published", "post.published", "post.target.failed", "post.error"]).await;

    let on_x = ("platform", "x");
    let delivered = ("result", "delivered");
    let metrics = until(&world, &worker, "fanfare_webhook_deliveries_total", &[delivered], 4.0).await;
    check(&metrics);
    let sum = |name: &str, labels: &[(&str, &str)]| metrics.sum(name, labels).unwrap_or_default();
    assert_eq!(sum("fanfare_publish_attempts_total", &[on_x, ("mode", "test"), ("code", "published")]), 1.0);
    assert_eq!(sum("fanfare_publish_attempts_total", &[on_x]), 2.0, "{}", metrics.text);
    assert_eq!(sum("fanfare_publish_latency_seconds_count", &[on_x, ("mode", "test")]), 1.0);
    assert!(sum("fanfare_publish_latency_seconds_sum", &[on_x]) < 300.0);
    assert!(sum("fanfare_webhook_delivery_duration_seconds_count", &[("mode", "test")]) >= 4.0);
    assert_eq!(sum("fanfare_check_passed", &[("check", "workers")]), 1.0);
    assert!(sum("temporal_worker_task_slots_available", &[("worker_type", "ActivityWorker")]) > 0.0);
    for name in [
        "temporal_num_pollers",
        "temporal_sticky_cache_size",
        "temporal_request_total",
        "temporal_activity_schedule_to_start_latency_seconds_count",
        "temporal_workflow_task_schedule_to_start_latency_seconds_count",
        "temporal_workflow_completed_total",
    ] {
        assert!(metrics.sum(name, &[]).is_some(), "{name} is missing: {}", metrics.text);
    }

    let metrics = world.metrics(&api).await;
    check(&metrics);
    let sum = |name: &str, labels: &[(&str, &str)]| metrics.sum(name, labels).unwrap_or_default();
    let created = [("operation", "POST /api/v1/posts"), ("status", "201")];
    assert_eq!(sum("fanfare_http_requests_total", &created), 2.0);
    assert_eq!(sum("fanfare_http_request_duration_seconds_count", &[created[0]]), 2.0);
    assert!(sum("fanfare_outbox_sent_total", &[("result", "sent")]) >= 2.0);
    assert_eq!(sum("fanfare_backlog_read", &[]), 1.0);
    assert_eq!(sum("fanfare_overdue_posts", &[]), 0.0);
    for name in
        ["fanfare_build_info", "fanfare_outbox_oldest_message_age_seconds", "fanfare_unrenewed_accounts"]
    {
        assert!(metrics.sum(name, &[]).is_some(), "{name}");
    }
    for (name, ..) in PROCESS {
        assert!(metrics.described.contains(name) && metrics.sum(name, &[]).is_some(), "{name}");
    }
    for name in ["process_resident_memory_bytes", "process_open_fds", "process_cpu_seconds_total"] {
        assert!(sum(name, &[]) > 0.0, "{name}");
    }
    assert_eq!(sum("fanfare_database_connections_max", &[]), 16.0);
    assert!(metrics.sum("fanfare_database_connections", &[("state", "used")]).is_some());
}

/// Without the minute after which they are overdue: what scales the workers needs it before posts are late.
#[tokio::test]
async fn targets_that_no_worker_begins_are_counted_at_once() {
    let mut world = world().running(&[]).start().await;
    world.connect("x", "ada").await;
    let api = world.run_watched("api").await;
    let labels = [("platform", "x"), ("mode", "test")];
    let metrics = world.metrics(&api).await;
    assert_eq!(metrics.sum("fanfare_due_targets", &labels), Some(0.0), "{}", metrics.text);
    let far = json!({ "content": "Far", "accounts": ["ada"], "scheduled_at": tests::soon() });
    world.post(far).await;
    let post = world.post(json!({ "content": "Waiting", "accounts": ["ada"] })).await;
    let metrics = until(&world, &api, "fanfare_due_targets", &labels, 1.0).await;
    assert_eq!(metrics.sum("fanfare_due_targets", &[]), Some(1.0), "{}", metrics.text);
    for name in ["fanfare_overdue_posts", "fanfare_overdue_targets"] {
        assert_eq!(metrics.sum(name, &[]), Some(0.0), "{name}");
    }
    // With a listener of its own.
    world.run_watched("worker").await;
    world.ended(&post).await;
    wait_until("nothing to be due", async || {
        let metrics = world.metrics(&api).await;
        if metrics.sum("fanfare_due_targets", &[]) == Some(0.0) { Ok(()) } else { Err(metrics.text) }
    })
    .await;
}

/// A workflow of a type that no worker of this version knows, as after a rollback.
#[tokio::test]
async fn a_failing_workflow_task_leaves_a_line_and_moves_a_metric() {
    let mut world = world().running(&[]).start().await;
    let log = directory().join(format!("failing-task-{}.log", world.owner.org));
    world.log_to(&log);
    // The filter that applies by default.
    world.set("RUST_LOG", "");
    let worker = world.run_watched("worker").await;
    let queue = world.variable("FANFARE_TASK_QUEUE").to_owned();
    let id = format!("unknown-{}", world.owner.org);
    let of = ["--workflow-id", &id];
    let start = ["workflow", "start", "--type", "Newer", "--task-queue", &queue];
    temporal(*crate::PROGRAM, &[&start[..], &of].concat()).await;
    until(&world, &worker, "temporal_workflow_task_execution_failed_total", &[], 1.0).await;
    wait_until("a line of the log", async || {
        let text = fs::read_to_string(&log).unwrap();
        if_right(text, |text| text.contains("Failing workflow task") && text.contains("Newer not found"))
    })
    .await;
    temporal(*crate::PROGRAM, &[&["workflow", "terminate"][..], &of].concat()).await;
}

#[tokio::test]
async fn each_line_of_the_log_names_its_work() {
    let mut world = world().running(&[]).start().await;
    let log = directory().join(format!("json-{}.log", world.owner.org));
    world.log_to(&log);
    world.set("RUST_LOG", "");
    world.set("FANFARE_LOG_JSON", "true");
    world.connect("x", "ada").await;
    world.run_watched("worker").await;
    world.run_watched("api").await;
    let post = world.post(json!({ "content": "Twice #sandbox-503x2", "accounts": ["ada"] })).await;
    let (id, target) = (post["id"].as_str().unwrap(), post["targets"][0]["id"].as_str().unwrap());
    assert_eq!(world.ended(&post).await["status"], "published");
    let failed = format!("Target {target} failed");
    let line = wait_until("the line of the attempt", async || {
        let text = fs::read_to_string(&log).unwrap();
        assert!(!text.contains('\u{1b}'), "escape sequences are for terminals");
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let is_one =
            |line: &Value| line["fields"]["message"].as_str().unwrap_or_default().starts_with(&failed);
        lines.into_iter().find(is_one).ok_or(text)
    })
    .await;
    let spans: BTreeMap<_, _> =
        line["spans"].as_array().unwrap().iter().flat_map(|span| span.as_object().unwrap().clone()).collect();
    assert_eq!(spans["workflow.id"], json!(format!("post-{id}")), "{line}");
    assert_eq!((&spans["post.id"], &spans["target.id"]), (&json!(id), &json!(target)), "{line}");
}

/// The generated table, between two comments.
fn table() -> String {
    let mut table = "| Metric | Kind | Labels | Meaning |\n|---|---|---|---|\n".to_owned();
    for Metric { name, kind, labels, help } in ALL {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
        table += &format!("| `{name}` | {kind} | {} | {help} |\n", labels.join(", "));
    }
    for (name, kind, help) in PROCESS {
        let kind = if matches!(kind, Kind::Counter) { "counter" } else { "gauge" };
        table += &format!("| `{name}` | {kind} |  | {help} |\n");
    }
    table
}

#[test]
fn the_table_of_metrics_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/observability.md");
    let page = fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once("<!-- metrics -->\n").unwrap();
    let (found, tail) = rest.split_once("<!-- /metrics -->").unwrap();
    if std::env::var_os("FANFARE_RECORD").is_some() {
        fs::write(&path, format!("{head}<!-- metrics -->\n{}<!-- /metrics -->{tail}", table())).unwrap();
        return;
    }
    assert_eq!(found, table(), "record it with FANFARE_RECORD=1 cargo test --workspace the_table_of_metrics");
}
