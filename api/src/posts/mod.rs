//! Posts. The steps from a request to a post are listed in the header of `posts::resolve`.

pub mod analytics;
pub mod batch;
pub mod body;
pub mod checks;
pub mod content;
pub mod create;
pub mod edit;
pub mod edit_target;
mod imports;
mod look_up;
mod overrides;
mod replying;
mod resolve;
pub mod retry;
pub mod settings;
pub mod timeline;
pub mod unpublish;
pub mod validate;
mod variant;

use crate::{
    http::{
        body::Json,
        caller::{Call, Caller, PostsRead, PostsWrite},
        headers::Header,
        page::{List, Paging},
        problem::{Code, Issue, Problem},
        query::Query,
    },
    openapi::{tag::Tag, validate::Rules},
    posts::{create::NewPost, edit::EditPost, edit_target::EditTarget, retry::RetryPost, timeline::Timeline},
    types::{
        enum_string::{EnumString, Platform},
        json_object::{JsonObject, json_object},
        metadata::{self, Metadata},
        timestamp::{TimeBound, Timestamp},
    },
};
use domain::{AccountId, ErrorSource, Missing, PostId, PostStatus, Role, TargetStatus};
use poem_openapi::{ApiResponse, Object, OpenApi, param::Path};
use serde_json::{Map, Value};
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
    /// Publishes to every account in `accounts`: immediately, at `scheduled_at`, at the next open posting
    /// slot of `queued_from_account`, or, if `is_draft` is true, after release. Publishing happens after the
    /// response; the targets show the result. A repeated idempotency key returns the first post with 200. With
    /// `reply_to` the post is published below another one that is live, as a comment or the next part of its thread.
    /// Scope `posts:write`.
    #[oai(path = "/posts", method = "post", operation_id = "createPost")]
    async fn create(
        &self,
        caller: Caller<PostsWrite>,
        /// Idempotency key, in UTF-8: repeating a request with the same key creates no second post. Ignored if
        /// the body has `external_ref`.
        #[oai(name = "Idempotency-Key")]
        key: Header,
        body: Json<NewPost>,
    ) -> Result<CreatedPost, Problem> {
        let call = caller.call();
        Ok(match create::create(&call, body.0, &key).await? {
            Created::New(post) => CreatedPost::New(Json(post.into())),
            Created::Replay(post) => CreatedPost::Replay(Json(post.into()), "true".to_owned()),
        })
    }

    /// List posts
    ///
    /// Lists posts, newest first, without deleted ones. With `q`, a page looks through 1,000 posts that match the
    /// other filters, or fewer with long texts: it may have fewer posts than `limit`, or none, while `next_cursor`
    /// leads to more. Scope `posts:read`.
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

    /// Update a post
    ///
    /// Updates the fields sent. `is_draft: false` releases a draft. Fails with 409 `publishing_started` once
    /// publishing has begun or the post has ended. Scope `posts:write`.
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
    /// Cancels pending targets. Targets in progress finish, and published posts stay live. Scope
    /// `posts:write`.
    #[oai(path = "/posts/:id", method = "delete", operation_id = "deletePost")]
    async fn delete(&self, caller: Caller<PostsWrite>, id: Path<String>) -> Result<Json<Canceled>, Problem> {
        Ok(Json(delete(&caller.call(), &id).await?))
    }

    /// Retry a target
    ///
    /// Starts the next attempt of a target now that is `failed`, or `queued` with an `error_code`: the platform
    /// throttled another post of its account. One that is `frozen` waits on. Fails with 409 for any other target; `POST /posts/{id}/retry` starts
    /// a `dead` one over, and publishes what is `missing` of a published one.
    /// Scope `posts:write`.
    #[oai(path = "/posts/:id/targets/:target_id/retry", method = "post", operation_id = "retryTarget")]
    async fn retry(
        &self,
        caller: Caller<PostsWrite>,
        id: Path<String>,
        target_id: Path<String>,
    ) -> Result<RetryAccepted, Problem> {
        Ok(RetryAccepted::Accepted(Json(retry(&caller.call(), &id, &target_id).await?)))
    }

    /// Retry a post
    ///
    /// Starts the `dead` targets of a post over, or those of them in `targets`: they are `queued` again, with a
    /// new budget of attempts. A `published` target that is `missing` a part which failed is retried as well: it stays
    /// `published`, and only its missing parts are published, below those that are live; edit the target first if the
    /// text was refused. Their events carry the `round` of the retry; `post.published` and `post.error` are
    /// not sent again, and one `post.retried` tells how the post ends. A target that may be live is looked up first,
    /// and published only when its platform says that it is not. A `canceled` target is not retried. Fails with 409 if there is no target to retry, or the
    /// accounts of all that are were disconnected. Scope `posts:write`.
    #[oai(path = "/posts/:id/retry", method = "post", operation_id = "retryPost")]
    async fn retry_post(
        &self,
        caller: Caller<PostsWrite>,
        id: Path<String>,
        body: Json<RetryPost>,
    ) -> Result<RetriedPost, Problem> {
        Ok(RetriedPost::Accepted(Json(retry::retry(&caller.call(), &id, body.0).await?.into())))
    }

    /// Edit a target
    ///
    /// Changes a published target's posts on their platform: the text of the main post, texts of replies, and the
    /// settings that the account's capabilities list under `editing`. Replies that are `missing` can be changed on every
    /// platform, in a call of their own: nothing is published, and `POST /posts/{id}/retry` publishes the new texts. The new values are checked as on creation
    /// first. The target shows them in `edits`, with the time in `edited_at`; the post's containers and the other
    /// targets stay as they are. An edit can be repeated. Fails with 409 if the target is not live, or another edit
    /// of it is being made, with 422 `editing_unsupported` if the platform lets no app change such a post (X,
    /// Instagram, TikTok, Threads and Bluesky: none), with 422 `reconnect_required` if the account was connected
    /// without the scope for it, and with 503 if the platform does not answer: repeat the call after `Retry-After`.
    /// Scope `posts:write`.
    #[oai(path = "/posts/:id/targets/:target_id", method = "patch", operation_id = "editTarget")]
    async fn edit_target(
        &self,
        caller: Caller<PostsWrite>,
        id: Path<String>,
        target_id: Path<String>,
        body: Json<EditTarget>,
    ) -> Result<Json<Target>, Problem> {
        Ok(Json(edit_target::edit(&caller.call(), &id, &target_id, body.0).await?))
    }

    /// Unpublish a target
    ///
    /// Deletes a published target's posts from their platform: the replies, last to first, and then the main
    /// post. What was still to follow the main post is given up when it is deleted. The target stays `published`, and
    /// `unpublished_at` tells when it was deleted. Repeating the call returns the same, and a post that the
    /// platform doesn't have any more counts as deleted. Fails with 409 if the target is not live, with 422
    /// `deletion_unsupported` if the platform lets no app delete posts (Instagram, TikTok), with 422
    /// `reconnect_required` if the account was connected without the scope for it, and with 503 if the platform
    /// does not answer: repeat the call after `Retry-After`. Scope `posts:write`.
    #[oai(
        path = "/posts/:id/targets/:target_id/unpublish",
        method = "post",
        operation_id = "unpublishTarget"
    )]
    async fn unpublish(
        &self,
        caller: Caller<PostsWrite>,
        id: Path<String>,
        target_id: Path<String>,
    ) -> Result<Json<Target>, Problem> {
        Ok(Json(unpublish::unpublish(&caller.call(), &id, &target_id).await?))
    }

    /// Get a post's timeline
    ///
    /// Returns past events, oldest first, and upcoming steps. What a request caused has its `request_id` in `detail`.
    /// Past events are kept for a year after the post has ended. Scope `posts:read`.
    #[oai(path = "/posts/:id/timeline", method = "get", operation_id = "getPostTimeline")]
    async fn timeline(
        &self,
        caller: Caller<PostsRead>,
        id: Path<String>,
        query: Query<Paging>,
    ) -> Result<Json<Timeline>, Problem> {
        let call = caller.call();
        let post = find(&call, &id).await?;
        Ok(Json(timeline::of(&call, &post, &query.0).await?))
    }
}

