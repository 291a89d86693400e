//! The whole story of a post, as `fanfare ops show` prints it: its rows, and the state of its workflows.

use super::{Operator, stuck};
use crate::{
    labels::{self, AbsoluteTime, Label},
    layout::{Layout, PageError, render},
};
use api::http::problem::Problem;
use askama::Template;
use chrono::{DateTime, Utc};
use domain::TargetStatus;
use poem::Response;
use serde_json::Value;
use store::{
    operators::{self, Story},
    webhooks::deliveries::DeliveryStatus,
};
use uuid::Uuid;

#[derive(Template)]
#[template(path = "operators/story.html")]
struct Page<'a> {
    layout: Layout,
    id: String,
    org: String,
    mode: String,
    label: Option<Label>,
    created: Option<AbsoluteTime>,
    scheduled: Option<AbsoluteTime>,
    contents: Vec<String>,
    targets: Vec<Target>,
    workflows: Vec<Workflow>,
    timeline: Vec<Entry>,
    deliveries: Vec<Delivery>,
    audit: Vec<Change>,
    rows: String,
    reason: &'a str,
}

struct Target {
    id: String,
    who: String,
    account: String,
    platform: String,
    label: Option<Label>,
    attempts: i64,
    failure: Option<String>,
    next: Option<AbsoluteTime>,
    frozen: Option<String>,
    publications: Vec<String>,
    is_open: bool,
    is_dead: bool,
}

struct Workflow {
    id: String,
    state: String,
    link: Option<String>,
    pending: Vec<Pending>,
}

struct Pending {
    activity: String,
    attempt: i64,
    next: Option<AbsoluteTime>,
    failure: Option<String>,
}

struct Entry {
    at: Option<AbsoluteTime>,
    target: Option<String>,
    message: String,
}

struct Delivery {
    id: String,
    event: String,
    host: String,
    label: Option<Label>,
    attempts: i64,
    error: Option<String>,
    can_redeliver: bool,
}

struct Change {
    at: Option<AbsoluteTime>,
    action: String,
    operator: String,
    details: String,
}

/// Shows the page.
pub(super) async fn show(
    operator: &Operator<'_>,
    id: &str,
    error: Option<PageError>,
) -> Result<Response, Problem> {
    let missing = || Problem::not_found("post");
    let id: Uuid = id.parse().map_err(|_| missing())?;
    let Story { mut rows, workflows } = operators::story(operator.db(), id).await?.ok_or_else(missing)?;
    rows["workflows"] = operator.app.workers.inspect(&workflows).await.into();
    let post = &rows["post"];
    let page = Page {
        layout: operator.layout("Story of a post", "/stuck", error),
        id: text(&post["id"]),
        org: text(&post["org_id"]),
        mode: text(&post["mode"]),
        label: text(&post["status"]).parse().ok().map(labels::post),
        created: time(&post["created_at"]),
        scheduled: time(&post["scheduled_at"]),
        contents: list(&rows["containers"]).map(|container| text(&container["content"])).collect(),
        targets: list(&rows["targets"]).map(Target::from).collect(),
        workflows: list(&rows["workflows"])
            .map(|workflow| Workflow::of(workflow, operator.workflow(&text(&workflow["id"]))))
            .collect(),
        timeline: list(&rows["timeline"]).map(|entry| Entry::of(entry, &rows)).collect(),
        deliveries: list(&rows["deliveries"]).map(Delivery::from).collect(),
        audit: list(&rows["audit"]).map(Change::from).collect(),
        rows: serde_json::to_string_pretty(&rows).unwrap_or_default(),
        reason: operator.form.get("reason"),
    };
    Ok(render(page.layout.status(), &page))
}

/// Retries or ends targets of the post.
pub(super) async fn act(operator: &Operator<'_>, id: &str) -> Result<Response, Problem> {
    let post: Uuid = id.parse().map_err(|_| Problem::not_found("post"))?;
    match stuck::perform(operator).await {
        Ok(outcome) => Ok(outcome.see(&format!("/posts/{post}"), [])),
        Err(problem) if problem.code.status().is_server_error() => Err(problem),
        Err(problem) => {
            let at = operator.form.get("id").to_owned();
            show(operator, id, Some(PageError::of(at, problem))).await
        }
    }
}

