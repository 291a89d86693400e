//! Connecting an account in a browser: OAuth states, the callback, and hosted pages.

pub(crate) mod begin;
pub(crate) mod binding;
pub(crate) mod brand;
pub mod callback;
pub mod oauth_state;
pub(crate) mod pages;
pub(crate) mod policy;
pub mod redirect_uri;
