//! A cluster without containers: the services of the compose file, each as a process of this machine.
//!
//! Postgres with a role for each process, a real Temporal server on it, two APIs, two workers and the sandbox. Their
//! environment is the one that Docker Compose passes, read from the compose file; only addresses and directories
//! are replaced. A process that ends is restarted, as by Compose.

use crate::{
    PATIENCE,
    deploy::{compose, read},
    network::Port,
    wait::{if_right, wait_until},
    yaml,
};
use anyhow::Context;
use devstack::{
    Child, Layout, Lock, Postgres, PostgresOptions, Program, TemporalServer, TemporalServerOptions,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};
use tokio::process::Command;

/// Names of the API's processes.
pub const APIS: [&str; 2] = ["api-1", "api-2"];
/// Names of the workers.
pub const WORKERS: [&str; 2] = ["worker-1", "worker-2"];
/// Passwords that the compose file asks for.
const PASSWORDS: [&str; 6] = [
    "POSTGRES_PASSWORD",
    "FANFARE_MIGRATE_PASSWORD",
    "FANFARE_API_PASSWORD",
    "FANFARE_WORKER_PASSWORD",
    "TEMPORAL_PASSWORD",
    "FANFARE_SANDBOX_TOKEN",
];
/// Database of Fanfare.
const DATABASE: &str = "fanfare";
/// Number of history shards; the compose file's 128 take seconds to acquire on a busy machine.
const SHARDS: u16 = 16;

/// Options of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// Version of Temporal's server.
    pub temporal: &'static str,
    /// Processes of Temporal's server.
    pub layout: Layout,
    /// Further variables of `.env`.
    pub env: BTreeMap<String, String>,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self { temporal: devstack::versions::TEMPORAL_SERVER, layout: Layout::Single, env: BTreeMap::new() }
    }
}

/// A running cluster. Stopped on drop.
pub struct Cluster {
    /// Addresses of the APIs, each ending with `/api/v1`.
    pub bases: Vec<String>,
    /// Address of the sandbox.
    pub sandbox: String,
    /// The server of Temporal.
    pub temporal: TemporalServer,
    /// Variables of `.env`.
    pub env: BTreeMap<String, String>,
    options: ClusterOptions,
    postgres: Postgres,
    /// Fanfare's processes by name.
    processes: BTreeMap<&'static str, Process>,
    program: PathBuf,
    lock: Lock,
    /// No other program gets them while a process is restarted.
    _ports: [Port; 8],
}

/// A process of Fanfare.
struct Process {
    child: Child,
    /// URL that answers with a success when the process is ready.
    probe: String,
}

/// An organization and its API keys.
#[derive(Clone, Debug)]
pub struct Organization {
    /// Its id.
    pub id: String,
    /// Key for live mode.
    pub live_key: String,
    /// Key for test mode.
    pub test_key: String,
}

