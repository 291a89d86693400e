//! A stack runs under mixed load with a fault every minute: nothing accumulates.
//!
//! Of the API and of the worker there are two processes each. One is restarted and killed all the time; the
//! other runs from beginning to end, so that its memory can be compared.

use crate::{
    load::{self, Account, Caller, Kind, Load, Post},
    parts::Pair,
    stack::{Stack, StackOptions},
};
use nix::sys::signal::Signal;
use reqwest::{Client, Method, StatusCode, header, redirect::Policy};
use serde_json::{Value, json};
use sqlx::PgPool;
use std::{
    fmt::Write,
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};
use tests::{
    Receiver, login,
    network::{Port, State},
    now, proof, wait_within,
};
use tokio::{process::Command, sync::watch, task::JoinHandle};

/// Kinds of posts of the load.
const KINDS: &[Kind] = &[
    Kind::Text,
    Kind::Thread,
    Kind::Image,
    Kind::Scheduled,
    Kind::Throttled,
    Kind::Text,
    Kind::LostReply,
    Kind::Refused,
    Kind::Text,
    Kind::Thread,
    Kind::Scheduled,
    Kind::Text,
];
/// Interval of samples.
const SAMPLE_EVERY: Duration = Duration::from_secs(10);
/// Pages of the dashboard that a person visits.
const PAGES: [&str; 8] = ["", "/posts", "/accounts", "/webhooks", "/media", "/keys", "/team", "/usage"];

/// Largest growth of the anonymous memory of a process in the second half of the load. The Temporal SDK keeps some
/// 400 bytes of each activity.
const MAX_GROWTH_KIB: u64 = 16 << 10;
/// Most threads or descriptors at the end beyond those of the first half: a pool that fills late. One that each post
/// leaves behind would be hundreds.
const MAX_MORE: u64 = 24;
/// Pool size of each of the four processes, and the listeners of the relays.
const MAX_CONNECTIONS: i64 = 4 * 16 + 2;

/// Length and intensity of a soak.
struct Form {
    length: Duration,
    /// Interval of posts.
    every: Duration,
    /// Interval of a person's other requests.
    visit_every: Duration,
    /// Posts between two faults, and during one.
    between: usize,
    during: usize,
    /// Number of different faults.
    faults: usize,
    /// Factor on every wait: the retries of a dead endpoint take two hours otherwise.
    pace: f64,
    sample_every: Duration,
}

impl Form {
    fn of(is_full: bool) -> Self {
        if is_full {
            Self {
                length: Duration::from_secs(30 * 60),
                every: Duration::from_secs(1),
                visit_every: Duration::from_secs(1),
                between: 50,
                during: 10,
                faults: FAULTS.len(),
                pace: 0.02,
                sample_every: SAMPLE_EVERY,
            }
        } else {
            Self {
                length: Duration::from_secs(30),
                every: Duration::from_millis(500),
                visit_every: Duration::from_millis(500),
                between: 6,
                during: 4,
                faults: 4,
                pace: 0.002,
                sample_every: Duration::from_secs(1),
            }
        }
    }
}

/// A fault of the soak.
#[derive(Clone, Copy, Debug)]
enum Fault {
    WorkerKilled,
    ApiStopped,
    Refused(Pair),
    Throttled,
    TokensExpired,
    Frozen(Pair),
    ApiKilled,
    WorkerStopped,
    ReceiverFails,
}

/// In turn. The short form has the first ones, which cost no more than a minute: an activity that was lost while it
/// refreshed a token is repeated after three.
const FAULTS: [Fault; 12] = [
    Fault::WorkerKilled,
    Fault::Throttled,
    Fault::ApiStopped,
    Fault::Refused(Pair::WorkerPostgres),
    Fault::TokensExpired,
    Fault::Frozen(Pair::WorkerTemporal),
    Fault::ApiKilled,
    Fault::Refused(Pair::ApiPostgres),
    Fault::ReceiverFails,
    Fault::WorkerStopped,
    Fault::Frozen(Pair::ApiTemporal),
    Fault::Refused(Pair::WorkerPlatforms),
];

/// Resources that a process uses.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    resident_kib: u64,
    /// Resident memory that is not mapped from files: heap and stacks.
    anonymous_kib: u64,
    threads: u64,
    descriptors: usize,
}

