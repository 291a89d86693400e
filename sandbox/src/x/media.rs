//! Media: <https://docs.x.com/x-api/media/quickstart/media-upload-chunked>.
//!
//! Uploaded in one request, or in segments that `finalize` joins; videos and GIFs are then processed for a
//! time that depends on the clock only. A medium belongs to the account that uploaded it.

use super::{
    Account, Outcome, Record, Request, Response, Transaction, body, invalid, not_permitted, problem,
};
use crate::exchange::Cause::{Content, Protocol, State};
use crate::{
    fake_metrics::figure,
    files::{MAX_KEPT_BYTES, Upload},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::LazyLock};

const EXPIRES_SECONDS: i64 = 86_400;
/// The longest video that every account may post, in milliseconds.
const STANDARD_MS: u64 = 140_000;
const MEGABYTE: u64 = 1024 * 1024;
/// The largest segment, as X's own client sends it. X documents 5 MB, but its edge refuses requests of 5 MiB.
const SEGMENT_BYTES: u64 = 4 * MEGABYTE;

const CATEGORIES: [&str; 8] = [
    "amplify_video",
    "tweet_gif",
    "tweet_image",
    "tweet_video",
    "dm_gif",
    "dm_image",
    "dm_video",
    "subtitles",
];

/// A medium, complete or being uploaded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Media {
    pub(super) id: String,
    owner: String,
    also: Vec<String>,
    /// Media category.
    pub(super) category: String,
    declared: Option<String>,
    total_bytes: u64,
    /// Segments by index.
    pub(super) parts: BTreeMap<u16, Upload>,
    created_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
    /// Content type.
    pub(super) mime: Option<String>,
    pixels: Option<(u32, u32)>,
    /// Alternative text.
    pub(super) alt: Option<String>,
    is_stuck: bool,
    is_failing: bool,
    /// Play time of a video, in milliseconds, as its header says.
    #[serde(default)]
    play_time_ms: Option<u64>,
    /// Content that the viewer is warned of.
    #[serde(default)]
    pub(super) warnings: Vec<String>,
    /// Subtitles of a video.
    #[serde(default)]
    pub(super) subtitles: Vec<Subtitles>,
}

/// Subtitles of a video, one file for each language.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Subtitles {
    /// Id of the file's medium.
    id: String,
    /// Two capital letters.
    pub(super) language: String,
    /// Name of the language.
    pub(super) name: String,
}

impl Record for Media {
    const TABLE: &'static str = "x.media";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// Returns the medium with this id.
pub(super) fn get(tx: &Transaction, id: &str) -> Option<Media> {
    tx.store.get(id)
}

/// Returns whether a user's post may use these media: they have to be the user's, ready and not expired.
pub(super) fn are_usable(tx: &Transaction, user: &str, ids: &[String]) -> bool {
    let media: Vec<Media> = ids.iter().filter_map(|id| get(tx, id)).collect();
    let is_usable = |media: &Media| {
        (media.owner == user || media.also.iter().any(|id| id == user))
            && media.is_ready(tx)
            && tx.now - media.created_at < TimeDelta::seconds(EXPIRES_SECONDS)
    };
    media.len() == ids.len() && media.iter().all(is_usable)
}

/// Returns whether something else than an image is beside other media.
pub(super) fn are_mixed(tx: &Transaction, ids: &[String]) -> bool {
    let mut media = ids.iter().filter_map(|id| get(tx, id));
    ids.len() > 1 && media.any(|media| !media.category.ends_with("image"))
}

/// Returns true if one of these media is a video that only some accounts may post.
pub(super) fn are_long(tx: &Transaction, ids: &[String]) -> bool {
    let mut found = ids.iter().filter_map(|id| get(tx, id));
    found.any(|media| {
        media.category.ends_with("video") && media.play_time_ms.is_some_and(|time| time > STANDARD_MS)
    })
}

/// Returns the play time in the header of an MP4 or MOV file, in milliseconds (ISO 14496-12, `mvhd`).
fn play_time_ms(bytes: &[u8]) -> Option<u64> {
    let at = bytes.windows(4).position(|name| name == b"mvhd")?;
    // Behind the name: a version, flags, two times (of four or eight bytes each), the units of a second, the length.
    let is_long = *bytes.get(at + 4)? == 1;
    let (scale, length) = if is_long { (at + 24, at + 28) } else { (at + 16, at + 20) };
    let word =
        |at: usize| bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_be_bytes);
    let units = if is_long {
        u64::from(word(length)?) << 32 | u64::from(word(length + 4)?)
    } else {
        u64::from(word(length)?)
    };
    units.saturating_mul(1000).checked_div(word(scale)?.into())
}

