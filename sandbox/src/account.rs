//! The sandbox's accounts.

use super::{
    Turn,
    host::Host,
    shelf::{Record, Shelf},
};
use crate::Identity;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// One account on one platform.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Account {
    /// The platform.
    pub(crate) platform: String,
    /// Its name there.
    pub(crate) username: String,
    /// The platform's own id of it.
    pub(crate) id: String,
    /// When it was made.
    pub(crate) created_at: DateTime<Utc>,
    /// Counts how often its tokens were made to run out.
    pub(crate) era: u64,
    /// The password made for apps, on platforms that have such.
    pub(crate) password: Option<String>,
    /// The server it lives on where it chose one, on platforms that have several.
    #[serde(default)]
    pub(crate) server: Option<String>,
}

impl Account {
    /// Who it is to a client, on platforms where its name is all it is called; with what kind of account
    /// it is there, its picture and its page.
    pub(crate) fn identity(&self, kind: &str, picture: Option<String>, page: String) -> Identity {
        Identity {
            network_unique_id: self.id.clone(),
            username: self.username.clone(),
            display_name: self.username.clone(),
            account_type: kind.to_owned(),
            profile_image_url: picture,
            profile_url: Some(page),
            grant: None,
        }
    }
}

impl Record for Account {
    const SHELF: &'static str = "account";

    fn key(&self) -> String {
        key(&self.platform, &self.username)
    }
}

/// The way from the platform's id to the account.
#[derive(Serialize, Deserialize)]
struct Numbered {
    platform: String,
    id: String,
    username: String,
}

impl Record for Numbered {
    const SHELF: &'static str = "account_id";

    fn key(&self) -> String {
        format!("{}/{}", self.platform, self.id)
    }
}

/// The account of this name, made if there is none.
///
/// # Errors
///
/// Why the platform would not give that name to anyone.
pub(crate) fn open(turn: &mut Turn<'_>, host: &dyn Host, username: &str) -> Result<Account, String> {
    let username = host.name(username)?;
    if let Some(account) = named(turn.shelf, host.id(), &username) {
        return Ok(account);
    }
    let account = Account {
        platform: host.id().to_owned(),
        id: host.number(&username),
        username,
        created_at: turn.now,
        era: 0,
        password: None,
        server: None,
    };
    turn.shelf.put(&account);
    turn.shelf.put(&Numbered {
        platform: account.platform.clone(),
        id: account.id.clone(),
        username: account.username.clone(),
    });
    Ok(account)
}

/// The account of this name; case is not told apart, as on all platforms.
pub(crate) fn named(shelf: &Shelf, platform: &str, username: &str) -> Option<Account> {
    shelf.get(&key(platform, username))
}

/// The account with this id.
pub(crate) fn numbered(shelf: &Shelf, platform: &str, id: &str) -> Option<Account> {
    let numbered: Numbered = shelf.get(&format!("{platform}/{id}"))?;
    named(shelf, platform, &numbered.username)
}

/// A digest of a name, the same in every sandbox: an account that is made again has its old id.
pub(crate) fn digest(platform: &str, username: &str) -> [u8; 32] {
    Sha256::digest(key(platform, username)).into()
}

fn key(platform: &str, username: &str) -> String {
    format!("{platform}/{}", username.to_lowercase())
}
