//! What a process waits for at its start: Postgres with the schema, and Temporal with its namespace.
//!
//! A worker can do nothing without them. It waits for a limited time and says what for, because after a restart of a
//! machine everything starts at once, in no order; then it exits with the reason, so that a supervisor shows the
//! failure and tries again. What only a change of the configuration can cure ends it at once. The API does not wait:
//! it accepts posts while Temporal is away, and answers 503 while Postgres is.

use crate::temporal::{Fault, Server};
use anyhow::anyhow;
use std::time::Duration;
use store::{Pool, schema::Schema};
use temporalio_client::Client;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

/// Pause between two tries.
const PAUSE: Duration = Duration::from_secs(1);
/// Interval at which a reason is logged that has not changed.
const REMIND_EVERY: Duration = Duration::from_secs(10);

/// A wait, and what was logged of it.
struct Wait {
    begun: Instant,
    logged: Option<(String, Instant)>,
}

impl Wait {
    fn begin() -> Self {
        Self { begun: Instant::now(), logged: None }
    }

    /// Logs a reason when it changes, and from time to time, and pauses.
    async fn pause(&mut self, reason: String) {
        let known = self.logged.as_ref();
        if !known.is_some_and(|(known, at)| *known == reason && at.elapsed() < REMIND_EVERY) {
            warn!("Waiting, since {reason}");
            self.logged = Some((reason, Instant::now()));
        }
        sleep(PAUSE).await;
    }

    fn end(self) {
        if self.logged.is_some() {
            info!("The wait is over after {} s", self.begun.elapsed().as_secs());
        }
    }
}

/// Repeats `step` until it succeeds, is refused, or `limit` is over.
pub(crate) async fn wait_for<T>(
    limit: Duration,
    mut step: impl AsyncFnMut() -> Result<T, Fault>,
) -> anyhow::Result<T> {
    let mut wait = Wait::begin();
    loop {
        let reason = match step().await {
            Ok(value) => {
                wait.end();
                return Ok(value);
            }
            Err(Fault::Refused(error)) => return Err(error),
            Err(Fault::Away(error)) => format!("{error:#}"),
        };
        let seconds = wait.begun.elapsed().as_secs();
        anyhow::ensure!(wait.begun.elapsed() + PAUSE <= limit, "gave up after {seconds} s: {reason}");
        wait.pause(reason).await;
    }
}

/// Fails unless the database answers and has the schema of this version.
pub(crate) async fn check_database(db: &Pool) -> Result<(), Fault> {
    if !store::ready(db).await {
        return Err(Fault::Away(anyhow!("the database at DATABASE_URL does not answer")));
    }
    match store::schema::state(db).await {
        Ok(Schema::Current) => Ok(()),
        Ok(Schema::Missing) => Err(Fault::Away(anyhow!("the database has no schema: run `fanfare migrate`"))),
        Ok(Schema::Behind { missing }) => Err(Fault::Away(anyhow!(
            "the database lacks migration {missing} of this version: run `fanfare migrate`"
        ))),
        Err(error) => Err(Fault::Away(anyhow!("the database's migrations can't be read: {error}"))),
    }
}

/// Connects to Temporal. Fails unless its namespace is prepared.
pub(crate) async fn connect(server: &Server) -> Result<Client, Fault> {
    let client = server.connect().await?;
    let state = server.check(&client).await?;
    match server.unprepared(state) {
        None => Ok(client),
        Some(reason) => Err(Fault::Away(anyhow!(reason))),
    }
}

/// Waits without a limit until Temporal's namespace is prepared, with the client of an API that already serves. Calls
/// `beat` before each try.
pub(crate) async fn prepared(server: &Server, client: &Client, beat: impl Fn()) {
    let mut wait = Wait::begin();
    loop {
        beat();
        let reason = match server.check(client).await {
            Ok(state) => server.unprepared(state),
            // Also what is refused: an API keeps serving.
            Err(fault) => Some(format!("{:#}", fault.into_error())),
        };
        match reason {
            Some(reason) => wait.pause(reason).await,
            None => return wait.end(),
        }
    }
}
