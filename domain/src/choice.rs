//! What a setting of a post can be, as an account's platform lists it: a board, a flair, a playlist.

use serde::{Deserialize, Serialize};

/// One of the things that a setting can be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectOption {
    /// What the setting wants.
    pub id: String,
    /// Its name, for people.
    pub name: String,
}
