//! Posts with the same text on one account, and which of them a look-up by text may claim.
//!
//! Each target makes its calls as [`super::protocol`] describes; here a look-up finds the posts of all of them. A
//! platform may accept a call and publish its post later, or never; its handle may tell which post that is. Lists show
//! a post some time after it is live. A target may end at any time, with what it left at the platform: a budget, a
//! window or the wait for a claim is over. A user may retry it then, so that what it left counts as before.
//!
//! The account may have been disconnected and connected for another end tenant meanwhile. Then its posts are those of two
//! rows, and none of the one may be told as a post of the other.

use stateright::{Model, Property};
use strum::{EnumIter, IntoStaticStr};

/// Targets with the same text, with bounds that keep the exploration finite.
#[derive(Clone, Copy, Debug)]
pub struct Claims {
    /// Number of targets.
    pub targets: usize,
    /// Publishing calls of all targets, at most.
    pub calls: usize,
    /// Rows of the account, one for each end tenant that has it or had it; the targets are theirs in turns.
    pub rows: usize,
    /// True if the last target has a text of its own.
    pub differs: bool,
    /// True if a user retries each target that has ended, once.
    pub retries: bool,
    /// A rule that is left out, to show that an invariant depends on it.
    pub flaw: Option<ClaimFlaw>,
}

/// A rule of claiming that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter)]
pub enum ClaimFlaw {
    /// The post of another target is claimed while that one's call is under way.
    ClaimsUnderWay,
    /// A post is claimed while another target's call is accepted, whose handle may lead to it.
    ClaimsBesideAccepted,
    /// A target whose call was accepted claims the post of one that would publish again.
    AcceptedClaims,
    /// Calls that an ended target left at the platform count no more, although it may be retried.
    ClaimsBesideEnded,
    /// A post is claimed before reads show the target's own.
    ClaimsUnsettled,
    /// A post is claimed that another target has.
    ClaimsTaken,
    /// A post is claimed although its text is another one.
    ClaimsOtherText,
    /// A post is claimed that a target of another end tenant may have published.
    ClaimsAcrossRows,
    /// A retried target forgets that its call was begun.
    RetriesWithoutIntent,
}

/// A statement that holds in every state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, IntoStaticStr)]
pub enum ClaimInvariant {
    /// No two targets have the same post.
    OnePostEach,
    /// No more posts are live than targets have one, or may have one and say so.
    LiveIsAccountedFor,
    /// The post that a target has was published for it, or for one of the same end tenant with the same text.
    PublishedForIt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Status {
    Open,
    Published,
    Dead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Target {
    status: Status,
    /// The call that was begun and has no known result; its number is that of its post.
    intent: Option<usize>,
    is_accepted: bool,
    id: Option<usize>,
    was_retried: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Call {
    /// The target that made it.
    target: usize,
    is_under_way: bool,
    /// True while it may still publish.
    may_come: bool,
    is_live: bool,
    is_visible: bool,
}

/// A state of all targets and of the platform.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClaimState {
    targets: Vec<Target>,
    calls: Vec<Call>,
}

impl ClaimState {
    fn is_taken(&self, post: usize) -> bool {
        self.targets.iter().any(|target| target.id == Some(post))
    }

    /// Returns whether reads show the post of a target's call, if there is one.
    fn is_settled(&self, target: &Target) -> bool {
        target.intent.is_none_or(|call| {
            let call = self.calls[call];
            !call.is_under_way && !call.may_come && call.is_visible == call.is_live
        })
    }
}

/// A step of a target, or of the platform. The first number is that of the target or of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClaimAction {
    /// A target begins a publishing call.
    Intend(usize),
    /// The platform publishes the post of a call.
    Publish(usize),
    /// The id arrives.
    Hear(usize),
    /// The answer is lost.
    Lose(usize),
    /// The platform accepts the call, and publishes later, or never.
    Accept(usize),
    /// Lists show a post.
    Show(usize),
    /// The handle of an accepted call leads to its post.
    Follow(usize),
    /// A target claims a post that its look-up found by text.
    Claim(usize, usize),
    /// A look-up found nothing, and is believed.
    Clear(usize),
    /// A target ends: its budget, window or wait is over.
    End(usize),
    /// A user retries a target that has ended.
    Retry(usize),
}

impl Claims {
    /// Returns two or three targets of one end tenant, with the same text.
    pub fn new(targets: usize, calls: usize) -> Self {
        Self { targets, calls, rows: 1, differs: false, retries: false, flaw: None }
    }

