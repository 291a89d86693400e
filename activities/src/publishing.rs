//! At most once: the protocol that every publish follows, written here for all platforms.
//!
//! 1. An id that was captured is final: nobody is called.
//! 2. An intent without outcome is looked up before anything else.
//! 3. `prepare` goes on from the checkpoint in the row.
//! 4. The intent is written, fenced; then `commit`; then the id is captured, in the same breath.
//! 5. One transaction settles the target and tells the world.
//!
//! The intent says until when the call may be on its way, and the call is ended then. An attempt whose
//! worker died without a word may still have one on its way; only when that time has passed is a
//! look-up's "absent" believed.
//!
//! The row and the platform's answer alone decide the next step (budget, polling window, time of the next
//! attempt, doubt), never how often or why Temporal ran an activity. So a workflow may
//! be reset or started again at any moment.

#![expect(
    dead_code,
    reason = "the macro makes a marker per activity; workflows use those of the declarations"
)]

use crate::{
    Deps,
    grants::{self, Line, Refused, Unrefreshed},
    media::{self, Unresolved},
    share::Shares,
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
use store::{
    accounts,
    publishing::{self as facts, Attempt, Barred, Begun, End, Entry, Key, Purpose},
};
use temporalio_client::WorkflowSignalOptions;
use temporalio_common::error::{ApplicationErrorCategory, ApplicationFailure};
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tokio::time::Instant;
use tracing::{error, info, warn};
use workflows::{
    activities::{
        GRANT_LOST, PollResult, PublishResult, RefreshInput, SettleInput, SettleReason, SettleResult,
        TargetInput, definition,
    },
    lenient::Lenient,
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
/// How soon a look at a busy platform is repeated that failed, or that no adapter names a pause for.
const LOOK_AGAIN: Duration = Duration::from_secs(15);
/// A scaled publishing call may take this long all the same: a slow call is no lost one.
const CALL_FLOOR: Duration = Duration::from_secs(8);
/// How long a live post's address is waited for before the post settles without it.
const URL_PATIENCE: Duration = Duration::from_secs(10);
/// How long a stopped target's open call is looked up before the target ends in doubt.
const STOP_PATIENCE: Duration = Duration::from_secs(10 * 60);

/// The activities of publishing.
pub(crate) struct Publishing {
    pub(crate) deps: Arc<Deps>,
    pub(crate) shares: Shares,
}

#[activities]
impl Publishing {
    #[activity(definition = definition::Publish)]
    pub(crate) async fn publish(
        self: Arc<Self>,
        cx: ActivityContext,
        input: TargetInput,
    ) -> Result<PublishResult, ActivityError> {
        let _share = match self.shares.take(input.owner.org, (self.deps.jitter)()) {
            Ok(share) => share,
            Err(pause) => return Ok(PublishResult::Wait { pause }),
        };
        alive(&cx, self.deps.attempt(&input)).await
    }

    #[activity(definition = definition::Poll)]
    pub(crate) async fn poll(
        self: Arc<Self>,
        _cx: ActivityContext,
        input: TargetInput,
    ) -> Result<PollResult, ActivityError> {
        let _share = match self.shares.take(input.owner.org, (self.deps.jitter)()) {
            Ok(share) => share,
            // A look is repeated until the window closes, however often.
            Err(pause) => return Err(repeat(&crowded(), Some(pause))),
        };
        self.deps.look(&input).await
    }

    #[activity(definition = definition::RefreshToken)]
    pub(crate) async fn refresh_token(
        self: Arc<Self>,
        _cx: ActivityContext,
        refusal: RefreshInput,
    ) -> Result<(), ActivityError> {
        let refused = Refused {
            owner: refusal.target.owner,
            account: refusal.target.account,
            version: refusal.grant_version,
            target: Some(key(&refusal.target)),
        };
        match grants::refresh(&self.deps, refused).await? {
            Ok(()) => Ok(()),
            Err(Unrefreshed::MediaFailure(failure)) => Err(ActivityError::application(
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
        settlement: SettleInput,
    ) -> Result<SettleResult, ActivityError> {
        Ok(self.deps.conclude(&settlement).await?)
    }
}

/// The row that a task is about.
fn key(input: &TargetInput) -> Key {
    Key { owner: input.owner, post: input.post, target: input.target, version: input.version }
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
    /// Nothing may be published any more, and nothing is live that was not known.
    Barred(Barred),
    /// All is live, but the main container's address is not known yet.
    NoUrl(Failure),
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

/// An attempt, and the clock that it is measured by.
struct Run {
    attempt: Attempt,
    began: Instant,
    /// The part of the post that is not published there, with the reason.
    left_out: Option<String>,
}

impl Run {
    fn of(mut attempt: Box<Attempt>) -> Self {
        let left_out = leave_out(&mut attempt);
        Self { attempt: *attempt, began: Instant::now(), left_out }
    }

    /// Now, by the database's clock.
    fn now(&self) -> DateTime<Utc> {
        self.attempt.begun_at + self.began.elapsed()
    }
}

impl Deps {
    /// One attempt to publish a target.
    async fn attempt(&self, input: &TargetInput) -> Result<PublishResult, ActivityError> {
        let run = match facts::begin(&self.db, key(input), Purpose::Publish).await? {
            Begun::Attempt(attempt) => Run::of(attempt),
            Begun::Stale => return Ok(PublishResult::Stale),
            Begun::Early(pause) => return Ok(PublishResult::Wait { pause }),
            Begun::Ended(status) => return Ok(PublishResult::Ended { status }),
        };
        let attempt = &run.attempt;
        let line = match Line::open(self, input.owner, &attempt.account).await? {
            Ok(line) => line,
            Err(failure) => {
                let failure = Failure { doubt: attempt.is_in_doubt(), ..failure };
                return self.give_up(attempt, failure).await;
            }
        };
        match self.advance(&line, &run).await {
            Ok(status) => {
                info!(
                    target.id = %input.target, post.id = %input.post, org.id = %input.owner.org, platform = input.platform,
                    attempt = attempt.attempts, "Published target {} on {}", input.target, input.platform
                );
                Ok(PublishResult::Ended { status })
            }
            Err(Halt::Processing(pause)) => match self.wait(line.platform, &run, pause).await? {
                Some(pause) => Ok(PublishResult::Processing { pause }),
                None => self.give_up(attempt, self.window_closed(&run, None)).await,
            },
            Err(Halt::Failure(failure)) => self.failed(input, attempt, failure).await,
            Err(Halt::Early(failure, wait)) => {
                // Nothing was published or tried: the budget is for what is.
                let spent = Spent { attempts: u32::from(attempt.is_counted), token_attempts: 0 };
                facts::forgive(&self.db, input.target, Some(attempt.fence), spent).await?;
                self.again(input, attempt, failure, wait).await
            }
            Err(Halt::Undecidable(failure)) => self.give_up(attempt, failure).await,
            Err(Halt::Barred(barred)) => self.bar(attempt, barred).await,
            Err(Halt::NoUrl(failure)) => self.await_url(input, attempt, failure).await,
            Err(Halt::Superseded) => Err(self.superseded()),
            Err(Halt::Fault(error)) => Err(error.into()),
        }
    }

    /// Another attempt took the target up: how it stands is seen a little later.
    fn superseded(&self) -> ActivityError {
        let failure = Failure::network("another attempt took the target up", false);
        repeat(&failure, Some(self.time_scale.scale(YIELD)))
    }

    /// Publishes what is not live yet, container by container.
    async fn advance(&self, line: &Line<'_>, run: &Run) -> Result<TargetStatus, Halt> {
        let attempt = &run.attempt;
        let mut ids: Vec<String> = Vec::with_capacity(attempt.entries.len());
        let mut status = attempt.status;
        let mut unknown_url = None;
        for entry in &attempt.entries {
            let keeper = Keeper { deps: self, attempt, position: entry.position };
            let cx = line.session(&keeper);
            let id = match &entry.platform_id {
                Some(id) => id.clone(),
                None => {
                    let post = self.publication(attempt, entry, &ids).await;
                    let post = post.map_err(|unresolved| self.halted(entry, unresolved))?;
                    self.publish(&cx, line.platform, run, entry, &post).await?
                }
            };
            if entry.position == 0 && status != TargetStatus::Published {
                // Live from here on, with or without its address and the rest.
                let url = address(line.platform, &cx, &id).await;
                let end = End::Live { id: id.clone(), url: url.as_ref().ok().cloned() };
                status = self.settled(attempt, &end).await?.ok_or(Halt::Superseded)?;
                unknown_url = url.err();
                if let Some(words) = &run.left_out {
                    facts::leave_out(&self.db, attempt.key, words, (self.now)()).await?;
                }
            }
            ids.push(id);
        }
        match &run.left_out {
            _ if status != TargetStatus::Published => {}
            // Again, since a reply that failed meanwhile said something else.
            Some(words) => facts::leave_out(&self.db, attempt.key, words, (self.now)()).await?,
            None if attempt.entries.len() > 1 => {
                facts::complete(&self.db, attempt.key, (self.now)()).await?;
            }
            None => {}
        }
        if status == TargetStatus::Published && attempt.status == status && attempt.url.is_none() {
            let keeper = Keeper { deps: self, attempt, position: 0 };
            let id = ids.first().expect("a post has a main container");
            match address(line.platform, &line.session(&keeper), id).await {
                Ok(url) => facts::keep_url(&self.db, attempt.key, &url).await?,
                Err(failure) => unknown_url = Some(failure),
            }
        }
        match unknown_url {
            Some(failure) => Err(Halt::NoUrl(failure)),
            None => Ok(status),
        }
    }

    /// Stores the end of a target. "Dead" and "canceled" count only while the attempt holds the target: `None`
    /// when another one does.
    async fn settled(&self, attempt: &Attempt, end: &End) -> Result<Option<TargetStatus>, store::Error> {
        match facts::settle(&self.db, attempt.key, end, Some(attempt.fence), (self.now)()).await? {
            facts::Settled::Ended(status) => Ok(Some(status)),
            facts::Settled::Superseded => Ok(None),
            facts::Settled::Late(status) => {
                error!(
                    target.id = %attempt.key.target, post.id = %attempt.key.post, org.id = %attempt.key.owner.org,
                    "Target {} was found live after it had ended as {status}", attempt.key.target
                );
                Ok(Some(status))
            }
        }
    }

    /// Pause before the next look at a platform that is still processing; `None` when its window has closed. The
    /// last look comes when the window closes.
    async fn wait(
        &self,
        platform: &dyn Platform,
        run: &Run,
        pause: Duration,
    ) -> Result<Option<Duration>, store::Error> {
        let now = run.now();
        let since = run.attempt.processing_since.unwrap_or(now);
        let Some(pause) =
            left(since, self.time_scale.scale(window(platform)), now).map(|left| pause.min(left))
        else {
            return Ok(None);
        };
        let (target, fence) = (run.attempt.key.target, run.attempt.fence);
        facts::processing(&self.db, target, fence, Some(since), Some(pause)).await?;
        Ok(Some(pause))
    }

    /// The failure of a post that the platform did not finish in time. `last` is the error of the last look.
    fn window_closed(&self, run: &Run, last: Option<&Failure>) -> Failure {
        let platform = &run.attempt.account.platform;
        let message = match last {
            None => format!("{platform} was still processing when its window closed"),
            Some(last) => format!("{platform} had not said that it was done when its window closed ({last})"),
        };
        Failure { doubt: run.attempt.is_in_doubt(), ..Failure::new(ErrorCode::PollTimeout, message) }
    }

    /// Publishes one container, unless an earlier attempt did.
    async fn publish(
        &self,
        cx: &Session<'_>,
        platform: &'static dyn Platform,
        run: &Run,
        entry: &Entry,
        post: &Publication,
    ) -> Result<String, Halt> {
        let attempt = &run.attempt;
        let (target, position, fence) = (attempt.key.target, entry.position, attempt.fence);
        let at = Checkpoint(entry.checkpoint.clone());
        if entry.commit_begun_at.is_some() {
            match self.located(cx, platform, run, entry, post, &at).await? {
                Some(id) => return Ok(self.captured(attempt, position, &id).await?),
                None => facts::withdraw(&self.db, target, position, fence).await?,
            }
        }
        if let Some(barred) = attempt.barred {
            return Err(Halt::Barred(barred));
        }
        if attempt.attempts > retry::ATTEMPTS {
            let code = entry.ambiguous_error_code.unwrap_or(ErrorCode::NetworkError);
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
        let limit = self.limit(platform, post);
        let asked = Instant::now();
        let Some(begun) = facts::intend(&self.db, target, position, fence, &at.0, limit).await? else {
            return Err(Halt::Superseded);
        };
        // From here until we hear back the post may be live. The limit is measured from before the intent
        // was written, so that the call has ended when the row says so.
        let call =
            tokio::time::timeout(limit.saturating_sub(asked.elapsed()), platform.commit(cx, post, &at));
        let answer = call.await.unwrap_or_else(|_| {
            let message = format!("{} did not answer within {} s", platform.id(), limit.as_secs());
            Err(Failure::network(message, true))
        });
        match answer {
            Ok(Committed::Live(id)) => {
                let id = self.captured(attempt, position, &id).await?;
                self.heal(attempt).await;
                Ok(id)
            }
            Ok(Committed::Accepted { at, poll_after }) => {
                self.accepted(attempt, position, begun, &at).await?;
                self.heal(attempt).await;
                Err(Halt::Processing(poll_after))
            }
            Err(failure) if failure.doubt && !failure.code.is_permanent() => {
                facts::doubt(&self.db, target, position, begun, failure.code).await?;
                Err(Halt::Failure(failure))
            }
            Err(failure) => match entry.doubted_since.or(entry.commit_begun_at) {
                // It says that it has the post already, and an earlier call of ours may have brought it.
                Some(first) if failure.doubt => {
                    let post = Publication { commit_begun_at: Some(first), ..post.clone() };
                    let code = entry.ambiguous_error_code.unwrap_or(ErrorCode::NetworkError);
                    facts::doubt(&self.db, target, position, begun, code).await?;
                    let found = platform.locate(cx, &post, &at).await;
                    if let Ok(Located::Live(id)) = found
                        && self.adopted(attempt, entry, &id).await?
                    {
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
                    facts::void(&self.db, target, position, begun).await?;
                    Err(Halt::Failure(Failure { doubt: false, ..failure }))
                }
            },
        }
    }

    /// The platform took a post of the account's: its grant is good, whatever was thought of it. Nothing of
    /// the post depends on this.
    async fn heal(&self, attempt: &Attempt) {
        if attempt.is_account_active {
            return;
        }
        let (owner, account) = (attempt.key.owner, &attempt.account);
        let now = (self.now)();
        if let Err(error) = accounts::answered(&self.db, owner, account.id, account.grant_version, now).await
        {
            warn!(account.id = %account.id, org.id = %owner.org, %error, "Account {} publishes and is not marked active", account.id);
        }
    }

    /// How long a publishing call may take. The scaled limit leaves a slow call its time.
    fn limit(&self, platform: &dyn Platform, post: &Publication) -> Duration {
        let limit = platform.commit_limit(post);
        self.time_scale.scale(limit).max(CALL_FLOOR.min(limit))
    }

    /// Whether a commit that was begun has happened: its id, or `None` when it surely has not.
    async fn located(
        &self,
        cx: &Session<'_>,
        platform: &'static dyn Platform,
        run: &Run,
        entry: &Entry,
        post: &Publication,
        at: &Checkpoint,
    ) -> Result<Option<String>, Halt> {
        let code = entry.ambiguous_error_code.unwrap_or(ErrorCode::NetworkError);
        let Some(begun) = entry.commit_begun_at else { return Ok(None) };
        match platform.locate(cx, post, at).await {
            Ok(Located::Live(id)) if self.adopted(&run.attempt, entry, &id).await? => Ok(Some(id)),
            Ok(Located::Live(_)) => {
                let message = "no answer came, and what was found is another post with the same words";
                Err(Halt::Early(Failure::new(code, message), self.time_scale.scale(YIELD)))
            }
            Ok(Located::Processing { poll_after }) => Err(Halt::Processing(poll_after)),
            Ok(Located::Absent) if entry.accepted => Err(Halt::Processing(YIELD)),
            Ok(Located::Absent) => {
                let believable = match (platform.capabilities().repeat, entry.commit_ended_at) {
                    (Repeat::Harmless, _) => begun,
                    (Repeat::Doubles { .. }, Some(ended)) => ended + self.settling(platform),
                    // Nobody heard the call end: it may be on its way until its deadline.
                    (Repeat::Doubles { .. }, None) => {
                        entry.commit_deadline.unwrap_or(begun + self.limit(platform, post))
                            + self.settling(platform)
                    }
                };
                let rest = believable - run.now();
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

    /// Stores an id before anything else can happen. Every database error is retried for as long as the
    /// attempt lives, because a later look-up may have no way to find the post.
    async fn captured(&self, attempt: &Attempt, position: u16, id: &str) -> Result<String, store::Error> {
        let captured = persist(attempt, "the id of a published post", || {
            facts::capture(&self.db, attempt.key, position, id)
        })
        .await?;
        let kept = captured.platform_id;
        if captured.is_shared {
            error!(
                target.id = %attempt.key.target, post.id = %attempt.key.post, org.id = %attempt.key.owner.org,
                platform = attempt.account.platform,
                "Target {} and another one of its account have the same post: {kept}", attempt.key.target
            );
        }
        if kept != id {
            error!(
                target.id = %attempt.key.target, post.id = %attempt.key.post, org.id = %attempt.key.owner.org,
                platform = attempt.account.platform,
                "A second post was found for target {}: {id} beside {kept}", attempt.key.target
            );
        }
        Ok(kept)
    }

    /// Claims an id that a look-up found, for `captured` to keep; false when another target of the account
    /// has it. A post that the platform accepted is looked up by its handle, so that its id needs no claim.
    async fn adopted(&self, attempt: &Attempt, entry: &Entry, id: &str) -> Result<bool, store::Error> {
        if entry.accepted {
            return Ok(true);
        }
        persist(attempt, "the id of a post that was found", || {
            facts::adopt(&self.db, attempt.key, entry.position, id)
        })
        .await
    }

    /// Keeps what a platform gave instead of an id, in the same way: it is the only handle there is.
    async fn accepted(
        &self,
        attempt: &Attempt,
        position: u16,
        begun: DateTime<Utc>,
        at: &Checkpoint,
    ) -> Result<(), store::Error> {
        let target = attempt.key.target;
        let kept =
            persist(attempt, "an accepted post", || facts::accept(&self.db, target, position, begun, &at.0))
                .await?;
        if !kept {
            error!(
                target.id = %target, post.id = %attempt.key.post, org.id = %attempt.key.owner.org,
                platform = attempt.account.platform,
                "Target {target} was accepted under an intent that the row holds no more"
            );
        }
        Ok(())
    }

    /// A refusal, and what is to be done about it.
    async fn failed(
        &self,
        input: &TargetInput,
        attempt: &Attempt,
        failure: Failure,
    ) -> Result<PublishResult, ActivityError> {
        let refused = failure.code == ErrorCode::TokenExpired;
        let spent =
            Spent { attempts: attempt.attempts, token_attempts: attempt.token_attempts + u32::from(refused) };
        let wait = match (retry::next(&failure, spent, (self.jitter)()), failure.retry_after) {
            // Refreshed at once; the wait is for what a refresh can't mend.
            (Some(_), _) if refused => {
                if facts::fail(&self.db, attempt, &failure, Duration::ZERO).await?.is_none() {
                    return Err(self.superseded());
                }
                self.tell(input, failure.code).await;
                return Ok(PublishResult::TokenRefused { grant_version: attempt.account.grant_version });
            }
            (Some(wait), Some(_)) => wait,
            (Some(wait), None) => self.time_scale.scale(wait),
            // The budget is spent, but the last call may have gone through.
            (None, asked) if failure.doubt && spent.attempts < retry::ATTEMPTS + LOOKS => {
                let settling =
                    platforms::get(&input.platform).map_or(YIELD, |platform| self.settling(platform));
                asked.unwrap_or(settling).max(settling)
            }
            (None, _) => return self.give_up(attempt, failure).await,
        };
        self.again(input, attempt, failure, wait).await
    }

    /// A failure that is followed by another attempt.
    async fn again(
        &self,
        input: &TargetInput,
        attempt: &Attempt,
        failure: Failure,
        wait: Duration,
    ) -> Result<PublishResult, ActivityError> {
        let Some(next) = facts::fail(&self.db, attempt, &failure, wait).await? else {
            return Err(self.superseded());
        };
        self.tell(input, failure.code).await;
        warn!(
            target.id = %input.target, post.id = %input.post, org.id = %input.owner.org, platform = input.platform,
            attempt = attempt.attempts, error.code = %failure.code, "Target {} failed on {}, next try at {next}",
            input.target, input.platform
        );
        let message = format!("attempt {} of {}: {}", attempt.attempts, retry::ATTEMPTS, failure.message);
        Err(repeat(&Failure { message, ..failure }, Some(wait)))
    }

    /// A live post whose address the platform did not tell: it is asked again a few times, and lives
    /// without one after that.
    async fn await_url(
        &self,
        input: &TargetInput,
        attempt: &Attempt,
        failure: Failure,
    ) -> Result<PublishResult, ActivityError> {
        // Each further attempt counts.
        let spent = Spent { attempts: attempt.attempts, token_attempts: 0 };
        let asked = Failure { code: ErrorCode::NetworkError, ..failure.clone() };
        match retry::next(&asked, spent, (self.jitter)()).filter(|_| !failure.code.is_permanent()) {
            Some(wait) => {
                let wait = if failure.retry_after.is_some() { wait } else { self.time_scale.scale(wait) };
                facts::await_url(&self.db, attempt, Some(wait)).await?;
                warn!(
                    target.id = %input.target, post.id = %input.post, org.id = %input.owner.org,
                    platform = input.platform, error.code = %failure.code,
                    "Target {} is live on {}, its address is not known yet", input.target, input.platform
                );
                Err(repeat(&failure, Some(wait)))
            }
            None => {
                facts::await_url(&self.db, attempt, None).await?;
                let message = format!("Live, but its address could not be learned: {failure}");
                facts::note(&self.db, attempt.key, "address", &message, (self.now)()).await?;
                Ok(PublishResult::Ended { status: TargetStatus::Published })
            }
        }
    }

    /// Ends a target for which nothing may be published any more.
    async fn bar(&self, attempt: &Attempt, barred: Barred) -> Result<PublishResult, ActivityError> {
        match barred {
            Barred::Disconnected => {
                self.give_up(attempt, Failure::revoked("the account is not connected any more")).await
            }
            Barred::Deleted => {
                let end = End::Canceled { reason: "the post was deleted".to_owned() };
                self.verdict(attempt, &end).await
            }
        }
    }

    /// Ends a target as the attempt that holds it.
    async fn verdict(&self, attempt: &Attempt, end: &End) -> Result<PublishResult, ActivityError> {
        match self.settled(attempt, end).await? {
            Some(status) => Ok(PublishResult::Ended { status }),
            None => Err(self.superseded()),
        }
    }

    /// Ends a target that can't be published.
    async fn give_up(&self, attempt: &Attempt, mut failure: Failure) -> Result<PublishResult, ActivityError> {
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
        self.verdict(attempt, &End::Dead { failure, source }).await
    }

    /// One container as its platform is handed it.
    async fn publication(
        &self,
        attempt: &Attempt,
        entry: &Entry,
        ids: &[String],
    ) -> Result<Publication, Unresolved> {
        let doubted_since = entry.doubted_since.or(entry.commit_begun_at);
        let taken = match doubted_since {
            Some(since) => {
                facts::taken(&self.db, attempt.key, entry.position, attempt.account.id, since).await
            }
            None => Ok(Vec::new()),
        };
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
            commit_begun_at: doubted_since,
            taken: taken.map_err(|error| Unresolved::Fault(error.into()))?,
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
            Unresolved::Early(failure) => Halt::Early(failure, self.time_scale.scale(YIELD)),
            Unresolved::Fault(error) => Halt::Fault(error),
        }
    }

    /// One look at a platform that is still processing.
    async fn look(&self, input: &TargetInput) -> Result<PollResult, ActivityError> {
        let run = match facts::begin(&self.db, key(input), Purpose::Look).await? {
            Begun::Attempt(attempt) => Run::of(attempt),
            Begun::Stale | Begun::Early(_) => return Ok(PollResult::Ready),
            Begun::Ended(status) => return Ok(PollResult::Ended { status }),
        };
        let attempt = &run.attempt;
        let line = match Line::open(self, input.owner, &attempt.account).await? {
            Ok(line) => line,
            Err(failure) => {
                let failure = Failure { doubt: attempt.is_in_doubt(), ..failure };
                return polled(self.give_up(attempt, failure).await?);
            }
        };
        let Some(entry) = attempt.entries.iter().find(|entry| entry.platform_id.is_none()) else {
            return Ok(PollResult::Ready);
        };
        let ids: Vec<_> = attempt.entries.iter().map_while(|entry| entry.platform_id.clone()).collect();
        let keeper = Keeper { deps: self, attempt, position: entry.position };
        let cx = line.session(&keeper);
        let at = Checkpoint(entry.checkpoint.clone());
        let looked = match self.publication(attempt, entry, &ids).await {
            Ok(post) => match entry.commit_begun_at {
                Some(_) => match line.platform.locate(&cx, &post, &at).await {
                    Ok(Located::Live(id)) if self.adopted(attempt, entry, &id).await? => {
                        self.captured(attempt, entry.position, &id).await?;
                        Ok(None)
                    }
                    // Another post of the account with the same words, which was captured in this moment.
                    Ok(Located::Live(_)) => Ok(Some(YIELD)),
                    Ok(Located::Processing { poll_after }) => Ok(Some(poll_after)),
                    Ok(Located::Absent) if entry.accepted => Ok(Some(YIELD)),
                    // The next attempt decides.
                    Ok(Located::Absent | Located::Unknown) => Ok(None),
                    Err(failure) => Err(failure),
                },
                // An attempt knows what that comes to.
                None if attempt.barred.is_some() => Ok(None),
                None => match line.platform.prepare(&cx, &post, at).await {
                    Ok(Prepared::Ready(at)) => keeper.save(&at).await.map(|()| None),
                    Ok(Prepared::Processing { at, poll_after }) => {
                        keeper.save(&at).await.map(|()| Some(poll_after))
                    }
                    Err(failure) => Err(failure),
                },
            },
            Err(Unresolved::Early(failure)) => Err(failure),
            Err(Unresolved::Never(failure)) => return polled(self.give_up(attempt, failure).await?),
            Err(Unresolved::Fault(error)) => return Err(error.into()),
        };
        let (pause, busy) = match looked {
            Ok(None) => {
                let (target, fence) = (input.target, attempt.fence);
                facts::processing(&self.db, target, fence, attempt.processing_since, None).await?;
                return Ok(PollResult::Ready);
            }
            Ok(Some(pause)) => {
                let busy = Failure::network(format!("{} is still processing", input.platform), false);
                (pause, busy)
            }
            // A refused token is a failed attempt, so that it is counted.
            Err(failure) if failure.code == ErrorCode::TokenExpired && !failure.revoked => {
                return polled(self.failed(input, attempt, failure).await?);
            }
            Err(failure) if failure.code.is_permanent() || failure.revoked => {
                return polled(self.give_up(attempt, failure).await?);
            }
            // A look that failed says nothing about the post: the window goes on.
            Err(failure) => {
                let jittered = self.time_scale.scale(LOOK_AGAIN).mul_f64(0.5 + (self.jitter)() / 2.0);
                (failure.retry_after.unwrap_or(jittered), failure)
            }
        };
        match self.wait(line.platform, &run, pause).await? {
            Some(pause) => Err(repeat(&busy, Some(pause))),
            None => {
                let last = (busy.code != ErrorCode::NetworkError).then_some(&busy);
                polled(self.give_up(attempt, self.window_closed(&run, last)).await?)
            }
        }
    }

    /// Decides what becomes of a target whose attempts gave no answer.
    async fn conclude(&self, settlement: &SettleInput) -> anyhow::Result<SettleResult> {
        let (input, key, now) = (&settlement.target, key(&settlement.target), (self.now)());
        let Some(standing) = facts::standing(&self.db, key).await? else {
            return Ok(SettleResult::Ended { status: TargetStatus::Canceled });
        };
        let lost = match standing.status {
            TargetStatus::Dead | TargetStatus::Canceled => {
                return Ok(SettleResult::Ended { status: standing.status });
            }
            // What followed the main container is lost, nothing else.
            TargetStatus::Published => standing.error_message.clone(),
            _ => None,
        };
        let again = |attempt: u32| {
            let wait = retry::ceiling(attempt).mul_f64((self.jitter)());
            SettleResult::RetryAfter { pause: self.time_scale.scale(wait) }
        };
        let (code, mut message, source) = match &settlement.why {
            SettleReason::GrantLost { message } => (ErrorCode::TokenExpired, message.clone(), None),
            SettleReason::RefreshFailed { message, .. } if standing.attempts < retry::ATTEMPTS => {
                // No fault of the grant: only the attempts are used up by it.
                let spent = Spent { attempts: 0, token_attempts: 1 };
                facts::forgive(&self.db, input.target, None, spent).await?;
                facts::note(&self.db, key, "refresh", &format!("No fresh token yet: {message}"), now).await?;
                return Ok(again(standing.attempts));
            }
            SettleReason::RefreshFailed { message, code } => (*code, message.clone(), None),
            SettleReason::Unanswered { .. } if standing.attempts < retry::ATTEMPTS => {
                return Ok(again(standing.attempts));
            }
            SettleReason::Unanswered { .. }
                if standing.in_doubt && standing.attempts < retry::ATTEMPTS + LOOKS =>
            {
                return Ok(again(1));
            }
            SettleReason::Unanswered { message } => (
                standing.error_code.unwrap_or(ErrorCode::NetworkError),
                lost.or(standing.error_message).unwrap_or_else(|| message.clone()),
                Some(ErrorSource::Service),
            ),
            SettleReason::Stopped => {
                if let Some(settled) = self.look_once_more(input).await? {
                    return Ok(settled);
                }
                (
                    standing.error_code.unwrap_or(ErrorCode::NetworkError),
                    "an operator stopped it in Temporal".to_owned(),
                    Some(ErrorSource::Service),
                )
            }
        };
        let in_doubt = facts::standing(&self.db, key).await?.is_some_and(|standing| standing.in_doubt);
        if in_doubt {
            message = format!("{message}; it may be live: look before posting again");
        }
        let failure = Failure::new(code, message);
        let source = source.unwrap_or(code.source());
        match facts::settle(&self.db, key, &End::Dead { failure, source }, None, now).await? {
            facts::Settled::Ended(status) | facts::Settled::Late(status) => {
                Ok(SettleResult::Ended { status })
            }
            facts::Settled::Superseded => Ok(again(1)),
        }
    }

    /// Looks up the calls of a target that an operator stopped and that nobody heard end. Publishes
    /// nothing. `None` when that is over, and nothing is in doubt any more or nothing can tell.
    async fn look_once_more(&self, input: &TargetInput) -> anyhow::Result<Option<SettleResult>> {
        // From here on an attempt that is still under way neither publishes nor ends the target.
        let run = match facts::begin(&self.db, key(input), Purpose::Look).await? {
            Begun::Attempt(attempt) => Run::of(attempt),
            Begun::Ended(status) => return Ok(Some(SettleResult::Ended { status })),
            Begun::Stale | Begun::Early(_) => return Ok(None),
        };
        let attempt = &run.attempt;
        let Ok(line) = Line::open(self, input.owner, &attempt.account).await? else { return Ok(None) };
        let ids: Vec<_> = attempt.entries.iter().map_while(|entry| entry.platform_id.clone()).collect();
        let open = attempt.entries.iter().find(|entry| entry.platform_id.is_none());
        let Some((entry, begun)) = open.and_then(|entry| Some((entry, entry.commit_begun_at?))) else {
            return Ok(None);
        };
        let keeper = Keeper { deps: self, attempt, position: entry.position };
        let cx = line.session(&keeper);
        let Ok(post) = self.publication(attempt, entry, &ids).await else { return Ok(None) };
        let at = Checkpoint(entry.checkpoint.clone());
        let pause = match self.located(&cx, line.platform, &run, entry, &post, &at).await {
            Ok(Some(id)) => {
                self.captured(attempt, entry.position, &id).await?;
                // Settling finds it live; what was to follow it is not published.
                return Ok(None);
            }
            Ok(None) => {
                facts::withdraw(&self.db, input.target, entry.position, attempt.fence).await?;
                return Ok(None);
            }
            Err(Halt::Early(_, pause)) => pause,
            Err(Halt::Processing(pause)) => pause,
            Err(Halt::Failure(failure)) => failure.retry_after.unwrap_or(self.time_scale.scale(LOOK_AGAIN)),
            Err(Halt::Fault(error)) => return Err(error),
            Err(Halt::Undecidable(_) | Halt::Superseded | Halt::Barred(_) | Halt::NoUrl(_)) => {
                return Ok(None);
            }
        };
        let last = entry.commit_deadline.unwrap_or(begun) + self.time_scale.scale(STOP_PATIENCE);
        Ok((run.now() < last)
            .then(|| SettleResult::RetryAfter { pause: pause.max(Duration::from_millis(100)) }))
    }

    /// How long a platform's reads may lag behind its writes.
    fn settling(&self, platform: &dyn Platform) -> Duration {
        match platform.capabilities().repeat {
            Repeat::Harmless => Duration::ZERO,
            Repeat::Doubles { settling } => self.time_scale.scale(settling),
        }
    }

    /// Lets the operators' search find the failing workflow. Nothing depends on it.
    async fn tell(&self, input: &TargetInput, code: ErrorCode) {
        let workflow = publish_target::id(input.target);
        let handle = self.temporal.get_workflow_handle::<PublishTarget>(&workflow);
        if let Err(error) = handle
            .signal(PublishTarget::attempt_failed, Lenient::new(code), WorkflowSignalOptions::default())
            .await
        {
            warn!(workflow, %error, "The workflow's search attributes stay behind");
        }
    }
}

/// Takes off an attempt what its platform has no place for, and says what.
fn leave_out(attempt: &mut Attempt) -> Option<String> {
    let platform = platforms::get(&attempt.account.platform)?;
    let replies = platform.capabilities().replies;
    let kept = attempt.entries.len().min(replies.containers());
    let left_out = attempt.entries.split_off(kept).len();
    (left_out > 0).then(|| format!("{} {}", platform.id(), replies.left_out(left_out)))
}

/// Time left in a window; `None` when it has closed.
fn left(since: DateTime<Utc>, window: Duration, now: DateTime<Utc>) -> Option<Duration> {
    (since + window - now).to_std().ok().filter(|left| !left.is_zero())
}

/// Writes what must not be lost, for as long as it takes: any error of the database may pass, but for a
/// row that is not there.
async fn persist<T, F: Future<Output = store::Result<T>>>(
    attempt: &Attempt,
    what: &str,
    write: impl Fn() -> F,
) -> store::Result<T> {
    loop {
        match write().await {
            Err(store::Error::RowNotFound) => return Err(store::Error::RowNotFound),
            Err(error) => {
                warn!(target.id = %attempt.key.target, %error, "Waiting for the database to keep {what}");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            Ok(kept) => return Ok(kept),
        }
    }
}

/// The public address of a post, within a bound: a live post settles with or without it.
async fn address(platform: &dyn Platform, cx: &Session<'_>, id: &str) -> Result<String, Failure> {
    let asked = tokio::time::timeout(URL_PATIENCE, platform.permalink(cx, id)).await;
    asked.unwrap_or_else(|_| Err(Failure::network("the post's address was not told in time", false)))
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

fn polled(published: PublishResult) -> Result<PollResult, ActivityError> {
    match published {
        PublishResult::Ended { status } => Ok(PollResult::Ended { status }),
        PublishResult::TokenRefused { grant_version } => Ok(PollResult::TokenRefused { grant_version }),
        other => Err(anyhow::anyhow!("giving up ended with {other:?}").into()),
    }
}

/// Why a look is put off.
fn crowded() -> Failure {
    Failure::network("the organization holds its share of this worker", false)
}

/// A failure that Temporal is to repeat, after `wait` or as the policy says.
pub(crate) fn repeat(failure: &Failure, wait: Option<Duration>) -> ActivityError {
    // Temporal takes a delay of zero for none, and waits as the policy says.
    let wait = wait.map(|wait| wait.max(Duration::from_millis(1)));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn the_last_look_comes_when_the_window_closes() {
        let window = Duration::from_secs(600);
        let next =
            |pause: u64, now| left(at(0), window, at(now)).map(|left| Duration::from_secs(pause).min(left));
        // Neither a platform's pace nor its Retry-After ends a window early, nor reaches beyond it.
        assert_eq!(next(5, 0), Some(Duration::from_secs(5)));
        assert_eq!(next(900, 10), Some(Duration::from_secs(590)));
        assert_eq!(next(5, 598), Some(Duration::from_secs(2)));
        assert_eq!(next(5, 600), None);
        assert_eq!(next(5, 5000), None);
    }

    #[test]
    fn a_retry_is_never_without_a_delay() {
        let failure = Failure::new(ErrorCode::NetworkError, "no answer");
        for (wait, delay) in [(0, 1), (1, 1), (40, 40)] {
            let error = repeat(&failure, Some(Duration::from_millis(wait)));
            let ActivityError::Application(error) = error else { panic!("{error:?}") };
            assert_eq!(error.next_retry_delay(), Some(Duration::from_millis(delay)));
        }
    }
}
