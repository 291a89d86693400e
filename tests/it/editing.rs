//! A post can be edited until publishing starts. A lock on its row decides between the two.

use crate::world;
use chrono::{TimeDelta, Utc};
use domain::PostId;
use futures::{StreamExt, stream};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use tests::{World, if_right, samples::png, wait_until};

fn path(post: &Value) -> String {
    format!("/posts/{}", post["id"].as_str().unwrap())
}

async fn patch(world: &World, post: &Value, body: Value) -> (StatusCode, Value) {
    world.call(Method::PATCH, &path(post), Some(&body)).await
}

#[tokio::test]
async fn an_edit_replaces_the_given_fields_and_keeps_the_others() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let bob = world.connect("bluesky", "bob.bsky.social").await;
    let at = tests::soon();
    let body = json!({
        "containers": [{ "content": "One" }, { "content": "Two" }],
        "accounts": ["ada"], "scheduled_at": at, "external_ref": "ref",
        "config": { "x": { "reply_settings": "following" }, "youtube": { "title": "T" } },
    });
    let post = world.post(body).await;
    let same = |key: &str, edited: &Value| assert_eq!(edited[key], post[key], "{key}");
    let texts = |post: &Value| {
        post["containers"].as_array().unwrap().iter().map(|text| text["content"].clone()).collect::<Vec<_>>()
    };

    let (status, edited) = patch(&world, &post, json!({ "content": "Three" })).await;
    assert_eq!((status, texts(&edited)), (StatusCode::OK, vec![json!("Three")]), "{edited}");
    for key in ["id", "status", "scheduled_at", "default_config", "external_ref", "created_at"] {
        same(key, &edited);
    }
    assert_ne!(edited["updated_at"], post["updated_at"]);

    let accounts = json!({ "accounts": [bob, "ada"] });
    let (_, edited) = patch(&world, &post, accounts).await;
    let mut found: Vec<_> = edited["targets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|target| target["social_account_id"].clone())
        .collect();
    found.sort_by_key(Value::to_string);
    let mut expected = vec![json!(ada), json!(bob)];
    expected.sort_by_key(Value::to_string);
    assert_eq!((found, texts(&edited)), (expected, vec![json!("Three")]));
    let kept =
        edited["targets"].as_array().unwrap().iter().any(|target| target["id"] == post["targets"][0]["id"]);
    assert!(kept, "an account that stays keeps its target");

    let (_, edited) = patch(&world, &post, json!({ "x": { "reply_settings": "verified" } })).await;
    let expected = json!({ "x": { "reply_settings": "verified" }, "youtube": { "title": "T" } });
    assert_eq!(edited["default_config"], expected);
    let (_, edited) = patch(&world, &post, json!({ "config": {} })).await;
    assert_eq!(edited["default_config"], json!({}));

    // After the relay has queued the post, only the edit changes it.
    let is_queued =
        |post: &Value| post["targets"].as_array().unwrap().iter().all(|one| one["status"] == "queued");
    world.until(post["id"].as_str().unwrap(), "queued targets", is_queued).await;
    // The same `external_ref` is no change, and neither is an empty body.
    assert_eq!(patch(&world, &post, json!({ "external_ref": "ref" })).await.0, StatusCode::OK);
    let (status, edited) = patch(&world, &post, json!({})).await;
    assert_eq!((status, &edited["scheduled_at"]), (StatusCode::OK, &json!(at)));
    assert_eq!(edited, world.get(&path(&post)).await, "the response is the post");

    // Without a scheduled time the edited post is published at once.
    let (_, edited) = patch(&world, &post, json!({ "scheduled_at": null })).await;
    assert_eq!((&edited["status"], &edited["scheduled_at"]), (&json!("queued"), &Value::Null));
    assert_eq!(world.ended(&post).await["status"], "published");
    assert_eq!(
        (world.accepted("x", "ada").await, world.accepted("bluesky", "bob.bsky.social").await),
        (1, 1)
    );
}

