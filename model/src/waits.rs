//! One target over days: everything that it waits for, the ends of these waits, and its budget.
//!
//! Time passes in steps of a chosen length, of which a wait takes at least one. An attempt, or a look at a platform that
//! is processing, is one step here; [`super::protocol`] explores what happens within one. What follows by itself is told
//! apart from what users and operators want: attempts with any answer of the platform, its other answers meanwhile, and
//! time. No way through these is endless, which is what "every wait ends" means, and the longest one is its bound. Two
//! things are taken for granted: operators release what they froze, and a post that is replied to ends, which is this
//! model's result for it.
//!
//! Times are relative to now, so that a target that only gets older comes to a state that it had before.
//!
//! Left out: the address of a live post, and slots of workers.

mod attempt;
mod wills;

use crate::graph::{self, Broken, Cause, Explored, Kept, Next};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    ErrorCode, PostStatus, TargetStatus, WaitReason,
    publishing::{
        self, Found, NoParent, Parent, Place, Purpose, Rules,
        begin::{Answers, Decision, Question, Snapshot, Start},
        wait,
    },
};
use std::{sync::LazyLock, time::Duration};
use strum::{EnumIter, IntoStaticStr};

pub use wills::Will;

/// Names of the transitions of the product that this model makes, besides those of [`super::Transition`].
pub(crate) const TRANSITIONS: [&str; 10] = [
    "RecordProcessing",
    "Accept",
    "Discard",
    "FreeAttempt",
    "RestAccount",
    "HoldApp",
    "Fail",
    "Look",
    "RetryNow",
    "DeleteFile",
];

/// Time of every decision; all others are relative to it.
const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;
/// Containers of a post.
const CONTAINERS: usize = 2;
/// A number of attempts beyond the budget, at which the model stops counting.
const MOST_SPENT: u8 = 20;
/// A short pause, which is a step in any case.
const PAUSE: Duration = Duration::from_secs(60);
/// Polling window of the platform.
const WINDOW: TimeDelta = TimeDelta::minutes(30);

/// The posts that a reply is published below.
static BELOW: LazyLock<Parent> =
    LazyLock::new(|| Parent { root: "root".to_owned(), last: "first".to_owned() });
/// The same after another post of the thread was published.
static BELOW_LATER: LazyLock<Parent> =
    LazyLock::new(|| Parent { root: "root".to_owned(), last: "second".to_owned() });

/// Returns the posts that a reply is published below; `is_later` after its thread got longer.
fn below(is_later: bool) -> &'static Parent {
    if is_later { &BELOW_LATER } else { &BELOW }
}

/// A target over time, with what can happen to it.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// Length of a step of time.
    pub step: TimeDelta,
    /// 1, or 2 with a reply.
    pub containers: usize,
    /// Errors that the platform may answer with.
    pub errors: &'static [ErrorCode],
    /// True if the platform processes posts, before the publishing call and after.
    pub processes: bool,
    /// True if look-ups may find posts that another target may have published.
    pub contests: bool,
    /// True if the service may fail at its own part, and workers may stop before the publishing call.
    pub falters: bool,
    /// Attempts that may stop after they began, at most.
    pub crashes: u8,
    /// True if any number of attempts and looks in a row may stop: what they do kills their workers.
    pub kills: bool,
    /// True if the post has a file that is being fetched.
    pub has_file: bool,
    /// True if the post replies to another one, which is not live yet.
    pub is_reply: bool,
    /// True if the account has other targets, which the platform throttles and whose app it refuses at any time.
    pub has_others: bool,
    /// Actions of users and operators.
    pub wills: &'static [Will],
    /// Maximum number of these actions, in all.
    pub most_wills: u8,
    /// A rule that is left out, to show that an invariant depends on it.
    pub flaw: Option<WaitFlaw>,
    /// Rules of the decisions that the product makes.
    pub rules: Rules,
}

