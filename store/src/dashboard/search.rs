//! Search over everything of an owner: by id, and by name.

use crate::bounds::Whole;
use chrono::{DateTime, Utc};
use domain::PostId;
use sqlx::PgPool;
use uuid::Uuid;

/// The latest media that are searched by name.
const LATEST_MEDIA: i64 = 5_000;

/// Resource that an id leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Located {
    /// A post: its own id, or that of a target.
    Post(PostId),
    /// An account.
    Account(Uuid),
    /// A media asset.
    Medium(Uuid),
    /// A webhook endpoint: its own id, or that of a delivery.
    Webhook(Uuid),
    /// An API key.
    Key(Uuid),
}

/// Returns what an id of the owner leads to; `None` if nothing has it.
pub async fn locate(db: &PgPool, owner: Whole, id: Uuid) -> sqlx::Result<Option<Located>> {
    let row = sqlx::query!(
        r#"select 'post' as "kind!", id as "id!" from posts
             where id = $3 and org_id = $1 and mode = $2 and deleted_at is null
           union all select 'post', t.post_id from targets t join posts p on p.id = t.post_id
             where t.id = $3 and t.org_id = $1 and t.mode = $2 and p.deleted_at is null
           union all select 'account', id from accounts where id = $3 and org_id = $1 and mode = $2
           union all select 'medium', id from media where id = $3 and org_id = $1 and mode = $2 and deleted_at is null
           union all select 'webhook', id from webhooks
             where id = $3 and org_id = $1 and mode = $2 and deleted_at is null
           union all select 'webhook', webhook_id from deliveries where id = $3 and org_id = $1 and mode = $2
           union all select 'key', id from api_keys where id = $3 and org_id = $1 and mode = $2
           limit 1"#,
        owner.org.0,
        owner.mode.as_str(),
        id
    )
    .fetch_optional(db)
    .await?;
    Ok(row.and_then(|row| match row.kind.as_str() {
        "post" => Some(Located::Post(PostId(row.id))),
        "account" => Some(Located::Account(row.id)),
        "medium" => Some(Located::Medium(row.id)),
        "webhook" => Some(Located::Webhook(row.id)),
        "key" => Some(Located::Key(row.id)),
        _ => None,
    }))
}

/// Something that has the text in its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Platform id, kind of file, or other detail.
    pub detail: String,
    /// When it was created.
    pub created_at: DateTime<Utc>,
}

/// Makes a pattern of `like` that finds a text anywhere.
fn pattern(text: &str) -> String {
    let mut pattern = String::from("%");
    for letter in text.chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern + "%"
}

/// Returns connected accounts with a text in their handle or name.
pub async fn accounts(db: &PgPool, owner: Whole, text: &str, limit: i64) -> sqlx::Result<Vec<Hit>> {
    sqlx::query_as!(
        Hit,
        "select id, username as name, platform as detail, created_at from accounts
         where org_id = $1 and mode = $2 and status <> 'disconnected' and (username ilike $3 or display_name ilike $3)
         order by created_at desc, id desc limit $4",
        owner.org.0,
        owner.mode.as_str(),
        pattern(text),
        limit
    )
    .fetch_all(db)
    .await
}

/// Returns files with a text in their name, among the latest.
pub async fn media(db: &PgPool, owner: Whole, text: &str, limit: i64) -> sqlx::Result<Vec<Hit>> {
    sqlx::query_as!(
        Hit,
        r#"select id as "id!", filename as "name!", kind as "detail!", created_at as "created_at!" from (
             select id, filename, kind, created_at from media
             where org_id = $1 and mode = $2 and deleted_at is null
             order by created_at desc, id desc limit $5) latest
           where filename ilike $3 order by created_at desc, id desc limit $4"#,
        owner.org.0,
        owner.mode.as_str(),
        pattern(text),
        limit,
        LATEST_MEDIA
    )
    .fetch_all(db)
    .await
}

/// Returns webhook endpoints with a text in their address or description.
pub async fn webhooks(db: &PgPool, owner: Whole, text: &str, limit: i64) -> sqlx::Result<Vec<Hit>> {
    sqlx::query_as!(
        Hit,
        r#"select id, url as name, coalesce(description, '') as "detail!", created_at from webhooks
           where org_id = $1 and mode = $2 and deleted_at is null and (url ilike $3 or description ilike $3)
           order by created_at desc, id desc limit $4"#,
        owner.org.0,
        owner.mode.as_str(),
        pattern(text),
        limit
    )
    .fetch_all(db)
    .await
}

/// Returns API keys with a text in their name, or with these last four characters.
pub async fn keys(db: &PgPool, owner: Whole, text: &str, limit: i64) -> sqlx::Result<Vec<Hit>> {
    sqlx::query_as!(
        Hit,
        r#"select id, name, '…' || last_four as "detail!", created_at from api_keys
           where org_id = $1 and mode = $2 and revoked_at is null and client is null
             and (name ilike $3 or last_four = right($4, 4))
           order by created_at desc, id desc limit $5"#,
        owner.org.0,
        owner.mode.as_str(),
        pattern(text),
        text,
        limit
    )
    .fetch_all(db)
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_as_it_is() {
        assert_eq!(pattern("50%_a\\b"), "%50\\%\\_a\\\\b%");
    }
}
