//! Temporal schedules: metrics collection and media clean-up.
//!
//! Every worker process creates or updates them when it starts, and again when one is missing: Temporal may have lost
//! its data. The result is the same for any number and order of processes, and a schedule that an operator paused
//! stays paused.

use anyhow::Context;
use std::time::Duration;
use temporalio_client::{
    Client,
    schedules::{
        CreateScheduleOptions, DeleteScheduleOptions, ScheduleAction, ScheduleError, ScheduleOverlapPolicy,
        ScheduleSpec,
    },
    tonic::Code,
};
use workflows::{CleanUpMedia, CollectMetrics, clean_up_media, collect_metrics};

/// Catch-up window of missed runs: the next run includes what a missed one left.
const CATCHUP_WINDOW: Duration = Duration::from_secs(60);

/// Creates or updates the schedules. `collect_every` is the interval of metrics collection; zero disables it.
///
/// # Errors
///
/// If Temporal fails or refuses a schedule.
pub async fn apply(client: &Client, base: &str, collect_every: Duration) -> anyhow::Result<()> {
    let platforms = platforms::all().iter().filter(|platform| platform.analytics.is_some());
    let input =
        collect_metrics::Input { platforms: platforms.map(|platform| platform.id.to_owned()).collect() };
    let id = collect_metrics::id(base);
    let action = ScheduleAction::start_workflow(CollectMetrics::run, input, base, &id);
    set(client, &id, collect_every, action, collect_metrics::NOTE)
        .await
        .context("schedule of metrics collection")?;
    let id = clean_up_media::id(base);
    let action = ScheduleAction::start_workflow(CleanUpMedia::run, (), clean_up_media::queue(base), &id);
    set(client, &id, clean_up_media::INTERVAL, action, clean_up_media::NOTE)
        .await
        .context("schedule of media clean-up")
}

/// Returns whether each schedule exists, or does not if its interval is zero.
///
/// # Errors
///
/// If Temporal fails.
pub async fn are_kept(client: &Client, base: &str, collect_every: Duration) -> anyhow::Result<bool> {
    let wanted = [(collect_metrics::id(base), !collect_every.is_zero()), (clean_up_media::id(base), true)];
    for (id, is_wanted) in wanted {
        let exists = match client.get_schedule_handle(id).describe(Default::default()).await {
            Ok(_) => true,
            Err(ScheduleError::Rpc(status)) if status.code() == Code::NotFound => false,
            Err(error) => return Err(error).context("can't be described"),
        };
        if exists != is_wanted {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Creates or updates a schedule; deletes it if the interval is zero.
async fn set(
    client: &Client,
    id: &str,
    interval: Duration,
    action: ScheduleAction,
    note: &str,
) -> anyhow::Result<()> {
    let handle = client.get_schedule_handle(id);
    if interval.is_zero() {
        return match handle.delete(DeleteScheduleOptions::default()).await {
            Err(ScheduleError::Rpc(status)) if status.code() == Code::NotFound => Ok(()),
            outcome => outcome.context("can't be deleted"),
        };
    }
    let options = CreateScheduleOptions::builder()
        .action(action.clone())
        .spec(ScheduleSpec::from_interval(interval))
        .overlap_policy(ScheduleOverlapPolicy::Skip)
        .note(note)
        .build();
    match client.create_schedule(id, options).await {
        Ok(_) => {}
        Err(ScheduleError::Rpc(status)) if status.code() == Code::AlreadyExists => {}
        Err(error) => return Err(error).context("can't be created"),
    }
    // Updates a schedule of another version; the catch-up window can be set in an update only.
    let change = move |update: &mut temporalio_client::schedules::ScheduleUpdate| {
        update
            .set_spec(ScheduleSpec::from_interval(interval))
            .set_action(action)
            .set_catchup_window(CATCHUP_WINDOW);
    };
    handle.update(change, Default::default()).await.context("can't be updated")
}
