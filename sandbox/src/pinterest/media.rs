//! Videos: registered, uploaded to a storage, processed:
//! <https://developers.pinterest.com/docs/api/v5/media-create>.

use super::{
    Account, Outcome, Record, Request, Response, STORAGE, Transaction, body, error, invalid, next, paged,
};
use crate::exchange::Cause::{self, Content, Protocol, State};
use crate::{files::Upload, tokens::random};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Maximum size of a video.
const MAX_BYTES: u64 = 2 << 30;

/// A video being uploaded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Media {
    pub(super) id: String,
    /// Id of the owner.
    pub(super) owner: String,
    signature: String,
    /// Its bytes, once uploaded.
    pub(super) upload: Option<Upload>,
    stored_at: Option<DateTime<Utc>>,
}

impl Record for Media {
    const TABLE: &'static str = "pinterest.media";

    fn key(&self) -> String {
        self.id.clone()
    }
}

impl Media {
    /// Returns its processing status, which depends on the clock only.
    pub(super) fn status(&self, tx: &Transaction) -> &'static str {
        let (Some(upload), Some(stored_at)) = (&self.upload, self.stored_at) else { return "registered" };
        let says = |word: &str| upload.name.as_deref().is_some_and(|name| name.contains(word));
        let spent = (tx.now - stored_at).num_milliseconds();
        let is_busy = u64::try_from(spent).is_ok_and(|spent| spent < tx.settings.processing_ms);
        if is_busy || says("sandbox-stuck") {
            return "processing";
        }
        let is_video = upload.mime.as_deref().is_some_and(|mime| mime.starts_with("video/"));
        if is_video && !says("sandbox-failed") { "succeeded" } else { "failed" }
    }

    /// Returns the cause for which it can't be published.
    pub(super) fn failure(&self) -> Cause {
        match self.upload.as_ref().map(|upload| upload.mime.as_deref().unwrap_or_default()) {
            Some(mime) if !mime.starts_with("video/") => Content("video_type"),
            _ => State,
        }
    }

    fn view(&self, tx: &Transaction) -> Value {
        json!({ "media_id": self.id, "media_type": "video", "status": self.status(tx) })
    }
}

/// Returns the video with this id.
pub(super) fn get(tx: &Transaction, id: &str) -> Option<Media> {
    tx.store.get(id)
}

/// Returns the video that an upload form is for.
pub(super) fn by_upload_key(tx: &Transaction, request: &Request) -> Option<Media> {
    get(tx, request.field("key")?.rsplit('/').next()?)
}

/// `POST /v5/media`.
pub(super) fn register(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let body = body(request)?;
    if body["media_type"] != "video" {
        return Err(invalid(
            Protocol,
            &format!("'media_type': {} is not one of ['video']", body["media_type"]),
        ));
    }
    let media =
        Media { id: next(tx), owner: caller.id.clone(), signature: random(), upload: None, stored_at: None };
    tx.store.put(&media);
    // A client that uses the sandbox as Pinterest can't reach the storage's real name.
    let upload_url = match request.header("host").filter(|_| request.host.is_empty()) {
        Some(host) => format!("http://{host}/{STORAGE}/"),
        None => format!("https://{STORAGE}/"),
    };
    let body = json!({
        "media_id": media.id,
        "media_type": "video",
        "upload_url": upload_url,
        "upload_parameters": {
            "x-amz-date": tx.now.format("%Y%m%dT%H%M%SZ").to_string(),
            "x-amz-signature": media.signature,
            "x-amz-security-token": "sandbox",
            "x-amz-algorithm": "AWS4-HMAC-SHA256",
            "key": format!("uploads/videos/{}", media.id),
            "policy": "eyJjb25kaXRpb25zIjpbXX0=",
            "x-amz-credential": format!("sandbox/{}/us-east-1/s3/aws4_request", tx.now.format("%Y%m%d")),
            "Content-Type": "multipart/form-data",
        },
    });
    Ok(Response::json(201, &body))
}

/// `GET /v5/media`.
pub(super) fn list(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let own = tx.store.with_prefix("").filter(|media: &Media| media.owner == caller.id);
    let (media, bookmark) = paged(request, own.collect(), |media: &Media| &media.id)?;
    let items: Vec<_> = media.iter().map(|media| media.view(tx)).collect();
    Ok(Response::json(200, &json!({ "items": items, "bookmark": bookmark })))
}

/// `GET /v5/media/{media_id}`.
pub(super) fn show(tx: &mut Transaction, _: &Request, caller: &Account, id: &str) -> Outcome {
    let own = get(tx, id).filter(|media| media.owner == caller.id);
    let media = own.ok_or_else(|| error(State, 404, 404, "Media not found."))?;
    let view = media.view(tx);
    Ok(Response::json(200, &view).because((media.status(tx) == "failed").then(|| media.failure())))
}

/// Receives an upload form, as S3 does: `POST https://…s3-accelerate.amazonaws.com/`.
pub(super) fn store(tx: &mut Transaction, request: &Request) -> Response {
    let refuse = |cause: Cause, status: u16, code: &str, message: &str| {
        let xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>"
        );
        Response::bytes(status, "application/xml", xml.into()).because(cause)
    };
    if request.header("authorization").is_some() {
        return refuse(Protocol, 400, "InvalidArgument", "Only one auth mechanism allowed");
    }
    let Some(mut media) = by_upload_key(tx, request) else {
        return refuse(State, 403, "AccessDenied", "Invalid according to Policy: Policy Condition failed");
    };
    if request.field("x-amz-signature") != Some(&media.signature) || request.field("policy").is_none() {
        return refuse(
            State,
            403,
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match",
        );
    }
    let Some(upload) = request.upload.clone() else {
        return refuse(
            Protocol,
            400,
            "InvalidArgument",
            "POST requires exactly one file upload per request.",
        );
    };
    if upload.size_bytes > MAX_BYTES {
        return refuse(
            Content("video_too_large"),
            400,
            "EntityTooLarge",
            "Your proposed upload exceeds the maximum allowed size",
        );
    }
    media.upload = Some(upload);
    media.stored_at = Some(tx.now);
    tx.store.put(&media);
    Response::empty(204)
}
