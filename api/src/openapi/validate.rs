//! Validates JSON against the schemas of the OpenAPI document and reports all issues.
//!
//! The derived schema is the only definition of types, lengths and formats, so what is documented is
//! enforced. Parsers stop at the first error, so this walks the value before it is parsed. Codes and further
//! members are Zod's: <https://zod.dev/v3?id=error-handling>
//!
//! By hand, because these codes, members and sentences are the contract: a crate for JSON Schema has others, each of which
//! would have to be translated with the schema at hand. What null means ([`Null`]) is a rule of ours as well.

use crate::{
    http::problem::{Issue, MAX_ISSUES, Segment, clip},
    types::{
        color::{self, Color},
        time_of_day,
        timestamp::{BOUND_FORMAT, TimeBound, Timestamp},
        url::Link,
    },
};
use domain::{Email, json::type_name, slot::Time};
use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef, Registry},
    types::Type,
};
use serde_json::{Map, Value};
use std::{
    any::TypeId,
    collections::{HashMap, HashSet},
    io,
    sync::{Arc, LazyLock, PoisonError, RwLock},
};
use uuid::Uuid;

/// Type name of a schema that no value matches; as `additional_properties` it closes an object.
pub(crate) const NEVER: &str = "never";

/// Maximum number of unknown keys that an issue lists.
const MAX_LISTED_KEYS: usize = 20;

/// The schema of a type and all schemas it refers to.
pub struct Schema {
    root: MetaSchemaRef,
    registry: Registry,
}

/// Meaning of null at the root of a body. Below the root null means absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Null {
    /// Null means absent: a body that creates something.
    Absent,
    /// Null clears a `nullable` field and is invalid elsewhere: a body that updates something. Nullable
    /// fields are a [`MaybeUndefined`](poem_openapi::types::MaybeUndefined) with `#[oai(nullable)]`, others
    /// an `Option`.
    Clears,
}

/// Rules over several fields of a body, which a schema can't express.
///
/// They get the unparsed body, so that they run even if another field is invalid.
pub trait Rules {
    /// Meaning of null at the root.
    const NULL: Null = Null::Absent;
    /// True if a missing body is treated as an empty object.
    const IS_OPTIONAL: bool = false;
    /// True if unknown members are refused that resemble known ones or stand beside the object that they belong into
    /// ([`unknown`](crate::openapi::unknown)): the body of a call that publishes.
    const REFUSES_SLIPS: bool = false;

    /// The members that hold objects whose own members are easily written beside them, each with the objects' schema.
    fn homes() -> Vec<(&'static str, Arc<Schema>)> {
        Vec::new()
    }

    /// Adds issues.
    fn check(_body: &Map<String, Value>, _issues: &mut Vec<Issue>) {}
}

impl Schema {
    /// The schema of `T`, generated once.
    pub fn of<T: Type + 'static>() -> Arc<Self> {
        static DRAWN: LazyLock<RwLock<HashMap<TypeId, Arc<Schema>>>> = LazyLock::new(RwLock::default);
        let key = TypeId::of::<T>();
        if let Some(schema) = DRAWN.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return schema.clone();
        }
        let mut registry = Registry::new();
        T::register(&mut registry);
        let schema = Arc::new(Self { root: T::schema_ref(), registry });
        DRAWN.write().unwrap_or_else(PoisonError::into_inner).insert(key, schema.clone());
        schema
    }

    /// Returns the issues of `value`, at most one more than a problem lists. Takes time in proportion to the
    /// value's size; values above a limit are not checked further.
    pub fn check(&self, value: &Value, null: Null) -> Vec<Issue> {
        let mut walk = Walk { schema: self, null, path: Vec::new(), issues: Vec::new() };
        walk.visit(&self.root, value);
        walk.refuse_nul(value);
        walk.issues
    }

    /// The schema of a property.
    pub fn property(&self, name: &str) -> Option<&MetaSchema> {
        let properties = &self.resolve(&self.root).properties;
        let (_, schema) = properties.iter().find(|(property, _)| *property == name)?;
        Some(self.essence(schema))
    }

    /// Names of all properties.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.essence(&self.root).properties.iter().map(|(name, _)| *name).collect()
    }

    /// The schema of the whole.
    pub(super) fn root(&self) -> &MetaSchemaRef {
        &self.root
    }

    fn resolve<'a>(&'a self, schema: &'a MetaSchemaRef) -> &'a MetaSchema {
        match schema {
            MetaSchemaRef::Inline(schema) => schema,
            MetaSchemaRef::Reference(name) => {
                self.registry.schemas.get(name).expect("registering a type registers what it refers to")
            }
        }
    }

    /// Resolves the `allOf` that a reference with a description is generated as.
    pub(super) fn essence<'a>(&'a self, schema: &'a MetaSchemaRef) -> &'a MetaSchema {
        let schema = self.resolve(schema);
        match schema.all_of.first() {
            Some(first) if schema.ty.is_empty() => self.essence(first),
            _ => schema,
        }
    }
}

