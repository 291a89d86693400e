//! A post replies to another one that is live.

use crate::{
    api::{fail, key, request},
    world,
};
use domain::{Mode, Owner, scope::Scope};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use store::people::organizations;
use tests::{World, samples::jpeg};

/// Publishes a post, waits for its whole thread, and returns it.
async fn published(world: &World, body: Value) -> Value {
    let post = world.post(body).await;
    if post["containers"].as_array().unwrap().len() > 1 {
        world.completed(&post, post["targets"].as_array().unwrap().len()).await;
    }
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    ended
}

fn id(post: &Value) -> &str {
    post["id"].as_str().unwrap()
}

/// The target on a platform.
fn on<'a>(post: &'a Value, platform: &str) -> &'a Value {
    let targets = post["targets"].as_array().unwrap();
    targets.iter().find(|target| target["platform"] == platform).unwrap()
}

/// Ids of the posts that the sandbox accepted from an account, in order.
async fn accepted(world: &World, platform: &str, account: &str) -> Vec<String> {
    let entries = world.journal(platform, account).await;
    entries.iter().filter_map(|entry| entry["post_id"].as_str()).map(str::to_owned).collect()
}

/// The posts of an account on X: text, and the id of the post that it replies to.
async fn tweets(world: &World, account: &str, ids: &[String]) -> Vec<(String, Option<String>)> {
    let token = world.account("x", account).await.grant.access_token;
    let url = format!("{}/api.x.com/2/tweets", world.sandbox_url);
    let query = [("ids", ids.join(",").as_str()), ("tweet.fields", "referenced_tweets")]
        .map(|(name, value)| (name, value.to_owned()));
    let answer = world.http.get(url).query(&query).bearer_auth(token).send().await.unwrap();
    let answer: Value = answer.json().await.unwrap();
    let found = answer["data"].as_array().unwrap_or_else(|| panic!("{answer}")).iter().map(|tweet| {
        let parent = tweet["referenced_tweets"][0]["id"].as_str().map(str::to_owned);
        (tweet["text"].as_str().unwrap().to_owned(), parent)
    });
    found.collect()
}

/// The record of a Bluesky post.
async fn record(world: &World, account: &str, uri: &str) -> Value {
    let [repo, collection, key] = uri.strip_prefix("at://").unwrap().split('/').collect::<Vec<_>>()[..]
    else {
        panic!("{uri}")
    };
    let journal = world.journal("bluesky", account).await;
    let host = journal.iter().find(|entry| entry["post_id"] == uri).unwrap()["host"].as_str().unwrap();
    let url = format!("{}/{host}/xrpc/com.atproto.repo.getRecord", world.sandbox_url);
    let query = [("repo", repo), ("collection", collection), ("rkey", key)];
    let answer: Value = world.http.get(url).query(&query).send().await.unwrap().json().await.unwrap();
    assert!(answer["value"].is_object(), "{answer}");
    answer["value"].clone()
}

/// Holds the publishing call of an account on X.
fn publishing_call() -> Value {
    json!({ "platform": "x", "account": "ada", "method": "POST", "path_prefix": "/2/tweets", "when": "before" })
}

