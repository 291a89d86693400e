//! Removal of a live target's posts from their platform.
//!
//! The target keeps its status, which tells how publishing ended. While the platform is asked, the target is held: the
//! fence is raised under the lock that an intent needs, and until the lease ends nothing is published for the target or
//! below it. What was still to follow its main container is given up once its posts are deleted, and goes on if they
//! are not. A deletion without a result leaves the lease: when it is over, the posts may be gone, and the next attempt
//! gives up what was to follow. Its user may retry that. Deletions may overlap and be repeated, so that the row counts
//! those without a result: one that the platform refused says nothing about another one.

use super::{
    Replies, TargetKey, lock_post,
    missing::{self, Shortfall, mark_incomplete},
    note, wake_replies,
};
use crate::{decode::Parsed, outbox, posts::timeline};
use chrono::{DateTime, Utc};
use domain::{ErrorSource, Owner, PostId, TargetId, TargetStatus, outbox::Message, publishing::CALL_MARGIN};
use sqlx::{PgConnection, PgPool};
use std::time::Duration;

/// Time for which a target is held: longer than its calls take.
pub const UNPUBLISH_LEASE: Duration = Duration::from_secs(30);

/// The result of preparing to delete a target's posts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Withdrawn {
    /// The target is held, and its posts may be deleted.
    Live {
        /// Ids of the live containers, in the order of publication.
        platform_ids: Vec<String>,
        /// Until when it is held for this deletion. A later result is not counted.
        until: DateTime<Utc>,
    },
    /// The posts were deleted before.
    Unpublished,
    /// Nothing is live: the target has this status.
    NotLive(TargetStatus),
    /// The result of a publishing call for the thread is unknown and being looked up, or the call of a part or of a reply
    /// may still be on its way.
    InDoubt,
    /// The target doesn't exist.
    Missing,
}

/// Prepares the deletion of a live target's posts: holds the target.
// Model: Withdraw.
pub async fn withdraw(db: &PgPool, owner: Owner, post: PostId, target: TargetId) -> sqlx::Result<Withdrawn> {
    let mut tx = crate::begin(db).await?;
    let row = sqlx::query!(
        r#"select status as "status: Parsed<TargetStatus>", next_attempt_at, unpublished_at from targets
           where id = $1 and post_id = $2 and org_id = $3 and mode = $4
           for no key update"#,
        target.0,
        post.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(row) = row else { return Ok(Withdrawn::Missing) };
    match row.status.0 {
        TargetStatus::Published if row.unpublished_at.is_some() => return Ok(Withdrawn::Unpublished),
        TargetStatus::Published => {}
        status => return Ok(Withdrawn::NotLive(status)),
    }
    // In a separate statement: an intent that was written while waiting for the lock must be visible.
    let publications = sqlx::query!(
        r#"select platform_id, commit_begun_at is not null and platform_id is null as "is_in_doubt!",
             coalesce(commit_ended_at is null and commit_deadline + make_interval(secs => $2) > clock_timestamp(), false)
               as "may_arrive!"
           from publications where target_id = $1 order by position"#,
        target.0,
        CALL_MARGIN.as_secs_f64()
    )
    .fetch_all(&mut *tx)
    .await?;
    // What was given up is not looked up any more, but its call may still be on its way.
    let is_due = row.next_attempt_at.is_some();
    let is_in_doubt = publications.iter().any(|row| row.is_in_doubt && (is_due || row.may_arrive));
    let is_replied_to = sqlx::query_scalar!(
        r#"select exists (
             select from targets own
             join posts r on r.reply_to = own.post_id
             join targets t on t.post_id = r.id and t.account_id = own.account_id
             join publications p on p.target_id = t.id and p.position = 0
             where own.id = $1 and p.platform_id is null and p.commit_ended_at is null
               and p.commit_deadline + make_interval(secs => $2) > clock_timestamp()) as "is_replied_to!""#,
        target.0,
        CALL_MARGIN.as_secs_f64()
    )
    .fetch_one(&mut *tx)
    .await?;
    if is_in_doubt || is_replied_to {
        return Ok(Withdrawn::InDoubt);
    }
    let until = sqlx::query_scalar!(
        r#"update targets
           set fence = fence + 1, open_deletions = open_deletions + 1,
             unpublish_until = clock_timestamp() + make_interval(secs => $2)
           where id = $1
           returning unpublish_until as "until!""#,
        target.0,
        UNPUBLISH_LEASE.as_secs_f64()
    )
    .fetch_one(&mut *tx)
    .await?;
    tx.commit().await?;
    let platform_ids = publications.into_iter().filter_map(|row| row.platform_id).collect();
    Ok(Withdrawn::Live { platform_ids, until })
}

