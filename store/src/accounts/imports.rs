//! Imports of the posts that an account published, in Fanfare or elsewhere, page by page.
//!
//! The platform's cursor is stored in one transaction with the posts of its page, so that an import resumes
//! after a crash exactly after the last stored post. A page is stored only by a caller that names the number
//! of pages stored before: of two attempts at one page, one changes something, and posts are counted once.

use crate::{
    bounds::{Access, Resource},
    decode::{self, Parsed},
    outbox,
    page::{Cursor, Page, Request},
    webhooks::events::{self, NewEvent},
};
use chrono::{DateTime, Utc};
use domain::{
    AccountId, ImportId, Metrics, Owner,
    event::{self, EventName},
    outbox::{ImportRef, Message},
};
use sqlx::{PgConnection, PgPool, QueryBuilder, types::Json};
use uuid::Uuid;

domain::string_enum! {
    /// Status of an import.
    ImportStatus, "import status" {
        /// Created, not started.
        Pending = "pending",
        /// In progress.
        Running = "running",
        /// All requested posts are imported.
        Completed = "completed",
        /// Ended early; the posts imported until then stay.
        Failed = "failed",
    }
}

decode::into_inner!(ImportStatus);

/// An import of an account's posts.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Import {
    /// Import id.
    #[sqlx(try_from = "Uuid")]
    pub id: ImportId,
    /// The account whose posts are imported.
    #[sqlx(try_from = "Uuid")]
    pub account_id: AccountId,
    /// Import status.
    #[sqlx(try_from = "Parsed<ImportStatus>")]
    pub status: ImportStatus,
    /// Earliest publishing time (inclusive).
    pub from_date: Option<DateTime<Utc>>,
    /// Latest publishing time (exclusive).
    pub to_date: Option<DateTime<Utc>>,
    /// Number of new posts.
    pub imported_count: i32,
    /// Number of posts that were imported before.
    pub skipped_count: i32,
    /// Why the import failed.
    pub error_message: Option<String>,
    /// When the import started.
    pub started_at: Option<DateTime<Utc>>,
    /// When the import completed or failed.
    pub finished_at: Option<DateTime<Utc>>,
    /// When the import was requested.
    pub created_at: DateTime<Utc>,
}

/// A request for an import.
#[derive(Clone, Copy, Debug)]
pub struct NewImport {
    /// Earliest publishing time (inclusive).
    pub from_date: Option<DateTime<Utc>>,
    /// Latest publishing time (exclusive).
    pub to_date: Option<DateTime<Utc>>,
    /// Maximum number of posts to read, newest first.
    pub limit: i32,
}

/// The result of requesting an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateResult {
    /// The import was created and queued.
    Created(Import),
    /// Another import of the account is still open.
    AlreadyOpen,
    /// The account is not connected.
    NotConnected,
}

/// The position of an open import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Earliest publishing time (inclusive).
    pub from_date: Option<DateTime<Utc>>,
    /// Latest publishing time (exclusive).
    pub to_date: Option<DateTime<Utc>>,
    /// Maximum number of further posts to read.
    pub remaining: usize,
    /// The platform's cursor of the next page; `None` for the first.
    pub cursor: Option<String>,
    /// Number of pages stored.
    pub pages: i32,
}

/// A post as its platform lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundPost {
    /// The platform's own id of the post.
    pub platform_post_id: String,
    /// Public URL of the post.
    pub platform_post_url: String,
    /// Text of the post.
    pub content: String,
    /// URLs of the post's media.
    pub media: Vec<String>,
    /// Engagement metrics, as far as the platform's list contains them.
    pub metrics: Metrics,
    /// When the post was published.
    pub published_at: DateTime<Utc>,
}

/// A page of a platform's posts.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportPage {
    /// Those posts that the import includes.
    pub posts: Vec<FoundPost>,
    /// The platform's cursor of the next page; `None` when this page is the last to read.
    pub next: Option<String>,
}

/// An imported post.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedPost {
    /// Id of the imported post.
    pub id: Uuid,
    /// The post as its platform listed it.
    pub found: FoundPost,
}

macro_rules! returning {
    ($head:literal, $($arg:expr),+ $(,)?) => {
        sqlx::query_as!(
            Import,
            $head + r#" returning id, account_id, status as "status: Parsed<ImportStatus>", from_date, to_date,
                 imported_count, skipped_count, error_message, started_at, finished_at, created_at"#,
            $($arg),+
        )
    };
}

