//! `fanfare doctor`: a walk through a platform, compared with its simulator. A sandbox stands in for the platform.

use crate::PROGRAM;
use ::doctor::{Attachment, Outcome, Recording, Step, StepName};
use chrono::{DateTime, Utc};
use platforms::Adapter;
use poem::{Endpoint, EndpointExt};
use sandbox::{AppStatus, Options, Sandbox};
use serde_json::{Value, json};
use std::{process::Output, sync::Arc};
use tests::samples::film;
use tokio::{io::AsyncWriteExt, process::Command};

fn now() -> DateTime<Utc> {
    Utc::now()
}

fn video() -> Attachment {
    Attachment::video(film(5_000, 1 << 16).into(), None)
}

/// Walks through a simulator in place of the platform, logging in as with these credentials.
async fn walk(platform: &'static Adapter, app: AppStatus, login: &Value) -> Recording {
    // Any test may be the first in its process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let recording: Recording = serde_json::from_value(json!({
        "platform": platform.id, "app": app, "date": "2026-01-01", "login": login, "settings": {}, "steps": [],
    }))
    .unwrap();
    let steps = recording.simulate(Some(&video()), now).await.unwrap();
    Recording { steps, ..recording }
}

#[tokio::test]
async fn a_simulator_answers_as_itself_on_every_platform() {
    for platform in platforms::all() {
        for app in [AppStatus::New, AppStatus::Approved] {
            let logins = match platform.auth.oauth() {
                Some(_) => vec!["code", "refresh", "grant"],
                None => vec!["password", "password_at_service"],
            };
            for login in logins {
                let name = format!("{} {app:?} {login}", platform.id);
                let recording = walk(platform, app, &json!(login)).await;
                // TikTok has no figures of a private post.
                let is_known = |step: &Step| platform.id == "tiktok" && step.name == StepName::Figures;
                let failed: Vec<_> = recording
                    .steps
                    .iter()
                    .filter(|step| step.outcome != Outcome::Done && !is_known(step))
                    .collect();
                // Google gives a new project no quota for Business Profile.
                if platform.id == "google_business" && app == AppStatus::New {
                    assert_eq!(failed.len(), 1, "{name}: {failed:#?}");
                    assert_eq!(failed[0].name, StepName::Accounts, "{name}");
                } else {
                    assert!(failed.is_empty(), "{name}: {failed:#?}");
                    let last = recording.steps.last().map(|step| step.name);
                    assert_eq!(last, Some(StepName::Delete), "{name}");
                }
                let differences = recording.compare(Some(&video()), now).await.unwrap();
                assert_eq!(differences, [], "{name}");
            }
        }
    }
}

/// Serves a Bluesky that answers a new record with one more member, and a session with a status; returns its
/// address and the credentials of an account.
async fn bluesky() -> (String, Value) {
    let options = Options { data: None, clock: now, app: AppStatus::New };
    let sandbox = Sandbox::open(options).unwrap();
    sandbox.configure(|settings| settings.lag_ms = 0).unwrap();
    let connected = sandbox.connect("bluesky", "ada.bsky.social").unwrap();
    let extra = &connected.grant.extra;
    let credentials = json!({ "identifier": extra["identifier"], "app_password": extra["app_password"] });
    let endpoint = Arc::new(sandbox.endpoint().map_to_response()).around(|endpoint, request| async move {
        let is_record = request.uri().path().ends_with("com.atproto.repo.createRecord")
            || request.uri().path().ends_with("com.atproto.repo.putRecord");
        let mut response = endpoint.call(request).await?;
        if is_record {
            let mut body: Value = response.take_body().into_json().await?;
            body["receipt"] = json!({ "secret": "value-of-the-platform" });
            response.set_body(body.to_string());
        }
        Ok(response)
    });
    (format!("http://{}", tests::serve(endpoint).await), credentials)
}

