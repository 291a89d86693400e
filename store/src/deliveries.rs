//! Deliveries: each sends one event to one endpoint.
//!
//! A delivery has rounds: the first starts with the event, and each redelivery starts another. Every round
//! has its own retry budget and its own workflow; the writes of an attempt of an earlier round match no row.

use crate::{
    decode::Parsed,
    outbox,
    page::{Cursor, Page, Request},
};
use chrono::{DateTime, Utc};
use domain::{
    DeliveryId, EventId, Owner, PostId, WebhookId,
    outbox::{EventDispatch, Message},
};
use sqlx::{PgConnection, PgPool, QueryBuilder};
use std::time::Duration;
use uuid::Uuid;

domain::string_enum! {
    /// Status of a delivery.
    DeliveryStatus, "delivery status" {
        /// Waiting for the next attempt.
        Pending = "pending",
        /// An attempt is under way.
        Delivering = "delivering",
        /// The endpoint accepted the event.
        Delivered = "delivered",
        /// The last attempt failed, or the endpoint was paused or deleted.
        Failed = "failed",
    }
}

/// A delivery, as the delivery log shows it.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Delivery {
    /// Delivery id.
    #[sqlx(try_from = "Uuid")]
    pub id: DeliveryId,
    /// Event name, for example `post.published`.
    pub event: String,
    /// Delivery status.
    #[sqlx(try_from = "Parsed<DeliveryStatus>")]
    pub status: DeliveryStatus,
    /// Attempts begun in the current round.
    pub attempts: i32,
    /// HTTP status of the last response.
    pub response_status: Option<i32>,
    /// Error of the last attempt.
    pub error: Option<String>,
    /// When the next attempt is due; `None` when none is scheduled.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// When the event occurred.
    pub created_at: DateTime<Utc>,
    /// When the endpoint accepted the event.
    pub delivered_at: Option<DateTime<Utc>>,
}

/// Filter of a list of deliveries; all given conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Delivery status.
    pub status: Option<DeliveryStatus>,
    /// Event name.
    pub event: Option<String>,
}

/// The result of requesting a redelivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedeliverResult {
    /// A new round was queued.
    Queued(Delivery),
    /// The current round is still open.
    InProgress,
    /// The endpoint is paused.
    Paused,
    /// The endpoint has no such delivery.
    NotFound,
}

/// A delivery attempt to make.
#[derive(Debug)]
pub struct Attempt {
    /// Event id, the same on each attempt.
    pub event: EventId,
    /// Post that the event is about.
    pub post: Option<PostId>,
    /// Endpoint id.
    pub webhook: WebhookId,
    /// URL of the endpoint.
    pub url: String,
    /// Signing secret of the endpoint, sealed.
    pub secret_sealed: Vec<u8>,
    /// The exact bytes to send.
    pub body: String,
    /// Number of the attempt in its round, from 1.
    pub number: i32,
}

/// An endpoint's response, for the delivery log.
#[derive(Debug, Default)]
pub struct Response {
    /// HTTP status; `None` when there was no response.
    pub status: Option<i32>,
    /// First bytes of the body.
    pub excerpt: Option<String>,
    /// Time from request to response.
    pub latency: Duration,
    /// Why the attempt failed.
    pub error: Option<String>,
}

/// Begins an attempt. Returns `None` when there is none to make: the delivery was finished, or its endpoint
/// is paused or deleted, which fails the delivery with that reason.
pub async fn begin(db: &PgPool, owner: Owner, id: DeliveryId, round: u32) -> sqlx::Result<Option<Attempt>> {
    let row = sqlx::query!(
        r#"update deliveries d
           set status = case when w.is_active and w.deleted_at is null then 'delivering' else 'failed' end,
               error = case when w.deleted_at is not null then 'endpoint deleted'
                            when not w.is_active then 'endpoint paused' end,
               attempts = d.attempts + case when w.is_active and w.deleted_at is null then 1 else 0 end,
               next_attempt_at = null
           from webhooks w, events e
           where d.id = $1 and d.org_id = $2 and d.mode = $3 and d.status in ('pending', 'delivering')
             and d.round = $4 and w.id = d.webhook_id and e.id = d.event_id
           returning d.status, d.attempts, d.event_id, d.webhook_id, w.url, w.secret_sealed, e.body, e.post_id"#,
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        round_number(round)
    )
    .fetch_optional(db)
    .await?;
    Ok(row.filter(|row| row.status == "delivering").map(|row| Attempt {
        event: row.event_id.into(),
        post: row.post_id.map(Into::into),
        webhook: row.webhook_id.into(),
        url: row.url,
        secret_sealed: row.secret_sealed,
        body: row.body,
        number: row.attempts,
    }))
}

