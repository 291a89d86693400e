//! Webhook deliveries.

use domain::{Owner, WebhookId, outbox::EndpointRef, request_proof::Key};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use temporalio_common::ActivityError;
use temporalio_macros::activity_definitions;

/// Markers of the declarations below.
pub use webhooks::{Drain, RevealSecret, SendTestEvent};

/// Work that is left after draining an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum DrainResult {
    /// Nothing.
    Done,
    /// More to send now, by another activity.
    More,
    /// Deliveries whose next attempt is due later.
    Wait {
        /// Time until then.
        wait: Duration,
        /// Number of the deliveries, up to a thousand.
        deliveries: u32,
    },
    /// Nothing was looked at, because the organization uses its share of the slots.
    Crowded {
        /// Time to wait for a slot.
        wait: Duration,
    },
}

/// A test event to be sent to an endpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestEventInput {
    /// Endpoint id.
    pub webhook: WebhookId,
    /// Owner of the rows.
    pub owner: Owner,
}

/// Result of sending a test event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestEventResult {
    /// HTTP status of the answer; `None` without one.
    pub status: Option<u16>,
    /// True for a 2xx status.
    pub delivered: bool,
}

/// A request to read an endpoint's signing secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RevealSecretInput {
    /// Endpoint id.
    pub webhook: WebhookId,
    /// Owner of the rows.
    pub owner: Owner,
    /// Public key that the response is sealed to, made for this request, so that the workflow's history
    /// reveals nothing.
    pub recipient: String,
    /// Proof that the API asks. Without it, anybody who can start a workflow could have the secret sealed to a key of
    /// their own.
    #[serde(default)]
    pub proof: String,
}

impl RevealSecretInput {
    /// Adds the proof.
    #[must_use]
    pub fn proven(self, key: &Key) -> Self {
        let proof = key.prove(self.parts().iter().map(String::as_bytes));
        Self { proof, ..self }
    }

    /// Returns true if the proof is the API's.
    pub fn is_proven(&self, key: &Key) -> bool {
        key.verify(self.parts().iter().map(String::as_bytes), &self.proof)
    }

    /// Everything that the answer depends on.
    fn parts(&self) -> [String; 5] {
        let Self { webhook, owner, recipient, proof: _ } = self;
        [
            "reveal_secret".to_owned(),
            owner.org.to_string(),
            owner.mode.to_string(),
            webhook.to_string(),
            recipient.clone(),
        ]
    }
}

/// Activities that call webhook endpoints.
pub struct Webhooks;

#[activity_definitions]
impl Webhooks {
    /// Sends the due deliveries of an endpoint, and those that become due meanwhile.
    #[activity(name = "drain")]
    pub fn drain(_endpoint: EndpointRef) -> Result<DrainResult, ActivityError> {
        unimplemented!()
    }

    /// Sends a signed test event to one endpoint, once; `None` when the endpoint was deleted.
    #[activity(name = "send_test_event")]
    pub fn send_test_event(_input: TestEventInput) -> Result<Option<TestEventResult>, ActivityError> {
        unimplemented!()
    }

    /// Returns the sealed signing secret of one endpoint; `None` when the endpoint was deleted.
    #[activity(name = "reveal_secret")]
    pub fn reveal_secret(_input: RevealSecretInput) -> Result<Option<Vec<u8>>, ActivityError> {
        unimplemented!()
    }
}
