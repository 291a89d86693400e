//! Settings that tests may change.

use super::{recorded::Recorded, store::Record};
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Standing of the sandbox's apps at the platforms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppStatus {
    /// Newly registered: the access that each platform gives before a review, such as Pinterest's trial access,
    /// LinkedIn's self-service products or TikTok's private posts.
    #[default]
    New,
    /// Reviewed by each platform, with all that Fanfare asks for.
    Approved,
}

/// Settings of a sandbox, which `POST /_settings` changes one by one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Standing of the apps.
    pub app: AppStatus,
    /// Processing time of a video, in milliseconds.
    pub processing_ms: u64,
    /// Delay before a new post appears in lists, in milliseconds, on platforms whose reads lag behind their
    /// writes.
    pub lag_ms: u64,
    /// Delay of a response by `#sandbox-slow`, in milliseconds.
    pub slow_ms: u64,
    /// Time after which X and Bluesky take calls again, after one that was refused on purpose with 429, in seconds.
    pub throttle_seconds: u32,
    /// Period in which the same text is a duplicate, in milliseconds.
    pub duplicate_ms: u64,
    /// Minimum age of a long-lived Meta token for a refresh, in milliseconds.
    pub renew_after_ms: u64,
    /// Lifetime of access tokens issued from now on, in seconds, instead of the documented one.
    pub token_seconds: Option<u32>,
    /// Lifetime of refresh tokens issued from now on, in seconds, instead of the documented one. Google tells it as for an
    /// app in *Testing*.
    pub refresh_seconds: Option<u32>,
    /// True to answer a refresh with an empty refresh token, while the presented one stays valid.
    pub empty_refresh: bool,
    /// True to know `tweet.fields` by its new name only, `post.fields`, as X's OpenAPI document does.
    pub has_renamed_fields: bool,
    /// Statuses to refuse requests with, by the prefix of their path, with or without the host: an outage of
    /// a platform.
    pub refusals: BTreeMap<String, u16>,
    /// Recorded answers to give instead of a platform's own, by the prefix of a request's path, with or without the
    /// host.
    pub recorded: BTreeMap<String, Recorded>,
    /// Status of Meta's refusals of a request's content, which are documented with 400: integrations have seen 500
    /// with the same body.
    pub meta_refusal_status: u16,
    /// Limits by name, for example `x.posts`, instead of the documented ones.
    pub limits: BTreeMap<String, u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            app: AppStatus::default(),
            processing_ms: 2_000,
            lag_ms: 1_000,
            slow_ms: 5_000,
            // The resets are whole seconds: one more than the next is between one and two seconds away.
            throttle_seconds: 2,
            duplicate_ms: 24 * 60 * 60 * 1_000,
            renew_after_ms: 24 * 60 * 60 * 1_000,
            token_seconds: None,
            refresh_seconds: None,
            empty_refresh: false,
            has_renamed_fields: false,
            refusals: BTreeMap::new(),
            recorded: BTreeMap::new(),
            meta_refusal_status: 400,
            limits: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// Returns whether the platforms have reviewed the apps.
    pub(crate) fn is_approved(&self) -> bool {
        self.app == AppStatus::Approved
    }

    /// Returns the lifetime of an access token, in seconds.
    pub(crate) fn token_seconds(&self, documented: i64) -> i64 {
        self.token_seconds.map_or(documented, i64::from)
    }

    /// Returns the lifetime of an access token.
    pub(crate) fn token_life(&self, documented: i64) -> TimeDelta {
        TimeDelta::seconds(self.token_seconds(documented))
    }

    /// Returns the delay before a new post appears in lists.
    pub(crate) fn lag(&self) -> TimeDelta {
        milliseconds(self.lag_ms)
    }

    /// Returns the processing time of a video.
    pub(crate) fn processing(&self) -> TimeDelta {
        milliseconds(self.processing_ms)
    }

    /// Returns the time after which a call is taken again that was refused on purpose with 429.
    pub(crate) fn throttle(&self) -> TimeDelta {
        TimeDelta::seconds(i64::from(self.throttle_seconds))
    }

    /// Returns the period in which the same text is a duplicate.
    pub(crate) fn duplicate_window(&self) -> TimeDelta {
        milliseconds(self.duplicate_ms)
    }

    /// Returns the status to refuse a request with.
    pub(crate) fn refusal(&self, host: &str, path: &str) -> Option<u16> {
        of_prefix(&self.refusals, host, path)
    }

    /// Returns the recorded answer to a request.
    pub(crate) fn recorded(&self, host: &str, path: &str) -> Option<Recorded> {
        of_prefix(&self.recorded, host, path)
    }
}

fn of_prefix<T: Copy>(prefixes: &BTreeMap<String, T>, host: &str, path: &str) -> Option<T> {
    let full = format!("/{host}{path}");
    let is_meant = |prefix: &str| path.starts_with(prefix) || full.starts_with(prefix);
    prefixes.iter().find(|(prefix, _)| is_meant(prefix)).map(|(_, value)| *value)
}

fn milliseconds(count: u64) -> TimeDelta {
    TimeDelta::milliseconds(i64::try_from(count).unwrap_or(i64::MAX))
}

impl Record for Settings {
    const TABLE: &'static str = "settings";

    fn key(&self) -> String {
        String::new()
    }
}