#[tokio::test]
async fn a_new_text_keeps_the_media_of_a_single_container() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let picture = world.medium("a.png", None, png(64, 64)).await;
    let shown = json!([{ "id": picture["id"], "alt_text": "A bridge at dawn" }]);
    let at = "2040-01-02T03:04:05.000Z";
    let main = json!({ "content": "Lok", "media": shown });
    let post = world.post(json!({ "containers": [main], "accounts": ["ada"], "scheduled_at": at })).await;
    assert_eq!(post["containers"][0]["media"], shown, "{post:#}");

    let (status, edited) = patch(&world, &post, json!({ "content": "Look" })).await;
    assert_eq!(status, StatusCode::OK, "{edited}");
    assert_eq!(edited["containers"].as_array().unwrap().len(), 1);
    let main = &edited["containers"][0];
    assert_eq!((&main["content"], &main["media"]), (&json!("Look"), &shown));
    assert_eq!(world.get(&path(&post)).await["containers"], edited["containers"]);

    // The containers of a response can be sent back, and replace all containers.
    let (_, edited) = patch(&world, &post, json!({ "containers": edited["containers"] })).await;
    assert_eq!(edited["containers"][0]["media"], shown);
    let two = json!([{ "content": "One", "media": shown }, { "content": "Two" }]);
    let (_, edited) = patch(&world, &post, json!({ "containers": two })).await;
    assert_eq!((&edited["containers"][0]["media"], &edited["containers"][1]["media"]), (&shown, &json!([])));
    let (_, edited) = patch(&world, &post, json!({ "content": "One for both" })).await;
    assert_eq!(edited["containers"].as_array().unwrap().len(), 1);
    assert_eq!(edited["containers"][0]["media"], json!([]), "several containers are replaced as a whole");

    let (_, edited) =
        patch(&world, &post, json!({ "containers": [{ "content": "Lok", "media": shown }] })).await;
    assert_eq!(edited["containers"][0]["media"], shown);
    patch(&world, &post, json!({ "content": "Look", "scheduled_at": null })).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    let page =
        world.http.get(ended["targets"][0]["platform_post_url"].as_str().unwrap()).send().await.unwrap();
    let page = page.text().await.unwrap();
    assert!(page.contains("Look") && page.contains("A bridge at dawn"), "{page}");
}

