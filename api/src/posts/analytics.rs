//! Engagement of a post: asked of its platforms at this moment, target by target.
//!
//! A worker asks them side by side and keeps each answer as a snapshot; what is shown is the latest
//! snapshot of each target. A platform that is silent now hides neither the others nor what it said
//! before: `captured_at` tells when that was.

use crate::{
    ask,
    http::{
        body::Json,
        caller::{AnalyticsRead, Call, Caller},
        problem::{Code, Problem},
        query::Query,
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
use store::metrics;
use uuid::Uuid;
use workflows::{
    activities::{Reading, Voice},
    ask::{Answer, Question},
};

/// How many snapshots of a target its history shows: more than are collected of it.
const MAX_POINTS: i64 = 500;

/// The operations on engagement.
pub struct Analytics;

#[OpenApi(tag = "Tag::Posts")]
impl Analytics {
    /// Get a post's engagement
    ///
    /// Asks the platform of each published target for its figures now, and shows the latest known of each
    /// target and their totals. A target whose account fails is skipped: it shows what was known before,
    /// with the time of that, or is left out. What is published is asked about without a call too, hourly
    /// at first and for a month. Scope `analytics:read`.
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

/// The engagement of a post.
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
    let readings: Vec<_> = published
        .iter()
        .filter_map(|target| {
            Some(Reading {
                target: target.id,
                voice: Voice {
                    account: target.account_id,
                    owner: call.owner,
                    platform: target.platform.clone(),
                },
                platform_post_id: target.platform_post_id.clone()?,
            })
        })
        .collect();
    let asked = match readings.is_empty() {
        true => Ok(()),
        false => {
            let question = Question::Metrics { post: post.id, owner: call.owner, readings };
            ask::ask(call, question).await.and_then(|answer| match answer {
                Answer::Metrics(_) => Ok(()),
                _ => Err(ask::mistaken()),
            })
        }
    };
    let latest = metrics::latest(call.db(), call.owner, post.id).await?;
    if latest.is_empty() {
        // With nothing known, nobody to ask is not the same as nothing to tell.
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
    Ok(PostAnalytics {
        post_id: post.id.0,
        metrics_by_account: shown.into_iter().map(TargetMetrics::from).collect(),
        aggregated_metrics: total.into(),
        history,
    })
}

/// What was told of a post over time.
async fn history(call: &Call<'_>, post: &store::posts::Post) -> Result<Vec<TargetMetrics>, Problem> {
    let platform: HashMap<_, _> =
        post.targets.iter().map(|target| (target.id, target.platform.as_str())).collect();
    let series = metrics::series(call.db(), call.owner, post.id, MAX_POINTS).await?;
    let points = series.into_iter().filter_map(|snapshot| Some((*platform.get(&snapshot.target)?, snapshot)));
    Ok(points.map(TargetMetrics::from).collect())
}

/// How much is to be shown.
#[derive(Debug, Default, Object)]
#[oai(rename = "AnalyticsDetail")]
pub struct Detail {
    /// Whether to show also what was told before: up to 500 snapshots of each target.
    pub history: Option<bool>,
}

impl Rules for Detail {}

/// The engagement of a post.
#[derive(Debug, Object)]
pub struct PostAnalytics {
    /// The post.
    pub post_id: Uuid,
    /// Each target's latest figures.
    pub metrics_by_account: Vec<TargetMetrics>,
    /// Their totals.
    pub aggregated_metrics: TotalMetrics,
    /// With `history=true`: what was told of each target over time, the oldest first. Of what is older
    /// than a day, one snapshot is kept of each hour; of what is older than a month, one of each day.
    #[oai(skip_serializing_if_is_none)]
    pub history: Option<Vec<TargetMetrics>>,
}

/// What a platform told of one target. A figure that it does not tell is 0.
#[derive(Debug, Object)]
pub struct TargetMetrics {
    /// The target.
    pub target_id: Uuid,
    /// Its platform.
    pub platform: EnumString<Platform>,
    /// What it told.
    #[oai(flatten)]
    pub figures: Figures,
    /// Likes, comments, shares, saves and clicks for each impression; for each person or view where the
    /// platform tells no impressions; 0 where it tells none of them.
    pub engagement_rate: f64,
    /// When the platform told it.
    pub captured_at: Timestamp,
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
        }
    }
}

/// The sums over the targets that are shown.
#[derive(Debug, Object)]
pub struct TotalMetrics {
    /// Times shown.
    pub total_impressions: u64,
    /// People who saw it; one who saw it on two accounts counts twice.
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
    /// Plays of its video.
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
