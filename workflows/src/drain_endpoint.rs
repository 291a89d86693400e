//! Sends the deliveries of one webhook endpoint: one workflow per endpoint, however many deliveries it has.
//!
//! The activity `drain` sends what is due, and stays while more arrives; so a busy endpoint costs a few history events
//! in minutes instead of a workflow per event. When nothing is due, the workflow sleeps until the next retry, and ends
//! when nothing is left: the message of the next delivery starts it again. The rows decide what is sent and when
//! (`store::webhooks::drain`), so that the workflow can be terminated, reset or started again at any time.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{
    activities::{DrainResult, Webhooks},
    attributes,
    lenient::Lenient,
    options, queue,
    start::Start,
    timer,
};
use chrono::{DateTime, SubsecRound, Utc};
use domain::{Owner, TimeScale, WebhookId, outbox::EndpointRef};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};
use temporalio_common::search_attributes::SearchAttributes;
use temporalio_workflow::{
    ActivityExecutionError, ActivityOptions, ContinueAsNewOptions, RetryPolicy, SyncWorkflowContext,
    TimerOptions, WorkflowContext, WorkflowContextView, WorkflowResult, WorkflowTermination, workflow,
    workflow_methods,
};

/// Time limit of draining an endpoint: the activity stops by itself before.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Input of the workflow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Input {
    /// Endpoint to drain.
    #[serde(flatten)]
    pub endpoint: EndpointRef,
    /// Scale of all waits.
    #[serde(default)]
    pub time_scale: TimeScale,
}

/// Id of the workflow: one per endpoint.
pub fn id(webhook: WebhookId) -> String {
    format!("endpoint-{webhook}")
}

impl Start for Input {
    fn owner(&self) -> Owner {
        self.endpoint.owner
    }

    fn id(&self) -> String {
        id(self.endpoint.webhook)
    }

    fn queue(&self, base: &str) -> String {
        queue::webhooks(base, self.endpoint.owner.mode)
    }

    fn search_attributes(&self) -> SearchAttributes {
        SearchAttributes::new([attributes::ORG.value_set(self.endpoint.owner.org.to_string())])
    }

    fn summary(&self) -> String {
        "Send events to an endpoint".to_owned()
    }
}

/// Drains one endpoint. See the [module](self).
#[workflow]
pub struct DrainEndpoint {
    input: Input,
    is_woken: bool,
}

#[workflow_methods]
impl DrainEndpoint {
    #[init]
    fn new(_ctx: &WorkflowContextView, input: Input) -> Self {
        Self { input, is_woken: false }
    }

    /// Runs until the endpoint has no open delivery.
    #[run(name = "DrainEndpoint")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        let Input { endpoint, time_scale } = ctx.state(|state| state.input.clone());
        loop {
            // Deliveries that were written before a signal arrived are seen by the activity that begins now.
            ctx.state_mut(|state| state.is_woken = false);
            let drained = ctx.execute_activity(Webhooks::drain, endpoint, drain_options(time_scale)).await;
            let is_woken = ctx.state(|state| state.is_woken);
            match drained {
                Ok(DrainResult::Done) if !is_woken => return Ok(()),
                Ok(DrainResult::Wait { wait, deliveries }) if !is_woken => {
                    let now = DateTime::<Utc>::from(ctx.workflow_time().unwrap_or(SystemTime::UNIX_EPOCH));
                    let next = (now + wait).trunc_subsecs(0);
                    let timer = TimerOptions::builder(wait)
                        .summary(format!("Next attempt of {deliveries} deliveries at {next}"))
                        .build();
                    let woken = ctx.wait_condition(|state: &Self| state.is_woken);
                    if let Some(woken) = timer::sleep_unless(ctx, timer, woken).await {
                        woken?;
                    }
                }
                // Waiting for a slot, which a signal makes no shorter.
                Ok(DrainResult::Crowded { wait }) => {
                    timer::sleep(ctx, wait).await;
                }
                Ok(_) => {}
                Err(ActivityExecutionError::Cancelled(_)) => return Err(WorkflowTermination::cancelled()),
                // The activity is retried without end; should it fail nevertheless, the rows say what is left.
                Err(error) => return Err(error.into()),
            }
            if ctx.continue_as_new_suggested() {
                let next = ctx.state(|state| state.input.clone());
                match ctx.continue_as_new(next, ContinueAsNewOptions::default())? {}
            }
        }
    }

    /// A delivery was written, or is to be repeated.
    #[signal(name = "wake")]
    pub fn wake(&mut self, _ctx: &mut SyncWorkflowContext<Self>, _body: Lenient<()>) {
        self.is_woken = true;
    }
}

/// Returns the options for draining an endpoint: repeated until the database answers. A dead worker is noticed by its
/// heartbeats.
fn drain_options(time_scale: TimeScale) -> ActivityOptions {
    let first = time_scale.scale(Duration::from_secs(2)).max(Duration::from_millis(100));
    ActivityOptions::with_start_to_close_timeout(DRAIN_TIMEOUT)
        .heartbeat_timeout(time_scale.scale(options::SHORT_HEARTBEAT_TIMEOUT).max(Duration::from_secs(5)))
        .retry_policy(
            RetryPolicy::builder()
                .initial_interval(first)
                .backoff_coefficient(2.0)
                .maximum_interval(Duration::from_secs(60))
                .maximum_attempts(0)
                .build(),
        )
        .summary("Send what is due")
        .build()
}
