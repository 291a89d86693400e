//! The calendar: posts by the day that they are scheduled for, and the posting slots that are open.

use crate::{
    choice::{self, Choice},
    context::{PageContext, done},
    fields,
    labels::{self, Done},
    layout::{Layout, PageError, render},
    posts::excerpt,
    zone,
};
use api::{
    http::{body, problem::Problem},
    posts::edit,
};
use askama::Template;
use chrono::{DateTime, Datelike, Days, Months, NaiveDate, Utc};
use chrono_tz::Tz;
use domain::{AccountId, scope::Scope, slot::Schedule};
use poem::Response;
use serde_json::json;
use std::collections::BTreeMap;
use store::{dashboard::overview, posts::slots};

/// Most posts of a day of a month.
const PER_DAY: i64 = 6;
/// Most posts of a day of a week.
const PER_DAY_OF_WEEK: i64 = 60;
/// Most times of slots of a day of a month.
const SLOTS_PER_DAY: usize = 3;
/// Accounts whose slots are shown together.
const PLANNED: i64 = 50;

#[derive(Template)]
#[template(path = "calendar.html")]
struct Calendar {
    layout: Layout,
    title: String,
    is_week: bool,
    /// Queries of the calendar before, of today, after, and of the other view.
    before: String,
    now: String,
    after: String,
    month: String,
    week: String,
    accounts: Vec<Choice>,
    /// Name and value of what is shown, for the form with the account.
    shown: (&'static str, String),
    weeks: Vec<Vec<Day>>,
    has_slots: bool,
}

struct Day {
    date: NaiveDate,
    number: u32,
    name: String,
    is_other_month: bool,
    is_today: bool,
    /// Time of a new post of this day, as a form reads it; `None` for a day that is over.
    compose: Option<String>,
    entries: Vec<Entry>,
    /// The list of all its posts, if there are more.
    more: Option<String>,
    /// Number of times of slots that are not shown.
    more_slots: usize,
}

/// An entry of a day, by its time.
enum Entry {
    Post(Item),
    Slot(Slot),
}

struct Item {
    id: String,
    at: String,
    time: String,
    excerpt: String,
    can_move: bool,
    status: &'static str,
    tone: &'static str,
    /// Ids of platforms.
    platforms: Vec<String>,
}

/// A time that posting slots are open at.
struct Slot {
    at: String,
    time: String,
    /// Accounts with the slot: platform id and handle.
    accounts: Vec<(String, String)>,
    /// Query of the composer.
    compose: String,
}

/// Shows the month or week that the URL names, or the current month.
pub(crate) async fn show(context: &PageContext<'_>) -> Result<Response, Problem> {
    draw(context, None).await
}

/// The period that is shown, and the way to others.
struct Frame {
    is_week: bool,
    /// A day of it.
    day: NaiveDate,
    /// Its first day; that of a month is in it.
    first: NaiveDate,
    start: NaiveDate,
    days: u64,
}

impl Frame {
    fn of(week: Option<&str>, month: Option<&str>, today: NaiveDate) -> Self {
        let week = week.and_then(|day| day.parse::<NaiveDate>().ok());
        let month = month.and_then(|month| format!("{month}-01").parse().ok());
        let monday = |day: NaiveDate| {
            day.checked_sub_days(Days::new(day.weekday().num_days_from_monday().into())).unwrap_or(day)
        };
        if let Some(day) = week {
            let start = monday(day);
            return Self { is_week: true, day, first: start, start, days: 7 };
        }
        let first = month.unwrap_or(today).with_day(1).unwrap_or(today);
        let next = first.checked_add_months(Months::new(1)).unwrap_or(first);
        let start = monday(first);
        let days = (next - start).num_days().unsigned_abs().div_ceil(7) * 7;
        // The week of today, if it is in the month.
        let day =
            if month.is_none_or(|month| month == today.with_day(1).unwrap_or(today)) { today } else { first };
        Self { is_week: false, day, first, start, days }
    }

    /// The beginning before or after it.
    fn step(&self, is_forward: bool) -> NaiveDate {
        let moved = match (self.is_week, is_forward) {
            (true, true) => self.start.checked_add_days(Days::new(7)),
            (true, false) => self.start.checked_sub_days(Days::new(7)),
            (false, true) => self.first.checked_add_months(Months::new(1)),
            (false, false) => self.first.checked_sub_months(Months::new(1)),
        };
        moved.unwrap_or(self.first)
    }

