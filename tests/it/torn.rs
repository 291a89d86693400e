//! A thread of which a part was refused tells which parts are missing, and a retry publishes these only.

use crate::{
    api::{fail, key},
    browser::Browser,
    world,
};
use domain::scope::Scope;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{
    Delivery, Receiver, World,
    samples::{film, jpeg, png},
};

/// The third part is refused.
const PARTS: [&str; 4] = ["Part one", "Part two", "Part three #sandbox-400", "Part four"];
const REASON: &str = "not tried, since it follows part 3 of 4, which is not live";

fn path(post: &Value) -> String {
    format!("/posts/{}", post["id"].as_str().unwrap())
}

fn target_path(post: &Value) -> String {
    format!("{}/targets/{}", path(post), post["targets"][0]["id"].as_str().unwrap())
}

fn target(post: &Value) -> &Value {
    &post["targets"][0]
}

fn positions(missing: &Value) -> Vec<u64> {
    missing.as_array().into_iter().flatten().map(|part| part["position"].as_u64().unwrap()).collect()
}

async fn retry(world: &World, post: &Value) -> (StatusCode, Value) {
    world.call(Method::POST, &format!("{}/retry", path(post)), None).await
}

async fn rewrite(world: &World, post: &Value, replies: Value) -> (StatusCode, Value) {
    world.call(Method::PATCH, &target_path(post), Some(&json!({ "replies": replies }))).await
}

/// Publishes a thread on X, and returns it when parts of it are given up.
async fn torn(world: &World, parts: &[&str]) -> Value {
    let containers: Vec<_> = parts.iter().map(|part| json!({ "content": part })).collect();
    let post = world.post(json!({ "containers": containers, "accounts": ["ada"] })).await;
    until_torn(world, &post).await
}

async fn until_torn(world: &World, post: &Value) -> Value {
    let is_torn = |post: &Value| !positions(&target(post)["missing"]).is_empty();
    world.until(post["id"].as_str().unwrap(), "parts to be missing", is_torn).await
}

/// Ids of the posts that the platform took, in order.
async fn accepted(world: &World) -> Vec<String> {
    let entries = world.journal("x", "ada").await.into_iter();
    let taken = entries.filter(|entry| entry["accepted"] == true);
    taken.map(|entry| entry["post_id"].as_str().unwrap().to_owned()).collect()
}

/// Texts of a post and all that is below it, as the platform shows them.
async fn conversation(world: &World, post: &Value, id: &str) -> Vec<String> {
    let [first, url] =
        ["platform_post_id", "platform_post_url"].map(|name| target(post)[name].as_str().unwrap());
    let url = url.replace(first, id);
    let page = world.http.get(url).send().await.unwrap().error_for_status().unwrap().text().await.unwrap();
    let texts =
        page.split(r#"<p class="text">"#).skip(1).map(|rest| rest.split("</p>").next().unwrap().to_owned());
    texts.collect()
}

fn data(deliveries: &[Delivery], event: &str) -> Vec<Value> {
    let told = deliveries.iter().map(Delivery::json).filter(|body| body["event"] == event);
    told.map(|body| body["data"].clone()).collect()
}

#[tokio::test]
async fn a_torn_thread_tells_which_parts_are_missing() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let post = torn(&world, &PARTS).await;
    let target = target(&post);
    assert_eq!((&post["status"], &target["status"]), (&json!("published"), &json!("published")));
    assert_eq!((&target["error_code"], &target["next_attempt_at"]), (&json!("rejected_400"), &Value::Null));
    let message = target["error_message"].as_str().unwrap();
    let reason = message.strip_prefix("part 3 of 4: ").unwrap_or_else(|| panic!("names the part: {message}"));
    let missing = json!([
        { "position": 2, "error_code": "rejected_400", "error_message": reason },
        { "position": 3, "error_code": null, "error_message": REASON },
    ]);
    assert_eq!(target["missing"], missing);
    let told = ["post.target.published", "post.published", "post.target.incomplete"];
    let deliveries = receiver.events(&told).await;
    assert_eq!(deliveries.len(), told.len(), "each once");
    let published = data(&deliveries, "post.target.published").remove(0);
    assert_eq!(published["missing"], Value::Null, "the rest was still awaited: {published}");
    let expected = json!({
        "postId": post["id"], "targetId": target["id"], "orgId": published["orgId"],
        "accountId": target["social_account_id"], "network": "x", "username": "ada",
        "platformPostId": target["platform_post_id"], "platformPostUrl": target["platform_post_url"],
        "missing": missing,
    });
    assert_eq!(data(&deliveries, "post.target.incomplete"), [expected]);
    let timeline = world.get(&format!("{}/timeline", path(&post))).await;
    let entries = timeline["data"].as_array().unwrap().iter();
    let told: Vec<_> = entries.filter(|entry| entry["kind"] == "incomplete").collect();
    assert_eq!(told.len(), 1, "{timeline:#}");
    let told = told[0]["message"].as_str().unwrap();
    assert!(told.contains("part 3 of 4: "), "{told}");
    assert_eq!(accepted(&world).await.len(), 2);
    let reply = json!({ "reply_to": post["id"], "content": "Below it" });
    let (_, verdict) = world.call(Method::POST, "/posts/validate", Some(&reply)).await;
    let issue = &verdict["issues"][0];
    assert_eq!(
        (&verdict["valid"], &issue["code"], &issue["path"]),
        (&json!(true), &json!("reply_to_incomplete"), &json!(["reply_to"]))
    );
    assert!(issue["message"].as_str().unwrap().contains("without part 3, 4; the reply follows"), "{issue}");
}

