//! Engagement: what a platform told of a target, each time it was asked.
//!
//! Every answer is kept, so that a target whose platform is silent today still shows what it said
//! last, and when. What is old is thinned out by whoever adds to it, and forgotten after two years: the
//! figures of a target do not grow with the number of those who ask.

use crate::decode::Parsed;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{AccountId, Metrics, Mode, Owner, PostId, TargetId};
use sqlx::PgPool;
use std::time::Duration;
use uuid::Uuid;

/// After this time one snapshot is kept of each hour.
const DENSE: TimeDelta = TimeDelta::days(1);
/// After this time one is kept of each day.
const HOURLY: TimeDelta = TimeDelta::days(30);
/// After this time none is kept.
const DAILY: TimeDelta = TimeDelta::days(730);

/// What a platform told of a target at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The target.
    pub target: TargetId,
    /// The figures.
    pub metrics: Metrics,
    /// When they were told.
    pub captured_at: DateTime<Utc>,
}

/// Keeps what a platform told; false when the target is not there.
pub async fn record(db: &PgPool, owner: Owner, snapshot: &Snapshot) -> sqlx::Result<bool> {
    let Snapshot { target, metrics, captured_at } = snapshot;
    let kept = sqlx::query!(
        "insert into metric_snapshots (org_id, mode, target_id, impressions, reach, likes, comments, shares,
           saves, clicks, video_views, captured_at)
         select org_id, mode, id, $4, $5, $6, $7, $8, $9, $10, $11, $12
         from targets where id = $1 and org_id = $2 and mode = $3",
        target.0,
        owner.org.0,
        owner.mode.as_str(),
        figure(metrics.impressions),
        figure(metrics.reach),
        figure(metrics.likes),
        figure(metrics.comments),
        figure(metrics.shares),
        figure(metrics.saves),
        figure(metrics.clicks),
        figure(metrics.video_views),
        captured_at
    )
    .execute(db)
    .await?;
    Ok(kept.rows_affected() == 1)
}

/// Leaves of a target's earlier snapshots the last of each hour or day.
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
        now - DENSE,
        now - HOURLY
    )
    .execute(db)
    .await?;
    Ok(thinned.rows_affected())
}

/// Forgets snapshots that are too old, whoever's they are, so many at most.
pub async fn prune(db: &PgPool, limit: i64, now: DateTime<Utc>) -> sqlx::Result<u64> {
    let forgotten = sqlx::query!(
        "delete from metric_snapshots
         where id in (select id from metric_snapshots where captured_at < $1 order by captured_at limit $2)",
        now - DAILY,
        limit
    )
    .execute(db)
    .await?;
    Ok(forgotten.rows_affected())
}

/// The latest snapshot of each target of a post that has one.
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

/// The snapshots of a post's targets, the oldest first: of each target the latest, so many at most.
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

/// How often targets are asked about that nobody asks for.
#[derive(Clone, Copy, Debug)]
pub struct CollectionSchedule {
    /// How old a target may be.
    pub horizon: TimeDelta,
    /// How long a target is left alone at least, after its publishing too.
    pub least: Duration,
    /// How long it is left alone for each hour of its age.
    pub per_hour: Duration,
    /// How many targets of one account a round takes.
    pub per_account: i64,
    /// How many targets of one platform.
    pub per_platform: i64,
}

/// A target whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// The target.
    pub target: TargetId,
    /// Its account.
    pub account: AccountId,
    /// Whose it is.
    pub owner: Owner,
    /// The platform's id of what was published.
    pub platform_post_id: String,
}

/// The targets of a platform whose turn it is, whoever's they are, those that waited longest first. What
/// can't be asked about is left out: its account is gone or has lost its grant, or its post was deleted.
pub async fn due(
    db: &PgPool,
    platform: &str,
    rhythm: CollectionSchedule,
    now: DateTime<Utc>,
) -> sqlx::Result<Vec<Due>> {
    sqlx::query!(
        r#"select d.id as "id!", d.account_id as "account_id!", d.org_id as "org_id!", d.mode as "mode!: Parsed<Mode>",
             d.platform_post_id as "platform_post_id!"
           from (
             select t.id, t.account_id, t.org_id, t.mode, t.platform_post_id,
               coalesce(t.metrics_asked_at, t.published_at) as since,
               row_number() over (
                 partition by t.account_id order by coalesce(t.metrics_asked_at, t.published_at)) as place
             from targets t join accounts a on a.id = t.account_id join posts p on p.id = t.post_id
             where t.platform = $1 and t.status = 'published' and t.published_at > $2
               and t.platform_post_id is not null and a.status = 'active' and p.deleted_at is null
               and $3 - coalesce(t.metrics_asked_at, t.published_at)
                 >= make_interval(secs => greatest(
                   $4, extract(epoch from $3 - t.published_at)::float8 / 3600 * $5))
           ) d
           where d.place <= $6
           order by d.since
           limit $7"#,
        platform,
        now - rhythm.horizon,
        now,
        rhythm.least.as_secs_f64(),
        rhythm.per_hour.as_secs_f64(),
        rhythm.per_account,
        rhythm.per_platform
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

/// Keeps that a platform is being asked for a target's figures.
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

fn figure(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
