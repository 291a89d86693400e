//! The unprivileged user that owns root's cluster: Postgres refuses to run as root.

use anyhow::Context;
use nix::unistd::{User, geteuid};
use std::{
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::Path,
    process::{Command, Stdio},
};

/// A user id and group id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserIds {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl UserIds {
    /// Returns the owner of a cluster, also before it exists; `None` if this process does not run as root.
    ///
    /// # Errors
    ///
    /// If there is no unprivileged user.
    pub(crate) fn of(cluster: &Path) -> anyhow::Result<Option<Self>> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        if let Ok(known) = cluster.metadata() {
            return Ok(Some(Self { uid: known.uid(), gid: known.gid() }));
        }
        for name in ["postgres", "nobody", "daemon"] {
            if let Some(user) = User::from_name(name).context("looking up a user")? {
                return Ok(Some(Self { uid: user.uid.as_raw(), gid: user.gid.as_raw() }));
            }
        }
        anyhow::bail!("Postgres does not run as root, and there is no unprivileged user to run it as")
    }

    /// Returns true if the user passes `test {what} {file}`; permissions of parent directories count too.
    pub(crate) fn may(self, what: &str, file: &Path) -> bool {
        // An absolute path: the user may have no access to the directories of root's `PATH`.
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "test \"$1\" \"$2\"", "sh", what]).arg(file);
        shell.current_dir("/").uid(self.uid).gid(self.gid).stderr(Stdio::null());
        shell.status().is_ok_and(|status| status.success())
    }
}
