//! What one platform alone does, and the suite for all can't ask.

mod bluesky;
mod google_business;
mod linkedin;
mod pinterest;
mod reddit;
mod tiktok;
mod youtube;

use crate::fixtures::{Actor, World};
use domain::ErrorCode;
use libtest_mimic::Trial;

/// The tests of all modules.
pub(crate) fn trials() -> Vec<Trial> {
    [
        bluesky::trials(),
        google_business::trials(),
        linkedin::trials(),
        pinterest::trials(),
        reddit::trials(),
        tiktok::trials(),
        youtube::trials(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The account on a platform.
fn actor(world: &World, platform: &str) -> Actor {
    world.named(platforms::get(platform).expect("it has an adapter"), "ada")
}

/// A refusal of the content, with this status.
const fn rejected(status: u16) -> ErrorCode {
    ErrorCode::Rejected(status)
}
