//! One organization does not delay another.
//!
//! The tests compare durations: while one organization fills every queue as far as it can, the work of
//! another takes at most twice as long as on an idle service. To be reliable on a busy machine, an idle
//! service is measured in turns with the flooded one, medians are compared, and the flood consists of work
//! that waits for a response rather than of work that computes. A constant allowance (`FLOOR`) covers
//! scheduling delays, which are a fraction of the delay behind a full queue.
//!
//! Live publishing can't be flooded here, because a live account needs a real platform. Its queues are
//! separate from those of test mode (`queue::no_two_kinds_of_work_share_a_queue`), and the share of an
//! organization is the same in both modes (`activities::share`).

use crate::{media::until, world};
use domain::{Mode, Owner, scope::Scope};
use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use store::people::{keys, organizations};
use temporalio_client::Client;
use tests::{PATIENCE, Receiver, World, if_right, now, samples::png, wait_until};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::watch,
    task::JoinHandle,
    time::{Instant, interval},
};

/// Measurements per kind of work.
const ROUNDS: usize = 5;
/// Additional time that is always allowed; work that waits behind the flood takes ten times as long.
const FLOOR: Duration = Duration::from_secs(3);
/// Slots of a platform that an organization gets: half of a hundred.
const SHARE: usize = 50;

/// A server that never completes a response; it sends one byte per second to avoid the idle time-out.
struct Slow {
    url: String,
    held: watch::Receiver<usize>,
    serving: JoinHandle<()>,
}

