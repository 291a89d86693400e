//! States, actions and invariants.

mod action;
mod row;

pub use action::{Action, Event, Transition};

use action::Answer;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    TargetStatus,
    publishing::{
        self, Rules, begin,
        settle::{self, EndKind},
    },
};
use row::{Intent, Publication, Row, Status};
use stateright::{Model, Property};
use strum::{EnumIter, IntoStaticStr};

/// Containers of the post: the main one and a reply.
const CONTAINERS: usize = 2;
/// Attempts that may run at once.
const ATTEMPTS: usize = 2;
/// Publishing calls that a state has room for.
const CALLS: usize = 4;
/// Time of every decision: the model has none, and everything is due.
const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;
/// Time for which a target is held whose posts are being deleted.
const LEASE: TimeDelta = TimeDelta::seconds(30);

/// The protocol, with bounds that keep it finite.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// Attempts that begin, at most.
    pub begins: u8,
    /// Publishing calls, at most 4.
    pub calls: usize,
    /// True if Postgres may be restored from a backup, once.
    pub restores: bool,
    /// True if users edit, delete and disconnect.
    pub users: bool,
    /// True if Temporal may lose its data.
    pub empties: bool,
    /// True if a user may retry a target that is dead or misses its reply, once, and change the reply's text before.
    pub revives: bool,
    /// True if operators freeze, release and stop, each once.
    pub operators: bool,
    /// True if users disconnect the account and connect it again for the same end tenant, once.
    pub reconnects: bool,
    /// Deletions of the live posts of the target from their platform, at most.
    pub withdrawals: u8,
    /// A rule that is left out, to show that an invariant depends on it.
    pub flaw: Option<Flaw>,
    /// Rules of the decisions that the product makes.
    pub rules: Rules,
}

/// A rule of the protocol that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter)]
pub enum Flaw {
    /// The intent is not checked against the fence.
    IntendsWithoutFence,
    /// The next attempt does not look up the call that an earlier one began.
    SkipsLookup,
    /// A look-up's "absent" is believed while the call may still be on its way.
    BelievesBeforeDeadline,
    /// A look-up's "absent" is believed as if all clocks showed the same.
    IgnoresSkew,
    /// A call is sent although its deadline passed before it was.
    SendsLate,
    /// A deleted post is canceled although a call may be on its way.
    CancelsInDoubt,
    /// A target that ends in doubt does not say that it may be live.
    HidesDoubt,
    /// An edit and the first attempt do not exclude each other.
    EditsBegun,
    /// A target that ends without a failure of its own gets no reason.
    EndsWithoutReason,
    /// A live target does not note that its reply is still due.
    ForgetsReply,
    /// A restored database is used as it is.
    TrustsBackup,
    /// A dead target is retried without the intent that its end left open.
    RevivesWithoutIntent,
    /// The text of a missing reply is changed although a call for it may have published it.
    RewritesInDoubt,
    /// The intent is written although the target was frozen since the attempt began.
    IntendsFrozen,
    /// The intent is written although the target was stopped since the attempt began, which keeps the fence.
    IntendsStopped,
    /// The deletion of live posts from their platform begins without fencing off an attempt.
    WithdrawsWithoutFence,
    /// A refused deletion releases the target although another deletion has no result.
    ReleasesAnother,
}

/// A statement that holds in every state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, IntoStaticStr)]
pub enum Invariant {
    /// Each container is published at most once.
    PublishedOnce,
    /// Nothing is live when the deletion was confirmed by "canceled".
    CanceledIsNotLive,
    /// A dead target is not live, or says that it may be.
    DeadIsHonest,
    /// The latest version is published.
    LatestVersion,
    /// A reply is published only below its main container.
    ReplyFollows,
    /// No target ends without a reason.
    EndHasReason,
    /// No target is open without a next step.
    OpenHasNextStep,
    /// No publishing call begins while the target is frozen or its posts are being deleted from the platform, or after it
    /// was stopped or they were.
    HeldPublishesNothing,
    /// No attempt begins while the target is frozen, except to look up a call or to end the target.
    FrozenAttemptsNothing,
}

