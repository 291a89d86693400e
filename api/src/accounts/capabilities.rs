//! What an account's platform accepts, as the tables that validation and the adapters read say it.

use crate::types::{
    enum_string::{EnumString, Platform},
    json_object::{JsonObject, json_object},
};
use platforms::{Capabilities, Content, MediaKind, MediaLimit, Publishing, Replies};
use poem_openapi::{Enum, Object};

/// What an account accepts.
#[derive(Debug, Object)]
#[oai(rename = "SocialAccountCapabilities")]
pub struct Accepted {
    /// The account's platform.
    pub platform: EnumString<Platform>,
    /// How long the text of a container may be.
    pub text: Text,
    /// What a container must hold.
    pub content: Holds,
    /// What media a container may hold; a kind that is not listed is not accepted.
    pub media: Vec<Medium>,
    /// Whether media of different kinds may stand in one container.
    pub mixed_media: bool,
    /// Longest alt text, in characters; null where the platform takes none.
    #[oai(nullable)]
    pub max_alt_text_length: Option<usize>,
    /// What may follow the main container.
    pub replies: Follows,
    /// How the platform publishes.
    pub publishing: Publishes,
    /// The lists that `options/{kind}` gives.
    pub options: Vec<String>,
    /// Whether engagement can be read.
    pub analytics: bool,
    /// Whether earlier posts can be imported.
    pub history: bool,
    /// Whether published posts can be removed from the platform.
    pub deletion: bool,
    /// The JSON Schema of the platform's block in `config`.
    pub config_schema: JsonObject,
}

/// How long a text may be.
#[derive(Debug, Object)]
#[oai(rename = "TextCapability")]
pub struct Text {
    /// The most units.
    pub max_length: usize,
    /// What a unit is, for example `graphemes`.
    pub unit: String,
    /// A second limit in UTF-8 bytes, where the platform has one.
    #[oai(nullable)]
    pub max_bytes: Option<usize>,
}

/// What media of one kind a container may hold.
#[derive(Debug, Object)]
#[oai(rename = "MediaCapability")]
pub struct Medium {
    /// The kind.
    pub kind: EnumString<MediaKind>,
    /// The fewest where there are any.
    pub min_count: usize,
    /// The most.
    pub max_count: usize,
    /// Content types that are taken.
    pub content_types: Vec<String>,
    /// The largest size.
    pub max_bytes: u64,
    /// The shortest duration.
    #[oai(nullable)]
    pub min_duration_ms: Option<u64>,
    /// The longest duration.
    #[oai(nullable)]
    pub max_duration_ms: Option<u64>,
    /// The smallest width, in pixels.
    #[oai(nullable)]
    pub min_width: Option<u32>,
    /// The largest width, in pixels.
    #[oai(nullable)]
    pub max_width: Option<u32>,
    /// The smallest height, in pixels.
    #[oai(nullable)]
    pub min_height: Option<u32>,
    /// The largest height, in pixels.
    #[oai(nullable)]
    pub max_height: Option<u32>,
    /// The smallest width over height.
    #[oai(nullable)]
    pub min_aspect_ratio: Option<f64>,
    /// The largest width over height.
    #[oai(nullable)]
    pub max_aspect_ratio: Option<f64>,
}

/// What a container must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
#[oai(rename = "ContentCapability", rename_all = "snake_case")]
pub enum Holds {
    /// Text or media.
    TextOrMedia,
    /// Text, whatever else there is.
    Text,
    /// Media, whatever else there is.
    Media,
}

/// What may follow the main container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
#[oai(rename = "ReplyCapability", rename_all = "snake_case")]
pub enum Follows {
    /// Nothing.
    None,
    /// One comment.
    FirstComment,
    /// A thread of any length.
    Thread,
}

/// How a platform publishes.
#[derive(Debug, Object)]
#[oai(rename = "PublishingCapability")]
pub struct Publishes {
    /// Whether some of it goes on after the platform's answer.
    pub is_asynchronous: bool,
    /// How long that may take before the target is given up.
    #[oai(nullable)]
    pub window_seconds: Option<u64>,
}

/// What a platform accepts.
pub(crate) fn of(platform: &dyn platforms::Platform) -> Accepted {
    let Capabilities { text, content, media, mixed_media, alt_text, replies, publishing, .. } =
        platform.capabilities();
    Accepted {
        platform: EnumString::of(platform.id()),
        text: Text { max_length: text.max, unit: text.unit.to_owned(), max_bytes: text.max_bytes },
        content: match content {
            Content::TextOrMedia => Holds::TextOrMedia,
            Content::Text => Holds::Text,
            Content::Media => Holds::Media,
        },
        media: media.iter().map(Medium::from).collect(),
        mixed_media: *mixed_media,
        max_alt_text_length: *alt_text,
        replies: match replies {
            Replies::None => Follows::None,
            Replies::FirstComment => Follows::FirstComment,
            Replies::Thread => Follows::Thread,
        },
        publishing: match publishing {
            Publishing::Immediate => Publishes { is_asynchronous: false, window_seconds: None },
            Publishing::Asynchronous { window } => {
                Publishes { is_asynchronous: true, window_seconds: Some(window.as_secs()) }
            }
        },
        options: kinds(platform).iter().map(|kind| (*kind).to_owned()).collect(),
        analytics: platform.analytics().is_some(),
        history: platform.history().is_some(),
        deletion: platform.deletion().is_some(),
        config_schema: json_object(platforms::check::schema(platform)),
    }
}

/// The lists that a platform has of what its settings can be.
pub(crate) fn kinds(platform: &dyn platforms::Platform) -> &'static [&'static str] {
    platform.options().map_or(&[], |options| options.kinds())
}

impl From<&MediaLimit> for Medium {
    fn from(limit: &MediaLimit) -> Self {
        let millis = |end: &std::time::Duration| u64::try_from(end.as_millis()).unwrap_or(u64::MAX);
        let (width, height) = limit.pixels.clone().unzip();
        Self {
            kind: EnumString::of(limit.kind.as_str()),
            min_count: *limit.count.start(),
            max_count: *limit.count.end(),
            content_types: limit.mimes.iter().map(|mime| (*mime).to_owned()).collect(),
            max_bytes: limit.max_bytes,
            min_duration_ms: limit.duration.as_ref().map(|range| millis(range.start())),
            max_duration_ms: limit.duration.as_ref().map(|range| millis(range.end())),
            min_width: width.as_ref().map(|range| *range.start()),
            max_width: width.as_ref().map(|range| *range.end()),
            min_height: height.as_ref().map(|range| *range.start()),
            max_height: height.as_ref().map(|range| *range.end()),
            min_aspect_ratio: limit.aspect_ratio.as_ref().map(|range| *range.start()),
            max_aspect_ratio: limit.aspect_ratio.as_ref().map(|range| *range.end()),
        }
    }
}
