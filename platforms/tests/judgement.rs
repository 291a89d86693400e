//! A simulator finds a mistake of its adapter only where it judges by itself. What both use is in these tables, with the
//! reason why it judges nothing that both judge; everything else that they come to share fails here.

use std::{collections::BTreeSet, fs, path::Path};

/// Crates that both depend on.
const CRATES: [(&str, &str); 18] = [
    ("base64", "an encoding"),
    ("bytes", "buffers"),
    ("chrono", "clocks and the notation of times"),
    ("domain", "the interface between them, see ITEMS"),
    ("egress", "the HTTP client that fetches media"),
    ("futures", "concurrency"),
    ("hex", "an encoding"),
    ("hmac", "a signature that the platform verifies"),
    ("rand", "random numbers"),
    ("regex", "an engine; the patterns are each one's own"),
    ("serde", "the notation of JSON"),
    ("serde_json", "the notation of JSON"),
    ("sha2", "digests"),
    ("tokio", "the runtime"),
    ("tokio-tungstenite", "WebSockets"),
    ("tracing", "logs"),
    ("url", "the notation of addresses; what a platform takes for a link is each one's own"),
    ("uuid", "random ids"),
];

/// Items of `domain` and `egress` that the sandbox uses.
const ITEMS: [(&str, &str); 11] = [
    ("domain::AccountProfile", "what the sandbox tells of its accounts"),
    ("domain::App", "credentials of the sandbox's apps"),
    ("domain::AppAccess", "what these apps may have"),
    ("domain::Grant", "tokens of the sandbox's accounts"),
    ("domain::Identity", "what the sandbox tells of its accounts"),
    ("domain::appearance", "how the sandbox's pages show what was published; no request is judged by it"),
    ("domain::ip_ranges", "the addresses that the sandbox may fetch from"),
    ("domain::json", "words for the types of JSON"),
    ("domain::sandbox", "the address of an organization's sandbox"),
    ("egress::filtered", "the HTTP client that fetches media"),
    ("egress::unfiltered", "the same on a developer's machine"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}

/// Returns the names of a crate's dependencies, but those of its tests.
fn dependencies(of: &str) -> BTreeSet<String> {
    let manifest = fs::read_to_string(root().join(of).join("Cargo.toml")).expect("a manifest");
    let (_, rest) = manifest.split_once("[dependencies]").expect("it has dependencies");
    let section = rest.split("\n[").next().unwrap_or_default();
    let names = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| !name.is_empty() && !name.starts_with('#')).map(str::to_owned).collect()
}

/// Returns the sources of a crate, each with its path.
fn sources(dir: &Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push((path.display().to_string(), fs::read_to_string(&path).expect("a source")));
        }
    }
    all
}

#[test]
fn simulators_and_adapters_share_no_crate_that_judges() {
    let (simulators, adapters) = (dependencies("sandbox"), dependencies("platforms"));
    let shared: Vec<_> = simulators.intersection(&adapters).map(String::as_str).collect();
    let known: Vec<_> = CRATES.iter().map(|(name, _)| *name).collect();
    assert_eq!(shared, known);
    assert!(!simulators.contains("platforms") && !adapters.contains("sandbox"));
}

#[test]
fn simulators_and_adapters_share_no_constants() {
    let mut used = BTreeSet::new();
    for (path, source) in sources(&root().join("sandbox/src")) {
        for name in ["domain", "egress"] {
            for (at, _) in source.match_indices(&format!("{name}::")) {
                let rest = &source[at + name.len() + 2..];
                // Of a group each item counts.
                let items = match rest.strip_prefix('{') {
                    Some(group) => group.split('}').next().unwrap_or_default().split(',').collect(),
                    None => vec![rest],
                };
                let word = |item: &str| {
                    let item = item.trim();
                    let end = item.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(item.len());
                    item[..end].to_owned()
                };
                let words = items.into_iter().map(word).filter(|word| !word.is_empty());
                used.extend(words.map(|word| format!("{name}::{word}")));
            }
        }
        assert!(!source.contains("platforms/src"), "{path} reads a file of the adapters");
    }
    for (path, source) in sources(&root().join("platforms/src")) {
        assert!(!source.contains("sandbox/src"), "{path} reads a file of the simulators");
    }
    let known: BTreeSet<_> = ITEMS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(used, known);
}

/// Returns the end of the argument list that a text begins with, behind its parenthesis.
fn end(rest: &str) -> usize {
    let mut depth = 1;
    let closing = rest.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '(') - i32::from(*c == ')');
        depth == 0
    });
    closing.expect("it is closed").0 + 1
}

#[test]
fn every_refusal_of_a_simulator_names_its_cause() {
    let mut nameless = Vec::new();
    // That file defines responses.
    for (path, source) in
        sources(&root().join("sandbox/src")).into_iter().filter(|(path, _)| !path.ends_with("/exchange.rs"))
    {
        for (at, name) in source.match_indices("Response::") {
            let Some((kind, rest)) = source[at + name.len()..].split_once('(') else { continue };
            if !["json", "bytes", "empty"].contains(&kind) {
                continue;
            }
            let status = rest.split([',', ')']).next().unwrap_or_default();
            let numbers: Vec<u16> =
                status.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
            let is_fine = !numbers.is_empty() && numbers.iter().all(|number| *number < 400);
            let after = rest[end(rest)..].trim_start().trim_start_matches('}').trim_start();
            if !is_fine && !after.starts_with(".because(") {
                let line = source[..at].lines().count();
                nameless.push(format!("{path}:{line}"));
            }
        }
    }
    assert!(nameless.is_empty(), "{nameless:#?}");
}
