//! Containers, in which Threads and Instagram get content before it is published.
//!
//! <https://developers.facebook.com/docs/threads/posts> and
//! <https://developers.facebook.com/docs/instagram-platform/content-publishing>. A container is processed for
//! a time that depends on the clock only, expires after 24 hours, and is published once.

use super::{
    Transaction,
    account::Account,
    exchange::{Request, Response},
    files::{MAX_KEPT_BYTES, Upload},
    graph::{DAY, error},
    simulator::MediaView,
    store::Record,
};
use crate::exchange::Cause::{self, Content, State};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum size of an image.
const IMAGE_BYTES: u64 = 8 << 20;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Container {
    pub(crate) id: String,
    /// Id of the owner.
    pub(crate) owner: String,
    /// Media type, in the platform's terms.
    pub(crate) kind: String,
    /// True when it is an item of a carousel.
    pub(crate) is_item: bool,
    /// True when it holds a video.
    pub(crate) is_video: bool,
    pub(crate) text: String,
    /// Its medium, when it has one and fetching succeeded.
    pub(crate) file: Option<Upload>,
    pub(crate) items: Vec<String>,
    /// Parameters of the request that created it.
    pub(crate) given: Map<String, Value>,
    pub(crate) created_at: DateTime<Utc>,
    /// Id of the published post.
    pub(crate) published: Option<String>,
}

impl Record for Container {
    const TABLE: &'static str = "graph.container";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// Processing status of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Still being processed.
    InProgress,
    /// Ready to be published.
    Finished,
    /// Already published.
    Published,
    /// Not published within 24 hours.
    Expired,
    /// Fetching its medium failed.
    Unfetched,
    /// Processing its medium failed.
    Failed,
}

impl Container {
    /// Returns the container with this id.
    pub(crate) fn get(tx: &Transaction, id: &str) -> Option<Self> {
        tx.store.get(id)
    }

    /// Returns a parameter of the request that created it.
    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        match self.given.get(name)? {
            Value::Null => None,
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// Returns whether this account can read it, while it can be published in any case: Meta had outages of that
    /// kind, for which an account's name begins with `unreadable`.
    pub(crate) fn is_readable(&self, me: &Account) -> bool {
        self.owner == me.id && !me.username.starts_with("unreadable")
    }

    /// Returns the alternative text of its medium.
    pub(crate) fn alt(&self) -> String {
        self.parameter("alt_text").unwrap_or_default()
    }

    /// Returns its current status.
    pub(crate) fn status(&self, tx: &Transaction) -> Status {
        if self.published.is_some() {
            return Status::Published;
        }
        let age = tx.now - self.created_at;
        if age >= TimeDelta::seconds(DAY) {
            return Status::Expired;
        }
        if !self.is_video {
            return Status::Finished;
        }
        let name = self.file.as_ref().and_then(|file| file.name.clone()).unwrap_or_default();
        let says = |word: &str| name.contains(word) || self.alt().contains(word);
        let needed = i64::try_from(tx.settings.processing_ms).unwrap_or(i64::MAX);
        if says("sandbox-stuck") || age.num_milliseconds() < needed {
            return Status::InProgress;
        }
        match &self.file {
            None => Status::Unfetched,
            Some(_) if says("sandbox-failed") => Status::Failed,
            Some(file) if !file.mime.as_deref().is_some_and(|mime| mime.starts_with("video/")) => {
                Status::Failed
            }
            Some(_) => Status::Finished,
        }
    }

    /// Returns the cause for which its medium can't be processed.
    pub(crate) fn failure(&self) -> Cause {
        match self.file.as_ref().map(|file| file.mime.as_deref().unwrap_or_default()) {
            Some(mime) if !mime.starts_with("video/") => Content("video_type"),
            _ => State,
        }
    }

    /// Returns its media as the pages show them.
    pub(crate) fn media_views(&self, tx: &Transaction) -> Vec<MediaView> {
        let items = self.items.iter().filter_map(|id| Self::get(tx, id));
        let all: Vec<Self> = if self.items.is_empty() { vec![self.clone()] } else { items.collect() };
        let one = |container: Self| {
            let file = container.file.as_ref()?;
            Some(MediaView {
                // Only stored bytes can be shown.
                files: (file.size_bytes <= MAX_KEPT_BYTES).then(|| file.id.clone()).into_iter().collect(),
                mime: file.mime.clone().unwrap_or_default(),
                alt: container.alt(),
            })
        };
        all.into_iter().filter_map(one).collect()
    }
}

/// Returns the image at an address after checking its size, format and aspect ratio.
///
/// # Errors
///
/// The refusal.
pub(crate) fn fetched_image(
    request: &Request,
    address: &str,
    formats: &[&str],
    ratio: std::ops::RangeInclusive<f64>,
) -> Result<Upload, Response> {
    let Some(file) = request.fetched(address) else {
        let message = format!(
            "The media could not be fetched from this URI: {address}. Only photo or video can be accepted as media type."
        );
        return Err(error(State, 400, 9004, 2_207_052, &message));
    };
    if file.size_bytes > IMAGE_BYTES {
        return Err(error(
            Content("image_too_large"),
            400,
            36_000,
            2_207_004,
            "The image size is too large.",
        ));
    }
    if !file.mime.as_deref().is_some_and(|mime| formats.contains(&mime)) {
        let message =
            format!("The image format is not supported. Supported formats: {}.", formats.join(", "));
        return Err(error(Content("image_type"), 400, 36_001, 2_207_005, &message));
    }
    if file.pixels.is_some_and(|(width, height)| !ratio.contains(&(f64::from(width) / f64::from(height)))) {
        return Err(error(
            Content("image_shape"),
            400,
            36_003,
            2_207_009,
            "The aspect ratio is not supported.",
        ));
    }
    Ok(file.clone())
}
