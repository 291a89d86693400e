//! Counting and rewriting of text: twitter-text configuration version 3
//! (<https://docs.x.com/fundamentals/counting-characters>), and `t.co` links.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::ops::Range;

/// Maximum weighted length of a post by an account without Premium.
pub(super) const LIMIT: usize = 280;
/// Maximum weighted length of a post by an account with Premium.
pub(super) const PREMIUM_LIMIT: usize = 25_000;

/// The length of any link.
const LINK_LENGTH: usize = 23;

/// Code points with weight one; all others have weight two.
const LIGHT_RANGES: [Range<u32>; 4] = [0..4352, 8192..8206, 8208..8224, 8242..8248];

/// Top-level domains that make a name a link, without country domains.
const TOP_LEVEL_DOMAINS: &[&str] = &[
    "academy",
    "agency",
    "app",
    "art",
    "asia",
    "band",
    "bar",
    "best",
    "bio",
    "biz",
    "blog",
    "book",
    "cafe",
    "care",
    "careers",
    "cat",
    "center",
    "chat",
    "city",
    "cloud",
    "club",
    "codes",
    "coffee",
    "com",
    "community",
    "company",
    "consulting",
    "coop",
    "design",
    "dev",
    "digital",
    "direct",
    "domains",
    "earth",
    "edu",
    "education",
    "email",
    "energy",
    "events",
    "expert",
    "family",
    "fashion",
    "film",
    "finance",
    "fit",
    "fm",
    "foundation",
    "fun",
    "fund",
    "fyi",
    "gallery",
    "games",
    "global",
    "gov",
    "green",
    "group",
    "guide",
    "guru",
    "health",
    "help",
    "host",
    "house",
    "inc",
    "info",
    "ink",
    "institute",
    "int",
    "international",
    "jobs",
    "land",
    "lgbt",
    "life",
    "link",
    "live",
    "lol",
    "london",
    "ltd",
    "love",
    "market",
    "marketing",
    "media",
    "mil",
    "mobi",
    "money",
    "movie",
    "museum",
    "name",
    "net",
    "network",
    "news",
    "ngo",
    "nyc",
    "one",
    "online",
    "org",
    "page",
    "paris",
    "partners",
    "party",
    "photo",
    "photography",
    "photos",
    "pics",
    "place",
    "plus",
    "post",
    "press",
    "pro",
    "productions",
    "pub",
    "radio",
    "red",
    "reviews",
    "rocks",
    "run",
    "sale",
    "school",
    "science",
    "services",
    "shop",
    "show",
    "site",
    "social",
    "software",
    "solutions",
    "space",
    "studio",
    "style",
    "support",
    "systems",
    "team",
    "tech",
    "technology",
    "tips",
    "today",
    "tools",
    "top",
    "tours",
    "town",
    "travel",
    "tube",
    "university",
    "video",
    "vip",
    "watch",
    "website",
    "wedding",
    "wiki",
    "work",
    "works",
    "world",
    "xxx",
    "xyz",
    "zone",
];

/// Country domains.
const COUNTRY_DOMAINS: &str = "ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs \
    bt bv bw by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi \
    fj fk fm fo fr ga gb gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir \
    is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn \
    mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw \
    py qa re ro rs ru rw sa sb sc sd se sg sh si sj sk sl sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk tl tm \
    tn to tr tt tv tw tz ua ug uk us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw";

/// Returns the weighted length of a text.
pub(super) fn weighted_length(text: &str) -> usize {
    let text = crate::unicode::nfc(text);
    let mut weight = 0;
    let mut end = 0;
    for link in links(&text) {
        weight += plain(&text[end..link.start]) + LINK_LENGTH * 100;
        end = link.end;
    }
    (weight + plain(&text[end..])) / 100
}

fn plain(text: &str) -> usize {
    crate::unicode::graphemes(text)
        .into_iter()
        .map(|cluster| if is_emoji(cluster) { 200 } else { cluster.chars().map(weight).sum() })
        .sum()
}

fn weight(c: char) -> usize {
    if LIGHT_RANGES.iter().any(|range| range.contains(&u32::from(c))) { 100 } else { 200 }
}

/// Returns whether a cluster is an emoji, which counts as one sign.
fn is_emoji(cluster: &str) -> bool {
    let mut chars = cluster.chars();
    let first = chars.next().map_or(0, u32::from);
    let is_pictographic =
        matches!(first, 0x1F000..=0x1FAFF | 0x2600..=0x27BF | 0x2B00..=0x2BFF | 0x2300..=0x23FF);
    is_pictographic || chars.any(|c| matches!(c, '\u{fe0f}' | '\u{20e3}'))
}

