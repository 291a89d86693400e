//! Pictures but GIFs: reads their displayed dimensions and checks that they are complete.
//!
//! A camera stores the pixels as its sensor lies and says in EXIF data how to turn them. [`Structure::orientation`] is
//! the only reading of that: what is measured, checked, fitted and shown in lists follows from it. HEIF files have
//! transformations of their own instead, and their EXIF orientation does not count.

use super::{Dimensions, malformed, riff, take, take_at, tiff, truncated};
use crate::{
    file::{Refusal, broken, unfit},
    format::{Format, Shape},
};
use domain::MediaKind;
use pictures::Structure;
use std::{
    io::{self, BufRead, Read, Seek},
    time::Duration,
};

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
        Shape::Tiff => Ok(tiff::read(file)?.structure()),
        _ => Ok(Structure::PLAIN),
    }
}

/// Reads an image's header and checks its structure.
pub(super) fn probe(
    file: &mut (impl BufRead + Seek),
    size: u64,
    format: &'static Format,
) -> Result<Dimensions, Refusal> {
    let pixels = imagesize::reader_size(&mut *file).map_err(|error| match error {
        imagesize::ImageError::IoError(error) => broken(&error),
        error => unfit(format!("the image's header can't be read: {error}")),
    })?;
    let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
    let structure = structure(file, size, format.shape).map_err(|error| broken(&error))?;
    let pixels = Some(structure.displayed((side(pixels.width), side(pixels.height))));
    let animation = match format.shape {
        Shape::Png => apng(file),
        Shape::WebP => animated_webp(file),
        _ => Ok(None),
    };
    Ok(match animation.map_err(|error| broken(&error))? {
        Some((frames, duration)) => {
            let (frames, duration) = (Some(frames), Some(duration));
            Dimensions { pixels, frames, duration, ..Dimensions::none(MediaKind::Gif, format.mime) }
        }
        None => Dimensions { pixels, ..Dimensions::none(format.kind, format.mime) },
    })
}

/// Returns the number of frames of an animated PNG, and how long they are shown; `None` if there is one.
/// <https://www.w3.org/TR/png-3/#apng-frame-based-animation>
fn apng(file: &mut (impl BufRead + Seek)) -> io::Result<Option<(u32, Duration)>> {
    let (mut frames, mut shown, mut at) = (0, Duration::ZERO, 8);
    loop {
        let head: [u8; 8] = take_at(file, at)?;
        let (length, kind) = head.split_at(4);
        let length = u32::from_be_bytes(length.try_into().expect("four bytes"));
        match kind {
            b"acTL" if frames == 0 => frames = u32::from_be_bytes(take(file)?),
            // One without this chunk, which stands before the pixels, is a still picture.
            b"IDAT" if frames < 2 => return Ok(None),
            b"IEND" => return Ok((frames > 1).then_some((frames, shown))),
            b"fcTL" => {
                let [a, b, c, d] = take_at(file, at + 28)?;
                let (part, whole) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
                // Zero means 100.
                let whole = if whole == 0 { 100 } else { whole };
                shown += Duration::from_secs(part.into()) / u32::from(whole);
            }
            _ => {}
        }
        at += u64::from(length) + 12;
    }
}

