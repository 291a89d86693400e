//! Types of office documents, which an index tells that may be anywhere in the file: the central directory at the end of
//! a ZIP archive, and the directory of a compound file, whose sectors are chained.
//!
//! Nothing is unpacked. What a file says of its own size is believed up to a bound, and no chain is followed for longer
//! than a real one can be.

use crate::{
    file::{Refusal, broken, read_range, unfit},
    format::{ARCHIVE, DOCX, Format, PPTX, Shape, XLSX, format},
    probe::{malformed, take_at, truncated},
};
use std::io::{self, Read, Seek};

/// Size of a ZIP archive's end record, without comment and with the longest one.
const END_BYTES: (usize, u64) = (22, 22 + 65_535);
/// Most bytes that are read of a directory: some 50,000 entries of an archive, and 32,768 of a compound file.
const MAX_DIRECTORY: u64 = 4 << 20;
/// Most sectors of a list of sectors of the allocation table; each leads to 8 MB of the file or more.
const MAX_LISTS: u64 = 4096;
/// Numbers from this one on are no sectors.
const LAST_SECTOR: u32 = 0xffff_fffa;

/// Returns the type that the index of a file says; `None` if no document of an accepted type has such an index.
pub(crate) fn detect(
    file: &mut (impl Read + Seek),
    size: u64,
    head: &[u8],
) -> Result<Option<&'static Format>, Refusal> {
    if head.starts_with(ARCHIVE) {
        archive(file, size).map_err(|error| broken(&error))
    } else {
        let names = compound(file, size).map_err(|error| broken(&error))?;
        // Names are compared without regard to case.
        let has = |name: &str| names.iter().any(|found| found.eq_ignore_ascii_case(name));
        if has("EncryptedPackage") {
            return Err(unfit("the document is locked with a password; save it without one"));
        }
        let types = [
            ("WordDocument", "application/msword"),
            ("PowerPoint Document", "application/vnd.ms-powerpoint"),
            ("Workbook", "application/vnd.ms-excel"),
            ("Book", "application/vnd.ms-excel"),
        ];
        Ok(types.iter().find(|(name, _)| has(name)).and_then(|(_, mime)| format(mime)))
    }
}

/// Returns where an archive's end record begins in these last bytes of a file, if it fills them to the end.
/// <https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT>, 4.3.16
fn end_record(tail: &[u8]) -> Option<usize> {
    let is_end = |at: &usize| {
        let comment = tail.get(at + END_BYTES.0 - 2..at + END_BYTES.0);
        let length = comment.map(|bytes| usize::from(u16::from_le_bytes([bytes[0], bytes[1]])));
        tail[*at..].starts_with(b"PK\x05\x06") && length == Some(tail.len() - at - END_BYTES.0)
    };
    (0..tail.len().saturating_sub(END_BYTES.0 - 1)).rev().find(is_end)
}

/// Returns true if a file ends as an archive does.
pub(crate) fn ends_as_archive(file: &mut (impl Read + Seek), size: u64) -> io::Result<bool> {
    Ok(end_record(&read_range(file, size.saturating_sub(END_BYTES.1), size)?).is_some())
}

