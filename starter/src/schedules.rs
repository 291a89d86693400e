//! What Temporal starts by the clock: rounds of collecting figures and of tidying media up.
//!
//! Every worker process that starts sees to it, and they all want the same, so that any number of them
//! and any order will do. What an operator paused stays paused.

use anyhow::Context;
use domain::Mode;
use std::time::Duration;
use temporalio_client::{
    Client,
    schedules::{
        CreateScheduleOptions, DeleteScheduleOptions, ScheduleAction, ScheduleError, ScheduleOverlapPolicy,
        ScheduleSpec,
    },
    tonic::Code,
};
use workflows::{CleanUpMedia, CollectMetrics, clean_up_media, collect_metrics, queue};

/// How late a round may begin: the next one makes good what was missed.
const LATE: Duration = Duration::from_secs(60);

/// How often media are tidied up.
const TIDY: Duration = Duration::from_secs(3600);

/// Has figures collected every so often, where zero is never, and media tidied up.
///
/// # Errors
///
/// When Temporal does not take it.
pub async fn keep(client: &Client, base: &str, figures: Duration) -> anyhow::Result<()> {
    let platforms = platforms::all().iter().filter(|platform| platform.analytics().is_some());
    let order =
        collect_metrics::Input { platforms: platforms.map(|platform| platform.id().to_owned()).collect() };
    let id = collect_metrics::id(base);
    let action = ScheduleAction::start_workflow(CollectMetrics::run, order, base, &id);
    let note = "Collects the figures of what was published of late";
    set(client, &id, figures, action, note).await.context("the schedule of collecting figures")?;
    let id = clean_up_media::id(base);
    let action = ScheduleAction::start_workflow(CleanUpMedia::run, (), queue::media(base, Mode::Live), &id);
    let note = "Deletes media that nobody waits for any more";
    set(client, &id, TIDY, action, note).await.context("the schedule of tidying media up")
}

/// Has something started every so often; zero is never.
async fn set(
    client: &Client,
    id: &str,
    every: Duration,
    action: ScheduleAction,
    note: &str,
) -> anyhow::Result<()> {
    let handle = client.get_schedule_handle(id);
    if every.is_zero() {
        return match handle.delete(DeleteScheduleOptions::default()).await {
            Err(ScheduleError::Rpc(status)) if status.code() == Code::NotFound => Ok(()),
            outcome => outcome.context("it was not removed"),
        };
    }
    let options = CreateScheduleOptions::builder()
        .action(action.clone())
        .spec(ScheduleSpec::from_interval(every))
        .overlap_policy(ScheduleOverlapPolicy::Skip)
        .note(note)
        .build();
    match client.create_schedule(id, options).await {
        Ok(_) => {}
        Err(ScheduleError::Rpc(status)) if status.code() == Code::AlreadyExists => {}
        Err(error) => return Err(error).context("it was not made"),
    }
    // What another version set up is brought up to date; a late start can only be said here.
    let change = move |update: &mut temporalio_client::schedules::ScheduleUpdate| {
        update.set_spec(ScheduleSpec::from_interval(every)).set_action(action).set_catchup_window(LATE);
    };
    handle.update(change, Default::default()).await.context("it was not brought up to date")
}
