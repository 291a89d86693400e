//! Functions that a screen shows, and files that are read in one sitting.
//!
//! The lists have what was longer when the limits came, each with the most lines that it may have. They may only
//! shrink: an entry that is not needed fails.

use super::source::{closed, keywords, sources, word};
use std::collections::BTreeMap;

/// Most lines of a function, without what precedes its name.
const MOST_OF_FUNCTION: usize = 100;
/// Most lines of a file.
const MOST_OF_FILE: usize = 900;

/// Functions that may be longer.
const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[
    ("dashboard/src/analytics.rs", "show", 110),
    ("dashboard/src/post.rs", "show", 200),
    ("api/src/openapi/webhooks.rs", "data_schema", 110),
    ("platforms/tests/behavior.rs", "invalid_content_fails_the_check_before_any_request", 110),
    ("publishing/src/commit.rs", "publish", 110),
    ("sandbox/src/bluesky/repo.rs", "commit", 120),
    ("sandbox/src/pipeline.rs", "process", 120),
    ("sandbox/src/x/posts.rs", "view", 110),
    ("server/src/dev.rs", "serve", 150),
    ("server/src/services.rs", "run", 110),
    ("store/src/posts/edit.rs", "apply", 130),
    ("tests/it/alerts.rs", "each_alert_fires_when_its_condition_is_met", 190),
    ("tests/it/audit.rs", "each_change_leaves_an_entry_that_tells_who_from_where_and_what", 190),
    ("tests/it/operations.rs", "every_command_of_the_page_runs_as_written_where_its_symptom_is", 190),
    ("tests/it/ops.rs", "what_is_frozen_waits_and_is_released_at_the_chosen_rate", 110),
    ("tests/it/secrets.rs", "no_secret_is_in_any_log_answer_history_or_error", 140),
    ("tests/proof/awaits.rs", "an_attempt_may_be_dropped_at_every_await_point", 110),
    ("tests/proof/hostile/secrets.rs", "planted_secrets_are_found_nowhere", 120),
    ("tests/proof/hostile/tokens.rs", "tokens", 120),
    ("tests/proof/soak.rs", "nothing_accumulates_under_mixed_load_with_faults", 130),
];

/// Files that may be longer.
const LONG_FILES: &[(&str, usize)] = &[
    ("platforms/src/google_business.rs", 1150),
    ("platforms/src/graph.rs", 1050),
    ("platforms/src/instagram.rs", 1200),
    ("platforms/src/linkedin/mod.rs", 1250),
    ("platforms/src/pinterest.rs", 1200),
    ("platforms/src/x/mod.rs", 1300),
    ("platforms/tests/agreement/samples.rs", 1000),
    ("platforms/tests/behavior.rs", 1350),
    ("platforms/tests/fixtures/mod.rs", 1400),
    ("platforms/tests/specific/reddit.rs", 1000),
    ("platforms/tests/specific/youtube.rs", 950),
    ("sandbox/src/graph.rs", 1100),
    ("sandbox/src/x/posts.rs", 1000),
    ("sandbox/src/youtube/videos.rs", 1000),
    ("sandbox/tests/sandbox.rs", 1200),
    ("store/src/media/mod.rs", 1150),
    ("store/src/posts/mod.rs", 1200),
    ("tests/it/connect.rs", 1050),
    ("tests/it/media.rs", 1300),
    ("tests/proof/lifecycle/model.rs", 950),
];

/// Returns the functions of a source, each with its number of lines. Of several with one name the longest counts.
fn functions(code: &str) -> BTreeMap<&str, usize> {
    let mut functions = BTreeMap::new();
    for at in keywords(code, "fn") {
        let name = word(code[at + "fn".len()..].trim_start());
        let Some(body) = body(&code[at..]).filter(|_| !name.is_empty()) else { continue };
        let lines = code[at..at + body].matches('\n').count() + 1;
        let longest = functions.entry(name).or_insert(0);
        *longest = lines.max(*longest);
    }
    functions
}

/// Returns the place after the body of the function that a text begins with; `None` if it has none.
fn body(code: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        match code.as_bytes().get(at)? {
            b'{' => return Some(at + closed(&code[at..])),
            b'(' | b'[' => at += closed(&code[at..]),
            b';' | b'}' => return None,
            _ => at += 1,
        }
    }
}

/// Returns what is wrong with a size; `None` if nothing is. `most` is that of an exception.
fn fault(lines: usize, limit: usize, most: Option<usize>) -> Option<String> {
    match most {
        None if lines > limit => Some(format!("{lines} lines, and may have {limit}: move a part elsewhere")),
        Some(_) if lines <= limit => Some(format!("{lines} lines and needs no exception: delete its entry")),
        Some(most) if lines > most => {
            Some(format!("{lines} lines, and its exception allows {most}: move a part elsewhere"))
        }
        _ => None,
    }
}

#[test]
fn no_function_outgrows_a_screen() {
    let (mut faults, mut used, mut checked) = (Vec::new(), 0, 0);
    for source in sources() {
        for (name, lines) in functions(&source.code) {
            checked += 1;
            let known = LONG_FUNCTIONS.iter().find(|(path, of, _)| *path == source.path && *of == name);
            used += usize::from(known.is_some());
            let fault = fault(lines, MOST_OF_FUNCTION, known.map(|(.., most)| *most));
            faults.extend(fault.map(|fault| format!("{}: {name} has {fault}", source.path)));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!(used, LONG_FUNCTIONS.len(), "an entry of LONG_FUNCTIONS names no function, or is there twice");
    assert!(checked > 5_000, "only {checked} functions were found");
}

#[test]
fn no_file_outgrows_a_sitting() {
    let (mut faults, mut used) = (Vec::new(), 0);
    for source in sources() {
        let known = LONG_FILES.iter().find(|(path, _)| *path == source.path);
        used += usize::from(known.is_some());
        let fault = fault(source.lines, MOST_OF_FILE, known.map(|(_, most)| *most));
        faults.extend(fault.map(|fault| format!("{} has {fault}", source.path)));
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!(used, LONG_FILES.len(), "an entry of LONG_FILES names no file, or is there twice");
}

#[test]
fn functions_are_measured() {
    let code = "trait T {\n    fn none(&self) -> [u8; 2];\n    fn one(&self) {}\n}\n\
        fn two<F: Fn(fn(u8))>(f: F)\nwhere\n    F: Copy,\n{\n    if a {\n        b\n    }\n}\n";
    assert_eq!(functions(code), BTreeMap::from([("one", 1), ("two", 8)]));
    let cases = [(101, None), (100, Some(120)), (121, Some(120))];
    assert!(cases.iter().all(|(lines, most)| fault(*lines, 100, *most).is_some()));
    assert!(fault(100, 100, None).is_none() && fault(101, 100, Some(120)).is_none());
}