impl Cluster {
    /// Starts a cluster with its data in `dir`, which is created if it does not exist. `program` is `fanfare`.
    ///
    /// # Errors
    ///
    /// If a part can't be installed or started. No process is left running.
    pub async fn start(program: &Path, dir: &Path, options: ClusterOptions) -> anyhow::Result<Self> {
        // Of a test's second cluster, too.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let lock = Lock::take(dir)?;
        let dir = lock.dir.clone();
        // Postgres' user must be able to enter it.
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o711))?;
        let mut env = secrets(program, &dir).await?;
        env.extend(options.env.clone());
        let ports = reserved_ports(&dir)?;
        let [api_1, api_2, sandbox, postgres, admin @ ..] = ports.each_ref().map(|port| port.address.port());
        let postgres = PostgresOptions {
            port: postgres,
            superuser: "postgres",
            password: env["POSTGRES_PASSWORD"].clone(),
            max_connections: 300,
            // A server that is killed loses no commit, as the publishing protocol demands.
            is_durable: true,
        };
        let postgres = Postgres::start(&dir.join("postgres"), program, &postgres).await?;
        create_roles(&postgres, &env).await.context("creating the roles")?;
        let temporal = temporal(&dir, program, &options, &postgres, &env).await?;
        let url = |port| format!("http://127.0.0.1:{port}");
        let mut cluster = Self {
            bases: [api_1, api_2].map(|port| format!("{}/api/v1", url(port))).to_vec(),
            sandbox: url(sandbox),
            temporal,
            env,
            options,
            postgres,
            processes: BTreeMap::new(),
            program: program.to_owned(),
            lock,
            _ports: ports,
        };
        cluster.command("migrate", &["migrate"]).await?;
        let services = [
            ("sandbox", "sandbox", 0, format!("{}/_health", url(sandbox))),
            (APIS[0], "api", api_1, String::new()),
            (APIS[1], "api", api_2, String::new()),
            (WORKERS[0], "worker", 0, String::new()),
            (WORKERS[1], "worker", 0, String::new()),
        ];
        // The sandbox has no listener for operators.
        for ((name, service, port, probe), admin) in services.into_iter().zip([0].into_iter().chain(admin)) {
            let program = Program {
                name,
                path: cluster.program.clone(),
                args: vec![service.to_owned()],
                env: cluster.environment(service, port, admin),
                log: cluster.path(&format!("{name}.log")),
            };
            let probe = if admin == 0 { probe } else { format!("{}/readyz", url(admin)) };
            let process = Process { child: Child::run(program, &cluster.program)?, probe };
            // Fails with the last line of its log when it ends again and again, as with a wrong variable.
            process.child.ready(PATIENCE, async |_| process.is_ready().await.is_ok()).await?;
            cluster.processes.insert(name, process);
        }
        Ok(cluster)
    }

    /// Returns a path in the cluster's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.lock.dir.join(name)
    }

    /// Returns the environment of a service: what Compose passes, with addresses and directories of this machine.
    fn environment(&self, service: &str, port: u16, admin: u16) -> BTreeMap<String, String> {
        let dir = self.lock.dir.display().to_string();
        let media = self.bases[0].trim_end_matches("/api/v1").trim_start_matches("http://");
        let sandbox = self.sandbox.trim_start_matches("http://");
        let replaced = [
            ("@postgres:5432", format!("@127.0.0.1:{}", self.postgres.port)),
            ("//temporal:7233", format!("//{}", self.temporal.address)),
            ("fanfare.localhost:8080", media.to_owned()),
            ("sandbox.localhost:8090", sandbox.to_owned()),
            ("0.0.0.0:8080", format!("127.0.0.1:{port}")),
            ("0.0.0.0:8090", sandbox.to_owned()),
            ("0.0.0.0:9464", format!("127.0.0.1:{admin}")),
            ("/var/lib/fanfare", format!("{dir}/files")),
        ];
        let mut environment = compose::service(service, &self.env);
        for value in environment.values_mut() {
            for (theirs, ours) in &replaced {
                *value = value.replace(theirs, ours);
            }
        }
        environment
    }

    /// Runs a command of the program to its end in the environment of a service, and returns its output.
    ///
    /// # Errors
    ///
    /// If it fails, with what it wrote to stderr.
    pub async fn command(&self, service: &str, args: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .env_clear()
            .envs(self.environment(service, 0, 0))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = command.output().await.context("the program can't be run")?;
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "fanfare {args:?} failed: {said}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Creates an organization, as an operator does.
    ///
    /// # Errors
    ///
    /// If the command fails.
    pub async fn create_organization(&self, name: &str) -> anyhow::Result<Organization> {
        let said = self.command("api", &["org", "create", name]).await?;
        let last = |start: &str| {
            let line = said.lines().find(|line| line.starts_with(start)).context("an unknown output")?;
            Ok::<_, anyhow::Error>(line.split_whitespace().last().unwrap_or_default().to_owned())
        };
        Ok(Organization {
            id: last("organization")?,
            live_key: last("live key")?,
            test_key: last("test key")?,
        })
    }

    /// Returns the superuser's URL of the database.
    pub fn database_url(&self) -> String {
        self.postgres.url(DATABASE)
    }

    /// Returns the URL of the database that a service connects with.
    pub fn database_url_of(&self, service: &str) -> String {
        self.environment(service, 0, 0)["DATABASE_URL"].clone()
    }

    /// Sends a signal to a process of Fanfare, which is restarted when it has ended, and waits until it is ready again.
    pub async fn restart(&self, name: &str, signal: Signal) {
        let process = &self.processes[name];
        restarted(name, &process.child, signal).await;
        process.until_ready(name).await;
    }

    /// Sends a signal to a process of Fanfare without waiting for anything.
    pub fn signal(&self, name: &str, signal: Signal) {
        let pid = self.processes[name].child.pid().borrow().expect("it runs");
        send(pid, signal);
    }

    /// Kills a process of Temporal, which is restarted, and waits until the server is healthy.
    pub async fn kill_temporal(&self, name: &str) {
        restarted(name, &self.temporal.processes[name], Signal::SIGKILL).await;
        wait_until("Temporal to be healthy", async || {
            self.temporal.operate(&["operator", "cluster", "health"]).await
        })
        .await;
    }

    /// Kills Postgres with all its processes; it is restarted, and recovers.
    pub async fn kill_postgres(&self) {
        let pid = self.postgres.child.pid().borrow().expect("it runs");
        let backends = backends(pid);
        restarted("postgres", &self.postgres.child, Signal::SIGKILL).await;
        for backend in backends {
            send(backend, Signal::SIGKILL);
        }
        wait_until("Postgres to accept connections", async || {
            PgConnection::connect(&self.database_url()).await.map(drop)
        })
        .await;
    }

    /// Stops Temporal's server, and starts another version or layout on the same data.
    ///
    /// # Errors
    ///
    /// If it can't be built or started.
    pub async fn replace_temporal(mut self, version: &'static str, layout: Layout) -> anyhow::Result<Self> {
        self.options.temporal = version;
        self.options.layout = layout;
        for (_, child) in std::mem::take(&mut self.temporal.processes) {
            child.end().await?;
        }
        self.temporal =
            temporal(&self.lock.dir, &self.program, &self.options, &self.postgres, &self.env).await?;
        Ok(self)
    }

    /// Returns the addresses, for a person or a program.
    pub fn addresses(&self) -> Value {
        json!({
            "base_urls": self.bases,
            "dashboards": self.bases.iter().map(|base| base.replace("/api/v1", "/dashboard")).collect::<Vec<_>>(),
            "sandbox_url": self.sandbox,
            "sandbox_token": self.env["FANFARE_SANDBOX_TOKEN"],
            "temporal_address": self.temporal.address,
            "database_url": self.database_url(),
        })
    }

    /// Stops everything: clients of a server before the server.
    ///
    /// # Errors
    ///
    /// If a supervisor thread panicked.
    pub async fn end(self) -> anyhow::Result<()> {
        let ends = self.processes.into_values().map(|process| process.child.end());
        futures::future::try_join_all(ends).await?;
        self.temporal.end().await?;
        self.postgres.child.end().await
    }
}

