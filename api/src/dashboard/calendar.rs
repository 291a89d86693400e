//! The calendar: posts by the day that they are scheduled for.

use super::{
    context::{PageContext, done},
    labels::Done,
    layout::{Layout, PageError, render},
    posts::{self, excerpt},
    zone,
};
use crate::{
    http::{body, problem::Problem},
    posts::{Filter, edit},
    types::timestamp::TimeBound,
};
use askama::Template;
use chrono::{DateTime, Datelike, Days, Months, NaiveDate, Utc};
use poem::Response;
use serde_json::json;
use std::collections::BTreeMap;

/// Most posts that a month shows.
const MAX_POSTS: usize = 500;
/// Posts of a request, the most that the API returns at once.
const PAGE: i64 = 100;

#[derive(Template)]
#[template(path = "dashboard/calendar.html")]
struct Calendar {
    layout: Layout,
    title: String,
    before: String,
    after: String,
    weeks: Vec<Vec<Day>>,
    /// True if there are more posts than are shown.
    is_partial: bool,
}

struct Day {
    date: NaiveDate,
    number: u32,
    is_other_month: bool,
    is_today: bool,
    posts: Vec<Item>,
}

struct Item {
    id: String,
    time: String,
    excerpt: String,
    can_move: bool,
    status: &'static str,
}

/// Shows the month that the URL names, or the current one.
pub(crate) async fn show(context: &PageContext<'_>) -> Result<Response, Problem> {
    draw(context, None).await
}

async fn draw(context: &PageContext<'_>, error: Option<PageError>) -> Result<Response, Problem> {
    let zone = zone::current();
    let today = zone::day_of(context.now(), zone);
    let named = context.query.given("month").or(context.form.given("month"));
    let first = named.and_then(|month| format!("{month}-01").parse().ok()).unwrap_or(today);
    let first = first.with_day(1).unwrap_or(first);
    let next = first.checked_add_months(Months::new(1)).unwrap_or(first);
    let previous = first.checked_sub_months(Months::new(1)).unwrap_or(first);
    // Whole weeks, from Monday.
    let start =
        first.checked_sub_days(Days::new(first.weekday().num_days_from_monday().into())).unwrap_or(first);
    let weeks = (next - start).num_days().unsigned_abs().div_ceil(7);
    let end = start.checked_add_days(Days::new(weeks * 7)).unwrap_or(next);
    let (mut by_day, is_partial) = scheduled(context, start, end).await?;
    let days = start.iter_days().take(usize::try_from(weeks * 7).unwrap_or(0));
    let days: Vec<_> = days
        .map(|date| Day {
            date,
            number: date.day(),
            is_other_month: date.month() != first.month(),
            is_today: date == today,
            posts: by_day.remove(&date).unwrap_or_default(),
        })
        .collect();
    let mut rows = Vec::new();
    let mut days = days.into_iter().peekable();
    while days.peek().is_some() {
        rows.push(days.by_ref().take(7).collect());
    }
    let page = Calendar {
        layout: context.layout_with_error("Calendar", "/calendar", error),
        title: first.format("%B %Y").to_string(),
        before: previous.format("%Y-%m").to_string(),
        after: next.format("%Y-%m").to_string(),
        weeks: rows,
        is_partial,
    };
    Ok(render(page.layout.status(), &page))
}

/// Posts that are scheduled for a range of days, by day, and whether there are more of them.
async fn scheduled(
    context: &PageContext<'_>,
    start: NaiveDate,
    end: NaiveDate,
) -> Result<(BTreeMap<NaiveDate, Vec<Item>>, bool), Problem> {
    let zone = zone::current();
    let bound = |day: NaiveDate| zone::start_of(day, zone).map(TimeBound);
    let mut by_day: BTreeMap<NaiveDate, Vec<(DateTime<Utc>, Item)>> = BTreeMap::new();
    let (mut cursor, mut count) = (None, 0);
    loop {
        let filter = Filter {
            limit: Some(PAGE),
            cursor: cursor.take(),
            scheduled_after: bound(start),
            scheduled_before: bound(end),
            ..Filter::default()
        };
        let (rows, next) = posts::lines(context, filter).await?;
        count += rows.len();
        for row in rows {
            let Some(at) = row.scheduled.map(|at| at.0) else { continue };
            let item = Item {
                can_move: row.is_editable && context.may(domain::scope::Scope::PostsWrite).is_ok(),
                id: row.id,
                time: at.with_timezone(&zone).format("%H:%M").to_string(),
                excerpt: excerpt(&row.excerpt),
                status: row.label.name(),
            };
            by_day.entry(zone::day_of(at, zone)).or_default().push((at, item));
        }
        cursor = next;
        if cursor.is_none() || count >= MAX_POSTS {
            break;
        }
    }
    let in_order = by_day.into_iter().map(|(day, mut items)| {
        items.sort_by_key(|(at, _)| *at);
        (day, items.into_iter().map(|(_, item)| item).collect())
    });
    Ok((in_order.collect(), cursor.is_some()))
}

/// Moves a post to another time.
pub(crate) async fn reschedule(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    let moved = match context.time("at") {
        Ok(at) => {
            let wish = body::read(json!({ "scheduled_at": domain::event::timestamp(at) }))?;
            edit::edit(&context.call(), id, wish).await
        }
        Err(problem) => Err(problem),
    };
    let at = context.form.get("at");
    let month = at.get(..7).unwrap_or_default();
    match moved {
        Ok(_) => Ok(done(&format!("/calendar?month={month}"), Done::Rescheduled)),
        Err(problem) => draw(context, Some(PageError::of("calendar", problem))).await,
    }
}
