//! Something is done with the bytes of one media asset: they are fetched, looked at or discarded.
//!
//! All three may be repeated, and are until they are done. What can't be fetched or looked at is given up
//! after a few tries, and the asset says so; discarding is never given up.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{
    activities::{CROWDED, Media, MediaFailure},
    attributes,
};
use domain::{
    TimeScale,
    outbox::{MediaAction, MediaJob},
};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use temporalio_common::{error::IncomingError, search_attributes::SearchAttributes};
use temporalio_workflow::{
    ActivityExecutionError, ActivityOptions, RetryPolicy, WorkflowContext, WorkflowContextView,
    WorkflowResult, workflow, workflow_methods,
};

/// Tries before an asset is given up.
const TRIES: u32 = 6;
/// The longest that the bytes of one asset may take on their way.
const LONGEST: Duration = Duration::from_secs(3600);
/// How soon a worker that died is missed.
const BEAT: Duration = Duration::from_secs(30);

/// What the workflow is started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Input {
    /// What is to be done.
    pub job: MediaJob,
    /// How fast the waits run.
    #[serde(default)]
    pub time_scale: TimeScale,
}

/// The workflow's id: fixed, so that starting it twice does nothing.
pub fn id(job: &MediaJob) -> String {
    format!("{}-{}", job.what, job.media)
}

/// The search attributes it is started with.
pub fn search_attributes(job: &MediaJob) -> SearchAttributes {
    SearchAttributes::new([attributes::ORG.value_set(job.owner.org.to_string())])
}

/// Tends the bytes of one asset. See the [module](self).
#[workflow]
pub struct ProcessMedia {
    input: Input,
}

#[workflow_methods]
impl ProcessMedia {
    #[init]
    fn new(_ctx: &WorkflowContextView, input: Input) -> Self {
        Self { input }
    }

    /// Runs until it is done or given up.
    #[run(name = "TendMedia")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        let Input { job, time_scale } = ctx.state(|tend| tend.input.clone());
        let tries = if job.what == MediaAction::Discard { 0 } else { TRIES };
        loop {
            match ctx.execute_activity(Media::process_media, job.clone(), attempts(time_scale, tries)).await {
                Ok(()) => return Ok(()),
                Err(error @ ActivityExecutionError::Cancelled(_)) => return Err(error.into()),
                Err(error) => {
                    if let Some(wait) = crowded(&error) {
                        ctx.timer(wait).await;
                        continue;
                    }
                    let lost = MediaFailure { job, message: words(&error) };
                    return Ok(ctx
                        .execute_activity(Media::fail_media, lost, attempts(time_scale, 0))
                        .await?);
                }
            }
        }
    }
}

/// How long to wait before what was not tried is tried; `None` where something was.
pub(crate) fn crowded(error: &ActivityExecutionError) -> Option<Duration> {
    match error.cause() {
        Some(IncomingError::Application(failure)) if failure.type_name() == Some(CROWDED) => {
            failure.details().ok().flatten()
        }
        _ => None,
    }
}

/// The innermost reason: what the activity said.
fn words(error: &ActivityExecutionError) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(inner) = reason.source() {
        reason = inner;
    }
    reason.to_string()
}

/// `tries` of 0 never ends.
fn attempts(time_scale: TimeScale, tries: u32) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(LONGEST)
        .heartbeat_timeout(BEAT)
        .retry_policy(
            RetryPolicy::builder()
                .initial_interval(time_scale.scale(Duration::from_secs(5)).max(Duration::from_millis(100)))
                .backoff_coefficient(2.0)
                .maximum_interval(time_scale.scale(Duration::from_secs(600)).max(Duration::from_secs(1)))
                .maximum_attempts(tries)
                .build(),
        )
        .build()
}
