//! A database that was restored is recognized, even if nobody said so: no worker publishes for it until an operator
//! does. With the roles of `deploy/postgres/roles.sql`.

use crate::{PROGRAM, pages, world};
use chrono::TimeDelta;
use devstack::{Postgres, PostgresOptions};
use reqwest::Client;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tests::{Servers, World, sql, wait_until};
use tokio::process::Command;

/// The role that migrates, and those of the processes, with their passwords.
const ROLES: [(&str, &str); 4] =
    [("fanfare", "migrate"), ("fanfare_api", "api"), ("fanfare_worker", "worker"), ("temporal", "temporal")];

/// An installation on a Postgres server of its own.
struct Installation {
    world: World,
    postgres: Option<Postgres>,
    dir: PathBuf,
    clients: PathBuf,
    port: u16,
}

impl Installation {
    /// Starts a server, creates its roles and databases as an operator does, and migrates; no process runs.
    async fn start(name: &str) -> Option<Self> {
        let Some(clients) = pages::clients() else {
            tests::skip("pg_dump, pg_restore and psql are not installed: no restore is tried");
            return None;
        };
        let dir = tests::directory().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let postgres = server(&dir, 0).await;
        let port = postgres.port;
        let roles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/postgres/roles.sql");
        let mut psql = Command::new(clients.join("psql"));
        psql.args(["-v", "ON_ERROR_STOP=1", "-d", &postgres.url("postgres"), "-f"]).arg(roles);
        for (name, (_, password)) in ["MIGRATE", "API", "WORKER"].into_iter().zip(ROLES) {
            psql.env(format!("FANFARE_{name}_PASSWORD"), password);
        }
        done(psql.env("TEMPORAL_PASSWORD", "temporal")).await;
        let database_url = url(port, "fanfare", "fanfare");
        let db = store::connect(&database_url, 1).await.unwrap();
        store::migrate(&db).await.unwrap();
        db.close().await;
        let servers = Servers { database_url, temporal: tests::shared(&PROGRAM).await.temporal.clone() };
        let world = world().pace(0.1).running(&[]).on(servers).platforms(&["facebook"]).start().await;
        let mut own = Self { world, postgres: Some(postgres), dir, clients, port };
        own.world.set("FANFARE_API_ROLE", "fanfare_api");
        own.world.set("FANFARE_WORKER_ROLE", "fanfare_worker");
        own.admin("fanfare", &["migrate", "--only", "postgres"]).await;
        own.world.connect("facebook", "cy").await;
        Some(own)
    }

    /// Sets the database of what runs next, in a role.
    fn use_role(&mut self, role: &str, database: &str) {
        self.world.set("DATABASE_URL", &url(self.port, role, database));
    }

    /// Runs a command as the role that migrates, and returns what it prints.
    async fn admin(&mut self, database: &str, args: &[&str]) -> String {
        self.use_role("fanfare", database);
        let output = self.world.command(args).await;
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    async fn run(&mut self, database: &str) {
        self.use_role("fanfare_api", database);
        self.world.run("api").await;
        self.use_role("fanfare_worker", database);
        self.world.run("worker").await;
    }

    async fn stop(&mut self) {
        for command in ["worker", "api"] {
            assert!(self.world.stop(command).await, "{command} stops");
        }
        self.world.db.close().await;
    }

    /// Asserts that no worker starts, and that its reason and the API's readiness name the command that comes next.
    async fn refused(&mut self, database: &str, reason: &str) {
        self.use_role("fanfare_worker", database);
        let limit = self.world.set("FANFARE_START_TIMEOUT", "1");
        let ended = self.world.command(&["worker"]).await;
        self.world.set("FANFARE_START_TIMEOUT", limit.as_deref().unwrap_or("60"));
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success() && errors.contains(reason), "{errors}");
        assert!(errors.contains("fanfare ops restored --since"), "{errors}");
    }

