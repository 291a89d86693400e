//! Comments: <https://developers.google.com/youtube/v3/docs/commentThreads>.
//!
//! A thread is a comment below a video and what answers it. The lists run a little behind.

use super::{
    Answer, Call, ID, Record, TALK, Turn, YouTube, account, admit, body, cut, etag, ids, listing, parts,
    refusal, tie, tied, time, untie, videos,
};
use crate::{
    fault,
    host::{Card, Host},
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The longest comment, in characters.
const LONGEST: usize = 10_000;

/// A comment.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Comment {
    /// Its id; a thread has that of its first comment.
    pub(super) id: String,
    video: String,
    author: String,
    parent: Option<String>,
    text: String,
    at: DateTime<Utc>,
}

impl Record for Comment {
    const SHELF: &'static str = "youtube.comment";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// The comments below a video, oldest first.
pub(super) fn under<'a>(turn: &'a Turn<'_>, video: &str) -> impl DoubleEndedIterator<Item = Comment> + use<'a> {
    tied(turn, "below", video).filter_map(|id| turn.shelf.get(&id))
}

/// The comments that a channel made, oldest first.
pub(super) fn by<'a>(turn: &'a Turn<'_>, channel: &str) -> impl DoubleEndedIterator<Item = Comment> + use<'a> {
    tied(turn, "said", channel).filter_map(|id| turn.shelf.get(&id))
}

/// Forgets all below a video.
pub(super) fn forget(turn: &mut Turn<'_>, video: &str) {
    let comments: Vec<_> = under(turn, video).collect();
    for comment in comments {
        take_away(turn, &comment);
    }
}

impl Comment {
    /// The comment as a page shows it.
    pub(super) fn card(&self) -> Card {
        Card {
            id: self.id.clone(),
            address: format!("www.youtube.com/watch?v={}&lc={}", self.video, self.id),
            text: self.text.clone(),
            at: self.at,
            media: Vec::new(),
            notes: Vec::new(),
            reply_to: Some(self.parent.clone().unwrap_or_else(|| self.video.clone())),
        }
    }

    fn resource(&self, turn: &Turn<'_>, is_author: bool, is_html: bool) -> Value {
        let author = account::numbered(turn.shelf, ID, &self.author);
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
        // The words as they were written are their author's.
        if is_author {
            snippet["textOriginal"] = json!(self.text);
        }
        if let Some(parent) = &self.parent {
            snippet["parentId"] = json!(parent);
        }
        json!({ "kind": "youtube#comment", "etag": etag(&json!(self.text)), "id": self.id, "snippet": snippet })
    }

