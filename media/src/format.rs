//! Supported file formats.
//!
//! A format is detected by the first bytes (crate `infer`), or by its [index](crate::container). The table has no format in which a browser
//! would run code: no SVG, no HTML.

use domain::MediaKind::{self, Audio, Document, Image, Video};

/// A file format.
#[derive(Debug, PartialEq, Eq)]
pub struct Format {
    /// Content type.
    pub mime: &'static str,
    /// Name that people know.
    name: &'static str,
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
    Ebml,
    /// RIFF container of a video.
    Avi,
    Bmp,
    Tiff,
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
    name: &'static str,
    kind: MediaKind,
    shape: Shape,
    aliases: &'static [&'static str],
    extensions: &'static [&'static str],
) -> Format {
    Format { mime, name, kind, shape, aliases, extensions }
}

/// Beginning of an archive.
pub(crate) const ARCHIVE: &[u8] = b"PK\x03\x04";
/// Beginning of a compound file.
pub(crate) const COMPOUND: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
pub(crate) const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
pub(crate) const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
pub(crate) const PPTX: &str = "application/vnd.openxmlformats-officedocument.presentationml.presentation";

/// Aliases of MP4 are types of files with the same structure: 3GP is a profile of it, and M4V a name.
static FORMATS: &[Format] = &[
    row(
        "image/jpeg",
        "JPEG",
        Image,
        Shape::Jpeg,
        &["image/jpg", "image/pjpeg"],
        &["jpg", "jpeg", "jpe", "jfif"],
    ),
    row("image/png", "PNG", Image, Shape::Png, &["image/x-png", "image/apng"], &["png", "apng"]),
    row("image/webp", "WebP", Image, Shape::WebP, &[], &["webp"]),
    row("image/avif", "AVIF", Image, Shape::Heif, &[], &["avif"]),
    row(
        "image/heif",
        "HEIF",
        Image,
        Shape::Heif,
        &["image/heic", "image/heif-sequence", "image/heic-sequence"],
        &["heif", "heic", "hif"],
    ),
    row("image/gif", "GIF", MediaKind::Gif, Shape::Gif, &[], &["gif"]),
    row("image/bmp", "BMP", Image, Shape::Bmp, &["image/x-ms-bmp", "image/x-bmp"], &["bmp"]),
    row("image/tiff", "TIFF", Image, Shape::Tiff, &["image/tif", "image/x-tiff"], &["tif", "tiff"]),
    row(
        "video/mp4",
        "MP4",
        Video,
        Shape::Movie,
        &["video/x-m4v", "application/mp4", "video/3gpp", "video/3gpp2"],
        &["mp4", "m4v", "3gp", "3g2"],
    ),
    row("video/quicktime", "MOV", Video, Shape::Movie, &[], &["mov", "qt"]),
    row("video/webm", "WebM", Video, Shape::Ebml, &[], &["webm"]),
    row("video/x-matroska", "MKV", Video, Shape::Ebml, &["video/matroska"], &["mkv"]),
    row("video/x-msvideo", "AVI", Video, Shape::Avi, &["video/avi", "video/msvideo"], &["avi"]),
    row("audio/mpeg", "MP3", Audio, Shape::Audio, &["audio/mp3", "audio/x-mpeg", "audio/x-mp3"], &["mp3"]),
    row(
        "audio/mp4",
        "M4A",
        Audio,
        Shape::Movie,
        &["audio/m4a", "audio/x-m4a", "audio/3gpp"],
        &["m4a", "m4b"],
    ),
    row(
        "audio/aac",
        "AAC",
        Audio,
        Shape::Audio,
        &["audio/x-aac", "audio/aacp", "audio/vnd.dlna.adts"],
        &["aac"],
    ),
    row("audio/wav", "WAV", Audio, Shape::Wave, &["audio/x-wav", "audio/wave", "audio/vnd.wave"], &["wav"]),
    row("audio/ogg", "Ogg", Audio, Shape::Audio, &["application/ogg", "audio/opus"], &["ogg", "oga", "opus"]),
    row("audio/flac", "FLAC", Audio, Shape::Audio, &["audio/x-flac"], &["flac"]),
    row("application/pdf", "PDF", Document, Shape::Pdf, &["application/x-pdf"], &["pdf"]),
    row("application/msword", "DOC", Document, Shape::Compound, &[], &["doc"]),
    row("application/vnd.ms-excel", "XLS", Document, Shape::Compound, &[], &["xls"]),
    row("application/vnd.ms-powerpoint", "PPT", Document, Shape::Compound, &[], &["ppt", "pps"]),
    row(DOCX, "DOCX", Document, Shape::Zip, &[], &["docx"]),
    row(XLSX, "XLSX", Document, Shape::Zip, &[], &["xlsx"]),
    row(PPTX, "PPTX", Document, Shape::Zip, &[], &["pptx", "ppsx"]),
    row("application/vnd.oasis.opendocument.text", "ODT", Document, Shape::Zip, &[], &["odt"]),
];

