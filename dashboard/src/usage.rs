//! Usage of the plan.

use crate::{
    chart::Chart,
    context::PageContext,
    labels::{self, AbsoluteTime},
    layout::{Layout, render},
    zone,
};
use api::{
    http::problem::Problem,
    usage::{self, Metered},
};
use askama::Template;
use chrono::{DateTime, Days, NaiveDate, Utc};
use poem::Response;
use std::collections::HashMap;
use store::usage as counts;

/// Days of the chart of posts.
const POST_DAYS: u64 = 30;
/// Days of the chart of requests: those that the log keeps.
const REQUEST_DAYS: u64 = 7;

#[derive(Template)]
#[template(path = "usage.html")]
struct Usage {
    layout: Layout,
    plan: String,
    start: AbsoluteTime,
    end: AbsoluteTime,
    meters: Vec<Meter>,
    overage: u64,
    posts: Chart,
    requests: Chart,
}

struct Meter {
    name: &'static str,
    current: u64,
    limit: Option<u64>,
    /// The numbers as people read them.
    used: String,
    most: String,
}

impl Meter {
    fn of(name: &'static str, Metered { current, limit }: Metered, write: fn(u64) -> String) -> Self {
        Self { name, current, limit, used: write(current), most: limit.map(write).unwrap_or_default() }
    }

    /// Returns the lowest usage that counts as high.
    fn high(&self) -> u64 {
        self.limit.unwrap_or_default() / 5 * 4
    }
}

/// Shows the page.
pub(crate) async fn show(context: &PageContext<'_>) -> Result<Response, Problem> {
    let usage = usage::read(&context.call()).await?.usage;
    let number = |number: u64| number.to_string();
    let posts = Metered { current: usage.posts.current, limit: usage.posts.included };
    let page = Usage {
        layout: context.layout("Usage", "/usage"),
        plan: usage.plan.name,
        start: AbsoluteTime(usage.billing_period.start.0),
        end: AbsoluteTime(usage.billing_period.end.0),
        meters: vec![
            Meter::of("API requests", usage.api_requests, number),
            Meter::of("Published posts", posts, number),
            Meter::of("Connected accounts", usage.social_accounts, number),
            Meter::of("Webhook endpoints", usage.webhook_endpoints, number),
            Meter::of("API keys", usage.api_keys, number),
            Meter::of("Profiles", usage.profiles, number),
            Meter::of("Team members", usage.team_members, number),
            Meter::of("Posting slots", usage.slots, number),
            Meter::of("Media", usage.storage_bytes, labels::size),
        ],
        overage: usage.posts.overage,
        posts: posts_by_day(context).await?,
        requests: requests_by_day(context).await?,
    };
    Ok(render(page.layout.status(), &page))
}

async fn posts_by_day(context: &PageContext<'_>) -> Result<Chart, Problem> {
    let (days, since) = days(context, POST_DAYS);
    let (owner, zone) = (context.call().owner, zone::current());
    let found = counts::published_by_day(context.db(), owner, since, zone.name()).await?;
    Ok(chart("Published posts by day", days, found))
}

async fn requests_by_day(context: &PageContext<'_>) -> Result<Chart, Problem> {
    let (days, since) = days(context, REQUEST_DAYS);
    let (owner, zone) = (context.call().owner, zone::current());
    let found = counts::requests_by_day(context.db(), owner, since, zone.name()).await?;
    Ok(chart("Requests of the log by day", days, found))
}

/// The last days of the page's zone, up to today, and the start of the first.
fn days(context: &PageContext<'_>, count: u64) -> (Vec<NaiveDate>, DateTime<Utc>) {
    let (now, zone) = (context.now(), zone::current());
    let today = zone::day_of(now, zone);
    let first = today.checked_sub_days(Days::new(count - 1)).unwrap_or(today);
    let days = first.iter_days().take_while(|day| *day <= today);
    (days.collect(), zone::start_of(first, zone).unwrap_or(now))
}

fn chart(title: &'static str, days: Vec<NaiveDate>, found: Vec<(NaiveDate, u64)>) -> Chart {
    let found: HashMap<_, _> = found.into_iter().collect();
    let value =
        |day: NaiveDate| (day.format("%-d %b").to_string(), found.get(&day).copied().unwrap_or_default());
    Chart::of(title, "Day", days.into_iter().map(value).collect())
}
