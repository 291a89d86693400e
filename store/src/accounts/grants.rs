//! Grants of accounts: opening sessions, refreshing under a lease, renewal before expiry.
//!
//! A grant is sealed and versioned. A caller that replaces one names the version that it read, so that of two
//! refreshes at the same time one wins. A platform that rotates refresh tokens accepts each of them once, so
//! a refresh is made under a lease in the account's row. Every grant with an end is announced to the renewal
//! workflow by an outbox message, written in the transaction that stores the grant.

use crate::{
    decode::Parsed,
    outbox,
    webhooks::events::{self, NewEvent},
};
use chrono::{DateTime, Utc};
use domain::{
    AccountId, Failure, Mode, NetworkId, Owner,
    event::{self, EventAccount, EventName},
    outbox::{ExpiringGrant, Message},
};
use sqlx::{PgConnection, PgExecutor, PgPool};
use std::time::Duration;

/// An account with its grant: what a session with its platform is opened from.
#[derive(Debug)]
pub struct AccountGrant {
    /// Account id.
    pub id: AccountId,
    /// Platform id, for example `google_business`.
    pub platform: String,
    /// The platform's own id of the account.
    pub network_unique_id: String,
    /// Handle on the platform.
    pub username: String,
    /// Kind of account, for example `profile` or `page`.
    pub account_type: String,
    /// The OAuth app that the account was connected through; `None` for a shared one.
    pub network: Option<NetworkId>,
    /// Sealed grant; `None` when the account has none.
    pub grant_sealed: Option<Vec<u8>>,
    /// Version of the grant.
    pub grant_version: i64,
}

/// Reads an [`AccountGrant`] from a row that selects its columns.
macro_rules! account_grant {
    ($row:expr, $id:expr) => {
        $crate::accounts::grants::AccountGrant {
            id: $id,
            platform: $row.platform,
            network_unique_id: $row.network_unique_id,
            username: $row.username,
            account_type: $row.account_type,
            network: $row.social_network_id.map(domain::NetworkId),
            grant_sealed: $row.grant_sealed,
            grant_version: $row.grant_version,
        }
    };
}
pub(crate) use account_grant;

/// A grant, sealed under [`crate::upkeep::vault::aad_grant`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedGrant {
    /// Ciphertext.
    pub sealed: Vec<u8>,
    /// Version; each refresh and each connect raises it.
    pub version: i64,
    /// Expiry of the access token.
    pub token_expires_at: Option<DateTime<Utc>>,
}

/// Returns an account's grant, unless the account was disconnected.
pub async fn get(db: &PgPool, owner: Owner, id: AccountId) -> sqlx::Result<Option<SealedGrant>> {
    sqlx::query_as!(
        SealedGrant,
        r#"select grant_sealed as "sealed!", grant_version as version, token_expires_at from accounts
           where id = $1 and org_id = $2 and mode = $3 and status <> 'disconnected'
             and grant_sealed is not null"#,
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await
}

/// The times at which a grant and its access token end, if the platform tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Expiry of the access token.
    pub token: Option<DateTime<Utc>>,
    /// End of the grant, which no refresh extends.
    pub grant: Option<DateTime<Utc>>,
}

/// Replaces the grant that was read as version `expected`, and marks the account active.
///
/// Returns false, and changes nothing, when the grant was replaced meanwhile or the account was disconnected.
pub async fn replace(
    db: &PgPool,
    owner: Owner,
    id: AccountId,
    sealed: &[u8],
    expected: i64,
    ends: Ends,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let mut tx = crate::begin(db).await?;
    let done = sqlx::query!(
        "update accounts set grant_sealed = $4, grant_version = grant_version + 1, token_expires_at = $6,
           grant_expires_at = $8, granted_at = $7, refresh_leased_until = null, status = 'active', last_error_code = null,
           last_synced_at = $7, updated_at = $7
         where id = $1 and org_id = $2 and mode = $3 and grant_version = $5 and status <> 'disconnected'",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        sealed,
        expected,
        ends.token,
        now,
        ends.grant
    )
    .execute(&mut *tx)
    .await?;
    if done.rows_affected() == 0 {
        return Ok(false);
    }
    announce(&mut tx, owner, id).await?;
    tx.commit().await?;
    Ok(true)
}

