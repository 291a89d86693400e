//! Delivery of an event to one endpoint.
//!
//! The body was fixed when the event happened; each attempt signs it again, so that a receiver can refuse a stale
//! signature. Everything but a 2xx in time is retried.
//!
//! A slow endpoint would use up all slots for deliveries, so each endpoint has a limit, and each organization a
//! share ([`crate::share`]); beyond these a delivery waits in its workflow, where waiting costs nothing.

#![expect(
    dead_code,
    reason = "the macro makes a marker per activity; workflows use those of the declarations"
)]

use crate::{Deps, share::Shares};
use anyhow::Context;
use domain::{EventId, Owner, WebhookId, event, retry, signature};
use futures::StreamExt;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use store::{
    deliveries::{self, Attempt, Response},
    vault::{self, Sealer},
    webhooks as endpoints,
};
use telemetry::trace::{self, SpanKind};
use temporalio_common::error::{ApplicationErrorCategory, ApplicationFailure};
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tokio::time::Instant;
use tracing::warn;
use url::Url;
use uuid::Uuid;
use workflows::activities::{DeliveryInput, RevealSecretInput, TestEventInput, TestEventResult, definition};

/// Largest part of an endpoint's answer that the delivery log stores.
const MAX_EXCERPT_BYTES: usize = 512;

/// Concurrent deliveries to one endpoint from one process: far fewer than the slots of the queue, so that only
/// many dead endpoints could delay a working one.
const MAX_PER_ENDPOINT: usize = 20;

/// The activities of webhooks.
pub(crate) struct Webhooks {
    deps: Arc<Deps>,
    shares: Shares,
    permits: EndpointPermits,
}

impl Webhooks {
    pub(crate) fn new(deps: Arc<Deps>, shares: Shares) -> Self {
        Self { deps, shares, permits: EndpointPermits::default() }
    }
}

/// Number of current deliveries of each endpoint.
#[derive(Default)]
struct EndpointPermits(Mutex<HashMap<WebhookId, usize>>);

impl EndpointPermits {
    /// Returns a permit for one more delivery to the endpoint, unless it has [`MAX_PER_ENDPOINT`].
    fn take(&self, webhook: WebhookId) -> Option<Permit<'_>> {
        let mut taken = self.0.lock().expect("nobody panics with it");
        let count = taken.entry(webhook).or_default();
        (*count < MAX_PER_ENDPOINT).then(|| {
            *count += 1;
            Permit { permits: self, webhook }
        })
    }
}

/// Permit of a delivery; dropping it releases it.
struct Permit<'a> {
    permits: &'a EndpointPermits,
    webhook: WebhookId,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut taken = self.permits.0.lock().expect("nobody panics with it");
        if let Some(count) = taken.get_mut(&self.webhook) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.webhook);
            }
        }
    }
}

#[activities]
impl Webhooks {
    #[activity(definition = definition::Deliver)]
    pub(crate) async fn deliver(
        self: Arc<Self>,
        _cx: ActivityContext,
        input: DeliveryInput,
    ) -> Result<Option<Duration>, ActivityError> {
        let deps = &self.deps;
        let _share = match self.shares.take(input.owner.org, (deps.engine.jitter)()) {
            Ok(share) => share,
            Err(wait) => return Ok(Some(wait)),
        };
        let Some(attempt) =
            deliveries::begin(&deps.engine.db, input.owner, input.delivery, input.round).await?
        else {
            return Ok(None);
        };
        let Some(_permit) = self.permits.take(attempt.webhook) else {
            let wait = deps.engine.time_scale.scale(retry::permit_wait(input.waits, (deps.engine.jitter)()));
            deliveries::postpone(&deps.engine.db, input.delivery, input.round, (deps.engine.now)() + wait)
                .await?;
            return Ok(Some(wait));
        };
        let answer = self.send(input.owner, &attempt).await?;
        if answer.error.is_none() {
            deliveries::mark_delivered(
                &deps.engine.db,
                input.delivery,
                input.round,
                &answer,
                (deps.engine.now)(),
            )
            .await?;
            return Ok(None);
        }
        let wait = retry::delivery_backoff(attempt.number.unsigned_abs())
            .map(|wait| deps.engine.time_scale.scale(wait));
        let next = wait.map(|wait| (deps.engine.now)() + wait);
        deliveries::mark_failed(&deps.engine.db, input.delivery, input.round, &answer, next).await?;
        let Some(wait) = wait else { return Ok(None) };
        let error = anyhow::anyhow!(answer.error.unwrap_or_default());
        Err(ActivityError::application(
            ApplicationFailure::builder(error)
                .type_name("undelivered".to_owned())
                .category(ApplicationErrorCategory::Benign)
                .next_retry_delay(wait)
                .build(),
        ))
    }

    #[activity(definition = definition::SendTestEvent)]
    pub(crate) async fn send_test_event(
        self: Arc<Self>,
        _cx: ActivityContext,
        input: TestEventInput,
    ) -> Result<Option<TestEventResult>, ActivityError> {
        let deps = &self.deps;
        let _share = self.shares.admit(input.owner.org)?;
        // Also for a paused endpoint: a test before resuming it is useful.
        let Some(endpoint) = endpoints::sealed_secret(&deps.engine.db, input.owner, input.webhook).await?
        else {
            return Ok(None);
        };
        let data = event::test_event(input.owner.org, input.webhook);
        let attempt = Attempt {
            event: EventId(Uuid::now_v7()),
            post: None,
            webhook: input.webhook,
            url: endpoint.url,
            secret_sealed: endpoint.secret_sealed,
            body: event::body(event::TEST_EVENT, (deps.engine.now)(), &data),
            number: 1,
        };
        let answer = self.send(input.owner, &attempt).await?;
        let status = answer.status.and_then(|status| u16::try_from(status).ok());
        Ok(Some(TestEventResult { status, delivered: answer.error.is_none() }))
    }

