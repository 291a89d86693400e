//! Deletion of a published post from its platform.
//!
//! A worker makes the calls while the client waits. The target's status stays `published`, since it tells how
//! publishing ended; `unpublished_at` tells that the post is gone since.

use crate::{
    accounts,
    http::{
        caller::Call,
        problem::{Code, Problem},
        workers,
    },
    posts,
};
use domain::{ErrorCode, Failure, TargetStatus};
use platforms::Feature;
use store::posts::Target;
use workflows::activities::{AccountRef, UnpublishRequest, UnpublishResult};

/// `Retry-After` while a reply is being looked up, in seconds.
const LOOKUP_SECONDS: u32 = 30;

/// Deletes a live target's posts from their platform.
pub async fn unpublish(call: &Call<'_>, id: &str, target_id: &str) -> Result<posts::Target, Problem> {
    let (post, target) = posts::target(call, id, target_id).await?;
    if target.unpublished_at.is_some() {
        return Ok(target.into());
    }
    if target.status != TargetStatus::Published {
        return Err(not_live(target.status));
    }
    let account = accounts::find(call, &target.account_id.to_string()).await?;
    let platform = accounts::platform(&account)?;
    if platform.deletion.is_none() {
        let detail = format!("{} lets no app delete posts; delete it there", platform.name);
        return Err(Problem::new(Code::DeletionUnsupported, detail));
    }
    if let Some(detail) = platform.explain(Feature::Deletion, &account.scopes) {
        return Err(Problem::new(Code::ReconnectRequired, detail));
    }
    let account_ref =
        AccountRef { account: account.id, owner: call.owner, platform: account.platform.clone() };
    let request = UnpublishRequest { account_ref, post, target: target.id };
    match workers::request(call, request).await? {
        UnpublishResult::Unpublished => {
            let (_, target) = posts::target(call, id, target_id).await?;
            Ok(target.into())
        }
        UnpublishResult::NotLive { status } => Err(not_live(status)),
        UnpublishResult::InDoubt => {
            let detail =
                "a reply of the post may just have been published and is being looked up; try again later";
            Err(Problem::new(Code::Conflict, detail).retry_after(LOOKUP_SECONDS))
        }
        UnpublishResult::Failed { failure } => Err(refused(&target, failure)),
    }
}

fn not_live(status: TargetStatus) -> Problem {
    Problem::new(
        Code::Conflict,
        format!("the target is {status}; only a published target can be unpublished"),
    )
}

/// The problem of a call about a live post that failed. One for a lost grant asks for a new login.
pub(crate) fn refused(target: &Target, failure: Failure) -> Problem {
    let needs_login = failure.code == ErrorCode::TokenExpired;
    let mut problem = accounts::refused(&target.platform, failure);
    if needs_login {
        problem.code = Code::ReconnectRequired;
    }
    problem
}
