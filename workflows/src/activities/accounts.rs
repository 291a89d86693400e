//! Calls to platforms about accounts and their grants.

use chrono::{DateTime, Utc};
use domain::{
    AccountId, EditId, Failure, Issue, LimitUsage, Owner, PostId, SelectOption, TargetId,
    outbox::{Disconnection, ExpiringGrant},
};
use serde::{Deserialize, Serialize};
use temporalio_common::ActivityError;
use temporalio_macros::activity_definitions;

pub use domain::publish::{EditOutcome, UnpublishResult};

/// Markers of the declarations below.
pub use accounts::{
    CancelTargets, CheckHealth, EditTarget, EraseGrant, ListOptions, LookUp, ReadUsage, RenewGrant,
    RevokeGrant, Unpublish,
};

/// The account to call the platform as.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccountRef {
    /// Account id.
    pub account: AccountId,
    /// Owner of the rows.
    pub owner: Owner,
    /// Platform id.
    pub platform: String,
}

/// Result of a health check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HealthReport {
    /// The failure; `None` when the platform accepted the grant.
    pub failure: Option<Failure>,
    /// Time of the answer.
    pub at: DateTime<Utc>,
}

/// A request for the values that a setting can have for an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OptionsRequest {
    /// Account.
    pub account_ref: AccountRef,
    /// Kind of list, for example `boards`.
    pub kind: String,
    /// Parent of the list where an account has several: for `flairs` the subreddit.
    pub parent: Option<String>,
}

/// A request to ask a platform for what only it knows about a post.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LookUpRequest {
    /// Account that would publish it.
    pub account_ref: AccountRef,
    /// The post: a [`domain::Subject`], sealed to the workers, in base64.
    pub subject: String,
}

/// Result of a look-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LookUpReport {
    /// Issues of the post.
    pub issues: Vec<Issue>,
    /// Why the platform was not asked for everything; `None` when it was.
    pub failure: Option<Failure>,
}

/// A request to delete a target's posts from their platform.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnpublishRequest {
    /// Account that published them.
    pub account_ref: AccountRef,
    /// Post id.
    pub post: PostId,
    /// Target id.
    pub target: TargetId,
}

/// A request to change a target's posts on their platform.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EditRequest {
    /// Account that published them.
    pub account_ref: AccountRef,
    /// Post id.
    pub post: PostId,
    /// Target id.
    pub target: TargetId,
    /// The edit, whose changes are in the target's row.
    pub edit: EditId,
    /// True if it changes anything; else it only makes sure that the platform shows what is stored.
    pub is_change: bool,
}

/// Activities about accounts and their grants.
pub struct Accounts;

#[activity_definitions]
impl Accounts {
    /// Makes one call that shows whether the platform accepts the grant, and updates the account's status.
    #[activity(name = "check_health")]
    pub fn check_health(_account: AccountRef) -> Result<HealthReport, ActivityError> {
        unimplemented!()
    }

    /// Cancels the pending targets of a disconnected account, in transactions of bounded size.
    #[activity(name = "cancel_targets")]
    pub fn cancel_targets(_disconnection: Disconnection) -> Result<(), ActivityError> {
        unimplemented!()
    }

    /// Revokes a grant at its platform.
    #[activity(name = "revoke_grant")]
    pub fn revoke_grant(_disconnection: Disconnection) -> Result<(), ActivityError> {
        unimplemented!()
    }

    /// Erases the grant of a disconnected account.
    #[activity(name = "erase_grant")]
    pub fn erase_grant(_disconnection: Disconnection) -> Result<(), ActivityError> {
        unimplemented!()
    }

    /// Renews a grant before it ends, unless that was done meanwhile. Returns the current grant; `None` when
    /// there is none to renew.
    #[activity(name = "renew_grant")]
    pub fn renew_grant(_grant: ExpiringGrant) -> Result<Option<ExpiringGrant>, ActivityError> {
        unimplemented!()
    }

    /// Lists the values that a setting can have.
    #[activity(name = "list_options")]
    pub fn list_options(
        _request: OptionsRequest,
    ) -> Result<Result<Vec<SelectOption>, Failure>, ActivityError> {
        unimplemented!()
    }

    /// Asks a platform for what only it knows about a post. Reads only.
    #[activity(name = "look_up")]
    pub fn look_up(_request: LookUpRequest) -> Result<LookUpReport, ActivityError> {
        unimplemented!()
    }

    /// Reads how much of the platform's limits an account has used.
    #[activity(name = "read_usage")]
    pub fn read_usage(_account: AccountRef) -> Result<Result<Vec<LimitUsage>, Failure>, ActivityError> {
        unimplemented!()
    }

    /// Changes a live target's posts on their platform, the main post first.
    #[activity(name = "edit_target")]
    pub fn edit_target(_request: EditRequest) -> Result<EditOutcome, ActivityError> {
        unimplemented!()
    }

    /// Deletes a live target's posts from their platform, the last reply first.
    #[activity(name = "unpublish")]
    pub fn unpublish(_request: UnpublishRequest) -> Result<UnpublishResult, ActivityError> {
        unimplemented!()
    }
}
