//! `look_up` of `POST /posts/validate`: platforms are asked for what only they know, within a bounded time.

use crate::world;
use domain::{Mode, Owner, scope::Scope};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use store::{
    people::{audit::Actor, keys, organizations},
    publishing::freezes,
};
use tests::{World, now};
use tokio::time::Instant;

/// Validates a post, and returns the verdict.
async fn validate(world: &World, body: &Value) -> Value {
    let (status, verdict) = world.call(Method::POST, "/posts/validate", Some(body)).await;
    assert_eq!(status, StatusCode::OK, "{verdict:#}");
    verdict
}

/// Returns the issues as platform, severity and code.
fn told(verdict: &Value) -> Vec<[&str; 3]> {
    let issues = verdict["issues"].as_array().unwrap().iter();
    issues.map(|issue| ["platform", "severity", "code"].map(|name| issue[name].as_str().unwrap())).collect()
}

/// A post that names things that no platform has.
fn lost(accounts: &[&String]) -> Value {
    json!({
        "content": "A post", "accounts": accounts,
        "config": { "x": { "quote_tweet_id": "1" }, "reddit": { "subreddit": "missing" } },
    })
}

#[tokio::test]
async fn a_look_up_tells_what_only_the_platform_knows() {
    let world = world().platforms(&["x", "reddit"]).start().await;
    let x = world.connect("x", "ada").await;
    let reddit = world.connect("reddit", "ada").await;
    let mut body = lost(&[&x, &reddit]);
    assert_eq!(told(&validate(&world, &body).await), [] as [[&str; 3]; 0], "no platform is asked by default");
    assert!(world.journal("x", "ada").await.is_empty());
    body["look_up"] = json!(true);
    let verdict = validate(&world, &body).await;
    assert_eq!(
        told(&verdict),
        [["x", "error", "reference_not_found"], ["reddit", "error", "reference_not_found"]],
        "{verdict:#}"
    );
    assert_eq!(verdict["valid"], false);
    assert_eq!(verdict["issues"][0]["path"], json!(["config", "x", "quote_tweet_id"]));
    assert_eq!(verdict["issues"][1]["path"], json!(["config", "reddit", "subreddit"]));
    assert_eq!(world.accepted("x", "ada").await, 0, "it only reads");

    // A post that the check refuses is not looked up.
    let asked = world.journal("x", "ada").await.len();
    body["content"] = json!("a".repeat(281));
    body["accounts"] = json!([x]);
    let verdict = validate(&world, &body).await;
    assert_eq!(told(&verdict), [["x", "error", "text_too_long"]], "{verdict:#}");
    assert_eq!(world.journal("x", "ada").await.len(), asked);

    body["look_up"] = json!("yes");
    let (status, problem) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
    assert_eq!((status.as_u16(), &problem["code"]), (400, &json!("invalid_request")), "{problem}");
}

#[tokio::test]
async fn a_platform_that_does_not_answer_a_look_up_is_a_warning_within_ten_seconds() {
    let world = world().platforms(&["x", "reddit"]).start().await;
    let x = world.connect("x", "ada").await;
    let reddit = world.connect("reddit", "ada").await;
    let hold = json!({ "platform": "x", "account": "ada", "method": "GET", "when": "before" });
    let hold = world.hold(hold).await;
    let mut body = lost(&[&x, &reddit]);
    body["look_up"] = json!(true);
    let began = Instant::now();
    let verdict = validate(&world, &body).await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    hold.until_held().await;
    assert_eq!(
        told(&verdict),
        [["x", "warning", "look_up_failed"], ["reddit", "error", "reference_not_found"]],
        "{verdict:#}"
    );
    assert_eq!(verdict["issues"][0]["path"], json!(["accounts", 0]));
    hold.release().await;
}

#[tokio::test]
async fn a_look_up_that_no_worker_makes_is_a_warning_within_ten_seconds() {
    let world = world().running(&["api"]).platforms(&["x"]).start().await;
    let x = world.connect("x", "ada").await;
    let mut body = lost(&[&x]);
    body["look_up"] = json!(true);
    let began = Instant::now();
    let verdict = validate(&world, &body).await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(told(&verdict), [["x", "warning", "look_up_failed"]], "{verdict:#}");
    assert_eq!(verdict["valid"], true);
}

#[tokio::test]
async fn a_look_up_stays_within_the_bounds_of_the_account() {
    let limits = json!({ "look-ups": { "limit": 1, "window": 3600 } }).to_string();
    let world = world().set("FANFARE_RATE_LIMITS", &limits).platforms(&["x"]).start().await;
    let (ada, bob, eve) =
        (world.connect("x", "ada").await, world.connect("x", "bob").await, world.connect("x", "eve").await);
    let mut body = lost(&[&ada, &bob, &eve]);
    body["look_up"] = json!(true);
    let frozen = freezes::Scope::Account(bob.parse().unwrap());
    freezes::freeze(&world.db, &frozen, None, "a test", &Actor::OPERATOR, now()).await.unwrap();
    let lost = format!("update accounts set status = 'token_expired' where id = '{eve}'");
    tests::sql(&world.db, &lost).await;
    let verdict = validate(&world, &body).await;
    let of = |verdict: &Value, account: &str| {
        let issues = verdict["issues"].as_array().unwrap().iter();
        let own = issues.filter(|issue| issue["account"] == account && issue["code"] != "account_not_active");
        own.map(|issue| format!("{}: {}", issue["code"], issue["message"])).collect::<Vec<_>>()
    };
    assert!(of(&verdict, &ada)[0].contains("reference_not_found"), "{verdict:#}");
    for (account, why) in [(&bob, "frozen"), (&eve, "reconnected")] {
        let [told] = &of(&verdict, account)[..] else { panic!("{verdict:#}") };
        assert!(told.contains("look_up_failed") && told.contains(why), "{told}");
    }
    for account in ["bob", "eve"] {
        assert!(world.journal("x", account).await.is_empty(), "{account}'s platform was asked");
    }
    // Of another post, too: the account is asked about, not the post.
    body["config"]["x"]["quote_tweet_id"] = json!("2");
    let verdict = validate(&world, &body).await;
    let [told] = &of(&verdict, &ada)[..] else { panic!("{verdict:#}") };
    assert!(told.contains("look_up_failed") && told.contains("too often"), "{told}");
}

#[tokio::test]
async fn nobody_looks_up_with_the_accounts_of_somebody_else() {
    let world = world().platforms(&["x"]).start().await;
    let ada = world.connect("x", "ada").await;
    let stranger = organizations::create(&world.db, "Stranger").await.unwrap();
    let mut body = lost(&[&ada]);
    body["look_up"] = json!(true);
    for owner in [Owner { mode: Mode::Live, ..world.owner }, Owner { org: stranger, ..world.owner }] {
        let scopes = vec![Scope::All];
        let new = keys::NewKey { owner, name: "another".into(), scopes, expires_at: None };
        let other = keys::create(&world.db, new, now()).await.unwrap().1;
        let url = format!("{}/posts/validate", world.base);
        let answer = world.http.post(url).bearer_auth(&other).json(&body).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
        let problem: Value = answer.json().await.unwrap();
        assert_eq!(problem["code"], "account_not_found", "{problem}");
    }
    assert!(world.journal("x", "ada").await.is_empty());
}
