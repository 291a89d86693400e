//! A reply to a live post whose deletion from its platform is under way.
//!
//! The reply is a target of another post, so that no fence keeps the two apart: the intent of the one and the hold of the
//! other look at each other's rows under a lock. One attempt at the reply runs at a time, and may stop at any step.
//!
//! Left out: a deletion whose worker stops after the platform's answer and before the row has it. The row holds the post
//! for the time of the lease, and then takes it for live: a reply is sent below it, which the platform may refuse.

use crate::graph::{self, Broken, Cause, Explored, Kept, Next};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    TargetStatus,
    publishing::{
        self, Found, NoParent, Parent, Publication, Rules,
        begin::{Answers, Decision, Snapshot},
    },
};
use std::{sync::LazyLock, time::Duration};
use strum::{EnumIter, IntoStaticStr};

const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;
const LATER: TimeDelta = TimeDelta::seconds(30);
/// Publishing calls that a state has room for.
const CALLS: usize = 3;

static PARENT: LazyLock<Parent> =
    LazyLock::new(|| Parent { root: "root".to_owned(), last: "last".to_owned() });

/// A reply and the post that it replies to, with bounds that keep the exploration finite.
#[derive(Clone, Copy, Debug)]
pub struct Replies {
    /// Attempts that begin, at most.
    pub begins: u8,
    /// Deletions that begin, at most.
    pub deletions: u8,
    /// A rule that is left out, to show that an invariant depends on it.
    pub flaw: Option<ReplyFlaw>,
}

/// A rule of replies that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter)]
pub enum ReplyFlaw {
    /// The intent is written although the post above is being deleted from its platform.
    IntendsBelowHeld,
    /// The intent is written although the post above was deleted from its platform.
    IntendsBelowUnpublished,
    /// A deletion begins although a call for a reply may be on its way.
    WithdrawsUnderCall,
    /// The hold of a post ends before the calls of its deletion have.
    ReleasesEarly,
    /// The next attempt does not look up the call that an earlier one began.
    SkipsLookup,
}

/// A statement that holds in every state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EnumIter, IntoStaticStr)]
pub enum ReplyInvariant {
    /// A reply is published at most once.
    PublishedOnce,
    /// No call for a reply begins while the post above is being deleted, or after it was.
    NothingBelowDeleted,
    /// No deletion is sent while a call for a reply may be on its way.
    NothingDeletedAbove,
}

/// The post above, as its row has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Above {
    Open,
    Live,
    Unpublished,
    Dead,
}

/// The worker that deletes the post above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Deletion {
    None,
    Begun,
    Sent,
    Made,
    Refused,
}

/// The next step of an attempt at the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Locate,
    Intend,
    Send(u8),
    AwaitAnswer(u8),
}

/// A publishing call for the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Call {
    is_sent: bool,
    is_live: bool,
    is_lost: bool,
    /// True once its deadline has passed.
    is_over: bool,
    /// True once the row says that it has ended.
    is_ended: bool,
}

impl Call {
    fn is_on_its_way(&self) -> bool {
        self.is_sent && !self.is_live && !self.is_lost && !self.is_over
    }
}

/// A state of both posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReplyState {
    above: Above,
    is_deleted: bool,
    /// True until the hold of the post above has ended.
    is_held: bool,
    deletion: Deletion,
    status: TargetStatus,
    has_place: bool,
    intent: Option<u8>,
    id: Option<u8>,
    attempt: Option<Step>,
    calls: [Option<Call>; CALLS],
    begins: u8,
    deletions: u8,
    broken: Option<ReplyInvariant>,
}

impl ReplyState {
    fn call(&mut self, number: u8) -> &mut Call {
        self.calls[usize::from(number)].as_mut().expect("a call keeps its number")
    }

    fn demand(&mut self, invariant: ReplyInvariant, holds: bool) {
        if !holds {
            self.broken = self.broken.or(Some(invariant));
        }
    }

    /// Returns whether the deletion has not brought the post above back.
    fn is_being_deleted(&self) -> bool {
        matches!(self.deletion, Deletion::Begun | Deletion::Sent | Deletion::Made)
    }

    fn found(&self) -> Found {
        let pause = Duration::from_secs(60);
        match self.above {
            _ if self.is_deleted => Found::Gone(NoParent::Deleted),
            Above::Open => Found::Waiting { pause, next: None },
            Above::Live if self.is_held => Found::Held { pause, next: Some(NOW + LATER) },
            Above::Live => Found::Live(PARENT.clone()),
            Above::Unpublished => Found::Gone(NoParent::Unpublished),
            Above::Dead => Found::Gone(NoParent::Dead),
        }
    }
}

