//! How large a file of each kind may be.

use anyhow::{Context, ensure};
use domain::MediaKind;
use std::{collections::BTreeMap, str::FromStr};

/// The largest size of each kind: the contract's, or what the operator set.
#[derive(Clone, Debug, Default)]
pub struct SizeLimits(BTreeMap<MediaKind, u64>);

impl SizeLimits {
    /// The largest size of a kind, in bytes.
    pub fn of(&self, kind: MediaKind) -> u64 {
        self.0.get(&kind).copied().unwrap_or(match kind {
            MediaKind::Image => 20 << 20,
            MediaKind::Gif => 15 << 20,
            MediaKind::Audio => 200 << 20,
            MediaKind::Document => 100 << 20,
            MediaKind::Video => 5 << 30,
        })
    }

    /// The largest size of what claims to be of a kind, or to be nothing.
    pub fn of_claim(&self, kind: Option<MediaKind>) -> u64 {
        match kind {
            // Whether a GIF moves, its name does not tell.
            Some(MediaKind::Gif) => self.of(MediaKind::Gif).max(self.of(MediaKind::Image)),
            Some(kind) => self.of(kind),
            None => MediaKind::ALL.iter().map(|kind| self.of(*kind)).max().unwrap_or_default(),
        }
    }
}

impl FromStr for SizeLimits {
    type Err = anyhow::Error;

    /// Reads `{"video": 1073741824}`; what is not named stays as it is.
    fn from_str(text: &str) -> anyhow::Result<Self> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let caps: BTreeMap<MediaKind, u64> =
            serde_json::from_str(text).context("not of the form {\"video\": 1073741824}")?;
        ensure!(caps.values().all(|cap| *cap > 0), "a cap must be at least 1 byte");
        Ok(Self(caps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_sets_what_he_names_and_the_rest_stays() {
        let caps: SizeLimits = r#"{"gif": 7}"#.parse().unwrap();
        assert_eq!((caps.of(MediaKind::Gif), caps.of(MediaKind::Image)), (7, 20 << 20));
        assert_eq!(caps.of_claim(Some(MediaKind::Gif)), 20 << 20);
        assert_eq!(caps.of_claim(None), 5 << 30);
        for wrong in ["7", r#"{"film": 7}"#, r#"{"gif": 0}"#, r#"{"gif": -1}"#] {
            assert!(wrong.parse::<SizeLimits>().is_err(), "{wrong}");
        }
    }
}
