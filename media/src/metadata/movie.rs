//! MP4 and QuickTime: boxes. Kept are those that play the movie; the others, and tracks of metadata such as the positions
//! that an action camera records, become free space of the same length.
//! <https://mp4ra.org/registered-types/boxes>,
//! <https://developer.apple.com/documentation/quicktime-file-format/user_data_atoms>

use super::{Edit, Found, contains, read_range, xmp_has_location};
use crate::probe::{
    malformed,
    mp4::{Box, each},
    take_at,
};
use std::io::{self, Read, Seek};

/// Boxes that are kept, by the box that holds them.
const TOP: [&[u8; 4]; 14] = [
    b"ftyp", b"moov", b"mdat", b"moof", b"mfra", b"sidx", b"ssix", b"styp", b"prft", b"emsg", b"pdin",
    b"free", b"skip", b"wide",
];
const MOVIE: [&[u8; 4]; 10] =
    [b"mvhd", b"trak", b"mvex", b"iods", b"pssh", b"ctab", b"clip", b"free", b"skip", b"wide"];
const TRACK: [&[u8; 4]; 13] = [
    b"tkhd", b"mdia", b"edts", b"tref", b"tapt", b"load", b"matt", b"clip", b"trgr", b"txas", b"free",
    b"skip", b"wide",
];
/// User data that say nothing about the author: names of tracks, streaming hints, loudness, the encoding program.
const HARMLESS: [&[u8; 4]; 9] =
    [b"name", b"hnti", b"hinf", b"ludt", b"kind", b"tagc", b"free", b"skip", b"\xa9too"];
/// Handlers of tracks that are kept: pictures, sound, texts, time codes.
const HANDLERS: [&[u8; 4]; 11] =
    [b"vide", b"soun", b"text", b"sbtl", b"subt", b"subp", b"clcp", b"tmcd", b"hint", b"auxv", b"pict"];
/// Words that announce a position: user data of QuickTime and 3GPP, keys of Apple, tracks of GoPro and Android.
const POSITIONS: [&[u8]; 5] = [b"\xa9xyz", b"loci", b"ISO6709", b"gpmd", b"camm"];
/// Bytes of a box that are searched for them.
const MAX_READ: u64 = 1 << 20;
/// Maximum length of a table of samples, in bytes.
const MAX_TABLE: u64 = 16 << 20;

/// Finds the metadata.
pub(super) fn find(file: &mut (impl Read + Seek), size: u64) -> io::Result<Found> {
    let mut found = Found::default();
    each(file, 0, size, |file, part| match &part.kind {
        b"moov" => movie(file, &part, size, &mut found),
        kind if TOP.contains(&kind) => Ok(()),
        _ => free(file, &part, &mut found),
    })?;
    Ok(found)
}

fn movie(file: &mut (impl Read + Seek), moov: &Box, size: u64, found: &mut Found) -> io::Result<()> {
    let (mut has_fragments, mut has_lost_track) = (false, false);
    each(file, moov.start, moov.end, |file, part| {
        has_fragments |= &part.kind == b"mvex";
        match &part.kind {
            b"trak" => has_lost_track |= track(file, &part, size, found)?,
            b"udta" if is_harmless(file, &part)? => {}
            kind if MOVIE.contains(&kind) => {}
            _ => free(file, &part, found)?,
        }
        Ok(())
    })?;
    if has_fragments && has_lost_track {
        return Err(io::Error::other("its metadata are in fragments"));
    }
    Ok(())
}

/// Removes the metadata of a track. Returns true if the whole track is one of metadata, and removed.
fn track(file: &mut (impl Read + Seek), trak: &Box, size: u64, found: &mut Found) -> io::Result<bool> {
    let mut handler = None;
    let mut tables = Tables::default();
    each(file, trak.start, trak.end, |file, part| match &part.kind {
        b"mdia" => each(file, part.start, part.end, |file, part| match &part.kind {
            b"hdlr" => {
                handler = Some(take_at::<4>(file, part.start + 8)?);
                Ok(())
            }
            b"minf" => each(file, part.start, part.end, |file, part| match &part.kind {
                b"stbl" => each(file, part.start, part.end, |_, part| {
                    tables.note(part);
                    Ok(())
                }),
                _ => Ok(()),
            }),
            _ => Ok(()),
        }),
        _ => Ok(()),
    })?;
    if handler.is_some_and(|handler| !HANDLERS.contains(&&handler)) {
        for (start, end) in tables.chunks(file, size)? {
            found.push(Edit::zero(start..end))?;
        }
        free(file, trak, found)?;
        return Ok(true);
    }
    each(file, trak.start, trak.end, |file, part| match &part.kind {
        b"udta" if is_harmless(file, &part)? => Ok(()),
        kind if TRACK.contains(&kind) => Ok(()),
        _ => free(file, &part, found),
    })?;
    Ok(false)
}

