//! The dashboard's calendar: posts and open slots by day, and moving posts.

use crate::{browser::Browser, world};
use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};
use tests::World;

fn id(post: &Value) -> &str {
    post["id"].as_str().unwrap()
}

/// Schedules a post for a day in March 2031, which begins on a Saturday.
async fn schedule(world: &mut World, content: &str, account: &str, at: &str) -> Value {
    let body = json!({ "content": content, "accounts": [account], "scheduled_at": format!("2031-03-{at}Z") });
    let post = world.post(body).await;
    world.leave_post(&post, "it is scheduled for 2031");
    post
}

/// Returns the cell of a day of March.
fn day(page: &str, number: u32) -> &str {
    let start = format!("data-day=\"2031-03-{number:02}\"");
    let (_, rest) = page.split_once(&start).unwrap_or_else(|| panic!("{start}: {page}"));
    rest.split_once("</td>").unwrap().0
}

#[tokio::test]
async fn posts_stand_on_their_days_in_order() {
    let mut world = world().start().await;
    world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    for (content, account, at) in [
        ("Late", "ada", "04T18:30:00"),
        ("Early", "ada.bsky.social", "04T08:00:00"),
        ("Next week", "ada", "10T08:00:00"),
    ] {
        schedule(&mut world, content, account, at).await;
    }
    for number in 0..8 {
        schedule(&mut world, &format!("Many {number}"), "ada", &format!("20T0{number}:00:00")).await;
    }
    let browser = Browser::signed_in(&world).await;
    let page = browser.open("/calendar?month=2031-03").await;
    let fourth = day(&page, 4);
    let place = |text: &str| fourth.find(text).unwrap_or_else(|| panic!("{text}: {fourth}"));
    assert!(place("Early") < place("Late"), "{fourth}");
    assert!(fourth.contains("scheduled_at=2031-03-04T09%3A00"), "a new post has this day: {fourth}");
    assert!(day(&page, 10).contains("Next week"));
    let many = day(&page, 20);
    assert!(many.contains("Many 5") && !many.contains("Many 6"), "{many}");
    assert!(many.contains("scheduled_from=2031-03-20&#38;scheduled_to=2031-03-20"), "{many}");

    let page = browser.open("/calendar?week=2031-03-05").await;
    assert!(page.contains("3 Mar to 9 Mar 2031") && page.contains("Early"), "{page}");
    assert!(!page.contains("Next week"), "{page}");
    let page = browser.open("/calendar?week=2031-03-20").await;
    assert!(day(&page, 20).contains("Many 7"), "{page}");

    let accounts = world.get("/social-accounts?platform=bluesky").await;
    let page = browser.open(&format!("/calendar?month=2031-03&account={}", id(&accounts["data"][0]))).await;
    assert!(day(&page, 4).contains("Early") && !day(&page, 4).contains("Late"), "{page}");
}

#[tokio::test]
async fn open_slots_are_shown_until_a_post_holds_them() {
    let mut world = world().start().await;
    let account = world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    let browser = Browser::signed_in(&world).await;
    // The slots are in the zone of the page.
    let page = browser.open("/calendar").await;
    assert!(!page.contains("data-slot"), "{page}");
    let slots = json!({ "social_account_id": account, "slots": [{ "weekday": "monday", "time": "09:15" }] });
    let (status, answer) = world.call(Method::PUT, "/scheduling/slots", Some(&slots)).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let next = world.get("/scheduling/find-slot?account=ada&count=2").await;
    let at = |number: usize| next["slots"][number].as_str().unwrap()[..16].to_owned();
    let week = |number| format!("/calendar?week={}", &at(number)[..10]);
    let page = browser.open(&week(0)).await;
    assert!(page.contains(&format!("data-slot=\"{}\"", at(0))), "{page}");
    let compose = format!("scheduled_at={}&#38;account={account}", at(0).replace(':', "%3A"));
    assert!(page.contains(&compose), "{page}");

    let body = json!({ "content": "Queued", "accounts": ["ada"], "queued_from_account": account });
    let queued = world.post(body).await;
    world.leave_post(&queued, "it waits for its slot");
    let page = browser.open(&week(0)).await;
    assert!(!page.contains("data-slot") && page.contains("Queued"), "{page}");
    assert!(browser.open(&week(1)).await.contains(&format!("data-slot=\"{}\"", at(1))));

    // A post that is dropped on a slot goes out at its time.
    let later = schedule(&mut world, "Later", "ada", "04T18:30:00").await;
    let slot = at(1);
    let form =
        [("at", slot.as_str()), ("zone", "UTC"), ("week", "2031-03-03"), ("account", account.as_str())];
    let moved = browser.post(&format!("/posts/{}/reschedule", id(&later)), &form).await;
    assert_eq!(
        moved.leads(),
        format!("/dashboard/calendar?week={}&account={account}&done=rescheduled", &slot[..10])
    );
    let post = world.get(&format!("/posts/{}", id(&later))).await;
    assert_eq!(post["scheduled_at"], format!("{slot}:00.000Z"));
}

#[tokio::test]
async fn the_calendars_days_are_those_of_the_zone() {
    let mut world = world().start().await;
    world.connect("x", "ada").await;
    schedule(&mut world, "At night", "ada", "04T23:30:00").await;
    let browser = Browser::signed_in(&world).await;
    let open = async |cookie: &str| {
        let address = format!("{}/dashboard/calendar?month=2031-03", browser.origin);
        let cookies = format!("{}; {cookie}", browser.cookie);
        browser.http.get(address).header(header::COOKIE, cookies).send().await.unwrap().text().await.unwrap()
    };
    assert!(day(&open("").await, 4).contains("23:30"));
    let page = open("fanfare-zone=Europe/Berlin").await;
    assert!(day(&page, 5).contains("00:30") && !day(&page, 4).contains("At night"), "{page}");
    assert!(day(&page, 5).contains("value=\"2031-03-05T00:30\""), "its form has the local time: {page}");
}
