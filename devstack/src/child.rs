//! Supervises a child process: starts it, restarts it when it dies, stops it on request or on drop.
//!
//! The thread that starts the child lives as long as the child does: `PR_SET_PDEATHSIG` signals a
//! guarded child when the thread that created it ends.

use crate::fetch::reason;
use anyhow::Context;
use nix::{
    errno::Errno,
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
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

/// First and longest backoff before a child that died is restarted.
const RESTART_BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// Uptime after which the backoff is reset.
const BACKOFF_RESET_AFTER: Duration = Duration::from_secs(30);
/// Number of starts before a child that never became ready is given up. With the backoff, that takes
/// longer than a crashed predecessor holds its locks and shared memory.
const MAX_STARTS: u32 = 7;
/// Time for a child to exit after each signal, before the next one.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// Command and environment of a child.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    /// Name in messages.
    pub(crate) name: &'static str,
    /// Path of the program.
    pub(crate) program: PathBuf,
    /// Arguments, without the program.
    pub(crate) args: Vec<String>,
    /// All environment variables; `None` for those of this process.
    pub(crate) env: Option<BTreeMap<String, String>>,
    /// User and group id to run as; `None` for those of this process.
    pub(crate) ids: Option<(u32, u32)>,
    /// Directory that the child's user can reach only through an inherited descriptor.
    pub(crate) protected_dir: Option<PathBuf>,
    /// File to which stdout and stderr are appended.
    pub(crate) log: PathBuf,
    /// Signals to stop the child, in this order; SIGKILL follows.
    pub(crate) stop: (Signal, Signal),
    /// Program whose `guard` command runs the child, so that it ends with this process.
    pub(crate) guard: PathBuf,
}

/// A program to run and supervise.
#[derive(Clone, Debug)]
pub struct Program {
    /// Name in messages.
    pub name: &'static str,
    /// Path of the program.
    pub path: PathBuf,
    /// Arguments, without the program.
    pub args: Vec<String>,
    /// All its environment variables.
    pub env: BTreeMap<String, String>,
    /// File to which stdout and stderr are appended.
    pub log: PathBuf,
}

/// A supervised child process. Stopped on drop.
#[derive(Debug)]
pub struct Child {
    name: &'static str,
    stop: (Signal, Signal),
    stopping: Arc<AtomicBool>,
    pid: watch::Receiver<Option<u32>>,
    starts: watch::Receiver<u32>,
    log: PathBuf,
    log_began: u64,
    watcher: Option<thread::JoinHandle<()>>,
}

impl Child {
    /// Starts a program, and restarts it whenever it ends. `guard` is a program that has the `guard` command.
    ///
    /// # Errors
    ///
    /// If no supervisor thread can be created.
    pub fn run(program: Program, guard: &Path) -> anyhow::Result<Self> {
        let Program { name, path, args, env, log } = program;
        Self::start(Spec {
            name,
            program: path,
            args,
            env: Some(env),
            ids: None,
            protected_dir: None,
            log,
            stop: (Signal::SIGTERM, Signal::SIGTERM),
            guard: guard.to_owned(),
        })
    }

    /// Starts the child, and restarts it whenever it dies.
    ///
    /// # Errors
    ///
    /// If no supervisor thread can be created.
    pub(crate) fn start(spec: Spec) -> anyhow::Result<Self> {
        let stopping = Arc::new(AtomicBool::new(false));
        let (pid, pid_seen) = watch::channel(None);
        let (starts, starts_seen) = watch::channel(0);
        let (name, stop, log, flag) = (spec.name, spec.stop, spec.log.clone(), stopping.clone());
        let log_began = fs::metadata(&log).map_or(0, |log| log.len());
        let watcher = thread::Builder::new()
            .name(format!("watch-{name}"))
            .spawn(move || watch(&spec, &flag, &pid, &starts))
            .context("create a supervisor thread")?;
        let watcher = Some(watcher);
        Ok(Self { name, stop, stopping, pid: pid_seen, starts: starts_seen, log, log_began, watcher })
    }

    /// Returns the current process id; `None` while the child is down.
    pub fn pid(&self) -> watch::Receiver<Option<u32>> {
        self.pid.clone()
    }