impl Process {
    /// Waits until the process is ready. One that is restarted has ended before its successor listens.
    async fn until_ready(&self, name: &str) {
        wait_until(&format!("{name} to be ready"), async || self.is_ready().await).await;
    }

    /// Fails with what the probe tells, unless the process is ready.
    async fn is_ready(&self) -> Result<(), String> {
        let answer = reqwest::get(&self.probe).await.map_err(|error| error.to_string())?;
        let status = answer.status();
        if status.is_success() { Ok(()) } else { Err(answer.text().await.unwrap_or_default()) }
    }
}

/// Sends a signal to a child, and waits until it runs with another process id.
async fn restarted(name: &str, child: &Child, signal: Signal) {
    let mut pid = child.pid();
    let before = pid.borrow_and_update().expect("it runs");
    send(before, signal);
    let another = pid.wait_for(|now| now.is_some_and(|now| now != before));
    tokio::time::timeout(PATIENCE, another)
        .await
        .unwrap_or_else(|_| panic!("{name} does not end after {signal}"))
        .expect("it is supervised");
}

fn send(pid: u32, signal: Signal) {
    // It may have ended meanwhile.
    let _ = kill(Pid::from_raw(i32::try_from(pid).expect("a pid")), signal);
}

/// Returns the processes that a process has started.
fn backends(of: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Returns the variables of `.env`, which is written at the first start as the compose file describes.
async fn secrets(program: &Path, dir: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let file = dir.join(".env");
    if !file.exists() {
        let keys = Command::new(program).args(["key", "generate"]).env_clear().output().await?;
        anyhow::ensure!(keys.status.success(), "fanfare key generate failed");
        let mut text = String::from_utf8(keys.stdout)?;
        for name in PASSWORDS {
            text.push_str(&format!("{name}={}\n", hex::encode(rand::random::<[u8; 32]>())));
        }
        fs::write(&file, text)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
    }
    let text = fs::read_to_string(&file)?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    Ok(lines
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.into(), value.into()))
        .collect())
}

