//! URL of a sandbox.
//!
//! A sandbox that is reachable from other machines has a token. Each organization then has its own
//! accounts below a path signed with that token, so that no organization can reach another's.

use crate::OrgId;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use url::Url;
use uuid::Uuid;

/// Prefix of the paths of organizations.
pub const ORGS: &str = "/_orgs/";
/// Length of the truncated signature in a path, in bytes.
const SIGNATURE_BYTES: usize = 16;

/// URL of a sandbox and the token that signs the paths of organizations.
#[derive(Clone)]
pub struct Address {
    url: Url,
    token: Option<String>,
}

impl Address {
    /// Creates the address of the sandbox at `url`. `token` is `None` if the sandbox is local.
    pub fn new(url: Url, token: Option<String>) -> Self {
        Self { url, token }
    }

    /// Returns the sandbox's base URL.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the base URL of an organization's accounts: a signed path if the sandbox has a token, else the
    /// sandbox's base URL.
    pub fn of(&self, org: OrgId) -> Url {
        let mut url = self.url.clone();
        if let Some(token) = &self.token {
            let signature = mac(token, org.0).finalize().into_bytes();
            let path = url.path().trim_end_matches('/');
            let signature = hex::encode(&signature[..SIGNATURE_BYTES]);
            url.set_path(&format!("{path}{ORGS}{}.{signature}", org.0));
        }
        url
    }
}

/// Returns the organization of a signed name, `{organization}.{signature}`; `None` if the signature is wrong.
pub fn verify(token: &str, name: &str) -> Option<OrgId> {
    let (org, signature) = name.split_once('.')?;
    let org: Uuid = org.parse().ok()?;
    let signature = hex::decode(signature).ok().filter(|bytes| bytes.len() == SIGNATURE_BYTES)?;
    mac(token, org).verify_truncated_left(&signature).ok()?;
    Some(OrgId(org))
}

fn mac(token: &str, org: Uuid) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(token.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(format!("fanfare sandbox organization {org}").as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_signed_for_one_organization() {
        let org = OrgId(Uuid::from_u128(7));
        let url = Url::parse("http://sandbox:8090").unwrap();
        let address = Address::new(url.clone(), Some("a token".into())).of(org);
        let name = address.path().strip_prefix(ORGS).unwrap();
        assert_eq!(verify("a token", name), Some(org));
        let (id, signature) = name.split_once('.').unwrap();
        let other = Uuid::from_u128(8);
        for forged in [
            format!("{other}.{signature}"),
            format!("{id}.{}", &signature[2..]),
            format!("{id}."),
            id.to_owned(),
            format!("../{id}.{signature}"),
        ] {
            assert_eq!(verify("a token", &forged), None, "{forged}");
        }
        assert_eq!(verify("another token", name), None);
        assert_eq!(Address::new(url.clone(), None).of(org), url);
    }
}
