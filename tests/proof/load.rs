//! Load: posts of several kinds at a steady rate, and the check that each ended exactly once.
//!
//! A create that gets no answer, or a 5xx, is repeated with the same idempotency key until it is answered, as a
//! client does. So every post that exists was acknowledged, and whatever a platform has is known here.

use crate::stack::{PLATFORMS, Stack};
use chrono::TimeDelta;
use domain::{PostId, TargetStatus};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use sqlx::PgPool;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::{Duration, Instant},
};
use tests::{PATIENCE, Receiver, now, samples::png, wait_within};
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
};
use uuid::Uuid;

/// Time limit for all posts to end after a fault.
pub(crate) const ENDS: Duration = Duration::from_secs(20 * 60);
/// Time limit of a request, after which the client repeats it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Pause of the client before it repeats a request.
const REPEAT: Duration = Duration::from_millis(250);
/// Maximum number of creates that wait for an answer. No further ones are begun beyond it.
const MAX_WAITING: usize = 400;
/// Time until a scheduled post is due.
const AHEAD: TimeDelta = TimeDelta::seconds(3);
/// Maximum number of violations that a failure lists.
const LISTED: usize = 20;

/// An account that posts are published to.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    id: String,
    pub(crate) platform: &'static str,
    pub(crate) username: String,
}

/// Connects an account of the sandbox on each platform.
pub(crate) async fn connect(stack: &Stack) -> Vec<Account> {
    let mut accounts = Vec::new();
    for platform in PLATFORMS {
        let username = if platform == "bluesky" { "ada.bsky.social" } else { "ada" }.to_owned();
        let id = stack.world.connect(platform, &username).await;
        accounts.push(Account { id, platform, username });
    }
    accounts
}

/// A client of the API that repeats requests without an answer.
#[derive(Clone)]
pub(crate) struct Caller {
    http: Client,
    /// Addresses of the API's processes, called in turns.
    bases: Vec<String>,
    key: String,
    /// Number of requests that failed and were repeated, by the answer.
    repeated: watch::Sender<BTreeMap<String, usize>>,
}

impl Caller {
    pub(crate) fn new(stack: &Stack, bases: Vec<String>) -> Self {
        let http = Client::builder().timeout(TIMEOUT).build().unwrap();
        Self { http, bases, key: stack.world.key.clone(), repeated: watch::Sender::default() }
    }

    /// Calls the API until it answers with something else than a 5xx or 429. `turn` selects the first process.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Option<&Value>,
        turn: usize,
    ) -> (StatusCode, Value) {
        for turn in turn.. {
            let base = &self.bases[turn % self.bases.len()];
            let mut request =
                self.http.request(method.clone(), format!("{base}{path}")).bearer_auth(&self.key);
            if let Some(key) = key {
                request = request.header("idempotency-key", key);
            }
            if let Some(body) = body {
                request = request.json(body);
            }
            let answered = async {
                let response = request.send().await?;
                Ok::<_, reqwest::Error>((response.status(), response.json().await?))
            };
            let answer = match answered.await {
                Ok((status, body))
                    if !status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS =>
                {
                    return (status, body);
                }
                Ok((status, _)) => status.as_str().to_owned(),
                Err(_) => "no answer".to_owned(),
            };
            self.repeated.send_modify(|repeated| *repeated.entry(answer).or_default() += 1);
            tokio::time::sleep(REPEAT).await;
        }
        unreachable!("a call is repeated until it is answered")
    }

    /// Returns the number of requests that failed and were repeated, by the answer.
    pub(crate) fn repeated(&self) -> String {
        let repeated = self.repeated.borrow();
        repeated.iter().map(|(answer, count)| format!("{count} {answer}")).collect::<Vec<_>>().join(", ")
    }

    /// Uploads an image and returns its id.
    pub(crate) async fn upload(&self, turn: usize) -> String {
        // Repeated as a whole: a file that was not stored is not confirmed.
        loop {
            let announced = json!({ "filename": "picture.png" });
            let (status, medium) =
                self.call(Method::POST, "/media/upload", None, Some(&announced), turn).await;
            assert_eq!(status, StatusCode::CREATED, "{medium}");
            let put = self.http.put(medium["upload_url"].as_str().unwrap()).body(png(640, 480)).send().await;
            if put.is_ok_and(|response| response.status().is_success()) {
                let id = medium["id"].as_str().unwrap();
                let path = format!("/media/{id}/confirm");
                let (status, _) = self.call(Method::POST, &path, None, None, turn).await;
                if status == StatusCode::OK {
                    return id.to_owned();
                }
            }
            tokio::time::sleep(REPEAT).await;
        }
    }
}

