//! Comments: <https://developers.google.com/youtube/v3/docs/commentThreads>.
//!
//! A thread is a comment on a video with its replies. Lists lag behind.

use super::{
    Account, ID, Outcome, Record, Request, Response, Transaction, YouTube, account, body, etag, ids, listing,
    parts, refusal, select_parts, time,
    video::{self, Video},
};
use crate::exchange::Cause::{Content, Protocol, State};
use crate::simulator::{PostView, Simulator};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Maximum number of characters of a comment.
const MAX_CHARS: usize = 10_000;

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Comment {
    /// Id; a thread has the id of its first comment.
    pub(super) id: String,
    video: String,
    author: String,
    parent: Option<String>,
    text: String,
    at: DateTime<Utc>,
}

impl Record for Comment {
    const TABLE: &'static str = "youtube.comment";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// Returns the comments below a video, oldest first.
pub(super) fn under<'a>(
    tx: &'a Transaction,
    video: &str,
) -> impl DoubleEndedIterator<Item = Comment> + use<'a> {
    tx.store.linked("youtube.below", video)
}

/// Returns the comments that a channel made, oldest first.
pub(super) fn by<'a>(
    tx: &'a Transaction,
    channel: &str,
) -> impl DoubleEndedIterator<Item = Comment> + use<'a> {
    tx.store.linked("youtube.said", channel)
}

/// Deletes the comments on a video.
pub(super) fn forget(tx: &mut Transaction, video: &str) {
    let comments: Vec<_> = under(tx, video).collect();
    for comment in comments {
        take_away(tx, &comment);
    }
}

impl Comment {
    /// Returns the comment as the pages show it.
    pub(super) fn post_view(&self) -> PostView {
        PostView {
            id: self.id.clone(),
            address: format!("www.youtube.com/watch?v={}&lc={}", self.video, self.id),
            text: self.text.clone(),
            at: self.at,
            media: Vec::new(),
            notes: Vec::new(),
            reply_to: Some(self.parent.clone().unwrap_or_else(|| self.video.clone())),
        }
    }

    fn resource(&self, tx: &Transaction, is_author: bool, is_html: bool) -> Value {
        let author = account::by_id(tx.store, ID, &self.author);
        let name = author.map_or_else(String::new, |author| format!("@{}", author.username));
        let display = match is_html {
            true => escape(&self.text).replace('\n', "<br>"),
            false => self.text.clone(),
        };
        let mut snippet = json!({
            "textDisplay": display,
            "authorDisplayName": name,
            "authorChannelUrl": format!("http://www.youtube.com/{name}"),
            "authorChannelId": { "value": self.author },
            "canRate": true,
            "viewerRating": "none",
            "likeCount": 0,
            "publishedAt": time(self.at),
            "updatedAt": time(self.at),
            "videoId": self.video,
        });
        // Only the author gets the original text.
        if is_author {
            snippet["textOriginal"] = json!(self.text);
        }
        if let Some(parent) = &self.parent {
            snippet["parentId"] = json!(parent);
        }
        json!({ "kind": "youtube#comment", "etag": etag(&json!(self.text)), "id": self.id, "snippet": snippet })
    }

    fn thread(&self, tx: &Transaction, caller: &str, is_html: bool) -> Value {
        let channel = video::get(tx, &self.video).map(|video| video.channel);
        let answers: Vec<_> = under(tx, &self.video)
            .filter(|other| other.parent.as_ref() == Some(&self.id))
            .map(|other| other.resource(tx, other.author == caller, is_html))
            .collect();
        let mut thread = json!({
            "kind": "youtube#commentThread",
            "etag": etag(&json!(self.id)),
            "id": self.id,
            "snippet": {
                "channelId": channel,
                "videoId": self.video,
                "topLevelComment": self.resource(tx, self.author == caller, is_html),
                "canReply": true,
                "totalReplyCount": answers.len(),
                "isPublic": true,
            },
        });
        if !answers.is_empty() {
            thread["replies"] = json!({ "comments": answers });
        }
        thread
    }
}

/// `GET /youtube/v3/commentThreads`.
pub(super) fn threads(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let parts = parts(request, &["id", "snippet", "replies"])?;
    let found: Vec<Comment> = match (request.query("videoId"), request.query("id")) {
        (Some(video), None) => {
            let video = visible(tx, video, &caller.id)?;
            let lag = tx.settings.lag();
            under(tx, &video.id)
                .rev()
                .filter(|comment| comment.parent.is_none() && tx.now - comment.at >= lag)
                .collect()
        }
        (None, Some(_)) => ids(request, "id").iter().filter_map(|id| tx.store.get(id)).collect(),
        _ => return Err(refusal(Protocol, 400, "missingRequiredParameter", "Expected one of: id, videoId")),
    };
    let is_html = request.query("textFormat") != Some("plainText");
    let resources: Vec<_> =
        found.iter().map(|comment| select_parts(comment.thread(tx, &caller.id, is_html), &parts)).collect();
    listing(request, "youtube#commentThreadListResponse", 100, &resources)
}

