//! What opens one file to whoever holds it, for a while: signed, and good for one thing only.
//!
//! The key follows from the installation's secret and leads to nothing else that follows from it. A pass
//! hides nothing: it names whose file it is, and until when.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use domain::{MediaId, Mode, OrgId, Owner};
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use uuid::Uuid;

/// Bytes of the signature.
const TAG: usize = 32;

/// What a pass is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Sending the bytes.
    Put,
    /// Fetching them.
    Get,
}

/// Whose file, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedToken {
    /// The file.
    pub media: MediaId,
    /// Whose it is.
    pub owner: Owner,
    /// Until when, to the second.
    pub expires_at: DateTime<Utc>,
}

/// Signs passes. Prints as `***`.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// The key that follows from the installation's secret.
    pub fn derive(secret: &[u8; 32]) -> Self {
        let mut key = [0; 32];
        Hkdf::<Sha256>::new(None, secret)
            .expand(b"fanfare media 1", &mut key)
            .expect("32 bytes can be expanded");
        Self(key)
    }

    /// The text of a pass; the file is named beside it.
    pub fn write(&self, right: Permission, pass: &SignedToken) -> String {
        let terms = terms(pass);
        let tag = self.sign(right, pass.media, &terms).finalize().into_bytes();
        BASE64_URL_SAFE_NO_PAD.encode([&tag[..], &terms].concat())
    }

    /// The pass that a text is for this file; `None` when it never was one, or its time is over.
    pub fn read(
        &self,
        right: Permission,
        media: MediaId,
        text: &str,
        now: DateTime<Utc>,
    ) -> Option<SignedToken> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let (tag, terms) = bytes.split_at_checked(TAG)?;
        self.sign(right, media, terms).verify_slice(tag).ok()?;
        let (end, rest) = terms.split_first_chunk::<8>()?;
        let (mode, org) = rest.split_first()?;
        let expires_at = DateTime::from_timestamp(i64::from_be_bytes(*end), 0)?;
        let mode = if *mode == 0 { Mode::Live } else { Mode::Test };
        let owner = Owner { org: OrgId(Uuid::from_slice(org).ok()?), mode };
        (now < expires_at).then_some(SignedToken { media, owner, expires_at })
    }

    fn sign(&self, right: Permission, media: MediaId, terms: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(match right {
            Permission::Put => b"put",
            Permission::Get => b"get",
        });
        mac.update(media.0.as_bytes());
        mac.update(terms);
        mac
    }
}

fn terms(pass: &SignedToken) -> Vec<u8> {
    let mode = match pass.owner.mode {
        Mode::Live => 0,
        Mode::Test => 1,
    };
    [&pass.expires_at.timestamp().to_be_bytes()[..], &[mode], pass.owner.org.0.as_bytes()].concat()
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
    fn a_pass_is_good_for_one_thing_one_file_and_a_while() {
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
