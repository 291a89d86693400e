//! No module depends on one that depends on it: a reader of a module knows which ones to read before.
//!
//! A module and those inside it are one room and may name each other. What is used through a `use` of another module,
//! such as the root of the crate, counts as used from where it is declared. A single name that a glob brought, and
//! what a macro makes, is not seen. Modules of tests are left out.

use super::source::{closed, is_word, keywords, sources, word};
use std::collections::{BTreeMap, BTreeSet};

/// Directories of modules: the roots of crates.
const ROOTS: [&str; 24] = [
    "domain/src",
    "telemetry/src",
    "store/src",
    "store/tests",
    "pictures/src",
    "media/src",
    "egress/src",
    "platforms/src",
    "sandbox/src",
    "workflows/src",
    "publishing/src",
    "model/src",
    "activities/src",
    "starter/src",
    "devstack/src",
    "api/src",
    "dashboard/src",
    "doctor/src",
    "server/src",
    "tests/src",
    "tests/it",
    "tests/proof",
    "tests/bench",
    "tests/cluster",
];

/// Keywords before the name of a type, trait or constant.
const TYPES: [&str; 7] = ["struct", "enum", "trait", "const", "static", "type", "union"];
/// Most steps from one `use` to the next.
const MOST_STEPS: usize = 8;

/// Path of a module in its crate; the root's is empty.
pub(super) type Path = Vec<String>;
/// A dependency of one module on another.
type Edge = (Path, Path);

/// A name that a `use` brings into a module; `*` for all of a module.
pub(super) struct Import {
    pub(super) path: Path,
    pub(super) name: String,
}

/// A module, with what it names.
pub(super) struct Module {
    pub(super) imports: Vec<Import>,
    pub(super) paths: Vec<Path>,
    /// Types, traits and constants that it declares.
    types: BTreeSet<String>,
    /// Functions that it declares.
    functions: BTreeSet<String>,
}

/// The modules of a crate.
pub(super) struct Modules(BTreeMap<Path, Module>);

impl Modules {
    pub(super) fn of(root: &str) -> Self {
        let sources = sources().iter().filter_map(|source| {
            let path = source.path.strip_prefix(root)?.strip_prefix('/')?.strip_suffix(".rs")?;
            let mut path: Path = path.split('/').map(str::to_owned).collect();
            path.pop_if(|last| last == "mod");
            if path == ["lib"] || path == ["main"] {
                path.clear();
            }
            Some((path, Module::of(&product(&source.code))))
        });
        Self(sources.collect())
    }

    /// Returns whether a path is a module.
    pub(super) fn contains(&self, path: &[String]) -> bool {
        self.0.contains_key(path)
    }

    /// Returns the module that declares what a path names; `None` if it is of another crate.
    fn resolve(&self, from: &[String], path: &[String], steps: usize) -> Option<Path> {
        let mut module = from.to_vec();
        let mut rest = path;
        while let [first, others @ ..] = rest {
            match first.as_str() {
                "crate" => module.clear(),
                "super" => drop(module.pop()),
                "self" => {}
                _ => break,
            }
            rest = others;
        }
        let mut is_ours = rest.len() < path.len();
        while let [first, others @ ..] = rest {
            module.push(first.clone());
            if !self.0.contains_key(&module) {
                module.pop();
                break;
            }
            (is_ours, rest) = (true, others);
        }
        let here = is_ours.then(|| module.clone());
        let Some((first, others)) = rest.split_first().filter(|_| steps < MOST_STEPS) else { return here };
        let Some(Module { imports, types, .. }) = self.0.get(&module) else { return here };
        if types.contains(first) {
            return here;
        }
        let named = imports.iter().find(|import| import.name == *first && import.path[..] != rest[..1]);
        if let Some(import) = named {
            let path = [&import.path[..], others].concat();
            return self.resolve(&module, &path, steps + 1).or(here);
        }
        for import in imports.iter().filter(|import| import.name == "*") {
            let all = self.resolve(&module, &import.path, steps + 1);
            if let Some(all) = all.filter(|all| *all != module && self.has(all, first)) {
                let path = [&["self".to_owned()][..], rest].concat();
                return self.resolve(&all, &path, steps + 1);
            }
        }
        here
    }

