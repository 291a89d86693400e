//! Secrets in the answers of platforms.
//!
//! Some platforms repeat a token in an error message, and a message is stored, logged and shown. So a reply is
//! masked before an adapter reads it: the secrets of the call, and the tokens that the reply itself contains.
//! Only [`crate::Reply::read_secrets`] reads what was sent.

use serde_json::Value;
use std::fmt;

/// Shortest secret that is masked, in bytes: a shorter one would also be found in ordinary text.
const MIN_BYTES: usize = 16;

/// Replacement of a secret.
const MASK: &str = "***";

/// Members that hold a token.
const TOKEN_MEMBERS: [&str; 5] = ["access_token", "refresh_token", "id_token", "accessJwt", "refreshJwt"];

/// Secrets to mask. Print as their number.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}

impl Secrets {
    /// Adds a secret.
    pub(crate) fn add(&mut self, secret: &str) {
        if secret.len() >= MIN_BYTES {
            self.0.push(secret.to_owned());
        }
    }

    /// Adds the tokens in a document.
    pub(crate) fn add_tokens(&mut self, document: &Value) {
        match document {
            Value::Object(members) => {
                for (name, value) in members {
                    match value {
                        Value::String(token) if TOKEN_MEMBERS.contains(&name.as_str()) => self.add(token),
                        _ => self.add_tokens(value),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.add_tokens(item)),
            _ => {}
        }
    }

    /// Returns true if a text contains one of them.
    pub(crate) fn are_in(&self, text: &str) -> bool {
        self.0.iter().any(|secret| text.contains(secret.as_str()))
    }

    /// Masks them in a text.
    pub(crate) fn mask(&self, text: &mut String) {
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                *text = text.replace(secret.as_str(), MASK);
            }
        }
    }

    /// Masks them in the texts of a document.
    pub(crate) fn mask_document(&self, document: &mut Value) {
        match document {
            Value::String(text) => self.mask(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_document(item)),
            Value::Object(members) => members.values_mut().for_each(|value| self.mask_document(value)),
            _ => {}
        }
    }
}
