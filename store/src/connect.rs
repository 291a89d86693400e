//! Connecting an account, with the event that tells of it.
//!
//! Connecting again is the same row again: what the account's owner set stays, and so does a refresh
//! token where the platform gives none for a second consent. That is only known to whoever can open the
//! grant that is there, so it is handed out under the row's lock first.

use crate::{
    accounts::{self, Connect, Connected},
    events::{self, NewEvent},
    pending_logins::Digest,
};
use chrono::{DateTime, Utc};
use domain::{
    AccountId, NetworkId, Owner,
    event::{self, EventAccount, EventName},
};
use sqlx::PgConnection;

/// How many accounts an owner has, where that is as many as he may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// How many he may have.
    pub limit: u64,
    /// How many he has.
    pub used: u64,
}

/// Whether there is no room for these accounts of a platform among the `limit` that an owner may have;
/// those that he has already need none. Until the transaction ends nobody else takes what room there is.
pub async fn quota_exceeded(
    tx: &mut PgConnection,
    owner: Owner,
    platform: &str,
    network_unique_ids: &[String],
    limit: u64,
) -> sqlx::Result<Option<Full>> {
    // In a statement of its own: what was connected while we waited for the lock has to be counted.
    sqlx::query!("select from organizations where id = $1 for no key update", owner.org.0)
        .execute(&mut *tx)
        .await?;
    let found = sqlx::query!(
        r#"select count(*) as "used!",
             count(*) filter (where platform = $3 and network_unique_id = any($4)) as "again!"
           from accounts where org_id = $1 and mode = $2 and status <> 'disconnected'"#,
        owner.org.0,
        owner.mode.as_str(),
        platform,
        network_unique_ids
    )
    .fetch_one(tx)
    .await?;
    let used = u64::try_from(found.used).unwrap_or_default();
    let new =
        (network_unique_ids.len() as u64).saturating_sub(u64::try_from(found.again).unwrap_or_default());
    Ok((new > 0 && used + new > limit).then_some(Full { limit, used }))
}

/// The grant of an account that is about to be connected again.
#[derive(Debug)]
pub struct Held {
    /// The account.
    pub account: AccountId,
    /// The OAuth app that the grant was given to; `None` for a shared one.
    pub network: Option<NetworkId>,
    /// The grant, sealed under [`crate::vault::aad_grant`].
    pub sealed: Vec<u8>,
}

/// The grant that an account has already. Until the transaction ends nobody else can replace it.
///
/// That of a disconnected account does not count: it is being revoked.
pub async fn previous_grant(
    tx: &mut PgConnection,
    owner: Owner,
    platform: &str,
    network_unique_id: &str,
) -> sqlx::Result<Option<Held>> {
    let row = sqlx::query!(
        r#"select id, social_network_id, grant_sealed as "sealed!" from accounts
           where org_id = $1 and mode = $2 and platform = $3 and network_unique_id = $4
             and status <> 'disconnected' and grant_sealed is not null
           for no key update"#,
        owner.org.0,
        owner.mode.as_str(),
        platform,
        network_unique_id
    )
    .fetch_optional(tx)
    .await?;
    Ok(row.map(|row| Held {
        account: row.id.into(),
        network: row.social_network_id.map(NetworkId),
        sealed: row.sealed,
    }))
}

/// Moves an account that is connected to another end tenant.
pub async fn move_to_tenant(
    tx: &mut PgConnection,
    owner: Owner,
    account: AccountId,
    tenant_id: &str,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update accounts set tenant_id = $4
         where id = $1 and org_id = $2 and mode = $3 and status <> 'disconnected'",
        account.0,
        owner.org.0,
        owner.mode.as_str(),
        tenant_id
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Connects an account and tells the subscribers. `seal` is as in [`accounts::upsert`]; `shared` is the
/// login whose grant it is, where others were given the same.
pub async fn connect(
    tx: &mut PgConnection,
    owner: Owner,
    connect: Connect,
    shared: Option<Digest>,
    seal: impl FnOnce(AccountId) -> Vec<u8>,
    now: DateTime<Utc>,
) -> sqlx::Result<Connected> {
    let connected = accounts::upsert(tx, owner, connect, seal, now).await?;
    let account = &connected.account;
    let shared = shared.as_ref().map(Digest::bytes);
    sqlx::query!("update accounts set login_digest = $2 where id = $1", account.id.0, shared)
        .execute(&mut *tx)
        .await?;
    let subject = EventAccount {
        account: account.id,
        network: account.platform.clone(),
        username: account.username.clone(),
    };
    let event = NewEvent {
        name: EventName::AccountConnected,
        post: None,
        target: None,
        account: Some(account.id),
        data: event::account(owner.org, &subject, account.tenant_id.as_deref(), None),
    };
    let subscribers = events::subscribers(tx, owner).await?;
    events::append(tx, owner, now, &event, &subscribers).await?;
    Ok(connected)
}
