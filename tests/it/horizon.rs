//! Far-off posts wait in the database only, and get a workflow when their time is within the scheduling horizon.
//!
//! The passing of time is simulated by other times in the row.

use crate::{PROGRAM, replay, world};
use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use domain::{Mode, OrgId, Owner, outbox::Message};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sqlx::Row;
use std::{collections::HashSet, time::Duration};
use store::publishing::sweep::{self, Swept, Timing};
use temporalio_client::{Client, WorkflowExecutionStatus};
use temporalio_common::UntypedWorkflow;
use tests::{World, sql, wait_until};

const FAR: &str = "2040-01-01T00:00:00Z";

fn id(of: &Value) -> &str {
    of["id"].as_str().unwrap()
}

fn path(post: &Value) -> String {
    format!("/posts/{}", id(post))
}

async fn patch(world: &World, post: &Value, body: Value) -> Value {
    let (status, edited) = world.call(Method::PATCH, &path(post), Some(&body)).await;
    assert_eq!(status, StatusCode::OK, "{edited}");
    edited
}

async fn delete(world: &World, post: &Value) {
    assert_eq!(world.call(Method::DELETE, &path(post), None).await.0, StatusCode::OK);
}

/// Returns the status of the latest run of a post's workflow; `None` without any.
async fn run(client: &Client, post: &Value) -> Option<WorkflowExecutionStatus> {
    let handle = client.get_workflow_handle::<UntypedWorkflow>(&format!("post-{}", id(post)));
    handle.describe(Default::default()).await.ok().map(|run| run.status())
}

async fn until_run(client: &Client, post: &Value, status: WorkflowExecutionStatus) {
    let look = async || match run(client, post).await {
        Some(found) if found == status => Ok(()),
        found => Err(format!("{found:?}")),
    };
    wait_until(&format!("the workflow to be {status:?}"), look).await;
}

