//! A target: one account of a post, from its first attempt to its end.
//!
//! On the happy path this is one activity. It is retried for as long as the row asks for another
//! attempt, so that Temporal's UI shows the last failure and the next try of a stuck publish; the loop
//! below only turns where something else has to happen: a platform that is still processing, a refused
//! token, an operator who stops it. Budget, window and waits are the row's, so that this workflow may be
//! reset or started again at any moment.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{
    activities::{GRANT_LOST, Publishing, RefreshInput, SettleInput, TargetInput},
    attributes,
    lenient::Lenient,
};
use domain::{
    ErrorCode, TargetId, TargetStatus, TimeScale,
    publish::{PollResult, PublishResult, SettleReason, SettleResult},
    retry,
};
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
pub struct Input {
    /// The target.
    #[serde(flatten)]
    pub target_input: TargetInput,
    /// How fast the waits run.
    #[serde(default)]
    pub time_scale: TimeScale,
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
    input: Input,
    /// How often somebody wanted the next attempt now.
    retry_requests: u32,
}

#[workflow_methods]
impl PublishTarget {
    #[init]
    fn new(_ctx: &WorkflowContextView, input: Input) -> Self {
        Self { input, retry_requests: 0 }
    }

    /// Runs until the target is terminal.
    #[run(name = "PublishTarget")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<Ended> {
        let Input { target_input, time_scale } = ctx.state(|target| target.input.clone());
        loop {
            let retry_requests = ctx.state(|target| target.retry_requests);
            let Some(attempt) = Self::attempt(ctx, &target_input, time_scale, retry_requests).await else {
                continue;
            };
            let why = match attempt {
                Ok(PublishResult::Ended { status }) => return Ok(Self::end(ctx, status)),
                Ok(PublishResult::Stale) => return Ok(Ended::Stale),
                Ok(PublishResult::Wait { pause }) => {
                    Self::rest(ctx, pause, retry_requests).await;
                    continue;
                }
                Ok(PublishResult::Processing { pause }) => {
                    match Self::poll(ctx, &target_input, pause).await {
                        Ok(PollResult::Ready) => continue,
                        Ok(PollResult::Ended { status }) => return Ok(Self::end(ctx, status)),
                        Ok(PollResult::TokenRefused { grant_version }) => {
                            match Self::refresh(ctx, &target_input, grant_version, time_scale).await? {
                                Ok(()) => continue,
                                Err(why) => why,
                            }
                        }
                        Err(why) => why,
                    }
                }
                Ok(PublishResult::TokenRefused { grant_version }) => {
                    match Self::refresh(ctx, &target_input, grant_version, time_scale).await? {
                        Ok(()) => continue,
                        Err(why) => why,
                    }
                }
                Err(error) => unanswered(&error),
            };
            match Self::settle(ctx, &target_input, why).await? {
                SettleResult::Ended { status } => return Ok(Self::end(ctx, status)),
                SettleResult::RetryAfter { pause } => Self::rest(ctx, pause, retry_requests).await,
            }
        }
    }

    /// Somebody wants the next attempt now.
    #[signal(name = "retry_now")]
    pub fn retry_now(&mut self, _ctx: &mut SyncWorkflowContext<Self>, _body: Lenient<()>) {
        // A body has no meaning here; whatever an operator sends along does no harm.
        self.retry_requests += 1;
    }

    /// An attempt failed and is going to be repeated; the operators' search should find it.
    #[signal(name = "attempt_failed")]
    pub fn attempt_failed(&mut self, ctx: &mut SyncWorkflowContext<Self>, code: Lenient<ErrorCode>) {
        let Some(code) = code.read("attempt_failed") else { return };
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
        target_input: &TargetInput,
        time_scale: TimeScale,
        retry_requests: u32,
    ) -> Option<Result<PublishResult, ActivityExecutionError>> {
        let backoff = ctx.cancellation_token().child_token();
        // The same in every replay; the attempts of one lost worker do not all come back at once.
        let jitter = f64::from(ctx.random::<u32>()) / f64::from(u32::MAX);
        let mut options = attempts(target_input, time_scale, jitter);
        options.cancellation_token = Some(backoff.clone());
        options.cancellation_type = ActivityCancellationType::WaitCancellationCompleted;
        let mut activity = pin!(ctx.execute_activity(Publishing::publish, target_input.clone(), options));
        select! {
            done = activity.as_mut() => Some(done),
            hurried = ctx.wait_condition(move |target: &Self| target.retry_requests != retry_requests) => {
                backoff.cancel();
                let done = activity.await;
                // When the wait failed, it is the workflow that is being canceled.
                if hurried.is_ok() && done.is_err() { None } else { Some(done) }
            }
        }
    }

    /// Waits, unless somebody wants the next attempt now.
    async fn rest(ctx: &WorkflowContext<Self>, pause: Duration, retry_requests: u32) {
        let alarm = ctx.cancellation_token().child_token();
        let timer = ctx.timer(TimerOptions::builder(pause).cancellation_token(alarm.clone()).build());
        let mut timer = pin!(timer);
        select! {
            _ = timer => {}
            _ = ctx.wait_condition(move |target: &Self| target.retry_requests != retry_requests) => alarm.cancel(),
        }
    }

    /// Looks at a platform that is still processing until the row says that it is over.
    async fn poll(
        ctx: &WorkflowContext<Self>,
        target_input: &TargetInput,
        pause: Duration,
    ) -> Result<PollResult, SettleReason> {
        ctx.timer(pause).await;
        let polled =
            ctx.execute_activity(Publishing::poll, target_input.clone(), polling(target_input, pause)).await;
        polled.map_err(|error| unanswered(&error))
    }

    async fn refresh(
        ctx: &WorkflowContext<Self>,
        target_input: &TargetInput,
        grant_version: i64,
        time_scale: TimeScale,
    ) -> WorkflowResult<Result<(), SettleReason>> {
        let refusal = RefreshInput { target: target_input.clone(), grant_version };
        let error =
            match ctx.execute_activity(Publishing::refresh_token, refusal, refreshing(time_scale)).await {
                Ok(()) => return Ok(Ok(())),
                Err(error) => error,
            };
        let message = words(&error);
        Ok(Err(match typed(&error) {
            Some(GRANT_LOST) => SettleReason::GrantLost { message },
            Some(code) => {
                SettleReason::RefreshFailed { code: code.parse().unwrap_or(ErrorCode::NetworkError), message }
            }
            None => unanswered(&error),
        }))
    }

    /// Also when the workflow itself is being canceled: no row is left open.
    async fn settle(
        ctx: &WorkflowContext<Self>,
        target_input: &TargetInput,
        why: SettleReason,
    ) -> WorkflowResult<SettleResult> {
        if why == SettleReason::Stopped {
            return Ok(SettleResult::Ended {
                status: stop(ctx, ctx.task_queue(), target_input.clone()).await?,
            });
        }
        let mut options = settling(ctx.task_queue());
        options.cancellation_token = Some(WorkflowCancellationToken::new());
        Ok(ctx
            .execute_activity(Publishing::settle, SettleInput { target: target_input.clone(), why }, options)
            .await?)
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
    target_input: TargetInput,
) -> WorkflowResult<TargetStatus> {
    let settlement = SettleInput { target: target_input, why: SettleReason::Stopped };
    loop {
        let mut options = settling(queue);
        options.cancellation_token = Some(WorkflowCancellationToken::new());
        match ctx.execute_activity(Publishing::settle, settlement.clone(), options).await? {
            SettleResult::Ended { status } => return Ok(status),
            SettleResult::RetryAfter { pause } => {
                let alarm = WorkflowCancellationToken::new();
                ctx.timer(TimerOptions::builder(pause).cancellation_token(alarm).build()).await;
            }
        }
    }
}

