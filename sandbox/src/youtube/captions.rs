//! Caption tracks: <https://developers.google.com/youtube/v3/docs/captions>.
//!
//! A track is unique by video, language and name. Its file is read once it is stored: a track whose file can't be
//! read exists as failed. Uploads of metadata and file in one request are simulated, those in several are not.

use super::{
    Account, Outcome, Record, Request, Response, Transaction, error, etag, ids, parts,
    related::related,
    select_parts, time,
    video::{self, Video},
};
use crate::exchange::Cause::{self, Content, Protocol, State};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Maximum size of a file.
const BYTES: u64 = 100 << 20;
/// Maximum number of characters of a name.
const NAME_CHARS: usize = 150;

const PARTS: [&str; 2] = ["id", "snippet"];

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Track {
    id: String,
    video: String,
    language: String,
    name: String,
    is_draft: bool,
    /// Id of its file.
    file: String,
    /// `failureReason` of a file that can't be shown.
    failure: Option<String>,
    updated_at: DateTime<Utc>,
}

impl Record for Track {
    const TABLE: &'static str = "youtube.caption";

    fn key(&self) -> String {
        self.id.clone()
    }
}

impl Track {
    /// Returns true if viewers can choose it.
    pub(super) fn is_shown(&self) -> bool {
        self.failure.is_none() && !self.is_draft
    }

    /// Returns true if its file has none of the known formats.
    fn is_unreadable(&self) -> bool {
        self.failure.as_deref() == Some("unknownFormat")
    }

    /// Returns its line on the video's page.
    pub(super) fn note(&self) -> String {
        match self.name.as_str() {
            "" => format!("Captions: {}", self.language),
            name => format!("Captions: {} ({name})", self.language),
        }
    }

    fn resource(&self) -> Value {
        let mut snippet = json!({
            "videoId": self.video,
            "lastUpdated": time(self.updated_at),
            "trackKind": "standard",
            "language": self.language,
            "name": self.name,
            "audioTrackType": "unknown",
            "isCC": false,
            "isLarge": false,
            "isEasyReader": false,
            "isDraft": self.is_draft,
            "isAutoSynced": false,
            "status": if self.failure.is_some() { "failed" } else { "serving" },
        });
        if let Some(reason) = &self.failure {
            snippet["failureReason"] = json!(reason);
        }
        json!({ "kind": "youtube#caption", "etag": etag(&snippet), "id": self.id, "snippet": snippet })
    }
}

/// Returns a video's tracks, oldest first.
pub(super) fn of<'a>(tx: &'a Transaction, video: &str) -> impl DoubleEndedIterator<Item = Track> + use<'a> {
    tx.store.linked("youtube.captioned", video)
}

/// Deletes a video's tracks.
pub(super) fn forget(tx: &mut Transaction, video: &str) {
    let tracks: Vec<_> = of(tx, video).collect();
    for track in tracks {
        tx.files.discard(&track.file);
        tx.store.unlink("youtube.captioned", video, &track.id);
        tx.store.remove::<Track>(&track.id);
    }
}

fn refusal(cause: Cause, status: u16, reason: &str, message: &str) -> Response {
    error(cause, status, "youtube.caption", reason, message)
}

/// Returns the video, if it is the caller's.
fn own(tx: &Transaction, caller: &Account, id: &str, aim: &str) -> Result<Video, Response> {
    let video = video::get(tx, id).ok_or_else(|| {
        refusal(
            State,
            404,
            "videoNotFound",
            "The video identified by the <code>videoId</code> parameter could not be found.",
        )
    })?;
    match video.channel == caller.id {
        true => Ok(video),
        false => Err(refusal(
            State,
            403,
            "forbidden",
            &format!(
                "The permissions associated with the request are not sufficient to {aim}. The request might not be properly authorized."
            ),
        )),
    }
}

/// `GET /youtube/v3/captions`.
pub(super) fn list(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let parts = parts(request, &PARTS)?;
    let Some(id) = request.query("videoId") else {
        return Err(error(Protocol, 400, "global", "required", "Required parameter: videoId"));
    };
    let video = own(tx, caller, id, "retrieve the caption resources")?;
    let wanted = ids(request, "id");
    let resources: Vec<_> = of(tx, &video.id)
        .filter(|track| wanted.is_empty() || wanted.contains(&track.id))
        .map(|track| select_parts(track.resource(), &parts))
        .collect();
    let body = json!({
        "kind": "youtube#captionListResponse",
        "etag": etag(&json!(resources)),
        "items": resources,
    });
    Ok(Response::json(200, &body))
}

