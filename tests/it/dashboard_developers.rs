//! The pages for developers: webhooks with their deliveries, keys, events, requests and usage.

use crate::{browser::Browser, webhooks::deliveries, world};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{Receiver, if_right, wait_until};

#[tokio::test]
async fn a_delivery_shows_what_was_sent_and_answered_and_is_retried_now() {
    // In real time, the second attempt is a minute away.
    let world = world().pace(1.0).start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    let body = json!({ "url": receiver.url, "events": ["post.published"] });
    let (_, webhook) = world.call(Method::POST, "/webhooks", Some(&body)).await;
    receiver.answer([503]);
    let post = world.post(json!({ "content": "Wait", "accounts": ["ada"] })).await;
    let waits = |all: &[Value]| all.iter().any(|one| one["status"] == "pending" && one["attempts"] == 1);
    let waiting = deliveries(&world, &webhook, waits).await;
    let [endpoint, id] = [&webhook["id"], &waiting[0]["id"]].map(|id| id.as_str().unwrap().to_owned());
    let browser = Browser::signed_in(&world).await;
    let list = browser.open(&format!("/webhooks/{endpoint}")).await;
    assert!(list.contains("Retry now") && list.contains("the endpoint answered 503"), "{list}");
    let path = format!("/webhooks/{endpoint}/deliveries/{id}");
    assert!(list.contains(&format!("href=\"/dashboard{path}\"")), "{list}");
    let page = browser.open(&path).await;
    let link = format!("href=\"/dashboard/posts/{}\"", post["id"].as_str().unwrap());
    let event_id = waiting[0]["event_id"].as_str().unwrap();
    for words in ["Retry now", ">503</span>", "Next try", "&#34;postId&#34;", &link, event_id, &id] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(page.contains(&format!("data-copy=\"{event_id}\"")), "{page}");

    let retried = browser.post(&format!("{path}/redeliver"), &[("back", "delivery")]).await;
    assert_eq!(retried.leads(), format!("/dashboard{path}?done=redelivered"));
    receiver.until("the second attempt", |all| all.len() == 2).await;
    deliveries(&world, &webhook, |all| all.iter().any(|one| one["status"] == "delivered")).await;
    let page = browser.open(&path).await;
    for words in [">503</span>", ">200</span>", "Redeliver", "Delivered"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert_eq!(
        browser.get(&format!("/webhooks/{endpoint}/deliveries/7")).await.status,
        StatusCode::NOT_FOUND
    );
    let filtered = browser.open(&format!("/webhooks/{endpoint}?event=post.error")).await;
    assert!(filtered.contains("No deliveries."), "{filtered}");

    let replay = format!("/webhooks/{endpoint}/replay");
    let period = [("include", "all"), ("since", "2020-01-01T00:00"), ("until", "2020-02-01T00:00")];
    browser.post(&replay, &period).await.leads();
    assert_eq!(
        world.get(&format!("{}/deliveries", path.split("/deliveries").next().unwrap())).await["data"][0]["status"],
        "delivered"
    );
    let refused = browser.post(&replay, &[("since", "soon")]).await;
    assert!(refused.status == StatusCode::BAD_REQUEST && refused.text.contains("is not a date with a time"));
    let period = [("include", "all"), ("since", "2020-01-01T00:00")];
    browser.post(&replay, &period).await.leads();
    receiver.until("the replay", |all| all.len() == 3).await;
}

#[tokio::test]
async fn lists_are_tables_with_what_one_looks_for() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let post = world.post(json!({ "content": "One", "accounts": [account] })).await;
    world.ended(&post).await;
    let browser = Browser::signed_in(&world).await;
    let accounts = browser.open("/accounts").await;
    let row = accounts
        .split(&format!("<tr id=\"account-{account}\">"))
        .nth(1)
        .unwrap()
        .split("</tr>")
        .next()
        .unwrap();
    for words in ["ada on X", "#x\"", "99 of 100 left", "Check now", "Reconnect", "Disconnect…", "Active"] {
        assert!(row.contains(words), "{words}: {row}");
    }
    assert!(row.contains(&format!("data-copy=\"{account}\"")), "{row}");

    let webhooks = browser.open("/webhooks").await;
    assert!(
        webhooks.contains("or, in this mode, one of this machine"),
        "a test endpoint may be local: {webhooks}"
    );
    let team = browser.open("/team").await;
    for role in ["viewer", "publisher", "admin", "owner"] {
        assert!(team.contains(&format!("<th scope=\"row\" class=\"tight\">{role}</th>")), "{role}: {team}");
    }
    let made = browser.post("/keys", &[("name", "Robot"), ("scope", "accounts:read")]).await;
    let key = made.secret().to_owned();
    let command = format!("curl {}/social-accounts -H &#39;Authorization: Bearer {key}&#39;", world.base);
    assert!(made.text.contains(&format!("data-copy=\"{command}\"")), "{}", made.text);
}

