//! Playlists: <https://developers.google.com/youtube/v3/docs/playlistItems>.
//!
//! The playlist of a channel's uploads is maintained by YouTube and lags behind; every channel also has one
//! playlist of its own from the beginning, so that there is one to choose.

use super::{
    Account, Outcome, Record, Request, Response, Transaction, body, etag, ids, listing, parts, refusal,
    select_parts, time,
    video::{self, Video},
};
use crate::exchange::Cause::{Protocol, State};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Maximum number of videos of a playlist.
const ITEMS: usize = 5_000;

/// A playlist that a channel created.
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
    const TABLE: &'static str = "youtube.playlist";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// An item of a playlist.
#[derive(Clone, Serialize, Deserialize)]
struct Place {
    id: String,
    playlist: String,
    video: String,
    at: DateTime<Utc>,
}

impl Record for Place {
    const TABLE: &'static str = "youtube.place";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// Returns the id of the playlist of a channel's uploads.
pub(super) fn uploads(channel: &str) -> String {
    format!("UU{}", channel.trim_start_matches("UC"))
}

/// Returns the titles of the playlists that contain a video.
pub(super) fn containing<'a>(tx: &'a Transaction, video: &str) -> impl Iterator<Item = String> + use<'a> {
    tx.store
        .linked_keys("youtube.holding", video)
        .filter_map(|place| tx.store.get::<Place>(&place))
        .filter_map(|place| get(tx, &place.playlist))
        .map(|playlist| playlist.title)
}

/// Removes a video from all playlists.
pub(super) fn forget(tx: &mut Transaction, video: &str) {
    let places: Vec<_> = tx.store.linked_keys("youtube.holding", video).collect();
    for id in places {
        if let Some(place) = tx.store.get::<Place>(&id) {
            take_away(tx, &place);
        }
    }
}

/// Returns the playlist with this id, including every channel's first one.
fn get(tx: &Transaction, id: &str) -> Option<Playlist> {
    if let Some(made) = tx.store.get(id) {
        return Some(made);
    }
    let channel = format!("UC{}", id.strip_prefix("PL")?);
    let owner = super::account::by_id(tx.store, super::ID, &channel)?;
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
    fn resource(&self, tx: &Transaction) -> Value {
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
            "contentDetails": { "itemCount": tx.store.linked_keys("youtube.in", &self.id).count() },
        })
    }
}

/// `GET /youtube/v3/playlists`.
pub(super) fn list(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let parts = parts(request, &["id", "snippet", "status", "contentDetails", "localizations", "player"])?;
    let of = |channel: &str| {
        let first = get(tx, &format!("PL{}", channel.trim_start_matches("UC")));
        let made = tx.store.linked_keys("youtube.made", channel).filter_map(|id| get(tx, &id));
        first.into_iter().chain(made).collect::<Vec<_>>()
    };
    let found = match (request.query("mine"), request.query("channelId"), request.query("id")) {
        (Some(_), None, None) => of(&caller.id),
        (None, Some(channel), None) => of(channel),
        (None, None, Some(_)) => ids(request, "id").iter().filter_map(|id| get(tx, id)).collect(),
        (None, None, None) => {
            return Err(refusal(Protocol, 400, "missingRequiredParameter", "No filter selected."));
        }
        _ => {
            return Err(refusal(
                Protocol,
                400,
                "invalidCriteria",
                "A maximum of one filter may be specified.",
            ));
        }
    };
    let resources: Vec<_> = found.iter().map(|list| select_parts(list.resource(tx), &parts)).collect();
    listing(request, "youtube#playlistListResponse", 50, &resources)
}

/// `POST /youtube/v3/playlists`.
pub(super) fn insert(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let parts = parts(request, &["id", "snippet", "status", "contentDetails", "localizations"])?;
    let body = body(request)?;
    let title = body["snippet"]["title"].as_str().unwrap_or_default();
    if title.is_empty() || title.chars().count() > 150 {
        return Err(refusal(
            Protocol,
            400,
            "playlistTitleRequired",
            "The request must specify a playlist title.",
        ));
    }
    let playlist = Playlist {
        id: format!("PL{}", &crate::tokens::random()[..32]),
        channel: caller.id.clone(),
        title: title.into(),
        description: body["snippet"]["description"].as_str().unwrap_or_default().into(),
        privacy: body["status"]["privacyStatus"].as_str().unwrap_or("public").into(),
        created_at: tx.now,
    };
    tx.store.put(&playlist);
    tx.store.link("youtube.made", &caller.id, &playlist.id);
    let resource = select_parts(playlist.resource(tx), &parts);
    Ok(Response::json(200, &resource))
}

