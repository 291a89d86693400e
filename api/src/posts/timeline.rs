//! What happened to a post and what comes next, so that nobody has to ask whether it is tried again.

use crate::{
    http::{caller::Call, problem::Problem},
    types::{
        json_object::{JsonObject, json_object},
        timestamp::Timestamp,
    },
};
use domain::{PostStatus, TargetStatus};
use poem_openapi::Object;
use store::{
    posts::{Post, Target},
    timeline,
};
use uuid::Uuid;

/// Reads the timeline of a post.
pub async fn of(call: &Call<'_>, post: &Post) -> Result<Timeline, Problem> {
    let entries = timeline::list(call.db(), call.owner, post.id).await?;
    let mut next: Vec<_> = post.targets.iter().filter_map(|target| publishing(post, target)).collect();
    next.extend(entries.iter().filter_map(delivery));
    // What comes at once comes first.
    next.sort_by_key(|step| step.at.map(|Timestamp(at)| at));
    Ok(Timeline { data: entries.into_iter().map(Entry::from).collect(), next })
}

/// What comes next for a target; nothing for a draft, nor after the end.
fn publishing(post: &Post, target: &Target) -> Option<Step> {
    if post.status == PostStatus::Draft || target.status.is_terminal() {
        return None;
    }
    let action = match target.status {
        TargetStatus::Failed => "retry",
        _ => "publish",
    };
    // A first attempt waits for the post's time; a later one has a time of its own.
    let waits = post.scheduled_at.filter(|_| target.attempts == 0);
    let at = target.next_attempt_at.or(waits).map(Timestamp);
    Some(Step { target_id: Some(target.id.0), action: action.to_owned(), at })
}

/// The next attempt of a webhook delivery that is still to be made.
fn delivery(entry: &timeline::Entry) -> Option<Step> {
    let is_open = matches!(entry.detail["status"].as_str(), Some("pending" | "delivering"));
    let at = entry.detail["next_attempt_at"].as_str().and_then(Timestamp::read);
    (entry.kind == "delivery" && is_open).then(|| Step {
        target_id: entry.target_id.map(|target| target.0),
        action: "deliver".to_owned(),
        at,
    })
}

/// The story of a post.
#[derive(Debug, Object)]
pub struct Timeline {
    /// What happened, oldest first.
    pub data: Vec<Entry>,
    /// What comes next, soonest first; empty when nothing does.
    pub next: Vec<Step>,
}

/// One thing that happened.
#[derive(Debug, Object)]
#[oai(rename = "TimelineEntry")]
pub struct Entry {
    /// When.
    pub at: Timestamp,
    /// What, for machines, for example `post.created`.
    pub kind: String,
    /// What, for people.
    pub message: String,
    /// To which target; null to the whole post.
    #[oai(nullable)]
    pub target_id: Option<Uuid>,
    /// More about it.
    pub detail: JsonObject,
}

impl From<timeline::Entry> for Entry {
    fn from(entry: timeline::Entry) -> Self {
        Self {
            at: entry.at.into(),
            kind: entry.kind,
            message: entry.message,
            target_id: entry.target_id.map(|target| target.0),
            detail: json_object(entry.detail),
        }
    }
}

/// One thing that comes next.
#[derive(Debug, Object)]
#[oai(rename = "TimelineStep")]
pub struct Step {
    /// For which target; null for the whole post.
    #[oai(nullable)]
    pub target_id: Option<Uuid>,
    /// What: `publish`, `retry` or `deliver`.
    pub action: String,
    /// When; null at once.
    #[oai(nullable)]
    pub at: Option<Timestamp>,
}
