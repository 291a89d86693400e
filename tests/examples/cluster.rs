//! `just cluster`: the services of the compose file without containers, on this machine.
//!
//! Given arguments, the program is `fanfare`: the cluster's processes are started from it.

use anyhow::Context;
use fanfare_tests::cluster::{APIS, Cluster, ClusterOptions};
use std::{path::PathBuf, process::ExitCode};
use tokio::signal::unix::{SignalKind, signal};

fn main() -> ExitCode {
    if std::env::args().len() > 1 {
        return server::main();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let outcome = runtime.block_on(run());
    if let Err(error) = outcome {
        eprintln!("cluster: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Runs the cluster until SIGINT or SIGTERM. Its data is in `FANFARE_CLUSTER`, `.fanfare/cluster` by default.
async fn run() -> anyhow::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let dir =
        std::env::var_os("FANFARE_CLUSTER").map_or_else(|| PathBuf::from(".fanfare/cluster"), PathBuf::from);
    std::fs::create_dir_all(&dir)?;
    // Webhooks to receivers on this machine are delivered, as by `fanfare dev`.
    let env = [("FANFARE_EGRESS_ALLOW".to_owned(), "127.0.0.0/8".to_owned())].into();
    let options = ClusterOptions { env, ..ClusterOptions::default() };
    println!(
        "  Starting. Each process has a log in {}; further variables go into .env there, and apply at the next start.",
        dir.display()
    );
    let program = std::env::current_exe().context("finding the path of this program")?;
    let cluster = tokio::select! {
        cluster = Cluster::start(&program, &dir, options) => cluster?,
        _ = interrupt.recv() => return Ok(()),
        _ = terminate.recv() => return Ok(()),
    };
    let organization = cluster.path("organization");
    if !organization.exists() {
        std::fs::write(&organization, cluster.command("api", &["org", "create", "Fanfare"]).await?)?;
    }
    println!("\n  The cluster is up: {} and a worker for each.\n", APIS.join(", "));
    println!("{}\n", serde_json::to_string_pretty(&cluster.addresses())?);
    println!("{}", std::fs::read_to_string(organization)?);
    println!(
        "  Logs are in {}. Press Ctrl-C to stop; the next start keeps all data.",
        cluster.path("").display()
    );
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    println!("  Stopping …");
    cluster.end().await
}
