//! Runs a program that dies when its parent does.
//!
//! A process can request a signal for its parent's death, which survives `exec`. Changing the user clears it,
//! so that comes first; see <https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html>.

use anyhow::Context;
use clap::Args;
use nix::fcntl::{FcntlArg, fcntl};
use std::{
    fs::File,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

/// Arguments of the `guard` command.
#[derive(Args, Clone, Debug)]
pub struct Guarded {
    /// Process id that the parent must have
    #[arg(long)]
    parent: i32,
    /// User id to run as
    #[arg(long, requires = "gid")]
    uid: Option<u32>,
    /// Group id to run as
    #[arg(long, requires = "uid")]
    gid: Option<u32>,
    /// Directory to open before changing the user, who may have no access to its parents
    #[arg(long)]
    protected_dir: Option<PathBuf>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true)]
    program: Vec<String>,
}

impl Guarded {
    /// Replaces this process with the program. Returns only on failure.
    pub fn exec(self) -> anyhow::Error {
        let try_exec = || -> anyhow::Result<anyhow::Error> {
            let args = match &self.protected_dir {
                Some(protected_dir) => replace_path(protected_dir, &open(protected_dir)?, &self.program[1..]),
                None => self.program[1..].to_vec(),
            };
            let mut command = Command::new(&self.program[0]);
            command.args(args);
            self.protect(&mut command)?;
            let failed = command.exec();
            Ok(anyhow::Error::new(failed).context(format!("starting {}", self.program[0])))
        };
        try_exec().unwrap_or_else(|error| error)
    }

    #[cfg(target_os = "linux")]
    fn protect(&self, _: &mut Command) -> anyhow::Result<()> {
        use nix::{
            sys::{prctl, signal::Signal},
            unistd::{Gid, Uid, getppid, setgid, setgroups, setuid},
        };
        if let (Some(uid), Some(gid)) = (self.uid, self.gid) {
            setgroups(&[]).context("dropping groups")?;
            setgid(Gid::from_raw(gid)).context("changing the group")?;
            setuid(Uid::from_raw(uid)).context("changing the user")?;
        }
        prctl::set_pdeathsig(Some(Signal::SIGINT)).context("requesting a signal for the parent's death")?;
        // The parent may have died before the request.
        anyhow::ensure!(getppid().as_raw() == self.parent, "the parent has died");
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn protect(&self, command: &mut Command) -> anyhow::Result<()> {
        if let (Some(uid), Some(gid)) = (self.uid, self.gid) {
            command.uid(uid).gid(gid);
        }
        Ok(())
    }
}

/// Opens the directory before privileges are dropped, and returns the path of the descriptor. A descriptor
/// that `fcntl` duplicates stays open across `exec`.
fn open(protected_dir: &Path) -> anyhow::Result<String> {
    let dir = File::open(protected_dir).with_context(|| format!("opening {}", protected_dir.display()))?;
    let descriptor = fcntl(&dir, FcntlArg::F_DUPFD(3)).context("keeping a directory open")?;
    Ok(format!("/proc/self/fd/{descriptor}"))
}

/// Replaces the directory's path in the arguments by the descriptor's.
fn replace_path(protected_dir: &Path, open: &str, args: &[String]) -> Vec<String> {
    let protected_dir = protected_dir.to_string_lossy();
    args.iter().map(|arg| arg.replace(&*protected_dir, open)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protected_path_is_replaced_in_every_argument() {
        let args = ["-D", "/root/a/data", "--pwfile=/root/a/password", "-c"].map(str::to_owned);
        let changed = replace_path(Path::new("/root/a"), "/proc/self/fd/9", &args);
        assert_eq!(changed, ["-D", "/proc/self/fd/9/data", "--pwfile=/proc/self/fd/9/password", "-c"]);
    }
}
