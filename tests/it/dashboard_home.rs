//! The dashboard's start page: first steps, what needs attention, what comes next.

use crate::{browser::Browser, world};
use chrono::TimeDelta;
use reqwest::{StatusCode, header};
use serde_json::{Value, json};
use tests::{Receiver, World, if_right, now, wait_until};

/// Counts what an organization retried.
const RETRIES: &str =
    "select count(*) from timeline where org_id = $1 and message = 'Retried after it had failed for good'";

/// Returns how many steps of the checklist are done.
async fn steps(browser: &Browser) -> String {
    let page = browser.open("").await;
    let (_, rest) =
        page.split_once("Your first post <span class=\"soft\">").unwrap_or_else(|| panic!("{page}"));
    rest.split_once("</span>").unwrap().0.to_owned()
}

#[tokio::test]
async fn the_checklist_follows_the_facts_until_all_is_done() {
    let world = world().start().await;
    let mut browser = Browser::signed_in(&world).await;
    // The world has a key.
    assert_eq!(steps(&browser).await, "1 of 5 done");
    let page = browser.open("").await;
    assert!(page.contains("ID_OF_AN_ACCOUNT") && page.contains("Bearer sk_test_"), "{page}");
    let account = world.connect("x", "ada").await;
    assert_eq!(steps(&browser).await, "2 of 5 done");
    assert!(browser.open("").await.contains(&account.to_string()), "the command names the account");
    let post = world.post(json!({ "content": "Hello", "accounts": ["ada"] })).await;
    world.ended(&post).await;
    assert_eq!(steps(&browser).await, "4 of 5 done");
    // Once most is done, one row tells what is left.
    let page = browser.open("").await;
    let (_, row) = page.split_once("aria-labelledby=\"checklist-title\"").unwrap();
    let row = row.split("</section>").next().unwrap();
    assert!(row.contains("value=\"4\"") && row.contains("Register a webhook"), "{row}");
    assert!(!row.contains("Connect an account") && row.matches("class=\"button").count() == 1, "{row}");

    let dismissed = browser.post("/checklist/dismiss", &[]).await;
    assert_eq!(dismissed.leads(), "/dashboard");
    let (session, cookie) = (browser.cookie.clone(), dismissed.headers[header::SET_COOKIE].to_str().unwrap());
    browser.cookie = format!("{session}; {}", cookie.split(';').next().unwrap());
    assert!(!browser.open("").await.contains("Your first post"));
    browser.cookie = session;

    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    assert!(!browser.open("").await.contains("Your first post"));
}

#[tokio::test]
async fn the_start_page_shows_what_comes_next_and_what_was_published() {
    let mut world = world().start().await;
    world.connect("x", "ada").await;
    let browser = Browser::signed_in(&world).await;
    assert!(browser.open("").await.contains("Nothing is scheduled."));
    for (text, days) in [("In two days", 2), ("Tomorrow", 1)] {
        let at = (now() + TimeDelta::days(days)).to_rfc3339();
        let post = world.post(json!({ "content": text, "accounts": ["ada"], "scheduled_at": at })).await;
        world.leave_post(&post, "it is due later");
    }
    let post = world.post(json!({ "content": "Already there", "accounts": ["ada"] })).await;
    world.ended(&post).await;
    let page = browser.open("").await;
    let near = page.split_once("id=\"near\"").unwrap().1.split_once("latest-title").unwrap().0;
    let place = |text: &str| near.find(text).unwrap_or_else(|| panic!("{text}: {near}"));
    assert!(place("Tomorrow") < place("In two days"), "{near}");
    assert!(place("In two days") < place("Already there"), "{near}");
    assert!(near.contains("1 active"), "{near}");
}

/// Creates posts that fail for good.
async fn failed(world: &World, count: usize) -> Vec<Value> {
    world.connect("x", "ada").await;
    let mut posts = Vec::new();
    for number in 0..count {
        let content = format!("Refused {number} #sandbox-400");
        let post = world.post(json!({ "content": content, "accounts": ["ada"] })).await;
        assert_eq!(world.ended(&post).await["status"], "failed");
        posts.push(post);
    }
    posts
}

#[tokio::test]
async fn a_cause_is_counted_whole_and_retried_whole() {
    let world = world().start().await;
    // More than the page shows.
    let posts = failed(&world, 8).await;
    let browser = Browser::signed_in(&world).await;
    let page = browser.open("").await;
    assert!(page.contains("8 post targets failed."), "{page}");
    assert_eq!(page.matches("id=\"stuck-").count(), 5);
    assert!(page.contains("Retry all 8"), "{page}");
    let (_, rest) = page.split_once("name=\"code\" value=\"").unwrap();
    let code = rest.split_once('"').unwrap().0;
    let retried = browser.post("/retry", &[("status", "dead"), ("platform", "x"), ("code", code)]).await;
    assert_eq!(retried.leads(), "/dashboard?done=retried");
    // Each has begun another attempt, with a new budget.
    let revived = async || {
        let count: i64 =
            sqlx::query_scalar(RETRIES).bind(world.owner.org.0).fetch_one(&world.db).await.unwrap();
        if_right(count, |count| *count == 8)
    };
    wait_until("all to start over", revived).await;
    for post in &posts {
        world.ended(post).await;
    }
    let nothing = browser.post("/retry", &[("status", "dead"), ("platform", "x"), ("code", "other")]).await;
    assert_eq!(nothing.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn empty_lists_say_what_they_are_for_and_have_one_button_that_fills_them() {
    let world = world().start().await;
    let browser = Browser::signed_in(&world).await;
    for (path, words, link) in [
        ("/posts", "published to every account", "/dashboard/compose"),
        ("/accounts", "the profiles, pages and channels", "#connect-title"),
        ("/compose", "published to the accounts that you choose", "/dashboard/accounts#connect-title"),
        ("/analytics", "for a month after a post is published", "/dashboard/compose"),
        ("/webhooks", "tells an endpoint of yours", "#new-title"),
        ("/events", "tells how a post ended", "/dashboard/compose"),
        ("/team", "signs in with a passkey", "#new-title"),
    ] {
        let page = browser.open(path).await;
        let (_, list) = page.split_once("empty\"><p>").unwrap_or_else(|| panic!("{path}: {page}"));
        let list = list.split("</div>").next().unwrap();
        assert!(list.contains(words), "{path}: {list}");
        assert_eq!(list.matches("class=\"button main\"").count(), 1, "{path}: {list}");
        assert!(list.contains(&format!("href=\"{link}\"")), "{path}: {list}");
    }
    // A filtered list may be empty although there are posts.
    let page = browser.open("/posts?status=failed").await;
    assert!(page.contains("<p>No posts.</p><a class=\"button\" href=\"/dashboard/posts\">"), "{page}");
}
