//! Posts: one publish intent each. How a body becomes a post stands in [`crate::posts::create`].

pub mod analytics;
pub mod batch;
pub mod checks;
pub mod create;
pub mod edit;
pub mod settings;
pub mod timeline;
pub mod validate;

use crate::{
    http::{
        body::Json,
        caller::{Call, Caller, PostsRead, PostsWrite},
        page::List,
        problem::{Code, Problem},
        query::Query,
    },
    openapi::{tag::Tag, validate::Rules},
    posts::{create::NewPost, edit::EditPost, timeline::Timeline},
    types::{
        enum_string::{EnumString, Platform},
        json_object::{JsonObject, json_object},
        timestamp::Timestamp,
    },
};
use domain::{AccountId, ErrorSource, PostId, PostStatus, Role, TargetStatus};
use poem_openapi::{
    ApiResponse, Object, OpenApi,
    param::{Header, Path},
};
use store::{
    posts::{self, Created},
    publishing,
};
use uuid::Uuid;

/// The operations on posts.
pub struct Posts;

#[OpenApi(tag = "Tag::Posts")]
impl Posts {
    /// Create a post
    ///
    /// Publishes to every account in `accounts`: at once, at `scheduled_at`, at the next open posting slot
    /// of `queued_from_account`, or not before it is released where `is_draft` is true. Publishing happens
    /// after the answer; what becomes of it shows on the targets. A repeated idempotency key returns the
    /// first post with 200. Scope `posts:write`.
    #[oai(path = "/posts", method = "post", operation_id = "createPost")]
    async fn create(
        &self,
        caller: Caller<PostsWrite>,
        /// Names this request, so that repeating it creates nothing; the same as `external_ref`. At
        /// most 255 characters.
        #[oai(name = "Idempotency-Key")]
        key: Header<Option<String>>,
        body: Json<NewPost>,
    ) -> Result<CreatedPost, Problem> {
        let call = caller.call();
        Ok(match create::create(&call, body.0, key.0.as_deref()).await? {
            Created::New(post) => CreatedPost::New(Json(post.into())),
            Created::Replay(post) => CreatedPost::Replay(Json(post.into()), "true".to_owned()),
        })
    }

    /// List posts
    ///
    /// Newest first, without deleted ones. Scope `posts:read`.
    #[oai(path = "/posts", method = "get", operation_id = "listPosts")]
    async fn list(&self, caller: Caller<PostsRead>, query: Query<Filter>) -> Result<Json<PostPage>, Problem> {
        Ok(Json(list(&caller.call(), query.0).await?))
    }

    /// Get a post
    ///
    /// Scope `posts:read`.
    #[oai(path = "/posts/:id", method = "get", operation_id = "getPost")]
    async fn get(&self, caller: Caller<PostsRead>, id: Path<String>) -> Result<Json<Post>, Problem> {
        Ok(Json(find(&caller.call(), &id).await?.into()))
    }

    /// Change a post
    ///
    /// What is sent replaces what was there, what is missing stays. `is_draft: false` releases a draft.
    /// Once publishing has begun the answer is 409 `publishing_started`. Scope `posts:write`.
    #[oai(path = "/posts/:id", method = "patch", operation_id = "updatePost")]
    async fn update(
        &self,
        caller: Caller<PostsWrite>,
        id: Path<String>,
        body: Json<EditPost>,
    ) -> Result<Json<Post>, Problem> {
        Ok(Json(edit::edit(&caller.call(), &id, body.0).await?.into()))
    }

    /// Delete a post
    ///
    /// What has not begun is canceled, what is under way finishes, what is live stays live. Scope
    /// `posts:write`.
    #[oai(path = "/posts/:id", method = "delete", operation_id = "deletePost")]
    async fn delete(&self, caller: Caller<PostsWrite>, id: Path<String>) -> Result<Json<Canceled>, Problem> {
        Ok(Json(delete(&caller.call(), &id).await?))
    }

