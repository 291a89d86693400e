//! Benchmark of the cost of a post, compared with a minimal Temporal program.
//!
//! The real program against an instant sandbox alternates with a minimal Temporal program of the same shape (a
//! parent, one child per target, one empty activity each) on one server. Latency is the time from the post's
//! creation to the publication of its last target, by the database's times, and for the minimal program the
//! time from start to result. Server CPU is that of Temporal's process. The number of posts is fixed, and all
//! traffic is on loopback.
//!
//! `just bench` runs it. No test depends on its figures.

#![expect(clippy::unwrap_used, reason = "a benchmark stops at the first error")]

extern crate fanfare_tests as tests;

mod bare;

use futures::{StreamExt, stream};
use serde_json::json;
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, GrpcCompression, WorkflowFetchHistoryOptions,
    WorkflowGetResultOptions, errors::WorkflowGetResultError,
};
use temporalio_common::UntypedWorkflow;
use tests::{World, durable};

/// Accounts of a post with three targets, on two platforms.
const ACCOUNTS: [(&str, &str); 3] =
    [("x", "ada"), ("bluesky", "ada.bsky.social"), ("bluesky", "bob.bsky.social")];

/// The measured program.
const PROGRAM: &str = env!("CARGO_BIN_EXE_fanfare-under-test");

static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// Measurements of one configuration.
struct Figures {
    per_second: f64,
    p50: Duration,
    p99: Duration,
    events_per_target: f64,
    temporal_ms_per_target: f64,
    own_ms_per_target: f64,
    postgres_ms_per_target: f64,
    rest_ms_per_target: f64,
    idle: f64,
}

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let shared = durable(PROGRAM).await;
        let connection = Connection::connect(
            ConnectionOptions::new(format!("http://{}", shared.temporal).parse::<url::Url>()?)
                .grpc_compression(GrpcCompression::None)
                .build(),
        )
        .await?;
        let client = Client::new(connection, ClientOptions::new("default").build())?;
        let mut worker = bare::worker(&client)?;
        let stop = worker.shutdown_handle();
        let measuring = async {
            let outcome = measure(&client).await;
            stop();
            outcome
        };
        let (worked, measured) = tokio::join!(worker.run(), measuring);
        worked.map_err(|error| anyhow::anyhow!("{error}"))?;
        measured
    })
}

async fn measure(client: &Client) -> anyhow::Result<()> {
    let world = World::of(PROGRAM).pace(1.0).own().start().await;
    for (platform, account) in ACCOUNTS {
        world.connect(platform, account).await;
    }
    // An instant sandbox, since the platforms' throttling is not what this measures.
    let unlimited = ["x.posts", "bluesky.requests", "bluesky.points_hour", "bluesky.points_day"];
    let limits: serde_json::Map<_, _> =
        unlimited.map(|name| (name.to_owned(), json!(u32::MAX))).into_iter().collect();
    world.set_sandbox(json!({ "limits": limits })).await;
    // Warm up pools, caches and pollers before measuring.
    run(client, 4, 40, 1, &|n| ours(&world, client, n, 1)).await?;
    run(client, 4, 40, 1, &|n| theirs(client, n, 1)).await?;
    println!(
        "targets  in flight  program     posts/s   p50 ms   p99 ms  events/target  CPU ms per target: Temporal  fanfare  Postgres"
    );
    for targets in [1, 3] {
        for in_flight in [1, 20] {
            let rounds = if in_flight == 1 { 60 } else { 300 };
            let ours = run(client, in_flight, rounds, targets, &|n| ours(&world, client, n, targets)).await?;
            let theirs = run(client, in_flight, rounds, targets, &|n| theirs(client, n, targets)).await?;
            row(targets, in_flight, "fanfare", &ours);
            row(targets, in_flight, "bare", &theirs);
            println!(
                "                    ratio     {:7.2}   {:6.2}   {:6.2}  {:13.2}  {:27.2}",
                ours.per_second / theirs.per_second,
                ours.p50.as_secs_f64() / theirs.p50.as_secs_f64(),
                ours.p99.as_secs_f64() / theirs.p99.as_secs_f64(),
                ours.events_per_target / theirs.events_per_target,
                ours.temporal_ms_per_target / theirs.temporal_ms_per_target,
            );
            let all = |figures: &Figures| {
                figures.temporal_ms_per_target
                    + figures.own_ms_per_target
                    + figures.postgres_ms_per_target
                    + figures.rest_ms_per_target
            };
            println!(
                "                    in all {:.1} ms of CPU against {:.1}: with every core busy, {:.2} of the bare rate",
                all(&ours),
                all(&theirs),
                all(&theirs) / all(&ours),
            );
        }
    }
    Ok(())
}

fn row(targets: usize, in_flight: usize, program: &str, figures: &Figures) {
    println!(
        "{targets:7}  {in_flight:9}  {program:8}  {:9.1}  {:7.1}  {:7.1}  {:13.1}  {:27.1}  {:7.1}  {:8.1}  {:16.1}  {:3.0}%",
        figures.per_second,
        figures.p50.as_secs_f64() * 1000.0,
        figures.p99.as_secs_f64() * 1000.0,
        figures.events_per_target,
        figures.temporal_ms_per_target,
        figures.own_ms_per_target,
        figures.postgres_ms_per_target,
        figures.rest_ms_per_target,
        figures.idle * 100.0,
    );
}

