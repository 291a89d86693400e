//! The dashboard's search, and actions on several posts of the list.

use crate::{browser::Browser, world};
use chrono::TimeDelta;
use domain::scope::Scope;
use serde_json::{Value, json};
use store::people::keys;
use tests::{Receiver, now, samples::png};

fn id(value: &Value) -> &str {
    value["id"].as_str().unwrap()
}

#[tokio::test]
async fn an_id_of_any_kind_leads_to_its_page() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let medium = world.medium("cat.png", None, png(8, 8)).await;
    let post = world.post(json!({ "content": "Find me", "accounts": ["ada"] })).await;
    world.ended(&post).await;
    let listed = world.get("/api-keys").await;
    let key = id(&listed["data"][0]);
    let browser = Browser::signed_in(&world).await;
    let page = format!("/dashboard/posts/{}", id(&post));
    for (sought, expected) in [
        (id(&post), page.clone()),
        (id(&post["targets"][0]), page),
        (&account, format!("/dashboard/accounts#account-{account}")),
        (id(&webhook), format!("/dashboard/webhooks/{}", id(&webhook))),
        (id(&medium), format!("/dashboard/media#media-{}", id(&medium))),
        (key, format!("/dashboard/keys#key-{key}")),
    ] {
        // As it is pasted.
        let found = browser.get(&format!("/search?q=+{}+", sought.to_uppercase())).await;
        assert_eq!(found.leads(), expected);
        let (path, anchor) = expected.split_once('#').unwrap_or((&expected, ""));
        let shown = browser.open(path.strip_prefix("/dashboard").unwrap()).await;
        assert!(anchor.is_empty() || shown.contains(&format!("id=\"{anchor}\"")), "{anchor}: {shown}");
    }
    let unknown = browser.open(&format!("/search?q={}", uuid::Uuid::nil())).await;
    assert!(unknown.contains("Nothing was found."), "{unknown}");
}

#[tokio::test]
async fn a_text_finds_everything_that_has_it_in_its_name() {
    let world = world().start().await;
    world.connect("x", "winter_ada").await;
    let receiver = Receiver::start().await;
    world.subscribe(&format!("{}/winter", receiver.url)).await;
    world.medium("winter.png", None, png(8, 8)).await;
    let new = keys::NewKey {
        owner: world.owner,
        name: "Winter reader".into(),
        scopes: vec![Scope::PostsRead, Scope::AccountsRead],
        expires_at: None,
    };
    let (_, reader) = keys::create(&world.db, new, now()).await.unwrap();
    let post = world.post(json!({ "content": "In winter", "accounts": ["winter_ada"] })).await;
    world.ended(&post).await;

    let mut browser = Browser::signed_in(&world).await;
    let page = browser.open("/search?q=WINTER").await;
    for name in ["In winter", "winter_ada", "winter.png", "/winter", "Winter reader"] {
        assert!(page.contains(name), "{name}: {page}");
    }
    // A character with a meaning in patterns means itself.
    for text in ["w_nter", "%25%25"] {
        let page = browser.open(&format!("/search?q={text}")).await;
        assert!(page.contains("Nothing was found."), "{text}: {page}");
    }
    let short = browser.get("/search?q=w").await;
    assert!(short.text.contains("Enter at least 2 characters."), "{}", short.text);
    browser.sign_in(&reader).await;
    let page = browser.open("/search?q=winter").await;
    assert!(page.contains("In winter") && page.contains("winter_ada"), "{page}");
    for hidden in ["winter.png", "/winter\"", "#key-"] {
        assert!(!page.contains(hidden), "{hidden}: {page}");
    }
}

#[tokio::test]
async fn several_posts_are_retried_or_canceled_at_once() {
    let mut world = world().start().await;
    world.connect("x", "ada").await;
    let mut failed = Vec::new();
    for text in ["One", "Two"] {
        let content = format!("{text} #sandbox-400x1");
        let post = world.post(json!({ "content": content, "accounts": ["ada"] })).await;
        assert_eq!(world.ended(&post).await["status"], "failed");
        failed.push(post);
    }
    let at = (now() + TimeDelta::days(3)).to_rfc3339();
    let later = world.post(json!({ "content": "Later", "accounts": ["ada"], "scheduled_at": at })).await;
    world.leave_post(&later, "it is canceled before it is due");

    let browser = Browser::signed_in(&world).await;
    let page = browser.open("/posts?status=failed").await;
    assert_eq!(page.matches("name=\"post\"").count(), 2, "{page}");
    assert!(page.contains("name=\"status\" value=\"failed\""), "the filter is kept: {page}");
    let form =
        [("status", "failed"), ("post", id(&failed[0])), ("post", id(&failed[1])), ("post", id(&later))];
    let retried = browser.post("/posts/retry", &form).await;
    assert_eq!(retried.leads(), "/dashboard/posts?status=failed&retried=2&unchanged=1");
    let page = browser.open(retried.leads().strip_prefix("/dashboard").unwrap()).await;
    let notice = "2 posts: the next attempt starts now. 1 post not changed: nothing to do there.";
    assert!(page.contains(notice), "{page}");
    for post in &failed {
        let path = format!("/posts/{}", id(post));
        world.until_at(&path, "the post to be published", |post| post["status"] == "published").await;
    }

    let canceled = browser.post("/posts/cancel", &[("post", id(&later))]).await;
    assert_eq!(canceled.leads(), "/dashboard/posts?canceled=1&unchanged=0");
    assert!(!browser.open("/posts").await.contains("Later"));
    let nothing = browser.post("/posts/cancel", &[]).await;
    let page = browser.open(nothing.leads().strip_prefix("/dashboard").unwrap()).await;
    assert!(page.contains("No post was selected."), "{page}");
}
