//! Models of the publishing protocol, each small enough to explore every interleaving of it.
//!
//! [`Protocol`] is one target with a main container and a reply. Two attempts may run at once, in any two processes, and
//! any of them may stop at any step: a killed worker, a lost workflow, a Temporal without data and an operator's reset
//! all look like that to the row. A publishing call may reach the platform until its deadline and a little
//! longer, also after the attempt that made it has stopped: clocks differ, within bounds. A published post may be
//! invisible to reads for the read lag after that. Postgres may be restored from an earlier backup.
//!
//! The others leave the interleavings of one target's attempts to it, and have one subject each: what a target waits for,
//! for how long, and what that costs of its budget ([`Waits`]); posts with the same text ([`Claims`]); a reply while the
//! post above is deleted ([`Replies`]); edits of a live post ([`Edits`]); the rows of an account and the keys that reach
//! them ([`Tenants`]); and what is written to the outbox ([`Messages`]). Those that are about ends keep their graph, in
//! which no way may be endless (`graph`).
//!
//! A [`Transition`] is one step of the product, written in one transaction or made by one call, and is named in a
//! comment `Model: …` at the function that makes it; [`transitions`] returns the names of all models. An [`Event`] is
//! anything that happens around the product. `tests/proof/model.rs` explores the states, and compares the names.
//!
//! The functions of [`domain::publishing`] that decide whether an attempt begins, how long a target waits and how it
//! ends, and [`domain::Bound`], which decides what a key reaches, are those that the product calls. The other
//! transitions are statements of SQL or code with I/O, and are described here a second time.

mod check;
mod claims;
mod edits;
mod graph;
mod messages;
mod protocol;
mod replies;
mod tenants;
mod waits;

pub use claims::{ClaimAction, ClaimFlaw, ClaimInvariant, ClaimState, Claims};
pub use edits::{EditFlaw, EditInvariant, Edits};
pub use graph::{Broken, Explored, Progress};
pub use messages::{MessageFlaw, MessageInvariant, Messages};
pub use protocol::{Action, Event, Flaw, Invariant, Protocol, State, Transition};
pub use replies::{Replies, ReplyFlaw, ReplyInvariant};
pub use tenants::{TenantFlaw, TenantInvariant, Tenants};
pub use waits::{WaitFlaw, WaitInvariant, Waits, Will};

use strum::VariantNames;

/// Returns the names of all transitions of the product that one of the models makes, in order.
pub fn transitions() -> Vec<&'static str> {
    let others =
        [&waits::TRANSITIONS[..], &edits::TRANSITIONS, &tenants::TRANSITIONS, &messages::TRANSITIONS];
    let mut names: Vec<_> =
        Transition::VARIANTS.iter().chain(others.into_iter().flatten()).copied().collect();
    names.sort_unstable();
    names.dedup();
    names
}
