//! Builds programs from their Go modules. The module proxy and its checksum database are those of the machine.

use crate::fetch::{cached, on_path, run, tool_dir};
use anyhow::Context;
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// Builds a program once, and returns its path. `package` is its import path, which ends with its name, and `name` is
/// its name in messages.
///
/// # Errors
///
/// If Go is missing, or the program can't be built.
pub async fn go_program(name: &str, package: &str, version: &str) -> anyhow::Result<PathBuf> {
    let go = on_path("go").with_context(|| format!("Go, which would build {name}, is not on PATH"))?;
    let program = package.rsplit('/').next().unwrap_or(package);
    let (tools, title) = (tool_dir()?, format!("{program}-{version}"));
    let what = format!("Building {name} with Go (only once, some minutes)");
    let dir = cached(&tools, &title, async |half: &Path| install(&go, &what, package, version, half).await);
    Ok(dir.await?.join(program))
}

/// Builds a program into a directory.
pub(crate) async fn install(
    go: &Path,
    what: &str,
    package: &str,
    version: &str,
    into: &Path,
) -> anyhow::Result<()> {
    let mut install = Command::new(go);
    install
        .env("GOBIN", into)
        // A cross-compiled program would be installed elsewhere and would not run here.
        .env_remove("GOOS")
        .env_remove("GOARCH")
        .arg("install")
        .arg(format!("{package}@v{version}"));
    run(what, &mut install).await
}
