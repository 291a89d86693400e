//! Options of activities: time limits, retries and summaries, for all workflows.
//!
//! A retryable failure of a publish brings its own next delay, from the row; the policies below apply when a
//! worker dies without an answer, or one of Fanfare's own parts is away. `maximum_attempts(0)` is no limit.

use domain::{TimeScale, renewal, retry};
use std::time::Duration;
use temporalio_workflow::{ActivityCancellationType, ActivityCloseTimeouts, ActivityOptions, RetryPolicy};

/// Time limit of a publish attempt: a large video over a slow line. A dead worker is noticed much sooner, by
/// [`HEARTBEAT_TIMEOUT`].
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2 * 60 * 60);
/// Time without a heartbeat after which an attempt goes to another worker: its own has died, or never got the task. An
/// attempt that lives and is replaced too early is fenced off, so that this costs a look-up and no second post.
pub const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause before an attempt of a lost worker goes to another one. Only time-outs wait for it: a failure has its own
/// delay, from the row.
const LOST_WORKER_RETRY: Duration = Duration::from_secs(1);
/// Number of tries to revoke a grant; the last one is made even while a call is ambiguous. With the pauses
/// between them two and a half minutes: longer than a call and the lag of a platform's reads.
pub const REVOKE_TRIES: u32 = 6;
/// Time limit of canceling the targets of an account; another try continues where it ended.
const CANCELING_TIMEOUT: Duration = Duration::from_secs(3600);
/// Time limit of importing a page, with a token refresh before it.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// Tries before processing a media asset fails.
const MEDIA_TRIES: u32 = 6;
/// Time limit of processing a media asset.
const MEDIA_TIMEOUT: Duration = Duration::from_secs(3600);
/// Time without a heartbeat after which media or metrics work goes to another worker.
const SHORT_HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for fetching the metrics of one platform in a run; what is left then waits for the next run.
pub const COLLECTION_SPAN: Duration = Duration::from_secs(240);
/// Time limit of collecting the metrics of one platform, its last call included.
const COLLECTION_TIMEOUT: Duration = Duration::from_secs(300);
/// Time limit of the same with waiting for a worker and retries.
const COLLECTION_TOTAL_TIMEOUT: Duration = Duration::from_secs(600);

/// A retry policy with doubling pauses.
fn backoff(first: Duration, longest: Duration, attempts: u32) -> RetryPolicy {
    RetryPolicy::builder()
        .initial_interval(first)
        .backoff_coefficient(2.0)
        .maximum_interval(longest)
        .maximum_attempts(attempts)
        .build()
}

/// The first attempt to publish, on the `queue` of its platform. The target's own workflow makes all others.
pub(crate) fn first_attempt(platform: &str, queue: String, time_scale: TimeScale) -> ActivityOptions {
    let once = RetryPolicy::builder().maximum_attempts(1).build();
    ActivityOptions::with_start_to_close_timeout(ATTEMPT_TIMEOUT)
        .heartbeat_timeout(heartbeat_timeout(time_scale))
        .retry_policy(once)
        .task_queue(queue)
        // An attempt that is under way finishes also if the workflow is canceled.
        .cancellation_type(ActivityCancellationType::WaitCancellationCompleted)
        .summary(format!("Publish on {platform}"))
        .build()
}

fn heartbeat_timeout(time_scale: TimeScale) -> Duration {
    time_scale.scale(HEARTBEAT_TIMEOUT).max(Duration::from_secs(2))
}

/// One attempt to publish. The row ends the retries. `jitter`, from 0..1, spreads the attempts of a lost worker.
pub(crate) fn publish(platform: &str, time_scale: TimeScale, jitter: f64) -> ActivityOptions {
    let first =
        time_scale.scale(LOST_WORKER_RETRY).mul_f64(0.5 + jitter / 2.0).max(Duration::from_millis(10));
    ActivityOptions::with_start_to_close_timeout(ATTEMPT_TIMEOUT)
        .heartbeat_timeout(heartbeat_timeout(time_scale))
        .retry_policy(backoff(first, time_scale.scale(retry::CAP).max(first), 0))
        .summary(format!("Publish on {platform}"))
        .build()
}

/// Polling a platform that is processing, as often as it asks for. The row ends the polling.
pub(crate) fn poll(platform: &str, pause: Duration) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(120))
        .retry_policy(
            RetryPolicy::builder()
                .initial_interval(pause.max(Duration::from_millis(100)))
                .backoff_coefficient(1.0)
                .maximum_attempts(0)
                .build(),
        )
        .summary(format!("Wait for {platform}"))
        .build()
}

/// Refreshing a token after a refusal.
pub(crate) fn refresh_token(time_scale: TimeScale) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(180))
        .retry_policy(
            RetryPolicy::builder()
                .initial_interval(time_scale.scale(Duration::from_secs(2)))
                .backoff_coefficient(2.0)
                .maximum_attempts(3)
                .build(),
        )
        .summary("Refresh the token")
        .build()
}

/// A database transaction that ends something: retried until the database answers.
pub(crate) fn settle(queue: &str) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(30))
        .task_queue(queue.to_owned())
        .retry_policy(backoff(Duration::from_secs(1), Duration::from_secs(60), 0))
        .build()
}

