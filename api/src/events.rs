//! Events, to be read instead of received.
//!
//! A webhook reports an event at once, but only while its endpoint exists and answers. Every event is also kept
//! for 30 days, so that a caller who missed some, or who can't be reached, reads them in order.

use crate::{
    http::{
        body::Json,
        caller::{Call, Caller, WebhooksRead},
        page::List,
        problem::{Issue, Problem, clip},
        query::Query,
    },
    openapi::{tag::Tag, validate::Rules},
    types::{
        enum_string::EnumString,
        json_object::{JsonObject, json_object},
        timestamp::Timestamp,
    },
};
use domain::event::EventName;
use poem_openapi::{Object, OpenApi};
use serde_json::{Map, Value};
use store::webhooks::events;
use uuid::Uuid;

/// The operations on events.
pub struct Events;

#[OpenApi(tag = "Tag::Webhooks")]
impl Events {
    /// List events
    ///
    /// Lists every event of the last 30 days, oldest first, also those that no webhook is subscribed to. To follow
    /// them, pass `next_cursor` as `after`: it is never null, and an empty page means that there is no further
    /// event yet. An event is listed once its change is committed, so one may follow another with a later
    /// `timestamp`, but none is skipped or repeated. Scope `webhooks:read`.
    #[oai(path = "/events", method = "get", operation_id = "listEvents")]
    async fn list(
        &self,
        caller: Caller<WebhooksRead>,
        query: Query<Filter>,
    ) -> Result<Json<EventPage>, Problem> {
        Ok(Json(list(&caller.call(), query.0).await?))
    }
}

/// Lists the events after a cursor.
pub async fn list(call: &Call<'_>, filter: Filter) -> Result<EventPage, Problem> {
    let page = List::Events.request(call, filter.limit, filter.after.as_deref())?;
    let names: Vec<_> =
        filter.types.iter().flat_map(|names| names_in(names)).filter_map(Result::ok).collect();
    let batch = events::read(call.db(), call.access(), &names, page).await?;
    let next_cursor = List::Events.next(call, Some(batch.next)).unwrap_or_default();
    Ok(EventPage { data: batch.events.into_iter().map(Event::from).collect(), next_cursor })
}

/// The names in a list, each as it is if it is none.
fn names_in(list: &str) -> impl Iterator<Item = Result<EventName, &str>> {
    list.split(',').map(str::trim).map(|name| name.parse().map_err(|_| name))
}

/// Filter for events.
#[derive(Debug, Default, Object)]
#[oai(rename = "EventFilter")]
pub struct Filter {
    /// Page size, 1 to 100; values outside are clamped. 25 by default.
    pub limit: Option<i64>,
    /// `next_cursor` of the previous page; the oldest events without it.
    pub after: Option<String>,
    /// Names of events, separated by commas, for example `post.published,post.error`; all events without it.
    #[oai(validator(max_length = 1000))]
    pub types: Option<String>,
}

impl Rules for Filter {
    fn check(query: &Map<String, Value>, issues: &mut Vec<Issue>) {
        let names = query.get("types").and_then(Value::as_str).into_iter().flat_map(names_in);
        if let Some(received) = names.filter_map(Result::err).next().map(clip) {
            let message = format!("Invalid enum value, received '{received}'");
            let options: Vec<_> = EventName::ALL.iter().map(|name| name.as_str()).collect();
            let issue = Issue::new(["types"], "invalid_enum_value", message);
            issues.push(issue.with("options", options).with("received", received));
        }
    }
}

/// A page of events.
#[derive(Debug, Object)]
pub struct EventPage {
    /// The events, oldest first.
    pub data: Vec<Event>,
    /// Cursor of the next page, also if there are no further events yet.
    pub next_cursor: String,
}

/// An event, with the members that its webhooks carry.
#[derive(Debug, Object)]
pub struct Event {
    /// Id, the same as in `X-Fanfare-Event-Id` of its webhooks.
    pub id: Uuid,
    /// Name.
    pub event: EnumString<EventName>,
    /// Time of the event.
    pub timestamp: Timestamp,
    /// Members that depend on the event.
    pub data: JsonObject,
}

impl From<events::Event> for Event {
    fn from(event: events::Event) -> Self {
        let mut body: Value = serde_json::from_str(&event.body).expect("a body is JSON");
        let timestamp = body["timestamp"].as_str().and_then(Timestamp::read);
        Self {
            id: event.id.0,
            event: EnumString::of(body["event"].as_str().unwrap_or_default()),
            timestamp: timestamp.expect("a body has a time"),
            data: json_object(body["data"].take()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::query;

    #[test]
    fn types_are_names_of_events() {
        let filter: Filter = query::read("types=post.published,%20import.failed").unwrap();
        let names: Vec<_> = names_in(filter.types.as_deref().unwrap()).collect();
        assert_eq!(names, [Ok(EventName::PostPublished), Ok(EventName::ImportFailed)]);
        for wrong in ["", "post.published,", "*", "webhook.test", "post.published post.error"] {
            let problem = query::read::<Filter>(&format!("types={wrong}")).err().unwrap();
            assert_eq!(problem.issues[0].code, "invalid_enum_value", "{wrong}");
        }
    }
}
