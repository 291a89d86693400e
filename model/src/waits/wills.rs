//! Actions of users and operators on a target.

use super::{Above, Cause, File, Next, Steps, Turn, WaitFlaw, WaitState, Waits};
use domain::TargetStatus;
use strum::IntoStaticStr;

/// Something that a user or an operator does, or retention, which is not bound to happen either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
pub enum Will {
    /// A user asks for the next attempt now.
    RetryNow,
    /// A user retries a target that is dead, or misses its reply.
    Revive,
    /// The post is deleted.
    Delete,
    /// The account is disconnected.
    Disconnect,
    /// It is connected again for the same end tenant.
    Connect,
    /// The target gets a later time of its own.
    Edit,
    /// The post gets a file that is being fetched.
    EditFile,
    /// The deletion of its posts from the platform begins.
    Withdraw,
    /// An operator ends it.
    Stop,
    /// An operator freezes its platform, account or organization.
    Freeze,
    /// An operator releases it.
    Release,
    /// Somebody deletes the post that it replies to from its platform.
    WithdrawParent,
    /// The thread that it replies to gets longer.
    LengthenParent,
    /// The database is restored from a backup.
    Restored,
    /// Retention deletes the file.
    DeleteFile,
}

/// Releases what was frozen.
pub(super) fn release(model: &Waits, state: WaitState) -> WaitState {
    let mut state = WaitState { is_frozen: false, ..state };
    if state.awaits_release {
        (state.awaits_release, state.next_attempt, state.age) = (false, Some(0), 0);
        if !model.has(WaitFlaw::KeepsRestOfReleased) {
            (state.throttled_since, state.waiting) = (None, None);
        }
        state.wake();
    }
    state
}

impl Waits {
    /// Appends what somebody may want.
    pub(super) fn want(&self, state: &WaitState, next: &mut Steps) {
        for will in self.wills {
            let mut push = |state: WaitState| {
                let state = WaitState { wills: state.wills - 1, ..state };
                next.push(Next { name: will.into(), cause: Cause::Will, state });
            };
            let mut after = *state;
            if *will == Will::Restored {
                if restore(&mut after) {
                    push(after);
                    if after.scheduled.is_none() {
                        // It was published since the backup.
                        (after.parts[0].copies, after.parts[0].may_come) = (1, false);
                        push(after);
                    }
                }
            } else if self.apply(*will, &mut after) {
                push(after);
            }
        }
    }

    /// Does what somebody wants. Returns false if it is refused.
    fn apply(&self, will: Will, state: &mut WaitState) -> bool {
        let is_due = state.status == TargetStatus::Published && state.next_attempt.is_some();
        match will {
            Will::RetryNow if state.status == TargetStatus::Failed || state.awaits_release || is_due => {
                (state.next_attempt, state.rests_until) = (Some(0), None);
                state.app = state.app.map(|(_, looks)| (0, looks));
                state.wake();
            }
            Will::Revive if !state.is_deleted && !state.is_disconnected => return revive(state),
            Will::Delete if !state.is_deleted => {
                state.is_deleted = true;
                if state.is_open() || is_due {
                    cancel(state, self.has(WaitFlaw::CancelsInDoubt));
                }
            }
            Will::Disconnect if !state.is_disconnected => {
                state.is_disconnected = true;
                if state.is_open() || is_due {
                    cancel(state, false);
                }
            }
            Will::Connect if state.is_disconnected => state.is_disconnected = false,
            Will::Edit | Will::EditFile if !state.has_begun && !state.is_deleted => {
                let is_reopened = state.status == TargetStatus::Canceled && !state.is_disconnected;
                if !state.is_open() && !is_reopened {
                    return false;
                }
                (state.status, state.age) = (TargetStatus::Pending, 0);
                if will == Will::Edit {
                    (state.scheduled, state.next_attempt) = (Some(2), Some(2));
                } else {
                    state.file = File::Awaited;
                }
                if state.awaits_release {
                    (state.awaits_release, state.next_attempt) = (false, state.scheduled);
                }
                if !self.has(WaitFlaw::KeepsWaitOfEdited) {
                    (state.waiting, state.throttled_since) = (None, None);
                }
                state.wake();
            }
            Will::Withdraw if state.status == TargetStatus::Published && !state.is_unpublished => {
                let is_held = state.lease.is_some_and(|until| until > 0);
                if is_held || state.is_in_doubt() && is_due {
                    return false;
                }
                state.lease = Some(1);
                state.open_deletions += 1;
            }
            Will::Stop if !state.has_ended() && !state.is_stopped => {
                (state.is_stopped, state.next_attempt) = (true, Some(0));
                (state.awaits_release, state.is_continuation) = (false, false);
                state.wake();
            }
            Will::Freeze if !state.is_frozen && !state.has_ended() => state.is_frozen = true,
            Will::Release if state.is_frozen => *state = release(self, *state),
            Will::WithdrawParent if matches!(state.above, Above::Live | Above::Longer) => {
                state.above = Above::Held;
            }
            Will::LengthenParent if state.above == Above::Live => state.above = Above::Longer,
            Will::DeleteFile if state.file == File::Ready && state.has_ended() => state.file = File::Deleted,
            _ => return false,
        }
        true
    }
}

/// Cancels a target that can't be live. Any other one is looked up now, unless it is canceled as well.
fn cancel(state: &mut WaitState, in_doubt: bool) {
    if state.is_open() && (in_doubt || !state.has_intent()) {
        (state.status, state.next_attempt) = (TargetStatus::Canceled, None);
        return;
    }
    state.next_attempt = (state.status == TargetStatus::Published).then_some(0);
    state.wake();
}

/// Retries a target that is dead, or misses its reply.
fn revive(state: &mut WaitState) -> bool {
    let is_torn = state.status == TargetStatus::Published
        && state.has_error
        && state.next_attempt.is_none()
        && !state.is_unpublished;
    if state.status != TargetStatus::Dead && !is_torn {
        return false;
    }
    state.next_attempt = is_torn.then_some(0);
    if !is_torn {
        state.status = TargetStatus::Queued;
    }
    (state.spent, state.token_attempts, state.throttled_since) = (0, 0, None);
    (state.processing_since, state.is_continuation, state.has_error) = (None, false, false);
    (state.is_stopped, state.may_be_live, state.rests_until) = (false, false, None);
    state.app = state.app.map(|(_, looks)| (0, looks));
    (state.turn, state.age) = (Turn::Attempt, 0);
    state.lease = state.lease.filter(|until| *until > 0);
    if state.lease.is_none() {
        state.open_deletions = 0;
    }
    true
}

/// Marks an open target for a look-up, as a database that was restored from a backup has it.
fn restore(state: &mut WaitState) -> bool {
    if state.has_ended() {
        return false;
    }
    (state.processing_since, state.is_continuation) = (None, false);
    state.next_attempt = if state.is_open() { state.scheduled } else { Some(0) };
    if state.scheduled.is_none() {
        state.has_begun = true;
        for part in state.parts.iter_mut().filter(|part| !part.is_live) {
            part.intent = Some(0);
        }
    }
    state.turn = Turn::Attempt;
    true
}
