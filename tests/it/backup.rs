//! Backup and restore of a running service, by the commands of `docs/backup.md`, with Temporal kept and Temporal empty.

use crate::{PROGRAM, world};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};
use temporalio_client::WorkflowExecutionStatus;
use temporalio_common::UntypedWorkflow;
use tests::{Servers, World, sql, temporal_client, wait_until};
use tokio::process::Command;
use url::Url;

const FAR: &str = "2040-01-01T00:00:00Z";

fn id(of: &Value) -> &str {
    of["id"].as_str().unwrap()
}

fn path(post: &Value) -> String {
    format!("/posts/{}", id(post))
}

/// Returns the commands of a page's blocks with these words after the fence, indented or not.
pub(crate) fn commands(page: &str, fence: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(page);
    let text = std::fs::read_to_string(file).unwrap();
    let (mut found, mut is_inside) = (String::new(), false);
    for line in text.lines().map(str::trim) {
        if line == "```" {
            is_inside = false;
        } else if is_inside {
            found += line;
            found += "\n";
        } else if line == format!("```{fence}") {
            is_inside = true;
        }
    }
    assert!(!found.is_empty(), "{page} has no block {fence}");
    found
}

/// Returns the directory of `pg_dump`, if Postgres's client programs are installed.
fn clients() -> Option<PathBuf> {
    let on_path = std::env::var_os("PATH")
        .into_iter()
        .flat_map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut installed: Vec<_> = installed.map(|version| version.path().join("bin")).collect();
    installed.sort();
    installed
        .into_iter()
        .rev()
        .chain(on_path)
        .find(|dir| ["pg_dump", "pg_restore", "psql"].iter().all(|program| dir.join(program).is_file()))
}

/// A service with a Temporal server of its own, and a shell for an operator.
struct Installation {
    world: World,
    temporal: Option<devstack::Temporal>,
    dir: PathBuf,
    shell: Vec<(String, String)>,
}

impl Installation {
    async fn start(name: &str, clients: &Path) -> Self {
        let dir = tests::directory().join(name);
        let bin = dir.join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        symlink(*PROGRAM, bin.join("fanfare")).unwrap();
        let temporal = start(&dir, 0).await;
        let database_url = tests::database_url(&PROGRAM).await;
        let servers = Servers { database_url: database_url.clone(), temporal: temporal.address.clone() };
        let world = world().pace(0.2).running(&["api"]).on(servers).platforms(&["threads"]).start().await;
        let name = format!("restored_{name}");
        let other = |name: &str| {
            let mut url = Url::parse(&database_url).unwrap();
            url.set_path(name);
            url.to_string()
        };
        let path = std::env::var("PATH").unwrap_or_default();
        let shell = [
            ("PATH", format!("{}:{}:{path}", bin.display(), clients.display())),
            ("DATABASE_URL", database_url.clone()),
            ("SERVER_URL", other("postgres")),
            ("RESTORED_URL", other(&name)),
            ("RESTORED_NAME", name),
        ];
        let shell = shell.map(|(name, value)| (name.to_owned(), value)).to_vec();
        Self { world, temporal: Some(temporal), dir, shell }
    }