async fn refused(world: &World, body: Value) -> (String, Vec<(Value, String)>) {
    let (status, problem) = world.call(Method::POST, "/posts", Some(&body)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
    let issues = problem["errors"].as_array().unwrap().iter();
    let issues = issues.map(|issue| (issue["path"].clone(), issue["message"].as_str().unwrap().to_owned()));
    (problem["code"].as_str().unwrap().to_owned(), issues.collect())
}

#[tokio::test]
async fn a_reply_continues_the_thread_on_each_account() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    let thread = json!([{ "content": "One" }, { "content": "Two" }]);
    let live =
        published(&world, json!({ "containers": thread, "accounts": ["ada", "ada.bsky.social"] })).await;
    assert_eq!(
        (&live["reply_to"], &live["targets"][0]["reply_to_platform_post_id"]),
        (&Value::Null, &Value::Null)
    );

    let body = json!({ "containers": [{ "content": "Three" }, { "content": "Four" }], "reply_to": live["id"], "external_ref": "follow-up" });
    let (status, verdict) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
    assert_eq!(
        (status, &verdict["valid"], &verdict["issues"]),
        (StatusCode::OK, &json!(true), &json!([])),
        "{verdict}"
    );
    let reply = published(&world, body.clone()).await;
    assert_eq!(reply["reply_to"], live["id"]);
    assert_eq!(reply["targets"].as_array().unwrap().len(), 2, "the accounts of the live post: {reply:#}");
    let roles: Vec<_> =
        reply["containers"].as_array().unwrap().iter().map(|one| one["role"].clone()).collect();
    assert_eq!(roles, ["main", "first_comment"]);
    // A reply to the reply belongs to the same thread.
    let last = published(
        &world,
        json!({ "content": "Five", "reply_to": reply["id"], "accounts": ["ada.bsky.social", "ada"] }),
    )
    .await;

    let ids = accepted(&world, "x", "ada").await;
    assert_eq!(ids.len(), 5, "{ids:?}");
    for (index, (_, parent)) in tweets(&world, "ada", &ids).await.into_iter().enumerate() {
        assert_eq!(parent, index.checked_sub(1).map(|before| ids[before].clone()), "{index} of {ids:?}");
    }
    assert_eq!(on(&reply, "x")["reply_to_platform_post_id"], json!(ids[1]));
    assert_eq!(on(&last, "x")["reply_to_platform_post_id"], json!(ids[3]));
    let uris = accepted(&world, "bluesky", "ada.bsky.social").await;
    assert_eq!(uris.len(), 5, "{uris:#?}");
    let root = &on(&live, "bluesky")["platform_post_id"];
    for (index, uri) in uris.iter().enumerate().skip(1) {
        let record = record(&world, "ada.bsky.social", uri).await;
        assert_eq!(&record["reply"]["root"]["uri"], root, "{index}: {record:#}");
        assert_eq!(record["reply"]["parent"]["uri"], json!(uris[index - 1]), "{index}: {record:#}");
    }
    for post in [&reply, &last] {
        for target in post["targets"].as_array().unwrap() {
            let page = world.http.get(target["platform_post_url"].as_str().unwrap()).send().await.unwrap();
            assert_eq!(page.status(), StatusCode::OK, "{target}");
        }
    }

    // The same key again: the same post, and nothing more is published.
    let (status, again) = world.call(Method::POST, "/posts", Some(&body)).await;
    assert_eq!((status, &again["id"], &again["reply_to"]), (StatusCode::OK, &reply["id"], &live["id"]));
    assert_eq!(world.accepted("x", "ada").await, 5);
    // Metrics are of the reply itself.
    let analytics = world.get(&format!("/posts/{}/analytics", id(&reply))).await;
    let target = &on(&reply, "x")["id"];
    let measured = analytics["metrics_by_account"].as_array().unwrap();
    // Bluesky's index may lag.
    assert!(measured.iter().any(|metrics| metrics["target_id"] == *target), "{analytics}");
    // A live reply is removed by itself.
    let path = format!("/posts/{}/targets/{}/unpublish", id(&last), on(&last, "x")["id"].as_str().unwrap());
    assert_eq!(world.call(Method::POST, &path, None).await.0, StatusCode::OK);
    let deleted: Vec<_> = world.journal("x", "ada").await;
    let deleted: Vec<_> = deleted.iter().filter(|entry| entry["method"] == "DELETE").collect();
    assert!(deleted.len() == 1 && deleted[0]["path"].as_str().unwrap().ends_with(&ids[4]), "{deleted:?}");
}

const COMMENTING: [&str; 3] = ["linkedin", "facebook", "instagram"];

