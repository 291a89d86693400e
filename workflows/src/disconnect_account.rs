//! Parting with an account that was disconnected: its platform is told, then its grant is erased.
//!
//! The platform gets a few tries to hear of it; the grant is erased whether it did or not. A call that
//! may have published is looked up with that grant first, for as long as these tries take.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{activities::Accounts, attributes, publish_target::settling};
use domain::{TimeScale, outbox::Disconnection};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use temporalio_common::search_attributes::SearchAttributes;
use temporalio_workflow::{
    ActivityOptions, RetryPolicy, WorkflowContext, WorkflowContextView, WorkflowResult, workflow,
    workflow_methods,
};

/// How often it is tried to tell the platform; the last time whatever is in doubt. With the waits between
/// them, two and a half minutes: longer than a call and the lag of a platform's reads take.
pub const TRIES: u32 = 6;

/// What the workflow is started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Input {
    /// The account, and the grant it had.
    #[serde(flatten)]
    pub disconnection: Disconnection,
    /// How fast the waits run.
    #[serde(default)]
    pub time_scale: TimeScale,
}

/// The workflow's id: fixed for one grant, so that starting it twice does nothing.
pub fn id(disconnection: &Disconnection) -> String {
    format!("disconnect-{}-{}", disconnection.account, disconnection.grant_version)
}

/// The search attributes it is started with.
pub fn search_attributes(disconnection: &Disconnection) -> SearchAttributes {
    SearchAttributes::new([
        attributes::ORG.value_set(disconnection.owner.org.to_string()),
        attributes::PLATFORM.value_set(disconnection.platform.clone()),
        attributes::ACCOUNT.value_set(disconnection.account.to_string()),
    ])
}

/// Parts with one account. See the [module](self).
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
    #[run(name = "PartAccount")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        let Input { disconnection, time_scale } = ctx.state(|part| part.input.clone());
        // Whether the platform heard of it changes nothing about what follows.
        let _ =
            ctx.execute_activity(Accounts::revoke_grant, disconnection.clone(), revoking(time_scale)).await;
        Ok(ctx.execute_activity(Accounts::erase_grant, disconnection, settling(ctx.task_queue())).await?)
    }
}

fn revoking(time_scale: TimeScale) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(90))
        .retry_policy(
            RetryPolicy::builder()
                // A worker that died is only missed after a while, at whatever pace.
                .initial_interval(time_scale.scale(Duration::from_secs(5)).max(Duration::from_secs(1)))
                .backoff_coefficient(2.0)
                .maximum_attempts(TRIES)
                .build(),
        )
        .summary("Tell the platform")
        .build()
}
