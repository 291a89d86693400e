//! A platform as a session sees it.
//!
//! A session has to know a few things of the platform that it calls: its name, its OAuth, and the meaning of its refusals.
//! It knows no more, so that an adapter, which makes its calls through a session, can depend on it.

use crate::{auth::OAuth2, reply::Reply};
use domain::Failure;

/// The platform of a session; implemented by [`crate::Adapter`].
pub trait Platform: Send + Sync {
    /// Returns the contract's identifier, for example `google_business`.
    fn id(&self) -> &'static str;

    /// Returns the platform's own name, for messages to people.
    fn name(&self) -> &'static str;

    /// Returns the platform's OAuth; `None` if accounts are connected with an app password.
    fn oauth(&self) -> Option<&OAuth2>;

    /// Reads a failure from a reply, as [`crate::Publisher::classify`] does.
    fn classify(&self, reply: &Reply) -> Option<Failure>;

    /// True if a reply's body refuses the call for certain, as [`crate::Publisher::is_definite`] says.
    fn is_definite(&self, reply: &Reply) -> bool;
}
