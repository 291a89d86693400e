//! The state of a process, for the probes `/healthz` and `/readyz`.
//!
//! A process is *alive* while its own loops turn; an orchestrator restarts one that is not. It does not depend on
//! Postgres or Temporal, since a restart repairs neither, and restarting everything at once makes an outage worse.
//! A process is *ready* if it can do its work now. Each reason why not is a sentence for the operator.

use futures::future::{BoxFuture, FutureExt, join_all};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, interval, timeout};

/// Time limit of a check: orchestrators need a quick answer.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// Age up to which a result is given again, so that frequent probes cost nothing.
const MAX_AGE: Duration = Duration::from_millis(500);
/// Interval of the beats of [`Pulse::keep`].
const BEAT_INTERVAL: Duration = Duration::from_secs(1);

/// The state of a process. Clones share it.
#[derive(Clone, Default)]
pub struct Health(Arc<State>);

#[derive(Default)]
struct State {
    pulses: Mutex<Vec<Pulse>>,
    checks: Mutex<Vec<Check>>,
    is_stopping: AtomicBool,
    /// The latest result, and when it was found. The lock is held during the checks: probes that arrive meanwhile
    /// wait for their result.
    latest: tokio::sync::Mutex<Option<(Instant, Report)>>,
}

/// A condition of readiness.
#[derive(Clone)]
struct Check {
    name: &'static str,
    is_required: bool,
    run: Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>,
}

/// Shows that a loop turns.
#[derive(Clone)]
pub struct Pulse {
    name: &'static str,
    limit: Duration,
    last: Arc<Mutex<Instant>>,
}

/// Result of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Summary.
    pub status: Status,
    /// The single results, by name.
    pub checks: BTreeMap<&'static str, Outcome>,
}

/// Summary of a [`Report`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Each check passed.
    Ok,
    /// A check failed without which the process can do its work.
    Degraded,
    /// A required check failed.
    Unavailable,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    /// It passed.
    Ok,
    /// It failed.
    Failed {
        /// The reason, and what to do. Without addresses and names of the installation: the probes need no key.
        message: String,
    },
}

impl Health {
    /// Adds a loop, each turn of which takes at most `limit`. It begins now.
    pub fn pulse(&self, name: &'static str, limit: Duration) -> Pulse {
        let pulse = Pulse { name, limit, last: Arc::new(Mutex::new(Instant::now())) };
        self.0.pulses.lock().unwrap_or_else(PoisonError::into_inner).push(pulse.clone());
        pulse
    }

    /// Adds a condition of readiness. Without one that is not required, the process is degraded but ready.
    pub fn check<F>(&self, name: &'static str, is_required: bool, run: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        let run = Arc::new(move || run().boxed());
        let check = Check { name, is_required, run };
        self.0.checks.lock().unwrap_or_else(PoisonError::into_inner).push(check);
    }

    /// Makes the process unready, because it stops.
    pub fn stop(&self) {
        self.0.is_stopping.store(true, Ordering::Relaxed);
    }

    /// Returns whether the loops turn.
    pub fn live(&self) -> Report {
        self.live_at(Instant::now())
    }

    fn live_at(&self, now: Instant) -> Report {
        let pulses = self.0.pulses.lock().unwrap_or_else(PoisonError::into_inner);
        Report::of(pulses.iter().map(|pulse| (pulse.name, true, pulse.outcome(now))))
    }

    /// Returns whether the process can do its work.
    pub async fn ready(&self) -> Report {
        self.ready_at(Instant::now()).await
    }

    async fn ready_at(&self, now: Instant) -> Report {
        let mut latest = self.0.latest.lock().await;
        let report = match &*latest {
            Some((at, report)) if now.saturating_duration_since(*at) < MAX_AGE => report.clone(),
            _ => {
                let report = self.run_checks().await;
                *latest = Some((now, report.clone()));
                report
            }
        };
        drop(latest);
        if self.0.is_stopping.load(Ordering::Relaxed) {
            let failed = Outcome::Failed { message: "the process stops".to_owned() };
            let checks = report.checks.into_iter().chain([("shutdown", failed)]).collect();
            return Report { status: Status::Unavailable, checks };
        }
        report
    }

    async fn run_checks(&self) -> Report {
        let checks = self.0.checks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let runs = checks.iter().map(|check| async {
            let result = timeout(CHECK_TIMEOUT, (check.run)()).await;
            let outcome = match result.unwrap_or_else(|_| Err("it does not answer in time".to_owned())) {
                Ok(()) => Outcome::Ok,
                Err(message) => Outcome::Failed { message },
            };
            (check.name, check.is_required, outcome)
        });
        Report::of(join_all(runs).await)
    }
}

