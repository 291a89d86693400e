//! Posts with media that a platform processes before publishing, and errors between the steps.

use crate::{
    replay::{marked, replay},
    world,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{
    Receiver, World,
    samples::{film, gif},
};

/// Posts a GIF, which X processes before it can be published.
async fn post_gif(world: &World, content: &str) -> Value {
    let medium = world.medium("a.gif", None, gif(2)).await;
    let container = json!({ "content": content, "media": [{ "id": medium["id"] }] });
    world.post(json!({ "containers": [container], "accounts": ["ada"] })).await
}

/// Returns the number of X's publishing calls in the journal.
async fn publishing_calls(world: &World) -> usize {
    let entries = world.journal("x", "ada").await;
    entries.iter().filter(|entry| entry["method"] == "POST" && entry["path"] == "/2/tweets").count()
}

#[tokio::test]
async fn processing_that_never_finishes_fails_when_its_window_closes() {
    // X's window of ten minutes is six seconds at this pace.
    let world = world().start().await;
    world.connect("x", "ada").await;
    world.set_sandbox(json!({ "processing_ms": 3_600_000 })).await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let post = post_gif(&world, "Never done").await;
    let ended = world.ended(&post).await;
    let target = &ended["targets"][0];
    assert_eq!((&ended["status"], &target["status"]), (&json!("failed"), &json!("dead")), "{ended:#}");
    assert_eq!((&target["error_code"], &target["attempts"]), (&json!("poll_timeout"), &json!(1)));
    assert_eq!(target["next_attempt_at"], Value::Null);
    assert_eq!(publishing_calls(&world).await, 0);
    receiver.events(&["post.target.failed", "post.error"]).await;
}

#[tokio::test]
async fn a_call_that_fails_after_processing_has_the_full_retry_budget() {
    let world = world().pace(0.001).start().await;
    world.connect("x", "ada").await;
    world.set_sandbox(json!({ "processing_ms": 1 })).await;
    let post = post_gif(&world, "Refused #sandbox-503").await;
    let ended = world.ended(&post).await;
    let target = &ended["targets"][0];
    assert_eq!((&ended["status"], &target["status"]), (&json!("failed"), &json!("dead")), "{ended:#}");
    assert_eq!(target["error_code"], "upstream_503");
    assert_eq!(publishing_calls(&world).await, 10, "ten attempts");
    let timeline = world.get(&format!("/posts/{}/timeline", post["id"].as_str().unwrap())).await;
    let failures = timeline["data"].as_array().unwrap().iter().filter(|entry| entry["kind"] == "failure");
    assert!(failures.count() >= 9, "{timeline:#}");
}

/// Posts a video to TikTok, which accepts it before it is processed, and returns the ended post.
async fn post_video(world: &World, content: &str, settings: Value) -> Value {
    world.connect("tiktok", "ada").await;
    let medium = world.medium("a.mp4", None, film(4000, 64 << 10)).await;
    let container = json!({ "content": content, "media": [{ "id": medium["id"] }] });
    let post = json!({ "containers": [container], "accounts": ["ada"], "config": { "tiktok": settings } });
    world.ended(&world.post(post).await).await
}

/// Returns the number of TikTok's posts that were begun, by the journal.
async fn begun_videos(world: &World) -> usize {
    let entries = world.journal("tiktok", "ada").await;
    entries.iter().filter(|entry| entry["path"] == "/v2/post/publish/video/init/").count()
}

#[tokio::test]
async fn an_accepted_post_that_the_platform_gives_up_is_posted_again() {
    let world = world().approved().pace(0.1).platforms(&["tiktok"]).start().await;
    let settings = json!({ "privacy_level": "PUBLIC_TO_EVERYONE" });
    let ended = post_video(&world, "Its own error #sandbox-internal", settings).await;
    let target = &ended["targets"][0];
    assert_eq!((&target["status"], &target["attempts"]), (&json!("published"), &json!(2)), "{target:#}");
    assert_eq!(begun_videos(&world).await, 2);
}

/// TikTok passes a post for the inbox on to the creator, who finishes it.
#[tokio::test]
async fn the_timeline_says_what_a_platform_reports_about_a_live_post() {
    let world = world().approved().pace(0.1).platforms(&["tiktok"]).start().await;
    let ended = post_video(&world, "To be finished", json!({ "post_mode": "MEDIA_UPLOAD" })).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    let timeline = world.get(&format!("/posts/{}/timeline", ended["id"].as_str().unwrap())).await;
    let entries = timeline["data"].as_array().unwrap();
    let reported = entries.iter().filter(|entry| entry["kind"] == "platform").collect::<Vec<_>>();
    assert_eq!(reported.len(), 1, "{timeline:#}");
    assert!(reported[0]["message"].as_str().unwrap().contains("inbox"), "{timeline:#}");
}

/// Makes the database reject the first updates that match a condition, each with a different error.
async fn break_updates(world: &World, of: &str) {
    let codes = ["57014", "40P01", "40001", "25006", "53100", "53200"];
    let raise = codes.iter().enumerate().map(|(nth, code)| {
        format!("if nth = {} then raise exception 'not now' using errcode = '{code}'; end if;", nth + 1)
    });
    let raise: String = raise.collect();
    tests::sql(
        &world.db,
        &format!(
            "create sequence failures;
             create function fail() returns trigger language plpgsql as $$
             declare nth bigint := nextval('failures');
             begin {raise} return new; end $$;
             create trigger fail before update on publications for each row when ({of}) execute function fail();"
        ),
    )
    .await;
}

#[tokio::test]
async fn a_platform_id_survives_database_errors() {
    let world = world().own().start().await;
    world.connect("x", "ada").await;
    break_updates(&world, "old.platform_id is null and new.platform_id is not null").await;
    let post = world.post(json!({ "content": "Kept", "accounts": ["ada"] })).await;
    let ended = world.ended(&post).await;
    assert_eq!(
        (&ended["status"], &ended["targets"][0]["attempts"]),
        (&json!("published"), &json!(1)),
        "{ended:#}"
    );
    let entries = world.journal("x", "ada").await;
    let reads = entries.iter().filter(|entry| entry["method"] == "GET");
    assert_eq!(reads.count(), 0, "nothing had to be looked up: {entries:#?}");
    assert_eq!(world.accepted("x", "ada").await, 1);
}

#[tokio::test]
async fn an_accepted_call_survives_database_errors() {
    let world = world().approved().own().platforms(&["google_business"]).start().await;
    world.connect("google_business", "ada").await;
    break_updates(&world, "new.accepted and not old.accepted").await;
    let post = world.post(json!({ "content": "Kept", "accounts": ["ada"] })).await;
    let ended = world.ended(&post).await;
    assert_eq!(
        (&ended["status"], &ended["targets"][0]["attempts"]),
        (&json!("published"), &json!(1)),
        "{ended:#}"
    );
    assert_eq!(world.accepted("google_business", "ada").await, 1);
}

#[tokio::test]
async fn a_post_whose_url_is_unknown_is_published_with_its_comments() {
    let world = world().start().await;
    world.connect("facebook", "ada").await;
    let hold = json!({ "platform": "facebook", "method": "GET", "when": "before" });
    let hold = world.hold(hold).await;
    let post = world
        .post(json!({ "containers": [{ "content": "Main" }, { "content": "Comment" }], "accounts": ["ada"] }))
        .await;
    world.completed(&post, 1).await;
    let id = post["id"].as_str().unwrap();
    let live = world.get(&format!("/posts/{id}")).await;
    assert_eq!(live["status"], "published", "{live:#}");
    // The URL is requested again until the platform returns it.
    let reported =
        world.until(id, "the URL", |post| post["targets"][0]["platform_post_url"].is_string()).await;
    assert_eq!(reported["targets"][0]["error_code"], Value::Null, "{reported:#}");
    assert_eq!(world.accepted("facebook", "ada").await, 2);
    hold.release().await;
}

async fn deleted_in_doubt(content: &str, accepted: usize) {
    // Slow enough that the post is deleted before it is looked up.
    let world = world().pace(0.2).start().await;
    world.connect("x", "ada").await;
    let post = world.post(json!({ "content": marked(content), "accounts": ["ada"] })).await;
    let id = post["id"].as_str().unwrap();
    world.until(id, "its first failure", |post| post["targets"][0]["status"] == "failed").await;
    let (status, _) = world.call(Method::DELETE, &format!("/posts/{id}"), None).await;
    assert_eq!(status, StatusCode::OK);
    let target: domain::TargetId = post["targets"][0]["id"].as_str().unwrap().parse().unwrap();
    let workflow = workflows::publish_target::id(target);
    replay(&world, "publish_target-deleted", &workflow).await;
    assert_eq!(world.accepted("x", "ada").await, accepted);
    assert_eq!(publishing_calls(&world).await, 1, "nothing is published again");
}

#[tokio::test]
async fn a_deleted_post_in_doubt_is_looked_up_and_not_published_again() {
    deleted_in_doubt("Gone #sandbox-drop", 0).await;
    deleted_in_doubt("There #sandbox-lost-reply", 1).await;
}

#[tokio::test]
async fn a_post_deleted_between_two_attempts_is_not_published() {
    let world = world().pace(1.0).start().await;
    world.connect("bluesky", "ada.bsky.social").await;
    let content = marked("Later #sandbox-429x1");
    let post = world.post(json!({ "content": content, "accounts": ["ada.bsky.social"] })).await;
    let id = post["id"].as_str().unwrap();
    world.until(id, "a failed attempt", |post| post["targets"][0]["status"] == "failed").await;
    let (status, deleted) = world.call(Method::DELETE, &format!("/posts/{id}"), None).await;
    assert_eq!((status, &deleted["canceled"]), (StatusCode::OK, &json!(true)));
    // Its workflow wakes up, finds nothing to do, and ends.
    let target: domain::TargetId = post["targets"][0]["id"].as_str().unwrap().parse().unwrap();
    let workflow = workflows::publish_target::id(target);
    replay(&world, "publish_target-withdrawn", &workflow).await;
    assert_eq!(world.accepted("bluesky", "ada.bsky.social").await, 0);
}

/// X's time limit for a publishing call is eight seconds at this pace.
#[tokio::test]
async fn a_call_that_is_never_answered_ends_at_its_deadline() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let post = world.post(json!({ "content": "Silence #sandbox-stuckx1", "accounts": ["ada"] })).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    assert_eq!(world.accepted("x", "ada").await, 1);
    // The target itself shows the failure only until the next attempt.
    let timeline = world.get(&format!("/posts/{}/timeline", post["id"].as_str().unwrap())).await;
    let mut entries = timeline["data"].as_array().unwrap().iter();
    let failure = entries.find(|entry| entry["kind"] == "failure").expect("a failure");
    let message = failure["message"].as_str().unwrap();
    assert!(message.contains("did not answer within 8 s"), "{timeline:#}");
}

