//! Messages of the outbox, of a post and a reply to it on several accounts.
//!
//! Nothing reads the outbox meanwhile, so that all that is ever written to it waits there. It has a bound that is linear
//! in the targets, with what users and operators did as the factor; the tests explore it with up to three accounts.

use crate::graph::{self, Broken, Cause, Explored, Kept, Next};
use strum::{EnumIter, IntoStaticStr};

/// Names of the transitions of the product that this model makes, besides those of [`super::Transition`].
pub(crate) const TRANSITIONS: [&str; 1] = ["WakeReplies"];

/// Accounts that a state has room for.
const ACCOUNTS: usize = 3;
/// The post and its reply.
const POSTS: u16 = 2;

/// A post and a reply to it, with bounds that keep the exploration finite.
#[derive(Clone, Copy, Debug)]
pub struct Messages {
    /// Accounts of both, at most 3.
    pub accounts: usize,
    /// Files of the post that are being fetched.
    pub files: u8,
    /// How often users and operators do something.
    pub wills: u8,
    /// A rule that is left out, to show that an invariant depends on it.
    pub flaw: Option<MessageFlaw>,
}

/// A rule of messages that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter)]
pub enum MessageFlaw {
    /// The end of a target wakes the replies on all accounts.
    WakesAll,
    /// An overdue row is swept although its message waits.
    SweepsAgain,
}

/// A statement that holds in every state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EnumIter, IntoStaticStr)]
pub enum MessageInvariant {
    /// The number of messages is linear in the targets.
    MessagesAreLinear,
}

/// A target of the post, or of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Target {
    /// It has not begun: messages may wake it.
    Waits,
    /// It has begun.
    Open,
    /// It is live without the rest of its thread.
    Live,
    Ended,
    Dead,
}

/// A state of all targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MessageState {
    targets: [Target; ACCOUNTS],
    replies: [Target; ACCOUNTS],
    files: u8,
    is_deleted: bool,
    /// True while the message waits that the sweeper has written for a post.
    is_swept: [bool; POSTS as usize],
    wills: u8,
    messages: u16,
}

impl MessageState {
    /// Writes the messages that wake the replies to a target, or to all.
    fn wake_replies(&mut self, accounts: impl Iterator<Item = usize>) {
        let waiting = accounts.filter(|account| self.replies[*account] == Target::Waits).count();
        self.messages += u16::try_from(waiting).expect("a post has few accounts");
    }
}

impl Messages {
    /// Explores all states.
    ///
    /// # Errors
    ///
    /// With the first invariant that does not hold.
    pub fn explore(&self) -> Result<Explored, Broken> {
        graph::explore(self)
    }

    /// Returns the bound: for each post a message that starts it and one of the sweeper, for each target one for each of its
    /// files and one for each of its two ends; and as many again for what somebody does.
    fn most(&self, state: &MessageState) -> u16 {
        let targets = POSTS * u16::try_from(self.accounts).expect("a post has few accounts");
        let wills = u16::from(self.wills - state.wills);
        (1 + wills) * (2 * POSTS + (u16::from(self.files) + 2) * targets)
    }

    /// Appends the steps of a target of the post and of the reply to it.
    fn advance(&self, state: &MessageState, account: usize, next: &mut Vec<Next<MessageState>>) {
        let mut push = |name, change: &dyn Fn(&mut MessageState)| {
            let mut state = *state;
            change(&mut state);
            next.push(Next { name, cause: Cause::Course, state });
        };
        let all = self.flaw == Some(MessageFlaw::WakesAll);
        let told = move || (0..self.accounts).filter(move |other| all || *other == account);
        match state.targets[account] {
            Target::Waits => push("Begin", &|state| state.targets[account] = Target::Open),
            Target::Open => {
                for end in [Target::Live, Target::Ended, Target::Dead] {
                    push("Settle", &|state| {
                        state.targets[account] = end;
                        state.wake_replies(told());
                    });
                }
            }
            Target::Live => push("MarkComplete", &|state| {
                state.targets[account] = Target::Ended;
                state.wake_replies(told());
            }),
            Target::Ended | Target::Dead => {}
        }
        match state.replies[account] {
            Target::Waits => push("Begin", &|state| state.replies[account] = Target::Open),
            Target::Open => {
                push("Settle", &|state| state.replies[account] = Target::Ended);
                push("Settle", &|state| state.replies[account] = Target::Dead);
            }
            Target::Live | Target::Ended | Target::Dead => {}
        }
    }

