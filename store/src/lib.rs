//! Postgres: every fact a client can read, and the only crate that speaks SQL.
//!
//! Plain functions, one statement each where one will do, one file per table family. Follow-up work
//! is written in the transaction that made it necessary ([`outbox`]). What is not there is `None`,
//! and another owner's rows are not there.

pub mod accounts;
mod change;
pub mod connect;
mod decode;
pub mod deliveries;
pub mod disconnect;
pub mod events;
pub mod grants;
pub mod imports;
pub mod keys;
pub mod media;
pub mod metrics;
pub mod networks;
pub mod oauth_states;
pub mod organizations;
pub mod outbox;
pub mod overview;
pub mod page;
pub mod pending_logins;
pub mod posts;
pub mod profiles;
pub mod publishing;
pub mod reseal;
pub mod sessions;
pub mod slots;
pub mod sweep;
pub mod team;
pub mod timeline;
pub mod usage;
pub mod vault;
pub mod webhooks;

pub use change::Change;

use anyhow::Context;
use chrono::{DateTime, Utc};
use sqlx::{
    Connection as _, PgConnection, PgPool,
    migrate::Migrator,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use std::{str::FromStr, time::Duration};

/// A bounded set of connections; cloning shares it.
pub type Pool = PgPool;
/// One connection, or the transaction that runs on it.
pub type Connection = PgConnection;
/// What a statement can fail with. Its text may hold data: log it, never send it.
pub type Error = sqlx::Error;
/// What a statement yields.
pub type Result<T> = sqlx::Result<T>;
/// Waits for notifications; reconnects by itself and forgets what happened meanwhile.
pub use sqlx::postgres::PgListener as Listener;

/// How long a call waits for a connection before the database counts as away.
const ACQUIRE: Duration = Duration::from_secs(5);
/// How long a probe waits: an orchestrator asks often and wants a quick answer.
const PROBE: Duration = Duration::from_secs(2);
/// A connection that lay idle this long is asked whether it still lives. Under load none does, so
/// that nothing is paid there; a restart of Postgres takes longer, so that it costs no request.
const IDLE: Duration = Duration::from_secs(1);

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// Connects to a `postgres://` URL; a socket is named by `?host=/directory`.
///
/// # Errors
///
/// When the URL can't be read or nobody answers there.
pub async fn connect(url: &str, max_connections: u32) -> anyhow::Result<Pool> {
    let pool = connect_lazy(url, max_connections)?;
    pool.acquire().await.context("Postgres does not answer")?;
    Ok(pool)
}

/// Prepares to connect when the first statement comes, so that a process starts while Postgres is away.
///
/// # Errors
///
/// When the URL can't be read.
pub fn connect_lazy(url: &str, max_connections: u32) -> anyhow::Result<Pool> {
    // sqlx quotes a URL that it can't parse.
    let options = PgConnectOptions::from_str(url)
        .map_err(|_| anyhow::anyhow!("the database URL can't be read: its port or a parameter is malformed"))?
        .application_name("fanfare")
        .options([("statement_timeout", "15s"), ("idle_in_transaction_session_timeout", "30s")]);
    Ok(PgPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(ACQUIRE)
        .max_lifetime(Duration::from_secs(30 * 60))
        .test_before_acquire(false)
        .before_acquire(|connection, meta| {
            Box::pin(async move {
                if meta.idle_for > IDLE {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .connect_lazy_with(options))
}

/// Brings the schema up to this version. Several processes may do so at once: one does, the others wait.
///
/// # Errors
///
/// When a migration fails, or the schema is newer than this version.
pub async fn migrate(db: &Pool) -> anyhow::Result<()> {
    // A migration of a large table, or waiting for another process to finish one, takes its time.
    let options = db.connect_options().as_ref().clone().options([("statement_timeout", "0")]);
    let mut connection = PgConnection::connect_with(&options).await.context("Postgres does not answer")?;
    MIGRATIONS.run(&mut connection).await.context("the schema can't be migrated")?;
    connection.close().await.context("the connection of the migration did not close")
}

/// Whether the database answers.
pub async fn ready(db: &Pool) -> bool {
    let answer = sqlx::query_scalar!(r#"select 1 as "one!""#).fetch_one(db);
    matches!(tokio::time::timeout(PROBE, answer).await, Ok(Ok(_)))
}

/// How far the clock `now` is from the database's: intents and leases are measured by the latter.
///
/// # Errors
///
/// When the database does not answer.
pub async fn skew(db: &Pool, now: impl Fn() -> DateTime<Utc>) -> Result<Duration> {
    // A connection of its own may have to be opened first, which is no part of the round trip.
    let mut connection = db.acquire().await?;
    let before = now();
    let theirs =
        sqlx::query_scalar!(r#"select clock_timestamp() as "now!""#).fetch_one(&mut *connection).await?;
    let after = now();
    // Their clock was read at some moment between.
    let skew = if theirs < before { before - theirs } else { theirs - after };
    Ok(skew.to_std().unwrap_or_default())
}

/// Whether an error says that the database is away, so that the same call may succeed later.
pub fn is_unavailable(error: &Error) -> bool {
    match error {
        Error::PoolTimedOut | Error::PoolClosed | Error::WorkerCrashed | Error::Io(_) => true,
        // Class 08: connection exceptions. 53300: too many connections. 57P01 to 57P03: shut down,
        // crashed, starting up. https://www.postgresql.org/docs/current/errcodes-appendix.html
        Error::Database(error) => error.code().is_some_and(|code| {
            code.starts_with("08") || matches!(code.as_ref(), "53300" | "57P01" | "57P02" | "57P03")
        }),
        _ => false,
    }
}

/// Creates a database beside the one at `url`, unless it is there.
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
        // A name can't be a parameter of this statement; quoting makes any name safe.
        let statement = format!("create database \"{}\"", name.replace('"', "\"\""));
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut server).await?;
    }
    server.close().await?;
    Ok(())
}
