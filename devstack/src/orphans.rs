//! Finds and stops servers that a killed `fanfare` left running.
//!
//! A process is identified by the files in its command line or its working directory: a recorded process id
//! may have been reused.

use crate::progress;
use anyhow::Context;
use nix::{
    errno::Errno,
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// Time for a process to exit after each of the two signals.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Separator of the arguments in a command line.
const ARG_SEPARATOR: char = if cfg!(target_os = "linux") { '\0' } else { ' ' };

/// A process of this machine.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) pid: i32,
    /// Command line, its arguments separated by [`ARG_SEPARATOR`].
    command: String,
}

impl Running {
    /// Returns true if one of the arguments is `word`.
    pub(crate) fn has_arg(&self, word: &str) -> bool {
        self.command.match_indices(word).any(|(at, _)| {
            let (before, after) = (&self.command[..at], &self.command[at + word.len()..]);
            (before.is_empty() || before.ends_with(ARG_SEPARATOR))
                && (after.is_empty() || after.starts_with(ARG_SEPARATOR))
        })
    }

    /// Returns the file name of the program.
    pub(crate) fn program(&self) -> &str {
        let first = self.command.split(ARG_SEPARATOR).next().unwrap_or_default();
        first.rsplit('/').next().unwrap_or_default()
    }

    /// Returns true if this is the working directory. Postgres changes to its data directory.
    #[cfg(target_os = "linux")]
    pub(crate) fn works_in(&self, dir: &Path) -> bool {
        std::fs::read_link(format!("/proc/{}/cwd", self.pid)).is_ok_and(|cwd| cwd == dir)
    }

    /// Returns true if the directory is one of the arguments.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn works_in(&self, dir: &Path) -> bool {
        self.has_arg(&dir.to_string_lossy())
    }
}

/// Returns all visible processes, without zombies.
#[cfg(target_os = "linux")]
pub(crate) fn running() -> Vec<Running> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let command = String::from_utf8_lossy(&line).trim_end_matches(ARG_SEPARATOR).to_owned();
            (!command.is_empty()).then_some(Running { pid, command })
        })
        .collect()
}

/// Returns all visible processes.
#[cfg(not(target_os = "linux"))]
pub(crate) fn running() -> Vec<Running> {
    let Ok(list) = std::process::Command::new("ps").args(["-axww", "-o", "pid=,command="]).output() else {
        return Vec::new();
    };
    String::from_utf8_lossy(&list.stdout)
        .lines()
        .filter_map(|line| {
            let (pid, command) = line.trim().split_once(' ')?;
            Some(Running { pid: pid.parse().ok()?, command: command.trim().to_owned() })
        })
        .collect()
}

/// Stops the processes that `ours` returns: with the signal `ask`, then with `insist`.
///
/// # Errors
///
/// If a process does not exit.
pub(crate) async fn end(
    name: &str,
    ask: Signal,
    insist: Signal,
    ours: impl Fn() -> Vec<i32>,
) -> anyhow::Result<()> {
    for signal in [ask, insist] {
        let began = Instant::now();
        for pid in ours() {
            progress(&format!("Stopping a {name} that was left running (process {pid})"));
            match kill(Pid::from_raw(pid), signal) {
                // It has exited meanwhile.
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(error) => {
                    return Err(error).with_context(|| {
                        format!("a {name} that was left running (process {pid}) can't be stopped")
                    });
                }
            }
        }
        while !ours().is_empty() && began.elapsed() < STOP_TIMEOUT {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let left = ours();
    anyhow::ensure!(left.is_empty(), "a {name} that was left running (process {left:?}) does not exit");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_argument_matches() {
        let command = ["/usr/bin/temporal", "server", "start-dev", "--db-filename", "/a b/temporal.db"];
        let running = Running { pid: 1, command: command.join(&ARG_SEPARATOR.to_string()) };
        assert!(running.has_arg("/a b/temporal.db"));
        assert!(running.has_arg("start-dev"));
        assert!(!running.has_arg("/a b/temporal"));
        assert!(!running.has_arg("temporal.db"));
        assert_eq!(running.program(), "temporal");
    }

    #[test]
    fn we_are_running() {
        let me = i32::try_from(std::process::id()).unwrap();
        assert!(running().iter().any(|one| one.pid == me));
    }
}