    /// Retry a target
    ///
    /// Brings the next attempt of a `failed` target forward to now. One that is in any other state has
    /// nothing to bring forward: 409. Scope `posts:write`.
    #[oai(path = "/posts/:id/targets/:target_id/retry", method = "post", operation_id = "retryTarget")]
    async fn retry(
        &self,
        caller: Caller<PostsWrite>,
        id: Path<String>,
        target_id: Path<String>,
    ) -> Result<RetryAccepted, Problem> {
        Ok(RetryAccepted::Accepted(Json(retry(&caller.call(), &id, &target_id).await?)))
    }

    /// Follow a post
    ///
    /// What happened to it, oldest first, and what comes next. Scope `posts:read`.
    #[oai(path = "/posts/:id/timeline", method = "get", operation_id = "getPostTimeline")]
    async fn timeline(&self, caller: Caller<PostsRead>, id: Path<String>) -> Result<Json<Timeline>, Problem> {
        let call = caller.call();
        let post = find(&call, &id).await?;
        Ok(Json(timeline::of(&call, &post).await?))
    }
}

/// One page of the posts that fit.
pub async fn list(call: &Call<'_>, filter: Filter) -> Result<PostPage, Problem> {
    let page = List::Posts.request(call, filter.limit, filter.cursor.as_deref())?;
    let found = posts::list(call.db(), call.owner, &filter.into(), page).await?;
    let next_cursor = List::Posts.next(call, found.next);
    Ok(PostPage { data: found.items.into_iter().map(Summary::from).collect(), next_cursor })
}

/// One post.
pub async fn find(call: &Call<'_>, id: &str) -> Result<posts::Post, Problem> {
    posts::get(call.db(), call.owner, read(id)?).await?.ok_or_else(missing)
}

/// Deletes a post.
pub async fn delete(call: &Call<'_>, id: &str) -> Result<Canceled, Problem> {
    let id = read(id)?;
    if !posts::delete(call.db(), call.owner, id, call.now()).await? {
        return Err(missing());
    }
    Ok(Canceled { id: id.0, canceled: true })
}

/// Brings the next attempt of a failed target forward.
pub async fn retry(call: &Call<'_>, id: &str, target_id: &str) -> Result<Target, Problem> {
    let target = target(call, id, target_id).await?;
    let now = call.now();
    if !publishing::hurry(call.db(), call.owner, read(id)?, target.id, now).await? {
        // Its attempt may have begun since the look above: what it is now tells why there is nothing to hurry.
        let status = self::target(call, id, target_id).await?.status;
        let detail = format!("the target is {status}; only a failed one waits for a retry");
        return Err(Problem::new(Code::Conflict, detail));
    }
    Ok(Target { next_attempt_at: Some(now.into()), ..target.into() })
}

async fn target(call: &Call<'_>, id: &str, target_id: &str) -> Result<posts::Target, Problem> {
    let post = find(call, id).await?;
    let target = post.targets.into_iter().find(|target| target.id.to_string() == target_id.to_lowercase());
    target.ok_or_else(|| Problem::not_found("target"))
}

/// What is no UUID names no post.
fn read(id: &str) -> Result<PostId, Problem> {
    id.parse().map_err(|_| missing())
}

pub(crate) fn missing() -> Problem {
    Problem::not_found("post")
}

/// Which posts to list. All conditions must hold; ranges include their beginning and not their end.
#[derive(Debug, Default, Object)]
#[oai(rename = "PostFilter")]
pub struct Filter {
    /// How many to list, 1 to 100; values beyond are clamped. 25 by default.
    pub limit: Option<i64>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// Posts in this state.
    pub status: Option<EnumString<PostStatus>>,
    /// Posts with a target on this platform.
    pub platform: Option<EnumString<Platform>>,
    /// Posts to this account.
    pub social_account_id: Option<Uuid>,
    /// Posts to an account of this profile.
    pub profile_id: Option<Uuid>,
    /// Posts made at this time or later.
    pub created_after: Option<Timestamp>,
    /// Posts made before this time.
    pub created_before: Option<Timestamp>,
    /// Posts scheduled for this time or later.
    pub scheduled_after: Option<Timestamp>,
    /// Posts scheduled for before this time.
    pub scheduled_before: Option<Timestamp>,
}