/// Marks an account active, because its platform accepted the grant that was read as version `expected`.
pub async fn mark_active(
    db: &PgPool,
    owner: Owner,
    id: AccountId,
    expected: i64,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let mut tx = crate::begin(db).await?;
    let revived = sqlx::query_scalar!(
        r#"with before as (
             select id, status from accounts
             where id = $1 and org_id = $2 and mode = $3 and grant_version = $4 and status <> 'disconnected'
             for no key update)
           update accounts a
           set status = 'active', last_error_code = null, last_synced_at = $5,
               updated_at = case before.status when 'active' then updated_at else $5 end
           from before where a.id = before.id
           returning before.status <> 'active' as "revived!""#,
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        expected,
        now
    )
    .fetch_optional(&mut *tx)
    .await?;
    if revived == Some(true) {
        // The renewal workflow stops for a grant that counts as lost.
        announce(&mut tx, owner, id).await?;
    }
    tx.commit().await
}

/// Returns an account with its grant, unless the account was disconnected.
pub async fn account(db: &PgPool, owner: Owner, id: AccountId) -> sqlx::Result<Option<AccountGrant>> {
    let row = sqlx::query!(
        "select platform, network_unique_id, username, account_type, social_network_id, grant_sealed,
           grant_version
         from accounts where id = $1 and org_id = $2 and mode = $3 and status <> 'disconnected'",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| account_grant!(row, id)))
}

/// The result of asking for the lease on a grant.
#[derive(Debug)]
pub enum Lease {
    /// The caller holds it: no other process refreshes the grant until it ends.
    Acquired(Box<AccountGrant>),
    /// The grant was refreshed meanwhile.
    Refreshed,
    /// Another process holds it.
    Held,
    /// The platform revoked the grant, which can no longer be refreshed.
    Revoked,
    /// The account has no grant, or was disconnected.
    Gone,
}

/// Acquires the lease for refreshing the grant of version `refused`.
pub async fn lease(
    db: &PgPool,
    owner: Owner,
    account: AccountId,
    refused: i64,
    length: Duration,
) -> sqlx::Result<Lease> {
    let row = sqlx::query!(
        r#"with leased as (
             update accounts set refresh_leased_until = clock_timestamp() + make_interval(secs => $5)
             where id = $1 and org_id = $2 and mode = $3 and grant_version = $4 and grant_sealed is not null
               and status not in ('reauth_required', 'disconnected')
               and (refresh_leased_until is null or refresh_leased_until <= clock_timestamp())
             returning id)
           select a.platform, a.network_unique_id, a.username, a.account_type, a.social_network_id,
             a.grant_sealed, a.grant_version,
             a.status = 'disconnected' as "is_leaving!", a.status = 'reauth_required' as "is_revoked!",
             exists (select from leased) as "ours!"
           from accounts a where a.id = $1 and a.org_id = $2 and a.mode = $3"#,
        account.0,
        owner.org.0,
        owner.mode.as_str(),
        refused,
        length.as_secs_f64()
    )
    .fetch_optional(db)
    .await?;
    Ok(match row {
        None => Lease::Gone,
        Some(row) if row.grant_sealed.is_none() || row.is_leaving => Lease::Gone,
        Some(row) if row.ours => Lease::Acquired(Box::new(account_grant!(row, account))),
        Some(row) if row.grant_version > refused => Lease::Refreshed,
        Some(row) if row.is_revoked => Lease::Revoked,
        Some(_) => Lease::Held,
    })
}

