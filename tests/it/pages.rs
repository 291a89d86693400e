//! The pages that operators copy commands from: a test runs each block of commands, or a table says why none can.

use regex::Regex;
use std::{collections::BTreeSet, path::PathBuf};
use tests::deploy::read;

/// The pages.
const PAGES: [&str; 4] = ["backup.md", "upgrade.md", "operations.md", "deployment.md"];

/// Blocks that are run: page, words after the fence, and the test.
const RUN: [(&str, &str, &str); 9] = [
    ("backup.md", "sh backup", "backup::a_service_is_restored_by_the_commands_of_the_page"),
    ("backup.md", "sh restore", "backup::a_service_is_restored_by_the_commands_of_the_page"),
    ("upgrade.md", "sh migrate", "backup::a_service_is_restored_by_the_commands_of_the_page"),
    ("upgrade.md", "sh worker", "backup::a_service_is_restored_by_the_commands_of_the_page"),
    ("upgrade.md", "sh api", "backup::a_service_is_restored_by_the_commands_of_the_page"),
    (
        "operations.md",
        "sh setup",
        "operations::every_command_of_the_page_runs_as_written_where_its_symptom_is",
    ),
    ("operations.md", "sh", "operations::every_command_of_the_page_runs_as_written_where_its_symptom_is"),
    ("deployment.md", "sh roles", "backup::a_service_is_restored_by_the_commands_of_the_page"),
    ("deployment.md", "sh secrets", "deploy::the_templates_of_the_secrets_are_copied_for_their_owner_only"),
];
/// Blocks that are not run: page, words after the fence, and why.
const NOT_RUN: [(&str, &str, &str); 2] = [
    ("deployment.md", "sh kubernetes", "needs a cluster; `.ci/manifests` checks the objects"),
    ("deployment.md", "sh systemd", "needs root and systemd as the first process; the units are verified"),
];
/// Languages of fenced blocks that have no commands.
const DATA: [&str; 4] = ["json", "yaml", "ini", "text"];

/// Further pages whose sentences name commands.
const TEXTS: [&str; 7] = [
    "configuration.md",
    "dashboard.md",
    "observability.md",
    "sandbox.md",
    "scaling.md",
    "security.md",
    "temporal.md",
];

/// A block of a page.
pub(crate) struct Block {
    /// Heading of its section.
    pub(crate) section: String,
    /// Words after the fence.
    pub(crate) fence: String,
    /// Its lines, without the indentation of a list.
    pub(crate) code: String,
}

/// Returns the blocks of a page, in order.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let text = read(&format!("docs/{page}"));
    let (mut blocks, mut section, mut open) = (Vec::new(), String::new(), None::<(usize, Block)>);
    for line in text.lines() {
        let trimmed = line.trim_start();
        match (trimmed.strip_prefix("```"), open.take()) {
            (Some(fence), None) => {
                let block = Block { section: section.clone(), fence: fence.to_owned(), code: String::new() };
                open = Some((line.len() - trimmed.len(), block));
            }
            (Some(end), Some((_, block))) => {
                assert_eq!(end, "", "{page}: a block in a block of {section}");
                blocks.push(block);
            }
            (None, Some((indent, mut block))) => {
                block.code += line.get(indent..).unwrap_or_default();
                block.code += "\n";
                open = Some((indent, block));
            }
            (None, None) => {
                if let Some(heading) = line.strip_prefix("## ") {
                    heading.clone_into(&mut section);
                }
            }
        }
    }
    assert!(open.is_none(), "{page}: a block has no end");
    blocks
}

/// Returns the commands of a page's blocks with these words after the fence.
pub(crate) fn commands(page: &str, fence: &str) -> String {
    let found: String =
        blocks(page).into_iter().filter(|block| block.fence == fence).map(|block| block.code).collect();
    assert!(!found.is_empty(), "{page} has no block {fence}");
    found
}

