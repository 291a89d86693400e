//! Imports of an account's earlier posts.
//!
//! A worker pages through the platform's list; this module starts imports and reads their results.

use crate::{
    accounts::{find, platform},
    http::{
        body::Json,
        caller::{AccountsRead, AccountsWrite, Call, Caller},
        page::List,
        problem::{Code, Issue, Problem},
        query::Query,
    },
    openapi::{tag::Tag, validate::Rules},
    types::{
        enum_string::EnumString,
        metrics::Figures,
        timestamp::{TimeBound, Timestamp},
    },
};
use platforms::Feature;
use poem_openapi::{ApiResponse, Object, OpenApi, param::Path};
use serde_json::{Map, Value};
use store::accounts::imports::{self, CreateResult, ImportStatus};
use uuid::Uuid;

/// Default number of posts that an import reads.
const DEFAULT_MAX_POSTS: i32 = 100;

/// The operations on imports.
pub struct Imports;

#[OpenApi(tag = "Tag::Accounts")]
impl Imports {
    /// Import earlier posts
    ///
    /// Imports the newest posts of an account within the range, including posts not published through this
    /// service. Posts that an earlier import brought are skipped and counted. The import runs in the
    /// background, respects the platform's rate limits, and ends with `import.completed` or `import.failed`.
    /// One import at a time per account. Scope `accounts:write`.
    #[oai(path = "/social-accounts/:id/imports", method = "post", operation_id = "createImport")]
    async fn create(
        &self,
        caller: Caller<AccountsWrite>,
        id: Path<String>,
        body: Json<NewImport>,
    ) -> Result<Begun, Problem> {
        Ok(Begun::New(Json(create(&caller.call(), &id, body.0).await?)))
    }

    /// List imports
    ///
    /// Lists an account's imports, newest first. Scope `accounts:read`.
    #[oai(path = "/social-accounts/:id/imports", method = "get", operation_id = "listImports")]
    async fn list(
        &self,
        caller: Caller<AccountsRead>,
        id: Path<String>,
        query: Query<Paging>,
    ) -> Result<Json<ImportPage>, Problem> {
        Ok(Json(list(&caller.call(), &id, query.0).await?))
    }

    /// Get an import
    ///
    /// Returns the import's progress or result. Scope `accounts:read`.
    #[oai(path = "/social-accounts/:id/imports/:import_id", method = "get", operation_id = "getImport")]
    async fn get(
        &self,
        caller: Caller<AccountsRead>,
        id: Path<String>,
        import_id: Path<String>,
    ) -> Result<Json<Import>, Problem> {
        Ok(Json(get(&caller.call(), &id, &import_id).await?))
    }

    /// List imported posts
    ///
    /// Lists an account's imported posts, latest publication first. Scope `accounts:read`.
    #[oai(path = "/social-accounts/:id/imported-posts", method = "get", operation_id = "listImportedPosts")]
    async fn posts(
        &self,
        caller: Caller<AccountsRead>,
        id: Path<String>,
        query: Query<Paging>,
    ) -> Result<Json<ImportedPostPage>, Problem> {
        Ok(Json(posts(&caller.call(), &id, query.0).await?))
    }
}

/// Starts an import.
pub async fn create(call: &Call<'_>, id: &str, body: NewImport) -> Result<Import, Problem> {
    let account = find(call, id).await?;
    let platform = platform(&account)?;
    if platform.history.is_none() {
        let detail = format!("{} does not list an account's earlier posts", account.platform);
        return Err(Problem::new(Code::Unprocessable, detail));
    }
    if let Some(detail) = platform.explain(Feature::Import, &account.scopes) {
        return Err(Problem::new(Code::Unprocessable, detail));
    }
    let new = imports::NewImport {
        from_date: body.from_date.map(|date| date.0),
        to_date: body.to_date.map(|date| date.0),
        limit: body.limit.unwrap_or(DEFAULT_MAX_POSTS),
    };
    match imports::create(call.db(), call.access(), account.id, new, call.now()).await? {
        CreateResult::Created(import) => Ok(import.into()),
        CreateResult::AlreadyOpen => {
            Err(Problem::new(Code::Conflict, "another import of the account is in progress"))
        }
        CreateResult::NotConnected => Err(Problem::not_found("social account")),
    }
}

/// Lists an account's imports.
pub async fn list(call: &Call<'_>, id: &str, paging: Paging) -> Result<ImportPage, Problem> {
    let account = find(call, id).await?.id;
    let list = List::Imports(account);
    let page = list.request(call, paging.limit, paging.cursor.as_deref())?;
    let found = imports::list(call.db(), call.access(), account, page).await?;
    let next_cursor = list.next(call, found.next);
    Ok(ImportPage { data: found.items.into_iter().map(Import::from).collect(), next_cursor })
}

/// Returns an import.
pub async fn get(call: &Call<'_>, id: &str, import_id: &str) -> Result<Import, Problem> {
    let account = find(call, id).await?.id;
    let missing = || Problem::not_found("import");
    let import = import_id.parse().map_err(|_| missing())?;
    let found = imports::get(call.db(), call.access(), account, import).await?;
    found.map(Import::from).ok_or_else(missing)
}

