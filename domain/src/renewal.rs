//! When a grant that ends is renewed ahead of its end.
//!
//! Well before, so that a platform's bad hours cost nobody his account; at a moment of each grant's own,
//! so that those that were got together are not renewed together.

use chrono::{DateTime, Utc};
use std::time::Duration;

/// The share of a grant's life after which it is renewed, at the earliest and at the latest.
const SHARE: (f64, f64) = (0.7, 0.8);
/// No grant is renewed sooner after the last time: a platform may give back the very one it was shown.
pub const PAUSE: Duration = Duration::from_secs(60);

/// When to renew a grant that was got at `granted_at`, and that its platform renews once it is as old as
/// `rest`. `jitter` is drawn from 0..1 by the caller.
pub fn due(
    granted_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
    rest: Duration,
    jitter: f64,
) -> DateTime<Utc> {
    let life = (expires_at - granted_at).to_std().unwrap_or_default();
    let age = life.mul_f64(SHARE.0 + (SHARE.1 - SHARE.0) * jitter);
    granted_at + age.max(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// The age in minutes at which a grant of so many minutes is renewed.
    fn age(life: i64, rest: Duration, jitter: f64) -> i64 {
        let granted_at = DateTime::UNIX_EPOCH;
        (due(granted_at, granted_at + TimeDelta::minutes(life), rest, jitter) - granted_at).num_minutes()
    }

    #[test]
    fn a_grant_is_renewed_when_a_good_part_of_its_life_is_left() {
        assert_eq!([0.0, 0.5, 1.0].map(|jitter| age(120, Duration::ZERO, jitter)), [84, 90, 96]);
        assert_eq!(age(60 * 24 * 60, DAY, 0.0), 42 * 24 * 60);
    }

    #[test]
    fn none_is_renewed_before_its_platform_would() {
        assert_eq!(age(26 * 60, DAY, 0.0), 24 * 60);
        assert_eq!(age(-5, Duration::ZERO, 0.5), 0);
    }
}
