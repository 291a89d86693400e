//! The dashboard's analytics: growth by day, platform and account, the best posts, and the figures of a post.

use crate::{browser::Browser, world};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{Metrics, Owner, scope::Scope};
use reqwest::StatusCode;
use serde_json::{Value, json};
use store::{
    bounds::unbounded,
    dashboard::analytics::{self, Filter, Metric},
    people::keys,
    usage::metrics::{self, Snapshot},
};
use tests::{World, now};

async fn connected() -> World {
    let world = world().start().await;
    world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    world.set_sandbox(json!({ "lag_ms": 0 })).await;
    world
}

async fn published(world: &World, content: &str) -> Value {
    let post = world.post(json!({ "content": content, "accounts": ["ada", "ada.bsky.social"] })).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    ended
}

fn target(post: &Value, platform: &str) -> domain::TargetId {
    let targets = post["targets"].as_array().unwrap();
    let found = targets.iter().find(|target| target["platform"] == platform).unwrap();
    found["id"].as_str().unwrap().parse::<uuid::Uuid>().unwrap().into()
}

/// Stores impressions and likes of a target, as if its platform had told them.
async fn record(world: &World, target: domain::TargetId, captured_at: DateTime<Utc>, counts: (u64, u64)) {
    let metrics = Metrics { impressions: counts.0, likes: counts.1, ..Metrics::default() };
    let snapshot = Snapshot { target, metrics, captured_at };
    assert!(metrics::record(&world.db, world.owner, &snapshot).await.unwrap());
}

#[tokio::test]
async fn growth_is_summed_up_by_day_and_account() {
    let world = connected().await;
    let post = published(&world, "Hello").await;
    let (x, bluesky) = (target(&post, "x"), target(&post, "bluesky"));
    let (today, day) = (now(), TimeDelta::days(1));
    record(&world, x, today - day * 40, (7, 0)).await;
    record(&world, x, today - day, (1_007, 3)).await;
    record(&world, x, today, (1_500, 2)).await;
    record(&world, bluesky, today, (20, 9)).await;
    // It comes late: what it has is in the growth of a later one.
    record(&world, x, today - day * 2, (900, 1)).await;

    let filter = Filter {
        first: (today - day * 29).date_naive(),
        last: today.date_naive(),
        platform: None,
        account: None,
    };
    let days = analytics::days(&world.db, unbounded(world.owner).whole().unwrap(), &filter).await.unwrap();
    let found = days.iter().map(|grown| {
        let (impressions, likes) = (grown.growth.of(Metric::Impressions), grown.growth.of(Metric::Likes));
        ((today.date_naive() - grown.day).num_days(), grown.platform.as_str(), impressions, likes)
    });
    let expected = [(1, "x", 1_000, 3), (0, "bluesky", 20, 9), (0, "x", 493, -1)];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    let other = Owner { mode: domain::Mode::Live, ..world.owner };
    assert!(analytics::days(&world.db, unbounded(other).whole().unwrap(), &filter).await.unwrap().is_empty());

    let browser = Browser::signed_in(&world).await;
    let page = browser.open("/analytics").await;
    // 1,513 in the last 30 days, 7 in those before.
    assert!(page.contains(">1,513</strong>") && page.contains("+21514 %"), "{page}");
    let iso = |days| (today - day * days).date_naive().to_string();
    let row = |days, cells: &str| {
        let (_, rest) = page.split_once(&format!("datetime=\"{}\"", iso(days))).unwrap();
        let row = rest.split_once("</tr>").unwrap().0;
        assert!(row.ends_with(cells), "{row}");
    };
    row(0, "<td class=\"number\">20</td><td class=\"number\">493</td>");
    row(1, "<td class=\"number\">0</td><td class=\"number\">1000</td>");
    row(2, "<td class=\"number\">0</td><td class=\"number\">0</td>");
    let by = |page: &str, name: &str| page.find(&format!("<span dir=\"auto\">{name}</span>")).unwrap();
    assert!(by(&page, "ada") < by(&page, "ada.bsky.social"), "the account with more comes first");

    let page = browser.open("/analytics?metric=likes&days=7").await;
    assert!(page.contains("Likes per day") && page.contains(">1,513</strong>"), "{page}");
    assert!(by(&page, "ada.bsky.social") < by(&page, "ada"), "the account with more likes comes first");
    let page = browser.open("/analytics?platform=bluesky").await;
    assert!(page.contains(">20</strong>") && !page.contains("1,500"), "{page}");
}

#[tokio::test]
async fn the_best_posts_of_a_period_come_first() {
    let world = connected().await;
    let (less, more) = (published(&world, "Less").await, published(&world, "More").await);
    for (post, likes) in [(&less, 5), (&more, 50)] {
        record(&world, target(post, "x"), now(), (100, likes)).await;
    }
    let browser = Browser::signed_in(&world).await;
    let page = browser.open("/analytics?metric=likes").await;
    let link = |post: &Value| format!("/dashboard/analytics/posts/{}\">", post["id"].as_str().unwrap());
    let place = |post| page.find(&link(post)).unwrap_or_else(|| panic!("{page}"));
    assert!(place(&more) < place(&less), "{page}");
}

#[tokio::test]
async fn a_posts_figures_are_read_again_on_request() {
    let world = connected().await;
    let post = published(&world, "Look at me").await;
    let path = format!("/analytics/posts/{}", post["id"].as_str().unwrap());
    let browser = Browser::signed_in(&world).await;
    let page = browser.open(&path).await;
    assert!(page.contains("Not yet") && !page.contains("data-chart"), "{page}");
    let done = browser.post(&format!("{path}/refresh"), &[]).await;
    assert_eq!(done.leads(), format!("/dashboard{path}?done=measured"));
    let page = browser.open(&path).await;
    assert!(!page.contains("Not yet") && page.contains("Impressions over time"), "{page}");
    assert!(page.contains("X, ada</th>") && page.contains("Bluesky, ada.bsky.social</th>"), "{page}");
    let page = browser.open(&format!("/posts/{}", post["id"].as_str().unwrap())).await;
    assert!(page.contains(&format!("/dashboard{path}")), "{page}");

    let draft = world.post(json!({ "content": "Later", "accounts": ["ada"], "is_draft": true })).await;
    let path = format!("/analytics/posts/{}", draft["id"].as_str().unwrap());
    assert!(browser.open(&path).await.contains("not published yet"));
    let refused = browser.post(&format!("{path}/refresh"), &[]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
}

#[tokio::test]
async fn analytics_ask_for_their_scope() {
    let world = world().start().await;
    let new = keys::NewKey {
        owner: world.owner,
        name: "reader".into(),
        scopes: vec![Scope::PostsRead, Scope::AccountsRead],
        expires_at: None,
    };
    let (_, text) = keys::create(&world.db, new, now()).await.unwrap();
    let mut browser = Browser::new(&world);
    browser.sign_in(&text).await;
    assert_eq!(browser.get("/analytics").await.status, StatusCode::FORBIDDEN);
    assert!(!browser.open("").await.contains("/dashboard/analytics"));
    let browser = Browser::signed_in(&world).await;
    let page = browser.open("/analytics").await;
    assert!(page.contains("No metrics in this period") && page.contains("/dashboard/analytics"), "{page}");
}
