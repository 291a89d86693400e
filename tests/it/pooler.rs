//! A pooler between Fanfare and Postgres: the real PgBouncer.

use crate::world;
use serde_json::json;
use std::{path::PathBuf, process::Stdio};
use tests::{World, network::Port, wait_until};
use tokio::process::{Child, Command};
use url::Url;

/// A running PgBouncer in front of a database.
struct Pooler {
    /// URL of the database through it.
    url: String,
    _child: Child,
}

impl Pooler {
    /// Returns the program; `None` where it is not installed.
    fn program() -> Option<PathBuf> {
        let program = tests::program("pgbouncer");
        if program.is_none() {
            tests::skip("PgBouncer is not installed: poolers are not tried");
        }
        program
    }

    /// Starts PgBouncer with its own defaults: it is told of no startup parameter.
    async fn start(program: PathBuf, mode: &str, world: &World) -> Self {
        let database: Url = world.variable("DATABASE_URL").parse().unwrap();
        let dir = tests::directory().join(format!("pooler-{mode}"));
        std::fs::create_dir_all(&dir).unwrap();
        let port = Port::reserve();
        let (host, name) = (database.host_str().unwrap(), database.path().trim_start_matches('/'));
        let configuration = format!(
            "[databases]\n\
             {name} = host={host} port={} user={} password={}\n\
             [pgbouncer]\n\
             listen_addr = {}\nlisten_port = {}\nunix_socket_dir =\n\
             auth_type = any\npool_mode = {mode}\ndefault_pool_size = 60\n",
            database.port().unwrap(),
            database.username(),
            database.password().unwrap(),
            port.address.ip(),
            port.address.port(),
        );
        let file = dir.join("pgbouncer.ini");
        std::fs::write(&file, configuration).unwrap();
        let mut pooler = Command::new(program);
        // It refuses to run as root, and changes to this user after it has read the file.
        if nix::unistd::geteuid().is_root() {
            pooler.args(["--user", "nobody"]);
        }
        let child = pooler.arg("--quiet").arg(&file).stdin(Stdio::null()).kill_on_drop(true).spawn().unwrap();
        let mut url = database;
        url.set_port(Some(port.address.port())).unwrap();
        let url = url.to_string();
        wait_until("PgBouncer", async || store::connect(&url, 1).await).await;
        Self { url, _child: child }
    }
}

#[tokio::test]
async fn a_pooler_that_keeps_sessions_keeps_the_limits_of_statements() {
    let Some(program) = Pooler::program() else { return };
    let mut world = world().running(&[]).start().await;
    let pooler = Pooler::start(program, "session", &world).await;
    let db = store::connect(&pooler.url, 2).await.unwrap();
    for (setting, expected) in
        [("statement_timeout", "15s"), ("idle_in_transaction_session_timeout", "30s"), ("jit", "off")]
    {
        let found: String =
            sqlx::query_scalar("select current_setting($1)").bind(setting).fetch_one(&db).await.unwrap();
        assert_eq!(found, expected, "{setting}");
    }
    db.close().await;

    world.set("DATABASE_URL", &pooler.url);
    for command in ["api", "worker"] {
        world.run(command).await;
    }
    world.connect("x", "ada").await;
    let post = world.post(json!({ "content": "Through a pooler", "accounts": ["ada"] })).await;
    assert_eq!(world.ended(&post).await["status"], "published");
}

#[tokio::test]
async fn a_pooler_that_shares_sessions_is_refused_with_that_reason() {
    let Some(program) = Pooler::program() else { return };
    for mode in ["transaction", "statement"] {
        let mut world = world().running(&[]).start().await;
        let pooler = Pooler::start(program.clone(), mode, &world).await;
        world.set("DATABASE_URL", &pooler.url);
        for command in ["worker", "api"] {
            let ended =
                tokio::time::timeout(tests::PATIENCE, world.command(&[command])).await.expect("it ends");
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert_eq!(ended.status.code(), Some(1), "{command}, {mode}: {said}");
            assert!(
                said.contains("a pooler in front of it gives each transaction another session"),
                "{mode}: {said}"
            );
            assert!(
                !said.contains("gave up"),
                "what needs a change of the configuration is not awaited: {said}"
            );
        }
    }
}
