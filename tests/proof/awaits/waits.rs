//! Each wait has an end, whatever it is for.

use super::{
    Driver, Next, Runner, Step,
    platform::{self, Answer, Script, Shape},
};
use domain::{Failure, TargetStatus, WaitReason, publishing::wait, retry};
use sqlx::Row;
use std::time::Duration;
use store::publishing::TargetKey;

/// Looks within which a wait ends. No result of an attempt comes more often without another one.
const LOOKS: usize = 300;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A target whose wait is in vain.
struct Scene {
    key: TargetKey,
    account: String,
    /// Sets what it waits for back, before each look.
    keep: Option<&'static str>,
    /// Least time between two looks in the test.
    stride: Duration,
    /// Longest life of the target.
    limit: Duration,
    /// Part of its last message.
    ends_with: &'static str,
}

/// Lets a target's file be inspected again.
const UNREADY: &str =
    "update media set status = 'uploaded' from targets t join containers c on c.post_id = t.post_id
                       where t.id = $1 and media.id = (c.media -> 0 ->> 'id')::uuid";
const UNREADY_SINCE_CALL: &str = "update media set status = 'uploaded'
                                  from containers c join publications p on p.target_id = $1 and p.commit_begun_at is not null
                                  where media.id = (c.media -> 0 ->> 'id')::uuid
                                    and c.post_id = (select post_id from targets where id = $1)";
const FREEZE: &str = "insert into freezes (id, kind, subject, reason, frozen_by, created_at)
                      values (gen_random_uuid(), 'platform', 'scripted', 'an incident', 'Ada', now())";
/// Names the target, as each statement of its kind.
const RELEASE: &str =
    "update freezes set released_at = now() where released_at is null and $1::uuid is not null";

/// A scene of attempts that are stopped before their call. Each series of such waits ends as one failed attempt.
fn interrupted(scene: Scene) -> Scene {
    let limit = (wait::HANDOVER_LIMIT + DAY / 2) * retry::ATTEMPTS;
    Scene { stride: DAY / 4, limit, ends_with: "stopped it again and again", ..scene }
}

/// Makes a target wait for a reason without end; `None` where an attempt can't.
async fn scene(runner: &Runner, reason: WaitReason) -> Option<Scene> {
    let (id, account) = runner.connect().await;
    let answers = match reason {
        WaitReason::Reads => &[Answer::ServerErrors][..],
        WaitReason::App => &[Answer::AppRefusedForever],
        _ => &[],
    };
    let script = platform::register(&account, Script::new(Shape::Image, answers));
    let key = runner.create_for(id, Shape::Image).await;
    let answered = |answer| script.lock().unwrap().answer(key.target, answer);
    // Longer than most pauses, so that the test has fewer looks.
    let stride = Duration::from_secs(3600);
    let scene = Scene { key, account, keep: None, stride, limit: DAY, ends_with: "" };
    Some(match reason {
        WaitReason::File => {
            Scene { keep: Some(UNREADY), limit: wait::FILE_LIMIT, ends_with: "not ready in time", ..scene }
        }
        WaitReason::Parent => {
            // It is due, and nobody publishes it.
            let parent = runner.create_for(id, Shape::Text).await;
            sqlx::query("update posts set reply_to = $2 where id = $1")
                .bind(key.post.0)
                .bind(parent.post.0)
                .execute(&runner.db)
                .await
                .unwrap();
            Scene { limit: wait::PARENT_LIMIT, ends_with: "not live in time", ..scene }
        }
        WaitReason::Rendition => {
            // The look-up after the lost call needs the file, which is inspected again.
            answered(Answer::Lost);
            Scene {
                keep: Some(UNREADY_SINCE_CALL),
                stride: DAY / 4,
                limit: wait::FILE_LIMIT,
                ends_with: "not ready in time; it may be live",
                ..scene
            }
        }
        // Has no end but its turn: see `a_wait_for_a_slot_…`.
        WaitReason::Slot => return None,
        WaitReason::Rest => Scene {
            keep: Some(
                "update accounts set rests_until = now() + interval '1 hour'
                   where id = (select account_id from targets where id = $1)",
            ),
            limit: wait::REST_LIMIT,
            ends_with: "for two days",
            ..scene
        },
        WaitReason::App => {
            Scene { stride: DAY / 2, limit: wait::APP_LIMIT, ends_with: "for more than a month", ..scene }
        }
        WaitReason::Freeze => {
            // Frozen whenever it has been prepared, and released before the next attempt. Such waits end as a failed
            // attempt, and the budget of these ends the target.
            script.lock().unwrap().meanwhile(&runner.db, FREEZE);
            Scene { keep: Some(RELEASE), ..interrupted(scene) }
        }
        WaitReason::Handover => {
            runner.stop.send_replace(true);
            interrupted(scene)
        }
        WaitReason::Reads => Scene { stride: Duration::ZERO, ends_with: "try again", ..scene },
        WaitReason::Claim => {
            answered(Answer::Lost);
            // Another target of the account, which was accepted and that nobody looks after.
            let other = runner.create_for(id, Shape::Image).await;
            sqlx::query(
                "insert into publications (target_id, position, org_id, mode, commit_begun_at, commit_ended_at, accepted)
                 select id, 0, org_id, mode, now(), now(), true from targets where id = $1",
            )
            .bind(other.target.0)
            .execute(&runner.db)
            .await
            .unwrap();
            Scene { stride: Duration::from_secs(60), ends_with: "it may be live", ..scene }
        }
        WaitReason::Fault => Scene {
            keep: Some(
                "update accounts set grant_sealed = '\\x00' where id = (select account_id from targets where id = $1)",
            ),
            limit: wait::FAULT_LIMIT,
            ends_with: "was not repaired in time",
            ..scene
        },
    })
}