impl Replies {
    /// Explores all states.
    ///
    /// # Errors
    ///
    /// With the first invariant that does not hold.
    pub fn explore(&self) -> Result<Explored, Broken> {
        graph::explore(self)
    }

    fn has(&self, flaw: ReplyFlaw) -> bool {
        self.flaw == Some(flaw)
    }

    fn begin_attempt(&self, state: &mut ReplyState) {
        let publications = [Publication { has_intent: state.intent.is_some(), is_live: state.id.is_some() }];
        let snapshot = Snapshot {
            status: state.status,
            is_reply: true,
            parent: state.has_place.then_some(&*PARENT),
            ..Snapshot::due(NOW, &publications)
        };
        let answers = Answers { awaits_file: Some(false), parent: Some(state.found()), ..Answers::default() };
        let Decision::Begin(start) = publishing::begin(Rules::PROTOCOL, &snapshot, &answers) else { return };
        state.begins += 1;
        state.has_place = true;
        let is_in_doubt = publications[0].is_in_doubt() && !self.has(ReplyFlaw::SkipsLookup);
        match start.barred {
            Some(_) if !is_in_doubt => state.status = TargetStatus::Dead,
            _ => state.attempt = Some(if is_in_doubt { Step::Locate } else { Step::Intend }),
        }
    }

    /// Makes the next step of an attempt, in each way that it may end.
    fn step(&self, state: &ReplyState, step: Step, next: &mut Vec<Next<ReplyState>>) {
        let mut push = |name, change: &dyn Fn(&mut ReplyState)| {
            let mut state = *state;
            change(&mut state);
            next.push(Next { name, cause: Cause::Course, state });
        };
        push("Crash", &|state| state.attempt = None);
        let capture = |state: &mut ReplyState, call: u8| {
            (state.id, state.status, state.attempt) = (Some(call), TargetStatus::Published, None);
            state.call(call).is_ended = true;
        };
        match step {
            Step::Locate => {
                let intent = state.intent.expect("a look-up has an intent");
                let found = state.calls.iter().position(|call| call.is_some_and(|call| call.is_live));
                let is_over = state.calls[usize::from(intent)].is_some_and(|call| call.is_over);
                match found {
                    Some(call) => push("Adopt", &|state| capture(state, number(call))),
                    None if is_over => push("ClearIntent", &|state| {
                        (state.intent, state.attempt) = (None, Some(Step::Intend));
                    }),
                    None => push("Wait", &|state| state.attempt = None),
                }
            }
            Step::Intend => push("Intend", &|state| self.intend(state)),
            Step::Send(call) => push("Commit", &|state| {
                state.call(call).is_sent = true;
                state.attempt = Some(Step::AwaitAnswer(call));
            }),
            Step::AwaitAnswer(number) => {
                let call = state.calls[usize::from(number)].expect("a call keeps its number");
                push("RecordAmbiguous", &|state| {
                    // The connection is closed: it does not come later.
                    state.call(number).is_ended = true;
                    state.call(number).is_lost |= !call.is_live;
                    state.attempt = None;
                });
                if call.is_live {
                    push("Capture", &|state| capture(state, number));
                } else {
                    push("VoidIntent", &|state| {
                        (state.intent, state.attempt) = (None, None);
                        state.call(number).is_lost = true;
                    });
                }
            }
        }
    }

    /// Writes the intent, unless the post above is not live any more or is being deleted.
    fn intend(&self, state: &mut ReplyState) {
        state.attempt = None;
        let is_held = state.is_held && !self.has(ReplyFlaw::IntendsBelowHeld);
        let is_live = match state.above {
            Above::Live => true,
            Above::Unpublished => self.has(ReplyFlaw::IntendsBelowUnpublished),
            Above::Open | Above::Dead => false,
        };
        let free = state.calls.iter().position(Option::is_none);
        let Some(free) = free.filter(|_| is_live && !is_held && !state.is_deleted) else { return };
        let is_there = !state.is_being_deleted() && state.above != Above::Unpublished;
        state.demand(ReplyInvariant::NothingBelowDeleted, is_there);
        state.calls[free] =
            Some(Call { is_sent: false, is_live: false, is_lost: false, is_over: false, is_ended: false });
        (state.intent, state.attempt) = (Some(number(free)), Some(Step::Send(number(free))));
    }

