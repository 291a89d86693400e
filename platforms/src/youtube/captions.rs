//! Caption tracks of a video: <https://developers.google.com/youtube/v3/docs/captions>.
//!
//! A track belongs to a video that exists, so tracks are uploaded once the video is live. The tracks that are
//! already there are listed first, because an upload costs 400 units of the project's quota of the day. YouTube
//! reads a file after it has stored it, and keeps one that it can't read as a failed track.

use super::{ADAPTER, API, List, Settings, UPLOAD};
use crate::{Result, Session, captions, check::Issue, required, schema};
use domain::{ErrorCode, Failure};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Maximum number of tracks of a post: each costs 400 of the project's 10,000 units of the day.
pub(super) const MAX_TRACKS: usize = 5;
/// Maximum length of a track's name, in characters.
const MAX_NAME: usize = 150;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Caption {
    /// Language of the captions (BCP 47).
    #[schemars(length(min = 2, max = 35), regex(pattern = schema::LANGUAGE))]
    language: String,
    /// Name of the track, which viewers see beside its language. Tracks in the same language need different names.
    #[schemars(length(max = MAX_NAME))]
    name: Option<String>,
    /// The captions as the text of a SubRip (.srt), SubViewer (.sbv) or WebVTT (.vtt) file.
    content: captions::File,
}

impl Caption {
    fn track(&self) -> captions::Track<'_> {
        let name = self.name.as_deref().unwrap_or_default().trim();
        captions::Track { language: &self.language, name, file: &self.content }
    }
}

/// Returns the errors of the tracks that YouTube would refuse.
pub(super) fn issues(settings: &Settings) -> Vec<Issue> {
    let tracks: Vec<_> = settings.captions.iter().flatten().map(Caption::track).collect();
    captions::issues(ADAPTER.id, &tracks, "each track needs a name of its own")
}

/// Uploads the captions that the video does not have yet. A permanent rejection is told to the post's owner and does
/// not fail the post.
pub(super) async fn upload(cx: &Session<'_>, settings: &Settings, video: &str) -> Result<()> {
    let captions = settings.captions.as_deref().unwrap_or_default();
    if captions.is_empty() {
        return Ok(());
    }
    let there: Result<List<Track>> =
        cx.get(format!("{API}/captions")).query(&[("part", "snippet"), ("videoId", video)]).send().await;
    let there = match there {
        Ok(list) => list.items,
        Err(failure) => return tell(cx, Err(failure), "its captions").await,
    };
    for caption in captions.iter().map(Caption::track) {
        let answer = match there.iter().find(|track| track.matches(&caption)) {
            Some(track) => track.verdict(),
            None => insert(cx, video, &caption).await,
        };
        tell(cx, answer, &format!("its captions in {}", caption.label())).await?;
    }
    Ok(())
}

/// Tells the post's owner about captions that YouTube rejected.
async fn tell(cx: &Session<'_>, answer: Result<()>, part: &str) -> Result<()> {
    // A user may untick a scope, and a grant may be older than this feature.
    let advice = "; captions need the scope youtube.force-ssl, which connecting the account again asks for";
    cx.note_refusal(answer, part, advice, false).await
}

/// Uploads one track. Succeeds if the video already has it.
async fn insert(cx: &Session<'_>, video: &str, caption: &captions::Track<'_>) -> Result<()> {
    let snippet = json!({ "videoId": video, "language": caption.language, "name": caption.name });
    let (mime, body) = related(video, &json!({ "snippet": snippet }).to_string(), caption.file.text());
    let created: Result<Track> = cx
        .post(format!("{UPLOAD}/captions"))
        .query(&[("part", "snippet"), ("uploadType", "multipart")])
        .bytes(&mime, body.into())
        .send()
        .await;
    match created {
        Ok(track) => track.verdict(),
        // Only `captionExists` has this status: an earlier call created it.
        Err(failure) if failure.code == ErrorCode::Rejected(409) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// Returns the content type and the body of an upload of a description and a file (RFC 2387).
fn related(video: &str, description: &str, file: &str) -> (String, String) {
    // The author of the file can't have written the id, which is newer.
    let boundary = format!("captions-of-{video}");
    let body = format!(
        "--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{description}\r\n\
         --{boundary}\r\nContent-Type: application/octet-stream\r\n\r\n{file}\r\n--{boundary}--\r\n"
    );
    (format!("multipart/related; boundary={boundary}"), body)
}

#[derive(Deserialize)]
struct Track {
    #[serde(deserialize_with = "required::id")]
    id: String,
    #[serde(default)]
    snippet: TrackSnippet,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TrackSnippet {
    language: String,
    name: String,
    track_kind: String,
    status: String,
    failure_reason: Option<String>,
}

impl Track {
    /// Returns true if it is the uploaded track. One that YouTube made by speech recognition is another.
    fn matches(&self, caption: &captions::Track<'_>) -> bool {
        let snippet = &self.snippet;
        !snippet.track_kind.eq_ignore_ascii_case("asr") && caption.is_same(&snippet.language, &snippet.name)
    }

    /// Fails if YouTube stored the track and can't show it.
    fn verdict(&self) -> Result<()> {
        if self.snippet.status != "failed" {
            return Ok(());
        }
        let reason = self.snippet.failure_reason.as_deref().unwrap_or("it does not say why");
        Err(Failure::rejected(422, format!("YouTube could not read track {}: {reason}", self.id)))
    }
}
