//! Playlists of the channel: <https://developers.google.com/youtube/v3/docs/playlistItems/insert>.
//!
//! A video is added once it is live. YouTube adds one as often as it is asked to, so that a playlist is read before;
//! what one playlist refuses is told to the post's owner and keeps the video out of no other.

use super::{API, List, Settings, Titled};
use crate::{
    Result, Session,
    look_up::{self, Findings},
};
use domain::Failure;
use serde_json::{Value, json};

/// Maximum number of further playlists of a post: each costs 50 of the project's 10,000 units of the day.
pub(super) const MAX_FURTHER: usize = 20;

impl Settings {
    /// Returns the name of the setting with this playlist.
    pub(super) fn setting_of(&self, playlist: &str) -> &'static str {
        if self.playlist() == Some(playlist) { "playlist" } else { "playlists" }
    }
}

/// Finds the playlists that are none of the channel.
pub(super) async fn look_up(cx: &Session<'_>, settings: &Settings, found: &mut Findings) -> Result<()> {
    for playlist in settings.playlists() {
        if !exists(cx, playlist).await? {
            let message = format!("has no playlist {playlist} of this channel");
            found.error(look_up::NOT_FOUND, settings.setting_of(playlist), &message);
        }
    }
    Ok(())
}

/// Fails if a playlist is none of the channel.
pub(super) async fn check(cx: &Session<'_>, settings: &Settings) -> Result<()> {
    for playlist in settings.playlists() {
        if !exists(cx, playlist).await? {
            return Err(Failure::rejected(422, format!("the channel has no playlist {playlist}")));
        }
    }
    Ok(())
}

/// Returns true if the playlist is one of the channel.
async fn exists(cx: &Session<'_>, id: &str) -> Result<bool> {
    let call = cx.get(format!("{API}/playlists")).query(&[("part", "snippet"), ("id", id)]);
    // YouTube answers an unknown id with an empty list, or with 404.
    let found = look_up::found(call.send::<List<Titled>>().await)?;
    let ours = Some(cx.account.network_unique_id.as_str());
    Ok(found.is_some_and(|found| found.items.iter().any(|item| item.snippet.channel_id.as_deref() == ours)))
}

/// Adds a live video to the playlists that do not contain it yet.
pub(super) async fn add(cx: &Session<'_>, settings: &Settings, video: &str) -> Result<()> {
    for playlist in settings.playlists() {
        let part = format!("its place in playlist {playlist}");
        cx.note_refusal(insert(cx, video, playlist).await, &part, "", false).await?;
    }
    Ok(())
}

/// Adds the video to one playlist. Succeeds if it is there.
async fn insert(cx: &Session<'_>, video: &str, playlist: &str) -> Result<()> {
    let there: List<Value> = cx
        .get(format!("{API}/playlistItems"))
        .query(&[("part", "id"), ("playlistId", playlist), ("videoId", video)])
        .send()
        .await?;
    if !there.items.is_empty() {
        return Ok(());
    }
    let resource = json!({ "kind": "youtube#video", "videoId": video });
    cx.post(format!("{API}/playlistItems"))
        .query(&[("part", "snippet")])
        .json(&json!({ "snippet": { "playlistId": playlist, "resourceId": resource } }))
        .send_ok()
        .await
}
