//! The state that every request handler shares, and the configuration it was built from.

use crate::{ask::Workers, connect::oauth_state, http::rate_limits::Limits, plans::Plans};
use chrono::{DateTime, Utc};
use domain::sandbox::Address;
use domain::{Mode, address};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use store::{Pool, vault::Sealer};
use url::Url;

/// The path prefix of all operations.
pub const PREFIX: &str = "/api/v1";
/// The path prefix of the dashboard.
pub const DASHBOARD_PATH: &str = "/dashboard";

/// What the API is made of. Cloning shares it.
#[derive(Clone)]
pub struct App {
    /// The database; it may be away for a while.
    pub db: Pool,
    /// The way to the workers, for what only they can answer.
    pub workers: Workers,
    /// What the operator set.
    pub config: Arc<Config>,
    /// The time.
    pub now: fn() -> DateTime<Utc>,
}

/// What an operator sets.
pub struct Config {
    /// The address that clients use, which ends with `/api/v1`.
    pub base_url: String,
    /// What cursors are signed with; the same in every API process.
    pub cursor_key: [u8; 32],
    /// Where the bytes of media are kept.
    pub media: ::media::Shelf,
    /// Seals what only workers may read.
    pub sealer: Sealer,
    /// The ranges that webhooks may reach although they are not public.
    pub opened: Opened,
    /// What the states of authorizations are sealed with; the same in every API process.
    pub states: oauth_state::Key,
    /// The public identifiers of the OAuth apps that the installation shares, by platform.
    pub shared_clients: BTreeMap<String, String>,
    /// Client ids of the sandbox's apps, by platform.
    pub sandbox_clients: BTreeMap<String, String>,
    /// The sandbox, as a browser reaches it; without it test mode connects no accounts.
    pub sandbox: Option<Address>,
    /// How much may be called.
    pub limits: Limits,
    /// What organizations pay for.
    pub plans: Plans,
    /// Where Temporal's own pages are, for the dashboard to lead to.
    pub temporal_ui: Option<TemporalUi>,
    /// How many proxies a request comes through, each of which appends to `X-Forwarded-For`.
    pub trusted_hops: usize,
    /// How long a body may take to arrive; of a file, how long nothing of it may come.
    pub body_timeout: Duration,
}

impl Config {
    /// The address that the API's path and the dashboard's follow.
    pub(crate) fn root(&self) -> &str {
        let base = self.base_url.trim_end_matches('/');
        base.strip_suffix(PREFIX).unwrap_or(base)
    }
}

/// The opened ranges of each mode.
#[derive(Clone, Debug, Default)]
pub struct Opened {
    /// For live data.
    pub live: address::Opened,
    /// For test data.
    pub test: address::Opened,
}

impl Opened {
    /// Those of a mode.
    pub fn of(&self, mode: Mode) -> &address::Opened {
        match mode {
            Mode::Live => &self.live,
            Mode::Test => &self.test,
        }
    }
}

/// Where Temporal's own pages are, for links to what is under way.
#[derive(Clone, Debug)]
pub struct TemporalUi {
    /// Their address.
    pub base: Url,
    /// The namespace of the workflows.
    pub namespace: String,
}

impl TemporalUi {
    /// The page of a workflow.
    pub(crate) fn workflow(&self, id: &str) -> String {
        let base = self.base.as_str().trim_end_matches('/');
        format!("{base}/namespaces/{}/workflows/{id}", self.namespace)
    }
}
