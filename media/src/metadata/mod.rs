//! Removal of what a file tells about its author: the position, the device, comments, previews.
//!
//! Pixels and samples are kept byte for byte, with the color profile and the orientation. A file is not rewritten in
//! memory: [`find`] returns the [`Edit`]s that make the clean file of it, which are applied while it is copied, so that
//! a video of any size takes little memory. Pictures become shorter; in videos the bytes are overwritten, because the
//! tables of a movie refer to samples by their offset.
//!
//! Each format lists what is kept, not what is removed: a block that nobody here knows may hold a position.

mod avi;
mod exif;
mod gif;
mod jpeg;
mod movie;
mod png;
mod webm;
mod webp;

use crate::format::{Shape, format};
use bytes::Bytes;
use domain::media::Metadata;
use std::{
    io::{self, Read, Seek},
    ops::Range,
};

/// Maximum number of edits of a file.
const MAX_EDITS: usize = 200_000;

/// A range of a file and what replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Offsets in the original.
    pub(crate) range: Range<u64>,
    /// The replacement.
    pub(crate) with: Fill,
}

/// The replacement of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// These bytes, of any number.
    Bytes(Bytes),
    /// As many zeros as the range has bytes.
    Zeros,
}

impl Edit {
    fn remove(range: Range<u64>) -> Self {
        Self::replace(range, Vec::new())
    }

    fn replace(range: Range<u64>, bytes: impl Into<Bytes>) -> Self {
        Self { range, with: Fill::Bytes(bytes.into()) }
    }

    fn zero(range: Range<u64>) -> Self {
        Self { range, with: Fill::Zeros }
    }

    /// Length of the replacement.
    pub(crate) fn len(&self) -> u64 {
        match &self.with {
            Fill::Bytes(bytes) => bytes.len() as u64,
            Fill::Zeros => self.range.end - self.range.start,
        }
    }
}

/// Metadata of a file, and the edits that remove them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The edits, in order, without overlaps.
    pub(crate) edits: Vec<Edit>,
    has_location: bool,
}

impl Found {
    /// The most telling thing that the file holds.
    pub(crate) fn metadata(&self) -> Metadata {
        match (self.has_location, self.edits.is_empty()) {
            (true, _) => Metadata::Location,
            (false, false) => Metadata::Other,
            (false, true) => Metadata::Bare,
        }
    }

    fn push(&mut self, edit: Edit) -> io::Result<()> {
        if self.edits.len() >= MAX_EDITS {
            return Err(io::Error::other("its metadata are in too many places"));
        }
        self.edits.push(edit);
        Ok(())
    }

    /// Returns the edits in order, without overlaps: a range within an earlier one is dropped.
    fn sorted(mut self) -> Self {
        self.edits.sort_by_key(|edit| (edit.range.start, std::cmp::Reverse(edit.range.end)));
        let mut end = 0;
        self.edits.retain_mut(|edit| {
            let is_new = edit.range.end > end;
            edit.range.start = edit.range.start.max(end);
            end = end.max(edit.range.end);
            is_new
        });
        self
    }
}

/// Finds the metadata of a picture or video of this content type; `None` for a file whose metadata are left alone: audio,
/// documents, and pictures that are published as renditions only, which have none.
///
/// # Errors
///
/// If the file is not structured as its type says.
pub(crate) fn find(
    file: &mut (impl Read + Seek),
    size: u64,
    content_type: &str,
) -> io::Result<Option<Found>> {
    let Some(format) = format(content_type).filter(|format| format.kind.is_visual()) else { return Ok(None) };
    let found = match format.shape {
        Shape::Jpeg => jpeg::find(file, size)?,
        Shape::Png => png::find(file, size)?,
        Shape::WebP => webp::find(file, size)?,
        Shape::Gif => gif::find(file, size)?,
        Shape::Movie => movie::find(file, size)?,
        Shape::Ebml => webm::find(file, size)?,
        Shape::Avi => avi::find(file, size)?,
        // A header and pixels.
        Shape::Bmp => Found::default(),
        Shape::Heif
        | Shape::Tiff
        | Shape::Wave
        | Shape::Audio
        | Shape::Pdf
        | Shape::Zip
        | Shape::Compound => return Ok(None),
    };
    Ok(Some(found.sorted()))
}

