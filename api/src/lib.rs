//! HTTP in: what clients call, and the document that describes it.
//!
//! One file per resource holds its wire types, its operations and the functions that they share with
//! whatever else calls them. This crate writes down what is to be done and reads what came of it; it
//! makes no outgoing request and opens no sealed secret. The relay carries what was written to Temporal.

pub mod accounts;
pub mod app;
pub mod ask;
pub mod connect;
pub mod dashboard;
pub mod http;
pub mod keys;
pub mod mcp;
pub mod media;
pub mod networks;
pub mod openapi;
mod operations;
pub mod plans;
pub mod posts;
pub mod profiles;
pub mod relay;
mod router;
pub mod slots;
pub mod sweeper;
pub mod team;
pub mod types;
pub mod usage;
pub mod webhooks;

pub use app::{App, Config, Opened};
pub use operations::document;
pub use router::endpoint;
