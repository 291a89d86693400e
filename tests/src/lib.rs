//! The service from outside: a world of its own for each test.
//!
//! A [`World`] is the real program in a process of its own, against a real Postgres, a real Temporal
//! server and the sandbox, on ports of its own; a [`Receiver`] is a real listener for webhooks. The
//! database server and Temporal are shared by a run and die with it; each world has its own database,
//! organization and task queues. Nothing sleeps: tests wait for the event that they are about.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a test harness has a clock and an HTTP client of its own, and fails loudly"
)]

mod receiver;
pub mod samples;
mod shared;
mod world;

pub use receiver::{Delivery, Receiver};
pub use shared::{Shared, database, directory, shared, sql, temporal};
pub use world::{World, WorldBuilder, unlimited};

use std::time::Duration;

/// How long anything that is waited for may take on a slow machine before a test fails. Nothing is
/// measured by it.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The time.
pub fn now() -> chrono::DateTime<chrono::Utc> {
    chrono::Utc::now()
}
