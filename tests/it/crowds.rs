//! Organizations with very much of something: no list, page or form takes more for it than a request may.

use crate::{browser::Browser, world};
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tests::{World, sql};

/// Longest page of a list, in bytes.
const PAGE: usize = 1 << 20;

/// Stores accounts of X without a grant, and returns their ids.
async fn accounts(world: &World, count: usize) -> Vec<String> {
    let org = world.owner.org;
    let insert = format!(
        "insert into accounts (id, org_id, mode, platform, network_unique_id, username, display_name)
         select gen_random_uuid(), '{org}', 'test', 'x', 'u' || n, 'user' || n, n from generate_series(1, {count}) n"
    );
    sql(&world.db, &insert).await;
    let stored =
        sqlx::query_scalar("select id::text from accounts where org_id = $1 order by id").bind(org.0);
    stored.fetch_all(&world.db).await.unwrap()
}

/// Reads all pages of a list for a client that asks for none, and returns the entries of each.
async fn pages(world: &World, path: &str) -> Vec<Vec<Value>> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let query = cursor.map(|cursor: String| format!("?cursor={cursor}")).unwrap_or_default();
        let page = world.get(&format!("{path}{query}")).await;
        assert!(page.to_string().len() < PAGE, "a page of {path} has {} bytes", page.to_string().len());
        all.push(page["data"].as_array().unwrap().clone());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return all,
        }
    }
}

/// Returns the number of different ids.
fn different(pages: &[Vec<Value>]) -> usize {
    pages.iter().flatten().map(|entry| entry["id"].as_str().unwrap()).collect::<BTreeSet<_>>().len()
}

/// A slot takes far more memory than its text.
#[tokio::test]
async fn a_page_of_slots_ends_with_some_thousands() {
    let world = world().start().await;
    accounts(&world, 100).await;
    let org = world.owner.org;
    let slots = "(select jsonb_agg(jsonb_build_object('weekday', 'monday', 'time', '0' || k % 10 || ':00'))
      from generate_series(1, 168) k)";
    let insert = format!(
        "insert into slots (id, org_id, mode, account_id, slots)
         select gen_random_uuid(), '{org}', 'test', id, {slots}
         from (select id from accounts where org_id = '{org}' union all select null) all_of_them"
    );
    sql(&world.db, &insert).await;
    let pages = pages(&world, "/scheduling/slots").await;
    assert_eq!((different(&pages), pages.iter().map(Vec::len).sum::<usize>()), (101, 101));
    assert!(pages[0][0]["social_account_id"].is_null(), "the organization's come first");
    assert!(
        pages.iter().all(|page| page.len() <= 30),
        "{:?}",
        pages.iter().map(Vec::len).collect::<Vec<_>>()
    );
    assert_eq!(world.get("/scheduling/slots?limit=10").await["data"].as_array().unwrap().len(), 10);
}

/// Keys that have expired are listed as well, and no ceiling of a plan counts them.
#[tokio::test]
async fn a_page_of_keys_ends_with_some_thousands_of_accounts() {
    let world = world().start().await;
    let org = world.owner.org;
    let insert = format!(
        "insert into api_keys (id, org_id, mode, name, digest, last_four, scopes, expires_at, bound)
         select gen_random_uuid(), '{org}', 'test', 'old', sha256(random()::text::bytea), 'abcd', array['posts:read'],
           now() - interval '1 hour', jsonb_build_object('accounts',
             (select jsonb_agg(gen_random_uuid()) from generate_series(1, 1000)))
         from generate_series(1, 40) n"
    );
    sql(&world.db, &insert).await;
    let pages = pages(&world, "/api-keys").await;
    assert_eq!((different(&pages), pages.iter().map(Vec::len).sum::<usize>()), (41, 41));
    let accounts = |page: &Vec<Value>| {
        page.iter().map(|key| key["account_ids"].as_array().map_or(0, Vec::len)).sum::<usize>()
    };
    assert!(
        pages.iter().map(accounts).all(|count| count <= 11_000),
        "{:?}",
        pages.iter().map(accounts).max()
    );
}