#[tokio::test]
async fn a_missing_part_is_edited_and_the_missing_ones_are_published_once() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let post = torn(&world, &PARTS).await;
    let before = accepted(&world).await;
    // X lets no app change what is live, and this is not.
    let (status, edited) =
        rewrite(&world, &post, json!([{ "position": 2, "content": "Part 3, mended" }])).await;
    assert_eq!(status, StatusCode::OK, "{edited}");
    let texts = json!([{ "position": 2, "content": "Part 3, mended" }]);
    assert_eq!(edited["edits"], json!({ "containers": texts, "config": {} }));
    assert_eq!((accepted(&world).await, positions(&edited["missing"])), (before.clone(), vec![2, 3]));
    let (status, retried) = retry(&world, &post).await;
    assert_eq!((status, &retried["status"]), (StatusCode::ACCEPTED, &json!("published")), "{retried}");
    let now = target(&retried);
    assert_eq!((&now["status"], &now["missing"]), (&json!("published"), &json!([])), "{now}");
    assert_eq!((&now["error_code"], &now["attempts"]), (&Value::Null, &json!(0)));
    world.completed(&post, 1).await;
    let told = [
        "post.target.published",
        "post.published",
        "post.target.incomplete",
        "post.target.published",
        "post.retried",
    ];
    let deliveries = receiver.events(&told).await;
    assert_eq!(deliveries.len(), told.len(), "each once");
    let done = world.get(&path(&post)).await;
    let target = target(&done);
    assert_eq!((&target["error_message"], &target["next_attempt_at"]), (&Value::Null, &Value::Null));
    assert_eq!((&done["status"], &target["missing"]), (&json!("published"), &json!([])));
    let complete = data(&deliveries, "post.target.published").remove(1);
    assert_eq!((&complete["round"], &complete["missing"]), (&json!(1), &Value::Null), "{complete}");
    assert_eq!(complete["platformPostId"], target["platform_post_id"]);
    let ended = data(&deliveries, "post.retried").remove(0);
    assert_eq!((&ended["round"], &ended["outcome"]), (&json!(1), &json!("published")), "{ended}");
    let accepted = accepted(&world).await;
    assert_eq!((accepted.len(), &accepted[..2]), (4, &before[..]), "what was live stays");
    assert_eq!(accepted[0], *target["platform_post_id"].as_str().unwrap());
    let texts = ["Part one", "Part two", "Part 3, mended", "Part four"];
    for (number, id) in accepted.iter().enumerate() {
        assert_eq!(conversation(&world, &post, id).await, texts[number..], "each below the one before it");
    }
    let (status, problem) = retry(&world, &post).await;
    assert_eq!(status, StatusCode::CONFLICT, "{problem}");
    assert_eq!(
        rewrite(&world, &post, json!([{ "position": 2, "content": "Late" }])).await.0,
        StatusCode::UNPROCESSABLE_ENTITY
    );
}

