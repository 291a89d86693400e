//! Renditions: pictures that were scaled and converted to what a platform takes.
//!
//! A rendition has the shape in which the original is displayed, upright, its color profile, and none of its other
//! metadata. Its size follows from the decoded picture: the box of a [`Fit`] only limits it, so that a box of another
//! shape squeezes nothing. One with a [`Shaping`] has the shape of the box, and is cut or laid on white. The same original and [`Fit`] always make the same bytes. What a picture may cost is checked
//! before it is decoded; how much CPU time and memory it takes is limited by the process that does it.

use crate::{halt::Halt, heif, output::Output};
use domain::{Fit, Shaping};
use fast_image_resize::{
    PixelTrait, ResizeOptions, Resizer,
    images::{TypedImage, TypedImageRef},
    pixels::{U8x3, U8x4},
};
use image::{
    AnimationDecoder, DynamicImage, Frame, ImageBuffer, ImageDecoder, ImageEncoder, ImageReader, Pixel,
    RgbaImage,
    codecs::{
        gif::{GifDecoder, GifEncoder, Repeat},
        jpeg::JpegEncoder,
        png::{CompressionType, FilterType, PngEncoder},
    },
    metadata::{LoopCount, Orientation},
};
use std::{io::Cursor, time::Duration};

/// CPU time that a rendition may take: tens of times what a large photo takes.
pub const CPU_LIMIT: Duration = Duration::from_secs(30);
/// Memory that a decoder may use, in bytes.
const MAX_MEMORY: u64 = 512 << 20;
/// Pixels of all scans of a JPEG together; a progressive one has some ten scans.
const MAX_SCAN_PIXELS: u64 = 1_500_000_000;
/// Qualities of a JPEG, the best first, before it is made smaller.
const QUALITIES: [u8; 3] = [90, 82, 72];
/// Largest factor on the sides of a picture that has too many bytes at the lowest quality.
const SHRINK: f64 = 0.9;
/// Part of the maximum size that a smaller picture is to have: bytes do not quite grow with pixels.
const AIM: f64 = 0.95;
/// Least length of a side.
const MIN_SIDE: u32 = 16;
/// Largest color profile that a rendition keeps, in bytes: one of a screen or a camera has some hundred to some thousand.
const MAX_PROFILE: usize = 64 << 10;
/// Speed of the search for an animation's colors, from 1 to 30; the default of browsers' tools.
const GIF_SPEED: i32 = 10;

/// A rendition.
#[derive(Debug)]
pub struct Rendition {
    /// The file.
    pub bytes: Vec<u8>,
    /// Usual extension of its name, without the dot: `gif`, `jpg` or `png`.
    pub extension: &'static str,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

/// Result of writing a picture in one size.
enum Attempt {
    Written {
        bytes: Vec<u8>,
        extension: &'static str,
    },
    /// It would have about this many bytes, which are too many.
    TooLarge(u64),
}

/// Properties of a picture's pixels that its file states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structure {
    /// How the stored pixels are turned to be displayed.
    orientation: Orientation,
    /// Number of scans that a JPEG's pixels are spread over: each costs as much as decoding the whole picture.
    pub scans: u64,
}

impl Structure {
    /// A picture that is displayed as it is stored.
    pub const PLAIN: Self = Self { orientation: Orientation::NoTransforms, scans: 1 };

    /// Returns the size in which a picture with these stored sides is displayed.
    pub fn displayed(&self, (width, height): (u32, u32)) -> (u32, u32) {
        // Orientations 5 to 8 lay the picture on its side.
        if self.orientation.to_exif() > 4 { (height, width) } else { (width, height) }
    }

    /// Adds an orientation, as EXIF and TIFF number them; another number is ignored.
    pub fn with_orientation(self, number: u8) -> Self {
        Self { orientation: Orientation::from_exif(number).unwrap_or(self.orientation), ..self }
    }

    /// Adds EXIF data.
    pub fn with_exif(self, exif: &[u8]) -> Self {
        // JPEG requires this head, and some programs write it in other formats.
        let exif = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
        Self { orientation: Orientation::from_exif_chunk(exif).unwrap_or(self.orientation), ..self }
    }
}

/// Makes a still rendition of a picture with this structure, or of the first frame of an animation.
///
/// # Errors
///
/// If the file can't be decoded within the bounds, or not made small enough.
pub fn still(original: &[u8], structure: Structure, fit: &Fit) -> Result<Rendition, Halt> {
    let picture = Picture::decode(original, structure)?;
    shrink(fit, picture.displayed(), |sides| picture.write(fit, sides))
}

