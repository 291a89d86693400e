//! The alert rules and the dashboard, evaluated by a real Prometheus that scrapes real processes.
//!
//! Each alert fires because its condition was provoked. Only `for` is shortened, and the mode is `test`, since that is
//! the one that publishes to the sandbox.

use crate::{pages::anchors, world};
use chrono::{Duration as Delta, Months};
use domain::{Mode, Owner, scope::Scope};
use regex::Regex;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};
use store::people::keys;
use telemetry::metrics::{ALL, Kind};
use tests::{
    World, directory, if_right,
    network::{Port, Proxy, State},
    sql, temporal, wait_until,
};
use tokio::process::{Child, Command};
use url::Url;

/// Beginning of a runbook's address.
const BASE: &str = "{{ $externalLabels.fanfare_docs }}";
/// Address at which the operators of the tests read the pages.
const DOCS: &str = "https://docs.example.com/fanfare/";

fn file(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)).unwrap()
}

/// Returns the alerts of the rules, each with its runbook.
fn alerts() -> Vec<(String, String)> {
    let rules = file("deploy/observability/alerts.yml");
    let value = |line: &str, key: &str| {
        line.trim().strip_prefix(key).map(|value| value.trim().trim_matches('"').replace(BASE, "docs/"))
    };
    let names = rules.lines().filter_map(|line| value(line, "- alert:"));
    let runbooks = rules.lines().filter_map(|line| value(line, "runbook_url:"));
    let all: Vec<_> = names.zip(runbooks).collect();
    assert!(all.len() > 10, "{all:?}");
    all
}

/// Returns the expressions of the dashboard, for any interval.
fn expressions() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&file("deploy/observability/grafana.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap().replace("$__rate_interval", "5m")).collect()
}

#[test]
fn each_alert_has_a_runbook_and_each_expression_names_metrics_that_exist() {
    let page = file("docs/observability.md");
    for (alert, runbook) in alerts() {
        let (path, heading) = runbook.split_once('#').unwrap();
        let known = anchors(&file(path));
        assert!(known.contains(heading), "{alert}: {path} has no heading for #{heading}: {known:?}");
    }
    for (alert, _) in alerts() {
        assert!(page.contains(&format!("| {alert} |")), "docs/observability.md does not list {alert}");
    }
    let known: BTreeSet<String> = ALL
        .iter()
        .flat_map(|metric| match metric.kind {
            Kind::Histogram(_) => {
                ["_bucket", "_sum", "_count"].map(|end| format!("{}{end}", metric.name)).to_vec()
            }
            Kind::Counter | Kind::Gauge => vec![metric.name.to_owned()],
        })
        .collect();
    let names = Regex::new(r"\bfanfare_[a-z0-9_]+").unwrap();
    let texts = [file("deploy/observability/alerts.yml").replace(BASE, "")].into_iter().chain(expressions());
    let mut found = 0;
    for text in texts {
        for name in names.find_iter(&text) {
            assert!(known.contains(name.as_str()), "{} does not exist: {text}", name.as_str());
            found += 1;
        }
    }
    assert!(found > 30, "only {found} names were found");
}

/// A Prometheus server.
struct Prometheus {
    url: String,
    http: reqwest::Client,
    _child: Child,
}

impl Prometheus {
    /// Returns the program; `None` where it is not installed.
    fn program() -> Option<PathBuf> {
        let program = tests::program("prometheus");
        if program.is_none() {
            tests::skip("Prometheus is not installed: the alerts are not tried");
        }
        program
    }

