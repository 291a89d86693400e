//! The media of a container, as an adapter reads them.

use async_trait::async_trait;
use bytes::Bytes;
use domain::Failure;
use platforms::{Media, MediaStore};
use serde_json::Value;
use std::ops::Range;
use url::Url;

/// The media that a container refers to.
///
/// # Errors
///
/// When one of them is gone. A post is only created with media that exist, so this is the rare case
/// of one that was lost meanwhile.
pub(crate) fn resolve(references: &Value) -> Result<Vec<Media>, Failure> {
    match references.as_array().and_then(|all| all.first()) {
        None => Ok(Vec::new()),
        Some(reference) => {
            let id = reference["id"].as_str().unwrap_or_default();
            Err(Failure::rejected(404, format!("media {id} is not there any more")))
        }
    }
}

/// The store of an installation that keeps no media.
pub(crate) struct Empty;

#[async_trait]
impl MediaStore for Empty {
    async fn read(&self, media: &Media, _: Range<u64>) -> Result<Bytes, Failure> {
        Err(missing(media))
    }

    async fn address(&self, media: &Media) -> Result<Url, Failure> {
        Err(missing(media))
    }
}

fn missing(media: &Media) -> Failure {
    Failure::rejected(404, format!("media {} is not there any more", media.id))
}
