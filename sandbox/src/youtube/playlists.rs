//! Playlists: <https://developers.google.com/youtube/v3/docs/playlistItems>.
//!
//! The list of a channel's uploads is kept by YouTube itself and runs a little behind; every channel
//! of the sandbox also has one list of its own to begin with, so that there is something to choose.

use super::{
    Answer, Call, MANAGE, READ, Record, Turn, admit, body, cut, etag, ids, listing, parts, refusal, tie, tied,
    time, untie, videos,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The most videos of a list.
const ITEMS: usize = 5_000;

/// A list that a channel made.
#[derive(Clone, Serialize, Deserialize)]
struct Playlist {
    id: String,
    channel: String,
    title: String,
    description: String,
    privacy: String,
    created_at: DateTime<Utc>,
}

impl Record for Playlist {
    const SHELF: &'static str = "youtube.playlist";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// A video's place in a list.
#[derive(Clone, Serialize, Deserialize)]
struct Place {
    id: String,
    playlist: String,
    video: String,
    at: DateTime<Utc>,
}

impl Record for Place {
    const SHELF: &'static str = "youtube.place";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// The list of all that a channel uploads.
pub(super) fn uploads(channel: &str) -> String {
    format!("UU{}", channel.trim_start_matches("UC"))
}

/// The lists that hold a video, by title.
pub(super) fn holding<'a>(turn: &'a Turn<'_>, video: &str) -> impl Iterator<Item = String> + use<'a> {
    tied(turn, "holding", video)
        .filter_map(|place| turn.shelf.get::<Place>(&place))
        .filter_map(|place| get(turn, &place.playlist))
        .map(|playlist| playlist.title)
}

/// Forgets a video's places.
pub(super) fn forget(turn: &mut Turn<'_>, video: &str) {
    let places: Vec<_> = tied(turn, "holding", video).collect();
    for id in places {
        if let Some(place) = turn.shelf.get::<Place>(&id) {
            take_away(turn, &place);
        }
    }
}

/// The list with this id, the one that every channel begins with included.
fn get(turn: &Turn<'_>, id: &str) -> Option<Playlist> {
    if let Some(made) = turn.shelf.get(id) {
        return Some(made);
    }
    let channel = format!("UC{}", id.strip_prefix("PL")?);
    let owner = super::account::numbered(turn.shelf, super::ID, &channel)?;
    Some(Playlist {
        id: id.to_owned(),
        channel,
        title: "Sandbox playlist".into(),
        description: String::new(),
        privacy: "public".into(),
        created_at: owner.created_at,
    })
}

impl Playlist {
    fn resource(&self, turn: &Turn<'_>) -> Value {
        json!({
            "kind": "youtube#playlist",
            "etag": etag(&json!(self.id)),
            "id": self.id,
            "snippet": {
                "publishedAt": time(self.created_at),
                "channelId": self.channel,
                "title": self.title,
                "description": self.description,
                "thumbnails": {},
                "localized": { "title": self.title, "description": self.description },
            },
            "status": { "privacyStatus": self.privacy },
            "contentDetails": { "itemCount": tied(turn, "in", &self.id).count() },
        })
    }
}

/// `GET /youtube/v3/playlists`.
pub(super) fn list(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, READ, 1)?;
    let parts = parts(call, &["id", "snippet", "status", "contentDetails", "localizations", "player"])?;
    let of = |channel: &str| {
        let first = get(turn, &format!("PL{}", channel.trim_start_matches("UC")));
        let made = tied(turn, "made", channel).filter_map(|id| get(turn, &id));
        first.into_iter().chain(made).collect::<Vec<_>>()
    };
    let found = match (call.query("mine"), call.query("channelId"), call.query("id")) {
        (Some(_), None, None) => of(&caller.id),
        (None, Some(channel), None) => of(channel),
        (None, None, Some(_)) => ids(call, "id").iter().filter_map(|id| get(turn, id)).collect(),
        (None, None, None) => return Err(refusal(400, "missingRequiredParameter", "No filter selected.")),
        _ => return Err(refusal(400, "invalidCriteria", "A maximum of one filter may be specified.")),
    };
    let resources: Vec<_> = found.iter().map(|list| cut(list.resource(turn), &parts)).collect();
    listing(call, "youtube#playlistListResponse", 50, &resources)
}

/// `POST /youtube/v3/playlists`.
pub(super) fn insert(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, MANAGE, 50)?;
    let parts = parts(call, &["id", "snippet", "status", "contentDetails", "localizations"])?;
    let body = body(call)?;
    let title = body["snippet"]["title"].as_str().unwrap_or_default();
    if title.is_empty() || title.chars().count() > 150 {
        return Err(refusal(400, "playlistTitleRequired", "The request must specify a playlist title."));
    }
    let playlist = Playlist {
        id: format!("PL{}", &super::google::random()[..32]),
        channel: caller.id.clone(),
        title: title.into(),
        description: body["snippet"]["description"].as_str().unwrap_or_default().into(),
        privacy: body["status"]["privacyStatus"].as_str().unwrap_or("public").into(),
        created_at: turn.now,
    };
    turn.shelf.put(&playlist);
    tie(turn, "made", &caller.id, &playlist.id);
    let resource = cut(playlist.resource(turn), &parts);
    Ok(Answer::json(200, &resource))
}

/// `GET /youtube/v3/playlistItems`.
pub(super) fn items(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, READ, 1)?;
    let parts = parts(call, &["id", "snippet", "contentDetails", "status"])?;
    let missing =
        || refusal(404, "playlistNotFound", "The playlist identified with the playlistId parameter cannot be found.");
    let (list, wanted) = (call.query("playlistId"), call.query("videoId"));
    let Some(list) = list else {
        return Err(refusal(400, "missingRequiredParameter", "No filter selected. Expected one of: id, playlistId"));
    };
    let places: Vec<Place> = match list.strip_prefix("UU") {
        Some(rest) => {
            let channel = format!("UC{rest}");
            super::account::numbered(turn.shelf, super::ID, &channel).ok_or_else(missing)?;
            let lag = TimeDelta::milliseconds(i64::try_from(turn.settings.lag_ms).unwrap_or(i64::MAX));
            videos::by(turn, &channel)
                .rev()
                .filter(|video| turn.now - video.uploaded_at >= lag)
                .filter(|video| video.privacy() == "public" || video.channel == caller.id)
                .map(|video| Place {
                    id: format!("{list}.{}", video.id),
                    playlist: list.to_owned(),
                    at: video.uploaded_at,
                    video: video.id,
                })
                .collect()
        }
        None => {
            get(turn, list).ok_or_else(missing)?;
            tied(turn, "in", list).filter_map(|id| turn.shelf.get::<Place>(&id)).collect()
        }
    };
    let shown: Vec<_> = places
        .iter()
        .filter(|place| wanted.is_none_or(|wanted| place.video == wanted))
        .enumerate()
        .filter_map(|(position, place)| {
            let video = videos::get(turn, &place.video)?;
            Some(cut(resource(turn, place, &video, position), &parts))
        })
        .collect();
    listing(call, "youtube#playlistItemListResponse", 50, &shown)
}

