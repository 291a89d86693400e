//! Events and their deliveries.
//!
//! An event is written in the transaction that caused it, with its exact body, one delivery per subscribed
//! endpoint and messages that wake those of the endpoints that are asleep ([`wake`]). Readers of its owner's
//! stream see it for 30 days; it is deleted with its deliveries when it is older than the operator keeps them
//! ([`crate::upkeep::retention`]).
//!
//! A stream must not skip an event whose transaction commits late. Neither the event's time nor its id is good
//! for a cursor: both are made before the commit, so that an event can appear behind a cursor that has passed
//! it. Writers therefore don't place an event; the first reader that sees it does, under a lock of the owner's
//! stream. Places only grow, and one that is given out later comes after every cursor given out before.
//!
//! Two other ways were ruled out. A lock that writers take would make all of an owner's publishing wait in line.
//! To order by transaction id, and to show only what is older than the oldest running transaction, would hide
//! everything for as long as any transaction in the database cluster writes, also another application's; and
//! these ids begin again when a dump is restored elsewhere, where clients' cursors would point into the future.
//! A place is a time of the database's clock, moved forward where it is not after the last one, and is after
//! all cursors again even when a backup is restored that has forgotten some.

use crate::{
    bounds::{self, Access, Whole},
    page::{Cursor, Request},
    webhooks::wake,
};
use chrono::{DateTime, Utc};
use domain::{
    AccountId, EventId, Owner, PostId, TargetId, WebhookId,
    event::{self, EventName},
};
use serde::Deserialize;
use serde_json::Value;
use sqlx::{PgConnection, PgPool, QueryBuilder};
use uuid::Uuid;

/// Size of the bodies of a page, in bytes, which ends with the event that reaches it: one of a post to 1,000 accounts may
/// have some hundred KiB, and takes far more memory than its text.
const PAGE_BYTES: i64 = 2 << 20;

/// Events that a reader places at once. Those that are left are placed by the next call.
const PLACED: i64 = 1000;

/// An event in its owner's stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Event id, the same as in its deliveries.
    pub id: EventId,
    /// The exact body of its deliveries.
    pub body: String,
    /// Place in the stream.
    place: Cursor,
}

/// Part of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// Cursor of the next part. It is set even if there are no further events yet.
    pub next: Cursor,
}

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
    /// True unless the endpoint is paused.
    pub is_active: bool,
}

impl Subscriber {
    /// Returns whether the endpoint is subscribed to an event.
    pub fn wants(&self, name: EventName) -> bool {
        self.events.iter().any(|event| event == name.as_str() || event == event::EVERY_EVENT)
    }
}

/// Returns the owner's endpoints, also paused ones.
pub async fn subscribers(tx: &mut PgConnection, owner: Owner) -> sqlx::Result<Vec<Subscriber>> {
    sqlx::query!(
        "select id, events, is_active from webhooks where org_id = $1 and mode = $2 and deleted_at is null",
        owner.org.0,
        owner.mode.as_str()
    )
    .map(|row| Subscriber { id: row.id.into(), events: row.events, is_active: row.is_active })
    .fetch_all(tx)
    .await
}

/// Appends an event, for the owner's endpoints that are subscribed to it.
pub async fn append(
    tx: &mut PgConnection,
    owner: Owner,
    at: DateTime<Utc>,
    new: &NewEvent,
) -> sqlx::Result<()> {
    let subscribers = subscribers(&mut *tx, owner).await?;
    append_for(tx, owner, at, new, &subscribers).await
}

