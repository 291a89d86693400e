//! Carries what the database owes to Temporal.
//!
//! Every API process runs one. It is woken when a message is written, and looks by itself now and
//! then, since a notification can be lost but a row can't. Temporal may be away for an hour: messages
//! wait, nothing else does. Carrying one at any time again does no harm: workflows have fixed ids, one
//! that runs is left alone, and one that has ended finds in the row what is left to do.
//!
//! Temporal's answer is one of four: done, away (carried later, for as long as it takes), gone (the
//! workflow to be signaled is not there, and is started where that makes sense), or refused (tried a
//! few times, then parked with the reason).

use chrono::{DateTime, Utc};
use domain::{
    ErrorSource, Failure, Owner, PostId, TargetId, TimeScale,
    outbox::{Disconnection, EventDispatch, ExpiringGrant, ImportRef, MediaJob, Message, PostJob},
};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use platforms::Refresh;
use std::time::Duration;
use store::{
    Listener, Pool,
    outbox::{self, Claimed},
    posts, publishing,
};
use temporalio_client::{
    Client, WorkflowIdConflictPolicy, WorkflowIdReusePolicy, WorkflowSignalOptions, WorkflowStartOptions,
    errors::{WorkflowInteractionError, WorkflowStartError},
    tonic::{Code, Status},
};
use temporalio_common::search_attributes::SearchAttributes;
use tracing::{error, info, warn};
use workflows::{
    DeliverEvent, DisconnectAccount, ImportPosts, ProcessMedia, PublishPost, PublishTarget, RenewGrant,
    attributes, deliver_event, disconnect_account, import_posts, lenient::Lenient, process_media,
    publish_post, publish_target, queue, renew_grant,
};

/// Messages taken on at once.
const BATCH: i64 = 64;
/// Messages carried side by side.
const HANDS: usize = 16;
/// How long taken messages are ours: longer than Temporal takes to answer.
const LEASE: Duration = Duration::from_secs(60);
/// How often it looks without being woken.
const LOOK: Duration = Duration::from_secs(2);
/// How long a message that could not be carried waits, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));
/// A scaled pause is no shorter.
const SHORTEST: Duration = Duration::from_millis(100);
/// How long a message waits that this version can't read.
const UNREADABLE: Duration = Duration::from_secs(5 * 60);
/// How often Temporal may refuse a message before it is parked.
const TRIES: i32 = 8;

/// The relay.
pub struct Relay {
    /// Where messages are written.
    pub db: Pool,
    /// Where they are carried.
    pub temporal: Client,
    /// The task queue of posts.
    pub queue: String,
    /// How fast the waits of publishing run.
    pub time_scale: TimeScale,
    /// The clock.
    pub now: fn() -> DateTime<Utc>,
}

