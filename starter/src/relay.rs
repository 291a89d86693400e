//! The outbox relay: sends messages from the database to Temporal.
//!
//! Every API process runs one. It is woken by commits of its own process and by notifications of workers; it also
//! polls, since a notification can be lost but a row can't. While Temporal is unavailable messages wait and nothing else
//! does. Sending a message again is harmless: workflow ids are fixed, a running workflow is left alone, and
//! one that has ended and is started again finds in the row what is left to do.
//!
//! Sending has four outcomes: sent, unavailable (retried without limit), not found (the workflow to be
//! signaled does not run, and is started where that makes sense), or refused (retried a few times, then
//! parked with the error). A Temporal that does not accept this client, as when an API key has expired, counts as
//! unavailable: posts wait until an operator replaces the key.

use crate::status::{is_unauthorized, shown};
use anyhow::anyhow;
use chrono::{DateTime, Utc};
use domain::{
    ErrorSource, Failure, Owner, PostId, TargetId, TimeScale, WebhookId,
    outbox::{Disconnection, EndpointRef, ExpiringGrant, ImportRef, MediaJob, Message, PostJob, TargetRef},
};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use std::{collections::HashSet, time::Duration};
use store::{
    Commits, Listener, Pool,
    outbox::{self, Claimed},
    posts, publishing,
};
use telemetry::{
    health::Pulse,
    metrics,
    trace::{self, SpanKind},
};
use temporalio_client::{
    Client, WorkflowIdConflictPolicy, WorkflowIdReusePolicy, WorkflowSignalOptions, WorkflowStartOptions,
    errors::{WorkflowInteractionError, WorkflowStartError},
    tonic::{Code, Status},
};
use temporalio_common::{HasWorkflowDefinition, SignalDefinition};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use workflows::{
    DisconnectAccount, DrainEndpoint, ImportPosts, ProcessMedia, PublishPost, PublishTarget, RenewGrant,
    Start, activities::TargetInput, disconnect_account, drain_endpoint, import_posts, lenient::Lenient,
    process_media, publish_post, publish_target, queue, renew_grant,
};

/// Messages claimed at once.
const BATCH: i64 = 64;
/// Messages sent concurrently.
const CONCURRENCY: usize = 16;
/// Lease of claimed messages: longer than Temporal takes to answer.
const LEASE: Duration = Duration::from_secs(60);
/// Interval of polling without a notification.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// First and longest backoff of a message that could not be sent.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));
/// Lower limit of a scaled backoff.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
/// Backoff of a message that this version can't read.
const UNREADABLE_BACKOFF: Duration = Duration::from_secs(5 * 60);
/// Time limit of a statement, or of several in turn. The server ends a statement sooner; a connection that was lost
/// without a sign never answers.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of times Temporal may refuse a message before it is parked.
const MAX_ATTEMPTS: i32 = 8;
/// Error message of a target whose workflow Temporal refuses. Temporal's own words are for operators.
const UNSTARTED: &str = "the service could not start to publish it; its operator is told the reason";

/// The outbox relay of a process.
pub struct Relay {
    /// Database with the outbox.
    pub db: Pool,
    /// Client of Temporal.
    pub temporal: Client,
    /// Task queue of posts; the names of the other queues begin with it.
    pub queue: String,
    /// Scale of the waits of publishing.
    pub time_scale: TimeScale,
    /// Clock.
    pub now: fn() -> DateTime<Utc>,
    /// Beats with each turn.
    pub pulse: Pulse,
}