/// One of a post to many accounts tells of each of them.
#[tokio::test]
async fn a_page_of_events_ends_with_some_megabytes() {
    let world = world().start().await;
    let org = world.owner.org;
    let insert = format!(
        "insert into events (id, org_id, mode, event, body)
         select uuidv, '{org}', 'test', 'post.published', json_build_object('event', 'post.published',
           'timestamp', '2026-01-01T00:00:00.000Z', 'data', json_build_object('error', repeat('e', 300000)))::text
         from (select gen_random_uuid() as uuidv from generate_series(1, 20)) ids"
    );
    sql(&world.db, &insert).await;
    let (mut pages, mut after) = (Vec::new(), String::new());
    loop {
        let page = world.get(&format!("/events?limit=100{after}")).await;
        let events = page["data"].as_array().unwrap().clone();
        after = format!("&after={}", page["next_cursor"].as_str().unwrap());
        if events.is_empty() {
            break;
        }
        pages.push(events);
    }
    let lengths: Vec<_> = pages.iter().map(Vec::len).collect();
    assert_eq!((different(&pages), lengths.iter().sum::<usize>()), (20, 20), "each once: {lengths:?}");
    assert!(lengths.iter().all(|length| *length <= 8), "{lengths:?}");
}

#[tokio::test]
async fn a_button_retries_some_of_very_many_targets() {
    let world = world().running(&["api"]).start().await;
    accounts(&world, 300).await;
    let org = world.owner.org;
    let insert = format!(
        "insert into posts (id, org_id, mode, status, is_draft) values (gen_random_uuid(), '{org}', 'test', 'failed', false);
         insert into containers (id, post_id, org_id, mode, position, content)
         select gen_random_uuid(), id, '{org}', 'test', 0, 'Hello' from posts where org_id = '{org}';
         insert into targets (id, post_id, org_id, mode, account_id, platform, status, error_code, error_message)
         select gen_random_uuid(), p.id, '{org}', 'test', a.id, 'x', 'dead', 'content_rejected', 'refused'
         from posts p, accounts a where p.org_id = '{org}' and a.org_id = '{org}'"
    );
    sql(&world.db, &insert).await;
    let browser = Browser::signed_in(&world).await;
    let form = [("status", "dead"), ("platform", "x"), ("code", "content_rejected")];
    for left in [100, 0] {
        let page = browser.post("/retry", &form).await;
        assert_eq!(page.status, StatusCode::SEE_OTHER, "{}", page.text);
        let dead = sqlx::query_scalar::<_, i64>("select count(*) from targets where status = 'dead'");
        assert_eq!(dead.fetch_one(&world.db).await.unwrap(), left);
    }
}

#[tokio::test]
async fn a_form_changes_no_more_posts_than_a_page_shows() {
    let mut world = world().start().await;
    let account = world.connect("x", "ada").await;
    let mut posts = Vec::new();
    for number in 0..26 {
        let post = json!({ "content": number.to_string(), "accounts": [account], "is_draft": true });
        posts.push(world.post(post).await);
    }
    posts.iter().for_each(|post| world.leave_post(post, "it is a draft"));
    let form: Vec<_> = posts.iter().map(|post| ("post", post["id"].as_str().unwrap())).collect();
    let browser = Browser::signed_in(&world).await;
    for action in ["cancel", "retry"] {
        let page = browser.post(&format!("/posts/{action}"), &form).await;
        assert_eq!(page.status, StatusCode::BAD_REQUEST, "{}", page.text);
        assert!(page.text.contains("most 25 posts"), "{}", page.text);
    }
    assert_eq!(world.get("/posts?limit=100").await["data"].as_array().unwrap().len(), 26, "none is deleted");
    let canceled = browser.post("/posts/cancel", &form[1..]).await;
    assert_eq!(canceled.leads(), "/dashboard/posts?canceled=25&unchanged=0");
}

#[tokio::test]
async fn a_preview_shows_some_of_many_accounts_and_those_with_an_error_first() {
    let world = world().start().await;
    let many = accounts(&world, 1000).await;
    // X counts an address as 23 characters, and Bluesky each of them.
    let bluesky = world.connect("bluesky", "ada").await;
    let text = format!("Look: https://example.com/{}", "a".repeat(400));
    let browser = Browser::signed_in(&world).await;
    let mut form = vec![("zone", "UTC"), ("text", text.as_str())];
    form.extend(many[1..].iter().map(|id| ("account", id.as_str())));
    form.push(("account", &bluesky));
    for path in ["/compose", "/compose/preview"] {
        let page = browser.post(path, &form).await;
        assert_eq!(page.status, StatusCode::OK, "{}", page.text);
        let [first, other] = ["on Bluesky", "on X"].map(|words| page.text.find(words));
        assert!(first.is_some() && first < other, "{path}: {first:?} {other:?}");
        assert!(page.text.contains("970 more accounts, not shown"), "{path}: {} bytes", page.text.len());
        assert!(page.text.len() < PAGE, "{path}: {} bytes", page.text.len());
    }
}
