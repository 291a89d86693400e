//! Workflow code replays the recorded histories.
//!
//! A workflow that runs for days may be replayed by newer code. `workflows/histories` has histories of every
//! released version of the workflows; code that cannot replay one would leave such runs stuck. With
//! `FANFARE_RECORD` set, the histories of these tests are recorded there.

use crate::world;
use futures::StreamExt;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, WorkflowExecutionInfo, WorkflowFetchHistoryOptions,
    WorkflowHandle, WorkflowHistory, errors::WorkflowGetResultError,
};
use temporalio_common::UntypedWorkflow;
use temporalio_sdk::workflow_replayer::{WorkflowReplayer, WorkflowReplayerOptions};
use tests::{Receiver, wait_until};
use workflows::{
    CleanUpMedia, CollectMetrics, DeliverEvent, DisconnectAccount, ImportPosts, ProcessMedia, PublishPost,
    PublishTarget, RenewGrant, WorkerRequest, publish_post, publish_target,
};

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../workflows/histories")
}

fn replayer() -> WorkflowReplayer {
    let options = WorkflowReplayerOptions::new()
        .register_workflow::<PublishPost>()
        .and_then(|options| options.register_workflow::<PublishTarget>())
        .and_then(|options| options.register_workflow::<DeliverEvent>())
        .and_then(|options| options.register_workflow::<WorkerRequest>())
        .and_then(|options| options.register_workflow::<DisconnectAccount>())
        .and_then(|options| options.register_workflow::<ImportPosts>())
        .and_then(|options| options.register_workflow::<RenewGrant>())
        .and_then(|options| options.register_workflow::<CollectMetrics>())
        .and_then(|options| options.register_workflow::<ProcessMedia>())
        .and_then(|options| options.register_workflow::<CleanUpMedia>())
        .unwrap()
        .build();
    WorkflowReplayer::new(options).unwrap()
}

#[tokio::test]
async fn kept_histories_replay() {
    let mut replayed = 0;
    for entry in std::fs::read_dir(kept()).unwrap() {
        let path = entry.unwrap().path();
        let history = WorkflowHistory::from_json(&std::fs::read(&path).unwrap()).unwrap();
        if let Err(error) = replayer().replay_workflow(history).await {
            panic!("{}: {error}", path.display());
        }
        replayed += 1;
    }
    assert!(replayed >= 4, "only {replayed} histories are recorded");
}

/// Returns a client of the Temporal server that the tests share.
pub(crate) async fn client() -> Client {
    let address: url::Url =
        format!("http://{}", tests::shared(&crate::PROGRAM).await.temporal).parse().unwrap();
    let connection = Connection::connect(ConnectionOptions::new(address).build()).await.unwrap();
    Client::new(connection, ClientOptions::new("default").build()).unwrap()
}

#[tokio::test]
async fn current_workflows_replay() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let client = client().await;
    let due = tests::now() + chrono::TimeDelta::seconds(1);
    let bodies = [
        ("immediate", json!({ "content": "Now", "accounts": ["ada", "ada.bsky.social"] })),
        ("scheduled", json!({ "content": "Later", "accounts": ["ada"], "scheduled_at": due })),
        ("repeated", json!({ "content": "Again #sandbox-503x1", "accounts": ["ada.bsky.social"] })),
        ("refused", json!({ "content": "No #sandbox-400", "accounts": ["ada"] })),
        (
            "edited",
            json!({ "content": "Before", "accounts": ["ada"], "scheduled_at": "2040-01-01T00:00:00Z" }),
        ),
        ("retried", json!({ "content": "Soon #sandbox-503x6", "accounts": ["ada.bsky.social"] })),
    ];
    for (name, body) in bodies {
        let post = world.post(body).await;
        let path = format!("/posts/{}", post["id"].as_str().unwrap());
        match name {
            "edited" => {
                let later = tests::now() + chrono::TimeDelta::seconds(1);
                let edit =
                    json!({ "content": "Edited", "accounts": ["ada.bsky.social"], "scheduled_at": later });
                assert_eq!(world.call(Method::PATCH, &path, Some(&edit)).await.0, StatusCode::OK);
            }
            "retried" => {
                let failed = |post: &Value| post["targets"][0]["attempts"].as_i64() >= Some(2);
                let post = world.until(post["id"].as_str().unwrap(), "a second attempt", failed).await;
                let path = format!("{path}/targets/{}/retry", post["targets"][0]["id"].as_str().unwrap());
                assert_eq!(world.call(Method::POST, &path, None).await.0, StatusCode::ACCEPTED);
            }
            _ => {}
        }
        let ended = world.ended(&post).await;
        let id = post["id"].as_str().unwrap().parse().unwrap();
        replay(&client, &format!("publish_post-{name}"), &publish_post::id(id)).await;
        let target = ended["targets"][0]["id"].as_str().unwrap().parse().unwrap();
        replay(&client, &format!("publish_target-{name}"), &publish_target::id(target)).await;
    }
    let delivery = receiver.events(&["post.target.published"]).await.remove(0);
    let event = format!("event-{}", delivery.header("x-fanfare-event-id"));
    replay(&client, "deliver_event", &event).await;

    let webhook = format!("/webhooks/{}", webhook["id"].as_str().unwrap());
    let post = world.get("/posts?status=published&limit=1").await["data"][0]["id"].clone();
    let account = world.get("/social-accounts?platform=x").await["data"][0]["id"].clone();
    let mut asked = HashSet::new();
    for (name, method, path) in [
        ("worker_request-metrics", Method::GET, format!("/posts/{}/analytics", post.as_str().unwrap())),
        (
            "worker_request-health",
            Method::GET,
            format!("/social-accounts/{}/health", account.as_str().unwrap()),
        ),
        ("worker_request-test_event", Method::POST, format!("{webhook}/test")),
    ] {
        let (status, body) = world.call(method, &path, None).await;
        assert_eq!(status, 200, "{path}: {body}");
        let id = fresh(&client, &format!("{}", world.owner.org), &asked).await;
        replay(&client, name, &id).await;
        asked.insert(id);
    }
    let deliveries = world.get(&format!("{webhook}/deliveries?status=delivered&limit=1")).await;
    let delivery = deliveries["data"][0]["id"].as_str().unwrap();
    world.call(Method::POST, &format!("{webhook}/deliveries/{delivery}/redeliver"), None).await;
    replay(&client, "deliver_event-again", &format!("redeliver-{delivery}-1")).await;

    let account = account.as_str().unwrap();
    // The platform does not respond at first.
    let hold = json!({ "platform": "x", "method": "GET", "path_prefix": "/2/users/", "when": "before" });
    world.hold(hold).await;
    let imports = format!("/social-accounts/{account}/imports");
    let (_, import) = world.call(Method::POST, &imports, Some(&json!({}))).await;
    replay(&client, "import_posts-waited", &format!("import-{}", import["id"].as_str().unwrap())).await;

    // Nothing listens there.
    let nowhere = json!({ "url": "http://127.0.0.1:9/a.png" });
    let (_, medium) = world.call(Method::POST, "/media/import", Some(&nowhere)).await;
    let medium = medium["id"].as_str().unwrap();
    replay(&client, "process_media-lost", &format!("fetch-{medium}")).await;
    assert_eq!(world.get(&format!("/media/{medium}")).await["status"], "failed");
    world.call(Method::DELETE, &format!("/media/{medium}"), None).await;
    replay(&client, "process_media-discarded", &format!("discard-{medium}")).await;

    let (status, _) = world.call(Method::DELETE, &format!("/social-accounts/{account}"), None).await;
    assert_eq!(status, 200);
    replay(&client, "disconnect_account", &format!("disconnect-{account}-1")).await;
}