impl Relay {
    /// Sends messages until `stop`, and finishes those claimed by then. The messages of a relay that dies are sent
    /// by another one, or after the next start, when their lease has expired.
    pub fn run(self, stop: CancellationToken) -> BoxFuture<'static, ()> {
        self.run_loop(stop).boxed()
    }

    async fn run_loop(self, stop: CancellationToken) {
        let (mut listener, mut commits) = (None, Commits::subscribe());
        while !stop.is_cancelled() {
            self.pulse.beat();
            if listener.is_none() {
                listener = self.listen().await;
            }
            match self.send_batch().await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => warn!(%error, "The relay can't read the outbox"),
            }
            let notified = async {
                match &mut listener {
                    Some(listener) => tokio::select! {
                        notified = listener.recv() => notified.map(drop),
                        () = commits.next() => Ok(()),
                    },
                    None => {
                        commits.next().await;
                        Ok(())
                    }
                }
            };
            let notified = stop.run_until_cancelled(tokio::time::timeout(POLL_INTERVAL, notified));
            if let Some(Ok(Err(error))) = notified.await {
                warn!(%error, "The relay lost its connection to the database");
                listener = None;
            }
        }
    }

    async fn listen(&self) -> Option<Listener> {
        let listening = answered(async {
            let mut listener = Listener::connect_with(&self.db).await?;
            listener.listen(outbox::CHANNEL).await?;
            Ok(listener)
        });
        listening
            .await
            .inspect_err(|error| warn!(%error, "The relay can't listen for notifications; it polls"))
            .ok()
    }

    /// Sends one batch. Returns true if there may be more.
    async fn send_batch(&self) -> Result<bool, store::Error> {
        let claimed = answered(outbox::claim(&self.db, BATCH, LEASE)).await?;
        let is_full = claimed.len() as i64 == BATCH;
        let (claimed, repeated) = without_repetitions(claimed);
        let mut outcomes: Vec<_> = stream::iter(claimed)
            .map(|claimed| async move {
                let outcome = match &claimed.message {
                    Ok(message) => self.send_traced(claimed.id, message).await,
                    Err(error) => Err(SendError::Unreadable(error.clone())),
                };
                (claimed, outcome)
            })
            .buffer_unordered(CONCURRENCY)
            .collect()
            .await;
        for again in repeated {
            let is_sent = outcomes.iter().any(|(sent, outcome)| {
                outcome.is_ok() && endpoint(sent).is_some() && endpoint(sent) == endpoint(&again)
            });
            let unsent = || SendError::Unavailable(anyhow!("the same message could not be sent"));
            outcomes.push((again, is_sent.then_some(()).ok_or_else(unsent)));
        }
        answered(self.record(outcomes)).await?;
        Ok(is_full)
    }

    /// Records the results of sending.
    async fn record(&self, outcomes: Vec<(Claimed, Result<(), SendError>)>) -> Result<(), store::Error> {
        let (mut sent, mut started) = (Vec::new(), Vec::new());
        for (Claimed { id, message, attempts }, outcome) in outcomes {
            metrics::outbox_sent(match &outcome {
                Ok(()) => "sent",
                Err(SendError::Unreadable(_)) => "unreadable",
                Err(SendError::Refused(_)) if attempts >= MAX_ATTEMPTS => "parked",
                Err(SendError::Refused(_)) => "refused",
                Err(SendError::Unavailable(_)) => "unavailable",
            });
            let post = message.as_ref().ok().and_then(started_post).map(|post| post.to_string());
            match outcome {
                Ok(()) => {
                    sent.push(id);
                    started.extend(message.as_ref().ok().and_then(started_post));
                }
                Err(SendError::Unreadable(error)) => {
                    // Another version of Fanfare wrote it, and may run beside this one.
                    error!(message.id = id, error, "A message can't be read by this version");
                    outbox::postpone(&self.db, id, UNREADABLE_BACKOFF).await?;
                }
                Err(SendError::Refused(error)) if attempts >= MAX_ATTEMPTS => {
                    let error = format!("{error:#}");
                    error!(
                        message.id = id,
                        post.id = post,
                        attempts,
                        error,
                        "Temporal refuses a message; it is parked"
                    );
                    outbox::park(&self.db, id, &error).await?;
                    if let Ok(
                        Message::PublishPost(job) | Message::ResumePost(job) | Message::PostChanged(job),
                    ) = &message
                        && !job.is_far_off
                    {
                        self.fail_targets(job).await?;
                    }
                }
                Err(SendError::Refused(error) | SendError::Unavailable(error)) => {
                    let backoff = BACKOFF.0.saturating_mul(1 << attempts.clamp(1, 10)).min(BACKOFF.1);
                    let backoff = self.time_scale.scale(backoff).max(MIN_BACKOFF);
                    warn!(message.id = id, post.id = post, attempts, error = %format!("{error:#}"), "A message could not be sent to Temporal and is retried");
                    outbox::postpone(&self.db, id, backoff).await?;
                }
            }
        }
        if !sent.is_empty() {
            outbox::complete(&self.db, &sent, &started).await?;
            info!(messages = sent.len(), "Sent {} messages to Temporal", sent.len());
        }
        Ok(())
    }

    /// Sends a message; one that starts a post's workflow, in a span of the post's trace.
    async fn send_traced(&self, id: i64, message: &Message) -> Result<(), SendError> {
        let sent = async {
            let sent = self.send(id, message).await;
            if sent.is_err() {
                trace::fail("unsent");
            }
            sent
        };
        match started_post(message) {
            Some(post) => {
                let workflow = publish_post::id(post);
                let attributes = [("fanfare.workflow_id", &*workflow)];
                let post = post.0.into_bytes();
                trace::of_post(post, "start workflow", SpanKind::Producer, &attributes, sent).await
            }
            None => sent.await,
        }
    }

    async fn send(&self, id: i64, message: &Message) -> Result<(), SendError> {
        match message {
            Message::PublishPost(job) => self.publish(job).await,
            Message::ResumePost(job) => self.resume(job).await,
            Message::PostChanged(job) if job.is_far_off => self.end(id, job).await,
            Message::PostChanged(job) => self.change(job).await,
            Message::PostCanceled { post, owner } => self.cancel(id, *post, *owner).await,
            Message::RetryTarget { target, post, owner } => self.retry_now(*target, *post, *owner).await,
            Message::ReviveTarget { target, post, owner, version } => {
                self.revive(publish_post::target_input(*post, *owner, *version, target)).await
            }
            Message::DrainEndpoint(endpoint) => self.drain(*endpoint).await,
            Message::DisconnectAccount(disconnection) => self.disconnect(disconnection).await,
            Message::ImportPosts(import) => self.import(import).await,
            Message::RenewGrant(grant_ref) => self.renew(grant_ref).await,
            Message::ProcessMedia(job) => self.process(job).await,
        }
    }

    async fn publish(&self, job: &PostJob) -> Result<(), SendError> {
        self.start(PublishPost::run, publish_post::Input::new(job.clone(), self.time_scale)).await
    }

    /// Has a post's workflow go on with targets that have begun. If it runs for others, it starts those that it does not
    /// work on; a target that has a workflow of its own is left alone.
    async fn resume(&self, job: &PostJob) -> Result<(), SendError> {
        let input = publish_post::Input::resumed(job.clone(), self.time_scale);
        self.signal_or_start(PublishPost::run, input, PublishPost::resume, Lenient::new(job.clone())).await
    }

    /// Tells a post's workflow of a newer version of the post.
    async fn change(&self, job: &PostJob) -> Result<(), SendError> {
        let input = publish_post::Input::new(job.clone(), self.time_scale);
        let update = Lenient::new(job.clone());
        self.signal_or_start(PublishPost::run, input, PublishPost::post_changed, update).await
    }

    /// Ends the workflow of a post that was moved beyond the scheduling horizon. Another version may have started it
    /// again by then, and ignores the signal.
    async fn end(&self, message: i64, job: &PostJob) -> Result<(), SendError> {
        self.after_start(message, job.post, job.owner).await?;
        let update = Lenient::new(job.clone());
        let id = publish_post::id(job.post);
        self.signal::<PublishPost, _>(id, PublishPost::post_changed, update).await.map(drop)
    }

    /// Cancels a post's workflow.
    async fn cancel(&self, message: i64, post: PostId, owner: Owner) -> Result<(), SendError> {
        self.after_start(message, post, owner).await?;
        // A workflow that has ended needs no cancellation.
        let id = publish_post::id(post);
        self.signal::<PublishPost, _>(id, PublishPost::cancel, Lenient::new(())).await.map(drop)
    }

    /// Fails while an older message that starts the workflow of a post is to be sent.
    async fn after_start(&self, message: i64, post: PostId, owner: Owner) -> Result<(), SendError> {
        // A workflow that is yet to be started would wait until the time of a deleted post. Asked before the
        // signal: another process may start the workflow between the two.
        match answered(outbox::starts_later(&self.db, message, owner.org, post)).await {
            Ok(false) => Ok(()),
            Ok(true) => {
                Err(SendError::Unavailable(anyhow!("the message that starts the workflow comes first")))
            }
            Err(error) => Err(SendError::Unavailable(error.into())),
        }
    }

    /// Signals a target's workflow. If it is gone, the post's workflow starts it again.
    async fn retry_now(&self, target: TargetId, post: PostId, owner: Owner) -> Result<(), SendError> {
        let id = publish_target::id(target);
        if self.signal::<PublishTarget, _>(id, PublishTarget::retry_now, Lenient::new(())).await? {
            return Ok(());
        }
        let resuming = async {
            let mut connection = self.db.acquire().await?;
            posts::resumption(&mut connection, owner, post).await
        };
        match answered(resuming).await.map_err(|error| SendError::Unavailable(error.into()))? {
            Some(Message::ResumePost(job)) => self.resume(&job).await,
            Some(Message::PublishPost(job)) => self.publish(&job).await,
            _ => Ok(()),
        }
    }

    /// Fails the targets of a post whose workflow Temporal refuses to start, so that none stays open.
    async fn fail_targets(&self, job: &PostJob) -> Result<(), store::Error> {
        for TargetRef { target, .. } in &job.targets {
            let key = publishing::TargetKey {
                owner: job.owner,
                post: job.post,
                target: *target,
                version: job.version,
            };
            let failure = Failure::network(UNSTARTED, false);
            let end = publishing::End::Dead { failure, source: ErrorSource::Service };
            publishing::settle(&self.db, key, &end, None, (self.now)()).await?;
        }
        Ok(())
    }

    /// Publishes a target again. The run that saw it end may not have ended itself: the signal makes it go on.
    async fn revive(&self, target: TargetInput) -> Result<(), SendError> {
        let input = publish_target::Input::new(target, self.time_scale);
        self.signal_or_start(PublishTarget::run, input, PublishTarget::retry_now, Lenient::new(())).await
    }

    async fn drain(&self, endpoint: EndpointRef) -> Result<(), SendError> {
        let input = drain_endpoint::Input { endpoint, time_scale: self.time_scale };
        self.signal_or_start(DrainEndpoint::run, input, DrainEndpoint::wake, Lenient::new(())).await
    }

    async fn disconnect(&self, disconnection: &Disconnection) -> Result<(), SendError> {
        let (disconnection, time_scale) = (disconnection.clone(), self.time_scale);
        let id = renew_grant::id(disconnection.account);
        let version = Lenient::new(disconnection.grant_version);
        let input = disconnect_account::Input { disconnection, time_scale };
        self.start(DisconnectAccount::run, input).await?;
        // Nothing of the grant is to be renewed any more.
        self.signal::<RenewGrant, _>(id, RenewGrant::disconnected, version).await.map(drop)
    }

    async fn import(&self, import: &ImportRef) -> Result<(), SendError> {
        self.start(ImportPosts::run, import_posts::Input { import: import.clone(), tries: 0 }).await
    }

    async fn renew(&self, grant_ref: &ExpiringGrant) -> Result<(), SendError> {
        let platform = platforms::get(&grant_ref.platform);
        let Some(rest) = platform.and_then(|platform| platform.auth.renewal_age()) else {
            return Ok(());
        };
        let (grant_ref, time_scale) = (grant_ref.clone(), self.time_scale);
        let update = Lenient::new(grant_ref.clone());
        let input = renew_grant::Input { grant_ref, rest, time_scale };
        self.signal_or_start(RenewGrant::run, input, RenewGrant::grant_updated, update).await
    }

    async fn process(&self, job: &MediaJob) -> Result<(), SendError> {
        let input = process_media::Input { job: job.clone(), time_scale: self.time_scale };
        self.start(ProcessMedia::run, input).await
    }

    /// Starts a workflow, unless it runs.
    async fn start<W>(&self, workflow: W, input: W::Input) -> Result<(), SendError>
    where
        W: HasWorkflowDefinition,
        W::Input: Start + Send,
    {
        let options = self.options(&input);
        start_result(self.temporal.start_workflow(workflow, input, options).await)
    }

    /// Signals a workflow, which is started if it does not run.
    async fn signal_or_start<W, S>(
        &self,
        workflow: W,
        input: W::Input,
        signal: S,
        body: S::Input,
    ) -> Result<(), SendError>
    where
        W: HasWorkflowDefinition,
        W::Input: Start + Send,
        S: SignalDefinition<Workflow = W::Run>,
        S::Input: Send,
    {
        let options = self.options(&input);
        start_result(self.temporal.signal_with_start_workflow(workflow, input, signal, body, options).await)
    }

    /// Returns the start options of a workflow that belongs to a row: a running one is left alone, and one that has
    /// ended is started again, since the row determines what is left to do. The queue is fair to organizations.
    fn options(&self, workflow: &impl Start) -> WorkflowStartOptions {
        WorkflowStartOptions::new(workflow.queue(&self.queue), workflow.id())
            .id_reuse_policy(WorkflowIdReusePolicy::AllowDuplicate)
            .id_conflict_policy(WorkflowIdConflictPolicy::UseExisting)
            .search_attributes(workflow.search_attributes())
            .priority(queue::turn(workflow.owner().org))
            .static_summary(workflow.summary())
            .build()
    }

    /// Signals a workflow; false if it does not run.
    async fn signal<W, S>(&self, id: String, signal: S, input: S::Input) -> Result<bool, SendError>
    where
        W: HasWorkflowDefinition,
        S: SignalDefinition<Workflow = W::Run>,
        S::Input: Send,
    {
        let handle = self.temporal.get_workflow_handle::<W>(id);
        signal_result(handle.signal(signal, input, WorkflowSignalOptions::default()).await)
    }
}

