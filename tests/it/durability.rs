//! A Postgres server that could lose commits, or accepts no writes, is refused.
//!
//! The tests' server syncs nothing to disk, which every other service of the tests allows.

use crate::world;
use reqwest::{Method, StatusCode};
use serde_json::json;
use tests::{World, sql, wait_until};

const UNCHECKED: &str = "FANFARE_UNCHECKED_POSTGRES_SETTINGS";

/// Asserts that no service starts, for this reason.
async fn refused(world: &World, reason: &str) {
    for command in ["worker", "api", "all"] {
        let ended = tokio::time::timeout(tests::PATIENCE, world.command(&[command])).await.expect("it ends");
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success() && errors.contains(reason), "{command}, {reason}: {errors}");
        assert!(
            !errors.contains("gave up"),
            "what needs a change of the configuration is not awaited: {errors}"
        );
    }
}

#[tokio::test]
async fn each_setting_that_could_lose_commits_is_refused() {
    let mut world = world().running(&[]).start().await;
    for (unchecked, reason) in [
        ("full_page_writes,synchronous_commit", "fsync is off"),
        ("fsync,synchronous_commit", "full_page_writes is off"),
        ("fsync,full_page_writes", "synchronous_commit is off"),
        ("wal_level", "is not a valid setting of Postgres that is checked"),
    ] {
        world.set(UNCHECKED, unchecked);
        refused(&world, reason).await;
    }
    world.set(UNCHECKED, "fsync,full_page_writes,synchronous_commit");
    let log = tests::directory().join("unchecked.log");
    world.log_to(&log);
    world.run("api").await;
    let log = std::fs::read_to_string(log).unwrap();
    assert!(
        log.contains("Postgres may lose commits") && log.contains("see fsync, full_page_writes"),
        "{log}"
    );
}

#[tokio::test]
async fn a_server_that_is_a_standby_read_only_or_outdated_is_refused() {
    let mut world = world().running(&[]).start().await;
    // The database answers as another server would.
    sql(
        &world.db,
        "create schema other;
         do $$ begin
           execute format('alter database %I set search_path = other, pg_catalog, public', current_database());
         end $$;",
    )
    .await;
    let setting = |answers: &str| {
        format!(
            "current_setting(name text) returns text language sql return case name {answers} else pg_catalog.current_setting(name) end"
        )
    };
    for (function, unchecked, reason) in [
        (
            setting("when 'server_version_num' then '140021'"),
            "fsync,full_page_writes,synchronous_commit",
            "its version 14 is older than 15",
        ),
        (
            setting("when 'synchronous_commit' then 'local' when 'synchronous_standby_names' then 'two'"),
            "fsync,full_page_writes",
            "synchronous_commit is local although synchronous_standby_names is set",
        ),
    ] {
        world.set(UNCHECKED, unchecked);
        sql(&world.db, &format!("create function other.{function}")).await;
        refused(&world, reason).await;
        sql(&world.db, "drop function other.current_setting(text)").await;
    }
    world.set(UNCHECKED, "fsync,full_page_writes,synchronous_commit");
    sql(&world.db, &read_only(true)).await;
    refused(&world, "default_transaction_read_only is on").await;
}

/// A failover may make it the primary in a moment.
#[tokio::test]
async fn a_standby_is_waited_for() {
    let mut world = world().running(&[]).start().await;
    world.set(UNCHECKED, "fsync,full_page_writes,synchronous_commit");
    sql(
        &world.db,
        "create schema other;
         create function other.pg_is_in_recovery() returns bool language sql return true;
         do $$ begin
           execute format('alter database %I set search_path = other, pg_catalog, public', current_database());
         end $$;",
    )
    .await;
    world.set("FANFARE_START_TIMEOUT", "1");
    let ended = world.command(&["worker"]).await;
    let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
    let reason = "it is a standby in recovery";
    assert!(!ended.status.success() && errors.contains("gave up") && errors.contains(reason), "{errors}");
    world.run("api").await;
    let (status, problem) = world.call(Method::GET, "/posts", None).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{problem}");
    sql(&world.db, "drop function other.pg_is_in_recovery()").await;
    let look = async || match world.call(Method::GET, "/posts", None).await {
        (StatusCode::OK, _) => Ok(()),
        (status, problem) => Err(format!("{status}: {problem}")),
    };
    wait_until("the API to serve", look).await;
}

/// Makes new connections to a database read-only, or writing again, and ends the others, as a failover does.
fn read_only(is_on: bool) -> String {
    format!(
        "begin read write;
         do $$ begin
           execute format('alter database %I set default_transaction_read_only = {is_on}', current_database());
         end $$;
         commit;
         select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid();"
    )
}

#[tokio::test]
async fn a_failover_to_a_server_that_accepts_no_writes_is_waited_out() {
    let world = world().own().start().await;
    world.connect("x", "ada").await;
    let body = json!({ "content": "Once", "accounts": ["ada"], "external_ref": "once" });
    sql(&world.db, &read_only(true)).await;
    let (status, problem) = world.call(Method::POST, "/posts", Some(&body)).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{problem}");
    let writes = read_only(false);
    let look = async || sqlx::raw_sql(sqlx::AssertSqlSafe(writes.clone())).execute(&world.db).await;
    wait_until("the server to accept writes", look).await;
    let look = async || match world.call(Method::POST, "/posts", Some(&body)).await {
        (StatusCode::CREATED | StatusCode::OK, post) => Ok(post),
        (StatusCode::SERVICE_UNAVAILABLE, problem) => Err(problem),
        (status, problem) => panic!("{status}: {problem}"),
    };
    let post = wait_until("the post to be accepted", look).await;
    assert_eq!(world.ended(&post).await["status"], "published");
    assert_eq!(world.accepted("x", "ada").await, 1);
}