impl Rules for Filter {}

impl From<Filter> for posts::Filter {
    fn from(filter: Filter) -> Self {
        let time = |at: Option<Timestamp>| at.map(|Timestamp(at)| at);
        Self {
            status: filter.status.map(|status| status.value()),
            platform: filter.platform.map(|platform| platform.as_str().to_owned()),
            social_account_id: filter.social_account_id.map(AccountId),
            profile_id: filter.profile_id,
            created_after: time(filter.created_after),
            created_before: time(filter.created_before),
            scheduled_after: time(filter.scheduled_after),
            scheduled_before: time(filter.scheduled_before),
        }
    }
}

/// A page of posts.
#[derive(Debug, Object)]
pub struct PostPage {
    /// The posts, newest first.
    pub data: Vec<Summary>,
    /// Where the next page begins; null on the last.
    #[oai(nullable)]
    pub next_cursor: Option<String>,
}

/// A post as lists show it.
#[derive(Debug, Object)]
#[oai(rename = "PostSummary")]
pub struct Summary {
    /// Its identifier.
    pub id: Uuid,
    /// Its state.
    pub status: EnumString<PostStatus>,
    /// Whether it waits to be released.
    pub is_draft: bool,
    /// When it is to be published; null at once.
    #[oai(nullable)]
    pub scheduled_at: Option<Timestamp>,
    /// When its first target went live.
    #[oai(nullable)]
    pub published_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
}

impl From<posts::Summary> for Summary {
    fn from(post: posts::Summary) -> Self {
        Self {
            id: post.id.0,
            status: EnumString::of(post.status.as_str()),
            is_draft: post.is_draft,
            scheduled_at: post.scheduled_at.map(Timestamp),
            published_at: post.published_at.map(Timestamp),
            created_at: post.created_at.into(),
        }
    }
}

/// A post with everything that belongs to it.
#[derive(Debug, Object)]
pub struct Post {
    /// Its identifier.
    pub id: Uuid,
    /// Its state.
    pub status: EnumString<PostStatus>,
    /// Whether it waits to be released.
    pub is_draft: bool,
    /// When it is to be published; null at once.
    #[oai(nullable)]
    pub scheduled_at: Option<Timestamp>,
    /// When its first target went live.
    #[oai(nullable)]
    pub published_at: Option<Timestamp>,
    /// Settings by platform.
    pub default_config: JsonObject,
    /// The idempotency key.
    #[oai(nullable)]
    pub external_ref: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// What is published, in order.
    pub containers: Vec<Container>,
    /// Where, one per account.
    pub targets: Vec<Target>,
}

/// A text of a post.
#[derive(Debug, Object)]
pub struct Container {
    /// Its identifier.
    pub id: Uuid,
    /// Where it stands, from 0.
    pub position: u16,
    /// What it is to the post.
    pub role: EnumString<Role>,
    /// The text.
    pub content: String,
    /// The media published with it, in order.
    pub media: Vec<ContainerMedia>,
}

/// A media asset of a container.
#[derive(Debug, Object)]
pub struct ContainerMedia {
    /// The media asset.
    pub id: Uuid,
    /// The description given with the post; null where the media asset's own is used.
    #[oai(nullable)]
    pub alt_text: Option<String>,
}