/// Appends an event, for those of `subscribers` that are subscribed to it. For paused ones its delivery has failed, so
/// that it can be requested again.
pub async fn append_for(
    tx: &mut PgConnection,
    owner: Owner,
    at: DateTime<Utc>,
    new: &NewEvent,
    subscribers: &[Subscriber],
) -> sqlx::Result<()> {
    let wanting: Vec<_> = subscribers.iter().filter(|endpoint| endpoint.wants(new.name)).collect();
    let endpoints: Vec<Uuid> = wanting.iter().map(|endpoint| endpoint.id.0).collect();
    let active: Vec<bool> = wanting.iter().map(|endpoint| endpoint.is_active).collect();
    let event = EventId(Uuid::now_v7());
    let deliveries: Vec<Uuid> = endpoints.iter().map(|_| Uuid::now_v7()).collect();
    sqlx::query!(
        "with event as (
           insert into events (id, org_id, mode, event, post_id, target_id, account_id, body, created_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
           returning id)
         insert into deliveries (id, event_id, webhook_id, org_id, mode, event, created_at, status, error)
         select new.id, event.id, new.webhook_id, $2, $3, $4, $9,
           case when new.is_active then 'pending' else 'failed' end,
           case when not new.is_active then 'endpoint paused' end
         from event, unnest($10::uuid[], $11::uuid[], $12::bool[]) as new (id, webhook_id, is_active)",
        event.0,
        owner.org.0,
        owner.mode.as_str(),
        new.name.as_str(),
        new.post.map(|id| id.0),
        new.target.map(|id| id.0),
        new.account.map(|id| id.0),
        event::body(event, new.name.as_str(), at, &new.data),
        at,
        &deliveries,
        &endpoints,
        &active
    )
    .execute(&mut *tx)
    .await?;
    let due: Vec<_> =
        endpoints.into_iter().zip(active).filter_map(|(id, is_due)| is_due.then_some(id)).collect();
    if due.is_empty() { Ok(()) } else { wake::wake_sleeping(tx, owner, &due).await }
}

/// Returns the events of the owner's stream after a place that a caller reaches; of the given names, or all if
/// there are none. They may be fewer than the limit.
pub async fn read(
    db: &PgPool,
    access: Access<'_>,
    names: &[EventName],
    page: Request,
) -> sqlx::Result<Batch> {
    let (owner, bound) = access.parts();
    let start = Cursor { created_at: DateTime::UNIX_EPOCH, id: Uuid::nil() };
    let after = page.after.unwrap_or(start);
    let Some(head) = place(db, owner).await? else { return Ok(Batch { events: Vec::new(), next: after }) };
    let names: Vec<_> = names.iter().map(|name| name.as_str().to_owned()).collect();
    // Up to the head nothing is added any more: what another reader places meanwhile is after it.
    let mut query = QueryBuilder::new(
        "select id, body, streamed_at, found from (
           select page.*, count(*) over () as found,
             sum(octet_length(body)) over (order by streamed_at, id) - octet_length(body) as before
           from (select id, body, streamed_at from events where org_id = ",
    );
    query.push_bind(owner.org.0).push(" and mode = ").push_bind(owner.mode.as_str());
    query.push(" and (streamed_at, id) > (").push_bind(after.created_at).push(", ").push_bind(after.id);
    query.push(") and streamed_at <= ").push_bind(head);
    query.push(" and created_at > now() - interval '30 days'");
    if !names.is_empty() {
        query.push(" and event = any(").push_bind(names).push(")");
    }
    query.push(" and ");
    bounds::push_events(&mut query, bound);
    query.push(" order by streamed_at, id limit ").push_bind(i64::from(page.limit) + 1);
    query.push(") page) sized where before < ").push_bind(PAGE_BYTES).push(" order by streamed_at, id");
    let rows: Vec<(Uuid, String, DateTime<Utc>, i64)> = query.build_query_as().fetch_all(db).await?;
    let found = rows.first().map_or(0, |(.., found)| *found);
    let event = |(id, body, streamed_at, _)| Event {
        id: EventId(id),
        body,
        place: Cursor { created_at: streamed_at, id },
    };
    let mut events: Vec<_> = rows.into_iter().map(event).collect();
    let limit = page.limit as usize;
    let has_more = events.len() > limit || found > events.len() as i64;
    events.truncate(limit);
    let next = match events.last() {
        Some(last) if has_more => last.place,
        // Nothing else up to the head has these names.
        _ => Cursor { created_at: head.max(after.created_at), id: Uuid::max() },
    };
    Ok(Batch { events, next })
}

/// An event in the list of the newest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Event id.
    pub id: EventId,
    /// Event name.
    pub event: String,
    /// The post that the event is about.
    pub post: Option<PostId>,
    /// When it happened.
    pub created_at: DateTime<Utc>,
}

