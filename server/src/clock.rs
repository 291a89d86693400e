//! The only clock and the only dice of the service. Everybody else is handed them.

use chrono::{DateTime, Utc};

/// The time.
#[expect(clippy::disallowed_methods, reason = "this is the clock that the lint points to")]
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}

/// A random number from 0..1.
pub(crate) fn jitter() -> f64 {
    rand::random()
}
