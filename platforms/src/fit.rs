//! Fitting of pictures: which rendition a platform takes of a picture that it would refuse.
//!
//! A picture that is too large or of a type that the platform does not take is scaled and converted by the worker;
//! an animation becomes a still image where the platform takes none. One whose shape is refused is cropped or padded
//! only where the author said so, by the setting `fit`, and so is one that is too small enlarged: both change what is
//! seen. The middle of a picture is what is kept of it. Animations and videos get no other shape.

use crate::{
    adapter::Adapter,
    limits::{MediaLimit, Shape},
};
use domain::{Fit, Media, MediaKind, Shaping};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Name of the setting.
pub(crate) const SETTING: &str = "fit";
/// End of a message about a shape that the setting would change.
pub(crate) const REMEDY: &str = "; with the setting fit, crop or pad, it is made to fit";

/// The value of the setting `fit`, for its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fitting {
    Crop,
    Pad,
}

impl Adapter {
    /// Returns what each picture of the container at `position` of a post with these settings has to become; `None` for
    /// one that is published as it is, or of which nothing that can be done makes the platform take it.
    pub fn fits(&self, position: usize, settings: &Value, media: &[Media]) -> Vec<Option<Fit>> {
        let limits = self.media_limits("", position, settings);
        let wish = if self.has_fit() { settings[SETTING].as_str() } else { None };
        let shaping = wish.and_then(|wish| wish.parse().ok());
        let fit = |(index, medium): (usize, &Media)| {
            let shape = self.publisher.shape(media, index, settings);
            fit(limits, medium, shape, shaping)
        };
        media.iter().enumerate().map(fit).collect()
    }

    /// Returns whether the platform has the setting `fit`, and it would make it take each of these pictures.
    pub(crate) fn is_fittable(&self, position: usize, settings: &Value, media: &[Media]) -> Vec<bool> {
        let is_open = self.has_fit() && settings[SETTING].is_null();
        if !is_open || media.is_empty() {
            return vec![false; media.len()];
        }
        let mut settings = if settings.is_object() { settings.clone() } else { serde_json::json!({}) };
        settings[SETTING] = Shaping::Crop.as_str().into();
        let fits = self.fits(position, &settings, media);
        let fits = media.iter().zip(fits);
        fits.map(|(medium, fit)| is_readable(medium) && fit.is_some_and(|fit| fit.shaping.is_some()))
            .collect()
    }

    pub(crate) fn has_fit(&self) -> bool {
        self.schema().document()["properties"][SETTING].is_object()
    }
}

fn fit(limits: &[MediaLimit], medium: &Media, shape: Option<Shape>, shaping: Option<Shaping>) -> Option<Fit> {
    if !is_original(medium) {
        return None;
    }
    let (width, height) = (medium.width?, medium.height?);
    let of = |kind| limits.iter().find(|limit| limit.kind == kind);
    // Animations of other types than GIF can't be made a GIF.
    let moves = medium.kind != MediaKind::Gif || medium.mime == mime(MediaKind::Gif);
    let limit = of(medium.kind)
        .filter(|limit| moves || limit.mimes.contains(&medium.mime.as_str()))
        .or_else(|| of(MediaKind::Image))?;
    let has_too_many_frames = medium.frame_pixels().is_some_and(|pixels| pixels > Fit::MAX_FRAME_PIXELS)
        || medium.frames.zip(limit.max_frames).is_some_and(|(frames, max)| frames > max);
    if limit.kind == MediaKind::Gif && has_too_many_frames {
        return None;
    }
    let scale = scale(limit, width, height);
    let shaped = match limit.kind {
        MediaKind::Image => {
            shaped(limit, (width, height), medium.size_bytes < limit.min_bytes, shape, shaping)
        }
        _ => None,
    };
    let fits = limit.kind == medium.kind
        && limit.mimes.contains(&medium.mime.as_str())
        && medium.size_bytes <= limit.max_bytes
        && scale >= 1.0
        && shaped.is_none();
    if fits || !limit.mimes.contains(&mime(limit.kind)) {
        return None;
    }
    let scaled = |side: u32| ((f64::from(side) * scale.min(1.0)) as u32).max(1);
    let (shaping, (width, height)) = match shaped {
        Some((shaping, sides)) => (Some(shaping), sides),
        None => (None, (scaled(width), scaled(height))),
    };
    Some(Fit {
        kind: limit.kind,
        width,
        height,
        shaping,
        max_bytes: limit.max_bytes,
        keeps_transparency: limit.mimes.contains(&"image/png"),
    })
}

