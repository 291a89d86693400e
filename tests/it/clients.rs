//! Client tokens: what a page of an organization's customer can do with one, and nothing else.

use crate::{
    api::{fail, key, request},
    attacks::{filled, operations, send},
    world,
};
use chrono::TimeDelta;
use domain::{client::Client, scope::Scope};
use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};
use store::people::{audit::Actor, keys};
use tests::{
    World,
    login::{BACK, arrive, browser, decide, joined, location, reported},
    now,
};
use url::Url;

async fn mint(world: &World, body: Value) -> Value {
    let (status, made) = world.call(Method::POST, "/client-tokens", Some(&body)).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    made
}

fn text(token: &Value) -> &str {
    token["token"].as_str().unwrap()
}

async fn call(world: &World, key: &str, method: Method, path: &str, body: Value) -> (u16, Value) {
    let body = if body.is_null() { None } else { Some(body.to_string().into_bytes()) };
    send(world, key, &method, path, body.as_deref()).await
}

#[tokio::test]
async fn a_client_token_connects_and_lists_the_accounts_of_its_tenant() {
    let world = world().start().await;
    let other = joined(&world, "x", "bob", json!({ "tenant_id": "other" })).await;
    let wish = json!({ "tenant_id": "mine", "platforms": ["x", "bluesky"], "redirect_uri": BACK });
    let token = mint(&world, wish).await;
    assert!(text(&token).starts_with("ct_test_") && text(&token).len() >= 40, "{token}");
    let token = text(&token);
    let (_, platforms) = call(&world, token, Method::GET, "/connect/platforms", Value::Null).await;
    let expected = json!([
        { "platform": "x", "name": "X", "takes_password": false },
        { "platform": "bluesky", "name": "Bluesky", "takes_password": true },
    ]);
    assert_eq!(platforms["data"], expected);

    // A login is confirmed at the page, with a token of the same tenant.
    let (status, asked) = call(&world, token, Method::POST, "/social-networks/x/auth-url", json!({})).await;
    assert_eq!(status, 200, "{asked}");
    let asked: Url = asked["auth_url"].as_str().unwrap().parse().unwrap();
    let back = decide(&asked, "ada", "allow").await.unwrap();
    let back = reported(&location(&arrive(&back).await));
    assert_eq!((back["status"].as_str(), back["tenant_id"].as_str()), ("pending", "mine"), "{back:?}");
    let pending = format!("/social-accounts/pending/{}", back["token"]);
    let (_, login) = call(&world, token, Method::GET, &pending, Value::Null).await;
    let choice = json!({ "page_ids": [login["data"][0]["id"]] });
    let finalize = format!("{pending}/finalize");
    let stranger = mint(&world, json!({ "tenant_id": "other" })).await;
    assert_eq!(call(&world, text(&stranger), Method::POST, &finalize, choice.clone()).await.0, 404);
    let elsewhere = mint(&world, json!({ "tenant_id": "mine", "platforms": ["bluesky"] })).await;
    assert_eq!(call(&world, text(&elsewhere), Method::POST, &finalize, choice.clone()).await.0, 403);
    let (status, made) = call(&world, token, Method::POST, &finalize, choice).await;
    assert_eq!((status, &made["data"][0]["tenant_id"]), (201, &json!("mine")), "{made}");

    let login = world.account("bluesky", "ada.bsky.social").await.grant;
    let login = json!({ "identifier": "ada.bsky.social", "app_password": login.extra["app_password"] });
    let path = "/social-accounts/bluesky/connect";
    let (status, made) = call(&world, token, Method::POST, path, login).await;
    assert_eq!((status, &made["tenant_id"]), (201, &json!("mine")), "{made}");
    let (_, listed) = call(&world, token, Method::GET, "/social-accounts", Value::Null).await;
    assert_eq!(listed["data"].as_array().unwrap().len(), 2, "{listed}");
    assert!(!listed.to_string().contains(&other), "{listed}");
}

