//! Load: posts of the real program and runs of the minimal one, in a closed loop or all at once.

use crate::{Bench, bare, processes::Cpu, report::percentile};
use anyhow::Context;
use chrono::{DateTime, TimeDelta, Utc};
use domain::PostId;
use futures::{StreamExt, TryStreamExt, stream};
use poem::{IntoResponse, endpoint::make_sync};
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use temporalio_client::{
    Client, WorkflowFetchHistoryOptions, WorkflowGetResultOptions, errors::WorkflowGetResultError,
};
use temporalio_common::{UntypedWorkflow, protos::temporal::api::history::v1::history_event::Attributes};
use tests::{World, WorldBuilder, lifted_limits};
use tokio::{sync::watch, task::JoinHandle};
use uuid::Uuid;

/// Accounts of a post with three targets, on two platforms.
pub(crate) const ACCOUNTS: [(&str, &str); 3] =
    [("x", "ada"), ("bluesky", "ada.bsky.social"), ("bluesky", "bob.bsky.social")];

/// Interval of the requests that measure the API's latency beside a load.
const PROBE_INTERVAL: Duration = Duration::from_millis(25);

/// Interval of looking whether a burst is over.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Time limit of the turns of a measurement.
const TURNS_LIMIT: Duration = Duration::from_secs(250);