/// Lists the posts that match a filter.
pub async fn list(call: &Call<'_>, filter: Filter) -> Result<PostPage, Problem> {
    let page = List::Posts.request(call, filter.limit, filter.cursor.as_deref())?;
    let found = posts::list(call.db(), call.access(), &filter.into(), page).await?;
    let next_cursor = List::Posts.next(call, found.next);
    Ok(PostPage { data: found.items.into_iter().map(Summary::from).collect(), next_cursor })
}

/// Returns a post.
pub async fn find(call: &Call<'_>, id: &str) -> Result<posts::Post, Problem> {
    posts::get(call.db(), call.access(), read(id)?).await?.ok_or_else(missing)
}

/// Deletes a post.
pub async fn delete(call: &Call<'_>, id: &str) -> Result<Canceled, Problem> {
    let id = read(id)?;
    if !posts::delete(call.db(), call.access(), id, call.request_id().as_deref(), call.now()).await? {
        return Err(missing());
    }
    Ok(Canceled { id: id.0, canceled: true })
}

/// Starts the next attempt of a target now that failed or waits until its account has rested.
pub async fn retry(call: &Call<'_>, id: &str, target_id: &str) -> Result<Target, Problem> {
    let (post, target) = target(call, id, target_id).await?;
    let now = call.now();
    let request = call.request_id();
    if !publishing::retry_now(call.db(), call.access(), post, target.id, request.as_deref(), now).await? {
        // The attempt may have begun since the target was read: read it again for the error.
        let (_, target) = self::target(call, id, target_id).await?;
        let is_torn = target.is_torn();
        let reason = target.error_message.filter(|_| target.status.is_terminal());
        let detail = format!(
            "the target is {}{}; only a target that waits for its next attempt can be retried{}",
            target.status,
            reason.map(|reason| format!(" ({reason})")).unwrap_or_default(),
            if is_torn { ", and POST /posts/{id}/retry publishes what is missing" } else { "" }
        );
        return Err(Problem::new(Code::Conflict, detail));
    }
    Ok(Target { next_attempt_at: Some(now.into()), ..target.into() })
}

