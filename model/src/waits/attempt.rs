//! Attempts and looks, with every answer of the platform.

use super::{
    Above, Cause, File, NOW, Next, PAUSE, Part, Run, Steps, Turn, WINDOW, WaitFlaw, WaitState, Waiting, Waits,
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    Effect, ErrorCode, Failure, TargetStatus, Then, Wait, WaitReason,
    publishing::{
        self, Barred, BarredEnd, Place, Purpose,
        begin::Start,
        settle::{self, EndKind, Snapshot},
        wait::{APP_LIMIT, CLAIM_MARGIN, FAULT_LIMIT, HANDOVER_LIMIT},
    },
    retry::{self, Spent},
};

/// Longest time for which reads may not show what a call has published.
const READS_LIMIT: TimeDelta = TimeDelta::minutes(10);

/// Fence of every attempt: they follow one another.
const FENCE: i32 = 1;

impl Run {
    fn of(before: &WaitState, state: WaitState, start: &Start) -> Self {
        Self {
            state,
            is_counted: start.is_counted,
            barred: start.barred.is_some(),
            is_nowhere: start.place == Place::Nowhere,
            waiting: state.waiting,
            processing_since: before.processing_since,
            was_live: before.status == TargetStatus::Published,
            was_in_doubt: before.is_in_doubt(),
        }
    }

    /// Returns since when the target waits without an attempt that got further.
    fn waits_since(&self) -> i16 {
        self.waiting.map_or(0, |waiting| waiting.since)
    }

    /// Lets the attempt cost nothing.
    fn refund(&mut self) {
        self.state.spent = self.state.spent.saturating_sub(u8::from(self.is_counted));
    }

    fn then(mut self, change: impl FnOnce(&mut WaitState)) -> Self {
        change(&mut self.state);
        self
    }
}

/// Appends a result.
fn done(name: &'static str, turn: Turn, state: WaitState, next: &mut Steps) {
    next.push(Next { name, cause: Cause::Course, state: WaitState { turn, unanswered: 0, ..state } });
}

fn failure(code: ErrorCode) -> Failure {
    Failure::new(code, "")
}

impl Waits {
    /// Makes an attempt.
    pub(super) fn attempt(&self, before: &WaitState, next: &mut Steps) {
        let mut state = *before;
        let Some(start) = self.begin(&mut state, Purpose::Publish) else {
            next.push(Next { name: "Begin", cause: Cause::Course, state });
            return;
        };
        let run = Run::of(before, state, &start);
        if !self.stops_its_workers(&run) {
            self.crash(run, Turn::Attempt, next);
        }
        if let Some(barred) = start.barred
            && barred.is_over(run.is_nowhere, run.was_in_doubt)
        {
            self.bar(run, barred, next);
            return;
        }
        if start.waited_in_vain.is_some() {
            let hides = self.has(WaitFlaw::HidesDoubtOfWait);
            self.give_up(run, run.was_in_doubt && !hides, next);
            return;
        }
        if self.stops_its_workers(&run) {
            match start.barred.filter(|_| !run.was_in_doubt) {
                Some(barred) => self.bar(run, barred, next),
                None => self.give_up(run, run.was_in_doubt, next),
            }
            return;
        }
        if self.errors.contains(&ErrorCode::TokenExpired) {
            // The account has no grant any more.
            self.give_up(run, run.was_in_doubt, next);
        }
        if self.falters {
            self.fault(run, next);
        }
        self.publish(run, start.barred, next);
    }

    /// Stops an attempt or a look: its worker dies.
    fn crash(&self, run: Run, turn: Turn, next: &mut Steps) {
        let mut state = WaitState { turn, ..run.state };
        if self.kills {
            state.unanswered += u8::from(!self.has(WaitFlaw::KillsWithoutEnd));
        } else if state.crashes > 0 {
            state.crashes -= 1;
        } else {
            return;
        }
        next.push(Next { name: "Crash", cause: Cause::Course, state });
    }

    /// Returns true if so many workers stopped at the target that nothing more is done but to end it.
    fn stops_its_workers(&self, run: &Run) -> bool {
        u32::from(run.state.unanswered) >= retry::MAX_UNANSWERED
    }

