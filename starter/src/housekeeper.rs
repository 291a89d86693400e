//! Deletes old rows and creates the partitions of the coming weeks.
//!
//! Every API process does it, a few times an hour; what one does, the others need not do. See [`store::upkeep::retention`].

use crate::relay::answered;
use chrono::TimeDelta;
use std::time::Duration;
use store::{
    Pool,
    upkeep::retention::{self, Retention},
};
use tracing::{error, info, warn};

/// Pause between two passes.
const INTERVAL: Duration = Duration::from_secs(10 * 60);
/// Pause after a pass that could not do everything, because a lock was in use.
const RETRY: Duration = Duration::from_secs(20);
/// Statements of a pass that delete timelines.
const BATCHES: usize = 200;
/// Partitions must exist for so long ahead.
const ALARM: TimeDelta = TimeDelta::weeks(1);

/// The housekeeper of a process.
pub struct Housekeeper {
    /// Database.
    pub db: Pool,
    /// How long rows are kept.
    pub retention: Retention,
}

impl Housekeeper {
    /// Runs until the future is dropped.
    pub async fn run(self) {
        loop {
            let is_partial = self.pass().await;
            tokio::time::sleep(if is_partial { RETRY } else { INTERVAL }).await;
        }
    }

    /// Returns true if something is left to be done.
    async fn pass(&self) -> bool {
        let mut posts = 0;
        for _ in 0..BATCHES {
            match answered(retention::delete_timelines(&self.db, self.retention)).await {
                Ok(0) => break,
                Ok(more) => posts += more,
                Err(error) => {
                    warn!(%error, "Old timelines can't be deleted");
                    break;
                }
            }
        }
        if posts > 0 {
            info!(posts, "Deleted the timelines of {posts} posts that ended long ago");
        }
        match answered(retention::partition(&self.db, self.retention, None)).await {
            Ok(report) => {
                if report.created + report.detached + report.discarded > 0 {
                    info!(
                        created = report.created,
                        detached = report.detached,
                        discarded = report.discarded,
                        until = %report.until,
                        default_bytes = report.default_bytes,
                        "Changed the partitions of events and deliveries"
                    );
                }
                if report.until < report.now + ALARM {
                    error!(
                        until = %report.until,
                        default_bytes = report.default_bytes,
                        "No partition of events or deliveries is ready for next week: rows go to the default partition"
                    );
                }
                report.is_partial
            }
            Err(error) => {
                error!(%error, "The partitions of events and deliveries can't be changed");
                true
            }
        }
    }
}
