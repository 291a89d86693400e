//! Delivers an event: one `deliver` activity per subscribed endpoint, side by side.
//!
//! Of the previous version: new events are sent by the workflow of their endpoint ([`crate::drain_endpoint`]). Those
//! that run during a deploy hand their deliveries over and end, so that no delivery has two senders.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{
    activities::{DeliveryInput, Webhooks},
    attributes, options, timer,
};
use domain::{TimeScale, outbox::EventDispatch};
use serde::{Deserialize, Serialize};
use temporalio_common::search_attributes::SearchAttributes;
use temporalio_workflow::{
    ActivityExecutionError, WorkflowContext, WorkflowContextView, WorkflowResult, WorkflowTermination,
    join_all, workflow, workflow_methods,
};

/// Input of the workflow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Input {
    /// Event and its deliveries.
    pub dispatch: EventDispatch,
    /// Scale of all waits.
    #[serde(default)]
    pub time_scale: TimeScale,
}

/// Id of the workflow: fixed, so that starting it twice does nothing. Each redelivery has an id of its own.
pub fn id(dispatch: &EventDispatch) -> String {
    match (dispatch.round, &dispatch.deliveries[..]) {
        (round @ 1.., [delivery]) => format!("redeliver-{delivery}-{round}"),
        _ => format!("event-{}", dispatch.event),
    }
}

/// Search attributes of the workflow.
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

    /// Runs until every endpoint has received the event, or its delivery has failed.
    #[run(name = "DeliverEvent")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        let Input { dispatch, time_scale } = ctx.state(|event| event.input.clone());
        let ctx = &*ctx;
        let delivered = join_all(dispatch.deliveries.iter().map(|delivery| {
            let mut input =
                DeliveryInput { delivery: *delivery, owner: dispatch.owner, round: dispatch.round, waits: 0 };
            async move {
                // The row says when the delivery is over; an exhausted policy, for example because workers
                // died, only means that the row does not say so yet.
                loop {
                    match ctx
                        .execute_activity(Webhooks::deliver, input.clone(), options::deliver(time_scale))
                        .await
                    {
                        Ok(None) => return Ok(()),
                        Ok(Some(wait)) => {
                            input.waits += 1;
                            timer::sleep(ctx, wait).await;
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
