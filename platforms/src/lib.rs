//! The eleven platforms and nothing else about Fanfare.
//!
//! Each is one file, written from the platform's own documentation. The rest of the service reaches
//! them through [`get`], as an [`Adapter`].

mod adapter;
mod auth;
pub mod authorization;
pub mod check;
pub mod classify;
mod facets;
mod google;
mod graph;
mod limits;
mod listing;
pub mod oauth;
mod schema;
pub mod session;
mod socket;
mod storage;
#[cfg(test)]
mod table;
pub mod text;
mod upload;

pub use adapter::*;
pub use auth::*;
pub use domain::App;
pub use limits::*;
pub use session::*;

/// Registers the modules: each is named after its platform's id and has a static `ADAPTER`.
macro_rules! adapters {
    ($($id:ident),+ $(,)?) => {
        $(mod $id;)+
        static ALL: &[&Adapter] = &[$(&$id::ADAPTER),+];

        /// The platforms' ids, in the contract's order.
        pub const IDS: [&str; [$(stringify!($id)),+].len()] = [$(stringify!($id)),+];
    };
}

adapters! {
    x,
    linkedin,
    instagram,
    tiktok,
    youtube,
    facebook,
    threads,
    bluesky,
    pinterest,
    google_business,
    reddit,
}

/// Every platform, in the contract's order.
pub fn all() -> &'static [&'static Adapter] {
    ALL
}

/// The platform with this id.
pub fn get(id: &str) -> Option<&'static Adapter> {
    ALL.iter().copied().find(|platform| platform.id == id)
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
        assert_eq!(super::IDS.as_slice(), ids);
    }
}
