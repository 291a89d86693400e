//! Checkpoints: an adapter's progress with a post, and where it is stored.
//!
//! They are what a session stores for an adapter, and what the next attempt gives to it.

use crate::Result;
use async_trait::async_trait;
use domain::Failure;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// An adapter's progress, in its own format; small JSON without secrets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Checkpoint(pub Value);

impl Checkpoint {
    /// Serializes a step.
    pub fn of(step: &impl Serialize) -> Self {
        Self(serde_json::to_value(step).expect("a step is plain data"))
    }

    /// Reads the step; the default before the first one.
    ///
    /// # Errors
    ///
    /// When another version of the adapter wrote it and this one can't read it.
    pub fn read<T: DeserializeOwned + Default>(&self) -> Result<T> {
        if self.0.is_null() {
            return Ok(T::default());
        }
        serde_json::from_value(self.0.clone()).map_err(|error| {
            Failure::network(format!("the checkpoint can't be read by this version: {error}"), false)
        })
    }
}

/// Stores checkpoints, so that a crash costs one step.
#[async_trait]
pub trait Checkpoints: Send + Sync {
    /// Persists the checkpoint before the adapter continues.
    async fn save(&self, checkpoint: &Checkpoint) -> Result<()>;

    /// Tells the post's owner about a part of a live post that differs from what was asked for. May be repeated
    /// with the same message.
    async fn note(&self, _message: &str) -> Result<()> {
        Ok(())
    }

    /// Returns true if something new may be published for the post: it is neither deleted, stopped nor frozen, and its
    /// account is connected.
    async fn may_publish(&self) -> Result<bool> {
        Ok(true)
    }
}
