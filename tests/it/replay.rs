//! Workflow code replays the recorded histories.
//!
//! A workflow that runs for days may be replayed by newer code. `workflows/histories` has a history of every
//! branch of every released version of the workflows; code that cannot replay one would leave such runs stuck.
//! With `FANFARE_RECORD=1`, the histories that are missing are recorded there; with another value, such as the
//! name of a patch, all are recorded for a new version of the workflows. None is ever overwritten.

mod branches;
mod texts;

use crate::world;
use domain::{
    outbox::{MediaAction, MediaJob},
    publish::{FirstAttempt, PollResult, PublishResult, SettleReason, SettleResult},
};
use futures::StreamExt;
use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    path::{Path, PathBuf},
};
use temporalio_client::{
    Client, WorkflowExecutionInfo, WorkflowFetchHistoryOptions, WorkflowHandle, WorkflowHistory,
    errors::WorkflowGetResultError,
};
use temporalio_common::{
    UntypedWorkflow,
    protos::temporal::api::{
        common::v1::Payloads,
        history::v1::{HistoryEvent, history_event::Attributes},
    },
};
use temporalio_sdk::workflow_replayer::{WorkflowReplayer, WorkflowReplayerOptions};
use tests::{Receiver, World, temporal_client, wait_until};
pub(crate) use texts::{marked, walk};
use workflows::{
    CleanUpMedia, CollectMetrics, DisconnectAccount, DrainEndpoint, ImportPosts, ProcessMedia, PublishPost,
    PublishTarget, RenewGrant, WorkerRequest,
    activities::{ImportProgress, SettleInput},
    publish_post, publish_target, worker_request,
};

/// The histories to keep: one for each branch of each workflow, which some test records and replays.
///
/// Some branches are left out, because nothing short of a disaster leads there: an attempt that fails for good
/// without a result ([`SettleReason::Unanswered`]), a delivery whose tries are all lost with their workers, an
/// import of so many pages and an endpoint with so many retries that they continue as new, and an endpoint of an
/// organization whose requests use all of its share.
const NAMES: &str = "
    clean_up_media
    collect_metrics
    disconnect_account disconnect_account-unrevoked
    drain_endpoint drain_endpoint-canceled drain_endpoint-reset drain_endpoint-retried drain_endpoint-woken
    import_posts-abandoned import_posts-abandoned_while_waiting import_posts-completed import_posts-crowded
    import_posts-waited
    process_media-canceled process_media-cleaned_up process_media-crowded process_media-discarded
    process_media-fetched process_media-lost process_media-probed
    publish_post-canceled publish_post-canceled_when_due
    publish_post-canceled_while_publishing publish_post-deleted publish_post-edited publish_post-far_off
    publish_post-crowded publish_post-frozen publish_post-immediate publish_post-lost_grant
    publish_post-continued publish_post-continued_while_publishing publish_post-overdue publish_post-processing publish_post-refused publish_post-refused_token publish_post-repeated publish_post-reset publish_post-restarted publish_post-resumed publish_post-retried publish_post-scheduled
    publish_post-signaled publish_post-stale publish_post-stopped publish_post-within_horizon
    publish_target-closed_window publish_target-continued publish_target-crowded publish_target-deleted
    publish_target-frozen publish_target-killed_worker publish_target-lost_grant
    publish_target-no_fresh_token publish_target-processing
    publish_target-refused_token publish_target-refused_token_while_processing publish_target-repeated
    publish_target-reset publish_target-retried publish_target-revived
    publish_target-signaled publish_target-stale publish_target-stopped publish_target-stopped_in_doubt
    publish_target-stopped_while_processing publish_target-withdrawn
    renew_grant-canceled renew_grant-disconnected renew_grant-lost renew_grant-replaced
    renew_grant-replaced_while_unavailable renew_grant-updated
    worker_request-callback worker_request-confirm worker_request-edit worker_request-health
    worker_request-limits worker_request-look_up worker_request-metrics worker_request-options worker_request-password worker_request-reveal worker_request-selection
    worker_request-openid_begin worker_request-openid_finish worker_request-test_event worker_request-unpublish";

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../workflows/histories")
}

fn replayer() -> WorkflowReplayer {
    let options = WorkflowReplayerOptions::new()
        .register_workflow::<PublishPost>()
        .and_then(|options| options.register_workflow::<PublishTarget>())
        .and_then(|options| options.register_workflow::<DrainEndpoint>())
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

/// Returns the kept histories as JSON, with the names of their files.
fn files() -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(kept()).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| {
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap())
    };
    files.map(read).collect()
}

/// Returns the kept histories with the names of their files.
fn histories() -> Vec<(String, WorkflowHistory)> {
    files().into_iter().map(|(name, file)| (name, WorkflowHistory::from_json(&file).unwrap())).collect()
}