/// The next step of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Step {
    Locate,
    Adopt(u8),
    ClearIntent,
    Intend,
    Commit(u8),
    AwaitAnswer(u8),
    Answered(u8, Answer),
    SettleLive,
    Wait,
    Fail,
    GiveUp { may_be_live: bool },
    Bar,
    Finish,
}

/// An attempt, with the row as it was when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Attempt {
    fence: u8,
    texts: [u8; CONTAINERS],
    is_barred: bool,
    is_live: bool,
    publications: [Publication; CONTAINERS],
    /// Container that it is at.
    position: usize,
    step: Step,
}

impl Attempt {
    /// Goes on to the first container that is not live.
    fn advance(&mut self, flaw: Option<Flaw>) {
        if self.publications[0].id.is_some() && !self.is_live {
            self.step = Step::SettleLive;
            return;
        }
        let Some(position) = self.publications.iter().position(|publication| publication.id.is_none()) else {
            self.step = Step::Finish;
            return;
        };
        self.position = position;
        self.step = match self.publications[position].intent {
            Some(_) if flaw != Some(Flaw::SkipsLookup) => Step::Locate,
            _ if self.is_barred => Step::Bar,
            _ => Step::Intend,
        };
    }
}

/// Time since the intent of a publishing call was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Age {
    /// Before its deadline.
    Running,
    /// After its deadline by the database's clock. By the worker's it may still be before.
    Late,
    /// After its deadline by every clock: it can't reach the platform any more.
    Over,
    /// The read lag has passed since: reads show the post if there is one.
    Settled,
}

/// A publishing call, as the platform sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Call {
    position: usize,
    version: u8,
    /// True if its intent was written although an operator had frozen or stopped the target.
    is_forbidden: bool,
    is_sent: bool,
    /// True if it was sent although every clock showed that its deadline had passed.
    is_sent_late: bool,
    /// True once the post exists.
    is_live: bool,
    /// True once the platform refused it, or the network lost it.
    is_lost: bool,
    /// True once reads show the post.
    is_visible: bool,
    age: Age,
}

impl Call {
    /// Returns whether it may still publish.
    fn is_on_its_way(&self) -> bool {
        self.is_sent && !self.is_live && !self.is_lost && (self.age < Age::Over || self.is_sent_late)
    }
}

/// A state of everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    row: Row,
    /// True while Temporal has a workflow for the target.
    has_workflow: bool,
    attempts: [Option<Attempt>; ATTEMPTS],
    calls: [Option<Call>; CALLS],
    begins: u8,
    backup: Option<Row>,
    was_restored: bool,
    was_revived: bool,
    was_frozen: bool,
    was_connected: bool,
    withdrawals: u8,
    /// Deletions whose platform is being asked.
    deleting: u8,
    /// True once a deletion without a result may have deleted posts, until a user asks for what is missing.
    may_be_gone: bool,
    /// True once an attempt has begun that had nothing to do but to publish what was frozen.
    was_freeze_ignored: bool,
}

impl State {
    fn calls(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().flatten()
    }

    fn call(&mut self, number: u8) -> &mut Call {
        self.calls[usize::from(number)].as_mut().expect("a call keeps its number")
    }

    fn live(&self, position: usize) -> usize {
        self.calls().filter(|call| call.position == position && call.is_live).count()
    }

    /// Returns whether an intent's call has ended and reads show its post if there is one.
    fn has_settled(&self, position: usize, intent: Intent, at: Age) -> bool {
        match intent {
            Intent::Call(number) => self.calls[usize::from(number)].is_some_and(|call| call.age >= at),
            Intent::SinceBackup => {
                self.calls().filter(|call| call.position == position).all(|call| call.age >= at)
            }
        }
    }
}

