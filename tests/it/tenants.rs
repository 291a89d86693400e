//! End tenants that have the same account of a platform, one after the other: what the former one made of it stays with
//! the former one.

use crate::{
    api::{fail, request},
    attacks::send,
    connect::finalize,
    world,
};
use ::store::{
    accounts::{self, disconnect},
    bounds::unbounded,
    people::audit::Actor,
    publishing::{self, freezes},
};
use chrono::TimeDelta;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{
    World,
    login::{BACK, arrive, begin, decide, joined, location, reported, walk},
    now,
};

async fn made(world: &World, path: &str, body: Value) -> Value {
    let (status, made) = world.call(Method::POST, path, Some(&body)).await;
    assert_eq!(status, StatusCode::CREATED, "{path}: {made}");
    made
}

fn id(resource: &Value) -> &str {
    resource["id"].as_str().unwrap()
}

/// Creates a key of all scopes with a bound.
async fn limited(world: &World, mut bound: Value) -> String {
    bound["name"] = json!("Limited");
    bound["scopes"] = json!(["*"]);
    made(world, "/api-keys", bound).await["key"].as_str().unwrap().to_owned()
}

/// Calls the API with a key.
async fn call(world: &World, key: &str, method: Method, path: &str, body: Value) -> (u16, Value) {
    let body = if body.is_null() { None } else { Some(body.to_string().into_bytes()) };
    send(world, key, &method, path, body.as_deref()).await
}

async fn get(world: &World, key: &str, path: &str) -> (u16, Value) {
    call(world, key, Method::GET, path, Value::Null).await
}

/// Performs a login that was begun with a key, and returns the parameters of its end.
async fn logged_in(world: &World, key: &str, username: &str, body: Value) -> (String, String) {
    let asked = asked(world, key, body).await;
    let end = reported(&location(&arrive(&decide(&asked, username, "allow").await.unwrap()).await));
    let value = end.get("account_ids").or_else(|| end.get("error")).cloned().unwrap();
    (end["status"].clone(), value)
}

/// Begins a login with a key.
async fn asked(world: &World, key: &str, mut body: Value) -> url::Url {
    body["redirect_uri"] = json!(BACK);
    let (status, answer) = call(world, key, Method::POST, "/social-networks/x/auth-url", body).await;
    assert_eq!(status, 200, "{answer}");
    answer["auth_url"].as_str().unwrap().parse().unwrap()
}

fn ids(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect()
}

/// Returns the resources of a scene's first tenant that are found by a key that must not find them.
async fn found(world: &World, key: &str, account: &str, posts: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut look = async |path: String, is_there: &dyn Fn(u16, &Value) -> bool| {
        let (status, answer) = get(world, key, &path).await;
        if is_there(status, &answer) {
            found.push(format!("{path}: {answer}"));
        }
    };
    look(format!("/social-accounts/{account}"), &|status, _| status != 404).await;
    for post in posts {
        look(format!("/posts/{post}"), &|status, _| status != 404).await;
    }
    for list in ["/posts", "/social-accounts", "/events", "/scheduling/slots"] {
        let names = |answer: &Value| {
            let text = answer.to_string();
            posts.iter().chain([&account]).any(|id| text.contains(id))
        };
        look(list.to_owned(), &|status, answer| status != 200 || names(answer)).await;
    }
    for body in [json!({ "content": "Not mine", "accounts": [account] })] {
        let (status, answer) = call(world, key, Method::POST, "/posts", body).await;
        if status != 422 {
            found.push(format!("POST /posts: {answer}"));
        }
    }
    found
}