/// Without Temporal, messages stay in the outbox.
#[tokio::test]
async fn creating_editing_and_deleting_a_far_off_post_writes_no_message() {
    let mut world = world().running(&[]).start().await;
    let temporal = world.set("TEMPORAL_ADDRESS", "http://127.0.0.1:9").expect("the address was set");
    world.run("api").await;
    world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    let far = |more: Value| {
        let mut body = json!({ "content": "Far", "accounts": ["ada"], "scheduled_at": FAR });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let written = async || {
        let of_posts = sqlx::query("select count(*) from outbox where message ? 'post'");
        of_posts.fetch_one(&world.db).await.unwrap().get::<i64, _>(0)
    };
    let edited = world.post(far(json!({}))).await;
    patch(&world, &edited, json!({ "content": "Still far" })).await;
    patch(
        &world,
        &edited,
        json!({ "scheduled_at": "2041-01-01T00:00:00Z", "accounts": ["ada.bsky.social"] }),
    )
    .await;
    patch(&world, &edited, json!({ "is_draft": true })).await;
    patch(&world, &edited, json!({ "content": "A draft again" })).await;
    let released = patch(&world, &edited, json!({ "is_draft": false })).await;
    assert_eq!(
        (&released["status"], &released["targets"][0]["status"]),
        (&json!("scheduled"), &json!("pending"))
    );
    delete(&world, &edited).await;
    let draft = world.post(far(json!({ "is_draft": true }))).await;
    patch(&world, &draft, json!({ "content": "Edited as a draft" })).await;
    patch(&world, &draft, json!({ "is_draft": false })).await;
    patch(&world, &draft, json!({ "is_draft": true })).await;
    delete(&world, &draft).await;
    // Each account has a time of its own, and there is none of the post.
    let own = json!({ "scheduled_at": null, "config": { "x": { "scheduled_at": "2042-01-01T00:00:00Z" } } });
    let own = world.post(far(own)).await;
    let reply =
        json!({ "content": "A reply", "accounts": ["ada"], "reply_to": id(&own), "scheduled_at": FAR });
    let reply = world.post(reply).await;
    delete(&world, &reply).await;
    delete(&world, &own).await;
    assert_eq!(written().await, 0);

    let near = world.post(far(json!({ "scheduled_at": tests::soon() }))).await;
    assert_eq!(written().await, 1, "a post within the horizon is carried at once");
    let moved = world.post(far(json!({}))).await;
    patch(&world, &moved, json!({ "scheduled_at": tests::soon() })).await;
    assert_eq!(written().await, 2, "a post that is moved into the horizon is carried at once");
    world.kill("api").await;
    world.set("TEMPORAL_ADDRESS", &temporal);
    world.run("all").await;
    let client = replay::client().await;
    for post in [&near, &moved] {
        until_run(&client, post, WorkflowExecutionStatus::Running).await;
    }
    for post in [&edited, &draft, &own, &reply] {
        assert_eq!(run(&client, post).await, None);
    }
}

#[tokio::test]
async fn a_post_gets_its_workflow_when_its_time_is_within_the_horizon() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let client = replay::client().await;
    let post = world.post(json!({ "content": "Far", "accounts": ["ada"], "scheduled_at": FAR })).await;
    let other = world.post(json!({ "content": "At once", "accounts": ["ada"] })).await;
    world.ended(&other).await;
    assert_eq!(run(&client, &post).await, None);
    let soon = tests::soon();
    sql(
        &world.db,
        &format!("update posts set scheduled_at = '{soon}', starts_at = '{soon}' where id = '{}'", id(&post)),
    )
    .await;
    until_run(&client, &post, WorkflowExecutionStatus::Running).await;
    let queued = |post: &Value| post["targets"][0]["status"] == "queued";
    let waiting = world.until(id(&post), "a queued target", queued).await;
    assert_eq!(waiting["status"], "scheduled", "it is not due yet");
    patch(&world, &post, json!({ "scheduled_at": null })).await;
    assert_eq!(world.ended(&post).await["status"], "published");
    assert_eq!(world.accepted("x", "ada").await, 2);
}

#[tokio::test]
async fn a_post_that_waited_beyond_the_horizon_is_published_at_its_time() {
    let world = world().set("FANFARE_SCHEDULING_HORIZON", "3").start().await;
    world.connect("x", "ada").await;
    let post = world.post(json!({ "content": "Later", "accounts": ["ada"], "scheduled_at": FAR })).await;
    let of = format!("where id = '{}'", id(&post));
    let waits = format!("select starts_at is not null from posts {of}");
    let waits = sqlx::query(sqlx::AssertSqlSafe(waits)).fetch_one(&world.db).await.unwrap();
    assert!(waits.get::<bool, _>(0), "it waits in the database");
    let due = tests::now().trunc_subsecs(0) + TimeDelta::seconds(7);
    sql(&world.db, &format!("update posts set scheduled_at = '{due}', starts_at = '{due}' {of}")).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published");
    let published: DateTime<Utc> = ended["published_at"].as_str().unwrap().parse().unwrap();
    assert!(published >= due, "published at {published}, due {due}");
    assert_eq!(world.accepted("x", "ada").await, 1);
}

