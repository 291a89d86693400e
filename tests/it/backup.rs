//! Set-up, backup and restore of a service, by the commands of `docs/deployment.md`, `docs/upgrade.md` and
//! `docs/backup.md`, with the roles of an installation, and with Temporal kept and Temporal empty.

use crate::{
    PROGRAM,
    pages::{clients, commands},
    world,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sqlx::Connection;
use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};
use temporalio_client::WorkflowExecutionStatus;
use temporalio_common::UntypedWorkflow;
use tests::{
    Servers, World,
    deploy::root,
    installed::{self, Installed},
    sql, temporal_client, wait_until,
};
use tokio::process::Command;

const FAR: &str = "2040-01-01T00:00:00Z";

fn id(of: &Value) -> &str {
    of["id"].as_str().unwrap()
}

fn path(post: &Value) -> String {
    format!("/posts/{}", id(post))
}

/// Database that the backup is restored into.
const RESTORED: &str = "restored";

/// A service with servers of its own, and a shell for an operator.
struct Installation {
    world: World,
    temporal: Option<devstack::Temporal>,
    postgres: Installed,
    /// Database that its processes use.
    database: &'static str,
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
        let postgres = Installed::bare(&PROGRAM, &dir.join("postgres")).await;
        let path = std::env::var("PATH").unwrap_or_default();
        let owner = |database| postgres.url("fanfare", database);
        let shell = [
            ("PATH", format!("{}:{}:{path}", bin.display(), clients.display())),
            ("DATABASE_URL", owner("fanfare")),
            ("SERVER_URL", postgres.postgres.url("postgres")),
            ("RESTORED_URL", owner(RESTORED)),
            ("RESTORED_NAME", RESTORED.to_owned()),
        ];
        let granted = installed::PASSWORDS.into_iter().chain(installed::GRANTED);
        let shell: Vec<_> = shell
            .into_iter()
            .chain(granted.map(|(name, value)| (name, value.to_owned())))
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        run(&root(), &shell, "deployment.md", "sh roles").await;
        run(&root(), &shell, "upgrade.md", "sh migrate").await;
        // The test itself looks at every row, also after the restore.
        let database_url = postgres.postgres.url("fanfare");
        let servers = Servers { database_url, temporal: temporal.address.clone() };
        let world = world().pace(0.2).running(&[]).on(servers).platforms(&["threads"]).start().await;
        let database = "fanfare";
        let mut service = Self { world, temporal: Some(temporal), postgres, database, dir, shell };
        service.serve("api").await;
        service
    }

    /// Starts a process by the command of the page, with the database role that it has in an installation.
    async fn serve(&mut self, command: &'static str) {
        let (role, fence) = match command {
            "api" => ("fanfare_api", "sh api"),
            _ => ("fanfare_worker", "sh worker"),
        };
        self.world.set_of(command, "DATABASE_URL", &self.postgres.url(role, self.database));
        // A single command takes the place of the shell, so that signals reach it.
        let mut shell = Command::new("bash");
        shell.args(["-c", commands("upgrade.md", fence).trim()]).env("PATH", &self.shell[0].1);
        self.world.launch(command, shell).await;
    }

    /// Runs commands of the page.
    async fn run(&self, fence: &str) -> String {
        let environment: Vec<_> =
            self.world.environment().iter().cloned().chain(self.shell.iter().cloned()).collect();
        run(&self.dir, &environment, "backup.md", fence).await
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

    /// Ends a workflow, as an operator does: `terminate` or `cancel`.
    async fn end(&self, how: &str, workflow: &str) {
        let temporal = self.temporal.as_ref().unwrap();
        let mut cli = Command::new(&temporal.program);
        cli.args(["workflow", how, "--address", &temporal.address, "-w", workflow]);
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

/// Runs commands of a page, and returns what they print.
async fn run(dir: &Path, environment: &[(String, String)], page: &str, fence: &str) -> String {
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", &commands(page, fence)]).current_dir(dir);
    let output = shell.envs(environment.iter().cloned()).output().await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{page}, {fence}: {errors}");
    String::from_utf8(output.stdout).unwrap()
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
    service.serve("worker").await;
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
    service.end("terminate", &format!("post-{}", id(&stopped))).await;
    assert!(service.world.stop("worker").await);
    let published = service.post("Published after the backup", None).await;
    service.run("sh backup").await;

    // The backup does not know these.
    service.serve("worker").await;
    assert_eq!(service.world.ended(&published).await["status"], "published");
    service.end("cancel", &format!("target-{}", id(&retried["targets"][0]))).await;
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
    // As in the first database: its other roles may not connect.
    let others = service.postgres.url("temporal", RESTORED);
    let refused = sqlx::PgConnection::connect(&others).await.unwrap_err();
    let refused = refused.as_database_error().unwrap().code().unwrap().into_owned();
    assert_eq!(refused, "42501", "the role of Temporal");
    service.database = RESTORED;
    service.world.db = store::connect(&service.postgres.postgres.url(RESTORED), 2).await.unwrap();
    service.serve("api").await;
    // It may be live, so that nobody can change it.
    let edit = json!({ "content": "Changed" });
    let (status, problem) = service.world.call(Method::PATCH, &path(&published), Some(&edit)).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("publishing_started")));
    service.serve("worker").await;

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
    service.postgres.postgres.child.end().await.unwrap();
}

#[tokio::test]
async fn a_service_is_restored_by_the_commands_of_the_page() {
    is_restored("kept", false).await;
}

#[tokio::test]
async fn a_service_is_restored_by_the_commands_of_the_page_with_an_empty_temporal() {
    is_restored("emptied", true).await;
}
