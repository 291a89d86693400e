//! A database that was restored from an earlier backup.
//!
//! The backup is a copy of the tables in another schema, taken before any worker ran.

use crate::{replay, world};
use chrono::TimeDelta;
use serde_json::{Value, json};
use tests::{World, sql, wait_until};

const ACCOUNTS: [(&str, &str); 5] = [
    ("x", "ada"),
    ("linkedin", "bob"),
    ("facebook", "cy"),
    ("threads", "dee"),
    ("bluesky", "eve.bsky.social"),
];

const BACK_UP: &str = "
    create schema backup;
    create table backup.posts as table posts;
    create table backup.targets as table targets;
    create table backup.outbox as table outbox;";

const RESTORE: &str = "
    delete from events; delete from timeline; delete from publications; delete from outbox;
    update posts p set status = b.status, version = b.version, published_at = b.published_at,
      updated_at = b.updated_at, swept_at = null
      from backup.posts b where p.id = b.id;
    update targets t set status = b.status, attempts = b.attempts, fence = b.fence,
      next_attempt_at = b.next_attempt_at, platform_post_id = null, platform_post_url = null,
      published_at = null, updated_at = b.updated_at, reply_root = null, reply_parent = null
      from backup.targets b where t.id = b.id;
    insert into outbox overriding system value select * from backup.outbox;";

async fn stopped(world: &mut World) {
    for command in ["worker", "api"] {
        assert!(world.stop(command).await, "{command} stops");
    }
}

async fn started(world: &mut World) {
    for command in ["api", "worker"] {
        world.run(command).await;
    }
}

/// Publishes a post with a comment on each account, and a reply to it, and restores the database to the time before.
async fn restored(world: &mut World) -> [Value; 2] {
    for (platform, account) in ACCOUNTS {
        world.connect(platform, account).await;
    }
    let accounts = ACCOUNTS.map(|(_, account)| account);
    let post = world
        .post(json!({
            "containers": [{ "content": "Before the backup" }, { "content": "A comment" }],
            "accounts": accounts,
        }))
        .await;
    let reply = world.post(json!({ "content": "A reply to it", "reply_to": post["id"] })).await;
    sql(&world.db, BACK_UP).await;
    world.run("worker").await;
    world.completed(&post, ACCOUNTS.len()).await;
    world.ended(&reply).await;
    stopped(world).await;
    sql(&world.db, RESTORE).await;
    [post, reply]
}

fn service() -> tests::WorldBuilder {
    world().approved().running(&["api"]).platforms(&ACCOUNTS.map(|(platform, _)| platform))
}

#[tokio::test]
async fn what_was_published_since_the_backup_is_found_and_not_repeated() {
    let mut world = service().start().await;
    let [post, reply] = restored(&mut world).await;
    let since = (tests::now() - TimeDelta::minutes(5)).to_rfc3339();
    let output = world.command(&["ops", "restored", "--since", &since]).await;
    assert!(output.status.success(), "{output:?}");
    let report = String::from_utf8(output.stdout).unwrap();
    assert_eq!(report, "2 open posts; 15 publications are looked up before they are repeated\n");
    let recorded = "select details->>'posts' from audit_entries where action = 'installation.restored'";
    let recorded: Vec<String> = sqlx::query_scalar(recorded).fetch_all(&world.db).await.unwrap();
    assert_eq!(recorded, ["2"]);
    started(&mut world).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    world.completed(&post, ACCOUNTS.len()).await;
    let replied = world.ended(&reply).await;
    assert_eq!(replied["status"], "published", "{replied:#}");
    for (platform, account) in ACCOUNTS {
        assert_eq!(world.accepted(platform, account).await, 3, "{platform}: {ended:#}");
    }
}

