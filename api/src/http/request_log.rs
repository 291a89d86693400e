//! Writes the log of requests, after their responses.
//!
//! A request hands its entry to a bounded queue and never waits: when the queue is full, or the database away,
//! entries are lost. One task writes what has collected, at most once in an interval, so that the log costs a
//! statement per interval instead of one per request.

use crate::http::request_id::RequestId;
use chrono::{DateTime, Utc};
use domain::Owner;
use poem::{Request, http::Method};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use store::{Pool, people::keys::Key, usage::requests};
use tokio::sync::mpsc;
use tracing::warn;

/// Entries that wait to be written.
const QUEUE: usize = 10_000;
/// Entries written at once.
const BATCH: usize = 1_000;
/// Shortest time between two writes.
const INTERVAL: Duration = Duration::from_secs(1);
/// Shortest time between two deletions of old entries, which read up to [`requests::KEPT`] entries of each owner.
const PRUNE_INTERVAL: Duration = Duration::from_secs(60);

/// The queue of the log.
#[derive(Clone)]
pub struct RequestLog {
    queue: mpsc::Sender<(Owner, requests::Entry)>,
    now: fn() -> DateTime<Utc>,
}

impl RequestLog {
    /// Starts the task that writes the log. It ends with the last clone.
    pub fn start(db: Pool, now: fn() -> DateTime<Utc>) -> Self {
        let (sender, mut queue) = mpsc::channel(QUEUE);
        tokio::spawn(async move {
            let (mut batch, mut owners, mut pruned_at) = (Vec::new(), HashSet::new(), Instant::now());
            while queue.recv_many(&mut batch, BATCH).await > 0 {
                if let Err(error) = requests::append(&db, &batch).await {
                    warn!(%error, "{} entries of the request log are lost", batch.len());
                }
                owners.extend(batch.drain(..).map(|(owner, _)| owner));
                if pruned_at.elapsed() > PRUNE_INTERVAL {
                    if let Err(error) = requests::prune(&db, &owners).await {
                        warn!(%error, "The request log was not pruned");
                    }
                    owners.clear();
                    pruned_at = Instant::now();
                }
                tokio::time::sleep(INTERVAL).await;
            }
        });
        Self { queue: sender, now }
    }

    /// The current time.
    pub(super) fn now(&self) -> DateTime<Utc> {
        (self.now)()
    }

    /// Logs a request, if its API key is known.
    pub(super) fn append(&self, id: RequestId, at: DateTime<Utc>, caller: &Noted, answer: Answer<'_>) {
        let caller = caller.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(NotedCaller { owner, last_four }) = caller else { return };
        let entry = requests::Entry {
            id: id.uuid(),
            method: answer.method.to_string(),
            path: answer.path,
            status: answer.status.into(),
            duration_ms: i32::try_from(answer.duration.as_millis()).unwrap_or(i32::MAX),
            last_four,
            at,
        };
        // A full queue loses the entry.
        let _ = self.queue.try_send((owner, entry));
    }
}

/// How a request was answered.
pub(super) struct Answer<'a> {
    /// HTTP method of the request.
    pub(super) method: &'a Method,
    /// Pattern of its path.
    pub(super) path: String,
    /// HTTP status.
    pub(super) status: u16,
    /// Time until the response began.
    pub(super) duration: Duration,
}

/// Who sent a request, kept from its authentication until its response.
#[derive(Clone, Default)]
pub(super) struct Noted(Arc<Mutex<Option<NotedCaller>>>);

struct NotedCaller {
    owner: Owner,
    last_four: String,
}

/// Notes the key that a request was authenticated with.
pub(super) fn note(request: &Request, key: &Key) {
    let Some(Noted(noted)) = request.data::<Noted>() else { return };
    let caller = NotedCaller { owner: key.owner, last_four: key.last_four.clone() };
    *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(caller);
}
