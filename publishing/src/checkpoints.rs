//! Checkpoints, notes and questions of an adapter that prepares a publish, kept in the row of its container.

use crate::Engine;
use async_trait::async_trait;
use domain::Failure;
use platforms::{Checkpoint, Checkpoints};
use store::publishing::{self, Attempt};
use tracing::warn;

/// Stores an adapter's checkpoints in the row of a container.
pub(crate) struct RowCheckpoints<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) attempt: &'a Attempt,
    pub(crate) position: u16,
}

#[async_trait]
impl Checkpoints for RowCheckpoints<'_> {
    async fn save(&self, checkpoint: &Checkpoint) -> Result<(), Failure> {
        let (target, fence) = (self.attempt.key.target, self.attempt.fence);
        match publishing::checkpoint(&self.engine.db, target, self.position, fence, &checkpoint.0).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::network("another attempt took the target up", false)),
            Err(error) => {
                warn!(target.id = %target, %error, "A checkpoint was not stored");
                Err(Failure::network("the checkpoint could not be stored", false))
            }
        }
    }

    async fn note(&self, message: &str) -> Result<(), Failure> {
        let (key, now) = (self.attempt.key, (self.engine.now)());
        let noted = publishing::note(&self.engine.db, key, "platform", message, now).await;
        noted.map_err(|error| {
            warn!(target.id = %key.target, %error, "A note was not stored");
            Failure::network("a note could not be stored", false)
        })
    }

    async fn may_publish(&self) -> Result<bool, Failure> {
        if self.attempt.barred.is_some() {
            return Ok(false);
        }
        let frozen = publishing::is_frozen(&self.engine.db, self.attempt.key).await;
        frozen.map(|is_frozen| !is_frozen).map_err(|error| {
            warn!(target.id = %self.attempt.key.target, %error, "Freezes were not read");
            Failure::network("freezes could not be read", false)
        })
    }
}
