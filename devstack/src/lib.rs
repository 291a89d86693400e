//! Runs Postgres and Temporal on one machine: finds, downloads or builds them, starts, supervises and stops them.
//!
//! Used by `fanfare dev` and by the integration tests, so that both work on a fresh machine and reuse
//! downloads. Children do not outlive their parent: on Linux the kernel signals them when the thread that
//! started them ends, elsewhere the next start ends orphans.

mod binaries;
mod child;
mod fetch;
mod go;
mod guard;
mod npm;
mod orphans;
mod postgres;
mod python;
mod temporal;
mod temporal_server;
mod user;
pub mod versions;
mod wheel;

pub use child::{Child, Program};
pub use go::go_program;
pub use guard::Guarded;
pub use npm::npm_packages;
pub use postgres::{Postgres, PostgresOptions};
pub use python::python_packages;
pub use temporal::{Temporal, TemporalOptions};
pub use temporal_server::{Layout, TemporalServer, TemporalServerOptions};

use anyhow::Context;
use std::{
    fs::{File, TryLockError},
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
};

/// Prints a progress message to stderr; stdout is left to output that programs read.
pub(crate) fn progress(what: &str) {
    eprintln!("fanfare: {what}");
}

/// Lock of a data directory: one `fanfare` process at a time. Released on drop.
#[derive(Debug)]
pub struct Lock {
    /// Absolute path of the data directory.
    pub dir: PathBuf,
    _file: File,
}

impl Lock {
    /// Creates the directory and locks it.
    ///
    /// # Errors
    ///
    /// If it is not writable, or another process has locked it.
    pub fn take(dir: &Path) -> anyhow::Result<Self> {
        let unwritable = || format!("the data directory {} is not writable", dir.display());
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
                    "the data directory {} is in use by the fanfare process {}",
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

/// Returns free ports: each preferred port if it is free, else any.
///
/// # Errors
///
/// If no port is free.
fn ports<const N: usize>(preferred: [u16; N]) -> anyhow::Result<[u16; N]> {
    let bind = |port| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let mut found = preferred;
    // Kept open until all are found, so that no two are the same.
    let mut listeners = Vec::new();
    for port in &mut found {
        let listener = bind(*port).or_else(|_| bind(0)).context("no port is free")?;
        *port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_port_is_replaced_by_a_free_one() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let [mine, other] = ports([port, 0]).unwrap();
        assert!(mine != port && other != port && mine != other);
        drop(taken);
        assert_eq!(ports([port]).unwrap(), [port]);
    }

    #[test]
    fn a_directory_is_locked_once() {
        let dir = std::env::temp_dir().join(format!("fanfare-lock-{}", std::process::id()));
        let lock = Lock::take(&dir).unwrap();
        let sentence = Lock::take(&dir).unwrap_err().to_string();
        assert!(sentence.ends_with(&std::process::id().to_string()), "{sentence}");
        drop(lock);
        Lock::take(&dir).unwrap();
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_data_directory_below_a_file_is_an_error() {
        let file = std::env::temp_dir().join(format!("fanfare-file-{}", std::process::id()));
        std::fs::write(&file, "").unwrap();
        let sentence = Lock::take(&file.join("data")).unwrap_err().to_string();
        assert!(sentence.contains("is not writable"), "{sentence}");
        std::fs::remove_file(file).unwrap();
    }
}
