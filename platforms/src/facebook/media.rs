//! Photos and videos: uploads before the publishing call, and the state of a video after it.
//! <https://developers.facebook.com/docs/video-api/guides/publishing>
//!
//! A photo is uploaded unpublished. A video is uploaded in parts, a reel or a story from the byte on that Facebook has
//! not received; its id is known from the first call on, so that its state shows the result of a lost one.

use super::{API, Settings, Step, Ticket, get, kind::PostKind, node, proof, send};
use crate::{
    Call, Media, PublishRequest, Result, Session,
    graph::{self, Fields, Made},
    required, storage,
    upload::{Begun, Processing, Sent, Upload, Uploaded},
    versions,
};
use async_trait::async_trait;
use chrono::TimeDelta;
use domain::Failure;
use reqwest::{
    Body,
    multipart::{Form, Part},
};
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// Host of videos that are uploaded in parts.
const VIDEO_API: &str = concat!("https://graph-video.facebook.com/", versions::graph_api!());
const UPLOADS: &str = concat!("https://rupload.facebook.com/video-upload/", versions::graph_api!());

/// Size of one part of a video, if Facebook does not say which bytes are next.
const CHUNK_BYTES: u64 = 4 << 20;

/// Lifetime of an unpublished upload; Meta keeps it for about a day.
const UPLOAD_TTL: TimeDelta = TimeDelta::hours(20);

/// Returns a call to the Page's edge that receives a video.
pub(super) fn send_video(cx: &Session<'_>, kind: PostKind, fields: &Fields) -> Call {
    let path = format!("{}/{}", cx.account.network_unique_id, kind.edge());
    let api = if kind == PostKind::Video { VIDEO_API } else { API };
    cx.post(format!("{api}/{path}")).query(&proof(cx)).form(fields)
}

/// Returns the fields of a video's publishing call.
pub(super) fn finish_fields(
    kind: PostKind,
    post: &PublishRequest,
    settings: &Settings,
    video: &Ticket,
) -> Fields {
    let mut fields: Fields = vec![("upload_phase", "finish".to_owned())];
    match &video.session {
        Some(session) if kind == PostKind::Video => fields.push(("upload_session_id", session.clone())),
        _ => fields.push(("video_id", video.id.clone())),
    }
    if kind == PostKind::VideoStory {
        return fields;
    }
    if kind == PostKind::Reel {
        fields.push(("video_state", "PUBLISHED".to_owned()));
        graph::set(&mut fields, "place", &settings.place);
    } else {
        fields.push(("published", "true".to_owned()));
    }
    if !post.text.is_empty() {
        fields.push(("description", post.text.clone()));
    }
    graph::set(&mut fields, "title", &settings.title);
    graph::set(&mut fields, "targeting", &settings.targeting());
    if settings.is_ai_generated == Some(true) {
        fields.push(("is_ai_generated", "true".to_owned()));
    }
    fields
}

/// Uploads for a kind of post.
pub(super) struct Uploads {
    pub(super) kind: PostKind,
    /// True when an earlier attempt began to upload.
    pub(super) is_resumed: bool,
}

#[async_trait]
impl Upload for Uploads {
    type Ticket = Ticket;

    async fn begin(&self, cx: &Session<'_>, media: &Media) -> Result<Begun<Ticket>> {
        let (ticket, sent) = match self.kind {
            PostKind::Feed | PostKind::PhotoStory | PostKind::Comment => {
                let id = photo(cx, media).await?;
                (Ticket { id, session: None, end: None }, Sent::Whole(Processing::Done))
            }
            PostKind::Reel | PostKind::Video | PostKind::VideoStory => {
                let mut fields: Fields = vec![("upload_phase", "start".to_owned())];
                if self.kind == PostKind::Video {
                    fields.push(("file_size", media.size_bytes.to_string()));
                }
                let started: Started = send_video(cx, self.kind, &fields).send().await?;
                let end = started.end_offset.as_ref().and_then(number);
                (Ticket { id: started.video_id, session: started.upload_session_id, end }, Sent::Next(0))
            }
        };
        Ok(Begun { ticket, expires_at: Some((cx.now)() + UPLOAD_TTL), sent })
    }

    /// Sends a part, which is identified by its offset.
    async fn send(
        &self,
        cx: &Session<'_>,
        media: &Media,
        upload: &mut Uploaded<Ticket>,
        offset: u64,
    ) -> Result<Sent> {
        let next = match self.kind {
            PostKind::Video => send_part(cx, media, &mut upload.ticket, offset).await?,
            _ => {
                let offset = if self.is_resumed { received(cx, &upload.ticket.id).await? } else { offset };
                send_rest(cx, media, &upload.ticket, offset).await?;
                media.size_bytes
            }
        };
        Ok(if next < media.size_bytes { Sent::Next(next) } else { Sent::Whole(Processing::Done) })
    }
}

