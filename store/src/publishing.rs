//! The state of publishing, one function per transition, in their order.
//!
//! `begin` starts an attempt, `intend` records the intent before the publishing call, `capture` stores the
//! platform's id as soon as it is known, `settle` finishes the target and appends its events in one
//! transaction. `begin` gives each attempt a fence; an attempt whose fence was raised since can neither
//! intend nor finish the target. Capturing needs no fence: a live post is live. The result of a call belongs
//! to the intent it was made under, identified by the time it was begun.
//!
//! Intents, processing phases and waits are timed by the database's clock, since workers' clocks differ.

mod cancel;
mod edit;
mod frozen;
mod holds;
mod left_out;
mod missing;
pub(crate) mod outcome;
mod owned;
mod replying;
mod revive;
mod unpublish;
mod waits;

use crate::{
    bounds::{Access, Resource},
    decode::Parsed,
    events::{self, NewEvent},
    grants::{AccountGrant, account_grant},
    outbox,
    posts::{Attachment, Container},
    timeline,
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    AccountId, CancelReason, ErrorCode, ErrorSource, Failure, Owner, PostId, PostStatus, TargetId,
    TargetStatus, WaitReason,
    event::{self, EventAccount, EventName, Outcome},
    outbox::Message,
    overrides,
    post::roll_up,
    retry::{self, Spent},
    wait,
};
use outcome::History;
use replying::Found;
use serde_json::{Value, json};
use sqlx::{PgConnection, PgExecutor, PgPool, types::Json};
use std::{borrow::Cow, fmt, time::Duration};

pub(crate) use cancel::cancel;
pub use edit::{BeginEdit, Changes, EDIT_LEASE, EditResult, begin_edit, record_edit};
pub use frozen::is_frozen;
pub(crate) use holds::FORGOTTEN_AFTER;
pub use holds::{Held, held, hold, lift};
pub use left_out::{LeftOut, leave_out};
use missing::mark_incomplete;
pub use missing::{Rewrite, Rewritten, mark_complete, rewrite};
pub use owned::{adopt, captured_ids};
pub use replying::{NoParent, Parent, Place};
pub(crate) use replying::{Replies, wake_replies};
pub(crate) use revive::revive_in;
pub use revive::{Revived, lost_with_grant, revive};
pub use unpublish::{UNPUBLISH_LEASE, Withdrawn, record_unpublished, release_withdrawn, withdraw};
pub use waits::{Look, Waiting, Waits, await_slot, wait};

/// Maximum time that an attempt may be early: Temporal's timers and the database's clock differ.
const TOLERANCE: Duration = Duration::from_secs(1);
/// Time from which a poll is not early any more: a clock that was ahead wrote its time, and the workflow has waited by
/// Temporal's clock. A poll that comes too soon after a restart of the workflow does no harm.
const MAX_POLL_WAIT: Duration = Duration::from_secs(600);
/// Maximum time by which the database's clock may have been ahead when an intent was written.
const MAX_AHEAD: TimeDelta = TimeDelta::days(1);

/// Pause between two looks at a file that is being fetched or read. Its end wakes the target; this finds one that was not
/// woken.
const MEDIA_WAIT: Duration = Duration::from_secs(60);

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

impl TargetKey {
    /// Returns true if the post, which has this status and version, was edited since the workflow was started. A
    /// post whose publishing has begun can't be edited, so its targets are not stale.
    fn is_stale(&self, status: PostStatus, version: i32) -> bool {
        status.is_editable() && version != self.version
    }
}

/// The result of beginning an attempt.
#[derive(Debug)]
pub enum BeginResult {
    /// An attempt, with everything it needs.
    Attempt(Box<Attempt>),
    /// The post was edited; another message brings the new version to its workflow.
    Stale,
    /// It is too early, or the target waits for something else than a time.
    Early(Look),
    /// The last attempt failed, and the next one is due after this time.
    Failed {
        /// Time to wait.
        pause: Duration,
        /// The last failure.
        failure: Failure,
        /// Its number in the retry budget.
        number: u32,
    },
    /// The target is frozen, its account rests, or the platform refuses its app: it has this error code and waits.
    Held {
        /// Time to wait.
        pause: Duration,
        /// Error code.
        code: ErrorCode,
        /// False if it waited with this code before.
        is_new: bool,
    },
    /// The target has this final status.
    Ended(TargetStatus),
}

/// Reason why nothing new may be published for a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barred {
    /// The account was disconnected.
    Disconnected,
    /// The post was deleted.
    Deleted,
    /// The post that it replies to is not live.
    NoParent(NoParent),
    /// An operator ends the target, for the reason in [`Attempt::stop_reason`].
    Stopped,
}

