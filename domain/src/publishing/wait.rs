//! Waits of a target: what it waits for, when it looks again, when that ends, and what follows.
//!
//! A wait costs no attempt, so that nothing else would end it. Each therefore has an end of its own, and is written in
//! the target's row before the attempt returns: see `store::publishing::wait`. It is noted in the timeline once, and again
//! after a requested retry, but not at each look.

use super::{Condition, Rules};
use crate::Failure;
use chrono::{DateTime, Utc};
use std::time::Duration;

crate::string_enum! {
    /// Reason of a wait.
    WaitReason, "wait reason" {
        /// One of its files is still being fetched or inspected.
        File = "file",
        /// One of its files is inspected again since an attempt has begun, or has no turn to be fitted to the platform.
        Rendition = "rendition",
        /// The post that it replies to is not live yet.
        Parent = "parent",
        /// Its organization uses its share of the worker's slots. Ends with its turn.
        Slot = "slot",
        /// Its account rests, because the platform throttled another post of it.
        Rest = "rest",
        /// The platform refuses the app of its account, whose owner has to act.
        App = "app",
        /// Operators froze it while an attempt prepared it. The next attempt finds the freeze.
        Freeze = "freeze",
        /// The worker that prepared it stops, and another one goes on.
        Handover = "handover",
        /// The platform's reads may not show yet what a call has published.
        Reads = "reads",
        /// Its look-up found a post by its text that another target may have published.
        Claim = "claim",
        /// The service failed at its own part.
        Fault = "fault",
    }
}

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Longest wait for a file. Its fetch ends within some hours, and its turn to be fitted comes sooner.
pub const FILE_LIMIT: Duration = DAY;
/// Longest wait for the post that a target replies to, after that one's next step, which has an end of its own.
pub const PARENT_LIMIT: Duration = DAY.saturating_mul(7);
/// Longest time for which a target is throttled, or rests with its account: as long as that costs nothing, and once more.
pub const REST_LIMIT: Duration = crate::retry::THROTTLED_FREE.saturating_mul(2);
/// Longest wait until a platform takes an app again: what it may spend is counted by the month.
pub const APP_LIMIT: Duration = DAY.saturating_mul(32);
/// Longest wait until the service is repaired: a weekend.
pub const FAULT_LIMIT: Duration = DAY.saturating_mul(3);
/// Longest time for which workers hand a target over without an attempt that gets further.
pub const HANDOVER_LIMIT: Duration = DAY;
/// Time beyond another target's polling window for which a target waits for that one to claim a post that both have found.
pub const CLAIM_MARGIN: Duration = Duration::from_secs(30 * 60);

impl WaitReason {
    /// Returns true for a wait before an attempt: it is over when one begins. Others are over when an attempt gets
    /// further, so that they have one end together.
    pub const fn is_before_attempt(self) -> bool {
        matches!(self, Self::File | Self::Parent | Self::Slot | Self::Rest)
    }
}

/// The result of an attempt that could neither publish nor fail.
#[derive(Clone, Debug)]
pub struct Wait {
    /// Reason of the wait.
    pub reason: WaitReason,
    /// Time until the next look.
    pub look_after: Duration,
    /// End of the wait.
    pub until: DateTime<Utc>,
    /// Failure that the target shows meanwhile; `None` leaves the one before it.
    pub failure: Option<Failure>,
    /// Next step if the wait ends in vain.
    pub then: Then,
}

/// Next step after a wait that ended in vain.
#[derive(Clone, Debug)]
pub enum Then {
    /// The target ends with this failure.
    GiveUp(Failure),
    /// The attempt has failed, and counts.
    Fail(Failure),
}

/// A wait that an attempt found in the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Reason of the wait.
    pub reason: WaitReason,
    /// Since when.
    pub since: DateTime<Utc>,
    /// When that ends; `None` for a slot.
    pub until: Option<DateTime<Utc>>,
    /// True if a retry has been requested since the timeline told of the wait: what comes of it is told again.
    pub is_retried: bool,
}

