//! The content that a platform accepts, as data: validation, the API's capabilities and the adapters read
//! the same table.

use domain::MediaKind;
use std::{ops::RangeInclusive, time::Duration};

/// The content that a platform accepts, and how it publishes it.
#[derive(Debug)]
pub struct Limits {
    /// Length of a text and how it is counted.
    pub text: TextLimit,
    /// The content that a post needs: text, media, or either.
    pub content: Content,
    /// Media of a container by kind; a kind that is not listed is not accepted.
    pub media: &'static [MediaLimit],
    /// True when media of different kinds may be in one container.
    pub mixed_media: bool,
    /// The kind of media that a post with media must include.
    pub required_media: Option<MediaKind>,
    /// Alt text; `None` if the platform has none.
    pub alt_text: Option<AltTextLimit>,
    /// Characters that a text may not contain, unless it is a reply with limits of its own.
    pub forbidden: &'static [char],
    /// The containers that may follow the main one.
    pub replies: Replies,
    /// Limits of a reply, if they differ from the post's.
    pub comment: Option<CommentLimits>,
    /// Names of the settings that concern replies as well; the others are those of a main post.
    pub reply_settings: &'static [&'static str],
    /// When publishing is complete: with the response of the call, or later.
    pub publishing: Publishing,
    /// The effect of repeating a commit, which determines when the look-up result `Absent` is reliable.
    pub idempotency: Idempotency,
    /// Further numbers that a post is checked against.
    pub numbers: &'static [Number],
    /// Pages of the platform that name these limits.
    pub sources: &'static [Source],
}

/// A number that a post is checked against. It is the constant that the adapter's check uses.
#[derive(Debug)]
pub struct Number {
    /// The counted things, such as hashtags.
    pub of: &'static str,
    /// Number above which a post is refused; `None` where that is not known.
    pub max: Option<usize>,
    /// Number above which a post may be refused, which is a warning; `None` if that is `max`.
    pub usual: Option<usize>,
}

impl Number {
    /// Creates a number above which a post is refused.
    pub(crate) const fn max(of: &'static str, max: usize) -> Self {
        Self { of, max: Some(max), usual: None }
    }
}

/// A page that names limits.
#[derive(Debug)]
pub struct Source {
    /// Address.
    pub url: &'static str,
    /// Date on which the limits were last compared with the page, or with a stored copy of it, in ISO 8601.
    pub checked: &'static str,
}

impl Limits {
    /// Text only, published at once; a base for adapters.
    pub const DEFAULT: Self = Self {
        text: TextLimit::characters(0),
        content: Content::TextOrMedia,
        media: &[],
        mixed_media: false,
        required_media: None,
        alt_text: None,
        forbidden: &[],
        replies: Replies::None,
        comment: None,
        reply_settings: &[],
        publishing: Publishing::Immediate,
        idempotency: Idempotency::Idempotent,
        numbers: &[],
        sources: &[],
    };

    /// Returns true if media of this kind are shown with their alt text.
    pub fn supports_alt_text(&self, kind: MediaKind) -> bool {
        self.alt_text.as_ref().is_some_and(|alt_text| alt_text.kinds.contains(&kind))
    }
}

/// Length of a text.
#[derive(Debug)]
pub struct TextLimit {
    /// Maximum, in units.
    pub max: usize,
    /// Length that every account may have, if the platform decides by account and does not tell which may have more:
    /// what is longer is a warning.
    pub usual: Option<usize>,
    /// Name of the unit, for example `weighted characters`.
    pub unit: &'static str,
    /// Counts a text as the platform does.
    pub count: fn(&str) -> usize,
    /// A second limit in UTF-8 bytes, if the platform has one.
    pub max_bytes: Option<usize>,
}

/// Bytes per unit above which a text is too long in any unit. Some platforms count a link as a few units,
/// and a link has a few thousand bytes at most.
const MAX_BYTES_PER_UNIT: usize = 128;

impl TextLimit {
    /// Returns the length of a text in units; `None` for one with so many bytes that it need not be counted
    /// to be too long.
    pub fn measure(&self, text: &str) -> Option<usize> {
        (text.len() / MAX_BYTES_PER_UNIT <= self.max).then(|| (self.count)(text))
    }

    /// Creates a limit in characters (Unicode scalar values).
    pub const fn characters(max: usize) -> Self {
        Self { max, usual: None, unit: "characters", count: |text| text.chars().count(), max_bytes: None }
    }
}

/// Alt text of media.
#[derive(Debug)]
pub struct AltTextLimit {
    /// Maximum length, in characters.
    pub max: usize,
    /// Kinds of media that are shown with it.
    pub kinds: &'static [MediaKind],
}

/// The content that a container must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text or media.
    TextOrMedia,
    /// Text, with or without media.
    Text,
    /// Media, with or without text.
    Media,
}

