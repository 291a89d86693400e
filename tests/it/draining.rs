//! One workflow per endpoint sends its deliveries: order, cost, dead endpoints and replays.

use crate::{
    api::{fail, key, request},
    database,
    replay::{client, history},
    webhooks::{append, append_in, at, deliveries},
    world,
};
use chrono::TimeDelta;
use domain::{Mode, Owner, WebhookId, outbox::Message, retry, scope::Scope};
use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    ops::Range,
    time::{Duration, Instant},
};
use store::{
    Pool, outbox,
    people::{audit::Actor, organizations},
    publishing::sweep::{self, Timing},
    webhooks::{
        self, NewWebhook,
        deliveries::Response,
        drain::{self, Claim, Health, KEPT_BACKLOG, PART, Report, Reported, Sleep, TOLD_AFTER},
    },
};
use tests::{Delivery, Receiver, if_right, now, wait_until};

const LEASE: Duration = Duration::from_secs(60);

/// Makes the endpoints that fail have failed for longer than a delivery is attempted.
const LONG_FAILING: &str =
    "update webhooks set failing_since = now() - interval '3 hours' where failing_since is not null";

/// Returns the numbers of received events, each once, in the order of their first arrival.
fn numbers(all: &[Delivery]) -> Vec<u64> {
    let mut seen = HashSet::new();
    let numbers = all.iter().filter_map(|delivery| delivery.json()["data"]["number"].as_u64());
    numbers.filter(|number| seen.insert(*number)).collect()
}

/// Asserts that all events up to a number were sent in the order of their creation, twenty at a time: when one arrives,
/// at most 19 earlier ones have not arrived. A slow one may arrive after any number of later ones.
fn assert_in_order(all: &[Delivery], count: usize) {
    let numbers = numbers(all);
    assert_eq!(numbers.len(), count);
    for (place, number) in numbers.iter().enumerate() {
        assert!(usize::try_from(*number).unwrap() < place + 20, "{number} arrived at place {place}");
    }
}

/// Returns the history of an endpoint's workflow; none before it has started.
async fn history_events(webhook: &Value) -> Vec<Value> {
    let workflow = format!("endpoint-{}", webhook["id"].as_str().unwrap());
    let history: Value = serde_json::from_str(&history(&client().await, &workflow).await).unwrap_or_default();
    history["events"].as_array().cloned().unwrap_or_default()
}

/// Returns for how long an endpoint's workflow sleeps, in seconds; 0 while it works.
async fn sleeps(webhook: &Value) -> f64 {
    let events = history_events(webhook).await;
    let timer = &events.last().unwrap_or(&Value::Null)["attributes"]["TimerStartedEventAttributes"]["start_to_fire_timeout"];
    timer.as_str().and_then(|timer| timer.strip_suffix('s')?.parse().ok()).unwrap_or_default()
}

/// Returns the number of events in the histories of an endpoint's workflow, and of its runs.
async fn cost(webhook: &Value) -> (usize, usize) {
    let client = client().await;
    let workflow = format!("endpoint-{}", webhook["id"].as_str().unwrap());
    let runs =
        client.count_workflows(format!("WorkflowId = '{workflow}'"), Default::default()).await.unwrap();
    let events = history(&client, &workflow).await.matches("\"event_id\":").count();
    assert!(events > 0, "no history of {workflow}");
    (events, runs.count())
}

#[tokio::test]
async fn a_busy_endpoint_takes_one_workflow_and_receives_events_in_order() {
    const EVENTS: usize = 600;
    let world = world().pace(1.0).start().await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    for first in (0..EVENTS).step_by(20) {
        append(&world, first..first + 20).await;
    }
    let all = receiver.until("every event", |all| all.len() >= EVENTS).await;
    assert_eq!(all.len(), EVENTS, "each is sent once");
    assert_in_order(&all, EVENTS);
    let (events, runs) = cost(&webhook).await;
    assert!(events < 60 && runs <= 2, "{events} history events in the last of {runs} runs");
    deliveries(&world, &webhook, |all| all.iter().all(|one| one["status"] == "delivered")).await;
}

