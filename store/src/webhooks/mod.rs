//! Webhook endpoints and their subscriptions.
//!
//! Tables: `webhooks`, `event_streams`, `events`, `events_default`, `deliveries`, `deliveries_default`.

pub mod deliveries;
pub mod drain;
pub mod events;
mod wake;

use crate::{
    Change,
    page::{Cursor, Page, Request},
    people::audit::{self, Action, Actor},
    usage::ceilings::{self, Exceeded, Kind},
};
use chrono::{DateTime, SubsecRound, Utc};
use domain::{Owner, WebhookId};
use serde_json::json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

/// An endpoint, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Endpoint id.
    pub id: WebhookId,
    /// URL that events are sent to.
    pub url: String,
    /// Subscribed event names; `*` stands for all.
    pub events: Vec<String>,
    /// Label for the dashboard.
    pub description: Option<String>,
    /// True if events are delivered; false for a paused endpoint.
    pub is_active: bool,
    /// Since when an endpoint has failed, once its owner is told ([`drain::TOLD_AFTER`]); `None` for another.
    pub failing_since: Option<DateTime<Utc>>,
    /// When the endpoint was created.
    pub created_at: DateTime<Utc>,
    /// When the endpoint was last updated.
    pub updated_at: DateTime<Utc>,
}

const _: () = assert!(drain::TOLD_AFTER == 10, "the queries below tell a failing endpoint by it");

/// An endpoint to create.
#[derive(Clone, Debug)]
pub struct NewWebhook {
    /// URL that events are sent to.
    pub url: String,
    /// Event names to subscribe to; `*` stands for all.
    pub events: Vec<String>,
    /// Label for the dashboard.
    pub description: Option<String>,
}

