//! Delivering an event to one endpoint.
//!
//! The body was fixed when the event happened; the signature is made anew at each attempt, so that a
//! receiver can refuse a stale one. Whatever is not a 2xx in time is repeated.

#![expect(
    dead_code,
    reason = "the macro makes a marker per activity; workflows use those of the declarations"
)]

use crate::Deps;
use anyhow::Context;
use domain::{EventId, Owner, event, retry, signature};
use futures::StreamExt;
use std::{sync::Arc, time::Duration};
use store::{
    deliveries::{self as facts, Answer, Attempt},
    vault, webhooks as endpoints,
};
use temporalio_common::error::{ApplicationErrorCategory, ApplicationFailure};
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tokio::time::Instant;
use url::Url;
use uuid::Uuid;
use workflows::activities::{Parcel, Sample, Sampled, definition};

/// How much of an endpoint's answer the log keeps.
const EXCERPT: usize = 512;

/// The activities of webhooks.
pub(crate) struct Webhooks {
    pub(crate) deps: Arc<Deps>,
}

#[activities]
impl Webhooks {
    #[activity(definition = definition::Deliver)]
    pub(crate) async fn deliver(
        self: Arc<Self>,
        _cx: ActivityContext,
        parcel: Parcel,
    ) -> Result<(), ActivityError> {
        let deps = &self.deps;
        let Some(attempt) = facts::begin(&deps.db, parcel.owner, parcel.delivery, parcel.round).await? else {
            return Ok(());
        };
        let answer = deps.send(parcel.owner, &attempt).await?;
        if answer.error.is_none() {
            facts::delivered(&deps.db, parcel.delivery, parcel.round, &answer, (deps.now)()).await?;
            return Ok(());
        }
        let wait = retry::redeliver(attempt.number.unsigned_abs()).map(|wait| deps.pace.of(wait));
        let next = wait.map(|wait| (deps.now)() + wait);
        facts::failed(&deps.db, parcel.delivery, parcel.round, &answer, next).await?;
        let Some(wait) = wait else { return Ok(()) };
        let error = anyhow::anyhow!(answer.error.unwrap_or_default());
        Err(ActivityError::application(
            ApplicationFailure::builder(error)
                .type_name("undelivered".to_owned())
                .category(ApplicationErrorCategory::Benign)
                .next_retry_delay(wait)
                .build(),
        ))
    }

    #[activity(definition = definition::Sample)]
    pub(crate) async fn sample(
        self: Arc<Self>,
        _cx: ActivityContext,
        sample: Sample,
    ) -> Result<Option<Sampled>, ActivityError> {
        let deps = &self.deps;
        // Also for an endpoint that is paused: before it is resumed is when one wants to know.
        let Some(endpoint) = endpoints::sealed(&deps.db, sample.owner, sample.webhook).await? else {
            return Ok(None);
        };
        let data = event::sample(sample.owner.org, sample.webhook);
        let attempt = Attempt {
            event: EventId(Uuid::now_v7()),
            webhook: sample.webhook,
            url: endpoint.url,
            secret_sealed: endpoint.secret_sealed,
            body: event::body(event::SAMPLE, (deps.now)(), &data),
            number: 1,
        };
        let answer = deps.send(sample.owner, &attempt).await?;
        let status = answer.status.and_then(|status| u16::try_from(status).ok());
        Ok(Some(Sampled { status, delivered: answer.error.is_none() }))
    }
}

impl Deps {
    /// Sends one delivery. What the endpoint does wrong is in the answer, not an error.
    async fn send(&self, owner: Owner, attempt: &Attempt) -> anyhow::Result<Answer> {
        let aad = vault::aad_webhook_secret(owner, attempt.webhook);
        let secret = String::from_utf8(self.opener.open(&attempt.secret_sealed, &aad)?)
            .context("a signing secret is text")?;
        let url = Url::parse(&attempt.url).context("an endpoint's address was checked when it was given")?;
        let client = match self.egress.client(owner.mode, &url) {
            Ok(client) => client,
            Err(refusal) => return Ok(Answer { error: Some(refusal), ..Answer::default() }),
        };
        let began = Instant::now();
        let signature = signature::sign(&secret, (self.now)().timestamp(), attempt.body.as_bytes());
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
                return Ok(Answer {
                    error: Some(reason(&error)),
                    latency: began.elapsed(),
                    ..Answer::default()
                });
            }
        };
        let status = response.status();
        let mut excerpt = Vec::new();
        let mut body = response.bytes_stream();
        while excerpt.len() < EXCERPT {
            match body.next().await {
                Some(Ok(piece)) => excerpt.extend_from_slice(&piece),
                // The status has been heard; what follows is only for the log.
                Some(Err(_)) | None => break,
            }
        }
        excerpt.truncate(EXCERPT);
        Ok(Answer {
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
