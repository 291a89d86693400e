//! Edits of a live post on its platform.
//!
//! Each edit sets the post's text to a value of its own. Their calls must not overlap: the platform could keep the one,
//! and the row the other. A worker that makes an edit may stop at any step, and its call takes effect until its time is
//! over, also if nobody hears the answer.
//!
//! An edit whose worker stops is told to its caller as one without a result: it may be made, and be missing in the row.

use crate::graph::{self, Broken, Cause, Explored, Kept, Next};
use strum::{EnumIter, IntoStaticStr};

/// Names of the transitions of the product that this model makes.
pub(crate) const TRANSITIONS: [&str; 3] = ["BeginEdit", "TakeEdit", "RecordEdit"];

/// Edits that users make.
const EDITS: usize = 3;

/// Edits of a live post.
#[derive(Clone, Copy, Debug, Default)]
pub struct Edits {
    /// A rule that is left out, to show that an invariant depends on it.
    pub flaw: Option<EditFlaw>,
}

/// A rule of edits that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter)]
pub enum EditFlaw {
    /// An edit begins while another one is being made.
    Overlaps,
    /// A worker takes an edit although another one has begun since.
    TakesFormer,
    /// An edit whose last call has no known result does not hold the target.
    ForgetsDoubt,
    /// An edit whose last call has no known result is told as refused.
    TellsDoubtAsRefused,
    /// The hold of a target ends before the calls of its edit have.
    ReleasesEarly,
    /// The result of an edit is recorded although another one has begun since.
    RecordsFormer,
}

/// A statement that holds in every state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EnumIter, IntoStaticStr)]
pub enum EditInvariant {
    /// Changes that were recorded as made are what the platform has, until another edit begins.
    RecordedIsMade,
    /// The platform has what the row has, or an edit that was not told as refused.
    RefusedIsNotMade,
}

/// How far an edit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    New,
    /// The row has it.
    Begun,
    /// A worker has it.
    Taken,
    /// The call is under way.
    Sent,
    /// The platform has answered that it is made.
    Made,
    /// The platform has refused it.
    Refused,
    /// The answer is lost.
    Lost,
    /// Its caller was told that it is made.
    ToldMade,
    /// Its caller was told that it is not.
    ToldRefused,
    /// Its caller was told that nobody knows.
    ToldUnknown,
}

/// A state of the row, the platform and the edits. An edit is named by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EditState {
    /// The edit that the row has as made.
    recorded: Option<usize>,
    /// The last edit that began.
    last: Option<usize>,
    is_held: bool,
    /// The edit that the platform has made last.
    made: Option<usize>,
    stages: [Stage; EDITS],
    /// True while the call of an edit may take effect.
    may_come: [bool; EDITS],
}

impl Edits {
    /// Explores all states.
    ///
    /// # Errors
    ///
    /// With the first invariant that does not hold.
    pub fn explore(&self) -> Result<Explored, Broken> {
        graph::explore(self)
    }

