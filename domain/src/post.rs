//! States of a post and of its targets, and how a post's state follows from its targets'.

use TargetStatus::{Canceled, Dead, Published};
use std::fmt;

crate::string_enum! {
    /// The state of a post.
    PostStatus, "post status" {
        /// Not to be published until it is queued or scheduled.
        Draft = "draft",
        /// Waiting for its scheduled time.
        Scheduled = "scheduled",
        /// About to be published.
        Queued = "queued",
        /// The first attempt has begun, and not every target is terminal.
        Publishing = "publishing",
        /// Every target is published.
        Published = "published",
        /// Some targets are published, the others have failed or were canceled.
        Partial = "partial",
        /// Every target has failed or was canceled.
        Failed = "failed",
        /// Canceled before publishing began.
        Canceled = "canceled",
    }
}

impl PostStatus {
    /// Returns the state of a post for which publishing has not begun.
    pub fn of_plan(is_draft: bool, has_time: bool) -> Self {
        match (is_draft, has_time) {
            (true, _) => Self::Draft,
            (false, true) => Self::Scheduled,
            (false, false) => Self::Queued,
        }
    }

    /// Returns true if the post can be edited or canceled: publishing has not begun.
    pub fn is_editable(self) -> bool {
        matches!(self, Self::Draft | Self::Scheduled | Self::Queued)
    }
}

crate::string_enum! {
    /// The state of a target: one account of a post.
    TargetStatus, "target status" {
        /// Its workflow has not started yet.
        Pending = "pending",
        /// Waiting for its scheduled time or a free slot.
        Queued = "queued",
        /// Live on the platform.
        Published = "published",
        /// The last attempt failed; another one follows.
        Failed = "failed",
        /// Failed; no further attempt follows.
        Dead = "dead",
        /// Canceled before publishing began.
        Canceled = "canceled",
    }
}

impl TargetStatus {
    /// Returns true if the state is final.
    pub fn is_terminal(self) -> bool {
        matches!(self, Published | Dead | Canceled)
    }
}

/// Why a target is canceled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// Its account was disconnected.
    Disconnected,
    /// Its post was deleted.
    Deleted,
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disconnected => "the account was disconnected",
            Self::Deleted => "the post was deleted",
        })
    }
}

crate::string_enum! {
    /// The role of a container in its post.
    Role, "role" {
        /// The post itself.
        Main = "main",
        /// The first reply to the post.
        FirstComment = "first_comment",
        /// A further post of the thread.
        Thread = "thread",
    }
}

impl Role {
    /// Returns the role of the container at a 0-based position.
    pub fn at(position: u16) -> Self {
        match position {
            0 => Self::Main,
            1 => Self::FirstComment,
            _ => Self::Thread,
        }
    }
}

/// Returns the final state of a post, or `None` while a target is not terminal.
///
/// # Panics
///
/// If `targets` is empty. Every post of the service has at least one.
pub fn roll_up(targets: &[TargetStatus]) -> Option<PostStatus> {
    assert!(!targets.is_empty(), "a post has at least one target");
    if !targets.iter().all(|target| target.is_terminal()) {
        return None;
    }
    let live = targets.iter().filter(|target| **target == Published).count();
    Some(match live {
        0 => PostStatus::Failed,
        n if n == targets.len() => PostStatus::Published,
        _ => PostStatus::Partial,
    })
}

#[cfg(test)]
mod tests {
    use super::{TargetStatus::*, *};

    #[test]
    fn outcomes_roll_up() {
        for (targets, post) in [
            (&[Published, Published][..], Some(PostStatus::Published)),
            (&[Published, Dead], Some(PostStatus::Partial)),
            (&[Published, Canceled], Some(PostStatus::Partial)),
            (&[Dead, Dead], Some(PostStatus::Failed)),
            (&[Dead, Canceled], Some(PostStatus::Failed)),
            (&[Canceled], Some(PostStatus::Failed)),
            (&[Published, Failed], None),
            (&[Pending], None),
            (&[Queued, Dead], None),
        ] {
            assert_eq!(roll_up(targets), post, "{targets:?}");
        }
    }

    #[test]
    fn enum_strings_are_parsed_back() {
        for status in PostStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(*status));
        }
        assert_eq!(
            "gone".parse::<TargetStatus>().unwrap_err().to_string(),
            "\"gone\" is not a valid target status"
        );
    }
}
