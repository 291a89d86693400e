//! The unprivileged user that root's cluster belongs to: Postgres refuses to run as root.

use anyhow::Context;
use nix::unistd::{User, geteuid};
use std::{
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::Path,
    process::{Command, Stdio},
};

/// A user and his group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserIds {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl UserIds {
    /// Whose a cluster is, or will be; `None` when it is ours because we are not root.
    ///
    /// # Errors
    ///
    /// When there is nobody it could belong to.
    pub(crate) fn of(cluster: &Path) -> anyhow::Result<Option<Self>> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        if let Ok(known) = cluster.metadata() {
            return Ok(Some(Self { uid: known.uid(), gid: known.gid() }));
        }
        for name in ["postgres", "nobody", "daemon"] {
            if let Some(user) = User::from_name(name).context("looking users up")? {
                return Ok(Some(Self { uid: user.uid.as_raw(), gid: user.gid.as_raw() }));
            }
        }
        anyhow::bail!("Postgres does not run as root, and there is no unprivileged user to run it as")
    }

    /// Whether he may do this, an option of `test`, with a file; the folders above it count too.
    pub(crate) fn may(self, what: &str, file: &Path) -> bool {
        // By its path: he may be kept from the folders of root's `PATH`.
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "test \"$1\" \"$2\"", "sh", what]).arg(file);
        shell.current_dir("/").uid(self.uid).gid(self.gid).stderr(Stdio::null());
        shell.status().is_ok_and(|status| status.success())
    }
}
