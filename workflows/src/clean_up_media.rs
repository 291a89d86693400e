//! Deletes expired media assets and orphaned files, batch by batch.
//!
//! A schedule starts it. What is due is in the rows, so that the next run makes up for a failed one.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{activities::Media, options};
use temporalio_workflow::{WorkflowContext, WorkflowResult, workflow, workflow_methods};

/// Id of the schedule, and prefix of the ids of its runs.
pub fn id(base: &str) -> String {
    format!("{base}-clean-up-media")
}

/// Most batches of one run, so that its history stays short.
const BATCHES: usize = 500;

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
            if !ctx.execute_activity(Media::clean_up_media, (), options::clean_up_media()).await? {
                break;
            }
        }
        Ok(())
    }
}
