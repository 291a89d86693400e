//! Webhook endpoints: who wants to be told what.

use crate::Change;
use chrono::{DateTime, SubsecRound, Utc};
use domain::{Owner, WebhookId};
use sqlx::PgPool;
use uuid::Uuid;

/// An endpoint, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Its identifier.
    pub id: WebhookId,
    /// Where events go.
    pub url: String,
    /// The names of the events it subscribed to, or `*`.
    pub events: Vec<String>,
    /// A label, for people.
    pub description: Option<String>,
    /// Whether events are delivered.
    pub is_active: bool,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it last changed.
    pub updated_at: DateTime<Utc>,
}

/// What a new endpoint is to be.
#[derive(Clone, Debug)]
pub struct NewWebhook {
    /// Where events go.
    pub url: String,
    /// The names of the events it subscribes to, or `*`.
    pub events: Vec<String>,
    /// A label, for people.
    pub description: Option<String>,
}

/// Endpoints that an organization may have in a mode: each gets a copy of every event that it subscribed
/// to, and is asked eight times when it does not answer.
pub const MOST: usize = 20;

/// Makes an endpoint, unless there are as many as there may be. `seal` seals its secret to the id that it
/// gets.
pub async fn create(
    db: &PgPool,
    owner: Owner,
    new: NewWebhook,
    seal: impl FnOnce(WebhookId) -> Vec<u8>,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Webhook>> {
    let now = now.trunc_subsecs(6);
    let mut tx = db.begin().await?;
    // In a statement of its own: what was made while we waited for the lock has to be counted.
    sqlx::query!("select from organizations where id = $1 for no key update", owner.org.0)
        .execute(&mut *tx)
        .await?;
    let known = sqlx::query_scalar!(
        r#"select count(*) as "known!" from webhooks
           where org_id = $1 and mode = $2 and deleted_at is null"#,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_one(&mut *tx)
    .await?;
    if known >= MOST as i64 {
        return Ok(None);
    }
    let webhook = Webhook {
        id: WebhookId(Uuid::now_v7()),
        url: new.url,
        events: new.events,
        description: new.description,
        is_active: true,
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
    tx.commit().await?;
    Ok(Some(webhook))
}

/// The owner's endpoints, newest first.
pub async fn list(db: &PgPool, owner: Owner) -> sqlx::Result<Vec<Webhook>> {
    sqlx::query_as!(
        Webhook,
        "select id, url, events, description, is_active, created_at, updated_at from webhooks
         where org_id = $1 and mode = $2 and deleted_at is null order by created_at desc, id desc",
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_all(db)
    .await
}

/// One endpoint.
pub async fn get(db: &PgPool, owner: Owner, id: WebhookId) -> sqlx::Result<Option<Webhook>> {
    sqlx::query_as!(
        Webhook,
        "select id, url, events, description, is_active, created_at, updated_at from webhooks
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await
}

/// Where an endpoint is, and what its deliveries are signed with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Where events go.
    pub url: String,
    /// Its signing secret, sealed under [`crate::vault::aad_webhook_secret`].
    pub secret_sealed: Vec<u8>,
}

/// What sending to an endpoint takes.
pub async fn sealed_secret(db: &PgPool, owner: Owner, id: WebhookId) -> sqlx::Result<Option<Sealed>> {
    sqlx::query_as!(
        Sealed,
        "select url, secret_sealed from webhooks
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await
}

/// What is to change of an endpoint; `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// Where events go from now on, also those that were tried elsewhere.
    pub url: Option<String>,
    /// The names of the events it subscribes to, or `*`.
    pub events: Option<Vec<String>>,
    /// A label, for people.
    pub description: Change<String>,
    /// Whether events are delivered.
    pub is_active: Option<bool>,
}

/// Changes an endpoint.
pub async fn edit(
    db: &PgPool,
    owner: Owner,
    id: WebhookId,
    edit: Edit,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Webhook>> {
    sqlx::query_as!(
        Webhook,
        "update webhooks
         set url = coalesce($4, url), events = coalesce($5, events),
             description = case when $6 then $7 else description end,
             is_active = coalesce($8, is_active), updated_at = $9
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null
         returning id, url, events, description, is_active, created_at, updated_at",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        edit.url,
        edit.events.as_deref(),
        edit.description.is_made(),
        edit.description.value(),
        edit.is_active,
        now
    )
    .fetch_optional(db)
    .await
}

/// Gives an endpoint another secret, which signs from the next attempt on; `None` when it is not there.
pub async fn rotate(
    db: &PgPool,
    owner: Owner,
    id: WebhookId,
    secret_sealed: &[u8],
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Webhook>> {
    sqlx::query_as!(
        Webhook,
        "update webhooks set secret_sealed = $4, updated_at = $5
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null
         returning id, url, events, description, is_active, created_at, updated_at",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        secret_sealed,
        now
    )
    .fetch_optional(db)
    .await
}

/// Removes an endpoint and ends what was still to be delivered to it; false when it is not there.
pub async fn delete(db: &PgPool, owner: Owner, id: WebhookId, now: DateTime<Utc>) -> sqlx::Result<bool> {
    let gone = sqlx::query_scalar!(
        r#"with gone as (
             update webhooks set deleted_at = $4, is_active = false, updated_at = $4
             where id = $1 and org_id = $2 and mode = $3 and deleted_at is null
             returning id
           ), ended as (
             update deliveries set status = 'failed', error = 'endpoint deleted', next_attempt_at = null
             from gone
             where deliveries.webhook_id = gone.id and deliveries.status in ('pending', 'delivering')
           )
           select id from gone"#,
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        now
    )
    .fetch_optional(db)
    .await?;
    Ok(gone.is_some())
}
