//! Renditions of files, whose structure is read and judged before a picture is decoded.

use crate::{
    format,
    probe::{gif::Animation, image},
};
use domain::{Fit, MediaKind};
use pictures::{Halt, Rendition};
use std::io::Cursor;

/// Makes a rendition.
pub(crate) fn render(original: &[u8], fit: &Fit) -> Result<Rendition, Halt> {
    let mut file = Cursor::new(original);
    if fit.kind == MediaKind::Gif {
        let Animation { pixels, frames, frame_pixels, .. } =
            Animation::read(&mut file).map_err(Halt::unreadable)?;
        if frame_pixels > Fit::MAX_FRAME_PIXELS {
            let max = Fit::MAX_FRAME_PIXELS / 1_000_000;
            let (width, height) = pixels;
            let message = format!(
                "its {frames} frames of {width}x{height} have more than {max} million pixels together"
            );
            return Err(Halt::Unfit(message));
        }
        return pictures::animation(original, pixels, frames, fit);
    }
    let format = format::of_bytes(original).ok_or_else(|| Halt::unreadable("its type is not known"))?;
    let structure = image::structure(&mut file, original.len() as u64, format.shape);
    pictures::still(original, structure.map_err(Halt::unreadable)?, fit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::image::{
        AnimationDecoder, Delay, DynamicImage, Frame, ImageDecoder, ImageEncoder, ImageFormat, Rgb, RgbImage,
        Rgba, RgbaImage,
        codecs::gif::{GifDecoder, GifEncoder, Repeat},
    };
    use domain::Shaping;

    fn fit(kind: MediaKind, width: u32, height: u32, max_bytes: u64, keeps_transparency: bool) -> Fit {
        Fit { kind, width, height, shaping: None, max_bytes, keeps_transparency }
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

    /// Returns the reason why there is no rendition.
    fn refusal(original: &[u8], fit: &Fit) -> String {
        match render(original, fit) {
            Err(Halt::Undecodable(reason) | Halt::Unfit(reason)) => reason,
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
        let image = ::image::load_from_memory(&rendition.bytes).unwrap().into_rgba8();
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
    fn a_picture_is_cropped_or_padded_to_the_shape_of_the_box() {
        // Displayed, it is 200 wide and 400 high, red above and blue below.
        let original = with_exif(&encoded(noise(400, 200), ImageFormat::Jpeg), 6);
        for (shaping, width, height, max_bytes) in [
            (Shaping::Crop, 100, 100, 1 << 20),
            (Shaping::Pad, 100, 100, 1 << 20),
            // Enlarged, and made smaller for its bytes.
            (Shaping::Crop, 600, 600, 1 << 20),
            (Shaping::Pad, 600, 600, 1 << 20),
            (Shaping::Crop, 300, 150, 2_000),
            (Shaping::Pad, 300, 150, 2_000),
        ] {
            let fit = Fit { shaping: Some(shaping), ..fit(MediaKind::Image, width, height, max_bytes, true) };
            let rendition = render(&original, &fit).unwrap();
            let (w, h) = (rendition.width, rendition.height);
            assert_eq!((w, h) == (width, height), max_bytes > 2_000, "{fit:?}: {w}x{h}");
            assert!(w.abs_diff(h * width / height) <= 1, "{fit:?}: {w}x{h}");
            let image = decoded(&rendition);
            let at = |x: u32, y: u32| image.get_pixel(w * x / 100, h * y / 100).0;
            let (above, below) = (at(50, 20), at(50, 80));
            assert!(above[0] > 190 && above[2] < 90 && below[2] > 190 && below[0] < 90, "{fit:?}");
            let is_white = |pixel: [u8; 4]| pixel[..3].iter().all(|color| *color > 245);
            let (left, right) = (at(4, 20), at(95, 80));
            let is_padded = shaping == Shaping::Pad;
            assert_eq!(
                (is_white(left), is_white(right)),
                (is_padded, is_padded),
                "{fit:?} {left:?} {right:?}"
            );
            assert_eq!(render(&original, &fit).unwrap().bytes, rendition.bytes, "the same each time");
        }
        let moving = flicker(64, 32, 2);
        let fit = Fit { shaping: Some(Shaping::Pad), ..fit(MediaKind::Gif, 32, 32, 1 << 20, false) };
        assert_eq!(refusal(&moving, &fit), "an animation gets no other shape (pad)");
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
    fn a_color_profile_is_kept_unless_it_is_larger_than_a_picture_may_be() {
        for (length, is_kept) in [(3000, true), (300_000, false)] {
            let mut profile = vec![7; length];
            profile[16..20].copy_from_slice(b"RGB ");
            let mut original = Vec::new();
            let mut encoder = ::image::codecs::png::PngEncoder::new(&mut original);
            encoder.set_icc_profile(profile.clone()).unwrap();
            DynamicImage::from(noise(200, 100)).write_with_encoder(encoder).unwrap();
            let rendition = render(&original, &fit(MediaKind::Image, 100, 50, 200_000, true)).unwrap();
            let mut decoder = ::image::codecs::jpeg::JpegDecoder::new(Cursor::new(&rendition.bytes)).unwrap();
            assert_eq!(decoder.icc_profile().unwrap(), is_kept.then_some(profile), "{length}");
        }
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
    fn an_animation_that_ends_early_keeps_its_whole_frames() {
        let whole = flicker(64, 64, 4);
        let cut = &whole[..whole.len() - 5];
        let rendition = render(cut, &fit(MediaKind::Gif, 32, 32, 1 << 20, false)).unwrap();
        let found = Animation::read(&mut Cursor::new(&rendition.bytes)).unwrap();
        assert_eq!((found.frames, found.pixels), (3, (32, 32)));
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