impl Usage {
    fn of(pid: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Self {
            resident_kib: number("VmRSS:").unwrap_or_default(),
            anonymous_kib: number("RssAnon:").unwrap_or_default(),
            threads: number("Threads:").unwrap_or_default(),
            descriptors: fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count),
        }
    }
}

/// A sample.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Duration,
    api: Usage,
    worker: Usage,
    /// Connections of Fanfare to Postgres.
    connections: i64,
    /// Open workflows, without those that renew grants, and without the hourly clean-up, which live mode serves.
    workflows: u64,
    renewals: u64,
    messages: i64,
    deliveries: i64,
    targets: i64,
}

impl Sample {
    const HEADER: &'static str = "seconds,api_rss_kib,api_anonymous_kib,\
        worker_rss_kib,worker_anonymous_kib,api_threads,worker_threads,\
        api_descriptors,worker_descriptors,postgres_connections,open_workflows,renewal_workflows,\
        outbox_rows,pending_deliveries,unfinished_targets";

    fn row(&self) -> String {
        let Self { at, api, worker, connections, workflows, renewals, messages, deliveries, targets } = self;
        format!(
            "{},{},{},{},{},{},{},{},{},{connections},{workflows},{renewals},{messages},{deliveries},{targets}",
            at.as_secs(),
            api.resident_kib,
            api.anonymous_kib,
            worker.resident_kib,
            worker.anonymous_kib,
            api.threads,
            worker.threads,
            api.descriptors,
            worker.descriptors,
        )
    }
}

/// Takes samples of a stack.
#[derive(Clone)]
struct Sampler {
    db: PgPool,
    /// Program and address of Temporal.
    temporal: (PathBuf, String),
    pids: (u32, u32),
    began: Instant,
}

impl Sampler {
    fn of(stack: &Stack) -> Self {
        Self {
            db: stack.world.db.clone(),
            temporal: stack.temporal_cli(),
            pids: (stack.pid("api").unwrap(), stack.pid("worker").unwrap()),
            began: Instant::now(),
        }
    }

    async fn sample(&self) -> Sample {
        let counts = "select (select count(*) from pg_stat_activity where application_name = 'fanfare'),
            (select count(*) from outbox),
            (select count(*) from deliveries where status in ('pending', 'delivering')),
            (select count(*) from targets t join posts p on p.id = t.post_id
             where t.status in ('pending', 'queued', 'failed') and p.status not in ('draft', 'scheduled'))";
        let (connections, messages, deliveries, targets) =
            sqlx::query_as(counts).fetch_one(&self.db).await.unwrap();
        Sample {
            at: self.began.elapsed(),
            api: Usage::of(self.pids.0),
            worker: Usage::of(self.pids.1),
            connections,
            workflows: self.count("WorkflowType != 'RenewGrant' and WorkflowType != 'CleanUpMedia'").await,
            renewals: self.count("WorkflowType = 'RenewGrant'").await,
            messages,
            deliveries,
            targets,
        }
    }

    /// Returns the number of open workflows.
    async fn count(&self, which: &str) -> u64 {
        let (program, address) = &self.temporal;
        let query = format!("ExecutionStatus = 'Running' and {which}");
        let args = ["workflow", "count", "--query", &query, "--address", address, "--output", "json"];
        let output = Command::new(program).args(args).env_clear().env("HOME", "/").output().await.unwrap();
        let counted: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        counted["count"]
            .as_str()
            .map_or_else(|| counted["count"].as_u64(), |count| count.parse().ok())
            .unwrap_or(0)
    }

    /// Takes samples until the end.
    fn run(self, every: Duration, mut end: watch::Receiver<bool>) -> JoinHandle<Vec<Sample>> {
        tokio::spawn(async move {
            let mut samples = Vec::new();
            while tokio::time::timeout(every, end.wait_for(|end| *end)).await.is_err() {
                samples.push(self.sample().await);
            }
            samples
        })
    }
}

/// The requests of a person and an integration, beside posting at a steady rate.
struct Visitor {
    caller: Caller,
    accounts: Vec<Account>,
    webhook: String,
    browser: Client,
    origin: String,
    cookie: String,
    posts: Vec<Post>,
    requests: usize,
}

impl Visitor {
    async fn new(stack: &Stack, caller: Caller, accounts: Vec<Account>, webhook: String) -> Self {
        let browser =
            Client::builder().redirect(Policy::none()).timeout(Duration::from_secs(10)).build().unwrap();
        let origin = stack.world.base.trim_end_matches("/api/v1").to_owned();
        let cookie = login::sign_in(&stack.world).await;
        Self { caller, accounts, webhook, browser, origin, cookie, posts: Vec::new(), requests: 0 }
    }

