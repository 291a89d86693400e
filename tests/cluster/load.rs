//! Posts at a steady rate, each to three accounts, and the check that each was published exactly once.
//!
//! A create that gets no answer, or a 503, is repeated at the other API with the same idempotency key, as a client
//! does. So every post that exists was acknowledged.

use crate::client::{Account, Client, Held};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tests::{PATIENCE, Receiver};
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
};

/// Pause before a call is repeated.
const REPEAT: Duration = Duration::from_millis(250);
/// Maximum number of calls that wait for an answer.
const MAX_WAITING: usize = 50;

/// A post that was acknowledged.
#[derive(Debug)]
pub(crate) struct Post {
    text: String,
    id: String,
    targets: Vec<String>,
}

/// Result of a load.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    pub(crate) posts: Vec<Post>,
    /// Calls that failed and were repeated, by the kind of failure.
    pub(crate) failed: BTreeMap<String, usize>,
}

/// A running load.
pub(crate) struct Load {
    acknowledged: watch::Receiver<usize>,
    end: watch::Sender<bool>,
    running: JoinHandle<Ended>,
}

impl Load {
    /// Begins a post `every` so often.
    pub(crate) fn start(client: Client, accounts: Vec<Account>, every: Duration) -> Self {
        let (acknowledge, acknowledged) = watch::channel(0);
        let (end, mut ended) = watch::channel(false);
        let running = tokio::spawn(async move {
            let mut tick = tokio::time::interval(every);
            let (mut creating, mut all, mut number) = (JoinSet::new(), Ended::default(), 0);
            while !*ended.borrow_and_update() || !creating.is_empty() {
                let is_over = *ended.borrow();
                tokio::select! {
                    _ = tick.tick(), if !is_over && creating.len() < MAX_WAITING => {
                        number += 1;
                        creating.spawn(create(client.clone(), accounts.clone(), number));
                    }
                    Some(created) = creating.join_next() => {
                        let (post, failed) = created.expect("a create is answered");
                        all.posts.push(post);
                        for kind in failed {
                            *all.failed.entry(kind).or_default() += 1;
                        }
                        acknowledge.send_modify(|count| *count += 1);
                    }
                    _ = ended.changed(), if !is_over => {}
                }
            }
            all
        });
        Self { acknowledged, end, running }
    }

    /// Waits until this number of further posts has been acknowledged.
    pub(crate) async fn acknowledged(&self, further: usize) {
        let mut count = self.acknowledged.clone();
        let goal = *count.borrow() + further;
        let passed = tokio::time::timeout(PATIENCE, count.wait_for(|count| *count >= goal)).await;
        passed.expect("posts are acknowledged").expect("the load runs");
    }

    /// Begins no further posts, and returns what was done when all are acknowledged.
    pub(crate) async fn end(self) -> Ended {
        self.end.send_replace(true);
        tokio::time::timeout(PATIENCE, self.running).await.expect("every create is answered").unwrap()
    }
}

/// Creates a post, and returns it with the failures until it was acknowledged.
async fn create(client: Client, accounts: Vec<Account>, number: usize) -> (Post, Vec<String>) {
    let text = format!("post {number} of the load");
    let ids: Vec<_> = accounts.iter().map(|account| &account.id).collect();
    let body = json!({ "content": text, "accounts": ids });
    let mut failed = Vec::new();
    for turn in number.. {
        let request =
            client.request(turn, Method::POST, "/posts").header("idempotency-key", &text).json(&body);
        let answered = async {
            let answer = request.send().await?;
            Ok::<_, reqwest::Error>((answer.status(), answer.json::<Value>().await?))
        };
        match answered.await {
            // 200 if an earlier call had created it, and its answer was lost.
            Ok((StatusCode::CREATED | StatusCode::OK, post)) => {
                let id = |value: &Value| value["id"].as_str().unwrap().to_owned();
                let targets = post["targets"].as_array().unwrap().iter().map(id).collect();
                return (Post { text, id: id(&post), targets }, failed);
            }
            Ok((StatusCode::SERVICE_UNAVAILABLE, _)) => failed.push("503".to_owned()),
            Ok((status, answer)) => panic!("{status}: {answer}"),
            Err(error) if error.is_connect() => failed.push("connection refused".to_owned()),
            // The process was killed while it answered.
            Err(error) if error.is_request() || error.is_body() || error.is_decode() => {
                failed.push("connection closed".to_owned());
            }
            Err(error) => panic!("{error:?}"),
        }
        tokio::time::sleep(REPEAT).await;
    }
    unreachable!("a call is repeated until it is answered")
}

/// Checks that every post is on each account exactly once, that nothing else is, and that each event of a post and its
/// targets arrived.
pub(crate) async fn check(
    client: &Client,
    accounts: &[Account],
    ended: &Ended,
    held: &Held,
    receiver: &Receiver,
) {
    let texts: Vec<_> = ended.posts.iter().map(|post| post.text.clone()).collect();
    let own = accounts.iter().map(|account| (account, &texts));
    for (account, expected) in own.chain([(&held.account, &held.texts)]) {
        let mut shown = client.published(account).await;
        assert_eq!(client.accepted(account).await, shown.len(), "the journal and the page of {account:?}");
        shown.sort();
        let mut expected = expected.clone();
        expected.sort();
        let missing: Vec<_> = expected.iter().filter(|text| !shown.contains(text)).collect();
        assert!(shown == expected, "{account:?} lacks {missing:?} and shows {shown:?}");
    }
    let mut events: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for delivery in receiver.all() {
        let (body, id) = (delivery.json(), delivery.header("x-fanfare-event-id").to_owned());
        let event = delivery.event();
        let about = if event.starts_with("post.target.") { "targetId" } else { "postId" };
        let Some(about) = body["data"][about].as_str() else { continue };
        events.entry((about.to_owned(), event)).or_default().insert(id);
    }
    for post in &ended.posts {
        let targets = post.targets.iter().map(|target| (target, "post.target.published"));
        for (about, event) in targets.chain([(&post.id, "post.published")]) {
            let count = events.get(&(about.clone(), event.to_owned())).map_or(0, BTreeSet::len);
            assert_eq!(count, 1, "{event} of {about}");
        }
    }
}
