//! What a file is, and whether it is what it claims to be.
//!
//! The bytes decide. A file that could pass for two things at once is refused, for what one reader shows
//! another may run; so is one that ends before its structure does. Sizes are judged by what the header
//! says, so that nothing has to be unpacked to find it too large.

use crate::{
    caps::SizeLimits,
    format::{self, Format, Shape, of_bytes},
    probe,
};
use domain::MediaKind;
use std::{
    io::{self, BufReader, Read, Seek, SeekFrom},
    time::Duration,
};

/// What a file's sender said of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredFile {
    /// Its content type.
    pub content_type: Option<String>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The SHA-256 of its bytes, in lower-case hex.
    pub sha256: Option<String>,
}

/// What a file turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProperties {
    /// What it is.
    pub kind: MediaKind,
    /// Its content type.
    pub content_type: &'static str,
    /// Pixels, where it has any, as it is shown.
    pub width: Option<u32>,
    /// Pixels, where it has any, as it is shown.
    pub height: Option<u32>,
    /// How long it plays, where it does and says so.
    pub duration: Option<Duration>,
}

/// Why a file is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is over the cap of its kind.
    #[error("{0}")]
    TooLarge(String),
    /// It is not what it claims to be, or nothing that is taken.
    #[error("{0}")]
    Unfit(String),
}

/// Why a file was not looked at, or not taken.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It is refused, now and ever.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] object_store::Error),
}

/// The most pixels of an image, and of one of its sides: no platform takes half of it.
const PIXELS: (u64, u64) = (250_000_000, 65_535);
/// The beginning of a file that its format is told by; packed formats name themselves late.
const HEAD: u64 = 64 << 10;
/// Readers of PDF look this far for its beginning.
const PDF: usize = 1024;
/// Where browsers and interpreters look for their own.
const MARKUP: usize = 4096;
/// The record that ends a ZIP archive, without and with the longest comment.
const ZIP_END: (usize, u64) = (22, 22 + 65_535);

/// Looks at a file of this size.
pub(crate) fn inspect(
    file: &mut (impl Read + Seek),
    size: u64,
    claim: &DeclaredFile,
    caps: &SizeLimits,
) -> Result<FileProperties, Refusal> {
    if let Some(claimed) = claim.size.filter(|claimed| *claimed != size) {
        return Err(unfit(format!("the file has {size} bytes, and {claimed} were announced")));
    }
    if size == 0 {
        return Err(unfit("the file is empty"));
    }
    let head = piece(file, 0, HEAD.min(size))?;
    let declared = claim.content_type.as_deref().and_then(format::format);
    let format = of_bytes(&head).ok_or_else(|| unfit("the file is of no type that is taken"))?;
    if let Some(declared) = declared.filter(|declared| declared.shape != format.shape) {
        return Err(lie(declared, format.mime));
    }
    // Before anything of its structure is read.
    hold(caps.of_claim(Some(format.kind)), format.kind, size)?;
    single(file, size, format, &head)?;
    rewind(file)?;
    let facts = probe::probe(&mut BufReader::with_capacity(64 << 10, &mut *file), size, format)?;
    if let Some(declared) = declared.filter(|declared| declared.mime != facts.content_type) {
        return Err(lie(declared, facts.content_type));
    }
    hold(caps.of(facts.kind), facts.kind, size)?;
    if let (Some(width), Some(height)) = (facts.width, facts.height) {
        let (width, height) = (u64::from(width), u64::from(height));
        if width == 0 || height == 0 || width.max(height) > PIXELS.1 || width * height > PIXELS.0 {
            let most = PIXELS.0 / 1_000_000;
            let message =
                format!("the {} has {width}x{height} pixels; at most {most} million are taken", facts.kind);
            return Err(unfit(message));
        }
    }
    Ok(facts)
}

fn hold(cap: u64, kind: MediaKind, size: u64) -> Result<(), Refusal> {
    if size > cap {
        let message = format!("the {kind} has {size} bytes, and at most {cap} are taken");
        return Err(Refusal::TooLarge(message));
    }
    Ok(())
}

/// Refuses what could pass for something else as well, and an archive that does not end as one.
fn single(file: &mut (impl Read + Seek), size: u64, format: &Format, head: &[u8]) -> Result<(), Refusal> {
    let other =
        |what: &str| Err(unfit(format!("the file is {} and could pass for {what} as well", format.mime)));
    let beginning = &head[..head.len().min(PDF)];
    if format.shape != Shape::Pdf && has(beginning, b"%PDF-") {
        return other("a PDF document");
    }
    let markup = head[..head.len().min(MARKUP)].to_ascii_lowercase();
    let words: [&[u8]; 5] = [b"<html", b"<script", b"<!doctype", b"<svg", b"<?php"];
    if format.kind != MediaKind::Document && words.iter().any(|word| has(&markup, word)) {
        return other("a page or a script");
    }
    let is_archive = ends_as_archive(&piece(file, size.saturating_sub(ZIP_END.1), size)?);
    match (format.shape == Shape::Zip, is_archive) {
        (false, true) => other("a ZIP archive"),
        (true, false) => Err(broken(&io::ErrorKind::UnexpectedEof.into())),
        _ => Ok(()),
    }
}

/// Whether the last bytes of a file are what a ZIP archive is read from.
/// <https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT>, 4.3.16
fn ends_as_archive(tail: &[u8]) -> bool {
    let is_end = |at: usize| {
        let comment = tail.get(at + ZIP_END.0 - 2..at + ZIP_END.0);
        let length = comment.map(|bytes| usize::from(u16::from_le_bytes([bytes[0], bytes[1]])));
        tail[at..].starts_with(b"PK\x05\x06") && length == Some(tail.len() - at - ZIP_END.0)
    };
    (0..tail.len().saturating_sub(ZIP_END.0 - 1)).any(is_end)
}

fn has(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

fn piece(file: &mut (impl Read + Seek), start: u64, end: u64) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(start)).and_then(|_| file.take(end - start).read_to_end(&mut bytes));
    read.map_err(|error| broken(&error))?;
    Ok(bytes)
}

fn rewind(file: &mut impl Seek) -> Result<(), Refusal> {
    file.seek(SeekFrom::Start(0)).map(drop).map_err(|error| broken(&error))
}

fn lie(declared: &Format, found: &str) -> Refusal {
    unfit(format!("the file is {found}, and {} was declared", declared.mime))
}

pub(crate) fn unfit(message: impl Into<String>) -> Refusal {
    Refusal::Unfit(message.into())
}

/// What a file is whose structure leads nowhere.
pub(crate) fn broken(error: &io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            unfit("the file ends before its structure does: it is truncated or damaged")
        }
        _ => unfit(format!("the file can't be read: {error}")),
    }
}
