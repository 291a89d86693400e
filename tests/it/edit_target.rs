//! A published post is changed on its platform, and its target tells what was changed.

use crate::{
    api::{fail, key, request},
    world,
};
use domain::scope::Scope;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::World;

fn path(post: &Value) -> String {
    let [id, target] = [&post["id"], &post["targets"][0]["id"]].map(|id| id.as_str().unwrap());
    format!("/posts/{id}/targets/{target}")
}

async fn edit(world: &World, post: &Value, body: Value) -> (StatusCode, Value) {
    world.call(Method::PATCH, &path(post), Some(&body)).await
}

/// Publishes a post and waits for its target.
async fn published(world: &World, body: Value) -> Value {
    let post = world.ended(&world.post(body).await).await;
    assert_eq!(post["status"], "published", "{post:#}");
    post
}

/// The page of a post on its platform.
async fn shown(world: &World, url: &Value) -> String {
    world.http.get(url.as_str().unwrap()).send().await.unwrap().text().await.unwrap()
}

/// Number of requests that the account made to its platform.
async fn calls(world: &World, platform: &str) -> usize {
    world.journal(platform, "ada").await.len()
}

#[tokio::test]
async fn an_edited_post_shows_its_new_texts_and_its_target_tells_when() {
    let world = world().start().await;
    let account = world.connect("reddit", "ada").await;
    let containers = json!([{ "content": "Opening hours\nUntil five" }, { "content": "Five sharp" }]);
    let post = world.post(json!({ "containers": containers, "accounts": [account] })).await;
    world.completed(&post, 1).await;
    let post = world.ended(&post).await;
    let before = &post["targets"][0];
    assert_eq!((&before["edited_at"], &before["edits"]), (&Value::Null, &Value::Null));
    let accepted = world.accepted("reddit", "ada").await;
    let new = json!({
        "content": "Opening hours\nUntil six", "replies": [{ "position": 1, "content": "Six sharp" }],
    });
    let (status, target) = edit(&world, &post, new.clone()).await;
    assert_eq!((status, &target["status"]), (StatusCode::OK, &json!("published")), "{target}");
    assert!(target["edited_at"].is_string(), "{target}");
    let texts = json!([
        { "position": 0, "content": "Opening hours\nUntil six" }, { "position": 1, "content": "Six sharp" },
    ]);
    assert_eq!(target["edits"], json!({ "containers": texts, "config": {} }));
    assert_eq!(target["platform_post_id"], before["platform_post_id"]);
    let page = shown(&world, &target["platform_post_url"]).await;
    assert!(page.contains("Until six") && !page.contains("Until five"), "{page}");
    let entries = world.journal("reddit", "ada").await;
    let edited: Vec<_> =
        entries.iter().filter(|entry| entry["path"].as_str().unwrap().contains("editusertext")).collect();
    assert_eq!(edited.len(), 2, "the post and its comment: {entries:#?}");
    assert_eq!(world.accepted("reddit", "ada").await, accepted, "nothing was published");
    // Again: the platform is told again, since the first result may have been lost, and nothing else happens.
    assert_eq!(edit(&world, &post, new).await, (StatusCode::OK, target.clone()));
    let id = post["id"].as_str().unwrap();
    let found = world.get(&format!("/posts/{id}")).await;
    assert_eq!((&found["targets"][0], &found["containers"]), (&target, &post["containers"]));
    let timeline = world.get(&format!("/posts/{id}/timeline")).await;
    let entries = timeline["data"].as_array().unwrap().iter();
    let entries: Vec<_> = entries.filter(|entry| entry["kind"] == "edited").collect();
    assert_eq!(entries.len(), 1, "{timeline:#}");
    assert_eq!(entries[0]["target_id"], target["id"]);
    // A second edit keeps what it does not set.
    let (status, second) = edit(&world, &post, json!({ "content": "Opening hours\nUntil seven" })).await;
    assert_eq!(status, StatusCode::OK, "{second}");
    assert_eq!(second["edits"]["containers"][0]["content"], "Opening hours\nUntil seven");
    assert_eq!(second["edits"]["containers"][1]["content"], "Six sharp");
}

