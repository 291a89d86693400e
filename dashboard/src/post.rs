//! A post with its targets and timeline.

use crate::{
    context::{PageContext, done},
    labels::{self, AbsoluteTime, Done, Label, RelativeTime},
    layout::{Layout, PageError, render},
    media::Thumb,
    posts::excerpt,
    story::{Facts, Story, told},
    zone,
};
use api::{
    http::{
        body,
        page::Paging,
        problem::{Code, Problem},
    },
    posts::{self, content, edit, edit_target, timeline},
};
use askama::Template;
use domain::{AccountId, PostStatus, TargetStatus};
use poem::Response;
use serde_json::json;
use std::collections::HashMap;
use store::{
    dashboard::overview::{self, AccountName},
    posts::{Attachment, Container},
};
use uuid::Uuid;
use workflows::{publish_post, publish_target};

#[derive(Template)]
#[template(path = "post.html")]
struct Page {
    layout: Layout,
    id: String,
    label: Label,
    excerpt: String,
    created: AbsoluteTime,
    scheduled: Option<AbsoluteTime>,
    published: Option<AbsoluteTime>,
    /// The post that it replies to.
    reply_to: Option<ReplyTo>,
    external_ref: Option<String>,
    settings: Option<String>,
    contents: Vec<Content>,
    targets: Vec<Target>,
    events: Vec<Event>,
    later: Option<String>,
    steps: Vec<Step>,
    workflow: Option<String>,
    is_draft: bool,
    /// Its time as a form field has it, if it can be changed.
    movable: Option<String>,
    can_cancel: bool,
}

/// Content that some of the targets publish.
struct Content {
    /// Accounts whose content is their own; empty for the post's.
    who: String,
    texts: Vec<Text>,
}

struct ReplyTo {
    id: String,
    /// Its text; `None` if it was deleted.
    excerpt: Option<String>,
}

struct Text {
    name: &'static str,
    content: String,
    media: Vec<Thumb>,
}

struct Target {
    id: String,
    account: String,
    who: String,
    /// Platform id, which is also that of its icon.
    platform: String,
    /// Name of the platform.
    name: String,
    label: Label,
    is_account_gone: bool,
    account_label: Label,
    story: Option<Story>,
    /// Note on the parts that a live post lacks.
    note: Option<String>,
    /// The parts that are missing of a live post, with their reasons.
    missing: Vec<String>,
    /// True if a retry may publish them.
    is_torn: bool,
    attempts: i32,
    /// Its own time to publish, until it is published.
    scheduled: Option<AbsoluteTime>,
    published: Option<AbsoluteTime>,
    link: Option<String>,
    can_retry: bool,
    is_dead: bool,
    /// True if the platform refused its content, so that it has to be changed first.
    is_rejected: bool,
    unpublished: Option<AbsoluteTime>,
    edited: Option<AbsoluteTime>,
    can_unpublish: bool,
    /// Texts to edit; none if the platform changes none.
    live: Vec<LiveText>,
    /// Positions of the parts that are missing, to change before they are retried.
    lost: Vec<u16>,
    workflow: Option<String>,
}

impl Target {
    /// True if one of its times is shown.
    fn has_times(&self) -> bool {
        self.scheduled.is_some() || self.published.is_some()
    }

    fn may_be_live(&self) -> bool {
        self.story.as_ref().is_some_and(|story| story.may_be_live)
    }
}

