//! Carries to Temporal again what is overdue.
//!
//! Postgres holds facts, Temporal holds progress: a workflow that was terminated or lost leaves a row
//! whose next step never comes. Every API process looks for such rows now and then ([`store::sweep`]); the
//! relay carries them, which does nothing where the workflow is alive.

use domain::TimeScale;
use std::time::Duration;
use store::{
    Pool,
    sweep::{self, Patience},
};
use tracing::{info, warn};

/// How often it looks.
const EVERY: Duration = Duration::from_secs(20);
/// How late a step may be before its row is swept.
const GRACE: Duration = Duration::from_secs(30);
/// How long a row is left alone after it was swept.
const REST: Duration = Duration::from_secs(60);
/// A scaled time is no shorter, and a scaled rest no shorter than the second.
const SHORTEST: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));
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
        let scaled = |time, shortest| self.time_scale.scale(time).max(shortest);
        let every = scaled(EVERY, SHORTEST.0);
        let patience = Patience { grace: scaled(GRACE, SHORTEST.0), rest: scaled(REST, SHORTEST.1) };
        loop {
            tokio::time::sleep(every).await;
            match sweep::sweep(&self.db, patience, BATCH).await {
                Ok(0) => {}
                Ok(pushed) => info!(rows = pushed, "Carry {pushed} overdue rows to Temporal again"),
                Err(error) => warn!(%error, "The sweeper can't read what is overdue"),
            }
        }
    }
}
