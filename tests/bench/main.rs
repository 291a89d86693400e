//! Benchmark of Fanfare on one machine: ratios to programs that do the same work without Fanfare.
//!
//! `just bench` runs all groups of rows and writes docs/BENCHMARKS.md; `just bench 0c 1` runs the groups of these rows
//! and only prints. Each line is measured in turns with its baseline on the same servers, so that a busy machine slows
//! both. Numbers of posts and times are limited, and all traffic is on loopback. No test depends on the figures.

extern crate fanfare_tests as tests;

mod bare;
mod bursts;
mod http;
mod lists;
mod load;
mod lost;
mod pages;
mod posts;
mod processes;
mod report;
mod servers;
mod start;
mod video;
mod webhooks;

use futures::{FutureExt, future::LocalBoxFuture};
use report::Report;
use std::{
    panic::AssertUnwindSafe,
    path::Path,
    pin::pin,
    time::{Duration, Instant},
};
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions, GrpcCompression};
use tests::durable;
use tokio::time::timeout;

/// Repetitions of each measurement, in turns with its baseline.
const TURNS: usize = 3;
/// Time limit of the whole run; what is measured then ends unfinished, and what is left is missing.
const LIMIT: Duration = Duration::from_secs(14 * 60 + 30);
/// Time in which the worker of the minimal program has to stop.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// The page that has the results.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/BENCHMARKS.md");

/// Resources that all groups use.
struct Bench {
    /// The measured program.
    program: &'static str,
    /// Client of the shared Temporal server.
    client: Client,
}

type Run = for<'a> fn(&'a Bench, &'a mut Report) -> LocalBoxFuture<'a, anyhow::Result<()>>;

/// Rows that are measured together, their time limit in seconds, and the function that measures them.
const GROUPS: [(&[&str], u64, Run); 12] = [
    (&["1", "2", "3", "4", "10"], 240, |bench, report| posts::rows(bench, report).boxed_local()),
    (&["0a"], 150, |bench, report| webhooks::subscriber(bench, report).boxed_local()),
    (&["0c"], 120, |bench, report| lost::worker(bench, report).boxed_local()),
    (&["9"], 90, |bench, report| webhooks::deliveries(bench, report).boxed_local()),
    (&["5"], 90, |bench, report| http::creation(bench, report).boxed_local()),
    (&["11"], 60, |bench, report| start::of_dev(bench, report).boxed_local()),
    (&["12"], 90, |bench, report| video::through(bench, report).boxed_local()),
    (&["7"], 150, |bench, report| bursts::due(bench, report).boxed_local()),
    (&["6", "8"], 220, |bench, report| lists::rows(bench, report).boxed_local()),
    (&["14"], 90, |bench, report| pages::all(bench, report).boxed_local()),
    (&["13"], 200, |bench, report| servers::on_postgres(bench, report).boxed_local()),
    // Longest last: if the machine is slow, only this one is cut short.
    (&["0b"], 320, |bench, report| bursts::at_once(bench, report).boxed_local()),
];

fn main() -> anyhow::Result<()> {
    // Cargo adds `--bench`.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    for row in &wanted {
        let is_known = GROUPS.iter().any(|(rows, ..)| rows.contains(&row.as_str()));
        anyhow::ensure!(is_known, "there is no row {row}");
    }
    let is_wanted =
        |rows: &[&str]| wanted.is_empty() || wanted.iter().any(|row| rows.contains(&row.as_str()));
    // Of clients that are made before the first world.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let began = Instant::now();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(async {
        // Another build of it can be measured with the same load; its name has to be the same.
        let program: &'static str = match std::env::var("FANFARE_BENCH_PROGRAM") {
            Ok(other) => other.leak(),
            Err(_) => env!("CARGO_BIN_EXE_fanfare-under-test"),
        };
        let bench = Bench { program, client: connect(&durable(program).await.temporal).await? };
        with_bare_worker(&bench.client, async {
            let mut report = Report::default();
            for (rows, seconds, run) in GROUPS.iter().filter(|(rows, ..)| is_wanted(rows)) {
                let names = rows.join(", ");
                let limit = LIMIT.saturating_sub(began.elapsed()).min(Duration::from_secs(*seconds));
                eprintln!("{:>4.0} s: rows {names}", began.elapsed().as_secs_f64());
                // A group that fails leaves the others their turn, also if what it leaves can't be ended.
                let limited = async { timeout(limit, run(&bench, &mut report)).await };
                let failure = match AssertUnwindSafe(limited).catch_unwind().await {
                    Ok(Ok(Ok(()))) => continue,
                    Ok(Ok(Err(error))) => format!("{error:#}"),
                    Err(panic) => {
                        let said = panic.downcast_ref::<String>().cloned();
                        said.or_else(|| panic.downcast_ref::<&str>().map(|said| (*said).to_owned()))
                            .unwrap_or_else(|| "it panicked".to_owned())
                    }
                    Ok(Err(_)) => format!("it was not over after {} s", limit.as_secs()),
                };
                report.miss(&names, &failure);
            }
            Ok(report)
        })
        .await
    })?;
    println!("{}", report.table());
    if wanted.is_empty() {
        report.write(Path::new(PAGE), began.elapsed())?;
    }
    // The servers end with this process; some files may come back, which the next run deletes.
    let _ = std::fs::remove_dir_all(tests::directory());
    Ok(())
}

/// Connects to a Temporal server.
async fn connect(address: &str) -> anyhow::Result<Client> {
    let options = ConnectionOptions::new(format!("http://{address}").parse::<url::Url>()?)
        .grpc_compression(GrpcCompression::None)
        .build();
    Ok(Client::new(Connection::connect(options).await?, ClientOptions::new("default").build())?)
}

/// Runs the worker of the minimal program while `work` runs.
async fn with_bare_worker<T>(
    client: &Client,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let mut worker = bare::worker(client)?;
    let stop = worker.shutdown_handle();
    let mut working = pin!(worker.run());
    tokio::select! {
        outcome = work => {
            stop();
            if timeout(STOP_LIMIT, working).await.is_err() {
                eprintln!("the worker of the minimal program does not stop");
            }
            outcome
        }
        ended = &mut working => Err(anyhow::anyhow!("the worker of the minimal program ended: {ended:?}")),
    }
}
