//! The states of a post and of its targets, and how the second make the first.

use TargetStatus::{Canceled, Dead, Published};

crate::string_enum! {
    /// The state of a post.
    PostStatus, "post status" {
        /// Idle until it is released.
        Draft = "draft",
        /// Waits for its time.
        Scheduled = "scheduled",
        /// About to be published.
        Queued = "queued",
        /// From the first target's first attempt until the last target is terminal.
        Publishing = "publishing",
        /// Every target is live.
        Published = "published",
        /// Some targets are live, the others are not and will not be.
        Partial = "partial",
        /// No target is live, and none will be.
        Failed = "failed",
        /// Withdrawn before it was published.
        Canceled = "canceled",
    }
}

impl PostStatus {
    /// The state of a post that nothing has begun for.
    pub fn of_plan(is_draft: bool, has_time: bool) -> Self {
        match (is_draft, has_time) {
            (true, _) => Self::Draft,
            (false, true) => Self::Scheduled,
            (false, false) => Self::Queued,
        }
    }

    /// Whether it can still be edited or canceled: publishing has not begun.
    pub fn is_editable(self) -> bool {
        matches!(self, Self::Draft | Self::Scheduled | Self::Queued)
    }
}

crate::string_enum! {
    /// The state of one account of a post.
    TargetStatus, "target status" {
        /// Its workflow has not taken it up yet.
        Pending = "pending",
        /// Waits for its turn or its time.
        Queued = "queued",
        /// Live on the platform.
        Published = "published",
        /// The last attempt failed; another follows.
        Failed = "failed",
        /// Failed for good.
        Dead = "dead",
        /// Withdrawn before it was published.
        Canceled = "canceled",
    }
}

impl TargetStatus {
    /// Whether nothing more will happen.
    pub fn is_terminal(self) -> bool {
        matches!(self, Published | Dead | Canceled)
    }
}

crate::string_enum! {
    /// What a container is to its post.
    Role, "role" {
        /// The post itself.
        Main = "main",
        /// The first reply to it.
        FirstComment = "first_comment",
        /// A further entry of the thread.
        Thread = "thread",
    }
}

impl Role {
    /// The role of the container at a 0-based position.
    pub fn at(position: u16) -> Self {
        match position {
            0 => Self::Main,
            1 => Self::FirstComment,
            _ => Self::Thread,
        }
    }
}

/// The state of a post whose targets are all terminal, or `None` while one is not.
///
/// # Panics
///
/// Never for a post of the service: each has at least one target.
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
    fn words_read_back_as_written() {
        for status in PostStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(*status));
        }
        assert_eq!("gone".parse::<TargetStatus>().unwrap_err().to_string(), "\"gone\" is no target status");
    }
}
