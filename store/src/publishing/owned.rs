//! Assignment of a published post to the target that published it.
//!
//! A look-up by text compares text and time, and two posts to one account can have the same text. So the id that it
//! found is adopted only when no other target of the account has it or may have published it. The id that the platform
//! returned to the publishing call, or that a handle led to, is always stored: see [`capture`](super::capture).

use super::TargetKey;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{AccountId, publishing::CALL_MARGIN};
use sqlx::PgPool;

/// Unique index: an id belongs to one target of an account.
const UNIQUE: &str = "publications_platform_id_key";
/// Tolerance for the clock of the process that captured a post.
const CLOCK_TOLERANCE: TimeDelta = TimeDelta::hours(1);

/// Returns the ids captured for an account's posts since shortly before `since`, except this container's; also those of
/// other end tenants, for whom the account was or is connected.
pub async fn captured_ids(
    db: &PgPool,
    key: TargetKey,
    position: u16,
    account: AccountId,
    since: DateTime<Utc>,
) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!(
        r#"select platform_id as "platform_id!" from publications
           where account_id in (
               select o.id from accounts own
                 join accounts o on o.org_id = own.org_id and o.mode = own.mode and o.platform = own.platform
                   and o.network_unique_id = own.network_unique_id
               where own.id = $1)
             and platform_id is not null and published_at >= $2
             and not (target_id = $3 and position = $4)"#,
        account.0,
        since - CLOCK_TOLERANCE,
        key.target.0,
        position.cast_signed()
    )
    .fetch_all(db)
    .await
}

/// Stores an id that a look-up found by text. Returns false when another target of the account has it, or may have
/// published it: one with the same text that has a call without an id, whatever its status, because a dead one may be
/// retried, and
///
/// - that is another end tenant's, for whom the account was or is connected: no tenant's post is told as another one's;
/// - or whose call may be on its way, and its answer still to come;
/// - or whose call was accepted, unless it is dead: its handle, or the end of its polling window, tells which post is its
///   own. If a dead one is retried, and its handle leads to what was taken, both are told so;
/// - or any, if this one's call was accepted: its own post may come after it took the other one's, and the other one would
///   find neither, and publish again;
/// - or any, unless `is_settled`: reads show this target's own post by now, if there is one. If it took the other one's
///   before, the other one would find neither, and publish again.
///
/// Else each may take either's post: the one that is left finds the other's, or rightly none. One that is dead and was not
/// accepted keeps nothing from a call that began [`CLOCK_TOLERANCE`] after its own had ended: no look-up finds a post that is
/// older than its call.
///
/// The rows of the account are locked: two targets of different end tenants, of which neither has the other's text, could
/// take the same post at once.
// Model: Adopt.
pub async fn adopt(
    db: &PgPool,
    key: TargetKey,
    position: u16,
    platform_id: &str,
    is_settled: bool,
) -> sqlx::Result<bool> {
    let mut tx = crate::begin(db).await?;
    let connected = sqlx::query_scalar!(
        "select o.id from targets t join accounts own on own.id = t.account_id
           join accounts o on o.org_id = own.org_id and o.mode = own.mode and o.platform = own.platform
             and o.network_unique_id = own.network_unique_id
         where t.id = $1 order by o.id for no key update of o",
        key.target.0
    )
    .fetch_all(&mut *tx)
    .await?;
    // In a separate statement: what was adopted while waiting for the lock must be visible.
    let adopted = sqlx::query_scalar!(
        r#"with adopted as (
             update publications p
             set platform_id = $3, account_id = t.account_id,
                 published_at = coalesce(p.published_at, clock_timestamp()),
                 commit_ended_at = coalesce(p.commit_ended_at, clock_timestamp())
             from targets t
             where t.id = $1 and p.target_id = $1 and p.position = $2 and p.platform_id is null
               and not exists (
                 select from publications o
                 where o.account_id = any($5) and o.platform_id = $3)
               and not exists (
                 select from targets ot
                 join open_intents o on o.target_id = ot.id
                 join target_containers oc on oc.target_id = ot.id and oc.position = o.position
                 join target_containers c on c.target_id = t.id and c.position = p.position
                 where ot.account_id = any($5) and ot.id <> t.id and oc.content = c.content
                   and not (ot.status = 'dead' and not o.accepted
                     and coalesce(o.commit_ended_at, o.commit_deadline) + make_interval(secs => $7)
                       < coalesce(p.doubted_since, p.commit_begun_at))
                   and (ot.account_id <> t.account_id or p.accepted
                     or o.accepted and (ot.status in ('pending', 'queued', 'failed')
                       or ot.status = 'published' and ot.next_attempt_at is not null)
                     or o.commit_ended_at is null
                       and o.commit_deadline + make_interval(secs => $6) > clock_timestamp()
                     or not $4))
             returning p.platform_id)
           select exists (select from adopted) or exists (
             select from publications where target_id = $1 and position = $2 and platform_id is not null)
             as "is_ours!""#,
        key.target.0,
        position.cast_signed(),
        platform_id,
        is_settled,
        &connected,
        CALL_MARGIN.as_secs_f64(),
        CLOCK_TOLERANCE.as_seconds_f64()
    )
    .fetch_one(&mut *tx)
    .await;
    match adopted {
        // A concurrent transaction stored it for another target.
        Err(sqlx::Error::Database(error)) if error.constraint() == Some(UNIQUE) => Ok(false),
        Err(error) => Err(error),
        Ok(is_ours) => {
            tx.commit().await?;
            Ok(is_ours)
        }
    }
}
