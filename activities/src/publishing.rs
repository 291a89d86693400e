//! At most once: the protocol that every publish follows, written here for all platforms.
//!
//! 1. An id that was captured is final: nobody is called.
//! 2. An intent without outcome is looked up before anything else.
//! 3. `prepare` goes on from the checkpoint in the row.
//! 4. The intent is written, fenced; then `commit`; then the id is captured, in the same breath.
//! 5. One transaction settles the target and tells the world.
//!
//! A call takes [`platforms::TIMEOUT`] at most. An attempt whose worker died without a word may still
//! have one on its way; only when that time has passed is a look-up's "absent" believed.

#![expect(
    dead_code,
    reason = "the macro makes a marker per activity; workflows use those of the declarations"
)]

use crate::{
    Deps,
    grants::{self, Line, Refused, Unrefreshed},
    media::{self, Unresolved},
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    ErrorCode, ErrorSource, Failure, TargetStatus,
    retry::{self, Spent},
};
use platforms::{
    Checkpoint, Checkpoints, Committed, Located, Platform, Prepared, Publication, Publishing as Publishes,
    Repeat, ReplyTo, Session,
};
use std::{future::Future, sync::Arc, time::Duration};
use store::publishing::{self as facts, Attempt, Begun, End, Entry, Key};
use temporalio_client::WorkflowSignalOptions;
use temporalio_common::error::{ApplicationErrorCategory, ApplicationFailure};
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tracing::{info, warn};
use workflows::{
    activities::{GRANT_LOST, Polled, Published, Refusal, Settled, Settlement, Task, Why, definition},
    publish_target::{self, PublishTarget},
};

/// A platform may be busy with a post this long where its page names no window of its own.
const WINDOW: Duration = Duration::from_secs(30 * 60);
/// Attempts beyond the budget: they only look for what the last one may have left behind.
const LOOKS: u32 = 3;
/// How often a long attempt says that it lives.
const BEAT: Duration = Duration::from_secs(5);
/// How soon an attempt that lost its turn may see how things stand.
const YIELD: Duration = Duration::from_secs(5);

/// The activities of publishing.
pub(crate) struct Publishing {
    pub(crate) deps: Arc<Deps>,
}

#[activities]
impl Publishing {
    #[activity(definition = definition::Publish)]
    pub(crate) async fn publish(
        self: Arc<Self>,
        cx: ActivityContext,
        task: Task,
    ) -> Result<Published, ActivityError> {
        alive(&cx, self.deps.attempt(&task)).await
    }

    #[activity(definition = definition::Poll)]
    pub(crate) async fn poll(
        self: Arc<Self>,
        _cx: ActivityContext,
        task: Task,
    ) -> Result<Polled, ActivityError> {
        self.deps.look(&task).await
    }

    #[activity(definition = definition::RefreshToken)]
    pub(crate) async fn refresh_token(
        self: Arc<Self>,
        _cx: ActivityContext,
        refusal: Refusal,
    ) -> Result<(), ActivityError> {
        let refused = Refused {
            owner: refusal.task.owner,
            account: refusal.task.account,
            version: refusal.grant_version,
            target: Some(key(&refusal.task)),
        };
        match grants::refresh(&self.deps, refused).await? {
            Ok(()) => Ok(()),
            Err(Unrefreshed::Lost(failure)) => Err(ActivityError::application(
                ApplicationFailure::builder(anyhow::anyhow!(failure.message))
                    .type_name(GRANT_LOST.to_owned())
                    .non_retryable(true)
                    .category(ApplicationErrorCategory::Benign)
                    .build(),
            )),
            Err(Unrefreshed::Later(failure)) => Err(repeat(&failure, None)),
        }
    }

    #[activity(definition = definition::Settle)]
    pub(crate) async fn settle(
        self: Arc<Self>,
        _cx: ActivityContext,
        settlement: Settlement,
    ) -> Result<Settled, ActivityError> {
        Ok(self.deps.conclude(&settlement).await?)
    }
}

