//! Parts of a post that its platform doesn't support.

use super::{Replies, TargetKey, wake_replies};
use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};

/// Records on a published target that a part of its post was not published. Nothing failed, so there is no
/// error code; the message is set on the target and appended to the timeline, once.
pub async fn leave_out(db: &PgPool, key: TargetKey, message: &str, now: DateTime<Utc>) -> sqlx::Result<()> {
    let mut tx = crate::begin(db).await?;
    record(&mut tx, key, message, now).await?;
    wake_replies(&mut tx, key.owner, key.post, Replies::To(key.target)).await?;
    tx.commit().await
}

/// Like [`leave_out`], in a transaction.
pub(super) async fn record(
    tx: &mut PgConnection,
    key: TargetKey,
    message: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "with target as (
           update targets
           set error_code = null, error_message = $2, error_source = 'user', next_attempt_at = null,
               processing_since = null, updated_at = $3
           where id = $1 and status = 'published'
           returning id)
         insert into timeline (org_id, mode, post_id, target_id, at, kind, message)
         select $4, $5, $6, id, $3, 'left_out', $7 from target
         where not exists (select from timeline where post_id = $6 and target_id = $1 and kind = 'left_out')",
        key.target.0,
        message,
        now,
        key.owner.org.0,
        key.owner.mode.as_str(),
        key.post.0,
        format!("Published in part: {message}")
    )
    .execute(tx)
    .await?;
    Ok(())
}
