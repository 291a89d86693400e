//! Addresses of people in a body.

use domain::Email;
use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type},
};
use serde_json::Value;
use std::borrow::Cow;

/// An address of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(pub Email);

impl Type for Address {
    const IS_REQUIRED: bool = true;
    type RawValueType = Self;
    type RawElementValueType = Self;

    fn name() -> Cow<'static, str> {
        "string_email".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Inline(Box::new(MetaSchema::new_with_format("string", "email")))
    }

    fn as_raw_value(&self) -> Option<&Self> {
        Some(self)
    }

    fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
        Box::new(std::iter::once(self))
    }
}

impl ParseFromJSON for Address {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        let value = value.unwrap_or_default();
        let email = value.as_str().and_then(|text| text.parse().ok());
        email.map(Self).ok_or_else(|| ParseError::expected_type(value))
    }
}

impl ToJSON for Address {
    fn to_json(&self) -> Option<Value> {
        Some(self.0.as_str().into())
    }
}
