//! Publishes a target, one account of a post, until its final status. The post's workflow makes the first attempt, and
//! starts this one if that was not enough.
//!
//! In most cases this is one activity. Temporal retries it for as long as the row asks for another attempt,
//! so that its UI shows the last failure and the next try of a stuck publish; the loop below only turns for
//! something else: a platform that is processing, a refused token, an operator who stops the workflow. Budget,
//! polling window and waits are in the row, so that this workflow may be reset or started again at any time.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{
    activities::{GRANT_LOST, Publishing, RefreshInput, SettleInput, TargetInput},
    attributes,
    lenient::Lenient,
    options, queue,
    start::Start,
    timer,
};
use domain::{
    ErrorCode, Owner, TargetId, TargetStatus, TimeScale,
    publish::{PollResult, PublishResult, SettleReason, SettleResult},
    retry,
};
use serde::{Deserialize, Serialize};
use std::{pin::pin, time::Duration};
use temporalio_common::{error::IncomingError, search_attributes::SearchAttributes};
use temporalio_workflow::{
    ActivityCancellationType, ActivityExecutionError, ActivityOptions, ContinueAsNewOptions, RetryPolicy,
    SyncWorkflowContext, WorkflowCancellationToken, WorkflowContext, WorkflowContextView, WorkflowResult,
    select, workflow, workflow_methods,
};

/// Pause before an attempt of a lost worker goes to another one. Only time-outs wait for it: a failure has its own
/// delay, from the row.
const LOST_WORKER_RETRY: Duration = Duration::from_secs(1);

/// Input of the workflow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Input {
    /// The target.
    #[serde(flatten)]
    pub target_input: TargetInput,
    /// Scale of all waits.
    #[serde(default)]
    pub time_scale: TimeScale,
    /// Status and error code with which it waits since its first attempt; the search attributes have them too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<(TargetStatus, ErrorCode)>,
    /// Result of its first attempt to go on with; `None` to begin with an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<PublishResult>,
}

impl Input {
    /// The input for a target whose row says what comes next.
    pub fn new(target_input: TargetInput, time_scale: TimeScale) -> Self {
        Self { target_input, time_scale, waits: None, result: None }
    }
}

/// Result of the workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The target has this final status.
    Status(TargetStatus),
    /// The post was edited before the first attempt.
    Stale,
}

/// Id of the workflow.
pub fn id(target: TargetId) -> String {
    format!("target-{target}")
}

impl Start for Input {
    fn owner(&self) -> Owner {
        self.target_input.owner
    }

    fn id(&self) -> String {
        id(self.target_input.target)
    }

    fn queue(&self, base: &str) -> String {
        queue::platform(base, &self.target_input.platform, self.target_input.owner.mode)
    }

    fn search_attributes(&self) -> SearchAttributes {
        let TargetInput { post, owner, account, platform, .. } = &self.target_input;
        let of_target = [
            attributes::ORG.value_set(owner.org.to_string()),
            attributes::POST.value_set(post.to_string()),
            attributes::PLATFORM.value_set(platform.clone()),
            attributes::ACCOUNT.value_set(account.to_string()),
        ];
        let waits = self.waits.map(|(status, code)| attributes::waits(status, code));
        SearchAttributes::new(of_target.into_iter().chain(waits.into_iter().flatten()))
    }

    fn summary(&self) -> String {
        format!("Publish on {}", self.target_input.platform)
    }
}

/// Publishes one target. See the [module](self).
#[workflow]
pub struct PublishTarget {
    input: Input,
    /// Number of requests to make the next attempt now.
    retry_requests: u32,
    /// Status and error code with which the operators' search shows it, once it has failed or waited.
    shown: Option<(TargetStatus, ErrorCode)>,
}

#[workflow_methods]
impl PublishTarget {
    #[init]
    fn new(_ctx: &WorkflowContextView, input: Input) -> Self {
        Self { shown: input.waits, input, retry_requests: 0 }
    }

