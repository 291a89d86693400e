//! Postgres and Temporal on one machine: found, fetched or built, started, watched and ended.
//!
//! `fanfare dev` and the integration tests get theirs from here, so that both work on a fresh machine
//! and keep what they fetched for the next time. Children never outlive us: on Linux the kernel ends
//! them with the thread that watches them, elsewhere the next start takes over what is left.

mod binaries;
mod child;
mod fetch;
mod guard;
mod orphans;
mod postgres;
mod temporal;
mod user;

pub use child::{Child, Spec};
pub use fetch::tool_dir;
pub use guard::Guarded;
pub use postgres::{Postgres, PostgresOptions};
pub use temporal::{Temporal, TemporalOptions};

use anyhow::Context;
use std::{
    fs::{File, TryLockError},
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
};

/// Says what takes its time. Goes to stderr, where it mixes with nothing that is read by programs.
pub fn progress(what: &str) {
    eprintln!("fanfare: {what}");
}

/// One fanfare per data directory, for as long as this lives.
#[derive(Debug)]
pub struct Lock {
    /// The data directory, absolute.
    pub dir: PathBuf,
    _file: File,
}

impl Lock {
    /// Makes the directory and takes it.
    ///
    /// # Errors
    ///
    /// One sentence, when it can't be written to or another process has it.
    pub fn take(dir: &Path) -> anyhow::Result<Self> {
        let unwritable = || format!("the data directory {} can't be written to", dir.display());
        std::fs::create_dir_all(dir).with_context(unwritable)?;
        let dir = dir.canonicalize().with_context(unwritable)?;
        let path = dir.join("lock");
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .with_context(unwritable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                file.read_to_string(&mut holder).unwrap_or_default();
                anyhow::bail!(
                    "the data directory {} is in use by the fanfare with process id {}",
                    dir.display(),
                    holder.trim()
                );
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(unwritable),
        }
        file.set_len(0).with_context(unwritable)?;
        write!(file, "{}", std::process::id()).with_context(unwritable)?;
        Ok(Self { dir, _file: file })
    }
}

/// Ports of this machine that are free now, each the preferred one where that is.
///
/// # Errors
///
/// When there are none.
fn ports<const N: usize>(preferred: [u16; N]) -> anyhow::Result<[u16; N]> {
    let bind = |port| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let mut found = preferred;
    // Held until all are found: no two may be the same.
    let mut held = Vec::new();
    for port in &mut found {
        let listener = bind(*port).or_else(|_| bind(0)).context("no port is free")?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_left_to_whoever_has_it() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let [mine, other] = ports([port, 0]).unwrap();
        assert!(mine != port && other != port && mine != other);
        drop(taken);
        assert_eq!(ports([port]).unwrap(), [port]);
    }

    #[test]
    fn a_directory_is_taken_once() {
        let dir = std::env::temp_dir().join(format!("fanfare-lock-{}", std::process::id()));
        let lock = Lock::take(&dir).unwrap();
        let sentence = Lock::take(&dir).unwrap_err().to_string();
        assert!(sentence.ends_with(&std::process::id().to_string()), "{sentence}");
        drop(lock);
        Lock::take(&dir).unwrap();
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_file_is_no_directory() {
        let file = std::env::temp_dir().join(format!("fanfare-file-{}", std::process::id()));
        std::fs::write(&file, "").unwrap();
        let sentence = Lock::take(&file.join("data")).unwrap_err().to_string();
        assert!(sentence.contains("can't be written to"), "{sentence}");
        std::fs::remove_file(file).unwrap();
    }
}