/// Each retryable failure brings its own next delay, from the row; the policy speaks when a worker dies
/// without a word. The row ends the retries.
fn attempts(target_input: &TargetInput, time_scale: TimeScale, jitter: f64) -> ActivityOptions {
    let first = time_scale.scale(LOST).mul_f64(0.5 + jitter / 2.0).max(Duration::from_millis(10));
    ActivityOptions::with_start_to_close_timeout(ATTEMPT)
        .heartbeat_timeout(time_scale.scale(HEARTBEAT).max(Duration::from_secs(2)))
        .retry_policy(
            RetryPolicy::builder()
                .initial_interval(first)
                .backoff_coefficient(2.0)
                .maximum_interval(time_scale.scale(retry::CAP).max(first))
                .maximum_attempts(0)
                .build(),
        )
        .summary(format!("Publish on {}", target_input.platform))
        .build()
}

/// Looks as often as the platform asks for, until the row says that its window has closed.
fn polling(target_input: &TargetInput, pause: Duration) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(120))
        .retry_policy(
            RetryPolicy::builder()
                .initial_interval(pause.max(Duration::from_millis(100)))
                .backoff_coefficient(1.0)
                .maximum_attempts(0)
                .build(),
        )
        .summary(format!("Wait for {}", target_input.platform))
        .build()
}

fn refreshing(time_scale: TimeScale) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(180))
        .retry_policy(
            RetryPolicy::builder()
                .initial_interval(time_scale.scale(Duration::from_secs(2)))
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

fn unanswered(error: &ActivityExecutionError) -> SettleReason {
    match error {
        ActivityExecutionError::Cancelled(_) => SettleReason::Stopped,
        other => SettleReason::Unanswered { message: words(other) },
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
