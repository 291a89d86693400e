//! Analytics: what the metrics grew by in a period, by day, platform and account, the best posts, and one post's figures.
//!
//! Every chart is drawn by a script from a table that the page has anyway.

use crate::{
    choice::{self, Choice},
    context::{PageContext, done},
    labels::{Done, ShortTime},
    layout::{Layout, PageError, render},
    posts::excerpt,
};
use api::{
    http::problem::Problem,
    posts::{self, analytics},
};
use askama::Template;
use chrono::{Days, NaiveDate};
use domain::{AccountId, TargetStatus};
use poem::Response;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use store::{
    dashboard::{
        analytics as sums,
        analytics::{COMPARED, Filter, Growth, Metric},
        overview,
    },
    usage::metrics,
};

/// Periods to choose from, in days.
const PERIODS: [u64; 4] = [7, 30, 90, 365];
/// Number of best posts.
const BEST: i64 = 20;
/// Maximum number of snapshots per target of a post.
const POINTS: i64 = 200;

/// Name of a metric.
fn name(metric: Metric) -> &'static str {
    match metric {
        Metric::Impressions => "Impressions",
        Metric::Reach => "Reach",
        Metric::Likes => "Likes",
        Metric::Comments => "Comments",
        Metric::Shares => "Shares",
        Metric::Saves => "Saves",
        Metric::Clicks => "Clicks",
        Metric::VideoViews => "Video views",
    }
}