/// Each round ends with one event, and a part that was refused again is named again.
#[tokio::test]
async fn the_media_of_a_missing_part_are_changed_for_its_target() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let [boat, lamp] = [
        world.medium("boat.png", None, png(40, 40)).await,
        world.medium("lamp.png", None, png(50, 40)).await,
    ];
    let parts = json!([
        { "content": "Part one" },
        { "content": "Part two #sandbox-400", "media": [{ "id": boat["id"], "alt_text": "A boat" }] },
        { "content": "Part three" },
    ]);
    let post = world.post(json!({ "containers": parts, "accounts": ["ada"] })).await;
    let post = until_torn(&world, &post).await;
    let with = |position: u64, media: Value| json!([{ "position": position, "content": "Part two", "media": media }]);
    let nobodys = json!([{ "id": uuid::Uuid::now_v7() }]);
    let (status, problem) = rewrite(&world, &post, with(1, nobodys)).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!("media_not_ready")),
        "{problem}"
    );
    assert_eq!(problem["errors"][0]["path"], json!(["replies", 0, "media", 0, "id"]));
    let many = vec![json!({ "id": lamp["id"] }); 5];
    let (status, problem) = rewrite(&world, &post, with(1, json!(many))).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!("content_rejected")),
        "{problem}"
    );
    let at = problem["errors"][0]["path"].as_array().unwrap();
    assert_eq!(at[..3], [json!("replies"), json!(0), json!("media")], "{problem}");
    // Those of the main post, which is live, stay.
    let (status, problem) =
        world.call(Method::PATCH, &target_path(&post), Some(&json!({ "replies": with(0, json!([])) }))).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{problem}");

    // A second change is one of the same variant.
    for media in [json!([]), json!([{ "id": lamp["id"], "alt_text": "A lamp" }])] {
        let (status, edited) = rewrite(&world, &post, with(1, media)).await;
        assert_eq!((status, &edited["variant"]), (StatusCode::OK, &json!(1)), "{edited}");
    }
    let edited = world.get(&path(&post)).await;
    let media = |containers: &Value| containers[1]["media"][0]["id"].clone();
    assert_eq!(media(&edited["containers"]), boat["id"], "the post keeps what it had");
    let variants = edited["variants"].as_array().unwrap();
    assert_eq!((variants.len(), media(&variants[0]["containers"])), (1, lamp["id"].clone()), "{edited:#}");
    assert_eq!(variants[0]["containers"][0]["content"], "Part one");
    assert_eq!(retry(&world, &post).await.0, StatusCode::ACCEPTED);
    world.completed(&post, 1).await;
    let accepted = accepted(&world).await;
    assert_eq!(accepted.len(), 3);
    let [first, url] =
        ["platform_post_id", "platform_post_url"].map(|name| target(&post)[name].as_str().unwrap());
    let page = world.http.get(url.replace(first, &accepted[1])).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("alt=\"A lamp\"") && !page.contains("A boat"), "{page}");
    let live = json!([{ "position": 1, "content": "Part two", "media": [] }]);
    let (status, problem) = rewrite(&world, &post, live).await;
    assert_eq!(
        (status, &problem["errors"][0]["path"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!(["replies", 0, "media"])),
        "{problem}"
    );
}

