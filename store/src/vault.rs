//! Sealing of what must not be readable in the database: platform grants, client secrets and signing
//! secrets.
//!
//! HPKE (RFC 9180) in base mode with X25519, HKDF-SHA256 and ChaCha20-Poly1305: who holds a public
//! key seals, only who holds the private key opens. So the API process, which faces the world, has
//! nothing that opens. The associated data names the row, so that a sealed value does not open in
//! another one's place. <https://www.rfc-editor.org/rfc/rfc9180>

use crate::pending_logins::Digest;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use domain::{AccountId, NetworkId, Owner, WebhookId};
use hpke::{
    Deserializable, Kem as _, OpModeR, OpModeS, Serializable, aead::ChaCha20Poly1305, kdf::HkdfSha256,
    kem::X25519HkdfSha256, single_shot_open, single_shot_seal_with_rng,
};
use std::{fmt, num::ParseIntError, str::FromStr};

type Suite = X25519HkdfSha256;
type Public = <Suite as hpke::Kem>::PublicKey;
type Private = <Suite as hpke::Kem>::PrivateKey;
type Encapsulated = <Suite as hpke::Kem>::EncappedKey;

/// The layout of sealed bytes: version, key id (big endian), encapsulated key, ciphertext.
const VERSION: u8 = 1;
const HEADER: usize = 5;
const ENCAPSULATED: usize = 32;

/// Which key sealed something, so that keys can be changed while older values remain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub u32);

/// A key that seals.
#[derive(Clone)]
pub struct PublicKey(Public);

/// A key that opens. Prints as `***`.
#[derive(Clone)]
pub struct PrivateKey(Private);

/// Seals with one public key. Its text form is `id:key`.
#[derive(Clone, Debug)]
pub struct Sealer {
    id: KeyId,
    key: PublicKey,
}

/// Opens what any key of its ring sealed. Its text form is `id:key,id:key`, the current key first.
#[derive(Clone, Debug)]
pub struct Opener {
    current: (KeyId, PrivateKey),
    older: Vec<(KeyId, PrivateKey)>,
}

/// Why something did not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Nothing that a vault seals looks like it.
    #[error("these bytes were not sealed by a vault")]
    Malformed,
    /// Its key is not in the ring.
    #[error("sealed with key {}, which is not in the ring", .0.0)]
    UnknownKey(KeyId),
    /// It was changed, belongs to another row, or another key has the same id.
    #[error("sealed for another row or another key, or changed since")]
    Refused,
}

/// Why a text is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is not 32 bytes in base64url, or no point that a secret can be agreed with.
    #[error("a key is 32 bytes in base64url")]
    Key,
    /// There is no `id:` in front of it.
    #[error("a key is written as id:key")]
    Pair,
    /// Its id is no number.
    #[error("a key's id is a number: {0}")]
    Id(#[from] ParseIntError),
    /// Two keys have the same id.
    #[error("key id {0} is there twice")]
    Twice(u32),
}

impl PrivateKey {
    /// A new key from the operating system's randomness.
    pub fn generate() -> Self {
        Self(Suite::gen_keypair_with_rng(&mut rand::rng()).0)
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(Suite::sk_to_pk(&self.0))
    }

    /// The text form, for the one place where it is kept.
    pub fn reveal(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.0.to_bytes())
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl FromStr for PrivateKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Private::from_bytes(&bytes(text)?).map(Self).map_err(|_| KeyError::Key)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64_URL_SAFE_NO_PAD.encode(self.0.to_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let key = Self(Public::from_bytes(&bytes(text)?).map_err(|_| KeyError::Key)?);
        // Points of small order are found out by trying: no secret can be agreed with them.
        encrypt(&key, &[], &[], &[]).map(|_| key.clone()).ok_or(KeyError::Key)
    }
}

impl Sealer {
    /// Seals with this key.
    pub fn new(id: KeyId, key: PublicKey) -> Self {
        Self { id, key }
    }

    /// Which key it seals with.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Seals a value to the row that `aad` names.
    pub fn seal(&self, plaintext: &[u8], aad: &[u8]) -> Vec<u8> {
        let header = header(self.id);
        let (encapsulated, ciphertext) =
            encrypt(&self.key, &header, plaintext, aad).expect("a key that was read or generated agrees");
        [&header[..], &encapsulated, &ciphertext].concat()
    }
}

impl fmt::Display for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.id.0, self.key)
    }
}