#[tokio::test]
async fn an_edit_moves_a_post_into_the_horizon_and_out_of_it() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let client = replay::client().await;
    let post = world.post(json!({ "content": "Far", "accounts": ["ada"], "scheduled_at": FAR })).await;
    let move_to = async |at: &str| patch(&world, &post, json!({ "scheduled_at": at })).await;
    let soon = tests::soon();
    move_to(&soon).await;
    until_run(&client, &post, WorkflowExecutionStatus::Running).await;
    let far = move_to(FAR).await;
    assert_eq!((&far["status"], &far["targets"][0]["status"]), (&json!("scheduled"), &json!("pending")));
    until_run(&client, &post, WorkflowExecutionStatus::Completed).await;
    // Whatever order the messages of quick edits have, the last one decides.
    for _ in 0..5 {
        move_to(&soon).await;
        move_to(FAR).await;
    }
    move_to(&soon).await;
    let empty = async || {
        let waiting = format!("select count(*) from outbox where org_id = '{}'", world.owner.org);
        let waiting: i64 =
            sqlx::query(sqlx::AssertSqlSafe(waiting)).fetch_one(&world.db).await.unwrap().get(0);
        if waiting == 0 { Ok(()) } else { Err(waiting) }
    };
    wait_until("the messages to be sent", empty).await;
    until_run(&client, &post, WorkflowExecutionStatus::Running).await;
    for _ in 0..5 {
        move_to(FAR).await;
        move_to(&soon).await;
    }
    move_to(FAR).await;
    wait_until("the messages to be sent", empty).await;
    until_run(&client, &post, WorkflowExecutionStatus::Completed).await;
    patch(&world, &post, json!({ "scheduled_at": null })).await;
    assert_eq!(world.ended(&post).await["status"], "published");
    assert_eq!(world.accepted("x", "ada").await, 1);
}

/// The workers are down while an edit moves a post beyond the horizon and its time comes: the workflow gets both jobs,
/// which have the same version, at once.
#[tokio::test]
async fn a_post_that_comes_within_the_horizon_again_keeps_its_workflow() {
    let mut world = world().running(&["api", "worker"]).start().await;
    world.connect("x", "ada").await;
    let client = replay::client().await;
    let content = replay::marked("Soon");
    let post =
        world.post(json!({ "content": content, "accounts": ["ada"], "scheduled_at": tests::soon() })).await;
    let queued = |post: &Value| post["targets"][0]["status"] == "queued";
    world.until(id(&post), "a started workflow", queued).await;
    let workflow = format!("post-{}", id(&post));
    let latest = async || {
        let handle = client.get_workflow_handle::<UntypedWorkflow>(&workflow);
        handle.describe(Default::default()).await.unwrap().run_id().to_owned()
    };
    let first = latest().await;
    world.kill("worker").await;
    let sent = async || {
        let waiting = "select count(*) from outbox o where o.org_id = $1
                         or exists (select from posts p where p.org_id = $1 and p.starts_at < now() + interval '1 hour')";
        let waiting: i64 =
            sqlx::query_scalar(waiting).bind(world.owner.org.0).fetch_one(&world.db).await.unwrap();
        if waiting == 0 { Ok(()) } else { Err(waiting) }
    };
    patch(&world, &post, json!({ "scheduled_at": FAR })).await;
    wait_until("the far-off job to be sent", sent).await;
    let now = "with due as (select now() + interval '1 second' as at)
               update posts set scheduled_at = at, starts_at = at from due where org_id = ";
    sql(&world.db, &format!("{now} '{}'", world.owner.org)).await;
    wait_until("the job to be sent when its time has come", sent).await;
    world.run("worker").await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    assert_eq!(latest().await, first, "the sweeper need not find it overdue");
    replay::replay(&world, "publish_post-within_horizon", &workflow).await;
    assert_eq!(world.accepted("x", "ada").await, 1);
}

