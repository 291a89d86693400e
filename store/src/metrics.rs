//! Engagement: what a platform told of a target, each time it was asked.
//!
//! Every answer is kept, so that a target whose platform is silent today still shows what it said
//! last, and when.

use chrono::{DateTime, Utc};
use domain::{Metrics, Owner, PostId, TargetId};
use sqlx::PgPool;

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

/// The latest snapshot of each target of a post that has one.
pub async fn latest(db: &PgPool, owner: Owner, post: PostId) -> sqlx::Result<Vec<Snapshot>> {
    sqlx::query!(
        "select distinct on (s.target_id) s.target_id, s.impressions, s.reach, s.likes, s.comments, s.shares,
           s.saves, s.clicks, s.video_views, s.captured_at
         from targets t join metric_snapshots s on s.target_id = t.id
         where t.post_id = $1 and t.org_id = $2 and t.mode = $3
         order by s.target_id, s.captured_at desc, s.id desc",
        post.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .map(|row| Snapshot {
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
    })
    .fetch_all(db)
    .await
}

fn figure(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
