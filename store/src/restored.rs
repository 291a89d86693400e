//! A database that was restored from a backup.
//!
//! The restored rows don't know what was published since the backup was taken. Each open target that was due by
//! now gets an intent without outcome for each of its unpublished containers, so that its next attempt looks up
//! what may be live before it publishes anything, as after a lost answer.
//!
//! The sweep carries the open posts to Temporal when they are due or within the scheduling horizon, in batches: nothing
//! in Temporal is believed, which may have been kept, lost or restored as well.
//!
//! Facts that came after the backup stay lost: posts created, edited, canceled or moved forward since then, and
//! renewed grants.

use chrono::{DateTime, Utc};
use sqlx::PgPool;

/// Added to fences and versions, so that they are higher than any since the backup: an attempt from before the
/// restore holds no target, and a workflow that saw a later version of its post or grant accepts the restored one.
const LEAP: i32 = 1_000_000;

/// The number of rows that were prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Posts with an open target.
    pub posts: usize,
    /// Containers that are looked up before they are published.
    pub containers: u64,
}

/// Prepares a restored database, before the workers start. `since` is the time of the latest transaction that
/// the backup contains, or any earlier time: look-ups search from there.
// Model: Restored.
pub async fn prepare(db: &PgPool, since: DateTime<Utc>) -> sqlx::Result<Prepared> {
    let mut tx = crate::begin(db).await?;
    let open = sqlx::query!(
        r#"with open as (
             select distinct p.id from posts p join targets t on t.post_id = p.id
             where not p.is_draft and (t.status in ('pending', 'queued', 'failed')
               or t.status = 'published' and t.next_attempt_at is not null))
           update posts p
           set version = version + $1, updated_at = clock_timestamp(),
             starts_at = coalesce(p.starts_at, p.scheduled_at, clock_timestamp())
           from open where p.id = open.id
           returning p.id"#,
        LEAP
    )
    .fetch_all(&mut *tx)
    .await?;
    let ids: Vec<_> = open.iter().map(|post| post.id).collect();
    // A look-up comes at once, and is followed by an attempt if it is needed.
    sqlx::query!(
        "update targets set fence = fence + $2, processing_since = null, is_continuation = false,
           next_attempt_at = case when status = 'published' then clock_timestamp()
             when scheduled_at > clock_timestamp() then scheduled_at end,
           updated_at = clock_timestamp()
         where post_id = any($1) and (status in ('pending', 'queued', 'failed')
           or status = 'published' and next_attempt_at is not null)",
        &ids,
        LEAP
    )
    .execute(&mut *tx)
    .await?;
    let marked = sqlx::query!(
        "insert into publications
           (target_id, position, org_id, mode, commit_begun_at, commit_deadline, is_restored, is_reply)
         select t.id, c.position, t.org_id, t.mode, least($2, clock_timestamp()), clock_timestamp(), true,
           p.reply_to is not null
         from posts p join targets t on t.post_id = p.id join target_containers c on c.target_id = t.id
         where p.id = any($1) and coalesce(t.scheduled_at, p.scheduled_at, p.created_at) <= clock_timestamp()
           and (t.status in ('pending', 'queued', 'failed')
             or t.status = 'published' and t.next_attempt_at is not null)
         on conflict (target_id, position) do update
         set commit_begun_at = coalesce(publications.commit_begun_at, excluded.commit_begun_at),
             commit_deadline = excluded.commit_deadline, commit_ended_at = null, is_restored = true,
             is_reply = excluded.is_reply
         where publications.platform_id is null",
        &ids,
        since
    )
    .execute(&mut *tx)
    .await?;
    // What was due may be live, so that it can't be edited any more.
    sqlx::query!(
        "update posts p set status = 'publishing'
         where id = any($1) and status in ('scheduled', 'queued') and exists (
           select from targets t join publications u on u.target_id = t.id
           where t.post_id = p.id and u.is_restored and u.platform_id is null)",
        &ids
    )
    .execute(&mut *tx)
    .await?;
    // The workflow that renews a grant may know a later one than the backup, and would ignore this one.
    sqlx::query!(
        "update accounts set grant_version = grant_version + $1, refresh_leased_until = null, swept_at = null
         where status <> 'disconnected' and grant_sealed is not null",
        i64::from(LEAP)
    )
    .execute(&mut *tx)
    .await?;
    // No relay of before the restore holds a message any more.
    sqlx::query!("update outbox set available_at = clock_timestamp() where available_at > clock_timestamp()")
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(Prepared { posts: open.len(), containers: marked.rows_affected() })
}
