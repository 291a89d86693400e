//! Paths, modules, crates and commands that the pages of the repository name, and `clippy.toml`, exist.
//!
//! A page says where to look and what to run; a name that was changed in the sources only sends its reader astray. A
//! name is what stands between backticks, outside of blocks of code.

use super::{
    metadata,
    source::{CRATES, Source, collect, is_word, sources, word},
};
use regex::Regex;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::LazyLock,
};
use tests::deploy::read;

/// Extensions of files that are named without their directories.
const EXTENSIONS: [&str; 10] = ["rs", "md", "sql", "toml", "mjs", "py", "css", "html", "yml", "json"];
/// Files that are named and are in no directory of the repository: written by a run, or a part of a package.
const ELSEWHERE: [&str; 3] = ["dev.json", ".fanfare/dev.json", "dist/uPlot.min.css"];
/// Keywords before the name of an item.
const ITEMS: [&str; 10] =
    ["fn", "struct", "enum", "mod", "trait", "const", "static", "type", "union", "macro_rules!"];

/// Paths and names that exist.
struct Known {
    /// Files and directories of the repository.
    paths: BTreeSet<String>,
    /// Names that each source declares.
    names: Vec<(&'static Source, BTreeSet<&'static str>)>,
    /// Names of all crates, also those of others, with underscores.
    crates: BTreeSet<String>,
    /// Names of packages and of their programs, tests, examples and benchmarks.
    targets: BTreeSet<String>,
    /// Recipes of the justfile.
    recipes: BTreeSet<String>,
    /// The program's commands.
    program: clap::Command,
}

impl Known {
    fn find() -> Self {
        let mut files = Vec::new();
        collect(Path::new(""), &mut files);
        let parents =
            files.iter().flat_map(|file| file.match_indices('/').map(move |(at, _)| file[..at].to_owned()));
        let paths = parents.collect::<BTreeSet<_>>().into_iter().chain(files.iter().cloned()).collect();
        let lock = read("Cargo.lock");
        let crates = lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        let justfile = read("justfile");
        let recipes = justfile.lines().filter(|line| line.contains(':') && !line.contains(":="));
        let recipes = recipes.filter_map(|line| line.split([' ', ':']).next());
        Self {
            paths,
            names: sources().iter().map(|source| (source, declared(&source.code))).collect(),
            crates: crates.map(|name| name.replace('-', "_")).collect(),
            targets: targets(),
            recipes: recipes.map(str::to_owned).collect(),
            program: server::command(),
        }
    }

    /// Returns what is wrong with a name; `None` if it names nothing that could be missing.
    fn fault(&self, span: &str) -> Option<String> {
        let words: Vec<_> = span.split(' ').filter(|word| !word.is_empty()).collect();
        match words[..] {
            [] => None,
            ["just", recipe, ..] => (!self.recipes.contains(recipe)).then(|| format!("no recipe {recipe}")),
            ["fanfare", ..] => self.command(&words[1..]),
            ["cargo", ..] => words.windows(2).find_map(|pair| {
                let is_target =
                    ["--test", "--example", "--bench", "--bin", "-p", "--package"].contains(&pair[0]);
                (is_target && !self.targets.contains(pair[1])).then(|| format!("no target {}", pair[1]))
            }),
            [first, ..] => alternatives(span).iter().find_map(|name| {
                if name.contains("://") {
                    None
                } else if name.contains("::") && !name.contains(' ') {
                    self.item(name.trim_start_matches("..").trim_start_matches('&'))
                } else {
                    // The words after a program's path are its arguments.
                    self.path(if words.len() > 1 { first } else { name })
                }
            }),
        }
    }