/// Records that the deletion that held a target until `until` deleted none of its remaining posts, and releases the target
/// unless another deletion has no result yet. `is_torn` says that a part of its thread is deleted: the rest, which would
/// follow that part, is given up. After `until` nothing is recorded: the next attempt may have taken the posts for gone.
// Model: ReleaseWithdrawn.
pub async fn release_withdrawn(
    db: &PgPool,
    owner: Owner,
    post: PostId,
    target: TargetId,
    until: DateTime<Utc>,
    is_torn: bool,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let mut tx = crate::begin(db).await?;
    let key = TargetKey { owner, post, target, version: 0 };
    lock_post(&mut tx, key).await?;
    let row = sqlx::query!(
        r#"update targets
           set open_deletions = open_deletions - 1,
             unpublish_until = case when open_deletions > 1 then unpublish_until end
           where id = $1 and post_id = $2 and org_id = $3 and mode = $4 and open_deletions > 0
             and $5 > clock_timestamp()
           returning open_deletions = 0 as "is_released!", next_attempt_at is not null as "is_due!""#,
        target.0,
        post.0,
        owner.org.0,
        owner.mode.as_str(),
        until
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(row) = row else { return Ok(()) };
    if is_torn {
        give_up_rest(&mut tx, key, row.is_due, "a part of the thread was deleted from its platform", now)
            .await?;
    } else if row.is_due && row.is_released {
        outbox::push(&mut tx, &Message::RetryTarget { target, post, owner }).await?;
    }
    if row.is_released {
        wake_replies(&mut tx, owner, post, Replies::To(target)).await?;
    }
    tx.commit().await
}

/// Records that a live target's posts were deleted from their platform, once, and gives up what was still to follow
/// its main container.
// Model: RecordUnpublished.
pub async fn record_unpublished(
    db: &PgPool,
    owner: Owner,
    post: PostId,
    target: TargetId,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let mut tx = crate::begin(db).await?;
    let key = TargetKey { owner, post, target, version: 0 };
    lock_post(&mut tx, key).await?;
    let recorded = sqlx::query!(
        r#"update targets
           set unpublished_at = $5, unpublish_until = null, open_deletions = 0, updated_at = $5
           where id = $1 and post_id = $2 and org_id = $3 and mode = $4 and status = 'published'
             and unpublished_at is null
           returning platform, next_attempt_at is not null as "is_due!""#,
        target.0,
        post.0,
        owner.org.0,
        owner.mode.as_str(),
        now
    )
    .fetch_optional(&mut *tx)
    .await?;
    if let Some(row) = recorded {
        if row.is_due {
            give_up_rest(&mut tx, key, row.is_due, "the post was deleted from its platform", now).await?;
        }
        note(&mut *tx, key, "unpublished", &format!("Deleted from {}", row.platform), now).await?;
        timeline::reopen(&mut tx, post, now).await?;
        wake_replies(&mut tx, owner, post, Replies::To(target)).await?;
    }
    tx.commit().await
}

/// Gives up what was to follow a target's main container, and tells so, unless it was given up before.
async fn give_up_rest(
    tx: &mut PgConnection,
    key: TargetKey,
    is_due: bool,
    message: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let why = Shortfall { code: None, message: message.into(), source: ErrorSource::User };
    let missing = mark_incomplete(tx, key, &why, now).await?;
    match is_due {
        true => missing::tell_incomplete(tx, key, &missing, now).await,
        false => Ok(()),
    }
}