/// Takes back an attempt that was not made, because the endpoint has reached its limit of concurrent
/// requests; the next is due at `next`.
pub async fn postpone(db: &PgPool, id: DeliveryId, round: u32, next: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!(
        "update deliveries set status = 'pending', attempts = attempts - 1, next_attempt_at = $2
         where id = $1 and status = 'delivering' and round = $3",
        id.0,
        next,
        round_number(round)
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Marks a delivery as delivered.
pub async fn mark_delivered(
    db: &PgPool,
    id: DeliveryId,
    round: u32,
    response: &Response,
    at: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update deliveries set status = 'delivered', delivered_at = $2, response_status = $3,
           response_excerpt = $4, latency_ms = $5, error = null
         where id = $1 and status = 'delivering' and round = $6",
        id.0,
        at,
        response.status,
        response.excerpt,
        millis(response.latency),
        round_number(round)
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Records a failed attempt; the next is due at `next`, and without one the delivery failed.
pub async fn mark_failed(
    db: &PgPool,
    id: DeliveryId,
    round: u32,
    response: &Response,
    next: Option<DateTime<Utc>>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update deliveries
         set status = case when $2::timestamptz is null then 'failed' else 'pending' end,
             next_attempt_at = $2, response_status = $3, response_excerpt = $4, latency_ms = $5, error = $6
         where id = $1 and status = 'delivering' and round = $7",
        id.0,
        next,
        response.status,
        response.excerpt,
        millis(response.latency),
        response.error,
        round_number(round)
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Returns one page of an endpoint's deliveries.
pub async fn list(
    db: &PgPool,
    owner: Owner,
    webhook: WebhookId,
    filter: &Filter,
    page: Request,
) -> sqlx::Result<Page<Delivery>> {
    let mut query = QueryBuilder::new(
        "select id, event, status, attempts, response_status, error, next_attempt_at, created_at, delivered_at
         from deliveries where webhook_id = ",
    );
    query.push_bind(webhook.0).push(" and org_id = ").push_bind(owner.org.0);
    query.push(" and mode = ").push_bind(owner.mode.as_str());
    if let Some(status) = filter.status {
        query.push(" and status = ").push_bind(status.as_str());
    }
    if let Some(event) = &filter.event {
        query.push(" and event = ").push_bind(event.clone());
    }
    page.close(&mut query);
    let rows = query.build_query_as::<Delivery>().fetch_all(db).await?;
    Ok(page.page(rows, |delivery| Cursor { created_at: delivery.created_at, id: delivery.id.0 }))
}

/// Starts another round of a finished delivery: the same body under the same event id, with a new retry
/// budget.
pub async fn redeliver(
    db: &PgPool,
    owner: Owner,
    webhook: WebhookId,
    id: DeliveryId,
) -> sqlx::Result<RedeliverResult> {
    let mut tx = crate::begin(db).await?;
    let redelivered = redeliver_in(&mut tx, owner, webhook, id).await?;
    if matches!(redelivered, RedeliverResult::Queued(_)) {
        tx.commit().await?;
    }
    Ok(redelivered)
}

/// [`redeliver`] in a transaction.
pub(crate) async fn redeliver_in(
    tx: &mut PgConnection,
    owner: Owner,
    webhook: WebhookId,
    id: DeliveryId,
) -> sqlx::Result<RedeliverResult> {
    let found = sqlx::query!(
        r#"select d.status as "status: Parsed<DeliveryStatus>", w.is_active, d.event_id, e.post_id
           from deliveries d join webhooks w on w.id = d.webhook_id join events e on e.id = d.event_id
           where d.id = $1 and d.webhook_id = $2 and d.org_id = $3 and d.mode = $4 and w.deleted_at is null
           for no key update of d"#,
        id.0,
        webhook.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(found) = found else { return Ok(RedeliverResult::NotFound) };
    if matches!(found.status.0, DeliveryStatus::Pending | DeliveryStatus::Delivering) {
        return Ok(RedeliverResult::InProgress);
    }
    if !found.is_active {
        return Ok(RedeliverResult::Paused);
    }
    let row = sqlx::query!(
        r#"update deliveries
           set status = 'pending', round = round + 1, attempts = 0, response_status = null,
               response_excerpt = null, latency_ms = null, error = null, next_attempt_at = null,
               delivered_at = null
           where id = $1
           returning id, event, status as "status: Parsed<DeliveryStatus>", attempts, response_status, error,
             next_attempt_at, created_at, delivered_at, round"#,
        id.0
    )
    .fetch_one(&mut *tx)
    .await?;
    let message = Message::DeliverEvent(EventDispatch {
        event: found.event_id.into(),
        owner,
        name: row.event.clone(),
        post: found.post_id.map(PostId),
        deliveries: vec![id],
        round: row.round.unsigned_abs(),
    });
    outbox::push(&mut *tx, &message).await?;
    Ok(RedeliverResult::Queued(Delivery {
        id,
        event: row.event,
        status: row.status.0,
        attempts: row.attempts,
        response_status: row.response_status,
        error: row.error,
        next_attempt_at: row.next_attempt_at,
        created_at: row.created_at,
        delivered_at: row.delivered_at,
    }))
}

fn round_number(round: u32) -> i32 {
    i32::try_from(round).unwrap_or(i32::MAX)
}

fn millis(latency: Duration) -> i32 {
    i32::try_from(latency.as_millis()).unwrap_or(i32::MAX)
}
