//! The service from outside: a world of its own for each test.
//!
//! A [`World`] is an organization of the real program, which runs against a real Postgres, a real Temporal
//! server and the sandbox; a [`Receiver`] is a real listener for webhooks. All that a run shares ends with it:
//! the database server, Temporal, and the process that serves the worlds which change nothing about it. A
//! world that sets a variable, or stops a process, has process, database, sandbox and task queues of its own.
//! Nothing sleeps: tests wait for the event that they are about.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a test harness has a clock and an HTTP client of its own, and fails loudly"
)]

mod leftovers;
mod receiver;
mod runtime;
pub mod samples;
mod service;
mod shared;
mod wait;
mod world;

pub use receiver::{Delivery, Receiver};
pub use runtime::serve;
pub use service::unlimited;
pub use shared::{Shared, database, database_url, directory, durable, shared, sql, temporal};
pub use wait::{if_right, wait_until, wait_within};
pub use world::{Hold, SandboxAccount, World, WorldBuilder};

use std::time::Duration;

/// How long anything that is waited for may take on a slow machine before a test fails. Nothing is
/// measured by it.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// The time.
pub fn now() -> chrono::DateTime<chrono::Utc> {
    chrono::Utc::now()
}
