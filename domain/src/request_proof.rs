//! Proof that a request to a worker comes from the API.
//!
//! A client that can start workflows could otherwise ask for what only the API may: the workers' task queues take any
//! workflow. The key is derived from the secret of the API, which workers may have and Temporal never sees.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

/// The purpose of the derived key, so that it differs from other keys of the same secret.
const LABEL: &[u8] = b"fanfare worker request 1";

/// Proves requests and checks proofs. Prints as `***`.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// Derives the key from the installation's secret.
    pub fn derive(secret: &[u8; 32]) -> Self {
        Self(mac(secret, [LABEL]).finalize().into_bytes().into())
    }

    /// Returns the proof of a request that consists of `parts`.
    pub fn prove<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> String {
        hex::encode(mac(&self.0, parts).finalize().into_bytes())
    }

    /// Returns true if `proof` was made for these parts.
    pub fn verify<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>, proof: &str) -> bool {
        // Compares in constant time.
        hex::decode(proof).is_ok_and(|proof| mac(&self.0, parts).verify_slice(&proof).is_ok())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Hashes the parts, each with its length, so that no two lists are alike.
fn mac<'a>(key: &[u8; 32], parts: impl IntoIterator<Item = &'a [u8]>) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_good_for_its_request_and_key_only() {
        let key = Key::derive(&[1; 32]);
        let request = [&b"reveal"[..], b"org", b"webhook"];
        let proof = key.prove(request);
        assert!(key.verify(request, &proof));
        for other in [[&b"reveal"[..], b"org", b"other"], [b"reveal", b"orgw", b"ebhook"]] {
            assert!(!key.verify(other, &proof));
        }
        assert!(!Key::derive(&[2; 32]).verify(request, &proof));
        for forged in ["", "00", "no hex", &proof[2..]] {
            assert!(!key.verify(request, forged), "{forged}");
        }
        assert_eq!(format!("{key:?}"), "***");
    }
}
