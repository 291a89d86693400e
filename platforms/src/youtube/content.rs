//! The resource of a video, made from a post: title, thumbnail and its other members.
//! <https://developers.google.com/youtube/v3/docs/videos>

use super::{MAX_TITLE, PrivacyStatus, Settings, given, localizations};
use crate::{Media, MediaKind, PublishRequest, Result, text};
use domain::Failure;
use serde_json::{Map, Value, json};
use std::time::Duration;
use uuid::Uuid;

/// Maximum length of a Short.
const MAX_SHORT: Duration = Duration::from_secs(180);
/// Maximum length of all tags together, in characters.
pub(super) const MAX_TAGS: usize = 500;
/// Default category: people and blogs.
pub(super) const DEFAULT_CATEGORY: &str = "22";

/// Returns the post's video.
pub(super) fn video(post: &PublishRequest) -> Result<&Media> {
    let video = post.media.iter().find(|medium| medium.kind == MediaKind::Video && medium.size_bytes > 0);
    video.ok_or_else(|| Failure::rejected(422, "YouTube needs a video, and the post has none"))
}

/// Returns the image for the thumbnail.
pub(super) fn thumbnail<'a>(media: &'a [Media], settings: &Settings) -> Option<&'a Media> {
    let mut images = media.iter().filter(|medium| medium.kind == MediaKind::Image);
    match given(settings.thumbnail.as_deref()) {
        None => images.next(),
        Some(id) => images.find(|image| Uuid::try_parse(id).is_ok_and(|id| id == image.id)),
    }
}

/// Returns the settings that do not fit the media or each other, which YouTube would refuse or accept with another
/// meaning.
pub(super) fn objections(media: &[Media], settings: &Settings) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let video = media.iter().find(|medium| medium.kind == MediaKind::Video);
    if let Some(video) = video.filter(|_| settings.is_short == Some(true)) {
        let shape = video.width.zip(video.height).filter(|(width, height)| width > height);
        if let Some((width, height)) = shape {
            let message = format!("a Short is square or upright, and the video has {width}x{height}");
            found.push(("isShort", message));
        }
        if let Some(length) = video.duration.filter(|length| *length > MAX_SHORT) {
            let message = format!(
                "a Short plays {} seconds at most, and the video {}",
                MAX_SHORT.as_secs(),
                length.as_secs()
            );
            found.push(("isShort", message));
        }
    }
    if let Some(id) = given(settings.thumbnail.as_deref()).filter(|_| thumbnail(media, settings).is_none()) {
        let message = format!("the thumbnail {id} is none of the images of the post's first container");
        found.push(("thumbnail", message));
    }
    if let Some(tags) = settings.tags.as_ref().filter(|tags| !tags.is_empty()) {
        // YouTube counts quotes around a tag with a space, and the separators.
        let weight = |tag: &str| tag.chars().count() + if tag.contains(' ') { 2 } else { 0 };
        let length: usize = tags.iter().map(|tag| weight(tag)).sum();
        let length = length + tags.len() - 1;
        if length > MAX_TAGS {
            let message = format!("YouTube takes {MAX_TAGS} characters of tags, and there are {length}");
            found.push(("tags", message));
        }
    }
    let is_timed = given(settings.publish_at.as_deref()).is_some();
    if is_timed && settings.privacy_status == Some(PrivacyStatus::Unlisted) {
        let message = "publishAt makes a video public, and privacyStatus is unlisted".to_owned();
        found.push(("publishAt", message));
    }
    found
}

/// Returns the title: the setting, else the text's first line, else the file name.
pub(super) fn title(post: &PublishRequest, settings: &Settings, video: &Media) -> String {
    let title = title_of(&post.text, settings).unwrap_or_else(|| title_of_file(video));
    text::shorten(&title, MAX_TITLE).0.into_owned()
}

/// Returns the title that the file's name gives.
pub(super) fn title_of_file(video: &Media) -> String {
    let stem = video.filename.rsplit_once('.').map_or(video.filename.as_str(), |(stem, _)| stem);
    let title = stem.replace(['<', '>'], "");
    if title.trim().is_empty() { "Video".to_owned() } else { title }
}

/// Returns the title that the setting or the text gives.
pub(super) fn title_of(text: &str, settings: &Settings) -> Option<String> {
    let line = || text.lines().map(str::trim).find(|line| !line.is_empty());
    given(settings.title.as_deref()).or_else(line).map(str::to_owned)
}

/// Returns the video's resource.
pub(super) fn resource(post: &PublishRequest, settings: &Settings, video: &Media) -> Value {
    let mut snippet = Map::new();
    snippet.insert("title".into(), json!(title(post, settings, video)));
    snippet.insert("description".into(), json!(post.text));
    snippet.insert("categoryId".into(), json!(settings.category().as_deref().unwrap_or(DEFAULT_CATEGORY)));
    if let Some(tags) = settings.tags.as_ref().filter(|tags| !tags.is_empty()) {
        snippet.insert("tags".into(), json!(tags));
    }
    let keep = |to: &mut Map<String, Value>, name: &str, value: Option<Value>| {
        to.extend(value.map(|value| (name.to_owned(), value)));
    };
    keep(&mut snippet, "defaultLanguage", given(settings.default_language.as_deref()).map(Value::from));
    keep(
        &mut snippet,
        "defaultAudioLanguage",
        given(settings.default_audio_language.as_deref()).map(Value::from),
    );

    let mut status = Map::new();
    status.insert("privacyStatus".into(), json!(settings.privacy()));
    keep(&mut status, "publishAt", given(settings.publish_at.as_deref()).map(Value::from));
    keep(&mut status, "selfDeclaredMadeForKids", settings.made_for_kids().map(Value::from));
    keep(&mut status, "containsSyntheticMedia", settings.contains_synthetic_media.map(Value::from));
    keep(&mut status, "license", settings.license.map(|license| json!(license)));
    keep(&mut status, "embeddable", settings.embeddable.map(Value::from));
    keep(&mut status, "publicStatsViewable", settings.public_stats_viewable.map(Value::from));
    let mut resource = json!({ "snippet": snippet, "status": status });
    if let Some(is_paid) = settings.paid_promotion {
        resource["paidProductPlacementDetails"] = json!({ "hasPaidProductPlacement": is_paid });
    }
    if !settings.localizations().is_empty() {
        resource["localizations"] = json!(localizations::resource(settings.localizations()));
    }
    if let Some(time) = settings.recorded_at() {
        resource["recordingDetails"] = json!({ "recordingDate": time });
    }
    resource
}
