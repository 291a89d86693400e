//! Caption files, as the settings of several platforms take them: SubRip, SubViewer as YouTube writes it, and WebVTT.
//!
//! A platform finds out that it can't read a file when the post is due, or later, so a file is checked before. WebVTT is
//! specified at <https://www.w3.org/TR/webvtt1/>. SubRip has no specification; here is what players agree on: a number,
//! a line with times, a text with the tags `b`, `i`, `u` and `font`. Of SubViewer, YouTube shows an example
//! (<https://support.google.com/youtube/answer/2734698>, 2026-11): lines with times and plain text.

use crate::check::{Issue, Severity};
use regex::{Captures, Regex};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::{borrow::Cow, sync::LazyLock};

/// Maximum length of a file, in characters: an hour of speech in SubRip has about 80,000.
const MAX_CHARACTERS: usize = 100_000;

/// The parts of a line of SubRip that WebVTT reads otherwise: tags, and characters of its markup.
static MARKUP: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)(</?[biu]>)|</?font[^>]*>|[&<>]").expect("the pattern is well-formed"));

/// The captions as the text of a SubRip (.srt), SubViewer (.sbv) or WebVTT (.vtt) file.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct File(#[schemars(length(min = 1, max = MAX_CHARACTERS))] String);

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    SubRip,
    SubViewer,
    WebVtt,
}

impl File {
    /// Returns the file as it is.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Returns the format of a file that has captions with times; `None` for any other text.
    ///
    /// <https://www.w3.org/TR/webvtt1/#file-structure>
    pub(crate) fn format(&self) -> Option<Format> {
        let content = self.0.trim_start_matches('\u{feff}');
        if let Some(rest) = content.strip_prefix("WEBVTT") {
            let is_readable = rest.starts_with(char::is_whitespace) && rest.lines().any(is_timing);
            return is_readable.then_some(Format::WebVtt);
        }
        let mut lines = content.lines().map(str::trim).skip_while(|line| line.is_empty());
        let is_number = |line: &str| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
        let first = lines.next()?;
        if subviewer_times(first).is_some() {
            return Some(Format::SubViewer);
        }
        let is_readable = is_number(first) && lines.next().is_some_and(is_timing);
        is_readable.then_some(Format::SubRip)
    }

    /// Returns a digest of the file.
    pub(crate) fn digest(&self) -> String {
        hex::encode(Sha256::digest(&self.0))
    }

    /// Returns the captions as WebVTT.
    ///
    /// <https://www.w3.org/TR/webvtt1/#cue-text>
    pub(crate) fn to_webvtt(&self) -> Cow<'_, str> {
        let convert = match self.format() {
            Some(Format::SubRip) => of_subrip,
            Some(Format::SubViewer) => of_subviewer,
            Some(Format::WebVtt) | None => return Cow::Borrowed(&self.0),
        };
        let mut text = "WEBVTT\n\n".to_owned();
        for line in self.0.trim_start_matches('\u{feff}').lines() {
            text.push_str(&convert(line));
            text.push('\n');
        }
        Cow::Owned(text)
    }
}

/// Returns a line of SubRip as WebVTT.
fn of_subrip(line: &str) -> Cow<'_, str> {
    if is_timing(line) {
        return line.replace(',', ".").into();
    }
    MARKUP.replace_all(line, |found: &Captures<'_>| match (found.get(1), &found[0]) {
        (Some(tag), _) => tag.as_str().to_lowercase(),
        (None, "&") => "&amp;".to_owned(),
        (None, "<") => "&lt;".to_owned(),
        (None, ">") => "&gt;".to_owned(),
        // WebVTT has no fonts.
        _ => String::new(),
    })
}

/// Returns a line of SubViewer as WebVTT. It has no markup.
fn of_subviewer(line: &str) -> Cow<'_, str> {
    match subviewer_times(line) {
        // WebVTT has two digits of hours at least.
        Some((from, to)) => format!("{from:0>12} --> {to:0>12}").into(),
        None => line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").into(),
    }
}

/// Returns the times of a caption of SubViewer: `0:00:01.000,0:00:02.500`.
fn subviewer_times(line: &str) -> Option<(&str, &str)> {
    let (from, to) = line.trim().split_once(',')?;
    let is_whole = |time: &str| is_time(time) && time.contains('.') && time.split(':').count() == 3;
    (is_whole(from) && is_whole(to)).then_some((from, to))
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

/// A track in the setting `captions` of a platform.
pub(crate) struct Track<'a> {
    pub(crate) language: &'a str,
    /// Name; empty where tracks are told apart by their language.
    pub(crate) name: &'a str,
    pub(crate) file: &'a File,
}