/// A rule of waiting that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter)]
pub enum WaitFlaw {
    /// Each wait of an attempt starts over.
    RestartsWait,
    /// A target that rests with its account does not keep since when.
    RestartsRest,
    /// The polling window starts over with each look.
    RestartsPolling,
    /// An attempt that the platform throttled costs nothing, however long that has lasted.
    ThrottlesForFree,
    /// A refresh that failed costs nothing, however often.
    RefreshesForFree,
    /// An attempt whose token was refused costs nothing.
    RefusesForFree,
    /// An attempt that continued another one is continued after its failure, too.
    ContinuesFailed,
    /// An open call is looked up after the budget for as long as the platform does not answer.
    LooksWithoutEnd,
    /// A look that ends a target does not say that it may be live.
    HidesDoubtOfLook,
    /// A target whose app was refused to the end does not say that it may be live.
    HidesDoubtOfApp,
    /// A target that waited before an attempt to the end does not say that it may be live.
    HidesDoubtOfWait,
    /// The time of its own that a target has is not asked for.
    IgnoresOwnTime,
    /// An attempt begins although the target's posts are being deleted from the platform.
    IgnoresLease,
    /// A reply does not keep the place of its first attempt.
    ForgetsPlace,
    /// An edited post goes on with the waits of its former version.
    KeepsWaitOfEdited,
    /// A failed attempt leaves no intent.
    ForgetsIntent,
    /// A deleted post is canceled although a call may have published it.
    CancelsInDoubt,
    /// A released target counts the time for which it was frozen as a rest.
    KeepsRestOfReleased,
    /// A target that kills each of its workers goes on.
    KillsWithoutEnd,
}

/// A statement that holds in every state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EnumIter, IntoStaticStr)]
pub enum WaitInvariant {
    /// Each container is published at most once.
    PublishedOnce,
    /// A dead target is not live, or says that it may be.
    DeadIsHonest,
    /// Nothing is live when the deletion was confirmed by "canceled".
    CanceledIsNotLive,
    /// No attempt begins before the time of the target, or of its next attempt.
    NotBeforeTime,
    /// No attempt begins while a file is awaited.
    FilesAreAwaited,
    /// A reply is published below what it replies to, and no attempt to publish it begins before that is live.
    ReplyFollows,
    /// A reply that has a place keeps it.
    PlaceIsKept,
    /// No attempt that would publish begins while the account rests, or the app is refused and another target looks.
    RestingPublishesNothing,
    /// No attempt begins while the target's posts are being deleted from the platform.
    WithdrawnAttemptsNothing,
    /// No target ends because of a wait before the time for that has passed since somebody last changed something.
    WaitsItsTime,
}

/// A container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Part {
    /// Steps since the intent, at most 1: reads show by then what its call has published.
    intent: Option<u8>,
    /// True if the platform accepted the call.
    is_accepted: bool,
    /// True if an accepted call may still publish.
    may_come: bool,
    /// True if the platform's id is stored.
    is_live: bool,
    /// Posts that the platform has.
    copies: u8,
}

/// The wait in the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Waiting {
    reason: WaitReason,
    since: i16,
    until: Option<i16>,
}

/// The file of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum File {
    Ready,
    Awaited,
    /// Retention has deleted it.
    Deleted,
}

/// The post that a reply is published below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Above {
    /// It has a next step for so many steps of time.
    Open(u8),
    /// Nobody publishes it, and it does not end.
    Lost,
    Live,
    /// Another post of its thread was published.
    Longer,
    /// It is being deleted from the platform.
    Held,
    Gone,
}

/// The next step of the workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Turn {
    Attempt,
    /// A look at a platform that is processing.
    Poll,
    /// After a pause.
    Waits {
        polls: bool,
    },
}

/// A state of the target, and of what is around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WaitState {
    status: TargetStatus,
    /// True if a dead target says that it may be live.
    may_be_live: bool,
    has_begun: bool,
    parts: [Part; CONTAINERS],
    /// Attempts spent of the budget.
    spent: u8,
    token_attempts: u8,
    is_continuation: bool,
    next_attempt: Option<i16>,
    waiting: Option<Waiting>,
    throttled_since: Option<i16>,
    processing_since: Option<i16>,
    /// The target's own time.
    scheduled: Option<i16>,
    awaits_release: bool,
    /// The place of a reply, from its first attempt on; true if its thread was longer by then.
    place: Option<bool>,
    /// True if a live target has lost its reply because that failed.
    has_error: bool,
    is_frozen: bool,
    is_stopped: bool,
    is_deleted: bool,
    is_disconnected: bool,
    is_unpublished: bool,
    /// End of the hold of a target whose posts are being deleted from the platform.
    lease: Option<i16>,
    /// Deletions without a result.
    open_deletions: u8,
    rests_until: Option<i16>,
    /// When the hold of the app ends, and whether the target is the one that looks.
    app: Option<(i16, bool)>,
    file: File,
    above: Above,
    turn: Turn,
    /// Steps of time since somebody changed something.
    age: i16,
    wills: u8,
    crashes: u8,
    /// Attempts and looks in a row that had no result.
    unanswered: u8,
    broken: Option<WaitInvariant>,
}

