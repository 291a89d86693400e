//! Pictures as cameras store them, whose shape and position can be measured wherever they arrive.
//!
//! A photo shows a dark disc on light noise, in the upper left part. It is stored in one of the eight orientations of
//! EXIF, which is written here from the standard's words ("the 0th row is the visual right-hand side") and shares no
//! code with what reads it. Noise makes files large.

pub use image::ImageFormat;
use image::{
    DynamicImage, ImageEncoder, Rgb, RgbImage,
    codecs::{jpeg::JpegEncoder, png::PngEncoder, webp::WebPEncoder},
};

/// The formats that have an orientation.
pub const FORMATS: [ImageFormat; 4] =
    [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::WebP, ImageFormat::Tiff];

/// A photo to make.
#[derive(Clone, Copy, Debug)]
pub struct Photo {
    /// Width as displayed.
    pub width: u32,
    /// Height as displayed.
    pub height: u32,
    /// Orientation of EXIF, from 1 to 8.
    pub orientation: u8,
    /// Format.
    pub format: ImageFormat,
}

impl Photo {
    /// Returns the file.
    pub fn bytes(&self) -> Vec<u8> {
        let (width, height) = (self.width, self.height);
        let (radius, x, y) = (width.min(height) / 6, width / 3, height / 4);
        let mut state = 1_u32;
        let displayed = RgbImage::from_fn(width, height, |at_x, at_y| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [a, b, c, _] = state.to_be_bytes();
            let is_disc = at_x.abs_diff(x).pow(2) + at_y.abs_diff(y).pow(2) <= radius.pow(2);
            Rgb(if is_disc { [0; 3] } else { [a, b, c].map(|noise| 160 + noise % 96) })
        });
        let stored = self.stored(&displayed);
        let exif = vec![
            b'M',
            b'M',
            0,
            b'*',
            0,
            0,
            0,
            8,
            0,
            1,
            0x01,
            0x12,
            0,
            3,
            0,
            0,
            0,
            1,
            0,
            self.orientation,
            0,
            0,
            0,
            0,
            0,
            0,
        ];
        let mut bytes = Vec::new();
        match self.format {
            ImageFormat::Jpeg => write(JpegEncoder::new_with_quality(&mut bytes, 97), &stored, exif),
            ImageFormat::Png => write(PngEncoder::new(&mut bytes), &stored, exif),
            ImageFormat::WebP => write(WebPEncoder::new_lossless(&mut bytes), &stored, exif),
            ImageFormat::Tiff => bytes = tiff(&stored, self.orientation),
            other => panic!("{other:?} has no orientation"),
        }
        bytes
    }

    /// Returns the rows and columns of the file.
    fn stored(&self, displayed: &RgbImage) -> RgbImage {
        let (right, bottom) = (self.width - 1, self.height - 1);
        let lies = self.orientation > 4;
        let sides = if lies { (self.height, self.width) } else { (self.width, self.height) };
        RgbImage::from_fn(sides.0, sides.1, |column, row| {
            // Position of the 0th row and the 0th column.
            let (x, y) = match self.orientation {
                // The top, and the left-hand side.
                1 => (column, row),
                // The top, and the right-hand side.
                2 => (right - column, row),
                // The bottom, and the right-hand side.
                3 => (right - column, bottom - row),
                // The bottom, and the left-hand side.
                4 => (column, bottom - row),
                // The left-hand side, and the top.
                5 => (row, column),
                // The right-hand side, and the top.
                6 => (right - row, column),
                // The right-hand side, and the bottom.
                7 => (right - row, bottom - column),
                // The left-hand side, and the bottom.
                8 => (row, bottom - column),
                other => panic!("there is no orientation {other}"),
            };
            *displayed.get_pixel(x, y)
        })
    }

    /// Asserts that a picture without EXIF data, which was made of this one, has its shape and shows the disc upright
    /// and round. Returns its width and height.
    ///
    /// # Panics
    ///
    /// If it doesn't.
    pub fn assert_shown(&self, bytes: &[u8], context: &str) -> (u32, u32) {
        assert_eq!(orientation(bytes), None, "{context}: a viewer would turn it again");
        let image = image::load_from_memory(bytes).expect("a picture");
        self.assert_like(&image, context);
        (image.width(), image.height())
    }

    /// Asserts the shape and the disc of a picture as a viewer shows it.
    fn assert_like(&self, shown: &DynamicImage, context: &str) {
        let [width, height] = [shown.width(), shown.height()].map(f64::from);
        let [own_width, own_height] = [self.width, self.height].map(f64::from);
        let is_like = (width - height * own_width / own_height).abs() <= 1.0
            || (height - width * own_height / own_width).abs() <= 1.0;
        assert!(is_like, "{context}: {width}x{height} of {self:?}");
        let [x, y] = middle(shown, context);
        let scale = width / own_width;
        let [own_x, own_y] = [self.width / 3, self.height / 4].map(|side| f64::from(side) * scale);
        let is_there = (x - own_x).abs() <= 3.0 && (y - own_y).abs() <= 3.0;
        assert!(is_there, "{context}: the disc is at {x},{y} and not at {own_x},{own_y} of {self:?}");
    }
}