impl Protocol {
    /// Returns the protocol with attempts that crash, and nothing else that goes wrong.
    pub fn new(begins: u8, calls: usize) -> Self {
        Self {
            begins,
            calls,
            restores: false,
            users: false,
            empties: false,
            revives: false,
            operators: false,
            reconnects: false,
            withdrawals: 0,
            flaw: None,
            rules: Rules::PROTOCOL,
        }
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    fn attempt_actions(&self, state: &State, index: usize, attempt: &Attempt, actions: &mut Vec<Action>) {
        actions.push(Event::Crash(index).into());
        match attempt.step {
            Step::Locate => {
                actions.extend(
                    [Transition::Locate(index, true), Transition::Locate(index, false)].map(Action::from),
                );
            }
            Step::Adopt(_) => actions.push(Transition::Adopt(index).into()),
            Step::ClearIntent => actions.push(Transition::ClearIntent(index).into()),
            Step::Intend if state.calls().count() < self.calls => {
                actions.push(Transition::Intend(index).into());
            }
            Step::Intend => {}
            Step::Commit(_) => actions.push(Transition::Commit(index).into()),
            Step::AwaitAnswer(number) => {
                let call = state.calls[usize::from(number)].expect("a call keeps its number");
                let certain = if call.is_live { Answer::Live } else { Answer::Refused };
                actions.extend(
                    [Answer::Ambiguous, certain].map(|answer| Action::from(Event::Answer(index, answer))),
                );
            }
            Step::Answered(_, Answer::Live) => actions.push(Transition::Capture(index).into()),
            Step::Answered(_, Answer::Ambiguous) => actions.push(Transition::RecordAmbiguous(index).into()),
            Step::Answered(_, Answer::Refused) => {
                let permanent = [true, false];
                actions.extend(
                    permanent.map(|permanent| Action::from(Transition::VoidIntent(index, permanent))),
                );
            }
            Step::Wait => actions.push(Transition::Wait(index).into()),
            Step::Fail => actions.push(Transition::RecordFailure(index).into()),
            Step::SettleLive | Step::GiveUp { .. } | Step::Bar => {
                actions.push(Transition::Settle(index).into());
            }
            Step::Finish => actions.push(Transition::MarkComplete(index).into()),
        }
    }

    /// Appends the steps of a deletion from the platform.
    fn withdraw_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let row = &state.row;
        if state.deleting > 0 {
            actions.push(Transition::ReleaseWithdrawn.into());
            actions.push(Transition::RecordUnpublished.into());
            actions.push(Event::LoseDeletion.into());
        }
        if row.is_withdrawn {
            actions.push(Event::PassLease.into());
        }
        let may_arrive = state.calls().any(|call| call.age < Age::Over);
        let is_in_doubt = row.is_in_doubt() && (row.is_due || may_arrive);
        let may_withdraw = state.withdrawals < self.withdrawals && !row.is_unpublished && !is_in_doubt;
        if row.status == Status::Published && may_withdraw {
            actions.push(Transition::Withdraw.into());
        }
    }

    fn begin(&self, state: &mut State, index: usize, version: u8) {
        let row = &mut state.row;
        let states = row.states();
        // No file is awaited, and no freeze is released while an attempt finds it.
        let answers = begin::Answers {
            awaits_file: Some(false),
            is_freeze_open: Some(true),
            ..begin::Answers::default()
        };
        let start = match begin(self.rules, &row.beginning(version, &states), &answers) {
            begin::Decision::Begin(start) => start,
            // The workflow ends.
            begin::Decision::Ended(_) => {
                state.has_workflow = false;
                return;
            }
            // The workflow of an older version ends; that of an edited post gets the new one. One that waits changes
            // nothing that the model knows.
            _ => return,
        };
        state.was_freeze_ignored |=
            row.is_frozen && !row.is_barred() && !row.is_in_doubt() && !row.is_complete();
        state.begins += 1;
        row.has_begun |= start.is_first;
        row.fence += 1;
        if row.status == Status::Published {
            row.is_due = !self.has(Flaw::ForgetsReply);
        }
        let mut attempt = Attempt {
            fence: row.fence,
            texts: [row.text(0), row.text(1)],
            is_barred: start.barred.is_some(),
            is_live: row.status == Status::Published,
            publications: row.publications,
            position: 0,
            step: Step::Finish,
        };
        attempt.advance(self.flaw);
        state.attempts[index] = Some(attempt);
    }

