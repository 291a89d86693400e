//! Servers and clients that others have written, killed and stopped while they are in use.
//!
//! Bluesky's own server, an S3 server, an OpenID provider, a browser with a passkey, receivers with the library of the
//! scheme that signs webhooks, and MCP's official clients: nothing that they were in the middle of is lost or published
//! twice, and the reason of what failed can be read. Without Node or Python the parts that need them print why they did
//! not run, and in CI they fail.

mod bluesky;
mod bucket;
mod passkeys;
mod provider;
mod receivers;
mod tools;

use serde_json::Value;
use tests::{
    World,
    packages::Packages,
    proof::{Section, is_full},
};

/// A fault of a program, and the statement that was true nevertheless.
struct Proven {
    /// Program, with its version's package.
    program: &'static str,
    /// Number of times it was killed.
    kills: usize,
    /// Number of times it was stopped for a while.
    stops: usize,
    /// Number of things that were not lost or done twice.
    things: String,
}

/// Returns how many times each fault is repeated.
fn rounds() -> usize {
    if is_full() { 5 } else { 1 }
}

#[tokio::test]
async fn real_servers_and_clients_may_die_at_any_time() {
    let mut section = Section::new("9b-real", "Servers and clients of others");
    let mut proven = Vec::new();
    proven.extend(bluesky::prove().await);
    if let Some(packages) = Packages::installed().await {
        proven.push(bucket::prove(packages).await);
        proven.push(provider::prove(packages).await);
        proven.extend(passkeys::prove(packages).await);
        proven.extend(receivers::prove(packages).await);
        proven.extend(tools::prove(packages).await);
    }
    section.text(
        "Programs that others have written, as packages: each was killed (SIGKILL) and stopped (SIGSTOP) while it was in \
         use. Nothing was lost or done twice, and each failure had a reason that can be read.",
    );
    for Proven { program, kills, stops, things } in proven {
        section.figure(program, format!("killed {kills} times, stopped {stops} times: {things}"));
    }
    section.write();
}

/// Waits until a post has ended, and revives it if its attempts were used up meanwhile, as its author would.
async fn ended(world: &World, post: &Value) -> Value {
    let mut ended = world.ended(post).await;
    if ended["status"] == "failed" {
        readable(&ended["targets"][0]["error_message"]);
        let path = format!("/posts/{}", post["id"].as_str().unwrap());
        let retry = format!("{path}/retry");
        let (status, answer) = world.call(reqwest::Method::POST, &retry, Some(&serde_json::json!({}))).await;
        assert!(status.is_success(), "{answer}");
        let is_live = |post: &Value| post["targets"][0]["status"] == "published";
        ended = world.until_at(&path, "the post to be published", is_live).await;
    }
    ended
}

/// Waits until the first target of a post tells why it is not live, and returns the reason.
async fn trouble(world: &World, post: &Value) -> String {
    let path = format!("/posts/{}", post["id"].as_str().unwrap());
    let told = |post: &Value| post["targets"][0]["error_message"].is_string();
    let post = world.until_at(&path, "the reason why it is not live", told).await;
    readable(&post["targets"][0]["error_message"])
}

/// Checks that a reason is a sentence for people, and returns it.
fn readable(reason: &Value) -> String {
    let text = reason.as_str().unwrap_or_default();
    let is_sentence =
        text.split_whitespace().count() >= 2 && !text.contains("Error {") && !text.contains("panicked");
    assert!(is_sentence, "not a reason that people can read: {reason}");
    text.to_owned()
}
