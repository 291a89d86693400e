//! The decision whether an attempt at a target begins, and as what.
//!
//! The order of the conditions is part of the protocol: a target that has ended is not early, one that is early waits for
//! no file, and a call that is to be looked up waits for no freeze. What takes a lock or a write to find out is a
//! [`Question`], which is asked only where the answer decides.

use super::{
    Barred, Condition, Found, Parent, Place, Publication, Purpose, Rules, is_complete, is_in_doubt, is_stale,
    wait::{self, RowWait, WaitReason, Waiting},
};
use crate::{ErrorCode, PostStatus, TargetStatus, retry};
use chrono::{DateTime, TimeDelta, Utc};
use std::{
    ops::ControlFlow::{self, Break, Continue},
    time::Duration,
};

/// Maximum time that an attempt may be early: Temporal's timers and the database's clock differ.
pub const TOLERANCE: Duration = Duration::from_secs(1);
/// Time from which a poll is not early any more: a clock that was ahead wrote its time, and the workflow has waited by
/// Temporal's clock. A poll that comes too soon after a restart of the workflow does no harm.
const MAX_POLL_WAIT: Duration = Duration::from_secs(600);
/// Maximum time by which the database's clock may have been ahead when an intent was written.
const MAX_AHEAD: TimeDelta = TimeDelta::days(1);
/// Pause between two looks at a file that is being fetched or read. Its end wakes the target; this finds one that was not
/// woken.
const FILE_PAUSE: Duration = Duration::from_secs(60);

/// A target as an attempt finds it, under the lock of its row.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The purpose of the attempt.
    pub purpose: Purpose,
    /// Current time, by the database's clock.
    pub now: DateTime<Utc>,
    /// Status of the target.
    pub status: TargetStatus,
    /// Status of the post.
    pub post: PostStatus,
    /// Version of the post.
    pub version: i32,
    /// Version that the workflow was started for.
    pub started: i32,
    /// When the target is due, if not at once.
    pub scheduled_at: Option<DateTime<Utc>>,
    /// When the next attempt is due.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// True if an intent was set back, whose clock has written the time of the next attempt, too.
    pub is_set_back: bool,
    /// When the deletion of the target's posts from the platform is known at the latest.
    pub unpublish_until: Option<DateTime<Utc>>,
    /// Attempts begun.
    pub attempts: i32,
    /// Attempts of these that cost nothing.
    pub free_attempts: i32,
    /// True if the attempt continues the last one.
    pub is_continuation: bool,
    /// When the platform throttled the first of the latest attempts.
    pub throttled_since: Option<DateTime<Utc>>,
    /// Code of the last failure, or of the wait.
    pub error_code: Option<ErrorCode>,
    /// The wait in the row.
    pub waiting: Option<Waiting>,
    /// Publications of the target's containers, in order.
    pub publications: &'a [Publication],
    /// True if an operator ends the target.
    pub is_stopped: bool,
    /// True if the account was disconnected.
    pub is_disconnected: bool,
    /// True if the post was deleted.
    pub is_deleted: bool,
    /// True if the post replies to another one.
    pub is_reply: bool,
    /// The posts that it was published below, or was to be, from its first attempt on.
    pub parent: Option<&'a Parent>,
    /// True while operators have frozen the target's platform, account or organization.
    pub is_frozen: bool,
    /// True if the target waits for the end of this freeze already.
    pub knows_freeze: bool,
    /// When the account has rested.
    pub rests_until: Option<DateTime<Utc>>,
    /// True while the platform refuses the app.
    pub is_app_held: bool,
}

impl<'a> Snapshot<'a> {
    /// Returns a target of a queued post that is due, was never attempted and that nothing holds.
    pub const fn due(now: DateTime<Utc>, publications: &'a [Publication]) -> Self {
        Self {
            purpose: Purpose::Publish,
            now,
            status: TargetStatus::Queued,
            post: PostStatus::Publishing,
            version: 1,
            started: 1,
            scheduled_at: None,
            next_attempt_at: None,
            is_set_back: false,
            unpublish_until: None,
            attempts: 0,
            free_attempts: 0,
            is_continuation: false,
            throttled_since: None,
            error_code: None,
            waiting: None,
            publications,
            is_stopped: false,
            is_disconnected: false,
            is_deleted: false,
            is_reply: false,
            parent: None,
            is_frozen: false,
            knows_freeze: false,
            rests_until: None,
            is_app_held: false,
        }
    }
}

