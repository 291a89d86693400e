//! A round of collecting figures that nobody asks for: each platform on its own queue, side by side.
//!
//! A schedule starts it. Whose turn it is stands in the rows, so that a history holds counts and a round
//! that fails or never runs is made good by the next. A platform whose worker is away keeps the others
//! from nothing.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{
    activities::{CollectionSummary, Metrics},
    queue,
};
use domain::Mode;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use temporalio_workflow::{
    ActivityCloseTimeouts, ActivityOptions, RetryPolicy, WorkflowContext, WorkflowContextView,
    WorkflowResult, join_all, workflow, workflow_methods,
};

/// How long the readings of one platform may go on in a round.
pub const SPAN: Duration = Duration::from_secs(240);
/// How long a round of one platform may take, the last reading included.
const ROUND: Duration = Duration::from_secs(300);
/// How long it may wait for a worker, and be tried again.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long a worker may be silent before another takes over.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// What the workflow is started with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// The platforms that tell figures.
    pub platforms: Vec<String>,
}

/// The id of the schedule, and what the ids of its runs begin with.
pub fn id(base: &str) -> String {
    format!("{base}-collect-metrics")
}

/// Collects figures once. See the [module](self).
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

    /// Runs until every platform has been asked or given up.
    #[run(name = "CollectMetrics")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<CollectionSummary> {
        let ctx = &*ctx;
        let platforms = ctx.state(|collect| collect.input.platforms.clone());
        // Any worker can forget; the first platform's queue is as good as another.
        if let Some(first) = platforms.first() {
            let options = on(queue::platform(ctx.task_queue(), first, Mode::Live), "Forget what is too old");
            // What is not forgotten now is later.
            let _ = ctx.execute_activity(Metrics::prune_metrics, (), options).await;
        }
        let rounds = join_all(platforms.into_iter().map(|platform| {
            // A round reads the figures of both modes.
            let queue = queue::platform(ctx.task_queue(), &platform, Mode::Live);
            let options = on(queue, &format!("Read {platform}"));
            ctx.execute_activity(Metrics::collect_metrics, platform, options)
        }))
        .await;
        Ok(rounds.into_iter().filter_map(Result::ok).sum())
    }
}

fn on(queue: String, summary: &str) -> ActivityOptions {
    ActivityOptions::with_close_timeouts(ActivityCloseTimeouts::ScheduleAndStartToClose {
        schedule_to_close: PATIENCE,
        start_to_close: ROUND,
    })
    .heartbeat_timeout(HEARTBEAT)
    .retry_policy(
        RetryPolicy::builder()
            .initial_interval(Duration::from_secs(5))
            .backoff_coefficient(2.0)
            .maximum_attempts(3)
            .build(),
    )
    .task_queue(queue)
    .summary(summary.to_owned())
    .build()
}
