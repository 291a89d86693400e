//! Webhook receivers that verify with the library of the scheme, which is Stripe's.

use super::{Proven, readable, rounds};
use crate::PROGRAM;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, path::Path};
use tests::{World, directory, if_right, network::Port, packages::Packages, wait_until};

/// Returns the lines that a receiver has written.
fn received(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Kills and stops receivers while events are delivered to them.
pub(super) async fn prove(packages: &Packages) -> Vec<Proven> {
    let mut proven = Vec::new();
    for (script, program) in [
        ("receiver.mjs", "Webhook receiver (npm's `stripe`)"),
        ("receiver.py", "Webhook receiver (PyPI's `stripe`)"),
    ] {
        let events = deliver(packages, script).await;
        proven.push(Proven {
            program,
            kills: rounds(),
            stops: rounds(),
            things: format!("{events} events arrived, all with a signature that it accepts"),
        });
    }
    proven
}

async fn deliver(packages: &Packages, script: &'static str) -> usize {
    let world = World::of(&PROGRAM).start().await;
    let account = world.connect("x", "ada").await;
    let port = Port::reserve();
    let number = port.address.port().to_string();
    let file = directory().join(format!("{script}.events"));
    let webhook = world.subscribe(&format!("http://{}/hook", port.address)).await;
    let secret = webhook["signing_secret"].as_str().unwrap();
    let start = async || packages.start(script, &[&number, secret, file.to_str().unwrap()]).await;
    let mut receiver = start().await;
    let deliveries = format!("/webhooks/{}/deliveries", webhook["id"].as_str().unwrap());
    for round in 0..rounds() {
        let publish = async |text: &str| {
            let text = format!("{text} {round}");
            let post = world.post(json!({ "content": text, "accounts": [account] })).await;
            assert_eq!(world.ended(&post).await["status"], "published");
        };
        publish("Listens").await;
        receiver.kill().await;
        publish("Killed").await;
        let has_failed =
            |list: &Value| list["data"].as_array().unwrap().iter().any(|one| one["error"].is_string());
        let list = world.until_at(&deliveries, "a delivery to fail", has_failed).await;
        let failed = list["data"].as_array().unwrap().iter().find(|one| one["error"].is_string()).unwrap();
        readable(&failed["error"]);
        receiver = start().await;
        receiver.pause();
        publish("Stopped").await;
        receiver.resume();
    }
    // Deliveries that were given up while nobody listened are sent again, as their owner would.
    let is_done = async || {
        let list = world.get(&format!("{deliveries}?limit=100")).await;
        let all = list["data"].as_array().unwrap();
        for delivery in all.iter().filter(|one| one["status"] == "failed") {
            let again = format!("{deliveries}/{}/redeliver", delivery["id"].as_str().unwrap());
            let (status, answer) = world.call(Method::POST, &again, None).await;
            assert!(status.is_success() || status == StatusCode::CONFLICT, "{answer}");
        }
        if_right(list.clone(), |_| all.iter().all(|one| one["status"] == "delivered"))
    };
    wait_until("all events to be delivered", is_done).await;
    let lines = received(&file);
    let refused: Vec<_> = lines.iter().filter(|line| line.starts_with("refused")).collect();
    assert!(refused.is_empty(), "{refused:?}");
    let found: BTreeSet<_> = lines.iter().map(String::as_str).collect();
    let list = world.get("/events?limit=100").await;
    let sent = list["data"].as_array().unwrap();
    assert!(sent.len() >= 3 * rounds(), "{list}");
    for event in sent {
        assert!(found.contains(event["id"].as_str().unwrap()), "{event} is lost: {found:?}");
    }
    let (status, answer) = world.call(Method::DELETE, deliveries.trim_end_matches("/deliveries"), None).await;
    assert!(status.is_success(), "{answer}");
    receiver.kill().await;
    sent.len()
}
