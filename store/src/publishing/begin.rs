//! The beginning of an attempt: what it needs to know is read, [`domain::publishing::begin()`] decides, and what it
//! decides is written, all in one transaction.

use super::{
    Attempt, Entry, Look, TargetKey,
    frozen::{self, Freeze},
    holds, known_code, replying, waits,
};
use crate::{
    Transaction,
    accounts::grants::account_grant,
    decode::Parsed,
    posts::{Attachment, Container},
};
use chrono::{DateTime, Utc};
use domain::{
    ErrorCode, Failure, PostId, PostStatus, TargetId, TargetStatus, WaitReason, overrides,
    publishing::{
        self, Parent, Place, Publication, Purpose, Rules,
        begin::{Answers, Decision, Question, Rest, Snapshot, Start},
        wait::{RowWait, Waiting},
    },
};
use serde_json::Value;
use sqlx::{PgConnection, PgPool, types::Json};
use std::time::Duration;
use uuid::Uuid;

/// Message of a target whose account rests.
const RESTS: &str =
    "the platform throttled another post of the account, which takes none before its wait is over";

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

/// Begins an attempt.
///
/// The post's row is locked: an edit, a deletion and the first attempt compete for it, and the first wins.
/// Continuing after the platform processed the post doesn't count as an attempt. An attempt before the time
/// in the row is rejected, so that a workflow can be restarted at any moment. So is one of a target that operators
/// froze, unless it has a call to look up.
// Model: Begin.
pub async fn begin(db: &PgPool, key: TargetKey, purpose: Purpose) -> sqlx::Result<BeginResult> {
    let mut tx = crate::begin(db).await?;
    let Some(row) = lock(&mut tx, key).await? else { return without_row(&mut tx, key).await };
    let mut entries = read_entries(&mut tx, key.target).await?;
    let begun_at = clock(&mut tx).await?;
    let mut is_set_back = false;
    for entry in &mut entries {
        is_set_back |= set_back(&mut tx, key.target, entry, begun_at).await?;
    }
    let publications: Vec<_> = entries.iter().map(Entry::publication).collect();
    let parent = row.parent();
    let mut target = Target { tx, key, row, entries, begun_at, file: None };
    let snapshot = target.snapshot(purpose, is_set_back, &publications, parent.as_ref());
    let mut answers = Answers::default();
    loop {
        match publishing::begin(Rules::PROTOCOL, &snapshot, &answers) {
            Decision::Ask(question) => target.answer(question, &mut answers).await?,
            Decision::Ended(status) => return Ok(BeginResult::Ended(status)),
            Decision::Stale => return Ok(BeginResult::Stale),
            Decision::Early(pause) => return Ok(BeginResult::Early(Look::of_row(pause))),
            Decision::Failed { pause, code, number } => {
                let failure = Failure::new(code, target.row.error_message.unwrap_or_default());
                return Ok(BeginResult::Failed { pause, failure, number });
            }
            Decision::Wait(wait) => return target.wait(wait).await,
            Decision::Freeze { is_new } => return target.freeze(is_new).await,
            Decision::Rest(rest) => return target.rest(rest).await,
            Decision::Begin(start) => return target.start(start).await,
        }
    }
}

/// A target in the transaction of its attempt.
struct Target {
    tx: Transaction,
    key: TargetKey,
    row: Row,
    entries: Vec<Entry>,
    begun_at: DateTime<Utc>,
    /// Name of a file that is still being fetched or read.
    file: Option<String>,
}

