//! Look-ups: whether a call that publishes has gone through, and whether a platform is still processing.

use crate::{
    Engine, Error,
    attempt::{BUSY_RETRY, Interrupt, Run, window},
    checkpoints::RowCheckpoints,
    media::MediaError,
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    ErrorCode, Failure, Mode, Then, Wait, WaitReason,
    publish::{PollResult, PublishResult, SettleResult},
    publishing::{CALL_MARGIN, wait::CLAIM_MARGIN},
};
use platforms::{Adapter, Checkpoint, Checkpoints, Idempotency, Located, Prepared, PublishRequest, Session};
use std::time::Duration;
use store::publishing::{self, BeginResult, Entry, Place, Purpose, TargetKey};
use tracing::warn;

/// Pause before a failed look at a processing platform is repeated, where the platform names none.
const POLL_RETRY: Duration = Duration::from_secs(15);
/// How long the open call of a stopped target is looked up before the target ends as ambiguous.
const STOP_LOOKUP_LIMIT: Duration = Duration::from_secs(10 * 60);
/// How much later than the end of the read lag a look-up decides at the latest.
const READS_MARGIN: Duration = Duration::from_secs(60);
/// Least read lag under a time scale. The sandbox's lists lag by a second of real time, unless its settings say
/// otherwise.
pub const READ_LAG_FLOOR: Duration = Duration::from_secs(2);

impl Engine {
    /// Looks once at a platform that is processing a target's post.
    ///
    /// # Errors
    ///
    /// [`Error::Repeat`] while it is processing, else as [`Engine::attempt`].
    // Model: Look.
    pub async fn look(&self, key: TargetKey) -> Result<PollResult, Error> {
        let run = match publishing::begin(&self.db, key, Purpose::Look).await? {
            BeginResult::Attempt(attempt) => Run::of(self, attempt),
            BeginResult::Stale
            | BeginResult::Early(_)
            | BeginResult::Failed { .. }
            | BeginResult::Held { .. } => return Ok(PollResult::Ready),
            BeginResult::Ended(status) => return Ok(PollResult::Ended { status }),
        };
        let attempt = &run.attempt;
        if attempt.place == Place::Nowhere || attempt.waited_in_vain.is_some() || run.stops_its_workers() {
            // The next attempt ends the target.
            return Ok(PollResult::Ready);
        }
        let account = match self.open_session(attempt).await {
            Ok(Ok(account)) => account,
            Ok(Err(failure)) => return polled(self.give_up(attempt, failure).await?),
            // The next attempt meets the fault, and records it.
            Err(_) => return Ok(PollResult::Ready),
        };
        let Some(entry) = attempt.entries.iter().find(|entry| entry.platform_id.is_none()) else {
            return Ok(PollResult::Ready);
        };
        let ids: Vec<_> = attempt.entries.iter().map_while(|entry| entry.platform_id.clone()).collect();
        let checkpoints = RowCheckpoints { engine: self, attempt, position: entry.container.position };
        let cx = account.session(&checkpoints);
        let platform = account.platform;
        let at = Checkpoint(entry.checkpoint.clone());
        let shown = |post: &_, begun| self.shown_at(platform, &run, entry, post, begun) <= run.now();
        let looked = match self.publication(attempt, entry, &ids).await {
            Ok(post) => match entry.commit_begun_at {
                Some(begun) => match platform.locate(&cx, &post, &at).await {
                    Ok(Located::Live(found))
                        if self.claim(attempt, entry, &found, shown(&post, begun)).await? =>
                    {
                        self.capture(attempt, entry.container.position, found.id()).await?;
                        Ok(None)
                    }
                    // It may be another target's, whose end is awaited within the window.
                    Ok(Located::Live(_)) if entry.accepted => Ok(Some(BUSY_RETRY)),
                    Ok(Located::Processing { poll_after }) => Ok(Some(poll_after)),
                    Ok(Located::Absent) if entry.accepted => Ok(Some(BUSY_RETRY)),
                    // The next attempt decides.
                    Ok(
                        Located::Live(_)
                        | Located::Absent
                        | Located::Failed(_)
                        | Located::Unknown
                        | Located::TooMany,
                    ) => Ok(None),
                    // It says nothing about the call that is looked up.
                    Err(failure) => Err(failure.ambiguous()),
                },
                // The next attempt ends the target.
                None if attempt.barred.is_some() => Ok(None),
                None => match platform.publisher.prepare(&cx, &post, at).await {
                    Ok(Prepared::Ready(at)) => checkpoints.save(&at).await.map(|()| None),
                    Ok(Prepared::Processing { at, poll_after }) => {
                        checkpoints.save(&at).await.map(|()| Some(poll_after))
                    }
                    Err(failure) => Err(failure),
                },
            },
            Err(MediaError::NotReady(failure) | MediaError::Unread(failure)) => Err(failure),
            // The next attempt meets it as well.
            Err(MediaError::Unusable(_) | MediaError::Fault(_)) => Ok(None),
        };
        let (pause, busy) = match looked {
            Ok(None) => {
                let (target, fence) = (key.target, attempt.fence);
                publishing::record_processing(&self.db, target, fence, attempt.processing_since, None)
                    .await?;
                return Ok(PollResult::Ready);
            }
            Ok(Some(pause)) => {
                let message = format!("{} is still processing", attempt.account.platform);
                (pause, Failure::network(message, false))
            }
            // A refused token is a failed attempt, so that it is counted.
            Err(failure) if failure.code == ErrorCode::TokenExpired && !failure.is_revoked() => {
                return polled(self.fail(attempt, failure).await?);
            }
            Err(failure) if failure.code.is_permanent() || failure.is_revoked() => {
                return polled(self.give_up(attempt, failure).await?);
            }
            // A look that failed says nothing about the post: the window goes on.
            Err(failure) => {
                let jittered = self.time_scale.scale(POLL_RETRY).mul_f64(0.5 + (self.jitter)() / 2.0);
                (failure.retry_after.unwrap_or(jittered), failure)
            }
        };
        match self.keep_processing(platform, &run, pause).await? {
            Some(pause) => Err(Error::Repeat { failure: busy, pause }),
            None => {
                let last = (busy.code != ErrorCode::NetworkError).then_some(&busy);
                polled(self.give_up(attempt, self.window_closed(&run, last)).await?)
            }
        }
    }

