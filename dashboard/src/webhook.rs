//! A webhook endpoint with its deliveries and signing secret.

use crate::{
    choice::Choice,
    context::{PageContext, done},
    delivery::{self, again},
    fields,
    labels::{self, AbsoluteTime, Done, Label, RelativeTime, ShortTime},
    layout::{Layout, PageError, render},
};
use api::{
    http::{body, problem::Problem, query},
    types::timestamp::Timestamp,
    webhooks::{self, NewReplay, ReplayInclude},
};
use askama::Template;
use chrono::TimeDelta;
use domain::event::EventName;
use poem::Response;
use serde_json::json;
use store::webhooks::deliveries::DeliveryStatus;

/// Longest time whose failed deliveries can be repeated, in hours: that of the page's form.
const MAX_REPLAYED_HOURS: i64 = 30 * 24;

/// A signing secret that is shown.
pub(crate) struct Secret {
    /// The secret.
    pub(crate) value: String,
    /// Which deliveries it signs.
    pub(crate) meaning: &'static str,
}

impl Secret {
    /// The secret that signs.
    pub(crate) fn current(value: String) -> Self {
        Self { value, meaning: "Every delivery from now on is signed with this secret:" }
    }

    /// The secret that signs after the next rotation.
    fn next(value: String) -> Self {
        Self { value, meaning: "From the next rotation on, deliveries are signed with this secret:" }
    }
}

#[derive(Template)]
#[template(path = "webhook.html")]
struct Page {
    layout: Layout,
    id: String,
    url: String,
    description: Option<String>,
    events: String,
    label: Label,
    is_active: bool,
    failing_since: Option<AbsoluteTime>,
    created: AbsoluteTime,
    secret: Option<Secret>,
    tested: Option<String>,
    statuses: Vec<Choice>,
    names: Vec<Choice>,
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
    next: Option<RelativeTime>,
    created: ShortTime,
    /// Label of its button.
    again: Option<&'static str>,
}

/// Shows the page.
pub(crate) async fn show(
    context: &PageContext<'_>,
    id: &str,
    error: Option<PageError>,
) -> Result<Response, Problem> {
    show_with(context, id, error, None, None).await
}

/// Shows the page with the result of a test event or the signing secret.
pub(crate) async fn show_with(
    context: &PageContext<'_>,
    id: &str,
    error: Option<PageError>,
    tested: Option<String>,
    secret: Option<Secret>,
) -> Result<Response, Problem> {
    let (call, now) = (context.call(), context.now());
    let webhook = webhooks::get(&call, id).await?;
    let parameters = fields::write(context.query.only(&["status", "event", "cursor"]));
    let found = webhooks::deliveries(&call, id, query::read(&parameters)?).await?;
    let chosen = context.query.get("status");
    let layout = context.layout_with_error("Webhook endpoint", "/webhooks", error);
    // No polling while a secret is shown, or on older pages of deliveries.
    let rests = tested.is_some() || secret.is_some() || context.query.given("cursor").is_some();
    let kept = || context.query.only(&["status", "event"]);
    let place = match fields::write(kept()) {
        filter if filter.is_empty() => format!("/webhooks/{}", webhook.id),
        filter => format!("/webhooks/{}?{filter}", webhook.id),
    };
    let page = Page {
        layout: if rests { layout } else { layout.live(&place) },
        id: webhook.id.to_string(),
        url: webhook.url,
        description: webhook.description,
        events: named(webhook.events.iter().map(|event| event.as_str())),
        label: labels::endpoint(webhook.is_active, webhook.failing_since.is_some()),
        failing_since: webhook.failing_since.map(|since| AbsoluteTime(since.0)),
        is_active: webhook.is_active,
        created: AbsoluteTime(webhook.created_at.0),
        secret,
        tested,
        statuses: DeliveryStatus::ALL
            .iter()
            .map(|status| {
                let name = labels::delivery(*status, 0).name();
                Choice::new(status.as_str(), name, status.as_str() == chosen)
            })
            .collect(),
        names: EventName::ALL
            .iter()
            .map(|name| Choice::word(name.as_str(), context.query.get("event")))
            .collect(),
        deliveries: found
            .data
            .into_iter()
            .map(|delivery| {
                let status: DeliveryStatus = delivery.status.value();
                Delivery {
                    again: again(&delivery, now),
                    id: delivery.id.to_string(),
                    event: delivery.event.as_str().to_owned(),
                    label: labels::delivery(status, delivery.attempts),
                    attempts: delivery.attempts,
                    response: delivery.response_status,
                    error: delivery.error,
                    next: delivery.next_attempt_at.map(|at| RelativeTime::of(at.0, now)),
                    created: ShortTime(delivery.created_at.0),
                }
            })
            .collect(),
        older: found
            .next_cursor
            .as_ref()
            .map(|cursor| fields::write(kept().chain([("cursor", cursor.as_str())]))),
    };
    Ok(render(page.layout.status(), &page))
}

