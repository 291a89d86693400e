//! Asking a worker while the caller waits.
//!
//! This process makes no outgoing call and opens no secret, so whatever needs either is asked here:
//! `workflows::ask` on Temporal, awaited. Temporal or the workers may be away; the API starts and
//! serves without them, and only these calls then say that they can't be answered now.

use crate::http::{caller::Call, problem::Problem};
use std::{sync::Arc, time::Duration};
use temporalio_client::{Client, WorkflowStartOptions, errors::WorkflowGetResultError};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};
use tracing::warn;
use uuid::Uuid;
use workflows::{
    Ask,
    ask::{self, Answer, Question},
    queue,
};

/// How long a call waits for the connection to Temporal: a process that has just started needs a moment.
const CONNECTING: Duration = Duration::from_secs(3);
/// How long after the question itself has ended its answer may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(2);
/// Seconds after which a question that got no answer may be asked again.
const AWAY_SECONDS: u32 = 10;

/// The way to the workers; it may not be there yet.
#[derive(Clone)]
pub struct Workers {
    client: watch::Receiver<Option<Client>>,
    queue: Arc<str>,
}

impl Workers {
    /// Through the client that `client` will hold, to the queues beside the queue of posts.
    pub fn new(client: watch::Receiver<Option<Client>>, queue: &str) -> Self {
        Self { client, queue: queue.into() }
    }

    async fn client(&self) -> Option<Client> {
        let mut client = self.client.clone();
        let connected = tokio::time::timeout(CONNECTING, client.wait_for(Option::is_some)).await;
        connected.ok()?.ok()?.clone()
    }
}

/// Asks a question and waits for the answer.
///
/// # Errors
///
/// `unavailable` when nobody answered in time.
pub async fn ask(call: &Call<'_>, question: Question) -> Result<Answer, Problem> {
    let workers = &call.app.workers;
    let Some(client) = workers.client().await else {
        return Err(unanswered("Temporal is not connected"));
    };
    let patience = question.patience();
    let until = Instant::now() + patience + ARRIVAL;
    let options = WorkflowStartOptions::new(question.queue(&workers.queue), ask::id(Uuid::new_v4()))
        .execution_timeout(patience)
        .search_attributes(question.search_attributes())
        .priority(queue::turn(question.owner().org))
        .static_summary(question.summary())
        .build();
    let asking = async {
        let handle = match client.start_workflow(Ask::run, question, options).await {
            Ok(handle) => handle,
            Err(error) => return Err(unanswered(&error.to_string())),
        };
        match handle.get_result(Default::default()).await {
            Ok(answer) => Ok(answer),
            Err(WorkflowGetResultError::TimedOut) => {
                Err(unanswered("no worker took it up, or none finished"))
            }
            Err(error) => Err(unanswered(&error.to_string())),
        }
    };
    timeout_at(until, asking).await.unwrap_or_else(|_| Err(unanswered("no answer arrived")))
}

/// An answer to another question: workers of another version are at work.
pub(crate) fn mistaken() -> Problem {
    unanswered("a worker answered another question")
}

fn unanswered(reason: &str) -> Problem {
    warn!(reason, "A question got no answer");
    Problem::away("no worker answered in time; try again later", AWAY_SECONDS)
}
