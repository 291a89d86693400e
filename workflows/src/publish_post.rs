//! A post: waits until it is due, then starts one [`PublishTarget`] per account.
//!
//! The row decides, not this workflow. An edit raises the row's version and signals the new job; a
//! target that was started for an older version reports that it is stale, and the loop starts over
//! with the job that has arrived. So an immediate post needs no look-up, and an edit can't slip
//! between.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{
    activities::{Publishing, Settled, Settlement, Task, Why},
    attributes, publish_target,
    publish_target::{Ended, PublishTarget, settling},
    queue,
};
use domain::{
    Pace, PostId, PostStatus, TargetStatus,
    errand::{Assignment, Job},
    post::roll_up,
};
use serde::{Deserialize, Serialize};
use std::{
    pin::pin,
    time::{Duration, SystemTime},
};
use temporalio_common::search_attributes::SearchAttributes;
use temporalio_workflow::{
    ChildWorkflowOptions, ParentClosePolicy, SyncWorkflowContext, TimerOptions, TimerResult, WorkflowContext,
    WorkflowContextView, WorkflowResult, WorkflowTermination, join_all, select, workflow, workflow_methods,
};

/// What the workflow is started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The post.
    pub job: Job,
    /// How fast the waits run.
    #[serde(default)]
    pub pace: Pace,
}

/// The workflow's id: fixed, so that starting it twice does nothing.
pub fn id(post: PostId) -> String {
    format!("post-{post}")
}

/// Publishes one post. See the [module](self).
#[workflow]
pub struct PublishPost {
    job: Job,
    pace: Pace,
    canceled: bool,
}

#[workflow_methods]
impl PublishPost {
    #[init]
    fn new(_ctx: &WorkflowContextView, order: Order) -> Self {
        Self { job: order.job, pace: order.pace, canceled: false }
    }

    /// Runs until every target is terminal, or the post is withdrawn.
    #[run(name = "PublishPost")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        while Self::due(ctx).await? {
            let job = ctx.state(|post| post.job.clone());
            let ended = Self::publish(ctx, &job).await?;
            if ended.contains(&None) {
                // The row is ahead of the job: its new version is on its way here.
                ctx.wait_condition(move |post: &Self| post.canceled || post.job.version > job.version)
                    .await?;
                continue;
            }
            let statuses: Vec<_> = ended.into_iter().flatten().collect();
            if let Some(status) = roll_up(&statuses).filter(|status| *status != PostStatus::Published) {
                ctx.upsert_search_attributes([attributes::STATUS.value_set(status.to_string())]);
            }
            return Ok(());
        }
        ctx.upsert_search_attributes([attributes::STATUS.value_set(TargetStatus::Canceled.to_string())]);
        Ok(())
    }

    /// The row changed: another time, other targets.
    #[signal(name = "changed")]
    pub fn changed(&mut self, _ctx: &mut SyncWorkflowContext<Self>, job: Job) {
        if job.version > self.job.version {
            self.job = job;
        }
    }

    /// The post was withdrawn. Targets that have begun find that in the row.
    #[signal(name = "canceled")]
    pub fn cancel(&mut self, _ctx: &mut SyncWorkflowContext<Self>) {
        self.canceled = true;
    }

    /// Waits for the post's time, whatever it becomes meanwhile. False when it is withdrawn.
    async fn due(ctx: &WorkflowContext<Self>) -> Result<bool, WorkflowTermination> {
        loop {
            let (version, due, canceled) = ctx.state(|post| (post.job.version, post.job.due, post.canceled));
            if canceled {
                return Ok(false);
            }
            let Some(due) = due else { return Ok(true) };
            let now = ctx.workflow_time().unwrap_or(SystemTime::UNIX_EPOCH);
            let Ok(wait) = SystemTime::from(due).duration_since(now) else { return Ok(true) };
            if wait.is_zero() {
                return Ok(true);
            }
            let alarm = ctx.cancellation_token().child_token();
            let timer = ctx.timer(
                TimerOptions::builder(wait)
                    .summary(format!("until {due}"))
                    .cancellation_token(alarm.clone())
                    .build(),
            );
            let mut timer = pin!(timer);
            select! {
                rung = timer => if rung == TimerResult::Cancelled {
                    return Err(WorkflowTermination::cancelled());
                },
                changed = ctx.wait_condition(move |post: &Self| post.canceled || post.job.version != version) => {
                    changed?;
                    alarm.cancel();
                }
            }
        }
    }

    /// Starts all targets, then waits for all. `None` stands for a stale one.
    async fn publish(ctx: &WorkflowContext<Self>, job: &Job) -> WorkflowResult<Vec<Option<TargetStatus>>> {
        let pace = ctx.state(|post| post.pace);
        let started = join_all(job.targets.iter().map(|assignment| {
            let input = publish_target::Order { task: task(job, assignment), pace };
            ctx.start_child_workflow(PublishTarget::run, input, child(ctx.task_queue(), job, assignment))
        }))
        .await;
        let results =
            join_all(started.into_iter().zip(&job.targets).map(|(started, assignment)| async move {
                let ended = match started {
                    Ok(child) => child.result().await.map_err(|error| error.to_string()),
                    Err(error) => Err(error.to_string()),
                };
                match ended {
                    Ok(Ended::Stale) => Ok(None),
                    Ok(Ended::Status(status)) => Ok(Some(status)),
                    // Somebody ended the target's workflow; its row must not stay open for ever.
                    Err(_) => Self::stop(ctx, task(job, assignment)).await.map(Some),
                }
            }))
            .await;
        results.into_iter().collect()
    }

    async fn stop(ctx: &WorkflowContext<Self>, task: Task) -> WorkflowResult<TargetStatus> {
        let options = settling(&queue::platform(ctx.task_queue(), &task.platform));
        let settlement = Settlement { task, why: Why::Stopped };
        loop {
            match ctx.execute_activity(Publishing::settle, settlement.clone(), options.clone()).await? {
                Settled::Ended { status } => return Ok(status),
                Settled::Again { pause } => {
                    ctx.timer(pause.max(Duration::from_secs(1))).await;
                }
            }
        }
    }
}

fn task(job: &Job, assignment: &Assignment) -> Task {
    Task {
        target: assignment.target,
        post: job.post,
        owner: job.owner,
        account: assignment.account,
        platform: assignment.platform.clone(),
        version: job.version,
    }
}

fn child(base: &str, job: &Job, assignment: &Assignment) -> ChildWorkflowOptions {
    ChildWorkflowOptions::builder()
        .workflow_id(publish_target::id(assignment.target))
        .task_queue(queue::platform(base, &assignment.platform))
        .parent_close_policy(ParentClosePolicy::RequestCancel)
        .static_summary(format!("Publish on {}", assignment.platform))
        .search_attributes(SearchAttributes::new([
            attributes::ORG.value_set(job.owner.org.to_string()),
            attributes::POST.value_set(job.post.to_string()),
            attributes::PLATFORM.value_set(assignment.platform.clone()),
            attributes::ACCOUNT.value_set(assignment.account.to_string()),
        ]))
        .build()
}
