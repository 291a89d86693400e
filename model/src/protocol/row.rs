//! What Postgres holds of the target.

use super::{CONTAINERS, LEASE, NOW};
use domain::{
    PostStatus, TargetStatus,
    publishing::{
        self, begin,
        settle::{self, EndKind},
    },
};

/// Status of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Status {
    Open,
    Published,
    Dead { may_be_live: bool, has_reason: bool },
    Canceled,
}

/// The note in the row that a publishing call is about to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Intent {
    /// Of the call with this number.
    Call(u8),
    /// Of any call since the backup.
    SinceBackup,
}

/// State of a container's publication. An id is the number of the call that published it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Publication {
    pub(super) intent: Option<Intent>,
    pub(super) id: Option<u8>,
}

/// The facts in Postgres.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Row {
    pub(super) status: Status,
    pub(super) fence: u8,
    pub(super) version: u8,
    /// Changes of the text of a missing reply.
    pub(super) rewrites: u8,
    /// True once an attempt has begun; the post can't be edited any more.
    pub(super) has_begun: bool,
    /// True once a failure was recorded.
    pub(super) has_failed: bool,
    /// True while a live target has a next attempt, so that the sweeper finds it.
    pub(super) is_due: bool,
    pub(super) is_deleted: bool,
    pub(super) is_disconnected: bool,
    /// True while operators have frozen the target's platform, account or organization.
    pub(super) is_frozen: bool,
    /// True once an operator stopped the target.
    pub(super) is_stopped: bool,
    /// True for a published target whose reply was given up.
    pub(super) is_incomplete: bool,
    /// Deletions of the posts of a live target from the platform that began and have no result.
    pub(super) open_deletions: u8,
    /// True while the latest of them may still be under way.
    pub(super) is_withdrawn: bool,
    /// True once the posts were deleted.
    pub(super) is_unpublished: bool,
    pub(super) publications: [Publication; CONTAINERS],
}

impl Row {
    pub(super) fn new() -> Self {
        Self {
            status: Status::Open,
            fence: 0,
            version: 0,
            rewrites: 0,
            has_begun: false,
            has_failed: false,
            is_due: false,
            is_deleted: false,
            is_disconnected: false,
            is_frozen: false,
            is_stopped: false,
            is_incomplete: false,
            open_deletions: 0,
            is_withdrawn: false,
            is_unpublished: false,
            publications: Default::default(),
        }
    }

    /// Returns the version of a container's text.
    pub(super) fn text(&self, position: usize) -> u8 {
        self.version + if position == 0 { 0 } else { self.rewrites }
    }

    /// Returns whether something is still to be done.
    pub(super) fn is_unfinished(&self) -> bool {
        match self.status {
            Status::Open => true,
            Status::Published => !self.is_incomplete && !self.is_complete(),
            Status::Dead { .. } | Status::Canceled => false,
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        publishing::is_complete(&self.states())
    }

    /// Returns the state of each publication.
    pub(super) fn states(&self) -> [publishing::Publication; CONTAINERS] {
        self.publications.map(|publication| publishing::Publication {
            has_intent: publication.intent.is_some(),
            is_live: publication.id.is_some(),
        })
    }

    pub(super) fn target_status(&self) -> TargetStatus {
        match self.status {
            Status::Open => TargetStatus::Queued,
            Status::Published => TargetStatus::Published,
            Status::Dead { .. } => TargetStatus::Dead,
            Status::Canceled => TargetStatus::Canceled,
        }
    }

    pub(super) fn post_status(&self) -> PostStatus {
        if self.has_begun { PostStatus::Publishing } else { PostStatus::Queued }
    }

    /// Returns the row as an attempt finds it whose workflow was started for a version.
    pub(super) fn beginning<'a>(
        &self,
        started: u8,
        states: &'a [publishing::Publication],
    ) -> begin::Snapshot<'a> {
        begin::Snapshot {
            status: self.target_status(),
            post: self.post_status(),
            version: self.version.into(),
            started: started.into(),
            next_attempt_at: self.is_due.then_some(NOW),
            unpublish_until: (self.open_deletions > 0).then_some(if self.is_withdrawn {
                NOW + LEASE
            } else {
                NOW - LEASE
            }),
            is_stopped: self.is_stopped,
            is_disconnected: self.is_disconnected,
            is_deleted: self.is_deleted,
            is_frozen: self.is_frozen,
            ..begin::Snapshot::due(NOW, states)
        }
    }

    /// Returns the row as it is found when the target is to end.
    pub(super) fn ending<'a>(
        &self,
        end: EndKind,
        fence: Option<u8>,
        targets: &'a [TargetStatus],
    ) -> settle::Snapshot<'a> {
        settle::Snapshot {
            end,
            fence: fence.map(i32::from),
            row_fence: self.fence.into(),
            post: self.post_status(),
            version: self.version.into(),
            started: self.version.into(),
            is_post_live: self.status == Status::Published,
            targets,
            index: 0,
            is_captured: self.publications[0].id.is_some(),
            is_due: self.is_due,
        }
    }

    /// Returns whether attempts only look up what was begun.
    pub(super) fn is_barred(&self) -> bool {
        self.is_deleted
            || self.is_disconnected
            || self.is_stopped
            || self.open_deletions > 0 && !self.is_withdrawn
    }

    /// Returns whether no publishing call may begin, by an operator's order or because of a deletion.
    pub(super) fn is_held(&self) -> bool {
        self.is_frozen || self.is_stopped || self.open_deletions > 0 || self.is_unpublished
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        publishing::is_in_doubt(&self.states())
    }

    pub(super) fn has_intent(&self) -> bool {
        self.publications.iter().any(|publication| publication.intent.is_some())
    }

    /// Returns whether the sweeper would start a workflow.
    pub(super) fn is_swept(&self) -> bool {
        self.status == Status::Open || self.status == Status::Published && self.is_due
    }

    /// Records the end of a deletion that deleted nothing.
    pub(super) fn end_deletion(&mut self) {
        self.open_deletions -= 1;
        self.is_withdrawn &= self.open_deletions > 0;
    }

    /// Gives up the reply of a live target.
    pub(super) fn lose_reply(&mut self) {
        self.is_incomplete = !self.is_complete();
        self.is_due = false;
        self.fence += 1;
    }

    /// Cancels the target, which may not be live.
    pub(super) fn cancel(&mut self) {
        self.status = Status::Canceled;
        self.fence += 1;
    }
}
