//! The facts of publishing, in the order in which they become true.
//!
//! `begin` takes a target up, `intend` marks the dangerous moment before the call that publishes,
//! `capture` keeps the platform's id the moment it is known, `settle` ends the target and writes its
//! events, in one transaction. Each attempt holds the fence it was given by `begin`; one that lost its
//! turn finds another number in the row and can neither intend nor end the target. Capturing needs no
//! fence: what is live is live. The outcome of a call belongs to the intent it was made under, which
//! its time of begin identifies.
//!
//! Intents, processing phases and waits are measured by the database's clock: workers' clocks differ.

mod left_out;
mod owned;

use crate::{
    events::{self, NewEvent},
    grants::{AccountGrant, account_grant},
    outbox,
    posts::{Attachment, Container},
};
use chrono::{DateTime, Utc};
use domain::{
    ErrorCode, ErrorSource, Failure, Owner, PostId, PostStatus, TargetId, TargetStatus,
    event::{self, EventAccount, EventName, Outcome},
    outbox::Message,
    post::roll_up,
    retry::Spent,
};
use serde_json::{Value, json};
use sqlx::{PgConnection, PgExecutor, PgPool, types::Json};
use std::time::Duration;

pub use left_out::leave_out;
pub use owned::{adopt, captured_ids};

/// How much too early an attempt may come: timers of Temporal and the database's clock differ.
const TOLERANCE: Duration = Duration::from_secs(1);

/// Which target, of which version of its post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetKey {
    /// Whose it is.
    pub owner: Owner,
    /// The post.
    pub post: PostId,
    /// The target.
    pub target: TargetId,
    /// The version of the post's row that the work was started for.
    pub version: i32,
}

/// What taking a target up came to.
#[derive(Debug)]
pub enum BeginResult {
    /// An attempt, with all it needs.
    Attempt(Box<Attempt>),
    /// The post was edited first; other work is on its way.
    Stale,
    /// The row names a later time for the next attempt.
    Early(Duration),
    /// There is nothing left to do.
    Ended(TargetStatus),
}

/// Why nothing new may be published for a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barred {
    /// The account was disconnected.
    Disconnected,
    /// The post was deleted.
    Deleted,
}

/// Purpose of taking a target up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To publish; counted as an attempt unless it continues one.
    Publish,
    /// To look at what an earlier attempt left behind; never counted.
    Look,
}

/// A target that has been taken up.
#[derive(Debug)]
pub struct Attempt {
    /// Which target.
    pub key: TargetKey,
    /// What this attempt must find in the row to go on.
    pub fence: i32,
    /// The state the target was found in.
    pub status: TargetStatus,
    /// Publish attempts begun, this one included.
    pub attempts: u32,
    /// False for an attempt that continues another: it costs no budget.
    pub is_counted: bool,
    /// Of these, how many the platform refused for the token.
    pub token_attempts: u32,
    /// Since when the platform has been processing.
    pub processing_since: Option<DateTime<Utc>>,
    /// When the attempt began, by the database's clock.
    pub begun_at: DateTime<Utc>,
    /// When the post was created.
    pub created_at: DateTime<Utc>,
    /// The platform's own `config` block.
    pub settings: Value,
    /// The account.
    pub account: AccountGrant,
    /// Why nothing new may be published; what was begun is looked up all the same.
    pub barred: Option<Barred>,
    /// The public address of the main container, once it is known.
    pub url: Option<String>,
    /// True for an active account. Another one may still have a good grant.
    pub is_account_active: bool,
    /// The containers, in order, each with its outcome so far.
    pub entries: Vec<Entry>,
}

impl Attempt {
    /// Whether a call that publishes may have gone through unheard.
    pub fn is_in_doubt(&self) -> bool {
        self.entries.iter().any(|entry| entry.commit_begun_at.is_some() && entry.platform_id.is_none())
    }
}

/// One container of a target's post, and what became of it there.
#[derive(Debug)]
pub struct Entry {
    /// Container.
    pub container: Container,
    /// How far preparing has come.
    pub checkpoint: Value,
    /// The intent: when the call that publishes was begun.
    pub commit_begun_at: Option<DateTime<Utc>>,
    /// Until when that call may be on its way.
    pub commit_deadline: Option<DateTime<Utc>>,
    /// When the first call was begun that stayed without an answer, if an earlier one did.
    pub doubted_since: Option<DateTime<Utc>>,
    /// When it came back without an outcome.
    pub commit_ended_at: Option<DateTime<Utc>>,
    /// The code that raised the doubt.
    pub ambiguous_error_code: Option<ErrorCode>,
    /// The platform accepted it and gives the id later.
    pub accepted: bool,
    /// The platform's id, once live.
    pub platform_id: Option<String>,
}

