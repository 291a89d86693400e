//! Media: <https://docs.x.com/x-api/media/quickstart/media-upload-chunked>.
//!
//! In one request, or in segments that are put together by `finalize`; videos and GIFs are then
//! processed for a while, which the clock alone decides. A medium belongs to whoever uploaded it.

use super::{Answer, Call, QUARTER, Record, Rule, Turn, admit, body, invalid, not_permitted, problem};
use crate::{
    figures::figure,
    files::{KEPT_BYTES, Upload},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::LazyLock};

const UPLOAD: Rule = Rule { name: "x.uploads", limit: 500, seconds: QUARTER };
const INITIALIZE: Rule = Rule { name: "x.initializes", limit: 1_875, seconds: QUARTER };
const APPEND: Rule = Rule { name: "x.appends", limit: 1_875, seconds: QUARTER };
const FINALIZE: Rule = Rule { name: "x.finalizes", limit: 1_875, seconds: QUARTER };
const METADATA: Rule = Rule { name: "x.metadata", limit: 500, seconds: QUARTER };
const STATUS: Rule = Rule { name: "x.status", limit: 1_000, seconds: QUARTER };

const SCOPE: &[&str] = &["media.write"];
const EXPIRES_SECONDS: i64 = 86_400;
const MEGABYTE: u64 = 1024 * 1024;
const SEGMENT_BYTES: u64 = 5 * MEGABYTE;

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

/// A medium, whole or on its way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Media {
    /// Its id.
    pub(super) id: String,
    owner: String,
    also: Vec<String>,
    /// What it is to be used for.
    pub(super) category: String,
    declared: Option<String>,
    total_bytes: u64,
    /// Its segments by their index.
    pub(super) parts: BTreeMap<u16, Upload>,
    created_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
    /// What its bytes are.
    pub(super) mime: Option<String>,
    pixels: Option<(u32, u32)>,
    /// What it shows.
    pub(super) alt: Option<String>,
    is_stuck: bool,
    is_failing: bool,
}

impl Record for Media {
    const SHELF: &'static str = "x.media";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// The medium with this id.
pub(super) fn get(turn: &Turn<'_>, id: &str) -> Option<Media> {
    turn.shelf.get(id)
}

/// Whether one post by this user may have these media: known, theirs, ready, fresh, and of one kind.
pub(super) fn are_usable(turn: &Turn<'_>, user: &str, ids: &[String]) -> bool {
    let media: Vec<Media> = ids.iter().filter_map(|id| get(turn, id)).collect();
    let is_usable = |media: &Media| {
        (media.owner == user || media.also.iter().any(|id| id == user))
            && media.is_ready(turn)
            && turn.now - media.created_at < TimeDelta::seconds(EXPIRES_SECONDS)
    };
    let kind = |media: &Media| (!media.category.ends_with("image")).then(|| media.category.clone());
    let is_mixed = media.len() > 1 && media.iter().any(|media| kind(media).is_some());
    media.len() == ids.len() && media.iter().all(is_usable) && !is_mixed
}

impl Media {
    fn is_moving(&self) -> bool {
        self.category.ends_with("video") || self.category.ends_with("gif")
    }

    fn size_bytes(&self) -> u64 {
        self.parts.values().map(|part| part.size_bytes).sum()
    }

    fn is_ready(&self, turn: &Turn<'_>) -> bool {
        self.finished_at.is_some() && self.processing(turn).is_none_or(|state| state["state"] == "succeeded")
    }

    /// Under which posts list it; the number before tells the kind.
    pub(super) fn media_key(&self) -> String {
        let kind = match self.category.as_str() {
            "tweet_gif" | "dm_gif" => 16,
            "amplify_video" => 13,
            category if category.ends_with("video") => 7,
            _ => 3,
        };
        format!("{kind}_{}", self.id)
    }

