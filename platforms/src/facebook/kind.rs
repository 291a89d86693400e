//! Kinds of posts: which one the media and the setting `media_type` make.
//!
//! The check and the calls choose by the same function, so that nothing is published as another kind than was checked.

use super::Settings;
use crate::{
    Media, MediaKind, PublishRequest, Result,
    graph::{self, MediaType},
};
use domain::Failure;
use std::time::Duration;

/// Play time of a reel, and of a story.
const REEL_DURATION: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(90));
const MAX_STORY: Duration = Duration::from_secs(60);

/// Kind of post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PostKind {
    Feed,
    Video,
    Reel,
    PhotoStory,
    VideoStory,
    Comment,
}

impl PostKind {
    /// Returns the kind from the setting, else from the media; or an issue code and a message.
    pub(super) fn choose(
        media: &[&Media],
        wanted: Option<MediaType>,
    ) -> Result<Self, (&'static str, String)> {
        let count = media.len();
        if media.iter().any(|medium| medium.kind != media[0].kind) {
            let message = "facebook takes media of one kind at a time, but for the cover of a video";
            return Err(("media_mixed", message.to_owned()));
        }
        let video = media.first().filter(|media| media.kind == MediaKind::Video);
        let seconds = video.and_then(|media| media.duration);
        let number = |what: &str| {
            let message = format!("facebook takes one {what}, and there are {count} media");
            Err((if count == 0 { "media_required" } else { "media_too_many" }, message))
        };
        let length = |what: &str, least: Duration, most: Duration| {
            let odd = seconds.filter(|time| !(least..=most).contains(time));
            odd.map(|time| {
                let (least, most, has) = (least.as_secs(), most.as_secs(), time.as_secs_f64());
                let message =
                    format!("facebook takes a {what} of {least} to {most} seconds, and this has {has}");
                ("media_duration", message)
            })
        };
        match (wanted, video) {
            (Some(MediaType::Reels), _) if count != 1 => number("video as a reel"),
            (Some(MediaType::Reels), None) => Err((
                "media_kind_not_supported",
                "facebook takes a video as a reel, and this is none".to_owned(),
            )),
            (Some(MediaType::Reels), Some(_)) => {
                length("reel", REEL_DURATION.0, REEL_DURATION.1).map_or(Ok(Self::Reel), Err)
            }
            (Some(MediaType::Stories), _) if count != 1 => number("medium as a story"),
            (Some(MediaType::Stories), None) => Ok(Self::PhotoStory),
            (Some(MediaType::Stories), Some(_)) => {
                length("story", Duration::from_secs(1), MAX_STORY).map_or(Ok(Self::VideoStory), Err)
            }
            (_, Some(_)) => Ok(Self::Video),
            (_, None) => Ok(Self::Feed),
        }
    }

    pub(super) fn of(post: &PublishRequest, settings: &Settings) -> Result<Self> {
        let chosen = match (&post.reply_to, post.media.as_slice()) {
            (None, media) => match settings.objection(media) {
                Some((_, message)) => Err(("settings_conflict", message)),
                None => Self::choose(&graph::shown(media, settings.cover()), settings.media_type),
            },
            (Some(_), []) => Ok(Self::Comment),
            (Some(_), [one]) if one.kind == MediaKind::Image => Ok(Self::Comment),
            (Some(_), _) => {
                Err(("media_too_many", "facebook takes one image in a comment, and nothing else".to_owned()))
            }
        };
        chosen.map_err(|(_, message)| Failure::rejected(400, message))
    }

    /// Returns the Page's edge that receives a video.
    pub(super) fn edge(self) -> &'static str {
        match self {
            Self::Reel => "video_reels",
            Self::VideoStory => "video_stories",
            _ => "videos",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ADAPTER;
    use super::*;
    use crate::check::{self, ContainerContent};
    use serde_json::json;
    use uuid::Uuid;

    #[test]
    fn unsupported_media_for_a_post_type_fail_the_check() {
        let medium = |kind, seconds| Media {
            id: Uuid::nil(),
            kind,
            mime: if kind == MediaKind::Video { "video/mp4".into() } else { "image/jpeg".into() },
            filename: String::new(),
            size_bytes: 1,
            width: None,
            height: None,
            frames: None,
            duration: Some(Duration::from_secs(seconds)),
            alt_text: None,
            facts: None,
            rendition: None,
        };
        let (video, long) = (medium(MediaKind::Video, 10), medium(MediaKind::Video, 91));
        let image = medium(MediaKind::Image, 0);
        for (media, word, text, expected) in [
            (vec![video.clone()], "REELS", "a", vec![]),
            (vec![long.clone()], "FEED", "a", vec![]),
            (vec![long.clone()], "REELS", "a", vec!["media_duration"]),
            (vec![long], "STORIES", "", vec!["media_duration"]),
            (vec![image.clone()], "REELS", "a", vec!["media_kind_not_supported"]),
            (vec![], "REELS", "a", vec!["media_required"]),
            (vec![image.clone(), image.clone()], "STORIES", "", vec!["media_too_many"]),
            (vec![image.clone()], "STORIES", "a", vec!["text_not_shown"]),
            (vec![image.clone(), image.clone()], "FEED", "a", vec![]),
        ] {
            let content = ContainerContent { text, media: &media };
            let issues = check::check(&ADAPTER, &[content], &json!({ "media_type": word }));
            let codes: Vec<_> = issues.iter().map(|issue| issue.code.as_str()).collect();
            assert_eq!(codes, expected, "{word} {}", media.len());
        }
        let content = ContainerContent { text: "", media: &[image] };
        let settings = json!({ "media_type": "STORIES", "countries": ["AT"] });
        let issues = check::check(&ADAPTER, &[content], &settings);
        assert_eq!(issues.iter().map(|issue| &*issue.code).collect::<Vec<_>>(), ["setting_not_used"]);
    }
}