/// Returns true if XMP data, which are XML, name a position.
/// <https://developer.adobe.com/xmp/docs/XMPNamespaces/exif/>
fn xmp_has_location(xmp: &[u8]) -> bool {
    contains(xmp, b"GPSLatitude") || contains(xmp, b"GPSLongitude")
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

/// Reads a range of the file, of a length that the caller has bounded.
fn read_range(file: &mut (impl Read + Seek), range: Range<u64>) -> io::Result<Vec<u8>> {
    file.seek(io::SeekFrom::Start(range.start))?;
    let mut bytes = Vec::new();
    file.take(range.end - range.start).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the pieces of a clean file: ranges of the original, and what stands between them.
pub(crate) fn pieces(edits: &[Edit], size: u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = 0;
    for edit in edits {
        if at < edit.range.start {
            pieces.push(Piece::Original(at..edit.range.start));
        }
        if edit.len() > 0 {
            pieces.push(match &edit.with {
                Fill::Bytes(bytes) => Piece::Bytes(bytes.clone()),
                Fill::Zeros => Piece::Zeros(edit.len()),
            });
        }
        at = edit.range.end;
    }
    if at < size {
        pieces.push(Piece::Original(at..size));
    }
    pieces
}

/// A piece of a clean file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A range of the original.
    Original(Range<u64>),
    /// These bytes.
    Bytes(Bytes),
    /// So many zeros.
    Zeros(u64),
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Cursor;

    /// The clean file, as it is written to the store.
    pub(crate) fn clean(file: &[u8], content_type: &str) -> Vec<u8> {
        let found = find(&mut Cursor::new(file), file.len() as u64, content_type).unwrap().unwrap();
        let mut clean = Vec::new();
        for piece in pieces(&found.edits, file.len() as u64) {
            match piece {
                Piece::Original(range) => clean.extend(&file[range.start as usize..range.end as usize]),
                Piece::Bytes(bytes) => clean.extend(bytes),
                Piece::Zeros(length) => clean.resize(clean.len() + length as usize, 0),
            }
        }
        clean
    }

    pub(crate) fn metadata(file: &[u8], content_type: &str) -> Metadata {
        let found = find(&mut Cursor::new(file), file.len() as u64, content_type).unwrap().unwrap();
        found.metadata()
    }

    /// EXIF data of a phone: camera, orientation 6, and a position.
    pub(crate) fn exif(orientation: u8) -> Vec<u8> {
        let entry = |tag: u16, kind: u16, count: u32, value: [u8; 4]| {
            [&tag.to_be_bytes()[..], &kind.to_be_bytes(), &count.to_be_bytes(), &value].concat()
        };
        let root = [
            entry(0x010f, 2, 4, *b"Cam\0"),
            entry(0x0112, 3, 1, [0, orientation, 0, 0]),
            entry(0x8825, 4, 1, 50_u32.to_be_bytes()),
        ];
        let gps = [
            entry(0x0001, 2, 2, *b"N\0\0\0"),
            entry(0x0002, 5, 3, 92_u32.to_be_bytes()),
            entry(0x0003, 2, 2, *b"E\0\0\0"),
        ];
        let degrees = [48_u32, 1, 51, 1, 30, 1].map(u32::to_be_bytes).concat();
        let tiff = [
            &b"MM\0*\0\0\0\x08"[..],
            &[0, 3],
            &root.concat(),
            &[0; 4],
            &[0, 3],
            &gps.concat(),
            &[0; 4],
            &degrees,
        ]
        .concat();
        assert_eq!(tiff.len(), 116);
        tiff
    }

    #[test]
    fn overlapping_edits_are_joined() {
        let mut found = Found::default();
        for range in [10..20, 0..5, 12..15, 18..25] {
            found.push(Edit::zero(range)).unwrap();
        }
        let ranges: Vec<_> = found.sorted().edits.into_iter().map(|edit| edit.range).collect();
        assert_eq!(ranges, [0..5, 10..20, 20..25]);
    }

    #[test]
    fn audio_and_documents_are_left_alone() {
        for content_type in ["audio/mpeg", "audio/mp4", "application/pdf", "image/heif", "text/html"] {
            assert_eq!(find(&mut Cursor::new(b"whatever"), 8, content_type).unwrap(), None);
        }
    }

    #[test]
    fn damaged_files_are_errors_and_never_panics() {
        let files: [(&[u8], &str); 6] = [
            (b"\xff\xd8\xff\xe1\xff", "image/jpeg"),
            (b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
            (b"RIFF\x10\0\0\0WEBPEX", "image/webp"),
            (b"GIF89a\x01\0\x01\0\x80", "image/gif"),
            (b"\0\0\0\x08ftyp\0\0\0\x20moov\0\0", "video/mp4"),
            (b"\x1a\x45\xdf\xa3\x9f\x42", "video/webm"),
        ];
        for (file, content_type) in files {
            for length in 0..=file.len() {
                let found = find(&mut Cursor::new(&file[..length]), length as u64, content_type);
                assert!(length == 0 || content_type == "video/mp4" || found.is_err(), "{content_type}");
            }
        }
    }
}
