//! Prerequisites of a process at its start: Postgres with the schema, and Temporal with its namespace.
//!
//! A worker can do nothing without them. It waits for a limited time and says what for, because after a restart of a
//! machine everything starts at once, in no order; then it exits with the reason, so that a supervisor shows the
//! failure and tries again. What only a change of the configuration can cure ends it at once. The API does not wait:
//! it accepts posts while Temporal is away, and answers 503 while Postgres is.

use crate::{
    database::Database,
    temporal::{Fault, Server},
};
use anyhow::anyhow;
use std::time::Duration;
use store::{
    Pool,
    upkeep::{
        durability::{self, Purpose},
        schema::Schema,
    },
};
use temporalio_client::Client;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

/// Default time that a worker waits at its start for what it needs, in seconds.
pub(crate) const START_TIMEOUT: u64 = 60;

/// Pause between two tries.
const PAUSE: Duration = Duration::from_secs(1);
/// Time that each step has at least; what it waits for has shorter limits of its own.
const STEP_TIMEOUT: Duration = Duration::from_secs(15);
/// Interval at which a reason is logged that has not changed.
const REMIND_EVERY: Duration = Duration::from_secs(10);
/// Time after which a namespace that can't be checked is taken as prepared.
const UNCHECKED_AFTER: Duration = Duration::from_secs(30);

/// A wait, and the reason that was logged last.
pub(crate) struct Wait {
    begun: Instant,
    logged: Option<(String, Instant)>,
}

impl Wait {
    /// Begins a wait.
    pub(crate) fn begin() -> Self {
        Self { begun: Instant::now(), logged: None }
    }

    /// Logs a reason when it changes, and from time to time, and pauses.
    pub(crate) async fn pause(&mut self, reason: String) {
        let known = self.logged.as_ref();
        if !known.is_some_and(|(known, at)| *known == reason && at.elapsed() < REMIND_EVERY) {
            warn!("Waiting, since {reason}");
            self.logged = Some((reason, Instant::now()));
        }
        sleep(PAUSE).await;
    }

    /// Logs that the wait is over, if a reason was logged.
    pub(crate) fn end(self) {
        if self.logged.is_some() {
            info!("The wait is over after {} s", self.begun.elapsed().as_secs());
        }
    }
}

/// Repeats `step` until it succeeds, is refused, or `limit` is over. A step ends with the limit, and not before
/// [`STEP_TIMEOUT`]: a connection that was lost without a sign never answers.
pub(crate) async fn wait_for<T>(
    limit: Duration,
    mut step: impl AsyncFnMut() -> Result<T, Fault>,
) -> anyhow::Result<T> {
    let mut wait = Wait::begin();
    loop {
        let left = limit.saturating_sub(wait.begun.elapsed()).max(STEP_TIMEOUT);
        let reason = match timeout(left, step()).await {
            Ok(Ok(value)) => {
                wait.end();
                return Ok(value);
            }
            Ok(Err(Fault::Refused(error))) => return Err(error),
            Ok(Err(Fault::Away(error))) => format!("{error:#}"),
            Err(_) => "there is no answer".to_owned(),
        };
        let seconds = wait.begun.elapsed().as_secs();
        anyhow::ensure!(wait.begun.elapsed() + PAUSE <= limit, "gave up after {seconds} s: {reason}");
        wait.pause(reason).await;
    }
}

/// Fails unless the database answers, keeps what is committed, and has the schema of this version.
pub(crate) async fn check_database(db: &Pool, database: &Database) -> Result<(), Fault> {
    let unchecked = &database.unchecked_postgres_settings;
    let checked = durability::check(&database.database_url, unchecked, Purpose::Publish).await;
    checked.map_err(|error| match durability::may_recover(&error) {
        true => Fault::Away(error),
        false => Fault::Refused(error),
    })?;
    if !store::ready(db).await {
        return Err(Fault::Away(anyhow!("the database at DATABASE_URL does not answer")));
    }
    match store::upkeep::schema::state(db).await {
        Ok(Schema::Current) => Ok(()),
        Ok(Schema::Missing) => Err(Fault::Away(anyhow!("the database has no schema: run `fanfare migrate`"))),
        Ok(Schema::Behind { missing }) => Err(Fault::Away(anyhow!(
            "the database lacks migration {missing} of this version: run `fanfare migrate`"
        ))),
        Err(error) => Err(Fault::Away(anyhow!("the database's migrations can't be read: {error}"))),
    }
}

/// Fails while a restored database is not prepared to its end: what was published since the backup would be published
/// again.
pub(crate) async fn check_restored(db: &Pool) -> Result<(), Fault> {
    match store::upkeep::restored::is_unfinished(db).await {
        Ok(false) => Ok(()),
        Ok(true) => Err(Fault::Away(anyhow!(
            "the database was restored and is not prepared to its end: run `fanfare ops restored` again"
        ))),
        Err(error) => Err(Fault::Away(anyhow!("the database can't be read: {error}"))),
    }
}

/// Connects to Temporal. Fails unless its namespace is prepared, or could not be checked for a while since `begun`.
pub(crate) async fn connect(server: &Server, begun: Instant) -> Result<Client, Fault> {
    let client = server.connect().await?;
    match unprepared(server, &client, begun).await? {
        None => Ok(client),
        Some(reason) => Err(Fault::Away(anyhow!(reason))),
    }
}

/// Returns why Temporal's namespace can't be used; `None` if it is prepared, or could not be checked for a while since
/// `begun`.
async fn unprepared(server: &Server, client: &Client, begun: Instant) -> Result<Option<String>, Fault> {
    let state = server.check(client).await;
    if let Err(Fault::Away(error)) = &state
        && begun.elapsed() >= UNCHECKED_AFTER
    {
        // Publishing does not need the search that the check asks.
        warn!(error = format!("{error:#}"), "The search attributes of Temporal's namespace can't be checked");
        return Ok(None);
    }
    state.map(|state| server.unprepared(state))
}

/// Waits without a limit until Temporal's namespace is prepared, with the client of an API that already serves. Calls
/// `beat` before each try.
pub(crate) async fn prepared(server: &Server, client: &Client, beat: impl Fn()) {
    let mut wait = Wait::begin();
    loop {
        beat();
        let reason = match unprepared(server, client, wait.begun).await {
            Ok(reason) => reason,
            // Also what is refused: an API keeps serving.
            Err(fault) => Some(format!("{:#}", fault.into_error())),
        };
        match reason {
            Some(reason) => wait.pause(reason).await,
            None => return wait.end(),
        }
    }
}