/// Makes an animated rendition of a GIF with a canvas of this size and this number of frames.
///
/// # Errors
///
/// As [`still`].
pub fn animation(original: &[u8], canvas: (u32, u32), frames: u32, fit: &Fit) -> Result<Rendition, Halt> {
    if let Some(shaping) = fit.shaping {
        return Err(Halt::Unfit(format!("an animation gets no other shape ({shaping})")));
    }
    shrink(fit, canvas, |sides| rescale(original, frames, fit, sides))
}

/// Writes a picture in the largest size that fits, and in smaller ones until it has few enough bytes.
fn shrink(
    fit: &Fit,
    picture: (u32, u32),
    mut write: impl FnMut((u32, u32)) -> Result<Attempt, Halt>,
) -> Result<Rendition, Halt> {
    let of_box = (fit.width, fit.height);
    let mut sides = if fit.shaping.is_some() { of_box } else { within(picture, of_box) };
    let least = f64::from(sides.0.min(sides.1).min(MIN_SIDE));
    loop {
        let (width, height) = sides;
        let bytes = match write(sides)? {
            Attempt::Written { bytes, extension } => {
                return Ok(Rendition { bytes, extension, width, height });
            }
            Attempt::TooLarge(bytes) => bytes,
        };
        let factor = (fit.max_bytes as f64 * AIM / bytes as f64).sqrt().min(SHRINK);
        let smaller = [width, height].map(|side| f64::from(side) * factor);
        if smaller.iter().any(|side| *side < least) {
            return Err(Halt::Unfit(format!("it can't be made to have {} bytes at most", fit.max_bytes)));
        }
        sides = match fit.shaping {
            None => within(picture, smaller.map(|side| side as u32).into()),
            Some(_) => shorter(of_box, smaller[usize::from(width < height)] as u32),
        };
    }
}

/// Returns the size of a box whose longer side is shortened to this length. The other one is rounded up, so that a box
/// that was not too narrow for a platform is not afterwards.
fn shorter((width, height): (u32, u32), longer: u32) -> (u32, u32) {
    let shorter = (u64::from(width.min(height)) * u64::from(longer)).div_ceil(width.max(height).into());
    let shorter = u32::try_from(shorter).unwrap_or(longer);
    if width < height { (shorter, longer) } else { (longer, shorter) }
}

/// Returns the largest size of a picture's shape in a box, to which it may be enlarged.
fn inside((width, height): (u32, u32), (max_width, max_height): (u32, u32)) -> (u32, u32) {
    let [w, h, max_w, max_h] = [width, height, max_width, max_height].map(|side| u64::from(side.max(1)));
    let side = |exact: u64, of: u64| u32::try_from(((exact + of / 2) / of).max(1)).unwrap_or(u32::MAX);
    if max_w * h <= max_h * w {
        (side(max_w, 1), side(h * max_w, w))
    } else {
        (side(w * max_h, h), side(max_h, 1))
    }
}

/// Returns the largest size of a picture's shape in a box; at most the picture's own.
fn within((width, height): (u32, u32), (max_width, max_height): (u32, u32)) -> (u32, u32) {
    inside((width, height), (max_width.min(width), max_height.min(height)))
}

/// Returns true if a rendition keeps a color profile. One of another color space does not describe the decoded colors; one
/// of tables, which printers need, may be larger than all that a platform takes.
fn is_kept(profile: &[u8]) -> bool {
    profile.get(16..20) == Some(b"RGB ") && profile.len() <= MAX_PROFILE
}

fn limits() -> image::Limits {
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(MAX_MEMORY);
    limits
}

/// A still picture, or the first frame of an animation, as it is stored.
struct Picture {
    image: DynamicImage,
    structure: Structure,
    profile: Option<Vec<u8>>,
}

impl Picture {
    fn decode(original: &[u8], structure: Structure) -> Result<Self, Halt> {
        if original.get(4..8) == Some(b"ftyp") {
            let (image, profile) = heif::decode(original)?;
            return Ok(Self { image, structure, profile: profile.filter(|profile| is_kept(profile)) });
        }
        let reader = ImageReader::new(Cursor::new(original)).with_guessed_format();
        let mut reader = reader.map_err(Halt::unreadable)?;
        reader.limits(limits());
        let mut decoder = reader.into_decoder().map_err(Halt::unreadable)?;
        let (width, height) = decoder.dimensions();
        let pixels = u64::from(width) * u64::from(height);
        if pixels > Fit::MAX_PIXELS {
            return Err(Halt::too_many("pixels", Fit::MAX_PIXELS));
        }
        if pixels.saturating_mul(structure.scans) > MAX_SCAN_PIXELS {
            return Err(Halt::too_many("pixels in all its scans", MAX_SCAN_PIXELS));
        }
        let profile = decoder.icc_profile().ok().flatten().filter(|profile| is_kept(profile));
        let decoded = DynamicImage::from_decoder(decoder).map_err(Halt::unreadable)?;
        let has_alpha = decoded.color().has_alpha();
        let image = if has_alpha {
            DynamicImage::from(decoded.into_rgba8())
        } else {
            DynamicImage::from(decoded.into_rgb8())
        };
        Ok(Self { image, structure, profile })
    }

