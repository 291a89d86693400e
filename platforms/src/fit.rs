//! Fitting of pictures: which rendition a platform takes of a picture that it would refuse.
//!
//! A picture that is too large or of a type that the platform does not take is scaled and converted by the worker;
//! an animation becomes a still image where the platform takes none. Pictures are neither cropped nor enlarged, and
//! videos are left as they are.

use crate::{Adapter, Media, MediaKind, MediaLimit};
use domain::Fit;
use serde_json::Value;

impl Adapter {
    /// Returns what a picture of the container at `position` of a post with these settings has to become; `None` if it
    /// is published as it is, or nothing that can be done makes the platform take it.
    pub fn fit(&self, position: usize, settings: &Value, medium: &Media) -> Option<Fit> {
        fit(self.media_limits("", position, settings), medium)
    }
}

fn fit(limits: &[MediaLimit], medium: &Media) -> Option<Fit> {
    let (width, height) = (medium.width?, medium.height?);
    let is_readable = matches!(medium.kind, MediaKind::Image | MediaKind::Gif)
        && Fit::ORIGINALS.contains(&medium.mime.as_str())
        && (1..=Fit::MAX_PIXELS).contains(&(u64::from(width) * u64::from(height)));
    if !is_readable {
        return None;
    }
    let of = |kind| limits.iter().find(|limit| limit.kind == kind);
    let limit = of(medium.kind).or_else(|| of(MediaKind::Image))?;
    let has_too_many_frames = medium.frame_pixels().is_some_and(|pixels| pixels > Fit::MAX_FRAME_PIXELS)
        || medium.frames.zip(limit.max_frames).is_some_and(|(frames, max)| frames > max);
    if limit.kind == MediaKind::Gif && has_too_many_frames {
        return None;
    }
    let scale = scale(limit, width, height);
    let fits = limit.kind == medium.kind
        && limit.mimes.contains(&medium.mime.as_str())
        && medium.size_bytes <= limit.max_bytes
        && scale >= 1.0;
    if fits || !limit.mimes.contains(&mime(limit.kind)) {
        return None;
    }
    let scaled = |side: u32| ((f64::from(side) * scale.min(1.0)) as u32).max(1);
    Some(Fit {
        kind: limit.kind,
        width: scaled(width),
        height: scaled(height),
        max_bytes: limit.max_bytes,
        keeps_transparency: limit.mimes.contains(&"image/png"),
    })
}

/// Returns the factor at which a picture has the largest size that is accepted.
fn scale(limit: &MediaLimit, width: u32, height: u32) -> f64 {
    let (long, short) = (width.max(height), width.min(height));
    let sides =
        limit.pixels.as_ref().map(|(longer, shorter)| [(*longer.end(), long), (*shorter.end(), short)]);
    let bounds = sides.into_iter().flatten().chain(limit.max_width.map(|max| (max, width)));
    bounds.map(|(max, side)| f64::from(max) / f64::from(side)).fold(f64::INFINITY, f64::min)
}

/// Returns the content type of renditions without transparency.
fn mime(kind: MediaKind) -> &'static str {
    if kind == MediaKind::Gif { "image/gif" } else { "image/jpeg" }
}

/// Returns a medium as its rendition will be, as far as that is known before it is made.
pub(crate) fn fitted(medium: &Media, fit: &Fit) -> Media {
    medium.fitted(fit, mime(fit.kind), medium.size_bytes.min(fit.max_bytes), fit.width, fit.height)
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
            rendition: None,
        }
    }

    fn plan(platform: &str, medium: &Media) -> Option<(MediaKind, u32, u32, u64)> {
        let fit = crate::get(platform).unwrap().fit(0, &Value::Null, medium)?;
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
            // A picture that can't be read, and a video.
            ("x", picture("image/heif", 4000, 3000, 6 << 20), None),
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
        let fit = |position, settings| Some(bluesky.fit(position, settings, &medium)?.max_bytes);
        assert_eq!(fit(0, &card), Some(1_000_000));
        assert_eq!((fit(1, &card), fit(0, &json!({}))), (None, None));
        let small = picture("image/png", 1000, 500, 1_000_000);
        assert_eq!(bluesky.fit(0, &card, &small), None);
    }

    #[test]
    fn every_fitted_picture_is_within_the_limits_of_its_platform() {
        for platform in crate::all() {
            for medium in [
                picture("image/png", 9000, 9000, 45 << 20),
                picture("image/webp", 3000, 2000, 30 << 20),
                picture("image/gif", 3000, 3000, 290 << 20),
            ] {
                let Some(fit) = platform.fit(0, &Value::Null, &medium) else { continue };
                let fitted = fitted(&medium, &fit);
                assert_eq!(platform.fit(0, &Value::Null, &fitted), None, "{} {fitted:?}", platform.id);
            }
        }
    }
}
