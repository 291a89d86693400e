//! What happens: steps of the product, and what is around it.

use strum::VariantNames;

/// A platform's answer to a publishing call, as the attempt gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// The post's id.
    Live,
    /// None, or one that says nothing about the post.
    Ambiguous,
    /// A refusal: nothing was published.
    Refused,
}

/// A step of the product. The first number is that of the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, VariantNames)]
pub enum Transition {
    /// An attempt begins, for a version of the post.
    Begin(usize, u8),
    /// A look-up reads the platform; false when the platform can't tell.
    Locate(usize, bool),
    /// The id that a look-up found is stored.
    Adopt(usize),
    /// The intent of a call that published nothing is cleared.
    ClearIntent(usize),
    /// The intent is written.
    Intend(usize),
    /// The call is sent.
    Commit(usize),
    /// The id in the answer is stored.
    Capture(usize),
    /// It is stored that the call ended without a definite answer.
    RecordAmbiguous(usize),
    /// The intent of a refused call is cleared; true when the refusal is permanent.
    VoidIntent(usize, bool),
    /// A failure is stored, and another attempt follows.
    RecordFailure(usize),
    /// It is too early to tell; a wait is stored, and another attempt follows.
    Wait(usize),
    /// The target ends, or its main container is live, by the attempt that holds it.
    Settle(usize),
    /// The thread is complete.
    MarkComplete(usize),
    /// The target ends outside an attempt: its budget is spent, its grant lost, or an operator stopped it.
    SettleOutside,
    /// A workflow is started for a target that has none: its time has come within the scheduling horizon, or its
    /// workflow is lost.
    Sweep,
    /// The post is edited.
    Edit,
    /// The post is deleted.
    Delete,
    /// The account is disconnected.
    Disconnect,
    /// The database is restored from the backup, and open targets are marked for a look-up.
    Restored,
    /// A user retries a target that is dead or misses its reply: it has a new budget, and keeps an open intent.
    Revive,
    /// A user changes the text of a reply that is missing.
    Rewrite,
    /// An operator freezes the target's platform, account or organization: only look-ups begin.
    Freeze,
    /// An operator releases it.
    Release,
    /// An operator stops the target: what was begun is looked up, and nothing more is published.
    Stop,
    /// The account is connected again for the same end tenant.
    Connect,
    /// The deletion of live posts from their platform begins: the target is held meanwhile.
    Withdraw,
    /// They could not be deleted: the target is released unless another deletion has no result.
    ReleaseWithdrawn,
    /// They were deleted, and what was to follow is given up.
    RecordUnpublished,
}

/// Something that happens around the product. The number is that of an attempt or a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// An answer reaches an attempt.
    Answer(usize, Answer),
    /// An attempt stops: its worker is killed, or its result is lost.
    Crash(usize),
    /// A call publishes.
    Publish(u8),
    /// A call is lost on its way.
    Lose(u8),
    /// Reads show a post.
    Show(u8),
    /// Time passes for a call.
    Pass(u8),
    /// A deletion's worker stops, or its platform does not answer.
    LoseDeletion,
    /// The hold of a target ends whose posts were to be deleted.
    PassLease,
    /// Temporal loses its data.
    EmptyTemporal,
    /// Postgres is backed up.
    Backup,
}

/// A step of the product, or something that happens around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A step of the product.
    Product(Transition),
    /// Something that happens around it.
    Around(Event),
}

impl From<Transition> for Action {
    fn from(transition: Transition) -> Self {
        Self::Product(transition)
    }
}

impl From<Event> for Action {
    fn from(event: Event) -> Self {
        Self::Around(event)
    }
}
