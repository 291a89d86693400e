//! Capabilities of an account, from the tables that validation and the adapters use.

use crate::types::{
    enum_string::{EnumString, Platform},
    json_object::{JsonObject, json_object},
};
use platforms::{Adapter, Content, Feature, Limits, MediaKind, MediaLimit, Publishing, Replies};
use poem_openapi::{Enum, Object};
use std::ops::RangeInclusive;
use store::accounts::Account;

/// Limits and features of an account.
#[derive(Debug, Object)]
#[oai(rename = "SocialAccountCapabilities")]
pub struct Accepted {
    /// Platform of the account.
    pub platform: EnumString<Platform>,
    /// Text limits of a container.
    pub text: Text,
    /// Required content of a container.
    pub content: Holds,
    /// Media limits of a container, by kind; kinds that are not listed are not accepted.
    pub media: Vec<Medium>,
    /// True if one container can have media of different kinds.
    pub mixed_media: bool,
    /// Maximum length of alt text, in characters; null if not supported.
    #[oai(nullable)]
    pub max_alt_text_length: Option<usize>,
    /// Replies that can follow the main container.
    pub replies: Follows,
    /// Publishing behavior.
    pub publishing: Publishes,
    /// Kinds that `options/{kind}` can list.
    pub options: Vec<String>,
    /// True if engagement metrics are available.
    pub analytics: bool,
    /// True if earlier posts can be imported.
    pub history: bool,
    /// True if published posts can be deleted from the platform.
    pub deletion: bool,
    /// Changes of published posts.
    pub editing: Edits,
    /// JSON Schema of the platform's settings in `config`.
    pub config_schema: JsonObject,
}

/// A text limit.
#[derive(Debug, Object)]
#[oai(rename = "TextCapability")]
pub struct Text {
    /// Maximum length that every account may have, in `unit`. Where it is not known whether an account may have more,
    /// a longer text is a warning.
    pub max_length: usize,
    /// Unit of `max_length`, for example `graphemes`.
    pub unit: String,
    /// Additional limit in UTF-8 bytes, if any.
    #[oai(nullable)]
    pub max_bytes: Option<usize>,
}

/// Limits for one kind of media in a container.
#[derive(Debug, Object)]
#[oai(rename = "MediaCapability")]
pub struct Medium {
    /// Kind of media.
    pub kind: EnumString<MediaKind>,
    /// Minimum number of files, if there are any.
    pub min_count: usize,
    /// Maximum number of files.
    pub max_count: usize,
    /// Accepted content types.
    pub content_types: Vec<String>,
    /// Minimum file size, in bytes; null where the platform names none.
    #[oai(nullable)]
    pub min_bytes: Option<u64>,
    /// Maximum file size, in bytes.
    pub max_bytes: u64,
    /// Minimum duration, in milliseconds.
    #[oai(nullable)]
    pub min_duration_ms: Option<u64>,
    /// Maximum duration that every account may publish, in milliseconds. Where the platform decides by account, a
    /// longer one is a warning.
    #[oai(nullable)]
    pub max_duration_ms: Option<u64>,
    /// Minimum width, in pixels.
    #[oai(nullable)]
    pub min_width: Option<u32>,
    /// Maximum width, in pixels.
    #[oai(nullable)]
    pub max_width: Option<u32>,
    /// Minimum height, in pixels.
    #[oai(nullable)]
    pub min_height: Option<u32>,
    /// Maximum height, in pixels.
    #[oai(nullable)]
    pub max_height: Option<u32>,
    /// Maximum width times height.
    #[oai(nullable)]
    pub max_pixels: Option<u64>,
    /// Minimum aspect ratio (width / height).
    #[oai(nullable)]
    pub min_aspect_ratio: Option<f64>,
    /// Maximum aspect ratio (width / height).
    #[oai(nullable)]
    pub max_aspect_ratio: Option<f64>,
}

/// Required content of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
#[oai(rename = "ContentCapability", rename_all = "snake_case")]
pub enum Holds {
    /// Text or media.
    TextOrMedia,
    /// Text is required.
    Text,
    /// Media are required.
    Media,
}

/// Replies that can follow the main container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
#[oai(rename = "ReplyCapability", rename_all = "snake_case")]
pub enum Follows {
    /// No replies.
    None,
    /// One comment.
    FirstComment,
    /// A thread of any length.
    Thread,
}