    /// `processing_info`; absent where there is nothing to process.
    fn processing(&self, turn: &Turn<'_>) -> Option<Value> {
        let finished_at = self.finished_at?;
        if !self.is_moving() && !self.is_stuck {
            return None;
        }
        let needed = i64::try_from(turn.settings.processing_ms).unwrap_or(i64::MAX);
        let spent = (turn.now - finished_at).num_milliseconds();
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

    fn data(&self, turn: &Turn<'_>) -> Value {
        let left = EXPIRES_SECONDS - (turn.now - self.created_at).num_seconds();
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
        if let Some(info) = self.processing(turn) {
            data["processing_info"] = info;
        }
        data
    }

    /// As an expansion of a post shows it.
    pub(super) fn view(&self, turn: &Turn<'_>, fields: &[String]) -> Value {
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
                    json!({ "view_count": figure(&self.id, "views", turn.now - self.created_at, 9_000) })
                }
                _ => continue,
            };
            view[field] = value;
        }
        view
    }
}

/// The most bytes that a category takes.
fn ceiling(category: &str) -> u64 {
    match category {
        "tweet_image" | "dm_image" => 5 * MEGABYTE,
        "tweet_gif" | "dm_gif" => 15 * MEGABYTE,
        "subtitles" => MEGABYTE,
        _ => 512 * MEGABYTE,
    }
}

/// `POST /2/media/upload`: all at once.
pub(super) fn upload(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, SCOPE, UPLOAD)?;
    let refused = |answer: Answer| caller.window(answer);
    let (upload, fields) = bytes(turn, call).map_err(refused)?;
    let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    let category = field("media_category").unwrap_or_default();
    if !CATEGORIES.contains(&category.as_str()) {
        let message =
            format!("$.media_category: does not have a value in the enumeration [{}]", CATEGORIES.join(", "));
        return Err(refused(invalid("media_category", &category, &message)));
    }
    let mut media = Media {
        id: super::snowflake(turn),
        owner: caller.account.id.clone(),
        also: field("additional_owners")
            .map(|ids| ids.split(',').map(str::to_owned).collect())
            .unwrap_or_default(),
        category,
        declared: field("media_type"),
        total_bytes: upload.size_bytes,
        parts: BTreeMap::from([(0, upload)]),
        created_at: turn.now,
        finished_at: None,
        mime: None,
        pixels: None,
        alt: None,
        is_stuck: false,
        is_failing: false,
    };
    finish(turn, &mut media).map_err(refused)?;
    let data = media.data(turn);
    Ok(caller.reply(200, &json!({ "data": data })))
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
pub(super) fn initialize(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, SCOPE, INITIALIZE)?;
    let body = body(call, &INITIALIZE_SCHEMA).map_err(|answer| caller.window(answer))?;
    let declared = body["media_type"].as_str().unwrap_or_default();
    // Without a category it is what its type makes it.
    let category = body["media_category"].as_str().unwrap_or(match declared {
        "image/gif" => "tweet_gif",
        _ if declared.starts_with("video/") => "tweet_video",
        _ if declared.starts_with("text/") => "subtitles",
        _ => "tweet_image",
    });
    let total_bytes = body["total_bytes"].as_u64().unwrap_or_default();
    if total_bytes > ceiling(category) {
        let text = total_bytes.to_string();
        return Err(caller.window(invalid("total_bytes", &text, &too_large(category))));
    }
    let media = Media {
        id: super::snowflake(turn),
        owner: caller.account.id.clone(),
        also: serde_json::from_value(body["additional_owners"].clone()).unwrap_or_default(),
        category: category.to_owned(),
        declared: Some(declared.to_owned()),
        total_bytes,
        parts: BTreeMap::new(),
        created_at: turn.now,
        finished_at: None,
        mime: None,
        pixels: None,
        alt: None,
        is_stuck: false,
        is_failing: false,
    };
    turn.shelf.put(&media);
    let data = media.data(turn);
    Ok(caller.reply(200, &json!({ "data": data })))
}

