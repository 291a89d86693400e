//! Retention: makes room for what comes, and deletes what is older than it is kept.
//!
//! `events` and `deliveries` have a partition for each week of their ids, which begin with the time (UUIDv7). Old weeks
//! are dropped, whatever they contain; that costs the same for a row as for a hundred million. A week's partition is
//! created long before, and where one is missing all the same, the default partition takes the rows, so that nothing
//! fails. The timeline of a post is deleted a year after the post's end, in batches: the entries of a post that was
//! scheduled months ahead are spread over as many partitions as it waited. `docs/scaling.md` has the measurements.
//!
//! Times are the database's, so that a process with a wrong clock deletes nothing. Functions of the schema change it,
//! see migration 0006.

use crate::Transaction;
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{Error, PgPool};

/// The partitioned tables.
const TABLES: [&str; 2] = ["deliveries", "events"];
/// How far ahead partitions are created.
const AHEAD: TimeDelta = TimeDelta::weeks(4);
/// Posts whose timelines one statement deletes, and rows that one deletes from a default partition.
const BATCH: i32 = 500;
/// Statements of a pass that delete rows from a default partition.
const DISCARDS: usize = 100;
/// Key of the lock of who changes partitions: one process at a time.
const LOCK: i64 = 0x7061_7274;

/// How long rows are kept.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Events and their deliveries.
    pub events: TimeDelta,
    /// Timeline of a post, after the post's end.
    pub timelines: TimeDelta,
}

/// Changes made to partitions, and their state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Partitions created.
    pub created: i32,
    /// Partitions removed.
    pub detached: i32,
    /// Partitions dropped, and rows deleted from default partitions.
    pub discarded: i32,
    /// True if another process makes changes, or a lock was in use: the next call continues.
    pub is_partial: bool,
    /// Up to when all partitions exist, from the current week on: where the first one is missing.
    pub until: DateTime<Utc>,
    /// Size in bytes of the default partitions, which are empty unless a partition was missing.
    pub default_bytes: i64,
    /// The database's time.
    pub now: DateTime<Utc>,
}

/// Creates partitions that are missing and removes old ones, as of the database's time, or of `at` in tests.
///
/// # Errors
///
/// When a statement fails. What was done before stays done.
pub async fn partition(db: &PgPool, retention: Retention, at: Option<DateTime<Utc>>) -> sqlx::Result<Report> {
    let now = match at {
        Some(at) => at,
        None => sqlx::query_scalar!(r#"select now() as "now!""#).fetch_one(db).await?,
    };
    let mut report = Report {
        created: 0,
        detached: 0,
        discarded: 0,
        is_partial: false,
        until: now,
        default_bytes: 0,
        now,
    };
    let mut partial = |done: Option<i32>| {
        report.is_partial |= done.is_none();
        done.unwrap_or_default()
    };
    for table in TABLES {
        report.created += partial(step(db, Step::Create(now + AHEAD), table).await?);
        let before = now - retention.events;
        loop {
            let detached = partial(step(db, Step::Detach(before), table).await?);
            report.detached += detached;
            if detached == 0 {
                break;
            }
        }
        for _ in 0..DISCARDS {
            let discarded = partial(step(db, Step::Discard(before), table).await?);
            report.discarded += discarded;
            if discarded < BATCH {
                break;
            }
        }
        let (until, default_bytes) = state(db, table, now).await?;
        report.until = if table == TABLES[0] { until } else { report.until.min(until) };
        report.default_bytes += default_bytes;
    }
    Ok(report)
}

/// Returns up to when a table has all partitions, from the week of `now` on, and the size of its default partition.
async fn state(db: &PgPool, table: &str, now: DateTime<Utc>) -> sqlx::Result<(DateTime<Utc>, i64)> {
    let state = sqlx::query!(
        r#"with weeks as (
             select substring(bounds from 'FROM \(''([0-9a-f-]{36})''\)')::uuid as first,
               substring(bounds from 'TO \(''([0-9a-f-]{36})''\)')::uuid as last
             from (select pg_get_expr(c.relpartbound, c.oid) as bounds
                   from pg_inherits i join pg_class c on c.oid = i.inhrelid
                   where i.inhparent = $1::text::regclass) as partitions
             where bounds <> 'DEFAULT')
           select coalesce(
               (select min(uuid_time(week.last)) from weeks week
                where week.last > uuid_at($2)
                  and exists (select from weeks where (first is null or first <= uuid_at($2)) and last > uuid_at($2))
                  and not exists (select from weeks following where following.first = week.last)),
               $2) as "until!",
             pg_relation_size(($1::text || '_default')::regclass) as "default_bytes!""#,
        table,
        now
    )
    .fetch_one(db)
    .await?;
    Ok((state.until, state.default_bytes))
}

/// A change of a table's partitions, in a transaction of its own.
enum Step {
    /// Creates those that are missing up to a time.
    Create(DateTime<Utc>),
    /// Removes the oldest one if all of it is before a time.
    Detach(DateTime<Utc>),
    /// Drops removed ones, and deletes rows before a time from the default one.
    Discard(DateTime<Utc>),
}

/// Makes a change. Returns `None` if it has to wait: for another process, or for a lock that is in use.
async fn step(db: &PgPool, step: Step, table: &str) -> sqlx::Result<Option<i32>> {
    let mut tx = crate::begin(db).await?;
    let is_ours = sqlx::query_scalar!(r#"select pg_try_advisory_xact_lock($1) as "ours!""#, LOCK)
        .fetch_one(&mut *tx)
        .await?;
    if !is_ours {
        return Ok(None);
    }
    match change(&mut tx, step, table).await {
        Ok(done) => {
            tx.commit().await?;
            Ok(Some(done))
        }
        // lock_not_available, and a check_violation of a row that came to the default partition meanwhile.
        Err(Error::Database(error)) if matches!(error.code().as_deref(), Some("55P03" | "23514")) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn change(tx: &mut Transaction, step: Step, table: &str) -> sqlx::Result<i32> {
    match step {
        Step::Create(ahead) => {
            sqlx::query_scalar!(r#"select partition_create($1, $2) as "done!""#, table, ahead)
                .fetch_one(&mut **tx)
                .await
        }
        Step::Detach(before) => {
            sqlx::query_scalar!(r#"select partition_detach($1, $2)::integer as "done!""#, table, before)
                .fetch_one(&mut **tx)
                .await
        }
        Step::Discard(before) => {
            sqlx::query_scalar!(r#"select partition_discard($1, $2, $3) as "done!""#, table, before, BATCH)
                .fetch_one(&mut **tx)
                .await
        }
    }
}

/// Deletes the timelines of posts that ended before they are kept, of all owners: of some hundred posts. Returns the
/// number of posts; zero when there are no more.
///
/// # Errors
///
/// When the statement fails.
pub async fn delete_timelines(db: &PgPool, retention: Retention) -> sqlx::Result<u64> {
    let ended = sqlx::query!(
        "with ended as (
           select id from posts
           where timeline_deleted_at is null and status in ('published', 'partial', 'failed', 'canceled')
             and updated_at < now() - make_interval(secs => $1)
           order by updated_at limit $2 for no key update skip locked),
         deleted as (delete from timeline where post_id in (select id from ended))
         update posts set timeline_deleted_at = now() where id in (select id from ended)",
        retention.timelines.as_seconds_f64(),
        i64::from(BATCH)
    )
    .execute(db)
    .await?;
    Ok(ended.rows_affected())
}
