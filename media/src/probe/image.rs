//! Still images: reads their dimensions and checks that they are complete.

use super::{Dimensions, malformed, mp4, riff, take, take_at, truncated};
use crate::{
    format::{Format, Shape},
    inspect::{Refusal, broken, unfit},
};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

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
    match format.shape {
        Shape::Png => png(&mut file),
        Shape::WebP => riff(&mut file, size),
        Shape::Heif => mp4::check_boxes(&mut file, size),
        _ => jpeg(&mut file),
    }
    .map_err(|error| broken(&error))?;
    let pixels = Some((side(pixels.width), side(pixels.height)));
    Ok(Dimensions { kind: format.kind, mime: format.mime, pixels, duration: None })
}

/// Reads all chunks up to `IEND`. <https://www.w3.org/TR/png-3/#5Chunk-layout>
fn png(file: &mut (impl Read + Seek)) -> io::Result<()> {
    file.seek(SeekFrom::Start(8))?;
    loop {
        let head: [u8; 8] = take(file)?;
        let (length, kind) = head.split_at(4);
        let length = u32::from_be_bytes(length.try_into().expect("four bytes"));
        if kind == b"IEND" {
            return take::<4>(file).map(drop);
        }
        if length > i32::MAX as u32 || !kind.iter().all(u8::is_ascii_alphabetic) {
            return Err(malformed("a chunk"));
        }
        file.seek_relative(i64::from(length) + 4)?;
    }
}

/// Reads all segments up to the image data, and the data up to the end marker.
/// <https://www.w3.org/Graphics/JPEG/itu-t81.pdf>
fn jpeg(file: &mut (impl BufRead + Seek)) -> io::Result<()> {
    let mut at = 2;
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
            if was_marker && *byte == 0xd9 {
                return Ok(());
            }
            was_marker = *byte == 0xff;
        }
        let length = bytes.len();
        file.consume(length);
    }
}