impl Relay {
    /// Carries messages for ever; to be dropped when the process ends. What it holds then is carried
    /// by another relay, or by the next start, when the lease has ended.
    pub fn run(self) -> BoxFuture<'static, ()> {
        self.carry_on().boxed()
    }

    async fn carry_on(self) {
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
                let carried = match &claimed.message {
                    Ok(message) => self.carry(message).await,
                    Err(error) => Err(Uncarried::Unreadable(error.clone())),
                };
                (claimed, carried)
            })
            .buffer_unordered(HANDS)
            .collect()
            .await;
        let (mut done, mut started) = (Vec::new(), Vec::new());
        for (Claimed { id, message, attempts }, outcome) in carried {
            match outcome {
                Ok(()) => {
                    done.push(id);
                    started.extend(message.as_ref().ok().and_then(post));
                }
                Err(Uncarried::Unreadable(error)) => {
                    // Another version of Fanfare wrote it, and may run beside this one.
                    error!(message.id = id, error, "A message can't be read by this version");
                    outbox::postpone(&self.db, id, UNREADABLE).await?;
                }
                Err(Uncarried::Refused(error)) if attempts >= TRIES => {
                    let error = format!("{error:#}");
                    error!(message.id = id, attempts, error, "Temporal refuses a message; it is parked");
                    outbox::park(&self.db, id, &error).await?;
                    if let Ok(Message::PublishPost(job) | Message::PostChanged(job)) = &message {
                        self.refuse(job, &error).await?;
                    }
                }
                Err(Uncarried::Refused(error) | Uncarried::Away(error)) => {
                    let pause = PAUSE.0.saturating_mul(1 << attempts.clamp(1, 10)).min(PAUSE.1);
                    let pause = self.time_scale.scale(pause).max(SHORTEST);
                    warn!(message.id = id, attempts, error = %format!("{error:#}"), "A message waits for Temporal");
                    outbox::postpone(&self.db, id, pause).await?;
                }
            }
        }
        if !done.is_empty() {
            outbox::complete(&self.db, &done, &started).await?;
            info!(messages = done.len(), "Carried {} messages to Temporal", done.len());
        }
        Ok(full)
    }

    async fn carry(&self, message: &Message) -> Result<(), Uncarried> {
        match message {
            Message::PublishPost(job) => self.publish(job).await,
            Message::PostChanged(job) => self.change(job).await,
            Message::PostCanceled { post, .. } => self.cancel(*post).await,
            Message::RetryTarget { target, post, owner } => self.retry_now(*target, *post, *owner).await,
            Message::DeliverEvent(dispatch) => self.deliver(dispatch).await,
            Message::DisconnectAccount(disconnection) => self.part(disconnection).await,
            Message::ImportPosts(import) => self.import(import).await,
            Message::RenewGrant(grant_ref) => self.keep(grant_ref).await,
            Message::ProcessMedia(job) => self.tend(job).await,
        }
    }

    async fn publish(&self, job: &PostJob) -> Result<(), Uncarried> {
        let order = publish_post::Input { job: job.clone(), time_scale: self.time_scale };
        started(self.temporal.start_workflow(PublishPost::run, order, self.post_options(job)).await)
    }

    async fn change(&self, job: &PostJob) -> Result<(), Uncarried> {
        let order = publish_post::Input { job: job.clone(), time_scale: self.time_scale };
        let (signal, body) = (PublishPost::post_changed, Lenient::new(job.clone()));
        let options = self.post_options(job);
        started(
            self.temporal.signal_with_start_workflow(PublishPost::run, order, signal, body, options).await,
        )
    }

    async fn cancel(&self, post: PostId) -> Result<(), Uncarried> {
        let handle = self.temporal.get_workflow_handle::<PublishPost>(publish_post::id(post));
        let signal = handle.signal(PublishPost::cancel, Lenient::new(()), WorkflowSignalOptions::default());
        // A workflow that has ended needs to be told nothing.
        told(signal.await).map(|_| ())
    }

    /// A target whose workflow is gone is taken up by its post's.
    async fn retry_now(&self, target: TargetId, post: PostId, owner: Owner) -> Result<(), Uncarried> {
        let handle = self.temporal.get_workflow_handle::<PublishTarget>(publish_target::id(target));
        let signal =
            handle.signal(PublishTarget::retry_now, Lenient::new(()), WorkflowSignalOptions::default());
        if told(signal.await)? {
            return Ok(());
        }
        match self.job(owner, post).await? {
            Some(job) => self.publish(&job).await,
            None => Ok(()),
        }
    }

    /// The unpublished part of a post; `None` when there is none.
    async fn job(&self, owner: Owner, post: PostId) -> Result<Option<PostJob>, Uncarried> {
        let job = async {
            let mut connection = self.db.acquire().await?;
            posts::post_job(&mut connection, owner, post).await
        };
        job.await.map_err(|error| Uncarried::Away(error.into()))
    }

    /// Ends what Temporal will never take up: no post stays open without a reason.
    async fn refuse(&self, job: &PostJob, error: &str) -> Result<(), store::Error> {
        for assignment in &job.targets {
            let key = publishing::TargetKey {
                owner: job.owner,
                post: job.post,
                target: assignment.target,
                version: job.version,
            };
            let message = format!("Temporal refused to publish it: {error}");
            let failure = Failure::network(message, false);
            let end = publishing::End::Dead { failure, source: ErrorSource::Service };
            publishing::settle(&self.db, key, &end, None, (self.now)()).await?;
        }
        Ok(())
    }

    async fn deliver(&self, dispatch: &EventDispatch) -> Result<(), Uncarried> {
        let order = deliver_event::Input { dispatch: dispatch.clone(), time_scale: self.time_scale };
        let queue = queue::webhooks(&self.queue, dispatch.owner.mode);
        let options = options(
            queue,
            deliver_event::id(dispatch),
            dispatch.owner,
            deliver_event::search_attributes(dispatch),
            format!("Deliver {}", dispatch.name),
        );
        started(self.temporal.start_workflow(DeliverEvent::run, order, options).await)
    }

    async fn part(&self, disconnection: &Disconnection) -> Result<(), Uncarried> {
        let order =
            disconnect_account::Input { disconnection: disconnection.clone(), time_scale: self.time_scale };
        let queue = queue::platform(&self.queue, &disconnection.platform, disconnection.owner.mode);
        let options = options(
            queue,
            disconnect_account::id(disconnection),
            disconnection.owner,
            disconnect_account::search_attributes(disconnection),
            format!("Part with an account of {}", disconnection.platform),
        );
        started(self.temporal.start_workflow(DisconnectAccount::run, order, options).await)?;
        let keeper = self.temporal.get_workflow_handle::<RenewGrant>(renew_grant::id(disconnection.account));
        let version = Lenient::new(disconnection.grant_version);
        told(keeper.signal(RenewGrant::disconnected, version, WorkflowSignalOptions::default()).await)
            .map(|_| ())
    }

    async fn keep(&self, grant_ref: &ExpiringGrant) -> Result<(), Uncarried> {
        let rest = match platforms::get(&grant_ref.platform).map(|platform| platform.auth.refresh()) {
            Some(Refresh::Anytime) => Duration::ZERO,
            Some(Refresh::BeforeExpiry { min_age: rest }) => rest,
            Some(Refresh::Never) | None => return Ok(()),
        };
        let order = renew_grant::Input { grant_ref: grant_ref.clone(), rest, time_scale: self.time_scale };
        let queue = queue::platform(&self.queue, &grant_ref.platform, grant_ref.owner.mode);
        let options = options(
            queue,
            renew_grant::id(grant_ref.account),
            grant_ref.owner,
            renew_grant::search_attributes(grant_ref),
            format!("Keep an account of {} connected", grant_ref.platform),
        );
        let signal = RenewGrant::grant_updated;
        let news = Lenient::new(grant_ref.clone());
        started(self.temporal.signal_with_start_workflow(RenewGrant::run, order, signal, news, options).await)
    }

    async fn import(&self, import: &ImportRef) -> Result<(), Uncarried> {
        let order = import_posts::Input { import: import.clone(), tries: 0 };
        let queue = queue::platform(&self.queue, &import.platform, import.owner.mode);
        let options = options(
            queue,
            import_posts::id(import),
            import.owner,
            import_posts::search_attributes(import),
            format!("Import posts of an account of {}", import.platform),
        );
        started(self.temporal.start_workflow(ImportPosts::run, order, options).await)
    }

    async fn tend(&self, job: &MediaJob) -> Result<(), Uncarried> {
        let order = process_media::Input { job: job.clone(), time_scale: self.time_scale };
        let queue = queue::media(&self.queue, job.owner.mode);
        let options = options(
            queue,
            process_media::id(job),
            job.owner,
            process_media::search_attributes(job),
            format!("Tend the bytes of a medium: {}", job.what),
        );
        started(self.temporal.start_workflow(ProcessMedia::run, order, options).await)
    }

    fn post_options(&self, job: &PostJob) -> WorkflowStartOptions {
        let search_attributes = SearchAttributes::new([
            attributes::ORG.value_set(job.owner.org.to_string()),
            attributes::POST.value_set(job.post.to_string()),
        ]);
        let summary = format!("Publish to {} accounts", job.targets.len());
        options(self.queue.clone(), publish_post::id(job.post), job.owner, search_attributes, summary)
    }
}

