//! Disconnects an account: cancels its pending targets, revokes its grant at the platform, then erases it.
//!
//! Revoking is tried a few times; the grant is erased in any case. A call that may have published is looked up
//! with the grant first, for as long as these tries take.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{activities::Accounts, attributes, options, queue, start::Start};
use domain::{Owner, TimeScale, outbox::Disconnection};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use temporalio_common::search_attributes::SearchAttributes;
use temporalio_workflow::{
    ActivityOptions, RetryPolicy, WorkflowContext, WorkflowContextView, WorkflowResult, workflow,
    workflow_methods,
};

/// Number of tries to revoke a grant; the last one is made even while a call is ambiguous. With the pauses
/// between them two and a half minutes: longer than a call and the lag of a platform's reads.
pub const REVOKE_TRIES: u32 = 6;
/// Time limit of canceling the targets of an account; another try continues where it ended.
const CANCELING_TIMEOUT: Duration = Duration::from_secs(3600);

/// Input of the workflow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Input {
    /// Account and the version of its grant.
    #[serde(flatten)]
    pub disconnection: Disconnection,
    /// Scale of all waits.
    #[serde(default)]
    pub time_scale: TimeScale,
}

impl Start for Input {
    fn owner(&self) -> Owner {
        self.disconnection.owner
    }

    fn id(&self) -> String {
        let Disconnection { account, grant_version, .. } = &self.disconnection;
        // One workflow for each grant.
        format!("disconnect-{account}-{grant_version}")
    }

    fn queue(&self, base: &str) -> String {
        queue::platform(base, &self.disconnection.platform, self.disconnection.owner.mode)
    }

    fn search_attributes(&self) -> SearchAttributes {
        let Disconnection { account, owner, platform, .. } = &self.disconnection;
        attributes::of_account(*owner, platform, *account)
    }

    fn summary(&self) -> String {
        format!("Disconnect an account of {}", self.disconnection.platform)
    }
}

/// Disconnects one account. See the [module](self).
#[workflow]
pub struct DisconnectAccount {
    input: Input,
}

#[workflow_methods]
impl DisconnectAccount {
    #[init]
    fn new(_ctx: &WorkflowContextView, input: Input) -> Self {
        Self { input }
    }

    /// Runs until the grant is erased.
    #[run(name = "DisconnectAccount")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        let Input { disconnection, time_scale } = ctx.state(|state| state.input.clone());
        ctx.execute_activity(Accounts::cancel_targets, disconnection.clone(), canceling_options()).await?;
        // The grant is erased whether the platform revoked it or not.
        let _ = ctx
            .execute_activity(Accounts::revoke_grant, disconnection.clone(), revoking_options(time_scale))
            .await;
        Ok(ctx
            .execute_activity(Accounts::erase_grant, disconnection, options::settle(ctx.task_queue()))
            .await?)
    }
}

/// Returns the options for canceling the targets of a disconnected account: retried until none is left.
fn canceling_options() -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(CANCELING_TIMEOUT)
        .heartbeat_timeout(options::SHORT_HEARTBEAT_TIMEOUT)
        .retry_policy(options::backoff(Duration::from_secs(1), Duration::from_secs(60), 0))
        .summary("Cancel the account's pending targets")
        .build()
}

/// Returns the options for revoking the grant of a disconnected account.
fn revoking_options(time_scale: TimeScale) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(90))
        .retry_policy(
            RetryPolicy::builder()
                // A dead worker is noticed only after a while, whatever the time scale.
                .initial_interval(time_scale.scale(Duration::from_secs(5)).max(Duration::from_secs(1)))
                .backoff_coefficient(2.0)
                .maximum_attempts(REVOKE_TRIES)
                .build(),
        )
        .summary("Revoke the grant")
        .build()
}