#[tokio::test]
async fn a_story_that_fails_leaves_the_one_before_it_and_is_published_by_a_retry() {
    let world = world().start().await;
    world.connect("instagram", "ada").await;
    let mut stories = Vec::new();
    for (filename, bytes) in [
        ("boat.jpg", jpeg(1080, 1920)),
        ("sandbox-failed.mp4", film(5_000, 1 << 20)),
        ("lamp.jpg", jpeg(1080, 1920)),
    ] {
        let medium = world.medium(filename, None, bytes).await;
        stories.push(json!({ "content": "", "media": [{ "id": medium["id"] }] }));
    }
    let config = json!({ "instagram": { "media_type": "STORIES" } });
    let post = world.post(json!({ "containers": stories, "accounts": ["ada"], "config": config })).await;
    let post = until_torn(&world, &post).await;
    assert_eq!((&post["status"], positions(&target(&post)["missing"])), (&json!("published"), vec![1, 2]));
    assert_eq!(world.accepted("instagram", "ada").await, 1);
    let mended = world.medium("mended.jpg", None, jpeg(1080, 1920)).await;
    let replies = json!([{ "position": 1, "content": "", "media": [{ "id": mended["id"] }] }]);
    let (status, edited) = rewrite(&world, &post, replies).await;
    assert_eq!(status, StatusCode::OK, "{edited}");
    assert_eq!(retry(&world, &post).await.0, StatusCode::ACCEPTED);
    world.completed(&post, 1).await;
    let done = world.get(&path(&post)).await;
    assert_eq!(target(&done)["missing"], json!([]), "{done:#}");
    assert_eq!(world.accepted("instagram", "ada").await, 3, "each once");
}

#[tokio::test]
async fn a_missing_part_that_is_refused_again_is_told_again() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let post = torn(&world, &["Part one", "Part two #sandbox-400"]).await;
    assert_eq!(retry(&world, &post).await.0, StatusCode::ACCEPTED);
    let told = [
        "post.target.published",
        "post.published",
        "post.target.incomplete",
        "post.target.incomplete",
        "post.retried",
    ];
    let deliveries = receiver.events(&told).await;
    assert_eq!(deliveries.len(), told.len(), "each once");
    let incomplete = data(&deliveries, "post.target.incomplete");
    assert_eq!((&incomplete[0]["round"], &incomplete[1]["round"]), (&Value::Null, &json!(1)));
    assert_eq!(incomplete[0]["missing"], incomplete[1]["missing"]);
    let again = until_torn(&world, &post).await;
    assert!(target(&again)["error_message"].as_str().unwrap().starts_with("part 2 of 2: "), "{again:#}");
    assert_eq!(accepted(&world).await.len(), 1);
}

#[tokio::test]
async fn only_a_part_that_is_missing_is_rewritten_and_its_text_is_checked() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let post = torn(&world, &PARTS).await;
    let refused = StatusCode::UNPROCESSABLE_ENTITY;
    for (body, code, path) in [
        (
            json!({ "content": "One", "replies": [{ "position": 2, "content": "Three" }] }),
            "custom",
            json!(["content"]),
        ),
        (
            json!({ "config": { "replySettings": "following" }, "replies": [{ "position": 2, "content": "Three" }] }),
            "custom",
            json!(["config"]),
        ),
        (
            json!({ "replies": [{ "position": 2, "content": "Three" }, { "position": 1, "content": "Two" }] }),
            "custom",
            json!(["replies", 1, "position"]),
        ),
        (
            json!({ "replies": [{ "position": 3, "content": "a ".repeat(200) }] }),
            "text_too_long",
            json!(["replies", 0, "content"]),
        ),
    ] {
        let (status, problem) = world.call(Method::PATCH, &target_path(&post), Some(&body)).await;
        assert_eq!(status, refused, "{body}: {problem}");
        let issue = &problem["errors"][0];
        assert_eq!((&issue["code"], &issue["path"]), (&json!(code), &path), "{problem}");
    }
    // A part that is live can't be changed on X.
    let (status, problem) = rewrite(&world, &post, json!([{ "position": 1, "content": "Two" }])).await;
    assert_eq!((status, &problem["code"]), (refused, &json!("editing_unsupported")), "{problem}");
    let (status, problem) = world.call(Method::POST, &format!("{}/retry", target_path(&post)), None).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(problem["detail"].as_str().unwrap().contains("POST /posts/{id}/retry"), "{problem}");
    let reader = key(&world, world.owner, &[Scope::PostsRead]).await;
    let body = json!({ "replies": [{ "position": 2, "content": "Three" }] });
    let url = format!("{}{}", world.base, target_path(&post));
    fail(world.http.patch(url).bearer_auth(reader).json(&body), 403, "insufficient_scope").await;
    assert_eq!(world.get(&path(&post)).await["targets"][0]["edits"], Value::Null);
}

