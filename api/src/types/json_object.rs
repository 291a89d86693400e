//! JSON objects whose members the API does not define.

use serde_json::Value;
use std::collections::BTreeMap;

/// A JSON object with any members.
pub type JsonObject = BTreeMap<String, Value>;

/// The members of a JSON object; none for any other value.
pub(crate) fn json_object(value: Value) -> JsonObject {
    match value {
        Value::Object(members) => members.into_iter().collect(),
        _ => JsonObject::new(),
    }
}