    #[activity(definition = definition::RevealSecret)]
    pub(crate) async fn reveal_secret(
        self: Arc<Self>,
        _cx: ActivityContext,
        input: RevealSecretInput,
    ) -> Result<Option<Vec<u8>>, ActivityError> {
        let deps = &self.deps;
        let refused = match &deps.request_key {
            Some(key) if input.is_proven(key) => None,
            Some(_) => Some("the API did not ask for this"),
            None => Some("a worker without FANFARE_SECRET can't tell whether the API asks"),
        };
        if let Some(reason) = refused {
            warn!(org.id = %input.owner.org, webhook.id = %input.webhook, "Refused to reveal a signing secret: {reason}");
            let refusal = ApplicationFailure::builder(anyhow::anyhow!(reason)).non_retryable(true).build();
            return Err(ActivityError::application(refusal));
        }
        let Some(endpoint) = endpoints::sealed_secret(&deps.engine.db, input.owner, input.webhook).await?
        else {
            return Ok(None);
        };
        let aad = vault::aad_webhook_secret(input.owner, input.webhook);
        let secret =
            deps.engine.opener.open(&endpoint.secret_sealed, &aad).context("open a signing secret")?;
        let recipient = input.recipient.parse::<Sealer>().context("read the public key of the request")?;
        Ok(Some(recipient.seal(&secret, &aad)))
    }
}

impl Webhooks {
    /// Sends one delivery and counts it. The failure of an endpoint is part of the answer, not an error.
    async fn send(&self, owner: Owner, attempt: &Attempt) -> anyhow::Result<Response> {
        let request = async {
            let answer = self.request(owner, attempt).await?;
            if let Some(status) = answer.status {
                trace::note_number("http.response.status_code", status.into());
            }
            if answer.error.is_some() {
                trace::fail("undelivered");
            }
            anyhow::Ok(answer)
        };
        let answer = match attempt.post {
            Some(post) => {
                let event = attempt.event.to_string();
                let attributes = [("fanfare.event_id", &*event)];
                let post = post.0.into_bytes();
                trace::of_post(post, "deliver webhook", SpanKind::Client, &attributes, request).await?
            }
            None => request.await?,
        };
        let is_delivered = answer.error.is_none();
        telemetry::metrics::delivery(owner.mode.as_str(), answer.status, is_delivered, answer.latency);
        Ok(answer)
    }

    async fn request(&self, owner: Owner, attempt: &Attempt) -> anyhow::Result<Response> {
        let aad = vault::aad_webhook_secret(owner, attempt.webhook);
        let secret = String::from_utf8(self.deps.engine.opener.open(&attempt.secret_sealed, &aad)?)
            .context("a signing secret is text")?;
        let url = Url::parse(&attempt.url).context("an endpoint's address was checked when it was given")?;
        let client = match self.deps.egress.client(owner.mode, &url) {
            Ok(client) => client,
            Err(refusal) => return Ok(Response { error: Some(refusal), ..Response::default() }),
        };
        let began = Instant::now();
        let signature =
            signature::sign(&secret, (self.deps.engine.now)().timestamp(), attempt.body.as_bytes());
        let sent = client
            .post(url)
            .timeout(retry::DELIVERY_TIMEOUT)
            .header("content-type", "application/json")
            .header("x-fanfare-signature", signature)
            .header("x-fanfare-event-id", attempt.event.to_string())
            .body(attempt.body.clone())
            .send()
            .await;
        let response = match sent {
            Ok(response) => response,
            Err(error) => {
                return Ok(Response {
                    error: Some(reason(&error)),
                    latency: began.elapsed(),
                    ..Response::default()
                });
            }
        };
        let status = response.status();
        let mut excerpt = Vec::new();
        let mut body = response.bytes_stream();
        while excerpt.len() < MAX_EXCERPT_BYTES {
            match body.next().await {
                Some(Ok(piece)) => excerpt.extend_from_slice(&piece),
                // The status has arrived; the body is only for the log.
                Some(Err(_)) | None => break,
            }
        }
        excerpt.truncate(MAX_EXCERPT_BYTES);
        Ok(Response {
            status: Some(i32::from(status.as_u16())),
            excerpt: Some(String::from_utf8_lossy(&excerpt).replace('\0', "\u{fffd}"))
                .filter(|text| !text.is_empty()),
            latency: began.elapsed(),
            error: (!status.is_success()).then(|| format!("the endpoint answered {status}")),
        })
    }
}

/// The sentence for the delivery log; without the address, which may hold a token.
fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no answer within {} s", Duration::as_secs(&retry::DELIVERY_TIMEOUT));
    }
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    if error.is_connect() {
        format!("could not connect: {inner}")
    } else {
        format!("the request failed: {inner}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_takes_no_more_than_its_share() {
        let permits = EndpointPermits::default();
        let [slow, other] = [1, 2].map(|number| WebhookId(Uuid::from_u128(number)));
        let mut taken: Vec<_> = (0..MAX_PER_ENDPOINT).map_while(|_| permits.take(slow)).collect();
        assert_eq!(taken.len(), MAX_PER_ENDPOINT);
        assert!(permits.take(slow).is_none());
        assert!(permits.take(other).is_some(), "the other endpoint waits for nobody");
        taken.pop();
        taken.extend(permits.take(slow));
        assert_eq!(taken.len(), MAX_PER_ENDPOINT, "a permit is free again when its delivery is over");
        drop(taken);
        assert!(permits.0.lock().unwrap().is_empty(), "nothing is kept of endpoints that get nothing");
    }
}