impl Track<'_> {
    /// Returns language and name, for messages.
    pub(crate) fn label(&self) -> String {
        match self.name {
            "" => self.language.to_owned(),
            name => format!("{} ({name})", self.language),
        }
    }

    /// Returns true if a platform takes the other for the same track.
    pub(crate) fn is_same(&self, language: &str, name: &str) -> bool {
        self.language.eq_ignore_ascii_case(language) && self.name == name
    }
}

/// Returns the errors of tracks whose files can't be read, and of those that are the same as an earlier one; `rule` says
/// how tracks differ.
pub(crate) fn issues(platform: &str, tracks: &[Track<'_>], rule: &str) -> Vec<Issue> {
    let mut found = Vec::new();
    for (index, track) in tracks.iter().enumerate() {
        let label = track.label();
        if track.file.format().is_none() {
            let message = format!("the captions in {label} are neither SubRip nor SubViewer nor WebVTT");
            found.push(issue(platform, index, &message));
        }
        if tracks[..index].iter().any(|other| other.is_same(track.language, track.name)) {
            let message = format!("there are other captions in {label}, and {rule}");
            found.push(issue(platform, index, &message));
        }
    }
    found
}

/// Returns an error of the track with this index.
pub(crate) fn issue(platform: &str, index: usize, message: &str) -> Issue {
    Issue {
        severity: Severity::Error,
        code: "setting_invalid".to_owned(),
        message: format!("{platform}: {message}"),
        path: vec![json!("config"), json!(platform), json!("captions"), json!(index)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_recognized() {
        use Format::{SubRip, SubViewer, WebVtt};
        for (content, format) in [
            ("1\n00:00:01,000 --> 00:00:02,500\nHello\n", Some(SubRip)),
            ("\u{feff}\r\n1\r\n00:00:01,000 --> 00:00:02,500\r\nHello\r\n", Some(SubRip)),
            ("0:00:00.599,0:00:04.160\n>> ALICE: Hi\n\n0:00:04.160,0:00:06.770\nBye\n", Some(SubViewer)),
            ("\u{feff}\r\n00:00:00.599,00:00:04.160\r\nHi\r\n", Some(SubViewer)),
            ("0:00:00.599\nHi\n", None),
            ("0:00:00,599,0:00:04,160\nHi\n", None),
            ("00.599,04.160\nHi\n", None),
            ("WEBVTT\n\n00:01.000 --> 00:02.500 line:0 position:20%\nHello\n", Some(WebVtt)),
            (
                "\u{feff}WEBVTT - a title\n\nNOTE none\n\nintro\n00:00:01.000 --> 00:00:02.500\nHello\n",
                Some(WebVtt),
            ),
            ("WEBVTT\n\nHello\n", None),
            ("WEBVTTX\n\n00:01.000 --> 00:02.500\nHello\n", None),
            ("Hello\n", None),
            ("1\nHello\n", None),
            ("00:00:01,000 --> 00:00:02,500\nHello\n", None),
            ("1\n00:00:01 --> 00:00:02\nHello\n", None),
            ("1\n--> 00:00:02,500\nHello\n", None),
            ("<tt xmlns=\"http://www.w3.org/ns/ttml\"/>", None),
            ("", None),
        ] {
            assert_eq!(File(content.into()).format(), format, "{content:?}");
        }
    }

    #[test]
    fn other_formats_become_webvtt_with_the_same_text() {
        for (file, webvtt) in [
            (
                "0:00:00.599,0:00:04.160\r\n>> ALICE & <i>Bob</i>,\r\n1 < 2\r\n\r\n10:00:04.160,100:00:06.770\r\nBye\r\n",
                "WEBVTT\n\n00:00:00.599 --> 00:00:04.160\n&gt;&gt; ALICE &amp; &lt;i&gt;Bob&lt;/i&gt;,\n1 &lt; 2\n\n10:00:04.160 --> 100:00:06.770\nBye\n",
            ),
            (
                "\u{feff}1\r\n00:00:01,000 --> 00:00:02,500\r\nHello, world\r\n\r\n2\r\n00:00:03,000 --> 00:00:04,000\r\nBye\r\n",
                "WEBVTT\n\n1\n00:00:01.000 --> 00:00:02.500\nHello, world\n\n2\n00:00:03.000 --> 00:00:04.000\nBye\n",
            ),
            (
                "1\n00:00:01,000 --> 00:00:02,500\n<I>Tom & Jerry</I>: 1 < 2 --> <font color=\"red\">so</font> 🎬\n",
                "WEBVTT\n\n1\n00:00:01.000 --> 00:00:02.500\n<i>Tom &amp; Jerry</i>: 1 &lt; 2 --&gt; so 🎬\n",
            ),
        ] {
            let converted = File(file.into()).to_webvtt().into_owned();
            assert_eq!(converted, webvtt);
            let converted = File(converted);
            assert_eq!(converted.format(), Some(Format::WebVtt));
            assert_eq!(converted.to_webvtt(), converted.text(), "WebVTT stays as it is");
        }
    }
}
