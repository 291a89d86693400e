//! What becomes of the delivery of one event to one endpoint.

use chrono::{DateTime, Utc};
use domain::{DeliveryId, EventId, Owner, WebhookId};
use sqlx::PgPool;
use std::time::Duration;

/// A delivery that is being attempted.
#[derive(Debug)]
pub struct Attempt {
    /// The event, the same on each attempt.
    pub event: EventId,
    /// The endpoint.
    pub webhook: WebhookId,
    /// Its address.
    pub url: String,
    /// Its signing secret, sealed.
    pub secret_sealed: Vec<u8>,
    /// The exact bytes to send.
    pub body: String,
    /// Which attempt this is, from 1.
    pub number: i32,
}

/// What an endpoint answered, for the delivery log.
#[derive(Debug, Default)]
pub struct Answer {
    /// The HTTP status; `None` when none came.
    pub status: Option<i32>,
    /// The first bytes of the body.
    pub excerpt: Option<String>,
    /// How long it took.
    pub latency: Duration,
    /// What went wrong.
    pub error: Option<String>,
}

/// Begins an attempt, or `None` when there is none to make: it was delivered or given up, or its
/// endpoint is paused or gone, in which case the delivery ends here with a note.
pub async fn begin(db: &PgPool, owner: Owner, id: DeliveryId) -> sqlx::Result<Option<Attempt>> {
    let row = sqlx::query!(
        r#"update deliveries d
           set status = case when w.is_active and w.deleted_at is null then 'delivering' else 'failed' end,
               error = case when w.deleted_at is not null then 'endpoint deleted'
                            when not w.is_active then 'endpoint paused' end,
               attempts = d.attempts + case when w.is_active and w.deleted_at is null then 1 else 0 end,
               next_attempt_at = null
           from webhooks w, events e
           where d.id = $1 and d.org_id = $2 and d.mode = $3 and d.status in ('pending', 'delivering')
             and w.id = d.webhook_id and e.id = d.event_id
           returning d.status, d.attempts, d.event_id, d.webhook_id, w.url, w.secret_sealed, e.body"#,
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await?;
    Ok(row.filter(|row| row.status == "delivering").map(|row| Attempt {
        event: row.event_id.into(),
        webhook: row.webhook_id.into(),
        url: row.url,
        secret_sealed: row.secret_sealed,
        body: row.body,
        number: row.attempts,
    }))
}

/// The endpoint has it.
pub async fn delivered(db: &PgPool, id: DeliveryId, answer: &Answer, at: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!(
        "update deliveries set status = 'delivered', delivered_at = $2, response_status = $3,
           response_excerpt = $4, latency_ms = $5, error = null
         where id = $1 and status = 'delivering'",
        id.0,
        at,
        answer.status,
        answer.excerpt,
        millis(answer.latency)
    )
    .execute(db)
    .await?;
    Ok(())
}

/// The attempt failed; the next comes at `next`, or never.
pub async fn failed(
    db: &PgPool,
    id: DeliveryId,
    answer: &Answer,
    next: Option<DateTime<Utc>>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update deliveries
         set status = case when $2::timestamptz is null then 'failed' else 'pending' end,
             next_attempt_at = $2, response_status = $3, response_excerpt = $4, latency_ms = $5, error = $6
         where id = $1 and status = 'delivering'",
        id.0,
        next,
        answer.status,
        answer.excerpt,
        millis(answer.latency),
        answer.error
    )
    .execute(db)
    .await?;
    Ok(())
}

fn millis(latency: Duration) -> i32 {
    i32::try_from(latency.as_millis()).unwrap_or(i32::MAX)
}
