//! Links, mentions and tags of a text, as AT Protocol's rich text requires them.
//!
//! Bluesky detects nothing: a link that the client does not mark stays plain text. Positions are offsets
//! into UTF-8, and facets do not overlap. <https://docs.bsky.app/docs/advanced-guides/post-richtext>

use crate::text;
use regex::Regex;
use std::{borrow::Cow, collections::BTreeMap, ops::Range, sync::LazyLock};
use unicode_segmentation::UnicodeSegmentation;
use url::Url;

/// A part of a text with a meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Position in bytes.
    pub(crate) range: Range<usize>,
    /// Meaning.
    pub(crate) meaning: Meaning,
}

/// Meaning of a part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A link to this address.
    Link(String),
    /// A mention of this handle, not yet resolved.
    Mention(String),
    /// A tag, without its `#`; a cashtag is a tag with its `$`.
    Tag(String),
}

/// The longest tag, in graphemes.
const TAG: usize = 64;
/// The longest path that a shortened link shows, and the part of a longer one, in graphemes, as in Bluesky's own app.
/// <https://github.com/bluesky-social/social-app/blob/main/src/lib/strings/url-helpers.ts>
const LONGEST_PATH: usize = 15;
const CUT_PATH: usize = 13;

static ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)\bhttps?://\S+").expect("the pattern is well-formed"));
static MENTION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?:^|[\s(])@((?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?\.)+[a-zA-Z](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)",
    )
    .expect("the pattern is well-formed")
});
static HASHTAG: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|\s)[#＃]([^\s\u{AD}\u{2060}\u{200A}-\u{200D}\u{20E2}]+)")
        .expect("the pattern is well-formed")
});
static CASHTAG: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|[\s(])\$([A-Za-z][A-Za-z0-9]{0,4})").expect("the pattern is well-formed")
});
static PUNCTUATION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\p{P}+$").expect("the pattern is well-formed"));

/// Returns the links, mentions and tags of a text, in order and without overlaps. Runs in linear time,
/// except for sorting.
pub(crate) fn spans(text: &str) -> Vec<Span> {
    let mut found = BTreeMap::new();
    for hit in ADDRESS.find_iter(text) {
        let address = trimmed(hit.as_str());
        let range = hit.start()..hit.start() + address.len();
        if Url::parse(address).is_ok_and(|url| url.has_host()) {
            add(&mut found, range, Meaning::Link(address.to_owned()));
        }
    }
    let is_host = |address: &str| !address.starts_with('-');
    for link in
        text::links(text).into_iter().filter(|link| !link.scheme && is_host(&text[link.range.clone()]))
    {
        let address = format!("https://{}", &text[link.range.clone()]);
        add(&mut found, link.range, Meaning::Link(address));
    }
    for hit in MENTION.captures_iter(text) {
        let handle = hit.get(1).expect("the pattern has one group");
        add(&mut found, handle.start() - 1..handle.end(), Meaning::Mention(handle.as_str().to_lowercase()));
    }
    for hit in HASHTAG.captures_iter(text) {
        let body = hit.get(1).expect("the pattern has one group");
        let tag = PUNCTUATION.replace(body.as_str(), "");
        let says_something =
            tag.chars().any(|c| !c.is_ascii_digit() && !PUNCTUATION.is_match(c.encode_utf8(&mut [0; 4])));
        if says_something && !tag.starts_with('\u{FE0F}') && tag.graphemes(true).count() <= TAG {
            let sign = text[..body.start()].chars().next_back().map_or(1, char::len_utf8);
            add(&mut found, body.start() - sign..body.start() + tag.len(), Meaning::Tag(tag.into_owned()));
        }
    }
    for hit in CASHTAG.captures_iter(text) {
        let symbol = hit.get(1).expect("the pattern has one group");
        let is_end = |c: char| c.is_whitespace() || ".,;:!?)\"'’".contains(c);
        if text[symbol.end()..].chars().next().is_none_or(is_end) {
            let tag = format!("${}", symbol.as_str().to_uppercase());
            add(&mut found, symbol.start() - 1..symbol.end(), Meaning::Tag(tag));
        }
    }
    found.into_values().collect()
}

/// Returns a text with shortened links, and its spans, whose links have the whole addresses.
pub(crate) fn shortened(text: &str) -> (String, Vec<Span>) {
    let (mut short, mut at) = (String::with_capacity(text.len()), 0);
    let mut spans = spans(text);
    for span in &mut spans {
        short.push_str(&text[at..span.range.start]);
        let (start, part) = (short.len(), &text[span.range.clone()]);
        match span.meaning {
            Meaning::Link(_) => short.push_str(&short_link(part)),
            Meaning::Mention(_) | Meaning::Tag(_) => short.push_str(part),
        }
        at = span.range.end;
        span.range = start..short.len();
    }
    short.push_str(&text[at..]);
    (short, spans)
}

/// Returns an address without its scheme, and with a long path cut.
fn short_link(address: &str) -> Cow<'_, str> {
    let bare = address.split_once("://").map_or(address, |(_, rest)| rest);
    let (host, path) = bare.split_at(bare.find(['/', '?', '#']).unwrap_or(bare.len()));
    if path == "/" {
        return Cow::Borrowed(host);
    }
    let mut ends = path.grapheme_indices(true).map(|(at, _)| at);
    match (ends.nth(CUT_PATH), ends.nth(LONGEST_PATH - CUT_PATH - 1)) {
        (Some(end), Some(_)) => Cow::Owned(format!("{host}{}...", &path[..end])),
        _ => Cow::Borrowed(bare),
    }
}

