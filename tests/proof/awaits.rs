//! Every await point of the publishing engine.
//!
//! The engine runs in this process, on a real Postgres, against a scripted platform. An attempt is dropped at
//! each of its await points in turn, as if its worker were killed there, and publishing goes on with a new
//! attempt; or it is held there until a second attempt, which takes it for dead, has run, or an operation of a user or an
//! operator. Time is virtual: a wait moves the timestamps in the rows into the past.

mod flows;
mod meetings;
mod operations;
mod platform;
mod results;
mod twins;
mod verdict;
mod waits;
mod world;

use domain::{
    Mode, Owner, TargetStatus, TimeScale,
    publish::{PollResult, PublishResult, SettleReason, SettleResult},
    retry,
};
use futures::future::{BoxFuture, join_all};
use media::{FileStore, Key, Location, SizeLimits};
use platform::{ADAPTER, Answer, READ_LAG, Script, Shape, WINDOW};
use platforms::Grant;
use publishing::{Apps, Engine, Error, RefreshError, RefusedGrant, Transports};
use sqlx::Row;
use std::{
    collections::BTreeMap,
    fmt::Debug,
    future::poll_fn,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};
use store::{
    Pool,
    accounts::{self, Connect},
    bounds::unbounded,
    people::{audit::Actor, organizations},
    posts::{self, Attachment, Container, Created, NewPost},
    publishing::TargetKey,
    upkeep::vault::{self, KeyId, Opener, PrivateKey, Sealer},
    webhooks::{self, NewWebhook},
};
use tests::{
    now,
    proof::{Section, is_full},
};
use tokio::sync::watch;
use uuid::Uuid;

/// Cases that run at a time, each on a database of its own.
const RUNNERS: usize = 4;
/// Await points that the short form advances by: the others are those of other cases, and of the full form.
const STRIDE: usize = 3;
/// Steps within which a target ends.
const STEPS: usize = 400;
/// The refresh lease of a killed worker ends after this time.
const LEASE: Duration = Duration::from_secs(240);

const SHAPES: [Shape; 5] = [Shape::Text, Shape::Image, Shape::Video, Shape::FirstComment, Shape::Thread];

/// Answers that are followed by [`Answer::Heard`].
const ANSWERS: [Answer; 11] = [
    Answer::Heard,
    Answer::Lost,
    Answer::Garbage,
    Answer::Late,
    Answer::Invisible,
    Answer::Processing,
    Answer::GivenUp,
    Answer::ServerError,
    Answer::Refused,
    Answer::Throttled,
    Answer::TokenRefused,
];

/// A post, the platform's answers, and the await points at which something happens.
#[derive(Clone, Debug)]
struct Case {
    shape: Shape,
    answers: Vec<Answer>,
    /// Await points at which the attempt is dropped, counted from the start or from the last drop.
    drops: Vec<usize>,
    /// A second worker's turn.
    overlap: Option<Overlap>,
    /// True if the workflow settles the target after a dropped attempt, as when that was not answered in time.
    is_settled: bool,
}

/// A second worker takes the target up while the first is held.
#[derive(Clone, Copy, Debug)]
struct Overlap {
    /// Await point at which the first is held.
    point: usize,
    /// True if the second worker looks at the platform, for a workflow that has gone on; else it makes an attempt
    /// for the workflow, which has given up the first.
    is_look: bool,
}

/// Names its case when it panics.
struct Named<'a, C: Debug>(&'a C);

impl<C: Debug> Drop for Named<'_, C> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in {:?}", self.0);
        }
    }
}

/// Result of a case.
struct Outcome {
    /// False when the target ended before the last await point of the case was reached.
    was_reached: bool,
    status: TargetStatus,
    error_code: Option<String>,
    /// Publishing calls.
    commits: u32,
    /// Virtual time until the target ended.
    took: Duration,
}

/// An engine with a database of its own.
struct Runner {
    engine: Arc<Engine>,
    db: Pool,
    owner: Owner,
    /// Tells the engine that its worker stops.
    stop: watch::Sender<bool>,
}

