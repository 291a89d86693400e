//! Documents: checks only that they are complete, without opening them.

use super::{Dimensions, truncated};
use crate::{
    format::{Format, Shape},
    inspect::{Refusal, broken},
};
use std::io::{self, Read, Seek, SeekFrom};

/// Length of the file's end in which a PDF's end marker is searched.
const TAIL: u64 = 64 << 10;

/// Checks that a PDF has its end marker. `inspect` has already checked the end of an archive.
pub(super) fn probe(
    file: &mut (impl Read + Seek),
    size: u64,
    format: &'static Format,
) -> Result<Dimensions, Refusal> {
    if format.shape == Shape::Pdf {
        check_end(file, size, b"%%EOF").map_err(|error| broken(&error))?;
    }
    Ok(Dimensions { kind: format.kind, mime: format.mime, pixels: None, frames: None, duration: None })
}

fn check_end(file: &mut (impl Read + Seek), size: u64, marker: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail)?;
    if tail.windows(marker.len()).any(|window| window == marker) { Ok(()) } else { Err(truncated()) }
}
