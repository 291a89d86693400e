//! The OpenAPI document, and the validation of bodies against its schemas.

pub mod document;
mod examples;
mod responses;
pub mod tag;
pub(crate) mod unknown;
pub mod validate;
mod webhooks;
