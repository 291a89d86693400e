//! Engagement metrics: one snapshot per answer of a platform.
//!
//! Every answer is stored, so that a target still shows its last known metrics, with their time, when its
//! platform doesn't answer. Recording a snapshot downsamples older ones, and snapshots older than two years
//! are deleted: the stored metrics of a target don't grow with the number of requests.

use crate::{
    bounds::{Access, Resource},
    decode::Parsed,
};
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

/// Stores a snapshot, and adds to the day's growth what it has more than the one before. Returns false when the target
/// doesn't exist.
pub async fn record(db: &PgPool, owner: Owner, snapshot: &Snapshot) -> sqlx::Result<bool> {
    let Snapshot { target, metrics, captured_at } = snapshot;
    let mut tx = crate::begin(db).await?;
    // Two snapshots of a target are stored one after the other, so that their growth counts once.
    let account = sqlx::query_scalar!(
        "select account_id from targets where id = $1 and org_id = $2 and mode = $3 for no key update",
        target.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(account) = account else { return Ok(false) };
    sqlx::query!(
        "with earlier as (
           select * from metric_snapshots where target_id = $3 order by captured_at desc, id desc limit 1),
         stored as (
           insert into metric_snapshots (org_id, mode, target_id, impressions, reach, likes, comments, shares, saves,
             clicks, video_views, captured_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12))
         insert into metric_days as d (account_id, day, org_id, mode, impressions, reach, likes, comments, shares,
           saves, clicks, video_views)
         select $13, ($12::timestamptz at time zone 'UTC')::date, $1, $2, $4 - coalesce(e.impressions, 0),
           $5 - coalesce(e.reach, 0), $6 - coalesce(e.likes, 0), $7 - coalesce(e.comments, 0),
           $8 - coalesce(e.shares, 0), $9 - coalesce(e.saves, 0), $10 - coalesce(e.clicks, 0),
           $11 - coalesce(e.video_views, 0)
         from (select) one left join earlier e on true
         -- One that comes late is in the growth of the one after it.
         where e.captured_at is null or e.captured_at <= $12
         on conflict (account_id, day) do update set
           impressions = d.impressions + excluded.impressions, reach = d.reach + excluded.reach,
           likes = d.likes + excluded.likes, comments = d.comments + excluded.comments,
           shares = d.shares + excluded.shares, saves = d.saves + excluded.saves, clicks = d.clicks + excluded.clicks,
           video_views = d.video_views + excluded.video_views",
        owner.org.0,
        owner.mode.as_str(),
        target.0,
        to_i64(metrics.impressions),
        to_i64(metrics.reach),
        to_i64(metrics.likes),
        to_i64(metrics.comments),
        to_i64(metrics.shares),
        to_i64(metrics.saves),
        to_i64(metrics.clicks),
        to_i64(metrics.video_views),
        captured_at,
        account
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(true)
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
        "with days as (
           delete from metric_days
           where (account_id, day) in (
             select account_id, day from metric_days where day < ($1::timestamptz at time zone 'UTC')::date
             order by day limit $2))
         delete from metric_snapshots
         where id in (select id from metric_snapshots where captured_at < $1 order by captured_at limit $2)",
        now - RETENTION,
        limit
    )
    .execute(db)
    .await?;
    Ok(forgotten.rows_affected())
}