/// Turns a box into free space.
fn free(file: &mut (impl Read + Seek), part: &Box, found: &mut Found) -> io::Result<()> {
    if part.start == part.end {
        return Ok(());
    }
    let content = read_range(file, part.start..part.end.min(part.start + MAX_READ))?;
    found.has_location |= POSITIONS.iter().any(|word| contains(&content, word)) || xmp_has_location(&content);
    found.push(Edit::replace(part.kind_at..part.kind_at + 4, &b"free"[..]))?;
    found.push(Edit::zero(part.start..part.end))
}

/// Returns true if user data name nothing but the program that encoded the file, or tracks.
fn is_harmless(file: &mut (impl Read + Seek), udta: &Box) -> io::Result<bool> {
    let mut is_harmless = true;
    let read = each(file, udta.start, udta.end, |file, part| {
        is_harmless &= match &part.kind {
            b"meta" => names_encoder_only(file, &part)?,
            kind => HARMLESS.contains(&kind),
        };
        Ok(())
    });
    // User data of an unknown structure are removed.
    Ok(read.is_ok() && is_harmless)
}

/// Returns true if the metadata that iTunes defined name nothing but the program that encoded the file.
fn names_encoder_only(file: &mut (impl Read + Seek), meta: &Box) -> io::Result<bool> {
    let mut is_only = true;
    each(file, meta.start + 4, meta.end, |file, part| match &part.kind {
        b"hdlr" | b"free" => Ok(()),
        b"ilst" => each(file, part.start, part.end, |_, part| {
            is_only &= &part.kind == b"\xa9too";
            Ok(())
        }),
        _ => {
            is_only = false;
            Ok(())
        }
    })?;
    Ok(is_only)
}

/// The tables of a track that locate its samples.
#[derive(Default)]
struct Tables {
    offsets: Option<(Box, u64)>,
    runs: Option<Box>,
    sizes: Option<Box>,
}

impl Tables {
    fn note(&mut self, part: Box) {
        match &part.kind {
            b"stco" => self.offsets = Some((part, 4)),
            b"co64" => self.offsets = Some((part, 8)),
            b"stsc" => self.runs = Some(part),
            b"stsz" | b"stz2" => self.sizes = Some(part),
            _ => {}
        }
    }

    /// Returns the ranges of the track's chunks.
    fn chunks(&self, file: &mut (impl Read + Seek), size: u64) -> io::Result<Vec<(u64, u64)>> {
        let (Some((offsets, width)), Some(runs), Some(sizes)) = (&self.offsets, &self.runs, &self.sizes)
        else {
            return Ok(Vec::new());
        };
        let offsets = table(file, offsets, 4, *width)?;
        // First chunk, samples in each chunk, description.
        let runs = table(file, runs, 4, 12)?;
        let runs: Vec<_> = runs.iter().map(|run| ((run >> 64) as u64, (run >> 32) as u32)).collect();
        let mut sizes = sample_sizes(file, sizes)?;
        let mut chunks: Vec<(u64, u64)> = Vec::new();
        let mut run = 0;
        for (number, start) in (1..).zip(offsets) {
            while runs.get(run + 1).is_some_and(|(first, _)| *first <= number) {
                run += 1;
            }
            let Some((_, samples)) = runs.get(run) else { return Err(malformed("a table of samples")) };
            let start = u64::try_from(start).map_err(|_| malformed("a table of samples"))?;
            let length = sizes.take((*samples).into());
            let end = start.checked_add(length).filter(|end| *end <= size);
            let end = end.ok_or_else(|| malformed("a table of samples"))?;
            match chunks.last_mut() {
                _ if length == 0 => {}
                Some(last) if last.1 == start => last.1 = end,
                _ => chunks.push((start, end)),
            }
        }
        Ok(chunks)
    }
}