/// Ends statements that get no answer.
pub(crate) async fn answered<T>(
    statements: impl Future<Output = Result<T, store::Error>>,
) -> Result<T, store::Error> {
    tokio::time::timeout(STATEMENT_TIMEOUT, statements).await.unwrap_or(Err(store::Error::PoolTimedOut))
}

/// Separates the messages that wake an endpoint which another one of them wakes: their deliveries were all committed
/// before, so that one signal is enough.
fn without_repetitions(claimed: Vec<Claimed>) -> (Vec<Claimed>, Vec<Claimed>) {
    let mut seen = HashSet::new();
    claimed.into_iter().partition(|message| endpoint(message).is_none_or(|webhook| seen.insert(webhook)))
}

/// Returns the endpoint that a message wakes.
fn endpoint(claimed: &Claimed) -> Option<WebhookId> {
    match &claimed.message {
        Ok(Message::DrainEndpoint(endpoint)) => Some(endpoint.webhook),
        _ => None,
    }
}

/// Returns the post whose workflow a message starts.
fn started_post(message: &Message) -> Option<PostId> {
    match message {
        Message::PublishPost(job) | Message::ResumePost(job) | Message::PostChanged(job) => {
            (!job.is_far_off).then_some(job.post)
        }
        Message::PostCanceled { .. }
        | Message::RetryTarget { .. }
        | Message::ReviveTarget { .. }
        | Message::DrainEndpoint(_)
        | Message::DisconnectAccount(_)
        | Message::ImportPosts(_)
        | Message::RenewGrant(_)
        | Message::ProcessMedia(_) => None,
    }
}