    /// Stops the server, replaces its files by those of a copy, and starts it again.
    async fn replace(&mut self, prepare: impl FnOnce(&Path)) {
        self.postgres.take().unwrap().child.end().await.unwrap();
        let data = self.dir.join("postgres");
        std::fs::rename(&data, self.dir.join("lost")).unwrap();
        std::fs::rename(self.dir.join("copy"), &data).unwrap();
        prepare(&data);
        self.postgres = Some(server(&self.dir, self.port).await);
        self.world.db = store::connect(&url(self.port, "fanfare", "fanfare"), 2).await.unwrap();
        let recovered =
            async || match sqlx::query_scalar("select pg_is_in_recovery()").fetch_one(&self.world.db).await {
                Ok(false) => Ok(()),
                found => Err(format!("{found:?}")),
            };
        wait_until("the server to have recovered", recovered).await;
    }

    /// Copies the server's files, as a backup of a stopped server.
    async fn copy(&mut self) {
        self.postgres.take().unwrap().child.end().await.unwrap();
        let mut cp = Command::new("cp");
        done(cp.arg("-a").arg(self.dir.join("postgres")).arg(self.dir.join("copy"))).await;
        self.postgres = Some(server(&self.dir, self.port).await);
        self.world.db = store::connect(&url(self.port, "fanfare", "fanfare"), 2).await.unwrap();
    }

    async fn post(&self) -> Value {
        self.world.post(json!({ "content": "Once", "accounts": ["cy"] })).await
    }

    async fn end(mut self) {
        self.stop().await;
        let postgres = self.postgres.take().unwrap();
        drop(self.world);
        postgres.child.end().await.unwrap();
    }
}

fn url(port: u16, role: &str, database: &str) -> String {
    let (_, password) = ROLES.iter().find(|(name, _)| *name == role).unwrap();
    format!("postgres://{role}:{password}@127.0.0.1:{port}/{database}")
}

async fn server(dir: &Path, port: u16) -> Postgres {
    let options = PostgresOptions {
        port,
        superuser: "superuser",
        password: "super".to_owned(),
        is_durable: false,
        ..PostgresOptions::default()
    };
    Postgres::start(&dir.join("postgres"), Path::new(*PROGRAM), &options).await.unwrap()
}

