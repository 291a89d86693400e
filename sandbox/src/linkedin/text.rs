//! Little text, read as LinkedIn reads it:
//! <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/little-text-format>.
//! The text of a comment, which is plain and has its mentions beside it:
//! <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/comments-api>.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Characters with a meaning, unless escaped by a backslash.
const RESERVED: &str = r"|{}@[]()<>#\*_~";

/// Returns the plain text. It ends, without an error, where the format is violated.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(tail) = rest.strip_prefix('\\') {
            let Some(escaped) = tail.chars().next().filter(|c| RESERVED.contains(*c)) else { break };
            out.push(escaped);
            rest = &tail[escaped.len_utf8()..];
        } else if let Some((shown, length)) = element(rest) {
            out.push_str(&shown);
            rest = &rest[length..];
        } else if RESERVED.contains(c) {
            break;
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// Returns the hashtag or mention that a text begins with, as it is shown, and its length in the source.
fn element(text: &str) -> Option<(String, usize)> {
    let belongs = |c: char| c.is_alphanumeric() || crate::unicode::is_mark(c);
    let word = |text: &str| text.find(|c: char| !belongs(c)).unwrap_or(text.len());
    if let Some(rest) = text.strip_prefix(r"{hashtag|\#|").or_else(|| text.strip_prefix("{hashtag|#|")) {
        let end = rest.find('}').filter(|end| *end > 0 && word(rest) == *end)?;
        return Some((format!("#{}", &rest[..end]), text.len() - rest.len() + end + 1));
    }
    if let Some(rest) = text.strip_prefix('#') {
        let end = word(rest);
        return (end > 0).then(|| (format!("#{}", &rest[..end]), end + 1));
    }
    let rest = text.strip_prefix("@[")?;
    let (name, rest) = rest.split_once("](")?;
    let (urn, _) = rest.split_once(')')?;
    let is_urn = urn.starts_with("urn:li:person:") || urn.starts_with("urn:li:organization:");
    let length = "@[".len() + name.len() + "](".len() + urn.len() + ")".len();
    (is_urn && !name.contains(['[', ']'])).then(|| (format!("@{name}"), length))
}

/// A mention in a comment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Mention {
    /// Person or organization.
    pub(super) urn: String,
    /// The part of the text that becomes a link.
    pub(super) words: String,
}

/// Reads the `attributes` of a comment's text, or tells what is wrong with them. They count in UTF-16 code units.
pub(super) fn mentions(text: &str, attributes: &Value) -> Result<Vec<Mention>, String> {
    const ENTITIES: [(&str, &str, &str); 2] = [
        ("com.linkedin.common.CompanyAttributedEntity", "company", "urn:li:organization:"),
        ("com.linkedin.common.MemberAttributedEntity", "member", "urn:li:person:"),
    ];
    let units: Vec<u16> = text.encode_utf16().collect();
    let attributes = match attributes {
        Value::Null => &[][..],
        Value::Array(attributes) => attributes,
        _ => return Err("message.attributes has to be an array".to_owned()),
    };
    let mention = |attribute: &Value| {
        let number = |name: &str| attribute[name].as_u64().and_then(|number| usize::try_from(number).ok());
        let (start, length) = (number("start")?, number("length")?);
        let words = units.get(start..start.checked_add(length)?).filter(|words| !words.is_empty())?;
        let value = attribute["value"].as_object().filter(|value| value.len() == 1)?;
        let urn = ENTITIES.iter().find_map(|(entity, name, prefix)| {
            value.get(*entity)?[*name]
                .as_str()
                .filter(|urn| urn.len() > prefix.len() && urn.starts_with(prefix))
        })?;
        Some(Mention { urn: urn.to_owned(), words: String::from_utf16(words).ok()? })
    };
    let read = |attribute: &Value| {
        mention(attribute).ok_or_else(|| format!("{attribute} is no mention of a part of message.text"))
    };
    attributes.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::{Mention, mentions, plain};
    use serde_json::json;

    #[test]
    fn a_mention_is_a_part_of_the_text() {
        let text = "\u{1f680} bob Works";
        let attribute = |start: i64, length: i64, value: serde_json::Value| json!([{ "start": start, "length": length, "value": value }]);
        let page =
            json!({ "com.linkedin.common.CompanyAttributedEntity": { "company": "urn:li:organization:1" } });
        assert_eq!(
            mentions(text, &attribute(3, 9, page.clone())).unwrap(),
            [Mention { urn: "urn:li:organization:1".into(), words: "bob Works".into() }]
        );
        for wrong in [
            attribute(3, 10, page.clone()),
            attribute(3, 0, page.clone()),
            attribute(-1, 2, page.clone()),
            // Half of a character.
            attribute(1, 4, page),
            attribute(
                3,
                9,
                json!({ "com.linkedin.common.MemberAttributedEntity": { "member": "urn:li:share:1" } }),
            ),
            attribute(3, 9, json!({ "company": "urn:li:organization:1" })),
            json!("bob"),
        ] {
            assert!(mentions(text, &wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_reserved_character_ends_a_text_unless_it_is_escaped() {
        assert_eq!(plain("one (two) three"), "one ");
        assert_eq!(plain(r"one \(two\) three"), "one (two) three");
        assert_eq!(plain(r"{hashtag|\#|tag}\-x"), "#tag");
        assert_eq!(plain(r"{hashtag|\#|tag} and #bare @[A B](urn:li:person:1)!"), "#tag and #bare @A B!");
        assert_eq!(plain(r"100% a\_b \\"), r"100% a_b \");
    }
}
