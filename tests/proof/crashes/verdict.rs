//! The requirement of each case: each container once, or a warning where nobody can tell.

use super::{
    kill::{Crash, Moment},
    posts::{Kind, Post},
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tests::{Receiver, World};

/// The words of a target that may be live.
const WARNING: &str = "it may be live: look before posting again";

/// Calls of which nobody can tell whether they published, with the kinds of posts, and why.
const UNKNOWABLE: [(&str, &str, &[Kind]); 2] = [
    // Its answer has the only id of the post, and the list of posts only those that are public.
    ("tiktok", "POST open.tiktokapis.com/v2/post/publish/content/init/", &Kind::ALL),
    // A post with media is processed first, and listed only afterwards: it has no id until then.
    ("reddit", "POST oauth.reddit.com/api/submit", &[Kind::Image, Kind::Video]),
];

/// The result of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Each container is live once.
    Once,
    /// The target says that it may be live; no container is live twice.
    Warning,
    /// The platform replaced the refresh token, and the new one is lost. Nothing is live, and the target says
    /// that the account has to be connected again.
    TokenLost,
}

/// Returns the result of a case, or what is wrong with it.
pub(super) async fn of(world: &World, crash: &Crash<'_>) -> Result<Verdict, String> {
    let Post { platform, username, post, .. } = &crash.post;
    let sequence = crash.case.sequence;
    let found = world.get(&format!("/posts/{post}")).await;
    let target = &found["targets"][0];
    let journal = world.journal(platform.id, username).await;
    let live = journal.iter().filter(|entry| entry["accepted"] == true).count();
    let (status, code) = (target["status"].as_str().unwrap(), &target["error_code"]);
    let has_warning = target["error_message"].as_str().is_some_and(|message| message.contains(WARNING));
    let is_unknowable = sequence.calls.iter().enumerate().any(|(index, call)| {
        (index == crash.case.call || crash.place.is_none())
            && UNKNOWABLE.iter().any(|(of, name, kinds)| {
                (*of, *name) == (platform.id, &*call.name) && kinds.contains(&sequence.kind)
            })
    });
    // The token may have been replaced from the moment when the platform got the request.
    let may_lose_token = sequence.kind == Kind::ExpiredToken && crash.case.moment != Moment::Before;
    match status {
        "published" if code.is_null() && live == sequence.containers => Ok(Verdict::Once),
        "published" | "dead" if has_warning && is_unknowable && live <= sequence.containers => {
            Ok(Verdict::Warning)
        }
        "dead" if may_lose_token && code == "token_expired" && live == 0 => Ok(Verdict::TokenLost),
        _ => Err(format!(
            "{} ({:?}): {live} of {} live, {target:#}",
            crash.case, crash.place, sequence.containers
        )),
    }
}

/// Waits for the events of all targets, one each, however often it was delivered. Returns the number of repeated
/// deliveries.
pub(super) async fn events(receiver: &Receiver, crashes: &[Crash<'_>]) -> usize {
    let deliveries = receiver
        .until("an event of each target", |all| {
            let seen: BTreeSet<_> = all.iter().filter_map(|delivery| target(&delivery.json())).collect();
            crashes.iter().all(|crash| seen.contains(&crash.post.target.to_string()))
        })
        .await;
    let mut events: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut count = 0;
    for delivery in &deliveries {
        if let Some(target) = target(&delivery.json()) {
            count += 1;
            events.entry(target).or_default().insert(delivery.header("x-fanfare-event-id").to_owned());
        }
    }
    events.retain(|_, ids| ids.len() != 1);
    assert!(events.is_empty(), "targets with more than one event: {events:?}");
    count
}

/// Returns the target of a `post.target.*` event.
fn target(body: &Value) -> Option<String> {
    let is_of_target = body["event"].as_str()?.starts_with("post.target.");
    is_of_target.then(|| body["data"]["targetId"].as_str().unwrap().to_owned())
}