/// Reason why a message was not sent.
enum SendError {
    /// This version can't read it.
    Unreadable(String),
    /// Temporal, its namespace or the database is unavailable.
    Unavailable(anyhow::Error),
    /// Temporal refuses the request.
    Refused(anyhow::Error),
}

impl SendError {
    fn from_status(status: Status) -> Self {
        match status.code() {
            code if is_unauthorized(code) => Self::Unavailable(anyhow!("Temporal says {}", shown(&status))),
            Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => {
                Self::Refused(anyhow::Error::new(status))
            }
            // NotFound: the namespace does not exist yet, or Temporal is starting. Unimplemented: a proxy without a
            // route to Temporal says so too.
            _ => Self::Unavailable(anyhow::Error::new(status)),
        }
    }
}

/// Maps the result of a signal; false if the workflow does not run.
fn signal_result(outcome: Result<(), WorkflowInteractionError>) -> Result<bool, SendError> {
    match outcome {
        Ok(()) => Ok(true),
        Err(WorkflowInteractionError::NotFound(status)) if !is_namespace(&status) => Ok(false),
        Err(WorkflowInteractionError::NotFound(status)) => {
            Err(SendError::Unavailable(anyhow::Error::new(status)))
        }
        Err(WorkflowInteractionError::Rpc(status)) => Err(SendError::from_status(status)),
        Err(error) => Err(SendError::Refused(error.into())),
    }
}