/// Returns the links in a text: with or without a scheme, and with a valid top-level domain.
pub(super) fn links(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let before = text[..at].chars().next_back();
        let is_start = before.is_none_or(|c| !(c.is_alphanumeric() || "@#$_-./".contains(c)));
        if let Some(length) = is_start.then(|| link(&text[at..])).flatten() {
            found.push(at..at + length);
            at += length;
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    found
}

/// Returns the length of the link that a text begins with.
fn link(text: &str) -> Option<usize> {
    let scheme = ["https://", "http://"]
        .iter()
        .find(|scheme| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
        .map_or(0, |scheme| scheme.len());
    let rest = &text[scheme..];
    let host = rest.find(|c: char| !(c.is_alphanumeric() || c == '-' || c == '.')).unwrap_or(rest.len());
    // A full stop after the name ends the sentence.
    let host = rest[..host].trim_end_matches(['.', '-']).len();
    let labels: Vec<&str> = rest[..host].split('.').collect();
    if labels.len() < 2 || labels.iter().any(|label| label.is_empty()) || !is_domain(labels[labels.len() - 1])
    {
        return None;
    }
    let mut end = scheme + host;
    if let Some(port) = text[end..].strip_prefix(':') {
        let digits = port.find(|c: char| !c.is_ascii_digit()).unwrap_or(port.len());
        if digits > 0 {
            end += 1 + digits;
        }
    }
    if text[end..].starts_with(['/', '?', '#']) {
        let tail = &text[end..];
        let length = tail.find(|c: char| c.is_whitespace() || "<>\"".contains(c)).unwrap_or(tail.len());
        let tail = tail[..length].trim_end_matches(['.', ',', ':', ';', '!', '?', '\'']);
        // A bracket that was opened before the link is not part of it.
        let tail = if tail.ends_with(')') && !tail.contains('(') { tail.trim_end_matches(')') } else { tail };
        end += tail.len();
    }
    Some(end)
}

fn is_domain(label: &str) -> bool {
    let label = label.to_ascii_lowercase();
    let is_country = label.len() == 2 && COUNTRY_DOMAINS.split_whitespace().any(|country| country == label);
    is_country || TOP_LEVEL_DOMAINS.contains(&label.as_str())
}

/// A text as the API returns it: with shortened links, escaped characters and the entities of the links.
pub(super) struct Rendered {
    pub(super) text: String,
    /// `entities.urls`.
    pub(super) urls: Vec<Value>,
}

/// Rewrites the text of a post; a post with media ends with a link to it.
pub(super) fn render(post: &str, text: &str, media: Option<(String, Vec<String>)>) -> Rendered {
    let mut rendered = Rendered { text: String::new(), urls: Vec::new() };
    let mut end = 0;
    for link in links(text) {
        rendered.text.push_str(&escape(&text[end..link.start]));
        let target = &text[link.clone()];
        let expanded = if target.contains("://") { target.to_owned() } else { format!("http://{target}") };
        rendered.put(post, &expanded, target, None);
        end = link.end;
    }
    rendered.text.push_str(&escape(&text[end..]));
    if let Some((address, keys)) = media {
        if !rendered.text.is_empty() {
            rendered.text.push(' ');
        }
        let shown = address.trim_start_matches("https://").to_owned();
        // One link stands for all media; each has its own entity.
        let before = rendered.text.len();
        for key in keys {
            rendered.text.truncate(before);
            rendered.put(post, &address, &shown, Some(&key));
        }
    }
    rendered
}

impl Rendered {
    /// Returns the beginning of a long text, as lists contain it.
    pub(super) fn shortened(&self) -> String {
        let beginning: String = self.text.chars().take(LIMIT - 1).collect();
        format!("{beginning}…")
    }

    fn put(&mut self, post: &str, expanded: &str, shown: &str, media_key: Option<&str>) {
        let digest = Sha256::digest(format!("{post}\n{expanded}"));
        let code: String =
            digest[..10].iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % 62])).collect();
        let url = format!("https://t.co/{code}");
        let start = self.text.chars().count();
        self.text.push_str(&url);
        let shown = shown.trim_start_matches("https://").trim_start_matches("http://");
        let mut entity = json!({
            "start": start,
            "end": start + url.chars().count(),
            "url": url,
            "expanded_url": expanded,
            "display_url": shorten(shown),
        });
        if let Some(key) = media_key {
            entity["media_key"] = json!(key);
        }
        self.urls.push(entity);
    }
}

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

fn shorten(text: &str) -> String {
    if text.chars().count() <= 27 {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(26).collect();
    short.push('…');
    short
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_weighed() {
        for (text, weight) in [
            ("", 0),
            ("hello", 5),
            ("日本", 4),
            ("e\u{301}", 1),
            ("👍", 2),
            ("👨‍👩‍👧‍👦", 2),
            ("🇩🇪🇫🇷", 4),
            ("1️⃣", 2),
            ("see https://example.com/a/very/long/path?with=query#and-more, ok", 4 + 23 + 4),
            ("see example.com.", 4 + 23 + 1),
            ("me@example.com", 14),
            ("file.unknowntld", 15),
            ("http://localhost", 16),
        ] {
            assert_eq!(weighted_length(text), weight, "{text}");
        }
    }

    #[test]
    fn links_are_shortened_and_text_is_escaped() {
        let rendered = render(
            "1",
            "a < b & https://example.com/x",
            Some(("https://x.com/a/status/1/photo/1".into(), vec!["3_9".into()])),
        );
        assert!(rendered.text.starts_with("a &lt; b &amp; https://t.co/"));
        assert_eq!(rendered.urls.len(), 2);
        assert_eq!(rendered.urls[0]["expanded_url"], "https://example.com/x");
        assert_eq!(rendered.urls[1]["media_key"], "3_9");
        for url in &rendered.urls {
            let (start, end) =
                (url["start"].as_u64().unwrap() as usize, url["end"].as_u64().unwrap() as usize);
            let cut: String = rendered.text.chars().skip(start).take(end - start).collect();
            assert_eq!(url["url"], cut);
        }
    }
}
