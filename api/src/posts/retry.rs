//! Retries of dead targets, and of live ones that miss parts.
//!
//! A target that is retried starts over with a new budget. One whose last publishing call has no known result is
//! looked up first, so that a retry publishes nothing twice.

use crate::{
    http::{
        caller::Call,
        problem::{Code, Issue, Problem, Segment},
    },
    openapi::validate::Rules,
    posts,
};
use domain::{TargetId, TargetStatus};
use poem_openapi::Object;
use store::publishing::{self, Revived};
use uuid::Uuid;

/// Which targets to retry.
#[derive(Debug, Default, Object)]
#[oai(rename = "RetryPost")]
pub struct RetryPost {
    /// Ids of targets; those of them are retried that are `dead`, or `published` and `missing` a part that failed. All of
    /// the post's by default.
    #[oai(validator(min_items = 1, max_items = 1000))]
    pub targets: Option<Vec<Uuid>>,
}

impl Rules for RetryPost {
    const IS_OPTIONAL: bool = true;
    const REFUSES_SLIPS: bool = true;
}

/// Retries the dead targets of a post, and those that miss parts.
pub async fn retry(call: &Call<'_>, id: &str, body: RetryPost) -> Result<store::posts::Post, Problem> {
    let post = posts::find(call, id).await?;
    let only: Option<Vec<_>> = body.targets.map(|ids| ids.into_iter().map(TargetId).collect());
    let is_unknown = |id: &TargetId| !post.targets.iter().any(|target| target.id == *id);
    let issues: Vec<_> = only
        .iter()
        .flatten()
        .enumerate()
        .filter(|(_, id)| is_unknown(id))
        .map(|(index, _)| {
            Issue::custom([Segment::from("targets"), Segment::from(index)], "The post has no such target")
        })
        .collect();
    if !issues.is_empty() {
        let detail = "one or more targets were not found";
        return Err(Problem::new(Code::Unprocessable, detail).with_issues(issues));
    }
    match publishing::revive(call.db(), call.access(), post.id, only.as_deref(), call.now()).await? {
        Revived::Targets(_) => posts::find(call, id).await,
        Revived::NoneDead => {
            let mut canceled = post.targets.iter().filter(|target| target.status == TargetStatus::Canceled);
            let detail = match canceled.find_map(|target| target.error_message.as_deref()) {
                None => {
                    "no target is dead or misses a part that failed; only such a one is retried".to_owned()
                }
                Some(reason) => format!(
                    "no target is dead or misses a part that failed; only such a one is retried, and not one that was canceled ({reason}): create another post"
                ),
            };
            Err(Problem::new(Code::Conflict, detail))
        }
        Revived::Disconnected => {
            let detail = "the accounts of the targets to retry are disconnected; connect them again first";
            Err(Problem::new(Code::Conflict, detail))
        }
        Revived::Missing => Err(posts::missing()),
    }
}
