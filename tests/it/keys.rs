//! API keys: creation, scopes, rotation, expiry and revocation.

use crate::world;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{Mode, OrgId, Owner, scope::Scope};
use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use store::people::{keys, organizations};
use tests::{World, if_right, now, wait_until};

/// Calls the API with `key`.
async fn call(world: &World, key: &str, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
    let request = world.http.request(method, format!("{}{path}", world.base)).bearer_auth(key);
    let request = match body {
        Some(body) => request.json(&body),
        None => request,
    };
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn make(world: &World, body: Value) -> Value {
    let (status, key) = world.call(Method::POST, "/api-keys", Some(&body)).await;
    assert_eq!(status, StatusCode::CREATED, "{key}");
    key
}

async fn stored(world: &World, owner: Owner, scopes: &[Scope]) -> (String, String) {
    let new = keys::NewKey { owner, name: "stored".into(), scopes: scopes.to_vec(), expires_at: None };
    let (key, text) = keys::create(&world.db, new, now()).await.unwrap();
    (key.id.to_string(), text)
}

/// Returns whether a key is accepted.
async fn opens(world: &World, key: &str) -> bool {
    let (status, body) = call(world, key, Method::GET, "/posts", None).await;
    assert!(status == 200 || (status, &body["detail"]) == (401, &json!("invalid or expired API key")));
    status == 200
}

fn text(key: &Value) -> &str {
    key["key"].as_str().unwrap()
}

fn id(key: &Value) -> &str {
    key["id"].as_str().unwrap()
}

#[tokio::test]
async fn a_key_is_shown_once_and_works_until_it_is_revoked() {
    let world = world().start().await;
    let made = make(&world, json!({ "name": "CI", "scopes": ["posts:read"], "unknown": 1 })).await;
    let mut members: Vec<_> = made.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    let bound = ["tenant_id", "profile_id", "account_ids"];
    let mut promised =
        vec!["id", "name", "mode", "scopes", "last_four", "expires_at", "last_used_at", "created_at", "key"];
    promised.extend(bound);
    promised.push("created_by");
    promised.sort_unstable();
    assert_eq!(members, promised);
    let random = text(&made).strip_prefix("sk_test_").unwrap();
    assert!(random.len() >= 32 && random.chars().all(|c| c.is_ascii_alphanumeric()), "{random}");
    assert!(text(&made).ends_with(made["last_four"].as_str().unwrap()));
    assert_eq!(made["last_used_at"], Value::Null);
    assert!(opens(&world, text(&made)).await);
    let (status, _) = call(&world, text(&made), Method::POST, "/posts", Some(json!({}))).await;
    assert_eq!(status, 403);

    let listed = world.get("/api-keys").await;
    let newest = &listed["data"][0];
    assert!(newest["last_used_at"].is_string(), "{newest}");
    assert_eq!((newest["id"].clone(), newest.get("key")), (made["id"].clone(), None));
    assert!(!listed.to_string().contains(text(&made)));
    // The other one is the world's own key.
    assert_eq!(listed["data"].as_array().unwrap().len(), 2);

    let path = format!("/api-keys/{}", id(&made));
    let (status, body) = world.call(Method::DELETE, &path, None).await;
    assert_eq!((status, body), (StatusCode::OK, json!({ "id": made["id"], "deleted": true })));
    assert!(!opens(&world, text(&made)).await);
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::NOT_FOUND);
    let rotate = format!("{path}/rotate");
    assert_eq!(world.call(Method::POST, &rotate, None).await.0, StatusCode::NOT_FOUND);
    assert_eq!(world.get("/api-keys").await["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_key_cannot_grant_scopes_it_lacks() {
    let world = world().start().await;
    let (_, narrow) = stored(&world, world.owner, &[Scope::KeysWrite, Scope::PostsRead]).await;
    let (strong, _) = stored(&world, world.owner, &[Scope::All]).await;
    let create = async |scopes: &[&str]| {
        let body = json!({ "name": "a", "scopes": scopes });
        call(&world, &narrow, Method::POST, "/api-keys", Some(body)).await
    };
    for scopes in [&["posts:write"][..], &["*"], &["posts:read", "posts:write"]] {
        let (status, problem) = create(scopes).await;
        assert_eq!((status, &problem["code"]), (403, &json!("forbidden")), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(scopes[scopes.len() - 1]), "{problem}");
    }
    assert_eq!(create(&["posts:read", "keys:write"]).await.0, 201);
    // Rotating a stronger key would return its new text.
    let rotate = format!("/api-keys/{strong}/rotate");
    let (status, problem) = call(&world, &narrow, Method::POST, &rotate, None).await;
    assert_eq!((status, &problem["code"]), (403, &json!("forbidden")), "{problem}");
    // Revoking it would lock the organization out.
    let (status, problem) = call(&world, &narrow, Method::DELETE, &format!("/api-keys/{strong}"), None).await;
    assert_eq!((status, &problem["code"]), (403, &json!("forbidden")), "{problem}");
    // All scopes listed one by one are not `*`.
    let each: Vec<_> = Scope::ALL.iter().copied().filter(|scope| *scope != Scope::All).collect();
    let (_, each) = stored(&world, world.owner, &each).await;
    let body = json!({ "name": "a", "scopes": ["*"] });
    assert_eq!(call(&world, &each, Method::POST, "/api-keys", Some(body)).await.0, 403);

    let (_, reader) = stored(&world, world.owner, &[Scope::PostsRead]).await;
    for (method, path) in [
        (Method::GET, "/api-keys".to_owned()),
        (Method::POST, "/api-keys".to_owned()),
        (Method::DELETE, format!("/api-keys/{strong}")),
        (Method::POST, rotate),
    ] {
        let (status, problem) = call(&world, &reader, method, &path, None).await;
        assert_eq!((status, &problem["code"]), (403, &json!("insufficient_scope")));
        assert!(problem["detail"].as_str().unwrap().contains("keys:write"), "{problem}");
    }
}

#[tokio::test]
async fn live_and_test_keys_are_separate() {
    let world = world().start().await;
    let live_owner = Owner { mode: Mode::Live, ..world.owner };
    let (live_id, live) = stored(&world, live_owner, &[Scope::All]).await;
    let body = json!({ "name": "a", "scopes": ["posts:read"], "mode": "live" });
    let (status, problem) = world.call(Method::POST, "/api-keys", Some(&body)).await;
    assert_eq!((status.as_u16(), &problem["code"]), (403, &json!("forbidden")), "{problem}");
    let body = json!({ "name": "a", "scopes": ["posts:read"], "mode": "test" });
    let (status, down) = call(&world, &live, Method::POST, "/api-keys", Some(body)).await;
    assert_eq!((status, &down["mode"]), (201, &json!("test")));
    assert!(text(&down).starts_with("sk_test_"));
    let body = json!({ "name": "a", "scopes": ["posts:read"], "mode": null, "expires_at": null });
    let (status, same) = call(&world, &live, Method::POST, "/api-keys", Some(body)).await;
    assert_eq!((status, &same["mode"]), (201, &json!("live")));
    assert!(text(&same).starts_with("sk_live_") && opens(&world, text(&same)).await);

    let elsewhere = organizations::create(&world.db, "Elsewhere").await.unwrap();
    let (foreign_id, foreign) = stored(&world, Owner { org: elsewhere, ..world.owner }, &[Scope::All]).await;
    for other in [&live_id, &foreign_id, "7", "%00", &uuid::Uuid::now_v7().to_string()] {
        for (method, path) in [
            (Method::DELETE, format!("/api-keys/{other}")),
            (Method::POST, format!("/api-keys/{other}/rotate")),
        ] {
            let (status, problem) = world.call(method, &path, None).await;
            assert_eq!((status.as_u16(), &problem["code"]), (404, &json!("not_found")), "{path}");
        }
    }
    assert!(opens(&world, &live).await && opens(&world, &foreign).await);
    let listed = world.get("/api-keys").await.to_string();
    assert!(!listed.contains(&live_id) && !listed.contains(&foreign_id) && listed.contains(id(&down)));
}

#[tokio::test]
async fn an_invalid_key_request_names_the_field() {
    let world = world().start().await;
    let soon = (Utc::now() - TimeDelta::seconds(1)).to_rfc3339();
    let every: Vec<_> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    for (body, path, code) in [
        (json!({ "scopes": ["*"] }), json!(["name"]), "invalid_type"),
        (json!({ "name": null, "scopes": ["*"] }), json!(["name"]), "invalid_type"),
        (json!({ "name": 7, "scopes": ["*"] }), json!(["name"]), "invalid_type"),
        (json!({ "name": "", "scopes": ["*"] }), json!(["name"]), "too_small"),
        (json!({ "name": "ä".repeat(101), "scopes": ["*"] }), json!(["name"]), "too_big"),
        (json!({ "name": "a\u{0}", "scopes": ["*"] }), json!(["name"]), "custom"),
        (json!({ "name": "a" }), json!(["scopes"]), "invalid_type"),
        (json!({ "name": "a", "scopes": null }), json!(["scopes"]), "invalid_type"),
        (json!({ "name": "a", "scopes": "*" }), json!(["scopes"]), "invalid_type"),
        (json!({ "name": "a", "scopes": [] }), json!(["scopes"]), "too_small"),
        (json!({ "name": "a", "scopes": [null] }), json!(["scopes", 0]), "invalid_type"),
        (json!({ "name": "a", "scopes": ["posts:all"] }), json!(["scopes", 0]), "invalid_enum_value"),
        (json!({ "name": "a", "scopes": ["*", "*"] }), json!(["scopes", 1]), "custom"),
        (json!({ "name": "a", "scopes": ["*"], "mode": "prod" }), json!(["mode"]), "invalid_enum_value"),
        (json!({ "name": "a", "scopes": ["*"], "expires_at": 1 }), json!(["expires_at"]), "invalid_type"),
        (
            json!({ "name": "a", "scopes": ["*"], "expires_at": "2099-01-01" }),
            json!(["expires_at"]),
            "invalid_string",
        ),
        (json!({ "name": "a", "scopes": ["*"], "expires_at": soon }), json!(["expires_at"]), "custom"),
    ] {
        let (status, problem) = world.call(Method::POST, "/api-keys", Some(&body)).await;
        assert_eq!(
            (status.as_u16(), &problem["code"]),
            (400, &json!("invalid_request")),
            "{body}: {problem}"
        );
        let reported: Vec<_> = problem["errors"].as_array().unwrap().iter().collect();
        assert_eq!(reported.len(), 1, "{body}: {problem}");
        assert_eq!((&reported[0]["path"], &reported[0]["code"]), (&path, &json!(code)), "{body}");
    }
    assert_eq!(world.get("/api-keys").await["data"].as_array().unwrap().len(), 1);
    let most = json!({ "name": "ä".repeat(100), "scopes": every, "expires_at": "9999-12-31T23:59:59.999Z" });
    let made = make(&world, most).await;
    assert_eq!(
        (&made["name"], made["scopes"].as_array().unwrap().len()),
        (&json!("ä".repeat(100)), every.len())
    );
    assert_eq!(made["expires_at"], "9999-12-31T23:59:59.999Z");
}

#[tokio::test]
async fn a_rotated_key_works_until_its_grace_period_ends() {
    let world = world().start().await;
    let body = json!({ "name": "CI", "scopes": ["posts:read"], "expires_at": "2099-01-01T00:00:00Z" });
    let first = make(&world, body).await;
    let rotate = async |key: &Value, body: Option<Value>| {
        let path = format!("/api-keys/{}/rotate", id(key));
        let (status, body) = world.call(Method::POST, &path, body.as_ref()).await;
        (status.as_u16(), body)
    };
    for (body, code) in [
        (json!({ "grace_seconds": -1 }), "too_small"),
        (json!({ "grace_seconds": 86_401 }), "too_big"),
        (json!({ "grace_seconds": 99_999_999_999_u64 }), "too_big"),
        (json!({ "grace_seconds": 1e300 }), "invalid_type"),
        (json!({ "grace_seconds": 1.5 }), "invalid_type"),
        (json!({ "grace_seconds": "60" }), "invalid_type"),
        (json!([]), "invalid_type"),
    ] {
        let (status, problem) = rotate(&first, Some(body.clone())).await;
        assert_eq!((status, &problem["errors"][0]["code"]), (400, &json!(code)), "{body}: {problem}");
    }

    let (status, second) = rotate(&first, Some(json!({ "grace_seconds": 86_400 }))).await;
    assert_eq!(status, 201, "{second}");
    for member in ["name", "scopes", "mode", "expires_at"] {
        assert_eq!(second[member], first[member], "{member}");
    }
    assert!(second["id"] != first["id"] && text(&second) != text(&first));
    assert!(opens(&world, text(&first)).await && opens(&world, text(&second)).await);
    let listed = world.get("/api-keys").await;
    let old = listed["data"].as_array().unwrap().iter().find(|key| key["id"] == first["id"]).unwrap();
    assert!(old["expires_at"].as_str() < first["expires_at"].as_str(), "the old key expires: {old}");
    let (status, problem) = rotate(&first, None).await;
    assert_eq!((status, &problem["code"]), (409, &json!("conflict")));
    // The old key can be revoked within its grace period.
    assert_eq!(
        world.call(Method::DELETE, &format!("/api-keys/{}", id(&first)), None).await.0,
        StatusCode::OK
    );
    assert!(!opens(&world, text(&first)).await);

    // The old key expires by itself, at its `expires_at`.
    let (status, brief) = rotate(&second, Some(json!({ "grace_seconds": 2 }))).await;
    assert_eq!(status, 201, "{brief}");
    let is_open = opens(&world, text(&second)).await;
    let listed = world.get("/api-keys").await;
    let old = listed["data"].as_array().unwrap().iter().find(|key| key["id"] == second["id"]).unwrap();
    let end: DateTime<Utc> = old["expires_at"].as_str().unwrap().parse().unwrap();
    assert!(is_open || Utc::now() >= end, "the key works until it expires");
    let ended = async || if_right(opens(&world, text(&second)).await, |is_open| !is_open);
    wait_until("the end of the grace period", ended).await;
    assert!(Utc::now() >= end && opens(&world, text(&brief)).await);

    // Without a grace period the old key expires at once; of concurrent rotations one succeeds.
    let (status, third) = rotate(&brief, None).await;
    assert_eq!(status, 201, "{third}");
    assert!(!opens(&world, text(&brief)).await && opens(&world, text(&third)).await);
    let answers = join_all((0..8).map(|_| rotate(&third, Some(json!({ "grace_seconds": null }))))).await;
    let made: Vec<_> = answers.iter().filter(|(status, _)| *status == 201).collect();
    assert_eq!(made.len(), 1, "{answers:?}");
    assert!(answers.iter().all(|(status, _)| [201, 404, 409].contains(status)), "{answers:?}");
    assert!(!opens(&world, text(&third)).await && opens(&world, text(&made[0].1)).await);
}

#[tokio::test]
async fn org_create_prints_an_organization_and_a_key_of_each_mode() {
    let world = world().start().await;
    let created = world.command(&["org", "create", "Acme"]).await;
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    let printed = String::from_utf8(created.stdout).unwrap();
    let value = |name: &str| printed.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
    let org: OrgId = value("organization").parse().unwrap();
    let known = organizations::list(&world.db).await.unwrap();
    assert!(known.iter().any(|known| known.id == org && known.name == "Acme"), "{printed}");
    for (name, mode) in [("live key", "live"), ("test key", "test")] {
        let (status, listed) = call(&world, value(name), Method::GET, "/api-keys", None).await;
        let only = &listed["data"][0];
        assert_eq!((status, &only["mode"], &only["scopes"]), (200, &json!(mode), &json!(["*"])), "{listed}");
        assert!(value(name).starts_with(&format!("sk_{mode}_")), "{printed}");
    }
}

#[tokio::test]
async fn an_expired_key_is_rejected_and_still_listed() {
    let world = world().start().await;
    let scopes = vec![Scope::All];
    let (then, over) = (now() - TimeDelta::hours(2), now() - TimeDelta::hours(1));
    let new = keys::NewKey { owner: world.owner, name: "old".into(), scopes, expires_at: Some(over) };
    let (key, text) = keys::create(&world.db, new, then).await.unwrap();
    assert!(!opens(&world, &text).await);
    let listed = world.get("/api-keys").await;
    // Newest first.
    assert_eq!(listed["data"][1]["id"], json!(key.id));
    let path = format!("/api-keys/{}/rotate", key.id);
    let (status, problem) = world.call(Method::POST, &path, None).await;
    assert_eq!((status.as_u16(), &problem["code"]), (409, &json!("conflict")));
    let (status, _) = world.call(Method::DELETE, &format!("/api-keys/{}", key.id), None).await;
    assert_eq!(status, StatusCode::OK);
}