/// Kind of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text.
    Text,
    /// A text with two replies.
    Thread,
    /// A text with an image.
    Image,
    /// A text that is due a little later.
    Scheduled,
    /// A text that is due in an hour.
    Later,
    /// A text that the platform accepts without an answer.
    LostReply,
    /// A text that the platform refuses once, with 429. Threads names no wait, so that its account rests for a minute
    /// each time, in which no other post is published: the load would not end.
    Throttled,
    /// A text that the platform refuses for good.
    Refused,
}

/// A post that the API acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    pub(crate) id: PostId,
    key: String,
    body: Value,
    /// Texts of the containers.
    pub(crate) texts: Vec<String>,
    /// Account of each target, by the target's id.
    pub(crate) targets: HashMap<String, Account>,
    /// Time of the acknowledgement.
    pub(crate) acknowledged: Instant,
}

/// Creates a post, and returns it when the API has acknowledged it.
pub(crate) async fn create(
    caller: &Caller,
    name: &str,
    number: usize,
    kind: Kind,
    accounts: &[Account],
) -> Post {
    let main = format!("{name} {number}");
    let main = match kind {
        Kind::LostReply => format!("{main} #sandbox-lost-reply"),
        Kind::Throttled => format!("{main} #sandbox-429x1"),
        Kind::Refused => format!("{main} #sandbox-400"),
        Kind::Text | Kind::Thread | Kind::Image | Kind::Scheduled | Kind::Later => main,
    };
    let mut texts = vec![main];
    if kind == Kind::Thread {
        texts.extend((1..3).map(|reply| format!("{name} {number}, reply {reply}")));
    }
    let mut containers: Vec<Value> = texts.iter().map(|text| json!({ "content": text })).collect();
    if kind == Kind::Image {
        containers[0]["media"] = json!([{ "id": caller.upload(number).await }]);
    }
    let takes = |account: &&Account| kind != Kind::Throttled || account.platform != "threads";
    let ids: Vec<_> = accounts.iter().filter(takes).map(|account| &account.id).collect();
    let mut body = json!({ "containers": containers, "accounts": ids });
    match kind {
        Kind::Scheduled => body["scheduled_at"] = json!(now() + AHEAD),
        Kind::Later => body["scheduled_at"] = json!(now() + TimeDelta::hours(1)),
        _ => {}
    }
    let key = format!("{name}-{number}");
    let (status, post) = caller.call(Method::POST, "/posts", Some(&key), Some(&body), number).await;
    // 200 if an earlier call had created it, and its answer was lost.
    assert!([StatusCode::CREATED, StatusCode::OK].contains(&status), "{body}: {status} {post}");
    let acknowledged = Instant::now();
    let account = |id: &Value| accounts.iter().find(|account| *id == account.id).unwrap().clone();
    let targets = post["targets"].as_array().unwrap().iter();
    let targets =
        targets.map(|target| (text(&target["id"]), account(&target["social_account_id"]))).collect();
    Post { id: text(&post["id"]).parse().unwrap(), key, body, texts, targets, acknowledged }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// A running load.
pub(crate) struct Load {
    begun: watch::Receiver<usize>,
    acknowledged: watch::Receiver<usize>,
    end: watch::Sender<bool>,
    running: JoinHandle<Vec<Post>>,
}

impl Load {
    /// Begins a post `every` so often, of the kinds in turn, to two of the accounts each.
    pub(crate) fn start(
        caller: &Caller,
        name: &'static str,
        accounts: Vec<Account>,
        kinds: &'static [Kind],
        every: Duration,
    ) -> Self {
        let (begin, begun) = watch::channel(0);
        let (acknowledge, acknowledged) = watch::channel(0);
        let (end, ended) = watch::channel(false);
        let caller = caller.clone();
        let running = tokio::spawn(async move {
            let mut pace = tokio::time::interval(every);
            let mut creating = JoinSet::new();
            let mut posts = Vec::new();
            while !*ended.borrow() || !creating.is_empty() {
                tokio::select! {
                    _ = pace.tick(), if !*ended.borrow() => {
                        if creating.len() < MAX_WAITING {
                            let number = *begin.borrow();
                            let kind = kinds[number % kinds.len()];
                            let mut accounts = accounts.clone();
                            accounts.remove(number % accounts.len());
                            let caller = caller.clone();
                            creating.spawn(async move { create(&caller, name, number, kind, &accounts).await });
                            begin.send_modify(|begun| *begun += 1);
                        }
                    }
                    Some(created) = creating.join_next() => {
                        posts.push(created.expect("a create is answered"));
                        acknowledge.send_modify(|acknowledged| *acknowledged += 1);
                    }
                }
            }
            posts
        });
        Self { begun, acknowledged, end, running }
    }

    /// Waits until this number of further posts has been acknowledged.
    pub(crate) async fn acknowledged(&self, further: usize) {
        passed(self.acknowledged.clone(), further, "posts to be acknowledged").await;
    }

    /// Waits until this number of further posts has been begun.
    pub(crate) async fn begun(&self, further: usize) {
        passed(self.begun.clone(), further, "posts to be begun").await;
    }

    /// Begins no further posts, and returns all when they are acknowledged.
    pub(crate) async fn end(self) -> Vec<Post> {
        self.end.send_replace(true);
        tokio::time::timeout(PATIENCE, self.running).await.expect("every create is answered").unwrap()
    }
}

async fn passed(mut counter: watch::Receiver<usize>, further: usize, what: &str) {
    let goal = *counter.borrow() + further;
    let passed = tokio::time::timeout(PATIENCE, counter.wait_for(|count| *count >= goal)).await;
    passed.unwrap_or_else(|_| panic!("timed out waiting for {further} {what}")).unwrap();
}

/// Returns the number of targets of these posts that have not ended, those with a missing reply included.
async fn unfinished(db: &PgPool, posts: &[PostId]) -> sqlx::Result<i64> {
    let ids: Vec<_> = posts.iter().map(|id| id.0).collect();
    let open =
        "select count(*) from targets where post_id = any($1) and (status in ('pending', 'queued', 'failed')
        or status = 'published' and next_attempt_at is not null)";
    sqlx::query_scalar(open).bind(ids).fetch_one(db).await
}