/// An attempt, or a look, with what it read when it began.
#[derive(Clone, Copy)]
struct Run {
    state: WaitState,
    is_counted: bool,
    barred: bool,
    is_nowhere: bool,
    waiting: Option<Waiting>,
    processing_since: Option<i16>,
    was_live: bool,
    was_in_doubt: bool,
}

type Steps = Vec<Next<WaitState>>;

impl WaitState {
    fn is_open(&self) -> bool {
        !matches!(self.status, TargetStatus::Published | TargetStatus::Dead | TargetStatus::Canceled)
    }

    fn has_ended(&self) -> bool {
        !self.is_open() && (self.status != TargetStatus::Published || self.next_attempt.is_none())
    }

    fn publications(&self) -> [publishing::Publication; CONTAINERS] {
        self.parts
            .map(|part| publishing::Publication { has_intent: part.intent.is_some(), is_live: part.is_live })
    }

    fn is_in_doubt(&self) -> bool {
        publishing::is_in_doubt(&self.publications())
    }

    fn has_intent(&self) -> bool {
        self.parts.iter().any(|part| part.intent.is_some())
    }

    /// Notes the first invariant that is broken.
    fn demand(&mut self, invariant: WaitInvariant, holds: bool) {
        if !holds {
            self.broken = self.broken.or(Some(invariant));
        }
    }

    /// Wakes the workflow. One that polls goes on polling.
    fn wake(&mut self) {
        if self.turn == (Turn::Waits { polls: false }) {
            self.turn = Turn::Attempt;
        }
    }
}

impl Waits {
    /// Returns a target that is published at once to a platform with these errors, in steps of hours.
    pub fn new(hours: i64, errors: &'static [ErrorCode]) -> Self {
        Self {
            step: TimeDelta::hours(hours),
            containers: 1,
            errors,
            processes: false,
            contests: false,
            falters: false,
            crashes: 0,
            kills: false,
            has_file: false,
            is_reply: false,
            has_others: false,
            wills: &[],
            most_wills: 0,
            flaw: None,
            rules: Rules::PROTOCOL,
        }
    }

    /// Explores all states.
    ///
    /// # Errors
    ///
    /// With the first invariant that does not hold.
    pub fn explore(&self) -> Result<Explored, Broken> {
        graph::explore(self)
    }

    fn has(&self, flaw: WaitFlaw) -> bool {
        self.flaw == Some(flaw)
    }

    fn at(&self, steps: i16) -> DateTime<Utc> {
        NOW + self.step * i32::from(steps)
    }

    /// Returns the first step at or after a time.
    fn steps(&self, time: DateTime<Utc>) -> i16 {
        let (time, step) = ((time - NOW).num_seconds(), self.step.num_seconds());
        i16::try_from(-(-time).div_euclid(step)).expect("waits are limited")
    }

    /// Returns the number of steps that a time takes.
    fn length(&self, time: impl Into<Length>) -> i16 {
        self.steps(NOW + time.into().0)
    }