#[tokio::test]
async fn an_invalid_edit_changes_nothing() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let post = world
        .post(json!({
            "content": "Same", "accounts": ["ada"], "scheduled_at": "2040-01-01T00:00:00Z", "external_ref": "ref",
        }))
        .await;
    let before = world.get(&path(&post)).await;
    for (body, status, code, paths) in [
        (json!({ "content": null }), 400, "invalid_request", json!([["content"]])),
        (json!({ "is_draft": null }), 400, "invalid_request", json!([["is_draft"]])),
        (json!({ "config": null, "x": null }), 400, "invalid_request", json!([["config"], ["x"]])),
        (json!({ "external_ref": "other" }), 400, "invalid_request", json!([["external_ref"]])),
        (json!({ "external_ref": null }), 400, "invalid_request", json!([["external_ref"]])),
        (json!({ "content": "" }), 400, "invalid_request", json!([["content"]])),
        (json!({ "accounts": [] }), 400, "invalid_request", json!([["accounts"]])),
        (json!({ "scheduled_at": "soon" }), 400, "invalid_request", json!([["scheduled_at"]])),
        (
            json!({ "content": "a", "containers": [{ "content": "b" }] }),
            400,
            "invalid_request",
            json!([["containers"]]),
        ),
        (
            json!({ "queued_from_account": "ada", "is_draft": true }),
            400,
            "invalid_request",
            json!([["queued_from_account"]]),
        ),
        (json!({ "queued_from_account": "bob" }), 422, "unprocessable", json!([["queued_from_account"]])),
        (json!({ "accounts": ["nobody"] }), 422, "account_not_found", json!([["accounts", 0]])),
        (json!({ "content": "a".repeat(300) }), 422, "content_rejected", json!([["content"]])),
        (
            json!({ "config": { "x": { "reply_settings": 7 } } }),
            422,
            "content_rejected",
            json!([["config", "x", "reply_settings"]]),
        ),
    ] {
        let (found, problem) = patch(&world, &post, body.clone()).await;
        assert_eq!((found.as_u16(), &problem["code"]), (status, &json!(code)), "{body}: {problem}");
        let mut reported: Vec<_> =
            problem["errors"].as_array().unwrap().iter().map(|issue| issue["path"].clone()).collect();
        reported.sort_by_key(Value::to_string);
        assert_eq!(json!(reported), paths, "{body}");
    }
    assert_eq!(world.get(&path(&post)).await, before);
    let nobody = format!("/posts/{}", uuid::Uuid::now_v7());
    for path in [nobody.as_str(), "/posts/7"] {
        let (status, _) = world.call(Method::PATCH, path, Some(&json!({ "content": "a" }))).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    }
    world.call(Method::DELETE, &path(&post), None).await;
    assert_eq!(patch(&world, &post, json!({ "content": "a" })).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_draft_is_released_and_a_scheduled_post_becomes_a_draft() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let soon = Utc::now() + TimeDelta::seconds(1);
    let post = world.post(json!({ "content": "Not yet", "accounts": ["ada"], "scheduled_at": soon })).await;
    let (status, draft) = patch(&world, &post, json!({ "is_draft": true })).await;
    assert_eq!(
        (status, &draft["status"], &draft["is_draft"]),
        (StatusCode::OK, &json!("draft"), &json!(true))
    );
    assert_eq!(draft["scheduled_at"], post["scheduled_at"], "a draft keeps its scheduled time");
    // A post that was due later is published, so that the draft's time has passed.
    let after = soon + TimeDelta::seconds(1);
    let other =
        world.post(json!({ "content": "After it", "accounts": ["ada"], "scheduled_at": after })).await;
    assert_eq!(world.ended(&other).await["status"], "published");
    assert_eq!(world.get(&path(&post)).await["status"], "draft");
    assert_eq!(world.accepted("x", "ada").await, 1);

    let (_, released) = patch(&world, &post, json!({ "is_draft": false, "content": "Now" })).await;
    assert_eq!((&released["status"], &released["is_draft"]), (&json!("scheduled"), &json!(false)));
    assert_eq!(world.ended(&post).await["status"], "published");
    let fresh = world.post(json!({ "content": "Fresh", "accounts": ["ada"], "is_draft": true })).await;
    let (_, released) = patch(&world, &fresh, json!({ "is_draft": false })).await;
    assert_eq!(released["status"], "queued");
    assert_eq!(world.ended(&fresh).await["status"], "published");
    assert_eq!(world.accepted("x", "ada").await, 3);

    // The workflow of a draft, which waits without a time-out, ends when the draft is deleted.
    let waiting = world.post(json!({ "content": "Never", "accounts": ["ada"], "scheduled_at": after })).await;
    patch(&world, &waiting, json!({ "is_draft": true })).await;
    assert_eq!(world.call(Method::DELETE, &path(&waiting), None).await.0, StatusCode::OK);
}

/// Waits until `statements` statements wait for a post's row, which a transaction of the test locks. They get
/// the lock in the order in which they began to wait.
async fn waiting(world: &World, post: PostId, statements: i64) {
    let count = "select count(*) from pg_locks join posts
         on page = (posts.ctid::text::point)[0] and tuple = (posts.ctid::text::point)[1]
         where locktype = 'tuple' and relation = 'posts'::regclass and posts.id = $1";
    let look = async || {
        let waiting = sqlx::query_scalar(count).bind(post.0).fetch_one(&world.db).await.unwrap();
        if_right(waiting, |waiting: &i64| *waiting == statements)
    };
    wait_until("statements to wait for the post's row", look).await;
}