#[tokio::test]
async fn a_client_token_does_nothing_else() {
    let world = world().start().await;
    let token = mint(&world, json!({ "tenant_id": "mine", "platforms": ["x"], "redirect_uri": BACK })).await;
    let allowed = ["/connect/platforms", "/social-accounts", "/social-accounts/bluesky/connect"];
    let (_, operations) = operations(&world).await;
    let mut refused = 0;
    for (method, path, operation) in &operations {
        let is_allowed = allowed.contains(&path.as_str()) || path.ends_with("/auth-url");
        if is_allowed || path.contains("/pending/") {
            continue;
        }
        let example = &operation["requestBody"]["content"]["application/json"]["example"];
        let body = operation.get("requestBody").map(|_| serde_json::to_vec(example).unwrap());
        let path = filled(path, "7");
        let (status, problem) = send(&world, text(&token), method, &path, body.as_deref()).await;
        let code = problem["code"].as_str().unwrap();
        assert!(
            status == 403 && ["forbidden", "insufficient_scope"].contains(&code),
            "{method} {path}: {problem}"
        );
        refused += 1;
    }
    assert!(refused > 50, "only {refused} operations were refused");
    for (path, body) in [
        ("/social-networks/linkedin/auth-url", json!({})),
        ("/social-networks/x/auth-url", json!({ "tenant_id": "other" })),
        ("/social-networks/x/auth-url", json!({ "redirect_uri": "https://evil.example/" })),
        ("/social-accounts/bluesky/connect", json!({ "identifier": "a", "app_password": "b" })),
    ] {
        let (status, problem) = call(&world, text(&token), Method::POST, path, body.clone()).await;
        assert_eq!((status, &problem["code"]), (403, &json!("forbidden")), "{path} {body}: {problem}");
    }
    // Without a page of its own its logins are hosted, whatever is asked for.
    let bare = mint(&world, json!({ "tenant_id": "mine" })).await;
    let asked = json!({ "hosted": false });
    let (_, asked) = call(&world, text(&bare), Method::POST, "/social-networks/x/auth-url", asked).await;
    assert!(asked["auth_url"].as_str().unwrap().contains("/connect/begin/"), "{asked}");
    let named = json!({ "redirect_uri": BACK });
    assert_eq!(call(&world, text(&bare), Method::POST, "/social-networks/x/auth-url", named).await.0, 403);
}