    /// Publishes what is not live yet. A target is live with its first container, no matter which attempt found that.
    fn publish(&self, mut run: Run, barred: Option<Barred>, next: &mut Steps) {
        if run.state.parts[0].is_live && run.state.status != TargetStatus::Published {
            self.settle(&mut run.state, EndKind::Live, false);
        }
        let parts = &run.state.parts[..self.containers];
        let Some(position) = parts.iter().position(|part| !part.is_live) else {
            // Everything is live.
            let complete = |state: &mut WaitState| {
                (state.next_attempt, state.waiting, state.processing_since) = (None, None, None);
                (state.is_continuation, state.has_error) = (false, false);
            };
            let is_marked = self.containers > 1 || run.was_live;
            let run = if is_marked { run.then(complete) } else { run };
            done("MarkComplete", Turn::Waits { polls: false }, run.state, next);
            return;
        };
        if run.state.file == File::Deleted {
            // Without its file nothing is published, and no look-up can tell.
            self.give_up(run, parts[position].intent.is_some(), next);
            return;
        }
        if parts[position].intent.is_some() {
            self.look_up(run, position, barred, next);
        } else {
            self.publish_part(run, position, barred, next);
        }
    }

    /// Finds out whether a call that was begun has published.
    fn look_up(&self, run: Run, position: usize, barred: Option<Barred>, next: &mut Steps) {
        let part = run.state.parts[position];
        if part.may_come {
            // It publishes now, and is found.
            self.live(publish_accepted(run, position), position, barred, next);
            self.discard(run, position, next);
        }
        if part.is_accepted {
            self.keep_processing(run, next);
        }
        if part.copies > 0 {
            self.live(run, position, barred, next);
            if self.contests && !part.is_accepted {
                let until = self.at(run.waits_since()) + WINDOW + CLAIM_MARGIN;
                let failure = failure(ErrorCode::NetworkError).ambiguous();
                self.wait(run, WaitReason::Claim, until, Some(&failure), Then::GiveUp(failure.clone()), next);
            }
        }
        if !part.is_accepted && part.intent == Some(0) {
            let early = failure(ErrorCode::NetworkError).ambiguous();
            self.wait(
                run,
                WaitReason::Reads,
                NOW + READS_LIMIT,
                Some(&early),
                Then::GiveUp(early.clone()),
                next,
            );
        } else if !part.is_accepted && part.copies == 0 {
            let cleared = run.then(|state| state.parts[position].intent = None);
            self.publish_part(cleared, position, barred, next);
        }
        // Nothing can tell.
        self.give_up(run, true, next);
        for code in self.errors.iter().filter(|code| !code.is_permanent()) {
            self.fail(run, &failure(*code).ambiguous(), next);
        }
    }

    /// Clears the intent of a post that the platform accepted and failed to process.
    fn discard(&self, run: Run, position: usize, next: &mut Steps) {
        let discarded = run.then(|state| {
            state.parts[position] = Part { copies: state.parts[position].copies, ..Part::default() };
            state.processing_since = None;
            state.is_continuation &= self.has(WaitFlaw::ContinuesFailed);
        });
        self.fail(discarded, &failure(ErrorCode::NetworkError).certain(), next);
    }

    /// Prepares a container, and makes its publishing call.
    fn publish_part(&self, run: Run, position: usize, barred: Option<Barred>, next: &mut Steps) {
        if let Some(barred) = barred {
            self.bar(run, barred, next);
            return;
        }
        if u32::from(run.state.spent) > retry::ATTEMPTS {
            self.give_up(run, false, next);
            return;
        }
        if self.falters {
            let limit = self.at(run.waits_since()) + HANDOVER_LIMIT;
            let failure = Failure::network("", run.was_in_doubt);
            self.wait(run, WaitReason::Handover, limit, None, Then::Fail(failure), next);
        }
        if self.processes {
            self.keep_processing(run, next);
        }
        for code in self.errors {
            self.fail(run, &failure(*code).certain(), next);
        }
        if run.state.is_frozen {
            let limit = self.at(run.waits_since()) + HANDOVER_LIMIT;
            let failure = Failure::network("", run.was_in_doubt);
            self.wait(run, WaitReason::Freeze, limit, None, Then::Fail(failure), next);
            return;
        }
        let is_above = matches!(run.state.above, Above::Live | Above::Longer);
        if self.is_reply && position == 0 && !is_above {
            done("Intend", Turn::Waits { polls: false }, run.state, next);
            return;
        }
        let intended = run.then(|state| {
            let part = &mut state.parts[position];
            *part = Part { intent: Some(0), copies: part.copies, ..Part::default() };
            (state.processing_since, state.waiting) = (None, None);
        });
        let called = intended.then(|state| state.parts[position].copies += 1);
        for stopped in [intended, called] {
            self.crash(stopped, Turn::Attempt, next);
        }
        self.live(called, position, None, next);
        if self.processes {
            let accept = |state: &mut WaitState| {
                let part = &mut state.parts[position];
                (part.is_accepted, part.may_come) = (true, true);
            };
            self.keep_processing(intended.then(accept), next);
        }
        for code in self.errors {
            if code.leaves_doubt() {
                self.fail(called, &failure(*code), next);
                self.fail(intended, &failure(*code), next);
            }
            let refused = intended.then(|state| state.parts[position].intent = None);
            self.fail(refused, &failure(*code).certain(), next);
        }
    }

