//! Publishing one target.

use domain::{
    AccountId, Owner, PostId, TargetId,
    publish::{FirstAttempt, PollResult, PublishResult, SettleReason, SettleResult},
};
use serde::{Deserialize, Serialize};
use temporalio_common::ActivityError;
use temporalio_macros::activity_definitions;

/// Markers of the declarations below.
pub use publishing::{FirstAttempt as MakeFirstAttempt, Poll, Publish, RefreshToken, Settle};

/// A target, as of one version of its post.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetInput {
    /// Target id.
    pub target: TargetId,
    /// Post id.
    pub post: PostId,
    /// Owner of the rows.
    pub owner: Owner,
    /// Account id.
    pub account: AccountId,
    /// Platform id.
    pub platform: String,
    /// The version of the post's row that the work was started for.
    pub version: i32,
}

/// A grant that a platform refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefreshInput {
    /// Target that was being published.
    pub target: TargetInput,
    /// Version of the grant; a later one is not refreshed again.
    pub grant_version: i64,
}

/// A target to be settled outside an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettleInput {
    /// Target.
    pub target: TargetInput,
    /// Reason.
    pub why: SettleReason,
}

/// Type of the failure of `refresh_token` when the grant is lost.
pub const GRANT_LOST: &str = "grant_lost";

/// Activities that publish a target.
pub struct Publishing;

#[activity_definitions]
impl Publishing {
    /// Makes the first attempt to publish a target. Fails only if the attempt has no result.
    #[activity(name = "first_attempt")]
    pub fn first_attempt(_input: TargetInput) -> Result<FirstAttempt, ActivityError> {
        unimplemented!()
    }

    /// Makes one attempt to publish a target.
    #[activity(name = "publish")]
    pub fn publish(_input: TargetInput) -> Result<PublishResult, ActivityError> {
        unimplemented!()
    }

    /// Asks once whether a platform is still processing.
    #[activity(name = "poll")]
    pub fn poll(_input: TargetInput) -> Result<PollResult, ActivityError> {
        unimplemented!()
    }

    /// Refreshes the account's grant, unless that was done meanwhile.
    #[activity(name = "refresh_token")]
    pub fn refresh_token(_input: RefreshInput) -> Result<(), ActivityError> {
        unimplemented!()
    }

    /// Ends a target whose attempts gave no answer, or returns when to try again.
    #[activity(name = "settle")]
    pub fn settle(_input: SettleInput) -> Result<SettleResult, ActivityError> {
        unimplemented!()
    }
}
