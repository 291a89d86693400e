//! Temporal workers: one per task queue, all in one process.
//!
//! The queue of posts has workflows, and logins at the OpenID provider, which concern no mode; a platform's queue has
//! its targets' workflows and all calls to the platform; the queues of webhooks and of media likewise. Test and live
//! mode have queues of their own, and in each queue an organization has a share of the slots. An idle queue costs
//! only a waiting poll.

use crate::{
    Deps,
    accounts::Accounts,
    connecting::Connecting,
    imports::Imports,
    media::Media,
    meter,
    metrics::Metrics,
    openid::OpenId,
    publishing::Publishing,
    recycle::Queue,
    share::{self, Shares},
    spans::ActivitySpans,
    webhooks::Webhooks,
};
use anyhow::Context;
use domain::Mode;
use futures::{FutureExt, StreamExt, future::LocalBoxFuture, stream::FuturesUnordered};
use std::{sync::Arc, time::Duration};
use temporalio_client::Client;
use temporalio_common::worker::{VersioningBehavior, WorkerDeploymentOptions, WorkerDeploymentVersion};
use temporalio_sdk::{
    Runtime, WorkerOptions,
    runtime::{
        AutoscalingOptions, PollerBehavior, RuntimeOptions,
        worker_tuner::{FixedSizeSlotSupplier, TunerHolder},
    },
};
use tokio::sync::watch;
use tracing::{error, info, warn};
use workflows::{
    CleanUpMedia, CollectMetrics, DisconnectAccount, DrainEndpoint, ImportPosts, ProcessMedia, PublishPost,
    PublishTarget, RenewGrant, WorkerRequest, options, queue,
};

/// Concurrent workflow tasks and publish attempts of one queue.
const SLOTS: usize = 100;
/// Concurrent calls to one platform for requests, beside its publish attempts.
const CALLS: usize = 50;
/// Concurrent requests to endpoints, and endpoints that are drained: they mostly wait, and some never answer.
const DELIVERIES: usize = 500;
/// Concurrent files: each may hold a few MiB, and hashing takes a core.
const FILES: usize = 16;
/// Concurrent confirmations of uploads, each with a waiting client.
const UPLOADS: usize = 16;
/// Cached workflows per queue.
const CACHED_WORKFLOWS: usize = 1000;
/// Time after which a workflow task of a sticky queue goes to any worker, because its own may be gone.
const STICKY_TIMEOUT: Duration = Duration::from_secs(3);

/// Longest throttling of heartbeats: well below their time-out, so that a moment of slowness costs no attempt. By
/// default the SDK throttles them to four fifths of it.
const MAX_HEARTBEAT_THROTTLE: Duration = Duration::from_secs(2);
const _: () = assert!(MAX_HEARTBEAT_THROTTLE.as_secs() * 4 <= options::HEARTBEAT_TIMEOUT.as_secs());

/// Time that activities have to finish when their worker stops, after which they are told to end: a publishing call
/// has a minute, and storing its result some seconds.
const GRACE_PERIOD: Duration = Duration::from_secs(75);
const _: () = assert!(GRACE_PERIOD.as_secs() >= platforms::TIMEOUT.as_secs() + 10);
/// Time after which a process that stops gives up the activities that still run, so that it ends within the 90 s that
/// orchestrators have to grant. Temporal repeats them elsewhere.
pub const STOP_LIMIT: Duration = Duration::from_secs(85);
const _: () = assert!(STOP_LIMIT.as_secs() > GRACE_PERIOD.as_secs());

/// The queues that a process serves, beside the one of posts. Every queue needs a process that serves it.
#[derive(Clone, Debug)]
pub struct Served {
    /// Modes.
    pub modes: Vec<Mode>,
    /// Ids of platforms.
    pub platforms: Vec<&'static str>,
}

/// How workers begin and end.
pub struct Lifecycle {
    /// Stops the workers when it becomes true. The engine has a receiver of it.
    pub stop: watch::Sender<bool>,
    /// Number of activities after which the worker of a queue is replaced; 0 for never.
    pub recycle_after: u64,
    /// Version of the workers; `None` for workers without versioning.
    pub version: Option<Version>,
}

/// Version of the workers in a worker deployment.
pub struct Version {
    /// Name of the deployment.
    pub deployment: String,
    /// Id of the build.
    pub build_id: String,
}

