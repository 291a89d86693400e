//! Posts, with their containers and one target per account.
//!
//! Creating a post writes its outbox message in the same transaction, so that a 201 response guarantees
//! publishing. Editing, deleting and the first attempt compete for the post's row: the first to lock it wins.
//!
//! Tables: `posts`, `containers`, `timeline`, `slots`.

use self::{slots::Queue, timeline::Entry};
use crate::{
    Transaction,
    bounds::{self, Access, Resource},
    decode::Parsed,
    media::{self, NewMedia},
    outbox,
    page::{Cursor, Page, Request},
    publishing::{
        Replies, cancel,
        outcome::{self, History},
        wake_replies,
    },
    transaction,
    usage::ceilings::Exceeded,
    webhooks::events::{self, NewEvent},
};
use chrono::{DateTime, SecondsFormat, SubsecRound, Utc};
use domain::{
    AccountId, Bound, CancelReason, ContainerId, ErrorSource, MediaId, Missing, Owner, PostId, PostStatus,
    Role, TargetId, TargetStatus,
    event::{self, EventAccount},
    outbox::{Message, PostJob, TargetRef},
    post::roll_up,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sqlx::{PgConnection, PgExecutor, PgPool, Postgres, QueryBuilder, types::Json};
use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    time::Duration,
};
use uuid::Uuid;

pub mod duplicates;
mod edit;
pub(crate) mod horizon;
pub mod slots;
pub mod timeline;

pub use edit::{Edit, EditResult, edit, requeue};

/// Posts that one page of a search in texts looks through. The search has no index: see migration 0005.
pub const SEARCHED: u32 = 1000;
/// Length of their texts that it looks through, in bytes: it ends with the post that reaches it.
const SEARCHED_BYTES: i64 = 2 << 20;

/// The caller's own data on a post.
pub type Metadata = BTreeMap<String, String>;

/// A post with its containers and targets.
#[derive(Clone, Debug, PartialEq)]
pub struct Post {
    /// Post id.
    pub id: PostId,
    /// Post status.
    pub status: PostStatus,
    /// True if the post is a draft, which is not published until it is released.
    pub is_draft: bool,
    /// Version; each edit raises it.
    pub version: i32,
    /// The live post that it replies to; `None` for a post of its own.
    pub reply_to: Option<PostId>,
    /// When the post is due; `None` for immediately.
    pub scheduled_at: Option<DateTime<Utc>>,
    /// When the first target was published.
    pub published_at: Option<DateTime<Utc>>,
    /// Settings by platform, a JSON object.
    pub default_config: Value,
    /// The caller's idempotency key.
    pub external_ref: Option<String>,
    /// The caller's own data.
    pub metadata: Metadata,
    /// When the post was created.
    pub created_at: DateTime<Utc>,
    /// When the post was last updated.
    pub updated_at: DateTime<Utc>,
    /// Containers, in order.
    pub containers: Vec<Container>,
    /// The containers of the variants, in order: what replaces `containers` for the targets of variant 1, 2, ….
    pub variants: Vec<Vec<Container>>,
    /// Targets, one per account, in the order of the request.
    pub targets: Vec<Target>,
}

impl Post {
    /// Returns what a target publishes.
    pub fn containers_of(&self, target: &Target) -> &[Container] {
        let variant = usize::from(target.variant).checked_sub(1);
        variant.and_then(|index| self.variants.get(index)).unwrap_or(&self.containers)
    }
}

/// A container: the content of one call to a platform. Deserializes from the JSON that Postgres makes of it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Container {
    /// Container id.
    pub id: ContainerId,
    /// Position in the post; 0 is the main container.
    pub position: u16,
    /// Text.
    pub content: String,
    /// Media assets, in order.
    pub media: Vec<Attachment>,
}

impl Container {
    /// Creates a container with a new id.
    pub fn new(position: u16, content: String, media: Vec<Attachment>) -> Self {
        Self { id: ContainerId(Uuid::now_v7()), position, content, media }
    }

    /// Returns the role of the container, by its position alone.
    pub fn role(&self) -> Role {
        Role::at(self.position)
    }
}

/// A media asset in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Asset id.
    pub id: Uuid,
    /// Alt text; replaces the asset's.
    #[serde(default)]
    pub alt_text: Option<String>,
}

/// The publication of a post to one account. Deserializes from the JSON that Postgres makes of it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Target {
    /// Target id.
    pub id: TargetId,
    /// Account to publish to.
    pub account_id: AccountId,
    /// The account's platform, for example `google_business`.
    pub platform: String,
    /// Number of its variant of the content, from 1; 0 for the post's own content.
    pub variant: u16,
    /// The target's own time to publish; `None` for the post's.
    pub scheduled_at: Option<DateTime<Utc>>,
    /// Target status.
    pub status: TargetStatus,
    /// The platform's own id of the post that it replies to, from its first attempt on.
    pub reply_parent: Option<String>,
    /// The platform's own id of the published post.
    pub platform_post_id: Option<String>,
    /// URL of the published post.
    pub platform_post_url: Option<String>,
    /// Code of the last failure.
    pub error_code: Option<String>,
    /// The platform's message about the last failure.
    pub error_message: Option<String>,
    /// Who can fix the last failure.
    pub error_source: Option<ErrorSource>,
    /// Publish attempts begun.
    pub attempts: i32,
    /// When the next attempt is due; `None` when none is scheduled. One that is frozen only looks then whether it still
    /// is.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// True if an operator froze it: it goes on when that is released.
    pub is_frozen: bool,
    /// When the target was published.
    pub published_at: Option<DateTime<Utc>>,
    /// When the published post was deleted from the platform.
    pub unpublished_at: Option<DateTime<Utc>>,
    /// When the published post was last changed on the platform.
    pub edited_at: Option<DateTime<Utc>>,
    /// Changes since it was published.
    pub edits: Option<Edits>,
    /// Parts of a live post that are not published and not awaited, in order.
    pub missing: Vec<Missing>,
}