/// Returns true if renditions can be made of a picture.
pub(crate) fn is_readable(medium: &Media) -> bool {
    is_original(medium) && medium.undecodable().is_none()
}

/// Returns true if renditions can be made of pictures of this type and size.
fn is_original(medium: &Media) -> bool {
    let sides = medium.width.zip(medium.height);
    matches!(medium.kind, MediaKind::Image | MediaKind::Gif)
        && Fit::ORIGINALS.contains(&medium.mime.as_str())
        && sides.is_some_and(|(width, height)| {
            (1..=Fit::MAX_PIXELS).contains(&(u64::from(width) * u64::from(height)))
        })
}

/// Returns the sides that a picture gets if scaling it down does not make it fit, and how it gets them. One that has too
/// few bytes gets more by being enlarged.
fn shaped(
    limit: &MediaLimit,
    (width, height): (u32, u32),
    is_light: bool,
    shape: Option<Shape>,
    shaping: Option<Shaping>,
) -> Option<(Shaping, (u32, u32))> {
    let [w, h] = [width, height].map(f64::from);
    let range = match shape {
        Some(Shape::Exactly(..)) if shape == Some(Shape::Exactly(width, height)) => return None,
        Some(Shape::Exactly(to_width, to_height)) => {
            // To a pixel it has the shape already, and nothing of it is lost.
            let is_scaled = to_width <= width && have_one_shape((width, height), (to_width, to_height));
            let shaping = shaping.or_else(|| is_scaled.then_some(Shaping::Crop));
            return Some((shaping?, (to_width, to_height)));
        }
        Some(Shape::Within(range)) => range,
        None => limit.aspect_ratio.clone().unwrap_or(0.0..=f64::INFINITY),
    };
    let (least, most) = limit.pixels.as_ref().map_or((1, u32::MAX), |(long, short)| {
        // A platform with a minimum has the same for both sides.
        (*short.start().max(long.start()), *long.end())
    });
    let scale = scale(limit, width, height).min(1.0);
    // One that is enlarged gets more than it needs, since it is to have some bytes as well.
    let enlarged = f64::from(least) * ENLARGED;
    let is_small = w.min(h) * scale < if is_light { enlarged } else { f64::from(least) };
    if !is_small && range.contains(&(w / h)) {
        return None;
    }
    let shaping = shaping?;
    let most = f64::from(most.min(limit.max_width.unwrap_or(u32::MAX)).min(Fit::MAX_SHAPED_SIDE));
    let (lowest, highest) = match is_small {
        true => (range.start().max(enlarged / most), range.end().min(most / enlarged)),
        false => (*range.start(), *range.end()),
    };
    let ratio = (w / h).clamp(lowest, highest);
    let (w, h) = match (shaping, w / h > ratio) {
        (Shaping::Crop, true) | (Shaping::Pad, false) => (h * ratio, h),
        (Shaping::Crop, false) | (Shaping::Pad, true) => (w, w / ratio),
    };
    let scale = if is_small { enlarged / w.min(h) } else { (most / w.max(h)).min(scale).min(1.0) };
    let [w, h] = [w, h].map(|side| (side * scale).round().clamp(1.0, most));
    // Rounded towards a square, which fits everywhere.
    let (w, h) = if w >= h { (w, h.max((w / highest).ceil())) } else { (w.max((h * lowest).ceil()), h) };
    Some((shaping, (w as u32, h as u32)))
}

/// How much longer than the minimum the shorter side of an enlarged picture is. Google Business Profile wants 250 pixels
/// and 10 KB, and recommends 720 pixels.
const ENLARGED: f64 = 2.88;