    fn row(&self, target: usize) -> usize {
        target % self.rows
    }

    fn text(&self, target: usize) -> bool {
        self.differs && target + 1 == self.targets
    }

    /// Returns the posts that a look-up finds by the text of a target.
    fn found<'a>(&'a self, state: &'a ClaimState, target: usize) -> impl Iterator<Item = usize> + 'a {
        let reads_all = self.flaw == Some(ClaimFlaw::ClaimsOtherText);
        let is_found = move |call: &Call| {
            call.is_live && call.is_visible && (reads_all || self.text(call.target) == self.text(target))
        };
        (0..state.calls.len()).filter(move |post| is_found(&state.calls[*post]))
    }

    fn may_claim(&self, state: &ClaimState, index: usize) -> bool {
        let own = &state.targets[index];
        let call = own.intent.map(|call| state.calls[call]);
        if call.is_none_or(|call| call.is_under_way) {
            return false;
        }
        let has = |flaw| self.flaw == Some(flaw);
        let others = state.targets.iter().enumerate().filter(|(other, _)| *other != index);
        let mut rivals = others.filter(|(other, _)| self.text(*other) == self.text(index));
        rivals.all(|(other, rival)| {
            // One that has ended, too: it may be retried.
            if rival.intent.is_none() || rival.id.is_some() {
                return true;
            }
            if self.row(other) != self.row(index) {
                return has(ClaimFlaw::ClaimsAcrossRows);
            }
            if has(ClaimFlaw::ClaimsBesideEnded) && rival.status != Status::Open {
                return true;
            }
            let is_under_way = rival.intent.is_some_and(|call| state.calls[call].is_under_way);
            (!is_under_way || has(ClaimFlaw::ClaimsUnderWay))
                && (!rival.is_accepted
                    || rival.status != Status::Open
                    || has(ClaimFlaw::ClaimsBesideAccepted))
                && (!own.is_accepted || has(ClaimFlaw::AcceptedClaims))
                && (own.is_accepted || state.is_settled(own) || has(ClaimFlaw::ClaimsUnsettled))
        })
    }
}

impl Model for Claims {
    type State = ClaimState;
    type Action = ClaimAction;

    fn init_states(&self) -> Vec<ClaimState> {
        let target =
            Target { status: Status::Open, intent: None, is_accepted: false, id: None, was_retried: false };
        vec![ClaimState { targets: vec![target; self.targets], calls: Vec::new() }]
    }

    fn actions(&self, state: &ClaimState, actions: &mut Vec<ClaimAction>) {
        for (index, call) in state.calls.iter().enumerate() {
            if call.may_come && !call.is_live {
                actions.push(ClaimAction::Publish(index));
            }
            if call.is_live && !call.is_visible {
                actions.push(ClaimAction::Show(index));
            }
        }
        for (index, target) in state.targets.iter().enumerate() {
            if self.retries && target.status == Status::Dead && !target.was_retried {
                actions.push(ClaimAction::Retry(index));
            }
            if target.status != Status::Open {
                continue;
            }
            let Some(number) = target.intent else {
                // Targets that are alike begin in order.
                let is_next = self.rows > 1
                    || self.differs
                    || state.targets[..index].iter().all(|before| {
                        before.intent.is_some() || before.id.is_some() || before.status != Status::Open
                    });
                if state.calls.len() < self.calls && is_next {
                    actions.push(ClaimAction::Intend(index));
                }
                continue;
            };
            let call = state.calls[number];
            if call.is_under_way {
                actions.push(ClaimAction::Lose(index));
                actions.push(ClaimAction::Accept(index));
                actions.extend(call.is_live.then_some(ClaimAction::Hear(index)));
                continue;
            }
            actions.push(ClaimAction::End(index));
            if target.is_accepted && call.is_live {
                actions.push(ClaimAction::Follow(index));
            }
            let has_taken = self.flaw == Some(ClaimFlaw::ClaimsTaken);
            let found = self.found(state, index).filter(|post| !state.is_taken(*post) || has_taken);
            let found: Vec<_> = found.collect();
            if self.may_claim(state, index) {
                actions.extend(found.iter().map(|post| ClaimAction::Claim(index, *post)));
            }
            if found.is_empty() && !target.is_accepted && state.is_settled(target) {
                actions.push(ClaimAction::Clear(index));
            }
        }
    }

