//! The start page: what is stuck and why, then the latest posts.

use super::{
    context::PageContext,
    labels::{self, Label, RelativeTime},
    layout::{Layout, render},
    posts::{self, Row},
};
use crate::{http::problem::Problem, posts::Filter};
use askama::Template;
use domain::TargetStatus;
use poem::Response;
use store::overview;

/// Number of recent posts on the overview page.
const LATEST_COUNT: i64 = 10;

#[derive(Template)]
#[template(path = "dashboard/overview.html")]
struct Overview {
    layout: Layout,
    stuck: Vec<Stuck>,
    accounts: Vec<Refused>,
    webhooks: Vec<Failing>,
    posts: Vec<Row>,
}

/// A target that failed or is retrying.
struct Stuck {
    post: String,
    target: String,
    excerpt: String,
    platform: String,
    username: String,
    label: Label,
    reason: String,
    message: Option<String>,
    source: Option<&'static str>,
    attempts: i32,
    next: Option<RelativeTime>,
    due: RelativeTime,
    is_failed: bool,
}

/// An account that must be reconnected.
struct Refused {
    id: String,
    platform: String,
    username: String,
    label: Label,
    since: RelativeTime,
}

/// An endpoint with failing deliveries.
struct Failing {
    id: String,
    url: String,
    given_up: i64,
    waiting: i64,
    error: String,
    next: Option<RelativeTime>,
    label: Label,
}

/// Shows the page.
pub(crate) async fn show(context: &PageContext<'_>) -> Result<Response, Problem> {
    let (call, now) = (context.call(), context.now());
    let stuck = overview::stuck(context.db(), call.owner, now).await?;
    let refused = overview::to_reconnect(context.db(), call.owner).await?;
    let failing = overview::failing(context.db(), call.owner, now).await?;
    let latest = Filter { limit: Some(LATEST_COUNT), ..Filter::default() };
    let page = Overview {
        layout: context.layout("Overview", "").live(""),
        stuck: stuck
            .into_iter()
            .map(|stuck| Stuck {
                post: stuck.post.to_string(),
                target: stuck.target.to_string(),
                reason: reason(&stuck),
                platform: platforms::display_name(&stuck.platform).to_owned(),
                excerpt: posts::excerpt(&stuck.excerpt),
                username: stuck.username,
                label: labels::target(stuck.status),
                message: stuck.error_message,
                source: stuck.error_source.map(labels::source),
                attempts: stuck.attempts,
                next: stuck.next_attempt_at.map(|at| RelativeTime::of(at, now)),
                due: RelativeTime::of(stuck.due_at, now),
                is_failed: stuck.status == TargetStatus::Failed,
            })
            .collect(),
        accounts: refused
            .into_iter()
            .map(|account| Refused {
                id: account.id.to_string(),
                platform: platforms::display_name(&account.platform).to_owned(),
                username: account.username,
                label: labels::account(account.status),
                since: RelativeTime::of(account.updated_at, now),
            })
            .collect(),
        webhooks: failing
            .into_iter()
            .map(|failing| Failing {
                id: failing.webhook.to_string(),
                url: failing.url,
                given_up: failing.given_up,
                waiting: failing.waiting,
                error: super::layout::sentence(&failing.error),
                next: failing.next_attempt_at.map(|at| RelativeTime::of(at, now)),
                label: labels::activity(failing.is_active),
            })
            .collect(),
        posts: posts::lines(context, latest).await?.0,
    };
    Ok(render(page.layout.status(), &page))
}

/// Explains why a target is stuck.
fn reason(stuck: &overview::Stuck) -> String {
    if let Some(code) = &stuck.error_code {
        return labels::reason(code, &stuck.platform);
    }
    let platform = platforms::display_name(&stuck.platform);
    match (stuck.processing_since, stuck.status) {
        (Some(since), _) => format!("{platform} is processing it since {}.", since.format("%H:%M:%S UTC")),
        (None, TargetStatus::Pending) => {
            "Not started yet: Temporal or the workers may be unavailable.".to_owned()
        }
        (None, _) if stuck.attempts > 0 => format!("{platform} has not answered yet."),
        (None, _) => "No worker has started it yet.".to_owned(),
    }
}

impl Overview {
    /// A summary in one sentence, for screen readers.
    fn summary(&self) -> String {
        let count = |number: usize, one: &str, many: &str| match number {
            0 => None,
            1 => Some(format!("1 {one}")),
            number => Some(format!("{number} {many}")),
        };
        let parts: Vec<_> = [
            count(self.stuck.len(), "post target is stuck", "post targets are stuck"),
            count(self.accounts.len(), "account has to be reconnected", "accounts must be reconnected"),
            count(self.webhooks.len(), "webhook endpoint fails", "webhook endpoints fail"),
        ]
        .into_iter()
        .flatten()
        .collect();
        if parts.is_empty() { "Nothing is stuck.".to_owned() } else { format!("{}.", parts.join(", ")) }
    }
}
