//! Runs a real Temporal server on Postgres, as one process or as one for each service.
//!
//! The server and its schema tool are found, or built from the server's Go module: there is no download of them. The
//! settings are those that the image temporalio/server makes from its environment.

use crate::{
    child::{Child, Program},
    fetch::{cached, on_path, reason, tool_dir},
    go, temporal,
};
use anyhow::Context;
use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    ops::Range,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::{net::TcpStream, process::Command};

/// Time limit for the server to start.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// Pause between two attempts to reach the server.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// Databases, and the schema of each.
const DATABASES: [(&str, &str); 2] =
    [("temporal", "postgresql/v12/temporal"), ("temporal_visibility", "postgresql/v12/visibility")];
/// Services of a server.
const SERVICES: [&str; 4] = ["frontend", "history", "matching", "worker"];
/// Processes of [`Layout::Split`], each with its service.
const SPLIT: [(&str, &str); 6] = [
    ("temporal-frontend", "frontend"),
    ("temporal-history-1", "history"),
    ("temporal-history-2", "history"),
    ("temporal-matching-1", "matching"),
    ("temporal-matching-2", "matching"),
    ("temporal-worker", "worker"),
];
/// Ports of a server's processes: below those that the kernel assigns.
const LOW_PORTS: Range<u16> = 12_000..32_000;
/// Ports of a server: the frontend's for HTTP, and two for each process and service.
const PORTS: usize = 1 + 2 * SPLIT.len();

/// Processes of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// One process with all services.
    #[default]
    Single,
    /// Two processes for history and for matching each, one for frontend and for worker each.
    Split,
}

/// Options of a server.
#[derive(Clone, Debug)]
pub struct TemporalServerOptions {
    /// Version of the server.
    pub version: &'static str,
    /// Its processes.
    pub layout: Layout,
    /// Number of history shards; fixed for the life of the database.
    pub shards: u16,
    /// Port of Postgres on 127.0.0.1.
    pub postgres: u16,
    /// Role that owns the databases `temporal` and `temporal_visibility`, and its password.
    pub role: (&'static str, String),
    /// Dynamic configuration, in YAML.
    pub dynamic: String,
}

/// A running server. Stopped on drop.
#[derive(Debug)]
pub struct TemporalServer {
    /// gRPC address as `host:port`.
    pub address: String,
    /// The processes by name.
    pub processes: BTreeMap<&'static str, Child>,
    /// Path of Temporal's CLI.
    pub cli: PathBuf,
    dir: PathBuf,
}

impl TemporalServer {
    /// Brings the schemas of the databases up to date, and starts a server with its configuration and logs in `dir`.
    /// `guard` is a program that has the `guard` command.
    ///
    /// # Errors
    ///
    /// If the server can't be built or started. No process is left running.
    pub async fn start(dir: &Path, guard: &Path, options: &TemporalServerOptions) -> anyhow::Result<Self> {
        let programs = Programs::find(options.version).await?;
        let cli = temporal::binary().await?;
        fs::create_dir_all(dir).with_context(|| format!("{} can't be created", dir.display()))?;
        let dir = dir.canonicalize().with_context(|| format!("{} can't be read", dir.display()))?;
        programs.update_schemas(options).await?;
        let config = Config { dir: &dir, options, ports: Self::ports(&dir)? };
        fs::write(dir.join("dynamic.yaml"), &options.dynamic).context("writing Temporal's configuration")?;
        let processes: &[_] = match options.layout {
            Layout::Single => &[("temporal", "")],
            Layout::Split => &SPLIT,
        };
        let mut server = Self {
            address: format!("127.0.0.1:{}", config.frontend()),
            processes: BTreeMap::new(),
            cli,
            dir: dir.clone(),
        };
        for (name, service) in processes {
            let own = dir.join(name);
            fs::create_dir_all(&own).context("creating a directory of Temporal's configuration")?;
            fs::write(own.join("fanfare.yaml"), config.of(name))
                .context("writing Temporal's configuration")?;
            let root = own.to_string_lossy().into_owned();
            let mut args =
                ["--root", &root, "--config", ".", "--env", "fanfare", "start"].map(str::to_owned).to_vec();
            for service in SERVICES.iter().filter(|known| service.is_empty() || *known == service) {
                args.extend(["--service".to_owned(), (*service).to_owned()]);
            }
            let program = Program {
                name,
                path: programs.server.clone(),
                args,
                env: BTreeMap::new(),
                log: dir.join(format!("{name}.log")),
            };
            server.processes.insert(name, Child::run(program, guard)?);
        }
        if let Err(error) = server.ready(config.frontend()).await {
            server.end().await?;
            return Err(error);
        }
        Ok(server)
    }

