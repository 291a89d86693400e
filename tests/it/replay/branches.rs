//! A run of each branch that the other tests don't take.

use super::{client, fresh, history, marked, replay, replay_run, replay_run_that, started};
use crate::{PROGRAM, connect, media, ops, world};
use chrono::TimeDelta;
use futures::future::join_all;
use poem::{Response, handler};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::HashSet;
use temporalio_client::WorkflowExecutionStatus;
use temporalio_common::UntypedWorkflow;
use tests::{
    Receiver, World, if_right, login,
    samples::{film, gif, png},
    temporal, wait_until,
};
use tokio::net::TcpListener;

const FAR: &str = "2040-01-01T00:00:00Z";
/// Path of X's token endpoint.
const TOKEN: &str = "/2/oauth2/token";

fn id(of: &Value) -> &str {
    of["id"].as_str().unwrap()
}

/// Returns the workflow ids of a post and of its first target.
fn workflows(post: &Value) -> (String, String) {
    (format!("post-{}", id(post)), format!("target-{}", id(&post["targets"][0])))
}

async fn cli(action: &str, workflow: &str) {
    let reset = ["--type", "FirstWorkflowTask", "--reason", "a test"];
    let more = if action == "reset" { &reset[..] } else { &[] };
    temporal(&PROGRAM, &[&["workflow", action, "-w", workflow], more].concat()).await;
}

/// Waits until the history of a workflow mentions something this many times.
async fn mentions(workflow: &str, what: &str, times: usize) {
    let client = client().await;
    let look = async || {
        let found = history(&client, workflow).await.matches(what).count();
        if_right(found, |found| *found >= times)
    };
    wait_until(&format!("{what} in the history of {workflow}"), look).await;
}

async fn posted(world: &World, content: &str, name: &str) -> Value {
    world.post(json!({ "content": marked(content), "accounts": [name] })).await
}

async fn attempt_failed(world: &World, content: &str, name: &str) -> Value {
    let post = posted(world, content, name).await;
    let failed = |post: &Value| post["targets"][0]["status"] == "failed";
    let post = world.until(id(&post), "a failed attempt", failed).await;
    started(&client().await, &workflows(&post).1).await;
    post
}

/// Creates a post for a later time, and waits until its workflow has started.
async fn scheduled(world: &World, name: &str) -> Value {
    let later = json!({ "content": marked("Later"), "accounts": [name], "scheduled_at": tests::soon() });
    let post = world.post(later).await;
    started(&client().await, &workflows(&post).0).await;
    post
}

#[tokio::test]
async fn posts_that_are_withdrawn_or_changed_replay() {
    let world = world().start().await;
    world.connect("x", "ada").await;

    let post = scheduled(&world, "ada").await;
    let path = format!("/posts/{}", id(&post));
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
    replay(&world, "publish_post-deleted", &workflows(&post).0).await;

    let post = scheduled(&world, "ada").await;
    cli("cancel", &workflows(&post).0).await;
    replay_run_that(&world, "publish_post-canceled", &workflows(&post).0, "Canceled").await;
    assert_eq!(world.ended(&post).await["status"], "failed");

    let post = scheduled(&world, "ada").await;
    let path = format!("/posts/{}", id(&post));
    let far = json!({ "scheduled_at": FAR });
    assert_eq!(world.call(Method::PATCH, &path, Some(&far)).await.0, StatusCode::OK);
    replay(&world, "publish_post-far_off", &workflows(&post).0).await;

    let due = tests::now() + TimeDelta::milliseconds(1500);
    let post =
        world.post(json!({ "content": marked("Before"), "accounts": ["ada"], "scheduled_at": due })).await;
    // As an edit whose message is late.
    let edit = format!("update posts set version = version + 1 where id = '{}'", id(&post));
    tests::sql(&world.db, &edit).await;
    let workflow = workflows(&post).0;
    mentions(&workflow, "ActivityTaskCompletedEventAttributes", 1).await;
    let path = format!("/posts/{}", id(&post));
    let (status, edited) =
        world.call(Method::PATCH, &path, Some(&json!({ "content": marked("After") }))).await;
    assert_eq!(status, StatusCode::OK, "{edited}");
    assert_eq!(world.ended(&post).await["status"], "published");
    replay(&world, "publish_post-stale", &workflow).await;
}

