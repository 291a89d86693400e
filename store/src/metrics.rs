//! Engagement metrics: one snapshot per answer of a platform.
//!
//! Every answer is stored, so that a target still shows its last known metrics, with their time, when its
//! platform doesn't answer. Recording a snapshot downsamples older ones, and snapshots older than two years
//! are deleted: the stored metrics of a target don't grow with the number of requests.

use crate::decode::Parsed;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{AccountId, Metrics, Mode, Owner, PostId, TargetId};
use sqlx::PgPool;
use std::time::Duration;
use uuid::Uuid;

/// Age from which one snapshot per hour is kept.
const HOURLY_AFTER: TimeDelta = TimeDelta::days(1);
/// Age from which one snapshot per day is kept.
const DAILY_AFTER: TimeDelta = TimeDelta::days(30);
/// Age from which snapshots are deleted.
const RETENTION: TimeDelta = TimeDelta::days(730);

/// Metrics of a target at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Target id.
    pub target: TargetId,
    /// Engagement metrics.
    pub metrics: Metrics,
    /// When the platform returned them.
    pub captured_at: DateTime<Utc>,
}

/// Stores a snapshot. Returns false when the target doesn't exist.
pub async fn record(db: &PgPool, owner: Owner, snapshot: &Snapshot) -> sqlx::Result<bool> {
    let Snapshot { target, metrics, captured_at } = snapshot;
    let inserted = sqlx::query!(
        "insert into metric_snapshots (org_id, mode, target_id, impressions, reach, likes, comments, shares,
           saves, clicks, video_views, captured_at)
         select org_id, mode, id, $4, $5, $6, $7, $8, $9, $10, $11, $12
         from targets where id = $1 and org_id = $2 and mode = $3",
        target.0,
        owner.org.0,
        owner.mode.as_str(),
        to_i64(metrics.impressions),
        to_i64(metrics.reach),
        to_i64(metrics.likes),
        to_i64(metrics.comments),
        to_i64(metrics.shares),
        to_i64(metrics.saves),
        to_i64(metrics.clicks),
        to_i64(metrics.video_views),
        captured_at
    )
    .execute(db)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// Keeps the last of a target's earlier snapshots of each hour or day, and deletes the others.
pub async fn downsample(
    db: &PgPool,
    owner: Owner,
    target: TargetId,
    now: DateTime<Utc>,
) -> sqlx::Result<u64> {
    let thinned = sqlx::query!(
        "delete from metric_snapshots s
         where s.target_id = $1 and s.org_id = $2 and s.mode = $3 and s.captured_at < $4
           and exists (
             select 1 from metric_snapshots later
             where later.target_id = s.target_id and (later.captured_at, later.id) > (s.captured_at, s.id)
               and date_trunc(case when s.captured_at < $5 then 'day' else 'hour' end, later.captured_at, 'UTC')
                 = date_trunc(case when s.captured_at < $5 then 'day' else 'hour' end, s.captured_at, 'UTC'))",
        target.0,
        owner.org.0,
        owner.mode.as_str(),
        now - HOURLY_AFTER,
        now - DAILY_AFTER
    )
    .execute(db)
    .await?;
    Ok(thinned.rows_affected())
}

/// Deletes up to `limit` snapshots of all owners that are too old.
pub async fn prune(db: &PgPool, limit: i64, now: DateTime<Utc>) -> sqlx::Result<u64> {
    let forgotten = sqlx::query!(
        "delete from metric_snapshots
         where id in (select id from metric_snapshots where captured_at < $1 order by captured_at limit $2)",
        now - RETENTION,
        limit
    )
    .execute(db)
    .await?;
    Ok(forgotten.rows_affected())
}

