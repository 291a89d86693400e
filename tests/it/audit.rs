//! The audit trail: each change that concerns an organization's security leaves an entry, in its transaction.

use crate::{
    WHOLE,
    api::{fail, request},
    browser::Browser,
    database, people, world,
};
use domain::{Mode, Owner, scope::Scope};
use reqwest::Method;
use serde_json::{Value, json};
use std::{collections::HashSet, path::Path, sync::Mutex};
use store::{
    page::Request,
    people::{
        audit::{self, Action},
        keys, organizations,
    },
};
use tests::{
    World,
    login::{BACK, arrive, decide, joined, location, reported},
    now,
};

/// Makes a call that succeeds; returns the body and the request's id.
async fn made(world: &World, method: Method, path: &str, body: Value) -> (Value, String) {
    let call = world.http.request(method, format!("{}{path}", world.base)).bearer_auth(&world.key);
    let response = call.json(&body).send().await.unwrap();
    let request = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    let status = response.status();
    let body: Value = response.json().await.unwrap();
    assert!(status.is_success(), "{path}: {status} {body}");
    (body, request)
}

/// Returns the newest entry.
async fn newest(world: &World) -> Value {
    world.get("/account/audit?limit=1").await["data"][0].clone()
}

fn id(resource: &Value) -> String {
    resource["id"].as_str().unwrap().to_owned()
}

/// The operations that change who may do what, each with its action. A path has no id here.
const RECORDED: [(&str, &str, Action); 27] = [
    ("POST", "/api-keys", Action::KeyCreated),
    ("POST", "/api-keys/{id}/rotate", Action::KeyRotated),
    ("DELETE", "/api-keys/{id}", Action::KeyRevoked),
    ("POST", "/client-tokens", Action::ClientTokenCreated),
    ("DELETE", "/client-tokens/{id}", Action::ClientTokenRevoked),
    ("PUT", "/connect/branding", Action::BrandingSet),
    ("POST", "/profiles", Action::ProfileCreated),
    ("PATCH", "/profiles/{id}", Action::ProfileUpdated),
    ("DELETE", "/profiles/{id}", Action::ProfileDeleted),
    ("POST", "/social-accounts/bluesky/connect", Action::AccountConnected),
    ("POST", "/social-accounts/bluesky/connect", Action::AccountReconnected),
    ("POST", "/social-accounts/pending/{token}/finalize", Action::AccountConnected),
    ("PATCH", "/social-accounts/{id}", Action::AccountMoved),
    ("PATCH", "/social-accounts/{id}", Action::AccountGrouped),
    ("DELETE", "/social-accounts/{id}", Action::AccountDisconnected),
    ("POST", "/social-networks", Action::NetworkCreated),
    ("PATCH", "/social-networks/{id}", Action::NetworkUpdated),
    ("DELETE", "/social-networks/{id}", Action::NetworkDeleted),
    ("POST", "/team", Action::MemberInvited),
    ("PATCH", "/team/{id}", Action::MemberRoleChanged),
    ("DELETE", "/team/{id}", Action::MemberRemoved),
    ("POST", "/webhooks", Action::WebhookCreated),
    ("PATCH", "/webhooks/{id}", Action::WebhookUpdated),
    ("DELETE", "/webhooks/{id}", Action::WebhookDeleted),
    // On the dashboard only.
    ("POST", "/webhooks/{id}/reveal", Action::SecretRevealed),
    ("POST", "/webhooks/{id}/prepare", Action::SecretPrepared),
    ("POST", "/webhooks/{id}/rotate", Action::SecretRotated),
];

/// The operations that change something else: content, its files and times, and what is fetched or sent again.
const OTHERS: [&str; 9] = [
    "/media",
    "/posts",
    "/scheduling",
    "/social-accounts/{id}/imports",
    "/social-accounts/{id}/retry-failed",
    // Its end is recorded: the account that is connected.
    "/social-networks/{platform}/auth-url",
    "/webhooks/{id}/deliveries",
    "/webhooks/{id}/replay",
    "/webhooks/{id}/test",
];