#[tokio::test]
async fn an_account_that_is_connected_for_another_tenant_is_a_new_one() {
    let world = world().start().await;
    let [first, second] = ["agency-one", "agency-two"].map(|tenant| json!({ "tenant_id": tenant }));
    let (one, two) = (limited(&world, first.clone()).await, limited(&world, second.clone()).await);
    let account = joined(&world, "x", "ada", first).await;
    let profile = json!({ "name": "One", "tenant_id": "agency-one", "social_account_ids": [account],
        "default_config": { "x": { "reply_settings": "following" } } });
    let profile = made(&world, "/profiles", profile).await;
    let by_profile = limited(&world, json!({ "profile_id": profile["id"] })).await;
    let by_account = limited(&world, json!({ "account_ids": [account] })).await;
    let slots = json!({ "social_account_id": account, "slots": [{ "weekday": "monday", "time": "09:00" }] });
    assert_eq!(world.call(Method::PUT, "/scheduling/slots", Some(&slots)).await.0, StatusCode::OK);
    let secret = json!({ "content": "CONFIDENTIAL", "accounts": [account], "is_draft": true,
        "metadata": { "budget": "90k" } });
    let draft = made(&world, "/posts", secret).await;
    let live = world.ended(&world.post(json!({ "content": "Of one", "accounts": [account] })).await).await;
    let posts = [id(&draft), id(&live)];

    let path = format!("/social-accounts/{account}");
    assert_eq!(call(&world, &one, Method::DELETE, &path, Value::Null).await.0, 200);
    let (status, other) = logged_in(&world, &two, "ada", json!({})).await;
    assert!(status == "connected" && other != account, "{status} {other}");
    let shown = world.get(&format!("/social-accounts/{other}")).await;
    assert_eq!((&shown["tenant_id"], &shown["profile_id"]), (&json!("agency-two"), &Value::Null), "{shown}");
    assert_eq!(shown["username"], "ada");

    // The former tenant's keys have nothing of the new account, by whatever they were limited.
    let plan = json!({ "content": "Of two", "accounts": ["ada"], "is_draft": true });
    let (status, plan) = call(&world, &two, Method::POST, "/posts", plan).await;
    assert_eq!((status, &plan["default_config"]), (201, &json!({})), "{plan}");
    for key in [&one, &by_profile, &by_account] {
        assert_eq!(found(&world, key, &other, &[id(&plan)]).await, Vec::<String>::new());
        let by_name = json!({ "content": "By name", "accounts": ["ada"] });
        assert_eq!(call(&world, key, Method::POST, "/posts", by_name).await.0, 422);
    }
    // The new tenant has nothing of the former one's.
    assert_eq!(found(&world, &two, &account, &posts).await, Vec::<String>::new());
    let release = json!({ "is_draft": false });
    let path = format!("/posts/{}", id(&draft));
    assert_eq!(call(&world, &two, Method::PATCH, &path, release.clone()).await.0, 404);
    // Nor does anybody release it on the new account, and its handle is not ambiguous.
    fail(request(&world, Method::PATCH, &path).json(&release), 422, "account_not_found").await;
    let post = world.post(json!({ "content": "Of two", "accounts": ["ada"] })).await;
    assert_eq!(world.ended(&post).await["targets"][0]["social_account_id"], json!(other));
    assert_eq!(ids(&world.get("/social-accounts?username=ada").await), [other.as_str()]);

    // Each tenant returns to its own account.
    assert_eq!(
        call(&world, &two, Method::DELETE, &format!("/social-accounts/{other}"), Value::Null).await.0,
        200
    );
    assert_eq!(logged_in(&world, &one, "ada", json!({})).await, ("connected".to_owned(), account.clone()));
    let back = world.get(&format!("/social-accounts/{account}")).await;
    assert_eq!((&back["tenant_id"], &back["profile_id"]), (&json!("agency-one"), &profile["id"]), "{back}");
    let (status, released) = call(&world, &by_account, Method::PATCH, &path, release).await;
    assert_eq!(status, 200, "{released}");
    assert_eq!(world.ended(&released).await["status"], "published");
    assert_eq!(get(&world, &two, &format!("/social-accounts/{other}")).await.0, 404);
}

#[tokio::test]
async fn posts_of_a_former_tenant_never_go_out_through_the_new_grant() {
    let mut world = world().running(&["api", "worker"]).start().await;
    let account = world.connect_for("x", "ada", "one").await;
    let later = now() + TimeDelta::hours(12);
    let scheduled = json!({ "content": "Later", "accounts": [account], "scheduled_at": later });
    let scheduled = world.post(scheduled).await;
    let hold = json!({ "platform": "x", "account": "ada", "method": "POST", "path_prefix": "/2/tweets", "when": "after" });
    let hold = world.hold(hold).await;
    let begun = world.post(json!({ "content": "Under way", "accounts": [account] })).await;
    hold.until_held().await;
    world.kill("worker").await;
    let due = world.post(json!({ "content": "Due", "accounts": [account] })).await;
    let (status, _) = world.call(Method::DELETE, &format!("/social-accounts/{account}"), None).await;
    assert_eq!(status, StatusCode::OK);
    // The former grant is gone at the platform: only by the new one could the post be found.
    hold.release().await;
    world.revoke_grants("x", "ada").await;
    let other = world.connect_for("x", "ada", "two").await;
    assert!(other != account);
    world.run("worker").await;
    let begun = world.ended(&begun).await;
    assert_eq!(begun["targets"][0]["status"], "dead", "{begun:#}");
    for post in [&scheduled, &due] {
        let ended = world.ended(post).await;
        assert_eq!(ended["targets"][0]["status"], "canceled", "{ended:#}");
    }
    assert_eq!(world.accepted("x", "ada").await, 1, "the one that was under way");
    let own = world.ended(&world.post(json!({ "content": "Of two", "accounts": ["ada"] })).await).await;
    assert_eq!(own["status"], "published");
    assert_eq!(world.accepted("x", "ada").await, 2);
}