/// Releases the lease on a grant of version `refused` that was not replaced.
pub async fn release(db: &PgPool, account: AccountId, refused: i64) -> sqlx::Result<()> {
    sqlx::query!(
        "update accounts set refresh_leased_until = null where id = $1 and grant_version = $2",
        account.0,
        refused
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Marks the grant of version `refused` as lost: changes the account's status and appends the event, once per
/// transition. An account that has another grant by now stays as it is.
pub async fn mark_lost(
    db: &PgPool,
    owner: Owner,
    account: AccountId,
    refused: i64,
    failure: &Failure,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let (status, name) = if failure.is_revoked() {
        ("reauth_required", EventName::AccountReauthRequired)
    } else {
        ("token_expired", EventName::AccountTokenExpired)
    };
    let mut tx = crate::begin(db).await?;
    let changed = sqlx::query!(
        "update accounts set status = $5, last_error_code = 'token_expired', updated_at = $6
         where id = $1 and org_id = $2 and mode = $3 and grant_version = $4
           and (status = 'active' or status = 'token_expired' and $5 = 'reauth_required')
         returning platform, username, tenant_id",
        account.0,
        owner.org.0,
        owner.mode.as_str(),
        refused,
        status,
        now
    )
    .fetch_optional(&mut *tx)
    .await?;
    if let Some(row) = changed {
        let subject = EventAccount { account, network: row.platform, username: row.username };
        let data = event::account(owner.org, &subject, row.tenant_id.as_deref(), Some(&failure.message));
        let event = NewEvent { name, post: None, target: None, account: Some(account), data };
        events::append(&mut tx, owner, now, &event).await?;
    }
    tx.commit().await
}

/// Time before the end of a grant from which its owner is told.
pub const END_NOTICE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Appends the event of each grant that ends within a week, once for each grant, up to `limit`. Returns their number. A
/// platform that tells the seconds that are left moves the end by some at each refresh: an end that moves by over a day is
/// that of a new grant.
pub async fn tell_ends(db: &PgPool, limit: i64) -> sqlx::Result<usize> {
    let mut tx = crate::begin(db).await?;
    let ending = sqlx::query!(
        r#"with ending as (
             select id from accounts
             where status = 'active' and grant_expires_at > now()
               and grant_expires_at < now() + make_interval(secs => $2)
               and (grant_end_told is null or grant_expires_at > grant_end_told + interval '1 day')
             order by grant_expires_at limit $1 for no key update skip locked)
           update accounts a set grant_end_told = grant_expires_at from ending e where a.id = e.id
           returning a.id, a.org_id, a.mode as "mode: Parsed<Mode>", a.platform, a.username, a.tenant_id,
             a.grant_expires_at as "ends_at!", now() as "now!""#,
        limit,
        END_NOTICE.as_secs_f64()
    )
    .fetch_all(&mut *tx)
    .await?;
    let told = ending.len();
    for row in ending {
        let owner = Owner { org: row.org_id.into(), mode: row.mode.0 };
        let account = AccountId(row.id);
        let subject = EventAccount { account, network: row.platform, username: row.username };
        let data = event::token_expiring(owner.org, &subject, row.tenant_id.as_deref(), row.ends_at);
        let name = EventName::AccountTokenExpiring;
        let event = NewEvent { name, post: None, target: None, account: Some(account), data };
        events::append(&mut tx, owner, row.now, &event).await?;
    }
    tx.commit().await?;
    Ok(told)
}

/// Returns the grant of an active account for renewal; `None` when it has no end.
pub async fn expiring(
    db: impl PgExecutor<'_>,
    owner: Owner,
    account: AccountId,
) -> sqlx::Result<Option<ExpiringGrant>> {
    let row = sqlx::query!(
        r#"select platform, grant_version, coalesce(granted_at, updated_at) as "granted_at!",
             token_expires_at as "expires_at!"
           from accounts
           where id = $1 and org_id = $2 and mode = $3 and status = 'active' and grant_sealed is not null
             and token_expires_at is not null"#,
        account.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| ExpiringGrant {
        account,
        owner,
        platform: row.platform,
        grant_version: row.grant_version,
        granted_at: row.granted_at,
        expires_at: row.expires_at,
    }))
}

/// Announces the current grant of an account to its renewal workflow.
pub(crate) async fn announce(tx: &mut PgConnection, owner: Owner, account: AccountId) -> sqlx::Result<()> {
    match expiring(&mut *tx, owner, account).await? {
        Some(grant) => outbox::push(tx, &Message::RenewGrant(grant)).await,
        None => Ok(()),
    }
}