#[tokio::test]
async fn a_burst_of_failures_delays_only_what_failed() {
    const EVENTS: i64 = 150;
    const REFUSED: i64 = 14;
    let world = world().pace(1.0).start().await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    receiver.answer([503; REFUSED as usize]);
    append(&world, 0..EVENTS as usize).await;
    let query = "select count(*) filter (where status = 'delivered'),
         count(*) filter (where status = 'pending' and attempts = 1 and extract(epoch from
           next_attempt_at - (answers -> -1 ->> 'at')::timestamptz) between 55 and 65)
         from deliveries where webhook_id = $1::uuid";
    wait_until("all but those of the burst to be delivered, and those to wait a minute", async || {
        let id = webhook["id"].as_str().unwrap();
        let counts: (i64, i64) = sqlx::query_as(query).bind(id).fetch_one(&world.db).await.unwrap();
        if_right(json!(counts), |counts| *counts == json!([EVENTS - REFUSED, REFUSED]))
    })
    .await;
    let path = format!("{}/deliveries", at(&webhook));
    for waiting in world.get(&format!("{path}?status=pending")).await["data"].as_array().unwrap() {
        let path = format!("{path}/{}/redeliver", waiting["id"].as_str().unwrap());
        assert_eq!(world.call(Method::POST, &path, None).await.0, StatusCode::ACCEPTED);
    }
    receiver.until("every event", |all| numbers(all).len() == EVENTS as usize).await;
    world.until_at(&format!("{path}?status=pending"), "the end", |list| list["data"] == json!([])).await;
}

#[tokio::test]
async fn each_of_many_deliveries_that_fail_has_its_eight_attempts() {
    const EVENTS: i64 = 40;
    const PACE: f64 = 0.001;
    let world = world().pace(PACE).start().await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    receiver.answer(vec![500; 10_000]);
    append(&world, 0..EVENTS as usize).await;
    let query =
        "select count(*) from deliveries where webhook_id = $1::uuid and status = 'failed' and attempts = 8";
    let id = webhook["id"].as_str().unwrap();
    wait_until("all to fail after eight attempts", async || {
        let failed: i64 = sqlx::query_scalar(query).bind(id).fetch_one(&world.db).await.unwrap();
        if_right(failed, |failed| *failed == EVENTS)
    })
    .await;
    assert_eq!(receiver.all().len() as i64, 8 * EVENTS);
    let answers = "select array(select extract(epoch from (answer ->> 'at')::timestamptz)::float8
           from jsonb_array_elements(answers) answer)
         from deliveries where webhook_id = $1::uuid";
    let answers: Vec<Vec<f64>> = sqlx::query_scalar(answers).bind(id).fetch_all(&world.db).await.unwrap();
    for times in answers {
        for (attempt, pair) in (1..).zip(times.windows(2)) {
            let wait = retry::delivery_backoff(attempt).unwrap().as_secs_f64() * PACE;
            assert!(pair[1] - pair[0] >= wait * 0.9, "attempt {} came early: {times:?}", attempt + 1);
        }
        // Generous, for the sake of a busy machine.
        let (all, schedule) = (times[7] - times[0], retry::delivery_schedule().as_secs_f64() * PACE);
        assert!(all < 6.0 * schedule, "eight attempts took {all} s instead of {schedule} s");
    }
}

#[tokio::test]
async fn an_endpoint_that_hangs_keeps_no_delivery_from_its_attempt() {
    let world = world().start().await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    receiver.hold();
    let began = Instant::now();
    append(&world, 0..5).await;
    receiver.until("every event", |all| numbers(all).len() == 5).await;
    assert!(began.elapsed() < retry::DELIVERY_TIMEOUT, "one waited for the end of another");
    receiver.release();
}

