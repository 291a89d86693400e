//! Detects a file's type and checks its kind against the declared one.
//!
//! The bytes decide: the declared type is a hint, of which only the kind is held to. A file that is valid in two formats at once is refused, because what one reader shows
//! another may run; so is a truncated file, except for a GIF, of which browsers show the frames that are there. Dimensions are taken from the header, so that nothing is
//! decompressed to find it too large.

use crate::{
    buffered::Buffered,
    container,
    file::{FileProperties, Refusal, broken, read_range, unfit, unsupported},
    format::{self, Format, Shape, has_index, of_bytes},
    probe::{self, image},
    size_limits::SizeLimits,
};
use domain::{MediaKind, media::DeclaredFile};
use std::io::{Read, Seek, SeekFrom};

/// Error of inspecting a file.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The file is refused. Final.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The file store could not be read.
    #[error(transparent)]
    Store(#[from] object_store::Error),
}

/// Maximum pixels of an image and of its longer side: more than twice what any platform accepts.
const MAX_PIXELS: (u64, u64) = (250_000_000, 65_535);
/// Length of the file's beginning that the format is detected from, and that markup is searched in.
const HEAD_BYTES: u64 = 8 << 10;
/// PDF readers search this many bytes for the header.
const PDF_BYTES: usize = 1024;
/// Browsers and interpreters search about this many bytes for markup.
const MARKUP_BYTES: usize = 4096;

/// Inspects a file of `size` bytes.
pub(crate) fn inspect(
    file: &mut (impl Read + Seek),
    size: u64,
    claim: &DeclaredFile,
    limits: &SizeLimits,
) -> Result<FileProperties, Refusal> {
    if let Some(expected) = claim.size.filter(|expected| *expected != size) {
        return Err(unfit(format!("the file has {size} bytes, but {expected} were declared")));
    }
    if size == 0 {
        return Err(unfit("the file is empty"));
    }
    let head = read_range(file, 0, HEAD_BYTES.min(size)).map_err(|error| broken(&error))?;
    let declared = claim.content_type.as_deref().and_then(format::format);
    let format = match has_index(&head) {
        true => container::detect(file, size, &head)?,
        false => of_bytes(&head),
    };
    let format = format.ok_or_else(unsupported)?;
    if let Some(declared) = declared.filter(|declared| !format.may_be_declared_as(declared)) {
        return Err(kind_mismatch(declared, format.mime));
    }
    // Before any of the structure is read.
    check_size(limits.for_declared(Some(format.kind)), format.kind, size)?;
    reject_ambiguous(file, size, format, &head)?;
    rewind(file)?;
    let properties = probe::probe(&mut Buffered::new(&mut *file), size, format)?;
    check_size(limits.for_kind(properties.kind), properties.kind, size)?;
    if let (Some(width), Some(height)) = (properties.width, properties.height) {
        let (width, height) = (u64::from(width), u64::from(height));
        if width == 0 || height == 0 || width.max(height) > MAX_PIXELS.1 || width * height > MAX_PIXELS.0 {
            let max = MAX_PIXELS.0 / 1_000_000;
            let message =
                format!("the {} has {width}x{height} pixels; the maximum is {max} million", properties.kind);
            return Err(unfit(message));
        }
    }
    Ok(properties)
}

fn check_size(cap: u64, kind: MediaKind, size: u64) -> Result<(), Refusal> {
    if size > cap {
        let message = format!("the {kind} has {size} bytes; the maximum is {cap}");
        return Err(Refusal::TooLarge(message));
    }
    Ok(())
}

/// Refuses a file that could also be read as another format.
fn reject_ambiguous(
    file: &mut (impl Read + Seek),
    size: u64,
    format: &Format,
    head: &[u8],
) -> Result<(), Refusal> {
    let other =
        |what: &str| Err(unfit(format!("the file is {} but could also be read as {what}", format.mime)));
    let beginning = &head[..head.len().min(PDF_BYTES)];
    if format.shape != Shape::Pdf && contains(beginning, b"%PDF-") {
        return other("a PDF document");
    }
    let markup = match format.shape {
        Shape::Jpeg => image::outside_of_segments(head),
        _ => head.to_vec(),
    };
    let markup = markup[..markup.len().min(MARKUP_BYTES)].to_ascii_lowercase();
    let words: [&[u8]; 4] = [b"<html", b"<script", b"<!doctype html", b"<?php"];
    if format.kind != MediaKind::Document && words.iter().any(|word| contains(&markup, word)) {
        return other("a page or a script");
    }
    let is_archive = container::ends_as_archive(file, size).map_err(|error| broken(&error))?;
    if is_archive && format.shape != Shape::Zip { other("a ZIP archive") } else { Ok(()) }
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

fn rewind(file: &mut impl Seek) -> Result<(), Refusal> {
    file.seek(SeekFrom::Start(0)).map(drop).map_err(|error| broken(&error))
}

fn kind_mismatch(declared: &Format, found: &str) -> Refusal {
    unfit(format!("the file is {found}, but {} was declared", declared.mime))
}