impl Runner {
    async fn start(number: usize) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = tests::database_url(&crate::PROGRAM).await;
        let db = store::connect(&url, 6).await.unwrap();
        let org = organizations::create(&db, "Proof").await.unwrap();
        let owner = Owner { org, mode: Mode::Live };
        let everything = NewWebhook {
            url: "https://8.8.8.8/".to_owned(),
            events: vec!["*".to_owned()],
            description: None,
        };
        let created = webhooks::create(&db, owner, everything, |_| vec![1], None, &Actor::OPERATOR, now());
        assert!(created.await.unwrap().is_ok());
        let opener = Opener::new((KeyId(1), PrivateKey::generate()), []);
        let stop = watch::Sender::new(false);
        let files = Location::Directory(tests::directory().join(format!("awaits-{number}")));
        let engine = Engine {
            db: db.clone(),
            sealer: opener.sealer(),
            opener,
            adapters: |_| Some(&ADAPTER),
            transports: Transports::new(None, domain::ip_ranges::AllowedRanges::default()).unwrap(),
            apps: Apps::default(),
            media: FileStore::open(&files, Key::derive(&[0; 32]), None, SizeLimits::default()).unwrap(),
            now,
            jitter: || 0.5,
            time_scale: TimeScale::CONTRACT,
            stop: stop.subscribe(),
        };
        Self { engine: Arc::new(engine), db, owner, stop }
    }

    /// Creates a post to a new account, and returns its target and the account's platform id.
    async fn create(&self, shape: Shape) -> (TargetKey, String) {
        let (id, account) = self.connect().await;
        (self.create_for(id, shape).await, account)
    }

    /// Connects a new account, and returns its id and its platform id.
    async fn connect(&self) -> (domain::AccountId, String) {
        let account = Uuid::now_v7().to_string();
        (self.connect_for(self.owner, &account).await, account)
    }

    /// Connects an account of the platform for an owner.
    async fn connect_for(&self, owner: Owner, account: &str) -> domain::AccountId {
        let seal = |id| seal_grant(&self.engine.sealer, owner, id);
        let mut tx = store::begin(&self.db).await.unwrap();
        let connected = accounts::upsert(&mut tx, owner, connection(account, None), seal, now()).await;
        tx.commit().await.unwrap();
        connected.unwrap().account.id
    }

    /// Creates a post to an account.
    async fn create_for(&self, account: domain::AccountId, shape: Shape) -> TargetKey {
        let media = match shape {
            Shape::Image => vec![self.medium("image").await],
            Shape::Video => vec![self.medium("video").await],
            Shape::Text | Shape::FirstComment | Shape::Thread | Shape::Stalled => Vec::new(),
        };
        let container = |position: u16| {
            let media = if position == 0 { media.clone() } else { Vec::new() };
            let text = match shape {
                Shape::Stalled => platform::STALLED.to_owned(),
                _ => format!("container {position}"),
            };
            Container::new(position, text, media)
        };
        let new = new_post(account, (0..shape.containers()).map(container).collect());
        create(&self.db, self.owner, new).await
    }

    async fn medium(&self, kind: &str) -> Attachment {
        let id = Uuid::now_v7();
        sqlx::query(
            "insert into media (id, org_id, mode, status, kind, filename, content_type, size, sha256, width, height,
               duration_ms, upload_expires_at, metadata)
             values ($1, $2, 'live', 'ready', $3, 'a', 'image/png', 1, 'x', 1, 1, 1000, now(), 'bare')",
        )
        .bind(id)
        .bind(self.owner.org.0)
        .bind(kind)
        .execute(&self.db)
        .await
        .unwrap();
        Attachment { id, alt_text: None }
    }

    /// Moves the timestamps of a target's account and of all its targets into the past, as if time had passed.
    async fn advance(&self, key: TargetKey, script: &Mutex<Script>, by: Duration) {
        for statement in [
            "update targets set next_attempt_at = next_attempt_at - $2, processing_since = processing_since - $2,
               throttled_since = throttled_since - $2, wait_since = wait_since - $2, wait_until = wait_until - $2,
               look_at = look_at - $2, updated_at = updated_at - $2, unpublish_until = unpublish_until - $2,
               edit_until = edit_until - $2
             where account_id = (select account_id from targets where id = $1)",
            "update publications set commit_begun_at = commit_begun_at - $2, commit_deadline = commit_deadline - $2,
               commit_ended_at = commit_ended_at - $2, doubted_since = doubted_since - $2
             where target_id in (
               select id from targets where account_id = (select account_id from targets where id = $1))",
            "update app_holds set until = until - $2 where $1::uuid is not null",
            "update accounts set refresh_leased_until = refresh_leased_until - $2, rests_until = rests_until - $2
             where id = (select account_id from targets where id = $1)",
        ] {
            let by = sqlx::postgres::types::PgInterval {
                microseconds: i64::try_from(by.as_micros()).unwrap(),
                ..Default::default()
            };
            sqlx::query(statement).bind(key.target.0).bind(by).execute(&self.db).await.unwrap();
        }
        script.lock().unwrap().advance(by);
    }

    /// Returns when no statement of a dropped attempt runs any more.
    async fn is_idle(&self) {
        let active = "select count(*) from pg_stat_activity
                      where datname = current_database() and state = 'active' and pid <> pg_backend_pid()";
        while sqlx::query_scalar::<_, i64>(active).fetch_one(&self.db).await.unwrap() > 0 {}
    }

    /// Publishes one post, and checks that nothing was lost or published twice.
    async fn run(&self, case: &Case) -> Outcome {
        let _named = Named(case);
        let (key, account) = self.create(case.shape).await;
        let script = platform::register(&account, Script::new(case.shape, &case.answers));
        let mut driver = Driver { runner: self, key, points: 0, drops: case.drops.clone() };
        let mut overlap = case.overlap;
        let mut next = Next::Attempt;
        let mut ended = None;
        for _ in 0..STEPS {
            let step = match overlap {
                Some(_) => driver.overlapped(next, &mut overlap).await,
                None => driver.step(next).await,
            };
            match step {
                Some(Step::Ended(status)) => {
                    ended = Some(status);
                    break;
                }
                Some(Step::Next(step, pause)) => {
                    self.advance(key, &script, pause).await;
                    next = step;
                }
                // The worker is gone. The next attempt comes at once, or after the dead worker's lease.
                None => {
                    if let Next::Refresh(_) = next {
                        self.is_idle().await;
                        self.advance(key, &script, LEASE).await;
                    }
                    next = if case.is_settled { Next::Settle } else { Next::Attempt };
                }
            }
        }
        let status = ended.unwrap_or_else(|| panic!("{case:?} did not end"));
        let was_reached = driver.drops.is_empty() && overlap.is_none();
        // Calls that are on their way arrive.
        self.advance(key, &script, Duration::from_secs(3600)).await;
        let outcome = self.verify(case, key, status, was_reached, &script).await;
        platform::unregister(&account);
        outcome
    }

    async fn verify(
        &self,
        case: &Case,
        key: TargetKey,
        ended: TargetStatus,
        was_reached: bool,
        script: &Mutex<Script>,
    ) -> Outcome {
        let row = sqlx::query(
            "select t.status, t.error_code, t.error_message, t.attempts - t.free_attempts as attempts, t.next_attempt_at is null as is_over,
               p.status as post_status,
               (select array_agg(e.event order by e.event) from events e
                where e.post_id = p.id and e.event <> 'post.target.incomplete') as events,
               -- Missing parts are told at once, or when they are given up.
               (select count(*) from events e where e.post_id = p.id and (e.event = 'post.target.incomplete'
                  or e.event = 'post.target.published' and e.body::jsonb -> 'data' ? 'missing')) as times_told
             from targets t join posts p on p.id = t.post_id where t.id = $1",
        )
        .bind(key.target.0)
        .fetch_one(&self.db)
        .await
        .unwrap();
        let (code, message): (Option<String>, Option<String>) =
            (row.get("error_code"), row.get("error_message"));
        let (status, post_status): (String, String) = (row.get("status"), row.get("post_status"));
        let attempts = u32::try_from(row.get::<i32, _>("attempts")).unwrap();
        let script = script.lock().unwrap();
        let counts: Vec<_> = (0..case.shape.containers()).map(|position| script.count(position)).collect();
        let report =
            format!("{case:?}: {status} {code:?} {message:?}, published {counts:?}, {attempts} attempts");
        assert_eq!(status, ended.to_string(), "{report}");
        assert!(counts.iter().all(|count| *count <= 1), "published twice: {report}");
        assert!(row.get::<bool, _>("is_over"), "an ended target has a next attempt: {report}");
        let events: Vec<String> = row.get::<Option<_>, _>("events").unwrap_or_default();
        match ended {
            TargetStatus::Published => {
                assert_eq!(counts[0], 1, "lost: {report}");
                // A missing reply is named, and one that may be live.
                let is_complete = counts.iter().all(|count| *count == 1);
                let is_doubtful =
                    message.as_deref().is_some_and(|message| message.contains("it may be live"));
                assert!(if code.is_none() { is_complete } else { !is_complete || is_doubtful }, "{report}");
                assert_eq!(post_status, "published", "{report}");
                assert_eq!(events, ["post.published", "post.target.published"], "{report}");
                assert_eq!(row.get::<i64, _>("times_told"), i64::from(code.is_some()), "{report}");
            }
            TargetStatus::Dead => {
                let message = message.as_deref().unwrap_or_default();
                assert!(code.is_some() && !message.is_empty(), "no reason: {report}");
                assert!(counts[0] == 0 || message.contains("it may be live"), "not honest: {report}");
                assert_eq!(post_status, "failed", "{report}");
                assert_eq!(events, ["post.error", "post.target.failed"], "{report}");
            }
            other => panic!("{other}: {report}"),
        }
        let extra = 3;
        assert!(attempts <= retry::ATTEMPTS + extra, "budget: {report}");
        Outcome { was_reached, status: ended, error_code: code, commits: script.commits, took: script.now() }
    }
}

