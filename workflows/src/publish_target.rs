//! A target: one account of a post, from its first attempt to its end.
//!
//! On the happy path this is one activity. It is retried for as long as the row asks for another
//! attempt, so that Temporal's UI shows the last failure and the next try of a stuck publish; the loop
//! below only turns where something else has to happen: a platform that is still processing, a refused
//! token, an operator who stops it. Budget, window and waits are the row's, so that this workflow may be
//! reset or started again at any moment.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{
    activities::{GRANT_LOST, Polled, Published, Publishing, Refusal, Settled, Settlement, Task, Why},
    attributes,
    lenient::Lenient,
};
use domain::{ErrorCode, Pace, TargetId, TargetStatus, retry};
use serde::{Deserialize, Serialize};
use std::{pin::pin, time::Duration};
use temporalio_common::error::IncomingError;
use temporalio_workflow::{
    ActivityCancellationType, ActivityExecutionError, ActivityOptions, RetryPolicy, SyncWorkflowContext,
    TimerOptions, WorkflowCancellationToken, WorkflowContext, WorkflowContextView, WorkflowResult, select,
    workflow, workflow_methods,
};

/// The longest an attempt may take: a large video over a slow line. A worker that dies is noticed
/// much sooner, by [`HEARTBEAT`].
const ATTEMPT: Duration = Duration::from_secs(2 * 60 * 60);

/// How long a worker may be silent before its attempt is given to another.
pub const HEARTBEAT: Duration = Duration::from_secs(60);

/// How soon an attempt is given to another worker when its own was lost. The attempt was counted.
const LOST: Duration = Duration::from_secs(5);

/// What the workflow is started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The target.
    #[serde(flatten)]
    pub task: Task,
    /// How fast the waits run.
    #[serde(default)]
    pub pace: Pace,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// With the target in this state.
    Status(TargetStatus),
    /// Before it began: the post was edited.
    Stale,
}

/// The workflow's id.
pub fn id(target: TargetId) -> String {
    format!("target-{target}")
}

/// Publishes one target. See the [module](self).
#[workflow]
pub struct PublishTarget {
    order: Order,
    /// How often somebody wanted the next attempt now.
    hurries: u32,
}

#[workflow_methods]
impl PublishTarget {
    #[init]
    fn new(_ctx: &WorkflowContextView, order: Order) -> Self {
        Self { order, hurries: 0 }
    }

