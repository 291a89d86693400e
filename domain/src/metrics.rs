//! Engagement metrics in the API's terms.
//!
//! Platforms count different things under different names; adapters map them, and a metric that a
//! platform does not report is 0. Rate and totals are computed here only.

use serde::{Deserialize, Serialize};
use std::iter::Sum;

/// Engagement metrics of one post. A metric that the platform does not report is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// Number of times the post was shown.
    pub impressions: u64,
    /// Number of people who saw the post.
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
    /// Plays of the post's video.
    pub video_views: u64,
}

impl Metrics {
    /// Returns interactions per view, as a fraction. The divisor is impressions, else reach, else video
    /// views: the first that is not 0. Returns 0 if all are.
    pub fn engagement_rate(&self) -> f64 {
        let views = [self.impressions, self.reach, self.video_views].into_iter().find(|count| *count > 0);
        let interactions = [self.likes, self.comments, self.shares, self.saves, self.clicks];
        let interactions = interactions.into_iter().fold(0, u64::saturating_add);
        views.map_or(0.0, |views| interactions as f64 / views as f64)
    }
}

impl Sum for Metrics {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |one, other| Self {
            impressions: one.impressions.saturating_add(other.impressions),
            reach: one.reach.saturating_add(other.reach),
            likes: one.likes.saturating_add(other.likes),
            comments: one.comments.saturating_add(other.comments),
            shares: one.shares.saturating_add(other.shares),
            saves: one.saves.saturating_add(other.saves),
            clicks: one.clicks.saturating_add(other.clicks),
            video_views: one.video_views.saturating_add(other.video_views),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engagement_rate_divides_by_the_first_reported_view_count() {
        let done = Metrics { likes: 1, comments: 2, shares: 3, saves: 4, clicks: 5, ..Metrics::default() };
        for (metrics, rate) in [
            (Metrics { impressions: 30, reach: 15, video_views: 5, ..done }, 0.5),
            (Metrics { reach: 15, video_views: 5, ..done }, 1.0),
            (Metrics { video_views: 5, ..done }, 3.0),
            (done, 0.0),
            (Metrics { impressions: 7, ..Metrics::default() }, 0.0),
            (Metrics::default(), 0.0),
        ] {
            assert!((metrics.engagement_rate() - rate).abs() < f64::EPSILON, "{metrics:?}");
        }
        let most = Metrics { likes: u64::MAX, clicks: u64::MAX, impressions: u64::MAX, ..Metrics::default() };
        assert!((most.engagement_rate() - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn totals_add_up_and_saturate() {
        let one = Metrics { impressions: 1, likes: 2, ..Metrics::default() };
        let other = Metrics { impressions: 10, saves: 3, likes: u64::MAX, ..Metrics::default() };
        let total = Metrics { impressions: 11, likes: u64::MAX, saves: 3, ..Metrics::default() };
        assert_eq!([one, other].into_iter().sum::<Metrics>(), total);
        assert_eq!(std::iter::empty::<Metrics>().sum::<Metrics>(), Metrics::default());
    }
}
