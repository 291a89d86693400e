//! Hostile input: whatever a client or a platform sends, the service refuses or accepts it in order.
//!
//! - `requests`: every operation with foreign, malformed and huge parameters and bodies;
//! - `tokens`: forged, truncated and swapped cursors, states, passes, sessions, keys and links;
//! - `secrets`: planted secrets, in everything that the service shows, stores or logs.
//!
//! Answers of platforms are changed in the behavior suite (`platforms/tests/mutations`), bodies of 1 MiB are sent
//! in `tests/it/hostile.rs`.

pub(crate) mod client;
pub(crate) mod document;
mod requests;
mod secrets;
pub(crate) mod tenants;
mod tokens;

use crate::PROGRAM;
use tests::{World, WorldBuilder, proof::is_full};

/// Returns the settings of a world.
fn world() -> WorldBuilder {
    World::of(&PROGRAM)
}

/// Returns the seed of the run, which is printed and can be given. The short form has a fixed one: CI is to fail for
/// a change, not for a draw.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("FANFARE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| if is_full() { rand::random() } else { 14 });
    println!("FANFARE_SEED={seed}");
    seed
}
