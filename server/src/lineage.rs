//! The guard of the workers against a database that was restored: see `store::upkeep::lineage`.
//!
//! Temporal has the time of the last beat in the note of a schedule that never runs. Nothing of it is needed: without it,
//! as after Temporal lost its data, the database is believed.

use crate::{config::Temporal, temporal::Fault};
use anyhow::{Context, anyhow};
use chrono::{DateTime, SecondsFormat, Utc};
use domain::Mode;
use std::{pin::pin, time::Duration};
use store::{
    Pool,
    upkeep::{
        durability::{Purpose, RESTORED},
        lineage,
    },
};
use telemetry::health::Health;
use temporalio_client::{
    Client,
    schedules::{CreateScheduleOptions, ScheduleAction, ScheduleError, ScheduleSpec},
    tonic::Code,
};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};
use uuid::Uuid;
use workflows::{CleanUpMedia, queue};

/// Interval of the beats.
const INTERVAL: Duration = Duration::from_secs(20);
/// Lower limit of a scaled [`INTERVAL`].
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of the schedule, which is paused.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);
/// Time limit of a look at the database for a probe, shorter than that of the probe's checks.
const LOOK_TIMEOUT: Duration = Duration::from_secs(1);
/// Reason of a database whose last beat Temporal knows to be older than the latest.
const OLDER: &str = "the database is older than what its workers have written, as after a restore of its files, so that \
    posts may be published twice; run `fanfare ops restored --since TIME`";

/// Makes a process that publishes ready only with a database that was not restored; another one tells it.
pub(crate) fn watch(health: &Health, url: &str, purpose: Purpose) -> anyhow::Result<()> {
    // A pool of its own: the other one refuses such a database.
    let db = store::connect_lazy(url, 1)?;
    health.check("restored", purpose == Purpose::Publish, move || {
        let db = db.clone();
        async move {
            let look = async {
                let mut connection = db.acquire().await?;
                lineage::is_foreign(&mut connection).await
            };
            match timeout(LOOK_TIMEOUT, look).await {
                Ok(Ok(true)) => Err(format!("the database is refused: {RESTORED}")),
                // Another check tells of a database that is away, or a standby.
                Ok(Ok(false) | Err(_)) | Err(_) => Ok(()),
            }
        }
    });
    Ok(())
}

/// Compares the database with what Temporal knows of it.
pub(crate) struct Guard {
    db: Pool,
    client: Client,
    base: String,
    interval: Duration,
}

impl Guard {
    /// Returns the guard of a worker.
    pub(crate) fn new(db: &Pool, client: &Client, temporal: &Temporal) -> Self {
        Self {
            db: db.clone(),
            client: client.clone(),
            base: temporal.scheduling.task_queue.clone(),
            interval: temporal.time_scale().scale(INTERVAL).max(MIN_INTERVAL),
        }
    }

    fn id(&self, installation: Uuid) -> String {
        format!("{}-installation-{installation}", self.base)
    }

    /// Fails if the database is older than what workers have written.
    pub(crate) async fn check(&self) -> Result<(), Fault> {
        let last = async || lineage::last_beat(&self.db).await.context("the last beat can't be read");
        let is_older = async {
            let Some(beat) = last().await? else { return Ok(false) };
            let at = async || Ok(last().await?.and_then(|beat| beat.at));
            is_older(async || self.known(beat.installation).await, at).await
        };
        match is_older.await {
            Ok(false) => Ok(()),
            Ok(true) => Err(Fault::Away(anyhow!(OLDER))),
            Err(error) => Err(Fault::Away(error)),
        }
    }

    /// Returns the last beat that Temporal knows.
    async fn known(&self, installation: Uuid) -> anyhow::Result<Option<DateTime<Utc>>> {
        let handle = self.client.get_schedule_handle(self.id(installation));
        match handle.describe(Default::default()).await {
            Ok(found) => Ok(found.note().and_then(|note| note.rsplit(' ').next()?.parse().ok())),
            Err(ScheduleError::Rpc(status)) if status.code() == Code::NotFound => Ok(None),
            Err(ScheduleError::Rpc(status))
                if matches!(status.code(), Code::PermissionDenied | Code::Unimplemented) =>
            {
                warn!(
                    "Temporal lets no schedules be read, so that a database restored from files is not recognized"
                );
                Ok(None)
            }
            Err(error) => Err(error).context("the last beat can't be read from Temporal"),
        }
    }