/// Returns an account of the platform, as a login connects it for an end tenant.
fn connection(account: &str, tenant: Option<&str>) -> Connect {
    Connect {
        platform: "scripted".to_owned(),
        profile: domain::AccountProfile {
            network_unique_id: account.to_owned(),
            username: account.to_owned(),
            display_name: "Ada".to_owned(),
            account_type: "profile".to_owned(),
            profile_image_url: None,
            profile_url: None,
        },
        tenant_id: tenant.map(str::to_owned),
        social_network_id: None,
        scopes: Vec::new(),
        token_expires_at: None,
        grant_expires_at: None,
    }
}

/// Returns an account's grant, sealed.
fn seal_grant(sealer: &Sealer, owner: Owner, account: domain::AccountId) -> Vec<u8> {
    let grant = Grant {
        access_token: "token".to_owned(),
        refresh_token: Some("refresh".to_owned()),
        expires_at: None,
        ends_at: None,
        scopes: Vec::new(),
        extra: serde_json::Value::Null,
    };
    sealer.seal(&serde_json::to_vec(&grant).unwrap(), &vault::aad_grant(owner, account))
}

/// Returns a post to an account, to be published at once.
fn new_post(account: domain::AccountId, containers: Vec<Container>) -> NewPost {
    NewPost {
        is_draft: false,
        reply_to: None,
        scheduled_at: None,
        default_config: serde_json::json!({}),
        external_ref: None,
        metadata: posts::Metadata::default(),
        containers,
        accounts: vec![(account, "scripted".to_owned())],
        deviations: posts::Deviations::default(),
        imports: Vec::new(),
        request_id: None,
        horizon: Duration::ZERO,
    }
}