impl Media {
    fn is_moving(&self) -> bool {
        self.category.ends_with("video") || self.category.ends_with("gif")
    }

    fn size_bytes(&self) -> u64 {
        self.parts.values().map(|part| part.size_bytes).sum()
    }

    fn is_ready(&self, tx: &Transaction) -> bool {
        self.finished_at.is_some() && self.processing(tx).is_none_or(|state| state["state"] == "succeeded")
    }

    /// Returns the media key, whose prefix is the kind.
    pub(super) fn media_key(&self) -> String {
        let kind = match self.category.as_str() {
            "tweet_gif" | "dm_gif" => 16,
            "amplify_video" => 13,
            category if category.ends_with("video") => 7,
            _ => 3,
        };
        format!("{kind}_{}", self.id)
    }

    /// Returns `processing_info`, or nothing when no processing is needed.
    fn processing(&self, tx: &Transaction) -> Option<Value> {
        let finished_at = self.finished_at?;
        if !self.is_moving() && !self.is_stuck {
            return None;
        }
        let needed = i64::try_from(tx.settings.processing_ms).unwrap_or(i64::MAX);
        let spent = (tx.now - finished_at).num_milliseconds();
        if self.is_stuck {
            return Some(json!({ "state": "in_progress", "check_after_secs": 1, "progress_percent": 50 }));
        }
        if spent < needed {
            let check = ((needed - spent + 999) / 1_000).clamp(1, 5);
            let percent = spent.saturating_mul(100) / needed.max(1);
            let state = if spent * 4 < needed { "pending" } else { "in_progress" };
            return Some(json!({ "state": state, "check_after_secs": check, "progress_percent": percent }));
        }
        let is_as_declared = self.mime.as_deref().is_some_and(|mime| {
            if self.category.ends_with("gif") {
                mime == "image/gif" || mime == "video/mp4"
            } else {
                mime.starts_with("video/")
            }
        });
        if self.is_failing || !is_as_declared {
            return Some(json!({
                "state": "failed",
                "progress_percent": 100,
                "error": { "code": 1, "name": "InvalidMedia", "message": "Unsupported video format" },
            }));
        }
        Some(json!({ "state": "succeeded", "progress_percent": 100 }))
    }

    /// Returns a response with the medium, and the cause if its processing failed.
    fn response(&self, tx: &Transaction) -> Response {
        let has_failed = self.processing(tx).is_some_and(|info| info["state"] == "failed");
        let cause = (has_failed && !self.is_failing).then_some(Content("video_type"));
        Response::json(200, &json!({ "data": self.data(tx) })).because(cause)
    }

    fn data(&self, tx: &Transaction) -> Value {
        let left = EXPIRES_SECONDS - (tx.now - self.created_at).num_seconds();
        let mut data =
            json!({ "id": self.id, "media_key": self.media_key(), "expires_after_secs": left.max(0) });
        if self.finished_at.is_some() {
            data["size"] = json!(self.size_bytes());
            if self.is_moving() {
                data["video"] = json!({ "video_type": self.mime });
            } else if let Some((w, h)) = self.pixels {
                data["image"] = json!({ "image_type": self.mime, "w": w, "h": h });
            }
        }
        if let Some(info) = self.processing(tx) {
            data["processing_info"] = info;
        }
        data
    }

    /// Returns the medium as an expansion of a post.
    pub(super) fn view(&self, tx: &Transaction, fields: &[String]) -> Value {
        let kind = match self.category.as_str() {
            category if category.ends_with("gif") => "animated_gif",
            category if category.ends_with("video") => "video",
            _ => "photo",
        };
        let mut view = json!({ "media_key": self.media_key(), "type": kind });
        for field in fields {
            let value = match field.as_str() {
                "url" if kind == "photo" => json!(format!("https://pbs.twimg.com/media/{}", self.id)),
                "preview_image_url" if kind != "photo" => {
                    json!(format!("https://pbs.twimg.com/media/{}", self.id))
                }
                "variants" if kind != "photo" => json!([{
                    "content_type": "video/mp4",
                    "url": format!("https://video.twimg.com/ext_tw_video/{}", self.id),
                }]),
                "alt_text" if self.alt.is_some() => json!(self.alt),
                "width" => json!(self.pixels.map(|pixels| pixels.0)),
                "height" => json!(self.pixels.map(|pixels| pixels.1)),
                "public_metrics" if kind == "video" => {
                    json!({ "view_count": figure(&self.id, "views", tx.now - self.created_at, 9_000) })
                }
                _ => continue,
            };
            view[field] = value;
        }
        view
    }
}

