//! The connection to Postgres.

use anyhow::Context;
use clap::Args;
use store::upkeep::durability::Unchecked;
use url::Url;

/// Connection to Postgres.
#[derive(Args, Clone, Debug)]
pub(crate) struct Database {
    /// URL of the Postgres database, for example postgres://fanfare@localhost/fanfare
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_parser = postgres)]
    pub(crate) database_url: String,
    /// Maximum database connections of this process
    #[arg(long, env = "FANFARE_DATABASE_CONNECTIONS", default_value_t = 16)]
    pub(crate) database_connections: u32,
    /// Settings of Postgres, of fsync, full_page_writes and synchronous_commit, that API and workers do not refuse
    /// although a crash may lose commits, separated by commas: for tests, or for a server that keeps commits by
    /// other means. A lost commit can publish a post twice
    #[arg(long, env = "FANFARE_UNCHECKED_POSTGRES_SETTINGS", default_value = "", hide_default_value = true)]
    pub(crate) unchecked_postgres_settings: Unchecked,
}

/// Validates a URL of Postgres. Errors do not quote it, since it may hold a password.
pub(crate) fn postgres(text: &str) -> anyhow::Result<String> {
    let url = Url::parse(text).context("expected postgres://user:password@host/database")?;
    anyhow::ensure!(
        matches!(url.scheme(), "postgres" | "postgresql"),
        "expected postgres://user:password@host/database"
    );
    Ok(text.to_owned())
}
