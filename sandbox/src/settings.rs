//! What a test may change about the sandbox.

use super::shelf::Record;
use chrono::TimeDelta;
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
    /// How long access tokens live that are given from now on, in seconds, instead of as documented.
    pub token_seconds: Option<u32>,
    /// Whether a refresh is answered with an empty refresh token, while the one that was shown serves on.
    pub empty_refresh: bool,
    /// What requests are refused with, by the beginning of their path, with or without the host: a
    /// platform's bad hours.
    pub refusals: BTreeMap<String, u16>,
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
            token_seconds: None,
            empty_refresh: false,
            refusals: BTreeMap::new(),
            limits: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// How long an access token lives, in seconds, that is documented to live so long.
    pub(crate) fn token_seconds(&self, documented: i64) -> i64 {
        self.token_seconds.map_or(documented, i64::from)
    }

    /// The same as a span of time.
    pub(crate) fn token_life(&self, documented: i64) -> TimeDelta {
        TimeDelta::seconds(self.token_seconds(documented))
    }

    /// What a request is refused with.
    pub(crate) fn refusal(&self, host: &str, path: &str) -> Option<u16> {
        let full = format!("/{host}{path}");
        let is_meant = |prefix: &str| path.starts_with(prefix) || full.starts_with(prefix);
        self.refusals.iter().find(|(prefix, _)| is_meant(prefix)).map(|(_, status)| *status)
    }
}

impl Record for Settings {
    const SHELF: &'static str = "settings";

    fn key(&self) -> String {
        String::new()
    }
}
