//! Connect flows that somebody else is talked into finishing: bound to a browser, or confirmed by a key.
//!
//! The attacker begins a login for their own tenant and sends its URL to another person, who knows the app and
//! allows the access.

use crate::{api, connect::finalize, world};
use domain::{Mode, Owner, scope::Scope};
use reqwest::{Method, Response, StatusCode, header};
use serde_json::{Value, json};
use store::people::organizations;
use tests::{
    World,
    login::{BACK, arrive, begin, browser, decide, joined, location, reported, walk},
};
use url::Url;

async fn accounts(world: &World) -> usize {
    world.get("/social-accounts").await["data"].as_array().unwrap().len()
}

/// Finalizes a login with a key.
async fn confirm(world: &World, token: &str, ids: &[&str], key: &str) -> (u16, Value) {
    let url = format!("{}/social-accounts/pending/{token}/finalize", world.base);
    let answer = browser().post(url).bearer_auth(key).json(&json!({ "page_ids": ids })).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

async fn offered(world: &World, token: &str) -> Value {
    let url = format!("{}/social-accounts/pending/{token}", world.base);
    browser().get(url).send().await.unwrap().json().await.unwrap()
}

async fn limited(world: &World, mut bound: Value) -> String {
    bound["name"] = json!("Limited");
    bound["scopes"] = json!(["accounts:write"]);
    let (status, made) = world.call(Method::POST, "/api-keys", Some(&bound)).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    made["key"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_login_with_confirm_connects_nothing_without_a_key() {
    let world = world().start().await;
    // The person ends at the client's page, signed in as somebody else than the tenant.
    let back = walk(&world, "x", "ada", json!({ "tenant_id": "attacker", "confirm": true })).await;
    assert_eq!((back["status"].as_str(), back["tenant_id"].as_str()), ("pending", "attacker"), "{back:?}");
    assert_eq!(accounts(&world).await, 0);
    let token = &back["token"];
    let login = offered(&world, token).await;
    assert_eq!((&login["confirm"], &login["tenant_id"]), (&json!(true), &json!("attacker")), "{login}");
    let id = login["data"][0]["id"].as_str().unwrap();
    assert_eq!(login["data"].as_array().unwrap().len(), 1);

    // The token alone is not enough, neither for the API nor for our page.
    let (status, problem) = finalize(&world, token, &[id]).await;
    assert_eq!((status.as_u16(), &problem["code"]), (401, &json!("unauthorized")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("confirm"), "{problem}");
    let page = format!("{}/connect/choose/{token}", world.base);
    assert_eq!(browser().get(&page).send().await.unwrap().status(), StatusCode::FORBIDDEN);
    let chosen = browser().post(&page).form(&[("page", id)]).send().await.unwrap();
    assert_eq!(chosen.status(), StatusCode::FORBIDDEN);

    let reader = api::key(&world, world.owner, &[Scope::AccountsRead]).await;
    let stranger = organizations::create(&world.db, "Stranger").await.unwrap();
    let stranger = api::key(&world, Owner { org: stranger, ..world.owner }, &[Scope::All]).await;
    let live = api::key(&world, Owner { mode: Mode::Live, ..world.owner }, &[Scope::All]).await;
    let victim = limited(&world, json!({ "tenant_id": "victim" })).await;
    for (key, expected) in [
        (reader.as_str(), (403, "insufficient_scope")),
        ("sk_test_unknown", (401, "unauthorized")),
        (&stranger, (404, "not_found")),
        (&live, (404, "not_found")),
        (&victim, (404, "not_found")),
    ] {
        let (status, problem) = confirm(&world, token, &[id], key).await;
        assert_eq!((status, problem["code"].as_str().unwrap()), expected, "{problem}");
    }
    assert_eq!(accounts(&world).await, 0);

    let tenant = limited(&world, json!({ "tenant_id": "attacker" })).await;
    let (status, made) = confirm(&world, token, &[id], &tenant).await;
    assert_eq!((status, &made["data"][0]["tenant_id"]), (201, &json!("attacker")), "{made}");
    let (status, again) = confirm(&world, token, &[id], &world.key).await;
    assert_eq!((status, &again["account_ids"]), (200, &made["account_ids"]), "{again}");
}

#[tokio::test]
async fn a_confirmed_login_reconnects_its_account_and_moves_it() {
    let world = world().start().await;
    let account = joined(&world, "x", "ada", json!({ "tenant_id": "a" })).await;
    let narrow = limited(&world, json!({ "account_ids": [account] })).await;
    let wish = json!({ "tenant_id": "b", "reconnect_account_id": account, "confirm": true });
    let back = walk(&world, "x", "ada", wish).await;
    let id = offered(&world, &back["token"]).await["data"][0]["id"].as_str().unwrap().to_owned();
    let (status, made) = confirm(&world, &back["token"], &[&id], &narrow).await;
    assert_eq!((status, &made["account_ids"]), (201, &json!([account])), "{made}");
    assert_eq!(made["data"][0]["tenant_id"], "b", "{made}");
    // A login that is to connect another account is not of that key.
    let back = walk(&world, "x", "bob", json!({ "confirm": true })).await;
    let id = offered(&world, &back["token"]).await["data"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(confirm(&world, &back["token"], &[&id], &narrow).await.0, 404);
}

#[tokio::test]
async fn confirm_needs_a_page_to_return_to() {
    let world = world().start().await;
    let request = api::request(&world, Method::POST, "/social-networks/x/auth-url");
    let (_, problem) = api::fail(request.json(&json!({ "confirm": true })), 400, "invalid_request").await;
    assert_eq!(problem["errors"][0]["path"], json!(["redirect_uri"]), "{problem}");
    // Without it the contract's default holds: the login connects at once.
    let back = walk(&world, "x", "ada", json!({ "tenant_id": "t" })).await;
    assert_eq!(back["status"], "connected");
}

/// Presses the button of the page on which a hosted login begins.
async fn press(page: &Url, site: &str, origin: &str) -> Response {
    let request = browser().post(page.clone()).header("sec-fetch-site", site).header(header::ORIGIN, origin);
    request.send().await.unwrap()
}

/// Opens the callback with a cookie.
async fn back_with(back: &Url, cookie: &str) -> Response {
    browser().get(back.clone()).header(header::COOKIE, cookie).send().await.unwrap()
}

#[tokio::test]
async fn a_hosted_login_ends_in_the_browser_in_which_it_began() {
    let world = world().start().await;
    let origin = Url::parse(&world.base).unwrap().origin().ascii_serialization();
    let body = json!({ "tenant_id": "attacker <b>", "redirect_uri": BACK, "hosted": true });
    let page = begin(&world, "x", body.clone()).await;
    assert!(page.as_str().starts_with(&format!("{}/connect/begin/", world.base)), "{page}");
    let shown = browser().get(page.clone()).send().await.unwrap();
    let headers = shown.headers().clone();
    assert_eq!(shown.status(), StatusCode::OK);
    // Only the button sets the cookie, and only from our own page.
    assert!(headers.get(header::SET_COOKIE).is_none());
    let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    let sandbox = Url::parse(&world.sandbox_url).unwrap().origin().ascii_serialization();
    assert!(policy.contains(&format!("form-action 'self' {sandbox};")), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    let html = shown.text().await.unwrap();
    let organization = organizations::name(&world.db, world.owner.org).await.unwrap().unwrap();
    for words in [organization.as_str(), "attacker &#60;b&#62;", "Continue to X"] {
        assert!(html.contains(words), "{words}: {html}");
    }
    for (site, origin) in [("cross-site", "https://evil.example"), ("same-origin", "null"), ("none", &origin)]
    {
        let pressed = press(&page, site, origin).await;
        assert_eq!(pressed.status(), StatusCode::BAD_REQUEST, "{site} {origin}");
        assert!(pressed.headers().get(header::SET_COOKIE).is_none());
    }
    let pressed = press(&page, "same-origin", &origin).await;
    assert_eq!(pressed.status(), StatusCode::SEE_OTHER);
    let cookie = pressed.headers()[header::SET_COOKIE].to_str().unwrap().to_owned();
    assert!(cookie.starts_with("fanfare-login-") && cookie.contains("HttpOnly; SameSite=Lax"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let asked: Url = pressed.headers()[header::LOCATION].to_str().unwrap().parse().unwrap();

    // The attacker has pressed the button, and sends the platform's address to a person, who allows the access.
    let back = decide(&asked, "ada", "allow").await.unwrap();
    let other = begin(&world, "x", body).await;
    let other = press(&other, "same-origin", &origin).await;
    let other = other.headers()[header::SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
    let value = cookie.split_once('=').unwrap().1;
    for sent in ["", "fanfare-login-a=b", &other, &format!("{}={value}", other.split_once('=').unwrap().0)] {
        let refused = back_with(&back, sent).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{sent}");
        assert!(refused.text().await.unwrap().contains("This login began elsewhere"));
    }
    assert_eq!(accounts(&world).await, 0);
    // The state is not spent: where the login began it can be finished.
    let ended = reported(&location(&back_with(&back, &format!("a=b; {cookie}")).await));
    assert_eq!(ended["status"], "connected", "{ended:?}");
    let again = reported(&location(&back_with(&back, cookie).await));
    assert_eq!(again["error"], "state_used", "{again:?}");
    assert_eq!(accounts(&world).await, 1);
}

#[tokio::test]
async fn only_hosted_logins_have_a_page_to_begin() {
    let world = world().start().await;
    let asked = begin(&world, "x", json!({ "redirect_uri": BACK })).await;
    let state = tests::login::parameters(&asked)["state"].clone();
    for state in [state.as_str(), "unknown", "%00"] {
        let page = format!("{}/connect/begin/{state}", world.base);
        let shown = browser().get(page).send().await.unwrap();
        assert_eq!(shown.status(), StatusCode::BAD_REQUEST, "{state}");
    }
    // And a login that is not hosted needs no cookie.
    let back = decide(&asked, "ada", "allow").await.unwrap();
    assert_eq!(reported(&location(&arrive(&back).await))["status"], "connected");
}
