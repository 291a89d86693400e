//! One attempt to publish a target, from taking up its row to the decision what comes next.

use crate::{AccountSession, Engine, Error, Stop, checkpoints::RowCheckpoints, media::MediaError};
use chrono::{DateTime, Utc};
use domain::{
    CancelReason, Effect, ErrorCode, Failure, MAY_BE_LIVE, TargetStatus, Then, Wait, WaitReason,
    publish::PublishResult,
    publishing::{
        BarredEnd,
        wait::{APP_LIMIT, FAULT_LIMIT, FILE_LIMIT, HANDOVER_LIMIT},
    },
    retry::{self, Spent},
};
use platforms::{
    Adapter, PublishRequest, Publishing, Replies, ReplyTo, Session,
    check::{self, AccountKind, ContainerContent, Severity},
};
use std::{
    borrow::Cow,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use store::publishing::{
    self, Attempt, Barred, BeginResult, End, Entry, LeftOut, Place, Purpose, Settled, TargetKey, Waits,
};
use telemetry::{metrics, trace};
use tokio::time::Instant;
use tracing::{error, info, warn};

/// Polling window of a platform whose documentation names none.
const WINDOW: Duration = Duration::from_secs(30 * 60);
/// Pause before an attempt that lost its turn looks at the row again.
pub(crate) const BUSY_RETRY: Duration = Duration::from_secs(5);
/// Longest wait for the public address of a live post, which settles with or without it.
const URL_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause before another worker goes on with what one that stops has prepared.
const HANDOVER: Duration = Duration::from_secs(1);
/// Longest pause between two looks whether the service is repaired. They become rarer, beginning with [`BUSY_RETRY`].
const FAULT_RETRY: Duration = Duration::from_secs(10 * 60);
/// Pause between two looks whether a platform takes an app again that it refused.
const APP_LOOK_INTERVAL: Duration = Duration::from_secs(3600);
/// Reason of a target whose posts may have been deleted from the platform.
const MAY_BE_UNPUBLISHED: &str =
    "its posts may have been deleted from the platform, which was asked to and did not answer";

/// Why an attempt went no further. Each of them moves the target on: it counts, or uses up the polling window or the
/// time of a wait.
pub(crate) enum Interrupt {
    /// The platform is processing; look again after the pause.
    Processing(Duration),
    /// The platform, or the connection to it, failed.
    Failure(Failure),
    /// Nothing can be published or found out yet.
    Wait(Box<Wait>),
    /// No look-up can tell whether the post is live; another attempt might publish it twice.
    Undecidable(Failure),
    /// Nothing may be published any more, and nothing is live that was not known.
    Barred(Barred),
    /// Everything is live, but the main container's address is not known yet.
    NoUrl(Failure),
    /// Another attempt holds the target.
    Superseded,
    /// Fanfare failed.
    Fault(anyhow::Error),
}

impl From<store::Error> for Interrupt {
    fn from(error: store::Error) -> Self {
        Self::Fault(error.into())
    }
}

impl From<Failure> for Interrupt {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// An attempt, and the clock that it is measured by.
pub(crate) struct Run {
    pub(crate) attempt: Attempt,
    began: Instant,
    /// The part of the post that the platform has no place for.
    left_out: Option<LeftOut>,
    /// True once a publishing call was begun.
    has_called: AtomicBool,
}

impl Run {
    pub(crate) fn of(engine: &Engine, mut attempt: Box<Attempt>) -> Self {
        let platform = (engine.adapters)(&attempt.account.platform);
        let left_out = platform.and_then(|platform| leave_out(platform, &mut attempt));
        Self { attempt: *attempt, began: Instant::now(), left_out, has_called: AtomicBool::new(false) }
    }

    /// Notes that a publishing call begins: from here on the attempt counts, whatever else fails.
    pub(crate) fn call(&self) {
        self.has_called.store(true, Ordering::Relaxed);
    }

    /// The current time by the database's clock.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.attempt.begun_at + self.began.elapsed()
    }

    /// Returns true if so many workers stopped at the target that the target is the likely cause: nothing more is done for it
    /// but to end it.
    pub(crate) fn stops_its_workers(&self) -> bool {
        self.attempt.unanswered >= retry::MAX_UNANSWERED
    }

    /// When the target began to wait without an attempt that got further.
    pub(crate) fn waits_since(&self) -> DateTime<Utc> {
        self.attempt.waits_since()
    }
}

impl Engine {
    /// Makes one attempt to publish a target.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] and [`Error::Repeat`] when the call is to be repeated, [`Error::Fault`] when Fanfare
    /// failed.
    pub async fn attempt(&self, key: TargetKey) -> Result<PublishResult, Error> {
        let run = match publishing::begin(&self.db, key, Purpose::Publish).await? {
            BeginResult::Attempt(attempt) => Run::of(self, attempt),
            BeginResult::Stale => return Ok(PublishResult::Stale),
            BeginResult::Early(look) => return Ok(PublishResult::Wait { pause: look.pause(), code: None }),
            // As the attempt that failed reported it.
            BeginResult::Failed { pause, failure, number } => {
                return Err(Error::Repeat { failure: numbered(number, failure), pause });
            }
            BeginResult::Held { pause, code, is_new } => {
                return Ok(PublishResult::Wait { pause, code: is_new.then_some(code) });
            }
            BeginResult::Ended(status) => return Ok(PublishResult::Ended { status }),
        };
        let attempt = &run.attempt;
        if let Some(barred) = attempt.barred.filter(|barred| attempt.is_over(*barred)) {
            return self.bar(attempt, barred).await;
        }
        if let Some(reason) = attempt.waited_in_vain {
            // A restored reply may be in doubt, though it waits for the post above.
            let effect = Effect::from(attempt.is_in_doubt());
            return self.give_up(attempt, waited_in_vain(reason).with_effect(effect)).await;
        }
        if run.stops_its_workers() {
            let message = "each of the workers that took it up stopped before it had a result";
            let failure = Failure::network(message, attempt.is_in_doubt());
            return match attempt.barred.filter(|_| !attempt.is_in_doubt()) {
                Some(barred) => self.bar(attempt, barred).await,
                None => self.give_up(attempt, failure).await,
            };
        }
        let account = match self.open_session(attempt).await {
            Ok(Ok(account)) => account,
            Ok(Err(failure)) => {
                let failed = Err(Interrupt::Failure(failure.clone()));
                count(attempt, &failed);
                return self.give_up(attempt, failure).await;
            }
            Err(fault) => {
                let error = fault.context("the account's session could not be opened");
                return self.fault(&run, error, "the service can't read the account's grant").await;
            }
        };
        let advanced = self.advance(&account, &run).await;
        count(attempt, &advanced);
        match advanced {
            Ok(status) => {
                info!(
                    target.id = %key.target, post.id = %key.post, org.id = %key.owner.org,
                    platform = attempt.account.platform, attempt = attempt.attempts,
                    "Published target {} on {}", key.target, attempt.account.platform
                );
                Ok(PublishResult::Ended { status })
            }
            Err(Interrupt::Processing(pause)) => {
                match self.keep_processing(account.platform, &run, pause).await? {
                    Some(pause) => Ok(PublishResult::Processing { pause }),
                    None => self.give_up(attempt, self.window_closed(&run, None)).await,
                }
            }
            Err(Interrupt::Failure(failure)) => self.fail(attempt, failure).await,
            Err(Interrupt::Wait(wait)) => self.wait(attempt, *wait).await,
            Err(Interrupt::Undecidable(failure)) => self.give_up(attempt, failure).await,
            Err(Interrupt::Barred(barred)) => self.bar(attempt, barred).await,
            Err(Interrupt::NoUrl(failure)) => self.await_url(attempt, failure).await,
            Err(Interrupt::Superseded) => Err(self.superseded()),
            Err(Interrupt::Fault(error)) => {
                self.fault(&run, error, "the service failed at its own part").await
            }
        }
    }

    /// Records when a target looks again that got no slot of the worker.
    ///
    /// # Errors
    ///
    /// When the database doesn't answer.
    pub async fn await_slot(&self, key: TargetKey, pause: Duration) -> anyhow::Result<()> {
        Ok(publishing::await_slot(&self.db, key, pause).await?)
    }

    /// Lets a target wait, or does what follows when it has waited for too long.
    async fn wait(&self, attempt: &Attempt, wait: Wait) -> Result<PublishResult, Error> {
        let (reason, failure) = (wait.reason, wait.failure.clone());
        let look = match publishing::wait(&self.db, attempt, wait).await? {
            Waits::Until(look) => look,
            Waits::Over(Then::GiveUp(failure)) => {
                let spent = Spent { attempts: u32::from(attempt.is_counted), token_attempts: 0 };
                let (target, fence) = (attempt.key.target, Some(attempt.fence));
                publishing::refund_attempts(&self.db, target, fence, spent).await?;
                return self.give_up(attempt, failure).await;
            }
            Waits::Over(Then::Fail(failure)) => return self.fail(attempt, failure).await,
            Waits::Superseded => return Err(self.superseded()),
        };
        let pause = look.pause();
        let Some(failure) = failure else { return Ok(PublishResult::Wait { pause, code: None }) };
        if !look.is_new() {
            return Err(Error::Repeat { failure, pause });
        }
        let TargetKey { owner, post, target, .. } = attempt.key;
        warn!(
            target.id = %target, post.id = %post, org.id = %owner.org, platform = attempt.account.platform,
            %reason, error.code = %failure.code, "Target {target} waits on {}", attempt.account.platform
        );
        Err(self.failed(attempt, failure, pause))
    }

    /// Lets a target wait until the service is repaired. Its owner gets `message`; `error` is for the log. A fault
    /// after a publishing call is a failed attempt: without a count it could be made again and again.
    async fn fault(&self, run: &Run, error: anyhow::Error, message: &str) -> Result<PublishResult, Error> {
        let attempt = &run.attempt;
        let failure = Failure::network(message, false).with_effect(Effect::from(attempt.is_in_doubt()));
        let kept = if run.has_called.load(Ordering::Relaxed) {
            self.fail(attempt, failure.ambiguous()).await
        } else {
            let failure = Failure { message: format!("{message}, and tries again"), ..failure };
            let vain =
                Failure { message: format!("{message}, and was not repaired in time"), ..failure.clone() };
            let limit = self.time_scale.scale(FAULT_LIMIT);
            let (least, most) = (self.time_scale.scale(BUSY_RETRY), self.time_scale.scale(FAULT_RETRY));
            let waited = (run.now() - run.waits_since()).to_std().unwrap_or_default();
            let wait = Wait {
                reason: WaitReason::Fault,
                look_after: waited.clamp(least, most),
                until: run.waits_since() + limit,
                failure: Some(failure),
                then: Then::GiveUp(vain),
            };
            self.wait(attempt, wait).await
        };
        match kept {
            // The database has failed, too.
            Err(Error::Fault(_)) => Err(error.into()),
            kept => {
                let TargetKey { owner, post, target, .. } = attempt.key;
                error!(
                    target.id = %target, post.id = %post, org.id = %owner.org, platform = attempt.account.platform,
                    error = format!("{error:#}"), "The service failed for target {target}"
                );
                kept
            }
        }
    }

    /// The wait of a target that was frozen since its attempt began: the next one finds for how long.
    pub(crate) fn frozen(&self, run: &Run) -> Interrupt {
        self.quiet(run, WaitReason::Freeze, self.time_scale.scale(BUSY_RETRY))
    }

    /// The wait for another worker, which goes on with what this one has prepared.
    pub(crate) fn hand_over(&self, run: &Run) -> Interrupt {
        self.quiet(run, WaitReason::Handover, HANDOVER)
    }

    /// A short wait that its owner need not know of.
    fn quiet(&self, run: &Run, reason: WaitReason, look_after: Duration) -> Interrupt {
        let message = "the service stopped it again and again before it was prepared";
        Interrupt::Wait(Box::new(Wait {
            reason,
            look_after,
            until: run.waits_since() + HANDOVER_LIMIT,
            failure: None,
            then: Then::Fail(Failure::network(message, run.attempt.is_in_doubt())),
        }))
    }

    /// Opens the session of an attempt. The inner failure ends the attempt.
    pub(crate) async fn open_session(
        &self,
        attempt: &Attempt,
    ) -> anyhow::Result<Result<AccountSession<'_>, Failure>> {
        match AccountSession::open(self, attempt.key.owner, &attempt.account).await {
            Ok(account) => Ok(Ok(account)),
            Err(Stop::Failure(failure)) => Ok(Err(failure.with_effect(Effect::from(attempt.is_in_doubt())))),
            Err(Stop::Fault(error)) => Err(error),
        }
    }

    /// The result of an attempt that lost the target to another one: look at the row a little later.
    pub(crate) fn superseded(&self) -> Error {
        let failure = Failure::network("another attempt took the target up", false);
        Error::Repeat { failure, pause: self.time_scale.scale(BUSY_RETRY) }
    }

    /// Publishes what is not live yet, container by container.
    async fn advance(&self, account: &AccountSession<'_>, run: &Run) -> Result<TargetStatus, Interrupt> {
        let attempt = &run.attempt;
        check_reply(attempt, account.platform)?;
        self.check(run, account).await?;
        let mut ids: Vec<String> = Vec::with_capacity(attempt.entries.len());
        let mut status = attempt.status;
        let mut unknown_url = None;
        for entry in &attempt.entries {
            let checkpoints = RowCheckpoints { engine: self, attempt, position: entry.container.position };
            let cx = account.session(&checkpoints);
            let id = match &entry.platform_id {
                Some(id) => id.clone(),
                None => {
                    let post = self.publication(attempt, entry, &ids).await;
                    let post = post.map_err(|error| self.interrupted(run, entry, error))?;
                    self.publish(account.platform, &cx, run, entry, &post).await?
                }
            };
            if entry.container.position == 0 && status != TargetStatus::Published {
                // Live from here on, with or without its address and the rest.
                let url = address(account.platform, &cx, &id).await;
                let (url_found, left_out) = (url.as_ref().ok().cloned(), run.left_out.clone());
                let end = End::Live { id: id.clone(), url: url_found, left_out };
                status = self.settle_held(attempt, &end).await?.ok_or(Interrupt::Superseded)?;
                unknown_url = url.err();
            }
            ids.push(id);
        }
        match &run.left_out {
            _ if status != TargetStatus::Published => {}
            // Again, since a reply that failed meanwhile wrote another message.
            Some(left_out) => publishing::leave_out(&self.db, attempt.key, left_out, (self.now)()).await?,
            None if attempt.entries.len() > 1 || attempt.status == TargetStatus::Published => {
                let key = attempt.key;
                let is_held = publishing::mark_complete(&self.db, key, attempt.fence, (self.now)()).await?;
                // The attempt that took the target up meanwhile may have scheduled another.
                if !is_held {
                    return Err(Interrupt::Superseded);
                }
            }
            None => {}
        }
        if status == TargetStatus::Published && attempt.status == status && attempt.url.is_none() {
            let checkpoints = RowCheckpoints { engine: self, attempt, position: 0 };
            let id = ids.first().expect("a post has a main container");
            match address(account.platform, &account.session(&checkpoints), id).await {
                Ok(url) => publishing::store_url(&self.db, attempt.key, &url).await?,
                Err(failure) => unknown_url = Some(failure),
            }
        }
        match unknown_url {
            Some(failure) => Err(Interrupt::NoUrl(failure)),
            None => Ok(status),
        }
    }

    /// Checks a post by the rules that its creation was checked by, before anything of it is published: since then its
    /// files were fetched, its account was connected again, or a new version of the service came with other rules.
    async fn check(&self, run: &Run, account: &AccountSession<'_>) -> Result<(), Interrupt> {
        let attempt = &run.attempt;
        let entries = &attempt.entries;
        if entries.iter().any(is_begun) {
            return Ok(());
        }
        let attached: Vec<_> = entries.iter().map(|entry| &entry.container.media[..]).collect();
        let media = self.attached_media(attempt.key.owner, &attached).await;
        let media = media.map_err(|error| self.interrupted(run, &entries[0], error))?;
        let drafts: Vec<_> = (entries.iter().zip(&media))
            .map(|(entry, media)| ContainerContent { text: &entry.container.content, media })
            .collect();
        let kind = AccountKind { account_type: &attempt.account.account_type, scopes: &attempt.scopes };
        let check = if attempt.place.is_reply() { check::check_reply } else { check::check_for };
        let issues = check(account.platform, kind, &drafts, &attempt.settings);
        match issues.into_iter().find(|issue| issue.severity == Severity::Error) {
            None => Ok(()),
            Some(issue) => {
                let message = format!("{} would refuse the post: {}", account.platform.name, issue.message);
                Err(Failure::rejected(422, message).into())
            }
        }
    }

    /// Settles a target for the attempt that holds it. "Dead" and "canceled" count only while it does: `None`
    /// when another attempt holds the target.
    async fn settle_held(&self, attempt: &Attempt, end: &End) -> Result<Option<TargetStatus>, store::Error> {
        match publishing::settle(&self.db, attempt.key, end, Some(attempt.fence), (self.now)()).await? {
            Settled::Ended(status) => {
                if let End::Live { .. } = end {
                    let latency = ((self.now)() - attempt.due_at).to_std().unwrap_or_default();
                    let (platform, mode) = (&attempt.account.platform, attempt.key.owner.mode);
                    metrics::published(platform, mode.as_str(), latency);
                }
                Ok(Some(status))
            }
            Settled::Superseded | Settled::Stale => Ok(None),
            Settled::Late(status) => {
                error!(
                    target.id = %attempt.key.target, post.id = %attempt.key.post, org.id = %attempt.key.owner.org,
                    "Target {} was found live after it had ended as {status}", attempt.key.target
                );
                Ok(Some(status))
            }
        }
    }

    /// Notes that the platform is processing, and returns the pause before the next look; `None` when the
    /// polling window has closed. The last look comes when the window closes.
    pub(crate) async fn keep_processing(
        &self,
        platform: &Adapter,
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
        publishing::record_processing(&self.db, target, fence, Some(since), Some(pause)).await?;
        Ok(Some(pause))
    }

    /// The failure of a post that the platform did not process in time. `last` is the error of the last look.
    pub(crate) fn window_closed(&self, run: &Run, last: Option<&Failure>) -> Failure {
        let platform = &run.attempt.account.platform;
        let message = match last {
            None => format!("{platform} was still processing when its window closed"),
            Some(last) => format!("{platform} had not said that it was done when its window closed ({last})"),
        };
        Failure::new(ErrorCode::PollTimeout, message).with_effect(Effect::from(run.attempt.is_in_doubt()))
    }

    /// Returns the wait before the next attempt; `None` when the budget is spent. A wait that the platform asked
    /// for is not scaled.
    pub fn next_attempt(&self, failure: &Failure, spent: Spent) -> Option<Duration> {
        let wait = retry::next(failure, spent, (self.jitter)())?;
        Some(if failure.retry_after.is_some() { wait } else { self.time_scale.scale(wait) })
    }

    /// Records a failed attempt and decides what comes next.
    // Model: Fail.
    pub(crate) async fn fail(&self, attempt: &Attempt, failure: Failure) -> Result<PublishResult, Error> {
        if self.is_free(attempt, &failure) {
            return self.rest(attempt, failure).await;
        }
        if failure.code == ErrorCode::AppRefused {
            return Box::pin(self.hold_app(attempt, failure)).await;
        }
        let refused = failure.code == ErrorCode::TokenExpired;
        let spent =
            Spent { attempts: attempt.spent(), token_attempts: attempt.token_attempts + u32::from(refused) };
        let wait = match self.next_attempt(&failure, spent) {
            // Refreshed at once; the wait is for what a refresh can't mend.
            Some(_) if refused => {
                if publishing::record_failure(&self.db, attempt, &failure, Duration::ZERO).await?.is_none() {
                    return Err(self.superseded());
                }
                return Ok(PublishResult::TokenRefused { grant_version: attempt.account.grant_version });
            }
            Some(wait) => wait,
            // The budget is spent, but the last call may have gone through.
            None if failure.is_ambiguous() && spent.attempts < retry::MAX_UNANSWERED => {
                let platform = (self.adapters)(&attempt.account.platform);
                let mode = attempt.key.owner.mode;
                let read_lag = platform.map_or(BUSY_RETRY, |platform| self.read_lag(platform, mode));
                failure.retry_after.unwrap_or(read_lag).max(read_lag)
            }
            None => return self.give_up(attempt, failure).await,
        };
        self.retry(attempt, failure, wait).await
    }

    /// Returns true if the platform throttled an attempt, which then costs nothing of the budget: the post is not
    /// at fault, and the platform's windows may be longer than ten attempts take.
    fn is_free(&self, attempt: &Attempt, failure: &Failure) -> bool {
        let limit = self.time_scale.scale(retry::THROTTLED_FREE);
        failure.code == ErrorCode::RateLimited
            && attempt.throttled_since.is_none_or(|since| attempt.begun_at < since + limit)
    }

    /// Records an attempt that the platform throttled and that costs nothing.
    async fn rest(&self, attempt: &Attempt, failure: Failure) -> Result<PublishResult, Error> {
        let times = attempt.free_attempts + 1;
        let pause = retry::throttled(&failure, times, (self.jitter)(), self.time_scale);
        publishing::free_attempt(&self.db, attempt).await?;
        self.retry(attempt, failure, pause).await
    }

    /// Lets a target wait, at no cost, until the platform takes its app again, and with it all posts with that app,
    /// unless the platform takes those.
    async fn hold_app(&self, attempt: &Attempt, failure: Failure) -> Result<PublishResult, Error> {
        let pause = self.hold_posts(attempt.key, &attempt.account.platform, &failure).await?;
        let wait = Wait {
            reason: WaitReason::App,
            look_after: pause,
            until: attempt.waits_since() + APP_LIMIT,
            then: Then::GiveUp(waited_in_vain(WaitReason::App).with_effect(failure.effect)),
            failure: Some(failure),
        };
        self.wait(attempt, wait).await
    }

    /// Holds the posts with the app that a platform refuses, or this one. Returns for how long.
    pub(crate) async fn hold_posts(
        &self,
        key: TargetKey,
        platform: &str,
        failure: &Failure,
    ) -> Result<Duration, store::Error> {
        // A wait that the platform asked for is not scaled.
        let pause = failure.retry_after.unwrap_or_else(|| self.time_scale.scale(APP_LOOK_INTERVAL));
        if publishing::hold(&self.db, key, failure.holds, &failure.message, pause).await? {
            error!(
                target.id = %key.target, org.id = %key.owner.org, platform,
                "{platform} refuses the app, whose owner has to act; the posts with it wait: {}", failure.message
            );
        }
        Ok(pause)
    }

    /// Records a failed attempt that is followed by another one.
    async fn retry(
        &self,
        attempt: &Attempt,
        failure: Failure,
        pause: Duration,
    ) -> Result<PublishResult, Error> {
        let Some(next) = publishing::record_failure(&self.db, attempt, &failure, pause).await? else {
            return Err(self.superseded());
        };
        if failure.code == ErrorCode::RateLimited && failure.holds.is_app() {
            publishing::rest_account(&self.db, attempt.key.owner, attempt.account.id, next).await?;
        }
        let TargetKey { owner, post, target, .. } = attempt.key;
        warn!(
            target.id = %target, post.id = %post, org.id = %owner.org, platform = attempt.account.platform,
            attempt = attempt.attempts, error.code = %failure.code, "Target {target} failed on {}, next try at {next}",
            attempt.account.platform
        );
        Err(self.failed(attempt, numbered(attempt.spent(), failure), pause))
    }

    /// The result of an attempt that the row contains as failed.
    fn failed(&self, attempt: &Attempt, failure: Failure, pause: Duration) -> Error {
        let is_new = attempt.last_failure.as_ref().is_none_or(|last| last.code != failure.code);
        Error::Failed { failure, pause, is_new }
    }

    /// Handles a live post whose address the platform did not return: it is asked a few times more, and the
    /// post stays without one after that.
    async fn await_url(&self, attempt: &Attempt, failure: Failure) -> Result<PublishResult, Error> {
        // Each further attempt counts.
        let spent = Spent { attempts: attempt.spent(), token_attempts: 0 };
        let asked = Failure { code: ErrorCode::NetworkError, ..failure.clone() };
        match self.next_attempt(&asked, spent).filter(|_| !failure.code.is_permanent()) {
            Some(pause) => {
                publishing::schedule_url_lookup(&self.db, attempt, Some(pause)).await?;
                let TargetKey { owner, post, target, .. } = attempt.key;
                warn!(
                    target.id = %target, post.id = %post, org.id = %owner.org,
                    platform = attempt.account.platform, error.code = %failure.code,
                    "Target {target} is live on {}, its address is not known yet", attempt.account.platform
                );
                Err(Error::Repeat { failure, pause })
            }
            None => {
                publishing::schedule_url_lookup(&self.db, attempt, None).await?;
                let message = format!("Published, but its address is not known: {failure}");
                publishing::note(&self.db, attempt.key, "address", &message, (self.now)()).await?;
                Ok(PublishResult::Ended { status: TargetStatus::Published })
            }
        }
    }

    /// Ends a target for which nothing may be published any more.
    async fn bar(&self, attempt: &Attempt, barred: Barred) -> Result<PublishResult, Error> {
        let reason = CancelReason::Deleted;
        match barred.end(attempt.place == Place::Nowhere, attempt.is_in_doubt()) {
            BarredEnd::Canceled => self.end(attempt, &End::Canceled { reason }).await,
            BarredEnd::Dead { may_be_live } => {
                let failure = match barred {
                    Barred::Disconnected => Failure::revoked("the account is not connected any more"),
                    Barred::Deleted => Failure::rejected(422, reason.to_string()),
                    Barred::Stopped => stopped(attempt),
                    Barred::MayBeUnpublished => Failure::network(MAY_BE_UNPUBLISHED, false),
                    Barred::NoParent(reason) => Failure::rejected(422, reason.to_string()),
                };
                self.give_up(attempt, failure.with_effect(Effect::from(may_be_live))).await
            }
        }
    }

    /// Ends a target for the attempt that holds it.
    async fn end(&self, attempt: &Attempt, end: &End) -> Result<PublishResult, Error> {
        match self.settle_held(attempt, end).await? {
            Some(status) => Ok(PublishResult::Ended { status }),
            None => Err(self.superseded()),
        }
    }

    /// Ends a target that can't be published.
    pub(crate) async fn give_up(
        &self,
        attempt: &Attempt,
        mut failure: Failure,
    ) -> Result<PublishResult, Error> {
        if failure.code == ErrorCode::TokenExpired && attempt.account.grant_sealed.is_some() {
            let account = &attempt.account;
            self.mark_lost(attempt.key.owner, account.id, account.grant_version, &failure).await?;
        }
        if attempt.barred == Some(Barred::Stopped) && failure.code != ErrorCode::Stopped {
            let stopped = stopped(attempt);
            let message = format!("{}; {failure}", stopped.message);
            failure = Failure::new(stopped.code, message).with_effect(failure.effect);
        }
        if failure.is_ambiguous() {
            failure.message = format!("{}{MAY_BE_LIVE}", failure.message);
        }
        let source = failure.code.source();
        warn!(
            target.id = %attempt.key.target, post.id = %attempt.key.post, org.id = %attempt.key.owner.org,
            platform = attempt.account.platform, error.code = %failure.code, "Gave target {} up", attempt.key.target
        );
        self.end(attempt, &End::Dead { failure, source }).await
    }

    /// Returns one container as its adapter publishes it. `ids` are those of the containers before it.
    pub(crate) async fn publication(
        &self,
        attempt: &Attempt,
        entry: &Entry,
        ids: &[String],
    ) -> Result<PublishRequest, MediaError> {
        let doubted_since = entry.doubted_since.or(entry.commit_begun_at);
        let taken = match doubted_since {
            Some(since) => {
                publishing::captured_ids(
                    &self.db,
                    attempt.key,
                    entry.container.position,
                    attempt.account.id,
                    since,
                )
                .await?
            }
            None => Vec::new(),
        };
        let (platform, settings) = (&attempt.account.platform, &attempt.settings);
        let adapter = (self.adapters)(platform);
        let is_series =
            !attempt.place.is_reply() && adapter.is_some_and(|adapter| adapter.publisher.is_series(settings));
        let reply_to = if is_series { None } else { reply_to(attempt, adapter, ids) };
        let position = entry.container.position + u16::from(attempt.place.is_reply());
        let place = if is_series { 0 } else { position };
        let media =
            self.resolve_media(attempt.key.owner, platform, &entry.container, place, settings).await?;
        Ok(PublishRequest {
            target: attempt.key.target,
            position,
            text: entry.container.content.clone(),
            media,
            settings: settings.clone(),
            reply_to,
            created_at: attempt.created_at,
            commit_begun_at: doubted_since,
            taken,
            is_restored: entry.is_restored,
        })
    }

    /// The interrupt of an attempt whose media can't be published.
    fn interrupted(&self, run: &Run, entry: &Entry, error: MediaError) -> Interrupt {
        let effect = Effect::from(entry.commit_begun_at.is_some());
        match error {
            // A call was made with them, and without them no look-up can tell its outcome.
            MediaError::Unusable(failure) if entry.commit_begun_at.is_some() => {
                Interrupt::Undecidable(failure.ambiguous())
            }
            MediaError::Unusable(failure) => Interrupt::Failure(failure),
            MediaError::Unread(failure) => Interrupt::Failure(failure.with_effect(effect)),
            MediaError::NotReady(failure) => Interrupt::Wait(Box::new(Wait {
                reason: WaitReason::Rendition,
                look_after: self.time_scale.scale(BUSY_RETRY),
                until: run.waits_since() + FILE_LIMIT,
                then: Then::GiveUp(waited_in_vain(WaitReason::Rendition).with_effect(effect)),
                failure: Some(failure),
            })),
            MediaError::Fault(error) => Interrupt::Fault(error),
        }
    }
}

