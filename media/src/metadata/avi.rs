//! AVI: chunks that are not part of the video become `JUNK` of zeros, and so does what stood in such chunks before:
//! cameras keep dates, their own name and positions there.
//! <https://learn.microsoft.com/windows/win32/directshow/avi-riff-file-reference>, <https://exiftool.org/TagNames/RIFF.html>

use super::{Edit, Found, contains, read_range};
use crate::probe::{
    avi::{Chunk, each},
    malformed,
};
use std::{
    io::{self, Read, Seek},
    ops::Range,
};

/// Chunks and lists of the video.
const KEPT: [&[u8; 4]; 11] =
    [b"AVI ", b"AVIX", b"hdrl", b"avih", b"strl", b"strh", b"strf", b"indx", b"vprp", b"movi", b"idx1"];
/// Lists of which the parts are looked at; `movi` has samples.
const OPENED: [&[u8; 4]; 4] = [b"AVI ", b"AVIX", b"hdrl", b"strl"];
/// Maximum depth of lists within each other: a file has three.
const MAX_DEPTH: u32 = 8;
/// Maximum length of a chunk that is searched for a position, in bytes.
const MAX_READ: u64 = 1 << 20;

/// Finds the metadata.
pub(super) fn find(file: &mut (impl Read + Seek), size: u64) -> io::Result<Found> {
    let mut found = Found::default();
    level(file, 0..size, MAX_DEPTH, &mut found)?;
    Ok(found)
}

fn level<F: Read + Seek>(file: &mut F, range: Range<u64>, depth: u32, found: &mut Found) -> io::Result<()> {
    let depth = depth.checked_sub(1).ok_or_else(|| malformed("a list within lists"))?;
    each(file, range.start, range.end, &mut |file, part| {
        if part.is_list && OPENED.contains(&&part.id) {
            level(file, part.start..part.end, depth, found)
        } else if KEPT.contains(&&part.id) {
            Ok(())
        } else {
            void(file, &part, found)
        }
    })
}

fn void(file: &mut (impl Read + Seek), part: &Chunk, found: &mut Found) -> io::Result<()> {
    let content = part.at + 8..part.end;
    let bytes = read_range(file, content.start..content.end.min(content.start + MAX_READ))?;
    let is_empty = content.end - content.start <= MAX_READ && bytes.iter().all(|byte| *byte == 0);
    if &part.id == b"JUNK" && is_empty {
        return Ok(());
    }
    found.has_location |= [&b"GPS"[..], b"Location", b"location"].iter().any(|word| contains(&bytes, word));
    found.push(Edit::replace(part.at..part.at + 4, &b"JUNK"[..]))?;
    found.push(Edit::zero(content))
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use crate::probe::avi::tests::{chunk, list, movie};
    use domain::media::Metadata;

    #[test]
    fn what_is_not_part_of_the_video_becomes_junk() {
        let info = |text: &[u8]| list(b"LIST", b"INFO", &[chunk(b"ICMT", text)]);
        for (last, expected) in [
            (vec![], Metadata::Bare),
            (vec![chunk(b"idx1", &[1; 16]), chunk(b"JUNK", &[0; 9])], Metadata::Bare),
            (vec![info(b"by Ada")], Metadata::Other),
            (vec![chunk(b"JUNK", b"by Ada")], Metadata::Other),
            (vec![chunk(b"_PMX", b"<x:xmpmeta exif:GPSLatitude='1'>by Ada")], Metadata::Location),
        ] {
            let before = movie(64, 48, 25, &last);
            assert_eq!(metadata(&before, "video/x-msvideo"), expected);
            let after = clean(&before, "video/x-msvideo");
            assert_eq!(after.len(), before.len());
            let holds = |word: &str| after.windows(word.len()).any(|window| window == word.as_bytes());
            assert!(holds("samples") && !holds("Ada"));
            assert_eq!(metadata(&after, "video/x-msvideo"), Metadata::Bare);
            assert_eq!(after == before, expected == Metadata::Bare);
        }
    }
}
