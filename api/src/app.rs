//! The state that every request handler shares, and the configuration it was built from.

use crate::{
    connect::oauth_state, http::rate_limits::Limits, operator_token::OperatorToken, plans::Plans, seal,
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{Mode, ip_ranges, request_proof, sandbox::Address};
use starter::requests::Workers;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use store::{Pool, upkeep::vault::Sealer};
use telemetry::health::Health;
use url::Url;

/// The path prefix of all operations.
pub const PREFIX: &str = "/api/v1";
/// The path prefix of the dashboard.
pub const DASHBOARD_PATH: &str = "/dashboard";

/// State shared by all request handlers. Cloning is cheap.
#[derive(Clone)]
pub struct App {
    /// Database connections; calls fail with 503 while the database is unavailable.
    pub db: Pool,
    /// Sends requests to the workers, for what needs platform access or secrets.
    pub workers: Workers,
    /// The operator's configuration.
    pub config: Arc<Config>,
    /// The state of the process, for the probes.
    pub health: Health,
    /// The clock.
    pub now: fn() -> DateTime<Utc>,
}

/// The operator's configuration.
pub struct Config {
    /// The API's public base URL, which ends with `/api/v1`.
    pub base_url: String,
    /// The key that signs cursors; the same in every API process.
    pub cursor_key: [u8; 32],
    /// Storage of media files.
    pub media: ::media::FileStore,
    /// Time that a media asset is kept once no post needs it; `None` keeps it without limit.
    pub media_retention: Option<TimeDelta>,
    /// Time before a post is due at which its workflow is started.
    pub horizon: Duration,
    /// Encrypts secrets for the workers.
    pub sealer: Sealer,
    /// Private IP ranges that webhooks may reach.
    pub opened: AllowedRanges,
    /// The key that seals OAuth states; the same in every API process.
    pub states: oauth_state::Key,
    /// Seals what travels through browsers of people who sign in; the same in every API process.
    pub seal: seal::Key,
    /// Name of the OpenID provider at which people sign in; `None` without one.
    pub openid: Option<String>,
    /// The key that proves to the workers that the API asks; the same in every process.
    pub request_key: request_proof::Key,
    /// Client ids of the installation's shared OAuth apps, by platform.
    pub shared_clients: BTreeMap<String, String>,
    /// Client ids of the sandbox's apps, by platform.
    pub sandbox_clients: BTreeMap<String, String>,
    /// The sandbox's URL for browsers; without it no account can be connected in test mode.
    pub sandbox: Option<Address>,
    /// Rate limits.
    pub limits: Limits,
    /// Plans and their quotas.
    pub plans: Plans,
    /// The token that opens the operators' pages; without it there are none.
    pub operator_token: Option<OperatorToken>,
    /// The Temporal UI that the dashboard links to.
    pub temporal_ui: Option<TemporalUi>,
    /// Number of reverse proxies in front of the API; each appends to `X-Forwarded-For`.
    pub trusted_hops: usize,
    /// Time limit for receiving a request body; for a file upload, the idle time limit.
    pub body_timeout: Duration,
}

impl Config {
    /// The public base URL without the API's path prefix.
    pub fn root(&self) -> &str {
        let base = self.base_url.trim_end_matches('/');
        base.strip_suffix(PREFIX).unwrap_or(base)
    }
}

/// Private IP ranges that may be reached, by mode.
#[derive(Clone, Debug, Default)]
pub struct AllowedRanges {
    /// Ranges for live data.
    pub live: ip_ranges::AllowedRanges,
    /// Ranges for test data.
    pub test: ip_ranges::AllowedRanges,
}

impl AllowedRanges {
    /// The ranges of a mode.
    pub fn of(&self, mode: Mode) -> &ip_ranges::AllowedRanges {
        match mode {
            Mode::Live => &self.live,
            Mode::Test => &self.test,
        }
    }
}

/// Location of the Temporal UI.
#[derive(Clone, Debug)]
pub struct TemporalUi {
    /// The UI's base URL.
    pub base: Url,
    /// The Temporal namespace of the workflows.
    pub namespace: String,
}

impl TemporalUi {
    /// The URL of a workflow's page.
    pub fn workflow(&self, id: &str) -> String {
        let base = self.base.as_str().trim_end_matches('/');
        format!("{base}/namespaces/{}/workflows/{id}", self.namespace)
    }
}