/// Purpose of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Publishes; counted as an attempt unless it continues one.
    Publish,
    /// Looks up the result of an earlier attempt; never counted.
    Look,
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
    /// Where it is published.
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

    /// Returns true if nothing is left to be done but to end the target: it is a reply to what is not live, or an
    /// operator ends it, and no publishing call has an unknown result that could be looked up.
    pub fn is_over(&self, barred: Barred) -> bool {
        self.place == Place::Nowhere
            || matches!(barred, Barred::NoParent(_) | Barred::Stopped) && !self.is_in_doubt()
    }

    /// Returns whether the result of a publishing call is unknown.
    pub fn is_in_doubt(&self) -> bool {
        self.entries.iter().any(|entry| entry.commit_begun_at.is_some() && entry.platform_id.is_none())
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

/// Returns the name of one of the target's files that is still being fetched or read.
async fn awaited_file(
    tx: &mut PgConnection,
    key: TargetKey,
    entries: &[Entry],
) -> sqlx::Result<Option<String>> {
    let attached = entries.iter().flat_map(|entry| &entry.container.media);
    let ids: Vec<_> = attached.map(|attachment| attachment.id).collect();
    if ids.is_empty() {
        return Ok(None);
    }
    sqlx::query_scalar!(
        "select filename from media
         where id = any($1) and org_id = $2 and mode = $3 and status in ('pending_upload', 'uploaded') and deleted_at is null
         limit 1",
        &ids,
        key.owner.org.0,
        key.owner.mode.as_str()
    )
    .fetch_optional(tx)
    .await
}

/// Begins an attempt.
///
/// The post's row is locked: an edit, a deletion and the first attempt compete for it, and the first wins.
/// Continuing after the platform processed the post doesn't count as an attempt. An attempt before the time
/// in the row is rejected, so that a workflow can be restarted at any moment. So is one of a target that operators
/// froze, unless it has a call to look up.
// Model: Begin.
pub async fn begin(db: &PgPool, key: TargetKey, purpose: Purpose) -> sqlx::Result<BeginResult> {
    let mut tx = crate::begin(db).await?;
    let row = sqlx::query!(
        r#"select p.status as "post_status: Parsed<PostStatus>", p.version, p.created_at, p.deleted_at,
             greatest(coalesce(t.scheduled_at, p.scheduled_at, p.created_at), p.created_at) as "due_at!",
             coalesce(t.scheduled_at, p.scheduled_at) as scheduled_at,
             p.default_config -> t.platform as block,
             t.status as "status: Parsed<TargetStatus>", t.processing_since, t.is_continuation, t.attempts,
             t.token_attempts, t.next_attempt_at, t.throttled_since, t.free_attempts,
             t.platform_post_url, t.unpublish_until, p.reply_to, t.reply_root, t.reply_parent, t.stop_reason, t.error_code, t.error_message,
             t.freeze_id as waits_for, t.wait_reason, t.wait_since, t.wait_until,
             t.wait_reason is not null and coalesce((
               select max(r.id) filter (where r.kind = 'retry')
                 > coalesce(max(r.id) filter (where r.kind in ('waiting', 'rest')), 0)
               from timeline r where r.target_id = t.id), false) as "is_retried!",
             a.id as account_id, a.platform, a.network_unique_id, a.username, a.account_type, a.social_network_id,
             a.grant_sealed, a.grant_version, a.scopes, a.status as account_status, a.rests_until,
             h.app as "held_app?", h.message as "hold_message?",
             f.id as "freeze_id?", f.kind as "frozen?", f.reason as "freeze_reason?"
           from posts p join targets t on t.post_id = p.id join accounts a on a.id = t.account_id
             left join app_holds h on h.app = app_of(a.platform, a.mode, a.org_id, a.social_network_id)
             left join lateral (
               select id, kind, reason from freezes
               where released_at is null and (mode is null or mode = p.mode)
                 and (kind, subject) in (('platform', a.platform), ('account', a.id::text),
                   ('organization', p.org_id::text))
               order by created_at limit 1) f on true
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
        // An edit that removed the account deleted the target's row. A post that doesn't exist at all was
        // lost with its database: its workflow ends.
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
    let (status, post_status) = (row.status.0, row.post_status.0);
    if matches!(status, TargetStatus::Dead | TargetStatus::Canceled) {
        return Ok(BeginResult::Ended(status));
    }
    if key.is_stale(post_status, row.version) {
        return Ok(BeginResult::Stale);
    }
    let entries = sqlx::query!(
        r#"select c.id as "id!", c.position as "position!", c.content as "content!",
             c.media as "media!: Json<Vec<Attachment>>", p.checkpoint as "checkpoint?",
             p.commit_begun_at as "commit_begun_at?", p.commit_deadline as "commit_deadline?",
             p.doubted_since as "doubted_since?", p.commit_ended_at as "commit_ended_at?",
             p.ambiguous_error_code as "ambiguous_error_code?: Parsed<ErrorCode>",
             p.accepted as "accepted?", p.is_restored as "is_restored?", p.platform_id as "platform_id?"
           from target_containers c left join publications p on p.target_id = c.target_id and p.position = c.position
           where c.target_id = $1 order by c.position"#,
        key.target.0
    )
    .fetch_all(&mut *tx)
    .await?;
    let mut entries: Vec<_> = entries
        .into_iter()
        .map(|row| Entry {
            container: Container {
                id: row.id.into(),
                position: row.position.cast_unsigned(),
                content: row.content,
                media: row.media.0,
            },
            checkpoint: row.checkpoint.unwrap_or(Value::Null),
            commit_begun_at: row.commit_begun_at,
            commit_deadline: row.commit_deadline,
            doubted_since: row.doubted_since,
            commit_ended_at: row.commit_ended_at,
            ambiguous_error_code: row.ambiguous_error_code.map(|code| code.0),
            accepted: row.accepted.unwrap_or(false),
            is_restored: row.is_restored.unwrap_or(false),
            platform_id: row.platform_id,
        })
        .collect();
    // A live target has a next attempt until its replies and its URL are known or given up.
    if status == TargetStatus::Published && row.next_attempt_at.is_none() {
        return Ok(BeginResult::Ended(status));
    }
    let begun_at = clock(&mut tx).await?;
    let mut next_attempt_at = row.next_attempt_at;
    for entry in &mut entries {
        if let Some(intent) = entry.commit_begun_at.filter(|_| entry.platform_id.is_none())
            && intent > begun_at + TOLERANCE
        {
            set_back(&mut tx, key.target, entry, intent, begun_at).await?;
            // Written by the same clock.
            next_attempt_at = None;
        }
    }
    // Its posts are being deleted from the platform, and no call of it is open. The lease in the row is the wait.
    if let Some(until) = row.unpublish_until.and_then(|until| (until - begun_at).to_std().ok()) {
        return Ok(BeginResult::Early(Look::of_row(until + TOLERANCE)));
    }
    let remaining = next_attempt_at.and_then(|next| (next - begun_at).to_std().ok()).unwrap_or_default();
    // A target that was frozen waits for its turn after the release, however long that takes.
    let was_frozen = row.error_code.as_deref() == Some(frozen::CODE);
    let is_from_future = row.is_continuation && !was_frozen && remaining > MAX_POLL_WAIT;
    if purpose == Purpose::Publish && remaining > TOLERANCE && !is_from_future {
        let code = row.error_code.as_deref().and_then(|code| code.parse().ok());
        let Some(code) = code.filter(|_| status == TargetStatus::Failed) else {
            return Ok(BeginResult::Early(Look::of_row(remaining)));
        };
        // An attempt that was throttled has a number, too, though it costs nothing.
        let is_free = row.throttled_since.is_some_and(|since| begun_at < since + retry::THROTTLED_FREE);
        return Ok(BeginResult::Failed {
            pause: remaining,
            failure: Failure::new(code, row.error_message.unwrap_or_default()),
            number: (row.attempts - row.free_attempts + i32::from(is_free)).unsigned_abs(),
        });
    }
    let has_begun = entries.iter().any(|entry| entry.commit_begun_at.is_some());
    // Temporal's clock may be ahead, and a retry of a target that an operator ended too early starts it at once.
    let until_due = row.scheduled_at.and_then(|at| (at - begun_at).to_std().ok()).unwrap_or_default();
    let is_ended =
        row.deleted_at.is_some() || row.stop_reason.is_some() || row.account_status == "disconnected";
    if !has_begun && until_due > TOLERANCE && !is_ended {
        return Ok(BeginResult::Early(Look::of_row(until_due)));
    }
    let reason = row.wait_reason.as_deref().and_then(|reason| reason.parse().ok());
    let waiting = reason.zip(row.wait_since).map(|(reason, since)| Waiting {
        reason,
        since,
        until: row.wait_until,
        is_retried: row.is_retried,
    });
    let mut waited_in_vain = None;
    if !has_begun
        && row.deleted_at.is_none()
        && let Some(filename) = awaited_file(&mut tx, key, &entries).await?
    {
        let reason = WaitReason::File;
        let wait = waits::Before {
            reason,
            pause: MEDIA_WAIT,
            until: waits::since(waiting, reason, begun_at) + wait::FILE_LIMIT,
            message: &format!("Waits for the file {filename}, which is being fetched and read"),
        };
        if let Some(look) = waits::wait_before(&mut tx, key, waiting, wait, begun_at).await? {
            tx.commit().await?;
            return Ok(BeginResult::Early(look));
        }
        waited_in_vain = Some(reason);
    }
    // Publishing calls already begun are still looked up, and nothing new is published.
    let barred = match row.account_status.as_str() {
        _ if row.stop_reason.is_some() => Some(Barred::Stopped),
        "disconnected" => Some(Barred::Disconnected),
        _ => row.deleted_at.map(|_| Barred::Deleted),
    };
    let known = row.reply_root.zip(row.reply_parent).map(|(root, last)| Parent { root, last });
    let is_live = entries.first().is_some_and(|entry| entry.platform_id.is_some());
    let in_doubt = entries.iter().any(|entry| entry.commit_begun_at.is_some() && entry.platform_id.is_none());
    let (place, barred) = match (row.reply_to, known) {
        (None, _) => (Place::Own, barred),
        // The rest of its thread goes below its own first container.
        (Some(_), Some(known)) if is_live || barred.is_some() => (Place::Below(known), barred),
        (Some(_), None) if barred.is_some() || waited_in_vain.is_some() => (Place::Nowhere, barred),
        (Some(post), known) => {
            let found = replying::find(&mut tx, key, PostId(post), row.account_id.into(), begun_at).await?;
            match (found, known) {
                (Found::Gone(reason), known) => {
                    (known.map_or(Place::Nowhere, Place::Below), Some(Barred::NoParent(reason)))
                }
                // What is being deleted may stay, or its place be lost: nothing is published below it until that is
                // known, but a call is looked up.
                (Found::Held { .. }, Some(known)) if in_doubt => (Place::Below(known), None),
                (Found::Live(_) | Found::Waiting { .. }, Some(known)) => (Place::Below(known), None),
                (Found::Live(parent), None) => (Place::Below(parent), None),
                (Found::Waiting { pause, next } | Found::Held { pause, next }, known) => {
                    let reason = WaitReason::Parent;
                    let since = waits::since(waiting, reason, begun_at);
                    let wait = waits::Before {
                        reason,
                        pause,
                        until: next.map_or(since, |next| next.max(since)) + wait::PARENT_LIMIT,
                        message: "Waits until the post that it replies to is live",
                    };
                    if let Some(look) = waits::wait_before(&mut tx, key, waiting, wait, begun_at).await? {
                        tx.commit().await?;
                        return Ok(BeginResult::Early(look));
                    }
                    waited_in_vain = Some(reason);
                    (known.map_or(Place::Nowhere, Place::Below), None)
                }
            }
        }
    };
    let is_counted = purpose == Purpose::Publish && !row.is_continuation && waited_in_vain.is_none();
    let is_unpublished = entries.iter().any(|entry| entry.platform_id.is_none());
    if let (Some(freeze), Some(kind), Some(reason)) = (row.freeze_id, row.frozen, row.freeze_reason)
        && is_unpublished
        && !in_doubt
        && barred.is_none()
        && let Some(next) = frozen::wait(
            &mut tx,
            key,
            &frozen::Freeze { id: freeze, kind: &kind, platform: &row.platform, reason: &reason },
            row.waits_for != Some(freeze),
        )
        .await?
    {
        tx.commit().await?;
        let pause = (next - begun_at).to_std().unwrap_or_default();
        let is_new = row.waits_for != Some(freeze);
        return Ok(BeginResult::Held { pause, code: ErrorCode::Frozen, is_new });
    }
    if let Some(until) = row.rests_until.filter(|until| *until > begun_at + TOLERANCE)
        && is_counted
        && !in_doubt
        && barred.is_none()
    {
        // A call that is throttled now and then does not begin the wait again.
        let since = row.throttled_since.unwrap_or(begun_at);
        if begun_at < since + wait::REST_LIMIT {
            let rest = Rest {
                reason: WaitReason::Rest,
                code: ErrorCode::RateLimited,
                message: "the platform throttled another post of the account, which takes none before its wait is over",
                until,
                since,
                limit: wait::REST_LIMIT,
            };
            let held = rest.hold(&mut tx, key, waiting, begun_at, row.error_code.as_deref()).await?;
            tx.commit().await?;
            return Ok(held);
        }
        waited_in_vain = Some(WaitReason::Rest);
    }
    if let (Some(app), Some(message)) = (&row.held_app, &row.hold_message)
        && is_counted
        && waited_in_vain.is_none()
        && !in_doubt
        && barred.is_none()
    {
        let since = waits::since(waiting, WaitReason::App, begun_at);
        if begun_at >= since + wait::APP_LIMIT {
            waited_in_vain = Some(WaitReason::App);
        } else if let Some(until) = holds::wait_or_look(&mut tx, app, key.target).await? {
            let rest = Rest {
                reason: WaitReason::App,
                code: ErrorCode::AppRefused,
                message,
                until,
                since,
                limit: wait::APP_LIMIT,
            };
            let held = rest.hold(&mut tx, key, waiting, begun_at, row.error_code.as_deref()).await?;
            tx.commit().await?;
            return Ok(held);
        }
    }
    let is_counted = is_counted && waited_in_vain.is_none();
    let mut account = account_grant!(row, row.account_id.into());
    if barred == Some(Barred::Disconnected) && !has_begun {
        account.grant_sealed = None;
    }
    let begins = post_status.is_editable();
    let waiting = waiting.filter(|waiting| !waiting.reason.is_before_attempt());
    let code = row.error_code.as_deref().filter(|_| !was_frozen).and_then(|code| code.parse().ok());
    let last_failure = code.map(|code| Failure::new(code, row.error_message.unwrap_or_default()));
    let parent = match &place {
        Place::Below(parent) => Some(parent),
        Place::Own | Place::Nowhere => None,
    };
    let begun = sqlx::query!(
        r#"with post as (
             update posts set status = 'publishing', updated_at = $2 where id = $3 and $4),
           entry as (
             insert into timeline (org_id, mode, post_id, target_id, at, kind, message)
             select $5, $6, $3, $1, $2, 'attempt', 'Attempt ' || $7::int || ' begins'
             -- An attempt that could only wait costs nothing: the next one has its number.
             where $8 and not exists (
               select from timeline t
               where t.post_id = $3 and t.target_id = $1 and t.kind = 'attempt'
                 and t.message = 'Attempt ' || $7::int || ' begins'
                 and t.id > coalesce((select max(r.id) from timeline r
                   where r.post_id = $3 and r.target_id = $1 and r.kind = 'retry'), 0)))
           update targets
           set status = case status when 'pending' then 'queued' else status end,
               attempts = $7, fence = fence + 1, freeze_id = null,
               error_code = case when $11 then null else error_code end,
               error_message = case when $11 then null else error_message end,
               error_source = case when $11 then null else error_source end,
               -- The sweeper finds a live target by the time of its next attempt.
               next_attempt_at = case status when 'published' then $2::timestamptz end, updated_at = $2,
               reply_root = coalesce(reply_root, $9), reply_parent = coalesce(reply_parent, $10), look_at = null,
               wait_reason = case when $12 then wait_reason end, wait_since = case when $12 then wait_since end,
               wait_until = case when $12 then wait_until end
           where id = $1
           returning fence"#,
        key.target.0,
        begun_at,
        key.post.0,
        begins,
        key.owner.org.0,
        key.owner.mode.as_str(),
        row.attempts + i32::from(is_counted),
        is_counted,
        parent.map(|parent| parent.root.as_str()),
        parent.map(|parent| parent.last.as_str()),
        was_frozen,
        waiting.is_some()
    )
    .fetch_one(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(BeginResult::Attempt(Box::new(Attempt {
        key,
        fence: begun.fence,
        status,
        attempts: (row.attempts + i32::from(is_counted)).unsigned_abs(),
        free_attempts: row.free_attempts.unsigned_abs(),
        is_counted,
        token_attempts: row.token_attempts.unsigned_abs(),
        throttled_since: row.throttled_since,
        processing_since: row.processing_since,
        begun_at,
        created_at: row.created_at,
        due_at: row.due_at,
        settings: overrides::settings(&row.block.unwrap_or_default(), row.account_id.into()),
        account,
        scopes: row.scopes,
        is_account_active: row.account_status == "active",
        place,
        barred,
        is_app_held: row.held_app.is_some(),
        stop_reason: row.stop_reason,
        last_failure,
        waiting,
        waited_in_vain,
        url: row.platform_post_url,
        entries,
    })))
}

/// A wait of a target that it shares with others: of its account, which rests, or with its app, which the platform refuses.
struct Rest<'a> {
    reason: WaitReason,
    code: ErrorCode,
    message: &'a str,
    until: DateTime<Utc>,
    since: DateTime<Utc>,
    limit: Duration,
}

impl Rest<'_> {
    /// Lets the target wait until the time, and a little longer: all of them together would be throttled again. One whose
    /// account rests waits as if it had been throttled itself.
    async fn hold(
        self,
        tx: &mut PgConnection,
        key: TargetKey,
        waiting: Option<Waiting>,
        begun_at: DateTime<Utc>,
        code_before: Option<&str>,
    ) -> sqlx::Result<BeginResult> {
        let code = self.code.to_string();
        let next = sqlx::query_scalar!(
            r#"with resting as (
                 update targets
                 set status = case status when 'pending' then 'queued' else status end,
                     error_code = $2, error_message = $3, error_source = $4,
                     next_attempt_at = $5::timestamptz + (0.1 * random()) * ($5::timestamptz - clock_timestamp()),
                     throttled_since = case when $10 then $6 else throttled_since end,
                     wait_reason = $7, wait_since = $6, wait_until = $8, look_at = null,
                     updated_at = clock_timestamp()
                 where id = $1
                 returning id, post_id, org_id, mode, updated_at, next_attempt_at),
               logged as (
                 insert into timeline (org_id, mode, post_id, target_id, at, kind, message, detail)
                 select org_id, mode, post_id, id, updated_at, 'rest', $3,
                   jsonb_build_object('error_code', $2, 'next_attempt_at', to_char(
                     next_attempt_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
                 from resting where $9)
               select next_attempt_at as "next!" from resting"#,
            key.target.0,
            code,
            self.message,
            self.code.source().as_str(),
            self.until,
            self.since,
            self.reason.as_str(),
            self.since + self.limit,
            waits::is_untold(waiting, self.reason),
            self.code == ErrorCode::RateLimited
        )
        .fetch_one(tx)
        .await?;
        Ok(BeginResult::Held {
            pause: (next - begun_at).to_std().unwrap_or_default(),
            code: self.code,
            is_new: code_before.is_none_or(|before| before != code),
        })
    }
}

/// Corrects the times of an intent that lie in the future: the clock was ahead when they were written, by an
/// unknown time up to [`MAX_AHEAD`]. A search from the corrected time reads everything since the real one.
async fn set_back(
    tx: &mut PgConnection,
    target: TargetId,
    entry: &mut Entry,
    intent: DateTime<Utc>,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let earliest = now - MAX_AHEAD;
    entry.commit_deadline = entry.commit_deadline.map(|deadline| now + (deadline - intent));
    entry.commit_begun_at = Some(earliest);
    entry.commit_ended_at = entry.commit_ended_at.map(|ended| ended.min(now));
    entry.doubted_since = entry.doubted_since.map(|doubted| if doubted > now { earliest } else { doubted });
    sqlx::query!(
        "update publications set commit_begun_at = $3, commit_deadline = $4, commit_ended_at = $5, doubted_since = $6
         where target_id = $1 and position = $2",
        target.0,
        entry.container.position.cast_signed(),
        entry.commit_begun_at,
        entry.commit_deadline,
        entry.commit_ended_at,
        entry.doubted_since
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns the database's current time.
async fn clock(tx: &mut PgConnection) -> sqlx::Result<DateTime<Utc>> {
    sqlx::query_scalar!(r#"select clock_timestamp() as "now!""#).fetch_one(tx).await
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
/// target that it replies to, so that a deletion from the platform either is seen here or sees the intent.
// Model: Intend.
pub async fn intend(
    db: &PgPool,
    target: TargetId,
    position: u16,
    fence: i32,
    checkpoint: &Value,
    limit: Duration,
) -> sqlx::Result<Option<DateTime<Utc>>> {
    sqlx::query_scalar!(
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
               and not exists (
                 select from freezes f
                 where f.released_at is null and (f.mode is null or f.mode = t.mode)
                   and (f.kind, f.subject) in (('platform', t.platform), ('account', t.account_id::text),
                     ('organization', t.org_id::text)))
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
    .fetch_optional(db)
    .await
}

/// Clears the intent after a look-up found that its call published nothing. The time of the call is kept in
/// `doubted_since`, because platforms' reads can be stale.
// Model: ClearIntent.
pub async fn clear_intent(db: &PgPool, target: TargetId, position: u16, fence: i32) -> sqlx::Result<()> {
    sqlx::query!(
        "update publications p
         set doubted_since = coalesce(p.doubted_since, p.commit_begun_at), commit_begun_at = null,
             commit_deadline = null, commit_ended_at = null, ambiguous_error_code = null, accepted = false,
             is_restored = false
         from targets t
         where p.target_id = $1 and p.position = $2 and t.id = $1 and t.fence = $3 and p.platform_id is null",
        target.0,
        position.cast_signed(),
        fence
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Clears the intent of a post that the platform accepted and then failed to process, as [`clear_intent`] does. Also
/// deletes the checkpoint and ends the polling window, so that the next attempt counts and prepares the post again.
pub async fn discard(db: &PgPool, target: TargetId, position: u16, fence: i32) -> sqlx::Result<()> {
    sqlx::query!(
        "with target as (
           update targets set processing_since = null, is_continuation = false
           where id = $1 and fence = $3 returning id)
         update publications p
         set doubted_since = coalesce(p.doubted_since, p.commit_begun_at), commit_begun_at = null,
             commit_deadline = null, commit_ended_at = null, ambiguous_error_code = null, accepted = false,
             is_restored = false, checkpoint = 'null'
         from target t
         where p.target_id = t.id and p.position = $2 and p.platform_id is null",
        target.0,
        position.cast_signed(),
        fence
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Clears the intent `begun`, whose call returned without publishing anything.
// Model: VoidIntent.
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
        position.cast_signed(),
        begun
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
             -- The sweeper finds a live target by the time of its next attempt.
             next_attempt_at = coalesce(clock_timestamp() + make_interval(secs => $4),
               case when status = 'published' then clock_timestamp() end)
         where id = $1 and fence = $2
           and (status <> 'published' or platform_post_url is null or exists (
             select from target_containers c where c.target_id = targets.id and not exists (
               select from publications p
               where p.target_id = $1 and p.position = c.position and p.platform_id is not null)))",
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
             select format('part %s of %s: ', 1 + min(c.position) filter (where p.platform_id is null), count(*)) as name
             from targets t join target_containers c on c.target_id = t.id
               left join publications p on p.target_id = t.id and p.position = c.position
             where t.id = $1 and t.status = 'published'
             having bool_or(p.platform_id is null)),
           failed as (
             update targets
             set status = case status when 'published' then status else 'failed' end,
                 error_code = $3, error_message = coalesce((select name from part), '') || $4, error_source = $5,
                 is_continuation = false,
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
                 select from target_containers c where c.target_id = targets.id and not exists (
                   select from publications p
                   where p.target_id = $1 and p.position = c.position and p.platform_id is not null)))
             returning id, post_id, org_id, mode, updated_at, next_attempt_at, error_message),
           logged as (
             insert into timeline (org_id, mode, post_id, target_id, at, kind, message, detail)
             select org_id, mode, post_id, id, updated_at, 'failure', $3 || ': ' || error_message,
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
        i32::from(refused),
        throttled
    )
    .fetch_optional(db)
    .await?;
    Ok(failed)
}

/// Lets an account rest until a time: its platform throttles it, so no attempt of another of its targets begins
/// before. Does nothing if it rests longer.
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
        "with retried as (
           update targets set next_attempt_at = $5, look_at = null, updated_at = $5
           where id = $1 and post_id = $2 and org_id = $3 and mode = $4
             and (status = 'failed' or status = 'queued' and error_code is not null
                  or status = 'published' and next_attempt_at is not null)
           returning id)
         insert into timeline (org_id, mode, post_id, target_id, at, kind, message, detail)
         select $3, $4, $2, id, $5, 'retry', 'The next attempt is brought forward to now', $6 from retried",
        target.0,
        post.0,
        owner.org.0,
        owner.mode.as_str(),
        now,
        timeline::caused_by(request_id, json!({}))
    )
    .execute(&mut *tx)
    .await?;
    if retried.rows_affected() == 0 {
        return Ok(false);
    }
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

/// Returns the state of a target.
pub async fn target_state(db: &PgPool, key: TargetKey) -> sqlx::Result<Option<TargetState>> {
    let row = sqlx::query!(
        r#"select t.status as "status: Parsed<TargetStatus>", t.attempts - t.free_attempts as "spent!",
             t.error_code as "error_code: Parsed<ErrorCode>", t.error_message,
             exists (select from publications p where p.target_id = t.id and p.commit_begun_at is not null
                     and p.platform_id is null) as "in_doubt!"
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
        error_code: row.error_code.map(|code| code.0),
        error_message: row.error_message,
        in_doubt: row.in_doubt,
    }))
}

/// The final state of a target.
#[derive(Debug)]
pub enum End {
    /// Published.
    Live {
        /// The platform's own id of the main container.
        id: String,
        /// URL of the main container; `None` when the platform didn't return it.
        url: Option<String>,
        /// A part of the post that the platform doesn't support.
        left_out: Option<LeftOut>,
    },
    /// Failed for good.
    Dead {
        /// Why the target failed.
        failure: Failure,
        /// Who can fix the failure.
        source: ErrorSource,
    },
    /// Canceled before anything was published.
    Canceled {
        /// Why.
        reason: CancelReason,
    },
}

impl End {
    /// Why the target is not published, or a live one not whole; `None` when it is live.
    fn shortfall(&self) -> Option<Shortfall<'_>> {
        match self {
            Self::Live { .. } => None,
            Self::Dead { failure, source } => Some(Shortfall {
                code: Some(failure.code),
                message: failure.message.as_str().into(),
                source: *source,
            }),
            Self::Canceled { reason } => {
                Some(Shortfall { code: None, message: reason.to_string().into(), source: ErrorSource::User })
            }
        }
    }
}

