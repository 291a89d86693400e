//! Kind, title and text of a post.
//!
//! Every post has a title, which is the first line of a text without the setting, and a kind, which follows from its media
//! and settings. The check, the calls and the search for a lost post take both from here.

use super::{Kind, MAX_GALLERY, MAX_TITLE, Poll, Settings, given, ids::named_post};
use crate::{Media, MediaKind, PublishRequest, Result, text};
use domain::Failure;
use std::borrow::Cow;

/// Kind of post, by media and settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PostKind {
    Text,
    Link(String),
    /// A crosspost of the post with this full name.
    Crosspost(String),
    Picture,
    Gallery,
    Poll(Poll),
    Video,
    /// A video without sound that repeats.
    Videogif,
}

impl PostKind {
    /// Returns the kind of a post, or an error message.
    pub(super) fn of(media: &[Media], text: &str, settings: &Settings) -> Result<Self, String> {
        let (wanted, url) = (settings.kind, settings.url.as_deref());
        let videos = media.iter().filter(|medium| medium.kind == MediaKind::Video).count();
        let gifs = media.iter().any(|medium| medium.kind == MediaKind::Gif);
        if settings.poll.is_some() && !(media.is_empty() && url.is_none()) {
            return Err("a poll takes neither media nor a `url`".into());
        }
        if url.is_some() && !(media.is_empty() && wanted.is_none_or(|kind| kind == Kind::Link)) {
            return Err("only a link without media takes a `url`".into());
        }
        let kind = match (media.len(), videos) {
            // An invalid one is told by itself.
            _ if settings.crosspost.is_some() => {
                let written = settings.crosspost.as_deref().unwrap_or_default();
                Self::Crosspost(named_post(written).unwrap_or_default())
            }
            (0, _) if settings.poll.is_none() && (url.is_some() || wanted == Some(Kind::Link)) => {
                let links = || text::links(text).into_iter().filter(|link| link.scheme);
                let first = || links().map(|link| &text[link.range]).find(|url| text::is_web_address(url));
                let url = url.or_else(first);
                Self::Link(url.ok_or("a link needs a `url`, or a valid one in its text")?.to_owned())
            }
            (0, _) if wanted == Some(Kind::Crosspost) => {
                return Err("a crosspost needs `crosspost`".into());
            }
            (0, _) if wanted == Some(Kind::Poll) && settings.poll.is_none() => {
                return Err("a poll needs options".into());
            }
            (0, _) => settings.poll.clone().map_or(Self::Text, Self::Poll),
            (1 | 2, 1) if !gifs && wanted == Some(Kind::Videogif) => Self::Videogif,
            (1 | 2, 1) if !gifs => Self::Video,
            (_, 1..) => return Err("a video takes one image beside it, its poster, and nothing else".into()),
            (1, 0) => Self::Picture,
            (2..=MAX_GALLERY, 0) => Self::Gallery,
            (count, 0) => {
                return Err(format!("a gallery takes at most {MAX_GALLERY} pictures, and there are {count}"));
            }
        };
        match wanted {
            Some(wanted) if wanted != kind.kind() => {
                Err(format!("the kind is to be {wanted}, and the media make it {}", kind.kind()))
            }
            _ => Ok(kind),
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Text => Kind::Text,
            Self::Link(_) => Kind::Link,
            Self::Crosspost(_) => Kind::Crosspost,
            Self::Picture => Kind::Image,
            Self::Gallery => Kind::Gallery,
            Self::Poll(_) => Kind::Poll,
            Self::Video => Kind::Video,
            Self::Videogif => Kind::Videogif,
        }
    }
}

pub(super) fn post_kind(post: &PublishRequest, settings: &Settings) -> Result<PostKind> {
    PostKind::of(&post.media, &post.text, settings).map_err(|message| Failure::rejected(422, message))
}

