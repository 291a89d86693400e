//! Programs that a test needs and a machine may lack.

use anyhow::{Context, ensure};
use nix::unistd::geteuid;
use std::{path::PathBuf, process::Command};

/// Oldest version of Node that the packages of the tests support.
const MIN_NODE: u32 = 20;

/// Returns the path of a program; `None` where it is not on `PATH`.
pub fn program(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|dir| dir.join(name)).find(|program| program.is_file())
}

/// Prints why a test did not run.
///
/// # Panics
///
/// In CI, where `.ci/run` can install packages: a check that never runs would be reported as passed.
pub fn skip(reason: &str) {
    let can_install = geteuid().is_root() && program("apt-get").is_some();
    assert!(
        std::env::var_os("CI").is_none() || !can_install,
        "{reason}: .ci/run installs what the tests need"
    );
    eprintln!("skipped: {reason}");
}

/// Checks that Node and npm are installed.
///
/// # Errors
///
/// If one of them is missing, or Node is too old.
pub fn node() -> anyhow::Result<()> {
    let version = |program: &str| -> anyhow::Result<String> {
        let output = Command::new(program).arg("--version").output().with_context(|| program.to_owned())?;
        Ok(String::from_utf8(output.stdout)?)
    };
    version("npm")?;
    let node = version("node")?;
    let major: u32 = node.trim_start_matches('v').split('.').next().unwrap_or_default().parse()?;
    ensure!(major >= MIN_NODE, "node is version {major}, and {MIN_NODE} is needed");
    Ok(())
}
