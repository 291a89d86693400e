//! Publishes a post: waits until it is due, then makes the first attempt of each of its targets. A target that it does
//! not end gets a workflow of its own, [`PublishTarget`], for the attempts that follow. Most targets need none, which
//! halves what a post costs Temporal.
//!
//! The row decides, not this workflow. An edit raises the row's version and signals the new job; a target that was
//! started for an older version reports that it is stale, and the loop starts over with the new job. So an
//! immediate post needs no query, and no edit is lost.
//!
//! A target's workflow that is terminated is started again: only one that is canceled stops its target. What is overdue
//! although this workflow runs is signaled ([`PublishPost::resume`]): a target that this run does not wait for, because
//! it was retried after its end, may have lost its workflow.
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
    queue,
    start::Start,
    timer,
};
use chrono::{DateTime, Utc};
use domain::{
    ErrorCode, Owner, PostId, PostStatus, TargetId, TargetStatus, TimeScale,
    outbox::{PostJob, TargetRef},
    post::roll_up,
    publish::{FirstAttempt, PublishResult},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    time::{Duration, SystemTime},
};
use temporalio_common::{
    error::{ChildWorkflowExecutionError, ChildWorkflowStartError},
    search_attributes::SearchAttributes,
};
use temporalio_workflow::{
    ActivityCancellationType, ActivityOptions, ChildWorkflowOptions, ContinueAsNewOptions, ParentClosePolicy,
    RetryPolicy, StartChildWorkflowExecutionFailedCause, SyncWorkflowContext, TimerOptions, WorkflowContext,
    WorkflowContextView, WorkflowResult, WorkflowTermination, join_all, select, workflow, workflow_methods,
};

/// Number of targets' workflows that are started at a time.
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
    /// Progress of earlier runs.
    #[serde(default, skip_serializing_if = "Progress::is_none")]
    pub progress: Progress,
}

impl Input {
    /// The input for a post of which nothing is done.
    pub fn new(job: PostJob, time_scale: TimeScale) -> Self {
        Self { job, time_scale, progress: Progress::default() }
    }

    /// The input for a post whose publishing has begun: its targets may have workflows, which are left alone.
    pub fn resumed(job: PostJob, time_scale: TimeScale) -> Self {
        let begun = job.targets.iter().map(|target| target.target).collect();
        Self { job, time_scale, progress: Progress { begun, ..Progress::default() } }
    }
}

/// Progress of earlier runs of a post's workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Targets whose first attempt was made: a workflow of their own goes on with them.
    pub begun: BTreeSet<TargetId>,
    /// Final statuses of targets that are in the job no longer.
    pub ended: Vec<TargetStatus>,
    /// Targets that failed or waited, as the operators' search has been told.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waits: BTreeMap<TargetId, (TargetStatus, ErrorCode)>,
    /// Status and error code that the search shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<(TargetStatus, ErrorCode)>,
    /// True if the post was deleted.
    #[serde(default)]
    pub is_canceled: bool,
}

impl Progress {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Result of the wait for a post's time.
enum Due {
    /// It is due.
    Now,
    /// It is canceled, or far off.
    Never,
    /// The next run waits on.
    Continues,
}

/// State in which a run leaves a target.
enum Turn {
    /// The target has this final status.
    Ended(TargetStatus),
    /// The post was edited before its first attempt.
    Stale,
    /// The next run goes on with it.
    Continues,
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

impl Start for Input {
    fn owner(&self) -> Owner {
        self.job.owner
    }

    fn id(&self) -> String {
        id(self.job.post)
    }

    fn queue(&self, base: &str) -> String {
        base.to_owned()
    }

    fn search_attributes(&self) -> SearchAttributes {
        attributes::of_post(self.job.owner, self.job.post)
    }

