//! Webhook endpoints and their deliveries.
//!
//! The signing secret is encrypted for the workers before it is stored, and this process can't decrypt it:
//! showing it again on the dashboard takes a worker.

use crate::{
    http::{
        body::{self, Json},
        caller::{Call, Caller, WebhooksRead, WebhooksWrite},
        outbound_url,
        page::{List, Paging},
        plan,
        problem::{Code, Issue, Problem},
        query::Query,
        workers,
    },
    openapi::{
        tag::Tag,
        validate::{Null, Rules},
    },
    types::{
        deleted::DeletedResource,
        enum_string::{EnumString, StringEnum},
        json_object::{JsonObject, json_object},
        timestamp::Timestamp,
        url::Link,
    },
};
use domain::{
    DeliveryId, WebhookId,
    event::{self, EVERY_EVENT, EventName},
    signature::SECRET_PREFIX,
};
use poem_openapi::{ApiResponse, Enum, Object, OpenApi, param::Path, types::MaybeUndefined};
use serde_json::{Map, Value};
use store::{
    people::keys::random_text,
    upkeep::vault::{self, Opener, PrivateKey},
    webhooks::{
        self,
        deliveries::{self, DeliveryStatus, RedeliverResult},
        drain,
    },
};
use url::Url;
use uuid::Uuid;
use workflows::activities::{RevealSecretInput, TestEventInput};

/// Number of random characters in a generated secret: 256 bits.
const SECRET_LENGTH: usize = 43;

/// The operations on webhook endpoints.
pub struct Webhooks;

#[OpenApi(tag = "Tag::Webhooks")]
impl Webhooks {
    /// Register an endpoint
    ///
    /// Takes `https` URLs whose host is on the public internet. Only this response contains `signing_secret`.
    /// Scope `webhooks:write`.
    #[oai(path = "/webhooks", method = "post", operation_id = "createWebhook")]
    async fn create(
        &self,
        caller: Caller<WebhooksWrite>,
        body: Json<NewWebhook>,
    ) -> Result<Registered, Problem> {
        Ok(Registered::New(Json(create(&caller.call(), body.0).await?)))
    }

    /// List endpoints
    ///
    /// Lists endpoints, newest first. Scope `webhooks:read`.
    #[oai(path = "/webhooks", method = "get", operation_id = "listWebhooks")]
    async fn list(
        &self,
        caller: Caller<WebhooksRead>,
        query: Query<Paging>,
    ) -> Result<Json<WebhookList>, Problem> {
        Ok(Json(list(&caller.call(), &query.0).await?))
    }

    /// Get an endpoint
    ///
    /// Scope `webhooks:read`.
    #[oai(path = "/webhooks/:id", method = "get", operation_id = "getWebhook")]
    async fn get(&self, caller: Caller<WebhooksRead>, id: Path<String>) -> Result<Json<Webhook>, Problem> {
        Ok(Json(get(&caller.call(), &id).await?))
    }

    /// Update an endpoint
    ///
    /// Updates the fields sent. While `is_active` is false nothing is delivered; events of that time are kept
    /// as failed deliveries, which can be requested again. The signing secret can be rotated on the dashboard. Scope `webhooks:write`.
    #[oai(path = "/webhooks/:id", method = "patch", operation_id = "updateWebhook")]
    async fn edit(
        &self,
        caller: Caller<WebhooksWrite>,
        id: Path<String>,
        body: Json<WebhookPatch>,
    ) -> Result<Json<Webhook>, Problem> {
        Ok(Json(edit(&caller.call(), &id, body.0).await?))
    }

    /// Delete an endpoint
    ///
    /// Pending deliveries are dropped. Scope `webhooks:write`.
    #[oai(path = "/webhooks/:id", method = "delete", operation_id = "deleteWebhook")]
    async fn delete(
        &self,
        caller: Caller<WebhooksWrite>,
        id: Path<String>,
    ) -> Result<Json<DeletedResource>, Problem> {
        Ok(Json(delete(&caller.call(), &id).await?))
    }

