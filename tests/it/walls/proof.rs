//! Every test and every section of the proof belongs to a part that `just proof` runs.
//!
//! The parts are listed by hand, since somebody has to decide what may run beside what. A module of `tests/proof` that is in
//! no part would never run in full, and a section of no part would be on no page.

use super::source::collect;
use regex::Regex;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};
use tests::{
    deploy::read,
    parts::{PARTS, Program},
};

/// Returns the part that a source belongs to: the module of a test of `tests/proof`, or the program that has it.
fn part_of(path: &str) -> Option<&'static str> {
    let program =
        |is_it: fn(&Program) -> bool| PARTS.iter().find(|part| is_it(&part.program)).map(|part| part.name);
    if let Some(module) = path.strip_prefix("tests/proof/") {
        let module = module.split(['/', '.']).next()?;
        PARTS.iter().find(|part| part.program == Program::Module && part.name == module).map(|part| part.name)
    } else if path.starts_with("platforms/tests/") {
        program(|program| matches!(program, Program::Behavior(_)))
    } else {
        program(|program| *program == Program::Mutants)
    }
}

/// Returns the sources that may write sections, by their paths.
fn sources() -> BTreeMap<String, String> {
    let mut paths = vec!["tests/src/mutants.rs".to_owned()];
    ["tests/proof", "platforms/tests"].iter().for_each(|dir| collect(Path::new(dir), &mut paths));
    let sources = paths.into_iter().filter(|path| path.ends_with(".rs"));
    sources.map(|path| (path.clone(), read(&path))).collect()
}

#[test]
fn each_section_is_written_by_the_part_that_lists_it() {
    let section = Regex::new(r#"Section::new\(\s*"([^"]+)""#).unwrap();
    let mut written = BTreeMap::<_, BTreeSet<_>>::new();
    let sources = sources();
    for (path, source) in &sources {
        for found in section.captures_iter(source) {
            let part = part_of(path).unwrap_or_else(|| panic!("{path} writes a section, and is in no part"));
            written.entry(part).or_default().insert(found.get(1).unwrap().as_str());
        }
    }
    let listed = PARTS.iter().map(|part| (part.name, part.sections.iter().copied().collect()));
    let listed: BTreeMap<&str, BTreeSet<&str>> = listed.collect();
    assert_eq!(written, listed, "the sections in the sources, and in tests/src/parts.rs");
}

#[test]
fn each_test_of_the_proof_is_run_by_a_part() {
    let test = Regex::new(r"(?m)^\s*#\[(?:tokio::)?test\b").unwrap();
    let (mut with_tests, mut without) = (BTreeSet::new(), Vec::new());
    for (path, source) in sources().iter().filter(|(path, _)| path.starts_with("tests/proof/")) {
        if test.is_match(source) {
            match part_of(path) {
                Some(part) => {
                    with_tests.insert(part);
                }
                None => without.push(path.clone()),
            }
        }
    }
    assert!(without.is_empty(), "{without:?} have tests, and are in no part of tests/src/parts.rs");
    let modules = PARTS.iter().filter(|part| part.program == Program::Module).map(|part| part.name);
    let modules: BTreeSet<&str> = modules.collect();
    assert_eq!(with_tests, modules, "the modules with tests, and the parts");
}

#[test]
fn what_belongs_to_no_part_is_found() {
    assert_eq!(part_of("tests/proof/awaits/twins.rs"), Some("awaits"));
    assert_eq!(part_of("tests/proof/soak.rs"), Some("soak"));
    assert_eq!(part_of("tests/proof/nothing/of_it.rs"), None);
    assert_eq!(part_of("tests/proof/mutants.rs"), None);
    assert_eq!(part_of("platforms/tests/behavior.rs"), Some("answers"));
    assert_eq!(part_of("tests/src/mutants.rs"), Some("mutants"));
}
