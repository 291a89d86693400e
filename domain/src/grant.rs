//! What a platform granted, to which app, and for whom.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The OAuth app that the account was connected through.
#[derive(Clone, PartialEq, Eq)]
pub struct App {
    /// Its public identifier.
    pub client_id: String,
    /// Its secret; `None` for a public client.
    pub client_secret: Option<String>,
}

/// What a platform granted. Never logged, never in a response; stored sealed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Sent with each call.
    pub access_token: String,
    /// Exchanged for a fresh grant; an empty one never replaces a stored one.
    pub refresh_token: Option<String>,
    /// When the access token dies.
    pub expires_at: Option<DateTime<Utc>>,
    /// The scopes that were granted.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// What else the platform's adapter needs and the account's owner entrusted to us, for example
    /// the service address and app password of a Bluesky account.
    #[serde(default)]
    pub extra: Value,
}

impl std::fmt::Debug for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grant").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// Public profile of an account on its platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountProfile {
    /// The platform's own stable id of the account.
    pub network_unique_id: String,
    /// Handle, without `@`.
    pub username: String,
    /// Display name.
    pub display_name: String,
    /// Kind of account, for example `profile`, `page` or `channel`.
    pub account_type: String,
    /// URL of the profile picture.
    pub profile_image_url: Option<String>,
    /// URL of the public page.
    pub profile_url: Option<String>,
}

/// An account, page, channel, board or location that a grant covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Profile on the platform.
    #[serde(flatten)]
    pub profile: AccountProfile,
    /// Grant of its own, where it differs from the one that listed it: a page's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
}
