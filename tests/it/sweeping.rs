//! Rows whose workflow is lost are resumed without an operator.
//!
//! A loss of Temporal's data is simulated by terminating and deleting every workflow of the row with the real
//! CLI: calls to the workflow then fail with not found, as after a restore.

use crate::{PROGRAM, analytics::scheduled, world};
use domain::outbox::Message;
use futures::{StreamExt, stream};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{Receiver, World, temporal, wait_until, wait_within};
use tokio::{net::TcpListener, time::timeout};

async fn gone(workflow: &str) {
    for what in ["terminate", "delete"] {
        temporal(&PROGRAM, &["workflow", what, "-w", workflow]).await;
    }
}

fn id(of: &Value) -> &str {
    of["id"].as_str().unwrap()
}

#[tokio::test]
async fn posts_whose_workflows_are_lost_are_published() {
    let world = world().pace(0.05).platforms(&["threads"]).start().await;
    world.connect("threads", "ada").await;
    let far = json!({ "content": "Later", "accounts": ["ada"], "scheduled_at": tests::soon() });
    let scheduled = world.post(far).await;
    let waiting = world.post(json!({ "content": "Refused #sandbox-429x1", "accounts": ["ada"] })).await;
    world.until(id(&scheduled), "a started workflow", |post| post["targets"][0]["status"] == "queued").await;
    world.until(id(&waiting), "a failed attempt", |post| post["targets"][0]["status"] == "failed").await;
    gone(&format!("post-{}", id(&scheduled))).await;
    crate::replay::backs_off(&waiting).await;
    gone(&format!("post-{}", id(&waiting))).await;
    gone(&format!("target-{}", id(&waiting["targets"][0]))).await;
    // Their times arrive.
    tests::sql(
        &world.db,
        "update posts set scheduled_at = now() where scheduled_at is not null;
         update targets set next_attempt_at = now() where next_attempt_at is not null;",
    )
    .await;
    for post in [scheduled, waiting] {
        let ended = world.ended(&post).await;
        assert_eq!(ended["status"], "published", "{ended:#}");
    }
    assert_eq!(world.accepted("threads", "ada").await, 2);
}

#[tokio::test]
async fn a_requested_retry_reaches_a_target_whose_workflow_is_lost() {
    // The sweeper runs after twenty seconds at the earliest, and the next attempt is due later.
    let world = world().pace(1.0).start().await;
    world.connect("threads", "ada").await;
    let post = world.post(json!({ "content": "Refused #sandbox-429x1", "accounts": ["ada"] })).await;
    let failed = |post: &Value| post["targets"][0]["status"] == "failed";
    world.until(id(&post), "a failed attempt", failed).await;
    crate::replay::backs_off(&post).await;
    gone(&format!("post-{}", id(&post))).await;
    gone(&format!("target-{}", id(&post["targets"][0]))).await;
    let path = format!("/posts/{}/targets/{}/retry", id(&post), id(&post["targets"][0]));
    let (status, _) = world.call(Method::POST, &path, None).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    assert_eq!(world.ended(&post).await["status"], "published");
    assert_eq!(world.accepted("threads", "ada").await, 1);
}

/// Creates a post whose target on X was dead, is retried and has failed again, and has lost its workflow, while its
/// target on Threads waits for a time of its own. Returns it, and the target on X.
async fn lost_beside_a_waiting_one(world: &mut World) -> (Value, String) {
    world.connect("x", "ada").await;
    world.connect("threads", "bob").await;
    let post = world
        .post(json!({
            "content": crate::replay::marked("Refused #sandbox-400x1"), "accounts": ["ada", "bob"],
            "config": { "threads": { "scheduled_at": tests::soon() } },
        }))
        .await;
    let of = |post: &Value| {
        post["targets"].as_array().unwrap().iter().find(|target| target["platform"] == "x").unwrap().clone()
    };
    world.until(id(&post), "it is dead on X", |post| of(post)["status"] == "dead").await;
    world.set_sandbox(json!({ "refusals": { "/2/tweets": 503 } })).await;
    let (status, _) =
        world.call(Method::POST, &format!("/posts/{}/retry", id(&post)), Some(&json!({}))).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let failed = world.until(id(&post), "a failed attempt", |post| of(post)["status"] == "failed").await;
    let target = id(&of(&failed)).to_owned();
    crate::replay::backs_off(&json!({ "targets": [of(&failed)] })).await;
    gone(&format!("target-{target}")).await;
    world.set_sandbox(json!({ "refusals": {} })).await;
    world.leave_post(&post, "its target on Threads waits for its time");
    (post, target)
}

