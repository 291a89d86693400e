//! Lists: their filters, and paging that neither skips nor repeats items.

use crate::world;
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use tests::World;

async fn draft(world: &World, content: &str, accounts: Value, scheduled_at: Option<&str>) -> Value {
    let body =
        json!({ "content": content, "accounts": accounts, "is_draft": true, "scheduled_at": scheduled_at });
    world.post(body).await
}

async fn ids(world: &World, query: &str) -> Vec<Value> {
    let page = world.get(&format!("/posts?{query}")).await;
    page["data"].as_array().unwrap().iter().map(|post| post["id"].clone()).collect()
}

#[tokio::test]
async fn listed_posts_match_every_filter() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let sky = world.connect("bluesky", "ada.bsky.social").await;
    let early = draft(&world, "Early", json!([ada]), Some("2040-01-01T00:00:00Z")).await;
    let late = draft(&world, "Late", json!([ada, sky]), Some("2040-01-02T00:00:00Z")).await;
    let never = draft(&world, "Never", json!([sky]), None).await;
    let gone = draft(&world, "Gone", json!([sky]), None).await;
    world.call(Method::DELETE, &format!("/posts/{}", gone["id"].as_str().unwrap()), None).await;
    let live = world.post(json!({ "content": "Live", "accounts": [ada] })).await;
    world.ended(&live).await;

    let (early, late, never, live) = (&early["id"], &late["id"], &never["id"], &live["id"]);
    let no_account = uuid::Uuid::now_v7();
    for (query, expected) in [
        ("", vec![live, never, late, early]),
        ("status=draft", vec![never, late, early]),
        ("status=published", vec![live]),
        ("status=canceled", vec![]),
        ("platform=bluesky", vec![never, late]),
        ("platform=x", vec![live, late, early]),
        ("platform=reddit", vec![]),
        (&format!("social_account_id={sky}"), vec![never, late]),
        (&format!("social_account_id={no_account}"), vec![]),
        ("status=draft&platform=x", vec![late, early]),
        // The start is inclusive, the end exclusive.
        ("scheduled_after=2040-01-01T00:00:00Z&scheduled_before=2040-01-02T00:00:00Z", vec![early]),
        ("scheduled_after=2040-01-01&scheduled_before=2040-01-02", vec![early]),
        ("scheduled_after=2040-01-01T01:00:00%2B01:00", vec![late, early]),
        ("scheduled_after=2040-01-01T00:00:00.001Z", vec![late]),
        ("scheduled_before=2040-01-01T00:00:00Z", vec![]),
        ("scheduled_before=2040-01-02T00:00:00.001Z&platform=bluesky", vec![late]),
        ("unknown=1", vec![live, never, late, early]),
    ] {
        assert_eq!(ids(&world, query).await, expected.into_iter().cloned().collect::<Vec<_>>(), "{query}");
    }
    // A post's time, as shown in a list, is the inclusive start of a range with that post.
    let at = world.get("/posts").await["data"][2]["created_at"].as_str().unwrap().to_owned();
    let from = ids(&world, &format!("created_after={at}")).await;
    let until = ids(&world, &format!("created_before={at}")).await;
    assert!(from.contains(late) && !until.contains(late), "{at}: {from:?} {until:?}");
    assert_eq!(from.len() + until.len(), 4, "{at}: {from:?} {until:?}");
}

#[tokio::test]
async fn paging_returns_each_post_once_and_in_order_during_inserts() {
    const BEFORE: usize = 60;
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let mut expected = Vec::new();
    for number in 0..BEFORE {
        expected.push(draft(&world, &number.to_string(), json!([ada]), None).await["id"].clone());
    }
    expected.reverse();
    let walking = AtomicBool::new(true);
    let insert = async {
        let mut inserted = 0;
        while walking.load(Ordering::Relaxed) {
            draft(&world, "More", json!([ada]), None).await;
            inserted += 1;
        }
        inserted
    };
    let walk = async {
        let (mut walked, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = world.get(&format!("/posts?limit=3{cursor}")).await;
            walked.extend(page["data"].as_array().unwrap().iter().map(|post| post["id"].clone()));
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        walking.store(false, Ordering::Relaxed);
        walked
    };
    let (walked, inserted) = tokio::join!(walk, insert);
    assert!(inserted > 0, "no post was inserted while paging");
    let old: Vec<_> = walked.iter().filter(|id| expected.contains(id)).cloned().collect();
    assert_eq!(old, expected);
    // Posts inserted later come before them, if they were listed at all.
    assert_eq!(walked[walked.len() - BEFORE..], expected[..]);
}

#[tokio::test]
async fn a_cursor_can_be_used_with_other_filters() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let sky = world.connect("bluesky", "ada.bsky.social").await;
    let mut posts = Vec::new();
    for account in [&ada, &sky, &ada, &sky] {
        posts.push(draft(&world, "Any", json!([account]), None).await["id"].clone());
    }
    let page = world.get("/posts?limit=1").await;
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = ids(&world, &format!("platform=bluesky&cursor={cursor}")).await;
    assert_eq!(rest, [posts[1].clone()], "a cursor is a position in the list, independent of the filters");
}