    /// Test an endpoint
    ///
    /// Sends one signed test event, `webhook.test`, with the headers of a real delivery, and returns the
    /// endpoint's response. Works while the endpoint is paused. Scope `webhooks:write`.
    #[oai(path = "/webhooks/:id/test", method = "post", operation_id = "testWebhook")]
    async fn test(
        &self,
        caller: Caller<WebhooksWrite>,
        id: Path<String>,
    ) -> Result<Json<TestResult>, Problem> {
        Ok(Json(test(&caller.call(), &id).await?))
    }

    /// List deliveries
    ///
    /// Lists completed and pending deliveries to an endpoint, newest first. Scope `webhooks:read`.
    #[oai(path = "/webhooks/:id/deliveries", method = "get", operation_id = "listWebhookDeliveries")]
    async fn deliveries(
        &self,
        caller: Caller<WebhooksRead>,
        id: Path<String>,
        query: Query<Filter>,
    ) -> Result<Json<DeliveryPage>, Problem> {
        Ok(Json(deliveries(&caller.call(), &id, query.0).await?))
    }

    /// Replay events
    ///
    /// Repeats the deliveries of events since a time, oldest first: the same bodies and event ids, with a new retry
    /// budget. They are sent at the rate at which the endpoint accepts them. Up to 10,000 are queued at once; if
    /// `has_more` is true, call again with the same times. A call that is repeated with the same times does not repeat
    /// what it has queued. Scope `webhooks:write`.
    #[oai(path = "/webhooks/:id/replay", method = "post", operation_id = "replayWebhook")]
    async fn replay(
        &self,
        caller: Caller<WebhooksWrite>,
        id: Path<String>,
        body: Json<NewReplay>,
    ) -> Result<Replaying, Problem> {
        Ok(Replaying::Begun(Json(replay(&caller.call(), &id, body.0).await?)))
    }

    /// Get a delivery
    ///
    /// Returns a delivery with what was sent and what the endpoint answered. Scope `webhooks:read`.
    #[oai(
        path = "/webhooks/:id/deliveries/:delivery_id",
        method = "get",
        operation_id = "getWebhookDelivery"
    )]
    async fn delivery(
        &self,
        caller: Caller<WebhooksRead>,
        id: Path<String>,
        delivery_id: Path<String>,
    ) -> Result<Json<DeliveryDetails>, Problem> {
        Ok(Json(delivery(&caller.call(), &id, &delivery_id).await?))
    }

    /// Redeliver an event
    ///
    /// Repeats a delivery that succeeded or failed: the same body and event id, with a new retry budget. One that
    /// waits for its next attempt is attempted now. Scope `webhooks:write`.
    #[oai(
        path = "/webhooks/:id/deliveries/:delivery_id/redeliver",
        method = "post",
        operation_id = "redeliverWebhookDelivery"
    )]
    async fn redeliver(
        &self,
        caller: Caller<WebhooksWrite>,
        id: Path<String>,
        delivery_id: Path<String>,
    ) -> Result<Queued, Problem> {
        Ok(Queued::Again(Json(redeliver(&caller.call(), &id, &delivery_id).await?)))
    }
}

/// Registers an endpoint.
pub async fn create(call: &Call<'_>, body: NewWebhook) -> Result<Webhook, Problem> {
    judge(call, &body.url.url).await?;
    let secret = body.signing_secret.unwrap_or_else(generate);
    let new = webhooks::NewWebhook {
        url: body.url.text,
        events: events(&body.events),
        description: body.description,
    };
    let seal =
        |id| call.app.config.sealer.seal(secret.as_bytes(), &vault::aad_webhook_secret(call.owner, id));
    let plan = plan::of(call).await?;
    let limit = plan.webhook_endpoints;
    let created = webhooks::create(call.db(), call.owner, new, seal, limit, call.by, call.now()).await?;
    let webhook = created.map_err(|exceeded| plan.refuse_more("webhook endpoints", exceeded))?;
    Ok(Webhook { signing_secret: Some(secret), ..webhook.into() })
}

