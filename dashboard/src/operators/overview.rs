//! How publishing goes, and what is stuck, overdue and throttled, by platform and organization: the page of the one on
//! call.

use super::{Operator, outcome::see};
use crate::{
    fields,
    labels::RelativeTime,
    layout::{Layout, PageError, render},
};
use api::http::problem::Problem;
use askama::Template;
use chrono::{DateTime, Utc};
use poem::Response;
use std::time::Duration;
use store::{
    operators::{self, Filter, Load, Located, Rate, SAMPLED, Summary},
    publishing::freezes::{self, Freeze},
    usage::backlog::{self, Waiting},
};
use uuid::Uuid;

/// Time that a target may wait before it counts as stuck.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);

/// Times that rates are told of: as in the query, in words, and in seconds.
const TIMES: [(&str, &str, u64); 3] =
    [("15m", "15 minutes", 900), ("1h", "hour", 3_600), ("24h", "24 hours", 86_400)];

#[derive(Template)]
#[template(path = "operators/overview.html")]
struct Overview<'a> {
    layout: Layout,
    all: Line,
    groups: [Group; 2],
    causes: Vec<Line>,
    times: Vec<(&'static str, &'static str, bool)>,
    time: &'static str,
    waits: Vec<Wait>,
    frozen: usize,
    sought: &'a str,
}

/// Loads of one kind.
struct Group {
    id: &'static str,
    title: &'static str,
    heading: &'static str,
    /// Kind of a freeze.
    kind: &'static str,
    lines: Vec<Line>,
}

/// A [`Load`] in words.
pub(super) struct Line {
    pub(super) id: String,
    pub(super) name: String,
    /// The list of these targets.
    pub(super) link: String,
    pub(super) stuck: i64,
    pub(super) overdue: i64,
    pub(super) throttled: i64,
    pub(super) frozen: i64,
    pub(super) oldest: Option<RelativeTime>,
    pub(super) rate: Option<Rated>,
    /// The freezes in force.
    pub(super) freezes: Vec<Freeze>,
}

/// A [`Rate`] in words.
pub(super) struct Rated {
    pub(super) published: i64,
    pub(super) failed: i64,
    pub(super) success: String,
    pub(super) is_bad: bool,
    pub(super) median: String,
    pub(super) slow: String,
    pub(super) throttled: String,
    /// Since when, if not all are counted.
    pub(super) since: Option<RelativeTime>,
}

impl Rated {
    fn of(rate: &Rate, now: DateTime<Utc>) -> Self {
        let ended = rate.published + rate.failed;
        Self {
            published: rate.published,
            failed: rate.failed,
            success: share(rate.published, ended),
            // One in twenty fails.
            is_bad: rate.failed * 20 > ended,
            median: rate.median_seconds.map(took).unwrap_or_default(),
            slow: rate.slow_seconds.map(took).unwrap_or_default(),
            throttled: share(rate.throttled, ended),
            since: rate.since.map(|at| RelativeTime::of(at, now)),
        }
    }
}

/// A part of a number, in percent: rounded down, so that only all is 100.
fn share(part: i64, whole: i64) -> String {
    if whole == 0 { String::new() } else { format!("{:.1} %", (part * 1_000 / whole) as f64 / 10.0) }
}

/// A duration in seconds, to about two digits.
fn took(seconds: f64) -> String {
    match seconds.max(0.0) {
        seconds if seconds < 10.0 => format!("{seconds:.1} s"),
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds if seconds < 7_200.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.0} h", seconds / 3_600.0),
    }
}

impl Line {
    pub(super) fn of(load: Load, kind: &'static str, now: DateTime<Utc>) -> Self {
        let name = match kind {
            "platform" => platforms::display_name(&load.id).to_owned(),
            "org" => load.name.unwrap_or_else(|| load.id.clone()),
            _ if load.id.is_empty() => "none yet".to_owned(),
            _ => load.id.clone(),
        };
        Self {
            name,
            link: fields::write([("kind", "target"), (kind, load.id.as_str())]),
            stuck: load.stuck,
            overdue: load.overdue,
            throttled: load.throttled,
            frozen: load.frozen,
            oldest: load.oldest.map(|at| RelativeTime::of(at, now)),
            rate: None,
            freezes: Vec::new(),
            id: load.id,
        }
    }

    /// True if its targets can be listed: those without a code can't be filtered.
    pub(super) fn is_listed(&self) -> bool {
        !self.id.is_empty()
    }
}

