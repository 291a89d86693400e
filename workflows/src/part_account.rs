//! Parting with an account that was disconnected: its platform is told, then its grant is erased.
//!
//! The platform gets a few tries to hear of it; the grant is erased whether it did or not. A call that
//! may have published is looked up with that grant first, for as long as these tries take.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{activities::Accounts, attributes, publish_target::settling};
use domain::{Pace, errand::Parting};
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
pub struct Order {
    /// The account, and the grant it had.
    #[serde(flatten)]
    pub parting: Parting,
    /// How fast the waits run.
    #[serde(default)]
    pub pace: Pace,
}

/// The workflow's id: fixed for one grant, so that starting it twice does nothing.
pub fn id(parting: &Parting) -> String {
    format!("part-{}-{}", parting.account, parting.grant_version)
}

/// The search attributes it is started with.
pub fn search_attributes(parting: &Parting) -> SearchAttributes {
    SearchAttributes::new([
        attributes::ORG.value_set(parting.owner.org.to_string()),
        attributes::PLATFORM.value_set(parting.platform.clone()),
        attributes::ACCOUNT.value_set(parting.account.to_string()),
    ])
}

/// Parts with one account. See the [module](self).
#[workflow]
pub struct PartAccount {
    order: Order,
}

#[workflow_methods]
impl PartAccount {
    #[init]
    fn new(_ctx: &WorkflowContextView, order: Order) -> Self {
        Self { order }
    }

    /// Runs until the grant is erased.
    #[run(name = "PartAccount")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        let Order { parting, pace } = ctx.state(|part| part.order.clone());
        // Whether the platform heard of it changes nothing about what follows.
        let _ = ctx.execute_activity(Accounts::revoke_grant, parting.clone(), revoking(pace)).await;
        Ok(ctx.execute_activity(Accounts::erase_grant, parting, settling(ctx.task_queue())).await?)
    }
}

fn revoking(pace: Pace) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(90))
        .retry_policy(
            RetryPolicy::builder()
                // A worker that died is only missed after a while, at whatever pace.
                .initial_interval(pace.of(Duration::from_secs(5)).max(Duration::from_secs(1)))
                .backoff_coefficient(2.0)
                .maximum_attempts(TRIES)
                .build(),
        )
        .summary("Tell the platform")
        .build()
}