/// Returns the type of an archive by the names of its entries: Office Open XML has a folder of each program's name, and
/// OpenDocument names its type in an entry, as <https://docs.oasis-open.org/office/OpenDocument/v1.3/> part 2 requires.
fn archive(file: &mut (impl Read + Seek), size: u64) -> io::Result<Option<&'static Format>> {
    let start = size.saturating_sub(END_BYTES.1);
    let tail = read_range(file, start, size)?;
    let at = end_record(&tail).ok_or_else(truncated)?;
    let number = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")))
    };
    let short = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 2).map(|bytes| usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
    };
    let end = start + at as u64;
    let (length, offset) = match (number(&tail, at + 12), number(&tail, at + 16)) {
        (Some(length), Some(offset)) if length < u32::MAX && offset < u32::MAX => {
            (length.into(), offset.into())
        }
        // The record of an archive with 64-bit numbers, and before it where that is.
        _ => {
            let locator = end.checked_sub(20).ok_or_else(truncated)?;
            let record = u64::from_le_bytes(take_at(file, locator + 8)?);
            let at = |offset| record.checked_add(offset).ok_or_else(truncated);
            (u64::from_le_bytes(take_at(file, at(40)?)?), u64::from_le_bytes(take_at(file, at(48)?)?))
        }
    };
    if offset.checked_add(length).is_none_or(|past| past > end) {
        return Err(truncated());
    }
    let directory = read_range(file, offset, offset + length.min(MAX_DIRECTORY))?;
    let (mut rest, mut found, mut has_types) = (&directory[..], Vec::new(), false);
    while rest.starts_with(b"PK\x01\x02") {
        let lengths = [28, 30, 32].map(|at| short(rest, at).unwrap_or_default());
        let Some(name) = rest.get(46..46 + lengths[0]) else { break };
        if name == b"mimetype" {
            let place = number(rest, 42).unwrap_or_default();
            return Ok(format(&stored_text(file, place.into())?).filter(|format| format.shape == Shape::Zip));
        }
        let name = name.to_ascii_lowercase();
        has_types |= name == b"[content_types].xml";
        let folders = [(&b"word/"[..], DOCX), (b"ppt/", PPTX), (b"xl/", XLSX)];
        for (_, mime) in folders.iter().filter(|(folder, _)| name.starts_with(folder)) {
            if !found.contains(mime) {
                found.push(mime);
            }
        }
        rest = rest.get(46 + lengths.iter().sum::<usize>()..).unwrap_or_default();
    }
    // One with folders of two programs is a document of neither.
    Ok(match &found[..] {
        [mime] if has_types => format(mime),
        _ => None,
    })
}

