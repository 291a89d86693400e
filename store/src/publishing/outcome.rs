//! Events of a post, which follow from those of its targets.
//!
//! `post.published` or `post.error` tells the first outcome, one of them, once. A post whose dead targets are retried
//! may end several times; what it ends as in a round of retries is told by `post.retried`.

use domain::{
    OrgId, PostId, PostStatus, TargetStatus,
    event::{self, EventAccount, EventName, Outcome},
};
use serde_json::Value;

/// Outcomes of a post that were told before its latest target ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct History {
    /// Rounds of retries.
    pub(crate) round: u32,
    /// True if it had failed before it was retried.
    pub(crate) has_failed: bool,
    /// True while missing parts of one of its live targets are retried: their end is that of the round.
    pub(crate) goes_on: bool,
}

/// Returns the state of a target in the events of its post.
pub(crate) fn of(status: TargetStatus, id: Option<&str>, error: Option<&str>) -> Outcome {
    match status {
        TargetStatus::Published => Outcome::Live(id.unwrap_or_default().to_owned()),
        TargetStatus::Dead | TargetStatus::Canceled => {
            Outcome::Failed(error.map_or_else(|| status.to_string(), str::to_owned))
        }
        _ => Outcome::Open,
    }
}

/// Returns the events that the end of a target means for its post. `status` is the post's final status, if the target
/// was its last open one.
pub(crate) fn events(
    (post, org): (PostId, OrgId),
    history: History,
    is_first_live: bool,
    status: Option<PostStatus>,
    accounts: &[(EventAccount, Outcome)],
) -> Vec<(EventName, Value)> {
    let History { round, has_failed, goes_on } = history;
    let first = match status {
        _ if has_failed => None,
        _ if is_first_live => Some(EventName::PostPublished),
        Some(PostStatus::Failed) => Some(EventName::PostError),
        _ => None,
    };
    let again = status.filter(|_| round > 0 && !goes_on);
    let first = first.map(|name| (name, event::post(post, org, accounts)));
    let again =
        again.map(|outcome| (EventName::PostRetried, event::retried(post, org, round, outcome, accounts)));
    first.into_iter().chain(again).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_target_is_live_failed_with_its_reason_or_open() {
        for (status, id, error, expected) in [
            (TargetStatus::Published, Some("7"), None, Outcome::Live("7".to_owned())),
            (TargetStatus::Dead, None, Some("refused"), Outcome::Failed("refused".to_owned())),
            (TargetStatus::Dead, Some("7"), None, Outcome::Failed("dead".to_owned())),
            (TargetStatus::Canceled, None, None, Outcome::Failed("canceled".to_owned())),
            (TargetStatus::Failed, None, Some("refused"), Outcome::Open),
            (TargetStatus::Queued, None, None, Outcome::Open),
        ] {
            assert_eq!(of(status, id, error), expected, "{status}");
        }
    }

    #[test]
    fn a_round_is_not_over_while_missing_parts_are_retried() {
        let of = (PostId(Uuid::nil()), OrgId(Uuid::nil()));
        for (round, goes_on, expected) in
            [(0, false, 0), (0, true, 0), (1, true, 0), (1, false, 1), (2, false, 1), (2, true, 0)]
        {
            let told = events(
                of,
                History { round, has_failed: true, goes_on },
                false,
                Some(PostStatus::Failed),
                &[],
            );
            assert_eq!(told.len(), expected, "{round} {goes_on}");
        }
    }

    #[test]
    fn the_first_outcome_is_told_once_and_a_retry_by_an_event_of_its_own() {
        use EventName::{PostError, PostPublished, PostRetried};
        use PostStatus::{Failed, Partial, Published};
        for (round, has_failed, is_first_live, status, expected) in [
            (0, false, true, None, &[PostPublished][..]),
            (0, false, true, Some(Published), &[PostPublished]),
            (0, false, false, Some(Partial), &[]),
            (0, false, false, Some(Failed), &[PostError]),
            (1, true, true, Some(Published), &[PostRetried]),
            (1, true, true, None, &[]),
            (2, true, false, Some(Failed), &[PostRetried]),
            (1, false, false, Some(Partial), &[PostRetried]),
            // Retried before any outcome was told.
            (1, false, true, None, &[PostPublished]),
            (1, false, false, Some(Failed), &[PostError, PostRetried]),
        ] {
            let of = (PostId(Uuid::nil()), OrgId(Uuid::nil()));
            let told = events(of, History { round, has_failed, goes_on: false }, is_first_live, status, &[]);
            let names: Vec<_> = told.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, expected, "{round} {has_failed} {is_first_live} {status:?}");
            let retried = told.iter().find(|(name, _)| *name == PostRetried);
            if let Some((_, data)) = retried {
                assert_eq!(
                    (&data["round"], &data["outcome"]),
                    (&round.into(), &status.unwrap().as_str().into())
                );
            }
        }
    }
}