/// Creates an endpoint, unless that would exceed the `limit` of endpoints. `seal` seals the secret to the new id.
pub async fn create(
    db: &PgPool,
    owner: Owner,
    new: NewWebhook,
    seal: impl FnOnce(WebhookId) -> Vec<u8>,
    limit: Option<u64>,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Result<Webhook, Exceeded>> {
    let now = now.trunc_subsecs(6);
    let mut tx = crate::begin(db).await?;
    if let Err(exceeded) = ceilings::check(&mut tx, owner, Kind::WebhookEndpoints, 1, limit, now).await? {
        return Ok(Err(exceeded));
    }
    let webhook = Webhook {
        id: WebhookId(Uuid::now_v7()),
        url: new.url,
        events: new.events,
        description: new.description,
        is_active: true,
        failing_since: None,
        created_at: now,
        updated_at: now,
    };
    sqlx::query!(
        "insert into webhooks
           (id, org_id, mode, url, events, description, is_active, secret_sealed, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)",
        webhook.id.0,
        owner.org.0,
        owner.mode.as_str(),
        webhook.url,
        &webhook.events,
        webhook.description,
        webhook.is_active,
        seal(webhook.id),
        webhook.created_at
    )
    .execute(&mut *tx)
    .await?;
    let details = json!({ "events": webhook.events });
    let change = audit::Change { action: Action::WebhookCreated, object: webhook.id.0, details };
    audit::record(&mut tx, owner, by, now, change).await?;
    tx.commit().await?;
    Ok(Ok(webhook))
}

/// Returns a page of the owner's endpoints, newest first.
pub async fn list(db: &PgPool, owner: Owner, page: Request) -> sqlx::Result<Page<Webhook>> {
    let before = page.before();
    let rows = sqlx::query_as!(
        Webhook,
        "select id, url, events, description, is_active,
           case when failures >= 10 then failing_since end as failing_since, created_at,
           updated_at from webhooks
         where org_id = $1 and mode = $2 and deleted_at is null and (created_at, id) < ($3, $4)
         order by created_at desc, id desc limit $5",
        owner.org.0,
        owner.mode.as_str(),
        before.created_at,
        before.id,
        page.rows()
    )
    .fetch_all(db)
    .await?;
    Ok(page.page(rows, |row| Cursor { created_at: row.created_at, id: row.id.0 }))
}

/// Returns an endpoint.
pub async fn get(db: &PgPool, owner: Owner, id: WebhookId) -> sqlx::Result<Option<Webhook>> {
    sqlx::query_as!(
        Webhook,
        "select id, url, events, description, is_active,
           case when failures >= 10 then failing_since end as failing_since, created_at,
           updated_at from webhooks
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await
}

/// URL and signing secret of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSecret {
    /// URL that events are sent to.
    pub url: String,
    /// Signing secret, sealed under [`crate::upkeep::vault::aad_webhook_secret`].
    pub secret_sealed: Vec<u8>,
}

/// Returns the URL and signing secret of an endpoint.
pub async fn sealed_secret(db: &PgPool, owner: Owner, id: WebhookId) -> sqlx::Result<Option<SealedSecret>> {
    sqlx::query_as!(
        SealedSecret,
        "select url, secret_sealed from webhooks
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await
}

/// Changes to an endpoint.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// URL for all further attempts, also of deliveries under way; `None` keeps it.
    pub url: Option<String>,
    /// Event names to subscribe to; `None` keeps them.
    pub events: Option<Vec<String>>,
    /// Label for the dashboard.
    pub description: Change<String>,
    /// True if events are delivered; `None` keeps it.
    pub is_active: Option<bool>,
}

/// Updates an endpoint. Returns `None` when it doesn't exist. With another URL, and when it is paused or resumed, it
/// counts as one that has not failed.
pub async fn edit(
    db: &PgPool,
    owner: Owner,
    id: WebhookId,
    edit: Edit,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Webhook>> {
    let given = [
        ("url", edit.url.is_some()),
        ("events", edit.events.is_some()),
        ("description", edit.description.is_change()),
        ("is_active", edit.is_active.is_some()),
    ];
    let changed: Vec<_> = given.into_iter().filter_map(|(name, given)| given.then_some(name)).collect();
    let mut tx = crate::begin(db).await?;
    let webhook = sqlx::query_as!(
        Webhook,
        "update webhooks
         set url = coalesce($4, url), events = coalesce($5, events),
             description = case when $6 then $7 else description end,
             is_active = coalesce($8, is_active), updated_at = $9,
             failures = case when $4 is null and $8 is null then failures else 0 end,
             failing_since = case when $4 is null and $8 is null then failing_since end,
             probe_at = case when $4 is null and $8 is null then probe_at end
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null
         returning id, url, events, description, is_active,
           case when failures >= 10 then failing_since end as failing_since, created_at,
           updated_at",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        edit.url,
        edit.events.as_deref(),
        edit.description.is_change(),
        edit.description.value(),
        edit.is_active,
        now
    )
    .fetch_optional(&mut *tx)
    .await?;
    if webhook.is_some() {
        if changed.contains(&"url") || changed.contains(&"is_active") {
            wake::revive(&mut tx, owner, id, None).await?;
        }
        let details = json!({ "changed": changed, "is_active": edit.is_active });
        let change = audit::Change { action: Action::WebhookUpdated, object: id.0, details };
        audit::record(&mut tx, owner, by, now, change).await?;
    }
    tx.commit().await?;
    Ok(webhook)
}

/// Stores the next signing secret, which signs nothing until [`rotate`]; it replaces an earlier one. Returns false when
/// the endpoint doesn't exist.
pub async fn prepare(
    db: &PgPool,
    owner: Owner,
    id: WebhookId,
    secret_sealed: &[u8],
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let mut tx = crate::begin(db).await?;
    let prepared = sqlx::query!(
        "update webhooks set next_secret_sealed = $4, updated_at = $5
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        secret_sealed,
        now
    )
    .execute(&mut *tx)
    .await?;
    let is_prepared = prepared.rows_affected() > 0;
    if is_prepared {
        let change = audit::Change { action: Action::SecretPrepared, object: id.0, details: json!({}) };
        audit::record(&mut tx, owner, by, now, change).await?;
    }
    tx.commit().await?;
    Ok(is_prepared)
}

/// Replaces the signing secret, from the next attempt on: by the one that was prepared, or else by this one. Returns
/// whether it was prepared; `None` when the endpoint doesn't exist.
pub async fn rotate(
    db: &PgPool,
    owner: Owner,
    id: WebhookId,
    secret_sealed: &[u8],
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<bool>> {
    let mut tx = crate::begin(db).await?;
    // By a function, because the role of the API may write sealed values and not read them.
    let was_prepared = sqlx::query_scalar!(
        "select endpoint_rotate($1, $2, $3, $4, $5)",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        secret_sealed,
        now
    )
    .fetch_one(&mut *tx)
    .await?;
    if was_prepared.is_some() {
        let change = audit::Change { action: Action::SecretRotated, object: id.0, details: json!({}) };
        audit::record(&mut tx, owner, by, now, change).await?;
    }
    tx.commit().await?;
    Ok(was_prepared)
}

/// Locks an endpoint, so that it is neither changed nor deleted meanwhile. Returns whether it is active; `None` when it
/// doesn't exist.
pub(crate) async fn lock(tx: &mut PgConnection, owner: Owner, id: WebhookId) -> sqlx::Result<Option<bool>> {
    sqlx::query_scalar!(
        "select is_active from webhooks
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null for no key update",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(tx)
    .await
}

/// Records that an endpoint's signing secret is shown.
pub async fn record_reveal(
    db: &PgPool,
    owner: Owner,
    id: WebhookId,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let change = audit::Change { action: Action::SecretRevealed, object: id.0, details: json!({}) };
    audit::record(&mut *db.acquire().await?, owner, by, now, change).await
}

/// Deletes an endpoint. Its workflow fails its open deliveries, in parts ([`crate::webhooks::drain::abandon`]). Returns false when
/// it doesn't exist.
pub async fn delete(
    db: &PgPool,
    owner: Owner,
    id: WebhookId,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let mut tx = crate::begin(db).await?;
    let deleted = sqlx::query_scalar!(
        "update webhooks set deleted_at = $4, is_active = false, updated_at = $4
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null
         returning id",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        now
    )
    .fetch_optional(&mut *tx)
    .await?;
    if deleted.is_some() {
        wake::revive(&mut tx, owner, id, None).await?;
        let change = audit::Change { action: Action::WebhookDeleted, object: id.0, details: json!({}) };
        audit::record(&mut tx, owner, by, now, change).await?;
    }
    tx.commit().await?;
    Ok(deleted.is_some())
}
