//! The state of publishing, one function per transition, in their order.
//!
//! `begin` starts an attempt, `intend` records the intent before the publishing call, `capture` stores the
//! platform's id as soon as it is known, `settle` finishes the target and appends its events in one
//! transaction. `begin` gives each attempt a fence; an attempt whose fence was raised since can neither
//! intend nor finish the target. Capturing needs no fence: a live post is live. The result of a call belongs
//! to the intent it was made under, identified by the time it was begun.
//!
//! Intents, processing phases and waits are timed by the database's clock, since workers' clocks differ.
//!
//! Tables: `targets`, `publications`, `freezes`, `app_holds`.

mod begin;
mod cancel;
mod edit;
pub mod freezes;
mod frozen;
mod holds;
mod left_out;
mod missing;
pub(crate) mod outcome;
mod owned;
mod replying;
mod revive;
mod settle;
pub mod sweep;
mod unpublish;
mod waits;

use crate::{
    accounts::grants::AccountGrant,
    bounds::{Access, Resource},
    decode::Parsed,
    outbox,
    posts::{Container, timeline},
};
use chrono::{DateTime, Utc};
use domain::{
    AccountId, ErrorCode, Failure, Owner, PostId, TargetId, TargetStatus, WaitReason,
    outbox::Message,
    publishing::{Publication, begin::CallTimes},
    retry::Spent,
};
use serde_json::{Value, json};
use sqlx::{PgConnection, PgExecutor, PgPool};
use std::time::Duration;

pub use begin::{BeginResult, begin};
pub(crate) use cancel::cancel;
pub use domain::publishing::{Barred, NoParent, Parent, Place, Purpose, wait::Waiting};
pub use edit::{
    BeginEdit, Changes, EDIT_LEASE, EditResult, TakenEdit, begin_edit, give_up_edit, record_edit, take_edit,
};
pub use frozen::is_frozen;
pub(crate) use holds::FORGOTTEN_AFTER;
pub use holds::{Held, held, hold, lift};
pub use left_out::{LeftOut, leave_out};
pub use missing::{Rewrite, Rewritten, mark_complete, rewrite};
pub use owned::{adopt, captured_ids};
pub(crate) use replying::{Replies, wake_replies};
pub(crate) use revive::revive_in;
pub use revive::{Revived, lost_with_grant, revive};
pub use settle::{End, Settled, settle};
pub use unpublish::{UNPUBLISH_LEASE, Withdrawn, record_unpublished, release_withdrawn, withdraw};
pub use waits::{Look, Waits, await_slot, wait};

/// A target and the version of its post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetKey {
    /// Owner of the post.
    pub owner: Owner,
    /// Post id.
    pub post: PostId,
    /// Target id.
    pub target: TargetId,
    /// Version of the post's row that the workflow was started for.
    pub version: i32,
}

