//! A child process: started, watched, restarted when it dies, ended when asked.
//!
//! The thread that watches it also starts it, and lives as long as the process: the kernel ends a
//! guarded child with the thread that made it.

use anyhow::Context;
use nix::{
    errno::Errno,
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    fs::File,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tokio::sync::watch;
use tracing::warn;

/// The pause before a child that died is started again, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// A child that lived this long starts with the first pause again.
const STEADY: Duration = Duration::from_secs(30);
/// How long a child may take to end by itself.
const GRACE: Duration = Duration::from_secs(20);

/// How a child is started.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What it is, for people.
    pub name: &'static str,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// The user and group it runs as, where they are not ours.
    pub ids: Option<(u32, u32)>,
    /// Where its output goes.
    pub log: PathBuf,
    /// What asks it to end.
    pub stop: Signal,
    /// The program whose `guard` command ends the child with us.
    pub guard: PathBuf,
}

/// A child that is being watched.
#[derive(Debug)]
pub struct Child {
    name: &'static str,
    stop: Signal,
    stopping: Arc<AtomicBool>,
    pid: watch::Receiver<Option<u32>>,
    starts: watch::Receiver<u32>,
    log: PathBuf,
    watcher: Option<thread::JoinHandle<()>>,
}

impl Child {
    /// Starts it, and goes on starting it whenever it dies.
    ///
    /// # Errors
    ///
    /// When no thread can be made to watch it.
    pub fn start(spec: Spec) -> anyhow::Result<Self> {
        let stopping = Arc::new(AtomicBool::new(false));
        let (pid, pid_seen) = watch::channel(None);
        let (starts, starts_seen) = watch::channel(0);
        let (name, stop, log, flag) = (spec.name, spec.stop, spec.log.clone(), stopping.clone());
        let watcher = thread::Builder::new()
            .name(format!("watch-{name}"))
            .spawn(move || watch(&spec, &flag, &pid, &starts))
            .context("no thread to watch a child")?;
        Ok(Self { name, stop, stopping, pid: pid_seen, starts: starts_seen, log, watcher: Some(watcher) })
    }

    /// Its process id, as it changes; `None` while it is down.
    pub fn pid(&self) -> watch::Receiver<Option<u32>> {
        self.pid.clone()
    }

    /// Waits until `up` says that it serves.
    ///
    /// # Errors
    ///
    /// One sentence with the end of its log, when it dies again and again or never comes up.
    pub async fn ready(&self, patience: Duration, up: impl AsyncFn() -> bool) -> anyhow::Result<()> {
        let deadline = Instant::now() + patience;
        while !up().await {
            let hopeless = *self.starts.borrow() > 12 || Instant::now() > deadline;
            anyhow::ensure!(
                !hopeless,
                "{} does not come up: {} (see {})",
                self.name,
                last_line(&self.log),
                self.log.display()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Asks it to end, and waits until it has.
    ///
    /// # Errors
    ///
    /// When its watcher failed.
    pub async fn end(mut self) -> anyhow::Result<()> {
        self.stopping.store(true, Ordering::SeqCst);
        self.signal(self.stop);
        let mut pid = self.pid.clone();
        let ended = async { pid.wait_for(Option::is_none).await.map(drop) };
        if tokio::time::timeout(GRACE, ended).await.is_err() {
            warn!(child = self.name, "{} does not end when asked; killed", self.name);
            self.signal(Signal::SIGKILL);
        }
        let watcher = self.watcher.take().context("a child ends once")?;
        let joined = tokio::task::spawn_blocking(move || watcher.join()).await?;
        joined.map_err(|_| anyhow::anyhow!("the watcher of {} panicked", self.name))
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = *self.pid.borrow()
            && let Ok(pid) = i32::try_from(pid)
            && let Err(error) = kill(Pid::from_raw(pid), signal)
            && error != Errno::ESRCH
        {
            warn!(child = self.name, %error, "{} could not be signalled", self.name);
        }
    }
}

fn watch(spec: &Spec, stopping: &AtomicBool, pid: &watch::Sender<Option<u32>>, starts: &watch::Sender<u32>) {
    let mut pause = PAUSE.0;
    while !stopping.load(Ordering::SeqCst) {
        let began = Instant::now();
        starts.send_modify(|count| *count += 1);
        match spawn(spec) {
            Ok(mut child) => {
                pid.send_replace(Some(child.id()));
                // Asked to stop between the check above and the announcement: nobody knew the pid.
                if stopping.load(Ordering::SeqCst) {
                    let known = i32::try_from(child.id()).map(Pid::from_raw);
                    if let Ok(known) = known {
                        let _gone = kill(known, spec.stop);
                    }
                }
                let ended = child.wait();
                pid.send_replace(None);
                if !stopping.load(Ordering::SeqCst) && began.elapsed() > Duration::from_secs(2) {
                    warn!(child = spec.name, ?ended, "{} died and is started again", spec.name);
                }
            }
            Err(error) => warn!(child = spec.name, %error, "{} can't be started", spec.name),
        }
        if began.elapsed() > STEADY {
            pause = PAUSE.0;
        }
        let until = Instant::now() + pause;
        while Instant::now() < until && !stopping.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(20));
        }
        pause = (pause * 2).min(PAUSE.1);
    }
}

fn spawn(spec: &Spec) -> std::io::Result<std::process::Child> {
    let log = File::options().create(true).append(true).open(&spec.log)?;
    let mut command = Command::new(&spec.guard);
    command.arg("guard").arg("--parent").arg(std::process::id().to_string());
    if let Some((uid, gid)) = spec.ids {
        command.args(["--uid", &uid.to_string(), "--gid", &gid.to_string()]);
    }
    command
        .arg("--")
        .arg(&spec.program)
        .args(&spec.args)
        .current_dir("/")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        // Ctrl-C in a terminal goes to us alone; we end our children in order.
        .process_group(0)
        .spawn()
}

fn last_line(log: &std::path::Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("its log is empty").to_owned()
}