/// Something that a decision depends on and that the snapshot does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Is one of the target's files still being fetched or read?
    File,
    /// Which state is the post in that it replies to?
    Parent,
    /// Is the freeze still open? Its row is locked from then on.
    Freeze,
    /// When does the hold of the app end? The target may be the one that looks whether the platform takes it again.
    App,
}

/// Answers to the questions that were asked.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// True if one of the files is still being fetched or read.
    pub awaits_file: Option<bool>,
    /// State of the post that it replies to.
    pub parent: Option<Found>,
    /// True if the freeze is still open.
    pub is_freeze_open: Option<bool>,
    /// When the hold of the app ends; `None` for the target that looks.
    pub app_until: Option<Option<DateTime<Utc>>>,
}

/// Decision on a target that an attempt was to begin for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The answer to this question decides.
    Ask(Question),
    /// The target has this final status.
    Ended(TargetStatus),
    /// The post was edited; another message brings the new version to its workflow.
    Stale,
    /// It is too early; the row contains the next look.
    Early(Duration),
    /// The last attempt failed, and the next one is due after this time.
    Failed {
        /// Time to wait.
        pause: Duration,
        /// Code of the failure.
        code: ErrorCode,
        /// Its number in the retry budget.
        number: u32,
    },
    /// The target waits for what it needs before an attempt.
    Wait(RowWait),
    /// The target waits for its release.
    Freeze {
        /// True if it did not wait for the end of this freeze before.
        is_new: bool,
    },
    /// The target waits together with others.
    Rest(Rest),
    /// The attempt begins.
    Begin(Start),
}

/// A wait that a target shares with others: of its account, which rests, or with its app, which the platform refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Reason of the wait.
    pub reason: WaitReason,
    /// Error code of the target meanwhile.
    pub code: ErrorCode,
    /// When the others go on.
    pub until: DateTime<Utc>,
    /// Since when the target waits.
    pub since: DateTime<Utc>,
    /// End of the wait.
    pub ends_at: DateTime<Utc>,
    /// True if the timeline does not tell of it yet.
    pub is_untold: bool,
    /// True if the target had another code before.
    pub is_new: bool,
}

/// An attempt that begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Place where it publishes.
    pub place: Place,
    /// Reason why nothing new may be published; calls already begun are still looked up.
    pub barred: Option<Barred>,
    /// True if it uses up the retry budget.
    pub is_counted: bool,
    /// A wait that ended in vain: nothing is left to be done but to end the target.
    pub waited_in_vain: Option<WaitReason>,
    /// The wait in the row, if it is not over with the attempt.
    pub waiting: Option<Waiting>,
    /// True if it is the first one of its post.
    pub is_first: bool,
    /// True if the target was frozen, and its error code is not that of a failure.
    pub was_frozen: bool,
    /// True if nothing is left for the account's grant to do.
    pub needs_no_grant: bool,
}

impl Snapshot<'_> {
    fn is_in_doubt(&self) -> bool {
        is_in_doubt(self.publications)
    }

    fn has_begun(&self) -> bool {
        self.publications.iter().any(|publication| publication.has_intent)
    }

    fn was_frozen(&self) -> bool {
        self.error_code == Some(ErrorCode::Frozen)
    }

    /// Returns the time until an instant; zero once it has passed, and without one.
    fn until(&self, at: Option<DateTime<Utc>>) -> Duration {
        at.and_then(|at| (at - self.now).to_std().ok()).unwrap_or_default()
    }
}

/// Decides whether an attempt begins.
pub fn begin(rules: Rules, at: &Snapshot<'_>, answers: &Answers) -> Decision {
    match (Steps { rules, at, answers }).run() {
        Break(decision) => decision,
        Continue(start) => Decision::Begin(start),
    }
}

/// The steps of a decision. Each one decides, or goes on.
struct Steps<'a> {
    rules: Rules,
    at: &'a Snapshot<'a>,
    answers: &'a Answers,
}

