//! The metrics of Fanfare: names, labels and help, and the functions that record them.
//!
//! Names follow <https://prometheus.io/docs/practices/naming/>. Labels are bounded: platforms, modes, operations,
//! codes; never ids and never organizations, whose number grows. Without a recorder, which `server` installs where
//! somebody can read it, recording costs next to nothing.

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use std::{borrow::Cow, fmt::Display, time::Duration};

/// A metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Name.
    pub name: &'static str,
    /// Kind.
    pub kind: Kind,
    /// Names of the labels.
    pub labels: &'static [&'static str],
    /// Meaning.
    pub help: &'static str,
}

/// Kind of a metric.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Grows with each event.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Distribution of values, by these upper bounds.
    Histogram(&'static [f64]),
}

/// Bounds of durations of requests, in seconds.
pub const REQUEST_SECONDS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// Bounds of durations of publishing, in seconds: from a second to a day.
const PUBLISH_SECONDS: &[f64] =
    &[0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0];

/// Declares the metrics, each with its recording constant, and [`ALL`].
macro_rules! metrics {
    ($($id:ident: $name:literal, $kind:expr, [$($label:literal),*], $help:literal;)*) => {
        $(#[doc = $help] pub const $id: Metric = Metric { name: $name, kind: $kind, labels: &[$($label),*], help: $help };)*
        /// The metrics, in the order of the documentation.
        pub const ALL: &[Metric] = &[$($id),*];
    };
}

metrics! {
    BUILD: "fanfare_build_info", Kind::Gauge, ["version", "role"],
        "1, with the version of the process and what it runs: api, worker, or all of both";
    CHECK: "fanfare_check_passed", Kind::Gauge, ["check"],
        "1 if a check of /readyz passes, 0 if it fails; the reason is in the answer of /readyz";
    OUTBOX_MESSAGES: "fanfare_outbox_messages", Kind::Gauge, [],
        "Messages that wait to be sent to Temporal, in the whole installation";
    OUTBOX_AGE: "fanfare_outbox_oldest_message_age_seconds", Kind::Gauge, [],
        "Age of the oldest of them; 0 without any";
    OUTBOX_PARKED: "fanfare_outbox_parked_messages", Kind::Gauge, [],
        "Messages that Temporal refused, kept for an operator";
    DUE: "fanfare_due_targets", Kind::Gauge, ["platform", "mode"],
        "Targets that are due and that no worker has begun, without those that wait for something else";
    OVERDUE_POSTS: "fanfare_overdue_posts", Kind::Gauge, [],
        "Posts that were due over a minute ago and whose publishing has not begun";
    OVERDUE_POST_AGE: "fanfare_oldest_overdue_post_age_seconds", Kind::Gauge, [],
        "Time since the oldest of them was due; 0 without any";
    UNENDING_POSTS: "fanfare_unending_posts", Kind::Gauge, [],
        "Posts that were due, are open and have no open target, so that nothing ends them: a fault";
    OVERDUE_TARGETS: "fanfare_overdue_targets", Kind::Gauge, [],
        "Targets whose next attempt was due over a minute ago";
    OVERDUE_TARGET_AGE: "fanfare_oldest_overdue_target_age_seconds", Kind::Gauge, [],
        "Time since the oldest of them was due; 0 without any";
    OVERDUE_DELIVERIES: "fanfare_overdue_deliveries", Kind::Gauge, [],
        "Webhook deliveries whose next attempt was due over a minute ago, without those that wait for a dead \
         endpoint; up to a thousand of each endpoint";
    OVERDUE_DELIVERY_AGE: "fanfare_oldest_overdue_delivery_age_seconds", Kind::Gauge, [],
        "Time since the oldest of them was due; 0 without any";
    UNRENEWED_ACCOUNTS: "fanfare_unrenewed_accounts", Kind::Gauge, [],
        "Active accounts whose grant should have been renewed: over nine tenths of its life have passed";
    HELD_APPS: "fanfare_held_apps", Kind::Gauge, ["platform", "mode"],
        "Apps that the platform refuses, such as one that has spent what it may: the posts with them wait";
    BACKLOG_READ: "fanfare_backlog_read", Kind::Gauge, [],
        "1 if the database answered the queries of the metrics above, which are NaN if not";
    OUTBOX_SENT: "fanfare_outbox_sent_total", Kind::Counter, ["result"],
        "Messages that the relay tried to send to Temporal: sent, unavailable, refused, parked or unreadable";
    NEAR: "fanfare_posts_within_horizon_total", Kind::Counter, [],
        "Far-off posts whose time came within the scheduling horizon, so that their workflow was started";
    REQUEUED: "fanfare_requeued_rows_total", Kind::Counter, [],
        "Overdue rows for which the sweeper wrote a message again, because their workflow may be gone";
    ATTEMPTS: "fanfare_publish_attempts_total", Kind::Counter, ["platform", "mode", "code"],
        "Publish attempts by result: published, processing, waiting, barred, superseded, fault, or an error code";
    LATENCY: "fanfare_publish_latency_seconds", Kind::Histogram(PUBLISH_SECONDS), ["platform", "mode"],
        "Time from when a target was due until it was live";
    DELIVERIES: "fanfare_webhook_deliveries_total", Kind::Counter, ["mode", "result"],
        "Attempts to deliver to an endpoint: delivered, a class of HTTP status such as 5xx, or unanswered";
    DELIVERY_SECONDS: "fanfare_webhook_delivery_duration_seconds", Kind::Histogram(REQUEST_SECONDS), ["mode"],
        "Duration of these attempts";
    RENEWALS: "fanfare_grant_renewals_total", Kind::Counter, ["platform", "mode", "result"],
        "Exchanges of a grant for a fresh one: renewed, refused (the account has to be connected again), failed \
         (repeated) or fault";
    VERSION_DAYS: "fanfare_api_version_days_left", Kind::Gauge, ["platform", "version"],
        "Days until a platform ends the version of its API that this release was made for, or that the settings name; \
         negative afterwards";
    MEDIA_JOBS: "fanfare_media_jobs_total", Kind::Counter, ["job", "result"],
        "Media files that were fetched, probed or discarded: ok or failed";
    REQUESTS: "fanfare_http_requests_total", Kind::Counter, ["operation", "status"],
        "Requests to the API by operation and HTTP status";
    REQUEST_DURATION: "fanfare_http_request_duration_seconds", Kind::Histogram(REQUEST_SECONDS), ["operation"],
        "Time until the response to these began";
    CONNECTIONS: "fanfare_database_connections", Kind::Gauge, ["state"],
        "Database connections of the process: used or idle";
    MAX_CONNECTIONS: "fanfare_database_connections_max", Kind::Gauge, [],
        "Maximum database connections of the process (FANFARE_DATABASE_CONNECTIONS)";
    MEMORY_LIMIT: "fanfare_memory_limit_bytes", Kind::Gauge, [],
        "Resident memory beyond which the process ends (FANFARE_MEMORY_LIMIT); absent without a limit";
}

/// The metrics of the process that are recorded by a library, with the names of Prometheus's own clients
/// (<https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics>), and their meaning.
pub const PROCESS: [(&str, Kind, &str); 8] = [
    ("process_cpu_seconds_total", Kind::Counter, "CPU time of the process, user and system"),
    ("process_open_fds", Kind::Gauge, "Open file descriptors"),
    ("process_max_fds", Kind::Gauge, "Maximum number of open file descriptors"),
    ("process_virtual_memory_bytes", Kind::Gauge, "Virtual memory"),
    ("process_virtual_memory_max_bytes", Kind::Gauge, "Maximum of virtual memory"),
    ("process_resident_memory_bytes", Kind::Gauge, "Resident memory, which FANFARE_MEMORY_LIMIT limits"),
    ("process_start_time_seconds", Kind::Gauge, "Start of the process, in seconds since 1970"),
    ("process_threads", Kind::Gauge, "Threads"),
];

/// Describes all metrics to the recorder.
pub fn describe() {
    for Metric { name, kind, help, .. } in ALL.iter().copied() {
        let unit = if name.ends_with("_seconds") { Unit::Seconds } else { Unit::Count };
        match kind {
            Kind::Counter => describe_counter!(name, unit, help),
            Kind::Gauge => describe_gauge!(name, unit, help),
            Kind::Histogram(_) => describe_histogram!(name, unit, help),
        }
    }
}

/// Sets the version and role of the process.
pub fn build(version: &'static str, role: &'static str) {
    gauge!(BUILD.name, "version" => version, "role" => role).set(1.0);
}

/// Sets the result of a check of readiness.
pub fn check(name: &'static str, is_passed: bool) {
    gauge!(CHECK.name, "check" => name).set(f64::from(u8::from(is_passed)));
}

/// Begins the counters of a worker at zero, for their known labels: Prometheus sees no increase in the first value of a
/// series.
pub fn begin(platforms: &[&str], modes: &[&'static str]) {
    for mode in modes.iter().copied() {
        for result in ["delivered", "3xx", "4xx", "5xx", "unanswered"] {
            counter!(DELIVERIES.name, "mode" => mode, "result" => result).increment(0);
        }
        for platform in platforms {
            for result in ["renewed", "refused", "failed", "fault"] {
                counter!(RENEWALS.name, "platform" => (*platform).to_owned(), "mode" => mode, "result" => result)
                    .increment(0);
            }
        }
    }
}

/// Sets a gauge without labels.
pub fn set(metric: Metric, value: f64) {
    gauge!(metric.name).set(value);
}

/// Sets a gauge of a platform and mode.
pub fn set_of(metric: Metric, platform: &str, mode: &'static str, value: f64) {
    gauge!(metric.name, "platform" => platform.to_owned(), "mode" => mode).set(value);
}

/// Counts a message that the relay tried to send.
pub fn outbox_sent(result: &'static str) {
    counter!(OUTBOX_SENT.name, "result" => result).increment(1);
}

/// Sets the number of posts that nothing ends.
pub fn unending(posts: usize) {
    gauge!(UNENDING_POSTS.name).set(posts as f64);
}

/// Counts messages that the sweeper wrote: for posts that came within the horizon, and for overdue rows.
pub fn swept(near: usize, overdue: usize) {
    counter!(NEAR.name).increment(near as u64);
    counter!(REQUEUED.name).increment(overdue as u64);
}

/// Counts a publish attempt.
pub fn attempt(platform: &str, mode: &'static str, code: Cow<'static, str>) {
    counter!(ATTEMPTS.name, "platform" => platform.to_owned(), "mode" => mode, "code" => code).increment(1);
}

/// Records the time from when a target was due until it was live.
pub fn published(platform: &str, mode: &'static str, latency: Duration) {
    histogram!(LATENCY.name, "platform" => platform.to_owned(), "mode" => mode).record(latency);
}

/// Records an attempt to deliver to an endpoint. `status` is that of the answer, if there was one.
pub fn delivery(mode: &'static str, status: Option<i32>, is_delivered: bool, duration: Duration) {
    let result = match status {
        _ if is_delivered => "delivered",
        Some(100..=199) => "1xx",
        Some(200..=299) => "2xx",
        Some(300..=399) => "3xx",
        Some(400..=499) => "4xx",
        Some(_) => "5xx",
        None => "unanswered",
    };
    counter!(DELIVERIES.name, "mode" => mode, "result" => result).increment(1);
    histogram!(DELIVERY_SECONDS.name, "mode" => mode).record(duration);
}

/// Counts an exchange of a grant.
pub fn renewal(platform: &str, mode: &'static str, result: &'static str) {
    counter!(RENEWALS.name, "platform" => platform.to_owned(), "mode" => mode, "result" => result)
        .increment(1);
}

/// Sets the days until a platform ends a version of its API.
pub fn version_days(platform: &'static str, version: String, days: i64) {
    gauge!(VERSION_DAYS.name, "platform" => platform, "version" => version).set(days as f64);
}

/// Counts a job of a media file.
pub fn media_job(job: &'static str, is_ok: bool) {
    let result = if is_ok { "ok" } else { "failed" };
    counter!(MEDIA_JOBS.name, "job" => job, "result" => result).increment(1);
}

/// Records a request. `operation` is its method and the pattern of its path.
pub fn request(operation: impl Display, status: u16, duration: Duration) {
    let operation = operation.to_string();
    counter!(REQUESTS.name, "operation" => operation.clone(), "status" => status.to_string()).increment(1);
    histogram!(REQUEST_DURATION.name, "operation" => operation).record(duration);
}

/// Sets the database connections of the process.
pub fn connections(used: usize, idle: usize, max: u32) {
    gauge!(CONNECTIONS.name, "state" => "used").set(used as f64);
    gauge!(CONNECTIONS.name, "state" => "idle").set(idle as f64);
    gauge!(MAX_CONNECTIONS.name).set(f64::from(max));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions() {
        for Metric { name, kind, help, .. } in ALL {
            assert!(name.starts_with("fanfare_"), "{name}");
            assert_eq!(name.ends_with("_total"), matches!(kind, Kind::Counter), "{name}");
            if matches!(kind, Kind::Histogram(_)) {
                assert!(name.ends_with("_seconds"), "{name}");
            }
            assert!(!help.is_empty() && !help.ends_with('.'), "{name}");
        }
    }
}
