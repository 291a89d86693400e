//! Task queues: one for posts; and in each mode one per platform, one for webhooks, one for media and one
//! for confirming uploads.
//!
//! A slow or throttled platform then delays no other, and a queue's rate limit is its platform's. What
//! happens in test mode delays nothing that is live, because no queue with activities is shared. A
//! target's workflow runs on its platform's queue beside its activities, so that the worker that
//! schedules the publish activity may start it at once (eager execution) instead of waiting for the
//! server to hand it out: a third of the latency of a publish.

use domain::{Mode, OrgId};
use temporalio_common::Priority;

/// How the tasks of an organization stand among those of others: where the server hands them out fairly
/// (`matching.enableFairness`), organizations take turns.
pub fn turn(org: OrgId) -> Priority {
    let mut turn = Priority::default();
    turn.fairness_key = Some(org.to_string());
    turn
}

/// The queue of posts, unless the operator names another.
pub const DEFAULT: &str = "fanfare";

/// The queue of a platform's targets, beside the queue of posts `base`.
pub fn platform(base: &str, platform: &str, mode: Mode) -> String {
    of(mode, format!("{base}-publish-{platform}"))
}

/// The queue of webhook deliveries, beside the queue of posts `base`.
pub fn webhooks(base: &str, mode: Mode) -> String {
    of(mode, format!("{base}-webhooks"))
}

/// The queue of media, beside the queue of posts `base`.
pub fn media(base: &str, mode: Mode) -> String {
    of(mode, format!("{base}-media"))
}

/// The queue of uploads to be confirmed, beside the queue of posts `base`: somebody waits for each, and
/// slow imports must not be in the way.
pub fn uploads(base: &str, mode: Mode) -> String {
    of(mode, format!("{base}-uploads"))
}

/// A queue in this mode.
fn of(mode: Mode, queue: String) -> String {
    match mode {
        Mode::Live => queue,
        Mode::Test => format!("{queue}-test"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_kinds_of_work_share_a_queue() {
        let mut queues = BTreeSet::from([DEFAULT.to_owned()]);
        for mode in [Mode::Live, Mode::Test] {
            queues.extend(["x", "bluesky"].map(|name| platform(DEFAULT, name, mode)));
            queues.extend([webhooks(DEFAULT, mode), media(DEFAULT, mode), uploads(DEFAULT, mode)]);
        }
        assert_eq!(queues.len(), 11, "{queues:?}");
        assert!(queues.contains("fanfare-publish-x") && queues.contains("fanfare-publish-x-test"));
    }
}