/// Waits until all targets of these posts have ended.
pub(crate) async fn until_ended(db: &PgPool, posts: &[PostId]) {
    wait_within(ENDS, "the posts to end", async || match unfinished(db, posts).await {
        Ok(0) => Ok(()),
        Ok(open) => Err(format!("{open} targets of {} posts have not ended", posts.len())),
        Err(error) => Err(error.to_string()),
    })
    .await;
}

/// Requests a retry of each target whose next attempt is due in half an hour or later, and returns their number.
pub(crate) async fn retry_late(db: &PgPool, caller: &Caller) -> usize {
    let late = "select post_id, id from targets
        where status in ('failed', 'queued') and error_code is not null
          and next_attempt_at > now() + interval '30 minutes'";
    let late: Vec<(Uuid, Uuid)> = sqlx::query_as(late).fetch_all(db).await.unwrap();
    for (post, target) in &late {
        let path = format!("/posts/{post}/targets/{target}/retry");
        let (status, answer) = caller.call(Method::POST, &path, None, None, 0).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    }
    late.len()
}

/// Waits until no message is left to be sent to Temporal, and no delivery to be made.
pub(crate) async fn until_settled(db: &PgPool) {
    let left = "select (select count(*) from outbox),
        (select count(*) from deliveries where status in ('pending', 'delivering'))";
    wait_within(ENDS, "messages and deliveries", async || match sqlx::query_as(left).fetch_one(db).await {
        Ok((0i64, 0i64)) => Ok(()),
        Ok((messages, deliveries)) => Err(format!("{messages} messages, {deliveries} deliveries")),
        Err(error) => Err(error.to_string()),
    })
    .await;
}

