//! Parts of a post that its platform doesn't support.

use super::{Replies, TargetKey, lock_post, missing, wake_replies};
use chrono::{DateTime, Utc};
use domain::Missing;
use sqlx::{PgConnection, PgPool, types::Json};

/// Containers of a target that its platform has no place for, or its account no scopes: those from a position on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Position of the first of them.
    pub from: u16,
    /// Names the parts that were left out, and the reason, for the target's `error_message`.
    pub message: String,
}

/// Records on a published target that a part of its post was not published. Nothing failed, so there is no
/// error code; the message is set on the target and appended to the timeline, once.
pub async fn leave_out(
    db: &PgPool,
    key: TargetKey,
    left_out: &LeftOut,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let mut tx = crate::begin(db).await?;
    lock_post(&mut tx, key).await?;
    let missing = record(&mut tx, key, left_out, now).await?;
    missing::tell_resumed(&mut tx, key, &missing, now).await?;
    wake_replies(&mut tx, key.owner, key.post, Replies::To(key.target)).await?;
    tx.commit().await
}

/// Like [`leave_out`], in a transaction. Returns what is missing.
pub(super) async fn record(
    tx: &mut PgConnection,
    key: TargetKey,
    left_out: &LeftOut,
    now: DateTime<Utc>,
) -> sqlx::Result<Vec<Missing>> {
    let missing = sqlx::query_scalar!(
        r#"with target as (
           update targets
           set error_code = null, error_message = $2, error_source = 'user', next_attempt_at = null,
               processing_since = null, updated_at = $3,
               missing = (select jsonb_agg(jsonb_build_object('position', c.position, 'error_code', null,
                   'error_message', $2::text, 'is_left_out', true) order by c.position)
                 from target_containers c where c.target_id = $1 and c.position >= $8)
           where id = $1 and status = 'published'
           returning id, missing),
         logged as (
           insert into timeline (org_id, mode, post_id, target_id, at, kind, message)
           select $4, $5, $6, id, $3, 'left_out', $7 from target
           where not exists (
             select from timeline where post_id = $6 and target_id = $1 and kind = 'left_out'))
         select missing as "missing: Json<Vec<Missing>>" from target"#,
        key.target.0,
        left_out.message,
        now,
        key.owner.org.0,
        key.owner.mode.as_str(),
        key.post.0,
        format!("Published in part: {}", left_out.message),
        left_out.from.cast_signed()
    )
    .fetch_optional(&mut *tx)
    .await?;
    Ok(missing.flatten().map_or_else(Vec::new, |missing| missing.0))
}
