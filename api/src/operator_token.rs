//! The token that opens the operators' pages.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::{fmt, str::FromStr};

/// Minimum length, in characters: it is compared, not hashed slowly, so it must not be a password that people choose.
const MIN_LENGTH: usize = 32;

/// The operators' token.
#[derive(Clone)]
pub struct OperatorToken(String);

impl OperatorToken {
    /// True if it is this text. Takes as long for any text.
    pub fn is(&self, presented: &str) -> bool {
        let expected = self.mac("compare", &self.0).finalize().into_bytes();
        self.mac("compare", presented).verify(&expected).is_ok()
    }

    /// Identifies the token in stored sessions, without disclosing it.
    pub fn credential(&self) -> Vec<u8> {
        self.mac("session", "").finalize().into_bytes().to_vec()
    }

    fn mac(&self, purpose: &str, text: &str) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(self.0.as_bytes()).expect("HMAC takes keys of any length");
        mac.chain_update(purpose).chain_update([0]).chain_update(text)
    }
}

impl FromStr for OperatorToken {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.chars().count() < MIN_LENGTH {
            return Err(format!("use at least {MIN_LENGTH} random characters"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for OperatorToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_itself_is_accepted() {
        let text = "a".repeat(MIN_LENGTH);
        let token: OperatorToken = text.parse().unwrap();
        assert!(token.is(&text));
        for other in ["", "a", &"b".repeat(MIN_LENGTH), &"a".repeat(MIN_LENGTH + 1)] {
            assert!(!token.is(other), "{other}");
        }
        let other: OperatorToken = "b".repeat(MIN_LENGTH).parse().unwrap();
        assert_eq!(token.credential(), token.clone().credential());
        assert_ne!(token.credential(), other.credential());
        assert!("a".repeat(MIN_LENGTH - 1).parse::<OperatorToken>().is_err());
        assert_eq!(format!("{token:?}"), "***");
    }
}
