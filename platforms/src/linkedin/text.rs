//! "Little text", the format of a post's text, in which unescaped reserved characters truncate it.
//! <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/little-text-format>
//!
//! A comment's text is plain, and its mentions are beside it.
//! <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/comments-api>

use regex::Regex;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// Reserved characters of little text.
const RESERVED: &str = r"|{}@[]()<>#\*_~";

/// Elements of little text: mentions in LinkedIn's own form, and hashtags.
static ELEMENTS: LazyLock<Regex> = LazyLock::new(|| {
    let mention = r"@\[(?P<name>[^\]\[\n]+)\]\((?P<urn>urn:li:(?:person|organization):[A-Za-z0-9_-]+)\)";
    Regex::new(&format!(r"(?P<mention>{mention})|#(?P<tag>[\p{{L}}\p{{N}}][\p{{L}}\p{{M}}\p{{N}}]*)"))
        .expect("a pattern")
});

/// Returns the text that mentions a person or an organization; `None` if LinkedIn has no form for the name.
pub(super) fn mention(name: &str, urn: &str) -> Option<String> {
    let text = format!("@[{name}]({urn})");
    ELEMENTS.find(&text).is_some_and(|found| found.as_str() == text).then_some(text)
}

/// Converts a text to little text.
/// <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/little-text-format>
pub(super) fn little(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut at = 0;
    for found in ELEMENTS.captures_iter(text) {
        let whole = found.get(0).expect("a match is whole");
        // In the middle of a word it is not a hashtag.
        let before = text[..whole.start()].chars().next_back();
        if found.name("tag").is_some() && before.is_some_and(|c| c.is_alphanumeric() || c == '/' || c == '&')
        {
            continue;
        }
        escape(&text[at..whole.start()], &mut out);
        match found.name("tag") {
            Some(tag) => out.push_str(&format!(r"{{hashtag|\#|{}}}", tag.as_str())),
            None => out.push_str(whole.as_str()),
        }
        at = whole.end();
    }
    escape(&text[at..], &mut out);
    out
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        if RESERVED.contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
}

/// Converts little text to plain text.
pub(super) fn plain(text: &str) -> String {
    static HASHTAG: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\{hashtag\|\\?#\|([^}]*)\}").expect("a pattern"));
    let text = HASHTAG.replace_all(text, r"\#${1}");
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => out.extend(rest.next()),
            c => out.push(c),
        }
    }
    out
}

/// A comment's text, as the comments API takes it.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Message {
    pub(super) text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<Attribute>,
}

/// A mention: the part of the text with the exact name, and the person or organization.
///
/// The documentation does not tell the unit of `start` and `length`. Published clients disagree; those that report
/// LinkedIn's behavior count UTF-16 code units. The units differ only behind a character outside the basic plane,
/// for example an emoji.
#[derive(Debug, PartialEq, Serialize)]
struct Attribute {
    start: usize,
    length: usize,
    value: Value,
}

/// Converts a text to a comment's.
pub(super) fn message(text: &str) -> Message {
    let units = |text: &str| text.encode_utf16().count();
    let mut message = Message { text: String::with_capacity(text.len()), attributes: Vec::new() };
    let (mut at, mut start) = (0, 0);
    for found in ELEMENTS.captures_iter(text) {
        let (Some(name), Some(urn)) = (found.name("name"), found.name("urn")) else { continue };
        let (whole, urn) = (found.get(0).expect("a match is whole"), urn.as_str());
        let before = &text[at..whole.start()];
        start += units(before);
        let length = units(name.as_str());
        let value = if urn.starts_with("urn:li:organization:") {
            json!({ "com.linkedin.common.CompanyAttributedEntity": { "company": urn } })
        } else {
            json!({ "com.linkedin.common.MemberAttributedEntity": { "member": urn } })
        };
        message.attributes.push(Attribute { start, length, value });
        message.text.push_str(before);
        message.text.push_str(name.as_str());
        start += length;
        at = whole.end();
    }
    message.text.push_str(&text[at..]);
    message
}

#[cfg(test)]
mod tests {
    use super::{little, mention, message, plain};
    use serde_json::json;

    #[test]
    fn a_comment_has_its_mentions_beside_the_text() {
        let text = "\u{1f680} @[Some One](urn:li:person:a_1), #see @[Dévtest](urn:li:organization:1)!";
        assert_eq!(
            json!(message(text)),
            json!({
                "text": "\u{1f680} Some One, #see Dévtest!",
                "attributes": [
                    {
                        "start": 3, "length": 8,
                        "value": { "com.linkedin.common.MemberAttributedEntity": { "member": "urn:li:person:a_1" } },
                    },
                    {
                        "start": 18, "length": 7,
                        "value": {
                            "com.linkedin.common.CompanyAttributedEntity": { "company": "urn:li:organization:1" },
                        },
                    },
                ],
            })
        );
        // Without mentions it is the text as it is, whatever little text reserves.
        let plain = r"a (b) #c \d @[e](urn:li:share:1)";
        assert_eq!(json!(message(plain)), json!({ "text": plain }));
    }

    #[test]
    fn a_mention_is_kept_by_little_text() {
        let text = mention("Dévtest, Inc.", "urn:li:organization:1").unwrap();
        assert_eq!(little(&text), text);
        for (name, urn) in [("", "urn:li:person:a"), ("A [B]", "urn:li:person:a"), ("A", "urn:li:share:1")] {
            assert_eq!(mention(name, urn), None, "{name} {urn}");
        }
    }

    #[test]
    fn little_text_escapes_reserved_characters_and_keeps_hashtags_and_mentions() {
        for (text, expected) in [
            ("plain. text, & more!", "plain. text, & more!"),
            (r"a (b) [c] {d} <e> |*_~\", r"a \(b\) \[c\] \{d\} \<e\> \|\*\_\~\\"),
            // Marks belong to the letters before them.
            ("#हिन्दी", r"{hashtag|\#|हिन्दी}"),
            ("#one and #zwei_drei", r"{hashtag|\#|one} and {hashtag|\#|zwei}\_drei"),
            ("a#b https://a.example/#c # d", r"a\#b https://a.example/\#c \# d"),
            ("me@example.com", r"me\@example.com"),
            ("with @[Some One](urn:li:person:aB_1-x) here", "with @[Some One](urn:li:person:aB_1-x) here"),
        ] {
            assert_eq!(little(text), expected);
            assert_eq!(plain(&little(text)), text);
        }
        assert_eq!(plain("{hashtag|#|one}"), "#one");
    }
}