    fn next_state(&self, last: &ClaimState, action: ClaimAction) -> Option<ClaimState> {
        let mut state = last.clone();
        let own = |state: &ClaimState, index: usize| state.targets[index].intent.expect("a call was begun");
        match action {
            ClaimAction::Intend(index) => {
                state.targets[index].intent = Some(state.calls.len());
                state.calls.push(Call {
                    target: index,
                    is_under_way: true,
                    may_come: true,
                    is_live: false,
                    is_visible: false,
                });
            }
            ClaimAction::Publish(call) => {
                state.calls[call].is_live = true;
                state.calls[call].may_come = false;
            }
            ClaimAction::Show(call) => state.calls[call].is_visible = true,
            ClaimAction::Lose(index) => {
                let call = own(&state, index);
                (state.calls[call].is_under_way, state.calls[call].may_come) = (false, false);
            }
            ClaimAction::Accept(index) => {
                let call = own(&state, index);
                state.calls[call].is_under_way = false;
                state.targets[index].is_accepted = true;
            }
            // A post that was claimed meanwhile is reported as the post of both.
            ClaimAction::Follow(index) if state.is_taken(own(&state, index)) && self.retries => {
                state.targets[index].status = Status::Published;
            }
            ClaimAction::Hear(index) | ClaimAction::Follow(index) => {
                let call = own(&state, index);
                state.calls[call].is_under_way = false;
                (state.targets[index].id, state.targets[index].status) = (Some(call), Status::Published);
            }
            ClaimAction::Claim(index, post) => {
                (state.targets[index].id, state.targets[index].status) = (Some(post), Status::Published);
            }
            ClaimAction::Clear(index) => state.targets[index].intent = None,
            ClaimAction::End(index) => state.targets[index].status = Status::Dead,
            ClaimAction::Retry(index) => {
                let target = &mut state.targets[index];
                (target.status, target.was_retried) = (Status::Open, true);
                if self.flaw == Some(ClaimFlaw::RetriesWithoutIntent) {
                    (target.intent, target.is_accepted) = (None, false);
                }
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = |invariant: ClaimInvariant, holds: fn(&Self, &ClaimState) -> bool| {
            Property::always(invariant.into(), holds)
        };
        vec![
            always(ClaimInvariant::OnePostEach, |_, state| {
                let mut ids: Vec<_> = state.targets.iter().filter_map(|target| target.id).collect();
                ids.sort_unstable();
                ids.windows(2).all(|pair| pair[0] != pair[1])
            }),
            always(ClaimInvariant::LiveIsAccountedFor, |_, state| {
                // A dead target that was in doubt says that it may be live.
                let told =
                    state.targets.iter().filter(|target| target.id.is_some() || target.intent.is_some());
                state.calls.iter().filter(|call| call.is_live).count() <= told.count()
            }),
            always(ClaimInvariant::PublishedForIt, |model, state| {
                let mut ids = state
                    .targets
                    .iter()
                    .enumerate()
                    .filter_map(|(index, target)| Some((index, state.calls[target.id?])));
                ids.all(|(index, call)| {
                    let of = |target: usize| (model.row(target), model.text(target));
                    call.is_live && of(call.target) == of(index)
                })
            }),
            Property::sometimes("all are published", |_, state: &ClaimState| {
                state.targets.iter().all(|target| target.status == Status::Published)
            }),
            Property::sometimes("one claims its post after another one ended", |_, state: &ClaimState| {
                let has = |status| state.targets.iter().any(|target| target.status == status);
                has(Status::Dead) && has(Status::Published)
            }),
        ]
    }
}
