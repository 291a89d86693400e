//! GIF: extension blocks. Kept are the control of frames, texts that are part of the picture, loops and color profiles.
//! <https://www.w3.org/Graphics/GIF/spec-gif89a.txt>

use super::{Edit, Found, read_range, xmp_has_location};
use crate::{
    buffered::Buffered,
    probe::{malformed, take, take_at},
};
use std::io::{self, Read, Seek};

/// Applications whose blocks are kept: number of repetitions, color profile.
const KEPT: [&[u8; 11]; 3] = [b"NETSCAPE2.0", b"ANIMEXTS1.0", b"ICCRGBG1012"];
/// Block at the end.
const TRAILER: u8 = 0x3b;
/// Maximum length of a block that is read, in bytes. A longer one is removed unread.
const MAX_READ: u64 = 1 << 20;

/// Finds the metadata. A file that ends early gets the end that is missing, behind its last whole frame: some programs
/// leave it out, and the clean copy of such a file is whole.
pub(super) fn find(file: &mut (impl Read + Seek), size: u64) -> io::Result<Found> {
    let mut file = Buffered::new(file);
    let mut found = Found::default();
    let [flags] = take_at(&mut file, 10)?;
    file.seek_relative(2 + colors(flags))?;
    let mut whole = None;
    loop {
        match block(&mut file, &mut found) {
            Ok(Block::Frame) => whole = Some(file.stream_position()?),
            Ok(Block::Other) => {}
            Ok(Block::End) => break,
            Err(error) => {
                let cut = whole.filter(|_| error.kind() == io::ErrorKind::UnexpectedEof).ok_or(error)?;
                found.edits.retain(|edit| edit.range.start < cut);
                found.push(Edit::replace(cut..size, vec![TRAILER]))?;
                return Ok(found);
            }
        }
    }
    let end = file.stream_position()?;
    if end < size {
        found.push(Edit::remove(end..size))?;
    }
    Ok(found)
}

/// A block that was passed.
enum Block {
    Frame,
    Other,
    End,
}

/// Passes a block, of which metadata are removed.
fn block(file: &mut Buffered<impl Read + Seek>, found: &mut Found) -> io::Result<Block> {
    let at = file.stream_position()?;
    match take::<1>(file)? {
        [TRAILER] => return Ok(Block::End),
        [0x2c] => {
            let description: [u8; 9] = take(file)?;
            // The table of colors, and the code size.
            file.seek_relative(colors(description[8]) + 1)?;
            skip_blocks(file)?;
            return Ok(Block::Frame);
        }
        [0x21] => {
            let [label] = take(file)?;
            let is_kept = match label {
                0xff => {
                    let [length] = take(file)?;
                    let mut name = vec![0; length.into()];
                    file.read_exact(&mut name)?;
                    KEPT.iter().any(|kept| name == *kept)
                }
                label => matches!(label, 0xf9 | 0x01),
            };
            skip_blocks(file)?;
            let end = file.stream_position()?;
            if !is_kept {
                if end - at <= MAX_READ {
                    found.has_location |= xmp_has_location(&read_range(file, at..end)?);
                }
                found.push(Edit::remove(at..end))?;
            }
        }
        _ => return Err(malformed("a block")),
    }
    Ok(Block::Other)
}

/// Returns the length of the table of colors that these flags announce.
fn colors(flags: u8) -> i64 {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}

fn skip_blocks(file: &mut Buffered<impl Read + Seek>) -> io::Result<()> {
    loop {
        match take::<1>(file)? {
            [0] => return Ok(()),
            [length] => file.seek_relative(length.into())?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use domain::media::Metadata;
    use image::{Delay, Frame, RgbaImage, codecs::gif};

    const TYPE: &str = "image/gif";

    fn plain() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = gif::GifEncoder::new(&mut bytes);
        encoder.set_repeat(gif::Repeat::Infinite).unwrap();
        for color in [10, 200] {
            let frame = RgbaImage::from_pixel(4, 4, image::Rgba([color, 0, 0, 255]));
            let delay = Delay::from_numer_denom_ms(100, 1);
            encoder.encode_frame(Frame::from_parts(frame, 0, 0, delay)).unwrap();
        }
        drop(encoder);
        bytes
    }

    #[test]
    fn comments_and_metadata_are_removed() {
        let plain = plain();
        // The trailer is the last byte.
        let (body, end) = plain.split_at(plain.len() - 1);
        let comment = b"\x21\xfe\x06by Ada\0";
        // XMP data are not in blocks; the trailer after them makes readers skip them.
        let trailer: Vec<u8> = [1].into_iter().chain((0..=255).rev()).chain([0]).collect();
        let xmp = [&b"\x21\xff\x0bXMP DataXMP<x exif:GPSLatitude='1'/>"[..], &trailer].concat();
        for (blocks, expected) in
            [(&comment[..], Metadata::Other), (&xmp, Metadata::Location), (b"", Metadata::Bare)]
        {
            let file = [body, blocks, end].concat();
            assert_eq!(metadata(&file, TYPE), expected);
            assert!(clean(&file, TYPE) == plain);
        }
        assert!(clean(&[&plain[..], b"more"].concat(), TYPE) == plain);
    }

    #[test]
    fn a_file_that_ends_early_gets_an_end() {
        let plain = plain();
        let end = plain.len() - 1;
        assert!(clean(&plain[..end], TYPE) == plain, "only the end is missing");
        let second = plain[..end].windows(2).rposition(|pair| pair == b"\x21\xf9").unwrap();
        let first = [&plain[..second], b";"].concat();
        for cut in second + 1..end {
            assert!(clean(&plain[..cut], TYPE) == first, "{cut}");
        }
        let comment = [&plain[..second], b"\x21\xfe\x06by Ada\0\x2c"].concat();
        assert!(clean(&comment, TYPE) == first);
    }
}