    /// Waits until the frontend answers.
    async fn ready(&self, frontend: u16) -> anyhow::Result<()> {
        for child in self.processes.values() {
            let up = async |_| TcpStream::connect(("127.0.0.1", frontend)).await.is_ok();
            child.ready(START_TIMEOUT, up).await?;
        }
        let deadline = Instant::now() + START_TIMEOUT;
        while let Err(error) = self.operate(&["operator", "cluster", "health"]).await {
            if Instant::now() > deadline {
                return Err(error.context("Temporal does not answer"));
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        Ok(())
    }

    /// Returns the ports of the last start if they are free: the server's table of members knows them.
    fn ports(dir: &Path) -> anyhow::Result<[u16; PORTS]> {
        let file = dir.join("ports");
        let last = fs::read_to_string(&file).unwrap_or_default();
        let ports = low_ports(last.split_whitespace().filter_map(|port| port.parse().ok()))?;
        fs::write(file, ports.map(|port| port.to_string()).join(" ")).context("writing Temporal's ports")?;
        Ok(ports)
    }

    /// Runs Temporal's CLI, and returns its output.
    ///
    /// # Errors
    ///
    /// If it fails, with the last line that it wrote to stderr.
    pub async fn operate(&self, args: &[&str]) -> anyhow::Result<String> {
        let output = Command::new(&self.cli)
            .args(args)
            .args(["--address", &self.address])
            .env_clear()
            .env("HOME", &self.dir)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .context("Temporal's CLI can't be run")?;
        anyhow::ensure!(output.status.success(), "{}", reason(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Stops all processes, and waits until they have exited.
    ///
    /// # Errors
    ///
    /// If a supervisor thread panicked.
    pub async fn end(self) -> anyhow::Result<()> {
        for (_, child) in self.processes {
            child.end().await?;
        }
        Ok(())
    }
}

/// Returns free ports, `preferred` ones first. They fit into a `smallint`, which is the type of a member's port in the
/// server's own table.
fn low_ports(preferred: impl Iterator<Item = u16>) -> anyhow::Result<[u16; PORTS]> {
    // The beginning of the scan differs between processes, so that two that start at the same time seldom meet.
    let begin = LOW_PORTS.start + u16::try_from(std::process::id() % 16_000).expect("a small number");
    let others = (begin..LOW_PORTS.end).chain(LOW_PORTS.start..begin);
    // Kept open until all are found.
    let (mut listeners, mut found) = (Vec::new(), Vec::new());
    for port in preferred.chain(others) {
        if let Ok(listener) = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))) {
            listeners.push(listener);
            found.push(port);
        }
        if let Ok(ports) = found.as_slice().try_into() {
            return Ok(ports);
        }
    }
    anyhow::bail!("no ports below {} are free", LOW_PORTS.end)
}

/// The programs of a version.
struct Programs {
    server: PathBuf,
    sql: PathBuf,
}

impl Programs {
    /// Returns the programs: in `FANFARE_TEMPORAL_SERVER`, on `PATH`, or built, in this order.
    async fn find(version: &str) -> anyhow::Result<Self> {
        if let Some(dir) = std::env::var_os("FANFARE_TEMPORAL_SERVER").filter(|dir| !dir.is_empty()) {
            // Directories of several versions, separated as in PATH.
            for dir in std::env::split_paths(&dir) {
                if let Some(programs) = Self::within(&|name| Some(dir.join(name)), version).await {
                    return Ok(programs);
                }
            }
        }
        if let Some(programs) = Self::within(&on_path, version).await {
            return Ok(programs);
        }
        let (tool_dir, name) = (tool_dir()?, format!("temporal-server-{version}"));
        let dir = cached(&tool_dir, &name, async |half: &Path| build(version, half).await).await?;
        Ok(Self { server: dir.join("server"), sql: dir.join("sql") })
    }

    /// Returns the programs at a place if they are of the version: by the names that Temporal releases them with, or
    /// that Go gives them.
    async fn within(place: &dyn Fn(&str) -> Option<PathBuf>, version: &str) -> Option<Self> {
        for (server, sql) in [("temporal-server", "temporal-sql-tool"), ("server", "sql")] {
            let (Some(server), Some(sql)) = (place(server), place(sql)) else { continue };
            if states(&server, version).await && states(&sql, version).await {
                return Some(Self { server: server.canonicalize().ok()?, sql: sql.canonicalize().ok()? });
            }
        }
        None
    }

    /// Creates the schemas, or updates them to the program's version.
    async fn update_schemas(&self, options: &TemporalServerOptions) -> anyhow::Result<()> {
        let (role, password) = &options.role;
        for (database, schema) in DATABASES {
            for args in
                [&["setup-schema", "--version", "0.0"][..], &["update-schema", "--schema-name", schema][..]]
            {
                let mut command = Command::new(&self.sql);
                command
                    .args(["--plugin", "postgres12", "--endpoint", "127.0.0.1", "--database", database])
                    .args(["--port", &options.postgres.to_string(), "--user", role])
                    .args(args)
                    .env_clear()
                    .env("SQL_PASSWORD", password)
                    .stdin(Stdio::null())
                    .kill_on_drop(true);
                let output = command.output().await.context("Temporal's schema tool can't be run")?;
                let said = [output.stdout, output.stderr].concat();
                anyhow::ensure!(
                    output.status.success(),
                    "the schema of {database} can't be updated: {}",
                    reason(&said)
                );
            }
        }
        Ok(())
    }
}

/// Returns true if a program states a version as its own.
async fn states(program: &Path, version: &str) -> bool {
    let mut ask = Command::new(program);
    ask.arg("--version").env_clear().stdin(Stdio::null()).kill_on_drop(true);
    let output = ask.output().await;
    output.is_ok_and(|output| {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.starts_with("temporal") && said.split_whitespace().any(|word| word == version)
    })
}

async fn build(version: &str, into: &Path) -> anyhow::Result<()> {
    let go = on_path("go").with_context(|| {
        format!(
            "Temporal's server {version} is neither in FANFARE_TEMPORAL_SERVER nor on PATH, and Go, which would \
             build it, is not installed"
        )
    })?;
    for (package, what) in [
        ("cmd/server", "Building Temporal's server with Go (only once, about three minutes)"),
        ("cmd/tools/sql", "Building Temporal's schema tool with Go (only once)"),
    ] {
        go::install(&go, what, &format!("go.temporal.io/server/{package}"), version, into).await?;
    }
    anyhow::ensure!(into.join("server").is_file() && into.join("sql").is_file(), "Go built no program");
    Ok(())
}

/// Configuration of a server's processes.
struct Config<'a> {
    dir: &'a Path,
    options: &'a TemporalServerOptions,
    ports: [u16; PORTS],
}

impl Config<'_> {
    /// Returns the ports of a service for gRPC and for membership, as a process knows them: its own service's, and the
    /// first ones of the others.
    fn ports_of(&self, process: &str, service: &str) -> (u16, u16) {
        let own = SPLIT.iter().position(|(name, of)| *name == process && *of == service);
        let index = own.or_else(|| SPLIT.iter().position(|(_, of)| *of == service)).expect("a service");
        (self.ports[1 + 2 * index], self.ports[2 + 2 * index])
    }

