//! What every request goes through: authentication, limits, bodies, pages of a list, and errors.

pub(crate) mod admission;
pub mod body;
pub(crate) mod body_timeout;
pub mod caller;
pub mod error_middleware;
pub mod outbound_url;
pub mod page;
pub mod problem;
pub mod query;
pub mod rate_limits;