/// Sends a test event.
pub(crate) async fn test(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    match webhooks::test(&context.call(), id).await {
        Ok(result) => {
            let message = match (result.delivered, result.response_status) {
                (true, status) => format!("The endpoint took the sample: it answered {status}."),
                (false, 0) => "The endpoint did not respond.".to_owned(),
                (false, status) => format!("The endpoint rejected the test event with status {status}."),
            };
            show_with(context, id, None, Some(message), None).await
        }
        Err(problem) => show(context, id, Some(PageError::of("test", problem))).await,
    }
}

/// Pauses or resumes the endpoint.
pub(crate) async fn set_active(
    context: &PageContext<'_>,
    id: &str,
    is_active: bool,
) -> Result<Response, Problem> {
    let edited = webhooks::edit(&context.call(), id, body::read(json!({ "is_active": is_active }))?).await;
    match edited {
        Ok(_) => Ok(done(&format!("/webhooks/{id}"), if is_active { Done::Resumed } else { Done::Paused })),
        Err(problem) => show(context, id, Some(PageError::of("endpoint", problem))).await,
    }
}

/// Shows the signing secret.
pub(crate) async fn reveal(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    match webhooks::reveal(&context.call(), id).await {
        Ok(secret) => show_with(context, id, None, None, Some(Secret::current(secret))).await,
        Err(problem) => show(context, id, Some(PageError::of("secret", problem))).await,
    }
}

/// Makes the next signing secret and shows it.
pub(crate) async fn prepare(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    match webhooks::prepare(&context.call(), id).await {
        Ok(secret) => show_with(context, id, None, None, Some(Secret::next(secret))).await,
        Err(problem) => show(context, id, Some(PageError::of("secret", problem))).await,
    }
}

/// Rotates the signing secret, and shows the new one if it was not shown before.
pub(crate) async fn rotate(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    match webhooks::rotate(&context.call(), id).await {
        Ok(Some(secret)) => show_with(context, id, None, None, Some(Secret::current(secret))).await,
        Ok(None) => Ok(done(&format!("/webhooks/{id}"), Done::SecretRotated)),
        Err(problem) => show(context, id, Some(PageError::of("secret", problem))).await,
    }
}

/// Repeats a delivery.
pub(crate) async fn redeliver(
    context: &PageContext<'_>,
    id: &str,
    delivery: &str,
) -> Result<Response, Problem> {
    let is_on_its_page = context.form.get("back") == "delivery";
    match webhooks::redeliver(&context.call(), id, delivery).await {
        Ok(_) if is_on_its_page => {
            Ok(done(&format!("/webhooks/{id}/deliveries/{delivery}"), Done::Redelivered))
        }
        Err(problem) if is_on_its_page => {
            delivery::show(context, id, delivery, Some(PageError::of(delivery, problem))).await
        }
        Ok(_) => Ok(done(&format!("/webhooks/{id}"), Done::Redelivered)),
        Err(problem) => show(context, id, Some(PageError::of(delivery, problem))).await,
    }
}

/// Repeats what failed in a period, or all of it.
pub(crate) async fn replay(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    let replayed = match period(context) {
        Ok(period) => webhooks::replay(&context.call(), id, period).await,
        Err(problem) => Err(problem),
    };
    match replayed {
        Ok(_) => Ok(done(&format!("/webhooks/{id}"), Done::Replayed)),
        Err(problem) => show(context, id, Some(PageError::of("replay", problem))).await,
    }
}

/// The period of the form: from a time on, or some hours.
fn period(context: &PageContext<'_>) -> Result<NewReplay, Problem> {
    let form = &context.form;
    let time = |field| form.given(field).map(|_| context.time(field)).transpose();
    let hours = form.get("hours").parse().unwrap_or(MAX_REPLAYED_HOURS).clamp(1, MAX_REPLAYED_HOURS);
    let since = time("since")?.unwrap_or_else(|| context.now() - TimeDelta::hours(hours));
    let include = if form.get("include") == "all" { ReplayInclude::All } else { ReplayInclude::Failed };
    Ok(NewReplay { since: Timestamp(since), until: time("until")?.map(Timestamp), include: Some(include) })
}

/// Deletes the endpoint.
pub(crate) async fn delete(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    match webhooks::delete(&context.call(), id).await {
        Ok(_) => Ok(done("/webhooks", Done::Deleted)),
        Err(problem) => show(context, id, Some(PageError::of("endpoint", problem))).await,
    }
}

/// Subscribed events as text.
pub(crate) fn named<'a>(events: impl Iterator<Item = &'a str>) -> String {
    let events: Vec<_> = events.collect();
    if events.contains(&"*") { "every event".to_owned() } else { events.join(", ") }
}