/// How every workflow is started that stands for a row: one that runs is left alone, and one that has ended
/// is started again, since the row decides what is left to do. Organizations take turns in the queue.
fn options(
    queue: String,
    id: String,
    owner: Owner,
    search_attributes: SearchAttributes,
    summary: String,
) -> WorkflowStartOptions {
    WorkflowStartOptions::new(queue, id)
        .id_reuse_policy(WorkflowIdReusePolicy::AllowDuplicate)
        .id_conflict_policy(WorkflowIdConflictPolicy::UseExisting)
        .search_attributes(search_attributes)
        .priority(queue::turn(owner.org))
        .static_summary(summary)
        .build()
}

/// The post whose workflow a message starts.
fn post(message: &Message) -> Option<PostId> {
    match message {
        Message::PublishPost(job) | Message::PostChanged(job) => Some(job.post),
        Message::PostCanceled { .. }
        | Message::RetryTarget { .. }
        | Message::DeliverEvent(_)
        | Message::DisconnectAccount(_)
        | Message::ImportPosts(_)
        | Message::RenewGrant(_)
        | Message::ProcessMedia(_) => None,
    }
}

/// Why a message was not carried.
enum Uncarried {
    /// This version can't read it.
    Unreadable(String),
    /// Temporal, its namespace or the database is away.
    Away(anyhow::Error),
    /// Temporal will not have it.
    Refused(anyhow::Error),
}

