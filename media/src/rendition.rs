//! Renditions: pictures that were scaled and converted to what a platform takes.
//!
//! A rendition has the orientation that the original's EXIF data ask for, its color profile, and none of its other
//! metadata. The same original and [`Fit`] always make the same bytes.

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
use std::io::Cursor;

/// Memory that a decoder may use, in bytes.
const MAX_MEMORY: u64 = 512 << 20;
/// Pixels of all frames of an animation together.
const MAX_FRAME_PIXELS: u64 = 1_000_000_000;
/// Qualities of a JPEG, the best first, before it is made smaller.
const QUALITIES: [u8; 3] = [90, 82, 72];
/// Factor on the sides of a picture that has too many bytes at the lowest quality.
const SHRINK: f64 = 0.8;
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

/// Makes a rendition; the error says why there can be none.
pub(crate) fn render(original: &[u8], fit: &Fit) -> Result<Rendition, String> {
    let (mut width, mut height) = (fit.width, fit.height);
    let picture = if fit.kind == MediaKind::Gif { None } else { Some(Picture::decode(original)?) };
    let least = fit.width.min(fit.height).clamp(1, MIN_SIDE);
    while width.min(height) >= least {
        let made = match &picture {
            Some(picture) => picture.write(fit, width, height)?,
            None => animation(original, fit, width, height)?,
        };
        if let Some((bytes, extension)) = made {
            return Ok(Rendition { bytes, extension, width, height });
        }
        let smaller = |side: u32| (f64::from(side) * SHRINK) as u32;
        (width, height) = (smaller(width), smaller(height));
    }
    Err(format!("it can't be made to have {} bytes at most", fit.max_bytes))
}

fn unreadable(error: impl std::fmt::Display) -> String {
    format!("it can't be read: {error}")
}

fn limits() -> image::Limits {
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(MAX_MEMORY);
    limits
}

/// A still picture, or the first frame of an animation.
struct Picture {
    image: DynamicImage,
    profile: Option<Vec<u8>>,
}

impl Picture {
    fn decode(original: &[u8]) -> Result<Self, String> {
        let mut reader = ImageReader::new(Cursor::new(original)).with_guessed_format().map_err(unreadable)?;
        reader.limits(limits());
        let mut decoder = reader.into_decoder().map_err(unreadable)?;
        let (width, height) = decoder.dimensions();
        if u64::from(width) * u64::from(height) > Fit::MAX_PIXELS {
            return Err(format!("it has more than {} million pixels", Fit::MAX_PIXELS / 1_000_000));
        }
        let orientation = decoder.orientation().map_err(unreadable)?;
        // A profile of another color space does not describe the decoded colors.
        let profile =
            decoder.icc_profile().ok().flatten().filter(|profile| profile.get(16..20) == Some(b"RGB "));
        let decoded = DynamicImage::from_decoder(decoder).map_err(unreadable)?;
        let has_alpha = decoded.color().has_alpha();
        let mut image = if has_alpha {
            DynamicImage::from(decoded.into_rgba8())
        } else {
            DynamicImage::from(decoded.into_rgb8())
        };
        image.apply_orientation(orientation);
        Ok(Self { image, profile })
    }

    /// Returns the bytes and the extension; `None` if they are too many.
    fn write(&self, fit: &Fit, width: u32, height: u32) -> Result<Option<(Vec<u8>, &'static str)>, String> {
        let scaled = resize(&self.image, width, height)?;
        let is_opaque = match &scaled {
            DynamicImage::ImageRgba8(image) => image.pixels().all(|pixel| pixel.0[3] == u8::MAX),
            _ => true,
        };
        if !is_opaque && fit.keeps_transparency {
            let mut bytes = Vec::new();
            let encoder =
                PngEncoder::new_with_quality(&mut bytes, CompressionType::Default, FilterType::Adaptive);
            self.encode(&scaled, encoder)?;
            return Ok((bytes.len() as u64 <= fit.max_bytes).then_some((bytes, "png")));
        }
        let opaque = DynamicImage::from(on_white(scaled));
        for quality in QUALITIES {
            let mut bytes = Vec::new();
            self.encode(&opaque, JpegEncoder::new_with_quality(&mut bytes, quality))?;
            if bytes.len() as u64 <= fit.max_bytes {
                return Ok(Some((bytes, "jpg")));
            }
        }
        Ok(None)
    }