/// Lists endpoints.
pub async fn list(call: &Call<'_>, paging: &Paging) -> Result<WebhookList, Problem> {
    let page = List::Webhooks.paged(call, paging)?;
    let found = webhooks::list(call.db(), call.owner, page).await?;
    let next_cursor = List::Webhooks.next(call, found.next);
    Ok(WebhookList { data: found.items.into_iter().map(Webhook::from).collect(), next_cursor })
}

/// Returns an endpoint.
pub async fn get(call: &Call<'_>, id: &str) -> Result<Webhook, Problem> {
    let webhook = webhooks::get(call.db(), call.owner, read(id)?).await?;
    webhook.map(Webhook::from).ok_or_else(missing)
}

/// The names of subscribed events, each once.
fn events(events: &[EnumString<Subscription>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(events.len());
    for event in events {
        if names.iter().all(|name| name != event.as_str()) {
            names.push(event.as_str().to_owned());
        }
    }
    names
}

/// Updates an endpoint.
pub async fn edit(call: &Call<'_>, id: &str, body: WebhookPatch) -> Result<Webhook, Problem> {
    // An unknown endpoint's URL is not checked.
    let known = get(call, id).await?;
    if let Some(link) = &body.url {
        judge(call, &link.url).await?;
    }
    let edit = webhooks::Edit {
        url: body.url.map(|link| link.text),
        events: body.events.as_deref().map(events),
        description: body::change(body.description),
        is_active: body.is_active,
    };
    let edited = webhooks::edit(call.db(), call.owner, known.id.into(), edit, call.by, call.now()).await?;
    edited.map(Webhook::from).ok_or_else(missing)
}

/// Sends a test event to an endpoint.
pub async fn test(call: &Call<'_>, id: &str) -> Result<TestResult, Problem> {
    let webhook = get(call, id).await?.id.into();
    let sent = workers::request(call, TestEventInput { webhook, owner: call.owner }).await?;
    let sent = sent.ok_or_else(missing)?;
    Ok(TestResult {
        event: event::TEST_EVENT.to_owned(),
        delivered: sent.delivered,
        response_status: sent.status.unwrap_or(0),
        signed: true,
    })
}

/// Returns an endpoint's signing secret. A worker decrypts it and encrypts it to a key pair generated here
/// for this request only, so that neither Temporal nor a log can read it.
pub async fn reveal(call: &Call<'_>, id: &str) -> Result<String, Problem> {
    let webhook = WebhookId(get(call, id).await?.id);
    let opener = Opener::new((vault::KeyId(0), PrivateKey::generate()), []);
    let recipient = opener.sealer().to_string();
    let request = RevealSecretInput { webhook, owner: call.owner, recipient, proof: String::new() };
    let request = request.proven(&call.app.config.request_key);
    let sealed = workers::request(call, request).await?.ok_or_else(missing)?;
    let opened = opener.open(&sealed, &vault::aad_webhook_secret(call.owner, webhook)).ok();
    let secret = opened
        .and_then(|secret| String::from_utf8(secret).ok())
        .ok_or_else(|| workers::unanswered("the sealed secret can't be opened"))?;
    webhooks::record_reveal(call.db(), call.owner, webhook, call.by, call.now()).await?;
    Ok(secret)
}

/// Makes the signing secret that the next rotation puts in the place of the present one, and returns it: a receiver
/// that accepts both by then refuses no delivery.
pub async fn prepare(call: &Call<'_>, id: &str) -> Result<String, Problem> {
    let (webhook, secret) = (read(id)?, generate());
    let aad = vault::aad_webhook_secret(call.owner, webhook);
    let sealed = call.app.config.sealer.seal(secret.as_bytes(), &aad);
    let is_prepared = webhooks::prepare(call.db(), call.owner, webhook, &sealed, call.by, call.now()).await?;
    if is_prepared { Ok(secret) } else { Err(missing()) }
}

/// Replaces an endpoint's signing secret, and returns the new one unless it was prepared. Deliveries are signed when
/// they are attempted, so the old secret signs nothing from now on.
pub async fn rotate(call: &Call<'_>, id: &str) -> Result<Option<String>, Problem> {
    let (webhook, secret) = (read(id)?, generate());
    let aad = vault::aad_webhook_secret(call.owner, webhook);
    let sealed = call.app.config.sealer.seal(secret.as_bytes(), &aad);
    let rotated = webhooks::rotate(call.db(), call.owner, webhook, &sealed, call.by, call.now()).await?;
    let was_prepared = rotated.ok_or_else(missing)?;
    Ok((!was_prepared).then_some(secret))
}

/// Lists the deliveries that match a filter.
pub async fn deliveries(call: &Call<'_>, id: &str, filter: Filter) -> Result<DeliveryPage, Problem> {
    let webhook = WebhookId(get(call, id).await?.id);
    let list = List::Deliveries(webhook);
    let page = list.request(call, filter.limit, filter.cursor.as_deref())?;
    let found = deliveries::list(call.db(), call.owner, webhook, &filter.into(), page).await?;
    let next_cursor = list.next(call, found.next);
    Ok(DeliveryPage { data: found.items.into_iter().map(Delivery::from).collect(), next_cursor })
}

/// Returns a delivery with what was sent and answered.
pub async fn delivery(call: &Call<'_>, id: &str, delivery_id: &str) -> Result<DeliveryDetails, Problem> {
    let webhook = WebhookId(get(call, id).await?.id);
    let missing = || Problem::not_found("delivery");
    let delivery: DeliveryId = delivery_id.parse().map_err(|_| missing())?;
    let found = deliveries::get(call.db(), call.owner, webhook, delivery).await?;
    found.map(DeliveryDetails::from).ok_or_else(missing)
}

/// Repeats a delivery, or has one that waits attempted now.
pub async fn redeliver(call: &Call<'_>, id: &str, delivery_id: &str) -> Result<Delivery, Problem> {
    let webhook = WebhookId(get(call, id).await?.id);
    let missing = || Problem::not_found("delivery");
    let delivery: DeliveryId = delivery_id.parse().map_err(|_| missing())?;
    match deliveries::redeliver(call.db(), call.owner, webhook, delivery).await? {
        RedeliverResult::Queued(delivery) => Ok(delivery.into()),
        RedeliverResult::InProgress => {
            Err(Problem::new(Code::Conflict, "the delivery is in progress: an attempt is under way or due"))
        }
        RedeliverResult::Paused => Err(paused()),
        RedeliverResult::NotFound => Err(missing()),
    }
}

/// Repeats the deliveries of events in a time.
pub async fn replay(call: &Call<'_>, id: &str, body: NewReplay) -> Result<Replay, Problem> {
    let webhook = WebhookId(get(call, id).await?.id);
    let until = body.until.map_or(call.now(), |until| until.0.min(call.now()));
    let with_delivered = matches!(body.include, Some(ReplayInclude::All));
    let replay = drain::Replay { since: body.since.0, until, with_delivered };
    let queued = drain::replay(call.db(), call.owner, webhook, replay).await?;
    let queued = queued.ok_or_else(paused)?;
    let has_more = queued >= drain::MAX_REPLAYED.unsigned_abs();
    Ok(Replay { queued, has_more, until: until.into() })
}

fn paused() -> Problem {
    Problem::new(Code::Conflict, "the endpoint is paused; resume it first")
}

/// Deletes an endpoint.
pub async fn delete(call: &Call<'_>, id: &str) -> Result<DeletedResource, Problem> {
    let id = read(id)?;
    if !webhooks::delete(call.db(), call.owner, id, call.by, call.now()).await? {
        return Err(missing());
    }
    Ok(DeletedResource { id: id.0, deleted: true })
}

/// Rejects a URL that events must not be sent to.
async fn judge(call: &Call<'_>, url: &Url) -> Result<(), Problem> {
    match outbound_url::check(url, call.app.config.opened.of(call.owner.mode)).await {
        Some(issue) => Err(Problem::invalid_body(vec![issue])),
        None => Ok(()),
    }
}

fn read(id: &str) -> Result<WebhookId, Problem> {
    id.parse().map_err(|_| missing())
}

fn missing() -> Problem {
    Problem::not_found("webhook")
}

fn generate() -> String {
    SECRET_PREFIX.to_owned() + &random_text(SECRET_LENGTH)
}

/// A subscription: an event name, or `*` for all events.
#[derive(Clone, Debug)]
pub enum Subscription {}

impl StringEnum for Subscription {
    const NAME: &'static str = "EventName";

    fn values() -> Vec<&'static str> {
        EventName::ALL.iter().map(|event| event.as_str()).chain([EVERY_EVENT]).collect()
    }
}