/// Uploads a photo that stays invisible until a post is published with it.
async fn photo(cx: &Session<'_>, media: &Media) -> Result<String> {
    let part = Part::stream_with_length(Body::wrap_stream(cx.stream(media)), media.size_bytes);
    let mut form = Form::new().text("published", "false");
    if let Some(alt) = media.alt_text.as_ref().filter(|alt| !alt.is_empty()) {
        form = form.text("alt_text_custom", alt.clone());
    }
    let form = form.part("source", storage::typed(part.file_name(media.filename.clone()), &media.mime)?);
    let path = format!("{API}/{}/photos", cx.account.network_unique_id);
    let made: Made = cx.post(path).query(&proof(cx)).multipart(form).send().await?;
    Ok(made.id)
}

/// Sends a reel or story from `offset` to the end of the file, in one request.
async fn send_rest(cx: &Session<'_>, media: &Media, video: &Ticket, offset: u64) -> Result<()> {
    if offset >= media.size_bytes {
        return Ok(());
    }
    cx.post(format!("{UPLOADS}/{}", video.id))
        .authorized_otherwise()
        .header("authorization", format!("OAuth {}", cx.grant.access_token))
        .header("offset", offset.to_string())
        .header("file_size", media.size_bytes.to_string())
        .upload(
            "application/octet-stream",
            media.size_bytes - offset,
            cx.slice(media, offset..media.size_bytes),
        )
        .send_ok()
        .await
}

/// Returns the number of bytes of a video that Facebook has received.
async fn received(cx: &Session<'_>, id: &str) -> Result<u64> {
    let video: VideoNode = node(cx, id, "status").await?;
    Ok(video.status.uploading_phase.received())
}

/// Sends the part of a video that Facebook asked for. The response contains the next part, and so does
/// the rejection of one that was already received or ends elsewhere.
async fn send_part(cx: &Session<'_>, media: &Media, video: &mut Ticket, offset: u64) -> Result<u64> {
    let asked = video.end.filter(|end| *end > offset);
    let end = asked.unwrap_or(offset + CHUNK_BYTES).min(media.size_bytes);
    let length = end.saturating_sub(offset);
    let part = Part::stream_with_length(Body::wrap_stream(cx.slice(media, offset..end)), length)
        .file_name(media.filename.clone());
    let form = Form::new()
        .text("upload_phase", "transfer")
        .text("upload_session_id", video.session.clone().unwrap_or_default())
        .text("start_offset", offset.to_string())
        .part("video_file_chunk", storage::typed(part, "application/octet-stream")?);
    let path = format!("{VIDEO_API}/{}/videos", cx.account.network_unique_id);
    let call = cx.post(path).query(&proof(cx)).multipart(form).timeout_for_body(length);
    let reply = call.send_raw().await?;
    let place = |name: &str| {
        let places = [format!("/{name}"), format!("/error/error_data/{name}")];
        places.iter().find_map(|place| number(reply.body.pointer(place)?))
    };
    let (next, next_end) = (place("start_offset"), place("end_offset"));
    let refused = reply.into_result(cx.platform).err();
    video.end = next_end.filter(|end| next.is_some_and(|next| *end > next));
    match (next, refused) {
        // Never the same part twice, which could loop without end.
        (Some(next), _)
            if next <= media.size_bytes && (next != offset || (asked.is_none() && video.end.is_some())) =>
        {
            Ok(next)
        }
        (_, Some(failure)) => Err(failure),
        _ => Err(Failure::upstream(502, "Facebook does not say which part is next")),
    }
}

/// Parses a number, or a string that contains one.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// Processing state of a video.
pub(super) enum State {
    /// Uploaded, not published.
    Waiting,
    Processing,
    Published,
    Failed(Failure),
}

/// Returns the state of a video, with a pause if few calls are left.
pub(super) async fn state(cx: &Session<'_>, id: &str) -> Result<(State, Option<Duration>)> {
    let reply = get(cx, id).query(&[("fields", "status,published")]).reply().await?;
    let video: VideoNode = reply.read()?;
    Ok((video.status.state(video.published), graph::throttle(&reply)))
}

/// Sets the cover of a live video and invites its collaborators. A refusal is told to the owner and does not fail
/// the post.
pub(super) async fn complete(
    cx: &Session<'_>,
    post: &PublishRequest,
    settings: &Settings,
    video: &str,
    step: &mut Step,
) -> Result<()> {
    let is_late = || (cx.now)() - post.begun() > graph::PARTS_TIMEOUT;
    if let Some(cover) = graph::cover(&post.media, settings.cover()).filter(|_| !step.is_covered) {
        let set = set_cover(cx, video, cover).await;
        let advice = "; it takes the permissions pages_manage_engagement and pages_read_user_content";
        cx.note_refusal(set, "its own cover", advice, is_late()).await?;
        step.is_covered = true;
        cx.save(step).await?;
    }
    for page in settings.collaborators.iter().flatten() {
        if step.invited.contains(page) {
            continue;
        }
        let invited = send(cx, &format!("{video}/collaborators"), &vec![("target_id", page.clone())]);
        let invited = invited.send_ok().await;
        cx.note_refusal(invited, &format!("the collaborator {page}"), "", is_late()).await?;
        step.invited.push(page.clone());
        cx.save(step).await?;
    }
    Ok(())
}