/// Sizes of a track's samples.
enum Sizes {
    Equal(u64),
    Each(std::vec::IntoIter<u128>),
}

impl Sizes {
    /// Returns the size of the next samples together.
    fn take(&mut self, count: u64) -> u64 {
        match self {
            Self::Equal(size) => size.saturating_mul(count),
            Self::Each(sizes) => {
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                sizes.take(count).fold(0, |sum: u64, size| sum.saturating_add(size as u64))
            }
        }
    }
}

fn sample_sizes(file: &mut (impl Read + Seek), part: &Box) -> io::Result<Sizes> {
    if &part.kind == b"stz2" {
        let [_, _, _, bits] = take_at::<4>(file, part.start + 4)?;
        return match bits {
            8 | 16 => Ok(Sizes::Each(table(file, part, 8, u64::from(bits) / 8)?.into_iter())),
            _ => Err(malformed("a table of samples")),
        };
    }
    match u32::from_be_bytes(take_at(file, part.start + 4)?) {
        0 => Ok(Sizes::Each(table(file, part, 8, 4)?.into_iter())),
        size => Ok(Sizes::Equal(size.into())),
    }
}

/// Reads the rows of a table: their number at `offset` in the box, and behind it rows of `width` bytes.
fn table(file: &mut (impl Read + Seek), part: &Box, offset: u64, width: u64) -> io::Result<Vec<u128>> {
    let count = u64::from(u32::from_be_bytes(take_at(file, part.start + offset)?));
    let start = part.start + offset + 4;
    let end = start + count * width;
    if end > part.end || count * width > MAX_TABLE {
        return Err(malformed("a table of samples"));
    }
    let bytes = read_range(file, start..end)?;
    let number = |row: &[u8]| row.iter().fold(0, |number: u128, byte| number << 8 | u128::from(*byte));
    Ok(bytes.chunks_exact(width as usize).map(number).collect())
}

#[cfg(test)]
mod tests {
    use super::super::{find, tests::*};
    use domain::media::Metadata;
    use std::io::Cursor;

    const TYPE: &str = "video/mp4";

    fn atom(kind: &[u8; 4], content: &[&[u8]]) -> Vec<u8> {
        let content = content.concat();
        [&((content.len() + 8) as u32).to_be_bytes()[..], kind, &content].concat()
    }

    /// A track whose two samples of 3 and 5 bytes are in chunks at these offsets.
    fn track(handler: &[u8; 4], description: &[u8; 4], chunks: [u32; 2], more: &[u8]) -> Vec<u8> {
        let number = |number: u32| number.to_be_bytes();
        let [first, second] = chunks.map(number);
        let tables = [
            atom(b"stsd", &[&[0; 4], &number(1), &atom(description, &[&[0; 8]])]),
            atom(b"stsz", &[&[0; 8], &number(2), &number(3), &number(5)]),
            atom(b"stsc", &[&[0; 4], &number(1), &number(1), &number(1), &number(1)]),
            atom(b"stco", &[&[0; 4], &number(2), &first, &second]),
        ]
        .concat();
        let hdlr = atom(b"hdlr", &[&[0; 8], handler, &[0; 12]]);
        let mdia = atom(b"mdia", &[&hdlr, &atom(b"minf", &[&atom(b"stbl", &[&tables])])]);
        atom(b"trak", &[&atom(b"tkhd", &[&[0; 84]]), &mdia, more])
    }

    /// A movie whose samples are "abc", "12345", "def" and "67890".
    fn file(in_moov: &[u8], in_track: &[u8], second: (&[u8; 4], &[u8; 4]), at_top: &[u8]) -> Vec<u8> {
        let ftyp = atom(b"ftyp", &[b"mp42", &[0; 4]]);
        let mdat = atom(b"mdat", &[b"abc", b"def", b"12345", b"67890"]);
        let at = (ftyp.len() + 8) as u32;
        let tracks = [
            track(b"vide", b"avc1", [at, at + 6], in_track),
            track(second.0, second.1, [at + 3, at + 11], b""),
        ]
        .concat();
        let moov = atom(b"moov", &[&atom(b"mvhd", &[&[0; 100]]), &tracks, in_moov]);
        [ftyp, mdat, moov, at_top.to_vec()].concat()
    }