impl FromStr for Sealer {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (id, key) = pair(text)?;
        Ok(Self { id, key })
    }
}

impl Opener {
    /// Opens what `current` or one of the older keys sealed.
    pub fn new(current: (KeyId, PrivateKey), older: impl IntoIterator<Item = (KeyId, PrivateKey)>) -> Self {
        Self { current, older: older.into_iter().collect() }
    }

    /// Seals with the current key.
    pub fn sealer(&self) -> Sealer {
        Sealer { id: self.current.0, key: self.current.1.public() }
    }

    /// Opens a value of the row that `aad` names.
    ///
    /// # Errors
    ///
    /// When it was not sealed for this row with a key of the ring.
    pub fn open(&self, sealed: &[u8], aad: &[u8]) -> Result<Vec<u8>, OpenError> {
        let id = sealed_with(sealed).ok_or(OpenError::Malformed)?;
        let (header, rest) = sealed.split_at(HEADER);
        let (encapsulated, ciphertext) = rest.split_at_checked(ENCAPSULATED).ok_or(OpenError::Malformed)?;
        let encapsulated = Encapsulated::from_bytes(encapsulated).map_err(|_| OpenError::Malformed)?;
        let (_, key) = std::iter::once(&self.current)
            .chain(&self.older)
            .find(|(known, _)| *known == id)
            .ok_or(OpenError::UnknownKey(id))?;
        single_shot_open::<ChaCha20Poly1305, HkdfSha256, Suite>(
            &OpModeR::Base,
            &key.0,
            &encapsulated,
            header,
            ciphertext,
            aad,
        )
        .map_err(|_| OpenError::Refused)
    }

    /// Whether a value should be sealed anew because another key is the current one.
    pub fn is_stale(&self, sealed: &[u8]) -> bool {
        sealed_with(sealed) != Some(self.current.0)
    }
}

impl FromStr for Opener {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut ring: Vec<(KeyId, PrivateKey)> = Vec::new();
        for text in text.split(',') {
            let (id, key) = pair(text)?;
            if ring.iter().any(|(known, _)| *known == id) {
                return Err(KeyError::Twice(id.0));
            }
            ring.push((id, key));
        }
        let current = ring.remove(0);
        Ok(Self { current, older: ring })
    }
}

/// The key that sealed something, or `None` when no vault did.
pub fn sealed_with(sealed: &[u8]) -> Option<KeyId> {
    match sealed {
        [VERSION, a, b, c, d, ..] => Some(KeyId(u32::from_be_bytes([*a, *b, *c, *d]))),
        _ => None,
    }
}

/// What the grant of an account is sealed to.
pub fn aad_grant(owner: Owner, account: AccountId) -> Vec<u8> {
    format!("accounts.grant:{}:{}:{account}", owner.org, owner.mode).into_bytes()
}

/// What the client secret of an OAuth app is sealed to.
pub fn aad_client_secret(owner: Owner, network: NetworkId) -> Vec<u8> {
    format!("networks.secret:{}:{}:{network}", owner.org, owner.mode).into_bytes()
}

/// What a secret that somebody logs in with is sealed to, on its way to a worker.
pub fn aad_login(owner: Owner, platform: &str) -> Vec<u8> {
    format!("login:{}:{}:{platform}", owner.org, owner.mode).into_bytes()
}

/// What the grants of a login that waits for a choice are sealed to.
pub fn aad_pending(owner: Owner, digest: Digest) -> Vec<u8> {
    format!("pending_logins.grants:{}:{}:{digest}", owner.org, owner.mode).into_bytes()
}

/// What the signing secret of a webhook endpoint is sealed to.
pub fn aad_webhook_secret(owner: Owner, webhook: WebhookId) -> Vec<u8> {
    format!("webhooks.secret:{}:{}:{webhook}", owner.org, owner.mode).into_bytes()
}

fn encrypt(key: &PublicKey, header: &[u8], plaintext: &[u8], aad: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (encapsulated, ciphertext) = single_shot_seal_with_rng::<ChaCha20Poly1305, HkdfSha256, Suite>(
        &OpModeS::Base,
        &key.0,
        // The header goes into the key schedule: changing it makes the rest unreadable.
        header,
        plaintext,
        aad,
        &mut rand::rng(),
    )
    .ok()?;
    Some((encapsulated.to_bytes().to_vec(), ciphertext))
}