    /// Returns what is wrong with the words after the program's name.
    fn command(&self, words: &[&str]) -> Option<String> {
        let mut commands = vec![&self.program];
        for word in words.iter().map(|word| word.trim_matches(['[', ']'])) {
            let command = *commands.last()?;
            if let Some(option) = word.strip_prefix("--") {
                let option = option.split('=').next()?;
                let mut options = commands.iter().flat_map(|command| command.get_arguments());
                if !["help", "version"].contains(&option)
                    && !options.any(|known| known.get_long() == Some(option))
                {
                    return Some(format!("no option --{option} of {}", command.get_name()));
                }
            } else if let Some(inner) = command.find_subcommand(word) {
                commands.push(inner);
            } else if command.has_subcommands() && command.get_positionals().next().is_none() {
                return Some(format!("no command {word} of {}", command.get_name()));
            }
        }
        None
    }

    /// Returns what is wrong with the path of a file or directory.
    fn path(&self, path: &str) -> Option<String> {
        let is_path = |c: char| c.is_ascii_alphanumeric() || "._-@*{}/".contains(c);
        if path.starts_with('/') || !path.chars().all(is_path) || ELSEWHERE.contains(&path) {
            return None;
        }
        let path = path.trim_end_matches('/');
        let is_below = path.split_once('/').is_some_and(|(top, _)| self.paths.contains(top));
        let is_file = path.rsplit_once('.').is_some_and(|(_, end)| EXTENSIONS.contains(&end));
        if !is_below && !is_file {
            return None;
        }
        let parts: Vec<_> = path.split('/').map(pattern).collect();
        let pattern = Regex::new(&format!("^(?:.*/)?{}$", parts.join("/"))).unwrap();
        (!self.paths.iter().any(|known| pattern.is_match(known))).then(|| format!("no file {path}"))
    }

    /// Returns what is wrong with the path of an item: a crate, module or type, and what is inside it.
    fn item(&self, path: &str) -> Option<String> {
        let segments = path.split("::").map(|segment| segment.trim().trim_end_matches("()"));
        // A placeholder stands for any name.
        let segments: Vec<_> = segments.filter(|name| !name.is_empty() && !name.contains('{')).collect();
        let (home, inner) = segments.split_first()?;
        let is_ours = CRATES.contains(home);
        let is_within = |source: &Source| {
            !is_ours || source.path.strip_prefix(*home).is_some_and(|rest| rest.starts_with('/'))
        };
        let declares =
            |name: &str| self.names.iter().any(|(source, names)| is_within(source) && names.contains(name));
        let is_home = is_ours || *home == "crate" || declares(home) || self.is_module(home, |_| true);
        let is_item = is_home && inner.iter().all(|name| declares(name));
        // A test is named after its file, and an item of another crate is not ours to know.
        let is_test = inner.last().is_some_and(|name| self.is_module(home, |names| names.contains(*name)));
        let is_foreign = *home == "std" || !is_ours && self.crates.contains(*home);
        (!is_item && !is_test && !is_foreign).then(|| format!("no item {path}"))
    }

    /// Returns whether a file is a module of this name and its names fulfill a condition.
    fn is_module(&self, name: &str, holds: impl Fn(&BTreeSet<&'static str>) -> bool) -> bool {
        self.names.iter().any(|(source, names)| {
            let path = source.path.trim_end_matches(".rs").trim_end_matches("/mod");
            path.rsplit('/').next() == Some(name) && holds(names)
        })
    }
}

/// Returns the names of packages and of their programs, tests, examples and benchmarks.
fn targets() -> BTreeSet<String> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let targets = packages.iter().flat_map(|package| package["targets"].as_array().unwrap());
    packages.iter().chain(targets).map(|named| named["name"].as_str().unwrap().to_owned()).collect()
}

