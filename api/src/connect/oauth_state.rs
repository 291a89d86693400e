//! The OAuth `state` parameter.
//!
//! It contains the authorization's id, owner and expiry; the rest is in [`store::accounts::oauth_states`], since X limits it
//! to 500 characters. It is encrypted and authenticated, so that it can't be forged and does not reveal the
//! owner. The PKCE verifier is derived from the id and never stored.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{Mode, OrgId, Owner, StateId};
use hkdf::Hkdf;
use sha2::Sha256;
use std::fmt;
use uuid::Uuid;

/// Lifetime of a state.
pub const TTL: TimeDelta = TimeDelta::minutes(15);

/// Associated data, so that no other sealed value passes for a state.
const LABEL: &[u8] = b"fanfare state 1";
/// Length of a nonce: long enough to be random.
const NONCE_BYTES: usize = 24;
/// Length of the plaintext: id, organization, mode, expiry.
const STATE_BYTES: usize = 16 + 16 + 1 + 8;

/// An authorization in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Id of the authorization.
    pub id: StateId,
    /// Owner of the authorization.
    pub owner: Owner,
    /// Expiry time, to the second.
    pub expires_at: DateTime<Utc>,
    /// True if the login begins on our page, which binds it to the browser.
    pub is_hosted: bool,
}

/// Error of opening a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The state is authentic and has expired.
    Expired(State),
    /// The state is not authentic.
    Forged,
}

/// Seals and opens states. Prints as `***`.
#[derive(Clone)]
pub struct Key {
    states: [u8; 32],
    verifiers: [u8; 32],
}

impl Key {
    /// Derives the key from the installation's secret.
    pub fn derive(secret: &[u8; 32]) -> Self {
        Self { states: expand(secret, LABEL), verifiers: expand(secret, b"fanfare pkce 1") }
    }

    /// Seals a state.
    pub fn seal(&self, state: &State) -> String {
        let mode = match (state.owner.mode, state.is_hosted) {
            (Mode::Live, false) => 0,
            (Mode::Test, false) => 1,
            (Mode::Live, true) => 2,
            (Mode::Test, true) => 3,
        };
        let end = state.expires_at.timestamp().to_be_bytes();
        let plain = [state.id.0.as_bytes(), state.owner.org.0.as_bytes(), &[mode][..], &end].concat();
        let nonce = rand::random::<[u8; NONCE_BYTES]>();
        let sealed = self
            .cipher()
            .encrypt(&XNonce::from(nonce), Payload { msg: &plain, aad: LABEL })
            .expect("so few bytes can be sealed");
        BASE64_URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat())
    }

    /// Opens a sealed state.
    ///
    /// # Errors
    ///
    /// If it is forged or has expired.
    pub fn open(&self, text: &str, now: DateTime<Utc>) -> Result<State, Refusal> {
        let state = self.read(text).ok_or(Refusal::Forged)?;
        if state.expires_at <= now { Err(Refusal::Expired(state)) } else { Ok(state) }
    }

    /// The PKCE verifier of an authorization: 43 characters, derived from the key.
    pub fn verifier(&self, id: StateId) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(expand(&self.verifiers, id.0.as_bytes()))
    }

    fn read(&self, text: &str) -> Option<State> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        let plain = self.cipher().decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: LABEL }).ok()?;
        let plain: [u8; STATE_BYTES] = plain.try_into().ok()?;
        let (id, rest) = plain.split_at(16);
        let (org, rest) = rest.split_at(16);
        let (mode, end) = rest.split_first()?;
        Some(State {
            id: StateId(Uuid::from_slice(id).ok()?),
            owner: Owner {
                org: OrgId(Uuid::from_slice(org).ok()?),
                mode: if mode % 2 == 0 { Mode::Live } else { Mode::Test },
            },
            is_hosted: mode / 2 == 1,
            expires_at: DateTime::from_timestamp(i64::from_be_bytes(end.try_into().ok()?), 0)?,
        })
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&self.states.into())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Derives 32 bytes from `secret` for one purpose. <https://www.rfc-editor.org/rfc/rfc5869>
pub fn expand(secret: &[u8; 32], purpose: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    Hkdf::<Sha256>::new(None, secret).expand(purpose, &mut bytes).expect("32 bytes can be expanded");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
    }

    fn state(mode: Mode) -> State {
        let owner = Owner { org: OrgId(Uuid::from_u128(1)), mode };
        State { id: StateId(Uuid::from_u128(2)), owner, expires_at: at(900), is_hosted: false }
    }

    #[test]
    fn what_comes_back_in_time_is_what_went_out() {
        let key = Key::derive(&[7; 32]);
        for mode in [Mode::Live, Mode::Test] {
            let text = key.seal(&state(mode));
            assert!(text.len() <= 128, "X takes 500 characters and some platforms fewer: {}", text.len());
            assert_eq!(key.open(&text, at(899)), Ok(state(mode)));
            assert_eq!(key.open(&text, at(900)), Err(Refusal::Expired(state(mode))));
            assert_ne!(key.seal(&state(mode)), text);
            let hosted = State { is_hosted: true, ..state(mode) };
            assert_eq!(key.open(&key.seal(&hosted), at(0)), Ok(hosted));
        }
    }

    #[test]
    fn what_was_changed_or_made_up_is_told() {
        let key = Key::derive(&[7; 32]);
        let text = key.seal(&state(Mode::Live));
        for at_byte in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at_byte] = if changed[at_byte] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(key.open(&changed, at(0)), Err(Refusal::Forged), "{changed}");
        }
        for made_up in ["", "a", "====", "é", &text[1..], &format!("{text}A"), &"A".repeat(108)] {
            assert_eq!(key.open(made_up, at(0)), Err(Refusal::Forged), "{made_up}");
        }
        assert_eq!(Key::derive(&[8; 32]).open(&text, at(0)), Err(Refusal::Forged));
    }

    #[test]
    fn a_verifier_is_long_enough_and_belongs_to_one_authorization() {
        let key = Key::derive(&[7; 32]);
        let ids = (0..8).map(|id| StateId(Uuid::from_u128(id)));
        let verifiers: HashSet<_> = ids.map(|id| key.verifier(id)).collect();
        assert!(verifiers.len() == 8 && verifiers.iter().all(|verifier| verifier.len() == 43));
        let id = StateId(Uuid::from_u128(1));
        assert_eq!(key.verifier(id), key.clone().verifier(id));
        assert_ne!(key.verifier(id), Key::derive(&[8; 32]).verifier(id));
        assert_eq!(format!("{key:?}"), "***");
    }
}
