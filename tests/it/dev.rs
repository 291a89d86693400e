//! `fanfare dev`: one command starts all services, without configuration, and stops them at its end.

use crate::PROGRAM;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Stdio,
};
use tests::{PATIENCE, Receiver, if_right, wait_until};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

/// Temporary directory of a test, removed on drop.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = tests::directory().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn command(data: &Path) -> Command {
    let mut command = Command::new(*PROGRAM);
    command.arg("dev").arg("--data-dir").arg(data);
    command.env("FANFARE_RATE_LIMITS", tests::unlimited()).env("FANFARE_TIME_SCALE", "0.01");
    for variable in foreign() {
        command.env_remove(variable);
    }
    command.env("RUST_LOG", "error").env("RUST_BACKTRACE", "0").stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// The variables of a command.
fn variables(of: &str) -> BTreeSet<String> {
    let program = server::command();
    let arguments = program.find_subcommand(of).unwrap().get_arguments();
    arguments.filter_map(|one| Some(one.get_env()?.to_str().unwrap().to_owned())).collect()
}

/// The variables of the processes that `fanfare dev` stands for, without those that it takes.
fn foreign() -> BTreeSet<String> {
    let own = variables("dev");
    let parts = ["api", "worker", "all", "migrate", "sandbox"].into_iter().flat_map(variables);
    parts.filter(|variable| !own.contains(variable)).collect()
}

/// Starts `fanfare dev`, waits for its banner, and returns the process and the content of `dev.json`.
async fn start(data: &Path) -> (Child, Value) {
    let mut child = command(data).args(["--port", "0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let banner = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("curl ") {
                return;
            }
        }
        panic!("`fanfare dev` exited before it was ready");
    };
    tokio::time::timeout(PATIENCE, banner).await.unwrap();
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, manifest(data))
}

fn manifest(data: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(data.join("dev.json")).unwrap()).unwrap()
}

fn signal(pid: &Value, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(pid.as_i64().unwrap()).unwrap()), signal).unwrap();
}

fn runs(pid: &Value) -> bool {
    // A zombie process has no executable.
    std::fs::read_link(format!("/proc/{pid}/exe")).is_ok()
}

async fn post(http: &Client, dev: &Value, content: &str) -> String {
    let url = format!("{}/posts", dev["base_url"].as_str().unwrap());
    let body = json!({ "content": content, "accounts": ["fanfare", "fanfare.bsky.social"] });
    let response =
        http.post(url).bearer_auth(dev["test_key"].as_str().unwrap()).json(&body).send().await.unwrap();
    let (status, post) = (response.status(), response.json::<Value>().await.unwrap());
    assert_eq!(status, StatusCode::CREATED, "{post}");
    post["id"].as_str().unwrap().to_owned()
}

async fn published(http: &Client, dev: &Value, id: &str) -> Value {
    let url = format!("{}/posts/{id}", dev["base_url"].as_str().unwrap());
    let look = async || {
        let answer = http.get(&url).bearer_auth(dev["test_key"].as_str().unwrap()).send().await.unwrap();
        // While Postgres restarts, the status is 503.
        let is_ok = answer.status() == StatusCode::OK;
        let body: Value = answer.json().await.unwrap();
        if_right(body, |body| is_ok && body["status"] == "published")
    };
    wait_until("a published post", look).await
}

async fn accepted(http: &Client, dev: &Value) -> usize {
    let url = format!("{}/_journal?accepted=true", dev["sandbox_url"].as_str().unwrap());
    let journal: Value = http.get(url).send().await.unwrap().json().await.unwrap();
    journal["entries"].as_array().unwrap().len()
}

async fn ended(child: &mut Child) -> bool {
    tokio::time::timeout(PATIENCE, child.wait()).await.unwrap().unwrap().success()
}

