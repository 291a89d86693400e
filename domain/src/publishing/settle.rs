//! How a target ends.
//!
//! A target that has ended keeps its status, since its owner was notified; a live one can only lose the rest of its thread.

use super::{Condition, Rules, is_stale};
use crate::{PostStatus, TargetStatus, post::roll_up};

/// How an attempt, or something outside one, wants a target to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndKind {
    /// Published.
    Live,
    /// Failed for good.
    Dead,
    /// Canceled before anything was published.
    Canceled,
}

impl EndKind {
    /// Returns the final status.
    pub fn status(self) -> TargetStatus {
        match self {
            Self::Live => TargetStatus::Published,
            Self::Dead => TargetStatus::Dead,
            Self::Canceled => TargetStatus::Canceled,
        }
    }
}

/// A target that is to end, under the lock of its post.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// How it is to end.
    pub end: EndKind,
    /// Fence of the attempt; `None` outside one.
    pub fence: Option<i32>,
    /// Fence in the row.
    pub row_fence: i32,
    /// Status of the post.
    pub post: PostStatus,
    /// Version of the post.
    pub version: i32,
    /// Version that the workflow was started for.
    pub started: i32,
    /// True if one of the post's targets has been live before.
    pub is_post_live: bool,
    /// Statuses of the post's targets.
    pub targets: &'a [TargetStatus],
    /// Index of the target among them.
    pub index: usize,
    /// True if the platform's id of the main container is stored.
    pub is_captured: bool,
    /// True if the target has a next attempt.
    pub is_due: bool,
}

/// How a target ends, or why it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Another attempt holds the target: nothing changes.
    Superseded,
    /// The post was edited before its first attempt, and this was to end an earlier version of it: nothing changes.
    Stale,
    /// The target has this final status already: nothing changes.
    Ended(TargetStatus),
    /// The target was found live after it had this final status, which stays.
    Late(TargetStatus),
    /// The target stays published, and loses the rest of its thread unless it has lost it before.
    StaysLive {
        /// True if it has a rest to lose.
        loses_rest: bool,
    },
    /// The target ends.
    End(Ending),
}

/// The end of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Final status of the target.
    pub status: TargetStatus,
    /// True if the target was to fail and is published, since its main container is live: it only loses its replies.
    pub is_captured: bool,
    /// Final status of the post, if this was its last open target.
    pub post: Option<PostStatus>,
    /// True if it is the post's first target that is live.
    pub is_first: bool,
}

