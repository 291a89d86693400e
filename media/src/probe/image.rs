//! Still images: reads their displayed dimensions and checks that they are complete.
//!
//! A camera stores the pixels as its sensor lies and says in EXIF data how to turn them. [`Structure::orientation`] is
//! the only reading of that: what is measured, checked, fitted and shown in lists follows from it. HEIF files have
//! transformations of their own instead, which `imagesize` applies (`irot`), and whose EXIF orientation does not count.

use super::{Dimensions, malformed, mp4, riff, take, take_at, truncated};
use crate::{
    format::{Format, Shape},
    inspect::{Refusal, broken, unfit},
};
use pictures::Structure;
use std::io::{self, BufRead, BufReader, Read, Seek};

/// Bytes of EXIF data that are read; the orientation is among the first entries.
const EXIF_BYTES: u64 = 64 << 10;

/// Reads the structure of a complete file of this shape.
///
/// # Errors
///
/// If the file is malformed or ends too early.
pub(crate) fn structure(file: &mut (impl BufRead + Seek), size: u64, shape: Shape) -> io::Result<Structure> {
    match shape {
        Shape::Png => png(file),
        Shape::WebP => webp(file, size),
        Shape::Jpeg => jpeg(file),
        Shape::Heif => mp4::check_boxes(file, size).map(|()| Structure::PLAIN),
        _ => Ok(Structure::PLAIN),
    }
}

/// Reads an image's header and checks its structure.
pub(super) fn probe(
    file: &mut (impl Read + Seek),
    size: u64,
    format: &'static Format,
) -> Result<Dimensions, Refusal> {
    let mut file = BufReader::new(file);
    let pixels = imagesize::reader_size(&mut file).map_err(|error| match error {
        imagesize::ImageError::IoError(error) => broken(&error),
        error => unfit(format!("the image's header can't be read: {error}")),
    })?;
    let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
    let structure = structure(&mut file, size, format.shape).map_err(|error| broken(&error))?;
    let pixels = Some(structure.displayed((side(pixels.width), side(pixels.height))));
    Ok(Dimensions { kind: format.kind, mime: format.mime, pixels, frames: None, duration: None })
}

/// Reads `length` bytes of EXIF data, or their beginning.
fn take_exif(file: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut exif = Vec::new();
    file.take(length.min(EXIF_BYTES)).read_to_end(&mut exif)?;
    Ok(exif)
}

/// Reads all chunks up to `IEND`. <https://www.w3.org/TR/png-3/#5Chunk-layout>
fn png(file: &mut (impl BufRead + Seek)) -> io::Result<Structure> {
    let (mut found, mut at) = (Structure::PLAIN, 8);
    loop {
        let head: [u8; 8] = take_at(file, at)?;
        let (length, kind) = head.split_at(4);
        let length = u32::from_be_bytes(length.try_into().expect("four bytes"));
        if kind == b"IEND" {
            return take::<4>(file).map(|_| found);
        }
        if length > i32::MAX as u32 || !kind.iter().all(u8::is_ascii_alphabetic) {
            return Err(malformed("a chunk"));
        }
        if kind == b"eXIf" {
            found = found.with_exif(&take_exif(file, length.into())?);
        }
        at += u64::from(length) + 12;
    }
}

/// Reads all chunks. <https://developers.google.com/speed/webp/docs/riff_container>
fn webp(file: &mut (impl BufRead + Seek), size: u64) -> io::Result<Structure> {
    riff(file, size)?;
    let (mut found, mut at) = (Structure::PLAIN, 12);
    let end = u64::from(u32::from_le_bytes(take_at(file, 4)?)) + 8;
    // The last chunk, with EXIF data, stands behind the pixels.
    while at + 8 <= end {
        let head: [u8; 8] = take_at(file, at)?;
        let (kind, length) = head.split_at(4);
        let length = u64::from(u32::from_le_bytes(length.try_into().expect("four bytes")));
        if kind == b"EXIF" {
            found = found.with_exif(&take_exif(file, length)?);
        }
        at += 8 + length.next_multiple_of(2);
    }
    Ok(found)
}

/// Reads all segments up to the image data, and the data up to the end marker.
/// <https://www.w3.org/Graphics/JPEG/itu-t81.pdf>
fn jpeg(file: &mut (impl BufRead + Seek)) -> io::Result<Structure> {
    let (mut found, mut at) = (Structure::PLAIN, 2);
    loop {
        let [0xff, marker] = take_at(file, at)? else { return Err(malformed("a segment")) };
        match marker {
            // Padding, and markers without a length.
            0xff => at += 1,
            0x01 | 0xd0..=0xd7 => at += 2,
            0xda => break,
            0xd9 => return Err(truncated()),
            _ => {
                let length = u16::from_be_bytes(take(file)?);
                if length < 2 {
                    return Err(malformed("a segment"));
                }
                // APP1 may have other metadata too.
                if marker == 0xe1 {
                    let content = take_exif(file, u64::from(length) - 2)?;
                    if content.starts_with(b"Exif\0\0") {
                        found = found.with_exif(&content);
                    }
                }
                at += 2 + u64::from(length);
            }
        }
    }
    let mut was_marker = false;
    loop {
        let bytes = file.fill_buf()?;
        if bytes.is_empty() {
            return Err(truncated());
        }
        for byte in bytes {
            match (was_marker, *byte) {
                (true, 0xd9) => return Ok(found),
                (true, 0xda) => found.scans += 1,
                _ => {}
            }
            was_marker = *byte == 0xff;
        }
        let length = bytes.len();
        file.consume(length);
    }
}