    /// Appends what users and operators may do with all targets.
    fn want(&self, state: &MessageState, next: &mut Vec<Next<MessageState>>) {
        let accounts = 0..self.accounts;
        let mut push = |name, change: &dyn Fn(&mut MessageState)| {
            let mut state = *state;
            state.wills -= 1;
            change(&mut state);
            next.push(Next { name, cause: Cause::Will, state });
        };
        let is_open = |target: Target| matches!(target, Target::Waits | Target::Open | Target::Live);
        if !state.is_deleted {
            push("Delete", &|state| {
                state.is_deleted = true;
                for target in state.targets[accounts.clone()].iter_mut().filter(|target| is_open(**target)) {
                    (*target, state.messages) = (Target::Ended, state.messages + 1);
                }
                state.messages += 1;
                state.wake_replies(accounts.clone());
            });
        }
        // Each is looked up.
        push("Disconnect", &|state| {
            state.messages += POSTS + 1;
        });
        push("Release", &|state| {
            let waits = |targets: &[Target]| targets.iter().filter(|target| is_open(**target)).count();
            let waiting = waits(&state.targets[accounts.clone()]) + waits(&state.replies[accounts.clone()]);
            state.messages += u16::try_from(waiting).expect("a post has few accounts");
        });
        push("Revive", &|state| {
            for target in state.targets[accounts.clone()].iter_mut().filter(|target| **target == Target::Dead)
            {
                (*target, state.messages) = (Target::Open, state.messages + 1);
            }
        });
        let has_begun = state.targets[accounts.clone()].iter().any(|target| *target != Target::Waits);
        if !has_begun && !state.is_deleted {
            push("Edit", &|state| {
                state.messages += 1 + u16::try_from(accounts.len()).expect("a post has few accounts");
            });
        }
    }
}

impl Kept for Messages {
    type State = MessageState;

    fn begin(&self) -> Vec<MessageState> {
        vec![MessageState {
            targets: [Target::Waits; ACCOUNTS],
            replies: [Target::Waits; ACCOUNTS],
            files: self.files,
            is_deleted: false,
            is_swept: [false; POSTS as usize],
            wills: self.wills,
            messages: POSTS,
        }]
    }

    fn follow(&self, state: &MessageState, next: &mut Vec<Next<MessageState>>) {
        for account in 0..self.accounts {
            self.advance(state, account, next);
        }
        if state.wills > 0 {
            self.want(state, next);
        }
        if state.files > 0 {
            let waits = |target: &&Target| **target == Target::Waits;
            let woken = state.targets[..self.accounts].iter().filter(waits).count();
            let messages = state.messages + u16::try_from(woken).expect("a post has few accounts");
            let state = MessageState { files: state.files - 1, messages, ..*state };
            next.push(Next { name: "FileReady", cause: Cause::Course, state });
        }
        for post in 0..usize::from(POSTS) {
            if !state.is_swept[post] || self.flaw == Some(MessageFlaw::SweepsAgain) {
                let mut after = MessageState { messages: state.messages + 1, ..*state };
                after.is_swept[post] = true;
                next.push(Next { name: "Sweep", cause: Cause::Time, state: after });
            }
        }
    }

    fn broken(&self, state: &MessageState) -> Option<&'static str> {
        (state.messages > self.most(state)).then(|| MessageInvariant::MessagesAreLinear.into())
    }

    fn has_ended(&self, _: &MessageState) -> bool {
        true
    }
}