/// Returns a target and the id of its post.
async fn target(call: &Call<'_>, id: &str, target_id: &str) -> Result<(PostId, posts::Target), Problem> {
    let post = find(call, id).await?;
    Ok((post.id, target_of(&post, target_id)?.clone()))
}

/// Returns a target of a post.
fn target_of<'a>(post: &'a posts::Post, id: &str) -> Result<&'a posts::Target, Problem> {
    let target = post.targets.iter().find(|target| target.id.to_string() == id.to_lowercase());
    target.ok_or_else(|| Problem::not_found("target"))
}

/// Parses a post id; an invalid id is not found.
fn read(id: &str) -> Result<PostId, Problem> {
    id.parse().map_err(|_| missing())
}

pub(crate) fn missing() -> Problem {
    Problem::not_found("post")
}

/// Filter for posts. All conditions must hold; ranges include their start and exclude their end.
#[derive(Debug, Default, Object)]
#[oai(rename = "PostFilter")]
pub struct Filter {
    /// Page size, 1 to 100; values outside are clamped. 25 by default.
    pub limit: Option<i64>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Posts with this status.
    pub status: Option<EnumString<PostStatus>>,
    /// Posts with a target on this platform.
    pub platform: Option<EnumString<Platform>>,
    /// Posts to this account.
    pub social_account_id: Option<Uuid>,
    /// Posts to an account of this profile.
    pub profile_id: Option<Uuid>,
    /// Posts to an account of this end tenant.
    #[oai(validator(max_length = 255))]
    pub tenant_id: Option<String>,
    /// Posts whose metadata has all of these entries: `metadata[order]=7&metadata[env]=prod`.
    pub metadata: Option<Metadata>,
    /// Posts with this text in a container, in upper or lower case.
    #[oai(validator(min_length = 2, max_length = 100))]
    pub q: Option<String>,
    /// Created at or after this time (inclusive).
    pub created_after: Option<TimeBound>,
    /// Created before this time (exclusive).
    pub created_before: Option<TimeBound>,
    /// Scheduled at or after this time (inclusive).
    pub scheduled_after: Option<TimeBound>,
    /// Scheduled before this time (exclusive).
    pub scheduled_before: Option<TimeBound>,
}