async fn done(command: &mut Command) {
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn since() -> String {
    (tests::now() - TimeDelta::minutes(5)).to_rfc3339()
}

#[tokio::test]
async fn nothing_is_published_for_a_dump_that_was_restored_until_an_operator_says_so() {
    let Some(mut own) = Installation::start("dump").await else { return };
    own.use_role("fanfare_api", "fanfare");
    own.world.run("api").await;
    let post = own.post().await;
    let dump = own.dir.join("fanfare.dump");
    let mut pg_dump = Command::new(own.clients.join("pg_dump"));
    pg_dump.args(["--format=custom", &url(own.port, "fanfare", "fanfare")]).arg("--file").arg(&dump);
    done(&mut pg_dump).await;
    // The publication after the backup is not in it.
    own.use_role("fanfare_worker", "fanfare");
    own.world.run("worker").await;
    assert_eq!(own.world.ended(&post).await["status"], "published");
    // A restart is no restore.
    own.stop().await;
    own.run("fanfare").await;
    own.stop().await;
    assert_eq!(own.world.accepted("facebook", "cy").await, 1);

    let restore = async |own: &Installation, name: &str| {
        let server = own.postgres.as_ref().unwrap().url("postgres");
        let mut psql = Command::new(own.clients.join("psql"));
        done(psql.args([&server, "--command", &format!("create database {name} owner fanfare")])).await;
        let mut pg_restore = Command::new(own.clients.join("pg_restore"));
        pg_restore
            .args(["--exit-on-error", "--no-owner", "--dbname", &url(own.port, "fanfare", name)])
            .arg(&dump);
        done(&mut pg_restore).await;
    };
    restore(&own, "restored").await;
    own.admin("restored", &["migrate", "--only", "postgres"]).await;
    own.refused("restored", "another server, as after a restore").await;
    own.world.db = store::connect(&url(own.port, "fanfare", "restored"), 2).await.unwrap();
    // The API serves, and its readiness says what is missing.
    own.use_role("fanfare_api", "restored");
    own.world.run("api").await;
    let ready = format!("{}/readyz", own.world.base.trim_end_matches("/api/v1"));
    let report: Value = Client::new().get(ready).send().await.unwrap().json().await.unwrap();
    assert_eq!(
        (&report["status"], &report["checks"]["restored"]["status"]),
        (&json!("degraded"), &json!("failed"))
    );
    let message = report["checks"]["restored"]["message"].as_str().unwrap();
    assert!(message.contains("fanfare ops restored --since TIME"), "{report}");
    own.refused("restored", "another server, as after a restore").await;
    assert_eq!(own.world.accepted("facebook", "cy").await, 1);

    let report = own.admin("restored", &["ops", "restored", "--since", &since()]).await;
    assert!(report.contains("1 open posts; 1 publications are looked up"), "{report}");
    own.use_role("fanfare_worker", "restored");
    own.world.run("worker").await;
    assert_eq!(own.world.ended(&post).await["status"], "published");
    assert_eq!(own.world.accepted("facebook", "cy").await, 1);

    // Nor is it believed when a dump is loaded into the very database that it is of.
    own.stop().await;
    own.world.db = store::connect(&url(own.port, "fanfare", "restored"), 2).await.unwrap();
    sql(
        &own.world.db,
        "create table dumped as table installation; truncate installation; \
        insert into installation select * from dumped; drop table dumped",
    )
    .await;
    own.refused("restored", "another server, as after a restore").await;
    own.admin("restored", &["ops", "restored", "--nothing-was-lost"]).await;
    own.run("restored").await;
    own.end().await;
}

#[tokio::test]
async fn nothing_is_published_for_files_that_were_restored_until_an_operator_says_so() {
    let Some(mut own) = Installation::start("files").await else { return };
    own.use_role("fanfare_api", "fanfare");
    own.world.run("api").await;
    let post = own.post().await;
    assert!(own.world.stop("api").await);
    own.world.db.close().await;
    own.copy().await;
    // The same server, the same timeline: only the beats of what runs afterwards tell.
    own.run("fanfare").await;
    assert_eq!(own.world.ended(&post).await["status"], "published");
    let beats = async || {
        let at: Option<chrono::DateTime<chrono::Utc>> =
            sqlx::query_scalar("select at from installation_beats")
                .fetch_optional(&own.world.db)
                .await
                .unwrap();
        at.ok_or("no beat")
    };
    let first = wait_until("a beat", beats).await;
    // The next one is written once the first is in Temporal.
    wait_until("another beat", async || match beats().await? {
        at if at > first => Ok(()),
        _ => Err("the same beat"),
    })
    .await;
    own.stop().await;
    own.replace(|_| {}).await;
    own.refused("fanfare", "older than what its workers have written").await;
    assert_eq!(own.world.accepted("facebook", "cy").await, 1);
    own.admin("fanfare", &["ops", "restored", "--since", &since()]).await;
    own.run("fanfare").await;
    assert_eq!(own.world.ended(&post).await["status"], "published");
    assert_eq!(own.world.accepted("facebook", "cy").await, 1);
    own.end().await;
}

#[tokio::test]
async fn another_timeline_is_believed_when_an_operator_says_that_nothing_was_lost() {
    let Some(mut own) = Installation::start("timeline").await else { return };
    own.run("fanfare").await;
    own.stop().await;
    own.copy().await;
    own.world.db.close().await;
    // As after a restore to a point in time, or a promotion.
    own.replace(|data| {
        let configuration = find(data, "postgresql.auto.conf");
        let recovery = "restore_command = 'false'\n";
        std::fs::write(&configuration, recovery).unwrap();
        let signal = configuration.with_file_name("recovery.signal");
        std::fs::write(&signal, "").unwrap();
        let owner = std::fs::metadata(configuration.parent().unwrap()).unwrap();
        use std::os::unix::fs::{MetadataExt, chown};
        chown(&signal, Some(owner.uid()), Some(owner.gid())).unwrap();
    })
    .await;
    own.refused("fanfare", "another server, as after a restore or a failover").await;
    let said = own.admin("fanfare", &["ops", "restored", "--nothing-was-lost"]).await;
    assert!(said.contains("everything that was committed"), "{said}");
    own.run("fanfare").await;
    let post = own.post().await;
    assert_eq!(own.world.ended(&post).await["status"], "published");
    own.end().await;
}

/// Finds a file below a directory.
fn find(directory: &Path, name: &str) -> PathBuf {
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(next).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => left.push(entry.path()),
                false if entry.file_name() == name => return entry.path(),
                false => {}
            }
        }
    }
    panic!("there is no {name}")
}
