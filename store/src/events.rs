//! Events and their deliveries.
//!
//! An event is written in the transaction that caused it, with its exact body, one delivery per subscribed
//! endpoint and the outbox message that dispatches them. An event without subscribers is not stored.

use crate::outbox;
use chrono::{DateTime, Utc};
use domain::{
    AccountId, DeliveryId, EventId, Owner, PostId, TargetId, WebhookId,
    event::{self, EventName},
    outbox::{EventDispatch, Message},
};
use serde::Deserialize;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

/// An event to append.
#[derive(Debug)]
pub struct NewEvent {
    /// Event name.
    pub name: EventName,
    /// The post that the event is about.
    pub post: Option<PostId>,
    /// The target that the event is about.
    pub target: Option<TargetId>,
    /// The account that the event is about.
    pub account: Option<AccountId>,
    /// Payload of the event.
    pub data: Value,
}

/// An endpoint with its subscriptions.
#[derive(Clone, Debug, Deserialize)]
pub struct Subscriber {
    /// Endpoint id.
    pub id: WebhookId,
    /// Event names; `*` stands for all.
    pub events: Vec<String>,
}

impl Subscriber {
    /// Returns whether the endpoint is subscribed to an event.
    pub fn wants(&self, name: EventName) -> bool {
        self.events.iter().any(|event| event == name.as_str() || event == event::EVERY_EVENT)
    }
}

/// Returns the owner's endpoints that receive events now.
pub async fn subscribers(tx: &mut PgConnection, owner: Owner) -> sqlx::Result<Vec<Subscriber>> {
    sqlx::query!(
        "select id, events from webhooks where org_id = $1 and mode = $2 and is_active and deleted_at is null",
        owner.org.0,
        owner.mode.as_str()
    )
    .map(|row| Subscriber { id: row.id.into(), events: row.events })
    .fetch_all(tx)
    .await
}

/// Appends an event for the owner's endpoints that are subscribed to it.
pub async fn append(
    tx: &mut PgConnection,
    owner: Owner,
    at: DateTime<Utc>,
    new: &NewEvent,
) -> sqlx::Result<()> {
    let subscribers = subscribers(&mut *tx, owner).await?;
    append_for(tx, owner, at, new, &subscribers).await
}

/// Appends an event for those of `subscribers` that are subscribed to it.
pub async fn append_for(
    tx: &mut PgConnection,
    owner: Owner,
    at: DateTime<Utc>,
    new: &NewEvent,
    subscribers: &[Subscriber],
) -> sqlx::Result<()> {
    let endpoints: Vec<Uuid> = subscribers
        .iter()
        .filter(|endpoint| endpoint.wants(new.name))
        .map(|endpoint| endpoint.id.0)
        .collect();
    if endpoints.is_empty() {
        return Ok(());
    }
    let event = EventId(Uuid::now_v7());
    let deliveries: Vec<Uuid> = endpoints.iter().map(|_| Uuid::now_v7()).collect();
    sqlx::query!(
        "with event as (
           insert into events (id, org_id, mode, event, post_id, target_id, account_id, body, created_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
           returning id)
         insert into deliveries (id, event_id, webhook_id, org_id, mode, event, created_at)
         select new.id, event.id, new.webhook_id, $2, $3, $4, $9
         from event, unnest($10::uuid[], $11::uuid[]) as new (id, webhook_id)",
        event.0,
        owner.org.0,
        owner.mode.as_str(),
        new.name.as_str(),
        new.post.map(|id| id.0),
        new.target.map(|id| id.0),
        new.account.map(|id| id.0),
        event::body(new.name.as_str(), at, &new.data),
        at,
        &deliveries,
        &endpoints,
    )
    .execute(&mut *tx)
    .await?;
    let message = Message::DeliverEvent(EventDispatch {
        event,
        owner,
        name: new.name.to_string(),
        post: new.post,
        deliveries: deliveries.into_iter().map(DeliveryId).collect(),
        round: 0,
    });
    outbox::push(tx, &message).await
}
