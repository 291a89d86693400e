//! Client tokens: what a page of an organization's customer may connect.

use serde::{Deserialize, Serialize};

/// Limits of a client token beside its tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// Platforms that can be connected; all if there are none.
    #[serde(default)]
    pub platforms: Vec<String>,
    /// Address at which logins end; they end on the hosted pages if there is none.
    pub redirect_uri: Option<String>,
}

impl Client {
    /// Returns true if accounts of the platform can be connected.
    pub fn may_connect(&self, platform: &str) -> bool {
        self.platforms.is_empty() || self.platforms.iter().any(|known| known == platform)
    }
}
