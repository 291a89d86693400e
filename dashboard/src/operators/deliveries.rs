//! Repeating webhook deliveries.

use super::{Operator, outcome::Outcome};
use crate::{
    fields::Fields,
    layout::{Layout, PageError, render},
};
use api::http::problem::{Code, Problem};
use askama::Template;
use chrono::{DateTime, NaiveDate, Utc};
use poem::Response;
use store::{
    operators::{self, Deliveries, Redelivered},
    webhooks::deliveries::RedeliverResult,
};
use uuid::Uuid;

/// Maximum deliveries that one request repeats.
const LIMIT: i64 = 10_000;

#[derive(Template)]
#[template(path = "operators/deliveries.html")]
struct Page<'a> {
    layout: Layout,
    form: &'a Fields,
}

/// Shows the page.
pub(super) async fn show(operator: &Operator<'_>, error: Option<PageError>) -> Result<Response, Problem> {
    let page = Page { layout: operator.layout("Webhooks", "/deliveries", error), form: operator.form };
    Ok(render(page.layout.status(), &page))
}

/// Repeats one delivery, or the failed deliveries to an endpoint, and attempts now those that wait.
pub(super) async fn redeliver(operator: &Operator<'_>) -> Result<Response, Problem> {
    let (at, wish) = wish(operator.form);
    let done = match wish {
        Ok(which) => repeat(operator, which).await,
        Err(problem) => Err(problem),
    };
    match done {
        Ok(outcome) => match operator.form.given("post").and_then(|post| post.parse::<Uuid>().ok()) {
            Some(post) => Ok(outcome.see(&format!("/posts/{post}"), [])),
            None => Ok(outcome.see("/deliveries", [])),
        },
        Err(problem) if problem.code.status().is_server_error() => Err(problem),
        Err(problem) => show(operator, Some(PageError::of(at, problem))).await,
    }
}

async fn repeat(operator: &Operator<'_>, which: Deliveries) -> Result<Outcome, Problem> {
    let Some(Redelivered { queued, refused }) =
        operators::redeliver(operator.db(), which, LIMIT, &operator.by, operator.now()).await?
    else {
        return Err(Problem::not_found(match which {
            Deliveries::One(_) => "delivery",
            Deliveries::Endpoint(..) => "webhook",
        }));
    };
    if queued == 0 && refused.is_empty() {
        return Err(Problem::new(Code::Conflict, "nothing failed or waits"));
    }
    let mut outcome = Outcome::default();
    if queued > 0 {
        outcome.set("repeated", queued as u64);
    }
    for (_, refusal) in refused {
        outcome.add(match refusal {
            RedeliverResult::Queued(_) => "repeated",
            RedeliverResult::InProgress => "under_way",
            RedeliverResult::Paused | RedeliverResult::NotFound => "unreachable",
        });
    }
    Ok(outcome)
}

/// Returns what a form asks to repeat, and the place of errors.
fn wish(form: &Fields) -> (&'static str, Result<Deliveries, Problem>) {
    let id = |name: &str, what: &str| {
        let text = form.get(name).trim();
        let wrong = || Problem::new(Code::InvalidRequest, format!("“{text}” is not the id of {what}"));
        text.parse::<Uuid>().map_err(|_| wrong())
    };
    if form.given("endpoint").is_none() {
        return ("delivery", id("delivery", "a delivery").map(|id| Deliveries::One(id.into())));
    }
    let since = match form.given("since").map(str::parse::<NaiveDate>) {
        None => Ok(None),
        Some(Ok(day)) => Ok(Some(DateTime::<Utc>::from_naive_utc_and_offset(day.into(), Utc))),
        Some(Err(_)) => Err(Problem::new(Code::InvalidRequest, "this is not a date")),
    };
    let endpoint = id("endpoint", "an endpoint");
    ("endpoint", endpoint.and_then(|endpoint| Ok(Deliveries::Endpoint(endpoint.into(), since?))))
}