/// A webhook endpoint to register.
#[derive(Object)]
pub struct NewWebhook {
    /// URL that events are sent to.
    #[oai(validator(max_length = 2048))]
    pub url: Link,
    /// Subscribed events; `*` for all.
    #[oai(validator(min_items = 1, max_items = 100))]
    pub events: Vec<EnumString<Subscription>>,
    /// Display label.
    #[oai(validator(max_length = 1000))]
    pub description: Option<String>,
    /// Secret that signs deliveries; generated by default. Anybody who has a delivery can try out secrets, so take a
    /// random one.
    #[oai(validator(min_length = 8, max_length = 1024))]
    pub signing_secret: Option<String>,
}

impl Rules for NewWebhook {}

/// Changes to a webhook endpoint. Fields that are not sent keep their value.
#[derive(Debug, Object)]
pub struct WebhookPatch {
    /// URL that events are sent to.
    #[oai(validator(max_length = 2048))]
    pub url: Option<Link>,
    /// Subscribed events; `*` for all.
    #[oai(validator(min_items = 1, max_items = 100))]
    pub events: Option<Vec<EnumString<Subscription>>>,
    /// Display label; null removes it.
    #[oai(nullable, validator(max_length = 1000))]
    pub description: MaybeUndefined<String>,
    /// True if events are delivered.
    pub is_active: Option<bool>,
}

