//! Posts and stories as they are stored. Those of videos and photos are made by their uploads.

use super::{Request, Response, Transaction};
use crate::{
    exchange::Cause::{Content, Protocol},
    graph::{invalid, param},
    store::Record,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Kind of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// A post of text, a link, photos or a video.
    Feed,
    /// A story, which lasts a day.
    Story,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Post {
    /// Id; a feed post's begins with the Page's id.
    pub(super) id: String,
    pub(super) page: String,
    /// Kind.
    pub(super) kind: Kind,
    pub(super) message: String,
    pub(super) link: Option<String>,
    /// The cards of a carousel of links.
    #[serde(default)]
    pub(super) cards: Vec<Card>,
    pub(super) photos: Vec<String>,
    pub(super) video: Option<String>,
    /// Further lines on its page.
    pub(super) notes: Vec<String>,
    pub(super) created_at: DateTime<Utc>,
    /// Time from which on it is public, unless it is from the start.
    #[serde(default)]
    pub(super) visibility: Visibility,
}

/// A card of a carousel of links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Card {
    pub(super) link: String,
    pub(super) picture: String,
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
}

/// When a post is public.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Visibility {
    #[default]
    Public,
    Scheduled(DateTime<Utc>),
    Never,
}

impl Record for Post {
    const TABLE: &'static str = "facebook.post";

    fn key(&self) -> String {
        self.id.clone()
    }
}

impl Post {
    pub(super) fn is_public(&self, now: DateTime<Utc>) -> bool {
        match self.visibility {
            Visibility::Public => true,
            Visibility::Scheduled(at) => at <= now,
            Visibility::Never => false,
        }
    }

    pub(super) fn address(&self) -> String {
        match (&self.video, self.kind) {
            (_, Kind::Story) => format!("www.facebook.com/stories/{}/{}", self.page, self.id),
            (Some(video), _) => format!("www.facebook.com/reel/{video}"),
            (None, _) => {
                format!(
                    "www.facebook.com/{}/posts/{}",
                    self.page,
                    self.id.rsplit('_').next().unwrap_or_default()
                )
            }
        }
    }
}

/// Stores a new post.
pub(super) fn add(tx: &mut Transaction, post: &Post) {
    tx.store.put(post);
    tx.store.link("facebook.page", &post.page, &post.id);
    if let Some(video) = &post.video {
        tx.store.link("facebook.video", video, &post.id);
    }
}

/// Returns the line about the countries to which `targeting` limits a post.
pub(super) fn audience(request: &Request) -> Result<Option<String>, Response> {
    let Some(text) = param(request, "targeting") else { return Ok(None) };
    let targeting: Value =
        serde_json::from_str(&text).map_err(|_| invalid(Protocol, "Param targeting must be an object"))?;
    let countries = targeting["geo_locations"]["countries"].as_array().into_iter().flatten();
    let countries: Vec<&str> = countries.filter_map(Value::as_str).collect();
    match countries.iter().all(|code| code.len() == 2) && !countries.is_empty() {
        true => Ok(Some(format!("Countries: {}", countries.join(", ")))),
        false => Err(invalid(Content("countries"), "Param targeting needs countries")),
    }
}
