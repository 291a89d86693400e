//! Fake engagement metrics: derived from a post's id, growing with its age, the same whenever read at the
//! same age.

use chrono::TimeDelta;
use sha2::{Digest, Sha256};

/// Returns the metric `name` of the post `id` at this age; it grows towards at most `ceiling`.
pub(crate) fn figure(id: &str, name: &str, age: TimeDelta, ceiling: u64) -> u64 {
    let digest = Sha256::digest(format!("{id}\n{name}"));
    let draw = u64::from(u16::from_be_bytes([digest[0], digest[1]]));
    let share = |part: u64, whole: u64| ceiling * part / whole;
    let final_figure = share(draw, u64::from(u16::MAX));
    // Half is reached after six hours, three quarters after eighteen.
    let minutes = u64::try_from(age.num_minutes()).unwrap_or(0);
    final_figure * minutes / (minutes + 360)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_never_decrease() {
        let at = |hours| figure("17", "likes", TimeDelta::hours(hours), 1_000);
        assert_eq!(at(0), 0);
        assert!(at(1) <= at(10) && at(10) <= at(1_000) && at(1_000) <= 1_000);
        assert_eq!(at(10), at(10));
    }
}
