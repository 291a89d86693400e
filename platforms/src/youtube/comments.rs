//! Comments on a video: <https://developers.google.com/youtube/v3/docs/commentThreads>.
//!
//! A comment has no upload whose address shows it, so that a lost one is searched for.

use super::{API, Created, List};
use crate::{Page, PublishRequest, Result, Session, google, listing::Listing, required};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::json;

/// Comments on a video and returns the comment's id.
pub(super) async fn comment(cx: &Session<'_>, video: &str, text: &str) -> Result<String> {
    let comment = json!({ "snippet": { "textOriginal": text } });
    let snippet = json!({
        "channelId": cx.account.network_unique_id,
        "videoId": video,
        "topLevelComment": comment,
    });
    let created: Created = cx
        .post(format!("{API}/commentThreads"))
        .query(&[("part", "snippet")])
        .json(&json!({ "snippet": snippet }))
        .send()
        .await?;
    Ok(created.id)
}

/// The comments on a video, newest first.
pub(super) struct Comments<'a> {
    pub(super) cx: &'a Session<'a>,
    pub(super) video: &'a str,
}

#[async_trait]
impl Listing for Comments<'_> {
    type Item = Thread;

    async fn page(&self, _since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Thread>> {
        let call = self.cx.get(format!("{API}/commentThreads")).query(&[
            ("part", "snippet"),
            ("videoId", self.video),
            ("order", "time"),
            ("textFormat", "plainText"),
            ("maxResults", "100"),
        ]);
        Ok(google::paged(call, cursor).send::<List<Thread>>().await?.page())
    }

    fn id(thread: &Thread) -> &str {
        &thread.id
    }

    fn published_at(thread: &Thread) -> Option<DateTime<Utc>> {
        thread.snippet.top_level_comment.snippet.published_at
    }

    fn matches(&self, thread: &Thread, post: &PublishRequest) -> bool {
        let said = &thread.snippet.top_level_comment.snippet;
        // Only the author receives the original text.
        let text = said.text_original.as_deref().unwrap_or(&said.text_display);
        said.author_channel_id.value == self.cx.account.network_unique_id && text.trim() == post.text.trim()
    }
}

/// Returns true for a comment's id, which is longer than a video's eleven characters.
pub(super) fn is_comment(id: &str) -> bool {
    id.len() > 11
}

#[derive(Deserialize)]
pub(super) struct Thread {
    #[serde(deserialize_with = "required::id")]
    pub(super) id: String,
    pub(super) snippet: ThreadSnippet,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadSnippet {
    pub(super) video_id: Option<String>,
    top_level_comment: Said,
}

#[derive(Deserialize)]
struct Said {
    snippet: CommentText,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CommentText {
    #[serde(default)]
    text_display: String,
    text_original: Option<String>,
    published_at: Option<DateTime<Utc>>,
    #[serde(default)]
    author_channel_id: Author,
}

#[derive(Default, Deserialize)]
struct Author {
    #[serde(default)]
    value: String,
}