    fn thread(&self, turn: &Turn<'_>, caller: &str, is_html: bool) -> Value {
        let channel = videos::get(turn, &self.video).map(|video| video.channel);
        let answers: Vec<_> = under(turn, &self.video)
            .filter(|other| other.parent.as_ref() == Some(&self.id))
            .map(|other| other.resource(turn, other.author == caller, is_html))
            .collect();
        let mut thread = json!({
            "kind": "youtube#commentThread",
            "etag": etag(&json!(self.id)),
            "id": self.id,
            "snippet": {
                "channelId": channel,
                "videoId": self.video,
                "topLevelComment": self.resource(turn, self.author == caller, is_html),
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
pub(super) fn threads(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, TALK, 1)?;
    let parts = parts(call, &["id", "snippet", "replies"])?;
    let found: Vec<Comment> = match (call.query("videoId"), call.query("id")) {
        (Some(video), None) => {
            let video = visible(turn, video, &caller.id)?;
            let lag = TimeDelta::milliseconds(i64::try_from(turn.settings.lag_ms).unwrap_or(i64::MAX));
            under(turn, &video.id)
                .rev()
                .filter(|comment| comment.parent.is_none() && turn.now - comment.at >= lag)
                .collect()
        }
        (None, Some(_)) => {
            ids(call, "id").iter().filter_map(|id| turn.shelf.get(id)).collect()
        }
        _ => return Err(refusal(400, "missingRequiredParameter", "Expected one of: id, videoId")),
    };
    let is_html = call.query("textFormat") != Some("plainText");
    let resources: Vec<_> =
        found.iter().map(|comment| cut(comment.thread(turn, &caller.id, is_html), &parts)).collect();
    listing(call, "youtube#commentThreadListResponse", 100, &resources)
}

/// `POST /youtube/v3/commentThreads`.
pub(super) fn begin(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, TALK, 50)?;
    let parts = parts(call, &["id", "snippet", "replies"])?;
    let body = body(call)?;
    let snippet = &body["snippet"];
    let words = words(&snippet["topLevelComment"]["snippet"]["textOriginal"])?;
    let fault = match fault::draw(turn, ID, &caller.username, &words) {
        Ok(fault) => fault,
        Err(fault) => return Err(YouTube.fail(turn, call, fault)),
    };
    let Some(video) = snippet["videoId"].as_str() else {
        return Err(refusal(400, "channelOrVideoIdMissing", "A channelId or videoId is required."));
    };
    let video = visible(turn, video, &caller.id)?;
    if video.privacy() == "private" {
        return Err(refusal(403, "forbidden", "One or more of the requested comment threads cannot be created due to insufficient permissions."));
    }
    let comment = say(turn, &caller.id, &video.id, None, words);
    let resource = cut(comment.thread(turn, &caller.id, false), &parts);
    Ok(Answer::json(200, &resource).publishing(comment.id).because(fault))
}

/// `GET /youtube/v3/comments`.
pub(super) fn list(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, TALK, 1)?;
    let parts = parts(call, &["id", "snippet"])?;
    let found: Vec<Comment> = match (call.query("parentId"), call.query("id")) {
        (Some(parent), None) => {
            let parent: Comment = turn.shelf.get(parent).ok_or_else(missing)?;
            under(turn, &parent.video).filter(|other| other.parent.as_ref() == Some(&parent.id)).collect()
        }
        (None, Some(_)) => ids(call, "id").iter().filter_map(|id| turn.shelf.get(id)).collect(),
        _ => return Err(refusal(400, "missingRequiredParameter", "Expected one of: id, parentId")),
    };
    let is_html = call.query("textFormat") != Some("plainText");
    let resources: Vec<_> = found
        .iter()
        .map(|comment| cut(comment.resource(turn, comment.author == caller.id, is_html), &parts))
        .collect();
    listing(call, "youtube#commentListResponse", 100, &resources)
}

/// `POST /youtube/v3/comments`: an answer to a comment.
pub(super) fn reply(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, TALK, 50)?;
    let parts = parts(call, &["id", "snippet"])?;
    let body = body(call)?;
    let words = words(&body["snippet"]["textOriginal"])?;
    let Some(parent) = body["snippet"]["parentId"].as_str() else {
        return Err(refusal(400, "parentCommentIdMissing", "The comment is a reply and has to name its parent."));
    };
    let parent: Comment = turn
        .shelf
        .get(parent)
        .ok_or_else(|| refusal(404, "parentCommentNotFound", "The specified parent comment could not be found."))?;
    let comment = say(turn, &caller.id, &parent.video, Some(parent.id), words);
    let resource = cut(comment.resource(turn, true, false), &parts);
    Ok(Answer::json(200, &resource).publishing(comment.id))
}

/// `DELETE /youtube/v3/comments`.
pub(super) fn delete(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, TALK, 50)?;
    let comment: Comment = call.query("id").and_then(|id| turn.shelf.get(id)).ok_or_else(missing)?;
    let is_moderator = videos::get(turn, &comment.video).is_some_and(|video| video.channel == caller.id);
    if comment.author != caller.id && !is_moderator {
        return Err(refusal(403, "forbidden", "The comment could not be deleted because of insufficient permissions."));
    }
    take_away(turn, &comment);
    Ok(Answer::empty(204))
}

fn say(turn: &mut Turn<'_>, author: &str, video: &str, parent: Option<String>, text: String) -> Comment {
    let id = match &parent {
        None => format!("Ug{}AaABAg", &super::google::random()[..18]),
        Some(parent) => format!("{parent}.{}", &super::google::random()[..22]),
    };
    let comment =
        Comment { id, video: video.into(), author: author.into(), parent, text, at: turn.now };
    turn.shelf.put(&comment);
    tie(turn, "below", video, &comment.id);
    tie(turn, "said", author, &comment.id);
    comment
}

fn take_away(turn: &mut Turn<'_>, comment: &Comment) {
    turn.shelf.remove::<Comment>(&comment.id);
    untie(turn, "below", &comment.video, &comment.id);
    untie(turn, "said", &comment.author, &comment.id);
}

fn words(value: &Value) -> Result<String, Answer> {
    match value.as_str().map(str::trim) {
        None | Some("") => Err(refusal(400, "commentTextRequired", "The comment text cannot be empty.")),
        Some(words) if words.chars().count() > LONGEST => {
            Err(refusal(400, "commentTextTooLong", "The comment text is too long."))
        }
        Some(_) => Ok(value.as_str().unwrap_or_default().to_owned()),
    }
}

fn visible(turn: &Turn<'_>, id: &str, caller: &str) -> Result<videos::Video, Answer> {
    videos::get(turn, id)
        .filter(|video| video.privacy() != "private" || video.channel == caller)
        .ok_or_else(|| refusal(404, "videoNotFound", "The video identified by the videoId parameter could not be found."))
}

fn missing() -> Answer {
    refusal(404, "commentNotFound", "The specified comment could not be found.")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
