//! Removal of a live target's posts from their platform.
//!
//! The target keeps its status, which tells how publishing ended. What was still to follow its main container is
//! given up first: the fence is raised under the lock that an intent needs, so that no attempt publishes a reply
//! below a post that is being deleted.

use super::{End, TargetKey, mark_incomplete, note};
use crate::{decode::Parsed, timeline};
use chrono::{DateTime, Utc};
use domain::{Owner, PostId, TargetId, TargetStatus};
use sqlx::PgPool;

/// The result of preparing to delete a target's posts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Withdrawn {
    /// The target's posts may be deleted.
    Live {
        /// Ids of the live containers, in the order of publication.
        platform_ids: Vec<String>,
    },
    /// The posts were deleted before.
    Unpublished,
    /// Nothing is live: the target has this status.
    NotLive(TargetStatus),
    /// The result of a publishing call for a reply is unknown and being looked up.
    InDoubt,
    /// The target doesn't exist.
    Missing,
}

/// Prepares the deletion of a live target's posts: gives up what was still to follow its main container.
pub async fn withdraw(
    db: &PgPool,
    owner: Owner,
    post: PostId,
    target: TargetId,
    now: DateTime<Utc>,
) -> sqlx::Result<Withdrawn> {
    let mut tx = crate::begin(db).await?;
    let row = sqlx::query!(
        r#"select t.status as "status: Parsed<TargetStatus>", t.next_attempt_at, t.unpublished_at, p.version
           from targets t join posts p on p.id = t.post_id
           where t.id = $1 and t.post_id = $2 and t.org_id = $3 and t.mode = $4
           for no key update of t"#,
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
        "select platform_id, commit_begun_at from publications where target_id = $1 order by position",
        target.0
    )
    .fetch_all(&mut *tx)
    .await?;
    if row.next_attempt_at.is_some() {
        if publications.iter().any(|row| row.commit_begun_at.is_some() && row.platform_id.is_none()) {
            return Ok(Withdrawn::InDoubt);
        }
        let key = TargetKey { owner, post, target, version: row.version };
        let end = End::Canceled { reason: "the post is being deleted from its platform".to_owned() };
        if let Some((failure, source)) = end.given_up() {
            mark_incomplete(&mut tx, key, &failure, source, now).await?;
        }
        tx.commit().await?;
    }
    let platform_ids = publications.into_iter().filter_map(|row| row.platform_id).collect();
    Ok(Withdrawn::Live { platform_ids })
}

/// Records that a live target's posts were deleted from their platform, once.
pub async fn record_unpublished(
    db: &PgPool,
    owner: Owner,
    post: PostId,
    target: TargetId,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let mut tx = crate::begin(db).await?;
    let recorded = sqlx::query_scalar!(
        "update targets set unpublished_at = $5, updated_at = $5
         where id = $1 and post_id = $2 and org_id = $3 and mode = $4 and status = 'published'
           and unpublished_at is null
         returning platform",
        target.0,
        post.0,
        owner.org.0,
        owner.mode.as_str(),
        now
    )
    .fetch_optional(&mut *tx)
    .await?;
    if let Some(platform) = recorded {
        let key = TargetKey { owner, post, target, version: 0 };
        note(&mut *tx, key, "unpublished", &format!("Deleted from {platform}"), now).await?;
        timeline::reopen(&mut tx, post, now).await?;
    }
    tx.commit().await
}
