//! `docs/operations.md`, run as written: every block of commands, against a service that has the symptom, as the role
//! that the page names.

use crate::{
    PROGRAM,
    ops::done,
    pages::{blocks, clients},
    replay, world,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::fs::symlink,
    path::Path,
};
use tests::{Receiver, Servers, World, deploy::read, installed::Installed, wait_until};
use tokio::process::Command;

/// The page: commands by section.
struct Page {
    setup: String,
    sections: BTreeMap<String, Vec<String>>,
    followed: BTreeSet<String>,
    /// Path of programs, beginning with `fanfare` and `temporal`.
    path: String,
}

impl Page {
    async fn read() -> Self {
        let (mut setup, mut sections) = (String::new(), BTreeMap::<_, Vec<String>>::new());
        for block in blocks("operations.md") {
            match block.fence.as_str() {
                "sh setup" => setup += &block.code,
                "sh" => sections.entry(block.section).or_default().push(block.code),
                other => panic!("{}: {other}", block.section),
            }
        }
        let programs = tests::directory().join("programs");
        std::fs::create_dir_all(&programs).unwrap();
        let temporal = &tests::shared(&PROGRAM).await.temporal_server.program;
        for (name, program) in [("fanfare", Path::new(*PROGRAM)), ("temporal", temporal)] {
            symlink(std::path::absolute(program).unwrap(), programs.join(name)).unwrap();
        }
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let path = clients().map_or(path.clone(), |clients| format!("{}:{path}", clients.display()));
        Self { setup, sections, followed: BTreeSet::new(), path }
    }

    /// Runs the commands of a section, and returns what they print.
    async fn follow(&mut self, world: &World, section: &str, variables: &[(&str, &str)]) -> String {
        assert!(self.followed.insert(section.to_owned()), "{section} is followed twice");
        let mut printed = String::new();
        for block in self.sections.get(section).unwrap_or_else(|| panic!("no commands in {section}")) {
            let output = Command::new("bash")
                .args(["-c", &format!("set -euo pipefail\n{}\n{block}", self.setup)])
                .envs(world.environment().iter().cloned())
                .envs(variables.iter().copied())
                .env("PATH", &self.path)
                .output()
                .await
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{section}\n{block}\n{text}");
            printed.push_str(&text);
        }
        printed
    }
}

fn id(of: &Value) -> &str {
    of["id"].as_str().unwrap()
}

fn target(post: &Value) -> &str {
    id(&post["targets"][0])
}

async fn published(world: &World, content: &str) -> Value {
    world.post(json!({ "content": content, "accounts": ["ada"] })).await
}

/// Makes an organization's posts ten minutes older.
async fn age(world: &World) {
    let org = world.owner.org;
    let older = format!(
        "update posts set created_at = created_at - interval '10 minutes' where org_id = '{org}';
         update targets set updated_at = updated_at - interval '10 minutes' where org_id = '{org}';"
    );
    tests::sql(&world.db, &older).await;
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
}

