//! Time at which a grant is renewed before it expires.
//!
//! Early, so that an outage of the platform costs no account; jittered, so that grants issued together
//! are not renewed together.

use chrono::{DateTime, Utc};
use std::time::Duration;

/// Earliest renewal, as a share of the grant's lifetime.
const EARLIEST: f64 = 0.7;
/// Latest renewal, as a share of the grant's lifetime.
pub const LATEST: f64 = 0.8;
/// Minimum time between two renewals of a grant: a platform may return the grant that it was given.
pub const MIN_INTERVAL: Duration = Duration::from_secs(60);

/// Returns the time at which to renew a grant that was issued at `granted_at`. The platform renews no grant
/// younger than `min_age`. The caller draws `jitter` from 0..1.
pub fn due(
    granted_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
    min_age: Duration,
    jitter: f64,
) -> DateTime<Utc> {
    let lifetime = (expires_at - granted_at).to_std().unwrap_or_default();
    let age = lifetime.mul_f64(EARLIEST + (LATEST - EARLIEST) * jitter);
    granted_at + age.max(min_age)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// Returns the age in minutes at which a grant with this lifetime in minutes is renewed.
    fn age(life: i64, rest: Duration, jitter: f64) -> i64 {
        let granted_at = DateTime::UNIX_EPOCH;
        (due(granted_at, granted_at + TimeDelta::minutes(life), rest, jitter) - granted_at).num_minutes()
    }

    #[test]
    fn a_grant_is_renewed_after_70_to_80_percent_of_its_lifetime() {
        assert_eq!([0.0, 0.5, 1.0].map(|jitter| age(120, Duration::ZERO, jitter)), [84, 90, 96]);
        assert_eq!(age(60 * 24 * 60, DAY, 0.0), 42 * 24 * 60);
    }

    #[test]
    fn a_grant_is_not_renewed_before_the_platforms_minimum_age() {
        assert_eq!(age(26 * 60, DAY, 0.0), 24 * 60);
        assert_eq!(age(-5, Duration::ZERO, 0.5), 0);
    }
}