/// Returns true if the namespace was not found, rather than the workflow.
fn is_namespace(status: &Status) -> bool {
    // https://github.com/temporalio/api/blob/master/temporal/api/errordetails/v1/message.proto
    let detail = b"NamespaceNotFoundFailure";
    status.details().windows(detail.len()).any(|window| window == detail)
}

/// Maps the result of a start, which also succeeds if the workflow was already started.
fn start_result<T>(outcome: Result<T, WorkflowStartError>) -> Result<(), SendError> {
    match outcome {
        Ok(_) | Err(WorkflowStartError::AlreadyStarted { .. }) => Ok(()),
        Err(WorkflowStartError::Rpc(status)) if status.code() == Code::AlreadyExists => Ok(()),
        Err(WorkflowStartError::Rpc(status)) => Err(SendError::from_status(status)),
        Err(error) => Err(SendError::Refused(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{Mode, OrgId};
    use uuid::Uuid;

    fn status(code: Code, detail: &'static str) -> Status {
        Status::with_details(code, "said the server", detail.as_bytes().into())
    }

    fn name<T>(result: &Result<T, SendError>) -> &'static str {
        match result {
            Ok(_) => "sent",
            Err(SendError::Unavailable(_)) => "unavailable",
            Err(SendError::Refused(_)) => "refused",
            Err(SendError::Unreadable(_)) => "unreadable",
        }
    }

    #[test]
    fn the_answers_to_a_signal_are_mapped() {
        let namespace = "type.googleapis.com/temporal.api.errordetails.v1.NamespaceNotFoundFailure";
        let workflow = "type.googleapis.com/temporal.api.errordetails.v1.NotFoundFailure";
        let missing = |detail| WorkflowInteractionError::NotFound(status(Code::NotFound, detail));
        assert!(matches!(signal_result(Ok(())), Ok(true)));
        assert!(matches!(signal_result(Err(missing(workflow))), Ok(false)));
        assert_eq!(name(&signal_result(Err(missing(namespace)))), "unavailable");
        for (code, expected) in [
            (Code::Unavailable, "unavailable"),
            (Code::DeadlineExceeded, "unavailable"),
            (Code::ResourceExhausted, "unavailable"),
            (Code::InvalidArgument, "refused"),
            (Code::PermissionDenied, "unavailable"),
            (Code::Unauthenticated, "unavailable"),
            (Code::Unimplemented, "unavailable"),
        ] {
            let answered = signal_result(Err(WorkflowInteractionError::Rpc(status(code, ""))));
            assert_eq!(name(&answered), expected, "{code:?}");
        }
    }

    #[test]
    fn messages_that_wake_the_same_endpoint_are_sent_once() {
        let owner = Owner { org: OrgId(Uuid::nil()), mode: Mode::Live };
        let wake = |id, webhook: u128| Claimed {
            id,
            message: Ok(Message::DrainEndpoint(EndpointRef {
                webhook: WebhookId(Uuid::from_u128(webhook)),
                owner,
            })),
            attempts: 1,
        };
        let other = |id| Claimed { id, message: Err("of tomorrow".to_owned()), attempts: 1 };
        let all = vec![wake(1, 7), other(2), wake(3, 8), wake(4, 7), other(5), wake(6, 7)];
        let ids = |all: Vec<Claimed>| all.into_iter().map(|message| message.id).collect::<Vec<_>>();
        let (sent, repeated) = without_repetitions(all);
        assert_eq!((ids(sent), ids(repeated)), (vec![1, 2, 3, 5], vec![4, 6]));
    }

    #[test]
    fn the_answers_to_a_start_are_mapped() {
        let already =
            WorkflowStartError::AlreadyStarted { run_id: None, source: status(Code::AlreadyExists, "") };
        assert_eq!(name(&start_result(Err::<(), _>(already))), "sent");
        for (code, expected) in [
            (Code::AlreadyExists, "sent"),
            (Code::NotFound, "unavailable"),
            (Code::Unavailable, "unavailable"),
            (Code::PermissionDenied, "unavailable"),
            (Code::Unauthenticated, "unavailable"),
            (Code::Unimplemented, "unavailable"),
            (Code::InvalidArgument, "refused"),
        ] {
            let answered = start_result(Err::<(), _>(WorkflowStartError::Rpc(status(code, ""))));
            assert_eq!(name(&answered), expected, "{code:?}");
        }
    }
}
