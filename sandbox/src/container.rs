//! Containers: what Threads and Instagram are given before it is published.
//!
//! <https://developers.facebook.com/docs/threads/posts> and
//! <https://developers.facebook.com/docs/instagram-platform/content-publishing>. A container is
//! processed for a while, which the clock alone decides, lives for 24 hours, and is published once.

use super::{
    Turn,
    call::{Answer, Call},
    files::{KEPT_BYTES, Upload},
    graph::{DAY, error},
    host::Picture,
    shelf::Record,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The largest picture.
const IMAGE_BYTES: u64 = 8 << 20;

/// A container.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Container {
    /// Its id.
    pub(crate) id: String,
    /// Whose it is.
    pub(crate) owner: String,
    /// What it holds, in the platform's word.
    pub(crate) kind: String,
    /// Whether it is an item of a carousel.
    pub(crate) is_item: bool,
    /// Whether it holds a video.
    pub(crate) is_video: bool,
    /// Its text.
    pub(crate) text: String,
    /// Its medium, where it has one and it could be had.
    pub(crate) file: Option<Upload>,
    /// Its items.
    pub(crate) items: Vec<String>,
    /// All that it was made with.
    pub(crate) given: Map<String, Value>,
    /// When it was made.
    pub(crate) created_at: DateTime<Utc>,
    /// What it became.
    pub(crate) published: Option<String>,
}

impl Record for Container {
    const SHELF: &'static str = "graph.container";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// How a container stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stands {
    /// It is being processed.
    InProgress,
    /// It may be published.
    Finished,
    /// It was published.
    Published,
    /// It was not published in time.
    Expired,
    /// Its medium could not be fetched.
    Unfetched,
    /// Its medium could not be processed.
    Failed,
}

impl Container {
    /// The container with this id.
    pub(crate) fn get(turn: &Turn<'_>, id: &str) -> Option<Self> {
        turn.shelf.get(id)
    }

    /// Something that it was made with.
    pub(crate) fn given(&self, name: &str) -> Option<String> {
        match self.given.get(name)? {
            Value::Null => None,
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// What describes its medium.
    pub(crate) fn alt(&self) -> String {
        self.given("alt_text").unwrap_or_default()
    }

    /// How it stands now.
    pub(crate) fn stands(&self, turn: &Turn<'_>) -> Stands {
        if self.published.is_some() {
            return Stands::Published;
        }
        let age = turn.now - self.created_at;
        if age >= TimeDelta::seconds(DAY) {
            return Stands::Expired;
        }
        if !self.is_video {
            return Stands::Finished;
        }
        let name = self.file.as_ref().and_then(|file| file.name.clone()).unwrap_or_default();
        let says = |word: &str| name.contains(word) || self.alt().contains(word);
        let needed = i64::try_from(turn.settings.processing_ms).unwrap_or(i64::MAX);
        if says("sandbox-stuck") || age.num_milliseconds() < needed {
            return Stands::InProgress;
        }
        match &self.file {
            None => Stands::Unfetched,
            Some(_) if says("sandbox-failed") => Stands::Failed,
            Some(file) if !file.mime.as_deref().is_some_and(|mime| mime.starts_with("video/")) => {
                Stands::Failed
            }
            Some(_) => Stands::Finished,
        }
    }

    /// The media of what it became, as a page shows them.
    pub(crate) fn pictures(&self, turn: &Turn<'_>) -> Vec<Picture> {
        let items = self.items.iter().filter_map(|id| Self::get(turn, id));
        let all: Vec<Self> = if self.items.is_empty() { vec![self.clone()] } else { items.collect() };
        let one = |container: Self| {
            let file = container.file.as_ref()?;
            Some(Picture {
                // Only what was kept can be shown.
                files: (file.size_bytes <= KEPT_BYTES).then(|| file.id.clone()).into_iter().collect(),
                mime: file.mime.clone().unwrap_or_default(),
                alt: container.alt(),
            })
        };
        all.into_iter().filter_map(one).collect()
    }
}

/// The picture that stood at an address, judged at once: its size, its format, its form.
///
/// # Errors
///
/// Why it is refused.
pub(crate) fn picture(
    call: &Call,
    address: &str,
    formats: &[&str],
    ratio: std::ops::RangeInclusive<f64>,
) -> Result<Upload, Answer> {
    let Some(file) = call.at(address) else {
        let message = format!(
            "The media could not be fetched from this URI: {address}. Only photo or video can be accepted as media type."
        );
        return Err(error(400, 9004, 2_207_052, &message));
    };
    if file.size_bytes > IMAGE_BYTES {
        return Err(error(400, 36_000, 2_207_004, "The image size is too large."));
    }
    if !file.mime.as_deref().is_some_and(|mime| formats.contains(&mime)) {
        let message =
            format!("The image format is not supported. Supported formats: {}.", formats.join(", "));
        return Err(error(400, 36_001, 2_207_005, &message));
    }
    if file.pixels.is_some_and(|(width, height)| !ratio.contains(&(f64::from(width) / f64::from(height)))) {
        return Err(error(400, 36_003, 2_207_009, "The aspect ratio is not supported."));
    }
    Ok(file.clone())
}
