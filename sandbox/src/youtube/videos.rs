//! Videos: <https://developers.google.com/youtube/v3/docs/videos> and
//! <https://developers.google.com/youtube/v3/guides/using_resumable_upload_protocol>.
//!
//! An invalid description is refused when the upload begins; the video exists from its last byte on, and the
//! upload's address keeps returning it. Processing depends on the clock only.

use super::{
    Account, DAY, ID, Outcome, READ, RateLimit, Record, Request, Response, STATS, Transaction, UPLOAD,
    YouTube, account, admit_to, body, captions, comments, error, etag, google, ids, insufficient,
    long_uploads, parts, playlists, refusal,
    related::related,
    select_parts, spend_insert, time,
    video::{Video, by, get},
};
use crate::exchange::Cause::{self, Content, Protocol, State};
use crate::{
    fake_metrics::figure,
    fault,
    files::{MAX_KEPT_BYTES, Upload as Bytes},
    movie::Movie,
    simulator::Simulator,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Uploads of a project per day.
const INSERTS: RateLimit = RateLimit::new("youtube.inserts", 100, DAY);
/// Uploads of a channel per day; YouTube does not publish the limit.
const CHANNEL: RateLimit = RateLimit::new("youtube.channel_uploads", 100, DAY);

/// All pieces of an upload but the last are multiples of this.
const GRAIN: u64 = 256 << 10;
const LARGEST: u64 = 256 << 30;
const THUMBNAIL_BYTES: u64 = 50 << 20;
const SESSION_DAYS: i64 = 7;
/// Seconds that a video of any channel may have.
const USUAL_SECONDS: f64 = 900.0;

const PARTS: [&str; 13] = [
    "id",
    "snippet",
    "status",
    "statistics",
    "contentDetails",
    "processingDetails",
    "fileDetails",
    "paidProductPlacementDetails",
    "player",
    "localizations",
    "recordingDetails",
    "topicDetails",
    "suggestions",
];

/// An upload in progress.
#[derive(Clone, Serialize, Deserialize)]
struct Session {
    id: String,
    channel: String,
    resource: Value,
    parts: Vec<String>,
    pieces: Vec<Bytes>,
    stored: u64,
    total: Option<u64>,
    name: Option<String>,
    video: Option<String>,
    expires_at: DateTime<Utc>,
}

impl Record for Session {
    const TABLE: &'static str = "youtube.upload";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// Returns the id of the account behind an upload.
pub(super) fn uploader(tx: &Transaction, id: &str) -> Option<String> {
    tx.store.get::<Session>(id).map(|session| session.channel)
}

impl Video {
    /// Returns the whole resource, with private parts for the owner only.
    pub(super) fn resource(&self, tx: &Transaction, is_owner: bool) -> Value {
        let age = tx.now - self.uploaded_at;
        let (state, why) = self.state(tx);
        let picture = |name: &str, width: u32, height: u32| {
            let url = format!("https://i.ytimg.com/vi/{}/{name}.jpg", self.id);
            json!({ "url": url, "width": width, "height": height })
        };
        let channel = account::by_id(tx.store, ID, &self.channel);
        let title = channel.map_or_else(String::new, |channel| channel.display_name());
        let mut snippet = self.snippet.clone();
        snippet["publishedAt"] = json!(time(self.uploaded_at));
        snippet["channelId"] = json!(self.channel);
        snippet["channelTitle"] = json!(title);
        snippet["liveBroadcastContent"] = json!("none");
        snippet["localized"] = json!({ "title": self.title(), "description": self.description() });
        snippet["thumbnails"] = json!({
            "default": picture("default", 120, 90),
            "medium": picture("mqdefault", 320, 180),
            "high": picture("hqdefault", 480, 360),
        });
        let mut status = self.status.clone();
        status["uploadStatus"] = json!(state);
        if let Some(why) = why {
            status[if state == "rejected" { "rejectionReason" } else { "failureReason" }] = json!(why);
        }
        let count = |name: &str, ceiling: u64| figure(&self.id, name, age, ceiling).to_string();
        let said = comments::under(tx, &self.id).count();
        let mut resource = json!({
            "kind": "youtube#video",
            "etag": etag(&json!([self.snippet, self.status, state])),
            "id": self.id,
            "snippet": snippet,
            "status": status,
            "statistics": {
                "viewCount": count("views", 90_000),
                "likeCount": count("likes", 4_000),
                "favoriteCount": "0",
                "commentCount": said.to_string(),
            },
            "contentDetails": {
                "duration": if state == "processed" { "PT5S" } else { "P0D" },
                "dimension": "2d",
                "definition": "sd",
                "caption": captions::of(tx, &self.id).any(|track| track.is_shown()).to_string(),
                "licensedContent": false,
                "contentRating": {},
                "projection": "rectangular",
                "hasCustomThumbnail": self.thumbnail.is_some(),
            },
            "player": { "embedHtml": format!("<iframe src=\"//www.youtube.com/embed/{}\"></iframe>", self.id) },
            "recordingDetails": self.recording,
        });
        if self.localizations.as_object().is_some_and(|all| !all.is_empty()) {
            resource["localizations"] = self.localizations.clone();
        }
        if is_owner {
            let mut details = match (state, why) {
                ("uploaded", _) => json!({
                    "processingStatus": "processing",
                    "processingProgress": { "partsTotal": "100", "partsProcessed": "50", "timeLeftMs": "1000" },
                }),
                ("failed", _) => {
                    json!({ "processingStatus": "failed", "processingFailureReason": "transcodeFailed" })
                }
                ("rejected", _) => json!({ "processingStatus": "terminated" }),
                _ => json!({ "processingStatus": "succeeded" }),
            };
            details["fileDetailsAvailability"] = json!("available");
            details["thumbnailsAvailability"] = json!("available");
            resource["processingDetails"] = details;
            resource["paidProductPlacementDetails"] =
                json!({ "hasPaidProductPlacement": self.has_paid_promotion });
            resource["fileDetails"] = json!({
                "fileName": self.name,
                "fileSize": self.size_bytes.to_string(),
                "fileType": "video",
            });
        }
        resource
    }
}

/// `POST /upload/youtube/v3/videos`: in one request, or as the first of several.
pub(super) fn insert(tx: &mut Transaction, request: &Request) -> Outcome {
    let token = google::find(tx, request, ID).ok_or_else(google::unauthenticated)?;
    if !token.has_any_scope(UPLOAD) {
        return Err(insufficient());
    }
    let caller = account::by_id(tx.store, ID, &token.user).ok_or_else(google::unauthenticated)?;
    let parts = parts(request, &PARTS)?;
    let kind = request.query("uploadType").or_else(|| request.header("x-goog-upload-protocol"));
    let (described, bytes) = match kind {
        Some("resumable") => (request.json().unwrap_or(Value::Null), None),
        Some("multipart") => related(tx, request)?,
        _ => (Value::Null, request.upload.clone()),
    };
    let mut resource = resource(tx, &parts, &described, &Map::new())?;
    if caller.username.starts_with("locked")
        && let Some(status) = resource["status"].as_object_mut()
    {
        status.insert("privacyStatus".into(), json!("private"));
        status.remove("publishAt");
    }
    spend_insert(tx, INSERTS)?;
    if tx.spend(CHANNEL, &caller.id, 1).is_err() {
        return Err(error(
            State,
            400,
            "youtube.video",
            "uploadLimitExceeded",
            "The user has exceeded the number of videos they may upload.",
        ));
    }
    let declared = request.header("x-upload-content-length").and_then(|length| length.parse::<u64>().ok());
    if declared.is_some_and(|length| length > LARGEST) {
        return Err(error(
            Content("video_too_large"),
            413,
            "global",
            "uploadTooLarge",
            "Media is too large. Limit: 274877906944",
        ));
    }
    if let Some(mime) = request.header("x-upload-content-type").filter(|mime| !is_taken(mime)) {
        let message = format!(
            "Media type '{mime}' is not supported. Valid media types: [video/*, application/octet-stream]"
        );
        return Err(error(Content("video_type"), 400, "global", "badContent", &message));
    }
    let session = Session {
        id: format!("A{}", crate::tokens::random()),
        channel: caller.id.clone(),
        resource,
        parts,
        pieces: Vec::new(),
        stored: 0,
        total: declared,
        name: request.header("slug").map(str::to_owned),
        video: None,
        expires_at: tx.now + TimeDelta::days(SESSION_DAYS),
    };
    match (kind, bytes) {
        (Some("resumable"), _) => {
            tx.store.put(&session);
            // An address of this sandbox: the client would look for the real host elsewhere.
            let origin = format!("http://{}", request.header("host").unwrap_or("localhost"));
            let host = if request.host.is_empty() { String::new() } else { format!("/{}", request.host) };
            let query: Vec<_> = session.parts.clone();
            let location = format!(
                "{origin}{host}{}?uploadType=resumable&part={}&upload_id={}",
                request.path,
                query.join(","),
                session.id
            );
            Ok(Response::empty(200).with("location", location).with("x-guploader-uploadid", session.id))
        }
        (_, Some(bytes)) => {
            let session = Session { pieces: vec![bytes], ..session };
            finish(tx, request, session, &caller)
        }
        (_, None) => Err(refusal(
            Protocol,
            400,
            "mediaBodyRequired",
            "The request does not include the video content.",
        )),
    }
}

/// `PUT` to an upload's address: a piece, the whole, or a status query.
pub(super) fn resume(tx: &mut Transaction, request: &Request) -> Outcome {
    let gone = || error(State, 404, "global", "notFound", "Not Found");
    let mut session: Session = request.query("upload_id").and_then(|id| tx.store.get(id)).ok_or_else(gone)?;
    if session.expires_at <= tx.now {
        return Err(gone());
    }
    // The address is enough; a token, if sent, has to be valid.
    if request.bearer().is_some() && google::find(tx, request, ID).is_none() {
        return Err(google::unauthenticated());
    }
    let piece =
        request.upload.clone().ok_or_else(|| error(Protocol, 400, "global", "badRequest", "Bad Request"))?;
    if let Some(id) = &session.video {
        tx.files.discard(&piece.id);
        let video = get(tx, id).ok_or_else(gone)?;
        return Ok(Response::json(200, &select_parts(video.resource(tx, true), &session.parts)));
    }
    let refuse = |tx: &Transaction, message: &str| {
        tx.files.discard(&piece.id);
        Err(error(Protocol, 400, "global", "badRequest", message))
    };
    let range = match request.header("content-range") {
        None => Some((0, piece.size_bytes, Some(piece.size_bytes))),
        Some(text) => match range(text) {
            Some(range) => range,
            None => return refuse(tx, "Failed to parse Content-Range header."),
        },
    };
    let Some((first, length, total)) = range else {
        // A status query.
        tx.files.discard(&piece.id);
        return Ok(incomplete(&session));
    };
    if length != piece.size_bytes {
        return refuse(tx, "Content-Range does not fit the length of the body.");
    }
    if let (Some(before), Some(now)) = (session.total, total)
        && before != now
    {
        return refuse(tx, "The total size differs from what the upload began with.");
    }
    if first != session.stored {
        // Nothing is stored; the response says where to continue.
        tx.files.discard(&piece.id);
        return Ok(incomplete(&session));
    }
    let is_last = total.is_some_and(|total| first + length == total);
    if !is_last && (length == 0 || length % GRAIN != 0) {
        return refuse(tx, "The number of bytes of all but the last request has to be a multiple of 262144.");
    }
    session.total = total.or(session.total);
    session.pieces.push(piece);
    let caller = account::by_id(tx.store, ID, &session.channel).ok_or_else(gone)?;
    if is_last {
        return finish(tx, request, session, &caller);
    }
    session.stored += length;
    let kept: u64 = session.pieces.iter().map(|piece| piece.size_bytes).sum();
    if kept > MAX_KEPT_BYTES {
        // A part of a video can't be shown; only its metadata is kept.
        for piece in &session.pieces {
            tx.files.discard(&piece.id);
        }
    }
    tx.store.put(&session);
    Ok(incomplete(&session))
}

fn incomplete(session: &Session) -> Response {
    let response = Response::empty(308).with("x-guploader-uploadid", &session.id);
    match session.stored {
        0 => response,
        stored => response.with("range", format!("bytes=0-{}", stored - 1)),
    }
}

/// Parses a `Content-Range`; its inner `None` is a status query.
type Range = Option<(u64, u64, Option<u64>)>;

fn range(text: &str) -> Option<Range> {
    let (span, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let total = match total {
        "*" => None,
        total => Some(total.parse::<u64>().ok()?),
    };
    if span == "*" {
        return Some(None);
    }
    let (first, last) = span.split_once('-')?;
    let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
    let length = last.checked_sub(first)? + 1;
    Some(Some((first, length, total)))
}

/// Finishes an upload: the video exists from now on, unless a fault applies.
fn finish(tx: &mut Transaction, request: &Request, mut session: Session, caller: &Account) -> Outcome {
    let snippet = &session.resource["snippet"];
    let title = snippet["title"].as_str().unwrap_or_default().to_owned();
    let words = match snippet["description"].as_str() {
        None | Some("") => title.clone(),
        Some(words) => words.to_owned(),
    };
    let fault = match fault::trigger(tx, ID, &caller.username, &words) {
        Ok(fault) => fault,
        Err(fault) => {
            if let Some(piece) = session.pieces.last() {
                tx.files.discard(&piece.id);
            }
            return Err(YouTube.fail(tx, request, fault));
        }
    };
    let marked = session.name.clone().unwrap_or(title);
    let pieces = std::mem::take(&mut session.pieces);
    let size_bytes = pieces.iter().map(|piece| piece.size_bytes).sum();
    let mime = pieces.first().and_then(|piece| piece.mime.clone()).unwrap_or_else(|| "unknown".to_owned());
    let files = join(tx, &pieces);
    let seconds = match files.as_slice() {
        [file] => tx.files.read(file).and_then(|bytes| Movie::read(&bytes).seconds),
        _ => None,
    };
    let video = Video {
        id: crate::tokens::random()[..11].to_owned(),
        channel: caller.id.clone(),
        snippet: session.resource["snippet"].clone(),
        status: session.resource["status"].clone(),
        has_paid_promotion: session.resource["paidProductPlacementDetails"]["hasPaidProductPlacement"]
            == json!(true),
        localizations: session.resource["localizations"].clone(),
        recording: session.resource["recordingDetails"].clone(),
        files,
        is_stuck: marked.contains("sandbox-stuck"),
        is_failing: marked.contains("sandbox-failed"),
        is_too_long: long_uploads(caller) != "allowed"
            && seconds.is_some_and(|length| length > USUAL_SECONDS),
        mime,
        thumbnail: None,
        size_bytes,
        name: session.name.clone(),
        uploaded_at: tx.now,
    };
    tx.store.put(&video);
    tx.store.link("youtube.upload", &caller.id, &video.id);
    session.video = Some(video.id.clone());
    session.stored = size_bytes;
    let resource = select_parts(video.resource(tx, true), &session.parts);
    tx.store.put(&session);
    let response = Response::json(200, &resource).with_fault(fault);
    // A video that can't be processed is never published.
    Ok(if video.is_failing || video.is_too_long { response } else { response.with_post(video.id) })
}

/// Joins the pieces of a video, if they were stored.
fn join(tx: &Transaction, pieces: &[Bytes]) -> Vec<String> {
    let own = || pieces.iter().map(|piece| piece.id.clone()).collect();
    if pieces.len() == 1 {
        return own();
    }
    let mut whole = Vec::new();
    for piece in pieces {
        match tx.files.read(&piece.id) {
            Some(bytes) if (whole.len() + bytes.len()) as u64 <= MAX_KEPT_BYTES => {
                whole.extend_from_slice(&bytes)
            }
            _ => return own(),
        }
    }
    match tx.files.store_bytes(whole.into()) {
        Ok(joined) => {
            pieces.iter().for_each(|piece| tx.files.discard(&piece.id));
            vec![joined.id]
        }
        Err(_) => own(),
    }
}

fn is_taken(mime: &str) -> bool {
    mime.starts_with("video/") || mime == "application/octet-stream"
}

/// Merges the parts of a request into the previous ones.
fn resource(
    tx: &Transaction,
    parts: &[String],
    described: &Value,
    before: &Map<String, Value>,
) -> Result<Value, Response> {
    let has = |part: &str| parts.iter().any(|name| name == part);
    let mut snippet =
        before.get("snippet").cloned().unwrap_or_else(|| json!({ "title": "unknown", "description": "" }));
    if has("snippet") && described["snippet"].is_object() {
        snippet = self::snippet(&described["snippet"])?;
    }
    let mut status = before.get("status").cloned().unwrap_or_else(|| {
        json!({
            "privacyStatus": "public",
            "license": "youtube",
            "embeddable": true,
            "publicStatsViewable": true,
            "madeForKids": false,
        })
    });
    if has("status") && described["status"].is_object() {
        let given = &described["status"];
        let privacy = given["privacyStatus"].as_str().unwrap_or("public");
        if !["public", "unlisted", "private"].contains(&privacy) {
            return Err(invalid(Protocol, "invalidVideoMetadata", "The request metadata is invalid."));
        }
        status["privacyStatus"] = json!(privacy);
        if let Some(members) = status.as_object_mut() {
            members.remove("publishAt");
        }
        if let Some(at) = given["publishAt"].as_str() {
            let at = DateTime::parse_from_rfc3339(at).ok().filter(|_| privacy == "private");
            let Some(at) = at.map(|at| at.to_utc()) else {
                return Err(invalid(
                    Content("time_of_publication"),
                    "invalidPublishAt",
                    "The request metadata specifies an invalid scheduled publishing time.",
                ));
            };
            // A time in the past publishes at once.
            match at > tx.now {
                true => status["publishAt"] = json!(time(at)),
                false => status["privacyStatus"] = json!("public"),
            }
        }
        for name in [
            "license",
            "embeddable",
            "publicStatsViewable",
            "selfDeclaredMadeForKids",
            "containsSyntheticMedia",
        ] {
            if !given[name].is_null() {
                status[name] = given[name].clone();
            }
        }
        status["madeForKids"] = given.get("selfDeclaredMadeForKids").cloned().unwrap_or(json!(false));
    }
    let mut placement = before
        .get("paidProductPlacementDetails")
        .cloned()
        .unwrap_or_else(|| json!({ "hasPaidProductPlacement": false }));
    if has("paidProductPlacementDetails") {
        let given = &described["paidProductPlacementDetails"]["hasPaidProductPlacement"];
        if !given.is_null() && !given.is_boolean() {
            return Err(invalid(Protocol, "invalidVideoMetadata", "The request metadata is invalid."));
        }
        placement = json!({ "hasPaidProductPlacement": given.as_bool().unwrap_or(false) });
    }
    let part = |name: &str| if has(name) { Some(&described[name]) } else { before.get(name) };
    let localizations = localizations(part("localizations"), &snippet, has("localizations"))?;
    let recording = recording(part("recordingDetails"))?;
    Ok(json!({
        "snippet": snippet,
        "status": status,
        "paidProductPlacementDetails": placement,
        "localizations": localizations,
        "recordingDetails": recording,
    }))
}

/// Returns the title of a video and what belongs to it, if they are valid.
fn snippet(given: &Value) -> Result<Value, Response> {
    let text = |name: &str| given[name].as_str().unwrap_or_default();
    let title = text("title");
    let wrong = match () {
        () if title.trim().is_empty() => Some(Content("title_empty")),
        () if title.chars().count() > 100 => Some(Content("title_too_long")),
        () => title.contains(['<', '>']).then_some(Content("title_brackets")),
    };
    if let Some(cause) = wrong {
        return Err(invalid(
            cause,
            "invalidTitle",
            "The request metadata specifies an invalid or empty video title.",
        ));
    }
    let is_long = text("description").len() > 5_000;
    if is_long || text("description").contains(['<', '>']) {
        return Err(invalid(
            Content(if is_long { "text_too_long" } else { "text_brackets" }),
            "invalidDescription",
            "The request metadata specifies an invalid video description.",
        ));
    }
    let tags: Vec<&str> = given["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let weight: usize =
        tags.iter().map(|tag| tag.chars().count() + if tag.contains(' ') { 2 } else { 0 }).sum::<usize>()
            + tags.len().saturating_sub(1);
    let has_brackets = tags.iter().any(|tag| tag.contains(['<', '>']));
    if weight > 500 || has_brackets || tags.contains(&"") {
        let cause = match () {
            () if weight > 500 => Content("tags_too_long"),
            () if has_brackets => Content("tags_brackets"),
            () => Content("tag_empty"),
        };
        return Err(invalid(cause, "invalidTags", "The request metadata specifies invalid video keywords."));
    }
    let category = given["categoryId"].as_str().unwrap_or("22");
    if !CATEGORIES.iter().any(|(id, _, is_open)| *id == category && *is_open) {
        return Err(invalid(
            State,
            "invalidCategoryId",
            "The request metadata specifies an invalid category ID.",
        ));
    }
    let mut snippet = json!({ "title": title, "description": text("description"), "categoryId": category });
    if !tags.is_empty() {
        snippet["tags"] = json!(tags);
    }
    for name in ["defaultLanguage", "defaultAudioLanguage"] {
        if let Some(value) = given[name].as_str() {
            // As recorded: <https://gist.github.com/alexdean/70af1b9e8687c7435ea7ee8a2cfa7b03>
            if !is_language(value) {
                return Err(invalid(
                    Content("language"),
                    "invalidVideoMetadata",
                    "The request metadata is invalid.",
                ));
            }
            snippet[name] = json!(value);
        }
    }
    Ok(snippet)
}

/// Returns title and description by language, which need the language of the snippet if they are set.
fn localizations(given: Option<&Value>, snippet: &Value, are_set: bool) -> Result<Value, Response> {
    let wrong = |cause: Cause| invalid(cause, "invalidVideoMetadata", "The request metadata is invalid.");
    let given = match given {
        None | Some(Value::Null) => return Ok(json!({})),
        Some(Value::Object(given)) => given,
        Some(_) => return Err(wrong(Protocol)),
    };
    if are_set && !given.is_empty() && !snippet["defaultLanguage"].is_string() {
        return Err(invalid(
            Content("language_missing"),
            "defaultLanguageNotSet",
            "The API request is trying to add localized video details without specifying the default language of the video details.",
        ));
    }
    for (language, localized) in given {
        let text = |name: &str| match &localized[name] {
            Value::Null => Ok(""),
            text => text.as_str().ok_or_else(|| wrong(Protocol)),
        };
        let (title, description) = (text("title")?, text("description")?);
        let is_title = !title.trim().is_empty() && title.chars().count() <= 100;
        let is_text = description.len() <= 5_000 && !format!("{title}{description}").contains(['<', '>']);
        if !is_language(language) || !is_title || !is_text {
            let cause = match () {
                () if !is_language(language) => Content("language_of_a_localization"),
                () if !is_title => Content("title_of_a_localization"),
                () => Content("text_of_a_localization"),
            };
            return Err(wrong(cause));
        }
    }
    Ok(Value::Object(given.clone()))
}

/// Returns the details of a recording: its time.
fn recording(given: Option<&Value>) -> Result<Value, Response> {
    let at = &given.unwrap_or(&Value::Null)["recordingDate"];
    if at.is_null() {
        return Ok(json!({}));
    }
    match at.as_str().map(DateTime::parse_from_rfc3339) {
        Some(Ok(at)) => Ok(json!({ "recordingDate": time(at.to_utc()) })),
        _ => Err(invalid(
            Content("recording_date"),
            "invalidRecordingDetails",
            "The recordingDetails object in the request metadata specifies invalid recording details.",
        )),
    }
}

/// Returns true for the form of a language (BCP 47).
fn is_language(text: &str) -> bool {
    let mut parts = text.split('-');
    let is_primary = parts.next().is_some_and(|part| {
        (2..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphabetic())
    });
    is_primary
        && parts.all(|part| {
            (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}

fn invalid(cause: Cause, reason: &str, message: &str) -> Response {
    error(cause, 400, "youtube.video", reason, message)
}

/// `POST /upload/youtube/v3/thumbnails/set`.
pub(super) fn thumbnail(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let Some(upload) = &request.upload else {
        return Err(error(
            Protocol,
            400,
            "youtube.thumbnail",
            "mediaBodyRequired",
            "The request does not include the image content.",
        ));
    };
    let refuse = |tx: &Transaction, cause: Cause, status: u16, reason: &str, message: &str| {
        tx.files.discard(&upload.id);
        Err(error(cause, status, "youtube.thumbnail", reason, message))
    };
    let Some(mut video) = request.query("videoId").and_then(|id| get(tx, id)) else {
        return refuse(
            tx,
            State,
            404,
            "videoNotFound",
            "The video that you are trying to insert a thumbnail image for cannot be found.",
        );
    };
    if video.channel != caller.id {
        return refuse(tx, State, 403, "forbidden", "The thumbnail can't be set for the specified video.");
    }
    if caller.username.starts_with("unverified") {
        let message =
            "The authenticated user doesn't have permissions to upload and set custom video thumbnails.";
        return refuse(tx, State, 403, "forbidden", message);
    }
    let is_image = upload.mime.as_deref().is_some_and(|mime| mime == "image/jpeg" || mime == "image/png");
    if !is_image || upload.size_bytes > THUMBNAIL_BYTES {
        let cause = Content(if is_image { "cover_too_large" } else { "cover_type" });
        return refuse(tx, cause, 400, "invalidImage", "The provided image content is invalid.");
    }
    if let Some(replaced) = video.thumbnail.replace(upload.id.clone()) {
        tx.files.discard(&replaced);
    }
    tx.store.put(&video);
    let item = video.resource(tx, true)["snippet"]["thumbnails"].clone();
    Ok(Response::json(
        200,
        &json!({ "kind": "youtube#thumbnailSetResponse", "etag": etag(&item), "items": [item] }),
    ))
}

/// `GET /youtube/v3/videos`.
pub(super) fn list(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let parts = parts(request, &PARTS)?;
    let wanted = ids(request, "id");
    if wanted.is_empty() {
        return Err(refusal(
            Protocol,
            400,
            "missingRequiredParameter",
            "No filter selected. Expected one of: myRating, id, chart",
        ));
    }
    if wanted.len() > 50 {
        return Err(refusal(
            Protocol,
            400,
            "invalidFilters",
            "The request specifies an invalid filter parameter.",
        ));
    }
    let resources: Vec<_> = wanted
        .iter()
        .filter_map(|id| get(tx, id))
        .filter(|video| video.privacy() != "private" || video.channel == caller.id)
        .map(|video| select_parts(video.resource(tx, video.channel == caller.id), &parts))
        .collect();
    let size = resources.len();
    let is_wrong =
        |id: &String| get(tx, id).is_some_and(|video| video.state(tx) == ("failed", Some("invalidFile")));
    let cause = wanted.iter().any(is_wrong).then_some(Content("file_type"));
    let body = json!({
        "kind": "youtube#videoListResponse",
        "etag": etag(&json!(resources)),
        "items": resources,
        "pageInfo": { "totalResults": size, "resultsPerPage": size },
    });
    Ok(Response::json(200, &body).because(cause))
}

/// `GET /youtube/v3/videos:batchGetStats`.
pub(super) fn stats(tx: &mut Transaction, request: &Request) -> Outcome {
    let caller = admit_to(tx, request, READ, (STATS, 1))?;
    let parts = parts(request, &["contentDetails", "id", "snippet", "statistics"])?;
    let wanted = ids(request, "id");
    if wanted.is_empty() {
        return Err(error(Protocol, 400, "global", "required", "Required parameter: id"));
    }
    if wanted.len() > 50 {
        return Err(refusal(
            Protocol,
            400,
            "invalidFilters",
            "The request specifies an invalid filter parameter.",
        ));
    }
    let videos = wanted.iter().filter_map(|id| get(tx, id));
    let shown = videos.filter(|video| video.privacy() != "private" || video.channel == caller.id);
    let items: Vec<_> = shown
        .map(|video| {
            let mut statistics = video.resource(tx, false)["statistics"].clone();
            if let Some(counts) = statistics.as_object_mut() {
                counts.remove("favoriteCount");
            }
            let stat = json!({
                "kind": "youtube#videoStats",
                "etag": etag(&statistics),
                "id": video.id,
                "snippet": { "publishTime": time(video.uploaded_at) },
                "statistics": statistics,
                "contentDetails": { "duration": "5s" },
            });
            select_parts(stat, &parts)
        })
        .collect();
    Ok(Response::json(
        200,
        &json!({ "kind": "youtube#batchGetStatsResponse", "etag": etag(&json!(items)), "items": items }),
    ))
}

/// `PUT /youtube/v3/videos`: members that a part omits are deleted.
pub(super) fn update(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let parts = parts(request, &PARTS)?;
    let body = body(request)?;
    let mut video = own(tx, caller, body["id"].as_str().unwrap_or_default())?;
    let resource = resource(tx, &parts, &body, &video.described())?;
    (video.snippet, video.status) = (resource["snippet"].clone(), resource["status"].clone());
    (video.localizations, video.recording) =
        (resource["localizations"].clone(), resource["recordingDetails"].clone());
    video.has_paid_promotion =
        resource["paidProductPlacementDetails"]["hasPaidProductPlacement"] == json!(true);
    tx.store.put(&video);
    Ok(Response::json(200, &select_parts(video.resource(tx, true), &parts)))
}

/// `DELETE /youtube/v3/videos`.
pub(super) fn delete(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let video = own(tx, caller, request.query("id").unwrap_or_default())?;
    captions::forget(tx, &video.id);
    comments::forget(tx, &video.id);
    playlists::forget(tx, &video.id);
    for file in video.files.iter().chain(&video.thumbnail) {
        tx.files.discard(file);
    }
    tx.store.unlink("youtube.upload", &caller.id, &video.id);
    tx.store.remove::<Video>(&video.id);
    Ok(Response::empty(204))
}

fn own(tx: &Transaction, caller: &Account, id: &str) -> Result<Video, Response> {
    let video = get(tx, id).ok_or_else(|| {
        error(
            State,
            404,
            "youtube.video",
            "videoNotFound",
            "The video that you are trying to change cannot be found.",
        )
    })?;
    match video.channel == caller.id {
        true => Ok(video),
        false => Err(error(
            State,
            403,
            "youtube.video",
            "forbidden",
            "The video can't be changed by this account.",
        )),
    }
}

/// Categories: id, name, and whether videos can be assigned to it.
const CATEGORIES: [(&str, &str, bool); 17] = [
    ("1", "Film & Animation", true),
    ("2", "Autos & Vehicles", true),
    ("10", "Music", true),
    ("15", "Pets & Animals", true),
    ("17", "Sports", true),
    ("18", "Short Movies", false),
    ("19", "Travel & Events", true),
    ("20", "Gaming", true),
    ("21", "Videoblogging", false),
    ("22", "People & Blogs", true),
    ("23", "Comedy", true),
    ("24", "Entertainment", true),
    ("25", "News & Politics", true),
    ("26", "Howto & Style", true),
    ("27", "Education", true),
    ("28", "Science & Technology", true),
    ("29", "Nonprofits & Activism", true),
];

/// `GET /youtube/v3/videoCategories`.
pub(super) fn categories(_: &mut Transaction, request: &Request, _caller: &Account) -> Outcome {
    let parts = parts(request, &["id", "snippet"])?;
    let wanted = ids(request, "id");
    if wanted.is_empty() && request.query("regionCode").is_none() {
        return Err(refusal(
            Protocol,
            400,
            "missingRequiredParameter",
            "No filter selected. Expected one of: id, regionCode",
        ));
    }
    let items: Vec<_> = CATEGORIES
        .iter()
        .filter(|(id, _, _)| wanted.is_empty() || wanted.iter().any(|wanted| wanted == id))
        .map(|(id, title, is_open)| {
            let snippet =
                json!({ "title": title, "assignable": is_open, "channelId": "UCBR8-60-B28hp2BmDPdntcQ" });
            let whole =
                json!({ "kind": "youtube#videoCategory", "etag": etag(&snippet), "id": id, "snippet": snippet });
            select_parts(whole, &parts)
        })
        .collect();
    Ok(Response::json(
        200,
        &json!({ "kind": "youtube#videoCategoryListResponse", "etag": etag(&json!(items)), "items": items }),
    ))
}

/// Metrics of a report, and their maximum values.
const METRICS: [(&str, u64); 10] = [
    ("views", 90_000),
    ("engagedViews", 60_000),
    ("likes", 4_000),
    ("comments", 300),
    ("shares", 700),
    ("videosAddedToPlaylists", 200),
    ("estimatedMinutesWatched", 50_000),
    ("averageViewDuration", 60),
    ("subscribersGained", 90),
    ("subscribersLost", 9),
];

/// `GET /v2/reports` of the Analytics API.
pub(super) fn report(tx: &mut Transaction, request: &Request) -> Outcome {
    let token = google::find(tx, request, ID).ok_or_else(google::unauthenticated)?;
    if !token.has_any_scope(&["yt-analytics.readonly", "yt-analytics-monetary.readonly"]) {
        return Err(insufficient());
    }
    let owner = account::by_id(tx.store, ID, &token.user).ok_or_else(google::unauthenticated)?;
    if owner.username.starts_with("denied") {
        // As recorded: with a reason that sounds transient.
        let message = "The caller does not have permission";
        let error = json!({
            "code": 403,
            "message": message,
            "errors": [{
                "message": message,
                "domain": "youtube.CoreErrorDomain",
                "reason": "SERVICE_UNAVAILABLE",
            }],
            "status": "PERMISSION_DENIED",
        });
        return Err(Response::json(403, &json!({ "error": error })).because(State));
    }
    let wrong = |message: &str| error(State, 400, "global", "badRequest", message);
    let required = |name: &str| {
        request
            .query(name)
            .ok_or_else(|| error(Protocol, 400, "global", "required", &format!("Required parameter: {name}")))
    };
    let is_day = |text: &str| chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok();
    let channel = required("ids")?.strip_prefix("channel==").unwrap_or_default();
    if channel != "MINE" && channel != token.user {
        return Err(error(State, 403, "global", "forbidden", "Forbidden"));
    }
    if !is_day(required("startDate")?) || !is_day(required("endDate")?) {
        return Err(wrong("Invalid value for a date. It has to be YYYY-MM-DD."));
    }
    let names: Vec<&str> = required("metrics")?.split(',').collect();
    // Impressions of thumbnails can't be combined with other metrics.
    let is_thumbnails = names.iter().any(|name| name.starts_with("videoThumbnailImpressions"));
    let is_known = |name: &&str| match is_thumbnails {
        true => ["videoThumbnailImpressions", "videoThumbnailImpressionsClickRate"].contains(name),
        false => METRICS.iter().any(|(known, _)| known == name),
    };
    let filter = request.query("filters").unwrap_or_default();
    if !names.iter().all(is_known)
        || request.query("dimensions").is_some_and(|by| by != "video" && by != "day")
    {
        return Err(wrong("The query is not supported. Check the documentation for supported queries."));
    }
    let wanted: Vec<String> = match filter.strip_prefix("video==") {
        Some(ids) => ids.split(',').map(str::to_owned).collect(),
        None => by(tx, &token.user).map(|video| video.id).collect(),
    };
    let videos: Vec<Video> =
        wanted.iter().filter_map(|id| get(tx, id)).filter(|video| video.channel == token.user).collect();
    let figures = |videos: &[Video]| -> Vec<Value> {
        let sum = |name: &str, ceiling: u64| -> u64 {
            videos.iter().map(|video| figure(&video.id, name, tx.now - video.uploaded_at, ceiling)).sum()
        };
        names
            .iter()
            .map(|name| match METRICS.iter().find(|(known, _)| known == name) {
                Some((_, ceiling)) => json!(sum(name, *ceiling)),
                None if *name == "videoThumbnailImpressions" => json!(sum(name, 400_000)),
                None => json!(4.5),
            })
            .collect()
    };
    let dimension = request.query("dimensions");
    let rows: Vec<Vec<Value>> = match dimension {
        Some("video") => videos
            .iter()
            .map(|video| [vec![json!(video.id)], figures(std::slice::from_ref(video))].concat())
            .collect(),
        Some(_) => {
            let day = json!(tx.now.format("%Y-%m-%d").to_string());
            vec![[vec![day], figures(&videos)].concat()]
        }
        None => vec![figures(&videos)],
    };
    let head =
        |name: &str, kind: &str, data: &str| json!({ "name": name, "columnType": kind, "dataType": data });
    let headers: Vec<_> = dimension
        .iter()
        .map(|name| head(name, "DIMENSION", "STRING"))
        .chain(names.iter().map(|name| head(name, "METRIC", "INTEGER")))
        .collect();
    let mut table = json!({ "kind": "youtubeAnalytics#resultTable", "columnHeaders": headers });
    if !videos.is_empty() {
        table["rows"] = json!(rows);
    }
    Ok(Response::json(200, &table))
}
