//! What a file's structure says: its measures, and that it is whole.

mod boxes;
mod document;
mod ebml;
mod gif;
mod image;
mod sound;

use crate::{
    format::{Format, Shape},
    inspect::{FileProperties, Refusal},
};
use domain::MediaKind;
use std::{
    io::{self, Read, Seek, SeekFrom},
    time::Duration,
};

/// What a structure says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dimensions {
    kind: MediaKind,
    mime: &'static str,
    pixels: Option<(u32, u32)>,
    duration: Option<Duration>,
}

/// Reads the structure of a file of this format.
pub(crate) fn probe(
    file: &mut (impl Read + Seek),
    size: u64,
    format: &'static Format,
) -> Result<FileProperties, Refusal> {
    let measures = match format.shape {
        Shape::Png | Shape::Jpeg | Shape::WebP | Shape::Heif => image::probe(file, size, format),
        Shape::Gif => gif::probe(file),
        Shape::Movie => boxes::movie(file, size, format),
        Shape::WebM => ebml::probe(file, size),
        Shape::Wave | Shape::Sound => sound::probe(file, size, format),
        Shape::Pdf | Shape::Zip | Shape::Compound => document::probe(file, size, format),
    }?;
    let (width, height) = measures.pixels.unzip();
    Ok(FileProperties {
        kind: measures.kind,
        content_type: measures.mime,
        width,
        height,
        duration: measures.duration,
    })
}

/// The next bytes.
fn take<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Goes to a place and gives the bytes there.
fn take_at<const N: usize>(file: &mut (impl Read + Seek), at: u64) -> io::Result<[u8; N]> {
    file.seek(SeekFrom::Start(at))?;
    take(file)
}

/// The end came before the structure's.
fn truncated() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

/// The structure leads nowhere.
fn malformed(what: &str) -> io::Error {
    io::Error::other(format!("{what} is malformed"))
}

/// A RIFF file says in its header how long it is.
fn riff(file: &mut (impl Read + Seek), size: u64) -> io::Result<()> {
    let length = u64::from(u32::from_le_bytes(take_at(file, 4)?));
    if length + 8 > size { Err(truncated()) } else { Ok(()) }
}
