//! Options of a post setting that a platform lists per account: boards, flairs, playlists.

use serde::{Deserialize, Serialize};

/// One value that a setting accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectOption {
    /// Value of the setting.
    pub id: String,
    /// Human-readable name.
    pub name: String,
}