#[tokio::test]
async fn a_reply_is_a_comment_where_there_are_no_threads() {
    let world = world().approved().platforms(&COMMENTING).start().await;
    let picture = world.medium("a.jpg", None, jpeg(640, 640)).await;
    let mut accounts = Vec::new();
    for platform in &COMMENTING {
        accounts.push(world.connect(platform, "ada").await);
    }
    let main = json!([{ "content": "A picture", "media": [{ "id": picture["id"] }] }]);
    let live = published(&world, json!({ "containers": main, "accounts": accounts })).await;
    // A main post's settings concern no reply, and its rules neither: Instagram would need a picture.
    let body = json!({ "content": "The link", "reply_to": live["id"], "config": { "facebook": { "link": "https://example.com" } } });
    let (_, verdict) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
    let issues = verdict["issues"].as_array().unwrap();
    assert_eq!((&verdict["valid"], issues.len()), (&json!(true), 1), "{verdict:#}");
    assert_eq!(
        (&issues[0]["code"], &issues[0]["path"]),
        (&json!("setting_not_for_replies"), &json!(["config", "facebook", "link"]))
    );
    let first = published(&world, body).await;
    // A second one, and one below the first: each is a comment on the main post.
    let second = published(&world, json!({ "content": "Another comment", "reply_to": live["id"] })).await;
    let third =
        published(&world, json!({ "content": "A comment to a comment", "reply_to": first["id"] })).await;
    for platform in &COMMENTING {
        let main = on(&live, platform);
        assert_eq!(world.accepted(platform, "ada").await, 4, "{platform}");
        let page = world.http.get(main["platform_post_url"].as_str().unwrap()).send().await.unwrap();
        let page = page.text().await.unwrap();
        for text in ["A picture", "The link", "Another comment", "A comment to a comment"] {
            assert!(page.contains(text), "{platform}: {text} in {page}");
        }
        for post in [&first, &second, &third] {
            let target = on(post, platform);
            assert!(target["platform_post_url"].is_string(), "{target}");
            assert_ne!(target["platform_post_id"], main["platform_post_id"]);
        }
    }
    // Comments have no metrics of their own.
    let analytics = world.get(&format!("/posts/{}/analytics", id(&first))).await;
    assert_eq!(analytics["metrics_by_account"], json!([]));
    // A text that can't be edited in a photo's post can be in a comment.
    let target = on(&second, "facebook");
    let path = format!("/posts/{}/targets/{}", id(&second), target["id"].as_str().unwrap());
    let (status, edited) =
        world.call(Method::PATCH, &path, Some(&json!({ "content": "A better comment" }))).await;
    assert_eq!(status, StatusCode::OK, "{edited}");
    let page = world.http.get(on(&live, "facebook")["platform_post_url"].as_str().unwrap());
    let page = page.send().await.unwrap().text().await.unwrap();
    assert!(page.contains("A better comment") && !page.contains("Another comment"), "{page}");

    let two = json!([{ "content": "One" }, { "content": "Two" }]);
    let (code, issues) = refused(&world, json!({ "containers": two, "reply_to": live["id"] })).await;
    assert_eq!(code, "content_rejected");
    let paths: Vec<_> = issues.iter().map(|(path, _)| path.clone()).collect();
    assert_eq!(
        paths,
        [json!(["containers", 1]), json!(["containers", 1])],
        "of Facebook and Instagram: {issues:?}"
    );
}