impl Slow {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/a.png", listener.local_addr().unwrap());
        let (count, held) = watch::channel(0);
        let serving = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                count.send_modify(|held| *held += 1);
                tokio::spawn(async move {
                    let _ = stream.read(&mut [0; 1024]).await;
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n").await;
                    let mut pace = interval(Duration::from_secs(1));
                    while stream.write_all(b"a").await.is_ok() {
                        pace.tick().await;
                    }
                });
            }
        });
        Self { url, held, serving }
    }

    async fn holds(&self, number: usize) {
        let mut held = self.held.clone();
        let waiting = held.wait_for(|held| *held >= number);
        tokio::time::timeout(PATIENCE, waiting).await.expect("the workers fetch from it").unwrap();
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// API keys of an organization.
struct Tenant {
    test: String,
    live: String,
}

/// Creates an organization and makes the world act for it.
async fn tenant(world: &mut World, name: &str) -> Tenant {
    let org = organizations::create(&world.db, name).await.unwrap();
    let key = async |mode| {
        let owner = Owner { org, mode };
        let new = keys::NewKey { owner, name: name.into(), scopes: vec![Scope::All], expires_at: None };
        keys::create(&world.db, new, now()).await.unwrap().1
    };
    let tenant = Tenant { test: key(Mode::Test).await, live: key(Mode::Live).await };
    world.owner = Owner { org, mode: Mode::Test };
    world.key.clone_from(&tenant.test);
    tenant
}

/// Returns the duration of `what`.
async fn timed(what: impl Future<Output = ()>) -> Duration {
    let began = Instant::now();
    what.await;
    began.elapsed()
}

/// Returns a unique text, because platforms reject duplicates.
fn unlike(text: &str) -> String {
    format!("{text} {}", uuid::Uuid::new_v4())
}

async fn published(world: &World, account: &str) {
    let post = world.post(json!({ "content": unlike("Mine"), "accounts": [account] })).await;
    let post = world.ended(&post).await;
    assert_eq!(post["status"], "published", "{post:#}");
}

async fn imported(world: &World, url: &str) {
    let (status, reported) = world.call(Method::POST, "/media/import", Some(&json!({ "url": url }))).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{reported}");
    until(world, &reported["id"], "ready").await;
}

async fn confirmed(world: &World) {
    let medium = world.upload(json!({ "filename": "a.png" }), png(8, 8)).await;
    let path = format!("/media/{}/confirm", medium["id"].as_str().unwrap());
    let (status, medium) = world.call(Method::POST, &path, None).await;
    assert_eq!((status, &medium["status"]), (StatusCode::OK, &json!("ready")), "{medium}");
}

async fn sampled(world: &World, webhook: &str) {
    let path = format!("/webhooks/{webhook}/test");
    let (status, reported) = world.call(Method::POST, &path, None).await;
    assert_eq!((status, &reported["delivered"]), (StatusCode::OK, &json!(true)), "{reported}");
}

async fn reported(world: &World, receiver: &Receiver) {
    let post = world.post(json!({ "content": unlike("Told"), "accounts": ["bob"] })).await;
    let id = post["id"].as_str().unwrap();
    let is_its = |delivery: &tests::Delivery| String::from_utf8_lossy(&delivery.body).contains(id);
    receiver.until("the event of the post", |all| all.iter().any(is_its)).await;
}

/// An organization of a service, and the durations of its work.
struct Place {
    world: World,
    tenant: Tenant,
    receiver: Receiver,
    /// Webhook endpoints in test and in live mode.
    webhooks: [String; 2],
    times: Vec<(String, Vec<Duration>)>,
}

impl Place {
    async fn of(mut world: World) -> Self {
        let tenant = tenant(&mut world, "Other").await;
        world.connect("x", "bob").await;
        world.connect("bluesky", "bob.bsky.social").await;
        let receiver = Receiver::start().await;
        let body = json!({ "url": receiver.url, "events": ["post.published"] });
        let mut webhooks = Vec::new();
        for key in [&tenant.test, &tenant.live] {
            world.key.clone_from(key);
            let (_, webhook) = world.call(Method::POST, "/webhooks", Some(&body)).await;
            webhooks.push(webhook["id"].as_str().unwrap().to_owned());
        }
        Self { world, tenant, receiver, webhooks: webhooks.try_into().unwrap(), times: Vec::new() }
    }

    fn keep(&mut self, what: String, time: Duration) {
        match self.times.iter_mut().find(|(known, _)| *known == what) {
            Some((_, times)) => times.push(time),
            None => self.times.push((what, vec![time])),
        }
    }

    /// Runs and measures one of each kind of work.
    async fn work(&mut self, picture: &str) {
        self.world.key.clone_from(&self.tenant.test);
        for account in ["bob", "bob.bsky.social"] {
            let time = timed(published(&self.world, account)).await;
            self.keep(format!("a post of {account}"), time);
        }
        let time = timed(reported(&self.world, &self.receiver)).await;
        self.keep("an event".to_owned(), time);
        for (index, mode) in ["test", "live"].into_iter().enumerate() {
            self.world.key.clone_from([&self.tenant.test, &self.tenant.live][index]);
            let time = timed(imported(&self.world, picture)).await;
            self.keep(format!("a {mode} import"), time);
            let time = timed(confirmed(&self.world)).await;
            self.keep(format!("a {mode} upload"), time);
            let time = timed(sampled(&self.world, &self.webhooks[index])).await;
            self.keep(format!("a {mode} sample"), time);
        }
    }

    /// Returns the median duration of each kind of work.
    fn medians(mut self) -> Vec<(String, Duration)> {
        let median = |(what, mut times): (String, Vec<Duration>)| {
            times.sort_unstable();
            (what, times[times.len() / 2])
        };
        std::mem::take(&mut self.times).into_iter().map(median).collect()
    }
}

/// Counts the targets of an organization that wait for a slot or for another attempt: those have a workflow of their
/// own. Temporal counts them at far less cost than it lists them, which would be a load for all tests.
async fn waiting(client: &Client, owner: Owner) -> usize {
    let query = format!(
        "WorkflowType = 'PublishTarget' and FanfareOrg = '{}' and ExecutionStatus = 'Running'",
        owner.org
    );
    client.count_workflows(query, Default::default()).await.unwrap().count()
}

/// Creates posts, each to both accounts.
async fn batch(world: &World, text: &str, number: usize) {
    let post = || json!({ "content": unlike(text), "accounts": ["ada", "ada.bsky.social"] });
    let posts: Vec<_> = std::iter::repeat_with(post).take(number).collect();
    let (status, made) = world.call(Method::POST, "/posts/batch", Some(&json!({ "posts": posts }))).await;
    assert!(status.is_success(), "{made}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_load_of_one_organization_does_not_delay_another() {
    let modes = || world().pace(1.0).set("FANFARE_MODES", "live,test");
    let mut idle = Place::of(modes().start().await).await;
    let mut world = modes().start().await;
    let greedy = tenant(&mut world, "Greedy").await;
    world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    let greedy_owner = world.owner;
    let mut flooded = Place::of(world).await;
    let picture = picture().await;
    for place in [&mut idle, &mut flooded] {
        // The first of each kind takes longer.
        place.work(&picture.url).await;
        place.times.clear();
    }

    // The flood: posts and deliveries that never get a response, and files that arrive one byte at a time,
    // in test and in live mode.
    let (slow, silent) = (Slow::start().await, Receiver::start().await);
    silent.hold();
    let world = &mut flooded.world;
    world.owner = greedy_owner;
    world.key.clone_from(&greedy.test);
    for _ in 0..10 {
        let body = json!({ "url": silent.url, "events": ["post.published"] });
        let (status, webhook) = world.call(Method::POST, "/webhooks", Some(&body)).await;
        assert_eq!(status, StatusCode::CREATED, "{webhook}");
    }
    batch(world, "Quick", 10).await;
    silent.until("a delivery to each endpoint to be held", |all| all.len() >= 10).await;
    let (batches, size) = (6, 18);
    for _ in 0..batches {
        batch(world, "Never #sandbox-stuck", size).await;
    }
    let client = crate::replay::client().await;
    let expected = 2 * (batches * size - SHARE);
    let flooded_by = async || if_right(waiting(&client, greedy_owner).await, |count| *count >= expected);
    wait_until("the flood", flooded_by).await;
    for key in [&greedy.test, &greedy.live] {
        world.key.clone_from(key);
        let world = &*world;
        let body = json!({ "url": slow.url });
        let import = async |()| world.call(Method::POST, "/media/import", Some(&body)).await.0;
        let taken = join_all([(); 24].map(import)).await;
        assert!(taken.iter().all(|status| *status == StatusCode::ACCEPTED), "{taken:?}");
    }
    // A shared queue of files would run 16.
    slow.holds(16).await;

    for _ in 0..ROUNDS {
        idle.work(&picture.url).await;
        flooded.work(&picture.url).await;
    }
    let (idle, flooded) = (idle.medians(), flooded.medians());
    eprintln!("idle: {idle:?}\nbeside a flood: {flooded:?}");
    let pairs = idle.iter().zip(&flooded);
    let late: Vec<_> = pairs.filter(|(idle, now)| now.1 > (idle.1 * 2).max(idle.1 + FLOOR)).collect();
    assert!(late.is_empty(), "much later than on an idle service: {late:#?}");
    silent.release();
}

/// Creates posts on X in batches of ten.
async fn created(world: &World, number: usize) -> Vec<Value> {
    let mut all = Vec::new();
    for _ in 0..number / 10 {
        let post = || json!({ "content": unlike(&crate::replay::marked("Held")), "accounts": ["ada"] });
        let posts: Vec<_> = std::iter::repeat_with(post).take(10).collect();
        let (status, made) = world.call(Method::POST, "/posts/batch", Some(&json!({ "posts": posts }))).await;
        assert!(status.is_success(), "{made}");
        all.extend(made["data"].as_array().unwrap().iter().map(|one| one["post"].clone()));
    }
    all
}

#[tokio::test]
async fn waiting_for_a_slot_uses_no_attempt() {
    // At the production pace a held attempt does not time out.
    let world = world().pace(1.0).own().start().await;
    world.connect("x", "ada").await;
    let mut held = Vec::new();
    // An organization gets half of a platform's hundred slots.
    for nth in 1..=50 {
        let call = json!({ "platform": "x", "method": "POST", "path_prefix": "/2/tweets", "nth": nth, "when": "before" });
        held.push(world.hold(call).await);
    }
    let posts = created(&world, 50).await;
    held[49].until_held().await;

    let late = created(&world, 10).await;
    let path = format!("/posts/{}", late[0]["id"].as_str().unwrap());
    let target = world.get(&path).await["targets"][0]["id"].as_str().unwrap().to_owned();
    let workflow = workflows::publish_target::id(target.parse().unwrap());
    let client = crate::replay::client().await;
    let waits = async || {
        if_right(crate::replay::history(&client, &workflow).await, |events| events.contains("TimerStarted"))
    };
    wait_until("a timer in the workflow", waits).await;
    let waiting = world.get(&path).await;
    assert_eq!(waiting["targets"][0]["attempts"], 0, "{waiting:#}");

    for hold in held {
        hold.release().await;
    }
    for post in &late {
        let post = world.ended(post).await;
        let reported = (&post["targets"][0]["attempts"], &post["status"]);
        assert_eq!(reported, (&json!(1), &json!("published")), "{post:#}");
    }
    for post in &posts {
        assert_eq!(world.ended(post).await["status"], "published");
    }
    crate::replay::replay(&world, "publish_target-crowded", &workflow).await;
    let post = workflows::publish_post::id(late[0]["id"].as_str().unwrap().parse().unwrap());
    crate::replay::replay(&world, "publish_post-crowded", &post).await;
}

async fn picture() -> Picture {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/b.png", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            let bytes = png(8, 8);
            let head =
                format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", bytes.len());
            let _ = stream.write_all(&[head.into_bytes(), bytes].concat()).await;
        }
    });
    Picture { url, serving }
}

/// A server of one picture.
struct Picture {
    url: String,
    serving: JoinHandle<()>,
}

impl Drop for Picture {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