impl Rules for WebhookPatch {
    const NULL: Null = Null::Clears;

    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        if body.contains_key("signing_secret") {
            issues
                .push(Issue::custom(["signing_secret"], "Can't be changed here: rotate it on the dashboard"));
        }
    }
}

/// A webhook endpoint.
#[derive(Object)]
pub struct Webhook {
    /// The endpoint's id.
    pub id: Uuid,
    /// URL that events are sent to.
    pub url: String,
    /// Subscribed events; `*` for all.
    pub events: Vec<EnumString<Subscription>>,
    /// Display label. Absent if there is none.
    #[oai(skip_serializing_if_is_none)]
    pub description: Option<String>,
    /// True if events are delivered.
    pub is_active: bool,
    /// Since when the endpoint has accepted nothing, if ten attempts in a row failed; null otherwise. Each delivery is
    /// attempted at its own times. After more than two hours, and while more than 100 deliveries wait, single attempts
    /// are made every 5 minutes until one succeeds, and after a day deliveries that waited as long fail.
    #[oai(nullable)]
    pub failing_since: Option<Timestamp>,
    /// Secret that signs deliveries. Only in the response that registered the endpoint.
    #[oai(skip_serializing_if_is_none)]
    pub signing_secret: Option<String>,
    /// Registration time.
    pub created_at: Timestamp,
    /// Time of the last update.
    pub updated_at: Timestamp,
}

