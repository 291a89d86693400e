//! Renews the grant of an account well before it ends.
//!
//! Each run renews one grant: it sleeps until that is due, has it renewed, and continues as a new run with the
//! fresh grant. So a history stays short however long the account is connected, and a new version's code takes
//! effect after one renewal. A grant from elsewhere, by a refresh on demand or because the account was
//! connected again, arrives by signal.
//!
//! A renewal is due when 70 to 80 % of the grant's life are over ([`domain::renewal`]). A grant without an end has no
//! workflow; one without a refresh token serves until it ends and is reported as expired then.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{activities::Accounts, attributes, lenient::Lenient, options, queue, start::Start, timer};
use chrono::{DateTime, Utc};
use domain::{AccountId, Owner, TimeScale, outbox::ExpiringGrant, renewal, retry};
use serde::{Deserialize, Serialize};
use std::{
    pin::pin,
    time::{Duration, SystemTime},
};
use temporalio_common::search_attributes::SearchAttributes;
use temporalio_workflow::{
    ActivityCancellationType, ActivityExecutionError, ActivityOptions, ContinueAsNewOptions,
    SyncWorkflowContext, TimerOptions, WorkflowContext, WorkflowContextView, WorkflowResult,
    WorkflowTermination, select, workflow, workflow_methods,
};

/// Input of the workflow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Input {
    /// Grant to renew.
    #[serde(flatten)]
    pub grant_ref: ExpiringGrant,
    /// Least age at which the platform renews a grant.
    pub rest: Duration,
    /// Scale of all waits.
    #[serde(default)]
    pub time_scale: TimeScale,
}

/// Id of the workflow: one per account.
pub fn id(account: AccountId) -> String {
    format!("renew-grant-{account}")
}

impl Start for Input {
    fn owner(&self) -> Owner {
        self.grant_ref.owner
    }

    fn id(&self) -> String {
        id(self.grant_ref.account)
    }

    fn queue(&self, base: &str) -> String {
        queue::platform(base, &self.grant_ref.platform, self.grant_ref.owner.mode)
    }

    fn search_attributes(&self) -> SearchAttributes {
        attributes::of_account(self.grant_ref.owner, &self.grant_ref.platform, self.grant_ref.account)
    }

    fn summary(&self) -> String {
        format!("Renew the grant of an account of {}", self.grant_ref.platform)
    }
}

/// Renews the grants of one account. See the [module](self).
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
        let Input { grant_ref, rest, time_scale } = ctx.state(|state| state.input.clone());
        let version = grant_ref.grant_version;
        if Self::wait_until_due(ctx, &grant_ref, rest, time_scale).await? {
            match Self::renew(ctx, grant_ref, time_scale).await {
                Some(Ok(Some(fresh))) => ctx.state_mut(|state| state.update(fresh)),
                // Nothing is left to renew, unless a newer grant was signaled.
                Some(Ok(None)) if ctx.state(|state| !state.is_superseded(version)) => return Ok(()),
                Some(Err(error)) if ctx.state(|state| !state.is_superseded(version)) => {
                    return Err(error.into());
                }
                _ => {}
            }
        }
        if ctx.state(|state| state.disconnected) {
            return Ok(());
        }
        let next = ctx.state(|state| state.input.clone());
        match ctx.continue_as_new(next, ContinueAsNewOptions::default())? {}
    }

    /// The account has another grant, or is active again.
    #[signal(name = "grant_updated")]
    pub fn grant_updated(&mut self, _ctx: &mut SyncWorkflowContext<Self>, grant_ref: Lenient<ExpiringGrant>) {
        if let Some(grant_ref) = grant_ref.read("grant_updated") {
            self.update(grant_ref);
        }
    }

    /// The account was disconnected while it had this grant.
    #[signal(name = "disconnected")]
    pub fn disconnected(&mut self, _ctx: &mut SyncWorkflowContext<Self>, grant_version: Lenient<i64>) {
        if let Some(grant_version) = grant_version.read("disconnected") {
            self.disconnected |= grant_version >= self.input.grant_ref.grant_version;
        }
    }

    fn update(&mut self, grant_ref: ExpiringGrant) {
        if grant_ref.grant_version > self.input.grant_ref.grant_version {
            self.input.grant_ref = grant_ref;
            // An account that was connected again after it was disconnected.
            self.disconnected = false;
        }
    }

    fn is_superseded(&self, version: i64) -> bool {
        self.disconnected || self.input.grant_ref.grant_version > version
    }

    /// Waits until the renewal is due. Returns false when the grant is superseded first.
    async fn wait_until_due(
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
        let timer = TimerOptions::builder(wait).summary(format!("until {due}")).build();
        let superseded = ctx.wait_condition(move |state: &Self| state.is_superseded(version));
        Ok(match timer::sleep_unless(ctx, timer, superseded).await {
            Some(superseded) => superseded.map(|()| false)?,
            None => true,
        })
    }

    /// Has the grant renewed, however long the platform is away. A newer grant ends the backoff; a try that is
    /// under way finishes, and its result counts. `None` when it had none.
    async fn renew(
        ctx: &WorkflowContext<Self>,
        grant_ref: ExpiringGrant,
        time_scale: TimeScale,
    ) -> Option<Result<Option<ExpiringGrant>, ActivityExecutionError>> {
        let version = grant_ref.grant_version;
        let backoff = ctx.cancellation_token().child_token();
        let mut options = renewal_options(time_scale);
        options.cancellation_token = Some(backoff.clone());
        options.cancellation_type = ActivityCancellationType::WaitCancellationCompleted;
        let mut activity = pin!(ctx.execute_activity(Accounts::renew_grant, grant_ref, options));
        select! {
            done = activity.as_mut() => Some(done),
            superseded = ctx.wait_condition(move |state: &Self| state.is_superseded(version)) => {
                backoff.cancel();
                let done = activity.await;
                // When the wait failed, it is the workflow that is being canceled.
                if superseded.is_ok() && done.is_err() { None } else { Some(done) }
            }
        }
    }
}

/// Returns the options for renewing a grant: retried for as long as the platform is away, before and after the grant's
/// end, since being away is no refusal.
fn renewal_options(time_scale: TimeScale) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(180))
        .retry_policy(options::backoff(
            // A dead worker is noticed only after a while, whatever the time scale.
            time_scale.scale(renewal::MIN_INTERVAL).max(Duration::from_millis(500)),
            time_scale.scale(retry::CAP).max(Duration::from_secs(1)),
            0,
        ))
        .summary("Renew the grant")
        .build()
}