impl Pulse {
    /// Notes that a turn begins.
    pub fn beat(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Beats for as long as the task that awaits it is not blocked.
    pub async fn keep(&self) -> ! {
        let mut beats = interval(BEAT_INTERVAL);
        loop {
            beats.tick().await;
            self.beat();
        }
    }

    fn outcome(&self, now: Instant) -> Outcome {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let age = now.saturating_duration_since(last);
        if age <= self.limit {
            return Outcome::Ok;
        }
        let message = format!("it has not turned for {} s: restart the process", age.as_secs());
        Outcome::Failed { message }
    }
}

impl Report {
    fn of(outcomes: impl IntoIterator<Item = (&'static str, bool, Outcome)>) -> Self {
        let mut report = Self { status: Status::Ok, checks: BTreeMap::new() };
        for (name, is_required, outcome) in outcomes {
            if outcome != Outcome::Ok {
                report.status = match report.status {
                    _ if is_required => Status::Unavailable,
                    Status::Ok => Status::Degraded,
                    status => status,
                };
            }
            report.checks.insert(name, outcome);
        }
        report
    }

    /// Returns true if the probe succeeds.
    pub fn is_success(&self) -> bool {
        self.status != Status::Unavailable
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::ready;
    use std::sync::atomic::AtomicUsize;

    fn failed(message: &str) -> Outcome {
        Outcome::Failed { message: message.to_owned() }
    }

    #[tokio::test]
    async fn a_loop_that_does_not_turn_in_time_is_not_alive() {
        let health = Health::default();
        let _relay = health.pulse("relay", Duration::from_secs(60));
        let main = health.pulse("main", Duration::from_secs(10_000));
        let after = |seconds| Instant::now() + Duration::from_secs(seconds);
        assert!(health.live_at(after(50)).is_success());
        let late = health.live_at(after(100));
        assert_eq!(late.status, Status::Unavailable);
        assert_eq!(late.checks["main"], Outcome::Ok);
        let Outcome::Failed { message } = &late.checks["relay"] else { panic!("{late:?}") };
        assert!(message.ends_with("restart the process"), "{message}");

        let before = *main.last.lock().unwrap();
        // Beats at once, and then periodically.
        let _ = timeout(Duration::from_millis(1), main.keep()).await;
        assert!(*main.last.lock().unwrap() > before);
    }

    #[tokio::test]
    async fn required_checks_and_the_shutdown_decide_readiness() {
        let (health, began) = (Health::default(), Instant::now());
        health.check("database", true, || ready(Ok(())));
        assert_eq!(health.ready_at(began).await.status, Status::Ok);
        health.check("temporal", false, || ready(Err("it is away".to_owned())));
        let degraded = health.ready_at(began + MAX_AGE).await;
        assert_eq!((degraded.status, degraded.is_success()), (Status::Degraded, true));
        assert_eq!(degraded.checks["temporal"], failed("it is away"));
        health.check("workers", true, std::future::pending);
        let unready = health.ready_at(began + 2 * MAX_AGE).await;
        assert_eq!((unready.status, unready.is_success()), (Status::Unavailable, false));
        assert_eq!(unready.checks["workers"], failed("it does not answer in time"));

        let health = Health::default();
        assert!(health.ready_at(began).await.is_success());
        health.stop();
        // At once, also within the age of the latest result.
        let stopping = health.ready_at(began).await;
        assert!(!stopping.is_success());
        assert_eq!(stopping.checks["shutdown"], failed("the process stops"));
        assert!(health.live().is_success(), "a process that stops is alive");
    }

    #[tokio::test]
    async fn probes_within_the_age_of_a_result_run_no_check() {
        let runs = Arc::new(AtomicUsize::new(0));
        let (health, counted, began) = (Health::default(), runs.clone(), Instant::now());
        health.check("database", true, move || {
            counted.fetch_add(1, Ordering::Relaxed);
            ready(Ok(()))
        });
        for _ in 0..10 {
            health.ready_at(began).await;
        }
        assert_eq!(runs.load(Ordering::Relaxed), 1);
        for _ in 0..10 {
            health.ready_at(began + MAX_AGE).await;
        }
        assert_eq!(runs.load(Ordering::Relaxed), 2);
    }
}