    const SOUND: (&[u8; 4], &[u8; 4]) = (b"soun", b"mp4a");

    #[test]
    fn the_position_and_the_device_are_overwritten_in_place() {
        let xyz = atom(b"udta", &[&atom(b"\xa9xyz", &[b"\0\x12\x15\xc7+48.8584+002.2945/"])]);
        let keys = atom(b"meta", &[&atom(b"keys", &[b"mdtacom.apple.quicktime.location.ISO6709"])]);
        let make = atom(b"udta", &[&atom(b"\xa9mak", &[b"Cam"])]);
        let xmp = atom(b"uuid", &[&[7; 16], b"<x exif:GPSLatitude='48,51N'/>"]);
        for (in_moov, in_track, at_top, expected) in [
            (&xyz[..], &b""[..], &b""[..], Metadata::Location),
            (&keys, b"", b"", Metadata::Location),
            (b"", b"", &xmp, Metadata::Location),
            (b"", &make, b"", Metadata::Other),
            (&make, b"", b"", Metadata::Other),
            (b"", b"", b"", Metadata::Bare),
        ] {
            let before = file(in_moov, in_track, SOUND, at_top);
            assert_eq!(metadata(&before, TYPE), expected);
            let after = clean(&before, TYPE);
            assert_eq!(after.len(), before.len());
            let blank = |part: &[u8]| match part.is_empty() {
                true => Vec::new(),
                false => atom(b"free", &[&vec![0; part.len() - 8]]),
            };
            assert!(after == file(&blank(in_moov), &blank(in_track), SOUND, &blank(at_top)));
            assert_eq!(metadata(&after, TYPE), Metadata::Bare);
        }
    }

    #[test]
    fn a_track_of_positions_loses_its_samples() {
        let before = file(b"", b"", (b"meta", b"gpmd"), b"");
        assert_eq!(metadata(&before, TYPE), Metadata::Location);
        let after = clean(&before, TYPE);
        assert_eq!(after.len(), before.len());
        let holds = |file: &[u8], word: &[u8]| file.windows(word.len()).any(|window| window == word);
        assert!(holds(&before, b"abcdef1234567890") && holds(&before, b"gpmd"));
        // "def" and "67890" are the second track's samples of 3 and 5 bytes.
        assert!(
            holds(&after, &[&b"abc\0\0\0"[..], b"12345", &[0; 5]].concat()),
            "{:?}",
            String::from_utf8_lossy(&after)
        );
        assert!(!holds(&after, b"gpmd") && holds(&after, b"avc1"));
        let fragmented = file(&atom(b"mvex", &[]), b"", (b"meta", b"gpmd"), b"");
        let refused = find(&mut Cursor::new(&fragmented), fragmented.len() as u64, TYPE).unwrap_err();
        assert_eq!(refused.to_string(), "its metadata are in fragments");
        // A table that leads outside of the file.
        let mut broken = file(b"", b"", (b"meta", b"gpmd"), b"");
        let at = broken.windows(4).rposition(|window| window == b"stco").unwrap() + 12;
        broken[at] = 0xff;
        assert!(find(&mut Cursor::new(&broken), broken.len() as u64, TYPE).is_err());
    }

    #[test]
    fn the_name_of_the_encoder_is_no_secret() {
        let encoder = atom(b"ilst", &[&atom(b"\xa9too", &[b"Lavf60"])]);
        let comment = atom(b"ilst", &[&atom(b"\xa9cmt", &[b"by Ada"])]);
        for (ilst, expected) in [(encoder, Metadata::Bare), (comment, Metadata::Other)] {
            let meta = atom(b"meta", &[&[0; 4], &atom(b"hdlr", &[&[0; 25]]), &ilst]);
            let file = file(&atom(b"udta", &[&meta]), b"", SOUND, b"");
            assert_eq!(metadata(&file, TYPE), expected);
        }
    }
}
