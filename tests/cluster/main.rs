//! A cluster under load, whose processes are killed and restarted.
//!
//! The cluster is that of `just cluster`: the services of the compose file with the environment that it passes, each
//! with its own database role, on a real Temporal server. It takes minutes, so `cargo test` leaves it out: CI runs the
//! short form, `just cluster-test` the full one.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test has an HTTP client of its own and fails by panicking"
)]

extern crate fanfare_tests as tests;

mod client;
mod everywhere;
mod load;

use client::Client;
use devstack::{Layout, versions::NEWEST_TEMPORAL_SERVER};
use load::Load;
use nix::sys::signal::Signal;
use reqwest::{Method, StatusCode};
use serde_json::json;
use sqlx::{PgPool, postgres::PgPoolOptions};
use std::{path::Path, time::Duration};
use tests::{
    Receiver,
    cluster::{APIS, Cluster, ClusterOptions, WORKERS, until_none},
    login, now, proof, wait_until,
};

/// Interval of the load: what the machines of CI publish in turn, and not what they can do.
const EVERY: Duration = Duration::from_millis(400);
/// Ceiling of the bucket whose sharing is tested.
const CEILING: u32 = 40;
/// Window of that bucket, in seconds.
const WINDOW: i64 = 3600;
/// Publishing calls that the sandbox holds while a worker is killed.
const HELD: usize = 8;

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_fanfare-under-test"))
}

/// Returns limits that the load does not reach, except that of profiles.
fn rate_limits() -> String {
    let mut limits: serde_json::Value = serde_json::from_str(&tests::unlimited()).unwrap();
    limits["profiles"] = json!({ "limit": CEILING, "window": WINDOW });
    limits.to_string()
}

async fn start(name: &str) -> Cluster {
    let env = [
        ("FANFARE_EGRESS_ALLOW", "127.0.0.0/8".to_owned()),
        ("FANFARE_RATE_LIMITS", rate_limits()),
        // Its calls would appear in the journals.
        ("FANFARE_COLLECT_EVERY", "0".to_owned()),
        (
            "RUST_LOG",
            "info,temporalio_sdk_core=error,temporalio_sdk=error,temporalio_client=error,sqlx=warn"
                .to_owned(),
        ),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value)).into();
    let layout = if proof::is_full() { Layout::Split } else { Layout::Single };
    let options = ClusterOptions { env, layout, ..ClusterOptions::default() };
    Cluster::start(program(), &tests::directory().join(name), options).await.unwrap()
}

fn connect(url: &str) -> PgPool {
    PgPoolOptions::new().max_connections(2).connect_lazy(url).unwrap()
}

/// One test, since a cluster takes its time to start, and two would share the machine.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_loses_and_repeats_nothing_while_its_processes_are_killed_and_restarted() {
    let cluster = start("cluster").await;
    eprintln!("{} the cluster is up: {}", now().format("%T"), cluster.path("").display());
    roles_have_no_more_rights_than_they_need(&cluster).await;
    a_rate_limit_is_shared(&cluster).await;
    a_session_is_valid_on_every_api(&cluster).await;
    if proof::is_full() {
        everywhere::every_platform_publishes(&cluster).await;
    }
    let cluster = nothing_is_lost_or_repeated(cluster).await;
    cluster.end().await.unwrap();
}

/// Both processes of the API and both workers run as these roles.
async fn roles_have_no_more_rights_than_they_need(cluster: &Cluster) {
    for (role, refused) in [("api", true), ("worker", false)] {
        let db = connect(&cluster.database_url_of(role));
        let code = async |statement: &'static str| {
            let error = sqlx::raw_sql(statement).execute(&db).await.err()?;
            error.as_database_error().and_then(|error| error.code()).map(|code| code.into_owned())
        };
        assert_eq!(code("select count(id) from accounts").await, None, "{role}");
        for sealed in [
            "select grant_sealed from accounts",
            "select secret_sealed from networks",
            "select secret_sealed from webhooks",
            "select grants_sealed from pending_logins",
        ] {
            assert_eq!(code(sealed).await, refused.then(|| "42501".to_owned()), "{role}: {sealed}");
        }
        for forbidden in [
            "create table intruder (id int)",
            "drop table targets",
            "alter table posts add column intruder int",
            "truncate posts",
            "delete from _sqlx_migrations",
            "copy posts to program 'true'",
        ] {
            assert_eq!(code(forbidden).await.as_deref(), Some("42501"), "{role}: {forbidden}");
        }
        let temporal = connect(&cluster.database_url_of(role).replace("/fanfare", "/temporal"));
        temporal.acquire().await.unwrap_err();
        db.close().await;
    }
}

