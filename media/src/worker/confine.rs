//! Confinement of a process that decodes.
//!
//! - Limits of memory, CPU time and time of the clock, and no new files: `setrlimit`, `alarm`.
//! - No file system and no network: landlock, as far as the kernel has it.
//! - System calls that a decoder needs and no others: seccomp. The rest fails with `EPERM`, also `open` and `socket`, so
//!   that a kernel or a container without landlock leaves no gap.
//!
//! The process has nothing else: no environment, and no descriptors but its three pipes. Systems other than Linux limit
//! resources only.

use super::Bounds;
use anyhow::Context;
use nix::{
    sys::resource::{Resource, setrlimit},
    unistd::alarm,
};
use serde::{Deserialize, Serialize};
use std::{fmt, fs::File, net::UdpSocket, process::Command};

/// Something that must not be reached, and a function that returns true if it is.
type Attempt = (&'static str, fn() -> bool);

/// How processes that decode are confined on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// True if landlock denies the file system.
    pub has_landlock: bool,
    /// True if seccomp denies system calls.
    pub has_seccomp: bool,
    /// Attempts to reach something that succeeded.
    pub reached: Vec<String>,
}

impl Confinement {
    /// Returns true if nothing that was tried could be reached, and each means is there.
    pub fn is_complete(&self) -> bool {
        self.has_landlock && self.has_seccomp && self.reached.is_empty()
    }

    /// Tries what a decoder must not reach.
    pub(super) fn tried(self) -> Self {
        let attempts: [Attempt; 5] = [
            ("a file", || File::open("/proc/self/status").is_ok()),
            ("a directory", || std::fs::read_dir("/").is_ok()),
            ("a file to write", || File::create("/tmp/fanfare-media-worker").is_ok()),
            ("the network", || UdpSocket::bind("127.0.0.1:0").is_ok()),
            ("a program", || Command::new("/bin/true").spawn().is_ok()),
        ];
        let reached = attempts.into_iter().filter(|(_, attempt)| attempt());
        Self { reached: reached.map(|(what, _)| what.to_owned()).collect(), ..self }
    }
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_there = |there| if there { "yes" } else { "no" };
        write!(
            f,
            "landlock: {}, seccomp: {}, reached: {}",
            is_there(self.has_landlock),
            is_there(self.has_seccomp),
            if self.reached.is_empty() { "nothing".to_owned() } else { self.reached.join(", ") }
        )
    }
}

/// Gives up what this process does not need, for good.
pub(super) fn confine(bounds: &Bounds) -> anyhow::Result<Confinement> {
    let limit = |resource, soft, hard| {
        setrlimit(resource, soft, hard).with_context(|| format!("limiting {resource:?}"))
    };
    alarm::set(bounds.seconds);
    system::offer()?;
    system::close_inherited()?;
    limit(Resource::RLIMIT_CORE, 0, 0)?;
    limit(Resource::RLIMIT_FSIZE, 0, 0)?;
    // At the first limit comes a signal that tells the reason.
    limit(Resource::RLIMIT_CPU, bounds.cpu_seconds, bounds.cpu_seconds + 1)?;
    let mapped = system::mapped()?;
    limit(Resource::RLIMIT_AS, mapped + bounds.memory_bytes, mapped + bounds.memory_bytes)?;
    let confinement = system::restrict()?;
    // Open descriptors stay open.
    limit(Resource::RLIMIT_NOFILE, 0, 0)?;
    Ok(confinement)
}

#[cfg(target_os = "linux")]
mod system {
    use super::Confinement;
    use anyhow::Context;
    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus, Scope,
    };
    use nix::{
        errno::Errno,
        libc,
        sys::prctl,
        unistd::{SysconfVar, close, sysconf},
    };
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
    use std::{env::consts::ARCH, fs};

    /// System calls of a thread that computes, reads from and writes to its pipes, and ends. `prlimit64` only lowers what
    /// it has.
    const CALLS: &[libc::c_long] = &[
        libc::SYS_brk,
        libc::SYS_clock_gettime,
        libc::SYS_close,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_futex,
        libc::SYS_getpid,
        libc::SYS_getrandom,
        libc::SYS_gettid,
        libc::SYS_madvise,
        libc::SYS_mmap,
        libc::SYS_mprotect,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_prlimit64,
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sched_getaffinity,
        libc::SYS_sched_yield,
        libc::SYS_sigaltstack,
        libc::SYS_tgkill,
        libc::SYS_write,
        libc::SYS_writev,
    ];

    /// Lets the kernel end this process before others when memory is short.
    pub(super) fn offer() -> anyhow::Result<()> {
        fs::write("/proc/self/oom_score_adj", "1000").context("offering to be ended when memory is short")
    }

    /// Closes what the parent, or who started that, left open for programs.
    pub(super) fn close_inherited() -> anyhow::Result<()> {
        let open = fs::read_dir("/proc/self/fd").context("what is open")?;
        let open: Vec<_> = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
        for descriptor in open.into_iter().filter(|descriptor: &i32| *descriptor > 2) {
            match close(descriptor) {
                // That of the list itself.
                Ok(()) | Err(Errno::EBADF) => {}
                Err(error) => return Err(error).context("closing what is open"),
            }
        }
        Ok(())
    }

    /// Returns the size of what is mapped: the program, most of all.
    pub(super) fn mapped() -> anyhow::Result<u64> {
        let statm = fs::read_to_string("/proc/self/statm").context("the size of this process")?;
        let pages = statm.split(' ').next().and_then(|pages| pages.parse::<u64>().ok());
        let page = sysconf(SysconfVar::PAGE_SIZE)?.context("the size of a page")?;
        Ok(pages.context("the size of this process")? * u64::try_from(page)?)
    }

    /// Denies the file system, the network, and system calls.
    pub(super) fn restrict() -> anyhow::Result<Confinement> {
        prctl::set_no_new_privs().context("giving up new privileges")?;
        // Rights that a kernel does not know yet are left out of it; the status tells.
        let abi = ABI::V6;
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(abi))?
            .handle_access(AccessNet::from_all(abi))?
            .scope(Scope::from_all(abi))?;
        let status = ruleset.create()?.restrict_self().context("landlock")?;
        let has_landlock = status.ruleset != RulesetStatus::NotEnforced;
        Ok(Confinement { has_landlock, has_seccomp: filter().is_ok(), reached: Vec::new() })
    }

    fn filter() -> anyhow::Result<()> {
        let rules = CALLS.iter().map(|call| (*call, Vec::new())).collect();
        let denied = SeccompAction::Errno(libc::EPERM.cast_unsigned());
        let filter = SeccompFilter::new(rules, denied, SeccompAction::Allow, ARCH.try_into()?)?;
        let program: BpfProgram = filter.try_into()?;
        Ok(apply_filter(&program)?)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::Confinement;

    pub(super) fn offer() -> anyhow::Result<()> {
        Ok(())
    }

    pub(super) fn close_inherited() -> anyhow::Result<()> {
        Ok(())
    }

    /// Nothing is subtracted where it can't be told what is mapped.
    pub(super) fn mapped() -> anyhow::Result<u64> {
        Ok(16 << 30)
    }

    pub(super) fn restrict() -> anyhow::Result<Confinement> {
        Ok(Confinement::default())
    }
}
