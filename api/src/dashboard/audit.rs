//! The audit trail.

use super::{
    context::PageContext,
    labels::AbsoluteTime,
    layout::{Layout, render},
};
use crate::{
    audit::{self, AuditEntry, Filter},
    http::problem::Problem,
};
use askama::Template;
use poem::{Response, http::StatusCode};
use serde_json::Value;

#[derive(Template)]
#[template(path = "dashboard/audit.html")]
struct Trail {
    layout: Layout,
    rows: Vec<Row>,
    next: Option<String>,
}

struct Row {
    at: AbsoluteTime,
    action: String,
    actor: String,
    address: Option<String>,
    object: String,
    details: Vec<(String, String)>,
}

/// Shows a page of the trail.
pub(crate) async fn show(context: &PageContext<'_>) -> Result<Response, Problem> {
    let cursor = context.query.given("cursor").map(str::to_owned);
    let page = audit::list(&context.call(), Filter { limit: None, cursor }).await?;
    let layout = context.layout("Audit trail", "/audit");
    let rows = page.data.into_iter().map(Row::from).collect();
    Ok(render(StatusCode::OK, &Trail { layout, rows, next: page.next_cursor }))
}

impl From<AuditEntry> for Row {
    fn from(entry: AuditEntry) -> Self {
        let by = match entry.actor.as_str() {
            "api_key" => "API key",
            "session" => "Dashboard, signed in with key",
            "invitation" => "Invitation",
            "login" => "Login at a platform",
            _ => "Operator of the service",
        };
        let details = entry.details.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        Self {
            at: AbsoluteTime(entry.at.0),
            action: entry.action.as_str().to_owned(),
            actor: entry.last_four.map_or_else(|| by.to_owned(), |four| format!("{by} …{four}")),
            address: entry.address,
            object: entry.object_id.to_string(),
            details: details.map(|(name, value)| (name.clone(), text(value))).collect(),
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
