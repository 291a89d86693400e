//! Checks behind the probes of a process.

use media::FileStore;
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use store::{
    Pool,
    upkeep::schema::{self, Schema},
};
use telemetry::health::{Health, Pulse};
use temporalio_client::{
    Client, NamespacedClient,
    tonic::{Code, IntoRequest},
};
use temporalio_common::protos::temporal::api::workflowservice::v1::DescribeNamespaceRequest;
use tokio::{sync::watch, time::Instant};

/// Time that the main task may be blocked: it runs the workflows, and accepts connections.
const MAIN_LIMIT: Duration = Duration::from_secs(60);
/// Longest turn of the relay and of the sweeper. Each of their statements and calls ends much sooner.
const LOOP_LIMIT: Duration = Duration::from_secs(600);
/// Time for which media files that could be written are not written again: each is a request to a bucket.
const MEDIA_AGE: Duration = Duration::from_secs(30);
/// The same if they could not.
const MEDIA_FAILED_AGE: Duration = Duration::from_secs(2);
const DATABASE_AWAY: &str = "the database does not answer";

/// Returns the pulse of the main task.
pub(crate) fn main_pulse(health: &Health) -> Pulse {
    health.pulse("main", MAIN_LIMIT)
}

/// Returns the pulse of a loop that works on the database and Temporal.
pub(crate) fn loop_pulse(health: &Health, name: &'static str) -> Pulse {
    health.pulse(name, LOOP_LIMIT)
}

/// Checks that Temporal answers. Workers are ready only with it; the API accepts posts without.
pub(crate) fn watch_temporal(health: &Health, client: watch::Receiver<Option<Client>>, is_required: bool) {
    health.check("temporal", is_required, move || {
        let client = client.borrow().clone();
        async move { namespace(&client.ok_or("Temporal is not connected yet")?).await }
    });
}

/// Checks that media files can be written, by writing one.
pub(crate) fn watch_media(health: &Health, files: FileStore, is_required: bool) {
    let latest = Arc::new(tokio::sync::Mutex::new(None));
    health.check("media", is_required, move || {
        let (files, latest) = (files.clone(), latest.clone());
        async move {
            let mut latest = latest.lock().await;
            if let Some((at, found)) = &*latest
                && Instant::elapsed(at) < if Result::is_ok(found) { MEDIA_AGE } else { MEDIA_FAILED_AGE }
            {
                return found.clone();
            }
            let found = files.probe().await.map_err(|error| {
                let reason = match media::needs_operator(&error) {
                    true => {
                        "the storage in FANFARE_MEDIA can't be written: check the rights of the process there"
                    }
                    false => "the storage in FANFARE_MEDIA does not work",
                };
                reason.to_owned()
            });
            *latest = Some((Instant::now(), found.clone()));
            found
        }
    });
}

/// Checks that the namespace exists. The messages name no addresses.
async fn namespace(client: &Client) -> Result<(), String> {
    let request = DescribeNamespaceRequest { namespace: client.namespace(), ..Default::default() };
    let described = client.connection().workflow_service().describe_namespace(request.into_request()).await;
    let reason = match described.map_err(|status| status.code()) {
        Ok(_) => return Ok(()),
        Err(Code::NotFound) => "the namespace in TEMPORAL_NAMESPACE does not exist",
        Err(Code::PermissionDenied | Code::Unauthenticated) => "Temporal refuses the credentials",
        Err(_) => "Temporal does not answer",
    };
    Err(reason.to_owned())
}

/// The probes of a process.
#[derive(Clone)]
pub(crate) struct Probes {
    /// Role of the process, such as `api`.
    pub(crate) role: &'static str,
    /// The state that they show.
    pub(crate) health: Health,
    is_polling: Arc<AtomicBool>,
    /// The database, and whether the process shows its backlog.
    pub(crate) database: Arc<OnceLock<(Pool, bool)>>,
}

impl Probes {
    /// Creates the probes of a process that runs `role`.
    pub(crate) fn of(role: &'static str) -> Self {
        Self { role, health: Health::default(), is_polling: Arc::default(), database: Arc::default() }
    }

    /// Makes the process ready only with a database that has the schema. `has_api` is true in a process with the API,
    /// which also shows the backlog.
    pub(crate) fn watch_database(&self, db: &Pool, has_api: bool) {
        check_database(&self.health, db);
        // A process has one database.
        let _ = self.database.set((db.clone(), has_api));
    }

    /// Makes the process ready only while its workers run.
    pub(crate) fn watch_workers(&self) {
        let is_polling = self.is_polling.clone();
        self.health.check("workers", true, move || {
            let is_polling = is_polling.load(Ordering::Relaxed);
            async move { if is_polling { Ok(()) } else { Err("the workers do not poll".to_owned()) } }
        });
    }

    /// Runs the workers.
    pub(crate) async fn polling<F: Future>(&self, run: F) -> F::Output {
        self.is_polling.store(true, Ordering::Relaxed);
        let outcome = run.await;
        self.is_polling.store(false, Ordering::Relaxed);
        outcome
    }
}

/// Makes a process ready only with a database that has the schema.
fn check_database(health: &Health, db: &Pool) {
    let database = db.clone();
    health.check("database", true, move || {
        let db = database.clone();
        async move { if store::ready(&db).await { Ok(()) } else { Err(DATABASE_AWAY.to_owned()) } }
    });
    let db = db.clone();
    health.check("schema", true, move || {
        let db = db.clone();
        async move {
            match schema::state(&db).await {
                Ok(Schema::Current) => Ok(()),
                Ok(Schema::Missing) => Err("the database has no schema: run `fanfare migrate`".to_owned()),
                Ok(Schema::Behind { missing }) => {
                    Err(format!("the schema lacks migration {missing}: run `fanfare migrate`"))
                }
                Err(_) => Err(DATABASE_AWAY.to_owned()),
            }
        }
    });
}