/// The workers of this process; to be run on one thread, since workflow state is not `Send`.
pub struct Workers {
    queues: Vec<Queue>,
    client: Client,
    stop: watch::Sender<bool>,
    // The workers' own tasks run on it.
    runtime: Runtime,
}

impl Workers {
    /// Makes a worker for each queue of `base` that is to be served.
    ///
    /// # Errors
    ///
    /// When Temporal can't be reached or refuses them.
    pub fn new(base: &str, served: &Served, lifecycle: Lifecycle, deps: Deps) -> anyhow::Result<Self> {
        let options = RuntimeOptions::builder().telemetry_options(meter::for_workers());
        let options = options.build().map_err(anyhow::Error::msg)?;
        let runtime = Runtime::from_current_tokio(options).context("start Temporal's runtime")?;
        let modes: Vec<_> = served.modes.iter().map(|mode| mode.as_str()).collect();
        telemetry::metrics::begin(&served.platforms, &modes);
        let client = deps.temporal.clone();
        let deps = Arc::new(deps);
        let mut posts = worker_options(base, SLOTS);
        posts.register_workflow::<PublishPost>()?;
        posts.register_workflow::<WorkerRequest>()?;
        posts.register_workflow::<CollectMetrics>()?;
        posts.register_activities(OpenId { deps: deps.clone() });
        let mut queues = vec![posts];
        for mode in &served.modes {
            queues.extend(in_mode(base, *mode, &served.platforms, &deps)?);
        }
        let Lifecycle { stop, recycle_after, version } = lifecycle;
        let queues = queues.into_iter().map(|mut queue| {
            if let Some(version) = &version {
                queue.deployment_options = versioned(version);
            }
            Queue::new(queue, recycle_after, &runtime, &client)
        });
        let queues = queues.collect::<Result<_, _>>()?;
        Ok(Self { queues, client, stop, runtime })
    }

    /// Returns a function that stops the workers: they take no further task. Tasks in progress finish first, within
    /// the grace period.
    pub fn stopper(&self) -> impl Fn() + Send + use<> {
        let stop = self.stop.clone();
        move || {
            stop.send_replace(true);
        }
    }

    /// Runs them until they are stopped, or until one of them fails for good and the others have stopped too.
    ///
    /// # Errors
    ///
    /// When one of them failed.
    pub fn run(&mut self) -> LocalBoxFuture<'_, anyhow::Result<()>> {
        let queues = std::mem::take(&mut self.queues);
        let Self { client, stop, runtime, .. } = &*self;
        let all = queues.into_iter().map(|queue| queue.serve(runtime, client, stop.subscribe()));
        let all = run_together(all, self.stopper());
        let mut stop = self.stop.subscribe();
        let limit = async move {
            // Fails only with the sender, which this has too.
            let _ = stop.wait_for(|stop| *stop).await;
            info!("The workers take no further tasks and finish those that they have");
            tokio::time::sleep(STOP_LIMIT).await;
            warn!(
                "Gave up activities that still run after {} s; Temporal repeats them",
                STOP_LIMIT.as_secs()
            );
            Ok(())
        };
        // Boxed, so that it is compiled once and not again by who awaits it.
        async {
            tokio::select! {
                ended = all => ended,
                given_up = limit => given_up,
            }
        }
        .boxed_local()
    }
}

/// Runs workers to their end. The first one that fails stops the others: a process that still served some of its
/// queues would look healthy, and the posts of the others would wait without a reason.
async fn run_together<F: Future<Output = anyhow::Result<()>>>(
    workers: impl IntoIterator<Item = F>,
    stop: impl Fn(),
) -> anyhow::Result<()> {
    let mut running: FuturesUnordered<_> = workers.into_iter().collect();
    let mut outcome = Ok(());
    while let Some(ended) = running.next().await {
        if let (Err(error), true) = (ended, outcome.is_ok()) {
            error!("A Temporal worker failed, and the others stop: {error:#}");
            stop();
            outcome = Err(error.context("a Temporal worker failed"));
        }
    }
    outcome
}