#[tokio::test]
async fn settings_that_the_platform_lets_change_are_edited_and_others_refused() {
    let world = world().approved().start().await;
    let account = world.connect("google_business", "ada").await;
    let settings = json!({ "google_business": { "languageCode": "en" } });
    let post =
        published(&world, json!({ "content": "Cake", "accounts": [account], "config": settings })).await;
    let button = json!({ "actionType": "LEARN_MORE", "url": "https://example.com/cake" });
    let (status, target) = edit(&world, &post, json!({ "config": { "callToAction": button } })).await;
    assert_eq!(status, StatusCode::OK, "{target}");
    assert_eq!(target["edits"], json!({ "containers": [], "config": { "callToAction": button } }));
    let page = shown(&world, &target["platform_post_url"]).await;
    assert!(page.contains("Cake"), "the text stays: {page}");
    let made = calls(&world, "google_business").await;
    for (config, code, path) in [
        (json!({ "languageCode": "de" }), "setting_not_editable", json!(["config", "languageCode"])),
        (json!({ "callToAction": 7 }), "setting_invalid", json!(["config", "callToAction"])),
    ] {
        let (status, problem) = edit(&world, &post, json!({ "config": config })).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!("content_rejected"))
        );
        assert_eq!((&problem["errors"][0]["code"], &problem["errors"][0]["path"]), (&json!(code), &path));
    }
    assert_eq!(calls(&world, "google_business").await, made);
    let can = world.get(&format!("/social-accounts/{account}/capabilities")).await;
    let settings = json!(["callToAction", "event", "offer"]);
    assert_eq!(can["editing"], json!({ "is_supported": true, "settings": settings, "reason": null }));
}

#[tokio::test]
async fn a_new_text_is_checked_as_on_creation_before_anything_is_called() {
    let world = world().start().await;
    let account = world.connect("linkedin", "ada").await;
    let containers = json!([{ "content": "One" }, { "content": "Two" }]);
    let post = world.post(json!({ "containers": containers, "accounts": [account] })).await;
    world.completed(&post, 1).await;
    let post = world.ended(&post).await;
    let made = calls(&world, "linkedin").await;
    for (body, path) in [
        (json!({ "content": "a".repeat(3001) }), json!(["content"])),
        (
            json!({ "replies": [{ "position": 1, "content": "a".repeat(1251) }] }),
            json!(["replies", 0, "content"]),
        ),
    ] {
        let (status, problem) = edit(&world, &post, body).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!("content_rejected"))
        );
        let error = &problem["errors"][0];
        assert_eq!((&error["code"], &error["path"]), (&json!("text_too_long"), &path), "{problem}");
    }
    let twice = json!([{ "position": 1, "content": "A" }, { "position": 1, "content": "B" }]);
    for (replies, index) in [(json!([{ "position": 2, "content": "C" }]), 0), (twice, 1)] {
        let (status, problem) = edit(&world, &post, json!({ "replies": replies })).await;
        assert_eq!((status, &problem["code"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("unprocessable")));
        assert_eq!(problem["errors"][0]["path"], json!(["replies", index, "position"]));
    }
    for nothing in [json!({}), json!({ "config": {} })] {
        let (status, problem) = edit(&world, &post, nothing).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_request")),
            "{problem}"
        );
    }
    assert_eq!(calls(&world, "linkedin").await, made);
    let target = &world.get(&format!("/posts/{}", post["id"].as_str().unwrap())).await["targets"][0];
    assert_eq!(target["edited_at"], Value::Null);
}

#[tokio::test]
async fn only_a_live_post_of_a_platform_that_edits_posts_is_edited() {
    let world = world().start().await;
    let x = world.connect("x", "ada").await;
    let account = world.connect("reddit", "ada").await;
    let new = || json!({ "content": "New" });
    let far = "2040-01-01T00:00:00Z";
    let waiting = world.post(json!({ "content": "Far", "accounts": [account], "scheduled_at": far })).await;
    let gone = published(&world, json!({ "content": "Gone", "accounts": [account] })).await;
    let unpublished = world.call(Method::POST, &format!("{}/unpublish", path(&gone)), None).await;
    assert_eq!(unpublished.0, StatusCode::OK);
    for post in [&waiting, &gone] {
        let (status, problem) = edit(&world, post, new()).await;
        assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{problem}");
    }
    let tweet = published(&world, json!({ "content": "Short", "accounts": [x] })).await;
    let link = json!({ "reddit": { "url": "https://example.com" } });
    let link = published(&world, json!({ "content": "Look", "accounts": [account], "config": link })).await;
    let titled = published(&world, json!({ "content": "Title\nText", "accounts": [account] })).await;
    for (post, why) in [(&tweet, "X replaces"), (&link, "text post"), (&titled, "title")] {
        let (status, problem) = edit(&world, post, new()).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!("editing_unsupported")),
            "{problem}"
        );
        assert!(problem["detail"].as_str().unwrap().contains(why), "{problem}");
    }
    for path in [path(&titled).replace(titled["id"].as_str().unwrap(), "7"), path(&titled) + "7"] {
        let (status, _) = world.call(Method::PATCH, &path, Some(&new())).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
    let reader = key(&world, world.owner, &[Scope::PostsRead]).await;
    let read = world.http.patch(format!("{}{}", world.base, path(&titled))).bearer_auth(reader).json(&new());
    fail(read, 403, "insufficient_scope").await;
}

