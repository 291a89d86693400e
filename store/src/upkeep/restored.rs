//! A database that was restored from a backup.
//!
//! The restored rows don't know what was published since the backup was taken. Each open target that was due by
//! now gets an intent without outcome for each of its unpublished containers, so that its next attempt looks up
//! what may be live before it publishes anything, as after a lost answer.
//!
//! The sweep carries the open posts to Temporal when they are due or within the scheduling horizon, in batches: nothing
//! in Temporal is believed, which may have been kept, lost or restored as well.
//!
//! It is done in parts, each a transaction of its own, so that none holds locks for long or outlives a connection. The
//! posts to prepare are written down first; what was interrupted is continued by calling again, and until the end no
//! worker starts ([`is_unfinished`]). That a database was restored at all is found by [`crate::upkeep::lineage`].
//!
//! Facts that came after the backup stay lost: posts created, edited, canceled or moved forward since then, and
//! renewed grants.

use crate::{decode::Parsed, upkeep::lineage};
use chrono::{DateTime, Utc};
use domain::{Mode, Owner, PostId};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

/// Added to fences and versions, so that they are higher than any since the backup: an attempt from before the
/// restore holds no target, and a workflow that saw a later version of its post or grant accepts the restored one.
const LEAP: i32 = 1_000_000;
/// Rows that one transaction prepares.
pub const PART: i64 = 500;
/// Stands in the list of posts until everything is prepared.
const UNFINISHED: Uuid = Uuid::nil();

/// The number of rows that were prepared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// Posts with an open target.
    pub posts: u64,
    /// Containers that are looked up before they are published.
    pub containers: u64,
    /// True if an interrupted preparation was continued: what that one had prepared is not counted.
    pub is_continued: bool,
}

/// Prepares a restored database, before the workers start, in transactions of `part` rows. `since` is the time of the
/// latest transaction that the backup contains, or any earlier time: look-ups search from there. Called again, it
/// continues what was interrupted.
// Model: Restored.
pub async fn prepare(db: &PgPool, since: DateTime<Utc>, part: i64) -> sqlx::Result<Prepared> {
    let mut prepared = Prepared { is_continued: !list(db).await?, ..Prepared::default() };
    loop {
        let (posts, containers) = prepare_posts(db, since, part).await?;
        if posts == 0 {
            break;
        }
        prepared.posts += posts;
        prepared.containers += containers;
    }
    prepare_grants(db, part).await?;
    release_messages(db, part).await?;
    let mut tx = crate::begin(db).await?;
    sqlx::query!(
        "delete from restoring_posts where post_id = $1
           and not exists (select from restoring_posts where post_id <> $1)",
        UNFINISHED
    )
    .execute(&mut *tx)
    .await?;
    lineage::accept(&mut tx).await?;
    tx.commit().await?;
    Ok(prepared)
}

/// A post that is due later, as the backup has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Later {
    /// The post.
    pub post: PostId,
    /// Its owner.
    pub owner: Owner,
    /// When its first target is due.
    pub due: DateTime<Utc>,
}

/// Returns up to `limit` open posts that are due later, next first, and the number of all of them. It is not known
/// which of them were canceled, edited or moved since the backup.
pub async fn later(db: &PgPool, limit: i64) -> sqlx::Result<(Vec<Later>, i64)> {
    let rows = sqlx::query!(
        r#"select p.id, p.org_id, p.mode as "mode: Parsed<Mode>",
             min(coalesce(t.scheduled_at, p.scheduled_at)) as "due!", count(*) over () as "total!"
           from posts p join targets t on t.post_id = p.id
           where p.status = 'scheduled' and not p.is_draft and p.deleted_at is null
             and t.status in ('pending', 'queued') and coalesce(t.scheduled_at, p.scheduled_at) > clock_timestamp()
           group by p.id order by 4, p.id limit $1"#,
        limit
    )
    .fetch_all(db)
    .await?;
    let total = rows.first().map_or(0, |row| row.total);
    let later = rows.into_iter().map(|row| Later {
        post: row.id.into(),
        owner: Owner { org: row.org_id.into(), mode: row.mode.0 },
        due: row.due,
    });
    Ok((later.collect(), total))
}

/// Records that the database has everything that was committed, although it is on another server, as after a failover to
/// a synchronous standby: nothing is looked up.
pub async fn accept(db: &PgPool) -> sqlx::Result<()> {
    let mut tx = crate::begin(db).await?;
    lineage::accept(&mut tx).await?;
    tx.commit().await
}