    fn locate(&self, state: &State, attempt: &mut Attempt) {
        let position = attempt.position;
        let intent = attempt.publications[position].intent.expect("a look-up has an intent");
        let believed_from = match self.flaw {
            Some(Flaw::BelievesBeforeDeadline) => Age::Running,
            Some(Flaw::IgnoresSkew) => Age::Over,
            _ => Age::Settled,
        };
        let is_found = |call: &Call| call.position == position && call.is_live && call.is_visible;
        let found = state.calls.iter().position(|call| call.as_ref().is_some_and(is_found));
        attempt.step = match found {
            Some(call) => Step::Adopt(number(call)),
            None if state.has_settled(position, intent, believed_from) => Step::ClearIntent,
            None => Step::Wait,
        };
    }

    /// Writes an intent. Returns false when nothing may be published.
    fn intend(&self, state: &mut State, attempt: &mut Attempt) -> bool {
        let row = &mut state.row;
        let publication = &mut row.publications[attempt.position];
        let holds = row.fence == attempt.fence || self.has(Flaw::IntendsWithoutFence);
        let is_refused = matches!(row.status, Status::Dead { .. } | Status::Canceled);
        if !holds || is_refused || row.is_deleted || row.is_disconnected || publication.id.is_some() {
            return false;
        }
        let is_held = row.is_frozen && !self.has(Flaw::IntendsFrozen)
            || row.is_stopped && !self.has(Flaw::IntendsStopped);
        if is_held {
            return false;
        }
        let free = state.calls.iter().position(Option::is_none).expect("the number of calls is bounded");
        publication.intent = Some(Intent::Call(number(free)));
        attempt.publications[attempt.position] = *publication;
        state.calls[free] = Some(Call {
            position: attempt.position,
            version: attempt.texts[attempt.position],
            is_forbidden: row.is_held() || state.deleting > 0 || state.may_be_gone,
            is_sent: false,
            is_sent_late: false,
            is_live: false,
            is_lost: false,
            is_visible: false,
            age: Age::Running,
        });
        attempt.step = Step::Commit(number(free));
        true
    }

    /// Stores an id, with or without the fence: a live post is live.
    fn store(&self, row: &mut Row, attempt: &mut Attempt, call: u8) {
        let publication = &mut row.publications[attempt.position];
        publication.id = publication.id.or(Some(call));
        attempt.publications[attempt.position] = *publication;
        attempt.advance(self.flaw);
    }

    fn dead(&self, may_be_live: bool, has_reason: bool) -> Status {
        Status::Dead { may_be_live: may_be_live && !self.has(Flaw::HidesDoubt), has_reason }
    }

    /// Ends the target as `end` says, or as its row demands. `fence` is that of the attempt, if one ends it.
    fn end(&self, row: &mut Row, end: Status, fence: Option<u8>) {
        let kind = match end {
            Status::Published => EndKind::Live,
            Status::Dead { .. } => EndKind::Dead,
            Status::Canceled => EndKind::Canceled,
            Status::Open => unreachable!("an end is final"),
        };
        match publishing::settle(self.rules, &row.ending(kind, fence, &[row.target_status()])) {
            settle::Decision::Superseded
            | settle::Decision::Stale
            | settle::Decision::Ended(_)
            | settle::Decision::Late(_)
            | settle::Decision::StaysLive { loses_rest: false } => {}
            settle::Decision::StaysLive { loses_rest: true } => row.lose_reply(),
            settle::Decision::End(ending) if ending.status == TargetStatus::Published => {
                row.status = Status::Published;
                row.is_due = !row.is_complete() && !self.has(Flaw::ForgetsReply);
                if ending.is_captured {
                    row.lose_reply();
                }
            }
            settle::Decision::End(_) => {
                row.status = end;
                row.fence += 1;
            }
        }
    }

