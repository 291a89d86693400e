//! Cost of work for the processes of a service: CPU time, that of their database connections included, and memory beyond
//! what they had.
//!
//! CPU time does not depend on the load of the machine, so that tests compare it with limits.

use crate::World;
use nix::{time::clock_getcpuclockid, unistd::Pid};
use std::{ops::Add, time::Duration};

/// CPU time and memory of a request, or of other work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// CPU time of the service's processes.
    pub service: Duration,
    /// CPU time of the database's connections.
    pub postgres: Duration,
    /// Memory that the largest of the service's processes took in addition at any moment, in bytes.
    pub memory: u64,
}

impl Cost {
    /// Returns the CPU time of all processes.
    pub fn cpu(&self) -> Duration {
        self.service + self.postgres
    }

    /// Returns the memory in whole MiB, rounded up.
    pub fn mebibytes(&self) -> u64 {
        self.memory.div_ceil(1 << 20)
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            service: self.service + other.service,
            postgres: self.postgres + other.postgres,
            memory: self.memory.max(other.memory),
        }
    }
}

/// Returns the CPU time of a process since it began; `None` if there is none.
pub fn cpu_time(pid: u32) -> Option<Duration> {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid"));
    Some(clock_getcpuclockid(pid).ok()?.now().ok()?.into())
}

/// Returns a size in `/proc/PID/status`, such as `VmRSS`, in bytes.
fn memory(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).expect("a size");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// Measures the processes of a world and its database's connections.
pub struct Meter {
    processes: Vec<u32>,
    backends: Vec<u32>,
}

impl Meter {
    /// Watches the world's own processes, which must run.
    pub async fn of(world: &World) -> Self {
        let mut meter = Self { processes: world.pids(), backends: Vec::new() };
        assert!(!meter.processes.is_empty(), "the world runs no process");
        meter.look_again(world).await;
        meter
    }

    /// Looks for processes and connections that are newer than the last look: their time would be missed.
    pub async fn look_again(&mut self, world: &World) {
        self.processes = world.pids();
        let found: Vec<i32> =
            sqlx::query_scalar("select pid from pg_stat_activity where datname = current_database()")
                .fetch_all(&world.db)
                .await
                .expect("the connections");
        self.backends = found.into_iter().map(|pid| u32::try_from(pid).expect("a pid")).collect();
    }

    /// Does some work, and returns its result with what it cost.
    pub async fn measure<T>(&self, work: impl Future<Output = T>) -> (T, Cost) {
        let sizes: Vec<_> = self
            .processes
            .iter()
            .map(|pid| {
                // Resets the peak of the resident memory, `VmHWM`.
                std::fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("the process runs");
                memory(*pid, "VmRSS")
            })
            .collect();
        let began = [&self.processes, &self.backends].map(|all| times(all));
        let result = work.await;
        let ended = [&self.processes, &self.backends].map(|all| times(all));
        let [service, postgres] = [0, 1].map(|of| difference(&began[of], &ended[of]));
        let grown = self.processes.iter().zip(sizes);
        let grown = grown.map(|(pid, before)| memory(*pid, "VmHWM").saturating_sub(before));
        (result, Cost { service, postgres, memory: grown.max().unwrap_or_default() })
    }
}

fn times(pids: &[u32]) -> Vec<Option<Duration>> {
    pids.iter().map(|pid| cpu_time(*pid)).collect()
}

/// Returns the time that passed for those that were there all the time.
fn difference(began: &[Option<Duration>], ended: &[Option<Duration>]) -> Duration {
    let both = began.iter().zip(ended).filter_map(|(began, ended)| ended.as_ref()?.checked_sub((*began)?));
    both.sum()
}