/// `POST /upload/youtube/v3/captions`, with metadata and file in one request.
pub(super) fn insert(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let parts = parts(request, &PARTS)?;
    let content_required = |cause: Cause| {
        refusal(cause, 400, "contentRequired", "The request does not contain the caption track contents.")
    };
    if request.query("uploadType") != Some("multipart") {
        if let Some(upload) = &request.upload {
            tx.files.discard(&upload.id);
        }
        return Err(content_required(Protocol));
    }
    let (described, file) = related(tx, request)?;
    let file = file.ok_or_else(|| content_required(Protocol))?;
    let kept = track(tx, caller, &described["snippet"], &file.id).and_then(|track| match file.size_bytes {
        0 => Err(content_required(Content("captions_empty"))),
        size if size > BYTES => Err(error(
            Content("captions_too_large"),
            413,
            "global",
            "uploadTooLarge",
            "Media is too large. Limit: 104857600",
        )),
        _ => Ok(track),
    });
    let track = match kept {
        Ok(track) => track,
        Err(refusal) => {
            tx.files.discard(&file.id);
            return Err(refusal);
        }
    };
    tx.store.put(&track);
    tx.store.link("youtube.captioned", &track.video, &track.id);
    let cause = track.is_unreadable().then_some(Content("captions_unreadable"));
    Ok(Response::json(200, &select_parts(track.resource(), &parts)).because(cause))
}

/// Returns the track that a request describes, if it is valid and new.
fn track(tx: &Transaction, caller: &Account, snippet: &Value, file: &str) -> Result<Track, Response> {
    let invalid = |cause: Cause| {
        refusal(
            cause,
            400,
            "invalidMetadata",
            "The request contains invalid metadata values, which prevent the track from being created. Confirm that the request specifies valid values for the <code>snippet.language</code>, <code>snippet.name</code>, and <code>snippet.videoId</code> properties.",
        )
    };
    let text = |name: &str| snippet[name].as_str().ok_or_else(|| invalid(Protocol));
    let (video, language, name) = (text("videoId")?, text("language")?, text("name")?);
    let is_tag = !language.is_empty()
        && language.split('-').all(|part| {
            (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
    if !is_tag {
        return Err(invalid(Content("language_of_captions")));
    }
    if name.chars().count() > NAME_CHARS {
        return Err(refusal(
            Content("name_of_captions"),
            400,
            "nameTooLong",
            "The <code>snippet.name</code> specified in the request is too long. The maximum length supported is 150 characters.",
        ));
    }
    let video = own(tx, caller, video, "upload the caption track")?;
    let is_same = |other: Track| other.language.eq_ignore_ascii_case(language) && other.name == name;
    if of(tx, &video.id).any(is_same) {
        return Err(refusal(
            Content("captions_twice"),
            409,
            "captionExists",
            "The specified video already has a caption track with the given <code>videoId</code>, <code>language</code>, and <code>name</code>.",
        ));
    }
    let bytes = tx.files.read(file).unwrap_or_default();
    Ok(Track {
        id: crate::tokens::random(),
        video: video.id,
        language: language.to_owned(),
        name: name.to_owned(),
        is_draft: snippet["isDraft"] == json!(true),
        file: file.to_owned(),
        failure: failure(&String::from_utf8_lossy(&bytes)).map(str::to_owned),
        updated_at: tx.now,
    })
}

/// Returns the reason why a file can't be shown: of the formats, those with times are known by them.
/// <https://support.google.com/youtube/answer/2734698>
fn failure(content: &str) -> Option<&'static str> {
    match () {
        () if content.contains("sandbox-failed") => Some("processingFailed"),
        () if content.contains("-->") || is_subviewer(content) => None,
        () => Some("unknownFormat"),
    }
}

/// Returns true for a file whose captions each begin with a line such as `0:00:00.599,0:00:04.160`.
fn is_subviewer(content: &str) -> bool {
    let is_time = |time: &str| {
        let parts: Vec<_> = time.split([':', '.']).collect();
        let [hours, minutes, seconds, thousandths] = parts[..] else { return false };
        let is_number = |part: &str| part.parse::<u32>().is_ok();
        let has_form = (1..=2).contains(&hours.len())
            && minutes.len() == 2
            && seconds.len() == 2
            && thousandths.len() == 3
            && time.rfind(':') < time.find('.');
        has_form && parts.into_iter().all(is_number)
    };
    let begins = |caption: &str| {
        let times = caption.lines().next().and_then(|line| line.trim_end().split_once(','));
        times.is_some_and(|(from, to)| is_time(from) && is_time(to))
    };
    let text = content.trim_start_matches('\u{feff}').replace('\r', "");
    let mut captions = text.trim().split("\n\n").map(str::trim_start).peekable();
    captions.peek().is_some() && captions.all(begins)
}
