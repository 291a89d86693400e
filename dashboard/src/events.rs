//! Events, newest first, each with its payload and its deliveries.

use crate::{
    choice::Choice,
    context::PageContext,
    fields,
    labels::{self, AbsoluteTime, Label, ShortTime},
    layout::{Layout, render},
    posts::excerpt,
};
use api::http::problem::Problem;
use askama::Template;
use domain::{EventId, event::EventName};
use poem::Response;
use serde_json::Value;
use std::collections::HashMap;
use store::{
    dashboard::overview,
    webhooks::{deliveries, events},
};

/// Events of a page.
const PAGE: u32 = 50;

#[derive(Template)]
#[template(path = "events.html")]
struct Events {
    layout: Layout,
    rows: Vec<Row>,
    names: Vec<Choice>,
    older: Option<String>,
}

struct Row {
    id: String,
    event: String,
    /// Id and beginning of its post.
    post: Option<(String, String)>,
    at: ShortTime,
}

#[derive(Template)]
#[template(path = "event.html")]
struct Page {
    layout: Layout,
    id: String,
    event: String,
    post: Option<String>,
    at: AbsoluteTime,
    deliveries: Vec<Delivery>,
    payload: String,
}

struct Delivery {
    id: String,
    webhook: String,
    url: String,
    label: Label,
    attempts: i32,
    answer: String,
}

/// Shows the list.
pub(crate) async fn list(context: &PageContext<'_>) -> Result<Response, Problem> {
    let query = &context.query;
    let names = match query.get("event").parse::<EventName>() {
        Ok(name) => vec![name],
        Err(_) => EventName::ALL.to_vec(),
    };
    let before = query.get("before").parse::<EventId>().ok();
    let mut found = events::newest(context.db(), context.whole()?, &names, before, PAGE + 1).await?;
    let has_more = found.len() > PAGE as usize;
    found.truncate(PAGE as usize);
    // Events outlive their posts.
    let posts: Vec<_> = found.iter().filter_map(|event| event.post).collect();
    let texts: HashMap<_, _> = overview::previews(context.db(), context.whole()?, &posts)
        .await?
        .into_iter()
        .map(|(id, preview)| (id, excerpt(&preview.excerpt)))
        .collect();
    let older = found.last().filter(|_| has_more).map(|last| {
        let id = last.id.to_string();
        fields::write(query.only(&["event"]).chain([("before", id.as_str())]))
    });
    let layout = context.layout("Events", "/events");
    let kept = fields::write(query.only(&["event"]));
    let separator = if kept.is_empty() { "" } else { "?" };
    let page = Events {
        // Older pages stay as they are.
        layout: match before {
            None => layout.live(&format!("/events{separator}{kept}")),
            Some(_) => layout,
        },
        rows: found
            .into_iter()
            .map(|event| Row {
                id: event.id.to_string(),
                event: event.event,
                post: event.post.map(|id| {
                    let text = texts.get(&id).map_or("a deleted post", String::as_str);
                    (id.to_string(), text.to_owned())
                }),
                at: ShortTime(event.created_at),
            })
            .collect(),
        names: EventName::ALL.iter().map(|name| Choice::word(name.as_str(), query.get("event"))).collect(),
        older,
    };
    Ok(render(page.layout.status(), &page))
}

/// Shows an event.
pub(crate) async fn show(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    let missing = || Problem::not_found("event");
    let id: EventId = id.parse().map_err(|_| missing())?;
    let (event, body) = events::get(context.db(), context.whole()?, id).await?.ok_or_else(missing)?;
    let found = deliveries::of_event(context.db(), context.whole()?, id).await?;
    let body: Value = serde_json::from_str(&body).expect("a body is JSON");
    let page = Page {
        layout: context.layout(event.event.as_str(), "/events").live(&format!("/events/{id}")),
        id: id.to_string(),
        event: event.event,
        post: event.post.map(|post| post.to_string()),
        at: AbsoluteTime(event.created_at),
        deliveries: found
            .into_iter()
            .map(|delivery| Delivery {
                id: delivery.id.to_string(),
                webhook: delivery.webhook.to_string(),
                url: delivery.url,
                label: labels::delivery(delivery.status, delivery.attempts),
                attempts: delivery.attempts,
                answer: match (delivery.response_status, delivery.error) {
                    (Some(status), _) => status.to_string(),
                    (None, error) => error.unwrap_or_default(),
                },
            })
            .collect(),
        payload: format!("{body:#}"),
    };
    Ok(render(page.layout.status(), &page))
}
