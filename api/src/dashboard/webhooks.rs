//! Webhook endpoints.

use super::{
    fields::Fields,
    frame::{Fault, Frame, render},
    visit::Visit,
    webhook,
    words::{self, Clock, Label},
};
use crate::{
    http::{body, problem::Problem},
    webhooks,
};
use askama::Template;
use domain::event::EventName;
use poem::Response;
use serde_json::json;

#[derive(Template)]
#[template(path = "dashboard/webhooks.html")]
struct Webhooks<'a> {
    frame: Frame,
    webhooks: Vec<Line>,
    events: Vec<&'static str>,
    form: &'a Fields,
}

struct Line {
    id: String,
    url: String,
    description: Option<String>,
    events: String,
    label: Label,
    created: Clock,
}

/// Shows the page.
pub(crate) async fn show(visit: &Visit<'_>, fault: Option<Fault>) -> Result<Response, Problem> {
    let page = Webhooks {
        frame: visit.faulty("Webhooks", "/webhooks", fault),
        webhooks: webhooks::list(&visit.call())
            .await?
            .data
            .into_iter()
            .map(|webhook| Line {
                id: webhook.id.to_string(),
                url: webhook.url,
                description: webhook.description,
                events: named(webhook.events.iter().map(|event| event.as_str())),
                label: words::activity(webhook.is_active),
                created: Clock(webhook.created_at.0),
            })
            .collect(),
        events: EventName::ALL.iter().map(|event| event.as_str()).collect(),
        form: &visit.form,
    };
    Ok(render(page.frame.status(), &page))
}

/// Registers an endpoint, and shows it with its secret.
pub(crate) async fn create(visit: &Visit<'_>) -> Result<Response, Problem> {
    let mut events: Vec<_> = visit.form.all("event").collect();
    if events.is_empty() {
        events.push("*");
    }
    let wish = json!({
        "url": visit.form.given("url"),
        "description": visit.form.given("description"),
        "events": events,
    });
    let created = match body::read(wish) {
        Ok(new) => webhooks::create(&visit.call(), new).await,
        Err(problem) => Err(problem),
    };
    match created {
        Ok(created) => {
            webhook::show_with(visit, &created.id.to_string(), None, None, created.signing_secret).await
        }
        Err(problem) => show(visit, Some(Fault::of("new", problem))).await,
    }
}

/// Events, as one reads them.
pub(crate) fn named<'a>(events: impl Iterator<Item = &'a str>) -> String {
    let events: Vec<_> = events.collect();
    if events.contains(&"*") { "every event".to_owned() } else { events.join(", ") }
}

impl Webhooks<'_> {
    fn is_chosen(&self, event: &str) -> bool {
        self.form.all("event").any(|chosen| chosen == event)
    }
}
