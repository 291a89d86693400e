//! A post with its targets and timeline.

use super::{
    context::{PageContext, done},
    labels::{self, AbsoluteTime, Done, Label, RelativeTime},
    layout::{Layout, PageError, render},
    posts::excerpt,
};
use crate::{
    http::{body, problem::Problem},
    posts::{self, checks, edit, timeline},
};
use askama::Template;
use domain::{PostStatus, TargetStatus};
use poem::Response;
use serde_json::json;
use store::{overview, posts::Attachment};
use uuid::Uuid;
use workflows::{publish_post, publish_target};

#[derive(Template)]
#[template(path = "dashboard/post.html")]
struct Page {
    layout: Layout,
    id: String,
    label: Label,
    excerpt: String,
    created: AbsoluteTime,
    scheduled: Option<AbsoluteTime>,
    published: Option<AbsoluteTime>,
    external_ref: Option<String>,
    settings: Option<String>,
    texts: Vec<Text>,
    targets: Vec<Target>,
    events: Vec<Event>,
    steps: Vec<Step>,
    workflow: Option<String>,
    is_draft: bool,
    can_cancel: bool,
}

struct Text {
    name: &'static str,
    content: String,
    media: Vec<String>,
}

struct Target {
    id: String,
    account: String,
    who: String,
    platform: String,
    label: Label,
    is_account_gone: bool,
    account_label: Label,
    reason: Option<String>,
    message: Option<String>,
    source: Option<&'static str>,
    attempts: i32,
    next: Option<RelativeTime>,
    published: Option<AbsoluteTime>,
    link: Option<String>,
    can_retry: bool,
    is_dead: bool,
    workflow: Option<String>,
}

struct Event {
    at: AbsoluteTime,
    message: String,
    who: Option<String>,
    error: Option<String>,
}

struct Step {
    message: String,
    at: Option<RelativeTime>,
}

/// Shows the page.
pub(crate) async fn show(
    context: &PageContext<'_>,
    id: &str,
    error: Option<PageError>,
) -> Result<Response, Problem> {
    let (call, now) = (context.call(), context.now());
    let post = posts::find(&call, id).await?;
    let story = timeline::of(&call, &post).await?;
    let ids: Vec<_> = post.targets.iter().map(|target| target.account_id).collect();
    let names = overview::names(context.db(), call.owner, &ids).await?;
    let who = |target: &store::posts::Target| {
        let name = names.get(&target.account_id).map_or("?", |named| named.username.as_str());
        format!("{name} on {}", platforms::display_name(&target.platform))
    };
    let of_target = |id: Option<Uuid>| {
        let target = post.targets.iter().find(|target| Some(target.id.0) == id);
        target.map(who)
    };
    let shown = post.containers.iter().flat_map(|container| &container.media);
    let files = checks::find_media(&call, &shown.map(|media| media.id).collect::<Vec<_>>()).await?;
    let file = |media: &Attachment| match files.get(&media.id) {
        Some(file) => format!("{} ({})", file.filename, file.kind),
        None => "A deleted file".to_owned(),
    };
    let ui = context.app.config.temporal_ui.as_ref();
    let first = post.containers.first().map_or("", |container| container.content.as_str());
    let page = Page {
        layout: context.layout_with_error("Post", "/posts", error).live(&format!("/posts/{}", post.id)),
        label: labels::post(post.status),
        excerpt: excerpt(&first.chars().take(80).collect::<String>()),
        created: AbsoluteTime(post.created_at),
        scheduled: post.scheduled_at.map(AbsoluteTime),
        published: post.published_at.map(AbsoluteTime),
        external_ref: post.external_ref.clone(),
        settings: post
            .default_config
            .as_object()
            .filter(|settings| !settings.is_empty())
            .map(|_| format!("{:#}", post.default_config)),
        texts: post
            .containers
            .iter()
            .map(|container| Text {
                name: match container.role() {
                    domain::Role::Main => "Post",
                    domain::Role::FirstComment => "First comment",
                    domain::Role::Thread => "Thread",
                },
                content: container.content.clone(),
                media: container.media.iter().map(file).collect(),
            })
            .collect(),
        targets: post
            .targets
            .iter()
            .map(|target| {
                let named = names.get(&target.account_id);
                Target {
                    id: target.id.to_string(),
                    account: target.account_id.to_string(),
                    who: who(target),
                    platform: platforms::display_name(&target.platform).to_owned(),
                    label: labels::target(target.status),
                    is_account_gone: named
                        .is_some_and(|named| named.status != store::accounts::AccountStatus::Active),
                    account_label: labels::account(
                        named.map_or(store::accounts::AccountStatus::Disconnected, |named| named.status),
                    ),
                    reason: target.error_code.as_deref().map(|code| labels::reason(code, &target.platform)),
                    message: target.error_message.clone(),
                    source: target.error_source.map(labels::source),
                    attempts: target.attempts,
                    next: target.next_attempt_at.map(|at| RelativeTime::of(at, now)),
                    published: target.published_at.map(AbsoluteTime),
                    link: target.platform_post_url.clone().filter(|link| link.starts_with("http")),
                    can_retry: target.can_retry(),
                    is_dead: target.status == TargetStatus::Dead,
                    workflow: ui
                        .filter(|_| target.attempts > 0)
                        .map(|ui| ui.workflow(&publish_target::id(target.id))),
                }
            })
            .collect(),
        events: story
            .data
            .iter()
            .map(|entry| Event {
                at: AbsoluteTime(entry.at.0),
                message: entry.message.clone(),
                who: of_target(entry.target_id),
                error: entry.detail.get("error").and_then(|error| error.as_str()).map(str::to_owned),
            })
            .collect(),
        steps: story
            .next
            .iter()
            .map(|step| Step {
                message: {
                    let verb = match step.action.as_str() {
                        "retry" => "Try again to publish as",
                        "deliver" => "Tell a webhook endpoint of",
                        _ => "Publish as",
                    };
                    format!("{verb} {}", of_target(step.target_id).unwrap_or_else(|| "the post".to_owned()))
                },
                at: step.at.map(|at| RelativeTime::of(at.0, now)),
            })
            .collect(),
        workflow: ui
            .filter(|_| post.status != PostStatus::Draft)
            .map(|ui| ui.workflow(&publish_post::id(post.id))),
        is_draft: post.status == PostStatus::Draft,
        can_cancel: post.status.is_editable() || post.status == PostStatus::Publishing,
        id: post.id.to_string(),
    };
    Ok(render(page.layout.status(), &page))
}

/// Deletes the post and cancels its pending targets.
pub(crate) async fn cancel(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    match posts::delete(&context.call(), id).await {
        Ok(_) => Ok(done("/posts", Done::Canceled)),
        Err(problem) => show(context, id, Some(PageError::of("post", problem))).await,
    }
}

/// Releases a draft.
pub(crate) async fn release(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    let call = context.call();
    match edit::edit(&call, id, body::read(json!({ "is_draft": false }))?).await {
        Ok(post) => Ok(done(&format!("/posts/{}", post.id), Done::Released)),
        Err(problem) => show(context, id, Some(PageError::of("post", problem))).await,
    }
}

/// Retries a target now.
pub(crate) async fn retry(context: &PageContext<'_>, id: &str, target: &str) -> Result<Response, Problem> {
    match posts::retry(&context.call(), id, target).await {
        Ok(_) if context.form.get("back") == "overview" => Ok(done("", Done::Retried)),
        Ok(_) => Ok(done(&format!("/posts/{id}"), Done::Retried)),
        Err(problem) => show(context, id, Some(PageError::of(target, problem))).await,
    }
}