/// Columns of a target, its post and its account.
struct Row {
    post_status: PostStatus,
    version: i32,
    created_at: DateTime<Utc>,
    deleted_at: Option<DateTime<Utc>>,
    due_at: DateTime<Utc>,
    scheduled_at: Option<DateTime<Utc>>,
    block: Option<Value>,
    status: TargetStatus,
    processing_since: Option<DateTime<Utc>>,
    is_continuation: bool,
    attempts: i32,
    token_attempts: i32,
    next_attempt_at: Option<DateTime<Utc>>,
    throttled_since: Option<DateTime<Utc>>,
    free_attempts: i32,
    unanswered: i32,
    platform_post_url: Option<String>,
    unpublish_until: Option<DateTime<Utc>>,
    reply_to: Option<Uuid>,
    reply_root: Option<String>,
    reply_parent: Option<String>,
    stop_reason: Option<String>,
    error_code: Option<String>,
    error_message: Option<String>,
    /// The freeze whose end it waits for.
    waits_for: Option<Uuid>,
    wait_reason: Option<String>,
    wait_since: Option<DateTime<Utc>>,
    wait_until: Option<DateTime<Utc>>,
    is_retried: bool,
    account_id: Uuid,
    platform: String,
    network_unique_id: String,
    username: String,
    account_type: String,
    social_network_id: Option<Uuid>,
    grant_sealed: Option<Vec<u8>>,
    grant_version: i64,
    scopes: Vec<String>,
    account_status: String,
    rests_until: Option<DateTime<Utc>>,
    held_app: Option<String>,
    hold_message: Option<String>,
    freeze_id: Option<Uuid>,
    /// Kind of the freeze.
    frozen: Option<String>,
    freeze_reason: Option<String>,
}

impl Row {
    fn error_code(&self) -> Option<ErrorCode> {
        known_code(self.error_code.as_deref())
    }

    fn waiting(&self) -> Option<Waiting> {
        let reason = self.wait_reason.as_deref().and_then(|reason| reason.parse().ok());
        let waiting =
            |(reason, since)| Waiting { reason, since, until: self.wait_until, is_retried: self.is_retried };
        reason.zip(self.wait_since).map(waiting)
    }

    fn parent(&self) -> Option<Parent> {
        let (root, last) = self.reply_root.clone().zip(self.reply_parent.clone())?;
        Some(Parent { root, last })
    }

    fn freeze(&self) -> Option<Freeze<'_>> {
        Some(Freeze {
            id: self.freeze_id?,
            kind: self.frozen.as_deref()?,
            platform: &self.platform,
            reason: self.freeze_reason.as_deref()?,
        })
    }
}

