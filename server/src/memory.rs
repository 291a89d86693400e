//! The limit of a worker process's memory.
//!
//! Workers are replaced before what the SDK keeps of each activity matters ([`activities::worker`]). Should something
//! else grow, a process beyond this limit finishes what it has begun and ends, for its supervisor to start it again:
//! better than to be killed during a publishing call, which then has to be looked up.

use anyhow::bail;
use std::{pin::pin, time::Duration};
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System};
use telemetry::metrics;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// Interval at which the memory in use is read.
const INTERVAL: Duration = Duration::from_secs(10);
const MIB: u64 = 1 << 20;

/// Runs `services` to their end. Cancels `stop`, for which they end, when the process's resident memory exceeds `limit`
/// MiB; `None` is no limit.
///
/// # Errors
///
/// Those of the services, and that the limit was exceeded: the process is to be started again.
pub(crate) async fn bounded(
    limit: Option<u64>,
    stop: CancellationToken,
    services: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let Some(limit) = limit else { return services.await };
    metrics::set(metrics::MEMORY_LIMIT, limit.saturating_mul(MIB) as f64);
    let mut services = pin!(services);
    let used = tokio::select! {
        ended = &mut services => return ended,
        used = exceeded(limit) => used,
    };
    warn!(
        "The process uses {used} MiB of memory, and FANFARE_MEMORY_LIMIT is {limit} MiB: it finishes what it has begun \
         and ends"
    );
    stop.cancel();
    services.await?;
    bail!("the process used {used} MiB of memory, and FANFARE_MEMORY_LIMIT is {limit} MiB: start it again")
}

/// Waits until the process uses more than `limit` MiB, and returns how many.
async fn exceeded(limit: u64) -> u64 {
    let (mut system, mut ticks) = (System::new(), interval(INTERVAL));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is immediate: a process that starts is let begin.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        if let Some(used) = resident(&mut system).map(|bytes| bytes / MIB).filter(|used| *used > limit) {
            return used;
        }
    }
}

/// Returns the resident memory of this process, in bytes; `None` if the system does not tell.
fn resident(system: &mut System) -> Option<u64> {
    let id = sysinfo::get_current_pid().ok()?;
    let memory = ProcessRefreshKind::nothing().with_memory().without_tasks();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[id]), true, memory);
    Some(system.process(id)?.memory())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_used_is_counted() {
        let mut system = System::new();
        let before = resident(&mut system).expect("this system tells");
        assert!(before > MIB, "{before}");
        let block = vec![7_u8; 64 << 20];
        let after = resident(&mut system).expect("this system tells");
        assert!(after >= before + (32 << 20), "{before} and {after} with {} more", block.len());
    }
}
