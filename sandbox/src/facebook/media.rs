//! Photos, videos and reels:
//! <https://developers.facebook.com/docs/graph-api/reference/page/photos>,
//! <https://developers.facebook.com/docs/graph-api/reference/video/thumbnails>,
//! <https://developers.facebook.com/docs/video-api/guides/publishing> and
//! <https://developers.facebook.com/docs/video-api/guides/reels-publishing>.
//!
//! A video is given by address, in one request, in chunks with an offset, or through an upload host. It is
//! processed after publishing, for a time that depends on the clock only.

use super::{
    Account, DAY, Facebook, ID, Outcome, RateLimit, Request, Response, Transaction, account, graph,
    post::{Kind, Post, Visibility, add, audience},
};
use crate::exchange::Cause::{Content, Protocol, State};
use crate::{
    fake_metrics::figure,
    files::{MAX_KEPT_BYTES, Upload},
    graph::{error, invalid, missing, param},
    simulator::{MediaView, Simulator},
    store::Record,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const REELS: RateLimit = RateLimit::new("facebook.reels", 30, DAY);
const INVITATIONS: RateLimit = RateLimit::new("facebook.invitations", 10, DAY);

const PHOTO_BYTES: u64 = 10 << 20;
const FORMATS: [&str; 5] = ["image/jpeg", "image/png", "image/bmp", "image/gif", "image/tiff"];

/// Size of each chunk but the last; any other is refused.
const CHUNK_BYTES: u64 = 5 << 20;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Photo {
    pub(super) id: String,
    pub(super) page: String,
    /// Alternative text.
    pub(super) alt: String,
    /// True once a post uses it.
    pub(super) is_published: bool,
    file: Upload,
    created_at: DateTime<Utc>,
}

impl Record for Photo {
    const TABLE: &'static str = "facebook.photo";

    fn key(&self) -> String {
        self.id.clone()
    }
}

impl Photo {
    /// Returns the address of its bytes.
    pub(super) fn source(&self) -> String {
        format!("https://media.facebook.sandbox/{}", self.file.id)
    }

    /// Its public address.
    pub(super) fn address(&self) -> String {
        format!("https://www.facebook.com/photo.php?fbid={}", self.id)
    }

    /// Returns it as the pages show it.
    pub(super) fn media_view(&self) -> MediaView {
        MediaView {
            files: vec![self.file.id.clone()],
            mime: self.file.mime.clone().unwrap_or_default(),
            alt: self.alt.clone(),
        }
    }
}

/// A video, a reel or a video story, complete or being uploaded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Video {
    id: String,
    page: String,
    /// `videos`, `video_reels` or `video_stories`.
    edge: String,
    /// Session of a chunked upload.
    session: Option<String>,
    size_bytes: Option<u64>,
    parts: Vec<Upload>,
    title: String,
    description: String,
    created_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
    post: Option<String>,
    /// Images that were added for its cover.
    #[serde(default)]
    thumbnails: Vec<Thumbnail>,
    /// Ids of the Pages that were invited to publish it as well.
    #[serde(default)]
    collaborators: Vec<String>,
}

/// An image for the cover of a video.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Thumbnail {
    id: String,
    file: Upload,
    is_preferred: bool,
}

impl Record for Video {
    const TABLE: &'static str = "facebook.film";

    fn key(&self) -> String {
        self.id.clone()
    }
}

impl Video {
    fn received(&self) -> u64 {
        self.parts.iter().map(|part| part.size_bytes).sum()
    }

    fn is_whole(&self) -> bool {
        self.size_bytes.is_some_and(|size| size == self.received())
    }

    fn says(&self, word: &str) -> bool {
        let names = self.parts.iter().filter_map(|part| part.name.as_deref());
        names.chain([self.title.as_str(), self.description.as_str()]).any(|text| text.contains(word))
    }

    /// Returns whether processing it will fail.
    fn is_bad(&self) -> bool {
        self.says("sandbox-failed") || self.is_other()
    }