/// Creates a post, and returns its target.
async fn create(db: &Pool, owner: Owner, new: NewPost) -> TargetKey {
    let Created::New(post) = posts::create(db, unbounded(owner), new, now()).await.unwrap() else {
        panic!("a new post is new");
    };
    TargetKey { owner, post: post.id, target: post.targets[0].id, version: post.version }
}

/// The next step, as the workflow decides it.
#[derive(Clone, Copy, Debug)]
enum Next {
    Attempt,
    Look,
    Refresh(i64),
    Settle,
}

/// Result of a step.
#[derive(Debug)]
enum Step {
    Ended(TargetStatus),
    Next(Next, Duration),
}

/// Result of a step that an operation may have disturbed.
#[derive(Debug)]
enum Made {
    Step(Step),
    /// The post was edited before its first attempt.
    Stale,
    /// The account has no grant any more, for this reason.
    Lost(String),
}

impl Made {
    /// Returns the result of a step that nothing disturbs.
    fn undisturbed(self) -> Step {
        match self {
            Self::Step(step) => step,
            Self::Stale => panic!("nobody edits the post"),
            Self::Lost(message) => panic!("{message}"),
        }
    }
}

struct Driver<'a> {
    runner: &'a Runner,
    key: TargetKey,
    /// Await points passed since the start or the last drop.
    points: usize,
    drops: Vec<usize>,
}

