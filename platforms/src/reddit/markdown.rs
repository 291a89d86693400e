//! Plain text as Markdown that shows it.
//!
//! Reddit reads every text as Markdown, by two parsers: Snudown on the old site and a kind of CommonMark elsewhere.
//! Both take a backslash before the punctuation that either gives a meaning to, and both take an address as it is up to
//! the next blank, backslashes included, so none is written there.
//! <https://github.com/reddit/snudown>, <https://spec.commonmark.org>

use regex::Regex;
use std::sync::LazyLock;

/// A blank that is shown: others are not at the beginning of a line and after another one.
const BLANK: char = '\u{A0}';

/// End of a line whose next line is in the same paragraph.
const BREAK: &str = "  \n";

/// A line of this sign alone makes a heading of the line above. Snudown has no escape for it.
const EQUALS: &str = "&#61;";

/// Punctuation that may belong to an address; it is written between `<` and `>` if it has other than [`TAME`].
const OF_ADDRESS: &str = "-._/:?=&%#+,@!~$'()*;[]{}|^";

/// Punctuation of an address that every parser takes without signs around it.
const TAME: &str = "-._/:?=&%#+,@!~$'()";

/// Punctuation after an address that no parser takes for its end, nor for markup.
const AFTER: &str = "?!.,:'\")";

static ADDRESS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)[a-z][a-z0-9+.-]*://|www\."));
static ENTITY: LazyLock<Regex> = LazyLock::new(|| pattern(r"^&#?[0-9A-Za-z]+;"));
static HOST: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^[\p{L}\p{N}-]+(\.[\p{L}\p{N}-]+)+(:[0-9]+)?([/?#]|$)"));
static NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[0-9]+[.)]"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is well-formed")
}

/// Returns Markdown that shows a text as it is written: its lines, its blanks and every character. Blanks at its ends and
/// at those of its lines, which nobody sees, are left out.
pub(super) fn escape(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut blank_lines = 0;
    for line in text.trim().split('\n').map(str::trim_end) {
        if line.is_empty() {
            blank_lines += 1;
            continue;
        }
        if !out.is_empty() {
            out.push_str(if blank_lines == 0 { BREAK } else { "\n\n" });
            // One blank line is the distance between paragraphs, which is all that Markdown keeps.
            for _ in 1..blank_lines {
                out.push(BLANK);
                out.push_str(BREAK);
            }
        }
        blank_lines = 0;
        add_line(line, &mut out);
    }
    out
}

/// Returns the plain text that [`escape`] makes this Markdown of; `None` if it makes it of none.
pub(super) fn unescape(markdown: &str) -> Option<String> {
    static ESCAPED: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"\\([[:punct:]])|<((?i:https?)://[^<>\s]*)>|\x{A0}?  \n"));
    let text =
        ESCAPED.replace_all(markdown, |found: &regex::Captures<'_>| match (found.get(1), found.get(2)) {
            (Some(sign), _) => sign.as_str().to_owned(),
            (None, Some(address)) => address.as_str().to_owned(),
            (None, None) => "\n".to_owned(),
        });
    let text = text.replace(BLANK, " ").replace(EQUALS, "=");
    (escape(&text) == markdown).then_some(text)
}

fn add_line(line: &str, out: &mut String) {
    let rest = line.trim_start_matches([' ', '\t']);
    // Four blanks at the beginning would make code of the line.
    for blank in line[..line.len() - rest.len()].chars() {
        (0..if blank == '\t' { 4 } else { 1 }).for_each(|_| out.push(BLANK));
    }
    let mut rest = rest;
    match rest.chars().next() {
        Some('#' | '>' | '-' | '+') => {
            out.push('\\');
            out.push_str(&rest[..1]);
            rest = &rest[1..];
        }
        Some('=') if rest.chars().all(|c| c == '=') => {
            out.push_str(EQUALS);
            rest = &rest[1..];
        }
        // The second line of a table.
        Some(':') if rest.chars().all(|c| ":-| \t".contains(c)) => out.push('\\'),
        Some('0'..='9') => {
            if let Some(number) = NUMBER.find(rest) {
                out.push_str(&rest[..number.end() - 1]);
                out.push('\\');
                out.push_str(&rest[number.end() - 1..number.end()]);
                rest = &rest[number.end()..];
            }
        }
        _ => {}
    }
    let mut is_after_blank = false;
    for piece in rest.split_inclusive([' ', '\t']) {
        let word = piece.trim_end_matches([' ', '\t']);
        add_word(word, out);
        if word.len() < piece.len() {
            let is_shown = word.is_empty() && is_after_blank;
            out.push_str(if is_shown { "\u{A0}" } else { &piece[word.len()..] });
            is_after_blank = true;
        }
    }
}

