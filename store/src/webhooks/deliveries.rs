//! Deliveries: each sends one event to one endpoint.
//!
//! A delivery has rounds: the first starts with the event, and each redelivery starts another. Every round
//! has its own retry budget; the writes of an attempt of an earlier round match no row. How deliveries are sent
//! is in [`crate::webhooks::drain`].

use crate::{
    bounds::Whole,
    decode::{self, Parsed},
    page::{Cursor, Page, Request},
    webhooks::{self, wake},
};
use chrono::{DateTime, Utc};
use domain::{DeliveryId, EventId, Owner, PostId, WebhookId};
use serde::Deserialize;
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

decode::into_inner!(DeliveryStatus);

/// A delivery, as the delivery log shows it.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Delivery {
    /// Delivery id.
    #[sqlx(try_from = "Uuid")]
    pub id: DeliveryId,
    /// The event's id.
    #[sqlx(try_from = "Uuid")]
    pub event_id: EventId,
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

/// A delivery with what was sent and what was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details {
    /// The delivery.
    pub delivery: Delivery,
    /// The post that the event is about.
    pub post: Option<PostId>,
    /// The exact body of each attempt.
    pub body: String,
    /// Answers to its attempts, oldest first: the last [`KEPT_ANSWERS`].
    pub answers: Vec<Answer>,
}

/// Number of answers that a delivery keeps.
pub const KEPT_ANSWERS: i32 = 20;

/// Answer of an endpoint to an attempt, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Answer {
    /// When; `None` if it is unknown.
    pub at: Option<DateTime<Utc>>,
    /// HTTP status; `None` when there was no response.
    pub status: Option<i32>,
    /// First bytes of the body.
    pub excerpt: Option<String>,
    /// Time from request to response, in milliseconds.
    pub latency_ms: Option<i32>,
    /// Why the attempt failed.
    pub error: Option<String>,
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
    /// A new round was queued, or the next attempt of this one.
    Queued(Delivery),
    /// An attempt is under way or due.
    InProgress,
    /// The endpoint is paused.
    Paused,
    /// The endpoint has no such delivery.
    NotFound,
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

