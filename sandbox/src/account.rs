//! The sandbox's accounts.

use super::{
    Transaction,
    store::{Record, Store},
};
use crate::Identity;
use chrono::{DateTime, Utc};
use domain::AccountProfile;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::ops::RangeInclusive;

/// Family name of every account's owner.
pub(crate) const FAMILY_NAME: &str = "Åkesson";

/// One account on one platform.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) platform: String,
    /// Username on the platform.
    pub(crate) username: String,
    /// Id that the platform gave it.
    pub(crate) id: String,
    pub(crate) created_at: DateTime<Utc>,
    /// Number of times that its tokens were expired on purpose.
    pub(crate) era: u64,
    /// App password, on platforms that have app passwords.
    pub(crate) password: Option<String>,
    /// Server that hosts it, when it is not the platform's default.
    #[serde(default)]
    pub(crate) server: Option<String>,
}

impl Account {
    /// Returns the display name without the family name: the words of the username.
    pub(crate) fn given_name(&self) -> String {
        self.username.replace(['.', '_', '-'], " ")
    }

    /// Returns the display name: on the platforms that have one it is neither handle nor id, so that a client that
    /// takes one for another is found out.
    pub(crate) fn display_name(&self) -> String {
        format!("{} {FAMILY_NAME}", self.given_name())
    }

    /// Returns the account's identity.
    pub(crate) fn identity(&self, kind: &str, picture: Option<String>, page: String) -> Identity {
        Identity {
            profile: AccountProfile {
                network_unique_id: self.id.clone(),
                username: self.username.clone(),
                display_name: self.display_name(),
                account_type: kind.to_owned(),
                profile_image_url: picture,
                profile_url: Some(page),
            },
            grant: None,
        }
    }
}

impl Record for Account {
    const TABLE: &'static str = "account";

    fn key(&self) -> String {
        key(&self.platform, &self.username)
    }
}

/// Index entry: the username behind a platform's account id.
#[derive(Serialize, Deserialize)]
struct AccountId {
    platform: String,
    id: String,
    username: String,
}

impl Record for AccountId {
    const TABLE: &'static str = "account_id";

    fn key(&self) -> String {
        format!("{}/{}", self.platform, self.id)
    }
}

/// Creates an account that the platform has given this id.
pub(crate) fn create(tx: &mut Transaction, platform: &str, id: String, username: String) -> Account {
    let account = Account {
        platform: platform.to_owned(),
        id,
        username,
        created_at: tx.now,
        era: 0,
        password: None,
        server: None,
    };
    tx.store.put(&account);
    tx.store.put(&AccountId {
        platform: account.platform.clone(),
        id: account.id.clone(),
        username: account.username.clone(),
    });
    account
}

/// Returns the account of this name, ignoring case.
pub(crate) fn by_username(store: &Store, platform: &str, username: &str) -> Option<Account> {
    store.get(&key(platform, username))
}

/// Returns the account with this id.
pub(crate) fn by_id(store: &Store, platform: &str, id: &str) -> Option<Account> {
    let entry: AccountId = store.get(&format!("{platform}/{id}"))?;
    by_username(store, platform, &entry.username)
}

/// Returns a digest of a name, the same in every sandbox: an account that is created again gets its old id.
pub(crate) fn digest(platform: &str, username: &str) -> [u8; 32] {
    Sha256::digest(key(platform, username)).into()
}

/// Returns the first eight bytes of the digest as a number.
pub(crate) fn digest_number(platform: &str, username: &str) -> u64 {
    let digest = digest(platform, username);
    u64::from_be_bytes(digest[..8].try_into().expect("eight bytes of a digest"))
}

/// Checks that a username has as many bytes as allowed, all of them ASCII letters, digits or `others`.
///
/// # Errors
///
/// The platform's rule.
pub(crate) fn check_username<'a>(
    username: &'a str,
    length: RangeInclusive<usize>,
    others: &[u8],
    rule: &str,
) -> Result<&'a str, String> {
    let is_valid = length.contains(&username.len())
        && username.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte));
    if is_valid { Ok(username) } else { Err(format!("`{username}` is no {rule}")) }
}

fn key(platform: &str, username: &str) -> String {
    format!("{platform}/{}", username.to_lowercase())
}
