//! The list of posts.

use crate::{
    choice::{self, Choice},
    context::{PageContext, see},
    fields::{self, Fields},
    labels::{self, Label, ShortTime},
    layout::{Layout, PageError, render},
    zone,
};
use api::{
    http::{
        caller::Call,
        problem::{Code, Problem},
        query,
    },
    posts::{self, Filter},
};
use askama::Template;
use domain::{PostStatus, TargetStatus, scope::Scope};
use poem::Response;
use store::dashboard::overview;

#[derive(Template)]
#[template(path = "posts.html")]
struct Posts {
    layout: Layout,
    posts: Vec<Row>,
    can_select: bool,
    /// Names and values of the filter, which an action leads back to.
    kept: Vec<(String, String)>,
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

/// Names of the filter.
const FILTERS: [&str; 9] = [
    "q",
    "status",
    "platform",
    "social_account_id",
    "created_from",
    "created_to",
    "scheduled_from",
    "scheduled_to",
    "cursor",
];

/// The filter of a query or a form.
fn filters(fields: &Fields) -> impl Iterator<Item = (&str, &str)> {
    fields.only(&FILTERS)
}

/// Most posts that are selected at a time: those of a page.
const MAX_SELECTED: usize = 25;
/// Most targets that wait for an attempt and are retried at a time, each by a call of its own. The others are attempted at
/// their time.
const MAX_WAITING: usize = 25;

/// Action on the posts that are selected.
#[derive(Clone, Copy)]
pub(crate) enum Bulk {
    /// Their failed targets are attempted again.
    Retry,
    /// They are canceled, or deleted if they have ended.
    Cancel,
}

/// Does the same to each of the posts that are selected.
pub(crate) async fn act(context: &PageContext<'_>, what: Bulk) -> Result<Response, Problem> {
    let call = context.call();
    let (mut changed, mut unchanged) = (0_u32, 0_u32);
    if context.form.all("post").nth(MAX_SELECTED).is_some() {
        let detail = format!("at most {MAX_SELECTED} posts can be selected at a time");
        return Err(Problem::new(Code::InvalidRequest, detail));
    }
    let mut waiting = MAX_WAITING;
    for id in context.form.all("post") {
        let result = match what {
            Bulk::Retry => retry_all(&call, id, &mut waiting).await,
            Bulk::Cancel => posts::delete(&call, id).await.map(drop),
        };
        match result {
            Ok(()) => changed += 1,
            Err(problem) if problem.code.status().is_server_error() => return Err(problem),
            Err(_) => unchanged += 1,
        }
    }
    let name = match what {
        Bulk::Retry => "retried",
        Bulk::Cancel => "canceled",
    };
    let (changed, unchanged) = (changed.to_string(), unchanged.to_string());
    let outcome = [(name, changed.as_str()), ("unchanged", unchanged.as_str())];
    Ok(see(&format!("/posts?{}", fields::write(filters(&context.form).chain(outcome)))))
}

/// Retries the targets of a post that are dead, and as many that wait for an attempt as are left.
async fn retry_all(call: &Call<'_>, id: &str, waiting: &mut usize) -> Result<(), Problem> {
    let post = posts::find(call, id).await?;
    let mut result = Err(Problem::new(Code::Conflict, "no target can be retried"));
    if post.targets.iter().any(|target| target.status == TargetStatus::Dead) {
        result = posts::retry::retry(call, id, posts::retry::RetryPost::default()).await.map(drop);
    }
    for target in post.targets.iter().filter(|target| target.can_retry()).take(*waiting) {
        *waiting -= 1;
        let retried = posts::retry(call, id, &target.id.to_string()).await.map(drop);
        result = result.or(retried);
    }
    result
}

/// Returns a message about the results for the selected posts.
fn outcome(query: &Fields) -> Option<String> {
    let count = |name| query.given(name)?.parse::<u32>().ok();
    let posts = |count| if count == 1 { "1 post".to_owned() } else { format!("{count} posts") };
    let unchanged = count("unchanged")?;
    let done = match (count("retried"), count("canceled")) {
        (Some(0), _) | (_, Some(0)) if unchanged == 0 => return Some("No post was selected.".to_owned()),
        (Some(0), _) | (_, Some(0)) => None,
        (Some(count), _) => Some(format!("{}: the next attempt starts now.", posts(count))),
        (_, Some(count)) => Some(format!("{} canceled. What is published stays live.", posts(count))),
        _ => return None,
    };
    let not = (unchanged > 0).then(|| format!("{} not changed: nothing to do there.", posts(unchanged)));
    Some(done.into_iter().chain(not).collect::<Vec<_>>().join(" "))
}

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
    let accounts = choice::accounts(&context.call()).await?;
    let mut page = Posts {
        layout: context.layout_with_error("Posts", "/posts", error),
        can_select: context.may(Scope::PostsWrite).is_ok() && !posts.is_empty(),
        kept: filters(query).map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        posts,
        statuses: PostStatus::ALL
            .iter()
            .map(|status| {
                let is_chosen = query.get("status") == status.as_str();
                Choice::new(status.as_str(), labels::post(*status).name(), is_chosen)
            })
            .collect(),
        platforms: Choice::platforms(query),
        accounts: Choice::accounts(&accounts, query.get("social_account_id")),
        dates: DATES.map(|(field, _, name, _)| Date { field, name, value: query.get(field).to_owned() }),
        text: query.get("q").to_owned(),
        is_filtered: filters(query).any(|(name, _)| name != "cursor"),
        older: next.map(|cursor| {
            let kept = filters(query).filter(|(name, _)| *name != "cursor");
            fields::write(kept.chain([("cursor", cursor.as_str())]))
        }),
    };
    if let Some(outcome) = outcome(query) {
        page.layout.notice = Some(outcome.into());
    }
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
    let mut glances = overview::previews(context.db(), context.whole()?, &ids).await?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_counts_posts() {
        let told = |query: &str| outcome(&Fields::parse(query.as_bytes()));
        for (query, expected) in [
            ("retried=2&unchanged=0", Some("2 posts: the next attempt starts now.")),
            ("retried=0&unchanged=1", Some("1 post not changed: nothing to do there.")),
            (
                "canceled=1&unchanged=3",
                Some(
                    "1 post canceled. What is published stays live. 3 posts not changed: nothing to do there.",
                ),
            ),
            ("canceled=0&unchanged=0", Some("No post was selected.")),
            ("status=failed", None),
        ] {
            assert_eq!(told(query).as_deref(), expected, "{query}");
        }
    }
}
