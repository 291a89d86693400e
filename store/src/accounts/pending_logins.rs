//! Pending logins: logins that cover several accounts, until the user selects those to connect.
//!
//! The token of a login identifies and authorizes: its bearer selects accounts within half an hour, without
//! an API key. Only a digest of the token is stored. The grants are sealed, and erased after the selection.

use crate::accounts::oauth_states::Begun;
use chrono::{DateTime, Utc};
use domain::{AccountId, AccountProfile, NetworkId, Owner};
use sha2::{Digest as _, Sha256};
use sqlx::{PgConnection, PgPool, types::Json};
use std::{fmt, str::FromStr};
use uuid::Uuid;

/// SHA-256 digest of a token; displayed and parsed as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Returns the digest of a token. Tokens are long and random, so no slow hash is needed.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Reads a stored digest; `None` when its length is wrong.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Returns the digest's 32 bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| Malformed)?;
        Ok(Self(bytes))
    }
}

/// The error of parsing a text that is not a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest has 64 hexadecimal digits")]
pub struct Malformed;

/// A login that waits for a selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Owner of the accounts to connect.
    pub owner: Owner,
    /// Platform id, for example `google_business`.
    pub platform: String,
    /// The OAuth app; `None` for a shared one.
    pub network: Option<NetworkId>,
    /// End tenant to assign to the accounts.
    pub tenant_id: Option<String>,
    /// URL to redirect the user to after the selection; `None` for Fanfare's own page.
    pub redirect_uri: Option<String>,
    /// Accounts to select from.
    pub offers: Vec<AccountProfile>,
    /// The selection, once it is made.
    pub selection: Option<Selection>,
    /// True if the selection takes a call with an API key.
    pub confirm: bool,
    /// The account that the login was to connect again.
    pub account: Option<AccountId>,
    /// Who began it.
    pub begun: Begun,
    /// When the login expires.
    pub expires_at: DateTime<Utc>,
}

/// The selection of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The platform's own ids of the selected accounts.
    pub chosen: Vec<String>,
    /// The connected accounts, in the same order.
    pub accounts: Vec<AccountId>,
}

impl Selection {
    /// Returns whether these ids, in any order, are the same selection.
    pub fn is_same(&self, ids: &[String]) -> bool {
        ids.iter().all(|id| self.chosen.contains(id)) && self.chosen.iter().all(|id| ids.contains(id))
    }
}

/// A login with its grants; its row is locked.
#[derive(Debug)]
pub struct Locked {
    /// The login.
    pub pending: Pending,
    /// The grants, sealed under [`crate::upkeep::vault::aad_pending`]; `None` once a selection is made.
    pub grants_sealed: Option<Vec<u8>>,
}

/// Stores a login. Erases the accounts and grants of those that have expired, and deletes them a day later: until then a
/// late visitor sees the page of the organization that sent them.
pub async fn store(
    db: &PgPool,
    digest: Digest,
    new: &Pending,
    grants_sealed: &[u8],
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "with old as (
           delete from pending_logins where token_digest in (
             select token_digest from pending_logins where expires_at <= $9::timestamptz - interval '1 day'
             limit 100 for update skip locked)
         ), erased as (
           update pending_logins set offers = '[]', chosen = null, account_ids = null, grants_sealed = null
           where token_digest in (
             select token_digest from pending_logins
             where expires_at <= $9 and expires_at > $9::timestamptz - interval '1 day'
               and (grants_sealed is not null or offers <> '[]')
             limit 100 for update skip locked)
         )
         insert into pending_logins (token_digest, org_id, mode, platform, network_id, tenant_id, redirect_uri,
           offers, created_at, expires_at, grants_sealed, confirm, account_id, begun)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
        &digest.0,
        new.owner.org.0,
        new.owner.mode.as_str(),
        new.platform,
        new.network.map(|network| network.0),
        new.tenant_id,
        new.redirect_uri,
        Json(&new.offers) as _,
        now,
        new.expires_at,
        grants_sealed,
        new.confirm,
        new.account.map(|account| account.0),
        Json(&new.begun) as _
    )
    .execute(db)
    .await?;
    Ok(())
}