    /// Runs until the target is terminal.
    #[run(name = "PublishTarget")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<Ended> {
        let Input { target_input, time_scale, waits, result } = ctx.state(|target| target.input.clone());
        if let Some((_, code)) = waits {
            ctx.set_current_details(details(code));
        }
        let mut first = result;
        loop {
            let retry_requests = ctx.state(|target| target.retry_requests);
            let attempt = match first.take() {
                Some(result) => Some(Ok(result)),
                // Waits may be many. The row says what comes next.
                None if ctx.continue_as_new_suggested() => {
                    let waits = ctx.state(|target| target.shown);
                    let next = Input { waits, ..Input::new(target_input, time_scale) };
                    match ctx.continue_as_new(next, ContinueAsNewOptions::default())? {}
                }
                None => Self::attempt(ctx, &target_input, time_scale, retry_requests).await,
            };
            let Some(attempt) = attempt else { continue };
            let reason = match attempt {
                Ok(PublishResult::Ended { status }) => match Self::end(ctx, status, retry_requests) {
                    Some(ended) => return Ok(ended),
                    None => continue,
                },
                Ok(PublishResult::Stale) => return Ok(Ended::Stale),
                Ok(PublishResult::Wait { pause, code }) => {
                    if let Some(code) = code {
                        ctx.state_mut(|target| target.shown = Some((TargetStatus::Queued, code)));
                        ctx.upsert_search_attributes(attributes::waits(TargetStatus::Queued, code));
                        ctx.set_current_details(details(code));
                    }
                    Self::sleep_until_retry(ctx, pause, retry_requests).await;
                    continue;
                }
                Ok(PublishResult::Processing { pause }) => {
                    match Self::poll(ctx, &target_input, pause).await {
                        Ok(PollResult::Ready) => continue,
                        Ok(PollResult::Ended { status }) => match Self::end(ctx, status, retry_requests) {
                            Some(ended) => return Ok(ended),
                            None => continue,
                        },
                        Ok(PollResult::TokenRefused { grant_version }) => {
                            match Self::refresh(ctx, &target_input, grant_version, time_scale).await? {
                                Ok(()) => continue,
                                Err(reason) => reason,
                            }
                        }
                        Err(reason) => reason,
                    }
                }
                Ok(PublishResult::TokenRefused { grant_version }) => {
                    match Self::refresh(ctx, &target_input, grant_version, time_scale).await? {
                        Ok(()) => continue,
                        Err(reason) => reason,
                    }
                }
                Err(error) => unanswered(&error),
            };
            match Self::settle(ctx, &target_input, reason).await? {
                SettleResult::Ended { status } => {
                    if let Some(ended) = Self::end(ctx, status, retry_requests) {
                        return Ok(ended);
                    }
                }
                SettleResult::RetryAfter { pause } => {
                    Self::sleep_until_retry(ctx, pause, retry_requests).await
                }
            }
        }
    }

    /// Makes the next attempt now.
    #[signal(name = "retry_now")]
    pub fn retry_now(&mut self, _ctx: &mut SyncWorkflowContext<Self>, _body: Lenient<()>) {
        // Any body is ignored.
        self.retry_requests += 1;
    }

    /// Shows a failed attempt, which will be repeated, in the operators' search.
    #[signal(name = "attempt_failed")]
    pub fn attempt_failed(&mut self, ctx: &mut SyncWorkflowContext<Self>, code: Lenient<ErrorCode>) {
        let Some(code) = code.read("attempt_failed") else { return };
        self.shown = Some((TargetStatus::Failed, code));
        ctx.upsert_search_attributes(attributes::waits(TargetStatus::Failed, code));
        ctx.set_current_details(details(code));
    }

    /// Runs the activity that publishes, with its retries. `None` when the next attempt is requested now: the
    /// activity is canceled, which ends its backoff. An attempt that is under way finishes first and is not
    /// repeated; the target's state is in its row.
    async fn attempt(
        ctx: &WorkflowContext<Self>,
        target_input: &TargetInput,
        time_scale: TimeScale,
        retry_requests: u32,
    ) -> Option<Result<PublishResult, ActivityExecutionError>> {
        let backoff = ctx.cancellation_token().child_token();
        // The same in every replay; the attempts of one lost worker do not all come back at once.
        let jitter = f64::from(ctx.random::<u32>()) / f64::from(u32::MAX);
        let mut options = attempt_options(&target_input.platform, time_scale, jitter);
        options.cancellation_token = Some(backoff.clone());
        options.cancellation_type = ActivityCancellationType::WaitCancellationCompleted;
        let mut activity = pin!(ctx.execute_activity(Publishing::publish, target_input.clone(), options));
        select! {
            done = activity.as_mut() => Some(done),
            requested = ctx.wait_condition(move |target: &Self| target.retry_requests != retry_requests) => {
                backoff.cancel();
                let done = activity.await;
                // When the wait failed, it is the workflow that is being canceled.
                if requested.is_ok() && done.is_err() { None } else { Some(done) }
            }
        }
    }

    /// Sleeps until the next attempt is due or requested.
    async fn sleep_until_retry(ctx: &WorkflowContext<Self>, pause: Duration, retry_requests: u32) {
        let requested = ctx.wait_condition(move |target: &Self| target.retry_requests != retry_requests);
        timer::sleep_unless(ctx, pause, requested).await;
    }

    /// Polls a platform that is processing, until the row says that this is over.
    async fn poll(
        ctx: &WorkflowContext<Self>,
        target_input: &TargetInput,
        pause: Duration,
    ) -> Result<PollResult, SettleReason> {
        timer::sleep(ctx, pause).await;
        let polled = ctx
            .execute_activity(
                Publishing::poll,
                target_input.clone(),
                poll_options(&target_input.platform, pause),
            )
            .await;
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
            match ctx.execute_activity(Publishing::refresh_token, refusal, refresh_options(time_scale)).await
            {
                Ok(()) => return Ok(Ok(())),
                Err(error) => error,
            };
        let message = root_message(&error);
        Ok(Err(match failure_type(&error) {
            Some(GRANT_LOST) => SettleReason::GrantLost { message },
            Some(code) => {
                SettleReason::RefreshFailed { code: code.parse().unwrap_or(ErrorCode::NetworkError), message }
            }
            None => unanswered(&error),
        }))
    }

    /// Settles the target, even while the workflow is being canceled: no row is left open.
    async fn settle(
        ctx: &WorkflowContext<Self>,
        target_input: &TargetInput,
        reason: SettleReason,
    ) -> WorkflowResult<SettleResult> {
        if reason == SettleReason::Stopped {
            return Ok(SettleResult::Ended {
                status: stop(ctx, ctx.task_queue(), target_input.clone()).await?,
            });
        }
        let mut options = options::settle(ctx.task_queue());
        options.cancellation_token = Some(WorkflowCancellationToken::new());
        Ok(ctx
            .execute_activity(
                Publishing::settle,
                SettleInput { target: target_input.clone(), why: reason },
                options,
            )
            .await?)
    }

    /// Ends the workflow with its target. `None` when a retry was requested meanwhile: a user may have retried the
    /// target that was dead, and the row decides.
    fn end(ctx: &WorkflowContext<Self>, status: TargetStatus, retry_requests: u32) -> Option<Ended> {
        let is_requested = ctx.state(|target| target.retry_requests) != retry_requests;
        if status == TargetStatus::Dead && is_requested {
            return None;
        }
        if status != TargetStatus::Published {
            ctx.upsert_search_attributes([attributes::STATUS.value_set(status.to_string())]);
        } else if ctx.state(|target| target.shown.is_some()) {
            ctx.upsert_search_attributes(attributes::published());
        }
        Some(Ended::Status(status))
    }
}

