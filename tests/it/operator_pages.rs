//! The operators' pages of the dashboard: each button does what its command of `fanfare ops` does.

use crate::{
    browser::{Browser, Page},
    ops, replay, world,
};
use reqwest::{StatusCode, header};
use serde_json::{Value, json};
use store::people::audit;
use tests::{Receiver, World, WorldBuilder};

/// The operators' token.
const TOKEN: &str = "operators-token-of-the-tests-0123456789";
/// Name of the operator.
const NAME: &str = "Ada Lovelace";

fn with_pages() -> WorldBuilder {
    world().set("FANFARE_OPERATOR_TOKEN", TOKEN)
}

fn id(of: &Value) -> &str {
    of["id"].as_str().unwrap()
}

fn target(post: &Value) -> &Value {
    &post["targets"][0]
}

/// Returns a browser in which an operator is signed in.
async fn operator(world: &World) -> Browser {
    let mut browser = Browser::new(world);
    let page = sign_in(&mut browser, TOKEN).await;
    assert_eq!(page.leads(), "/dashboard/operators");
    browser
}

async fn sign_in(browser: &mut Browser, token: &str) -> Page {
    let page = browser.post("/operators/sign-in", &[("name", NAME), ("token", token)]).await;
    browser.keep(&page);
    page
}

/// Follows the redirect of an action, and returns the page that tells what was done.
async fn follow(browser: &Browser, page: Page) -> String {
    let place = page.leads().strip_prefix("/dashboard").unwrap().to_owned();
    browser.open(&place).await
}

/// Sends a form and returns the page that tells what was done.
async fn done(browser: &Browser, path: &str, form: &[(&str, &str)]) -> String {
    let page = browser.post(&format!("/operators{path}"), form).await;
    follow(browser, page).await
}

/// Returns actions of the operator with an organization, newest first, with the reasons that they gave.
async fn trail(world: &World, org: uuid::Uuid) -> Vec<(String, Option<String>)> {
    sqlx::query_as(
        "select action, details->>'reason' from audit_entries
         where org_id = $1 and operator = $2 and actor = 'operator' and host(address) = '127.0.0.1' and at > now() - interval '1 hour'
         order by at desc, id desc",
    )
    .bind(org)
    .bind(NAME)
    .fetch_all(&world.db)
    .await
    .unwrap()
}

async fn failed(world: &World, account: &str, content: &str) -> Value {
    let post = world.post(json!({ "content": content, "accounts": [account] })).await;
    let post = world.until(id(&post), "a failed attempt", |post| target(post)["status"] == "failed").await;
    replay::backs_off(&post).await;
    post
}

fn has(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(page.contains(part), "{part} is not on the page:\n{page}");
    }
}

