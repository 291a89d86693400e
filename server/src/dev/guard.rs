//! A program that dies when its parent does.
//!
//! A process can ask the kernel for a signal at its parent's end, and keeps that wish when it becomes
//! another program. Dropping root's rights would clear it, so that comes first.

use anyhow::Context;
use clap::Args;
use std::{os::unix::process::CommandExt, process::Command};

/// What to become, and under whose protection.
#[derive(Args, Clone, Debug)]
pub struct Guarded {
    /// The process that must be the parent
    #[arg(long)]
    parent: i32,
    /// The user to become
    #[arg(long)]
    uid: Option<u32>,
    /// The group to become
    #[arg(long)]
    gid: Option<u32>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true)]
    program: Vec<String>,
}

impl Guarded {
    /// Becomes the program. Returns only when that is not possible.
    pub fn exec(self) -> anyhow::Error {
        match self.prepare() {
            Ok(()) => {
                let failed = Command::new(&self.program[0]).args(&self.program[1..]).exec();
                anyhow::Error::new(failed).context(format!("starting {}", self.program[0]))
            }
            Err(error) => error,
        }
    }

    #[cfg(target_os = "linux")]
    fn prepare(&self) -> anyhow::Result<()> {
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
    fn prepare(&self) -> anyhow::Result<()> {
        Ok(())
    }
}
