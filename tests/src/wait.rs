//! Polling for conditions that send no notification. All polling in the tests is done here.

use crate::PATIENCE;
use std::{fmt::Display, time::Duration};
use tokio::time::{Instant, sleep};

/// Pause after the first poll. It grows by half with each poll, so that a long wait costs little.
const FIRST: Duration = Duration::from_millis(10);
/// Longest pause. Conditions that a test must observe last longer.
const LONGEST: Duration = Duration::from_millis(100);

/// Polls `look` until it succeeds, and returns its result. Its error describes the current state.
pub async fn wait_until<T, E: Display>(what: &str, look: impl AsyncFnMut() -> Result<T, E>) -> T {
    wait_within(PATIENCE, what, look).await
}

/// Like [`wait_until`], with a time limit of its own.
pub async fn wait_within<T, E: Display>(
    patience: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let deadline = Instant::now() + patience;
    let mut pause = FIRST;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(seen) => assert!(Instant::now() < deadline, "timed out waiting for {what}: {seen}"),
        }
        sleep(pause).await;
        pause = (pause * 3 / 2).min(LONGEST);
    }
}

/// Returns `Ok(found)` if `right` accepts it, else `Err(found)`: the result of a `look` for [`wait_until`].
pub fn if_right<T: Display>(found: T, right: impl FnOnce(&T) -> bool) -> Result<T, T> {
    if right(&found) { Ok(found) } else { Err(found) }
}