impl Driver<'_> {
    /// Makes a step; `None` when it was dropped.
    async fn step(&mut self, next: Next) -> Option<Step> {
        let mut step = make(self.runner.engine.clone(), self.key, next);
        let (points, drops) = (&mut self.points, &mut self.drops);
        let done = poll_fn(|cx| match step.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done.undisturbed())),
            Poll::Pending if drops.first() == Some(points) => {
                drops.remove(0);
                *points = 0;
                Poll::Ready(None)
            }
            Poll::Pending => {
                *points += 1;
                Poll::Pending
            }
        });
        done.await
    }

    /// Makes a step that is held at an await point until another worker's turn is over, or waits for its lock.
    /// Returns the result of the one that the workflow waits for.
    async fn overlapped(&mut self, next: Next, overlap: &mut Option<Overlap>) -> Option<Step> {
        let Overlap { point, is_look } = (*overlap)?;
        let mut first = make(self.runner.engine.clone(), self.key, next);
        let points = &mut self.points;
        let done = poll_fn(|cx| match first.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if *points == point => Poll::Ready(None),
            Poll::Pending => {
                *points += 1;
                Poll::Pending
            }
        });
        if let Some(done) = done.await {
            return Some(done.undisturbed());
        }
        *overlap = None;
        let turn = if is_look { Next::Look } else { Next::Attempt };
        let mut second = make(self.runner.engine.clone(), self.key, turn);
        let (first, second) = tokio::select! {
            second = second.as_mut() => (first.await, second),
            // The first one has the lock.
            () = waits_for_lock(&self.runner.db) => futures::join!(first, second),
        };
        let made = if is_look { first } else { second };
        Some(made.undisturbed())
    }
}

fn make(engine: Arc<Engine>, key: TargetKey, next: Next) -> BoxFuture<'static, Made> {
    Box::pin(async move {
        Made::Step(match next {
            Next::Attempt => match engine.attempt(key).await {
                Ok(PublishResult::Ended { status }) => Step::Ended(status),
                Ok(PublishResult::Wait { pause, .. }) => Step::Next(Next::Attempt, pause),
                Ok(PublishResult::Processing { pause }) => Step::Next(Next::Look, pause),
                Ok(PublishResult::TokenRefused { grant_version }) => {
                    Step::Next(Next::Refresh(grant_version), Duration::ZERO)
                }
                Ok(PublishResult::Stale) => return Made::Stale,
                Err(Error::Failed { pause, .. } | Error::Repeat { pause, .. }) => {
                    Step::Next(Next::Attempt, pause)
                }
                Err(Error::Fault(error)) => panic!("{error:#}"),
            },
            Next::Look => match engine.look(key).await {
                Ok(PollResult::Ready) => Step::Next(Next::Attempt, Duration::ZERO),
                Ok(PollResult::Ended { status }) => Step::Ended(status),
                Ok(PollResult::TokenRefused { grant_version }) => {
                    Step::Next(Next::Refresh(grant_version), Duration::ZERO)
                }
                Err(Error::Failed { pause, .. } | Error::Repeat { pause, .. }) => {
                    Step::Next(Next::Look, pause)
                }
                Err(Error::Fault(error)) => panic!("{error:#}"),
            },
            Next::Refresh(version) => {
                let account = store_account(&engine.db, key).await;
                let refused = RefusedGrant { owner: key.owner, account, version, target: Some(key) };
                match engine.refresh(refused).await {
                    Ok(()) => Step::Next(Next::Attempt, Duration::ZERO),
                    // The lease of an attempt that was dropped may arrive after that.
                    Err(RefreshError::Later(_)) => Step::Next(next, LEASE),
                    Err(RefreshError::Lost(failure)) => return Made::Lost(failure.to_string()),
                    Err(RefreshError::Fault(error)) => panic!("{error:#}"),
                }
            }
            Next::Settle => {
                let reason = SettleReason::Unanswered { message: "no heartbeat".to_owned() };
                settle(&engine, key, &reason).await
            }
        })
    })
}