    /// Makes requests until the end, and returns itself with the posts that it created.
    async fn run(mut self, every: Duration, mut end: watch::Receiver<bool>) -> Self {
        for number in 0.. {
            match number % 6 {
                0 => self.edit(number).await,
                1 => self.delete(number).await,
                2 => self.retry(number).await,
                3 => self.list(number).await,
                4 => self.browse(number).await,
                _ => self.upload(number).await,
            }
            if tokio::time::timeout(every, end.wait_for(|end| *end)).await.is_ok() {
                break;
            }
        }
        self
    }

    async fn call(&mut self, method: Method, path: &str, body: Option<&Value>) -> (StatusCode, Value) {
        self.requests += 1;
        self.caller.call(method, path, None, body, self.requests).await
    }

    async fn create(&mut self, number: usize, kind: Kind) -> Post {
        self.requests += 1;
        load::create(&self.caller, "visit", number, kind, &self.accounts[..2]).await
    }

    /// Replaces the text of a scheduled post, which is then published.
    async fn edit(&mut self, number: usize) {
        let mut post = self.create(number, Kind::Later).await;
        let text = format!("visit {number}, edited");
        let edit = json!({ "content": text, "scheduled_at": now() });
        let (status, edited) = self.call(Method::PATCH, &format!("/posts/{}", post.id), Some(&edit)).await;
        assert_eq!(status, StatusCode::OK, "{edited}");
        post.texts = vec![text];
        self.posts.push(post);
    }

    /// Deletes a scheduled post, which is not published.
    async fn delete(&mut self, number: usize) {
        let post = self.create(number, Kind::Later).await;
        let (status, deleted) = self.call(Method::DELETE, &format!("/posts/{}", post.id), None).await;
        // 404 if an earlier call had deleted it, and its answer was lost.
        assert!([StatusCode::OK, StatusCode::NOT_FOUND].contains(&status), "{deleted}");
    }

    /// Requests a retry of a post that the platform refused.
    async fn retry(&mut self, number: usize) {
        let post = self.create(number, Kind::Throttled).await;
        for target in post.targets.keys() {
            let path = format!("/posts/{}/targets/{target}/retry", post.id);
            let (status, answer) = self.call(Method::POST, &path, None).await;
            // 409 unless it waits for its next attempt.
            assert!([StatusCode::ACCEPTED, StatusCode::CONFLICT].contains(&status), "{answer}");
        }
        self.posts.push(post);
    }

    async fn list(&mut self, number: usize) {
        let (_, first) = self.call(Method::GET, "/posts?limit=100", None).await;
        let cursor = first["next_cursor"].as_str().unwrap_or_default();
        let mut paths = vec![
            "/social-accounts".to_owned(),
            "/media?limit=50".to_owned(),
            "/account/usage".to_owned(),
            format!("/webhooks/{}/deliveries?limit=100", self.webhook),
        ];
        if !cursor.is_empty() {
            paths.push(format!("/posts?limit=100&cursor={cursor}"));
        }
        if let Some(post) = self.posts.get(number % self.posts.len().max(1)) {
            paths.push(format!("/posts/{}/timeline", post.id));
            paths.push(format!("/posts/{}/analytics", post.id));
        }
        for path in paths {
            let (status, answer) = self.call(Method::GET, &path, None).await;
            // Analytics of a post that is not published yet.
            assert!(status.is_success() || status == StatusCode::UNPROCESSABLE_ENTITY, "{path}: {answer}");
        }
    }

    async fn browse(&mut self, number: usize) {
        let post = self.posts.get(number % self.posts.len().max(1)).map(|post| format!("/posts/{}", post.id));
        for path in PAGES.map(str::to_owned).into_iter().chain(post) {
            self.requests += 1;
            let request = self.browser.get(format!("{}/dashboard{path}", self.origin));
            // A fault may be under way.
            if let Ok(page) = request.header(header::COOKIE, &self.cookie).send().await {
                let status = page.status();
                assert!(status.is_success() || status.is_server_error(), "{path}: {status}");
            }
        }
    }