async fn doctor(arguments: &[&str], credentials: &Value, input: &str) -> Output {
    let mut command = Command::new(*PROGRAM);
    command.arg("doctor").args(arguments).env("FANFARE_DOCTOR", credentials.to_string());
    let pipe = std::process::Stdio::piped;
    let mut child = command.stdin(pipe()).stdout(pipe()).stderr(pipe()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    child.wait_with_output().await.unwrap()
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[tokio::test]
async fn a_difference_is_printed_and_recorded_without_values() {
    let (platform, credentials) = bluesky().await;
    let folder = std::env::temp_dir().join(format!("fanfare-doctor-{}", uuid::Uuid::now_v7()));
    std::fs::create_dir(&folder).unwrap();
    let record = folder.join("bluesky.json");
    let arguments = ["bluesky", "--sandbox", &platform, "--yes", "--record", record.to_str().unwrap()];
    let output = doctor(&arguments, &credentials, "").await;
    let told = said(&output);
    assert!(output.status.success(), "{told}");
    for step in ["connect", "accounts", "health", "publish", "look up", "figures", "history", "delete"] {
        assert!(told.contains(&format!("{step}: done")), "{step}: {told}");
    }
    let difference = "receipt: object, the simulator nothing";
    assert!(told.contains(difference) && told.contains("1 difference from the simulator."), "{told}");
    let recorded = std::fs::read_to_string(&record).unwrap();
    let password = credentials["app_password"].as_str().unwrap();
    for secret in [password, "value-of-the-platform"] {
        assert!(!told.contains(secret) && !recorded.contains(secret), "{secret}: {told}");
    }
    assert!(!recorded.contains("a test post"), "{recorded}");

    let _ = rustls::crypto::ring::default_provider().install_default();
    // The recording is a test: it fails while the simulator differs.
    let recording: Recording = serde_json::from_str(&recorded).unwrap();
    let differences = recording.compare(None, now).await.unwrap();
    assert_eq!(differences.iter().map(|one| one.text.as_str()).collect::<Vec<_>>(), [difference]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn nothing_is_published_without_consent_or_with_wrong_credentials() {
    let (platform, mut credentials) = bluesky().await;
    let output = doctor(&["bluesky", "--sandbox", &platform], &credentials, "no\n").await;
    let told = said(&output);
    assert!(output.status.success() && told.contains("health: done"), "{told}");
    assert!(told.contains("as ada.bsky.social on Bluesky") && !told.contains("publish:"), "{told}");

    credentials["app_password"] = json!("wrong-pass-word-here");
    let output = doctor(&["bluesky", "--sandbox", &platform, "--yes"], &credentials, "").await;
    let told = said(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("connect: failed with token_expired: "), "{told}");
    assert!(told.contains("differs: failed with token_expired, the simulator done"), "{told}");
    assert!(!told.contains("wrong-pass-word-here"), "{told}");

    for (platform, credentials, expected) in [
        ("bluesky", json!({}), "no identifier and app_password"),
        ("x", json!({}), "no client_id"),
        ("x", json!({ "client_id": "a" }), "no refresh_token, access_token or callback"),
        ("x", json!({ "password": "secret-password" }), "FANFARE_DOCTOR"),
        ("myspace", json!({}), "use one of x, linkedin"),
    ] {
        let output = doctor(&[platform, "--yes"], &credentials, "").await;
        let told = said(&output);
        assert!(!output.status.success() && told.contains(expected), "{platform} {credentials}: {told}");
        assert!(!told.contains("secret-password"), "{told}");
    }
}

#[tokio::test]
async fn a_login_with_a_browser_is_walked_through() {
    let options = Options { data: None, clock: now, app: AppStatus::New };
    let sandbox = Sandbox::open(options).unwrap();
    let app = sandbox.connect("pinterest", "ada").unwrap().app.unwrap();
    let platform = format!("http://{}", tests::serve(sandbox.endpoint()).await);
    let callback = "https://fanfare.example/connect/callback";
    let credentials =
        json!({ "client_id": app.client_id, "client_secret": app.client_secret, "callback": callback });
    let pasted = format!("{callback}?code=1&state=of+another+login\n");
    let output = doctor(&["pinterest", "--sandbox", &platform], &credentials, &pasted).await;
    let told = said(&output);
    assert!(told.contains("https://www.pinterest.com/oauth/?"), "{told}");
    assert!(!output.status.success() && told.contains("belongs to another login"), "{told}");
}

/// The folder of the walks that people recorded on real platforms.
const RECORDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../doctor/recordings");

#[tokio::test]
async fn the_simulators_answer_as_the_platforms_did() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    for entry in std::fs::read_dir(RECORDINGS).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let recording: Recording = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let differences = recording.compare(Some(&video()), now).await.unwrap();
            assert_eq!(differences, [], "{}", path.display());
        }
    }
}