    fn snapshot<'a>(
        &self,
        state: &WaitState,
        purpose: Purpose,
        publications: &'a [publishing::Publication],
    ) -> Snapshot<'a> {
        let at = |steps: Option<i16>| steps.map(|steps| self.at(steps));
        let ignores_time = state.scheduled.is_some() && self.has(WaitFlaw::IgnoresOwnTime);
        let code = match state.status {
            _ if state.awaits_release => Some(ErrorCode::Frozen),
            TargetStatus::Failed => Some(ErrorCode::NetworkError),
            _ => None,
        };
        Snapshot {
            purpose,
            status: state.status,
            post: if state.has_begun { PostStatus::Publishing } else { PostStatus::Queued },
            scheduled_at: at(state.scheduled.filter(|_| !ignores_time)),
            next_attempt_at: at(state.next_attempt.filter(|_| !ignores_time)),
            unpublish_until: at(state.lease.filter(|_| !self.has(WaitFlaw::IgnoresLease))),
            attempts: i32::from(state.spent),
            is_continuation: state.is_continuation,
            throttled_since: at(state.throttled_since),
            error_code: code,
            waiting: state.waiting.map(|waiting| self.noted(waiting)),
            is_stopped: state.is_stopped,
            is_disconnected: state.is_disconnected,
            is_deleted: state.is_deleted,
            is_reply: self.is_reply,
            parent: state.place.filter(|_| !self.has(WaitFlaw::ForgetsPlace)).map(below),
            is_frozen: state.is_frozen,
            knows_freeze: state.awaits_release,
            rests_until: at(state.rests_until),
            is_app_held: state.app.is_some(),
            ..Snapshot::due(NOW, publications)
        }
    }

    fn noted(&self, waiting: Waiting) -> wait::Waiting {
        wait::Waiting {
            reason: waiting.reason,
            since: self.at(waiting.since),
            until: waiting.until.map(|until| self.at(until)),
            is_retried: false,
        }
    }

    fn found(&self, state: &WaitState) -> Found {
        let next = Some(self.at(1));
        match state.above {
            Above::Open(_) => Found::Waiting { pause: PAUSE, next },
            Above::Lost => Found::Waiting { pause: PAUSE, next: None },
            Above::Live => Found::Live(below(false).clone()),
            Above::Longer => Found::Live(below(true).clone()),
            Above::Held => Found::Held { pause: PAUSE, next },
            Above::Gone => Found::Gone(NoParent::Deleted),
        }
    }

    /// Begins an attempt or a look. Returns `None`, with the wait in the row, if none begins.
    fn begin(&self, state: &mut WaitState, purpose: Purpose) -> Option<Start> {
        let before = *state;
        let publications = before.publications();
        let snapshot = self.snapshot(&before, purpose, &publications[..self.containers]);
        let mut answers = Answers::default();
        let decision = loop {
            match publishing::begin(self.rules, &snapshot, &answers) {
                Decision::Ask(Question::File) => answers.awaits_file = Some(state.file == File::Awaited),
                Decision::Ask(Question::Parent) => answers.parent = Some(self.found(state)),
                Decision::Ask(Question::Freeze) => answers.is_freeze_open = Some(state.is_frozen),
                Decision::Ask(Question::App) => {
                    answers.app_until = Some(match state.app {
                        Some((until, false)) if until > 0 => Some(self.at(until)),
                        _ => {
                            state.app = Some((1, true));
                            None
                        }
                    });
                }
                decision => break decision,
            }
        };
        let start = match decision {
            Decision::Begin(start) => start,
            decision => {
                self.wait_before(state, decision);
                return None;
            }
        };
        self.check_start(&before, purpose, &start, state);
        state.has_begun = true;
        state.spent = (state.spent + u8::from(start.is_counted)).min(MOST_SPENT);
        state.awaits_release = false;
        if let Place::Below(parent) = &start.place {
            state.place = state.place.or(Some(*parent == *BELOW_LATER));
        }
        state.waiting = state.waiting.filter(|_| start.waiting.is_some());
        state.next_attempt = (state.status == TargetStatus::Published).then_some(0);
        if state.status == TargetStatus::Pending {
            state.status = TargetStatus::Queued;
        }
        Some(start)
    }

    /// Writes what a target waits for before an attempt.
    fn wait_before(&self, state: &mut WaitState, decision: Decision) {
        state.turn = Turn::Waits { polls: false };
        match decision {
            Decision::Wait(row) => {
                let (since, until) = (self.steps(row.since), Some(self.steps(row.until)));
                state.waiting = Some(Waiting { reason: row.reason, since, until });
                return;
            }
            Decision::Freeze { .. } => {
                (state.awaits_release, state.processing_since) = (true, None);
                state.next_attempt = Some(1);
            }
            Decision::Rest(rest) => {
                let since = if self.has(WaitFlaw::RestartsRest) { 0 } else { self.steps(rest.since) };
                if rest.code == ErrorCode::RateLimited {
                    state.throttled_since = Some(since).filter(|_| !self.has(WaitFlaw::RestartsRest));
                }
                state.awaits_release = false;
                state.next_attempt = Some(self.steps(rest.until).max(1));
                let until = Some(self.steps(rest.ends_at));
                state.waiting = Some(Waiting { reason: rest.reason, since, until });
            }
            Decision::Ask(_)
            | Decision::Ended(_)
            | Decision::Stale
            | Decision::Early(_)
            | Decision::Failed { .. }
            | Decision::Begin(_) => return,
        }
        if state.status == TargetStatus::Pending {
            state.status = TargetStatus::Queued;
        }
    }

    /// Checks that an attempt may begin.
    fn check_start(&self, before: &WaitState, purpose: Purpose, start: &Start, state: &mut WaitState) {
        let has_time = |time: Option<i16>| time.is_none_or(|time| time <= 0);
        let is_barred = before.is_deleted || before.is_stopped || before.is_disconnected;
        let is_due = purpose == Purpose::Look || has_time(before.next_attempt);
        let has_come = before.has_intent() || is_barred || has_time(before.scheduled);
        state.demand(WaitInvariant::NotBeforeTime, is_due && has_come);
        state.demand(WaitInvariant::WithdrawnAttemptsNothing, has_time(before.lease));
        let goes_on = start.barred.is_none() && start.waited_in_vain.is_none();
        if goes_on && !before.has_intent() {
            state.demand(WaitInvariant::FilesAreAwaited, before.file != File::Awaited);
        }
        let would_publish = goes_on && !before.is_in_doubt();
        if would_publish && start.is_counted {
            let may_look = before.app.is_none_or(|(until, looks)| looks || until <= 0);
            let is_rested = has_time(before.rests_until) && may_look;
            state.demand(WaitInvariant::RestingPublishesNothing, is_rested);
        }
        if self.is_reply && would_publish {
            let is_above = matches!(before.above, Above::Live | Above::Longer);
            let follows = is_above || before.parts[0].is_live;
            state.demand(WaitInvariant::ReplyFollows, follows && matches!(start.place, Place::Below(_)));
        }
        if let Some(place) = before.place {
            let is_kept = matches!(&start.place, Place::Below(parent) if parent == below(place));
            state.demand(WaitInvariant::PlaceIsKept, is_kept);
        }
        if let Some(reason) = start.waited_in_vain {
            let limit = match reason {
                WaitReason::File => wait::FILE_LIMIT,
                WaitReason::Parent => wait::PARENT_LIMIT,
                WaitReason::App => wait::APP_LIMIT,
                _ => wait::REST_LIMIT,
            };
            state.demand(WaitInvariant::WaitsItsTime, before.age >= self.length(limit));
        }
    }

    /// Lets a step of time pass.
    fn pass(&self, state: &mut WaitState) {
        let later = |time: i16, least: i16| (time - 1).max(least);
        let left = |time: Option<i16>| time.map(|time| time - 1).filter(|time| *time > 0);
        let oldest = -self.length(wait::APP_LIMIT) - 1;
        state.next_attempt = state.next_attempt.map(|time| later(time, 0));
        state.scheduled = left(state.scheduled);
        // One that is over tells of a deletion without a result.
        state.lease = state.lease.map(|until| later(until, -1));
        state.rests_until = left(state.rests_until);
        state.app = state.app.map(|(until, looks)| (later(until, 0), looks && until > 1));
        state.waiting = state.waiting.map(|waiting| Waiting {
            since: later(waiting.since, oldest),
            until: waiting.until.map(|until| later(until, 0)),
            ..waiting
        });
        let throttled = -self.length(wait::REST_LIMIT);
        state.throttled_since = state.throttled_since.map(|since| later(since, throttled));
        state.processing_since = state.processing_since.map(|since| later(since, -self.length(WINDOW)));
        for part in &mut state.parts {
            part.intent = part.intent.map(|_| 1);
        }
        state.above = match state.above {
            Above::Open(0) => Above::Lost,
            Above::Open(left) => Above::Open(left - 1),
            Above::Held => Above::Live,
            above => above,
        };
        state.age = (state.age + 1).min(-oldest);
        state.turn = match state.turn {
            Turn::Waits { polls: true } => Turn::Poll,
            _ => Turn::Attempt,
        };
    }

    /// Lets a step of time pass, with what the platform does meanwhile to others of the account.
    fn pass_with_others(&self, state: &WaitState, cause: Cause, next: &mut Steps) {
        let mut state = *state;
        self.pass(&mut state);
        let mut step = |name, state| next.push(Next { name, cause, state });
        step("Pass", state);
        if !self.has_others {
            return;
        }
        if self.errors.contains(&ErrorCode::RateLimited) {
            step("OthersThrottled", WaitState { rests_until: Some(1), ..state });
        }
        if self.errors.contains(&ErrorCode::AppRefused) {
            step("OthersRefused", WaitState { app: Some((1, false)), ..state });
            step("OthersPublished", WaitState { app: None, ..state });
        }
    }
}

