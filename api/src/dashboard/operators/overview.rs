//! What is stuck, overdue and throttled, by platform and organization: the page of the one on call.

use super::{Operator, outcome::see, renewals};
use crate::{
    dashboard::{
        fields,
        labels::RelativeTime,
        layout::{Layout, PageError, render},
    },
    http::problem::Problem,
};
use askama::Template;
use chrono::{DateTime, Utc};
use poem::Response;
use std::time::Duration;
use store::{
    backlog::{self, Waiting},
    freezes,
    operators::{self, Filter, Load, Located, Summary},
};
use uuid::Uuid;

/// Time that a target may wait before it counts as stuck.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Template)]
#[template(path = "dashboard/operators/overview.html")]
struct Overview<'a> {
    layout: Layout,
    all: Line,
    groups: [Group; 3],
    waits: Vec<Wait>,
    frozen: usize,
    sought: &'a str,
}

/// Loads of one kind.
struct Group {
    id: &'static str,
    title: &'static str,
    heading: &'static str,
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
            id: load.id,
        }
    }

    /// True if its targets can be listed: those without a code can't be filtered.
    pub(super) fn is_listed(&self) -> bool {
        !self.id.is_empty()
    }
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
        patience: PATIENCE,
        limit: 0,
    };
    let Summary { all, platforms, organizations, causes } =
        operators::summary(operator.db(), &filter).await?;
    let renewed: Vec<_> = renewals().into_iter().map(|(id, _)| id.to_owned()).collect();
    let backlog = backlog::read(operator.db(), &renewed).await?;
    let lines = |loads: Vec<Load>, kind| loads.into_iter().map(|load| Line::of(load, kind, now)).collect();
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
                lines: lines(platforms, "platform"),
            },
            Group {
                id: "organizations",
                title: "By organization",
                heading: "Organization",
                lines: lines(organizations, "org"),
            },
            Group { id: "causes", title: "By cause", heading: "Last failure", lines: lines(causes, "code") },
        ],
        waits: vec![
            wait("Messages to Temporal that wait", "message", backlog.outbox),
            Wait {
                oldest: None,
                ..wait("Messages that Temporal refused", "message", number(backlog.parked))
            },
            wait("Overdue webhook deliveries", "delivery", backlog.deliveries),
            Wait { oldest: None, ..wait("Grants that are not renewed", "grant", number(backlog.unrenewed)) },
        ],
        frozen: freezes::list(operator.db()).await?.len(),
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
