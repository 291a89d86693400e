//! Pictures as the pages of a PDF, a document that LinkedIn shows as a carousel.
//! <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/documents-api>
//!
//! A page contains its JPEG as it is (ISO 32000-1, 7.4.8), so that nothing is decoded: the PDF is written while it is sent,
//! and memory holds the tables of the JPEGs only. The color profile and the orientation of a picture become its page's;
//! its other metadata, such as the place where it was taken, are no part of a page and are left out.

mod jpeg;

use self::jpeg::Jpeg;
use super::{IMAGES, Settings};
use crate::{Media, MediaKind, MediaLimit, PublishRequest, Result, Session};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use sha2::{Digest, Sha256};
use std::ops::Range;
use uuid::Uuid;

/// Maximum size of a document.
pub(super) const MAX_BYTES: u64 = 100 << 20;
/// Number of pages, which is that of the pictures of a post; a document may have 300.
const MAX_PAGES: u64 = *IMAGES.count.end() as u64;
/// Bytes that a page has beside its picture, at most.
const PAGE_BYTES: u64 = 1 << 10;
/// Longest and shortest side of a page (ISO 32000-1, annex C).
const MAX_SIDE: f64 = 14_400.0;
const MIN_SIDE: f64 = 3.0;

/// Limits of a picture that becomes a page: another than a JPEG is made one, and as many as there may be are no larger
/// together than a document.
pub(super) const PAGE: MediaLimit =
    MediaLimit { mimes: &["image/jpeg"], max_bytes: MAX_BYTES / MAX_PAGES - PAGE_BYTES, ..IMAGES };

/// Returns true if these media of a main post become the pages of a document.
pub(super) fn is_made_of(media: &[Media], settings: &Settings) -> bool {
    let are_pictures = media.iter().all(|medium| medium.kind == MediaKind::Image);
    settings.document.is_some() && !media.is_empty() && are_pictures
}

/// Returns the pictures of a post that become the pages of a document; none if it has no such document.
pub(super) fn pages<'a>(post: &'a PublishRequest, settings: &Settings) -> &'a [Media] {
    if post.reply_to.is_none() && is_made_of(&post.media, settings) { &post.media } else { &[] }
}

/// Returns the document with these pages as a medium. Its id follows from them, so that an upload is that of these
/// pages; its size is not known before it is made.
pub(super) fn medium(pages: &[Media]) -> Media {
    let mut digest = Sha256::new();
    for Media { id, rendition, .. } in pages {
        digest.update(id);
        digest.update(rendition.as_deref().unwrap_or_default());
        digest.update([0]);
    }
    let digest = digest.finalize();
    Media {
        id: Uuid::from_bytes(digest[..16].try_into().expect("16 bytes of 32")),
        kind: MediaKind::Document,
        mime: "application/pdf".to_owned(),
        filename: "pages.pdf".to_owned(),
        size_bytes: 0,
        width: None,
        height: None,
        frames: None,
        duration: None,
        facts: None,
        alt_text: None,
        rendition: None,
    }
}

/// A part of a PDF.
enum Piece {
    Bytes(Bytes),
    /// A range of a picture's file.
    Picture(Box<Media>, Range<u64>),
}

/// A PDF that is not in memory.
pub(super) struct Pdf {
    pieces: Vec<Piece>,
    /// Size in bytes.
    pub(super) length: u64,
    /// Offsets of its objects, which are numbered from 1 in the order in which they are written.
    offsets: Vec<u64>,
}

