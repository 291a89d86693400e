//! Results of the engine: the next step, its time, and the messages for people. The rows alone decide, so that a caller
//! that got something else would not publish twice; it would look too often, or tell the wrong thing.

use super::{
    Runner,
    platform::{self, Answer, Script, Shape},
};
use domain::{
    AccountId, ErrorCode, Failure, MAY_BE_LIVE, TargetId,
    publish::{PollResult, PublishResult, SettleReason, SettleResult},
};
use platforms::Grant;
use publishing::{CallOutcome, Error, Stop};
use serde_json::json;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};
use store::{
    accounts::grants,
    publishing::{BeginResult, Purpose, TargetKey, begin, intend},
    upkeep::vault,
};
use uuid::Uuid;

/// A step of the caller.
enum Do {
    Attempt,
    Look,
    /// Lets this number of seconds pass.
    Wait(u64),
    /// Asks the database.
    Ask(&'static str),
}

/// Query that tells if the target's account rests.
const RESTS: &str = "select (rests_until > now())::text from accounts
                     where id = (select account_id from targets where id = $1)";
const URL: &str = "select platform_post_url from targets where id = $1";
const ACCOUNT: &str = "select status from accounts where id = (select account_id from targets where id = $1)";

/// Returns a time in seconds, rounded up to five: a machine may be slow.
fn seconds(time: Duration) -> u64 {
    time.as_millis().div_ceil(5000) as u64 * 5
}

fn told(result: Result<PublishResult, Error>) -> String {
    match result {
        Ok(PublishResult::Ended { status }) => format!("ended {status}"),
        Ok(PublishResult::Wait { pause, code }) => {
            format!(
                "waits {} s, {}",
                seconds(pause),
                code.map_or("as before".to_owned(), |code| code.to_string())
            )
        }
        Ok(PublishResult::Processing { pause }) => format!("is processed for {} s", seconds(pause)),
        Ok(PublishResult::TokenRefused { .. }) => "token refused".to_owned(),
        Ok(PublishResult::Stale) => "stale".to_owned(),
        Err(error) => failed(error),
    }
}

fn looked(result: Result<PollResult, Error>) -> String {
    match result {
        Ok(PollResult::Ready) => "ready".to_owned(),
        Ok(PollResult::Ended { status }) => format!("ended {status}"),
        Ok(PollResult::TokenRefused { .. }) => "token refused".to_owned(),
        Err(error) => failed(error),
    }
}

fn failed(error: Error) -> String {
    match error {
        Error::Failed { failure, pause, is_new } => {
            let again = if is_new { "" } else { " again" };
            format!("failed{again} for {} s: {}", seconds(pause), failure.message)
        }
        Error::Repeat { failure, pause } => format!("goes on in {} s: {}", seconds(pause), failure.message),
        Error::Fault(error) => panic!("{error:#}"),
    }
}

async fn text(runner: &Runner, question: &'static str, id: Uuid) -> String {
    let answer = sqlx::query_scalar::<_, Option<String>>(question).bind(id).fetch_one(&runner.db).await;
    answer.unwrap().unwrap_or_default()
}

/// Publishes a post step by step.
async fn play(runner: &Runner, shape: Shape, answers: &[Answer], steps: &[(Do, &str)]) {
    let (id, account) = runner.connect().await;
    let script = platform::register(&account, Script::new(shape, answers));
    let key = runner.create_for(id, shape).await;
    for (index, (step, expected)) in steps.iter().enumerate() {
        let found = match step {
            Do::Attempt => told(runner.engine.attempt(key).await),
            Do::Look => looked(runner.engine.look(key).await),
            Do::Wait(seconds) => {
                runner.advance(key, &script, Duration::from_secs(*seconds)).await;
                String::new()
            }
            Do::Ask(question) => text(runner, question, key.target.0).await,
        };
        assert_eq!(found, *expected, "{shape:?} {answers:?}, step {index}");
    }
    platform::unregister(&account);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_step_names_the_next_one_and_its_time() {
    let runner = Runner::start(300).await;
    play(
        &runner,
        Shape::Text,
        &[Answer::ServerErrors],
        &[
            (Do::Attempt, "failed for 15 s: attempt 1 of 10: try again"),
            (Do::Attempt, "goes on in 15 s: attempt 1 of 10: try again"),
            (Do::Ask(RESTS), ""),
            (Do::Wait(15), ""),
            (Do::Attempt, "failed again for 30 s: attempt 2 of 10: try again"),
        ],
    )
    .await;
    play(
        &runner,
        Shape::Text,
        &[Answer::Throttled],
        &[
            (Do::Attempt, "failed for 3600 s: attempt 1 of 10: too fast"),
            (Do::Attempt, "goes on in 3600 s: attempt 1 of 10: too fast"),
            (Do::Ask(RESTS), "true"),
            (Do::Wait(3600), ""),
            (Do::Attempt, "ended published"),
            (Do::Ask(URL), "https://scripted.example/0-0"),
        ],
    )
    .await;
    play(
        &runner,
        Shape::Video,
        &[],
        &[
            (Do::Attempt, "is processed for 20 s"),
            (Do::Look, "ready"),
            (Do::Attempt, "is processed for 20 s"),
            (Do::Look, "goes on in 20 s: scripted is still processing"),
            (Do::Wait(20), ""),
            (Do::Look, "ready"),
            (Do::Attempt, "ended published"),
            (Do::Look, "ended published"),
        ],
    )
    .await;
    play(
        &runner,
        Shape::Text,
        &[Answer::Refused],
        &[(Do::Attempt, "ended dead"), (Do::Ask(ACCOUNT), "active")],
    )
    .await;
    play(
        &runner,
        Shape::Text,
        &[Answer::TokenRefused],
        &[
            (Do::Attempt, "token refused"),
            (Do::Attempt, "token refused"),
            (Do::Ask(ACCOUNT), "active"),
            (Do::Attempt, "ended dead"),
            (Do::Ask(ACCOUNT), "token_expired"),
        ],
    )
    .await;
    play(
        &runner,
        Shape::Text,
        &[Answer::AppRefusedForever],
        &[
            (Do::Attempt, "failed for 3600 s: the cap is reached"),
            (Do::Attempt, "goes on in 3600 s: the cap is reached"),
            (Do::Wait(3600), ""),
            (Do::Attempt, "goes on in 3600 s: the cap is reached"),
        ],
    )
    .await;
}

/// A step of an attempt or a look may be the one that kills its worker, and would kill each one after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_kills_each_of_its_workers_ends() {
    let runner = Runner::start(300).await;
    let (id, account) = runner.connect().await;
    let _script = platform::register(&account, Script::new(Shape::Text, &[]));
    let key = runner.create_for(id, Shape::Text).await;
    let killed = async || match begin(&runner.db, key, Purpose::Look).await.unwrap() {
        BeginResult::Attempt(attempt) => attempt.fence,
        other => panic!("no look began: {other:?}"),
    };
    let (fence, limit) = (killed().await, Duration::from_secs(60));
    assert!(intend(&runner.db, key.target, 0, fence, &json!(null), limit).await.unwrap().is_some());
    for _ in 1..13 {
        killed().await;
    }
    assert_eq!(looked(runner.engine.look(key).await), "ready");
    assert_eq!(told(runner.engine.attempt(key).await), "ended dead");
    let message = text(&runner, "select error_message from targets where id = $1", key.target.0).await;
    let told = format!("each of the workers that took it up stopped before it had a result{MAY_BE_LIVE}");
    assert_eq!(message, told);
    platform::unregister(&account);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_post_that_rests_is_frozen_or_edited_says_so_once() {
    let runner = Runner::start(301).await;
    let (id, account) = runner.connect().await;
    let script = platform::register(&account, Script::new(Shape::Text, &[]));
    let run = async |statement: &'static str| {
        sqlx::query(statement).bind(id.0).execute(&runner.db).await.unwrap();
    };
    let key = runner.create_for(id, Shape::Text).await;
    let edited = TargetKey { version: key.version + 1, ..key };
    assert_eq!(told(runner.engine.attempt(edited).await), "stale");
    assert_eq!(looked(runner.engine.look(edited).await), "ready");
    for (hold, code, release) in [
        (
            "update accounts set rests_until = now() + interval '1 hour' where id = $1",
            "rate_limited",
            "update accounts set rests_until = null where id = $1",
        ),
        (
            "insert into freezes (id, kind, subject, reason, frozen_by, created_at)
             values (gen_random_uuid(), 'account', $1::text, 'an incident', 'Ada', now())",
            "frozen",
            "update freezes set released_at = now() where subject = $1::text",
        ),
    ] {
        let key = runner.create_for(id, Shape::Text).await;
        run(hold).await;
        let first = told(runner.engine.attempt(key).await);
        assert!(first.starts_with("waits ") && first.ends_with(code), "{first} instead of {code}");
        let again = told(runner.engine.attempt(key).await);
        assert!(again.starts_with("waits ") && again.ends_with("as before"), "{again}");
        run(release).await;
        // Longer than it waits.
        runner.advance(key, &script, Duration::from_secs(8 * 3600)).await;
        assert_eq!(told(runner.engine.attempt(key).await), "ended published", "{code}");
    }
    platform::unregister(&account);
}

async fn version(runner: &Runner, id: AccountId) -> i64 {
    let version = sqlx::query_scalar("select grant_version from accounts where id = $1").bind(id.0);
    version.fetch_one(&runner.db).await.unwrap()
}

/// Calls the platform for an account outside publishing. Its calls get these answers. Returns the tokens of the calls, too.
async fn call(
    runner: &Runner,
    id: AccountId,
    answers: &[Result<u8, Failure>],
) -> (CallOutcome<u8>, Vec<String>) {
    let answers = Arc::new(Mutex::new(answers.iter().cloned().collect::<VecDeque<_>>()));
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let seen = tokens.clone();
    let made =
        publishing::call_as(&runner.engine, runner.owner, id, Duration::from_secs(60), move |_, session| {
            seen.lock().unwrap().push(session.grant.access_token.clone());
            let answer = answers.lock().unwrap().pop_front().expect("an answer for each call");
            Box::pin(async move { answer })
        });
    let outcome = made.await.unwrap();
    let tokens = tokens.lock().unwrap().clone();
    (outcome, tokens)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_outside_publishing_is_repeated_once_with_a_fresh_token() {
    let runner = Runner::start(302).await;
    let (id, account) = runner.connect().await;
    platform::register(&account, Script::new(Shape::Text, &[]));
    let first = version(&runner, id).await;
    let refused = || Err(Failure::token_expired("the token has expired"));
    let lost = || Err(Failure::network("the connection broke", true));
    for (answers, tokens, answer, seen) in [
        (&[Ok(1)][..], &["token"][..], Ok(1), first),
        // Nothing was to be published, so that nothing is in doubt.
        (&[lost()], &["token"], lost().map_err(Failure::certain), first),
        (&[refused(), Ok(2)], &["token", "token+"], Ok(2), first + 1),
        (&[refused(), refused()], &["token+", "token++"], refused(), first + 2),
    ] {
        let (outcome, found) = call(&runner, id, answers).await;
        assert_eq!((&outcome.answer, outcome.version), (&answer, Some(seen)), "{answers:?}");
        assert_eq!(found, tokens, "{answers:?}");
    }
    // A revoked grant is not refreshed, and the account says so.
    let revoked = Failure::revoked("access was removed");
    let (outcome, tokens) = call(&runner, id, &[Err(revoked.clone())]).await;
    assert_eq!((outcome.answer, tokens.len()), (Err(revoked), 1));
    let status = "select status from accounts where id = $1";
    assert_eq!(text(&runner, status, id.0).await, "reauth_required");
    let (outcome, tokens) = call(&runner, id, &[refused()]).await;
    assert!(outcome.answer.is_err_and(|failure| failure.is_revoked()) && outcome.version.is_none());
    assert_eq!(tokens.len(), 1);
    // Without an account there is nobody to call for, and a call has its time.
    let (outcome, tokens) = call(&runner, AccountId(Uuid::now_v7()), &[]).await;
    assert!(outcome.answer.is_err_and(|failure| failure.is_revoked()) && outcome.version.is_none());
    assert!(tokens.is_empty());
    let hangs =
        publishing::call_as::<u8>(&runner.engine, runner.owner, id, Duration::from_millis(50), |_, _| {
            Box::pin(std::future::pending())
        });
    let outcome = hangs.await.unwrap();
    assert_eq!(outcome.version, None);
    assert!(outcome.answer.is_err_and(|failure| failure.message.starts_with("no answer within")));
    platform::unregister(&account);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_is_renewed_once_and_not_without_what_renews_it() {
    let runner = Runner::start(303).await;
    let (id, account) = runner.connect().await;
    platform::register(&account, Script::new(Shape::Text, &[]));
    let engine = &runner.engine;
    // Returns the grant with an end that is so many hours from now.
    let ending = async |hours: i32| {
        let set = "update accounts set token_expires_at = now() + make_interval(hours => $2) where id = $1";
        sqlx::query(set).bind(id.0).bind(hours).execute(&runner.db).await.unwrap();
        grants::expiring(&runner.db, runner.owner, id).await.unwrap().expect("it has an end")
    };
    let old = ending(1).await;
    // The platform tells no end of the new one.
    assert!(matches!(engine.renew(&old).await, Ok(None)));
    assert_eq!(version(&runner, id).await, old.grant_version + 1);
    let current = ending(1).await;
    let renewed = engine.renew(&old).await.unwrap_or_else(|_| panic!("it was renewed before"));
    assert_eq!(renewed, Some(current));
    assert_eq!(version(&runner, id).await, old.grant_version + 1);
    // Nothing renews it: it serves until it ends, and is tried then.
    let grant = Grant {
        access_token: "token".to_owned(),
        refresh_token: None,
        expires_at: None,
        ends_at: None,
        scopes: Vec::new(),
        extra: serde_json::Value::Null,
    };
    let sealed = serde_json::to_vec(&grant).unwrap();
    let sealed = engine.sealer.seal(&sealed, &vault::aad_grant(runner.owner, id));
    let store = sqlx::query("update accounts set grant_sealed = $2 where id = $1").bind(id.0).bind(sealed);
    store.execute(&runner.db).await.unwrap();
    let current = ending(1).await;
    let Err(Stop::Failure(kept)) = engine.renew(&current).await else { panic!("nothing renews it") };
    assert_eq!((kept.code, kept.retry_after.map(seconds)), (ErrorCode::TokenExpired, Some(3600)));
    assert_eq!(version(&runner, id).await, current.grant_version);
    let over = ending(-1).await;
    assert!(matches!(engine.renew(&over).await, Ok(None)));
    assert_eq!(version(&runner, id).await, current.grant_version + 1);
    // It can't be renewed any more.
    sqlx::query("update accounts set status = 'reauth_required' where id = $1")
        .bind(id.0)
        .execute(&runner.db)
        .await
        .unwrap();
    assert!(matches!(engine.renew(&over).await, Ok(None)));
    platform::unregister(&account);
}

/// The state of a target that no attempt holds, as the workflow settles it.
struct Settled {
    /// Attempts begun, and of these those that were refused because of the token.
    attempts: (i32, i32),
    /// A statement before that.
    change: &'static str,
    reason: SettleReason,
    /// Result of the engine, and the row after it.
    expected: (&'static str, &'static str),
}

/// A call without a known result.
const IN_DOUBT: &str = "insert into publications (target_id, position, org_id, mode, commit_begun_at)
                        select id, 0, org_id, mode, now() from targets where id = $1";
const HAS_FAILED: &str = "update targets set error_code = 'upstream_503', error_message = 'try again', error_source = 'platform' where id = $1";
const NOTHING: &str = "update targets set updated_at = now() where id = $1";

fn settlements() -> Vec<Settled> {
    let of = |(attempts, refused), change, reason: &SettleReason, returned, row| Settled {
        attempts: (attempts, refused),
        change,
        reason: reason.clone(),
        expected: (returned, row),
    };
    let unanswered = SettleReason::Unanswered { message: "no heartbeat".to_owned() };
    let lost = SettleReason::GrantLost { message: "the grant is gone".to_owned() };
    let refresh = |code| SettleReason::RefreshFailed { message: "no fresh token".to_owned(), code };
    let (network, throttled, app) =
        (refresh(ErrorCode::NetworkError), refresh(ErrorCode::RateLimited), refresh(ErrorCode::AppRefused));
    let dead = "ended dead";
    vec![
        of((1, 0), NOTHING, &lost, dead, "dead 1 0 0 token_expired user the grant is gone"),
        of(
            (1, 0),
            NOTHING,
            &SettleReason::Stopped,
            dead,
            "dead 1 0 0 stopped service an operator stopped it in Temporal",
        ),
        // The grant was not at fault: that costs none of the attempts for the token.
        of((3, 2), NOTHING, &network, "again in 60 s", "pending 3 1 0"),
        of((3, 0), NOTHING, &network, "again in 60 s", "pending 3 0 0"),
        of((9, 1), NOTHING, &network, "again in 1800 s", "pending 9 0 0"),
        of((10, 1), NOTHING, &network, dead, "dead 10 1 0 network_error service no fresh token"),
        of((3, 2), NOTHING, &throttled, "again in 15 s", "pending 3 1 1"),
        of((10, 0), NOTHING, &throttled, dead, "dead 10 0 0 rate_limited platform no fresh token"),
        of((3, 2), NOTHING, &app, "again in 15 s", "pending 3 1 1"),
        of((1, 0), NOTHING, &unanswered, "again in 15 s", "pending 1 0 0"),
        of((9, 0), NOTHING, &unanswered, "again in 1800 s", "pending 9 0 0"),
        of((10, 0), NOTHING, &unanswered, dead, "dead 10 0 0 network_error service no heartbeat"),
        of((10, 0), HAS_FAILED, &unanswered, dead, "dead 10 0 0 upstream_503 service try again"),
        // A post that may be live is looked up a few times more.
        of((10, 0), IN_DOUBT, &unanswered, "again in 15 s", "pending 10 0 0"),
        of((12, 0), IN_DOUBT, &unanswered, "again in 15 s", "pending 12 0 0"),
        of(
            (13, 0),
            IN_DOUBT,
            &unanswered,
            dead,
            "dead 13 0 0 network_error service no heartbeat; it may be live: look before posting again",
        ),
    ]
}

fn settled(result: SettleResult) -> String {
    match result {
        SettleResult::Ended { status } => format!("ended {status}"),
        SettleResult::RetryAfter { pause } => format!("again in {} s", seconds(pause)),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_without_an_attempt_ends_or_is_tried_again() {
    let runner = Runner::start(304).await;
    let (id, account) = runner.connect().await;
    platform::register(&account, Script::new(Shape::Text, &[]));
    let row = "select concat_ws(' ', status, attempts, token_attempts, free_attempts, error_code, error_source, error_message)
               from targets where id = $1";
    let holds = "select count(*)::text from app_holds where $1::uuid is not null";
    for Settled { attempts, change, reason, expected } in settlements() {
        let key = runner.create_for(id, Shape::Text).await;
        let count = sqlx::query("update targets set attempts = $2, token_attempts = $3 where id = $1");
        count.bind(key.target.0).bind(attempts.0).bind(attempts.1).execute(&runner.db).await.unwrap();
        sqlx::query(change).bind(key.target.0).execute(&runner.db).await.unwrap();
        let returned = settled(runner.engine.settle(key, &reason).await.unwrap());
        let found = text(&runner, row, key.target.0).await;
        assert_eq!((&*returned, &*found), expected, "{attempts:?} {reason:?} after {change}");
        if expected.0 == "ended dead" {
            // It has ended, and stays so.
            let stopped = runner.engine.settle(key, &SettleReason::Stopped).await.unwrap();
            assert_eq!((settled(stopped), text(&runner, row, key.target.0).await), (returned, found));
        }
        let is_app = matches!(reason, SettleReason::RefreshFailed { code: ErrorCode::AppRefused, .. });
        assert_eq!(text(&runner, holds, key.target.0).await, u8::from(is_app).to_string(), "{reason:?}");
        sqlx::query("delete from app_holds").execute(&runner.db).await.unwrap();
    }
    // The post was edited, or is not there.
    let lost = SettleReason::GrantLost { message: "the grant is gone".to_owned() };
    let key = runner.create_for(id, Shape::Text).await;
    let edited = TargetKey { version: key.version + 1, ..key };
    let missing = TargetKey { target: TargetId(Uuid::now_v7()), ..key };
    for (key, reason, expected) in [
        (edited, &lost, "again in 15 s"),
        (edited, &SettleReason::Stopped, "ended canceled"),
        (missing, &lost, "ended canceled"),
    ] {
        assert_eq!(settled(runner.engine.settle(key, reason).await.unwrap()), expected, "{reason:?}");
    }
    platform::unregister(&account);
}