impl Target {
    fn snapshot<'a>(
        &self,
        purpose: Purpose,
        is_set_back: bool,
        publications: &'a [Publication],
        parent: Option<&'a Parent>,
    ) -> Snapshot<'a> {
        let row = &self.row;
        Snapshot {
            purpose,
            now: self.begun_at,
            status: row.status,
            post: row.post_status,
            version: row.version,
            started: self.key.version,
            scheduled_at: row.scheduled_at,
            next_attempt_at: row.next_attempt_at,
            is_set_back,
            unpublish_until: row.unpublish_until,
            attempts: row.attempts,
            free_attempts: row.free_attempts,
            is_continuation: row.is_continuation,
            throttled_since: row.throttled_since,
            error_code: row.error_code(),
            waiting: row.waiting(),
            publications,
            is_stopped: row.stop_reason.is_some(),
            is_disconnected: row.account_status == "disconnected",
            is_deleted: row.deleted_at.is_some(),
            is_reply: row.reply_to.is_some(),
            parent,
            is_frozen: row.freeze().is_some(),
            knows_freeze: row.waits_for == row.freeze_id,
            rests_until: row.rests_until,
            is_app_held: row.held_app.is_some() && row.hold_message.is_some(),
        }
    }

    /// Answers a question of the decision, with the locks that it needs.
    async fn answer(&mut self, question: Question, answers: &mut Answers) -> sqlx::Result<()> {
        let (tx, row) = (&mut self.tx, &self.row);
        match question {
            Question::File => {
                self.file = awaited_file(tx, self.key, &self.entries).await?;
                answers.awaits_file = Some(self.file.is_some());
            }
            Question::Parent => {
                let post = PostId(row.reply_to.expect("the post replies to another one"));
                let account = row.account_id.into();
                answers.parent = Some(replying::find(tx, self.key, post, account, self.begun_at).await?);
            }
            Question::Freeze => {
                let freeze = row.freeze().expect("the target is frozen");
                answers.is_freeze_open = Some(frozen::is_open(tx, &freeze).await?);
            }
            Question::App => {
                let app = row.held_app.as_deref().expect("the app is held");
                answers.app_until = Some(holds::wait_or_look(tx, app, self.key.target).await?);
            }
        }
        Ok(())
    }

    /// Lets the target wait for what it needs before an attempt.
    async fn wait(mut self, wait: RowWait) -> sqlx::Result<BeginResult> {
        let message = match &self.file {
            Some(filename) if wait.reason == WaitReason::File => {
                format!("Waits for the file {filename}, which is being fetched and read")
            }
            _ => "Waits until the post that it replies to is live".to_owned(),
        };
        let look = waits::wait_before(&mut self.tx, self.key, wait, &message, self.begun_at).await?;
        self.tx.commit().await?;
        Ok(BeginResult::Early(look))
    }

    /// Lets the target wait until it is released.
    async fn freeze(mut self, is_new: bool) -> sqlx::Result<BeginResult> {
        let freeze = self.row.freeze().expect("the target is frozen");
        let next = frozen::wait(&mut self.tx, self.key, &freeze, is_new).await?;
        let pause = (next - self.begun_at).to_std().unwrap_or_default();
        self.tx.commit().await?;
        Ok(BeginResult::Held { pause, code: ErrorCode::Frozen, is_new })
    }

    /// Lets the target wait until the others go on, and a little longer: all of them together would be throttled again. One
    /// whose account rests waits as if it had been throttled itself.
    async fn rest(mut self, rest: Rest) -> sqlx::Result<BeginResult> {
        let message = match rest.reason {
            WaitReason::App => self.row.hold_message.as_deref().unwrap_or_default(),
            _ => RESTS,
        };
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
                   jsonb_build_object('error_code', $2, 'next_attempt_at', json_time(next_attempt_at))
                 from resting where $9)
               select next_attempt_at as "next!" from resting"#,
            self.key.target.0,
            rest.code.to_string(),
            message,
            rest.code.source().as_str(),
            rest.until,
            rest.since,
            rest.reason.as_str(),
            rest.ends_at,
            rest.is_untold,
            rest.code == ErrorCode::RateLimited
        )
        .fetch_one(&mut *self.tx)
        .await?;
        self.tx.commit().await?;
        let pause = (next - self.begun_at).to_std().unwrap_or_default();
        Ok(BeginResult::Held { pause, code: rest.code, is_new: rest.is_new })
    }

    /// Begins the attempt.
    async fn start(mut self, start: Start) -> sqlx::Result<BeginResult> {
        let attempts = self.row.attempts + i32::from(start.is_counted);
        let fence = raise_fence(&mut self.tx, self.key, &start, attempts, self.begun_at).await?;
        self.tx.commit().await?;
        let code = self.row.error_code().filter(|_| !start.was_frozen);
        let row = self.row;
        let mut account = account_grant!(row, row.account_id.into());
        if start.needs_no_grant {
            account.grant_sealed = None;
        }
        let last_failure = code.map(|code| Failure::new(code, row.error_message.unwrap_or_default()));
        Ok(BeginResult::Attempt(Box::new(Attempt {
            key: self.key,
            fence,
            status: row.status,
            attempts: attempts.unsigned_abs(),
            free_attempts: row.free_attempts.unsigned_abs(),
            unanswered: row.unanswered.unsigned_abs(),
            is_counted: start.is_counted,
            token_attempts: row.token_attempts.unsigned_abs(),
            throttled_since: row.throttled_since,
            processing_since: row.processing_since,
            begun_at: self.begun_at,
            created_at: row.created_at,
            due_at: row.due_at,
            settings: overrides::settings(&row.block.unwrap_or_default(), row.account_id.into()),
            account,
            scopes: row.scopes,
            is_account_active: row.account_status == "active",
            place: start.place,
            barred: start.barred,
            is_app_held: row.held_app.is_some(),
            stop_reason: row.stop_reason,
            last_failure,
            waiting: start.waiting,
            waited_in_vain: start.waited_in_vain,
            url: row.platform_post_url,
            entries: self.entries,
        })))
    }
}

