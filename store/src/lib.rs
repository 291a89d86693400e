//! Postgres storage; the only crate that contains SQL.
//!
//! Plain functions, one statement each where possible, in a folder for each aggregate, whose header names its tables.
//! Follow-up work is written to the [`outbox`] in the transaction that made it necessary. A missing row is `None`, and
//! so is a row of another owner.

pub mod accounts;
pub mod bounds;
mod change;
pub mod dashboard;
mod decode;
pub mod media;
pub mod operators;
pub mod outbox;
pub mod page;
pub mod people;
pub mod posts;
pub mod publishing;
mod session;
mod transaction;
pub mod upkeep;
pub mod usage;
pub mod webhooks;

pub use change::Change;
pub use transaction::{Commits, NOTIFY_INTERVAL, Transaction, notify_relays};

use anyhow::Context;
use chrono::{DateTime, Utc};
use sqlx::{
    Connection as _, PgConnection, PgPool,
    migrate::MigrateError,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use std::{str::FromStr, time::Duration};
use tracing::warn;

/// A bounded pool of connections; clones share it.
pub type Pool = PgPool;
/// One connection, or the transaction that runs on it.
pub type Connection = PgConnection;
/// A failed statement. Its text can contain data: log it, never send it to a client.
pub type Error = sqlx::Error;
/// Result of a statement.
pub type Result<T> = sqlx::Result<T>;
/// Receives notifications; reconnects by itself and misses those sent while it was disconnected.
pub use sqlx::postgres::PgListener as Listener;

/// Wait for a connection, after which the database counts as unavailable.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a readiness probe: orchestrators probe often and need a quick answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Idle time after which a connection is pinged before use. Under load no connection is idle this long, so
/// requests don't pay for the ping; a restart of Postgres takes longer, so no request gets a dead connection.
const PING_AFTER_IDLE: Duration = Duration::from_secs(1);
/// Pause before a migration that waited for a lock is repeated.
const LOCK_PAUSE: Duration = Duration::from_secs(2);
/// SQLSTATE of a lock that was not granted in time.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Connects to a `postgres://` URL; `?host=/directory` selects a Unix socket.
///
/// # Errors
///
/// When the URL can't be parsed or the server doesn't answer.
pub async fn connect(url: &str, max_connections: u32) -> anyhow::Result<Pool> {
    upkeep::reach::check(url).await?;
    connect_lazy(url, max_connections)
}

/// Returns a pool that connects on first use, so that a process can start before Postgres does.
///
/// # Errors
///
/// When the URL can't be parsed.
pub fn connect_lazy(url: &str, max_connections: u32) -> anyhow::Result<Pool> {
    Ok(pool_options(max_connections).connect_lazy_with(options(url)?))
}

/// Returns the options of a connection.
fn options(url: &str) -> anyhow::Result<PgConnectOptions> {
    // sqlx's own error quotes a URL that it can't parse, password included.
    let options = PgConnectOptions::from_str(url)
        .map_err(|_| anyhow::anyhow!("the database URL is invalid: its port or a parameter is malformed"))?;
    // A parameter at the start that poolers don't know, and that changes nothing: floats are read in binary form.
    Ok(options.application_name("fanfare").extra_float_digits(None))
}

/// Returns the options of a pool.
fn pool_options(max_connections: u32) -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .max_lifetime(Duration::from_secs(30 * 60))
        .test_before_acquire(false)
        .after_connect(|connection, _| Box::pin(session::prepare(connection)))
        .before_acquire(|connection, meta| {
            Box::pin(async move {
                if meta.idle_for > PING_AFTER_IDLE {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
}

/// Begins a transaction, in a task of its own: the caller may be dropped meanwhile, because a client hung up or
/// a worker ended an activity. sqlx counts a transaction only once `BEGIN` has returned, so that a dropped one
/// would leave its connection inside a transaction. The pool's next user would write into it, and lose that when
/// the server ends the connection.
///
/// # Errors
///
/// When the server doesn't answer.
#[expect(clippy::disallowed_methods, reason = "the one place that may call it")]
pub async fn begin(db: &Pool) -> Result<Transaction> {
    let db = db.clone();
    let begun = tokio::spawn(async move { db.begin().await });
    begun.await.unwrap_or(Err(Error::WorkerCrashed)).map(Transaction::new)
}

/// Migrates the schema to this version. Concurrent callers wait for the first one to finish. A migration that waits for
/// a lock gives up after seconds and is repeated: statements that need the same table wait behind it, and a backup may
/// hold its lock for hours.
///
/// # Errors
///
/// When a migration fails, or the schema is newer than this version.
pub async fn migrate(db: &Pool) -> anyhow::Result<()> {
    let options = db.connect_options();
    let mut migrations = upkeep::schema::migrations();
    // After a rollback, the database has migrations that this version does not know.
    migrations.set_ignore_missing(true);
    loop {
        // A failed run leaves its connection with the lock against other processes' migrations.
        let mut connection = upkeep::reach::open(&options, ACQUIRE_TIMEOUT).await?;
        session::prepare_migration(&mut connection)
            .await
            .context("the migration connection can't be set up")?;
        match migrations.run(&mut connection).await {
            Ok(()) => return connection.close().await.context("the migration connection failed to close"),
            Err(error) if is_locked(&error) => {
                connection.close().await.context("the migration connection failed to close")?;
                warn!("Waiting for a lock, which another process or a backup holds");
                tokio::time::sleep(LOCK_PAUSE).await;
            }
            Err(error) => return Err(error).context("the schema migration failed"),
        }
    }
}

/// Returns whether a migration failed because it waited for a lock for too long.
fn is_locked(error: &MigrateError) -> bool {
    let (MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) = error else {
        return false;
    };
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == LOCK_NOT_AVAILABLE)
}

/// Returns whether the database answers within two seconds.
pub async fn ready(db: &Pool) -> bool {
    let answer = sqlx::query_scalar!(r#"select 1 as "one!""#).fetch_one(db);
    matches!(tokio::time::timeout(PROBE_TIMEOUT, answer).await, Ok(Ok(_)))
}

/// Returns the difference between the clock `now` and the database's, which times intents and leases.
///
/// # Errors
///
/// When the database doesn't answer.
pub async fn skew(db: &Pool, now: impl Fn() -> DateTime<Utc>) -> Result<Duration> {
    // Acquired first: opening a connection is not part of the round trip.
    let mut connection = db.acquire().await?;
    let before = now();
    let theirs =
        sqlx::query_scalar!(r#"select clock_timestamp() as "now!""#).fetch_one(&mut *connection).await?;
    let after = now();
    // The database read its clock at some moment between the two.
    let skew = if theirs < before { before - theirs } else { theirs - after };
    Ok(skew.to_std().unwrap_or_default())
}

/// Returns whether an error means that the database is unavailable, so that the same call can succeed later.
pub fn is_unavailable(error: &Error) -> bool {
    match error {
        Error::PoolTimedOut | Error::PoolClosed | Error::WorkerCrashed | Error::Io(_) => true,
        // Class 08: connection exceptions. 53: insufficient resources, such as a full disk. 57P01 to 57P03: shut
        // down, crashed, starting up. 25P03: the transaction was idle for too long, as when the clock is set. 25006:
        // the server accepts no writes, as a primary that became a standby; its connections end soon. 40P01: a
        // deadlock, of which this transaction is the victim. 42P01, 42703, 42704, 42883: no such table, column, type
        // or function, since `fanfare migrate` has yet to run.
        // https://www.postgresql.org/docs/current/errcodes-appendix.html
        Error::Database(error) => error.code().is_some_and(|code| {
            let class = code.get(..2);
            matches!(class, Some("08" | "53"))
                || matches!(
                    code.as_ref(),
                    "57P01"
                        | "57P02"
                        | "57P03"
                        | "25P03"
                        | "25006"
                        | "40P01"
                        | "42P01"
                        | "42703"
                        | "42704"
                        | "42883"
                )
        }),
        _ => false,
    }
}

/// Creates a database on the server of `url`, unless it exists.
///
/// # Errors
///
/// When the server can't be reached or refuses.
pub async fn create_database(url: &str, name: &str) -> anyhow::Result<()> {
    use sqlx::Connection as _;
    let mut server = PgConnection::connect(url).await?;
    let known = sqlx::query_scalar!(
        r#"select exists (select from pg_database where datname = $1) as "known!""#,
        name
    )
    .fetch_one(&mut server)
    .await?;
    if !known {
        // The statement takes no parameters; quoting makes any name safe.
        let statement = format!("create database \"{}\"", name.replace('"', "\"\""));
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut server).await?;
    }
    server.close().await?;
    Ok(())
}
