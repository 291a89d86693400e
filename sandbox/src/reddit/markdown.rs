//! Markdown as Reddit shows it: CommonMark with tables, strikethrough and addresses as links, and Reddit's own
//! superscripts (`^word`, `^(words)`) and spoilers (`>!words!<`). HTML is shown as it is written, and so are images but
//! for their text, which leads to them. <https://support.reddithelp.com/hc/articles/360043033952>,
//! <https://github.com/reddit/snudown>

use comrak::{
    Arena, Options, format_html,
    nodes::{Node, NodeValue},
    parse_document,
};

/// Takes the place of the `>!` that begins a line, which is no quotation.
const SPOILER: char = '\u{E000}';

/// Part of a text.
enum Part<'a> {
    Text(&'a str),
    Superscript(&'a str),
    Spoiler(&'a str),
}

/// Returns what readers see of a text, as HTML.
pub(crate) fn html(text: &str) -> String {
    let mut options = Options::default();
    options.extension.strikethrough = true;
    options.extension.table = true;
    options.extension.autolink = true;
    // Tells an escaped sign from one that has a meaning.
    options.parse.escaped_char_spans = true;
    options.render.escape = true;
    let arena = Arena::new();
    let text: Vec<_> = text.split('\n').map(block_signs).collect();
    let root = parse_document(&arena, &text.join("\n"), &options);
    let all: Vec<_> = root.descendants().collect();
    for node in all {
        let value = node.data().value.clone();
        match value {
            NodeValue::Image(link) => node.data_mut().value = NodeValue::Link(link),
            NodeValue::Text(text) if !is_literal(node) => {
                for part in parts(&text) {
                    let (parent, text) = match part {
                        Part::Text(text) => (None, text),
                        Part::Superscript(text) => (Some(NodeValue::Superscript), text),
                        Part::Spoiler(text) => (Some(NodeValue::SpoileredText), text),
                    };
                    let text = arena.alloc(NodeValue::Text(text.to_owned().into()).into());
                    match parent.map(|parent| arena.alloc(parent.into())) {
                        Some(parent) => {
                            parent.append(text);
                            node.insert_before(parent);
                        }
                        None => node.insert_before(text),
                    }
                }
                node.detach();
            }
            _ => {}
        }
    }
    let mut html = String::new();
    format_html(root, &options, &mut html).expect("writing to a string does not fail");
    html.replace(SPOILER, "&gt;!")
}

/// Returns whether a text is shown as it is: an escaped sign, or an address that is a link.
fn is_literal(node: Node<'_>) -> bool {
    node.parent().is_some_and(|parent| matches!(parent.data().value, NodeValue::Escaped | NodeValue::Link(_)))
}

/// Returns a line as CommonMark reads it: a heading of Reddit needs no blank after its signs.
fn block_signs(line: &str) -> String {
    if let Some(rest) = line.strip_prefix(">!") {
        return format!("{SPOILER}{rest}");
    }
    let rest = line.trim_start_matches('#');
    match line.len() - rest.len() {
        1..=6 if !rest.starts_with([' ', '\t']) && !rest.is_empty() => {
            format!("{} {rest}", &line[..line.len() - rest.len()])
        }
        _ => line.to_owned(),
    }
}

/// Splits a text at its superscripts and spoilers.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut all = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let spoiler = [">!", "\u{E000}"].into_iter().find_map(|begin| {
            let (before, inside) = rest.split_once(begin)?;
            let (inside, after) = inside.split_once("!<")?;
            Some((before, Part::Spoiler(inside), after))
        });
        let superscript = rest.split_once('^').and_then(|(before, inside)| {
            let group = inside.strip_prefix('(').and_then(|inside| inside.split_once(')'));
            let end = inside.find(char::is_whitespace).unwrap_or(inside.len());
            let (inside, after) = group.unwrap_or_else(|| inside.split_at(end));
            (!inside.is_empty()).then_some((before, Part::Superscript(inside), after))
        });
        let first = [spoiler, superscript].into_iter().flatten().min_by_key(|(before, ..)| before.len());
        let Some((before, part, after)) = first else {
            all.push(Part::Text(rest));
            break;
        };
        all.extend([Part::Text(before), part]);
        rest = after;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_shown_as_reddit_shows_it() {
        for (text, shown) in [
            ("Monday: soup\nTuesday: salad", "<p>Monday: soup\nTuesday: salad</p>\n"),
            ("a  \nb", "<p>a<br />\nb</p>\n"),
            ("#soup\n#", "<h1>soup</h1>\n<h1></h1>\n"),
            ("1) one", "<ol>\n<li>one</li>\n</ol>\n"),
            ("*a* ~~b~~ a^b c^(d e)", "<p><em>a</em> <del>b</del> a<sup>b</sup> c<sup>d e</sup></p>\n"),
            (r"\*a\* \^b", "<p>*a* ^b</p>\n"),
            (">!a!< b", "<p><span class=\"spoiler\">a</span> b</p>\n"),
            ("a >!b!<", "<p>a <span class=\"spoiler\">b</span></p>\n"),
            (">!a", "<p>&gt;!a</p>\n"),
            ("<b>a</b>", "<p>&lt;b&gt;a&lt;/b&gt;</p>\n"),
            ("![a](https://a.example)", "<p><a href=\"https://a.example\">a</a></p>\n"),
            ("https://a.example/b_c", "<p><a href=\"https://a.example/b_c\">https://a.example/b_c</a></p>\n"),
            ("    a", "<pre><code>a\n</code></pre>\n"),
        ] {
            assert_eq!(html(text), shown, "{text}");
        }
    }
}