/// Returns the number of frames of an animated WebP, and how long they are shown; `None` if there is one.
/// <https://developers.google.com/speed/webp/docs/riff_container#animation>
fn animated_webp(file: &mut (impl BufRead + Seek)) -> io::Result<Option<(u32, Duration)>> {
    let (mut frames, mut shown, mut at) = (0_u32, Duration::ZERO, 12);
    let end = u64::from(u32::from_le_bytes(take_at(file, 4)?)) + 8;
    while at + 8 <= end {
        let head: [u8; 8] = take_at(file, at)?;
        let (kind, length) = head.split_at(4);
        let length = u64::from(u32::from_le_bytes(length.try_into().expect("four bytes")));
        if kind == b"ANMF" {
            frames = frames.saturating_add(1);
            let [a, b, c] = take_at(file, at + 20)?;
            shown += Duration::from_millis(u32::from_le_bytes([a, b, c, 0]).into());
        }
        at += 8 + length.next_multiple_of(2);
    }
    Ok((frames > 1).then_some((frames, shown)))
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

/// Returns the beginning of a JPEG without its segments, whose contents have a reader of their own: programs of Adobe keep
/// XML there, print settings of macOS among it.
pub(crate) fn outside_of_segments(head: &[u8]) -> Vec<u8> {
    let mut outside = head[..head.len().min(2)].to_vec();
    let mut rest = &head[outside.len()..];
    while let [0xff, marker @ (0xc0..=0xcf | 0xdb..=0xfe), high, low, ..] = rest
        && *marker != 0xda
    {
        let length = 2 + usize::from(u16::from_be_bytes([*high, *low]));
        rest = rest.get(length..).unwrap_or_default();
    }
    outside.extend_from_slice(rest);
    outside
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Format, of_bytes};
    use std::io::Cursor;

    fn look(file: &[u8]) -> Result<(MediaKind, Option<u32>, Option<u128>), String> {
        let format: &'static Format = of_bytes(file).unwrap();
        let found = probe(&mut Cursor::new(file), file.len() as u64, format);
        let found = found.map_err(|refusal| refusal.to_string())?;
        Ok((found.kind, found.frames, found.duration.map(|length| length.as_millis())))
    }

    /// A PNG with these chunks before and behind its pixels.
    fn png(before: &[&[u8]], behind: &[&[u8]]) -> Vec<u8> {
        let chunk = |parts: &[u8]| [&(parts.len() as u32 - 4).to_be_bytes()[..], parts, &[0; 4]].concat();
        let header = [&b"IHDR"[..], &[0, 0, 0, 7, 0, 0, 0, 5, 8, 2, 0, 0, 0]].concat();
        let [before, behind] = [before, behind]
            .map(|chunks| chunks.iter().map(|parts| chunk(parts)).collect::<Vec<_>>().concat());
        [&b"\x89PNG\r\n\x1a\n"[..], &chunk(&header), &before, &chunk(b"IDAT\0"), &behind, &chunk(b"IEND")]
            .concat()
    }

    #[test]
    fn an_animated_png_is_an_animation() {
        let control = |frames: u8| [&b"acTL"[..], &[0, 0, 0, frames, 0, 0, 0, 0]].concat();
        let frame = |part: u8, whole: u8| [&b"fcTL"[..], &[0; 20], &[0, part, 0, whole, 0, 0]].concat();
        let still = Ok((MediaKind::Image, None, None));
        assert_eq!(look(&png(&[], &[])), still);
        assert_eq!(look(&png(&[&control(1), &frame(1, 10)], &[])), still);
        let moving = png(&[&control(2), &frame(1, 10)], &[&frame(50, 0), b"fdAT\0\0\0\x02"]);
        assert_eq!(look(&moving), Ok((MediaKind::Gif, Some(2), Some(600))));
        // Only before the pixels does the chunk say so.
        assert_eq!(look(&png(&[], &[&control(2)])), still);
    }

    #[test]
    fn an_animated_webp_is_an_animation() {
        let chunk =
            |id: &[u8; 4], content: &[u8]| [&id[..], &(content.len() as u32).to_le_bytes(), content].concat();
        let file = |frames: usize| {
            let head = chunk(b"VP8X", &[2, 0, 0, 0, 6, 0, 0, 4, 0, 0]);
            let frame = chunk(b"ANMF", &[&[0; 12][..], &[100, 0, 0, 0]].concat());
            let content = [&b"WEBP"[..], &head, &chunk(b"ANIM", &[0; 6]), &frame.repeat(frames)].concat();
            chunk(b"RIFF", &content)
        };
        assert_eq!(look(&file(1)), Ok((MediaKind::Image, None, None)));
        assert_eq!(look(&file(3)), Ok((MediaKind::Gif, Some(3), Some(300))));
    }

    #[test]
    fn markup_in_a_segment_is_none_of_the_file() {
        let segment = |marker: u8, content: &[u8]| {
            [&[0xff, marker][..], &(content.len() as u16 + 2).to_be_bytes(), content].concat()
        };
        let plist = segment(0xed, b"<!DOCTYPE plist PUBLIC \"-//Apple\"><html><script>");
        let scan = segment(0xda, b"x");
        for (parts, expected) in [
            ([&plist[..], &scan, b"data"], &b"\xff\xda\0\x03xdata"[..]),
            ([&plist[..30], b"", b""], b""),
            ([b"<script>", &plist, b""], b"<script>"),
            ([&plist, b"<script>", &scan], b"<script>"),
        ] {
            let outside = outside_of_segments(&[&b"\xff\xd8"[..], &parts.concat()].concat());
            assert!(outside[2..].starts_with(expected), "{:?}", String::from_utf8_lossy(&outside));
        }
    }
}