/// Returns a failure with the number of the attempt that had it, as operators see it in Temporal. A wait before the first
/// one has none.
fn numbered(number: u32, failure: Failure) -> Failure {
    if number == 0 {
        return failure;
    }
    let message = format!("attempt {number} of {}: {}", retry::ATTEMPTS, failure.message);
    Failure { message, ..failure }
}

/// Counts an attempt by its result.
fn count(attempt: &Attempt, result: &Result<TargetStatus, Interrupt>) {
    let code: Cow<'static, str> = match result {
        Ok(_) | Err(Interrupt::NoUrl(_)) => "published".into(),
        Err(Interrupt::Processing(_)) => "processing".into(),
        Err(Interrupt::Wait(wait)) => match wait.reason {
            WaitReason::Freeze => "frozen".into(),
            WaitReason::Handover => "stopping".into(),
            _ => "waiting".into(),
        },
        Err(Interrupt::Barred(_)) => "barred".into(),
        Err(Interrupt::Superseded) => "superseded".into(),
        Err(Interrupt::Fault(_)) => "fault".into(),
        Err(Interrupt::Failure(failure) | Interrupt::Undecidable(failure)) => failure.code.to_string().into(),
    };
    trace::note("fanfare.result", code.clone());
    if matches!(result, Err(Interrupt::Failure(_) | Interrupt::Undecidable(_) | Interrupt::Fault(_))) {
        trace::fail(code.clone());
    }
    trace::note("fanfare.platform", attempt.account.platform.clone());
    metrics::attempt(&attempt.account.platform, attempt.key.owner.mode.as_str(), code);
}

