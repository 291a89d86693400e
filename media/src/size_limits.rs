//! Maximum file sizes.

use anyhow::{Context, ensure};
use domain::MediaKind;
use std::{collections::BTreeMap, str::FromStr};

/// Maximum file size of each media kind: the documented one, or the operator's.
#[derive(Clone, Debug, Default)]
pub struct SizeLimits(BTreeMap<MediaKind, u64>);

impl SizeLimits {
    /// Returns the maximum size of a kind, in bytes.
    pub fn for_kind(&self, kind: MediaKind) -> u64 {
        self.0.get(&kind).copied().unwrap_or(match kind {
            MediaKind::Image => 20 << 20,
            MediaKind::Gif => 15 << 20,
            MediaKind::Audio => 200 << 20,
            MediaKind::Document => 100 << 20,
            MediaKind::Video => 5 << 30,
        })
    }

    /// Returns the maximum size of a file that is declared to be of a kind, or of none, in bytes.
    pub fn for_declared(&self, kind: Option<MediaKind>) -> u64 {
        match kind {
            // A GIF that is not animated is an image, which its name does not show.
            Some(MediaKind::Gif) => self.for_kind(MediaKind::Gif).max(self.for_kind(MediaKind::Image)),
            Some(kind) => self.for_kind(kind),
            None => MediaKind::ALL.iter().map(|kind| self.for_kind(*kind)).max().unwrap_or_default(),
        }
    }
}

impl FromStr for SizeLimits {
    type Err = anyhow::Error;

    /// Parses `{"video": 1073741824}`; kinds that are missing keep their default.
    fn from_str(text: &str) -> anyhow::Result<Self> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let limits: BTreeMap<MediaKind, u64> =
            serde_json::from_str(text).context("expected JSON such as {\"video\": 1073741824}")?;
        ensure!(limits.values().all(|limit| *limit > 0), "a size limit must be at least 1 byte");
        Ok(Self(limits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operators_limits_replace_the_defaults_of_their_kinds() {
        let limits: SizeLimits = r#"{"gif": 7}"#.parse().unwrap();
        assert_eq!((limits.for_kind(MediaKind::Gif), limits.for_kind(MediaKind::Image)), (7, 20 << 20));
        assert_eq!(limits.for_declared(Some(MediaKind::Gif)), 20 << 20);
        assert_eq!(limits.for_declared(None), 5 << 30);
        for wrong in ["7", r#"{"film": 7}"#, r#"{"gif": 0}"#, r#"{"gif": -1}"#] {
            assert!(wrong.parse::<SizeLimits>().is_err(), "{wrong}");
        }
    }
}
