//! Metadata: the caller's own data on a resource, as texts by key.

use crate::{
    http::problem::{Issue, MAX_ISSUES, Segment},
    types::scalar::scalar,
};
use poem_openapi::registry::{MetaSchema, MetaSchemaRef};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Maximum number of keys.
pub(crate) const MAX_KEYS: usize = 50;
/// Maximum length of a key, in characters.
const MAX_KEY_LENGTH: usize = 40;
/// Maximum length of a value, in characters.
const MAX_VALUE_LENGTH: usize = 500;

/// Metadata of a resource, and of a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata(pub BTreeMap<String, String>);

/// Changes of metadata: a text sets its key, null removes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes(pub BTreeMap<String, Option<String>>);

impl Changes {
    /// Returns the metadata after these changes.
    pub(crate) fn apply(self, mut before: BTreeMap<String, String>) -> BTreeMap<String, String> {
        for (key, value) in self.0 {
            match value {
                Some(value) => before.insert(key, value),
                None => before.remove(&key),
            };
        }
        before
    }
}

/// Reports invalid keys, which a schema of OpenAPI 3.0 can't describe.
pub(crate) fn check(body: &Map<String, Value>, member: &str, issues: &mut Vec<Issue>) {
    let keys = body.get(member).and_then(Value::as_object).into_iter().flat_map(Map::keys);
    for key in keys.filter(|key| !is_key(key)).take(MAX_ISSUES) {
        let message = format!("A key has 1 to {MAX_KEY_LENGTH} of the characters A-Z, a-z, 0-9, _, . and -");
        issues.push(Issue::custom([Segment::from(member), key.as_str().into()], message));
    }
}

fn is_key(key: &str) -> bool {
    (1..=MAX_KEY_LENGTH).contains(&key.len())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// The schema, with or without null as a value.
fn schema(is_nullable: bool) -> MetaSchemaRef {
    let value =
        MetaSchema { max_length: Some(MAX_VALUE_LENGTH), nullable: is_nullable, ..MetaSchema::new("string") };
    MetaSchemaRef::Inline(Box::new(MetaSchema {
        additional_properties: Some(Box::new(MetaSchemaRef::Inline(Box::new(value)))),
        max_properties: Some(MAX_KEYS),
        ..MetaSchema::new("object")
    }))
}

/// Converts an object, value by value.
fn parse<T>(value: Value, read: fn(Value) -> Result<T, Value>) -> Result<BTreeMap<String, T>, Value> {
    match value {
        Value::Object(object) => object.into_iter().map(|(key, value)| Ok((key, read(value)?))).collect(),
        value => Err(value),
    }
}

scalar! {
    [] Metadata {
        name: "Metadata",
        schema: schema(false),
        parse: |value| {
            let read = |value| match value {
                Value::String(text) => Ok(text),
                value => Err(value),
            };
            parse(value, read).map(Self)
        },
        write: |metadata| serde_json::json!(metadata.0),
    }
}

scalar! {
    [] Changes {
        name: "MetadataChanges",
        schema: schema(true),
        parse: |value| {
            let read = |value| match value {
                Value::String(text) => Ok(Some(text)),
                Value::Null => Ok(None),
                value => Err(value),
            };
            parse(value, read).map(Self)
        },
        write: |changes| serde_json::json!(changes.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn changes_merge_key_by_key() {
        let before = BTreeMap::from([("a", "1"), ("b", "2")].map(|(key, value)| (key.into(), value.into())));
        for (changes, after) in [
            (json!({}), json!({ "a": "1", "b": "2" })),
            (json!({ "a": "3", "c": "" }), json!({ "a": "3", "b": "2", "c": "" })),
            (json!({ "a": null, "d": null }), json!({ "b": "2" })),
        ] {
            let Ok(changes) = <Changes as poem_openapi::types::ParseFromJSON>::parse_from_json(Some(changes))
            else {
                panic!("they are changes")
            };
            assert_eq!(json!(changes.apply(before.clone())), after);
        }
    }

    #[test]
    fn a_key_is_short_and_plain() {
        for (key, is_valid) in [
            ("a", true),
            ("Order.id_7-b", true),
            (&*"k".repeat(40), true),
            (&*"k".repeat(41), false),
            ("", false),
            ("a b", false),
            ("é", false),
            ("a[b]", false),
        ] {
            let (body, mut issues) = (json!({ "metadata": { key: "v" } }), Vec::new());
            check(body.as_object().unwrap(), "metadata", &mut issues);
            assert_eq!(issues.is_empty(), is_valid, "{key}");
            if let [issue] = &issues[..] {
                assert_eq!(issue.path, ["metadata".into(), Segment::from(key)]);
            }
        }
    }
}