/// A wait that is for nothing ends after its limit, with a reason, costs no attempt, and is noted once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_wait_has_an_end_and_is_noted_once() {
    let runner = Runner::start(200).await;
    for reason in WaitReason::ALL {
        let Some(scene) = scene(&runner, *reason).await else { continue };
        let script = platform::script_of(&scene.account);
        let mut driver = Driver { runner: &runner, key: scene.key, points: 0, drops: Vec::new() };
        let mut next = Next::Attempt;
        let mut took = Duration::ZERO;
        let mut ended = None;
        for _ in 0..LOOKS {
            if let Some(keep) = scene.keep {
                sqlx::query(keep).bind(scene.key.target.0).execute(&runner.db).await.unwrap();
            }
            match driver.step(next).await.expect("nothing is dropped") {
                Step::Ended(status) => {
                    ended = Some(status);
                    break;
                }
                Step::Next(step, pause) => {
                    let row = sqlx::query(
                        "select coalesce(greatest(next_attempt_at, look_at), updated_at) > now() - interval '1 second'
                           as is_known from targets where id = $1",
                    )
                    .bind(scene.key.target.0)
                    .fetch_one(&runner.db)
                    .await
                    .unwrap();
                    assert!(row.get::<bool, _>("is_known"), "{reason}: the row does not know its next look");
                    let pause = pause.max(scene.stride);
                    runner.advance(scene.key, &script, pause).await;
                    (next, took) = (step, took + pause);
                }
            }
        }
        let row = sqlx::query(
            "select attempts - free_attempts as attempts, error_message,
               (select count(*) from timeline l where l.target_id = t.id and l.kind in ('waiting', 'rest')) as notes
             from targets t where id = $1",
        )
        .bind(scene.key.target.0)
        .fetch_one(&runner.db)
        .await
        .unwrap();
        let message: String = row.get::<Option<_>, _>("error_message").unwrap_or_default();
        let (attempts, notes): (i32, i64) = (row.get("attempts"), row.get("notes"));
        let report =
            format!("{reason}: {ended:?} after {took:?}, {attempts} attempts, {notes} notes: {message}");
        assert_eq!(ended, Some(TargetStatus::Dead), "{report}");
        assert!(message.contains(scene.ends_with), "{report}");
        assert!(took <= scene.limit + scene.limit / 4 + scene.stride, "{report}");
        match reason {
            // Each attempt is made, and waits for reads, or ends a series of waits.
            WaitReason::Reads | WaitReason::Freeze | WaitReason::Handover => {
                assert!((10..=13).contains(&attempts) && notes <= 13, "{report}")
            }
            WaitReason::Claim | WaitReason::Rendition => assert!(attempts == 1 && notes <= 2, "{report}"),
            _ => assert!(attempts == 0 && notes == 1, "{report}"),
        }
        runner.stop.send_replace(false);
        sqlx::query(RELEASE).bind(scene.key.target.0).execute(&runner.db).await.unwrap();
        sqlx::query("delete from app_holds").execute(&runner.db).await.unwrap();
        platform::unregister(&scene.account);
    }
}

