//! Settings of a session, and poolers that give each transaction another session.
//!
//! The settings are sent as statements after connecting. A pooler refuses startup parameters that it does not know, or
//! is configured to drop them, and then statements run without a time limit and nobody is told.

use crate::upkeep::reach::{self, Unreachable};
use rand::distr::{Alphanumeric, SampleString};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _, postgres::PgConnectOptions};
use std::time::Duration;

/// Settings of the sessions of services. Postgres overestimates queries of many parts, and with `jit` would then compile
/// them for seconds to run for milliseconds.
const SERVICE: &str = "set statement_timeout = '15s';
    set idle_in_transaction_session_timeout = '30s';
    set jit = off";
/// Settings of the session that migrates. Migrating a large table can take longer than 15 s.
const MIGRATION: &str = "set statement_timeout = 0; set lock_timeout = '2s'; set jit = off";

/// Sets what a session of a service needs.
pub(crate) async fn prepare(connection: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::raw_sql(SERVICE).execute(connection).await.map(drop)
}

/// Sets what the session of a migration needs: it waits for a lock for two seconds, and others behind it.
pub(crate) async fn prepare_migration(connection: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::raw_sql(MIGRATION).execute(connection).await.map(drop)
}

/// Returns whether a connection has a session of its own. Behind a pooler that lends one for a transaction or a
/// statement, settings, prepared statements, `listen` and advisory locks get lost, or reach another client.
///
/// The connection leaves a mark in its session, and is idle while a transaction of another connection looks for it: such
/// a pooler has given that the session that was used last. No statement is prepared, which would fail for its own
/// reasons there.
pub(crate) async fn is_own(
    connection: &mut PgConnection,
    options: &PgConnectOptions,
    limit: Duration,
) -> Result<bool, Unreachable> {
    let unreachable = |error| Unreachable::new(options, limit, Some(&error));
    let mark = Alphanumeric.sample_string(&mut rand::rng(), 16);
    let leave = AssertSqlSafe(format!("set fanfare.session = '{mark}'"));
    sqlx::raw_sql(leave).execute(&mut *connection).await.map_err(unreachable)?;
    let mut other = reach::open(options, limit).await?;
    let compared = async {
        // Refused if the pooler lends a session for one statement only.
        let begun = match sqlx::raw_sql("begin").execute(&mut other).await {
            Err(sqlx::Error::Database(_)) => return Ok(false),
            begun => begun,
        };
        begun?;
        if read(&mut other).await?.as_deref() == Some(&mark) {
            return Ok(false);
        }
        Ok(read(connection).await?.as_deref() == Some(&mark))
    };
    let is_own = tokio::time::timeout(limit, compared).await;
    let is_own = is_own.map_err(|_| Unreachable::new(options, limit, None))?.map_err(unreachable)?;
    // It may be inside a transaction, so that there is nothing to keep of it.
    let _ = other.close().await;
    Ok(is_own)
}

/// Returns the mark of a session.
async fn read(connection: &mut PgConnection) -> sqlx::Result<Option<String>> {
    sqlx::raw_sql("select current_setting('fanfare.session', true)").fetch_one(connection).await?.try_get(0)
}
