//! Validating a post reports the same issues as creating it.

use crate::world;
use chrono::TimeDelta;
use domain::{Mode, Owner};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use store::{bounds::unbounded, posts::duplicates};

#[tokio::test]
async fn validation_reports_each_account_and_stores_nothing() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let bob = world.connect("x", "bob").await;
    let sky = world.connect("bluesky", "ada.bsky.social").await;
    let validate = async |body: &Value| world.call(Method::POST, "/posts/validate", Some(body)).await;
    let fit = json!({ "content": "Fits", "accounts": [ada, bob, sky], "external_ref": "ref" });
    let (status, verdict) = validate(&fit).await;
    assert_eq!((status, &verdict["valid"], &verdict["issues"]), (StatusCode::OK, &json!(true), &json!([])));

    // 290 characters fit on Bluesky but not on X, whose accounts are reported one by one.
    let long = json!({
        "containers": [{ "content": "Fits" }, { "content": "a".repeat(290) }],
        "accounts": [ada, sky, bob],
        "x": { "reply_settings": "nobody" },
    });
    let (status, verdict) = validate(&long).await;
    assert_eq!((status, &verdict["valid"]), (StatusCode::OK, &json!(false)), "{verdict:#}");
    let mut reported: Vec<_> = verdict["issues"]
        .as_array()
        .unwrap()
        .iter()
        .map(|issue| {
            json!([issue["account"], issue["platform"], issue["severity"], issue["code"], issue["path"]])
        })
        .collect();
    reported.sort_by_key(Value::to_string);
    let mut expected: Vec<_> = [&ada, &bob]
        .into_iter()
        .flat_map(|account| {
            [
                json!([account, "x", "error", "text_too_long", ["containers", 1, "content"]]),
                json!([account, "x", "error", "setting_invalid", ["x", "reply_settings"]]),
            ]
        })
        .collect();
    expected.sort_by_key(Value::to_string);
    assert_eq!(reported, expected, "{verdict:#}");
    let (status, problem) = world.call(Method::POST, "/posts", Some(&long)).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (422, &json!("content_rejected")),
        "creating it fails too"
    );

    for (body, status, code) in [
        (json!({}), 400, "invalid_request"),
        (json!({ "content": "a", "accounts": ["nobody"] }), 422, "account_not_found"),
        (
            json!({ "containers": [{ "content": "", "media": [{ "id": "none" }] }], "accounts": [ada] }),
            422,
            "media_not_ready",
        ),
    ] {
        let (found, problem) = validate(&body).await;
        assert_eq!((found.as_u16(), &problem["code"]), (status, &json!(code)), "{body}");
    }
    assert_eq!(world.get("/posts").await["data"], json!([]));
    assert_eq!(world.post(fit).await["external_ref"], "ref", "validating stored no ref");
}

#[tokio::test]
async fn the_same_text_on_the_same_account_within_a_day_is_a_warning() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let bob = world.connect("x", "bob").await;
    let warned = async |body: Value| {
        let (status, verdict) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
        assert_eq!((status, &verdict["valid"]), (StatusCode::OK, &json!(true)), "never refused: {verdict:#}");
        let issues = verdict["issues"].as_array().unwrap().clone();
        for issue in &issues {
            assert_eq!((&issue["severity"], &issue["code"]), (&json!("warning"), &json!("duplicate_text")));
        }
        issues
    };
    let hello = json!({ "content": "Hello  World", "accounts": [ada, bob] });
    assert_eq!(warned(hello.clone()).await, [] as [Value; 0]);
    let post = world.post(json!({ "content": "Hello World", "accounts": [ada] })).await;
    world.ended(&post).await;

    let issues = warned(hello.clone()).await;
    assert_eq!(issues.len(), 1, "{issues:#?}");
    assert_eq!((&issues[0]["account"], &issues[0]["path"]), (&json!(ada), &json!(["content"])));
    assert!(issues[0]["message"].as_str().unwrap().contains(post["id"].as_str().unwrap()), "{issues:#?}");
    for (content, expected) in [(" hello\nworld ", 1), ("Hello World!", 0), ("HelloWorld", 0)] {
        let body = json!({ "containers": [{ "content": content }], "accounts": [ada] });
        assert_eq!(warned(body).await.len(), expected, "{content:?}");
    }
    let at = |hours: i64| domain::event::timestamp(tests::now() + TimeDelta::hours(hours));
    let planned =
        |hours: i64| json!({ "content": "Hello World", "accounts": [ada], "scheduled_at": at(hours) });
    assert_eq!((warned(planned(23)).await.len(), warned(planned(25)).await.len()), (1, 0));
    // A creation is not refused either.
    let (status, later) = world.call(Method::POST, "/posts", Some(&planned(60))).await;
    assert_eq!(status, StatusCode::CREATED);
    assert_eq!((warned(planned(40)).await.len(), warned(planned(30)).await.len()), (1, 0));
    // The other mode has its own posts.
    let live = Owner { mode: Mode::Live, ..world.owner };
    for (owner, expected) in [(world.owner, 1), (live, 0)] {
        let ids = [ada.parse().unwrap()];
        let (due, window) = (tests::now(), TimeDelta::hours(24));
        let found =
            duplicates::find(&world.db, unbounded(owner), &ids, "Hello World", due, window).await.unwrap();
        assert_eq!(found.len(), expected, "{owner:?}");
    }
    // Neither what was canceled nor what is older than a day counts, nor a draft.
    let path = format!("/posts/{}", later["id"].as_str().unwrap());
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
    world
        .post(
            json!({ "content": "Hello World", "accounts": [ada], "is_draft": true, "scheduled_at": at(50) }),
        )
        .await;
    assert_eq!(warned(planned(40)).await.len(), 0);
    let older = format!(
        "update targets set published_at = now() - interval '25 hours' where status = 'published' and account_id = '{ada}'"
    );
    tests::sql(&world.db, &older).await;
    assert_eq!(warned(hello).await.len(), 0);
}

/// Somebody ends their subscription between the creation of a post and its time.
#[tokio::test]
async fn a_post_is_checked_again_before_it_is_published() {
    let world = world().platforms(&["x"]).start().await;
    let ada = world.connect("x", "ada").await;
    let becomes = async |kind: &str| {
        let sql = format!("update accounts set account_type = '{kind}' where id = '{ada}'");
        tests::sql(&world.db, &sql).await;
    };
    becomes("premium").await;
    let due = domain::event::timestamp(tests::now() + TimeDelta::seconds(3));
    let body = json!({ "content": "a".repeat(300), "accounts": [ada], "scheduled_at": due });
    let post = world.post(body).await;
    becomes("profile").await;
    let ended = world.ended(&post).await;
    let target = &ended["targets"][0];
    assert_eq!(
        (&target["status"], &target["error_code"]),
        (&json!("dead"), &json!("rejected_422")),
        "{target:#}"
    );
    let message = target["error_message"].as_str().unwrap();
    assert!(message.contains("X would refuse the post: x takes 280 weighted characters"), "{message}");
    assert_eq!(world.accepted("x", "ada").await, 0);
}