impl From<&Value> for Target {
    fn from(row: &Value) -> Self {
        let (account, platform) = (&row["account"], text(&row["platform"]));
        let status = text(&row["status"]).parse::<TargetStatus>().ok();
        Self {
            id: text(&row["id"]),
            who: format!("{} on {}", text(&account["username"]), platforms::display_name(&platform)),
            account: text(&account["id"]),
            label: status.map(labels::target),
            attempts: row["attempts"].as_i64().unwrap_or_default(),
            failure: match (given(&row["error_code"]), given(&row["error_message"])) {
                (Some(code), Some(message)) => Some(format!("{code}: {message}")),
                (code, message) => code.or(message),
            },
            next: time(&row["next_attempt_at"]),
            frozen: given(&row["frozen_by"]["reason"]),
            publications: list(&row["publications"]).map(publication).collect(),
            is_open: status.is_some_and(|status| !status.is_terminal()) || !row["next_attempt_at"].is_null(),
            is_dead: status == Some(TargetStatus::Dead),
            platform,
        }
    }
}

/// Tells the state of a publication.
fn publication(row: &Value) -> String {
    let position = match row["position"].as_i64() {
        Some(0) | None => "main container".to_owned(),
        Some(position) => format!("container {position}"),
    };
    match (given(&row["platform_id"]), given(&row["commit_begun_at"])) {
        (Some(id), _) => format!("{position}: live as {id}"),
        (None, Some(at)) => format!("{position}: its call was begun at {at} and has no known result"),
        (None, None) => format!("{position}: not begun"),
    }
}

impl Workflow {
    fn of(row: &Value, link: Option<String>) -> Self {
        let pending = list(&row["pending_activities"]).map(|activity| Pending {
            activity: text(&activity["activity"]),
            attempt: activity["temporal_attempt"].as_i64().unwrap_or_default(),
            next: time(&activity["next_try_at"]),
            failure: given(&activity["last_failure"]),
        });
        Self {
            id: text(&row["id"]),
            state: given(&row["state"])
                .unwrap_or_else(|| given(&row["error"]).unwrap_or_else(|| "unknown".to_owned())),
            pending: pending.collect(),
            link,
        }
    }
}

impl Entry {
    fn of(row: &Value, rows: &Value) -> Self {
        let target = list(&rows["targets"]).find(|target| target["id"] == row["target_id"]);
        let error = given(&row["detail"]["error_message"]).map(|error| format!(" ({error})"));
        Self {
            at: time(&row["at"]),
            target: target.map(|target| Target::from(target).who),
            message: text(&row["message"]) + &error.unwrap_or_default(),
        }
    }
}

impl From<&Value> for Delivery {
    fn from(row: &Value) -> Self {
        let status = text(&row["status"]).parse::<DeliveryStatus>().ok();
        let attempts = row["attempts"].as_i64().unwrap_or_default();
        Self {
            id: text(&row["id"]),
            event: text(&row["event"]),
            host: given(&row["host"]).unwrap_or_else(|| "a deleted endpoint".to_owned()),
            label: status.map(|status| labels::delivery(status, i32::try_from(attempts).unwrap_or(i32::MAX))),
            attempts,
            error: given(&row["error"]),
            can_redeliver: matches!(status, Some(DeliveryStatus::Delivered | DeliveryStatus::Failed)),
        }
    }
}

impl From<&Value> for Change {
    fn from(row: &Value) -> Self {
        Self {
            at: time(&row["at"]),
            action: text(&row["action"]),
            operator: given(&row["operator"]).unwrap_or_else(|| text(&row["actor"])),
            details: given(&row["details"]["reason"]).unwrap_or_default(),
        }
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn given(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn text(value: &Value) -> String {
    given(value).unwrap_or_default()
}

fn time(value: &Value) -> Option<AbsoluteTime> {
    let at = DateTime::parse_from_rfc3339(value.as_str()?).ok()?;
    Some(AbsoluteTime(at.with_timezone(&Utc)))
}
