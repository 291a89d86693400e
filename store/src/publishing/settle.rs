//! The end of a target: its status, its post's, and their events. [`domain::publishing::settle()`] decides which.

use super::{
    LeftOut, Replies, TargetKey, left_out, lock_post,
    missing::{self, Shortfall, mark_incomplete},
    note,
    outcome::{self, History},
    wake_replies,
};
use crate::{
    decode::Parsed,
    webhooks::events::{self, NewEvent},
};
use chrono::{DateTime, Utc};
use domain::{
    CancelReason, ErrorSource, Failure, Missing, PostStatus, TargetStatus,
    event::{self, EventAccount, EventName, Outcome},
    publishing::{
        self, Rules,
        settle::{Decision, EndKind, Ending, Snapshot},
    },
};
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

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
    fn kind(&self) -> EndKind {
        match self {
            Self::Live { .. } => EndKind::Live,
            Self::Dead { .. } => EndKind::Dead,
            Self::Canceled { .. } => EndKind::Canceled,
        }
    }

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
    let rows = read(&mut tx, key).await?;
    let Some(index) = rows.iter().position(|row| row.id == key.target.0) else {
        return Ok(Settled::Ended(TargetStatus::Canceled));
    };
    let own = &rows[index];
    let targets: Vec<_> = rows.iter().map(|row| row.status).collect();
    let snapshot = Snapshot {
        end: end.kind(),
        fence,
        row_fence: own.fence,
        post: own.post_status,
        version: own.version,
        started: key.version,
        is_post_live: own.post_published_at.is_some(),
        targets: &targets,
        index,
        is_captured: own.platform_post_id.is_some(),
        is_due: own.next_attempt_at.is_some(),
    };
    let settled = match publishing::settle(Rules::PROTOCOL, &snapshot) {
        Decision::Superseded => return Ok(Settled::Superseded),
        Decision::Stale => return Ok(Settled::Stale),
        Decision::Ended(status) => return Ok(Settled::Ended(status)),
        Decision::Late(status) => {
            if let End::Live { id, url, .. } = end {
                let message = format!("Found live after it had ended: {}", url.as_ref().unwrap_or(id));
                note(&mut *tx, key, "late", &message, now).await?;
            }
            Settled::Late(status)
        }
        Decision::StaysLive { loses_rest } => {
            if let Some(why) = end.shortfall().filter(|_| loses_rest) {
                let missing = mark_incomplete(&mut tx, key, &why, now).await?;
                missing::tell_incomplete(&mut tx, key, &missing, now).await?;
            }
            wake(&mut tx, key, own).await?;
            Settled::Ended(own.status)
        }
        Decision::End(ending) => {
            write(&mut tx, key, (&rows[..], index), end, ending, now).await?;
            wake(&mut tx, key, own).await?;
            Settled::Ended(ending.status)
        }
    };
    tx.commit().await?;
    Ok(settled)
}

/// Columns of a target, its post and its account.
struct Row {
    post_published_at: Option<DateTime<Utc>>,
    post_status: PostStatus,
    version: i32,
    post_round: i32,
    has_failed: bool,
    id: Uuid,
    status: TargetStatus,
    fence: i32,
    platform_post_id: Option<String>,
    round: i32,
    error_message: Option<String>,
    account_id: Uuid,
    platform: String,
    username: String,
    next_attempt_at: Option<DateTime<Utc>>,
    resumed_round: Option<i32>,
    /// True for the target that is to end, if its post has replies.
    has_replies: bool,
}

