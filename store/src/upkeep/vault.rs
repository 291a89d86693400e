//! Encryption of secrets at rest: platform grants, client secrets and signing secrets.
//!
//! HPKE (RFC 9180) in base mode with X25519, HKDF-SHA256 and ChaCha20-Poly1305: the public key seals, only
//! the private key opens. So the API process, which is exposed to the network, can't open anything. The
//! associated data names the row, so that a sealed value doesn't open in the place of another.
//! <https://www.rfc-editor.org/rfc/rfc9180>

use crate::accounts::pending_logins::Digest;
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

/// Version of the layout of sealed bytes: version, key id (big endian), encapsulated key, ciphertext.
const VERSION: u8 = 1;
const HEADER: usize = 5;
const ENCAPSULATED: usize = 32;

/// Id of a key, so that keys can be rotated while older values remain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub u32);

/// A key that seals.
#[derive(Clone)]
pub struct PublicKey(Public);

/// A key that opens. Its `Debug` form is `***`.
#[derive(Clone)]
pub struct PrivateKey(Private);

/// Seals with one public key. Parsed from `id:key`.
#[derive(Clone, Debug)]
pub struct Sealer {
    id: KeyId,
    key: PublicKey,
}

/// Opens values sealed with any key of its ring. Parsed from `id:key,id:key`, the current key first.
#[derive(Clone, Debug)]
pub struct Opener {
    current: (KeyId, PrivateKey),
    older: Vec<(KeyId, PrivateKey)>,
}

/// Why a value can't be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The bytes don't have the layout of a sealed value.
    #[error("not a sealed value")]
    Malformed,
    /// The key is not in the ring.
    #[error("sealed with key {}, which is not in the ring", .0.0)]
    UnknownKey(KeyId),
    /// The value was changed, belongs to another row, or was sealed with another key of the same id.
    #[error("sealed for another row or with another key, or modified")]
    Refused,
}

/// Why a text is not a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The key is not 32 bytes in base64url, or a point of small order.
    #[error("a key is 32 bytes in base64url")]
    Key,
    /// The `id:` prefix is missing.
    #[error("a key has the form id:key")]
    Pair,
    /// The id is not a number.
    #[error("invalid key id: {0}")]
    Id(#[from] ParseIntError),
    /// Two keys have the same id.
    #[error("key id {0} is used twice")]
    Twice(u32),
}

impl PrivateKey {
    /// Generates a key from the operating system's randomness.
    pub fn generate() -> Self {
        Self(Suite::gen_keypair_with_rng(&mut rand::rng()).0)
    }

    /// Returns the public key.
    pub fn public(&self) -> PublicKey {
        PublicKey(Suite::sk_to_pk(&self.0))
    }

    /// Returns the text form, to be stored by the operator.
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
        Private::from_bytes(&decode_key(text)?).map(Self).map_err(|_| KeyError::Key)
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
        let key = Self(Public::from_bytes(&decode_key(text)?).map_err(|_| KeyError::Key)?);
        // A trial detects points of small order: encryption to them fails.
        encrypt(&key, &[], &[], &[]).map(|_| key.clone()).ok_or(KeyError::Key)
    }
}

impl Sealer {
    /// Creates a sealer with this key.
    pub fn new(id: KeyId, key: PublicKey) -> Self {
        Self { id, key }
    }

    /// Returns the id of the key.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Seals a value for the row that `aad` names.
    pub fn seal(&self, plaintext: &[u8], aad: &[u8]) -> Vec<u8> {
        let header = header(self.id);
        let (encapsulated, ciphertext) = encrypt(&self.key, &header, plaintext, aad)
            .expect("a parsed or generated key is not of small order");
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
        let (id, key) = parse_pair(text)?;
        Ok(Self { id, key })
    }
}

impl Opener {
    /// Creates a vault that opens values sealed with `current` or one of the older keys.
    pub fn new(current: (KeyId, PrivateKey), older: impl IntoIterator<Item = (KeyId, PrivateKey)>) -> Self {
        Self { current, older: older.into_iter().collect() }
    }