    /// Runs until the target is terminal.
    #[run(name = "PublishTarget")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<Ended> {
        let Order { task, pace } = ctx.state(|target| target.order.clone());
        loop {
            let hurries = ctx.state(|target| target.hurries);
            let Some(attempt) = Self::attempt(ctx, &task, pace, hurries).await else { continue };
            let why = match attempt {
                Ok(Published::Ended { status }) => return Ok(Self::end(ctx, status)),
                Ok(Published::Stale) => return Ok(Ended::Stale),
                Ok(Published::Wait { pause }) => {
                    Self::rest(ctx, pause, hurries).await;
                    continue;
                }
                Ok(Published::Processing { pause }) => match Self::poll(ctx, &task, pause).await {
                    Ok(Polled::Ready) => continue,
                    Ok(Polled::Ended { status }) => return Ok(Self::end(ctx, status)),
                    Ok(Polled::TokenRefused { grant_version }) => {
                        match Self::refresh(ctx, &task, grant_version, pace).await? {
                            Ok(()) => continue,
                            Err(why) => why,
                        }
                    }
                    Err(why) => why,
                },
                Ok(Published::TokenRefused { grant_version }) => {
                    match Self::refresh(ctx, &task, grant_version, pace).await? {
                        Ok(()) => continue,
                        Err(why) => why,
                    }
                }
                Err(error) => unanswered(&error),
            };
            match Self::settle(ctx, &task, why).await? {
                Settled::Ended { status } => return Ok(Self::end(ctx, status)),
                Settled::Again { pause } => Self::rest(ctx, pause, hurries).await,
            }
        }
    }

    /// Somebody wants the next attempt now.
    #[signal(name = "hurry")]
    pub fn hurry(&mut self, _ctx: &mut SyncWorkflowContext<Self>, _body: Lenient<()>) {
        // A body has no meaning here; whatever an operator sends along does no harm.
        self.hurries += 1;
    }

    /// An attempt failed and is going to be repeated; the operators' search should find it.
    #[signal(name = "failing")]
    pub fn failing(&mut self, ctx: &mut SyncWorkflowContext<Self>, code: Lenient<ErrorCode>) {
        let Some(code) = code.read("failing") else { return };
        ctx.upsert_search_attributes([
            attributes::STATUS.value_set(TargetStatus::Failed.to_string()),
            attributes::ERROR.value_set(code.to_string()),
        ]);
    }

    /// The activity that publishes, with its retries. `None` when somebody wants the next one now: the
    /// activity is canceled, which ends its backoff. An attempt that is under way ends by itself first,
    /// and is not repeated; how the target stands is in its row.
    async fn attempt(
        ctx: &WorkflowContext<Self>,
        task: &Task,
        pace: Pace,
        hurries: u32,
    ) -> Option<Result<Published, ActivityExecutionError>> {
        let backoff = ctx.cancellation_token().child_token();
        // The same in every replay; the attempts of one lost worker do not all come back at once.
        let jitter = f64::from(ctx.random::<u32>()) / f64::from(u32::MAX);
        let mut options = attempts(task, pace, jitter);
        options.cancellation_token = Some(backoff.clone());
        options.cancellation_type = ActivityCancellationType::WaitCancellationCompleted;
        let mut activity = pin!(ctx.execute_activity(Publishing::publish, task.clone(), options));
        select! {
            done = activity.as_mut() => Some(done),
            hurried = ctx.wait_condition(move |target: &Self| target.hurries != hurries) => {
                backoff.cancel();
                let done = activity.await;
                // When the wait failed, it is the workflow that is being canceled.
                if hurried.is_ok() && done.is_err() { None } else { Some(done) }
            }
        }
    }

    /// Waits, unless somebody wants the next attempt now.
    async fn rest(ctx: &WorkflowContext<Self>, pause: Duration, hurries: u32) {
        let alarm = ctx.cancellation_token().child_token();
        let timer = ctx.timer(TimerOptions::builder(pause).cancellation_token(alarm.clone()).build());
        let mut timer = pin!(timer);
        select! {
            _ = timer => {}
            _ = ctx.wait_condition(move |target: &Self| target.hurries != hurries) => alarm.cancel(),
        }
    }

    /// Looks at a platform that is still processing until the row says that it is over.
    async fn poll(ctx: &WorkflowContext<Self>, task: &Task, pause: Duration) -> Result<Polled, Why> {
        ctx.timer(pause).await;
        let polled = ctx.execute_activity(Publishing::poll, task.clone(), polling(task, pause)).await;
        polled.map_err(|error| unanswered(&error))
    }

    async fn refresh(
        ctx: &WorkflowContext<Self>,
        task: &Task,
        grant_version: i64,
        pace: Pace,
    ) -> WorkflowResult<Result<(), Why>> {
        let refusal = Refusal { task: task.clone(), grant_version };
        let error = match ctx.execute_activity(Publishing::refresh_token, refusal, refreshing(pace)).await {
            Ok(()) => return Ok(Ok(())),
            Err(error) => error,
        };
        let message = words(&error);
        Ok(Err(match typed(&error) {
            Some(GRANT_LOST) => Why::GrantLost { message },
            Some(code) => {
                Why::RefreshFailed { code: code.parse().unwrap_or(ErrorCode::NetworkError), message }
            }
            None => unanswered(&error),
        }))
    }

    /// Also when the workflow itself is being canceled: no row is left open.
    async fn settle(ctx: &WorkflowContext<Self>, task: &Task, why: Why) -> WorkflowResult<Settled> {
        if why == Why::Stopped {
            return Ok(Settled::Ended { status: stop(ctx, ctx.task_queue(), task.clone()).await? });
        }
        let mut options = settling(ctx.task_queue());
        options.cancellation_token = Some(WorkflowCancellationToken::new());
        Ok(ctx.execute_activity(Publishing::settle, Settlement { task: task.clone(), why }, options).await?)
    }

    fn end(ctx: &WorkflowContext<Self>, status: TargetStatus) -> Ended {
        if status != TargetStatus::Published {
            ctx.upsert_search_attributes([attributes::STATUS.value_set(status.to_string())]);
        }
        Ended::Status(status)
    }
}

