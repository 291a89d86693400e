//! Row 13: Temporal's server on Postgres, in one process and split by service, against its development server.

use crate::{
    Bench, TURNS, connect,
    load::{closed, each, in_turns, post, world},
    report::{Compared, Goal, Line, Report},
};
use anyhow::Context;
use devstack::{Layout, TemporalServer, TemporalServerOptions};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::path::Path;
use tests::{Servers, World, database_url, deploy, directory, yaml};
use tokio::process::Command;
use url::Url;

/// Role that owns Temporal's databases, and its password.
const ROLE: (&str, &str) = ("temporal", "temporal");
/// Posts of one measurement, in flight and in all.
const POSTS: (usize, usize) = (5, 40);
/// Targets of each.
const TARGETS: usize = 3;

/// Row 13: the processor time of all processes per target.
pub(crate) async fn on_postgres(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let light = world(World::of(bench.program)).await;
    bench.warm(&light).await?;
    for (layout, name) in [(Layout::Single, "one process"), (Layout::Split, "split into its services")] {
        let server = start(bench.program, layout).await?;
        let servers =
            Servers { database_url: database_url(bench.program).await, temporal: server.address.clone() };
        let outcome = compare(bench, report, &light, servers, name).await;
        // Its databases are dropped with the directory of the run.
        server.end().await?;
        outcome?;
    }
    Ok(())
}

async fn compare(
    bench: &Bench,
    report: &mut Report,
    light: &World,
    servers: Servers,
    name: &str,
) -> anyhow::Result<()> {
    let client = connect(&servers.temporal).await?;
    let real = world(World::of(bench.program).on(servers)).await;
    closed(4, 16, || post(&real, &client, TARGETS)).await?;
    let (ours, theirs) = in_turns(
        TURNS,
        async || closed(POSTS.0, POSTS.1, || post(&real, &client, TARGETS)).await,
        async || closed(POSTS.0, POSTS.1, || post(light, &bench.client, TARGETS)).await,
    )
    .await?;
    let count = POSTS.1 * TARGETS;
    let all = |run: &crate::load::Loop| run.cpu.all_ms_per(count);
    let (real_cpu, light_cpu) = (each(&ours, all), each(&theirs, all));
    let of = Compared { ours: &real_cpu, theirs: &light_cpu, unit: "ms" };
    let work = format!("CPU per target of all processes with Temporal on Postgres, {name}");
    report.add(Line::ratio("13", work, Goal::AtMost(1.2), of));
    if let (Some(ours), Some(theirs)) = (ours.last(), theirs.last()) {
        report.note(format!(
            "Row 13, {name}: CPU per target in ms: {}; with the development server: {}; {:.1} against {:.1} posts/s.",
            ours.cpu.profile(count),
            theirs.cpu.profile(count),
            ours.per_second,
            theirs.per_second,
        ));
    }
    Ok(())
}

/// Starts a server with the configuration of the compose file, on the shared Postgres server.
async fn start(program: &str, layout: Layout) -> anyhow::Result<TemporalServer> {
    let mut url: Url = database_url(program).await.parse()?;
    url.set_path("postgres");
    let mut postgres = PgConnection::connect(url.as_str()).await?;
    let (role, password) = ROLE;
    let suffix = if layout == Layout::Single { "single" } else { "split" };
    let mut statements = vec![
        // Of the server before.
        "drop database if exists temporal".to_owned(),
        "drop database if exists temporal_visibility".to_owned(),
    ];
    if layout == Layout::Single {
        statements.push(format!("create role {role} login createdb password '{password}'"));
    }
    for database in ["temporal", "temporal_visibility"] {
        statements.push(format!("create database {database} owner {role}"));
    }
    for statement in statements {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut postgres).await?;
    }
    postgres.close().await?;
    let file = yaml(&deploy::read(deploy::compose::FILE)).remove(0);
    let dynamic = file["configs"]["temporal"]["content"].as_str().context("Temporal's configuration")?;
    let options = TemporalServerOptions {
        version: devstack::versions::TEMPORAL_SERVER,
        layout,
        shards: 128,
        postgres: url.port().context("a port")?,
        role: (role, password.to_owned()),
        dynamic: dynamic.to_owned(),
    };
    let dir = directory().join(format!("temporal-{suffix}"));
    let server = TemporalServer::start(&dir, Path::new(program), &options).await?;
    let address = format!("http://{}", server.address);
    let migrated = Command::new(program)
        .args(["migrate", "--only", "temporal"])
        .env("TEMPORAL_ADDRESS", address)
        .kill_on_drop(true)
        .output()
        .await?;
    if !migrated.status.success() {
        server.end().await?;
        anyhow::bail!("fanfare migrate: {}", String::from_utf8_lossy(&migrated.stderr));
    }
    Ok(server)
}