/// Returns true while a restored database is not prepared to its end.
pub async fn is_unfinished(db: &PgPool) -> sqlx::Result<bool> {
    sqlx::query_scalar!(r#"select exists (select from restoring_posts) as "unfinished!""#).fetch_one(db).await
}

/// Writes down the posts with an open target. Returns false if an earlier call did: it was interrupted.
async fn list(db: &PgPool) -> sqlx::Result<bool> {
    let mut tx = crate::begin(db).await?;
    let begun =
        sqlx::query!("insert into restoring_posts (post_id) values ($1) on conflict do nothing", UNFINISHED)
            .execute(&mut *tx)
            .await?;
    if begun.rows_affected() == 0 {
        return Ok(false);
    }
    // Ids only: a million of them take seconds.
    sqlx::query!(
        "insert into restoring_posts (post_id)
         select distinct t.post_id from targets t join posts p on p.id = t.post_id
         where not p.is_draft and (t.status in ('pending', 'queued', 'failed')
           or t.status = 'published' and t.next_attempt_at is not null)"
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(true)
}

/// Prepares some posts of the list, and returns their number and that of their containers to look up.
async fn prepare_posts(db: &PgPool, since: DateTime<Utc>, part: i64) -> sqlx::Result<(u64, u64)> {
    let mut tx = crate::begin(db).await?;
    let ids = sqlx::query_scalar!(
        "delete from restoring_posts where post_id in (
           select post_id from restoring_posts where post_id <> $1 order by post_id limit $2)
         returning post_id",
        UNFINISHED,
        part
    )
    .fetch_all(&mut *tx)
    .await?;
    if ids.is_empty() {
        return Ok((0, 0));
    }
    let containers = look_up(&mut tx, &ids, since).await?;
    tx.commit().await?;
    Ok((ids.len() as u64, containers))
}

/// Has what is due of some posts looked up before it is published. Returns the number of containers.
async fn look_up(tx: &mut PgConnection, ids: &[Uuid], since: DateTime<Utc>) -> sqlx::Result<u64> {
    sqlx::query!(
        "update posts
         set version = version + $2, updated_at = clock_timestamp(),
           starts_at = coalesce(starts_at, scheduled_at, clock_timestamp())
         where id = any($1)",
        ids,
        LEAP
    )
    .execute(&mut *tx)
    .await?;
    // A look-up comes at once, and is followed by an attempt if it is needed.
    sqlx::query!(
        "update targets set fence = fence + $2, processing_since = null, is_continuation = false,
           next_attempt_at = case when status = 'published' then clock_timestamp()
             when scheduled_at > clock_timestamp() then scheduled_at end,
           updated_at = clock_timestamp()
         where post_id = any($1) and (status in ('pending', 'queued', 'failed')
           or status = 'published' and next_attempt_at is not null)",
        ids,
        LEAP
    )
    .execute(&mut *tx)
    .await?;
    let marked = sqlx::query!(
        "insert into publications
           (target_id, position, org_id, mode, commit_begun_at, commit_deadline, is_restored)
         select t.id, c.position, t.org_id, t.mode, least($2, clock_timestamp()), clock_timestamp(), true
         from posts p join targets t on t.post_id = p.id join target_containers c on c.target_id = t.id
         where p.id = any($1) and coalesce(t.scheduled_at, p.scheduled_at, p.created_at) <= clock_timestamp()
           and (t.status in ('pending', 'queued', 'failed')
             or t.status = 'published' and t.next_attempt_at is not null)
         on conflict (target_id, position) do update
         set commit_begun_at = coalesce(publications.commit_begun_at, excluded.commit_begun_at),
             commit_deadline = excluded.commit_deadline, commit_ended_at = null, is_restored = true
         where publications.platform_id is null",
        ids,
        since
    )
    .execute(&mut *tx)
    .await?;
    // Posts that were due may be live, so that they can't be edited any more.
    sqlx::query!(
        "update posts p set status = 'publishing'
         where id = any($1) and status in ('scheduled', 'queued') and exists (
           select from targets t join publications u on u.target_id = t.id
           where t.post_id = p.id and u.is_restored and u.platform_id is null)",
        ids
    )
    .execute(&mut *tx)
    .await?;
    Ok(marked.rows_affected())
}

/// Raises the numbers of the grants: the workflow that renews one may know a later one than the backup, and would
/// ignore this one. Raising them twice does no harm.
async fn prepare_grants(db: &PgPool, part: i64) -> sqlx::Result<()> {
    let mut after = Uuid::nil();
    loop {
        let last = sqlx::query_scalar!(
            r#"with part as (
                 select id from accounts where id > $1 and status <> 'disconnected' and grant_sealed is not null
                 order by id limit $2),
               raised as (
                 update accounts a set grant_version = grant_version + $3, refresh_leased_until = null, swept_at = null
                 from part where a.id = part.id)
               select max(id::text)::uuid as last from part"#,
            after,
            part,
            i64::from(LEAP)
        )
        .fetch_one(db)
        .await?;
        match last {
            Some(last) => after = last,
            None => return Ok(()),
        }
    }
}

/// Makes all messages available: no relay of before the restore holds one any more.
async fn release_messages(db: &PgPool, part: i64) -> sqlx::Result<()> {
    let mut after = 0;
    loop {
        let last = sqlx::query_scalar!(
            r#"with part as (
                 select id from outbox where id > $1 and available_at > clock_timestamp() order by id limit $2),
               released as (
                 update outbox o set available_at = clock_timestamp() from part where o.id = part.id)
               select max(id) as last from part"#,
            after,
            part
        )
        .fetch_one(db)
        .await?;
        match last {
            Some(last) => after = last,
            None => return Ok(()),
        }
    }
}
