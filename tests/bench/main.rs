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
    time::{Duration, Instant},
};
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions, GrpcCompression};
use tests::durable;

/// Repetitions of each measurement, in turns with its baseline.
const TURNS: usize = 3;
/// Time limit of a group.
const GROUP_LIMIT: Duration = Duration::from_secs(8 * 60);
/// Time after which no further group begins.
const LAST_START: Duration = Duration::from_secs(14 * 60);
/// The page that has the results.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/BENCHMARKS.md");

/// What all groups use.
struct Bench {
    /// The measured program.
    program: &'static str,
    /// Client of the shared Temporal server.
    client: Client,
}

type Run = for<'a> fn(&'a Bench, &'a mut Report) -> LocalBoxFuture<'a, anyhow::Result<()>>;

/// Rows that are measured together, and the function that measures them.
const GROUPS: [(&[&str], Run); 11] = [
    (&["1", "2", "3", "4", "10"], |bench, report| posts::rows(bench, report).boxed_local()),
    (&["0a"], |bench, report| webhooks::subscriber(bench, report).boxed_local()),
    (&["0c"], |bench, report| lost::worker(bench, report).boxed_local()),
    (&["9"], |bench, report| webhooks::deliveries(bench, report).boxed_local()),
    (&["5"], |bench, report| http::creation(bench, report).boxed_local()),
    (&["11"], |bench, report| start::of_dev(bench, report).boxed_local()),
    (&["12"], |bench, report| video::through(bench, report).boxed_local()),
    (&["7"], |bench, report| bursts::due(bench, report).boxed_local()),
    (&["0b"], |bench, report| bursts::at_once(bench, report).boxed_local()),
    (&["6", "8"], |bench, report| lists::rows(bench, report).boxed_local()),
    (&["13"], |bench, report| servers::on_postgres(bench, report).boxed_local()),
];

fn main() -> anyhow::Result<()> {
    // Cargo adds `--bench`.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    for row in &wanted {
        let is_known = GROUPS.iter().any(|(rows, _)| rows.contains(&row.as_str()));
        anyhow::ensure!(is_known, "there is no row {row}");
    }
    let is_wanted =
        |rows: &[&str]| wanted.is_empty() || wanted.iter().any(|row| rows.contains(&row.as_str()));
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
            for (rows, run) in GROUPS.iter().filter(|(rows, _)| is_wanted(rows)) {
                let names = rows.join(", ");
                if began.elapsed() > LAST_START {
                    report.miss(&names, "the time was over");
                    continue;
                }
                eprintln!("{:>4.0} s: rows {names}", began.elapsed().as_secs_f64());
                // A group that fails leaves the others their turn.
                let run = AssertUnwindSafe(run(&bench, &mut report)).catch_unwind();
                let failure = match tokio::time::timeout(GROUP_LIMIT, run).await {
                    Ok(Ok(Ok(()))) => continue,
                    Ok(Ok(Err(error))) => format!("{error:#}"),
                    Ok(Err(panic)) => {
                        let said = panic.downcast_ref::<String>().cloned();
                        said.or_else(|| panic.downcast_ref::<&str>().map(|said| (*said).to_owned()))
                            .unwrap_or_else(|| "it panicked".to_owned())
                    }
                    Err(_) => "its time limit is over".to_owned(),
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
    let working = async {
        let outcome = work.await;
        stop();
        outcome
    };
    let (worked, outcome) = tokio::join!(worker.run(), working);
    worked.map_err(|error| anyhow::anyhow!("{error}"))?;
    outcome
}
