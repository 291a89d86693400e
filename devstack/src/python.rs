//! Installs packages of the Python Package Index that the tests run.

use crate::fetch::{cached, on_path, run, tool_dir};
use anyhow::Context;
use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};
use tokio::process::Command;

/// Installs the packages of a list once, and returns the directory to name in `PYTHONPATH`. A virtual environment would
/// know where it was made, which is not where it stays.
///
/// # Errors
///
/// If Python or pip is missing, or a package has no wheel for this machine.
pub async fn python_packages(name: &str, list: &Path) -> anyhow::Result<PathBuf> {
    let python = on_path("python3").context("python3 is not on PATH")?;
    let version = Command::new(&python).arg("--version").output().await.context("python3 can't be run")?;
    let mut hasher = DefaultHasher::new();
    fs::read(list).with_context(|| format!("reading the packages of {name}"))?.hash(&mut hasher);
    // Packages with compiled parts are of one version.
    version.stdout.hash(&mut hasher);
    let name = format!("{name}-{:016x}", hasher.finish());
    cached(&tool_dir()?, &name, async |half: &Path| {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"])
            .args(["--only-binary", ":all:", "--target"])
            .arg(half)
            .arg("--requirement")
            .arg(list);
        run(&format!("Downloading {name} with pip (only once)"), &mut pip).await
    })
    .await
}