/// Returns the maximum size of a category.
fn ceiling(category: &str) -> u64 {
    match category {
        "tweet_image" | "dm_image" => 5 * MEGABYTE,
        "tweet_gif" | "dm_gif" => 15 * MEGABYTE,
        "subtitles" => MEGABYTE,
        _ => 512 * MEGABYTE,
    }
}

/// Adds the keys of the rules about content of the requests' schemas.
pub(super) fn rules(rules: &mut std::collections::BTreeSet<String>) {
    for schema in [&*INITIALIZE_SCHEMA, &*METADATA_SCHEMA, &*SUBTITLES_SCHEMA] {
        crate::schema::rules(schema, "", rules);
    }
}

/// `POST /2/media/upload`: all at once.
pub(super) fn upload(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let (upload, fields) = bytes(tx, request)?;
    let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    let category = field("media_category").unwrap_or_default();
    if !CATEGORIES.contains(&category.as_str()) {
        let message =
            format!("$.media_category: does not have a value in the enumeration [{}]", CATEGORIES.join(", "));
        return Err(invalid(Protocol, "media_category", &category, &message));
    }
    let mut media = Media {
        id: super::snowflake(tx),
        owner: caller.id.clone(),
        also: field("additional_owners")
            .map(|ids| ids.split(',').map(str::to_owned).collect())
            .unwrap_or_default(),
        category,
        declared: field("media_type"),
        total_bytes: upload.size_bytes,
        parts: BTreeMap::from([(0, upload)]),
        created_at: tx.now,
        finished_at: None,
        mime: None,
        pixels: None,
        alt: None,
        is_stuck: false,
        is_failing: false,
        play_time_ms: None,
        warnings: Vec::new(),
        subtitles: Vec::new(),
    };
    finish(tx, &mut media)?;
    Ok(media.response(tx))
}

static INITIALIZE_SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "required": ["media_type", "total_bytes"],
        "properties": {
            "additional_owners": { "type": "array", "minItems": 1, "items": { "type": "string", "digits": true } },
            "media_category": { "type": "string", "enum": CATEGORIES },
            "media_type": { "type": "string", "enum": [
                "video/mp4", "video/webm", "video/mp2t", "video/quicktime", "text/srt", "text/vtt", "image/jpeg",
                "image/gif", "image/bmp", "image/png", "image/webp", "image/pjpeg", "image/tiff", "model/gltf-binary",
                "model/vnd.usdz+zip",
            ] },
            "shared": { "type": "boolean" },
            "total_bytes": { "type": "integer", "minimum": 1, "maximum": 17_179_869_184_i64 },
        },
    })
});

/// `POST /2/media/upload/initialize`.
pub(super) fn initialize(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let body = body(request, &INITIALIZE_SCHEMA)?;
    let declared = body["media_type"].as_str().unwrap_or_default();
    // Without a category, the type decides.
    let category = body["media_category"].as_str().unwrap_or(match declared {
        "image/gif" => "tweet_gif",
        _ if declared.starts_with("video/") => "tweet_video",
        _ if declared.starts_with("text/") => "subtitles",
        _ => "tweet_image",
    });
    let total_bytes = body["total_bytes"].as_u64().unwrap_or_default();
    if total_bytes > ceiling(category) {
        let text = total_bytes.to_string();
        return Err(invalid(Content("media_too_large"), "total_bytes", &text, &too_large(category)));
    }
    let media = Media {
        id: super::snowflake(tx),
        owner: caller.id.clone(),
        also: serde_json::from_value(body["additional_owners"].clone()).unwrap_or_default(),
        category: category.to_owned(),
        declared: Some(declared.to_owned()),
        total_bytes,
        parts: BTreeMap::new(),
        created_at: tx.now,
        finished_at: None,
        mime: None,
        pixels: None,
        alt: None,
        is_stuck: false,
        is_failing: false,
        play_time_ms: None,
        warnings: Vec::new(),
        subtitles: Vec::new(),
    };
    tx.store.put(&media);
    Ok(media.response(tx))
}