/// A worker without a slot for a target costs it no attempt and moves the end of no other wait. Its turn ends the wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_for_a_slot_costs_nothing_and_moves_no_other_end() {
    let runner = Runner::start(202).await;
    let pause = Duration::from_secs(3600);
    let (id, account) = runner.connect().await;
    let script = platform::register(&account, Script::new(Shape::Image, &[]));
    let key = runner.create_for(id, Shape::Image).await;
    let mut driver = Driver { runner: &runner, key, points: 0, drops: Vec::new() };
    let rows = async || {
        let row = sqlx::query(
            "select wait_reason, coalesce(look_at, next_attempt_at) > now() as is_known, attempts,
               (select count(*) from timeline l where l.target_id = t.id) as entries
             from targets t where id = $1",
        );
        let row = row.bind(key.target.0).fetch_one(&runner.db).await.unwrap();
        let reason: Option<String> = row.get("wait_reason");
        (
            reason,
            row.get::<Option<bool>, _>("is_known"),
            row.get::<i32, _>("attempts"),
            row.get::<i64, _>("entries"),
        )
    };
    let waits_for = |reason: WaitReason, entries| (Some(reason.to_string()), Some(true), 0, entries);
    for _ in 0..3 {
        runner.engine.await_slot(key, pause).await.unwrap();
        assert_eq!(rows().await, waits_for(WaitReason::Slot, 0));
        runner.advance(key, &script, pause).await;
    }
    // It waits for its file, and for a slot whenever that could be looked at.
    let mut took = Duration::ZERO;
    let ended = loop {
        sqlx::query(UNREADY).bind(key.target.0).execute(&runner.db).await.unwrap();
        match driver.step(Next::Attempt).await.expect("nothing is dropped") {
            Step::Ended(status) => break status,
            Step::Next(..) => assert_eq!(rows().await, waits_for(WaitReason::File, 1)),
        }
        runner.engine.await_slot(key, pause).await.unwrap();
        assert_eq!(rows().await, waits_for(WaitReason::File, 1));
        runner.advance(key, &script, pause).await;
        took += pause;
        assert!(took <= wait::FILE_LIMIT + pause, "it waits without end");
    };
    assert_eq!(ended, TargetStatus::Dead);
    let (reason, is_known, ..) = rows().await;
    assert_eq!((reason, is_known), (None, None));
    // Its turn.
    let key = runner.create_for(id, Shape::Image).await;
    runner.engine.await_slot(key, pause).await.unwrap();
    runner.advance(key, &script, pause).await;
    let mut driver = Driver { runner: &runner, key, points: 0, drops: Vec::new() };
    assert!(matches!(driver.step(Next::Attempt).await, Some(Step::Ended(TargetStatus::Published))));
    platform::unregister(&account);
}

/// A platform refuses an app. That costs no attempt and concerns no account; one post at a time looks whether it is taken
/// again, no other is tried, and all go out when it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn posts_with_a_refused_app_wait_together_and_go_on_by_themselves() {
    let runner = Runner::start(203).await;
    let mut posts = Vec::new();
    for answers in [&[Answer::AppRefused, Answer::AppRefused][..], &[], &[]] {
        let (id, account) = runner.connect().await;
        let script = platform::register(&account, Script::new(Shape::Text, answers));
        posts.push((runner.create_for(id, Shape::Text).await, account, script));
    }
    let step = async |post: usize| {
        let mut driver = Driver { runner: &runner, key: posts[post].0, points: 0, drops: Vec::new() };
        driver.step(Next::Attempt).await.expect("nothing is dropped")
    };
    let rows = async || {
        let rows = sqlx::query(
            "select t.status, t.attempts, t.error_code, t.error_source, t.error_message, a.status as account
             from targets t join accounts a on a.id = t.account_id order by t.id",
        )
        .fetch_all(&runner.db)
        .await
        .unwrap();
        rows.into_iter()
            .map(|row| {
                let text = |name| row.get::<Option<String>, _>(name).unwrap_or_default();
                (
                    text("status"),
                    row.get::<i32, _>("attempts"),
                    text("error_code"),
                    text("error_source"),
                    text("error_message"),
                    text("account"),
                )
            })
            .collect::<Vec<_>>()
    };
    let waits = |status: &str| {
        let [status, code, source, message, account] =
            [status, "app_refused", "service", "the cap is reached", "active"].map(str::to_owned);
        (status, 0, code, source, message, account)
    };
    // The first call is refused; nobody else calls within the hour, and within the next one neither.
    for look in 0..2 {
        for post in [0, 1, 2] {
            let Step::Next(Next::Attempt, pause) = step(post).await else { panic!("post {post} waits") };
            assert!(pause > Duration::from_secs(3500), "look {look}, post {post}: {pause:?}");
        }
        assert_eq!(rows().await, [waits("failed"), waits("queued"), waits("queued")], "look {look}");
        let calls: Vec<_> = posts.iter().map(|(_, _, script)| script.lock().unwrap().commits).collect();
        assert_eq!(calls, [look + 1, 0, 0]);
        for (key, _, script) in &posts {
            runner.advance(*key, script, Duration::from_secs(3600 + 600)).await;
        }
    }
    for post in [1, 0, 2] {
        assert!(matches!(step(post).await, Step::Ended(TargetStatus::Published)), "post {post}");
    }
    let holds: i64 =
        sqlx::query_scalar("select count(*) from app_holds").fetch_one(&runner.db).await.unwrap();
    assert_eq!(holds, 0);
    let notes: Vec<i64> = sqlx::query_scalar(
        "select count(*) filter (where l.kind in ('waiting', 'rest')) from targets t
           left join timeline l on l.target_id = t.id group by t.id order by t.id",
    )
    .fetch_all(&runner.db)
    .await
    .unwrap();
    assert_eq!(notes, [1, 1, 1]);
    for (_, account, _) in &posts {
        platform::unregister(account);
    }
}