struct Walk<'a> {
    schema: &'a Schema,
    null: Null,
    path: Vec<Segment>,
    issues: Vec<Issue>,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, schema: &'a MetaSchemaRef, value: &Value) {
        let schema = self.schema.resolve(schema);
        for part in &schema.all_of {
            self.visit(part, value);
        }
        match (schema.ty, value) {
            // Any type, or `allOf`, whose parts are checked above.
            ("", _) | ("boolean", Value::Bool(_)) => {}
            ("object", Value::Object(object)) => self.object(schema, object),
            ("array", Value::Array(items)) => self.array(schema, items),
            ("string", Value::String(text)) => self.string(schema, text),
            ("number", Value::Number(number)) => self.number(schema, number),
            ("integer", Value::Number(number)) if number.is_i64() || number.is_u64() => {
                self.number(schema, number)
            }
            (expected, value) => self.add(Issue::wrong_type(&self.path, expected, type_name(value))),
        }
    }

    fn add(&mut self, issue: Issue) {
        if !self.is_full() {
            self.issues.push(issue);
        }
    }

    /// True when no further issue would be listed.
    fn is_full(&self) -> bool {
        self.issues.len() > MAX_ISSUES
    }

    fn under(&mut self, segment: impl Into<Segment>, look: impl FnOnce(&mut Self)) {
        self.path.push(segment.into());
        look(self);
        self.path.pop();
    }

    fn object(&mut self, schema: &'a MetaSchema, object: &Map<String, Value>) {
        for (name, property) in &schema.properties {
            let is_required = schema.required.contains(name);
            self.under(*name, |walk| match object.get(*name) {
                None if is_required => {
                    let expected = walk.schema.essence(property).ty;
                    walk.add(Issue::wrong_type(&walk.path, expected, "undefined"));
                }
                None => {}
                Some(Value::Null) if !is_required && walk.takes_null(property) => {}
                Some(value) => walk.visit(property, value),
            });
        }
        if let Some(most) = schema.max_properties.filter(|most| object.len() > *most) {
            let message = format!("Object must contain at most {most} key(s)");
            let issue = Issue::new(self.path.iter().cloned(), "too_big", message);
            return self.add(issue.with("maximum", most).with("type", "object").with("inclusive", true));
        }
        let Some(others) = &schema.additional_properties else { return };
        let unknown = object.iter().filter(|(key, _)| !schema.properties.iter().any(|(name, _)| name == key));
        if self.schema.resolve(others).ty == NEVER {
            let keys: Vec<_> = unknown.map(|(key, _)| clip(key)).take(MAX_LISTED_KEYS).collect();
            if !keys.is_empty() {
                let message = format!("Unrecognized key(s) in object: '{}'", keys.join("', '"));
                let issue = Issue::new(self.path.iter().cloned(), "unrecognized_keys", message);
                self.add(issue.with("keys", keys));
            }
            return;
        }
        for (key, value) in unknown {
            if self.is_full() {
                return;
            }
            if !(value.is_null() && self.schema.resolve(others).nullable) {
                self.under(key.as_str(), |walk| walk.visit(others, value));
            }
        }
    }

    /// True if null is valid for the optional property at the current path.
    fn takes_null(&self, property: &MetaSchemaRef) -> bool {
        match self.null {
            Null::Clears if self.path.len() == 1 => self.schema.resolve(property).nullable,
            _ => true,
        }
    }

    fn array(&mut self, schema: &'a MetaSchema, items: &[Value]) {
        let bounds = (schema.min_items.map(|n| n as f64), schema.max_items.map(|n| n as f64));
        self.bounds("array", items.len() as f64, bounds);
        if schema.max_items.is_some_and(|most| items.len() > most) {
            return;
        }
        if schema.unique_items == Some(true) {
            let mut seen = HashSet::new();
            for (index, item) in items.iter().enumerate() {
                let text = item.to_string();
                if seen.contains(&text) {
                    let message = format!("Must not be repeated: {}", clip(&text));
                    self.under(index, |walk| walk.add(Issue::custom(walk.path.clone(), message)));
                }
                seen.insert(text);
            }
        }
        let Some(schema) = &schema.items else { return };
        for (index, item) in items.iter().enumerate() {
            if self.is_full() {
                return;
            }
            self.under(index, |walk| walk.visit(schema, item));
        }
    }

    fn string(&mut self, schema: &MetaSchema, text: &str) {
        if !schema.enum_items.is_empty() && !schema.enum_items.iter().any(|word| word == text) {
            let received = clip(text);
            let message = format!("Invalid enum value, received '{received}'");
            let issue = Issue::new(self.path.iter().cloned(), "invalid_enum_value", message);
            return self.add(issue.with("options", schema.enum_items.clone()).with("received", received));
        }
        let bounds = (schema.min_length.map(|n| n as f64), schema.max_length.map(|n| n as f64));
        let length = text.chars().count();
        self.bounds("string", length as f64, bounds);
        if schema.max_length.is_some_and(|most| length > most) {
            return;
        }
        let (validation, is_valid) = match schema.format {
            Some("uuid") => ("uuid", text.parse::<Uuid>().is_ok()),
            Some("date-time") => ("datetime", Timestamp::read(text).is_some()),
            Some(BOUND_FORMAT) => ("datetime", TimeBound::read(text).is_some()),
            Some("email") => ("email", text.parse::<Email>().is_ok()),
            Some("uri") => ("url", Link::read(text).is_some()),
            Some(time_of_day::FORMAT) => ("time", text.parse::<Time>().is_ok()),
            Some(color::FORMAT) => ("color", Color::read(text).is_some()),
            _ => return,
        };
        if !is_valid {
            let message = match validation {
                "datetime" if TimeBound::read(text).is_some() => {
                    "Needs a time of day, such as 2026-01-02T03:04:05Z".to_owned()
                }
                "datetime" => "Must be an ISO 8601 timestamp, such as 2026-01-02T03:04:05Z".to_owned(),
                "time" => "Must be a time of the day from 00:00 to 23:59".to_owned(),
                "color" => "Must be a color such as #1a56c4".to_owned(),
                _ => format!("Invalid {validation}"),
            };
            let issue = Issue::new(self.path.iter().cloned(), "invalid_string", message);
            self.add(issue.with("validation", validation));
        }
    }

    fn number(&mut self, schema: &MetaSchema, number: &serde_json::Number) {
        let number = number.as_f64().unwrap_or(f64::INFINITY);
        self.bounds("number", number, (schema.minimum, schema.maximum));
    }

    fn bounds(&mut self, what: &str, found: f64, (minimum, maximum): (Option<f64>, Option<f64>)) {
        let (noun, verb) = match what {
            "array" => (" element(s)", "contain"),
            "string" => (" character(s)", "contain"),
            _ => ("", "be"),
        };
        let sides = [
            ("too_small", "minimum", "at least", minimum.filter(|limit| found < *limit)),
            ("too_big", "maximum", "at most", maximum.filter(|limit| found > *limit)),
        ];
        for (code, side, comparison, limit) in sides {
            let Some(limit) = limit else { continue };
            let mut name = what.to_owned();
            name[..1].make_ascii_uppercase();
            let message = format!("{name} must {verb} {comparison} {limit}{noun}");
            // Lengths are written as integers.
            let limit: Value = if limit.fract() == 0.0 { (limit as i64).into() } else { limit.into() };
            let issue = Issue::new(self.path.iter().cloned(), code, message);
            self.add(issue.with(side, limit).with("type", what).with("inclusive", true));
        }
    }

    /// Reports U+0000, which Postgres can store neither in text nor in jsonb.
    fn refuse_nul(&mut self, value: &Value) {
        let issue = |walk: &mut Self| {
            walk.add(Issue::custom(walk.path.clone(), "Must not contain the character U+0000"));
        };
        match value {
            Value::String(text) if text.contains('\0') => issue(self),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    if self.is_full() {
                        return;
                    }
                    self.under(index, |walk| walk.refuse_nul(item));
                }
            }
            Value::Object(object) => {
                for (key, value) in object {
                    if self.is_full() {
                        return;
                    }
                    self.under(key.as_str(), |walk| {
                        if key.contains('\0') {
                            issue(walk);
                        }
                        walk.refuse_nul(value);
                    });
                }
            }
            _ => {}
        }
    }
}