fn resource(turn: &Turn<'_>, place: &Place, video: &videos::Video, position: usize) -> Value {
    let whole = video.resource(turn, true);
    json!({
        "kind": "youtube#playlistItem",
        "etag": etag(&json!(place.id)),
        "id": place.id,
        "snippet": {
            "publishedAt": time(place.at),
            "channelId": video.channel,
            "title": video.title(),
            "description": video.description(),
            "thumbnails": whole["snippet"]["thumbnails"],
            "playlistId": place.playlist,
            "position": position,
            "resourceId": { "kind": "youtube#video", "videoId": video.id },
            "videoOwnerChannelId": video.channel,
        },
        "contentDetails": { "videoId": video.id, "videoPublishedAt": time(video.uploaded_at) },
        "status": { "privacyStatus": video.privacy() },
    })
}

/// `POST /youtube/v3/playlistItems`.
pub(super) fn add(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, MANAGE, 50)?;
    let parts = parts(call, &["id", "snippet", "contentDetails", "status"])?;
    let body = body(call)?;
    let snippet = &body["snippet"];
    let Some(list) = snippet["playlistId"].as_str() else {
        return Err(refusal(400, "playlistIdRequired", "The subscribe request does not specify a playlist ID."));
    };
    let Some(id) = snippet["resourceId"]["videoId"].as_str() else {
        return Err(refusal(400, "resourceIdRequired", "The request must contain a resource in which the snippet object specifies a resourceId."));
    };
    let playlist =
        get(turn, list).ok_or_else(|| refusal(404, "playlistNotFound", "Playlist not found."))?;
    if playlist.channel != caller.id {
        return Err(refusal(403, "playlistItemsNotAccessible", "The request is not properly authorized to insert the specified playlist item."));
    }
    let video =
        videos::get(turn, id).ok_or_else(|| refusal(404, "videoNotFound", "Video not found."))?;
    let position = tied(turn, "in", list).count();
    if position >= ITEMS {
        return Err(refusal(403, "playlistContainsMaximumNumberOfVideos", "The playlist already contains the maximum allowed number of items."));
    }
    let place =
        Place { id: super::google::random(), playlist: list.into(), video: id.into(), at: turn.now };
    turn.shelf.put(&place);
    tie(turn, "in", list, &place.id);
    tie(turn, "holding", id, &place.id);
    let resource = cut(resource(turn, &place, &video, position), &parts);
    Ok(Answer::json(200, &resource))
}

/// `DELETE /youtube/v3/playlistItems`.
pub(super) fn remove(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, MANAGE, 50)?;
    let place = call.query("id").and_then(|id| turn.shelf.get::<Place>(id));
    let owned = place.filter(|place| {
        get(turn, &place.playlist).is_some_and(|playlist| playlist.channel == caller.id)
    });
    let Some(place) = owned else {
        return Err(refusal(404, "playlistItemNotFound", "Playlist item not found."));
    };
    take_away(turn, &place);
    Ok(Answer::empty(204))
}

fn take_away(turn: &mut Turn<'_>, place: &Place) {
    turn.shelf.remove::<Place>(&place.id);
    untie(turn, "in", &place.playlist, &place.id);
    untie(turn, "holding", &place.video, &place.id);
}