/// Takes a target up.
///
/// The post's row is locked: an edit, a deletion and the first attempt contend for it, and whoever
/// comes first wins. Continuing after the platform was processing costs no attempt. An attempt that
/// comes before the time that the row names is sent back, so that a workflow may be started again at
/// any moment.
pub async fn begin(db: &PgPool, key: TargetKey, purpose: Purpose) -> sqlx::Result<BeginResult> {
    let mut tx = db.begin().await?;
    let row = sqlx::query!(
        r#"select p.status as post_status, p.version, p.created_at, p.deleted_at,
             p.default_config -> t.platform as settings,
             t.status, t.processing_since, t.is_continuation, t.attempts, t.token_attempts, t.next_attempt_at,
             t.platform_post_url,
             a.id as account_id, a.platform, a.network_unique_id, a.username, a.account_type, a.social_network_id,
             a.grant_sealed, a.grant_version, a.status as account_status
           from posts p join targets t on t.post_id = p.id join accounts a on a.id = t.account_id
           where p.id = $1 and t.id = $2 and p.org_id = $3 and p.mode = $4
           for no key update of p, t"#,
        key.post.0,
        key.target.0,
        key.owner.org.0,
        key.owner.mode.as_str()
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(row) = row else {
        // An edit that dropped the account took the target's row along. A post that is not there at all
        // was lost with its database: there is nothing to wait for.
        let is_known = sqlx::query_scalar!(
            r#"select exists (select from posts where id = $1 and org_id = $2 and mode = $3) as "is_known!""#,
            key.post.0,
            key.owner.org.0,
            key.owner.mode.as_str()
        )
        .fetch_one(&mut *tx)
        .await?;
        return Ok(if is_known { BeginResult::Stale } else { BeginResult::Ended(TargetStatus::Canceled) });
    };
    let status: TargetStatus = word(&row.status)?;
    let post_status: PostStatus = word(&row.post_status)?;
    if matches!(status, TargetStatus::Dead | TargetStatus::Canceled) {
        return Ok(BeginResult::Ended(status));
    }
    if post_status.is_editable() && row.version != key.version {
        return Ok(BeginResult::Stale);
    }
    let entries = sqlx::query!(
        r#"select c.id, c.position, c.content, c.media as "media: Json<Vec<Attachment>>", p.checkpoint as "checkpoint?",
             p.commit_begun_at as "commit_begun_at?", p.commit_deadline as "commit_deadline?",
             p.doubted_since as "doubted_since?", p.commit_ended_at as "commit_ended_at?",
             p.ambiguous_error_code as "ambiguous_error_code?", p.accepted as "accepted?", p.platform_id as "platform_id?"
           from containers c left join publications p on p.target_id = $2 and p.position = c.position
           where c.post_id = $1 order by c.position"#,
        key.post.0,
        key.target.0
    )
    .fetch_all(&mut *tx)
    .await?;
    let entries: Vec<_> = entries
        .into_iter()
        .map(|row| {
            Ok(Entry {
                container: Container {
                    id: row.id.into(),
                    position: u16::try_from(row.position).map_err(decode)?,
                    content: row.content,
                    media: row.media.0,
                },
                checkpoint: row.checkpoint.unwrap_or(Value::Null),
                commit_begun_at: row.commit_begun_at,
                commit_deadline: row.commit_deadline,
                doubted_since: row.doubted_since,
                commit_ended_at: row.commit_ended_at,
                ambiguous_error_code: row.ambiguous_error_code.as_deref().map(word).transpose()?,
                accepted: row.accepted.unwrap_or(false),
                platform_id: row.platform_id,
            })
        })
        .collect::<sqlx::Result<_>>()?;
    let is_live =
        status == TargetStatus::Published && entries.iter().all(|entry| entry.platform_id.is_some());
    // A live target that only lacks its address is taken up again only when that is due.
    if is_live && (row.platform_post_url.is_some() || row.next_attempt_at.is_none()) {
        return Ok(BeginResult::Ended(status));
    }
    let begun_at = clock(&mut tx).await?;
    let rest = row.next_attempt_at.and_then(|next| (next - begun_at).to_std().ok()).unwrap_or_default();
    if purpose == Purpose::Publish && rest > TOLERANCE {
        return Ok(BeginResult::Early(rest));
    }
    // Only what was begun is looked up then, and nothing new is published.
    let barred = match row.account_status.as_str() {
        "disconnected" => Some(Barred::Disconnected),
        _ => row.deleted_at.map(|_| Barred::Deleted),
    };
    let has_begun = entries.iter().any(|entry| entry.commit_begun_at.is_some());
    let mut account = account_grant!(row, row.account_id.into());
    if barred == Some(Barred::Disconnected) && !has_begun {
        account.grant_sealed = None;
    }
    let begins = post_status.is_editable();
    let is_counted = purpose == Purpose::Publish && !row.is_continuation;
    let taken = sqlx::query!(
        r#"with post as (
             update posts set status = 'publishing', updated_at = $2 where id = $3 and $4),
           entry as (
             insert into timeline (org_id, mode, post_id, target_id, at, kind, message)
             select $5, $6, $3, $1, $2, 'attempt', 'Attempt ' || $7::int || ' begins' where $8)
           update targets
           set status = case status when 'pending' then 'queued' else status end,
               attempts = $7, fence = fence + 1, next_attempt_at = null, updated_at = $2
           where id = $1
           returning fence"#,
        key.target.0,
        begun_at,
        key.post.0,
        begins,
        key.owner.org.0,
        key.owner.mode.as_str(),
        row.attempts + i32::from(is_counted),
        is_counted
    )
    .fetch_one(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(BeginResult::Attempt(Box::new(Attempt {
        key,
        fence: taken.fence,
        status,
        attempts: count(row.attempts + i32::from(is_counted)),
        is_counted,
        token_attempts: count(row.token_attempts),
        processing_since: row.processing_since,
        begun_at,
        created_at: row.created_at,
        settings: row.settings.filter(|settings| !settings.is_null()).unwrap_or_else(|| json!({})),
        account,
        is_account_active: row.account_status == "active",
        barred,
        url: row.platform_post_url,
        entries,
    })))
}

/// The database's clock, now.
async fn clock(tx: &mut PgConnection) -> sqlx::Result<DateTime<Utc>> {
    sqlx::query_scalar!(r#"select clock_timestamp() as "now!""#).fetch_one(tx).await
}

/// Keeps how far preparing has come. False when the attempt has lost its turn.
pub async fn checkpoint(
    db: &PgPool,
    target: TargetId,
    position: u16,
    fence: i32,
    checkpoint: &Value,
) -> sqlx::Result<bool> {
    let kept = sqlx::query!(
        "insert into publications (target_id, position, org_id, mode, checkpoint)
         select id, $2, org_id, mode, $4 from targets where id = $1 and fence = $3
         on conflict (target_id, position) do update set checkpoint = excluded.checkpoint",
        target.0,
        small(position),
        fence,
        checkpoint
    )
    .execute(db)
    .await?;
    Ok(kept.rows_affected() == 1)
}

/// Writes the intent: from here until the outcome is known the post may be live. `limit` is how long the
/// call may take. Gives the time that identifies the intent; `None` when the attempt has lost its turn,
/// the account was disconnected or the post was deleted, so that nothing may be published.
///
/// The target's row is locked meanwhile, so that the next `begin` either fences this attempt off or
/// sees its intent.
pub async fn intend(
    db: &PgPool,
    target: TargetId,
    position: u16,
    fence: i32,
    checkpoint: &Value,
    limit: Duration,
) -> sqlx::Result<Option<DateTime<Utc>>> {
    sqlx::query_scalar!(
        r#"with target as (
             select t.id, t.org_id, t.mode, clock_timestamp() as now
             from targets t join posts p on p.id = t.post_id join accounts a on a.id = t.account_id
             where t.id = $1 and t.fence = $3 and t.status not in ('dead', 'canceled')
               and p.deleted_at is null and a.status <> 'disconnected'
             for no key update of t),
           resumed as (
             update targets set processing_since = null where id in (select id from target))
           insert into publications (target_id, position, org_id, mode, checkpoint, commit_begun_at, commit_deadline)
           select id, $2, org_id, mode, $4, now, now + make_interval(secs => $5) from target
           on conflict (target_id, position) do update
           set checkpoint = excluded.checkpoint, commit_begun_at = excluded.commit_begun_at,
               commit_deadline = excluded.commit_deadline, commit_ended_at = null, ambiguous_error_code = null,
               accepted = false
           where publications.platform_id is null
           returning commit_begun_at as "begun!""#,
        target.0,
        small(position),
        fence,
        checkpoint,
        limit.as_secs_f64()
    )
    .fetch_optional(db)
    .await
}

/// A look-up found that the call of an intent published nothing: the intent is void. When the call was
/// begun is kept, since a platform's reads have been wrong before.
pub async fn clear_intent(db: &PgPool, target: TargetId, position: u16, fence: i32) -> sqlx::Result<()> {
    sqlx::query!(
        "update publications p
         set doubted_since = coalesce(p.doubted_since, p.commit_begun_at), commit_begun_at = null,
             commit_deadline = null, commit_ended_at = null, ambiguous_error_code = null, accepted = false
         from targets t
         where p.target_id = $1 and p.position = $2 and t.id = $1 and t.fence = $3 and p.platform_id is null",
        target.0,
        small(position),
        fence
    )
    .execute(db)
    .await?;
    Ok(())
}

/// The call of the intent `begun` came back and published nothing: the intent is void.
pub async fn void_intent(
    db: &PgPool,
    target: TargetId,
    position: u16,
    begun: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update publications
         set commit_begun_at = null, commit_deadline = null, commit_ended_at = null, ambiguous_error_code = null,
             accepted = false
         where target_id = $1 and position = $2 and commit_begun_at = $3 and platform_id is null",
        target.0,
        small(position),
        begun
    )
    .execute(db)
    .await?;
    Ok(())
}

