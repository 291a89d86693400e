//! WebP: chunks of a RIFF container. Kept are the picture, its frames, the color profile and the orientation.
//! <https://developers.google.com/speed/webp/docs/riff_container>

use super::{Edit, Found, exif, read_range, xmp_has_location};
use crate::probe::{malformed, take_at, truncated};
use std::io::{self, Read, Seek};

const KEPT: [&[u8; 4]; 7] = [b"VP8X", b"VP8 ", b"VP8L", b"ALPH", b"ANIM", b"ANMF", b"ICCP"];
/// Flags of the extended header that announce EXIF and XMP data.
const HAS_EXIF: u8 = 0x08;
const HAS_XMP: u8 = 0x04;
/// Maximum length of a chunk that is read, in bytes. A longer one is removed unread.
const MAX_READ: u64 = 1 << 20;

/// Finds the metadata.
pub(super) fn find(file: &mut (impl Read + Seek), size: u64) -> io::Result<Found> {
    let length = u64::from(u32::from_le_bytes(take_at(file, 4)?));
    let riff_end = length + 8;
    if riff_end > size {
        return Err(truncated());
    }
    let mut found = Found::default();
    let (mut at, mut flags, mut kept_exif) = (12, None, false);
    while at < riff_end {
        let head: [u8; 8] = take_at(file, at)?;
        let (kind, length) = head.split_at(4);
        let length = u64::from(u32::from_le_bytes(length.try_into().expect("four bytes")));
        // The last chunk's padding is missing in files of some programs.
        let end = (at + 8 + length + length % 2).min(riff_end);
        if at + 8 + length > riff_end {
            return Err(malformed("a chunk"));
        }
        if kind == b"VP8X" {
            let [byte] = take_at(file, at + 8)?;
            flags = Some((at + 8, byte));
        } else if !KEPT.iter().any(|kept| kind == *kept) {
            let content =
                if length <= MAX_READ { read_range(file, at + 8..at + 8 + length)? } else { Vec::new() };
            let mut kept = Vec::new();
            if kind == b"EXIF" {
                // Some programs write the header that JPEG files have before it.
                let exif = exif::read(content.strip_prefix(b"Exif\0\0").unwrap_or(&content));
                found.has_location |= exif.has_location;
                if let Some(tiff) = exif::of_orientation(exif.orientation).filter(|_| !kept_exif) {
                    kept_exif = true;
                    let length = u32::try_from(tiff.len()).expect("an orientation is short");
                    kept = [&b"EXIF"[..], &length.to_le_bytes(), &tiff].concat();
                }
            } else {
                found.has_location |= xmp_has_location(&content);
            }
            if kept.len() as u64 != end - at || kept[8..] != content {
                found.push(Edit::replace(at..end, kept))?;
            }
        }
        at = end;
    }
    if riff_end < size {
        found.push(Edit::remove(riff_end..size))?;
    }
    if let Some((offset, before)) = flags {
        let after = before & !(HAS_EXIF | HAS_XMP) | if kept_exif { HAS_EXIF } else { 0 };
        if after != before {
            found.push(Edit::replace(offset..offset + 1, vec![after]))?;
        }
    }
    if !found.edits.is_empty() {
        let removed: u64 = found.edits.iter().map(|edit| edit.range.end - edit.range.start).sum();
        let added: u64 = found.edits.iter().map(Edit::len).sum();
        let length = u32::try_from(size - removed + added - 8).map_err(|_| malformed("the header"))?;
        found.push(Edit::replace(4..8, length.to_le_bytes().to_vec()))?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};
    use domain::media::Metadata;
    use image::{ExtendedColorType, ImageDecoder, ImageEncoder, codecs::webp};
    use std::io::Cursor;

    const TYPE: &str = "image/webp";

    fn chunk(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
        let padding: &[u8] = if content.len() % 2 == 1 { &[0] } else { &[] };
        [&kind[..], &(content.len() as u32).to_le_bytes(), content, padding].concat()
    }

    /// A picture of 8 by 4 pixels with a color profile and these chunks behind it.
    fn with(chunks: &[Vec<u8>], flags: u8, after: &[u8]) -> Vec<u8> {
        let mut simple = Vec::new();
        let encoder = webp::WebPEncoder::new_lossless(&mut simple);
        encoder.write_image(&[7; 8 * 4 * 4], 8, 4, ExtendedColorType::Rgba8).unwrap();
        let header = [0x20 | flags, 0, 0, 0, 7, 0, 0, 3, 0, 0];
        let body = [
            &b"WEBP"[..],
            &chunk(b"VP8X", &header),
            &chunk(b"ICCP", b"a profile"),
            &simple[12..],
            &chunks.concat(),
        ]
        .concat();
        [&b"RIFF"[..], &(body.len() as u32).to_le_bytes(), &body, after].concat()
    }

    #[test]
    fn all_but_the_profile_and_the_orientation_is_removed() {
        let chunks = [
            chunk(b"EXIF", &exif(3)),
            chunk(b"XMP ", b"<x exif:GPSLatitude='48,51N'/>"),
            chunk(b"ABCD", b"x"),
        ];
        let file = with(&chunks, HAS_EXIF | HAS_XMP, b"more");
        assert_eq!(metadata(&file, TYPE), Metadata::Location);
        let cleaned = clean(&file, TYPE);
        assert_eq!(cleaned, with(&[chunk(b"EXIF", &exif::of_orientation(3).unwrap())], HAS_EXIF, b""));
        let mut decoder = webp::WebPDecoder::new(Cursor::new(&cleaned)).unwrap();
        assert_eq!(decoder.icc_profile().unwrap().unwrap(), b"a profile");
        assert_eq!(decoder.orientation().unwrap().to_exif(), 3);
        assert_eq!(metadata(&cleaned, TYPE), Metadata::Bare);
        let xmp = with(&[chunk(b"XMP ", b"by Ada")], HAS_XMP, b"");
        assert_eq!(metadata(&xmp, TYPE), Metadata::Other);
        assert_eq!(clean(&xmp, TYPE), with(&[], 0, b""));
        assert_eq!(metadata(&with(&[], 0, b""), TYPE), Metadata::Bare);
    }
}
