//! Programs that a test needs and a machine may lack.

use nix::unistd::geteuid;
use std::path::PathBuf;

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
