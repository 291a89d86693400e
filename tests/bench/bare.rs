//! A minimal Temporal program with the workflows of a post: the baseline for the cost of Temporal itself.

#![expect(unreachable_pub, reason = "the macros generate public items that contain the workflow")]

use std::time::Duration;
use temporalio_client::{Client, WorkflowGetResultOptions, WorkflowStartOptions};
use temporalio_macros::{activities, workflow, workflow_methods};
use temporalio_sdk::{
    ActivityOptions, ChildWorkflowOptions, Runtime, Worker, WorkerOptions, WorkflowContext, WorkflowResult,
    activities::{ActivityContext, ActivityError},
    runtime::{
        AutoscalingOptions, PollerBehavior, RuntimeOptions,
        worker_tuner::{FixedSizeSlotSupplier, TunerHolder},
    },
    workflows,
};

/// The task queue of the minimal program.
pub(crate) const QUEUE: &str = "bare";

struct Nothing;

#[activities]
impl Nothing {
    #[activity(name = "nothing")]
    async fn nothing(_cx: ActivityContext, _input: ()) -> Result<(), ActivityError> {
        Ok(())
    }
}

#[workflow]
#[derive(Default)]
struct BareTarget;

#[workflow_methods]
impl BareTarget {
    #[run(name = "BareTarget")]
    async fn run(ctx: &mut WorkflowContext<Self>, _input: ()) -> WorkflowResult<()> {
        let options = ActivityOptions::start_to_close_timeout(Duration::from_secs(60));
        Ok(ctx.execute_activity(Nothing::nothing, (), options).await?)
    }
}

/// A parent with `targets` children.
#[workflow]
#[derive(Default)]
pub struct BarePost;

#[workflow_methods]
impl BarePost {
    #[run(name = "BarePost")]
    pub async fn run(ctx: &mut WorkflowContext<Self>, targets: u32) -> WorkflowResult<()> {
        let id = ctx.workflow_id().to_owned();
        let started = workflows::join_all((0..targets).map(|n| {
            ctx.start_child_workflow(
                BareTarget::run,
                (),
                ChildWorkflowOptions::workflow_id(format!("{id}-{n}")),
            )
        }))
        .await;
        let mut children = Vec::new();
        for child in started {
            children.push(child?.result());
        }
        for done in workflows::join_all(children).await {
            done?;
        }
        Ok(())
    }
}

/// A workflow with `count` activities, a hundred at a time.
#[workflow]
#[derive(Default)]
pub struct BareBatch;

#[workflow_methods]
impl BareBatch {
    #[run(name = "BareBatch")]
    pub async fn run(ctx: &mut WorkflowContext<Self>, count: u32) -> WorkflowResult<()> {
        let mut left = count;
        while left > 0 {
            let some = left.min(100);
            let options = || ActivityOptions::start_to_close_timeout(Duration::from_secs(60));
            let done =
                workflows::join_all((0..some).map(|_| ctx.execute_activity(Nothing::nothing, (), options())));
            for one in done.await {
                one?;
            }
            left -= some;
        }
        Ok(())
    }
}

/// Returns a worker for the minimal program, tuned like ours. It must run on one thread.
pub(crate) fn worker(client: &Client) -> anyhow::Result<Worker> {
    let runtime =
        Runtime::from_current_tokio(RuntimeOptions::builder().build().map_err(anyhow::Error::msg)?)?;
    let slots = || FixedSizeSlotSupplier::new(100);
    let pollers = || {
        PollerBehavior::Autoscaling(AutoscalingOptions::builder().minimum(2).maximum(20).initial(2).build())
    };
    let options = WorkerOptions::new(QUEUE)
        .tuner(
            TunerHolder::builder()
                .workflow_task_slot_supplier(slots())
                .activity_task_slot_supplier(slots())
                .local_activity_task_slot_supplier(slots())
                .nexus_task_slot_supplier(FixedSizeSlotSupplier::new(1))
                .build(),
        )
        .workflow_task_poller_behavior(pollers())
        .activity_task_poller_behavior(pollers())
        .sticky_queue_schedule_to_start_timeout(Duration::from_secs(3))
        .register_workflow::<BarePost>()?
        .register_workflow::<BareTarget>()?
        .register_workflow::<BareBatch>()?
        .register_activities(Nothing)
        .build();
    Worker::new(&runtime, client.clone(), options).map_err(|error| anyhow::anyhow!("{error}"))
}

/// Runs one [`BarePost`] to completion.
pub(crate) async fn once(client: &Client, id: &str, targets: u32) -> anyhow::Result<()> {
    let options = WorkflowStartOptions::new(QUEUE, id).build();
    let handle = client.start_workflow(BarePost::run, targets, options).await?;
    handle.get_result(WorkflowGetResultOptions::default()).await?;
    Ok(())
}

/// Runs one [`BareBatch`] to completion.
pub(crate) async fn batch(client: &Client, id: &str, count: u32) -> anyhow::Result<()> {
    let options = WorkflowStartOptions::new(QUEUE, id).build();
    let handle = client.start_workflow(BareBatch::run, count, options).await?;
    handle.get_result(WorkflowGetResultOptions::default()).await?;
    Ok(())
}