#[tokio::test]
async fn every_command_of_the_page_runs_as_written_where_its_symptom_is() {
    let mut page = Page::read().await;
    let installed = Installed::start(&PROGRAM, &tests::directory().join("operations")).await;
    let database_url = installed.url("fanfare", "fanfare");
    let servers = Servers { database_url, temporal: tests::shared(&PROGRAM).await.temporal.clone() };
    let mut world = world().pace(1.0).running(&[]).on(servers).platforms(&["x", "threads"]).start().await;
    for (command, role) in [("api", "fanfare_api"), ("worker", "fanfare_worker")] {
        world.set_of(command, "DATABASE_URL", &installed.url(role, "fanfare"));
        world.run(command).await;
    }
    let (account, org) = (world.connect("x", "ada").await, world.owner.org.to_string());
    let receiver = Receiver::start().await;
    receiver.answer([500; 2]);
    let endpoint = world.subscribe(&receiver.url).await;

    let late = published(&world, "Late #sandbox-429").await;
    world.until(id(&late), "a failed attempt", |post| post["targets"][0]["status"] == "failed").await;
    age(&world).await;
    let of_late = [("POST", id(&late)), ("TARGET", target(&late)), ("PLATFORM", "x")];
    has(&page.follow(&world, "Posts are late", &[]).await, &[target(&late), "rate_limited", "PublishTarget"]);
    let shown = page.follow(&world, "A post is stuck in queued", &of_late).await;
    has(&shown, &["\"workflows\"", "the next attempt begins now"]);
    let shown = page.follow(&world, "A platform is down or throttles", &of_late).await;
    has(
        &shown,
        &[target(&late), "platform x is frozen in both modes", "platform x is released in both modes"],
    );
    let shown = page.follow(&world, "A post must not be published", &of_late).await;
    has(&shown, &["has ended: dead"]);
    let ended = world.ended(&late).await;
    assert_eq!(ended["targets"][0]["error_code"], "stopped", "{ended:#}");
    let shown = page.follow(&world, "Workflow tasks fail", &of_late).await;
    has(&shown, &[target(&late)]);

    let late_is = |status: &str| {
        format!(
            "update posts set status = '{status}', updated_at = now() - interval '10 minutes' where id = '{}'",
            id(&late)
        )
    };
    tests::sql(&world.db, &late_is("publishing")).await;
    has(&page.follow(&world, "A post does not end", &[]).await, &[id(&late), "it has no open target"]);
    tests::sql(&world.db, &late_is("failed")).await;

    receiver.until("both events", |all| all.len() >= 2).await;
    let path = format!("/webhooks/{}/deliveries", id(&endpoint));
    let refused = |list: &Value| {
        let all = list["data"].as_array().unwrap();
        all.len() == 2 && all.iter().all(|delivery| delivery["response_status"] == 500)
    };
    let deliveries = world.until_at(&path, "both refusals", refused).await;
    tests::sql(&world.db, &format!("update deliveries set status = 'failed' where org_id = '{org}'")).await;
    let variables =
        [("ORG", org.as_str()), ("ENDPOINT", id(&endpoint)), ("DELIVERY", id(&deliveries["data"][0]))];
    has(&page.follow(&world, "Webhooks don't arrive", &variables).await, &["1 deliveries are repeated"]);
    let arrived = |list: &Value| {
        list["data"].as_array().unwrap().iter().filter(|delivery| delivery["status"] == "delivered").count()
            == 2
    };
    world.until_at(&path, "both deliveries", arrived).await;

    // The app's spending limit is reached. Its owner raises the limit, and a retry looks.
    let spent = json!({ "recorded": { "/2/tweets": "x.spend-cap-reached" } });
    world.set_sandbox(spent).await;
    let held = published(&world, "Held").await;
    let refused = |post: &Value| post["targets"][0]["error_code"] == "app_refused";
    world.until(id(&held), "its refusal", refused).await;
    let proposal = json!({ "accounts": [account], "content": "Another" });
    let verdict = async || world.call(Method::POST, "/posts/validate", Some(&proposal)).await.1;
    let told = verdict().await;
    let issue = &told["issues"][0];
    assert!(told["valid"] == true && issue["code"] == "app_refused", "{told:#}");
    has(issue["message"].as_str().unwrap(), &["spend cap", "waits until it takes the app again"]);
    world.set_sandbox(json!({ "recorded": {} })).await;
    age(&world).await;
    let shown = page.follow(&world, "A platform refuses the app", &[("TARGET", target(&held))]).await;
    has(&shown, &[target(&held), "spend cap"]);
    world.until(id(&held), "its publication", |post| post["status"] == "published").await;
    assert_eq!(verdict().await["issues"], json!([]));

    // Its answer is held back for as long as the operator is at work.
    let hold = world.hold(json!({ "platform": "x", "account": "ada", "nth": 1, "when": "after" })).await;
    let doubtful = published(&world, "Doubtful").await;
    hold.until_held().await;
    done(&world, &["end", target(&doubtful), "--reason", "a test", "--may-be-live"]).await;
    let variables = [("TARGET", target(&doubtful))];
    let shown = page.follow(&world, "A post may be live", &variables).await;
    has(&shown, &["it may be live: look before posting again", "was dead and starts over"]);
    hold.release().await;
    world.until(id(&doubtful), "its look-up", |post| post["status"] == "published").await;
    assert_eq!(world.accepted("x", "ada").await, 2);

    let parked = json!({
        "type": "retry_target", "target": target(&late), "post": id(&late), "owner": { "org": org, "mode": "test" },
    });
    let park = format!(
        "insert into outbox (org_id, message, parked_at, error) values ('{org}', '{parked}', now(), 'Refused by a test')"
    );
    tests::sql(&world.db, &park).await;
    let shown = page.follow(&world, "The outbox grows", &[]).await;
    has(&shown, &["retry_target can't be sent: Refused by a test", "1 parked messages are sent again"]);

    let variables = [("ACCOUNT", account.as_str()), ("ORG", org.as_str())];
    let shown = page.follow(&world, "An account must stop now", &variables).await;
    has(&shown, &["The account was taken over", "Under review", "is released in both modes"]);

    let key = done(&world, &["keys", "issue", &org, "--mode", "test", "--name", "Leaked"]).await;
    let listed: Value = serde_json::from_str(&done(&world, &["keys", "list", &org, "--json"]).await).unwrap();
    let leaked = listed["keys"].as_array().unwrap().iter().find(|key| key["name"] == "Leaked").unwrap();
    let variables = [("ORG", org.as_str()), ("KEY", id(leaked))];
    let shown = page.follow(&world, "A key has leaked", &variables).await;
    has(&shown, &["Leaked", "is revoked", "live key"]);
    let call =
        world.http.get(format!("{}/account/usage", world.base)).bearer_auth(key.lines().last().unwrap());
    assert_eq!(call.send().await.unwrap().status(), reqwest::StatusCode::UNAUTHORIZED);

    let overdue = format!(
        "update accounts set granted_at = now() - interval '100 minutes',
           token_expires_at = now() - interval '10 minutes' where id = '{account}'"
    );
    tests::sql(&world.db, &overdue).await;
    page.follow(&world, "Tokens are not renewed", &[]).await;

    // Threads throttles for a minute, so the backoff can be observed.
    world.connect("threads", "bob").await;
    let lost = world.post(json!({ "content": "Lost #sandbox-429x1", "accounts": ["bob"] })).await;
    let lost =
        world.until(id(&lost), "a failed attempt", |post| post["targets"][0]["status"] == "failed").await;
    replay::backs_off(&lost).await;
    for workflow in [format!("post-{}", id(&lost)), format!("target-{}", target(&lost))] {
        for what in ["terminate", "delete"] {
            tests::temporal(&PROGRAM, &["workflow", what, "-w", &workflow]).await;
        }
    }
    let due = format!("update targets set next_attempt_at = now() where id = '{}'", target(&lost));
    tests::sql(&world.db, &due).await;
    age(&world).await;
    let look = async || {
        let swept: bool = sqlx::query_scalar("select updated_at < now() from posts where id = $1::uuid")
            .bind(id(&lost))
            .fetch_one(&world.db)
            .await
            .unwrap();
        if swept { Ok(()) } else { Err("not yet") }
    };
    wait_until("the post's row to be of the past", look).await;
    has(
        &page.follow(&world, "Temporal lost its data", &[]).await,
        &["messages for overdue rows were written"],
    );
    assert_eq!(world.ended(&lost).await["status"], "published");

    let worker = format!("{}@", world.pids()[1]);
    assert!(world.stop("worker").await);
    let waiting = published(&world, "Waiting").await;
    world.until(id(&waiting), "a workflow", |post| post["targets"][0]["status"] == "queued").await;
    age(&world).await;
    let shown = page.follow(&world, "A worker is down", &[("PLATFORM", "x-test")]).await;
    has(&shown, &[target(&waiting), "no worker has begun it"]);
    // It is listed for some minutes, with the time of its last request.
    has(&shown, &[&worker]);

    assert!(world.stop("api").await);
    let since = (tests::now() - chrono::TimeDelta::minutes(30)).to_rfc3339();
    let shown = page.follow(&world, "Postgres was restored from a backup", &[("SINCE", &since)]).await;
    has(&shown, &["1 open posts; 1 publications are looked up"]);
    world.run("api").await;
    world.run("worker").await;
    assert_eq!(world.ended(&waiting).await["status"], "published");
    assert_eq!(world.accepted("x", "ada").await, 3);
    assert_eq!(world.accepted("threads", "bob").await, 1);

    let section = "The disk is full";
    if clients().is_some() {
        has(&page.follow(&world, section, &[]).await, &["pg_size_pretty", "(5 rows)"]);
    } else {
        tests::skip("psql is not installed: the largest tables are not listed");
        page.followed.insert(section.to_owned());
    }

    let all: BTreeSet<_> = page.sections.keys().cloned().collect();
    assert_eq!(page.followed, all, "sections with commands that the test does not follow");
}

