//! OAuth apps, the grants they receive, and the accounts that a grant covers.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Credentials of an OAuth app.
#[derive(Clone, PartialEq, Eq)]
pub struct App {
    /// OAuth client id.
    pub client_id: String,
    /// OAuth client secret; `None` for a public client.
    pub client_secret: Option<String>,
    /// Access that the platform has given it.
    pub access: AppAccess,
}

/// Access of an app at a platform that distinguishes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppAccess {
    /// Before the platform's review: Pinterest's trial apps publish in its API sandbox only.
    Trial,
    /// Full access.
    #[default]
    Full,
}

/// Settings of an app: the members of its `extra_config` that change calls to the platform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AppConfig {
    /// Name of the scopes to request, if the app lists none.
    pub preset: Option<String>,
    /// Further parameters of the authorization request, such as Facebook's `config_id`.
    pub authorize_parameters: BTreeMap<String, String>,
    /// Access that the platform has given the app.
    pub access: AppAccess,
}

impl AppConfig {
    /// Reads the settings from an `extra_config`; the default for one with a member of another type, which was
    /// stored before Fanfare knew the member.
    pub fn read(extra_config: &Value) -> Self {
        Self::deserialize(extra_config).unwrap_or_default()
    }
}

/// A platform's grant of access to an account. Never logged, never in a response; stored encrypted. The default is
/// none: for the calls by which a grant is obtained.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Access token.
    pub access_token: String,
    /// Refresh token; one that is absent from a refresh response never replaces a stored one.
    pub refresh_token: Option<String>,
    /// Expiry of the access token; `None` if it does not expire.
    pub expires_at: Option<DateTime<Utc>>,
    /// Time at which the platform ends the whole grant, as far as it tells: only a new login helps then.
    #[serde(default)]
    pub ends_at: Option<DateTime<Utc>>,
    /// Granted scopes.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Further credentials in the adapter's own form, for example the service address and app
    /// password of a Bluesky account.
    #[serde(default)]
    pub extra: Value,
}

impl Grant {
    /// Returns the refresh token; `None` for an empty one, which some platforms send instead of none.
    pub fn refresh_token(&self) -> Option<&str> {
        self.refresh_token.as_deref().filter(|token| !token.is_empty())
    }
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
    /// Separate grant, if it differs from the one that listed it: a page's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
}