    /// Stores the id of a live container, and goes on.
    fn live(&self, run: Run, position: usize, barred: Option<Barred>, next: &mut Steps) {
        let run = run.then(|state| {
            state.parts[position].is_live = true;
            state.processing_since = None;
        });
        self.publish(run, barred, next);
    }

    /// Notes that the platform is processing, or gives up when its window has closed.
    fn keep_processing(&self, run: Run, next: &mut Steps) {
        let since = run.processing_since.filter(|_| !self.has(WaitFlaw::RestartsPolling)).unwrap_or(0);
        if self.at(since) + WINDOW <= NOW {
            self.give_up(run, run.state.is_in_doubt(), next);
            return;
        }
        let run = run.then(|state| {
            (state.processing_since, state.is_continuation) = (Some(since), true);
            state.next_attempt = Some(0);
        });
        done("RecordProcessing", Turn::Waits { polls: true }, run.state, next);
    }

    /// Looks once at a platform that is processing.
    pub(super) fn look(&self, before: &WaitState, next: &mut Steps) {
        let mut state = *before;
        let ready = |state: WaitState, next: &mut Steps| done("Look", Turn::Attempt, state, next);
        let Some(start) = self.begin(&mut state, Purpose::Look) else {
            ready(state, next);
            return;
        };
        let run = Run::of(before, state, &start);
        if run.is_nowhere || start.waited_in_vain.is_some() || run.state.file == File::Deleted {
            ready(state, next);
            return;
        }
        if self.stops_its_workers(&run) {
            // The next attempt ends the target.
            next.push(Next {
                name: "Look",
                cause: Cause::Course,
                state: WaitState { turn: Turn::Attempt, ..state },
            });
            return;
        }
        if self.kills {
            self.crash(run, Turn::Poll, next);
        }
        let over = run.then(|state| {
            (state.processing_since, state.is_continuation) = (run.processing_since, true);
            state.next_attempt = run.was_live.then_some(0);
        });
        let Some(position) = state.parts[..self.containers].iter().position(|part| !part.is_live) else {
            ready(state, next);
            return;
        };
        let part = state.parts[position];
        // The next attempt decides, or publishes what is ready.
        ready(over.state, next);
        if part.intent.is_none() && run.barred {
            return;
        }
        if part.may_come {
            let found = publish_accepted(over, position).then(|state| state.parts[position].is_live = true);
            ready(found.state, next);
        } else if part.copies > 0 {
            ready(over.then(|state| state.parts[position].is_live = true).state, next);
        }
        self.keep_processing(run, next);
        let is_open = part.intent.is_some() && !self.has(WaitFlaw::HidesDoubtOfLook);
        for code in self.errors {
            let failed = failure(*code).with_effect(Effect::from(is_open));
            match code {
                ErrorCode::TokenExpired => self.fail(run, &failed, next),
                code if code.is_permanent() => self.give_up(run, failed.is_ambiguous(), next),
                // A look that failed says nothing: the window goes on.
                _ => {}
            }
        }
    }

    /// Returns true if an attempt that the platform throttled costs nothing.
    fn is_free(&self, state: &WaitState) -> bool {
        state.throttled_since.is_none_or(|since| NOW < self.at(since) + retry::THROTTLED_FREE)
            || self.has(WaitFlaw::ThrottlesForFree)
    }