    /// Returns whether its bytes are no video.
    fn is_other(&self) -> bool {
        let mime = self.parts.first().and_then(|part| part.mime.as_deref());
        !mime.is_some_and(|mime| mime.starts_with("video/"))
    }

    fn is_processed(&self, tx: &Transaction) -> bool {
        let needed = i64::try_from(tx.settings.processing_ms).unwrap_or(i64::MAX);
        !self.says("sandbox-stuck")
            && self.finished_at.is_some_and(|at| (tx.now - at).num_milliseconds() >= needed)
    }

    fn status(&self, tx: &Transaction) -> Value {
        let phase = |status: &str| json!({ "status": status });
        let (word, uploading, processing, publishing) = match self.finished_at {
            None if !self.is_whole() => {
                ("uploading", "in_progress", phase("not_started"), phase("not_started"))
            }
            None => ("upload_complete", "complete", phase("not_started"), phase("not_started")),
            Some(_) if !self.is_processed(tx) => {
                ("processing", "complete", phase("in_progress"), phase("not_started"))
            }
            Some(_) if self.is_bad() => {
                let error = json!({ "code": 1_363_047, "message": "The video could not be processed." });
                ("error", "complete", json!({ "status": "error", "errors": [error] }), phase("not_started"))
            }
            Some(at) => (
                "ready",
                "complete",
                phase("complete"),
                json!({ "status": "complete", "publish_status": "published", "publish_time": at.timestamp() }),
            ),
        };
        // Only reels and stories have phases.
        if self.edge == "videos" {
            return json!({ "video_status": word });
        }
        json!({
            "video_status": word,
            "uploading_phase": {
                "status": uploading,
                "bytes_transfered": self.received(),
                "source_file_size": self.size_bytes,
            },
            "processing_phase": processing,
            "publishing_phase": publishing,
        })
    }

    /// Returns it as the pages show it.
    pub(super) fn media_view(&self) -> MediaView {
        let is_kept = self.received() <= MAX_KEPT_BYTES;
        MediaView {
            files: self.parts.iter().filter(|_| is_kept).map(|part| part.id.clone()).collect(),
            mime: "video/mp4".into(),
            alt: self.title.clone(),
        }
    }

    /// Returns its cover as the pages show it.
    pub(super) fn cover_view(&self) -> Option<MediaView> {
        let file = &self.thumbnails.iter().find(|thumbnail| thumbnail.is_preferred)?.file;
        let mime = file.mime.clone().unwrap_or_default();
        Some(MediaView { files: vec![file.id.clone()], mime, alt: "Cover".into() })
    }

    /// Returns a note for each Page that was invited.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        self.collaborators.iter().map(|page| format!("Invited: {page}"))
    }

    fn node(&self, tx: &Transaction) -> Value {
        let is_out = self.finished_at.is_some() && self.is_processed(tx) && !self.is_bad();
        let address = match self.edge.as_str() {
            "videos" => format!("/{}/videos/{}/", self.page, self.id),
            _ => format!("/reel/{}/", self.id),
        };
        json!({
            "id": self.id,
            "title": (!self.title.is_empty()).then_some(&self.title),
            "description": (!self.description.is_empty()).then_some(&self.description),
            "created_time": graph::time(self.created_at),
            "updated_time": graph::time(self.created_at),
            "permalink_url": is_out.then_some(address),
            "post_id": self.post.as_ref().map(|post| post.rsplit('_').next().unwrap_or_default()),
            "published": is_out,
            "status": self.status(tx),
            "length": 5.0,
            "source": null,
            "from": { "id": self.page },
            "views": 0,
            "comments": { "data": [], "summary": { "total_count": 0 } },
        })
    }
}

/// Returns whether a post's video, if any, has been processed.
pub(super) fn is_out(tx: &Transaction, video: Option<&str>) -> bool {
    let video = video.and_then(|id| tx.store.get::<Video>(id));
    video.is_none_or(|video| video.is_processed(tx))
}

/// Marks photos as published.
pub(super) fn mark_published(tx: &mut Transaction, photos: &[String]) {
    for photo in photos.iter().filter_map(|id| tx.store.get::<Photo>(id)).collect::<Vec<_>>() {
        tx.store.put(&Photo { is_published: true, ..photo });
    }
}

