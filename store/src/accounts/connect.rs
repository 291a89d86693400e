//! Connecting an account, with its `account.connected` event and its entry in the audit trail.
//!
//! Connecting again for the same end tenant updates the same row: what the owner set stays, and so does a refresh token where the
//! platform returns none for a second consent. Only a process that can open the stored grant knows, so the
//! grant is read under the row's lock first.

use crate::{
    accounts::{self, Connect, Connected, pending_logins::Digest},
    people::audit::{self, Action, Actor, Change},
    usage::ceilings::{self, Exceeded},
    webhooks::events::{self, NewEvent},
};
use chrono::{DateTime, Utc};
use domain::{
    AccountId, KeyId, NetworkId, Owner,
    event::{self, EventAccount, EventName},
};
use serde_json::json;
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
    /// The grant, sealed under [`crate::upkeep::vault::aad_grant`].
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
    accounts::lock(&mut *tx, owner, platform, network_unique_id).await?;
    let row = sqlx::query!(
        r#"select id, social_network_id, grant_sealed as "sealed!" from accounts
           where org_id = $1 and mode = $2 and platform = $3 and network_unique_id = $4
             and status <> 'disconnected' and grant_sealed is not null"#,
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

/// Moves a connected account from one end tenant to another. Does nothing if it belongs to a third one by now.
// Model: Move.
pub async fn move_to_tenant(
    tx: &mut PgConnection,
    owner: Owner,
    account: AccountId,
    (from, to): (Option<&str>, &str),
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let moved = sqlx::query!(
        "update accounts set tenant_id = $4, profile_id = null, updated_at = $6
         where id = $1 and org_id = $2 and mode = $3 and status <> 'disconnected'
           and tenant_id is not distinct from $5 and tenant_id is distinct from $4",
        account.0,
        owner.org.0,
        owner.mode.as_str(),
        to,
        from,
        now
    )
    .execute(&mut *tx)
    .await?;
    if moved.rows_affected() > 0 {
        accounts::hand_over(tx, owner, account, (from, Some(to)), by, now).await?;
    }
    Ok(())
}

/// How an account is connected.
#[derive(Debug)]
pub struct Login<'a> {
    /// Digest of the login that granted access, when other accounts share its grant.
    pub shared: Option<Digest>,
    /// Who finished the login.
    pub by: &'a Actor,
    /// The key that it was begun with.
    pub begun_with: Option<KeyId>,
}

/// Connects an account, appends its event and records it. `seal` is as in [`accounts::upsert`].
pub async fn connect(
    tx: &mut PgConnection,
    owner: Owner,
    connect: Connect,
    login: &Login<'_>,
    seal: impl FnOnce(AccountId) -> Vec<u8>,
    now: DateTime<Utc>,
) -> sqlx::Result<Connected> {
    let connected = accounts::upsert(tx, owner, connect, seal, now).await?;
    let account = &connected.account;
    let shared = login.shared.as_ref().map(Digest::bytes);
    sqlx::query!("update accounts set login_digest = $2 where id = $1", account.id.0, shared)
        .execute(&mut *tx)
        .await?;
    if connected.is_assigned {
        let tenants = (None, account.tenant_id.as_deref());
        accounts::hand_over(&mut *tx, owner, account.id, tenants, login.by, now).await?;
    }
    let details = json!({
        "platform": account.platform, "username": account.username, "tenant_id": account.tenant_id,
        "begun_with": login.begun_with,
    });
    let action = match connected.was_connected {
        true => Action::AccountReconnected,
        false => Action::AccountConnected,
    };
    let change = Change { action, object: account.id.0, details };
    audit::record(&mut *tx, owner, login.by, now, change).await?;
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
