//! The sources of the workspace, as text without comments and literals.
//!
//! The walls look for words and brackets only, which comments and literals would imitate. That needs no parser of the
//! language, so that a wall reads all sources within seconds.

use std::{fs, path::Path, sync::LazyLock};
use tests::deploy::root;

/// Directories of the crates, from the bottom up.
pub(super) const CRATES: [&str; 19] = [
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
    "model",
    "activities",
    "starter",
    "devstack",
    "api",
    "dashboard",
    "doctor",
    "server",
    "tests",
];

/// A source file.
pub(super) struct Source {
    /// Path in the repository.
    pub(super) path: String,
    /// Number of lines.
    pub(super) lines: usize,
    /// Text, with spaces in place of comments and literals.
    pub(super) code: String,
}

/// Returns the sources of all crates.
pub(super) fn sources() -> &'static [Source] {
    static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| {
        let mut paths = Vec::new();
        CRATES.iter().for_each(|name| collect(Path::new(name), &mut paths));
        let mut sources: Vec<_> = paths
            .into_iter()
            .filter(|path| path.ends_with(".rs"))
            .map(|path| {
                let text = fs::read_to_string(root().join(&path)).unwrap();
                Source { lines: text.lines().count(), code: code(&text), path }
            })
            .collect();
        sources.sort_by(|one, other| one.path.cmp(&other.path));
        sources
    });
    &SOURCES
}

/// Collects the paths of all files in a directory of the repository and below.
pub(super) fn collect(dir: &Path, paths: &mut Vec<String>) {
    for entry in fs::read_dir(root().join(dir)).unwrap().flatten() {
        let path = dir.join(entry.file_name());
        if !entry.file_type().unwrap().is_dir() {
            paths.push(path.to_str().unwrap().replace('\\', "/"));
        } else if !["target", "node_modules", ".git", ".fanfare"]
            .iter()
            .any(|foreign| path.ends_with(foreign))
        {
            collect(&path, paths);
        }
    }
}

/// Returns whether a byte may be part of a name.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns the name that a text begins with; empty if it begins with none.
pub(super) fn word(text: &str) -> &str {
    &text[..text.bytes().position(|byte| !is_word(byte)).unwrap_or(text.len())]
}

/// Returns the places at which a keyword stands with a space after it. The lifetime `'static` is none.
pub(super) fn keywords<'a>(code: &'a str, keyword: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_start = move |at: usize| {
        code[..at].bytes().next_back().is_none_or(|before| !is_word(before) && before != b'\'')
    };
    let places = code.match_indices(keyword).map(|(at, _)| at);
    places.filter(move |at| is_start(*at) && code[at + keyword.len()..].starts_with(' '))
}

/// Returns a source with spaces in place of comments and literals. Lines stay where they are.
pub(super) fn code(text: &str) -> String {
    let mut code = text.as_bytes().to_vec();
    let (mut at, mut before) = (0, b' ');
    while at < code.len() {
        let length = skipped(&text.as_bytes()[at..], before);
        for byte in &mut code[at..at + length] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at += length.max(1);
        before = code[at - 1];
    }
    String::from_utf8(code).unwrap()
}

/// Returns the length of the comment or literal that a text begins with; zero if it begins with none. `before` is the
/// byte before it.
fn skipped(text: &[u8], before: u8) -> usize {
    let rest = |from: usize| text.get(from..).unwrap_or_default();
    match text {
        [b'/', b'/', ..] => text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len()),
        [b'/', b'*', ..] => comment(text),
        [b'r', ..] if !is_word(before) => raw(rest(1)).map_or(0, |length| length + 1),
        [b'b', b'r', ..] if !is_word(before) => raw(rest(2)).map_or(0, |length| length + 2),
        [b'"', ..] => quoted(text),
        [b'\'', b'\\', _, ..] => 3 + rest(3).iter().position(|byte| *byte == b'\'').map_or(0, |end| end + 1),
        [b'\'', first, ..] => {
            let length = match first {
                0..=0x7f => 1,
                0x80..=0xdf => 2,
                0xe0..=0xef => 3,
                _ => 4,
            };
            // A lifetime has no quotation mark after it.
            if text.get(1 + length) == Some(&b'\'') { length + 2 } else { 0 }
        }
        _ => 0,
    }
}

/// Returns the length of a comment that may contain others.
fn comment(text: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        match &text[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    text.len()
}

/// Returns the length of a raw string after its `r`; `None` if it is a name.
fn raw(text: &[u8]) -> Option<usize> {
    let hashes = text.iter().take_while(|byte| **byte == b'#').count();
    let body = text.get(hashes..)?.strip_prefix(b"\"")?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = body.windows(end.len()).position(|window| window == end.as_bytes())?;
    Some(hashes + 1 + length + end.len())
}

/// Returns the length of a string.
fn quoted(text: &[u8]) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// Returns the place after the bracket that closes the first one of a text.
pub(super) fn closed(code: &str) -> usize {
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

#[test]
fn comments_and_literals_are_left_out() {
    for (text, expected) in [
        ("a // b {\nc", "a       \nc"),
        ("a /* { /* } */ { */ c", "a                   c"),
        ("a(\"{ \\\" }\", b)", "a(        , b)"),
        ("a(r#\"{ \" }\"#, br\"{\")", "a(          ,      )"),
        ("a<'b>('{', '\\'', '\\u{7b}', 'é')", "a<'b>(   ,     ,         ,     )"),
        ("r#type", "r#type"),
    ] {
        assert_eq!(code(text), expected);
    }
    assert_eq!(&"a(b[c]{})d"[..closed("a(b[c]{})d")], "a(b[c]{})");
}