#[tokio::test]
async fn what_cannot_be_replied_to_is_refused_with_its_path() {
    let world = world().platforms(&["x", "bluesky", "google_business", "threads"]).approved().start().await;
    let ada = world.connect("x", "ada").await;
    let bob = world.connect("x", "bob").await;
    let place = world.connect("google_business", "cafe").await;
    let live = published(&world, json!({ "content": "Hello", "accounts": ["ada", place] })).await;
    let reply_to = |post: &Value| json!({ "content": "More", "reply_to": post["id"] });
    let on_reply_to =
        |message: &str| ("unprocessable".to_owned(), vec![(json!(["reply_to"]), message.to_owned())]);

    // Neither an account that the post was not published to, nor a platform without replies.
    let mut body = reply_to(&live);
    body["accounts"] = json!([ada, "bob"]);
    let (code, issues) = refused(&world, body).await;
    assert_eq!((code.as_str(), &issues[0].0), ("unprocessable", &json!(["accounts", 1])), "{issues:?}");
    let (code, issues) = refused(&world, reply_to(&live)).await;
    let expected = (json!(["reply_to"]), "google_business takes no replies".to_owned());
    assert_eq!((code.as_str(), &issues[..]), ("content_rejected", &[expected][..]));
    // Nor a post that does not exist, or is another organization's or of the other mode.
    let missing = on_reply_to("The post does not exist");
    assert_eq!(refused(&world, reply_to(&json!({ "id": bob }))).await, missing);
    let stranger = organizations::create(&world.db, "Stranger").await.unwrap();
    for owner in [Owner { org: stranger, ..world.owner }, Owner { mode: Mode::Live, ..world.owner }] {
        let key = key(&world, owner, &[Scope::All]).await;
        let sent = world.http.post(format!("{}/posts", world.base)).bearer_auth(&key).json(&reply_to(&live));
        let (_, problem) = fail(sent, 422, "unprocessable").await;
        assert_eq!(problem["errors"][0]["path"], json!(["reply_to"]), "{problem}");
    }
    // Nor one that was deleted, or has failed, or a draft, except by a draft.
    let gone = published(&world, json!({ "content": "Gone", "accounts": ["ada"] })).await;
    world.call(Method::DELETE, &format!("/posts/{}", id(&gone)), None).await;
    assert_eq!(refused(&world, reply_to(&gone)).await, missing);
    let dead =
        world.ended(&world.post(json!({ "content": "No #sandbox-400", "accounts": ["ada"] })).await).await;
    let nowhere = on_reply_to("The post is live on no account, and will not be");
    assert_eq!(refused(&world, reply_to(&dead)).await, nowhere);
    let draft = world.post(json!({ "content": "Later", "accounts": ["ada"], "is_draft": true })).await;
    let (code, issues) = refused(&world, reply_to(&draft)).await;
    assert_eq!((code.as_str(), &issues[0].0), ("unprocessable", &json!(["reply_to"])), "{issues:?}");
    let mut body = reply_to(&draft);
    body["is_draft"] = json!(true);
    let planned = world.post(body).await;
    let release = json!({ "is_draft": false });
    let path = format!("/posts/{}", id(&planned));
    let (status, problem) = world.call(Method::PATCH, &path, Some(&release)).await;
    assert_eq!(
        (status, &problem["errors"][0]["path"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!(["reply_to"])),
        "{problem}"
    );
    world.call(Method::PATCH, &format!("/posts/{}", id(&draft)), Some(&release)).await;
    let (status, released) = world.call(Method::PATCH, &path, Some(&release)).await;
    assert_eq!((status, &released["reply_to"]), (StatusCode::OK, &draft["id"]), "{released}");
    assert_eq!(world.ended(&planned).await["status"], "published");
    // Nor one that was removed from its platform: the account is named, if the request named it.
    let target = on(&live, "x")["id"].as_str().unwrap();
    let path = format!("/posts/{}/targets/{target}/unpublish", id(&live));
    assert_eq!(world.call(Method::POST, &path, None).await.0, StatusCode::OK);
    let mut body = reply_to(&live);
    body["accounts"] = json!(["ada"]);
    let (_, issues) = refused(&world, body.clone()).await;
    assert_eq!(
        issues,
        [(
            json!(["accounts", 0]),
            "The post in reply_to was deleted from the platform of this account".to_owned()
        )]
    );
    let (status, problem) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
    assert_eq!((status, &problem["code"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("unprocessable")));
    // In a batch only the item fails.
    let batch = json!({ "posts": [body, { "content": "Fine", "accounts": ["ada"], "is_draft": true }] });
    let (status, outcome) = world.call(Method::POST, "/posts/batch", Some(&batch)).await;
    assert_eq!(
        (status, &outcome["errors"][0]["status"]),
        (StatusCode::MULTI_STATUS, &json!(422)),
        "{outcome}"
    );
    assert_eq!(outcome["data"].as_array().unwrap().len(), 1);

    // An error that the body alone tells is a 400, and the post that is replied to never changes.
    for (body, path) in [
        (json!({ "content": "a" }), json!(["accounts"])),
        (json!({ "content": "a", "reply_to": "7" }), json!(["reply_to"])),
        (json!({ "content": "a", "accounts": [], "reply_to": live["id"] }), json!(["accounts"])),
    ] {
        let (_, problem) =
            fail(request(&world, Method::POST, "/posts").json(&body), 400, "invalid_request").await;
        assert_eq!(problem["errors"][0]["path"], path, "{problem}");
    }
    let later = world.post(json!({ "content": "Later", "accounts": ["ada"], "is_draft": true })).await;
    let path = format!("/posts/{}", id(&later));
    let sent = request(&world, Method::PATCH, &path).json(&json!({ "reply_to": live["id"] }));
    let (_, problem) = fail(sent, 400, "invalid_request").await;
    assert_eq!(problem["errors"][0]["path"], json!(["reply_to"]));
}

#[tokio::test]
async fn an_account_without_the_scopes_for_replies_is_asked_to_reconnect() {
    let world = world().platforms(&["facebook"]).start().await;
    let account = world.account("facebook", "ada").await;
    let mut grant = account.grant;
    grant.scopes.retain(|scope| scope != "pages_manage_engagement");
    assert!(!grant.scopes.is_empty());
    world.keep("facebook", account.identity.profile, &grant).await;
    let live = published(&world, json!({ "content": "Hello", "accounts": ["ada"] })).await;
    let (code, issues) = refused(&world, json!({ "content": "More", "reply_to": live["id"] })).await;
    assert_eq!((code.as_str(), &issues[0].0), ("content_rejected", &json!(["reply_to"])));
    assert!(issues[0].1.contains("pages_manage_engagement: connect the account again"), "{issues:?}");
}

#[tokio::test]
async fn a_reply_waits_until_its_post_is_live() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let hold = world.hold(publishing_call()).await;
    let live = world.post(json!({ "content": "First", "accounts": ["ada"] })).await;
    hold.until_held().await;
    let reply = world.post(json!({ "content": "Second", "reply_to": live["id"] })).await;
    let waits = |timeline: &Value| {
        timeline["data"].as_array().unwrap().iter().any(|entry| entry["kind"] == "waiting")
    };
    world.until_at(&format!("/posts/{}/timeline", id(&reply)), "the reply to wait", waits).await;
    assert_eq!(world.accepted("x", "ada").await, 0);
    hold.release().await;
    let ended = world.ended(&reply).await;
    assert_eq!(
        (&ended["status"], &ended["targets"][0]["attempts"]),
        (&json!("published"), &json!(1)),
        "{ended:#}"
    );
    let live = world.ended(&live).await;
    assert_eq!(ended["targets"][0]["reply_to_platform_post_id"], live["targets"][0]["platform_post_id"]);
    assert_eq!(world.accepted("x", "ada").await, 2);
}

#[tokio::test]
async fn a_scheduled_reply_is_published_at_its_time() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let at = |seconds: i64| (tests::now() + chrono::TimeDelta::seconds(seconds)).to_rfc3339();
    let live = world.post(json!({ "content": "First", "accounts": ["ada"], "scheduled_at": at(1) })).await;
    let reply =
        world.post(json!({ "content": "Second", "reply_to": live["id"], "scheduled_at": at(3) })).await;
    assert_eq!((&reply["status"], &reply["reply_to"]), (&json!("scheduled"), &live["id"]));
    // It is edited like any other post, by the rules for replies.
    let path = format!("/posts/{}", id(&reply));
    let (status, edited) =
        world.call(Method::PATCH, &path, Some(&json!({ "content": "Second, better" }))).await;
    assert_eq!((status, &edited["reply_to"]), (StatusCode::OK, &live["id"]), "{edited}");
    let ended = world.ended(&reply).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    let ids = accepted(&world, "x", "ada").await;
    assert_eq!(tweets(&world, "ada", &ids).await[1], ("Second, better".to_owned(), Some(ids[0].clone())));
}