/// Locks a target with its post, and returns its row.
async fn lock(tx: &mut PgConnection, key: TargetKey) -> sqlx::Result<Option<Row>> {
    sqlx::query_as!(
        Row,
        r#"select p.status as "post_status: Parsed<PostStatus>", p.version, p.created_at, p.deleted_at,
             greatest(coalesce(t.scheduled_at, p.scheduled_at, p.created_at), p.created_at) as "due_at!",
             coalesce(t.scheduled_at, p.scheduled_at) as scheduled_at,
             p.default_config -> t.platform as block,
             t.status as "status: Parsed<TargetStatus>", t.processing_since, t.is_continuation, t.attempts,
             t.token_attempts, t.next_attempt_at, t.throttled_since, t.free_attempts, t.unanswered,
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
               select id, kind, reason from open_freezes(a.platform, a.id, p.org_id, p.mode)
               order by created_at limit 1) f on true
           where p.id = $1 and t.id = $2 and p.org_id = $3 and p.mode = $4
           for no key update of p, t"#,
        key.post.0,
        key.target.0,
        key.owner.org.0,
        key.owner.mode.as_str()
    )
    .fetch_optional(tx)
    .await
}

/// Returns the result for a target that has no row. An edit that removed the account deleted it. A post that doesn't exist
/// at all was lost with its database: its workflow ends.
async fn without_row(tx: &mut PgConnection, key: TargetKey) -> sqlx::Result<BeginResult> {
    let is_known = sqlx::query_scalar!(
        r#"select exists (select from posts where id = $1 and org_id = $2 and mode = $3) as "is_known!""#,
        key.post.0,
        key.owner.org.0,
        key.owner.mode.as_str()
    )
    .fetch_one(tx)
    .await?;
    Ok(if is_known { BeginResult::Stale } else { BeginResult::Ended(TargetStatus::Canceled) })
}

/// Returns a target's containers, each with its state.
async fn read_entries(tx: &mut PgConnection, target: TargetId) -> sqlx::Result<Vec<Entry>> {
    let entries = sqlx::query!(
        r#"select c.id as "id!", c.position as "position!", c.content as "content!",
             c.media as "media!: Json<Vec<Attachment>>", p.checkpoint as "checkpoint?",
             p.commit_begun_at as "commit_begun_at?", p.commit_deadline as "commit_deadline?",
             p.doubted_since as "doubted_since?", p.commit_ended_at as "commit_ended_at?",
             p.ambiguous_error_code as "ambiguous_error_code?",
             p.accepted as "accepted?", p.is_restored as "is_restored?", p.platform_id as "platform_id?"
           from target_containers c left join publications p on p.target_id = c.target_id and p.position = c.position
           where c.target_id = $1 order by c.position"#,
        target.0
    )
    .fetch_all(tx)
    .await?;
    let entries = entries
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
            ambiguous_error_code: known_code(row.ambiguous_error_code.as_deref()),
            accepted: row.accepted.unwrap_or(false),
            is_restored: row.is_restored.unwrap_or(false),
            platform_id: row.platform_id,
        })
        .collect();
    Ok(entries)
}

/// Corrects the times of an intent that lies in the future. Returns false if it doesn't.
async fn set_back(
    tx: &mut PgConnection,
    target: TargetId,
    entry: &mut Entry,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let times = entry.call_times().filter(|_| entry.platform_id.is_none());
    let Some(times) = times.and_then(|times| times.set_back(now)) else { return Ok(false) };
    entry.commit_begun_at = Some(times.begun_at);
    entry.commit_deadline = times.deadline;
    entry.commit_ended_at = times.ended_at;
    entry.doubted_since = times.doubted_since;
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
    Ok(true)
}

/// Returns the database's current time.
async fn clock(tx: &mut PgConnection) -> sqlx::Result<DateTime<Utc>> {
    sqlx::query_scalar!(r#"select clock_timestamp() as "now!""#).fetch_one(tx).await
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

/// Gives the target to the attempt. Returns its fence.
async fn raise_fence(
    tx: &mut PgConnection,
    key: TargetKey,
    start: &Start,
    attempts: i32,
    begun_at: DateTime<Utc>,
) -> sqlx::Result<i32> {
    let parent = match &start.place {
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
               attempts = $7, fence = fence + 1, unanswered = unanswered + 1, freeze_id = null,
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
        start.is_first,
        key.owner.org.0,
        key.owner.mode.as_str(),
        attempts,
        start.is_counted,
        parent.map(|parent| parent.root.as_str()),
        parent.map(|parent| parent.last.as_str()),
        start.was_frozen,
        start.waiting.is_some()
    )
    .fetch_one(tx)
    .await?;
    Ok(begun.fence)
}