/// Returns one page of an endpoint's deliveries.
pub async fn list(
    db: &PgPool,
    owner: Owner,
    webhook: WebhookId,
    filter: &Filter,
    page: Request,
) -> sqlx::Result<Page<Delivery>> {
    let mut query = QueryBuilder::new(
        // A delivery whose endpoint is dead waits for a probe; one that is being attempted has a lease instead.
        "select id, event_id, event, status, attempts, response_status, error,
           case when status = 'pending' then greatest(next_attempt_at, (
             select probe_at from webhooks w where w.id = deliveries.webhook_id and w.probe_at > now()
           )) end as next_attempt_at,
           created_at, delivered_at
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

/// A delivery of an event, with its endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfEvent {
    /// Delivery id.
    pub id: DeliveryId,
    /// The endpoint.
    pub webhook: WebhookId,
    /// URL of the endpoint.
    pub url: String,
    /// Delivery status.
    pub status: DeliveryStatus,
    /// Attempts begun in the current round.
    pub attempts: i32,
    /// HTTP status of the last response.
    pub response_status: Option<i32>,
    /// Error of the last attempt.
    pub error: Option<String>,
}

/// Returns the deliveries of an event, without those to deleted endpoints.
pub async fn of_event(db: &PgPool, owner: Whole, event: EventId) -> sqlx::Result<Vec<OfEvent>> {
    let rows = sqlx::query!(
        r#"select d.id, d.webhook_id, w.url, d.status as "status: Parsed<DeliveryStatus>", d.attempts, d.response_status,
             d.error
           from deliveries d join webhooks w on w.id = d.webhook_id
           where d.event_id = $1 and d.org_id = $2 and d.mode = $3 and w.deleted_at is null
           order by d.id"#,
        event.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_all(db)
    .await?;
    let deliveries = rows.into_iter().map(|row| OfEvent {
        id: DeliveryId(row.id),
        webhook: WebhookId(row.webhook_id),
        url: row.url,
        status: row.status.0,
        attempts: row.attempts,
        response_status: row.response_status,
        error: row.error,
    });
    Ok(deliveries.collect())
}

/// Returns a delivery with what was sent and answered.
pub async fn get(
    db: &PgPool,
    owner: Owner,
    webhook: WebhookId,
    id: DeliveryId,
) -> sqlx::Result<Option<Details>> {
    let row = sqlx::query!(
        r#"select d.event_id, d.event, d.status as "status: Parsed<DeliveryStatus>", d.attempts, d.response_status,
             d.response_excerpt, d.latency_ms, d.error, d.created_at, d.delivered_at, d.answers,
             case when d.status = 'pending' then greatest(d.next_attempt_at, case when w.probe_at > now() then w.probe_at end)
             end as next_attempt_at,
             e.post_id, e.body
           from deliveries d join webhooks w on w.id = d.webhook_id join events e on e.id = d.event_id
           where d.id = $1 and d.webhook_id = $2 and d.org_id = $3 and d.mode = $4"#,
        id.0,
        webhook.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let answers = match row.answers {
        Some(answers) => {
            serde_json::from_value(answers).map_err(|error| sqlx::Error::Decode(Box::new(error)))?
        }
        None if row.response_status.is_some() => vec![Answer {
            at: row.delivered_at,
            status: row.response_status,
            excerpt: row.response_excerpt,
            latency_ms: row.latency_ms,
            error: row.error.clone(),
        }],
        None => Vec::new(),
    };
    Ok(Some(Details {
        delivery: Delivery {
            id,
            event_id: EventId(row.event_id),
            event: row.event,
            status: row.status.0,
            attempts: row.attempts,
            response_status: row.response_status,
            error: row.error,
            next_attempt_at: row.next_attempt_at,
            created_at: row.created_at,
            delivered_at: row.delivered_at,
        },
        post: row.post_id.map(PostId),
        body: row.body,
        answers,
    }))
}

/// Starts another round of a finished delivery: the same body under the same event id, with a new retry
/// budget. One that waits for its next attempt is attempted now.
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
    // The endpoint first, as in all transactions that write both.
    let is_active = webhooks::lock(&mut *tx, owner, webhook).await?;
    let Some(is_active) = is_active else { return Ok(RedeliverResult::NotFound) };
    let status = sqlx::query_scalar!(
        r#"select status as "status: Parsed<DeliveryStatus>" from deliveries
           where id = $1 and webhook_id = $2 for no key update"#,
        id.0,
        webhook.0
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(status) = status else { return Ok(RedeliverResult::NotFound) };
    if !is_active {
        return Ok(match status.0 {
            DeliveryStatus::Pending | DeliveryStatus::Delivering => RedeliverResult::InProgress,
            DeliveryStatus::Delivered | DeliveryStatus::Failed => RedeliverResult::Paused,
        });
    }
    match status.0 {
        DeliveryStatus::Delivering => return Ok(RedeliverResult::InProgress),
        DeliveryStatus::Pending => return hurry(tx, owner, webhook, id).await,
        DeliveryStatus::Delivered | DeliveryStatus::Failed => {}
    }
    let delivery = sqlx::query_as!(
        Delivery,
        r#"update deliveries
           set status = 'pending', round = round + 1, attempts = 0, response_status = null,
               response_excerpt = null, latency_ms = null, error = null, next_attempt_at = null,
               delivered_at = null,
               answers = case when answers is null and response_status is not null then jsonb_build_array(jsonb_build_object(
                 'at', delivered_at, 'status', response_status, 'excerpt', response_excerpt, 'latency_ms', latency_ms,
                 'error', error)) else answers end
           where id = $1
           returning id, event_id, event, status as "status: Parsed<DeliveryStatus>", attempts, response_status, error,
             next_attempt_at, created_at, delivered_at"#,
        id.0
    )
    .fetch_one(&mut *tx)
    .await?;
    wake::revive(&mut *tx, owner, webhook, Some(id)).await?;
    Ok(RedeliverResult::Queued(delivery))
}

/// Has a delivery that waits for its next attempt attempted now, in the same round.
async fn hurry(
    tx: &mut PgConnection,
    owner: Owner,
    webhook: WebhookId,
    id: DeliveryId,
) -> sqlx::Result<RedeliverResult> {
    let delivery = sqlx::query_as!(
        Delivery,
        r#"update deliveries d set next_attempt_at = null
           from webhooks w
           where d.id = $1 and w.id = d.webhook_id and d.status = 'pending'
             and (d.next_attempt_at > now() or w.probe_at > now())
           returning d.id, d.event_id, d.event, d.status as "status: Parsed<DeliveryStatus>", d.attempts, d.response_status,
             d.error, d.next_attempt_at, d.created_at, d.delivered_at"#,
        id.0
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(delivery) = delivery else { return Ok(RedeliverResult::InProgress) };
    wake::revive(&mut *tx, owner, webhook, Some(id)).await?;
    Ok(RedeliverResult::Queued(delivery))
}