/// `GET /youtube/v3/playlistItems`.
pub(super) fn items(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let parts = parts(request, &["id", "snippet", "contentDetails", "status"])?;
    let missing = || {
        refusal(
            State,
            404,
            "playlistNotFound",
            "The playlist identified with the playlistId parameter cannot be found.",
        )
    };
    let (list, wanted) = (request.query("playlistId"), request.query("videoId"));
    let Some(list) = list else {
        return Err(refusal(
            Protocol,
            400,
            "missingRequiredParameter",
            "No filter selected. Expected one of: id, playlistId",
        ));
    };
    let places: Vec<Place> = match list.strip_prefix("UU") {
        Some(rest) => {
            let channel = format!("UC{rest}");
            super::account::by_id(tx.store, super::ID, &channel).ok_or_else(missing)?;
            let lag = tx.settings.lag();
            video::by(tx, &channel)
                .rev()
                .filter(|video| tx.now - video.uploaded_at >= lag)
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
            get(tx, list).ok_or_else(missing)?;
            tx.store.linked("youtube.in", list).collect()
        }
    };
    let shown: Vec<_> = places
        .iter()
        .filter(|place| wanted.is_none_or(|wanted| place.video == wanted))
        .enumerate()
        .filter_map(|(position, place)| {
            let video = video::get(tx, &place.video)?;
            Some(select_parts(resource(tx, place, &video, position), &parts))
        })
        .collect();
    listing(request, "youtube#playlistItemListResponse", 50, &shown)
}

fn resource(tx: &Transaction, place: &Place, video: &Video, position: usize) -> Value {
    let whole = video.resource(tx, true);
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
pub(super) fn add(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let parts = parts(request, &["id", "snippet", "contentDetails", "status"])?;
    let body = body(request)?;
    let snippet = &body["snippet"];
    let Some(list) = snippet["playlistId"].as_str() else {
        return Err(refusal(
            Protocol,
            400,
            "playlistIdRequired",
            "The subscribe request does not specify a playlist ID.",
        ));
    };
    let Some(id) = snippet["resourceId"]["videoId"].as_str() else {
        return Err(refusal(
            Protocol,
            400,
            "resourceIdRequired",
            "The request must contain a resource in which the snippet object specifies a resourceId.",
        ));
    };
    let playlist =
        get(tx, list).ok_or_else(|| refusal(State, 404, "playlistNotFound", "Playlist not found."))?;
    if playlist.channel != caller.id {
        return Err(refusal(
            State,
            403,
            "playlistItemsNotAccessible",
            "The request is not properly authorized to insert the specified playlist item.",
        ));
    }
    let video = video::get(tx, id).ok_or_else(|| refusal(State, 404, "videoNotFound", "Video not found."))?;
    let position = tx.store.linked_keys("youtube.in", list).count();
    if position >= ITEMS {
        return Err(refusal(
            State,
            403,
            "playlistContainsMaximumNumberOfVideos",
            "The playlist already contains the maximum allowed number of items.",
        ));
    }
    let place = Place { id: crate::tokens::random(), playlist: list.into(), video: id.into(), at: tx.now };
    tx.store.put(&place);
    tx.store.link("youtube.in", list, &place.id);
    tx.store.link("youtube.holding", id, &place.id);
    let resource = select_parts(resource(tx, &place, &video, position), &parts);
    Ok(Response::json(200, &resource))
}

/// `DELETE /youtube/v3/playlistItems`.
pub(super) fn remove(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let place = request.query("id").and_then(|id| tx.store.get::<Place>(id));
    let owned =
        place.filter(|place| get(tx, &place.playlist).is_some_and(|playlist| playlist.channel == caller.id));
    let Some(place) = owned else {
        return Err(refusal(State, 404, "playlistItemNotFound", "Playlist item not found."));
    };
    take_away(tx, &place);
    Ok(Response::empty(204))
}

fn take_away(tx: &mut Transaction, place: &Place) {
    tx.store.remove::<Place>(&place.id);
    tx.store.unlink("youtube.in", &place.playlist, &place.id);
    tx.store.unlink("youtube.holding", &place.video, &place.id);
}
