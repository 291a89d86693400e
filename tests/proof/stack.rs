//! A stack: Fanfare's processes with a Postgres and a Temporal server of their own, and a proxy between each two
//! parts.
//!
//! A process is supervised as by an orchestrator: it is restarted when it exits by itself, and stays down when
//! the test took it down.

use crate::{
    PROGRAM,
    machine::{Clocks, Volume},
    parts::{Pair, Part},
};
use devstack::{Postgres, PostgresOptions, TemporalOptions};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;
use sqlx::postgres::PgPoolOptions;
use std::{
    collections::BTreeMap,
    fs::{self, File},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tests::{
    PATIENCE, Servers, World, directory, lifted_limits,
    network::{Port, Proxy},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    sync::watch,
    task::JoinHandle,
};
use url::Url;

/// Platforms of the accounts: a text on each can have replies and an image.
pub(crate) const PLATFORMS: [&str; 3] = ["x", "bluesky", "threads"];
/// Pause before a process that exited by itself is restarted, as an orchestrator makes it.
const RESTART_PAUSE: Duration = Duration::from_secs(1);
/// Name of the database.
const DATABASE: &str = "fanfare";

/// Options of a stack.
#[derive(Clone, Debug, Default)]
pub(crate) struct StackOptions {
    /// Factor on every wait.
    pub(crate) pace: f64,
    /// Variables of the processes.
    pub(crate) set: Vec<(&'static str, String)>,
    /// True if the data of Postgres, of Temporal and the media files are on volumes of their own.
    pub(crate) has_volumes: bool,
    /// True if the clocks of Postgres, API and worker can be set.
    pub(crate) has_clocks: bool,
}

/// An installation of Fanfare.
pub(crate) struct Stack {
    /// The organization, and the sandbox. Has no processes.
    pub(crate) world: World,
    /// The proxies between pairs.
    pub(crate) proxies: BTreeMap<Pair, Proxy>,
    /// The proxies of the test to Postgres and Temporal, which are never cut.
    own: (Proxy, Proxy),
    postgres: Option<Postgres>,
    temporal: Option<devstack::Temporal>,
    processes: BTreeMap<&'static str, Process>,
    /// Number of times that a process exited by itself.
    pub(crate) exits: watch::Sender<usize>,
    dir: PathBuf,
    clocks: Option<Clocks>,
    volumes: Vec<Volume>,
    _ports: Vec<Port>,
}

impl Stack {
    /// Starts servers and processes.
    pub(crate) async fn start(name: &str, options: &StackOptions) -> Self {
        let dir = directory().join(name);
        fs::create_dir_all(&dir).unwrap();
        let volumes = ["postgres", "temporal", "media"].map(|name| dir.join(name));
        let volumes = volumes.iter().filter(|_| options.has_volumes).map(|dir| Volume::mount(dir)).collect();
        let clocks = options.has_clocks.then(|| Clocks::new(&dir, *PROGRAM));
        let guard = clocks.as_ref().map_or_else(|| PathBuf::from(*PROGRAM), |clocks| clocks.guard.clone());
        let postgres = start_postgres(&dir, &guard).await;
        store::create_database(&postgres.url("postgres"), DATABASE).await.unwrap();
        let db = store::connect(&postgres.url(DATABASE), 1).await.unwrap();
        store::migrate(&db).await.unwrap();
        db.close().await;
        let temporal = start_temporal(&dir).await;
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let own = (Proxy::to(at(postgres.port)), Proxy::to(at(temporal.port)));
        let servers = Servers {
            database_url: through(&postgres.url(DATABASE), &own.0),
            temporal: own.1.address().to_string(),
        };
        let world = World::of(*PROGRAM).pace(options.pace).running(&[]).platforms(&PLATFORMS).on(servers);
        let world = world.set("FANFARE_MEDIA", &format!("file://{}", dir.join("media").display()));
        let mut world =
            options.set.iter().fold(world, |world, (name, value)| world.set(name, value)).start().await;
        // The service counts its connections by the application's name.
        world.db =
            PgPoolOptions::new().max_connections(8).connect_lazy(world.variable("DATABASE_URL")).unwrap();
        let sandbox: Url = world.variable("FANFARE_SANDBOX_URL").parse().unwrap();
        let sandbox = sandbox.socket_addrs(|| None).unwrap()[0];
        let proxies = Pair::ALL.map(|pair| {
            let upstream = match pair {
                Pair::ApiPostgres | Pair::WorkerPostgres => at(postgres.port),
                Pair::ApiTemporal | Pair::WorkerTemporal => at(temporal.port),
                // The receiver's address is set when there is one.
                Pair::WorkerPlatforms | Pair::WorkerReceiver => sandbox,
            };
            (pair, Proxy::to(upstream))
        });
        let port = Port::of(world.variable("FANFARE_LISTEN").parse().unwrap());
        let mut stack = Self {
            world,
            proxies: proxies.into(),
            own,
            postgres: Some(postgres),
            temporal: Some(temporal),
            processes: BTreeMap::new(),
            exits: watch::Sender::new(0),
            dir,
            clocks,
            volumes,
            _ports: vec![port],
        };
        stack.world.set_sandbox(json!({ "limits": lifted_limits() })).await;
        stack.run(Part::Api).await;
        stack.run(Part::Worker).await;
        stack
    }

    /// Makes the receiver's proxy lead to a webhook receiver, and returns the URL to subscribe.
    pub(crate) fn receive_at(&self, url: &str) -> String {
        let mut url: Url = url.parse().unwrap();
        let proxy = &self.proxies[&Pair::WorkerReceiver];
        proxy.lead_to(url.socket_addrs(|| None).unwrap()[0]);
        url.set_port(Some(proxy.address().port())).unwrap();
        url.to_string()
    }

    /// Starts a part, and waits until it is ready.
    pub(crate) async fn run(&mut self, part: Part) {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        match part {
            Part::Postgres => {
                let guard = self
                    .clocks
                    .as_ref()
                    .map_or_else(|| PathBuf::from(*PROGRAM), |clocks| clocks.guard.clone());
                let postgres = start_postgres(&self.dir, &guard).await;
                for proxy in
                    [&self.own.0, &self.proxies[&Pair::ApiPostgres], &self.proxies[&Pair::WorkerPostgres]]
                {
                    proxy.lead_to(at(postgres.port));
                }
                self.postgres = Some(postgres);
            }
            Part::Temporal => {
                let temporal = start_temporal(&self.dir).await;
                for proxy in
                    [&self.own.1, &self.proxies[&Pair::ApiTemporal], &self.proxies[&Pair::WorkerTemporal]]
                {
                    proxy.lead_to(at(temporal.port));
                }
                self.temporal = Some(temporal);
            }
            Part::Api => self.launch("api", "api", &[]).await,
            Part::Worker => self.launch("worker", "worker", &[]).await,
        }
    }

    /// Starts a process under a name, with variables of its own, and waits until it is ready.
    pub(crate) async fn launch(&mut self, name: &'static str, command: &'static str, set: &[(&str, String)]) {
        let mut process = Process::start(
            self.environment(command, set),
            command,
            self.dir.join(format!("{name}.log")),
            self.exits.clone(),
        );
        let up = tokio::time::timeout(PATIENCE, process.is_ready.wait_for(|is_ready| *is_ready));
        up.await.unwrap_or_else(|_| panic!("{name} does not come up: {}", self.dir.display())).unwrap();
        self.processes.insert(name, process);
    }

    /// Returns the environment of a command's process, whose connections are on its proxies.
    pub(crate) fn environment(&self, command: &str, set: &[(&str, String)]) -> Vec<(String, String)> {
        let mut environment: BTreeMap<String, String> = self.world.environment().iter().cloned().collect();
        let (postgres, temporal) = match command {
            "api" => (Pair::ApiPostgres, Pair::ApiTemporal),
            _ => (Pair::WorkerPostgres, Pair::WorkerTemporal),
        };
        let mut set_to = |name: &str, value: String| environment.insert(name.to_owned(), value);
        // The worker sends platforms to the media files that the API serves.
        set_to("FANFARE_BASE_URL", self.world.base.clone());
        set_to("DATABASE_URL", through(self.world.variable("DATABASE_URL"), &self.proxies[&postgres]));
        set_to("TEMPORAL_ADDRESS", format!("http://{}", self.proxies[&temporal].address()));
        if command == "worker" {
            set_to(
                "FANFARE_SANDBOX_URL",
                format!("http://{}", self.proxies[&Pair::WorkerPlatforms].address()),
            );
        }
        if let Some(clocks) = &self.clocks {
            let part = if command == "api" { Part::Api } else { Part::Worker };
            for (name, value) in clocks.environment(part) {
                set_to(name, value);
            }
        }
        for (name, value) in set {
            set_to(name, value.clone());
        }
        environment.into_iter().collect()
    }

    /// Kills a part with SIGKILL. It stays down until [`Stack::run`].
    pub(crate) async fn kill(&mut self, part: Part) {
        match part {
            Part::Postgres => {
                let postgres = self.postgres.take().expect("it runs");
                let postmaster = postgres.child.pid().borrow().expect("it runs");
                let backends = children(postmaster);
                // The postmaster first: it would restart the others.
                for pid in [postmaster].into_iter().chain(backends) {
                    signal(pid, Signal::SIGKILL);
                }
                postgres.child.end().await.unwrap();
            }
            Part::Temporal => {
                let temporal = self.temporal.take().expect("it runs");
                signal(temporal.child.pid().borrow().expect("it runs"), Signal::SIGKILL);
                temporal.child.end().await.unwrap();
            }
            Part::Api => self.end("api", Signal::SIGKILL).await,
            Part::Worker => self.end("worker", Signal::SIGKILL).await,
        }
    }

    /// Ends a process with a signal. It stays down.
    pub(crate) async fn end(&mut self, name: &str, signal: Signal) {
        self.processes.remove(name).expect("it runs").end(signal).await;
    }

    /// Removes the data of Temporal, which must be down.
    pub(crate) fn empty_temporal(&self) {
        assert!(self.temporal.is_none(), "kill Temporal first");
        fs::remove_dir_all(self.dir.join("temporal")).unwrap();
    }

    /// Copies the data of Postgres, which must be down, to a backup.
    pub(crate) fn back_up(&self) {
        assert!(self.postgres.is_none(), "kill Postgres first");
        copy(&self.data("postgres/data"), &self.data("backup"));
    }

    /// Replaces the data of Postgres, which must be down, by the backup.
    pub(crate) fn restore(&self) {
        assert!(self.postgres.is_none(), "kill Postgres first");
        fs::remove_dir_all(self.data("postgres/data")).unwrap();
        copy(&self.data("backup"), &self.data("postgres/data"));
    }

    /// Returns the directory of the data of `postgres` or `temporal`, or of the `media` files.
    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Returns the process id of a running process.
    pub(crate) fn pid(&self, name: &str) -> Option<u32> {
        *self.processes[name].pid.borrow()
    }

    /// Returns the volume below a directory of [`Stack::data`].
    pub(crate) fn volume(&self, name: &str) -> &Volume {
        let dir = self.data(name);
        self.volumes.iter().find(|volume| volume.dir == dir).expect("a stack with volumes")
    }

    /// Sets the clock of Postgres, the API or the worker. The others keep the time.
    pub(crate) fn set_clock(&self, part: Part, hours: i64) {
        self.clocks.as_ref().expect("a stack with clocks").set(part, hours);
    }

    /// Runs a command of the program to its end, and returns its output.
    pub(crate) async fn command(&self, args: &[&str], set: &[(&str, String)]) -> std::process::Output {
        let mut command = Command::new(*PROGRAM);
        command.args(args).envs(self.environment(args[0], set)).kill_on_drop(true);
        tokio::time::timeout(PATIENCE, command.output()).await.expect("the command ends").unwrap()
    }

    /// Returns the path of Temporal's CLI, and the server's address.
    pub(crate) fn temporal_cli(&self) -> (PathBuf, String) {
        let server = self.temporal.as_ref().expect("it runs");
        (server.program.clone(), server.address.clone())
    }

    /// Stops everything in order, and fails if a process does not exit with success.
    pub(crate) async fn stop(mut self) {
        for (_, process) in std::mem::take(&mut self.processes) {
            process.end(Signal::SIGTERM).await;
        }
        let servers = [self.temporal.take().map(|one| one.child), self.postgres.take().map(|one| one.child)];
        for child in servers.into_iter().flatten() {
            child.end().await.unwrap();
        }
    }
}

async fn start_postgres(dir: &Path, guard: &Path) -> Postgres {
    // A commit that was acknowledged must survive a kill.
    let options = PostgresOptions { password: "proof".to_owned(), ..Default::default() };
    Postgres::start(&dir.join("postgres"), guard, &options).await.expect("Postgres")
}

async fn start_temporal(dir: &Path) -> devstack::Temporal {
    let options = TemporalOptions {
        search_attributes: workflows::attributes::ALL.to_vec(),
        ..TemporalOptions::default()
    };
    devstack::Temporal::start(&dir.join("temporal"), Path::new(*PROGRAM), &options).await.expect("Temporal")
}

/// Returns the URL of the same database on a proxy.
fn through(url: &str, proxy: &Proxy) -> String {
    let mut url: Url = url.parse().unwrap();
    url.set_port(Some(proxy.address().port())).unwrap();
    url.to_string()
}

/// Copies a directory, with owners and modes.
fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.is_ok_and(|status| status.success()), "cp -a {} {}", from.display(), to.display());
}

fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Sends a signal to a process, which may have exited.
fn signal(pid: u32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid.try_into().unwrap()), signal);
}

/// A supervised process.
struct Process {
    end: watch::Sender<Option<Signal>>,
    pid: watch::Receiver<Option<u32>>,
    is_ready: watch::Receiver<bool>,
    supervisor: JoinHandle<()>,
}

impl Process {
    fn start(
        environment: Vec<(String, String)>,
        command: &'static str,
        log: PathBuf,
        exits: watch::Sender<usize>,
    ) -> Self {
        let (end, mut ended) = watch::channel(None);
        let (set_pid, pid) = watch::channel(None);
        let (set_ready, is_ready) = watch::channel(false);
        let supervisor = tokio::spawn(async move {
            loop {
                let mut child = spawn(&environment, command, &log);
                set_pid.send_replace(child.id());
                let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
                let set_ready = set_ready.clone();
                tokio::spawn(async move {
                    while let Ok(Some(line)) = lines.next_line().await {
                        if line == "ready" {
                            set_ready.send_replace(true);
                        }
                    }
                });
                tokio::select! {
                    _ = child.wait() => {}
                    end = requested(&mut ended) => {
                        if let Some(pid) = child.id() {
                            signal(pid, end);
                        }
                        child.wait().await.unwrap();
                        return;
                    }
                }
                set_pid.send_replace(None);
                exits.send_modify(|exits| *exits += 1);
                if tokio::time::timeout(RESTART_PAUSE, requested(&mut ended)).await.is_ok() {
                    return;
                }
            }
        });
        Self { end, pid, is_ready, supervisor }
    }

    async fn end(self, signal: Signal) {
        self.end.send_replace(Some(signal));
        tokio::time::timeout(PATIENCE, self.supervisor).await.expect("the process ends").unwrap();
    }
}

/// Waits until the end is requested, and returns the signal.
async fn requested(end: &mut watch::Receiver<Option<Signal>>) -> Signal {
    let requested = end.wait_for(Option::is_some).await;
    // The sender is dropped by a test that fails.
    requested.ok().and_then(|signal| *signal).unwrap_or(Signal::SIGKILL)
}

fn spawn(environment: &[(String, String)], command: &str, log: &Path) -> Child {
    let log = File::options().create(true).append(true).open(log).unwrap();
    let mut program = Command::new(*PROGRAM);
    program.arg(command).envs(environment.iter().cloned());
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
    program.spawn().expect("the program starts")
}
