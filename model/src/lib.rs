//! A model of the publishing protocol, small enough to explore every interleaving.
//!
//! One target with a main container and a reply. Two attempts may run at once, in any two processes, and any of
//! them may stop at any step: a killed worker, a lost workflow, a Temporal without data and an operator's reset
//! all look like that to the row. A publishing call may reach the platform until its deadline and a little
//! longer, also after the attempt that made it has stopped: clocks differ, within bounds. A published post may be
//! invisible to reads for the read lag after that. Postgres may be restored from an earlier backup.
//!
//! A [`Transition`] is one step of the product, written in one transaction or made by one call, and is named in a
//! comment `Model: …` at the function that makes it. An [`Event`] is anything that happens around the product.
//! `tests/proof/model.rs` explores the states, and compares the names.
//!
//! Whether an attempt begins and how a target ends is decided by [`domain::publishing`], whose functions the product
//! calls, too. The other transitions are statements of SQL, and are described here a second time.
//!
//! Left out, because they decide when an attempt begins and not whether it may: waits, the budget, processing
//! before the publishing call. Several targets with the same text have a model of their own, [`Claims`].

mod claims;
mod protocol;

pub use claims::{ClaimAction, ClaimFlaw, ClaimInvariant, ClaimState, Claims};
pub use protocol::{Action, Event, Flaw, Invariant, Protocol, State, Transition};
