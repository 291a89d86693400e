//! A Temporal server with its UI, and a file for its database.
//!
//! The settings are those that a single machine needs: a write-ahead log, one partition per task queue,
//! and queues that are read as soon as something is in them (by default a shard looks 20 times a
//! second, which alone costs a post a third of a second).

use super::{
    child::{Child, Spec},
    fetch::{kept, on_path, run},
    port, progress,
};
use anyhow::Context;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};
use tokio::net::TcpStream;

/// The version that is fetched or built.
const VERSION: &str = "1.5.1";
/// Temporal's own download site; see <https://docs.temporal.io/cli/setup-cli>.
const DOWNLOAD: &str = "https://temporal.download/cli/archive";
/// How long it may take to come up.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a server is to be.
#[derive(Clone, Debug, Default)]
pub struct TemporalOptions {
    /// Its gRPC port, if that is free.
    pub port: u16,
    /// Its UI's port, if that is free; `None` for a server without.
    pub ui_port: Option<u16>,
    /// Name and type of each custom search attribute.
    pub search_attributes: Vec<(&'static str, &'static str)>,
    /// Whether short timers fire on time: by default the server rounds them up to a second.
    pub exact_timers: bool,
}

/// A running server.
#[derive(Debug)]
pub struct Temporal {
    /// Where it listens, as `host:port`.
    pub address: String,
    /// Its gRPC port.
    pub port: u16,
    /// Its UI.
    pub ui_url: Option<String>,
    /// Its UI's port.
    pub ui_port: Option<u16>,
    /// The process.
    pub child: Child,
}

impl Temporal {
    /// Starts a server whose database is under `dir`.
    ///
    /// # Errors
    ///
    /// One sentence.
    pub async fn start(dir: &Path, guard: &Path, options: &TemporalOptions) -> anyhow::Result<Self> {
        let program = binary()?;
        fs::create_dir_all(dir).with_context(|| format!("{} can't be made", dir.display()))?;
        let database = dir.join("temporal.db");
        take_over(&database)?;
        let (http, metrics) = (port(0)?, port(0)?);
        let ui_port = options.ui_port.map(port).transpose()?;
        let port = port(options.port)?;
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
        for queue in ["transfer", "timer", "visibility"] {
            add("--dynamic-config-value", format!("history.{queue}ProcessorMaxPollRPS=1000"));
        }
        if options.exact_timers {
            add("--dynamic-config-value", "history.timerProcessorMaxTimeShift=\"50ms\"".to_owned());
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
            program,
            args,
            ids: None,
            log: dir.join("temporal.log"),
            stop: Signal::SIGINT,
            guard: guard.to_owned(),
        })?;
        child.ready(PATIENCE, async || TcpStream::connect(("127.0.0.1", port)).await.is_ok()).await?;
        Ok(Self {
            address: format!("127.0.0.1:{port}"),
            port,
            ui_url: ui_port.map(|port| format!("http://127.0.0.1:{port}")),
            ui_port,
            child,
        })
    }
}

/// The program: told, found, downloaded or built, in this order.
fn binary() -> anyhow::Result<PathBuf> {
    if let Some(told) = std::env::var_os("TEMPORAL_CLI") {
        let told = PathBuf::from(told);
        anyhow::ensure!(told.is_file(), "TEMPORAL_CLI names {}, which is not there", told.display());
        return Ok(told);
    }
    if let Some(found) = on_path("temporal") {
        return Ok(found);
    }
    let beside = Path::new(".fanfare/bin/temporal");
    if beside.is_file() {
        return beside.canonicalize().context("finding .fanfare/bin/temporal");
    }
    let kept = kept("temporal-cli", |half| {
        fs::create_dir_all(half)?;
        let downloaded = download(half);
        let Err(unreachable) = downloaded else { return Ok(()) };
        let built = build(half);
        built.map_err(|unbuilt| {
            anyhow::anyhow!(
                "there is no Temporal: TEMPORAL_CLI is not set, `temporal` is not on PATH nor in .fanfare/bin, \
                 the download failed ({unreachable:#}) and so did building it ({unbuilt:#})"
            )
        })
    })?;
    Ok(kept.join("temporal"))
}

fn download(into: &Path) -> anyhow::Result<()> {
    let os = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let curl = on_path("curl").context("curl is not on PATH")?;
    let archive = into.join("archive.tar.gz");
    run(
        "Downloading Temporal's CLI, once",
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
            .arg(format!("{DOWNLOAD}/v{VERSION}?platform={os}&arch={arch}")),
    )?;
    run("Unpacking it", Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(into))?;
    fs::remove_file(archive)?;
    anyhow::ensure!(into.join("temporal").is_file(), "the archive holds no program");
    Ok(())
}

fn build(into: &Path) -> anyhow::Result<()> {
    let go = on_path("go").context("Go is not on PATH")?;
    run(
        "No download; building Temporal's CLI with Go, once (about three minutes)",
        Command::new(go)
            .env("GOBIN", into)
            .arg("install")
            .arg(format!("github.com/temporalio/cli/cmd/temporal@v{VERSION}")),
    )?;
    fs::set_permissions(into.join("temporal"), fs::Permissions::from_mode(0o755))
        .context("Go built no program")
}

/// Ends a server that outlived the fanfare that started it: two on one file would corrupt it.
fn take_over(database: &Path) -> anyhow::Result<()> {
    let name = database.to_string_lossy();
    let ours = || {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        processes
            .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
            .filter(|pid| {
                fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| {
                    let line = String::from_utf8_lossy(&line);
                    let mut words = line.split('\0');
                    words.next().is_some_and(|program| program.ends_with("temporal"))
                        && words.any(|word| word == name)
                })
            })
            .collect::<Vec<_>>()
    };
    let began = Instant::now();
    for pid in ours() {
        progress(&format!("Taking over from a Temporal that was left running (process {pid})"));
        kill(Pid::from_raw(pid), Signal::SIGTERM).context("stopping a Temporal that was left running")?;
    }
    while let Some(pid) = ours().first() {
        anyhow::ensure!(
            began.elapsed() < PATIENCE,
            "a Temporal that was left running (process {pid}) does not end"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
