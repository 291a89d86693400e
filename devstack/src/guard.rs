//! A program that dies when its parent does.
//!
//! A process can ask the kernel for a signal at its parent's end, and keeps that wish when it becomes
//! another program. Dropping root's rights would clear it, so that comes first; see
//! <https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html>.

use anyhow::Context;
use clap::Args;
use nix::fcntl::{FcntlArg, fcntl};
use std::{
    fs::File,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

/// What to become, and under whose protection.
#[derive(Args, Clone, Debug)]
pub struct Guarded {
    /// The process that must be the parent
    #[arg(long)]
    parent: i32,
    /// The user to become
    #[arg(long, requires = "gid")]
    uid: Option<u32>,
    /// The group to become
    #[arg(long, requires = "uid")]
    gid: Option<u32>,
    /// A folder that the program reaches although its user may not pass the folders above it
    #[arg(long)]
    protected_dir: Option<PathBuf>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true)]
    program: Vec<String>,
}

impl Guarded {
    /// Becomes the program. Returns only when that is not possible.
    pub fn exec(self) -> anyhow::Error {
        let become_it = || -> anyhow::Result<anyhow::Error> {
            let args = match &self.protected_dir {
                Some(protected_dir) => through(protected_dir, &open(protected_dir)?, &self.program[1..]),
                None => self.program[1..].to_vec(),
            };
            let mut command = Command::new(&self.program[0]);
            command.args(args);
            self.protect(&mut command)?;
            let failed = command.exec();
            Ok(anyhow::Error::new(failed).context(format!("starting {}", self.program[0])))
        };
        become_it().unwrap_or_else(|error| error)
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
        prctl::set_pdeathsig(Some(Signal::SIGINT)).context("asking for a signal at the parent's end")?;
        // It may have ended before we asked.
        anyhow::ensure!(getppid().as_raw() == self.parent, "the parent is gone");
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

/// Opens the folder with the rights we still have, and gives the name by which the program finds what
/// is open. A descriptor that `fcntl` copies stays open in the program.
fn open(protected_dir: &Path) -> anyhow::Result<String> {
    let folder = File::open(protected_dir).with_context(|| format!("opening {}", protected_dir.display()))?;
    let kept = fcntl(&folder, FcntlArg::F_DUPFD(3)).context("keeping a folder open")?;
    Ok(format!("/proc/self/fd/{kept}"))
}

/// The arguments, with the open folder's name in the place of its path.
fn through(protected_dir: &Path, open: &str, args: &[String]) -> Vec<String> {
    let protected_dir = protected_dir.to_string_lossy();
    args.iter().map(|arg| arg.replace(&*protected_dir, open)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_is_named_wherever_its_path_stood() {
        let args = ["-D", "/root/a/data", "--pwfile=/root/a/password", "-c"].map(str::to_owned);
        let changed = through(Path::new("/root/a"), "/proc/self/fd/9", &args);
        assert_eq!(changed, ["-D", "/proc/self/fd/9/data", "--pwfile=/proc/self/fd/9/password", "-c"]);
    }
}
