//! Task queues: one for posts; and for each mode one per platform, one for webhooks, one for media and one for
//! confirming uploads.
//!
//! A slow or throttled platform delays no other. Test mode delays nothing in live mode, because the modes share
//! no queue with activities. A target's workflow runs on its platform's queue beside its activities, so that the
//! worker that schedules the publish activity may start it at once (eager execution) instead of waiting for the
//! server: a third of the latency of a publish.
//!
//! Tasks wait in Temporal's queues in turns of organizations: every workflow is started with its organization as
//! fairness key, which its children and activities inherit ([`turn`]). The server needs `matching.useNewMatcher` and
//! `matching.enableFairness` for that, as `fanfare dev` and the compose file set them.

use domain::{Mode, OrgId};
use temporalio_common::Priority;

/// Priority of an organization's tasks: with `matching.enableFairness` the server dispatches them in turns of
/// organizations.
pub fn turn(org: OrgId) -> Priority {
    let mut turn = Priority::default();
    turn.fairness_key = Some(org.to_string());
    turn
}

/// Default name of the queue of posts.
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

/// The queue for confirming uploads, beside the queue of posts `base`: a client waits for each, so that slow
/// downloads must not delay them.
pub fn uploads(base: &str, mode: Mode) -> String {
    of(mode, format!("{base}-uploads"))
}

/// Name of a queue in a mode.
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
