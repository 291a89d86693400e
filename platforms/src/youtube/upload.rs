//! Resumable uploads: <https://developers.google.com/youtube/v3/guides/using_resumable_upload_protocol>.
//!
//! The upload's address shows how many bytes are stored, and the video once all are.

use super::{Created, Settings, UPLOAD};
use crate::{Media, Reply, Result, Session};
use domain::Failure;
use serde_json::{Map, Value};

/// Size of one part of an upload: a multiple of 256 KiB.
pub(super) const CHUNK_BYTES: u64 = 8 << 20;

/// Begins an upload and returns its address. YouTube validates the resource here.
pub(super) async fn begin(
    cx: &Session<'_>,
    settings: &Settings,
    video: &Media,
    body: &Value,
) -> Result<String> {
    // YouTube reads the parts that are named, and no others.
    let parts: Vec<_> = body.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let parts = parts.join(",");
    let mut query = vec![("uploadType", "resumable"), ("part", &*parts)];
    if settings.notify_subscribers == Some(false) {
        query.push(("notifySubscribers", "false"));
    }
    let mut call = cx
        .post(format!("{UPLOAD}/videos"))
        .query(&query)
        .header("x-upload-content-type", &video.mime)
        .header("x-upload-content-length", video.size_bytes.to_string());
    // The file name, in ASCII because it is a header.
    if video.filename.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        call = call.header("slug", &video.filename);
    }
    let reply = call.json(body).reply().await?;
    let address = reply.header("location").map(str::to_owned);
    address.ok_or_else(|| Failure::upstream(502, "YouTube began an upload and gave it no address"))
}

/// State of an upload.
pub(super) enum Stored {
    /// Number of bytes that are stored.
    Bytes(u64),
    /// All bytes are stored, and this is the video.
    Video(String),
    /// The upload no longer exists.
    Nothing,
}

/// Sends the part that begins at `from`.
pub(super) async fn send(cx: &Session<'_>, video: &Media, upload: &str, from: u64) -> Result<Stored> {
    let total = video.size_bytes;
    let end = (from + CHUNK_BYTES).min(total);
    let piece = cx.read(video, from..end).await?;
    let range = format!("bytes {from}-{}/{total}", end - 1);
    let call = cx.put(upload).header("content-range", range).bytes(&video.mime, piece);
    stored(cx, call.send_raw().await?, total)
}

/// Returns the state of an upload.
pub(super) async fn probe(cx: &Session<'_>, upload: &str, total: u64) -> Result<Stored> {
    let call =
        cx.put(upload).header("content-range", format!("bytes */{total}")).header("content-length", "0");
    stored(cx, call.send_raw().await?, total)
}

fn stored(cx: &Session<'_>, reply: Reply, total: u64) -> Result<Stored> {
    match reply.status.as_u16() {
        308 => {
            let last = reply.header("range").and_then(|range| range.rsplit_once('-')?.1.parse::<u64>().ok());
            match last.map_or(0, |last| last.saturating_add(1)) {
                // The last byte publishes the video, so that only a look-up finds out.
                count if count >= total => Err(Failure::upstream(
                    502,
                    format!("YouTube keeps {count} bytes of {total}, and asks for more"),
                )),
                count => Ok(Stored::Bytes(count)),
            }
        }
        404 | 410 => Ok(Stored::Nothing),
        _ => {
            let video: Created = reply.into_result(cx.platform)?.read()?;
            Ok(Stored::Video(video.id))
        }
    }
}

pub(super) fn stalled(count: u64) -> Failure {
    let message = format!("YouTube keeps no more than {count} bytes of the upload");
    Failure::upstream(503, message).certain()
}

/// Returns the failure of an expired upload. Nothing was published before the last byte, so a retry is safe.
pub(super) fn ended() -> Failure {
    let message = "the upload ended before its last byte; it begins again";
    Failure::upstream(503, message).certain()
}