#[tokio::test]
async fn the_backlog_of_a_dead_endpoint_costs_nearly_nothing_and_is_sent_when_it_is_back() {
    const EVENTS: usize = 2000;
    let world = world().pace(1.0).own().start().await;
    let (healthy, dead) = (Receiver::start().await, Receiver::start().await);
    world.subscribe(&healthy.url).await;
    let webhook = world.subscribe(&dead.url).await;
    dead.answer(vec![500; 100_000]);
    for first in (0..EVENTS).step_by(100) {
        append(&world, first..first + 100).await;
    }
    let path = at(&webhook);
    let failing =
        world.until_at(&path, "the endpoint to fail", |webhook| webhook["failing_since"].is_string()).await;
    // Each delivery goes on until it has failed for two hours, of which its owner is told after ten failures.
    tests::sql(&world.db, LONG_FAILING).await;
    wait_until("the endpoint to be dead", async || {
        let later = "update webhooks set probe_at = now() + interval '1 hour' where probe_at is not null";
        let dead = sqlx::raw_sql(later).execute(&world.db).await.unwrap().rows_affected();
        if_right(dead, |dead| *dead == 1)
    })
    .await;
    healthy.until("every event", |all| numbers(all).len() >= EVENTS).await;
    let told = |all: &[Delivery]| -> Vec<_> {
        all.iter().filter(|one| one.event() == "webhook.failing").map(Delivery::json).collect()
    };
    // It may be appended after all others.
    let all = healthy.until("its owner to be told", |all| !told(all).is_empty()).await;
    let told = told(&all);
    let [told] = &told[..] else { panic!("its owner is told once, by the other endpoint: {told:#?}") };
    let (told, error) = (&told["data"], "the endpoint answered 500 Internal Server Error");
    assert_eq!((&told["webhookId"], &told["error"]), (&webhook["id"], &json!(error)), "{told}");
    assert_eq!(told["failingSince"], failing["failing_since"]);
    // Messages that were written before the endpoint was first awake may still be on their way.
    wait_until("every message to be sent", async || {
        let left = sqlx::query_scalar::<_, i64>("select count(*) from outbox").fetch_one(&world.db).await;
        if_right(left.unwrap(), |left| *left == 0)
    })
    .await;
    wait_until("it to sleep until the probe", async || {
        if_right(sleeps(&webhook).await, |sleeps| *sleeps > 600.0)
    })
    .await;
    let (before, _) = cost(&webhook).await;
    let sent = dead.all().len();
    for number in EVENTS..EVENTS + 50 {
        append(&world, number..number + 1).await;
    }
    healthy.until("every event", |all| numbers(all).len() >= EVENTS + 50).await;
    let (after, _) = cost(&webhook).await;
    let made = after - before;
    assert!(made <= 15, "fifty events made {made} history events: {:#?}", history_events(&webhook).await);
    assert_eq!(dead.all().len(), sent, "attempts that the dead endpoint got");
    let waiting = deliveries(&world, &webhook, |all| !all.is_empty()).await;
    assert!(waiting.iter().all(|one| one["status"] == "pending"), "{waiting:#?}");
    assert!(waiting[0]["next_attempt_at"].is_string(), "when the next probe is due: {}", waiting[0]);

    // Its owner has mended it, and tests it.
    dead.accept();
    let (_, tested) = world.call(Method::POST, &format!("{path}/test"), None).await;
    assert_eq!(tested["delivered"], true, "{tested}");
    dead.until("all that it missed", |all| numbers(all).len() >= EVENTS + 50).await;
    let mended = |webhook: &Value| webhook["failing_since"].is_null();
    world.until_at(&path, "the endpoint to be well", mended).await;
}