    /// Uploads an image and deletes it.
    async fn upload(&mut self, number: usize) {
        self.requests += 3;
        let id = self.caller.upload(number).await;
        let (status, answer) = self.call(Method::DELETE, &format!("/media/{id}"), None).await;
        assert!([StatusCode::OK, StatusCode::NOT_FOUND].contains(&status), "{answer}");
    }
}

impl Fault {
    async fn begin(self, stack: &mut Stack, receiver: &Receiver, accounts: &[Account]) {
        match self {
            Self::WorkerKilled => stack.end("worker-2", Signal::SIGKILL).await,
            Self::WorkerStopped => stack.end("worker-2", Signal::SIGTERM).await,
            Self::ApiKilled => stack.end("api-2", Signal::SIGKILL).await,
            Self::ApiStopped => stack.end("api-2", Signal::SIGTERM).await,
            Self::Refused(pair) => stack.proxies[&pair].set(State::Refused),
            Self::Frozen(pair) => stack.proxies[&pair].set(State::Frozen),
            Self::Throttled => stack.world.set_sandbox(json!({ "refusals": { "/api.x.com/": 429 } })).await,
            // An expired token of Threads can't be refreshed.
            Self::TokensExpired => {
                for Account { platform, username, .. } in &accounts[..2] {
                    stack.world.expire_tokens(platform, username).await;
                }
            }
            Self::ReceiverFails => receiver.answer([500; 30]),
        }
    }

    async fn end(self, stack: &mut Stack, api: &Port) {
        match self {
            Self::WorkerKilled | Self::WorkerStopped => stack.launch("worker-2", "worker", &[]).await,
            Self::ApiKilled | Self::ApiStopped => stack.launch("api-2", "api", &[listen(api)]).await,
            Self::Refused(pair) | Self::Frozen(pair) => stack.proxies[&pair].set(State::Open),
            Self::Throttled => stack.world.set_sandbox(json!({ "refusals": {} })).await,
            Self::TokensExpired | Self::ReceiverFails => {}
        }
    }
}

