//! The log of API requests.

use super::{
    context::PageContext,
    fields,
    labels::AbsoluteTime,
    layout::{Layout, render},
};
use crate::{
    http::problem::Problem,
    requests::{self, Filter},
};
use askama::Template;
use poem::Response;

/// Requests of a page.
const PAGE: i64 = 50;

#[derive(Template)]
#[template(path = "dashboard/requests.html")]
struct Requests {
    layout: Layout,
    rows: Vec<Row>,
    older: Option<String>,
}

struct Row {
    id: String,
    at: AbsoluteTime,
    method: String,
    path: String,
    status: i32,
    class: &'static str,
    duration_ms: i32,
    last_four: String,
}

/// Shows the page.
pub(crate) async fn show(context: &PageContext<'_>) -> Result<Response, Problem> {
    let cursor = context.query.given("cursor").map(str::to_owned);
    let found = requests::list(&context.call(), Filter { limit: Some(PAGE), cursor }).await?;
    let page = Requests {
        layout: context.layout("Requests", "/requests"),
        rows: found
            .data
            .into_iter()
            .map(|request| Row {
                id: request.request_id,
                at: AbsoluteTime(request.at.0),
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
        older: found.next_cursor.map(|cursor| fields::write([("cursor", cursor.as_str())])),
    };
    Ok(render(page.layout.status(), &page))
}