/// Lists an account's imported posts.
pub async fn posts(call: &Call<'_>, id: &str, paging: Paging) -> Result<ImportedPostPage, Problem> {
    let account = find(call, id).await?.id;
    let list = List::ImportedPosts(account);
    let page = list.request(call, paging.limit, paging.cursor.as_deref())?;
    let found = imports::posts(call.db(), call.access(), account, page).await?;
    let next_cursor = list.next(call, found.next);
    Ok(ImportedPostPage { data: found.items.into_iter().map(ImportedPost::from).collect(), next_cursor })
}

/// An import to start.
#[derive(Debug, Object)]
pub struct NewImport {
    /// Skip posts published before this time, or before this date in UTC.
    pub from_date: Option<TimeBound>,
    /// Skip posts published at or after this time, or on this date in UTC or later.
    pub to_date: Option<TimeBound>,
    /// Maximum number of posts to read, newest first, including skipped ones. 100 by default.
    #[oai(validator(minimum(value = "1"), maximum(value = "1000")))]
    pub limit: Option<i32>,
}

impl Rules for NewImport {
    const IS_OPTIONAL: bool = true;

    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        let time = |name: &str| TimeBound::read(body.get(name)?.as_str()?);
        if let (Some(from), Some(to)) = (time("from_date"), time("to_date"))
            && from.0 >= to.0
        {
            issues.push(Issue::custom(["to_date"], "Must be later than from_date"));
        }
    }
}

/// A page of a list.
#[derive(Debug, Default, Object)]
pub struct Paging {
    /// Page size, 1 to 100; values outside are clamped. 25 by default.
    pub limit: Option<i64>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

impl Rules for Paging {}

/// The response to starting an import.
#[derive(ApiResponse)]
enum Begun {
    /// It is on its way.
    #[oai(status = 202)]
    New(Json<Import>),
}

/// An import of an account's earlier posts.
#[derive(Debug, Object)]
pub struct Import {
    /// The import's id.
    pub id: Uuid,
    /// Id of the account.
    pub social_account_id: Uuid,
    /// Status. Posts that a `failed` import brought are kept.
    pub status: EnumString<ImportStatus>,
    /// Skip posts published before this time.
    #[oai(nullable)]
    pub from_date: Option<Timestamp>,
    /// Skip posts published at or after this time.
    #[oai(nullable)]
    pub to_date: Option<Timestamp>,
    /// Number of posts imported so far.
    pub imported_count: i32,
    /// Number of posts skipped because they were imported before.
    pub skipped_count: i32,
    /// Error of a failed import.
    #[oai(nullable)]
    pub error_message: Option<String>,
    /// Start time.
    #[oai(nullable)]
    pub started_at: Option<Timestamp>,
    /// End time.
    #[oai(nullable)]
    pub finished_at: Option<Timestamp>,
    /// Creation time.
    pub created_at: Timestamp,
}

impl From<imports::Import> for Import {
    fn from(import: imports::Import) -> Self {
        Self {
            id: import.id.0,
            social_account_id: import.account_id.0,
            status: EnumString::of(import.status.as_str()),
            from_date: import.from_date.map(Timestamp),
            to_date: import.to_date.map(Timestamp),
            imported_count: import.imported_count,
            skipped_count: import.skipped_count,
            error_message: import.error_message,
            started_at: import.started_at.map(Timestamp),
            finished_at: import.finished_at.map(Timestamp),
            created_at: import.created_at.into(),
        }
    }
}

/// A page of imports.
#[derive(Debug, Object)]
pub struct ImportPage {
    /// The imports, newest first.
    pub data: Vec<Import>,
    /// Cursor of the next page; null on the last page.
    #[oai(nullable)]
    pub next_cursor: Option<String>,
}

/// A post imported from a platform.
#[derive(Debug, Object)]
pub struct ImportedPost {
    /// The imported post's id.
    pub id: Uuid,
    /// The platform's id of the post.
    pub platform_post_id: String,
    /// Public URL.
    pub platform_post_url: String,
    /// Text of the post.
    pub content: String,
    /// Media of the post.
    pub media: Vec<ImportedMedium>,
    /// Publication time.
    pub published_at: Timestamp,
    /// Engagement at the time of import, as far as the platform lists it.
    pub metrics: Figures,
}

impl From<imports::ImportedPost> for ImportedPost {
    fn from(imports::ImportedPost { id, found }: imports::ImportedPost) -> Self {
        Self {
            id,
            platform_post_id: found.platform_post_id,
            platform_post_url: found.platform_post_url,
            content: found.content,
            media: found.media.into_iter().map(|url| ImportedMedium { url }).collect(),
            published_at: found.published_at.into(),
            metrics: found.metrics.into(),
        }
    }
}

/// A media file of an imported post.
#[derive(Debug, Object)]
pub struct ImportedMedium {
    /// The platform's URL of the file, which may expire.
    pub url: String,
}

/// A page of imported posts.
#[derive(Debug, Object)]
pub struct ImportedPostPage {
    /// The posts, latest publication first.
    pub data: Vec<ImportedPost>,
    /// Cursor of the next page; null on the last page.
    #[oai(nullable)]
    pub next_cursor: Option<String>,
}
