//! The start page: first steps, what is stuck and why, what comes next, and the latest posts.

use crate::{
    analytics,
    context::{PageContext, done},
    fields,
    home::{self, Checklist},
    labels::{self, Done, Label, RelativeTime, ShortTime},
    layout::{Layout, PageError, render, sentence},
    posts::{self, Row},
    story::{Facts, Story, happened},
    zone,
};
use api::{
    http::{body, problem::Problem},
    posts::Filter,
};
use askama::Template;
use chrono::{DateTime, Utc};
use domain::{TargetStatus, scope::Scope};
use poem::Response;
use serde_json::json;
use store::dashboard::overview::{self, Health, RETRIED_AT_ONCE, SHOWN_PER_GROUP};

/// Number of recent posts on the overview page.
const LATEST_COUNT: i64 = 10;
/// Number of upcoming and of published posts.
const NEAR_COUNT: i64 = 6;

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    layout: Layout,
    stuck: Vec<Group>,
    accounts: Vec<Refused>,
    webhooks: Vec<Failing>,
    checklist: Option<Checklist>,
    upcoming: Vec<Upcoming>,
    published: Vec<Published>,
    health: Health,
    posts: Vec<Row>,
    can_select: bool,
    is_filtered: bool,
}

/// Targets that are stuck for the same reason.
struct Group {
    /// Id of its element.
    id: String,
    /// Platform id, which is also that of its icon.
    platform: String,
    title: String,
    /// Name of the platform.
    name: String,
    status: TargetStatus,
    label: Label,
    total: i64,
    /// True if there may be more of them.
    is_partial: bool,
    /// Code of their last failure, or an empty text.
    code: String,
    /// Query of the page with all of them.
    all: String,
    can_retry: bool,
    targets: Vec<Stuck>,
}

impl Group {
    fn is_dead(&self) -> bool {
        self.status == TargetStatus::Dead
    }

    /// Number of targets that its button retries.
    fn retried(&self) -> i64 {
        self.total.min(RETRIED_AT_ONCE)
    }

    /// Kind of help that its targets need.
    fn need(&self) -> Need {
        match self.status {
            TargetStatus::Dead => Need::Person,
            TargetStatus::Failed => Need::Nothing,
            // An account that is throttled makes what has not begun wait, too.
            _ if !self.code.is_empty() => Need::Nothing,
            _ => Need::Service,
        }
    }

    /// A story of which the remedy is that of all, except of targets that may be live.
    fn shared(&self) -> Option<&Story> {
        self.targets.iter().map(|stuck| &stuck.story).find(|story| !story.may_be_live)
    }
}

/// Kind of help that a target needs to go on, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// It failed: a person decides.
    Person,
    /// It is late: this service, or the platform, has to answer.
    Service,
    /// It is retried by itself.
    Nothing,
}

/// A target that failed or is late.
struct Stuck {
    post: String,
    target: String,
    excerpt: String,
    username: String,
    story: Story,
    due: RelativeTime,
}

/// A post that is published soon.
struct Upcoming {
    post: String,
    excerpt: String,
    at: ShortTime,
    is_today: bool,
    /// Ids of platforms.
    platforms: Vec<String>,
}

/// A post that was published on a platform.
struct Published {
    post: String,
    excerpt: String,
    platform: String,
    username: String,
    at: RelativeTime,
    url: Option<String>,
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
    draw(context, None).await
}

async fn draw(context: &PageContext<'_>, error: Option<PageError>) -> Result<Response, Problem> {
    let now = context.now();
    let stuck = overview::stuck(context.db(), context.whole()?, now).await?;
    let refused = overview::to_reconnect(context.db(), context.whole()?).await?;
    // An endpoint's address may hold a token, so that not everyone who sees posts sees it.
    let failing = match context.may(Scope::WebhooksRead) {
        Ok(()) => overview::failing(context.db(), context.whole()?, now).await?,
        Err(_) => Vec::new(),
    };
    let latest = Filter { limit: Some(LATEST_COUNT), ..Filter::default() };
    let mut stuck: Vec<_> = stuck.into_iter().map(|group| group_of(group, now)).collect();
    stuck.sort_by_key(Group::need);
    let page = Overview {
        layout: context.layout_with_error("Overview", "", error).live(""),
        stuck,
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
                error: sentence(&failing.error),
                next: failing.next_attempt_at.map(|at| RelativeTime::of(at, now)),
                label: labels::endpoint(failing.is_active, failing.failing_since.is_some()),
            })
            .collect(),
        checklist: home::checklist(context).await?,
        upcoming: upcoming(context).await?,
        published: published(context).await?,
        health: overview::health(context.db(), context.whole()?).await?,
        posts: posts::lines(context, latest).await?.0,
        can_select: false,
        is_filtered: false,
    };
    Ok(render(page.layout.status(), &page))
}

