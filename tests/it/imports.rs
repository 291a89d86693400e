//! Imports of the posts that an account published elsewhere: each is stored once, despite failures.

use crate::{
    api::{fail, key, request},
    world,
};
use ::store::accounts::{self, Connect};
use chrono::{DateTime, Utc};
use domain::{Mode, Owner, scope::Scope};
use reqwest::Method;
use serde_json::{Value, json};
use std::{collections::BTreeSet, ops::Range};
use tests::{Hold, Receiver, World};

/// More posts than fit on one page of X.
const MANY: usize = 130;

/// Connects an X account with `posts` posts that were published without Fanfare, and returns its id.
async fn prolific(world: &World, username: &str, posts: usize) -> String {
    world.set_sandbox(json!({ "lag_ms": 0, "limits": { "x.posts": 1000 } })).await;
    publish(world, username, 0..posts).await;
    world.connect("x", username).await
}

async fn publish(world: &World, username: &str, numbers: Range<usize>) {
    let token = world.account("x", username).await.grant.access_token;
    for n in numbers {
        let url = format!("{}/api.x.com/2/tweets", world.sandbox_url);
        let tweet = json!({ "text": format!("Number {n}") });
        let sent = world.http.post(url).bearer_auth(&token).json(&tweet).send().await.unwrap();
        assert_eq!(sent.status(), 201);
    }
}

/// Returns a time between two posts: X's ids have the resolution of a millisecond.
async fn moment() -> DateTime<Utc> {
    let millis = tests::now().timestamp_millis() + 1;
    while tests::now().timestamp_millis() < millis {
        tokio::task::yield_now().await;
    }
    DateTime::from_timestamp_millis(millis).unwrap()
}

pub(crate) async fn begin(world: &World, account: &str, body: Value) -> Value {
    let path = format!("/social-accounts/{account}/imports");
    let (status, import) = world.call(Method::POST, &path, Some(&body)).await;
    assert_eq!(status, 202, "{import}");
    import
}

/// Waits until `right` holds for an import.
async fn until(world: &World, import: &Value, right: impl Fn(&Value) -> bool) -> Value {
    let of = |field: &str| import[field].as_str().unwrap().to_owned();
    let path = format!("/social-accounts/{}/imports/{}", of("social_account_id"), of("id"));
    world.until_at(&path, "the import", right).await
}

pub(crate) async fn ended(world: &World, import: &Value) -> Value {
    until(world, import, |found| found["status"] == "completed" || found["status"] == "failed").await
}

fn counts(import: &Value) -> (u64, u64) {
    let count = |field: &str| import[field].as_u64().unwrap();
    (count("imported_count"), count("skipped_count"))
}

/// Returns all imported posts of an account, page by page.
pub(crate) async fn imported(world: &World, account: &str) -> Vec<Value> {
    let path = format!("/social-accounts/{account}/imported-posts?limit=100");
    let (mut all, mut at) = (Vec::new(), path.clone());
    loop {
        let page = world.get(&at).await;
        all.extend(page["data"].as_array().unwrap().iter().cloned());
        let Some(next) = page["next_cursor"].as_str() else { return all };
        at = format!("{path}&cursor={next}");
    }
}