impl Uncarried {
    fn of(status: Status) -> Self {
        let code = status.code();
        let error = anyhow::Error::new(status);
        match code {
            Code::InvalidArgument
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::PermissionDenied
            | Code::Unauthenticated => Self::Refused(error),
            // Not there is the namespace, which an operator makes, or Temporal has just come up.
            _ => Self::Away(error),
        }
    }
}

/// False when there is no such workflow.
fn told(outcome: Result<(), WorkflowInteractionError>) -> Result<bool, Uncarried> {
    match outcome {
        Ok(()) => Ok(true),
        Err(WorkflowInteractionError::NotFound(status)) if !is_namespace(&status) => Ok(false),
        Err(WorkflowInteractionError::NotFound(status)) => Err(Uncarried::Away(anyhow::Error::new(status))),
        Err(WorkflowInteractionError::Rpc(status)) => Err(Uncarried::of(status)),
        Err(error) => Err(Uncarried::Refused(error.into())),
    }
}

/// True when the namespace was not found, rather than the workflow.
fn is_namespace(status: &Status) -> bool {
    // https://github.com/temporalio/api/blob/master/temporal/api/errordetails/v1/message.proto
    let detail = b"NamespaceNotFoundFailure";
    status.details().windows(detail.len()).any(|window| window == detail)
}

/// A workflow that was started before, by whomever, is as good as one started now.
fn started<T>(outcome: Result<T, WorkflowStartError>) -> Result<(), Uncarried> {
    match outcome {
        Ok(_) | Err(WorkflowStartError::AlreadyStarted { .. }) => Ok(()),
        Err(WorkflowStartError::Rpc(status)) if status.code() == Code::AlreadyExists => Ok(()),
        Err(WorkflowStartError::Rpc(status)) => Err(Uncarried::of(status)),
        Err(error) => Err(Uncarried::Refused(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: Code, detail: &'static str) -> Status {
        Status::with_details(code, "said the server", detail.as_bytes().into())
    }

    fn verdict<T>(outcome: &Result<T, Uncarried>) -> &'static str {
        match outcome {
            Ok(_) => "carried",
            Err(Uncarried::Away(_)) => "away",
            Err(Uncarried::Refused(_)) => "refused",
            Err(Uncarried::Unreadable(_)) => "unreadable",
        }
    }

    #[test]
    fn what_temporal_answers_to_a_signal_is_told_apart() {
        let namespace = "type.googleapis.com/temporal.api.errordetails.v1.NamespaceNotFoundFailure";
        let workflow = "type.googleapis.com/temporal.api.errordetails.v1.NotFoundFailure";
        let missing = |detail| WorkflowInteractionError::NotFound(status(Code::NotFound, detail));
        assert!(matches!(told(Ok(())), Ok(true)));
        assert!(matches!(told(Err(missing(workflow))), Ok(false)));
        assert_eq!(verdict(&told(Err(missing(namespace)))), "away");
        for (code, expected) in [
            (Code::Unavailable, "away"),
            (Code::DeadlineExceeded, "away"),
            (Code::ResourceExhausted, "away"),
            (Code::InvalidArgument, "refused"),
            (Code::PermissionDenied, "refused"),
        ] {
            let answered = told(Err(WorkflowInteractionError::Rpc(status(code, ""))));
            assert_eq!(verdict(&answered), expected, "{code:?}");
        }
    }

    #[test]
    fn what_temporal_answers_to_a_start_is_told_apart() {
        let already =
            WorkflowStartError::AlreadyStarted { run_id: None, source: status(Code::AlreadyExists, "") };
        assert_eq!(verdict(&started(Err::<(), _>(already))), "carried");
        for (code, expected) in [
            (Code::AlreadyExists, "carried"),
            (Code::NotFound, "away"),
            (Code::Unavailable, "away"),
            (Code::InvalidArgument, "refused"),
        ] {
            let answered = started(Err::<(), _>(WorkflowStartError::Rpc(status(code, ""))));
            assert_eq!(verdict(&answered), expected, "{code:?}");
        }
    }
}
