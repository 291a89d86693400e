//! Rules about the sources: which crate and module may use which, how long a part may be, and that pages name what
//! exists.
//!
//! `cargo deny` enforces the rules for external crates. This enforces those between our crates, also where
//! the WebAssembly target that would prove the workflows' purity is not installed.

mod circles;
mod pages;
mod proof;
mod signposts;
mod sizes;
mod source;

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

/// Returns what cargo tells of the workspace.
fn metadata() -> serde_json::Value {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    serde_json::from_slice(&metadata.stdout).unwrap()
}

/// Returns the direct dependencies of a crate of the workspace.
fn dependencies(of: &str) -> BTreeSet<String> {
    let metadata = metadata();
    let package = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .find(|package| package["name"] == format!("fanfare-{of}"))
        .unwrap();
    let all = package["dependencies"].as_array().unwrap().iter();
    all.filter(|dependency| dependency["kind"].is_null())
        .map(|dependency| dependency["name"].as_str().unwrap().trim_start_matches("fanfare-").to_owned())
        .collect()
}

const OURS: [&str; 17] = [
    "domain",
    "telemetry",
    "store",
    "pictures",
    "media",
    "egress",
    "platforms",
    "sandbox",
    "workflows",
    "publishing",
    "activities",
    "starter",
    "devstack",
    "api",
    "dashboard",
    "doctor",
    "server",
];

fn ours(of: &str) -> Vec<&'static str> {
    let all = dependencies(of);
    OURS.into_iter().filter(|name| all.contains(*name)).collect()
}

#[test]
fn each_crate_depends_only_on_allowed_crates() {
    assert_eq!(ours("domain"), [""; 0]);
    assert_eq!(ours("telemetry"), [""; 0]);
    assert_eq!(ours("store"), ["domain"]);
    assert_eq!(ours("pictures"), ["domain"]);
    assert_eq!(ours("media"), ["domain", "pictures"]);
    assert_eq!(ours("egress"), ["domain"]);
    assert_eq!(ours("platforms"), ["domain", "telemetry", "egress"]);
    // A sandbox that shared code with the adapters could not find their mistakes.
    assert_eq!(ours("sandbox"), ["domain", "egress"]);
    assert_eq!(ours("workflows"), ["domain"]);
    // The publishing engine does not depend on Temporal.
    assert_eq!(ours("publishing"), ["domain", "telemetry", "store", "media", "platforms"]);
    assert_eq!(
        ours("activities"),
        ["domain", "telemetry", "store", "media", "egress", "platforms", "workflows", "publishing"]
    );
    // It compares the platforms with the sandbox, so it knows both.
    assert_eq!(ours("doctor"), ["domain", "egress", "platforms", "sandbox"]);
    assert_eq!(ours("devstack"), [""; 0]);
    // It explores the decisions that the product makes.
    assert_eq!(ours("model"), ["domain"]);
    assert_eq!(ours("starter"), ["domain", "telemetry", "store", "platforms", "workflows"]);
    assert_eq!(ours("api"), ["domain", "telemetry", "store", "media", "platforms", "workflows", "starter"]);
    // Its pages call the functions of the API's operations; the API knows no page.
    assert_eq!(ours("dashboard"), ["domain", "store", "media", "platforms", "workflows", "api"]);
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
        "tracing",
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

/// A header that can't be read must not count as absent, so one module reads them.
#[test]
fn one_module_reads_the_headers_of_requests() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let reader = std::fs::read_to_string(root.join("api/src/http/headers.rs")).unwrap();
    let all = [sources(&root.join("api/src")), sources(&root.join("dashboard/src"))].concat();
    let mut checked = 0;
    for source in all.into_iter().filter(|source| *source != reader) {
        checked += 1;
        // Tests read the headers of responses.
        let code = source.split("#[cfg(test)]").next().unwrap();
        for way in
            [".to_str()", "headers().get", "headers.get", "typed_get", "request.header(", "param::Header"]
        {
            assert!(!code.contains(way), "{way} in {}", code.lines().next().unwrap());
        }
    }
    assert!(checked > 100, "{checked}");
}

fn sources(dir: &std::path::Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push(std::fs::read_to_string(path).unwrap());
        }
    }
    all
}

