//! The Postgres server and the Temporal server that all worlds of a run share.
//!
//! The code of `fanfare dev` finds, downloads or builds them. They keep their data in a directory of the run
//! and end with the test process.

use crate::wait::wait_until;
use devstack::{Postgres, PostgresOptions, TemporalOptions};
use nix::unistd::{Uid, geteuid};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::{
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};
use store::Pool;
use temporalio_client::{Client, ClientOptions, ConnectionOptions};
use tokio::{process::Command, sync::OnceCell};
use url::Url;

/// The servers of a run.
pub struct Shared {
    /// Address of Temporal, as `host:port`.
    pub temporal: String,
    /// Temporal's process.
    pub temporal_server: devstack::Temporal,
    postgres: Postgres,
}

/// Addresses of the servers that a service uses.
#[derive(Clone, Debug)]
pub struct Servers {
    /// URL of a migrated database.
    pub database_url: String,
    /// Address of Temporal, as `host:port`.
    pub temporal: String,
}

static SHARED: OnceCell<Shared> = OnceCell::const_new();
static DATABASES: AtomicU32 = AtomicU32::new(0);
/// The migrated database that the others are copied from.
const TEMPLATE: &str = "template_world";

/// Returns the servers. The first call starts them. `program` must have the `guard` command.
pub async fn shared(program: &str) -> &'static Shared {
    SHARED.get_or_init(async || Shared::start(program, false).await).await
}

/// Like [`shared`], with a database that syncs to disk as in production. Must be called before [`shared`].
pub async fn durable(program: &str) -> &'static Shared {
    SHARED.get_or_init(async || Shared::start(program, true).await).await
}

impl Shared {
    async fn start(program: &str, is_durable: bool) -> Self {
        let (dir, guard) = (directory(), Path::new(program));
        let options = PostgresOptions {
            password: "tests".to_owned(),
            // Temporal's processes have pools of their own.
            max_connections: 400,
            is_durable,
            ..Default::default()
        };
        let postgres = Postgres::start(&dir.join("postgres"), guard, &options).await.expect("Postgres");
        template(&postgres).await;
        let options = TemporalOptions {
            search_attributes: workflows::attributes::ALL.to_vec(),
            // Instead of 4,096, so that tests make histories that are long enough.
            settings: vec![("limit.historyCount.suggestContinueAsNew", "150")],
            ..TemporalOptions::default()
        };
        let temporal =
            devstack::Temporal::start(&dir.join("temporal"), guard, &options).await.expect("Temporal");
        Self { temporal: temporal.address.clone(), temporal_server: temporal, postgres }
    }
}

/// Creates and migrates the database that the others are copied from. Postgres copies a template only while
/// it has no connections.
async fn template(postgres: &Postgres) {
    store::create_database(&postgres.url("postgres"), TEMPLATE).await.expect("a database");
    let db = store::connect(&postgres.url(TEMPLATE), 1).await.expect("a connection");
    store::migrate(&db).await.expect("migrations");
    db.close().await;
}

/// Creates a migrated database and returns its URL.
pub async fn database_url(program: &str) -> String {
    let shared = shared(program).await;
    let name = format!("world_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
    let mut server = PgConnection::connect(&shared.postgres.url("postgres")).await.expect("a connection");
    // Copying files takes a third of the time of logging each page, the default since version 15, which has the option.
    let has_strategies = server.server_version_num().is_some_and(|version| version >= 150_000);
    let strategy = if has_strategies { "strategy file_copy" } else { "" };
    let create = AssertSqlSafe(format!("create database {name} template {TEMPLATE} {strategy}"));
    sqlx::raw_sql(create).execute(&mut server).await.expect("a database");
    server.close().await.expect("closed");
    shared.postgres.url(&name)
}

/// Returns the shared Temporal server and a new database of the shared Postgres server.
pub(crate) async fn servers(program: &str) -> Servers {
    let database_url = database_url(program).await;
    Servers { database_url, temporal: shared(program).await.temporal.clone() }
}

/// Creates a migrated database and connects to it.
pub async fn database(program: &str) -> Pool {
    store::connect(&database_url(program).await, 4).await.expect("a connection")
}

/// Runs SQL statements for which the service has no function, without the service's limit of their time: on a busy machine
/// it may take longer to fill a table.
pub async fn sql(db: &Pool, statements: &str) {
    let mut connection = db.acquire().await.expect("a connection");
    for part in ["set statement_timeout = 0", statements, "reset statement_timeout"] {
        let run = sqlx::raw_sql(AssertSqlSafe(part.to_owned())).execute(&mut *connection).await;
        run.expect("the statements run");
    }
}

/// Runs Temporal's CLI as an operator would, retrying while a workflow is busy, and returns its output.
pub async fn temporal(program: &str, args: &[&str]) -> String {
    let server = &shared(program).await.temporal_server;
    wait_until("Temporal's CLI", async || {
        let output = Command::new(&server.program)
            .args(args)
            .args(["--namespace", "default", "--address", &server.address])
            .env_clear()
            .env("HOME", directory())
            .output()
            .await
            .expect("Temporal's CLI runs");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        if errors.contains("Workflow is busy") {
            return Err(errors);
        }
        assert!(output.status.success(), "temporal {args:?}: {errors}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    })
    .await
}

/// Connects to the Temporal server at an address, given as `host:port`.
pub async fn temporal_client(address: &str) -> Client {
    let address: Url = format!("http://{address}").parse().expect("an address");
    let connection = temporalio_client::Connection::connect(ConnectionOptions::new(address).build());
    let connection = connection.await.expect("Temporal answers");
    Client::new(connection, ClientOptions::new("default").build()).expect("a client")
}

/// Returns the temporary directory of this run.
pub fn directory() -> PathBuf {
    static DIRECTORY: LazyLock<(PathBuf, Child)> = LazyLock::new(|| {
        let dir = make_directory();
        let janitor = remove_after_this_run(&dir);
        (dir, janitor)
    });
    DIRECTORY.0.clone()
}

/// Creates the directory, and removes in the background those of runs that ended together with what was to remove them.
/// Postgres's user must be able to enter it, so it is not in root's home.
fn make_directory() -> PathBuf {
    let root = std::env::temp_dir().join(format!("fanfare-tests-{}", Uid::current()));
    let dir = root.join(std::process::id().to_string());
    std::fs::create_dir_all(&dir).expect("a directory for this run");
    if geteuid().is_root() {
        for passable in [&root, &dir] {
            std::fs::set_permissions(passable, std::fs::Permissions::from_mode(0o711)).expect("passable");
        }
    }
    thread::spawn(move || {
        for entry in std::fs::read_dir(&root).expect("readable").flatten() {
            let is_over =
                entry.file_name().to_str().is_some_and(|pid| !Path::new("/proc").join(pid).exists());
            if is_over {
                // Another run may be removing it too.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    });
    dir
}

/// Starts a process that removes the directory, which has gigabytes, when this process has ended, however it ends. It tries
/// again while servers, which end at the same time, still write.
fn remove_after_this_run(dir: &Path) -> Child {
    // The input ends when this process does, which alone holds its other side.
    let script =
        r#"read -r _; for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$1" 2>/dev/null && exit; sleep 1; done"#;
    let mut janitor = std::process::Command::new("sh");
    janitor
        .args(["-c", script, "sh"])
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Interrupted in a terminal, the run ends and this process goes on.
    janitor.process_group(0).spawn().expect("a shell")
}
