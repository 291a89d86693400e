//! The place where a target is published: as a post of its own, or below a live one.

use crate::{PostStatus, TargetStatus};
use chrono::{DateTime, Utc};
use std::{fmt, time::Duration};

/// Place where a target is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// As a post of its own.
    Own,
    /// As a reply.
    Below(Parent),
    /// Nowhere, and nothing can be looked up: it is a reply, and the post that it replies to was not live when its
    /// attempts began.
    Nowhere,
}

impl Place {
    /// Returns true for a reply.
    pub fn is_reply(&self) -> bool {
        *self != Self::Own
    }
}

/// The live posts that a reply belongs to, by their platform ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The thread's first post.
    pub root: String,
    /// The last live container of the post that is replied to.
    pub last: String,
}

/// Why a post can't be replied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoParent {
    /// It doesn't exist, or was deleted.
    Deleted,
    /// It has no target on the account.
    NoTarget,
    /// It is a draft.
    Draft,
    /// It failed for good.
    Dead,
    /// It was canceled.
    Canceled,
    /// It was deleted from its platform.
    Unpublished,
}

impl NoParent {
    /// Returns why a post in this state can't be replied to; `None` if it is live, or may still be.
    pub fn of(post: PostStatus, target: TargetStatus, is_unpublished: bool) -> Option<Self> {
        match (post, target) {
            (_, TargetStatus::Published) if is_unpublished => Some(Self::Unpublished),
            (_, TargetStatus::Published) => None,
            (_, TargetStatus::Dead) => Some(Self::Dead),
            (_, TargetStatus::Canceled) | (PostStatus::Canceled, _) => Some(Self::Canceled),
            (PostStatus::Draft, _) => Some(Self::Draft),
            _ => None,
        }
    }
}

impl fmt::Display for NoParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deleted => "the post that it replies to was deleted",
            Self::NoTarget => "the post that it replies to is not published to this account",
            Self::Draft => "the post that it replies to is a draft",
            Self::Dead => "the post that it replies to was not published",
            Self::Canceled => "the post that it replies to was canceled",
            Self::Unpublished => "the post that it replies to was deleted from its platform",
        })
    }
}

/// State of the post that a reply is published below, as the reply finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is live.
    Live(Parent),
    /// It is not live yet, or its thread is not.
    Waiting {
        /// Time until the next look.
        pause: Duration,
        /// When its next step is due, if that is known.
        next: Option<DateTime<Utc>>,
    },
    /// It is being deleted from its platform.
    Held {
        /// Time until the next look.
        pause: Duration,
        /// When the deletion is known at the latest.
        next: Option<DateTime<Utc>>,
    },
    /// It can't be replied to.
    Gone(NoParent),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_parent_or_none_left_is_a_reply() {
        let below = Place::Below(Parent { root: "1".to_owned(), last: "2".to_owned() });
        assert_eq!([Place::Own, below, Place::Nowhere].map(|place| place.is_reply()), [false, true, true]);
    }

    #[test]
    fn a_post_can_be_replied_to_that_is_live_or_may_still_be() {
        use {PostStatus as P, TargetStatus as T};
        for (post, target, is_unpublished, expected) in [
            (P::Published, T::Published, false, None),
            (P::Partial, T::Published, false, None),
            (P::Published, T::Published, true, Some(NoParent::Unpublished)),
            // A live target stays live, in whichever state its post ends.
            (P::Canceled, T::Published, false, None),
            (P::Failed, T::Dead, false, Some(NoParent::Dead)),
            (P::Draft, T::Dead, false, Some(NoParent::Dead)),
            (P::Publishing, T::Canceled, false, Some(NoParent::Canceled)),
            (P::Canceled, T::Pending, false, Some(NoParent::Canceled)),
            (P::Draft, T::Pending, false, Some(NoParent::Draft)),
            (P::Scheduled, T::Pending, false, None),
            (P::Publishing, T::Queued, false, None),
            (P::Publishing, T::Failed, true, None),
        ] {
            assert_eq!(
                NoParent::of(post, target, is_unpublished),
                expected,
                "{post} {target} {is_unpublished}"
            );
        }
    }

    #[test]
    fn each_reason_is_a_sentence_of_its_own() {
        let all = [
            NoParent::Deleted,
            NoParent::NoTarget,
            NoParent::Draft,
            NoParent::Dead,
            NoParent::Canceled,
            NoParent::Unpublished,
        ];
        let mut told: Vec<_> = all.iter().map(NoParent::to_string).collect();
        assert!(told.iter().all(|text| text.starts_with("the post that it replies to ")), "{told:?}");
        told.sort();
        told.dedup();
        assert_eq!(told.len(), all.len());
    }
}
