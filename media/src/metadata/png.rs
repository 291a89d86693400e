//! PNG: chunks. Kept are those that describe pixels, colors and frames, and the orientation.
//! <https://www.w3.org/TR/png-3/#4Concepts.FormatTypes>

use super::{Edit, Found, exif, read_range, xmp_has_location};
use crate::probe::{take_at, truncated};
use std::io::{self, Read, Seek};

/// Chunks that are kept besides the critical ones, whose names begin with a capital.
const KEPT: [&[u8; 4]; 16] = [
    b"tRNS", b"cHRM", b"gAMA", b"iCCP", b"sBIT", b"sRGB", b"cICP", b"mDCV", b"cLLI", b"bKGD", b"hIST",
    b"pHYs", b"sPLT", b"acTL", b"fcTL", b"fdAT",
];
/// Maximum length of a chunk that is read, in bytes. A longer one is removed unread.
const MAX_READ: u64 = 1 << 20;

/// Finds the metadata.
pub(super) fn find(file: &mut (impl Read + Seek), size: u64) -> io::Result<Found> {
    let mut found = Found::default();
    let mut at = 8;
    loop {
        let head: [u8; 8] = take_at(file, at)?;
        let (length, kind) = head.split_at(4);
        let length = u64::from(u32::from_be_bytes(length.try_into().expect("four bytes")));
        let end = at + 12 + length;
        if end > size {
            return Err(truncated());
        }
        let is_kept = kind[0].is_ascii_uppercase() || KEPT.iter().any(|kept| kind == *kept);
        if !is_kept {
            let content = if length <= MAX_READ { read_range(file, at + 8..end - 4)? } else { Vec::new() };
            let mut kept = Vec::new();
            if kind == b"eXIf" {
                let exif = exif::read(&content);
                found.has_location |= exif.has_location;
                kept = exif::of_orientation(exif.orientation)
                    .map(|tiff| chunk(*b"eXIf", &tiff))
                    .unwrap_or_default();
            } else {
                found.has_location |= xmp_has_location(&content);
            }
            if kept.len() as u64 != end - at || kept[8..kept.len() - 4] != content {
                found.push(Edit::replace(at..end, kept))?;
            }
        }
        at = end;
        if kind == b"IEND" {
            break;
        }
    }
    if at < size {
        found.push(Edit::remove(at..size))?;
    }
    Ok(found)
}

fn chunk(kind: [u8; 4], content: &[u8]) -> Vec<u8> {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&kind);
    sum.update(content);
    let length = u32::try_from(content.len()).expect("an orientation is short");
    [&length.to_be_bytes()[..], &kind, content, &sum.finalize().to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};
    use domain::media::Metadata;
    use image::{ExtendedColorType, ImageDecoder, ImageEncoder, codecs::png};
    use std::io::Cursor;

    const TYPE: &str = "image/png";

    fn plain() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::PngEncoder::new(&mut bytes);
        encoder.set_icc_profile(b"a profile".to_vec()).unwrap();
        encoder.write_image(&[7; 8 * 4 * 4], 8, 4, ExtendedColorType::Rgba8).unwrap();
        bytes
    }

    /// Inserts chunks behind the header, which has 25 bytes.
    fn with(chunks: &[Vec<u8>], after: &[u8]) -> Vec<u8> {
        let plain = plain();
        [&plain[..33], &chunks.concat(), &plain[33..], after].concat()
    }

    #[test]
    fn all_but_the_profile_and_the_orientation_is_removed() {
        let xmp = chunk(*b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0<x exif:GPSLongitude='2,17E'/>");
        let chunks = [
            chunk(*b"eXIf", &exif(8)),
            xmp.clone(),
            chunk(*b"tEXt", b"Author\0Ada"),
            chunk(*b"tIME", &[0; 7]),
            chunk(*b"caBX", b"a camera's certificate"),
            chunk(*b"pHYs", &[0; 9]),
        ];
        let file = with(&chunks, b"more");
        assert_eq!(metadata(&file, TYPE), Metadata::Location);
        let cleaned = clean(&file, TYPE);
        let turned = chunk(*b"eXIf", &exif::of_orientation(8).unwrap());
        assert_eq!(cleaned, with(&[turned, chunk(*b"pHYs", &[0; 9])], b""));
        let mut decoder = png::PngDecoder::new(Cursor::new(&cleaned)).unwrap();
        assert_eq!(decoder.icc_profile().unwrap().unwrap(), b"a profile");
        assert_eq!(decoder.orientation().unwrap().to_exif(), 8);
        assert_eq!(metadata(&cleaned, TYPE), Metadata::Bare);
        assert_eq!(metadata(&with(&[xmp], b""), TYPE), Metadata::Location);
        assert_eq!(metadata(&with(&[chunk(*b"tEXt", b"a\0b")], b""), TYPE), Metadata::Other);
        assert_eq!(metadata(&plain(), TYPE), Metadata::Bare);
    }
}
