//! Waits: an attempt that can neither publish nor fail returns only with a wait that its target's row contains.
//!
//! A wait costs no attempt. So it has an end in the row, and its next look is in the row as well, by which the sweeper
//! finds a target whose workflow is gone. It is noted in the timeline once, and again after a requested retry, but not at
//! each look. [`Look`] is made by what has written it only.

use super::{Attempt, TargetKey};
use chrono::{DateTime, Utc};
use domain::{Then, Wait, WaitReason};
use sqlx::{PgConnection, PgPool};
use std::time::Duration;

/// The next look at a target, which its row contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pause: Duration,
    is_new: bool,
}

impl Look {
    /// The look that the row contains already.
    pub(super) fn of_row(pause: Duration) -> Self {
        Self { pause, is_new: false }
    }

    /// Time until the look, by the database's clock.
    pub fn pause(self) -> Duration {
        self.pause
    }

    /// Returns true if the timeline did not tell of the wait before.
    pub fn is_new(self) -> bool {
        self.is_new
    }
}

/// The result of letting a target wait.
#[derive(Debug)]
pub enum Waits {
    /// It waits.
    Until(Look),
    /// It has waited for too long.
    Over(Then),
    /// Another attempt has begun since, or an earlier one has published everything.
    Superseded,
}

/// A wait that an attempt found in the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Reason of the wait.
    pub reason: WaitReason,
    /// Since when.
    pub since: DateTime<Utc>,
    /// When that ends; `None` for a slot.
    pub until: Option<DateTime<Utc>>,
    /// True if a retry has been requested since the timeline told of the wait: what comes of it is told again.
    pub is_retried: bool,
}

/// Returns true if the timeline does not tell yet that a target waits for this.
pub(super) fn is_untold(waiting: Option<Waiting>, reason: WaitReason) -> bool {
    waiting.is_none_or(|waiting| waiting.reason != reason || waiting.is_retried)
}

/// Lets the target of an attempt wait, which then counts as none.
// Model: Wait.
pub async fn wait(db: &PgPool, attempt: &Attempt, wait: Wait) -> sqlx::Result<Waits> {
    let before = attempt.waiting;
    // Waits that follow one another without an attempt that got further end together, with the longest of them.
    let until = before.and_then(|before| before.until).map_or(wait.until, |until| until.max(wait.until));
    if attempt.begun_at >= until {
        return Ok(Waits::Over(wait.then));
    }
    let since = before.map_or(attempt.begun_at, |before| before.since);
    let is_new = is_untold(before, wait.reason);
    let failure = wait.failure.as_ref();
    let next = sqlx::query_scalar!(
        r#"with waiting as (
             update targets
             set attempts = greatest(attempts - $3, 0), wait_reason = $4, wait_since = $5, wait_until = $6,
                 look_at = clock_timestamp() + make_interval(secs => $7),
                 status = case when $8::text is null or status = 'published' then status else 'failed' end,
                 error_code = coalesce($8, error_code),
                 error_message = case when $8 is null then error_message else $9 end,
                 error_source = case when $8 is null then error_source else $10 end,
                 is_continuation = is_continuation and $8 is null,
                 -- A retry may have been requested while this attempt was under way.
                 next_attempt_at = case when $8 is null then next_attempt_at
                   else coalesce(case when status <> 'published' then next_attempt_at end,
                     clock_timestamp() + make_interval(secs => $7)) end,
                 updated_at = clock_timestamp()
             where id = $1 and fence = $2 and status not in ('dead', 'canceled')
               and (status <> 'published' or platform_post_url is null or exists (
                 select from target_containers c where c.target_id = targets.id and not exists (
                   select from publications p
                   where p.target_id = $1 and p.position = c.position and p.platform_id is not null)))
             returning id, post_id, org_id, mode, updated_at, look_at),
           logged as (
             insert into timeline (org_id, mode, post_id, target_id, at, kind, message, detail)
             select org_id, mode, post_id, id, updated_at, 'waiting', $8 || ': ' || $9,
               jsonb_build_object('error_code', $8, 'reason', $4::text)
             from waiting where $11 and $8 is not null)
           select look_at as "next!" from waiting"#,
        attempt.key.target.0,
        attempt.fence,
        i32::from(attempt.is_counted),
        wait.reason.as_str(),
        since,
        until,
        wait.look_after.as_secs_f64(),
        failure.map(|failure| failure.code.to_string()),
        failure.map(|failure| failure.message.as_str()),
        failure.map(|failure| failure.code.source().as_str()),
        is_new
    )
    .fetch_optional(db)
    .await?;
    Ok(match next {
        Some(_) => Waits::Until(Look { pause: wait.look_after, is_new }),
        None => Waits::Superseded,
    })
}

/// A wait before an attempt.
pub(super) struct Before<'a> {
    pub(super) reason: WaitReason,
    pub(super) pause: Duration,
    pub(super) until: DateTime<Utc>,
    /// For the timeline.
    pub(super) message: &'a str,
}

/// Lets a target wait for what it needs before an attempt. `waiting` is what it waited for at the last look. Returns
/// `None` when it has waited for too long.
pub(super) async fn wait_before(
    tx: &mut PgConnection,
    key: TargetKey,
    waiting: Option<Waiting>,
    wait: Before<'_>,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Look>> {
    if now >= wait.until {
        return Ok(None);
    }
    let is_new = is_untold(waiting, wait.reason);
    sqlx::query!(
        "with waiting as (
           update targets
           set wait_reason = $2, wait_since = $3, wait_until = $4, look_at = $5::timestamptz + make_interval(secs => $6)
           where id = $1
           returning id, post_id, org_id, mode)
         insert into timeline (org_id, mode, post_id, target_id, at, kind, message)
         select org_id, mode, post_id, id, $5, 'waiting', $7 from waiting where $8",
        key.target.0,
        wait.reason.as_str(),
        since(waiting, wait.reason, now),
        wait.until,
        now,
        wait.pause.as_secs_f64(),
        wait.message,
        is_new
    )
    .execute(tx)
    .await?;
    Ok(Some(Look { pause: wait.pause, is_new }))
}

/// Returns since when a target waits for something that it needs before an attempt.
pub(super) fn since(waiting: Option<Waiting>, reason: WaitReason, now: DateTime<Utc>) -> DateTime<Utc> {
    waiting.filter(|waiting| waiting.reason == reason).map_or(now, |waiting| waiting.since)
}

/// Records when a target that got no slot looks again. Its turn ends the wait; whatever else it waits for goes on.
pub async fn await_slot(db: &PgPool, key: TargetKey, pause: Duration) -> sqlx::Result<()> {
    sqlx::query!(
        "update targets
         set look_at = clock_timestamp() + make_interval(secs => $4), wait_reason = coalesce(wait_reason, $5),
             wait_since = coalesce(wait_since, clock_timestamp())
         where id = $1 and org_id = $2 and mode = $3 and status not in ('dead', 'canceled')",
        key.target.0,
        key.owner.org.0,
        key.owner.mode.as_str(),
        pause.as_secs_f64(),
        WaitReason::Slot.as_str()
    )
    .execute(db)
    .await?;
    Ok(())
}
