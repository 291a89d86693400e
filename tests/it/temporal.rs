//! Connections to Temporal, and what `fanfare migrate` prepares there.

mod proxy;

use crate::{PROGRAM, world};
use proxy::{Authority, Demands, NAME, Proxy};
use serde_json::{Value, json};
use std::{
    net::TcpListener,
    path::PathBuf,
    process::{Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};
use tests::{World, if_right, network::Port, wait_until};

/// An API key, which is never to be shown.
const API_KEY: &str = "tmprl-Zq7Xv2kWj9Qp4";

/// A directory of this test.
fn directory(name: &str) -> PathBuf {
    let directory = tests::directory().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// A namespace that does not exist.
fn new_namespace() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("fanfare-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Runs `temporal operator namespace`, and returns its output.
async fn operate(action: &str, namespace: &str) -> String {
    let server = &tests::shared(&PROGRAM).await.temporal_server;
    let mut command = tokio::process::Command::new(&server.program);
    command.args(["operator", "namespace", action, "--namespace", namespace, "--address", &server.address]);
    let output =
        command.args(["--output", "json"]).env_clear().env("HOME", tests::directory()).output().await;
    let output = output.unwrap();
    assert!(output.status.success(), "{action}: {}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8([output.stdout.clone(), output.stderr.clone()].concat()).unwrap()
}

async fn publishes_once(world: &World, content: &str) {
    let post = world.post(json!({ "content": content, "accounts": ["ada"] })).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{content}: {ended:#}");
}

/// Waits until a log contains a text, and returns it.
async fn logged(log: &PathBuf, words: &str) -> String {
    wait_until(words, async || {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        if_right(text, |text| text.contains(words))
    })
    .await
}

#[tokio::test]
async fn posts_are_published_over_mutual_tls_with_an_api_key() {
    let mut world = world().running(&[]).start().await;
    let directory = directory("temporal-tls");
    let (servers, clients) = (Authority::new("Servers"), Authority::new("Clients"));
    let ca = servers.write(directory.join("ca.pem"));
    let [certificate, key] = clients.issue("fanfare").write(&directory, "client");
    let demands =
        Demands { tls: Some((servers.issue(NAME), clients)), api_key: Some(API_KEY), ..Demands::default() };
    let temporal = &tests::shared(&PROGRAM).await.temporal;
    let proxy = Proxy::start(temporal, demands);
    let api_key = directory.join("api-key");
    std::fs::write(&api_key, format!("{API_KEY}\n")).unwrap();
    let settings: [(&str, &str); 8] = [
        ("TEMPORAL_ADDRESS", proxy.address.as_str()),
        ("TEMPORAL_TLS", "true"),
        ("TEMPORAL_TLS_SERVER_CA_CERT_PATH", &ca),
        ("TEMPORAL_TLS_CLIENT_CERT_PATH", &certificate),
        ("TEMPORAL_TLS_CLIENT_KEY_PATH", &key),
        ("TEMPORAL_TLS_SERVER_NAME", NAME),
        ("TEMPORAL_API_KEY_FILE", api_key.to_str().unwrap()),
        ("FANFARE_START_TIMEOUT", "1"),
    ];
    for (name, value) in settings {
        world.set(name, value);
    }
    world.connect("x", "ada").await;
    world.run("all").await;
    publishes_once(&world, "In secret").await;
    assert_eq!(world.accepted("x", "ada").await, 1);
    assert!(proxy.calls() > 10, "{}", proxy.calls());
    let migrated = world.command(&["migrate", "--only", "temporal"]).await;
    assert!(migrated.status.success(), "{}", text(&migrated));
    assert!(world.stop("all").await);

    // A worker that Temporal refuses ends, with the reason.
    let stranger = Authority::new("Strangers");
    let other_ca = stranger.write(directory.join("other-ca.pem"));
    let [other_certificate, other_key] = stranger.issue("fanfare").write(&directory, "other");
    let missing = directory.join("missing.pem").to_str().unwrap().to_owned();
    let plain = format!("http://{}", proxy.address);
    for (changes, expected) in [
        (
            vec![("TEMPORAL_TLS_SERVER_CA_CERT_PATH", other_ca.as_str())],
            "the server's certificate is issued by no CA in TEMPORAL_TLS_SERVER_CA_CERT_PATH",
        ),
        (
            vec![("TEMPORAL_TLS_SERVER_CA_CERT_PATH", "")],
            "the server's certificate is issued by no CA that this machine trusts; set TEMPORAL_TLS_SERVER_CA_CERT_PATH",
        ),
        (
            vec![("TEMPORAL_TLS_SERVER_NAME", "other.example")],
            "the server's certificate is for another name: set TEMPORAL_TLS_SERVER_NAME",
        ),
        (
            vec![("TEMPORAL_TLS_CLIENT_CERT_PATH", ""), ("TEMPORAL_TLS_CLIENT_KEY_PATH", "")],
            "the server requires a client certificate, set TEMPORAL_TLS_CLIENT_CERT_PATH",
        ),
        (
            vec![
                ("TEMPORAL_TLS_CLIENT_CERT_PATH", other_certificate.as_str()),
                ("TEMPORAL_TLS_CLIENT_KEY_PATH", other_key.as_str()),
            ],
            "Temporal at 127.0.0.1:",
        ),
        (
            vec![("TEMPORAL_API_KEY_FILE", ""), ("TEMPORAL_API_KEY", "tmprl-wrong-Kc5Vd8")],
            "refuses the API key in TEMPORAL_API_KEY (Unauthenticated)",
        ),
        (
            vec![("TEMPORAL_API_KEY_FILE", "")],
            "refuses the client certificate in TEMPORAL_TLS_CLIENT_CERT_PATH (Unauthenticated)",
        ),
        (
            vec![("TEMPORAL_TLS_CLIENT_KEY_PATH", "")],
            "a client certificate needs both TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH",
        ),
        (vec![("TEMPORAL_TLS_CLIENT_KEY_PATH", missing.as_str())], "TEMPORAL_TLS_CLIENT_KEY_PATH names "),
        (vec![("TEMPORAL_TLS_CLIENT_KEY_PATH", api_key.to_str().unwrap())], "which is no PEM file"),
        (vec![("TEMPORAL_ADDRESS", plain.as_str())], "TEMPORAL_ADDRESS begins with http://"),
        (vec![("TEMPORAL_ADDRESS", temporal.as_str())], "Temporal at 127.0.0.1:"),
    ] {
        let mut before = Vec::new();
        for (name, value) in &changes {
            before.push((*name, world.set(name, value).unwrap_or_default()));
        }
        let ended = world.command(&["worker"]).await;
        let said = text(&ended);
        assert_eq!(ended.status.code(), Some(1), "{changes:?}: {said}");
        assert!(said.contains(expected), "{changes:?}: {said}");
        for secret in ["Zq7Xv2k", "Kc5Vd8", "PRIVATE"] {
            assert!(!said.contains(secret), "{changes:?}: {said}");
        }
        for (name, value) in before {
            world.set(name, &value);
        }
    }
}

/// Two at once, as when several replicas are deployed.
#[tokio::test]
async fn migrate_creates_the_namespace_and_the_search_attributes_once() {
    let mut world = world().running(&[]).start().await;
    let namespace = new_namespace();
    world.set("TEMPORAL_NAMESPACE", &namespace);
    let arguments = ["migrate", "--retention", "2d"];
    let both = tokio::join!(world.command(&arguments), world.command(&arguments));
    let said = [text(&both.0), text(&both.1)];
    assert!(both.0.status.success() && both.1.status.success(), "{said:?}");
    let created = format!("created the namespace {namespace}, which keeps closed workflows for 48 h");
    assert!(said.iter().any(|said| said.contains(&created)), "{said:?}");
    assert!(said.iter().all(|said| said.contains("Postgres: the schema is current")), "{said:?}");
    let described: Value = serde_json::from_str(&operate("describe", &namespace).await).unwrap();
    assert_eq!(described["config"]["workflowExecutionRetentionTtl"], "172800s", "{described:#}");

    let again = text(&world.command(&["migrate", "--only", "temporal"]).await);
    assert_eq!(again, format!("Temporal: the namespace {namespace} has all search attributes\n"));
    world.connect("x", "ada").await;
    world.run("all").await;
    publishes_once(&world, "In a new namespace").await;
}

#[tokio::test]
async fn migrate_prepares_what_is_configured() {
    let mut world = world().running(&[]).start().await;
    let temporal = world.set("TEMPORAL_ADDRESS", "127.0.0.1:9").unwrap();
    world.set("FANFARE_START_TIMEOUT", "1");
    let postgres = world.command(&["migrate", "--only", "postgres"]).await;
    assert_eq!(text(&postgres), "Postgres: the schema is current\n");
    let both = world.command(&["migrate"]).await;
    assert!(!both.status.success(), "Temporal is away");
    assert!(text(&both).contains("Temporal at 127.0.0.1:9 does not answer"), "{}", text(&both));

    world.set("TEMPORAL_ADDRESS", &temporal);
    let database = world.set("DATABASE_URL", "postgres://fanfare@127.0.0.1:9/fanfare").unwrap();
    let only = world.command(&["migrate", "--only", "temporal"]).await;
    assert_eq!(text(&only), "Temporal: the namespace default has all search attributes\n");
    let both = world.command(&["migrate"]).await;
    let refused =
        "Postgres at 127.0.0.1:9 does not answer: connection refused; start it, or correct DATABASE_URL";
    assert!(text(&both).contains(refused), "{}", text(&both));

    // As before there was anything to prepare in Temporal.
    let mut command = tokio::process::Command::new(*PROGRAM);
    let alone = command.arg("migrate").env_clear().env("DATABASE_URL", database).output().await.unwrap();
    assert!(alone.status.success());
    assert!(
        text(&alone).ends_with("Temporal: not prepared, since TEMPORAL_ADDRESS is not set\n"),
        "{}",
        text(&alone)
    );
}

#[tokio::test]
async fn where_others_manage_the_namespace_migrate_tells_what_to_create() {
    let mut world = world().running(&[]).start().await;
    let temporal = &tests::shared(&PROGRAM).await.temporal;
    let namespace = new_namespace();
    world.set("TEMPORAL_NAMESPACE", &namespace);
    let refused = vec!["/temporal.api.workflowservice.v1.WorkflowService/RegisterNamespace"];
    let proxy = Proxy::start(temporal, Demands { refused, ..Demands::default() });
    let direct = world.set("TEMPORAL_ADDRESS", &proxy.address).unwrap();
    let ended = world.command(&["migrate", "--only", "temporal"]).await;
    let said = text(&ended);
    assert!(!ended.status.success() && said.contains("lets this client create none: create it"), "{said}");

    // Only the attributes are missing.
    let refused = vec!["/temporal.api.operatorservice.v1.OperatorService/"];
    let proxy = Proxy::start(temporal, Demands { refused, ..Demands::default() });
    operate("create", &namespace).await;
    world.set("TEMPORAL_ADDRESS", &proxy.address);
    let ended = world.command(&["migrate", "--only", "temporal"]).await;
    let said = text(&ended);
    let command = format!(
        "tcld namespace search-attributes add --namespace {namespace} --search-attribute \"FanfareOrg=Keyword\""
    );
    assert!(!ended.status.success() && said.contains(&command), "{said}");

    // A client that may not manage them finds out that somebody has created them.
    world.set("TEMPORAL_ADDRESS", &direct);
    assert!(world.command(&["migrate", "--only", "temporal"]).await.status.success());
    world.set("TEMPORAL_ADDRESS", &proxy.address);
    let ended = world.command(&["migrate", "--only", "temporal"]).await;
    assert!(ended.status.success(), "{}", text(&ended));
}

#[tokio::test]
async fn without_a_namespace_the_api_serves_and_a_worker_says_what_to_run() {
    let mut world = world().running(&[]).start().await;
    world.connect("x", "ada").await;
    let namespace = new_namespace();
    world.set("TEMPORAL_NAMESPACE", &namespace);
    let log = directory("temporal-namespace").join("log");
    world.log_to(&log);
    world.run("api").await;
    let post = world.post(json!({ "content": "Before the namespace", "accounts": ["ada"] })).await;
    let missing = format!("Temporal's namespace {namespace} does not exist: run `fanfare migrate`");
    logged(&log, &missing).await;

    world.set("FANFARE_START_TIMEOUT", "1");
    let ended = world.command(&["worker"]).await;
    assert_eq!(ended.status.code(), Some(1));
    assert!(text(&ended).contains(&missing), "{}", text(&ended));

    operate("create", &namespace).await;
    let incomplete =
        format!("Temporal's namespace {namespace} lacks search attributes: run `fanfare migrate`");
    logged(&log, &incomplete).await;

    // A worker that is started too early waits.
    world.set("FANFARE_START_TIMEOUT", "300");
    let mut worker = world.spawn(&["worker"], Stdio::null());
    let migrated = world.command(&["migrate"]).await;
    assert!(migrated.status.success(), "{}", text(&migrated));
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    worker.kill().await.unwrap();
}

#[tokio::test]
async fn a_worker_waits_for_temporal_and_postgres_and_gives_up() {
    let mut world = world().running(&["api"]).start().await;
    world.connect("x", "ada").await;
    let post = world.post(json!({ "content": "Early", "accounts": ["ada"] })).await;
    // A port on which nobody listens yet.
    let port = Port::reserve();
    let address = port.address.to_string();
    let temporal = world.set("TEMPORAL_ADDRESS", &address).unwrap();
    let log = directory("temporal-away").join("log");
    let stderr = std::fs::File::create(&log).unwrap();
    let mut command = tokio::process::Command::new(*PROGRAM);
    command.arg("worker").envs(world.environment().iter().cloned()).stderr(stderr).kill_on_drop(true);
    let mut worker = command.env("FANFARE_START_TIMEOUT", "300").spawn().unwrap();
    logged(&log, &format!("Waiting, since Temporal at {address} does not answer")).await;
    let listener = TcpListener::bind(port.address).unwrap();
    let _proxy = Proxy::on(listener, &tests::shared(&PROGRAM).await.temporal, Demands::default());
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    worker.kill().await.unwrap();

    world.set("FANFARE_START_TIMEOUT", "1");
    world.set("TEMPORAL_ADDRESS", "127.0.0.1:9");
    let gave_up = world.command(&["worker"]).await;
    let said = text(&gave_up);
    assert_eq!(gave_up.status.code(), Some(1), "{said}");
    assert!(
        said.contains("gave up after") && said.contains("Temporal at 127.0.0.1:9 does not answer"),
        "{said}"
    );
    world.set("TEMPORAL_ADDRESS", &temporal);
    world.set("DATABASE_URL", "postgres://fanfare@127.0.0.1:9/fanfare");
    let gave_up = world.command(&["worker"]).await;
    let said = text(&gave_up);
    assert_eq!(gave_up.status.code(), Some(1), "{said}");
    assert!(said.contains("Postgres at 127.0.0.1:9 does not answer: connection refused"), "{said}");
}

#[tokio::test]
async fn without_a_schema_the_api_answers_503_and_a_worker_waits() {
    let mut world = world().running(&[]).start().await;
    tests::sql(&world.db, "drop schema public cascade; create schema public").await;
    world.run("api").await;
    let (status, problem) = world.call(reqwest::Method::GET, "/posts", None).await;
    assert_eq!((status.as_u16(), &problem["code"]), (503, &json!("unavailable")), "{problem:#}");
    world.set("FANFARE_START_TIMEOUT", "1");
    let ended = world.command(&["worker"]).await;
    let said = text(&ended);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("the database has no schema: run `fanfare migrate`"), "{said}");
    assert!(world.command(&["migrate"]).await.status.success());
    world.run("worker").await;
    // The key was in the schema.
    assert_eq!(world.call(reqwest::Method::GET, "/posts", None).await.0, 401);
}

/// As when an API key has expired or a certificate was revoked.
#[tokio::test]
async fn posts_wait_while_temporal_does_not_accept_the_service() {
    let mut world = world().running(&[]).start().await;
    world.connect("x", "ada").await;
    let refused = vec!["/temporal.api.workflowservice.v1.WorkflowService/StartWorkflowExecution"];
    let temporal = &tests::shared(&PROGRAM).await.temporal;
    let proxy = Proxy::start(temporal, Demands { refused, ..Demands::default() });
    let direct = world.set("TEMPORAL_ADDRESS", &proxy.address).unwrap();
    let log = directory("temporal-refused").join("log");
    world.log_to(&log);
    world.run("api").await;
    let post = world.post(json!({ "content": "Before the key is replaced", "accounts": ["ada"] })).await;
    // A message that Temporal refuses for good is parked after eight attempts.
    wait_until("many attempts to send the message", async || {
        let attempts =
            "select coalesce(max(attempts), 0) from outbox where org_id = $1 and parked_at is null";
        let attempts: i32 =
            sqlx::query_scalar(attempts).bind(world.owner.org.0).fetch_one(&world.db).await.unwrap();
        if_right(attempts, |attempts| *attempts > 9)
    })
    .await;
    let waiting = world.get(&format!("/posts/{}", post["id"].as_str().unwrap())).await;
    assert_eq!(waiting["targets"][0]["status"], "pending", "{waiting:#}");
    let said = logged(&log, "PermissionDenied").await;
    assert!(!said.contains("Request unauthorized"), "the server's message may repeat the key: {said}");
    assert!(world.stop("api").await);
    world.set("TEMPORAL_ADDRESS", &direct);
    world.run("all").await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    assert_eq!(world.accepted("x", "ada").await, 1);
}

/// The store that is searched is away, as when all of Temporal starts. Without search attributes Temporal would refuse
/// every workflow for good.
#[tokio::test]
async fn a_namespace_that_cannot_be_checked_is_not_taken_as_prepared_at_once() {
    let mut world = world().running(&[]).start().await;
    world.connect("x", "ada").await;
    let namespace = new_namespace();
    world.set("TEMPORAL_NAMESPACE", &namespace);
    operate("create", &namespace).await;
    let away = vec!["/temporal.api.workflowservice.v1.WorkflowService/CountWorkflowExecutions"];
    let temporal = &tests::shared(&PROGRAM).await.temporal;
    let proxy = Proxy::start(temporal, Demands { away, ..Demands::default() });
    let direct = world.set("TEMPORAL_ADDRESS", &proxy.address).unwrap();
    let log = directory("temporal-unchecked").join("log");
    world.log_to(&log);
    world.run("api").await;
    let post = world.post(json!({ "content": "At a cold start", "accounts": ["ada"] })).await;
    logged(&log, "Temporal can't say whether its namespace is prepared").await;
    world.set("TEMPORAL_ADDRESS", &direct);
    let migrated = world.command(&["migrate"]).await;
    assert!(migrated.status.success(), "{}", text(&migrated));
    // After a while it goes on without an answer: publishing needs no search.
    world.run("worker").await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
}
