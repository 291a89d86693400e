//! Disconnecting an account: its pending targets are canceled, except those that may be live already.
//!
//! The row stays, so that connecting the account again for the same end tenant keeps its id. A target whose publishing call was
//! begun may be on the platform, and so may a part of a live one's thread: it is finished by a look-up, without another
//! publishing call. The grant is kept for that until the disconnection's workflow revokes and erases it.
//!
//! An account can have any number of scheduled posts. The targets of the first ones are canceled in the transaction of
//! the disconnection, the others by its workflow, in transactions of bounded size: none holds locks for longer than an
//! attempt can wait. Until then nothing is published for them, because an attempt looks at the account's status before
//! its publishing call.

use crate::{
    accounts::{
        grants::{AccountGrant, account_grant},
        imports,
    },
    bounds::{Access, Resource},
    decode::Parsed,
    outbox,
    people::audit::{self, Action, Actor},
    posts::{
        self,
        timeline::{self, Entry},
    },
    publishing,
    webhooks::events::{self, NewEvent},
};
use chrono::{DateTime, Utc};
use domain::{
    AccountId, CancelReason, Owner, PostId, PostStatus,
    event::{self, EventAccount, EventName},
    outbox::{Disconnection, Message},
};
use serde_json::json;
use sqlx::{PgConnection, PgPool};
use std::collections::HashSet;

/// Posts whose targets one transaction cancels.
pub const BATCH: i64 = 100;

