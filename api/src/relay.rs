//! Carries what the database owes to Temporal.
//!
//! Every API process runs one. It is woken when an errand is written, and looks by itself now and
//! then, since a notification can be lost but a row can't. Temporal may be away for an hour: errands
//! wait, nothing else does. Carrying one twice does nothing, for workflows have fixed ids.

use domain::{
    Pace, PostId, TargetId,
    errand::{Chore, Dispatch, Errand, Ingest, Job, Keeping, Parting},
};
use futures::{StreamExt, stream};
use platforms::Renewal;
use std::time::Duration;
use store::{
    Listener, Pool,
    outbox::{self, Claimed},
};
use temporalio_client::{
    Client, WorkflowIdConflictPolicy, WorkflowIdReusePolicy, WorkflowSignalOptions, WorkflowStartOptions,
    errors::{WorkflowInteractionError, WorkflowStartError},
};
use temporalio_common::search_attributes::SearchAttributes;
use tracing::{info, warn};
use workflows::{
    DeliverEvent, ImportPosts, KeepAccount, PartAccount, PublishPost, PublishTarget, TendMedia, attributes,
    deliver_event, import_posts, keep_account, part_account, publish_post, publish_target, queue, tend_media,
};

/// Errands taken on at once.
const BATCH: i64 = 64;
/// Errands carried side by side.
const HANDS: usize = 16;
/// How long taken errands are ours: longer than Temporal takes to answer.
const LEASE: Duration = Duration::from_secs(60);
/// How often it looks without being woken.
const LOOK: Duration = Duration::from_secs(2);
/// How long an errand that could not be carried waits, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));

/// The relay.
pub struct Relay {
    /// Where errands are written.
    pub db: Pool,
    /// Where they are carried.
    pub temporal: Client,
    /// The task queue of posts.
    pub queue: String,
    /// How fast the waits of publishing run.
    pub pace: Pace,
}

