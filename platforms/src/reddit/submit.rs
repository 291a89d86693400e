//! The calls that publish: <https://www.reddit.com/dev/api#POST_api_submit>.
//!
//! Galleries and polls have calls of their own, with bodies in JSON:
//! <https://praw.readthedocs.io/en/stable/code_overview/models/subreddit.html>.

use super::{
    API, Poll, Settings, Step,
    content::{PostKind, title_and_text},
    crosspost, given,
    ids::fullname,
    named, unprepared, unreadable,
};
use crate::{Call, Committed, MediaKind, PublishRequest, Result, Session, required};
use serde_json::{Value, json};

/// Duration of a poll, in days.
const POLL_DAYS: u8 = 3;

/// Returns the call that publishes a text, link, image or video.
pub(super) fn single(
    cx: &Session<'_>,
    post: &PublishRequest,
    settings: &Settings,
    kind: &PostKind,
    step: &Step,
) -> Result<Call> {
    let (title, text) = title_and_text(&post.text, &post.media, settings);
    let flair = step.flair.clone().map(|flair| ("flair_id", flair));
    let flair =
        flair.into_iter().chain(given(&settings.flair_text).map(|text| ("flair_text", text.to_owned())));
    if let PostKind::Crosspost(source) = kind {
        let mut form = crosspost::form(settings, settings.subreddit(cx), title, source);
        form.extend(flair);
        return Ok(named(cx, cx.post(format!("{API}/api/submit"))).form(&form));
    }
    let mut form = vec![
        ("api_type", "json".to_owned()),
        ("kind", kind.kind().to_string()),
        ("sr", settings.subreddit(cx)),
        ("title", title),
        ("validate_on_submit", "true".to_owned()),
    ];
    let of = |kinds: &[MediaKind]| {
        let media = post.media.iter().find(|media| kinds.contains(&media.kind))?;
        Some(step.asset(media)?.url.clone())
    };
    match kind {
        PostKind::Link(url) => form.push(("url", url.clone())),
        PostKind::Picture => {
            form.push(("url", of(&[MediaKind::Image, MediaKind::Gif]).ok_or_else(unprepared)?));
        }
        PostKind::Video | PostKind::Videogif => {
            let poster = of(&[MediaKind::Image]).or_else(|| step.poster.clone());
            form.push(("url", of(&[MediaKind::Video]).ok_or_else(unprepared)?));
            form.push(("video_poster_url", poster.ok_or_else(unprepared)?));
        }
        PostKind::Text | PostKind::Crosspost(_) | PostKind::Gallery | PostKind::Poll(_) => {}
    }
    if !text.is_empty() || *kind == PostKind::Text {
        form.push(("text", settings.format(text).into_owned()));
    }
    form.extend(flair);
    form.extend(settings.flags().into_iter().map(|(name, value)| (name, value.to_string())));
    Ok(named(cx, cx.post(format!("{API}/api/submit"))).form(&form))
}

/// Returns the call that publishes several images.
pub(super) fn gallery(
    cx: &Session<'_>,
    post: &PublishRequest,
    settings: &Settings,
    step: &Step,
) -> Result<Call> {
    let items: Result<Vec<Value>> = post
        .media
        .iter()
        .enumerate()
        .map(|(index, media)| {
            let asset = step.asset(media).ok_or_else(unprepared)?;
            let caption = settings.captions.as_ref().and_then(|captions| captions.get(index));
            Ok(json!({ "media_id": asset.id, "caption": caption.map_or("", String::as_str), "outbound_url": "" }))
        })
        .collect();
    let body = document(cx, post, settings, step, json!({ "items": items?, "show_error_list": true }));
    Ok(named(cx, cx.post(format!("{API}/api/submit_gallery_post.json"))).json(&body))
}

/// Returns the call that publishes a poll.
pub(super) fn poll(
    cx: &Session<'_>,
    post: &PublishRequest,
    settings: &Settings,
    poll: &Poll,
    step: &Step,
) -> Call {
    let question = json!({ "options": poll.options, "duration": poll.duration_days.unwrap_or(POLL_DAYS) });
    let body = document(cx, post, settings, step, question);
    named(cx, cx.post(format!("{API}/api/submit_poll_post.json"))).json(&body)
}

/// Returns the body of a submission in JSON, with its content.
fn document(
    cx: &Session<'_>,
    post: &PublishRequest,
    settings: &Settings,
    step: &Step,
    content: Value,
) -> Value {
    let (title, text) = title_and_text(&post.text, &post.media, settings);
    let mut body = content;
    body["api_type"] = json!("json");
    body["sr"] = json!(settings.subreddit(cx));
    body["title"] = json!(title);
    body["validate_on_submit"] = json!(true);
    if !text.is_empty() {
        body["text"] = json!(settings.format(text));
    }
    if let Some(flair) = &step.flair {
        body["flair_id"] = json!(flair);
    }
    if let Some(text) = given(&settings.flair_text) {
        body["flair_text"] = json!(text);
    }
    for (name, value) in settings.flags() {
        body[name] = json!(value);
    }
    body
}

/// Publishes a comment below a post or another comment.
pub(super) async fn comment(cx: &Session<'_>, parent: &str, text: &str) -> Result<Committed> {
    let reply = named(cx, cx.post(format!("{API}/api/comment")))
        .form(&[("api_type", "json"), ("thing_id", parent), ("text", text)])
        .reply()
        .await?;
    let data = &reply.body["json"]["data"]["things"][0]["data"];
    let id = data["name"].as_str().or_else(|| data["id"].as_str());
    let id = id.filter(|id| required::is_id(id)).ok_or_else(unreadable)?;
    Ok(Committed::Live(fullname("t1", id)))
}
