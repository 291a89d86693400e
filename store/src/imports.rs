//! Imports: what an account published by whatever means, brought here page by page.
//!
//! The platform's cursor is kept in the transaction that keeps the posts of its page, so that an import
//! goes on after a crash exactly where its posts end. A page is kept by whoever knows how many are
//! behind: of two attempts at the same page one changes something, and posts are counted once.

use crate::{
    decode::Parsed,
    events::{self, NewEvent},
    outbox,
    page::{Cursor, Page, Request},
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
    /// How far an import has come.
    ImportStatus, "import status" {
        /// Nobody has begun.
        Pending = "pending",
        /// It is under way.
        Running = "running",
        /// All that was asked for is here.
        Completed = "completed",
        /// It ended early; what it brought until then stays.
        Failed = "failed",
    }
}

/// An import.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Import {
    /// Its identifier.
    #[sqlx(try_from = "Uuid")]
    pub id: ImportId,
    /// The account whose posts it brings.
    #[sqlx(try_from = "Uuid")]
    pub account_id: AccountId,
    /// How far it has come.
    #[sqlx(try_from = "Parsed<ImportStatus>")]
    pub status: ImportStatus,
    /// Posts that were published before are left out.
    pub from_date: Option<DateTime<Utc>>,
    /// Posts that were published then or later are left out.
    pub to_date: Option<DateTime<Utc>>,
    /// How many posts are new.
    pub imported_count: i32,
    /// How many were here already.
    pub skipped_count: i32,
    /// Why it failed.
    pub error_message: Option<String>,
    /// When it was begun.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// When it was asked for.
    pub created_at: DateTime<Utc>,
}

/// What is to be imported.
#[derive(Clone, Copy, Debug)]
pub struct NewImport {
    /// Posts that were published before are left out.
    pub from_date: Option<DateTime<Utc>>,
    /// Posts that were published then or later are left out.
    pub to_date: Option<DateTime<Utc>>,
    /// How many posts to look at, the newest first.
    pub limit: i32,
}

/// What asking for an import came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It is on its way.
    Created(Import),
    /// Another of the account is not over.
    Busy,
    /// The account is not connected.
    Unknown,
}

/// How far an open import has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Posts that were published before are left out.
    pub from_date: Option<DateTime<Utc>>,
    /// Posts that were published then or later are left out.
    pub to_date: Option<DateTime<Utc>>,
    /// How many posts may still be looked at.
    pub left: usize,
    /// Where the platform's next page begins.
    pub cursor: Option<String>,
    /// How many pages are behind.
    pub pages: i32,
}

/// A post as its platform lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The platform's id of it.
    pub platform_post_id: String,
    /// Its public address.
    pub platform_post_url: String,
    /// Its text.
    pub content: String,
    /// Addresses of its media.
    pub media: Vec<String>,
    /// Its engagement, as far as the list told it.
    pub metrics: Metrics,
    /// When it was published.
    pub published_at: DateTime<Utc>,
}

/// A page of them, and what comes after it.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportPage {
    /// The posts that were asked for.
    pub posts: Vec<Found>,
    /// Where the next page begins; `None` when nothing more is asked for.
    pub next: Option<String>,
}

/// A post that was imported.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedPost {
    /// Its identifier.
    pub id: Uuid,
    /// The post.
    pub found: Found,
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

