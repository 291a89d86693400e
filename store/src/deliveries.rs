//! What becomes of the delivery of one event to one endpoint.
//!
//! A delivery has rounds: the first when the event happened, one more each time somebody asks for it
//! again. Each has a budget of attempts and a workflow of its own; an attempt that was made for an
//! earlier round finds another number in the row and leaves it alone.

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
use sqlx::{PgPool, QueryBuilder};
use std::time::Duration;
use uuid::Uuid;

domain::string_enum! {
    /// How far a delivery has come.
    DeliveryStatus, "delivery status" {
        /// Its next attempt is to come.
        Pending = "pending",
        /// It is being attempted.
        Delivering = "delivering",
        /// The endpoint has it.
        Delivered = "delivered",
        /// It was given up.
        Failed = "failed",
    }
}

/// A delivery, as its log shows it.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Delivery {
    /// Its identifier.
    #[sqlx(try_from = "Uuid")]
    pub id: DeliveryId,
    /// The event's name.
    pub event: String,
    /// How far it has come.
    #[sqlx(try_from = "Parsed<DeliveryStatus>")]
    pub status: DeliveryStatus,
    /// Attempts begun in this round.
    pub attempts: i32,
    /// The endpoint's last answer.
    pub response_status: Option<i32>,
    /// What went wrong last.
    pub error: Option<String>,
    /// When the next attempt comes.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// When the event happened.
    pub created_at: DateTime<Utc>,
    /// When the endpoint had it.
    pub delivered_at: Option<DateTime<Utc>>,
}

/// Which deliveries to list; every condition that is given must hold.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// In this state.
    pub status: Option<DeliveryStatus>,
    /// Of this event.
    pub event: Option<String>,
}

/// What asking for a delivery once more came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redelivered {
    /// It is on its way.
    Queued(Delivery),
    /// It is still on its way.
    Open,
    /// The endpoint is paused.
    Paused,
    /// There is no such delivery to that endpoint.
    Unknown,
}

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
           returning d.status, d.attempts, d.event_id, d.webhook_id, w.url, w.secret_sealed, e.body"#,
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        number(round)
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

/// No attempt was made after all: the endpoint has as many as it gets at a time. The next try comes at
/// `next`.
pub async fn postponed(db: &PgPool, id: DeliveryId, round: u32, next: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!(
        "update deliveries set status = 'pending', attempts = attempts - 1, next_attempt_at = $2
         where id = $1 and status = 'delivering' and round = $3",
        id.0,
        next,
        number(round)
    )
    .execute(db)
    .await?;
    Ok(())
}

/// The endpoint has it.
pub async fn delivered(
    db: &PgPool,
    id: DeliveryId,
    round: u32,
    answer: &Answer,
    at: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update deliveries set status = 'delivered', delivered_at = $2, response_status = $3,
           response_excerpt = $4, latency_ms = $5, error = null
         where id = $1 and status = 'delivering' and round = $6",
        id.0,
        at,
        answer.status,
        answer.excerpt,
        millis(answer.latency),
        number(round)
    )
    .execute(db)
    .await?;
    Ok(())
}

/// The attempt failed; the next comes at `next`, or never.
pub async fn failed(
    db: &PgPool,
    id: DeliveryId,
    round: u32,
    answer: &Answer,
    next: Option<DateTime<Utc>>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update deliveries
         set status = case when $2::timestamptz is null then 'failed' else 'pending' end,
             next_attempt_at = $2, response_status = $3, response_excerpt = $4, latency_ms = $5, error = $6
         where id = $1 and status = 'delivering' and round = $7",
        id.0,
        next,
        answer.status,
        answer.excerpt,
        millis(answer.latency),
        answer.error,
        number(round)
    )
    .execute(db)
    .await?;
    Ok(())
}

/// One page of what was or is to be delivered to an endpoint.
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

/// Delivers once more what was delivered or given up: the same body under the same event id, with a
/// fresh budget of attempts.
pub async fn redeliver(
    db: &PgPool,
    owner: Owner,
    webhook: WebhookId,
    id: DeliveryId,
) -> sqlx::Result<Redelivered> {
    let mut tx = db.begin().await?;
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
    let Some(found) = found else { return Ok(Redelivered::Unknown) };
    if matches!(found.status.0, DeliveryStatus::Pending | DeliveryStatus::Delivering) {
        return Ok(Redelivered::Open);
    }
    if !found.is_active {
        return Ok(Redelivered::Paused);
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
    outbox::push(&mut tx, &message).await?;
    tx.commit().await?;
    Ok(Redelivered::Queued(Delivery {
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

fn number(round: u32) -> i32 {
    i32::try_from(round).unwrap_or(i32::MAX)
}

fn millis(latency: Duration) -> i32 {
    i32::try_from(latency.as_millis()).unwrap_or(i32::MAX)
}
