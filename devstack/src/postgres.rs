//! Runs a private Postgres cluster.
//!
//! The cluster stays in the data directory even if that is in root's home, which the unprivileged user that
//! runs Postgres can't enter: the guard opens the directory as root, and Postgres uses the descriptor's
//! path. It listens on TCP with a password, so that any client can use its URL.

use crate::{
    binaries::{self, major},
    child::{Child, Spec, guard_args},
    fetch::run,
    orphans, ports,
    user::UserIds,
};
use anyhow::Context;
use nix::sys::signal::Signal;
use std::{
    fs::{self, DirBuilder, File, Permissions},
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::process::Command;

/// Time limit for the server to start, including crash recovery.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Settings of a cluster.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// Preferred port; 0 for any free one.
    pub port: u16,
    /// Name of the superuser.
    pub superuser: &'static str,
    /// Password of the superuser.
    pub password: String,
    /// Maximum number of connections.
    pub max_connections: u16,
    /// True if committed transactions must survive a crash of the machine. A temporary cluster for tests is
    /// faster without.
    pub is_durable: bool,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            port: 0,
            superuser: "fanfare",
            password: String::new(),
            max_connections: 200,
            is_durable: true,
        }
    }
}

/// A running cluster. Stopped on drop.
#[derive(Debug)]
pub struct Postgres {
    /// TCP port on 127.0.0.1.
    pub port: u16,
    superuser: &'static str,
    password: String,
    /// The server process.
    pub child: Child,
}

impl Postgres {
    /// Starts the cluster in `dir`, which is created if it does not exist. `guard` is a program that has the
    /// `guard` command.
    ///
    /// # Errors
    ///
    /// If Postgres can't be installed or started. No process is left running.
    pub async fn start(dir: &Path, guard: &Path, options: &PostgresOptions) -> anyhow::Result<Self> {
        let cluster = Cluster::open(dir)?;
        let bin = binaries::find(cluster.version()?, cluster.ids).await.with_context(|| {
            format!("the Postgres cluster in {} can't be started", cluster.data.display())
        })?;
        cluster.take_over().await?;
        if cluster.version()?.is_none() {
            cluster.initialize(&bin, guard, options).await?;
        }
        let [port] = ports([options.port])?;
        let mut args = vec!["-D".to_owned(), text(&cluster.data)];
        let durability: &[(&str, &str)] = if options.is_durable {
            &[]
        } else {
            &[("fsync", "off"), ("full_page_writes", "off"), ("synchronous_commit", "off")]
        };
        let (port_text, connections) = (port.to_string(), options.max_connections.to_string());
        let settings = [
            ("listen_addresses", "127.0.0.1"),
            ("port", &port_text),
            // A socket's path has at most 107 bytes, and the data directory's may be longer.
            ("unix_socket_directories", ""),
            ("max_connections", &connections),
            ("shared_buffers", "128MB"),
            ("log_min_messages", "warning"),
            ("timezone", "UTC"),
        ];
        for (name, value) in settings.iter().chain(durability) {
            args.extend(["-c".to_owned(), format!("{name}={value}")]);
        }
        let child = Child::start(Spec {
            name: "postgres",
            program: bin.join("postgres"),
            args,
            env: None,
            ids: cluster.ids.map(|ids| (ids.uid, ids.gid)),
            protected_dir: cluster.protected_dir(),
            log: cluster.dir.join("postgres.log"),
            // Fast shutdown, then immediate shutdown, since a fast one can hang during recovery.
            // Neither loses data.
            stop: (Signal::SIGINT, Signal::SIGQUIT),
            guard: guard.to_owned(),
        })?;
        if let Err(error) = child.ready(START_TIMEOUT, async |pid| cluster.serves(pid, port)).await {
            child.end().await?;
            return Err(error);
        }
        Ok(Self { port, superuser: options.superuser, password: options.password.clone(), child })
    }

    /// Returns the superuser's URL of a database of the cluster.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{}:{}@127.0.0.1:{}/{database}", self.superuser, self.password, self.port)
    }
}

/// A cluster on disk.
struct Cluster {
    dir: PathBuf,
    data: PathBuf,
    ids: Option<UserIds>,
    /// True if the cluster's user has no access to the parent directories.
    is_hidden: bool,
}

impl Cluster {
    /// Creates the directory with access for the cluster's user only.
    fn open(dir: &Path) -> anyhow::Result<Self> {
        let unusable = || format!("the directory {} can't be used for a Postgres cluster", dir.display());
        fs::create_dir_all(dir).with_context(unusable)?;
        let dir = dir.canonicalize().with_context(unusable)?;
        let data = dir.join("data");
        let ids = UserIds::of(&data)?;
        if let Some(UserIds { uid, gid }) = ids {
            chown(&dir, Some(uid), Some(gid)).with_context(unusable)?;
        }
        fs::set_permissions(&dir, Permissions::from_mode(0o700)).with_context(unusable)?;
        let is_hidden = ids.is_some_and(|ids| !ids.may("-x", &dir));
        anyhow::ensure!(
            !is_hidden || Path::new("/proc/self/fd").exists(),
            "Postgres's user has no access to {}: choose another --data-dir",
            dir.display()
        );
        Ok(Self { dir, data, ids, is_hidden })
    }