/// The details that Temporal's UI shows of a target that waits.
fn details(code: ErrorCode) -> String {
    format!("{code}: waits for its next attempt, at the time in its row")
}

/// Ends a target that an operator stopped, even while `ctx` is being canceled: it is looked up until it can be
/// ended, and not attempted again. `queue` is the task queue of its platform.
pub(crate) async fn stop<W>(
    ctx: &WorkflowContext<W>,
    queue: &str,
    target_input: TargetInput,
) -> WorkflowResult<TargetStatus> {
    let input = SettleInput { target: target_input, why: SettleReason::Stopped };
    loop {
        let mut options = options::settle(queue);
        options.cancellation_token = Some(WorkflowCancellationToken::new());
        match ctx.execute_activity(Publishing::settle, input.clone(), options).await? {
            SettleResult::Ended { status } => return Ok(status),
            SettleResult::RetryAfter { pause } => {
                // A canceled workflow waits as well.
                timer::sleep_unless(ctx, pause, std::future::pending::<()>()).await;
            }
        }
    }
}

fn unanswered(error: &ActivityExecutionError) -> SettleReason {
    match error {
        ActivityExecutionError::Cancelled(_) => SettleReason::Stopped,
        other => SettleReason::Unanswered { message: root_message(other) },
    }
}

fn failure_type(error: &ActivityExecutionError) -> Option<&str> {
    match error.cause() {
        Some(IncomingError::Application(failure)) => failure.type_name(),
        _ => None,
    }
}

fn root_message(error: &ActivityExecutionError) -> String {
    error.cause().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Returns the options for an attempt to publish. The row ends the retries. `jitter`, from 0..1, spreads the attempts
/// of a lost worker.
fn attempt_options(platform: &str, time_scale: TimeScale, jitter: f64) -> ActivityOptions {
    let first =
        time_scale.scale(LOST_WORKER_RETRY).mul_f64(0.5 + jitter / 2.0).max(Duration::from_millis(10));
    ActivityOptions::with_start_to_close_timeout(options::ATTEMPT_TIMEOUT)
        .heartbeat_timeout(options::heartbeat_timeout(time_scale))
        .retry_policy(options::backoff(first, time_scale.scale(retry::CAP).max(first), 0))
        .summary(format!("Publish on {platform}"))
        .build()
}

/// Returns the options for polling a platform that is processing, as often as it asks for. The row ends the polling.
fn poll_options(platform: &str, pause: Duration) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(120))
        .retry_policy(
            RetryPolicy::builder()
                .initial_interval(pause.max(Duration::from_millis(100)))
                .backoff_coefficient(1.0)
                .maximum_attempts(0)
                .build(),
        )
        .summary(format!("Wait for {platform}"))
        .build()
}

/// Returns the options for refreshing a token after a refusal.
fn refresh_options(time_scale: TimeScale) -> ActivityOptions {
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
