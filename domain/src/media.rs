//! Media assets: kinds and states.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use uuid::Uuid;

crate::string_enum! {
    /// Kind of a media asset.
    MediaKind, "media kind" {
        /// A still image.
        Image = "image",
        /// A video.
        Video = "video",
        /// An animation: a GIF, or an animated PNG or WebP.
        Gif = "gif",
        /// A document, for example a PDF.
        Document = "document",
        /// An audio file.
        Audio = "audio",
    }
}

impl MediaKind {
    /// Returns true for pictures and videos.
    pub fn is_visual(self) -> bool {
        matches!(self, Self::Image | Self::Gif | Self::Video)
    }
}

crate::string_enum! {
    /// Metadata of a picture or video, by the most telling kind.
    Metadata, "metadata" {
        /// Nothing about its author.
        Bare = "bare",
        /// The device, comments or the like, but no position.
        Other = "other",
        /// The position where it was taken.
        Location = "location",
    }
}

crate::string_enum! {
    /// The state of a media asset.
    MediaStatus, "media status" {
        /// The file has not been uploaded yet.
        PendingUpload = "pending_upload",
        /// The file is uploaded and being inspected.
        Uploaded = "uploaded",
        /// The file was inspected and can be published.
        Ready = "ready",
        /// The file can't be used. Final.
        Failed = "failed",
    }
}

impl MediaStatus {
    /// Returns true if a post may refer to an asset in this state.
    pub fn is_usable(self) -> bool {
        matches!(self, Self::Uploaded | Self::Ready)
    }
}

/// Properties that a client declared for a file before its upload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredFile {
    /// Content type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// SHA-256, in lower-case hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// Properties of a file that decide whether a platform can show it. A fact that the file does not state, or that is not
/// read from files of its type, is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Codec of the pictures of a video: `h264`, `hevc`, `vp8`, `vp9`, `av1`, `mpeg4`, `h263`, `mjpeg`, `prores`, or the
    /// name in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video_codec: Option<String>,
    /// Codec of its sound: `aac`, `mp3`, `opus`, `vorbis`, `flac`, `ac-3`, `e-ac-3`, `alac`, `amr`, `pcm`, or the name in
    /// the file; `None` also for a silent video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio_codec: Option<String>,
    /// Average frames of a video in 1000 seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_rate: Option<u32>,
    /// Bits per color of a video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bit_depth: Option<u8>,
    /// Chroma subsampling of a video: `4:2:0`, `4:2:2`, `4:4:4`, or `4:0:0` without colors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chroma: Option<String>,
    /// True if the index of a video precedes its samples, so that it can be played while it is fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_first: Option<bool>,
    /// True if a video consists of fragments, each with an index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_fragmented: Option<bool>,
    /// True if an edit list of a video leaves out, repeats or delays some of its pictures. One that only begins with the
    /// first picture does not count: most programs write it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_edits: Option<bool>,
    /// True if a document is encrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_locked: Option<bool>,
    /// True if a GIF ends before its last frame does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_truncated: Option<bool>,
    /// Reason why a picture can't be decoded, so that nothing can be made of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undecodable: Option<String>,
    /// Reason why the metadata of a picture or video can't be removed, so that it can only be published with them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncleanable: Option<String>,
}

/// A media asset of a container, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// Asset id.
    pub id: Uuid,
    /// Kind, as detected from the bytes.
    pub kind: MediaKind,
    /// Content type, for example `image/png`.
    pub mime: String,
    /// File name, for platforms that require one.
    pub filename: String,
    /// File size in bytes.
    pub size_bytes: u64,
    /// Width in pixels; `None` for audio and documents.
    pub width: Option<u32>,
    /// Height in pixels; `None` for audio and documents.
    pub height: Option<u32>,
    /// Number of frames of an animation, if it is known.
    pub frames: Option<u32>,
    /// Play time; `None` for still images and documents.
    pub duration: Option<Duration>,
    /// Encoding; `None` if the file was inspected before that was looked for.
    pub facts: Option<Facts>,
    /// Alternative text for people who can't see the asset.
    pub alt_text: Option<String>,
    /// Name of the rendition that is published instead of the original file.
    pub rendition: Option<String>,
}

impl Media {
    /// Returns the reason why the picture can't be decoded; `None` also if that is not known.
    pub fn undecodable(&self) -> Option<&str> {
        self.facts.as_ref()?.undecodable.as_deref()
    }