/// The posts that are published next.
async fn upcoming(context: &PageContext<'_>) -> Result<Vec<Upcoming>, Problem> {
    let (now, zone) = (context.now(), zone::current());
    let found = overview::upcoming(context.db(), context.whole()?, NEAR_COUNT, now).await?;
    let ids: Vec<_> = found.iter().map(|upcoming| upcoming.post).collect();
    let mut previews = overview::previews(context.db(), context.whole()?, &ids).await?;
    let shown = found.into_iter().map(|upcoming| {
        let preview = previews.remove(&upcoming.post);
        let (text, targets) =
            preview.map_or_else(Default::default, |preview| (preview.excerpt, preview.targets));
        Upcoming {
            post: upcoming.post.to_string(),
            excerpt: posts::excerpt(&text),
            at: ShortTime(upcoming.scheduled_at),
            is_today: zone::day_of(upcoming.scheduled_at, zone) == zone::day_of(now, zone),
            platforms: targets.into_iter().map(|target| target.platform).collect(),
        }
    });
    Ok(shown.collect())
}

/// Returns the targets that were published last.
async fn published(context: &PageContext<'_>) -> Result<Vec<Published>, Problem> {
    let now = context.now();
    let found = overview::published(context.db(), context.whole()?, NEAR_COUNT).await?;
    let shown = found.into_iter().map(|published| Published {
        post: published.post.to_string(),
        excerpt: posts::excerpt(&published.excerpt),
        platform: published.platform,
        username: published.username,
        at: RelativeTime::of(published.published_at, now),
        url: published.url.filter(|url| url.starts_with("http")),
    });
    Ok(shown.collect())
}

fn group_of(group: overview::StuckGroup, now: DateTime<Utc>) -> Group {
    let name = platforms::display_name(&group.platform).to_owned();
    let code = group.error_code.as_deref();
    let targets = group.latest.iter().map(|stuck| Stuck {
        post: stuck.post.to_string(),
        target: stuck.target.to_string(),
        excerpt: posts::excerpt(&stuck.excerpt),
        username: stuck.username.clone(),
        story: story_of(&group, stuck, now),
        due: RelativeTime::of(stuck.due_at, now),
    });
    Group {
        id: format!("{}-{}-{}", group.platform, group.status, code.unwrap_or("late")),
        title: match (code, group.status) {
            (Some(code), _) => happened(code, &name),
            (None, TargetStatus::Pending) => format!("Posts to {name} have not begun."),
            (None, _) => format!("{name} has not answered yet."),
        },
        name,
        status: group.status,
        label: labels::target(group.status),
        total: group.total,
        is_partial: group.is_partial,
        code: code.unwrap_or_default().to_owned(),
        all: fields::write([
            ("platform", group.platform.as_str()),
            ("status", if group.status == TargetStatus::Dead { "failed" } else { "" }),
        ]),
        can_retry: matches!(group.status, TargetStatus::Failed | TargetStatus::Dead),
        targets: targets.collect(),
        platform: group.platform.clone(),
    }
}

/// Tells why a target is stuck.
fn story_of(group: &overview::StuckGroup, stuck: &overview::Stuck, now: DateTime<Utc>) -> Story {
    let facts = Facts {
        platform: &group.platform,
        status: group.status,
        code: group.error_code.as_deref(),
        message: stuck.error_message.as_deref(),
        attempts: stuck.attempts,
        next: stuck.next_attempt_at,
        processing_since: stuck.processing_since,
    };
    Story::of(&facts, now).unwrap_or_else(|| {
        let happened = match group.status {
            TargetStatus::Pending => "It has not begun: Temporal or the workers may be unavailable.",
            _ if stuck.attempts > 0 => "The platform has not answered yet.",
            _ => "No worker has begun it yet.",
        };
        Story::waiting(happened)
    })
}