async fn is_published_on_x(world: &World, post: &Value) {
    let published = |post: &Value| {
        post["targets"]
            .as_array()
            .unwrap()
            .iter()
            .any(|target| target["platform"] == "x" && target["status"] == "published")
    };
    world.until(id(post), "it is published on X", published).await;
    assert_eq!(world.accepted("x", "ada").await, 1);
}

#[tokio::test]
async fn a_target_whose_workflow_is_lost_is_resumed_while_another_waits_for_its_time() {
    let mut world = world().pace(1.0).own().platforms(&["threads", "x"]).start().await;
    let (post, target) = lost_beside_a_waiting_one(&mut world).await;
    let overdue =
        format!("update targets set next_attempt_at = now() - interval '31 seconds' where id = '{target}'");
    tests::sql(&world.db, &overdue).await;
    is_published_on_x(&world, &post).await;
}

#[tokio::test]
async fn a_requested_retry_reaches_a_lost_target_while_another_waits_for_its_time() {
    let mut world = world().pace(1.0).own().platforms(&["threads", "x"]).start().await;
    let (post, target) = lost_beside_a_waiting_one(&mut world).await;
    tests::sql(
        &world.db,
        &format!("update targets set next_attempt_at = now() + interval '1 hour' where id = '{target}'"),
    )
    .await;
    let path = format!("/posts/{}/targets/{target}/retry", id(&post));
    assert_eq!(world.call(Method::POST, &path, None).await.0, StatusCode::ACCEPTED);
    is_published_on_x(&world, &post).await;
    // Its workflow was signaled, and ends with the other target.
    let of_threads = |target: &&Value| target["platform"] == "threads";
    let other = post["targets"].as_array().unwrap().iter().find(of_threads).unwrap();
    crate::ops::done(&world, &["end", id(other), "--reason", "a test"]).await;
    let workflow = format!("post-{}", id(&post));
    crate::replay::replay(&world, "publish_post-overdue", &workflow).await;
}

#[tokio::test]
async fn an_edit_resumes_a_post_whose_workflow_was_terminated() {
    let world = world().start().await;
    world.connect("threads", "ada").await;
    let far = json!({ "content": "Later", "accounts": ["ada"], "scheduled_at": tests::soon() });
    let post = world.post(far).await;
    world.until(id(&post), "a started workflow", |post| post["targets"][0]["status"] == "queued").await;
    temporal(&PROGRAM, &["workflow", "terminate", "-w", &format!("post-{}", id(&post))]).await;
    let now = json!({ "scheduled_at": tests::now() });
    let (status, _) = world.call(Method::PATCH, &format!("/posts/{}", id(&post)), Some(&now)).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(world.ended(&post).await["status"], "published");
    assert_eq!(world.accepted("threads", "ada").await, 1);
}

#[tokio::test]
async fn deliveries_whose_workflow_is_lost_are_made() {
    let world = world().pace(0.02).platforms(&["threads"]).start().await;
    world.connect("threads", "ada").await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    receiver.answer([500, 500]);
    world.post(json!({ "content": "Told", "accounts": ["ada"] })).await;
    receiver.until("two attempts", |all| all.len() == 2).await;
    gone(&format!("endpoint-{}", id(&webhook))).await;
    receiver.until("two retries", |all| all.len() == 4).await;
}

#[tokio::test]
async fn a_redelivery_whose_workflow_is_lost_is_made() {
    let world = world().pace(0.02).platforms(&["threads"]).start().await;
    world.connect("threads", "ada").await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let post = world.post(json!({ "content": "Told", "accounts": ["ada"] })).await;
    let first = receiver.events(&["post.target.published", "post.published"]).await.remove(0);
    world.ended(&post).await;
    let deliveries = format!("/webhooks/{}/deliveries", id(&webhook));
    let delivered =
        |all: &Value| all["data"].as_array().unwrap().iter().all(|one| one["status"] == "delivered");
    let all = world.until_at(&deliveries, "all to be delivered", delivered).await;
    let again = all["data"].as_array().unwrap().iter().find(|one| one["event"] == first.event()).unwrap();
    receiver.answer([500]);
    let (status, _) = world.call(Method::POST, &format!("{deliveries}/{}/redeliver", id(again)), None).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    receiver.until("the refused redelivery", |all| all.len() == 3).await;
    gone(&format!("endpoint-{}", id(&webhook))).await;
    receiver.until("the retry", |all| all.len() == 4).await;
    world.until_at(&deliveries, "all to be delivered", delivered).await;
}

