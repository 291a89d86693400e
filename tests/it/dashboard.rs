//! The dashboard over HTTP: sessions, pages and forms.

use crate::{
    browser::{Browser, Page},
    people, replay, world,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use domain::{Mode, Owner, scope::Scope, signature};
use reqwest::{StatusCode, header};
use serde_json::json;
use std::{collections::HashSet, time::Duration};
use store::people::{audit::Actor, keys};
use tests::{Delivery, Receiver, World, if_right, now, samples::png, wait_until};

async fn key(world: &World, scopes: Vec<Scope>) -> (keys::Key, String) {
    let new = keys::NewKey { owner: world.owner, name: "other".into(), scopes, expires_at: None };
    keys::create(&world.db, new, now()).await.unwrap()
}

#[tokio::test]
async fn signing_in_requires_a_key() {
    let world = world().start().await;
    let mut browser = Browser::new(&world);
    let bare = browser.http.get(&browser.origin).send().await.unwrap();
    assert_eq!(
        (bare.status(), &bare.headers()[header::LOCATION]),
        (StatusCode::SEE_OTHER, &"/dashboard".parse().unwrap())
    );
    let page = browser.get("/posts?status=failed").await;
    assert_eq!(page.status, StatusCode::UNAUTHORIZED);
    assert_eq!(page.text.matches(" autofocus").count(), 1, "{}", page.text);
    assert!(page.text.contains(r#"name="next" value="/dashboard/posts?status=failed""#), "{}", page.text);

    for text in ["", "sk_test_nobody"] {
        let page = browser.sign_in(text).await;
        assert_eq!(page.status, StatusCode::UNAUTHORIZED);
        let words = "unknown, was revoked, or has expired";
        assert!(page.text.contains(words) && !page.headers.contains_key(header::SET_COOKIE), "{}", page.text);
    }

    let page =
        browser.post("/sign-in", &[("key", &world.key), ("next", "/dashboard/posts?status=failed")]).await;
    assert_eq!(page.leads(), "/dashboard/posts?status=failed");
    let cookie = page.headers[header::SET_COOKIE].to_str().unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/dashboard", "Max-Age=43200"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure") && !cookie.contains("Domain"), "{cookie}");
    let elsewhere = [("key", world.key.as_str()), ("next", "https://example.com/dashboard")];
    assert_eq!(browser.post("/sign-in", &elsewhere).await.leads(), "/dashboard");

    browser.sign_in(&world.key).await;
    let page = browser.open("").await;
    assert!(page.contains("Test mode") && page.contains("World"), "{page}");
    let before = browser.cookie.clone();
    let page = browser.post("/sign-out", &[]).await;
    assert!(page.headers[header::SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
    browser.cookie = before;
    assert_eq!(browser.get("").await.status, StatusCode::UNAUTHORIZED, "the session is deleted");
}

#[tokio::test]
async fn with_an_https_base_url_the_cookie_is_secure() {
    let world = world().set("FANFARE_BASE_URL", "https://fanfare.example/api/v1").start().await;
    let mut browser = Browser::new(&world);
    let page = browser.sign_in(&world.key).await;
    let cookie = page.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.starts_with("__Host-fanfare-") && cookie.contains("; Path=/;"), "{cookie}");
    assert!(cookie.ends_with("; Secure") && !cookie.contains("Domain"), "{cookie}");
    browser.open("").await;
}

#[tokio::test]
async fn a_session_ends_with_its_key() {
    let world = world().start().await;
    let (revoked, text) = key(&world, vec![Scope::All]).await;
    let mut browser = Browser::new(&world);
    browser.sign_in(&text).await;
    browser.open("").await;
    keys::revoke(&world.db, world.owner, revoked.id, &Actor::OPERATOR, now()).await.unwrap();
    assert_eq!(browser.get("").await.status, StatusCode::UNAUTHORIZED);
    let page = browser.post("/compose", &[("text", "Hello")]).await;
    assert_eq!(page.status, StatusCode::UNAUTHORIZED);
    assert!(page.text.contains("Your session has ended and nothing was published."), "{}", page.text);

    let (rotated, text) = key(&world, vec![Scope::All]).await;
    browser.sign_in(&text).await;
    let page = browser.post(&format!("/keys/{}/rotate", rotated.id), &[]).await;
    assert_eq!(page.status, StatusCode::OK);
    let fresh = page.secret().to_owned();
    assert_eq!(browser.get("").await.status, StatusCode::UNAUTHORIZED);
    browser.sign_in(&fresh).await;
    browser.open("").await;

    let soon = now() + Duration::from_millis(1500);
    let new = keys::NewKey {
        owner: world.owner,
        name: "short".into(),
        scopes: vec![Scope::All],
        expires_at: Some(soon),
    };
    let (_, text) = keys::create(&world.db, new, now()).await.unwrap();
    assert_eq!(browser.sign_in(&text).await.status, StatusCode::SEE_OTHER);
    let refused =
        async || if_right(browser.get("").await.status, |status| *status == StatusCode::UNAUTHORIZED);
    wait_until("the key to expire", refused).await;
}

#[tokio::test]
async fn forms_sent_by_other_sites_are_rejected() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let browser = Browser::signed_in(&world).await;
    let address = format!("{}/dashboard/accounts/{account}/disconnect", browser.origin);
    for headers in [
        vec![],
        vec![("origin", "https://example.com"), ("sec-fetch-site", "cross-site")],
        vec![("origin", world.sandbox_url.as_str()), ("sec-fetch-site", "same-site")],
        vec![("origin", "null")],
        vec![("origin", browser.origin.as_str()), ("sec-fetch-site", "cross-site")],
    ] {
        let mut request = browser.http.post(&address).header(header::COOKIE, &browser.cookie);
        for (name, value) in &headers {
            request = request.header(*name, *value);
        }
        let page = Page::of(request.form(&[("a", "b")])).await;
        assert_eq!(page.status, StatusCode::FORBIDDEN, "{headers:?}");
    }
    world.get(&format!("/social-accounts/{account}")).await;
    let page = browser.get(&format!("/accounts/{account}/disconnect")).await;
    assert_eq!(page.status, StatusCode::NOT_FOUND, "a GET changes nothing");
    // Browsers omit a strict cookie on the way back from a platform, so that a page here redirects again.
    let request = browser.http.get(format!("{}/dashboard/accounts?status=connected", browser.origin));
    let page = Page::of(request.header("sec-fetch-site", "cross-site")).await;
    assert!(page.status == StatusCode::OK && page.text.contains("http-equiv=\"refresh\""), "{}", page.text);

    let page = browser.post(&format!("/accounts/{account}/disconnect"), &[]).await;
    assert_eq!(page.leads(), "/dashboard/accounts?done=disconnected");
    assert!(browser.open("/accounts").await.contains("No account is connected yet"));
}

#[tokio::test]
async fn sign_in_attempts_are_limited_by_address() {
    let limits = json!({ "sign-in": { "limit": 3 } }).to_string();
    let world = world().set("FANFARE_RATE_LIMITS", &limits).start().await;
    let mut browser = Browser::new(&world);
    let mut refused = None;
    for _ in 0..8 {
        let page = browser.sign_in("sk_test_guess").await;
        if page.status == StatusCode::TOO_MANY_REQUESTS {
            refused = Some(page);
            break;
        }
        assert_eq!(page.status, StatusCode::UNAUTHORIZED);
    }
    let refused = refused.expect("sign-in is rate limited");
    assert!(refused.text.contains("Rate limit exceeded"), "{}", refused.text);
    assert_eq!(browser.sign_in(&world.key).await.status, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn pages_escape_user_content() {
    let mut world = world().pace(1.0).start().await;
    let account = world.connect("x", "ada").await;
    let evil = "<script>alert(1)</script> \"><img src=x onerror=alert(2)>";
    let post = world.post(json!({ "content": evil, "accounts": [account], "external_ref": evil })).await;
    let stuck = format!("{evil} #sandbox-503");
    let stuck = world.post(json!({ "content": stuck, "accounts": [account] })).await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let path = format!("/webhooks/{}", webhook["id"].as_str().unwrap());
    world.call(reqwest::Method::PATCH, &path, Some(&json!({ "description": evil }))).await;
    let patch = json!({ "display_name": evil, "tenant_id": evil });
    world.call(reqwest::Method::PATCH, &format!("/social-accounts/{account}"), Some(&patch)).await;
    let wish = json!({ "name": evil, "scopes": ["posts:read"] });
    world.call(reqwest::Method::POST, "/api-keys", Some(&wish)).await;

    let browser = Browser::signed_in(&world).await;
    browser.until("", "X had a server error (503)").await;
    let posts = [&post, &stuck].map(|post| format!("/posts/{}", post["id"].as_str().unwrap()));
    let mut pages = vec![
        String::new(),
        "/posts".into(),
        format!("/posts?status={}&created_from=%3Cscript%3Ealert(1)", "%22%3E%3Cscript%3Ealert(1)"),
        "/compose".into(),
        format!("/compose?from={}", post["id"].as_str().unwrap()),
        "/accounts".into(),
        "/webhooks".into(),
        path,
        "/media".into(),
        "/media?offset=%22%3E%3Cscript%3Ealert(1)".into(),
        "/keys".into(),
        "/team".into(),
        "/usage".into(),
        "/accounts?platform=%3Cscript%3Ealert(1)&status=connected".into(),
        "/posts/%3Cscript%3Ealert(1)".into(),
        "/%3Cscript%3Ealert(1)".into(),
    ];
    pages.extend(posts);
    let mut reported = 0;
    for path in pages {
        let page = browser.get(&path).await;
        assert!(!page.status.is_server_error(), "{path}");
        assert!(
            !page.text.contains("<script>") && !page.text.contains("<img src=x"),
            "{path}: {}",
            page.text
        );
        reported += page.text.matches("&#60;script").count();
        let policy = page.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(!page.text.contains(" style=") && !page.text.contains(" onclick"), "{path}");
        assert!(page.text.contains("<html lang=\"en\">") && page.text.contains("<main"), "{path}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
            ("content-type", "text/html; charset=utf-8"),
        ] {
            assert_eq!(page.headers[name], value, "{path}");
        }
    }
    assert!(reported > 10, "user content is shown: {reported}");
    world.leave_post(&stuck, "its ten attempts take hours");
}

#[tokio::test]
async fn a_stuck_target_is_explained_and_can_be_retried() {
    let world = world().pace(1.0).start().await;
    let account = world.connect("x", "ada").await;
    let post = world.post(json!({ "content": "Soon #sandbox-503x1", "accounts": [account] })).await;
    let id = post["id"].as_str().unwrap();
    let browser = Browser::signed_in(&world).await;
    let page = browser.until("", "X had a server error (503)").await;
    for words in [
        "1 post target is retrying. You need not do anything.",
        "Soon #sandbox-503x1",
        "Attempt 2 of 10 begins",
        "Retry now",
        "ada on X",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let target = post["targets"][0]["id"].as_str().unwrap();
    let path = format!("/posts/{id}/targets/{target}/retry");
    let page = browser.post(&path, &[("back", "overview")]).await;
    assert_eq!(page.leads(), "/dashboard?done=retried");
    assert!(browser.open("?done=retried").await.contains("The next attempt starts now."));
    let page = browser.until(&format!("/posts/{id}"), "View on X").await;
    assert!(page.contains("Published"), "{page}");
    assert!(browser.open("").await.contains("Nothing needs your attention."));

    let page = browser.post(&path, &[]).await;
    assert_eq!(page.status, StatusCode::CONFLICT);
    let (before, beside) = page.text.split_once(&format!("id=\"target-{target}\"")).unwrap();
    assert!(
        beside.contains(
            "The target is published; only a target that waits for its next attempt can be retried."
        ),
        "{beside}"
    );
    assert!(
        !before.contains("only a target that waits for its next attempt can be retried"),
        "the message is at the target"
    );

    let page = browser.post(&format!("/posts/{id}/cancel"), &[]).await;
    assert_eq!(page.leads(), "/dashboard/posts?done=canceled");
    assert_eq!(browser.get(&format!("/posts/{id}")).await.status, StatusCode::NOT_FOUND);
    let page = browser.post(&format!("/posts/{id}/cancel"), &[]).await;
    assert!(page.status == StatusCode::NOT_FOUND && page.text.contains("Post not found."), "{}", page.text);
}

#[tokio::test]
async fn what_is_stuck_for_one_reason_is_retried_together() {
    let world = world().pace(1.0).start().await;
    let account = world.connect("x", "ada").await;
    let mut pairs = Vec::new();
    for number in 1..=3 {
        let text = format!("Number {number} #sandbox-503x1");
        let post = world.post(json!({ "content": text, "accounts": [account] })).await;
        let (post, target) = (post["id"].as_str().unwrap(), post["targets"][0]["id"].as_str().unwrap());
        pairs.push(format!("{post}/{target}"));
    }
    let browser = Browser::signed_in(&world).await;
    let page = browser.until("", "3 post targets are retrying").await;
    assert_eq!(page.matches("id=\"group-x-failed-upstream_503\"").count(), 1, "{page}");
    for words in ["X had a server error (503).", "Retry all 3", "Number 1", "Number 2", "Number 3"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let form: Vec<_> =
        pairs.iter().map(|pair| ("target", pair.as_str())).chain([("status", "failed")]).collect();
    assert_eq!(browser.post("/retry", &form).await.leads(), "/dashboard?done=retried");
    for pair in &pairs {
        browser.until(&format!("/posts/{}", pair.split_once('/').unwrap().0), "View on X").await;
    }
    // None is left to retry.
    let page = browser.post("/retry", &form).await;
    assert_eq!(page.status, StatusCode::CONFLICT);
    assert!(page.text.contains("can be retried"), "{}", page.text);
    let nonsense = browser.post("/retry", &[("target", "1/2"), ("target", "")]).await;
    assert_eq!(nonsense.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_calendar_shows_scheduled_posts_and_moves_them() {
    let mut world = world().start().await;
    let account = world.connect("x", "ada").await;
    let at = |text: &str| json!({ "content": text, "accounts": [account], "scheduled_at": "2031-03-31T23:30:00Z" });
    let post = world.post(at("Last day of March")).await;
    let id = post["id"].as_str().unwrap();
    let browser = Browser::signed_in(&world).await;
    let march = browser.open("/calendar?month=2031-03").await;
    assert!(
        march.contains("March 2031") && march.contains("Last day of March") && march.contains("23:30"),
        "{march}"
    );
    // The first week of April begins in March.
    assert!(browser.open("/calendar?month=2031-04").await.contains("Last day of March"));
    assert!(!browser.open("/calendar?month=2031-02").await.contains("Last day of March"));
    let path = format!("/posts/{id}/reschedule");
    let moved = browser.post(&path, &[("at", "2031-05-02T08:15")]).await;
    assert_eq!(moved.leads(), "/dashboard/calendar?month=2031-05&done=rescheduled");
    assert_eq!(world.get(&format!("/posts/{id}")).await["scheduled_at"], "2031-05-02T08:15:00.000Z");
    assert!(browser.open("/calendar?month=2031-05").await.contains("Last day of March"));
    for wrong in ["", "tomorrow", "2031-05-02"] {
        let page = browser.post(&path, &[("at", wrong)]).await;
        assert!(
            page.status == StatusCode::BAD_REQUEST && page.text.contains("role=\"alert\""),
            "{wrong}: {}",
            page.text
        );
    }
    for odd in ["0000-00", "9999-12", "-1-01", "x", "262142-12"] {
        browser.open(&format!("/calendar?month={odd}")).await;
    }
    world.leave_post(&post, "it is scheduled for 2031");
}

#[tokio::test]
async fn posts_are_found_by_their_text_and_requests_are_listed() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let post = world.post(json!({ "content": "Asparagus is here", "accounts": [account] })).await;
    world.ended(&post).await;
    let post = world.post(json!({ "content": "שלום לכולם", "accounts": [account] })).await;
    world.ended(&post).await;
    let browser = Browser::signed_in(&world).await;
    let page = browser.open("/posts?q=asparagus").await;
    assert!(page.contains("Asparagus is here") && !page.contains("שלום"), "{page}");
    assert!(page.contains("value=\"asparagus\""), "the field keeps the text: {page}");
    let page = browser.open("/posts").await;
    let rtl = page.split("<a ").find(|link| link.contains("שלום")).unwrap();
    assert!(rtl.contains("dir=\"auto\""), "{rtl}");
    let page = browser.until("/requests", "POST /api/v1/posts").await;
    assert!(
        page.contains("POST /api/v1/posts") && page.contains("<span class=\"label good\">201</span>"),
        "{page}"
    );
}

#[tokio::test]
async fn a_live_post_is_changed_and_removed() {
    let world = world().start().await;
    let account = world.connect("reddit", "ada").await;
    let post = world.post(json!({ "content": "Title\nUntil five", "accounts": [account] })).await;
    let post = world.ended(&post).await;
    let [id, target] = [&post["id"], &post["targets"][0]["id"]].map(|id| id.as_str().unwrap());
    let browser = Browser::signed_in(&world).await;
    let (page, actions) = (format!("/posts/{id}"), format!("/posts/{id}/targets/{target}"));
    let shown = browser.open(&page).await;
    for words in ["Change the text…", "Remove from Reddit…", "Until five</textarea>"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    // A browser sends lines with CRLF.
    let refused = browser.post(&format!("{actions}/edit"), &[("text-0", "Another\r\ntitle")]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        refused.text.contains("nobody change a title") && refused.text.contains("Another"),
        "{}",
        refused.text
    );
    let same = browser.post(&format!("{actions}/edit"), &[("text-0", "Title\r\nUntil five")]).await;
    assert!(
        same.status == StatusCode::BAD_REQUEST && same.text.contains("the same as before"),
        "{}",
        same.text
    );
    let edited = browser.post(&format!("{actions}/edit"), &[("text-0", "Title\r\nUntil six")]).await;
    assert_eq!(edited.leads(), format!("/dashboard/posts/{id}?done=edited"));
    let shown = browser.open(&format!("{page}?done=edited")).await;
    for words in ["The post was changed on the platform.", "Until six</textarea>", "edited"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let found = world.get(&format!("/posts/{id}")).await;
    assert_eq!(found["targets"][0]["edits"]["containers"][0]["content"], "Title\nUntil six");
    let removed = browser.post(&format!("{actions}/unpublish"), &[]).await;
    assert_eq!(removed.leads(), format!("/dashboard/posts/{id}?done=unpublished"));
    let shown = browser.open(&page).await;
    assert!(shown.contains("· removed <time") && shown.contains(">Removed</span>"), "{shown}");
    for words in ["Change the text…", "Remove from Reddit…", "View on Reddit"] {
        assert!(!shown.contains(words), "{words}: {shown}");
    }
    let again = browser.post(&format!("{actions}/edit"), &[("text-0", "Title\nUntil seven")]).await;
    assert!(again.status == StatusCode::CONFLICT && again.text.contains("was deleted from its platform"));
}

#[tokio::test]
async fn what_failed_for_good_is_started_over() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let post = world.post(json!({ "content": "Once #sandbox-400x1", "accounts": [account] })).await;
    let [id, target] = [&post["id"], &post["targets"][0]["id"]].map(|id| id.as_str().unwrap());
    assert_eq!(world.ended(&post).await["status"], "failed");
    let browser = Browser::signed_in(&world).await;
    assert!(browser.open(&format!("/posts/{id}")).await.contains("Start over"));
    let path = format!("/posts/{id}/targets/{target}/revive");
    let started = browser.post(&path, &[]).await;
    assert_eq!(started.leads(), format!("/dashboard/posts/{id}?done=revived"));
    assert_eq!(world.ended(&post).await["status"], "published");
    let again = browser.post(&path, &[]).await;
    assert!(
        again.status == StatusCode::CONFLICT && again.text.contains("No target is dead"),
        "{}",
        again.text
    );

    world.revoke_grants("x", "ada").await;
    let lost = world.post(json!({ "content": "Lost", "accounts": [account] })).await;
    assert_eq!(world.ended(&lost).await["targets"][0]["error_code"], "token_expired");
    let offer = "Retry failed posts";
    assert!(!browser.open("/accounts").await.contains(offer), "the account is lost itself");
    assert_eq!(world.connect("x", "ada").await, account);
    assert!(browser.open("/accounts").await.contains(offer));
    let retried = browser.post(&format!("/accounts/{account}/retry"), &[]).await;
    assert!(retried.text.contains("1 post starts over now."), "{}", retried.text);
    assert_eq!(world.ended(&lost).await["status"], "published");
}

#[tokio::test]
async fn resources_of_other_owners_are_404() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let draft = json!({ "content": "Mine", "accounts": [account], "is_draft": true });
    let post = world.post(draft).await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let org = store::people::organizations::create(&world.db, "Other").await.unwrap();
    let owners = [Owner { org, mode: Mode::Test }, Owner { mode: Mode::Live, ..world.owner }];
    for owner in owners {
        let new = keys::NewKey { owner, name: "other".into(), scopes: vec![Scope::All], expires_at: None };
        let (_, text) = keys::create(&world.db, new, now()).await.unwrap();
        let mut browser = Browser::new(&world);
        browser.sign_in(&text).await;
        let post = format!("/posts/{}", post["id"].as_str().unwrap());
        let webhook = format!("/webhooks/{}", webhook["id"].as_str().unwrap());
        for path in [&post, &webhook] {
            assert_eq!(browser.get(path).await.status, StatusCode::NOT_FOUND, "{path}");
        }
        for path in [
            format!("{post}/cancel"),
            format!("{post}/release"),
            format!("{webhook}/reveal"),
            format!("{webhook}/rotate"),
            format!("{webhook}/delete"),
            format!("/accounts/{account}/reconnect"),
        ] {
            assert_eq!(browser.post(&path, &[]).await.status, StatusCode::NOT_FOUND, "{path}");
        }
        assert!(!browser.open("").await.contains("Mine"));
        assert!(!browser.open("/accounts").await.contains("ada"));
    }
    world.get(&format!("/posts/{}", post["id"].as_str().unwrap())).await;
}

#[tokio::test]
async fn a_rotated_secret_is_used_at_once_and_can_be_revealed() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let path = format!("/webhooks/{}", webhook["id"].as_str().unwrap());
    let old = webhook["signing_secret"].as_str().unwrap();
    let browser = Browser::signed_in(&world).await;
    assert!(!browser.open(&path).await.contains(old));
    assert_eq!(browser.post(&format!("{path}/reveal"), &[]).await.secret(), old);

    let post = world.post(json!({ "content": "Signed", "accounts": [account] })).await;
    world.ended(&post).await;
    // Both are signed with the old secret; deliveries after the rotation are signed with the new one.
    receiver.events(&["post.target.published", "post.published"]).await;
    browser.until(&path, "Redeliver").await;
    let fresh = browser.post(&format!("{path}/rotate"), &[]).await.secret().to_owned();
    assert!(fresh.starts_with("whsec_") && fresh != old);
    assert_eq!(browser.post(&format!("{path}/reveal"), &[]).await.secret(), fresh);
    let page = browser.post(&format!("{path}/test"), &[]).await;
    assert!(page.text.contains("The endpoint took the sample: it answered 200."), "{}", page.text);
    let signs = |secret: &str, delivery: &Delivery| {
        let sent = delivery.header("x-fanfare-signature");
        let at = sent.split(',').next().unwrap().trim_start_matches("t=").parse().unwrap();
        signature::sign(secret, at, &delivery.body) == sent
    };
    let sent = receiver.events(&["webhook.test"]).await;
    for delivery in sent {
        let (by, other) = if delivery.event() == "webhook.test" { (&*fresh, old) } else { (old, &*fresh) };
        assert!(signs(by, &delivery) && !signs(other, &delivery), "{}", delivery.event());
    }

    // A redelivery is signed with the new secret.
    let page = browser.open(&path).await;
    let (_, rest) = page.split_once("/deliveries/").unwrap();
    let delivery = rest.split(['/', '"']).next().unwrap();
    let page = browser.post(&format!("{path}/deliveries/{delivery}/redeliver"), &[]).await;
    assert_eq!(page.leads(), format!("/dashboard{path}?done=redelivered"));
    let is_again = |delivery: &Delivery| delivery.event() != "webhook.test" && signs(&fresh, delivery);
    receiver.until("the redelivery, signed with the new secret", |all| all.iter().any(is_again)).await;

    let page = browser.post(&format!("{path}/pause"), &[]).await;
    assert_eq!(page.leads(), format!("/dashboard{path}?done=paused"));
    let page = browser.post(&format!("{path}/deliveries/{delivery}/redeliver"), &[]).await;
    assert_eq!(page.status, StatusCode::CONFLICT);
    assert!(browser.open(&path).await.contains("Resume"));
    assert_eq!(
        browser.post(&format!("{path}/delete"), &[]).await.leads(),
        "/dashboard/webhooks?done=deleted"
    );
}

#[tokio::test]
async fn a_prepared_secret_signs_from_the_rotation_on() {
    let world = world().start().await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let path = format!("/webhooks/{}", webhook["id"].as_str().unwrap());
    let old = webhook["signing_secret"].as_str().unwrap();
    let browser = Browser::signed_in(&world).await;
    let discarded = browser.post(&format!("{path}/prepare"), &[]).await.secret().to_owned();
    let next = browser.post(&format!("{path}/prepare"), &[]).await.secret().to_owned();
    assert!(next.starts_with("whsec_") && next != old && next != discarded);
    let signer = async || {
        let count = receiver.all().len();
        browser.post(&format!("{path}/test"), &[]).await;
        let delivery = receiver.until("a test", |all| all.len() > count).await.pop().unwrap();
        let sent = delivery.header("x-fanfare-signature");
        let at = sent.split(',').next().unwrap().trim_start_matches("t=").parse().unwrap();
        let by = [old, &*next].into_iter().find(|secret| signature::sign(secret, at, &delivery.body) == sent);
        by.expect("one of the two signs").to_owned()
    };
    assert_eq!(signer().await, old);
    let page = browser.post(&format!("{path}/rotate"), &[]).await;
    assert_eq!(page.leads(), format!("/dashboard{path}?done=secret_rotated"));
    assert_eq!(signer().await, next);
    assert_eq!(browser.post(&format!("{path}/reveal"), &[]).await.secret(), next);
    let fresh = browser.post(&format!("{path}/rotate"), &[]).await.secret().to_owned();
    assert!(fresh != next && fresh != old, "a prepared secret is used once");
}

#[tokio::test]
async fn events_are_replayed() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let path = format!("/webhooks/{}", webhook["id"].as_str().unwrap());
    let post = world.post(json!({ "content": "Told", "accounts": [account] })).await;
    world.ended(&post).await;
    let told = ["post.target.published", "post.published"];
    receiver.events(&told).await;
    let browser = Browser::signed_in(&world).await;
    browser.until(&path, "Redeliver").await;
    let replay = async |include| {
        let page = browser.post(&format!("{path}/replay"), &[("hours", "1"), ("include", include)]).await;
        assert_eq!(page.leads(), format!("/dashboard{path}?done=replayed"));
    };
    replay("failed").await;
    replay("all").await;
    receiver.until("both again", |all| all.len() == 2 * told.len()).await;
    browser.post(&format!("{path}/pause"), &[]).await;
    let page = browser.post(&format!("{path}/replay"), &[("hours", "1")]).await;
    assert_eq!(page.status, StatusCode::CONFLICT);
    assert!(page.text.contains("paused"), "{}", page.text);
}

#[tokio::test]
async fn a_revealed_signing_secret_is_not_in_the_workflow_history() {
    let world = world().start().await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let secret = webhook["signing_secret"].as_str().unwrap();
    let browser = Browser::signed_in(&world).await;
    let path = format!("/webhooks/{}/reveal", webhook["id"].as_str().unwrap());
    assert_eq!(browser.post(&path, &[]).await.secret(), secret);

    let client = replay::client().await;
    let id = replay::fresh(&client, &world.owner.org.to_string(), &HashSet::new()).await;
    let history = replay::replay(&world, "worker_request-reveal", &id).await;
    // The payloads of a history are base64.
    let reported: String = history
        .split('"')
        .filter_map(|part| BASE64_STANDARD.decode(part).ok())
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .collect();
    let bodies = reported.matches("\"type\":\"reveal_secret\"").count();
    assert_eq!(bodies, 2, "the input and the output: {reported}");
    let numbers = format!("{:?}", secret.as_bytes()).replace(' ', "");
    for shape in [secret, numbers.trim_matches(['[', ']'])] {
        assert!(!history.contains(shape) && !reported.contains(shape), "{reported}");
    }
}

#[tokio::test]
async fn a_post_is_previewed_for_each_account_before_it_is_published() {
    let world = world().start().await;
    let [x, bluesky] = [world.connect("x", "ada").await, world.connect("bluesky", "ada").await];
    let browser = Browser::signed_in(&world).await;
    let page = browser.open("/compose").await;
    assert!(page.contains("ada on X") && page.contains("on Bluesky"), "{page}");

    let page = browser.post("/compose", &[("text", ""), ("action", "preview")]).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    for words in
        ["Some fields need a change.", "Write something, or add media.", "Choose at least one account."]
    {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    let long = "a".repeat(290);
    let form = [("text", long.as_str()), ("account", &x), ("account", &bluesky), ("action", "preview")];
    let page = browser.post("/compose", &form).await;
    assert_eq!(page.status, StatusCode::OK);
    for words in ["Not every platform would accept it", "Refused:", "290 of 280", "290 of 300"] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    assert!(!page.text.contains("value=\"publish\""));

    let form = [("text", "Hello"), ("text", "And more"), ("text", " "), ("account", &x), ("key", "once")];
    let page = browser.post("/compose", &form).await;
    assert!(page.text.contains("value=\"publish\"") && page.text.contains("And more"), "{}", page.text);
    let publish = [&form[..], &[("action", "publish")]].concat();
    let first = browser.post("/compose", &publish).await;
    let second = browser.post("/compose", &publish).await;
    assert_eq!(first.leads(), second.leads(), "submitting twice creates one post");
    let id = first.leads().trim_start_matches("/dashboard/posts/").split('?').next().unwrap();
    let post = world.get(&format!("/posts/{id}")).await;
    assert_eq!(post["containers"].as_array().unwrap().len(), 2);
    world.completed(&post, 1).await;
    assert_eq!(world.accepted("x", "ada").await, 2);

    let form = [("text", "Later"), ("account", &x), ("is_draft", "true"), ("action", "publish")];
    let page = browser.post("/compose", &form).await;
    let id = page.leads().trim_start_matches("/dashboard/posts/").split('?').next().unwrap().to_owned();
    assert!(browser.open(&format!("/posts/{id}")).await.contains("Publish this draft"));
    browser.post(&format!("/posts/{id}/release"), &[]).await.leads();
    world.ended(&json!({ "id": id })).await;
    let long = "a".repeat(300);
    let form = [("text", long.as_str()), ("account", &x), ("is_draft", "true")];
    let page = browser.post("/compose", &form).await.text;
    assert!(page.contains("Not every platform") && page.contains("value=\"publish\""), "{page}");
    browser.post("/compose", &[&form[..], &[("action", "publish")]].concat()).await.leads();

    let own = json!({ "bluesky": { "content": "Hello sky", "scheduled_at": "2999-01-02T03:04:05Z" } });
    let own = own.to_string();
    let form = [("text", "Hello all"), ("account", &x), ("account", &bluesky), ("settings", own.as_str())];
    let page = browser.post("/compose", &form).await.text;
    let (of_x, of_bluesky) = page.split_once(" on Bluesky</h2>").expect("a card for each account");
    assert!(of_x.contains("Hello all") && !of_x.contains("Goes out"), "{page}");
    let (card, _) = of_bluesky.split_once("</ul>\n<form").unwrap();
    assert!(card.contains("Hello sky") && !card.contains("Hello all"), "{page}");
    assert!(card.contains("9 of 300") && card.contains("Goes out <time"), "{page}");
    let page = browser.post("/compose", &[&form[..], &[("action", "publish")]].concat()).await;
    let path = page.leads().trim_start_matches("/dashboard").split('?').next().unwrap().to_owned();
    let page = browser.open(&path).await;
    let (targets, texts) = page.split_once(">Content<").unwrap();
    assert!(targets.contains("Goes out <time"), "{page}");
    let (base, own) = texts.split_once(" on Bluesky</h3>").expect("the text of one account");
    assert!(base.contains("Hello all") && own.contains("Hello sky"), "{page}");
    browser.post(&format!("{path}/cancel"), &[]).await.leads();

    let form = [("text", "x"), ("account", &x), ("settings", "{"), ("action", "preview")];
    let page = browser.post("/compose", &form).await;
    assert!(page.text.contains("The text is not valid JSON"), "{}", page.text);
    let form = [("text", "At"), ("account", &x), ("scheduled_at", "2999-01-02T03:04"), ("action", "publish")];
    let page = browser.post("/compose", &form).await;
    let id = page.leads().trim_start_matches("/dashboard/posts/").split('?').next().unwrap();
    assert_eq!(world.get(&format!("/posts/{id}")).await["scheduled_at"], "2999-01-02T03:04:00.000Z");
    let page = browser.open("/posts?scheduled_from=2999-01-02&scheduled_to=2999-01-02").await;
    assert!(page.contains(id), "{page}");
    let page = browser.open("/posts?scheduled_from=2999-01-03").await;
    assert!(page.contains("No posts."), "{page}");
}

#[tokio::test]
async fn accounts_are_checked_and_redirected_to_their_platform() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let browser = Browser::signed_in(&world).await;
    let page = browser.post(&format!("/accounts/{account}/check"), &[]).await;
    assert!(page.text.contains("It works: the platform answered just now."), "{}", page.text);
    world.revoke_grants("x", "ada").await;
    let page = browser.post(&format!("/accounts/{account}/check"), &[]).await;
    assert!(page.text.contains("It does not work. The platform says:"), "{}", page.text);
    let page = browser.open("").await;
    assert!(page.contains("1 account has to be reconnected"), "{page}");

    let network = json!({ "platform": "x", "client_id": "client", "client_secret": "secret" });
    world.call(reqwest::Method::POST, "/social-networks", Some(&network)).await;
    let page = browser.post(&format!("/accounts/{account}/reconnect"), &[]).await;
    assert_eq!(page.status, StatusCode::SEE_OTHER, "{}", page.text);
    let address = page.headers[header::LOCATION].to_str().unwrap();
    assert!(address.starts_with(&world.sandbox_url) && address.contains("state="), "{address}");
    let page = browser.post("/accounts/connect", &[("platform", "bluesky")]).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST, "Bluesky has no OAuth apps");
    assert!(page.text.contains("role=\"alert\""), "{}", page.text);
}

#[tokio::test]
async fn accounts_are_connected_by_app_password_or_selection() {
    let world = world().start().await;
    let grant = world.account("bluesky", "ada.bsky.social").await.grant;
    let browser = Browser::signed_in(&world).await;
    let password = grant.extra["app_password"].as_str().unwrap();
    let form = |password| [("identifier", "ada.bsky.social"), ("app_password", password), ("service", "")];
    for (form, words) in [
        (form("wrong-wrong"), "The service does not know this login"),
        (form(""), "app_password: "),
        ([("identifier", "a"), ("app_password", "b"), ("service", "http://10.0.0.1/")], "service: "),
    ] {
        let page = browser.post("/accounts/bluesky", &form).await;
        assert!(page.status.is_client_error(), "{}", page.status);
        let (_, shown) = page.text.split_once("id=\"connect-bluesky\"").expect("the page has the form");
        let (_, alert) = shown.split_once("role=\"alert\"").expect("the form has an alert");
        let (alert, fields) = alert.split_once("class=\"field\"").expect("the fields follow the alert");
        assert!(alert.contains(words), "{alert}");
        assert!(fields.contains(&format!("value=\"{}\"", form[0].1)), "the form keeps its values: {fields}");
        assert!(!page.text.contains("wrong-wrong"), "the password is not repeated");
    }
    let page = browser.post("/accounts/bluesky", &form(password)).await;
    assert_eq!(page.leads(), "/dashboard/accounts?done=connected");
    let page = browser.open("/accounts?done=connected").await;
    assert!(
        page.contains("The account is connected.") && page.contains("ada.bsky.social on Bluesky"),
        "{page}"
    );
    let again = "/dashboard/accounts?identifier=ada.bsky.social#connect-bluesky";
    assert!(page.contains(again), "the page links to the password form: {page}");
    assert!(browser.open("/accounts?identifier=ada.bsky.social").await.contains("value=\"ada.bsky.social\""));

    // A login that covers several accounts redirects to the page that selects among them.
    let page = browser.get("/accounts?platform=facebook&status=pending&token=a-b_1").await;
    assert_eq!(page.leads(), format!("{}/connect/choose/a-b_1", world.base));
    for token in ["", "a%2Fb", "..", "a%0Ab"] {
        browser.open(&format!("/accounts?platform=facebook&status=pending&token={token}")).await;
    }
}

#[tokio::test]
async fn an_invitation_is_accepted_once() {
    let world = world().start().await;
    let browser = Browser::signed_in(&world).await;
    let page = browser.open("/team").await;
    let first = page.split_once("<select id=\"role\"").unwrap().1.split_once("</option>").unwrap().0;
    assert!(first.contains("viewer"), "what nobody chose gives little: {first}");
    let form = [("email", "grace@example.com"), ("role", "publisher")];
    let page = browser.post("/team", &form).await;
    let address = page.secret().to_owned();
    assert!(page.text.contains("grace@example.com is invited"), "{}", page.text);
    let page = browser.post("/team", &form).await;
    assert!(page.status == StatusCode::CONFLICT && page.text.contains("in the team already"));

    let stranger = Browser::new(&world);
    let path = address.split_once("/dashboard").unwrap().1;
    let page = stranger.open(path).await;
    assert!(page.contains("Join World") && page.contains("as publisher"), "{page}");
    let long = "a".repeat(101);
    // Without a passkey nobody can sign in, and so not join.
    for name in ["", " ", long.as_str(), "Grace"] {
        let page = stranger.post(path, &[("name", name)]).await;
        assert_eq!(page.status, StatusCode::BAD_REQUEST);
    }
    let (grace, _) = people::accept(&world, &address, "Grace").await;
    assert!(grace.open("").await.contains("Grace, publisher"));
    assert_eq!(stranger.post(path, &[("name", "Eve")]).await.status, StatusCode::NOT_FOUND);
    assert_eq!(stranger.get(path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(stranger.get("/invite/nothing").await.status, StatusCode::NOT_FOUND);
    let page = browser.open("/team").await;
    assert!(page.contains("Grace · grace@example.com") && page.contains("Active"), "{page}");
    let team = world.get("/team").await;
    assert_eq!(team["data"][0]["status"], "active");
    let id = team["data"][0]["id"].as_str().unwrap();
    assert_eq!(
        browser.post(&format!("/team/{id}/role"), &[("role", "admin")]).await.leads(),
        "/dashboard/team?done=role_changed"
    );
    assert!(grace.open("").await.contains("Grace, admin"));
    assert_eq!(
        browser.post(&format!("/team/{id}/remove"), &[]).await.leads(),
        "/dashboard/team?done=removed"
    );
}

#[tokio::test]
async fn keys_are_created_shown_once_and_revoked() {
    let world = world().start().await;
    let browser = Browser::signed_in(&world).await;
    let page = browser.post("/keys", &[("name", "")]).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    let form = [("name", "Robot"), ("scope", "posts:read"), ("expires", "2999-12-31")];
    let page = browser.post("/keys", &form).await;
    let text = page.secret().to_owned();
    assert!(text.starts_with("sk_test_"), "{}", page.text);
    let page = browser.open("/keys").await;
    assert!(page.contains("Robot") && !page.contains(&text) && page.contains("1 Jan 3000"), "{page}");
    let keys = world.get("/api-keys").await;
    let id =
        keys["data"].as_array().unwrap().iter().find(|key| key["name"] == "Robot").unwrap()["id"].clone();
    let path = format!("/keys/{}/revoke", id.as_str().unwrap());
    assert_eq!(browser.post(&path, &[]).await.leads(), "/dashboard/keys?done=revoked");
    let page = browser.post(&path, &[]).await;
    assert!(page.status == StatusCode::NOT_FOUND && page.text.contains("API key not found."));
}

#[tokio::test]
async fn assets_are_named_by_their_content() {
    let world = world().start().await;
    let browser = Browser::new(&world);
    let page = browser.get("").await.text;
    let style = page.split('"').find(|part| part.ends_with(".css")).unwrap();
    let path = style.trim_start_matches("/dashboard");
    let file = browser.get(path).await;
    assert_eq!(file.headers[header::CONTENT_TYPE], "text/css; charset=utf-8");
    assert!(file.headers[header::CACHE_CONTROL].to_str().unwrap().contains("immutable"));
    let older = browser.get("/assets/0123.css").await;
    assert_eq!(
        (older.status, &older.headers[header::CACHE_CONTROL]),
        (StatusCode::OK, &"no-cache".parse().unwrap())
    );
    assert_eq!(browser.get("/assets/passwd").await.status, StatusCode::NOT_FOUND);
    let page = browser.http.put(format!("{}/dashboard/posts", browser.origin)).send().await.unwrap();
    assert_eq!(page.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn media_are_listed_imported_posted_and_deleted() {
    let world = world().start().await;
    let x = world.connect("x", "ada").await;
    let slots = json!({ "social_account_id": null, "slots": [{ "weekday": "monday", "time": "09:00" }] });
    let (status, reported) = world.call(reqwest::Method::PUT, "/scheduling/slots", Some(&slots)).await;
    assert_eq!(status, StatusCode::OK, "{reported}");
    let picture = world.medium("dawn.png", Some("A bridge at dawn"), png(64, 48)).await;
    let id = picture["id"].as_str().unwrap();
    let browser = Browser::signed_in(&world).await;
    let page = browser.open("/media").await;
    for words in ["One file.", "dawn.png", "image/png", "64\u{a0}×\u{a0}48", "A bridge at dawn"] {
        assert!(page.contains(words), "{words}: {page}");
    }

    let page = browser.post("/media", &[("url", "http://10.0.0.1/a.png")]).await;
    assert!(page.status.is_client_error() && page.text.contains("http://10.0.0.1/a.png"), "{}", page.text);
    let address = format!("{}/nothing-there.png", world.sandbox_url);
    assert!(browser.post("/media", &[("url", &address)]).await.leads().ends_with("done=fetching"));
    browser.until("/media", "Rejected").await;

    let form = [("text", "Look"), ("media", id), ("account", x.as_str()), ("queue", &x), ("key", "once")];
    let page = browser.post("/compose", &form).await;
    for words in ["alt=\"A bridge at dawn\"", "next open slot", "value=\"publish\""] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    let page = browser.post("/compose", &[&form[..], &[("action", "publish")]].concat()).await;
    let path = page.leads().trim_start_matches("/dashboard").split('?').next().unwrap().to_owned();
    let post = world.get(&path).await;
    assert!(post["scheduled_at"].is_string(), "{post:#}");
    assert!(browser.open(&path).await.contains("dawn.png (image)"), "the post's page shows its media");
    let again = browser.open(&format!("/compose?from={}", post["id"].as_str().unwrap())).await;
    assert!(again.contains(&format!("name=\"media\" value=\"{id}\"")), "{again}");

    let delete = format!("/media/{id}/delete");
    let page = browser.post(&delete, &[]).await;
    assert_eq!(page.status, StatusCode::CONFLICT, "a post that has not ended needs it");
    browser.post(&format!("{path}/cancel"), &[]).await.leads();
    assert!(browser.post(&delete, &[]).await.leads().ends_with("done=discarded"));
    assert!(!browser.open("/media").await.contains("dawn.png"));
}