/// Publishing behavior of a platform.
#[derive(Debug, Object)]
#[oai(rename = "PublishingCapability")]
pub struct Publishes {
    /// True if the platform continues processing after it accepts a post.
    pub is_asynchronous: bool,
    /// Maximum processing time in seconds; after that the target is `dead`.
    #[oai(nullable)]
    pub window_seconds: Option<u64>,
}

/// Changes of published posts.
#[derive(Debug, Object)]
#[oai(rename = "EditingCapability")]
pub struct Edits {
    /// True if the text of a published post can be changed.
    pub is_supported: bool,
    /// Settings that can be changed as well.
    pub settings: Vec<String>,
    /// Reason why nothing can be changed; null if something can.
    #[oai(nullable)]
    pub reason: Option<String>,
}

impl Edits {
    fn of(platform: &Adapter, closed: Option<String>) -> Self {
        let editing = platform.editing.map_err(str::to_owned);
        match editing.and_then(|editing| closed.map_or(Ok(editing), Err)) {
            Ok(editing) => {
                let settings = editing.settings().iter().map(|name| (*name).to_owned());
                Self { is_supported: true, settings: settings.collect(), reason: None }
            }
            Err(reason) => Self { is_supported: false, settings: Vec::new(), reason: Some(reason) },
        }
    }
}

/// Returns the capabilities of an account. A feature whose scopes it lacks is off.
pub(crate) fn of(platform: &Adapter, account: &Account) -> Accepted {
    accepted(platform, &account.account_type, |feature| platform.explain(feature, &account.scopes))
}

/// Returns what a platform accepts from accounts with every scope.
pub(crate) fn of_platform(platform: &Adapter) -> Accepted {
    accepted(platform, "", |_| None)
}

fn accepted(platform: &Adapter, account_type: &str, closed: impl Fn(Feature) -> Option<String>) -> Accepted {
    let is_open = |feature| closed(feature).is_none();
    let Limits { content, mixed_media, alt_text, replies, publishing, .. } = &platform.limits;
    let text = platform.text_limit(account_type);
    Accepted {
        platform: EnumString::of(platform.id),
        text: Text {
            max_length: text.usual.unwrap_or(text.max),
            unit: text.unit.to_owned(),
            max_bytes: text.max_bytes,
        },
        content: match content {
            Content::TextOrMedia => Holds::TextOrMedia,
            Content::Text => Holds::Text,
            Content::Media => Holds::Media,
        },
        media: platform
            .media_limits(account_type, 0, &serde_json::Value::Null)
            .iter()
            .map(Medium::from)
            .collect(),
        mixed_media: *mixed_media,
        max_alt_text_length: alt_text.as_ref().map(|alt_text| alt_text.max),
        replies: match replies {
            _ if !is_open(Feature::Replies) => Follows::None,
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
        analytics: platform.analytics.is_some() && is_open(Feature::Analytics),
        history: platform.history.is_some() && is_open(Feature::Import),
        deletion: platform.deletion.is_some() && is_open(Feature::Deletion),
        editing: Edits::of(platform, closed(Feature::Editing)),
        config_schema: json_object(platforms::check::schema(platform)),
    }
}

/// The kinds of options that a platform lists.
pub(crate) fn kinds(platform: &Adapter) -> &'static [&'static str] {
    platform.options.map_or(&[], |options| options.kinds())
}

impl From<&MediaLimit> for Medium {
    fn from(limit: &MediaLimit) -> Self {
        let millis = |end: &std::time::Duration| u64::try_from(end.as_millis()).unwrap_or(u64::MAX);
        let (width, height) = limit.width_and_height();
        Self {
            kind: EnumString::of(limit.kind.as_str()),
            min_count: *limit.count.start(),
            max_count: *limit.count.end(),
            content_types: limit.mimes.iter().map(|mime| (*mime).to_owned()).collect(),
            min_bytes: (limit.min_bytes > 0).then_some(limit.min_bytes),
            max_bytes: limit.max_bytes,
            min_duration_ms: limit.duration.as_ref().map(|range| millis(range.start())),
            max_duration_ms: limit
                .usual_duration
                .as_ref()
                .or(limit.duration.as_ref().map(RangeInclusive::end))
                .map(millis),
            min_width: width.as_ref().map(|range| *range.start()),
            max_width: width.as_ref().map(|range| *range.end()),
            min_height: height.as_ref().map(|range| *range.start()),
            max_height: height.as_ref().map(|range| *range.end()),
            max_pixels: limit.max_pixels,
            min_aspect_ratio: limit.aspect_ratio.as_ref().map(|range| *range.start()),
            max_aspect_ratio: limit.aspect_ratio.as_ref().map(|range| *range.end()),
        }
    }
}