/// A target whose first attempt waits has a workflow, which ends when its post is edited.
#[tokio::test]
async fn a_target_whose_post_is_edited_replays() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    ops::done(&world, &["freeze", "account", &account, "--reason", "a test"]).await;
    let post = posted(&world, "Before", "ada").await;
    let target = workflows(&post).1;
    started(&client().await, &target).await;
    let path = format!("/posts/{}", id(&post));
    let (status, edited) =
        world.call(Method::PATCH, &path, Some(&json!({ "content": marked("After") }))).await;
    assert_eq!(status, StatusCode::OK, "{edited}");
    replay_run_that(&world, "publish_target-stale", &target, "Completed").await;
    ops::done(&world, &["release", "account", &account]).await;
    assert_eq!(world.ended(&post).await["status"], "published");
}

#[tokio::test]
async fn posts_that_a_platform_processes_replay() {
    let world = world().start().await;
    for name in ["ada", "bob", "eve"] {
        world.connect("x", name).await;
    }
    world.set_sandbox(json!({ "processing_ms": 300 })).await;
    let quick = world.medium("a.gif", None, gif(2)).await;
    // X's window of ten minutes is six seconds at this pace.
    let stuck = world.medium("sandbox-stuck.gif", None, gif(2)).await;
    let create = async |medium: &Value, name: &str| {
        let container = json!({ "content": marked("Moving"), "media": [{ "id": medium["id"] }] });
        world.post(json!({ "containers": [container], "accounts": [name] })).await
    };

    let post = create(&quick, "ada").await;
    assert_eq!(world.ended(&post).await["status"], "published");
    replay(&world, "publish_target-processing", &workflows(&post).1).await;
    replay(&world, "publish_post-processing", &workflows(&post).0).await;

    let closed = create(&stuck, "ada").await;
    let refused = create(&stuck, "bob").await;
    let stopped = create(&stuck, "eve").await;
    for post in [&refused, &stopped] {
        mentions(&workflows(post).1, r#""name":"poll""#, 1).await;
    }
    world.expire_tokens("x", "bob").await;
    cli("cancel", &workflows(&stopped).1).await;
    for (name, post) in [
        ("closed_window", closed),
        ("refused_token_while_processing", refused),
        ("stopped_while_processing", stopped),
    ] {
        assert_eq!(world.ended(&post).await["status"], "failed", "{name}");
        replay(&world, &format!("publish_target-{name}"), &workflows(&post).1).await;
    }
}

#[tokio::test]
async fn posts_whose_token_is_refused_replay() {
    let world = world().start().await;
    for name in ["ada", "bob", "eve"] {
        world.connect("x", name).await;
        world.expire_tokens("x", name).await;
    }
    world.revoke_grants("x", "eve").await;
    let refused = posted(&world, "Refreshed", "ada").await;
    let lost = posted(&world, "Lost", "eve").await;
    for (name, post, status) in [("refused_token", refused, "published"), ("lost_grant", lost, "failed")] {
        assert_eq!(world.ended(&post).await["status"], status, "{name}");
        replay(&world, &format!("publish_target-{name}"), &workflows(&post).1).await;
        replay(&world, &format!("publish_post-{name}"), &workflows(&post).0).await;
    }

    world.set_sandbox(json!({ "refusals": { (TOKEN): 503 } })).await;
    let post = posted(&world, "Later", "bob").await;
    let path = format!("/posts/{}/timeline", id(&post));
    let has_waited = |timeline: &Value| {
        timeline["data"].as_array().unwrap().iter().any(|entry| {
            let message = entry["message"].as_str().unwrap();
            message.starts_with("No fresh token yet")
        })
    };
    world.until_at(&path, "a failed refresh", has_waited).await;
    world.set_sandbox(json!({ "refusals": {} })).await;
    assert_eq!(world.ended(&post).await["status"], "published");
    replay(&world, "publish_target-no_fresh_token", &workflows(&post).1).await;
}

#[tokio::test]
async fn posts_that_an_operator_stops_or_resets_replay() {
    let world = world().start().await;
    for name in ["ada", "bob"] {
        world.connect("threads", name).await;
    }
    world.connect("x", "eve").await;
    // The next attempt is due in a minute.
    let waiting =
        join_all(["ada", "bob"].map(|name| attempt_failed(&world, "Not now #sandbox-429x1", name))).await;
    let [stopped, reset] = &waiting[..] else { unreachable!("two posts") };
    cli("cancel", &workflows(stopped).1).await;
    assert_eq!(world.ended(stopped).await["status"], "failed");
    replay(&world, "publish_target-stopped", &workflows(stopped).1).await;

    let target = workflows(reset).1;
    cli("reset", &target).await;
    mentions(&target, "ActivityTaskScheduledEventAttributes", 1).await;
    let path = format!("/posts/{}/targets/{}/retry", id(reset), id(&reset["targets"][0]));
    assert_eq!(world.call(Method::POST, &path, None).await.0, StatusCode::ACCEPTED);
    assert_eq!(world.ended(reset).await["status"], "published");
    replay(&world, "publish_target-reset", &target).await;

    let post = attempt_failed(&world, "Not yet #sandbox-429x1", "ada").await;
    cli("cancel", &workflows(&post).0).await;
    assert_eq!(world.ended(&post).await["status"], "failed");
    replay(&world, "publish_post-canceled_while_publishing", &workflows(&post).0).await;

    // No look-up can tell whether it was published.
    world.set_sandbox(json!({ "refusals": { "/2/users/": 503 } })).await;
    let post = attempt_failed(&world, "Perhaps #sandbox-drop", "eve").await;
    cli("cancel", &workflows(&post).1).await;
    mentions(&workflows(&post).1, r#""name":"settle""#, 2).await;
    world.set_sandbox(json!({ "refusals": {} })).await;
    assert_eq!(world.ended(&post).await["status"], "failed");
    replay(&world, "publish_target-stopped_in_doubt", &workflows(&post).1).await;
}

#[tokio::test]
async fn a_post_whose_worker_is_killed_replays() {
    let mut world = world().running(&["api", "worker"]).platforms(&["x"]).start().await;
    world.connect("x", "ada").await;
    let hold = json!({ "platform": "x", "account": "ada", "path_prefix": "/2/tweets", "when": "after" });
    let hold = world.hold(hold).await;
    let post = posted(&world, "Survived", "ada").await;
    hold.until_held().await;
    world.kill("worker").await;
    hold.release().await;
    world.run("worker").await;
    assert_eq!(world.ended(&post).await["status"], "published");
    replay(&world, "publish_target-killed_worker", &workflows(&post).1).await;
}

/// An operator cancels a workflow while no worker runs, and its timer fires before one does: one workflow task has
/// both. The SDK fails such a task each time if the timer has the workflow's own cancellation token.
#[tokio::test]
async fn a_workflow_that_is_canceled_as_its_timer_fires_replays() {
    let mut world = world().running(&["api", "worker"]).start().await;
    world.connect("bluesky", "ada.bsky.social").await;
    let due = tests::now() + TimeDelta::seconds(4);
    let content = marked("Now or never");
    let post =
        world.post(json!({ "content": content, "accounts": ["ada.bsky.social"], "scheduled_at": due })).await;
    let workflow = workflows(&post).0;
    mentions(&workflow, "TimerStarted", 1).await;
    world.kill("worker").await;
    cli("cancel", &workflow).await;
    mentions(&workflow, "TimerFired", 1).await;
    world.run("worker").await;
    replay_run_that(&world, "publish_post-canceled_when_due", &workflow, "Canceled").await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "failed", "{ended:#}");
    assert_eq!(world.accepted("bluesky", "ada.bsky.social").await, 0);
}

#[tokio::test]
async fn renewals_replay() {
    let world = world().approved().start().await;
    let client = client().await;
    let renewal = |account: &str| format!("renew-grant-{account}");

    let account = world.connect("linkedin", "ada").await;
    started(&client, &renewal(&account)).await;
    assert_eq!(world.connect("linkedin", "ada").await, account);
    replay_run(&world, "renew_grant-replaced", &renewal(&account)).await;
    cli("cancel", &renewal(&account)).await;
    replay_run_that(&world, "renew_grant-canceled", &renewal(&account), "Canceled").await;

    world.set_sandbox(json!({ "token_seconds": 2, "refusals": { ("/oauth/v2/accessToken"): 503 } })).await;
    let account = world.connect("linkedin", "bob").await;
    mentions(&renewal(&account), r#""name":"renew_grant""#, 1).await;
    world.set_sandbox(json!({ "token_seconds": null, "refusals": {} })).await;
    assert_eq!(world.connect("linkedin", "bob").await, account);
    replay_run(&world, "renew_grant-replaced_while_unavailable", &renewal(&account)).await;

    world.set_sandbox(json!({ "token_seconds": 3 })).await;
    let account = world.connect("linkedin", "eve").await;
    world.revoke_grants("linkedin", "eve").await;
    replay(&world, "renew_grant-lost", &renewal(&account)).await;
    let path = format!("/social-accounts/{account}");
    assert_eq!(world.get(&path).await["status"], "reauth_required");
}

/// The message that cancels a workflow may overtake the one that starts it, as each process carries messages.
#[tokio::test]
async fn a_post_that_is_deleted_at_once_leaves_no_workflow() {
    let mut world = world().running(&["api", "worker"]).start().await;
    world.run_another_api().await;
    world.connect("bluesky", "ada.bsky.social").await;
    let body = json!({ "content": "Later", "accounts": ["ada.bsky.social"], "scheduled_at": tests::soon() });
    let deleted = join_all((0..3).map(|_| async {
        let mut deleted = Vec::new();
        for _ in 0..60 {
            let post = world.post(body.clone()).await;
            let (status, _) = world.call(Method::DELETE, &format!("/posts/{}", id(&post)), None).await;
            assert_eq!(status, StatusCode::OK);
            deleted.push(workflows(&post).0);
        }
        deleted
    }));
    let deleted = deleted.await.concat();
    let client = client().await;
    for workflow in deleted {
        // One that was never started is fine, too.
        let ended = async || {
            let handle = client.get_workflow_handle::<UntypedWorkflow>(&workflow);
            let found = handle.describe(Default::default()).await;
            let is_open = found.is_ok_and(|found| found.status() == WorkflowExecutionStatus::Running);
            let waits = store::outbox::len(&world.db).await.unwrap();
            if is_open || waits > 0 { Err(format!("open: {is_open}, {waits} messages wait")) } else { Ok(()) }
        };
        wait_until(&format!("the end of {workflow}"), ended).await;
    }
}

#[tokio::test]
async fn imports_replay() {
    let world = world().start().await;
    // A page of X has a hundred posts.
    world.set_sandbox(json!({ "lag_ms": 0, "limits": { "x.posts": 1000 } })).await;
    let token = world.account("x", "ada").await.grant.access_token;
    for number in 0..101 {
        let url = format!("{}/api.x.com/2/tweets", world.sandbox_url);
        let tweet = json!({ "text": marked(&format!("Number {number}")) });
        let sent = world.http.post(url).bearer_auth(&token).json(&tweet).send().await.unwrap();
        assert_eq!(sent.status(), StatusCode::CREATED);
    }
    let account = world.connect("x", "ada").await;
    let import = async || {
        let path = format!("/social-accounts/{account}/imports");
        let (status, import) = world.call(Method::POST, &path, Some(&json!({ "limit": 1000 }))).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{import}");
        (format!("import-{}", id(&import)), format!("{path}/{}", id(&import)))
    };
    let (workflow, path) = import().await;
    replay(&world, "import_posts-completed", &workflow).await;
    assert_eq!(world.get(&path).await["imported_count"], 101);

    let hold = json!({ "platform": "x", "method": "GET", "path_prefix": "/2/users/", "when": "before" });
    let hold = world.hold(hold).await;
    let (workflow, path) = import().await;
    hold.until_held().await;
    cli("cancel", &workflow).await;
    replay(&world, "import_posts-abandoned", &workflow).await;
    assert_eq!(world.get(&path).await["status"], "failed");
    hold.release().await;

    world.set_sandbox(json!({ "refusals": { "/2/users/": 503 } })).await;
    let (workflow, path) = import().await;
    mentions(&workflow, "TimerStarted", 1).await;
    cli("cancel", &workflow).await;
    replay(&world, "import_posts-abandoned_while_waiting", &workflow).await;
    assert_eq!(world.get(&path).await["status"], "failed");
}

#[handler]
fn picture() -> Response {
    Response::builder().content_type("image/png").body(png(8, 8))
}

#[tokio::test]
async fn media_replay() {
    let world = world().start().await;
    let import = async |url: String| {
        let (status, medium) = world.call(Method::POST, "/media/import", Some(&json!({ "url": url }))).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{medium}");
        medium
    };
    let address = tests::serve(picture).await;
    let medium = import(format!("http://{address}/a.png")).await;
    media::until(&world, &medium["id"], "ready").await;
    replay(&world, "process_media-fetched", &format!("fetch-{}", id(&medium))).await;

    // Longer than what is inspected while the caller waits.
    let medium = world.upload(json!({ "filename": "a.mp4" }), film(1000, 33 << 20)).await;
    assert_eq!(world.confirm(&medium).await.0, StatusCode::OK);
    media::until(&world, &medium["id"], "ready").await;
    replay(&world, "process_media-probed", &format!("probe-{}", id(&medium))).await;

    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let medium = import(format!("http://{}/a.png", silent.local_addr().unwrap())).await;
    let asked = silent.accept().await.unwrap();
    let workflow = format!("fetch-{}", id(&medium));
    cli("cancel", &workflow).await;
    replay_run_that(&world, "process_media-canceled", &workflow, "Canceled").await;
    // The sweeper has it fetched again, and nothing listens there any more.
    drop((silent, asked));
    media::until(&world, &medium["id"], "failed").await;
}

/// An organization gets half of the slots: eight for files, and twenty-five for calls to a platform.
#[tokio::test]
async fn work_beyond_an_organizations_share_replays() {
    let world = world().own().platforms(&["x"]).start().await;
    let client = client().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/a.png", silent.local_addr().unwrap());
    let (mut files, mut imports, mut holds) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..9 {
        let (_, medium) = world.call(Method::POST, "/media/import", Some(&json!({ "url": url }))).await;
        files.push(format!("fetch-{}", id(&medium)));
    }
    for nth in 1..=25 {
        let hold = json!({ "platform": "x", "path_prefix": "/2/users/", "nth": nth, "when": "before" });
        holds.push(world.hold(hold).await);
    }
    for number in 1..=26 {
        let account = world.connect("x", &format!("ada{number}")).await;
        let path = format!("/social-accounts/{account}/imports");
        let (_, import) = world.call(Method::POST, &path, Some(&json!({}))).await;
        imports.push(format!("import-{}", id(&import)));
    }
    // Which of them came last is up to the workers.
    let crowded = async |workflows: &[String]| {
        let look = async || {
            for workflow in workflows {
                if history(&client, workflow).await.contains("TimerStarted") {
                    return Ok(workflow.clone());
                }
            }
            Err("none waits")
        };
        wait_until("a workflow that waits for a slot", look).await
    };
    let (file, import) = (crowded(&files).await, crowded(&imports).await);
    drop(silent);
    for hold in holds {
        hold.release().await;
    }
    replay(&world, "process_media-crowded", &file).await;
    replay(&world, "import_posts-crowded", &import).await;
}

#[tokio::test]
async fn endpoints_replay() {
    // A retry is less than a second away.
    let fast = world().start().await;
    fast.connect("x", "ada").await;
    let (receiver, body) =
        (Receiver::start().await, |url: &str| json!({ "url": url, "events": ["post.published"] }));
    let (_, webhook) = fast.call(Method::POST, "/webhooks", Some(&body(&receiver.url))).await;
    receiver.answer([500]);
    posted(&fast, "Told again", "ada").await;
    receiver.until("a success", |all| all.len() >= 2).await;
    replay(&fast, "drain_endpoint-retried", &format!("endpoint-{}", id(&webhook))).await;

    // A retry is a minute away.
    let slow = world().pace(1.0).start().await;
    slow.connect("x", "ada").await;
    for name in ["drain_endpoint-woken", "drain_endpoint-canceled"] {
        let receiver = Receiver::start().await;
        let (_, webhook) = slow.call(Method::POST, "/webhooks", Some(&body(&receiver.url))).await;
        let workflow = format!("endpoint-{}", id(&webhook));
        receiver.answer([500]);
        posted(&slow, name, "ada").await;
        mentions(&workflow, "TimerStarted", 1).await;
        if name.ends_with("canceled") {
            cli("cancel", &workflow).await;
            replay_run_that(&slow, name, &workflow, "Canceled").await;
        }
        let path = format!("/webhooks/{}", id(&webhook));
        assert_eq!(slow.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
        if name.ends_with("woken") {
            replay(&slow, name, &workflow).await;
        }
    }
}

/// The platform is away for all tries to revoke the grant.
#[tokio::test]
async fn an_account_whose_grant_is_not_revoked_replays() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    world.set_sandbox(json!({ "refusals": { "/2/oauth2/revoke": 503 } })).await;
    let path = format!("/social-accounts/{account}");
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
    replay(&world, "disconnect_account-unrevoked", &format!("disconnect-{account}-1")).await;
    let kept = store::accounts::grants::get(&world.db, world.owner, account.parse().unwrap()).await.unwrap();
    assert!(kept.is_none(), "the grant is erased");
}

#[tokio::test]
async fn requests_to_workers_replay() {
    let world = world().approved().start().await;
    let client = client().await;
    let mut known = HashSet::new();
    let mut latest = async |name: &str| {
        let id = fresh(&client, &world.owner.org.to_string(), &known).await;
        replay(&world, &format!("worker_request-{name}"), &id).await;
        known.insert(id);
    };
    login::joined(&world, "x", "ada", json!({})).await;
    latest("callback").await;
    let token = login::several(&world, "google_business", "ada").await;
    latest("callback").await;
    let pending = world.get(&format!("/social-accounts/pending/{token}")).await;
    let (status, _) = connect::finalize(&world, &token, &[id(&pending["data"][0])]).await;
    assert_eq!(status, StatusCode::CREATED);
    latest("selection").await;
    let password = world.account("bluesky", "ada.bsky.social").await.grant.extra["app_password"].clone();
    let body = json!({ "identifier": "ada.bsky.social", "app_password": password });
    let (status, _) = world.call(Method::POST, "/social-accounts/bluesky/connect", Some(&body)).await;
    assert_eq!(status, StatusCode::CREATED);
    latest("password").await;
    let account = world.connect("pinterest", "ada").await;
    world.get(&format!("/social-accounts/{account}/options/boards")).await;
    latest("options").await;
    let account = world.connect("reddit", "ada").await;
    world.get(&format!("/social-accounts/{account}/limits")).await;
    latest("limits").await;
    let settings = json!({ "reddit": { "subreddit": "missing" } });
    // Nothing stores the text, so that only the search in the history is left.
    let body =
        json!({ "content": marked("Where"), "accounts": [account], "config": settings, "look_up": true });
    let (status, verdict) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
    assert_eq!((status, &verdict["valid"]), (StatusCode::OK, &json!(false)), "{verdict}");
    latest("look_up").await;
    world.medium("a.png", None, png(8, 8)).await;
    latest("confirm").await;
    let post = world
        .ended(&world.post(json!({ "content": marked("Gone soon"), "accounts": ["ada.bsky.social"] })).await)
        .await;
    let path = format!("/posts/{}/targets/{}/unpublish", id(&post), id(&post["targets"][0]));
    let (status, target) = world.call(Method::POST, &path, None).await;
    assert_eq!(status, StatusCode::OK, "{target}");
    latest("unpublish").await;
    let account = world.connect("linkedin", "ada").await;
    let post =
        world.ended(&world.post(json!({ "content": marked("Soon"), "accounts": [account] })).await).await;
    let path = format!("/posts/{}/targets/{}", id(&post), id(&post["targets"][0]));
    let (status, target) = world.call(Method::PATCH, &path, Some(&json!({ "content": marked("Now") }))).await;
    assert_eq!(status, StatusCode::OK, "{target}");
    latest("edit").await;
}

/// A user retries a dead target before the workflow that saw its end has ended.
#[tokio::test]
async fn a_target_that_is_retried_at_its_end_replays() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    // The target's own workflow makes the second attempt.
    let hold = json!({
        "platform": "x", "method": "POST", "path_prefix": "/2/tweets", "nth": 2, "when": "before",
    });
    let hold = world.hold(hold).await;
    let post = posted(&world, "Refused #sandbox-429x1 #sandbox-400", "ada").await;
    world.until(id(&post), "a failed attempt", |post| post["targets"][0]["status"] == "failed").await;
    let path = format!("/posts/{}/targets/{}/retry", id(&post), id(&post["targets"][0]));
    assert_eq!(world.call(Method::POST, &path, None).await.0, StatusCode::ACCEPTED);
    hold.until_held().await;
    let workflow = workflows(&post).1;
    temporal(&PROGRAM, &["workflow", "signal", "-w", &workflow, "--name", "retry_now"]).await;
    hold.release().await;
    assert_eq!(world.ended(&post).await["status"], "failed");
    replay(&world, "publish_target-revived", &workflow).await;
}