/// Deletes a photo or a video and returns whether there was one.
pub(super) fn discard(tx: &mut Transaction, me: &Account, id: &str) -> bool {
    if tx.store.get::<Photo>(id).is_some_and(|photo| photo.page == me.id) {
        tx.store.remove::<Photo>(id);
        return true;
    }
    let is_theirs = tx.store.get::<Video>(id).is_some_and(|video| video.page == me.id);
    if is_theirs {
        tx.store.remove::<Video>(id);
    }
    is_theirs
}

/// Returns a photo or a video as a node, with its type.
pub(super) fn node(tx: &Transaction, me: &Account, id: &str) -> Option<(Value, &'static str)> {
    if let Some(video) = tx.store.get::<Video>(id).filter(|video| video.page == me.id) {
        return Some((video.node(tx), "Video"));
    }
    let photo = tx.store.get::<Photo>(id).filter(|photo| photo.page == me.id)?;
    let (width, height) = photo.file.pixels.unwrap_or_default();
    let node = json!({
        "id": photo.id,
        "alt_text": (!photo.alt.is_empty()).then_some(&photo.alt),
        "alt_text_custom": (!photo.alt.is_empty()).then_some(&photo.alt),
        "created_time": graph::time(photo.created_at),
        "link": photo.address(),
        "images": [{ "source": photo.source(), "width": width, "height": height }],
        "width": width,
        "height": height,
        "picture": photo.source(),
        "name": null,
        "page_story_id": null,
    });
    Some((node, "Photo"))
}

/// Returns whether the processing of this video has failed because it is none.
pub(super) fn is_of_a_wrong_type(tx: &Transaction, id: &str) -> bool {
    tx.store.get::<Video>(id).is_some_and(|video| video.is_processed(tx) && video.is_other())
}

/// `POST /{page}/photos`.
pub(super) fn photo(tx: &mut Transaction, request: &Request, me: &Account) -> Outcome {
    let file = match (&request.upload, param(request, "url")) {
        (Some(file), _) => file,
        (None, Some(url)) => request.fetched(&url).ok_or_else(|| {
            error(
                State,
                400,
                324,
                2_069_019,
                "Missing or invalid image file: it could not be fetched from this address.",
            )
        })?,
        (None, None) => return Err(error(Protocol, 400, 324, 0, "(#324) Requires upload file")),
    };
    let is_image = file.mime.as_deref().is_some_and(|mime| FORMATS.contains(&mime));
    if file.size_bytes > PHOTO_BYTES || !is_image {
        return Err(error(
            Content(if is_image { "photo_too_large" } else { "photo_type" }),
            400,
            100,
            1_366_046,
            "Your photos couldn't be uploaded. Photos should be smaller than 10 MB and saved as JPG, PNG, GIF, TIFF or BMP files.",
        ));
    }
    let message = param(request, "message").or_else(|| param(request, "caption")).unwrap_or_default();
    let is_published = !matches!(param(request, "published").as_deref(), Some("false" | "0"));
    let mut fault = None;
    if is_published {
        fault = Facebook.trigger_fault(tx, request, &me.username, &message)?;
    }
    let photo = Photo {
        id: graph::next_id(tx),
        page: me.id.clone(),
        alt: param(request, "alt_text_custom").unwrap_or_default(),
        is_published,
        file: file.clone(),
        created_at: tx.now,
    };
    tx.store.put(&photo);
    if !is_published || graph::is_true(request, "no_story") {
        return Ok(Response::json(200, &json!({ "id": photo.id })));
    }
    let audience = audience(request)?;
    let post = publish(tx, me, Kind::Feed, message, vec![photo.id.clone()], None, audience);
    let body = json!({ "id": photo.id, "post_id": post });
    Ok(Response::json(200, &body).with_post(post).with_fault(fault))
}

