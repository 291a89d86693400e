//! Scheduled posts, drafts and canceled posts.

use crate::world;
use chrono::{DateTime, TimeDelta, Utc};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::samples::{film, jpeg};

#[tokio::test]
async fn a_scheduled_post_is_published_at_its_time_and_not_before() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let due = Utc::now() + TimeDelta::seconds(3);
    let post = world.post(json!({ "content": "Later", "accounts": ["ada"], "scheduled_at": due })).await;
    assert_eq!(post["status"], "scheduled");
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published");
    let published: DateTime<Utc> = ended["published_at"].as_str().unwrap().parse().unwrap();
    assert!(published >= due, "published at {published}, due {due}");
}

#[tokio::test]
async fn a_time_in_the_past_is_due_at_once() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let due = "2001-01-01T00:00:00+02:00";
    let body = json!({ "content": "Late", "accounts": ["ada"], "scheduled_at": due });
    // A year that was mistyped is a post that can't be taken back.
    let (_, verdict) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
    assert_eq!(verdict["valid"], true, "{verdict:#}");
    let told = &verdict["issues"][0];
    assert_eq!(
        (&told["severity"], &told["code"]),
        (&json!("warning"), &json!("time_in_past")),
        "{verdict:#}"
    );
    assert_eq!(told["path"], json!(["scheduled_at"]));
    let mut draft = body.clone();
    draft["is_draft"] = json!(true);
    let (_, verdict) = world.call(Method::POST, "/posts/validate", Some(&draft)).await;
    assert_eq!(verdict["issues"], json!([]), "it is not published");
    let post = world.post(body).await;
    assert_eq!(post["status"], "scheduled");
    assert_eq!(post["scheduled_at"], "2000-12-31T22:00:00.000Z");
    assert_eq!(world.ended(&post).await["status"], "published");
}

/// YouTube shows a video at once whose `publishAt` has passed.
#[tokio::test]
async fn a_platforms_own_time_before_the_post_is_told() {
    let world = world().approved().platforms(&["youtube"]).start().await;
    world.connect("youtube", "ada").await;
    let medium = world.medium("a.mp4", None, film(4000, 64 << 10)).await;
    let container = json!({ "content": "Premiere", "media": [{ "id": medium["id"] }] });
    for (due, shown, is_late) in [
        (Value::Null, "2026-01-01T00:00:00Z", true),
        (json!("2031-01-01T00:00:00Z"), "2031-01-01T00:00:00Z", true),
        (json!("2031-01-01T00:00:00Z"), "2031-01-01T00:00:01Z", false),
    ] {
        let settings = json!({ "privacyStatus": "private", "publishAt": shown, "madeForKids": false });
        let body = json!({
            "containers": [container], "accounts": ["ada"], "scheduled_at": due, "config": { "youtube": settings },
        });
        let (_, verdict) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
        let told: Vec<_> =
            verdict["issues"].as_array().unwrap().iter().map(|one| [&one["code"], &one["path"]]).collect();
        let late = [&json!("time_in_past"), &json!(["config", "youtube", "publishAt"])];
        let expected = if is_late { vec![late] } else { Vec::new() };
        assert_eq!((&verdict["valid"], told), (&json!(true), expected), "{due} {shown}: {verdict:#}");
    }
}

#[tokio::test]
async fn a_canceled_post_is_never_published() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let due = Utc::now() + TimeDelta::seconds(2);
    let post = world.post(json!({ "content": "Never", "accounts": ["ada"], "scheduled_at": due })).await;
    let path = format!("/posts/{}", post["id"].as_str().unwrap());
    let (status, body) = world.call(Method::DELETE, &path, None).await;
    assert_eq!((status, body), (StatusCode::OK, json!({ "id": post["id"], "canceled": true })));
    assert_eq!(world.call(Method::GET, &path, None).await.0, StatusCode::NOT_FOUND);
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::NOT_FOUND);
    // A later post of the same account shows that the canceled one's time has passed.
    let after = due + TimeDelta::seconds(1);
    let next = world.post(json!({ "content": "After it", "accounts": ["ada"], "scheduled_at": after })).await;
    assert_eq!(world.ended(&next).await["status"], "published");
    assert_eq!(world.accepted("x", "ada").await, 1);
}

