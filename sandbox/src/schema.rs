//! A subset of JSON Schema for the platforms' own descriptions.
//!
//! Types, required and unknown members, enumerations, lengths and ranges. `digits` is the pattern of numeric
//! ids, the only pattern in use. The first issue is returned, in the wording of X's validator: `$.media: null
//! found, object expected`.
//!
//! By hand, because that wording and the order in which a platform looks are what is simulated, and each constraint is a
//! rule with a key, which the tests break one by one. A crate for JSON Schema has its own words and order.

use super::exchange::Cause;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// A violation of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Issue {
    /// Path of the member, for example `media.media_ids`; empty for the value itself.
    pub(crate) member: String,
    /// Value of the member, as text.
    pub(crate) value: String,
    /// Message.
    pub(crate) message: String,
    /// Cause: a rule about content, if it is a constraint on a value.
    pub(crate) cause: Cause,
}

/// Constraints of a schema on a value.
const CONSTRAINTS: [&str; 8] =
    ["enum", "minItems", "maxItems", "digits", "minLength", "maxLength", "minimum", "maximum"];

fn key(constraint: &str, at: &str) -> String {
    format!("{constraint} {at}")
}

/// Adds the keys of a schema's rules about content to `rules`.
pub(crate) fn rules(schema: &Value, at: &str, rules: &mut BTreeSet<String>) {
    rules.extend(CONSTRAINTS.iter().filter(|name| schema.get(name).is_some()).map(|name| key(name, at)));
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let inner = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        self::rules(schema, &inner, rules);
    }
    if let Some(items) = schema.get("items") {
        self::rules(items, at, rules);
    }
}

/// # Errors
///
/// The first issue.
pub(crate) fn check(schema: &Value, value: &Value) -> Result<(), Issue> {
    walk(schema, value, "")
}

fn walk(schema: &Value, value: &Value, at: &str) -> Result<(), Issue> {
    let fail = |cause: Cause, message: String| {
        let place = if at.is_empty() { "$".to_owned() } else { format!("$.{at}") };
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Err(Issue { member: at.to_owned(), value, message: format!("{place}: {message}"), cause })
    };
    let rule = |constraint: &str| Cause::Schema(key(constraint, at));
    let expected = schema["type"].as_str().unwrap_or("object");
    let found = kind(value);
    if found != expected && !(expected == "number" && found == "integer") {
        return fail(Cause::Protocol, format!("{found} found, {expected} expected"));
    }
    if let Some(words) = schema["enum"].as_array().filter(|words| !words.contains(value)) {
        let words: Vec<_> = words.iter().filter_map(Value::as_str).collect();
        return fail(
            rule("enum"),
            format!("does not have a value in the enumeration [{}]", words.join(", ")),
        );
    }
    match value {
        Value::Object(members) => return object(schema, members, at, fail),
        Value::Array(items) => {
            let limit = |name: &str| schema[name].as_u64();
            if limit("minItems").is_some_and(|least| (items.len() as u64) < least) {
                return fail(
                    rule("minItems"),
                    format!("there must be a minimum of {} items in the array", schema["minItems"]),
                );
            }
            if limit("maxItems").is_some_and(|max| items.len() as u64 > max) {
                return fail(
                    rule("maxItems"),
                    format!("there must be a maximum of {} items in the array", schema["maxItems"]),
                );
            }
            for item in items {
                walk(&schema["items"], item, at)?;
            }
        }
        Value::String(text) => {
            let length = text.chars().count() as u64;
            if schema["digits"] == true
                && !(1..=19).contains(&text.len()) | !text.bytes().all(|b| b.is_ascii_digit())
            {
                return fail(rule("digits"), "does not match the regex pattern ^[0-9]{1,19}$".into());
            }
            if schema["minLength"].as_u64().is_some_and(|least| length < least) {
                return fail(
                    rule("minLength"),
                    format!("must be at least {} characters long", schema["minLength"]),
                );
            }
            if schema["maxLength"].as_u64().is_some_and(|max| length > max) {
                return fail(
                    rule("maxLength"),
                    format!("may only be {} characters long", schema["maxLength"]),
                );
            }
        }
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or(i64::MAX);
            if schema["minimum"].as_i64().is_some_and(|least| number < least) {
                return fail(rule("minimum"), format!("must have a minimum value of {}", schema["minimum"]));
            }
            if schema["maximum"].as_i64().is_some_and(|max| number > max) {
                return fail(rule("maximum"), format!("must have a maximum value of {}", schema["maximum"]));
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
    Ok(())
}

fn object(
    schema: &Value,
    members: &Map<String, Value>,
    at: &str,
    fail: impl Fn(Cause, String) -> Result<(), Issue>,
) -> Result<(), Issue> {
    for (name, value) in members {
        let inner = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        match schema["properties"].get(name) {
            Some(schema) => walk(schema, value, &inner)?,
            None if schema["additionalProperties"] == true => {}
            None => {
                return Err(Issue {
                    member: inner.clone(),
                    value: value.to_string(),
                    cause: Cause::Protocol,
                    message: format!(
                        "$.{inner}: is not defined in the schema and the schema does not allow additional properties"
                    ),
                });
            }
        }
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            return fail(Cause::Protocol, format!("{name}: is missing but it is required"));
        }
    }
    Ok(())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