/// Disconnects an account, and cancels the targets of its first posts. Returns false when it is not connected.
// Model: Disconnect.
pub async fn disconnect(
    db: &PgPool,
    access: Access<'_>,
    id: AccountId,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let Some(owner) = access.reach(db, Resource::Account, id.0).await? else { return Ok(false) };
    let mut tx = crate::begin(db).await?;
    let disconnected = sqlx::query!(
        "update accounts set status = 'disconnected', last_error_code = null, updated_at = $4
         where id = $1 and org_id = $2 and mode = $3 and status <> 'disconnected'
         returning platform, username, tenant_id, grant_version",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        now
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(row) = disconnected else { return Ok(false) };
    cancel(&mut tx, owner, id, None, now).await?;
    let subject = EventAccount { account: id, network: row.platform.clone(), username: row.username };
    let details = json!({ "platform": row.platform, "username": subject.username });
    let change = audit::Change { action: Action::AccountDisconnected, object: id.0, details };
    audit::record(&mut tx, owner, by, now, change).await?;
    let data = event::account(owner.org, &subject, row.tenant_id.as_deref(), None);
    let event =
        NewEvent { name: EventName::AccountDisconnected, post: None, target: None, account: Some(id), data };
    events::append(&mut tx, owner, now, &event).await?;
    imports::abandon(&mut tx, owner, id, now).await?;
    let disconnection =
        Disconnection { account: id, owner, platform: row.platform, grant_version: row.grant_version };
    outbox::push(&mut tx, &Message::DisconnectAccount(disconnection)).await?;
    tx.commit().await?;
    Ok(true)
}

/// Cancels the targets of a disconnected account in further posts, those after `after`, in a transaction of its own.
/// Returns the last of these posts; `None` when there are no more, or the account was connected again.
pub async fn cancel_next(
    db: &PgPool,
    disconnection: &Disconnection,
    after: Option<PostId>,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<PostId>> {
    let (owner, id) = (disconnection.owner, disconnection.account);
    let mut tx = crate::begin(db).await?;
    // Locked, so that the account is not connected again meanwhile.
    let is_leaving = sqlx::query_scalar!(
        r#"select true as "found!" from accounts
           where id = $1 and org_id = $2 and mode = $3 and grant_version = $4 and status = 'disconnected' for share"#,
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        disconnection.grant_version
    )
    .fetch_optional(&mut *tx)
    .await?;
    if is_leaving.is_none() {
        return Ok(None);
    }
    let last = cancel(&mut tx, owner, id, after, now).await?;
    tx.commit().await?;
    Ok(last)
}

/// Cancels the account's open targets without a begun publishing call in the first [`BATCH`] posts after `after`, and
/// updates these posts. Those that may be live, and live ones whose thread is not complete, are attempted now: they are
/// looked up while there is a grant for it. Returns the last of these posts.
async fn cancel(
    tx: &mut PgConnection,
    owner: Owner,
    id: AccountId,
    after: Option<PostId>,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<PostId>> {
    let posts = sqlx::query!(
        r#"select id, status as "status: Parsed<PostStatus>" from posts
           where org_id = $2 and mode = $3 and id in (
             select post_id from targets
             where account_id = $1
               and (status in ('pending', 'queued', 'failed') or status = 'published' and next_attempt_at is not null)
               and post_id > coalesce($4, '00000000-0000-0000-0000-000000000000'::uuid)
             order by post_id limit $5)
           order by id for no key update"#,
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        after.map(|post| post.0),
        BATCH
    )
    .fetch_all(&mut *tx)
    .await?;
    let ids: Vec<_> = posts.iter().map(|post| post.id).collect();
    // In a separate statement: an intent is written under this lock, and one that was written while
    // waiting for it must be visible to the next statement.
    let targets = sqlx::query_scalar!(
        "select id from targets
         where account_id = $1 and post_id = any($2)
           and (status in ('pending', 'queued', 'failed') or status = 'published' and next_attempt_at is not null)
         order by id for no key update",
        id.0,
        &ids
    )
    .fetch_all(&mut *tx)
    .await?;
    let reason = CancelReason::Disconnected;
    let (canceled, doubtful): (Vec<_>, Vec<_>) = publishing::cancel(&mut *tx, &targets, reason, now)
        .await?
        .into_iter()
        .partition(|one| one.is_canceled);
    sqlx::query!(
        "insert into timeline (org_id, mode, post_id, target_id, at, kind, message)
         select $1, $2, t.post, t.target, $3, 'canceled', $4 from unnest($5::uuid[], $6::uuid[]) t (post, target)",
        owner.org.0,
        owner.mode.as_str(),
        now,
        format!("Canceled: {reason}"),
        &canceled.iter().map(|one| one.post.0).collect::<Vec<_>>(),
        &canceled.iter().map(|one| one.target.0).collect::<Vec<_>>()
    )
    .execute(&mut *tx)
    .await?;
    // A target that may be live is looked up now, while there is still a grant for it.
    let looks: Vec<_> = doubtful
        .into_iter()
        .map(|one| Message::RetryTarget { target: one.target, post: one.post, owner })
        .collect();
    outbox::push_all(&mut *tx, &looks).await?;
    let changed: HashSet<_> = canceled.iter().map(|one| one.post.0).collect();
    let last = posts.last().map(|post| post.id.into());
    for post in posts.into_iter().filter(|post| changed.contains(&post.id)) {
        roll_up(tx, owner, post.id.into(), post.status.into(), now).await?;
    }
    Ok(last)
}

/// Updates the status of a post that lost a target. A draft stays a draft, for other accounts.
async fn roll_up(
    tx: &mut PgConnection,
    owner: Owner,
    post: PostId,
    before: PostStatus,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    if before == PostStatus::Draft {
        return Ok(());
    }
    let Some(after) = posts::finish(tx, owner, post, now).await? else { return Ok(()) };
    let is_started = sqlx::query_scalar!(
        r#"update posts p set status = $2, updated_at = $3, starts_at = null
           from posts before where p.id = $1 and before.id = p.id
           returning before.starts_at is null as "is_started!""#,
        post.0,
        after.as_str(),
        now
    )
    .fetch_one(&mut *tx)
    .await?;
    let entry = Entry {
        at: now,
        kind: after.to_string(),
        message: "No account is left to publish to".into(),
        target_id: None,
        detail: json!({ "from": before, "to": after }),
    };
    timeline::append(&mut *tx, owner, post, entry).await?;
    if before.is_editable() && is_started {
        // Its workflow may be waiting for its time.
        outbox::push(tx, &Message::PostCanceled { post, owner }).await?;
    }
    Ok(())
}

/// A disconnected account whose grant is still stored.
#[derive(Debug)]
pub struct GrantToRevoke {
    /// The account, with its grant.
    pub account: AccountGrant,
    /// True if connected accounts of the same login use the same grant, or the account is connected for another tenant:
    /// revoking one grant of an account can end another one of the same app.
    pub is_shared: bool,
    /// True if the result of one of its publishing calls is unknown; a look-up needs the grant.
    pub in_doubt: bool,
}

/// Returns the grant to revoke, unless the account was connected again or its grant was erased.
pub async fn grant_to_revoke(
    db: &PgPool,
    disconnection: &Disconnection,
) -> sqlx::Result<Option<GrantToRevoke>> {
    let row = sqlx::query!(
        r#"select a.id, a.platform, a.network_unique_id, a.username, a.account_type, a.social_network_id,
             a.grant_sealed, a.grant_version,
             exists (select from accounts o
                     where o.org_id = a.org_id and o.mode = a.mode and o.id <> a.id and o.status <> 'disconnected'
                       and (o.login_digest = a.login_digest
                         or o.platform = a.platform and o.network_unique_id = a.network_unique_id)) as "is_shared!",
             exists (select from targets t join publications p on p.target_id = t.id
                     where t.account_id = a.id and p.commit_begun_at is not null
                       and (t.status in ('pending', 'queued', 'failed')
                         or t.status = 'published' and t.next_attempt_at is not null and p.platform_id is null))
               as "in_doubt!"
           from accounts a
           where a.id = $1 and a.org_id = $2 and a.mode = $3 and a.grant_version = $4
             and a.status = 'disconnected' and a.grant_sealed is not null"#,
        disconnection.account.0,
        disconnection.owner.org.0,
        disconnection.owner.mode.as_str(),
        disconnection.grant_version
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| GrantToRevoke {
        account: account_grant!(row, row.id.into()),
        is_shared: row.is_shared,
        in_doubt: row.in_doubt,
    }))
}

/// Erases the grant of a disconnected account, unless the account was connected again.
pub async fn erase(db: &PgPool, disconnection: &Disconnection) -> sqlx::Result<()> {
    sqlx::query!(
        "update accounts
         set grant_sealed = null, token_expires_at = null, grant_expires_at = null, grant_end_told = null,
           refresh_leased_until = null, scopes = '{}'
         where id = $1 and org_id = $2 and mode = $3 and grant_version = $4 and status = 'disconnected'",
        disconnection.account.0,
        disconnection.owner.org.0,
        disconnection.owner.mode.as_str(),
        disconnection.grant_version
    )
    .execute(db)
    .await?;
    Ok(())
}
