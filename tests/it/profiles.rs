//! Profiles, and the accounts that they group.

use crate::{
    api::{fail, key, request},
    world,
};
use domain::{Mode, Owner, scope::Scope};
use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::HashSet;
use store::people::organizations;
use tests::World;

async fn create(world: &World, body: Value) -> Value {
    let (status, profile) = world.call(Method::POST, "/profiles", Some(&body)).await;
    assert_eq!(status, StatusCode::CREATED, "{profile}");
    profile
}

fn path(profile: &Value) -> String {
    format!("/profiles/{}", profile["id"].as_str().unwrap())
}

async fn patch(world: &World, profile: &Value, body: Value) -> Value {
    let (status, profile) = world.call(Method::PATCH, &path(profile), Some(&body)).await;
    assert_eq!(status, StatusCode::OK, "{profile}");
    profile
}

async fn profile_of(world: &World, account: &str) -> Value {
    world.get(&format!("/social-accounts/{account}")).await["profile_id"].clone()
}

#[tokio::test]
async fn a_profile_is_created_updated_and_deleted() {
    let world = world().start().await;
    let plain = create(&world, json!({ "name": "Plain", "description": null, "timezone": null })).await;
    let expected = json!({
        "id": plain["id"], "name": "Plain", "tenant_id": null, "description": null, "timezone": "UTC",
        "default_config": {}, "social_account_ids": [], "created_at": plain["created_at"],
        "updated_at": plain["created_at"],
    });
    assert_eq!(plain, expected);
    let body = json!({
        "name": "Brand", "tenant_id": "t-1", "description": "A brand", "timezone": "Europe/Berlin",
        "default_config": { "x": { "reply_settings": "following" }, "reddit": null }, "unknown": 7,
    });
    let brand = create(&world, body).await;
    assert_eq!(brand["default_config"], json!({ "x": { "reply_settings": "following" } }));
    assert_eq!(world.get("/profiles").await, json!({ "data": [brand, plain] }));
    assert_eq!(world.get(&path(&brand)).await, brand);

    let changed = patch(&world, &brand, json!({ "name": "Other", "tenant_id": null })).await;
    assert_eq!((&changed["name"], &changed["tenant_id"]), (&json!("Other"), &Value::Null));
    for key in ["description", "timezone", "default_config", "created_at", "social_account_ids"] {
        assert_eq!(changed[key], brand[key], "{key}");
    }
    assert_ne!(changed["updated_at"], brand["updated_at"]);
    let body = json!({ "default_config": {}, "timezone": "UTC", "description": null });
    let changed = patch(&world, &brand, body).await;
    assert_eq!((&changed["default_config"], &changed["timezone"]), (&json!({}), &json!("UTC")));
    assert_eq!((&changed["description"], &changed["name"]), (&Value::Null, &json!("Other")));

    let (status, deleted) = world.call(Method::DELETE, &path(&brand), None).await;
    assert_eq!((status, deleted), (StatusCode::OK, json!({ "id": brand["id"], "deleted": true })));
    for method in [Method::GET, Method::DELETE] {
        fail(request(&world, method, &path(&brand)), 404, "not_found").await;
    }
    fail(request(&world, Method::PATCH, &path(&brand)).json(&json!({})), 404, "not_found").await;
    fail(request(&world, Method::GET, "/profiles/7"), 404, "not_found").await;
    assert_eq!(world.get("/profiles").await, json!({ "data": [plain] }));
}