    fn protected_dir(&self) -> Option<PathBuf> {
        self.is_hidden.then(|| self.dir.clone())
    }

    /// Returns the major version that created the cluster; `None` if it does not exist.
    fn version(&self) -> anyhow::Result<Option<u32>> {
        let file = self.data.join("PG_VERSION");
        if !file.exists() {
            return Ok(None);
        }
        let made = fs::read_to_string(file).context("reading the version of the Postgres cluster")?;
        let version = major(&made).with_context(|| format!("{} is not a Postgres version", made.trim()))?;
        Ok(Some(version))
    }

    async fn initialize(&self, bin: &Path, guard: &Path, options: &PostgresOptions) -> anyhow::Result<()> {
        // Created under another name, so that an interruption never leaves an incomplete cluster.
        let half = self.dir.join("data.half");
        if half.exists() {
            fs::remove_dir_all(&half).context("removing an incomplete cluster")?;
        }
        DirBuilder::new().mode(0o700).create(&half).context("creating a directory for the cluster")?;
        let secret = self.dir.join("password");
        File::options()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&secret)
            .and_then(|mut file| file.write_all(options.password.as_bytes()))
            .context("writing the password file")?;
        if let Some(UserIds { uid, gid }) = self.ids {
            for mine in [&half, &secret] {
                chown(mine, Some(uid), Some(gid)).context("giving the cluster to its user")?;
            }
        }
        let mut initdb = Command::new(guard);
        initdb
            .args(guard_args(self.ids.map(|ids| (ids.uid, ids.gid)), self.protected_dir().as_deref()))
            .arg(bin.join("initdb"))
            .args([
                "-U",
                options.superuser,
                "--auth=scram-sha-256",
                "-E",
                "UTF8",
                "--locale=C",
                "--no-instructions",
            ])
            .arg(format!("--pwfile={}", text(&secret)))
            .args(["-D", &text(&half)])
            .current_dir("/");
        let made = run("Creating a Postgres cluster (only once)", &mut initdb).await;
        fs::remove_file(&secret).context("removing the password file")?;
        made?;
        fs::rename(&half, &self.data).context("renaming the cluster's directory")
    }

    /// Stops a server that outlived its parent.
    async fn take_over(&self) -> anyhow::Result<()> {
        let Some(Status { pid, .. }) = self.status() else { return Ok(()) };
        let ours = || {
            let mut all = orphans::running().into_iter();
            let known = all.find(|one| one.pid == pid);
            known.filter(|one| one.program() == "postgres" && one.works_in(&self.data)).map(|one| one.pid)
        };
        orphans::end("Postgres", Signal::SIGINT, Signal::SIGQUIT, || ours().into_iter().collect()).await
    }

    /// Returns true if the process `pid` is ready on `port`: another server may have that port.
    fn serves(&self, pid: u32, port: u16) -> bool {
        self.status().is_some_and(|status| {
            u32::try_from(status.pid) == Ok(pid) && status.port == Some(port) && status.is_ready
        })
    }

    fn status(&self) -> Option<Status> {
        Status::parse(&fs::read_to_string(self.data.join("postmaster.pid")).ok()?)
    }
}

/// Content of `postmaster.pid`; its lines are listed in
/// <https://github.com/postgres/postgres/blob/REL_17_STABLE/src/include/utils/pidfile.h>.
#[derive(Debug, PartialEq)]
struct Status {
    pid: i32,
    port: Option<u16>,
    is_ready: bool,
}

impl Status {
    fn parse(file: &str) -> Option<Self> {
        let lines: Vec<&str> = file.lines().map(str::trim).collect();
        Some(Self {
            pid: lines.first()?.parse().ok()?,
            port: lines.get(3).and_then(|port| port.parse().ok()),
            is_ready: lines.get(7) == Some(&"ready"),
        })
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_ready_when_its_pid_file_says_so() {
        let full = "21029\n/a/data\n1795242768\n5611\n\n127.0.0.1\n 10428421     65587\nready   \n";
        let ready = Status { pid: 21029, port: Some(5611), is_ready: true };
        assert_eq!(Status::parse(full), Some(ready));
        let starting = full.replace("ready   ", "starting");
        assert_eq!(Status::parse(&starting).map(|status| status.is_ready), Some(false));
        let early = Status { pid: 21029, port: None, is_ready: false };
        assert_eq!(Status::parse("21029\n/a/data\n"), Some(early));
        assert_eq!(Status::parse(""), None);
    }
}
