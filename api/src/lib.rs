//! The HTTP interface: the API, its OpenAPI document, the MCP endpoint and the pages on which accounts are connected.
//!
//! One module per resource holds its wire types, its operations and the functions that the MCP tools and the pages of
//! crate `dashboard` call too. This crate stores what is to be done and reads the results; it makes no outgoing
//! request and cannot decrypt secrets. Modules import downwards only: see `tests/it/walls.rs`.

pub mod accounts;
pub mod app;
pub mod audit;
pub mod branding;
pub mod client_tokens;
pub mod connect;
pub mod events;
pub mod http;
mod icons;
pub mod keys;
pub mod mcp;
pub mod media;
pub mod networks;
pub mod openapi;
mod operations;
mod operator_token;
pub mod plans;
pub mod posts;
pub mod profiles;
pub mod requests;
mod router;
pub mod seal;
pub mod slots;
pub mod team;
pub mod types;
pub mod usage;
pub mod webhooks;

pub use app::{AllowedRanges, App, Config};
pub use operations::document;
pub use operator_token::OperatorToken;
pub use router::endpoint;
