//! Task queues: one per platform, one for posts, one for webhooks, one for media.
//!
//! A slow or throttled platform then delays no other, and a queue's rate limit is its platform's. A
//! target's workflow runs on its platform's queue beside its activities, so that the worker that
//! schedules the publish activity may start it at once (eager execution) instead of waiting for the
//! server to hand it out: a third of the latency of a publish.

use domain::OrgId;
use temporalio_common::Priority;

/// How the tasks of an organization stand among those of others: where the server hands them out fairly
/// (`matching.enableFairness`), organizations take turns.
pub fn turn(org: OrgId) -> Priority {
    Priority { fairness_key: Some(org.to_string()), ..Priority::default() }
}

/// The queue of posts, unless the operator names another.
pub const DEFAULT: &str = "fanfare";

/// The queue of a platform's targets, beside the queue of posts `base`.
pub fn platform(base: &str, platform: &str) -> String {
    format!("{base}-publish-{platform}")
}

/// The queue of webhook deliveries, beside the queue of posts `base`.
pub fn webhooks(base: &str) -> String {
    format!("{base}-webhooks")
}

/// The queue of media, beside the queue of posts `base`.
pub fn media(base: &str) -> String {
    format!("{base}-media")
}
