//! The activities of publishing: the engine's results, translated for Temporal.

#![expect(
    dead_code,
    reason = "the macro makes a marker per activity; workflows use those of the declarations"
)]

use crate::{
    Deps,
    failure::retryable,
    heartbeat::with_heartbeat,
    share::{self, Shares},
};
use ::publishing::{Error, RefreshError, RefusedGrant};
use domain::{
    ErrorCode, TargetStatus,
    publish::{FirstAttempt, PollResult, PublishResult, SettleResult},
};
use std::sync::Arc;
use store::publishing::TargetKey;
use telemetry::trace::{self, SpanKind};
use temporalio_client::WorkflowSignalOptions;
use temporalio_common::error::{ApplicationErrorCategory, ApplicationFailure};
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tracing::{Instrument, Span, debug, error_span, warn};
use workflows::{
    activities::{GRANT_LOST, RefreshInput, SettleInput, TargetInput, definition},
    lenient::Lenient,
    publish_post::{self, PublishPost, TargetWaits},
    publish_target::{self, PublishTarget},
};

/// The activities of publishing.
pub(crate) struct Publishing {
    pub(crate) deps: Arc<Deps>,
    pub(crate) shares: Shares,
}

#[activities]
impl Publishing {
    #[activity(definition = definition::MakeFirstAttempt)]
    pub(crate) async fn first_attempt(
        self: Arc<Self>,
        cx: ActivityContext,
        input: TargetInput,
    ) -> Result<FirstAttempt, ActivityError> {
        let engine = &self.deps.engine;
        let unfinished = |waits, result| Ok(FirstAttempt::Unfinished { waits, result });
        let _share = match self.shares.take(input.owner.org, (engine.jitter)()) {
            Ok(share) => share,
            Err(pause) => {
                engine.await_slot(key(&input), pause).await?;
                return unfinished(None, Some(PublishResult::Wait { pause, code: None }));
            }
        };
        let attempt = async {
            match engine.attempt(key(&input)).await {
                Ok(PublishResult::Ended { status }) => Ok(FirstAttempt::Ended { status }),
                Ok(PublishResult::Stale) => Ok(FirstAttempt::Stale),
                // A retry may be requested before the next workflow starts: the row says when an attempt is due.
                Ok(PublishResult::Wait { code, .. }) => {
                    unfinished(code.map(|code| (TargetStatus::Queued, code)), None)
                }
                Ok(result @ PublishResult::Processing { .. }) => unfinished(None, Some(result)),
                Ok(result @ PublishResult::TokenRefused { .. }) => {
                    unfinished(Some((TargetStatus::Failed, ErrorCode::TokenExpired)), Some(result))
                }
                Err(Error::Failed { failure, .. }) => {
                    unfinished(Some((TargetStatus::Failed, failure.code)), None)
                }
                Err(Error::Repeat { .. }) => unfinished(None, None),
                Err(Error::Fault(error)) => Err(error.into()),
            }
        };
        self.traced(&cx, &input, publish_post::id(input.post), attempt).await
    }

    #[activity(definition = definition::Publish)]
    pub(crate) async fn publish(
        self: Arc<Self>,
        cx: ActivityContext,
        input: TargetInput,
    ) -> Result<PublishResult, ActivityError> {
        let engine = &self.deps.engine;
        let _share = match self.shares.take(input.owner.org, (engine.jitter)()) {
            Ok(share) => share,
            Err(pause) => {
                engine.await_slot(key(&input), pause).await?;
                return Ok(PublishResult::Wait { pause, code: None });
            }
        };
        let attempt = async {
            match engine.attempt(key(&input)).await {
                Ok(refused @ PublishResult::TokenRefused { .. }) => {
                    self.signal_failure(&input, ErrorCode::TokenExpired).await;
                    Ok(refused)
                }
                Ok(waits @ PublishResult::Wait { code: Some(code), .. }) => {
                    self.signal_post(&input, TargetStatus::Queued, code).await;
                    Ok(waits)
                }
                Ok(result) => Ok(result),
                Err(error) => Err(self.repeated(&input, error).await),
            }
        };
        self.traced(&cx, &input, publish_target::id(input.target), attempt).await
    }

