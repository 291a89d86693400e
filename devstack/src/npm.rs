//! Installs packages of npm that the tests run.

use crate::fetch::{cached, on_path, run, tool_dir};
use anyhow::Context;
use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};
use tokio::process::Command;

/// Files that determine the packages.
const MANIFEST: [&str; 2] = ["package.json", "package-lock.json"];

/// Installs the packages that are locked in `dir` once, and returns the directory that has their `node_modules`. Only
/// the `native` packages may run scripts, to compile themselves.
///
/// # Errors
///
/// If npm is missing, or a package can't be downloaded or compiled.
pub async fn npm_packages(name: &str, dir: &Path, native: &[&str]) -> anyhow::Result<PathBuf> {
    let npm = on_path("npm").context("npm is not on PATH")?;
    let mut hasher = DefaultHasher::new();
    for file in MANIFEST {
        let text = fs::read(dir.join(file)).with_context(|| format!("reading {file} of {name}"))?;
        text.hash(&mut hasher);
    }
    let name = format!("{name}-{:016x}", hasher.finish());
    cached(&tool_dir()?, &name, async |half: &Path| {
        for file in MANIFEST {
            fs::copy(dir.join(file), half.join(file)).with_context(|| format!("copying {file}"))?;
        }
        run(
            &format!("Downloading {name} with npm (only once)"),
            Command::new(&npm).args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(half),
        )
        .await?;
        if native.is_empty() {
            return Ok(());
        }
        let mut build = Command::new(&npm);
        build.arg("rebuild").args(native).current_dir(half);
        if let Some(prefix) = headers() {
            build.env("npm_config_nodedir", prefix);
        }
        run(&format!("Compiling {} (only once, up to three minutes)", native.join(", ")), &mut build).await
    })
    .await
}

/// Returns the directory below which Node's headers are installed; without it npm downloads them.
fn headers() -> Option<PathBuf> {
    let node = on_path("node")?.canonicalize().ok()?;
    let prefix = node.parent()?.parent()?;
    prefix.join("include/node/node_api.h").is_file().then(|| prefix.to_owned())
}
