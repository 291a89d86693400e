//! Renditions: pictures that were scaled and converted to what a platform takes.
//!
//! A rendition has the shape in which the original is displayed, upright, its color profile, and none of its other
//! metadata. Its size follows from the decoded picture: the box of a [`Fit`] only limits it, so that a box of another
//! shape squeezes nothing. The same original and [`Fit`] always make the same bytes. What a picture may cost is checked
//! before it is decoded, and while it is by a [`Deadline`].

use crate::{
    deadline::{Deadline, Ended, Output, Source},
    format,
    probe::{gif::Animation, image::Structure},
};
use domain::{Fit, MediaKind};
use fast_image_resize::{ResizeOptions, Resizer};
use image::{
    AnimationDecoder, DynamicImage, Frame, ImageDecoder, ImageEncoder, ImageReader, RgbaImage,
    codecs::{
        gif::{GifDecoder, GifEncoder, Repeat},
        jpeg::JpegEncoder,
        png::{CompressionType, FilterType, PngEncoder},
    },
    metadata::LoopCount,
};
use std::{fmt::Display, io::Cursor, time::Duration};

/// CPU time that a rendition may take: tens of times what a large photo takes.
pub(crate) const CPU_LIMIT: Duration = Duration::from_secs(30);
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
/// Speed of the search for an animation's colors, from 1 to 30; the default of browsers' tools.
const GIF_SPEED: i32 = 10;

/// A rendition.
#[derive(Debug)]
pub(crate) struct Rendition {
    pub(crate) bytes: Vec<u8>,
    pub(crate) extension: &'static str,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// Why there is no rendition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// There can be none, for this reason.
    Unfit(String),
    /// Nobody waits for it any more.
    Stopped,
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

/// Makes a rendition.
pub(crate) fn render(original: &[u8], fit: &Fit, deadline: &Deadline) -> Result<Rendition, Halt> {
    if fit.kind == MediaKind::Gif {
        let animation = Animation::read(&mut Cursor::new(original)).map_err(unreadable)?;
        let Animation { pixels, frames, frame_pixels, .. } = animation;
        if frame_pixels > Fit::MAX_FRAME_PIXELS {
            let max = Fit::MAX_FRAME_PIXELS / 1_000_000;
            let (width, height) = pixels;
            let message = format!(
                "its {frames} frames of {width}x{height} have more than {max} million pixels together"
            );
            return Err(Halt::Unfit(message));
        }
        return shrink(fit, pixels, |sides| rescale(original, frames, fit, sides, deadline));
    }
    let picture = Picture::decode(original, deadline)?;
    shrink(fit, picture.displayed(), |sides| picture.write(fit, sides, deadline))
}

/// Writes a picture in the largest size that fits, and in smaller ones until it has few enough bytes.
fn shrink(
    fit: &Fit,
    picture: (u32, u32),
    mut write: impl FnMut((u32, u32)) -> Result<Attempt, Halt>,
) -> Result<Rendition, Halt> {
    let mut sides = within(picture, (fit.width, fit.height));
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
        sides = within(picture, smaller.map(|side| side as u32).into());
    }
}

/// Returns the largest size of a picture's shape in a box; at most the picture's own.
fn within((width, height): (u32, u32), (max_width, max_height): (u32, u32)) -> (u32, u32) {
    let [w, h] = [width, height].map(|side| u64::from(side.max(1)));
    let [max_w, max_h] = [u64::from(max_width).clamp(1, w), u64::from(max_height).clamp(1, h)];
    let side = |exact: u64, of: u64| u32::try_from(((exact + of / 2) / of).max(1)).unwrap_or(u32::MAX);
    if max_w * h <= max_h * w {
        (side(max_w, 1), side(h * max_w, w))
    } else {
        (side(w * max_h, h), side(max_h, 1))
    }
}

fn unreadable(error: impl Display) -> Halt {
    Halt::Unfit(format!("it can't be read: {error}"))
}

impl From<Ended> for Halt {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Late => {
                let message = format!("converting it takes more than {} s of computing", CPU_LIMIT.as_secs());
                Self::Unfit(message)
            }
            Ended::Stopped => Self::Stopped,
        }
    }
}