#[tokio::test]
async fn an_account_that_moves_leaves_its_profile_and_the_keys_that_name_it() {
    let world = world().start().await;
    let account = joined(&world, "x", "ada", json!({ "tenant_id": "one" })).await;
    let kept = joined(&world, "x", "bob", json!({ "tenant_id": "one" })).await;
    let profile = made(&world, "/profiles", json!({ "name": "One", "social_account_ids": [account] })).await;
    let of_two = made(&world, "/profiles", json!({ "name": "Two", "tenant_id": "two" })).await;
    let by_profile = limited(&world, json!({ "profile_id": profile["id"] })).await;
    let by_account = limited(&world, json!({ "account_ids": [kept, account] })).await;
    let path = format!("/social-accounts/{account}");
    let edit = async |body: Value| {
        let (status, edited) = world.call(Method::PATCH, &path, Some(&body)).await;
        assert_eq!(status, StatusCode::OK, "{edited}");
        edited
    };
    // An edit that is no move changes no access.
    edit(json!({ "tenant_id": "one", "display_name": "Ours" })).await;
    for key in [&by_profile, &by_account] {
        assert_eq!(get(&world, key, &path).await.0, 200);
    }
    let moved = edit(json!({ "tenant_id": "two" })).await;
    assert_eq!((&moved["id"], &moved["profile_id"]), (&json!(account), &Value::Null), "{moved}");
    let entry = world.get("/account/audit?action=social_account.moved&limit=1").await["data"][0].clone();
    assert_eq!(
        (&entry["action"], &entry["object_id"], &entry["details"]["from"], &entry["details"]["to"]),
        (&json!("social_account.moved"), &json!(account), &json!("one"), &json!("two")),
        "{entry}"
    );
    // Moved back, or away from every tenant, it is not theirs again.
    for tenant in [json!("one"), Value::Null] {
        for key in [&by_profile, &by_account] {
            assert_eq!(found(&world, key, &account, &[]).await, Vec::<String>::new());
        }
        edit(json!({ "tenant_id": tenant })).await;
    }
    assert_eq!(get(&world, &by_account, &format!("/social-accounts/{kept}")).await.0, 200);
    let keys = world.get("/api-keys").await;
    assert!(keys["data"].as_array().unwrap().iter().any(|key| key["account_ids"] == json!([kept])), "{keys}");
    let moved = edit(json!({ "tenant_id": "two", "profile_id": of_two["id"] })).await;
    assert_eq!(moved["profile_id"], of_two["id"], "{moved}");
}

#[tokio::test]
async fn a_login_that_was_begun_before_a_move_does_not_take_the_account_back() {
    let world = world().start().await;
    let ada = joined(&world, "x", "ada", json!({ "tenant_id": "one" })).await;
    let bob = joined(&world, "x", "bob", json!({})).await;
    let one = limited(&world, json!({ "tenant_id": "one" })).await;
    let by_account = limited(&world, json!({ "account_ids": [bob] })).await;
    let begun = [
        ("ada", asked(&world, &one, json!({ "reconnect_account_id": ada })).await),
        ("ada", asked(&world, &world.key, json!({ "reconnect_account_id": ada })).await),
        (
            "ada",
            asked(&world, &world.key, json!({ "reconnect_account_id": ada, "tenant_id": "three" })).await,
        ),
        ("bob", asked(&world, &by_account, json!({ "reconnect_account_id": bob })).await),
    ];
    for account in [&ada, &bob] {
        let body = json!({ "tenant_id": "two" });
        let path = format!("/social-accounts/{account}");
        assert_eq!(world.call(Method::PATCH, &path, Some(&body)).await.0, StatusCode::OK);
    }
    let before = world.get("/social-accounts").await;
    for (username, asked) in begun {
        let end = reported(&location(&arrive(&decide(&asked, username, "allow").await.unwrap()).await));
        assert_eq!(end.get("error").map(String::as_str), Some("wrong_account"), "{username}: {end:?}");
    }
    assert_eq!(world.get("/social-accounts").await, before);
}