    /// Runs commands of the page.
    async fn run(&self, fence: &str) -> String {
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", &commands("backup.md", fence)]);
        shell.current_dir(&self.dir).envs(self.world.environment().to_vec()).envs(self.shell.clone());
        let output = shell.output().await.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{fence}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Empties Temporal, which keeps its address.
    async fn empty(&mut self) {
        let temporal = self.temporal.take().unwrap();
        let port = temporal.port;
        temporal.child.end().await.unwrap();
        std::fs::remove_dir_all(self.dir.join("temporal")).unwrap();
        self.temporal = Some(start(&self.dir, port).await);
    }

    /// Returns whether a workflow runs.
    async fn runs(&self, workflow: &str) -> bool {
        let client = temporal_client(&self.temporal.as_ref().unwrap().address).await;
        let handle = client.get_workflow_handle::<UntypedWorkflow>(workflow);
        let found = handle.describe(Default::default()).await;
        found.is_ok_and(|found| found.status() == WorkflowExecutionStatus::Running)
    }

    /// Terminates a workflow, as an operator does.
    async fn terminate(&self, workflow: &str) {
        let temporal = self.temporal.as_ref().unwrap();
        let mut cli = Command::new(&temporal.program);
        cli.args(["workflow", "terminate", "--address", &temporal.address, "-w", workflow]);
        let output = cli.env("HOME", &self.dir).output().await.unwrap();
        assert!(output.status.success(), "{workflow}: {}", String::from_utf8_lossy(&output.stderr));
    }

    async fn post(&self, content: &str, at: Option<&str>) -> Value {
        self.world.post(json!({ "content": content, "accounts": ["ada"], "scheduled_at": at })).await
    }

    async fn until_queued(&self, post: &Value) {
        let queued = |post: &Value| post["targets"][0]["status"] == "queued";
        self.world.until(id(post), "a started workflow", queued).await;
    }
}

async fn start(dir: &Path, port: u16) -> devstack::Temporal {
    let options = devstack::TemporalOptions {
        port,
        search_attributes: workflows::attributes::ALL.to_vec(),
        ..devstack::TemporalOptions::default()
    };
    devstack::Temporal::start(&dir.join("temporal"), Path::new(*PROGRAM), &options).await.expect("Temporal")
}

async fn is_restored(name: &str, is_emptied: bool) {
    let Some(clients) = clients() else {
        tests::skip("pg_dump, pg_restore and psql are not installed: the restore is not tried");
        return;
    };
    let mut service = Installation::start(name, &clients).await;
    service.world.connect("threads", "ada").await;
    service.world.run("worker").await;
    // Its next attempt is due in some seconds, and then in an hour.
    let retried = service.post("Retried #sandbox-429x1", None).await;
    let failed = |post: &Value| post["targets"][0]["status"] == "failed";
    service.world.until(id(&retried), "a failed attempt", failed).await;
    let in_an_hour = format!(
        "update targets set next_attempt_at = now() + interval '1 hour' where post_id = '{}';
         update accounts set rests_until = null",
        id(&retried)
    );
    sql(&service.world.db, &in_an_hour).await;
    let far = service.post("Far", Some(FAR)).await;
    let later = service.post("Later", Some(&tests::soon())).await;
    let stopped = service.post("Stopped", Some(&tests::soon())).await;
    for post in [&later, &stopped] {
        service.until_queued(post).await;
    }
    service.terminate(&format!("post-{}", id(&stopped))).await;
    assert!(service.world.stop("worker").await);
    let published = service.post("Published after the backup", None).await;
    service.run("sh backup").await;

    // The backup does not know these.
    service.world.run("worker").await;
    assert_eq!(service.world.ended(&published).await["status"], "published");
    service.terminate(&format!("target-{}", id(&retried["targets"][0]))).await;
    assert_eq!(service.world.ended(&retried).await["status"], "failed");
    let unknown = service.post("Created and published after the backup", None).await;
    assert_eq!(service.world.ended(&unknown).await["status"], "published");
    assert!(service.world.stop("worker").await);
    let orphan = service.post("Created after the backup", None).await;
    service.until_queued(&orphan).await;
    assert!(service.world.stop("api").await);
    assert_eq!(service.world.accepted("threads", "ada").await, 2);

    if is_emptied {
        service.empty().await;
    }
    let report = service.run("sh restore").await;
    assert!(
        report.contains("5 open posts; 2 publications are looked up before they are repeated"),
        "{report}"
    );
    let restored = service.shell.iter().find(|(name, _)| name == "RESTORED_URL").unwrap().1.clone();
    service.world.set("DATABASE_URL", &restored);
    service.world.db = store::connect(&restored, 2).await.unwrap();
    service.world.run("api").await;
    // It may be live, so that nobody can change it.
    let edit = json!({ "content": "Changed" });
    let (status, problem) = service.world.call(Method::PATCH, &path(&published), Some(&edit)).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("publishing_started")));
    service.world.run("worker").await;

    for post in [&published, &retried] {
        let ended = service.world.ended(post).await;
        assert_eq!(ended["status"], "published", "{ended:#}");
    }
    for post in [&unknown, &orphan] {
        assert_eq!(service.world.call(Method::GET, &path(post), None).await.0, StatusCode::NOT_FOUND);
    }
    let workflows = [format!("post-{}", id(&orphan)), format!("target-{}", id(&orphan["targets"][0]))];
    for workflow in &workflows {
        let look = async || if service.runs(workflow).await { Err("it runs") } else { Ok(()) };
        wait_until("the workflow of an unknown post to end", look).await;
    }
    // The published one was found and the retried one was retried; nothing else was due.
    assert_eq!(service.world.accepted("threads", "ada").await, 3);
    for post in [&far, &later, &stopped] {
        assert_eq!(service.world.get(&path(post)).await["status"], "scheduled");
    }
    let now = json!({ "scheduled_at": null });
    for post in [&later, &stopped] {
        let (status, edited) = service.world.call(Method::PATCH, &path(post), Some(&now)).await;
        assert_eq!(status, StatusCode::OK, "{edited}");
    }
    let arrived =
        format!("update posts set scheduled_at = now(), starts_at = now() where id = '{}'", id(&far));
    sql(&service.world.db, &arrived).await;
    for post in [&far, &later, &stopped] {
        assert_eq!(service.world.ended(post).await["status"], "published");
    }
    assert_eq!(service.world.accepted("threads", "ada").await, 6);
    for command in ["worker", "api"] {
        assert!(service.world.stop(command).await, "{command} stops");
    }
    service.world.db.close().await;
    service.temporal.take().unwrap().child.end().await.unwrap();
}

#[tokio::test]
async fn a_service_is_restored_by_the_commands_of_the_page() {
    is_restored("kept", false).await;
}

#[tokio::test]
async fn a_service_is_restored_by_the_commands_of_the_page_with_an_empty_temporal() {
    is_restored("emptied", true).await;
}