    /// Writes a beat, unless another worker has just written one.
    async fn beat(&self) -> anyhow::Result<()> {
        let Some(at) = lineage::beat(&self.db, self.interval / 2).await? else { return Ok(()) };
        let Some(beat) = lineage::last_beat(&self.db).await? else { return Ok(()) };
        let id = self.id(beat.installation);
        let note = format!("Last beat of the database: {}", at.to_rfc3339_opts(SecondsFormat::Micros, true));
        let change = {
            let note = note.clone();
            move |update: &mut temporalio_client::schedules::ScheduleUpdate| {
                update.set_note(note);
            }
        };
        match self.client.get_schedule_handle(&id).update(change, Default::default()).await {
            Err(ScheduleError::Rpc(status)) if status.code() == Code::NotFound => {}
            outcome => return outcome.context("the beat can't be written to Temporal"),
        }
        let queue = queue::media(&self.base, Mode::Live);
        let options = CreateScheduleOptions::builder()
            .action(ScheduleAction::start_workflow(CleanUpMedia::run, (), queue, &id))
            .spec(ScheduleSpec::from_interval(NEVER))
            .paused(true)
            .note(note)
            .build();
        match self.client.create_schedule(&id, options).await {
            Ok(_) => Ok(()),
            Err(ScheduleError::Rpc(status)) if status.code() == Code::AlreadyExists => Ok(()),
            Err(error) => Err(error).context("the beat can't be written to Temporal"),
        }
    }

    /// Beats until the database turns out to be restored, and returns the reason.
    async fn watch(&self) -> &'static str {
        let mut ticks = interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let is_foreign = async {
                let mut connection = self.db.acquire().await?;
                lineage::is_foreign(&mut connection).await
            };
            if matches!(is_foreign.await, Ok(true)) {
                return RESTORED;
            }
            if let Err(Fault::Away(reason)) = self.check().await
                && reason.to_string() == OLDER
            {
                return OLDER;
            }
            if let Err(error) = self.beat().await {
                warn!(error = format!("{error:#}"), "A beat was not written; it is repeated");
            }
        }
    }
}

/// Returns whether Temporal knows a later beat than the database. Temporal is asked first: a beat of another worker in
/// between is in the database before it is in Temporal.
async fn is_older<T: PartialOrd>(
    known: impl AsyncFnOnce() -> anyhow::Result<Option<T>>,
    last: impl AsyncFnOnce() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<bool> {
    let Some(known) = known().await? else { return Ok(false) };
    Ok(last().await?.is_none_or(|last| last < known))
}

/// Runs `services` to their end. Cancels `stop`, for which they end, when the database turns out to be restored.
///
/// # Errors
///
/// Those of the services, and that the database was restored.
pub(crate) async fn guarded(
    guard: Option<Guard>,
    stop: CancellationToken,
    services: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let Some(guard) = guard else { return services.await };
    let mut services = pin!(services);
    let reason = tokio::select! {
        ended = &mut services => return ended,
        reason = guard.watch() => reason,
    };
    error!("Stopping, since {reason}");
    stop.cancel();
    services.await?;
    Err(anyhow!(reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test]
    async fn a_beat_of_another_worker_makes_no_database_old() {
        let (database, temporal) = (Cell::new(1), Cell::new(1));
        // At each look another worker has just written a beat, first to the database.
        let beat = || {
            database.set(database.get() + 1);
            temporal.set(database.get());
        };
        let look = |at: &Cell<i32>| {
            let found = at.get();
            beat();
            Ok(Some(found))
        };
        assert!(!is_older(async || look(&temporal), async || look(&database)).await.unwrap());
        // A restore.
        database.set(1);
        assert!(
            is_older(async || Ok(Some(temporal.get())), async || Ok(Some(database.get()))).await.unwrap()
        );
        assert!(is_older(async || Ok(Some(1)), async || Ok(None)).await.unwrap());
        assert!(!is_older(async || Ok(None), async || Ok(Some(1))).await.unwrap());
    }
}