impl Target {
    /// Returns when the next attempt is due; `None` when none is scheduled, or it waits for a release.
    pub fn next_attempt(&self) -> Option<DateTime<Utc>> {
        self.next_attempt_at.filter(|_| !self.is_frozen)
    }
}

/// Changes to a live target's posts since they were published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Edits {
    /// New texts, by the position of the container.
    pub containers: BTreeMap<u16, String>,
    /// New settings of the platform.
    pub config: Map<String, Value>,
}

impl Target {
    /// Returns true if its next attempt can be brought forward: the last one failed, or its account rests.
    pub fn can_retry(&self) -> bool {
        match self.status {
            TargetStatus::Failed => true,
            TargetStatus::Queued => self.error_code.is_some(),
            _ => false,
        }
    }

    /// True if the part at this position is missing that its platform has a place for.
    pub fn misses(&self, position: u16) -> bool {
        self.missing.iter().any(|part| part.position == position && !part.is_left_out)
    }

    /// True if it is live, and parts of it are missing that a retry may publish.
    pub fn is_torn(&self) -> bool {
        self.status == TargetStatus::Published
            && self.error_code.is_some()
            && self.next_attempt_at.is_none()
            && self.unpublished_at.is_none()
            && !self.missing.is_empty()
    }
}

/// A post in a list.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Summary {
    /// Post id.
    #[sqlx(try_from = "Uuid")]
    pub id: PostId,
    /// Post status.
    #[sqlx(try_from = "Parsed<PostStatus>")]
    pub status: PostStatus,
    /// True if the post is a draft.
    pub is_draft: bool,
    /// When the post is due; `None` for immediately.
    pub scheduled_at: Option<DateTime<Utc>>,
    /// When the first target was published.
    pub published_at: Option<DateTime<Utc>>,
    /// When the post was created.
    pub created_at: DateTime<Utc>,
}

/// A post to create, with at least one container, at least one account, and no account twice.
#[derive(Clone, Debug)]
pub struct NewPost {
    /// True to create a draft, which is not published until it is released.
    pub is_draft: bool,
    /// The live post to reply to; `None` for a post of its own.
    pub reply_to: Option<PostId>,
    /// When to publish; `None` for immediately.
    pub scheduled_at: Option<DateTime<Utc>>,
    /// Settings by platform, a JSON object.
    pub default_config: Value,
    /// The caller's idempotency key.
    pub external_ref: Option<String>,
    /// The caller's own data.
    pub metadata: Metadata,
    /// Containers, in order.
    pub containers: Vec<Container>,
    /// Accounts to publish to, with their platforms, in order.
    pub accounts: Vec<(AccountId, String)>,
    /// Deviations of targets from the post.
    pub deviations: Deviations,
    /// Assets of the containers to create with the post: files that are fetched.
    pub imports: Vec<(MediaId, NewMedia)>,
    /// Id of the request that creates the post, for its timeline.
    pub request_id: Option<String>,
    /// Time before the post is due at which its workflow is started.
    pub horizon: Duration,
}

/// Content and times of targets that are not the post's.
#[derive(Clone, Debug, Default)]
pub struct Deviations {
    /// The containers of the variants, in order; the first is number 1.
    pub variants: Vec<Vec<Container>>,
    /// The targets that deviate, by account.
    pub targets: BTreeMap<AccountId, Deviation>,
}

/// Deviation of a target from its post.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deviation {
    /// Number of its variant; 0 for the post's content.
    pub variant: u16,
    /// Time to publish; `None` for the post's.
    pub scheduled_at: Option<DateTime<Utc>>,
}

impl Deviations {
    fn of(&self, account: AccountId) -> Deviation {
        self.targets.get(&account).copied().unwrap_or_default()
    }
}

/// The result of creating a post.
#[derive(Clone, Debug, PartialEq)]
pub enum Created {
    /// The post was created.
    New(Post),
    /// The post that an earlier call created with the same key, in its current state.
    Replay(Post),
}

/// Why a post was not created.
#[derive(Debug)]
pub enum CreateError {
    /// The queue has no open slot.
    NoOpenSlot,
    /// A media asset is missing or was deleted by a concurrent transaction.
    MediaMissing,
    /// The storage has no room for the files to fetch.
    Exceeded(Exceeded),
    /// The key is taken.
    KeyTaken(KeyTaken),
    /// A statement failed.
    Database(sqlx::Error),
}

/// The key is the one of a post that the caller does not reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyTaken;

impl From<KeyTaken> for CreateError {
    fn from(taken: KeyTaken) -> Self {
        Self::KeyTaken(taken)
    }
}

impl From<sqlx::Error> for CreateError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

