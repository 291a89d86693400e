//! A child process: started, watched, restarted when it dies, ended when asked or let go.
//!
//! The thread that watches it also starts it, and lives as long as the child: the kernel ends a
//! guarded child with the thread that made it.

use crate::fetch::reason;
use anyhow::Context;
use nix::{
    errno::Errno,
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
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

/// The pause before a child that died is started again, at first and at most.
const RESTART_PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// A child that lived this long starts with the first pause again.
const STEADY_AFTER: Duration = Duration::from_secs(30);
/// How often a child that has not served yet is started. With the pauses between, that takes longer than
/// a crashed predecessor's locks and shared memory live.
const TRIES: u32 = 7;
/// How long a child may take to end after each signal, before the next one.
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
    /// A folder that its user can reach only with our help.
    pub protected_dir: Option<PathBuf>,
    /// Where its output goes.
    pub log: PathBuf,
    /// What asks it to end, and what makes it end where it does not listen.
    pub stop: (Signal, Signal),
    /// The program whose `guard` command ends the child with us.
    pub guard: PathBuf,
}

/// A child that is being watched. It ends with this value.
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
        let log_began = fs::metadata(&log).map_or(0, |log| log.len());
        let watcher = thread::Builder::new()
            .name(format!("watch-{name}"))
            .spawn(move || watch(&spec, &flag, &pid, &starts))
            .context("no thread to watch a child")?;
        let watcher = Some(watcher);
        Ok(Self { name, stop, stopping, pid: pid_seen, starts: starts_seen, log, log_began, watcher })
    }

    /// Its process id, as it changes; `None` while it is down.
    pub fn pid(&self) -> watch::Receiver<Option<u32>> {
        self.pid.clone()
    }

    /// Waits until `up` says that the process with this id serves.
    ///
    /// # Errors
    ///
    /// One sentence with the end of its log, when it dies again and again or never comes up.
    pub async fn ready(&self, patience: Duration, up: impl AsyncFn(u32) -> bool) -> anyhow::Result<()> {
        let deadline = Instant::now() + patience;
        loop {
            let pid = *self.pid.borrow();
            if let Some(pid) = pid
                && up(pid).await
                && *self.pid.borrow() == Some(pid)
            {
                return Ok(());
            }
            let hopeless = *self.starts.borrow() > TRIES || Instant::now() > deadline;
            anyhow::ensure!(
                !hopeless,
                "{} does not come up: {} (see {})",
                self.name,
                last_line(&self.log, self.log_began),
                self.log.display()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends it, and waits until it has ended.
    ///
    /// # Errors
    ///
    /// When its watcher failed.
    pub async fn end(mut self) -> anyhow::Result<()> {
        let ended = tokio::task::spawn_blocking(move || self.stop_and_join()).await?;
        ended.context("the watcher of a child failed")
    }

    /// Asks, then insists, then kills; `None` when the watcher panicked.
    fn stop_and_join(&mut self) -> Option<()> {
        let Some(watcher) = self.watcher.take() else { return Some(()) };
        self.stopping.store(true, Ordering::SeqCst);
        watcher.thread().unpark();
        for signal in [self.stop.0, self.stop.1, Signal::SIGKILL] {
            if signal != self.stop.0 {
                warn!(child = self.name, %signal, "{} does not end when asked", self.name);
            }
            if let Some(pid) = *self.pid.borrow() {
                send_signal(self.name, pid, signal);
            }
            let until = Instant::now() + GRACE;
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
            warn!(child = self.name, "the watcher of {} failed", self.name);
        }
    }
}

fn watch(spec: &Spec, stopping: &AtomicBool, pid: &watch::Sender<Option<u32>>, starts: &watch::Sender<u32>) {
    let mut pause = RESTART_PAUSE.0;
    while !stopping.load(Ordering::SeqCst) {
        let began = Instant::now();
        starts.send_modify(|count| *count += 1);
        match spawn(spec) {
            Ok(mut child) => {
                pid.send_replace(Some(child.id()));
                // Asked to end between the check above and the announcement: nobody knew the pid.
                if stopping.load(Ordering::SeqCst) {
                    send_signal(spec.name, child.id(), spec.stop.0);
                }
                let ended = child.wait();
                pid.send_replace(None);
                if !stopping.load(Ordering::SeqCst) && began.elapsed() > Duration::from_secs(2) {
                    warn!(child = spec.name, ?ended, "{} died and is started again", spec.name);
                }
            }
            Err(error) => warn!(child = spec.name, %error, "{} can't be started", spec.name),
        }
        if began.elapsed() > STEADY_AFTER {
            pause = RESTART_PAUSE.0;
        }
        let until = Instant::now() + pause;
        while !stopping.load(Ordering::SeqCst) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            // Whoever ends us wakes us.
            thread::park_timeout(left);
        }
        pause = (pause * 2).min(RESTART_PAUSE.1);
    }
}

fn spawn(spec: &Spec) -> std::io::Result<std::process::Child> {
    let log = File::options().create(true).append(true).open(&spec.log)?;
    Command::new(&spec.guard)
        .args(guard_args(spec.ids, spec.protected_dir.as_deref()))
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

/// The arguments of the `guard` command, up to the program.
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

fn send_signal(name: &str, pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid)
        && let Err(error) = kill(Pid::from_raw(pid), signal)
        && error != Errno::ESRCH
    {
        warn!(child = name, %error, "{name} could not be signalled");
    }
}

/// The last line that was written after this many bytes.
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
    fn the_log_of_an_earlier_start_tells_nothing_about_this_one() {
        let log = std::env::temp_dir().join(format!("fanfare-child-{}.log", std::process::id()));
        fs::write(&log, "an old fault\n").unwrap();
        let began = fs::metadata(&log).unwrap().len();
        assert_eq!(last_line(&log, began), "it says nothing");
        fs::write(&log, "an old fault\nport taken\n\n").unwrap();
        assert_eq!(last_line(&log, began), "port taken");
        fs::remove_file(log).unwrap();
    }
}