impl Rules for Filter {
    fn check(query: &Map<String, Value>, issues: &mut Vec<Issue>) {
        metadata::check(query, "metadata", issues);
    }
}

impl From<Filter> for posts::Filter {
    fn from(filter: Filter) -> Self {
        let time = |at: Option<TimeBound>| at.map(|TimeBound(at)| at);
        Self {
            status: filter.status.map(|status| status.value()),
            platform: filter.platform.map(|platform| platform.as_str().to_owned()),
            social_account_id: filter.social_account_id.map(AccountId),
            profile_id: filter.profile_id,
            tenant_id: filter.tenant_id,
            metadata: filter.metadata.unwrap_or_default().0,
            text: filter.q,
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
    /// Cursor of the next page; null on the last page.
    #[oai(nullable)]
    pub next_cursor: Option<String>,
}

/// A post in a list: the contract's six members and no other.
#[derive(Debug, Object)]
#[oai(rename = "PostSummary")]
pub struct Summary {
    /// The post's id.
    pub id: Uuid,
    /// Status.
    pub status: EnumString<PostStatus>,
    /// True if the post is a draft.
    pub is_draft: bool,
    /// Scheduled time; null for immediately.
    #[oai(nullable)]
    pub scheduled_at: Option<Timestamp>,
    /// Time when the first target was published.
    #[oai(nullable)]
    pub published_at: Option<Timestamp>,
    /// Creation time.
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

/// A post with its containers and targets.
#[derive(Debug, Object)]
pub struct Post {
    /// The post's id.
    pub id: Uuid,
    /// Status.
    pub status: EnumString<PostStatus>,
    /// True if the post is a draft.
    pub is_draft: bool,
    /// Id of the post that it replies to; null for a post of its own.
    #[oai(nullable)]
    pub reply_to: Option<Uuid>,
    /// Scheduled time; null for immediately.
    #[oai(nullable)]
    pub scheduled_at: Option<Timestamp>,
    /// Time when the first target was published.
    #[oai(nullable)]
    pub published_at: Option<Timestamp>,
    /// Settings by platform.
    pub default_config: JsonObject,
    /// Idempotency key.
    #[oai(nullable)]
    pub external_ref: Option<String>,
    /// Your own data on the post.
    pub metadata: Metadata,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last update.
    pub updated_at: Timestamp,
    /// Main post and replies, in order.
    pub containers: Vec<Container>,
    /// Content that replaces `containers` for some of the targets, by overrides in `config`.
    pub variants: Vec<Variant>,
    /// Targets, one per account.
    pub targets: Vec<Target>,
}

/// The content of the targets that name this variant.
#[derive(Debug, Object)]
#[oai(rename = "PostVariant")]
pub struct Variant {
    /// Number of the variant in its post, from 1.
    pub variant: u16,
    /// Main post and replies, in order.
    pub containers: Vec<Container>,
}

/// A text with media: the main post or a reply.
#[derive(Debug, Object)]
pub struct Container {
    /// The container's id.
    pub id: Uuid,
    /// Position in the post, from 0.
    pub position: u16,
    /// Role by the position: `main`, then `first_comment`, then `thread`; in a post with `reply_to` as well.
    pub role: EnumString<Role>,
    /// Text.
    pub content: String,
    /// Media published with the text, in order.
    pub media: Vec<ContainerMedia>,
}

/// A media asset of a container.
#[derive(Debug, Object)]
pub struct ContainerMedia {
    /// Id of the media asset.
    pub id: Uuid,
    /// Alt text given with the post; null if the media asset's own is used.
    #[oai(nullable)]
    pub alt_text: Option<String>,
}

/// Publication of a post to one account.
#[derive(Debug, Object)]
pub struct Target {
    /// The target's id.
    pub id: Uuid,
    /// Id of the account.
    pub social_account_id: Uuid,
    /// The account's platform.
    pub platform: EnumString<Platform>,
    /// Number of the variant of the post that it publishes; null for the post's `containers`.
    #[oai(nullable)]
    pub variant: Option<u16>,
    /// Its own time to publish; null for the post's.
    #[oai(nullable)]
    pub scheduled_at: Option<Timestamp>,
    /// Status. `failed` is retried, `dead` is final unless the post is retried.
    pub status: EnumString<TargetStatus>,
    /// The platform's id of the post that it replies to, from the first attempt on; null if its post has no `reply_to`.
    #[oai(nullable)]
    pub reply_to_platform_post_id: Option<String>,
    /// The platform's id of the published post.
    #[oai(nullable)]
    pub platform_post_id: Option<String>,
    /// URL of the published post.
    #[oai(nullable)]
    pub platform_post_url: Option<String>,
    /// Machine-readable code of the last failure, for example `rate_limited` or `rejected_400`. `stopped` if an
    /// operator of the service ended the target, `frozen` while one has paused publishing, `app_refused` while the platform
    /// refuses the app that it is published with, whose owner has to act: these two cost no attempt. Null if a target was published without parts that the platform does not support, or is `canceled`: `error_message`
    /// says which and why.
    #[oai(nullable)]
    pub error_code: Option<String>,
    /// Human-readable error of the platform, or why the target was canceled; may change. That of a published target
    /// begins with the part of the post that failed, such as `part 3 of 4`.
    #[oai(nullable)]
    pub error_message: Option<String>,
    /// Who can fix it: `user`, `platform` or `service`.
    #[oai(nullable)]
    pub error_source: Option<EnumString<ErrorSource>>,
    /// Publish attempts begun, since the last retry of a dead target. Those that the platform throttled don't count
    /// towards the limit of ten.
    pub attempts: i32,
    /// Time of the next attempt. Null if none is scheduled, also while publishing is `frozen`.
    #[oai(nullable)]
    pub next_attempt_at: Option<Timestamp>,
    /// Time of publication.
    #[oai(nullable)]
    pub published_at: Option<Timestamp>,
    /// Time when the published post was deleted from the platform; null while it is live.
    #[oai(nullable)]
    pub unpublished_at: Option<Timestamp>,
    /// Time when the published post was last changed on the platform, or the text of a part that is missing; null if
    /// neither ever was.
    #[oai(nullable)]
    pub edited_at: Option<Timestamp>,
    /// Changes since it was published; null if there are none.
    #[oai(nullable)]
    pub edits: Option<TargetEdits>,
    /// Parts of a live post that are not published and not tried any more, each with the reason, in order. Empty while a
    /// part is still awaited.
    pub missing: Vec<MissingPart>,
}

/// A part of a live post that is not published.
#[derive(Debug, Object)]
pub struct MissingPart {
    /// Position of its container in the post, from 0.
    pub position: u16,
    /// Code of its failure. Null for a part that was not tried: it follows one that failed, the platform has no place for
    /// it, or it was given up.
    #[oai(nullable)]
    pub error_code: Option<String>,
    /// Why it is not published; may change.
    pub error_message: String,
}

impl From<Missing> for MissingPart {
    fn from(part: Missing) -> Self {
        Self { position: part.position, error_code: part.error_code, error_message: part.error_message }
    }
}

/// Changes to a target's posts since they were published.
#[derive(Debug, Object)]
pub struct TargetEdits {
    /// Containers with another text, by position.
    pub containers: Vec<EditedContainer>,
    /// Settings of the platform that were changed.
    pub config: JsonObject,
}

/// A container with another text on one platform.
#[derive(Debug, Object)]
pub struct EditedContainer {
    /// Position in the post, from 0.
    pub position: u16,
    /// The text that the platform shows, or, of a part that is missing, the one that a retry publishes.
    pub content: String,
}

impl From<posts::Edits> for TargetEdits {
    fn from(edits: posts::Edits) -> Self {
        let containers = edits.containers.into_iter();
        Self {
            containers: containers.map(|(position, content)| EditedContainer { position, content }).collect(),
            config: edits.config.into_iter().collect(),
        }
    }
}

impl From<posts::Post> for Post {
    fn from(post: posts::Post) -> Self {
        Self {
            id: post.id.0,
            status: EnumString::of(post.status.as_str()),
            is_draft: post.is_draft,
            reply_to: post.reply_to.map(|post| post.0),
            scheduled_at: post.scheduled_at.map(Timestamp),
            published_at: post.published_at.map(Timestamp),
            default_config: json_object(post.default_config),
            external_ref: post.external_ref,
            metadata: Metadata(post.metadata),
            created_at: post.created_at.into(),
            updated_at: post.updated_at.into(),
            containers: Container::all(post.containers),
            variants: (1..).zip(post.variants).map(Variant::of).collect(),
            targets: post.targets.into_iter().map(Target::from).collect(),
        }
    }
}

impl Variant {
    fn of((variant, containers): (u16, Vec<posts::Container>)) -> Self {
        Self { variant, containers: Container::all(containers) }
    }
}

impl Container {
    fn all(containers: Vec<posts::Container>) -> Vec<Self> {
        let one = |container: posts::Container| Self {
            id: container.id.0,
            position: container.position,
            role: EnumString::of(container.role().as_str()),
            content: container.content,
            media: container.media.into_iter().map(ContainerMedia::from).collect(),
        };
        containers.into_iter().map(one).collect()
    }
}

impl From<posts::Attachment> for ContainerMedia {
    fn from(attachment: posts::Attachment) -> Self {
        Self { id: attachment.id, alt_text: attachment.alt_text }
    }
}

impl From<posts::Target> for Target {
    fn from(target: posts::Target) -> Self {
        let next_attempt_at = target.next_attempt().map(Timestamp);
        Self {
            id: target.id.0,
            social_account_id: target.account_id.0,
            platform: EnumString::of(&target.platform),
            variant: Some(target.variant).filter(|variant| *variant > 0),
            scheduled_at: target.scheduled_at.map(Timestamp),
            status: EnumString::of(target.status.as_str()),
            reply_to_platform_post_id: target.reply_parent,
            platform_post_id: target.platform_post_id,
            platform_post_url: target.platform_post_url,
            error_code: target.error_code,
            error_message: target.error_message,
            error_source: target.error_source.map(|source| EnumString::of(source.as_str())),
            attempts: target.attempts,
            next_attempt_at,
            published_at: target.published_at.map(Timestamp),
            unpublished_at: target.unpublished_at.map(Timestamp),
            edited_at: target.edited_at.map(Timestamp),
            edits: target.edits.map(TargetEdits::from),
            missing: target.missing.into_iter().map(MissingPart::from).collect(),
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

/// The response to a retry.
#[derive(ApiResponse)]
enum RetryAccepted {
    /// The next attempt starts now.
    #[oai(status = 202)]
    Accepted(Json<Target>),
}

/// The response to a retry of a post.
#[derive(ApiResponse)]
enum RetriedPost {
    /// The dead targets start over, and the missing parts of published ones are published.
    #[oai(status = 202)]
    Accepted(Json<Post>),
}

/// The response to a creation.
#[derive(ApiResponse)]
enum CreatedPost {
    /// The post was created.
    #[oai(status = 201)]
    New(Json<Post>),
    /// A post with this idempotency key exists and is returned in its current state.
    #[oai(status = 200)]
    Replay(
        Json<Post>,
        /// Always `true`.
        #[oai(header = "Idempotent-Replayed")]
        String,
    ),
}

#[cfg(test)]
mod samples;