#[tokio::test]
async fn one_command_starts_all_services_survives_kills_and_stops_cleanly() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Downloads or builds what is missing, which may take longer than the time-out of a start.
    tests::shared(&PROGRAM).await;
    let dir = Dir::new("dev");
    let http = Client::new();
    let (mut child, dev) = start(&dir.0).await;
    let mut members: Vec<_> = dev.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    let mut promised = [
        "base_url",
        "mcp_url",
        "docs_url",
        "dashboard_url",
        "sign_in_url",
        "operator_token",
        "temporal_ui_url",
        "temporal_address",
        "sandbox_url",
        "database_url",
        "org_id",
        "test_key",
        "live_key",
        "pids",
    ];
    promised.sort_unstable();
    assert_eq!(members, promised);
    // One name, so that the session outlives a login, whose callback is at the base URL.
    for url in members.iter().filter(|member| member.ends_with("_url") && **member != "database_url") {
        assert!(dev[*url].as_str().unwrap().starts_with("http://localhost:"), "{url}: {}", dev[*url]);
    }
    for url in ["docs_url", "temporal_ui_url", "sandbox_url"] {
        let page = http.get(dev[url].as_str().unwrap()).send().await.unwrap();
        assert_eq!(page.status(), StatusCode::OK, "{url}");
    }

    let receiver = Receiver::start().await;
    let url = format!("{}/webhooks", dev["base_url"].as_str().unwrap());
    let body = json!({ "url": receiver.url, "events": ["*"] });
    let hook =
        http.post(url).bearer_auth(dev["test_key"].as_str().unwrap()).json(&body).send().await.unwrap();
    assert_eq!(hook.status(), StatusCode::CREATED);
    let first = post(&http, &dev, "Hello from Fanfare").await;
    let first_post = published(&http, &dev, &first).await;
    for target in first_post["targets"].as_array().unwrap() {
        let page = http.get(target["platform_post_url"].as_str().unwrap()).send().await.unwrap();
        assert!(page.text().await.unwrap().contains("Hello from Fanfare"));
    }
    receiver.events(&["post.target.published", "post.target.published", "post.published"]).await;
    assert_eq!(accepted(&http, &dev).await, 2);

    // While Temporal is down, posts are accepted; they are published after it restarts.
    signal(&dev["pids"]["temporal"], Signal::SIGKILL);
    let second = post(&http, &dev, "While Temporal was away").await;
    published(&http, &dev, &second).await;
    assert_eq!(accepted(&http, &dev).await, 4);
    assert_ne!(manifest(&dir.0)["pids"]["temporal"], dev["pids"]["temporal"]);

    // Postgres is restarted after a kill.
    signal(&dev["pids"]["postgres"], Signal::SIGKILL);
    published(&http, &dev, &second).await;

    // After a kill of the server, the next start stops the remaining processes and keeps all data.
    let last = manifest(&dir.0);
    signal(&dev["pids"]["server"], Signal::SIGKILL);
    ended(&mut child).await;
    let (mut child, dev) = start(&dir.0).await;
    assert_eq!(dev["test_key"], last["test_key"]);
    assert_eq!(dev["org_id"], last["org_id"]);
    assert_eq!(dev["base_url"], last["base_url"], "with --port 0, too");
    published(&http, &dev, &first).await;
    for target in first_post["targets"].as_array().unwrap() {
        let page = http.get(target["platform_post_url"].as_str().unwrap()).send().await.unwrap();
        assert_eq!(page.status(), StatusCode::OK, "links still work");
    }
    let third = post(&http, &dev, "After the kill").await;
    published(&http, &dev, &third).await;
    assert_eq!(accepted(&http, &dev).await, 6);

    // In its time scale four retries take seconds instead of minutes.
    let retried = post(&http, &dev, "Again #sandbox-503x4").await;
    published(&http, &dev, &retried).await;

    // A second start in the same directory fails and changes nothing.
    let refused = command(&dir.0).args(["--port", "0"]).output().await.unwrap();
    assert!(!refused.status.success());
    let sentence = String::from_utf8(refused.stderr).unwrap();
    assert!(sentence.contains("in use") && sentence.trim().lines().count() == 1, "{sentence}");

    signal(&dev["pids"]["server"], Signal::SIGINT);
    assert!(ended(&mut child).await, "Ctrl-C exits with success");
    for process in ["server", "temporal", "postgres"] {
        assert!(!runs(&dev["pids"][process]), "{process} was left running");
    }
}

