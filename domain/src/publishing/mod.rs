//! Decisions of the publishing protocol, as functions of plain data.
//!
//! [`begin()`] decides whether an attempt at a target begins, [`settle()`] how a target ends, [`wait()`] how long it
//! waits. `store::publishing` reads what they need and writes what they decide, in one transaction; crate `model` calls
//! the same functions in every state that it explores. Each of their conditions has a name, by which a test negates it.

pub mod begin;
mod place;
pub mod settle;
pub mod wait;

pub use self::{
    begin::begin,
    place::{Found, NoParent, Parent, Place},
    settle::settle,
    wait::wait,
};

use crate::PostStatus;
use std::time::Duration;

/// How much later than the row says a call may end that nobody saw end. The clock of a database that failed over
/// may differ, and bytes may still be on their way; a worker's clock differs by no more when it starts.
pub const CALL_MARGIN: Duration = Duration::from_secs(5);

crate::string_enum! {
    /// A condition of a decision.
    Condition, "condition" {
        /// The target is dead or canceled, so that no attempt begins.
        HasEnded = "has_ended",
        /// The post was edited since the workflow was started, so that no attempt begins.
        IsStale = "is_stale",
        /// A live target has no next attempt.
        IsComplete = "is_complete",
        /// The target's posts are being deleted from the platform.
        IsBeingUnpublished = "is_being_unpublished",
        /// The time of the next attempt has not come.
        IsEarly = "is_early",
        /// The next attempt waits because the last one failed.
        HasFailed = "has_failed",
        /// The last attempt cost nothing of the budget.
        WasFree = "was_free",
        /// Nothing was begun, and the time of the post has not come.
        IsScheduled = "is_scheduled",
        /// Nothing was begun, so that files may be awaited.
        NeedsFiles = "needs_files",
        /// One of the files is still being fetched or read.
        AwaitsFile = "awaits_file",
        /// An operator ends the target.
        IsStopped = "is_stopped",
        /// The account was disconnected.
        IsDisconnected = "is_disconnected",
        /// The post was deleted.
        IsDeleted = "is_deleted",
        /// A deletion of the target's posts from the platform has not told its result in time.
        MayBeUnpublished = "may_be_unpublished",
        /// The target replies to another post.
        IsReply = "is_reply",
        /// The place of a reply does not depend on the post that it replies to any more.
        HasPlace = "has_place",
        /// A reply has no place, and needs none.
        NeedsNoPlace = "needs_no_place",
        /// A call is looked up although the post that it replies to is being deleted from its platform.
        LooksUpBelow = "looks_up_below",
        /// A reply that has a place keeps it, whatever has become of the post that it replies to.
        KeepsPlace = "keeps_place",
        /// The attempt would publish: no call is to be looked up, and nothing bars it.
        WouldPublish = "would_publish",
        /// Operators froze what is left to publish.
        IsFrozen = "is_frozen",
        /// The freeze was not released meanwhile.
        IsFreezeOpen = "is_freeze_open",
        /// The attempt counts.
        IsCounted = "is_counted",
        /// The account rests.
        IsResting = "is_resting",
        /// The target has rested for too long.
        HasRested = "has_rested",
        /// The platform refuses the app.
        IsAppHeld = "is_app_held",
        /// The target has waited for the app for too long.
        HasWaitedForApp = "has_waited_for_app",
        /// A wait is at its end.
        IsOver = "is_over",
        /// The timeline does not tell of a wait.
        IsUntold = "is_untold",
        /// Another attempt holds the target, so that this one can't end it.
        IsSuperseded = "is_superseded",
        /// The post was edited since the workflow was started, so that it can't end the target.
        EndIsStale = "end_is_stale",
        /// The main container is live, so that the target loses only its replies.
        IsCaptured = "is_captured",
        /// The target is dead or canceled already.
        WasEnded = "was_ended",
        /// The target is published already.
        WasPublished = "was_published",
        /// A published target still has replies to lose.
        HasRest = "has_rest",
        /// The target is the post's first that is live.
        IsFirst = "is_first",
    }
}

/// The rules that a decision is made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    negated: Option<Condition>,
}

impl Rules {
    /// The rules of the protocol.
    pub const PROTOCOL: Self = Self { negated: None };