#[tokio::test]
async fn posts_are_found_by_metadata_tenant_and_text() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let sky = world.connect("bluesky", "ada.bsky.social").await;
    let tenant = json!({ "tenant_id": "customer 7" });
    world.call(Method::PATCH, &format!("/social-accounts/{sky}"), Some(&tenant)).await;
    let post = async |content: &str, accounts: Value, metadata: Value| {
        let body =
            json!({ "content": content, "accounts": accounts, "is_draft": true, "metadata": metadata });
        world.post(body).await
    };
    let one = post("Read 100% of it", json!([ada]), json!({ "env": "prod", "order.id": "7" })).await;
    let two = post("read it", json!([sky]), json!({ "env": "prod", "order.id": "8" })).await;
    let plain = post("Reading_list", json!([ada, sky]), json!({ "gone": null })).await;
    assert_eq!(
        (&one["metadata"], &plain["metadata"]),
        (&json!({ "env": "prod", "order.id": "7" }), &json!({}))
    );
    let listed = world.get("/posts").await;
    assert_eq!(listed["data"][2].get("metadata"), None, "{listed}");

    let (one, two, plain) = (&one["id"], &two["id"], &plain["id"]);
    for (query, expected) in [
        ("metadata[env]=prod", vec![two, one]),
        ("metadata[env]=prod&metadata[order.id]=7", vec![one]),
        ("metadata%5Border.id%5D=8", vec![two]),
        ("metadata[env]=7", vec![]),
        ("metadata[prod]=env", vec![]),
        ("tenant_id=customer%207", vec![plain, two]),
        ("tenant_id=customer", vec![]),
        ("q=READ", vec![plain, two, one]),
        ("q=100%25", vec![one]),
        ("q=%25%25", vec![]),
        ("q=g_l", vec![plain]),
        ("q=d_i", vec![]),
        ("q=read%20it&tenant_id=customer%207&metadata[env]=prod&platform=bluesky", vec![two]),
    ] {
        assert_eq!(ids(&world, query).await, expected.into_iter().cloned().collect::<Vec<_>>(), "{query}");
    }
    let page = world.get("/posts?q=read&limit=1").await;
    let rest = ids(&world, &format!("q=read&cursor={}", page["next_cursor"].as_str().unwrap())).await;
    assert_eq!((&page["data"][0]["id"], rest), (plain, vec![two.clone(), one.clone()]));

    let long = "q".repeat(101);
    for (query, path, code) in [
        ("q=a", json!(["q"]), "too_small"),
        (&*format!("q={long}"), json!(["q"]), "too_big"),
        ("metadata[a%20b]=1", json!(["metadata", "a b"]), "custom"),
        ("metadata=1", json!(["metadata"]), "invalid_type"),
    ] {
        let (status, problem) = world.call(Method::GET, &format!("/posts?{query}"), None).await;
        assert_eq!((status.as_u16(), &problem["errors"][0]["path"]), (400, &path), "{query}: {problem}");
        assert_eq!(problem["errors"][0]["code"], code, "{query}: {problem}");
    }
}

/// These lists once had no pages: without `limit` they answer with all that the default ceilings allow.
#[tokio::test]
async fn short_lists_have_pages_for_those_who_ask() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let create = async |path: &str, body: Value| {
        let (status, made) = world.call(Method::POST, path, Some(&body)).await;
        assert_eq!(status, 201, "{path}: {made}");
    };
    for number in 0..3 {
        create("/api-keys", json!({ "name": format!("key {number}"), "scopes": ["posts:read"] })).await;
        create("/profiles", json!({ "name": format!("profile {number}") })).await;
        create("/team", json!({ "email": format!("{number}@example.com"), "role": "viewer" })).await;
        let url = format!("https://127.0.0.1/{number}");
        create("/webhooks", json!({ "url": url, "events": ["media.failed"] })).await;
    }
    let other = world.connect("bluesky", "ada.bsky.social").await;
    let slots = json!([{ "weekday": "monday", "time": "09:00" }]);
    // The organization's comes first, although it is the youngest.
    for account in [json!(account), json!(other), Value::Null] {
        let set = json!({ "social_account_id": account, "slots": slots });
        let (status, made) = world.call(Method::PUT, "/scheduling/slots", Some(&set)).await;
        assert_eq!(status, 200, "{made}");
    }
    let post = world.post(json!({ "content": "Told step by step", "accounts": [account] })).await;
    world.ended(&post).await;
    let timeline = format!("/posts/{}/timeline", post["id"].as_str().unwrap());

    let paths = ["/api-keys", "/profiles", "/team", "/webhooks", "/scheduling/slots", &timeline];
    let mut cursors = Vec::new();
    for path in paths {
        let all = world.get(path).await;
        let entries = all["data"].as_array().unwrap();
        assert!(entries.len() >= 3, "{path}: {all:#}");
        assert_eq!(all["next_cursor"], Value::Null, "{path}");
        let (mut walked, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = world.get(&format!("{path}?limit=1{cursor}")).await;
            let entries = page["data"].as_array().unwrap();
            assert_eq!(entries.len(), 1, "{path}: {page:#}");
            walked.extend(entries.clone());
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(walked, *entries, "{path}");
        cursors.push(cursor);
    }
    let sets = world.get("/scheduling/slots").await;
    assert_eq!(sets["data"][0]["social_account_id"], Value::Null, "{sets:#}");
    for (path, cursor) in paths.iter().zip(cursors.iter().cycle().skip(1)) {
        let (status, problem) = world.call(Method::GET, &format!("{path}?limit=1{cursor}"), None).await;
        assert_eq!((status.as_u16(), &problem["code"]), (400, &json!("invalid_cursor")), "{path}");
    }
}