/// Adds a text without blanks, with its addresses. Runs in linear time for any text.
fn add_word(word: &str, out: &mut String) {
    let start = out.len();
    add_text(word, out);
    if out[start..] == *word {
        return;
    }
    out.truncate(start);
    let mut rest = word;
    while let Some(found) = ADDRESS.find(rest) {
        let (before, address) = rest.split_at(found.start());
        add_text(before, out);
        let scheme = found.as_str().to_lowercase();
        let length = enclosed(before, address).unwrap_or_else(|| length(before, address));
        let (body, after) = address.split_at(length.max(scheme.len()));
        rest = after;
        let is_web = ["http://", "https://"].contains(&scheme.as_str());
        let has_entity = body.match_indices('&').any(|(at, _)| ENTITY.is_match(&body[at..]));
        let is_bare = is_bare(before, &scheme, body) && after.chars().all(|c| AFTER.contains(c));
        if is_bare && !has_entity {
            out.push_str(body);
        } else if is_web && body.len() > scheme.len() && !has_entity {
            out.push('<');
            out.push_str(body);
            out.push('>');
            // `>!` hides a text.
            if after.starts_with('!') {
                out.push('\\');
            }
        } else {
            add_unlinked(body, out);
        }
    }
    add_text(rest, out);
}

/// Adds a text of which no parser is to take a part for an address, because it would show the backslashes in it.
fn add_unlinked(text: &str, out: &mut String) {
    let mut at = 0;
    for found in ADDRESS.find_iter(text) {
        add_text(&text[at..found.start()], out);
        let begin = found.as_str();
        let name = begin.trim_end_matches([':', '/', '.']);
        out.push_str(name);
        out.push('\\');
        out.push_str(&begin[name.len()..]);
        at = found.end();
    }
    add_text(&text[at..], out);
}

/// Returns the length of an address between `<` and `>`, which are no part of it, whatever it ends with.
/// <https://www.rfc-editor.org/rfc/rfc3986#appendix-C>
fn enclosed(before: &str, text: &str) -> Option<usize> {
    before.strip_suffix('<')?;
    let end = text.find(|c: char| !(c.is_alphanumeric() || OF_ADDRESS.contains(c)))?;
    text[end..].starts_with('>').then_some(end)
}

/// Returns the length of the address that a text begins with, by what is before it.
fn length(before: &str, text: &str) -> usize {
    let end = text.find(|c: char| !(c.is_alphanumeric() || OF_ADDRESS.contains(c))).unwrap_or(text.len());
    let mut body = &text[..end];
    let mut unopened = body.matches(')').count().saturating_sub(body.matches('(').count());
    // Punctuation at the end belongs to the sentence, and so does a bracket that is closed and never opened.
    while let Some(last) = body.chars().next_back() {
        match last {
            ')' if unopened > 0 => unopened -= 1,
            ')' => break,
            // Its name is in the address, so that its end is no punctuation.
            ';' if ends_with_entity(body) => break,
            // Unless it ends what it began before the address.
            '_' if !before.ends_with('_') => break,
            last if last.is_alphanumeric() || "/=&%#+@$-".contains(last) => break,
            _ => {}
        }
        body = &body[..body.len() - last.len_utf8()];
    }
    body.len()
}

fn ends_with_entity(text: &str) -> bool {
    let before = text.strip_suffix(';').unwrap_or(text);
    let rest = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric());
    rest.len() < before.len() && (rest.ends_with('&') || rest.ends_with("&#"))
}

/// Returns whether every parser makes a link of this address without signs around it.
fn is_bare(before: &str, scheme: &str, body: &str) -> bool {
    let host = match scheme {
        "http://" | "https://" => body.get(scheme.len()..),
        "www." if before.is_empty() || before.ends_with('(') => Some(body),
        _ => None,
    };
    // The parsers take an underscore at the end for punctuation.
    host.is_some_and(|host| HOST.is_match(host))
        && !body.ends_with('_')
        && body.chars().all(|c| c.is_alphanumeric() || TAME.contains(c))
}

