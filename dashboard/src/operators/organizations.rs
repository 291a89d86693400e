//! Organizations, by name.

use super::{Operator, outcome::Outcome};
use crate::{
    labels::AbsoluteTime,
    layout::{Layout, PageError, render},
};
use api::http::problem::Problem;
use askama::Template;
use poem::Response;
use store::{operators, people::organizations};

/// Maximum organizations on the page.
const LIMIT: i64 = 50;

#[derive(Template)]
#[template(path = "operators/organizations.html")]
struct Organizations<'a> {
    layout: Layout,
    name: &'a str,
    organizations: Vec<(String, String, AbsoluteTime)>,
    is_cut: bool,
}

/// Shows the page.
pub(super) async fn show(operator: &Operator<'_>, error: Option<PageError>) -> Result<Response, Problem> {
    let name = operator.query.get("name").trim();
    let found = organizations::search(operator.db(), name, LIMIT).await?;
    let page = Organizations {
        layout: operator.layout("Organizations", "/organizations", error),
        name,
        is_cut: found.len() as i64 == LIMIT,
        organizations: found
            .into_iter()
            .map(|found| (found.id.to_string(), found.name, AbsoluteTime(found.created_at)))
            .collect(),
    };
    Ok(render(page.layout.status(), &page))
}

/// Ends the sessions of all organizations.
pub(super) async fn end_sessions(operator: &Operator<'_>) -> Result<Response, Problem> {
    let ended = operators::end_sessions(operator.db(), None, &operator.by, operator.now()).await?;
    Ok(Outcome::of("sessions", ended).see("/organizations", []))
}
