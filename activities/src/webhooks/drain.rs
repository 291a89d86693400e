//! Sends the due deliveries of an endpoint.
//!
//! One request at a time at first, and one more after each success, up to [`MAX_CONCURRENCY`]; half as many after a
//! failure. One more also when none is answered for a moment: an endpoint that hangs must not keep deliveries from
//! their times. Each takes a share of its organization ([`crate::share`]). First attempts begin in the order in which
//! their events were created; a failed delivery is due again later and holds up no other.
//!
//! An endpoint that has failed for longer than a delivery is tried, and has a backlog, is dead ([`store::webhooks::drain`]): it
//! gets single requests, at an interval. While nothing is due, the activity stays for a moment, so that the next event
//! needs no wake-up.
//!
//! A task of its own makes each request, and the loop alone uses the database: what has been answered by then is
//! written by one statement, and what is due is claimed by another. One long activity instead of one per batch,
//! because the history of a batch costs Temporal more than all its requests cost the worker: a schedule, a start, a
//! completion and a workflow task, against a heartbeat every few seconds.

use super::{Request, send};
use crate::{
    Deps,
    share::{Share, Shares},
};
use anyhow::Context;
use domain::{outbox::EndpointRef, retry};
use std::{sync::Arc, time::Duration};
use store::webhooks::{
    deliveries::Response,
    drain::{self, Claim, Endpoint, Outcome, PART, Report, Reported, Sleep},
};
use tokio::{task::JoinSet, time::Instant};
use tracing::{error, warn};
use workflows::activities::DrainResult;

/// Maximum number of concurrent requests to one endpoint.
const MAX_CONCURRENCY: usize = 20;
/// Lease of a claim: longer than a request may take.
const CLAIM_LEASE: Duration = Duration::from_secs(retry::DELIVERY_TIMEOUT.as_secs() + 15);
/// Time for which an endpoint counts as awake after its worker was last seen. Renewed after a quarter of it.
const AWAKE_LEASE: Duration = Duration::from_secs(60);
/// Lower limit of the scaled lease.
const MIN_AWAKE_LEASE: Duration = Duration::from_secs(4);
/// Time after which the activity ends and the workflow starts another, well before its time limit.
const MAX_RUN: Duration = Duration::from_secs(10 * 60);
/// Time for which it stays after the last delivery.
const LINGER: Duration = Duration::from_secs(5);
/// First and longest pause between two looks for more.
const LOOK_INTERVAL: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));
/// Time without an answer after which one more request may begin.
const SLOW_ANSWER: Duration = Duration::from_secs(1);
/// Time after an answer in which others are awaited, to be written together.
const GATHERING: Duration = Duration::from_millis(5);

/// Sends what is due until nothing is, the activity's time is up or `is_stopped`. Requests that have begun are finished
/// first.
pub(super) async fn drain(
    deps: &Arc<Deps>,
    shares: &Shares,
    endpoint: EndpointRef,
    is_stopped: impl Fn() -> bool,
) -> anyhow::Result<DrainResult> {
    let EndpointRef { owner, webhook } = endpoint;
    // Held to the end: an organization with many endpoints has no more than a share of the activities either.
    let share = match shares.take(owner.org, (deps.engine.jitter)()) {
        Ok(share) => share,
        Err(wait) => return Ok(DrainResult::Crowded { wait }),
    };
    let lease = deps.engine.time_scale.scale(AWAKE_LEASE).max(MIN_AWAKE_LEASE);
    let Some(state) = drain::wake(&deps.engine.db, owner, webhook, lease).await? else {
        return Ok(DrainResult::Done);
    };
    let line = Line {
        deps,
        shares,
        endpoint,
        lease,
        state,
        began: Instant::now(),
        seen: Instant::now(),
        concurrency: 1,
        sending: JoinSet::new(),
        permits: Vec::new(),
        idle: Idle::new(deps.engine.time_scale.scale(LINGER)),
    };
    let result = line.run(is_stopped).await;
    drop(share);
    result
}