    fn summary(&self) -> String {
        format!("Publish to {} accounts", self.job.targets.len())
    }
}

/// Publishes one post. See the [module](self).
#[workflow]
pub struct PublishPost {
    job: PostJob,
    time_scale: TimeScale,
    canceled: bool,
    progress: Progress,
    /// Targets of the job that have ended.
    ended: BTreeSet<TargetId>,
    /// True once the history is so long that the workflow continues as new.
    is_long: bool,
    /// The job that the sweeper sent when the post's time came within the horizon, of the version of the far-off `job`.
    within_horizon: Option<PostJob>,
}

#[workflow_methods]
impl PublishPost {
    #[init]
    fn new(_ctx: &WorkflowContextView, input: Input) -> Self {
        Self {
            job: input.job,
            time_scale: input.time_scale,
            canceled: input.progress.is_canceled,
            progress: input.progress,
            ended: BTreeSet::new(),
            is_long: false,
            within_horizon: None,
        }
    }

    /// Runs until every target is terminal, or the post is canceled.
    #[run(name = "PublishPost")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        loop {
            match Self::due(ctx).await {
                Ok(Due::Now) => {}
                Ok(Due::Never) => break,
                Ok(Due::Continues) => return Self::go_on(ctx, ctx.state(|post| post.job.version), &[]),
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
            let turns = Self::publish(ctx, &job).await?;
            if turns.iter().any(|(_, turn)| matches!(turn, Turn::Continues)) {
                return Self::go_on(ctx, job.version, &turns);
            }
            if turns.iter().any(|(_, turn)| matches!(turn, Turn::Stale)) {
                // The row is ahead of the job: the signal with its new version is on its way.
                ctx.wait_condition(move |post: &Self| post.canceled || post.job.version > job.version)
                    .await?;
                continue;
            }
            let mut statuses = ctx.state(|post| post.progress.ended.clone());
            statuses.extend(turns.iter().filter_map(|(_, turn)| match turn {
                Turn::Ended(status) => Some(*status),
                Turn::Stale | Turn::Continues => None,
            }));
            match roll_up(&statuses) {
                Some(PostStatus::Published) if ctx.state(|post| post.progress.shown.is_some()) => {
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

    /// Targets of the post are overdue, whose workflows may be gone. Those that this run does not work on get one;
    /// one that runs is left alone.
    #[signal(name = "resume")]
    pub async fn resume(ctx: &mut WorkflowContext<Self>, job: Lenient<PostJob>) {
        Self::watch(ctx);
        let Some(job) = job.read("resume") else { return };
        let is_own = |target: &TargetRef| {
            ctx.state(|post| {
                let known = post.job.targets.iter().any(|own| own.target == target.target);
                known && !post.ended.contains(&target.target)
            })
        };
        let lost: Vec<_> = job.targets.iter().filter(|target| !is_own(target)).collect();
        let time_scale = ctx.state(|post| post.time_scale);
        for batch in lost.chunks(BATCH) {
            // Their rows tell what becomes of them.
            join_all(batch.iter().map(|target| {
                let (input, options) = child(ctx.task_queue(), &job, target, time_scale, None, None);
                ctx.start_child_workflow(PublishTarget::run, input, options)
            }))
            .await;
        }
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
        if ctx.continue_as_new_suggested() {
            self.is_long = true;
        }
        let (details, is_new) = self.note(waits);
        ctx.set_current_details(details);
        if is_new {
            ctx.upsert_search_attributes(attributes::waits(waits.status, waits.code));
        }
    }

    /// Waits for the post's time, which may change meanwhile. It is never when the post is canceled or far off.
    async fn due(ctx: &WorkflowContext<Self>) -> Result<Due, WorkflowTermination> {
        loop {
            if ctx.state(|post| post.canceled) {
                return Ok(Due::Never);
            }
            if ctx.state(|post| post.job.is_far_off) {
                let Some(job) = ctx.state(|post| post.within_horizon.clone()) else {
                    return Ok(Due::Never);
                };
                ctx.state_mut(|post| post.job = job);
            }
            if Self::watch(ctx) {
                return Ok(Due::Continues);
            }
            let (version, due) = ctx.state(|post| (post.job.version, post.job.due));
            let Some(due) = due else { return Ok(Due::Now) };
            if Self::wait(ctx, due, version).await? {
                return Ok(Due::Now);
            }
        }
    }

    /// Waits for a time. Returns false when the post is canceled or has another version than `version` before, or the
    /// workflow must continue as new.
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
        let changed = ctx
            .wait_condition(move |post: &Self| post.canceled || post.job.version != version || post.is_long);
        match timer::sleep_unless(ctx, timer, changed).await {
            None => Ok(true),
            Some(changed) => Ok(changed.map(|()| false)?),
        }
    }

    /// Publishes all targets, those with a later time of their own when it comes, and waits for all.
    async fn publish(ctx: &WorkflowContext<Self>, job: &PostJob) -> WorkflowResult<Vec<(TargetId, Turn)>> {
        let time_scale = ctx.state(|post| post.time_scale);
        let start = |target, waits, result| {
            let (input, options) = child(ctx.task_queue(), job, target, time_scale, waits, result);
            ctx.start_child_workflow(PublishTarget::run, input, options)
        };
        let (now, later): (Vec<_>, Vec<_>) = job.targets.iter().partition(|target| target.due.is_none());
        let results = join_all(now.into_iter().chain(later).map(|target| async move {
            let ended = |status| {
                ctx.state_mut(|post| post.ended.insert(target.target));
                Ok((target.target, Turn::Ended(status)))
            };
            let is_long = || ctx.state(|post| post.is_long);
            if let Some(due) = target.due {
                match Self::wait(ctx, due, job.version).await {
                    Ok(false) if is_long() => return Ok((target.target, Turn::Continues)),
                    Ok(false) if !ctx.state(|post| post.canceled) => {
                        return Ok((target.target, Turn::Stale));
                    }
                    // A canceled target ends by what its row says.
                    Ok(_) => {}
                    // An operator canceled the workflow.
                    Err(_) => return ended(Self::stop(ctx, input_of(job, target)).await?),
                }
            }
            let has_begun = ctx.state(|post| post.progress.begun.contains(&target.target));
            let mut started = if has_begun {
                start(target, None, None).await
            } else {
                match Self::attempt(ctx, job, target, time_scale).await {
                    FirstAttempt::Ended { status } => return ended(status),
                    FirstAttempt::Stale => return Ok((target.target, Turn::Stale)),
                    FirstAttempt::Unfinished { waits, result } => {
                        ctx.state_mut(|post| post.progress.begun.insert(target.target));
                        start(target, waits, result).await
                    }
                }
            };
            let mut pause = time_scale.scale(RUNNING_PAUSE.0);
            loop {
                let is_canceled = || ctx.cancellation_token().is_cancelled();
                let result = match started {
                    Ok(child) => {
                        let mut result = pin!(child.result());
                        let interrupted = select! {
                            result = result.as_mut() => Err(result),
                            long = ctx.wait_condition(|post: &Self| post.is_long) => Ok(long),
                        };
                        match interrupted {
                            Err(result) => result.map_err(|error| is_lost(&error)),
                            Ok(Ok(())) => return Ok((target.target, Turn::Continues)),
                            // The workflow is being canceled.
                            Ok(Err(_)) => result.await.map_err(|_| false),
                        }
                    }
                    // A run before a reset, or an operator, started it; once it has ended, the next start
                    // finds the result in the row.
                    Err(error) => Err(is_running(&error)),
                };
                return match result {
                    Ok(Ended::Stale) => Ok((target.target, Turn::Stale)),
                    Ok(Ended::Status(status)) => ended(status),
                    // The row says what is left to do.
                    Err(true) if !is_canceled() => {
                        timer::sleep(ctx, pause).await;
                        if Self::watch(ctx) {
                            return Ok((target.target, Turn::Continues));
                        }
                        pause = (pause * 2).min(time_scale.scale(RUNNING_PAUSE.1));
                        started = start(target, None, None).await;
                        continue;
                    }
                    // The target's workflow was canceled; its row must not stay open.
                    Err(_) => ended(Self::stop(ctx, input_of(job, target)).await?),
                };
            }
        }))
        .await;
        results.into_iter().collect()
    }

    /// Returns true once the history is so long that the workflow must continue as new.
    fn watch(ctx: &WorkflowContext<Self>) -> bool {
        if ctx.continue_as_new_suggested() {
            ctx.state_mut(|post| post.is_long = true);
        }
        ctx.state(|post| post.is_long)
    }

    /// Continues as new with the targets that have not ended in their turns, or with a newer job.
    fn go_on(ctx: &WorkflowContext<Self>, version: i32, turns: &[(TargetId, Turn)]) -> WorkflowResult<()> {
        let mut next = ctx.state(|post| Input {
            job: post.job.clone(),
            time_scale: post.time_scale,
            progress: Progress { is_canceled: post.canceled, ..post.progress.clone() },
        });
        if next.job.version == version {
            for (target, turn) in turns {
                if let Turn::Ended(status) = turn {
                    next.progress.ended.push(*status);
                    next.job.targets.retain(|open| open.target != *target);
                }
            }
        }
        match ctx.continue_as_new(next, ContinueAsNewOptions::default())? {}
    }

    /// Makes the first attempt of a target.
    async fn attempt(
        ctx: &WorkflowContext<Self>,
        job: &PostJob,
        target: &TargetRef,
        time_scale: TimeScale,
    ) -> FirstAttempt {
        let queue = queue::platform(ctx.task_queue(), &target.platform, job.owner.mode);
        let options = first_attempt_options(&target.platform, queue, time_scale);
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
        self.progress.waits.insert(target, (status, code));
        let lines = self
            .progress
            .waits
            .iter()
            .map(|(target, (status, code))| format!("target {target} {status}: {code}"));
        let is_new = self.progress.shown.replace((status, code)) != Some((status, code));
        (lines.collect::<Vec<_>>().join("\n"), is_new)
    }
}

/// True when a child ended without a result, and no operator canceled it: it was terminated, or failed.
fn is_lost(error: &ChildWorkflowExecutionError) -> bool {
    matches!(error, ChildWorkflowExecutionError::Failed(failure) if failure.as_cancelled().is_none())
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

/// Returns the input and the options of a target's workflow, a child of its post's. `base` is the queue of posts.
fn child(
    base: &str,
    job: &PostJob,
    target: &TargetRef,
    time_scale: TimeScale,
    waits: Option<(TargetStatus, ErrorCode)>,
    result: Option<PublishResult>,
) -> (publish_target::Input, ChildWorkflowOptions) {
    let input = publish_target::Input {
        waits,
        result,
        ..publish_target::Input::new(input_of(job, target), time_scale)
    };
    let options = ChildWorkflowOptions::builder()
        .workflow_id(input.id())
        .task_queue(input.queue(base))
        // Terminating or resetting a post's workflow terminates no target.
        .parent_close_policy(ParentClosePolicy::Abandon)
        .static_summary(input.summary())
        .search_attributes(input.search_attributes())
        .build();
    (input, options)
}

/// Returns the options for the first attempt to publish, on the `queue` of its platform. The target's own workflow
/// makes all others.
fn first_attempt_options(platform: &str, queue: String, time_scale: TimeScale) -> ActivityOptions {
    let once = RetryPolicy::builder().maximum_attempts(1).build();
    ActivityOptions::with_start_to_close_timeout(options::ATTEMPT_TIMEOUT)
        .heartbeat_timeout(options::heartbeat_timeout(time_scale))
        .retry_policy(once)
        .task_queue(queue)
        // An attempt that is under way finishes also if the workflow is canceled.
        .cancellation_type(ActivityCancellationType::WaitCancellationCompleted)
        .summary(format!("Publish on {platform}"))
        .build()
}