/// The failure of a target that has waited for too long.
fn waited_in_vain(reason: WaitReason) -> Failure {
    match reason {
        WaitReason::File | WaitReason::Rendition => {
            Failure::rejected(422, "one of its files was not ready in time")
        }
        WaitReason::Parent => Failure::rejected(422, "the post that it replies to was not live in time"),
        WaitReason::Rest => Failure::rate_limited("the platform throttled the account for two days", None),
        WaitReason::App => Failure::app_refused("the platform refused the app for more than a month", None),
        reason => Failure::network(format!("the wait for {reason} ended in vain"), false),
    }
}

fn is_begun(entry: &Entry) -> bool {
    entry.commit_begun_at.is_some() || entry.platform_id.is_some()
}

/// Returns the posts that a container replies to. `ids` are those of the target's containers before it.
fn reply_to(attempt: &Attempt, platform: Option<&Adapter>, ids: &[String]) -> Option<ReplyTo> {
    let below = match &attempt.place {
        Place::Below(parent) => Some(parent),
        Place::Own | Place::Nowhere => None,
    };
    let root = below.map(|parent| &parent.root).or(ids.first())?;
    // What takes one comment takes it below the main post.
    let is_flat = platform.is_some_and(|platform| platform.limits.replies == Replies::FirstComment);
    let last = below.map(|parent| &parent.last).filter(|_| !is_flat);
    let parent = ids.last().or(last).unwrap_or(root);
    Some(ReplyTo { root: root.clone(), parent: parent.clone() })
}

