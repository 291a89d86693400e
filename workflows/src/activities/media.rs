//! Files of media assets.

use domain::{MediaId, Owner, outbox::MediaJob};
use serde::{Deserialize, Serialize};
use temporalio_common::ActivityError;
use temporalio_macros::activity_definitions;

/// Markers of the declarations below.
pub use media::{CleanUpMedia, ConfirmMedia, FailMedia, ProcessMedia};

/// Activities on files of media assets.
pub struct Media;

#[activity_definitions]
impl Media {
    /// Inspects the uploaded file of an asset, and accepts or refuses it.
    #[activity(name = "confirm_media")]
    pub fn confirm_media(_media: MediaRef) -> Result<ConfirmResult, ActivityError> {
        unimplemented!()
    }

    /// Downloads, inspects or deletes the file of an asset. Fails with [`CROWDED`](super::CROWDED) when nothing
    /// was tried.
    #[activity(name = "process_media")]
    pub fn process_media(_job: MediaJob) -> Result<(), ActivityError> {
        unimplemented!()
    }

    /// Marks an asset as failed.
    #[activity(name = "fail_media")]
    pub fn fail_media(_failure: MediaFailure) -> Result<(), ActivityError> {
        unimplemented!()
    }

    /// Deletes a batch of expired assets and orphaned files; true when there may be more.
    #[activity(name = "clean_up_media")]
    pub fn clean_up_media() -> Result<bool, ActivityError> {
        unimplemented!()
    }
}

/// A media asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaRef {
    /// Asset id.
    pub media: MediaId,
    /// Owner of the rows.
    pub owner: Owner,
}

/// Result of inspecting an uploaded file; the details are in its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmResult {
    /// The row has the result.
    Settled,
    /// No file was uploaded.
    Missing,
}

/// An asset that can't be processed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MediaFailure {
    /// Job that failed.
    pub job: MediaJob,
    /// Human-readable reason.
    pub message: String,
}
