//! Time limits of calls to the file store.
//!
//! `object_store` waits ten minutes for an answer, because a copy within a bucket may take as long, and repeats for three
//! what failed. For everything else a client waits, or a worker's slot is taken: each call has a limit of its own here,
//! repetitions included, so that a bucket that is silent is told from one that works.

use std::{io, time::Duration};
use tokio::time::timeout;

/// Time limit of a call that transfers few bytes.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Rate of a slow store, in bytes per second.
const RATE: u64 = 1 << 20;

/// Returns the time limit of a call that transfers `bytes`.
pub(crate) fn limit(bytes: u64) -> Duration {
    ANSWER_TIMEOUT + Duration::from_secs(bytes / RATE)
}

/// Fails when a call takes longer than `limit`.
pub(crate) async fn within<T>(
    limit: Duration,
    call: impl Future<Output = object_store::Result<T>>,
) -> object_store::Result<T> {
    timeout(limit, call).await.unwrap_or_else(|_| {
        let message = format!("no answer within {} s", limit.as_secs());
        let source = io::Error::new(io::ErrorKind::TimedOut, message);
        Err(object_store::Error::Generic { store: "media", source: Box::new(source) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::needs_operator;
    use std::future::{pending, ready};

    #[tokio::test]
    async fn a_silent_store_fails_in_time_and_may_answer_later() {
        let silent = within(Duration::from_millis(1), pending::<object_store::Result<()>>()).await;
        assert!(!needs_operator(&silent.unwrap_err()));
        assert_eq!(within(ANSWER_TIMEOUT, ready(Ok(7))).await.unwrap(), 7);
    }

    #[test]
    fn more_bytes_may_take_longer() {
        assert_eq!(limit(0), ANSWER_TIMEOUT);
        assert_eq!(limit(8 << 20), ANSWER_TIMEOUT + Duration::from_secs(8));
    }
}