/// The parts would be published below one that is gone.
#[tokio::test]
async fn what_is_missing_of_a_post_that_was_unpublished_is_not_published() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let post = torn(&world, &PARTS).await;
    let (status, target) = world.call(Method::POST, &format!("{}/unpublish", target_path(&post)), None).await;
    assert_eq!(status, StatusCode::OK, "{target}");
    let (status, problem) = retry(&world, &post).await;
    assert_eq!(status, StatusCode::CONFLICT, "{problem}");
    let (status, problem) = rewrite(&world, &post, json!([{ "position": 2, "content": "Three" }])).await;
    assert_eq!(status, StatusCode::CONFLICT, "{problem}");
    assert_eq!(accepted(&world).await.len(), 2);
}

/// The platform took the part, its reply is lost, and its lists can't be read: it may be live.
#[tokio::test]
async fn a_missing_part_that_may_be_live_keeps_its_text_and_is_found() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    world.set_sandbox(json!({ "refusals": { "/2/users/": 403 } })).await;
    let post = torn(&world, &["Part one", "Part two #sandbox-lost-reply", "Part three"]).await;
    let message = target(&post)["error_message"].as_str().unwrap();
    assert!(message.starts_with("part 2 of 3: ") && message.contains("it may be live"), "{message}");
    let (status, problem) = rewrite(&world, &post, json!([{ "position": 1, "content": "Two" }])).await;
    assert_eq!(status, StatusCode::CONFLICT, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("may be live"), "{problem}");
    world.set_sandbox(json!({ "refusals": {} })).await;
    assert_eq!(retry(&world, &post).await.0, StatusCode::ACCEPTED);
    world.completed(&post, 1).await;
    let accepted = accepted(&world).await;
    assert_eq!(accepted.len(), 3, "each part once: {accepted:?}");
    let texts = ["Part one", "Part two #sandbox-lost-reply", "Part three"];
    assert_eq!(conversation(&world, &post, &accepted[0]).await, texts);
}

#[tokio::test]
async fn the_dashboard_shows_what_is_missing_and_publishes_it() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let post = torn(&world, &PARTS).await;
    let browser = Browser::signed_in(&world).await;
    let shown = browser.open(&path(&post)).await;
    for words in [
        "Part 3 of 4: X rejected the post (400).",
        "Part 4 of 4: not tried",
        "Change part 3…",
        "Publish what is missing",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("Change the text…"), "X lets no app change what is live: {shown}");
    let part = format!("{}/parts/2", target_path(&post));
    assert!(shown.contains(&format!("href=\"/dashboard{part}\"")), "{shown}");
    let edited = browser.post(&part, &[("text", "Mended")]).await;
    assert_eq!(edited.leads(), format!("/dashboard{}?done=rewritten", path(&post)));
    assert!(browser.open(&part).await.contains("Mended</textarea>"));
    let retried = browser.post(&format!("{}/revive", target_path(&post)), &[]).await;
    assert_eq!(retried.leads(), format!("/dashboard{}?done=revived", path(&post)));
    world.completed(&post, 1).await;
    let shown = browser.open(&path(&post)).await;
    assert!(!shown.contains("Part 3 of 4") && !shown.contains("Publish what is missing"), "{shown}");
    assert_eq!(accepted(&world).await.len(), 4);
}