#[tokio::test]
async fn kept_histories_replay() {
    let mut failures = Vec::new();
    for (name, history) in histories() {
        if let Err(error) = replayer().replay_workflow(history).await {
            failures.push(format!("{name}: {error}"));
        }
    }
    assert!(failures.is_empty(), "guard the change with ctx.patched:\n{}", failures.join("\n"));
}

/// Operators read histories. See [`texts`].
#[test]
fn kept_histories_have_no_text_of_a_post() {
    let mut found = Vec::new();
    for (name, file) in files() {
        let history = serde_json::from_slice(&file).unwrap();
        found.extend(texts::find(&history).into_iter().map(|place| format!("{name}: {place}")));
    }
    assert!(found.is_empty(), "give a workflow ids, and let its activities read the rows: {found:#?}");
}

#[test]
fn every_branch_has_a_kept_history() {
    // The part after a dot is the version of the workflow.
    let kept = histories().into_iter().map(|(name, _)| name.split('.').next().unwrap().to_owned());
    let names = NAMES.split_whitespace().map(str::to_owned);
    assert_eq!(kept.collect::<BTreeSet<_>>(), names.collect(), "run `just histories`");
}

/// A new variant doesn't compile here until it has a name, and then needs a history.
#[tokio::test]
async fn every_outcome_is_in_a_kept_history() {
    let mut found = BTreeSet::new();
    for (name, history) in histories() {
        let events = history.into_events().await.unwrap();
        found.extend(outcomes(&name, &events));
    }
    let expected = [
        "first attempt: crowded",
        "first attempt: ended",
        "first attempt: failed or waits",
        "first attempt: processing",
        "first attempt: stale",
        "first attempt: token refused",
        "publish: ended",
        "publish: processing",
        "publish: stale",
        "publish: token refused",
        "publish: wait",
        "poll: ended",
        "poll: ready",
        "poll: token refused",
        "settle: grant lost",
        "settle: refresh failed",
        "settle: stopped",
        "settled: ended",
        "settled: retry",
        "import_page: later",
        "import_page: more",
        "import_page: over",
        "process_media: discard",
        "process_media: fetch",
        "process_media: probe",
        "request: callback",
        "request: confirm",
        "request: edit",
        "request: health",
        "request: limits",
        "request: look-up",
        "request: metrics",
        "request: openid begin",
        "request: openid finish",
        "request: options",
        "request: password",
        "request: reveal",
        "request: selection",
        "request: test event",
        "request: unpublish",
    ];
    assert_eq!(found, expected.into());
}

