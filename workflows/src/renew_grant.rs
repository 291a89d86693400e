//! Keeping an account connected: its grant is renewed well before it ends.
//!
//! Each run keeps one grant: it sleeps until the grant's time has come, has it renewed, and goes on as a
//! new run with the grant that came of it. So a history stays short however long the account is
//! connected, and a new version's code is at work after one renewal. A grant that came from elsewhere,
//! by a refresh on demand or because the account was connected again, is told by a signal.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{activities::Accounts, attributes, lenient::Lenient};
use chrono::{DateTime, Utc};
use domain::{AccountId, TimeScale, outbox::ExpiringGrant, renewal, retry};
use serde::{Deserialize, Serialize};
use std::{
    pin::pin,
    time::{Duration, SystemTime},
};
use temporalio_common::search_attributes::SearchAttributes;
use temporalio_workflow::{
    ActivityCancellationType, ActivityExecutionError, ActivityOptions, ContinueAsNewOptions, RetryPolicy,
    SyncWorkflowContext, TimerOptions, TimerResult, WorkflowContext, WorkflowContextView, WorkflowResult,
    WorkflowTermination, select, workflow, workflow_methods,
};

/// What the workflow is started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Input {
    /// The grant.
    #[serde(flatten)]
    pub grant_ref: ExpiringGrant,
    /// How old a grant has to be before its platform renews it.
    pub rest: Duration,
    /// How fast the waits run.
    #[serde(default)]
    pub time_scale: TimeScale,
}

/// The workflow's id: one per account, whatever grants it gets.
pub fn id(account: AccountId) -> String {
    format!("renew-grant-{account}")
}

/// The search attributes it is started with.
pub fn search_attributes(grant_ref: &ExpiringGrant) -> SearchAttributes {
    SearchAttributes::new([
        attributes::ORG.value_set(grant_ref.owner.org.to_string()),
        attributes::PLATFORM.value_set(grant_ref.platform.clone()),
        attributes::ACCOUNT.value_set(grant_ref.account.to_string()),
    ])
}

/// Keeps one account connected. See the [module](self).
#[workflow]
pub struct RenewGrant {
    input: Input,
    disconnected: bool,
}

#[workflow_methods]
impl RenewGrant {
    #[init]
    fn new(_ctx: &WorkflowContextView, input: Input) -> Self {
        Self { input, disconnected: false }
    }