#[tokio::test]
async fn a_reply_to_what_is_gone_at_its_time_ends_with_the_reason_and_no_call() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let later = || (tests::now() + chrono::TimeDelta::seconds(3)).to_rfc3339();
    let mut replies = Vec::new();
    for (reason, path) in [("deleted from its platform", "unpublish"), ("was deleted", "delete")] {
        let live = published(&world, json!({ "content": format!("To {path}"), "accounts": ["ada"] })).await;
        let body = json!({ "content": format!("Too late to {path}"), "reply_to": live["id"], "scheduled_at": later() });
        replies.push((world.post(body).await, reason));
        let target = live["targets"][0]["id"].as_str().unwrap();
        let (method, path) = match path {
            "delete" => (Method::DELETE, format!("/posts/{}", id(&live))),
            _ => (Method::POST, format!("/posts/{}/targets/{target}/unpublish", id(&live))),
        };
        assert_eq!(world.call(method, &path, None).await.0, StatusCode::OK);
    }
    // And one that failed while the reply waited for it.
    let hold = world.hold(publishing_call()).await;
    let dead = world.post(json!({ "content": "No #sandbox-400", "accounts": ["ada"] })).await;
    hold.until_held().await;
    let reply = world.post(json!({ "content": "After a failure", "reply_to": dead["id"] })).await;
    let waits = |timeline: &Value| {
        timeline["data"].as_array().unwrap().iter().any(|entry| entry["kind"] == "waiting")
    };
    world.until_at(&format!("/posts/{}/timeline", id(&reply)), "the reply to wait", waits).await;
    hold.release().await;
    replies.push((reply, "was not published"));
    for (reply, reason) in replies {
        let ended = world.ended(&reply).await;
        let target = &ended["targets"][0];
        assert_eq!((&ended["status"], &target["status"]), (&json!("failed"), &json!("dead")), "{ended:#}");
        let message = target["error_message"].as_str().unwrap();
        assert!(message.contains("the post that it replies to") && message.contains(reason), "{message}");
        assert_eq!(target["error_source"], "user");
    }
    let journal = world.journal("x", "ada").await;
    let sent = journal.iter().filter(|entry| entry["method"] == "POST").count();
    assert_eq!(sent, 3, "two posts and a refused one: {journal:#?}");
}