/// Returns true if sizes differ in shape by no more than their sides are rounded.
pub(crate) fn have_one_shape(one: (u32, u32), other: (u32, u32)) -> bool {
    let [a, b] = [(one.0, other.1), (one.1, other.0)].map(|(a, b)| u64::from(a) * u64::from(b));
    a.abs_diff(b) <= u64::from(one.0.max(one.1).max(other.0.max(other.1)))
}

/// Returns the factor at which a picture has the largest size that is accepted.
fn scale(limit: &MediaLimit, width: u32, height: u32) -> f64 {
    let (long, short) = (width.max(height), width.min(height));
    let sides =
        limit.pixels.as_ref().map(|(longer, shorter)| [(*longer.end(), long), (*shorter.end(), short)]);
    let bounds = sides.into_iter().flatten().chain(limit.max_width.map(|max| (max, width)));
    let of_sides = bounds.map(|(max, side)| f64::from(max) / f64::from(side)).fold(f64::INFINITY, f64::min);
    let pixels = u64::from(width) * u64::from(height);
    let of_area = limit.max_pixels.map_or(f64::INFINITY, |max| (max as f64 / pixels as f64).sqrt());
    of_sides.min(of_area)
}

/// Returns the content type of renditions without transparency.
fn mime(kind: MediaKind) -> &'static str {
    if kind == MediaKind::Gif { "image/gif" } else { "image/jpeg" }
}

