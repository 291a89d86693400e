//! Retries of dead targets, and of what is missing of live ones, which a user asks for.
//!
//! A target that is retried has a new budget and a new polling window, and is prepared from the start. An intent
//! that its end left open stays, with everything that its look-up needs: the first attempt looks it up before it
//! publishes anything, as after a lost answer. The fence is raised, so that an attempt that outlived the end can
//! neither publish nor end the target again.
//!
//! A live target without its whole thread stays `published`: the parts that are live have their ids, which no attempt
//! calls a platform for.
//!
//! Each retry is a round. Receivers handle an event of a post once, so that none may be repeated: events of a target
//! carry its round, and the end of the post is told by `post.retried`, once its first outcome was told.

use crate::{
    bounds::{self, Access, Resource},
    outbox,
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    AccountId, ErrorCode, Owner, PostId, PostStatus, TargetId,
    outbox::{Message, TargetRef},
};
use sqlx::{PgConnection, PgPool, QueryBuilder};
use uuid::Uuid;

/// Time since the end of a target within which it is retried with its account.
const RECENT: TimeDelta = TimeDelta::days(7);

/// The result of retrying a post's dead targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revived {
    /// These targets are retried.
    Targets(Vec<TargetId>),
    /// None of the targets is dead, and none misses a part that has failed.
    NoneDead,
    /// The accounts of the targets to retry are disconnected.
    Disconnected,
    /// The post doesn't exist, or was deleted.
    Missing,
}

/// Retries the dead targets of a post and the live ones that miss parts, or those of them in `only`, whose accounts are
/// connected.
///
/// The accounts rest no longer: who retries by hand wants an attempt now. If the platform throttles it, the account
/// rests again, and its targets wait.
///
/// The post's row is locked first, as an attempt does.
// Model: Revive.
pub async fn revive(
    db: &PgPool,
    access: Access<'_>,
    post: PostId,
    only: Option<&[TargetId]>,
    now: DateTime<Utc>,
) -> sqlx::Result<Revived> {
    let Some(owner) = access.reach(db, Resource::Post, post.0).await? else { return Ok(Revived::Missing) };
    super::end_rests(db, owner, post, only, true).await?;
    let mut tx = crate::begin(db).await?;
    let revived = revive_in(&mut tx, owner, post, only, now).await?;
    if matches!(revived, Revived::Targets(_)) {
        tx.commit().await?;
    }
    Ok(revived)
}

