//! The header of a JPEG: what a PDF has to say of a picture, and the tables that its pixels need.
//! <https://www.w3.org/Graphics/JPEG/itu-t81.pdf>, annex B
//!
//! Segments are read one at a time, and those of metadata only where they say how the picture is to be shown.

use crate::{Media, Result, Session};
use bytes::Bytes;
use domain::Failure;

/// Bytes that are read at once: more than any segment has.
const WINDOW_BYTES: u64 = 128 << 10;
/// Maximum size of a picture's tables together.
const MAX_TABLES: usize = 64 << 10;
/// Maximum size of a color profile, as in renditions. A larger one is left out.
const MAX_PROFILE: usize = 64 << 10;

/// A JPEG without its pixels.
#[derive(Debug)]
pub(super) struct Jpeg {
    /// Width as it is stored, in pixels.
    pub(super) width: u16,
    /// Height as it is stored.
    pub(super) height: u16,
    /// Number of colors: 1, 3 or 4.
    pub(super) components: u8,
    is_of_adobe: bool,
    /// How the stored pixels are turned to be shown, as EXIF numbers it.
    orientation: u16,
    /// Color profile.
    pub(super) profile: Option<Vec<u8>>,
    /// Its segments before the pixels, without metadata.
    pub(super) head: Vec<u8>,
    /// Offset of the pixels' first segment in the file.
    pub(super) pixels_at: u64,
}

impl Jpeg {
    /// Reads the header of a picture's file.
    pub(super) async fn read(cx: &Session<'_>, media: &Media) -> Result<Self> {
        let unfit = |why: &str| {
            Failure::rejected(415, format!("medium {} can't be a page of a document: {why}", media.id))
        };
        let mut file = Window { cx, media, bytes: Bytes::new(), at: 0 };
        let mut segments = Segments::default();
        let mut at = 2;
        if file.get(0, 2).await?.as_deref() != Some(&[0xff, 0xd8][..]) {
            return Err(unfit("it is no JPEG"));
        }
        loop {
            let Some(start) = file.get(at, 4).await? else { return Err(unfit("it ends before its pixels")) };
            let (mark, length) = (start[1], u64::from(u16::from_be_bytes([start[2], start[3]])));
            match start[0] {
                // Any number of these may precede a segment.
                0xff if mark == 0xff => {
                    at += 1;
                    continue;
                }
                0xff if length >= 2 => {}
                _ => return Err(unfit("its segments are broken")),
            }
            if mark == PIXELS {
                break;
            }
            if Segments::reads(mark) {
                let segment = file.get(at, length + 2).await?;
                let segment = segment.ok_or_else(|| unfit("it ends before its pixels"))?;
                segments.take(mark, &segment).map_err(unfit)?;
            }
            at += length + 2;
        }
        segments.finish(at).map_err(unfit)
    }

    fn is_on_its_side(&self) -> bool {
        self.orientation > 4
    }

    /// Returns width and height as they are shown.
    pub(super) fn displayed(&self) -> (f64, f64) {
        let (width, height) = (f64::from(self.width), f64::from(self.height));
        if self.is_on_its_side() { (height, width) } else { (width, height) }
    }

    /// Returns the matrix that draws the picture upright on a page of this size (ISO 32000-1, 8.3.4).
    pub(super) fn matrix(&self, w: f64, h: f64) -> String {
        match self.orientation {
            2 => format!("-{w} 0 0 {h} {w} 0"),
            3 => format!("-{w} 0 0 -{h} {w} {h}"),
            4 => format!("{w} 0 0 -{h} 0 {h}"),
            5 => format!("0 -{h} -{w} 0 {w} {h}"),
            6 => format!("0 -{h} {w} 0 0 {h}"),
            7 => format!("0 {h} {w} 0 0 0"),
            8 => format!("0 {h} -{w} 0 {w} 0"),
            _ => format!("{w} 0 0 {h} 0 0"),
        }
    }

    /// Returns the color space of a picture without a profile.
    pub(super) fn color_space(&self) -> &'static str {
        match self.components {
            1 => "/DeviceGray",
            3 => "/DeviceRGB",
            _ => "/DeviceCMYK",
        }
    }

    /// Returns true if full color is stored as 0.
    pub(super) fn is_inverted(&self) -> bool {
        self.components == 4 && self.is_of_adobe
    }
}