/// An attempt at a target.
#[derive(Debug)]
pub struct Attempt {
    /// The target.
    pub key: TargetKey,
    /// Fence of the attempt; its writes require the row to have the same.
    pub fence: i32,
    /// Status of the target when the attempt began.
    pub status: TargetStatus,
    /// Publish attempts begun, including this one.
    pub attempts: u32,
    /// Attempts of these that cost nothing of the retry budget, since the platform throttled them.
    pub free_attempts: u32,
    /// Attempts and looks that began before this one, since the last one that had a result.
    pub unanswered: u32,
    /// False for an attempt that continues another, which doesn't use up the retry budget.
    pub is_counted: bool,
    /// Attempts of these that the platform refused because of the token.
    pub token_attempts: u32,
    /// When the platform throttled the first of the latest attempts, without another failure since.
    pub throttled_since: Option<DateTime<Utc>>,
    /// When the platform began to process the post.
    pub processing_since: Option<DateTime<Utc>>,
    /// When the attempt began, by the database's clock.
    pub begun_at: DateTime<Utc>,
    /// When the post was created.
    pub created_at: DateTime<Utc>,
    /// When the target was due for the first time.
    pub due_at: DateTime<Utc>,
    /// The post's settings for the platform, a JSON object.
    pub settings: Value,
    /// Account, with its grant.
    pub account: AccountGrant,
    /// Scopes of the grant; none if the platform names none.
    pub scopes: Vec<String>,
    /// Place where it is published.
    pub place: Place,
    /// Reason why nothing new may be published; calls already begun are still looked up.
    pub barred: Option<Barred>,
    /// Why an operator ends the target.
    pub stop_reason: Option<String>,
    /// The last failure.
    pub last_failure: Option<Failure>,
    /// The wait in the row when the attempt began, if it is not over with it.
    pub waiting: Option<Waiting>,
    /// A wait that ended in vain: nothing is left to be done but to end the target.
    pub waited_in_vain: Option<WaitReason>,
    /// URL of the published main container.
    pub url: Option<String>,
    /// True if the account is active. One that is not may still have a valid grant.
    pub is_account_active: bool,
    /// True if the posts with its app are held, and this one looks whether the platform takes it again.
    pub is_app_held: bool,
    /// Containers, in order, each with its state.
    pub entries: Vec<Entry>,
}

impl Attempt {
    /// When the target began to wait without an attempt that got further.
    pub fn waits_since(&self) -> DateTime<Utc> {
        self.waiting.map_or(self.begun_at, |waiting| waiting.since)
    }

    /// Returns how many attempts were spent of the retry budget, including this one.
    pub fn spent(&self) -> u32 {
        self.attempts.saturating_sub(self.free_attempts)
    }

    /// Returns true if nothing is left to be done but to end the target, see [`Barred::is_over`].
    pub fn is_over(&self, barred: Barred) -> bool {
        barred.is_over(self.place == Place::Nowhere, self.is_in_doubt())
    }

    /// Returns whether the result of a publishing call is unknown.
    pub fn is_in_doubt(&self) -> bool {
        self.entries.iter().any(|entry| entry.publication().is_in_doubt())
    }
}

/// A container of a target's post, with the state of its publication.
#[derive(Debug)]
pub struct Entry {
    /// Content to publish.
    pub container: Container,
    /// Checkpoint of the preparation.
    pub checkpoint: Value,
    /// The intent: when the publishing call was begun.
    pub commit_begun_at: Option<DateTime<Utc>>,
    /// When the publishing call ends at the latest.
    pub commit_deadline: Option<DateTime<Utc>>,
    /// When the first call with an unknown result was begun, if its intent was cleared since.
    pub doubted_since: Option<DateTime<Utc>>,
    /// When the publishing call returned without a definite result.
    pub commit_ended_at: Option<DateTime<Utc>>,
    /// Error code of the call with an unknown result.
    pub ambiguous_error_code: Option<ErrorCode>,
    /// True if the platform accepted the call and assigns the id later.
    pub accepted: bool,
    /// True if the row was restored from a backup, so that the checkpoint may lack later steps.
    pub is_restored: bool,
    /// The platform's own id, once the container is live.
    pub platform_id: Option<String>,
}

impl Entry {
    /// Returns the state of the publication.
    fn publication(&self) -> Publication {
        Publication { has_intent: self.commit_begun_at.is_some(), is_live: self.platform_id.is_some() }
    }

    /// Returns the times of the call that the intent was written for.
    fn call_times(&self) -> Option<CallTimes> {
        Some(CallTimes {
            begun_at: self.commit_begun_at?,
            deadline: self.commit_deadline,
            ended_at: self.commit_ended_at,
            doubted_since: self.doubted_since,
        })
    }
}

