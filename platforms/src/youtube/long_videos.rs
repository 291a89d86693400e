//! Videos of more than 15 minutes, which YouTube takes from some channels only. It tells which beforehand, and refuses
//! others after their last byte: <https://developers.google.com/youtube/v3/docs/channels#status.longUploadsStatus>.

use super::channel::channel;
use crate::{
    Media, MediaKind, Result, Session,
    look_up::{self, Findings, Subject},
};
use domain::Failure;
use std::time::Duration;

/// Play time that a video of any channel may have.
const USUAL: Duration = Duration::from_secs(15 * 60);

/// Returns the video that plays longer than those of any channel may.
pub(super) fn find(media: &[Media]) -> Option<&Media> {
    let is_long = |medium: &&Media| medium.duration.is_some_and(|length| length > USUAL);
    media.iter().find(|medium| medium.kind == MediaKind::Video).filter(is_long)
}

/// Finds out that the channel may not upload a long video.
pub(super) async fn look_up(cx: &Session<'_>, subject: &Subject, found: &mut Findings) -> Result<()> {
    if find(subject.media.as_deref().unwrap_or_default()).is_some()
        && let Some(why) = objection(cx).await?
    {
        found.media_error(look_up::NOT_ALLOWED, &why);
    }
    Ok(())
}

/// Fails if the channel may not upload the video, which may be long.
pub(super) async fn check(cx: &Session<'_>, video: &Media) -> Result<()> {
    if find(std::slice::from_ref(video)).is_none() {
        return Ok(());
    }
    match objection(cx).await {
        Ok(Some(why)) => Err(Failure::rejected(422, format!("YouTube {why}"))),
        // The upload has another quota than this call; what YouTube does not tell now, it decides then.
        Ok(None) | Err(_) => Ok(()),
    }
}

/// Returns the reason for which the channel may not upload long videos; its subject is YouTube. It costs one unit.
async fn objection(cx: &Session<'_>) -> Result<Option<String>> {
    let status = channel(cx, "status").await?.and_then(|channel| channel.status.long_uploads_status);
    let remedy = match status.as_deref() {
        Some("eligible") => "its owner can verify the channel by phone: https://www.youtube.com/verify",
        Some("disallowed") => {
            "the channel has to follow YouTube's guidelines and to have no video that is blocked by Content ID: \
             https://support.google.com/youtube/answer/71673"
        }
        _ => return Ok(None),
    };
    Ok(Some(format!("takes no video of more than 15 minutes from this channel yet; {remedy}")))
}
