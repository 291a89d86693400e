//! The schemas of the platforms' settings, and the part of JSON Schema that they use.
//!
//! A general validator would be larger than this and could not word its messages for a post's author.
//! <https://json-schema.org/draft/2020-12/json-schema-validation>

use crate::{Adapter, text::clip};
use regex::Regex;
use serde_json::{Value, json};
use std::{collections::HashMap, sync::LazyLock};

/// Maximum number of items of a list whose schema has no `maxItems`.
const DEFAULT_MAX_ITEMS: u64 = 500;
/// Maximum length, in characters, of a text whose schema has no `maxLength`.
const DEFAULT_MAX_LENGTH: u64 = 10_000;
/// Maximum length, in characters, of a value that a message repeats.
const MAX_QUOTED_CHARACTERS: usize = 100;

/// A platform's schema with its compiled patterns.
pub(crate) struct Schema {
    document: Value,
    patterns: HashMap<String, Regex>,
}

/// A value that does not match the schema.
pub(crate) struct Mismatch {
    /// Where the value is.
    pub(crate) path: Vec<Value>,
    /// What is wrong; the subject is the platform.
    pub(crate) message: String,
}

impl Schema {
    /// The schema of a platform's `config` block.
    pub(crate) fn of(platform: &Adapter) -> &'static Self {
        static ALL: LazyLock<HashMap<&str, Schema>> = LazyLock::new(|| {
            let schemas =
                crate::all().iter().map(|platform| (platform.id, Schema::new((platform.settings)())));
            schemas.collect()
        });
        ALL.get(platform.id).expect("every platform is listed")
    }

    fn new(mut document: Value) -> Self {
        bound(&mut document);
        let mut patterns = HashMap::new();
        compile(&document, &mut patterns);
        Self { document, patterns }
    }

    /// The schema as JSON.
    pub(crate) fn document(&self) -> &Value {
        &self.document
    }

    /// Compares a value at `path` with the schema, and returns at most `max` mismatches.
    pub(crate) fn validate(&self, value: &Value, path: &[Value], max: usize) -> Vec<Mismatch> {
        let mut found = Vec::new();
        self.compare(&mut found, max, &self.document, value, path);
        found
    }

    fn compare(&self, found: &mut Vec<Mismatch>, max: usize, schema: &Value, value: &Value, path: &[Value]) {
        if found.len() >= max {
            return;
        }
        let last = path.last();
        let name =
            last.map_or_else(String::new, |last| last.as_str().map_or(last.to_string(), str::to_owned));
        let mut wrong = |message: String| found.push(Mismatch { path: path.to_vec(), message });
        if let Some(expected) = schema["type"].as_str()
            && !is_type(value, expected)
        {
            return wrong(format!("takes {name} as {expected}, and it is {}", type_of(value)));
        }
        if let Some(options) = schema["enum"].as_array()
            && !options.contains(value)
        {
            let options: Vec<_> = options.iter().map(Value::to_string).collect();
            return wrong(format!(
                "takes {name} as one of {}, and it is {}",
                options.join(", "),
                quote(value)
            ));
        }
        let (size, unit) = match value {
            Value::String(text) => (text.chars().count(), "Length"),
            Value::Array(items) => (items.len(), "Items"),
            _ => (0, ""),
        };
        if !unit.is_empty() {
            if let Some(max) = schema[format!("max{unit}")].as_u64().filter(|max| size as u64 > *max) {
                // An over-long value is not examined further.
                return wrong(format!("takes {name} with at most {max}, and it has {size}"));
            }
            if let Some(min) = schema[format!("min{unit}")].as_u64().filter(|min| (size as u64) < *min) {
                wrong(format!("takes {name} with at least {min}, and it has {size}"));
            }
        }
        if let Some(number) = value.as_f64() {
            if let Some(max) = schema["maximum"].as_f64().filter(|max| number > *max) {
                wrong(format!("takes {name} up to {max}, and it is {number}"));
            }
            if let Some(min) = schema["minimum"].as_f64().filter(|min| number < *min) {
                wrong(format!("takes {name} from {min}, and it is {number}"));
            }
        }
        if let (Some(pattern), Some(text)) = (schema["pattern"].as_str(), value.as_str())
            && !self.patterns.get(pattern).is_some_and(|pattern| pattern.is_match(text))
        {
            wrong(format!("takes {name} in the form {pattern}, and it is {}", quote(value)));
        }
        if schema["format"] == "date-time"
            && let Some(text) = value.as_str()
            && chrono::DateTime::parse_from_rfc3339(text).is_err()
        {
            wrong(format!("takes {name} as a time like 2030-01-31T09:00:00Z, and it is {}", quote(value)));
        }
        for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if value.get(required).is_none_or(Value::is_null) {
                wrong(format!("needs {name} to have {required}"));
            }
        }
        let down = |step: Value| [path, &[step]].concat();
        for (key, part) in schema["properties"].as_object().into_iter().flatten() {
            // Null is absent, as everywhere on create.
            if let Some(inner) = value.get(key).filter(|inner| !inner.is_null()) {
                self.compare(found, max, part, inner, &down(json!(key)));
            }
        }
        if let Some(items) = schema.get("items") {
            for (index, inner) in value.as_array().into_iter().flatten().enumerate() {
                self.compare(found, max, items, inner, &down(json!(index)));
            }
        }
    }
}

/// Adds a maximum to each text and list without one.
fn bound(schema: &mut Value) {
    let (key, max) = match schema["type"].as_str() {
        Some("string") if schema.get("enum").is_none() => ("maxLength", DEFAULT_MAX_LENGTH),
        Some("array") => ("maxItems", DEFAULT_MAX_ITEMS),
        _ => ("", 0),
    };
    if !key.is_empty() && schema.get(key).is_none() {
        schema[key] = json!(max);
    }
    for (_, part) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        bound(part);
    }
    if let Some(items) = schema.get_mut("items") {
        bound(items);
    }
}

/// Compiles the patterns of a schema.
fn compile(schema: &Value, patterns: &mut HashMap<String, Regex>) {
    if let Some(pattern) = schema["pattern"].as_str() {
        let compiled = Regex::new(pattern).expect("the pattern is well-formed");
        patterns.insert(pattern.to_owned(), compiled);
    }
    for part in schema["properties"].as_object().into_iter().flatten().map(|(_, part)| part) {
        compile(part, patterns);
    }
    if let Some(items) = schema.get("items") {
        compile(items, patterns);
    }
}

/// A value as a message repeats it.
fn quote(value: &Value) -> String {
    clip(&value.to_string(), MAX_QUOTED_CHARACTERS)
}

fn is_type(value: &Value, expected: &str) -> bool {
    match expected {
        "integer" => value.is_i64() || value.is_u64(),
        other => type_of(value) == other,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