fn listen(port: &Port) -> (&'static str, String) {
    ("FANFARE_LISTEN", port.address.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_accumulates_under_mixed_load_with_faults() {
    let mut section = proof::Section::new("8-soak", "Soak");
    let form = Form::of(proof::is_full());
    let mut stack = Stack::start("soak", &StackOptions { pace: form.pace, ..StackOptions::default() }).await;
    let api = Port::reserve();
    stack.launch("api-2", "api", &[listen(&api)]).await;
    stack.launch("worker-2", "worker", &[]).await;
    let accounts = load::connect(&stack).await;
    let receiver = Receiver::start().await;
    let webhook = stack.world.subscribe(&stack.receive_at(&receiver.url)).await;
    let webhook = webhook["id"].as_str().unwrap().to_owned();
    // Nobody listens there.
    let dead = Port::reserve();
    let events = ["post.error", "post.target.failed"];
    let body = json!({ "url": format!("http://{}/hook", dead.address), "events": events });
    let (status, failing) = stack.world.call(Method::POST, "/webhooks", Some(&body)).await;
    assert_eq!(status, StatusCode::CREATED, "{failing}");

    let bases = vec![stack.world.base.clone(), format!("http://{}/api/v1", api.address)];
    let caller = Caller::new(&stack, bases);
    let visitor = Visitor::new(&stack, caller.clone(), accounts.clone(), webhook).await;
    let sampler = Sampler::of(&stack);
    let (end, ended) = watch::channel(false);
    let (settle, settled) = watch::channel(false);
    let mut samples = vec![sampler.sample().await];
    let sampling = sampler.clone().run(form.sample_every, settled);
    let load = Load::start(&caller, "load", accounts.clone(), KINDS, form.every);
    let visiting = tokio::spawn(visitor.run(form.visit_every, ended));
    let began = Instant::now();
    let mut faults = 0;
    while began.elapsed() < form.length {
        let fault = FAULTS[faults % form.faults];
        load.begun(form.between).await;
        eprintln!("{} {fault:?}", now().format("%T"));
        fault.begin(&mut stack, &receiver, &accounts).await;
        load.begun(form.during).await;
        fault.end(&mut stack, &api).await;
        faults += 1;
    }
    end.send_replace(true);
    let visitor = visiting.await.unwrap();
    let mut posts = load.end().await;
    posts.extend(visitor.posts);
    eprintln!("{} {} posts; settling", now().format("%T"), posts.len());
    load::until_ended(&stack.world.db, &posts.iter().map(|post| post.id).collect::<Vec<_>>()).await;
    eprintln!("{} all posts have ended", now().format("%T"));
    if !proof::is_full() {
        // Its deliveries end when nobody has answered for a day, which is three minutes at this pace.
        let path = format!("/webhooks/{}", failing["id"].as_str().unwrap());
        assert_eq!(stack.world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
    }
    load::until_settled(&stack.world.db).await;
    eprintln!("{} all events are delivered", now().format("%T"));
    let last = wait_within(load::ENDS, "all workflows to end", async || {
        let sample = sampler.sample().await;
        if sample.workflows == 0 { Ok(sample) } else { Err(format!("{sample:?}")) }
    })
    .await;
    settle.send_replace(true);
    samples.extend(sampling.await.unwrap());
    samples.push(last);
    record(&samples);
    let outcome = load::check(&stack, &caller, &posts, &[], Some(&receiver)).await;

    let minutes: &[u64] = if proof::is_full() { &[0, 5, 10, 20, 30] } else { &[0] };
    let mut table = "| | API memory | Worker memory | API threads, descriptors | Worker threads, descriptors | Postgres connections | Open workflows | Outbox | Pending deliveries |\n|---|---|---|---|---|---|---|---|---|\n".to_owned();
    let at = |minute: &u64| {
        let found = samples.iter().find(|sample| sample.at.as_secs() >= minute * 60).unwrap();
        (format!("{minute} min"), *found)
    };
    for (name, sample) in minutes.iter().map(at).chain([("settled".to_owned(), last)]) {
        writeln!(
            table,
            "| {name} | {} MiB | {} MiB | {}, {} | {}, {} | {} | {} | {} | {} |",
            sample.api.resident_kib / 1024,
            sample.worker.resident_kib / 1024,
            sample.api.threads,
            sample.api.descriptors,
            sample.worker.threads,
            sample.worker.descriptors,
            sample.connections,
            sample.workflows,
            sample.messages,
            sample.deliveries,
        )
        .unwrap();
    }
    section.text(table);
    section.figure("Posts", outcome.posts);
    section.figure("Targets published", outcome.published);
    section.figure("Targets refused by the platform", outcome.dead.values().sum::<usize>());
    section.figure("Other requests", visitor.requests);
    section.figure("Faults", faults);
    section.figure("Events, of these delivered again", format!("{}, {}", outcome.events, outcome.repeated));
    section.figure("Requests that failed and were repeated", caller.repeated());
    let half = samples.iter().filter(|sample| sample.at < form.length / 2);
    let half: Vec<_> = half.copied().collect();
    let second = samples.iter().filter(|sample| sample.at >= form.length / 2 && sample.at < form.length);
    let second: Vec<_> = second.copied().collect();
    for (name, of) in
        [("API", (|sample| sample.api) as fn(&Sample) -> Usage), ("worker", |sample| sample.worker)]
    {
        let most = |samples: &[Sample], number: fn(&Usage) -> u64| {
            samples.iter().map(|sample| number(&of(sample))).max().unwrap()
        };
        for number in [|usage: &Usage| usage.threads, |usage: &Usage| usage.descriptors as u64] {
            assert!(number(&of(&last)) <= most(&half, number) + MAX_MORE, "{name}: {last:?}");
        }
        let memory = |sample: &Sample| of(sample).anonymous_kib;
        let grown = memory(second.last().unwrap()).saturating_sub(memory(&second[0]));
        section.figure(
            format!("Heap and stacks of the {name}, half-way and at the end of the load"),
            format!("{} MiB, {} MiB", memory(&second[0]) / 1024, memory(second.last().unwrap()) / 1024),
        );
        assert!(grown <= MAX_GROWTH_KIB, "{name}: {grown} KiB more in the second half");
    }
    assert!(last.connections <= MAX_CONNECTIONS, "{last:?}");
    assert_eq!(last.renewals, 3, "one per account");
    section.write();
    assert_eq!(*stack.exits.borrow(), 0, "a process exited by itself");
    stack.stop().await;
}

/// Keeps all samples.
fn record(samples: &[Sample]) {
    let mut file = format!("{}\n", Sample::HEADER);
    for sample in samples {
        writeln!(file, "{}", sample.row()).unwrap();
    }
    proof::keep("soak.csv", &file);
}