/// Returns the targets of a post.
async fn read(tx: &mut PgConnection, key: TargetKey) -> sqlx::Result<Vec<Row>> {
    sqlx::query_as!(
        Row,
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
    .fetch_all(tx)
    .await
}

/// Lets the replies to a target look at it again.
async fn wake(tx: &mut PgConnection, key: TargetKey, own: &Row) -> sqlx::Result<()> {
    if own.has_replies {
        wake_replies(tx, key.owner, key.post, Replies::To(key.target)).await?;
    }
    Ok(())
}

/// Writes the end of a target, and appends its events.
async fn write(
    tx: &mut PgConnection,
    key: TargetKey,
    (rows, index): (&[Row], usize),
    end: &End,
    ending: Ending,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let own = &rows[index];
    let id = own.platform_post_id.as_ref().filter(|_| ending.is_captured);
    let captured = id.map(|id| End::Live { id: id.clone(), url: None, left_out: None });
    let given_up = end.shortfall().filter(|_| captured.is_some());
    let end = captured.as_ref().unwrap_or(end);
    write_status(tx, key, &own.platform, end, ending, now).await?;
    let mut missing = Vec::new();
    if let Some(why) = given_up {
        missing = mark_incomplete(tx, key, &why, now).await?;
    }
    if let End::Live { left_out: Some(left_out), .. } = end {
        missing = left_out::record(tx, key, left_out, now).await?;
    }
    let subscribers = events::subscribers(tx, key.owner).await?;
    for (name, data) in events_of(key, (rows, index), end, ending, &missing) {
        let target =
            matches!(name, EventName::TargetPublished | EventName::TargetFailed).then_some(key.target);
        let event = NewEvent { name, post: Some(key.post), target, account: None, data };
        events::append_for(tx, key.owner, now, &event, &subscribers).await?;
    }
    Ok(())
}

/// Writes the final status of a target, and that of its post.
async fn write_status(
    tx: &mut PgConnection,
    key: TargetKey,
    platform: &str,
    end: &End,
    ending: Ending,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let (id, url) = match end {
        End::Live { id, url, .. } => (Some(id), url.as_ref()),
        End::Dead { .. } | End::Canceled { .. } => (None, None),
    };
    let shortfall = end.shortfall();
    let message = match end {
        End::Live { id, url, .. } => format!("Published on {platform}: {}", url.as_ref().unwrap_or(id)),
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
                   select from open_containers c where c.target_id = $1))
                 then $5::timestamptz end,
               processing_since = null, is_continuation = false, unanswered = 0, updated_at = $5,
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
        ending.status.as_str(),
        id,
        url,
        now,
        shortfall.as_ref().and_then(|why| why.code).map(|code| code.to_string()),
        shortfall.as_ref().map(|why| &*why.message),
        shortfall.as_ref().map(|why| why.source.as_str()),
        ending.post.map(PostStatus::as_str),
        ending.is_first,
        key.post.0,
        key.owner.org.0,
        key.owner.mode.as_str(),
        message
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns the events of the end of a target: its own, and those that follow for its post.
fn events_of(
    key: TargetKey,
    (rows, index): (&[Row], usize),
    end: &End,
    ending: Ending,
    missing: &[Missing],
) -> Vec<(EventName, Value)> {
    let accounts: Vec<_> = rows
        .iter()
        .enumerate()
        .map(|(position, row)| {
            let subject = EventAccount {
                account: row.account_id.into(),
                network: row.platform.clone(),
                username: row.username.clone(),
            };
            let outcome = match end {
                _ if position != index => {
                    outcome::of(row.status, row.platform_post_id.as_deref(), row.error_message.as_deref())
                }
                End::Live { id, .. } => Outcome::Live(id.clone()),
                End::Dead { failure, .. } => Outcome::Failed(failure.message.clone()),
                End::Canceled { reason } => Outcome::Failed(reason.to_string()),
            };
            (subject, outcome)
        })
        .collect();
    let (own, subject) = (&rows[index], &accounts[index].0);
    let new = match end {
        End::Live { id, url, .. } => {
            let address = (id.as_str(), url.as_deref());
            let data =
                event::target_published(key.post, key.target, key.owner.org, subject, address, missing);
            Some((EventName::TargetPublished, data))
        }
        // The owner canceled it, and needs no event.
        End::Canceled { .. } => None,
        End::Dead { failure, .. } => {
            let (code, message) = (failure.code.to_string(), &failure.message);
            let data = event::target_failed(key.post, key.target, key.owner.org, subject, &code, message);
            Some((EventName::TargetFailed, data))
        }
    };
    let history = History {
        round: own.post_round.unsigned_abs(),
        has_failed: own.has_failed,
        goes_on: rows.iter().any(|row| row.resumed_round.is_some()),
    };
    let of_post =
        outcome::events((key.post, key.owner.org), history, ending.is_first, ending.post, &accounts);
    let round = own.round.unsigned_abs();
    let new = new.into_iter().map(|(name, data)| (name, event::in_round(round, data)));
    new.chain(of_post).collect()
}