/// Filter of a list of posts; all given conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Post status.
    pub status: Option<PostStatus>,
    /// Platform of at least one target.
    pub platform: Option<String>,
    /// Account of at least one target.
    pub social_account_id: Option<AccountId>,
    /// Profile of the account of at least one target.
    pub profile_id: Option<Uuid>,
    /// Tenant of the account of at least one target.
    pub tenant_id: Option<String>,
    /// Entries of the post's metadata.
    pub metadata: Metadata,
    /// Text in at least one container, in any case. A page then looks through [`SEARCHED`] posts that meet the
    /// other conditions, or fewer that have long texts, and may have no rows although there is a next one.
    pub text: Option<String>,
    /// Created at or after this time (inclusive).
    pub created_after: Option<DateTime<Utc>>,
    /// Created before this time (exclusive).
    pub created_before: Option<DateTime<Utc>>,
    /// Scheduled at or after this time (inclusive).
    pub scheduled_after: Option<DateTime<Utc>>,
    /// Scheduled before this time (exclusive).
    pub scheduled_before: Option<DateTime<Utc>>,
}

macro_rules! select {
    ($tail:literal, $($arg:expr),+ $(,)?) => {
        sqlx::query_as!(
            Row,
            r#"select p.id, p.status as "status: Parsed<PostStatus>", p.is_draft, p.version,
                      p.reply_to, p.scheduled_at, p.published_at, p.default_config, p.external_ref,
                      p.metadata as "metadata: Json<Metadata>", p.created_at, p.updated_at,
                      (select coalesce(json_agg(json_build_object(
                         'id', c.id, 'position', c.position, 'content', c.content, 'media', c.media
                       ) order by c.position), '[]')
                       from containers c where c.post_id = p.id and c.variant = 0) as "containers!: Json<Vec<Container>>",
                      (select coalesce(json_agg(v.containers order by v.variant), '[]')
                       from (select variant, json_agg(json_build_object(
                               'id', c.id, 'position', c.position, 'content', c.content, 'media', c.media
                             ) order by c.position) as containers
                             from containers c where c.post_id = p.id and c.variant > 0 group by c.variant) v
                      ) as "variants!: Json<Vec<Vec<Container>>>",
                      (select coalesce(json_agg(json_build_object(
                         'id', t.id, 'variant', t.variant, 'scheduled_at', t.scheduled_at, 'account_id', t.account_id, 'platform', t.platform, 'status', t.status,
                         'reply_parent', t.reply_parent, 'platform_post_id', t.platform_post_id, 'platform_post_url', t.platform_post_url,
                         'error_code', t.error_code, 'error_message', t.error_message,
                         'error_source', t.error_source, 'attempts', t.attempts,
                         'next_attempt_at', t.next_attempt_at, 'is_frozen', t.freeze_id is not null,
                         'published_at', t.published_at,
                         'unpublished_at', t.unpublished_at, 'edited_at', t.edited_at, 'edits', t.edits,
                         'missing', coalesce(t.missing, '[]')
                       ) order by t.id), '[]')
                       from targets t where t.post_id = p.id) as "targets!: Json<Vec<Target>>"
               from posts p "# + $tail,
            $($arg),+
        )
    };
}

/// Creates a post, or returns the one that was created with its key.
///
/// Of concurrent calls with the same key, one creates the post; the others wait and return it.
///
/// # Errors
///
/// When a media asset is missing, or the key is the one of a post that the caller does not reach.
pub async fn create(
    db: &PgPool,
    access: Access<'_>,
    new: NewPost,
    now: DateTime<Utc>,
) -> Result<Created, CreateError> {
    let post = build(new.clone(), now.trunc_subsecs(6));
    if !is_one_statement(&post, &new) {
        return write(crate::begin(db).await?, access, post, &new, None).await;
    }
    let _wake = (!post.is_draft).then(transaction::wake);
    if insert(db, access.owner_of_new(), &post, None, &new).await? {
        return Ok(Created::New(post));
    }
    let key = post.external_ref.as_deref().expect("only an insert with a key conflicts");
    let first = replay(db, access, key).await?.ok_or(sqlx::Error::RowNotFound)??;
    Ok(Created::Replay(first))
}

/// Returns true if one statement writes the whole post, as it does most: a transaction would take three more round trips.
fn is_one_statement(post: &Post, new: &NewPost) -> bool {
    let mut containers = post.containers.iter().chain(post.variants.iter().flatten());
    new.imports.is_empty() && containers.all(|container| container.media.is_empty())
}

/// Creates a post at the next open slot of a queue, or returns the one that was created with its key. The
/// slot replaces the `scheduled_at` of `new`.
///
/// # Errors
///
/// When the queue has no open slot, a media asset is missing, or the key is the one of a post that the caller does not
/// reach.
pub async fn queue(
    db: &PgPool,
    access: Access<'_>,
    new: NewPost,
    queue: &Queue,
    now: DateTime<Utc>,
) -> Result<Created, CreateError> {
    // A slot is lost only to another post that was committed, so the loop ends when the slots run out.
    loop {
        let mut tx = crate::begin(db).await?;
        let Some(slot) = slots::reserve(&mut tx, access.owner_of_new(), queue, None, now).await? else {
            // The last slot may have gone to a call with the same key.
            let key = new.external_ref.as_ref().ok_or(CreateError::NoOpenSlot)?;
            let first = replay_in(&mut tx, access, key).await?.transpose()?;
            return first.map(Created::Replay).ok_or(CreateError::NoOpenSlot);
        };
        let post = build(NewPost { scheduled_at: Some(slot), ..new.clone() }, now.trunc_subsecs(6));
        match write(tx, access, post, &new, Some(queue.account)).await {
            Err(CreateError::Database(error)) if slots::is_taken(&error) => {}
            written => return written,
        }
    }
}

