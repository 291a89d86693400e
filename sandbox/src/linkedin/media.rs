//! Images, videos and documents: initialized, uploaded, processed.
//! <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/videos-api>

use super::{
    Caller, Outcome, Record, Request, Response, Transaction, body, error, forbidden, invalid, missing, next,
};
use crate::exchange::Cause::{self, Content, Protocol, State};
use crate::{files::Upload, tokens::random};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const PART_BYTES: u64 = 4 << 20;
const PIXELS: u64 = 36_152_320;
const URLS_LIVE: TimeDelta = TimeDelta::hours(24);

/// A medium, complete or being uploaded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Media {
    id: String,
    /// Member who uploaded it.
    pub(super) owner: String,
    author: String,
    /// `image`, `video` or `document`.
    pub(super) kind: String,
    signature: String,
    total_bytes: u64,
    parts: BTreeMap<u64, Upload>,
    begun_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
}

impl Record for Media {
    const TABLE: &'static str = "linkedin.media";

    fn key(&self) -> String {
        self.id.clone()
    }
}

impl Media {
    fn urn(&self) -> String {
        format!("urn:li:{}:{}", self.kind, self.id)
    }

    /// Returns the ids of its files.
    pub(super) fn files(&self) -> Vec<String> {
        self.parts.values().map(|part| part.id.clone()).collect()
    }

    pub(super) fn mime(&self) -> String {
        let first = self.parts.values().next();
        first.and_then(|part| part.mime.clone()).unwrap_or_else(|| self.kind.clone())
    }

    /// Returns its processing status, which depends on the clock only.
    pub(super) fn status(&self, tx: &Transaction) -> &'static str {
        let (Some(finished_at), Some(first)) = (self.finished_at, self.parts.values().next()) else {
            return "WAITING_UPLOAD";
        };
        // Videos take the longest.
        let shorter = match self.kind.as_str() {
            "image" => 10,
            "document" => 4,
            _ => 1,
        };
        let needed = tx.settings.processing_ms / shorter;
        let spent = u64::try_from((tx.now - finished_at).num_milliseconds()).unwrap_or(0);
        if spent < needed || first.is_stuck {
            return "PROCESSING";
        }
        let mime = first.mime.as_deref().unwrap_or_default();
        let is_fine = match self.kind.as_str() {
            "image" => {
                let (width, height) = first.pixels.unwrap_or((0, 0));
                mime.starts_with("image/") && u64::from(width) * u64::from(height) < PIXELS
            }
            "video" => mime.starts_with("video/"),
            _ => !mime.starts_with("image/") && !mime.starts_with("video/"),
        };
        if is_fine && !first.is_failing { "AVAILABLE" } else { "PROCESSING_FAILED" }
    }

    /// Returns the cause for which it can't be processed.
    fn failure(&self) -> Cause {
        match self.parts.values().next() {
            Some(first) if !first.is_failing => match self.kind.as_str() {
                "image" if first.mime.as_deref().is_some_and(|mime| mime.starts_with("image/")) => {
                    Content("pixels_of_an_image")
                }
                "image" => Content("image_type"),
                "video" => Content("video_type"),
                _ => Content("document_type"),
            },
            _ => State,
        }
    }
}

/// Returns the medium of this number.
pub(super) fn get(tx: &Transaction, id: &str) -> Option<Media> {
    tx.store.get(id)
}

/// Returns the medium with this URN.
pub(super) fn at(tx: &Transaction, urn: &str) -> Option<Media> {
    get(tx, urn.rsplit(':').next()?).filter(|media| media.urn() == urn)
}

/// Checks that an author's post may use a medium: it has to be of one of these kinds, and ready.
pub(super) fn usable(tx: &Transaction, author: &str, urn: &str, kinds: &[&str]) -> Result<Media, Response> {
    let media = at(tx, urn).filter(|media| kinds.contains(&media.kind.as_str()));
    let media =
        media.ok_or_else(|| invalid(State, &format!("{urn} does not exist or is of another kind")))?;
    if media.author != author {
        return Err(forbidden(&format!("{urn}, whose owner is {}", media.author)));
    }
    match media.status(tx) {
        "AVAILABLE" => Ok(media),
        "PROCESSING_FAILED" => Err(error(
            media.failure(),
            400,
            "MEDIA_ASSET_PROCESSING_FAILED",
            0,
            &format!("Media asset failed processing: {urn}"),
        )),
        _ => Err(error(
            State,
            400,
            "MEDIA_ASSET_WAITING_UPLOAD",
            0,
            &format!("Media asset is waiting upload: {urn}"),
        )),
    }
}

/// Returns the action that a request to a collection of media names.
pub(super) fn action<'a>(request: &'a Request, plural: &str) -> Option<&'a str> {
    let is_medium = ["images", "videos", "documents"].contains(&plural);
    request.query("action").filter(|_| is_medium)
}

