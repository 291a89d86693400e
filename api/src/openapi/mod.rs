//! The OpenAPI document, and the validation of bodies against its schemas.

pub mod document;
mod examples;
mod responses;
pub mod tag;
pub(crate) mod unknown;
pub mod validate;
mod webhooks;

use serde_json::{Map, Value};

/// Returns all operations of a document, to be changed.
pub(crate) fn operations_mut(document: &mut Value) -> impl Iterator<Item = &mut Value> {
    let paths = document["paths"].as_object_mut().expect("the document has paths");
    paths.values_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut)
}