/// Returns the reason for an error of a decoder or an encoder, which may be the deadline's.
fn failed(deadline: &Deadline, error: impl Display) -> Halt {
    deadline.check().map_or_else(Halt::from, |()| unreadable(error))
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
    fn decode(original: &[u8], deadline: &Deadline) -> Result<Self, Halt> {
        let shape = format::of_bytes(original).ok_or_else(|| unreadable("its type is not known"))?.shape;
        let structure = Structure::read(&mut Cursor::new(original), original.len() as u64, shape);
        let structure = structure.map_err(unreadable)?;
        let reader = ImageReader::new(Source::new(original, deadline)).with_guessed_format();
        let mut reader = reader.map_err(|error| failed(deadline, error))?;
        reader.limits(limits());
        let mut decoder = reader.into_decoder().map_err(|error| failed(deadline, error))?;
        let (width, height) = decoder.dimensions();
        let pixels = u64::from(width) * u64::from(height);
        let too_many = |what: &str, max: u64| {
            Err(Halt::Unfit(format!("it has more than {} million {what}", max / 1_000_000)))
        };
        if pixels > Fit::MAX_PIXELS {
            return too_many("pixels", Fit::MAX_PIXELS);
        }
        if pixels.saturating_mul(structure.scans) > MAX_SCAN_PIXELS {
            return too_many("pixels in all its scans", MAX_SCAN_PIXELS);
        }
        // A profile of another color space does not describe the decoded colors.
        let profile =
            decoder.icc_profile().ok().flatten().filter(|profile| profile.get(16..20) == Some(b"RGB "));
        let decoded = DynamicImage::from_decoder(decoder).map_err(|error| failed(deadline, error))?;
        deadline.check()?;
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
    fn write(&self, fit: &Fit, sides: (u32, u32), deadline: &Deadline) -> Result<Attempt, Halt> {
        // Turned after it is scaled, which takes less memory. Turning twice is turning back.
        let mut scaled = resize(&self.image, self.structure.displayed(sides))?;
        scaled.apply_orientation(self.structure.orientation);
        deadline.check()?;
        let is_opaque = match &scaled {
            DynamicImage::ImageRgba8(image) => image.pixels().all(|pixel| pixel.0[3] == u8::MAX),
            _ => true,
        };
        if !is_opaque && fit.keeps_transparency {
            let mut output = Output::new(u64::MAX, deadline);
            let encoder =
                PngEncoder::new_with_quality(&mut output, CompressionType::Default, FilterType::Adaptive);
            self.encode(&scaled, encoder).map_err(|error| failed(deadline, error))?;
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
            let mut output = Output::new(if is_last { u64::MAX } else { fit.max_bytes }, deadline);
            let encoded = self.encode(&opaque, JpegEncoder::new_with_quality(&mut output, quality));
            match encoded {
                Ok(()) if output.len() <= fit.max_bytes => {
                    return Ok(Attempt::Written { bytes: output.into_bytes(), extension: "jpg" });
                }
                Err(error) if !output.is_full() => return Err(failed(deadline, error)),
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

fn resize(image: &DynamicImage, (width, height): (u32, u32)) -> Result<DynamicImage, Halt> {
    let mut scaled = DynamicImage::new(width, height, image.color());
    Resizer::new().resize(image, &mut scaled, &ResizeOptions::new()).map_err(unreadable)?;
    Ok(scaled)
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
fn rescale(
    original: &[u8],
    frames: u32,
    fit: &Fit,
    sides: (u32, u32),
    deadline: &Deadline,
) -> Result<Attempt, Halt> {
    let failed = |error| failed(deadline, error);
    let mut decoder = GifDecoder::new(Source::new(original, deadline)).map_err(failed)?;
    decoder.set_limits(limits()).map_err(failed)?;
    let repeat = match decoder.loop_count() {
        LoopCount::Infinite => Repeat::Infinite,
        LoopCount::Finite(times) => Repeat::Finite(u16::try_from(times.get()).unwrap_or(u16::MAX)),
    };
    let mut output = Output::new(fit.max_bytes, deadline);
    let mut done = 0_u32;
    let ended = {
        let mut encoder = GifEncoder::new_with_speed(&mut output, GIF_SPEED);
        let write = || {
            encoder.set_repeat(repeat).map_err(failed)?;
            for frame in decoder.into_frames() {
                deadline.check()?;
                let frame = frame.map_err(failed)?;
                let delay = frame.delay();
                let scaled: RgbaImage = resize(&frame.into_buffer().into(), sides)?.into_rgba8();
                encoder.encode_frame(Frame::from_parts(scaled, 0, 0, delay)).map_err(failed)?;
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
    use super::*;
    use crate::deadline::Stop;
    use image::{Delay, ImageFormat, Rgb, RgbImage, Rgba};

    fn fit(kind: MediaKind, width: u32, height: u32, max_bytes: u64, keeps_transparency: bool) -> Fit {
        Fit { kind, width, height, max_bytes, keeps_transparency }
    }

    /// A picture that compresses badly, the same each time; its left half is red.
    fn noise(width: u32, height: u32) -> RgbImage {
        let mut state = 1_u32;
        RgbImage::from_fn(width, height, |x, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [a, b, ..] = state.to_be_bytes();
            if x < width / 2 { Rgb([255, a / 8, b / 8]) } else { Rgb([a / 8, b / 8, 255]) }
        })
    }

    /// Renders without a deadline that is reached.
    fn render(original: &[u8], fit: &Fit) -> Result<Rendition, Halt> {
        let stop = Stop::default();
        super::render(original, fit, &Deadline::after(Duration::from_secs(3600), stop.flag()))
    }

    /// Returns the reason why there is no rendition.
    fn refusal(original: &[u8], fit: &Fit) -> String {
        match render(original, fit) {
            Err(Halt::Unfit(reason)) => reason,
            other => panic!("{other:?}"),
        }
    }

    fn encoded(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        image.into().write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    /// Adds EXIF data to a JPEG: an orientation, and the name of a camera.
    fn with_exif(jpeg: &[u8], orientation: u8) -> Vec<u8> {
        let entries = [
            &[0x01, 0x0f, 0, 2, 0, 0, 0, 4, b'C', b'a', b'm', 0][..],
            &[0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0],
        ];
        let tiff = [&b"MM\0*\0\0\0\x08\0\x02"[..], &entries.concat(), &[0; 4]].concat();
        let segment = [&b"Exif\0\0"[..], &tiff].concat();
        let length = u16::try_from(segment.len() + 2).unwrap().to_be_bytes();
        [&jpeg[..2], &[0xff, 0xe1], &length, &segment, &jpeg[2..]].concat()
    }

    fn decoded(rendition: &Rendition) -> RgbaImage {
        let image = image::load_from_memory(&rendition.bytes).unwrap().into_rgba8();
        assert_eq!(image.dimensions(), (rendition.width, rendition.height));
        image
    }

    #[test]
    fn a_picture_is_scaled_and_converted_and_always_the_same() {
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP] {
            let original = encoded(noise(400, 200), format);
            let fit = fit(MediaKind::Image, 100, 50, 1 << 20, true);
            let rendition = render(&original, &fit).unwrap();
            assert_eq!(
                (rendition.extension, rendition.width, rendition.height),
                ("jpg", 100, 50),
                "{format:?}"
            );
            let [left, right] = [(20, 25), (80, 25)].map(|(x, y)| decoded(&rendition).get_pixel(x, y).0);
            assert!(left[0] > 200 && left[2] < 80 && right[2] > 200 && right[0] < 80, "{left:?} {right:?}");
            assert_eq!(render(&original, &fit).unwrap().bytes, rendition.bytes);
        }
    }

    #[test]
    fn a_picture_is_upright_in_a_box_of_any_shape_and_has_no_other_metadata() {
        // 6: the first row of the file is the right side of the picture, which is 200 wide and 400 high.
        let original = with_exif(&encoded(noise(400, 200), ImageFormat::Jpeg), 6);
        for (width, height, sides) in
            [(100, 200, (100, 200)), (100, 100, (50, 100)), (400, 200, (100, 200)), (1000, 1000, (200, 400))]
        {
            let fit = fit(MediaKind::Image, width, height, 1 << 20, false);
            let rendition = render(&original, &fit).unwrap();
            assert_eq!((rendition.width, rendition.height), sides, "in {width}x{height}");
            let [top, bottom] =
                [1, 4].map(|fifth| decoded(&rendition).get_pixel(sides.0 / 2, sides.1 / 5 * fifth).0);
            assert!(top[0] > 200 && bottom[2] > 200, "{top:?} {bottom:?}");
            for (bytes, has_exif) in [(&original, true), (&rendition.bytes, false)] {
                assert_eq!(bytes.windows(4).any(|window| window == b"Exif"), has_exif);
            }
        }
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

    #[test]
    fn transparency_is_kept_or_laid_on_white() {
        let clear = RgbaImage::from_fn(64, 64, |x, _| Rgba([0, 0, 255, if x < 32 { 0 } else { 255 }]));
        let original = encoded(clear, ImageFormat::Png);
        for (keeps, extension, ground) in [(true, "png", 0), (false, "jpg", 255)] {
            let rendition = render(&original, &fit(MediaKind::Image, 32, 32, 1 << 20, keeps)).unwrap();
            assert_eq!(rendition.extension, extension);
            let pixel = decoded(&rendition).get_pixel(4, 4).0;
            assert_eq!(pixel[3], ground, "{pixel:?}");
            assert!(keeps || pixel[..3].iter().all(|color| *color > 245), "{pixel:?}");
        }
    }

    #[test]
    fn a_picture_is_made_as_small_as_it_has_to_be() {
        let original = encoded(noise(800, 400), ImageFormat::Png);
        let sizes = [200_000, 50_000, 10_000].map(|max| {
            let rendition = render(&original, &fit(MediaKind::Image, 800, 400, max, true)).unwrap();
            assert!(rendition.bytes.len() as u64 <= max, "{max}: {}", rendition.bytes.len());
            rendition.width
        });
        assert!(sizes[0] == 800 && sizes.is_sorted_by(|a, b| a >= b) && sizes[2] < 800, "{sizes:?}");
        let refused = refusal(&original, &fit(MediaKind::Image, 800, 400, 100, true));
        assert_eq!(refused, "it can't be made to have 100 bytes at most");
        let line = encoded(noise(4000, 1), ImageFormat::Png);
        let refused = refusal(&line, &fit(MediaKind::Image, 4000, 1, 100, true));
        assert_eq!(refused, "it can't be made to have 100 bytes at most");
    }

    #[test]
    fn an_animation_keeps_its_frames_or_becomes_a_still_image() {
        let mut original = Vec::new();
        let mut encoder = GifEncoder::new(&mut original);
        encoder.set_repeat(Repeat::Infinite).unwrap();
        for color in [[255, 0, 0, 255], [0, 0, 255, 255]] {
            let frame = RgbaImage::from_pixel(60, 40, Rgba(color));
            let delay = Delay::from_numer_denom_ms(200, 1);
            encoder.encode_frame(Frame::from_parts(frame, 0, 0, delay)).unwrap();
        }
        drop(encoder);
        let rendition = render(&original, &fit(MediaKind::Gif, 30, 20, 1 << 20, false)).unwrap();
        assert_eq!((rendition.extension, rendition.width, rendition.height), ("gif", 30, 20));
        let frames =
            GifDecoder::new(Cursor::new(&rendition.bytes)).unwrap().into_frames().collect_frames().unwrap();
        let colors: Vec<_> = frames.iter().map(|frame| frame.buffer().get_pixel(15, 10).0).collect();
        assert!(colors.len() == 2 && colors[0][0] > 200 && colors[1][2] > 200, "{colors:?}");
        assert_eq!(frames[0].delay().numer_denom_ms(), (200, 1));
        let still = render(&original, &fit(MediaKind::Image, 60, 40, 1 << 20, true)).unwrap();
        assert_eq!(still.extension, "jpg");
        assert!(decoded(&still).get_pixel(30, 20).0[0] > 200);
    }

    /// A GIF whose first frame is noise, and whose others are a pixel each.
    fn flicker(width: u16, height: u16, frames: usize) -> Vec<u8> {
        let noise = DynamicImage::from(noise(width.into(), height.into())).into_rgba8();
        let mut bytes = Vec::new();
        GifEncoder::new_with_speed(&mut bytes, 30).encode_frame(Frame::new(noise)).unwrap();
        // Before the trailer.
        bytes.pop();
        let pixel = b"\x21\xf9\x04\0\x0a\0\0\0\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x4c\x01\0";
        bytes.extend(pixel.repeat(frames - 1));
        bytes.push(b';');
        bytes
    }

    #[test]
    fn an_animation_is_scaled_until_it_has_few_enough_bytes() {
        let mut original = Vec::new();
        let mut encoder = GifEncoder::new(&mut original);
        for side in [0, 100] {
            let frame = DynamicImage::from(noise(300, 100)).crop_imm(side, 0, 200, 100).into_rgba8();
            encoder.encode_frames(std::iter::repeat_n(Frame::new(frame), 2)).unwrap();
        }
        drop(encoder);
        let limits = [1 << 20, 30_000, 8_000].map(|max| {
            let rendition = render(&original, &fit(MediaKind::Gif, 200, 100, max, false)).unwrap();
            assert!(rendition.bytes.len() as u64 <= max, "{max}: {}", rendition.bytes.len());
            assert_eq!(Animation::read(&mut Cursor::new(&rendition.bytes)).unwrap().frames, 4);
            rendition.width
        });
        assert!(limits[0] == 200 && limits[0] > limits[1] && limits[1] > limits[2], "{limits:?}");
    }

    #[test]
    fn what_costs_too_much_is_refused_before_it_is_decoded() {
        let animation = flicker(2000, 2000, 26);
        assert_eq!(
            refusal(&animation, &fit(MediaKind::Gif, 1000, 1000, 1 << 20, false)),
            "its 26 frames of 2000x2000 have more than 100 million pixels together"
        );
        // A frame that is larger than the canvas costs as much.
        let mut animation = flicker(16, 16, 2);
        // Width and height stand before a flag, the data and the trailer.
        let at = animation.len() - 4 - 1 - 5 - 1;
        animation[at..at + 4].fill(0xff);
        let refused = refusal(&animation, &fit(MediaKind::Gif, 8, 8, 1 << 20, false));
        assert!(refused.contains("more than 100 million pixels"), "{refused}");

        let jpeg = encoded(noise(1000, 1000), ImageFormat::Jpeg);
        let scans = b"\xff\xda\0\x08\x01\x01\0\0\x3f\0".repeat(1500);
        let many = [&jpeg[..jpeg.len() - 2], &scans, b"\xff\xd9"].concat();
        assert_eq!(
            refusal(&many, &fit(MediaKind::Image, 100, 100, 1 << 20, false)),
            "it has more than 1500 million pixels in all its scans"
        );
        assert!(render(&jpeg, &fit(MediaKind::Image, 100, 100, 1 << 20, false)).is_ok());
    }

    #[test]
    fn a_picture_ends_at_its_deadline_with_the_reason_and_when_nobody_waits() {
        let originals = [
            (MediaKind::Image, encoded(noise(400, 200), ImageFormat::Png)),
            (MediaKind::Image, encoded(noise(400, 200), ImageFormat::Jpeg)),
            (MediaKind::Image, encoded(noise(400, 200), ImageFormat::WebP)),
            (MediaKind::Gif, flicker(64, 64, 3)),
        ];
        for (kind, original) in originals {
            let fit = fit(kind, 32, 32, 1 << 20, false);
            let stop = Stop::default();
            let late = super::render(&original, &fit, &Deadline::after(Duration::ZERO, stop.flag()));
            let reason = "converting it takes more than 30 s of computing".to_owned();
            assert_eq!(late.unwrap_err(), Halt::Unfit(reason), "{kind}");
            let deadline = Deadline::after(CPU_LIMIT, stop.flag());
            drop(stop);
            assert_eq!(super::render(&original, &fit, &deadline).unwrap_err(), Halt::Stopped, "{kind}");
        }
    }

    #[test]
    fn unreadable_files_are_refused() {
        let png = encoded(noise(64, 64), ImageFormat::Png);
        for broken in [&b"not a picture"[..], &png[..png.len() / 2], b""] {
            for kind in [MediaKind::Image, MediaKind::Gif] {
                let error = refusal(broken, &fit(kind, 10, 10, 1000, true));
                assert!(error.starts_with("it can't be read"), "{error}");
            }
        }
    }
}