/// Returns the id of an organization's `WorkerRequest` that is not in `known`. Temporal's list lags.
pub(crate) async fn fresh(client: &Client, org: &str, known: &HashSet<String>) -> String {
    let look = async || {
        let query = format!("WorkflowType = 'WorkerRequest' and FanfareOrg = '{org}'");
        let found: Vec<_> = client.list_workflows(query, Default::default()).collect().await;
        let mut ids = found.into_iter().map(|found| found.unwrap().id().to_owned());
        ids.find(|id| !known.contains(id)).ok_or("it is not listed")
    };
    wait_until("the request to be listed", look).await
}

/// Returns the history of a workflow so far, as JSON; empty if it has not started.
pub(crate) async fn history(client: &Client, id: &str) -> String {
    let handle = client.get_workflow_handle::<UntypedWorkflow>(id);
    let history = handle.fetch_history(WorkflowFetchHistoryOptions::default()).to_json().await;
    history.map_or_else(|_| String::new(), |history| String::from_utf8_lossy(&history).into_owned())
}

/// Waits for a workflow to end, replays its history, records it if `FANFARE_RECORD` is set, and returns it.
pub(crate) async fn replay(client: &Client, name: &str, id: &str) -> String {
    let handle = client.get_workflow_handle::<UntypedWorkflow>(id);
    // The relay may not have started it yet.
    let look = async || match handle.get_result(Default::default()).await {
        Err(error) if !matches!(error, WorkflowGetResultError::NotFound(_)) => panic!("{id}: {error}"),
        result => result,
    };
    wait_until(id, look).await;
    check(&handle, name).await
}

/// Waits until a workflow has been started.
pub(crate) async fn started(client: &Client, id: &str) {
    let handle = client.get_workflow_handle::<UntypedWorkflow>(id);
    wait_until(id, async || handle.describe(Default::default()).await).await;
}

/// Replays a run that continued as new, and records its history if `FANFARE_RECORD` is set.
pub(crate) async fn replay_run(client: &Client, name: &str, id: &str) {
    let look = async || {
        let query = format!("WorkflowId = '{id}' and ExecutionStatus = 'ContinuedAsNew'");
        let found: Vec<_> = client.list_workflows(query, Default::default()).collect().await;
        match found.into_iter().next() {
            Some(Ok(found)) => Ok(found.run_id().to_owned()),
            _ => Err("no run has continued as new"),
        }
    };
    let run = wait_until(id, look).await;
    let of = WorkflowExecutionInfo::builder().namespace("default").workflow_id(id).run_id(run).build();
    check(&of.bind_untyped(client.clone()), name).await;
}

async fn check(handle: &WorkflowHandle<Client, UntypedWorkflow>, name: &str) -> String {
    let history = handle.fetch_history(WorkflowFetchHistoryOptions::default()).to_json().await.unwrap();
    if std::env::var_os("FANFARE_RECORD").is_some() {
        std::fs::create_dir_all(kept()).unwrap();
        std::fs::write(kept().join(format!("{name}.json")), &history).unwrap();
    }
    let replayed = WorkflowHistory::from_json(&history).unwrap();
    if let Err(error) = replayer().replay_workflow(replayed).await {
        panic!("{name}: {error}");
    }
    String::from_utf8(history).unwrap()
}
