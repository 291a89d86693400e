//! Deletes media that nobody waits for any more, now and then, for as long as there are workers.
//!
//! There is one such workflow in an installation; every worker sees to it that it runs.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::activities::Media;
use domain::Pace;
use std::time::Duration;
use temporalio_workflow::{
    ActivityExecutionError, ActivityOptions, ContinueAsNewOptions, RetryPolicy, WorkflowContext,
    WorkflowContextView, WorkflowResult, workflow, workflow_methods,
};

/// The workflow's id: one per queue of media.
pub fn id(queue: &str) -> String {
    format!("tidy-{queue}")
}

/// How long it rests.
const REST: Duration = Duration::from_secs(3600);
/// Rounds after which it begins anew, so that its history stays short.
const ROUNDS: usize = 100;

/// Tidies up. See the [module](self).
#[workflow]
pub struct TidyMedia {
    pace: Pace,
}

#[workflow_methods]
impl TidyMedia {
    #[init]
    fn new(_ctx: &WorkflowContextView, pace: Pace) -> Self {
        Self { pace }
    }

    /// Runs for ever.
    #[run(name = "TidyMedia")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        let pace = ctx.state(|tidy| tidy.pace);
        for _ in 0..ROUNDS {
            let more = match ctx.execute_activity(Media::tidy_media, (), once()).await {
                Ok(more) => more,
                Err(error @ ActivityExecutionError::Cancelled(_)) => return Err(error.into()),
                // What failed is looked at again in the next round.
                Err(_) => false,
            };
            if !more {
                ctx.timer(pace.of(REST).max(Duration::from_secs(1))).await;
            }
        }
        ctx.continue_as_new(pace, ContinueAsNewOptions::builder().build())?;
        Ok(())
    }
}

fn once() -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(120))
        .retry_policy(RetryPolicy::builder().maximum_attempts(3).build())
        .build()
}