    /// Waits until `is_up` returns true for the child's process id.
    ///
    /// # Errors
    ///
    /// If it keeps dying or is not ready within `timeout`, with the last line of its log.
    pub async fn ready(&self, timeout: Duration, is_up: impl AsyncFn(u32) -> bool) -> anyhow::Result<()> {
        let deadline = Instant::now() + timeout;
        loop {
            let pid = *self.pid.borrow();
            if let Some(pid) = pid
                && is_up(pid).await
                && *self.pid.borrow() == Some(pid)
            {
                return Ok(());
            }
            let has_failed = *self.starts.borrow() > MAX_STARTS || Instant::now() > deadline;
            anyhow::ensure!(
                !has_failed,
                "{} does not start: {} (see {})",
                self.name,
                last_line(&self.log, self.log_began),
                self.log.display()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Stops the child and waits until it has exited.
    ///
    /// # Errors
    ///
    /// If the supervisor thread panicked.
    pub async fn end(mut self) -> anyhow::Result<()> {
        let ended = tokio::task::spawn_blocking(move || self.stop_and_join()).await?;
        ended.context("the supervisor of a child panicked")
    }

    /// Sends the two stop signals, then SIGKILL; `None` if the supervisor thread panicked.
    fn stop_and_join(&mut self) -> Option<()> {
        let Some(watcher) = self.watcher.take() else { return Some(()) };
        self.stopping.store(true, Ordering::SeqCst);
        watcher.thread().unpark();
        for signal in [self.stop.0, self.stop.1, Signal::SIGKILL] {
            if signal != self.stop.0 {
                warn!(child = self.name, %signal, "{} does not exit, sending {signal}", self.name);
            }
            if let Some(pid) = *self.pid.borrow() {
                send_signal(self.name, pid, signal);
            }
            let until = Instant::now() + STOP_TIMEOUT;
            while !watcher.is_finished() && Instant::now() < until {
                thread::sleep(Duration::from_millis(5));
            }
            if watcher.is_finished() {
                break;
            }
        }
        watcher.join().ok()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.stop_and_join().is_none() {
            warn!(child = self.name, "the supervisor of {} panicked", self.name);
        }
    }
}

fn watch(spec: &Spec, stopping: &AtomicBool, pid: &watch::Sender<Option<u32>>, starts: &watch::Sender<u32>) {
    let mut pause = RESTART_BACKOFF.0;
    while !stopping.load(Ordering::SeqCst) {
        let began = Instant::now();
        starts.send_modify(|count| *count += 1);
        match spawn(spec) {
            Ok(mut child) => {
                pid.send_replace(Some(child.id()));
                // Stopped between the check above and the publication of the pid.
                if stopping.load(Ordering::SeqCst) {
                    send_signal(spec.name, child.id(), spec.stop.0);
                }
                let ended = child.wait();
                pid.send_replace(None);
                if !stopping.load(Ordering::SeqCst) && began.elapsed() > Duration::from_secs(2) {
                    warn!(child = spec.name, ?ended, "{} died and is restarted", spec.name);
                }
            }
            Err(error) => warn!(child = spec.name, %error, "{} can't be started", spec.name),
        }
        if began.elapsed() > BACKOFF_RESET_AFTER {
            pause = RESTART_BACKOFF.0;
        }
        let until = Instant::now() + pause;
        while !stopping.load(Ordering::SeqCst) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            // `stop_and_join` unparks this thread.
            thread::park_timeout(left);
        }
        pause = (pause * 2).min(RESTART_BACKOFF.1);
    }
}

fn spawn(spec: &Spec) -> std::io::Result<std::process::Child> {
    let log = File::options().create(true).append(true).open(&spec.log)?;
    let mut command = Command::new(&spec.guard);
    if let Some(env) = &spec.env {
        command.env_clear().envs(env);
    }
    command
        .args(guard_args(spec.ids, spec.protected_dir.as_deref()))
        .arg(&spec.program)
        .args(&spec.args)
        .current_dir("/")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        // Ctrl-C in a terminal signals this process only, which stops its children in order.
        .process_group(0)
        .spawn()
}

/// Returns the arguments of the `guard` command, up to the program.
pub(crate) fn guard_args(ids: Option<(u32, u32)>, protected_dir: Option<&Path>) -> Vec<String> {
    let mut args = ["guard", "--parent", &std::process::id().to_string()].map(str::to_owned).to_vec();
    if let Some((uid, gid)) = ids {
        args.extend(["--uid".to_owned(), uid.to_string(), "--gid".to_owned(), gid.to_string()]);
    }
    if let Some(protected_dir) = protected_dir {
        args.extend(["--protected-dir".to_owned(), protected_dir.to_string_lossy().into_owned()]);
    }
    args.push("--".to_owned());
    args
}

pub(crate) fn send_signal(name: &str, pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid)
        && let Err(error) = kill(Pid::from_raw(pid), signal)
        && error != Errno::ESRCH
    {
        warn!(child = name, %error, "{name} can't be signalled");
    }
}

/// Returns the last line after the offset `began`.
fn last_line(log: &Path, began: u64) -> String {
    let mut text = Vec::new();
    let read = File::open(log).and_then(|mut log| {
        log.seek(SeekFrom::Start(began))?;
        log.read_to_end(&mut text)
    });
    if read.is_err() { "its log can't be read".to_owned() } else { reason(&text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_an_earlier_start_is_not_quoted() {
        let log = std::env::temp_dir().join(format!("fanfare-child-{}.log", std::process::id()));
        fs::write(&log, "an old fault\n").unwrap();
        let began = fs::metadata(&log).unwrap().len();
        assert_eq!(last_line(&log, began), "no output");
        fs::write(&log, "an old fault\nport taken\n\n").unwrap();
        assert_eq!(last_line(&log, began), "port taken");
        fs::remove_file(log).unwrap();
    }
}