/// The service can't open the account's grant for a while. That costs no attempt, and the post goes out when it can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_post_waits_for_the_service_and_is_published_when_it_is_repaired() {
    let runner = Runner::start(201).await;
    let (id, account) = runner.connect().await;
    let script = platform::register(&account, Script::new(Shape::Text, &[]));
    let key = runner.create_for(id, Shape::Text).await;
    let grant: Vec<u8> = sqlx::query_scalar("select grant_sealed from accounts where id = $1")
        .bind(id.0)
        .fetch_one(&runner.db)
        .await
        .unwrap();
    let seal = async |grant: &[u8]| {
        let write = sqlx::query("update accounts set grant_sealed = $2 where id = $1").bind(id.0).bind(grant);
        write.execute(&runner.db).await.unwrap();
    };
    seal(&[0]).await;
    let mut driver = Driver { runner: &runner, key, points: 0, drops: Vec::new() };
    for look in 0..20 {
        let Some(Step::Next(Next::Attempt, pause)) = driver.step(Next::Attempt).await else {
            panic!("it waits")
        };
        let row = sqlx::query(
            "select status, attempts, error_code, error_source, error_message from targets where id = $1",
        )
        .bind(key.target.0)
        .fetch_one(&runner.db)
        .await
        .unwrap();
        let message: String = row.get("error_message");
        assert!(message.contains("can't read the account's grant"), "look {look}: {message}");
        let shown: (String, i32, String, String) =
            (row.get("status"), row.get("attempts"), row.get("error_code"), row.get("error_source"));
        assert_eq!(shown, ("failed".to_owned(), 0, "network_error".to_owned(), "service".to_owned()));
        runner.advance(key, &script, pause).await;
    }
    seal(&grant).await;
    let Some(Step::Ended(status)) = driver.step(Next::Attempt).await else { panic!("it ends") };
    assert_eq!(status, TargetStatus::Published);
    let entries: Vec<String> =
        sqlx::query_scalar("select kind from timeline where target_id = $1 order by id")
            .bind(key.target.0)
            .fetch_all(&runner.db)
            .await
            .unwrap();
    assert_eq!(entries, ["attempt", "waiting", "published"]);
    platform::unregister(&account);
}

/// A target that is given up while its call has no known result says that it may be live, whatever its look-ups met.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_is_given_up_in_doubt_says_so() {
    let runner = Runner::start(214).await;
    for (answer, failure) in [
        (Answer::Unnamed, Failure::rejected(403, "not for you")),
        (Answer::Unnamed, Failure::revoked("the user left")),
        (Answer::Unnamed, Failure::token_expired("the token has expired")),
        (Answer::Lost, Failure::rejected(403, "not for you")),
        (Answer::Lost, Failure::app_refused("the cap is reached", Some(DAY))),
    ] {
        let (key, account) = runner.create(Shape::Text).await;
        let script = platform::register(&account, Script::new(Shape::Text, &[answer]));
        script.lock().unwrap().refuse_looks(failure.clone());
        let mut driver = Driver { runner: &runner, key, points: 0, drops: Vec::new() };
        let mut next = Next::Attempt;
        let mut ended = None;
        for _ in 0..LOOKS {
            match driver.step(next).await.expect("nothing is dropped") {
                Step::Ended(status) => {
                    ended = Some(status);
                    break;
                }
                Step::Next(step, pause) => {
                    runner.advance(key, &script, pause).await;
                    next = step;
                }
            }
        }
        let message: String = sqlx::query_scalar("select error_message from targets where id = $1")
            .bind(key.target.0)
            .fetch_one(&runner.db)
            .await
            .unwrap();
        let report = format!("{answer:?}, {failure}: {message}");
        assert_eq!(ended, Some(TargetStatus::Dead), "{report}");
        assert_eq!(script.lock().unwrap().count(0), 1, "{report}");
        assert!(message.contains("it may be live"), "{report}");
        sqlx::query("delete from app_holds").execute(&runner.db).await.unwrap();
        platform::unregister(&account);
    }
}