impl Pdf {
    /// Reads the headers of the pictures, and returns the PDF with these pages.
    ///
    /// # Errors
    ///
    /// `rejected_415` if a picture is no JPEG that a PDF can contain.
    pub(super) async fn of(cx: &Session<'_>, pages: &[Media]) -> Result<Self> {
        let mut pictures = Vec::with_capacity(pages.len());
        for media in pages {
            pictures.push((media, Jpeg::read(cx, media).await?));
        }
        let mut pdf = Self { pieces: Vec::new(), length: 0, offsets: Vec::new() };
        // The second line shows programs that the file is not text.
        pdf.write(&b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"[..]);
        pdf.object("<</Type/Catalog/Pages 2 0 R>>");
        let mut numbers = Vec::with_capacity(pictures.len());
        let mut next = 3;
        for (_, picture) in &pictures {
            numbers.push(next);
            next += 3 + usize::from(picture.profile.is_some());
        }
        let kids: String = numbers.iter().map(|number| format!("{number} 0 R ")).collect();
        pdf.object(&format!("<</Type/Pages/Count {}/Kids[{kids}]>>", numbers.len()));
        for (number, (media, picture)) in numbers.into_iter().zip(pictures) {
            pdf.page(number, media, picture);
        }
        pdf.end();
        Ok(pdf)
    }

    /// Writes a page: itself, what is drawn on it, its picture, and the picture's color profile.
    fn page(&mut self, number: usize, media: &Media, picture: Jpeg) {
        let [contents, image, profile] = [number + 1, number + 2, number + 3];
        let (width, height) = picture.displayed();
        let scale = (MAX_SIDE / width.max(height)).min(1.0);
        // Two decimals, which move no pixel.
        let [w, h] = [width, height].map(|side| ((side * scale * 100.0).round() / 100.0).max(MIN_SIDE));
        self.object(&format!(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 {w} {h}]/Contents {contents} 0 R\
             /Resources<</XObject<</P {image} 0 R>>>>>>"
        ));
        let drawn = format!("{} cm /P Do", picture.matrix(w, h));
        self.stream(&format!("/Length {}", drawn.len()), [Piece::Bytes(drawn.into())]);
        let space = match picture.profile {
            Some(_) => format!("[/ICCBased {profile} 0 R]"),
            None => picture.color_space().to_owned(),
        };
        let Jpeg { width, height, components, .. } = picture;
        // Adobe's programs write inverted colors.
        let decode = if picture.is_inverted() { "/Decode[1 0 1 0 1 0 1 0]" } else { "" };
        let pixels = picture.pixels_at..media.size_bytes;
        let length = picture.head.len() as u64 + (pixels.end - pixels.start);
        self.stream(
            &format!(
                "/Type/XObject/Subtype/Image/Width {width}/Height {height}/ColorSpace {space}/BitsPerComponent 8\
                 /Filter/DCTDecode{decode}/Length {length}"
            ),
            [Piece::Bytes(picture.head.into()), Piece::Picture(Box::new(media.clone()), pixels)],
        );
        if let Some(profile) = picture.profile {
            let length = profile.len();
            self.stream(&format!("/N {components}/Length {length}"), [Piece::Bytes(profile.into())]);
        }
    }

    /// Writes where the objects are.
    fn end(&mut self) {
        let (at, size) = (self.length, self.offsets.len() + 1);
        let mut table = format!("xref\n0 {size}\n0000000000 65535 f \n");
        table.extend(self.offsets.iter().map(|offset| format!("{offset:010} 00000 n \n")));
        table += &format!("trailer\n<</Size {size}/Root 1 0 R>>\nstartxref\n{at}\n%%EOF\n");
        self.write(table);
    }

    fn object(&mut self, value: &str) {
        self.offsets.push(self.length);
        self.write(format!("{} 0 obj\n{value}\nendobj\n", self.offsets.len()));
    }

    fn stream(&mut self, dictionary: &str, pieces: impl IntoIterator<Item = Piece>) {
        self.offsets.push(self.length);
        self.write(format!("{} 0 obj\n<<{dictionary}>>\nstream\n", self.offsets.len()));
        pieces.into_iter().for_each(|piece| self.piece(piece));
        self.write("\nendstream\nendobj\n");
    }

    fn write(&mut self, bytes: impl Into<Bytes>) {
        self.piece(Piece::Bytes(bytes.into()));
    }

    fn piece(&mut self, piece: Piece) {
        self.length += match &piece {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::Picture(_, range) => range.end - range.start,
        };
        self.pieces.push(piece);
    }

    /// Streams its bytes.
    pub(super) fn into_stream(self, cx: &Session<'_>) -> impl Stream<Item = Result<Bytes>> + Send + use<> {
        let pieces = self.pieces.into_iter().map(|piece| match piece {
            Piece::Bytes(bytes) => stream::once(async { Ok(bytes) }).boxed(),
            Piece::Picture(media, range) => cx.slice(&media, range).boxed(),
        });
        stream::iter(pieces.collect::<Vec<_>>()).flatten()
    }
}