/// Adds a text without blanks and addresses.
fn add_text(text: &str, out: &mut String) {
    let mut before: Option<char> = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        // A run of underscores has one meaning.
        let run = match rest.find(|other| other != '_').unwrap_or(rest.len()) {
            0 => c.len_utf8(),
            run => run,
        };
        let after = rest[run..].chars().next();
        let is_markup = match c {
            '\\' | '`' | '*' | '[' | ']' | '~' | '^' | '<' | '|' => true,
            // Within a word it is none, and a name such as `u/ada_b` would end there.
            '_' => ![before, after].into_iter().all(|beside| beside.is_some_and(char::is_alphanumeric)),
            '&' => ENTITY.is_match(rest),
            '>' => after == Some('!'),
            _ => false,
        };
        for sign in rest[..run].chars() {
            out.extend(is_markup.then_some('\\'));
            out.push(sign);
        }
        before = Some(c);
        rest = &rest[run..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_and_lines_are_kept() {
        for (text, markdown) in [
            ("Monday: soup\nTuesday: salad", "Monday: soup  \nTuesday: salad"),
            ("one\n\ntwo\r\n\r\n\r\nthree ", "one\n\ntwo\n\n\u{A0}  \nthree"),
            ("#soup #salad", "\\#soup #salad"),
            ("1) one\n2. two", "1\\) one  \n2\\. two"),
            ("- a\n---\n====", "\\- a  \n\\---  \n&#61;==="),
            ("    code  here", "code \u{A0}here"),
            ("a\n    code", "a  \n\u{A0}\u{A0}\u{A0}\u{A0}code"),
            ("*a* _b_ ~~c~~ `d` ^e >!f!<", r"\*a\* \_b\_ \~\~c\~\~ \`d\` \^e \>!f!\<"),
            ("snake_case and u/ada_b", "snake_case and u/ada_b"),
            (r"¯\_(ツ)_/¯", r"¯\\\_(ツ)\_/¯"),
            ("AT&T &copy; a | b", r"AT&T \&copy; a \| b"),
            ("[a](https://example.com/a_b_)", r"\[a\](<https://example.com/a_b_>)"),
        ] {
            assert_eq!(escape(text), markdown, "{text}");
        }
    }

    #[test]
    fn an_address_is_written_as_it_is() {
        for (text, markdown) in [
            ("see https://example.com/a_b_c?d=1&e=2#f.", "see https://example.com/a_b_c?d=1&e=2#f."),
            ("(https://en.example.org/wiki/A_(b))", "(https://en.example.org/wiki/A_(b))"),
            ("https://example.com/*a*b", "<https://example.com/*a*b>"),
            ("»https://example.com/_a_b«", "»<https://example.com/_a_b>«"),
            ("http://localhost/_a_", "<http://localhost/_a_>"),
            ("https://example.com/a_", "<https://example.com/a_>"),
            ("_https://example.com/a_", r"\_<https://example.com/a>\_"),
            ("<https://example.com/a>", r"\<<https://example.com/a>>"),
            ("<https://example.com/a_>!", r"\<<https://example.com/a_>\>!"),
            ("<https://example.com/a_*.),>", r"\<<https://example.com/a_*.),>>"),
            ("<https://example.com/a_`b>", r"\<<https://example.com/a_>\`b>"),
            ("<https://>", r"\<https\://>"),
            ("www.example.com/_a_b", "www.example.com/_a_b"),
            ("*www.example.com/_a_b", r"\*www\.example.com/\_a_b"),
            ("ftp://example.com/_a_", r"ftp\://example.com/\_a\_"),
            ("ftp://example.com/a", "ftp://example.com/a"),
            ("ftp://example.com/&lt;", r"ftp\://example.com/\&lt;"),
            ("https://example.com/?a=1&lt;b_", r"https\://example.com/?a=1\&lt;b\_"),
        ] {
            assert_eq!(escape(text), markdown, "{text}");
        }
    }

    #[test]
    fn what_was_escaped_is_read_back_and_other_markdown_is_left() {
        for text in ["#a *b*\nc\n\n\n  d  e", "====", "https://example.com/*a*b _c_", r"a\b", "&amp; <b>"] {
            assert_eq!(unescape(&escape(text)).as_deref(), Some(text));
        }
        for markdown in ["# a", "*b*", "a\nb", "[a](https://example.com)", "a\\"] {
            assert_eq!(unescape(markdown), None, "{markdown}");
        }
    }
}
