//! Absolute URLs.

use crate::types::scalar::scalar;
use poem_openapi::registry::{MetaSchema, MetaSchemaRef};
use url::Url;

/// Maximum length of a URL, in bytes; presigned URLs have a few thousand.
const MAX_BYTES: usize = 8192;

/// An absolute URL, kept both as written and as parsed. Only the own schemes of apps may have no host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The URL as written.
    pub text: String,
    /// The parsed URL.
    pub url: Url,
}

impl Link {
    /// Parses a URL of at most 8192 bytes.
    pub fn read(text: &str) -> Option<Self> {
        if text.len() > MAX_BYTES {
            return None;
        }
        let url = Url::parse(text).ok().filter(|url| !url.cannot_be_a_base())?;
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
