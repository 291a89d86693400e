//! Photos, videos and reels:
//! <https://developers.facebook.com/docs/graph-api/reference/page/photos>,
//! <https://developers.facebook.com/docs/video-api/guides/publishing> and
//! <https://developers.facebook.com/docs/video-api/guides/reels-publishing>.
//!
//! A video comes by address, in one request, in pieces that name their offset, or to an upload host of
//! its own; it is processed after it was published, for as long as the clock alone decides.

use super::{
    Account, Answer, Call, DAY, Facebook, ID, Rule, Turn,
    feed::{self, Kind, Post},
    graph,
};
use crate::{
    fault,
    figures::figure,
    files::{KEPT_BYTES, Upload},
    graph::{error, invalid, missing, param},
    host::{Host, Picture},
    shelf::Record,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const REELS: Rule = Rule { name: "facebook.reels", limit: 30, seconds: DAY };

const PHOTO_BYTES: u64 = 10 << 20;
const FORMATS: [&str; 5] = ["image/jpeg", "image/png", "image/bmp", "image/gif", "image/tiff"];

/// The piece that is asked for next, at most.
const PIECE: u64 = 8 << 20;

/// A photo.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Photo {
    /// Its id.
    pub(super) id: String,
    /// The Page.
    pub(super) page: String,
    /// What it shows.
    pub(super) alt: String,
    /// Whether something was published with it.
    pub(super) is_published: bool,
    file: Upload,
    created_at: DateTime<Utc>,
}

impl Record for Photo {
    const SHELF: &'static str = "facebook.photo";

    fn key(&self) -> String {
        self.id.clone()
    }
}

impl Photo {
    /// Where its bytes are.
    pub(super) fn source(&self) -> String {
        format!("https://media.facebook.sandbox/{}", self.file.id)
    }

    /// Its public address.
    pub(super) fn address(&self) -> String {
        format!("https://www.facebook.com/photo.php?fbid={}", self.id)
    }

    /// How a page shows it.
    pub(super) fn picture(&self) -> Picture {
        Picture {
            files: vec![self.file.id.clone()],
            mime: self.file.mime.clone().unwrap_or_default(),
            alt: self.alt.clone(),
        }
    }
}

/// A video, a reel or a video story, whole or on its way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Video {
    id: String,
    page: String,
    /// `videos`, `video_reels` or `video_stories`.
    edge: String,
    /// The session of an upload in pieces.
    session: Option<String>,
    size_bytes: Option<u64>,
    parts: Vec<Upload>,
    title: String,
    description: String,
    created_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
    post: Option<String>,
}

impl Record for Video {
    const SHELF: &'static str = "facebook.film";

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

    /// Whether it will fail to be processed.
    fn is_bad(&self) -> bool {
        let mime = self.parts.first().and_then(|part| part.mime.as_deref());
        self.says("sandbox-failed") || !mime.is_some_and(|mime| mime.starts_with("video/"))
    }

    fn is_processed(&self, turn: &Turn<'_>) -> bool {
        let needed = i64::try_from(turn.settings.processing_ms).unwrap_or(i64::MAX);
        !self.says("sandbox-stuck")
            && self.finished_at.is_some_and(|at| (turn.now - at).num_milliseconds() >= needed)
    }