    #[activity(definition = definition::Poll)]
    pub(crate) async fn poll(
        self: Arc<Self>,
        _cx: ActivityContext,
        input: TargetInput,
    ) -> Result<PollResult, ActivityError> {
        let engine = &self.deps.engine;
        let _share = match self.shares.take(input.owner.org, (engine.jitter)()) {
            Ok(share) => share,
            // A look is repeated until the window closes, however often.
            Err(pause) => {
                engine.await_slot(key(&input), pause).await?;
                return Err(retryable(&share::used_up(), Some(pause)));
            }
        };
        match engine.look(key(&input)).instrument(span(&input)).await {
            Ok(refused @ PollResult::TokenRefused { .. }) => {
                self.signal_failure(&input, ErrorCode::TokenExpired).await;
                Ok(refused)
            }
            Ok(result) => Ok(result),
            Err(error) => Err(self.repeated(&input, error).await),
        }
    }

    #[activity(definition = definition::RefreshToken)]
    pub(crate) async fn refresh_token(
        self: Arc<Self>,
        _cx: ActivityContext,
        refusal: RefreshInput,
    ) -> Result<(), ActivityError> {
        let refused = RefusedGrant {
            owner: refusal.target.owner,
            account: refusal.target.account,
            version: refusal.grant_version,
            target: Some(key(&refusal.target)),
        };
        self.deps.engine.refresh(refused).instrument(span(&refusal.target)).await.map_err(|error| match error
        {
            RefreshError::Lost(failure) => ActivityError::application(
                ApplicationFailure::builder(anyhow::anyhow!(failure.message))
                    .type_name(GRANT_LOST.to_owned())
                    .non_retryable(true)
                    .category(ApplicationErrorCategory::Benign)
                    .build(),
            ),
            RefreshError::Later(failure) => retryable(&failure, None),
            RefreshError::Fault(error) => error.into(),
        })
    }

    #[activity(definition = definition::Settle)]
    pub(crate) async fn settle(
        self: Arc<Self>,
        _cx: ActivityContext,
        input: SettleInput,
    ) -> Result<SettleResult, ActivityError> {
        let settled = self.deps.engine.settle(key(&input.target), &input.why);
        Ok(settled.instrument(span(&input.target)).await?)
    }
}

impl Publishing {
    /// Makes an attempt for a workflow, with heartbeats, in a span of the post's trace.
    async fn traced<T>(
        &self,
        cx: &ActivityContext,
        input: &TargetInput,
        workflow: String,
        attempt: impl Future<Output = Result<T, ActivityError>>,
    ) -> Result<T, ActivityError> {
        let target = input.target.to_string();
        let attributes = [("fanfare.target_id", &*target), ("fanfare.workflow_id", &workflow)];
        let post = input.post.0.into_bytes();
        let traced = trace::of_post(post, "publish", SpanKind::Consumer, &attributes, attempt);
        with_heartbeat(cx, traced).instrument(span(input)).await
    }

    /// Converts an error of the engine, and signals the workflow that an attempt failed.
    async fn repeated(&self, input: &TargetInput, error: Error) -> ActivityError {
        match error {
            Error::Failed { failure, pause, is_new } => {
                self.signal_failure(input, failure.code).await;
                if is_new {
                    self.signal_post(input, TargetStatus::Failed, failure.code).await;
                }
                retryable(&failure, Some(pause))
            }
            Error::Repeat { failure, pause } => retryable(&failure, Some(pause)),
            Error::Fault(error) => error.into(),
        }
    }

    /// Lets the operators' search find the failing workflow. Nothing depends on it.
    async fn signal_failure(&self, input: &TargetInput, code: ErrorCode) {
        let workflow = publish_target::id(input.target);
        let handle = self.deps.temporal.get_workflow_handle::<PublishTarget>(&workflow);
        if let Err(error) = handle
            .signal(PublishTarget::attempt_failed, Lenient::new(code), WorkflowSignalOptions::default())
            .await
        {
            warn!(workflow, %error, "The workflow's search attributes stay behind");
        }
    }

    /// Lets the operators' search find the workflow of the post too. A target that a user retried may be published
    /// without one.
    async fn signal_post(&self, input: &TargetInput, status: TargetStatus, code: ErrorCode) {
        let workflow = publish_post::id(input.post);
        let handle = self.deps.temporal.get_workflow_handle::<PublishPost>(&workflow);
        let waits = TargetWaits { target: input.target, status, code };
        let signal =
            handle.signal(PublishPost::target_waits, Lenient::new(waits), WorkflowSignalOptions::default());
        if let Err(error) = signal.await {
            debug!(workflow, %error, "The search attributes of the post's workflow stay behind");
        }
    }
}

/// The row of a target, and the version of its post that the workflow was started for.
fn key(input: &TargetInput) -> TargetKey {
    TargetKey { owner: input.owner, post: input.post, target: input.target, version: input.version }
}

/// The span of the work for a target.
fn span(input: &TargetInput) -> Span {
    error_span!("target", post.id = %input.post, target.id = %input.target, org.id = %input.owner.org)
}