#[tokio::test]
async fn the_files_of_a_missing_part_are_changed_in_the_dashboard_without_scripts() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let mut files = Vec::new();
    for (name, width) in [("boat", 40), ("lamp", 50), ("hill", 60), ("moor", 70), ("pier", 80)] {
        let file = world.medium(&format!("{name}.png"), None, png(width, 40)).await;
        files.push(file["id"].as_str().unwrap().to_owned());
    }
    let [boat, lamp, hill, moor, pier] = files.try_into().unwrap();
    let parts = json!([
        { "content": "Part one" },
        { "content": "Part two #sandbox-400", "media": [{ "id": boat, "alt_text": "A boat" }] },
    ]);
    let post = world.post(json!({ "containers": parts, "accounts": ["ada"] })).await;
    let post = until_torn(&world, &post).await;
    let browser = Browser::signed_in(&world).await;
    let part = format!("{}/parts/1", target_path(&post));
    let page = browser.open(&part).await;
    for words in
        [&*format!("id=\"chosen-{boat}\""), ">\nA boat</textarea>", "Part two #sandbox-400</textarea>"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(page.contains(&format!("name=\"media\" value=\"{lamp}\"")), "the library: {page}");

    // Nothing of this is kept yet.
    let alt = format!("alt-{lamp}");
    let text = ("text", "Part two");
    let form = [text, ("media", &*boat), ("media", &*lamp), (&*alt, "A lamp")];
    for (action, order) in [
        ("show".to_owned(), [Some(0), Some(1)]),
        (format!("earlier:{lamp}"), [Some(1), Some(0)]),
        (format!("later:{boat}"), [Some(1), Some(0)]),
        (format!("remove:{boat}"), [None, Some(0)]),
    ] {
        let page = browser.post(&part, &[&form[..], &[("action", &*action)]].concat()).await.text;
        let mut found: Vec<_> = [&boat, &lamp].map(|id| page.find(&format!("id=\"chosen-{id}\""))).into();
        let mut places: Vec<_> = found.iter().flatten().copied().collect();
        places.sort_unstable();
        let found: Vec<_> =
            found.drain(..).map(|at| places.iter().position(|place| Some(*place) == at)).collect();
        assert_eq!(found, order, "{action}");
        assert!(
            page.contains("A lamp</textarea>") && page.contains("Part two</textarea>"),
            "{action}: {page}"
        );
    }
    assert_eq!(world.get(&path(&post)).await["targets"][0]["edits"], Value::Null);

    // An error stands beside the files, which are as they were chosen.
    let many: Vec<_> = [&boat, &lamp, &hill, &moor, &pier].map(|id| ("media", id.as_str())).into();
    let refused = browser.post(&part, &[&[text][..], &many, &[("action", "save")]].concat()).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
    let (before, _) = refused.text.split_once("id=\"chosen-media\"").unwrap();
    assert!(before.contains("<p class=\"over small\" role=\"alert\">"), "{}", refused.text);
    assert!(refused.text.contains(&format!("id=\"chosen-{pier}\"")), "{}", refused.text);

    let kept = browser.post(&part, &[&form[..], &[("action", "save")]].concat()).await;
    assert_eq!(kept.leads(), format!("/dashboard{}?done=rewritten", path(&post)));
    let media = |post: &Value| post["variants"][0]["containers"][1]["media"].clone();
    let with_both = json!([{ "id": boat, "alt_text": null }, { "id": lamp, "alt_text": "A lamp" }]);
    assert_eq!(media(&world.get(&path(&post)).await), with_both);
    // Without a change there is nothing to keep.
    let again = browser.post(&part, &[&form[..], &[("action", "save")]].concat()).await;
    assert_eq!(again.status, StatusCode::BAD_REQUEST, "{}", again.text);
    let without = browser.post(&part, &[text, ("action", "save")]).await;
    assert_eq!(without.leads(), format!("/dashboard{}?done=rewritten", path(&post)));
    assert_eq!(media(&world.get(&path(&post)).await), json!([]));
    // A live part has no such page.
    let live = format!("{}/parts/0", target_path(&post));
    assert_eq!(browser.get(&live).await.status, StatusCode::NOT_FOUND);
}