#[tokio::test]
async fn without_a_token_there_are_no_pages_for_operators() {
    let world = world().start().await;
    let mut browser = Browser::new(&world);
    for path in ["", "/stuck", "/sign-in"] {
        assert_eq!(browser.get(&format!("/operators{path}")).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(sign_in(&mut browser, "").await.status, StatusCode::NOT_FOUND);
    // One who is signed in to an organization is no operator.
    let browser = Browser::signed_in(&world).await;
    assert_eq!(browser.get("/operators").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_operator_signs_in_with_the_token_and_a_name_and_out() {
    let world = with_pages().own().start().await;
    let mut browser = Browser::new(&world);
    let page = browser.get("/operators/stuck").await;
    assert!(
        page.status == StatusCode::UNAUTHORIZED && page.text.contains("Operators’ token"),
        "{}",
        page.text
    );
    for (name, token) in [(NAME, "wrong"), (NAME, ""), ("", TOKEN), (" ", TOKEN), (NAME, &TOKEN[1..])] {
        let page = browser.post("/operators/sign-in", &[("name", name), ("token", token)]).await;
        assert_eq!(page.status, StatusCode::UNAUTHORIZED, "{name} {token}");
        assert!(!page.headers.contains_key(header::SET_COOKIE));
        assert!(!page.text.contains(TOKEN), "the page shows no token");
    }
    // A session of an organization opens nothing here, and an operator's none there.
    let member = Browser::signed_in(&world).await;
    assert_eq!(member.get("/operators").await.status, StatusCode::UNAUTHORIZED);

    let page = sign_in(&mut browser, TOKEN).await;
    let cookie = page.headers[header::SET_COOKIE].to_str().unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/dashboard/operators", "Max-Age=28800"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert_eq!(browser.get("/posts").await.status, StatusCode::UNAUTHORIZED);
    has(&browser.open("/operators").await, &[NAME, "No target is stuck."]);
    let entries = trail(&world, audit::INSTALLATION.0).await;
    assert_eq!(entries[0].0, "operator.signed_in");

    let before = browser.cookie.clone();
    let page = browser.post("/operators/sign-out", &[]).await;
    assert!(page.headers[header::SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
    browser.cookie = before;
    assert_eq!(browser.get("/operators").await.status, StatusCode::UNAUTHORIZED, "the session is deleted");
    let page = browser.post("/operators/stuck", &[("act", "end"), ("reason", "a test")]).await;
    assert_eq!(page.status, StatusCode::UNAUTHORIZED);
    has(&page.text, &["Your session has ended and nothing was changed."]);
}

#[tokio::test]
async fn a_session_of_an_operator_ends_with_time_and_with_the_token() {
    let world = with_pages().own().running(&["api"]).start().await;
    for end in [
        "expires_at = now()",
        "last_used_at = now() - interval '1 hour'",
        // As begun with another token.
        "credential = sha256('another')",
    ] {
        let browser = operator(&world).await;
        browser.open("/operators").await;
        tests::sql(&world.db, &format!("update operator_sessions set {end}")).await;
        assert_eq!(browser.get("/operators").await.status, StatusCode::UNAUTHORIZED, "{end}");
    }
}

#[tokio::test]
async fn signing_in_as_an_operator_is_limited_and_forms_of_other_sites_are_refused() {
    let limits = json!({ "sign-in": { "limit": 3 } }).to_string();
    let world = with_pages().set("FANFARE_RATE_LIMITS", &limits).start().await;
    let mut browser = operator(&world).await;
    let post = browser.http.post(format!("{}/dashboard/operators/reconcile", browser.origin));
    for headers in [vec![], vec![("origin", "https://example.com"), ("sec-fetch-site", "cross-site")]] {
        let mut request = post.try_clone().unwrap().header(header::COOKIE, &browser.cookie);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let answer = request.form(&[("reason", "a test")]).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    }
    let mut statuses = Vec::new();
    for _ in 0..8 {
        statuses.push(sign_in(&mut browser, "a guess").await.status);
    }
    assert!(statuses.contains(&StatusCode::TOO_MANY_REQUESTS), "{statuses:?}");
    assert_eq!(sign_in(&mut browser, TOKEN).await.status, StatusCode::TOO_MANY_REQUESTS);
    // A session that was begun before stays.
    browser.open("/operators").await;
    assert_eq!(browser.get("/operators/nowhere").await.status, StatusCode::NOT_FOUND);
    assert_eq!(browser.get("/operators/reconcile").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_is_stuck_is_listed_retried_and_ended_together() {
    let world = with_pages().pace(1.0).own().platforms(&["x"]).start().await;
    let account = world.connect("x", "ada").await;
    world.connect("x", "bob").await;
    let org = world.owner.org.to_string();
    let one = failed(&world, "ada", "One #sandbox-503x1").await;
    let two = failed(&world, "ada", "Two #sandbox-503x1").await;
    let three = failed(&world, "bob", "Three #sandbox-429").await;
    let ids = [&one, &two, &three].map(|post| id(target(post)));
    let browser = operator(&world).await;
    let mine = format!("/operators/stuck?after=0&org={org}");
    let page = browser.open(&mine).await;
    has(
        &page,
        &[
            ids[0],
            ids[1],
            ids[2],
            "3 targets match",
            "upstream_503 2, rate_limited 1",
            "attempt 1: upstream_503: ",
        ],
    );
    for (filter, found) in [
        ("platform=x", true),
        ("platform=threads", false),
        ("code=upstream_503", true),
        ("code=token_expired", false),
        ("kind=delivery", false),
        ("show=may_be_live", false),
        (&format!("account={account}"), true),
        (&format!("account={org}"), false),
    ] {
        let page = browser.open(&format!("{mine}&{filter}")).await;
        assert_eq!(page.contains(ids[0]), found, "{filter}: {page}");
    }
    for wrong in ["after=soon", "org=1", "account=me", "kind=all"] {
        assert_eq!(browser.get(&format!("/operators/stuck?{wrong}")).await.status, StatusCode::BAD_REQUEST);
    }
    // The overview waits for five minutes by default.
    let older = format!(
        "update posts set created_at = created_at - interval '10 minutes' where org_id = '{org}';
         update targets set updated_at = updated_at - interval '10 minutes' where org_id = '{org}'"
    );
    tests::sql(&world.db, &older).await;
    let page = browser.open("/operators").await;
    has(&page, &["3 targets are stuck: 0 overdue, 1 throttled, 0 frozen.", "World", "upstream_503", &org]);

    // Nothing is done without a selection or a reason.
    for form in [
        &[("act", "retry"), ("reason", "a test")][..],
        &[("act", "retry"), ("id", ids[0])],
        &[("act", "end"), ("id", ids[0]), ("reason", " ")],
        &[("act", "delete"), ("id", ids[0]), ("reason", "a test")],
    ] {
        assert_eq!(browser.post("/operators/stuck", form).await.status, StatusCode::BAD_REQUEST, "{form:?}");
    }
    let retry = [("act", "retry"), ("org", &*org), ("id", ids[0]), ("id", ids[1]), ("reason", "X is back")];
    let page = done(&browser, "/stuck", &retry).await;
    has(&page, &["2 targets are attempted now.", &format!("value=\"{org}\"")]);
    for post in [&one, &two] {
        assert_eq!(world.ended(post).await["status"], "published");
    }
    let form = [("act", "end"), ("id", ids[2]), ("id", ids[0]), ("reason", "Withdrawn")];
    has(&done(&browser, "/stuck", &form).await, &["1 target has ended.", "1 target was not changed"]);
    let ended = world.ended(&three).await;
    assert_eq!(target(&ended)["error_message"], "an operator stopped it: Withdrawn");
    let entry = |action: &str, reason: &str| (action.to_owned(), Some(reason.to_owned()));
    assert_eq!(
        trail(&world, world.owner.org.0).await,
        [
            entry("target.stopped", "Withdrawn"),
            entry("target.retried", "X is back"),
            entry("target.retried", "X is back")
        ]
    );
    // The organization reads that an operator did it, and neither who nor from where.
    let entries = world.get("/account/audit").await;
    let entry = &entries["data"][0];
    assert_eq!(
        (&entry["actor"], &entry["action"], &entry["address"], &entry["user_agent"]),
        (&json!("operator"), &json!("target.stopped"), &Value::Null, &Value::Null)
    );
    assert!(!entries.to_string().contains(NAME), "{entries}");
}

#[tokio::test]
async fn a_call_in_doubt_is_looked_up_before_an_operator_ends_it_on_the_page() {
    let world = with_pages().own().start().await;
    world.connect("x", "ada").await;
    let hold = world.hold(json!({ "platform": "x", "account": "ada", "nth": 1, "when": "after" })).await;
    let post = world.post(json!({ "content": "On its way", "accounts": ["ada"] })).await;
    hold.until_held().await;
    let browser = operator(&world).await;
    let path = format!("/posts/{}", id(&post));
    let form = [("act", "end"), ("id", id(target(&post))), ("reason", "a test")];
    has(&done(&browser, &path, &form).await, &["1 target may be live: a worker looks it up"]);
    let at_once = [&form[..], &[("may_be_live", "true")]].concat();
    has(&done(&browser, &path, &at_once).await, &["1 target has ended."]);
    has(&browser.open("/operators/stuck?show=may_be_live").await, &[id(target(&post)), "it may be live"]);
    hold.release().await;
    let is_late =
        |timeline: &Value| timeline["data"].as_array().unwrap().iter().any(|entry| entry["kind"] == "late");
    world.until_at(&format!("/posts/{}/timeline", id(&post)), "the late answer", is_late).await;
    assert_eq!(target(&world.ended(&post).await)["status"], "dead");
}

#[tokio::test]
async fn the_story_of_a_post_is_the_one_of_the_command() {
    let world =
        with_pages().pace(1.0).set("FANFARE_TEMPORAL_UI", "http://temporal.example/ui/").start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&format!("{}?token=t0p-s3cret", receiver.url)).await;
    let evil = "<script>alert(1)</script>";
    let post = failed(&world, "ada", &format!("{evil} #sandbox-429")).await;
    let browser = operator(&world).await;
    let page = browser.get(&format!("/operators/open?id={}", id(target(&post)))).await;
    assert_eq!(page.leads(), format!("/dashboard/operators/posts/{}", id(&post)));
    let page = follow(&browser, page).await;
    let workflow = format!("target-{}", id(target(&post)));
    has(
        &page,
        &[
            id(&post),
            "ada on X",
            "rate_limited",
            "Attempt 1 begins",
            "Activity publish, attempt 2 of Temporal",
            "&#60;script",
            &format!("http://temporal.example/ui/namespaces/default/workflows/{workflow}"),
            &format!("{workflow}</code></a>: running"),
        ],
    );
    assert!(!page.contains(evil), "{page}");
    // Everything that the command prints is below.
    let shown: Value = serde_json::from_str(&ops::done(&world, &["show", id(&post)]).await).unwrap();
    for name in shown.as_object().unwrap().keys() {
        has(&page, &[&format!("&#34;{name}&#34;: ")]);
    }
    let path = format!("/posts/{}", id(&post));
    let form = [("act", "end"), ("id", id(target(&post))), ("reason", "")];
    let page = browser.post(&format!("/operators{path}"), &form).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    has(&page.text, &["Give a reason of at most 200 characters."]);
    let form = [("act", "end"), ("id", id(target(&post))), ("reason", "a test")];
    has(&done(&browser, &path, &form).await, &["1 target has ended.", "target.stopped by Ada Lovelace"]);
    world.ended(&post).await;
    receiver.events(&["post.target.failed", "post.error"]).await;
    let delivered = |list: &Value| {
        list["data"].as_array().unwrap().iter().filter(|one| one["status"] == "delivered").count() == 2
    };
    let deliveries = format!("/webhooks/{}/deliveries", id(&webhook));
    let all = world.until_at(&deliveries, "both deliveries", delivered).await;
    let page = browser.open(&format!("/operators{path}")).await;
    has(&page, &["post.error to 127.0.0.1", "Redeliver"]);
    for secret in ["t0p-s3cret", webhook["signing_secret"].as_str().unwrap()] {
        assert!(!page.contains(secret), "{secret} in {page}");
    }
    let form = [("delivery", id(&all["data"][0])), ("post", id(&post))];
    has(&done(&browser, "/deliveries", &form).await, &["1 delivery is repeated.", "Story of a post"]);
    receiver.until("the repetition", |all| all.len() == 3).await;
    world.until_at(&deliveries, "its end", delivered).await;
    assert_eq!(browser.get("/operators/posts/1").await.status, StatusCode::NOT_FOUND);
    assert_eq!(browser.get("/operators/open?id=1").await.status, StatusCode::NOT_FOUND);
    let org = world.owner.org.to_string();
    for known in [&org, id(&webhook)] {
        let page = browser.get(&format!("/operators/open?id={known}")).await;
        assert_eq!(page.leads(), format!("/dashboard/operators/organizations/{org}"));
    }
}

#[tokio::test]
async fn an_operator_freezes_and_releases_on_a_page() {
    let world = with_pages().start().await;
    let account = world.connect("x", "ada").await;
    let browser = operator(&world).await;
    let reason = "The account was taken over";
    for form in [
        [("kind", "account"), ("subject", &*account), ("reason", "")],
        [("kind", "account"), ("subject", "ada"), ("reason", reason)],
        [("kind", "platform"), ("subject", "myspace"), ("reason", reason)],
        [("kind", "network"), ("subject", "x"), ("reason", reason)],
    ] {
        assert_eq!(
            browser.post("/operators/freezes", &form).await.status,
            StatusCode::BAD_REQUEST,
            "{form:?}"
        );
    }
    let nobody = uuid::Uuid::nil().to_string();
    let form = [("kind", "account"), ("subject", &*nobody), ("reason", reason)];
    assert_eq!(browser.post("/operators/freezes", &form).await.status, StatusCode::NOT_FOUND);
    let form = [("kind", "account"), ("subject", &*account), ("mode", "test"), ("reason", reason)];
    has(
        &done(&browser, "/freezes", &form).await,
        &["1 freeze is in force.", reason, &account, NAME, "test mode"],
    );
    assert_eq!(browser.post("/operators/freezes", &form).await.status, StatusCode::CONFLICT);
    let post = world.post(json!({ "content": "Waits", "accounts": ["ada"] })).await;
    let post = world.until(id(&post), "its freeze", |post| target(post)["error_code"] == "frozen").await;
    has(&browser.open("/operators/freezes").await, &["1 target waits"]);
    let retry = [("act", "retry"), ("id", id(target(&post))), ("reason", "a test")];
    has(&done(&browser, "/stuck", &retry).await, &["1 target is frozen and waits for the release."]);
    let story = browser.open(&format!("/operators/posts/{}", id(&post))).await;
    has(&story, &[&format!("It is frozen: {reason}")]);

    let scope = [("kind", "account"), ("subject", &*account), ("mode", "test")];
    let slow = [&scope[..], &[("rate", "0")]].concat();
    assert_eq!(browser.post("/operators/freezes/release", &slow).await.status, StatusCode::BAD_REQUEST);
    let rate = [&scope[..], &[("rate", "60")]].concat();
    has(&done(&browser, "/freezes/release", &rate).await, &["1 target goes on."]);
    assert_eq!(world.ended(&post).await["status"], "published");
    assert_eq!(browser.post("/operators/freezes/release", &rate).await.status, StatusCode::CONFLICT);
    let actions: Vec<_> =
        trail(&world, world.owner.org.0).await.into_iter().map(|(action, _)| action).collect();
    assert_eq!(actions, ["publishing.released", "publishing.frozen"]);
}

#[tokio::test]
async fn an_operator_repeats_failed_deliveries_and_resumes_what_is_overdue_on_a_page() {
    let world = with_pages().own().start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let post = world.post(json!({ "content": "Told", "accounts": ["ada"] })).await;
    world.ended(&post).await;
    receiver.events(&["post.target.published", "post.published"]).await;
    let path = format!("/webhooks/{}/deliveries", id(&webhook));
    let delivered = |list: &Value| {
        list["data"].as_array().unwrap().iter().filter(|one| one["status"] == "delivered").count() == 2
    };
    world.until_at(&path, "both deliveries", delivered).await;
    let browser = operator(&world).await;
    let all = [("endpoint", id(&webhook))];
    assert_eq!(browser.post("/operators/deliveries", &all).await.status, StatusCode::CONFLICT);
    let nobody = [("endpoint", &*uuid::Uuid::nil().to_string())];
    assert_eq!(browser.post("/operators/deliveries", &nobody).await.status, StatusCode::NOT_FOUND);
    for form in [[("delivery", "1")], [("endpoint", "1")], [("delivery", "")]] {
        assert_eq!(browser.post("/operators/deliveries", &form).await.status, StatusCode::BAD_REQUEST);
    }
    tests::sql(&world.db, "update deliveries set status = 'failed'").await;
    let tomorrow = (tests::now() + chrono::TimeDelta::days(1)).format("%F").to_string();
    let later = [all[0], ("since", &*tomorrow)];
    assert_eq!(browser.post("/operators/deliveries", &later).await.status, StatusCode::CONFLICT);
    has(&done(&browser, "/deliveries", &all).await, &["2 deliveries are repeated."]);
    receiver.until("both repetitions", |all| all.len() == 4).await;
    world.until_at(&path, "their end", delivered).await;

    tests::sql(
        &world.db,
        &format!(
            "insert into outbox (org_id, message, parked_at, error) values ('{}', '{}', now(), 'Refused by a test')",
            world.owner.org,
            json!({
                "type": "retry_target", "target": target(&post)["id"], "post": post["id"],
                "owner": { "org": world.owner.org, "mode": "test" },
            })
        ),
    )
    .await;
    has(&browser.open("/operators").await, &["Messages that Temporal refused"]);
    assert_eq!(browser.post("/operators/reconcile", &[]).await.status, StatusCode::BAD_REQUEST);
    let form = [("reason", "Temporal is back"), ("parked", "true")];
    let page = done(&browser, "/reconcile", &form).await;
    has(&page, &["0 messages for overdue rows were written.", "1 parked message is sent again."]);
    let entries = trail(&world, audit::INSTALLATION.0).await;
    assert_eq!(entries[0], ("installation.reconciled".to_owned(), Some("Temporal is back".to_owned())));
}

#[tokio::test]
async fn an_operator_issues_and_revokes_keys_and_ends_sessions_on_a_page() {
    let world = with_pages().start().await;
    let org = world.owner.org.to_string();
    let browser = operator(&world).await;
    let page = browser.open("/operators/organizations?name=wOrL").await;
    has(&page, &["World"]);
    assert!(!browser.open("/operators/organizations?name=nobody").await.contains("/organizations/0"));
    let path = format!("/operators/organizations/{org}");
    has(&browser.open(&path).await, &["World", "API keys"]);
    for form in [
        &[("name", ""), ("mode", "test"), ("scope", "*")][..],
        &[("name", "a"), ("mode", "both"), ("scope", "*")],
        &[("name", "a"), ("mode", "test")],
        &[("name", "a"), ("mode", "test"), ("scope", "all")],
        &[("name", "a"), ("mode", "test"), ("scope", "*"), ("expires", "2020-01-01")],
    ] {
        assert_eq!(
            browser.post(&format!("{path}/keys"), form).await.status,
            StatusCode::BAD_REQUEST,
            "{form:?}"
        );
    }
    let form =
        [("name", "For the rescue"), ("mode", "test"), ("scope", "usage:read"), ("scope", "keys:write")];
    let page = browser.post(&format!("{path}/keys"), &form).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    let text = page.secret().to_owned();
    assert!(text.starts_with("sk_test_"), "{text}");
    let call = || world.http.get(format!("{}/account/usage", world.base)).bearer_auth(&text).send();
    assert_eq!(call().await.unwrap().status(), StatusCode::OK);
    assert!(!browser.open(&path).await.contains(&text), "the text is shown once");
    let listed = world.get("/api-keys").await;
    let key = listed["data"].as_array().unwrap().iter().find(|key| key["name"] == "For the rescue").unwrap();
    assert_eq!(key["scopes"], json!(["usage:read", "keys:write"]));

    let member = Browser::signed_in(&world).await;
    let page = done(&browser, &format!("/organizations/{org}/sessions/end"), &[]).await;
    has(&page, &["1 session has ended."]);
    assert_eq!(member.get("").await.status, StatusCode::UNAUTHORIZED);

    let revoke = format!("/organizations/{org}/keys/{}/revoke", id(key));
    has(&done(&browser, &revoke, &[]).await, &["1 key is revoked."]);
    assert_eq!(call().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    assert_eq!(browser.post(&format!("/operators{revoke}"), &[]).await.status, StatusCode::CONFLICT);
    let nobody = uuid::Uuid::nil();
    for path in [
        format!("/organizations/{nobody}/sessions/end"),
        format!("/organizations/{nobody}/keys/{}/revoke", id(key)),
    ] {
        assert_eq!(
            browser.post(&format!("/operators{path}"), &[]).await.status,
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
    assert_eq!(
        browser.get(&format!("/operators/organizations/{nobody}")).await.status,
        StatusCode::NOT_FOUND
    );
    let actions: Vec<_> =
        trail(&world, world.owner.org.0).await.into_iter().map(|(action, _)| action).collect();
    assert_eq!(actions, ["api_key.revoked", "sessions.ended", "api_key.created"]);
}

/// Returns the cells of a row of a table.
fn cells(page: &str, row: &str) -> Vec<String> {
    let (_, rest) = page.split_once(&format!("<tr id=\"{row}\">")).unwrap_or_else(|| panic!("{row}: {page}"));
    let row = rest.split_once("</tr>").unwrap().0;
    let cells = row.split("<td").skip(1).map(|cell| cell.split_once('>').unwrap().1);
    cells.map(|cell| cell.split_once("</td>").unwrap().0.to_owned()).collect()
}

#[tokio::test]
async fn the_overview_tells_rates_by_platform_and_organization_and_freezes() {
    let world = with_pages().start().await;
    world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    for (content, account) in [
        ("One", "ada"),
        ("Two #sandbox-429x1", "ada"),
        ("No #sandbox-400", "ada"),
        ("Three", "ada.bsky.social"),
    ] {
        let post = world.post(json!({ "content": content, "accounts": [account] })).await;
        world.ended(&post).await;
    }
    let browser = operator(&world).await;
    let page = browser.open("/operators?time=15m").await;
    // Published, failed, success, median, 95 %, throttled, stuck.
    let x = cells(&page, "platforms-x");
    assert_eq!((&*x[0], &*x[1], &*x[2], &*x[5], &*x[6]), ("2", "1", "66.6 %", "33.3 %", "0"), "{x:?}");
    assert!(x[3].ends_with(" s") && x[4].ends_with(" s"), "{x:?}");
    let bluesky = cells(&page, "platforms-bluesky");
    assert_eq!((&*bluesky[0], &*bluesky[1], &*bluesky[2]), ("1", "0", "100.0 %"), "{bluesky:?}");
    let organization = cells(&page, &format!("organizations-{}", world.owner.org));
    assert_eq!((&*organization[0], &*organization[1], &*organization[2]), ("3", "1", "75.0 %"));

    let subject = [("kind", "platform"), ("subject", "x"), ("back", "overview")];
    let form = [&subject[..], &[("reason", "An outage")]].concat();
    let page = done(&browser, "/freezes", &form).await;
    has(&page, &["1 freeze is in force.", "All organizations"]);
    let frozen = cells(&page, "platforms-x").pop().unwrap();
    assert!(frozen.contains("Frozen") && frozen.contains("Release"), "{frozen}");
    let page = done(&browser, "/freezes/release", &subject).await;
    has(&page, &["0 targets go on.", "All organizations"]);
    assert!(!cells(&page, "platforms-x").pop().unwrap().contains("Frozen"));
}

#[tokio::test]
async fn all_that_a_filter_finds_is_exported_and_ended_without_selecting_it() {
    let world = with_pages().start().await;
    world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    let mut posts = Vec::new();
    for account in ["ada", "ada", "ada.bsky.social"] {
        posts.push(failed(&world, account, "Stuck #sandbox-503").await);
    }
    let browser = operator(&world).await;
    let filter = "after=0&kind=target&platform=x";
    let page = browser.open(&format!("/operators/stuck?{filter}")).await;
    has(&page, &["2 targets match", "All 2 that match the filter"]);

    let file = browser.get(&format!("/operators/stuck/export?{filter}&format=json")).await;
    assert_eq!(file.headers[header::CONTENT_DISPOSITION], "attachment; filename=\"stuck.json\"");
    let items: Vec<Value> = serde_json::from_str(&file.text).unwrap();
    let found: Vec<_> = items.iter().map(id).collect();
    assert_eq!(found, [id(target(&posts[0])), id(target(&posts[1]))], "oldest first");
    let file = browser.get(&format!("/operators/stuck/export?{filter}&format=csv")).await;
    assert_eq!(file.headers[header::CONTENT_TYPE], "text/csv; charset=utf-8");
    let lines: Vec<_> = file.text.lines().collect();
    assert_eq!(lines.len(), 3, "{}", file.text);
    assert!(lines[0].starts_with("kind,id,org,") && lines[1].contains(found[0]), "{}", file.text);
    assert_eq!(browser.get("/operators/stuck/export?org=nobody").await.status, StatusCode::BAD_REQUEST);

    let form = [
        ("after", "0"),
        ("kind", "target"),
        ("platform", "x"),
        ("act", "end"),
        ("all", "true"),
        ("may_be_live", "true"),
        ("reason", "An outage"),
    ];
    has(&done(&browser, "/stuck", &form).await, &["2 targets have ended.", "0 targets match"]);
    for post in &posts[..2] {
        assert_eq!(target(&world.ended(post).await)["error_code"], "stopped");
    }
    let other =
        [("after", "0"), ("act", "end"), ("all", "true"), ("may_be_live", "true"), ("reason", "The rest")];
    has(&done(&browser, "/stuck", &other).await, &["1 target has ended."]);
}

#[tokio::test]
async fn queries_are_not_compiled() {
    let world = world().start().await;
    let jit: String = sqlx::query_scalar("show jit").fetch_one(&world.db).await.unwrap();
    assert_eq!(jit, "off");
}
