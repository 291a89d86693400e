//! Replies to live posts: where a target of such a post is published.
//!
//! A reply waits until the post that it replies to is live on its account, with its whole thread. The ids that it then
//! finds are stored with its first attempt and never change, because a look-up has to search below the same post as the
//! call did. An end of the post that it replies to locks the target's row, which the reply reads under a shared lock:
//! either the reply sees the end, or the end sees the reply and wakes it.

use super::TargetKey;
use crate::{decode::Parsed, outbox};
use chrono::{DateTime, Utc};
use domain::{
    AccountId, Owner, PostId, PostStatus, TargetId, TargetStatus,
    outbox::Message,
    publishing::{Found, NoParent, Parent, begin::TOLERANCE},
};
use sqlx::PgConnection;
use std::time::Duration;

/// Shortest and longest pause between two looks at a post that is not live yet. Its end wakes the reply; this finds one
/// that was not woken.
const PAUSES: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(24 * 3600));

/// Finds the live post that an account's reply belongs to.
pub(super) async fn find(
    tx: &mut PgConnection,
    key: TargetKey,
    post: PostId,
    account: AccountId,
    now: DateTime<Utc>,
) -> sqlx::Result<Found> {
    // In a separate statement: what is committed while waiting for the lock must be visible to the next one.
    sqlx::query!(
        "select id from targets where post_id = $1 and account_id = $2 and org_id = $3 and mode = $4 for share",
        post.0,
        account.0,
        key.owner.org.0,
        key.owner.mode.as_str()
    )
    .fetch_optional(&mut *tx)
    .await?;
    let row = sqlx::query!(
        r#"select p.status as "post_status: Parsed<PostStatus>", p.deleted_at,
             t.id as "target?", t.status as "status?: Parsed<TargetStatus>", t.unpublished_at as "unpublished_at?",
             t.unpublish_until as "unpublish_until?",
             t.next_attempt_at as "next_attempt_at?", t.look_at as "look_at?", t.reply_root as "reply_root?",
             coalesce(t.scheduled_at, p.scheduled_at) as due
           from posts p left join targets t on t.post_id = p.id and t.account_id = $4
           where p.id = $1 and p.org_id = $2 and p.mode = $3"#,
        post.0,
        key.owner.org.0,
        key.owner.mode.as_str(),
        account.0
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(row) = row.filter(|row| row.deleted_at.is_none()) else {
        return Ok(Found::Gone(NoParent::Deleted));
    };
    let (Some(target), Some(status)) = (row.target, row.status) else {
        return Ok(Found::Gone(NoParent::NoTarget));
    };
    if let Some(reason) = NoParent::of(row.post_status.0, status.0, row.unpublished_at.is_some()) {
        return Ok(Found::Gone(reason));
    }
    if let Some(until) = row.unpublish_until
        && let Ok(left) = (until - now).to_std()
    {
        return Ok(Found::Held { pause: left + TOLERANCE, next: Some(until) });
    }
    let waiting = || {
        let step = row.next_attempt_at.max(row.look_at);
        let next = step.max(row.due.filter(|_| status.0 != TargetStatus::Published));
        let pause = next.and_then(|next| (next - now).to_std().ok()).unwrap_or_default();
        Found::Waiting { pause: (pause + TOLERANCE).clamp(PAUSES.0, PAUSES.1), next }
    };
    if status.0 != TargetStatus::Published {
        return Ok(waiting());
    }
    let live = sqlx::query!(
        r#"select c.position, p.platform_id as "platform_id?"
           from target_containers c left join publications p on p.target_id = c.target_id and p.position = c.position
           where c.target_id = $1 order by c.position"#,
        target
    )
    .fetch_all(tx)
    .await?;
    if row.next_attempt_at.is_some() && live.iter().any(|container| container.platform_id.is_none()) {
        return Ok(waiting());
    }
    let mut ids = live.into_iter().map_while(|container| container.platform_id);
    let Some(first) = ids.next() else { return Ok(Found::Gone(NoParent::Dead)) };
    let last = ids.last().unwrap_or_else(|| first.clone());
    Ok(Found::Live(Parent { root: row.reply_root.unwrap_or(first), last }))
}

/// Replies that a change concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replies {
    /// All replies to the post.
    All,
    /// Those to one of its targets: a target replies to the target of its own account.
    To(TargetId),
    /// Those on accounts that the post has no target for.
    Orphaned,
}

/// Lets replies to a post look at it again that waited for it.
///
/// Each one is a message, and each end of a target calls this: what is to be woken must be as few as the change
/// concerns. The caller holds a lock that a look needs, of the target or of the post.
// Model: WakeReplies.
pub(crate) async fn wake_replies(
    tx: &mut PgConnection,
    owner: Owner,
    post: PostId,
    replies: Replies,
) -> sqlx::Result<()> {
    let target = match replies {
        Replies::To(target) => Some(target.0),
        Replies::All | Replies::Orphaned => None,
    };
    let waiting = sqlx::query!(
        "select t.id, t.post_id from posts p join targets t on t.post_id = p.id
         where p.reply_to = $1 and p.org_id = $2 and p.mode = $3 and p.status in ('scheduled', 'queued', 'publishing')
           and t.status in ('pending', 'queued') and t.reply_parent is null
           and coalesce(coalesce(t.scheduled_at, p.scheduled_at) <= clock_timestamp(), true)
           and ($4::uuid is null or t.account_id = (select account_id from targets where id = $4))
           and not ($5 and exists (select from targets o where o.post_id = $1 and o.account_id = t.account_id))",
        post.0,
        owner.org.0,
        owner.mode.as_str(),
        target,
        replies == Replies::Orphaned
    )
    .fetch_all(&mut *tx)
    .await?;
    if waiting.is_empty() {
        return Ok(());
    }
    let wakes: Vec<_> = waiting
        .into_iter()
        .map(|row| Message::RetryTarget { target: row.id.into(), post: row.post_id.into(), owner })
        .collect();
    outbox::push_all(tx, &wakes).await
}
