//! Finds rows that need a workflow and have none, and sends their messages.
//!
//! Postgres holds the facts, Temporal the progress. A far-off post waits in Postgres only, until its time is within the
//! scheduling horizon; and a workflow that was terminated or lost leaves a row whose next step never happens. Every
//! API process looks for such rows periodically ([`store::publishing::sweep`]) and writes messages for them, which have no effect
//! on a workflow that runs. It tells the owners of grants that end soon, reports open posts that have no open target, which no workflow would end. It also
//! deletes entries of the audit trail that are older than they are kept.

use crate::relay::answered;
use domain::TimeScale;
use std::time::Duration;
use store::{
    Pool,
    accounts::grants,
    people::audit,
    publishing::sweep::{self, Swept, Timing},
};
use telemetry::{health::Pulse, metrics};
use tracing::{error, info, warn};

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
/// Sweeps within the shortest horizon: one that fails is made up for.
const SWEEPS_PER_HORIZON: u32 = 3;

/// Returns the shortest scheduling horizon.
pub fn least_horizon(time_scale: TimeScale) -> Duration {
    interval(time_scale) * SWEEPS_PER_HORIZON
}

fn interval(time_scale: TimeScale) -> Duration {
    time_scale.scale(INTERVAL).max(MIN_SCALED)
}

/// The sweeper of a process.
pub struct Sweeper {
    /// Database with the rows.
    pub db: Pool,
    /// Scale of all times.
    pub time_scale: TimeScale,
    /// Beats with each turn.
    pub pulse: Pulse,
    /// Time before a post is due at which its workflow is started.
    pub horizon: Duration,
}

impl Sweeper {
    /// Sweeps until the future is dropped.
    pub async fn run(self) {
        let scaled = |time, least| self.time_scale.scale(time).max(least);
        let renewal_ages = platforms::renewals();
        let timing = Timing {
            grace: scaled(GRACE, MIN_SCALED),
            row_interval: scaled(ROW_INTERVAL, MIN_ROW_INTERVAL),
            horizon: self.horizon,
            renewal_ages: &renewal_ages,
        };
        loop {
            self.pulse.beat();
            match answered(sweep::sweep(&self.db, timing, BATCH)).await {
                Ok(swept) if swept.total() == 0 => {}
                Ok(Swept { near, overdue }) => {
                    metrics::swept(near, overdue);
                    info!(
                        near,
                        overdue,
                        "Wrote messages for {near} posts that came within the horizon and {overdue} overdue rows"
                    );
                }
                Err(error) => warn!(%error, "The sweeper can't read the rows that need a workflow"),
            }
            match answered(sweep::unending(&self.db, timing.grace, BATCH)).await {
                Ok(posts) => {
                    metrics::unending(posts.len());
                    if let Some(post) = posts.first() {
                        error!(
                            post.id = %post,
                            posts = posts.len(),
                            "Post {post} is open and has no open target, so that nothing ends it"
                        );
                    }
                }
                Err(error) => warn!(%error, "The sweeper can't read the posts that nothing ends"),
            }
            match answered(grants::tell_ends(&self.db, BATCH)).await {
                Ok(0) => {}
                Ok(grants) => info!(grants, "Told the owners of {grants} grants that they end within a week"),
                Err(error) => warn!(%error, "The sweeper can't read the grants that end"),
            }
            if let Err(error) = answered(audit::prune(&self.db, BATCH)).await {
                warn!(%error, "The sweeper can't delete old entries of the audit trail");
            }
            tokio::time::sleep(interval(self.time_scale)).await;
        }
    }
}
