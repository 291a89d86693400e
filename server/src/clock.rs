//! The clock and the random numbers of the service, which are passed to everything else.

use chrono::{DateTime, Utc};

/// Returns the current time.
#[expect(clippy::disallowed_methods, reason = "this is the clock that the lint points to")]
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}

/// Returns a random number from 0..1.
pub(crate) fn jitter() -> f64 {
    rand::random()
}