#[tokio::test]
async fn what_waited_for_a_day_fails_and_is_replayed_in_order() {
    const EVENTS: usize = 120;
    let world = world().own().start().await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    receiver.answer(vec![500; 10_000]);
    append(&world, 0..EVENTS).await;
    let path = at(&webhook);
    world.until_at(&path, "the endpoint to fail", |webhook| webhook["failing_since"].is_string()).await;
    let earlier = "update webhooks set failing_since = now() - interval '25 hours' where failing_since is not null;
         update deliveries set created_at = now() - interval '25 hours' where created_at > now() - interval '1 hour';
         update deliveries set next_attempt_at = now() - interval '25 hours' where status = 'pending'";
    let query = "select count(*) filter (where status = 'failed'),
         count(*) filter (where status = 'failed' and error like '%does not answer') from deliveries";
    let counts = async || sqlx::query_as::<_, (i64, i64)>(query).fetch_one(&world.db).await.unwrap();
    wait_until("all to fail", async || {
        tests::sql(&world.db, earlier).await;
        if_right(counts().await.0, |failed| *failed == EVENTS as i64)
    })
    .await;
    let (_, expired) = counts().await;
    assert!(expired > 0, "none failed for its age");

    receiver.accept();
    let before = receiver.all().len();
    let replay = format!("{path}/replay");
    let since = |hours| json!({ "since": now() - TimeDelta::hours(hours) });
    let post = async |hours| world.call(Method::POST, &replay, Some(&since(hours))).await;
    let queued = async |hours| {
        let (status, replay) = post(hours).await;
        assert_eq!((status, &replay["has_more"]), (StatusCode::ACCEPTED, &json!(false)), "{replay}");
        replay["queued"].as_u64().unwrap()
    };
    assert_eq!(queued(1).await, 0, "none of them is that young");
    assert_eq!(queued(26).await, EVENTS as u64);
    let all = receiver.until("every event again", |all| numbers(&all[before..]).len() >= EVENTS).await;
    assert_in_order(&all[before..], EVENTS);
    deliveries(&world, &webhook, |all| all.iter().all(|one| one["status"] == "delivered")).await;
    assert_eq!(queued(26).await, 0, "what was delivered is not repeated");
    assert_eq!(world.get(&path).await["failing_since"], Value::Null);

    let post = |body: Value| request(&world, Method::POST, &replay).json(&body);
    fail(post(json!({})), 400, "invalid_request").await;
    fail(post(json!({ "since": "yesterday" })), 400, "invalid_request").await;
    let reader = key(&world, world.owner, &[Scope::WebhooksRead]).await;
    let live = key(&world, Owner { mode: Mode::Live, ..world.owner }, &[Scope::All]).await;
    let by = |key: &str| world.http.post(format!("{}{replay}", world.base)).bearer_auth(key).json(&since(1));
    fail(by(&reader), 403, "insufficient_scope").await;
    fail(by(&live), 404, "not_found").await;
    world.call(Method::PATCH, &path, Some(&json!({ "is_active": false }))).await;
    fail(post(since(1)), 409, "conflict").await;
}

#[tokio::test]
async fn what_was_delivered_is_replayed_once_when_it_is_asked_for() {
    const EVENTS: usize = 30;
    let world = world().start().await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let since = now();
    append(&world, 0..EVENTS).await;
    deliveries(&world, &webhook, |all| all.iter().all(|one| one["status"] == "delivered")).await;
    receiver.until("every event", |all| all.len() == EVENTS).await;

    let path = format!("{}/replay", at(&webhook));
    let replay = async |until: &Value| {
        let body = json!({ "since": since, "until": until, "include": "all" });
        let (status, replay) = world.call(Method::POST, &path, Some(&body)).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{replay}");
        replay
    };
    let first = replay(&json!(now() + TimeDelta::hours(1))).await;
    assert_eq!((&first["queued"], &first["has_more"]), (&json!(EVENTS), &json!(false)), "{first}");
    receiver.until("every event again", |all| all.len() == 2 * EVENTS).await;
    deliveries(&world, &webhook, |all| all.iter().all(|one| one["status"] == "delivered")).await;
    // The same call, which a client repeats that got no answer.
    assert_eq!(replay(&first["until"]).await["queued"], 0);
    let body = json!({ "since": since, "include": "failed" });
    assert_eq!(world.call(Method::POST, &path, Some(&body)).await.1["queued"], 0);
    assert_eq!(receiver.all().len(), 2 * EVENTS);
}

