//! The audit trail.

use crate::{
    choice::Choice,
    context::PageContext,
    fields,
    labels::AbsoluteTime,
    layout::{Layout, PageError, render},
    zone,
};
use api::{
    audit::{self, AuditEntry, Filter},
    http::{body, problem::Problem},
};
use askama::Template;
use poem::Response;
use serde_json::{Map, Value};
use store::people::audit::Action;

#[derive(Template)]
#[template(path = "audit.html")]
struct Trail {
    layout: Layout,
    rows: Vec<Row>,
    actions: Vec<Choice>,
    since: String,
    until: String,
    next: Option<String>,
}

struct Row {
    at: AbsoluteTime,
    action: String,
    actor: String,
    address: Option<String>,
    agent: Option<String>,
    object: String,
    details: Vec<(String, String)>,
}

/// Shows a page of the trail.
pub(crate) async fn show(context: &PageContext<'_>) -> Result<Response, Problem> {
    let query = &context.query;
    let names = ["cursor", "action", "member_id", "key_id", "object_id", "since", "until"];
    let wish = query.only(&names).map(|(name, value)| {
        let value = match name {
            "since" => zone::bound(value, false),
            "until" => zone::bound(value, true),
            _ => value.to_owned(),
        };
        (name.to_owned(), value.into())
    });
    let wish: Map<_, _> = wish.collect();
    let (page, error) = match body::read::<Filter>(Value::Object(wish)) {
        Ok(filter) => (audit::list(&context.call(), filter).await?, None),
        Err(problem) => {
            (audit::list(&context.call(), Filter::default()).await?, Some(PageError::of("filter", problem)))
        }
    };
    let next = page.next_cursor.map(|cursor| {
        let kept = query.only(&names[1..]);
        fields::write(kept.chain([("cursor", cursor.as_str())]))
    });
    let trail = Trail {
        layout: context.layout_with_error("Audit trail", "/audit", error),
        rows: page.data.into_iter().map(Row::from).collect(),
        actions: Action::ALL
            .iter()
            .map(|action| Choice::word(action.as_str(), query.get("action")))
            .collect(),
        since: query.get("since").to_owned(),
        until: query.get("until").to_owned(),
        next,
    };
    Ok(render(trail.layout.status(), &trail))
}

impl From<AuditEntry> for Row {
    fn from(entry: AuditEntry) -> Self {
        let by = match entry.actor.as_str() {
            "api_key" => "API key",
            "session" if entry.last_four.is_some() => "Dashboard, signed in with key",
            "session" => "Sign-in page",
            "invitation" => "Invitation",
            "login" => "Login at a platform",
            _ => "Operator of the service",
        };
        let details = entry.details.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        Self {
            at: AbsoluteTime(entry.at.0),
            action: entry.action.as_str().to_owned(),
            actor: match (entry.member, entry.last_four) {
                (Some(member), _) => member,
                (None, Some(four)) => format!("{by} …{four}"),
                (None, None) => by.to_owned(),
            },
            address: entry.address,
            agent: entry.user_agent,
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