/// Stores the checkpoint of the preparation. Returns false when another attempt has begun since.
pub async fn checkpoint(
    db: &PgPool,
    target: TargetId,
    position: u16,
    fence: i32,
    checkpoint: &Value,
) -> sqlx::Result<bool> {
    let stored = sqlx::query!(
        "insert into publications (target_id, position, org_id, mode, checkpoint)
         select id, $2, org_id, mode, $4 from targets where id = $1 and fence = $3
         on conflict (target_id, position) do update set checkpoint = excluded.checkpoint",
        target.0,
        position.cast_signed(),
        fence,
        checkpoint
    )
    .execute(db)
    .await?;
    Ok(stored.rows_affected() == 1)
}

/// Records the intent: from here until the result is known the post may be live. `limit` is the time limit
/// of the call. Returns the time that identifies the intent; `None` when nothing may be published, because
/// another attempt has begun since, the account was disconnected, the post was deleted, the post that it replies to
/// is not live any more or is being deleted from its platform, or an operator ended or froze the target.
///
/// The target's row is locked, so that the next `begin` either fences this attempt off or sees its intent; so is the
/// target that it replies to, so that a deletion from the platform either is seen here or sees the intent. A freeze waits for
/// the end of the transaction.
// Model: Intend.
pub async fn intend(
    db: &PgPool,
    target: TargetId,
    position: u16,
    fence: i32,
    checkpoint: &Value,
    limit: Duration,
) -> sqlx::Result<Option<DateTime<Utc>>> {
    let mut tx = crate::begin(db).await?;
    freezes::hold_off(&mut tx).await?;
    let begun = sqlx::query_scalar!(
        r#"with parent as (
             select live.id
             from targets t join posts p on p.id = t.post_id
               join targets live on live.post_id = p.reply_to and live.account_id = t.account_id
               join posts parent on parent.id = live.post_id
             where t.id = $1 and live.status = 'published' and live.unpublished_at is null
               and coalesce(live.unpublish_until < clock_timestamp(), true) and parent.deleted_at is null
             for share of live),
           target as (
             select t.id, t.org_id, t.mode, clock_timestamp() as now
             from targets t join posts p on p.id = t.post_id join accounts a on a.id = t.account_id
             where t.id = $1 and t.fence = $3 and t.status not in ('dead', 'canceled')
               and p.deleted_at is null and a.status <> 'disconnected' and t.stop_reason is null
               and not exists (select from open_freezes(t.platform, t.account_id, t.org_id, t.mode))
               and (p.reply_to is null or $2::smallint > 0 or exists (select from parent))
             for no key update of t),
           resumed as (
             update targets set processing_since = null, wait_reason = null, wait_since = null, wait_until = null
             where id in (select id from target))
           insert into publications
             (target_id, position, org_id, mode, checkpoint, commit_begun_at, commit_deadline)
           select id, $2, org_id, mode, $4, now, now + make_interval(secs => $5) from target
           on conflict (target_id, position) do update
           set checkpoint = excluded.checkpoint, commit_begun_at = excluded.commit_begun_at,
               commit_deadline = excluded.commit_deadline, commit_ended_at = null, ambiguous_error_code = null,
               accepted = false
           where publications.platform_id is null
           returning commit_begun_at as "begun!""#,
        target.0,
        position.cast_signed(),
        fence,
        checkpoint,
        limit.as_secs_f64()
    )
    .fetch_optional(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(begun)
}

/// Clears the intent after a look-up found that its call published nothing. The time of the call is kept in
/// `doubted_since`, because platforms' reads can be stale.
// Model: ClearIntent.
pub async fn clear_intent(db: &PgPool, target: TargetId, position: u16, fence: i32) -> sqlx::Result<()> {
    clear(db, target, position, Cleared::NotFound { fence }).await
}

/// Clears the intent of a post that the platform accepted and then failed to process, as [`clear_intent`] does. Also
/// deletes the checkpoint and ends the polling window, so that the next attempt counts and prepares the post again.
// Model: Discard.
pub async fn discard(db: &PgPool, target: TargetId, position: u16, fence: i32) -> sqlx::Result<()> {
    let mut tx = crate::begin(db).await?;
    let held = sqlx::query!(
        "update targets set processing_since = null, is_continuation = false where id = $1 and fence = $2",
        target.0,
        fence
    )
    .execute(&mut *tx)
    .await?;
    if held.rows_affected() == 0 {
        return Ok(());
    }
    clear(&mut *tx, target, position, Cleared::NotProcessed { fence }).await?;
    tx.commit().await
}