#[tokio::test]
async fn deleting_an_endpoint_with_a_backlog_ends_its_workflow() {
    const EVENTS: usize = 1200;
    let world = world().pace(1.0).own().start().await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    receiver.answer(vec![500; 10_000]);
    append(&world, 0..EVENTS).await;
    let path = at(&webhook);
    world.until_at(&path, "the endpoint to fail", |webhook| webhook["failing_since"].is_string()).await;
    receiver.hold();
    receiver.until("an attempt that is not answered", |_| receiver.most() > 0).await;
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
    let sent = receiver.all().len();
    receiver.release();
    let query = "select count(*) from deliveries where status = 'failed' and error = 'endpoint deleted'";
    wait_until("all to fail", async || {
        let failed: i64 = sqlx::query_scalar(query).fetch_one(&world.db).await.unwrap();
        if_right(failed, |failed| *failed == EVENTS as i64)
    })
    .await;
    // And a test waits for its workflows to end.
    let later = receiver.all().len() - sent;
    assert!(later <= 1, "{later} attempts began after the endpoint was deleted");
}

/// An endpoint in a database of its own.
struct Scene {
    db: Pool,
    owner: Owner,
    webhook: WebhookId,
}

impl Scene {
    async fn new() -> Self {
        let db = database().await;
        let owner = Owner { org: organizations::create(&db, "Acme").await.unwrap(), mode: Mode::Test };
        let new = NewWebhook {
            url: "https://8.8.8.8/".to_owned(),
            events: vec!["*".to_owned()],
            description: None,
        };
        let made = webhooks::create(&db, owner, new, |_| vec![1], None, &Actor::OPERATOR, now()).await;
        Self { db, owner, webhook: made.unwrap().unwrap().id }
    }

    async fn append(&self, numbers: Range<usize>) {
        let mut tx = ::store::begin(&self.db).await.unwrap();
        append_in(&mut tx, self.owner, numbers).await;
        tx.commit().await.unwrap();
    }

    async fn wake(&self) -> Health {
        drain::wake(&self.db, self.owner, self.webhook, LEASE).await.unwrap().unwrap().health
    }

    async fn claim(&self, limit: usize, lease: Duration) -> drain::Claimed {
        let open_from = now() - TimeDelta::days(1);
        drain::claim(&self.db, self.webhook, open_from, limit, lease).await.unwrap()
    }

    /// Writes the outcome of one attempt.
    async fn settle(&self, claim: Claim, response: Response, retry_in: Option<Duration>) {
        let outcome = drain::Outcome { claim, response, retry_in };
        drain::settle(&self.db, &[outcome], now()).await.unwrap();
    }

    async fn report(&self, failures: u32, has_succeeded: bool) -> Reported {
        let report = Report {
            failures,
            has_succeeded,
            error: Some("the endpoint answered 500"),
            patience: retry::delivery_schedule(),
            probe_interval: LEASE,
        };
        drain::report(&self.db, self.owner, self.webhook, report, now()).await.unwrap()
    }

    /// Makes it a dead endpoint.
    async fn die(&self, probe_in: Duration) {
        let dead = format!(
            "update webhooks set failures = {TOLD_AFTER}, failing_since = now() - interval '3 hours',
               probe_at = now() + interval '{} seconds'",
            probe_in.as_secs()
        );
        tests::sql(&self.db, &dead).await;
    }

    async fn sleep(&self) -> Sleep {
        drain::sleep(&self.db, self.webhook).await.unwrap()
    }

    /// Takes all messages out of the outbox, and returns the number of those that wake the endpoint.
    async fn wakes(&self) -> usize {
        let claimed = outbox::claim(&self.db, 100, LEASE).await.unwrap();
        let ids: Vec<_> = claimed.iter().map(|message| message.id).collect();
        outbox::complete(&self.db, &ids, &[]).await.unwrap();
        let is_wake = |message: &Message| matches!(message, Message::DrainEndpoint(endpoint) if endpoint.webhook == self.webhook);
        claimed.iter().filter(|claimed| claimed.message.as_ref().is_ok_and(is_wake)).count()
    }
}