/// Writes a new post with its timeline entry and outbox message, unless its key is taken.
async fn write(
    mut tx: Transaction,
    access: Access<'_>,
    post: Post,
    new: &NewPost,
    slot_account: Option<AccountId>,
) -> Result<Created, CreateError> {
    let owner = access.owner_of_new();
    for (id, import) in &new.imports {
        media::insert(&mut tx, owner, *id, import, post.created_at).await?;
    }
    let ids = media_ids(post.containers.iter().chain(post.variants.iter().flatten()));
    let has_media = media::lock_for_post(&mut tx, owner, &ids).await?;
    if !insert(&mut *tx, owner, &post, slot_account, new).await? {
        // The unique index has seen the other row, so the next statement sees it too.
        let key = post.external_ref.as_deref().expect("only an insert with a key conflicts");
        let first = replay_in(&mut tx, access, key).await?.ok_or(sqlx::Error::RowNotFound)??;
        return Ok(Created::Replay(first));
    }
    if !has_media {
        return Err(CreateError::MediaMissing);
    }
    if let Err(exceeded) = media::check_room(&mut tx, owner, &new.imports, post.created_at).await? {
        return Err(CreateError::Exceeded(exceeded));
    }
    tx.commit().await?;
    Ok(Created::New(post))
}

/// Returns the post that was created with this key, deleted or not, if the caller reaches it.
pub async fn replay(
    db: &PgPool,
    access: Access<'_>,
    external_ref: &str,
) -> sqlx::Result<Option<Result<Post, KeyTaken>>> {
    replay_in(&mut *db.acquire().await?, access, external_ref).await
}

/// Returns a post, unless it was deleted.
pub async fn get(db: &PgPool, access: Access<'_>, id: PostId) -> sqlx::Result<Option<Post>> {
    let Some(owner) = access.reach(db, Resource::Post, id.0).await? else { return Ok(None) };
    let row = select!(
        "where p.id = $1 and p.org_id = $2 and p.mode = $3 and p.deleted_at is null",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(Post::from))
}

/// Source of a list of posts, newest first. Posts that are rare among the owner's are found by an index that contains
/// only them, instead of by looking through the others.
enum Source {
    /// All posts of the owner, or of one status.
    Posts,
    /// The targets of each of the owner's accounts that meet a condition.
    Accounts(fn(&mut QueryBuilder<Postgres>, &Filter, &Bound)),
    /// The targets of a platform.
    Platform(String),
}

impl Source {
    fn of(filter: &Filter, bound: &Bound) -> Self {
        if !filter.metadata.is_empty() {
            // They have an index of their own.
            Self::Posts
        } else if filter.social_account_id.is_some() {
            Self::Accounts(|query, filter, _| {
                query.push("accounts.id = ").push_bind(filter.social_account_id.map(|account| account.0));
            })
        } else if filter.profile_id.is_some() {
            Self::Accounts(|query, filter, _| {
                query.push("accounts.profile_id = ").push_bind(filter.profile_id);
            })
        } else if filter.tenant_id.is_some() {
            Self::Accounts(|query, filter, _| {
                query.push("accounts.tenant_id = ").push_bind(filter.tenant_id.clone());
            })
        } else if bound.is_limited() {
            Self::Accounts(|query, _, bound| bounds::push_accounts(query, bound))
        } else {
            match &filter.platform {
                Some(platform) if filter.status.is_none() => Self::Platform(platform.clone()),
                _ => Self::Posts,
            }
        }
    }

    /// Appends the query of one page to another one. Its rows are [`Listed`].
    fn push_page(
        &self,
        query: &mut QueryBuilder<Postgres>,
        access: Access<'_>,
        filter: &Filter,
        page: Request,
    ) {
        let (owner, bound) = access.parts();
        const COLUMNS: &str =
            "posts.id, posts.status, posts.is_draft, posts.scheduled_at, posts.published_at,
             posts.created_at";
        match self {
            Self::Posts => {
                query.push(format_args!("select {COLUMNS}, posts.created_at as listed_at from posts where "));
                push_conditions(query, access, filter);
                page.close_at("posts.created_at", "posts.id", query);
            }
            Self::Platform(platform) => {
                // Several targets of a post can be on the platform; they follow each other.
                query.push(format_args!(
                    "select distinct on (targets.created_at, targets.post_id) {COLUMNS},
                       targets.created_at as listed_at
                     from targets join posts on posts.id = targets.post_id where targets.org_id = "
                ));
                query.push_bind(owner.org.0).push(" and targets.mode = ").push_bind(owner.mode.as_str());
                query.push(" and targets.platform = ").push_bind(platform.clone()).push(" and ");
                push_conditions(query, access, &Filter { platform: None, ..filter.clone() });
                page.close_at("targets.created_at", "targets.post_id", query);
            }
            Self::Accounts(condition) => {
                // The accounts meet it, and each target looked at is one of theirs.
                let is_of_one = filter.social_account_id.is_some();
                let rest = Filter {
                    social_account_id: None,
                    profile_id: filter.profile_id.filter(|_| is_of_one),
                    tenant_id: filter.tenant_id.clone().filter(|_| is_of_one || filter.profile_id.is_some()),
                    ..filter.clone()
                };
                query.push(format_args!(
                    "select distinct on (listed_at, id) found.* from accounts cross join lateral (
                       select {COLUMNS}, targets.created_at as listed_at
                       from targets join posts on posts.id = targets.post_id
                       where targets.account_id = accounts.id and "
                ));
                push_conditions(query, access, &rest);
                page.close_at("targets.created_at", "targets.post_id", query);
                query.push(") found where accounts.org_id = ").push_bind(owner.org.0);
                query.push(" and accounts.mode = ").push_bind(owner.mode.as_str()).push(" and ");
                condition(query, filter, bound);
                query.push(" order by listed_at desc, id desc limit ").push_bind(i64::from(page.limit) + 1);
            }
        }
    }
}