    /// Runs until the grant was renewed, replaced or lost, or the account is disconnected.
    #[run(name = "RenewGrant")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        let Input { grant_ref, rest, time_scale } = ctx.state(|keep| keep.input.clone());
        let version = grant_ref.grant_version;
        if Self::ripe(ctx, &grant_ref, rest, time_scale).await? {
            match Self::renew(ctx, grant_ref, time_scale).await {
                Some(Ok(Some(fresh))) => ctx.state_mut(|keep| keep.learn(fresh)),
                // There is nothing left to keep, unless we have heard of something newer.
                Some(Ok(None)) if ctx.state(|keep| !keep.has_news(version)) => return Ok(()),
                Some(Err(error)) if ctx.state(|keep| !keep.has_news(version)) => return Err(error.into()),
                _ => {}
            }
        }
        if ctx.state(|keep| keep.disconnected) {
            return Ok(());
        }
        let next = ctx.state(|keep| keep.input.clone());
        match ctx.continue_as_new(next, ContinueAsNewOptions::default())? {}
    }

    /// The account has another grant, or is active again.
    #[signal(name = "grant_updated")]
    pub fn grant_updated(&mut self, _ctx: &mut SyncWorkflowContext<Self>, grant_ref: Lenient<ExpiringGrant>) {
        if let Some(grant_ref) = grant_ref.read("grant_updated") {
            self.learn(grant_ref);
        }
    }

    /// The account was disconnected with this grant.
    #[signal(name = "disconnected")]
    pub fn part(&mut self, _ctx: &mut SyncWorkflowContext<Self>, grant_version: Lenient<i64>) {
        if let Some(grant_version) = grant_version.read("disconnected") {
            self.disconnected |= grant_version >= self.input.grant_ref.grant_version;
        }
    }

    fn learn(&mut self, grant_ref: ExpiringGrant) {
        if grant_ref.grant_version > self.input.grant_ref.grant_version {
            self.input.grant_ref = grant_ref;
            // An account that was connected again after it was disconnected.
            self.disconnected = false;
        }
    }

    fn has_news(&self, version: i64) -> bool {
        self.disconnected || self.input.grant_ref.grant_version > version
    }

    /// Waits until it is time to renew the grant. False when there is news first.
    async fn ripe(
        ctx: &WorkflowContext<Self>,
        grant_ref: &ExpiringGrant,
        rest: Duration,
        time_scale: TimeScale,
    ) -> Result<bool, WorkflowTermination> {
        let version = grant_ref.grant_version;
        let now = DateTime::<Utc>::from(ctx.workflow_time().unwrap_or(SystemTime::UNIX_EPOCH));
        // The same in every replay.
        let jitter = f64::from(ctx.random::<u32>()) / f64::from(u32::MAX);
        let due = renewal::due(grant_ref.granted_at, grant_ref.expires_at, rest, jitter);
        let pause = time_scale.scale(renewal::MIN_INTERVAL).mul_f64(0.5 + jitter / 2.0);
        let wait = (due - now).to_std().unwrap_or_default().max(pause);
        let alarm = ctx.cancellation_token().child_token();
        let timer = ctx.timer(
            TimerOptions::builder(wait)
                .summary(format!("until {due}"))
                .cancellation_token(alarm.clone())
                .build(),
        );
        let mut timer = pin!(timer);
        select! {
            rung = timer => match rung {
                TimerResult::Cancelled => Err(WorkflowTermination::cancelled()),
                TimerResult::Fired => Ok(true),
            },
            news = ctx.wait_condition(move |keep: &Self| keep.has_news(version)) => {
                news?;
                alarm.cancel();
                Ok(false)
            }
        }
    }

    /// Has the grant renewed, however long its platform is away. News ends the waiting between two
    /// tries; a try that is under way ends by itself, and what it brought counts. `None` when it brought
    /// nothing.
    async fn renew(
        ctx: &WorkflowContext<Self>,
        grant_ref: ExpiringGrant,
        time_scale: TimeScale,
    ) -> Option<Result<Option<ExpiringGrant>, ActivityExecutionError>> {
        let version = grant_ref.grant_version;
        let backoff = ctx.cancellation_token().child_token();
        let mut options = renewing(time_scale);
        options.cancellation_token = Some(backoff.clone());
        options.cancellation_type = ActivityCancellationType::WaitCancellationCompleted;
        let mut activity = pin!(ctx.execute_activity(Accounts::renew_grant, grant_ref, options));
        select! {
            done = activity.as_mut() => Some(done),
            news = ctx.wait_condition(move |keep: &Self| keep.has_news(version)) => {
                backoff.cancel();
                let done = activity.await;
                // When the wait failed, it is the workflow that is being canceled.
                if news.is_ok() && done.is_err() { None } else { Some(done) }
            }
        }
    }
}

/// Tried for as long as the platform is away, before and after the grant's end: being away is no refusal.
fn renewing(time_scale: TimeScale) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(180))
        .retry_policy(
            RetryPolicy::builder()
                // A worker that died is only missed after a while, at whatever pace.
                .initial_interval(time_scale.scale(renewal::MIN_INTERVAL).max(Duration::from_millis(500)))
                .backoff_coefficient(2.0)
                .maximum_interval(time_scale.scale(retry::CAP).max(Duration::from_secs(1)))
                .maximum_attempts(0)
                .build(),
        )
        .summary("Renew the grant")
        .build()
}