fn refusal() -> Response {
    Response { status: Some(500), error: Some("the endpoint answered 500".to_owned()), ..Response::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_endpoint_that_sleeps_is_woken_and_no_delivery_is_lost_when_it_falls_asleep() {
    let scene = Scene::new().await;
    scene.append(0..3).await;
    assert!((1..=3).contains(&scene.wakes().await), "asleep");
    assert_eq!(scene.wake().await, Health::default());
    scene.append(3..5).await;
    assert_eq!((scene.wakes().await, scene.sleep().await), (0, Sleep::Due), "awake");
    for claim in scene.claim(9, LEASE).await.claims {
        scene.settle(claim, Response::default(), None).await;
    }

    // It stays awake while a transaction adds deliveries that has seen it awake.
    let mut tx = ::store::begin(&scene.db).await.unwrap();
    append_in(&mut tx, scene.owner, 5..6).await;
    assert_eq!(scene.sleep().await, Sleep::Busy);
    tx.commit().await.unwrap();
    assert_eq!((scene.sleep().await, scene.wakes().await), (Sleep::Due, 0));
    let claim = scene.claim(9, LEASE).await.claims.remove(0);
    scene.settle(claim, refusal(), Some(LEASE)).await;
    let Sleep::Until { wait, deliveries } = scene.sleep().await else { panic!("a retry is due later") };
    assert!(wait > LEASE / 2 && wait <= LEASE && deliveries == 1, "{wait:?}");
    scene.append(6..7).await;
    assert_eq!(scene.wakes().await, 1, "asleep again");

    // A dead endpoint is woken by its next probe.
    scene.wake().await;
    let claim = scene.claim(9, LEASE).await.claims.remove(0);
    scene.settle(claim, refusal(), None).await;
    scene.die(2 * LEASE).await;
    let Sleep::Until { wait, .. } = scene.sleep().await else { panic!("a probe is due later") };
    assert!(wait > LEASE, "{wait:?}");
    scene.append(7..8).await;
    assert_eq!((scene.wakes().await, scene.wake().await.probe_in.is_some()), (0, true));

    // When nothing waits for it, it is not dead.
    tests::sql(&scene.db, "delete from deliveries").await;
    assert_eq!(scene.sleep().await, Sleep::Done);
    scene.append(8..9).await;
    assert_eq!((scene.wakes().await, scene.wake().await.probe_in), (1, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_dead_after_a_whole_schedule_of_failures_and_with_a_backlog() {
    let scene = Scene::new().await;
    scene.append(0..KEPT_BACKLOG as usize + 1).await;
    scene.wake().await;
    let fails_for = async |minutes: i32| {
        scene.report(1, false).await;
        let earlier = format!("update webhooks set failing_since = now() - interval '{minutes} minutes'");
        tests::sql(&scene.db, &earlier).await;
        scene.report(1, false).await.health
    };
    let (failing, dead) =
        (Health { is_failing: true, probe_in: None }, Health { is_failing: true, probe_in: Some(LEASE) });
    assert_eq!(scene.report(500, false).await.health, failing, "a burst, however many fail");
    assert_eq!(fails_for(122).await, failing, "the schedule of the first is not over");
    assert_eq!(fails_for(124).await, dead);
    let (health, wake) = (scene.report(0, true).await, scene.wake().await);
    assert_eq!((health, wake), (Reported { health: wake, failing_since: None }, Health::default()));
    fails_for(124).await;
    let mixed = scene.report(500, true).await;
    assert_eq!(mixed.health, failing, "one of them succeeded");
    assert!(mixed.failing_since > Some(now() - TimeDelta::minutes(1)), "{mixed:?}");
    assert_eq!(fails_for(124).await, dead);
    let claim = scene.claim(1, LEASE).await.claims.remove(0);
    scene.settle(claim, Response::default(), None).await;
    assert_eq!(fails_for(1_000).await, failing, "few enough to have their own times");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_backlog_of_a_deleted_endpoint_is_failed_in_parts() {
    let scene = Scene::new().await;
    scene.append(0..PART as usize + 100).await;
    let open_from = now() - TimeDelta::days(1);
    let abandon = async || drain::abandon(&scene.db, scene.webhook, open_from).await.unwrap();
    assert_eq!(abandon().await, 0, "it is not deleted");
    webhooks::delete(&scene.db, scene.owner, scene.webhook, &Actor::OPERATOR, now()).await.unwrap();
    assert_eq!((scene.sleep().await, scene.claim(9, LEASE).await.claims.len()), (Sleep::Closed, 0));
    assert_eq!([abandon().await, abandon().await, abandon().await], [PART as u64, 100, 0]);
    assert_eq!(scene.sleep().await, Sleep::Done);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_attempt_is_made_twice_and_that_of_a_lost_worker_counts() {
    let scene = Scene::new().await;
    scene.append(0..50).await;
    let all = join_all([(); 10].map(|()| scene.claim(7, LEASE))).await;
    let claimed: Vec<_> = all.iter().flat_map(|claimed| &claimed.claims).map(|claim| claim.id).collect();
    assert_eq!(claimed.iter().collect::<HashSet<_>>().len(), claimed.len(), "claimed twice");
    assert!(scene.claim(50, LEASE).await.claims.len() == 50 - claimed.len());

    scene.append(50..51).await;
    let lost = scene.claim(1, Duration::ZERO).await.claims.remove(0);
    let id = lost.id.0;
    for attempt in 2..=8 {
        assert_eq!(scene.claim(1, Duration::ZERO).await.claims[0].attempt, attempt);
    }
    scene.settle(lost, Response::default(), None).await;
    let last = scene.claim(1, LEASE).await;
    assert_eq!((last.claims.len(), last.failed), (0, 1), "eight attempts were made");
    let query = "select status || ': ' || error from deliveries where id = $1";
    let outcome: String = sqlx::query_scalar(query).bind(id).fetch_one(&scene.db).await.unwrap();
    assert_eq!(outcome, "failed: the last attempt was interrupted");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_endpoints_that_nobody_drains_are_swept() {
    let scene = Scene::new().await;
    let timing =
        Timing { grace: Duration::from_secs(30), row_interval: LEASE, horizon: LEASE, renewal_ages: &[] };
    let sweep = async || sweep::sweep(&scene.db, timing, 100).await.unwrap().overdue;
    let late = "update deliveries set created_at = created_at - interval '1 hour'";
    scene.append(0..5).await;
    scene.wakes().await;
    assert_eq!(sweep().await, 0, "not overdue yet");
    tests::sql(&scene.db, late).await;
    scene.wake().await;
    assert_eq!(sweep().await, 0, "a worker drains it");
    tests::sql(&scene.db, "update webhooks set awake_until = now() - interval '1 second'").await;
    assert_eq!((sweep().await, sweep().await, scene.wakes().await), (1, 0, 1), "one message for all");
    scene.die(LEASE).await;
    tests::sql(&scene.db, "update webhooks set swept_at = null").await;
    assert_eq!(sweep().await, 0, "its next probe is later");
}

#[tokio::test]
async fn a_worker_that_is_killed_while_it_sends_loses_nothing() {
    let mut world = world().running(&["api", "worker"]).start().await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    receiver.hold();
    append(&world, 0..5).await;
    receiver.until("an attempt", |all| !all.is_empty()).await;
    world.kill("worker").await;
    receiver.release();
    // The lease of its claim ends sooner than in production.
    tests::sql(&world.db, "update deliveries set next_attempt_at = now() where status = 'delivering'").await;
    world.run("worker").await;
    let all = receiver.until("every event", |all| numbers(all).len() == 5 && all.len() >= 6).await;
    let again: Vec<_> = all.iter().filter(|one| one.body == all[0].body).collect();
    assert_eq!((all.len(), again.len()), (6, 2), "only the interrupted attempt is repeated");
    let found = deliveries(&world, &webhook, |all| all.iter().all(|one| one["status"] == "delivered")).await;
    assert_eq!(found.iter().filter(|one| one["attempts"] == 2).count(), 1, "{found:#?}");
}
