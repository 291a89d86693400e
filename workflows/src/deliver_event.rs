//! An event: one `deliver` activity per subscribed endpoint, side by side.
//!
//! A slow or dead endpoint holds up nothing but its own deliveries. The row counts the attempts and
//! marks the last; the policy shows them in Temporal's UI.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{
    activities::{DeliveryInput, Webhooks},
    attributes,
};
use domain::{TimeScale, outbox::EventDispatch, retry};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use temporalio_common::search_attributes::SearchAttributes;
use temporalio_workflow::{
    ActivityExecutionError, ActivityOptions, RetryPolicy, WorkflowContext, WorkflowContextView,
    WorkflowResult, WorkflowTermination, join_all, workflow, workflow_methods,
};

/// What the workflow is started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Input {
    /// The event.
    pub dispatch: EventDispatch,
    /// How fast the waits run.
    #[serde(default)]
    pub time_scale: TimeScale,
}

/// The workflow's id: fixed, so that starting it twice does nothing. One that was asked for again has an
/// id of its own, each time.
pub fn id(dispatch: &EventDispatch) -> String {
    match (dispatch.round, &dispatch.deliveries[..]) {
        (round @ 1.., [delivery]) => format!("redeliver-{delivery}-{round}"),
        _ => format!("event-{}", dispatch.event),
    }
}

/// The search attributes it is started with.
pub fn search_attributes(dispatch: &EventDispatch) -> SearchAttributes {
    let mut all = vec![
        attributes::ORG.value_set(dispatch.owner.org.to_string()),
        attributes::EVENT.value_set(dispatch.name.clone()),
    ];
    all.extend(dispatch.post.map(|post| attributes::POST.value_set(post.to_string())));
    SearchAttributes::new(all)
}

/// Delivers one event. See the [module](self).
#[workflow]
pub struct DeliverEvent {
    input: Input,
}

#[workflow_methods]
impl DeliverEvent {
    #[init]
    fn new(_ctx: &WorkflowContextView, input: Input) -> Self {
        Self { input }
    }

    /// Runs until every endpoint has it or was given up.
    #[run(name = "DeliverEvent")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        let Input { dispatch, time_scale } = ctx.state(|event| event.input.clone());
        let ctx = &*ctx;
        let delivered = join_all(dispatch.deliveries.iter().map(|delivery| {
            let mut input =
                DeliveryInput { delivery: *delivery, owner: dispatch.owner, round: dispatch.round, waits: 0 };
            async move {
                // The row says when it is over; a policy that ran out, for example because workers
                // died, only means that nobody has written it there yet.
                loop {
                    match ctx.execute_activity(Webhooks::deliver, input.clone(), attempts(time_scale)).await {
                        Ok(None) => return Ok(()),
                        Ok(Some(wait)) => {
                            input.waits += 1;
                            ctx.timer(wait).await;
                        }
                        Err(ActivityExecutionError::Cancelled(_)) => {
                            return Err(WorkflowTermination::cancelled());
                        }
                        Err(_) => continue,
                    }
                }
            }
        }))
        .await;
        delivered.into_iter().collect()
    }
}

fn attempts(time_scale: TimeScale) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(retry::DELIVERY_TIMEOUT + Duration::from_secs(15))
        .retry_policy(
            RetryPolicy::builder()
                .initial_interval(time_scale.scale(retry::DELIVERY_BASE))
                .backoff_coefficient(2.0)
                .maximum_interval(time_scale.scale(retry::CAP))
                .maximum_attempts(retry::DELIVERY_ATTEMPTS)
                .build(),
        )
        .summary("Deliver to an endpoint")
        .build()
}
