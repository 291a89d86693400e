//! Programs that are not on the machine: fetched or built once, kept for the next time.
//!
//! The folder is shared by all data directories and by the tests, and several processes may want the
//! same program at once: one makes it, the others wait, and none ever sees a half-made one.

use crate::progress;
use anyhow::Context;
use std::{
    fs::{self, File},
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::process::Command;

/// How often a log is told that something still goes on.
const STILL: u64 = 30;

/// Where fetched and built programs are kept: `FANFARE_TOOLS`, else the user's cache.
///
/// # Errors
///
/// When there is no place to keep them.
pub fn tool_dir() -> anyhow::Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let dir = set("FANFARE_TOOLS")
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("fanfare")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/fanfare")))
        .context("set FANFARE_TOOLS to a folder for fetched programs")?;
    fs::create_dir_all(&dir).with_context(|| format!("{} can't be made", dir.display()))?;
    dir.canonicalize().with_context(|| format!("{} can't be read", dir.display()))
}

/// Gives `tool_dir/name` after making it, unless it is there.
///
/// # Errors
///
/// When it can't be made.
pub(crate) async fn kept(
    tool_dir: &Path,
    name: &str,
    make: impl AsyncFnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<PathBuf> {
    let path = tool_dir.join(name);
    if path.exists() {
        return Ok(path);
    }
    let _lock = alone(tool_dir, name).await?;
    if path.exists() {
        return Ok(path);
    }
    // A process that was killed in the middle may have children that still write: never into ours.
    let half_made = format!("{name}.half-");
    for entry in fs::read_dir(tool_dir).context("reading the folder of fetched programs")?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&half_made) {
            fs::remove_dir_all(entry.path()).context("clearing a half-made program")?;
        }
    }
    let half = tool_dir.join(format!("{half_made}{}", std::process::id()));
    fs::create_dir_all(&half).context("the folder of fetched programs can't be written to")?;
    make(&half).await?;
    fs::rename(&half, &path).context("keeping a fetched program")?;
    Ok(path)
}

/// Waits until nobody else makes this program, and keeps others from it while the file lives.
async fn alone(tool_dir: &Path, name: &str) -> anyhow::Result<File> {
    let lock = File::create(tool_dir.join(format!("{name}.lock")))
        .context("the folder of fetched programs can't be written to")?;
    let mut told = false;
    while let Err(error) = lock.try_lock() {
        if let fs::TryLockError::Error(error) = error {
            return Err(error).context("locking the folder of fetched programs");
        }
        if !std::mem::replace(&mut told, true) {
            progress(&format!("Waiting for another process that fetches {name}"));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(lock)
}

/// Runs a program to its end, telling how long it takes; of its output the last line is told, and only
/// when it fails. Ends it when nobody waits any more.
///
/// # Errors
///
/// One sentence.
pub(crate) async fn run(what: &str, command: &mut Command) -> anyhow::Result<()> {
    let terminal = std::io::stderr().is_terminal();
    if !terminal {
        progress(&format!("{what} …"));
    }
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let began = Instant::now();
    let mut output = std::pin::pin!(command.stdin(Stdio::null()).kill_on_drop(true).output());
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    let output = loop {
        tokio::select! {
            output = &mut output => break output,
            _ = tick.tick() => still(what, began.elapsed().as_secs(), terminal),
        }
    };
    if terminal {
        line_over("");
    }
    let output = output.with_context(|| format!("{program} can't be run"))?;
    if !output.status.success() {
        anyhow::bail!("{program} failed ({}): {}", output.status, reason(&output.stderr));
    }
    progress(&format!("{what} … done in {} s", began.elapsed().as_secs()));
    Ok(())
}

fn still(what: &str, seconds: u64, terminal: bool) {
    if terminal {
        line_over(&format!("fanfare: {what} … {seconds} s"));
    } else if seconds > 0 && seconds.is_multiple_of(STILL) {
        progress(&format!("{what} … {seconds} s"));
    }
}

/// Writes over the terminal's last line.
fn line_over(text: &str) {
    let mut terminal = std::io::stderr().lock();
    // Who can't be told can be served all the same.
    let _told = write!(terminal, "\r\x1b[2K{text}").and_then(|()| terminal.flush());
}

/// The last thing that a program said.
pub(crate) fn reason(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let last = text.lines().map(str::trim).rev().find(|line| !line.is_empty());
    last.unwrap_or("it says nothing").to_owned()
}

/// A program on `PATH`.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn folder(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("fanfare-fetch-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[tokio::test]
    async fn two_at_once_make_it_once() {
        let tool_dir = folder("once");
        let made = Cell::new(0);
        let make = async |half: &Path| {
            made.set(made.get() + 1);
            tokio::task::yield_now().await;
            fs::write(half.join("program"), "it")?;
            Ok(())
        };
        let (one, other) = tokio::join!(kept(&tool_dir, "it", &make), kept(&tool_dir, "it", &make));
        assert_eq!(one.unwrap(), other.unwrap());
        assert_eq!(made.get(), 1);
        assert_eq!(fs::read_to_string(tool_dir.join("it/program")).unwrap(), "it");
        fs::remove_dir_all(tool_dir).unwrap();
    }

    #[tokio::test]
    async fn a_half_made_one_is_never_used() {
        let tool_dir = folder("half");
        let stale = tool_dir.join("it.half-1");
        fs::create_dir_all(&stale).unwrap();
        let failed = kept(&tool_dir, "it", async |half: &Path| {
            fs::write(half.join("program"), "ha")?;
            anyhow::bail!("the line is dead")
        });
        assert!(failed.await.is_err());
        assert!(!tool_dir.join("it").exists() && !stale.exists());
        let made = kept(&tool_dir, "it", async |half: &Path| {
            anyhow::ensure!(fs::read_dir(half)?.next().is_none(), "something was left");
            Ok(())
        });
        made.await.unwrap();
        fs::remove_dir_all(tool_dir).unwrap();
    }

    #[tokio::test]
    async fn a_program_that_fails_is_quoted() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo first >&2; echo 'no such package' >&2; echo >&2; exit 3"]);
        let error = run("Trying", &mut command).await.unwrap_err().to_string();
        assert!(error.contains("no such package") && !error.contains("first"), "{error}");
    }
}
