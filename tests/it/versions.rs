//! The versions of Temporal that tests, compose file, manifests and documents name.

use devstack::versions::{TEMPORAL_CLI, TEMPORAL_SERVER, TEMPORAL_UI};
use regex::Regex;
use std::path::Path;
use tests::shared;
use tokio::process::Command;

/// Collects the paths of text files that may name an image or a module.
fn files(dir: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["target", "node_modules", ".git", ".fanfare", ".sqlx"].contains(&name.as_str()) {
                files(&path, found);
            }
        } else if ["yml", "yaml", "md", "toml", "tpl"].iter().any(|kind| name.ends_with(&format!(".{kind}")))
            || name == "Dockerfile"
            || name == "justfile"
            || path.parent().is_some_and(|parent| parent.file_name().is_some_and(|name| name == ".ci"))
        {
            found.push(path);
        }
    }
}

#[test]
fn every_file_names_the_same_version_of_temporal() {
    let mut paths = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut paths);
    let named = Regex::new(
        r"(?:temporalio/(?<image>[a-z-]+):|go\.temporal\.io/(?<module>server)(?:/[a-z/]+)?@v|temporalio/(?<cli>cli)/cmd/temporal@v)(?<version>[0-9]+\.[0-9]+\.[0-9]+)",
    )
    .unwrap();
    let mut images = 0;
    for path in paths {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for found in named.captures_iter(&text) {
            let image = found.name("image").map(|image| image.as_str());
            let expected = match image {
                Some("ui") => TEMPORAL_UI,
                // Its tag also has the version of the CLI in it, which is released on its own.
                Some("server" | "auto-setup" | "admin-tools") => TEMPORAL_SERVER,
                Some(image) => panic!("{} has the image {image}, of which no version is set", path.display()),
                None if found.name("cli").is_some() => TEMPORAL_CLI,
                None => TEMPORAL_SERVER,
            };
            assert_eq!(&found["version"], expected, "{}: {}", path.display(), &found[0]);
            images += usize::from(image.is_some());
        }
    }
    let page = include_str!("../../docs/temporal.md");
    let said = format!("CLI {TEMPORAL_CLI}, which is server {TEMPORAL_SERVER}");
    assert!(page.contains(&said), "docs/temporal.md does not say {said:?}");
    assert!(images >= 3, "only {images} images were found");
}

/// The tests run on the version that the compose file runs, wherever the CLI comes from.
#[tokio::test]
async fn the_development_server_is_the_version_of_production() {
    let program = &shared(&crate::PROGRAM).await.temporal_server.program;
    let output = Command::new(program).arg("--version").output().await.unwrap();
    let version = String::from_utf8(output.stdout).unwrap();
    let expected = format!("(Server {TEMPORAL_SERVER}, UI {TEMPORAL_UI})");
    assert!(version.trim().ends_with(&expected), "{version}: set TEMPORAL_CLI to version {TEMPORAL_CLI}");
}
