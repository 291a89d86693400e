//! Signed tokens that allow their holder one operation on one file, for a limited time.
//!
//! The key is derived from the installation's secret with HKDF, so it reveals neither the secret nor other
//! derived keys. A token is signed, not encrypted: it contains the owner and the expiry.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use domain::{MediaId, Mode, OrgId, Owner};
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use uuid::Uuid;

/// Length of the signature in bytes.
const TAG_BYTES: usize = 32;

/// The operation that a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Upload the file.
    Put,
    /// Download the file.
    Get,
}

/// Content of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedToken {
    /// Asset id.
    pub media: MediaId,
    /// Owner of the asset.
    pub owner: Owner,
    /// Expiry, in whole seconds.
    pub expires_at: DateTime<Utc>,
}

/// Key that signs tokens. Prints as `***`.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// Derives the key from the installation's secret.
    pub fn derive(secret: &[u8; 32]) -> Self {
        let mut key = [0; 32];
        Hkdf::<Sha256>::new(None, secret)
            .expand(b"fanfare media 1", &mut key)
            .expect("32 bytes can be expanded");
        Self(key)
    }

    /// Encodes a token. It does not contain the asset id, which the URL has anyway.
    pub fn write(&self, permission: Permission, token: &SignedToken) -> String {
        let terms = terms(token);
        let tag = self.sign(permission, token.media, &terms).finalize().into_bytes();
        BASE64_URL_SAFE_NO_PAD.encode([&tag[..], &terms].concat())
    }

    /// Verifies a token for this asset; `None` if it is invalid or expired.
    pub fn read(
        &self,
        permission: Permission,
        media: MediaId,
        text: &str,
        now: DateTime<Utc>,
    ) -> Option<SignedToken> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let (tag, terms) = bytes.split_at_checked(TAG_BYTES)?;
        self.sign(permission, media, terms).verify_slice(tag).ok()?;
        let (end, rest) = terms.split_first_chunk::<8>()?;
        let (mode, org) = rest.split_first()?;
        let expires_at = DateTime::from_timestamp(i64::from_be_bytes(*end), 0)?;
        let mode = if *mode == 0 { Mode::Live } else { Mode::Test };
        let owner = Owner { org: OrgId(Uuid::from_slice(org).ok()?), mode };
        (now < expires_at).then_some(SignedToken { media, owner, expires_at })
    }

    fn sign(&self, permission: Permission, media: MediaId, terms: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(match permission {
            Permission::Put => b"put",
            Permission::Get => b"get",
        });
        mac.update(media.0.as_bytes());
        mac.update(terms);
        mac
    }
}

fn terms(token: &SignedToken) -> Vec<u8> {
    let mode = match token.owner.mode {
        Mode::Live => 0,
        Mode::Test => 1,
    };
    [&token.expires_at.timestamp().to_be_bytes()[..], &[mode], token.owner.org.0.as_bytes()].concat()
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_allows_one_operation_on_one_file_until_it_expires() {
        let key = Key::derive(&[7; 32]);
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        let media = MediaId(Uuid::from_u128(1));
        let owner = Owner { org: OrgId(Uuid::from_u128(2)), mode: Mode::Test };
        let pass = SignedToken { media, owner, expires_at: at(100) };
        let text = key.write(Permission::Put, &pass);
        assert_eq!(key.read(Permission::Put, media, &text, at(99)), Some(pass));
        assert_eq!(key.read(Permission::Put, media, &text, at(100)), None);
        assert_eq!(key.read(Permission::Get, media, &text, at(99)), None);
        assert_eq!(key.read(Permission::Put, MediaId(Uuid::from_u128(3)), &text, at(99)), None);
        assert_eq!(Key::derive(&[8; 32]).read(Permission::Put, media, &text, at(99)), None);
        for index in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(key.read(Permission::Put, media, &changed, at(99)), None, "{changed}");
        }
        for text in ["", "a", "é", &text[4..]] {
            assert_eq!(key.read(Permission::Put, media, text, at(99)), None, "{text}");
        }
    }
}