/// Mark of the segment that the pixels follow.
const PIXELS: u8 = 0xda;

/// Contents of the segments before the pixels.
#[derive(Default)]
struct Segments {
    frame: Option<(u16, u16, u8)>,
    is_of_adobe: bool,
    orientation: Option<u16>,
    /// Parts of the color profile, by number.
    profile: Vec<(u8, Vec<u8>)>,
    profile_bytes: usize,
    tables: Vec<u8>,
}

impl Segments {
    /// Returns true if a segment with this mark is read.
    fn reads(mark: u8) -> bool {
        // Frames and tables; JFIF; EXIF; color profiles; Adobe's.
        matches!(mark, 0xc0..=0xcf | 0xdb | 0xdd | 0xe0 | 0xe1 | 0xe2 | 0xee)
    }

    fn take(&mut self, mark: u8, segment: &[u8]) -> Result<(), &'static str> {
        let body = &segment[4..];
        match mark {
            0xc0..=0xc2 => {
                let [8, a, b, c, d, components @ (1 | 3 | 4), ..] = *body else {
                    return Err("it has not 8 bits of 1, 3 or 4 colors");
                };
                self.frame = Some((u16::from_be_bytes([c, d]), u16::from_be_bytes([a, b]), components));
            }
            0xc4 | 0xdb | 0xdd => {}
            0xc3..=0xcf => return Err("it is of a rare kind"),
            0xe0 if body.starts_with(b"JFIF\0") => {}
            0xee if body.starts_with(b"Adobe") => self.is_of_adobe = true,
            0xe1 => {
                let exif = body.strip_prefix(b"Exif\0\0");
                self.orientation = self.orientation.or(exif.and_then(orientation));
                return Ok(());
            }
            0xe2 => {
                if let Some([number, _, part @ ..]) = body.strip_prefix(b"ICC_PROFILE\0") {
                    self.profile_bytes += part.len();
                    if self.profile_bytes <= MAX_PROFILE {
                        self.profile.push((*number, part.to_vec()));
                    }
                }
                return Ok(());
            }
            _ => return Ok(()),
        }
        self.tables.extend(segment);
        if self.tables.len() > MAX_TABLES { Err("it has too many tables") } else { Ok(()) }
    }

    fn finish(mut self, pixels_at: u64) -> Result<Jpeg, &'static str> {
        let (width, height, components) = self.frame.ok_or("it has no frame")?;
        if width == 0 || height == 0 {
            return Err("it does not say its size");
        }
        self.profile.sort_by_key(|(number, _)| *number);
        let profile: Vec<u8> = self.profile.into_iter().flat_map(|(_, part)| part).collect();
        let space = match components {
            1 => b"GRAY",
            3 => b"RGB ",
            _ => b"CMYK",
        };
        // One for other colors than the picture's would make the page unreadable.
        let is_fit = profile.get(16..20) == Some(space) && self.profile_bytes == profile.len();
        Ok(Jpeg {
            width,
            height,
            components,
            is_of_adobe: self.is_of_adobe,
            orientation: self.orientation.unwrap_or(1),
            profile: is_fit.then_some(profile),
            head: [&[0xff, 0xd8], self.tables.as_slice()].concat(),
            pixels_at,
        })
    }
}

/// Returns the orientation in EXIF data, which are a TIFF file.
fn orientation(tiff: &[u8]) -> Option<u16> {
    let is_little = match tiff.get(..4)? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let short = |at: usize| {
        let bytes = tiff.get(at..)?.first_chunk()?;
        Some(if is_little { u16::from_le_bytes(*bytes) } else { u16::from_be_bytes(*bytes) })
    };
    let first = *tiff.get(4..)?.first_chunk()?;
    let first = if is_little { u32::from_le_bytes(first) } else { u32::from_be_bytes(first) } as usize;
    let count = usize::from(short(first)?);
    let entries = (0..count).map(|index| first.saturating_add(2 + 12 * index));
    let mut orientations = entries.filter(|entry| short(*entry) == Some(0x0112));
    orientations.next().and_then(|entry| short(entry.checked_add(8)?))
}

/// The part of a file that was read last.
struct Window<'a> {
    cx: &'a Session<'a>,
    media: &'a Media,
    bytes: Bytes,
    /// Its offset in the file.
    at: u64,
}

