//! Times on pages: shown and read in the zone of the person who looks.

use crate::{browser::Browser, world};
use reqwest::{StatusCode, header};
use serde_json::json;
use tests::World;

/// Returns a signed-in browser that tells its time zone.
async fn browser_in(world: &World, zone: &str) -> Browser {
    let mut browser = Browser::signed_in(world).await;
    browser.cookie = format!("{}; fanfare-zone={zone}", browser.cookie);
    browser
}

/// A post that is scheduled for half past eleven on New Year's Eve in UTC.
async fn scheduled(world: &World) -> String {
    let account = world.connect("x", "ada").await;
    let body = json!({ "content": "Later", "accounts": [account], "scheduled_at": "2031-12-31T23:30:00Z" });
    world.post(body).await["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn pages_show_times_in_the_browsers_zone_or_the_chosen_one() {
    let world = world().start().await;
    let id = scheduled(&world).await;
    let path = format!("/posts/{id}");
    let page = Browser::signed_in(&world).await.open(&path).await;
    assert!(page.contains(">31 Dec 2031, 23:30:00 UTC</time>"), "{page}");
    assert!(page.contains("Times are in UTC."), "{page}");

    let mut browser = browser_in(&world, "Europe/Berlin").await;
    let page = browser.open(&path).await;
    let shown = "<time datetime=\"2031-12-31T23:30:00Z\" title=\"31 Dec 2031, 23:30:00 UTC\">1 Jan 2032, 00:30:00 CET</time>";
    assert!(page.contains(shown) && page.contains("Times are in Europe/Berlin."), "{page}");
    assert!(page.contains("value=\"2032-01-01T00:30\""), "the form has the local time: {page}");
    let list = browser.open("/posts?scheduled_from=2032-01-01").await;
    assert!(list.contains(">1 Jan 2032, 00:30</time>"), "days of a filter are local, too: {list}");
    assert!(browser.open("/posts?scheduled_to=2031-12-31").await.contains("No posts."));
    let month = browser.open("/calendar?month=2032-01").await;
    let (_, day) = month.split_once("data-day=\"2032-01-01\"").unwrap();
    assert!(day.split("</td>").next().unwrap().contains("<time>00:30</time>"), "{month}");

    let page = browser.post("/me/zone", &[("zone", "Asia/Tokyo")]).await;
    assert_eq!(page.leads(), "/dashboard/me?done=zone_set");
    let cookie = page.headers[header::SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
    browser.cookie = format!("{}; {cookie}", browser.cookie);
    assert!(browser.open(&path).await.contains("1 Jan 2032, 08:30:00 JST"));
    let me = browser.open("/me").await;
    assert!(me.contains("<option value=\"Asia/Tokyo\" selected>") && me.contains("(Europe/Berlin)"), "{me}");
    let cleared = browser.post("/me/zone", &[("zone", "")]).await;
    assert!(cleared.headers[header::SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
    let refused = browser.post("/me/zone", &[("zone", "Middle/Earth")]).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn times_of_forms_are_read_in_the_zone_that_the_form_was_drawn_in() {
    let world = world().start().await;
    let id = scheduled(&world).await;
    let browser = browser_in(&world, "Europe/Berlin").await;
    let at = async || world.get(&format!("/posts/{id}")).await["scheduled_at"].clone();
    let path = format!("/posts/{id}/reschedule");
    let page = browser.post(&path, &[("at", "2031-07-01T12:00"), ("zone", "Europe/Berlin")]).await;
    assert_eq!(page.leads(), "/dashboard/calendar?month=2031-07&done=rescheduled");
    assert_eq!(at().await, "2031-07-01T10:00:00.000Z");
    // The browser's zone became known after the page was drawn.
    browser.post(&path, &[("at", "2031-07-01T12:00"), ("zone", "UTC")]).await.leads();
    assert_eq!(at().await, "2031-07-01T12:00:00.000Z");

    for (time, words) in [
        ("2031-03-30T02:30", "30 Mar 2031, 02:30 does not exist in Europe/Berlin"),
        ("2031-10-26T02:30", "26 Oct 2031, 02:30 occurs twice in Europe/Berlin"),
        ("", "Choose a date and a time"),
    ] {
        let page = browser.post(&path, &[("at", time)]).await;
        assert_eq!(page.status, StatusCode::BAD_REQUEST);
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    assert_eq!(at().await, "2031-07-01T12:00:00.000Z", "nothing was changed");

    let account = world.connect("bluesky", "grace").await.to_string();
    let form = |at| [("text", "Soon"), ("account", &*account), ("scheduled_at", at), ("action", "publish")];
    let page = browser.post("/compose", &form("2031-03-30T02:30")).await;
    assert!(page.text.contains("02:30 does not exist in Europe/Berlin"), "{}", page.text);
    let page = browser.post("/compose", &form("2031-03-30T03:30")).await;
    let (_, rest) = page.leads().split_once("/posts/").unwrap();
    let made = world.get(&format!("/posts/{}", rest.split('?').next().unwrap())).await;
    assert_eq!(made["scheduled_at"], "2031-03-30T01:30:00.000Z");
}