    /// Finds out whether a commit that was begun has happened: returns its id, or `None` when it certainly has
    /// not.
    // Model: Locate.
    pub(crate) async fn locate(
        &self,
        platform: &Adapter,
        cx: &Session<'_>,
        run: &Run,
        entry: &Entry,
        post: &PublishRequest,
    ) -> Result<Option<String>, Interrupt> {
        let at = Checkpoint(entry.checkpoint.clone());
        let code = entry.ambiguous_error_code.unwrap_or(ErrorCode::NetworkError);
        let Some(begun) = entry.commit_begun_at else { return Ok(None) };
        let shown_at = self.shown_at(platform, run, entry, post, begun);
        match platform.locate(cx, post, &at).await {
            Ok(Located::Live(found))
                if self.claim(&run.attempt, entry, &found, shown_at <= run.now()).await? =>
            {
                Ok(Some(found.into_id()))
            }
            // It publishes nothing more, so that the window is its end.
            Ok(Located::Live(_)) if entry.accepted => Err(Interrupt::Processing(BUSY_RETRY)),
            Ok(Located::Live(_)) => Err(self.contested(run, platform, code)),
            Ok(Located::Processing { poll_after }) => Err(Interrupt::Processing(poll_after)),
            Ok(Located::Failed(failure)) => {
                let (target, fence) = (run.attempt.key.target, run.attempt.fence);
                publishing::discard(&self.db, target, entry.container.position, fence).await?;
                Err(Interrupt::Failure(failure.certain()))
            }
            Ok(Located::Absent) if entry.accepted => Err(Interrupt::Processing(BUSY_RETRY)),
            Ok(Located::Absent) => {
                let rest = shown_at - run.now();
                if rest <= TimeDelta::zero() {
                    return Ok(None);
                }
                let message = "no answer came, and it is too early to say that nothing was published";
                let early = Failure::new(code, message);
                Err(Interrupt::Wait(Box::new(Wait {
                    reason: WaitReason::Reads,
                    look_after: rest.to_std().unwrap_or_default(),
                    until: shown_at + READS_MARGIN,
                    failure: Some(run.attempt.last_failure.clone().unwrap_or_else(|| early.clone())),
                    then: Then::GiveUp(early.ambiguous()),
                })))
            }
            Ok(Located::Unknown) => Err(undecidable(code, "it has no way to tell")),
            Ok(Located::TooMany) => {
                Err(undecidable(code, "the account has published too many posts since to search all of them"))
            }
            Err(failure) if failure.code.is_permanent() => Err(undecidable(code, &failure.message)),
            Err(failure) => Err(Interrupt::Failure(failure.ambiguous())),
        }
    }

