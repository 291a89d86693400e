//! Webhook endpoints.

use crate::{
    context::PageContext,
    fields::Fields,
    labels::{self, Label, ShortTime},
    layout::{Layout, PageError, render},
    webhook::{self, named},
};
use api::{
    http::{body, problem::Problem},
    webhooks,
};
use askama::Template;
use domain::event::EventName;
use poem::Response;
use serde_json::json;
use std::net::Ipv4Addr;

#[derive(Template)]
#[template(path = "webhooks.html")]
struct Webhooks<'a> {
    layout: Layout,
    webhooks: Vec<Row>,
    older: Option<String>,
    events: Vec<&'static str>,
    form: &'a Fields,
    /// True if an endpoint may be on this machine.
    takes_local: bool,
}

struct Row {
    id: String,
    url: String,
    description: Option<String>,
    events: String,
    label: Label,
    failing_since: Option<ShortTime>,
    created: ShortTime,
}

/// Shows the page.
pub(crate) async fn show(context: &PageContext<'_>, error: Option<PageError>) -> Result<Response, Problem> {
    let found = webhooks::list(&context.call(), &context.paging()).await?;
    let page = Webhooks {
        layout: context.layout_with_error("Webhooks", "/webhooks", error),
        older: found.next_cursor,
        webhooks: found
            .data
            .into_iter()
            .map(|webhook| Row {
                id: webhook.id.to_string(),
                url: webhook.url,
                description: webhook.description,
                events: named(webhook.events.iter().map(|event| event.as_str())),
                label: labels::endpoint(webhook.is_active, webhook.failing_since.is_some()),
                failing_since: webhook.failing_since.map(|since| ShortTime(since.0)),
                created: ShortTime(webhook.created_at.0),
            })
            .collect(),
        events: EventName::ALL.iter().map(|event| event.as_str()).collect(),
        form: &context.form,
        takes_local: context
            .app
            .config
            .opened
            .of(context.call().owner.mode)
            .contains(Ipv4Addr::LOCALHOST.into()),
    };
    Ok(render(page.layout.status(), &page))
}

/// Registers an endpoint and shows it with its secret.
pub(crate) async fn create(context: &PageContext<'_>) -> Result<Response, Problem> {
    let mut events: Vec<_> = context.form.all("event").collect();
    if events.is_empty() {
        events.push("*");
    }
    let wish = json!({
        "url": context.form.given("url"),
        "description": context.form.given("description"),
        "events": events,
    });
    let created = match body::read(wish) {
        Ok(new) => webhooks::create(&context.call(), new).await,
        Err(problem) => Err(problem),
    };
    match created {
        Ok(created) => {
            let secret = created.signing_secret.map(webhook::Secret::current);
            webhook::show_with(context, &created.id.to_string(), None, None, secret).await
        }
        Err(problem) => show(context, Some(PageError::of("new", problem))).await,
    }
}

impl Webhooks<'_> {
    fn is_chosen(&self, event: &str) -> bool {
        self.form.all("event").any(|chosen| chosen == event)
    }
}