/// `POST /2/media/upload/{id}/append`. A segment that is sent again replaces the first.
pub(super) fn append(tx: &mut Transaction, request: &Request, caller: &Account, id: &str) -> Outcome {
    let mut media = own(tx, &caller.id, id)?;
    let (upload, fields) = bytes(tx, request)?;
    let index = fields.iter().find(|(key, _)| key == "segment_index").map(|(_, value)| value.as_str());
    let Some(Ok(index @ 0..=999)) = index.map(str::parse::<u16>) else {
        return Err(invalid(
            Protocol,
            "segment_index",
            index.unwrap_or_default(),
            "$.segment_index: has to be 0 to 999",
        ));
    };
    if media.finished_at.is_some() {
        return Err(invalid(Protocol, "id", id, "The media was finalized already."));
    }
    if upload.size_bytes > SEGMENT_BYTES {
        // The edge answers without a body.
        tx.files.discard(&upload.id);
        return Err(Response::empty(413).because(Protocol));
    }
    let others: u64 =
        media.parts.iter().filter(|(at, _)| **at != index).map(|(_, part)| part.size_bytes).sum();
    if others + upload.size_bytes > MAX_KEPT_BYTES {
        // A part of a file can't be shown; only its metadata is kept.
        for part in media.parts.values().chain([&upload]) {
            tx.files.discard(&part.id);
        }
    }
    if let Some(replaced) = media.parts.insert(index, upload) {
        tx.files.discard(&replaced.id);
    }
    tx.store.put(&media);
    let expires_at = (media.created_at + TimeDelta::seconds(EXPIRES_SECONDS)).timestamp();
    Ok(Response::json(200, &json!({ "data": { "expires_at": expires_at } })))
}

/// `POST /2/media/upload/{id}/finalize`.
pub(super) fn finalize(tx: &mut Transaction, request: &Request, caller: &Account, id: &str) -> Outcome {
    // It needs no body, but does not accept any.
    if !request.body.is_empty() && !request.json().is_ok_and(|body| body.is_object()) {
        return Err(invalid(Protocol, "body", "", "Request body must be a JSON object"));
    }
    let mut media = own(tx, &caller.id, id)?;
    if media.finished_at.is_none() {
        let is_gapless = media.parts.keys().copied().eq(0..media.parts.len() as u16);
        if !is_gapless || media.size_bytes() != media.total_bytes {
            return Err(invalid(Protocol, "id", id, "Segments do not add up to provided total file size."));
        }
        finish(tx, &mut media)?;
    }
    Ok(media.response(tx))
}

/// `GET /2/media/upload?command=STATUS`.
pub(super) fn status(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    if request.query("command").is_some_and(|command| command != "STATUS") {
        return Err(invalid(
            Protocol,
            "command",
            request.query("command").unwrap_or_default(),
            "has to be STATUS",
        ));
    }
    let id = request.query("media_id").unwrap_or_default();
    let media = own(tx, &caller.id, id)?;
    Ok(media.response(tx))
}

/// `MediaMetadataRequest` of X's description, version 2.167, where some members have no schema of their own.
static METADATA_SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let text = json!({ "type": "string" });
    let any = json!({ "type": "object", "additionalProperties": true });
    let flag = json!({ "type": "boolean" });
    let only = |name: &str| json!({ "type": "object", "required": [name], "properties": { name: flag } });
    json!({
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": { "type": "string", "digits": true },
            "metadata": {
                "type": "object",
                "properties": {
                    "alt_text": {
                        "type": "object",
                        "required": ["text"],
                        "properties": { "text": { "type": "string", "minLength": 1, "maxLength": 1000 } },
                    },
                    "allow_download_status": { "type": "object", "properties": { "allow_download": flag } },
                    "audience_policy": any,
                    "content_expiration": {
                        "type": "object",
                        "required": ["timestamp_sec"],
                        "properties": { "timestamp_sec": { "type": "number" } },
                    },
                    "domain_restrictions": {
                        "type": "object",
                        "required": ["whitelist"],
                        "properties": { "whitelist": { "type": "array", "items": text } },
                    },
                    "found_media_origin": {
                        "type": "object",
                        "required": ["provider", "id"],
                        "properties": { "id": text, "provider": text },
                    },
                    "geo_restrictions": any,
                    "management_info": only("managed"),
                    "preview_image": { "type": "object", "required": ["media_key"], "properties": { "media_key": any } },
                    // The description says that it is an object; its reference shows these members.
                    "sensitive_media_warning": {
                        "type": "object",
                        "properties": { "adult_content": flag, "graphic_violence": flag, "other": flag },
                    },
                    "shared_info": only("shared"),
                    "sticker_info": {
                        "type": "object",
                        "required": ["stickers"],
                        "properties": { "stickers": { "type": "array", "items": any } },
                    },
                    "upload_source": {
                        "type": "object",
                        "required": ["upload_source"],
                        "properties": { "upload_source": text },
                    },
                },
            },
        },
    })
});