#[tokio::test]
async fn a_limited_key_is_not_given_an_account_without_a_tenant() {
    let world = world().start().await;
    let ada = joined(&world, "x", "ada", json!({})).await;
    let sky = world.connect("bluesky", "ada.bsky.social").await;
    let one = limited(&world, json!({ "tenant_id": "one" })).await;
    assert_eq!(logged_in(&world, &one, "ada", json!({})).await.1, "wrong_account");
    let password = &world.account("bluesky", "ada.bsky.social").await.grant.extra["app_password"];
    let login = json!({ "identifier": "ada.bsky.social", "app_password": password });
    let (status, problem) = call(&world, &one, Method::POST, "/social-accounts/bluesky/connect", login).await;
    assert_eq!((status, &problem["code"]), (422, &json!("unprocessable")), "{problem}");
    let facebook = walk(&world, "facebook", "ada,bob", json!({})).await["token"].clone();
    let offered = world.get(&format!("/social-accounts/pending/{facebook}")).await;
    let page = id(&offered["data"][0]).to_owned();
    assert_eq!(finalize(&world, &facebook, &[&page]).await.0, StatusCode::CREATED);
    let body = json!({ "redirect_uri": BACK });
    let (_, answer) = call(&world, &one, Method::POST, "/social-networks/facebook/auth-url", body).await;
    let asked = answer["auth_url"].as_str().unwrap().parse().unwrap();
    let end = reported(&location(&arrive(&decide(&asked, "ada,bob", "allow").await.unwrap()).await));
    assert_eq!(finalize(&world, &end["token"], &[&page]).await.0.as_u16(), 422);
    for account in [&ada, &sky] {
        assert_eq!(world.get(&format!("/social-accounts/{account}")).await["tenant_id"], Value::Null);
    }
    // A key of the organization gives it away, as with PATCH.
    let profile = made(&world, "/profiles", json!({ "name": "Ours", "social_account_ids": [ada] })).await;
    let asked = begin(&world, "x", json!({ "redirect_uri": BACK, "tenant_id": "one" })).await;
    let end = reported(&location(&arrive(&decide(&asked, "ada", "allow").await.unwrap()).await));
    assert_eq!(end["account_ids"], ada);
    let given = world.get(&format!("/social-accounts/{ada}")).await;
    assert_eq!(
        (&given["tenant_id"], &given["profile_id"]),
        (&json!("one"), &Value::Null),
        "{given} {profile}"
    );
}

#[tokio::test]
async fn rests_and_freezes_are_of_the_account_at_its_platform() {
    let world = world().platforms(&["x"]).start().await;
    let first = world.connect_for("x", "ada", "one").await;
    let until = now() + TimeDelta::hours(2);
    publishing::rest_account(&world.db, world.owner, first.parse().unwrap(), until).await.unwrap();
    let scope = freezes::Scope::Account(first.parse().unwrap());
    let by = Actor { operator: Some("Olga".to_owned()), ..Actor::OPERATOR };
    freezes::freeze(&world.db, &scope, None, "Spam", &by, now()).await.unwrap();
    let leave = async |id: &str| {
        disconnect::disconnect(&world.db, unbounded(world.owner), id.parse().unwrap(), &by, now())
            .await
            .unwrap()
    };
    assert!(leave(&first).await);
    let second = world.connect_for("x", "ada", "two").await;
    assert!(second != first);
    let limits = world.get(&format!("/social-accounts/{second}/limits")).await;
    assert_eq!(limits["rests_until"], json!(domain::event::timestamp(until)), "{limits}");
    let frozen = async || {
        let mut found: Vec<_> =
            freezes::list(&world.db).await.unwrap().into_iter().map(|one| one.subject).collect();
        found.retain(|subject| [&first, &second].contains(&subject));
        found.sort();
        found
    };
    let mut both = vec![first.clone(), second.clone()];
    both.sort();
    assert_eq!(frozen().await, both);
    // An account that returns has them as well, once.
    assert!(leave(&second).await);
    assert_eq!(world.connect_for("x", "ada", "one").await, first);
    assert_eq!(frozen().await, both);
    let account =
        accounts::get(&world.db, unbounded(world.owner), first.parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(account.tenant_id.as_deref(), Some("one"));
    for subject in [&first, &second] {
        let scope = freezes::Scope::Account(subject.parse().unwrap());
        freezes::release(&world.db, &scope, None, std::time::Duration::ZERO, &by, now()).await.unwrap();
    }
}
