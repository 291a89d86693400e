//! Retry policies of publish attempts and webhook deliveries.

use crate::{ErrorCode, Failure, TimeScale};
use std::time::Duration;

/// Maximum number of publish attempts of a target.
pub const ATTEMPTS: u32 = 10;
/// Attempts beyond the budget, which only look up what the last one may have published.
pub const EXTRA_LOOKUPS: u32 = 3;
/// Attempts and looks in a row that may end without a result: as many as one that fails may have.
pub const MAX_UNANSWERED: u32 = ATTEMPTS + EXTRA_LOOKUPS;
/// Maximum number of attempts that may fail with a refused token.
pub const TOKEN_ATTEMPTS: u32 = 3;
/// Upper limit of the first backoff.
pub const BASE: Duration = Duration::from_secs(30);
/// Upper limit of every computed backoff.
pub const CAP: Duration = Duration::from_secs(60 * 60);

/// Time from a platform's first refusal for which throttled attempts cost nothing. Platforms count over a day at
/// most.
pub const THROTTLED_FREE: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum number of attempts of one delivery.
pub const DELIVERY_ATTEMPTS: u32 = 8;
/// Backoff after the first failed delivery attempt; it doubles with each further one.
pub const DELIVERY_BASE: Duration = Duration::from_secs(60);
/// Interval of the probes of a dead endpoint: it is noticed soon after it is back.
pub const PROBE_INTERVAL: Duration = Duration::from_secs(5 * 60);
/// Time for which an endpoint must have failed without a success before what has waited as long fails.
pub const FAILING_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// Timeout of a request to a webhook endpoint.
pub const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// Attempts that a target has used of its budget, including the failed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// Number of publish attempts begun.
    pub attempts: u32,
    /// Number of these that failed with a refused token.
    pub token_attempts: u32,
}

/// Returns the wait after `failure`, or `None` if no further attempt follows.
///
/// Exponential backoff with full jitter; a wait that the platform requests takes precedence. The caller
/// draws `jitter` from 0..1.
pub fn next(failure: &Failure, spent: Spent, jitter: f64) -> Option<Duration> {
    let refused = failure.code == ErrorCode::TokenExpired
        && (failure.is_revoked() || spent.token_attempts >= TOKEN_ATTEMPTS);
    if failure.code.is_permanent() || refused || spent.attempts >= ATTEMPTS {
        return None;
    }
    Some(failure.retry_after.unwrap_or_else(|| ceiling(spent.attempts).mul_f64(jitter)))
}

/// Returns the wait after an attempt that the platform throttled and that costs nothing, the `times`th in a row.
///
/// The wait that the platform requests, or the backoff. A platform that goes on refusing after the wait that it
/// requested is asked ever more rarely. The caller draws `jitter` from 0..1.
pub fn throttled(failure: &Failure, times: u32, jitter: f64, scale: TimeScale) -> Duration {
    let backoff = |attempt| scale.scale(ceiling(attempt).mul_f64(jitter));
    match failure.retry_after {
        Some(asked) if times <= ATTEMPTS => asked,
        Some(asked) => asked.max(backoff(times - ATTEMPTS)),
        None => backoff(times),
    }
}

/// Returns the longest backoff after an attempt, counted from 1.
pub fn ceiling(attempt: u32) -> Duration {
    doubled(BASE, attempt)
}

/// Returns the wait after a failed delivery attempt, counted from 1, or `None` after the last.
pub fn delivery_backoff(attempt: u32) -> Option<Duration> {
    (attempt < DELIVERY_ATTEMPTS).then(|| doubled(DELIVERY_BASE, attempt))
}

/// Returns the time between the first attempt of a delivery and its last one: the sum of all waits.
pub fn delivery_schedule() -> Duration {
    (1..DELIVERY_ATTEMPTS).filter_map(delivery_backoff).sum()
}

fn doubled(base: Duration, attempt: u32) -> Duration {
    base.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(CAP)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(attempts: u32) -> Spent {
        Spent { attempts, token_attempts: 0 }
    }

    #[test]
    fn backoff_grows_to_the_cap_and_ends_with_the_budget() {
        let failure = Failure::upstream(502, "bad gateway");
        let waits: Vec<_> =
            (1..=10).map(|n| next(&failure, spent(n), 1.0).map(|wait| wait.as_secs())).collect();
        let expected = [30, 60, 120, 240, 480, 960, 1920, 3600, 3600].map(Some);
        assert_eq!(waits[..9], expected);
        assert_eq!(waits[9], None);
        assert_eq!(next(&failure, spent(1), 0.0), Some(Duration::ZERO));
    }

    #[test]
    fn the_wait_from_a_platform_overrides_the_computed_one() {
        let asked = Duration::from_secs(7200);
        assert_eq!(next(&Failure::rate_limited("", Some(asked)), spent(1), 0.5), Some(asked));
    }

    #[test]
    fn a_platform_that_throttles_after_the_wait_it_requested_is_asked_ever_more_rarely() {
        let scale = TimeScale::CONTRACT;
        let waits = |asked: Option<u64>| {
            let failure = Failure::rate_limited("", asked.map(Duration::from_secs));
            (1..=20).map(|times| throttled(&failure, times, 1.0, scale).as_secs()).collect::<Vec<_>>()
        };
        assert_eq!(waits(Some(1))[..12], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 30, 60]);
        assert_eq!(waits(Some(1))[19], 3600);
        assert_eq!(waits(Some(7200)), [7200; 20]);
        assert_eq!(waits(None)[..3], [30, 60, 120]);
        let tenth = TimeScale::new(0.1).unwrap();
        let failure = Failure::rate_limited("", Some(Duration::from_secs(1)));
        assert_eq!(throttled(&failure, 1, 1.0, tenth), Duration::from_secs(1));
        assert_eq!(throttled(&failure, 11, 1.0, tenth), Duration::from_secs(3));
    }

    #[test]
    fn permanent_failures_are_not_retried() {
        assert_eq!(next(&Failure::rejected(400, ""), spent(1), 0.5), None);
        assert_eq!(next(&Failure::new(ErrorCode::PollTimeout, ""), spent(1), 0.5), None);
        assert_eq!(next(&Failure::revoked(""), spent(1), 0.5), None);
        let refused = Spent { attempts: 3, token_attempts: 3 };
        assert_eq!(next(&Failure::token_expired(""), refused, 0.5), None);
        assert!(next(&Failure::upstream(500, ""), refused, 0.5).is_some());
    }

    #[test]
    fn waits_of_deliveries_grow_up_to_their_limit() {
        let waits: Vec<_> = (1..=8).map(|n| delivery_backoff(n).map(|wait| wait.as_secs() / 60)).collect();
        let expected = [1, 2, 4, 8, 16, 32, 60].map(Some);
        assert_eq!(waits[..7], expected);
        assert_eq!(waits[7], None);
        assert_eq!(delivery_schedule().as_secs() / 60, 1 + 2 + 4 + 8 + 16 + 32 + 60);
    }
}