static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// Returns a number that no other call returns.
pub(crate) fn next() -> usize {
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// Starts a world in real time with three accounts at an instant sandbox: the platforms' throttling is not what is
/// measured.
pub(crate) async fn world(builder: WorldBuilder) -> World {
    let mut world = builder.pace(1.0).set("RUST_LOG", "error").start().await;
    for (platform, account) in ACCOUNTS {
        world.connect(platform, account).await;
    }
    world.set_sandbox(json!({ "limits": lifted_limits() })).await;
    world.leave(
        "",
        "the benchmark looks at what it measures, and a row that ran out of time leaves all of it",
    );
    world
}

/// Returns the body of a post on the first `targets` accounts.
pub(crate) fn body(targets: usize) -> Value {
    let accounts: Vec<_> = ACCOUNTS[..targets].iter().map(|(_, account)| account).collect();
    json!({ "content": format!("Benchmark {}", next()), "accounts": accounts })
}

/// Latency of one piece of work and the ids of its workflows.
pub(crate) type Done = (Duration, Vec<String>);

/// Publishes one post. The latency ends with the publication of its last target, by the database's times. Waits for
/// the result in the same way as [`bare_post`], as soon as the relay has started the workflow.
pub(crate) async fn post(world: &World, client: &Client, targets: usize) -> anyhow::Result<Done> {
    let post = world.post(body(targets)).await;
    let id = post["id"].as_str().context("an id")?.parse()?;
    let workflow = client.get_workflow_handle::<UntypedWorkflow>(workflows::publish_post::id(id));
    loop {
        match workflow.get_result(WorkflowGetResultOptions::default()).await {
            Ok(_) => break,
            // The relay has not started it yet. Asking more often would be work for Temporal that is not Fanfare's.
            Err(WorkflowGetResultError::NotFound(_)) => tokio::time::sleep(Duration::from_millis(4)).await,
            Err(error) => return Err(error.into()),
        }
    }
    let post =
        store::posts::get(&world.db, store::bounds::unbounded(world.owner), id).await?.context("the post")?;
    let published: Option<Vec<_>> = post.targets.iter().map(|target| target.published_at).collect();
    let last = published.context("a target was not published")?.into_iter().max().context("a target")?;
    // The first attempt of each target is an activity of the post's workflow.
    let workflows = vec![workflows::publish_post::id(post.id)];
    Ok(((last - post.created_at).to_std()?, workflows))
}

/// Runs the minimal program of a post once.
pub(crate) async fn bare_post(client: &Client, targets: usize) -> anyhow::Result<Done> {
    let id = format!("bare-{}", next());
    let started = Instant::now();
    bare::once(client, &id, u32::try_from(targets)?).await?;
    let took = started.elapsed();
    let children = (0..targets).map(|child| format!("{id}-{child}"));
    Ok((took, std::iter::once(id.clone()).chain(children).collect()))
}

/// Runs one workflow with an empty activity for each target.
pub(crate) async fn flat_post(client: &Client, targets: usize) -> anyhow::Result<Done> {
    let id = format!("flat-{}", next());
    let started = Instant::now();
    bare::batch(client, &id, u32::try_from(targets)?).await?;
    Ok((started.elapsed(), vec![id]))
}

/// Measurements of a closed loop.
pub(crate) struct Loop {
    /// Rounds per second.
    pub(crate) per_second: f64,
    /// Processor time that was used meanwhile.
    pub(crate) cpu: Cpu,
    /// Latencies, in milliseconds.
    pub(crate) latencies: Vec<f64>,
    /// Workflows of the last round. All histories have the same events, so that one stands for all.
    workflows: Vec<String>,
}

/// Does `rounds` pieces of work, `in_flight` at a time.
pub(crate) async fn closed<F: Future<Output = anyhow::Result<Done>>>(
    in_flight: usize,
    rounds: usize,
    one: impl Fn() -> F,
) -> anyhow::Result<Loop> {
    let (cpu, began) = (Cpu::now(), Instant::now());
    let done: Vec<Done> =
        stream::iter(0..rounds).map(|_| one()).buffer_unordered(in_flight).try_collect().await?;
    let (took, cpu) = (began.elapsed(), Cpu::now().since(&cpu));
    Ok(Loop {
        per_second: rounds as f64 / took.as_secs_f64(),
        cpu,
        latencies: done.iter().map(|(latency, _)| latency.as_secs_f64() * 1000.0).collect(),
        workflows: done.into_iter().next_back().map(|(_, workflows)| workflows).unwrap_or_default(),
    })
}

impl Loop {
    /// Counts the events of one round.
    pub(crate) async fn events(&self, client: &Client) -> anyhow::Result<f64> {
        let mut events = 0;
        for workflow in &self.workflows {
            let handle = client.get_workflow_handle::<UntypedWorkflow>(workflow);
            let history = handle.fetch_history(WorkflowFetchHistoryOptions::default());
            events += history.into_events().await?.len();
        }
        Ok(events as f64)
    }
}

/// Measurements of a burst.
pub(crate) struct Burst {
    /// Time from the first post's creation to the publication of the last target.
    pub(crate) took: Duration,
    /// Time in which all posts were created.
    pub(crate) creation: Duration,
    /// From a target's creation, or due time, to its publication, in seconds.
    pub(crate) latencies: Vec<f64>,
    /// Attempts beyond one for each target.
    pub(crate) wasted: i64,
    /// Processor time that was used meanwhile.
    pub(crate) cpu: Cpu,
    /// The posts of the targets, slowest first.
    posts: Vec<PostId>,
}

impl Burst {
    /// Creates `posts` posts as fast as the API takes them, and waits until all their targets are live.
    pub(crate) async fn run(
        world: &World,
        posts: usize,
        body: impl Fn() -> Value,
        limit: Duration,
    ) -> anyhow::Result<Self> {
        let cpu = Cpu::now();
        let began = Instant::now();
        let ids: Vec<Uuid> = stream::iter(0..posts)
            .map(|_| async {
                let post = world.post(body()).await;
                post["id"].as_str().context("an id")?.parse::<Uuid>().context("a UUID")
            })
            .buffer_unordered(32)
            .try_collect::<Vec<_>>()
            .await?;
        let creation = began.elapsed();
        let deadline = Instant::now() + limit;
        loop {
            let open: i64 = sqlx::query_scalar(
                "select count(*) from targets where post_id = any($1) and status <> 'published'",
            )
            .bind(&ids)
            .fetch_one(&world.db)
            .await?;
            if open == 0 {
                break;
            }
            anyhow::ensure!(Instant::now() < deadline, "{open} targets are not live after {limit:?}");
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        let rows: Vec<(Uuid, DateTime<Utc>, DateTime<Utc>, i32)> = sqlx::query_as(
            "select p.id, coalesce(p.scheduled_at, p.created_at), t.published_at, t.attempts
             from targets t join posts p on p.id = t.post_id where p.id = any($1)
             order by t.published_at - coalesce(p.scheduled_at, p.created_at) desc",
        )
        .bind(&ids)
        .fetch_all(&world.db)
        .await?;
        let first = rows.iter().map(|row| row.1).min().context("a target")?;
        let last = rows.iter().map(|row| row.2).max().context("a target")?;
        let seconds = |span: TimeDelta| span.as_seconds_f64();
        Ok(Self {
            took: (last - first).to_std()?,
            creation,
            latencies: rows.iter().map(|row| seconds(row.2 - row.1)).collect(),
            wasted: rows.iter().map(|row| i64::from(row.3) - 1).sum(),
            cpu: Cpu::now().since(&cpu),
            posts: rows.into_iter().map(|row| PostId(row.0)).collect(),
        })
    }

    /// Returns the longest time, in seconds, that one of the slowest targets waited because the dispatch of its first
    /// attempt was lost: from its schedule in the post's workflow to the end of the attempt that its own workflow made.
    pub(crate) async fn lost_dispatch(&self, client: &Client) -> anyhow::Result<f64> {
        let mut longest = 0.0_f64;
        for post in self.posts.iter().take(30) {
            let handle = client.get_workflow_handle::<UntypedWorkflow>(workflows::publish_post::id(*post));
            let history = handle.fetch_history(WorkflowFetchHistoryOptions::default());
            let (mut scheduled, mut is_lost) = (None, false);
            for event in history.into_events().await? {
                let at = event.event_time.map(|at| at.seconds as f64 + f64::from(at.nanos) / 1e9);
                match event.attributes {
                    Some(Attributes::ActivityTaskScheduledEventAttributes(_)) => scheduled = at,
                    Some(Attributes::ActivityTaskTimedOutEventAttributes(_)) => is_lost = true,
                    Some(Attributes::ChildWorkflowExecutionCompletedEventAttributes(_)) if is_lost => {
                        longest = longest.max(at.unwrap_or_default() - scheduled.unwrap_or_default());
                    }
                    _ => {}
                }
            }
        }
        Ok(longest)
    }
}

/// Requests at a fixed interval, whatever the earlier ones take.
pub(crate) struct Probe {
    stop: Arc<AtomicBool>,
    requests: JoinHandle<Vec<f64>>,
}

impl Probe {
    /// Begins to list posts with the world's key.
    pub(crate) fn start(world: &World) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (is_over, http) = (stop.clone(), world.http.clone());
        let (url, key) = (format!("{}/posts?limit=25", world.base), world.key.clone());
        let requests = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(PROBE_INTERVAL);
            let mut sent = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                ticks.tick().await;
                let request = http.request(Method::GET, &url).bearer_auth(&key).send();
                sent.push(tokio::spawn(async move {
                    let began = Instant::now();
                    let answer = request.await.ok()?;
                    answer.error_for_status().ok()?.bytes().await.ok()?;
                    Some(began.elapsed().as_secs_f64() * 1000.0)
                }));
            }
            let answered = futures::future::join_all(sent).await;
            // A request without an answer counts as one that took a minute.
            answered.into_iter().map(|answer| answer.ok().flatten().unwrap_or(60_000.0)).collect()
        });
        Self { stop, requests }
    }

    /// Ends, and returns the 99th percentile of the latencies, in milliseconds.
    pub(crate) async fn p99(self) -> anyhow::Result<f64> {
        self.stop.store(true, Ordering::Relaxed);
        Ok(percentile(&self.requests.await?, 99))
    }

    /// Returns the 99th percentile of an idle API.
    pub(crate) async fn idle(world: &World) -> anyhow::Result<f64> {
        let probe = Self::start(world);
        tokio::time::sleep(Duration::from_secs(5)).await;
        probe.p99().await
    }
}