/// Returns a page without its code, in which brackets are no links and a number sign begins no heading.
pub(crate) fn plain(page: &str) -> String {
    let code = Regex::new(r"(?ms)^ *```.*?^ *```$|`[^`\n]*`").unwrap();
    code.replace_all(page, "").into_owned()
}

/// Returns the anchors of a page's headings, as a browser of the repository makes them.
pub(crate) fn anchors(page: &str) -> BTreeSet<String> {
    let fenced = Regex::new(r"(?ms)^ *```.*?^ *```$").unwrap();
    let link = Regex::new(r"\[([^\]]*)\]\([^)]*\)").unwrap();
    let mut anchors = BTreeSet::new();
    let page = fenced.replace_all(page, "");
    for heading in page.lines().filter(|line| line.starts_with('#')) {
        let heading = link.replace_all(heading.trim_start_matches('#').trim(), "$1").to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor = kept.collect::<String>().replace(' ', "-");
        let again = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone()).chain(again).find(|anchor| !anchors.contains(anchor));
        anchors.extend(free);
    }
    anchors
}

/// Returns the directory of `pg_dump`, if Postgres's client programs are installed.
pub(crate) fn clients() -> Option<PathBuf> {
    let on_path = std::env::var_os("PATH")
        .into_iter()
        .flat_map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut installed: Vec<_> = installed.map(|version| version.path().join("bin")).collect();
    installed.sort();
    installed
        .into_iter()
        .rev()
        .chain(on_path)
        .find(|dir| ["pg_dump", "pg_restore", "psql"].iter().all(|program| dir.join(program).is_file()))
}

#[test]
fn each_block_of_commands_is_run_or_says_why_not() {
    let mut used = [0; RUN.len() + NOT_RUN.len()];
    let rows = || RUN.iter().chain(&NOT_RUN);
    for page in PAGES {
        for Block { section, fence, code } in blocks(page) {
            if DATA.contains(&fence.as_str()) {
                continue;
            }
            let row = rows().position(|(of, known, _)| *of == page && *known == fence);
            let row = row.unwrap_or_else(|| {
                panic!("docs/{page}, {section}: nothing runs the block `{fence}`:\n{code}")
            });
            used[row] += 1;
        }
    }
    for ((page, fence, _), used) in rows().zip(used) {
        assert!(used > 0, "docs/{page} has no block `{fence}`");
    }
    for (page, fence, test) in RUN {
        let (file, name) = test.split_once("::").unwrap();
        let source = read(&format!("tests/it/{file}.rs"));
        assert!(source.contains(&format!("fn {name}()")), "{test} does not exist");
        for named in [page, fence] {
            assert!(source.contains(&format!("\"{named}\"")), "{test} does not run `{fence}` of {page}");
        }
    }
}

/// Commands in the middle of a sentence can't be run, but have names and options that the program knows.
#[test]
fn commands_within_the_text_are_known_to_the_program() {
    let span = Regex::new("`(fanfare [^`\n]*)`").unwrap();
    let mut found = 0;
    for page in PAGES.into_iter().chain(TEXTS) {
        let text = read(&format!("docs/{page}"));
        for command in span.captures_iter(&text).map(|captures| captures[1].to_owned()) {
            found += 1;
            let words: Vec<_> = command.split(' ').filter(|word| !word.starts_with('[')).collect();
            let Err(error) = server::command().try_get_matches_from(&words) else { continue };
            let is_known = matches!(
                error.kind(),
                // The argument that is missing follows from the sentence.
                clap::error::ErrorKind::MissingRequiredArgument
                    | clap::error::ErrorKind::MissingSubcommand
                    | clap::error::ErrorKind::DisplayHelp
                    | clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            ) || error.kind() == clap::error::ErrorKind::InvalidValue
                && words.last().is_some_and(|word| word.starts_with("--"));
            assert!(is_known, "docs/{page}: `{command}`: {error}");
        }
    }
    assert!(found > 20, "only {found} commands were found");
}
