//! Database roles of the processes, which `fanfare migrate` grants what they need.

use clap::Args;

/// Names of the database roles of API and workers.
#[derive(Args, Clone, Debug)]
pub(crate) struct DatabaseRoles {
    /// Database role of the API, which may then change rows and not tables, and reads no sealed value
    #[arg(long, env = "FANFARE_API_ROLE")]
    api_role: Option<String>,
    /// Database role of the workers, which may then change rows and not tables
    #[arg(long, env = "FANFARE_WORKER_ROLE")]
    worker_role: Option<String>,
}

impl DatabaseRoles {
    /// Returns the names.
    pub(crate) fn roles(&self) -> store::upkeep::roles::Roles<'_> {
        store::upkeep::roles::Roles { api: self.api_role.as_deref(), worker: self.worker_role.as_deref() }
    }
}
