//! Limits of a platform on what one account may do.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

crate::string_enum! {
    /// Source from which the usage of a limit is known.
    LimitSource, "source" {
        /// The platform was asked for it.
        Platform = "platform",
        /// Rate-limit headers of an answer of the platform.
        Observed = "observed",
        /// Counted from what this service published.
        Counted = "counted",
    }
}

/// Usage of a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitUsage {
    /// Name, for example `posts`.
    pub name: String,
    /// Number used in the window.
    pub used: u64,
    /// Number allowed in the window.
    pub limit: u64,
    /// Length of the window in seconds.
    pub window_seconds: u64,
    /// When the window ends, if it is a fixed one.
    pub resets_at: Option<DateTime<Utc>>,
    /// True if it was read from headers of an answer, not from an answer about limits.
    pub is_observed: bool,
}
