//! Changes of what is live: a target's posts are edited on their platform, or deleted from it.
//!
//! A client waits for the result, which the row has whether the client still waits or not. Meanwhile the row holds the
//! target: `store::publishing` says against what.

use crate::{Engine, call_as};
use domain::{
    AccountId, Edit, EditId, ErrorCode, Failure, Owner, PostId, TargetId, TargetStatus,
    publish::{EditOutcome, UnpublishResult},
};
use platforms::Feature;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use store::publishing::{
    Changes, EditResult, TakenEdit, Withdrawn, record_edit, record_unpublished, release_withdrawn, take_edit,
    withdraw,
};
use tracing::info;

/// A live target, and the account that published it.
#[derive(Clone, Debug)]
pub struct LiveTarget {
    /// Owner of the rows.
    pub owner: Owner,
    /// Account.
    pub account: AccountId,
    /// Id of the account's platform.
    pub platform: String,
    /// Post.
    pub post: PostId,
    /// Target.
    pub target: TargetId,
}

/// Makes an edit that is in a target's row, within `limit`. `is_change` is false for one that only
/// makes sure that the platform shows what is stored.
///
/// # Errors
///
/// When Fanfare failed: the database or a key.
pub async fn edit_live(
    engine: &Arc<Engine>,
    live: &LiveTarget,
    edit: EditId,
    is_change: bool,
    limit: Duration,
) -> anyhow::Result<EditOutcome> {
    let LiveTarget { owner, account, post, target, .. } = *live;
    let Some(taken) = take_edit(&engine.db, owner, (post, target), edit).await? else {
        return Ok(EditOutcome::Superseded);
    };
    let TakenEdit { edits, platform_ids, .. } = &taken;
    let record = async |made: &[Edit], is_in_doubt: bool| {
        let is_whole = made.len() == edits.len();
        let made = if is_change { Changes::of(made) } else { Changes::default() };
        let result = EditResult { made, is_whole, is_in_doubt };
        record_edit(&engine.db, owner, (post, target), &taken, &result, (engine.now)()).await
    };
    let made = Arc::new(AtomicUsize::new(0));
    let outcome = call_as(engine, owner, account, limit, |platform, cx| {
        let (platform_ids, edits, made) = (platform_ids.clone(), edits.clone(), made.clone());
        Box::pin(async move {
            let editing = platform.editing.map_err(|why| Failure::rejected(501, why))?;
            if let Some(why) = platform.explain(Feature::Editing, &cx.grant.scopes) {
                return Err(Failure::rejected(403, why));
            }
            made.store(0, Ordering::Relaxed);
            for edit in &edits {
                editing.edit(cx, &platform_ids[&edit.position], edit).await?;
                made.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        })
    })
    .await?;
    let count = made.load(Ordering::Relaxed);
    let platform = &live.platform;
    if let Err(failure) = outcome.answer {
        info!(
            target.id = %target, org.id = %owner.org, platform, error.code = %failure.code,
            "Target {target} was not edited: {failure}"
        );
        // What did not answer may still take effect.
        record(&edits[..count], failure.code.leaves_doubt()).await?;
        return Ok(EditOutcome::Failed { failure });
    }
    if !record(edits, false).await? {
        return Ok(EditOutcome::Superseded);
    }
    info!(target.id = %target, org.id = %owner.org, platform, "Edited target {target} on {platform}");
    Ok(EditOutcome::Edited)
}

/// Deletes a target's posts from their platform, within `limit`.
///
/// If the last call has no result, the posts may be gone: the target is not released, and its next attempt gives up what
/// was to follow, as after a worker that died.
///
/// # Errors
///
/// When Fanfare failed: the database or a key.
pub async fn unpublish(
    engine: &Arc<Engine>,
    live: &LiveTarget,
    limit: Duration,
) -> anyhow::Result<UnpublishResult> {
    let LiveTarget { owner, account, post, target, .. } = *live;
    let (platform_ids, until) = match withdraw(&engine.db, owner, post, target).await? {
        Withdrawn::Live { platform_ids, until } => (platform_ids, until),
        Withdrawn::Unpublished => return Ok(UnpublishResult::Unpublished),
        Withdrawn::NotLive(status) => return Ok(UnpublishResult::NotLive { status }),
        Withdrawn::InDoubt => return Ok(UnpublishResult::InDoubt),
        Withdrawn::Missing => return Ok(UnpublishResult::NotLive { status: TargetStatus::Canceled }),
    };
    let deleted = Arc::new(AtomicUsize::new(0));
    let is_unknown = Arc::new(AtomicBool::new(false));
    let outcome = call_as(engine, owner, account, limit, |platform, cx| {
        let (platform_ids, deleted, is_unknown) = (platform_ids.clone(), deleted.clone(), is_unknown.clone());
        Box::pin(async move {
            let Some(deletion) = platform.deletion else {
                return Err(Failure::rejected(501, format!("{} deletes no posts", platform.id)));
            };
            if let Some(why) = platform.explain(Feature::Deletion, &cx.grant.scopes) {
                return Err(Failure::rejected(403, why));
            }
            // The main post last: until it is gone, a repeated call finds the replies through the row.
            for id in platform_ids.iter().rev() {
                // From here until the answer the post may be gone.
                is_unknown.store(true, Ordering::Relaxed);
                let answer = gone(deletion.delete(cx, id).await);
                let leaves_doubt = answer.as_ref().is_err_and(|failure| failure.code.leaves_doubt());
                is_unknown.store(leaves_doubt, Ordering::Relaxed);
                answer?;
                deleted.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        })
    })
    .await;
    let is_done = outcome.as_ref().is_ok_and(|outcome| outcome.answer.is_ok());
    // A fault of ours before the platform was asked deletes nothing either.
    if !is_done && !is_unknown.load(Ordering::Relaxed) {
        let is_torn = deleted.load(Ordering::Relaxed) > 0;
        release_withdrawn(&engine.db, owner, post, target, until, is_torn, (engine.now)()).await?;
    }
    let platform = &live.platform;
    if let Err(failure) = outcome?.answer {
        info!(
            target.id = %target, org.id = %owner.org, platform, error.code = %failure.code,
            "Target {target} was not unpublished: {failure}"
        );
        return Ok(UnpublishResult::Failed { failure });
    }
    record_unpublished(&engine.db, owner, post, target, (engine.now)()).await?;
    info!(target.id = %target, org.id = %owner.org, platform, "Unpublished target {target} from {platform}");
    Ok(UnpublishResult::Unpublished)
}

/// A post that the platform doesn't have any more is deleted.
fn gone(deleted: Result<(), Failure>) -> Result<(), Failure> {
    match deleted {
        Err(failure) if matches!(failure.code, ErrorCode::Rejected(404 | 410)) => Ok(()),
        answer => answer,
    }
}