    /// Encodes a scaled picture with the color profile of the original.
    fn encode(&self, scaled: &DynamicImage, mut encoder: impl ImageEncoder) -> Result<(), String> {
        if let Some(profile) = &self.profile {
            encoder.set_icc_profile(profile.clone()).map_err(unreadable)?;
        }
        scaled.write_with_encoder(encoder).map_err(unreadable)
    }
}

fn resize(image: &DynamicImage, width: u32, height: u32) -> Result<DynamicImage, String> {
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

/// Returns an animation frame by frame, so that one frame is in memory at a time; `None` if it has too many bytes.
fn animation(
    original: &[u8],
    fit: &Fit,
    width: u32,
    height: u32,
) -> Result<Option<(Vec<u8>, &'static str)>, String> {
    let mut decoder = GifDecoder::new(Cursor::new(original)).map_err(unreadable)?;
    decoder.set_limits(limits()).map_err(unreadable)?;
    let repeat = match decoder.loop_count() {
        LoopCount::Infinite => Repeat::Infinite,
        LoopCount::Finite(times) => Repeat::Finite(u16::try_from(times.get()).unwrap_or(u16::MAX)),
    };
    let mut bytes = Vec::new();
    let mut encoder = GifEncoder::new_with_speed(&mut bytes, GIF_SPEED);
    encoder.set_repeat(repeat).map_err(unreadable)?;
    let mut pixels = 0;
    for frame in decoder.into_frames() {
        let frame = frame.map_err(unreadable)?;
        pixels += u64::from(frame.buffer().width()) * u64::from(frame.buffer().height());
        if pixels > MAX_FRAME_PIXELS {
            return Err("its frames have too many pixels together".to_owned());
        }
        let delay = frame.delay();
        let scaled: RgbaImage = resize(&frame.into_buffer().into(), width, height)?.into_rgba8();
        encoder.encode_frame(Frame::from_parts(scaled, 0, 0, delay)).map_err(unreadable)?;
    }
    drop(encoder);
    Ok((bytes.len() as u64 <= fit.max_bytes).then_some((bytes, "gif")))
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn the_orientation_is_applied_and_other_metadata_are_removed() {
        // 6: the first row of the file is the right side of the picture.
        let original = with_exif(&encoded(noise(400, 200), ImageFormat::Jpeg), 6);
        let rendition = render(&original, &fit(MediaKind::Image, 100, 200, 1 << 20, false)).unwrap();
        let [top, bottom] = [(50, 40), (50, 160)].map(|(x, y)| decoded(&rendition).get_pixel(x, y).0);
        assert!(top[0] > 200 && bottom[2] > 200, "{top:?} {bottom:?}");
        for (bytes, has_exif) in [(&original, true), (&rendition.bytes, false)] {
            assert_eq!(bytes.windows(4).any(|window| window == b"Exif"), has_exif);
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
        let refused = render(&original, &fit(MediaKind::Image, 800, 400, 100, true)).unwrap_err();
        assert_eq!(refused, "it can't be made to have 100 bytes at most");
        let line = encoded(noise(4000, 1), ImageFormat::Png);
        let refused = render(&line, &fit(MediaKind::Image, 4000, 1, 100, true)).unwrap_err();
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

    #[test]
    fn unreadable_files_are_refused() {
        let png = encoded(noise(64, 64), ImageFormat::Png);
        for broken in [&b"not a picture"[..], &png[..png.len() / 2], b""] {
            for kind in [MediaKind::Image, MediaKind::Gif] {
                let error = render(broken, &fit(kind, 10, 10, 1000, true)).unwrap_err();
                assert!(error.starts_with("it can't be read"), "{error}");
            }
        }
    }
}