/// Runs a start that must fail and returns its error message.
async fn refusal(data: &Path, port: &str, env: (&str, &str)) -> String {
    let output = command(data).args(["--port", port]).env(env.0, env.1).output();
    let output = tokio::time::timeout(PATIENCE, output).await.unwrap().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn a_variable_of_its_parts_is_taken_or_refused() {
    let dir = Dir::new("dev-variables");
    // Variables that it determines itself. A new setting is either in its settings or here.
    let expected = [
        "DATABASE_URL",
        "FANFARE_API_ROLE",
        "FANFARE_BASE_URL",
        "FANFARE_BUILD_ID",
        "FANFARE_DEPLOYMENT",
        "FANFARE_LISTEN",
        "FANFARE_OPEN_KEYS",
        "FANFARE_OPERATOR_TOKEN",
        "FANFARE_RETENTION",
        "FANFARE_SANDBOX_DATA",
        "FANFARE_SANDBOX_LISTEN",
        "FANFARE_SANDBOX_MEDIA",
        "FANFARE_SANDBOX_TOKEN",
        "FANFARE_SANDBOX_URL",
        "FANFARE_SEAL_KEY",
        "FANFARE_SECRET",
        "FANFARE_SHARED_CLIENTS",
        "FANFARE_START_TIMEOUT",
        "FANFARE_TEMPORAL_UI",
        "FANFARE_UNCHECKED_POSTGRES_SETTINGS",
        "FANFARE_WORKER_ROLE",
        "TEMPORAL_ADDRESS",
        "TEMPORAL_API_KEY",
        "TEMPORAL_NAMESPACE",
        "TEMPORAL_TLS",
        "TEMPORAL_TLS_CLIENT_CERT_PATH",
        "TEMPORAL_TLS_CLIENT_KEY_PATH",
        "TEMPORAL_TLS_SERVER_CA_CERT_PATH",
        "TEMPORAL_TLS_SERVER_NAME",
    ];
    assert_eq!(foreign(), expected.map(str::to_owned).into());
    let refused = async |variables: &[(&str, &str)]| {
        let data = dir.0.join("data");
        let output = command(&data).envs(variables.iter().copied()).output();
        let output = tokio::time::timeout(PATIENCE, output).await.unwrap().unwrap();
        assert!(!output.status.success() && !data.exists(), "nothing was begun");
        String::from_utf8(output.stderr).unwrap()
    };
    let all = expected.map(|variable| (variable, "postgres://a"));
    let sentence = refused(&all).await;
    for variable in expected {
        assert!(
            sentence.contains(&format!("{variable},")) || sentence.contains(&format!("{variable}:")),
            "{sentence}"
        );
    }
    // Secrets can be in files.
    let sentence = refused(&[("FANFARE_SECRET_FILE", "/nowhere"), ("FANFARE_LISTEN", "")]).await;
    assert!(sentence.contains("FANFARE_SECRET_FILE") && !sentence.contains("FANFARE_LISTEN"), "{sentence}");
}

#[tokio::test]
async fn a_failed_start_names_the_cause_and_leaves_nothing_running() {
    tests::shared(&PROGRAM).await;
    let dir = Dir::new("dev-refusals");
    let none = ("RUST_LOG", "error");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let sentence = refusal(&dir.0.join("port"), &port, none).await;
    assert!(sentence.contains(&port), "{sentence}");

    let file = dir.0.join("file");
    std::fs::write(&file, "").unwrap();
    let sentence = refusal(&file.join("data"), "0", none).await;
    assert!(sentence.contains("is not writable"), "{sentence}");

    let horizon = ("FANFARE_SCHEDULING_HORIZON", "0");
    let sentence = refusal(&dir.0.join("horizon"), "0", horizon).await;
    assert!(sentence.contains("FANFARE_SCHEDULING_HORIZON is 0 s"), "{sentence}");

    let sentence = refusal(&dir.0.join("postgres"), "0", ("PG_BIN", "/nowhere")).await;
    assert!(sentence.contains("/nowhere"), "{sentence}");

    let data = dir.0.join("temporal");
    let sentence = refusal(&data, "0", ("TEMPORAL_CLI", "/nowhere")).await;
    assert!(sentence.contains("/nowhere"), "{sentence}");
    let postgres = data.canonicalize().unwrap().join("postgres/data");
    let left = std::fs::read_dir("/proc").unwrap().flatten().any(|process| {
        std::fs::read_to_string(process.path().join("cmdline"))
            .is_ok_and(|line| line.contains(postgres.to_str().unwrap()))
    });
    assert!(!left, "Postgres was left running");
}