#[tokio::test]
async fn a_restored_post_that_was_not_published_is_published() {
    let mut world = service().start().await;
    world.connect("threads", "dee").await;
    let post = world.post(json!({ "content": "Never begun", "accounts": ["dee"] })).await;
    assert!(world.stop("api").await);
    let since = (tests::now() - TimeDelta::minutes(5)).to_rfc3339();
    assert!(world.command(&["ops", "restored", "--since", &since]).await.status.success());
    started(&mut world).await;
    assert_eq!(world.ended(&post).await["status"], "published");
    assert_eq!(world.accepted("threads", "dee").await, 1);
}

#[tokio::test]
async fn a_restored_grant_is_renewed_although_its_workflow_knows_a_later_one() {
    let mut world = world().running(&["api", "worker"]).platforms(&["reddit"]).start().await;
    let account = world.connect("reddit", "ada").await;
    replay::started(&replay::client().await, &format!("renew-grant-{account}")).await;
    stopped(&mut world).await;
    sql(
        &world.db,
        "update accounts set grant_version = grant_version - 1, granted_at = now() - interval '100 minutes',
           token_expires_at = now() + interval '10 minutes'",
    )
    .await;
    let since = (tests::now() - TimeDelta::minutes(5)).to_rfc3339();
    assert!(world.command(&["ops", "restored", "--since", &since]).await.status.success());
    let (db, owner) = (world.db.clone(), world.owner);
    let version = async || {
        let grant = store::accounts::grants::get(&db, owner, account.parse().unwrap()).await.unwrap();
        grant.unwrap().version
    };
    let restored = version().await;
    started(&mut world).await;
    let look = async || match version().await {
        found if found > restored => Ok(()),
        found => Err(format!("version {found}")),
    };
    wait_until("the grant to be renewed", look).await;
}

/// The platform replaces the refresh token with each renewal.
#[tokio::test]
async fn an_account_whose_grant_was_renewed_since_the_backup_has_to_be_connected_again() {
    let mut world = world().running(&["api", "worker"]).start().await;
    let account = world.connect("x", "ada").await;
    sql(&world.db, "create schema backup; create table backup.accounts as table accounts").await;
    world.expire_tokens("x", "ada").await;
    let post = world.post(json!({ "content": "Renews the grant", "accounts": ["ada"] })).await;
    assert_eq!(world.ended(&post).await["status"], "published");
    stopped(&mut world).await;
    sql(
        &world.db,
        "update accounts a set grant_sealed = b.grant_sealed, grant_version = b.grant_version, granted_at = b.granted_at,
           token_expires_at = b.token_expires_at
         from backup.accounts b where a.id = b.id",
    )
    .await;
    let since = (tests::now() - TimeDelta::minutes(5)).to_rfc3339();
    assert!(world.command(&["ops", "restored", "--since", &since]).await.status.success());
    world.expire_tokens("x", "ada").await;
    started(&mut world).await;
    let post = world.post(json!({ "content": "With the grant of the backup", "accounts": ["ada"] })).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["targets"][0]["error_code"], "token_expired", "{ended:#}");
    let is_lost = |account: &Value| account["status"] == "reauth_required";
    world
        .until_at(&format!("/social-accounts/{account}"), "the account to ask for a new login", is_lost)
        .await;
}