    /// The size in which it is displayed.
    fn displayed(&self) -> (u32, u32) {
        self.structure.displayed((self.image.width(), self.image.height()))
    }

    /// Writes it in this size, upright.
    fn write(&self, fit: &Fit, sides: (u32, u32)) -> Result<Attempt, Halt> {
        // A picture without a shaping has the shape of `sides` to a pixel, and is not cut for it.
        let options = match fit.shaping {
            None => ResizeOptions::new(),
            Some(_) => ResizeOptions::new().fit_into_destination(None),
        };
        let drawn = match fit.shaping {
            Some(Shaping::Pad) => inside(self.displayed(), sides),
            None | Some(Shaping::Crop) => sides,
        };
        // Turned after it is scaled, which takes less memory. Turning twice is turning back.
        let mut scaled = resize(&self.image, self.structure.displayed(drawn), &options)?;
        scaled.apply_orientation(self.structure.orientation);
        if fit.shaping == Some(Shaping::Pad) {
            scaled = in_the_middle(on_white(scaled), sides).into();
        }
        let is_opaque = match &scaled {
            DynamicImage::ImageRgba8(image) => image.pixels().all(|pixel| pixel.0[3] == u8::MAX),
            _ => true,
        };
        if !is_opaque && fit.keeps_transparency {
            let mut output = Output::new(u64::MAX);
            let encoder =
                PngEncoder::new_with_quality(&mut output, CompressionType::Default, FilterType::Adaptive);
            self.encode(&scaled, encoder).map_err(Halt::unreadable)?;
            return Ok(match output.len() {
                length if length <= fit.max_bytes => {
                    Attempt::Written { bytes: output.into_bytes(), extension: "png" }
                }
                length => Attempt::TooLarge(length),
            });
        }
        let opaque = DynamicImage::from(on_white(scaled));
        let mut length = u64::MAX;
        for quality in QUALITIES {
            // The size at the lowest quality says how much smaller the picture has to be.
            let is_last = Some(&quality) == QUALITIES.last();
            let mut output = Output::new(if is_last { u64::MAX } else { fit.max_bytes });
            let encoded = self.encode(&opaque, JpegEncoder::new_with_quality(&mut output, quality));
            match encoded {
                Ok(()) if output.len() <= fit.max_bytes => {
                    return Ok(Attempt::Written { bytes: output.into_bytes(), extension: "jpg" });
                }
                Err(error) if !output.is_full() => return Err(Halt::unreadable(error)),
                _ => length = output.len(),
            }
        }
        Ok(Attempt::TooLarge(length))
    }

    /// Encodes a scaled picture with the color profile of the original.
    fn encode(&self, scaled: &DynamicImage, mut encoder: impl ImageEncoder) -> Result<(), String> {
        if let Some(profile) = &self.profile {
            encoder.set_icc_profile(profile.clone()).map_err(|error| error.to_string())?;
        }
        scaled.write_with_encoder(encoder).map_err(|error| error.to_string())
    }
}

fn resize(image: &DynamicImage, sides: (u32, u32), options: &ResizeOptions) -> Result<DynamicImage, Halt> {
    Ok(match image.as_rgba8() {
        Some(image) => resize_pixels::<U8x4, _>(image, sides, options)?.into(),
        None => {
            let image = image.as_rgb8().expect("a picture is decoded to RGBA or RGB");
            resize_pixels::<U8x3, _>(image, sides, options)?.into()
        }
    })
}

/// Resizes pixels of one type, so that the resizer is not compiled for all types.
fn resize_pixels<P: PixelTrait, Q: Pixel<Subpixel = u8>>(
    image: &ImageBuffer<Q, Vec<u8>>,
    (width, height): (u32, u32),
    options: &ResizeOptions,
) -> Result<ImageBuffer<Q, Vec<u8>>, Halt> {
    let source = TypedImageRef::<P>::from_buffer(image.width(), image.height(), image.as_raw());
    let mut scaled = ImageBuffer::new(width, height);
    let mut target = TypedImage::<P>::from_buffer(width, height, &mut scaled).map_err(Halt::unreadable)?;
    Resizer::new()
        .resize_typed(&source.map_err(Halt::unreadable)?, &mut target, options)
        .map_err(Halt::unreadable)?;
    Ok(scaled)
}

