//! Little text, read as LinkedIn reads it:
//! <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/little-text-format>.

/// Characters that mean something unless a backslash stands before them.
const RESERVED: &str = r"|{}@[]()<>#\*_~";

/// What a text says. Where it breaks the format it ends, without a word of warning.
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

/// A hashtag or a mention at the beginning of a text, as it is shown, and how long it is written.
fn element(text: &str) -> Option<(String, usize)> {
    let word = |text: &str| text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
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

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_reserved_character_ends_a_text_unless_it_is_escaped() {
        assert_eq!(plain("one (two) three"), "one ");
        assert_eq!(plain(r"one \(two\) three"), "one (two) three");
        assert_eq!(plain(r"{hashtag|\#|tag}\-x"), "#tag");
        assert_eq!(plain(r"{hashtag|\#|tag} and #bare @[A B](urn:li:person:1)!"), "#tag and #bare @A B!");
        assert_eq!(plain(r"100% a\_b \\"), r"100% a_b \");
    }
}