/// Reads the beginning of an entry that is not compressed.
fn stored_text(file: &mut (impl Read + Seek), at: u64) -> io::Result<String> {
    let [.., a, b, c, d]: [u8; 30] = take_at(file, at)?;
    let start = at + 30 + u64::from(u16::from_le_bytes([a, b])) + u64::from(u16::from_le_bytes([c, d]));
    let length = u32::from_le_bytes(take_at(file, at + 22)?).min(100);
    let text = read_range(file, start, start + u64::from(length))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the names of the streams in a compound file's root.
/// <https://learn.microsoft.com/openspecs/windows_protocols/ms-cfb>
fn compound(file: &mut (impl Read + Seek), size: u64) -> io::Result<Vec<String>> {
    let header: [u8; 512] = take_at(file, 0)?;
    let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    // Sectors have 512 or 4096 bytes; the header takes the first one.
    let sector = match u16::from_le_bytes([header[30], header[31]]) {
        9 => 512,
        12 => 4096_u64,
        _ => return Err(malformed("the header")),
    };
    let place = |number: u32| (u64::from(number) + 1) * sector;
    let mut table: Vec<u32> = (0..109).map(|index| number(76 + 4 * index)).collect();
    let mut list = number(68);
    let entries = sector / 4 - 1;
    // No chain has more sectors than the file.
    let sectors = size / sector;
    for _ in 0..sectors.min(MAX_LISTS) {
        if list >= LAST_SECTOR || place(list) >= size {
            break;
        }
        let bytes = read_range(file, place(list), place(list) + sector)?;
        let numbers = bytes.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four")));
        let numbers: Vec<_> = numbers.collect();
        table.extend(numbers.iter().take(entries as usize));
        list = numbers.get(entries as usize).copied().ok_or_else(truncated)?;
    }
    // The chain of the directory's sectors.
    let mut at = number(48);
    let mut chain = Vec::new();
    while at < LAST_SECTOR && (chain.len() as u64) < sectors.min(MAX_DIRECTORY / sector) {
        chain.push(at);
        let index = usize::try_from(u64::from(at) / (sector / 4)).expect("a sector's number is short");
        let part = table.get(index).filter(|part| **part < LAST_SECTOR);
        let part = *part.ok_or_else(|| malformed("the chain of the directory"))?;
        at = u32::from_le_bytes(take_at(file, place(part) + u64::from(at) % (sector / 4) * 4)?);
    }
    let mut directory = Vec::new();
    for part in chain {
        directory.extend(read_range(file, place(part), place(part) + sector)?);
    }
    Ok(children(&directory))
}

/// Returns the names of the root's entries, which are a tree of siblings. What is embedded is in folders of their own.
fn children(directory: &[u8]) -> Vec<String> {
    let entries: Vec<_> = directory.chunks_exact(128).collect();
    let number = |entry: &[u8], at: usize| {
        usize::try_from(u32::from_le_bytes(entry[at..at + 4].try_into().expect("four bytes"))).ok()
    };
    let mut seen = vec![false; entries.len()];
    let mut next: Vec<_> = entries.first().and_then(|root| number(root, 76)).into_iter().collect();
    let mut names = Vec::new();
    while let Some(index) = next.pop() {
        let Some(entry) = entries.get(index).filter(|_| !std::mem::replace(&mut seen[index], true)) else {
            continue;
        };
        let length = usize::from(u16::from_le_bytes([entry[64], entry[65]])).clamp(2, 64) - 2;
        let letters = entry[..length].chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        names.push(char::decode_utf16(letters).map(|letter| letter.unwrap_or('\u{fffd}')).collect());
        next.extend([68, 72].into_iter().filter_map(|at| number(entry, at)));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::COMPOUND;
    use std::io::Cursor;

    /// An archive with entries of these names, each with `text` as its content.
    fn archive(names: &[&str], text: &str, comment: &str) -> Vec<u8> {
        let (mut bytes, mut directory) = (Vec::new(), Vec::new());
        for name in names {
            let at = u32::try_from(bytes.len()).unwrap().to_le_bytes();
            let lengths = [text.len() as u32; 2].map(u32::to_le_bytes).concat();
            let common =
                [&[20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &lengths, &[name.len() as u8, 0, 0, 0]]
                    .concat();
            directory.extend([&b"PK\x01\x02\x14\0"[..], &common, &[0; 10], &at, name.as_bytes()].concat());
            bytes.extend([&b"PK\x03\x04"[..], &common, name.as_bytes(), text.as_bytes()].concat());
        }
        let numbers = [directory.len() as u32, bytes.len() as u32].map(u32::to_le_bytes).concat();
        let count = [names.len() as u16; 2].map(u16::to_le_bytes).concat();
        let end =
            [&b"PK\x05\x06\0\0\0\0"[..], &count, &numbers, &(comment.len() as u16).to_le_bytes()].concat();
        [bytes, directory, end, comment.as_bytes().to_vec()].concat()
    }

    /// A compound file of sectors of 512 bytes: the allocation table, `filling` sectors, and then the directory with a root
    /// and these entries: name, left and right sibling, and first child.
    fn compound(filling: u32, entries: &[(&str, u32, u32, u32)]) -> Vec<u8> {
        let none = u32::MAX;
        let entry = |name: &str, links: [u32; 3]| {
            let mut letters: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let length = (letters.len() as u16 + 2).to_le_bytes();
            letters.resize(64, 0);
            [&letters[..], &length, &[2, 1], &links.map(u32::to_le_bytes).concat(), &[0; 48]].concat()
        };
        let root = entry("Root Entry", [none, none, 1]);
        let entries = entries.iter().map(|(name, left, right, child)| entry(name, [*left, *right, *child]));
        let mut directory = [root, entries.collect::<Vec<_>>().concat()].concat();
        directory.resize(directory.len().next_multiple_of(512), 0);
        let sectors = directory.len() as u32 / 512;
        let tables = (1 + filling + sectors).div_ceil(127);
        let first = tables + filling;
        let mut table = vec![0xffff_fffe_u32; (tables * 128) as usize];
        for sector in first..first + sectors - 1 {
            table[sector as usize] = sector + 1;
        }
        let table: Vec<u8> = table.into_iter().flat_map(u32::to_le_bytes).collect();
        let mut header = COMPOUND.to_vec();
        header.resize(512, 0xff);
        header[30..32].copy_from_slice(&9_u16.to_le_bytes());
        header[48..52].copy_from_slice(&first.to_le_bytes());
        for index in 0..tables {
            header[76 + index as usize * 4..][..4].copy_from_slice(&index.to_le_bytes());
        }
        [header, table, vec![0; filling as usize * 512], directory].concat()
    }

    fn detect(bytes: &[u8]) -> Result<Option<&'static str>, String> {
        let found = super::detect(&mut Cursor::new(bytes), bytes.len() as u64, bytes);
        found.map(|format| format.map(|format| format.mime)).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn an_archive_is_what_its_entries_are_in_any_order() {
        let odt = "application/vnd.oasis.opendocument.text";
        for (names, text, expected) in [
            (&["[Content_Types].xml", "_rels/.rels", "word/document.xml"][..], "", Some(DOCX)),
            // As SharePoint, others and old versions write them.
            (
                &[
                    "_rels/",
                    "docProps/app.xml",
                    "customXml/item1.xml",
                    "word/document2.xml",
                    "[Content_Types].xml",
                ],
                "",
                Some(DOCX),
            ),
            (&["[Content_Types].xml", "ppt/presentation.xml"], "", Some(PPTX)),
            (&["docProps/core.xml", "xl/workbook.bin", "[Content_Types].xml"], "", Some(XLSX)),
            (&["mimetype", "content.xml"], odt, Some(odt)),
            (&["content.xml", "mimetype"], odt, Some(odt)),
            (&["mimetype"], "application/epub+zip", None),
            (&["mimetype"], "image/png", None),
            (&["word/document.xml"], "", None),
            (&["[Content_Types].xml", "word/document.xml", "ppt/presentation.xml"], "", None),
            (&["META-INF/MANIFEST.MF", "[Content_Types].xml"], "", None),
            (&["passwords/word/"], "", None),
        ] {
            for comment in ["", "written by nobody PK"] {
                assert_eq!(detect(&archive(names, text, comment)), Ok(expected), "{names:?}");
            }
        }
        let whole = archive(&["[Content_Types].xml", "word/document.xml"], "words", "");
        for length in 4..whole.len() {
            assert!(detect(&whole[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn an_archive_with_64_bit_numbers_is_read() {
        let mut bytes = archive(&["[Content_Types].xml", "ppt/presentation.xml"], "", "");
        let end = bytes.split_off(bytes.len() - 22);
        let numbers = [12, 16].map(|at| u64::from(u32::from_le_bytes(end[at..at + 4].try_into().unwrap())));
        let record = bytes.len() as u64;
        bytes.extend([&b"PK\x06\x06"[..], &[0; 36], &numbers.map(u64::to_le_bytes).concat()].concat());
        bytes.extend([&b"PK\x06\x07"[..], &[0; 4], &record.to_le_bytes(), &[1, 0, 0, 0]].concat());
        bytes.extend([&end[..12], &[0xff; 8], &[0, 0]].concat());
        assert_eq!(detect(&bytes), Ok(Some(PPTX)));
        // It leads out of the file, or nowhere.
        for wrong in [u64::MAX, u64::MAX - 40, 1 << 40] {
            let at = bytes.len() - 22 - 12;
            bytes[at..at + 8].copy_from_slice(&wrong.to_le_bytes());
            assert!(detect(&bytes).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_compound_file_of_any_size_is_what_its_root_has() {
        let none = u32::MAX;
        for (filling, entries, expected) in [
            (0, &[("WordDocument", none, none, none)][..], Some("application/msword")),
            // Over 64 KiB, which the directory follows.
            (
                1000,
                &[("Current User", none, 2, none), ("PowerPoint Document", none, none, none)],
                Some("application/vnd.ms-powerpoint"),
            ),
            (300, &[("Workbook", none, none, none)], Some("application/vnd.ms-excel")),
            (0, &[("BOOK", none, none, none)], Some("application/vnd.ms-excel")),
            // A table that is embedded in a document, and one in something else.
            (
                0,
                &[
                    ("ObjectPool", none, 3, 2),
                    ("Workbook", none, none, none),
                    ("WordDocument", none, none, none),
                ],
                Some("application/msword"),
            ),
            (0, &[("ObjectPool", none, none, 2), ("Workbook", none, none, none)], None),
            (0, &[("__properties_version1.0", none, none, none)], None),
            // Siblings in a circle, and one that is not there.
            (0, &[("a", 2, none, none), ("b", 1, 1, none)], None),
            (0, &[("a", 1, 1, none)], None),
            (0, &[("a", 4000, none, none)], None),
        ] {
            assert_eq!(detect(&compound(filling, entries)), Ok(expected), "{entries:?}");
        }
        let locked = detect(&compound(0, &[("EncryptedPackage", none, none, none)]));
        assert_eq!(locked, Err("the document is locked with a password; save it without one".to_owned()));
    }

    #[test]
    fn a_chain_that_does_not_end_is_left() {
        let mut bytes = compound(0, &[("WordDocument", u32::MAX, u32::MAX, u32::MAX)]);
        // The directory's sector follows itself; a chain of the list of table sectors does so, too.
        bytes[512 + 4..512 + 8].copy_from_slice(&1_u32.to_le_bytes());
        bytes[68..72].copy_from_slice(&1_u32.to_le_bytes());
        assert_eq!(detect(&bytes), Ok(Some("application/msword")));
        for at in 0..bytes.len().min(700) {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                // Whatever it is: it ends.
                let _ = super::detect(&mut Cursor::new(&changed), changed.len() as u64, &changed);
            }
        }
    }
}
