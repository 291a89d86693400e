//! Engagement of a post, fetched from its platforms.
//!
//! A worker queries the platforms in parallel and stores each result as a snapshot; responses show the latest
//! snapshot of each target. If a platform does not answer, its previous snapshot is shown with its
//! `captured_at`.

use crate::{
    http::{
        body::Json,
        caller::{AnalyticsRead, Call, Caller},
        problem::{Code, Problem},
        query::Query,
        workers,
    },
    openapi::{tag::Tag, validate::Rules},
    posts,
    types::{
        enum_string::{EnumString, Platform},
        metrics::Figures,
        timestamp::Timestamp,
    },
};
use domain::{Metrics, PostStatus, TargetStatus};
use poem_openapi::{Object, OpenApi, param::Path};
use std::collections::HashMap;
use store::usage::metrics;
use uuid::Uuid;
use workflows::{
    activities::{AccountRef, MetricsRequest},
    worker_request::FetchMetrics,
};

/// Maximum number of snapshots per target in the history.
const MAX_POINTS: i64 = 500;

/// The operations on engagement.
pub struct Analytics;

#[OpenApi(tag = "Tag::Posts")]
impl Analytics {
    /// Get a post's analytics
    ///
    /// Fetches the metrics of each published target from its platform and returns the latest of each, and
    /// totals. If a platform fails, the target's previous metrics are returned with their time, or the target
    /// is omitted. Of an unpublished target the last metrics are returned. Metrics are also collected on a
    /// schedule, hourly at first and for a month. Scope
    /// `analytics:read`.
    #[oai(path = "/posts/:id/analytics", method = "get", operation_id = "getPostAnalytics")]
    async fn get(
        &self,
        caller: Caller<AnalyticsRead>,
        id: Path<String>,
        query: Query<Detail>,
    ) -> Result<Json<PostAnalytics>, Problem> {
        Ok(Json(of(&caller.call(), &id, query.0).await?))
    }
}

/// Engagement of a post.
pub async fn of(call: &Call<'_>, id: &str, detail: Detail) -> Result<PostAnalytics, Problem> {
    let post = posts::find(call, id).await?;
    let published: Vec<_> =
        post.targets.iter().filter(|target| target.status == TargetStatus::Published).collect();
    let early = match post.status {
        PostStatus::Draft | PostStatus::Scheduled => Some("analytics are available only after publishing"),
        PostStatus::Queued | PostStatus::Publishing if published.is_empty() => {
            Some("analytics are available only after publishing, and no target is published yet")
        }
        _ => None,
    };
    if let Some(detail) = early {
        return Err(Problem::new(Code::Unprocessable, detail));
    }
    let is_reply = post.reply_to.is_some();
    let targets: Vec<_> = published
        .iter()
        .filter(|target| target.unpublished_at.is_none() && (!is_reply || covers_replies(&target.platform)))
        .filter_map(|target| {
            Some(MetricsRequest {
                target: target.id,
                account_ref: AccountRef {
                    account: target.account_id,
                    owner: call.owner,
                    platform: target.platform.clone(),
                },
                platform_post_id: target.platform_post_id.clone()?,
            })
        })
        .collect();
    let latest = metrics::latest(call.db(), call.access(), post.id).await?;
    let before: HashMap<_, _> =
        latest.into_iter().map(|snapshot| (snapshot.target, snapshot.captured_at)).collect();
    let asked = match targets.is_empty() {
        true => Ok(()),
        false => {
            let request = FetchMetrics { post: post.id, owner: call.owner, targets };
            workers::request(call, request).await.map(drop)
        }
    };
    let latest = metrics::latest(call.db(), call.access(), post.id).await?;
    if latest.is_empty() {
        // Without any snapshot, a failure to fetch is an error, not an empty result.
        asked?;
    }
    let mut latest: HashMap<_, _> = latest.into_iter().map(|snapshot| (snapshot.target, snapshot)).collect();
    let shown: Vec<_> = published
        .iter()
        .filter_map(|target| Some((target, latest.remove(&target.id)?)))
        .map(|(target, snapshot)| (target.platform.as_str(), snapshot))
        .collect();
    let history = match detail.history {
        Some(true) => Some(history(call, &post).await?),
        _ => None,
    };
    let total = shown.iter().map(|(_, snapshot)| snapshot.metrics).sum::<Metrics>();
    let targets = shown.into_iter().map(|(platform, snapshot)| {
        let is_stale = before.get(&snapshot.target) == Some(&snapshot.captured_at);
        TargetMetrics { stale: Some(is_stale), ..TargetMetrics::from((platform, snapshot)) }
    });
    Ok(PostAnalytics {
        post_id: post.id.0,
        metrics_by_account: targets.collect(),
        aggregated_metrics: total.into(),
        history,
    })
}