    fn status(&self, turn: &Turn<'_>) -> Value {
        let phase = |status: &str| json!({ "status": status });
        let (word, uploading, processing, publishing) = match self.finished_at {
            None if !self.is_whole() => ("uploading", "in_progress", phase("not_started"), phase("not_started")),
            None => ("upload_complete", "complete", phase("not_started"), phase("not_started")),
            Some(_) if !self.is_processed(turn) => {
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

    /// How a page shows it.
    pub(super) fn picture(&self) -> Picture {
        let is_kept = self.received() <= KEPT_BYTES;
        Picture {
            files: self.parts.iter().filter(|_| is_kept).map(|part| part.id.clone()).collect(),
            mime: "video/mp4".into(),
            alt: self.title.clone(),
        }
    }

    fn node(&self, turn: &Turn<'_>) -> Value {
        let is_out = self.finished_at.is_some() && self.is_processed(turn) && !self.is_bad();
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
            "status": self.status(turn),
            "length": 5.0,
            "source": null,
            "from": { "id": self.page },
            "views": 0,
            "comments": { "data": [], "summary": { "total_count": 0 } },
        })
    }
}

/// Whether the video of a post, where it has one, has come out of processing.
pub(super) fn is_out(turn: &Turn<'_>, video: Option<&str>) -> bool {
    let video = video.and_then(|id| turn.shelf.get::<Video>(id));
    video.is_none_or(|video| video.is_processed(turn))
}

/// Marks photos as published.
pub(super) fn use_up(turn: &mut Turn<'_>, photos: &[String]) {
    for photo in photos.iter().filter_map(|id| turn.shelf.get::<Photo>(id)).collect::<Vec<_>>() {
        turn.shelf.put(&Photo { is_published: true, ..photo });
    }
}

/// Takes a photo or a video away; tells whether there was one.
pub(super) fn discard(turn: &mut Turn<'_>, me: &Account, id: &str) -> bool {
    if turn.shelf.get::<Photo>(id).is_some_and(|photo| photo.page == me.id) {
        turn.shelf.remove::<Photo>(id);
        return true;
    }
    let is_theirs = turn.shelf.get::<Video>(id).is_some_and(|video| video.page == me.id);
    if is_theirs {
        turn.shelf.remove::<Video>(id);
    }
    is_theirs
}

/// A photo or a video as a node, and what it is.
pub(super) fn node(turn: &Turn<'_>, me: &Account, id: &str) -> Option<(Value, &'static str)> {
    if let Some(video) = turn.shelf.get::<Video>(id).filter(|video| video.page == me.id) {
        return Some((video.node(turn), "Video"));
    }
    let photo = turn.shelf.get::<Photo>(id).filter(|photo| photo.page == me.id)?;
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

/// `POST /{page}/photos`.
pub(super) fn photo(turn: &mut Turn<'_>, call: &Call, me: &Account) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["pages_manage_posts", "pages_read_engagement"])?;
    let file = match (&call.upload, param(call, "url")) {
        (Some(file), _) => file,
        (None, Some(url)) => call.at(&url).ok_or_else(|| {
            error(400, 324, 2_069_019, "Missing or invalid image file: it could not be fetched from this address.")
        })?,
        (None, None) => return Err(error(400, 324, 0, "(#324) Requires upload file")),
    };
    let is_image = file.mime.as_deref().is_some_and(|mime| FORMATS.contains(&mime));
    if file.size_bytes > PHOTO_BYTES || !is_image {
        return Err(error(400, 100, 1_366_046, "Your photos couldn't be uploaded. Photos should be smaller than 10 MB and saved as JPG, PNG, GIF, TIFF or BMP files."));
    }
    let message = param(call, "message").or_else(|| param(call, "caption")).unwrap_or_default();
    let is_published = !matches!(param(call, "published").as_deref(), Some("false" | "0"));
    let mut fault = None;
    if is_published {
        fault = match fault::draw(turn, ID, &me.username, &message) {
            Ok(fault) => fault,
            Err(fault) => return Ok(Facebook.fail(turn, call, fault)),
        };
    }
    let photo = Photo {
        id: graph::id(turn),
        page: me.id.clone(),
        alt: param(call, "alt_text_custom").unwrap_or_default(),
        is_published,
        file: file.clone(),
        created_at: turn.now,
    };
    turn.shelf.put(&photo);
    if !is_published || graph::is_on(call, "no_story") {
        return Ok(Answer::json(200, &json!({ "id": photo.id })));
    }
    let post = publish(turn, me, Kind::Feed, message, vec![photo.id.clone()], None);
    let body = json!({ "id": photo.id, "post_id": post });
    Ok(Answer::json(200, &body).publishing(post).because(fault))
}

fn publish(
    turn: &mut Turn<'_>,
    me: &Account,
    kind: Kind,
    message: String,
    photos: Vec<String>,
    video: Option<&Video>,
) -> String {
    let number = graph::id(turn);
    let post = Post {
        id: if kind == Kind::Story { number } else { format!("{}_{number}", me.id) },
        page: me.id.clone(),
        kind,
        message,
        link: None,
        photos,
        video: video.map(|video| video.id.clone()),
        notes: video
            .filter(|video| !video.title.is_empty())
            .map(|video| format!("Title: {}", video.title))
            .into_iter()
            .collect(),
        created_at: turn.now,
    };
    feed::add(turn, &post);
    post.id
}

fn begin(turn: &mut Turn<'_>, me: &Account, edge: &str, size: Option<u64>) -> Video {
    let video = Video {
        id: graph::id(turn),
        page: me.id.clone(),
        edge: edge.into(),
        session: None,
        size_bytes: size,
        parts: Vec::new(),
        title: String::new(),
        description: String::new(),
        created_at: turn.now,
        finished_at: None,
        post: None,
    };
    turn.shelf.put(&video);
    video
}

/// `POST /{page}/videos`: by address, in one request, or in pieces.
pub(super) fn video(turn: &mut Turn<'_>, call: &Call, me: &Account) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["pages_manage_posts", "pages_read_engagement"])?;
    let get = |name: &str| param(call, name).filter(|text| !text.is_empty());
    let session = || {
        let id = get("upload_session_id").ok_or_else(|| invalid("The parameter upload_session_id is required"))?;
        let found: Option<Video> = graph::tied(turn.shelf, "facebook.session", &id).next();
        found.filter(|video| video.page == me.id).ok_or_else(|| missing("POST", &id))
    };
    match get("upload_phase").as_deref() {
        Some("start") => {
            let size = get("file_size").and_then(|size| size.parse().ok());
            let size: u64 = size.ok_or_else(|| invalid("The parameter file_size is required"))?;
            let mut video = begin(turn, me, "videos", Some(size));
            let session = graph::id(turn);
            graph::tie(turn, "facebook.session", &session, &video.id);
            video.session = Some(session.clone());
            turn.shelf.put(&video);
            Ok(Answer::json(
                200,
                &json!({
                    "upload_session_id": session, "video_id": video.id,
                    "start_offset": "0", "end_offset": size.min(PIECE).to_string(),
                }),
            ))
        }
        Some("transfer") => {
            let mut video = session()?;
            let size = video.size_bytes.unwrap_or(0);
            let wanted = |video: &Video| {
                let start = video.received();
                json!({ "start_offset": start.to_string(), "end_offset": (start + PIECE).min(size).to_string() })
            };
            let start = get("start_offset").and_then(|start| start.parse::<u64>().ok());
            let piece = call.upload.clone().ok_or_else(|| invalid("The parameter video_file_chunk is required"))?;
            if start != Some(video.received()) || video.received() + piece.size_bytes > size {
                let mut refusal: Value = json!({ "message": "There was a problem uploading your video file. Please try again.", "type": "OAuthException", "code": 6001, "error_subcode": 1_363_037, "is_transient": true });
                refusal["error_data"] = wanted(&video);
                return Err(Answer::json(400, &json!({ "error": refusal })));
            }
            video.parts.push(piece);
            turn.shelf.put(&video);
            Ok(Answer::json(200, &wanted(&video)))
        }
        Some("finish") => {
            let video = session()?;
            finish(turn, call, me, video)
        }
        Some("cancel") => {
            let video = session()?;
            turn.shelf.remove::<Video>(&video.id);
            Ok(Answer::json(200, &json!({ "success": true })))
        }
        Some(other) => Err(invalid(&format!("Param upload_phase must be one of {{start, transfer, finish, cancel}} - got {other}"))),
        None => {
            let file = match (&call.upload, get("file_url")) {
                (Some(file), _) => file.clone(),
                (None, Some(url)) => call.at(&url).cloned().ok_or_else(|| {
                    error(400, 389, 0, "(#389) Unable to fetch video file from URL.")
                })?,
                (None, None) => return Err(error(400, 100, 0, "(#100) No video file was given")),
            };
            let mut video = begin(turn, me, "videos", Some(file.size_bytes));
            video.parts.push(file);
            let id = video.id.clone();
            let answer = finish(turn, call, me, video)?;
            // The same, but told by the id.
            Ok(Answer { body: json!({ "id": id }).to_string().into(), ..answer })
        }
    }
}

/// `POST /{page}/video_reels` and `/video_stories`: begins an upload, and publishes it.
pub(super) fn reel(turn: &mut Turn<'_>, call: &Call, me: &Account, edge: &str) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["pages_manage_posts", "pages_read_engagement"])?;
    match param(call, "upload_phase").as_deref() {
        Some("start") => {
            let video = begin(turn, me, edge, None);
            let url = format!("https://rupload.facebook.com/video-upload/v26.0/{}", video.id);
            Ok(Answer::json(200, &json!({ "video_id": video.id, "upload_url": url })))
        }
        Some("finish") => {
            let id = param(call, "video_id").ok_or_else(|| invalid("The parameter video_id is required"))?;
            let video = turn.shelf.get::<Video>(&id).filter(|video| video.page == me.id && video.edge == edge);
            let video = video.ok_or_else(|| missing("POST", &id))?;
            if edge == "video_reels" {
                match param(call, "video_state").as_deref() {
                    Some("PUBLISHED") => {}
                    Some("DRAFT" | "SCHEDULED") => return Ok(Answer::json(200, &json!({ "success": true }))),
                    _ => return Err(invalid("Param video_state must be one of {PUBLISHED, DRAFT, SCHEDULED}")),
                }
                if turn.spend(REELS, &me.id, 0).is_ok_and(|stands| stands.remaining == 0) {
                    return Err(graph::throttled("(#32) Page request limit reached", super::KIND, &me.id));
                }
            }
            finish(turn, call, me, video)
        }
        _ => Err(invalid("Param upload_phase must be one of {start, finish}")),
    }
}

/// Publishes a video that has been received. What can't be processed never becomes a post.
fn finish(turn: &mut Turn<'_>, call: &Call, me: &Account, mut video: Video) -> Result<Answer, Answer> {
    if !video.is_whole() {
        return Err(error(400, 6000, 1_363_030, "The video was not uploaded completely."));
    }
    if video.finished_at.is_some() {
        return Err(invalid("The video was published already"));
    }
    let is_story = video.edge == "video_stories";
    if !is_story {
        video.title = param(call, "title").unwrap_or_default();
        video.description = param(call, "description").unwrap_or_default();
    }
    let fault = match fault::draw(turn, ID, &me.username, &video.description) {
        Ok(fault) => fault,
        Err(fault) => return Ok(Facebook.fail(turn, call, fault)),
    };
    if video.edge == "video_reels" {
        let _ = turn.spend(REELS, &me.id, 1);
    }
    video.finished_at = Some(turn.now);
    let mut body = json!({ "success": true });
    let mut answer = Answer::json(200, &body);
    if !video.is_bad() {
        let kind = if is_story { Kind::Story } else { Kind::Feed };
        let post = publish(turn, me, kind, video.description.clone(), Vec::new(), Some(&video));
        if is_story {
            body["post_id"] = json!(post);
            answer = Answer::json(200, &body);
        }
        video.post = Some(post.clone());
        // A post of a video goes by the video's id.
        let id = if is_story { post } else { video.id.clone() };
        answer = answer.publishing(id).because(fault);
    }
    turn.shelf.put(&video);
    Ok(answer)
}

/// The upload host: bytes from an offset on, or an address to fetch them from.
pub(super) fn receive(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let refuse = |kind: &str, message: &str, retriable: bool| {
        let body = json!({ "debug_info": { "retriable": retriable, "type": kind, "message": message } });
        Answer::json(400, &body)
    };
    let unauthorized = || refuse("ProcessingFailedError", "unauthorized user request", false);
    let segments = call.segments();
    let id = segments.last().copied().unwrap_or_default();
    if segments.first() != Some(&"video-upload") {
        return Err(refuse("ProcessingFailedError", "unknown upload", false));
    }
    let token = graph::admit(turn, ID, call, &["pages_manage_posts"]).map_err(|_| unauthorized())?;
    let video = turn.shelf.get::<Video>(id).filter(|video| token.page.as_ref() == Some(&video.page));
    let mut video = video.ok_or_else(unauthorized)?;
    let part = match call.header("file_url") {
        Some(url) => {
            let file = call.at(url).cloned();
            let file = file.ok_or_else(|| refuse("ProcessingFailedError", "the file could not be fetched", true))?;
            video.size_bytes = Some(file.size_bytes);
            file
        }
        None => {
            let number = |name: &str| call.header(name).and_then(|text| text.parse::<u64>().ok());
            let (Some(offset), Some(size)) = (number("offset"), number("file_size")) else {
                return Err(refuse("ProcessingFailedError", "the headers offset and file_size are required", false));
            };
            if offset != video.received() {
                return Err(refuse("OffsetInvalidError", &format!("the offset is {}", video.received()), true));
            }
            video.size_bytes = Some(size);
            let part = call.upload.clone().ok_or_else(unauthorized)?;
            if offset + part.size_bytes > size {
                return Err(refuse("PartialRequestError", "more bytes than file_size says", false));
            }
            part
        }
    };
    video.parts.push(part);
    turn.shelf.put(&video);
    Ok(Answer::json(200, &json!({ "success": true })))
}

/// `GET /{page}/videos` and `/video_reels`, newest first.
pub(super) fn list(turn: &Turn<'_>, call: &Call, me: &Account, edge: &str) -> Result<Answer, Answer> {
    let videos = turn.shelf.under::<Video>("").filter(|video| {
        video.page == me.id && video.post.is_some() && video.edge != "video_stories"
            && (edge == "videos" || video.edge == edge)
    });
    let mut videos: Vec<Video> = videos.collect();
    videos.reverse();
    let fields = graph::fields(call);
    let names = ["description", "updated_time", "id"];
    graph::paged(call, videos, |one| &one.id, |one| graph::select(&one.node(turn), &fields, "Video", &names))
}

/// `GET /{video}/video_insights`.
pub(super) fn insights(turn: &Turn<'_>, call: &Call, me: &Account, id: &str) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["read_insights", "pages_read_engagement"])?;
    let video = turn.shelf.get::<Video>(id).filter(|video| video.page == me.id);
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
    let age: TimeDelta = turn.now - video.created_at;
    let count = |name: &str| {
        let views = figure(id, "views", age, 9_000);
        match name {
            "blue_reels_play_count" | "fb_reels_total_plays" | "total_video_views" => Some(json!(views)),
            "post_video_likes_by_reaction_type" => {
                Some(json!({ "REACTION_LIKE": figure(id, "likes", age, 300) }))
            }
            "post_video_social_actions" => {
                Some(json!({ "COMMENT": figure(id, "comments", age, 20), "SHARE": figure(id, "shares", age, 60) }))
            }
            name if names.contains(&name) => Some(json!(figure(id, name, age, 60_000))),
            _ => None,
        }
    };
    graph::insights(call, id, count, &names)
}
