//! Scale of Fanfare's waits.
//!
//! Applies to every wait of publishing and delivery (backoff, polling interval). 1 is the documented behavior; a
//! smaller factor shows ten attempts in a second instead of hours, for tests and demonstrations. Times that are sent
//! to or requested by a platform are not scaled, nor is the time after which a platform's lists show a new post: it
//! passes as slowly as ever, and a look-up that does not wait for it would lead to a second publication. In test mode
//! that wait is scaled down to 2 s, which is longer than the sandbox's lists lag.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A factor on every wait; 1 by default.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimeScale(f64);

impl TimeScale {
    /// The documented waits.
    pub const CONTRACT: Self = Self(1.0);

    /// Creates a scale of `factor` times the documented waits; `None` unless 0 < `factor` ≤ 1.
    pub fn new(factor: f64) -> Option<Self> {
        (factor > 0.0 && factor <= 1.0).then_some(Self(factor))
    }

    /// Returns the scaled wait.
    pub fn scale(self, wait: Duration) -> Duration {
        wait.mul_f64(self.0)
    }
}

impl Default for TimeScale {
    fn default() -> Self {
        Self::CONTRACT
    }
}
