//! HTTP infrastructure of all resources: authentication, limits, bodies, pagination and errors.

pub mod admission;
pub mod body;
pub(crate) mod body_timeout;
pub mod browser;
pub mod caller;
pub(crate) mod cors;
pub mod error_middleware;
pub mod headers;
pub mod outbound_url;
pub mod page;
pub(crate) mod plan;
pub mod probes;
pub mod problem;
pub mod query;
pub mod rate_limits;
pub mod reach;
pub mod request_id;
pub mod request_log;
pub mod workers;