/// The line to an endpoint.
struct Line<'a> {
    deps: &'a Arc<Deps>,
    shares: &'a Shares,
    endpoint: EndpointRef,
    lease: Duration,
    state: Endpoint,
    began: Instant,
    /// When the endpoint was last marked as awake.
    seen: Instant,
    /// Number of concurrent requests that the endpoint bears.
    concurrency: usize,
    /// Requests under way, which are canceled with the activity.
    sending: JoinSet<(Claim, Response)>,
    /// Shares of all of them but one, which has the activity's own.
    permits: Vec<Share<'a>>,
    idle: Idle,
}

impl Line<'_> {
    async fn run(mut self, is_stopped: impl Fn() -> bool) -> anyhow::Result<DrainResult> {
        let (db, EndpointRef { owner, webhook }) = (&self.deps.engine.db, self.endpoint);
        loop {
            let is_over = is_stopped() || self.began.elapsed() > MAX_RUN;
            if self.seen.elapsed() > self.lease / 4 {
                let Some(state) = drain::wake(db, owner, webhook, self.lease).await? else {
                    return Ok(DrainResult::Done);
                };
                (self.state, self.seen) = (state, Instant::now());
            }
            if !self.state.is_open && self.sending.is_empty() {
                // Paused or deleted: what waits fails, in parts.
                let abandoned = drain::abandon(db, webhook, self.state.open_from).await?;
                // Then nothing is claimed, unless it is open again.
                self.state.is_open = abandoned < PART.unsigned_abs();
                if is_over {
                    return Ok(DrainResult::More);
                }
                continue;
            }
            let room = if is_over || !self.state.is_open { 0 } else { self.room() };
            if room > 0 && self.begin(room).await? {
                continue;
            }
            if !self.sending.is_empty() {
                // A slow answer holds up nothing: there may be room for what becomes due meanwhile.
                let look = if room > 0 { self.idle.next_pause() } else { SLOW_ANSWER };
                let answers = self.answers(look).await?;
                if !answers.is_empty() {
                    self.finish(answers).await?;
                } else if room == 0 {
                    self.concurrency = (self.concurrency + 1).min(MAX_CONCURRENCY);
                }
                continue;
            }
            if is_over {
                return Ok(DrainResult::More);
            }
            // A dead endpoint is not waited for, and neither is another while slots are few.
            if self.state.health.probe_in.is_none()
                && self.shares.are_roomy()
                && let Some(pause) = self.idle.pause()
            {
                tokio::time::sleep(pause).await;
                continue;
            }
            match drain::sleep(db, webhook).await? {
                Sleep::Done => return Ok(DrainResult::Done),
                Sleep::Until { wait, deliveries } => return Ok(DrainResult::Wait { wait, deliveries }),
                Sleep::Due => {
                    if let Some(probe_in) = &mut self.state.health.probe_in {
                        *probe_in = Duration::ZERO;
                    }
                }
                Sleep::Busy => {}
                Sleep::Closed => self.state.is_open = false,
            }
            tokio::time::sleep(self.idle.next_pause()).await;
        }
    }

    /// Returns the number of requests that may begin.
    fn room(&self) -> usize {
        match self.state.health.probe_in {
            Some(probe_in) => usize::from(self.sending.is_empty() && probe_in.is_zero()),
            None => self.concurrency.saturating_sub(self.sending.len()),
        }
    }

    /// Begins up to `room` attempts that are due. Returns true if it could begin none, but should look again at once.
    async fn begin(&mut self, room: usize) -> anyhow::Result<bool> {
        let EndpointRef { owner, webhook } = self.endpoint;
        let mut permits = Vec::new();
        // The first request has the activity's own share.
        let free = usize::from(self.sending.is_empty());
        while permits.len() + free < room
            && let Some(share) = self.shares.try_take(owner.org)
        {
            permits.push(share);
        }
        let limit = permits.len() + free;
        if limit == 0 {
            return Ok(false);
        }
        let db = &self.deps.engine.db;
        let claimed = drain::claim(db, webhook, self.state.open_from, limit, CLAIM_LEASE).await?;
        if claimed.claims.is_empty() {
            return Ok(claimed.failed > 0);
        }
        self.idle.end();
        permits.truncate(claimed.claims.len() - free);
        self.permits.append(&mut permits);
        for claim in claimed.claims {
            self.sending.spawn(attempt(self.deps.clone(), self.endpoint, claim));
        }
        Ok(false)
    }

    /// Waits for answers; none if there are none within a time.
    async fn answers(&mut self, within: Duration) -> anyhow::Result<Vec<(Claim, Response)>> {
        let mut answers = Vec::new();
        let mut deadline = Instant::now() + within;
        while let Ok(Some(answer)) = tokio::time::timeout_at(deadline, self.sending.join_next()).await {
            if answers.is_empty() {
                deadline = Instant::now() + GATHERING;
            }
            answers.push(answer.context("a request to an endpoint panicked")?);
        }
        self.permits.truncate(self.sending.len().saturating_sub(1));
        Ok(answers)
    }

    /// Writes the outcomes of attempts, and what others need to know of the endpoint.
    async fn finish(&mut self, answers: Vec<(Claim, Response)>) -> anyhow::Result<()> {
        let engine = &self.deps.engine;
        let (db, webhook) = (&engine.db, self.endpoint.webhook);
        let scale = |wait| engine.time_scale.scale(wait);
        let outcomes: Vec<_> = answers
            .into_iter()
            .map(|(claim, response)| {
                let retry_in = retry::delivery_backoff(claim.attempt).map(scale);
                Outcome { claim, response, retry_in }
            })
            .collect();
        drain::settle(db, &outcomes, (engine.now)()).await?;
        let (mut failures, mut has_succeeded) = (0, false);
        for outcome in &outcomes {
            if outcome.response.error.is_none() {
                self.concurrency = (self.concurrency + 1).min(MAX_CONCURRENCY);
                (failures, has_succeeded) = (0, true);
            } else {
                self.concurrency = (self.concurrency / 2).max(1);
                failures += 1;
            }
        }
        if failures == 0 && !self.state.health.is_failing {
            return Ok(());
        }
        let report = Report {
            failures,
            has_succeeded,
            error: outcomes.iter().rev().find_map(|outcome| outcome.response.error.as_deref()),
            patience: scale(retry::delivery_schedule()),
            probe_interval: scale(retry::PROBE_INTERVAL),
        };
        let Reported { health, failing_since } =
            drain::report(db, self.endpoint.owner, webhook, report, (engine.now)()).await?;
        self.state.health = health;
        let age = scale(retry::FAILING_AFTER);
        let failing_for = failing_since.and_then(|since| ((engine.now)() - since).to_std().ok());
        if health.probe_in.is_some() && failing_for.is_some_and(|failing| failing > age) {
            let mut expired = 0;
            loop {
                let part = drain::expire(db, webhook, self.state.open_from, age).await?;
                expired += part;
                if part < PART.unsigned_abs() {
                    break;
                }
            }
            if expired > 0 {
                warn!(
                    webhook.id = %webhook, org.id = %self.endpoint.owner.org, expired,
                    "An endpoint has not answered for a day, and {expired} deliveries that waited as long failed"
                );
            }
        }
        Ok(())
    }
}

