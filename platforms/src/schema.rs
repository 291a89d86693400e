//! Schemas of the platforms' settings, with a validator for the part of JSON Schema that they use.
//!
//! By hand, because its messages are the product: they are read by a post's author, who knows no JSON Schema. A crate for
//! it says a pattern where this says `a language, such as de-DE`, knows none of the annotations below, and brings twenty
//! further crates.
//!
//! Four annotations of a setting are ours: `excludes` names other settings, or `media`, that it does not go with; `with`
//! names another setting without which it is not used; `kinds` names the kinds of post that use it, as [`crate::Publisher::post_kind`] does; `isPromise` is true where the
//! public would be told or shown something else without it, so that it is never dropped, or lists the values of which that
//! is so.
//! <https://json-schema.org/draft/2020-12/json-schema-validation>

use crate::text::{clip, is_web_address};
use domain::{Failure, json::type_name};
use regex::Regex;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Maximum number of items of a list whose schema has no `maxItems`.
const DEFAULT_MAX_ITEMS: u64 = 500;
/// Maximum length, in characters, of a text whose schema has no `maxLength`.
const DEFAULT_MAX_LENGTH: u64 = 10_000;
/// Form of a language (BCP 47), or empty. All registered languages have two or three letters.
pub(crate) const LANGUAGE: &str = "^([A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*)?$";
/// Patterns of settings, each with its words for messages and an example.
const FORMS: &[(&str, &str, &str)] = &[
    (LANGUAGE, "a language", "de-DE"),
    ("^[0-9]+$", "a number", "17"),
    ("^[0-9]{1,19}$", "a number of up to 19 digits", "17"),
    ("^[0-9]{1,20}$", "a number of up to 20 digits", "17"),
    ("^[^<>]*$", "a text without < and >", "Dawn"),
    ("^[^<>,]*$", "a text without <, > and commas", "Dawn"),
    ("^[^.&]*$", "a text without points and &", "Dawn"),
    ("^[A-Z]{2}$", "the code of a country", "DE"),
    ("^#[0-9A-Fa-f]{6}$", "a color", "#ff9900"),
    (r"^\s*@?[A-Za-z0-9._]{1,30}\s*$", "a username of up to 30 characters", "ada.lovelace"),
    ("^(@?[A-Za-z0-9_]{1,15}|[0-9]{1,19})$", "a username or an id", "@ada"),
    ("^/?([rRuU]/)?[A-Za-z0-9_-]{2,24}$", "a subreddit", "r/cats"),
    ("^urn:li:(share|ugcPost):[0-9]+$", "a post's id", "urn:li:share:17"),
    (
        "^(at://|https://bsky\\.app/profile/)[^/]+/[^/]+/[^/]+$",
        "the address of a post",
        "https://bsky.app/profile/ada.example/post/3k",
    ),
    (r"^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?$", "a day or a local time", "2030-01-31T09:00"),
    (
        r"^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$",
        "a time with its zone",
        "2030-01-31T09:00:00+01:00",
    ),
    (
        r"^\d{4}-\d\d-\d\d([Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d))?$",
        "a day, or a time with its zone",
        "2030-01-31",
    ),
];
/// Maximum length, in characters, of a value that a message repeats.
const MAX_QUOTED_CHARACTERS: usize = 100;

/// Returns the schema of a settings type, in the part of JSON Schema that [`Schema`] reads: with
/// subschemas inline and without null, which always means an absent member.
pub(crate) fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut document = settings.into_generator().into_root_schema_for::<T>().to_value();
    simplify(&mut document);
    document["additionalProperties"] = json!(true);
    document
}

/// Removes details of Rust types that are irrelevant to a post's author.
fn simplify(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    object.remove("title");
    object.remove("additionalProperties");
    if let Some(Value::Array(types)) = object.get("type") {
        let given = types.iter().find(|one| *one != "null").cloned();
        object.insert("type".to_owned(), json!(given));
    }
    if let Some(Value::Array(options)) = object.get_mut("enum") {
        options.retain(|option| !option.is_null());
    }
    // The width of a number, such as `uint32`.
    if object.get("type").is_some_and(|one| one == "integer" || one == "number") {
        object.remove("format");
    }
    // A doc comment may have several lines.
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    for (_, part) in object.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        simplify(part);
    }
    if let Some(items) = object.get_mut("items") {
        simplify(items);
    }
}