/// One account of a post.
#[derive(Debug, Object)]
pub struct Target {
    /// Its identifier.
    pub id: Uuid,
    /// The account.
    pub social_account_id: Uuid,
    /// The account's platform.
    pub platform: EnumString<Platform>,
    /// Its state. `failed` is tried again, `dead` is not.
    pub status: EnumString<TargetStatus>,
    /// The platform's own id of the published post.
    #[oai(nullable)]
    pub platform_post_id: Option<String>,
    /// The published post's address.
    #[oai(nullable)]
    pub platform_post_url: Option<String>,
    /// The stable reason of the last failure, for example `rate_limited` or `rejected_400`. Null on a target
    /// that is published without what its platform has no place for: `error_message` tells what was left out.
    #[oai(nullable)]
    pub error_code: Option<String>,
    /// The platform's words about it; may change.
    #[oai(nullable)]
    pub error_message: Option<String>,
    /// Who can do something about it.
    #[oai(nullable)]
    pub error_source: Option<EnumString<ErrorSource>>,
    /// Publish attempts begun.
    pub attempts: i32,
    /// When the next one comes.
    #[oai(nullable)]
    pub next_attempt_at: Option<Timestamp>,
    /// When it went live.
    #[oai(nullable)]
    pub published_at: Option<Timestamp>,
}

impl From<posts::Post> for Post {
    fn from(post: posts::Post) -> Self {
        Self {
            id: post.id.0,
            status: EnumString::of(post.status.as_str()),
            is_draft: post.is_draft,
            scheduled_at: post.scheduled_at.map(Timestamp),
            published_at: post.published_at.map(Timestamp),
            default_config: json_object(post.default_config),
            external_ref: post.external_ref,
            created_at: post.created_at.into(),
            updated_at: post.updated_at.into(),
            containers: post.containers.into_iter().map(Container::from).collect(),
            targets: post.targets.into_iter().map(Target::from).collect(),
        }
    }
}

impl From<posts::Container> for Container {
    fn from(container: posts::Container) -> Self {
        Self {
            id: container.id.0,
            position: container.position,
            role: EnumString::of(container.role.as_str()),
            content: container.content,
            media: container.media.into_iter().map(ContainerMedia::from).collect(),
        }
    }
}

impl From<posts::Attachment> for ContainerMedia {
    fn from(attachment: posts::Attachment) -> Self {
        Self { id: attachment.id, alt_text: attachment.alt_text }
    }
}

impl From<posts::Target> for Target {
    fn from(target: posts::Target) -> Self {
        Self {
            id: target.id.0,
            social_account_id: target.account_id.0,
            platform: EnumString::of(&target.platform),
            status: EnumString::of(target.status.as_str()),
            platform_post_id: target.platform_post_id,
            platform_post_url: target.platform_post_url,
            error_code: target.error_code,
            error_message: target.error_message,
            error_source: target.error_source.map(|source| EnumString::of(source.as_str())),
            attempts: target.attempts,
            next_attempt_at: target.next_attempt_at.map(Timestamp),
            published_at: target.published_at.map(Timestamp),
        }
    }
}

/// A deleted post.
#[derive(Debug, Object)]
#[oai(rename = "CanceledPost")]
pub struct Canceled {
    /// The post's id.
    pub id: Uuid,
    /// Always true.
    pub canceled: bool,
}

/// The id and state of a post.
#[derive(Debug, Object)]
#[oai(rename = "PostReference")]
pub struct Reference {
    /// The post's id.
    pub id: Uuid,
    /// The post's state.
    pub status: EnumString<PostStatus>,
}

/// The answer to a retry.
#[derive(ApiResponse)]
enum RetryAccepted {
    /// The next attempt comes now.
    #[oai(status = 202)]
    Accepted(Json<Target>),
}

/// The answer to a creation.
#[derive(ApiResponse)]
enum CreatedPost {
    /// The post was created.
    #[oai(status = 201)]
    New(Json<Post>),
    /// A post was created with this idempotency key before; this is it, as it is now.
    #[oai(status = 200)]
    Replay(
        Json<Post>,
        /// Always `true`.
        #[oai(header = "Idempotent-Replayed")]
        String,
    ),
}
