//! Connecting an account, with its `account.connected` event.
//!
//! Connecting again updates the same row: what the owner set stays, and so does a refresh token where the
//! platform returns none for a second consent. Only a process that can open the stored grant knows, so the
//! grant is read under the row's lock first.

use crate::{
    accounts::{self, Connect, Connected},
    ceilings::{self, Exceeded},
    events::{self, NewEvent},
    pending_logins::Digest,
};
use chrono::{DateTime, Utc};
use domain::{
    AccountId, NetworkId, Owner,
    event::{self, EventAccount, EventName},
};
use sqlx::PgConnection;

/// Returns the quota when these accounts of a platform would exceed the `limit` of an owner; accounts that
/// are already connected count once. Until the transaction ends, no other transaction can use up the quota.
pub async fn quota_exceeded(
    tx: &mut PgConnection,
    owner: Owner,
    platform: &str,
    network_unique_ids: &[String],
    limit: u64,
) -> sqlx::Result<Option<Exceeded>> {
    ceilings::lock(&mut *tx, owner.org).await?;
    let counts = sqlx::query!(
        r#"select count(*) as "used!",
             count(*) filter (where platform = $3 and network_unique_id = any($4)) as "reconnected!"
           from accounts where org_id = $1 and mode = $2 and status <> 'disconnected'"#,
        owner.org.0,
        owner.mode.as_str(),
        platform,
        network_unique_ids
    )
    .fetch_one(tx)
    .await?;
    let used = u64::try_from(counts.used).unwrap_or_default();
    let new = (network_unique_ids.len() as u64)
        .saturating_sub(u64::try_from(counts.reconnected).unwrap_or_default());
    Ok((new > 0 && used + new > limit).then_some(Exceeded { limit, used }))
}

/// The stored grant of an account that is about to be connected again.
#[derive(Debug)]
pub struct StoredGrant {
    /// Account id.
    pub account: AccountId,
    /// The OAuth app that received the grant; `None` for a shared one.
    pub network: Option<NetworkId>,
    /// The grant, sealed under [`crate::vault::aad_grant`].
    pub sealed: Vec<u8>,
}

/// Returns the stored grant of an account; until the transaction ends, no other transaction can replace it.
///
/// Returns `None` for a disconnected account, whose grant is being revoked.
pub async fn previous_grant(
    tx: &mut PgConnection,
    owner: Owner,
    platform: &str,
    network_unique_id: &str,
) -> sqlx::Result<Option<StoredGrant>> {
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
    Ok(row.map(|row| StoredGrant {
        account: row.id.into(),
        network: row.social_network_id.map(NetworkId),
        sealed: row.sealed,
    }))
}

/// Moves a connected account to another end tenant.
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

/// Connects an account and appends its event. `seal` is as in [`accounts::upsert`]; `shared` is the login
/// that granted access, when other accounts share its grant.
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
    events::append(tx, owner, now, &event).await?;
    Ok(connected)
}
