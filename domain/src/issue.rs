//! Issues: what is wrong with a post before it is sent to a platform.
//!
//! The check finds them by the content alone, in the API; a look-up asks the platform, in a worker.

use crate::Media;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A part of a post that a platform would refuse, or would not show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Issue {
    /// Severity.
    pub severity: Severity,
    /// Stable code, for example `text_too_long`.
    pub code: String,
    /// Human-readable message with the limit and the value.
    pub message: String,
    /// Location: keys and 0-based indices from the top of a create body.
    pub path: Vec<Value>,
}

impl Issue {
    /// Returns an issue with a member of the post's first container.
    pub fn of_main(severity: Severity, code: &str, member: &str, message: String) -> Self {
        let path = vec![json!("containers"), json!(0), json!(member)];
        Self { severity, code: code.to_owned(), message, path }
    }

    /// Returns the warning that a title is shortened to `title`. `source` names in words the text that the title is made of,
    /// `member` the member of the post's first container that has it.
    pub fn title_cut(platform: &str, max: usize, (member, source): (&str, &str), title: &str) -> Self {
        let message =
            format!("{platform} takes a title of {max} characters, and {source} has more: `{title}`");
        Self::of_main(Severity::Warning, "title_cut", member, message)
    }

    /// Returns an issue with a setting of a platform's `config` block.
    pub fn of_setting(
        severity: Severity,
        code: &str,
        platform: &str,
        setting: &str,
        message: String,
    ) -> Self {
        let path = vec![json!("config"), json!(platform), json!(setting)];
        Self { severity, code: code.to_owned(), message, path }
    }
}

crate::string_enum! {
    /// Severity of an issue.
    Severity, "severity" {
        /// The platform would refuse the post.
        Error = "error",
        /// The platform accepts the post, but does not show all of it.
        Warning = "warning",
    }
}

/// The main container of a post with a platform's settings, to be looked up there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// Text.
    pub text: String,
    /// Media; `None` while a file is still to be fetched.
    pub media: Option<Vec<Media>>,
    /// The platform's `config` block.
    pub settings: Value,
}
