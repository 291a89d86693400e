//! Reaching the Postgres server, or telling why not.
//!
//! A pool repeats a connection that is refused until its timeout is over, and then tells only that.

use crate::{ACQUIRE_TIMEOUT, options};
use anyhow::Context;
use sqlx::{Connection as _, PgConnection, postgres::PgConnectOptions};
use std::{fmt, io::ErrorKind, time::Duration};

/// The server gave no connection, or lost it. Its text is for operators: it has the server's address.
#[derive(Debug)]
pub(crate) struct Unreachable(String);

impl Unreachable {
    /// Describes an error; `None` if there was no answer within `limit`.
    pub(crate) fn new(options: &PgConnectOptions, limit: Duration, error: Option<&sqlx::Error>) -> Self {
        let reason = match error {
            None => format!(
                "does not answer within {} s: check the address in DATABASE_URL and the network",
                limit.as_secs()
            ),
            // Nobody listens at the port, or there is no socket.
            Some(sqlx::Error::Io(error))
                if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) =>
            {
                format!("does not answer: {}; start it, or correct DATABASE_URL", error.kind())
            }
            Some(sqlx::Error::Io(error)) => format!("does not answer: {error}; check DATABASE_URL"),
            Some(sqlx::Error::Database(error)) => format!("refuses the connection: {}", error.message()),
            Some(error) => format!("gives no connection: {error}"),
        };
        let server = match options.get_socket() {
            Some(socket) => format!("{}, port {}", socket.display(), options.get_port()),
            None => format!("{}:{}", options.get_host(), options.get_port()),
        };
        Self(format!("Postgres at {server} {reason}"))
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreachable {}

/// Fails unless the server gives a connection, with the reason.
///
/// # Errors
///
/// When the URL can't be parsed or the server gives no connection.
pub async fn check(url: &str) -> anyhow::Result<()> {
    let connection = open(&options(url)?, ACQUIRE_TIMEOUT).await?;
    connection.close().await.context("Postgres lost a connection")
}

/// Opens a connection.
///
/// # Errors
///
/// When the server gives none within `limit`.
pub(crate) async fn open(options: &PgConnectOptions, limit: Duration) -> Result<PgConnection, Unreachable> {
    match tokio::time::timeout(limit, PgConnection::connect_with(options)).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => Err(Unreachable::new(options, limit, Some(&error))),
        Err(_) => Err(Unreachable::new(options, limit, None)),
    }
}
