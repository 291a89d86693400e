//! Captions of a video: `app.bsky.embed.video#caption`.
//! <https://github.com/bluesky-social/atproto/blob/main/lexicons/app/bsky/embed/video.json>
//!
//! A track is a WebVTT file among the account's blobs, which the record of the post refers to. Other formats are converted.

use super::{ADAPTER, BLOB_TTL, Settings, Step, language_tag, video::UploadedBlob};
use crate::{Media, MediaKind, Result, Session, captions, check::Issue, schema};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Maximum number of tracks of a video.
pub(super) const MAX_TRACKS: usize = 20;
/// Maximum size of a track.
const MAX_BYTES: usize = 20_000;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Caption {
    /// Language of the captions (BCP 47).
    #[schemars(length(min = 2, max = 35), regex(pattern = schema::LANGUAGE))]
    language: String,
    /// The captions as the text of a WebVTT (.vtt), SubRip (.srt) or SubViewer (.sbv) file. Bluesky gets WebVTT, of at most 20,000 bytes.
    content: captions::File,
}

impl Caption {
    fn track(&self) -> captions::Track<'_> {
        captions::Track { language: &self.language, name: "", file: &self.content }
    }
}

/// An uploaded track.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Track {
    language: String,
    /// Digest of the file as it was given.
    digest: String,
    /// The reference that a record contains.
    blob: Value,
    /// Time from which the server may have deleted the blob.
    expires_at: DateTime<Utc>,
}

impl Track {
    /// Returns the track in the embed of its video.
    pub(super) fn value(&self) -> Value {
        json!({ "lang": self.language, "file": self.blob })
    }
}

/// Returns the errors of the tracks that Bluesky would refuse.
pub(super) fn issues(settings: &Settings) -> Vec<Issue> {
    let tracks: Vec<_> = settings.captions.iter().flatten().map(Caption::track).collect();
    let mut found = captions::issues(ADAPTER.id, &tracks, "each language has one file");
    for (index, track) in tracks.iter().enumerate() {
        let size = track.file.to_webvtt().len();
        if size > MAX_BYTES {
            let label = track.label();
            let message =
                format!("takes {MAX_BYTES} bytes of captions as WebVTT, and those in {label} have {size}");
            found.push(captions::issue(ADAPTER.id, index, &message));
        }
    }
    found
}

/// Uploads the captions of the post's video.
pub(super) async fn upload(
    cx: &Session<'_>,
    home: &str,
    settings: &Settings,
    media: &[Media],
    step: &mut Step,
) -> Result<()> {
    let all = settings.captions.as_deref().unwrap_or_default();
    let all = if matches!(media, [Media { kind: MediaKind::Video, .. }]) { all } else { &[] };
    let now = (cx.now)();
    // The author may change the captions between two attempts.
    let usable = step.captions.iter().zip(all).take_while(|(track, caption)| {
        let is_same =
            track.digest == caption.content.digest() && track.language == language_tag(&caption.language);
        is_same && track.expires_at > now
    });
    let usable = usable.count();
    step.captions.truncate(usable);
    while let Some(caption) = all.get(step.captions.len()) {
        let file = caption.content.to_webvtt().into_owned();
        let call = cx.post(format!("{home}/xrpc/com.atproto.repo.uploadBlob")).bytes("text/vtt", file.into());
        let blob = call.send::<UploadedBlob>().await?.blob;
        let language = language_tag(&caption.language);
        let digest = caption.content.digest();
        step.captions.push(Track { language, digest, blob, expires_at: now + BLOB_TTL });
        cx.save(step).await?;
    }
    Ok(())
}