/// What everything begins with that a key sealed.
pub(crate) fn header(id: KeyId) -> [u8; HEADER] {
    let [a, b, c, d] = id.0.to_be_bytes();
    [VERSION, a, b, c, d]
}

fn bytes(text: &str) -> Result<Vec<u8>, KeyError> {
    BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| KeyError::Key)
}

fn pair<K: FromStr<Err = KeyError>>(text: &str) -> Result<(KeyId, K), KeyError> {
    let (id, key) = text.trim().split_once(':').ok_or(KeyError::Pair)?;
    Ok((KeyId(id.parse()?), key.parse()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(id: u32) -> Opener {
        Opener::new((KeyId(id), PrivateKey::generate()), [])
    }

    #[test]
    fn what_is_sealed_opens_and_never_looks_the_same() {
        let opener = ring(7);
        let (one, other) = (opener.sealer().seal(b"token", b"row"), opener.sealer().seal(b"token", b"row"));
        assert_eq!(opener.open(&one, b"row").unwrap(), b"token");
        assert_eq!(sealed_with(&one), Some(KeyId(7)));
        assert_ne!(one, other);
    }

    #[test]
    fn another_row_another_key_or_a_changed_bit_does_not_open() {
        let opener = ring(1);
        let sealed = opener.sealer().seal(b"token", b"row");
        assert_eq!(opener.open(&sealed, b"another row"), Err(OpenError::Refused));
        assert_eq!(ring(1).open(&sealed, b"row"), Err(OpenError::Refused));
        assert_eq!(ring(2).open(&sealed, b"row"), Err(OpenError::UnknownKey(KeyId(1))));
        assert_eq!(opener.open(&sealed[..20], b"row"), Err(OpenError::Malformed));
        assert_eq!(opener.open(b"", b"row"), Err(OpenError::Malformed));
        for byte in [0, 4, HEADER, HEADER + ENCAPSULATED, sealed.len() - 1] {
            let mut changed = sealed.clone();
            changed[byte] ^= 1;
            assert!(opener.open(&changed, b"row").is_err(), "byte {byte}");
        }
    }

    #[test]
    fn a_header_of_another_key_id_does_not_open_with_the_same_key() {
        let key = PrivateKey::generate();
        let both = Opener::new((KeyId(1), key.clone()), [(KeyId(2), key)]);
        let mut sealed = both.sealer().seal(b"token", b"row");
        sealed[4] = 2;
        assert_eq!(both.open(&sealed, b"row"), Err(OpenError::Refused));
    }

    #[test]
    fn older_keys_of_the_ring_open_and_the_current_one_seals() {
        let (old, new) = (PrivateKey::generate(), PrivateKey::generate());
        let sealed = Sealer::new(KeyId(1), old.public()).seal(b"token", b"row");
        let rotated: Opener = format!("2:{},1:{}", new.reveal(), old.reveal()).parse().unwrap();
        assert_eq!(rotated.open(&sealed, b"row").unwrap(), b"token");
        assert!(rotated.is_stale(&sealed));
        let again = rotated.sealer().seal(b"token", b"row");
        assert_eq!(sealed_with(&again), Some(KeyId(2)));
        assert!(!rotated.is_stale(&again));
    }

    #[test]
    fn keys_read_back_as_written_and_secrets_do_not_print() {
        let key = PrivateKey::generate();
        let opener: Opener = format!("3:{}", key.reveal()).parse().unwrap();
        let sealer: Sealer = opener.sealer().to_string().parse().unwrap();
        assert_eq!(opener.open(&sealer.seal(b"token", b"row"), b"row").unwrap(), b"token");
        assert!(!format!("{opener:?}").contains(&key.reveal()));
        assert!(format!("{opener:?}").contains("***"));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let key = PrivateKey::generate().reveal();
        assert_eq!("".parse::<Opener>().unwrap_err(), KeyError::Pair);
        assert_eq!(key.parse::<Opener>().unwrap_err(), KeyError::Pair);
        assert_eq!(format!("1:{key},1:{key}").parse::<Opener>().unwrap_err(), KeyError::Twice(1));
        assert!(matches!(format!("a:{key}").parse::<Opener>().unwrap_err(), KeyError::Id(_)));
        assert_eq!("1:short".parse::<Opener>().unwrap_err(), KeyError::Key);
        // The all-zero point has small order.
        let zero = BASE64_URL_SAFE_NO_PAD.encode([0; 32]);
        assert_eq!(zero.parse::<PublicKey>().unwrap_err(), KeyError::Key);
    }
}