/// `POST /2/media/metadata`: <https://docs.x.com/x-api/media/create-media-metadata>.
pub(super) fn metadata(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let body = body(request, &METADATA_SCHEMA)?;
    let mut media = own(tx, &caller.id, body["id"].as_str().unwrap_or_default())?;
    if let Some(alt) = body["metadata"]["alt_text"]["text"].as_str() {
        if media.category.ends_with("video") {
            return Err(invalid(
                Content("alt_text_of_a_video"),
                "id",
                &media.id,
                "Alt text can only be added to images.",
            ));
        }
        media.is_stuck |= alt.contains("sandbox-stuck");
        media.is_failing |= alt.contains("sandbox-failed");
        media.alt = Some(alt.to_owned());
    }
    if let Some(flags) = body["metadata"]["sensitive_media_warning"].as_object() {
        media.warnings =
            flags.iter().filter(|(_, is_on)| **is_on == true).map(|(name, _)| name.clone()).collect();
    }
    tx.store.put(&media);
    Ok(Response::json(200, &json!({ "data": { "id": media.id, "associated_metadata": body["metadata"] } })))
}

static SUBTITLES_SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let text = json!({ "type": "string" });
    let id = json!({ "type": "string", "digits": true });
    json!({
        "type": "object",
        "required": ["id", "media_category", "subtitles"],
        "properties": {
            "id": id,
            "media_category": { "type": "string", "enum": ["AmplifyVideo", "TweetVideo"] },
            "subtitles": {
                "type": "object",
                "required": ["id", "language_code"],
                "properties": { "id": id, "language_code": text, "display_name": text },
            },
        },
    })
});

/// `POST /2/media/subtitles`: <https://docs.x.com/x-api/media/create-media-subtitles>. A language's later file replaces
/// its earlier one.
pub(super) fn subtitles(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let body = body(request, &SUBTITLES_SCHEMA)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (id, given) = (text(&body["id"]), &body["subtitles"]);
    let language = text(&given["language_code"]);
    if language.len() != 2 || !language.bytes().all(|byte| byte.is_ascii_uppercase()) {
        let message = "$.subtitles.language_code: does not match the regex pattern ^[A-Z]{2}$";
        return Err(invalid(Content("captions_language"), "subtitles.language_code", &language, message));
    }
    let mut video = own(tx, &caller.id, &id)?;
    let is_named = match text(&body["media_category"]).as_str() {
        "AmplifyVideo" => video.category == "amplify_video",
        _ => video.category == "tweet_video",
    };
    if !is_named {
        return Err(invalid(Protocol, "id", &id, "The media is no video of this category."));
    }
    let file = own(tx, &caller.id, &text(&given["id"]))?;
    if file.category != "subtitles" || file.finished_at.is_none() || !has_times(tx, &file) {
        return Err(invalid(
            Content("captions_unreadable"),
            "subtitles.id",
            &file.id,
            "The subtitle file is invalid.",
        ));
    }
    video.subtitles.retain(|other| other.language != language);
    video.subtitles.push(Subtitles { id: file.id, language, name: text(&given["display_name"]) });
    tx.store.put(&video);
    Ok(Response::json(
        200,
        &json!({ "data": {
            "id": id,
            "media_category": body["media_category"],
            "associated_subtitles": given,
        } }),
    ))
}

/// Returns true if a file has captions with times, in the notation of its declared type.
fn has_times(tx: &Transaction, file: &Media) -> bool {
    let bytes: Vec<u8> = file.parts.values().filter_map(|part| tx.files.read(&part.id)).flatten().collect();
    let Ok(text) = std::str::from_utf8(&bytes) else { return false };
    let text = text.trim_start_matches('\u{feff}');
    let is_vtt = text.starts_with("WEBVTT");
    let is_declared = file.declared.as_deref().is_none_or(|mime| (mime == "text/vtt") == is_vtt);
    let mark = if is_vtt { '.' } else { ',' };
    let is_time = |time: &str| {
        let time = time.trim().split(' ').next().unwrap_or_default();
        time.split_once(mark).is_some_and(|(clock, rest)| clock.contains(':') && rest.len() == 3)
    };
    let mut lines = text.lines().filter_map(|line| line.split_once("-->"));
    is_declared && lines.any(|(from, to)| is_time(from) && is_time(to))
}

