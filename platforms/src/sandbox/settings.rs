//! What a test may change about the sandbox.

use super::shelf::Record;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The sandbox's settings, which `POST /_settings` changes one by one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How long the processing of a video takes, in milliseconds.
    pub processing_ms: u64,
    /// How long a new post stays out of lists, in milliseconds, where the platform's reads lag
    /// behind its writes.
    pub lag_ms: u64,
    /// How long `#sandbox-slow` holds the reply back, in milliseconds.
    pub slow_ms: u64,
    /// How long a text counts as a duplicate, in milliseconds.
    pub duplicate_ms: u64,
    /// How old a long-lived token of Meta's has to be to be renewed, in milliseconds.
    pub renew_after_ms: u64,
    /// Ceilings of rate windows by name, for example `x.posts`, instead of the documented ones.
    pub limits: BTreeMap<String, u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            processing_ms: 2_000,
            lag_ms: 1_000,
            slow_ms: 5_000,
            duplicate_ms: 24 * 60 * 60 * 1_000,
            renew_after_ms: 24 * 60 * 60 * 1_000,
            limits: BTreeMap::new(),
        }
    }
}

impl Record for Settings {
    const SHELF: &'static str = "settings";

    fn key(&self) -> String {
        String::new()
    }
}