/// Results of posts.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) posts: usize,
    pub(crate) targets: usize,
    pub(crate) published: usize,
    /// Number of targets by their reason.
    pub(crate) dead: BTreeMap<String, usize>,
    /// Number of publications on the platforms.
    pub(crate) publications: usize,
    pub(crate) events: usize,
    /// Number of deliveries of an event after its first.
    pub(crate) repeated: usize,
}

/// Checks that each post has ended, each target exactly once, and that what a platform has is what the API says.
/// Of posts that are `gone` from the database, a platform has each at most once. Without a receiver, events are
/// not checked.
///
/// # Panics
///
/// With the violations.
pub(crate) async fn check(
    stack: &Stack,
    caller: &Caller,
    posts: &[Post],
    gone: &[Post],
    receiver: Option<&Receiver>,
) -> Outcome {
    let mut outcome = Outcome { posts: posts.len(), ..Outcome::default() };
    let mut wrong = Vec::new();
    let live = publications(stack, &[posts, gone].concat(), &mut wrong).await;
    outcome.publications = live.values().map(|texts| texts.values().sum::<usize>()).sum();
    let events = receiver.map(|receiver| events(receiver, &mut outcome, &mut wrong));
    for post in posts {
        let (status, found) = caller.call(Method::GET, &format!("/posts/{}", post.id), None, None, 0).await;
        assert_eq!(status, StatusCode::OK, "{found}");
        let (status, again) = caller.call(Method::POST, "/posts", Some(&post.key), Some(&post.body), 0).await;
        if status != StatusCode::OK || again["id"] != found["id"] {
            wrong.push(format!("{}: creating it again returned {status} {}", post.key, again["id"]));
        }
        let targets = found["targets"].as_array().unwrap();
        let is_out = targets.iter().any(|target| target["status"] == "published");
        let expected = if is_out { "post.published" } else { "post.error" };
        let all = ["post.published", "post.error"];
        one_event(events.as_ref(), &post.id.to_string(), expected, &all, post, &mut wrong);
        if !["published", "partial", "failed"].contains(&found["status"].as_str().unwrap()) {
            wrong.push(format!("{}: the post is {}", post.key, found["status"]));
        }
        for target in targets {
            outcome.targets += 1;
            let id = text(&target["id"]);
            let account = &post.targets[&id];
            let count = |text: &String| live[account.platform].get(&shown(text)).copied().unwrap_or(0);
            let expected = match target["status"].as_str().unwrap().parse() {
                Ok(TargetStatus::Published) => {
                    outcome.published += 1;
                    // Replies that could not be published are named by a code.
                    let due = if target["error_code"].is_null() { &post.texts[..] } else { &post.texts[..1] };
                    for text in due.iter().filter(|text| count(text) != 1) {
                        wrong.push(format!(
                            "{}: {} has {} of \"{text}\"",
                            post.key,
                            account.platform,
                            count(text)
                        ));
                    }
                    "post.target.published"
                }
                Ok(TargetStatus::Dead) => {
                    let reason = format!("{}: {}", target["error_code"], target["error_message"]);
                    if target["error_code"].is_null() || target["error_message"].is_null() {
                        wrong.push(format!("{}: a target has no reason: {target}", post.key));
                    }
                    *outcome.dead.entry(reason).or_default() += 1;
                    "post.target.failed"
                }
                _ => {
                    wrong.push(format!("{}: a target has not ended: {target}", post.key));
                    continue;
                }
            };
            let all = ["post.target.published", "post.target.failed"];
            one_event(events.as_ref(), &id, expected, &all, post, &mut wrong);
        }
    }
    let count = wrong.len();
    wrong.truncate(LISTED);
    assert!(
        wrong.is_empty(),
        "{count} violations (logs in {}):\n{}",
        stack.data("").display(),
        wrong.join("\n")
    );
    outcome
}

