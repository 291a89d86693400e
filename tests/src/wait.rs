//! Waiting for what notifies nobody. All polling of the tests is done here.

use crate::PATIENCE;
use std::{fmt::Display, time::Duration};
use tokio::time::{Instant, sleep};

/// The pause after the first look. It grows by half with each look, so that a long wait costs little.
const FIRST: Duration = Duration::from_millis(10);
/// The longest pause. What a test has to see lasts longer.
const LONGEST: Duration = Duration::from_millis(100);

/// Waits until `look` finds what a test waits for; its error tells what is there instead.
pub async fn wait_until<T, E: Display>(what: &str, look: impl AsyncFnMut() -> Result<T, E>) -> T {
    wait_within(PATIENCE, what, look).await
}

/// As [`wait_until`], for what may take longer than anything else.
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
            Err(seen) => assert!(Instant::now() < deadline, "waited in vain for {what}: {seen}"),
        }
        sleep(pause).await;
        pause = (pause * 3 / 2).min(LONGEST);
    }
}

/// What `look` makes of something: the thing itself where it is right, else the sight of it.
pub fn if_right<T: Display>(found: T, right: impl FnOnce(&T) -> bool) -> Result<T, T> {
    if right(&found) { Ok(found) } else { Err(found) }
}