/// `POST /2/media/upload/{id}/append`. A segment that is sent again takes the place of the first.
pub(super) fn append(turn: &mut Turn<'_>, call: &Call, id: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, SCOPE, APPEND)?;
    let refused = |answer: Answer| caller.window(answer);
    let mut media = own(turn, &caller.account.id, id).map_err(refused)?;
    let (upload, fields) = bytes(turn, call).map_err(refused)?;
    let index = fields.iter().find(|(key, _)| key == "segment_index").map(|(_, value)| value.as_str());
    let Some(Ok(index @ 0..=999)) = index.map(str::parse::<u16>) else {
        return Err(refused(invalid(
            "segment_index",
            index.unwrap_or_default(),
            "$.segment_index: has to be 0 to 999",
        )));
    };
    if media.finished_at.is_some() {
        return Err(refused(invalid("id", id, "The media was finalized already.")));
    }
    if upload.size_bytes > SEGMENT_BYTES {
        return Err(refused(invalid("media", "", "A segment may have 5 MB at most.")));
    }
    let others: u64 =
        media.parts.iter().filter(|(at, _)| **at != index).map(|(_, part)| part.size_bytes).sum();
    if others + upload.size_bytes > KEPT_BYTES {
        // Nobody can look at a part of a file; what is known of it stays.
        for part in media.parts.values().chain([&upload]) {
            turn.files.discard(&part.id);
        }
    }
    if let Some(replaced) = media.parts.insert(index, upload) {
        turn.files.discard(&replaced.id);
    }
    turn.shelf.put(&media);
    let expires_at = (media.created_at + TimeDelta::seconds(EXPIRES_SECONDS)).timestamp();
    Ok(caller.reply(200, &json!({ "data": { "expires_at": expires_at } })))
}

/// `POST /2/media/upload/{id}/finalize`.
pub(super) fn finalize(turn: &mut Turn<'_>, call: &Call, id: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, SCOPE, FINALIZE)?;
    let refused = |answer: Answer| caller.window(answer);
    let mut media = own(turn, &caller.account.id, id).map_err(refused)?;
    if media.finished_at.is_none() {
        let is_gapless = media.parts.keys().copied().eq(0..media.parts.len() as u16);
        if !is_gapless || media.size_bytes() != media.total_bytes {
            return Err(refused(invalid("id", id, "Segments do not add up to provided total file size.")));
        }
        finish(turn, &mut media).map_err(refused)?;
    }
    let data = media.data(turn);
    Ok(caller.reply(200, &json!({ "data": data })))
}

/// `GET /2/media/upload?command=STATUS`.
pub(super) fn status(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, SCOPE, STATUS)?;
    let refused = |answer: Answer| caller.window(answer);
    if call.query("command").is_some_and(|command| command != "STATUS") {
        return Err(refused(invalid(
            "command",
            call.query("command").unwrap_or_default(),
            "has to be STATUS",
        )));
    }
    let id = call.query("media_id").unwrap_or_default();
    let media = own(turn, &caller.account.id, id).map_err(refused)?;
    let data = media.data(turn);
    Ok(caller.reply(200, &json!({ "data": data })))
}

static METADATA_SCHEMA: LazyLock<Value> = LazyLock::new(|| {
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
                    "allow_download_status": { "type": "object", "properties": { "allow_download": { "type": "boolean" } } },
                },
            },
        },
    })
});

/// `POST /2/media/metadata`.
pub(super) fn metadata(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, SCOPE, METADATA)?;
    let refused = |answer: Answer| caller.window(answer);
    let body = body(call, &METADATA_SCHEMA).map_err(refused)?;
    let mut media =
        own(turn, &caller.account.id, body["id"].as_str().unwrap_or_default()).map_err(refused)?;
    if let Some(alt) = body["metadata"]["alt_text"]["text"].as_str() {
        media.is_stuck |= alt.contains("sandbox-stuck");
        media.is_failing |= alt.contains("sandbox-failed");
        media.alt = Some(alt.to_owned());
    }
    turn.shelf.put(&media);
    Ok(caller.reply(200, &json!({ "data": { "id": media.id, "associated_metadata": body["metadata"] } })))
}

