//! The post that the doctor publishes on each platform.

use bytes::Bytes;
use image::{ImageFormat, Rgb, RgbImage};
use platforms::{Adapter, Content, Media, MediaKind};
use serde_json::{Value, json};
use std::{io::Cursor, time::Duration};
use url::Url;
use uuid::Uuid;

/// Length of the picture's sides, in pixels.
const SIDE: u32 = 1080;

/// The post to publish.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Text.
    pub text: String,
    /// The platform's `config` block: as few readers as the platform allows.
    pub settings: Value,
}

impl Trial {
    /// Returns the post for an account of a platform; members of `settings` replace the doctor's own.
    pub fn new(platform: &Adapter, username: &str, account_type: &str, settings: &Value) -> Self {
        let mut own = match platform.id {
            // A page's posts are public.
            "linkedin" if account_type == "organization" => json!({}),
            "linkedin" => json!({ "visibility": "CONNECTIONS" }),
            "tiktok" => json!({ "privacy_level": "SELF_ONLY" }),
            "youtube" => json!({ "privacyStatus": "private", "notifySubscribers": false }),
            // The account's own profile, which has the rules of no community.
            "reddit" => json!({ "subreddit": format!("u_{username}"), "title": "Fanfare doctor" }),
            _ => json!({}),
        };
        if let (Value::Object(own), Value::Object(given)) = (&mut own, settings) {
            own.extend(given.clone());
        }
        Self { text: "Fanfare doctor: a test post, deleted at once".to_owned(), settings: own }
    }
}

/// Returns the kind of file that the post needs, if the platform takes no text alone.
pub fn medium(platform: &Adapter) -> Option<MediaKind> {
    let kind = match platform.id {
        // It fetches photos from addresses that its owner has verified, and takes a video as it is.
        "tiktok" => MediaKind::Video,
        _ => platform.limits.required_media.unwrap_or(MediaKind::Image),
    };
    (platform.limits.content == Content::Media).then_some(kind)
}

/// A file to publish.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// Properties.
    pub media: Media,
    /// Content.
    pub bytes: Bytes,
    /// Public address of the same content, for platforms that fetch it themselves.
    pub address: Option<Url>,
}

impl Attachment {
    /// Returns a picture that the doctor draws.
    ///
    /// # Errors
    ///
    /// When it can't be encoded.
    pub fn picture(address: Option<Url>) -> anyhow::Result<Self> {
        let picture = RgbImage::from_fn(SIDE, SIDE, |x, y| {
            let shade = |value: u32| u8::try_from(value * 255 / SIDE).unwrap_or(u8::MAX);
            Rgb([shade(x), shade(y), 160])
        });
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, ImageFormat::Jpeg)?;
        let (mime, filename) = ("image/jpeg", "doctor.jpg");
        let bytes = bytes.into_inner().into();
        Ok(Self::of(MediaKind::Image, mime, filename, bytes, Some((SIDE, SIDE)), address))
    }

    /// Returns a video, an MP4 file.
    pub fn video(bytes: Bytes, address: Option<Url>) -> Self {
        Self::of(MediaKind::Video, "video/mp4", "doctor.mp4", bytes, None, address)
    }

    fn of(
        kind: MediaKind,
        mime: &str,
        filename: &str,
        bytes: Bytes,
        sides: Option<(u32, u32)>,
        address: Option<Url>,
    ) -> Self {
        let media = Media {
            id: Uuid::now_v7(),
            kind,
            mime: mime.to_owned(),
            filename: filename.to_owned(),
            size_bytes: bytes.len() as u64,
            width: sides.map(|(width, _)| width),
            height: sides.map(|(_, height)| height),
            frames: None,
            duration: (kind == MediaKind::Video).then_some(Duration::from_secs(5)),
            alt_text: None,
            facts: None,
            rendition: None,
        };
        Self { media, bytes, address }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use platforms::check;

    #[test]
    fn every_platform_has_a_post_that_it_takes() {
        for (platform, account_type) in
            platforms::all().iter().flat_map(|platform| [(platform, "profile"), (platform, "organization")])
        {
            let trial = Trial::new(platform, "ada", account_type, &json!({}));
            let properties = &(platform.settings)()["properties"];
            for setting in trial.settings.as_object().unwrap().keys() {
                assert!(properties[setting].is_object(), "{}: {setting}", platform.id);
            }
            let file = medium(platform).map(|kind| match kind {
                MediaKind::Image => Attachment::picture(None).unwrap(),
                _ => Attachment::video(Bytes::from_static(b"film"), None),
            });
            let media: Vec<_> = file.into_iter().map(|file| file.media).collect();
            let content = check::ContainerContent { text: &trial.text, media: &media };
            let account = check::AccountKind { account_type, scopes: &[] };
            let issues = check::check_for(platform, account, &[content], &trial.settings);
            let errors: Vec<_> =
                issues.iter().filter(|issue| issue.severity == check::Severity::Error).collect();
            assert!(errors.is_empty(), "{}: {errors:?}", platform.id);
        }
    }

    #[test]
    fn given_settings_replace_the_doctors_own() {
        let reddit = platforms::get("reddit").unwrap();
        let trial = Trial::new(reddit, "ada", "profile", &json!({ "subreddit": "test" }));
        assert_eq!(trial.settings, json!({ "subreddit": "test", "title": "Fanfare doctor" }));
        assert_eq!(Trial::new(reddit, "ada", "profile", &json!({})).settings["subreddit"], "u_ada");
    }
}
