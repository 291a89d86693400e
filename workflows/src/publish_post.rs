//! Publishes a post: waits until it is due, then makes the first attempt of each of its targets. A target that it does
//! not end gets a workflow of its own, [`PublishTarget`], for the attempts that follow. Most targets need none, which
//! halves what a post costs Temporal.
//!
//! The row decides, not this workflow. An edit raises the row's version and signals the new job; a target that was
//! started for an older version reports that it is stale, and the loop starts over with the new job. So an
//! immediate post needs no query, and no edit is lost.
//!
//! The workflow starts when the post's time is near. If an edit moves it far off again, the run ends: the post waits in
//! the database, and the sweeper starts another run.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{
    activities::{Publishing, TargetInput},
    attributes,
    lenient::Lenient,
    options, publish_target,
    publish_target::{Ended, PublishTarget},
    queue, timer,
};
use chrono::{DateTime, Utc};
use domain::{
    ErrorCode, Owner, PostId, PostStatus, TargetId, TargetStatus, TimeScale,
    outbox::{PostJob, TargetRef},
    post::roll_up,
    publish::FirstAttempt,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};
use temporalio_common::{error::ChildWorkflowStartError, search_attributes::SearchAttributes};
use temporalio_workflow::{
    ChildWorkflowOptions, ParentClosePolicy, StartChildWorkflowExecutionFailedCause, SyncWorkflowContext,
    TimerOptions, WorkflowContext, WorkflowContextView, WorkflowResult, WorkflowTermination, join_all,
    workflow, workflow_methods,
};

/// Number of targets' workflows that are started at a time, by a version that started one for each.
const BATCH: usize = 100;

/// Pause between two looks at a target that another run started: first and longest.
const RUNNING_PAUSE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

/// Input of the workflow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Input {
    /// Post and its targets.
    pub job: PostJob,
    /// Scale of all waits.
    #[serde(default)]
    pub time_scale: TimeScale,
}

/// A target that failed or waits, and is attempted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetWaits {
    /// Target.
    pub target: TargetId,
    /// Its status.
    pub status: TargetStatus,
    /// Its error code.
    pub code: ErrorCode,
}

/// Id of the workflow: fixed, so that starting it twice does nothing.
pub fn id(post: PostId) -> String {
    format!("post-{post}")
}

/// Publishes one post. See the [module](self).
#[workflow]
pub struct PublishPost {
    job: PostJob,
    time_scale: TimeScale,
    canceled: bool,
    /// The job that the sweeper sent when the post's time came within the horizon, of the version of the far-off `job`.
    within_horizon: Option<PostJob>,
    /// Targets that failed or waited, as the operators' search has been told.
    waits: BTreeMap<TargetId, (TargetStatus, ErrorCode)>,
    /// What the search shows.
    shown: Option<(TargetStatus, ErrorCode)>,
}

#[workflow_methods]
impl PublishPost {
    #[init]
    fn new(_ctx: &WorkflowContextView, input: Input) -> Self {
        Self {
            job: input.job,
            time_scale: input.time_scale,
            canceled: false,
            within_horizon: None,
            waits: BTreeMap::new(),
            shown: None,
        }
    }