/// Returns the latest snapshot of each target of a post.
pub async fn latest(db: &PgPool, owner: Owner, post: PostId) -> sqlx::Result<Vec<Snapshot>> {
    sqlx::query_as!(
        Row,
        "select distinct on (s.target_id) s.target_id, s.impressions, s.reach, s.likes, s.comments, s.shares,
           s.saves, s.clicks, s.video_views, s.captured_at
         from targets t join metric_snapshots s on s.target_id = t.id
         where t.post_id = $1 and t.org_id = $2 and t.mode = $3
         order by s.target_id, s.captured_at desc, s.id desc",
        post.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .map(Snapshot::from)
    .fetch_all(db)
    .await
}

/// Returns the latest `limit` snapshots of each target of a post, oldest first.
pub async fn series(db: &PgPool, owner: Owner, post: PostId, limit: i64) -> sqlx::Result<Vec<Snapshot>> {
    sqlx::query_as!(
        Row,
        "select s.target_id, s.impressions, s.reach, s.likes, s.comments, s.shares, s.saves, s.clicks,
           s.video_views, s.captured_at
         from targets t cross join lateral (
           select * from metric_snapshots m where m.target_id = t.id
           order by m.captured_at desc, m.id desc limit $4) s
         where t.post_id = $1 and t.org_id = $2 and t.mode = $3
         order by s.captured_at, s.id",
        post.0,
        owner.org.0,
        owner.mode.as_str(),
        limit
    )
    .map(Snapshot::from)
    .fetch_all(db)
    .await
}

/// Schedule of metrics collection; requests of clients come on top of it.
#[derive(Clone, Copy, Debug)]
pub struct CollectionSchedule {
    /// Maximum age of a target.
    pub max_age: TimeDelta,
    /// Shortest interval between two requests, and between publishing and the first one.
    pub min_interval: Duration,
    /// Growth of the interval per hour of the target's age.
    pub per_hour: Duration,
    /// Maximum number of targets of one account per run.
    pub per_account: i64,
    /// Maximum number of targets of one platform per run.
    pub per_platform: i64,
}

/// A target whose metrics are due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Target id.
    pub target: TargetId,
    /// Account of the target.
    pub account: AccountId,
    /// Owner of the target.
    pub owner: Owner,
    /// The platform's own id of the published post.
    pub platform_post_id: String,
}

/// Returns the targets of a platform whose metrics are due, of all owners, longest overdue first. Targets
/// that can't be queried are left out: their account is not active, or their post was deleted or unpublished; and those
/// that are replies, unless the platform has metrics of them.
pub async fn due(
    db: &PgPool,
    platform: &str,
    has_replies: bool,
    schedule: CollectionSchedule,
    now: DateTime<Utc>,
) -> sqlx::Result<Vec<Due>> {
    sqlx::query!(
        r#"select d.id as "id!", d.account_id as "account_id!", d.org_id as "org_id!", d.mode as "mode!: Parsed<Mode>",
             d.platform_post_id as "platform_post_id!"
           from (
             select t.id, t.account_id, t.org_id, t.mode, t.platform_post_id,
               coalesce(t.metrics_asked_at, t.published_at) as since,
               row_number() over (
                 partition by t.account_id order by coalesce(t.metrics_asked_at, t.published_at)) as position
             from targets t join accounts a on a.id = t.account_id join posts p on p.id = t.post_id
             where t.platform = $1 and t.status = 'published' and t.published_at > $2
               and t.platform_post_id is not null and t.unpublished_at is null and a.status = 'active'
               and p.deleted_at is null and (p.reply_to is null or $8)
               and $3 - coalesce(t.metrics_asked_at, t.published_at)
                 >= make_interval(secs => greatest(
                   $4, extract(epoch from $3 - t.published_at)::float8 / 3600 * $5))
           ) d
           where d.position <= $6
           order by d.since
           limit $7"#,
        platform,
        now - schedule.max_age,
        now,
        schedule.min_interval.as_secs_f64(),
        schedule.per_hour.as_secs_f64(),
        schedule.per_account,
        schedule.per_platform,
        has_replies
    )
    .map(|row| Due {
        target: row.id.into(),
        account: row.account_id.into(),
        owner: Owner { org: row.org_id.into(), mode: row.mode.0 },
        platform_post_id: row.platform_post_id,
    })
    .fetch_all(db)
    .await
}

/// Records that a target's metrics are being requested, so that the next run skips it.
pub async fn mark_requested(
    db: &PgPool,
    owner: Owner,
    target: TargetId,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update targets set metrics_asked_at = $4 where id = $1 and org_id = $2 and mode = $3",
        target.0,
        owner.org.0,
        owner.mode.as_str(),
        now
    )
    .execute(db)
    .await
    .map(drop)
}

struct Row {
    target_id: Uuid,
    impressions: i64,
    reach: i64,
    likes: i64,
    comments: i64,
    shares: i64,
    saves: i64,
    clicks: i64,
    video_views: i64,
    captured_at: DateTime<Utc>,
}

impl From<Row> for Snapshot {
    fn from(row: Row) -> Self {
        Self {
            target: row.target_id.into(),
            metrics: Metrics {
                impressions: row.impressions.unsigned_abs(),
                reach: row.reach.unsigned_abs(),
                likes: row.likes.unsigned_abs(),
                comments: row.comments.unsigned_abs(),
                shares: row.shares.unsigned_abs(),
                saves: row.saves.unsigned_abs(),
                clicks: row.clicks.unsigned_abs(),
                video_views: row.video_views.unsigned_abs(),
            },
            captured_at: row.captured_at,
        }
    }
}

fn to_i64(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