/// Asks for an import of a connected account.
pub async fn create(
    db: &PgPool,
    owner: Owner,
    account: AccountId,
    new: NewImport,
    now: DateTime<Utc>,
) -> sqlx::Result<Asked> {
    let mut tx = db.begin().await?;
    // Locked, so that a disconnection ends what was asked for before it, and refuses what comes after.
    let platform = sqlx::query_scalar!(
        "select platform from accounts
         where id = $1 and org_id = $2 and mode = $3 and status <> 'disconnected' for no key update",
        account.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(platform) = platform else { return Ok(Asked::Unknown) };
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
    let Some(import) = created else { return Ok(Asked::Busy) };
    outbox::push(&mut tx, &Message::ImportPosts(ImportRef { import: import.id, owner, account, platform }))
        .await?;
    tx.commit().await?;
    Ok(Asked::Created(import))
}

/// One import of an account.
pub async fn get(
    db: &PgPool,
    owner: Owner,
    account: AccountId,
    id: ImportId,
) -> sqlx::Result<Option<Import>> {
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

/// One page of an account's imports.
pub async fn list(
    db: &PgPool,
    owner: Owner,
    account: AccountId,
    page: Request,
) -> sqlx::Result<Page<Import>> {
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

/// One page of the posts that were imported of an account, newest first.
pub async fn posts(
    db: &PgPool,
    owner: Owner,
    account: AccountId,
    page: Request,
) -> sqlx::Result<Page<ImportedPost>> {
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

/// Where an import is to go on, or `None` when it is over. The first time, it is begun.
pub async fn resume(
    db: &PgPool,
    owner: Owner,
    id: ImportId,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Progress>> {
    sqlx::query!(
        r#"update imports set status = 'running', started_at = coalesce(started_at, $4)
         where id = $1 and org_id = $2 and mode = $3 and status in ('pending', 'running')
         returning from_date, to_date, max_posts - imported_count - skipped_count as "left!", cursor, pages"#,
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        now
    )
    .map(|row| Progress {
        from_date: row.from_date,
        to_date: row.to_date,
        left: row.left.try_into().unwrap_or_default(),
        cursor: row.cursor,
        pages: row.pages,
    })
    .fetch_optional(db)
    .await
}

/// Keeps a page's posts and where the next begins; after the last page the import is completed. An
/// attempt that does not know how many pages are behind changes nothing.
///
/// True when there is more to come.
pub async fn store_page(
    db: &PgPool,
    owner: Owner,
    id: ImportId,
    pages: i32,
    leaf: &ImportPage,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let mut tx = db.begin().await?;
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
    // Another attempt was faster, or the import is over: the next look tells which.
    let Some(account) = account else { return Ok(true) };
    let mut imported = 0;
    // The last first: ids grow, so that of two posts of one moment the list shows the platform's order.
    for post in leaf.posts.iter().rev() {
        imported += insert(&mut tx, owner, account, id, post).await?;
    }
    let skipped = count(leaf.posts.len() as u64 - imported);
    let is_short = sqlx::query_scalar!(
        r#"update imports set cursor = $2, pages = pages + 1, imported_count = imported_count + $3,
           skipped_count = skipped_count + $4
         where id = $1
         returning imported_count + skipped_count < max_posts as "is_short!""#,
        id.0,
        leaf.next,
        count(imported),
        skipped
    )
    .fetch_one(&mut *tx)
    .await?;
    let more = leaf.next.is_some() && is_short;
    if !more {
        end(&mut tx, owner, id, None, now).await?;
    }
    tx.commit().await?;
    Ok(more)
}

/// Ends an import early, unless it is over.
pub async fn fail(
    db: &PgPool,
    owner: Owner,
    id: ImportId,
    reason: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let mut tx = db.begin().await?;
    end(&mut tx, owner, id, Some(reason), now).await?;
    tx.commit().await
}

/// Ends the import of an account that is leaving.
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

/// Ends an import that is not over, and tells of it.
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
    let subscribers = events::subscribers(tx, owner).await?;
    events::append(tx, owner, now, &event, &subscribers).await
}

/// Keeps one post; 0 when it is here already.
async fn insert(
    tx: &mut PgConnection,
    owner: Owner,
    account: Uuid,
    import: ImportId,
    post: &Found,
) -> sqlx::Result<u64> {
    // Postgres keeps no U+0000, and a platform's text may hold anything.
    let clean = |text: &str| text.replace('\0', "\u{fffd}");
    let media: Vec<_> = post.media.iter().map(|address| clean(address)).collect();
    let kept = sqlx::query!(
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
    Ok(kept.rows_affected())
}

fn count(n: u64) -> i32 {
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
        let found = Found {
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
