//! JSON values in messages.

use serde_json::Value;

/// Returns the name that JSON Schema gives a value's type. Integers are `number` as well.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