    fn has(&self, flaw: EditFlaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// Appends the steps of an edit.
    fn advance(&self, state: &EditState, edit: usize, next: &mut Vec<Next<EditState>>) {
        let mut push = |name, change: &dyn Fn(&mut EditState)| {
            let mut state = *state;
            change(&mut state);
            next.push(Next { name, cause: Cause::Course, state });
        };
        let is_last = state.last == Some(edit);
        match state.stages[edit] {
            Stage::New if !state.is_held || self.has(EditFlaw::Overlaps) => push("BeginEdit", &|state| {
                (state.last, state.is_held) = (Some(edit), true);
                state.stages[edit] = Stage::Begun;
            }),
            Stage::Begun if is_last || self.has(EditFlaw::TakesFormer) => push("TakeEdit", &|state| {
                state.is_held = true;
                state.stages[edit] = Stage::Taken;
            }),
            Stage::Begun => push("TakeEdit", &|state| state.stages[edit] = Stage::ToldUnknown),
            Stage::Taken => push("Send", &|state| {
                (state.stages[edit], state.may_come[edit]) = (Stage::Sent, true);
            }),
            Stage::Sent => {
                if !state.may_come[edit] {
                    push("Answer", &|state| state.stages[edit] = Stage::Made);
                } else {
                    push("Refuse", &|state| {
                        (state.stages[edit], state.may_come[edit]) = (Stage::Refused, false);
                    });
                }
                push("Lose", &|state| state.stages[edit] = Stage::Lost);
            }
            Stage::Made | Stage::Refused | Stage::Lost => {
                push("RecordEdit", &|state| self.record(state, edit));
            }
            Stage::New | Stage::ToldMade | Stage::ToldRefused | Stage::ToldUnknown => {}
        }
        let is_with_worker = matches!(
            state.stages[edit],
            Stage::Taken | Stage::Sent | Stage::Made | Stage::Refused | Stage::Lost
        );
        if is_with_worker {
            push("Crash", &|state| state.stages[edit] = Stage::ToldUnknown);
        }
        if state.may_come[edit] {
            push("TakeEffect", &|state| {
                (state.made, state.may_come[edit]) = (Some(edit), false);
            });
        }
    }

    /// Records the result of an edit, unless another one has begun since.
    fn record(&self, state: &mut EditState, edit: usize) {
        let stage = state.stages[edit];
        if state.last != Some(edit) && !self.has(EditFlaw::RecordsFormer) {
            state.stages[edit] = Stage::ToldUnknown;
            return;
        }
        state.stages[edit] = match stage {
            Stage::Made => Stage::ToldMade,
            Stage::Refused => Stage::ToldRefused,
            Stage::Lost if self.has(EditFlaw::TellsDoubtAsRefused) => Stage::ToldRefused,
            _ => Stage::ToldUnknown,
        };
        if stage == Stage::Made {
            state.recorded = Some(edit);
        }
        state.is_held &= stage == Stage::Lost && !self.has(EditFlaw::ForgetsDoubt);
    }
}

impl Kept for Edits {
    type State = EditState;

    fn begin(&self) -> Vec<EditState> {
        vec![EditState {
            recorded: None,
            last: None,
            is_held: false,
            made: None,
            stages: [Stage::New; EDITS],
            may_come: [false; EDITS],
        }]
    }

    fn follow(&self, state: &EditState, next: &mut Vec<Next<EditState>>) {
        for edit in 0..EDITS {
            self.advance(state, edit, next);
        }
        // Longer than the calls of an edit take once a worker has taken it.
        let is_over =
            |edit: usize| !state.may_come[edit] && !matches!(state.stages[edit], Stage::Taken | Stage::Sent);
        if state.is_held && ((0..EDITS).all(is_over) || self.has(EditFlaw::ReleasesEarly)) {
            next.push(Next {
                name: "PassLease",
                cause: Cause::Time,
                state: EditState { is_held: false, ..*state },
            });
        }
        for edit in (0..EDITS).filter(|edit| state.may_come[*edit]) {
            // Its time is over.
            let mut after = *state;
            after.may_come[edit] = false;
            if after.stages[edit] == Stage::Sent {
                after.stages[edit] = Stage::Lost;
            }
            next.push(Next { name: "Pass", cause: Cause::Time, state: after });
        }
    }

    fn broken(&self, state: &EditState) -> Option<&'static str> {
        let told = |edit: usize| state.stages[edit];
        let is_recorded = state.last.is_some_and(|last| told(last) == Stage::ToldMade);
        if is_recorded && (state.made != state.last || state.recorded != state.last) {
            return Some(EditInvariant::RecordedIsMade.into());
        }
        let is_refused = state.made.is_some_and(|made| told(made) == Stage::ToldRefused);
        if state.made != state.recorded && is_refused {
            return Some(EditInvariant::RefusedIsNotMade.into());
        }
        None
    }

    fn has_ended(&self, _: &EditState) -> bool {
        true
    }
}