/// A page makes one for each of its visitors, who would fill the trail.
#[tokio::test]
async fn the_client_tokens_of_an_hour_are_one_entry_of_the_trail() {
    let world = world().start().await;
    for _ in 0..5 {
        mint(&world, json!({ "tenant_id": "mine" })).await;
    }
    let trail = world.get("/account/audit?action=client_token.created").await;
    let counts: Vec<_> = trail["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["details"]["count"].as_u64().unwrap())
        .collect();
    // The hour may have ended between them.
    assert!(counts.len() <= 2 && counts.iter().sum::<u64>() == 5, "{trail:#}");
}

#[tokio::test]
async fn an_ended_client_token_says_so() {
    let world = world().start().await;
    let path = "/social-accounts";
    let client = Client { platforms: Vec::new(), redirect_uri: None };
    let (then, over) = (now() - TimeDelta::hours(1), now() - TimeDelta::minutes(1));
    let (_, expired) =
        keys::create_client(&world.db, world.owner, "mine", &client, over, &Actor::OPERATOR, then)
            .await
            .unwrap();
    let token = mint(&world, json!({ "tenant_id": "mine" })).await;
    assert_eq!(call(&world, text(&token), Method::GET, path, Value::Null).await.0, 200);
    // It is no API key: neither listed nor rotated nor revoked as one.
    let id = token["id"].as_str().unwrap();
    assert!(!world.get("/api-keys").await.to_string().contains(id));
    for (method, path) in
        [(Method::DELETE, format!("/api-keys/{id}")), (Method::POST, format!("/api-keys/{id}/rotate"))]
    {
        assert_eq!(world.call(method, &path, None).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    let own = format!("/client-tokens/{id}");
    assert_eq!(world.call(Method::DELETE, &own, None).await.0, StatusCode::OK);
    assert_eq!(world.call(Method::DELETE, &own, None).await.0, StatusCode::NOT_FOUND);
    for (token, words) in
        [(expired.as_str(), "expired"), (text(&token), "revoked"), ("ct_test_unknown", "invalid or expired")]
    {
        let (status, problem) = call(&world, token, Method::GET, path, Value::Null).await;
        assert_eq!((status, &problem["code"]), (401, &json!("unauthorized")), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(words), "{words}: {problem}");
    }
    for (body, path) in [
        (json!({}), json!(["tenant_id"])),
        (json!({ "tenant_id": "a", "expires_in": 899 }), json!(["expires_in"])),
        (json!({ "tenant_id": "a", "expires_in": 3601 }), json!(["expires_in"])),
        (json!({ "tenant_id": "a", "platforms": ["myspace"] }), json!(["platforms", 0])),
        (json!({ "tenant_id": "a", "redirect_uri": "http://example.com" }), json!(["redirect_uri"])),
    ] {
        let asked = request(&world, Method::POST, "/client-tokens").json(&body);
        let (_, problem) = fail(asked, 400, "invalid_request").await;
        assert_eq!(problem["errors"][0]["path"], path, "{body}: {problem}");
    }
    let limited = json!({ "name": "a", "scopes": ["*"], "tenant_id": "mine" });
    let limited = world.call(Method::POST, "/api-keys", Some(&limited)).await.1["key"].clone();
    let asked = json!({ "tenant_id": "other" });
    let limited = limited.as_str().unwrap();
    assert_eq!(call(&world, limited, Method::POST, "/client-tokens", asked).await.0, 403);
    let theirs = mint(&world, json!({ "tenant_id": "other" })).await;
    let theirs = format!("/client-tokens/{}", theirs["id"].as_str().unwrap());
    assert_eq!(call(&world, limited, Method::DELETE, &theirs, Value::Null).await.0, 404);
}

/// A token lists accounts as well: who can't must not get there by a token.
#[tokio::test]
async fn a_client_token_is_given_by_who_has_its_scopes() {
    let world = world().start().await;
    for (scopes, expected) in [
        (&[Scope::AccountsWrite][..], (403, Some("forbidden"))),
        (&[Scope::AccountsRead], (403, Some("insufficient_scope"))),
        (&[Scope::AccountsRead, Scope::AccountsWrite], (201, None)),
    ] {
        let key = key(&world, world.owner, scopes).await;
        let wish = json!({ "tenant_id": "mine" });
        let (status, answer) = call(&world, &key, Method::POST, "/client-tokens", wish).await;
        assert_eq!((status, answer["code"].as_str()), expected, "{scopes:?}: {answer}");
    }
}

#[tokio::test]
async fn a_page_of_any_origin_calls_what_client_tokens_can() {
    let world = world().start().await;
    let token = mint(&world, json!({ "tenant_id": "mine" })).await;
    let preflight = async |method: &str, path: &str| {
        let request = browser().request(Method::OPTIONS, format!("{}{path}", world.base));
        let request = request
            .header(header::ORIGIN, "https://app.example")
            .header("access-control-request-method", method);
        request.header("access-control-request-headers", "authorization,content-type").send().await.unwrap()
    };
    for (method, path) in [
        ("GET", "/connect/platforms"),
        ("GET", "/social-accounts?limit=5"),
        ("POST", "/social-networks/x/auth-url"),
        ("POST", "/social-accounts/bluesky/connect"),
        ("GET", "/social-accounts/pending/token"),
        ("POST", "/social-accounts/pending/token/finalize"),
    ] {
        let answer = preflight(method, path).await;
        assert_eq!(answer.status(), StatusCode::NO_CONTENT, "{method} {path}");
        let headers = answer.headers();
        assert_eq!(headers[header::ACCESS_CONTROL_ALLOW_ORIGIN], "*");
        assert_eq!(headers[header::ACCESS_CONTROL_ALLOW_METHODS], method);
        assert_eq!(headers[header::ACCESS_CONTROL_ALLOW_HEADERS], "authorization, content-type");
        assert!(headers.get(header::ACCESS_CONTROL_ALLOW_CREDENTIALS).is_none());
        assert!(headers.contains_key("x-request-id"), "{method} {path}");
    }
    for (method, path) in [("POST", "/client-tokens"), ("GET", "/posts"), ("DELETE", "/social-accounts/7")] {
        let answer = preflight(method, path).await;
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
        assert!(answer.headers().get(header::ACCESS_CONTROL_ALLOW_ORIGIN).is_none(), "{method} {path}");
    }
    // Also an error can be read.
    for (key, status) in [(text(&token), 200), ("ct_test_unknown", 401)] {
        let request = browser().get(format!("{}/social-accounts", world.base)).bearer_auth(key);
        let answer = request.header(header::ORIGIN, "https://app.example").send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status);
        assert_eq!(answer.headers()[header::ACCESS_CONTROL_ALLOW_ORIGIN], "*");
    }
}
