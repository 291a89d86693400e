//! The walls between the crates, read off their manifests.
//!
//! `cargo deny` holds the walls against outside crates; this holds those inside, also where the
//! WebAssembly target that would prove the workflows' purity is not installed.

use std::{collections::BTreeSet, process::Command};

/// The direct dependencies of a crate of the workspace.
fn dependencies(of: &str) -> BTreeSet<String> {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let package = metadata["packages"].as_array().unwrap().iter().find(|package| package["name"] == of).unwrap();
    let all = package["dependencies"].as_array().unwrap().iter();
    all.filter(|dependency| dependency["kind"].is_null())
        .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
        .collect()
}

const OURS: [&str; 7] = ["domain", "store", "platforms", "workflows", "activities", "api", "server"];

fn ours(of: &str) -> Vec<&'static str> {
    let all = dependencies(of);
    OURS.into_iter().filter(|name| all.contains(*name)).collect()
}

#[test]
fn each_crate_sees_only_what_it_may() {
    assert_eq!(ours("domain"), [""; 0]);
    assert_eq!(ours("store"), ["domain"]);
    assert_eq!(ours("platforms"), ["domain"]);
    assert_eq!(ours("workflows"), ["domain"]);
    assert_eq!(ours("activities"), ["domain", "store", "platforms", "workflows"]);
    assert_eq!(ours("api"), ["domain", "store", "platforms", "workflows"]);
}

#[test]
fn workflows_reach_no_database_clock_or_network() {
    let allowed = [
        "chrono",
        "domain",
        "serde",
        "temporalio-common-wasm",
        "temporalio-macros",
        "temporalio-protos",
        "temporalio-workflow",
    ];
    let found = dependencies("workflows");
    let strangers: Vec<_> = found.iter().filter(|name| !allowed.contains(&name.as_str())).collect();
    assert!(strangers.is_empty(), "{strangers:?}");
}

#[test]
fn the_domain_performs_no_input_or_output() {
    for stranger in ["tokio", "reqwest", "sqlx", "poem", "rand", "futures"] {
        assert!(!dependencies("domain").contains(stranger), "{stranger}");
    }
}