/// Appends the conditions on rows of `posts`, except the one on texts.
fn push_conditions(query: &mut QueryBuilder<Postgres>, access: Access<'_>, filter: &Filter) {
    let (owner, bound) = access.parts();
    query.push("posts.deleted_at is null and posts.org_id = ").push_bind(owner.org.0);
    query.push(" and posts.mode = ").push_bind(owner.mode.as_str());
    if let Some(status) = filter.status {
        query.push(" and posts.status = ").push_bind(status.as_str());
    }
    if let Some(platform) = &filter.platform {
        query.push(" and exists (select from targets where post_id = posts.id and platform = ");
        query.push_bind(platform.clone()).push(")");
    }
    if let Some(account) = filter.social_account_id {
        query.push(" and exists (select from targets where post_id = posts.id and account_id = ");
        query.push_bind(account.0).push(")");
    }
    if let Some(profile) = filter.profile_id {
        query.push(" and exists (select from targets join accounts on accounts.id = targets.account_id");
        query
            .push(" where targets.post_id = posts.id and accounts.profile_id = ")
            .push_bind(profile)
            .push(")");
    }
    if let Some(tenant) = &filter.tenant_id {
        query.push(" and exists (select from targets join accounts on accounts.id = targets.account_id");
        query
            .push(" where targets.post_id = posts.id and accounts.tenant_id = ")
            .push_bind(tenant.clone())
            .push(")");
    }
    if !filter.metadata.is_empty() {
        // The expression and the condition of the index `posts_metadata`.
        query.push(" and posts.metadata <> '{}'");
        query
            .push(" and jsonb_set('{}', array[posts.org_id::text || ':' || posts.mode], posts.metadata) @> ");
        query.push_bind(json!({ format!("{}:{}", owner.org, owner.mode): filter.metadata }));
    }
    let times = [
        (" and posts.created_at >= ", filter.created_after),
        (" and posts.created_at < ", filter.created_before),
        (" and posts.scheduled_at >= ", filter.scheduled_after),
        (" and posts.scheduled_at < ", filter.scheduled_before),
    ];
    for (condition, time) in times {
        if let Some(time) = time {
            query.push(condition).push_bind(time);
        }
    }
    query.push(" and ");
    bounds::push_posts(query, bound);
}