/// The failure of a target that an operator ends.
fn stopped(attempt: &Attempt) -> Failure {
    let reason = attempt.stop_reason.as_deref().unwrap_or_default();
    Failure::new(ErrorCode::Stopped, format!("an operator stopped it: {reason}"))
}

/// Fails for a reply that the account can't make any more: it may have been connected again with fewer scopes.
fn check_reply(attempt: &Attempt, platform: &Adapter) -> Result<(), Failure> {
    if !attempt.place.is_reply() || attempt.entries.iter().any(is_begun) {
        return Ok(());
    }
    match platform.takes_no_reply(&attempt.scopes) {
        Some(why) => Err(Failure::rejected(403, format!("{} {why}", platform.id))),
        None => Ok(()),
    }
}

/// Removes from an attempt the containers that its platform has no place for, or its account no scopes, and returns
/// them.
fn leave_out(platform: &Adapter, attempt: &mut Attempt) -> Option<LeftOut> {
    // A reply's number of containers was checked; without the scopes for it, none is published.
    if attempt.place.is_reply() {
        return None;
    }
    let kept = attempt.entries.len().min(platform.containers(&attempt.scopes, &attempt.settings));
    // A container that is live, or may be, stays: the account may have been connected again with fewer scopes.
    let begun = attempt.entries.iter().rposition(is_begun);
    let left_out = attempt.entries.split_off(kept.max(begun.map_or(0, |last| last + 1)));
    let message = |count| format!("{} {}", platform.id, platform.left_out(&attempt.scopes, count));
    left_out.first().map(|first| LeftOut { from: first.container.position, message: message(left_out.len()) })
}

/// Time left in a window; `None` when it has closed.
fn left(since: DateTime<Utc>, window: Duration, now: DateTime<Utc>) -> Option<Duration> {
    (since + window - now).to_std().ok().filter(|left| !left.is_zero())
}

/// Returns the public address of a post, within [`URL_TIMEOUT`].
async fn address(platform: &Adapter, cx: &Session<'_>, id: &str) -> Result<String, Failure> {
    let asked = tokio::time::timeout(URL_TIMEOUT, platform.publisher.permalink(cx, id)).await;
    asked.unwrap_or_else(|_| Err(Failure::network("the post's address did not arrive in time", false)))
}

pub(crate) fn window(platform: &Adapter) -> Duration {
    match platform.limits.publishing {
        Publishing::Immediate => WINDOW,
        Publishing::Asynchronous { window } => window,
    }
}

#[cfg(test)]
mod tests;
