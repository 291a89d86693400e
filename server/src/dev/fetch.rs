//! Programs that are not on the machine: fetched or built once, kept for the next time.

use super::progress;
use anyhow::Context;
use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

/// Where fetched and built programs are kept: `FANFARE_TOOLS`, else the user's cache.
///
/// # Errors
///
/// When there is no place to keep them.
pub fn tools() -> anyhow::Result<PathBuf> {
    let dir = match (
        std::env::var_os("FANFARE_TOOLS"),
        std::env::var_os("XDG_CACHE_HOME"),
        std::env::var_os("HOME"),
    ) {
        (Some(dir), _, _) => PathBuf::from(dir),
        (None, Some(cache), _) => Path::new(&cache).join("fanfare"),
        (None, None, Some(home)) => Path::new(&home).join(".cache/fanfare"),
        (None, None, None) => anyhow::bail!("set FANFARE_TOOLS to a directory for fetched programs"),
    };
    std::fs::create_dir_all(&dir).with_context(|| format!("{} can't be made", dir.display()))?;
    dir.canonicalize().with_context(|| format!("{} can't be read", dir.display()))
}

/// Gives `tools/name` after making it, unless it is there. Two processes never make it at once, and a
/// half-made one is never used: it is made under another name.
pub(super) fn kept(name: &str, make: impl FnOnce(&Path) -> anyhow::Result<()>) -> anyhow::Result<PathBuf> {
    let tools = tools()?;
    let path = tools.join(name);
    if path.exists() {
        return Ok(path);
    }
    let lock = File::create(tools.join(format!("{name}.lock")))
        .context("the tools directory can't be written to")?;
    if lock.try_lock().is_err() {
        progress(&format!("Waiting for another process that fetches {name}"));
        lock.lock().context("waiting for another process")?;
    }
    if path.exists() {
        return Ok(path);
    }
    let half = tools.join(format!("{name}.half"));
    if half.exists() {
        std::fs::remove_dir_all(&half)
            .or_else(|_| std::fs::remove_file(&half))
            .context("clearing a half-made tool")?;
    }
    make(&half)?;
    std::fs::rename(&half, &path).context("keeping a fetched tool")?;
    Ok(path)
}

/// Runs a program to its end, telling how long it takes; its output is told only when it fails.
pub(super) fn run(what: &str, command: &mut Command) -> anyhow::Result<()> {
    progress(what);
    let began = Instant::now();
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{program} can't be run"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message");
        anyhow::bail!("{program} failed ({}): {last}", output.status);
    }
    progress(&format!("… done in {} s", began.elapsed().as_secs()));
    Ok(())
}

/// A program on `PATH`.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(|file| file.is_file())
}
