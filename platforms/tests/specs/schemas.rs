//! JSON Schemas of a description. Judged by crate `jsonschema`.
//!
//! The dialect is draft 4, of which OpenAPI 3.0's is an extension: what stands beside a `$ref` says nothing, and 1.0 is no
//! integer. <https://json-schema.org/draft-04>

use chrono::DateTime;
use jsonschema::{Draft, Registry, ValidationError, draft4, error::ValidationErrorKind};
use serde_json::Value;
use std::sync::Arc;

/// Address of the description, with which each reference into it begins.
pub(super) const ADDRESS: &str = "urn:x:description";

/// A description whose parts are JSON Schemas.
pub(super) struct Schemas(Registry<'static>);

impl Schemas {
    pub(super) fn of(description: Arc<Value>) -> Self {
        let registry = Registry::new().draft(Draft::Draft4).add(ADDRESS, description);
        Self(registry.and_then(|registry| registry.prepare()).expect("references lead somewhere"))
    }

    /// Adds the faults of a value at a place, for which this is the schema. Null, where there is none, allows everything.
    pub(super) fn judge(&self, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
        if schema.is_null() {
            return;
        }
        let validator = draft4::options()
            .with_registry(&self.0)
            .should_validate_formats(true)
            // Of a text in Google's documents; of a number they are comments.
            // https://developers.google.com/discovery/v1/type-format
            .with_format("google-datetime", |text| DateTime::parse_from_rfc3339(text).is_ok())
            .with_format("int64", |text| text.parse::<i64>().is_ok())
            .with_format("uint64", |text| text.parse::<u64>().is_ok())
            .build(schema)
            .expect("a schema");
        faults.extend(validator.iter_errors(value).map(|error| format!("{at}{}", sentence(&error))));
    }
}

/// Returns what is wrong and where, and with each of several possibilities what is wrong with it.
fn sentence(error: &ValidationError<'_>) -> String {
    let sentence = format!("{}: {error}", error.instance_path());
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return sentence;
    };
    let options =
        context.iter().map(|faults| faults.iter().map(self::sentence).collect::<Vec<_>>().join(", "));
    format!("{sentence}: {}", options.collect::<Vec<_>>().join("; "))
}
