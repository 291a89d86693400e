//! The steps of a sequence, and how they are drawn.

use super::{
    places::{Place, place},
    who::By,
};
use proptest::{prelude::*, sample::select, strategy::Union};
use proptest_state_machine::ReferenceStateMachine;

/// Accounts that posts go to: platform, name, prefix of the paths that publish, and end tenant.
pub(super) const ACCOUNTS: [(&str, &str, &str, Option<&str>); 3] = [
    ("x", "ada", "/2/tweets", Some("mine")),
    ("bluesky", "ada.bsky.social", "/xrpc/com.atproto.repo.", Some("mine")),
    ("threads", "ada", "/v1.0/", None),
];

/// Accounts that nothing is published to: platform, name and end tenant.
pub(super) const SPARES: [(&str, &str, Option<&str>); 3] =
    [("x", "bob", Some("mine")), ("x", "cleo", Some("theirs")), ("bluesky", "dan.bsky.social", None)];

/// Most operations, pages and actions of a step.
const WALK: usize = 6;

/// Number of the first accounts that replies are published to.
const REPLYING: usize = 2;

/// Number of idempotency keys, few enough that they are used again.
const KEYS: u8 = 3;

/// When a post is to be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Not until it is released.
    Draft,
    /// In many years.
    Far,
    /// In less than a second.
    Soon,
    /// At once.
    Now,
    /// At the next open slot of its first account, in days.
    Slot,
}

/// Behavior of the platform for a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Accepts it.
    None,
    /// Accepts it, and the answer is lost.
    LostReply,
    /// Accepts it, and answers with 500.
    BrokenAfter,
    /// Accepts it, and answers with something unreadable.
    Garbage,
    /// Answers late.
    Slow,
    /// Refuses it once for a rate limit, on Threads for a minute.
    Throttled,
    /// Refuses it twice with 503.
    Unavailable,
    /// Drops the connection once.
    Dropped,
    /// Refuses the content.
    Rejected,
    /// Refuses the token once.
    TokenRefusedOnce,
    /// Refuses every token.
    TokenRefused,
}

impl Fault {
    const ALL: [Self; 11] = [
        Self::None,
        Self::LostReply,
        Self::BrokenAfter,
        Self::Garbage,
        Self::Slow,
        Self::Throttled,
        Self::Unavailable,
        Self::Dropped,
        Self::Rejected,
        Self::TokenRefusedOnce,
        Self::TokenRefused,
    ];

    /// Returns the sandbox's word for it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::None => "",
            Self::LostReply => "#sandbox-lost-reply",
            Self::BrokenAfter => "#sandbox-500-after",
            Self::Garbage => "#sandbox-garbage",
            Self::Slow => "#sandbox-slow",
            Self::Throttled => "#sandbox-429x1",
            Self::Unavailable => "#sandbox-503x2",
            Self::Dropped => "#sandbox-dropx1",
            Self::Rejected => "#sandbox-400",
            Self::TokenRefusedOnce => "#sandbox-401x1",
            Self::TokenRefused => "#sandbox-401",
        }
    }
}

/// A set of accounts, one bit each; not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accounts(pub(super) u8);

impl Accounts {
    /// Returns the indices of the accounts.
    pub(super) fn indices(self) -> impl Iterator<Item = usize> {
        (0..ACCOUNTS.len()).filter(move |index| self.0 & (1 << index) != 0)
    }
}

/// A post to create.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    /// When to publish it.
    pub(super) plan: Plan,
    /// Its accounts.
    pub(super) accounts: Accounts,
    /// Behavior of the platform for its text.
    pub(super) fault: Fault,
    /// True for a second container.
    pub(super) has_reply: bool,
    /// Idempotency key.
    pub(super) key: Option<u8>,
    /// Number of the post that it replies to.
    pub(super) reply_to: Option<usize>,
}

/// A call of the API.
#[derive(Clone, Debug)]
pub(super) enum Call {
    /// Creates a post.
    Create(Draft),
    /// Edits a post.
    Edit {
        /// Number of the post, taken modulo the number of posts.
        post: usize,
        /// New text, with or without a reply.
        text: Option<(Fault, bool)>,
        /// New time.
        plan: Option<Plan>,
        /// New accounts.
        accounts: Option<Accounts>,
    },
    /// Deletes a post.
    Delete {
        /// Number of the post.
        post: usize,
    },
    /// Requests the next attempt of a post's first target now.
    Retry {
        /// Number of the post.
        post: usize,
    },
    /// Disconnects an account.
    Disconnect {
        /// Index of the account.
        account: usize,
    },
}

/// Action of an operator on a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Resets it to its first task.
    Reset,
    /// Terminates it.
    Terminate,
    /// Cancels it.
    Cancel,
}