/// Returns whether a platform has metrics of replies. One without any metrics is asked, and says so.
fn covers_replies(platform: &str) -> bool {
    let analytics = platforms::get(platform).and_then(|platform| platform.analytics);
    analytics.is_none_or(|analytics| analytics.covers_replies())
}

/// Returns the history of a post's engagement.
async fn history(call: &Call<'_>, post: &store::posts::Post) -> Result<Vec<TargetMetrics>, Problem> {
    let platform: HashMap<_, _> =
        post.targets.iter().map(|target| (target.id, target.platform.as_str())).collect();
    let series = metrics::series(call.db(), call.access(), post.id, MAX_POINTS).await?;
    let points = series.into_iter().filter_map(|snapshot| Some((*platform.get(&snapshot.target)?, snapshot)));
    Ok(points.map(TargetMetrics::from).collect())
}

/// Options for engagement.
#[derive(Debug, Default, Object)]
#[oai(rename = "AnalyticsDetail")]
pub struct Detail {
    /// True to include earlier snapshots, up to 500 per target.
    pub history: Option<bool>,
}

impl Rules for Detail {}

/// Engagement of a post.
#[derive(Debug, Object)]
pub struct PostAnalytics {
    /// Id of the post.
    pub post_id: Uuid,
    /// Latest metrics of each target.
    pub metrics_by_account: Vec<TargetMetrics>,
    /// Totals of all targets.
    pub aggregated_metrics: TotalMetrics,
    /// With `history=true`: snapshots of each target, oldest first. Snapshots older than a day are thinned to
    /// one per hour, those older than a month to one per day.
    #[oai(skip_serializing_if_is_none)]
    pub history: Option<Vec<TargetMetrics>>,
}

/// Metrics of a target. Metrics that the platform does not report are 0.
#[derive(Debug, Object)]
pub struct TargetMetrics {
    /// Id of the target.
    pub target_id: Uuid,
    /// Platform id.
    pub platform: EnumString<Platform>,
    /// The metrics.
    #[oai(flatten)]
    pub figures: Figures,
    /// Likes, comments, shares, saves and clicks per impression, or per reach or view if the platform reports
    /// no impressions; 0 if it reports none of these.
    pub engagement_rate: f64,
    /// Time of the snapshot.
    pub captured_at: Timestamp,
    /// True if the platform returned no metrics now, so that these are the latest that it returned before. Absent
    /// in the history.
    #[oai(skip_serializing_if_is_none)]
    pub stale: Option<bool>,
}

impl From<(&str, metrics::Snapshot)> for TargetMetrics {
    fn from(
        (platform, metrics::Snapshot { target, metrics, captured_at }): (&str, metrics::Snapshot),
    ) -> Self {
        Self {
            target_id: target.0,
            platform: EnumString::of(platform),
            engagement_rate: metrics.engagement_rate(),
            figures: metrics.into(),
            captured_at: captured_at.into(),
            stale: None,
        }
    }
}

/// Sums over all targets returned.
#[derive(Debug, Object)]
pub struct TotalMetrics {
    /// Impressions.
    pub total_impressions: u64,
    /// Reach; a person reached on two accounts counts twice.
    pub total_reach: u64,
    /// Likes and other reactions.
    pub total_likes: u64,
    /// Comments and replies.
    pub total_comments: u64,
    /// Shares, reposts and quotes.
    pub total_shares: u64,
    /// Saves and bookmarks.
    pub total_saves: u64,
    /// Clicks on links.
    pub total_clicks: u64,
    /// Video views.
    pub total_video_views: u64,
}

impl From<Metrics> for TotalMetrics {
    fn from(total: Metrics) -> Self {
        Self {
            total_impressions: total.impressions,
            total_reach: total.reach,
            total_likes: total.likes,
            total_comments: total.comments,
            total_shares: total.shares,
            total_saves: total.saves,
            total_clicks: total.clicks,
            total_video_views: total.video_views,
        }
    }
}
