//! Disconnects an account: cancels its pending targets, revokes its grant at the platform, then erases it.
//!
//! Revoking is tried a few times; the grant is erased in any case. A call that may have published is looked up
//! with the grant first, for as long as these tries take.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{activities::Accounts, attributes, options};
use domain::{TimeScale, outbox::Disconnection};
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

/// Id of the workflow: fixed for one grant, so that starting it twice does nothing.
pub fn id(disconnection: &Disconnection) -> String {
    format!("disconnect-{}-{}", disconnection.account, disconnection.grant_version)
}

/// Search attributes of the workflow.
pub fn search_attributes(disconnection: &Disconnection) -> SearchAttributes {
    attributes::of_account(disconnection.owner, &disconnection.platform, disconnection.account)
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