/// A wait as the target's row is to contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowWait {
    /// Reason of the wait.
    pub reason: WaitReason,
    /// Since when.
    pub since: DateTime<Utc>,
    /// Time until the next look.
    pub look_after: Duration,
    /// End of the wait.
    pub until: DateTime<Utc>,
    /// True if the timeline does not tell of it yet.
    pub is_new: bool,
}

/// Decides how long the target of an attempt waits, which found `before` in the row. Returns `None` when the wait has ended
/// in vain.
pub fn wait(rules: Rules, before: Option<Waiting>, begun_at: DateTime<Utc>, wait: &Wait) -> Option<RowWait> {
    // Waits that follow one another without an attempt that got further end together, with the longest of them.
    let until = before.and_then(|before| before.until).map_or(wait.until, |until| until.max(wait.until));
    if rules.holds(Condition::IsOver, begun_at >= until) {
        return None;
    }
    Some(RowWait {
        reason: wait.reason,
        since: before.map_or(begun_at, |before| before.since),
        look_after: wait.look_after,
        until,
        is_new: is_untold(rules, before, wait.reason),
    })
}

/// Returns true if the timeline does not tell yet that a target waits for this.
pub(super) fn is_untold(rules: Rules, waiting: Option<Waiting>, reason: WaitReason) -> bool {
    let is_untold = waiting.is_none_or(|waiting| waiting.reason != reason || waiting.is_retried);
    rules.holds(Condition::IsUntold, is_untold)
}

/// Returns since when a target waits for something that it needs before an attempt.
pub(super) fn since(waiting: Option<Waiting>, reason: WaitReason, now: DateTime<Utc>) -> DateTime<Utc> {
    waiting.filter(|waiting| waiting.reason == reason).map_or(now, |waiting| waiting.since)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[test]
    fn each_wait_has_its_longest_time() {
        for (name, limit, hours) in [
            ("file", FILE_LIMIT, 24),
            ("parent", PARENT_LIMIT, 7 * 24),
            ("rest", REST_LIMIT, 48),
            ("app", APP_LIMIT, 32 * 24),
            ("fault", FAULT_LIMIT, 72),
            ("handover", HANDOVER_LIMIT, 24),
        ] {
            assert_eq!(limit.as_secs(), hours * 3600, "{name}");
        }
    }

    #[test]
    fn a_wait_before_an_attempt_is_over_when_one_begins() {
        for reason in WaitReason::ALL.iter().copied() {
            let is_before =
                [WaitReason::File, WaitReason::Parent, WaitReason::Slot, WaitReason::Rest].contains(&reason);
            assert_eq!(reason.is_before_attempt(), is_before, "{reason}");
        }
    }

    #[test]
    fn waits_that_follow_one_another_end_together() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let (hour, minute) = (TimeDelta::hours(1), Duration::from_secs(60));
        let new = Wait {
            reason: WaitReason::Reads,
            look_after: minute,
            until: now + hour,
            failure: None,
            then: Then::GiveUp(Failure::rejected(400, "")),
        };
        let waits = |since, until, is_new| {
            Some(RowWait { reason: WaitReason::Reads, since, look_after: minute, until, is_new })
        };
        let before = Waiting {
            reason: WaitReason::Reads,
            since: now - hour,
            until: Some(now + hour * 2),
            is_retried: false,
        };
        let short = Waiting { until: Some(now - hour), ..before };
        let other = Waiting { reason: WaitReason::Claim, ..before };
        let retried = Waiting { is_retried: true, ..before };
        for (name, before, expected) in [
            ("the first", None, waits(now, now + hour, true)),
            ("one after a longer one", Some(before), waits(now - hour, now + hour * 2, false)),
            ("one after a shorter one", Some(short), waits(now - hour, now + hour, false)),
            ("one for something else", Some(other), waits(now - hour, now + hour * 2, true)),
            ("one after a retry", Some(retried), waits(now - hour, now + hour * 2, true)),
        ] {
            assert_eq!(wait(Rules::PROTOCOL, before, now, &new), expected, "{name}");
        }
        let over = Wait { until: now, ..new };
        assert_eq!(wait(Rules::PROTOCOL, Some(short), now, &over), None);
        assert_ne!(wait(Rules::PROTOCOL, Some(before), now, &over), None, "the longer one has not ended");
    }
}