/// Retries the target that the form names, or all that are stuck for the cause that it names, as far as they can be
/// retried: those that wait for an attempt begin it, and those that failed for good start over.
pub(crate) async fn retry(context: &PageContext<'_>) -> Result<Response, Problem> {
    let (call, form) = (context.call(), &context.form);
    let status = form.get("status").parse().unwrap_or(TargetStatus::Failed);
    let targets: Vec<(String, String)> = match form.given("target") {
        Some(named) => {
            let (post, target) = named.split_once('/').unwrap_or_default();
            vec![(post.to_owned(), target.to_owned())]
        }
        None => {
            let (platform, code) = (form.get("platform"), form.given("code"));
            let found =
                overview::of_cause(context.db(), context.whole()?, platform, status, code, call.now())
                    .await?;
            found.into_iter().map(|(post, target)| (post.to_string(), target.to_string())).collect()
        }
    };
    let mut refused = None;
    let mut is_retried = false;
    for (post, target) in &targets {
        let retried = match status {
            TargetStatus::Dead => match body::read(json!({ "targets": [target] })) {
                Ok(only) => api::posts::retry::retry(&call, post, only).await.map(drop),
                Err(problem) => Err(problem),
            },
            _ => api::posts::retry(&call, post, target).await.map(drop),
        };
        match retried {
            Err(problem) if problem.code.status().is_server_error() => return Err(problem),
            Err(problem) => refused = Some(problem),
            Ok(()) => is_retried = true,
        }
    }
    match refused.filter(|_| !is_retried) {
        None => Ok(done("", Done::Retried)),
        Some(problem) => draw(context, Some(PageError::of("retry", problem))).await,
    }
}

impl Overview {
    /// Number of targets with a need, and whether there may be more of them.
    fn count(&self, need: Need) -> (i64, bool) {
        let groups = || self.stuck.iter().filter(|group| group.need() == need);
        (groups().map(|group| group.total).sum(), groups().any(|group| group.is_partial))
    }

    /// Class of the summary: what is retried by itself is no reason to worry.
    fn tone(&self) -> &'static str {
        let needs_nobody = self.accounts.is_empty() && self.webhooks.is_empty();
        match self.stuck.iter().map(Group::need).min() {
            None if needs_nobody => "good",
            Some(Need::Nothing) if needs_nobody => "calm",
            _ => "warn",
        }
    }

    /// A summary in one sentence, with counts by kind.
    fn summary(&self) -> String {
        let mut parts = Vec::new();
        for (need, one, many) in [
            (Need::Person, "failed", "failed"),
            (Need::Service, "is late", "are late"),
            (Need::Nothing, "is retrying", "are retrying"),
        ] {
            let (number, is_partial) = self.count(need);
            let least = if is_partial { "at least " } else { "" };
            // The first names what is counted.
            let (target, targets) =
                if parts.is_empty() { (" post target", " post targets") } else { ("", "") };
            match number {
                0 => {}
                1 => parts.push(format!("{least}1{target} {one}")),
                _ => parts.push(format!("{least}{}{targets} {many}", analytics::number(number))),
            }
        }
        for (number, one, many) in [
            (self.accounts.len(), "account has to be reconnected", "accounts have to be reconnected"),
            (self.webhooks.len(), "webhook endpoint fails", "webhook endpoints fail"),
        ] {
            match number {
                0 => {}
                1 => parts.push(format!("1 {one}")),
                _ => parts.push(format!("{number} {many}")),
            }
        }
        match (parts.is_empty(), self.tone()) {
            (true, _) => "Nothing needs your attention.".to_owned(),
            (false, "calm") => format!("{} You need not do anything.", sentence(&parts.join(", "))),
            (false, _) => sentence(&parts.join(", ")),
        }
    }
}
