//! Texts in an array: a validator of a field bounds the array, and this each text.

use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type},
};
use serde_json::Value;
use std::borrow::Cow;

/// A text of at most `MOST` characters and, unless said otherwise, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<const MOST: usize, const LEAST: usize = 1>(pub String);

impl<const MOST: usize, const LEAST: usize> Type for Text<MOST, LEAST> {
    const IS_REQUIRED: bool = true;
    type RawValueType = String;
    type RawElementValueType = String;

    fn name() -> Cow<'static, str> {
        format!("string_{MOST}").into()
    }

    fn schema_ref() -> MetaSchemaRef {
        let min_length = Some(LEAST).filter(|least| *least > 0);
        let schema = MetaSchema { min_length, max_length: Some(MOST), ..MetaSchema::new("string") };
        MetaSchemaRef::Inline(Box::new(schema))
    }

    fn as_raw_value(&self) -> Option<&String> {
        Some(&self.0)
    }

    fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a String> + 'a> {
        Box::new(std::iter::once(&self.0))
    }
}

impl<const MOST: usize, const LEAST: usize> ParseFromJSON for Text<MOST, LEAST> {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        String::parse_from_json(value).map(Self).map_err(ParseError::propagate)
    }
}

impl<const MOST: usize, const LEAST: usize> ToJSON for Text<MOST, LEAST> {
    fn to_json(&self) -> Option<Value> {
        Some(self.0.clone().into())
    }
}