/// Joins what is stuck with the rates and the freezes of the same platforms or organizations.
fn joined(
    loads: Vec<Load>,
    rates: &[Rate],
    freezes: &[Freeze],
    kind: &'static str,
    now: DateTime<Utc>,
) -> Vec<Line> {
    let frozen = if kind == "org" { "organization" } else { kind };
    let mut lines: Vec<_> = loads.into_iter().map(|load| Line::of(load, kind, now)).collect();
    let mut add = |id: &str, name: Option<String>| {
        if !lines.iter().any(|line| line.id == id) {
            lines.push(Line::of(Load { id: id.to_owned(), name, ..Load::default() }, kind, now));
        }
    };
    for rate in rates {
        add(&rate.id, rate.name.clone());
    }
    for freeze in freezes.iter().filter(|freeze| freeze.kind == frozen) {
        add(&freeze.subject, None);
    }
    for line in &mut lines {
        line.rate = rates.iter().find(|rate| rate.id == line.id).map(|rate| Rated::of(rate, now));
        let own = freezes.iter().filter(|freeze| freeze.kind == frozen && freeze.subject == line.id);
        line.freezes = own.cloned().collect();
    }
    lines
}

/// Something else that waits.
struct Wait {
    name: &'static str,
    kind: &'static str,
    number: i64,
    oldest: Option<RelativeTime>,
}

/// Shows the page.
pub(super) async fn show(operator: &Operator<'_>, error: Option<PageError>) -> Result<Response, Problem> {
    let now = operator.now();
    let filter = Filter {
        kind: None,
        org: None,
        platform: None,
        account: None,
        code: None,
        is_failing: false,
        patience: PATIENCE,
        limit: 0,
    };
    let Summary { all, platforms, organizations, causes } =
        operators::summary(operator.db(), &filter).await?;
    let renewed: Vec<_> = platforms::renewals().into_iter().map(|(id, _)| id.to_owned()).collect();
    let backlog = backlog::read(operator.db(), &renewed).await?;
    let chosen = TIMES.iter().find(|(id, ..)| operator.query.get("time") == *id).unwrap_or(&TIMES[1]);
    let rates = operators::rates(operator.db(), &platforms::IDS, Duration::from_secs(chosen.2)).await?;
    let frozen = freezes::list(operator.db()).await?;
    let wait = |name, kind, waiting: Waiting| Wait {
        name,
        kind,
        number: waiting.number,
        oldest: (waiting.number > 0).then(|| {
            let age = Duration::try_from_secs_f64(waiting.age_seconds).unwrap_or_default();
            RelativeTime::of(now - age, now)
        }),
    };
    let number = |number| Waiting { number, age_seconds: 0.0 };
    let page = Overview {
        layout: operator.layout("Operators", "", error),
        all: Line::of(all, "", now),
        groups: [
            Group {
                id: "platforms",
                title: "By platform",
                heading: "Platform",
                kind: "platform",
                lines: joined(platforms, &rates.platforms, &frozen, "platform", now),
            },
            Group {
                id: "organizations",
                title: "By organization",
                heading: "Organization",
                kind: "organization",
                lines: joined(organizations, &rates.organizations, &frozen, "org", now),
            },
        ],
        causes: causes.into_iter().map(|load| Line::of(load, "code", now)).collect(),
        times: TIMES.iter().map(|(id, name, _)| (*id, *name, *id == chosen.0)).collect(),
        time: chosen.1,
        waits: vec![
            wait("Messages to Temporal that wait", "message", backlog.outbox),
            Wait {
                oldest: None,
                ..wait("Messages that Temporal refused", "message", number(backlog.parked))
            },
            wait("Overdue webhook deliveries", "delivery", backlog.deliveries),
            Wait { oldest: None, ..wait("Grants that are not renewed", "grant", number(backlog.unrenewed)) },
        ],
        frozen: frozen.len(),
        sought: operator.query.get("id"),
    };
    Ok(render(page.layout.status(), &page))
}

/// Leads to the page of an id.
pub(super) async fn open(operator: &Operator<'_>) -> Result<Response, Problem> {
    let located = match operator.query.get("id").trim().parse::<Uuid>() {
        Ok(id) => operators::locate(operator.db(), id).await?,
        Err(_) => None,
    };
    match located {
        Some(Located::Post(id)) => Ok(see(&format!("/posts/{id}"))),
        Some(Located::Organization(id)) => Ok(see(&format!("/organizations/{id}"))),
        None => {
            let problem = Problem::not_found("post, target, account, endpoint, key or organization");
            show(operator, Some(PageError::of("open", problem))).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_told_in_words() {
        for (part, whole, expected) in
            [(999_999, 1_000_000, "99.9 %"), (1, 1, "100.0 %"), (0, 3, "0.0 %"), (0, 0, "")]
        {
            assert_eq!(share(part, whole), expected);
        }
        for (seconds, expected) in
            [(-1.0, "0.0 s"), (0.44, "0.4 s"), (59.6, "60 s"), (300.0, "5 min"), (86_400.0, "24 h")]
        {
            assert_eq!(took(seconds), expected);
        }
    }
}