impl Window<'_> {
    /// Returns `length` bytes at an offset; `None` if the file ends before.
    async fn get(&mut self, at: u64, length: u64) -> Result<Option<Bytes>> {
        let size = self.media.size_bytes;
        if at + length > size {
            return Ok(None);
        }
        if at < self.at || at + length > self.at + self.bytes.len() as u64 {
            let range = at..(at + WINDOW_BYTES.max(length)).min(size);
            (self.bytes, self.at) = (self.cx.media.read(self.media, range).await?, at);
        }
        let start = (at - self.at) as usize;
        let end = start + length as usize;
        Ok((end <= self.bytes.len()).then(|| self.bytes.slice(start..end)))
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Pdf, Piece, medium},
        *,
    };

    fn segment(mark: u8, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(body.len() + 2).expect("a small segment").to_be_bytes();
        [&[0xff, mark][..], &length, body].concat()
    }

    fn of(segments: &[(u8, &[u8])]) -> Result<Jpeg, &'static str> {
        let mut read = Segments::default();
        for (mark, body) in segments.iter().filter(|(mark, _)| Segments::reads(*mark)) {
            read.take(*mark, &segment(*mark, body))?;
        }
        read.finish(7)
    }

    const FRAME: (u8, &[u8]) = (0xc0, &[8, 0, 2, 0, 3, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]);

    fn exif(orientation: u8, is_little: bool) -> Vec<u8> {
        let (head, entries): (&[u8], [&[u8]; 2]) = match is_little {
            true => (
                b"II*\0\x08\0\0\0\x02\0",
                [
                    &[0x0f, 1, 2, 0, 4, 0, 0, 0, b'C', b'a', b'm', 0],
                    &[0x12, 1, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0],
                ],
            ),
            false => (
                b"MM\0*\0\0\0\x08\0\x02",
                [
                    &[1, 0x0f, 0, 2, 0, 0, 0, 4, b'C', b'a', b'm', 0],
                    &[1, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0],
                ],
            ),
        };
        [b"Exif\0\0", head, entries[0], entries[1], &[0; 4]].concat()
    }

    #[test]
    fn metadata_are_left_out_and_tables_are_kept() {
        let xmp = b"http://ns.adobe.com/xap/1.0/\0<secret/>";
        let jpeg = of(&[
            (0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"),
            (0xe1, &exif(6, false)),
            (0xe1, xmp),
            (0xed, b"Photoshop 3.0"),
            (0xfe, b"a comment"),
            (0xdb, &[0; 65]),
            FRAME,
        ]);
        let jpeg = jpeg.expect("a JPEG");
        assert_eq!((jpeg.width, jpeg.height, jpeg.displayed()), (3, 2, (2.0, 3.0)));
        assert_eq!((jpeg.color_space(), jpeg.is_inverted(), jpeg.pixels_at), ("/DeviceRGB", false, 7));
        let kept = [
            &[0xff, 0xd8][..],
            &segment(0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"),
            &segment(0xdb, &[0; 65]),
        ];
        assert_eq!(jpeg.head, [kept.concat(), segment(FRAME.0, FRAME.1)].concat());
    }

    #[test]
    fn every_orientation_is_read_and_drawn_upright() {
        // Corner in which the first pixel, which is stored at the top left, is shown.
        let corners = [(0, 1), (1, 1), (1, 0), (0, 0), (0, 1), (1, 1), (1, 0), (0, 0)];
        for (orientation, (x, y)) in (1_u8..).zip(corners) {
            for is_little in [true, false] {
                let jpeg = of(&[(0xe1, &exif(orientation, is_little)), FRAME]).expect("a JPEG");
                let (w, h) = jpeg.displayed();
                assert_eq!((w, h), if orientation > 4 { (2.0, 3.0) } else { (3.0, 2.0) }, "{orientation}");
                let matrix: Vec<f64> =
                    jpeg.matrix(w, h).split(' ').map(|number| number.parse().expect("a number")).collect();
                let [a, b, c, d, e, f] = matrix[..] else { panic!("{matrix:?}") };
                let shown = |u: f64, v: f64| (a * u + c * v + e, b * u + d * v + f);
                assert_eq!(shown(0.0, 1.0), (f64::from(x) * w, f64::from(y) * h), "{orientation}");
                // The whole of it is on the page, and it is turned where its sides are exchanged.
                let (left, below) = (shown(0.0, 0.0), shown(1.0, 1.0));
                assert_eq!(((left.0 - below.0).abs(), (left.1 - below.1).abs()), (w, h), "{orientation}");
                assert_eq!(a == 0.0, orientation > 4, "{orientation}");
            }
        }
        for broken in [&b"Exif\0\0II*\0\xff\xff\xff\xff"[..], b"Exif\0\0MM", b"Exif\0\0"] {
            let jpeg = of(&[(0xe1, broken), FRAME]).expect("a JPEG");
            assert_eq!(jpeg.orientation, 1);
        }
    }

    #[test]
    fn a_color_profile_is_that_of_the_pictures_colors() {
        let profile = |space: &[u8]| [&[0; 16][..], space, &[7; 100]].concat();
        let part = |number: u8, bytes: &[u8]| [&b"ICC_PROFILE\0"[..], &[number, 2], bytes].concat();
        let rgb = profile(b"RGB ");
        let (second, first) = (part(2, &rgb[50..]), part(1, &rgb[..50]));
        let jpeg = of(&[(0xe2, &second), (0xe2, &first), FRAME]).expect("a JPEG");
        assert_eq!(jpeg.profile, Some(rgb));
        let gray = part(1, &profile(b"GRAY"));
        assert_eq!(of(&[(0xe2, &gray), FRAME]).expect("a JPEG").profile, None);
        let large = part(1, &[&profile(b"RGB ")[..], &[0; 40_000]].concat());
        assert_eq!(of(&[(0xe2, &large), (0xe2, &large), FRAME]).expect("a JPEG").profile, None);
    }

    #[test]
    fn a_page_says_the_colors_of_its_picture() {
        let profile = [&b"ICC_PROFILE\0\x01\x01"[..], &[0; 16], b"RGB ", &[7; 80]].concat();
        let cmyk: (u8, &[u8]) = (0xc0, &[8, 0, 2, 0, 3, 4]);
        for (segments, words) in [
            (
                &[(0xe2, &profile[..]), FRAME][..],
                &["/ColorSpace [/ICCBased 6 0 R]", "<</N 3/Length 100>>"][..],
            ),
            (&[(0xee, b"Adobe\0\x64\0\0\0\0\x02"), cmyk], &["/DeviceCMYK", "/Decode[1 0 1 0 1 0 1 0]"]),
            (&[cmyk], &["/ColorSpace /DeviceCMYK/BitsPerComponent 8/Filter/DCTDecode/Length"]),
        ] {
            let mut pdf = Pdf { pieces: Vec::new(), length: 0, offsets: vec![0, 0] };
            let media = Media { size_bytes: 40, ..medium(&[]) };
            pdf.page(3, &media, of(segments).expect("a JPEG"));
            let texts = pdf.pieces.iter().filter_map(|piece| match piece {
                Piece::Bytes(bytes) => Some(String::from_utf8_lossy(bytes)),
                Piece::Picture(_, range) => {
                    assert_eq!(*range, 7..40, "the pixels are those of the file");
                    None
                }
            });
            let page: String = texts.collect();
            assert!(words.iter().all(|word| page.contains(word)), "{words:?}: {page}");
        }
    }

    #[test]
    fn what_a_pdf_can_not_contain_is_refused() {
        let frame = |mark: u8, bits: u8, colors: u8| of(&[(mark, &[bits, 0, 2, 0, 3, colors])]);
        assert!(frame(0xc2, 8, 1).is_ok() && frame(0xc1, 8, 4).is_ok());
        assert_eq!(frame(0xc0, 12, 3).unwrap_err(), "it has not 8 bits of 1, 3 or 4 colors");
        assert_eq!(frame(0xc0, 8, 2).unwrap_err(), "it has not 8 bits of 1, 3 or 4 colors");
        assert_eq!(frame(0xc9, 8, 3).unwrap_err(), "it is of a rare kind");
        assert_eq!(of(&[]).unwrap_err(), "it has no frame");
        let adobe = of(&[(0xee, b"Adobe\0\x64\0\0\0\0\x02"), (0xc0, &[8, 0, 2, 0, 3, 4])]).expect("a JPEG");
        assert_eq!((adobe.is_inverted(), adobe.color_space()), (true, "/DeviceCMYK"));
    }
}
