//! Requests from the API to the workers, awaited.
//!
//! The API starts and serves while Temporal or the workers are down; only calls that need a worker fail.

use crate::inspect;
use serde_json::Value;
use std::sync::Arc;
use temporalio_client::{Client, WorkflowStartOptions, errors::WorkflowGetResultError};
use tokio::{
    sync::watch,
    time::{Duration, Instant, timeout_at},
};
use uuid::Uuid;
use workflows::{
    WorkerRequest, queue,
    worker_request::{self, Request},
};

/// Time limit for the first connection to Temporal, which a process that has just started may still lack.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time for a response to arrive after the workflow's own timeout.
const RESPONSE_MARGIN: Duration = Duration::from_secs(2);

/// The workers, reached through Temporal.
#[derive(Clone)]
pub struct Workers {
    client: watch::Receiver<Option<Client>>,
    queue: Arc<str>,
}

/// Reason why a request has no response.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// Temporal is not connected.
    #[error("Temporal is not connected")]
    Disconnected,
    /// No worker finished within the request's timeout.
    #[error("no worker finished the request in time")]
    TimedOut,
    /// The workflow could not be started, or failed.
    #[error("the request failed: {0}")]
    Failed(String),
    /// The response has another request's type: the workers run another version.
    #[error("a worker of another version answered")]
    Mismatched,
}

impl Workers {
    /// Creates a handle to the workers of the task queues whose names begin with `queue`. `client` is set
    /// when Temporal is connected.
    pub fn new(client: watch::Receiver<Option<Client>>, queue: &str) -> Self {
        Self { client, queue: queue.into() }
    }

    /// Sends a request and waits for its response.
    ///
    /// # Errors
    ///
    /// If there is no response within the request's timeout.
    pub async fn call<R: Request>(&self, request: R) -> Result<R::Response, Unanswered> {
        let client = self.client().await.ok_or(Unanswered::Disconnected)?;
        let timeout = R::LIMIT;
        let until = Instant::now() + timeout + RESPONSE_MARGIN;
        let options =
            WorkflowStartOptions::new(request.queue(&self.queue), worker_request::id(Uuid::new_v4()))
                .execution_timeout(timeout)
                .search_attributes(request.search_attributes())
                .priority(queue::turn(request.owner().org))
                .static_summary(request.summary())
                .build();
        let output = async {
            let started = client.start_workflow(WorkerRequest::run, request.into(), options).await;
            let handle = started.map_err(|error| Unanswered::Failed(error.to_string()))?;
            handle.get_result(Default::default()).await.map_err(|error| match error {
                WorkflowGetResultError::TimedOut => Unanswered::TimedOut,
                error => Unanswered::Failed(error.to_string()),
            })
        };
        let output = timeout_at(until, output).await.unwrap_or(Err(Unanswered::TimedOut))?;
        R::response(output).ok_or(Unanswered::Mismatched)
    }

    /// Returns the states of workflows, for operators.
    pub async fn inspect(&self, ids: &[String]) -> Vec<Value> {
        match self.client().await {
            Some(client) => inspect::workflows(&client, ids).await,
            None => inspect::unknown(ids, &Unanswered::Disconnected.to_string()),
        }
    }

    async fn client(&self) -> Option<Client> {
        let mut client = self.client.clone();
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, client.wait_for(Option::is_some)).await;
        connected.ok()?.ok()?.clone()
    }
}