/// Lays a picture in the middle of a white ground with these sides.
fn in_the_middle(picture: image::RgbImage, (width, height): (u32, u32)) -> image::RgbImage {
    let mut ground = image::RgbImage::from_pixel(width, height, image::Rgb([u8::MAX; 3]));
    let [x, y] = [(width, picture.width()), (height, picture.height())]
        .map(|(ground, picture)| i64::from(ground.saturating_sub(picture) / 2));
    image::imageops::replace(&mut ground, &picture, x, y);
    ground
}

/// Lays a picture on a white ground.
fn on_white(image: DynamicImage) -> image::RgbImage {
    match image {
        DynamicImage::ImageRgba8(image) => {
            let mut opaque = image::RgbImage::new(image.width(), image.height());
            for (to, from) in opaque.pixels_mut().zip(image.pixels()) {
                let [red, green, blue, alpha] = from.0.map(u32::from);
                to.0 = [red, green, blue].map(|color| ((color * alpha + 255 * (255 - alpha)) / 255) as u8);
            }
            opaque
        }
        other => other.into_rgb8(),
    }
}

/// Writes an animation in this size, frame by frame, so that one frame is in memory at a time.
fn rescale(original: &[u8], frames: u32, fit: &Fit, sides: (u32, u32)) -> Result<Attempt, Halt> {
    let mut decoder = GifDecoder::new(Cursor::new(original)).map_err(Halt::unreadable)?;
    decoder.set_limits(limits()).map_err(Halt::unreadable)?;
    let repeat = match decoder.loop_count() {
        LoopCount::Infinite => Repeat::Infinite,
        LoopCount::Finite(times) => Repeat::Finite(u16::try_from(times.get()).unwrap_or(u16::MAX)),
    };
    let mut output = Output::new(fit.max_bytes);
    let mut done = 0_u32;
    let ended = {
        let mut encoder = GifEncoder::new_with_speed(&mut output, GIF_SPEED);
        let write = || {
            encoder.set_repeat(repeat).map_err(Halt::unreadable)?;
            // A truncated file may have part of another frame after its last whole one.
            for frame in decoder.into_frames().take(frames as usize) {
                let frame = frame.map_err(Halt::unreadable)?;
                let delay = frame.delay();
                let scaled: RgbaImage =
                    resize_pixels::<U8x4, _>(frame.buffer(), sides, &ResizeOptions::new())?;
                encoder.encode_frame(Frame::from_parts(scaled, 0, 0, delay)).map_err(Halt::unreadable)?;
                done += 1;
            }
            Ok(())
        };
        write()
    };
    if output.is_full() {
        // As large as if the other frames were like those that are written.
        let length = fit.max_bytes.saturating_mul(frames.into()) / u64::from(done.max(1));
        return Ok(Attempt::TooLarge(length));
    }
    ended.map(|()| Attempt::Written { bytes: output.into_bytes(), extension: "gif" })
}

#[cfg(test)]
mod tests {
    use super::{inside, shorter, within};

    /// A platform's range of shapes includes the square.
    #[test]
    fn a_box_gets_no_narrower_when_it_is_made_smaller() {
        for (width, height) in [(1910, 1000), (1000, 1333), (4000, 400), (400, 4000), (17, 16), (3, 2)] {
            for longer in 1..=width.max(height) {
                let (w, h) = shorter((width, height), longer);
                let lies = if width < height { w <= h } else { w >= h };
                assert!(lies && w.max(h) == longer, "{width}x{height} became {w}x{h}");
                let [narrow, was] =
                    [(w, h), (width, height)].map(|(w, h)| f64::from(w.max(h)) / f64::from(w.min(h)));
                assert!(narrow <= was, "{width}x{height} became {w}x{h}");
            }
        }
        assert_eq!(inside((10, 20), (100, 100)), (50, 100), "enlarged");
    }

    #[test]
    fn a_shape_is_kept_to_a_pixel() {
        for picture in [(4000, 3000), (3024, 4032), (1000, 333), (1, 4000), (65_535, 1), (7, 5)] {
            for limit in [(1440, 1080), (1080, 1440), (500, 166), (16, 16), (1, 1), (100_000, 100_000)] {
                let (width, height) = within(picture, limit);
                assert!((1..=limit.0).contains(&width) && (1..=limit.1).contains(&height));
                assert!(width <= picture.0 && height <= picture.1);
                let [w, h, pw, ph] = [width, height, picture.0, picture.1].map(f64::from);
                let is_right = (w - h * pw / ph).abs() <= 1.0 || (h - w * ph / pw).abs() <= 1.0;
                assert!(is_right, "{picture:?} in {limit:?}: {width}x{height}");
            }
        }
    }
}