/// Reserves the ports of the last start, or free ones.
fn reserved_ports(dir: &Path) -> anyhow::Result<[Port; 8]> {
    let file = dir.join("ports.json");
    if let Ok(known) = fs::read(&file) {
        let known: [u16; 8] = serde_json::from_slice(&known).context("reading ports.json")?;
        return Ok(known.map(|port| Port::of(([127, 0, 0, 1], port).into())));
    }
    let ports = [(); 8].map(|()| Port::reserve());
    fs::write(file, serde_json::to_vec(&ports.each_ref().map(|port| port.address.port()))?)?;
    Ok(ports)
}

/// Runs the statements with which Compose prepares a new database server, unless that was done.
pub(crate) async fn create_roles(postgres: &Postgres, env: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let mut server = PgConnection::connect(&postgres.url("postgres")).await?;
    let known: bool = sqlx::query_scalar("select exists (select from pg_roles where rolname = 'fanfare')")
        .fetch_one(&mut server)
        .await?;
    if !known {
        // `\getenv NAME VARIABLE` is psql's; a value is then used as `:'NAME'`.
        let mut script = read("deploy/postgres/roles.sql");
        let assignments: Vec<_> = script.lines().filter_map(|line| line.strip_prefix("\\getenv ")).collect();
        let assignments: Vec<(String, String)> = assignments
            .iter()
            .filter_map(|line| line.split_once(' '))
            .map(|(name, variable)| (format!(":'{name}'"), format!("'{}'", env[variable])))
            .collect();
        script = script.lines().filter(|line| !line.starts_with(['\\', '-'])).collect::<Vec<_>>().join("\n");
        for (name, value) in assignments {
            script = script.replace(&name, &value);
        }
        // A database can't be created in a transaction, as which several statements are run.
        for statement in
            script.split_inclusive(";\n").map(str::trim).filter(|statement| !statement.is_empty())
        {
            sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
                .execute(&mut server)
                .await
                .context("a statement")?;
        }
    }
    server.close().await?;
    Ok(())
}

async fn temporal(
    dir: &Path,
    program: &Path,
    options: &ClusterOptions,
    postgres: &Postgres,
    env: &BTreeMap<String, String>,
) -> anyhow::Result<TemporalServer> {
    let file = yaml(&read(compose::FILE)).remove(0);
    let dynamic = file["configs"]["temporal"]["content"].as_str().context("Temporal's configuration")?;
    let options = TemporalServerOptions {
        version: options.temporal,
        layout: options.layout,
        shards: SHARDS,
        postgres: postgres.port,
        role: ("temporal", env["TEMPORAL_PASSWORD"].clone()),
        dynamic: dynamic.to_owned(),
    };
    TemporalServer::start(&dir.join("temporal"), program, &options).await
}

/// Waits until a query that counts rows returns 0.
pub async fn until_none(db: &sqlx::PgPool, what: &str, count: &'static str) {
    wait_until(what, async || {
        let found: i64 = sqlx::query_scalar(count).fetch_one(db).await.map_err(|error| error.to_string())?;
        if_right(found, |found| *found == 0).map_err(|found| format!("{found} are left"))
    })
    .await;
}