/// The row that a task is about.
fn key(task: &Task) -> Key {
    Key { owner: task.owner, post: task.post, target: task.target, version: task.version }
}

/// Why an attempt went no further.
enum Halt {
    /// The platform is busy; look again after the pause.
    Processing(Duration),
    /// The platform, or the way to it, refused.
    Failure(Failure),
    /// It is too early to tell whether it is live; look again after the pause.
    Early(Failure, Duration),
    /// No look-up can tell whether it is live; to try again might double it.
    Undecidable(Failure),
    /// Another attempt has taken the target up.
    Superseded,
    /// Something of ours is broken.
    Fault(anyhow::Error),
}

impl From<store::Error> for Halt {
    fn from(error: store::Error) -> Self {
        Self::Fault(error.into())
    }
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl Deps {
    /// One attempt to publish a target.
    async fn attempt(&self, task: &Task) -> Result<Published, ActivityError> {
        let attempt = match facts::begin(&self.db, key(task), (self.now)()).await? {
            Begun::Attempt(attempt) => attempt,
            Begun::Stale => return Ok(Published::Stale),
            Begun::Ended(status) => return Ok(Published::Ended { status }),
        };
        let line = match Line::open(self, task.owner, &attempt.account).await? {
            Ok(line) => line,
            Err(failure) => {
                let failure = Failure { doubt: attempt.is_in_doubt(), ..failure };
                return self.give_up(&attempt, failure).await;
            }
        };
        match self.advance(&line, &attempt).await {
            Ok(status) => {
                info!(
                    target.id = %task.target, post.id = %task.post, org.id = %task.owner.org, platform = task.platform,
                    attempt = attempt.attempts, "Published target {} on {}", task.target, task.platform
                );
                Ok(Published::Ended { status })
            }
            Err(Halt::Processing(pause)) => {
                let now = (self.now)();
                let since = attempt.processing_since.unwrap_or(now);
                facts::processing(&self.db, task.target, attempt.fence, Some(since), Some(now + pause))
                    .await?;
                let spent = (now - since).to_std().unwrap_or_default();
                let window = window(line.platform).saturating_sub(spent).max(Duration::from_secs(1));
                Ok(Published::Processing { window, pause })
            }
            Err(Halt::Failure(failure)) => self.failed(task, &attempt, failure).await,
            Err(Halt::Early(failure, wait)) => {
                // Nothing was published or tried: the budget is for what is.
                facts::forgive(&self.db, task.target, Spent { attempts: 1, token_attempts: 0 }).await?;
                self.again(task, &attempt, failure, wait).await
            }
            Err(Halt::Undecidable(failure)) => self.give_up(&attempt, failure).await,
            Err(Halt::Superseded) => {
                let failure = Failure::network("another attempt took the target up", false);
                Err(repeat(&failure, Some(self.pace.of(YIELD))))
            }
            Err(Halt::Fault(error)) => Err(error.into()),
        }
    }

    /// Publishes what is not live yet, container by container.
    async fn advance(&self, line: &Line<'_>, attempt: &Attempt) -> Result<TargetStatus, Halt> {
        let mut ids: Vec<String> = Vec::with_capacity(attempt.entries.len());
        let mut status = attempt.status;
        for entry in &attempt.entries {
            let keeper = Keeper { deps: self, attempt, position: entry.position };
            let cx = line.session(&keeper);
            let id = match &entry.platform_id {
                Some(id) => id.clone(),
                None => {
                    let post = self.publication(attempt, entry, &ids).await;
                    let post = post.map_err(|unresolved| self.halted(entry, unresolved))?;
                    self.publish(&cx, line.platform, attempt, entry, &post).await?
                }
            };
            if entry.position == 0 && status != TargetStatus::Published {
                // Live from here on, whatever becomes of the rest.
                let url = line.platform.permalink(&cx, &id).await;
                let url = url.map_err(|failure| Failure { doubt: false, ..failure })?;
                let end = End::Live { id: id.clone(), url: Some(url) };
                status = facts::settle(&self.db, attempt.key, &end, (self.now)()).await?;
            }
            ids.push(id);
        }
        if attempt.entries.len() > 1 {
            facts::complete(&self.db, attempt.key, (self.now)()).await?;
        }
        Ok(status)
    }

    /// Publishes one container, unless an earlier attempt did.
    async fn publish(
        &self,
        cx: &Session<'_>,
        platform: &'static dyn Platform,
        attempt: &Attempt,
        entry: &Entry,
        post: &Publication,
    ) -> Result<String, Halt> {
        let (target, position, fence) = (attempt.key.target, entry.position, attempt.fence);
        let at = Checkpoint(entry.checkpoint.clone());
        if let Some(begun) = entry.commit_begun_at {
            match self.located(cx, platform, entry, post, &at, begun).await? {
                Some(id) => return Ok(self.captured(attempt, position, &id).await?),
                None => facts::withdraw(&self.db, target, position, fence).await?,
            }
        }
        if attempt.is_leaving {
            return Err(Halt::Failure(Failure::revoked("the account is not connected any more")));
        }
        if attempt.attempts > retry::ATTEMPTS {
            let code = entry.doubt_code.unwrap_or(ErrorCode::NetworkError);
            let message = "the last attempt got no answer and published nothing; the budget is spent";
            return Err(Halt::Undecidable(Failure { doubt: false, ..Failure::new(code, message) }));
        }
        // Nothing that prepares can publish, however its call ended.
        let prepared = platform.prepare(cx, post, at).await;
        let at = match prepared.map_err(|failure| Failure { doubt: false, ..failure })? {
            Prepared::Ready(at) => at,
            Prepared::Processing { at, poll_after } => {
                cx.checkpoints.save(&at).await?;
                return Err(Halt::Processing(poll_after));
            }
        };
        if !facts::intend(&self.db, target, position, fence, &at.0, (self.now)()).await? {
            return Err(Halt::Superseded);
        }
        // From here until we hear back the post may be live.
        match platform.commit(cx, post, &at).await {
            Ok(Committed::Live(id)) => Ok(self.captured(attempt, position, &id).await?),
            Ok(Committed::Accepted { at, poll_after }) => {
                facts::accept(&self.db, target, position, &at.0, (self.now)()).await?;
                Err(Halt::Processing(poll_after))
            }
            Err(failure) if failure.doubt && !failure.code.is_permanent() => {
                facts::doubt(&self.db, target, position, fence, failure.code, (self.now)()).await?;
                Err(Halt::Failure(failure))
            }
            Err(failure) => match entry.commit_begun_at {
                // It says that it has the post already, and an earlier call of ours may have brought it.
                Some(begun) if failure.doubt => {
                    let post = Publication { commit_begun_at: Some(begun), ..post.clone() };
                    let code = entry.doubt_code.unwrap_or(ErrorCode::NetworkError);
                    facts::doubt(&self.db, target, position, fence, code, (self.now)()).await?;
                    let found = platform.locate(cx, &post, &at).await;
                    if let Ok(Located::Live(id)) = found {
                        return Ok(self.captured(attempt, position, &id).await?);
                    }
                    // Our own call is the likeliest original: its post will show up in the reads.
                    let wait = Some(self.settling(platform));
                    Err(Halt::Failure(Failure {
                        doubt: true,
                        retry_after: wait,
                        ..Failure::new(code, failure.message)
                    }))
                }
                // The original is somebody else's, or the refusal is plain.
                _ => {
                    facts::withdraw(&self.db, target, position, fence).await?;
                    Err(Halt::Failure(Failure { doubt: false, ..failure }))
                }
            },
        }
    }

    /// Whether a commit that was begun has happened: its id, or `None` when it surely has not.
    async fn located(
        &self,
        cx: &Session<'_>,
        platform: &'static dyn Platform,
        entry: &Entry,
        post: &Publication,
        at: &Checkpoint,
        begun: DateTime<Utc>,
    ) -> Result<Option<String>, Halt> {
        let code = entry.doubt_code.unwrap_or(ErrorCode::NetworkError);
        match platform.locate(cx, post, at).await {
            Ok(Located::Live(id)) => Ok(Some(id)),
            Ok(Located::Processing { poll_after }) => Err(Halt::Processing(poll_after)),
            Ok(Located::Absent) if entry.accepted => Err(Halt::Processing(YIELD)),
            Ok(Located::Absent) => {
                let believable = match (platform.capabilities().repeat, entry.commit_ended_at) {
                    (Repeat::Harmless, _) => begun,
                    (Repeat::Doubles { .. }, Some(ended)) => ended + self.settling(platform),
                    // Nobody heard the call end: it may still be on its way.
                    (Repeat::Doubles { .. }, None) => {
                        begun + self.pace.of(platforms::TIMEOUT) + self.settling(platform)
                    }
                };
                let rest = believable - (self.now)();
                if rest <= TimeDelta::zero() {
                    return Ok(None);
                }
                let message = "no answer came, and it is too early to say that nothing was published";
                Err(Halt::Early(Failure::new(code, message), rest.to_std().unwrap_or_default()))
            }
            Ok(Located::Unknown) => Err(undecidable(code, "it has no way to tell")),
            Err(failure) if failure.code.is_permanent() => Err(undecidable(code, &failure.message)),
            Err(failure) => Err(Halt::Failure(Failure { doubt: true, ..failure })),
        }
    }

    /// Keeps an id before anything else can happen. A database that is away is waited for here, as
    /// long as the attempt lives: whoever looks later may have no way to find the post again.
    async fn captured(&self, attempt: &Attempt, position: u16, id: &str) -> Result<String, store::Error> {
        loop {
            match facts::capture(&self.db, attempt.key.target, position, id, (self.now)()).await {
                Err(error) if store::is_unavailable(&error) => {
                    warn!(target.id = %attempt.key.target, %error, "Waiting for the database to capture a published post");
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                captured => return captured,
            }
        }
    }

    /// A refusal, and what is to be done about it.
    async fn failed(
        &self,
        task: &Task,
        attempt: &Attempt,
        failure: Failure,
    ) -> Result<Published, ActivityError> {
        let now = (self.now)();
        let refused = failure.code == ErrorCode::TokenExpired;
        let spent =
            Spent { attempts: attempt.attempts, token_attempts: attempt.token_attempts + u32::from(refused) };
        let wait = match (retry::next(&failure, spent, (self.jitter)()), failure.retry_after) {
            // Refreshed at once; the wait is for what a refresh can't mend.
            (Some(_), _) if refused => {
                facts::fail(&self.db, attempt, &failure, now, now).await?;
                self.tell(task, failure.code).await;
                return Ok(Published::TokenRefused { grant_version: attempt.account.grant_version });
            }
            (Some(wait), Some(_)) => wait,
            (Some(wait), None) => self.pace.of(wait),
            // The budget is spent, but the last call may have gone through.
            (None, asked) if failure.doubt && spent.attempts < retry::ATTEMPTS + LOOKS => {
                let settling =
                    platforms::get(&task.platform).map_or(YIELD, |platform| self.settling(platform));
                asked.unwrap_or(settling).max(settling)
            }
            (None, _) => return self.give_up(attempt, failure).await,
        };
        self.again(task, attempt, failure, wait).await
    }

    /// A failure that is followed by another attempt.
    async fn again(
        &self,
        task: &Task,
        attempt: &Attempt,
        failure: Failure,
        wait: Duration,
    ) -> Result<Published, ActivityError> {
        let now = (self.now)();
        let next = now + wait;
        facts::fail(&self.db, attempt, &failure, next, now).await?;
        self.tell(task, failure.code).await;
        warn!(
            target.id = %task.target, post.id = %task.post, org.id = %task.owner.org, platform = task.platform,
            attempt = attempt.attempts, error.code = %failure.code, "Target {} failed on {}, next try at {next}",
            task.target, task.platform
        );
        Err(repeat(&failure, Some(wait)))
    }

    /// Ends a target that can't be published.
    async fn give_up(&self, attempt: &Attempt, mut failure: Failure) -> Result<Published, ActivityError> {
        let now = (self.now)();
        if failure.code == ErrorCode::TokenExpired && attempt.account.grant_sealed.is_some() {
            let account = &attempt.account;
            facts::lose_grant(&self.db, attempt.key.owner, account.id, account.grant_version, &failure, now)
                .await?;
        }
        if failure.doubt {
            failure.message = format!("{}; it may be live: look before posting again", failure.message);
        }
        let source = failure.code.source();
        warn!(
            target.id = %attempt.key.target, post.id = %attempt.key.post, org.id = %attempt.key.owner.org,
            platform = attempt.account.platform, error.code = %failure.code, "Gave target {} up", attempt.key.target
        );
        let status = facts::settle(&self.db, attempt.key, &End::Dead { failure, source }, now).await?;
        Ok(Published::Ended { status })
    }

    /// One container as its platform is handed it.
    async fn publication(
        &self,
        attempt: &Attempt,
        entry: &Entry,
        ids: &[String],
    ) -> Result<Publication, Unresolved> {
        Ok(Publication {
            target: attempt.key.target,
            position: entry.position,
            text: entry.content.clone(),
            media: media::resolve(self, attempt.key.owner, &entry.media).await?,
            settings: attempt.settings.clone(),
            reply_to: match (ids.first(), ids.last()) {
                (Some(root), Some(parent)) => Some(ReplyTo { root: root.clone(), parent: parent.clone() }),
                _ => None,
            },
            created_at: attempt.created_at,
            commit_begun_at: entry.commit_begun_at,
        })
    }

    /// What an attempt comes to whose media can't be handed over.
    fn halted(&self, entry: &Entry, unresolved: Unresolved) -> Halt {
        match unresolved {
            // A call was made with them, and without them nothing tells what became of it.
            Unresolved::Never(failure) if entry.commit_begun_at.is_some() => {
                Halt::Undecidable(Failure { doubt: true, ..failure })
            }
            Unresolved::Never(failure) => Halt::Failure(failure),
            Unresolved::Early(failure) => Halt::Early(failure, self.pace.of(YIELD)),
            Unresolved::Fault(error) => Halt::Fault(error),
        }
    }

    /// One look at a platform that is still processing.
    async fn look(&self, task: &Task) -> Result<Polled, ActivityError> {
        let attempt = match facts::begin(&self.db, key(task), (self.now)()).await? {
            Begun::Attempt(attempt) => attempt,
            Begun::Stale => return Ok(Polled::Ready),
            Begun::Ended(status) => return Ok(Polled::Ended { status }),
        };
        let line = match Line::open(self, task.owner, &attempt.account).await? {
            Ok(line) => line,
            Err(failure) => {
                let failure = Failure { doubt: attempt.is_in_doubt(), ..failure };
                return polled(self.give_up(&attempt, failure).await?);
            }
        };
        let Some(entry) = attempt.entries.iter().find(|entry| entry.platform_id.is_none()) else {
            return Ok(Polled::Ready);
        };
        let ids: Vec<_> = attempt.entries.iter().map_while(|entry| entry.platform_id.clone()).collect();
        let keeper = Keeper { deps: self, attempt: &attempt, position: entry.position };
        let cx = line.session(&keeper);
        let post = match self.publication(&attempt, entry, &ids).await {
            Ok(post) => post,
            Err(Unresolved::Never(failure)) => return polled(self.give_up(&attempt, failure).await?),
            Err(Unresolved::Early(failure)) => return Err(repeat(&failure, Some(self.pace.of(YIELD)))),
            Err(Unresolved::Fault(error)) => return Err(error.into()),
        };
        let at = Checkpoint(entry.checkpoint.clone());
        let looked = match entry.commit_begun_at {
            Some(_) => match line.platform.locate(&cx, &post, &at).await {
                Ok(Located::Live(id)) => {
                    self.captured(&attempt, entry.position, &id).await?;
                    Ok(None)
                }
                Ok(Located::Processing { poll_after }) => Ok(Some(poll_after)),
                Ok(Located::Absent) if entry.accepted => Ok(Some(YIELD)),
                // What this means is for an attempt to decide.
                Ok(Located::Absent | Located::Unknown) => Ok(None),
                Err(failure) => Err(failure),
            },
            // An attempt knows what that comes to.
            None if attempt.is_leaving => Ok(None),
            None => match line.platform.prepare(&cx, &post, at).await {
                Ok(Prepared::Ready(at)) => keeper.save(&at).await.map(|()| None),
                Ok(Prepared::Processing { at, poll_after }) => {
                    keeper.save(&at).await.map(|()| Some(poll_after))
                }
                Err(failure) => Err(failure),
            },
        };
        match looked {
            Ok(None) => {
                facts::processing(&self.db, task.target, attempt.fence, attempt.processing_since, None)
                    .await?;
                Ok(Polled::Ready)
            }
            Ok(Some(pause)) => {
                let next = (self.now)() + pause;
                facts::processing(&self.db, task.target, attempt.fence, attempt.processing_since, Some(next))
                    .await?;
                let busy = Failure::network(format!("{} is still processing", task.platform), false);
                Err(repeat(&busy, Some(pause)))
            }
            Err(failure) if failure.code == ErrorCode::TokenExpired && !failure.revoked => {
                Ok(Polled::TokenRefused { grant_version: attempt.account.grant_version })
            }
            Err(failure) if failure.code.is_permanent() || failure.revoked => {
                polled(self.give_up(&attempt, failure).await?)
            }
            Err(failure) => {
                let wait = failure.retry_after;
                Err(repeat(&failure, wait))
            }
        }
    }

    /// Decides what becomes of a target whose attempts gave no answer.
    async fn conclude(&self, settlement: &Settlement) -> anyhow::Result<Settled> {
        let (task, key, now) = (&settlement.task, key(&settlement.task), (self.now)());
        let Some(standing) = facts::standing(&self.db, key).await? else {
            return Ok(Settled::Ended { status: TargetStatus::Canceled });
        };
        let lost = match standing.status {
            TargetStatus::Dead | TargetStatus::Canceled => {
                return Ok(Settled::Ended { status: standing.status });
            }
            // What followed the main container is lost, nothing else.
            TargetStatus::Published => standing.error_message.clone(),
            _ => None,
        };
        let again = |attempt: u32| Settled::Again { pause: self.pace.of(retry::ceiling(attempt)) };
        let (code, mut message, source) = match &settlement.why {
            Why::WindowClosed => (
                ErrorCode::PollTimeout,
                format!("{} was still processing when its window closed", task.platform),
                None,
            ),
            Why::GrantLost { message } => (ErrorCode::TokenExpired, message.clone(), None),
            Why::RefreshFailed { message, .. } if standing.attempts < retry::ATTEMPTS => {
                // No fault of the grant: only the attempts are used up by it.
                facts::forgive(&self.db, task.target, Spent { attempts: 0, token_attempts: 1 }).await?;
                facts::note(&self.db, key, "refresh", &format!("No fresh token yet: {message}"), now).await?;
                return Ok(again(standing.attempts));
            }
            Why::RefreshFailed { message, code } => (*code, message.clone(), None),
            Why::Unanswered { .. } if standing.attempts < retry::ATTEMPTS => {
                return Ok(again(standing.attempts));
            }
            Why::Unanswered { .. } if standing.in_doubt && standing.attempts < retry::ATTEMPTS + LOOKS => {
                return Ok(again(1));
            }
            Why::Unanswered { message } => (
                standing.error_code.unwrap_or(ErrorCode::NetworkError),
                lost.or(standing.error_message).unwrap_or_else(|| message.clone()),
                Some(ErrorSource::Service),
            ),
            Why::Stopped => (
                standing.error_code.unwrap_or(ErrorCode::NetworkError),
                "an operator stopped it in Temporal".to_owned(),
                Some(ErrorSource::Service),
            ),
        };
        if standing.in_doubt {
            message = format!("{message}; it may be live: look before posting again");
        }
        let failure = Failure::new(code, message);
        let source = source.unwrap_or(code.source());
        let status = facts::settle(&self.db, key, &End::Dead { failure, source }, now).await?;
        Ok(Settled::Ended { status })
    }

    /// How long a platform's reads may lag behind its writes.
    fn settling(&self, platform: &dyn Platform) -> Duration {
        match platform.capabilities().repeat {
            Repeat::Harmless => Duration::ZERO,
            Repeat::Doubles { settling } => self.pace.of(settling),
        }
    }

    /// Lets the operators' search find the failing workflow. Nothing depends on it.
    async fn tell(&self, task: &Task, code: ErrorCode) {
        let workflow = publish_target::id(task.target);
        let handle = self.temporal.get_workflow_handle::<PublishTarget>(&workflow);
        if let Err(error) =
            handle.signal(PublishTarget::failing, code, WorkflowSignalOptions::default()).await
        {
            warn!(workflow, %error, "The workflow's search attributes stay behind");
        }
    }
}

fn window(platform: &dyn Platform) -> Duration {
    match platform.capabilities().publishing {
        Publishes::Immediate => WINDOW,
        Publishes::Asynchronous { window } => window,
    }
}

fn undecidable(code: ErrorCode, why: &str) -> Halt {
    let message = format!("no answer came, and the platform can't say whether it published ({why})");
    Halt::Undecidable(Failure { doubt: true, ..Failure::new(code, message) })
}

fn polled(published: Published) -> Result<Polled, ActivityError> {
    match published {
        Published::Ended { status } => Ok(Polled::Ended { status }),
        other => Err(anyhow::anyhow!("giving up ended with {other:?}").into()),
    }
}

/// A failure that Temporal is to repeat, after `wait` or as the policy says.
pub(crate) fn repeat(failure: &Failure, wait: Option<Duration>) -> ActivityError {
    let error = ApplicationFailure::builder(anyhow::anyhow!(failure.message.clone()))
        .type_name(failure.code.to_string())
        .category(ApplicationErrorCategory::Benign)
        .maybe_next_retry_delay(wait);
    ActivityError::application(error.build())
}

/// Says that the attempt lives for as long as it does.
pub(crate) async fn alive<T>(
    cx: &ActivityContext,
    work: impl Future<Output = Result<T, ActivityError>>,
) -> Result<T, ActivityError> {
    let mut work = std::pin::pin!(work);
    let beat = cx.info().heartbeat_timeout.map_or(BEAT, |timeout| (timeout / 4).min(BEAT));
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(beat) => cx.record_heartbeat(()).await?,
        }
    }
}

/// Keeps an adapter's checkpoints in the row of its container.
struct Keeper<'a> {
    deps: &'a Deps,
    attempt: &'a Attempt,
    position: u16,
}

#[async_trait]
impl Checkpoints for Keeper<'_> {
    async fn save(&self, checkpoint: &Checkpoint) -> Result<(), Failure> {
        let (target, fence) = (self.attempt.key.target, self.attempt.fence);
        match facts::checkpoint(&self.deps.db, target, self.position, fence, &checkpoint.0).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::network("another attempt took the target up", false)),
            Err(error) => {
                warn!(target.id = %target, %error, "A checkpoint was not kept");
                Err(Failure::network("the checkpoint could not be kept", false))
            }
        }
    }
}
