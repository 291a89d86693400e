//! What a fanfare that was killed left running, found and ended.
//!
//! Only a process whose own command line or working directory names our files is ours: a process id
//! that was written down may belong to somebody else by now.

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

/// How long one may take to end by itself, and then how long it may take to die.
const GRACE: Duration = Duration::from_secs(10);
/// What stands between the words of a command line here.
const BETWEEN: char = if cfg!(target_os = "linux") { '\0' } else { ' ' };

/// A process of this machine.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) pid: i32,
    /// Its command line, its words separated by [`BETWEEN`].
    command: String,
}

impl Running {
    /// Whether one of its words is this one.
    pub(crate) fn says(&self, word: &str) -> bool {
        self.command.match_indices(word).any(|(at, _)| {
            let (before, after) = (&self.command[..at], &self.command[at + word.len()..]);
            (before.is_empty() || before.ends_with(BETWEEN))
                && (after.is_empty() || after.starts_with(BETWEEN))
        })
    }

    /// The file name of its program.
    pub(crate) fn program(&self) -> &str {
        let first = self.command.split(BETWEEN).next().unwrap_or_default();
        first.rsplit('/').next().unwrap_or_default()
    }

    /// Whether it works in this folder. Postgres does so in its cluster, by whatever path it came.
    #[cfg(target_os = "linux")]
    pub(crate) fn works_in(&self, dir: &Path) -> bool {
        std::fs::read_link(format!("/proc/{}/cwd", self.pid)).is_ok_and(|cwd| cwd == dir)
    }

    /// Whether it was told to work in this folder.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn works_in(&self, dir: &Path) -> bool {
        self.says(&dir.to_string_lossy())
    }
}

/// All processes that can be seen. One that has ended but was not waited for yet is none of them.
#[cfg(target_os = "linux")]
pub(crate) fn running() -> Vec<Running> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let command = String::from_utf8_lossy(&line).trim_end_matches(BETWEEN).to_owned();
            (!command.is_empty()).then_some(Running { pid, command })
        })
        .collect()
}

/// All processes that can be seen.
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

/// Ends those that `ours` finds: asks first, then insists.
///
/// # Errors
///
/// One sentence, when one stays.
pub(crate) async fn end(
    name: &str,
    ask: Signal,
    insist: Signal,
    ours: impl Fn() -> Vec<i32>,
) -> anyhow::Result<()> {
    for signal in [ask, insist] {
        let began = Instant::now();
        for pid in ours() {
            progress(&format!("Taking over from a {name} that was left running (process {pid})"));
            match kill(Pid::from_raw(pid), signal) {
                // It went by itself meanwhile.
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("a {name} that was left running (process {pid}) stays"));
                }
            }
        }
        while !ours().is_empty() && began.elapsed() < GRACE {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let left = ours();
    anyhow::ensure!(left.is_empty(), "a {name} that was left running (process {left:?}) does not end");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_word_names_our_files() {
        let command = ["/usr/bin/temporal", "server", "start-dev", "--db-filename", "/a b/temporal.db"];
        let running = Running { pid: 1, command: command.join(&BETWEEN.to_string()) };
        assert!(running.says("/a b/temporal.db"));
        assert!(running.says("start-dev"));
        assert!(!running.says("/a b/temporal"));
        assert!(!running.says("temporal.db"));
        assert_eq!(running.program(), "temporal");
    }

    #[test]
    fn we_are_running() {
        let me = i32::try_from(std::process::id()).unwrap();
        assert!(running().iter().any(|one| one.pid == me));
    }
}
