//! Integration test harness: each test has a world of its own.
//!
//! A [`World`] is an organization of the real program, which runs against a real Postgres, a real Temporal
//! server and the sandbox; a [`Receiver`] is a real listener for webhooks. The worlds of a run share a database
//! server, Temporal and a service process, which end with the run. A world that sets a variable or stops a
//! process has a process, database, sandbox and task queues of its own. Tests wait for events and never sleep.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a test harness has a clock and an HTTP client of its own, and fails loudly"
)]

pub mod browser;
pub mod cluster;
pub mod deploy;
pub mod installed;
mod leftovers;
pub mod login;
pub mod meter;
mod metrics;
pub mod mutants;
pub mod network;
pub mod packages;
pub mod parts;
mod pds;
pub mod photos;
mod pointers;
pub mod proof;
mod receiver;
mod runtime;
pub mod samples;
mod service;
mod shared;
mod tools;
mod wait;
mod world;
mod yaml;

pub use metrics::Samples;
pub use pds::{Pds, PdsAccount};
pub use pointers::pointers;
pub use receiver::{Delivery, Receiver};
pub use runtime::{outlive, serve};
pub use service::unlimited;
pub use shared::{
    Servers, Shared, database, database_url, directory, durable, shared, sql, temporal, temporal_client,
};
pub use tools::{node, program, skip};
pub use wait::{if_right, wait_until, wait_within};
pub use world::{Hold, SandboxAccount, World, WorldBuilder};
pub use yaml::yaml;

use std::time::Duration;

/// Time limit for each wait, generous enough for a slow machine. No test measures against it.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Limits of the sandbox that are below the load of a test, on X, Bluesky and Threads.
const LIMITS: [&str; 18] = [
    "x.posts",
    "x.timeline",
    "x.lookup",
    "x.uploads",
    "x.status",
    "x.initializes",
    "x.appends",
    "x.finalizes",
    "x.metadata",
    "x.me",
    "bluesky.requests",
    "bluesky.points_hour",
    "bluesky.points_day",
    "bluesky.blobs_day",
    "threads.posts",
    "threads.replies",
    "threads.calls",
    "threads.searches",
];

/// Returns settings of the sandbox that lift these limits.
pub fn lifted_limits() -> serde_json::Value {
    LIMITS
        .iter()
        .map(|name| ((*name).to_owned(), 1_000_000_000.into()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Returns a time that no test reaches, within the scheduling horizon: a post of this time has a workflow that waits.
pub fn soon() -> String {
    let soon = now() + chrono::TimeDelta::hours(12);
    soon.format("%Y-%m-%dT%H:%M:%S.000Z").to_string()
}

/// Returns the current time.
pub fn now() -> chrono::DateTime<chrono::Utc> {
    chrono::Utc::now()
}
