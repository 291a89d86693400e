//! Heartbeats of long activities.

use std::{pin::pin, time::Duration};
use temporalio_sdk::activities::{ActivityContext, ActivityError};

/// Longest pause between two heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);

/// Runs `work` and records heartbeats while it runs.
///
/// # Errors
///
/// Those of `work`.
pub(crate) async fn with_heartbeat<T>(
    cx: &ActivityContext,
    work: impl Future<Output = Result<T, ActivityError>>,
) -> Result<T, ActivityError> {
    let mut work = pin!(work);
    let timeout = cx.info().heartbeat_timeout;
    let interval = timeout.map_or(HEARTBEAT_INTERVAL, |timeout| (timeout / 4).min(HEARTBEAT_INTERVAL));
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(interval) => cx.record_heartbeat(()).await?,
        }
    }
}
