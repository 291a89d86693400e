//! The probes `/healthz` and `/readyz` of both roles, while what they depend on comes and goes.

use crate::world;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::net::SocketAddr;
use tests::{
    World, database_url, if_right,
    network::{Proxy, State},
    sql, wait_until,
};
use url::Url;

const PASSED: Value = Value::Null;

async fn probe(world: &World, url: &str, path: &str) -> (StatusCode, Value) {
    let answer = world.http.get(format!("{url}{path}")).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

/// Waits until the readiness probe has a status, and its failed checks are these.
async fn until(world: &World, url: &str, status: StatusCode, failed: &[&str]) -> Value {
    wait_until("the readiness probe", async || {
        let (found, report) = probe(world, url, "/readyz").await;
        let checks = report["checks"].as_object().unwrap();
        let reasons: Vec<_> =
            checks.iter().filter(|(_, check)| check["message"] != PASSED).map(|(name, _)| name).collect();
        if found == status && reasons == failed { Ok(report) } else { Err(format!("{found}: {report}")) }
    })
    .await
}

async fn is_alive(world: &World, url: &str) {
    let (status, report) = probe(world, url, "/healthz").await;
    assert_eq!(status, StatusCode::OK, "{report}");
}

/// Returns the same URL with the address of a proxy.
fn through(url: &str, proxy: &Proxy) -> String {
    let mut url: Url = url.parse().unwrap();
    url.set_port(Some(proxy.address().port())).unwrap();
    url.to_string()
}

fn address(url: &str) -> SocketAddr {
    let url: Url = url.parse().unwrap();
    SocketAddr::from(([127, 0, 0, 1], url.port().unwrap()))
}

#[tokio::test]
async fn the_probes_tell_what_is_away_and_a_process_without_it_is_alive() {
    let mut world = world().running(&[]).start().await;
    let [postgres, temporal] = ["DATABASE_URL", "TEMPORAL_ADDRESS"].map(|name| {
        let url = world.variable(name).to_owned();
        let proxy = Proxy::to(address(&url));
        world.set(name, &through(&url, &proxy));
        proxy
    });
    let api = world.run_watched("api").await;
    let worker = world.run_watched("worker").await;
    let main_port = world.base.trim_end_matches("/api/v1").to_owned();
    for (url, checks) in [
        (&api, &["database", "media", "restored", "schema", "temporal"][..]),
        (&main_port, &["database", "media", "restored", "schema", "temporal"]),
        (&worker, &["database", "media", "restored", "schema", "temporal", "workers"]),
    ] {
        let report = until(&world, url, StatusCode::OK, &[]).await;
        assert_eq!(report["status"], "ok");
        assert_eq!(report["checks"].as_object().unwrap().keys().collect::<Vec<_>>(), checks);
        is_alive(&world, url).await;
    }
    let (_, live) = probe(&world, &api, "/healthz").await;
    assert_eq!(live["checks"].as_object().unwrap().keys().collect::<Vec<_>>(), ["main", "relay", "sweeper"]);

    // Posts are accepted without Temporal, so the API stays where the load balancer finds it.
    for state in [State::Refused, State::Frozen] {
        temporal.set(state);
        until(&world, &worker, StatusCode::SERVICE_UNAVAILABLE, &["temporal"]).await;
        for url in [&api, &main_port] {
            let report = until(&world, url, StatusCode::OK, &["temporal"]).await;
            assert_eq!(report["status"], "degraded");
        }
        for url in [&api, &main_port, &worker] {
            is_alive(&world, url).await;
        }
        temporal.set(State::Open);
        for url in [&api, &worker] {
            until(&world, url, StatusCode::OK, &[]).await;
        }
    }
    for state in [State::Refused, State::Frozen] {
        postgres.set(state);
        for url in [&api, &main_port, &worker] {
            until(&world, url, StatusCode::SERVICE_UNAVAILABLE, &["database", "schema"]).await;
            is_alive(&world, url).await;
        }
        let posts =
            world.http.get(format!("{}/posts", world.base)).bearer_auth(&world.key).send().await.unwrap();
        assert_eq!(
            (posts.status(), &posts.headers()["retry-after"]),
            (StatusCode::SERVICE_UNAVAILABLE, &"5".parse().unwrap())
        );
        let problem: Value = posts.json().await.unwrap();
        assert_eq!(problem["code"], "unavailable", "{problem}");
        postgres.set(State::Open);
        for url in [&api, &main_port, &worker] {
            until(&world, url, StatusCode::OK, &[]).await;
        }
    }
}

/// A volume that another user owns looks like this to a process. A test may run as root, who may write anything, so that
/// a file stands in the way instead.
#[tokio::test]
async fn a_media_directory_that_cannot_be_written_is_told_at_the_start_and_by_the_probe() {
    let mut world = world().running(&[]).start().await;
    let staging = world.files.join("staging");
    let obstruct = || {
        // Empty folders are removed, and the store may have removed this one.
        let _ = std::fs::remove_dir_all(&staging);
        std::fs::create_dir_all(staging.parent().unwrap()).unwrap();
        std::fs::write(&staging, "in the way").unwrap();
    };
    obstruct();
    for command in ["api", "worker"] {
        let ended = world.command(&[command]).await;
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(1), "{command}: {said}");
        assert!(said.contains("FANFARE_MEDIA can't be written"), "{command}: {said}");
    }
    std::fs::remove_file(&staging).unwrap();
    let api = world.run_watched("api").await;
    let worker = world.run_watched("worker").await;
    for url in [&api, &worker] {
        until(&world, url, StatusCode::OK, &[]).await;
    }
    let medium = world.declare(json!({ "filename": "photo.png" })).await;
    obstruct();
    let url = medium["upload_url"].as_str().unwrap();
    let answer = world.http.put(url).body("not a picture").send().await.unwrap();
    let (status, problem): (_, Value) = (answer.status(), answer.json().await.unwrap());
    assert_eq!((status, &problem["code"]), (StatusCode::INTERNAL_SERVER_ERROR, &json!("internal_error")));
    let told = problem.to_string();
    assert!(!told.contains("try again") && !told.contains(world.files.to_str().unwrap()), "{told}");
    let report = until(&world, &worker, StatusCode::SERVICE_UNAVAILABLE, &["media"]).await;
    let message = report["checks"]["media"]["message"].as_str().unwrap();
    assert!(message.contains("can't be written") && !message.contains('/'), "{message}");
    let report = until(&world, &api, StatusCode::OK, &["media"]).await;
    assert_eq!(report["status"], "degraded", "posts without files are accepted");
    std::fs::remove_file(&staging).unwrap();
    for url in [&api, &worker] {
        until(&world, url, StatusCode::OK, &[]).await;
    }
    assert_eq!(world.http.put(url).body("not a picture").send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_command_tells_why_it_has_no_database() {
    let mut world = world().running(&[]).start().await;
    let url: Url = world.variable("DATABASE_URL").parse().unwrap();
    let at = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    let mut elsewhere = url.clone();
    elsewhere.set_path("nowhere");
    for (url, reason) in [
        (
            "postgres://ada:hunter2@127.0.0.1:9/fanfare".to_owned(),
            "Postgres at 127.0.0.1:9 does not answer: connection refused; start it, or correct DATABASE_URL"
                .to_owned(),
        ),
        (
            "postgres://ada@localhost/fanfare?host=/nowhere".to_owned(),
            "Postgres at /nowhere, port 5432 does not answer: ".to_owned(),
        ),
        (
            elsewhere.to_string(),
            format!("Postgres at {at} refuses the connection: database \"nowhere\" does not exist"),
        ),
    ] {
        world.set("DATABASE_URL", &url);
        for command in [&["org", "create", "Ada"][..], &["ops", "stuck"]] {
            let ended = world.command(command).await;
            let said = String::from_utf8(ended.stderr).unwrap();
            assert!(!ended.status.success() && said.contains(&reason), "{command:?}: {said}");
            assert!(said.lines().count() == 1 && !said.contains("hunter2"), "{command:?}: {said}");
        }
    }
}

#[tokio::test]
async fn without_the_schema_or_the_namespace_the_probe_tells_what_to_do() {
    let mut world = world().running(&[]).start().await;
    let migrated = database_url(*crate::PROGRAM).await;
    let mut empty: Url = migrated.parse().unwrap();
    let name = format!("{}_empty", empty.path().trim_start_matches('/'));
    store::create_database(&migrated, &name).await.unwrap();
    empty.set_path(&name);
    let kept = world.set("DATABASE_URL", empty.as_str()).unwrap();
    let namespace = world.set("TEMPORAL_NAMESPACE", "nowhere");
    let api = world.run_watched("api").await;
    let message =
        |report: &Value, check: &str| report["checks"][check]["message"].as_str().unwrap().to_owned();
    let missing = "the namespace in TEMPORAL_NAMESPACE does not exist";
    wait_until("Temporal to be connected", async || {
        let report = until(&world, &api, StatusCode::SERVICE_UNAVAILABLE, &["schema", "temporal"]).await;
        assert_eq!(message(&report, "schema"), "the database has no schema: run `fanfare migrate`");
        if_right(message(&report, "temporal"), |message| message == missing)
    })
    .await;
    is_alive(&world, &api).await;
    assert!(world.command(&["migrate", "--only", "postgres"]).await.status.success());
    until(&world, &api, StatusCode::OK, &["temporal"]).await;

    // As during a deploy in which the migration comes last, or was not finished.
    let db = store::connect(empty.as_str(), 1).await.unwrap();
    for undo in [
        "update _sqlx_migrations set success = false
         where version = (select max(version) from _sqlx_migrations)",
        "delete from _sqlx_migrations where version = (select max(version) from _sqlx_migrations)",
    ] {
        sql(&db, undo).await;
        let report = until(&world, &api, StatusCode::SERVICE_UNAVAILABLE, &["schema", "temporal"]).await;
        let message = message(&report, "schema");
        assert!(message.starts_with("the schema lacks migration "), "{message}");
        assert!(message.ends_with(": run `fanfare migrate`"), "{message}");
    }
    sql(&db, "insert into _sqlx_migrations select 99999999, 'newer', now(), true, '', 0").await;
    until(&world, &api, StatusCode::SERVICE_UNAVAILABLE, &["schema", "temporal"]).await;
    assert!(world.stop("api").await);
    world.set("DATABASE_URL", &kept);
    world.set("TEMPORAL_NAMESPACE", namespace.as_deref().unwrap_or("default"));
}

fn terminate(world: &World) {
    for pid in world.pids() {
        kill(Pid::from_raw(pid.try_into().unwrap()), Signal::SIGTERM).unwrap();
    }
}

#[tokio::test]
async fn a_process_that_stops_is_unready_first() {
    let mut world = world().running(&[]).set("FANFARE_DRAIN", "3600").start().await;
    let api = world.run_watched("api").await;
    let main_port = world.base.trim_end_matches("/api/v1").to_owned();
    terminate(&world);
    for url in [&api, &main_port] {
        until(&world, url, StatusCode::SERVICE_UNAVAILABLE, &["shutdown"]).await;
        is_alive(&world, url).await;
    }
    // The load balancer may not have noticed yet.
    world.connect("x", "ada").await;
    let draft = world.post(json!({ "content": "Late", "accounts": ["ada"], "is_draft": true })).await;
    assert_eq!(draft["status"], "draft");
    // A second signal ends the wait.
    assert!(world.stop("api").await);

    let mut world = world_with_post().await;
    let worker = world.run_watched("worker").await;
    let hold = world
        .hold(json!({ "platform": "x", "method": "POST", "path_prefix": "/2/tweets", "when": "before" }))
        .await;
    world.run_watched("api").await;
    let post = world.post(json!({ "content": "In flight", "accounts": ["ada"] })).await;
    hold.until_held().await;
    let worker_pid = world.pids()[0];
    kill(Pid::from_raw(worker_pid.try_into().unwrap()), Signal::SIGTERM).unwrap();
    wait_until("the worker to be unready", async || {
        let (status, report) = probe(&world, &worker, "/readyz").await;
        let is_stopping = status == StatusCode::SERVICE_UNAVAILABLE && report["checks"]["shutdown"] != PASSED;
        if is_stopping { Ok(()) } else { Err(format!("{status}: {report}")) }
    })
    .await;
    is_alive(&world, &worker).await;
    hold.release().await;
    assert!(world.stop("worker").await);
    world.run_watched("worker").await;
    assert_eq!(world.ended(&post).await["status"], "published");
}

async fn world_with_post() -> World {
    let world = world().running(&[]).start().await;
    world.connect("x", "ada").await;
    world
}
