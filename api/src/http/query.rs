//! Query parameters as one object, validated like a body.
//!
//! Parsing parameter by parameter would report only the first error. The OpenAPI document lists each property
//! of the object as a parameter ([`mod@crate::openapi::document`]).

use crate::{
    http::problem::{Issue, MAX_ISSUES, Problem},
    openapi::validate::{Rules, Schema},
    types::timestamp::{BOUND_FORMAT, TimeBound},
};
use poem::{Request, RequestBody};
use poem_openapi::{
    ApiExtractor, ApiExtractorType, ExtractParamOptions,
    registry::{MetaParamIn, MetaSchema, MetaSchemaRef, Registry},
    types::ParseFromJSON,
};
use serde_json::{Map, Value};
use std::num::IntErrorKind;
use url::form_urlencoded;

/// The query parameters of an operation. Unknown ones are ignored.
pub struct Query<T>(pub T);

/// Validates and parses a query string.
///
/// # Errors
///
/// All issues, if the parameters violate the schema or a rule.
pub fn read<T: ParseFromJSON + Rules + 'static>(query: &str) -> Result<T, Problem> {
    let schema = Schema::of::<T>();
    let (mut object, mut issues) = (Map::new(), Vec::new());
    for (name, text) in form_urlencoded::parse(query.as_bytes()) {
        let entry = entry(&name).and_then(|(name, key)| Some((name, key, schema.property(name)?)));
        let (before, path) = match entry {
            Some((name, key, property)) if property.ty == "object" => {
                let entries = object.entry(name).or_insert_with(|| Map::new().into());
                let entries = entries.as_object_mut();
                let before = entries.and_then(|entries| entries.insert(key.to_owned(), (*text).into()));
                (before, vec![name, key])
            }
            _ => {
                let Some(property) = schema.property(&name) else { continue };
                (object.insert(name.clone().into_owned(), value(property, &text)), vec![&*name])
            }
        };
        if before.is_some() && issues.len() < MAX_ISSUES {
            issues.push(Issue::custom(path, "Must be given once"));
        }
    }
    let object = Value::Object(object);
    issues.extend(crate::http::body::check::<T>(&object));
    if !issues.is_empty() {
        return Err(Problem::invalid_parameters(issues));
    }
    T::parse_from_json(Some(object))
        .map_err(|error| Problem::invalid_parameters(vec![Issue::whole(error.into_message())]))
}

/// Splits the name of an entry of an object, `metadata[key]`.
fn entry(name: &str) -> Option<(&str, &str)> {
    name.strip_suffix(']')?.split_once('[')
}

/// Converts a parameter to the type of its schema; text that does not convert is kept and fails validation.
fn value(schema: &MetaSchema, text: &str) -> Value {
    match (schema.ty, schema.format) {
        ("integer", _) => match text.parse::<i64>() {
            Ok(number) => number.into(),
            Err(error) => match error.kind() {
                IntErrorKind::PosOverflow => i64::MAX.into(),
                IntErrorKind::NegOverflow => i64::MIN.into(),
                _ => text.into(),
            },
        },
        ("boolean", _) => text.parse::<bool>().map_or_else(|_| text.into(), Value::from),
        // Many clients do not encode the plus sign, which stands for a space in a query string.
        ("string", Some("date-time" | BOUND_FORMAT)) if TimeBound::read(text).is_none() => {
            text.replace(' ', "+").into()
        }
        _ => text.into(),
    }
}

impl<'a, T: ParseFromJSON + Rules + 'static> ApiExtractor<'a> for Query<T> {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::Parameter];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        T::register(registry);
    }

    fn param_in() -> Option<MetaParamIn> {
        Some(MetaParamIn::Query)
    }

    fn param_schema_ref() -> Option<MetaSchemaRef> {
        Some(T::schema_ref())
    }

    async fn from_request(
        request: &'a Request,
        _: &mut RequestBody,
        _: ExtractParamOptions<()>,
    ) -> poem::Result<Self> {
        Ok(Self(read(request.uri().query().unwrap_or_default())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::metadata::Metadata;
    use poem_openapi::{Object, types::ToJSON};
    use serde_json::json;

    #[derive(Object)]
    struct Sample {
        limit: Option<i64>,
        name: Option<String>,
        after: Option<TimeBound>,
        metadata: Option<Metadata>,
    }
    impl Rules for Sample {}

    #[test]
    fn parameters_become_what_the_schema_wants() {
        let sample: Sample = read("limit=7&name=a%20b&after=2026-01-02T03:04:05+01:00&unknown=1").unwrap();
        assert_eq!((sample.limit, sample.name.as_deref()), (Some(7), Some("a b")));
        assert_eq!(sample.after, TimeBound::read("2026-01-02T02:04:05Z"));
        assert_eq!(read::<Sample>("limit=99999999999999999999").unwrap().limit, Some(i64::MAX));
        assert_eq!(read::<Sample>("").unwrap().limit, None);
    }

    #[test]
    fn entries_of_an_object_are_read_together() {
        let sample: Sample =
            read("metadata[a]=1&metadata%5Bb.c%5D=%5B2%5D&metadata_b[c]=3&name[d]=4").unwrap();
        assert_eq!(json!(sample.metadata.unwrap().0), json!({ "a": "1", "b.c": "[2]" }));
        assert_eq!(sample.name, None);
        for (query, path, code) in [
            ("metadata[a]=1&metadata[a]=2", json!(["metadata", "a"]), "custom"),
            ("metadata=1", json!(["metadata"]), "invalid_type"),
            (&*format!("metadata[a]={}", "v".repeat(501)), json!(["metadata", "a"]), "too_big"),
        ] {
            let problem = read::<Sample>(query).err().unwrap();
            let [issue] = &problem.issues[..] else { panic!("one issue: {problem:?}") };
            assert_eq!((issue.path.to_json(), issue.code.as_str()), (Some(path), code), "{query}");
        }
    }

    #[test]
    fn all_wrong_parameters_are_told() {
        let problem = read::<Sample>("limit=ten&after=soon&name=a&name=b&name=%00").err().unwrap();
        let found: Vec<_> =
            problem.issues.iter().map(|issue| (issue.path[0].clone(), issue.code.as_str())).collect();
        assert_eq!(
            found,
            [
                ("name".into(), "custom"),
                ("name".into(), "custom"),
                ("limit".into(), "invalid_type"),
                ("after".into(), "invalid_string"),
                ("name".into(), "custom"),
            ]
        );
        assert_eq!(problem.issues[2].extras["received"], json!("string"));
    }
}
