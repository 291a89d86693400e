//! Deletes media that nobody waits for any more: a batch at a time, until none is left.
//!
//! A schedule starts it. What is due stands in the rows, so that a run that fails or never comes is made
//! good by the next.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::activities::Media;
use std::time::Duration;
use temporalio_workflow::{
    ActivityOptions, RetryPolicy, WorkflowContext, WorkflowResult, workflow, workflow_methods,
};

/// The id of the schedule, and what the ids of its runs begin with.
pub fn id(base: &str) -> String {
    format!("{base}-clean-up-media")
}

/// Batches of one run, so that its history stays short.
const BATCHES: usize = 500;

/// Tidies up once. See the [module](self).
#[workflow]
#[derive(Default)]
pub struct CleanUpMedia;

#[workflow_methods]
impl CleanUpMedia {
    /// Runs until nothing is left that is due, or for a good while.
    #[run(name = "TidyMedia")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        for _ in 0..BATCHES {
            if !ctx.execute_activity(Media::clean_up_media, (), once()).await? {
                break;
            }
        }
        Ok(())
    }
}

fn once() -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(120))
        .retry_policy(RetryPolicy::builder().maximum_attempts(3).build())
        .build()
}