/// A step.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A call, by one of several callers.
    One(By, Call),
    /// Operations, pages and actions.
    Walk(Vec<Place>),
    /// Two calls at the same moment.
    Both(Call, Call),
    /// Connects an account again.
    Connect {
        /// Index of the account.
        account: usize,
    },
    /// Expires an account's access tokens at the platform; they can be refreshed.
    Expire {
        /// Index of the account.
        account: usize,
    },
    /// Revokes an account's grant at the platform.
    Revoke {
        /// Index of the account.
        account: usize,
    },
    /// Creates a post of one account, whose publishing call stays on its way until the next `Release`.
    Catch {
        /// Index of the account.
        account: usize,
        /// True if the platform has accepted the call.
        is_accepted: bool,
        /// Behavior of the platform for its text.
        fault: Fault,
    },
    /// Waits for all ends, and retries the dead targets of a post.
    Revive {
        /// Number of the post.
        post: usize,
    },
    /// Waits for all ends, and deletes the posts of a post's first target from their platform.
    Unpublish {
        /// Number of the post.
        post: usize,
    },
    /// Lets all publishing calls continue.
    Release,
    /// Pauses or resumes the second webhook endpoint.
    Pause(bool),
    /// Makes the first webhook endpoint refuse the next deliveries.
    RefuseDeliveries(usize),
    /// An operator's action on a workflow.
    Operate {
        /// Number of the post.
        post: usize,
        /// Number of the target; `None` for the workflow of the post.
        target: Option<usize>,
        /// The action.
        action: Action,
    },
    /// Waits until every post that can end has ended.
    Wait,
}

impl Step {
    /// Returns the names under which the step is counted.
    pub(super) fn kinds(&self) -> Vec<&'static str> {
        match self {
            Self::One(By::Owner, call) => vec![call.kind()],
            Self::One(_, call) => vec!["call by another caller", call.kind()],
            Self::Walk(places) => places.iter().map(Place::kind).collect(),
            Self::Both(one, other) => vec!["two calls at once", one.kind(), other.kind()],
            Self::Connect { .. } => vec!["connect again"],
            Self::Expire { .. } => vec!["token expired"],
            Self::Revoke { .. } => vec!["grant revoked"],
            Self::Catch { .. } => vec!["call held on its way"],
            Self::Revive { .. } => vec!["retry of dead targets"],
            Self::Unpublish { .. } => vec!["unpublish"],
            Self::Release => vec!["held calls released"],
            Self::Pause(true) => vec!["webhook paused"],
            Self::Pause(false) => vec!["webhook resumed"],
            Self::RefuseDeliveries(_) => vec!["deliveries refused"],
            Self::Operate { action: Action::Reset, .. } => vec!["workflow reset"],
            Self::Operate { action: Action::Terminate, .. } => vec!["workflow terminated"],
            Self::Operate { action: Action::Cancel, .. } => vec!["workflow canceled"],
            Self::Wait => vec!["wait for all ends"],
        }
    }
}

impl Call {
    fn kind(&self) -> &'static str {
        match self {
            Self::Create(Draft { reply_to: Some(_), .. }) => "create: reply",
            Self::Create(Draft { plan: Plan::Draft, .. }) => "create: draft",
            Self::Create(Draft { plan: Plan::Now, .. }) => "create: immediate",
            Self::Create(Draft { plan: Plan::Slot, .. }) => "create: next slot",
            Self::Create(_) => "create: scheduled",
            Self::Edit { .. } => "edit",
            Self::Delete { .. } => "delete",
            Self::Retry { .. } => "retry now",
            Self::Disconnect { .. } => "disconnect",
        }
    }
}

/// Draws sequences of steps. Steps name posts by number, so any step is possible once there is a post.
pub(super) struct Steps;

impl ReferenceStateMachine for Steps {
    /// True once a post was created.
    type State = bool;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<bool> {
        Just(false).boxed()
    }

    fn transitions(has_post: &bool) -> BoxedStrategy<Step> {
        if *has_post {
            any_step()
        } else {
            create().prop_map(|draft| Step::One(By::Owner, Call::Create(draft))).boxed()
        }
    }

    fn preconditions(has_post: &bool, step: &Step) -> bool {
        // Shrinking removes steps.
        *has_post || matches!(step, Step::One(By::Owner, Call::Create(_)))
    }

    fn apply(_: bool, _: &Step) -> bool {
        true
    }
}

