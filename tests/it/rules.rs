//! Checks that the table of the contract's rules names only tests that exist.

use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
};

/// Collects all tests of the workspace, each as its file or module and its name.
fn tests(dir: &Path, found: &mut HashSet<(String, String)>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            tests(&path, found);
        }
        let Some(file) = name.strip_suffix(".rs") else { continue };
        // A module of several files is named after its directory, and so are its tests.
        let file =
            if ["mod", "tests"].contains(&file) { dir.file_name().unwrap().to_str().unwrap() } else { file };
        let source = std::fs::read_to_string(&path).unwrap();
        let (mut is_test, mut is_case) = (false, false);
        for line in source.lines().map(str::trim) {
            // The suites of the platforms list their cases.
            is_case =
                line.ends_with("cases![") || line.ends_with("singles![") || is_case && !line.starts_with(']');
            if is_case && let Some(case) = line.strip_suffix(',') {
                found.insert((file.to_owned(), case.to_owned()));
            }
            is_test |=
                line == "#[test]" || line.starts_with("#[tokio::test") || line.starts_with("#[sqlx::test");
            let named = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
            if let Some((test, _)) = named.and_then(|rest| rest.split_once('(')) {
                if is_test {
                    found.insert((file.to_owned(), test.to_owned()));
                }
                is_test = false;
            }
        }
    }
}

#[test]
fn every_rule_names_tests_that_exist() {
    let mut found = HashSet::new();
    tests(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut found);
    let mut rules = BTreeMap::new();
    let rows =
        include_str!("rules.md").lines().filter(|line| line.starts_with("| ") && !line.starts_with("| rule"));
    for row in rows {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [rule, says, held] = &cells[..] else { panic!("a row must have three cells: {row}") };
        assert!(!says.is_empty(), "{rule} has no text");
        let names: Vec<_> =
            held.split('`').skip(1).step_by(2).filter(|name| *name != ".ci/contract").collect();
        let is_elsewhere = held.contains(".ci/contract");
        assert!(!names.is_empty() || is_elsewhere, "{rule} names no test");
        for name in names {
            let (file, test) = name.split_once("::").unwrap();
            assert!(
                found.contains(&(file.to_owned(), test.to_owned())),
                "{rule} names {name}, which does not exist"
            );
        }
        assert!(rules.insert(rule.to_owned(), held.to_owned()).is_none(), "{rule} is listed twice");
    }
    assert!(rules.len() > 100, "only {} rules were read", rules.len());
}