/// The call of the intent `begun` came back without an outcome.
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
        small(position),
        begun,
        code.to_string()
    )
    .execute(db)
    .await?;
    Ok(())
}

/// The platform accepted the call of the intent `begun` and gives the id later; `checkpoint` holds what
/// it gave instead. False when the row holds another intent by now.
pub async fn accept(
    db: &PgPool,
    target: TargetId,
    position: u16,
    begun: DateTime<Utc>,
    checkpoint: &Value,
) -> sqlx::Result<bool> {
    let kept = sqlx::query!(
        "update publications set accepted = true, checkpoint = $4, commit_ended_at = clock_timestamp()
         where target_id = $1 and position = $2 and commit_begun_at = $3",
        target.0,
        small(position),
        begun,
        checkpoint
    )
    .execute(db)
    .await?;
    Ok(kept.rows_affected() == 1)
}

/// The result of capturing an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// The id that is kept.
    pub platform_id: String,
    /// True when another target of the account has it as well.
    pub is_shared: bool,
}

/// Keeps the platform's id of what is live now; the first one kept stays. A second id stands for a second
/// post; an id that another target of the account has stands for one post that was told to both. Neither is
/// lost: they are shown on the timeline.
///
/// # Errors
///
/// [`sqlx::Error::RowNotFound`] when nothing was ever begun for the container.
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
                 processing_since = null
             where id = $1 and status not in ('dead', 'canceled')),
           told as (
             insert into timeline (org_id, mode, post_id, target_id, at, kind, message, detail)
             select $4, $5, $6, $1, clock_timestamp(), 'duplicate',
               'A second post was found on the platform: ' || $3 || ' beside ' || platform_id,
               jsonb_build_object('platform_post_id', $3, 'position', $2::smallint)
             from captured where platform_id <> $3),
           shared as (
             insert into timeline (org_id, mode, post_id, target_id, at, kind, message, detail)
             select $4, $5, $6, $1, clock_timestamp(), 'shared',
               'The platform told the id of another post of the account: ' || $3,
               jsonb_build_object('platform_post_id', $3, 'position', $2::smallint)
             from captured where platform_id = $3 and account_id is null)
           select platform_id as "platform_id!", account_id is null as "is_shared!" from captured"#,
        key.target.0,
        small(position),
        platform_id,
        key.owner.org.0,
        key.owner.mode.as_str(),
        key.post.0
    )
    .fetch_one(db)
    .await
}

