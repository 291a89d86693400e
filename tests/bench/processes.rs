//! Processor time and memory of the processes that this run started, from `/proc`.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    time::Duration,
};

/// Part of the system under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// Temporal's server.
    Temporal,
    /// Postgres with its backends.
    Postgres,
    /// Fanfare.
    Fanfare,
    /// This process: load, sandbox, receivers, and the worker of the bare program.
    Bench,
}

/// Processor time by part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cpu(BTreeMap<Part, Duration>);

impl Cpu {
    /// Returns what has been used so far.
    pub(crate) fn now() -> Self {
        let mut used = BTreeMap::new();
        for process in descendants() {
            // Temporal's command line tool and the guards are not measured.
            let part = match &*process.name {
                "temporal" | "server" | "temporal-server" => Part::Temporal,
                "postgres" => Part::Postgres,
                // The kernel keeps 15 bytes of a name.
                "fanfare-under-t" => Part::Fanfare,
                _ if process.pid == std::process::id() => Part::Bench,
                _ => continue,
            };
            // Backends that have ended are in the time of the postmaster's children.
            let ended = if part == Part::Postgres { process.children } else { Duration::ZERO };
            *used.entry(part).or_default() += process.own + ended;
        }
        Self(used)
    }

    /// Returns what was used since an earlier time.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self(self.0.iter().map(|(part, used)| (*part, used.saturating_sub(before.of(*part)))).collect())
    }

    /// Returns the time of a part.
    pub(crate) fn of(&self, part: Part) -> Duration {
        self.0.get(&part).copied().unwrap_or_default()
    }

    /// Returns the time of a part in milliseconds for each of `count`.
    pub(crate) fn ms_per(&self, part: Part, count: usize) -> f64 {
        self.of(part).as_secs_f64() * 1000.0 / count as f64
    }

    /// Returns the time of all parts in milliseconds for each of `count`.
    pub(crate) fn all_ms_per(&self, count: usize) -> f64 {
        self.0.keys().map(|part| self.ms_per(*part, count)).sum()
    }

    /// Returns a list of the parts with their milliseconds for each of `count`.
    pub(crate) fn profile(&self, count: usize) -> String {
        let parts = self.0.keys().map(|part| format!("{part:?} {:.1}", self.ms_per(*part, count)));
        parts.collect::<Vec<_>>().join(", ")
    }
}

struct Process {
    pid: u32,
    name: String,
    own: Duration,
    /// Of children that have ended.
    children: Duration,
}

/// Returns this process and all that it started, directly or not: other runs on this machine don't count.
fn descendants() -> Vec<Process> {
    let mut parents = HashMap::new();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // pid (name) state ppid … utime stime cutime cstime, in hundredths of a second.
        let Some((head, tail)) = stat.rsplit_once(") ") else { continue };
        let Some((pid, name)) = head.split_once(" (") else { continue };
        let Ok(pid) = pid.parse::<u32>() else { continue };
        let fields: Vec<u64> = tail.split(' ').map(|field| field.parse().unwrap_or_default()).collect();
        let ticks = |range: std::ops::Range<usize>| {
            Duration::from_millis(fields.get(range).map_or(0, |fields| fields.iter().sum::<u64>()) * 10)
        };
        parents.insert(pid, fields.get(1).copied().unwrap_or_default());
        found.push(Process { pid, name: name.to_owned(), own: ticks(11..13), children: ticks(13..15) });
    }
    let own = std::process::id();
    found.retain(|process| {
        let mut pid = process.pid;
        while pid > 1 && pid != own {
            pid = parents.get(&pid).and_then(|parent| u32::try_from(*parent).ok()).unwrap_or_default();
        }
        pid == own
    });
    found
}

/// Returns the resident memory of processes, in MiB.
pub(crate) fn resident_mib(pids: &[u32]) -> f64 {
    let kib = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or_default()
    };
    pids.iter().map(kib).sum::<f64>() / 1024.0
}