/// `POST /2/media/subtitles`. Taken and shown nowhere.
pub(super) fn subtitles(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, SCOPE, METADATA)?;
    let refused = |answer: Answer| caller.window(answer);
    let text = json!({ "type": "string" });
    let body = body(call, &json!({
        "type": "object",
        "required": ["id", "media_category", "subtitles"],
        "properties": {
            "id": { "type": "string", "digits": true },
            "media_category": { "type": "string", "enum": ["AmplifyVideo", "TweetVideo"] },
            "subtitles": {
                "type": "object",
                "required": ["id", "language_code"],
                "properties": { "id": { "type": "string", "digits": true }, "language_code": text, "display_name": text },
            },
        },
    }))
    .map_err(refused)?;
    for id in [&body["id"], &body["subtitles"]["id"]] {
        own(turn, &caller.account.id, id.as_str().unwrap_or_default()).map_err(refused)?;
    }
    Ok(caller.reply(
        200,
        &json!({ "data": {
        "id": body["id"],
        "media_category": body["media_category"],
        "associated_subtitles": [body["subtitles"]],
    } }),
    ))
}

/// The bytes of a medium, at the addresses that posts give.
pub(super) fn serve(turn: &Turn<'_>, name: &str) -> Answer {
    let id = name.split('.').next().unwrap_or_default();
    let found = get(turn, id).and_then(|media| {
        let mut bytes = Vec::new();
        for part in media.parts.values() {
            bytes.extend_from_slice(&turn.files.read(&part.id)?);
        }
        Some(bytes)
    });
    match found {
        Some(bytes) => {
            let mime = infer::get(&bytes).map_or("application/octet-stream", |kind| kind.mime_type());
            let answer = Answer::bytes(200, mime, bytes.into()).with("x-content-type-options", "nosniff");
            Answer { is_page: true, ..answer }
        }
        None => Answer { is_page: true, ..Answer::empty(404) },
    }
}

/// The medium, if it is this user's.
fn own(turn: &Turn<'_>, user: &str, id: &str) -> Result<Media, Answer> {
    let media =
        get(turn, id).filter(|media| turn.now - media.created_at < TimeDelta::seconds(EXPIRES_SECONDS));
    let media = media.ok_or_else(|| invalid("media_id", id, "Your media IDs are invalid."))?;
    if media.owner == user { Ok(media) } else { Err(not_permitted()) }
}

/// The bytes of a request and the fields beside them: a form's part, or base64 in JSON.
fn bytes(turn: &Turn<'_>, call: &Call) -> Result<(Upload, Vec<(String, String)>), Answer> {
    if let Some(upload) = &call.upload {
        return Ok((upload.clone(), call.fields.clone()));
    }
    let body = call.json().unwrap_or(Value::Null);
    let decoded = body["media"].as_str().and_then(|text| BASE64_STANDARD.decode(text).ok());
    let Some(decoded) = decoded else {
        return Err(invalid("media", "", "$.media: is missing but it is required"));
    };
    let upload = turn
        .files
        .keep(decoded.into())
        .map_err(|error| problem(500, "Internal Server Error", &error.to_string()))?;
    let fields =
        body.as_object().into_iter().flatten().filter(|(name, _)| *name != "media").map(|(name, value)| {
            (name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        });
    Ok((upload, fields.collect()))
}

/// Looks at what was uploaded. An image that is none is refused now, a video while it is processed.
fn finish(turn: &mut Turn<'_>, media: &mut Media) -> Result<(), Answer> {
    let Some(first) = media.parts.get(&0) else { return Err(invalid("media", "", "The media is empty.")) };
    (media.mime, media.pixels) = (first.mime.clone(), first.pixels);
    let has_word = |word: &str| {
        media.parts.values().any(|part| part.name.as_ref().is_some_and(|name| name.contains(word)))
    };
    (media.is_stuck, media.is_failing) = (has_word("sandbox-stuck"), has_word("sandbox-failed"));
    if media.size_bytes() > ceiling(&media.category) {
        return Err(invalid("media", "", &too_large(&media.category)));
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
        return Err(invalid("media", mime, &format!("media type unrecognized for {}.", media.category)));
    }
    media.finished_at = Some(turn.now);
    turn.shelf.put(media);
    Ok(())
}

fn too_large(category: &str) -> String {
    format!("File size exceeds {} bytes.", ceiling(category))
}
