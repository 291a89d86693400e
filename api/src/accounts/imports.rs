//! Imports: what an account published by whatever means, brought here.
//!
//! A worker pages through the platform's list; here it is asked for, and what came of it is read.

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
    types::{enum_string::EnumString, metrics::Figures, timestamp::Timestamp},
};
use poem_openapi::{ApiResponse, Object, OpenApi, param::Path};
use serde_json::{Map, Value};
use store::imports::{self, Asked, ImportStatus};
use uuid::Uuid;

/// How many posts an import looks at when nobody says.
const DEFAULT_MAX_POSTS: i32 = 100;

/// The operations on imports.
pub struct Imports;

#[OpenApi(tag = "Tag::Accounts")]
impl Imports {
    /// Import earlier posts
    ///
    /// Brings the newest posts of an account within the range, by whatever means they were published, as
    /// its platform lists them. Those that an earlier import brought are skipped and counted. It goes on by
    /// itself, waits where the platform asks for that, and ends with `import.completed` or
    /// `import.failed`. One at a time for each account. Scope `accounts:write`.
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
    /// Those of an account, newest first. Scope `accounts:read`.
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
    /// How far it has come, or what came of it. Scope `accounts:read`.
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
    /// Of an account, those that were published last first. Scope `accounts:read`.
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

/// Asks for an import.
pub async fn create(call: &Call<'_>, id: &str, body: NewImport) -> Result<Import, Problem> {
    let account = find(call, id).await?;
    if platform(&account)?.history().is_none() {
        let detail = format!("{} does not list an account's earlier posts", account.platform);
        return Err(Problem::new(Code::Unprocessable, detail));
    }
    let new = imports::NewImport {
        from_date: body.from_date.map(|date| date.0),
        to_date: body.to_date.map(|date| date.0),
        limit: body.limit.unwrap_or(DEFAULT_MAX_POSTS),
    };
    match imports::create(call.db(), call.owner, account.id, new, call.now()).await? {
        Asked::Created(import) => Ok(import.into()),
        Asked::Busy => Err(Problem::new(Code::Conflict, "another import of the account is under way")),
        Asked::Unknown => Err(Problem::not_found("social account")),
    }
}

/// One page of an account's imports.
pub async fn list(call: &Call<'_>, id: &str, paging: Paging) -> Result<ImportPage, Problem> {
    let account = find(call, id).await?.id;
    let list = List::Imports(account);
    let page = list.request(call, paging.limit, paging.cursor.as_deref())?;
    let found = imports::list(call.db(), call.owner, account, page).await?;
    let next_cursor = list.next(call, found.next);
    Ok(ImportPage { data: found.items.into_iter().map(Import::from).collect(), next_cursor })
}

/// One import.
pub async fn get(call: &Call<'_>, id: &str, import_id: &str) -> Result<Import, Problem> {
    let account = find(call, id).await?.id;
    let missing = || Problem::not_found("import");
    let import = import_id.parse().map_err(|_| missing())?;
    let found = imports::get(call.db(), call.owner, account, import).await?;
    found.map(Import::from).ok_or_else(missing)
}

/// One page of the posts that were imported of an account.
pub async fn posts(call: &Call<'_>, id: &str, paging: Paging) -> Result<ImportedPostPage, Problem> {
    let account = find(call, id).await?.id;
    let list = List::ImportedPosts(account);
    let page = list.request(call, paging.limit, paging.cursor.as_deref())?;
    let found = imports::posts(call.db(), call.owner, account, page).await?;
    let next_cursor = list.next(call, found.next);
    Ok(ImportedPostPage { data: found.items.into_iter().map(ImportedPost::from).collect(), next_cursor })
}

/// What is to be imported.
#[derive(Debug, Object)]
pub struct NewImport {
    /// Leaves out what was published before.
    pub from_date: Option<Timestamp>,
    /// Leaves out what was published then or later.
    pub to_date: Option<Timestamp>,
    /// How many posts to look at, the newest first, those that are skipped included. 100 by default.
    #[oai(validator(minimum(value = "1"), maximum(value = "1000")))]
    pub limit: Option<i32>,
}

impl Rules for NewImport {
    const IS_OPTIONAL: bool = true;

    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        let time = |name: &str| Timestamp::read(body.get(name)?.as_str()?);
        if let (Some(from), Some(to)) = (time("from_date"), time("to_date"))
            && from.0 >= to.0
        {
            issues.push(Issue::custom(["to_date"], "Must be later than from_date"));
        }
    }
}

/// Which page of a list.
#[derive(Debug, Default, Object)]
pub struct Paging {
    /// How many to list, 1 to 100; values beyond are clamped. 25 by default.
    pub limit: Option<i64>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

impl Rules for Paging {}

/// The answer to asking for an import.
#[derive(ApiResponse)]
enum Begun {
    /// It is on its way.
    #[oai(status = 202)]
    New(Json<Import>),
}

/// An import of an account's earlier posts.
#[derive(Debug, Object)]
pub struct Import {
    /// Its identifier.
    pub id: Uuid,
    /// The account.
    pub social_account_id: Uuid,
    /// How far it has come. What a `failed` one brought until then stays.
    pub status: EnumString<ImportStatus>,
    /// Leaves out what was published before.
    #[oai(nullable)]
    pub from_date: Option<Timestamp>,
    /// Leaves out what was published then or later.
    #[oai(nullable)]
    pub to_date: Option<Timestamp>,
    /// How many posts it brought so far.
    pub imported_count: i32,
    /// How many were here already.
    pub skipped_count: i32,
    /// Why it failed.
    #[oai(nullable)]
    pub error_message: Option<String>,
    /// When it was begun.
    #[oai(nullable)]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[oai(nullable)]
    pub finished_at: Option<Timestamp>,
    /// When it was asked for.
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
    /// Where the next page begins; null on the last.
    #[oai(nullable)]
    pub next_cursor: Option<String>,
}

/// A post that was published by whatever means.
#[derive(Debug, Object)]
pub struct ImportedPost {
    /// Its identifier.
    pub id: Uuid,
    /// The platform's id of it.
    pub platform_post_id: String,
    /// Its public address.
    pub platform_post_url: String,
    /// Its text.
    pub content: String,
    /// What it shows.
    pub media: Vec<ImportedMedium>,
    /// When it was published.
    pub published_at: Timestamp,
    /// Its engagement when it was imported, as far as the platform's list tells it.
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

/// A medium of an imported post.
#[derive(Debug, Object)]
pub struct ImportedMedium {
    /// Where the platform shows it; platforms let such addresses expire.
    pub url: String,
}

/// A page of imported posts.
#[derive(Debug, Object)]
pub struct ImportedPostPage {
    /// The posts, those that were published last first.
    pub data: Vec<ImportedPost>,
    /// Where the next page begins; null on the last.
    #[oai(nullable)]
    pub next_cursor: Option<String>,
}
