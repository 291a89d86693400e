//! A file as it is inspected: its properties, or why it is refused, and how a part of it is read.

use crate::format;
use domain::{MediaKind, media::Facts};
use std::{
    io::{self, Read, Seek, SeekFrom},
    time::Duration,
};

/// Properties of a file, as detected from its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProperties {
    /// Media kind.
    pub kind: MediaKind,
    /// Content type.
    pub content_type: &'static str,
    /// Width in pixels as displayed, after rotation; `None` for audio and documents.
    pub width: Option<u32>,
    /// Height in pixels as displayed, after rotation; `None` for audio and documents.
    pub height: Option<u32>,
    /// Number of frames of an animation.
    pub frames: Option<u32>,
    /// Play time; `None` if the file has none or does not state it.
    pub duration: Option<Duration>,
    /// Encoding.
    pub facts: Facts,
}

/// Reason why a file is refused, with a message for its owner.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The file exceeds the size limit of its kind.
    #[error("{0}")]
    TooLarge(String),
    /// The file is damaged, unsupported, or not of the declared kind.
    #[error("{0}")]
    Unfit(String),
}

/// Reads a range of the file, of a length that the caller has bounded, or what there is of it.
pub(crate) fn read_range(file: &mut (impl Read + Seek), start: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.take(end - start).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the refusal of a file of a type that is not stored.
pub(crate) fn unsupported() -> Refusal {
    unfit(format!("the file type is not supported; {}", format::accepted()))
}

/// Returns the refusal of a file that is damaged, not of its kind, or nothing that is stored.
pub(crate) fn unfit(message: impl Into<String>) -> Refusal {
    Refusal::Unfit(message.into())
}

/// Returns the refusal of a file whose structure can't be read.
pub(crate) fn broken(error: &io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => unfit("the file is truncated or damaged"),
        _ => unfit(format!("the file can't be read: {error}")),
    }
}
