//! Edits of published posts.

use crate::MediaKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A change of one container of a published post. It names the result, so that it can be repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Edit {
    /// Position of the container in its post, from 0.
    pub position: u16,
    /// True if the post is itself a reply to a live one.
    pub of_reply: bool,
    /// True if the container has media, which an edit does not change.
    pub has_media: bool,
    /// Kinds of its media, as far as they were not deleted since.
    pub kinds: Vec<MediaKind>,
    /// Text before the edit.
    pub before: String,
    /// The new text; `None` leaves it.
    pub text: Option<String>,
    /// The platform's `config` block as it is after the edit.
    pub settings: Value,
    /// Names of the settings that the edit sets.
    pub names: Vec<String>,
}

impl Edit {
    /// Returns true if the container is a reply on its platform.
    pub fn is_reply(&self) -> bool {
        self.of_reply || self.position > 0
    }

    /// Returns the text after the edit.
    pub fn after(&self) -> &str {
        self.text.as_deref().unwrap_or(&self.before)
    }

    /// Returns true if the edit sets this setting.
    pub fn sets(&self, name: &str) -> bool {
        self.names.iter().any(|set| set == name)
    }
}
