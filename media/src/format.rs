//! Supported file formats.
//!
//! A format is detected by the first bytes (crate `infer`). The table has no format in which a browser
//! would run code: no SVG, no HTML.

use domain::MediaKind::{self, Audio, Document, Image, Video};

/// A file format.
#[derive(Debug, PartialEq, Eq)]
pub struct Format {
    /// Content type.
    pub mime: &'static str,
    /// Media kind, unless the file's structure determines another.
    pub kind: MediaKind,
    /// Structure, which selects the parser.
    pub(crate) shape: Shape,
    /// Alternative spellings of the content type.
    aliases: &'static [&'static str],
    /// File name extensions, without the dot.
    extensions: &'static [&'static str],
}

/// Structure of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Png,
    Jpeg,
    /// RIFF container.
    WebP,
    /// ISO base media container of a still image.
    Heif,
    Gif,
    /// ISO base media container.
    Movie,
    /// EBML.
    WebM,
    /// RIFF container.
    Wave,
    Audio,
    Pdf,
    Zip,
    /// OLE compound file of older office programs.
    Compound,
}

impl Format {
    /// Returns the usual extension of a file name, without the dot.
    pub(crate) fn extension(&self) -> Option<&'static str> {
        self.extensions.first().copied()
    }
}

const fn row(
    mime: &'static str,
    kind: MediaKind,
    shape: Shape,
    aliases: &'static [&'static str],
    extensions: &'static [&'static str],
) -> Format {
    Format { mime, kind, shape, aliases, extensions }
}

static FORMATS: &[Format] = &[
    row("image/jpeg", Image, Shape::Jpeg, &["image/jpg", "image/pjpeg"], &["jpg", "jpeg"]),
    row("image/png", Image, Shape::Png, &["image/x-png"], &["png"]),
    row("image/webp", Image, Shape::WebP, &[], &["webp"]),
    row("image/avif", Image, Shape::Heif, &[], &["avif"]),
    row("image/heif", Image, Shape::Heif, &["image/heic"], &["heif", "heic"]),
    row("image/gif", MediaKind::Gif, Shape::Gif, &[], &["gif"]),
    row("video/mp4", Video, Shape::Movie, &["video/x-m4v", "application/mp4"], &["mp4", "m4v"]),
    row("video/quicktime", Video, Shape::Movie, &[], &["mov", "qt"]),
    row("video/webm", Video, Shape::WebM, &[], &["webm"]),
    row("audio/mpeg", Audio, Shape::Audio, &["audio/mp3", "audio/x-mpeg", "audio/x-mp3"], &["mp3"]),
    row("audio/mp4", Audio, Shape::Movie, &["audio/m4a", "audio/x-m4a"], &["m4a", "m4b"]),
    row("audio/aac", Audio, Shape::Audio, &["audio/x-aac", "audio/aacp"], &["aac"]),
    row("audio/wav", Audio, Shape::Wave, &["audio/x-wav", "audio/wave", "audio/vnd.wave"], &["wav"]),
    row("audio/ogg", Audio, Shape::Audio, &["application/ogg", "audio/opus"], &["ogg", "oga", "opus"]),
    row("audio/flac", Audio, Shape::Audio, &["audio/x-flac"], &["flac"]),
    row("application/pdf", Document, Shape::Pdf, &["application/x-pdf"], &["pdf"]),
    row("application/msword", Document, Shape::Compound, &[], &["doc"]),
    row("application/vnd.ms-excel", Document, Shape::Compound, &[], &["xls"]),
    row("application/vnd.ms-powerpoint", Document, Shape::Compound, &[], &["ppt"]),
    row(
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        Document,
        Shape::Zip,
        &[],
        &["docx"],
    ),
    row(
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        Document,
        Shape::Zip,
        &[],
        &["xlsx"],
    ),
    row(
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        Document,
        Shape::Zip,
        &[],
        &["pptx"],
    ),
    row("application/vnd.oasis.opendocument.text", Document, Shape::Zip, &[], &["odt"]),
];

/// Returns the format of a content type, whose parameters are ignored.
pub fn format(content_type: &str) -> Option<&'static Format> {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    FORMATS.iter().find(|format| format.mime == essence || format.aliases.contains(&essence.as_str()))
}