/// The exit codes that the page tells, with their meaning.
fn exit_codes() -> BTreeMap<i32, String> {
    let page = read("docs/operations.md");
    let rows = page.split("| Exit code of `fanfare ops` |").nth(1).unwrap().lines().skip(2);
    let rows = rows.take_while(|row| row.starts_with('|'));
    rows.map(|row| {
        let (code, meaning) = row.trim_matches('|').split_once('|').unwrap();
        (code.trim().parse().unwrap(), meaning.trim().to_owned())
    })
    .collect()
}

/// The commands, each with arguments that name nothing in the database, and how it ends then. `ID` stands for an id.
const ON_NOTHING: [(&str, &str, i32); 14] = [
    ("stuck", "", 0),
    ("show", "ID", 3),
    ("retry", "ID", 3),
    ("end", "ID --reason test", 3),
    ("reconcile", "", 0),
    ("restored", "--since 2026-01-01T00:00:00Z", 0),
    ("freeze", "organization ID --reason test", 3),
    ("release", "organization ID", 4),
    ("frozen", "", 0),
    ("redeliver", "ID", 3),
    ("keys issue", "ID", 3),
    ("keys list", "ID", 3),
    ("keys revoke", "ID", 3),
    ("sessions end", "--org ID", 3),
];
/// Arguments that are wrong whatever the database has, of commands that check more than clap does.
const WRONG: [(&str, &str); 5] = [
    ("restored", "--since 2100-01-01T00:00:00Z"),
    ("freeze", "account nobody --reason test"),
    ("freeze", "platform nowhere --reason test"),
    ("redeliver", ""),
    ("keys issue", "ID --expires-at 2020-01-01T00:00:00Z"),
];