#[tokio::test]
async fn a_scheduled_post_whose_workflow_is_lost_is_edited_or_deleted() {
    let world = world().start().await;
    world.connect("threads", "ada").await;
    let later = || json!({ "content": "Later", "accounts": ["ada"], "scheduled_at": tests::soon() });
    let (edited, deleted) = (world.post(later()).await, world.post(later()).await);
    for post in [&edited, &deleted] {
        world.until(id(post), "a started workflow", |post| post["targets"][0]["status"] == "queued").await;
        gone(&format!("post-{}", id(post))).await;
    }
    let path = |post: &Value| format!("/posts/{}", id(post));
    assert_eq!(world.call(Method::DELETE, &path(&deleted), None).await.0, StatusCode::OK);
    let now = json!({ "content": "Now", "scheduled_at": null });
    assert_eq!(world.call(Method::PATCH, &path(&edited), Some(&now)).await.0, StatusCode::OK);
    let ended = world.ended(&edited).await;
    assert_eq!(
        (&ended["status"], &ended["containers"][0]["content"]),
        (&json!("published"), &json!("Now")),
        "{ended:#}"
    );
    assert_eq!(world.accepted("threads", "ada").await, 1);
}

#[tokio::test]
async fn a_call_under_way_is_captured_although_its_workflows_are_lost() {
    let world = world().platforms(&["threads"]).start().await;
    world.connect("threads", "ada").await;
    let post = world.post(json!({ "content": "Slow #sandbox-slow", "accounts": ["ada"] })).await;
    world.until(id(&post), "the attempt to begin", |post| post["status"] == "publishing").await;
    // It makes the first attempt: the target has no workflow of its own.
    gone(&format!("post-{}", id(&post))).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    assert_eq!(world.accepted("threads", "ada").await, 1);
}

#[tokio::test]
async fn schedules_that_are_lost_are_created_again() {
    let world = world().set("FANFARE_COLLECT_EVERY", "7200").start().await;
    let client = crate::replay::client().await;
    let queue = world.variable("FANFARE_TASK_QUEUE");
    for lost in [workflows::collect_metrics::id(queue), workflows::clean_up_media::id(queue)] {
        let handle = client.get_schedule_handle(lost);
        scheduled(&handle, |found| found.is_ok()).await;
        handle.delete(Default::default()).await.unwrap();
        scheduled(&handle, |found| found.is_ok()).await;
    }
}

#[tokio::test]
async fn imports_whose_workflow_is_lost_complete() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    // The platform does not respond until the workflow is deleted.
    let hold = json!({ "platform": "x", "method": "GET", "path_prefix": "/2/users/", "when": "before" });
    let hold = world.hold(hold).await;
    let (_, import) =
        world.call(Method::POST, &format!("/social-accounts/{account}/imports"), Some(&json!({}))).await;
    hold.until_held().await;
    gone(&format!("import-{}", id(&import))).await;
    hold.release().await;
    let path = format!("/social-accounts/{account}/imports/{}", id(&import));
    world.until_at(&path, "its completion", |import| import["status"] == "completed").await;
}

#[tokio::test]
async fn media_imports_whose_workflow_is_lost_end() {
    let world = world().pace(0.05).start().await;
    // The listener never responds, and closes once the workflow is deleted.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/a.png", silent.local_addr().unwrap());
    let (_, medium) = world.call(Method::POST, "/media/import", Some(&json!({ "url": url }))).await;
    let asked = timeout(tests::PATIENCE, silent.accept()).await.expect("it is fetched").unwrap();
    gone(&format!("fetch-{}", id(&medium))).await;
    drop((silent, asked));
    let path = format!("/media/{}", id(&medium));
    world.until_at(&path, "its failure", |medium| medium["status"] == "failed").await;
}