/// Clears the intent `begun`, whose call returned without publishing anything.
// Model: VoidIntent.
pub async fn void_intent(
    db: &PgPool,
    target: TargetId,
    position: u16,
    begun: DateTime<Utc>,
) -> sqlx::Result<()> {
    clear(db, target, position, Cleared::Refused { begun }).await
}

/// Reason for which an intent is cleared: nothing was published under it.
#[derive(Clone, Copy)]
enum Cleared {
    /// The attempt with this fence looked the call up and did not find its post.
    NotFound {
        /// Fence of the attempt.
        fence: i32,
    },
    /// The attempt with this fence found that the platform failed to process the post.
    NotProcessed {
        /// Fence of the attempt.
        fence: i32,
    },
    /// The call returned without publishing anything.
    Refused {
        /// Time of the intent.
        begun: DateTime<Utc>,
    },
}

/// Clears the intent of a container that is not live. Does nothing if another attempt or another intent has begun since.
async fn clear(db: impl PgExecutor<'_>, target: TargetId, position: u16, why: Cleared) -> sqlx::Result<()> {
    let (fence, begun, is_prepared) = match why {
        Cleared::NotFound { fence } => (Some(fence), None, true),
        Cleared::NotProcessed { fence } => (Some(fence), None, false),
        Cleared::Refused { begun } => (None, Some(begun), true),
    };
    sqlx::query!(
        "update publications
         set commit_begun_at = null, commit_deadline = null, commit_ended_at = null, ambiguous_error_code = null,
             accepted = false,
             -- A look-up can miss what is live; the answer of a call can't.
             doubted_since = case when $3::integer is null then doubted_since
               else coalesce(doubted_since, commit_begun_at) end,
             is_restored = is_restored and $3::integer is null,
             checkpoint = case when $5 then checkpoint else 'null' end
         where target_id = $1 and position = $2 and platform_id is null
           and ($3::integer is null or $3 = (select fence from targets where id = $1))
           and ($4::timestamptz is null or commit_begun_at = $4)",
        target.0,
        position.cast_signed(),
        fence,
        begun,
        is_prepared
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Records that the call of the intent `begun` returned without a definite result.
// Model: RecordAmbiguous.
pub async fn record_ambiguous(
    db: &PgPool,
    target: TargetId,
    position: u16,
    begun: DateTime<Utc>,
    code: ErrorCode,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update publications set commit_ended_at = clock_timestamp(), ambiguous_error_code = $4
         where target_id = $1 and position = $2 and commit_begun_at = $3",
        target.0,
        position.cast_signed(),
        begun,
        code.to_string()
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Records that the platform accepted the call of the intent `begun` and assigns the id later; `checkpoint`
/// contains what it returned instead. Returns false when the row has another intent.
// Model: Accept.
pub async fn accept(
    db: &PgPool,
    target: TargetId,
    position: u16,
    begun: DateTime<Utc>,
    checkpoint: &Value,
) -> sqlx::Result<bool> {
    let stored = sqlx::query!(
        "update publications set accepted = true, checkpoint = $4, commit_ended_at = clock_timestamp()
         where target_id = $1 and position = $2 and commit_begun_at = $3",
        target.0,
        position.cast_signed(),
        begun,
        checkpoint
    )
    .execute(db)
    .await?;
    Ok(stored.rows_affected() == 1)
}

/// The result of capturing an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// The stored id.
    pub platform_id: String,
    /// True if another target of the account has the same id.
    pub is_shared: bool,
}

/// Stores the platform's id of the live container; an id stored before stays. A different second id means a
/// second post; an id that another target of the account has means that the platform returned one post to
/// both. Both cases are recorded on the timeline.
///
/// # Errors
///
/// [`sqlx::Error::RowNotFound`] when nothing was ever begun for the container.
// Model: Capture.
pub async fn capture(
    db: &PgPool,
    key: TargetKey,
    position: u16,
    platform_id: &str,
) -> sqlx::Result<Captured> {
    sqlx::query_as!(
        Captured,
        r#"with captured as (
             update publications p
             set platform_id = coalesce(p.platform_id, $3),
                 account_id = case
                   when p.platform_id is null and not exists (
                     select from publications o where o.account_id = t.account_id and o.platform_id = $3)
                   then t.account_id
                   else p.account_id
                 end,
                 published_at = coalesce(p.published_at, clock_timestamp()),
                 commit_ended_at = coalesce(p.commit_ended_at, clock_timestamp())
             from targets t
             where t.id = $1 and p.target_id = $1 and p.position = $2
             returning p.platform_id, p.account_id),
           target as (
             update targets
             set platform_post_id = case $2::smallint when 0 then coalesce(platform_post_id, $3) else platform_post_id end,
                 processing_since = null,
                 -- It may be found after it was given up.
                 missing = (select jsonb_agg(part order by part -> 'position') from jsonb_array_elements(missing) part
                   where (part ->> 'position')::smallint <> $2)
             where id = $1 and status not in ('dead', 'canceled')),
           logged as (
             insert into timeline (org_id, mode, post_id, target_id, at, kind, message, detail)
             select $4, $5, $6, $1, clock_timestamp(), 'duplicate',
               'A second post was found on the platform: ' || $3 || ' beside ' || platform_id,
               jsonb_build_object('platform_post_id', $3, 'position', $2::smallint)
             from captured where platform_id <> $3),
           shared as (
             insert into timeline (org_id, mode, post_id, target_id, at, kind, message, detail)
             select $4, $5, $6, $1, clock_timestamp(), 'shared',
               'The platform returned the id of another post of the account: ' || $3,
               jsonb_build_object('platform_post_id', $3, 'position', $2::smallint)
             from captured where platform_id = $3 and account_id is null)
           select platform_id as "platform_id!", account_id is null as "is_shared!" from captured"#,
        key.target.0,
        position.cast_signed(),
        platform_id,
        key.owner.org.0,
        key.owner.mode.as_str(),
        key.post.0
    )
    .fetch_one(db)
    .await
}

/// Records that the platform has been processing the post since `since`; the next attempt is due after
/// `pause` and continues this one. Without a `pause` the wait is over: the attempt of a live target, whose reply
/// was processed, is due at once, and none is scheduled for another. Does nothing when another attempt has begun
/// since, or an earlier one has published everything meanwhile.
// Model: RecordProcessing.
pub async fn record_processing(
    db: &PgPool,
    target: TargetId,
    fence: i32,
    since: Option<DateTime<Utc>>,
    pause: Option<Duration>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update targets
         set processing_since = $3, is_continuation = true, unanswered = 0,
             -- The sweeper finds a live target by the time of its next attempt.
             next_attempt_at = coalesce(clock_timestamp() + make_interval(secs => $4),
               case when status = 'published' then clock_timestamp() end)
         where id = $1 and fence = $2
           and (status <> 'published' or platform_post_url is null or exists (
             select from open_containers c where c.target_id = targets.id))",
        target.0,
        fence,
        since,
        pause.map(|pause| pause.as_secs_f64()) as _
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Records a failed attempt, to be retried after `wait`. Returns when that is, by the database's clock;
/// `None` when another attempt has begun since, or an earlier one has published everything meanwhile.
///
/// A target whose main container is live stays published: only the rest of its thread is missing.
// Model: RecordFailure.
pub async fn record_failure(
    db: &PgPool,
    attempt: &Attempt,
    failure: &Failure,
    wait: Duration,
) -> sqlx::Result<Option<DateTime<Utc>>> {
    let refused = failure.code == ErrorCode::TokenExpired;
    let throttled = failure.code == ErrorCode::RateLimited;
    let failed = sqlx::query_scalar!(
        r#"with part as (
             -- What is missing of a live target, as domain::Part names it.
             select format('part %s of %s: ', 1 + min(c.position),
               (select count(*) from target_containers where target_id = $1)) as name
             from targets t join open_containers c on c.target_id = t.id
             where t.id = $1 and t.status = 'published'
             having count(*) > 0),
           failed as (
             update targets
             set status = case status when 'published' then status else 'failed' end,
                 error_code = $3, error_message = coalesce((select name from part), '') || $4, error_source = $5,
                 is_continuation = false, unanswered = 0,
                 -- A retry may have been requested while this attempt was under way.
                 next_attempt_at = coalesce(case when status <> 'published' then next_attempt_at end,
                   clock_timestamp() + make_interval(secs => $6)),
                 token_attempts = token_attempts + $7,
                 throttled_since = case
                   when $8 then coalesce(throttled_since, clock_timestamp())
                   -- The refresh that follows may be what is throttled.
                   when $7 > 0 then throttled_since end,
                 wait_reason = null, wait_since = null, wait_until = null, look_at = null,
                 updated_at = clock_timestamp()
             where id = $1 and fence = $2 and status not in ('dead', 'canceled')
               and (status <> 'published' or platform_post_url is null or exists (
                 select from open_containers c where c.target_id = targets.id))
             returning id, post_id, org_id, mode, updated_at, next_attempt_at, error_message),
           logged as (
             insert into timeline (org_id, mode, post_id, target_id, at, kind, message, detail)
             select org_id, mode, post_id, id, updated_at, 'failure', $3 || ': ' || error_message,
               jsonb_build_object('error_code', $3, 'next_attempt_at', json_time(next_attempt_at))
             from failed)
           select next_attempt_at as "next!" from failed"#,
        attempt.key.target.0,
        attempt.fence,
        failure.code.to_string(),
        failure.message,
        failure.code.source().as_str(),
        wait.as_secs_f64(),
        i32::from(refused),
        throttled
    )
    .fetch_optional(db)
    .await?;
    Ok(failed)
}

/// Lets an account rest until a time: its platform throttles it, so no attempt of another of its targets begins
/// before. Does nothing if it rests longer.
// Model: RestAccount.
pub async fn rest_account(
    db: &PgPool,
    owner: Owner,
    account: AccountId,
    until: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update accounts set rests_until = $4
         where id = $1 and org_id = $2 and mode = $3 and coalesce(rests_until < $4, true)",
        account.0,
        owner.org.0,
        owner.mode.as_str(),
        until
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Schedules the look-up of a live target's URL after `wait`, or gives up on it.
pub async fn schedule_url_lookup(db: &PgPool, attempt: &Attempt, wait: Option<Duration>) -> sqlx::Result<()> {
    sqlx::query!(
        "update targets
         set next_attempt_at = clock_timestamp() + make_interval(secs => $3), is_continuation = false, unanswered = 0
         where id = $1 and fence = $2 and status = 'published'",
        attempt.key.target.0,
        attempt.fence,
        wait.map(|wait| wait.as_secs_f64()) as _
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Stores the URL of a live target that was unknown when the target was settled.
pub async fn store_url(db: &PgPool, key: TargetKey, url: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "update targets set platform_post_url = coalesce(platform_post_url, $2), next_attempt_at = null,
           updated_at = clock_timestamp()
         where id = $1 and status = 'published'",
        key.target.0,
        url
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Makes the next attempt of a target due now that has failed, waits until its account has rested, or is live without
/// its whole thread, and notifies its workflow; the account rests no longer. Returns false for any other target.
// Model: RetryNow.
pub async fn retry_now(
    db: &PgPool,
    access: Access<'_>,
    post: PostId,
    target: TargetId,
    request_id: Option<&str>,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let Some(owner) = access.reach(db, Resource::Post, post.0).await? else { return Ok(false) };
    end_rests(db, owner, post, Some(&[target]), false).await?;
    let mut tx = crate::begin(db).await?;
    let is_retried = retry_now_in(&mut tx, owner, post, target, request_id, now).await?;
    if is_retried {
        tx.commit().await?;
    }
    Ok(is_retried)
}

/// Ends the rests of the accounts of a post's targets that can be retried, or of those of them in `only`: of dead ones,
/// or of those whose next attempt can be brought forward. If a platform refuses their app, one of them looks whether it
/// still does. A transaction of its own: an account is locked before its targets.
pub(crate) async fn end_rests(
    db: &PgPool,
    owner: Owner,
    post: PostId,
    only: Option<&[TargetId]>,
    are_dead: bool,
) -> sqlx::Result<()> {
    sqlx::query!(
        "with retried as (
           select t.account_id from targets t join posts p on p.id = t.post_id
           where t.post_id = $1 and t.org_id = $2 and t.mode = $3 and p.deleted_at is null
             and ($4::uuid[] is null or t.id = any($4))
             and case when $5 then t.status = 'dead'
                 or t.status = 'published' and t.error_code is not null and t.next_attempt_at is null
               else t.status = 'failed' or t.status = 'queued' and t.error_code is not null
                 or t.status = 'published' and t.next_attempt_at is not null end),
           looked as (
             update app_holds set until = clock_timestamp()
             where until > clock_timestamp() and app in (
               select app_of(a.platform, a.mode, a.org_id, a.social_network_id) from accounts a
               where a.id in (select account_id from retried)))
         update accounts set rests_until = null
         where rests_until is not null and id in (select account_id from retried)",
        post.0,
        owner.org.0,
        owner.mode.as_str(),
        only.map(|ids| ids.iter().map(|id| id.0).collect::<Vec<_>>()) as _,
        are_dead
    )
    .execute(db)
    .await?;
    Ok(())
}

/// [`retry_now`] in a transaction, without ending the account's rest.
pub(crate) async fn retry_now_in(
    tx: &mut PgConnection,
    owner: Owner,
    post: PostId,
    target: TargetId,
    request_id: Option<&str>,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let retried = sqlx::query!(
        "update targets set next_attempt_at = $5, look_at = null, updated_at = $5
         where id = $1 and post_id = $2 and org_id = $3 and mode = $4
           and (status = 'failed' or status = 'queued' and error_code is not null
                or status = 'published' and next_attempt_at is not null)",
        target.0,
        post.0,
        owner.org.0,
        owner.mode.as_str(),
        now
    )
    .execute(&mut *tx)
    .await?;
    if retried.rows_affected() == 0 {
        return Ok(false);
    }
    let entry = timeline::Entry {
        at: now,
        kind: "retry".to_owned(),
        message: "The next attempt is brought forward to now".to_owned(),
        target_id: Some(target),
        detail: timeline::caused_by(request_id, json!({})),
    };
    timeline::append(&mut *tx, owner, post, entry).await?;
    outbox::push(&mut *tx, &Message::RetryTarget { target, post, owner }).await?;
    Ok(true)
}

/// Refunds attempts that are not to count: a refused token that was not the grant's fault. With a fence, only that
/// attempt refunds; `None` is for a target without an attempt.
pub async fn refund_attempts(
    db: &PgPool,
    target: TargetId,
    fence: Option<i32>,
    spent: Spent,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update targets
         set attempts = greatest(attempts - $2, 0), token_attempts = greatest(token_attempts - $3, 0)
         where id = $1 and fence = coalesce($4, fence)",
        target.0,
        i32::try_from(spent.attempts).unwrap_or(i32::MAX),
        i32::try_from(spent.token_attempts).unwrap_or(i32::MAX),
        fence
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Lets an attempt cost nothing of the retry budget, although it was made.
// Model: FreeAttempt.
pub async fn free_attempt(db: &PgPool, attempt: &Attempt) -> sqlx::Result<()> {
    if attempt.is_counted {
        sqlx::query!(
            "update targets set free_attempts = free_attempts + 1 where id = $1 and fence = $2",
            attempt.key.target.0,
            attempt.fence
        )
        .execute(db)
        .await?;
    }
    Ok(())
}

/// Lets an attempt whose refresh was throttled cost nothing of the retry budget, for `limit` from the first such
/// attempt. Returns how many attempts cost nothing so far; `None` after the limit.
pub async fn free_throttled_refresh(
    db: &PgPool,
    key: TargetKey,
    limit: Duration,
) -> sqlx::Result<Option<u32>> {
    let freed = sqlx::query_scalar!(
        "update targets
         set free_attempts = free_attempts + 1, throttled_since = coalesce(throttled_since, clock_timestamp())
         where id = $1 and org_id = $2 and mode = $3 and free_attempts < attempts
           and coalesce(throttled_since + make_interval(secs => $4) > clock_timestamp(), true)
         returning free_attempts",
        key.target.0,
        key.owner.org.0,
        key.owner.mode.as_str(),
        limit.as_secs_f64()
    )
    .fetch_optional(db)
    .await?;
    Ok(freed.map(i32::unsigned_abs))
}

/// Records that a look-up had a result, though the result of the call is not known yet.
pub async fn note_answer(db: &PgPool, target: TargetId, fence: i32) -> sqlx::Result<()> {
    sqlx::query!("update targets set unanswered = 0 where id = $1 and fence = $2", target.0, fence)
        .execute(db)
        .await?;
    Ok(())
}

/// State of a target that no attempt holds, for settling it.
#[derive(Debug)]
pub struct TargetState {
    /// Target status.
    pub status: TargetStatus,
    /// Attempts spent of the retry budget.
    pub spent: u32,
    /// Code of the last failure.
    pub error_code: Option<ErrorCode>,
    /// Message of the last failure.
    pub error_message: Option<String>,
    /// True if the result of a publishing call is unknown.
    pub in_doubt: bool,
}

/// Returns the error code that a column has. One that a later version wrote, before a rollback, counts as none: an attempt
/// begins as if none had failed, and an end that an operator makes of it is a `network_error`.
fn known_code(code: Option<&str>) -> Option<ErrorCode> {
    code?.parse().ok()
}

/// Returns the state of a target.
pub async fn target_state(db: &PgPool, key: TargetKey) -> sqlx::Result<Option<TargetState>> {
    let row = sqlx::query!(
        r#"select t.status as "status: Parsed<TargetStatus>", t.attempts - t.free_attempts as "spent!",
             t.error_code, t.error_message,
             exists (select from open_intents i where i.target_id = t.id) as "in_doubt!"
           from targets t where t.id = $1 and t.org_id = $2 and t.mode = $3"#,
        key.target.0,
        key.owner.org.0,
        key.owner.mode.as_str()
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| TargetState {
        status: row.status.0,
        spent: row.spent.unsigned_abs(),
        error_code: known_code(row.error_code.as_deref()),
        error_message: row.error_message,
        in_doubt: row.in_doubt,
    }))
}

/// Locks a target with its post, in the order of an attempt.
async fn lock_post(tx: &mut PgConnection, key: TargetKey) -> sqlx::Result<()> {
    sqlx::query!(
        "select p.id from posts p join targets t on t.post_id = p.id where p.id = $1 and t.id = $2
         for no key update",
        key.post.0,
        key.target.0
    )
    .fetch_optional(&mut *tx)
    .await?;
    Ok(())
}

/// Appends an entry to a target's timeline.
pub async fn note(
    db: impl PgExecutor<'_>,
    key: TargetKey,
    kind: &str,
    message: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let entry = timeline::Entry {
        at: now,
        kind: kind.to_owned(),
        message: message.to_owned(),
        target_id: Some(key.target),
        detail: json!({}),
    };
    timeline::append(db, key.owner, key.post, entry).await
}