#[tokio::test]
async fn events_are_listed_newest_first_with_their_payload_and_deliveries() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let publish = async |content: &str| {
        let post = world.post(json!({ "content": content, "accounts": [account] })).await;
        world.ended(&post).await
    };
    publish("The earlier one").await;
    let post = publish("The later one").await;
    let is_done = |all: &[Value]| all.len() == 4 && all.iter().all(|one| one["status"] == "delivered");
    deliveries(&world, &webhook, is_done).await;
    let browser = Browser::signed_in(&world).await;
    let list = browser.open("/events").await;
    let place = |words: &str| list.find(words).unwrap_or_else(|| panic!("{words}: {list}"));
    assert!(place("The later one") < place("The earlier one"), "newest first: {list}");
    assert!(place(">post.published</a>") < place(">post.target.published</a>"), "newest first: {list}");
    let filtered = browser.open("/events?event=post.published").await;
    let rows = filtered.split_once("<tbody>").unwrap().1;
    assert!(rows.contains(">post.published</a>") && !rows.contains("post.target.published"), "{filtered}");

    let path = rows.split("href=\"/dashboard").nth(1).unwrap().split('"').next().unwrap();
    let event = browser.open(path).await;
    let id = post["id"].as_str().unwrap();
    for words in ["&#34;event&#34;: &#34;post.published&#34;", &receiver.url, "Delivered", "<td>200</td>", id]
    {
        assert!(event.contains(words), "{words}: {event}");
    }
    let older = browser.open(&format!("/events?before={}", path.rsplit('/').next().unwrap())).await;
    assert!(older.contains("The earlier one"), "{older}");
    assert_eq!(older.matches("The later one").count(), 1, "only that of its target: {older}");
    for nothing in ["/events/7", "/events/01a1fd4e-5c2b-7d31-8f0a-1c2d3e4f5a6b"] {
        assert_eq!(browser.get(nothing).await.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn requests_are_filtered_by_status_and_path() {
    let world = world().start().await;
    world.call(Method::POST, "/posts", Some(&json!({}))).await;
    world.get("/media").await;
    let browser = Browser::signed_in(&world).await;
    let logged = |words: &'static str| {
        let browser = &browser;
        async move { if_right(browser.open("/requests").await, |page| page.contains(words)) }
    };
    wait_until("the failed request", async || logged("POST /api/v1/posts").await).await;
    wait_until("the other request", async || logged("GET /api/v1/media").await).await;
    let errors = browser.open("/requests?min_status=400").await;
    assert!(errors.contains("POST /api/v1/posts") && !errors.contains("GET /api/v1/media"), "{errors}");
    let media = browser.open("/requests?path=/api/v1/media").await;
    assert!(!media.contains("POST /api/v1/posts") && media.contains("GET /api/v1/media"), "{media}");
    let found = world.get("/account/requests?min_status=400&path=/api/v1/p").await;
    assert!(found["data"].as_array().unwrap().iter().all(|one| one["path"] == "/api/v1/posts"), "{found}");
    assert_eq!(browser.get("/requests?min_status=7").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn usage_is_drawn_with_a_table_of_the_same_numbers() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    for content in ["One", "Two"] {
        let post = world.post(json!({ "content": content, "accounts": [account] })).await;
        world.ended(&post).await;
    }
    let page = Browser::signed_in(&world).await.open("/usage").await;
    let today = tests::now().format("%-d %b").to_string();
    assert!(page.contains("aria-label=\"Published posts by day: 2 in all, at most 2\""), "{page}");
    assert!(page.contains(&format!("<title>{today}: 2</title>")), "{page}");
    assert!(page.contains(&format!("<th scope=\"row\">{today}</th><td class=\"number\">2</td>")), "{page}");
    assert!(page.contains("Requests of the log by day") && !page.contains(" style="), "{page}");
}
