//! The account's channel: <https://developers.google.com/youtube/v3/docs/channels>.

use super::{API, List, snippet::Snippet};
use crate::{AccountProfile, Identity, Result, Session, required};
use serde::Deserialize;

/// Returns one part of the account's channel.
pub(super) async fn channel(cx: &Session<'_>, part: &str) -> Result<Option<Channel>> {
    let channels: List<Channel> =
        cx.get(format!("{API}/channels")).query(&[("part", part), ("mine", "true")]).send().await?;
    Ok(channels.items.into_iter().find(|channel| channel.id == cx.account.network_unique_id))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Channel {
    #[serde(deserialize_with = "required::id")]
    pub(super) id: String,
    #[serde(default)]
    pub(super) snippet: Snippet,
    pub(super) content_details: Option<ChannelDetails>,
    #[serde(default)]
    pub(super) status: ChannelStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChannelDetails {
    pub(super) related_playlists: Related,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChannelStatus {
    pub(super) long_uploads_status: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Related {
    pub(super) uploads: String,
}

impl Channel {
    pub(super) fn identity(self) -> Identity {
        let handle = self.snippet.custom_url.as_deref().map(|handle| handle.trim_start_matches('@'));
        let profile_url = match handle.filter(|handle| !handle.is_empty()) {
            Some(handle) => format!("https://www.youtube.com/@{handle}"),
            None => format!("https://www.youtube.com/channel/{}", self.id),
        };
        Identity {
            profile: AccountProfile {
                // A channel may have no handle.
                username: handle.filter(|handle| !handle.is_empty()).unwrap_or(&self.id).to_owned(),
                display_name: if self.snippet.title.is_empty() {
                    self.id.clone()
                } else {
                    self.snippet.title
                },
                account_type: "channel".to_owned(),
                profile_image_url: self.snippet.thumbnails.largest(),
                profile_url: Some(profile_url),
                network_unique_id: self.id,
            },
            grant: None,
        }
    }
}