/// The place of an attempt, and what follows from the search for it.
struct Placed {
    place: Place,
    barred: Option<Barred>,
    waited_in_vain: Option<WaitReason>,
}

impl Steps<'_> {
    fn run(&self) -> ControlFlow<Decision, Start> {
        let at = self.at;
        self.check_end()?;
        self.check_time()?;
        let waited_in_vain = self.await_file()?;
        let Placed { place, barred, mut waited_in_vain } = self.find_place(waited_in_vain)?;
        let is_counted = at.purpose == Purpose::Publish && !at.is_continuation && waited_in_vain.is_none();
        let is_counted = self.holds(Condition::IsCounted, is_counted);
        if self.holds(Condition::WouldPublish, !at.is_in_doubt() && barred.is_none()) {
            self.await_release()?;
            if is_counted {
                waited_in_vain = self.rest()?;
            }
            if is_counted && waited_in_vain.is_none() {
                waited_in_vain = self.await_app()?;
            }
        }
        Continue(Start {
            needs_no_grant: barred == Some(Barred::Disconnected) && !at.has_begun(),
            place,
            barred,
            is_counted: is_counted && waited_in_vain.is_none(),
            waited_in_vain,
            waiting: at.waiting.filter(|waiting| !waiting.reason.is_before_attempt()),
            is_first: at.post.is_editable(),
            was_frozen: at.was_frozen(),
        })
    }

    fn holds(&self, condition: Condition, is_true: bool) -> bool {
        self.rules.holds(condition, is_true)
    }

    /// Finds out whether nothing is left to be done, or nothing for this workflow.
    fn check_end(&self) -> ControlFlow<Decision> {
        let at = self.at;
        let has_ended = matches!(at.status, TargetStatus::Dead | TargetStatus::Canceled);
        if self.holds(Condition::HasEnded, has_ended) {
            return Break(Decision::Ended(at.status));
        }
        if self.holds(Condition::IsStale, is_stale(at.post, at.version, at.started)) {
            return Break(Decision::Stale);
        }
        // A live target has a next attempt until its replies and its URL are known or given up.
        let is_complete = at.status == TargetStatus::Published && at.next_attempt_at.is_none();
        if self.holds(Condition::IsComplete, is_complete) {
            return Break(Decision::Ended(at.status));
        }
        Continue(())
    }

    /// Finds out whether the time for the attempt has come.
    fn check_time(&self) -> ControlFlow<Decision> {
        let at = self.at;
        // Its posts are being deleted from the platform, and no call of it is open. The lease in the row is the wait.
        let lease = at.unpublish_until.and_then(|until| (until - at.now).to_std().ok());
        if self.holds(Condition::IsBeingUnpublished, lease.is_some()) {
            return Break(Decision::Early(lease.unwrap_or_default() + TOLERANCE));
        }
        let remaining = at.until(at.next_attempt_at.filter(|_| !at.is_set_back));
        // A target that was frozen waits for its turn after the release, however long that takes.
        let is_from_future = at.is_continuation && !at.was_frozen() && remaining > MAX_POLL_WAIT;
        let is_early = at.purpose == Purpose::Publish && remaining > TOLERANCE && !is_from_future;
        if self.holds(Condition::IsEarly, is_early) {
            return Break(self.wait_for_next(remaining));
        }
        // Temporal's clock may be ahead, and a retry of a target that an operator ended too early starts it at once.
        let until_due = at.until(at.scheduled_at);
        let is_ended = at.is_deleted || at.is_stopped || at.is_disconnected;
        if self.holds(Condition::IsScheduled, !at.has_begun() && until_due > TOLERANCE && !is_ended) {
            return Break(Decision::Early(until_due));
        }
        Continue(())
    }

    /// Returns the wait for the next attempt, as the last one reported it.
    fn wait_for_next(&self, pause: Duration) -> Decision {
        let at = self.at;
        match at.error_code {
            Some(code) if self.holds(Condition::HasFailed, at.status == TargetStatus::Failed) => {
                // An attempt that was throttled has a number, too, though it costs nothing.
                let was_free = at.throttled_since.is_some_and(|since| at.now < since + retry::THROTTLED_FREE);
                let was_free = self.holds(Condition::WasFree, was_free);
                let number = (at.attempts - at.free_attempts + i32::from(was_free)).unsigned_abs();
                Decision::Failed { pause, code, number }
            }
            _ => Decision::Early(pause),
        }
    }

    /// Waits for the target's files. Continues with the reason if that was in vain.
    fn await_file(&self) -> ControlFlow<Decision, Option<WaitReason>> {
        let at = self.at;
        if !self.holds(Condition::NeedsFiles, !at.has_begun() && !at.is_deleted) {
            return Continue(None);
        }
        let Some(awaits_file) = self.answers.awaits_file else { return Break(Decision::Ask(Question::File)) };
        if !self.holds(Condition::AwaitsFile, awaits_file) {
            return Continue(None);
        }
        let until = wait::since(at.waiting, WaitReason::File, at.now) + wait::FILE_LIMIT;
        self.wait_before(WaitReason::File, FILE_PAUSE, until)
    }

    /// Waits for what the target needs before an attempt. Continues with the reason if that was in vain.
    fn wait_before(
        &self,
        reason: WaitReason,
        look_after: Duration,
        until: DateTime<Utc>,
    ) -> ControlFlow<Decision, Option<WaitReason>> {
        let at = self.at;
        if self.holds(Condition::IsOver, at.now >= until) {
            return Continue(Some(reason));
        }
        Break(Decision::Wait(RowWait {
            reason,
            since: wait::since(at.waiting, reason, at.now),
            look_after,
            until,
            is_new: wait::is_untold(self.rules, at.waiting, reason),
        }))
    }

    /// Returns why nothing new may be published, whatever it replies to.
    fn barred(&self) -> Option<Barred> {
        let at = self.at;
        if self.holds(Condition::IsStopped, at.is_stopped) {
            Some(Barred::Stopped)
        } else if self.holds(Condition::IsDisconnected, at.is_disconnected) {
            Some(Barred::Disconnected)
        } else if self.holds(Condition::IsDeleted, at.is_deleted) {
            Some(Barred::Deleted)
        } else {
            // The lease is over, and neither a result nor a release has ended it.
            let may_be_unpublished = at.unpublish_until.is_some();
            self.holds(Condition::MayBeUnpublished, may_be_unpublished).then_some(Barred::MayBeUnpublished)
        }
    }

    /// Finds out where the target is published. Waits until the post that it replies to is live.
    fn find_place(&self, waited_in_vain: Option<WaitReason>) -> ControlFlow<Decision, Placed> {
        let at = self.at;
        let barred = self.barred();
        let placed = |place, barred| Continue(Placed { place, barred, waited_in_vain });
        if !self.holds(Condition::IsReply, at.is_reply) {
            return placed(Place::Own, barred);
        }
        let known = at.parent.map_or(Place::Nowhere, |parent| Place::Below(parent.clone()));
        // The rest of its thread goes below its own first container.
        let is_live = at.publications.first().is_some_and(|publication| publication.is_live);
        let has_place = at.parent.is_some() && (is_live || barred.is_some());
        let needs_no_place = at.parent.is_none() && (barred.is_some() || waited_in_vain.is_some());
        if self.holds(Condition::HasPlace, has_place) || self.holds(Condition::NeedsNoPlace, needs_no_place) {
            return placed(known, barred);
        }
        let Some(found) = &self.answers.parent else { return Break(Decision::Ask(Question::Parent)) };
        match found {
            Found::Gone(reason) => placed(known, Some(Barred::NoParent(*reason))),
            // A post that is being deleted may stay, or its place be lost: nothing is published below it until that is
            // known, but a call is looked up.
            Found::Held { .. }
                if self.holds(Condition::LooksUpBelow, at.parent.is_some() && at.is_in_doubt()) =>
            {
                placed(known, None)
            }
            Found::Live(_) | Found::Waiting { .. }
                if self.holds(Condition::KeepsPlace, at.parent.is_some()) =>
            {
                placed(known, None)
            }
            Found::Live(parent) => placed(Place::Below(parent.clone()), None),
            Found::Waiting { pause, next } | Found::Held { pause, next } => {
                let since = wait::since(at.waiting, WaitReason::Parent, at.now);
                let until = next.map_or(since, |next| next.max(since)) + wait::PARENT_LIMIT;
                let waited_in_vain = self.wait_before(WaitReason::Parent, *pause, until)?;
                Continue(Placed { place: known, barred: None, waited_in_vain })
            }
        }
    }

    /// Waits until the target is released, if operators froze it.
    fn await_release(&self) -> ControlFlow<Decision> {
        let at = self.at;
        if !self.holds(Condition::IsFrozen, at.is_frozen && !is_complete(at.publications)) {
            return Continue(());
        }
        let Some(is_open) = self.answers.is_freeze_open else {
            return Break(Decision::Ask(Question::Freeze));
        };
        if self.holds(Condition::IsFreezeOpen, is_open) {
            return Break(Decision::Freeze { is_new: !at.knows_freeze });
        }
        Continue(())
    }

    /// Waits until the account has rested. Continues with the reason if that was in vain.
    fn rest(&self) -> ControlFlow<Decision, Option<WaitReason>> {
        let at = self.at;
        let until = at.rests_until.unwrap_or(at.now);
        if !self.holds(Condition::IsResting, until > at.now + TOLERANCE) {
            return Continue(None);
        }
        // A call that is throttled now and then does not begin the wait again.
        let since = at.throttled_since.unwrap_or(at.now);
        if self.holds(Condition::HasRested, at.now >= since + wait::REST_LIMIT) {
            return Continue(Some(WaitReason::Rest));
        }
        let ends_at = since + wait::REST_LIMIT;
        Break(self.rest_until(WaitReason::Rest, ErrorCode::RateLimited, until, since, ends_at))
    }

    /// Waits until the platform takes the app again, unless the target is the one that looks. Continues with the reason if
    /// that was in vain.
    fn await_app(&self) -> ControlFlow<Decision, Option<WaitReason>> {
        let at = self.at;
        if !self.holds(Condition::IsAppHeld, at.is_app_held) {
            return Continue(None);
        }
        let since = wait::since(at.waiting, WaitReason::App, at.now);
        let ends_at = since + wait::APP_LIMIT;
        if self.holds(Condition::HasWaitedForApp, at.now >= ends_at) {
            return Continue(Some(WaitReason::App));
        }
        match self.answers.app_until {
            None => Break(Decision::Ask(Question::App)),
            Some(None) => Continue(None),
            Some(Some(until)) => {
                Break(self.rest_until(WaitReason::App, ErrorCode::AppRefused, until, since, ends_at))
            }
        }
    }

    fn rest_until(
        &self,
        reason: WaitReason,
        code: ErrorCode,
        until: DateTime<Utc>,
        since: DateTime<Utc>,
        ends_at: DateTime<Utc>,
    ) -> Decision {
        Decision::Rest(Rest {
            reason,
            code,
            until,
            since,
            ends_at,
            is_untold: wait::is_untold(self.rules, self.at.waiting, reason),
            is_new: self.at.error_code != Some(code),
        })
    }
}

/// Times of a publishing call, by the database's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTimes {
    /// When the call was begun.
    pub begun_at: DateTime<Utc>,
    /// When it ends at the latest.
    pub deadline: Option<DateTime<Utc>>,
    /// When it returned without a definite result.
    pub ended_at: Option<DateTime<Utc>>,
    /// When the first call with an unknown result was begun, if its intent was cleared since.
    pub doubted_since: Option<DateTime<Utc>>,
}

impl CallTimes {
    /// Returns the corrected times of an intent that lies in the future: the clock was ahead when it was written, by an
    /// unknown time up to a day. A search from the corrected time reads everything since the real one. Returns `None` for
    /// an intent of the past.
    pub fn set_back(self, now: DateTime<Utc>) -> Option<Self> {
        if self.begun_at <= now + TOLERANCE {
            return None;
        }
        let earliest = now - MAX_AHEAD;
        Some(Self {
            begun_at: earliest,
            deadline: self.deadline.map(|deadline| now + (deadline - self.begun_at)),
            ended_at: self.ended_at.map(|ended| ended.min(now)),
            doubted_since: self.doubted_since.map(|doubted| if doubted > now { earliest } else { doubted }),
        })
    }
}

#[cfg(test)]
pub(super) mod tests;
