//! Absolute URLs in a body.

use crate::types::scalar::scalar;
use poem_openapi::registry::{MetaSchema, MetaSchemaRef};
use url::Url;

/// The longest URL, in bytes: addresses that are signed for a time have a few thousand.
const MAX_BYTES: usize = 8192;

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
        if text.len() > MAX_BYTES {
            return None;
        }
        let url = Url::parse(text).ok().filter(Url::has_host)?;
        Some(Self { text: text.to_owned(), url })
    }
}

/// For validators of a field.
impl AsRef<str> for Link {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

scalar! {
    [] Link {
        name: "string_uri",
        schema: MetaSchemaRef::Inline(Box::new(MetaSchema::new_with_format("string", "uri"))),
        parse: |value| value.as_str().and_then(Self::read).ok_or(value),
        write: |link| link.text.clone().into(),
    }
}