    /// Returns whether a module has a name.
    fn has(&self, module: &[String], name: &str) -> bool {
        let mut inner = module.to_vec();
        inner.push(name.to_owned());
        self.0.contains_key(&inner)
            || self.0.get(module).is_some_and(|module| {
                module.types.contains(name)
                    || module.functions.contains(name)
                    || module.imports.iter().any(|import| import.name == name)
            })
    }

    /// Returns which modules depend on which others, except on those around them and inside them.
    fn edges(&self) -> BTreeSet<Edge> {
        let mut edges = BTreeSet::new();
        for (from, module) in &self.0 {
            let imported = module.imports.iter().map(|import| &import.path);
            for path in imported.chain(&module.paths) {
                if let Some(to) = self.resolve(from, path, 0)
                    && !to.starts_with(from)
                    && !from.starts_with(&to)
                {
                    edges.insert((from.clone(), to));
                }
            }
        }
        edges
    }
}

impl Module {
    pub(super) fn of(code: &str) -> Self {
        let (mut imports, mut body, mut end) = (Vec::new(), String::new(), 0);
        for at in keywords(code, "use") {
            // A bound such as `use<'_>` has no space and no end.
            let Some(length) = code[at..].find(';') else { break };
            if at < end {
                continue;
            }
            expand(&code[at + "use".len()..at + length], &[], &mut imports);
            body += &code[end..at];
            end = at + length;
        }
        body += &code[end..];
        let declared = move |keyword: &'static str| {
            keywords(code, keyword).map(move |at| word(&code[at + keyword.len() + 1..]).to_owned())
        };
        let types = TYPES.into_iter().flat_map(declared).collect();
        Self { imports, paths: paths(&body), types, functions: declared("fn").collect() }
    }
}

/// Returns a source without what is compiled for its own tests only.
pub(super) fn product(code: &str) -> String {
    let (mut kept, mut rest) = (String::new(), code);
    while let Some((before, item)) = rest.split_once("#[cfg(test)]") {
        kept += before;
        // Its end is a semicolon or a closing brace, whichever comes first outside of brackets.
        let (mut at, bytes) = (0, item.as_bytes());
        while at < item.len() && bytes[at] != b';' {
            match bytes[at] {
                b'(' | b'[' => at += closed(&item[at..]),
                b'{' => {
                    at += closed(&item[at..]);
                    break;
                }
                _ => at += 1,
            }
        }
        rest = item.get(at..).unwrap_or_default();
    }
    kept + rest
}

/// Collects the names of an import: `a::{b, c::d as e}` has two.
fn expand(tree: &str, prefix: &[String], imports: &mut Vec<Import>) {
    let (head, group) = tree.find('{').map_or((tree, None), |at| (&tree[..at], Some(&tree[at..])));
    let (head, alias) = head.split_once(" as ").map_or((head, None), |(head, alias)| (head, Some(alias)));
    let names = head.split("::").map(str::trim).filter(|name| !name.is_empty());
    let mut path = prefix.to_vec();
    path.extend(names.map(str::to_owned));
    if let Some(group) = group {
        branches(group).into_iter().for_each(|branch| expand(branch, &path, imports));
        return;
    }
    if path.len() > 1 {
        path.pop_if(|last| last == "self");
    }
    let Some(last) = path.last() else { return };
    let name = alias.map_or(last.as_str(), str::trim).to_owned();
    path.pop_if(|last| last == "*");
    imports.push(Import { path, name });
}