/// Creates an import of a connected account and queues it.
pub async fn create(
    db: &PgPool,
    access: Access<'_>,
    account: AccountId,
    new: NewImport,
    now: DateTime<Utc>,
) -> sqlx::Result<CreateResult> {
    let Some(owner) = access.reach(db, Resource::Account, account.0).await? else {
        return Ok(CreateResult::NotConnected);
    };
    let mut tx = crate::begin(db).await?;
    // Locked, so that a disconnection fails imports created before it and prevents later ones.
    let platform = sqlx::query_scalar!(
        "select platform from accounts
         where id = $1 and org_id = $2 and mode = $3 and status <> 'disconnected' for no key update",
        account.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(platform) = platform else { return Ok(CreateResult::NotConnected) };
    let created = returning!(
        "insert into imports (id, org_id, mode, account_id, from_date, to_date, max_posts, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)
         on conflict (account_id) where status in ('pending', 'running') do nothing",
        Uuid::now_v7(),
        owner.org.0,
        owner.mode.as_str(),
        account.0,
        new.from_date,
        new.to_date,
        new.limit,
        now
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(import) = created else { return Ok(CreateResult::AlreadyOpen) };
    outbox::push(&mut tx, &Message::ImportPosts(ImportRef { import: import.id, owner, account, platform }))
        .await?;
    tx.commit().await?;
    Ok(CreateResult::Created(import))
}

/// Returns an import of an account.
pub async fn get(
    db: &PgPool,
    access: Access<'_>,
    account: AccountId,
    id: ImportId,
) -> sqlx::Result<Option<Import>> {
    let Some(owner) = access.reach(db, Resource::Account, account.0).await? else { return Ok(None) };
    sqlx::query_as!(
        Import,
        r#"select id, account_id, status as "status: Parsed<ImportStatus>", from_date, to_date, imported_count,
             skipped_count, error_message, started_at, finished_at, created_at
           from imports where id = $1 and account_id = $2 and org_id = $3 and mode = $4"#,
        id.0,
        account.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await
}

/// Returns one page of an account's imports.
pub async fn list(
    db: &PgPool,
    access: Access<'_>,
    account: AccountId,
    page: Request,
) -> sqlx::Result<Page<Import>> {
    let Some(owner) = access.reach(db, Resource::Account, account.0).await? else {
        return Ok(Page::empty());
    };
    let mut query = QueryBuilder::new(
        "select id, account_id, status, from_date, to_date, imported_count, skipped_count, error_message,
                started_at, finished_at, created_at
         from imports where account_id = ",
    );
    query.push_bind(account.0).push(" and org_id = ").push_bind(owner.org.0);
    query.push(" and mode = ").push_bind(owner.mode.as_str());
    page.close(&mut query);
    let rows = query.build_query_as::<Import>().fetch_all(db).await?;
    Ok(page.page(rows, |import| Cursor { created_at: import.created_at, id: import.id.0 }))
}

/// Returns one page of an account's imported posts, newest first.
pub async fn posts(
    db: &PgPool,
    access: Access<'_>,
    account: AccountId,
    page: Request,
) -> sqlx::Result<Page<ImportedPost>> {
    let Some(owner) = access.reach(db, Resource::Account, account.0).await? else {
        return Ok(Page::empty());
    };
    let mut query = QueryBuilder::new(
        "select id, platform_post_id, platform_post_url, content, media, metrics, published_at
         from imported_posts where account_id = ",
    );
    query.push_bind(account.0).push(" and org_id = ").push_bind(owner.org.0);
    query.push(" and mode = ").push_bind(owner.mode.as_str());
    page.close_by("published_at", &mut query);
    let rows = query.build_query_as::<Row>().fetch_all(db).await?;
    let posts = rows.into_iter().map(ImportedPost::from).collect();
    Ok(page.page(posts, |post: &ImportedPost| Cursor { created_at: post.found.published_at, id: post.id }))
}

/// Returns where an import continues, or `None` when it has ended. The first call starts the import.
pub async fn resume(
    db: &PgPool,
    owner: Owner,
    id: ImportId,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Progress>> {
    sqlx::query!(
        r#"update imports set status = 'running', started_at = coalesce(started_at, $4)
         where id = $1 and org_id = $2 and mode = $3 and status in ('pending', 'running')
         returning from_date, to_date, max_posts - imported_count - skipped_count as "remaining!",
           cursor, pages"#,
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        now
    )
    .map(|row| Progress {
        from_date: row.from_date,
        to_date: row.to_date,
        remaining: row.remaining.try_into().unwrap_or_default(),
        cursor: row.cursor,
        pages: row.pages,
    })
    .fetch_optional(db)
    .await
}

/// Stores a page's posts and the cursor of the next page; completes the import after the last page. An
/// attempt with another number of stored `pages` changes nothing.
///
/// Returns whether there are more pages.
pub async fn store_page(
    db: &PgPool,
    owner: Owner,
    id: ImportId,
    pages: i32,
    page: &ImportPage,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let mut tx = crate::begin(db).await?;
    let account = sqlx::query_scalar!(
        "select account_id from imports
         where id = $1 and org_id = $2 and mode = $3 and status = 'running' and pages = $4
         for no key update",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        pages
    )
    .fetch_optional(&mut *tx)
    .await?;
    // Another attempt stored the page, or the import has ended: the next `resume` tells which.
    let Some(account) = account else { return Ok(true) };
    let mut imported = 0;
    // The last first: ids grow, so posts published at the same moment keep the platform's order.
    for post in page.posts.iter().rev() {
        imported += insert(&mut tx, owner, account, id, post).await?;
    }
    let skipped = to_i32(page.posts.len() as u64 - imported);
    let has_room = sqlx::query_scalar!(
        r#"update imports set cursor = $2, pages = pages + 1, imported_count = imported_count + $3,
           skipped_count = skipped_count + $4
         where id = $1
         returning imported_count + skipped_count < max_posts as "has_room!""#,
        id.0,
        page.next,
        to_i32(imported),
        skipped
    )
    .fetch_one(&mut *tx)
    .await?;
    let has_more = page.next.is_some() && has_room;
    if !has_more {
        end(&mut tx, owner, id, None, now).await?;
    }
    tx.commit().await?;
    Ok(has_more)
}

/// Fails an import, unless it has ended.
pub async fn fail(
    db: &PgPool,
    owner: Owner,
    id: ImportId,
    reason: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let mut tx = crate::begin(db).await?;
    end(&mut tx, owner, id, Some(reason), now).await?;
    tx.commit().await
}

/// Fails the open import of an account that is being disconnected.
pub(crate) async fn abandon(
    tx: &mut PgConnection,
    owner: Owner,
    account: AccountId,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let open = sqlx::query_scalar!(
        "select id from imports
         where account_id = $1 and org_id = $2 and mode = $3 and status in ('pending', 'running')",
        account.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(&mut *tx)
    .await?;
    match open {
        Some(id) => end(tx, owner, id.into(), Some("the account was disconnected"), now).await,
        None => Ok(()),
    }
}

/// Ends an open import and appends its event.
async fn end(
    tx: &mut PgConnection,
    owner: Owner,
    id: ImportId,
    reason: Option<&str>,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let ended = returning!(
        "update imports set status = case when $4::text is null then 'completed' else 'failed' end,
           error_message = $4, started_at = coalesce(started_at, $5), finished_at = $5
         where id = $1 and org_id = $2 and mode = $3 and status in ('pending', 'running')",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        reason,
        now
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(import) = ended else { return Ok(()) };
    let data = event::import(owner.org, id, import.account_id, import.imported_count, reason);
    let name = if reason.is_none() { EventName::ImportCompleted } else { EventName::ImportFailed };
    let event = NewEvent { name, post: None, target: None, account: Some(import.account_id), data };
    events::append(tx, owner, now, &event).await
}

/// Inserts one post; returns the number of new rows, 0 when it was imported before.
async fn insert(
    tx: &mut PgConnection,
    owner: Owner,
    account: Uuid,
    import: ImportId,
    post: &FoundPost,
) -> sqlx::Result<u64> {
    // Postgres cannot store U+0000, which a platform's text may contain.
    let clean = |text: &str| text.replace('\0', "\u{fffd}");
    let media: Vec<_> = post.media.iter().map(|address| clean(address)).collect();
    let inserted = sqlx::query!(
        "insert into imported_posts (id, org_id, mode, account_id, import_id, platform_post_id,
           platform_post_url, content, media, metrics, published_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         on conflict on constraint imported_posts_identity_key do nothing",
        Uuid::now_v7(),
        owner.org.0,
        owner.mode.as_str(),
        account,
        import.0,
        clean(&post.platform_post_id),
        clean(&post.platform_post_url),
        clean(&post.content),
        &media,
        Json(post.metrics) as _,
        post.published_at
    )
    .execute(tx)
    .await?;
    Ok(inserted.rows_affected())
}

fn to_i32(n: u64) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    platform_post_id: String,
    platform_post_url: String,
    content: String,
    media: Vec<String>,
    metrics: Json<Metrics>,
    published_at: DateTime<Utc>,
}

impl From<Row> for ImportedPost {
    fn from(row: Row) -> Self {
        let found = FoundPost {
            platform_post_id: row.platform_post_id,
            platform_post_url: row.platform_post_url,
            content: row.content,
            media: row.media,
            metrics: row.metrics.0,
            published_at: row.published_at,
        };
        Self { id: row.id, found }
    }
}
