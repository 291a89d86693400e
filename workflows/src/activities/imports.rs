//! Imports of posts that accounts published earlier.

use domain::outbox::ImportRef;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use temporalio_common::ActivityError;
use temporalio_macros::activity_definitions;

/// Markers of the declarations below.
pub use imports::{AbandonImport, ImportPage};

/// The next page of an import.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportPageInput {
    /// Import.
    pub import: ImportRef,
    /// Number of failed tries for this page.
    pub tries: u32,
}

/// Result of importing a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ImportProgress {
    /// The page is stored, and another follows.
    More,
    /// The import is over.
    Over,
    /// The platform asks for a pause.
    Later {
        /// Time to wait.
        wait: Duration,
    },
}

/// Activities of imports.
pub struct Imports;

#[activity_definitions]
impl Imports {
    /// Imports the next page; ends the import after the last one.
    #[activity(name = "import_page")]
    pub fn import_page(_input: ImportPageInput) -> Result<ImportProgress, ActivityError> {
        unimplemented!()
    }

    /// Ends an import that can't continue.
    #[activity(name = "abandon_import")]
    pub fn abandon_import(_import: ImportRef) -> Result<(), ActivityError> {
        unimplemented!()
    }
}