/// A target that is canceled says why: the one function takes the reason, and so does the end of an attempt.
#[test]
fn one_statement_cancels_targets() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let all: String = sources(&root.join("store/src")).concat();
    let times = |statement: &str| all.matches(statement).count();
    assert_eq!((times("then 'canceled'"), times("set status = 'canceled'")), (1, 0));
}

/// A reader who looks for a table finds its folder by the header.
#[test]
fn each_table_is_named_by_the_header_of_one_folder_of_the_store() {
    let store = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../store");
    let schema: String = std::fs::read_dir(store.join("migrations"))
        .unwrap()
        .flatten()
        .fold(String::new(), |all, file| all + &std::fs::read_to_string(file.path()).unwrap());
    let tables: BTreeSet<_> = schema
        .lines()
        .filter_map(|line| {
            line.strip_prefix("create ")?.trim_start_matches("unlogged ").strip_prefix("table ")
        })
        .map(|rest| rest.split([' ', '(']).next().unwrap().to_owned())
        .collect();
    assert!(tables.len() > 30, "{tables:?}");
    let mut named = BTreeMap::<_, Vec<_>>::new();
    for (module, source) in modules(&store.join("src"), "") {
        let header = source.lines().map_while(|line| line.strip_prefix("//!"));
        let list = header.skip_while(|line| !line.starts_with(" Table")).collect::<Vec<_>>().concat();
        for table in list.split('`').skip(1).step_by(2) {
            named.entry(table.to_owned()).or_default().push(module.clone());
        }
    }
    let twice: Vec<_> = named.iter().filter(|(_, modules)| modules.len() > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    assert_eq!(named.into_keys().collect::<BTreeSet<_>>(), tables);
}

/// The modules of `api`, from the bottom up. A module may import its own and those above it in this list.
const API_LAYERS: [&str; 33] = [
    "icons",
    "types::scalar",
    "types::enum_string",
    "http::request_id",
    "http::problem",
    "types",
    "openapi",
    "http::rate_limits",
    "plans",
    "connect::oauth_state",
    "seal",
    "operator_token",
    "app",
    "http",
    "keys",
    "team",
    "audit",
    "usage",
    "requests",
    "webhooks",
    "events",
    "media",
    "accounts",
    "slots",
    "posts",
    "profiles",
    "connect",
    "branding",
    "networks",
    "connect::begin",
    "client_tokens",
    "operations",
    "mcp",
];

#[test]
fn api_modules_import_only_lower_layers() {
    // These connect all layers.
    let exempt = ["lib", "router"];
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/src");
    let (mut upwards, mut checked) = (Vec::new(), 0);
    for (module, source) in modules(&root, "") {
        if exempt.contains(&module.as_str()) {
            continue;
        }
        let product = source.split("#[cfg(test)]").next().unwrap_or_default();
        let code: String = product.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let mut imports = Vec::new();
        for (at, found) in code.match_indices("crate::") {
            if !code[..at].ends_with('$') {
                expand(&code[at + found.len()..], "", &mut imports);
            }
        }
        let own = layer(&module).unwrap_or_else(|| panic!("{module} is not in API_LAYERS"));
        checked += imports.len();
        upwards.extend(
            imports
                .iter()
                .filter(|import| layer(import).is_none_or(|layer| layer > own))
                .map(|import| format!("{module} imports {import}")),
        );
    }
    assert!(checked > 300, "only {checked} imports were found");
    assert!(upwards.is_empty(), "{upwards:#?}");
}

/// Returns the index of the longest entry that a path begins with.
fn layer(path: &str) -> Option<usize> {
    let holds =
        |entry: &str| path.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    let entries = API_LAYERS.iter().enumerate().filter(|(_, entry)| holds(entry));
    entries.max_by_key(|(_, entry)| entry.len()).map(|(index, _)| index)
}

/// Collects the paths of an import: `a::{b, c::d}` has two.
fn expand(tree: &str, prefix: &str, paths: &mut Vec<String>) {
    let end = tree.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(tree.len());
    let (head, rest) = tree.split_at(end);
    let path = format!("{prefix}{head}");
    let Some(branches) = rest.strip_prefix('{') else { return paths.push(path) };
    let (mut depth, mut start) = (0, 0);
    for (at, c) in branches.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                let branch = branches[start..at].trim();
                if !branch.is_empty() {
                    expand(branch, &path, paths);
                }
                start = at + 1;
                if c == '}' {
                    return;
                }
            }
            _ => {}
        }
    }
}

