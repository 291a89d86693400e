//! Carries to Temporal again what is overdue.
//!
//! Postgres holds facts, Temporal holds progress: a workflow that was terminated or lost leaves a row
//! whose next step never comes. Every API process looks for such rows now and then ([`store::sweep`]); the
//! relay carries them, which does nothing where the workflow is alive.

use domain::TimeScale;
use std::time::Duration;
use store::{Pool, sweep};
use tracing::{info, warn};

/// How often it looks.
const EVERY: Duration = Duration::from_secs(20);
/// How late a step may be before its row is swept.
const GRACE: Duration = Duration::from_secs(30);
/// A scaled time is no shorter.
const SHORTEST: Duration = Duration::from_secs(1);
/// Rows of a kind that are swept at a time.
const BATCH: i64 = 500;

/// The sweeper.
pub struct Sweeper {
    /// Where the rows are.
    pub db: Pool,
    /// How fast it goes round.
    pub time_scale: TimeScale,
}

impl Sweeper {
    /// Sweeps until the process ends.
    pub async fn run(self) {
        let scaled = |time| self.time_scale.scale(time).max(SHORTEST);
        let (every, grace) = (scaled(EVERY), scaled(GRACE));
        loop {
            tokio::time::sleep(every).await;
            match sweep::sweep(&self.db, grace, BATCH).await {
                Ok(0) => {}
                Ok(pushed) => info!(rows = pushed, "Carry {pushed} overdue rows to Temporal again"),
                Err(error) => warn!(%error, "The sweeper can't read what is overdue"),
            }
        }
    }
}