    /// Returns the number of pixels of all its frames; `None` if it is no animation, or their number is not known.
    pub fn frame_pixels(&self) -> Option<u64> {
        let frame = u64::from(self.width?) * u64::from(self.height?);
        Some(frame.saturating_mul(self.frames?.into()))
    }

    /// Returns the asset with the properties of a rendition that was made, or would be made, for `fit`.
    #[must_use]
    pub fn fitted(&self, fit: &Fit, mime: &str, size_bytes: u64, width: u32, height: u32) -> Self {
        Self {
            kind: fit.kind,
            mime: mime.to_owned(),
            size_bytes,
            width: Some(width),
            height: Some(height),
            frames: self.frames.filter(|_| fit.kind == MediaKind::Gif),
            duration: self.duration.filter(|_| fit.kind == MediaKind::Gif),
            ..self.clone()
        }
    }
}

crate::string_enum! {
    /// How a picture gets another shape. What it shows is scaled alike in both directions.
    Shaping, "shaping" {
        /// The middle of it is kept.
        Crop = "crop",
        /// All of it is kept, in the middle of a white ground.
        Pad = "pad",
    }
}

/// Properties that a rendition of a picture needs, so that a platform takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fit {
    /// Kind: a still image, or an animation.
    pub kind: MediaKind,
    /// Maximum width in pixels, as displayed; with a shaping the width, unless it has to be smaller for its bytes.
    pub width: u32,
    /// Maximum height in pixels, as displayed; with a shaping the height.
    pub height: u32,
    /// How it gets this shape; without, it keeps its own.
    pub shaping: Option<Shaping>,
    /// Maximum size in bytes.
    pub max_bytes: u64,
    /// True if a picture with transparent parts may be a PNG; it is laid on white otherwise.
    pub keeps_transparency: bool,
}

impl Fit {
    /// Content types of originals that renditions can be made of.
    pub const ORIGINALS: &[&str] = &[
        "image/jpeg",
        "image/png",
        "image/webp",
        "image/gif",
        "image/heif",
        "image/avif",
        "image/tiff",
        "image/bmp",
    ];
    /// Those of them of which every platform gets renditions only, so that a file that can't be decoded is of no use.
    pub const CONVERTED: &[&str] = &["image/heif", "image/avif", "image/tiff"];
    /// Maximum number of pixels of such an original; it is decoded in memory.
    pub const MAX_PIXELS: u64 = 100_000_000;
    /// Maximum number of pixels of all frames of an animation together that is to stay one.
    pub const MAX_FRAME_PIXELS: u64 = 100_000_000;
    /// Longest side of a picture that gets another shape, in pixels: more than any platform shows. It bounds the ground
    /// that a narrow picture is laid on.
    pub const MAX_SHAPED_SIDE: u32 = 4096;

    /// Longest side of a thumbnail, in pixels.
    const THUMBNAIL_SIDE: u32 = 480;
    /// Maximum size of a thumbnail, in bytes.
    const THUMBNAIL_BYTES: u64 = 200_000;

    /// Returns the still picture that stands for a picture in lists; `None` if none can be made of such a file.
    pub fn thumbnail(content_type: &str, width: u32, height: u32) -> Option<Self> {
        let longest = width.max(height);
        let is_decodable = u64::from(width) * u64::from(height) <= Self::MAX_PIXELS;
        if !Self::ORIGINALS.contains(&content_type) || width.min(height) == 0 || !is_decodable {
            return None;
        }
        let to = longest.min(Self::THUMBNAIL_SIDE);
        let scaled = |side: u32| {
            let scaled = u64::from(side) * u64::from(to) / u64::from(longest);
            u32::try_from(scaled).unwrap_or(to).max(1)
        };
        Some(Self {
            kind: MediaKind::Image,
            width: scaled(width),
            height: scaled(height),
            shaping: None,
            max_bytes: Self::THUMBNAIL_BYTES,
            keeps_transparency: true,
        })
    }

    /// Returns a name for renditions of this kind: equal names stand for equal renditions of an asset.
    pub fn name(&self) -> String {
        let Self { kind, width, height, shaping, max_bytes, keeps_transparency } = self;
        let ground = if *keeps_transparency { "clear" } else { "white" };
        let shaping = shaping.map_or_else(String::new, |shaping| format!("-{shaping}"));
        format!("{kind}-{width}x{height}-{max_bytes}-{ground}{shaping}")
    }
}