/// Notes that the platform has been processing since `since` and is looked at again after `pause`; the
/// next attempt continues this one. `None` when there is nothing to wait for any more.
pub async fn record_processing(
    db: &PgPool,
    target: TargetId,
    fence: i32,
    since: Option<DateTime<Utc>>,
    pause: Option<Duration>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update targets
         set processing_since = $3, is_continuation = true,
             next_attempt_at = clock_timestamp() + make_interval(secs => $4)
         where id = $1 and fence = $2",
        target.0,
        fence,
        since,
        pause.map(|pause| pause.as_secs_f64()) as _
    )
    .execute(db)
    .await?;
    Ok(())
}

/// The attempt failed and is going to be repeated after `wait`. Gives when that is, by the database's
/// clock; `None` when the attempt has lost its turn.
///
/// A target whose main container is live stays published: only what follows it is missing.
pub async fn record_failure(
    db: &PgPool,
    attempt: &Attempt,
    failure: &Failure,
    wait: Duration,
) -> sqlx::Result<Option<DateTime<Utc>>> {
    let refused = failure.code == ErrorCode::TokenExpired;
    let failed = sqlx::query_scalar!(
        r#"with failed as (
             update targets
             set status = case status when 'published' then status else 'failed' end,
                 error_code = $3, error_message = $4, error_source = $5, is_continuation = false,
                 -- Somebody may have asked for the next attempt while this one was under way.
                 next_attempt_at = coalesce(next_attempt_at, clock_timestamp() + make_interval(secs => $6)),
                 token_attempts = token_attempts + $7, updated_at = clock_timestamp()
             where id = $1 and fence = $2 and status not in ('dead', 'canceled')
             returning id, post_id, org_id, mode, updated_at, next_attempt_at),
           told as (
             insert into timeline (org_id, mode, post_id, target_id, at, kind, message, detail)
             select org_id, mode, post_id, id, updated_at, 'failure', $3 || ': ' || $4,
               jsonb_build_object('error_code', $3, 'next_attempt_at', to_char(
                 next_attempt_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
             from failed)
           select next_attempt_at as "next!" from failed"#,
        attempt.key.target.0,
        attempt.fence,
        failure.code.to_string(),
        failure.message,
        failure.code.source().as_str(),
        wait.as_secs_f64(),
        i32::from(refused)
    )
    .fetch_optional(db)
    .await?;
    Ok(failed)
}

/// The target is live, and only its public address is missing: it is asked for again after `wait`, or
/// never.
pub async fn schedule_url_lookup(db: &PgPool, attempt: &Attempt, wait: Option<Duration>) -> sqlx::Result<()> {
    sqlx::query!(
        "update targets
         set next_attempt_at = clock_timestamp() + make_interval(secs => $3), is_continuation = false
         where id = $1 and fence = $2 and status = 'published'",
        attempt.key.target.0,
        attempt.fence,
        wait.map(|wait| wait.as_secs_f64()) as _
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Keeps the public address of a live target that was not known when it settled.
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

/// Brings the next attempt of a failed target forward to now, and leaves the message that tells its
/// workflow. False when it has not failed: nothing is waited for then.
pub async fn retry_now(
    db: &PgPool,
    owner: Owner,
    post: PostId,
    target: TargetId,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let mut tx = db.begin().await?;
    let hurried = sqlx::query!(
        "with hurried as (
           update targets set next_attempt_at = $5, updated_at = $5
           where id = $1 and post_id = $2 and org_id = $3 and mode = $4 and status = 'failed'
           returning id)
         insert into timeline (org_id, mode, post_id, target_id, at, kind, message)
         select $3, $4, $2, id, $5, 'retry', 'The next attempt is brought forward to now' from hurried",
        target.0,
        post.0,
        owner.org.0,
        owner.mode.as_str(),
        now
    )
    .execute(&mut *tx)
    .await?;
    if hurried.rows_affected() == 0 {
        return Ok(false);
    }
    outbox::push(&mut tx, &Message::RetryTarget { target, post, owner }).await?;
    tx.commit().await?;
    Ok(true)
}

/// Gives back to the budget what was spent for nothing: a refusal of the token that was no fault of the
/// grant, an attempt that could only look. An attempt that has lost its turn gives nothing back; `None`
/// when no attempt holds the target.
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

/// What settling needs to know of a target that nobody holds.
#[derive(Debug)]
pub struct TargetState {
    /// Its state.
    pub status: TargetStatus,
    /// Attempts begun.
    pub attempts: u32,
    /// Of these, refused for the token.
    pub token_attempts: u32,
    /// The last failure's code.
    pub error_code: Option<ErrorCode>,
    /// The last failure's words.
    pub error_message: Option<String>,
    /// Whether a call that publishes may have gone through unheard.
    pub in_doubt: bool,
}

/// How a target stands.
pub async fn target_state(db: &PgPool, key: TargetKey) -> sqlx::Result<Option<TargetState>> {
    let row = sqlx::query!(
        r#"select t.status, t.attempts, t.token_attempts, t.error_code, t.error_message,
             exists (select from publications p where p.target_id = t.id and p.commit_begun_at is not null
                     and p.platform_id is null) as "in_doubt!"
           from targets t where t.id = $1 and t.org_id = $2 and t.mode = $3"#,
        key.target.0,
        key.owner.org.0,
        key.owner.mode.as_str()
    )
    .fetch_optional(db)
    .await?;
    row.map(|row| {
        Ok(TargetState {
            status: word(&row.status)?,
            attempts: count(row.attempts),
            token_attempts: count(row.token_attempts),
            error_code: row.error_code.as_deref().map(word).transpose()?,
            error_message: row.error_message,
            in_doubt: row.in_doubt,
        })
    })
    .transpose()
}

/// How a target ends.
#[derive(Debug)]
pub enum End {
    /// Live.
    Live {
        /// The platform's id of its main container.
        id: String,
        /// Its public address; `None` when the platform would not tell it.
        url: Option<String>,
    },
    /// Failed for good.
    Dead {
        /// Why.
        failure: Failure,
        /// Who can do something about it.
        source: ErrorSource,
    },
    /// Withdrawn before anything was published.
    Canceled {
        /// Why, for the timeline.
        reason: String,
    },
}

/// The outcome of settling a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The target is in this state for good.
    Ended(TargetStatus),
    /// Another attempt holds the target: this one has no say any more.
    Superseded,
    /// The target had ended otherwise before it was found live. Its end stands; the timeline tells.
    Late(TargetStatus),
}

/// Ends a target: its state, the post's, the events, their deliveries, in one transaction.
///
/// A target that has ended already stays as it is, since its owner was told; one that is live can only
/// lose what followed its main container. Without a fence the end counts in any case and fences
/// off an attempt under way; with one, "dead" and "canceled" count only for the attempt that holds it.
pub async fn settle(
    db: &PgPool,
    key: TargetKey,
    end: &End,
    fence: Option<i32>,
    now: DateTime<Utc>,
) -> sqlx::Result<Settled> {
    let mut tx = db.begin().await?;
    // In a statement of its own: one that locks and reads at once would, after waiting for a sibling
    // that settles, see that sibling as it was before.
    sqlx::query!("select id from posts where id = $1 for no key update", key.post.0)
        .fetch_optional(&mut *tx)
        .await?;
    let rows = sqlx::query!(
        r#"select p.status as post_status, p.published_at as post_published_at, t.id, t.status, t.fence,
             t.platform_post_id, t.error_message, t.account_id, t.platform, a.username
           from posts p join targets t on t.post_id = p.id join accounts a on a.id = t.account_id
           where p.id = $1 and p.org_id = $2 and p.mode = $3 order by t.id"#,
        key.post.0,
        key.owner.org.0,
        key.owner.mode.as_str()
    )
    .fetch_all(&mut *tx)
    .await?;
    let Some(own) = rows.iter().position(|row| row.id == key.target.0) else {
        return Ok(Settled::Ended(TargetStatus::Canceled));
    };
    let found: TargetStatus = word(&rows[own].status)?;
    if !matches!(end, End::Live { .. }) && fence.is_some_and(|fence| fence != rows[own].fence) {
        return Ok(Settled::Superseded);
    }
    // What is live can't end dead, even if nothing more can be learned about it.
    let captured = match (end, &rows[own].platform_post_id) {
        (End::Dead { .. } | End::Canceled { .. }, Some(id)) if !found.is_terminal() => {
            Some(End::Live { id: id.clone(), url: None })
        }
        _ => None,
    };
    let end = captured.as_ref().unwrap_or(end);
    let ended = match (found, end) {
        (TargetStatus::Dead | TargetStatus::Canceled, End::Live { id, url }) => {
            let message = format!("Found live after it had ended: {}", url.as_ref().unwrap_or(id));
            append(&mut *tx, key, "late", &message, now).await?;
            tx.commit().await?;
            return Ok(Settled::Late(found));
        }
        (TargetStatus::Dead | TargetStatus::Canceled, _) => return Ok(Settled::Ended(found)),
        // Another attempt settled it.
        (TargetStatus::Published, End::Live { .. }) => return Ok(Settled::Ended(found)),
        (TargetStatus::Published, End::Dead { failure, source }) => {
            mark_incomplete(&mut tx, key, failure, *source, now).await?;
            tx.commit().await?;
            return Ok(Settled::Ended(found));
        }
        (TargetStatus::Published, End::Canceled { reason }) => {
            let failure = Failure::new(ErrorCode::NetworkError, reason.clone());
            mark_incomplete(&mut tx, key, &failure, ErrorSource::User, now).await?;
            tx.commit().await?;
            return Ok(Settled::Ended(found));
        }
        (_, End::Live { .. }) => TargetStatus::Published,
        (_, End::Dead { .. }) => TargetStatus::Dead,
        (_, End::Canceled { .. }) => TargetStatus::Canceled,
    };
    let (id, url, failure, source) = match end {
        End::Live { id, url } => (Some(id), url.as_ref(), None, None),
        End::Dead { failure, source } => (None, None, Some(failure), Some(source)),
        End::Canceled { .. } => (None, None, None, None),
    };
    let mut statuses =
        rows.iter().map(|row| word(&row.status)).collect::<sqlx::Result<Vec<TargetStatus>>>()?;
    statuses[own] = ended;
    let post_status = roll_up(&statuses);
    let first = ended == TargetStatus::Published && rows[own].post_published_at.is_none();
    let message = match end {
        End::Live { id, url } => {
            format!("Published on {}: {}", rows[own].platform, url.as_ref().unwrap_or(id))
        }
        End::Dead { failure, .. } => format!("Given up: {failure}"),
        End::Canceled { reason } => format!("Canceled: {reason}"),
    };
    sqlx::query!(
        "with target as (
           update targets
           set status = $2, platform_post_id = coalesce(platform_post_id, $3),
               platform_post_url = coalesce($4, platform_post_url),
               published_at = case when $2 = 'published' then coalesce(published_at, $5) end,
               error_code = $6, error_message = $7, error_source = $8, next_attempt_at = null,
               processing_since = null, is_continuation = false, updated_at = $5,
               -- Fences off an attempt that is still under way.
               fence = fence + case when $2 = 'published' then 0 else 1 end
           where id = $1),
         post as (
           update posts
           set status = coalesce($9, status), published_at = case when $10 then $5 else published_at end,
               updated_at = $5
           where id = $11 and ($9::text is not null or $10))
         insert into timeline (org_id, mode, post_id, target_id, at, kind, message, detail)
         values ($12, $13, $11, $1, $5, $2, $14, '{}')",
        key.target.0,
        ended.as_str(),
        id,
        url,
        now,
        failure.map(|failure| failure.code.to_string()),
        failure.map(|failure| failure.message.as_str()),
        source.map(|source| source.as_str()),
        post_status.map(PostStatus::as_str),
        first,
        key.post.0,
        key.owner.org.0,
        key.owner.mode.as_str(),
        message
    )
    .execute(&mut *tx)
    .await?;
    let subscribers = events::subscribers(&mut tx, key.owner).await?;
    if !subscribers.is_empty() {
        let accounts: Vec<_> = rows
            .iter()
            .zip(&statuses)
            .enumerate()
            .map(|(index, (row, status))| {
                let subject = EventAccount {
                    account: row.account_id.into(),
                    network: row.platform.clone(),
                    username: row.username.clone(),
                };
                let outcome = match (index == own, end, status) {
                    (true, End::Live { id, .. }, _) => Outcome::Live(id.clone()),
                    (true, End::Dead { failure, .. }, _) => Outcome::Failed(failure.message.clone()),
                    (true, End::Canceled { reason }, _) => Outcome::Failed(reason.clone()),
                    (_, _, TargetStatus::Published) => {
                        Outcome::Live(row.platform_post_id.clone().unwrap_or_default())
                    }
                    (_, _, TargetStatus::Dead | TargetStatus::Canceled) => {
                        Outcome::Failed(row.error_message.clone().unwrap_or_else(|| status.to_string()))
                    }
                    _ => Outcome::Open,
                };
                (subject, outcome)
            })
            .collect();
        let subject = &accounts[own].0;
        let mut new = Vec::new();
        // A target that settles once more, after its main container had been found live, tells
        // nothing that was not told.
        if found != ended {
            new.extend(match end {
                End::Live { id, url } => Some((
                    EventName::TargetPublished,
                    event::target_published(key.post, key.target, key.owner.org, subject, id, url.as_deref()),
                )),
                // Its owner did that.
                End::Canceled { .. } => None,
                End::Dead { failure, .. } => {
                    let code = failure.code.to_string();
                    let data = event::target_failed(
                        key.post,
                        key.target,
                        key.owner.org,
                        subject,
                        &code,
                        &failure.message,
                    );
                    Some((EventName::TargetFailed, data))
                }
            });
        }
        if first {
            new.push((EventName::PostPublished, event::post(key.post, key.owner.org, &accounts)));
        }
        if post_status == Some(PostStatus::Failed) {
            new.push((EventName::PostError, event::post(key.post, key.owner.org, &accounts)));
        }
        for (name, data) in new {
            let target =
                matches!(name, EventName::TargetPublished | EventName::TargetFailed).then_some(key.target);
            let event = NewEvent { name, post: Some(key.post), target, account: None, data };
            events::append(&mut tx, key.owner, now, &event, &subscribers).await?;
        }
    }
    tx.commit().await?;
    Ok(Settled::Ended(ended))
}