/// Formats a number with separators of thousands.
pub(super) fn number(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = if number < 0 { "\u{2212}".to_owned() } else { String::new() };
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number for a narrow place: from a million on, in millions.
fn short(value: i64) -> String {
    match value.unsigned_abs() {
        1_000_000_000.. => format!("{:.1}B", value as f64 / 1e9),
        1_000_000.. => format!("{:.1}M", value as f64 / 1e6),
        _ => number(value),
    }
}

/// The numbers of a row, in the order of the metrics.
fn numbers(growth: &Growth) -> Vec<String> {
    Metric::ALL.iter().map(|metric| number(growth.of(*metric))).collect()
}

#[derive(Template)]
#[template(path = "analytics.html")]
struct Analytics {
    layout: Layout,
    periods: Vec<Choice>,
    platforms: Vec<Choice>,
    accounts: Vec<Choice>,
    metric: Metric,
    tiles: Vec<Tile>,
    names: Vec<&'static str>,
    chart: Chart,
    by_platform: Vec<Line>,
    by_account: Vec<Line>,
    best: Vec<Line>,
}

/// A metric's total, which links to its chart.
struct Tile {
    name: &'static str,
    query: String,
    is_chosen: bool,
    total: String,
    /// The total with all digits.
    exact: String,
    /// The difference from the period before.
    change: String,
    tone: &'static str,
}

/// A table that a chart is drawn from.
struct Chart {
    title: String,
    names: Vec<String>,
    rows: Vec<(Moment, Vec<String>)>,
}

/// The first cell of a row.
struct Moment {
    /// As scripts read it.
    iso: String,
    text: String,
}

/// A row with the numbers of all metrics.
struct Line {
    /// Platform id, which is also that of its icon.
    platform: String,
    name: String,
    /// Who published a post.
    by: String,
    link: String,
    at: Option<ShortTime>,
    numbers: Vec<String>,
}

/// Shows growth in a period.
pub(crate) async fn show(context: &PageContext<'_>) -> Result<Response, Problem> {
    let (query, call) = (&context.query, context.call());
    let days = query.get("days").parse().ok().filter(|days| PERIODS.contains(days)).unwrap_or(30);
    let metric = query.get("metric").parse().unwrap_or(Metric::Impressions);
    let last = context.now().date_naive();
    let back = |day: NaiveDate, days| day.checked_sub_days(Days::new(days)).unwrap_or(day);
    let filter = Filter {
        first: back(last, days - 1),
        last,
        platform: query.given("platform").map(str::to_owned),
        account: query.given("account").and_then(|id| id.parse().ok()).map(AccountId),
    };
    let before = Filter { first: back(filter.first, days), last: back(filter.first, 1), ..filter.clone() };
    // One read covers the period before, with which this one is compared.
    let both = Filter { first: before.first, ..filter.clone() };
    let grown = sums::days(context.db(), context.whole()?, &both).await?;
    let (mut total, mut earlier) = (Growth::default(), Growth::default());
    let mut by_platform: BTreeMap<String, Growth> = BTreeMap::new();
    let mut by_day: HashMap<(NaiveDate, String), i64> = HashMap::new();
    for day in grown {
        if day.day < filter.first {
            earlier.add(&day.growth);
            continue;
        }
        total.add(&day.growth);
        by_day.insert((day.day, day.platform.clone()), day.growth.of(metric));
        by_platform.entry(day.platform).or_default().add(&day.growth);
    }
    let shown: Vec<_> = by_platform.keys().cloned().collect();
    let rows = filter.first.iter_days().take_while(|day| *day <= last).map(|day| {
        let cell = |id: &String| by_day.get(&(day, id.clone())).copied().unwrap_or(0).to_string();
        let moment = Moment { iso: day.to_string(), text: day.format("%-d %b %Y").to_string() };
        (moment, shown.iter().map(cell).collect())
    });
    let accounts = choice::accounts(&call).await?;
    let by_account = sums::accounts(context.db(), context.whole()?, &filter, metric).await?;
    let best = sums::best(context.db(), context.whole()?, &filter, metric, BEST).await?;
    let page = Analytics {
        layout: context.layout("Analytics", "/analytics"),
        periods: PERIODS
            .iter()
            .map(|period| Choice::new(period.to_string(), format!("Last {period} days"), *period == days))
            .collect(),
        platforms: Choice::platforms(query),
        accounts: Choice::accounts(&accounts, query.get("account")),
        metric,
        tiles: Metric::ALL
            .iter()
            .map(|other| {
                let kept = query.without(&["metric", "done"]).filter(|(_, value)| !value.is_empty());
                let (now, before) = (total.of(*other), earlier.of(*other));
                let (change, tone) = change(now, before);
                Tile {
                    name: name(*other),
                    query: crate::fields::write(kept.chain([("metric", other.as_str())])),
                    is_chosen: *other == metric,
                    total: short(now),
                    exact: number(now),
                    change,
                    tone,
                }
            })
            .collect(),
        names: Metric::ALL.iter().map(|metric| name(*metric)).collect(),
        chart: Chart {
            title: format!("{} per day", name(metric)),
            names: shown.iter().map(|id| platforms::display_name(id).to_owned()).collect(),
            rows: rows.collect(),
        },
        by_platform: by_platform
            .iter()
            .map(|(id, growth)| Line {
                name: platforms::display_name(id).to_owned(),
                by: String::new(),
                link: String::new(),
                at: None,
                numbers: numbers(growth),
                platform: id.clone(),
            })
            .collect(),
        by_account: by_account
            .into_iter()
            .map(|account| Line {
                name: account.username,
                by: String::new(),
                link: format!("/analytics?days={days}&metric={metric}&account={}", account.account),
                at: None,
                numbers: numbers(&account.growth),
                platform: account.platform,
            })
            .collect(),
        best: best
            .into_iter()
            .map(|post| Line {
                name: excerpt(&post.excerpt),
                by: post.username,
                link: format!("/analytics/posts/{}", post.post),
                at: Some(ShortTime(post.published_at)),
                numbers: numbers(&post.metrics),
                platform: post.platform,
            })
            .collect(),
    };
    Ok(render(page.layout.status(), &page))
}

/// The difference from the period before, in words, and the color that it has.
fn change(now: i64, before: i64) -> (String, &'static str) {
    match before {
        _ if now == before => ("same as before".to_owned(), "soft"),
        ..=0 => ("none before".to_owned(), "soft"),
        _ => {
            let percent = (now - before) as f64 / before as f64 * 100.0;
            let sign = if percent < 0.0 { "\u{2212}" } else { "+" };
            let tone = if percent < 0.0 { "fell" } else { "rose" };
            (format!("{sign}{:.0} %", percent.abs()), tone)
        }
    }
}

#[derive(Template)]
#[template(path = "post_analytics.html")]
struct PostAnalytics {
    layout: Layout,
    id: String,
    excerpt: String,
    metrics: Vec<Choice>,
    names: Vec<&'static str>,
    targets: Vec<Line>,
    chart: Chart,
}

/// Shows the figures of a post, as they were read last.
pub(crate) async fn post(
    context: &PageContext<'_>,
    id: &str,
    error: Option<PageError>,
) -> Result<Response, Problem> {
    let call = context.call();
    let post = posts::find(&call, id).await?;
    let metric = context.query.get("metric").parse().unwrap_or(Metric::Impressions);
    let accounts: Vec<_> = post.targets.iter().map(|target| target.account_id).collect();
    let names = overview::names(context.db(), context.whole()?, &accounts).await?;
    let latest = metrics::latest(context.db(), call.access(), post.id).await?;
    let latest: HashMap<_, _> = latest.into_iter().map(|snapshot| (snapshot.target, snapshot)).collect();
    let series = metrics::series(context.db(), call.access(), post.id, POINTS).await?;
    let measured: BTreeSet<_> = series.iter().map(|snapshot| snapshot.target).collect();
    let who = |target: &store::posts::Target| {
        names.get(&target.account_id).map_or_else(String::new, |account| account.username.clone())
    };
    let shown: Vec<_> = post.targets.iter().filter(|target| measured.contains(&target.id)).collect();
    let mut rows: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for snapshot in &series {
        let Some(place) = shown.iter().position(|target| target.id == snapshot.target) else { continue };
        let cells = rows.entry(snapshot.captured_at).or_insert_with(|| vec![String::new(); shown.len()]);
        cells[place] = Growth::from(snapshot.metrics).of(metric).to_string();
    }
    let targets = post.targets.iter().filter(|target| target.status == TargetStatus::Published);
    let page = PostAnalytics {
        id: post.id.to_string(),
        excerpt: excerpt(post.containers.first().map_or("", |container| container.content.as_str())),
        metrics: Metric::ALL
            .iter()
            .map(|other| Choice::new(other.to_string(), name(*other), *other == metric))
            .collect(),
        names: Metric::ALL.iter().map(|metric| name(*metric)).collect(),
        targets: targets
            .map(|target| {
                let latest = latest.get(&target.id);
                Line {
                    platform: target.platform.clone(),
                    name: who(target),
                    by: String::new(),
                    link: String::new(),
                    at: latest.map(|snapshot| ShortTime(snapshot.captured_at)),
                    numbers: latest.map_or_else(Vec::new, |snapshot| numbers(&snapshot.metrics.into())),
                }
            })
            .collect(),
        chart: Chart {
            title: format!("{} over time", name(metric)),
            names: shown
                .iter()
                .map(|target| format!("{}, {}", platforms::display_name(&target.platform), who(target)))
                .collect(),
            rows: rows
                .into_iter()
                .map(|(at, cells)| {
                    let iso = at.format("%Y-%m-%dT%H:%M:%SZ").to_string();
                    (Moment { iso, text: at.format("%-d %b %Y, %H:%M UTC").to_string() }, cells)
                })
                .collect(),
        },
        layout: context.layout_with_error("Analytics of a post", "/analytics", error),
    };
    Ok(render(page.layout.status(), &page))
}

/// Reads the figures of a post from its platforms.
pub(crate) async fn refresh(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    match analytics::of(&context.call(), id, analytics::Detail::default()).await {
        Ok(_) => Ok(done(&format!("/analytics/posts/{id}"), Done::Measured)),
        Err(problem) => post(context, id, Some(PageError::of("refresh", problem))).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_separators() {
        for (value, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (-1_234_567, "\u{2212}1,234,567")] {
            assert_eq!(number(value), text);
        }
        for (value, text) in [(999_999, "999,999"), (62_124_430, "62.1M"), (3_000_000_000, "3.0B")] {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn a_period_is_compared_with_the_one_before() {
        for (now, before, expected) in [
            (150, 100, ("+50 %", "rose")),
            (50, 100, ("\u{2212}50 %", "fell")),
            (5, 5, ("same as before", "soft")),
            (5, 0, ("none before", "soft")),
            (-5, 10, ("\u{2212}150 %", "fell")),
        ] {
            assert_eq!(change(now, before), (expected.0.to_owned(), expected.1), "{now} after {before}");
        }
    }
}