/// Returns a stored file of this name.
fn find_file(dir: &std::path::Path, name: &str) -> Option<std::path::PathBuf> {
    std::fs::read_dir(dir).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => find_file(&path, name),
            false => (path.file_name()? == name).then_some(path),
        }
    })
}

/// Instagram takes a PNG as a JPEG, which is made of the stored file; X takes the file as it is.
#[tokio::test]
async fn a_picture_whose_file_is_gone_ends_with_that_reason() {
    let world = world().approved().own().platforms(&["instagram", "x"]).start().await;
    let accounts = [world.connect("instagram", "ada").await, world.connect("x", "ada").await];
    let medium = world.medium("vanishing.png", None, tests::samples::painting(1080, 1080)).await;
    let file = find_file(&world.files, "vanishing.png").expect("the file is stored");
    let container = json!({ "content": "Gone", "media": [{ "id": medium["id"] }] });
    std::fs::remove_file(&file).unwrap();
    let post = world.post(json!({ "containers": [container], "accounts": accounts })).await;
    let ended = world.ended(&post).await;
    for target in ended["targets"].as_array().unwrap() {
        assert_eq!(
            (&target["status"], &target["error_code"]),
            (&json!("dead"), &json!("rejected_422")),
            "{ended:#}"
        );
        let message = target["error_message"].as_str().unwrap();
        assert!(message.contains("its file is gone"), "{message}");
        assert!(!message.contains('/'), "no path of the server: {message}");
    }
    let timeline = world.get(&format!("/posts/{}/timeline", post["id"].as_str().unwrap())).await;
    assert!(timeline["data"].as_array().unwrap().len() < 12, "{timeline:#}");
}
