//! Upload of a video in parts: <https://developers.tiktok.com/doc/content-posting-api-media-transfer-guide>.
//!
//! The last part publishes the video, and an upload that has expired can't be resumed.

use super::{Step, status};
use crate::{Media, Result, Session, classify};
use domain::Failure;

/// Maximum size of one part of an upload. A video of this size is uploaded in one part, because several
/// servers of TikTok refuse a smaller one in more parts.
const MAX_CHUNK_BYTES: u64 = 64_000_000;
/// Size of a part of a larger video, as in TikTok's example. The last part also contains the remainder.
const CHUNK_BYTES: u64 = 10_000_000;

/// The parts of a file: all of one size, the last with the remainder.
pub(super) struct Pieces {
    pub(super) size: u64,
    pub(super) count: u64,
}

impl Pieces {
    pub(super) fn of(total: u64) -> Self {
        match total <= MAX_CHUNK_BYTES {
            true => Self { size: total, count: 1 },
            false => Self { size: CHUNK_BYTES, count: total / CHUNK_BYTES },
        }
    }

    /// Returns the size of the last part of a file.
    pub(super) fn last(&self, total: u64) -> u64 {
        total - (self.count - 1) * self.size
    }
}

/// The result of sending a part.
pub(super) enum Sent {
    /// Number of parts that are stored.
    Pieces(u64),
    /// All parts are stored.
    All,
    /// The upload no longer exists.
    Gone,
}

/// Sends the next part of an upload.
pub(super) async fn send(cx: &Session<'_>, video: &Media, step: &Step) -> Result<Sent> {
    let (Some(upload), Some(publish)) = (&step.upload, &step.publish) else { return Ok(Sent::Gone) };
    let (total, pieces) = (video.size_bytes, Pieces::of(video.size_bytes));
    let start = step.sent * pieces.size;
    let end = if step.sent + 1 == pieces.count { total } else { start + pieces.size };
    let reply = cx
        .put(upload)
        // The URL itself is the credential.
        .without_grant()
        .header("content-range", format!("bytes {start}-{}/{total}", end - 1))
        .upload(&video.mime, end - start, cx.slice(video, start..end))
        .send_raw()
        .await?;
    match reply.status.as_u16() {
        201 => Ok(Sent::All),
        200..=299 => Ok(Sent::Pieces(step.sent + 1)),
        403 | 404 => Ok(Sent::Gone),
        // TikTok expects another part, as after a lost response.
        416 => match status(cx, publish).await?.uploaded_bytes {
            Some(has) if has >= total => Ok(Sent::All),
            Some(has) if has / pieces.size != step.sent => Ok(Sent::Pieces(has / pieces.size)),
            _ => Err(classify::by_status(&reply)),
        },
        _ => Err(reply.into_result(cx.platform).expect_err("it is no success")),
    }
}

/// Drops an upload that can't be resumed. Nothing is posted before its last byte, so that the
/// video can be uploaded again.
pub(super) async fn ended(cx: &Session<'_>) -> Failure {
    let message = "the upload ended before its last byte; it begins again";
    match cx.save(&Step::default()).await {
        Ok(()) => Failure::upstream(503, message).certain(),
        Err(unsaved) => unsaved,
    }
}

/// Returns true if TikTok gave up the post of an earlier attempt.
pub(super) async fn has_failed(cx: &Session<'_>, step: &Step) -> Result<bool> {
    match &step.publish {
        Some(publish) => Ok(status(cx, publish).await?.status == "FAILED"),
        None => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_split_into_the_parts_tiktok_documents() {
        for (total, size, count) in [
            (1, 1, 1),
            (9_437_184, 9_437_184, 1),
            (50_000_123, 50_000_123, 1),
            (64_000_000, 64_000_000, 1),
            (64_000_001, 10_000_000, 6),
            (4_000_000_000, 10_000_000, 400),
        ] {
            let pieces = Pieces::of(total);
            assert_eq!((pieces.size, pieces.count), (size, count), "{total}");
            assert_eq!(pieces.count, total / pieces.size, "{total}");
            assert!(pieces.last(total) <= MAX_CHUNK_BYTES, "{total}");
        }
    }
}