/// Returns one page of the posts that a caller reaches, without deleted ones.
pub async fn list(
    db: &PgPool,
    access: Access<'_>,
    filter: &Filter,
    page: Request,
) -> sqlx::Result<Page<Summary>> {
    let (_, bound) = access.parts();
    let source = Source::of(filter, bound);
    let cursor = |listed: &Listed| Cursor { created_at: listed.listed_at, id: listed.post.id.0 };
    let Some(text) = &filter.text else {
        let mut query = QueryBuilder::new("");
        source.push_page(&mut query, access, filter, page);
        let rows = query.build_query_as::<Listed>().fetch_all(db).await?;
        return Ok(summaries(page.page(rows, cursor)));
    };
    let mut query = QueryBuilder::new("with page as materialized (");
    // The last post that was looked through follows the matching ones, if there may be more after it.
    source.push_page(&mut query, access, filter, Request { limit: SEARCHED - 1, ..page });
    query.push(
        "), searched as materialized (
           select * from (
             select page.*, count(*) over () as found,
               sum(texts.bytes) over (order by listed_at desc, id desc) - texts.bytes as before
             from page cross join lateral (
               select coalesce(sum(octet_length(content)), 0) as bytes from containers where post_id = page.id
             ) texts) sized
           where before < ",
    );
    query.push_bind(SEARCHED_BYTES);
    query.push(
        ") (select *, true as is_match from searched
            where exists (
              select from containers c where c.post_id = searched.id and c.content ilike ",
    );
    let pattern = format!("%{}%", escape(text));
    query
        .push_bind(pattern)
        .push(") order by listed_at desc, id desc limit ")
        .push_bind(i64::from(page.limit) + 1);
    query.push(
        ") union all (select *, false from searched
            where (select count(*) < max(found) or count(*) = ",
    );
    query.push_bind(i64::from(SEARCHED)).push(" from searched) order by listed_at, id limit 1)");
    let rows = query.build_query_as::<Searched>().fetch_all(db).await?;
    let (matches, rest): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.is_match);
    let found = page.page(matches.into_iter().map(|row| row.listed).collect(), cursor);
    let last = rest.first().map(|row| cursor(&row.listed));
    Ok(summaries(Page { next: found.next.or(last), ..found }))
}

/// A post in a list, with the time that the list is ordered by.
#[derive(sqlx::FromRow)]
struct Listed {
    #[sqlx(flatten)]
    post: Summary,
    /// The post's time of creation, read from the table that the list is read from.
    listed_at: DateTime<Utc>,
}

/// A post that a search looked at.
#[derive(sqlx::FromRow)]
struct Searched {
    #[sqlx(flatten)]
    listed: Listed,
    is_match: bool,
}

fn summaries(page: Page<Listed>) -> Page<Summary> {
    Page { items: page.items.into_iter().map(|listed| listed.post).collect(), next: page.next }
}

/// Returns the pattern of `like` that stands for a text.
fn escape(text: &str) -> String {
    let mut pattern = String::new();
    for c in text.chars() {
        if matches!(c, '\\' | '%' | '_') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Deletes a post. Returns false when it doesn't exist.
///
/// Cancels every target without a publishing call under way or with an unknown result, including those
/// that wait for a retry. The others are looked up and not published again; live posts stay live.
// Model: Delete.
pub async fn delete(
    db: &PgPool,
    access: Access<'_>,
    id: PostId,
    request_id: Option<&str>,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let Some(owner) = access.reach(db, Resource::Post, id.0).await? else { return Ok(false) };
    let mut tx = crate::begin(db).await?;
    let Some(Locked { status: before, may_have_workflow, .. }) = lock(&mut tx, owner, id).await? else {
        return Ok(false);
    };
    let canceled = cancel_pending_targets(&mut tx, owner, id, now).await?;
    let after = match before {
        PostStatus::Publishing => finish(&mut tx, owner, id, now).await?.unwrap_or(before),
        status if status.is_editable() => PostStatus::Canceled,
        status => status,
    };
    sqlx::query!(
        "update posts set status = $2, deleted_at = $3, updated_at = $3, starts_at = null, timeline_deleted_at = null
         where id = $1",
        id.0,
        after.as_str(),
        now
    )
    .execute(&mut *tx)
    .await?;
    let (kind, message) = match after {
        PostStatus::Canceled => ("canceled", "Canceled before it was published"),
        PostStatus::Publishing => (
            "deleted",
            "Deleted while publishing; targets that may be live are looked up, nothing new is published",
        ),
        _ => ("deleted", "Deleted; live posts stay live"),
    };
    let detail = json!({ "from": before, "to": after, "withdrawn_targets": canceled });
    let detail = timeline::caused_by(request_id, detail);
    let entry = Entry { at: now, kind: kind.into(), message: message.into(), target_id: None, detail };
    timeline::append(&mut *tx, owner, id, entry).await?;
    // One that publishes already finds its targets canceled, but may wait for the time that one of them had of its own.
    if may_have_workflow && (before.is_editable() || canceled > 0) {
        outbox::push(&mut tx, &Message::PostCanceled { post: id, owner }).await?;
    }
    wake_replies(&mut tx, owner, id, Replies::All).await?;
    tx.commit().await?;
    Ok(true)
}

/// Returns the ids of all attached assets, without duplicates.
fn media_ids<'a>(containers: impl Iterator<Item = &'a Container>) -> Vec<Uuid> {
    let attachments = containers.flat_map(|container| &container.media);
    attachments.map(|attachment| attachment.id).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns the post to write, with its ids and times.
fn build(new: NewPost, now: DateTime<Utc>) -> Post {
    let status = PostStatus::of_plan(new.is_draft, new.scheduled_at.is_some());
    let targets = new.accounts.into_iter().map(|(account_id, platform)| Target {
        id: TargetId(Uuid::now_v7()),
        account_id,
        platform,
        variant: new.deviations.of(account_id).variant,
        scheduled_at: new.deviations.of(account_id).scheduled_at,
        status: TargetStatus::Pending,
        reply_parent: None,
        platform_post_id: None,
        platform_post_url: None,
        error_code: None,
        error_message: None,
        error_source: None,
        attempts: 0,
        // An attempt before the target's own time is refused by this.
        next_attempt_at: new.deviations.of(account_id).scheduled_at,
        is_frozen: false,
        published_at: None,
        unpublished_at: None,
        edited_at: None,
        edits: None,
        missing: Vec::new(),
    });
    let targets = targets.collect();
    Post {
        id: PostId(Uuid::now_v7()),
        status,
        is_draft: new.is_draft,
        version: 1,
        reply_to: new.reply_to,
        scheduled_at: new.scheduled_at.map(|at| at.trunc_subsecs(6)),
        published_at: None,
        default_config: new.default_config,
        external_ref: new.external_ref,
        metadata: new.metadata,
        created_at: now,
        updated_at: now,
        containers: new.containers,
        variants: new.deviations.variants,
        targets,
    }
}

/// Inserts a new post's rows without those of its variants, and the message that starts its workflow unless it is a
/// draft or due beyond the horizon. Returns false, and writes nothing, when its key is taken. With a `slot_account`,
/// `scheduled_at` is a slot of that account's queue.
async fn insert(
    db: impl PgExecutor<'_>,
    owner: Owner,
    post: &Post,
    slot_account: Option<AccountId>,
    new: &NewPost,
) -> sqlx::Result<bool> {
    let message = (!post.is_draft).then(|| Message::PublishPost(to_job(owner, post)));
    if message.is_some() {
        transaction::pushed();
    }
    let containers = Columns::of(0, iter::once(&post.containers).chain(&post.variants));
    let entry = match post.scheduled_at {
        _ if post.is_draft => "Created as a draft".to_owned(),
        Some(at) => format!("Scheduled for {}", at.to_rfc3339_opts(SecondsFormat::Secs, true)),
        None => "Queued to be published at once".to_owned(),
    };
    let inserted = sqlx::query_scalar!(
        "with post as (
           insert into posts (id, org_id, mode, status, is_draft, version, scheduled_at, default_config,
             external_ref, created_at, updated_at, slot_account_id, metadata, reply_to, starts_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $19, $20, $23,
             case when $5 then 'infinity'::timestamptz
               when $7 > clock_timestamp() + make_interval(secs => $24) then $7 end)
           on conflict (org_id, mode, external_ref) where external_ref is not null do nothing
           returning id, starts_at
         ), text as (
           insert into containers (id, post_id, org_id, mode, variant, position, content, media)
           select c.id, post.id, $2, $3, c.variant, c.position, c.content, c.media
           from post, unnest($11::uuid[], $26::smallint[], $27::smallint[], $12::text[], $13::jsonb[])
             as c (id, variant, position, content, media)
         ), fan as (
           insert into targets (id, post_id, org_id, mode, account_id, platform, variant, scheduled_at,
             next_attempt_at, created_at, updated_at)
           select t.id, post.id, $2, $3, t.account_id, t.platform, t.variant, t.at, t.at, $10, $10
           from post, unnest($14::uuid[], $15::uuid[], $16::text[], $21::smallint[], $22::timestamptz[])
             as t (id, account_id, platform, variant, at)
         ), entry as (
           insert into timeline (org_id, mode, post_id, at, kind, message, detail)
           select $2, $3, post.id, $10, 'created', $17, $18 from post
         ), message as (
           insert into outbox (org_id, message)
           select $2, $25 from post where $25::jsonb is not null and starts_at is null
         )
         select id from post",
        post.id.0,
        owner.org.0,
        owner.mode.as_str(),
        post.status.as_str(),
        post.is_draft,
        post.version,
        post.scheduled_at,
        post.default_config,
        post.external_ref,
        post.created_at,
        &containers.ids,
        &containers.contents,
        &containers.media,
        &post.targets.iter().map(|target| target.id.0).collect::<Vec<_>>(),
        &post.targets.iter().map(|target| target.account_id.0).collect::<Vec<_>>(),
        &post.targets.iter().map(|target| target.platform.clone()).collect::<Vec<_>>(),
        entry,
        timeline::caused_by(
            new.request_id.as_deref(),
            json!({ "to": post.status, "scheduled_at": post.scheduled_at.map(event::timestamp) })
        ),
        slot_account.map(|account| account.0),
        json!(post.metadata),
        &post.targets.iter().map(|target| target.variant.cast_signed()).collect::<Vec<_>>(),
        &post.targets.iter().map(|target| target.scheduled_at).collect::<Vec<_>>()
            as &[Option<DateTime<Utc>>],
        post.reply_to.map(|post| post.0),
        new.horizon.as_secs_f64(),
        message.map(|message| json!(message)),
        &containers.variants,
        &containers.positions
    )
    .fetch_optional(db)
    .await?;
    Ok(inserted.is_some())
}

/// Containers of variants, by column.
#[derive(Default)]
struct Columns {
    ids: Vec<Uuid>,
    variants: Vec<i16>,
    positions: Vec<i16>,
    contents: Vec<String>,
    media: Vec<Value>,
}

impl Columns {
    /// Numbers the variants from `first`.
    fn of<'a>(first: i16, variants: impl IntoIterator<Item = &'a Vec<Container>>) -> Self {
        let mut columns = Self::default();
        for (number, variant) in (first..).zip(variants) {
            for container in variant {
                columns.ids.push(container.id.0);
                columns.variants.push(number);
                columns.positions.push(container.position.cast_signed());
                columns.contents.push(container.content.clone());
                columns.media.push(json!(container.media));
            }
        }
        columns
    }
}

/// Inserts the containers of a post's variants, numbered from `first`; 0 is the post's own.
pub(crate) async fn insert_containers(
    tx: &mut PgConnection,
    owner: Owner,
    id: PostId,
    first: i16,
    variants: &[Vec<Container>],
) -> sqlx::Result<()> {
    let containers = Columns::of(first, variants);
    sqlx::query!(
        "insert into containers (id, post_id, org_id, mode, variant, position, content, media)
         select c.id, $1, $2, $3, c.variant, c.position, c.content, c.media
         from unnest($4::uuid[], $5::smallint[], $6::smallint[], $7::text[], $8::jsonb[])
           as c (id, variant, position, content, media)",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        &containers.ids,
        &containers.variants,
        &containers.positions,
        &containers.contents,
        &containers.media
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Reads a post that must exist, as the current transaction sees it.
async fn read(tx: &mut PgConnection, owner: Owner, id: PostId) -> sqlx::Result<Post> {
    select!("where p.id = $1 and p.org_id = $2 and p.mode = $3", id.0, owner.org.0, owner.mode.as_str())
        .fetch_one(tx)
        .await
        .map(Post::from)
}

async fn replay_in(
    tx: &mut PgConnection,
    access: Access<'_>,
    key: &str,
) -> sqlx::Result<Option<Result<Post, KeyTaken>>> {
    let (owner, bound) = access.parts();
    let row = select!(
        "where p.org_id = $1 and p.mode = $2 and p.external_ref = $3",
        owner.org.0,
        owner.mode.as_str(),
        key
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(row) = row else { return Ok(None) };
    if bound.is_limited() && !access.contains(tx, Resource::Post, row.id.0).await? {
        return Ok(Some(Err(KeyTaken)));
    }
    Ok(Some(Ok(row.into())))
}

/// A post's row, locked until the transaction ends.
struct Locked {
    status: PostStatus,
    version: i32,
    /// False if no workflow was ever started for the post, or the last one was asked to end.
    may_have_workflow: bool,
}

/// Locks the post's row until the transaction ends.
async fn lock(tx: &mut PgConnection, owner: Owner, id: PostId) -> sqlx::Result<Option<Locked>> {
    let row = sqlx::query!(
        r#"select status as "status: Parsed<PostStatus>", version, starts_at is null as "is_started!"
           from posts
           where id = $1 and org_id = $2 and mode = $3 and deleted_at is null for no key update"#,
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(&mut *tx)
    .await?;
    Ok(row.map(|row| {
        let status = row.status.0;
        // A draft of a process that knew no horizon was never released.
        let is_new = status == PostStatus::Draft && row.version == 1;
        Locked { status, version: row.version, may_have_workflow: row.is_started && !is_new }
    }))
}

/// Cancels the open targets without a publishing call under way or with an unknown result. Attempts under
/// way are fenced off: a target that may be live is retried for a look-up.
async fn cancel_pending_targets(
    tx: &mut PgConnection,
    owner: Owner,
    id: PostId,
    now: DateTime<Utc>,
) -> sqlx::Result<usize> {
    // In a separate statement: an intent is written under this lock, and one that was written while
    // waiting for it must be visible to the next statement.
    let open = sqlx::query_scalar!(
        "select id from targets
         where post_id = $1
           and (status in ('pending', 'queued', 'failed') or status = 'published' and next_attempt_at is not null)
         order by id for no key update",
        id.0
    )
    .fetch_all(&mut *tx)
    .await?;
    let targets = cancel(&mut *tx, &open, CancelReason::Deleted, now).await?;
    let attempted = targets.iter().filter(|target| target.was_attempted);
    let wakes: Vec<_> =
        attempted.map(|target| Message::RetryTarget { target: target.target, post: id, owner }).collect();
    outbox::push_all(tx, &wakes).await?;
    Ok(targets.iter().filter(|target| target.is_canceled).count())
}

/// Returns the final status of a post whose last open targets were just canceled, or whose live one is not retried any
/// more, or `None` while one is under way. Appends the event that tells it, if there is one: `post.published` was appended with the first target
/// that was published.
pub(crate) async fn finish(
    tx: &mut PgConnection,
    owner: Owner,
    id: PostId,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<PostStatus>> {
    let rows = sqlx::query!(
        r#"select t.status as "status: Parsed<TargetStatus>", t.error_message, t.platform_post_id, t.account_id,
             t.platform, a.username, t.resumed_round, p.round, p.has_failed
           from posts p join targets t on t.post_id = p.id join accounts a on a.id = t.account_id
           where p.id = $1 order by t.id"#,
        id.0
    )
    .fetch_all(&mut *tx)
    .await?;
    let statuses: Vec<_> = rows.iter().map(|row| row.status.0).collect();
    let (Some(status), Some(first)) = (roll_up(&statuses), rows.first()) else { return Ok(None) };
    let history = History {
        round: first.round.unsigned_abs(),
        has_failed: first.has_failed,
        goes_on: rows.iter().any(|row| row.resumed_round.is_some()),
    };
    let accounts: Vec<_> = rows
        .into_iter()
        .map(|row| {
            let subject = EventAccount {
                account: row.account_id.into(),
                network: row.platform,
                username: row.username,
            };
            let (id, error) = (row.platform_post_id.as_deref(), row.error_message.as_deref());
            (subject, outcome::of(row.status.0, id, error))
        })
        .collect();
    for (name, data) in outcome::events((id, owner.org), history, false, Some(status), &accounts) {
        let event = NewEvent { name, post: Some(id), target: None, account: None, data };
        events::append(tx, owner, now, &event).await?;
    }
    Ok(Some(status))
}

/// Returns the message that resumes a post's open targets; `None` when it has none, is a draft or beyond the scheduling
/// horizon, or doesn't exist.
pub async fn resumption(tx: &mut PgConnection, owner: Owner, id: PostId) -> sqlx::Result<Option<Message>> {
    let open = horizon::open(tx, &[id.0], None).await?;
    Ok(open.into_iter().find(|open| open.job.owner == owner).map(horizon::Open::resumption))
}

fn to_job(owner: Owner, post: &Post) -> PostJob {
    let targets = post.targets.iter().map(|target| TargetRef {
        target: target.id,
        account: target.account_id,
        platform: target.platform.clone(),
        due: target.scheduled_at,
    });
    PostJob {
        post: post.id,
        owner,
        version: post.version,
        due: post.scheduled_at,
        is_far_off: false,
        targets: targets.collect(),
    }
}

/// A post's row with its containers and targets as JSON: one round trip instead of three.
struct Row {
    id: PostId,
    status: PostStatus,
    is_draft: bool,
    version: i32,
    reply_to: Option<Uuid>,
    scheduled_at: Option<DateTime<Utc>>,
    published_at: Option<DateTime<Utc>>,
    default_config: Value,
    external_ref: Option<String>,
    metadata: Json<Metadata>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    containers: Json<Vec<Container>>,
    variants: Json<Vec<Vec<Container>>>,
    targets: Json<Vec<Target>>,
}

impl From<Row> for Post {
    fn from(row: Row) -> Self {
        Self {
            id: row.id,
            status: row.status,
            is_draft: row.is_draft,
            version: row.version,
            reply_to: row.reply_to.map(PostId),
            scheduled_at: row.scheduled_at,
            published_at: row.published_at,
            default_config: row.default_config,
            external_ref: row.external_ref,
            metadata: row.metadata.0,
            created_at: row.created_at,
            updated_at: row.updated_at,
            containers: row.containers.0,
            variants: row.variants.0,
            targets: row.targets.0,
        }
    }
}
