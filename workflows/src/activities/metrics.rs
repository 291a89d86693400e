//! Engagement metrics of published targets.

use super::AccountRef;
use domain::{Failure, TargetId};
use serde::{Deserialize, Serialize};
use temporalio_common::ActivityError;
use temporalio_macros::activity_definitions;

/// Markers of the declarations below.
pub use metrics::{CollectMetrics, FetchMetrics, PruneMetrics};

/// A request for the metrics of a published target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricsRequest {
    /// Target id.
    pub target: TargetId,
    /// Account.
    pub account_ref: AccountRef,
    /// The platform's id of the post.
    pub platform_post_id: String,
}

/// Result of collecting metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionSummary {
    /// Targets whose metrics were stored.
    pub read: u32,
    /// Targets whose platform returned none.
    pub failed: u32,
    /// Targets that are left to a later run.
    pub left: u32,
}

impl std::iter::Sum for CollectionSummary {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |one, other| Self {
            read: one.read + other.read,
            failed: one.failed + other.failed,
            left: one.left + other.left,
        })
    }
}

/// Activities that fetch metrics.
pub struct Metrics;

#[activity_definitions]
impl Metrics {
    /// Fetches and stores a target's metrics.
    #[activity(name = "fetch_metrics")]
    pub fn fetch_metrics(_request: MetricsRequest) -> Result<Result<(), Failure>, ActivityError> {
        unimplemented!()
    }

    /// Fetches and stores the metrics that are due on a platform.
    #[activity(name = "collect_metrics")]
    pub fn collect_metrics(_platform: String) -> Result<CollectionSummary, ActivityError> {
        unimplemented!()
    }

    /// Deletes metrics beyond their retention; returns how many.
    #[activity(name = "prune_metrics")]
    pub fn prune_metrics() -> Result<u64, ActivityError> {
        unimplemented!()
    }
}