    fn title(&self) -> String {
        if !self.is_week {
            return self.first.format("%B %Y").to_string();
        }
        let last = self.start.checked_add_days(Days::new(6)).unwrap_or(self.start);
        format!("{} to {}", self.start.format("%-d %b"), last.format("%-d %b %Y"))
    }
}

async fn draw(context: &PageContext<'_>, error: Option<PageError>) -> Result<Response, Problem> {
    let (zone, now) = (zone::current(), context.now());
    let today = zone::day_of(now, zone);
    let given = |name| context.query.given(name).or(context.form.given(name));
    let frame = Frame::of(given("week"), given("month"), today);
    let account = given("account").and_then(|id| id.parse().ok()).map(AccountId);
    let dates: Vec<_> = frame.start.iter_days().take(usize::try_from(frame.days).unwrap_or(0) + 1).collect();
    let starts: Vec<_> = dates.iter().filter_map(|day| zone::start_of(*day, zone)).collect();
    let limit = if frame.is_week { PER_DAY_OF_WEEK } else { PER_DAY };
    let mut by_day = posts(context, &starts, account, limit, zone).await?;
    let slots = open_slots(context, &starts, account, zone).await?;
    let has_slots = !slots.is_empty();
    let mut slots_by_day: BTreeMap<NaiveDate, Vec<(DateTime<Utc>, Slot)>> = BTreeMap::new();
    for (at, slot) in slots {
        slots_by_day.entry(zone::day_of(at, zone)).or_default().push((at, slot));
    }
    let can_write = context.may(Scope::PostsWrite).is_ok();
    let days = dates.iter().take(dates.len().saturating_sub(1)).enumerate().map(|(place, &date)| {
        let (mut entries, more) = by_day.remove(&place).unwrap_or_default();
        let mut open = slots_by_day.remove(&date).unwrap_or_default();
        let more_slots = if frame.is_week { 0 } else { open.len().saturating_sub(SLOTS_PER_DAY) };
        open.truncate(open.len() - more_slots);
        entries.extend(open.into_iter().map(|(at, slot)| (at, Entry::Slot(slot))));
        entries.sort_by_key(|(at, _)| *at);
        let day = date.to_string();
        let bounds = [("scheduled_from", day.as_str()), ("scheduled_to", day.as_str())];
        Day {
            number: date.day(),
            name: date.format("%A, %-d %B").to_string(),
            is_other_month: !frame.is_week && date.month() != frame.first.month(),
            is_today: date == today,
            compose: (can_write && date >= today).then(|| {
                let at = if date == today { next_hour(now, zone) } else { format!("{date}T09:00") };
                compose(&at, account.map(|account| account.to_string()).as_slice())
            }),
            entries: entries.into_iter().map(|(_, entry)| entry).collect(),
            more: more.then(|| fields::write(bounds)),
            more_slots,
            date,
        }
    });
    let mut rows: Vec<Vec<Day>> = Vec::new();
    for day in days {
        match rows.last_mut() {
            Some(row) if row.len() < 7 => row.push(day),
            _ => rows.push(vec![day]),
        }
    }
    let chosen = account.map(|account| account.to_string());
    let query = |is_week: bool, day: NaiveDate| {
        let value = if is_week { day.to_string() } else { day.format("%Y-%m").to_string() };
        let shown = [(if is_week { "week" } else { "month" }, value.as_str())];
        fields::write(shown.into_iter().chain(chosen.as_deref().map(|account| ("account", account))))
    };
    let accounts = choice::accounts(&context.call()).await?;
    let page = Calendar {
        layout: context.layout_with_error("Calendar", "/calendar", error),
        title: frame.title(),
        is_week: frame.is_week,
        before: query(frame.is_week, frame.step(false)),
        now: query(frame.is_week, today),
        after: query(frame.is_week, frame.step(true)),
        month: query(false, frame.day),
        week: query(true, frame.day),
        accounts: Choice::accounts(&accounts, chosen.as_deref().unwrap_or_default()),
        shown: match frame.is_week {
            true => ("week", frame.start.to_string()),
            false => ("month", frame.first.format("%Y-%m").to_string()),
        },
        weeks: rows,
        has_slots,
    };
    Ok(render(page.layout.status(), &page))
}

/// Query of the composer for a time.
fn compose(at: &str, accounts: &[String]) -> String {
    fields::write(
        [("scheduled_at", at)].into_iter().chain(accounts.iter().map(|id| ("account", id.as_str()))),
    )
}

/// The next full hour, as a form reads it.
fn next_hour(now: DateTime<Utc>, zone: Tz) -> String {
    let next = now + chrono::TimeDelta::hours(1);
    format!("{}:00", next.with_timezone(&zone).format("%Y-%m-%dT%H"))
}

/// Entries of days by their place, and whether a day has more.
type ByDay = BTreeMap<usize, (Vec<(DateTime<Utc>, Entry)>, bool)>;

/// Posts by day.
async fn posts(
    context: &PageContext<'_>,
    starts: &[DateTime<Utc>],
    account: Option<AccountId>,
    limit: i64,
    zone: Tz,
) -> Result<ByDay, Problem> {
    let found = overview::scheduled(context.db(), context.whole()?, starts, account, limit).await?;
    let ids: Vec<_> = found.iter().map(|scheduled| scheduled.post).collect();
    let mut previews = overview::previews(context.db(), context.whole()?, &ids).await?;
    let can_write = context.may(Scope::PostsWrite).is_ok();
    let mut by_day = ByDay::new();
    for scheduled in found {
        let (entries, has_more) = by_day.entry(scheduled.day).or_default();
        *has_more = scheduled.of > limit;
        if entries.len() >= usize::try_from(limit).unwrap_or(0) {
            continue;
        }
        let preview = previews.remove(&scheduled.post);
        let (text, targets) =
            preview.map_or_else(Default::default, |preview| (preview.excerpt, preview.targets));
        let label = labels::post(scheduled.status);
        let item = Item {
            id: scheduled.post.to_string(),
            at: zone::write(scheduled.scheduled_at, zone),
            time: scheduled.scheduled_at.with_timezone(&zone).format("%H:%M").to_string(),
            excerpt: excerpt(&text),
            can_move: can_write && scheduled.status.is_editable(),
            status: label.name(),
            tone: label.class(),
            platforms: targets.into_iter().map(|target| target.platform).collect(),
        };
        entries.push((scheduled.scheduled_at, Entry::Post(item)));
    }
    Ok(by_day)
}

/// The slots that no post holds, by time; those of several accounts at the same time are one.
async fn open_slots(
    context: &PageContext<'_>,
    starts: &[DateTime<Utc>],
    account: Option<AccountId>,
    zone: Tz,
) -> Result<BTreeMap<DateTime<Utc>, Slot>, Problem> {
    let mut open = BTreeMap::new();
    let (Some(&from), Some(&until)) = (starts.first(), starts.last()) else { return Ok(open) };
    let from = from.max(context.now());
    if from >= until || context.may(Scope::SchedulingRead).is_err() {
        return Ok(open);
    }
    let planned = slots::planned(context.db(), context.whole()?, account, PLANNED).await?;
    if planned.is_empty() {
        return Ok(open);
    }
    let taken = slots::taken(context.db(), context.whole()?, from, until).await?;
    let mut ids: BTreeMap<DateTime<Utc>, Vec<String>> = BTreeMap::new();
    for plan in planned {
        // Like the composer, which queues in the zone of its page.
        let schedule = Schedule { slots: plan.slots, zone };
        for at in schedule.after(from).take_while(|at| *at < until) {
            if taken.contains(&(plan.account, at)) {
                continue;
            }
            let slot = open.entry(at).or_insert_with(|| Slot {
                at: zone::write(at, zone),
                time: at.with_timezone(&zone).format("%H:%M").to_string(),
                accounts: Vec::new(),
                compose: String::new(),
            });
            slot.accounts.push((plan.platform.clone(), plan.username.clone()));
            ids.entry(at).or_default().push(plan.account.to_string());
        }
    }
    for (at, slot) in &mut open {
        slot.compose = compose(&slot.at, &ids.remove(at).unwrap_or_default());
    }
    Ok(open)
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
    let (at, form) = (context.form.get("at"), &context.form);
    match moved {
        Ok(_) => {
            let shown = match form.given("week").is_some() {
                true => ("week", at.get(..10).unwrap_or_default()),
                false => ("month", at.get(..7).unwrap_or_default()),
            };
            let kept = form.given("account").map(|account| ("account", account));
            let query = fields::write([shown].into_iter().chain(kept));
            Ok(done(&format!("/calendar?{query}"), Done::Rescheduled))
        }
        Err(problem) => draw(context, Some(PageError::of("calendar", problem))).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_whole_weeks() {
        let day = |text: &str| text.parse::<NaiveDate>().unwrap();
        let today = day("2026-11-25");
        for (week, month, title, start, days, before, after) in [
            (None, None, "November 2026", "2026-10-26", 42, "2026-10-01", "2026-12-01"),
            (None, Some("2027-02"), "February 2027", "2027-02-01", 28, "2027-01-01", "2027-03-01"),
            (Some("2026-11-25"), None, "23 Nov to 29 Nov 2026", "2026-11-23", 7, "2026-11-16", "2026-11-30"),
            (None, Some("nonsense"), "November 2026", "2026-10-26", 42, "2026-10-01", "2026-12-01"),
        ] {
            let frame = Frame::of(week, month, today);
            assert_eq!((frame.title().as_str(), frame.start, frame.days), (title, day(start), days));
            assert_eq!((frame.step(false), frame.step(true)), (day(before), day(after)), "{title}");
        }
        assert_eq!(Frame::of(None, None, today).day, today);
        assert_eq!(Frame::of(None, Some("2027-02"), today).day, day("2027-02-01"));
    }
}