/// Returns the middle of the disc in a picture without EXIF data, in pixels, and the picture's width and height.
///
/// # Panics
///
/// If there is no disc, or it is not round.
pub fn disc(bytes: &[u8], context: &str) -> ([f64; 2], (u32, u32)) {
    assert_eq!(orientation(bytes), None, "{context}: a viewer would turn it again");
    let image = image::load_from_memory(bytes).expect("a picture");
    (middle(&image, context), (image.width(), image.height()))
}

fn middle(shown: &DynamicImage, context: &str) -> [f64; 2] {
    let (mut left, mut top, mut right, mut bottom) = (u32::MAX, u32::MAX, 0, 0);
    for (x, y, pixel) in shown.to_luma8().enumerate_pixels() {
        if pixel.0[0] < 80 {
            (left, top, right, bottom) = (left.min(x), top.min(y), right.max(x), bottom.max(y));
        }
    }
    assert!(left < right && top < bottom, "{context}: no disc");
    let [across, along] = [right - left + 1, bottom - top + 1].map(f64::from);
    assert!((across - along).abs() <= 3.0, "{context}: the disc is {across}x{along}");
    [left + right, top + bottom].map(|sum| f64::from(sum) / 2.0)
}

/// Returns an uncompressed TIFF file with an orientation.
fn tiff(image: &RgbImage, orientation: u8) -> Vec<u8> {
    // Behind the fields are the bits of the three colors.
    const FIELDS: u32 = 10;
    let behind = 8 + 2 + FIELDS * 12 + 4;
    let short = |tag: u16, value: u32| (tag, 3_u16, 1_u32, value << 16);
    let long = |tag: u16, value: u32| (tag, 4, 1, value);
    let fields = [
        long(256, image.width()),
        long(257, image.height()),
        (258, 3, 3, behind),
        short(259, 1),
        short(262, 2),
        long(273, behind + 6),
        short(274, orientation.into()),
        short(277, 3),
        long(278, image.height()),
        long(279, image.width() * image.height() * 3),
    ];
    let mut bytes = [&b"MM\0*\0\0\0\x08"[..], &10_u16.to_be_bytes()].concat();
    for (tag, kind, count, value) in fields {
        bytes.extend([tag.to_be_bytes(), kind.to_be_bytes()].concat());
        bytes.extend([count.to_be_bytes(), value.to_be_bytes()].concat());
    }
    bytes.extend([0, 0, 0, 0, 0, 8, 0, 8, 0, 8]);
    bytes.extend(image.as_raw());
    bytes
}

fn write(mut encoder: impl ImageEncoder, image: &RgbImage, exif: Vec<u8>) {
    encoder.set_exif_metadata(exif).expect("the format has EXIF data");
    image.write_with_encoder(encoder).expect("memory is writable");
}

/// Returns the orientation of a file's EXIF data, read by a crate that the service does not use.
pub fn orientation(bytes: &[u8]) -> Option<u32> {
    let exif = exif::Reader::new().read_from_container(&mut std::io::Cursor::new(bytes)).ok()?;
    exif.get_field(exif::Tag::Orientation, exif::In::PRIMARY)?.value.get_uint(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The samples are right: a viewer that turns them shows the disc.
    #[test]
    fn a_photo_is_stored_in_its_orientation() {
        for format in FORMATS {
            for number in 1..=8 {
                let photo = Photo { width: 90, height: 120, orientation: number, format };
                let bytes = photo.bytes();
                assert_eq!(orientation(&bytes), Some(number.into()), "{format:?}");
                let mut shown = image::load_from_memory(&bytes).unwrap();
                let turn = image::metadata::Orientation::from_exif(number).unwrap();
                shown.apply_orientation(turn);
                photo.assert_like(&shown, "turned");
            }
        }
    }
}
