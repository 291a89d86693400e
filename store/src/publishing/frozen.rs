//! Targets that wait because an operator froze their platform, account or organization.
//!
//! Such a target waits by the time of its next attempt, as one whose account rests: it costs no attempt, holds no
//! slot, and its workflow looks at the row a few times a day. [`crate::publishing::freezes::release`] writes an earlier time
//! and wakes the workflow. A publishing call that was begun before is still looked up, which publishes nothing.

use super::TargetKey;
use chrono::{DateTime, Utc};
use domain::ErrorCode;
use sqlx::{PgConnection, PgPool};
use std::time::Duration;
use uuid::Uuid;

/// Time after which a target looks again whether it is still frozen, if no release woke it.
const LOOK_INTERVAL: Duration = Duration::from_secs(6 * 3600);

/// The freeze that a target meets.
pub(super) struct Freeze<'a> {
    pub(super) id: Uuid,
    pub(super) kind: &'a str,
    pub(super) platform: &'a str,
    pub(super) reason: &'a str,
}

/// Returns false if a freeze was released meanwhile. A release waits for the lock, and so finds every target that waits for
/// it.
pub(super) async fn is_open(tx: &mut PgConnection, freeze: &Freeze<'_>) -> sqlx::Result<bool> {
    let open = sqlx::query_scalar!(
        "select id from freezes where id = $1 and released_at is null for share",
        freeze.id
    )
    .fetch_optional(tx)
    .await?;
    Ok(open.is_some())
}

/// Lets a target wait until it is released. Returns when it looks again, by the database's clock.
pub(super) async fn wait(
    tx: &mut PgConnection,
    key: TargetKey,
    freeze: &Freeze<'_>,
    is_new: bool,
) -> sqlx::Result<DateTime<Utc>> {
    let what = match freeze.kind {
        "platform" => format!("to {}", freeze.platform),
        "account" => "to this account".to_owned(),
        _ => "of this organization".to_owned(),
    };
    let message = format!(
        "an operator of the service has frozen publishing {what}: {}. It goes on when that is released",
        freeze.reason.trim_end_matches('.')
    );
    sqlx::query_scalar!(
        r#"with frozen as (
             update targets
             set status = case status when 'pending' then 'queued' else status end, freeze_id = $2,
                 error_code = $3, error_message = $4, error_source = $5,
                 -- A platform's processing is not awaited meanwhile, so that its window begins again.
                 processing_since = null,
                 next_attempt_at = clock_timestamp() + make_interval(secs => $6 * (0.9 + 0.2 * random())),
                 updated_at = clock_timestamp()
             where id = $1
             returning id, post_id, org_id, mode, updated_at, next_attempt_at),
           logged as (
             insert into timeline (org_id, mode, post_id, target_id, at, kind, message, detail)
             select org_id, mode, post_id, id, updated_at, 'frozen', $4, jsonb_build_object('error_code', $3)
             from frozen where $7)
           select next_attempt_at as "next!" from frozen"#,
        key.target.0,
        freeze.id,
        ErrorCode::Frozen.to_string(),
        message,
        ErrorCode::Frozen.source().as_str(),
        LOOK_INTERVAL.as_secs_f64(),
        is_new
    )
    .fetch_one(tx)
    .await
}

/// Returns whether a target is frozen.
pub async fn is_frozen(db: &PgPool, key: TargetKey) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (
             select from targets t, open_freezes(t.platform, t.account_id, t.org_id, t.mode)
             where t.id = $1 and t.org_id = $2 and t.mode = $3) as "is_frozen!""#,
        key.target.0,
        key.owner.org.0,
        key.owner.mode.as_str()
    )
    .fetch_one(db)
    .await
}