/// Settles a target for its workflow, which has no result of an attempt.
async fn settle(engine: &Engine, key: TargetKey, reason: &SettleReason) -> Step {
    match engine.settle(key, reason).await.unwrap() {
        SettleResult::Ended { status } => Step::Ended(status),
        SettleResult::RetryAfter { pause } => Step::Next(Next::Attempt, pause),
    }
}

async fn store_account(db: &Pool, key: TargetKey) -> domain::AccountId {
    let id: Uuid = sqlx::query_scalar("select account_id from targets where id = $1")
        .bind(key.target.0)
        .fetch_one(db)
        .await
        .unwrap();
    domain::AccountId(id)
}

/// Returns when a connection of the database waits for a lock.
async fn waits_for_lock(db: &Pool) {
    let waiting = "select count(*) from pg_stat_activity
                   where datname = current_database() and wait_event_type = 'Lock'";
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(db).await.unwrap() == 0 {}
}

/// Results of the cases.
#[derive(Default)]
struct Tally {
    cases: AtomicUsize,
    ended: Mutex<BTreeMap<String, usize>>,
    points: Mutex<BTreeMap<Shape, usize>>,
}

impl Tally {
    fn count(&self, case: &Case, outcome: &Outcome) {
        self.cases.fetch_add(1, Ordering::Relaxed);
        let ended = match (&outcome.status, &outcome.error_code) {
            (TargetStatus::Published, Some(_)) => "published, a reply is missing".to_owned(),
            (status, _) => status.to_string(),
        };
        *self.ended.lock().unwrap().entry(ended).or_default() += 1;
        if let Some(point) = case.drops.first() {
            let mut points = self.points.lock().unwrap();
            let most = points.entry(case.shape).or_default();
            *most = (*most).max(point + 1);
        }
    }
}

/// Runs the cases of every shape and answers; `run` runs those of one.
async fn each<F: AsyncFn(&Runner, Shape, Vec<Answer>)>(jobs: Vec<(Shape, Vec<Answer>)>, run: F) {
    let jobs = Mutex::new(jobs);
    join_all((0..RUNNERS).map(async |number| {
        let runner = Runner::start(number).await;
        loop {
            let job = jobs.lock().unwrap().pop();
            let Some((shape, answers)) = job else { break };
            run(&runner, shape, answers).await;
        }
    }))
    .await;
}

/// Returns await points: all in full, every third one in short, beginning with another one for another number.
fn points(number: usize) -> impl Iterator<Item = usize> {
    let (first, stride) = if is_full() { (0, 1) } else { (number % STRIDE, STRIDE) };
    (first..).step_by(stride)
}