    /// Returns from when on reads show what a call that was begun has published; nothing is published after that.
    fn shown_at(
        &self,
        platform: &Adapter,
        run: &Run,
        entry: &Entry,
        post: &PublishRequest,
        begun: DateTime<Utc>,
    ) -> DateTime<Utc> {
        let mode = run.attempt.key.owner.mode;
        match (platform.limits.idempotency, entry.commit_ended_at) {
            (Idempotency::Idempotent, _) => begun,
            (Idempotency::MayDuplicate { .. }, Some(ended)) => ended + self.read_lag(platform, mode),
            // Nobody saw the call end: it may be on its way until its deadline.
            (Idempotency::MayDuplicate { .. }, None) => {
                entry.commit_deadline.unwrap_or(begun + self.commit_limit(platform, post))
                    + self.deadline_margin(mode)
                    + self.read_lag(platform, mode)
            }
        }
    }

    /// The wait of a target that found a post by its text that another one may have published: until that one has an
    /// id, or has ended, which its polling window bounds.
    fn contested(&self, run: &Run, platform: &Adapter, code: ErrorCode) -> Interrupt {
        let message = "no answer came, and what was found may be another post with the same words";
        let failure = Failure::new(code, message).ambiguous();
        let limit = self.time_scale.scale(window(platform) + CLAIM_MARGIN);
        Interrupt::Wait(Box::new(Wait {
            reason: WaitReason::Claim,
            look_after: self.time_scale.scale(BUSY_RETRY),
            until: run.waits_since() + limit,
            failure: Some(failure.clone()),
            then: Then::GiveUp(failure),
        }))
    }