/// Ends a target that an operator stopped, also while `ctx` is being canceled: it is looked up until it can
/// be ended, and not attempted again. `queue` is the task queue of its platform.
pub(crate) async fn stop<W>(
    ctx: &WorkflowContext<W>,
    queue: &str,
    task: Task,
) -> WorkflowResult<TargetStatus> {
    let settlement = Settlement { task, why: Why::Stopped };
    loop {
        let mut options = settling(queue);
        options.cancellation_token = Some(WorkflowCancellationToken::new());
        match ctx.execute_activity(Publishing::settle, settlement.clone(), options).await? {
            Settled::Ended { status } => return Ok(status),
            Settled::Again { pause } => {
                let alarm = WorkflowCancellationToken::new();
                ctx.timer(TimerOptions::builder(pause).cancellation_token(alarm).build()).await;
            }
        }
    }
}

/// Each retryable failure brings its own next delay, from the row; the policy speaks when a worker dies
/// without a word. The row ends the retries.
fn attempts(task: &Task, pace: Pace, jitter: f64) -> ActivityOptions {
    let first = pace.of(LOST).mul_f64(0.5 + jitter / 2.0).max(Duration::from_millis(10));
    ActivityOptions::with_start_to_close_timeout(ATTEMPT)
        .heartbeat_timeout(pace.of(HEARTBEAT).max(Duration::from_secs(2)))
        .retry_policy(
            RetryPolicy::builder()
                .initial_interval(first)
                .backoff_coefficient(2.0)
                .maximum_interval(pace.of(retry::CAP).max(first))
                .maximum_attempts(0)
                .build(),
        )
        .summary(format!("Publish on {}", task.platform))
        .build()
}

/// Looks as often as the platform asks for, until the row says that its window has closed.
fn polling(task: &Task, pause: Duration) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(120))
        .retry_policy(
            RetryPolicy::builder()
                .initial_interval(pause.max(Duration::from_millis(100)))
                .backoff_coefficient(1.0)
                .maximum_attempts(0)
                .build(),
        )
        .summary(format!("Wait for {}", task.platform))
        .build()
}

fn refreshing(pace: Pace) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(180))
        .retry_policy(
            RetryPolicy::builder()
                .initial_interval(pace.of(Duration::from_secs(2)))
                .backoff_coefficient(2.0)
                .maximum_attempts(3)
                .build(),
        )
        .summary("Refresh the token")
        .build()
}

/// Settling is a database transaction: it is tried for as long as the database takes to come back.
pub(crate) fn settling(queue: &str) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(30))
        .task_queue(queue.to_owned())
        .retry_policy(
            RetryPolicy::builder()
                .initial_interval(Duration::from_secs(1))
                .backoff_coefficient(2.0)
                .maximum_interval(Duration::from_secs(60))
                .maximum_attempts(0)
                .build(),
        )
        .build()
}

fn unanswered(error: &ActivityExecutionError) -> Why {
    match error {
        ActivityExecutionError::Cancelled(_) => Why::Stopped,
        other => Why::Unanswered { message: words(other) },
    }
}

fn typed(error: &ActivityExecutionError) -> Option<&str> {
    match error.cause() {
        Some(IncomingError::Application(failure)) => failure.type_name(),
        _ => None,
    }
}

fn words(error: &ActivityExecutionError) -> String {
    error.cause().map_or_else(|| error.to_string(), ToString::to_string)
}