/// Options of workers with a version. Workflows move to the current version on their own.
fn versioned(version: &Version) -> WorkerDeploymentOptions {
    let Version { deployment, build_id } = version;
    let version = WorkerDeploymentVersion::builder().deployment_name(deployment).build_id(build_id).build();
    WorkerDeploymentOptions::new(version)
        .use_worker_versioning(true)
        .default_versioning_behavior(VersioningBehavior::AutoUpgrade)
        .build()
}

/// Workers of the queues of one mode.
fn in_mode(
    base: &str,
    mode: Mode,
    platforms: &[&str],
    deps: &Arc<Deps>,
) -> anyhow::Result<Vec<WorkerOptions>> {
    let shares = |slots| Shares::new(slots, deps.engine.time_scale.scale(share::MIN_WAIT));
    let mut queues = Vec::new();
    for platform in platforms {
        let mut targets = worker_options(&queue::platform(base, platform, mode), SLOTS + CALLS);
        let calls = Arc::new(shares(CALLS));
        targets.register_workflow::<PublishTarget>()?;
        targets.register_workflow::<WorkerRequest>()?;
        targets.register_workflow::<RenewGrant>()?;
        targets.register_workflow::<DisconnectAccount>()?;
        targets.register_workflow::<ImportPosts>()?;
        targets.register_activities(Publishing { deps: deps.clone(), shares: shares(SLOTS) });
        targets.register_activities(Accounts { deps: deps.clone(), shares: calls.clone() });
        targets.register_activities(Imports { deps: deps.clone(), shares: calls.clone() });
        targets.register_activities(Metrics { deps: deps.clone(), shares: calls.clone() });
        targets.register_activities(Connecting { deps: deps.clone(), shares: calls });
        queues.push(targets);
    }
    let mut webhooks = worker_options(&queue::webhooks(base, mode), DELIVERIES);
    webhooks.register_workflow::<DrainEndpoint>()?;
    webhooks.register_workflow::<WorkerRequest>()?;
    webhooks.register_activities(Webhooks { deps: deps.clone(), shares: shares(DELIVERIES) });
    queues.push(webhooks);
    let mut media = worker_options(&queue::media(base, mode), FILES);
    media.register_workflow::<ProcessMedia>()?;
    media.register_workflow::<CleanUpMedia>()?;
    media.register_activities(Media { deps: deps.clone(), shares: shares(FILES) });
    queues.push(media);
    let mut uploads = worker_options(&queue::uploads(base, mode), UPLOADS);
    uploads.register_workflow::<WorkerRequest>()?;
    uploads.register_activities(Media { deps: deps.clone(), shares: shares(UPLOADS) });
    queues.push(uploads);
    Ok(queues)
}

fn worker_options(queue: &str, activities: usize) -> WorkerOptions {
    let slots = FixedSizeSlotSupplier::new;
    WorkerOptions::new(queue)
        .tuner(
            TunerHolder::builder()
                .workflow_task_slot_supplier(slots(SLOTS))
                .activity_task_slot_supplier(slots(activities))
                .local_activity_task_slot_supplier(slots(1))
                .nexus_task_slot_supplier(slots(1))
                .build(),
        )
        .max_cached_workflows(CACHED_WORKFLOWS)
        .workflow_task_poller_behavior(pollers(2))
        .activity_task_poller_behavior(pollers(1))
        .sticky_queue_schedule_to_start_timeout(STICKY_TIMEOUT)
        .graceful_shutdown_period(GRACE_PERIOD)
        .max_heartbeat_throttle_interval(MAX_HEARTBEAT_THROTTLE)
        .activity_inbound_interceptor(ActivitySpans)
        .build()
}

/// Pollers that scale with the load.
fn pollers(minimum: usize) -> PollerBehavior {
    PollerBehavior::Autoscaling(
        AutoscalingOptions::builder().minimum(minimum).maximum(20).initial(minimum).build(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_fails_stops_the_others() {
        let stop = watch::Sender::new(false);
        let run = |fails: bool| {
            let mut stopped = stop.subscribe();
            async move {
                if fails {
                    anyhow::bail!("the namespace is gone");
                }
                stopped.wait_for(|stopped| *stopped).await?;
                Ok(())
            }
        };
        let outcome = run_together([false, true, false].map(run), || stop.send(true).expect("they wait"))
            .now_or_never();
        let error = outcome.expect("all have ended").unwrap_err();
        assert_eq!(format!("{error:#}"), "a Temporal worker failed: the namespace is gone");
    }
}