#[tokio::test]
async fn each_operation_that_changes_access_has_its_action() {
    let world = world().start().await;
    let (_, operations) = crate::attacks::operations(&world).await;
    let writes = operations.iter().filter(|(method, _, _)| *method != Method::GET);
    let unknown: Vec<_> = writes
        .filter(|(method, path, _)| {
            let is_recorded =
                RECORDED.iter().any(|(verb, known, _)| method.as_str() == *verb && path == known);
            let is_other = OTHERS.iter().any(|start| path.starts_with(start));
            is_recorded == is_other
        })
        .map(|(method, path, _)| format!("{method} {path}"))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[tokio::test]
async fn each_change_leaves_an_entry_that_tells_who_from_where_and_what() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let seen = Mutex::new(HashSet::new());
    let last_four = &world.key[world.key.len() - 4..];
    let tell = async |method: Method, path: &str, body: Value| {
        let operation = (method.to_string(), without_ids(path));
        (operation, made(&world, method, path, body).await)
    };
    let check = async |(operation, (body, request)): (_, (Value, String)), action: Action, details: Value| {
        let (method, path): (String, String) = operation;
        seen.lock().unwrap().insert((method, path, action.as_str()));
        let entry = newest(&world).await;
        let object = body["id"].as_str().map_or(world.owner.org.to_string(), str::to_owned);
        let expected = json!({
            "actor": "api_key", "last_four": last_four, "address": "127.0.0.1", "request_id": request,
            "action": action.as_str(), "object_id": object,
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&entry[name], value, "{name} of {entry}");
        }
        for (name, value) in details.as_object().unwrap() {
            assert_eq!(&entry["details"][name], value, "{name} of {entry}");
        }
        body
    };

    let body = json!({ "name": "CI", "scopes": ["posts:read"] });
    let details = json!({ "name": "CI", "scopes": ["posts:read"] });
    let key = check(tell(Method::POST, "/api-keys", body).await, Action::KeyCreated, details).await;
    let rotation = tell(Method::POST, &format!("/api-keys/{}/rotate", id(&key)), json!({})).await;
    let key = check(rotation, Action::KeyRotated, json!({ "replaces": id(&key) })).await;
    let revoked = tell(Method::DELETE, &format!("/api-keys/{}", id(&key)), json!({})).await;
    check(revoked, Action::KeyRevoked, json!({})).await;

    let token = tell(Method::POST, "/client-tokens", json!({ "tenant_id": "shop" })).await;
    let token = check(token, Action::ClientTokenCreated, json!({})).await;
    let revoked = tell(Method::DELETE, &format!("/client-tokens/{}", id(&token)), json!({})).await;
    check(revoked, Action::ClientTokenRevoked, json!({})).await;

    let body = json!({ "email": "eve@example.com", "role": "viewer" });
    let details = json!({ "email": "eve@example.com", "role": "viewer" });
    let eve = check(tell(Method::POST, "/team", body).await, Action::MemberInvited, details).await;
    let removed = tell(Method::DELETE, &format!("/team/{}", id(&eve)), json!({})).await;
    check(removed, Action::MemberRemoved, json!({ "email": "eve@example.com" })).await;

    let secret_url = "https://hooks.example.com/secret-in-path";
    let body = json!({ "url": secret_url, "events": ["*"] });
    let webhook = tell(Method::POST, "/webhooks", body).await;
    let webhook = check(webhook, Action::WebhookCreated, json!({ "events": ["*"] })).await;
    let path = format!("/webhooks/{}", id(&webhook));
    let edited = tell(Method::PATCH, &path, json!({ "url": secret_url, "is_active": false })).await;
    let details = json!({ "changed": ["url", "is_active"], "is_active": false });
    check(edited, Action::WebhookUpdated, details).await;
    check(tell(Method::DELETE, &path, json!({})).await, Action::WebhookDeleted, json!({})).await;

    let body = json!({ "platform": "x", "client_id": "app", "client_secret": "s3cret-of-the-app" });
    let details = json!({ "platform": "x", "changed": ["client_id", "client_secret"] });
    let network =
        check(tell(Method::POST, "/social-networks", body).await, Action::NetworkCreated, details).await;
    let path = format!("/social-networks/{}", id(&network));
    let edited = tell(Method::PATCH, &path, json!({ "is_enabled": false })).await;
    check(edited, Action::NetworkUpdated, json!({ "changed": ["is_enabled"] })).await;
    let deleted = tell(Method::DELETE, &path, json!({})).await;
    check(deleted, Action::NetworkDeleted, json!({ "platform": "x" })).await;

    let profile = json!({ "name": "Brand", "social_account_ids": [account] });
    let details = json!({ "name": "Brand", "joined": [account], "left": [] });
    let profile =
        check(tell(Method::POST, "/profiles", profile).await, Action::ProfileCreated, details).await;
    let path = format!("/social-accounts/{account}");
    let moved = tell(Method::PATCH, &path, json!({ "profile_id": null })).await;
    check(moved, Action::AccountGrouped, json!({ "from": id(&profile), "to": null })).await;
    let moved = tell(Method::PATCH, &path, json!({ "tenant_id": "shop" })).await;
    check(moved, Action::AccountMoved, json!({ "from": null, "to": "shop", "keys": [] })).await;
    let path = format!("/profiles/{}", id(&profile));
    let edited = tell(Method::PATCH, &path, json!({ "social_account_ids": [account] })).await;
    check(edited, Action::ProfileUpdated, json!({ "joined": [account], "left": [] })).await;
    let deleted = tell(Method::DELETE, &path, json!({})).await;
    check(deleted, Action::ProfileDeleted, json!({ "name": "Brand" })).await;

    let password = &world.account("bluesky", "ada.bsky.social").await.grant.extra["app_password"];
    let login = json!({ "identifier": "ada.bsky.social", "app_password": password, "tenant_id": "shop" });
    let details = json!({ "platform": "bluesky", "username": "ada.bsky.social", "tenant_id": "shop" });
    for action in [Action::AccountConnected, Action::AccountReconnected] {
        let connected = tell(Method::POST, "/social-accounts/bluesky/connect", login.clone()).await;
        check(connected, action, details.clone()).await;
    }
    assert_eq!(newest(&world).await["action"], "social_account.reconnected");
    // A login that somebody else was sent to: who finished it, and the key that it was begun with.
    let token = json!({ "tenant_id": "shop", "redirect_uri": BACK });
    let (client, _) = made(&world, Method::POST, "/client-tokens", token).await;
    let begin = world.http.post(format!("{}/social-networks/x/auth-url", world.base));
    let begin = begin.bearer_auth(client["token"].as_str().unwrap()).json(&json!({ "redirect_uri": BACK }));
    let begun: Value = begin.send().await.unwrap().json().await.unwrap();
    let asked = begun["auth_url"].as_str().unwrap().parse().unwrap();
    let end = reported(&location(&arrive(&decide(&asked, "bob", "allow").await.unwrap()).await));
    let path = format!("/social-accounts/pending/{}/finalize", end["token"]);
    let offered = world.get(path.trim_end_matches("/finalize")).await;
    let choice = json!({ "page_ids": [offered["data"][0]["id"]] });
    let call =
        world.http.post(format!("{}{path}", world.base)).bearer_auth(client["token"].as_str().unwrap());
    assert_eq!(call.json(&choice).send().await.unwrap().status().as_u16(), 201);
    let entry = newest(&world).await;
    assert_eq!(
        (&entry["action"], &entry["key_id"], &entry["details"]["begun_with"], &entry["details"]["username"]),
        (&json!("social_account.connected"), &client["id"], &client["id"], &json!("bob")),
        "{entry}"
    );
    let finalized = ("POST".to_owned(), "/social-accounts/pending/{token}/finalize".to_owned());
    seen.lock().unwrap().insert((finalized.0, finalized.1, Action::AccountConnected.as_str()));
    let callback = joined(&world, "x", "cleo", json!({})).await;
    let entry = newest(&world).await;
    assert_eq!(
        (&entry["action"], &entry["object_id"], &entry["actor"], &entry["address"]),
        (&json!("social_account.connected"), &json!(callback), &json!("login"), &json!("127.0.0.1")),
        "{entry}"
    );
    assert!(entry["details"]["begun_with"].is_string(), "{entry}");

    let gone = tell(Method::DELETE, &format!("/social-accounts/{account}"), json!({})).await;
    check(gone, Action::AccountDisconnected, json!({ "platform": "x", "username": "ada" })).await;
    let branded = tell(Method::PUT, "/connect/branding", json!({ "name": "Acme" })).await;
    check(branded, Action::BrandingSet, json!({})).await;

    // In the dashboard, whose other actions call the same functions.
    let mut browser = Browser::signed_in(&world).await;
    let entry = newest(&world).await;
    assert_eq!(entry["action"], "session.started");
    let key = entry["object_id"].clone();
    let body = json!({ "url": secret_url, "events": ["*"] });
    let (webhook, _) = made(&world, Method::POST, "/webhooks", body).await;
    for (action, path) in [
        (Action::SecretRevealed, format!("/webhooks/{}/reveal", id(&webhook))),
        (Action::SecretPrepared, format!("/webhooks/{}/prepare", id(&webhook))),
        (Action::SecretRotated, format!("/webhooks/{}/rotate", id(&webhook))),
        (Action::SessionEnded, "/sign-out".to_owned()),
    ] {
        browser.post(&path, &[]).await;
        seen.lock().unwrap().insert(("POST".to_owned(), without_ids(&path), action.as_str()));
        let entry = newest(&world).await;
        let found = json!([entry["action"], entry["actor"], entry["key_id"], entry["address"]]);
        assert_eq!(found, json!([action.as_str(), "session", key, "127.0.0.1"]));
    }
    let body = json!({ "email": "bob@example.com", "role": "owner" });
    let (bob, _) = made(&world, Method::POST, "/team", body).await;
    let (bobs, _) = people::accept(&world, bob["invite_url"].as_str().unwrap(), "Bob").await;
    // Newest first: joined, added a first passkey, signed in.
    let entries = world.get("/account/audit?limit=3").await;
    let found: Vec<_> = entries["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["action"].as_str().unwrap(), &one["actor"]))
        .collect();
    let by = json!("invitation");
    assert_eq!(found, [("session.started", &by), ("passkey.added", &by), ("member.joined", &by)]);
    assert_eq!(entries["data"][2]["object_id"], bob["id"]);
    bobs.post("/keys", &[("name", "of Bob"), ("scope", "posts:read")]).await;
    let entry = newest(&world).await;
    let found = json!([entry["actor"], entry["member"], entry["member_id"], entry["key_id"]]);
    assert_eq!(found, json!(["session", "bob@example.com", bob["id"], null]), "{entry}");
    let (ada, _) =
        made(&world, Method::POST, "/team", json!({ "email": "ada@example.com", "role": "owner" })).await;
    let path = format!("/team/{}", id(&ada));
    let changed = tell(Method::PATCH, &path, json!({ "role": "viewer" })).await;
    check(changed, Action::MemberRoleChanged, json!({ "from": "owner", "role": "viewer" })).await;
    browser = Browser::signed_in(&world).await;

    let trail = world.get("/account/audit?limit=100").await.to_string();
    for secret in ["secret-in-path", "s3cret-of-the-app", world.key.as_str()] {
        assert!(!trail.contains(secret), "{secret} in {trail}");
    }
    let page = browser.open("/audit").await;
    assert!(page.contains("member.joined") && page.contains(">127.0.0.1</span>"), "{page}");

    let seen = seen.into_inner().unwrap();
    let unseen: Vec<_> = RECORDED
        .iter()
        .filter(|(method, path, action)| {
            !seen.contains(&(method.to_string(), path.to_string(), action.as_str()))
        })
        .collect();
    assert!(unseen.is_empty(), "{unseen:?}");
}

/// A path with `{id}` in place of each id.
fn without_ids(path: &str) -> String {
    let segments = path.split('/').map(|segment| match segment.parse::<uuid::Uuid>() {
        Ok(_) => "{id}",
        Err(_) => segment,
    });
    segments.collect::<Vec<_>>().join("/")
}

/// Operators act in other tests than the one above.
#[test]
fn each_action_is_in_a_test() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("it");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let sources = files.filter(|path| path.extension().is_some_and(|ending| ending == "rs"));
    let sources: String = sources.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let missing = Action::ALL.iter().filter(|action| {
        let (name, variant) = (action.as_str(), format!("Action::{action:?}"));
        // The name is not a part of another one, as `session.ended` of `sessions.ended`.
        let is_whole = |at: usize| {
            !sources[..at].ends_with(|c: char| c.is_alphanumeric())
                && !sources[at + name.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
        };
        !sources.contains(&format!("{variant},")) && !sources.match_indices(name).any(|(at, _)| is_whole(at))
    });
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[tokio::test]
async fn the_trail_is_of_one_organization_and_mode_and_paginated() {
    let world = world().start().await;
    let (key, sent) =
        made(&world, Method::POST, "/api-keys", json!({ "name": "mine", "scopes": ["team:read"] })).await;
    let body = json!({ "email": "eve@example.com", "role": "viewer" });
    made(&world, Method::POST, "/team", body).await;
    let read = async |key: &str| {
        let call = world.http.get(format!("{}/account/audit?limit=100", world.base)).bearer_auth(key);
        call.send().await.unwrap().text().await.unwrap()
    };
    assert!(read(key["key"].as_str().unwrap()).await.contains(&sent), "team:read suffices");

    let new = |owner| keys::NewKey { owner, name: "k".into(), scopes: vec![Scope::All], expires_at: None };
    let live =
        keys::create(&world.db, new(Owner { mode: Mode::Live, ..world.owner }), now()).await.unwrap().1;
    let seen = read(&live).await;
    assert!(!seen.contains(&sent) && seen.contains("member.invited"), "{seen}");
    let stranger = organizations::create(&world.db, "Stranger").await.unwrap();
    let other = keys::create(&world.db, new(Owner { org: stranger, ..world.owner }), now()).await.unwrap().1;
    let seen: Value = serde_json::from_str(&read(&other).await).unwrap();
    let only = seen["data"].as_array().unwrap();
    assert_eq!((only.len(), &only[0]["actor"]), (1, &json!("operator")), "{seen}");

    let first = world.get("/account/audit?limit=1").await;
    assert_eq!(first["data"][0]["action"], "member.invited");
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = world.get(&format!("/account/audit?limit=1&cursor={cursor}")).await;
    assert_eq!(second["data"][0]["request_id"], sent);
    let count = async |filter: &str| {
        world.get(&format!("/account/audit?limit=100&{filter}")).await["data"].as_array().unwrap().len()
    };
    assert_eq!(count("action=member.invited").await, 1);
    assert_eq!(count(&format!("object_id={}", key["id"].as_str().unwrap())).await, 1);
    assert_eq!(count("action=member.invited&until=2020-01-01").await, 0);
    assert_eq!(count("action=member.invited&since=2020-01-01").await, 1);
    assert_eq!(count(&format!("member_id={}", key["id"].as_str().unwrap())).await, 0);
    fail(request(&world, Method::GET, "/account/audit?action=x"), 400, "invalid_request").await;
    let narrow =
        made(&world, Method::POST, "/api-keys", json!({ "name": "n", "scopes": ["posts:read"] })).await.0;
    let call = world.http.get(format!("{}/account/audit", world.base));
    fail(call.bearer_auth(narrow["key"].as_str().unwrap()), 403, "insufficient_scope").await;
    fail(request(&world, Method::GET, "/account/audit?cursor=x"), 400, "invalid_cursor").await;
}

#[tokio::test]
async fn a_change_that_can_not_be_recorded_is_not_made() {
    let db = database().await;
    let org = organizations::create(&db, "Acme").await.unwrap();
    let owner = Owner { org, mode: Mode::Live };
    let new = || keys::NewKey { owner, name: "first".into(), scopes: vec![Scope::All], expires_at: None };
    let (key, _) = keys::create(&db, new(), now()).await.unwrap();
    sqlx::query("alter table audit_entries add check (at < '2000-01-01') not valid")
        .execute(&db)
        .await
        .unwrap();
    keys::create(&db, new(), now()).await.unwrap_err();
    keys::revoke(&db, owner, key.id, &audit::Actor::OPERATOR, now()).await.unwrap_err();
    let left = keys::list(&db, owner, now(), WHOLE).await.unwrap().items;
    assert_eq!(left.iter().map(|key| (key.id, key.revoked_at)).collect::<Vec<_>>(), [(key.id, None)]);
}

#[tokio::test]
async fn entries_are_kept_for_400_days() {
    let db = database().await;
    let org = organizations::create(&db, "Acme").await.unwrap();
    let owner = Owner { org, mode: Mode::Live };
    for name in ["old", "new"] {
        let new = keys::NewKey { owner, name: name.into(), scopes: vec![Scope::All], expires_at: None };
        keys::create(&db, new, now()).await.unwrap();
    }
    for (name, days) in [("old", 401), ("new", 399)] {
        sqlx::query(
            "update audit_entries set at = now() - make_interval(days => $1) where details ->> 'name' = $2",
        )
        .bind(days)
        .bind(name)
        .execute(&db)
        .await
        .unwrap();
    }
    assert_eq!(audit::prune(&db, 10).await.unwrap(), 1);
    let left = audit::list(&db, owner, audit::Filter::default(), Request { after: None, limit: 10 })
        .await
        .unwrap()
        .items;
    assert_eq!(left.iter().map(|entry| &entry.details["name"]).collect::<Vec<_>>(), ["new"]);
}
