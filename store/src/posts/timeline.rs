//! Timelines: the history of a post, for its owner.
//!
//! Entries are written in the transaction that causes them. Deliveries are not copied here: they are rows
//! that change with each attempt, and are joined when the timeline is read.

use crate::{
    bounds::{Access, Resource, Whole},
    page::{Cursor, Page, Request},
};
use chrono::{DateTime, Utc};
use domain::{Owner, PostId, TargetId};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor, PgPool};

/// An entry of a timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// When it happened.
    pub at: DateTime<Utc>,
    /// Machine-readable kind, for example `created`.
    pub kind: String,
    /// Human-readable description.
    pub message: String,
    /// The target concerned; `None` for the whole post.
    pub target_id: Option<TargetId>,
    /// Further details, a JSON object.
    pub detail: Value,
}

/// Adds the id of the request that caused an entry to its details, if a request did.
pub(crate) fn caused_by(request_id: Option<&str>, mut detail: Value) -> Value {
    if let Some(id) = request_id {
        detail["request_id"] = id.into();
    }
    detail
}

/// Appends an entry to a post's timeline. A statement that is a transaction by itself, or whose rows decide about its
/// entries, inserts them itself.
pub async fn append(db: impl PgExecutor<'_>, owner: Owner, post: PostId, entry: Entry) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into timeline (org_id, mode, post_id, target_id, at, kind, message, detail)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        owner.org.0,
        owner.mode.as_str(),
        post.0,
        entry.target_id.map(|target| target.0),
        entry.at,
        entry.kind,
        entry.message,
        entry.detail
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Lets the timeline of a post that ended long ago, whose entries were deleted, keep those that are appended now as long as
/// others.
pub(crate) async fn reopen(tx: &mut PgConnection, post: PostId, now: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!(
        "update posts set timeline_deleted_at = null, updated_at = $2
         where id = $1 and timeline_deleted_at is not null",
        post.0,
        now
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns a page of a post's timeline, oldest first; empty for a post that doesn't exist.
///
/// Deliveries are among it for callers who may see the organization's webhooks: `webhooks` is their proof.
pub async fn list(
    db: &PgPool,
    access: Access<'_>,
    post: PostId,
    page: Request,
    webhooks: Option<Whole>,
) -> sqlx::Result<Page<Entry>> {
    let Some(owner) = access.reach(db, Resource::Post, post.0).await? else { return Ok(Page::empty()) };
    let beyond = page.beyond();
    let rows = sqlx::query!(
        r#"with post as (
             select id from posts where id = $1 and org_id = $2 and mode = $3 and deleted_at is null
           ), entries as (
             -- As an id, so that all lines have one. It is smaller than a delivery's.
             select t.at, lpad(to_hex(t.id), 32, '0')::uuid as line, t.kind, t.message, t.target_id, t.detail
             from timeline t join post on t.post_id = post.id
             union all
             select coalesce(d.delivered_at, d.created_at), d.id, 'delivery',
                    case d.status
                      when 'delivered' then 'Delivered ' || d.event || ' to ' || w.host
                      when 'failed' then 'Gave up delivering ' || d.event || ' to ' || w.host
                      else 'Delivering ' || d.event || ' to ' || w.host
                    end,
                    e.target_id,
                    jsonb_build_object('delivery_id', d.id, 'webhook_id', d.webhook_id, 'event', d.event,
                      'status', d.status, 'attempts', d.attempts, 'response_status', d.response_status,
                      'error', d.error, 'next_attempt_at', json_time(d.next_attempt_at))
             from post join events e on e.post_id = post.id
             join deliveries d on d.event_id = e.id
             join lateral (
               -- The rest of the URL may contain a secret, and callers may read posts but not webhooks.
               select coalesce(substring(url from '^[^:]+://(?:[^/?#\\]*@)?([^/?#\\]+)'), 'the endpoint') as host
               from webhooks where id = d.webhook_id
             ) w on true
             where $7
           )
           select at as "at!", line as "line!", kind as "kind!", message as "message!", target_id, detail as "detail!"
           from entries where (at, line) > ($4, $5) order by at, line limit $6"#,
        post.0,
        owner.org.0,
        owner.mode.as_str(),
        beyond.created_at,
        beyond.id,
        page.rows(),
        webhooks.is_some()
    )
    .fetch_all(db)
    .await?;
    let Page { items, next } = page.page(rows, |row| Cursor { created_at: row.at, id: row.line });
    let entries = items.into_iter().map(|row| Entry {
        at: row.at,
        kind: row.kind,
        message: row.message,
        target_id: row.target_id.map(TargetId),
        detail: row.detail,
    });
    Ok(Page { items: entries.collect(), next })
}
