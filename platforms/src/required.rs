//! Members that an answer must have with a usable value.
//!
//! An id is stored, indexed and put into URLs, a token into a header. A platform that sends an empty one sent an
//! answer that can't be read: a publishing call that got it is looked up, and a grant is not replaced by it.

use serde::{Deserialize, Deserializer, de::Error};

/// Longest id, in bytes: Postgres indexes at most 2,704.
const MAX_ID_BYTES: usize = 512;

/// Returns true for a text that can be an id.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() <= MAX_ID_BYTES && is_filled(text)
}

/// Reads an id.
pub(crate) fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    read(deserializer, is_id, "an id")
}

/// Reads an id that may be missing.
pub(crate) fn id_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let id: Option<String> = Option::deserialize(deserializer)?;
    if id.as_deref().is_none_or(is_id) { Ok(id) } else { Err(D::Error::custom("expected an id")) }
}

/// Reads a token.
pub(crate) fn token<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    read(deserializer, is_filled, "a token")
}

fn is_filled(text: &str) -> bool {
    let is_unusable = |c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER;
    !text.trim().is_empty() && !text.chars().any(is_unusable)
}

/// The error does not quote the text, which may be a secret.
fn read<'de, D: Deserializer<'de>>(
    deserializer: D,
    is_usable: fn(&str) -> bool,
    what: &str,
) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if is_usable(&text) { Ok(text) } else { Err(D::Error::custom(format_args!("expected {what}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_not_empty_and_fits_the_index() {
        for id in ["7", "urn:li:share:1", "at://did:plc:a/app.bsky.feed.post/b", &"7".repeat(MAX_ID_BYTES)] {
            assert!(is_id(id), "{id}");
        }
        for text in ["", " ", "a\nb", "a\u{fffd}b", &"7".repeat(MAX_ID_BYTES + 1)] {
            assert!(!is_id(text), "{text:?}");
        }
    }
}
