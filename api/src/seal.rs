//! Small values that travel through a browser and come back: encrypted and authenticated, each for one purpose and
//! until a time.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use chrono::{DateTime, TimeDelta, Utc};
use std::fmt;

/// Length of a nonce: long enough to be random.
const NONCE_BYTES: usize = 24;

/// Seals and opens values. Prints as `***`.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// Takes a key that is used for nothing else.
    pub fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// Seals a value that can be opened for `ttl`, for the same purpose only.
    pub fn seal(&self, purpose: &str, value: &[u8], ttl: TimeDelta, now: DateTime<Utc>) -> String {
        let plain = [&(now + ttl).timestamp().to_be_bytes()[..], value].concat();
        let nonce = rand::random::<[u8; NONCE_BYTES]>();
        let payload = Payload { msg: &plain, aad: purpose.as_bytes() };
        let sealed =
            self.cipher().encrypt(&XNonce::from(nonce), payload).expect("so few bytes can be sealed");
        BASE64_URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat())
    }

    /// Opens a value; `None` if it is forged or was sealed for another purpose, or its time is over.
    pub fn open(&self, purpose: &str, text: &str, now: DateTime<Utc>) -> Option<Vec<u8>> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        let payload = Payload { msg: sealed, aad: purpose.as_bytes() };
        let plain = self.cipher().decrypt(&XNonce::from(*nonce), payload).ok()?;
        let (end, value) = plain.split_first_chunk::<8>()?;
        (now.timestamp() < i64::from_be_bytes(*end)).then(|| value.to_vec())
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&self.0.into())
    }
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
    fn a_value_is_opened_for_its_purpose_and_in_time_only() {
        let (key, now) = (Key([7; 32]), DateTime::from_timestamp(1_800_000_000, 0).unwrap());
        let text = key.seal("one", b"value", TimeDelta::minutes(5), now);
        assert_eq!(key.open("one", &text, now).unwrap(), b"value");
        assert!(key.open("one", &text, now + TimeDelta::minutes(5)).is_none(), "its time is over");
        assert!(key.open("other", &text, now).is_none());
        assert!(Key([8; 32]).open("one", &text, now).is_none());
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert!(key.open("one", std::str::from_utf8(&changed).unwrap(), now).is_none(), "{at}");
        }
        assert_eq!(format!("{key:?}"), "***");
    }
}