    /// Records a failed attempt, and decides what comes next.
    fn fail(&self, mut run: Run, failure: &Failure, next: &mut Steps) {
        if failure.code == ErrorCode::RateLimited && self.is_free(&run.state) {
            run.refund();
            self.retry(run, failure, next);
            return;
        }
        if failure.code == ErrorCode::AppRefused {
            run.state.app = Some((1, false));
            let until = self.at(run.waits_since()) + APP_LIMIT;
            let is_in_doubt = failure.is_ambiguous() && !self.has(WaitFlaw::HidesDoubtOfApp);
            let vain = failure.clone().with_effect(Effect::from(is_in_doubt));
            self.wait(run, WaitReason::App, until, Some(failure), Then::GiveUp(vain), next);
            return;
        }
        let is_refused = failure.code == ErrorCode::TokenExpired;
        let spent = Spent {
            attempts: run.state.spent.into(),
            token_attempts: u32::from(run.state.token_attempts) + u32::from(is_refused),
        };
        let extra = if self.has(WaitFlaw::LooksWithoutEnd) { u32::MAX } else { retry::MAX_UNANSWERED };
        match retry::next(failure, spent, 0.0) {
            Some(_) if is_refused => self.refresh(run, failure, next),
            Some(_) => self.retry(run, failure, next),
            None if failure.is_ambiguous() && spent.attempts < extra => self.retry(run, failure, next),
            None => self.give_up(run, failure.is_ambiguous(), next),
        }
    }

    /// Writes a failed attempt, which is followed by another one after a pause.
    fn record_failure(&self, state: &mut WaitState, failure: &Failure, pause: i16) {
        if state.status != TargetStatus::Published {
            state.status = TargetStatus::Failed;
        }
        state.is_continuation &= self.has(WaitFlaw::ContinuesFailed);
        state.next_attempt = Some(pause);
        state.throttled_since = match failure.code {
            ErrorCode::RateLimited => state.throttled_since.or(Some(0)),
            ErrorCode::TokenExpired => state.throttled_since,
            _ => None,
        };
        state.waiting = None;
        if self.has(WaitFlaw::ForgetsIntent) {
            state.parts.iter_mut().filter(|part| !part.is_live).for_each(|part| part.intent = None);
        }
    }

    fn retry(&self, mut run: Run, failure: &Failure, next: &mut Steps) {
        self.record_failure(&mut run.state, failure, 1);
        if failure.code == ErrorCode::RateLimited {
            run.state.rests_until = Some(1);
        }
        done("RecordFailure", Turn::Waits { polls: false }, run.state, next);
    }

    /// Refreshes a refused token.
    fn refresh(&self, mut run: Run, failure: &Failure, next: &mut Steps) {
        self.record_failure(&mut run.state, failure, 0);
        run.state.token_attempts += 1;
        if self.has(WaitFlaw::RefusesForFree) {
            run.refund();
            run.state.token_attempts -= 1;
        }
        done("Refresh", Turn::Attempt, run.state, next);
        let mut lost = run.state;
        let is_in_doubt = lost.is_in_doubt();
        self.settle(&mut lost, EndKind::Dead, is_in_doubt);
        done("SettleOutside", Turn::Waits { polls: false }, lost, next);
        for code in self.errors.iter().filter(|code| !code.is_permanent()) {
            let mut failed = run.state;
            if u32::from(failed.spent) >= retry::ATTEMPTS {
                self.settle(&mut failed, EndKind::Dead, is_in_doubt);
            } else {
                failed.token_attempts = failed.token_attempts.saturating_sub(1);
                if *code == ErrorCode::AppRefused {
                    failed.app = Some((1, false));
                }
                let is_free = matches!(code, ErrorCode::RateLimited | ErrorCode::AppRefused)
                    && self.is_free(&failed)
                    || self.has(WaitFlaw::RefreshesForFree);
                if is_free {
                    failed.spent = failed.spent.saturating_sub(1);
                    failed.throttled_since = failed.throttled_since.or(Some(0));
                }
            }
            done("RefreshFailed", Turn::Waits { polls: false }, failed, next);
        }
    }

    /// Lets the target wait until the service is repaired.
    fn fault(&self, run: Run, next: &mut Steps) {
        let failure = Failure::network("", false).with_effect(Effect::from(run.was_in_doubt));
        let until = self.at(run.waits_since()) + FAULT_LIMIT;
        self.wait(run, WaitReason::Fault, until, Some(&failure), Then::GiveUp(failure.clone()), next);
    }