/// Makes an attempt: only the request.
async fn attempt(deps: Arc<Deps>, endpoint: EndpointRef, claim: Claim) -> (Claim, Response) {
    let EndpointRef { owner, webhook } = endpoint;
    let request = Request {
        event: claim.event,
        post: claim.post,
        url: &claim.url,
        secret_sealed: &claim.secret_sealed,
        body: &claim.body,
    };
    let response = send(&deps, owner, webhook, request).await.unwrap_or_else(|error| {
        // One that can't be sent must not hold up the others.
        error!(webhook.id = %webhook, error = %format!("{error:#}"), "A delivery can't be sent");
        Response { error: Some("the request could not be made".to_owned()), ..Response::default() }
    });
    (claim, response)
}

/// Pauses while nothing is due.
struct Idle {
    limit: Duration,
    since: Option<Instant>,
    pause: Duration,
}

impl Idle {
    fn new(limit: Duration) -> Self {
        Self { limit, since: None, pause: LOOK_INTERVAL.0 }
    }

    /// Something was due.
    fn end(&mut self) {
        (self.since, self.pause) = (None, LOOK_INTERVAL.0);
    }

    /// Returns the pause before the next look; `None` after the limit.
    fn pause(&mut self) -> Option<Duration> {
        let since = *self.since.get_or_insert_with(Instant::now);
        (since.elapsed() < self.limit).then(|| self.next_pause())
    }

    fn next_pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (pause * 2).min(LOOK_INTERVAL.1);
        pause
    }
}
