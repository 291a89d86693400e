//! Kills of the worker at known calls of many publishes at once.
//!
//! The sandbox holds the call of each case. For the moment after the answer, the rows of the case are locked and
//! the response is released: the worker then waits for the rows to store the answer, or, where it stores
//! nothing, its next call is held. When all cases have arrived, one SIGKILL ends the worker, and with its
//! connections the requests that it had sent.
//!
//! A publishing call ends after 8 s, held or not. A case whose call has ended when the worker is killed was
//! interrupted at another moment, and is repeated.

use super::posts::{self, Post, Posts, Sequence};
use chrono::TimeDelta;
use futures::{
    StreamExt,
    future::{join_all, select_all},
    stream,
};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::{fmt, mem, time::Duration};
use tests::{Hold, PATIENCE, World, wait_until};

/// Requests to the API at the same time.
const CONCURRENCY: usize = 8;
/// Pause between two looks whether a post has ended without the call that is waited for.
const PAUSE: Duration = Duration::from_millis(500);

/// When the worker is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// Before the platform gets the request.
    Before,
    /// After the platform processed the request, before its answer arrives.
    Processed,
    /// After the answer arrived, before it is stored.
    Answered,
}

impl Moment {
    pub(super) const ALL: [Self; 3] = [Self::Before, Self::Processed, Self::Answered];
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Before => "before the platform gets the request",
            Self::Processed => "after the platform processed the request",
            Self::Answered => "after the answer, before it is stored",
        })
    }
}

/// A call of a publish, and a moment of that call.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) sequence: &'a Sequence,
    /// Index of the call.
    pub(super) call: usize,
    pub(super) moment: Moment,
}

impl Case<'_> {
    /// Method, host and path of the call.
    pub(super) fn name(&self) -> &str {
        &self.sequence.calls[self.call].name
    }

    /// Returns true if the call repeats the one before, as a poll does.
    pub(super) fn is_further_poll(&self) -> bool {
        let before = self.call.checked_sub(1).map(|before| &self.sequence.calls[before].name);
        self.name().starts_with("GET ") && before.is_some_and(|before| before == self.name())
    }

    /// Time of the call since the first one, in an undisturbed publish.
    pub(super) fn at(&self) -> TimeDelta {
        self.sequence.calls[self.call].at
    }
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sequence { platform, kind, .. } = self.sequence;
        write!(f, "{} {kind}, call {} ({}), {}", platform.id, self.call + 1, self.name(), self.moment)
    }
}

/// Point of the publish at which the worker was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the call.
    Call,
    /// At the write of the answer.
    Write,
    /// In the next call: nothing is stored between the two.
    NextCall,
}

/// A post whose worker was killed.
pub(super) struct Crash<'a> {
    pub(super) case: Case<'a>,
    pub(super) post: Post,
    /// `None` if the worker was killed at another moment than the case's.
    pub(super) place: Option<Place>,
}

/// A case under way.
struct Run<'a> {
    case: Case<'a>,
    post: Post,
    /// Holds the call; the next one once the answer was sent.
    hold: Hold,
    /// Holds the next call, for the moment after the answer, until the answer was sent.
    next: Option<Hold>,
    lock: Option<RowLock>,
}

impl Posts {
    /// Publishes a post for each case, kills the worker when all have arrived at their call, and waits until
    /// another worker has ended them.
    pub(super) async fn kill_during<'a>(&mut self, cases: &[Case<'a>]) -> Vec<Crash<'a>> {
        // All start together, so that the first does not wait for the last.
        assert!(self.world.stop("worker").await);
        let begun = stream::iter(cases).map(|case| self.begin(*case)).buffered(CONCURRENCY);
        let mut runs: Vec<_> = begun.collect().await;
        self.world.run("worker").await;
        let arrivals = join_all(runs.iter().map(|run| self.arrival(run)));
        let first_end = select_all(runs.iter().map(|run| Box::pin(run.hold.phase("dropped", PATIENCE))));
        tokio::select! {
            _ = arrivals => {}
            _ = first_end => {}
        }
        join_all(runs.iter_mut().map(|run| run.pass_answer(&self.world))).await;
        let places = join_all(runs.iter().map(|run| run.place(&self.world))).await;
        self.world.kill("worker").await;
        let mut crashes = Vec::new();
        for (run, place) in runs.into_iter().zip(places) {
            let (case, post) = run.clear(&self.world).await;
            let is_confirmed = place.is_some() && self.confirms(&case, &post).await;
            crashes.push(Crash { case, post, place: place.filter(|_| is_confirmed) });
        }
        self.world.run("worker").await;
        self.ended(crashes.iter().map(|crash| &crash.post)).await;
        crashes
    }

    /// Connects an account, sets its holds and creates its post.
    async fn begin<'a>(&self, case: Case<'a>) -> Run<'a> {
        let Sequence { platform, kind, .. } = case.sequence;
        let account = self.account(platform.id).await;
        let hold = async |nth: usize, when: &str| {
            let request = json!({ "platform": platform.id, "account": account.1, "nth": nth, "when": when });
            self.world.hold(request).await
        };
        let nth = case.call + 1;
        let (hold, next) = match case.moment {
            Moment::Before => (hold(nth, "before").await, None),
            Moment::Processed => (hold(nth, "after").await, None),
            Moment::Answered => (hold(nth, "after").await, Some(hold(nth + 1, "before").await)),
        };
        let post = self.create(platform, *kind, account).await;
        Run { case, post, hold, next, lock: None }
    }

    /// Waits until the call of a case is held, or its post has ended without it.
    async fn arrival(&self, run: &Run<'_>) {
        while run.hold.phase("held", PAUSE).await == "waiting" {
            if self.open(&[run.post.post]).await.is_empty() {
                return;
            }
        }
    }

    /// Returns whether the journal confirms that the held call is the case's, and that it was answered, or not.
    async fn confirms(&self, case: &Case<'_>, post: &Post) -> bool {
        let journal = self.world.journal(post.platform.id, &post.username).await;
        let held = journal
            .iter()
            .enumerate()
            .find(|(_, entry)| entry["fault"].as_str().is_some_and(|fault| fault.starts_with("hold-")));
        held.is_some_and(|(index, entry)| {
            let is_answered = entry["status"].is_u64();
            index == case.call
                && posts::name(entry) == case.name()
                && is_answered == (case.moment == Moment::Answered)
        })
    }
}

