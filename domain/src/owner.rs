//! Who owns a row: an organization, in one of its two modes.
//!
//! Test data and live data of an organization never meet, so the mode is half of the owner and every
//! query carries both.

use crate::OrgId;
use serde::{Deserialize, Serialize};

crate::string_enum! {
    /// Which of an organization's two sets of data, and which side of the wire.
    Mode, "mode" {
        /// The real platforms.
        Live = "live",
        /// The built-in sandbox.
        Test = "test",
    }
}

/// An organization in one mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// The organization.
    pub org: OrgId,
    /// Its live or its test data.
    pub mode: Mode,
}