    /// Returns a sealer with the current key.
    pub fn sealer(&self) -> Sealer {
        Sealer { id: self.current.0, key: self.current.1.public() }
    }

    /// Opens a value of the row that `aad` names.
    ///
    /// # Errors
    ///
    /// When the value was not sealed for this row with a key of the ring.
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

    /// Returns whether a value should be resealed because its key is not the current one.
    pub fn is_stale(&self, sealed: &[u8]) -> bool {
        sealed_with(sealed) != Some(self.current.0)
    }
}

impl FromStr for Opener {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut ring: Vec<(KeyId, PrivateKey)> = Vec::new();
        for text in text.split(',') {
            let (id, key) = parse_pair(text)?;
            if ring.iter().any(|(known, _)| *known == id) {
                return Err(KeyError::Twice(id.0));
            }
            ring.push((id, key));
        }
        let current = ring.remove(0);
        Ok(Self { current, older: ring })
    }
}

/// Returns the id of the key that a value was sealed with; `None` when it is not a sealed value.
pub fn sealed_with(sealed: &[u8]) -> Option<KeyId> {
    match sealed {
        [VERSION, a, b, c, d, ..] => Some(KeyId(u32::from_be_bytes([*a, *b, *c, *d]))),
        _ => None,
    }
}

/// Returns the associated data of an account's grant.
pub fn aad_grant(owner: Owner, account: AccountId) -> Vec<u8> {
    format!("accounts.grant:{}:{}:{account}", owner.org, owner.mode).into_bytes()
}

/// Returns the associated data of an OAuth app's client secret.
pub fn aad_client_secret(owner: Owner, network: NetworkId) -> Vec<u8> {
    format!("networks.secret:{}:{}:{network}", owner.org, owner.mode).into_bytes()
}

/// Returns the associated data of a login password on its way to a worker.
pub fn aad_login(owner: Owner, platform: &str) -> Vec<u8> {
    format!("login:{}:{}:{platform}", owner.org, owner.mode).into_bytes()
}

/// Returns the associated data of a post's content on its way to a worker that looks it up.
pub fn aad_look_up(owner: Owner, platform: &str) -> Vec<u8> {
    format!("look_up:{}:{}:{platform}", owner.org, owner.mode).into_bytes()
}

/// Associated data of a code of the OpenID provider on its way to a worker.
pub const AAD_OPENID: &[u8] = b"openid";

/// Returns the associated data of a pending login's grants.
pub fn aad_pending(owner: Owner, digest: Digest) -> Vec<u8> {
    format!("pending_logins.grants:{}:{}:{digest}", owner.org, owner.mode).into_bytes()
}

/// Returns the associated data of a webhook endpoint's signing secret.
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

/// Returns the header of all values that a key seals.
pub(crate) fn header(id: KeyId) -> [u8; HEADER] {
    let [a, b, c, d] = id.0.to_be_bytes();
    [VERSION, a, b, c, d]
}

fn decode_key(text: &str) -> Result<Vec<u8>, KeyError> {
    BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| KeyError::Key)
}

fn parse_pair<K: FromStr<Err = KeyError>>(text: &str) -> Result<(KeyId, K), KeyError> {
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
    fn a_sealed_value_opens_and_each_sealing_differs() {
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
    fn keys_are_parsed_back_and_secrets_are_not_printed() {
        let key = PrivateKey::generate();
        let opener: Opener = format!("3:{}", key.reveal()).parse().unwrap();
        let sealer: Sealer = opener.sealer().to_string().parse().unwrap();
        assert_eq!(opener.open(&sealer.seal(b"token", b"row"), b"row").unwrap(), b"token");
        assert!(!format!("{opener:?}").contains(&key.reveal()));
        assert!(format!("{opener:?}").contains("***"));
    }

    #[test]
    fn malformed_keys_are_rejected() {
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