/// [`revive`] in a transaction, without ending the accounts' rests.
pub(crate) async fn revive_in(
    tx: &mut PgConnection,
    owner: Owner,
    post: PostId,
    only: Option<&[TargetId]>,
    now: DateTime<Utc>,
) -> sqlx::Result<Revived> {
    let row = sqlx::query!(
        "select version, round from posts
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null for no key update",
        post.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(row) = row else { return Ok(Revived::Missing) };
    let (version, round) = (row.version, row.round + 1);
    let dead = sqlx::query!(
        "select t.id, t.account_id, t.platform, t.status = 'published' as \"is_live!\",
           a.status <> 'disconnected' as \"is_connected!\"
         from targets t join accounts a on a.id = t.account_id
         where t.post_id = $1 and ($2::uuid[] is null or t.id = any($2))
           and (t.status = 'dead'
             -- Parts of it were given up because one has failed.
             or t.status = 'published' and t.error_code is not null and t.next_attempt_at is null
               and t.unpublished_at is null
               and exists (select from open_containers c where c.target_id = t.id))
         order by t.id for no key update of t",
        post.0,
        only.map(|ids| ids.iter().map(|id| id.0).collect::<Vec<_>>()) as _
    )
    .fetch_all(&mut *tx)
    .await?;
    if dead.is_empty() {
        return Ok(Revived::NoneDead);
    }
    let revived: Vec<_> = dead.into_iter().filter(|target| target.is_connected).collect();
    if revived.is_empty() {
        return Ok(Revived::Disconnected);
    }
    let ids: Vec<_> = revived.iter().map(|target| target.id).collect();
    let is_any_dead = revived.iter().any(|target| !target.is_live);
    sqlx::query!(
        "with target as (
           update targets
           set status = case status when 'published' then status else 'queued' end, attempts = 0, free_attempts = 0, token_attempts = 0, throttled_since = null,
               processing_since = null, is_continuation = false, unanswered = 0,
               -- A live target is due until its whole thread is live or given up.
               next_attempt_at = case status when 'published' then $2::timestamptz end,
               resumed_round = case status when 'published' then $7::integer end,
               missing = (select jsonb_agg(part) from jsonb_array_elements(missing) part
                 where part -> 'is_left_out' = 'true'),
               error_code = null, error_message = null, error_source = null, stop_reason = null,
               round = $7,
               -- Whoever retries a target after a deletion without a result takes its posts for live.
               unpublish_until = case when unpublish_until > clock_timestamp() then unpublish_until end,
               open_deletions = case when unpublish_until > clock_timestamp() then open_deletions else 0 end,
               -- Fences off an attempt that outlived the end.
               fence = fence + 1, updated_at = $2
           where id = any($1)
           returning id, status),
         publication as (
           -- An open intent needs its checkpoint to be looked up.
           update publications set checkpoint = 'null'
           where target_id = any($1) and platform_id is null and commit_begun_at is null),
         post as (
           update posts
           set round = $7, has_failed = has_failed or status = $8, status = case when $9 then $6 else status end,
               updated_at = $2,
               timeline_deleted_at = null
           where id = $3)
         insert into timeline (org_id, mode, post_id, target_id, at, kind, message)
         select $4, $5, $3, id, $2, 'retry', case status
           when 'published' then 'Retried: the parts that are missing'
           else 'Retried after it had failed for good' end
         from target",
        &ids,
        now,
        post.0,
        owner.org.0,
        owner.mode.as_str(),
        PostStatus::Publishing.as_str(),
        round,
        PostStatus::Failed.as_str(),
        is_any_dead
    )
    .execute(&mut *tx)
    .await?;
    for target in revived {
        let target_ref = TargetRef {
            target: target.id.into(),
            account: target.account_id.into(),
            platform: target.platform,
            due: None,
        };
        outbox::push(&mut *tx, &Message::ReviveTarget { target: target_ref, post, owner, version }).await?;
    }
    Ok(Revived::Targets(ids.into_iter().map(TargetId).collect()))
}

/// Returns up to `limit` posts with a target of an account that ended within [`RECENT`] because the account's grant
/// was lost, each with its target, the latest first. A post that the caller does not reach is not among them: its other
/// accounts are somebody else's, and so is its text.
pub async fn lost_with_grant(
    db: &PgPool,
    access: Access<'_>,
    account: AccountId,
    limit: i64,
    now: DateTime<Utc>,
) -> sqlx::Result<Vec<(PostId, TargetId)>> {
    let (owner, bound) = access.parts();
    let mut query = QueryBuilder::new(
        "select posts.id, t.id from targets t join posts on posts.id = t.post_id
         where posts.deleted_at is null and t.status = 'dead' and t.account_id = ",
    );
    query.push_bind(account.0).push(" and t.org_id = ").push_bind(owner.org.0);
    query.push(" and t.mode = ").push_bind(owner.mode.as_str());
    query.push(" and t.error_code = ").push_bind(ErrorCode::TokenExpired.to_string());
    query.push(" and t.updated_at >= ").push_bind(now - RECENT).push(" and ");
    bounds::push_posts(&mut query, bound);
    query.push(" order by t.updated_at desc, t.id limit ").push_bind(limit);
    let rows: Vec<(Uuid, Uuid)> = query.build_query_as().fetch_all(db).await?;
    Ok(rows.into_iter().map(|(post, target)| (post.into(), target.into())).collect())
}