/// Media of one kind in a container.
#[derive(Debug)]
pub struct MediaLimit {
    /// Kind of media.
    pub kind: MediaKind,
    /// Number of media.
    pub count: RangeInclusive<usize>,
    /// Maximum length of the text beside them, in units, if it differs from the post's.
    pub max_text: Option<usize>,
    /// Accepted content types, of those that can be uploaded.
    pub mimes: &'static [&'static str],
    /// Minimum size in bytes.
    pub min_bytes: u64,
    /// Maximum size in bytes.
    pub max_bytes: u64,
    /// Play time.
    pub duration: Option<RangeInclusive<Duration>>,
    /// Play time that is taken for certain, if the platform decides by account and does not tell which may have more, or
    /// if only its own app has this number: what is longer is a warning.
    pub usual_duration: Option<Duration>,
    /// Longer and shorter side in pixels, in either orientation.
    pub pixels: Option<(RangeInclusive<u32>, RangeInclusive<u32>)>,
    /// Maximum width in pixels, if the platform limits the width in both orientations.
    pub max_width: Option<u32>,
    /// Maximum width times height.
    pub max_pixels: Option<u64>,
    /// Maximum number of frames of an animation.
    pub max_frames: Option<u32>,
    /// Maximum number of pixels of all frames of an animation together.
    pub max_frame_pixels: Option<u64>,
    /// Width divided by height.
    pub aspect_ratio: Option<RangeInclusive<f64>>,
    /// Encoding of videos; `None` if the platform's documentation says nothing of it.
    pub encoding: Option<Encoding>,
}

/// The encoding of videos that a platform's documentation names. Another one is a warning: the platform may fail to process
/// the video after its upload, but most convert what they get, and take more than they name.
#[derive(Debug)]
pub struct Encoding {
    /// Codecs of the pictures, as in [`domain::media::Facts`].
    pub video_codecs: &'static [&'static str],
    /// Codecs of the sound; none if any is fine.
    pub audio_codecs: &'static [&'static str],
    /// Frames per second.
    pub frame_rate: Option<RangeInclusive<u32>>,
    /// Maximum number of bits per color.
    pub max_bit_depth: Option<u8>,
    /// Chroma subsamplings; none if any is fine.
    pub chroma: &'static [&'static str],
    /// True if the index has to precede the samples.
    pub index_first: bool,
    /// True if there may be no edit list.
    pub no_edits: bool,
    /// Address of the documentation.
    pub source: &'static str,
    /// Month in which it was last read, as `2026-11`.
    pub checked: &'static str,
}

impl MediaLimit {
    /// One image of any type, size and shape; a base for adapters.
    pub const ANY: Self = Self {
        kind: MediaKind::Image,
        count: 0..=1,
        max_text: None,
        mimes: &[],
        min_bytes: 0,
        max_bytes: u64::MAX,
        duration: None,
        usual_duration: None,
        pixels: None,
        max_width: None,
        max_pixels: None,
        max_frames: None,
        max_frame_pixels: None,
        aspect_ratio: None,
        encoding: None,
    };

    /// Returns the accepted widths and heights, in either orientation: with these ranges only, a medium may still
    /// have sides that are not accepted together.
    pub fn width_and_height(&self) -> (Option<RangeInclusive<u32>>, Option<RangeInclusive<u32>>) {
        let any = self.pixels.as_ref().map(|(long, short)| *short.start()..=*long.end());
        let width = match (&any, self.max_width) {
            (Some(any), Some(max)) => Some(*any.start()..=max.min(*any.end())),
            (None, Some(max)) => Some(1..=max),
            (any, None) => any.clone(),
        };
        (width, any)
    }
}

/// The shape that a picture has to have, beside the limits of its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Width over height, in a range that includes 1.
    Within(RangeInclusive<f64>),
    /// Width and height in pixels.
    Exactly(u32, u32),
}

/// Limits of a reply.
#[derive(Debug)]
pub struct CommentLimits {
    /// Length of its text; without media it needs one.
    pub text: TextLimit,
    /// Media that it may contain.
    pub media: &'static [MediaLimit],
    /// True if they are shown with their alt text, as the post's media are.
    pub has_alt_text: bool,
}

/// The containers that may follow the main one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replies {
    /// None; further containers are not published.
    None,
    /// One comment below the post; further containers are not published.
    FirstComment,
    /// A thread of any length.
    Thread,
}

impl Replies {
    /// Returns the number of a post's containers that are published, including the main one.
    pub fn containers(self) -> usize {
        match self {
            Self::None => 1,
            Self::FirstComment => 2,
            Self::Thread => usize::MAX,
        }
    }

    /// Explains why the last `count` containers of a post are not published; the subject is the platform.
    pub fn left_out(self, count: usize) -> String {
        let takes = if self == Self::None { "takes no replies" } else { "takes one reply" };
        format!("{takes}; {}", left_out(count))
    }
}

/// Says that `count` containers of a post are not published.
pub(crate) fn left_out(count: usize) -> String {
    match count {
        1 => "1 container is left out".to_owned(),
        _ => format!("{count} containers are left out"),
    }
}

/// When publishing is complete: with the response of the call, or later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publishing {
    /// The response of the call is the result.
    Immediate,
    /// Processing continues after the response.
    Asynchronous {
        /// Time after which the post is given up.
        window: Duration,
    },
}

/// The effect of repeating a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idempotency {
    /// None: there is one post. `Absent` is reliable immediately.
    Idempotent,
    /// Possibly a second post. `Absent` is reliable after the read lag.
    MayDuplicate {
        /// Time by which the platform's reads may lag behind its writes.
        read_lag: Duration,
    },
}
