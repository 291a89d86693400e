//! The call that begins a post, and what it says about the post:
//! <https://developers.tiktok.com/doc/content-posting-api-reference-direct-post>.
//!
//! For a video it returns the upload's address. For photos, which TikTok fetches, it is the publishing call.

use super::{
    ADAPTER, API, Data, PostMode, PrivacyLevel, Settings, Step,
    creator::creator,
    errors::{UNAUDITED, code, unauthorized},
};
use crate::{
    Media, MediaKind, PublishRequest, Result, Session,
    check::{ContainerContent, Issue, Severity},
    required,
};
use domain::Failure;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Returns the `post_info` of a post, within its creator's options.
pub(super) async fn info(
    cx: &Session<'_>,
    post: &PublishRequest,
    settings: Settings,
    first: &Media,
) -> Result<Value> {
    let creator = creator(cx).await.map_err(unauthorized)?;
    let is_on = |setting: Option<bool>| setting == Some(true);
    let privacy = match settings.privacy_level {
        Some(wanted) => match creator.refuses_level(wanted) {
            None => wanted,
            Some(message) => return Err(Failure::rejected(422, message)),
        },
        None => {
            let widest = PrivacyLevel::ALL.iter().copied().find(|level| creator.takes(*level));
            widest.unwrap_or(PrivacyLevel::Private)
        }
    };
    let mut info = Map::new();
    info.insert("privacy_level".into(), json!(privacy));
    info.insert("disable_comment".into(), json!(is_on(settings.disable_comment) || creator.comment_disabled));
    info.insert("brand_content_toggle".into(), json!(is_on(settings.brand_content_toggle)));
    info.insert("brand_organic_toggle".into(), json!(is_on(settings.brand_organic_toggle)));
    if first.kind == MediaKind::Image {
        info.extend(photo_texts(post, settings.title));
        info.insert("auto_add_music".into(), json!(is_on(settings.auto_add_music)));
        return Ok(Value::Object(info));
    }
    if let Some(message) = creator.refuses_length(first) {
        return Err(Failure::rejected(422, message));
    }
    info.insert("title".into(), json!(post.text));
    info.insert("disable_duet".into(), json!(is_on(settings.disable_duet) || creator.duet_disabled));
    info.insert("disable_stitch".into(), json!(is_on(settings.disable_stitch) || creator.stitch_disabled));
    info.insert("is_aigc".into(), json!(is_on(settings.is_aigc)));
    let cover = settings.video_cover_timestamp_ms;
    info.extend(cover.map(|cover| ("video_cover_timestamp_ms".to_owned(), json!(cover))));
    Ok(Value::Object(info))
}

/// Returns the `post_info` of a post for the inbox: the creator chooses everything else in TikTok's app.
pub(super) fn inbox_info(post: &PublishRequest, settings: Settings, first: &Media) -> Value {
    match first.kind {
        MediaKind::Image => Value::Object(photo_texts(post, settings.title)),
        _ => json!({}),
    }
}

/// Returns the texts of photos.
fn photo_texts(post: &PublishRequest, title: Option<String>) -> Map<String, Value> {
    let title = title.filter(|title| !title.is_empty()).map(|title| ("title".to_owned(), json!(title)));
    title.into_iter().chain([("description".to_owned(), json!(post.text))]).collect()
}

/// Returns the warnings about a post for the inbox: that it waits there, and that TikTok does not pass on its text.
pub(super) fn inbox_warnings(main: &ContainerContent<'_>) -> Vec<Issue> {
    let message = "tiktok sends the post to the inbox of its app, and shows it to nobody until the creator finishes \
                   and publishes it there";
    let (severity, code) = (Severity::Warning, "post_waits_in_inbox");
    let mut found = vec![Issue::of_setting(severity, code, ADAPTER.id, "post_mode", message.to_owned())];
    let is_video = main.media.first().is_none_or(|first| first.kind == MediaKind::Video);
    if is_video && !main.text.trim().is_empty() {
        let message = "tiktok takes no text of a video in its inbox; the creator writes it there".to_owned();
        found.push(Issue::of_main(Severity::Warning, "text_ignored", "content", message));
    }
    found
}

/// Begins a post, whose body `body` makes of its `post_info`.
///
/// An app that TikTok has not audited may post for the creator alone. TikTok says so in its refusal only, so a
/// post whose author chose no privacy level is begun again with that one. A post for the inbox has none.
pub(super) async fn begin(
    cx: &Session<'_>,
    post: &PublishRequest,
    step: &mut Step,
    kind: &str,
    body: impl Fn(&Value) -> Value + Send,
) -> Result<Begun> {
    let path = format!("{API}/post/publish/{kind}/init/");
    let settings: Settings = post.settings()?;
    let is_chosen = settings.privacy_level.is_some() || settings.is_for_inbox();
    let is_private = step.info["privacy_level"] == PrivacyLevel::Private.as_str();
    let reply = cx.post(&path).json(&body(&step.info)).send_raw().await?;
    let is_unaudited = code(&reply) == UNAUDITED;
    if !is_unaudited || is_private || is_chosen {
        let begun: Data<Begun> = reply.into_result(cx.platform).map_err(unauthorized)?.read()?;
        return Ok(begun.data);
    }
    step.info["privacy_level"] = json!(PrivacyLevel::Private);
    step.is_narrowed = true;
    let begun: Data<Begun> = cx.post(&path).json(&body(&step.info)).send().await?;
    Ok(begun.data)
}

/// Posts photos by their URLs and returns the publish id.
pub(super) async fn post_photos(cx: &Session<'_>, post: &PublishRequest, step: &mut Step) -> Result<String> {
    let settings: Settings = post.settings()?;
    let mut photos = Vec::with_capacity(post.media.len());
    for medium in &post.media {
        let address = cx.media.address(medium).await;
        photos.push(address.map_err(|failure| failure.certain())?.to_string());
    }
    let cover = settings.photo_cover_index.filter(|index| (*index as usize) < photos.len());
    let source = json!({
        "source": "PULL_FROM_URL",
        "photo_images": photos,
        "photo_cover_index": cover.unwrap_or(0),
    });
    let begun = begin(cx, post, step, "content", |info| {
        json!({
            "media_type": "PHOTO",
            "post_mode": settings.post_mode.unwrap_or(PostMode::Direct),
            "post_info": info,
            "source_info": source,
            "is_aigc": settings.is_aigc == Some(true),
        })
    });
    Ok(begun.await?.publish_id)
}

#[derive(Deserialize)]
pub(super) struct Begun {
    #[serde(deserialize_with = "required::id")]
    pub(super) publish_id: String,
    pub(super) upload_url: Option<String>,
}
