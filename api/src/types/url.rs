//! Absolute URLs in a body.

use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type},
};
use serde_json::Value;
use std::borrow::Cow;
use url::Url;

/// The longest URL, in bytes: addresses that are signed for a time have a few thousand.
const LONGEST: usize = 8192;

/// An absolute URL with a host. It is kept as it was written; what is done with it goes by how it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// As it was written.
    pub text: String,
    /// As it is read.
    pub url: Url,
}

impl Link {
    /// Reads a URL of at most 8192 bytes.
    pub fn read(text: &str) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let url = Url::parse(text).ok().filter(Url::has_host)?;
        Some(Self { text: text.to_owned(), url })
    }
}

impl Type for Link {
    const IS_REQUIRED: bool = true;
    type RawValueType = String;
    type RawElementValueType = String;

    fn name() -> Cow<'static, str> {
        "string_uri".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Inline(Box::new(MetaSchema::new_with_format("string", "uri")))
    }

    fn as_raw_value(&self) -> Option<&String> {
        Some(&self.text)
    }

    fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a String> + 'a> {
        Box::new(std::iter::once(&self.text))
    }
}

impl ParseFromJSON for Link {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        let value = value.unwrap_or_default();
        value.as_str().and_then(Self::read).ok_or_else(|| ParseError::expected_type(value.clone()))
    }
}

impl ToJSON for Link {
    fn to_json(&self) -> Option<Value> {
        Some(self.text.clone().into())
    }
}