impl From<webhooks::Webhook> for Webhook {
    fn from(webhook: webhooks::Webhook) -> Self {
        Self {
            id: webhook.id.0,
            url: webhook.url,
            events: webhook.events.iter().map(|event| EnumString::of(event)).collect(),
            description: webhook.description,
            is_active: webhook.is_active,
            failing_since: webhook.failing_since.map(Timestamp),
            signing_secret: None,
            created_at: webhook.created_at.into(),
            updated_at: webhook.updated_at.into(),
        }
    }
}

/// A page of webhook endpoints.
#[derive(Object)]
pub struct WebhookList {
    /// The endpoints, newest first.
    pub data: Vec<Webhook>,
    /// Cursor of the next page; absent on the last page.
    #[oai(skip_serializing_if_is_none)]
    pub next_cursor: Option<String>,
}

/// Result of a test event.
#[derive(Debug, Object)]
#[oai(rename = "WebhookTest")]
pub struct TestResult {
    /// Always `webhook.test`.
    pub event: String,
    /// True if the endpoint answered with a 2xx status in time.
    pub delivered: bool,
    /// HTTP status of the response; 0 if there was none.
    pub response_status: u16,
    /// True if the test event was signed.
    pub signed: bool,
}

/// Filter for deliveries. All conditions must hold.
#[derive(Debug, Default, Object)]
#[oai(rename = "WebhookDeliveryFilter")]
pub struct Filter {
    /// Page size, 1 to 100; values outside are clamped. 25 by default.
    pub limit: Option<i64>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Deliveries with this status.
    pub status: Option<EnumString<DeliveryStatus>>,
    /// Deliveries of this event.
    pub event: Option<EnumString<EventName>>,
}

impl Rules for Filter {}

impl From<Filter> for deliveries::Filter {
    fn from(filter: Filter) -> Self {
        Self {
            status: filter.status.map(|status| status.value()),
            event: filter.event.map(|event| event.as_str().to_owned()),
        }
    }
}

/// A page of deliveries.
#[derive(Debug, Object)]
#[oai(rename = "WebhookDeliveryPage")]
pub struct DeliveryPage {
    /// The deliveries, newest first.
    pub data: Vec<Delivery>,
    /// Cursor of the next page; null on the last page.
    #[oai(nullable)]
    pub next_cursor: Option<String>,
}

/// The delivery of one event to one endpoint.
#[derive(Debug, Object)]
#[oai(rename = "WebhookDelivery")]
pub struct Delivery {
    /// The delivery's id.
    pub id: Uuid,
    /// The event's id, the same as in `X-Fanfare-Event-Id`.
    pub event_id: Uuid,
    /// The event.
    pub event: EnumString<EventName>,
    /// Status. `failed` is final.
    pub status: EnumString<DeliveryStatus>,
    /// Attempts begun since the delivery was created or redelivered.
    pub attempts: i32,
    /// HTTP status of the last response; null if there was none.
    #[oai(nullable)]
    pub response_status: Option<i32>,
    /// Last error.
    #[oai(nullable)]
    pub error: Option<String>,
    /// Time of the next attempt; null if it is due now or there is none.
    #[oai(nullable)]
    pub next_attempt_at: Option<Timestamp>,
    /// Time of the event.
    pub created_at: Timestamp,
    /// Time of successful delivery.
    #[oai(nullable)]
    pub delivered_at: Option<Timestamp>,
}

impl From<deliveries::Delivery> for Delivery {
    fn from(delivery: deliveries::Delivery) -> Self {
        Self {
            id: delivery.id.0,
            event_id: delivery.event_id.0,
            event: EnumString::of(&delivery.event),
            status: EnumString::of(delivery.status.as_str()),
            attempts: delivery.attempts,
            response_status: delivery.response_status,
            error: delivery.error,
            next_attempt_at: delivery.next_attempt_at.map(Timestamp),
            created_at: delivery.created_at.into(),
            delivered_at: delivery.delivered_at.map(Timestamp),
        }
    }
}

