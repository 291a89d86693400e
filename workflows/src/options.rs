//! Options of activities that several workflows share: time limits and retries. Each workflow has its own beside it.
//!
//! A retryable failure of a publish brings its own next delay, from the row; the policies apply when a
//! worker dies without an answer, or one of Fanfare's own parts is away. `maximum_attempts(0)` is no limit.

use domain::TimeScale;
use std::time::Duration;
use temporalio_workflow::{ActivityOptions, RetryPolicy};

/// Time limit of a publish attempt: a large video over a slow line. A dead worker is noticed much sooner, by
/// [`HEARTBEAT_TIMEOUT`].
pub(crate) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2 * 60 * 60);
/// Time without a heartbeat after which an attempt goes to another worker: its own has died, or never got the task. An
/// attempt that lives and is replaced too early is fenced off, so that this costs a look-up and no second post.
pub const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time without a heartbeat after which media or metrics work goes to another worker.
pub(crate) const SHORT_HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns a retry policy with doubling pauses.
pub(crate) fn backoff(first: Duration, longest: Duration, attempts: u32) -> RetryPolicy {
    RetryPolicy::builder()
        .initial_interval(first)
        .backoff_coefficient(2.0)
        .maximum_interval(longest)
        .maximum_attempts(attempts)
        .build()
}

/// Returns the time without a heartbeat after which an attempt goes to another worker.
pub(crate) fn heartbeat_timeout(time_scale: TimeScale) -> Duration {
    time_scale.scale(HEARTBEAT_TIMEOUT).max(Duration::from_secs(2))
}

/// Returns the options for a database transaction that ends something: retried until the database answers.
pub(crate) fn settle(queue: &str) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(30))
        .task_queue(queue.to_owned())
        .retry_policy(backoff(Duration::from_secs(1), Duration::from_secs(60), 0))
        .build()
}