/// Returns the outcomes that the activities of a history had, and what they were asked for.
fn outcomes(name: &str, events: &[HistoryEvent]) -> BTreeSet<&'static str> {
    let mut activities = BTreeMap::new();
    let mut found = BTreeSet::new();
    for event in events {
        match event.attributes.as_ref().unwrap() {
            Attributes::WorkflowExecutionStartedEventAttributes(started)
                if started.workflow_type.as_ref().unwrap().name == "WorkerRequest" =>
            {
                found.insert(match decode(name, &started.input) {
                    worker_request::Input::FetchMetrics(_) => "request: metrics",
                    worker_request::Input::CheckHealth(_) => "request: health",
                    worker_request::Input::ListOptions(_) => "request: options",
                    worker_request::Input::LookUp(_) => "request: look-up",
                    worker_request::Input::ReadUsage(_) => "request: limits",
                    worker_request::Input::EditTarget(_) => "request: edit",
                    worker_request::Input::Unpublish(_) => "request: unpublish",
                    worker_request::Input::SendTestEvent(_) => "request: test event",
                    worker_request::Input::OAuthCallback(_) => "request: callback",
                    worker_request::Input::PasswordLogin(_) => "request: password",
                    worker_request::Input::FinalizeLogin(_) => "request: selection",
                    worker_request::Input::RevealSecret(_) => "request: reveal",
                    worker_request::Input::ConfirmMedia(_) => "request: confirm",
                    worker_request::Input::BeginOpenId(_) => "request: openid begin",
                    worker_request::Input::FinishOpenId(_) => "request: openid finish",
                });
            }
            Attributes::ActivityTaskScheduledEventAttributes(scheduled) => {
                let activity = scheduled.activity_type.as_ref().unwrap().name.as_str();
                activities.insert(event.event_id, activity);
                found.extend(match activity {
                    "settle" => Some(match decode::<SettleInput>(name, &scheduled.input).why {
                        SettleReason::Unanswered { .. } => "settle: unanswered",
                        SettleReason::GrantLost { .. } => "settle: grant lost",
                        SettleReason::RefreshFailed { .. } => "settle: refresh failed",
                        SettleReason::Stopped => "settle: stopped",
                    }),
                    "process_media" => Some(match decode::<MediaJob>(name, &scheduled.input).what {
                        MediaAction::Fetch => "process_media: fetch",
                        MediaAction::Probe => "process_media: probe",
                        MediaAction::Discard => "process_media: discard",
                    }),
                    _ => None,
                });
            }
            Attributes::ActivityTaskCompletedEventAttributes(completed) => {
                let result = &completed.result;
                found.extend(match activities[&completed.scheduled_event_id] {
                    "publish" => Some(match decode(name, result) {
                        PublishResult::Ended { .. } => "publish: ended",
                        PublishResult::Stale => "publish: stale",
                        PublishResult::Wait { .. } => "publish: wait",
                        PublishResult::Processing { .. } => "publish: processing",
                        PublishResult::TokenRefused { .. } => "publish: token refused",
                    }),
                    "first_attempt" => Some(match decode(name, result) {
                        FirstAttempt::Ended { .. } => "first attempt: ended",
                        FirstAttempt::Stale => "first attempt: stale",
                        FirstAttempt::Unfinished { result: None, .. } => "first attempt: failed or waits",
                        FirstAttempt::Unfinished {
                            result: Some(PublishResult::Processing { .. }), ..
                        } => "first attempt: processing",
                        FirstAttempt::Unfinished {
                            result: Some(PublishResult::TokenRefused { .. }), ..
                        } => "first attempt: token refused",
                        FirstAttempt::Unfinished { result: Some(_), .. } => "first attempt: crowded",
                    }),
                    "poll" => Some(match decode(name, result) {
                        PollResult::Ready => "poll: ready",
                        PollResult::Ended { .. } => "poll: ended",
                        PollResult::TokenRefused { .. } => "poll: token refused",
                    }),
                    "settle" => Some(match decode(name, result) {
                        SettleResult::Ended { .. } => "settled: ended",
                        SettleResult::RetryAfter { .. } => "settled: retry",
                    }),
                    "import_page" => Some(match decode(name, result) {
                        ImportProgress::More => "import_page: more",
                        ImportProgress::Over => "import_page: over",
                        ImportProgress::Later { .. } => "import_page: later",
                    }),
                    _ => None,
                });
            }
            _ => {}
        }
    }
    found
}