#[tokio::test]
async fn grants_whose_workflow_is_lost_are_erased_and_renewed() {
    let world = world().own().platforms(&["reddit"]).start().await;
    let (leaving, staying) = (world.connect("reddit", "ada").await, world.connect("reddit", "bob").await);
    let client = crate::replay::client().await;
    for account in [&leaving, &staying] {
        let keeper = format!("renew-grant-{account}");
        crate::replay::started(&client, &keeper).await;
        gone(&keeper).await;
    }
    // As if this had happened long ago, with no message left in the outbox.
    tests::sql(
        &world.db,
        &format!(
            "update accounts set status = 'disconnected', updated_at = now() - interval '1 hour' where id = '{leaving}';
             update accounts set granted_at = now() - interval '100 minutes',
               token_expires_at = now() + interval '10 minutes' where id = '{staying}';"
        ),
    )
    .await;
    let owner = world.owner;
    let grant =
        async |id: &str| store::accounts::grants::get(&world.db, owner, id.parse().unwrap()).await.unwrap();
    let look = async || {
        let (erased, version) = (grant(&leaving).await.is_none(), grant(&staying).await.unwrap().version);
        if erased && version > 1 { Ok(()) } else { Err(format!("erased: {erased}, version {version}")) }
    };
    wait_until("one grant to be erased and one to be renewed", look).await;
}

#[tokio::test]
async fn an_unreadable_message_delays_no_post() {
    let world = world().own().platforms(&["threads"]).start().await;
    world.connect("threads", "ada").await;
    let unreadable =
        r#"insert into outbox (org_id, message) select id, '{"message": "of_tomorrow"}' from organizations"#;
    tests::sql(&world.db, unreadable).await;
    for number in 0..3 {
        let post = world.post(json!({ "content": format!("Number {number}"), "accounts": ["ada"] })).await;
        assert_eq!(world.ended(&post).await["status"], "published");
    }
    // The message waits for a version of Fanfare that can read it.
    tests::sql(&world.db, "delete from outbox where message->>'message' = 'of_tomorrow'").await;
}

#[tokio::test]
async fn a_post_that_temporal_refuses_fails_with_a_reason() {
    let world = world().own().platforms(&["threads"]).start().await;
    world.connect("threads", "ada").await;
    let far = json!({ "content": "Later", "accounts": ["ada"], "scheduled_at": tests::soon() });
    let post = world.post(far).await;
    world.until(id(&post), "a started workflow", |post| post["targets"][0]["status"] == "queued").await;
    // Larger than a workflow's input may be.
    let (db, owner) = (&world.db, world.owner);
    let mut tx = ::store::begin(db).await.unwrap();
    let found = store::posts::resumption(&mut tx, owner, id(&post).parse().unwrap()).await.unwrap();
    let Some(Message::PublishPost(mut job)) = found else { panic!("a job: {found:?}") };
    job.targets[0].platform = "x".repeat(3_000_000);
    store::outbox::push(&mut tx, &Message::PublishPost(job)).await.unwrap();
    tx.commit().await.unwrap();
    let look = async || {
        let found = store::posts::get(db, store::bounds::unbounded(owner), id(&post).parse().unwrap())
            .await
            .unwrap()
            .unwrap();
        if found.status == domain::PostStatus::Failed { Ok(found) } else { Err(found.status) }
    };
    let ended = wait_until("the post to fail", look).await;
    let message = ended.targets[0].error_message.as_deref().unwrap();
    // The message of Temporal is for operators only.
    assert_eq!(message, "the service could not start to publish it; its operator is told the reason");
    assert_eq!(store::outbox::len(db).await.unwrap(), 0, "nothing is retried");
    // The message is kept for an operator; an earlier message started the workflow.
    tests::sql(db, "delete from outbox where parked_at is not null").await;
    temporal(&PROGRAM, &["workflow", "terminate", "-w", &format!("post-{}", id(&post))]).await;
}

#[tokio::test]
async fn a_post_is_published_to_a_thousand_accounts() {
    let world = world().own().platforms(&["bluesky"]).start().await;
    let connect = async |number| world.connect("bluesky", &format!("ada{number}.bsky.social")).await;
    let accounts: Vec<String> = stream::iter(0..1000).map(connect).buffer_unordered(8).collect().await;
    let post = world.post(json!({ "content": "To all", "accounts": accounts })).await;
    let path = format!("/posts/{}", id(&post));
    let look = async || {
        let found = world.get(&path).await;
        let status = found["status"].as_str().unwrap().to_owned();
        if ["queued", "publishing"].contains(&status.as_str()) { Err(status) } else { Ok(found) }
    };
    let ended = wait_within(5 * tests::PATIENCE, "a thousand targets to end", look).await;
    assert_eq!(ended["status"], "published");
    let targets = ended["targets"].as_array().unwrap();
    assert_eq!(targets.iter().filter(|target| target["status"] == "published").count(), 1000);
}