    /// Returns the rules of the protocol with one condition negated, to show that it is needed.
    pub const fn negating(condition: Condition) -> Self {
        Self { negated: Some(condition) }
    }

    /// Returns what a condition counts as.
    fn holds(self, condition: Condition, is_true: bool) -> bool {
        is_true != (self.negated == Some(condition))
    }
}

/// The purpose of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Publishes; counted as an attempt unless it continues one.
    Publish,
    /// Looks up the result of an earlier attempt; never counted.
    Look,
}

/// Reason why nothing new may be published for a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barred {
    /// The account was disconnected.
    Disconnected,
    /// The post was deleted.
    Deleted,
    /// The post that it replies to is not live.
    NoParent(NoParent),
    /// An operator ends the target.
    Stopped,
    /// Its posts may have been deleted from the platform: nothing is published below them.
    MayBeUnpublished,
}

/// How a target ends for which nothing new may be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarredEnd {
    /// As canceled: its post was deleted, and it is not live.
    Canceled,
    /// As dead.
    Dead {
        /// True if it may be live all the same.
        may_be_live: bool,
    },
}

impl Barred {
    /// Returns true if nothing is left to be done but to end the target: nothing tells where to publish it, or it is a
    /// reply to what is not live, or an operator ends it, and no publishing call has an unknown result that could be
    /// looked up.
    pub fn is_over(self, is_nowhere: bool, is_in_doubt: bool) -> bool {
        is_nowhere || matches!(self, Self::NoParent(_) | Self::Stopped) && !is_in_doubt
    }

    /// Returns how the target ends then.
    pub fn end(self, is_nowhere: bool, is_in_doubt: bool) -> BarredEnd {
        // After a restore, a call may have been made for which nothing tells where to look.
        let may_be_live = is_nowhere && is_in_doubt;
        match self {
            Self::Deleted if !may_be_live => BarredEnd::Canceled,
            _ => BarredEnd::Dead { may_be_live },
        }
    }
}

/// State of a container's publication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Publication {
    /// True from the intent of a publishing call on, until a call is known to have published nothing.
    pub has_intent: bool,
    /// True if the platform's id is stored.
    pub is_live: bool,
}

impl Publication {
    /// Returns true if the result of a publishing call is unknown.
    pub fn is_in_doubt(self) -> bool {
        self.has_intent && !self.is_live
    }
}

/// Returns true if the result of a publishing call of a target is unknown.
pub fn is_in_doubt(publications: &[Publication]) -> bool {
    publications.iter().any(|publication| publication.is_in_doubt())
}

/// Returns true if everything of a target is live.
pub fn is_complete(publications: &[Publication]) -> bool {
    publications.iter().all(|publication| publication.is_live)
}

/// Returns true if a post was edited since a workflow was started for version `started`. A post whose publishing has begun
/// can't be edited, so its targets are not stale.
fn is_stale(post: PostStatus, version: i32, started: i32) -> bool {
    post.is_editable() && version != started
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_can_look_up_is_not_said_to_be_canceled() {
        let barred = [
            Barred::Disconnected,
            Barred::Deleted,
            Barred::NoParent(NoParent::Dead),
            Barred::Stopped,
            Barred::MayBeUnpublished,
        ];
        let dead = |may_be_live| BarredEnd::Dead { may_be_live };
        let no_doubt = [dead(false), BarredEnd::Canceled, dead(false), dead(false), dead(false)];
        for (is_nowhere, is_in_doubt, over, ends) in [
            (false, false, [false, false, true, true, false], no_doubt),
            (true, false, [true; 5], no_doubt),
            // It is looked up first, and found not to be live.
            (false, true, [false; 5], no_doubt),
            // After a restore.
            (true, true, [true; 5], [dead(true); 5]),
        ] {
            assert_eq!(barred.map(|barred| barred.is_over(is_nowhere, is_in_doubt)), over);
            assert_eq!(barred.map(|barred| barred.end(is_nowhere, is_in_doubt)), ends);
        }
    }

    #[test]
    fn no_condition_can_be_negated() {
        for condition in Condition::ALL.iter().copied() {
            let is_needed = begin::tests::needs(condition) || settle::tests::needs(condition);
            assert!(is_needed, "{condition} can be negated: the tables don't notice");
        }
    }
}