    /// Runs until every target is terminal, or the post is canceled.
    #[run(name = "PublishPost")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        loop {
            match Self::due(ctx).await {
                Ok(true) => {}
                Ok(false) => break,
                // An operator canceled it before it was due.
                Err(canceled) => {
                    let job = ctx.state(|post| post.job.clone());
                    for target in &job.targets {
                        Self::stop(ctx, input_of(&job, target)).await?;
                    }
                    return Err(canceled);
                }
            }
            let job = ctx.state(|post| post.job.clone());
            let ended = Self::publish(ctx, &job).await?;
            if ended.contains(&None) {
                // The row is ahead of the job: the signal with its new version is on its way.
                ctx.wait_condition(move |post: &Self| post.canceled || post.job.version > job.version)
                    .await?;
                continue;
            }
            let statuses: Vec<_> = ended.into_iter().flatten().collect();
            match roll_up(&statuses) {
                Some(PostStatus::Published) if ctx.state(|post| post.shown.is_some()) => {
                    ctx.upsert_search_attributes(attributes::published());
                }
                Some(PostStatus::Published) | None => {}
                Some(status) => {
                    ctx.upsert_search_attributes([attributes::STATUS.value_set(status.to_string())]);
                }
            }
            return Ok(());
        }
        if ctx.state(|post| post.canceled) {
            ctx.upsert_search_attributes([attributes::STATUS.value_set(TargetStatus::Canceled.to_string())]);
        }
        Ok(())
    }

    /// The row changed: another time or other targets.
    #[signal(name = "post_changed")]
    pub fn post_changed(&mut self, _ctx: &mut SyncWorkflowContext<Self>, job: Lenient<PostJob>) {
        let Some(job) = job.read("post_changed") else { return };
        if job.version > self.job.version {
            self.job = job;
            self.within_horizon = None;
        } else if job.version == self.job.version && self.job.is_far_off && !job.is_far_off {
            self.within_horizon = Some(job);
        }
    }

    /// The post was deleted. Targets that have begun find that in the row.
    #[signal(name = "cancel")]
    pub fn cancel(&mut self, _ctx: &mut SyncWorkflowContext<Self>, _body: Lenient<()>) {
        self.canceled = true;
    }

    /// Shows a target that failed or waits in the operators' search, and in the details of Temporal's UI. A target
    /// signals it once for each error code that it meets.
    #[signal(name = "target_waits")]
    pub fn target_waits(&mut self, ctx: &mut SyncWorkflowContext<Self>, waits: Lenient<TargetWaits>) {
        let Some(waits) = waits.read("target_waits") else { return };
        if !ctx.patched("target_waits") {
            return;
        }
        let (details, is_new) = self.note(waits);
        ctx.set_current_details(details);
        if is_new {
            ctx.upsert_search_attributes(attributes::waits(waits.status, waits.code));
        }
    }

    /// Waits for the post's time, which may change meanwhile. Returns false when the post is canceled or far off.
    async fn due(ctx: &WorkflowContext<Self>) -> Result<bool, WorkflowTermination> {
        loop {
            if ctx.state(|post| post.canceled) {
                return Ok(false);
            }
            if ctx.state(|post| post.job.is_far_off) && ctx.patched("far_off") {
                let within_horizon = ctx.state(|post| post.within_horizon.clone());
                let Some(job) = within_horizon.filter(|_| ctx.patched("within_horizon")) else {
                    return Ok(false);
                };
                ctx.state_mut(|post| post.job = job);
            }
            let (version, due) = ctx.state(|post| (post.job.version, post.job.due));
            let Some(due) = due else { return Ok(true) };
            if Self::wait(ctx, due, version).await? {
                return Ok(true);
            }
        }
    }

    /// Waits for a time. Returns false when the post is canceled or has another version than `version` before.
    async fn wait(
        ctx: &WorkflowContext<Self>,
        until: DateTime<Utc>,
        version: i32,
    ) -> Result<bool, WorkflowTermination> {
        let now = ctx.workflow_time().unwrap_or(SystemTime::UNIX_EPOCH);
        let wait = SystemTime::from(until).duration_since(now).unwrap_or_default();
        if wait.is_zero() {
            return Ok(true);
        }
        let timer = TimerOptions::builder(wait).summary(format!("until {until}")).build();
        let changed = ctx.wait_condition(move |post: &Self| post.canceled || post.job.version != version);
        match timer::sleep_unless(ctx, timer, changed).await {
            None => Ok(true),
            Some(changed) => Ok(changed.map(|()| false)?),
        }
    }

    /// Publishes all targets, those with a later time of their own when it comes, and waits for all. `None` stands for
    /// a stale one.
    async fn publish(
        ctx: &WorkflowContext<Self>,
        job: &PostJob,
    ) -> WorkflowResult<Vec<Option<TargetStatus>>> {
        let time_scale = ctx.state(|post| post.time_scale);
        let start = |target, waits, result| {
            let input = publish_target::Input {
                waits,
                result,
                ..publish_target::Input::new(input_of(job, target), time_scale)
            };
            let options = child_options(ctx.task_queue(), job, target, waits);
            ctx.start_child_workflow(PublishTarget::run, input, options)
        };
        let (now, later): (Vec<_>, Vec<_>) = job.targets.iter().partition(|target| target.due.is_none());
        let makes_attempts = ctx.patched("first_attempt");
        let mut started = Vec::with_capacity(job.targets.len());
        if makes_attempts {
            started.extend(now.iter().map(|_| None));
        } else {
            for batch in now.chunks(BATCH) {
                let batch = join_all(batch.iter().map(|target| start(target, None, None)));
                started.extend(batch.await.into_iter().map(Some));
            }
        }
        started.extend(later.iter().map(|_| None));
        let results = join_all(started.into_iter().zip(now.into_iter().chain(later)).map(
            |(started, target)| async move {
                if let Some(due) = target.due {
                    match Self::wait(ctx, due, job.version).await {
                        Ok(false) if !ctx.state(|post| post.canceled) => return Ok(None),
                        // A canceled target ends by what its row says.
                        Ok(_) => {}
                        // An operator canceled the workflow.
                        Err(_) => return Self::stop(ctx, input_of(job, target)).await.map(Some),
                    }
                }
                let mut started = match started {
                    Some(started) => started,
                    None if makes_attempts => match Self::attempt(ctx, job, target, time_scale).await {
                        FirstAttempt::Ended { status } => return Ok(Some(status)),
                        FirstAttempt::Stale => return Ok(None),
                        FirstAttempt::Unfinished { waits, result } => start(target, waits, result).await,
                    },
                    None => start(target, None, None).await,
                };
                let mut pause = time_scale.scale(RUNNING_PAUSE.0);
                loop {
                    let ended = match started {
                        Ok(child) => child.result().await.ok(),
                        // A run before a reset, or an operator, started it; once it has ended, the next start
                        // finds the result in the row.
                        Err(error) if is_running(&error) && !ctx.cancellation_token().is_cancelled() => {
                            timer::sleep(ctx, pause).await;
                            pause = (pause * 2).min(time_scale.scale(RUNNING_PAUSE.1));
                            started = start(target, None, None).await;
                            continue;
                        }
                        Err(_) => None,
                    };
                    return match ended {
                        Some(Ended::Stale) => Ok(None),
                        Some(Ended::Status(status)) => Ok(Some(status)),
                        // The target's workflow was terminated; its row must not stay open.
                        None => Self::stop(ctx, input_of(job, target)).await.map(Some),
                    };
                }
            },
        ))
        .await;
        results.into_iter().collect()
    }

    /// Makes the first attempt of a target.
    async fn attempt(
        ctx: &WorkflowContext<Self>,
        job: &PostJob,
        target: &TargetRef,
        time_scale: TimeScale,
    ) -> FirstAttempt {
        let queue = queue::platform(ctx.task_queue(), &target.platform, job.owner.mode);
        let options = options::first_attempt(&target.platform, queue, time_scale);
        let attempt = ctx.execute_activity(Publishing::first_attempt, input_of(job, target), options).await;
        // Without a result, because a worker died or Fanfare failed, the row says what is left to do. If an operator
        // canceled the workflow, no other one starts, and the target is stopped.
        let attempt = attempt.unwrap_or(FirstAttempt::Unfinished { waits: None, result: None });
        if let FirstAttempt::Unfinished { waits: Some((status, code)), .. } = attempt {
            let waits = TargetWaits { target: target.target, status, code };
            let (details, is_new) = ctx.state_mut(|post| post.note(waits));
            ctx.set_current_details(details);
            if is_new {
                ctx.upsert_search_attributes(attributes::waits(status, code));
            }
        }
        attempt
    }

    async fn stop(ctx: &WorkflowContext<Self>, target_input: TargetInput) -> WorkflowResult<TargetStatus> {
        publish_target::stop(
            ctx,
            &queue::platform(ctx.task_queue(), &target_input.platform, target_input.owner.mode),
            target_input,
        )
        .await
    }
}