fn publish(
    tx: &mut Transaction,
    me: &Account,
    kind: Kind,
    message: String,
    photos: Vec<String>,
    video: Option<&Video>,
    audience: Option<String>,
) -> String {
    let number = graph::next_id(tx);
    let post = Post {
        id: if kind == Kind::Story { number } else { format!("{}_{number}", me.id) },
        page: me.id.clone(),
        kind,
        message,
        link: None,
        cards: Vec::new(),
        photos,
        video: video.map(|video| video.id.clone()),
        notes: video
            .filter(|video| !video.title.is_empty())
            .map(|video| format!("Title: {}", video.title))
            .into_iter()
            .chain(audience)
            .collect(),
        created_at: tx.now,
        visibility: Visibility::Public,
    };
    add(tx, &post);
    post.id
}

fn begin(tx: &mut Transaction, me: &Account, edge: &str, size: Option<u64>) -> Video {
    let video = Video {
        id: graph::next_id(tx),
        page: me.id.clone(),
        edge: edge.into(),
        session: None,
        size_bytes: size,
        parts: Vec::new(),
        title: String::new(),
        description: String::new(),
        created_at: tx.now,
        finished_at: None,
        post: None,
        thumbnails: Vec::new(),
        collaborators: Vec::new(),
    };
    tx.store.put(&video);
    video
}

/// `POST /{page}/videos`: by address, in one request, or in pieces.
pub(super) fn video(tx: &mut Transaction, request: &Request, me: &Account) -> Outcome {
    let get = |name: &str| param(request, name).filter(|text| !text.is_empty());
    let session = || {
        let id = get("upload_session_id")
            .ok_or_else(|| invalid(Protocol, "The parameter upload_session_id is required"))?;
        let found: Option<Video> = tx.store.linked("facebook.session", &id).next();
        found.filter(|video| video.page == me.id).ok_or_else(|| missing("POST", &id))
    };
    match get("upload_phase").as_deref() {
        Some("start") => {
            let size = get("file_size").and_then(|size| size.parse().ok());
            let size: u64 = size.ok_or_else(|| invalid(Protocol, "The parameter file_size is required"))?;
            let mut video = begin(tx, me, "videos", Some(size));
            let session = graph::next_id(tx);
            tx.store.link("facebook.session", &session, &video.id);
            video.session = Some(session.clone());
            tx.store.put(&video);
            Ok(Response::json(
                200,
                &json!({
                    "upload_session_id": session, "video_id": video.id,
                    "start_offset": "0", "end_offset": size.min(CHUNK_BYTES).to_string(),
                }),
            ))
        }
        Some("transfer") => {
            let mut video = session()?;
            let size = video.size_bytes.unwrap_or(0);
            let end = |start: u64| (start + CHUNK_BYTES).min(size);
            let wanted = |video: &Video| {
                let start = video.received();
                json!({ "start_offset": start.to_string(), "end_offset": end(start).to_string() })
            };
            let start = get("start_offset").and_then(|start| start.parse::<u64>().ok());
            let piece = request
                .upload
                .clone()
                .ok_or_else(|| invalid(Protocol, "The parameter video_file_chunk is required"))?;
            let is_wanted = start == Some(video.received())
                && video.received() + piece.size_bytes == end(video.received());
            if !is_wanted {
                let mut refusal: Value = json!({ "message": "There was a problem uploading your video file. Please try again.", "type": "OAuthException", "code": 6001, "error_subcode": 1_363_037, "is_transient": true });
                refusal["error_data"] = wanted(&video);
                return Err(Response::json(400, &json!({ "error": refusal })).because(Protocol));
            }
            video.parts.push(piece);
            tx.store.put(&video);
            Ok(Response::json(200, &wanted(&video)))
        }
        Some("finish") => {
            let video = session()?;
            finish(tx, request, me, video)
        }
        Some("cancel") => {
            let video = session()?;
            tx.store.remove::<Video>(&video.id);
            Ok(Response::json(200, &json!({ "success": true })))
        }
        Some(other) => Err(invalid(
            Protocol,
            &format!("Param upload_phase must be one of {{start, transfer, finish, cancel}} - got {other}"),
        )),
        None => {
            let file = match (&request.upload, get("file_url")) {
                (Some(file), _) => file.clone(),
                (None, Some(url)) => request.fetched(&url).cloned().ok_or_else(|| {
                    error(State, 400, 389, 0, "(#389) Unable to fetch video file from URL.")
                })?,
                (None, None) => return Err(error(Protocol, 400, 100, 0, "(#100) No video file was given")),
            };
            let mut video = begin(tx, me, "videos", Some(file.size_bytes));
            video.parts.push(file);
            let id = video.id.clone();
            let response = finish(tx, request, me, video)?;
            // One-request uploads respond with the id alone.
            Ok(Response { body: json!({ "id": id }).to_string().into(), ..response })
        }
    }
}

