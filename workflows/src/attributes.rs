//! Search attributes: how operators find workflows in Temporal's UI.
//!
//! `FanfarePlatform = 'x' and FanfareError = 'rate_limited' and ExecutionStatus = 'Running'` lists every publish
//! that waits for X's rate limit, and `WorkflowType = 'PublishPost' and FanfareStatus = 'failed' and ExecutionStatus =
//! 'Running'` every post with a target that is retried. All are keywords and must be registered with
//! the namespace before the first workflow starts.

use domain::{AccountId, ErrorCode, Owner, PostId, TargetStatus};
use temporalio_common::search_attributes::{SearchAttributeKey, SearchAttributeUpdate, SearchAttributes};

/// Organization id.
pub const ORG: SearchAttributeKey<String> = SearchAttributeKey::keyword("FanfareOrg");
/// Post id.
pub const POST: SearchAttributeKey<String> = SearchAttributeKey::keyword("FanfarePost");
/// Platform id.
pub const PLATFORM: SearchAttributeKey<String> = SearchAttributeKey::keyword("FanfarePlatform");
/// Account id.
pub const ACCOUNT: SearchAttributeKey<String> = SearchAttributeKey::keyword("FanfareAccount");
/// Status of a target or post that waits, is retried or has failed. A post has that of the target that came last. A
/// workflow without it met no trouble: setting it there too would add a tenth to what a post costs Temporal. One that
/// published after all has `published`.
pub const STATUS: SearchAttributeKey<String> = SearchAttributeKey::keyword("FanfareStatus");
/// The `error_code` of the last failed attempt, or the one that a target waits with.
pub const ERROR: SearchAttributeKey<String> = SearchAttributeKey::keyword("FanfareError");
/// Name of the event that is being delivered.
pub const EVENT: SearchAttributeKey<String> = SearchAttributeKey::keyword("FanfareEvent");

/// Name and type of each, for registration with the namespace.
pub const ALL: [(&str, &str); 7] = [
    ("FanfareOrg", "Keyword"),
    ("FanfarePost", "Keyword"),
    ("FanfarePlatform", "Keyword"),
    ("FanfareAccount", "Keyword"),
    ("FanfareStatus", "Keyword"),
    ("FanfareError", "Keyword"),
    ("FanfareEvent", "Keyword"),
];

/// Returns the changes for a target or post that waits for a next attempt.
pub fn waits(status: TargetStatus, code: ErrorCode) -> [SearchAttributeUpdate; 2] {
    [STATUS.value_set(status.to_string()), ERROR.value_set(code.to_string())]
}

/// Returns the change for one that published after all. The error stays: servers (1.29) refuse the value by which the
/// SDK (1.1.1) unsets an attribute, and the workflow's task then fails for as long as it lives.
pub fn published() -> [SearchAttributeUpdate; 1] {
    [STATUS.value_set(TargetStatus::Published.to_string())]
}

/// Returns the search attributes of a workflow about one account.
pub fn of_account(owner: Owner, platform: &str, account: AccountId) -> SearchAttributes {
    SearchAttributes::new([
        ORG.value_set(owner.org.to_string()),
        PLATFORM.value_set(platform.to_owned()),
        ACCOUNT.value_set(account.to_string()),
    ])
}

/// Returns the search attributes of a workflow about one post.
pub fn of_post(owner: Owner, post: PostId) -> SearchAttributes {
    SearchAttributes::new([ORG.value_set(owner.org.to_string()), POST.value_set(post.to_string())])
}