#[tokio::test]
async fn a_reply_with_a_lost_answer_is_found_and_not_published_twice() {
    let world = world().platforms(&["x", "bluesky", "linkedin", "facebook"]).approved().start().await;
    let accounts = [("x", "ada"), ("bluesky", "ada.bsky.social"), ("linkedin", "lin"), ("facebook", "fay")];
    for (platform, account) in accounts {
        world.connect(platform, account).await;
    }
    let names = accounts.map(|(_, account)| account);
    let live = published(&world, json!({ "content": "Hello", "accounts": names })).await;
    for word in ["lost-reply", "500-after"] {
        let body = json!({ "content": format!("More #sandbox-{word}"), "reply_to": live["id"] });
        let reply = published(&world, body).await;
        for target in reply["targets"].as_array().unwrap() {
            assert!(target["attempts"].as_u64().unwrap() > 1, "the answer was lost: {target}");
            let main = on(&live, target["platform"].as_str().unwrap());
            assert_eq!(target["reply_to_platform_post_id"], main["platform_post_id"], "{target}");
        }
    }
    for (platform, account) in accounts {
        assert_eq!(world.accepted(platform, account).await, 3, "{platform}");
    }
}

#[tokio::test]
async fn a_limited_key_replies_within_its_bound_only() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let bob = world.connect("x", "bob").await;
    let both = published(&world, json!({ "content": "Both", "accounts": [ada, bob] })).await;
    let own = published(&world, json!({ "content": "Own", "accounts": [ada] })).await;
    let bound = json!({ "name": "Limited", "scopes": ["posts:write"], "account_ids": [ada] });
    let (status, limited) = world.call(Method::POST, "/api-keys", Some(&bound)).await;
    assert_eq!(status, StatusCode::CREATED, "{limited}");
    let send = |post: &Value| {
        let body = json!({ "content": "More", "reply_to": post["id"], "accounts": [ada] });
        let key = limited["key"].as_str().unwrap();
        world.http.post(format!("{}/posts", world.base)).bearer_auth(key).json(&body)
    };
    let (_, problem) = fail(send(&both), 422, "unprocessable").await;
    assert_eq!(problem["errors"][0]["message"], "The post does not exist", "as if it were another's");
    let made = send(&own).send().await.unwrap();
    assert_eq!(made.status(), StatusCode::CREATED);
    assert_eq!(world.ended(&made.json().await.unwrap()).await["status"], "published");
}

#[tokio::test]
async fn the_dashboard_leads_from_a_reply_to_its_post() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let live = published(&world, json!({ "content": "Hello", "accounts": ["ada"] })).await;
    let reply = published(&world, json!({ "content": "More", "reply_to": live["id"] })).await;
    let cookie = tests::login::sign_in(&world).await;
    let root = world.base.trim_end_matches("/api/v1");
    let page = world.http.get(format!("{root}/dashboard/posts/{}", id(&reply))).header("cookie", cookie);
    let page = page.send().await.unwrap().text().await.unwrap();
    let link = format!(
        "<dt>Reply to</dt><dd><a href=\"/dashboard/posts/{}\" dir=\"auto\">Hello</a></dd>",
        id(&live)
    );
    assert!(page.contains(&link), "{page}");
}