/// Returns the texts that each platform has, and how often. None may be there twice, or be unknown.
async fn publications(
    stack: &Stack,
    posts: &[Post],
    wrong: &mut Vec<String>,
) -> HashMap<&'static str, HashMap<String, usize>> {
    let known: HashSet<_> = posts.iter().flat_map(|post| &post.texts).map(|text| shown(text)).collect();
    let accounts = posts.iter().flat_map(|post| post.targets.values());
    let accounts: HashMap<_, _> = accounts.map(|account| (account.platform, &account.username)).collect();
    let mut all = HashMap::new();
    for (platform, username) in accounts {
        let page = format!("{}/{platform}/{username}", stack.world.sandbox_url);
        let page = stack.world.http.get(page).send().await.unwrap().text().await.unwrap();
        let texts = page.split("<p class=\"text\">").skip(1).map(|rest| rest.split("</p>").next().unwrap());
        let mut counted = HashMap::new();
        for text in texts {
            *counted.entry(shown(text)).or_default() += 1;
        }
        for (text, count) in &counted {
            if *count > 1 {
                wrong.push(format!("{platform} has \"{text}\" {count} times"));
            }
            if !known.contains(text) {
                wrong.push(format!("{platform} has \"{text}\", which was never acknowledged"));
            }
        }
        let journal = stack.world.journal(platform, username).await;
        let accepted = journal.iter().filter(|entry| entry["accepted"] == true);
        let accepted: usize = accepted.map(|entry| entry["post_ids"].as_array().unwrap().len()).sum();
        let count = counted.values().sum::<usize>();
        if accepted != count {
            wrong.push(format!("{platform} accepted {accepted} publications and shows {count}"));
        }
        all.insert(platform, counted);
    }
    all
}

/// Returns a text as every platform shows it: Threads makes the first tag a topic, without its sign.
fn shown(text: &str) -> String {
    text.replace('#', "")
}

/// Ids of the events about a post or target, by its id and the event's name.
type Events = HashMap<(String, String), HashSet<String>>;

/// Returns the received events.
fn events(receiver: &Receiver, outcome: &mut Outcome, wrong: &mut Vec<String>) -> Events {
    let mut events = Events::new();
    let mut bodies = HashMap::new();
    for delivery in receiver.all() {
        let (body, id) = (delivery.json(), delivery.header("x-fanfare-event-id").to_owned());
        let event = text(&body["event"]);
        let about = if event.starts_with("post.target.") { "targetId" } else { "postId" };
        let Some(about) = body["data"][about].as_str() else { continue };
        match bodies.insert(id.clone(), delivery.body.clone()) {
            None => outcome.events += 1,
            Some(first) => {
                outcome.repeated += 1;
                if first != delivery.body {
                    wrong.push(format!("the event {id} was delivered with two bodies"));
                }
            }
        }
        events.entry((about.to_owned(), event)).or_default().insert(id);
    }
    events
}

/// Checks that there is one event with the name `expected`, and none with the other names in `all`.
fn one_event(
    events: Option<&Events>,
    about: &str,
    expected: &str,
    all: &[&str],
    post: &Post,
    wrong: &mut Vec<String>,
) {
    let Some(events) = events else { return };
    for name in all {
        let count = events.get(&(about.to_owned(), (*name).to_owned())).map_or(0, HashSet::len);
        if count != usize::from(*name == expected) {
            wrong.push(format!("{}: {count} events {name} of {about}", post.key));
        }
    }
}
