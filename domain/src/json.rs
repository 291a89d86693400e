//! JSON values in messages.

use serde_json::Value;

/// Returns the name that JSON Schema gives a value's type. A number is `number`, also a whole one.
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