    /// Deletes the post above.
    fn delete(&self, state: &ReplyState, next: &mut Vec<Next<ReplyState>>) {
        let mut push = |name, cause, change: &dyn Fn(&mut ReplyState)| {
            let mut state = *state;
            change(&mut state);
            next.push(Next { name, cause, state });
        };
        let is_under_call = state.id.is_none()
            && state.intent.is_some_and(|call| {
                state.calls[usize::from(call)].is_some_and(|call| !call.is_ended && !call.is_over)
            });
        let may_withdraw = !is_under_call || self.has(ReplyFlaw::WithdrawsUnderCall);
        if state.above == Above::Live
            && state.deletion == Deletion::None
            && state.deletions < self.deletions
            && may_withdraw
        {
            push("Withdraw", Cause::Will, &|state| {
                (state.is_held, state.deletion) = (true, Deletion::Begun);
                state.deletions += 1;
            });
        }
        match state.deletion {
            Deletion::None => {}
            Deletion::Begun => push("SendDeletion", Cause::Course, &|state| {
                let is_free = state.calls.iter().flatten().all(|call| !call.is_on_its_way());
                state.demand(ReplyInvariant::NothingDeletedAbove, is_free);
                state.deletion = Deletion::Sent;
            }),
            Deletion::Sent => {
                push("DeleteAtPlatform", Cause::Course, &|state| state.deletion = Deletion::Made);
                push("RefuseDeletion", Cause::Course, &|state| state.deletion = Deletion::Refused);
            }
            Deletion::Made => push("RecordUnpublished", Cause::Course, &|state| {
                (state.above, state.is_held, state.deletion) = (Above::Unpublished, false, Deletion::None);
            }),
            Deletion::Refused => push("ReleaseWithdrawn", Cause::Course, &|state| {
                (state.is_held, state.deletion) = (false, Deletion::None);
            }),
        }
        if matches!(state.deletion, Deletion::Begun | Deletion::Refused) {
            push("CrashDeletion", Cause::Course, &|state| state.deletion = Deletion::None);
        }
        let is_over = state.deletion == Deletion::None || self.has(ReplyFlaw::ReleasesEarly);
        if state.is_held && is_over {
            push("PassLease", Cause::Time, &|state| state.is_held = false);
        }
    }
}

impl Kept for Replies {
    type State = ReplyState;

    fn begin(&self) -> Vec<ReplyState> {
        vec![ReplyState {
            above: Above::Open,
            is_deleted: false,
            is_held: false,
            deletion: Deletion::None,
            status: TargetStatus::Queued,
            has_place: false,
            intent: None,
            id: None,
            attempt: None,
            calls: [None; CALLS],
            begins: 0,
            deletions: 0,
            broken: None,
        }]
    }

    fn follow(&self, state: &ReplyState, next: &mut Vec<Next<ReplyState>>) {
        match state.attempt {
            Some(step) => self.step(state, step, next),
            None if state.begins < self.begins => {
                let mut after = *state;
                self.begin_attempt(&mut after);
                if after != *state {
                    next.push(Next { name: "Begin", cause: Cause::Course, state: after });
                }
            }
            None => {}
        }
        self.delete(state, next);
        let mut push = |name, cause, change: &dyn Fn(&mut ReplyState)| {
            let mut state = *state;
            change(&mut state);
            next.push(Next { name, cause, state });
        };
        if state.above == Above::Open {
            push("PublishParent", Cause::Course, &|state| state.above = Above::Live);
            push("EndParent", Cause::Course, &|state| state.above = Above::Dead);
        }
        if !state.is_deleted {
            push("DeleteParent", Cause::Will, &|state| state.is_deleted = true);
        }
        for (index, call) in state.calls.iter().enumerate() {
            let Some(call) = call else { continue };
            let index = number(index);
            if call.is_on_its_way() {
                push("Publish", Cause::Course, &|state| state.call(index).is_live = true);
                push("Lose", Cause::Course, &|state| state.call(index).is_lost = true);
            }
            if !call.is_over {
                push("Pass", Cause::Time, &|state| {
                    state.call(index).is_over = true;
                    // An attempt ends its call at the deadline, and sends none after it.
                    let waits = [Step::Send(index), Step::AwaitAnswer(index)];
                    if state.attempt.is_some_and(|step| waits.contains(&step)) {
                        state.attempt = None;
                    }
                });
            }
        }
    }

    fn broken(&self, state: &ReplyState) -> Option<&'static str> {
        let live = state.calls.iter().flatten().filter(|call| call.is_live).count();
        let broken = state.broken.or((live > 1).then_some(ReplyInvariant::PublishedOnce));
        broken.map(ReplyInvariant::into)
    }

    fn has_ended(&self, _: &ReplyState) -> bool {
        true
    }
}

fn number(index: usize) -> u8 {
    u8::try_from(index).expect("the number of calls is small")
}
