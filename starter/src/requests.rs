//! Requests to the workers, awaited.
//!
//! Temporal or the workers may be down. The API starts and serves without them; only calls that need a
//! worker fail then.

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

/// Time limit for the first connection to Temporal: a process that has just started needs a moment.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time that a response may take to arrive after the workflow's own time limit.
const RESPONSE_MARGIN: Duration = Duration::from_secs(2);

/// The workers, reached through Temporal.
#[derive(Clone)]
pub struct Workers {
    client: watch::Receiver<Option<Client>>,
    queue: Arc<str>,
}

/// Why a request got no response.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// Temporal is not connected.
    #[error("Temporal is not connected")]
    Disconnected,
    /// No worker finished in time.
    #[error("no worker finished the request in time")]
    TimedOut,
    /// The workflow could not be started, or failed.
    #[error("the request failed: {0}")]
    Failed(String),
    /// The response is to another request: the workers run another version.
    #[error("a worker of another version answered")]
    Mismatched,
}

impl Workers {
    /// The workers of the task queues that are named after `queue`, once `client` holds a client.
    pub fn new(client: watch::Receiver<Option<Client>>, queue: &str) -> Self {
        Self { client, queue: queue.into() }
    }

    /// Makes a request and waits for the response.
    ///
    /// # Errors
    ///
    /// When there is no response within the request's time limit.
    pub async fn call<R: Request>(&self, request: R) -> Result<R::Response, Unanswered> {
        let client = self.client().await.ok_or(Unanswered::Disconnected)?;
        let timeout = worker_request::timeout::<R>();
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

    async fn client(&self) -> Option<Client> {
        let mut client = self.client.clone();
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, client.wait_for(Option::is_some)).await;
        connected.ok()?.ok()?.clone()
    }
}
