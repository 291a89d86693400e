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
use domain::{retry, signature};
use futures::StreamExt;
use std::{sync::Arc, time::Duration};
use store::{
    deliveries::{self as facts, Answer, Attempt},
    vault,
};
use temporalio_common::error::{ApplicationErrorCategory, ApplicationFailure};
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tokio::time::Instant;
use url::Url;
use workflows::activities::{Parcel, definition};

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
        let Some(attempt) = facts::begin(&deps.db, parcel.owner, parcel.delivery).await? else {
            return Ok(());
        };
        let answer = deps.send(&parcel, &attempt).await?;
        if answer.error.is_none() {
            return Ok(facts::delivered(&deps.db, parcel.delivery, &answer, (deps.now)()).await?);
        }
        let wait = retry::redeliver(attempt.number.unsigned_abs()).map(|wait| deps.pace.of(wait));
        let next = wait.map(|wait| (deps.now)() + wait);
        facts::failed(&deps.db, parcel.delivery, &answer, next).await?;
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
}

impl Deps {
    /// Sends one delivery. What the endpoint does wrong is in the answer, not an error.
    async fn send(&self, parcel: &Parcel, attempt: &Attempt) -> anyhow::Result<Answer> {
        let aad = vault::aad_webhook_secret(parcel.owner, attempt.webhook);
        let secret = String::from_utf8(self.opener.open(&attempt.secret_sealed, &aad)?)
            .context("a signing secret is text")?;
        let url = Url::parse(&attempt.url).context("an endpoint's address was checked when it was given")?;
        let client = match self.egress.client(parcel.owner.mode, &url) {
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
