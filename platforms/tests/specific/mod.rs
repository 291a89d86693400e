//! Tests of features that only one platform has.

mod bluesky;
mod facebook;
mod google_business;
mod instagram;
mod linkedin;
mod pinterest;
mod reddit;
mod threads;
mod tiktok;
mod x;
mod youtube;

use crate::fixtures::{Actor, World};
use domain::ErrorCode;
use libtest_mimic::Trial;

/// Returns the tests of all modules.
pub(crate) fn trials() -> Vec<Trial> {
    [
        bluesky::trials(),
        facebook::trials(),
        google_business::trials(),
        instagram::trials(),
        linkedin::trials(),
        pinterest::trials(),
        reddit::trials(),
        threads::trials(),
        tiktok::trials(),
        x::trials(),
        youtube::trials(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the account `ada` on a platform.
fn actor(world: &World, platform: &str) -> Actor {
    world.named(platforms::get(platform).expect("it has an adapter"), "ada")
}

/// Returns the error code of content rejected with this status.
const fn rejected(status: u16) -> ErrorCode {
    ErrorCode::Rejected(status)
}

/// Returns the markup of a note in the sandbox's list of what arrived, which begins with a text.
fn arrived(note: &str) -> String {
    format!("<p class=\"soft\" dir=\"auto\">{note}")
}