    /// Lets the target wait, or does what follows when it has waited for too long.
    fn wait(
        &self,
        mut run: Run,
        reason: WaitReason,
        until: DateTime<Utc>,
        failure: Option<&Failure>,
        then: Then,
        next: &mut Steps,
    ) {
        let before = run.waiting.filter(|_| !self.has(WaitFlaw::RestartsWait));
        let before = before.map(|waiting| self.noted(waiting));
        // Without the one before, the end is that of a first wait.
        let until = match self.has(WaitFlaw::RestartsWait) {
            true => NOW + (until - self.at(run.waits_since())),
            false => until,
        };
        let wait = Wait { reason, look_after: PAUSE, until, failure: failure.cloned(), then };
        let Some(row) = publishing::wait(self.rules, before, NOW, &wait) else {
            match wait.then {
                Then::GiveUp(failure) => {
                    run.refund();
                    self.give_up(run, failure.is_ambiguous(), next);
                }
                Then::Fail(failure) => self.fail(run, &failure, next),
            }
            return;
        };
        run.refund();
        let state = &mut run.state;
        let (since, until) = (self.steps(row.since), Some(self.steps(row.until)));
        state.waiting = Some(Waiting { reason, since, until });
        if failure.is_some() {
            if state.status != TargetStatus::Published {
                state.status = TargetStatus::Failed;
            }
            state.is_continuation = false;
            state.next_attempt = Some(1);
        }
        done("Wait", Turn::Waits { polls: false }, run.state, next);
    }

    /// Ends a target for which nothing may be published any more.
    fn bar(&self, mut run: Run, barred: Barred, next: &mut Steps) {
        match barred.end(run.is_nowhere, run.was_in_doubt) {
            BarredEnd::Canceled => {
                self.settle(&mut run.state, EndKind::Canceled, false);
                done("Settle", Turn::Waits { polls: false }, run.state, next);
            }
            BarredEnd::Dead { may_be_live } => self.give_up(run, may_be_live, next),
        }
    }

    /// Ends a target that can't be published.
    fn give_up(&self, mut run: Run, may_be_live: bool, next: &mut Steps) {
        self.settle(&mut run.state, EndKind::Dead, may_be_live);
        done("Settle", Turn::Waits { polls: false }, run.state, next);
    }

    /// Ends the target, as the product decides.
    fn settle(&self, state: &mut WaitState, end: EndKind, may_be_live: bool) {
        let post = if state.has_begun { domain::PostStatus::Publishing } else { domain::PostStatus::Queued };
        let snapshot = Snapshot {
            end,
            fence: Some(FENCE),
            row_fence: FENCE,
            post,
            version: 1,
            started: 1,
            is_post_live: state.status == TargetStatus::Published,
            targets: &[state.status],
            index: 0,
            is_captured: state.parts[0].is_live,
            is_due: state.next_attempt.is_some(),
        };
        let is_whole = state.parts[..self.containers].iter().all(|part| part.is_live);
        match publishing::settle(self.rules, &snapshot) {
            settle::Decision::Superseded
            | settle::Decision::Stale
            | settle::Decision::Ended(_)
            | settle::Decision::Late(_)
            | settle::Decision::StaysLive { loses_rest: false } => return,
            settle::Decision::StaysLive { loses_rest: true } => {
                (state.next_attempt, state.has_error) = (None, !is_whole);
            }
            settle::Decision::End(ending) => {
                state.status = ending.status;
                let is_live = ending.status == TargetStatus::Published;
                state.next_attempt = (is_live && !is_whole && !ending.is_captured).then_some(0);
                state.has_error = is_live && ending.is_captured && !is_whole;
                state.may_be_live = ending.status == TargetStatus::Dead && may_be_live;
            }
        }
        (state.processing_since, state.waiting, state.is_continuation) = (None, None, false);
        state.awaits_release &= state.next_attempt.is_some();
    }
}

/// Lets an accepted call publish.
fn publish_accepted(run: Run, position: usize) -> Run {
    run.then(|state| {
        let part = &mut state.parts[position];
        (part.may_come, part.copies) = (false, part.copies + 1);
    })
}
