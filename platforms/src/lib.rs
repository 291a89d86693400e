//! The eleven platforms and nothing else about Fanfare.
//!
//! Each is one file, written from the platform's own documentation. The rest of the service reaches
//! them through [`get`] and the traits of [`platform`].

pub mod authorization;
pub mod check;
pub mod classify;
mod facets;
mod google;
mod graph;
pub mod oauth;
pub mod platform;
pub mod session;
mod socket;
#[cfg(test)]
mod table;
pub mod text;

pub use domain::{App, Grant, Identity};
pub use platform::*;
pub use session::*;

macro_rules! platforms {
    ($($module:ident::$platform:ident),+ $(,)?) => {
        $(mod $module;)+
        static ALL: &[&dyn Platform] = &[$(&$module::$platform),+];
    };
}

platforms! {
    bluesky::Bluesky,
    facebook::Facebook,
    google_business::GoogleBusiness,
    instagram::Instagram,
    linkedin::LinkedIn,
    pinterest::Pinterest,
    reddit::Reddit,
    threads::Threads,
    tiktok::TikTok,
    x::X,
    youtube::YouTube,
}

/// The identifiers of the contract, in its order.
pub const IDS: [&str; 11] = [
    "x",
    "linkedin",
    "instagram",
    "tiktok",
    "youtube",
    "facebook",
    "threads",
    "bluesky",
    "pinterest",
    "google_business",
    "reddit",
];

/// Every platform with an adapter.
pub fn all() -> &'static [&'static dyn Platform] {
    ALL
}

/// The platform with this identifier.
pub fn get(id: &str) -> Option<&'static dyn Platform> {
    ALL.iter().copied().find(|platform| platform.id() == id)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_platform_of_the_contract_has_its_adapter() {
        let mut adapters: Vec<_> = super::all().iter().map(|platform| platform.id()).collect();
        let mut ids = super::IDS;
        adapters.sort_unstable();
        ids.sort_unstable();
        assert_eq!(adapters, ids);
    }
}
