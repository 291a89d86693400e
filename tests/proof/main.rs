//! Proof that nothing is lost and nothing is published twice.
//!
//! The parts run for minutes, so `cargo test` leaves them out: `just proof` runs them in full and writes
//! `docs/PROOF.md`, CI runs the short form.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test has a clock of its own and fails by panicking"
)]

extern crate fanfare_tests as tests;

mod awaits;
mod costs;
mod crashes;
mod deploys;
mod faults;
mod hostile;
mod isolation;
mod lifecycle;
mod load;
mod machine;
mod model;
mod parts;
mod real;
mod soak;
mod stack;
mod surface;

use std::sync::LazyLock;

/// The program under test.
static PROGRAM: LazyLock<&'static str> = LazyLock::new(|| env!("CARGO_BIN_EXE_fanfare-under-test"));
