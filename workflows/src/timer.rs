//! Timers.
//!
//! Each has a cancellation token of its own. A timer under the workflow's token, which is the default, is canceled as
//! soon as a workflow task says that the workflow is; if the same task also says that the timer has fired, the SDK
//! (1.1.1) finds no timer and fails every attempt of the task, so that the workflow never ends.

use std::{future::poll_fn, pin::pin, task::Poll};
use temporalio_workflow::{TimerOptions, TimerResult, WorkflowCancellationToken, WorkflowContext};

/// Sleeps until the timer fires, or the workflow is canceled.
pub(crate) async fn sleep<W>(ctx: &WorkflowContext<W>, timer: impl Into<TimerOptions>) -> TimerResult {
    match sleep_unless(ctx, timer, ctx.cancelled()).await {
        Some(_) => TimerResult::Cancelled,
        None => TimerResult::Fired,
    }
}

/// Sleeps until the timer fires, or something else happens first, whose result is returned.
#[expect(clippy::disallowed_methods, reason = "the timer's token is its own")]
pub(crate) async fn sleep_unless<W, F: Future>(
    ctx: &WorkflowContext<W>,
    timer: impl Into<TimerOptions>,
    interruption: F,
) -> Option<F::Output> {
    let token = WorkflowCancellationToken::new();
    let mut options = timer.into();
    options.cancellation_token = Some(token.clone());
    let mut timer = pin!(ctx.timer(options));
    let mut interruption = pin!(interruption);
    poll_fn(|cx| match interruption.as_mut().poll(cx) {
        Poll::Ready(interrupted) => {
            token.cancel();
            Poll::Ready(Some(interrupted))
        }
        Poll::Pending => timer.as_mut().poll(cx).map(|_| None),
    })
    .await
}
