//! The worker of a task queue, replaced while the process runs.
//!
//! The SDK keeps an entry for each activity that a worker has begun and never removes it (`task_tokens_to_cancels` of
//! temporalio-sdk 1.1.1): some 400 bytes, which is a gigabyte a day at 30 activities a second. They are freed with
//! the worker. So a worker that has begun enough of them is replaced: it takes no further task and finishes those
//! that it has, while its successor already polls the queue. Both share the counts of slots per organization. A
//! process that exited instead would interrupt all queues for the sake of one.

use anyhow::anyhow;
use futures::{FutureExt, StreamExt, TryFutureExt, future::LocalBoxFuture, stream::FuturesUnordered};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use temporalio_client::Client;
use temporalio_sdk::{
    Runtime, Worker, WorkerOptions,
    interceptors::{ActivityInboundInterceptor, ExecuteActivityInput, ExecuteActivityOutput, Next},
};
use tokio::sync::{Notify, watch};
use tracing::info;

/// A task queue that is served.
pub(crate) struct Queue {
    options: WorkerOptions,
    count: Arc<Count>,
    first: Worker,
}

/// Activities that a queue's present worker has begun.
struct Count {
    begun: AtomicU64,
    /// Number after which the worker is replaced; 0 for never.
    limit: u64,
    is_reached: Notify,
}

/// Counts activities.
struct Counter(Arc<Count>);

impl ActivityInboundInterceptor for Counter {
    fn execute_activity<'a>(
        &'a self,
        input: ExecuteActivityInput,
        next: Next<'a, ExecuteActivityInput, ExecuteActivityOutput<'a>>,
    ) -> ExecuteActivityOutput<'a> {
        let Count { begun, limit, is_reached } = &*self.0;
        if begun.fetch_add(1, Ordering::Relaxed) + 1 == *limit {
            is_reached.notify_one();
        }
        next.run(input)
    }
}

/// Workers of one queue that run until they are stopped and have finished their tasks.
type Running = FuturesUnordered<LocalBoxFuture<'static, anyhow::Result<()>>>;

impl Queue {
    /// Creates the first worker of a queue, which is replaced after `limit` activities.
    ///
    /// # Errors
    ///
    /// When Temporal refuses it.
    pub(crate) fn new(
        mut options: WorkerOptions,
        limit: u64,
        runtime: &Runtime,
        client: &Client,
    ) -> anyhow::Result<Self> {
        let count = Arc::new(Count { begun: AtomicU64::new(0), limit, is_reached: Notify::new() });
        options.activity_inbound_interceptor(Counter(count.clone()));
        let first = create(&options, runtime, client)?;
        Ok(Self { options, count, first })
    }

    /// Runs the workers of the queue until `stop`, or until one of them fails.
    ///
    /// # Errors
    ///
    /// When one of them failed, or could not be replaced.
    pub(crate) async fn serve(
        self,
        runtime: &Runtime,
        client: &Client,
        mut stop: watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        let Self { options, count, first } = self;
        let mut running = Running::new();
        let mut halt = start(first, &mut running);
        let mut is_stopping = false;
        let mut outcome = Ok(());
        loop {
            tokio::select! {
                ended = running.next() => match ended {
                    Some(Ok(())) => {}
                    // The others finish what they have.
                    Some(Err(error)) => {
                        (is_stopping, outcome) = (true, outcome.and(Err(error)));
                        halt();
                    }
                    None => return outcome,
                },
                _ = stop.wait_for(|stop| *stop), if !is_stopping => {
                    is_stopping = true;
                    halt();
                }
                () = count.is_reached.notified(), if !is_stopping => {
                    // From here on it takes no task, and its successor may take its place in the client.
                    halt();
                    match create(&options, runtime, client) {
                        Ok(next) => halt = start(next, &mut running),
                        Err(error) => (is_stopping, outcome) = (true, Err(error)),
                    }
                    let begun = count.begun.swap(0, Ordering::Relaxed);
                    info!(
                        task_queue = options.task_queue, activities = begun,
                        "Replaced the worker of {} after {begun} activities", options.task_queue
                    );
                }
            }
        }
    }
}

fn create(options: &WorkerOptions, runtime: &Runtime, client: &Client) -> anyhow::Result<Worker> {
    let created = Worker::new(runtime, client.clone(), options.clone());
    created.map_err(|error| anyhow!("no worker for {} could be created: {error}", options.task_queue))
}

/// Runs a worker, and returns the function that stops it.
fn start(mut worker: Worker, running: &mut Running) -> Box<dyn Fn()> {
    let halt = worker.shutdown_handle();
    // Owns the worker, so that it is freed when it has ended.
    running.push(async move { worker.run().map_err(anyhow::Error::from).await }.boxed_local());
    Box::new(halt)
}
