//! How fast Fanfare's waiting runs.
//!
//! Every wait that publishing and delivery impose (backoff, polling interval, settling time) passes
//! through here. 1 is the contract; a smaller factor lets a test or a demonstration see ten attempts
//! in a second instead of hours. What a platform is told or asks for in clock time is not scaled.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A factor on every wait; 1 by default.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimeScale(f64);

impl TimeScale {
    /// The contract's own waiting times.
    pub const CONTRACT: Self = Self(1.0);

    /// A scale of `factor` times the contract's waiting times, or `None` unless 0 < `factor` ≤ 1.
    pub fn new(factor: f64) -> Option<Self> {
        (factor > 0.0 && factor <= 1.0).then_some(Self(factor))
    }

    /// The scaled wait.
    pub fn scale(self, wait: Duration) -> Duration {
        wait.mul_f64(self.0)
    }
}

impl Default for TimeScale {
    fn default() -> Self {
        Self::CONTRACT
    }
}