/// The time of the post that it replies to is no time of the reply: it may change until then.
#[tokio::test]
async fn a_reply_waits_in_the_database_for_its_own_time_and_then_for_its_post() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let client = replay::client().await;
    for parent_ends in ["published", "canceled"] {
        let parent = world.post(json!({ "content": "Far", "accounts": ["ada"], "scheduled_at": FAR })).await;
        let reply_to = |post: &Value, content: &str, at: Value| json!({ "content": content, "accounts": ["ada"], "reply_to": id(post), "scheduled_at": at });
        let far = world.post(reply_to(&parent, "A far-off reply", json!(FAR))).await;
        let reply = world.post(reply_to(&parent, "A reply", Value::Null)).await;
        let further = world.post(reply_to(&reply, "A reply to it", Value::Null)).await;
        for post in [&reply, &further] {
            until_run(&client, post, WorkflowExecutionStatus::Running).await;
        }
        let waits = |timeline: &Value| {
            timeline["data"].as_array().unwrap().iter().any(|entry| entry["kind"] == "waiting")
        };
        for post in [&reply, &further] {
            world.until_at(&format!("{}/timeline", path(post)), "the reply to wait", waits).await;
        }
        for post in [&parent, &far] {
            assert_eq!(run(&client, post).await, None);
        }
        let status = if parent_ends == "published" {
            patch(&world, &parent, json!({ "scheduled_at": null })).await;
            assert_eq!(world.ended(&parent).await["status"], parent_ends);
            "published"
        } else {
            delete(&world, &parent).await;
            "failed"
        };
        for post in [&reply, &further] {
            let ended = world.ended(post).await;
            assert_eq!(ended["status"], status, "{parent_ends}: {ended:#}");
        }
        assert_eq!(run(&client, &far).await, None, "its own time has not come");
        let soon = tests::now();
        let of = format!(
            "update posts set scheduled_at = '{soon}', starts_at = '{soon}' where id = '{}'",
            id(&far)
        );
        sql(&world.db, &of).await;
        let ended = world.ended(&far).await;
        assert_eq!(ended["status"], status, "{parent_ends}: {ended:#}");
    }
    assert_eq!(world.accepted("x", "ada").await, 4);
}

#[tokio::test]
async fn another_horizon_applies_after_a_restart() {
    let mut world = world().own().start().await;
    world.connect("x", "ada").await;
    let client = replay::client().await;
    let at = tests::now() + TimeDelta::hours(30);
    let post = world.post(json!({ "content": "Later", "accounts": ["ada"], "scheduled_at": at })).await;
    let other = world.post(json!({ "content": "At once", "accounts": ["ada"] })).await;
    world.ended(&other).await;
    assert_eq!(run(&client, &post).await, None);
    assert!(world.stop("all").await);
    world.set("FANFARE_SCHEDULING_HORIZON", "172800");
    world.run("all").await;
    until_run(&client, &post, WorkflowExecutionStatus::Running).await;
    // With a shorter one, what was started stays so.
    assert!(world.stop("all").await);
    world.set("FANFARE_SCHEDULING_HORIZON", "60");
    world.run("all").await;
    patch(&world, &post, json!({ "content": "Now", "scheduled_at": null })).await;
    assert_eq!(world.ended(&post).await["status"], "published");
    assert_eq!(world.accepted("x", "ada").await, 2);
}

#[tokio::test]
async fn a_horizon_within_which_posts_could_be_missed_is_refused() {
    let mut world = world().pace(1.0).running(&[]).start().await;
    for (value, reason) in [
        ("59", "FANFARE_SCHEDULING_HORIZON is 59 s, and must be at least 60 s"),
        ("soon", "invalid value 'soon'"),
    ] {
        world.set("FANFARE_SCHEDULING_HORIZON", value);
        let ended = world.command(&["api"]).await;
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success() && errors.contains(reason), "{errors}");
    }
}

/// Far-off posts of one target each.
const ROWS: i64 = 20_000;

/// Returns how often posts were read, by a scan of the table, and as rows of indexes.
async fn reads(db: &sqlx::PgPool) -> (i64, i64) {
    sqlx::raw_sql("select pg_stat_force_next_flush()").execute(db).await.unwrap();
    sqlx::raw_sql("select pg_stat_clear_snapshot()").execute(db).await.unwrap();
    let row = sqlx::query("select seq_scan, idx_tup_fetch from pg_stat_user_tables where relname = 'posts'")
        .fetch_one(db)
        .await
        .unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test(flavor = "multi_thread")]