/// Both wait for the post's row, in either order, until the test releases it.
#[tokio::test]
async fn an_edit_and_the_first_attempt_never_both_succeed() {
    let world = world().start().await;
    world.connect("bluesky", "ada.bsky.social").await;
    for edit_is_first in [true, false] {
        // Late enough that the test locks the row first.
        let due = Utc::now() + TimeDelta::seconds(4);
        let body = json!({ "content": "Before", "accounts": ["ada.bsky.social"], "scheduled_at": due });
        let post = world.post(body).await;
        let id: PostId = post["id"].as_str().unwrap().parse().unwrap();
        let mut holding = ::store::begin(&world.db).await.unwrap();
        let row = sqlx::query("select from posts where id = $1 for update").bind(id.0);
        row.fetch_one(&mut *holding).await.unwrap();
        assert!(Utc::now() < due, "the post was due before its row was locked");
        let edit = async {
            if !edit_is_first {
                waiting(&world, id, 1).await;
            }
            patch(&world, &post, json!({ "content": "After" })).await
        };
        let release = async {
            waiting(&world, id, 2).await;
            holding.commit().await.unwrap();
        };
        let ((status, answer), ()) = tokio::join!(edit, release);
        let ended = world.ended(&post).await;
        let published = if edit_is_first {
            assert_eq!(status, StatusCode::OK, "{answer}");
            "After"
        } else {
            assert_eq!((status, &answer["code"]), (StatusCode::CONFLICT, &json!("publishing_started")));
            "Before"
        };
        assert_eq!(
            (&ended["status"], &ended["containers"][0]["content"]),
            (&json!("published"), &json!(published))
        );
        assert!(page(&world, &ended).await.contains(published), "{published} is published");
    }
    assert_eq!(world.accepted("bluesky", "ada.bsky.social").await, 2);
}

/// Returns the platform's page of a post's first target.
async fn page(world: &World, post: &Value) -> String {
    let url = post["targets"][0]["platform_post_url"].as_str().unwrap();
    world.http.get(url).send().await.unwrap().text().await.unwrap()
}

/// The edits race with the first attempts.
#[tokio::test]
async fn the_published_text_matches_the_response_to_the_edit() {
    const POSTS: usize = 40;
    let world = world().start().await;
    world.connect("bluesky", "ada.bsky.social").await;
    let limits = json!({ "limits": { "bluesky.requests": 1_000_000 } });
    world.set_sandbox(limits).await;
    // Number of reads of the post before each edit, which delays the edit.
    let looks = AtomicUsize::new(0);
    let (world, looks) = (&world, &looks);
    stream::iter(0..POSTS)
        .map(async |number| {
            let body = json!({ "content": format!("before {number}"), "accounts": ["ada.bsky.social"] });
            let post = world.post(body).await;
            for _ in 0..looks.load(Ordering::Relaxed) {
                world.get(&path(&post)).await;
            }
            let (status, answer) = patch(world, &post, json!({ "content": format!("after {number}") })).await;
            // Delays the next edits after an edit that succeeded, and hastens them after one that failed.
            let (word, other) = match status {
                StatusCode::OK => {
                    looks.fetch_add(2, Ordering::Relaxed);
                    ("after", "before")
                }
                _ => {
                    assert_eq!(
                        (status, &answer["code"]),
                        (StatusCode::CONFLICT, &json!("publishing_started"))
                    );
                    let fewer = |looks: usize| Some(looks / 2);
                    looks.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).expect("it is `Some`");
                    ("before", "after")
                }
            };
            let ended = world.ended(&post).await;
            assert_eq!(ended["status"], "published", "{ended:#}");
            assert_eq!(ended["containers"][0]["content"], format!("{word} {number}"));
            let page = page(world, &ended).await;
            assert!(page.contains(&format!("{word} {number}")), "{status}, but published: {page}");
            assert!(!page.contains(&format!("{other} {number}")), "{status}, but published: {page}");
        })
        .buffer_unordered(8)
        .collect::<Vec<()>>()
        .await;
    assert_eq!(world.accepted("bluesky", "ada.bsky.social").await, POSTS);
}