/// A delivery with what was sent and answered.
#[derive(Debug, Object)]
#[oai(rename = "WebhookDeliveryDetails")]
pub struct DeliveryDetails {
    /// The delivery.
    #[oai(flatten)]
    pub delivery: Delivery,
    /// Id of the post that the event is about; null if it is about none.
    #[oai(nullable)]
    pub post_id: Option<Uuid>,
    /// Body of each attempt.
    pub payload: JsonObject,
    /// Answers to its attempts, oldest first: the last 20, of earlier rounds too.
    pub responses: Vec<DeliveryResponse>,
}

impl From<deliveries::Details> for DeliveryDetails {
    fn from(details: deliveries::Details) -> Self {
        Self {
            delivery: details.delivery.into(),
            post_id: details.post.map(|post| post.0),
            payload: json_object(serde_json::from_str(&details.body).expect("a body is JSON")),
            responses: details.answers.into_iter().map(DeliveryResponse::from).collect(),
        }
    }
}

/// Answer of an endpoint to an attempt.
#[derive(Debug, Object)]
#[oai(rename = "WebhookDeliveryResponse")]
pub struct DeliveryResponse {
    /// Time of the answer; null if it is unknown.
    #[oai(nullable)]
    pub at: Option<Timestamp>,
    /// HTTP status; null if there was no response.
    #[oai(nullable)]
    pub status: Option<i32>,
    /// First 512 bytes of the body; null if it was empty.
    #[oai(nullable)]
    pub body: Option<String>,
    /// Time until the answer, in milliseconds.
    #[oai(nullable)]
    pub duration_ms: Option<i32>,
    /// Why the attempt failed; null if it succeeded.
    #[oai(nullable)]
    pub error: Option<String>,
}

impl From<deliveries::Answer> for DeliveryResponse {
    fn from(answer: deliveries::Answer) -> Self {
        Self {
            at: answer.at.map(Timestamp),
            status: answer.status,
            body: answer.excerpt,
            duration_ms: answer.latency_ms,
            error: answer.error,
        }
    }
}

/// The response to a registration.
#[derive(ApiResponse)]
enum Registered {
    /// The endpoint was registered.
    #[oai(status = 201)]
    New(Json<Webhook>),
}

/// Events to deliver again.
#[derive(Debug, Object)]
#[oai(rename = "NewWebhookReplay")]
pub struct NewReplay {
    /// Time of the first event.
    pub since: Timestamp,
    /// Time before which the events happened; now by default. Of `all`, only what was delivered before is repeated.
    #[oai(skip_serializing_if_is_none)]
    pub until: Option<Timestamp>,
    /// Deliveries to repeat; `failed` by default.
    #[oai(skip_serializing_if_is_none)]
    pub include: Option<ReplayInclude>,
}

impl Rules for NewReplay {}

/// Deliveries that a replay repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
#[oai(rename = "WebhookReplayInclude", rename_all = "snake_case")]
pub enum ReplayInclude {
    /// Those that failed.
    Failed,
    /// Those that failed and those that succeeded.
    All,
}

/// Result of starting a replay.
#[derive(Debug, Object)]
#[oai(rename = "WebhookReplay")]
pub struct Replay {
    /// Number of deliveries that were queued.
    pub queued: u64,
    /// True if there may be more to repeat.
    pub has_more: bool,
    /// Time before which the events happened, to be sent with the next call.
    pub until: Timestamp,
}

/// The response to a replay.
#[derive(ApiResponse)]
enum Replaying {
    /// The work was accepted and continues in the background.
    #[oai(status = 202)]
    Begun(Json<Replay>),
}

/// The response to a redelivery.
#[derive(ApiResponse)]
enum Queued {
    /// The work was accepted and continues in the background.
    #[oai(status = 202)]
    Again(Json<Delivery>),
}