/// Responds with the bytes of a medium.
pub(super) fn serve(tx: &Transaction, name: &str) -> Response {
    let id = name.split('.').next().unwrap_or_default();
    let found = get(tx, id).and_then(|media| {
        let mut bytes = Vec::new();
        for part in media.parts.values() {
            bytes.extend_from_slice(&tx.files.read(&part.id)?);
        }
        Some(bytes)
    });
    match found {
        Some(bytes) => {
            let mime = infer::get(&bytes).map_or("application/octet-stream", |kind| kind.mime_type());
            let response = Response::bytes(200, mime, bytes.into()).with("x-content-type-options", "nosniff");
            Response { is_page: true, ..response }
        }
        None => Response { is_page: true, ..Response::empty(404) }.because(State),
    }
}

/// Returns a medium of this user.
fn own(tx: &Transaction, user: &str, id: &str) -> Result<Media, Response> {
    let media = get(tx, id).filter(|media| tx.now - media.created_at < TimeDelta::seconds(EXPIRES_SECONDS));
    let media = media.ok_or_else(|| invalid(State, "media_id", id, "Your media IDs are invalid."))?;
    if media.owner == user { Ok(media) } else { Err(not_permitted(State)) }
}

/// Returns the bytes of a request and the other fields: from a form, or from JSON with base64.
fn bytes(tx: &Transaction, request: &Request) -> Result<(Upload, Vec<(String, String)>), Response> {
    if let Some(upload) = &request.upload {
        return Ok((upload.clone(), request.fields.clone()));
    }
    let body = request.json().unwrap_or(Value::Null);
    let decoded = body["media"].as_str().and_then(|text| BASE64_STANDARD.decode(text).ok());
    let Some(decoded) = decoded else {
        return Err(invalid(Protocol, "media", "", "$.media: is missing but it is required"));
    };
    let upload = tx
        .files
        .store_bytes(decoded.into())
        .map_err(|error| problem(State, 500, "Internal Server Error", &error.to_string()))?;
    let fields =
        body.as_object().into_iter().flatten().filter(|(name, _)| *name != "media").map(|(name, value)| {
            (name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        });
    Ok((upload, fields.collect()))
}

/// Checks an upload. An invalid image is refused now, an invalid video while it is processed.
fn finish(tx: &mut Transaction, media: &mut Media) -> Result<(), Response> {
    let Some(first) = media.parts.get(&0) else {
        return Err(invalid(Protocol, "media", "", "The media is empty."));
    };
    (media.mime, media.pixels) = (first.mime.clone(), first.pixels);
    let has_word = |word: &str| {
        media.parts.values().any(|part| part.name.as_ref().is_some_and(|name| name.contains(word)))
    };
    (media.is_stuck, media.is_failing) = (has_word("sandbox-stuck"), has_word("sandbox-failed"));
    if media.size_bytes() > ceiling(&media.category) {
        return Err(invalid(Content("media_too_large"), "media", "", &too_large(&media.category)));
    }
    let mime = media.mime.as_deref().unwrap_or("unknown");
    let is_image =
        matches!(mime, "image/jpeg" | "image/png" | "image/webp" | "image/gif" | "image/bmp" | "image/tiff");
    let is_fine = match media.category.as_str() {
        "tweet_image" | "dm_image" => is_image,
        "tweet_gif" | "dm_gif" => mime == "image/gif",
        _ => true,
    };
    if !is_fine {
        return Err(invalid(
            Content("image_type"),
            "media",
            mime,
            &format!("media type unrecognized for {}.", media.category),
        ));
    }
    media.finished_at = Some(tx.now);
    if media.category.ends_with("video") {
        let kept = media.parts.values().filter_map(|part| tx.files.read(&part.id));
        media.play_time_ms = kept.into_iter().find_map(|bytes| play_time_ms(&bytes));
    }
    tx.store.put(media);
    Ok(())
}

fn too_large(category: &str) -> String {
    format!("File size exceeds {} bytes.", ceiling(category))
}
