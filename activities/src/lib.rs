//! Activities: what workflows call, with side effects.
//!
//! The bodies of the activities that `workflows` declares. Publishing and everything that calls a platform for
//! an account is crate `publishing`; here are the translation for Temporal, and connecting accounts, imports,
//! metrics, media files and webhook deliveries. An activity may be repeated at any time.

mod accounts;
mod connecting;
mod failure;
mod heartbeat;
mod imports;
mod media;
pub mod meter;
mod metrics;
pub mod openid;
mod publishing;
mod recycle;
mod share;
mod spans;
mod webhooks;
pub mod worker;

use ::publishing::{CallOutcome, Engine, call_as};
use anyhow::Context;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use chrono::TimeDelta;
use domain::{Failure, request_proof::Key};
use egress::Egress;
use futures::future::BoxFuture;
use platforms::{Adapter, Session};
use serde::de::DeserializeOwned;
use std::{sync::Arc, time::Duration};
use temporalio_client::Client;
use workflows::{activities::AccountRef, worker_request::CALL_TIMEOUT};

/// Dependencies of the activities.
pub struct Deps {
    /// The publishing engine, with the database, keys, clock and transports that all activities use.
    pub engine: Arc<Engine>,
    /// Client for addresses that users gave.
    pub egress: Egress,
    /// Age at which an unused media asset is deleted; `None` keeps it.
    pub retention: Option<TimeDelta>,
    /// The OpenID provider of people who sign in; `None` without one.
    pub openid: Option<openid::Provider>,
    /// Client for signals to workflows.
    pub temporal: Client,
    /// Key with which the API proves its requests; a worker without it refuses those that need a proof.
    pub request_key: Option<Key>,
}

impl Deps {
    /// Calls a platform for an account, within the time that a client waits.
    async fn call<T>(
        &self,
        account: &AccountRef,
        call: impl for<'a> Fn(&'static Adapter, &'a Session<'a>) -> BoxFuture<'a, Result<T, Failure>>,
    ) -> anyhow::Result<CallOutcome<T>> {
        self.call_within(CALL_TIMEOUT, account, call).await
    }

    /// Calls a platform for an account, within `limit`.
    async fn call_within<T>(
        &self,
        limit: Duration,
        account: &AccountRef,
        call: impl for<'a> Fn(&'static Adapter, &'a Session<'a>) -> BoxFuture<'a, Result<T, Failure>>,
    ) -> anyhow::Result<CallOutcome<T>> {
        call_as(&self.engine, account.owner, account.account, limit, call).await
    }

    /// Opens a value that the API sealed for a request.
    fn unseal<T: DeserializeOwned>(&self, sealed: &str, aad: &[u8]) -> anyhow::Result<T> {
        let sealed = BASE64_STANDARD.decode(sealed).context("what is sealed is base64")?;
        let opened = self.engine.opener.open(&sealed, aad)?;
        serde_json::from_slice(&opened).map_err(|_| anyhow::anyhow!("what was sealed does not read back"))
    }

    /// Marks an account's grant as lost, because its platform refused it.
    async fn mark_lost(&self, account: &AccountRef, version: i64, failure: &Failure) -> store::Result<()> {
        self.engine.mark_lost(account.owner, account.account, version, failure).await
    }
}