/// `POST /{page}/video_reels` and `/video_stories`: begins an upload, and publishes it.
pub(super) fn reel(tx: &mut Transaction, request: &Request, me: &Account, edge: &str) -> Outcome {
    match param(request, "upload_phase").as_deref() {
        Some("start") => {
            let video = begin(tx, me, edge, None);
            let url = format!("https://rupload.facebook.com/video-upload/v26.0/{}", video.id);
            Ok(Response::json(200, &json!({ "video_id": video.id, "upload_url": url })))
        }
        Some("finish") => {
            let id = param(request, "video_id")
                .ok_or_else(|| invalid(Protocol, "The parameter video_id is required"))?;
            let video = tx.store.get::<Video>(&id).filter(|video| video.page == me.id && video.edge == edge);
            let video = video.ok_or_else(|| missing("POST", &id))?;
            if edge == "video_reels" {
                match param(request, "video_state").as_deref() {
                    Some("PUBLISHED") => {}
                    Some("DRAFT" | "SCHEDULED") => {
                        return Ok(Response::json(200, &json!({ "success": true })));
                    }
                    _ => {
                        return Err(invalid(
                            Protocol,
                            "Param video_state must be one of {PUBLISHED, DRAFT, SCHEDULED}",
                        ));
                    }
                }
                if tx.spend(REELS, &me.id, 0).is_ok_and(|status| status.remaining == 0) {
                    return Err(graph::throttled("(#32) Page request limit reached", super::KIND, &me.id));
                }
            }
            finish(tx, request, me, video)
        }
        _ => Err(invalid(Protocol, "Param upload_phase must be one of {start, finish}")),
    }
}

/// Publishes an uploaded video. One that can't be processed never becomes a post.
fn finish(tx: &mut Transaction, request: &Request, me: &Account, mut video: Video) -> Outcome {
    if !video.is_whole() {
        return Err(error(Protocol, 400, 6000, 1_363_030, "The video was not uploaded completely."));
    }
    if video.finished_at.is_some() {
        return Err(invalid(State, "The video was published already"));
    }
    let is_story = video.edge == "video_stories";
    let audience = audience(request)?;
    if !is_story {
        video.title = param(request, "title").unwrap_or_default();
        video.description = param(request, "description").unwrap_or_default();
    }
    let fault = Facebook.trigger_fault(tx, request, &me.username, &video.description)?;
    if video.edge == "video_reels" {
        let _ = tx.spend(REELS, &me.id, 1);
    }
    video.finished_at = Some(tx.now);
    let mut body = json!({ "success": true });
    let mut response = Response::json(200, &body);
    if !video.is_bad() {
        let kind = if is_story { Kind::Story } else { Kind::Feed };
        let post = publish(tx, me, kind, video.description.clone(), Vec::new(), Some(&video), audience);
        if is_story {
            body["post_id"] = json!(post);
            response = Response::json(200, &body);
        }
        video.post = Some(post.clone());
        // A video's post is known by the video's id.
        let id = if is_story { post } else { video.id.clone() };
        response = response.with_post(id).with_fault(fault);
    }
    tx.store.put(&video);
    Ok(response)
}