/// Renewing a grant: retried for as long as the platform is away, before and after the grant's end, since being
/// away is no refusal.
pub(crate) fn renew_grant(time_scale: TimeScale) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(180))
        .retry_policy(backoff(
            // A dead worker is noticed only after a while, whatever the time scale.
            time_scale.scale(renewal::MIN_INTERVAL).max(Duration::from_millis(500)),
            time_scale.scale(retry::CAP).max(Duration::from_secs(1)),
            0,
        ))
        .summary("Renew the grant")
        .build()
}

/// Canceling the targets of a disconnected account: retried until none is left.
pub(crate) fn cancel_targets() -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(CANCELING_TIMEOUT)
        .heartbeat_timeout(SHORT_HEARTBEAT_TIMEOUT)
        .retry_policy(backoff(Duration::from_secs(1), Duration::from_secs(60), 0))
        .summary("Cancel the account's pending targets")
        .build()
}

/// Revoking the grant of a disconnected account.
pub(crate) fn revoke_grant(time_scale: TimeScale) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(90))
        .retry_policy(
            RetryPolicy::builder()
                // A dead worker is noticed only after a while, whatever the time scale.
                .initial_interval(time_scale.scale(Duration::from_secs(5)).max(Duration::from_secs(1)))
                .backoff_coefficient(2.0)
                .maximum_attempts(REVOKE_TRIES)
                .build(),
        )
        .summary("Revoke the grant")
        .build()
}

/// Importing a page. A platform's refusals are results; what is retried here is a failure of Fanfare, such as
/// an unavailable database or a dead worker.
pub(crate) fn import_page() -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(PAGE_TIMEOUT)
        .retry_policy(backoff(Duration::from_secs(1), Duration::from_secs(60), 30))
        .summary("Import a page")
        .build()
}

/// Time limit of draining an endpoint: the activity stops by itself before.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Draining an endpoint: repeated until the database answers. A dead worker is noticed by its heartbeats.
pub(crate) fn drain(time_scale: TimeScale) -> ActivityOptions {
    let first = time_scale.scale(Duration::from_secs(2)).max(Duration::from_millis(100));
    ActivityOptions::with_start_to_close_timeout(DRAIN_TIMEOUT)
        .heartbeat_timeout(time_scale.scale(SHORT_HEARTBEAT_TIMEOUT).max(Duration::from_secs(5)))
        .retry_policy(
            RetryPolicy::builder()
                .initial_interval(first)
                .backoff_coefficient(2.0)
                .maximum_interval(Duration::from_secs(60))
                .maximum_attempts(0)
                .build(),
        )
        .summary("Send what is due")
        .build()
}

/// Processing a media asset; without `is_limited` it is retried until it is done.
pub(crate) fn process_media(time_scale: TimeScale, is_limited: bool) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(MEDIA_TIMEOUT)
        .heartbeat_timeout(SHORT_HEARTBEAT_TIMEOUT)
        .retry_policy(backoff(
            time_scale.scale(Duration::from_secs(5)).max(Duration::from_millis(100)),
            time_scale.scale(Duration::from_secs(600)).max(Duration::from_secs(1)),
            if is_limited { MEDIA_TRIES } else { 0 },
        ))
        .build()
}

/// Deleting a batch of expired media. The next run makes up for a failed one.
pub(crate) fn clean_up_media() -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(120))
        .retry_policy(RetryPolicy::builder().maximum_attempts(3).build())
        .build()
}

/// Collecting or deleting metrics on a queue. The next run makes up for a failed one.
pub(crate) fn metrics(queue: String, summary: String) -> ActivityOptions {
    ActivityOptions::with_close_timeouts(ActivityCloseTimeouts::ScheduleAndStartToClose {
        schedule_to_close: COLLECTION_TOTAL_TIMEOUT,
        start_to_close: COLLECTION_TIMEOUT,
    })
    .heartbeat_timeout(SHORT_HEARTBEAT_TIMEOUT)
    .retry_policy(
        RetryPolicy::builder()
            .initial_interval(Duration::from_secs(5))
            .backoff_coefficient(2.0)
            .maximum_attempts(3)
            .build(),
    )
    .task_queue(queue)
    .summary(summary)
    .build()
}

/// An activity of a request that must not run twice.
pub(crate) fn once(timeout: Duration) -> ActivityOptions {
    let once = RetryPolicy::builder().maximum_attempts(1).build();
    ActivityOptions::with_start_to_close_timeout(timeout).retry_policy(once).build()
}

/// An activity of a request that may run twice: a failure of a worker is made up for if there is time.
pub(crate) fn repeatable(timeout: Duration) -> ActivityOptions {
    ActivityOptions::with_close_timeouts(ActivityCloseTimeouts::ScheduleAndStartToClose {
        schedule_to_close: timeout + Duration::from_secs(4),
        start_to_close: timeout + Duration::from_secs(2),
    })
    .retry_policy(
        RetryPolicy::builder()
            .initial_interval(Duration::from_secs(1))
            .backoff_coefficient(2.0)
            .maximum_attempts(3)
            .build(),
    )
    .build()
}

/// A look-up: tried as often as there is time, whether it waits for a worker or for its share of one.
pub(crate) fn look_up(timeout: Duration, limit: Duration) -> ActivityOptions {
    ActivityOptions::with_close_timeouts(ActivityCloseTimeouts::ScheduleAndStartToClose {
        schedule_to_close: limit,
        start_to_close: timeout + Duration::from_secs(1),
    })
    .retry_policy(backoff(Duration::from_millis(500), Duration::from_secs(2), 0))
    .build()
}
