//! The transactional outbox: messages to Temporal.
//!
//! A transaction pushes a message together with the rows that make it necessary; a relay claims the message,
//! delivers it to Temporal and deletes it. A relay that crashes holds its messages only until their lease
//! ends, and delivering one twice does nothing, because workflow ids are fixed.
//!
//! The row is enough: relays poll. So that they need not wait for that, the commit wakes the relay of the same process,
//! and a process without one notifies those of others (`store::transaction`).
//!
//! Table: `outbox`.

pub use crate::transaction::CHANNEL;

use crate::transaction;
use domain::{OrgId, PostId, outbox::Message};
use serde_json::Value;
use sqlx::{PgConnection, PgPool, types::Json};
use std::time::Duration;
use uuid::Uuid;

/// A message claimed by a relay.
#[derive(Debug)]
pub struct Claimed {
    /// Row id.
    pub id: i64,
    /// The message, or why this version can't decode it. Other messages are not affected.
    pub message: Result<Message, String>,
    /// Number of delivery attempts, including this one.
    pub attempts: i32,
}

/// Pushes a message in the current transaction.
pub async fn push(tx: &mut PgConnection, message: &Message) -> sqlx::Result<()> {
    let org = message.owner().org;
    transaction::pushed();
    sqlx::query!("insert into outbox (org_id, message) values ($1, $2)", org.0, Json(message) as _)
        .execute(tx)
        .await?;
    Ok(())
}

/// Pushes messages in the current transaction.
pub(crate) async fn push_all(tx: &mut PgConnection, messages: &[Message]) -> sqlx::Result<()> {
    let orgs: Vec<_> = messages.iter().map(|message| message.owner().org.0).collect();
    let messages: Vec<_> = messages.iter().map(Json).collect();
    transaction::pushed();
    sqlx::query!(
        "insert into outbox (org_id, message) select * from unnest($1::uuid[], $2::jsonb[])",
        &orgs,
        &messages as _
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Pushes messages for overdue rows in the current transaction, each with its row, unless an earlier one of the row
/// waits: while Temporal is away, one message per row is enough. Returns how many were pushed.
pub(crate) async fn push_overdue(tx: &mut PgConnection, messages: &[(Uuid, Message)]) -> sqlx::Result<usize> {
    if messages.is_empty() {
        return Ok(0);
    }
    let orgs: Vec<_> = messages.iter().map(|(_, message)| message.owner().org.0).collect();
    let (rows, messages): (Vec<_>, Vec<_>) =
        messages.iter().map(|(row, message)| (*row, Json(message))).unzip();
    transaction::pushed();
    let pushed = sqlx::query!(
        "insert into outbox (org_id, message, overdue) select * from unnest($1::uuid[], $2::jsonb[], $3::uuid[])
         on conflict (overdue) where overdue is not null and parked_at is null do nothing",
        &orgs,
        &messages as _,
        &rows
    )
    .execute(tx)
    .await?;
    Ok(usize::try_from(pushed.rows_affected()).unwrap_or(usize::MAX))
}

/// Claims up to `limit` messages for the duration of `lease`: one of each organization, then a second of
/// each, and so on, each organization's oldest first. A message that is to wait for longer than any lease or
/// backoff is claimed at once: the server's clock was set back.
pub async fn claim(db: &PgPool, limit: i64, lease: Duration) -> sqlx::Result<Vec<Claimed>> {
    let rows = sqlx::query!(
        r#"with recursive orgs as (
             (select org_id from outbox
              where parked_at is null and (available_at <= now() or available_at > now() + interval '10 minutes')
              order by org_id limit 1)
             union all
             select (select o.org_id from outbox o
                     where o.parked_at is null and o.org_id > orgs.org_id
                       and (o.available_at <= now() or o.available_at > now() + interval '10 minutes')
                     order by o.org_id limit 1)
             from orgs where orgs.org_id is not null),
           turns as (
             select own.id, own.turn
             from orgs cross join lateral (
               select id, row_number() over (order by available_at, id) as turn
               from (select id, available_at from outbox
                     where org_id = orgs.org_id and parked_at is null
                       and (available_at <= now() or available_at > now() + interval '10 minutes')
                     order by available_at, id limit $1) oldest) own
             where orgs.org_id is not null
             -- In random order among equals, so that with more organizations than places none starves.
             order by own.turn, random() limit $1)
           update outbox set available_at = now() + make_interval(secs => $2), attempts = attempts + 1
           where id in (select id from outbox
                        where id in (select id from turns)
                          and (available_at <= now() or available_at > now() + interval '10 minutes')
                        for update skip locked)
           returning id, message as "message: Json<Value>", attempts"#,
        limit,
        lease.as_secs_f64()
    )
    .fetch_all(db)
    .await?;
    let mut claimed: Vec<_> = rows
        .into_iter()
        .map(|row| Claimed {
            id: row.id,
            message: serde_json::from_value(row.message.0).map_err(|error| error.to_string()),
            attempts: row.attempts,
        })
        .collect();
    claimed.sort_by_key(|message| message.id);
    Ok(claimed)
}

/// Deletes delivered messages, and marks the targets of the posts in `started`, whose workflows they
/// started, as queued.
pub async fn complete(db: &PgPool, ids: &[i64], started: &[PostId]) -> sqlx::Result<()> {
    let started: Vec<_> = started.iter().map(|post| post.0).collect();
    sqlx::query!(
        "with queued as (
           update targets t set status = 'queued' from posts p
           where t.post_id = any($2) and t.status = 'pending' and p.id = t.post_id and p.status <> 'draft'
             and p.starts_at is null)
         delete from outbox where id = any($1)",
        ids,
        &started
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Releases a message, to be claimed again after a pause.
pub async fn postpone(db: &PgPool, id: i64, pause: Duration) -> sqlx::Result<()> {
    sqlx::query!(
        "update outbox set available_at = now() + make_interval(secs => $2) where id = $1",
        id,
        pause.as_secs_f64()
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Returns whether an older message that starts the workflow of a post, or may, is still to be sent: a retry starts it
/// if it is gone.
pub async fn starts_later(db: &PgPool, message: i64, org: OrgId, post: PostId) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (
             select from outbox
             where org_id = $2 and id < $1 and parked_at is null and message->>'post' = $3
               and message->>'type' in ('publish_post', 'post_changed', 'retry_target')
           ) as "exists!""#,
        message,
        org.0,
        post.to_string()
    )
    .fetch_one(db)
    .await
}

/// Parks a message that can't be delivered, for an operator to inspect. It replaces an earlier one of the same overdue
/// row: while Temporal refuses them, each sweep writes another.
pub async fn park(db: &PgPool, id: i64, error: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "with parked as (
           update outbox set parked_at = now(), error = $2 where id = $1 returning id, overdue)
         delete from outbox using parked
         where outbox.overdue = parked.overdue and outbox.id <> parked.id and outbox.parked_at is not null",
        id,
        error
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Returns the number of messages that are not parked.
pub async fn len(db: &PgPool) -> sqlx::Result<i64> {
    sqlx::query_scalar!(r#"select count(*) as "count!" from outbox where parked_at is null"#)
        .fetch_one(db)
        .await
}
