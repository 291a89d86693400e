//! Owner of a row: an organization in one of its two modes.
//!
//! Test data and live data of an organization are kept apart, so every query filters by both.

use crate::OrgId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

crate::string_enum! {
    /// One of an organization's two sets of data, and the platforms it is published to.
    Mode, "mode" {
        /// Live data, published to the real platforms.
        Live = "live",
        /// Test data, published to the built-in sandbox.
        Test = "test",
    }
}

/// An organization in one mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// Organization id.
    pub org: OrgId,
    /// Live or test data.
    pub mode: Mode,
}

impl Owner {
    /// The owner of requests that concern no organization, such as those of somebody who is about to sign in.
    pub const NOBODY: Self = Self { org: OrgId(Uuid::nil()), mode: Mode::Live };
}