async fn a_rate_limit_is_shared(cluster: &Cluster) {
    loop {
        let client = Client::new(cluster, "Limited").await;
        let window = || now().timestamp() / WINDOW;
        let before = window();
        let calls = (0..CEILING + 20).map(|number| {
            let (client, body) = (&client, json!({ "name": format!("profile {number}") }));
            async move { client.once(number as usize, Method::POST, "/profiles", &body).await }
        });
        let answers = futures::future::join_all(calls).await;
        if window() == before {
            let count = |status| answers.iter().filter(|(answer, _)| *answer == status).count();
            let counts = (count(StatusCode::CREATED), count(StatusCode::TOO_MANY_REQUESTS));
            assert_eq!(counts, (CEILING as usize, 20), "{answers:?}");
            return;
        }
    }
}

async fn a_session_is_valid_on_every_api(cluster: &Cluster) {
    let organization = cluster.create_organization("Signed in").await.unwrap();
    let cookie = login::sign_in_at(&cluster.bases[0], &organization.test_key).await;
    for base in &cluster.bases {
        let page = base.replace("/api/v1", "/dashboard");
        let answer = login::browser().get(&page).header("cookie", &cookie).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{page}");
    }
}

async fn nothing_is_lost_or_repeated(cluster: Cluster) -> Cluster {
    let db = connect(&cluster.database_url());
    let client = Client::new(&cluster, "Under load").await;
    let receiver = Receiver::start().await;
    let accounts = client.connect_three().await;
    let hook = json!({ "url": receiver.url, "events": ["*"] });
    let (status, hook) = client.once(0, Method::POST, "/webhooks", &hook).await;
    assert_eq!(status, StatusCode::CREATED, "{hook}");
    let load = Load::start(client.clone(), accounts.clone(), EVERY);
    let step = async |what: &str| {
        eprintln!("{} {what}", now().format("%T"));
        load.acknowledged(5).await;
    };

    step("all processes run").await;
    let held = client.hold(&accounts, HELD).await;
    kill_a_worker_that_publishes(&cluster, &client, &held).await;
    step("a worker was killed with calls in flight").await;
    cluster.restart(APIS[0], Signal::SIGKILL).await;
    step("an API was killed").await;
    for name in WORKERS.into_iter().chain(APIS) {
        cluster.restart(name, Signal::SIGTERM).await;
    }
    step("all processes were replaced in turn").await;
    if proof::is_full() {
        for name in ["temporal-history-1", "temporal-frontend", "temporal-matching-2"] {
            cluster.kill_temporal(name).await;
            step(&format!("{name} was killed")).await;
        }
    } else {
        cluster.kill_temporal("temporal").await;
        step("Temporal was killed").await;
    }
    cluster.kill_postgres().await;
    step("Postgres was killed").await;
    let cluster = if proof::is_full() {
        let cluster = cluster.replace_temporal(NEWEST_TEMPORAL_SERVER, Layout::Single).await.unwrap();
        step("Temporal was replaced by the newest version").await;
        everywhere::every_platform_publishes(&cluster).await;
        cluster
    } else {
        cluster
    };

    let ended = load.end().await;
    eprintln!(
        "{} {} posts were acknowledged; failed calls: {:?}",
        now().format("%T"),
        ended.posts.len(),
        ended.failed
    );
    until_none(
        &db,
        "all targets to be published",
        "select count(*) from targets where status <> 'published'",
    )
    .await;
    until_none(&db, "the outbox to be empty", "select count(*) from outbox").await;
    until_none(
        &db,
        "all deliveries to be made",
        "select count(*) from deliveries where status in ('pending', 'delivering')",
    )
    .await;
    load::check(&client, &accounts, &ended, &held, &receiver).await;
    cluster
}

/// Kills a worker whose publishing calls the sandbox holds, and lets the calls of the other one go on.
async fn kill_a_worker_that_publishes(cluster: &Cluster, client: &Client, held: &client::Held) {
    held.until_all_are_held(client).await;
    for name in WORKERS {
        cluster.restart(name, Signal::SIGKILL).await;
        // The sandbox notices that the worker has hung up. Each of the calls is one worker's or the other's.
        let dropped = wait_until("the sandbox to notice", async || {
            let dropped = held.dropped(client).await;
            if dropped > 0 || name == WORKERS[0] { Ok(dropped) } else { Err("none is dropped") }
        })
        .await;
        if dropped > 0 {
            eprintln!("{dropped} of {HELD} calls in flight were {name}'s");
            break;
        }
    }
    held.release(client).await;
}