/// `POST /youtube/v3/commentThreads`.
pub(super) fn begin(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let parts = parts(request, &["id", "snippet", "replies"])?;
    let body = body(request)?;
    let snippet = &body["snippet"];
    let words = words(&snippet["topLevelComment"]["snippet"]["textOriginal"])?;
    let fault = YouTube.trigger_fault(tx, request, &caller.username, &words)?;
    let Some(video) = snippet["videoId"].as_str() else {
        return Err(refusal(Protocol, 400, "channelOrVideoIdMissing", "A channelId or videoId is required."));
    };
    let video = visible(tx, video, &caller.id)?;
    if video.privacy() == "private" {
        return Err(refusal(
            State,
            403,
            "forbidden",
            "One or more of the requested comment threads cannot be created due to insufficient permissions.",
        ));
    }
    if video.is_for_kids() {
        return Err(refusal(
            State,
            403,
            "commentsDisabled",
            "The video identified by the videoId parameter has disabled comments.",
        ));
    }
    let comment = say(tx, &caller.id, &video.id, None, words);
    let resource = select_parts(comment.thread(tx, &caller.id, false), &parts);
    Ok(Response::json(200, &resource).with_post(comment.id).with_fault(fault))
}

/// `GET /youtube/v3/comments`.
pub(super) fn list(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let parts = parts(request, &["id", "snippet"])?;
    let found: Vec<Comment> = match (request.query("parentId"), request.query("id")) {
        (Some(parent), None) => {
            let parent: Comment = tx.store.get(parent).ok_or_else(missing)?;
            under(tx, &parent.video).filter(|other| other.parent.as_ref() == Some(&parent.id)).collect()
        }
        (None, Some(_)) => ids(request, "id").iter().filter_map(|id| tx.store.get(id)).collect(),
        _ => return Err(refusal(Protocol, 400, "missingRequiredParameter", "Expected one of: id, parentId")),
    };
    let is_html = request.query("textFormat") != Some("plainText");
    let resources: Vec<_> = found
        .iter()
        .map(|comment| select_parts(comment.resource(tx, comment.author == caller.id, is_html), &parts))
        .collect();
    listing(request, "youtube#commentListResponse", 100, &resources)
}

/// `POST /youtube/v3/comments`: an answer to a comment.
pub(super) fn reply(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let parts = parts(request, &["id", "snippet"])?;
    let body = body(request)?;
    let words = words(&body["snippet"]["textOriginal"])?;
    let Some(parent) = body["snippet"]["parentId"].as_str() else {
        return Err(refusal(
            Protocol,
            400,
            "parentCommentIdMissing",
            "The comment is a reply and has to name its parent.",
        ));
    };
    let parent: Comment = tx.store.get(parent).ok_or_else(|| {
        refusal(State, 404, "parentCommentNotFound", "The specified parent comment could not be found.")
    })?;
    let comment = say(tx, &caller.id, &parent.video, Some(parent.id), words);
    let resource = select_parts(comment.resource(tx, true, false), &parts);
    Ok(Response::json(200, &resource).with_post(comment.id))
}

/// `PUT /youtube/v3/comments`: another text of one's own comment.
pub(super) fn update(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let parts = parts(request, &["id", "snippet"])?;
    let body = body(request)?;
    let comment: Comment = body["id"].as_str().and_then(|id| tx.store.get(id)).ok_or_else(missing)?;
    if comment.author != caller.id {
        let message = "The comment could not be updated because of insufficient permissions.";
        return Err(refusal(State, 403, "forbidden", message));
    }
    let comment = Comment { text: words(&body["snippet"]["textOriginal"])?, ..comment };
    tx.store.put(&comment);
    Ok(Response::json(200, &select_parts(comment.resource(tx, true, false), &parts)))
}

/// `DELETE /youtube/v3/comments`.
pub(super) fn delete(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let comment: Comment = request.query("id").and_then(|id| tx.store.get(id)).ok_or_else(missing)?;
    let is_moderator = video::get(tx, &comment.video).is_some_and(|video| video.channel == caller.id);
    if comment.author != caller.id && !is_moderator {
        return Err(refusal(
            State,
            403,
            "forbidden",
            "The comment could not be deleted because of insufficient permissions.",
        ));
    }
    take_away(tx, &comment);
    Ok(Response::empty(204))
}

fn say(tx: &mut Transaction, author: &str, video: &str, parent: Option<String>, text: String) -> Comment {
    let id = match &parent {
        None => format!("Ug{}AaABAg", &crate::tokens::random()[..18]),
        Some(parent) => format!("{parent}.{}", &crate::tokens::random()[..22]),
    };
    let comment = Comment { id, video: video.into(), author: author.into(), parent, text, at: tx.now };
    tx.store.put(&comment);
    tx.store.link("youtube.below", video, &comment.id);
    tx.store.link("youtube.said", author, &comment.id);
    comment
}

fn take_away(tx: &mut Transaction, comment: &Comment) {
    tx.store.remove::<Comment>(&comment.id);
    tx.store.unlink("youtube.below", &comment.video, &comment.id);
    tx.store.unlink("youtube.said", &comment.author, &comment.id);
}

fn words(value: &Value) -> Result<String, Response> {
    match value.as_str().map(str::trim) {
        None | Some("") => Err(refusal(
            Content("empty_comment"),
            400,
            "commentTextRequired",
            "The comment text cannot be empty.",
        )),
        Some(words) if words.chars().count() > MAX_CHARS => Err(refusal(
            Content("comment_too_long"),
            400,
            "commentTextTooLong",
            "The comment text is too long.",
        )),
        Some(_) => Ok(value.as_str().unwrap_or_default().to_owned()),
    }
}

fn visible(tx: &Transaction, id: &str, caller: &str) -> Result<Video, Response> {
    video::get(tx, id).filter(|video| video.privacy() != "private" || video.channel == caller).ok_or_else(
        || {
            refusal(
                State,
                404,
                "videoNotFound",
                "The video identified by the videoId parameter could not be found.",
            )
        },
    )
}

fn missing() -> Response {
    refusal(State, 404, "commentNotFound", "The specified comment could not be found.")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
