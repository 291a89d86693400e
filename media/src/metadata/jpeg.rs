//! JPEG: segments of an application. Kept are the JFIF header, the color profile and Adobe's color transform; what follows
//! the picture, such as the video of a motion photo, is removed.
//! <https://www.w3.org/Graphics/JPEG/itu-t81.pdf>, annex B; <https://www.color.org/technotes/ICC-Technote-ProfileEmbedding.pdf>

use super::{Edit, Found, exif, read_range, xmp_has_location};
use crate::{
    buffered::Buffered,
    probe::{malformed, take, truncated},
};
use std::io::{self, BufRead, Read, Seek, SeekFrom};

const EXIF: &[u8] = b"Exif\0\0";
/// Beginnings of XMP segments, of which the second kind continues a long one.
const XMP: [&[u8]; 2] = [b"http://ns.adobe.com/xap/1.0/\0", b"http://ns.adobe.com/xmp/extension/\0"];

/// Finds the metadata.
pub(super) fn find(file: &mut (impl Read + Seek), size: u64) -> io::Result<Found> {
    let mut file = Buffered::new(file);
    let mut found = Found::default();
    let mut has_orientation = false;
    let mut at = 2;
    loop {
        file.seek(SeekFrom::Start(at))?;
        let [prefix, marker] = take(&mut file)?;
        if prefix != 0xff {
            return Err(malformed("a segment"));
        }
        match marker {
            0xff => at += 1,
            0x01 | 0xd0..=0xd8 => at += 2,
            // The end of the picture.
            0xd9 => {
                if at + 2 < size {
                    found.push(Edit::remove(at + 2..size))?;
                }
                return Ok(found);
            }
            _ => {
                let length = u64::from(u16::from_be_bytes(take(&mut file)?));
                let end = at + 2 + length;
                if length < 2 || end > size {
                    return Err(truncated());
                }
                if matches!(marker, 0xe0..=0xef | 0xfe) {
                    let content = read_range(&mut file, at + 4..end)?;
                    if !is_kept(marker, &content) {
                        let mut kept = Vec::new();
                        if let Some(tiff) = content.strip_prefix(EXIF).filter(|_| marker == 0xe1) {
                            let exif = exif::read(tiff);
                            found.has_location |= exif.has_location;
                            // Readers take the first.
                            if !std::mem::replace(&mut has_orientation, true)
                                && let Some(tiff) = exif::of_orientation(exif.orientation)
                            {
                                let length = (2 + EXIF.len() + tiff.len()) as u16;
                                kept = [&[0xff, 0xe1], &length.to_be_bytes()[..], EXIF, &tiff].concat();
                            }
                        }
                        found.has_location |=
                            XMP.iter().any(|start| content.starts_with(start)) && xmp_has_location(&content);
                        // EXIF data that hold nothing else stay as they are.
                        if kept.len() as u64 != end - at || kept[4..] != content {
                            found.push(Edit::replace(at..end, kept))?;
                        }
                    }
                }
                at = if marker == 0xda { end_of_scan(&mut file, end)? } else { end };
            }
        }
    }
}

fn is_kept(marker: u8, content: &[u8]) -> bool {
    match marker {
        0xe0 => content.starts_with(b"JFIF\0"),
        0xe2 => content.starts_with(b"ICC_PROFILE\0"),
        0xee => content.starts_with(b"Adobe"),
        _ => false,
    }
}

/// Returns the offset of the marker that ends the compressed data of a scan. In these, 0xff is followed by zero or by the
/// number of a restart.
fn end_of_scan(file: &mut (impl BufRead + Seek), start: u64) -> io::Result<u64> {
    file.seek(SeekFrom::Start(start))?;
    let (mut at, mut was_prefix) = (start, false);
    loop {
        let bytes = file.fill_buf()?;
        if bytes.is_empty() {
            return Err(truncated());
        }
        for byte in bytes {
            match byte {
                0xff => was_prefix = true,
                0 | 0xd0..=0xd7 => was_prefix = false,
                _ if was_prefix => return Ok(at - 1),
                _ => {}
            }
            at += 1;
        }
        let length = bytes.len();
        file.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};
    use domain::media::Metadata;
    use image::{ExtendedColorType, ImageDecoder, ImageEncoder, codecs::jpeg};
    use std::io::Cursor;

    const TYPE: &str = "image/jpeg";

    fn segment(marker: u8, content: &[&[u8]]) -> Vec<u8> {
        let content = content.concat();
        [&[0xff, marker], &((content.len() + 2) as u16).to_be_bytes()[..], &content].concat()
    }

    /// A picture with a color profile.
    fn plain() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = jpeg::JpegEncoder::new(&mut bytes);
        encoder.set_icc_profile(b"a profile".to_vec()).unwrap();
        let pixels: Vec<u8> = (0..40 * 20 * 3).map(|byte| (byte * 7 % 251) as u8).collect();
        encoder.write_image(&pixels, 40, 20, ExtendedColorType::Rgb8).unwrap();
        bytes
    }

    fn with(segments: &[Vec<u8>], after: &[u8]) -> Vec<u8> {
        let plain = plain();
        [&plain[..2], &segments.concat(), &plain[2..], after].concat()
    }

    #[test]
    fn all_but_the_profile_and_the_orientation_is_removed() {
        let xmp = segment(0xe1, &[XMP[0], b"<x exif:GPSLatitude='48,51N'/>"]);
        let segments = [
            segment(0xe1, &[EXIF, &exif(6)]),
            xmp.clone(),
            segment(0xed, &[b"Photoshop 3.0\0", b"by Ada"]),
            segment(0xe2, &[b"MPF\0", b"a second picture"]),
            segment(0xfe, &[b"a comment"]),
        ];
        let file = with(&segments, b"a motion photo");
        assert_eq!(metadata(&file, TYPE), Metadata::Location);
        let cleaned = clean(&file, TYPE);
        let turned = segment(0xe1, &[EXIF, &exif::of_orientation(6).unwrap()]);
        assert_eq!(cleaned, with(&[turned], b""));
        let mut decoder = jpeg::JpegDecoder::new(Cursor::new(&cleaned)).unwrap();
        assert_eq!(decoder.icc_profile().unwrap().unwrap(), b"a profile");
        assert_eq!(decoder.orientation().unwrap().to_exif(), 6);
        assert_eq!(metadata(&cleaned, TYPE), Metadata::Bare, "it is as clean as it can be");
        assert_eq!(metadata(&with(&[xmp], b""), TYPE), Metadata::Location);
        assert_eq!(metadata(&with(&[segment(0xfe, &[b"a comment"])], b""), TYPE), Metadata::Other);
        assert_eq!(metadata(&plain(), TYPE), Metadata::Bare);
    }

    #[test]
    fn a_scan_may_contain_any_bytes() {
        let scan = [0x12, 0xff, 0x00, 0xd9, 0xff, 0xd3, 0xff, 0xff, 0xd9];
        let mut file = [&[0xff, 0xd8][..], &segment(0xda, &[&[0; 6]]), &scan].concat();
        let end = file.len();
        file.extend(b"more");
        let found = find(&mut Cursor::new(&file), file.len() as u64).unwrap();
        assert_eq!(found.edits, [Edit::remove(end as u64..end as u64 + 4)]);
    }
}