/// Lists the accepted types by kind, for a refusal.
pub(crate) fn accepted() -> String {
    let of = |kinds: &[MediaKind]| {
        let names = FORMATS.iter().filter(|format| kinds.contains(&format.kind)).map(|format| format.name);
        names.collect::<Vec<_>>().join(", ")
    };
    format!(
        "accepted are pictures ({}), videos ({}), audio ({}) and documents ({})",
        of(&[Image, MediaKind::Gif]),
        of(&[Video]),
        of(&[Audio]),
        of(&[Document])
    )
}

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

/// Returns true if a file that begins so has an index, and is a document if it is anything.
pub(crate) fn has_index(head: &[u8]) -> bool {
    head.starts_with(ARCHIVE) || head.starts_with(COMPOUND)
}

/// Returns the kind that a file's first bytes say; documents of office programs are known by more than that.
pub(crate) fn kind_of_bytes(head: &[u8]) -> Option<MediaKind> {
    if has_index(head) { Some(Document) } else { of_bytes(head).map(|format| format.kind) }
}

/// Detects the format from a file's first bytes, except of files with an [index](crate::container).
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
    if has_index(head) {
        return None;
    }
    // `infer` knows some of the first bytes that such a file may have.
    if is_mpeg_audio(head) {
        return format("audio/mpeg");
    }
    format(infer::get(head)?.mime_type())
}

/// Returns true if a file begins with a frame of layer II or III of MPEG audio, of any version.
/// <http://www.mp3-tech.org/programmer/frame_header.html>
fn is_mpeg_audio(head: &[u8]) -> bool {
    let [0xff, version @ 0xe0..=0xff, rates, ..] = *head else { return false };
    let [version, layer] = [version >> 3 & 3, version >> 1 & 3];
    let [bit_rate, sample_rate] = [rates >> 4, rates >> 2 & 3];
    // These values are reserved; the first bit rate is that of the file's own choice.
    version != 1 && matches!(layer, 1 | 2) && (1..15).contains(&bit_rate) && sample_rate != 3
}

impl Format {
    /// Returns true if a file of this format may be declared as one of that. A declared type is the guess of a browser
    /// by the name, so that types of a kind are taken for each other, pictures that move for those that don't, and
    /// sound for video in a container that both have.
    pub(crate) fn may_be_declared_as(&self, declared: &Self) -> bool {
        let family = |kind| match kind {
            MediaKind::Gif => Image,
            kind => kind,
        };
        let has_both = |kind| matches!(kind, Audio | Video);
        family(self.kind) == family(declared.kind)
            || (self.shape == declared.shape && has_both(self.kind) && has_both(declared.kind))
    }
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
            (b"II*\0\x08\0\0\0\0\0\0\0".to_vec(), Some("image/tiff")),
            (b"MM\0*\0\0\0\x08\0\0\0\0".to_vec(), Some("image/tiff")),
            (b"RIFF\x10\0\0\0WEBPVP8 ".to_vec(), Some("image/webp")),
            (b"RIFF\x10\0\0\0WAVEfmt ".to_vec(), Some("audio/wav")),
            (b"ID3\x04\0\0\0\0\0\0".to_vec(), Some("audio/mpeg")),
            // Without a tag: of MPEG 1, 2 and 2.5, with a checksum and of layer II.
            (b"\xff\xfb\x90\x64\0\0".to_vec(), Some("audio/mpeg")),
            (b"\xff\xf3\x40\xc4\0\0".to_vec(), Some("audio/mpeg")),
            (b"\xff\xe3\x18\xc4\0\0".to_vec(), Some("audio/mpeg")),
            (b"\xff\xfa\x90\x64\0\0".to_vec(), Some("audio/mpeg")),
            (b"\xff\xfd\x90\x04\0\0".to_vec(), Some("audio/mpeg")),
            (b"\xff\xeb\x90\x64\0\0".to_vec(), None),
            (b"\xff\xfe<\0h\0t\0m\0l\0".to_vec(), None),
            (b"\xff\xf1\x50\x80\x02\x1f\xfc".to_vec(), Some("audio/aac")),
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
