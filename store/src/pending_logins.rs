//! Logins that cover several accounts, until somebody says which of them are to be connected.
//!
//! The token that leads to one is its key and its permission: whoever has it chooses, without an API
//! key, for half an hour. Of the token a digest is kept. What the platform granted is sealed, and gone
//! once the choice is made.

use chrono::{DateTime, Utc};
use domain::{AccountId, AccountProfile, NetworkId, Owner};
use sha2::{Digest as _, Sha256};
use sqlx::{PgConnection, PgPool, types::Json};
use std::{fmt, str::FromStr};
use uuid::Uuid;

/// What is kept of a token. Reads back as it prints.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of a token. Tokens are random and far beyond guessing, so a plain one will do.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Reads its bytes.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
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
        let digits = text.as_bytes().chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).map_err(|_| Malformed)?;
            u8::from_str_radix(pair, 16).map_err(|_| Malformed)
        });
        let bytes: Vec<u8> = digits.collect::<Result<_, _>>()?;
        bytes.try_into().map(Self).map_err(|_| Malformed)
    }
}

/// A text that is no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the 64 hexadecimal digits of a digest")]
pub struct Malformed;

/// A login that waits for a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Whose the accounts will be.
    pub owner: Owner,
    /// The platform.
    pub platform: String,
    /// The OAuth app; `None` for a shared one.
    pub network: Option<NetworkId>,
    /// The end tenant that the accounts are to belong to.
    pub tenant_id: Option<String>,
    /// Where the user goes from our own page; `None` to stay there.
    pub redirect_uri: Option<String>,
    /// What can be chosen.
    pub offers: Vec<AccountProfile>,
    /// The choice, once it is made.
    pub made: Option<Made>,
    /// Until when it can be made.
    pub expires_at: DateTime<Utc>,
}

/// A choice that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// What was chosen, by the platform's ids.
    pub chosen: Vec<String>,
    /// The accounts that it became, in the same order.
    pub accounts: Vec<AccountId>,
}

impl Made {
    /// Whether these ids, in whatever order, are the same choice.
    pub fn is_of(&self, ids: &[String]) -> bool {
        ids.iter().all(|id| self.chosen.contains(id)) && self.chosen.iter().all(|id| ids.contains(id))
    }
}

/// A login and what it was granted, under the lock of its row.
#[derive(Debug)]
pub struct Locked {
    /// The login.
    pub pending: Pending,
    /// The grants, sealed under [`crate::vault::aad_pending`]; `None` once the choice is made.
    pub grants_sealed: Option<Vec<u8>>,
}

/// Keeps a login until a choice is made or its time is over; those whose time is over are cleared away.
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
             select token_digest from pending_logins where expires_at <= $9 limit 100 for update skip locked)
         )
         insert into pending_logins (token_digest, org_id, mode, platform, network_id, tenant_id, redirect_uri,
           offers, created_at, expires_at, grants_sealed)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
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
        grants_sealed
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
    expires_at: DateTime<Utc>,
}

impl From<Row> for Locked {
    fn from(row: Row) -> Self {
        let made = row.chosen.zip(row.account_ids).map(|(chosen, accounts)| Made {
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
            made,
            expires_at: row.expires_at,
        };
        Self { pending, grants_sealed: row.grants_sealed }
    }
}

/// The login that a token leads to, while there is time. The token says whose it is.
pub async fn find(db: &PgPool, digest: Digest, now: DateTime<Utc>) -> sqlx::Result<Option<Pending>> {
    let row = sqlx::query_as!(
        Row,
        r#"select org_id, mode as "mode: _", platform, network_id, tenant_id, redirect_uri,
             offers as "offers: _", null::bytea as grants_sealed, chosen, account_ids, expires_at
           from pending_logins where token_digest = $1 and expires_at > $2"#,
        &digest.0,
        now
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| Locked::from(row).pending))
}

/// The same with its grants, for whoever is to make the choice: until the transaction ends nobody else can.
pub async fn lock(
    tx: &mut PgConnection,
    owner: Owner,
    digest: Digest,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Locked>> {
    let row = sqlx::query_as!(
        Row,
        r#"select org_id, mode as "mode: _", platform, network_id, tenant_id, redirect_uri,
             offers as "offers: _", grants_sealed, chosen, account_ids, expires_at
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

/// Keeps the choice that was made, and forgets the grants.
pub async fn settle(tx: &mut PgConnection, owner: Owner, digest: Digest, made: &Made) -> sqlx::Result<()> {
    let accounts: Vec<_> = made.accounts.iter().map(|account| account.0).collect();
    sqlx::query!(
        "update pending_logins set chosen = $4, account_ids = $5, grants_sealed = null
         where token_digest = $1 and org_id = $2 and mode = $3",
        &digest.0,
        owner.org.0,
        owner.mode.as_str(),
        &made.chosen,
        &accounts
    )
    .execute(tx)
    .await?;
    Ok(())
}