#[tokio::test]
async fn a_draft_is_not_published_until_it_is_released() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let draft = world.post(json!({ "content": "Draft", "accounts": ["ada"], "is_draft": true })).await;
    assert_eq!((&draft["status"], &draft["is_draft"]), (&json!("draft"), &json!(true)));
    // A later post has ended; the draft, if it were being published, would have ended first.
    let next = world.post(json!({ "content": "Not a draft", "accounts": ["ada"] })).await;
    world.ended(&next).await;
    assert_eq!(world.get(&format!("/posts/{}", draft["id"].as_str().unwrap())).await["status"], "draft");
    assert_eq!(world.accepted("x", "ada").await, 1);
}

#[tokio::test]
async fn a_draft_may_be_invalid_until_it_is_released() {
    let world = world().start().await;
    world.connect("instagram", "ada").await;
    let body = json!({ "content": "No picture yet", "accounts": ["ada"] });
    let (status, problem) = world.call(Method::POST, "/posts", Some(&body)).await;
    assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("content_rejected")), "{problem}");
    let body = json!({ "content": "No picture yet", "accounts": ["ada"], "is_draft": true });
    let (_, verdict) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
    assert_eq!(verdict["valid"], false, "validation reports why a release would fail: {verdict}");
    let draft = world.post(body).await;

    let patch = async |body: Value| {
        let path = format!("/posts/{}", draft["id"].as_str().unwrap());
        world.call(Method::PATCH, &path, Some(&body)).await
    };
    let (status, edited) = patch(json!({ "content": "Still none" })).await;
    assert_eq!(
        (status, &edited["status"], &edited["containers"][0]["content"]),
        (StatusCode::OK, &json!("draft"), &json!("Still none"))
    );
    let (status, problem) = patch(json!({ "is_draft": false })).await;
    assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("content_rejected")), "{problem}");
    let picture = world.medium("a.jpg", None, jpeg(640, 640)).await;
    let shown = json!([{ "content": "Here it is", "media": [{ "id": picture["id"] }] }]);
    let (status, released) =
        patch(json!({ "containers": shown, "is_draft": false, "scheduled_at": "2040-01-01T00:00:00Z" }))
            .await;
    assert_eq!((status, &released["status"]), (StatusCode::OK, &json!("scheduled")), "{released}");
    let (status, _) = patch(json!({ "containers": [{ "content": "None" }] })).await;
    assert_eq!(status.as_u16(), 422);
    let (status, _) = patch(json!({ "containers": [{ "content": "None" }], "is_draft": true })).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn a_rescheduled_post_is_published_only_at_its_new_time() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let (soon, far) = (Utc::now() + TimeDelta::seconds(2), Utc::now() + TimeDelta::hours(2));
    let create = async |content: &str, at: DateTime<Utc>| {
        let post = world.post(json!({ "content": content, "accounts": ["ada"], "scheduled_at": at })).await;
        post["id"].as_str().unwrap().to_owned()
    };
    let (sooner, later) = (create("Sooner", far).await, create("Later", soon).await);
    let mv = async |post: &str, at: DateTime<Utc>| {
        let edit = json!({ "scheduled_at": at });
        world.call(Method::PATCH, &format!("/posts/{post}"), Some(&edit)).await
    };
    for (post, at) in [(&sooner, soon), (&later, far)] {
        let (status, moved) = mv(post, at).await;
        assert_eq!((status, &moved["status"]), (StatusCode::OK, &json!("scheduled")), "{moved}");
    }
    let published = world.ended(&json!({ "id": sooner })).await;
    assert_eq!(published["status"], "published");
    assert!(published["published_at"].as_str().unwrap().parse::<DateTime<Utc>>().unwrap() >= soon);
    assert_eq!(world.accepted("x", "ada").await, 1);
    assert_eq!(world.get(&format!("/posts/{later}")).await["status"], "scheduled");
    let (status, problem) = mv(&sooner, far).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("publishing_started")));
}