/// Adds a span, unless it overlaps another one.
fn add(found: &mut BTreeMap<usize, Span>, range: Range<usize>, meaning: Meaning) {
    // Spans do not overlap, so only the last one that begins before this one's end can overlap it.
    let before = found.range(..range.end).next_back();
    if before.is_none_or(|(_, span)| span.range.end <= range.start) {
        found.insert(range.start, Span { range, meaning });
    }
}

/// Returns an address without the punctuation of the sentence around it.
fn trimmed(mut address: &str) -> &str {
    let [opened, mut closed, opened_square, mut closed_square] =
        ['(', ')', '[', ']'].map(|sign| address.matches(sign).count());
    while let Some((last, c)) = address.char_indices().next_back() {
        let is_foreign = match c {
            ')' => opened < closed,
            ']' => opened_square < closed_square,
            c => ".,;:!?\"'>”’»。、".contains(c),
        };
        if !is_foreign {
            break;
        }
        closed -= usize::from(c == ')');
        closed_square -= usize::from(c == ']');
        address = &address[..last];
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(&str, Meaning)> {
        spans(text).into_iter().map(|span| (&text[span.range], span.meaning)).collect()
    }

    fn link(address: &str) -> Meaning {
        Meaning::Link(address.into())
    }

    #[test]
    fn links_end_before_trailing_punctuation() {
        assert_eq!(
            read("日本 https://example.com/a(b), (https://example.com/c) and example.org."),
            [
                ("https://example.com/a(b)", link("https://example.com/a(b)")),
                ("https://example.com/c", link("https://example.com/c")),
                ("example.org", link("https://example.org")),
            ]
        );
        assert_eq!(read("https://例え.jp/パス"), [("https://例え.jp/パス", link("https://例え.jp/パス"))]);
        assert_eq!(read("file.txt me@example.com https://"), []);
    }

    #[test]
    fn mentions_and_tags_are_found_by_their_prefix() {
        assert_eq!(
            read("@alice.bsky.social, see (@Bob.test) #tag! ＃日本 #1 #a.b. a#b"),
            [
                ("@alice.bsky.social", Meaning::Mention("alice.bsky.social".into())),
                ("@Bob.test", Meaning::Mention("bob.test".into())),
                ("#tag", Meaning::Tag("tag".into())),
                ("＃日本", Meaning::Tag("日本".into())),
                ("#a.b", Meaning::Tag("a.b".into())),
            ]
        );
        assert_eq!(read("@nodots #️⃣"), []);
    }

    #[test]
    fn a_shortened_link_has_the_whole_address() {
        for (text, short) in [
            ("https://example.com/", "example.com"),
            ("https://example.com/123456789012345", "example.com/123456789012..."),
            ("https://example.com/12345678901234", "example.com/12345678901234"),
            ("http://example.com:8080?q=12345678901234567890#a", "example.com:8080?q=1234567890..."),
            ("example.org", "example.org"),
            ("https://例え.jp/パスパスパスパスパスパスパスパスパス", "例え.jp/パスパスパスパスパスパス..."),
            ("https://a.bc/👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦", "a.bc/👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦"),
        ] {
            let around = format!("🎉 #one {text} and @ada.test, {text}");
            let (shown, found) = shortened(&around);
            assert_eq!(shown, format!("🎉 #one {short} and @ada.test, {short}"));
            let whole = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
            let parts: Vec<_> = found.into_iter().map(|span| (&shown[span.range], span.meaning)).collect();
            let expected = [
                ("#one", Meaning::Tag("one".into())),
                (short, Meaning::Link(whole.clone())),
                ("@ada.test", Meaning::Mention("ada.test".into())),
                (short, Meaning::Link(whole)),
            ];
            assert_eq!(parts, expected);
        }
    }

    #[test]
    fn quotation_marks_are_not_part_of_a_domain() {
        assert_eq!(
            read("Visit \"www.example.com/path\" and `example.org` 。-a.com"),
            [
                ("www.example.com/path", link("https://www.example.com/path")),
                ("example.org", link("https://example.org")),
            ]
        );
    }

    #[test]
    fn cashtags_are_tags_with_their_sign() {
        assert_eq!(
            read("$CASH up, ($aapl) $5 US$ $TOOLONG a$b $A1-x $BRK."),
            [
                ("$CASH", Meaning::Tag("$CASH".into())),
                ("$aapl", Meaning::Tag("$AAPL".into())),
                ("$BRK", Meaning::Tag("$BRK".into())),
            ]
        );
    }

    #[test]
    fn a_url_keeps_closing_brackets_that_it_opens() {
        assert_eq!(trimmed("https://a.b/(c)).]"), "https://a.b/(c)");
        assert_eq!(trimmed("https://a.b/[c]!])"), "https://a.b/[c]");
        assert_eq!(trimmed("https://a.b/c(d"), "https://a.b/c(d");
    }

    /// A scan in quadratic time would not finish.
    #[test]
    fn a_long_text_is_scanned_in_linear_time() {
        for (begin, piece, count) in [
            ("https://a.bb/", ")", 1),
            ("https://a.bb/", "(", 1),
            ("https://a.bb/", ".])", 1),
            ("", "https://a.bb ", 20_000),
            ("", "a.com ", 40_000),
            ("", " @a.bb", 40_000),
            ("", " @a.b-", 40_000),
            ("", " #a", 80_000),
            (" #", "!", 0),
            (" #", "!a", 0),
        ] {
            let text = begin.to_owned() + &piece.repeat(300_000 / piece.len());
            let found = spans(&text).len();
            assert!(found >= count, "{begin}{piece}: {found}");
        }
    }
}
