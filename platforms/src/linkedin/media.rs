//! Uploads of images, documents and videos.
//! <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/videos-api>
//!
//! Most apps can't read the state of a member's image or document, so there the upload waits blindly.

use super::{POLL_INTERVAL, REST, document::Pdf, encode, is_picture, is_undistributed, rest};
use crate::{
    Media, MediaKind, Result, Session,
    upload::{Begun, Processing, Sent, Upload, Uploaded},
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta};
use domain::{ErrorCode, Failure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Returns LinkedIn's collection for a kind of media, and its singular.
fn collection(kind: MediaKind) -> Result<(&'static str, &'static str)> {
    match kind {
        MediaKind::Image | MediaKind::Gif => Ok(("images", "image")),
        MediaKind::Video => Ok(("videos", "video")),
        MediaKind::Document => Ok(("documents", "document")),
        MediaKind::Audio => Err(Failure::rejected(415, "LinkedIn takes no media of kind audio")),
    }
}

/// Uploads as the author.
pub(super) struct Uploads<'a> {
    pub(super) owner: String,
    /// The pictures that are the pages of the only medium; none if the media are files.
    pub(super) pages: &'a [Media],
}

#[async_trait]
impl Upload for Uploads<'_> {
    type Ticket = Ticket;
    const EXPIRY_MARGIN: TimeDelta = TimeDelta::minutes(5);

    /// Begins the upload: of a video in parts, to URLs that LinkedIn returns; of other media in one call.
    async fn begin(&self, cx: &Session<'_>, media: &Media) -> Result<Begun<Ticket>> {
        let (plural, name) = collection(media.kind)?;
        let pdf = if self.pages.is_empty() { None } else { Some(Pdf::of(cx, self.pages).await?) };
        let mut request = json!({ "owner": self.owner });
        if media.kind == MediaKind::Video {
            request["fileSizeBytes"] = json!(media.size_bytes);
            request["uploadCaptions"] = json!(false);
            request["uploadThumbnail"] = json!(false);
        }
        let Initialized { value } = rest(cx, cx.post(format!("{REST}/{plural}?action=initializeUpload")))
            .json(&json!({ "initializeUploadRequest": request }))
            .send()
            .await?;
        let nameless = || {
            let message = format!("LinkedIn began the upload of a {name} without an id or an address");
            Failure::upstream(502, message).certain()
        };
        let mut ticket =
            Ticket { urn: value[name].as_str().ok_or_else(nameless)?.to_owned(), ..Ticket::default() };
        if media.kind != MediaKind::Video {
            let address = value["uploadUrl"].as_str().ok_or_else(nameless)?;
            let call = cx.put(address);
            let call = match pdf {
                Some(pdf) => call.upload(&media.mime, pdf.length, pdf.into_stream(cx)),
                None => call.upload(&media.mime, media.size_bytes, cx.stream(media)),
            };
            call.send_ok().await?;
            return Ok(Begun { ticket, expires_at: None, sent: Sent::Whole(Processing::Unchecked) });
        }
        ticket.parts = serde_json::from_value(value["uploadInstructions"].clone())
            .map_err(|error| Failure::upstream(502, error.to_string()).certain())?;
        ticket.token = value["uploadToken"].as_str().unwrap_or_default().to_owned();
        let expires_at = value["uploadUrlsExpireAt"].as_i64().and_then(DateTime::from_timestamp_millis);
        let sent = if ticket.parts.is_empty() { Sent::All } else { Sent::Next(0) };
        Ok(Begun { ticket, expires_at, sent })
    }

    /// Sends one part. The response contains a tag, which finishing the upload requires.
    async fn send(
        &self,
        cx: &Session<'_>,
        media: &Media,
        upload: &mut Uploaded<Ticket>,
        index: u64,
    ) -> Result<Sent> {
        let Ticket { parts, tags, .. } = &mut upload.ticket;
        let Some(part) = parts.get(index as usize) else { return Ok(Sent::All) };
        let end = part.last.saturating_add(1).min(media.size_bytes);
        let length = end.saturating_sub(part.first);
        let body = cx.slice(media, part.first..end);
        let call = cx.put(&part.address).without_grant();
        let reply = call.upload("application/octet-stream", length, body).reply().await?;
        let tag = reply.header("etag").map(|tag| tag.trim_matches('"').to_owned());
        let untagged = || Failure::upstream(502, "a part of the video got no ETag").certain();
        tags.push(tag.filter(|tag| !tag.is_empty()).ok_or_else(untagged)?);
        Ok(if tags.len() < parts.len() { Sent::Next(index + 1) } else { Sent::All })
    }

    async fn finish(
        &self,
        cx: &Session<'_>,
        _media: &Media,
        upload: &mut Uploaded<Ticket>,
    ) -> Result<Processing> {
        let Ticket { urn, token, tags, .. } = &upload.ticket;
        rest(cx, cx.post(format!("{REST}/videos?action=finalizeUpload")))
            .json(&json!({ "finalizeUploadRequest": {
                "video": urn, "uploadToken": token, "uploadedPartIds": tags,
            } }))
            .send_ok()
            .await?;
        // Only the URLs of the parts expire.
        upload.expires_at = None;
        Ok(Processing::Unchecked)
    }

    async fn status(
        &self,
        cx: &Session<'_>,
        media: &Media,
        upload: &mut Uploaded<Ticket>,
    ) -> Result<Processing> {
        let (plural, name) = collection(media.kind)?;
        let address = format!("{REST}/{plural}/{}", encode(&upload.ticket.urn));
        let asked: Result<Status> = rest(cx, cx.get(address)).send().await;
        match asked {
            Ok(Status { status, reason }) => Ok(match status.as_str() {
                "AVAILABLE" => Processing::Done,
                "PROCESSING_FAILED" => {
                    let reason = reason.as_deref().unwrap_or("it does not say why");
                    let message = format!("LinkedIn could not process the {name}: {reason}");
                    Processing::Failed(Failure::rejected(400, message))
                }
                _ => Processing::Busy(POLL_INTERVAL),
            }),
            // An app with write access only can't read the state. It waits for a while; a post that is still too
            // early is rejected and retried.
            Err(failure)
                if matches!(failure.code, ErrorCode::Rejected(403 | 404))
                    || is_undistributed(&failure.message) =>
            {
                let most = if is_picture(media.kind) { 1 } else { 3 };
                if upload.ticket.blind_waits >= most {
                    return Ok(Processing::Done);
                }
                upload.ticket.blind_waits += 1;
                Ok(Processing::Busy(POLL_INTERVAL))
            }
            Err(failure) => Err(failure),
        }
    }
}

/// A medium's URN and, for a video, its parts and the tags of those that were sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Ticket {
    pub(super) urn: String,
    parts: Vec<Part>,
    tags: Vec<String>,
    token: String,
    /// Number of pauses for a medium whose state can't be read.
    blind_waits: u8,
}

/// A part of a video, and the URL to send it to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Part {
    #[serde(rename = "uploadUrl")]
    address: String,
    #[serde(rename = "firstByte")]
    first: u64,
    #[serde(rename = "lastByte")]
    last: u64,
}

#[derive(Deserialize)]
struct Initialized {
    value: Value,
}

#[derive(Deserialize)]
struct Status {
    status: String,
    #[serde(rename = "processingFailureReason")]
    reason: Option<String>,
}
