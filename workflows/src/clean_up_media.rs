//! Deletes expired media assets and orphaned files, batch by batch.
//!
//! A schedule starts it. What is due is in the rows, so that the next run makes up for a failed one.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{activities::Media, queue};
use domain::Mode;
use std::time::Duration;
use temporalio_workflow::{
    ActivityOptions, RetryPolicy, WorkflowContext, WorkflowResult, workflow, workflow_methods,
};

/// Description of the schedule.
pub const NOTE: &str = "Deletes media files that are no longer needed";
/// Interval of the schedule.
pub const INTERVAL: Duration = Duration::from_secs(3600);
/// Most batches of one run, so that its history stays short.
const BATCHES: usize = 500;

/// Id of the schedule, and prefix of the ids of its runs.
pub fn id(base: &str) -> String {
    format!("{base}-clean-up-media")
}

/// Returns the task queue. `base` is that of posts.
pub fn queue(base: &str) -> String {
    queue::media(base, Mode::Live)
}

/// Deletes what is due. See the [module](self).
#[workflow]
#[derive(Default)]
pub struct CleanUpMedia;

#[workflow_methods]
impl CleanUpMedia {
    /// Runs until nothing is due, or for [`BATCHES`] batches.
    #[run(name = "CleanUpMedia")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        for _ in 0..BATCHES {
            if !ctx.execute_activity(Media::clean_up_media, (), batch_options()).await? {
                break;
            }
        }
        Ok(())
    }
}

/// Returns the options for deleting a batch of expired media. The next run makes up for a failed one.
fn batch_options() -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(120))
        .retry_policy(RetryPolicy::builder().maximum_attempts(3).build())
        .build()
}
