//! Webhook endpoints: where events are sent to.
//!
//! The signing secret is sealed before it is stored and shown once. This process can't open it again.

use crate::{
    body::Json,
    caller::{Call, Caller, WebhooksRead, WebhooksWrite},
    document::Tag,
    link::Link,
    problem::Problem,
    receiver,
    timestamp::Timestamp,
    validate::Rules,
    word::{Vocabulary, Word},
};
use domain::{
    WebhookId,
    event::{EVERY_EVENT, EventName},
    signature::SECRET_PREFIX,
};
use poem_openapi::{ApiResponse, Object, OpenApi, param::Path};
use rand::distr::{Alphanumeric, SampleString};
use store::{vault, webhooks};
use uuid::Uuid;

/// Random characters of a generated secret: 256 bits.
const SECRET_LENGTH: usize = 43;

/// The operations on webhook endpoints.
pub struct Webhooks;

#[OpenApi(tag = "Tag::Webhooks")]
impl Webhooks {
    /// Register an endpoint
    ///
    /// Only `https` URLs whose host is on the public internet. The answer is the only one that holds
    /// `signing_secret`. Scope `webhooks:write`.
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
    /// Newest first. Scope `webhooks:read`.
    #[oai(path = "/webhooks", method = "get", operation_id = "listWebhooks")]
    async fn list(&self, caller: Caller<WebhooksRead>) -> Result<Json<WebhookList>, Problem> {
        Ok(Json(list(&caller.call()).await?))
    }

    /// Get an endpoint
    ///
    /// Scope `webhooks:read`.
    #[oai(path = "/webhooks/:id", method = "get", operation_id = "getWebhook")]
    async fn get(&self, caller: Caller<WebhooksRead>, id: Path<String>) -> Result<Json<Webhook>, Problem> {
        Ok(Json(get(&caller.call(), &id).await?))
    }

    /// Remove an endpoint
    ///
    /// What was still to be delivered to it is dropped. Scope `webhooks:write`.
    #[oai(path = "/webhooks/:id", method = "delete", operation_id = "deleteWebhook")]
    async fn delete(
        &self,
        caller: Caller<WebhooksWrite>,
        id: Path<String>,
    ) -> Result<Json<Removed>, Problem> {
        Ok(Json(delete(&caller.call(), &id).await?))
    }
}

/// Registers an endpoint.
pub async fn create(call: &Call<'_>, body: NewWebhook) -> Result<Webhook, Problem> {
    if let Some(issue) = receiver::objection(&body.url.url, call.app.config.opened.of(call.owner.mode)).await
    {
        return Err(Problem::invalid_body(vec![issue]));
    }
    let secret = body.signing_secret.unwrap_or_else(generate);
    let events = body.events.iter().map(|event| event.as_str().to_owned()).collect();
    let new = webhooks::NewWebhook { url: body.url.text, events, description: body.description };
    let seal =
        |id| call.app.config.sealer.seal(secret.as_bytes(), &vault::aad_webhook_secret(call.owner, id));
    let webhook = webhooks::create(call.db(), call.owner, new, seal, call.now()).await?;
    Ok(Webhook { signing_secret: Some(secret), ..webhook.into() })
}

/// All endpoints.
pub async fn list(call: &Call<'_>) -> Result<WebhookList, Problem> {
    let webhooks = webhooks::list(call.db(), call.owner).await?;
    Ok(WebhookList { data: webhooks.into_iter().map(Webhook::from).collect() })
}

/// One endpoint.
pub async fn get(call: &Call<'_>, id: &str) -> Result<Webhook, Problem> {
    let webhook = webhooks::get(call.db(), call.owner, read(id)?).await?;
    webhook.map(Webhook::from).ok_or_else(missing)
}

/// Removes an endpoint.
pub async fn delete(call: &Call<'_>, id: &str) -> Result<Removed, Problem> {
    let id = read(id)?;
    if !webhooks::delete(call.db(), call.owner, id, call.now()).await? {
        return Err(missing());
    }
    Ok(Removed { id: id.0, deleted: true })
}

fn read(id: &str) -> Result<WebhookId, Problem> {
    id.parse().map_err(|_| missing())
}

fn missing() -> Problem {
    Problem::not_found("webhook")
}

fn generate() -> String {
    // `rand::rng()` is a cryptographically secure generator, seeded by the operating system.
    SECRET_PREFIX.to_owned() + &Alphanumeric.sample_string(&mut rand::rng(), SECRET_LENGTH)
}

/// What an endpoint can subscribe to: an event, or `*` for every event.
#[derive(Clone, Debug)]
pub enum Subscription {}

impl Vocabulary for Subscription {
    const NAME: &'static str = "EventName";

    fn words() -> Vec<&'static str> {
        EventName::ALL.iter().map(|event| event.as_str()).chain([EVERY_EVENT]).collect()
    }
}

/// An endpoint to register.
#[derive(Debug, Object)]
pub struct NewWebhook {
    /// Where events are sent to.
    #[oai(validator(max_length = 2048))]
    pub url: Link,
    /// Which events; `*` stands for all.
    #[oai(validator(min_items = 1, unique_items))]
    pub events: Vec<Word<Subscription>>,
    /// A label, for people.
    pub description: Option<String>,
    /// What deliveries are signed with; generated where none is given.
    #[oai(validator(min_length = 1))]
    pub signing_secret: Option<String>,
}

impl Rules for NewWebhook {}

/// A webhook endpoint.
#[derive(Debug, Object)]
pub struct Webhook {
    /// Its identifier.
    pub id: Uuid,
    /// Where events are sent to.
    pub url: String,
    /// Which events; `*` stands for all.
    pub events: Vec<Word<Subscription>>,
    /// A label, for people.
    #[oai(nullable)]
    pub description: Option<String>,
    /// Whether events are delivered.
    pub is_active: bool,
    /// What deliveries are signed with. Only in the answer to the call that registered the endpoint.
    #[oai(skip_serializing_if_is_none)]
    pub signing_secret: Option<String>,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl From<webhooks::Webhook> for Webhook {
    fn from(webhook: webhooks::Webhook) -> Self {
        Self {
            id: webhook.id.0,
            url: webhook.url,
            events: webhook.events.iter().map(|event| Word::of(event)).collect(),
            description: webhook.description,
            is_active: webhook.is_active,
            signing_secret: None,
            created_at: webhook.created_at.into(),
            updated_at: webhook.updated_at.into(),
        }
    }
}

/// All webhook endpoints.
#[derive(Debug, Object)]
pub struct WebhookList {
    /// The endpoints, newest first.
    pub data: Vec<Webhook>,
}

/// Something that was removed.
#[derive(Debug, Object)]
pub struct Removed {
    /// Its identifier.
    pub id: Uuid,
    /// Always true.
    pub deleted: bool,
}

/// The answer to a registration.
#[derive(ApiResponse)]
enum Registered {
    /// The endpoint was registered.
    #[oai(status = 201)]
    New(Json<Webhook>),
}
