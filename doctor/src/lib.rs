//! `fanfare doctor`: walks through a platform with a real account, and compares what the platform answers with
//! what the simulator answers to the same calls.
//!
//! A [`Walk`] connects an account, publishes a post that as few people as possible can see, looks it up as after a
//! lost response, reads its figures and deletes it. The doctor walks twice: on the platform, and on a simulator
//! that it starts itself ([`Simulator`]). Of each reply it keeps the status and the [`Shape`] of the body: names and
//! types, no values, so that neither a report nor a [`Recording`] can hold a token or a text.
//!
//! A recording in `doctor/recordings` is a test from then on: [`Recording::compare`] walks the simulator again and
//! returns where it differs from the platform.

mod report;
mod shape;
mod simulator;
mod trial;
mod walk;

pub use report::{Difference, Recording, compare, print};
pub use shape::Shape;
pub use simulator::Simulator;
pub use trial::{Attachment, Trial, medium};
pub use walk::{Call, Login, LoginKind, Outcome, Step, StepName, Visit, Walk};