/// Adds an image to those that Facebook offers for a video, and prefers it to the others.
/// <https://developers.facebook.com/docs/graph-api/reference/video/thumbnails>
async fn set_cover(cx: &Session<'_>, video: &str, image: &Media) -> Result<()> {
    let part = Part::stream_with_length(Body::wrap_stream(cx.stream(image)), image.size_bytes);
    let part = storage::typed(part.file_name(image.filename.clone()), &image.mime)?;
    let form = Form::new().text("is_preferred", "true").part("source", part);
    let path = format!("{API}/{video}/thumbnails");
    cx.post(path).query(&proof(cx)).multipart(form).send_ok().await
}

#[derive(Deserialize)]
struct Started {
    #[serde(deserialize_with = "required::id")]
    video_id: String,
    upload_session_id: Option<String>,
    end_offset: Option<Value>,
}

#[derive(Deserialize)]
struct VideoNode {
    status: Progress,
    #[serde(default)]
    published: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Progress {
    video_status: String,
    uploading_phase: Phase,
    processing_phase: Phase,
    publishing_phase: Phase,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Phase {
    status: String,
    publish_status: String,
    // The documentation and the service spell it differently.
    bytes_transfered: u64,
    bytes_transferred: u64,
    errors: Vec<Fault>,
    error: Option<Fault>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Fault {
    message: String,
}

impl Phase {
    fn received(&self) -> u64 {
        self.bytes_transfered.max(self.bytes_transferred)
    }
}

impl Progress {
    /// Returns the state; `published` is the video's own member, if the response has it. A video that was not
    /// uploaded as a reel may have no phases.
    fn state(self, published: Option<bool>) -> State {
        let phases = [&self.uploading_phase, &self.processing_phase, &self.publishing_phase];
        let is_broken = phases.iter().any(|phase| phase.status == "error" || phase.publish_status == "error");
        if is_broken || ["error", "expired", "upload_failed"].contains(&self.video_status.as_str()) {
            let faults = phases.iter().flat_map(|phase| phase.errors.iter().chain(&phase.error));
            let messages: Vec<&str> =
                faults.map(|fault| fault.message.as_str()).filter(|text| !text.is_empty()).collect();
            let reason = if messages.is_empty() { self.video_status } else { messages.join(" ") };
            return State::Failed(Failure::rejected(
                400,
                format!("Facebook could not process the video: {reason}"),
            ));
        }
        let publishing = &self.publishing_phase;
        let is_ready = self.video_status == "ready" && published != Some(false);
        match (publishing.publish_status.as_str(), publishing.status.as_str()) {
            ("published", "complete" | "completed") => State::Published,
            ("", "" | "complete" | "completed") if is_ready => State::Published,
            ("published" | "scheduled", _) | (_, "in_progress" | "complete" | "completed") => {
                State::Processing
            }
            _ if matches!(self.processing_phase.status.as_str(), "in_progress")
                || self.video_status == "processing" =>
            {
                State::Processing
            }
            _ => State::Waiting,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::ErrorCode;
    use serde_json::json;

    #[test]
    fn the_state_of_a_video_follows_from_its_phases() {
        let state = |status: Value| match serde_json::from_value::<Progress>(status).unwrap().state(None) {
            State::Waiting => "waiting",
            State::Processing => "processing",
            State::Published => "published",
            State::Failed(failure) if failure.code == ErrorCode::Rejected(400) => "failed",
            State::Failed(_) => "broken",
        };
        let alone = |published: Option<bool>| {
            let status: Progress = serde_json::from_value(json!({ "video_status": "ready" })).unwrap();
            matches!(status.state(published), State::Published)
        };
        assert!(alone(Some(true)) && alone(None) && !alone(Some(false)));
        let phase = |status: &str, publish: &str| json!({ "status": status, "publish_status": publish });
        assert_eq!(state(json!({ "video_status": "upload_complete" })), "waiting");
        assert_eq!(
            state(json!({ "video_status": "ready", "publishing_phase": phase("not_started", "draft") })),
            "waiting"
        );
        assert_eq!(state(json!({ "video_status": "processing" })), "processing");
        assert_eq!(
            state(json!({ "video_status": "ready", "publishing_phase": phase("in_progress", "") })),
            "processing"
        );
        for spelling in ["complete", "completed"] {
            for publish in ["published", ""] {
                let status = json!({ "video_status": "ready", "publishing_phase": phase(spelling, publish) });
                assert_eq!(state(status), "published");
            }
        }
        assert_eq!(state(json!({ "video_status": "error" })), "failed");
        assert_eq!(
            state(
                json!({ "processing_phase": { "status": "error", "errors": [{ "code": 1, "message": "m" }] } })
            ),
            "failed"
        );
    }
}
