//! Rate windows: so many units in so much time, then none until the window ends.
//!
//! Fixed windows, because the headers of the platforms describe such: a limit, what remains of it,
//! and one moment at which all of it is there again. They are not kept across a restart.

use chrono::{DateTime, TimeDelta, Utc};
use std::collections::HashMap;

/// All windows that are open.
#[derive(Default)]
pub(crate) struct Windows(HashMap<(&'static str, String), Window>);

struct Window {
    ends: DateTime<Utc>,
    used: u64,
}

/// A rule: a name, a ceiling and a length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// Under which settings know it.
    pub(crate) name: &'static str,
    /// The documented ceiling.
    pub(crate) limit: u64,
    /// Its length in seconds.
    pub(crate) seconds: i64,
}

/// How an account stands with a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// The ceiling.
    pub(crate) limit: u64,
    /// What is left.
    pub(crate) remaining: u64,
    /// When the window ends.
    pub(crate) reset: DateTime<Utc>,
    /// The window's length in seconds.
    pub(crate) seconds: i64,
}

impl Windows {
    /// Takes `cost` units of what `who` may use, or tells that there are not so many left.
    pub(crate) fn take(
        &mut self,
        rule: Rule,
        limit: u64,
        who: &str,
        cost: u64,
        now: DateTime<Utc>,
    ) -> Result<Allowance, Allowance> {
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
        let allowance = Allowance { limit, remaining, reset: window.ends, seconds: rule.seconds };
        if is_allowed { Ok(allowance) } else { Err(allowance) }
    }
}