/// Reports a value whose JSON exceeds a number of bytes.
pub(crate) fn limit_size<'a>(
    value: &Value,
    most: usize,
    path: impl IntoIterator<Item = &'a str>,
    issues: &mut Vec<Issue>,
) {
    if json_size(value) > most {
        issues.push(too_big(most, path));
    }
}

/// Returns the issue of a value whose JSON exceeds a number of bytes.
pub(crate) fn too_big<'a>(most: usize, path: impl IntoIterator<Item = &'a str>) -> Issue {
    let issue = Issue::new(path, "too_big", format!("Must take at most {most} bytes as JSON"));
    issue.with("maximum", most).with("type", "object").with("inclusive", true)
}

/// Returns the size of a value as JSON, in bytes.
pub(crate) fn json_size(value: &Value) -> usize {
    let mut size = Size(0);
    // Writing to the counter can't fail.
    let _ = serde_json::to_writer(&mut size, value);
    size.0
}

/// A writer that counts bytes.
struct Size(usize);

impl io::Write for Size {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        http::body::read,
        types::enum_string::{EnumString, Platform},
    };
    use poem_openapi::{
        Object,
        types::{MaybeUndefined, ToJSON},
    };
    use serde_json::json;

    #[derive(Object)]
    struct Inner {
        #[oai(validator(min_length = 2, max_length = 3))]
        text: String,
    }

    #[derive(Object)]
    struct Sample {
        inner: Inner,
        #[oai(validator(min_items = 1, max_items = 2, unique_items))]
        list: Option<Vec<String>>,
        /// Described, so that it becomes `allOf`.
        platform: Option<EnumString<Platform>>,
        at: Option<Timestamp>,
        id: Option<Uuid>,
        #[oai(validator(minimum(value = "1"), maximum(value = "9")))]
        count: Option<i32>,
        flag: Option<bool>,
    }

    fn issues(value: Value) -> Vec<Value> {
        let issues = Schema::of::<Sample>().check(&value, Null::Absent);
        issues.iter().map(|issue| issue.to_json().unwrap()).collect()
    }

    #[test]
    fn what_fits_has_no_issues_and_null_is_absent() {
        let fit = json!({
            "inner": {"text": "äöü", "more": 1}, "list": ["a", "b"], "platform": "x",
            "at": "2026-01-02T03:04Z", "id": Uuid::nil(), "count": 9, "flag": true, "unknown": null,
        });
        assert_eq!(issues(fit), Vec::<Value>::new());
        let nothing =
            json!({"inner": {"text": "ab"}, "list": null, "platform": null, "at": null, "count": null});
        assert_eq!(issues(nothing), Vec::<Value>::new());
    }

    #[test]
    fn every_fault_is_told_with_its_path_and_extras() {
        for (body, path, code, extras) in [
            (
                json!({}),
                json!(["inner"]),
                "invalid_type",
                json!({"expected": "object", "received": "undefined"}),
            ),
            (json!([]), json!([]), "invalid_type", json!({"expected": "object", "received": "array"})),
            (
                json!({"inner": {}}),
                json!(["inner", "text"]),
                "invalid_type",
                json!({"expected": "string", "received": "undefined"}),
            ),
            (
                json!({"inner": {"text": null}}),
                json!(["inner", "text"]),
                "invalid_type",
                json!({"expected": "string", "received": "null"}),
            ),
            (
                json!({"inner": {"text": "a"}}),
                json!(["inner", "text"]),
                "too_small",
                json!({"minimum": 2, "type": "string", "inclusive": true}),
            ),
            (
                json!({"inner": {"text": "abcd"}}),
                json!(["inner", "text"]),
                "too_big",
                json!({"maximum": 3, "type": "string", "inclusive": true}),
            ),
            (
                json!({"list": []}),
                json!(["list"]),
                "too_small",
                json!({"minimum": 1, "type": "array", "inclusive": true}),
            ),
            (
                json!({"list": ["a", 1]}),
                json!(["list", 1]),
                "invalid_type",
                json!({"expected": "string", "received": "number"}),
            ),
            (json!({"list": ["a", "a"]}), json!(["list", 1]), "custom", json!({})),
            (
                json!({"platform": "y"}),
                json!(["platform"]),
                "invalid_enum_value",
                json!({"options": platforms::IDS, "received": "y"}),
            ),
            (json!({"at": "tomorrow"}), json!(["at"]), "invalid_string", json!({"validation": "datetime"})),
            (json!({"id": "1"}), json!(["id"]), "invalid_string", json!({"validation": "uuid"})),
            (
                json!({"count": 0}),
                json!(["count"]),
                "too_small",
                json!({"minimum": 1, "type": "number", "inclusive": true}),
            ),
            (
                json!({"count": 1.5}),
                json!(["count"]),
                "invalid_type",
                json!({"expected": "integer", "received": "number"}),
            ),
            (
                json!({"flag": "yes"}),
                json!(["flag"]),
                "invalid_type",
                json!({"expected": "boolean", "received": "string"}),
            ),
            (json!({"other": [{"a": "b\u{0}"}]}), json!(["other", 0, "a"]), "custom", json!({})),
        ] {
            let mut body = body;
            if path != json!(["inner"])
                && let Some(object) = body.as_object_mut()
            {
                object.entry("inner").or_insert(json!({"text": "ab"}));
            }
            let found = issues(body.clone());
            let [issue] = &found[..] else { panic!("{body}: {found:?}") };
            assert_eq!((&issue["path"], &issue["code"]), (&path, &json!(code)), "{body}");
            for (key, value) in extras.as_object().unwrap() {
                assert_eq!(&issue[key], value, "{body}: {key}");
            }
        }
    }

    #[derive(Object)]
    struct Patch {
        name: Option<String>,
        inner: Option<Deep>,
        /// Described, so that it becomes `allOf`.
        other: Option<EnumString<Platform>>,
        /// Described and nullable.
        #[oai(nullable)]
        platform: MaybeUndefined<EnumString<Platform>>,
        #[oai(nullable, validator(max_length = 3))]
        label: MaybeUndefined<String>,
    }

    #[derive(Object)]
    struct Deep {
        text: Option<String>,
    }

    impl Rules for Patch {
        const NULL: Null = Null::Clears;
    }

    #[test]
    fn null_clears_what_can_be_null_and_fits_nothing_else() {
        let patch: Patch = read(json!({"platform": null, "label": null, "inner": {"text": null}})).unwrap();
        assert!(patch.platform.is_null() && patch.label.is_null() && patch.name.is_none());
        let patch: Patch = read(json!({"label": "abc", "unknown": null})).unwrap();
        assert!(patch.platform.is_undefined() && patch.label.as_deref() == MaybeUndefined::Value("abc"));
        let wrong: Vec<_> =
            read::<Patch>(json!({"name": null, "inner": null, "other": null, "label": "abcd"}))
                .err()
                .unwrap()
                .issues
                .into_iter()
                .map(|issue| (issue.path, issue.code, issue.extras.get("received").cloned()))
                .collect();
        let null = |key: &str| (vec![key.into()], "invalid_type".to_owned(), Some(json!("null")));
        assert_eq!(
            wrong,
            [null("name"), null("inner"), null("other"), (vec!["label".into()], "too_big".to_owned(), None)]
        );
    }

    #[derive(Object)]
    struct Large {
        #[oai(validator(max_items = 200000, unique_items))]
        many: Option<Vec<String>>,
        #[oai(validator(max_items = 1000, unique_items))]
        few: Option<Vec<EnumString<Platform>>>,
        #[oai(validator(max_properties = 3))]
        map: Option<std::collections::BTreeMap<String, Value>>,
        config: Option<crate::posts::body::Config>,
    }

    fn large(value: Value) -> Vec<Value> {
        let issues = Schema::of::<Large>().check(&value, Null::Absent);
        assert!(issues.len() <= MAX_ISSUES + 1, "{} issues", issues.len());
        issues.iter().map(|issue| issue.to_json().unwrap()).collect()
    }

    /// A check in quadratic time would not finish here.
    #[test]
    fn of_a_large_body_little_is_told() {
        let items: Vec<_> = (0..200_000).map(|index| index.to_string()).collect();
        assert_eq!(large(json!({ "many": items })), Vec::<Value>::new());
        assert_eq!(large(json!({ "many": vec!["a"; 200_000] })).len(), MAX_ISSUES + 1);
        assert_eq!(large(json!({ "many": vec![0; 200_000] })).len(), MAX_ISSUES + 1);
        assert_eq!(large(json!({ "many": vec!["a\u{0}"; 200_000] })).len(), MAX_ISSUES + 1);
        // A list that is too long is one issue, whatever its items.
        let found = large(json!({ "few": vec![json!([7]); 1001] }));
        assert_eq!(
            (found.len(), &found[0]["code"], &found[0]["maximum"]),
            (1, &json!("too_big"), &json!(1000))
        );
        let keys = |count: usize| {
            (0..count).map(|index| (format!("{index}{}", "k".repeat(100)), json!(7))).collect::<Map<_, _>>()
        };
        let found = large(json!({ "map": keys(100_000) }));
        assert_eq!(
            (found.len(), &found[0]["code"], &found[0]["type"]),
            (1, &json!("too_big"), &json!("object"))
        );
        let found = large(json!({ "config": keys(100_000) }));
        assert_eq!((found.len(), &found[0]["code"]), (1, &json!("unrecognized_keys")));
        assert_eq!(found[0]["keys"].as_array().unwrap().len(), MAX_LISTED_KEYS);
        let long = "x".repeat(1_000_000);
        for found in [
            large(json!({ "few": [long] })),
            large(json!({ "few": [long, long] })),
            large(json!({ "config": { (long.clone()): 1 } })),
            large(json!({ (long.clone()): { "a": "\u{0}" } })),
        ] {
            assert!(!found.is_empty() && json!(found).to_string().len() < 2000, "{found:?}");
        }
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let codes: Vec<_> = issues(json!({"inner": {"text": ""}, "list": [1, 2, 3], "flag": 0}))
            .into_iter()
            .map(|issue| issue["code"].clone())
            .collect();
        assert_eq!(codes, ["too_small", "too_big", "invalid_type"]);
    }
}