/// Decodes the only payload of an event as the type that it has now.
fn decode<T: DeserializeOwned>(name: &str, payloads: &Option<Payloads>) -> T {
    let payload = &payloads.as_ref().unwrap().payloads[0].data;
    serde_json::from_slice(payload).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns a client of the Temporal server that the tests share.
pub(crate) async fn client() -> Client {
    temporal_client(&tests::shared(&crate::PROGRAM).await.temporal).await
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
        ("immediate", json!({ "content": marked("Now"), "accounts": ["ada", "ada.bsky.social"] })),
        ("scheduled", json!({ "content": marked("Later"), "accounts": ["ada"], "scheduled_at": due })),
        ("repeated", json!({ "content": marked("Again #sandbox-503x1"), "accounts": ["ada.bsky.social"] })),
        ("refused", json!({ "content": marked("No #sandbox-400"), "accounts": ["ada"] })),
        (
            "edited",
            json!({ "content": marked("Before"), "accounts": ["ada"], "scheduled_at": tests::soon() }),
        ),
        ("retried", json!({ "content": marked("Soon #sandbox-503x6"), "accounts": ["ada.bsky.social"] })),
    ];
    for (name, body) in bodies {
        let post = world.post(body).await;
        let path = format!("/posts/{}", post["id"].as_str().unwrap());
        match name {
            "edited" => {
                let later = tests::now() + chrono::TimeDelta::seconds(1);
                let content = marked("Edited");
                let edit =
                    json!({ "content": content, "accounts": ["ada.bsky.social"], "scheduled_at": later });
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
        replay(&world, &format!("publish_post-{name}"), &publish_post::id(id)).await;
        if matches!(name, "repeated" | "retried") {
            let target = ended["targets"][0]["id"].as_str().unwrap().parse().unwrap();
            replay(&world, &format!("publish_target-{name}"), &publish_target::id(target)).await;
        }
    }
    receiver.events(&["post.target.published"]).await;
    replay(&world, "drain_endpoint", &format!("endpoint-{}", webhook["id"].as_str().unwrap())).await;

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
        replay(&world, name, &id).await;
        asked.insert(id);
    }

    let account = account.as_str().unwrap();
    // The platform does not respond at first.
    let hold = json!({ "platform": "x", "method": "GET", "path_prefix": "/2/users/", "when": "before" });
    world.hold(hold).await;
    let imports = format!("/social-accounts/{account}/imports");
    let (_, import) = world.call(Method::POST, &imports, Some(&json!({}))).await;
    replay(&world, "import_posts-waited", &format!("import-{}", import["id"].as_str().unwrap())).await;

    // Nothing listens there.
    let nowhere = json!({ "url": "http://127.0.0.1:9/a.png" });
    let (_, medium) = world.call(Method::POST, "/media/import", Some(&nowhere)).await;
    let medium = medium["id"].as_str().unwrap();
    replay(&world, "process_media-lost", &format!("fetch-{medium}")).await;
    assert_eq!(world.get(&format!("/media/{medium}")).await["status"], "failed");
    world.call(Method::DELETE, &format!("/media/{medium}"), None).await;
    replay(&world, "process_media-discarded", &format!("discard-{medium}")).await;

    let (status, _) = world.call(Method::DELETE, &format!("/social-accounts/{account}"), None).await;
    assert_eq!(status, 200);
    replay(&world, "disconnect_account", &format!("disconnect-{account}-1")).await;
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

/// Waits for a workflow to complete, replays its history, records it if `FANFARE_RECORD` is set, and returns it.
pub(crate) async fn replay(world: &World, name: &str, id: &str) -> String {
    let handle = client().await.get_workflow_handle::<UntypedWorkflow>(id);
    // The relay may not have started it yet.
    let look = async || match handle.get_result(Default::default()).await {
        Err(error) if !matches!(error, WorkflowGetResultError::NotFound(_)) => panic!("{id}: {error}"),
        result => result,
    };
    wait_until(id, look).await;
    check(world, &handle, name).await
}

/// Waits until a workflow has been started.
pub(crate) async fn started(client: &Client, id: &str) {
    let handle = client.get_workflow_handle::<UntypedWorkflow>(id);
    wait_until(id, async || handle.describe(Default::default()).await).await;
}

/// Waits until the workflow of a post's only target waits for its next attempt: a moment after the row says that the
/// first one failed.
pub(crate) async fn backs_off(post: &Value) {
    let client = client().await;
    let workflow = format!("target-{}", post["targets"][0]["id"].as_str().unwrap());
    let handle = client.get_workflow_handle::<UntypedWorkflow>(&workflow);
    let look = async || {
        let described = handle.describe(Default::default()).await.map_err(|error| error.to_string())?;
        let activities = &described.raw_description.pending_activities;
        if activities.iter().any(|one| one.last_failure.is_some()) {
            Ok(())
        } else {
            Err("not yet".to_owned())
        }
    };
    wait_until(&format!("the backoff of {workflow}"), look).await;
}

/// Replays a run that continued as new, and records its history if `FANFARE_RECORD` is set.
pub(crate) async fn replay_run(world: &World, name: &str, id: &str) {
    replay_run_that(world, name, id, "ContinuedAsNew").await;
}

/// Replays a run that ended with a status of Temporal, and records its history if `FANFARE_RECORD` is set.
async fn replay_run_that(world: &World, name: &str, id: &str, status: &str) {
    let client = client().await;
    let look = async || {
        let query = format!("WorkflowId = '{id}' and ExecutionStatus = '{status}'");
        let found: Vec<_> = client.list_workflows(query, Default::default()).collect().await;
        match found.into_iter().next() {
            Some(Ok(found)) => Ok(found.run_id().to_owned()),
            _ => Err(format!("no run is {status}")),
        }
    };
    let run = wait_until(id, look).await;
    let of = WorkflowExecutionInfo::builder().namespace("default").workflow_id(id).run_id(run).build();
    check(world, &of.bind_untyped(client), name).await;
}

async fn check(world: &World, handle: &WorkflowHandle<Client, UntypedWorkflow>, name: &str) -> String {
    let history = handle.fetch_history(WorkflowFetchHistoryOptions::default()).to_json().await.unwrap();
    texts::check_marked(world).await;
    let found = texts::find(&serde_json::from_slice(&history).unwrap());
    assert!(found.is_empty(), "{name}: a text of a post is in the history: {found:?}");
    if let Ok(version) = std::env::var("FANFARE_RECORD")
        && NAMES.split_whitespace().any(|kept| kept == name)
    {
        let file = if version == "1" { format!("{name}.json") } else { format!("{name}.{version}.json") };
        // A history that is there is kept as it is.
        if !kept().join(&file).exists() {
            std::fs::write(kept().join(file), &history).unwrap();
        }
    }
    let replayed = WorkflowHistory::from_json(&history).unwrap();
    if let Err(error) = replayer().replay_workflow(replayed).await {
        panic!("{name}: {error}");
    }
    String::from_utf8(history).unwrap()
}