/// Returns up to `limit` events of these names of the last 30 days, newest first; only those before an event, if one is
/// given. For people: one whose transaction commits late may appear below those that were seen.
pub async fn newest(
    db: &PgPool,
    owner: Whole,
    names: &[EventName],
    before: Option<EventId>,
    limit: u32,
) -> sqlx::Result<Vec<Listed>> {
    let names: Vec<_> = names.iter().map(|name| name.as_str().to_owned()).collect();
    // Each name by the index that has this order. An event that is gone stands where its id says.
    let rows = sqlx::query!(
        "select e.id, e.event, e.post_id, e.created_at
         from unnest($3::text[]) wanted (name) cross join lateral (
           select id, event, post_id, created_at from events
           where org_id = $1 and mode = $2 and event = wanted.name
             and (created_at, id) < (coalesce((select created_at from events where id = $4), uuid_time($4)), $4)
             and id >= uuid_at(now() - interval '30 days')
           order by created_at desc, id desc limit $5
         ) e
         order by e.created_at desc, e.id desc limit $5",
        owner.org.0,
        owner.mode.as_str(),
        &names,
        before.map_or(Uuid::max(), |before| before.0),
        i64::from(limit)
    )
    .fetch_all(db)
    .await?;
    let listed = rows.into_iter().map(|row| Listed {
        id: EventId(row.id),
        event: row.event,
        post: row.post_id.map(PostId),
        created_at: row.created_at,
    });
    Ok(listed.collect())
}

/// Returns an event of the last 30 days with its exact body.
pub async fn get(db: &PgPool, owner: Whole, id: EventId) -> sqlx::Result<Option<(Listed, String)>> {
    let row = sqlx::query!(
        "select event, post_id, created_at, body from events
         where id = $1 and org_id = $2 and mode = $3 and created_at > now() - interval '30 days'",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| {
        let post = row.post_id.map(PostId);
        (Listed { id, event: row.event, post, created_at: row.created_at }, row.body)
    }))
}

/// Places the owner's new events at the end of the stream. Returns the last place; `None` while the stream has
/// no event.
async fn place(db: &PgPool, owner: Owner) -> sqlx::Result<Option<DateTime<Utc>>> {
    let found = sqlx::query!(
        r#"select (select streamed_at from event_streams where org_id = $1 and mode = $2) as head,
             exists (
               select from events
               where org_id = $1 and mode = $2 and streamed_at is null
                 and created_at > now() - interval '30 days') as "has_new!""#,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_one(db)
    .await?;
    if !found.has_new {
        return Ok(found.head);
    }
    let mut tx = crate::begin(db).await?;
    // Locks the stream until the transaction ends.
    let place = sqlx::query_scalar!(
        "insert into event_streams as stream (org_id, mode, streamed_at) values ($1, $2, clock_timestamp())
         on conflict (org_id, mode) do update
         set streamed_at = greatest(stream.streamed_at + interval '1 microsecond', excluded.streamed_at)
         returning streamed_at",
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_one(&mut *tx)
    .await?;
    // A statement of its own, which sees what another reader placed while this one waited for the lock.
    sqlx::query!(
        "update events set streamed_at = $3
         where id in (
           select id from events
           where org_id = $1 and mode = $2 and streamed_at is null and created_at > now() - interval '30 days'
           order by created_at, id limit $4)",
        owner.org.0,
        owner.mode.as_str(),
        place,
        PLACED
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(Some(place))
}
