//! Deliveries: each sends one event to one endpoint.
//!
//! A delivery has rounds: the first starts with the event, and each redelivery starts another. Every round
//! has its own retry budget; the writes of an attempt of an earlier round match no row. How deliveries are sent
//! is in [`crate::drain`].

use crate::{
    decode::Parsed,
    drain,
    page::{Cursor, Page, Request},
    webhooks,
};
use chrono::{DateTime, Utc};
use domain::{DeliveryId, Owner, WebhookId};
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
        "select id, event, status, attempts, response_status, error,
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
    if matches!(status.0, DeliveryStatus::Pending | DeliveryStatus::Delivering) {
        return Ok(RedeliverResult::InProgress);
    }
    if !is_active {
        return Ok(RedeliverResult::Paused);
    }
    let row = sqlx::query!(
        r#"update deliveries
           set status = 'pending', is_drained = true, round = round + 1, attempts = 0, response_status = null,
               response_excerpt = null, latency_ms = null, error = null, next_attempt_at = null,
               delivered_at = null
           where id = $1
           returning id, event, status as "status: Parsed<DeliveryStatus>", attempts, response_status, error,
             next_attempt_at, created_at, delivered_at"#,
        id.0
    )
    .fetch_one(&mut *tx)
    .await?;
    drain::revive(&mut *tx, owner, webhook, Some(id)).await?;
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
