//! Engagement, in the contract's figures.
//!
//! Platforms count different things under different names; an adapter translates, and what its
//! platform does not tell is 0. How the figures become a rate and a total stands here, once.

use serde::{Deserialize, Serialize};
use std::iter::Sum;

/// Engagement of one post. A figure that the platform does not tell is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// Times shown.
    pub impressions: u64,
    /// People who saw it.
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
    /// Plays of its video.
    pub video_views: u64,
}

impl Metrics {
    /// What was done with the post for each time it was seen: a fraction. Over impressions; where none
    /// are told over reach, then over views; 0 where nobody tells how often it was seen.
    pub fn engagement_rate(&self) -> f64 {
        let seen = [self.impressions, self.reach, self.video_views].into_iter().find(|figure| *figure > 0);
        let done = [self.likes, self.comments, self.shares, self.saves, self.clicks];
        let done = done.into_iter().fold(0, u64::saturating_add);
        seen.map_or(0.0, |seen| done as f64 / seen as f64)
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
    fn the_rate_is_over_the_best_figure_that_is_told() {
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
    fn totals_add_up_and_never_wrap() {
        let one = Metrics { impressions: 1, likes: 2, ..Metrics::default() };
        let other = Metrics { impressions: 10, saves: 3, likes: u64::MAX, ..Metrics::default() };
        let total = Metrics { impressions: 11, likes: u64::MAX, saves: 3, ..Metrics::default() };
        assert_eq!([one, other].into_iter().sum::<Metrics>(), total);
        assert_eq!(std::iter::empty::<Metrics>().sum::<Metrics>(), Metrics::default());
    }
}