/// A text of a live post, in the form that changes it.
struct LiveText {
    position: u16,
    name: &'static str,
    content: String,
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
    let story = timeline::of(&call, &post, &Paging { limit: None, ..context.paging() }).await?;
    let ids: Vec<_> = post.targets.iter().map(|target| target.account_id).collect();
    let names = overview::names(context.db(), context.whole()?, &ids).await?;
    let who = |target| who(&names, target);
    let target = |id: Option<Uuid>| post.targets.iter().find(|target| Some(target.id.0) == id);
    let of_target = |id| target(id).map(who);
    let platform_of =
        |id| target(id).map_or("the platform", |target| platforms::display_name(&target.platform));
    let shown = post.containers.iter().chain(post.variants.iter().flatten());
    let shown = shown.flat_map(|container| &container.media);
    let files = content::find_media(&call, &shown.map(|media| media.id).collect::<Vec<_>>()).await?;
    let file = |media: &Attachment| match files.get(&media.id) {
        Some(file) => Thumb::of(file, media.alt_text.as_deref()),
        None => Thumb::named("A deleted file"),
    };
    let ui = context.app.config.temporal_ui.as_ref();
    // A text that was refused is shown again.
    let refused_at = error.as_ref().map(|error| error.at.clone());
    let live = |target: &store::posts::Target| -> Vec<LiveText> {
        let can_edit = is_live(target) && adapter(target).is_some_and(|platform| platform.editing.is_ok());
        if !can_edit {
            return Vec::new();
        }
        let count = adapter(target).map_or(0, |platform| platform.limits.replies.containers());
        let texts = edit_target::live_texts(&post, target).into_iter().take(count);
        let texts = texts.filter(|(position, _)| !target.misses(*position));
        let texts = texts.map(|(position, content)| {
            let typed =
                context.form.given(&field(position)).filter(|_| refused_at == Some(target.id.to_string()));
            LiveText {
                position,
                name: part(domain::Role::at(position + u16::from(post.reply_to.is_some()))),
                content: typed.map(str::to_owned).unwrap_or(content),
            }
        });
        texts.collect()
    };
    let texts = |containers: &[Container]| {
        let texts = containers.iter().map(|container| Text {
            name: part(domain::Role::at(container.position + u16::from(post.reply_to.is_some()))),
            content: container.content.clone(),
            media: container.media.iter().map(file).collect(),
        });
        texts.collect()
    };
    let own = (1..).zip(&post.variants).map(|(number, containers)| {
        let targets = post.targets.iter().filter(|target| target.variant == number);
        Content { who: targets.map(who).collect::<Vec<_>>().join(", "), texts: texts(containers) }
    });
    let own: Vec<_> = own.filter(|content| !content.who.is_empty()).collect();
    let mut contents = Vec::new();
    if own.is_empty() || post.targets.iter().any(|target| target.variant == 0) {
        contents.push(Content { who: String::new(), texts: texts(&post.containers) });
    }
    contents.extend(own);
    let reply_to = match post.reply_to {
        Some(id) => {
            let parent = store::posts::get(call.db(), call.access(), id).await?;
            Some(ReplyTo { id: id.to_string(), excerpt: parent.as_ref().map(beginning) })
        }
        None => None,
    };
    let page = Page {
        layout: context.layout_with_error("Post", "/posts", error).live(&format!("/posts/{}", post.id)),
        label: labels::post(post.status),
        excerpt: beginning(&post),
        created: AbsoluteTime(post.created_at),
        scheduled: post.scheduled_at.map(AbsoluteTime),
        published: post.published_at.map(AbsoluteTime),
        reply_to,
        external_ref: post.external_ref.clone(),
        settings: post
            .default_config
            .as_object()
            .filter(|settings| !settings.is_empty())
            .map(|_| format!("{:#}", post.default_config)),
        contents,
        targets: post
            .targets
            .iter()
            .map(|target| {
                let named = names.get(&target.account_id);
                Target {
                    id: target.id.to_string(),
                    account: target.account_id.to_string(),
                    who: who(target),
                    name: platforms::display_name(&target.platform).to_owned(),
                    platform: target.platform.clone(),
                    label: match target.unpublished_at {
                        Some(_) => labels::unpublished(),
                        None => labels::target(target.status),
                    },
                    is_account_gone: named
                        .is_some_and(|named| named.status != store::accounts::AccountStatus::Active),
                    account_label: labels::account(
                        named.map_or(store::accounts::AccountStatus::Disconnected, |named| named.status),
                    ),
                    story: Story::of(&facts(target), now),
                    note: target
                        .error_message
                        .clone()
                        .filter(|_| target.error_code.is_none() && target.missing.is_empty()),
                    missing: target
                        .missing
                        .iter()
                        .flat_map(|part| missing(&post, target, part.position))
                        .collect(),
                    is_torn: target.is_torn(),
                    attempts: target.attempts,
                    scheduled: target
                        .scheduled_at
                        .filter(|_| matches!(target.status, TargetStatus::Pending | TargetStatus::Queued))
                        .map(AbsoluteTime),
                    published: target.published_at.map(AbsoluteTime),
                    link: target
                        .platform_post_url
                        .clone()
                        .filter(|link| link.starts_with("http") && target.unpublished_at.is_none()),
                    can_retry: target.can_retry(),
                    is_dead: target.status == TargetStatus::Dead,
                    is_rejected: target
                        .error_code
                        .as_deref()
                        .is_some_and(|code| code.starts_with("rejected_")),
                    unpublished: target.unpublished_at.map(AbsoluteTime),
                    edited: target.edited_at.map(AbsoluteTime),
                    can_unpublish: is_live(target)
                        && adapter(target).is_some_and(|platform| platform.deletion.is_some()),
                    live: live(target),
                    lost: match target.is_torn() {
                        true => {
                            let missing = target.missing.iter().map(|part| part.position);
                            missing.filter(|position| target.misses(*position)).collect()
                        }
                        false => Vec::new(),
                    },
                    workflow: ui
                        .filter(|_| target.attempts > 0)
                        // The post's workflow makes the first attempt.
                        .map(|ui| match target.attempts > 1 || target.can_retry() {
                            true => ui.workflow(&publish_target::id(target.id)),
                            false => ui.workflow(&publish_post::id(post.id)),
                        }),
                }
            })
            .collect(),
        later: story.next_cursor,
        events: story
            .data
            .iter()
            .map(|entry| Event {
                at: AbsoluteTime(entry.at.0),
                message: told(&entry.message, platform_of(entry.target_id)),
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
        movable: post
            .scheduled_at
            .filter(|_| post.status == PostStatus::Scheduled)
            .map(|at| zone::write(at, zone::current())),
        can_cancel: post.status.is_editable() || post.status == PostStatus::Publishing,
        id: post.id.to_string(),
    };
    Ok(render(page.layout.status(), &page))
}

fn facts(target: &store::posts::Target) -> Facts<'_> {
    Facts {
        platform: &target.platform,
        status: target.status,
        code: target.error_code.as_deref(),
        message: target.error_message.as_deref(),
        attempts: target.attempts,
        next: target.next_attempt(),
        processing_since: None,
    }
}

/// Says that a part of a live post is missing, and why; nothing of another part.
pub(super) fn missing(
    post: &store::posts::Post,
    target: &store::posts::Target,
    position: u16,
) -> Option<String> {
    let count = post.containers_of(target).len();
    let part = target.missing.iter().find(|part| part.position == position)?;
    let said = match &part.error_code {
        Some(code) => {
            told(&format!("{code}: {}", part.error_message), platforms::display_name(&target.platform))
        }
        None => part.error_message.clone(),
    };
    Some(format!("Part {} of {count}: {said}", position + 1))
}

/// Returns the account of a target, with its platform.
pub(super) fn who(names: &HashMap<AccountId, AccountName>, target: &store::posts::Target) -> String {
    let name = names.get(&target.account_id).map_or("?", |named| named.username.as_str());
    format!("{name} on {}", platforms::display_name(&target.platform))
}

/// Returns the beginning of a post's text.
fn beginning(post: &store::posts::Post) -> String {
    let first = post.containers.first().map_or("", |container| container.content.as_str());
    excerpt(&first.chars().take(80).collect::<String>())
}

fn part(role: domain::Role) -> &'static str {
    match role {
        domain::Role::Main => "Post",
        domain::Role::FirstComment => "First comment",
        domain::Role::Thread => "Thread",
    }
}

