//! A Postgres server as an installation has it: with the roles and databases of `deploy/postgres/roles.sql`.
//!
//! The server that tests share has a superuser only, which may do everything that the roles may not.

use crate::cluster::create_roles;
use devstack::{Postgres, PostgresOptions};
use std::{collections::BTreeMap, path::Path};
use tokio::process::Command;

/// Passwords of the roles, by the variable in which the script finds each.
pub const PASSWORDS: [(&str, &str); 4] = [
    ("FANFARE_MIGRATE_PASSWORD", "of-migrate"),
    ("FANFARE_API_PASSWORD", "of-api"),
    ("FANFARE_WORKER_PASSWORD", "of-worker"),
    ("TEMPORAL_PASSWORD", "of-temporal"),
];
/// Role that owns the database; the API's and the workers'; Temporal's: each with the variable of its password.
const ROLES: [(&str, &str); 4] = [
    ("fanfare", "FANFARE_MIGRATE_PASSWORD"),
    ("fanfare_api", "FANFARE_API_PASSWORD"),
    ("fanfare_worker", "FANFARE_WORKER_PASSWORD"),
    ("temporal", "TEMPORAL_PASSWORD"),
];
/// Names of the roles of API and workers, as `fanfare migrate` needs them.
pub const GRANTED: [(&str, &str); 2] =
    [("FANFARE_API_ROLE", "fanfare_api"), ("FANFARE_WORKER_ROLE", "fanfare_worker")];

/// The server. Stopped on drop.
pub struct Installed {
    /// The server itself, with its superuser.
    pub postgres: Postgres,
}

impl Installed {
    /// Starts a server without the roles. `program` must have the `guard` command.
    pub async fn bare(program: &str, dir: &Path) -> Self {
        let options = PostgresOptions {
            superuser: "postgres",
            password: "tests".to_owned(),
            max_connections: 100,
            is_durable: false,
            ..PostgresOptions::default()
        };
        let postgres = Postgres::start(dir, Path::new(program), &options).await.expect("Postgres");
        Self { postgres }
    }

    /// Starts a server with the roles, and migrates the database `fanfare`.
    pub async fn start(program: &str, dir: &Path) -> Self {
        let installed = Self::bare(program, dir).await;
        let passwords: BTreeMap<_, _> =
            PASSWORDS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        create_roles(&installed.postgres, &passwords).await.expect("the roles");
        let mut migrate = Command::new(program);
        migrate.args(["migrate", "--only", "postgres"]).envs(GRANTED);
        let done = migrate.env("DATABASE_URL", installed.url("fanfare", "fanfare")).output().await;
        let done = done.expect("the program runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        installed
    }

    /// Returns the URL with which a role connects to a database.
    pub fn url(&self, role: &str, database: &str) -> String {
        let variable = ROLES.iter().find(|(name, _)| *name == role).expect("a role of the script").1;
        let password = PASSWORDS.iter().find(|(name, _)| *name == variable).expect("its password").1;
        format!("postgres://{role}:{password}@127.0.0.1:{}/{database}", self.postgres.port)
    }
}
