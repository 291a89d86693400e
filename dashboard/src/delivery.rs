//! A delivery of a webhook: what was sent, and what the endpoint answered to each attempt.

use crate::{
    context::PageContext,
    labels::{self, AbsoluteTime, Label, RelativeTime},
    layout::{Layout, PageError, render},
};
use api::{http::problem::Problem, webhooks};
use askama::Template;
use chrono::{DateTime, Utc};
use poem::Response;
use serde_json::Value;
use store::webhooks::deliveries::DeliveryStatus;

#[derive(Template)]
#[template(path = "delivery.html")]
struct Page {
    layout: Layout,
    webhook: String,
    url: String,
    id: String,
    event: String,
    event_id: String,
    post: Option<String>,
    label: Label,
    next: Option<RelativeTime>,
    created: AbsoluteTime,
    delivered: Option<AbsoluteTime>,
    /// Label of its button.
    again: Option<&'static str>,
    answers: Vec<Answer>,
    payload: String,
}

struct Answer {
    at: Option<AbsoluteTime>,
    /// The HTTP status, or that there was none.
    status: String,
    class: &'static str,
    duration_ms: Option<i32>,
    body: Option<String>,
    error: Option<String>,
}

impl From<webhooks::DeliveryResponse> for Answer {
    fn from(response: webhooks::DeliveryResponse) -> Self {
        Self {
            at: response.at.map(|at| AbsoluteTime(at.0)),
            status: response.status.map_or_else(|| "none".to_owned(), |status| status.to_string()),
            class: if response.error.is_none() { "good" } else { "bad" },
            duration_ms: response.duration_ms,
            body: response.body,
            error: response.error,
        }
    }
}

/// Returns the label of the button that repeats a delivery; `None` while an attempt is under way or due.
pub(crate) fn again(delivery: &webhooks::Delivery, now: DateTime<Utc>) -> Option<&'static str> {
    match delivery.status.value() {
        DeliveryStatus::Delivered | DeliveryStatus::Failed => Some("Redeliver"),
        DeliveryStatus::Pending if delivery.next_attempt_at.is_some_and(|at| at.0 > now) => Some("Retry now"),
        DeliveryStatus::Pending | DeliveryStatus::Delivering => None,
    }
}

/// Shows the page.
pub(crate) async fn show(
    context: &PageContext<'_>,
    webhook: &str,
    id: &str,
    error: Option<PageError>,
) -> Result<Response, Problem> {
    let (call, now) = (context.call(), context.now());
    let endpoint = webhooks::get(&call, webhook).await?;
    let details = webhooks::delivery(&call, webhook, id).await?;
    let delivery = details.delivery;
    let layout =
        context.layout_with_error(format!("{} delivery", delivery.event.as_str()), "/webhooks", error);
    let page = Page {
        layout: layout.live(&format!("/webhooks/{}/deliveries/{}", endpoint.id, delivery.id)),
        webhook: endpoint.id.to_string(),
        url: endpoint.url,
        again: again(&delivery, now),
        id: delivery.id.to_string(),
        event: delivery.event.as_str().to_owned(),
        event_id: delivery.event_id.to_string(),
        post: details.post_id.map(|post| post.to_string()),
        label: labels::delivery(delivery.status.value(), delivery.attempts),
        next: delivery.next_attempt_at.map(|at| RelativeTime::of(at.0, now)),
        created: AbsoluteTime(delivery.created_at.0),
        delivered: delivery.delivered_at.map(|at| AbsoluteTime(at.0)),
        // The latest first.
        answers: details.responses.into_iter().rev().map(Answer::from).collect(),
        payload: format!("{:#}", Value::from_iter(details.payload)),
    };
    Ok(render(page.layout.status(), &page))
}