#[tokio::test]
async fn editing_and_deleting_need_no_temporal() {
    let mut world = world().running(&[]).start().await;
    world.connect("x", "ada").await;
    let temporal = world.set("TEMPORAL_ADDRESS", "http://127.0.0.1:9").expect("the address was set");
    world.run("api").await;
    let create = async |content: &str| world.post(json!({ "content": content, "accounts": ["ada"] })).await;
    let (edited, deleted) = (create("Before").await, create("Never").await);
    // The workflow of a deleted post ends, in whichever order the outbox sends the start and the deletion.
    for number in 0..5 {
        let body =
            json!({ "content": format!("Far {number}"), "accounts": ["ada"], "scheduled_at": tests::soon() });
        let far = world.post(body).await;
        assert_eq!(world.call(Method::DELETE, &path(&far), None).await.0, StatusCode::OK);
    }
    assert_eq!(patch(&world, &edited, json!({ "content": "After" })).await.0, StatusCode::OK);
    assert_eq!(world.call(Method::DELETE, &path(&deleted), None).await.0, StatusCode::OK);
    world.kill("api").await;
    world.set("TEMPORAL_ADDRESS", &temporal);
    world.run("all").await;
    let ended = world.ended(&edited).await;
    assert_eq!(
        (&ended["status"], &ended["containers"][0]["content"]),
        (&json!("published"), &json!("After"))
    );
    assert_eq!(world.accepted("x", "ada").await, 1);
}

#[tokio::test]
async fn metadata_is_merged_by_key_and_cleared_by_null() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let draft = |metadata: Value| json!({ "content": "a", "accounts": ["ada"], "is_draft": true, "metadata": metadata });
    let post = world.post(draft(json!({ "a": "1", "b": "2" }))).await;
    for (changes, expected) in [
        (json!({ "metadata": { "b": "3", "c": "" } }), json!({ "a": "1", "b": "3", "c": "" })),
        (json!({ "metadata": { "a": null, "z": null } }), json!({ "b": "3", "c": "" })),
        (json!({ "content": "b" }), json!({ "b": "3", "c": "" })),
        (json!({ "metadata": {} }), json!({ "b": "3", "c": "" })),
        (json!({ "metadata": null }), json!({})),
    ] {
        let (status, edited) = patch(&world, &post, changes.clone()).await;
        assert_eq!((status, &edited["metadata"]), (StatusCode::OK, &expected), "{changes}");
        assert_eq!(world.get(&path(&post)).await["metadata"], expected, "{changes}");
    }

    let keys = |prefix: &str, count: usize| -> Value {
        (0..count)
            .map(|number| (format!("{prefix}{number}"), json!("v")))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    assert_eq!(patch(&world, &post, json!({ "metadata": keys("a", 50) })).await.0, StatusCode::OK);
    let (status, problem) = patch(&world, &post, json!({ "metadata": { "one": "more" } })).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
    let issue = &problem["errors"][0];
    assert_eq!((&issue["path"], &issue["maximum"]), (&json!(["metadata"]), &json!(50)), "{problem}");

    for (metadata, path, code) in [
        (keys("a", 51), json!(["metadata"]), "too_big"),
        (json!({ "a": 7 }), json!(["metadata", "a"]), "invalid_type"),
        (json!({ "a": "v".repeat(501) }), json!(["metadata", "a"]), "too_big"),
        (json!({ "a b": "v" }), json!(["metadata", "a b"]), "custom"),
        (json!("a"), json!(["metadata"]), "invalid_type"),
    ] {
        let body = json!({ "metadata": metadata });
        let (edited, problem) = patch(&world, &post, body).await;
        let (created, _) = world.call(Method::POST, "/posts", Some(&draft(metadata.clone()))).await;
        assert_eq!((edited, created), (StatusCode::BAD_REQUEST, StatusCode::BAD_REQUEST), "{problem}");
        assert_eq!(
            (&problem["errors"][0]["path"], &problem["errors"][0]["code"]),
            (&path, &json!(code)),
            "{problem}"
        );
        let batch = json!({ "posts": [draft(json!({ "ok": "yes" })), draft(metadata)] });
        let (_, outcomes) = world.call(Method::POST, "/posts/batch", Some(&batch)).await;
        assert_eq!((&outcomes["data"][0]["index"], &outcomes["errors"][0]["index"]), (&json!(0), &json!(1)));
        assert_eq!(outcomes["errors"][0]["errors"][0]["path"], path, "{outcomes}");
    }
}
