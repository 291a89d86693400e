//! Collects the metrics that are due, all platforms side by side, each on its own queue.
//!
//! A schedule starts it. What is due is in the rows, so that a history holds only counts and the next run makes
//! up for a failed one. A platform without a worker delays no other.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{
    activities::{CollectionSummary, Metrics},
    options, queue,
};
use domain::Mode;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use temporalio_workflow::{
    ActivityCloseTimeouts, ActivityOptions, RetryPolicy, WorkflowContext, WorkflowContextView,
    WorkflowResult, join_all, workflow, workflow_methods,
};

/// Time for fetching the metrics of one platform in a run; what is left then waits for the next run.
pub const COLLECTION_SPAN: Duration = Duration::from_secs(240);
/// Time limit of collecting the metrics of one platform, its last call included.
const COLLECTION_TIMEOUT: Duration = Duration::from_secs(300);
/// Time limit of the same with waiting for a worker and retries.
const COLLECTION_TOTAL_TIMEOUT: Duration = Duration::from_secs(600);

/// Input of the workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// Ids of the platforms with metrics.
    pub platforms: Vec<String>,
}

/// Id of the schedule, and prefix of the ids of its runs.
pub fn id(base: &str) -> String {
    format!("{base}-collect-metrics")
}

/// Description of the schedule.
pub const NOTE: &str = "Fetches the metrics of recently published posts";

/// Collects metrics once. See the [module](self).
#[workflow]
pub struct CollectMetrics {
    input: Input,
}

#[workflow_methods]
impl CollectMetrics {
    #[init]
    fn new(_ctx: &WorkflowContextView, input: Input) -> Self {
        Self { input }
    }

    /// Runs until every platform was called or has failed.
    #[run(name = "CollectMetrics")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<CollectionSummary> {
        let ctx = &*ctx;
        let platforms = ctx.state(|collect| collect.input.platforms.clone());
        // Any worker can delete rows; the first platform's queue is as good as another.
        if let Some(first) = platforms.first() {
            let queue = queue::platform(ctx.task_queue(), first, Mode::Live);
            let options = metrics_options(queue, "Delete old metrics".to_owned());
            // The next run deletes what this one does not.
            let _ = ctx.execute_activity(Metrics::prune_metrics, (), options).await;
        }
        let runs = join_all(platforms.into_iter().map(|platform| {
            // One run covers both modes.
            let queue = queue::platform(ctx.task_queue(), &platform, Mode::Live);
            let options = metrics_options(queue, format!("Fetch metrics from {platform}"));
            ctx.execute_activity(Metrics::collect_metrics, platform, options)
        }))
        .await;
        Ok(runs.into_iter().filter_map(Result::ok).sum())
    }
}

/// Returns the options for collecting or deleting metrics on a queue. The next run makes up for a failed one.
fn metrics_options(queue: String, summary: String) -> ActivityOptions {
    ActivityOptions::with_close_timeouts(ActivityCloseTimeouts::ScheduleAndStartToClose {
        schedule_to_close: COLLECTION_TOTAL_TIMEOUT,
        start_to_close: COLLECTION_TIMEOUT,
    })
    .heartbeat_timeout(options::SHORT_HEARTBEAT_TIMEOUT)
    .retry_policy(
        RetryPolicy::builder()
            .initial_interval(Duration::from_secs(5))
            .backoff_coefficient(2.0)
            .maximum_attempts(3)
            .build(),
    )
    .task_queue(queue)
    .summary(summary)
    .build()
}
