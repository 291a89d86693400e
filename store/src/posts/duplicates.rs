//! Posts with the same main text on the same account, found by the digest of the text.

use crate::bounds::{Access, Resource};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{AccountId, PostId};
use sqlx::PgPool;
use std::collections::HashMap;

/// A post with the same text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The post; `None` if the caller does not reach it.
    pub post: Option<PostId>,
    /// When it was published, or is to be.
    pub at: DateTime<Utc>,
    /// True if it was published.
    pub is_published: bool,
}

/// Returns for each account the latest post with the same main text that it published less than `window` before
/// or after `due`, or is to publish then. Letter case and white space don't count; drafts and what was canceled,
/// unpublished or failed for good neither. A post that was deleted after it was published is still live.
pub async fn find(
    db: &PgPool,
    access: Access<'_>,
    accounts: &[AccountId],
    text: &str,
    due: DateTime<Utc>,
    window: TimeDelta,
) -> sqlx::Result<HashMap<AccountId, Duplicate>> {
    if text.trim().is_empty() {
        return Ok(HashMap::new());
    }
    let ids = accounts.iter().map(|account| account.0).collect();
    let (owner, ids) = access.reach_all(db, Resource::Account, ids).await?;
    let rows = sqlx::query!(
        r#"select distinct on (t.account_id) t.account_id, t.post_id, at.at as "at!",
             t.status = 'published' as "is_published!"
           from containers c join posts p on p.id = c.post_id
             join targets t on t.post_id = p.id and t.variant = c.variant,
             lateral (select coalesce(t.published_at,
               greatest(coalesce(t.scheduled_at, p.scheduled_at), p.created_at)) as at) at
           where c.org_id = $1 and c.mode = $2 and c.position = 0 and text_digest(c.content) = text_digest($3)
             and t.account_id = any($4) and p.reply_to is null
             and (t.status = 'published' and t.unpublished_at is null
                  or t.status in ('pending', 'queued', 'failed') and p.status <> 'draft')
             and at.at > $5 and at.at < $6
           order by t.account_id, at.at desc"#,
        owner.org.0,
        owner.mode.as_str(),
        text,
        &ids,
        due - window,
        due + window
    )
    .fetch_all(db)
    .await?;
    let posts = rows.iter().map(|row| row.post_id).collect();
    let (_, reached) = access.reach_all(db, Resource::Post, posts).await?;
    let found = rows.into_iter().map(|row| {
        let post = reached.contains(&row.post_id).then_some(PostId(row.post_id));
        let duplicate = Duplicate { post, at: row.at, is_published: row.is_published };
        (row.account_id.into(), duplicate)
    });
    Ok(found.collect())
}
