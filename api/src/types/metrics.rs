//! Engagement of a published post.

use domain::Metrics;
use poem_openapi::Object;

/// Engagement metrics. Metrics that the platform does not report are 0.
#[derive(Debug, Object)]
pub struct Figures {
    /// Impressions.
    pub impressions: u64,
    /// Reach.
    pub reach: u64,
    /// Likes and other reactions.
    pub likes: u64,
    /// Comments and replies.
    pub comments: u64,
    /// Shares, reposts and quotes.
    pub shares: u64,
    /// Saves and bookmarks.
    pub saves: u64,
    /// Clicks on links.
    pub clicks: u64,
    /// Video views.
    pub video_views: u64,
}

impl From<Metrics> for Figures {
    fn from(metrics: Metrics) -> Self {
        Self {
            impressions: metrics.impressions,
            reach: metrics.reach,
            likes: metrics.likes,
            comments: metrics.comments,
            shares: metrics.shares,
            saves: metrics.saves,
            clicks: metrics.clicks,
            video_views: metrics.video_views,
        }
    }
}