#[tokio::test]
async fn an_account_is_in_at_most_one_profile_and_lists_filter_by_it() {
    let world = world().start().await;
    let (ada, bob) = (world.connect("x", "ada").await, world.connect("x", "bob").await);
    let one = create(&world, json!({ "name": "One", "social_account_ids": [bob, ada] })).await;
    assert_eq!(one["social_account_ids"], json!([ada, bob]), "the oldest first");
    assert_eq!(profile_of(&world, &ada).await, one["id"]);
    let other = create(&world, json!({ "name": "Other", "social_account_ids": [bob] })).await;
    assert_eq!(world.get(&path(&one)).await["social_account_ids"], json!([ada]));
    assert_eq!(world.get("/profiles").await["data"][0]["social_account_ids"], json!([bob]));

    world.post(json!({ "content": "A", "accounts": [ada], "is_draft": true })).await;
    let both = world.post(json!({ "content": "B", "accounts": [ada, bob], "is_draft": true })).await;
    let listed = async |list: &str, profile: &Value| {
        let found = world.get(&format!("{list}?profile_id={}", profile["id"].as_str().unwrap())).await;
        found["data"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(listed("/social-accounts", &one).await, [json!(ada)]);
    assert_eq!(listed("/social-accounts", &other).await, [json!(bob)]);
    assert_eq!(listed("/posts", &one).await.len(), 2);
    assert_eq!(listed("/posts", &other).await, [both["id"].clone()]);
    assert_eq!(listed("/posts", &json!({ "id": uuid::Uuid::now_v7() })).await, [Value::Null; 0]);
    fail(request(&world, Method::GET, "/posts?profile_id=7"), 400, "invalid_request").await;

    assert_eq!(patch(&world, &one, json!({ "name": "Still" })).await["social_account_ids"], json!([ada]));
    let swapped = patch(&world, &one, json!({ "social_account_ids": [bob] })).await;
    assert_eq!(swapped["social_account_ids"], json!([bob]));
    assert_eq!(profile_of(&world, &ada).await, Value::Null);
    assert_eq!(world.get(&path(&other)).await["social_account_ids"], json!([]));

    // Concurrent updates that move accounts wait for each other, and each account ends in one profile.
    let calls = (0..12).map(|index| {
        let profile = if index % 2 == 0 { &one } else { &other };
        let accounts = if index % 4 < 2 { json!([ada, bob]) } else { json!([bob]) };
        patch(&world, profile, json!({ "social_account_ids": accounts }))
    });
    join_all(calls).await;
    let data = world.get("/profiles").await["data"].clone();
    let members: Vec<_> = data
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|one| one["social_account_ids"].as_array().unwrap())
        .collect();
    assert!(members.iter().filter(|id| ***id == bob).count() == 1, "{data}");

    patch(&world, &one, json!({ "social_account_ids": [ada, bob] })).await;
    world.call(Method::DELETE, &path(&one), None).await;
    assert_eq!(profile_of(&world, &ada).await, Value::Null, "accounts are kept");
    assert_eq!(world.get("/social-accounts").await["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn posts_inherit_the_settings_of_their_accounts_profiles() {
    let world = world().start().await;
    let (ada, bob) = (world.connect("x", "ada").await, world.connect("x", "bob").await);
    world.connect("bluesky", "eve.bsky.social").await;
    let config = json!({ "x": { "reply_settings": "following", "for": "one" }, "tiktok": { "a": 1 } });
    let one =
        create(&world, json!({ "name": "One", "default_config": config, "social_account_ids": [ada] })).await;
    let config = async |accounts: Value, own: Value| {
        let body = json!({ "content": "a", "accounts": accounts, "is_draft": true, "config": own });
        world.post(body).await["default_config"].clone()
    };
    let ours = json!({ "x": { "reply_settings": "following", "for": "one" } });
    assert_eq!(config(json!(["ada"]), Value::Null).await, ours);
    assert_eq!(config(json!(["ada", "eve.bsky.social"]), json!({})).await, ours);
    assert_eq!(
        config(json!(["ada"]), json!({ "x": { "reply_settings": "verified" }, "reddit": {} })).await,
        json!({ "x": { "reply_settings": "verified", "for": "one" }, "reddit": {} })
    );
    assert_eq!(config(json!(["bob"]), Value::Null).await, json!({}));
    let single = json!({ "x": { "accounts": { ada.as_str(): ours["x"] } } });
    assert_eq!(config(json!(["ada", "bob"]), Value::Null).await, single, "bob has no profile");
    let own = json!({ "x": { "accounts": { "ada": { "reply_settings": "verified" } } } });
    assert_eq!(
        config(json!(["ada", "bob"]), own).await,
        json!({ "x": { "accounts": { ada.as_str(): { "reply_settings": "verified", "for": "one" } } } })
    );
    let other = json!({ "x": { "reply_settings": "following", "for": "other" } });
    create(&world, json!({ "name": "Other", "default_config": other, "social_account_ids": [bob] })).await;
    let single = json!({ ada.as_str(): { "for": "one" }, bob.as_str(): { "for": "other" } });
    let agreed = json!({ "x": { "reply_settings": "following", "accounts": single } });
    assert_eq!(config(json!(["ada", "bob"]), Value::Null).await, agreed);

    // Platform rules also apply to the profile's settings, and a post keeps the settings it was created with.
    let post = world.post(json!({ "content": "a", "accounts": ["ada"], "is_draft": true })).await;
    patch(&world, &one, json!({ "default_config": { "x": { "quote_tweet_id": "1" } } })).await;
    let poll = json!({ "x": { "poll": { "options": ["a", "b"], "duration_minutes": 60 } } });
    let body = json!({ "content": "a", "accounts": ["ada"], "config": poll });
    fail(request(&world, Method::POST, "/posts").json(&body), 422, "content_rejected").await;
    let path = format!("/posts/{}", post["id"].as_str().unwrap());
    let (_, kept) = world.call(Method::PATCH, &path, Some(&json!({ "content": "b" }))).await;
    assert_eq!(kept["default_config"], ours);
    let (_, reset) = world.call(Method::PATCH, &path, Some(&json!({ "config": {} }))).await;
    assert_eq!(reset["default_config"], json!({ "x": { "quote_tweet_id": "1" } }), "as on creation");

    // Settings that no post could have are refused immediately.
    let wrong = json!({ "default_config": { "x": { "reply_settings": "nobody" }, "reddit": null } });
    let again =
        request(&world, Method::PATCH, &format!("/profiles/{}", one["id"].as_str().unwrap())).json(&wrong);
    let (_, problem) = fail(again, 422, "content_rejected").await;
    assert_eq!(problem["errors"][0]["path"], json!(["default_config", "x", "reply_settings"]), "{problem}");
    let named = json!({ "name": "Two", "default_config": wrong["default_config"] });
    fail(request(&world, Method::POST, "/profiles").json(&named), 422, "content_rejected").await;
}

#[tokio::test]
async fn profiles_with_more_settings_than_a_post_can_have_are_refused_together() {
    let world = world().start().await;
    let mut accounts = Vec::new();
    for number in 0..36 {
        let account = world.connect("x", &format!("ada{number}")).await;
        let config = json!({ "x": { "made_up": "a".repeat(60_000) } });
        create(&world, json!({ "name": "One", "default_config": config, "social_account_ids": [account] }))
            .await;
        accounts.push(account);
    }
    let body = |count: usize| json!({ "content": "a", "accounts": accounts[..count], "is_draft": true });
    // Two MiB are 34 times this setting.
    let post = world.post(body(34)).await;
    assert_eq!(post["default_config"]["x"]["made_up"].as_str().map(str::len), Some(60_000), "one for all");
    for path in ["/posts", "/posts/validate"] {
        let (_, problem) =
            fail(request(&world, Method::POST, path).json(&body(36)), 422, "unprocessable").await;
        assert_eq!(problem["errors"][0]["path"], json!(["accounts"]), "{problem}");
    }
    let path = format!("/posts/{}", post["id"].as_str().unwrap());
    let edit = json!({ "accounts": accounts, "config": {} });
    fail(request(&world, Method::PATCH, &path).json(&edit), 422, "unprocessable").await;

    // A page of profiles is as small, and the next one goes on.
    for limit in ["", "limit=100&"] {
        let first = world.get(&format!("/profiles?{limit}")).await;
        let next = first["next_cursor"].as_str().unwrap();
        let rest = world.get(&format!("/profiles?{limit}cursor={next}")).await;
        assert_eq!(rest["next_cursor"], Value::Null, "{limit}");
        let pages = [&first, &rest].map(|page| page["data"].as_array().unwrap());
        assert_eq!(pages.map(Vec::len), [35, 1], "{limit}");
        let ids: HashSet<_> = pages.into_iter().flatten().map(|one| one["id"].as_str()).collect();
        assert_eq!(ids.len(), 36, "{limit}");
    }
}

#[tokio::test]
async fn invalid_fields_of_a_profile_are_reported() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let profile = create(&world, json!({ "name": "One", "social_account_ids": [ada] })).await;
    let both = [
        (json!({ "name": "" }), json!([[["name"], "too_small"]])),
        (json!({ "name": "a".repeat(101) }), json!([[["name"], "too_big"]])),
        (json!({ "name": 7 }), json!([[["name"], "invalid_type"]])),
        (json!({ "name": null }), json!([[["name"], "invalid_type"]])),
        (json!({ "name": "a\u{0}" }), json!([[["name"], "custom"]])),
        (json!({ "name": "a", "tenant_id": "" }), json!([[["tenant_id"], "too_small"]])),
        (json!({ "name": "a", "description": "a".repeat(1001) }), json!([[["description"], "too_big"]])),
        (json!({ "name": "a", "timezone": "Mars/Olympus" }), json!([[["timezone"], "custom"]])),
        (json!({ "name": "a", "timezone": "" }), json!([[["timezone"], "custom"]])),
        (json!({ "name": "a", "timezone": 1 }), json!([[["timezone"], "invalid_type"]])),
        (json!({ "name": "a", "default_config": [] }), json!([[["default_config"], "invalid_type"]])),
        (
            json!({ "name": "a", "default_config": { "x": { "paid_partnershp": true } } }),
            json!([[["default_config", "x"], "unrecognized_keys"]]),
        ),
        (
            json!({ "name": "a", "default_config": { "twitter": {}, "x": 1 } }),
            json!([[["default_config", "x"], "invalid_type"], [["default_config"], "unrecognized_keys"]]),
        ),
        (
            json!({ "name": "a", "social_account_ids": ada }),
            json!([[["social_account_ids"], "invalid_type"]]),
        ),
        (
            json!({ "name": "a", "social_account_ids": ["ada", 7] }),
            json!([
                [["social_account_ids", 0], "invalid_string"],
                [["social_account_ids", 1], "invalid_type"]
            ]),
        ),
        (
            json!({ "name": "a", "social_account_ids": [ada, ada] }),
            json!([[["social_account_ids", 1], "custom"]]),
        ),
    ];
    for (body, expected) in both {
        for (method, path) in [(Method::POST, "/profiles".to_owned()), (Method::PATCH, path(&profile))] {
            let (_, problem) =
                fail(request(&world, method.clone(), &path).json(&body), 400, "invalid_request").await;
            let reported = problem["errors"].as_array().unwrap().iter();
            let reported: Value = reported.map(|issue| json!([issue["path"], issue["code"]])).collect();
            assert_eq!(reported, expected, "{method} {body}");
        }
    }
    fail(request(&world, Method::POST, "/profiles").json(&json!({})), 400, "invalid_request").await;
    let nulls = json!({ "timezone": null, "default_config": null, "social_account_ids": null });
    let (_, problem) =
        fail(request(&world, Method::PATCH, &path(&profile)).json(&nulls), 400, "invalid_request").await;
    assert_eq!(problem["errors"].as_array().unwrap().len(), 3, "{problem}");

    let stranger = uuid::Uuid::now_v7();
    let body = json!({ "name": "Two", "social_account_ids": [ada, stranger] });
    for (method, path) in [(Method::POST, "/profiles".to_owned()), (Method::PATCH, path(&profile))] {
        let (_, problem) = fail(request(&world, method, &path).json(&body), 422, "account_not_found").await;
        assert_eq!(problem["errors"][0]["path"], json!(["social_account_ids", 1]), "{problem}");
        assert_eq!(problem["errors"].as_array().unwrap().len(), 1);
    }
    assert_eq!(world.get("/profiles").await, json!({ "data": [profile] }), "a refused change has no effect");
}

#[tokio::test]
async fn updating_an_account_changes_only_the_fields_sent() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let path = format!("/social-accounts/{ada}");
    let before = world.get(&path).await;
    let profile = create(&world, json!({ "name": "One" })).await;
    let change = async |body: Value| {
        let (status, account) = world.call(Method::PATCH, &path, Some(&body)).await;
        assert_eq!(status, StatusCode::OK, "{account}");
        account
    };
    let same = change(json!({ "unknown": 1 })).await;
    for key in ["tenant_id", "profile_id", "display_name", "username", "status", "created_at"] {
        assert_eq!(same[key], before[key], "{key}");
    }
    let all = change(json!({ "tenant_id": "t-1", "profile_id": profile["id"], "display_name": "Ada" })).await;
    assert_eq!((&all["tenant_id"], &all["profile_id"]), (&json!("t-1"), &profile["id"]));
    assert_eq!(all["display_name"], "Ada");
    assert_eq!(world.get(&path).await, all);
    assert_eq!(world.get("/social-accounts?tenant_id=t-1").await["data"].as_array().unwrap().len(), 1);
    let none = change(json!({ "tenant_id": null, "profile_id": null })).await;
    assert_eq!((&none["tenant_id"], &none["profile_id"]), (&Value::Null, &Value::Null));
    assert_eq!(none["display_name"], "Ada");

    let send = |body: Value| request(&world, Method::PATCH, &path).json(&body);
    for (body, path, code) in [
        (json!({ "display_name": null }), "display_name", "invalid_type"),
        (json!({ "display_name": "" }), "display_name", "too_small"),
        (json!({ "display_name": "a".repeat(256) }), "display_name", "too_big"),
        (json!({ "tenant_id": 7 }), "tenant_id", "invalid_type"),
        (json!({ "tenant_id": "a\u{0}" }), "tenant_id", "custom"),
        (json!({ "profile_id": "one" }), "profile_id", "invalid_string"),
    ] {
        let (_, problem) = fail(send(body.clone()), 400, "invalid_request").await;
        let issue = &problem["errors"][0];
        assert_eq!((&issue["path"], &issue["code"]), (&json!([path]), &json!(code)), "{body}");
    }
    let stranger = organizations::create(&world.db, "Stranger").await.unwrap();
    for owner in [Owner { mode: Mode::Live, ..world.owner }, Owner { org: stranger, ..world.owner }] {
        let other = key(&world, owner, &[Scope::All]).await;
        let call = |method, path: &str| {
            world.http.request(method, format!("{}{path}", world.base)).bearer_auth(&other)
        };
        let theirs: Value = call(Method::POST, "/profiles")
            .json(&json!({ "name": "Theirs" }))
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        let (_, problem) = fail(send(json!({ "profile_id": theirs["id"] })), 422, "unprocessable").await;
        assert_eq!(problem["errors"][0]["path"], json!(["profile_id"]));
        fail(call(Method::PATCH, &path).json(&json!({ "tenant_id": "mine" })), 404, "not_found").await;
        let one = self::path(&profile);
        fail(call(Method::GET, &one), 404, "not_found").await;
        fail(call(Method::PATCH, &one).json(&json!({ "name": "Mine" })), 404, "not_found").await;
        fail(call(Method::DELETE, &one), 404, "not_found").await;
        let list: Value = call(Method::GET, "/profiles").send().await.unwrap().json().await.unwrap();
        assert_eq!(list["data"], json!([theirs]));
        let body = json!({ "name": "Grab", "social_account_ids": [ada] });
        fail(call(Method::POST, "/profiles").json(&body), 422, "account_not_found").await;
    }
    assert_eq!(world.get(&path).await, none);
    let reader = key(&world, world.owner, &[Scope::ProfilesRead, Scope::AccountsRead]).await;
    let one = self::path(&profile);
    for (method, path, scope) in [
        (Method::POST, "/profiles", "profiles:write"),
        (Method::PATCH, &one, "profiles:write"),
        (Method::DELETE, &one, "profiles:write"),
        (Method::PATCH, &path, "accounts:write"),
    ] {
        let call = world.http.request(method, format!("{}{path}", world.base)).bearer_auth(&reader);
        let (_, problem) = fail(call.body("{"), 403, "insufficient_scope").await;
        assert!(problem["detail"].as_str().unwrap().contains(scope), "{problem}");
    }
}

/// The last of its accounts is locked while the others leave.
#[tokio::test]
async fn a_large_profile_is_deleted_in_parts() {
    const ACCOUNTS: i64 = 501;
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let profile = create(&world, json!({ "name": "Large", "social_account_ids": [account] })).await;
    let id = profile["id"].as_str().unwrap().to_owned();
    let of_profile = "from accounts where profile_id = $1";
    let copied = "insert into accounts select (jsonb_populate_record(a, jsonb_build_object(
        'id', gen_random_uuid(), 'network_unique_id', 'copy ' || n, 'username', 'copy' || n))).*
      from accounts a, generate_series(2, $2) n where profile_id = $1";
    let id_of: uuid::Uuid = id.parse().unwrap();
    sqlx::query(copied).bind(id_of).bind(ACCOUNTS).execute(&world.db).await.unwrap();
    let mut lock = world.db.begin().await.unwrap();
    let last = sqlx::AssertSqlSafe(format!("select id {of_profile} order by id desc limit 1 for update"));
    sqlx::query(last).bind(id_of).execute(&mut *lock).await.unwrap();
    let count = async || {
        let statement = sqlx::AssertSqlSafe(format!("select count(*) {of_profile}"));
        sqlx::query_scalar::<_, i64>(statement).bind(id_of).fetch_one(&world.db).await.unwrap()
    };
    let (db, owner) = (world.db.clone(), world.owner);
    let deleting = tokio::spawn(async move {
        let (access, by) = (store::bounds::unbounded(owner), &store::people::audit::Actor::OPERATOR);
        store::accounts::profiles::delete(&db, access, id.parse().unwrap(), by, tests::now()).await.unwrap()
    });
    tests::wait_until("all but the last to leave", async || match count().await {
        1 => Ok(()),
        left => Err(format!("{left} accounts")),
    })
    .await;
    drop(lock);
    assert!(deleting.await.unwrap());
    assert_eq!(count().await, 0);
    let account = world.get(&format!("/social-accounts/{account}")).await;
    assert_eq!(account["profile_id"], Value::Null, "{account}");
}