/// Decides how a target ends.
///
/// Without a fence the result counts for any attempt; with one, "dead" and "canceled" count only for the attempt that holds
/// the target.
pub fn settle(rules: Rules, at: &Snapshot<'_>) -> Decision {
    let found = at.targets[at.index];
    let is_superseded = at.end != EndKind::Live && at.fence.is_some_and(|fence| fence != at.row_fence);
    if rules.holds(Condition::IsSuperseded, is_superseded) {
        return Decision::Superseded;
    }
    let is_stale = is_stale(at.post, at.version, at.started) && !found.is_terminal();
    if rules.holds(Condition::EndIsStale, is_stale) {
        return Decision::Stale;
    }
    if rules.holds(Condition::WasEnded, matches!(found, TargetStatus::Dead | TargetStatus::Canceled)) {
        return match at.end {
            EndKind::Live => Decision::Late(found),
            EndKind::Dead | EndKind::Canceled => Decision::Ended(found),
        };
    }
    if rules.holds(Condition::WasPublished, found == TargetStatus::Published) {
        return match at.end {
            // Another attempt settled it.
            EndKind::Live => Decision::Ended(found),
            // One with no next attempt has lost its rest before, which was told.
            EndKind::Dead | EndKind::Canceled => {
                Decision::StaysLive { loses_rest: rules.holds(Condition::HasRest, at.is_due) }
            }
        };
    }
    // A live target can't fail, even if no more is known about it than its id: it only loses its replies.
    let is_captured = rules.holds(Condition::IsCaptured, at.end != EndKind::Live && at.is_captured);
    let status = if is_captured { TargetStatus::Published } else { at.end.status() };
    let mut targets = at.targets.to_vec();
    targets[at.index] = status;
    let is_first = status == TargetStatus::Published && !at.is_post_live;
    Decision::End(Ending {
        status,
        is_captured,
        post: roll_up(&targets),
        is_first: rules.holds(Condition::IsFirst, is_first),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use TargetStatus::{Canceled, Dead, Published, Queued};

    /// Returns a target that its attempt ends, with a change.
    fn ends(end: EndKind, change: impl FnOnce(&mut Snapshot<'static>)) -> Snapshot<'static> {
        let mut at = Snapshot {
            end,
            fence: Some(1),
            row_fence: 1,
            post: PostStatus::Publishing,
            version: 1,
            started: 1,
            is_post_live: false,
            targets: &[Queued],
            index: 0,
            is_captured: false,
            is_due: false,
        };
        change(&mut at);
        at
    }

    fn end(status: TargetStatus, post: PostStatus) -> Decision {
        let is_first = status == Published;
        Decision::End(Ending { status, is_captured: false, post: Some(post), is_first })
    }

    fn first_ends() -> Vec<(&'static str, Snapshot<'static>, Decision)> {
        let captured = Ending {
            status: Published,
            is_captured: true,
            post: Some(PostStatus::Published),
            is_first: true,
        };
        vec![
            ("live", ends(EndKind::Live, |_| {}), end(Published, PostStatus::Published)),
            ("dead", ends(EndKind::Dead, |_| {}), end(Dead, PostStatus::Failed)),
            ("canceled", ends(EndKind::Canceled, |_| {}), end(Canceled, PostStatus::Failed)),
            (
                "live, of another attempt",
                ends(EndKind::Live, |at| at.row_fence = 2),
                end(Published, PostStatus::Published),
            ),
            ("dead, of another attempt", ends(EndKind::Dead, |at| at.row_fence = 2), Decision::Superseded),
            (
                "dead, outside an attempt",
                ends(EndKind::Dead, |at| at.fence = None),
                end(Dead, PostStatus::Failed),
            ),
            (
                "dead, with the id of the main container",
                ends(EndKind::Dead, |at| at.is_captured = true),
                Decision::End(captured),
            ),
            (
                "live, with the id of the main container",
                ends(EndKind::Live, |at| at.is_captured = true),
                end(Published, PostStatus::Published),
            ),
            (
                "dead, edited before the first attempt",
                ends(EndKind::Dead, |at| (at.post, at.version) = (PostStatus::Queued, 2)),
                Decision::Stale,
            ),
            (
                "dead, edited while it published",
                ends(EndKind::Dead, |at| at.version = 2),
                end(Dead, PostStatus::Failed),
            ),
            (
                "live, with others that are not",
                ends(EndKind::Live, |at| (at.targets, at.index) = (&[Dead, Queued, Queued], 1)),
                Decision::End(Ending { status: Published, is_captured: false, post: None, is_first: true }),
            ),
            (
                "live, as the last one",
                ends(EndKind::Live, |at| {
                    (at.targets, at.index, at.is_post_live) = (&[Dead, Published, Queued], 2, true);
                }),
                Decision::End(Ending {
                    status: Published,
                    is_captured: false,
                    post: Some(PostStatus::Partial),
                    is_first: false,
                }),
            ),
        ]
    }

    fn further_ends() -> Vec<(&'static str, Snapshot<'static>, Decision)> {
        vec![
            ("late", ends(EndKind::Live, |at| at.targets = &[Dead]), Decision::Late(Dead)),
            ("dead again", ends(EndKind::Dead, |at| at.targets = &[Canceled]), Decision::Ended(Canceled)),
            (
                "dead again, of an edited post",
                ends(EndKind::Dead, |at| {
                    (at.targets, at.post, at.version) = (&[Canceled], PostStatus::Queued, 2);
                }),
                Decision::Ended(Canceled),
            ),
            ("live again", ends(EndKind::Live, |at| at.targets = &[Published]), Decision::Ended(Published)),
            (
                "live, and its reply dead",
                ends(EndKind::Dead, |at| {
                    (at.targets, at.is_captured, at.is_due) = (&[Published], true, true)
                }),
                Decision::StaysLive { loses_rest: true },
            ),
            (
                "live, and its reply dead again",
                ends(EndKind::Canceled, |at| (at.targets, at.is_captured) = (&[Published], true)),
                Decision::StaysLive { loses_rest: false },
            ),
        ]
    }

    /// Returns true if a row of the tables fails when a condition is negated.
    pub(in crate::publishing) fn needs(condition: Condition) -> bool {
        let rules = Rules::negating(condition);
        let mut cases = first_ends().into_iter().chain(further_ends());
        cases.any(|(_, at, expected)| settle(rules, &at) != expected)
    }

    #[test]
    fn a_target_ends_once_and_a_live_one_loses_its_rest_only() {
        for (name, at, expected) in first_ends().into_iter().chain(further_ends()) {
            assert_eq!(settle(Rules::PROTOCOL, &at), expected, "{name}");
        }
    }
}