/// Notes that what should have followed a live main container is lost for good.
async fn mark_incomplete(
    tx: &mut PgConnection,
    key: TargetKey,
    failure: &Failure,
    source: ErrorSource,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "with target as (
           update targets set error_code = $2, error_message = $3, error_source = $4, next_attempt_at = null,
             processing_since = null, is_continuation = false, fence = fence + 1, updated_at = $5
           where id = $1)
         insert into timeline (org_id, mode, post_id, target_id, at, kind, message)
         values ($6, $7, $8, $1, $5, 'incomplete', $9)",
        key.target.0,
        failure.code.to_string(),
        failure.message,
        source.as_str(),
        now,
        key.owner.org.0,
        key.owner.mode.as_str(),
        key.post.0,
        format!("What should have followed is given up: {failure}")
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// All that should have followed a live main container is live too. Says so once.
pub async fn mark_complete(db: &PgPool, key: TargetKey, now: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!(
        "with target as (
           update targets set error_code = null, error_message = null, error_source = null,
             next_attempt_at = null, processing_since = null, is_continuation = false, updated_at = $2
           where id = $1 returning id)
         insert into timeline (org_id, mode, post_id, target_id, at, kind, message)
         select $3, $4, $5, id, $2, 'complete', 'The whole thread is live' from target
         where not exists (
           select from timeline t where t.post_id = $5 and t.target_id = $1 and t.kind = 'complete')",
        key.target.0,
        now,
        key.owner.org.0,
        key.owner.mode.as_str(),
        key.post.0
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Adds a line to a target's timeline.
pub async fn note(
    db: &PgPool,
    key: TargetKey,
    kind: &str,
    message: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    append(db, key, kind, message, now).await
}

async fn append(
    db: impl PgExecutor<'_>,
    key: TargetKey,
    kind: &str,
    message: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into timeline (org_id, mode, post_id, target_id, at, kind, message)
         values ($1, $2, $3, $4, $5, $6, $7)",
        key.owner.org.0,
        key.owner.mode.as_str(),
        key.post.0,
        key.target.0,
        now,
        kind,
        message
    )
    .execute(db)
    .await?;
    Ok(())
}

fn word<T: std::str::FromStr<Err = domain::string_enum::UnknownValue>>(text: &str) -> sqlx::Result<T> {
    text.parse().map_err(decode)
}

fn decode(error: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(error))
}

fn small(position: u16) -> i16 {
    i16::try_from(position).expect("a post has at most ten containers")
}

fn count(n: i32) -> u32 {
    u32::try_from(n).unwrap_or_default()
}