fn jobs(answers: &[Answer]) -> Vec<(Shape, Vec<Answer>)> {
    SHAPES.iter().flat_map(|shape| answers.iter().map(|answer| (*shape, vec![*answer]))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_may_be_dropped_at_every_await_point() {
    let mut section = Section::new("2-awaits", "Every await point");
    section.text(
        "The engine in process, on a real Postgres, with a scripted platform. The attempt is dropped at every \
         await point in turn, for every kind of post and of answer; then at every pair of two, for every kind of \
         post with a lost answer and for a text with every answer; or it is held at each while a second attempt, or a \
         look at a platform that is processing, runs; or the workflow settles the target after a dropped one, \
         which may allow another attempt. Each target ends with one publication for each container and its events \
         once, or dead with a reason that says whether it may be live. Waits take no time.",
    );
    let [undisturbed, singles, pairs, overlaps, looks, settled] = [(); 6].map(|()| Tally::default());
    // The first call gets each answer in turn, then the reply's.
    let mut disturbed = jobs(&ANSWERS);
    let replied: &[Shape] =
        if is_full() { &[Shape::FirstComment, Shape::Thread] } else { &[Shape::FirstComment] };
    for shape in replied {
        disturbed.extend(ANSWERS.map(|answer| (*shape, vec![Answer::Heard, answer])));
    }
    each(disturbed, async |runner, shape, answers| {
        let points = || points(shape as usize + answers.iter().map(|answer| *answer as usize).sum::<usize>());
        let case =
            Case { shape, answers: answers.clone(), drops: Vec::new(), overlap: None, is_settled: false };
        undisturbed.count(&case, &runner.run(&case).await);
        for point in points() {
            let single = Case { drops: vec![point], ..case.clone() };
            let outcome = runner.run(&single).await;
            if !outcome.was_reached {
                break;
            }
            singles.count(&single, &outcome);
            // After these answers a settled target is live, though the engine may not know it.
            if is_full() || matches!(single.answers[..], [Answer::Heard | Answer::Lost]) {
                let last = Case { is_settled: true, ..single };
                settled.count(&last, &runner.run(&last).await);
            }
        }
        // A look is due where the platform processes. A late one may find a reply that was given up.
        let is_processing = shape == Shape::Video
            || case.answers.iter().any(|answer| matches!(answer, Answer::Processing | Answer::GivenUp))
            || case.answers == [Answer::Heard, Answer::Refused];
        for (is_look, tally) in [(false, &overlaps), (true, &looks)] {
            if is_look && !is_processing && !is_full() {
                continue;
            }
            for point in points() {
                let overlap = Case { overlap: Some(Overlap { point, is_look }), ..case.clone() };
                let outcome = runner.run(&overlap).await;
                if !outcome.was_reached {
                    break;
                }
                tally.count(&overlap, &outcome);
            }
        }
    })
    .await;
    // A post of each shape whose answer is lost, and a text with each answer; in short only where both meet.
    let paired = jobs(&ANSWERS).into_iter().filter(|(shape, answers)| {
        let (is_text, is_lost) = (*shape == Shape::Text, answers[..] == [Answer::Lost]);
        is_text && is_lost || is_full() && (is_text || is_lost)
    });
    let paired = paired.collect();
    each(paired, async |runner, shape, answers| {
        for first in points(0) {
            let mut was_reached = false;
            for second in points(first) {
                let case = Case {
                    shape,
                    answers: answers.clone(),
                    drops: vec![first, second],
                    overlap: None,
                    is_settled: false,
                };
                let outcome = runner.run(&case).await;
                if !outcome.was_reached {
                    break;
                }
                was_reached = true;
                pairs.count(&case, &outcome);
            }
            if !was_reached {
                break;
            }
        }
    })
    .await;
    let points = singles.points.lock().unwrap().clone();
    for (name, tally) in [
        ("nothing dropped", undisturbed),
        ("one attempt dropped", singles),
        ("two attempts dropped", pairs),
        ("two attempts at once", overlaps),
        ("an attempt and a look at once", looks),
        ("settled after a dropped attempt", settled),
    ] {
        let ended = tally.ended.into_inner().unwrap();
        let ended: Vec<_> = ended.iter().map(|(ended, count)| format!("{count} {ended}")).collect();
        section
            .figure(format!("Cases, {name}"), format!("{}: {}", tally.cases.into_inner(), ended.join(", ")));
    }
    for (shape, points) in points {
        section.figure(format!("Await points, {shape:?}, at most"), points);
    }
    section.write();
}

/// Every attempt is answered with a server error, or accepted and given up, and one of them is dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_budget_is_kept_wherever_an_attempt_is_dropped() {
    let cases = [Answer::ServerErrors, Answer::GivenUpEachTime];
    let cases = cases.iter().flat_map(|answer| SHAPES.map(|shape| (shape, vec![*answer]))).collect();
    each(cases, async |runner, shape, answers| {
        let case = Case { shape, answers, drops: Vec::new(), overlap: None, is_settled: false };
        let outcome = runner.run(&case).await;
        assert_eq!((outcome.status, outcome.commits), (TargetStatus::Dead, retry::ATTEMPTS), "{case:?}");
        for point in 0.. {
            let case = Case { drops: vec![point], ..case.clone() };
            let outcome = runner.run(&case).await;
            assert_eq!(outcome.status, TargetStatus::Dead, "{case:?}");
            assert!(outcome.commits <= retry::ATTEMPTS, "{case:?}: {} calls", outcome.commits);
            if !outcome.was_reached || !is_full() && point > 60 {
                break;
            }
        }
    })
    .await;
}

/// The platform throttles for longer than ten attempts take, which costs none of them; or for good.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_throttled_attempt_costs_nothing_for_a_day_wherever_one_is_dropped() {
    let throttled = vec![Answer::Throttled; 20];
    let shapes = SHAPES.iter().map(|shape| (*shape, vec![Answer::ThrottledForever])).collect();
    each(shapes, async |runner, shape, answers| {
        for point in 0.. {
            let drops = vec![point];
            let case = Case { shape, answers: throttled.clone(), drops, overlap: None, is_settled: false };
            let outcome = runner.run(&case).await;
            assert_eq!(outcome.status, TargetStatus::Published, "{case:?}");
            if !outcome.was_reached || !is_full() && point > 20 {
                break;
            }
        }
        let case = Case { shape, answers, drops: Vec::new(), overlap: None, is_settled: false };
        let outcome = runner.run(&case).await;
        assert_eq!(outcome.status, TargetStatus::Dead, "{case:?}");
        assert_eq!(outcome.error_code.as_deref(), Some("rate_limited"), "{case:?}");
        let took = outcome.took - Duration::from_secs(3600);
        assert!(took >= retry::THROTTLED_FREE && took <= retry::THROTTLED_FREE * 2, "{case:?} took {took:?}");
    })
    .await;
}