/// Reads a platform's `config` block.
///
/// # Errors
///
/// When the block does not match the type's schema: settings are validated when a post is created, but a later
/// version may find some that an earlier one has stored.
pub(crate) fn read<T: DeserializeOwned>(settings: &Value) -> Result<T, Failure> {
    let settings = if settings.is_null() { json!({}) } else { settings.clone() };
    serde_json::from_value(settings).map_err(|error| {
        Failure::rejected(422, format!("the stored settings can't be read by this version: {error}"))
    })
}

/// A platform's schema with its compiled patterns.
pub(crate) struct Schema {
    document: Value,
    patterns: HashMap<String, Regex>,
}

/// A value that does not match the schema.
pub(crate) struct Mismatch {
    /// Location of the value.
    pub(crate) path: Vec<Value>,
    /// The error, as a sentence whose subject is the platform.
    pub(crate) message: String,
}

impl Schema {
    /// Reads a schema, and adds a maximum to each text and list without one.
    pub(crate) fn new(mut document: Value) -> Self {
        bound(&mut document);
        let mut patterns = HashMap::new();
        compile(&document, &mut patterns);
        Self { document, patterns }
    }

    /// Returns the schema as JSON.
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
        let name = named(path);
        let mut wrong = |message: String| found.push(Mismatch { path: path.to_vec(), message });
        if let Some(expected) = schema["type"].as_str()
            && !is_type(value, expected)
        {
            return wrong(format!("takes {name} as {expected}, and it is {}", type_name(value)));
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
        let counted = if unit == "Length" { "characters" } else { "items" };
        if !unit.is_empty() {
            if let Some(max) = schema[format!("max{unit}")].as_u64().filter(|max| size as u64 > *max) {
                // An over-long value is not examined further.
                return wrong(format!("takes {name} with at most {max} {counted}, and it has {size}"));
            }
            // A blank text is none: platforms trim it before they count.
            let size = value.as_str().map_or(size, |text| text.trim().chars().count());
            if let Some(min) = schema[format!("min{unit}")].as_u64().filter(|min| (size as u64) < *min) {
                wrong(format!("takes {name} with at least {min} {counted}, and it has {size}"));
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
            let form = match FORMS.iter().find(|(known, ..)| *known == pattern) {
                Some((_, what, example)) => format!("{what}, such as {example}"),
                None => format!("a text like {pattern}"),
            };
            wrong(format!("takes {name} as {form}, and it is {}", quote(value)));
        }
        if let (Some(format), Some(text)) = (schema["format"].as_str(), value.as_str())
            && let Some(expected) = unlike(format, text)
        {
            wrong(format!("takes {name} as {expected}, and it is {}", quote(value)));
        }
        for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if value.get(required).is_none_or(Value::is_null) {
                wrong(format!("needs {name} to have {required}"));
            }
        }
        let down = |step: Value| [path, &[step]].concat();
        for (key, part) in schema["properties"].as_object().into_iter().flatten() {
            // As in every create body, null is an absent member.
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

/// Compares a text with a format of JSON Schema. Returns what it should be.
fn unlike(format: &str, text: &str) -> Option<&'static str> {
    let (is_right, expected) = match format {
        "date-time" => {
            (chrono::DateTime::parse_from_rfc3339(text).is_ok(), "a time like 2030-01-31T09:00:00Z")
        }
        "uri" => (is_web_address(text), "a URL like https://example.com/page"),
        other => unreachable!("no setting has the format {other}"),
    };
    (!is_right).then_some(expected)
}

/// Names the value at a path for a message.
fn named(path: &[Value]) -> String {
    match path {
        [.., Value::String(list), Value::Number(index)] => {
            format!("item {} of {list}", index.as_u64().unwrap_or(0) + 1)
        }
        [.., Value::String(name)] => name.clone(),
        [.., other] => other.to_string(),
        [] => String::new(),
    }
}

/// Formats a value for a message.
fn quote(value: &Value) -> String {
    clip(&value.to_string(), MAX_QUOTED_CHARACTERS)
}

fn is_type(value: &Value, expected: &str) -> bool {
    match expected {
        "integer" => value.is_i64() || value.is_u64(),
        other => type_name(value) == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    struct Settings {
        /// Who can
        /// see it.
        seen_by: Option<Audience>,
        #[schemars(range(max = 9))]
        index: Option<u32>,
        #[schemars(inner(length(max = 3)), extend("excludes" = ["index"]))]
        tags: Option<Vec<String>>,
        poll: Option<Poll>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "UPPERCASE")]
    enum Audience {
        Everyone,
        Friends,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    struct Poll {
        question: String,
        raw: Option<serde_json::Map<String, Value>>,
    }

    #[test]
    fn the_schema_of_settings_has_no_references_and_no_nulls() {
        assert_eq!(
            of::<Settings>(),
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "additionalProperties": true,
                "properties": {
                    "seenBy": {
                        "type": "string", "enum": ["EVERYONE", "FRIENDS"], "description": "Who can see it.",
                    },
                    "index": { "type": "integer", "minimum": 0, "maximum": 9 },
                    "tags": {
                        "type": "array", "items": { "type": "string", "maxLength": 3 }, "excludes": ["index"],
                    },
                    "poll": {
                        "type": "object",
                        "required": ["question"],
                        "properties": { "question": { "type": "string" }, "raw": { "type": "object" } },
                    },
                },
            })
        );
    }

    #[test]
    fn an_item_is_named_by_its_place_in_its_list() {
        let schema = Schema::new(of::<Settings>());
        let found = schema.validate(&json!({ "tags": ["a", "abcd"] }), &[], 10).into_iter();
        let told: Vec<_> = found.map(|one| one.message).collect();
        assert_eq!(told, ["takes item 2 of tags with at most 3 characters, and it has 4"]);
    }

    #[test]
    fn each_url_each_language_and_each_pattern_of_a_setting_is_checked_and_told() {
        fn walk(name: &str, schema: &Value, seen: &mut Vec<String>) {
            let last = name.rsplit('.').next().unwrap_or_default().to_lowercase();
            if let Some(pattern) = schema["pattern"].as_str() {
                assert!(FORMS.iter().any(|(known, ..)| *known == pattern), "{name}: {pattern} has no words");
                seen.push(pattern.to_owned());
            }
            if schema["type"] == "string" {
                if last.ends_with("url") || last == "link" || last.starts_with("link_") {
                    assert_eq!(schema["format"], "uri", "{name}");
                    seen.push(name.to_owned());
                }
                if last.contains("language") {
                    assert_eq!(schema["pattern"], LANGUAGE, "{name}");
                    seen.push(name.to_owned());
                }
            }
            for (key, part) in schema["properties"].as_object().into_iter().flatten() {
                walk(&format!("{name}.{key}"), part, seen);
            }
            if schema["items"].is_object() {
                walk(name, &schema["items"], seen);
            }
        }
        let mut seen = Vec::new();
        for platform in crate::all() {
            walk(platform.id, platform.schema().document(), &mut seen);
        }
        assert!(seen.len() >= 40, "{seen:?}");
        for (pattern, what, example) in FORMS {
            let is_right = Regex::new(pattern).unwrap().is_match(example);
            assert!(is_right && seen.iter().any(|known| known == pattern), "{what}");
        }
        let language = Regex::new(LANGUAGE).unwrap();
        for (text, is_right) in
            [("en", true), ("pt-BR", true), ("zh-Hant-TW", true), ("en_US", false), ("english", false)]
        {
            assert_eq!(language.is_match(text), is_right, "{text}");
        }
        for (text, is_right) in [
            ("https://example.com", true),
            ("http://example.com:8080/a?b=c#d", true),
            ("https://müller.example/ü", true),
            ("https://", false),
            ("https://example.com/a b", false),
            ("https://example.com/a\nb", false),
            ("https:\\\\example.com", false),
            ("example.com", false),
            ("https://example.com:99999/a", false),
            ("mailto:ada@example.com", false),
            ("", false),
        ] {
            assert_eq!(is_web_address(text), is_right, "{text:?}");
        }
    }

    #[test]
    fn settings_that_match_the_schema_can_be_read() {
        let schema = Schema::new(of::<Settings>());
        for settings in [
            json!({}),
            json!({ "seenBy": null, "index": null, "tags": null, "poll": null, "unknown": 1 }),
            json!({ "seenBy": "FRIENDS", "index": 9, "tags": [""], "poll": { "question": "?", "raw": null } }),
            json!({ "poll": { "question": "", "raw": { "a": [null] }, "unknown": {} } }),
        ] {
            let mismatches: Vec<_> =
                schema.validate(&settings, &[], 9).into_iter().map(|one| one.message).collect();
            assert_eq!(mismatches, Vec::<String>::new(), "{settings}");
            assert!(read::<Settings>(&settings).is_ok(), "{settings}");
        }
        assert_eq!(read(&Value::Null), Ok(Settings::default()));
    }

    #[test]
    fn settings_that_do_not_match_the_schema_fail_permanently() {
        let failure = read::<Settings>(&json!({ "seenBy": "NOBODY" })).unwrap_err();
        assert_eq!(failure.code, domain::ErrorCode::Rejected(422));
        assert!(!failure.is_ambiguous());
    }
}
