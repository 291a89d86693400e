//! Finds overdue rows and sends their messages again.
//!
//! Postgres holds the facts, Temporal the progress: a workflow that was terminated or lost leaves a row
//! whose next step never happens. Every API process looks for such rows periodically ([`store::sweep`]) and
//! writes messages for them, which have no effect on a workflow that runs. It also deletes events and entries
//! of the audit trail that nobody can read any more.

use crate::relay::answered;
use domain::TimeScale;
use std::time::Duration;
use store::{
    Pool, audit, events,
    sweep::{self, Timing},
};
use telemetry::{health::Pulse, metrics};
use tracing::{info, warn};

/// Interval of sweeps.
const INTERVAL: Duration = Duration::from_secs(20);
/// Delay of a step after which its row is overdue.
const GRACE: Duration = Duration::from_secs(30);
/// Shortest time between two sweeps of a row.
const ROW_INTERVAL: Duration = Duration::from_secs(60);
/// Lower limit of scaled times.
const MIN_SCALED: Duration = Duration::from_secs(1);
/// Lower limit of a scaled [`ROW_INTERVAL`].
const MIN_ROW_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum rows of each kind per sweep.
const BATCH: i64 = 500;

/// The sweeper of a process.
pub struct Sweeper {
    /// Database with the rows.
    pub db: Pool,
    /// Scale of all times.
    pub time_scale: TimeScale,
    /// Beats with each turn.
    pub pulse: Pulse,
}

impl Sweeper {
    /// Sweeps until the future is dropped.
    pub async fn run(self) {
        let scaled = |time, least| self.time_scale.scale(time).max(least);
        let interval = scaled(INTERVAL, MIN_SCALED);
        let ages =
            platforms::all().iter().filter_map(|platform| Some((platform.id, platform.auth.renewal_age()?)));
        let renewal_ages: Vec<_> = ages.collect();
        let timing = Timing {
            grace: scaled(GRACE, MIN_SCALED),
            row_interval: scaled(ROW_INTERVAL, MIN_ROW_INTERVAL),
            renewal_ages: &renewal_ages,
        };
        loop {
            tokio::time::sleep(interval).await;
            self.pulse.beat();
            match answered(sweep::sweep(&self.db, timing, BATCH)).await {
                Ok(0) => {}
                Ok(rows) => {
                    metrics::requeued(rows);
                    info!(rows, "Queued {rows} overdue rows again");
                }
                Err(error) => warn!(%error, "The sweeper can't read the overdue rows"),
            }
            if let Err(error) = answered(events::prune(&self.db, BATCH)).await {
                warn!(%error, "The sweeper can't delete old events");
            }
            if let Err(error) = answered(audit::prune(&self.db, BATCH)).await {
                warn!(%error, "The sweeper can't delete old entries of the audit trail");
            }
        }
    }
}