    /// Settles for an attempt. Returns whether the attempt goes on.
    fn settle(&self, row: &mut Row, attempt: &mut Attempt) -> bool {
        let fence = Some(attempt.fence);
        match attempt.step {
            Step::SettleLive => {
                self.end(row, Status::Published, fence);
                attempt.is_live = true;
                attempt.advance(self.flaw);
                return row.status == Status::Published;
            }
            Step::GiveUp { may_be_live } => self.end(row, self.dead(may_be_live, true), fence),
            Step::Bar if row.is_deleted => self.end(row, Status::Canceled, fence),
            Step::Bar => self.end(row, self.dead(false, true), fence),
            step => unreachable!("{step:?} settles nothing"),
        }
        false
    }

    /// Makes a step of an attempt. Returns whether the attempt goes on.
    fn step(&self, state: &mut State, attempt: &mut Attempt, transition: Transition) -> bool {
        match (transition, attempt.step) {
            (Transition::Locate(_, true), _) => self.locate(state, attempt),
            (Transition::Locate(_, false), _) => attempt.step = Step::GiveUp { may_be_live: true },
            (Transition::ClearIntent(_), _) => {
                let publication = &mut state.row.publications[attempt.position];
                if state.row.fence == attempt.fence && publication.id.is_none() {
                    publication.intent = None;
                }
                attempt.publications[attempt.position].intent = None;
                attempt.advance(self.flaw);
            }
            (Transition::Intend(_), _) => return self.intend(state, attempt),
            (Transition::Commit(_), Step::Commit(number)) => {
                let is_late = state.call(number).age > Age::Late;
                if is_late && !self.has(Flaw::SendsLate) {
                    attempt.step = Step::Answered(number, Answer::Refused);
                } else {
                    let call = state.call(number);
                    (call.is_sent, call.is_sent_late) = (true, is_late);
                    attempt.step = Step::AwaitAnswer(number);
                }
            }
            (Transition::Adopt(_), Step::Adopt(call)) | (Transition::Capture(_), Step::Answered(call, _)) => {
                self.store(&mut state.row, attempt, call);
            }
            (Transition::RecordAmbiguous(_), _) => attempt.step = Step::Fail,
            (Transition::VoidIntent(_, is_permanent), Step::Answered(call, _)) => {
                let publication = &mut state.row.publications[attempt.position];
                if publication.intent == Some(Intent::Call(call)) && publication.id.is_none() {
                    publication.intent = None;
                }
                attempt.step = if is_permanent { Step::GiveUp { may_be_live: false } } else { Step::Fail };
            }
            (Transition::RecordFailure(_), _) => {
                let row = &mut state.row;
                if row.fence == attempt.fence && row.is_unfinished() {
                    row.has_failed = true;
                    row.is_due |= row.status == Status::Published;
                }
                return false;
            }
            (Transition::Wait(_), _) => return false,
            (Transition::Settle(_), _) => return self.settle(&mut state.row, attempt),
            (Transition::MarkComplete(_), _) => {
                state.row.is_due &= state.row.fence != attempt.fence;
                return false;
            }
            (transition, step) => unreachable!("{transition:?} at {step:?}"),
        }
        true
    }