/// Why a target, or the rest of its thread, is not published.
struct Shortfall<'a> {
    /// `None` if nothing failed.
    code: Option<ErrorCode>,
    message: Cow<'a, str>,
    source: ErrorSource,
}

impl fmt::Display for Shortfall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "{code}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// The outcome of settling a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The target has this final status.
    Ended(TargetStatus),
    /// Another attempt holds the target: the call changed nothing.
    Superseded,
    /// The post was edited before its first attempt, and this was to end an earlier version of it: the call
    /// changed nothing.
    Stale,
    /// The target was found live after it had this final status, which stays; the timeline records it.
    Late(TargetStatus),
}

/// Finishes a target: sets its status and the post's, and appends their events, in one transaction.
///
/// A target that is finished keeps its status, since its owner was notified; a live one can only lose the
/// rest of its thread. Without a fence the result counts for any attempt, and fences off one under way; with
/// one, "dead" and "canceled" count only for the attempt that holds the target.
// Model: Settle.
pub async fn settle(
    db: &PgPool,
    key: TargetKey,
    end: &End,
    fence: Option<i32>,
    now: DateTime<Utc>,
) -> sqlx::Result<Settled> {
    let mut tx = crate::begin(db).await?;
    // In a separate statement: one that locks and reads at once would, after waiting for a sibling
    // that settles, see that sibling as it was before. A reply that looks at the target waits for its lock, so that
    // the next statement sees each reply that looked before.
    lock_post(&mut tx, key).await?;
    let rows = sqlx::query!(
        r#"select p.published_at as post_published_at, p.status as "post_status: Parsed<PostStatus>", p.version,
             p.round as post_round, p.has_failed, t.id,
             t.status as "status: Parsed<TargetStatus>", t.fence, t.platform_post_id, t.round,
             t.error_message, t.account_id, t.platform, a.username, t.next_attempt_at, t.resumed_round,
             t.id = $4 and exists (select from posts r where r.reply_to = p.id) as "has_replies!"
           from posts p join targets t on t.post_id = p.id join accounts a on a.id = t.account_id
           where p.id = $1 and p.org_id = $2 and p.mode = $3 order by t.id"#,
        key.post.0,
        key.owner.org.0,
        key.owner.mode.as_str(),
        key.target.0
    )
    .fetch_all(&mut *tx)
    .await?;
    let Some(own) = rows.iter().position(|row| row.id == key.target.0) else {
        return Ok(Settled::Ended(TargetStatus::Canceled));
    };
    let found = rows[own].status.0;
    if !matches!(end, End::Live { .. }) && fence.is_some_and(|fence| fence != rows[own].fence) {
        return Ok(Settled::Superseded);
    }
    if key.is_stale(rows[own].post_status.0, rows[own].version) && !found.is_terminal() {
        return Ok(Settled::Stale);
    }
    // A live target can't fail, even if no more is known about it than its id: it only loses its replies.
    let captured = match (end, &rows[own].platform_post_id) {
        (End::Dead { .. } | End::Canceled { .. }, Some(id)) if !found.is_terminal() => {
            Some(End::Live { id: id.clone(), url: None, left_out: None })
        }
        _ => None,
    };
    let given_up = end.shortfall().filter(|_| captured.is_some());
    let end = captured.as_ref().unwrap_or(end);
    let ended = match (found, end) {
        (TargetStatus::Dead | TargetStatus::Canceled, End::Live { id, url, .. }) => {
            let message = format!("Found live after it had ended: {}", url.as_ref().unwrap_or(id));
            note(&mut *tx, key, "late", &message, now).await?;
            tx.commit().await?;
            return Ok(Settled::Late(found));
        }
        (TargetStatus::Dead | TargetStatus::Canceled, _) => return Ok(Settled::Ended(found)),
        // Another attempt settled it.
        (TargetStatus::Published, End::Live { .. }) => return Ok(Settled::Ended(found)),
        (TargetStatus::Published, End::Dead { .. } | End::Canceled { .. }) => {
            // One with no next attempt has lost its rest before, which was told.
            if let Some(why) = end.shortfall().filter(|_| rows[own].next_attempt_at.is_some()) {
                let missing = mark_incomplete(&mut tx, key, &why, now).await?;
                missing::tell_incomplete(&mut tx, key, &missing, now).await?;
            }
            if rows[own].has_replies {
                wake_replies(&mut tx, key.owner, key.post, Replies::To(key.target)).await?;
            }
            tx.commit().await?;
            return Ok(Settled::Ended(found));
        }
        (_, End::Live { .. }) => TargetStatus::Published,
        (_, End::Dead { .. }) => TargetStatus::Dead,
        (_, End::Canceled { .. }) => TargetStatus::Canceled,
    };
    let (id, url) = match end {
        End::Live { id, url, .. } => (Some(id), url.as_ref()),
        End::Dead { .. } | End::Canceled { .. } => (None, None),
    };
    let shortfall = end.shortfall();
    let mut statuses: Vec<_> = rows.iter().map(|row| row.status.0).collect();
    statuses[own] = ended;
    let post_status = roll_up(&statuses);
    let is_first = ended == TargetStatus::Published && rows[own].post_published_at.is_none();
    let message = match end {
        End::Live { id, url, .. } => {
            format!("Published on {}: {}", rows[own].platform, url.as_ref().unwrap_or(id))
        }
        End::Dead { failure, .. } => format!("Failed for good: {failure}"),
        End::Canceled { reason } => format!("Canceled: {reason}"),
    };
    sqlx::query!(
        "with target as (
           update targets
           set status = $2, platform_post_id = coalesce(platform_post_id, $3),
               platform_post_url = coalesce($4, platform_post_url),
               published_at = case when $2 = 'published' then coalesce(published_at, $5) end,
               error_code = $6, error_message = $7, error_source = $8,
               -- A live target is due until its replies and its URL are known.
               next_attempt_at = case when $2 = 'published' and ($4::text is null or exists (
                   select from target_containers c where c.target_id = $1 and not exists (
                     select from publications p
                     where p.target_id = $1 and p.position = c.position and p.platform_id is not null)))
                 then $5::timestamptz end,
               processing_since = null, is_continuation = false, updated_at = $5,
               wait_reason = null, wait_since = null, wait_until = null, look_at = null,
               -- Fences off an attempt under way.
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
        shortfall.as_ref().and_then(|why| why.code).map(|code| code.to_string()),
        shortfall.as_ref().map(|why| &*why.message),
        shortfall.as_ref().map(|why| why.source.as_str()),
        post_status.map(PostStatus::as_str),
        is_first,
        key.post.0,
        key.owner.org.0,
        key.owner.mode.as_str(),
        message
    )
    .execute(&mut *tx)
    .await?;
    let mut missing = Vec::new();
    if let Some(why) = given_up {
        missing = mark_incomplete(&mut tx, key, &why, now).await?;
    }
    if let End::Live { left_out: Some(left_out), .. } = end {
        missing = left_out::record(&mut tx, key, left_out, now).await?;
    }
    let subscribers = events::subscribers(&mut tx, key.owner).await?;
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
                (true, End::Canceled { reason }, _) => Outcome::Failed(reason.to_string()),
                _ => outcome::of(*status, row.platform_post_id.as_deref(), row.error_message.as_deref()),
            };
            (subject, outcome)
        })
        .collect();
    let (subject, round) = (&accounts[own].0, rows[own].round.unsigned_abs());
    let mut new = Vec::new();
    // Settling a target again, after its main container was found live, repeats no event.
    if found != ended {
        new.extend(match end {
            End::Live { id, url, .. } => Some((
                EventName::TargetPublished,
                event::target_published(
                    key.post,
                    key.target,
                    key.owner.org,
                    subject,
                    (id, url.as_deref()),
                    &missing,
                ),
            )),
            // The owner canceled it, and needs no event.
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
    let history = History {
        round: rows[own].post_round.unsigned_abs(),
        has_failed: rows[own].has_failed,
        goes_on: rows.iter().any(|row| row.resumed_round.is_some()),
    };
    let of_post = outcome::events((key.post, key.owner.org), history, is_first, post_status, &accounts);
    let new = new.into_iter().map(|(name, data)| (name, event::in_round(round, data)));
    for (name, data) in new.chain(of_post) {
        let target =
            matches!(name, EventName::TargetPublished | EventName::TargetFailed).then_some(key.target);
        let event = NewEvent { name, post: Some(key.post), target, account: None, data };
        events::append_for(&mut tx, key.owner, now, &event, &subscribers).await?;
    }
    if rows[own].has_replies {
        wake_replies(&mut tx, key.owner, key.post, Replies::To(key.target)).await?;
    }
    tx.commit().await?;
    Ok(Settled::Ended(ended))
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