fn adapter(target: &store::posts::Target) -> Option<&'static platforms::Adapter> {
    platforms::get(&target.platform)
}

fn is_live(target: &store::posts::Target) -> bool {
    target.status == TargetStatus::Published && target.unpublished_at.is_none()
}

/// Name of the form field with the text at this position.
fn field(position: u16) -> String {
    format!("text-{position}")
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

/// Starts a dead target over.
pub(crate) async fn revive(context: &PageContext<'_>, id: &str, target: &str) -> Result<Response, Problem> {
    let call = context.call();
    let revived = match body::read(json!({ "targets": [target] })) {
        Ok(only) => posts::retry::retry(&call, id, only).await,
        Err(problem) => Err(problem),
    };
    match revived {
        Ok(_) => Ok(done(&format!("/posts/{id}"), Done::Revived)),
        Err(problem) => show(context, id, Some(PageError::of(target, problem))).await,
    }
}

/// Deletes a target's post from its platform.
pub(crate) async fn unpublish(
    context: &PageContext<'_>,
    id: &str,
    target: &str,
) -> Result<Response, Problem> {
    match posts::unpublish::unpublish(&context.call(), id, target).await {
        Ok(_) => Ok(done(&format!("/posts/{id}"), Done::Unpublished)),
        Err(problem) => show(context, id, Some(PageError::of(target, problem))).await,
    }
}

/// Changes the texts of a target's post on its platform: those that are not what is live.
pub(crate) async fn edit(context: &PageContext<'_>, id: &str, target: &str) -> Result<Response, Problem> {
    let call = context.call();
    let post = posts::find(&call, id).await?;
    let found = post.targets.iter().find(|found| found.id.to_string() == target);
    let mut wish = json!({});
    let mut replies = Vec::new();
    for (position, live) in found.map_or_else(Vec::new, |found| edit_target::live_texts(&post, found)) {
        let typed = context.form.given(&field(position)).map(|text| text.replace("\r\n", "\n"));
        match typed.filter(|text| *text != live) {
            Some(text) if position == 0 => wish["content"] = json!(text),
            Some(text) => replies.push(json!({ "position": position, "content": text })),
            None => {}
        }
    }
    if !replies.is_empty() {
        wish["replies"] = json!(replies);
    }
    let edited = match body::read(wish) {
        Ok(wish) => edit_target::edit(&call, id, target, wish).await,
        Err(_) => Err(Problem::new(Code::InvalidRequest, "the text is the same as before")),
    };
    match edited {
        Ok(_) => Ok(done(&format!("/posts/{id}"), Done::Edited)),
        Err(problem) => show(context, id, Some(PageError::of(target, problem))).await,
    }
}