/// Returns the branches of a group in braces.
fn branches(group: &str) -> Vec<&str> {
    let inner = &group[1..closed(group) - 1];
    let (mut branches, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                branches.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    branches.push(&inner[start..]);
    branches.retain(|branch| !branch.trim().is_empty());
    branches
}

/// Returns the paths of two and more names in a source. Those that begin in a macro's crate are left out.
fn paths(code: &str) -> Vec<Path> {
    let (mut paths, mut at) = (Vec::new(), 0);
    while at < code.len() {
        if !is_word(code.as_bytes()[at]) {
            at += 1;
            continue;
        }
        let before = code[..at].trim_end();
        let (mut path, mut is_path) = (Path::new(), false);
        loop {
            let name = word(&code[at..]);
            at += name.len();
            if !name.is_empty() {
                path.push(name.to_owned());
            }
            let Some(rest) = code[at..].trim_start().strip_prefix("::").filter(|_| !name.is_empty()) else {
                break;
            };
            is_path = true;
            at = code.len() - rest.trim_start().len();
        }
        let is_rest = before.ends_with("::") || before.ends_with('$') || before.ends_with("(in");
        if is_path && !is_rest {
            paths.push(path);
        }
    }
    paths
}

/// Returns those of the dependencies that are part of a circle.
fn circles(edges: &BTreeSet<Edge>) -> BTreeSet<Edge> {
    let mut uses = BTreeMap::<&Path, Vec<&Path>>::new();
    for (from, to) in edges {
        uses.entry(from).or_default().push(to);
    }
    let leads = |from: &Path, to: &Path| {
        let (mut seen, mut next) = (BTreeSet::from([from]), vec![from]);
        while let Some(module) = next.pop() {
            if module == to {
                return true;
            }
            for used in uses.get(module).into_iter().flatten() {
                if seen.insert(*used) {
                    next.push(*used);
                }
            }
        }
        false
    };
    edges.iter().filter(|(from, to)| leads(to, from)).cloned().collect()
}

#[test]
fn no_module_is_in_a_circle() {
    let (mut faults, mut checked) = (Vec::new(), 0);
    for root in ROOTS {
        let all = Modules::of(root).edges();
        checked += all.len();
        for (from, to) in circles(&all) {
            faults.push(format!("{root}: {} and {} are in a circle", from.join("::"), to.join("::")));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(checked > 1_500, "only {checked} dependencies were found");
}

#[test]
fn dependencies_are_found() {
    let path = |path: &str| path.split("::").map(str::to_owned).collect::<Path>();
    let code = [
        ("", "mod a; mod b; pub use b::Thing; pub use d::*; fn f() -> &'static Globbed {}"),
        ("a", "use crate::{self as root, Thing as Other}; fn f() { Other::new(); root::c::d::g(); }"),
        ("b", "#[cfg(test)] mod tests { use crate::a; } #[cfg(test)] use crate::a; fn f() {}"),
        ("c", "fn f() { d::g(); $crate::a::f() } pub(in crate::a) struct S;"),
        ("c::d", "use super::super::b::{self, Thing, more::{One, *}}; pub(crate) fn g() {}"),
        ("d", "pub struct Globbed;"),
        ("e", "use crate::Globbed;"),
    ];
    let modules = code.iter().map(|(name, code)| {
        let name = if name.is_empty() { Path::new() } else { path(name) };
        (name, Module::of(&product(code)))
    });
    let found = Modules(modules.collect()).edges();
    let expected = [("a", "b"), ("a", "c::d"), ("c::d", "b"), ("e", "d")];
    let expected: BTreeSet<Edge> = expected.iter().map(|(from, to)| (path(from), path(to))).collect();
    assert_eq!(found, expected);
    assert!(circles(&found).is_empty());
    let tied = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")];
    let tied: BTreeSet<Edge> = tied.iter().map(|(from, to)| (path(from), path(to))).collect();
    assert_eq!(circles(&tied).len(), 3);
}
