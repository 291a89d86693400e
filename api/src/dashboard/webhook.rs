//! One webhook endpoint: what was sent there and what it said, and its signing secret.

use super::{
    fields,
    frame::{Fault, Frame, render},
    posts::Choice,
    visit::{Visit, done},
    webhooks::named,
    words::{self, Clock, Done, Label, Moment},
};
use crate::{
    http::{body, problem::Problem, query},
    webhooks,
};
use askama::Template;
use poem::Response;
use serde_json::json;
use store::deliveries::DeliveryStatus;

#[derive(Template)]
#[template(path = "dashboard/webhook.html")]
struct Page {
    frame: Frame,
    id: String,
    url: String,
    description: Option<String>,
    events: String,
    label: Label,
    is_active: bool,
    created: Clock,
    secret: Option<String>,
    tested: Option<String>,
    statuses: Vec<Choice>,
    deliveries: Vec<Delivery>,
    older: Option<String>,
}

struct Delivery {
    id: String,
    event: String,
    label: Label,
    attempts: i32,
    response: Option<i32>,
    error: Option<String>,
    next: Option<Moment>,
    created: Clock,
    delivered: Option<Clock>,
    can_redeliver: bool,
}

/// Shows the page.
pub(crate) async fn show(visit: &Visit<'_>, id: &str, fault: Option<Fault>) -> Result<Response, Problem> {
    show_with(visit, id, fault, None, None).await
}

/// Shows the page, with what a sample came to or with the signing secret.
pub(crate) async fn show_with(
    visit: &Visit<'_>,
    id: &str,
    fault: Option<Fault>,
    tested: Option<String>,
    secret: Option<String>,
) -> Result<Response, Problem> {
    let (call, now) = (visit.call(), visit.now());
    let webhook = webhooks::get(&call, id).await?;
    let parameters = fields::write(visit.query.only(&["status", "cursor"]));
    let found = webhooks::deliveries(&call, id, query::read(&parameters)?).await?;
    let chosen = visit.query.get("status");
    let frame = visit.faulty("Webhook endpoint", "/webhooks", fault);
    // A secret stays until it was copied, and an older page of deliveries does not change.
    let rests = tested.is_some() || secret.is_some() || visit.query.given("cursor").is_some();
    let place = match chosen {
        "" => format!("/webhooks/{}", webhook.id),
        status => format!("/webhooks/{}?status={status}", webhook.id),
    };
    let page = Page {
        frame: if rests { frame } else { frame.live(&place) },
        id: webhook.id.to_string(),
        url: webhook.url,
        description: webhook.description,
        events: named(webhook.events.iter().map(|event| event.as_str())),
        label: words::activity(webhook.is_active),
        is_active: webhook.is_active,
        created: Clock(webhook.created_at.0),
        secret,
        tested,
        statuses: DeliveryStatus::ALL
            .iter()
            .map(|status| Choice {
                value: status.as_str().to_owned(),
                name: words::delivery(*status, 0).name().to_owned(),
                is_chosen: status.as_str() == chosen,
            })
            .collect(),
        deliveries: found
            .data
            .into_iter()
            .map(|delivery| {
                let status: DeliveryStatus = delivery.status.value();
                Delivery {
                    id: delivery.id.to_string(),
                    event: delivery.event.as_str().to_owned(),
                    label: words::delivery(status, delivery.attempts),
                    attempts: delivery.attempts,
                    response: delivery.response_status,
                    error: delivery.error,
                    next: delivery.next_attempt_at.map(|at| Moment::of(at.0, now)),
                    created: Clock(delivery.created_at.0),
                    delivered: delivery.delivered_at.map(|at| Clock(at.0)),
                    can_redeliver: matches!(status, DeliveryStatus::Delivered | DeliveryStatus::Failed),
                }
            })
            .collect(),
        older: found.next_cursor,
    };
    Ok(render(page.frame.status(), &page))
}

/// Sends a sample.
pub(crate) async fn test(visit: &Visit<'_>, id: &str) -> Result<Response, Problem> {
    match webhooks::test(&visit.call(), id).await {
        Ok(result) => {
            let words = match (result.delivered, result.response_status) {
                (true, status) => format!("The endpoint took the sample: it answered {status}."),
                (false, 0) => "Nothing answered there.".to_owned(),
                (false, status) => format!("The endpoint refused the sample: it answered {status}."),
            };
            show_with(visit, id, None, Some(words), None).await
        }
        Err(problem) => show(visit, id, Some(Fault::of("test", problem))).await,
    }
}

/// Pauses or resumes.
pub(crate) async fn set_active(visit: &Visit<'_>, id: &str, is_active: bool) -> Result<Response, Problem> {
    let edited = webhooks::edit(&visit.call(), id, body::read(json!({ "is_active": is_active }))?).await;
    match edited {
        Ok(_) => Ok(done(&format!("/webhooks/{id}"), if is_active { Done::Resumed } else { Done::Paused })),
        Err(problem) => show(visit, id, Some(Fault::of("endpoint", problem))).await,
    }
}

/// Shows the signing secret.
pub(crate) async fn reveal(visit: &Visit<'_>, id: &str) -> Result<Response, Problem> {
    match webhooks::reveal(&visit.call(), id).await {
        Ok(secret) => show_with(visit, id, None, None, Some(secret)).await,
        Err(problem) => show(visit, id, Some(Fault::of("secret", problem))).await,
    }
}

/// Gives the endpoint another signing secret, and shows it.
pub(crate) async fn rotate(visit: &Visit<'_>, id: &str) -> Result<Response, Problem> {
    match webhooks::rotate(&visit.call(), id).await {
        Ok(secret) => show_with(visit, id, None, None, Some(secret)).await,
        Err(problem) => show(visit, id, Some(Fault::of("secret", problem))).await,
    }
}

/// Delivers once more.
pub(crate) async fn redeliver(visit: &Visit<'_>, id: &str, delivery: &str) -> Result<Response, Problem> {
    match webhooks::redeliver(&visit.call(), id, delivery).await {
        Ok(_) => Ok(done(&format!("/webhooks/{id}"), Done::Redelivered)),
        Err(problem) => show(visit, id, Some(Fault::of(delivery, problem))).await,
    }
}

/// Removes the endpoint.
pub(crate) async fn delete(visit: &Visit<'_>, id: &str) -> Result<Response, Problem> {
    match webhooks::delete(&visit.call(), id).await {
        Ok(_) => Ok(done("/webhooks", Done::Deleted)),
        Err(problem) => show(visit, id, Some(Fault::of("endpoint", problem))).await,
    }
}