/// Returns all modules below a directory, each with its path and source.
pub(crate) fn modules(dir: &std::path::Path, prefix: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            all.extend(modules(&path, &format!("{prefix}{name}::")));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let module = if name == "mod" {
                prefix.trim_end_matches("::").to_owned()
            } else {
                prefix.to_owned() + &name
            };
            all.push((module, std::fs::read_to_string(&path).unwrap()));
        }
    }
    all
}

/// Modules of `store` on what the bound of a key limits.
const BOUNDED: [&str; 17] = [
    "accounts",
    "analytics",
    "disconnect",
    "duplicates",
    "edit",
    "events",
    "imports",
    "limits",
    "media",
    "metrics",
    "overview",
    "posts",
    "profiles",
    "publishing",
    "revive",
    "slots",
    "timeline",
];

/// Functions of these modules that take an owner alone and that the API calls, and why they may.
const WITHOUT_BOUND: [(&str, &str); 6] = [
    ("accounts::connected_ids", "the token of a pending login shows whether what it offers is connected"),
    ("media::begin_upload", "a signed address or a session admits to the asset"),
    ("media::create", "a new asset has the bound of its caller"),
    ("media::refuse_upload", "it ends the upload that was admitted"),
    (
        "profiles::blocks",
        "the settings of accounts that the caller named, which are resolved within its bound",
    ),
    ("profiles::create", "its accounts are checked before, and its tenant is the bound's"),
];

/// Modules of the API and the dashboard that give access to all data of an organization without a key of the whole
/// organization, and why.
const UNBOUNDED: [(&str, &str, &str); 8] = [
    ("accounts::pending", "Call::new(", "the token of a pending login authorizes the selection"),
    ("accounts::pending", "unbounded(", "the token of a login that was finished shows what it connected"),
    ("connect::begin", "Call::new(", "a sealed state authorizes the login"),
    ("connect::callback", "Call::new(", "a sealed state authorizes the login"),
    ("dashboard::context", "Call::new(", "a limited key opens no session"),
    ("dashboard::people::openid", "Call::new(", "the call concerns no organization"),
    ("keys", "unbounded(", "takes a key of the whole organization, which may create keys for the other mode"),
    ("media::content", "unbounded(", "a signed address or a session admits to the asset"),
];

#[test]
fn the_api_reaches_what_a_bound_limits_through_the_bound() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut takes_owner = BTreeSet::new();
    for (path, source) in modules(&root.join("store/src"), "") {
        let module = path.rsplit("::").next().unwrap();
        for signature in source.split("pub async fn ").skip(1).filter(|_| BOUNDED.contains(&module)) {
            let (name, rest) = signature.split_once('(').unwrap();
            let arguments = rest.split_once(')').unwrap().0;
            if arguments.contains("owner: Owner") {
                takes_owner.insert(format!("{module}::{name}"));
            }
        }
    }
    let (mut called, mut opened) = (BTreeSet::new(), BTreeSet::new());
    let dashboard = modules(&root.join("dashboard/src"), "dashboard::");
    for (module, source) in modules(&root.join("api/src"), "").into_iter().chain(dashboard) {
        for what in ["Call::new(", "unbounded(", "Bound::ORGANIZATION"] {
            if source.contains(what) && (module.as_str(), what) != ("http::caller", "Bound::ORGANIZATION") {
                opened.insert((module.clone(), what));
            }
        }
        let words: Vec<_> = source.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let alias = |name: &str| {
            let named = words.windows(3).enumerate().find(|(_, three)| three[1] == "as" && three[2] == name);
            named.map(|(at, three)| if three[0] == "self" { words[at - 1] } else { three[0] })
        };
        for part in source.split("::").collect::<Vec<_>>().windows(2) {
            let before = part[0].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
            let Some((function, _)) = part[1].split_once('(') else { continue };
            let before = alias(before).unwrap_or(before);
            let call = format!("{before}::{function}");
            if takes_owner.contains(&call) {
                called.insert(call);
            }
        }
    }
    assert!(takes_owner.len() > 20, "only {takes_owner:?} were found");
    let allowed: Vec<_> = WITHOUT_BOUND.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(called.into_iter().collect::<Vec<_>>(), allowed);
    let allowed: Vec<_> = UNBOUNDED.iter().map(|(module, what, _)| ((*module).to_owned(), *what)).collect();
    assert_eq!(opened.into_iter().collect::<Vec<_>>(), allowed);
}