/// `POST /rest/{images, videos, documents}?action=initializeUpload`.
pub(super) fn begin(tx: &mut Transaction, request: &Request, caller: &Caller, plural: &str) -> Outcome {
    let body = body(request)?;
    let upload = &body["initializeUploadRequest"];
    let author = upload["owner"].as_str().ok_or_else(|| invalid(Protocol, "owner is required"))?;
    caller.check_writes_as(author)?;
    let kind = plural.trim_end_matches('s');
    let total_bytes = upload["fileSizeBytes"].as_u64().unwrap_or(0);
    if kind == "video" && total_bytes == 0 {
        return Err(invalid(Protocol, "fileSizeBytes is required"));
    }
    if total_bytes > 5 << 30 {
        return Err(invalid(Content("video_too_large"), "fileSizeBytes is more than a video may have"));
    }
    let media = Media {
        id: format!("S{}", next(tx)),
        owner: caller.account.id.clone(),
        author: author.to_owned(),
        kind: kind.to_owned(),
        signature: random(),
        total_bytes,
        parts: BTreeMap::new(),
        begun_at: tx.now,
        finished_at: None,
    };
    tx.store.put(&media);
    // A client that uses the sandbox as LinkedIn can't be sent to LinkedIn.
    let origin = match request.header("host").filter(|_| request.host.is_empty()) {
        Some(host) => format!("http://{host}"),
        None => "https://www.linkedin.com".to_owned(),
    };
    let address =
        |part: u64| format!("{origin}/dms-uploads/sandbox/{}/{part}?sau={}", media.id, media.signature);
    let ends = (tx.now + URLS_LIVE).timestamp_millis();
    let mut value = json!({ kind: media.urn() });
    if kind == "video" {
        let parts: Vec<_> = (0..total_bytes.div_ceil(PART_BYTES))
            .map(|part| {
                let first = part * PART_BYTES;
                let last = (first + PART_BYTES).min(total_bytes) - 1;
                json!({ "uploadUrl": address(part), "firstByte": first, "lastByte": last })
            })
            .collect();
        value["uploadUrlsExpireAt"] = json!(ends);
        value["uploadInstructions"] = json!(parts);
        value["uploadToken"] = json!("");
    } else {
        value["uploadUrlExpiresAt"] = json!(ends);
        value["uploadUrl"] = json!(address(0));
    }
    Ok(Response::json(200, &json!({ "value": value })))
}

/// `PUT` to the address of an upload: a whole image or document, or one piece of a video.
pub(super) fn receive(tx: &mut Transaction, request: &Request, id: &str, part: &str) -> Outcome {
    let media = get(tx, id).filter(|media| request.query("sau") == Some(&media.signature));
    let mut media = media.filter(|media| media.begun_at + URLS_LIVE > tx.now);
    let media = media
        .as_mut()
        .ok_or_else(|| error(State, 403, "FORBIDDEN", 0, "The upload's address is none, or too old"))?;
    let part: u64 = part.parse().map_err(|_| missing("There is no such piece."))?;
    let upload = request.upload.clone().ok_or_else(|| invalid(Protocol, "There are no bytes."))?;
    let length = match media.kind.as_str() {
        "video" => media.total_bytes.saturating_sub(part * PART_BYTES).min(PART_BYTES),
        _ => upload.size_bytes,
    };
    if upload.size_bytes != length || length == 0 {
        return Err(invalid(
            Protocol,
            &format!("the piece has {length} bytes, and {} came", upload.size_bytes),
        ));
    }
    let tag = upload.sha256[..32].to_owned();
    media.parts.insert(part, upload);
    if media.kind != "video" {
        media.finished_at = Some(tx.now);
    }
    tx.store.put(media);
    Ok(Response::empty(if media.kind == "video" { 200 } else { 201 }).with("etag", tag))
}

/// `POST /rest/videos?action=finalizeUpload`.
pub(super) fn finalize(tx: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    let body = body(request)?;
    let upload = &body["finalizeUploadRequest"];
    let media = upload["video"].as_str().and_then(|urn| at(tx, urn));
    let mut media = media.ok_or_else(|| missing("There is no such video."))?;
    caller.check_writes_as(&media.author)?;
    let tags: Vec<String> = media.parts.values().map(|part| part.sha256[..32].to_owned()).collect();
    let named: Vec<&str> =
        upload["uploadedPartIds"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let count = usize::try_from(media.total_bytes.div_ceil(PART_BYTES)).unwrap_or(usize::MAX);
    if named != tags || tags.len() != count {
        return Err(invalid(Protocol, "uploadedPartIds are not the pieces of the video, in order"));
    }
    if media.finished_at.is_none() {
        media.finished_at = Some(tx.now);
        tx.store.put(&media);
    }
    Ok(Response::empty(200))
}

/// `GET /rest/{images,videos,documents}/{urn}`. A member's images and documents need a restricted scope.
pub(super) fn show(tx: &mut Transaction, _: &Request, caller: &Caller, plural: &str, urn: &str) -> Outcome {
    let kind = plural.trim_end_matches('s');
    let media = at(tx, urn).filter(|media| media.kind == kind && media.owner == caller.account.id);
    let media = media.ok_or_else(|| missing(&format!("{urn} does not exist")))?;
    if kind != "video" && media.author.starts_with("urn:li:person:") && !caller.may(&["r_member_social"]) {
        return Err(forbidden(&format!("{plural}.GET")));
    }
    let status = media.status(tx);
    let mut view = json!({ "id": media.urn(), "owner": media.author, "status": status });
    if status == "AVAILABLE" {
        view["downloadUrl"] = json!(format!("https://media.licdn.com/dms/{plural}/{}", media.id));
        view["downloadUrlExpiresAt"] = json!((tx.now + URLS_LIVE).timestamp_millis());
    }
    if status == "PROCESSING_FAILED" && kind == "video" {
        view["processingFailureReason"] = json!("UNSUPPORTED_FORMAT");
    }
    Ok(Response::json(200, &view).because((status == "PROCESSING_FAILED").then(|| media.failure())))
}