/// Returns the title, and the text below it.
pub(super) fn title_and_text<'a>(
    whole: &'a str,
    media: &[Media],
    settings: &Settings,
) -> (String, Cow<'a, str>) {
    if let Some(title) = given(&settings.title) {
        return (title.trim().to_owned(), Cow::Borrowed(whole));
    }
    let text = whole.trim();
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let first = first.trim();
    match first.chars().count() {
        0 => {
            let name = media.first().map_or("", |media| media.filename.as_str());
            let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem).trim();
            let stem = if stem.is_empty() { "Untitled" } else { stem };
            (text::shorten(stem, MAX_TITLE).0.into_owned(), Cow::Borrowed(""))
        }
        1..=MAX_TITLE => (first.to_owned(), Cow::Borrowed(rest.trim())),
        _ => (text::shorten(first, MAX_TITLE).0.into_owned(), Cow::Borrowed(whole)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;
    use serde_json::{Value, json};
    use uuid::Uuid;

    fn post(text: &str, settings: Value) -> PublishRequest {
        PublishRequest { text: text.to_owned(), settings, ..PublishRequest::of_test() }
    }

    fn media(kind: MediaKind) -> Media {
        Media {
            id: Uuid::nil(),
            kind,
            mime: String::new(),
            filename: "a film.of mine.mp4".into(),
            size_bytes: 1,
            width: None,
            height: None,
            frames: None,
            duration: None,
            alt_text: None,
            facts: None,
            rendition: None,
        }
    }

    #[test]
    fn the_title_is_the_setting_or_the_first_line() {
        let long = "l".repeat(MAX_TITLE + 1);
        let cut = format!("{}…", "l".repeat(MAX_TITLE - 1));
        for (text, settings, title, below) in [
            ("text", json!({ "title": "A title" }), "A title", "text"),
            ("one line", json!({}), "one line", ""),
            ("\n first \n\nsecond\nthird ", json!({}), "first", "second\nthird"),
            (&long, json!({}), &cut, &long),
            ("", json!({}), "Untitled", ""),
        ] {
            let post = post(text, settings);
            assert_eq!(
                title_and_text(&post.text, &post.media, &post.settings().unwrap()),
                (title.to_owned(), Cow::Borrowed(below)),
                "{text}"
            );
        }
        let mut film = post(" ", json!({}));
        film.media = vec![media(MediaKind::Video)];
        assert_eq!(title_and_text(&film.text, &film.media, &film.settings().unwrap()).0, "a film.of mine");
    }

    #[test]
    fn the_kind_of_a_post_follows_from_media_and_settings() {
        use MediaKind::{Gif, Image, Video};
        let kind = |media: &[Media], text: &str, settings: &Value| {
            PostKind::of(media, text, &schema::read(settings).expect("the settings of a test"))
        };
        for (kinds, settings, word) in [
            (&[][..], json!({}), Some("self")),
            (&[], json!({ "kind": "self" }), Some("self")),
            (&[], json!({ "url": "https://example.com" }), Some("link")),
            (&[], json!({ "kind": "link" }), Some("link")),
            (&[], json!({ "kind": "self", "url": "https://example.com" }), None),
            (&[], json!({ "crosspost": "4bbe4b" }), Some("crosspost")),
            (&[], json!({ "crosspost": "4bbe4b", "kind": "crosspost" }), Some("crosspost")),
            (&[], json!({ "crosspost": "4bbe4b", "kind": "self" }), None),
            (&[], json!({ "kind": "crosspost" }), None),
            (&[], json!({ "poll": { "options": ["a", "b"] } }), Some("poll")),
            (&[], json!({ "kind": "poll" }), None),
            (&[], json!({ "kind": "self", "poll": { "options": ["a", "b"] } }), None),
            (&[], json!({ "url": "https://example.com", "poll": { "options": ["a", "b"] } }), None),
            (&[Image], json!({ "poll": { "options": ["a", "b"] } }), None),
            (&[], json!({ "kind": "image" }), None),
            (&[Image], json!({}), Some("image")),
            (&[Gif], json!({ "kind": "image" }), Some("image")),
            (&[Image], json!({ "kind": "gallery" }), None),
            (&[Image], json!({ "url": "https://example.com" }), None),
            (&[Image, Gif], json!({}), Some("gallery")),
            (&[Image; 21], json!({}), None),
            (&[Video], json!({}), Some("video")),
            (&[Video], json!({ "kind": "videogif" }), Some("videogif")),
            (&[Video, Image], json!({}), Some("video")),
            (&[Video, Gif], json!({}), None),
            (&[Video, Image, Image], json!({}), None),
            (&[Video], json!({ "kind": "self" }), None),
        ] {
            let media: Vec<_> = kinds.iter().copied().map(media).collect();
            let kind = kind(&media, "see https://example.com/a.", &settings);
            assert_eq!(
                kind.as_ref().ok().map(|kind| kind.kind().as_str()),
                word,
                "{kinds:?} {settings} {kind:?}"
            );
        }
        let link = kind(&[], "see https://example.com/a.", &json!({ "kind": "link" }));
        assert_eq!(link, Ok(PostKind::Link("https://example.com/a".into())));
        assert!(kind(&[], "see example.com", &json!({ "kind": "link" })).is_err());
        // There is no such port.
        let text = "see https://example.com:99999/a";
        assert!(kind(&[], text, &json!({ "kind": "link" })).is_err());
        let link = kind(&[], &format!("{text} https://example.com/b"), &json!({ "kind": "link" }));
        assert_eq!(link, Ok(PostKind::Link("https://example.com/b".into())));
    }
}