fn any_step() -> BoxedStrategy<Step> {
    let (post, account) = (0..100usize, 0..ACCOUNTS.len());
    let action = select(vec![Action::Reset, Action::Terminate, Action::Cancel]);
    let target = proptest::option::of(0..ACCOUNTS.len());
    prop_oneof![
        9 => (by(), create()).prop_map(|(by, draft)| Step::One(by, Call::Create(draft))),
        5 => (by(), reply(post.clone())).prop_map(|(by, draft)| Step::One(by, Call::Create(draft))),
        16 => (by(), post.clone().prop_flat_map(change)).prop_map(|(by, call)| Step::One(by, call)),
        2 => (by(), account.clone())
            .prop_map(|(by, account)| Step::One(by, Call::Disconnect { account })),
        14 => proptest::collection::vec(place(), 1..=WALK).prop_map(Step::Walk),
        4 => both(),
        4 => account.clone().prop_map(|account| Step::Connect { account }),
        1 => account.clone().prop_map(|account| Step::Expire { account }),
        1 => account.clone().prop_map(|account| Step::Revoke { account }),
        3 => (account, any::<bool>(), fault())
            .prop_map(|(account, is_accepted, fault)| Step::Catch { account, is_accepted, fault }),
        3 => post.clone().prop_map(|post| Step::Revive { post }),
        1 => post.clone().prop_map(|post| Step::Unpublish { post }),
        2 => Just(Step::Release),
        2 => any::<bool>().prop_map(Step::Pause),
        1 => (1..3usize).prop_map(Step::RefuseDeliveries),
        5 => (post, target, action).prop_map(|(post, target, action)| Step::Operate { post, target, action }),
        3 => Just(Step::Wait),
    ]
    .boxed()
}

/// A caller: mostly the owner, whom nothing is refused.
fn by() -> BoxedStrategy<By> {
    prop_oneof![3 => Just(By::Owner), 1 => select(By::ALL.to_vec())].boxed()
}

/// Two calls whose result must be as if one had come before the other.
fn both() -> BoxedStrategy<Step> {
    let posts = 0..100usize;
    let twice = (create(), create(), 0..KEYS).prop_map(|(one, other, key)| {
        let keyed = |draft| Call::Create(Draft { key: Some(key), ..draft });
        Step::Both(keyed(one), keyed(other))
    });
    let slots = (create(), create()).prop_map(|(one, other)| {
        let queued = |draft| Call::Create(Draft { plan: Plan::Slot, ..draft });
        Step::Both(queued(one), queued(other))
    });
    let same = posts.clone().prop_flat_map(|post| (change(post), change(post)));
    let parting = (posts, any::<bool>(), 0..ACCOUNTS.len()).prop_map(|(post, is_deleted, account)| {
        let call = if is_deleted { Call::Delete { post } } else { Call::Retry { post } };
        Step::Both(call, Call::Disconnect { account })
    });
    prop_oneof![
        2 => twice,
        2 => slots,
        5 => same.prop_map(|(one, other)| Step::Both(one, other)),
        1 => parting,
    ]
    .boxed()
}

/// A call that changes a post.
fn change(post: usize) -> BoxedStrategy<Call> {
    let text = proptest::option::of((fault(), any::<bool>()));
    let edit = (text, proptest::option::of(plan()), proptest::option::weighted(0.3, accounts()));
    prop_oneof![
        5 => edit.prop_map(move |(text, plan, accounts)| Call::Edit { post, text, plan, accounts }),
        2 => Just(Call::Delete { post }),
        2 => Just(Call::Retry { post }),
    ]
    .boxed()
}

fn create() -> BoxedStrategy<Draft> {
    (plan(), accounts(), fault(), any::<bool>(), proptest::option::weighted(0.3, 0..KEYS))
        .prop_map(|(plan, accounts, fault, has_reply, key)| Draft {
            plan,
            accounts,
            fault,
            has_reply,
            key,
            reply_to: None,
        })
        .boxed()
}

/// A reply, to accounts that may reply without a further review of the app.
fn reply(post: impl Strategy<Value = usize> + 'static) -> BoxedStrategy<Draft> {
    (create(), post, 1..1u8 << REPLYING)
        .prop_map(|(draft, post, accounts)| Draft {
            reply_to: Some(post),
            key: None,
            accounts: Accounts(accounts),
            ..draft
        })
        .boxed()
}

fn plan() -> BoxedStrategy<Plan> {
    // Of two, the earlier one is the simpler.
    let weights = [(4, Plan::Now), (2, Plan::Soon), (2, Plan::Far), (2, Plan::Slot), (1, Plan::Draft)];
    Union::new_weighted(weights.map(|(weight, plan)| (weight, Just(plan))).to_vec()).boxed()
}

fn accounts() -> BoxedStrategy<Accounts> {
    (1..1u8 << ACCOUNTS.len()).prop_map(Accounts).boxed()
}

fn fault() -> BoxedStrategy<Fault> {
    prop_oneof![3 => Just(Fault::None), 5 => select(Fault::ALL.to_vec())].boxed()
}