    fn product(&self, state: &mut State, transition: Transition) {
        match transition {
            Transition::Begin(index, version) => self.begin(state, index, version),
            Transition::Locate(index, _)
            | Transition::Adopt(index)
            | Transition::ClearIntent(index)
            | Transition::Intend(index)
            | Transition::Commit(index)
            | Transition::Capture(index)
            | Transition::RecordAmbiguous(index)
            | Transition::VoidIntent(index, _)
            | Transition::RecordFailure(index)
            | Transition::Wait(index)
            | Transition::Settle(index)
            | Transition::MarkComplete(index) => {
                let mut attempt = state.attempts[index].take().expect("the attempt runs");
                if self.step(state, &mut attempt, transition) {
                    state.attempts[index] = Some(attempt);
                }
                // The workflow ends with its target.
                state.has_workflow &= state.row.is_unfinished();
            }
            Transition::SettleOutside => {
                let row = &mut state.row;
                let has_reason = row.has_failed || !self.has(Flaw::EndsWithoutReason);
                let dead = self.dead(row.is_in_doubt(), has_reason);
                self.end(row, dead, None);
                state.has_workflow &= row.is_unfinished();
            }
            Transition::Sweep => state.has_workflow = true,
            Transition::Restored => self.restore(state),
            wanted => self.change(state, wanted),
        }
    }

    /// Does what a user or an operator wants.
    fn change(&self, state: &mut State, transition: Transition) {
        match transition {
            Transition::Edit => state.row.version += 1,
            Transition::Delete => {
                let row = &mut state.row;
                row.is_deleted = true;
                let is_safe = !row.has_intent() || self.has(Flaw::CancelsInDoubt);
                if row.status == Status::Open && is_safe {
                    row.cancel();
                } else if row.is_swept() {
                    row.fence += 1;
                }
            }
            Transition::Disconnect => {
                let row = &mut state.row;
                row.is_disconnected = true;
                match row.status {
                    Status::Open if !row.has_intent() => row.cancel(),
                    // What is live stays so, and its next attempt publishes nothing.
                    _ if row.is_swept() => row.fence += 1,
                    _ => {}
                }
            }
            Transition::Connect => {
                (state.row.is_disconnected, state.was_connected) = (false, true);
            }
            Transition::Withdraw => {
                (state.withdrawals, state.deleting) = (state.withdrawals + 1, state.deleting + 1);
                let row = &mut state.row;
                (row.open_deletions, row.is_withdrawn) = (row.open_deletions + 1, true);
                row.fence += u8::from(!self.has(Flaw::WithdrawsWithoutFence));
            }
            Transition::ReleaseWithdrawn => {
                state.deleting -= 1;
                if self.has(Flaw::ReleasesAnother) {
                    state.row.open_deletions = 1;
                }
                state.row.end_deletion();
            }
            Transition::RecordUnpublished => {
                // Others delete nothing any more.
                state.deleting = 0;
                let row = &mut state.row;
                (row.open_deletions, row.is_withdrawn, row.is_unpublished) = (0, false, true);
                if row.is_due {
                    row.lose_reply();
                }
                state.has_workflow &= row.is_unfinished();
            }
            Transition::Freeze => (state.row.is_frozen, state.was_frozen) = (true, true),
            Transition::Release => state.row.is_frozen = false,
            Transition::Stop => {
                let row = &mut state.row;
                row.is_stopped = true;
                row.fence += u8::from(!self.has(Flaw::IntendsStopped));
            }
            Transition::Revive => {
                let row = &mut state.row;
                match row.status {
                    // It stays live, and is due until its reply is live or given up again.
                    Status::Published => (row.is_incomplete, row.is_due) = (false, true),
                    _ => row.status = Status::Open,
                }
                (row.has_failed, row.is_stopped) = (false, false);
                row.fence += 1;
                if !row.is_withdrawn {
                    (row.open_deletions, state.may_be_gone) = (0, false);
                }
                if self.has(Flaw::RevivesWithoutIntent) {
                    row.publications.iter_mut().for_each(|publication| publication.intent = None);
                }
                (state.has_workflow, state.was_revived) = (true, true);
            }
            Transition::Rewrite => state.row.rewrites += 1,
            transition => unreachable!("nobody wants {transition:?}"),
        }
    }

