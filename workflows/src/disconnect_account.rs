//! Disconnects an account: cancels its pending targets, revokes its grant at the platform, then erases it.
//!
//! Revoking is tried a few times; the grant is erased in any case. A call that may have published is looked up
//! with the grant first, for as long as these tries take.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{activities::Accounts, attributes, options, queue, start::Start};
use domain::{Owner, TimeScale, outbox::Disconnection};
use serde::{Deserialize, Serialize};
use temporalio_common::search_attributes::SearchAttributes;
use temporalio_workflow::{WorkflowContext, WorkflowContextView, WorkflowResult, workflow, workflow_methods};

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
        ctx.execute_activity(Accounts::cancel_targets, disconnection.clone(), options::cancel_targets())
            .await?;
        // The grant is erased whether the platform revoked it or not.
        let _ = ctx
            .execute_activity(
                Accounts::revoke_grant,
                disconnection.clone(),
                options::revoke_grant(time_scale),
            )
            .await;
        Ok(ctx
            .execute_activity(Accounts::erase_grant, disconnection, options::settle(ctx.task_queue()))
            .await?)
    }
}