fn contents(posts: &[Value]) -> Vec<&str> {
    posts.iter().map(|post| post["content"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_import_stores_each_post_once_and_sends_an_event() {
    let world = world().start().await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let account = prolific(&world, "ada", 3).await;
    let import = begin(&world, &account, json!({})).await;
    assert_eq!((&import["status"], &import["social_account_id"]), (&json!("pending"), &json!(account)));
    for field in ["from_date", "to_date", "error_message", "started_at", "finished_at"] {
        assert_eq!(import[field], Value::Null, "{field}");
    }
    let done = ended(&world, &import).await;
    assert_eq!((&done["status"], counts(&done)), (&json!("completed"), (3, 0)), "{done}");
    assert!(done["started_at"].is_string() && done["finished_at"].is_string());

    let posts = imported(&world, &account).await;
    assert_eq!(contents(&posts), ["Number 2", "Number 1", "Number 0"]);
    for post in &posts {
        let page = world.http.get(post["platform_post_url"].as_str().unwrap()).send().await.unwrap();
        assert!(page.status().is_success() && page.text().await.unwrap().contains("Number"));
        assert!(post["platform_post_id"].is_string() && post["published_at"].is_string());
        assert_eq!(post["media"], json!([]));
        assert!(post["metrics"]["likes"].is_u64() && post["metrics"]["impressions"].is_u64());
    }

    let reported = receiver.events(&["import.completed"]).await.remove(0).json();
    assert_eq!(
        reported["data"],
        json!({
            "orgId": world.owner.org, "import_id": import["id"], "social_account_id": account,
            "status": "completed", "imported": 3,
        })
    );

    // A second import finds one new post, which was published with Fanfare.
    let post = world.post(json!({ "content": "Number 3", "accounts": ["ada"] })).await;
    assert_eq!(world.ended(&post).await["status"], "published");
    let again = begin(&world, &account, json!({ "limit": 1000 })).await;
    assert_eq!(counts(&ended(&world, &again).await), (1, 3));
    assert_eq!(imported(&world, &account).await.len(), 4);

    let path = format!("/social-accounts/{account}/imports?limit=1");
    let first = world.get(&path).await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = world.get(&format!("{path}&cursor={cursor}")).await;
    assert_eq!((&first["data"][0]["id"], &second["data"][0]["id"]), (&again["id"], &import["id"]));
    assert_eq!(second["next_cursor"], Value::Null);
    let elsewhere = format!("/social-accounts/{account}/imported-posts?cursor={cursor}");
    fail(request(&world, Method::GET, &elsewhere), 400, "invalid_cursor").await;
}

#[tokio::test]
async fn an_import_respects_its_date_range_and_limit() {
    let world = world().start().await;
    let account = prolific(&world, "ada", 2).await;
    let from = moment().await;
    publish(&world, "ada", 2..4).await;
    let to = moment().await;
    publish(&world, "ada", 4..5).await;
    for (body, expected) in [
        (json!({ "from_date": from, "to_date": to }), (2, 0)),
        (json!({ "to_date": to }), (2, 2)),
        (json!({ "to_date": from }), (0, 2)),
        (json!({ "from_date": to, "limit": 1 }), (1, 0)),
        // The limit counts the posts that are read, so that a repeated import finds the same ones.
        (json!({ "limit": 2 }), (0, 2)),
    ] {
        assert_eq!(
            counts(&ended(&world, &begin(&world, &account, body.clone()).await).await),
            expected,
            "{body}"
        );
    }
    assert_eq!(imported(&world, &account).await.len(), 5);
}

#[tokio::test]
async fn an_import_resumes_after_its_worker_is_killed() {
    let mut world = world().running(&["api", "worker"]).start().await;
    let account = prolific(&world, "ada", MANY).await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    // Holds the response of the second page.
    let hold = hold(&world, 2, "after").await;
    let import = begin(&world, &account, json!({ "limit": 1000 })).await;
    hold.until_held().await;
    let midway = until(&world, &import, |_| true).await;
    assert_eq!((&midway["status"], counts(&midway)), (&json!("running"), (100, 0)));
    world.kill("worker").await;
    hold.release().await;
    world.run("worker").await;
    let done = ended(&world, &import).await;
    assert_eq!((&done["status"], counts(&done)), (&json!("completed"), (MANY as u64, 0)), "{done}");
    let posts = imported(&world, &account).await;
    let expected: BTreeSet<_> = (0..MANY).map(|n| format!("Number {n}")).collect();
    let found: BTreeSet<_> = contents(&posts).into_iter().map(str::to_owned).collect();
    assert_eq!((posts.len(), found), (MANY, expected));
    receiver.events(&["import.completed"]).await;
    assert_eq!(receiver.all().len(), 1, "one event");
}

/// Holds a page of X's list.
async fn hold(world: &World, nth: u64, when: &str) -> Hold {
    let page =
        json!({ "platform": "x", "method": "GET", "path_prefix": "/2/users/", "nth": nth, "when": when });
    world.hold(page).await
}

#[tokio::test]
async fn an_import_retries_a_request_without_a_response() {
    let world = world().start().await;
    let account = prolific(&world, "ada", 2).await;
    hold(&world, 1, "before").await;
    let import = begin(&world, &account, json!({})).await;
    let done = ended(&world, &import).await;
    assert_eq!((&done["status"], counts(&done)), (&json!("completed"), (2, 0)), "{done}");
}

#[tokio::test]
async fn a_rate_limited_import_waits_and_fails_when_its_account_is_disconnected() {
    let mut world = world().start().await;
    let account = prolific(&world, "ada", MANY).await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    world.set_sandbox(json!({ "limits": { "x.timeline": 1 } })).await;
    let import = begin(&world, &account, json!({ "limit": 1000 })).await;
    let waiting = until(&world, &import, |found| counts(found).0 == 100).await;
    assert_eq!((&waiting["status"], &waiting["finished_at"]), (&json!("running"), &Value::Null));

    let path = format!("/social-accounts/{account}/imports");
    fail(request(&world, Method::POST, &path).json(&json!({})), 409, "conflict").await;

    let (status, _) = world.call(Method::DELETE, &format!("/social-accounts/{account}"), None).await;
    assert_eq!(status, 200);
    let reported = receiver.events(&["import.failed", "account.disconnected"]).await;
    let failed: Vec<_> = reported.iter().filter(|delivery| delivery.event() == "import.failed").collect();
    assert_eq!(failed.len(), 1, "one event");
    assert_eq!(
        failed[0].json()["data"],
        json!({
            "orgId": world.owner.org, "import_id": import["id"], "social_account_id": account,
            "status": "failed", "imported": 100, "error": "the account was disconnected",
        })
    );
    fail(request(&world, Method::GET, &path), 404, "not_found").await;

    // A reconnected account keeps its imports, and another one can be started.
    assert_eq!(world.connect("x", "ada").await, account);
    let failed = until(&world, &import, |_| true).await;
    assert_eq!(failed["error_message"], "the account was disconnected");
    begin(&world, &account, json!({})).await;
    world.leave("ImportPosts", "both wait for the platform's rate limit window to end");
}

#[tokio::test]
async fn an_import_refreshes_an_expired_token_and_fails_on_a_revoked_grant() {
    let world = world().start().await;
    let account = prolific(&world, "ada", 1).await;
    world.expire_tokens("x", "ada").await;
    let done = ended(&world, &begin(&world, &account, json!({})).await).await;
    assert_eq!((&done["status"], counts(&done)), (&json!("completed"), (1, 0)), "{done}");
    world.revoke_grants("x", "ada").await;
    let done = ended(&world, &begin(&world, &account, json!({})).await).await;
    assert_eq!((&done["status"], counts(&done)), (&json!("failed"), (0, 0)), "{done}");
    assert!(done["error_message"].as_str().unwrap().starts_with("token_expired"), "{done}");
    let account = world.get(&format!("/social-accounts/{account}")).await;
    assert_eq!(account["status"], "reauth_required");
}

#[tokio::test]
async fn an_invalid_import_is_rejected() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let path = format!("/social-accounts/{account}/imports");
    let post = |body: Value| request(&world, Method::POST, &path).json(&body);
    let wrong = json!({ "from_date": "yesterday", "to_date": 7, "limit": 1001 });
    let (_, problem) = fail(post(wrong), 400, "invalid_request").await;
    let named: Vec<_> = problem["errors"].as_array().unwrap().iter().map(|issue| &issue["path"][0]).collect();
    assert_eq!(named, ["from_date", "to_date", "limit"]);
    fail(post(json!({ "limit": 0 })), 400, "invalid_request").await;
    let backwards = json!({ "from_date": "2026-01-02T00:00:00Z", "to_date": "2026-01-02T00:00:00Z" });
    let (_, problem) = fail(post(backwards), 400, "invalid_request").await;
    assert_eq!(problem["errors"][0]["path"], json!(["to_date"]));

    for id in ["nobody", "01a1fd4e-5c28-77ae-bcfb-3b1a03485be9"] {
        let path = format!("/social-accounts/{id}/imports");
        fail(request(&world, Method::POST, &path), 404, "not_found").await;
        fail(request(&world, Method::GET, &path), 404, "not_found").await;
    }
    fail(request(&world, Method::GET, &format!("{path}/nothing")), 404, "not_found").await;

    // A platform without a list of posts is rejected. All adapters have one, so that this one has no adapter.
    assert!(platforms::all().iter().all(|platform| platform.history.is_some()));
    let connect = Connect {
        platform: "elsewhere".to_owned(),
        profile: domain::AccountProfile {
            network_unique_id: "ada".to_owned(),
            username: "ada_of_elsewhere".to_owned(),
            display_name: "Ada".to_owned(),
            account_type: "profile".to_owned(),
            profile_image_url: None,
            profile_url: None,
        },
        tenant_id: None,
        social_network_id: None,
        scopes: Vec::new(),
        token_expires_at: None,
        grant_expires_at: None,
    };
    let mut tx = ::store::begin(&world.db).await.unwrap();
    let mute = accounts::upsert(&mut tx, world.owner, connect, |_| Vec::new(), tests::now()).await.unwrap();
    tx.commit().await.unwrap();
    let mute = format!("/social-accounts/{}/imports", mute.account.id);
    fail(request(&world, Method::POST, &mute), 422, "unprocessable").await;

    let reader = key(&world, world.owner, &[Scope::AccountsRead]).await;
    let refused = world.http.post(format!("{}{path}", world.base)).bearer_auth(&reader);
    fail(refused, 403, "insufficient_scope").await;
    let live = key(&world, Owner { mode: Mode::Live, ..world.owner }, &[Scope::All]).await;
    for method in [Method::POST, Method::GET] {
        let strange = world.http.request(method, format!("{}{path}", world.base)).bearer_auth(&live);
        fail(strange, 404, "not_found").await;
    }
}