impl Relay {
    /// Carries errands for ever; to be dropped when the process ends. What it holds then is carried
    /// by another relay, or by the next start, when the lease has ended.
    pub async fn run(self) {
        let mut listener = None;
        loop {
            if listener.is_none() {
                listener = self.listen().await;
            }
            match self.carry_all().await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => warn!(%error, "The relay can't read the outbox"),
            }
            let woken = async {
                match &mut listener {
                    Some(listener) => listener.recv().await.map(drop),
                    None => std::future::pending().await,
                }
            };
            if let Ok(Err(error)) = tokio::time::timeout(LOOK, woken).await {
                warn!(%error, "The relay lost its connection to the database");
                listener = None;
            }
        }
    }

    async fn listen(&self) -> Option<Listener> {
        let listening = async {
            let mut listener = Listener::connect_with(&self.db).await?;
            listener.listen(outbox::CHANNEL).await?;
            Ok::<_, store::Error>(listener)
        };
        listening.await.inspect_err(|error| warn!(%error, "The relay can't listen; it goes on looking")).ok()
    }

    /// Carries one batch. True when there may be more.
    async fn carry_all(&self) -> Result<bool, store::Error> {
        let claimed = outbox::claim(&self.db, BATCH, LEASE).await?;
        let full = claimed.len() as i64 == BATCH;
        let carried: Vec<_> = stream::iter(claimed)
            .map(|claimed| async move {
                let carried = self.carry(&claimed.errand).await;
                (claimed, carried)
            })
            .buffer_unordered(HANDS)
            .collect()
            .await;
        let (mut done, mut started) = (Vec::new(), Vec::new());
        for (Claimed { id, errand, attempts }, outcome) in carried {
            match outcome {
                Ok(()) => {
                    done.push(id);
                    started.extend(post(&errand));
                }
                Err(error) => {
                    let pause = PAUSE.0.saturating_mul(1 << attempts.clamp(1, 10)).min(PAUSE.1);
                    warn!(errand.id = id, attempts, error = %format!("{error:#}"), "An errand waits for Temporal");
                    outbox::postpone(&self.db, id, pause).await?;
                }
            }
        }
        if !done.is_empty() {
            outbox::done(&self.db, &done, &started).await?;
            info!(errands = done.len(), "Carried {} errands to Temporal", done.len());
        }
        Ok(full)
    }

    async fn carry(&self, errand: &Errand) -> anyhow::Result<()> {
        match errand {
            Errand::PublishPost(job) => self.publish(job).await,
            Errand::PostChanged(job) => self.change(job).await,
            Errand::PostCanceled { post } => self.cancel(*post).await,
            Errand::HurryTarget { target } => self.hurry(*target).await,
            Errand::DeliverEvent(dispatch) => self.deliver(dispatch).await,
            Errand::PartAccount(parting) => self.part(parting).await,
            Errand::ImportPosts(ingest) => self.import(ingest).await,
            Errand::KeepAccount(keeping) => self.keep(keeping).await,
            Errand::TendMedia(chore) => self.tend(chore).await,
        }
    }

    async fn publish(&self, job: &Job) -> anyhow::Result<()> {
        let order = publish_post::Order { job: job.clone(), pace: self.pace };
        started(self.temporal.start_workflow(PublishPost::run, order, self.post_options(job)).await)
    }

    async fn change(&self, job: &Job) -> anyhow::Result<()> {
        let order = publish_post::Order { job: job.clone(), pace: self.pace };
        let (signal, options) = (PublishPost::changed, self.post_options(job));
        started(
            self.temporal
                .signal_with_start_workflow(PublishPost::run, order, signal, job.clone(), options)
                .await,
        )
    }

    async fn cancel(&self, post: PostId) -> anyhow::Result<()> {
        let handle = self.temporal.get_workflow_handle::<PublishPost>(publish_post::id(post));
        told(handle.signal(PublishPost::cancel, (), WorkflowSignalOptions::default()).await)
    }

    async fn hurry(&self, target: TargetId) -> anyhow::Result<()> {
        let handle = self.temporal.get_workflow_handle::<PublishTarget>(publish_target::id(target));
        told(handle.signal(PublishTarget::hurry, (), WorkflowSignalOptions::default()).await)
    }

    async fn deliver(&self, dispatch: &Dispatch) -> anyhow::Result<()> {
        let order = deliver_event::Order { dispatch: dispatch.clone(), pace: self.pace };
        let options = WorkflowStartOptions::new(queue::webhooks(&self.queue), deliver_event::id(dispatch))
            .id_reuse_policy(WorkflowIdReusePolicy::RejectDuplicate)
            .id_conflict_policy(WorkflowIdConflictPolicy::UseExisting)
            .search_attributes(deliver_event::search_attributes(dispatch))
            .static_summary(format!("Deliver {}", dispatch.name))
            .build();
        started(self.temporal.start_workflow(DeliverEvent::run, order, options).await)
    }

    async fn part(&self, parting: &Parting) -> anyhow::Result<()> {
        let order = part_account::Order { parting: parting.clone(), pace: self.pace };
        let queue = queue::platform(&self.queue, &parting.platform);
        let options = WorkflowStartOptions::new(queue, part_account::id(parting))
            .id_reuse_policy(WorkflowIdReusePolicy::RejectDuplicate)
            .id_conflict_policy(WorkflowIdConflictPolicy::UseExisting)
            .search_attributes(part_account::search_attributes(parting))
            .static_summary(format!("Part with an account of {}", parting.platform))
            .build();
        started(self.temporal.start_workflow(PartAccount::run, order, options).await)?;
        let keeper = self.temporal.get_workflow_handle::<KeepAccount>(keep_account::id(parting.account));
        told(keeper.signal(KeepAccount::part, parting.grant_version, WorkflowSignalOptions::default()).await)
    }

    async fn keep(&self, keeping: &Keeping) -> anyhow::Result<()> {
        let rest = match platforms::get(&keeping.platform).map(platforms::Platform::renewal) {
            Some(Renewal::Anytime) => Duration::ZERO,
            Some(Renewal::WhileAlive { rest }) => rest,
            Some(Renewal::Never) | None => return Ok(()),
        };
        let order = keep_account::Order { keeping: keeping.clone(), rest, pace: self.pace };
        let queue = queue::platform(&self.queue, &keeping.platform);
        // Under the same id again and again: an account may come back after it was disconnected.
        let options = WorkflowStartOptions::new(queue, keep_account::id(keeping.account))
            .id_reuse_policy(WorkflowIdReusePolicy::AllowDuplicate)
            .id_conflict_policy(WorkflowIdConflictPolicy::UseExisting)
            .search_attributes(keep_account::search_attributes(keeping))
            .static_summary(format!("Keep an account of {} connected", keeping.platform))
            .build();
        let signal = KeepAccount::renewed;
        let news = keeping.clone();
        started(
            self.temporal.signal_with_start_workflow(KeepAccount::run, order, signal, news, options).await,
        )
    }

    async fn import(&self, ingest: &Ingest) -> anyhow::Result<()> {
        let order = import_posts::Order { ingest: ingest.clone(), tries: 0 };
        let queue = queue::platform(&self.queue, &ingest.platform);
        let options = WorkflowStartOptions::new(queue, import_posts::id(ingest))
            .id_reuse_policy(WorkflowIdReusePolicy::RejectDuplicate)
            .id_conflict_policy(WorkflowIdConflictPolicy::UseExisting)
            .search_attributes(import_posts::search_attributes(ingest))
            .static_summary(format!("Import posts of an account of {}", ingest.platform))
            .build();
        started(self.temporal.start_workflow(ImportPosts::run, order, options).await)
    }

    async fn tend(&self, chore: &Chore) -> anyhow::Result<()> {
        let order = tend_media::Order { chore: chore.clone(), pace: self.pace };
        let options = WorkflowStartOptions::new(queue::media(&self.queue), tend_media::id(chore))
            .id_reuse_policy(WorkflowIdReusePolicy::RejectDuplicate)
            .id_conflict_policy(WorkflowIdConflictPolicy::UseExisting)
            .search_attributes(tend_media::search_attributes(chore))
            .static_summary(format!("Tend the bytes of a medium: {}", chore.what))
            .build();
        started(self.temporal.start_workflow(TendMedia::run, order, options).await)
    }

    fn post_options(&self, job: &Job) -> WorkflowStartOptions {
        WorkflowStartOptions::new(&self.queue, publish_post::id(job.post))
            .id_reuse_policy(WorkflowIdReusePolicy::RejectDuplicate)
            .id_conflict_policy(WorkflowIdConflictPolicy::UseExisting)
            .search_attributes(SearchAttributes::new([
                attributes::ORG.value_set(job.owner.org.to_string()),
                attributes::POST.value_set(job.post.to_string()),
            ]))
            .static_summary(format!("Publish to {} accounts", job.targets.len()))
            .build()
    }
}

/// The post whose workflow an errand starts.
fn post(errand: &Errand) -> Option<PostId> {
    match errand {
        Errand::PublishPost(job) | Errand::PostChanged(job) => Some(job.post),
        Errand::PostCanceled { .. }
        | Errand::HurryTarget { .. }
        | Errand::DeliverEvent(_)
        | Errand::PartAccount(_)
        | Errand::ImportPosts(_)
        | Errand::KeepAccount(_)
        | Errand::TendMedia(_) => None,
    }
}

/// A workflow that has ended needs to be told nothing.
fn told(outcome: Result<(), WorkflowInteractionError>) -> anyhow::Result<()> {
    match outcome {
        Ok(()) | Err(WorkflowInteractionError::NotFound(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A workflow that was started before, by whomever, is as good as one started now.
fn started<T>(outcome: Result<T, WorkflowStartError>) -> anyhow::Result<()> {
    match outcome {
        Ok(_) | Err(WorkflowStartError::AlreadyStarted { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