/// Returns the kind that a file is declared to be by its content type, else by its name.
pub fn claimed(content_type: Option<&str>, filename: &str) -> Option<MediaKind> {
    let by_name = || of_extension(&filename.rsplit_once('.')?.1.to_ascii_lowercase());
    content_type.and_then(format).or_else(by_name).map(|format| format.kind)
}

/// Returns the format of a file name's extension, in lower case and without the dot.
pub(crate) fn of_extension(extension: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.extensions.contains(&extension))
}

/// Detects the format from a file's first bytes.
pub(crate) fn of_bytes(head: &[u8]) -> Option<&'static Format> {
    if let Some(brand) = brand(head) {
        return format(match brand {
            b"qt  " => "video/quicktime",
            b"M4A " | b"M4B " => "audio/mp4",
            b"avif" | b"avis" => "image/avif",
            b"heic" | b"heix" | b"heim" | b"heis" | b"mif1" | b"msf1" => "image/heif",
            _ => "video/mp4",
        });
    }
    // Matroska begins like WebM; the probe reads the DocType.
    if head.starts_with(b"\x1aE\xdf\xa3") {
        return format("video/webm");
    }
    format(infer::get(head)?.mime_type())
}

/// Returns the major brand of ISO base media. <https://mp4ra.org/registered-types/brands>
fn brand(head: &[u8]) -> Option<&[u8; 4]> {
    (head.get(4..8)? == b"ftyp").then(|| head.get(8..12)?.try_into().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_claimed_kind_is_the_declared_type_or_else_the_name() {
        for (content_type, filename, kind) in [
            (Some("image/JPG; q=1"), "a.mp4", Some(Image)),
            (Some("application/octet-stream"), "a.MP4", Some(Video)),
            (None, "a.b.gif", Some(MediaKind::Gif)),
            (None, "pdf", None),
            (None, "a.exe", None),
        ] {
            assert_eq!(claimed(content_type, filename), kind, "{content_type:?} {filename}");
        }
    }

    #[test]
    fn no_two_formats_share_a_name() {
        let names: Vec<_> = FORMATS
            .iter()
            .flat_map(|format| [&[format.mime], format.aliases, format.extensions].concat())
            .collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name}");
        }
    }

    #[test]
    fn the_format_is_detected_from_the_first_bytes() {
        let ftyp = |brand: &str| [b"\0\0\0\x18ftyp", brand.as_bytes(), b"\0\0\0\0isommp42"].concat();
        for (bytes, mime) in [
            (b"\xff\xd8\xff\xe0\0\x10JFIF".to_vec(), Some("image/jpeg")),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec(), Some("image/png")),
            (b"GIF89a\x01\0\x01\0".to_vec(), Some("image/gif")),
            (b"RIFF\x10\0\0\0WEBPVP8 ".to_vec(), Some("image/webp")),
            (b"RIFF\x10\0\0\0WAVEfmt ".to_vec(), Some("audio/wav")),
            (b"ID3\x04\0\0\0\0\0\0".to_vec(), Some("audio/mpeg")),
            (b"OggS\0\x02\0\0".to_vec(), Some("audio/ogg")),
            (b"fLaC\0\0\0\x22".to_vec(), Some("audio/flac")),
            (b"%PDF-1.7\n".to_vec(), Some("application/pdf")),
            (ftyp("isom"), Some("video/mp4")),
            (ftyp("qt  "), Some("video/quicktime")),
            (ftyp("M4A "), Some("audio/mp4")),
            (ftyp("avif"), Some("image/avif")),
            (ftyp("heic"), Some("image/heif")),
            (
                b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B\xf7\x81\x01B\xf2\x81\x04B\xf3\x81\x08B\x82\x84webm"
                    .to_vec(),
                Some("video/webm"),
            ),
            (b"<svg xmlns='http://www.w3.org/2000/svg'/>".to_vec(), None),
            (b"<!DOCTYPE html><html></html>".to_vec(), None),
            (b"MZ\x90\0".to_vec(), None),
            (b"#!/bin/sh\n".to_vec(), None),
            (Vec::new(), None),
        ] {
            assert_eq!(
                of_bytes(&bytes).map(|format| format.mime),
                mime,
                "{:?}",
                String::from_utf8_lossy(&bytes)
            );
        }
    }
}