/// A time that has a number of steps.
struct Length(TimeDelta);

impl From<Duration> for Length {
    fn from(time: Duration) -> Self {
        Self(TimeDelta::from_std(time).expect("waits are limited"))
    }
}

impl From<TimeDelta> for Length {
    fn from(time: TimeDelta) -> Self {
        Self(time)
    }
}

impl Kept for Waits {
    type State = WaitState;

    fn begin(&self) -> Vec<WaitState> {
        vec![WaitState {
            status: TargetStatus::Pending,
            may_be_live: false,
            has_begun: false,
            parts: [Part::default(); CONTAINERS],
            spent: 0,
            token_attempts: 0,
            is_continuation: false,
            next_attempt: None,
            waiting: None,
            throttled_since: None,
            processing_since: None,
            scheduled: None,
            awaits_release: false,
            place: None,
            has_error: false,
            is_frozen: false,
            is_stopped: false,
            is_deleted: false,
            is_disconnected: false,
            is_unpublished: false,
            lease: None,
            open_deletions: 0,
            rests_until: None,
            app: None,
            file: if self.has_file { File::Awaited } else { File::Ready },
            above: if self.is_reply { Above::Open(2) } else { Above::Live },
            turn: Turn::Attempt,
            age: 0,
            wills: self.most_wills,
            crashes: self.crashes,
            unanswered: 0,
            broken: None,
        }]
    }

