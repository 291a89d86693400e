//! Videos: registered, sent to a storage, processed: <https://developers.pinterest.com/docs/api/v5/media-create>.

use super::{Answer, Call, READ, Record, STORAGE, Turn, WRITE, admit, body, error, invalid, next, paged};
use crate::{files::Upload, tokens::random};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const SCOPES: &[&str] = &["pins:read", "pins:write"];

/// The most bytes of a video.
const MOST_BYTES: u64 = 2 << 30;

/// A video on its way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Media {
    /// Its id.
    pub(super) id: String,
    /// Whose it is.
    pub(super) owner: String,
    signature: String,
    /// Its bytes, as soon as they are there.
    pub(super) upload: Option<Upload>,
    stored_at: Option<DateTime<Utc>>,
}

impl Record for Media {
    const SHELF: &'static str = "pinterest.media";

    fn key(&self) -> String {
        self.id.clone()
    }
}

impl Media {
    /// How far it is, which the clock alone decides.
    pub(super) fn status(&self, turn: &Turn<'_>) -> &'static str {
        let (Some(upload), Some(stored_at)) = (&self.upload, self.stored_at) else { return "registered" };
        let says = |word: &str| upload.name.as_deref().is_some_and(|name| name.contains(word));
        let spent = (turn.now - stored_at).num_milliseconds();
        let is_busy = u64::try_from(spent).is_ok_and(|spent| spent < turn.settings.processing_ms);
        if is_busy || says("sandbox-stuck") {
            return "processing";
        }
        let is_video = upload.mime.as_deref().is_some_and(|mime| mime.starts_with("video/"));
        if is_video && !says("sandbox-failed") { "succeeded" } else { "failed" }
    }

    fn view(&self, turn: &Turn<'_>) -> Value {
        json!({ "media_id": self.id, "media_type": "video", "status": self.status(turn) })
    }
}

/// The video with this id.
pub(super) fn get(turn: &Turn<'_>, id: &str) -> Option<Media> {
    turn.shelf.get(id)
}

/// The video that a form for the storage is about.
pub(super) fn keyed(turn: &Turn<'_>, call: &Call) -> Option<Media> {
    get(turn, call.field("key")?.rsplit('/').next()?)
}

/// `POST /v5/media`.
pub(super) fn register(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, SCOPES, WRITE)?;
    let body = body(call)?;
    if body["media_type"] != "video" {
        return Err(invalid(&format!("'media_type': {} is not one of ['video']", body["media_type"])));
    }
    let media = Media {
        id: next(turn),
        owner: caller.account.id.clone(),
        signature: random(),
        upload: None,
        stored_at: None,
    };
    turn.shelf.put(&media);
    // A client that takes the sandbox for Pinterest can't reach the storage's real name.
    let upload_url = match call.header("host").filter(|_| call.host.is_empty()) {
        Some(host) => format!("http://{host}/{STORAGE}/"),
        None => format!("https://{STORAGE}/"),
    };
    let body = json!({
        "media_id": media.id,
        "media_type": "video",
        "upload_url": upload_url,
        "upload_parameters": {
            "x-amz-date": turn.now.format("%Y%m%dT%H%M%SZ").to_string(),
            "x-amz-signature": media.signature,
            "x-amz-security-token": "sandbox",
            "x-amz-algorithm": "AWS4-HMAC-SHA256",
            "key": format!("uploads/videos/{}", media.id),
            "policy": "eyJjb25kaXRpb25zIjpbXX0=",
            "x-amz-credential": format!("sandbox/{}/us-east-1/s3/aws4_request", turn.now.format("%Y%m%d")),
            "Content-Type": "multipart/form-data",
        },
    });
    Ok(caller.reply(turn, 201, &body))
}

/// `GET /v5/media`.
pub(super) fn list(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &["pins:read"], READ)?;
    let own = turn.shelf.under("").filter(|media: &Media| media.owner == caller.account.id);
    let (media, bookmark) = paged(call, own.collect(), |media: &Media| &media.id)?;
    let items: Vec<_> = media.iter().map(|media| media.view(turn)).collect();
    Ok(caller.reply(turn, 200, &json!({ "items": items, "bookmark": bookmark })))
}

/// `GET /v5/media/{media_id}`.
pub(super) fn show(turn: &mut Turn<'_>, call: &Call, id: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &["pins:read"], READ)?;
    let own = get(turn, id).filter(|media| media.owner == caller.account.id);
    let media = own.ok_or_else(|| error(404, 404, "Media not found."))?;
    let view = media.view(turn);
    Ok(caller.reply(turn, 200, &view))
}

/// The form that the storage takes, as S3 does: `POST https://…s3-accelerate.amazonaws.com/`.
pub(super) fn store(turn: &mut Turn<'_>, call: &Call) -> Answer {
    let refuse = |status: u16, code: &str, message: &str| {
        let xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>"
        );
        Answer::bytes(status, "application/xml", xml.into())
    };
    if call.header("authorization").is_some() {
        return refuse(400, "InvalidArgument", "Only one auth mechanism allowed");
    }
    let Some(mut media) = keyed(turn, call) else {
        return refuse(403, "AccessDenied", "Invalid according to Policy: Policy Condition failed");
    };
    if call.field("x-amz-signature") != Some(&media.signature) || call.field("policy").is_none() {
        return refuse(403, "SignatureDoesNotMatch", "The request signature we calculated does not match");
    }
    let Some(upload) = call.upload.clone() else {
        return refuse(400, "InvalidArgument", "POST requires exactly one file upload per request.");
    };
    if upload.size_bytes > MOST_BYTES {
        return refuse(400, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size");
    }
    media.upload = Some(upload);
    media.stored_at = Some(turn.now);
    turn.shelf.put(&media);
    Answer::empty(204)
}