    /// Starts a server that scrapes these processes, with the rules.
    async fn start(program: &Path, name: &str, processes: &[&str]) -> Self {
        let dir = directory().join(format!("prometheus-{name}"));
        fs::create_dir_all(&dir).unwrap();
        let rules = Regex::new(r"(?m)^( +for:) .*$").unwrap();
        let rules = rules.replace_all(&file("deploy/observability/alerts.yml"), "$1 0s").into_owned();
        fs::write(dir.join("alerts.yml"), rules.replace("mode=\"live\"", "mode=\"test\"")).unwrap();
        let targets: Vec<_> = processes.iter().map(|url| url.trim_start_matches("http://")).collect();
        // JSON is YAML. An API whose database hangs takes its time limit of two seconds for an answer.
        let configuration = json!({
            "global": {
                "scrape_interval": "3s", "scrape_timeout": "3s", "evaluation_interval": "1s",
                "external_labels": { "fanfare_docs": DOCS },
            },
            "rule_files": [dir.join("alerts.yml")],
            "scrape_configs": [{ "job_name": "fanfare", "static_configs": [{ "targets": targets }] }],
        });
        fs::write(dir.join("prometheus.yml"), configuration.to_string()).unwrap();
        let port = Port::reserve();
        let child = Command::new(program)
            .arg(format!("--config.file={}", dir.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", dir.join("data").display()))
            .arg(format!("--web.listen-address={}", port.address))
            .arg("--log.level=error")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { url: format!("http://{}/api/v1", port.address), http: reqwest::Client::new(), _child: child }
    }

    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, String> {
        let url = Url::parse_with_params(&format!("{}{path}", self.url), query).unwrap();
        let answer = self.http.get(url).send().await.map_err(|error| error.to_string())?;
        answer.json().await.map_err(|error| error.to_string())
    }

    /// Returns the names of the alerts that fire.
    async fn firing(&self) -> Result<BTreeSet<String>, String> {
        let answer = self.get("/alerts", &[]).await?;
        let alerts = answer["data"]["alerts"].as_array().ok_or_else(|| answer.to_string())?;
        for alert in alerts {
            let texts = alert["annotations"].to_string();
            assert!(!texts.contains("<error") && !texts.contains("<no value>"), "{alert:#}");
            let runbook = alert["annotations"]["runbook_url"].as_str().unwrap();
            assert!(runbook.strip_prefix(DOCS).is_some_and(|page| page.contains(".md#")), "{runbook}");
        }
        let firing = alerts.iter().filter(|alert| alert["state"] == "firing");
        Ok(firing.map(|alert| alert["labels"]["alertname"].as_str().unwrap().to_owned()).collect())
    }

    /// Waits until all of these fire.
    async fn until_firing(&self, alerts: &[&str]) {
        wait_until(&format!("{alerts:?} to fire"), async || {
            let firing = self.firing().await?;
            if alerts.iter().all(|alert| firing.contains(*alert)) {
                Ok(())
            } else {
                Err(format!("{firing:?}"))
            }
        })
        .await;
    }

    /// Waits until an alert fires no more.
    async fn until_silent(&self, alert: &str) {
        wait_until(&format!("{alert} to end"), async || {
            let firing = self.firing().await?;
            if firing.contains(alert) { Err(format!("{firing:?}")) } else { Ok(()) }
        })
        .await;
    }
}

/// Puts a proxy before the server of a setting.
fn proxy(world: &mut World, name: &str) -> Proxy {
    let mut url: Url = world.variable(name).parse().unwrap();
    let proxy = Proxy::to(([127, 0, 0, 1], url.port().unwrap()).into());
    url.set_port(Some(proxy.address().port())).unwrap();
    world.set(name, url.as_str());
    proxy
}

#[tokio::test]
async fn an_installation_without_processes_raises_an_alert() {
    let Some(program) = Prometheus::program() else { return };
    let prometheus = Prometheus::start(&program, "empty", &[]).await;
    prometheus.until_firing(&["FanfareDown"]).await;
    let answer = prometheus.get("/alerts", &[]).await.unwrap();
    let alerts = answer["data"]["alerts"].as_array().unwrap();
    let down = alerts.iter().find(|alert| alert["labels"]["alertname"] == "FanfareDown").unwrap();
    let description = &down["annotations"]["description"];
    assert!(description.as_str().unwrap().starts_with("No process is scraped: "), "{description}");
}

#[tokio::test]
async fn each_alert_fires_when_its_condition_is_met() {
    let Some(program) = Prometheus::program() else { return };
    let mut world = world().running(&[]).set("FANFARE_DATABASE_CONNECTIONS", "4").start().await;
    let to_temporal = proxy(&mut world, "TEMPORAL_ADDRESS");
    let bob = world.connect("x", "bob").await;
    for username in ["ada", "cy", "dee"] {
        world.connect("x", username).await;
    }
    let api = world.run_watched("api").await;
    let worker = world.run_watched("worker").await;
    let name = world.owner.org.to_string();
    let prometheus = Prometheus::start(&program, &name, &[&api, &worker]).await;
    wait_until("both to be scraped", async || {
        let scraped = prometheus.get("/query", &[("query", "count(fanfare_build_info)")]).await?;
        if_right(scraped, |scraped| scraped["data"]["result"][0]["value"][1] == "2")
            .map_err(|seen| seen.to_string())
    })
    .await;
    wait_until("nothing to fail", async || {
        let firing = prometheus.firing().await?;
        if firing.is_empty() { Ok(()) } else { Err(format!("{firing:?}")) }
    })
    .await;
    for expression in expressions() {
        let answer = prometheus.get("/query", &[("query", &expression)]).await.unwrap();
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
    }
    let mut tried = BTreeSet::new();
    let mut fired = |alerts: &[&'static str]| tried.extend(alerts.iter().copied());

    // Calls fail: an endpoint that is gone, a platform that is down, users who revoked their grants.
    let endpoint = world.subscribe("http://127.0.0.1:9/gone").await;
    let failing = ["FanfarePlatformFailing", "FanfareDeliveriesFailing", "FanfareGrantRenewalsFailing"];
    let tomorrow = tests::now() + Delta::days(1);
    world.post(json!({ "content": "Tomorrow", "accounts": ["bob"], "scheduled_at": tomorrow })).await;
    for username in ["bob", "cy", "dee"] {
        world.revoke_grants("x", username).await;
        let post = world.post(json!({ "content": "Revoked", "accounts": [username] })).await;
        world.ended(&post).await;
    }
    wait_until("what fails to be noticed", async || {
        let down = world.post(json!({ "content": "Down #sandbox-503", "accounts": ["ada"] })).await;
        world.ended(&down).await;
        let firing = prometheus.firing().await?;
        if failing.iter().all(|alert| firing.contains(*alert)) { Ok(()) } else { Err(format!("{firing:?}")) }
    })
    .await;
    fired(&failing);
    let path = format!("/webhooks/{}", endpoint["id"].as_str().unwrap());
    assert!(world.call(reqwest::Method::DELETE, &path, None).await.0.is_success());

    // A server that never answers takes every slot for media files. An organization gets at most as many as are free
    // after it, so that only further ones take the last.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/a.png", silent.local_addr().unwrap());
    let import = async |files: usize| {
        let org = store::people::organizations::create(&world.db, "Another").await.unwrap();
        let owner = Owner { org, mode: Mode::Test };
        let new = keys::NewKey { owner, name: "a".into(), scopes: vec![Scope::All], expires_at: None };
        let (_, key) = keys::create(&world.db, new, tests::now()).await.unwrap();
        for _ in 0..files {
            let import = world.http.post(format!("{}/media/import", world.base)).bearer_auth(&key);
            let answer = import.json(&json!({ "url": url })).send().await.unwrap();
            assert_eq!(answer.status(), reqwest::StatusCode::ACCEPTED);
        }
    };
    import(8).await;
    wait_until("all slots to be taken", async || {
        import(1).await;
        let firing = prometheus.firing().await?;
        if firing.contains("FanfareWorkerSlotsExhausted") { Ok(()) } else { Err(format!("{firing:?}")) }
    })
    .await;
    fired(&["FanfareWorkerSlotsExhausted"]);
    drop(silent);
    prometheus.until_silent("FanfareWorkerSlotsExhausted").await;

    // A workflow that this version does not know.
    let queue = world.variable("FANFARE_TASK_QUEUE").to_owned();
    let of = ["--workflow-id", &format!("newer-{name}")];
    let start = ["workflow", "start", "--type", "Newer", "--task-queue", &queue];
    temporal(*crate::PROGRAM, &[&start[..], &of].concat()).await;
    prometheus.until_firing(&["FanfareWorkflowTasksFailing"]).await;
    fired(&["FanfareWorkflowTasksFailing"]);
    temporal(*crate::PROGRAM, &[&["workflow", "terminate"][..], &of].concat()).await;

    // Temporal is away; the clock of the rows is set, so that nobody has to wait.
    to_temporal.set(State::Refused);
    let late = world.post(json!({ "content": "Late", "accounts": ["ada"] })).await;
    let hour = "interval '1 hour'";
    let id = late["id"].as_str().unwrap();
    sql(
        &world.db,
        &format!(
            "update outbox set created_at = created_at - {hour};
             update posts set created_at = created_at - {hour} where id = '{id}'"
        ),
    )
    .await;
    let away = ["FanfareCheckFailing", "FanfareOutboxStuck", "FanfarePostsOverdue"];
    prometheus.until_firing(&away).await;
    fired(&away);
    sql(&world.db, "update outbox set parked_at = now(), error = 'tried'").await;
    prometheus.until_firing(&["FanfareOutboxParked"]).await;
    fired(&["FanfareOutboxParked"]);
    // The sweeper writes messages for the overdue rows again.
    sql(&world.db, "delete from outbox where parked_at is not null").await;
    to_temporal.set(State::Open);
    assert_eq!(world.ended(&late).await["status"], "published");
    for alert in away {
        prometheus.until_silent(alert).await;
    }

    // Statements wait for a lock, and requests for a connection.
    let mut lock = store::begin(&world.db).await.unwrap();
    // Prometheus may look only after the server would have ended the transaction.
    let hold = "set local idle_in_transaction_session_timeout = 0; lock table posts, accounts in access exclusive mode";
    sqlx::raw_sql(hold).execute(&mut *lock).await.unwrap();
    let clients = (0..12).map(|_| {
        let request = world.http.get(format!("{}/posts", world.base)).bearer_auth(&world.key);
        tokio::spawn(async move {
            loop {
                let _ = request.try_clone().unwrap().send().await;
            }
        })
    });
    let clients: Vec<_> = clients.collect();
    let locked =
        ["FanfareDatabasePoolExhausted", "FanfareBacklogUnknown", "FanfareApiErrors", "FanfareApiSlow"];
    for alert in locked {
        prometheus.until_firing(&[alert]).await;
    }
    fired(&locked);
    clients.iter().for_each(tokio::task::JoinHandle::abort);
    lock.rollback().await.unwrap();
    prometheus.until_silent("FanfareBacklogUnknown").await;

    // A version that ends within weeks: that of eleven months ago, and there is none of December.
    let version = |months| (tests::now() - Months::new(months)).format("%Y%m").to_string();
    let version = Some(version(11)).filter(|month| !month.ends_with("12")).unwrap_or_else(|| version(12));
    world.kill("worker").await;
    world.set("FANFARE_LINKEDIN_VERSION", &version);
    world.run("worker").await;
    prometheus.until_firing(&["FanfareApiVersionEnding"]).await;
    fired(&["FanfareApiVersionEnding"]);

    // No worker runs.
    world.kill("worker").await;
    world.subscribe("http://127.0.0.1:9/gone").await;
    let waiting = world.post(json!({ "content": "Waits", "accounts": ["ada"] })).await;
    // Its post of tomorrow ends, which is an event.
    let path = format!("/social-accounts/{bob}");
    assert!(world.call(reqwest::Method::DELETE, &path, None).await.0.is_success());
    let (id, target) = (waiting["id"].as_str().unwrap(), waiting["targets"][0]["id"].as_str().unwrap());
    sql(
        &world.db,
        &format!(
            "update posts set created_at = created_at - {hour}, status = 'publishing' where id = '{id}';
             update targets set status = 'failed', next_attempt_at = now() - {hour} where id = '{target}';
             update deliveries set created_at = created_at - {hour}, next_attempt_at = null
             where status = 'pending';
             update accounts set granted_at = now() - {hour}, token_expires_at = now() + interval '1 minute'
             where username = 'ada';
             insert into app_holds (app, platform, mode, message, since, until)
             values ('x', 'x', 'test', 'spent', now(), now() + interval '1 hour')"
        ),
    )
    .await;
    let idle = [
        "FanfareDown",
        "FanfareRoleMissing",
        "FanfareTargetsOverdue",
        "FanfareDeliveriesOverdue",
        "FanfareAccountsUnrenewed",
        "FanfareAppRefused",
    ];
    prometheus.until_firing(&idle).await;
    fired(&idle);

    // Its only target has ended without it.
    let ended = format!(
        "update targets set status = 'dead', error_message = 'refused', next_attempt_at = null where id = '{target}'"
    );
    sql(&world.db, &ended).await;
    prometheus.until_firing(&["FanfarePostsUnending"]).await;
    fired(&["FanfarePostsUnending"]);

    let all: BTreeSet<_> = alerts().into_iter().map(|(alert, _)| alert).collect();
    assert_eq!(tried, all.iter().map(String::as_str).collect(), "each alert was tried");
}
