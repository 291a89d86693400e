//! Creating several posts in one call.
//!
//! Each item is handled like the body of a single creation and has the status that call would have had. A
//! failing item does not affect the others.

use crate::{
    http::{
        body::{self, Json},
        caller::{Call, Caller, PostsWrite},
        headers::Header,
        problem::{Issue, MAX_ISSUES, Problem},
    },
    openapi::{
        tag::Tag,
        validate::{Rules, Schema},
    },
    posts::{
        Reference,
        create::{self, NewPost},
    },
    types::{enum_string::EnumString, scalar::scalar},
};
use poem_openapi::{
    ApiResponse, Object, OpenApi,
    registry::{MetaSchema, MetaSchemaRef},
    types::Type,
};
use serde_json::Value;
use std::{marker::PhantomData, sync::Arc};
use store::posts::Created;

/// The batch operation.
pub struct Batches;

#[OpenApi(tag = "Tag::Posts")]
impl Batches {
    /// Create several posts
    ///
    /// Handles each item as a creation of its own, in order; a failing item does not affect the others. The
    /// header `Idempotency-Key` is ignored; use each item's `external_ref`. Scope `posts:write`.
    #[oai(path = "/posts/batch", method = "post", operation_id = "createPosts")]
    async fn create(&self, caller: Caller<PostsWrite>, body: Json<Batch>) -> Result<CreatedPosts, Problem> {
        Ok(CreatedPosts::Each(Json(create(&caller.call(), body.0).await)))
    }
}

/// Creates each of the posts.
pub async fn create(call: &Call<'_>, batch: Batch) -> Outcomes {
    let mut outcomes = Outcomes { data: Vec::new(), errors: Vec::new() };
    // All items share the limit of issues; each lists at least one.
    let mut room = MAX_ISSUES;
    for (index, Deferred(item, _)) in (0..).zip(batch.posts) {
        let created = match body::read::<NewPost>(item) {
            Ok(post) => create::create(call, post, &Header::default()).await,
            Err(problem) => Err(problem),
        };
        match created {
            Ok(created) => outcomes.data.push(Success::of(index, created)),
            Err(problem) => {
                let problem = problem.with_at_most(room.max(1));
                room = room.saturating_sub(problem.issues.len());
                outcomes.errors.push(Failure::of(index, problem));
            }
        }
    }
    outcomes
}

/// Posts to create.
#[derive(Debug, Object)]
#[oai(rename = "NewPosts")]
pub struct Batch {
    /// The posts, each as for creating a single post.
    #[oai(validator(max_items = 20))]
    pub posts: Vec<Deferred<NewPost>>,
}

impl Rules for Batch {
    const REFUSES_SLIPS: bool = true;

    fn homes() -> Vec<(&'static str, Arc<Schema>)> {
        vec![("posts", Schema::of::<NewPost>())]
    }
}

/// JSON documented as a `T` and parsed later.
#[derive(Debug)]
pub struct Deferred<T>(Value, PhantomData<fn() -> T>);

scalar! {
    [T: Type] Deferred<T> {
        name: T::name(),
        // Validation of the whole body does not look into alternatives.
        schema: MetaSchemaRef::Inline(Box::new(MetaSchema {
            any_of: vec![T::schema_ref()],
            ..MetaSchema::ANY
        })),
        register: T::register,
        parse: |value| Ok(Self(value, PhantomData)),
        write: |deferred| deferred.0.clone(),
    }
}

/// Results of a batch.
#[derive(Debug, Object)]
#[oai(rename = "CreatedPosts")]
pub struct Outcomes {
    /// Items that succeeded.
    pub data: Vec<Success>,
    /// Items that failed.
    pub errors: Vec<Failure>,
}

/// A batch item that succeeded.
#[derive(Debug, Object)]
#[oai(rename = "BatchSuccess")]
pub struct Success {
    /// Index of the item, from 0.
    pub index: u32,
    /// 201 for a new post, 200 for one that was created with the same `external_ref` before.
    pub status: u16,
    /// The post.
    pub post: Reference,
}

impl Success {
    fn of(index: u32, created: Created) -> Self {
        let (status, post) = match created {
            Created::New(post) => (201, post),
            Created::Replay(post) => (200, post),
        };
        let post = Reference { id: post.id.0, status: EnumString::of(post.status.as_str()) };
        Self { index, status, post }
    }
}

/// A batch item that failed, with the problem that a single creation would return.
#[derive(Debug, Object)]
#[oai(rename = "BatchFailure")]
pub struct Failure {
    /// Index of the item, from 0.
    pub index: u32,
    /// The HTTP status.
    pub status: u16,
    /// The name of the status.
    pub title: String,
    /// Human-readable explanation; may change.
    pub detail: String,
    /// Machine-readable problem code.
    pub code: EnumString<crate::http::problem::Code>,
    /// Errors of single fields of the item.
    #[oai(skip_serializing_if_is_none)]
    pub errors: Option<Vec<Issue>>,
}

impl Failure {
    fn of(index: u32, problem: Problem) -> Self {
        let status = problem.code.status();
        Self {
            index,
            status: status.as_u16(),
            title: crate::http::problem::title(status).to_owned(),
            detail: problem.detail,
            code: EnumString::of(problem.code.as_str()),
            errors: Some(problem.issues).filter(|issues| !issues.is_empty()),
        }
    }
}

/// The response to a batch.
#[derive(ApiResponse)]
enum CreatedPosts {
    /// Each item has its own status.
    #[oai(status = 207)]
    Each(Json<Outcomes>),
}