/// Returns the names of a command's own commands, without `help`.
fn leaves(command: &clap::Command, before: &str) -> Vec<String> {
    let below = command.get_subcommands().filter(|command| command.get_name() != "help");
    let below = below.flat_map(|below| {
        let name = format!("{before} {}", below.get_name()).trim().to_owned();
        let own = leaves(below, &name);
        if own.is_empty() { vec![name] } else { own }
    });
    below.collect()
}

#[tokio::test]
async fn each_command_ends_with_the_exit_code_of_the_page() {
    assert_eq!(exit_codes().into_keys().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let mut all = leaves(server::command().find_subcommand("ops").unwrap(), "");
    let mut known: Vec<_> = ON_NOTHING.iter().map(|(command, ..)| (*command).to_owned()).collect();
    all.sort();
    known.sort();
    assert_eq!(all, known, "commands in the table");

    let mut world = world().running(&[]).start().await;
    let nothing = uuid::Uuid::now_v7().to_string();
    let ends = async |world: &World, command: &str, arguments: &str, expected: i32| {
        let arguments = arguments.replace("ID", &nothing);
        let words: Vec<_> =
            ["ops"].into_iter().chain(command.split(' ')).chain(arguments.split_whitespace()).collect();
        let ended = world.command(&words).await;
        let said =
            format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        assert_eq!(ended.status.code(), Some(expected), "{words:?}: {said}");
    };
    for (command, arguments, expected) in ON_NOTHING {
        ends(&world, command, arguments, expected).await;
        ends(&world, command, &format!("{arguments} --unknown"), 2).await;
    }
    for (command, arguments) in WRONG {
        ends(&world, command, arguments, 2).await;
    }
    for (command, arguments, expected) in [
        ("freeze", "platform x --reason test", 0),
        ("freeze", "platform x --reason test", 4),
        ("release", "platform x", 0),
        ("release", "platform x", 4),
    ] {
        ends(&world, command, arguments, expected).await;
    }
    // Nobody listens there.
    world.set("DATABASE_URL", "postgres://fanfare@127.0.0.1:9/fanfare");
    for (command, arguments, _) in ON_NOTHING {
        ends(&world, command, arguments, 1).await;
    }
}