/// Returns the names that a source declares: of items, and of fields and variants, which begin a line.
fn declared(code: &'static str) -> BTreeSet<&'static str> {
    let mut names = BTreeSet::new();
    for keyword in ITEMS {
        for (at, _) in code.match_indices(keyword) {
            let is_keyword = at == 0 || !is_word(code.as_bytes()[at - 1]);
            if let Some(rest) = code[at + keyword.len()..].strip_prefix(' ').filter(|_| is_keyword) {
                names.insert(word(rest));
            }
        }
    }
    for line in code.lines().map(str::trim) {
        let line = ["pub(crate) ", "pub(super) ", "pub "]
            .iter()
            .find_map(|shown| line.strip_prefix(shown))
            .unwrap_or(line);
        let name = word(line);
        let rest = &line[name.len()..];
        if rest.is_empty() || [",", "(", " {", ":", " ="].iter().any(|next| rest.starts_with(next)) {
            names.insert(name);
        }
    }
    names
}

/// Returns what a name with a list in braces stands for: `a/{b,c}` for `a/b` and `a/c`.
fn alternatives(name: &str) -> Vec<String> {
    let list = name.match_indices('{').find_map(|(begin, _)| {
        let end = begin + name[begin..].find('}')?;
        let inner = &name[begin + 1..end];
        inner.contains(',').then(|| (&name[..begin], inner, &name[end + 1..]))
    });
    let Some((before, inner, after)) = list else { return vec![name.to_owned()] };
    inner.split(',').flat_map(|one| alternatives(&format!("{before}{}{after}", one.trim()))).collect()
}

/// Returns the pattern of a part of a path, in which `*` and a name in braces stand for anything.
fn pattern(part: &str) -> String {
    static ANY: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\\\{[^{}]*\\\}|\\\*").unwrap());
    ANY.replace_all(&regex::escape(part), "[^/]+").into_owned()
}

/// Returns the names on a page.
fn spans(page: &str) -> Vec<String> {
    let (mut spans, mut is_code) = (Vec::new(), false);
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if is_code {
            let command = line.trim();
            spans.extend(
                ["just ", "cargo "].iter().any(|of| command.starts_with(of)).then(|| command.to_owned()),
            );
        } else {
            spans.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    spans
}

#[test]
fn signposts_lead_somewhere() {
    let known = Known::find();
    let home = Regex::new("[Cc]rates? `([a-z_]+)`").unwrap();
    let (mut faults, mut checked) = (BTreeMap::new(), 0);
    // `rules.rs` checks the names of tests in the table of rules.
    for page in known.paths.iter().filter(|path| path.ends_with(".md") && *path != "tests/it/rules.md") {
        let text = read(page);
        for span in spans(&text) {
            checked += 1;
            faults.extend(known.fault(&span).map(|fault| (format!("{page}: `{span}`"), fault)));
        }
        for found in home.captures_iter(&text).map(|captures| captures[1].to_owned()) {
            if !CRATES.contains(&found.as_str()) && !known.crates.contains(&found) {
                faults.insert(format!("{page}: crate `{found}`"), "no crate".to_owned());
            }
        }
    }
    let item = Regex::new(r"\b[a-z_]+(?:::[A-Za-z_]+)+").unwrap();
    for found in item.find_iter(&read("clippy.toml")).map(|found| found.as_str().to_owned()) {
        checked += 1;
        faults.extend(known.item(&found).map(|fault| (format!("clippy.toml: {found}"), fault)));
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(checked > 1_000, "only {checked} names were found");
}

#[test]
fn a_name_that_leads_nowhere_is_found() {
    let known = Known::find();
    for stale in [
        "store/src/nothing.rs",
        "nothing.rs",
        "api/src/{http,nothing}",
        "store::nothing",
        "workflows::{options, nothing}",
        "just nothing",
        "fanfare nothing",
        "fanfare ops nothing",
        "fanfare dev --nothing",
        "cargo test --test nothing",
    ] {
        assert!(known.fault(stale).is_some(), "{stale}");
    }
    for right in [
        "tests/it/walls.rs",
        "walls.rs",
        "platforms/src/{id}.rs",
        "api/src/{http,openapi}",
        "store::outbox::claim",
        "workflows::{options, queue}",
        "just check",
        "fanfare ops stuck",
        "fanfare dev --help",
        "cargo test --workspace --test behavior google_business::",
        "image/png",
        "/api/v1/posts",
    ] {
        assert_eq!(known.fault(right), None, "{right}");
    }
}