    /// Returns the frontend's port for gRPC.
    fn frontend(&self) -> u16 {
        self.ports_of("", "frontend").0
    }

    /// Returns the configuration of a process.
    fn of(&self, process: &str) -> String {
        let TemporalServerOptions { shards, postgres, role: (role, password), .. } = self.options;
        let store = |database: &str, connections: u8| {
            format!(
                r#"
      sql:
        pluginName: "postgres12_pgx"
        databaseName: "{database}"
        connectAddr: "127.0.0.1:{postgres}"
        connectProtocol: "tcp"
        user: "{role}"
        password: "{password}"
        maxConns: {connections}
        maxIdleConns: {connections}
        maxConnLifetime: "1h""#
            )
        };
        let (frontend, http) = (self.frontend(), self.ports[0]);
        let mut services = String::new();
        for service in SERVICES {
            let (grpc, membership) = self.ports_of(process, service);
            let http =
                if service == "frontend" { format!("\n      httpPort: {http}") } else { String::new() };
            write!(
                services,
                "
  {service}:
    rpc:
      grpcPort: {grpc}
      membershipPort: {membership}
      bindOnIP: \"127.0.0.1\"{http}"
            )
            .expect("a string is writable");
        }
        let (main, visibility) = (store("temporal", 20), store("temporal_visibility", 10));
        let dynamic = self.dir.join("dynamic.yaml");
        format!(
            r#"log:
  stdout: true
  level: warn
persistence:
  numHistoryShards: {shards}
  defaultStore: default
  visibilityStore: visibility
  datastores:
    default:{main}
    visibility:{visibility}
global:
  membership:
    maxJoinDuration: 30s
    broadcastAddress: "127.0.0.1"
  pprof:
    port: 0
services:{services}
clusterMetadata:
  enableGlobalNamespace: false
  failoverVersionIncrement: 10
  masterClusterName: "active"
  currentClusterName: "active"
  clusterInformation:
    active:
      enabled: true
      initialFailoverVersion: 1
      rpcName: "frontend"
      rpcAddress: "127.0.0.1:{frontend}"
      httpAddress: "127.0.0.1:{http}"
dcRedirectionPolicy:
  policy: "noop"
archival:
  history:
    state: "disabled"
  visibility:
    state: "disabled"
namespaceDefaults:
  archival:
    history:
      state: "disabled"
    visibility:
      state: "disabled"
publicClient:
  hostPort: "127.0.0.1:{frontend}"
dynamicConfigClient:
  filepath: "{}"
  pollInterval: "60s"
"#,
            dynamic.display()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_fit_the_table_of_members() {
        let ports = low_ports([].into_iter()).unwrap();
        assert!(ports.iter().all(|port| i16::try_from(*port).is_ok()), "{ports:?}");
        assert_eq!(low_ports(ports.into_iter()).unwrap(), ports);
        let taken = TcpListener::bind(("127.0.0.1", ports[3])).unwrap();
        let others = low_ports(ports.into_iter()).unwrap();
        assert!(!others.contains(&ports[3]) && others.contains(&ports[4]), "{others:?}");
        drop(taken);
    }

    #[test]
    fn processes_of_a_service_have_ports_of_their_own_and_agree_on_the_frontend() {
        let options = TemporalServerOptions {
            version: crate::versions::TEMPORAL_SERVER,
            layout: Layout::Split,
            shards: 4,
            postgres: 1,
            role: ("temporal", "secret".to_owned()),
            dynamic: String::new(),
        };
        let mut ports = [0; PORTS];
        for (port, number) in ports.iter_mut().zip(1000..) {
            *port = number;
        }
        let config = Config { dir: Path::new("/dir"), options: &options, ports };
        let mut seen = Vec::new();
        for (process, service) in SPLIT {
            let (grpc, membership) = config.ports_of(process, service);
            seen.extend([grpc, membership]);
            assert_eq!(config.ports_of(process, "frontend").0, config.frontend(), "{process}");
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 2 * SPLIT.len());
    }
}