/// The connection is lost between two of the transactions.
#[tokio::test]
async fn an_interrupted_preparation_is_continued_and_no_worker_starts_before_its_end() {
    let mut world = service().start().await;
    world.connect("threads", "dee").await;
    let mut posts = Vec::new();
    for number in 0..5 {
        posts.push(world.post(json!({ "content": format!("Post {number}"), "accounts": ["dee"] })).await);
    }
    assert!(world.stop("api").await);
    let since = tests::now() - TimeDelta::minutes(5);
    // The fourth post can't be prepared while its row is locked.
    let id: uuid::Uuid = posts[3]["id"].as_str().unwrap().parse().unwrap();
    let mut lock = world.db.begin().await.unwrap();
    sqlx::query("select from posts where id = $1 for update").bind(id).execute(&mut *lock).await.unwrap();
    let db = world.db.clone();
    let preparing = tokio::spawn(async move { store::upkeep::restored::prepare(&db, since, 2).await });
    let prepared = async || {
        let fences: Vec<i32> = sqlx::query_scalar("select fence from targets order by post_id")
            .fetch_all(&world.db)
            .await
            .unwrap();
        let is_begun = fences[..2].iter().all(|fence| *fence >= 1_000_000);
        if is_begun { Ok(fences) } else { Err(format!("{fences:?}")) }
    };
    let fences = wait_until("the first two posts to be prepared", prepared).await;
    assert_eq!(fences[2..], [0; 3], "the rest is not");
    preparing.abort();
    assert!(preparing.await.unwrap_err().is_cancelled());
    drop(lock);

    world.set("FANFARE_START_TIMEOUT", "1");
    let mut worker = world.spawn(&["worker"], std::process::Stdio::null());
    assert!(!worker.wait().await.unwrap().success(), "no worker starts");
    let since = since.to_rfc3339();
    let output = world.command(&["ops", "restored", "--since", &since]).await;
    assert!(output.status.success(), "{output:?}");
    let report = String::from_utf8(output.stdout).unwrap();
    let rest = "3 open posts; 3 publications are looked up before they are repeated\n";
    assert_eq!(report, format!("continued what was interrupted\n{rest}"));
    let fences: Vec<i32> =
        sqlx::query_scalar("select fence from targets order by post_id").fetch_all(&world.db).await.unwrap();
    assert_eq!(fences, [1_000_000; 5], "each once");
    world.set("FANFARE_START_TIMEOUT", "60");
    started(&mut world).await;
    for post in &posts {
        assert_eq!(world.ended(post).await["status"], "published");
    }
    assert_eq!(world.accepted("threads", "dee").await, posts.len());
}

/// The backup does not know what was canceled after it.
#[tokio::test]
async fn posts_that_are_due_later_are_listed_and_held_back_until_they_are_compared() {
    let mut world = service().start().await;
    world.connect("threads", "dee").await;
    let body = json!({ "content": "Canceled since", "accounts": ["dee"], "scheduled_at": tests::soon() });
    let canceled = world.post(body).await;
    assert!(world.stop("api").await);
    let id = canceled["id"].as_str().unwrap();
    let since = (tests::now() - TimeDelta::minutes(5)).to_rfc3339();
    let output = world.command(&["ops", "restored", "--since", &since, "--freeze", "Compared first"]).await;
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && report.starts_with("1 open posts; 0 publications"), "{report}");
    let listed = report.lines().any(|line| line.ends_with(id) && line.contains(&world.owner.org.to_string()));
    assert!(listed && report.contains("1 posts are due later"), "{report}");

    // It is due, and is not published before the operator has ended it.
    let due = format!("update posts set scheduled_at = now(), starts_at = now() where id = '{id}'");
    sql(&world.db, &due).await;
    started(&mut world).await;
    let is_frozen = |post: &Value| post["targets"][0]["error_code"] == "frozen";
    let frozen = world.until(id, "its freeze", is_frozen).await;
    let target = frozen["targets"][0]["id"].as_str().unwrap();
    for command in [
        &["ops", "end", target, "--reason", "It was canceled"][..],
        &["ops", "release", "platform", "threads"],
    ] {
        let output = world.command(command).await;
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(world.ended(&canceled).await["targets"][0]["error_code"], "stopped");
    assert_eq!(world.accepted("threads", "dee").await, 0);
}

#[tokio::test]
async fn a_time_in_the_future_is_refused() {
    let world = service().start().await;
    let since = (tests::now() + TimeDelta::hours(1)).to_rfc3339();
    let output = world.command(&["ops", "restored", "--since", &since]).await;
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("is in the future"), "{output:?}");
}
