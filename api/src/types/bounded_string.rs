//! Strings with a length limit inside an array, whose field's validators bound the array only.

use crate::types::scalar::scalar;
use poem_openapi::registry::{MetaSchema, MetaSchemaRef};
use serde_json::Value;

/// A text of `MIN` to `MAX` characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<const MAX: usize, const MIN: usize = 1>(pub String);

scalar! {
    [const MAX: usize, const MIN: usize] Text<MAX, MIN> {
        name: format!("string_{MAX}"),
        schema: MetaSchemaRef::Inline(Box::new(MetaSchema {
            min_length: Some(MIN).filter(|min| *min > 0),
            max_length: Some(MAX),
            ..MetaSchema::new("string")
        })),
        parse: |value| match value {
            Value::String(text) => Ok(Self(text)),
            value => Err(value),
        },
        write: |text| text.0.clone().into(),
    }
}
