//! Documents: only that they are all there. Nothing in them is opened.

use super::{Dimensions, truncated};
use crate::{
    format::{Format, Shape},
    inspect::{Refusal, broken},
};
use std::io::{self, Read, Seek, SeekFrom};

/// How far from its end a PDF's last mark stands.
const TAIL: u64 = 64 << 10;

/// Looks for what ends a document. That an archive ends as one was seen before.
pub(super) fn probe(
    file: &mut (impl Read + Seek),
    size: u64,
    format: &'static Format,
) -> Result<Dimensions, Refusal> {
    if format.shape == Shape::Pdf {
        ends(file, size, b"%%EOF").map_err(|error| broken(&error))?;
    }
    Ok(Dimensions { kind: format.kind, mime: format.mime, pixels: None, duration: None })
}

fn ends(file: &mut (impl Read + Seek), size: u64, last: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail)?;
    if tail.windows(last.len()).any(|window| window == last) { Ok(()) } else { Err(truncated()) }
}