/// Returns a medium as its rendition will be, as far as that is known before it is made.
pub(crate) fn fitted(medium: &Media, fit: &Fit) -> Media {
    // It may have more bytes than the original, and never more than this.
    medium.fitted(fit, mime(fit.kind), fit.max_bytes, fit.width, fit.height)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn picture(mime: &str, width: u32, height: u32, size_bytes: u64) -> Media {
        Media {
            id: uuid::Uuid::nil(),
            kind: if mime == "image/gif" { MediaKind::Gif } else { MediaKind::Image },
            mime: mime.to_owned(),
            filename: "a".to_owned(),
            size_bytes,
            width: Some(width),
            height: Some(height),
            frames: None,
            duration: None,
            alt_text: None,
            facts: None,
            rendition: None,
        }
    }

    fn fits(platform: &str, settings: &Value, medium: &Media) -> Option<Fit> {
        let media = std::slice::from_ref(medium);
        crate::get(platform).unwrap().fits(0, settings, media).remove(0)
    }

    fn moving(mime: &str) -> Media {
        Media { kind: MediaKind::Gif, frames: Some(3), ..picture(mime, 600, 600, 1000) }
    }

    fn plan(platform: &str, medium: &Media) -> Option<(MediaKind, u32, u32, u64)> {
        let fit = fits(platform, &Value::Null, medium)?;
        Some((fit.kind, fit.width, fit.height, fit.max_bytes))
    }

    #[test]
    fn a_picture_that_a_platform_would_refuse_is_fitted() {
        use MediaKind::{Gif, Image};
        for (platform, medium, expected) in [
            // As it is.
            ("x", picture("image/png", 4000, 3000, 5 << 20), None),
            // Too many bytes, of another type, too many pixels.
            ("x", picture("image/png", 4000, 3000, 6 << 20), Some((Image, 4000, 3000, 5 << 20))),
            ("instagram", picture("image/png", 1000, 800, 1000), Some((Image, 1000, 800, 8_000_000))),
            ("tiktok", picture("image/jpeg", 4000, 3000, 1000), Some((Image, 1440, 1080, 20_000_000))),
            ("tiktok", picture("image/jpeg", 1080, 4800, 1000), Some((Image, 432, 1920, 20_000_000))),
            // An animation stays one, or becomes a still image.
            ("x", picture("image/gif", 1600, 800, 1000), Some((Gif, 1280, 640, 15 << 20))),
            ("instagram", picture("image/gif", 600, 600, 1000), Some((Image, 600, 600, 8_000_000))),
            // The area counts, not a side.
            ("linkedin", picture("image/jpeg", 8064, 6048, 1000), Some((Image, 6942, 5207, 8 << 20))),
            ("linkedin", picture("image/jpeg", 6000, 6000, 1000), None),
            // No other animation than a GIF can be made one.
            ("x", moving("image/webp"), Some((Image, 600, 600, 5 << 20))),
            ("x", moving("image/png"), Some((Image, 600, 600, 5 << 20))),
            ("bluesky", moving("image/webp"), Some((Image, 600, 600, 2_000_000))),
            ("instagram", moving("image/png"), Some((Image, 600, 600, 8_000_000))),
            // As phones, scanners and editors store it.
            ("x", picture("image/heif", 4000, 3000, 1000), Some((Image, 4000, 3000, 5 << 20))),
            ("instagram", picture("image/avif", 1000, 800, 1000), Some((Image, 1000, 800, 8_000_000))),
            ("bluesky", picture("image/tiff", 1000, 800, 1000), Some((Image, 1000, 800, 2_000_000))),
            ("x", picture("image/bmp", 1000, 800, 1000), Some((Image, 1000, 800, 5 << 20))),
            ("facebook", picture("image/bmp", 1000, 800, 1000), None),
            // A picture that can't be read, and a video.
            ("x", picture("image/x-icon", 4000, 3000, 6 << 20), None),
            ("x", picture("image/jpeg", 20_000, 20_000, 6 << 20), None),
            ("x", Media { kind: MediaKind::Video, ..picture("video/mp4", 4000, 3000, 1 << 30) }, None),
            ("x", Media { width: None, ..picture("image/png", 1, 1, 6 << 20) }, None),
            // An animation that costs too much, or has more frames than the platform takes; as a still image it fits.
            ("x", Media { frames: Some(249), ..picture("image/gif", 2000, 2000, 1000) }, None),
            ("x", Media { frames: Some(351), ..picture("image/gif", 320, 240, 16 << 20) }, None),
            (
                "x",
                Media { frames: Some(25), ..picture("image/gif", 2000, 2000, 1000) },
                Some((Gif, 1080, 1080, 15 << 20)),
            ),
            (
                "instagram",
                Media { frames: Some(249), ..picture("image/gif", 2000, 2000, 1000) },
                Some((Image, 2000, 2000, 8_000_000)),
            ),
        ] {
            assert_eq!(plan(platform, &medium), expected, "{platform} {medium:?}");
        }
    }

    #[test]
    fn the_picture_of_a_link_card_is_fitted_to_the_card() {
        let bluesky = crate::get("bluesky").unwrap();
        let card = json!({ "link": { "url": "https://example.com" } });
        let medium = picture("image/png", 1000, 500, 1_000_001);
        let media = std::slice::from_ref(&medium);
        let fit = |position, settings| Some(bluesky.fits(position, settings, media).remove(0)?.max_bytes);
        assert_eq!(fit(0, &card), Some(1_000_000));
        assert_eq!((fit(1, &card), fit(0, &json!({}))), (None, None));
        let small = picture("image/png", 1000, 500, 1_000_000);
        assert_eq!(fits("bluesky", &card, &small), None);
    }

    #[test]
    fn every_fitted_picture_is_within_the_limits_of_its_platform() {
        for platform in crate::all() {
            for medium in [
                picture("image/png", 9000, 9000, 45 << 20),
                picture("image/webp", 3000, 2000, 30 << 20),
                picture("image/gif", 3000, 3000, 290 << 20),
                picture("image/heif", 4032, 3024, 2 << 20),
            ] {
                let Some(fit) = fits(platform.id, &Value::Null, &medium) else { continue };
                let fitted = fitted(&medium, &fit);
                assert_eq!(fits(platform.id, &Value::Null, &fitted), None, "{} {fitted:?}", platform.id);
            }
        }
    }

    /// Returns the sides that a picture gets with the setting, or without; `None` if it is published as it is.
    fn sides(
        platform: &str,
        fit: Option<&str>,
        settings: Value,
        of: &[(u32, u32)],
    ) -> Vec<Option<(u32, u32)>> {
        let mut settings = settings;
        settings[SETTING] = json!(fit);
        let media: Vec<_> = of.iter().map(|(w, h)| picture("image/jpeg", *w, *h, 1000)).collect();
        let fits = crate::get(platform).unwrap().fits(0, &settings, &media);
        fits.into_iter().map(|fit| fit.map(|fit| (fit.width, fit.height))).collect()
    }

    #[test]
    fn a_picture_gets_another_shape_only_where_the_author_said_how() {
        for (platform, settings, of, cropped, padded) in [
            // Between 3:4 and 1.91:1 in the feed; Instagram shows stories of other shapes.
            ("instagram", json!({}), (1000, 2000), Some((1000, 1333)), Some((1500, 2000))),
            ("instagram", json!({}), (2000, 1000), Some((1910, 1000)), Some((2000, 1048))),
            ("instagram", json!({}), (1080, 1440), None, None),
            ("instagram", json!({}), (8000, 1000), Some((1910, 1000)), Some((4096, 2145))),
            ("instagram", json!({ "media_type": "STORIES" }), (1000, 2000), None, None),
            (
                "instagram",
                json!({ "media_type": "STORIES" }),
                (100, 2000),
                Some((100, 1000)),
                Some((200, 2000)),
            ),
            ("threads", json!({}), (4000, 300), Some((3000, 300)), Some((4000, 400))),
            ("threads", json!({}), (3000, 300), None, None),
            // Enlarged; what would be too long for that gets another shape too.
            ("google_business", json!({}), (100, 100), Some((720, 720)), Some((720, 720))),
            ("google_business", json!({}), (10, 1000), Some((720, 4096)), Some((720, 4096))),
            // So is one that has too few bytes.
            ("google_business", json!({}), (250, 300), Some((720, 864)), Some((720, 864))),
            ("google_business", json!({}), (720, 900), None, None),
            // No shape is refused, or there are no pictures that it could be.
            ("tiktok", json!({}), (100, 4000), Some((48, 1920)), Some((48, 1920))),
            ("x", json!({}), (100, 4000), None, None),
        ] {
            for (fit, expected) in [(Some("crop"), cropped), (Some("pad"), padded)] {
                assert_eq!(
                    sides(platform, fit, settings.clone(), &[of]),
                    [expected],
                    "{platform} {of:?} {fit:?}"
                );
            }
            if platform != "tiktok" {
                assert_eq!(sides(platform, None, settings.clone(), &[of]), [None], "{platform} {of:?}");
            }
        }
    }

    #[test]
    fn the_pictures_of_a_pin_get_one_size() {
        let of = |fit, sizes: &[(u32, u32)]| sides("pinterest", fit, json!({}), sizes);
        let to = |sizes: &[(u32, u32)]| sizes.iter().copied().map(Some).collect::<Vec<_>>();
        // Those of one shape are scaled down to the smallest.
        assert_eq!(
            of(None, &[(3000, 2000), (1500, 1000), (600, 400)]),
            [Some((600, 400)), Some((600, 400)), None]
        );
        assert_eq!(of(None, &[(1200, 800), (800, 1200)]), [None, None]);
        assert_eq!(of(Some("crop"), &[(1200, 800), (800, 1200)]), [None, Some((1200, 800))]);
        assert_eq!(of(Some("pad"), &[(4000, 2000), (10, 10)]), to(&[(2000, 1000); 2]));
        assert_eq!(of(Some("pad"), &[(4000, 2000), (4000, 2000)]), [None, None]);
        assert_eq!(of(Some("pad"), &[(4000, 2000)]), [None]);
    }

    #[test]
    fn a_refused_shape_is_told_with_its_remedy() {
        let told = |platform: &str, settings: Value, media: &[Media]| {
            let content = crate::check::ContainerContent { text: "a", media };
            let issues = crate::check::check(crate::get(platform).unwrap(), &[content], &settings);
            let issues = issues.into_iter().filter(|issue| issue.code != "text_too_long");
            issues.map(|issue| (issue.code, issue.message)).collect::<Vec<_>>()
        };
        let tall = picture("image/jpeg", 500, 5000, 1000);
        let small = picture("image/png", 100, 100, 1000);
        let uneven = [picture("image/png", 100, 200, 1000), picture("image/png", 200, 200, 1000)];
        for (platform, media, code) in [
            ("instagram", &[tall.clone()][..], "media_aspect_ratio"),
            ("threads", &[picture("image/png", 100, 1100, 1000)], "media_aspect_ratio"),
            ("google_business", &[small], "media_too_small"),
            ("google_business", &[picture("image/png", 300, 300, (10 << 10) - 1)], "media_too_small"),
            ("pinterest", &uneven, "media_dimensions"),
        ] {
            let issues = told(platform, json!({}), media);
            assert!(issues[0].0 == code && issues[0].1.ends_with(REMEDY), "{platform} {issues:?}");
            for (fit, word) in [("crop", "the middle of this image"), ("pad", "on a white ground")] {
                let issues = told(platform, json!({ "fit": fit }), media);
                assert!(issues.iter().all(|(code, _)| code == "media_fitted"), "{platform} {issues:?}");
                // An enlarged square keeps its shape.
                let is_told = issues.iter().any(|(_, message)| message.contains(word));
                assert_eq!(is_told, platform != "google_business", "{platform} {issues:?}");
            }
            let issues = told(platform, json!({ "fit": "stretch" }), media);
            assert!(issues.iter().any(|(code, _)| code == "setting_invalid"), "{platform} {issues:?}");
        }
        // A format that can't be read is not fitted, and says so by its type.
        let icon = Media { mime: "image/x-icon".to_owned(), ..tall };
        let issues = told("instagram", json!({}), &[icon]);
        assert!(issues.iter().all(|(_, message)| !message.contains(REMEDY)), "{issues:?}");
        let video = Media {
            kind: MediaKind::Video,
            duration: Some(std::time::Duration::from_secs(5)),
            ..picture("video/mp4", 1000, 1000, 1000)
        };
        for without_pictures in [&[video][..], &[]] {
            let issues = told("threads", json!({ "fit": "pad" }), without_pictures);
            assert_eq!(issues[0].0, "setting_not_used", "{issues:?}");
        }
    }

    proptest::proptest! {
        /// Whatever its sides are, a picture that is cropped or padded is taken afterwards.
        #[test]
        fn every_shape_is_made_to_fit(
            width in 1_u32..20_000,
            height in 1_u32..20_000,
            exponents in (0_u32..14, 0_u32..14),
            is_padded: bool,
            place in 0_usize..5,
        ) {
            // Many pictures are narrow.
            let (width, height) = ((width >> exponents.0).max(1), (height >> exponents.1).max(1));
            proptest::prop_assume!(u64::from(width) * u64::from(height) <= Fit::MAX_PIXELS);
            let (platform, mut settings) = [
                ("instagram", json!({})),
                ("instagram", json!({ "media_type": "STORIES" })),
                ("threads", json!({})),
                ("google_business", json!({})),
                ("pinterest", json!({})),
            ][place].clone();
            settings[SETTING] = json!(if is_padded { "pad" } else { "crop" });
            let platform = crate::get(platform).unwrap();
            let mut media = vec![picture("image/jpeg", width, height, 20_000)];
            if platform.id == "pinterest" {
                media.push(picture("image/jpeg", 600, 900, 1000));
            }
            let fits = platform.fits(0, &settings, &media);
            let media: Vec<_> = media
                .iter()
                .zip(&fits)
                .map(|(medium, fit)| fit.map_or(medium.clone(), |fit| fitted(medium, &fit)))
                .collect();
            let bound = fits.iter().flatten().filter(|fit| fit.shaping.is_some());
            proptest::prop_assert!(bound.clone().all(|fit| fit.width.max(fit.height) <= Fit::MAX_SHAPED_SIDE));
            proptest::prop_assert!(platform.fits(0, &settings, &media).iter().all(Option::is_none), "{media:?}");
            let content = crate::check::ContainerContent { text: "", media: &media };
            let issues = crate::check::check(platform, &[content], &settings);
            proptest::prop_assert!(issues.is_empty(), "{} {width}x{height}: {issues:?}", platform.id);
        }
    }
}
