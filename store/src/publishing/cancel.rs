//! Cancellation of targets before they are published.
//!
//! The owner caused it, and the row says how: the reason replaces the message of an earlier failure, and is what
//! `post.error` tells.

use crate::decode::Parsed;
use chrono::{DateTime, Utc};
use domain::{CancelReason, ErrorSource, PostId, TargetId, TargetStatus};
use sqlx::PgConnection;
use uuid::Uuid;

/// A target that was to be canceled.
pub(crate) struct Cancellation {
    pub(crate) target: TargetId,
    pub(crate) post: PostId,
    /// False if it may be live, or is: its workflow finishes it, and publishes nothing.
    pub(crate) is_canceled: bool,
    /// True if it was attempted, so that its workflow may wait for a time far in the future.
    pub(crate) was_attempted: bool,
}

/// Cancels those of the targets without a publishing call under way or with an unknown result, and fences off the
/// attempts at all of them.
///
/// The caller has locked their rows in a separate statement: an intent is written under this lock, and one that was
/// written while waiting for it must be visible here.
pub(crate) async fn cancel(
    tx: &mut PgConnection,
    targets: &[Uuid],
    reason: CancelReason,
    now: DateTime<Utc>,
) -> sqlx::Result<Vec<Cancellation>> {
    sqlx::query!(
        r#"with stopped as (
             select t.id, t.status <> 'published' and not exists (
               select from publications p where p.target_id = t.id and p.commit_begun_at is not null) as is_canceled
             from targets t where t.id = any($1))
           update targets t
           set status = case when is_canceled then 'canceled' else t.status end,
               error_code = case when is_canceled then null else t.error_code end,
               error_message = case when is_canceled then $3 else t.error_message end,
               error_source = case when is_canceled then $4 else t.error_source end,
               processing_since = case when is_canceled then null else t.processing_since end,
               next_attempt_at = case when t.status = 'published' then $2::timestamptz end,
               fence = fence + 1, updated_at = $2
           from stopped s where t.id = s.id
           returning t.id, t.post_id, t.attempts, t.status as "status: Parsed<TargetStatus>""#,
        targets,
        now,
        reason.to_string(),
        ErrorSource::User.as_str()
    )
    .map(|row| Cancellation {
        target: row.id.into(),
        post: row.post_id.into(),
        is_canceled: row.status.0 == TargetStatus::Canceled,
        was_attempted: row.attempts > 0,
    })
    .fetch_all(tx)
    .await
}
