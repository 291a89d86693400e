//! Adapters of the eleven platforms, independent of the rest of Fanfare.
//!
//! Each is a file, or a folder if it has more than one idea, written from the platform's documentation. The rest of the
//! service uses them through [`get`], as an [`Adapter`].

mod adapter;
mod auth;
pub mod authorization;
mod bluesky;
mod captions;
pub mod check;
mod checkpoint;
pub mod classify;
mod content;
mod facebook;
mod facets;
mod features;
mod fit;
mod google;
mod google_business;
mod graph;
mod instagram;
mod limits;
mod linkedin;
mod listing;
mod locate;
pub mod look_up;
pub mod oauth;
mod pinterest;
mod platform;
mod reddit;
mod reply;
mod required;
mod schema;
mod scopes;
mod secrets;
pub mod session;
mod socket;
mod storage;
#[cfg(test)]
mod table;
pub mod text;
mod threads;
mod tiktok;
mod upload;
pub mod versions;
mod x;
mod youtube;

pub use adapter::*;
pub use auth::*;
pub use checkpoint::{Checkpoint, Checkpoints};
pub use domain::{
    AccountProfile, App, AppAccess, Edit, Grant, Identity, LimitUsage, Media, MediaKind, Metrics,
    SelectOption,
};
pub use features::Missing;
pub use limits::*;
pub use platform::Platform;
pub use reply::Reply;
pub use scopes::*;
pub use session::*;

use std::time::Duration;

/// The result of a platform call: a value, or a failure whose code determines the next step.
pub type Result<T, E = domain::Failure> = std::result::Result<T, E>;

/// The platforms, in the contract's order.
static ALL: &[&Adapter] = &[
    &x::ADAPTER,
    &linkedin::ADAPTER,
    &instagram::ADAPTER,
    &tiktok::ADAPTER,
    &youtube::ADAPTER,
    &facebook::ADAPTER,
    &threads::ADAPTER,
    &bluesky::ADAPTER,
    &pinterest::ADAPTER,
    &google_business::ADAPTER,
    &reddit::ADAPTER,
];

/// The platforms' ids, in the contract's order.
pub const IDS: [&str; ALL.len()] = {
    let mut ids = [""; ALL.len()];
    let mut index = 0;
    while index < ids.len() {
        ids[index] = ALL[index].id;
        index += 1;
    }
    ids
};

/// Returns all platforms, in the contract's order.
pub fn all() -> &'static [&'static Adapter] {
    ALL
}

/// Returns the platform with this id.
pub fn get(id: &str) -> Option<&'static Adapter> {
    ALL.iter().copied().find(|platform| platform.id == id)
}

/// Returns the ids of the platforms whose grants are renewed ahead, each with their least age.
pub fn renewals() -> Vec<(&'static str, Duration)> {
    ALL.iter().filter_map(|platform| Some((platform.id, platform.auth.renewal_age()?))).collect()
}

/// Returns the display name of a platform; the id itself if there is no such platform.
pub fn display_name(id: &str) -> &str {
    get(id).map_or(id, |platform| platform.name)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    #[test]
    fn the_registry_has_the_contracts_platforms_in_its_order() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../api/openapi.json");
        let text = std::fs::read_to_string(path).expect("the contract can be read");
        let contract: Value = serde_json::from_str(&text).expect("the contract is JSON");
        let ids: Vec<_> = super::all().iter().map(|platform| platform.id).collect();
        assert_eq!(contract["components"]["schemas"]["Platform"]["enum"], serde_json::json!(ids));
    }
}