/// Publishes one post, and returns its latency and the ids of its workflows. Waits for the result in the same
/// way as [`theirs`].
async fn ours(
    world: &World,
    client: &Client,
    n: usize,
    targets: usize,
) -> anyhow::Result<(Duration, Vec<String>)> {
    let accounts: Vec<_> = ACCOUNTS[..targets].iter().map(|(_, account)| account).collect();
    let post = world.post(json!({ "content": format!("Benchmark {n}"), "accounts": accounts })).await;
    let id = post["id"].as_str().unwrap().parse()?;
    let workflow = client.get_workflow_handle::<UntypedWorkflow>(workflows::publish_post::id(id));
    loop {
        match workflow.get_result(WorkflowGetResultOptions::default()).await {
            Ok(_) => break,
            // The relay has not started it yet.
            Err(WorkflowGetResultError::NotFound(_)) => tokio::time::sleep(Duration::from_millis(2)).await,
            Err(error) => return Err(error.into()),
        }
    }
    let post = store::posts::get(&world.db, world.owner, id).await?.unwrap();
    let last = post.targets.iter().map(|target| target.published_at.unwrap()).max().unwrap();
    let mut workflows = vec![workflows::publish_post::id(post.id)];
    workflows.extend(post.targets.iter().map(|target| workflows::publish_target::id(target.id)));
    Ok(((last - post.created_at).to_std()?, workflows))
}

/// Runs the minimal program once, and returns its latency and the ids of its workflows.
async fn theirs(client: &Client, n: usize, targets: usize) -> anyhow::Result<(Duration, Vec<String>)> {
    let id = format!("bare-{n}");
    let started = Instant::now();
    bare::once(client, &id, u32::try_from(targets)?).await?;
    let took = started.elapsed();
    let children = (0..targets).map(|child| format!("{id}-{child}"));
    Ok((took, std::iter::once(id.clone()).chain(children).collect()))
}

async fn run<F: Future<Output = anyhow::Result<(Duration, Vec<String>)>>>(
    client: &Client,
    in_flight: usize,
    rounds: usize,
    targets: usize,
    one: &impl Fn(usize) -> F,
) -> anyhow::Result<Figures> {
    let before = cpu();
    let began = Instant::now();
    let done: Vec<_> = stream::iter(0..rounds)
        .map(|_| one(NUMBER.fetch_add(1, Ordering::Relaxed)))
        .buffer_unordered(in_flight)
        .collect()
        .await;
    let took = began.elapsed();
    let after = cpu();
    let done: Vec<_> = done.into_iter().collect::<anyhow::Result<_>>()?;
    let mut latencies: Vec<_> = done.iter().map(|(latency, _)| *latency).collect();
    latencies.sort_unstable();
    // All histories have the same events, so that counting the last one is enough.
    let mut events = 0;
    for workflow in &done[done.len() - 1].1 {
        let handle = client.get_workflow_handle::<UntypedWorkflow>(workflow);
        events += handle.fetch_history(WorkflowFetchHistoryOptions::default()).into_events().await?.len();
    }
    let each = |before: Duration, after: Duration| {
        (after - before).as_secs_f64() * 1000.0 / (rounds * targets) as f64
    };
    Ok(Figures {
        per_second: rounds as f64 / took.as_secs_f64(),
        p50: latencies[latencies.len() / 2],
        p99: latencies[latencies.len() * 99 / 100],
        events_per_target: events as f64 / targets as f64,
        temporal_ms_per_target: each(before.temporal, after.temporal),
        own_ms_per_target: each(before.own, after.own),
        postgres_ms_per_target: each(before.postgres, after.postgres),
        rest_ms_per_target: each(before.rest, after.rest),
        idle: (after.idle - before.idle).as_secs_f64() / took.as_secs_f64() / cores(),
    })
}

/// CPU time by process name.
#[derive(Default)]
struct Cpu {
    temporal: Duration,
    own: Duration,
    postgres: Duration,
    /// This process: load, sandbox, and the bare program's worker.
    rest: Duration,
    /// Idle time, summed over all cores.
    idle: Duration,
}

fn cpu() -> Cpu {
    let mut all = Cpu::default();
    // cpu user nice system idle …
    let machine = std::fs::read_to_string("/proc/stat").unwrap();
    let idle =
        machine.split_whitespace().nth(4).and_then(|ticks| ticks.parse::<u64>().ok()).unwrap_or_default();
    all.idle = Duration::from_millis(idle * 10);
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // pid (name) state ppid … utime stime cutime cstime, in hundredths of a second.
        let Some((head, tail)) = stat.rsplit_once(") ") else { continue };
        let Some((_, name)) = head.split_once('(') else { continue };
        let fields: Vec<&str> = tail.split(' ').collect();
        let ticks: u64 = fields[11..13].iter().filter_map(|field| field.parse::<u64>().ok()).sum();
        let used = Duration::from_millis(ticks * 10);
        match name {
            "temporal" => all.temporal += used,
            "postgres" => all.postgres += used,
            // The kernel keeps 15 bytes of a name.
            "fanfare-under-t" => all.own += used,
            _ if head.starts_with(&format!("{} (", std::process::id())) => all.rest += used,
            _ => {}
        }
    }
    all
}

fn cores() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64)
}
