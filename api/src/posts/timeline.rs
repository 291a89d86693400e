//! The timeline of a post: past events and upcoming steps.

use crate::{
    http::{
        caller::Call,
        page::{List, Paging},
        problem::Problem,
    },
    types::{
        json_object::{JsonObject, json_object},
        timestamp::Timestamp,
    },
};
use domain::{PostStatus, TargetStatus};
use poem_openapi::Object;
use store::{
    page::Page,
    posts::{Post, Target, timeline},
};
use uuid::Uuid;

/// Reads a page of the timeline of a post.
pub async fn of(call: &Call<'_>, post: &Post, paging: &Paging) -> Result<Timeline, Problem> {
    let list = List::Timeline(post.id);
    let page = list.paged(call, paging)?;
    let Page { items: entries, next: after } =
        timeline::list(call.db(), call.access(), post.id, page, call.webhooks()).await?;
    let mut next: Vec<_> = post.targets.iter().filter_map(|target| publishing(post, target)).collect();
    next.extend(entries.iter().filter_map(delivery));
    // Steps without a time are due now and come first.
    next.sort_by_key(|step| step.at.map(|Timestamp(at)| at));
    let next_cursor = list.next(call, after);
    Ok(Timeline { data: entries.into_iter().map(Entry::from).collect(), next, next_cursor })
}

/// The next step of a target; `None` for a draft, a target that ended, and one that is live with its whole thread.
fn publishing(post: &Post, target: &Target) -> Option<Step> {
    let is_over = match target.status {
        TargetStatus::Published => target.next_attempt_at.is_none(),
        status => status.is_terminal(),
    };
    if post.status == PostStatus::Draft || is_over {
        return None;
    }
    let action = match target.status {
        TargetStatus::Failed | TargetStatus::Published => "retry",
        _ => "publish",
    };
    // The first attempt waits for the post's time; later ones have their own time.
    let waits = post.scheduled_at.filter(|_| target.attempts == 0);
    // One that is frozen has no time: it goes on when that is released.
    let at = target.next_attempt().or(waits).filter(|_| !target.is_frozen).map(Timestamp);
    Some(Step { target_id: Some(target.id.0), action: action.to_owned(), at })
}

/// The next attempt of a pending webhook delivery.
fn delivery(entry: &timeline::Entry) -> Option<Step> {
    let is_open = matches!(entry.detail["status"].as_str(), Some("pending" | "delivering"));
    let at = entry.detail["next_attempt_at"].as_str().and_then(Timestamp::read);
    (entry.kind == "delivery" && is_open).then(|| Step {
        target_id: entry.target_id.map(|target| target.0),
        action: "deliver".to_owned(),
        at,
    })
}

/// Timeline of a post.
#[derive(Debug, Object)]
pub struct Timeline {
    /// Past events, oldest first.
    pub data: Vec<Entry>,
    /// Upcoming steps, soonest first: those of all targets, and of the deliveries on this page.
    pub next: Vec<Step>,
    /// Cursor of the next page; absent on the last page.
    #[oai(skip_serializing_if_is_none)]
    pub next_cursor: Option<String>,
}

/// A past event.
#[derive(Debug, Object)]
#[oai(rename = "TimelineEntry")]
pub struct Entry {
    /// Time of the event.
    pub at: Timestamp,
    /// Machine-readable event type, for example `attempt`.
    pub kind: String,
    /// Human-readable description.
    pub message: String,
    /// Id of the target; null for the whole post.
    #[oai(nullable)]
    pub target_id: Option<Uuid>,
    /// Further details.
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

/// An upcoming step.
#[derive(Debug, Object)]
#[oai(rename = "TimelineStep")]
pub struct Step {
    /// Id of the target; null for the whole post.
    #[oai(nullable)]
    pub target_id: Option<Uuid>,
    /// Action: `publish`, `retry` or `deliver`.
    pub action: String,
    /// Time of the step; null for immediately, and for a target whose publishing is `frozen`.
    #[oai(nullable)]
    pub at: Option<Timestamp>,
}