impl PublishPost {
    /// Notes that a target waits. Returns the details of all that do, and whether the search shows something else.
    fn note(&mut self, TargetWaits { target, status, code }: TargetWaits) -> (String, bool) {
        self.waits.insert(target, (status, code));
        let lines =
            self.waits.iter().map(|(target, (status, code))| format!("target {target} {status}: {code}"));
        let is_new = self.shown.replace((status, code)) != Some((status, code));
        (lines.collect::<Vec<_>>().join("\n"), is_new)
    }
}

/// True when a child was not started because a workflow with its id is running.
fn is_running(error: &ChildWorkflowStartError) -> bool {
    matches!(
        error,
        ChildWorkflowStartError::StartFailed {
            cause: StartChildWorkflowExecutionFailedCause::WorkflowAlreadyExists,
            ..
        }
    )
}

fn input_of(job: &PostJob, target: &TargetRef) -> TargetInput {
    target_input(job.post, job.owner, job.version, target)
}

/// Returns the input of a target's workflow, for a version of its post.
pub fn target_input(post: PostId, owner: Owner, version: i32, target: &TargetRef) -> TargetInput {
    TargetInput {
        target: target.target,
        post,
        owner,
        account: target.account,
        platform: target.platform.clone(),
        version,
    }
}

/// Returns the search attributes of a target's workflow.
pub fn target_attributes(
    post: PostId,
    owner: Owner,
    target: &TargetRef,
    waits: Option<(TargetStatus, ErrorCode)>,
) -> SearchAttributes {
    let waits = waits.map(|(status, code)| attributes::waits(status, code));
    let of_target = [
        attributes::ORG.value_set(owner.org.to_string()),
        attributes::POST.value_set(post.to_string()),
        attributes::PLATFORM.value_set(target.platform.clone()),
        attributes::ACCOUNT.value_set(target.account.to_string()),
    ];
    SearchAttributes::new(of_target.into_iter().chain(waits.into_iter().flatten()))
}

fn child_options(
    base: &str,
    job: &PostJob,
    target: &TargetRef,
    waits: Option<(TargetStatus, ErrorCode)>,
) -> ChildWorkflowOptions {
    ChildWorkflowOptions::builder()
        .workflow_id(publish_target::id(target.target))
        .task_queue(queue::platform(base, &target.platform, job.owner.mode))
        // Terminating or resetting a post's workflow terminates no target.
        .parent_close_policy(ParentClosePolicy::Abandon)
        .static_summary(format!("Publish on {}", target.platform))
        .search_attributes(target_attributes(job.post, job.owner, target, waits))
        .build()
}