    fn restore(&self, state: &mut State) {
        let fence = state.row.fence;
        state.row = state.backup.take().expect("there is a backup");
        state.was_restored = true;
        if self.has(Flaw::TrustsBackup) {
            return;
        }
        let row = &mut state.row;
        // No attempt from before holds the row; the product adds more than there were attempts.
        row.fence = fence + 1;
        // It may have begun since the backup.
        row.has_begun = true;
        for publication in row.publications.iter_mut().filter(|publication| publication.id.is_none()) {
            publication.intent = Some(Intent::SinceBackup);
        }
    }

    fn around(state: &mut State, event: Event) {
        match event {
            Event::Answer(index, answer) => {
                let attempt = state.attempts[index].as_mut().expect("the attempt runs");
                let Step::AwaitAnswer(number) = attempt.step else { unreachable!("no answer is awaited") };
                attempt.step = Step::Answered(number, answer);
                state.call(number).is_lost |= answer == Answer::Refused;
            }
            Event::Crash(index) => state.attempts[index] = None,
            Event::Publish(call) => state.call(call).is_live = true,
            Event::Lose(call) => state.call(call).is_lost = true,
            Event::Show(call) => state.call(call).is_visible = true,
            Event::Pass(number) => {
                let call = state.call(number);
                call.age = match call.age {
                    Age::Running => Age::Late,
                    Age::Late => Age::Over,
                    Age::Over | Age::Settled => Age::Settled,
                };
                call.is_visible |= call.is_live && call.age == Age::Settled;
                if call.age == Age::Over {
                    // The attempt ends its call at the deadline by its own clock.
                    for attempt in state.attempts.iter_mut().flatten() {
                        if attempt.step == Step::AwaitAnswer(number) {
                            attempt.step = Step::Answered(number, Answer::Ambiguous);
                        }
                    }
                }
            }
            Event::LoseDeletion => (state.deleting, state.may_be_gone) = (state.deleting - 1, true),
            // The calls have ended before.
            Event::PassLease => {
                state.may_be_gone |= state.deleting > 0;
                (state.row.is_withdrawn, state.deleting) = (false, 0);
            }
            Event::EmptyTemporal => state.has_workflow = false,
            Event::Backup => state.backup = Some(state.row),
        }
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        // A far-off post waits in the row only.
        let state = |has_workflow| State {
            row: Row::new(),
            has_workflow,
            attempts: [None; ATTEMPTS],
            calls: [None; CALLS],
            begins: 0,
            backup: None,
            was_restored: false,
            was_revived: false,
            was_frozen: false,
            was_connected: false,
            withdrawals: 0,
            deleting: 0,
            may_be_gone: false,
            was_freeze_ignored: false,
        };
        vec![state(true), state(false)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let row = &state.row;
        for (index, attempt) in state.attempts.iter().enumerate() {
            if let Some(attempt) = attempt {
                self.attempt_actions(state, index, attempt, actions);
            }
        }
        // The places are alike, so that a new attempt takes the first one that is free.
        let free = state.attempts.iter().position(Option::is_none);
        if let Some(index) = free
            && state.has_workflow
            && state.begins < self.begins
            && row.is_unfinished()
        {
            actions.extend((0..=row.version).map(|version| Action::from(Transition::Begin(index, version))));
        }
        for (index, call) in state.calls.iter().enumerate() {
            let (Some(call), index) = (call, number(index)) else { continue };
            if call.is_on_its_way() {
                actions.extend([Event::Publish(index), Event::Lose(index)].map(Action::from));
            }
            if call.is_live && !call.is_visible {
                actions.push(Event::Show(index).into());
            }
            if call.age < Age::Settled {
                actions.push(Event::Pass(index).into());
            }
        }
        if self.users {
            let is_editable = !row.has_begun || self.has(Flaw::EditsBegun);
            if row.version == 0 && row.status == Status::Open && is_editable && !row.is_deleted {
                actions.push(Transition::Edit.into());
            }
            if !row.is_deleted {
                actions.push(Transition::Delete.into());
            }
            if !row.is_disconnected {
                actions.push(Transition::Disconnect.into());
            }
        }
        if self.reconnects && !state.was_connected {
            let step = if row.is_disconnected { Transition::Connect } else { Transition::Disconnect };
            actions.push(step.into());
        }
        self.withdraw_actions(state, actions);
        if self.operators {
            if !state.was_frozen {
                actions.push(Transition::Freeze.into());
            }
            if row.is_frozen {
                actions.push(Transition::Release.into());
            }
            if !row.is_stopped && row.is_unfinished() {
                actions.push(Transition::Stop.into());
            }
        }
        if (row.has_begun || row.is_stopped) && row.is_unfinished() {
            actions.push(Transition::SettleOutside.into());
        }
        let has_failed = matches!(row.status, Status::Dead { .. }) || row.is_incomplete;
        let may_revive = has_failed && !row.is_deleted && !row.is_disconnected && !row.is_unpublished;
        if self.revives && !state.was_revived && may_revive {
            actions.push(Transition::Revive.into());
        }
        let reply = row.publications[1];
        let may_rewrite = reply.id.is_none() && (reply.intent.is_none() || self.has(Flaw::RewritesInDoubt));
        if self.revives && row.rewrites == 0 && !row.is_deleted && row.is_incomplete && may_rewrite {
            actions.push(Transition::Rewrite.into());
        }
        if state.has_workflow {
            actions.extend(self.empties.then_some(Action::from(Event::EmptyTemporal)));
        } else if row.is_unfinished() && row.is_swept() {
            actions.push(Transition::Sweep.into());
        }
        if self.restores && !state.was_restored {
            actions.push(match state.backup {
                None => Event::Backup.into(),
                Some(_) => Transition::Restored.into(),
            });
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Product(transition) => self.product(&mut state, transition),
            Action::Around(event) => Self::around(&mut state, event),
        }
        // The places of attempts are alike.
        state.attempts.sort_unstable_by_key(|attempt| std::cmp::Reverse(*attempt));
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = |invariant: Invariant, holds: fn(&Self, &State) -> bool| {
            Property::always(invariant.into(), holds)
        };
        vec![
            always(Invariant::PublishedOnce, |_, state| {
                (0..CONTAINERS).all(|position| state.live(position) <= 1)
            }),
            always(Invariant::CanceledIsNotLive, |_, state| {
                state.row.status != Status::Canceled || state.live(0) == 0
            }),
            always(Invariant::DeadIsHonest, |_, state| {
                !matches!(state.row.status, Status::Dead { may_be_live: false, .. }) || state.live(0) == 0
            }),
            always(Invariant::LatestVersion, |_, state| {
                state.calls().all(|call| !call.is_live || call.version == state.row.text(call.position))
            }),
            always(Invariant::ReplyFollows, |_, state| state.live(1) == 0 || state.live(0) == 1),
            always(Invariant::EndHasReason, |_, state| {
                !matches!(state.row.status, Status::Dead { has_reason: false, .. })
            }),
            always(Invariant::OpenHasNextStep, |_, state| {
                !state.row.is_unfinished() || state.has_workflow || state.row.is_swept()
            }),
            always(Invariant::HeldPublishesNothing, |_, state| state.calls().all(|call| !call.is_forbidden)),
            always(Invariant::FrozenAttemptsNothing, |_, state| !state.was_freeze_ignored),
            Property::sometimes("everything is published", |_, state: &State| {
                state.row.status == Status::Published && state.row.is_complete()
            }),
            Property::sometimes("the reply is given up", |_, state: &State| state.row.is_incomplete),
            Property::sometimes("the target is dead and may be live", |_, state: &State| {
                matches!(state.row.status, Status::Dead { may_be_live: true, .. })
            }),
        ]
    }
}

fn number(index: usize) -> u8 {
    u8::try_from(index).expect("the number of calls is small")
}