/// Receives bytes from an offset on, or an address to fetch them from.
pub(super) fn receive(tx: &mut Transaction, request: &Request) -> Outcome {
    let refuse = |kind: &str, message: &str, retriable: bool| {
        let body = json!({ "debug_info": { "retriable": retriable, "type": kind, "message": message } });
        Response::json(400, &body).because(Protocol)
    };
    let unauthorized = || refuse("ProcessingFailedError", "unauthorized user request", false);
    let segments = request.segments();
    let id = segments.last().copied().unwrap_or_default();
    if segments.first() != Some(&"video-upload") {
        return Err(refuse("ProcessingFailedError", "unknown upload", false));
    }
    let token = graph::admit(tx, ID, request, &["pages_manage_posts"]).map_err(|_| unauthorized())?;
    let video = tx.store.get::<Video>(id).filter(|video| token.page.as_ref() == Some(&video.page));
    let mut video = video.ok_or_else(unauthorized)?;
    let part = match request.header("file_url") {
        Some(url) => {
            let file = request.fetched(url).cloned();
            let file =
                file.ok_or_else(|| refuse("ProcessingFailedError", "the file could not be fetched", true))?;
            video.size_bytes = Some(file.size_bytes);
            file
        }
        None => {
            let number = |name: &str| request.header(name).and_then(|text| text.parse::<u64>().ok());
            let (Some(offset), Some(size)) = (number("offset"), number("file_size")) else {
                return Err(refuse(
                    "ProcessingFailedError",
                    "the headers offset and file_size are required",
                    false,
                ));
            };
            if offset != video.received() {
                return Err(refuse(
                    "OffsetInvalidError",
                    &format!("the offset is {}", video.received()),
                    true,
                ));
            }
            video.size_bytes = Some(size);
            let part = request.upload.clone().ok_or_else(unauthorized)?;
            if offset + part.size_bytes > size {
                return Err(refuse("PartialRequestError", "more bytes than file_size says", false));
            }
            part
        }
    };
    video.parts.push(part);
    tx.store.put(&video);
    Ok(Response::json(200, &json!({ "success": true })))
}

/// `GET /{page}/videos` and `/video_reels`, newest first.
pub(super) fn list(tx: &Transaction, request: &Request, me: &Account, edge: &str) -> Outcome {
    let videos = tx.store.with_prefix::<Video>("").filter(|video| {
        video.page == me.id
            && video.post.is_some()
            && video.edge != "video_stories"
            && (edge == "videos" || video.edge == edge)
    });
    let mut videos: Vec<Video> = videos.collect();
    videos.reverse();
    let fields = graph::fields(request);
    let names = ["description", "updated_time", "id"];
    graph::paged(request, videos, |one| &one.id, |one| graph::select(&one.node(tx), &fields, "Video", &names))
}

/// Returns a video of the Page that is in a post or a story.
fn posted(tx: &Transaction, method: &str, me: &Account, id: &str) -> Result<Video, Response> {
    let video = tx.store.get::<Video>(id).filter(|video| video.page == me.id && video.post.is_some());
    video.ok_or_else(|| missing(method, id))
}

/// `GET /{video}/thumbnails`.
pub(super) fn thumbnails(tx: &Transaction, request: &Request, me: &Account, id: &str) -> Outcome {
    let video = posted(tx, "GET", me, id)?;
    let fields = graph::fields(request);
    let names = ["id", "height", "scale", "uri", "width", "is_preferred"];
    let node = |one: &Thumbnail| {
        let (width, height) = one.file.pixels.unwrap_or_default();
        let uri = format!("https://media.facebook.sandbox/{}", one.file.id);
        json!({
            "id": one.id, "height": height, "scale": 1, "uri": uri, "width": width,
            "is_preferred": one.is_preferred,
        })
    };
    let select = |one: &Thumbnail| graph::select(&node(one), &fields, "VideoThumbnail", &names);
    graph::paged(request, video.thumbnails, |one| &one.id, select)
}