/// A webhook receiver that answers at once, and counts.
pub(crate) struct Counter {
    /// URL of the endpoint.
    pub(crate) url: String,
    received: watch::Receiver<usize>,
}

impl Counter {
    /// Starts to listen.
    pub(crate) async fn start() -> Self {
        let (count, received) = watch::channel(0);
        let endpoint = make_sync(move |_| {
            count.send_modify(|count| *count += 1);
            "received".into_response()
        });
        let address = tests::serve(endpoint).await;
        Self { url: format!("http://{address}/hook"), received }
    }

    /// Returns the number of requests so far.
    pub(crate) fn count(&self) -> usize {
        *self.received.borrow()
    }

    /// Waits until there were this many requests in all.
    pub(crate) async fn until(&self, count: usize) -> anyhow::Result<()> {
        let mut received = self.received.clone();
        let arrived = received.wait_for(|received| *received >= count);
        let arrived = tokio::time::timeout(Duration::from_secs(120), arrived).await;
        let found = self.count();
        arrived.map(drop).with_context(|| format!("{found} of {count} deliveries arrived"))
    }
}

/// Subscribes an endpoint to all events, and returns the id of the webhook.
pub(crate) async fn subscribe(world: &World, url: &str) -> anyhow::Result<String> {
    Ok(world.subscribe(url).await["id"].as_str().context("an id")?.to_owned())
}

/// Deletes a webhook.
pub(crate) async fn unsubscribe(world: &World, webhook: &str) -> anyhow::Result<()> {
    let url = format!("{}/webhooks/{webhook}", world.base);
    world.http.delete(url).bearer_auth(&world.key).send().await?.error_for_status()?;
    Ok(())
}

/// Does each of two kinds of work `turns` times, in turns; who begins alternates. No further turn begins if it would not
/// end within [`TURNS_LIMIT`]: fewer repetitions are better than none.
pub(crate) async fn in_turns<T>(
    turns: usize,
    ours: impl AsyncFn() -> anyhow::Result<T>,
    theirs: impl AsyncFn() -> anyhow::Result<T>,
) -> anyhow::Result<(Vec<T>, Vec<T>)> {
    let (mut of_us, mut of_them) = (Vec::new(), Vec::new());
    let began = Instant::now();
    for turn in 0..turns {
        if turn > 0 && began.elapsed() * (turn as u32 + 1) / turn as u32 > TURNS_LIMIT {
            eprintln!("       {turn} instead of {turns} turns: the machine is slow");
            break;
        }
        if turn % 2 == 0 {
            of_us.push(ours().await?);
            of_them.push(theirs().await?);
        } else {
            of_them.push(theirs().await?);
            of_us.push(ours().await?);
        }
    }
    Ok((of_us, of_them))
}

/// Returns one number of each measurement.
pub(crate) fn each<T>(measured: &[T], number: impl Fn(&T) -> f64) -> Vec<f64> {
    measured.iter().map(number).collect()
}

impl Bench {
    /// Warms up pools, caches and pollers of both programs.
    pub(crate) async fn warm(&self, world: &World) -> anyhow::Result<()> {
        closed(4, 24, || post(world, &self.client, 3)).await?;
        closed(4, 24, || bare_post(&self.client, 3)).await?;
        Ok(())
    }
}
