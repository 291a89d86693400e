//! Waits: an attempt that can neither publish nor fail returns only with a wait that its target's row contains.
//!
//! [`domain::publishing::wait()`] decides how long. The next look is in the row as well as the end, and the sweeper finds a
//! target by it whose workflow is gone. [`Look`] is made by what has written it only.

use super::{Attempt, TargetKey, note};
use chrono::{DateTime, Utc};
use domain::{
    Then, Wait, WaitReason,
    publishing::{self, Rules, wait::RowWait},
};
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

/// Lets the target of an attempt wait, which then counts as none.
// Model: Wait.
pub async fn wait(db: &PgPool, attempt: &Attempt, wait: Wait) -> sqlx::Result<Waits> {
    let Some(row) = publishing::wait(Rules::PROTOCOL, attempt.waiting, attempt.begun_at, &wait) else {
        return Ok(Waits::Over(wait.then));
    };
    let failure = wait.failure.as_ref();
    let next = sqlx::query_scalar!(
        r#"with waiting as (
             update targets
             set attempts = greatest(attempts - $3, 0), unanswered = 0, wait_reason = $4, wait_since = $5, wait_until = $6,
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
                 select from open_containers c where c.target_id = targets.id))
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
        row.reason.as_str(),
        row.since,
        row.until,
        row.look_after.as_secs_f64(),
        failure.map(|failure| failure.code.to_string()),
        failure.map(|failure| failure.message.as_str()),
        failure.map(|failure| failure.code.source().as_str()),
        row.is_new
    )
    .fetch_optional(db)
    .await?;
    Ok(match next {
        Some(_) => Waits::Until(Look { pause: row.look_after, is_new: row.is_new }),
        None => Waits::Superseded,
    })
}

/// Lets a target wait for what it needs before an attempt. `message` is for the timeline.
pub(super) async fn wait_before(
    tx: &mut PgConnection,
    key: TargetKey,
    wait: RowWait,
    message: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<Look> {
    sqlx::query!(
        "update targets
         set wait_reason = $2, wait_since = $3, wait_until = $4, look_at = $5::timestamptz + make_interval(secs => $6)
         where id = $1",
        key.target.0,
        wait.reason.as_str(),
        wait.since,
        wait.until,
        now,
        wait.look_after.as_secs_f64()
    )
    .execute(&mut *tx)
    .await?;
    if wait.is_new {
        note(tx, key, "waiting", message, now).await?;
    }
    Ok(Look { pause: wait.look_after, is_new: wait.is_new })
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