/// `POST /{video}/thumbnails`: adds an image, which becomes the cover if it is preferred.
pub(super) fn add_thumbnail(tx: &mut Transaction, request: &Request, me: &Account, id: &str) -> Outcome {
    let mut video = posted(tx, "POST", me, id)?;
    let file = request.upload.clone().ok_or_else(|| invalid(Protocol, "The parameter source is required"))?;
    let is_image = file.mime.as_deref().is_some_and(|mime| FORMATS.contains(&mime));
    if file.size_bytes > PHOTO_BYTES || !is_image {
        return Err(invalid(Content("cover"), "Param source must be an image of at most 10 MB"));
    }
    let is_preferred = graph::is_true(request, "is_preferred");
    if is_preferred {
        video.thumbnails.iter_mut().for_each(|thumbnail| thumbnail.is_preferred = false);
    }
    video.thumbnails.push(Thumbnail { id: graph::next_id(tx), file, is_preferred });
    tx.store.put(&video);
    Ok(Response::json(200, &json!({ "success": true })))
}

/// Returns the address at which an invited Page accepts.
fn invitation(video: &Video) -> String {
    format!("https://www.facebook.com/reel/{}/", video.id)
}

/// `GET /{video}/collaborators`.
pub(super) fn collaborators(tx: &Transaction, _: &Request, me: &Account, id: &str) -> Outcome {
    let video = posted(tx, "GET", me, id)?;
    let pages = video.collaborators.iter().filter_map(|page| account::by_id(tx.store, ID, page));
    let node = |page: Account| {
        let link = invitation(&video);
        json!({ "id": video.id, "name": page.display_name(), "invite_status": "Pending", "invitation_link": link })
    };
    Ok(Response::json(200, &json!({ "data": pages.map(node).collect::<Vec<_>>() })))
}

/// `POST /{video}/collaborators`: invites another Page to publish a reel as well.
pub(super) fn invite(tx: &mut Transaction, request: &Request, me: &Account, id: &str) -> Outcome {
    let mut video = posted(tx, "POST", me, id)?;
    let target = param(request, "target_id").filter(|target| !target.is_empty());
    let target = target.ok_or_else(|| invalid(Protocol, "The parameter target_id is required"))?;
    if video.edge != "video_reels" {
        return Err(invalid(Content("collaborators_of_a_video"), "Only a reel takes collaborators"));
    }
    if target == me.id || account::by_id(tx.store, ID, &target).is_none() {
        return Err(invalid(
            State,
            &format!("Param target_id must be the ID of another Page - got {target}"),
        ));
    }
    if !video.collaborators.contains(&target) {
        tx.spend(INVITATIONS, &me.id, 1)
            .map_err(|_| graph::throttled("(#32) Page request limit reached", super::KIND, &me.id))?;
        video.collaborators.push(target.clone());
        tx.store.put(&video);
    }
    let body = json!({
        "success": true, "collaborator_id": target, "invitation_link": invitation(&video),
    });
    Ok(Response::json(200, &body))
}

/// `GET /{video}/video_insights`.
pub(super) fn insights(tx: &Transaction, request: &Request, me: &Account, id: &str) -> Outcome {
    let video = tx.store.get::<Video>(id).filter(|video| video.page == me.id);
    let video = video.ok_or_else(|| missing("GET", id))?;
    let names = [
        "blue_reels_play_count",
        "fb_reels_total_plays",
        "post_video_avg_time_watched",
        "post_video_view_time",
        "post_video_likes_by_reaction_type",
        "post_video_social_actions",
        "total_video_views",
    ];
    let age: TimeDelta = tx.now - video.created_at;
    let count = |name: &str| {
        let views = figure(id, "views", age, 9_000);
        match name {
            "blue_reels_play_count" | "fb_reels_total_plays" | "total_video_views" => Some(json!(views)),
            "post_video_likes_by_reaction_type" => {
                Some(json!({ "REACTION_LIKE": figure(id, "likes", age, 300) }))
            }
            "post_video_social_actions" => Some(
                json!({ "COMMENT": figure(id, "comments", age, 20), "SHARE": figure(id, "shares", age, 60) }),
            ),
            name if names.contains(&name) => Some(json!(figure(id, name, age, 60_000))),
            _ => None,
        }
    };
    graph::insights(request, id, count, &names)
}
