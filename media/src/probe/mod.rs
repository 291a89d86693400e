//! Reads a file's structure: dimensions, play time, and that it is complete.

mod audio;
pub(crate) mod avi;
mod bmp;
mod codec;
mod document;
pub(crate) mod ebml;
pub(crate) mod gif;
mod heif;
pub(crate) mod image;
pub(crate) mod mp4;
mod tiff;

use crate::{
    file::{FileProperties, Refusal},
    format::{Format, Shape},
};
use domain::{MediaKind, media::Facts};
use std::{
    io::{self, BufRead, Read, Seek, SeekFrom},
    time::Duration,
};

/// Properties that a file's structure states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dimensions {
    kind: MediaKind,
    mime: &'static str,
    /// Width and height as displayed.
    pixels: Option<(u32, u32)>,
    /// Number of frames of an animation.
    frames: Option<u32>,
    duration: Option<Duration>,
    facts: Facts,
}

impl Dimensions {
    /// A file that has none.
    fn none(kind: MediaKind, mime: &'static str) -> Self {
        Self { kind, mime, pixels: None, frames: None, duration: None, facts: Facts::default() }
    }
}

/// Reads the structure of a file of this format.
pub(crate) fn probe(
    file: &mut (impl BufRead + Seek),
    size: u64,
    format: &'static Format,
) -> Result<FileProperties, Refusal> {
    let dimensions = match format.shape {
        Shape::Png | Shape::Jpeg | Shape::WebP => image::probe(file, size, format),
        Shape::Heif => heif::probe(file, size, format),
        Shape::Tiff => tiff::probe(file, format),
        Shape::Gif => gif::probe(file),
        Shape::Movie => mp4::probe(file, size, format),
        Shape::Ebml => ebml::probe(file, size),
        Shape::Avi => avi::probe(file, size),
        Shape::Bmp => bmp::probe(file, size),
        Shape::Wave | Shape::Audio => audio::probe(file, size, format),
        Shape::Pdf | Shape::Zip | Shape::Compound => document::probe(file, size, format),
    }?;
    let (width, height) = dimensions.pixels.unzip();
    Ok(FileProperties {
        kind: dimensions.kind,
        content_type: dimensions.mime,
        width,
        height,
        frames: dimensions.frames,
        duration: dimensions.duration,
        facts: dimensions.facts,
    })
}

/// Reads the next `N` bytes.
pub(crate) fn take<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Reads `N` bytes at an offset.
pub(crate) fn take_at<const N: usize>(file: &mut (impl Read + Seek), at: u64) -> io::Result<[u8; N]> {
    file.seek(SeekFrom::Start(at))?;
    take(file)
}

/// Returns the error of a file that ends before its structure does.
pub(crate) fn truncated() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

/// Returns the error of an invalid structure.
pub(crate) fn malformed(what: &str) -> io::Error {
    io::Error::other(format!("{what} is malformed"))
}

/// Checks the length in the header of a RIFF file.
fn riff(file: &mut (impl Read + Seek), size: u64) -> io::Result<()> {
    let length = u64::from(u32::from_le_bytes(take_at(file, 4)?));
    if length + 8 > size { Err(truncated()) } else { Ok(()) }
}
