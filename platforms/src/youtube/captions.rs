//! Caption tracks of a video: <https://developers.google.com/youtube/v3/docs/captions>.
//!
//! A track belongs to a video that exists, so tracks are uploaded once the video is live. The tracks that are
//! already there are listed first, because an upload costs 400 units of the project's quota of the day. YouTube
//! reads a file after it has stored it, and keeps one that it can't read as a failed track.

use super::{API, List, Settings, UPLOAD};
use crate::{required, *};
use domain::{ErrorCode, Failure};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Maximum number of tracks of a post: each costs 400 of the project's 10,000 units of the day.
pub(super) const MAX_TRACKS: usize = 5;
/// Maximum length of a track's name, in characters.
const MAX_NAME: usize = 150;
/// Maximum length of a file, in characters: an hour of speech in SubRip has about 80,000.
const MAX_CONTENT: usize = 100_000;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Caption {
    /// Language of the captions (BCP 47).
    #[schemars(length(min = 2, max = 35), regex(pattern = schema::LANGUAGE))]
    language: String,
    /// Name of the track, which viewers see beside its language. Tracks in the same language need different names.
    #[schemars(length(max = MAX_NAME))]
    name: Option<String>,
    /// The captions as the text of a SubRip (.srt) or WebVTT (.vtt) file.
    #[schemars(length(min = 1, max = MAX_CONTENT))]
    content: String,
}

impl Caption {
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default().trim()
    }

    /// Returns language and name, for messages.
    fn label(&self) -> String {
        match self.name() {
            "" => self.language.clone(),
            name => format!("{} ({name})", self.language),
        }
    }

    /// Returns true if YouTube takes the other for the same track.
    fn is_same(&self, language: &str, name: &str) -> bool {
        self.language.eq_ignore_ascii_case(language) && self.name() == name
    }

    /// Returns true if the content has captions with times, as SubRip and WebVTT have.
    ///
    /// <https://www.w3.org/TR/webvtt1/#file-structure>
    fn is_readable(&self) -> bool {
        let content = self.content.trim_start_matches('\u{feff}');
        if let Some(rest) = content.strip_prefix("WEBVTT") {
            return rest.starts_with(char::is_whitespace) && rest.lines().any(is_timing);
        }
        let mut lines = content.lines().map(str::trim).skip_while(|line| line.is_empty());
        let is_number = |line: &str| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
        lines.next().is_some_and(is_number) && lines.next().is_some_and(is_timing)
    }
}

/// Returns true for the line with the times of a caption: `00:00:01,000 --> 00:00:02,500`.
fn is_timing(line: &str) -> bool {
    let Some((from, to)) = line.split_once("-->") else { return false };
    // Settings of a WebVTT cue may follow its times.
    is_time(from.trim()) && to.split_whitespace().next().is_some_and(is_time)
}

/// Returns true for a time like `00:00:01,000` in SubRip, and `00:01.000` in WebVTT.
fn is_time(text: &str) -> bool {
    let Some((clock, fraction)) = text.split_once([',', '.']) else { return false };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (2..=3).contains(&clock.split(':').count())
        && clock.split(':').all(is_number)
        && fraction.len() == 3
        && is_number(fraction)
}

/// Returns the tracks that YouTube would refuse, by their index, with the reason.
pub(super) fn objections(settings: &Settings) -> Vec<(usize, String)> {
    let captions = settings.captions.as_deref().unwrap_or_default();
    let mut found = Vec::new();
    for (index, caption) in captions.iter().enumerate() {
        let label = caption.label();
        if !caption.is_readable() {
            found.push((index, format!("the captions in {label} are neither SubRip nor WebVTT")));
        }
        if captions[..index].iter().any(|other| other.is_same(&caption.language, caption.name())) {
            let message =
                format!("there are other captions in {label}, and each track needs a name of its own");
            found.push((index, message));
        }
    }
    found
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
    for caption in captions {
        let answer = match there.iter().find(|track| track.is(caption)) {
            Some(track) => track.verdict(),
            None => insert(cx, video, caption).await,
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
async fn insert(cx: &Session<'_>, video: &str, caption: &Caption) -> Result<()> {
    let snippet = json!({ "videoId": video, "language": caption.language, "name": caption.name() });
    let (mime, body) = related(video, &json!({ "snippet": snippet }).to_string(), &caption.content);
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
    fn is(&self, caption: &Caption) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subrip_and_webvtt_are_recognized() {
        for (content, is_readable) in [
            ("1\n00:00:01,000 --> 00:00:02,500\nHello\n", true),
            ("\u{feff}\r\n1\r\n00:00:01,000 --> 00:00:02,500\r\nHello\r\n", true),
            ("WEBVTT\n\n00:01.000 --> 00:02.500 line:0 position:20%\nHello\n", true),
            ("\u{feff}WEBVTT - a title\n\nNOTE none\n\nintro\n00:00:01.000 --> 00:00:02.500\nHello\n", true),
            ("WEBVTT\n\nHello\n", false),
            ("WEBVTTX\n\n00:01.000 --> 00:02.500\nHello\n", false),
            ("Hello\n", false),
            ("1\nHello\n", false),
            ("00:00:01,000 --> 00:00:02,500\nHello\n", false),
            ("1\n00:00:01 --> 00:00:02\nHello\n", false),
            ("1\n--> 00:00:02,500\nHello\n", false),
            ("<tt xmlns=\"http://www.w3.org/ns/ttml\"/>", false),
            ("", false),
        ] {
            let caption = Caption { language: "en".into(), name: None, content: content.into() };
            assert_eq!(caption.is_readable(), is_readable, "{content:?}");
        }
    }
}
