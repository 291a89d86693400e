//! Rate limits with fixed windows: a number of units per window.
//!
//! Fixed windows, because the platforms' headers describe such: a limit, the units left, and one time of
//! reset. They are not kept across a restart.

use chrono::{DateTime, TimeDelta, Utc};
use std::collections::HashMap;

/// All open windows.
#[derive(Default)]
pub(crate) struct RateWindows(HashMap<(&'static str, String), Window>);

struct Window {
    ends: DateTime<Utc>,
    used: u64,
}

/// A rate limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    /// Name in the settings.
    pub(crate) name: &'static str,
    /// Documented number of units.
    pub(crate) limit: u64,
    pub(crate) seconds: i64,
}

impl RateLimit {
    pub(crate) const fn new(name: &'static str, limit: u64, seconds: i64) -> Self {
        Self { name, limit, seconds }
    }
}

/// State of a rate window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) limit: u64,
    /// Units left.
    pub(crate) remaining: u64,
    /// End of the window.
    pub(crate) reset: DateTime<Utc>,
    pub(crate) seconds: i64,
}

impl RateWindows {
    /// Spends `cost` units of the window of `who`. Fails when fewer are left.
    pub(crate) fn take(
        &mut self,
        rule: RateLimit,
        limit: u64,
        who: &str,
        cost: u64,
        now: DateTime<Utc>,
    ) -> Result<Quota, Quota> {
        let ends = now + TimeDelta::seconds(rule.seconds);
        let window = self.0.entry((rule.name, who.to_owned())).or_insert(Window { ends, used: 0 });
        if window.ends <= now {
            *window = Window { ends, used: 0 };
        }
        let is_allowed = window.used + cost <= limit;
        if is_allowed {
            window.used += cost;
        }
        let remaining = if is_allowed { limit - window.used } else { 0 };
        let quota = Quota { limit, remaining, reset: window.ends, seconds: rule.seconds };
        if is_allowed { Ok(quota) } else { Err(quota) }
    }
}