/// The worker or the database stalled between the intent and the call, for longer than the call may take.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_time_is_over_is_not_made() {
    each(vec![(Shape::Stalled, vec![Answer::Heard])], async |runner, shape, answers| {
        let case = Case { shape, answers, drops: Vec::new(), overlap: None, is_settled: false };
        let outcome = runner.run(&case).await;
        assert_eq!((outcome.status, outcome.commits), (TargetStatus::Dead, 0));
    })
    .await;
}

/// The platform never finishes processing, and one look is dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_window_is_kept_wherever_a_look_is_dropped() {
    let shapes = SHAPES.iter().map(|shape| (*shape, vec![Answer::ProcessingForever])).collect();
    each(shapes, async |runner, shape, answers| {
        let case = Case { shape, answers, drops: Vec::new(), overlap: None, is_settled: false };
        let longest = WINDOW + READ_LAG + LEASE;
        for point in 0.. {
            let case = Case { drops: vec![point], ..case.clone() };
            let outcome = runner.run(&case).await;
            assert_eq!(outcome.error_code.as_deref(), Some("poll_timeout"), "{case:?}");
            let took = outcome.took - Duration::from_secs(3600);
            assert!(took >= WINDOW && took <= longest, "{case:?} took {took:?}");
            if !outcome.was_reached || !is_full() && point > 60 {
                break;
            }
        }
    })
    .await;
}
