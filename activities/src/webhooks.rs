//! Requests to webhook endpoints.
//!
//! The body was fixed when the event happened; each attempt signs it again, so that a receiver can refuse a stale
//! signature. Everything but a 2xx in time is retried. How deliveries are sent is in [`drain`].

#![expect(
    dead_code,
    reason = "the macro makes a marker per activity; workflows use those of the declarations"
)]

mod drain;

use crate::{Deps, heartbeat::with_heartbeat, share::Shares};
use anyhow::Context;
use domain::{EventId, Owner, PostId, WebhookId, event, outbox::EndpointRef, retry, signature};
use futures::StreamExt;
use std::{sync::Arc, time::Duration};
use store::{
    upkeep::vault::{self, Sealer},
    webhooks as endpoints,
    webhooks::deliveries::Response,
};
use telemetry::trace::{self, SpanKind};
use temporalio_common::error::ApplicationFailure;
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tokio::time::Instant;
use tracing::warn;
use url::Url;
use uuid::Uuid;
use workflows::activities::{DrainResult, RevealSecretInput, TestEventInput, TestEventResult, definition};

/// Largest part of an endpoint's answer that the delivery log stores.
const MAX_EXCERPT_BYTES: usize = 512;

/// The activities of webhooks.
pub(crate) struct Webhooks {
    pub(crate) deps: Arc<Deps>,
    pub(crate) shares: Shares,
}

#[activities]
impl Webhooks {
    #[activity(definition = definition::Drain)]
    pub(crate) async fn drain(
        self: Arc<Self>,
        cx: ActivityContext,
        endpoint: EndpointRef,
    ) -> Result<DrainResult, ActivityError> {
        // Another worker goes on at once when this one stops, instead of when its time is up.
        let is_stopped = || cx.is_cancelled() || *self.deps.engine.stop.borrow();
        let draining = async { Ok(drain::drain(&self.deps, &self.shares, endpoint, is_stopped).await?) };
        with_heartbeat(&cx, draining).await
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
        let id = EventId(Uuid::now_v7());
        let request = Request {
            event: id,
            post: None,
            url: &endpoint.url,
            secret_sealed: &endpoint.secret_sealed,
            body: &event::body(id, event::TEST_EVENT, (deps.engine.now)(), &data),
        };
        let answer = send(deps, input.owner, input.webhook, request).await?;
        let delivered = answer.error.is_none();
        if delivered {
            // Deliveries that a failing endpoint missed need not wait any longer.
            store::webhooks::drain::answered(&deps.engine.db, input.owner, input.webhook).await?;
        }
        let status = answer.status.and_then(|status| u16::try_from(status).ok());
        Ok(Some(TestEventResult { status, delivered }))
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

/// A request to an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// Event id.
    pub(crate) event: EventId,
    /// Post that the event is about.
    pub(crate) post: Option<PostId>,
    /// URL of the endpoint.
    pub(crate) url: &'a str,
    /// Signing secret of the endpoint, sealed.
    pub(crate) secret_sealed: &'a [u8],
    /// The exact bytes to send.
    pub(crate) body: &'a str,
}

/// Sends one signed request and counts it. The failure of an endpoint is part of the answer, not an error.
pub(crate) async fn send(
    deps: &Deps,
    owner: Owner,
    webhook: WebhookId,
    request: Request<'_>,
) -> anyhow::Result<Response> {
    let sending = async {
        let answer = post(deps, owner, webhook, request).await?;
        if let Some(status) = answer.status {
            trace::note_number("http.response.status_code", status.into());
        }
        if answer.error.is_some() {
            trace::fail("undelivered");
        }
        anyhow::Ok(answer)
    };
    let answer = match request.post {
        Some(post) => {
            let event = request.event.to_string();
            let attributes = [("fanfare.event_id", &*event)];
            let post = post.0.into_bytes();
            trace::of_post(post, "deliver webhook", SpanKind::Client, &attributes, sending).await?
        }
        None => sending.await?,
    };
    let is_delivered = answer.error.is_none();
    telemetry::metrics::delivery(owner.mode.as_str(), answer.status, is_delivered, answer.latency);
    Ok(answer)
}

async fn post(
    deps: &Deps,
    owner: Owner,
    webhook: WebhookId,
    request: Request<'_>,
) -> anyhow::Result<Response> {
    let aad = vault::aad_webhook_secret(owner, webhook);
    let secret = String::from_utf8(deps.engine.opener.open(request.secret_sealed, &aad)?)
        .context("a signing secret is text")?;
    let url = Url::parse(request.url).context("an endpoint's address was checked when it was given")?;
    let client = match deps.egress.client(owner.mode, &url) {
        Ok(client) => client,
        Err(refusal) => return Ok(Response { error: Some(refusal), ..Response::default() }),
    };
    let began = Instant::now();
    let signature = signature::sign(&secret, (deps.engine.now)().timestamp(), request.body.as_bytes());
    let sent = client
        .post(url)
        .timeout(retry::DELIVERY_TIMEOUT)
        .header("content-type", "application/json")
        .header("x-fanfare-signature", signature)
        .header("x-fanfare-event-id", request.event.to_string())
        .body(request.body.to_owned())
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
    Ok(Response {
        status: Some(i32::from(status.as_u16())),
        excerpt: log_excerpt(&excerpt, &secret),
        latency: began.elapsed(),
        error: (!status.is_success()).then(|| format!("the endpoint answered {status}")),
    })
}

/// The beginning of an answer for the delivery log, without the secret, which a receiver that is being debugged may print.
fn log_excerpt(answer: &[u8], secret: &str) -> Option<String> {
    let text = String::from_utf8_lossy(answer).replace('\0', "\u{fffd}").replace(secret, "***");
    let end = text.floor_char_boundary(MAX_EXCERPT_BYTES);
    Some(text[..end].to_owned()).filter(|text| !text.is_empty())
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
    fn the_log_has_the_beginning_of_an_answer_without_the_secret() {
        assert_eq!(log_excerpt(b"", "whsec_a"), None);
        assert_eq!(log_excerpt(b"ok\0", "whsec_a").as_deref(), Some("ok\u{fffd}"));
        assert_eq!(log_excerpt(b"secret is whsec_a!", "whsec_a").as_deref(), Some("secret is ***!"));
        let long = log_excerpt("\u{fc}".repeat(400).as_bytes(), "whsec_a").unwrap();
        assert_eq!((long.len(), long.chars().count()), (512, 256));
        assert_eq!(log_excerpt("a\u{fc}".repeat(400).as_bytes(), "whsec_a").unwrap().len(), 511);
    }
}
