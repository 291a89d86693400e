//! The list of posts.

use super::{
    context::PageContext,
    fields::{self, Fields},
    labels::{self, Label, ShortTime},
    layout::{Layout, PageError, render},
    zone,
};
use crate::{
    accounts,
    http::{problem::Problem, query},
    posts::{self, Filter},
};
use askama::Template;
use domain::PostStatus;
use poem::Response;
use store::overview;

#[derive(Template)]
#[template(path = "dashboard/posts.html")]
struct Posts {
    layout: Layout,
    posts: Vec<Row>,
    statuses: Vec<Choice>,
    platforms: Vec<Choice>,
    accounts: Vec<Choice>,
    dates: [Date; 4],
    text: String,
    is_filtered: bool,
    older: Option<String>,
}

impl Posts {
    fn has_dates(&self) -> bool {
        self.dates.iter().any(|date| !date.value.is_empty())
    }
}

/// An option of a form field.
pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) name: String,
    pub(crate) is_chosen: bool,
}

/// A date filter.
struct Date {
    field: &'static str,
    name: &'static str,
    value: String,
}

/// A post in a list.
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) excerpt: String,
    pub(crate) label: Label,
    /// True if its time can be changed.
    pub(crate) is_editable: bool,
    pub(crate) created: ShortTime,
    pub(crate) scheduled: Option<ShortTime>,
    pub(crate) spots: Vec<Spot>,
}

/// A target of a post in a list.
pub(crate) struct Spot {
    /// Platform id, which is also that of its icon.
    pub(crate) platform: String,
    pub(crate) name: String,
    pub(crate) label: Label,
}

/// Date fields of the form and the API parameters they become. End dates are inclusive.
const DATES: [(&str, &str, &str, bool); 4] = [
    ("created_from", "created_after", "Created from", false),
    ("created_to", "created_before", "Created to", true),
    ("scheduled_from", "scheduled_after", "Scheduled from", false),
    ("scheduled_to", "scheduled_before", "Scheduled to", true),
];

/// Shows the page.
pub(crate) async fn show(context: &PageContext<'_>) -> Result<Response, Problem> {
    let query = &context.query;
    let found = match filter(query) {
        Ok(filter) => lines(context, filter).await,
        Err(problem) => Err(problem),
    };
    let (posts, next, error) = match found {
        Ok((posts, next)) => (posts, next, None),
        Err(problem) if problem.code.status().is_server_error() => return Err(problem),
        Err(problem) => (Vec::new(), None, Some(PageError::of("filter", problem))),
    };
    let chosen = |field: &str, value: &str, name: &str| Choice {
        value: value.to_owned(),
        name: name.to_owned(),
        is_chosen: query.get(field) == value,
    };
    let all = accounts::Filter { limit: Some(100), ..accounts::Filter::default() };
    let accounts = accounts::list(&context.call(), all).await?.data;
    let page = Posts {
        layout: context.layout_with_error("Posts", "/posts", error),
        posts,
        statuses: PostStatus::ALL
            .iter()
            .map(|status| chosen("status", status.as_str(), labels::post(*status).name()))
            .collect(),
        platforms: platforms::IDS
            .iter()
            .map(|id| chosen("platform", id, platforms::display_name(id)))
            .collect(),
        accounts: accounts
            .iter()
            .map(|account| {
                let name =
                    format!("{} on {}", account.username, platforms::display_name(account.platform.as_str()));
                chosen("social_account_id", &account.id.to_string(), &name)
            })
            .collect(),
        dates: DATES.map(|(field, _, name, _)| Date { field, name, value: query.get(field).to_owned() }),
        text: query.get("q").to_owned(),
        is_filtered: query.without(&["cursor", "done"]).any(|(_, value)| !value.is_empty()),
        older: next.map(|cursor| {
            let kept = query.without(&["cursor", "done"]).filter(|(_, value)| !value.is_empty());
            fields::write(kept.chain([("cursor", cursor.as_str())]))
        }),
    };
    Ok(render(page.layout.status(), &page))
}

/// Converts the form to the filter of the API.
fn filter(query: &Fields) -> Result<Filter, Problem> {
    let dates = DATES.iter().filter_map(|(field, parameter, _, is_last)| {
        let value = query.given(field)?;
        Some((*parameter, zone::bound(value, *is_last)))
    });
    let dates: Vec<_> = dates.collect();
    let same = query.only(&["q", "status", "platform", "social_account_id", "cursor"]);
    query::read(&fields::write(same.chain(dates.iter().map(|(name, value)| (*name, value.as_str())))))
}

/// The posts that match a filter, and the cursor of the next page.
pub(crate) async fn lines(
    context: &PageContext<'_>,
    filter: Filter,
) -> Result<(Vec<Row>, Option<String>), Problem> {
    let call = context.call();
    let page = posts::list(&call, filter).await?;
    let ids: Vec<_> = page.data.iter().map(|post| post.id.into()).collect();
    let mut glances = overview::previews(context.db(), call.owner, &ids).await?;
    let lines = page.data.into_iter().map(|post| {
        let (text, targets) = match glances.remove(&post.id.into()) {
            Some(glance) => (glance.excerpt, glance.targets),
            None => Default::default(),
        };
        let spot = |spot: overview::TargetPreview| Spot {
            name: platforms::display_name(&spot.platform).to_owned(),
            platform: spot.platform,
            label: labels::target(spot.status),
        };
        Row {
            id: post.id.to_string(),
            excerpt: excerpt(&text),
            label: labels::post(post.status.value()),
            is_editable: post.status.value().is_editable(),
            created: ShortTime(post.created_at.0),
            scheduled: post.scheduled_at.map(|at| ShortTime(at.0)),
            spots: targets.into_iter().map(spot).collect(),
        }
    });
    Ok((lines.collect(), page.next_cursor))
}

/// The beginning of a text on one line, or a placeholder to click.
pub(crate) fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() { "(no text)".to_owned() } else { line }
}