    /// Looks up the open call of a target that an operator stopped. Publishes nothing. Returns a pause while
    /// that may still bring an answer; `None` when nothing is ambiguous any more, or nothing can tell.
    pub(crate) async fn look_up_stopped(&self, key: TargetKey) -> anyhow::Result<Option<SettleResult>> {
        // From here on an attempt that is still under way neither publishes nor ends the target.
        let run = match publishing::begin(&self.db, key, Purpose::Look).await? {
            BeginResult::Attempt(attempt) => Run::of(self, attempt),
            BeginResult::Ended(status) => return Ok(Some(SettleResult::Ended { status })),
            BeginResult::Stale
            | BeginResult::Early(_)
            | BeginResult::Failed { .. }
            | BeginResult::Held { .. } => return Ok(None),
        };
        let attempt = &run.attempt;
        if attempt.place == Place::Nowhere || run.stops_its_workers() {
            return Ok(None);
        }
        let account = match self.open_session(attempt).await {
            Ok(Ok(account)) => account,
            Ok(Err(_)) => return Ok(None),
            // It ends all the same, and says that it may be live.
            Err(error) => {
                warn!(target.id = %key.target, error = format!("{error:#}"), "A stopped target is not looked up");
                return Ok(None);
            }
        };
        let ids: Vec<_> = attempt.entries.iter().map_while(|entry| entry.platform_id.clone()).collect();
        let open = attempt.entries.iter().find(|entry| entry.platform_id.is_none());
        let Some((entry, begun)) = open.and_then(|entry| Some((entry, entry.commit_begun_at?))) else {
            return Ok(None);
        };
        let checkpoints = RowCheckpoints { engine: self, attempt, position: entry.container.position };
        let cx = account.session(&checkpoints);
        let Ok(post) = self.publication(attempt, entry, &ids).await else { return Ok(None) };
        let pause = match self.locate(account.platform, &cx, &run, entry, &post).await {
            Ok(Some(id)) => {
                self.capture(attempt, entry.container.position, &id).await?;
                // Settling finds it live; what was to follow it is not published.
                return Ok(None);
            }
            Ok(None) => {
                publishing::clear_intent(&self.db, key.target, entry.container.position, attempt.fence)
                    .await?;
                return Ok(None);
            }
            Err(Interrupt::Wait(wait)) => wait.look_after,
            Err(Interrupt::Processing(pause)) => pause,
            Err(Interrupt::Failure(failure)) => {
                failure.retry_after.unwrap_or(self.time_scale.scale(POLL_RETRY))
            }
            Err(Interrupt::Fault(error)) => return Err(error),
            Err(
                Interrupt::Undecidable(_)
                | Interrupt::Superseded
                | Interrupt::Barred(_)
                | Interrupt::NoUrl(_),
            ) => return Ok(None),
        };
        publishing::note_answer(&self.db, key.target, attempt.fence).await?;
        // Never too short to believe that the call published nothing.
        let mode = key.owner.mode;
        let least = self.deadline_margin(mode) + self.read_lag(account.platform, mode) * 2;
        let limit = self.time_scale.scale(STOP_LOOKUP_LIMIT).max(least);
        let last = entry.commit_deadline.unwrap_or(begun) + limit;
        Ok((run.now() < last)
            .then(|| SettleResult::RetryAfter { pause: pause.max(Duration::from_millis(100)) }))
    }

    /// How long a platform's reads may lag behind its writes. That is the platform's time, which no time scale of
    /// ours shortens; the sandbox's own lag is known to be short.
    pub(crate) fn read_lag(&self, platform: &Adapter, mode: Mode) -> Duration {
        match (platform.limits.idempotency, mode) {
            (Idempotency::Idempotent, _) => Duration::ZERO,
            (Idempotency::MayDuplicate { read_lag }, Mode::Live) => read_lag,
            (Idempotency::MayDuplicate { read_lag }, Mode::Test) => {
                self.time_scale.scale(read_lag).max(READ_LAG_FLOOR.min(read_lag))
            }
        }
    }

    /// How much later than its deadline a call that nobody saw end may reach the platform.
    fn deadline_margin(&self, mode: Mode) -> Duration {
        match mode {
            Mode::Live => CALL_MARGIN,
            Mode::Test => self.time_scale.scale(CALL_MARGIN),
        }
    }
}

fn undecidable(code: ErrorCode, why: &str) -> Interrupt {
    let message = format!("no answer came, and the platform can't say whether it published ({why})");
    Interrupt::Undecidable(Failure::new(code, message).ambiguous())
}

/// The result of a look that ended as an attempt does.
fn polled(published: PublishResult) -> Result<PollResult, Error> {
    match published {
        PublishResult::Ended { status } => Ok(PollResult::Ended { status }),
        PublishResult::TokenRefused { grant_version } => Ok(PollResult::TokenRefused { grant_version }),
        other @ (PublishResult::Stale | PublishResult::Wait { .. } | PublishResult::Processing { .. }) => {
            Err(anyhow::anyhow!("a look ended with {other:?}").into())
        }
    }
}