impl<'a> Run<'a> {
    /// For the moment after the answer: locks the rows, lets the answer pass, and waits until the worker waits to
    /// store it, or makes its next call.
    async fn pass_answer(&mut self, world: &World) {
        if self.next.is_none() || self.hold.phase("held", Duration::ZERO).await != "held" {
            return;
        }
        let lock = self.lock.insert(RowLock::of(world, &self.post).await);
        if let Some(next) = self.next.take() {
            mem::replace(&mut self.hold, next).release().await;
        }
        wait_until("the answer's write or the next call", async || {
            let waiting = lock.waiting(world).await;
            let phase = self.hold.phase("held", Duration::ZERO).await;
            if waiting.is_empty() && phase == "waiting" { Err(self.case.to_string()) } else { Ok(()) }
        })
        .await;
    }

    /// Returns where the worker is; `None` if it is not at the case's moment.
    async fn place(&self, world: &World) -> Option<Place> {
        let is_held = self.hold.phase("held", Duration::ZERO).await == "held";
        match &self.lock {
            Some(lock) => {
                let waiting = lock.waiting(world).await;
                // An attempt that began because this one seemed dead stores no answer.
                let is_write =
                    waiting.iter().any(|statement| !statement.contains("for no key update of p, t"));
                if is_write { Some(Place::Write) } else { is_held.then_some(Place::NextCall) }
            }
            None => (is_held && self.next.is_none()).then_some(Place::Call),
        }
    }

    /// Removes what stopped the case, after the worker's death.
    async fn clear(self, world: &World) -> (Case<'a>, Post) {
        for hold in [Some(self.hold), self.next].into_iter().flatten() {
            // Released before its connection has ended, the request would be processed.
            if hold.phase("held", Duration::ZERO).await == "held" {
                assert_eq!(hold.phase("dropped", PATIENCE).await, "dropped", "{}", self.case);
            }
            hold.release().await;
        }
        if let Some(lock) = self.lock {
            lock.end(world).await;
        }
        (self.case, self.post)
    }
}

/// A lock on all rows that a publish writes.
struct RowLock {
    connection: PgConnection,
    process: i32,
}

impl RowLock {
    async fn of(world: &World, post: &Post) -> Self {
        let mut connection = PgConnection::connect(world.variable("DATABASE_URL")).await.unwrap();
        sqlx::raw_sql("begin").execute(&mut connection).await.unwrap();
        for (rows, id) in [
            ("posts where id", post.post),
            ("targets where id", post.target),
            ("publications where target_id", post.target),
            ("accounts where id", post.account),
        ] {
            let lock = AssertSqlSafe(format!("select from {rows} = $1 for update"));
            sqlx::query(lock).bind(id).execute(&mut connection).await.unwrap();
        }
        let process = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut connection).await.unwrap();
        Self { connection, process }
    }

    /// Returns the statements that wait for the rows.
    async fn waiting(&self, world: &World) -> Vec<String> {
        sqlx::query_scalar("select query from pg_stat_activity where $1 = any(pg_blocking_pids(pid))")
            .bind(self.process)
            .fetch_all(&world.db)
            .await
            .unwrap()
    }

    /// Ends the statements of the dead worker, which the database would execute all the same, and releases the
    /// rows.
    async fn end(self, world: &World) {
        wait_until("the dead worker's statements to end", async || {
            let ended: Vec<bool> = sqlx::query_scalar(
                "select pg_terminate_backend(pid) from pg_stat_activity where $1 = any(pg_blocking_pids(pid))",
            )
            .bind(self.process)
            .fetch_all(&world.db)
            .await
            .unwrap();
            if ended.is_empty() { Ok(()) } else { Err(ended.len()) }
        })
        .await;
        self.connection.close().await.unwrap();
    }
}