/// Returns the latest snapshot of each target of a post.
pub async fn latest(db: &PgPool, access: Access<'_>, post: PostId) -> sqlx::Result<Vec<Snapshot>> {
    let Some(owner) = access.reach(db, Resource::Post, post.0).await? else { return Ok(Vec::new()) };
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
pub async fn series(
    db: &PgPool,
    access: Access<'_>,
    post: PostId,
    limit: i64,
) -> sqlx::Result<Vec<Snapshot>> {
    let Some(owner) = access.reach(db, Resource::Post, post.0).await? else { return Ok(Vec::new()) };
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

/// Looked at in a run, per target that it may return: the others are of accounts that have enough of them, or can't be
/// asked about.
const WINDOW: i64 = 4;

/// Returns targets of a platform whose metrics are due, of all owners in turns, longest overdue first.
///
/// Reads a bounded number of rows, by the index on the time from which a target waits (`metrics_since`; before the
/// first request, when it was published). So that none of them stands first again in the next run, those that are
/// not returned are postponed: what an account has beyond its share, by a quarter of the shortest interval for each
/// share; and what can't be asked about, by twelve intervals. The latter are targets of accounts that are not active,
/// of deleted posts, and replies, unless the platform has metrics of them.
pub async fn due(
    db: &PgPool,
    platform: &str,
    has_replies: bool,
    schedule: CollectionSchedule,
    now: DateTime<Utc>,
) -> sqlx::Result<Vec<Due>> {
    sqlx::query!(
        r#"with looked as materialized (
             select id, account_id, post_id, org_id, mode, platform_post_id, published_at,
               coalesce(metrics_since, metrics_asked_at, published_at) as since
             from targets
             where platform = $1 and status = 'published' and unpublished_at is null
               and coalesce(metrics_since, metrics_asked_at, published_at) > $2
               and coalesce(metrics_since, metrics_asked_at, published_at) <= $3
             order by coalesce(metrics_since, metrics_asked_at, published_at) limit $4),
           judged as (
             select l.*,
               l.published_at > $2 and l.platform_post_id is not null and a.status = 'active'
                 and p.deleted_at is null and (p.reply_to is null or $5) as can_be_asked
             from looked l join accounts a on a.id = l.account_id join posts p on p.id = l.post_id),
           ranked as (
             select *, count(*) filter (where can_be_asked)
               over (partition by account_id order by since, id) as position
             from judged),
           postponed as (
             update targets t
             set metrics_since = case
               when r.published_at <= $2 then 'infinity'
               when not r.can_be_asked then $6::timestamptz + make_interval(secs => 11 * $7::float8)
               else $6::timestamptz + make_interval(secs => ((r.position - 1) / $8 * 0.25 - 1) * $7::float8) end
             from ranked r
             where t.id = r.id and (not r.can_be_asked or r.position > $8))
           select id as "id!", account_id as "account_id!", org_id as "org_id!", mode as "mode!: Parsed<Mode>",
             platform_post_id as "platform_post_id!"
           from ranked where can_be_asked and position <= $8
           order by row_number() over (partition by org_id, mode order by since), since limit $9"#,
        platform,
        now - schedule.max_age,
        now - schedule.min_interval,
        schedule.per_platform * WINDOW,
        has_replies,
        now,
        schedule.min_interval.as_secs_f64(),
        schedule.per_account,
        schedule.per_platform
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

/// Records that a target's metrics are being requested: they are due again after the interval of its age, or never
/// if it is too old by then.
pub async fn mark_requested(
    db: &PgPool,
    owner: Owner,
    target: TargetId,
    schedule: CollectionSchedule,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    // With an interval that is a share of the age at its end, as a share of the age at its beginning.
    let per_hour = schedule.per_hour.as_secs_f64();
    let share = if per_hour < 3600.0 { per_hour / (3600.0 - per_hour) } else { f64::MAX };
    sqlx::query!(
        "update targets
         set metrics_asked_at = $4,
             -- Waiting begins one shortest interval before the target is due.
             metrics_since = case
               when extract(epoch from $4::timestamptz - published_at)::float8
                   + greatest($6::float8, extract(epoch from $4::timestamptz - published_at)::float8 * $5::float8) >= $7::float8
                 then 'infinity'
               else $4::timestamptz + make_interval(secs => floor(greatest(
                 0, extract(epoch from $4::timestamptz - published_at)::float8 * $5::float8 - $6::float8))) end
         where id = $1 and org_id = $2 and mode = $3",
        target.0,
        owner.org.0,
        owner.mode.as_str(),
        now,
        share,
        schedule.min_interval.as_secs_f64(),
        schedule.max_age.as_seconds_f64()
    )
    .execute(db)
    .await
    .map(drop)
}

/// Leaves targets that were due to the next run.
pub async fn postpone(
    db: &PgPool,
    owner: Owner,
    targets: &[TargetId],
    schedule: CollectionSchedule,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update targets set metrics_since = $4::timestamptz - make_interval(secs => 0.75 * $5::float8)
         where id = any($1) and org_id = $2 and mode = $3",
        &targets.iter().map(|target| target.0).collect::<Vec<_>>(),
        owner.org.0,
        owner.mode.as_str(),
        now,
        schedule.min_interval.as_secs_f64()
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