struct Row {
    org_id: Uuid,
    mode: crate::decode::Parsed<domain::Mode>,
    platform: String,
    network_id: Option<Uuid>,
    tenant_id: Option<String>,
    redirect_uri: Option<String>,
    offers: Json<Vec<AccountProfile>>,
    grants_sealed: Option<Vec<u8>>,
    chosen: Option<Vec<String>>,
    account_ids: Option<Vec<Uuid>>,
    confirm: bool,
    account_id: Option<Uuid>,
    begun: Option<Json<Begun>>,
    expires_at: DateTime<Utc>,
}

impl From<Row> for Locked {
    fn from(row: Row) -> Self {
        let selection = row.chosen.zip(row.account_ids).map(|(chosen, accounts)| Selection {
            chosen,
            accounts: accounts.into_iter().map(AccountId).collect(),
        });
        let pending = Pending {
            owner: Owner { org: row.org_id.into(), mode: row.mode.into() },
            platform: row.platform,
            network: row.network_id.map(NetworkId),
            tenant_id: row.tenant_id,
            redirect_uri: row.redirect_uri,
            offers: row.offers.0,
            selection,
            confirm: row.confirm,
            account: row.account_id.map(AccountId),
            begun: row.begun.map(|Json(begun)| begun).unwrap_or_default(),
            expires_at: row.expires_at,
        };
        Self { pending, grants_sealed: row.grants_sealed }
    }
}

/// Returns the owner of a login, also of one that expired less than a day ago.
pub async fn owner(db: &PgPool, digest: Digest) -> sqlx::Result<Option<Owner>> {
    let row = sqlx::query!(
        r#"select org_id, mode as "mode: crate::decode::Parsed<domain::Mode>" from pending_logins where token_digest = $1"#,
        &digest.0
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| Owner { org: row.org_id.into(), mode: row.mode.into() }))
}

/// Returns the login of a token, unless it expired. The token tells the owner.
pub async fn find(db: &PgPool, digest: Digest, now: DateTime<Utc>) -> sqlx::Result<Option<Pending>> {
    let row = sqlx::query_as!(
        Row,
        r#"select org_id, mode as "mode: _", platform, network_id, tenant_id, redirect_uri,
             offers as "offers: _", null::bytea as grants_sealed, chosen, account_ids, confirm, account_id, begun as "begun: _", expires_at
           from pending_logins where token_digest = $1 and expires_at > $2"#,
        &digest.0,
        now
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| Locked::from(row).pending))
}

/// Returns and locks a login with its grants: until the transaction ends, no other can make a selection.
pub async fn lock(
    tx: &mut PgConnection,
    owner: Owner,
    digest: Digest,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Locked>> {
    let row = sqlx::query_as!(
        Row,
        r#"select org_id, mode as "mode: _", platform, network_id, tenant_id, redirect_uri,
             offers as "offers: _", grants_sealed, chosen, account_ids, confirm, account_id, begun as "begun: _", expires_at
           from pending_logins where token_digest = $1 and org_id = $2 and mode = $3 and expires_at > $4
           for update"#,
        &digest.0,
        owner.org.0,
        owner.mode.as_str(),
        now
    )
    .fetch_optional(tx)
    .await?;
    Ok(row.map(Locked::from))
}

/// Stores the selection and erases the grants.
pub async fn settle(
    tx: &mut PgConnection,
    owner: Owner,
    digest: Digest,
    selection: &Selection,
) -> sqlx::Result<()> {
    let accounts: Vec<_> = selection.accounts.iter().map(|account| account.0).collect();
    sqlx::query!(
        "update pending_logins set chosen = $4, account_ids = $5, grants_sealed = null
         where token_digest = $1 and org_id = $2 and mode = $3",
        &digest.0,
        owner.org.0,
        owner.mode.as_str(),
        &selection.chosen,
        &accounts
    )
    .execute(tx)
    .await?;
    Ok(())
}