#[tokio::test]
async fn an_account_without_the_scope_is_not_asked_to_edit() {
    let world = world().start().await;
    let tests::SandboxAccount { identity, mut grant } = world.account("reddit", "ada").await;
    grant.scopes.retain(|scope| scope != "edit");
    let account = world.keep("reddit", identity.profile, &grant).await;
    let post = published(&world, json!({ "content": "Title\nText", "accounts": [account] })).await;
    let can = world.get(&format!("/social-accounts/{account}/capabilities")).await;
    assert_eq!(can["editing"]["is_supported"], false);
    assert!(can["editing"]["reason"].as_str().unwrap().contains("without edit"), "{can}");
    let (status, problem) = edit(&world, &post, json!({ "content": "Title\nNew" })).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!("reconnect_required")),
        "{problem}"
    );
}

#[tokio::test]
async fn an_edit_without_a_known_result_is_repeated_and_keeps_another_one_waiting() {
    let world = world().start().await;
    let account = world.connect("reddit", "ada").await;
    let post = published(&world, json!({ "content": "Title\nText", "accounts": [account] })).await;
    let new = json!({ "content": "Title\nNew" });
    world.set_sandbox(json!({ "refusals": { "/api/editusertext": 503 } })).await;
    let (headers, _) =
        fail(request(&world, Method::PATCH, &path(&post)).json(&new), 503, "unavailable").await;
    assert!(headers.contains_key("Retry-After"));
    let found = world.get(&format!("/posts/{}", post["id"].as_str().unwrap())).await;
    assert_eq!(found["targets"][0]["edits"], Value::Null);
    world.set_sandbox(json!({ "refusals": {} })).await;
    // The lost call may still take effect, after another one.
    let other = json!({ "content": "Title\nOther" });
    let (headers, _) = fail(request(&world, Method::PATCH, &path(&post)).json(&other), 409, "conflict").await;
    assert!(headers.contains_key("Retry-After"));
    let (status, target) = edit(&world, &post, new).await;
    assert_eq!(status, StatusCode::OK, "{target}");
    assert!(shown(&world, &target["platform_post_url"]).await.contains("New"));
    let (status, target) = edit(&world, &post, other).await;
    assert_eq!(status, StatusCode::OK, "{target}");
    assert!(shown(&world, &target["platform_post_url"]).await.contains("Other"));
}

#[tokio::test]
async fn a_platform_that_refuses_an_edit_leaves_the_target_as_it_was() {
    let world = world().start().await;
    let account = world.connect("reddit", "ada").await;
    let post = published(&world, json!({ "content": "Title\nText", "accounts": [account] })).await;
    let new = json!({ "content": "Title\nNew" });
    world.set_sandbox(json!({ "refusals": { "/api/editusertext": 400 } })).await;
    let (status, problem) = edit(&world, &post, new.clone()).await;
    assert_eq!((status, &problem["code"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("unprocessable")));
    world.set_sandbox(json!({ "refusals": {} })).await;
    world.expire_tokens("reddit", "ada").await;
    let (status, target) = edit(&world, &post, json!({ "content": "Title\nOther" })).await;
    assert_eq!(status, StatusCode::OK, "an expired token is refreshed: {target}");
    world.revoke_grants("reddit", "ada").await;
    let (status, problem) = edit(&world, &post, new).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!("reconnect_required")),
        "{problem}"
    );
    let found = world.get(&format!("/posts/{}", post["id"].as_str().unwrap())).await;
    assert_eq!(found["targets"][0]["edits"], target["edits"]);
}

#[tokio::test]
async fn an_edit_is_of_what_the_target_published() {
    let world = world().platforms(&["reddit", "bluesky"]).start().await;
    let ada = world.connect("reddit", "ada").await;
    let bob = world.connect("bluesky", "bob.bsky.social").await;
    let own = json!([{ "content": "Opening hours\nUntil five" }, { "content": "Five sharp" }]);
    let settings = json!({
        "reddit": { "sr": "cakes", "nsfw": false, "containers": own, "accounts": { ada.clone(): { "nsfw": true } } },
    });
    let body = json!({ "content": "Open", "accounts": [ada, bob], "config": settings });
    let post = world.post(body).await;
    world.completed(&post, 1).await;
    let mut post = world.ended(&post).await;
    // The post itself has no reply.
    let new = json!({
        "content": "Opening hours\nUntil six", "replies": [{ "position": 1, "content": "Six sharp" }],
    });
    let targets = post["targets"].as_array_mut().unwrap();
    targets.sort_by_key(|target| target["social_account_id"] != *ada);
    let (status, target) = edit(&world, &post, new).await;
    assert_eq!(status, StatusCode::OK, "{target}");
    let page = shown(&world, &target["platform_post_url"]).await;
    assert!(page.contains("Until six") && page.contains("Six sharp"), "{page}");
    let (_, problem) =
        edit(&world, &post, json!({ "replies": [{ "position": 2, "content": "Seven" }] })).await;
    assert_eq!(problem["code"], "unprocessable", "{problem}");
}
