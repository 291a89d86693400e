//! Results that the publishing engine returns to workflows.

use crate::{ErrorCode, Failure, TargetStatus};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Result of a publish attempt that Temporal is not to retry as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum PublishResult {
    /// The target is terminal.
    Ended {
        /// Final status.
        status: TargetStatus,
    },
    /// The post was edited before its first attempt: another workflow publishes it.
    Stale,
    /// No attempt was made or counted: it is too early, or the organization already uses its share of
    /// the worker's slots.
    Wait {
        /// Time to wait.
        pause: Duration,
        /// Error code that the target has waited with from now on, for the operators' search.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<ErrorCode>,
    },
    /// The platform is processing the post.
    Processing {
        /// Time to wait before polling the platform again.
        pause: Duration,
    },
    /// The platform refused the access token.
    TokenRefused {
        /// Version of the grant that was refused.
        grant_version: i64,
    },
}

/// Result of a target's first attempt, which the workflow of its post makes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum FirstAttempt {
    /// The target is terminal.
    Ended {
        /// Final status.
        status: TargetStatus,
    },
    /// The post was edited before.
    Stale,
    /// The target is not terminal: a workflow of its own goes on with it.
    Unfinished {
        /// Status and error code that it waits with, for the operators' search.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waits: Option<(TargetStatus, ErrorCode)>,
        /// The result that its workflow goes on with; `None` if the row alone says what comes next.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<PublishResult>,
    },
}

/// Result of polling a platform that is processing a post.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum PollResult {
    /// Processing has finished: the next attempt continues.
    Ready,
    /// The target is terminal.
    Ended {
        /// Final status.
        status: TargetStatus,
    },
    /// The platform refused the access token.
    TokenRefused {
        /// Version of the grant that was refused.
        grant_version: i64,
    },
}

/// Reason for settling a target outside an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum SettleReason {
    /// The attempts ended without a result: their worker died, or Fanfare had an internal error.
    Unanswered {
        /// Temporal's error message.
        message: String,
    },
    /// The grant can't be refreshed.
    GrantLost {
        /// The platform's error message.
        message: String,
    },
    /// The platform did not answer the refresh.
    RefreshFailed {
        /// Error message of the last try.
        message: String,
        /// Error code of the last try.
        code: ErrorCode,
    },
    /// An operator canceled or terminated the workflow.
    Stopped,
}

/// Result of settling a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum SettleResult {
    /// The target is terminal.
    Ended {
        /// Final status.
        status: TargetStatus,
    },
    /// Attempts are left in the budget: try again after the pause.
    RetryAfter {
        /// Time to wait.
        pause: Duration,
    },
}

/// Result of a request to delete a target's posts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UnpublishResult {
    /// The posts are gone, by this call or an earlier one.
    Unpublished,
    /// Nothing is live: the target has this status.
    NotLive {
        /// Status of the target.
        status: TargetStatus,
    },
    /// The result of a publishing call for a reply is unknown and being looked up.
    InDoubt,
    /// The platform refused, or did not answer. Posts before it in reverse order may be gone.
    Failed {
        /// The platform's failure.
        failure: Failure,
    },
}

/// Result of a request to change a target's posts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EditOutcome {
    /// All changes were made.
    Edited,
    /// Another edit has begun since, or the posts were deleted from the platform.
    Superseded,
    /// The platform refused, or did not answer. Changes before that are made.
    Failed {
        /// The platform's failure.
        failure: Failure,
    },
}