    fn follow(&self, state: &WaitState, next: &mut Steps) {
        if state.wills > 0 {
            self.want(state, next);
        }
        if state.has_ended() {
            return;
        }
        // It is released at last.
        if state.awaits_release && state.is_frozen && matches!(state.turn, Turn::Waits { .. }) {
            let released = wills::release(self, *state);
            next.push(Next { name: "Release", cause: Cause::Course, state: released });
            // However long that takes.
            self.pass_with_others(state, Cause::Will, next);
            return;
        }
        self.change_surroundings(state, next);
        match state.turn {
            Turn::Attempt => self.attempt(state, next),
            Turn::Poll => {
                self.look(state, next);
                // Its workflow was lost.
                let state = WaitState { turn: Turn::Attempt, ..*state };
                next.push(Next { name: "EmptyTemporal", cause: Cause::Course, state });
            }
            Turn::Waits { .. } => self.pass_with_others(state, Cause::Time, next),
        }
    }

    fn broken(&self, state: &WaitState) -> Option<&'static str> {
        let may_exist = |part: &Part| part.copies > 0 || part.may_come;
        let broken = match state.status {
            _ if state.broken.is_some() => state.broken,
            _ if state.parts.iter().any(|part| part.copies > 1) => Some(WaitInvariant::PublishedOnce),
            TargetStatus::Dead if !state.may_be_live && may_exist(&state.parts[0]) => {
                Some(WaitInvariant::DeadIsHonest)
            }
            TargetStatus::Canceled if may_exist(&state.parts[0]) => Some(WaitInvariant::CanceledIsNotLive),
            _ => None,
        };
        broken.map(WaitInvariant::into)
    }

    fn has_ended(&self, state: &WaitState) -> bool {
        state.has_ended()
    }
}

impl Waits {
    /// Appends the end of what the target waits for. It is woken, or looks by itself.
    fn change_surroundings(&self, state: &WaitState, next: &mut Steps) {
        let mut step = |name, change: &dyn Fn(&mut WaitState)| {
            let mut after = *state;
            change(&mut after);
            after.wake();
            next.push(Next { name, cause: Cause::Course, state: after });
        };
        if state.file == File::Awaited {
            step("FileReady", &|after| after.file = File::Ready);
        }
        if matches!(state.above, Above::Open(_) | Above::Lost) {
            step("ParentLive", &|after| after.above = Above::Live);
        }
        if matches!(state.above, Above::Open(_) | Above::Lost | Above::Held) {
            step("ParentGone", &|after| after.above = Above::Gone);
        }
        if state.lease.is_some_and(|until| until > 0) {
            step("ReleaseWithdrawn", &|after| {
                after.open_deletions -= 1;
                after.lease = after.lease.filter(|_| after.open_deletions > 0);
            });
        }
        if state.lease.is_some() {
            let is_due = state.next_attempt.is_some();
            step("RecordUnpublished", &|after| {
                (after.is_unpublished, after.lease, after.next_attempt) = (true, None, None);
                after.open_deletions = 0;
                (after.waiting, after.processing_since, after.is_continuation) = (None, None, false);
                after.has_error &= !is_due;
                after.awaits_release = false;
            });
        }
    }
}
