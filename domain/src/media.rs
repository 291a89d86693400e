//! What a media asset is, and how far it has come.

use std::time::Duration;
use uuid::Uuid;

crate::string_enum! {
    /// What a medium is.
    MediaKind, "media kind" {
        /// A still image.
        Image = "image",
        /// A video.
        Video = "video",
        /// An animated GIF.
        Gif = "gif",
        /// A document, for example a PDF.
        Document = "document",
        /// Sound.
        Audio = "audio",
    }
}

crate::string_enum! {
    /// The state of a media asset.
    MediaStatus, "media status" {
        /// Its bytes are awaited.
        PendingUpload = "pending_upload",
        /// Its bytes are there, and are being looked at.
        Uploaded = "uploaded",
        /// It was looked at and can be published.
        Ready = "ready",
        /// It can't be used, and never will be.
        Failed = "failed",
    }
}

impl MediaStatus {
    /// Whether a post may refer to it.
    pub fn is_usable(self) -> bool {
        matches!(self, Self::Uploaded | Self::Ready)
    }
}

/// One medium of a container. Its bytes lie elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media {
    /// The media asset.
    pub id: Uuid,
    /// What it is, as its bytes say.
    pub kind: MediaKind,
    /// Its content type, for example `image/png`.
    pub mime: String,
    /// Its name, for platforms that want one.
    pub filename: String,
    /// Its size.
    pub size_bytes: u64,
    /// Pixels, where it has any.
    pub width: Option<u32>,
    /// Pixels, where it has any.
    pub height: Option<u32>,
    /// How long it plays, where it does.
    pub duration: Option<Duration>,
    /// What it shows, for those who can't see it.
    pub alt_text: Option<String>,
}
