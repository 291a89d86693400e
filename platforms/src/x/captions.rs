//! Captions of a video: <https://docs.x.com/x-api/media/create-media-subtitles>.
//!
//! A file is uploaded as a medium of its own and then associated with the video, before the post exists: its video never
//! appears without them. X takes one file for each language, which it names by two letters.

use super::{ADAPTER, API, Created, Data, Settings, Step};
use crate::{Media, MediaKind, Result, Session, captions, check::Issue, schema, storage};
use reqwest::multipart::{Form, Part};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Maximum number of tracks of a video. X documents none, and each takes four calls.
pub(super) const MAX_TRACKS: usize = 10;
/// Maximum length of the name of a language, in characters. X documents none.
const MAX_NAME: usize = 100;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Caption {
    /// Language of the captions, in two letters (ISO 639-1).
    #[schemars(length(min = 2, max = 35), regex(pattern = schema::LANGUAGE))]
    language: String,
    /// Name of the language, which viewers see. Defaults to its two letters.
    #[schemars(length(max = MAX_NAME))]
    name: Option<String>,
    /// The captions as the text of a SubRip (.srt), SubViewer (.sbv) or WebVTT (.vtt) file.
    content: captions::File,
}

impl Caption {
    fn track(&self) -> captions::Track<'_> {
        captions::Track { language: &self.language, name: "", file: &self.content }
    }

    /// Returns X's code of the language.
    fn code(&self) -> String {
        self.language.to_ascii_uppercase()
    }
}

/// A track that the post's video has, or that X has refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Captioned {
    language: String,
    name: Option<String>,
    /// Digest of the file.
    digest: String,
}

impl From<&Caption> for Captioned {
    fn from(caption: &Caption) -> Self {
        let Caption { language, name, content } = caption;
        Self { language: language.clone(), name: name.clone(), digest: content.digest() }
    }
}

/// Returns true if the video has no other tracks than these settings ask for.
pub(super) fn are_asked_for(settings: &Settings, tracks: &[Captioned]) -> bool {
    let all: Vec<_> = settings.captions.iter().flatten().map(Captioned::from).collect();
    all.starts_with(tracks)
}

/// Returns the errors of the tracks that X would refuse.
pub(super) fn issues(settings: &Settings) -> Vec<Issue> {
    let all = settings.captions.as_deref().unwrap_or_default();
    let tracks: Vec<_> = all.iter().map(Caption::track).collect();
    let mut found = captions::issues(ADAPTER.id, &tracks, "X takes one file for each language");
    for (index, caption) in all.iter().enumerate().filter(|(_, caption)| caption.language.len() != 2) {
        let message =
            format!("X names languages of captions by two letters, and this is {}", caption.language);
        found.push(captions::issue(ADAPTER.id, index, &message));
    }
    found
}

/// Uploads the captions that the post's video does not have yet. A permanent rejection is told to the post's owner, and
/// does not fail the post.
pub(super) async fn upload(
    cx: &Session<'_>,
    settings: &Settings,
    media: &[Media],
    step: &mut Step,
) -> Result<()> {
    let all = settings.captions.as_deref().unwrap_or_default();
    let [Media { kind: MediaKind::Video, .. }] = media else { return Ok(()) };
    let Some(video) = step.uploads.first().map(|upload| upload.ticket.clone()) else { return Ok(()) };
    while let Some(caption) = all.get(step.captioned.len()) {
        match add(cx, &video, caption).await {
            Err(failure) if failure.code.is_permanent() => {
                let said = failure.message.trim_end_matches('.');
                let language = &caption.language;
                cx.note(&format!("The video is published without its captions in {language}: {said}"))
                    .await?;
            }
            answer => answer?,
        }
        step.captioned.push(caption.into());
        cx.save(step).await?;
    }
    Ok(())
}

/// Uploads one track and associates it with the video. May be repeated: the later file of a language replaces the
/// earlier.
async fn add(cx: &Session<'_>, video: &str, caption: &Caption) -> Result<()> {
    let (mime, file) = match caption.content.format() {
        Some(captions::Format::SubRip) => ("text/srt", caption.content.text().into()),
        // X takes no SubViewer.
        _ => ("text/vtt", caption.content.to_webvtt()),
    };
    let request = json!({ "media_type": mime, "total_bytes": file.len(), "media_category": "subtitles" });
    let created: Data<Created> =
        cx.post(format!("{API}/media/upload/initialize")).json(&request).send().await?;
    let id = created.data.id;
    let part = Part::text(file.into_owned()).file_name("captions");
    let form = Form::new()
        .text("segment_index", "0")
        .part("media", storage::typed(part, "application/octet-stream")?);
    cx.post(format!("{API}/media/upload/{id}/append")).multipart(form).send_ok().await?;
    cx.post(format!("{API}/media/upload/{id}/finalize")).send_ok().await?;
    let name = caption.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
    let code = caption.code();
    let subtitles = json!({ "id": id, "language_code": code, "display_name": name.unwrap_or(&code) });
    cx.post(format!("{API}/media/subtitles"))
        .json(&json!({ "id": video, "media_category": "TweetVideo", "subtitles": subtitles }))
        .send_ok()
        .await
}
