//! The log of API requests.

use crate::{
    choice::Choice,
    context::PageContext,
    fields,
    labels::ShortTime,
    layout::{Layout, PageError, render},
};
use api::{
    http::{problem::Problem, query},
    requests::{self, Filter, RequestPage},
};
use askama::Template;
use poem::Response;

/// Requests of a page.
const PAGE: &str = "50";

/// Lowest statuses to filter by.
const STATUSES: [(&str, &str); 2] = [("400", "Errors (400 to 599)"), ("500", "Server errors (500 to 599)")];

#[derive(Template)]
#[template(path = "requests.html")]
struct Requests {
    layout: Layout,
    rows: Vec<Row>,
    statuses: Vec<Choice>,
    path: String,
    older: Option<String>,
}

struct Row {
    id: String,
    at: ShortTime,
    method: String,
    path: String,
    status: i32,
    class: &'static str,
    duration_ms: i32,
    last_four: String,
}

/// Shows the page.
pub(crate) async fn show(context: &PageContext<'_>) -> Result<Response, Problem> {
    let asked = &context.query;
    let wish = asked.only(&["min_status", "path", "cursor"]).chain([("limit", PAGE)]);
    let found = match query::read::<Filter>(&fields::write(wish)) {
        Ok(filter) => requests::list(&context.call(), filter).await,
        Err(problem) => Err(problem),
    };
    let (found, error) = match found {
        Ok(found) => (found, None),
        Err(problem) if problem.code.status().is_server_error() => return Err(problem),
        Err(problem) => {
            (RequestPage { data: Vec::new(), next_cursor: None }, Some(PageError::of("filter", problem)))
        }
    };
    let page = Requests {
        layout: context.layout_with_error("Requests", "/requests", error),
        rows: found
            .data
            .into_iter()
            .map(|request| Row {
                id: request.request_id,
                at: ShortTime(request.at.0),
                method: request.method,
                path: request.path,
                status: request.status,
                class: match request.status {
                    500.. => "bad",
                    400.. => "warn",
                    _ => "good",
                },
                duration_ms: request.duration_ms,
                last_four: request.last_four,
            })
            .collect(),
        statuses: STATUSES
            .iter()
            .map(|(value, name)| Choice::new(*value, *name, asked.get("min_status") == *value))
            .collect(),
        path: asked.get("path").to_owned(),
        older: found.next_cursor.map(|cursor| {
            fields::write(asked.only(&["min_status", "path"]).chain([("cursor", cursor.as_str())]))
        }),
    };
    Ok(render(page.layout.status(), &page))
}
