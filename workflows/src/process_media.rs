//! Processes the file of one media asset: downloads, inspects or deletes it.
//!
//! All three may be repeated. Downloading and inspecting fail after a few tries, and the asset says so;
//! deleting is retried until it is done.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{
    activities::{CROWDED, Media, MediaFailure},
    attributes, options, queue,
    start::Start,
    timer,
};
use domain::{
    Owner, TimeScale,
    outbox::{MediaAction, MediaJob},
};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use temporalio_common::{error::IncomingError, search_attributes::SearchAttributes};
use temporalio_workflow::{
    ActivityExecutionError, ActivityOptions, WorkflowContext, WorkflowContextView, WorkflowResult, workflow,
    workflow_methods,
};

/// Tries before processing a media asset fails.
const MEDIA_TRIES: u32 = 6;
/// Time limit of processing a media asset.
const MEDIA_TIMEOUT: Duration = Duration::from_secs(3600);

/// Input of the workflow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Input {
    /// Job.
    pub job: MediaJob,
    /// Scale of all waits.
    #[serde(default)]
    pub time_scale: TimeScale,
}

impl Start for Input {
    fn owner(&self) -> Owner {
        self.job.owner
    }

    fn id(&self) -> String {
        format!("{}-{}", self.job.what, self.job.media)
    }

    fn queue(&self, base: &str) -> String {
        queue::media(base, self.job.owner.mode)
    }

    fn search_attributes(&self) -> SearchAttributes {
        SearchAttributes::new([attributes::ORG.value_set(self.job.owner.org.to_string())])
    }

    fn summary(&self) -> String {
        format!("Process a media file: {}", self.job.what)
    }
}

/// Processes the file of one asset. See the [module](self).
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

    /// Runs until the job is done or has failed.
    #[run(name = "ProcessMedia")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        let Input { job, time_scale } = ctx.state(|state| state.input.clone());
        let is_limited = job.what != MediaAction::Discard;
        loop {
            match ctx
                .execute_activity(
                    Media::process_media,
                    job.clone(),
                    processing_options(time_scale, is_limited),
                )
                .await
            {
                Ok(()) => return Ok(()),
                Err(error @ ActivityExecutionError::Cancelled(_)) => return Err(error.into()),
                Err(error) => {
                    if let Some(wait) = crowded(&error) {
                        timer::sleep(ctx, wait).await;
                        continue;
                    }
                    let failure = MediaFailure { job, message: root_message(&error) };
                    return Ok(ctx
                        .execute_activity(Media::fail_media, failure, processing_options(time_scale, false))
                        .await?);
                }
            }
        }
    }
}

/// Time to wait when the activity did nothing because its organization uses its share of the slots; `None` for
/// any other failure.
pub(crate) fn crowded(error: &ActivityExecutionError) -> Option<Duration> {
    match error.cause() {
        Some(IncomingError::Application(failure)) if failure.type_name() == Some(CROWDED) => {
            failure.details().ok().flatten()
        }
        _ => None,
    }
}

/// The innermost error message: that of the activity.
fn root_message(error: &ActivityExecutionError) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(inner) = reason.source() {
        reason = inner;
    }
    reason.to_string()
}

/// Returns the options for processing a media asset; without `is_limited` it is retried until it is done.
fn processing_options(time_scale: TimeScale, is_limited: bool) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(MEDIA_TIMEOUT)
        .heartbeat_timeout(options::SHORT_HEARTBEAT_TIMEOUT)
        .retry_policy(options::backoff(
            time_scale.scale(Duration::from_secs(5)).max(Duration::from_millis(100)),
            time_scale.scale(Duration::from_secs(600)).max(Duration::from_secs(1)),
            if is_limited { MEDIA_TRIES } else { 0 },
        ))
        .build()
}
