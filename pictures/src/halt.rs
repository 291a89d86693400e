//! Why nothing can be made of a picture.

use std::fmt::Display;

/// Why there is no rendition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The original can't be decoded, for this reason.
    Undecodable(String),
    /// It can't become what is asked for, for this reason.
    Unfit(String),
}

impl Halt {
    /// The reason for a file that can't be read.
    pub fn unreadable(error: impl Display) -> Self {
        Self::Undecodable(format!("it can't be read: {error}"))
    }

    /// The reason for a picture with more than `max` of something.
    pub(crate) fn too_many(what: &str, max: u64) -> Self {
        Self::Undecodable(format!("it has more than {} million {what}", max / 1_000_000))
    }
}
