//! Look-ups: what only a platform knows about a post, asked for before the post is created.
//!
//! The check ([`crate::check`]) decides by the content alone. A board, a flair or a quoted post exist at the platform
//! only, and an author who has named a wrong one would learn it when the post is due. A look-up only reads. What it finds
//! is an error only if the platform says so for certain; a platform that does not answer, or does not let the account
//! read it, refuses nothing.

use crate::Result;
pub use domain::Subject;
use domain::{ErrorCode, Failure, Issue, Severity};

/// Code of an issue: the platform has nothing of this name or id.
pub const NOT_FOUND: &str = "reference_not_found";
/// Code of an issue: the platform has it, and the account or this kind of post may not use it.
pub const NOT_ALLOWED: &str = "reference_not_allowed";
/// Code of an issue: the platform requires a setting for this post that was not given.
pub const REQUIRED: &str = "setting_required";

/// Code of an issue: the platform was not asked, or did not answer.
pub const FAILED: &str = "look_up_failed";

/// Returns true for an issue that only a look-up finds.
pub fn is_looked_up(code: &str) -> bool {
    [NOT_FOUND, NOT_ALLOWED, REQUIRED, FAILED].contains(&code)
}

/// The issues that a look-up has found so far. A failure after them does not lose them.
#[derive(Debug)]
pub struct Findings {
    platform: &'static str,
    issues: Vec<Issue>,
}

impl Findings {
    /// Creates an empty list for the platform with this id.
    pub fn of(platform: &'static str) -> Self {
        Self { platform, issues: Vec::new() }
    }

    /// Adds an error about a setting; `message` follows the platform's id.
    pub(crate) fn error(&mut self, code: &str, setting: &str, message: &str) {
        self.add(Severity::Error, code, setting, message);
    }

    /// Adds a warning about a setting; `message` follows the platform's id.
    pub(crate) fn warning(&mut self, code: &str, setting: &str, message: &str) {
        self.add(Severity::Warning, code, setting, message);
    }

    /// Adds an error about the text of the main container.
    pub(crate) fn text_error(&mut self, code: &str, message: &str) {
        let message = format!("{} {message}", self.platform);
        self.issues.push(Issue::of_main(Severity::Error, code, "content", message));
    }

    /// Adds an error about the media of the main container.
    pub(crate) fn media_error(&mut self, code: &str, message: &str) {
        let message = format!("{} {message}", self.platform);
        self.issues.push(Issue::of_main(Severity::Error, code, "media", message));
    }

    fn add(&mut self, severity: Severity, code: &str, setting: &str, message: &str) {
        let message = format!("{} {message}", self.platform);
        self.issues.push(Issue::of_setting(severity, code, self.platform, setting, message));
    }

    /// Returns the issues.
    pub fn into_issues(self) -> Vec<Issue> {
        self.issues
    }
}

/// Returns `None` for an answer that says that the object does not exist.
///
/// # Errors
///
/// Every other failure.
pub(crate) fn found<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(Failure { code: ErrorCode::Rejected(404 | 410), .. }) => Ok(None),
        Err(failure) => Err(failure),
    }
}