async fn far_off_posts_cause_no_work_and_enter_the_horizon_in_batches() {
    let url = tests::database_url(&PROGRAM).await;
    // One connection, whose statistics are its own.
    let db = store::connect(&url, 1).await.unwrap();
    let org = store::people::organizations::create(&db, "Acme").await.unwrap();
    fill(&db, org).await;
    let timing = Timing {
        grace: Duration::from_secs(30),
        row_interval: Duration::from_secs(60),
        horizon: Duration::from_secs(24 * 3600),
        renewal_ages: &[],
    };
    let before = reads(&db).await;
    assert_eq!(sweep::sweep(&db, timing, 500).await.unwrap(), Swept::default());
    let after = reads(&db).await;
    assert_eq!(after.0, before.0, "the table is not scanned");
    // The planner looks at the ends of indexes.
    assert!(after.1 - before.1 < 20, "{} posts are read", after.1 - before.1);

    // Half of them enter at once, and several processes find them.
    sql(&db, "update posts set starts_at = now() + interval '23 hours' where version % 2 = 0").await;
    let other = store::connect(&url, 1).await.unwrap();
    let (one, two) = tokio::join!(sweep::sweep(&db, timing, 500), sweep::sweep(&other, timing, 500));
    let mut found = one.unwrap().near + two.unwrap().near;
    loop {
        match sweep::sweep(&db, timing, 500).await.unwrap() {
            Swept { near: 0, overdue: 0 } => break,
            Swept { near, overdue } => {
                found += near;
                assert_eq!(overdue, 0, "far-off posts are not overdue");
            }
        }
    }
    assert_eq!(found as i64, ROWS / 2);
    let largest: i64 =
        sqlx::query("select max(n) from (select count(*) as n from outbox group by xmin::text) transactions")
            .fetch_one(&db)
            .await
            .unwrap()
            .get(0);
    assert!(largest <= 200, "{largest} posts in a transaction");
    let mut posts = HashSet::new();
    loop {
        let claimed = store::outbox::claim(&db, 1000, Duration::from_secs(60)).await.unwrap();
        if claimed.is_empty() {
            break;
        }
        for message in claimed {
            let Ok(Message::PostChanged(job)) = message.message else { panic!("a job: {message:?}") };
            assert_eq!((job.owner, job.targets.len()), (Owner { org, mode: Mode::Test }, 1));
            assert!(posts.insert(job.post), "a post is carried once");
        }
    }
    assert_eq!(posts.len() as i64, ROWS / 2);
    let left =
        sqlx::query("select count(*) from posts where starts_at is not null").fetch_one(&db).await.unwrap();
    assert_eq!(left.get::<i64, _>(0), ROWS / 2);
}

/// Fills a database with far-off posts, whose versions are numbers.
async fn fill(db: &sqlx::PgPool, org: OrgId) {
    let statements = format!(
        "insert into accounts (id, org_id, mode, platform, network_unique_id, username, display_name, account_type, status,
           scopes, created_at, updated_at)
         values (gen_random_uuid(), '{org}', 'test', 'x', '1', 'ada', 'Ada', 'profile', 'active', '{{}}', now(), now());
         insert into posts (id, org_id, mode, status, is_draft, version, scheduled_at, starts_at, default_config, created_at,
           updated_at)
         select gen_random_uuid(), '{org}', 'test', 'scheduled', false, n, at, at, '{{}}', now(), now()
         from generate_series(1, {ROWS}) n, lateral (select now() + interval '30 days' + n * interval '1 minute' as at) a;
         insert into containers (id, post_id, org_id, mode, position, content, media)
         select gen_random_uuid(), id, org_id, mode, 0, 'Far', '[]' from posts;
         insert into targets (id, post_id, org_id, mode, account_id, platform, created_at, updated_at)
         select gen_random_uuid(), p.id, p.org_id, p.mode, a.id, a.platform, now(), now() from posts p, accounts a;
         analyze posts; analyze targets;"
    );
    sql(db, &statements).await;
}
