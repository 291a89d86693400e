//! Previews that look like each platform's posts: one markup, which the style sheet lays out for each.

use crate::media::Thumb;
use domain::appearance;
use serde_json::Value;

/// Number of pictures that a preview shows.
const MAX_PICTURES: usize = 4;

/// A post as its platform would show it.
pub(crate) struct Mock {
    /// Platform id.
    pub(crate) platform: &'static str,
    /// Display name of the account.
    pub(crate) name: String,
    /// The name as the platform writes it, such as `@ada`.
    pub(crate) handle: String,
    /// First letter of the name, in place of a picture.
    pub(crate) initial: String,
    /// Place where it is shown, such as a subreddit; may be empty.
    pub(crate) place: String,
    /// Title, on platforms that have one.
    pub(crate) title: String,
    /// Text.
    pub(crate) text: String,
    /// Pictures, of which the first few are shown.
    pub(crate) media: Vec<Thumb>,
    /// Number of files that are not shown.
    pub(crate) more: usize,
    /// A link, a poll or a button below the text; may be empty.
    pub(crate) note: String,
    /// True for a story, a reel or a short: upright, with the text on it.
    pub(crate) is_upright: bool,
    /// True for a comment or an entry of a thread.
    pub(crate) is_reply: bool,
    /// Actions of viewers.
    pub(crate) actions: &'static [&'static str],
}

impl Mock {
    /// Returns the preview of a text with media.
    pub(crate) fn of(
        platform: &'static str,
        (name, username): (&str, &str),
        text: &str,
        mut media: Vec<Thumb>,
        settings: &Value,
        is_reply: bool,
    ) -> Self {
        let given = |key: &str| settings[key].as_str().unwrap_or_default().trim();
        let (mut title, mut text) = (String::new(), text.to_owned());
        if !is_reply && ["youtube", "pinterest", "reddit", "tiktok"].contains(&platform) {
            given("title").clone_into(&mut title);
            // The first line is the title where none is given.
            if title.is_empty() && ["youtube", "reddit"].contains(&platform) {
                let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
                (title, text) = (first.to_owned(), rest.trim_start().to_owned());
            }
        }
        let place = match (platform, is_reply) {
            ("reddit", false) if !given("subreddit").is_empty() => {
                format!("r/{}", given("subreddit").trim_start_matches('/').trim_start_matches("r/"))
            }
            ("reddit", false) => format!("u/{username}"),
            ("pinterest", false) => "Board".to_owned(),
            _ => String::new(),
        };
        let poll = settings["poll"]["options"].as_array();
        let poll =
            poll.map(|options| options.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" · "));
        let button = settings["callToAction"]["actionType"].as_str().map(|text| text.replace('_', " "));
        let link = settings["link"]["title"].as_str().or(settings["link"]["url"].as_str());
        let link = link.or(settings["link"].as_str()).map(str::to_owned);
        let markdown = || {
            let is_markdown = platform == "reddit" && given("text_format") == "markdown";
            is_markdown.then(|| "Reddit reads this text as Markdown.".to_owned())
        };
        let note = if is_reply { None } else { poll.or(button).or(link) }.or_else(markdown);
        let is_upright = !is_reply
            && (platform == "tiktok"
                || ["STORIES", "REELS"].contains(&given("media_type"))
                || settings["isShort"] == true);
        let more = media.len().saturating_sub(MAX_PICTURES);
        media.truncate(MAX_PICTURES);
        Self {
            platform,
            name: name.to_owned(),
            handle: appearance::handle(platform, username),
            initial: appearance::initial(name),
            place,
            title,
            text,
            media,
            more,
            note: note.unwrap_or_default(),
            is_upright,
            is_reply,
            actions: appearance::actions(platform),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_platform_has_a_preview_of_its_own() {
        for platform in platforms::all() {
            let mock = Mock::of(platform.id, ("Ada", "ada"), "One\nTwo", Vec::new(), &json!({}), false);
            assert!(!mock.actions.is_empty() && mock.initial == "A", "{}", platform.id);
            let style = include_str!("../../look/platforms.css");
            assert!(style.contains(&format!(".mock.{}", platform.id)), "{}", platform.id);
        }
        let reddit = Mock::of(
            "reddit",
            ("Ada", "ada"),
            "One\nTwo",
            Vec::new(),
            &json!({ "subreddit": "r/cats" }),
            false,
        );
        assert_eq!((&*reddit.title, &*reddit.text, &*reddit.place), ("One", "Two", "r/cats"));
        for (format, note) in [("plain", ""), ("markdown", "Reddit reads this text as Markdown.")] {
            let settings = json!({ "text_format": format });
            let comment = Mock::of("reddit", ("Ada", "ada"), "# One", Vec::new(), &settings, true);
            assert_eq!((&*comment.text, &*comment.note), ("# One", note));
        }
        let story =
            Mock::of("instagram", ("Ada", "ada"), "", Vec::new(), &json!({ "media_type": "STORIES" }), false);
        assert!(story.is_upright);
    }
}
