//! Times of the day in a body, as a clock on the wall shows them.

use domain::slot::Time;
use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type},
};
use serde_json::Value;
use std::borrow::Cow;

/// The format of [`Clock`] in a schema.
pub(crate) const FORMAT: &str = "time-of-day";

/// A minute of the day, `HH:MM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Clock(pub Time);

impl Type for Clock {
    const IS_REQUIRED: bool = true;
    type RawValueType = Self;
    type RawElementValueType = Self;

    fn name() -> Cow<'static, str> {
        format!("string_{FORMAT}").into()
    }

    fn schema_ref() -> MetaSchemaRef {
        let pattern = Some("^([01][0-9]|2[0-3]):[0-5][0-9]$".to_owned());
        MetaSchemaRef::Inline(Box::new(MetaSchema {
            pattern,
            ..MetaSchema::new_with_format("string", FORMAT)
        }))
    }

    fn as_raw_value(&self) -> Option<&Self> {
        Some(self)
    }

    fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
        Box::new(std::iter::once(self))
    }
}

impl ParseFromJSON for Clock {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        let value = value.unwrap_or_default();
        let time = value.as_str().and_then(|text| text.parse().ok());
        time.map(Self).ok_or_else(|| ParseError::expected_type(value))
    }
}

impl ToJSON for Clock {
    fn to_json(&self) -> Option<Value> {
        Some(self.0.to_string().into())
    }
}
