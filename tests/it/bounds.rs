//! API keys that are limited to a tenant, a profile or some accounts. What they don't reach is in
//! `tests/proof/isolation.rs`.

use crate::{
    api::{self, fail},
    attacks::send,
    mcp, world,
};
use ::store::people::organizations;
use domain::{Mode, Owner, scope::Scope};
use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};
use std::collections::HashMap;
use tests::{
    World,
    login::{BACK, arrive, begin, browser, decide, joined, location, reported, sign_in},
    samples::png,
};

/// An organization with two tenants, each with an account, a profile and a post.
struct Scene {
    world: World,
    /// Ids of the first tenant, by resource.
    mine: HashMap<&'static str, String>,
    /// Ids of the second tenant.
    theirs: HashMap<&'static str, String>,
    /// A post to the accounts of both.
    mixed: String,
}

impl Scene {
    async fn start() -> Self {
        let world = world().start().await;
        let mut sides = Vec::new();
        for (tenant, username) in [("mine", "ada"), ("theirs", "bob")] {
            let account = joined(&world, "x", username, json!({ "tenant_id": tenant })).await;
            let profile = json!({ "name": tenant, "tenant_id": tenant, "social_account_ids": [account] });
            let profile = create(&world, "/profiles", profile).await;
            let post = json!({ "content": tenant, "accounts": [account], "is_draft": true });
            let post = create(&world, "/posts", post).await;
            sides.push(HashMap::from([("social-accounts", account), ("profiles", profile), ("posts", post)]));
        }
        let accounts = [&sides[0]["social-accounts"], &sides[1]["social-accounts"]];
        let mixed = json!({ "content": "both", "accounts": accounts, "is_draft": true });
        let mixed = create(&world, "/posts", mixed).await;
        let [mine, theirs] = sides.try_into().unwrap();
        Self { world, mine, theirs, mixed }
    }

    fn account(&self) -> &str {
        &self.mine["social-accounts"]
    }

    fn other(&self) -> &str {
        &self.theirs["social-accounts"]
    }

    /// Creates keys that are limited to the first tenant, its profile and its account.
    async fn keys(&self) -> [(&'static str, String); 3] {
        [
            ("tenant", limited(&self.world, json!({ "tenant_id": "mine" })).await),
            ("profile", limited(&self.world, json!({ "profile_id": self.mine["profiles"] })).await),
            ("accounts", limited(&self.world, json!({ "account_ids": [self.account()] })).await),
        ]
    }
}

async fn create(world: &World, path: &str, body: Value) -> String {
    let (status, made) = world.call(Method::POST, path, Some(&body)).await;
    assert_eq!(status, StatusCode::CREATED, "{path}: {made}");
    made["id"].as_str().unwrap().to_owned()
}

/// Creates a key of all scopes with a bound.
async fn limited(world: &World, mut bound: Value) -> String {
    bound["name"] = json!("Limited");
    bound["scopes"] = json!(["*"]);
    let (status, made) = world.call(Method::POST, "/api-keys", Some(&bound)).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    made["key"].as_str().unwrap().to_owned()
}

/// Calls the API with a key.
async fn call(world: &World, key: &str, method: Method, path: &str, body: Value) -> (u16, Value) {
    let body = if body.is_null() { None } else { Some(body.to_string().into_bytes()) };
    send(world, key, &method, path, body.as_deref()).await
}

async fn get(world: &World, key: &str, path: &str) -> Value {
    let (status, answer) = call(world, key, Method::GET, path, Value::Null).await;
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

fn ids(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_limited_key_sees_and_changes_what_is_within_its_bound() {
    let scene = Scene::start().await;
    let world = &scene.world;
    for (kind, key) in scene.keys().await {
        let (account, post) = (scene.account(), &scene.mine["posts"]);
        assert_eq!(ids(&get(world, &key, "/social-accounts").await), [account], "{kind}");
        let listed = get(world, &key, "/posts").await;
        assert!(ids(&listed).contains(&post.as_str()), "{kind}: {listed}");
        assert_eq!(get(world, &key, "/posts?tenant_id=theirs").await["data"], json!([]), "{kind}");
        let profiles = get(world, &key, "/profiles").await;
        let expected: &[&str] = if kind == "accounts" { &[] } else { &[&scene.mine["profiles"]] };
        assert_eq!(ids(&profiles), expected, "{kind}: {profiles}");
        for path in [
            format!("/social-accounts/{account}"),
            format!("/posts/{post}/timeline"),
            format!("/posts/{post}"),
        ] {
            get(world, &key, &path).await;
        }
        let patch = json!({ "content": kind });
        let (status, edited) = call(world, &key, Method::PATCH, &format!("/posts/{post}"), patch).await;
        assert_eq!((status, &edited["containers"][0]["content"]), (200, &json!(kind)), "{edited}");
        // The other account is not found either when a post is edited, or named by its username.
        for name in [scene.other(), "bob"] {
            let patch = json!({ "accounts": [account, name] });
            let (status, problem) = call(world, &key, Method::PATCH, &format!("/posts/{post}"), patch).await;
            assert_eq!((status, &problem["code"]), (422, &json!("account_not_found")), "{kind}: {problem}");
        }
        let body = json!({ "content": format!("By the {kind}"), "accounts": ["ada"], "is_draft": true });
        let (status, made) = call(world, &key, Method::POST, "/posts", body).await;
        assert_eq!(status, 201, "{kind}: {made}");
        let slots =
            json!({ "social_account_id": account, "slots": [{ "weekday": "monday", "time": "09:00" }] });
        let (status, set) = call(world, &key, Method::PUT, "/scheduling/slots", slots).await;
        assert_eq!((status, &set["social_account_id"]), (200, &json!(account)), "{kind}: {set}");
        let slots = json!({ "social_account_id": null, "slots": [] });
        let (status, problem) = call(world, &key, Method::PUT, "/scheduling/slots", slots).await;
        assert_eq!((status, &problem["code"]), (403, &json!("forbidden")), "{kind}: {problem}");
        get(world, &key, &format!("/scheduling/find-slot?account={account}")).await;
        assert_eq!(get(world, &key, "/scheduling/slots").await["data"].as_array().unwrap().len(), 1);
    }
    // All posts to the account have the account in common: when it moves, they move.
    let tenant = limited(world, json!({ "tenant_id": "mine" })).await;
    let path = format!("/social-accounts/{}", scene.account());
    let moved = json!({ "tenant_id": "theirs" });
    assert_eq!(world.call(Method::PATCH, &path, Some(&moved)).await.0, StatusCode::OK);
    assert_eq!(get(world, &tenant, "/posts").await["data"], json!([]));
    assert_eq!(get(world, &tenant, "/social-accounts").await["data"], json!([]));
}

#[tokio::test]
async fn a_limited_key_moves_nothing_across_its_bound() {
    let scene = Scene::start().await;
    let world = &scene.world;
    let [(_, tenant), (_, profile), (_, accounts)] = scene.keys().await;
    let path = format!("/social-accounts/{}", scene.account());
    let theirs = &scene.theirs["profiles"];
    for (key, body) in [
        (&tenant, json!({ "tenant_id": "theirs" })),
        (&tenant, json!({ "tenant_id": null })),
        (&tenant, json!({ "profile_id": theirs })),
        (&profile, json!({ "tenant_id": "mine" })),
        (&profile, json!({ "profile_id": null })),
        (&profile, json!({ "profile_id": theirs })),
        (&accounts, json!({ "tenant_id": null })),
        (&accounts, json!({ "profile_id": scene.mine["profiles"] })),
    ] {
        let (status, problem) = call(world, key, Method::PATCH, &path, body.clone()).await;
        assert_eq!((status, &problem["code"]), (403, &json!("forbidden")), "{body}: {problem}");
    }
    for (key, body) in [
        (
            &tenant,
            json!({ "tenant_id": "mine", "profile_id": scene.mine["profiles"], "display_name": "Ours" }),
        ),
        (&profile, json!({ "profile_id": scene.mine["profiles"] })),
        (&accounts, json!({ "display_name": "Ours" })),
    ] {
        let (status, edited) = call(world, key, Method::PATCH, &path, body).await;
        assert_eq!((status, &edited["display_name"]), (200, &json!("Ours")), "{edited}");
    }

    let own = format!("/profiles/{}", scene.mine["profiles"]);
    for (key, body, expected) in [
        (&tenant, json!({ "tenant_id": "theirs" }), (403, "forbidden")),
        (&profile, json!({ "tenant_id": null }), (403, "forbidden")),
        (&tenant, json!({ "social_account_ids": [scene.other()] }), (422, "account_not_found")),
        (&profile, json!({ "social_account_ids": [scene.other()] }), (422, "account_not_found")),
    ] {
        let (status, problem) = call(world, key, Method::PATCH, &own, body.clone()).await;
        assert_eq!((status, problem["code"].as_str().unwrap()), expected, "{body}: {problem}");
    }
    // Nor does a key of the profile take accounts out of it, by leaving them out or with the profile itself.
    let emptied = json!({ "social_account_ids": [] });
    for (method, body) in [(Method::PATCH, emptied), (Method::DELETE, Value::Null)] {
        let (status, problem) = call(world, &profile, method.clone(), &own, body).await;
        assert_eq!((status, &problem["code"]), (403, &json!("forbidden")), "{method}: {problem}");
    }
    let kept = json!({ "social_account_ids": [scene.account()], "name": "Same" });
    assert_eq!(call(world, &profile, Method::PATCH, &own, kept).await.0, 200);
    assert_eq!(ids(&get(world, &profile, "/social-accounts").await), [scene.account()]);
    // A profile of the tenant with another tenant's account: the account is not shown, and stays.
    let both = json!({ "social_account_ids": [scene.account(), scene.other()] });
    assert_eq!(world.call(Method::PATCH, &own, Some(&both)).await.0, StatusCode::OK);
    assert_eq!(get(world, &tenant, &own).await["social_account_ids"], json!([scene.account()]));
    let (status, renamed) = call(world, &tenant, Method::PATCH, &own, json!({ "name": "New" })).await;
    assert_eq!((status, &renamed["social_account_ids"]), (200, &json!([scene.account()])), "{renamed}");
    let none = json!({ "social_account_ids": [] });
    assert_eq!(call(world, &tenant, Method::PATCH, &own, none).await.0, 403);
    assert_eq!(call(world, &tenant, Method::DELETE, &own, Value::Null).await.0, 403);
    assert_eq!(world.get(&own).await["social_account_ids"].as_array().unwrap().len(), 2);

    let (status, made) = call(world, &tenant, Method::POST, "/profiles", json!({ "name": "Second" })).await;
    assert_eq!((status, &made["tenant_id"]), (201, &json!("mine")), "{made}");
}

#[tokio::test]
async fn a_limited_key_connects_accounts_within_its_bound_only() {
    let scene = Scene::start().await;
    let mut world = scene.world;
    let whole = world.key.clone();
    let tenant = limited(&world, json!({ "tenant_id": "mine" })).await;
    let account = scene.mine["social-accounts"].clone();
    let narrow = limited(&world, json!({ "account_ids": [account] })).await;
    let other = &scene.theirs["social-accounts"];
    let path = "/social-networks/x/auth-url";
    for (key, body, expected) in [
        (&tenant, json!({ "tenant_id": "theirs" }), (403, "forbidden")),
        (&tenant, json!({ "reconnect_account_id": other }), (422, "account_not_found")),
        (&narrow, json!({}), (403, "forbidden")),
        (&narrow, json!({ "reconnect_account_id": account, "tenant_id": "theirs" }), (403, "forbidden")),
        (&narrow, json!({ "reconnect_account_id": other }), (422, "account_not_found")),
    ] {
        let (status, problem) = call(&world, key, Method::POST, path, body.clone()).await;
        assert_eq!((status, problem["code"].as_str().unwrap()), expected, "{body}: {problem}");
    }
    // The tenant of a new account is the key's, also if the request names none.
    world.key = tenant;
    let cleo = joined(&world, "x", "cleo", json!({})).await;
    assert_eq!(world.get(&format!("/social-accounts/{cleo}")).await["tenant_id"], "mine");
    let asked = begin(&world, "x", json!({ "redirect_uri": BACK })).await;
    let back = decide(&asked, "bob", "allow").await.unwrap();
    assert_eq!(reported(&location(&arrive(&back).await))["error"], "wrong_account");
    let login = world.account("bluesky", "ada.bsky.social").await.grant;
    let login = json!({ "identifier": "ada.bsky.social", "app_password": login.extra["app_password"] });
    let (_, made) = world.call(Method::POST, "/social-accounts/bluesky/connect", Some(&login)).await;
    assert_eq!(made["tenant_id"], "mine", "{made}");
    world.key = narrow;
    assert_eq!(joined(&world, "x", "ada", json!({ "reconnect_account_id": account })).await, account);
    world.key = whole;
    let theirs = world.get(&format!("/social-accounts/{other}")).await;
    assert_eq!(theirs["tenant_id"], "theirs");
}

#[tokio::test]
async fn media_belong_to_the_bound_that_they_were_uploaded_with() {
    let scene = Scene::start().await;
    let mut world = scene.world;
    let whole = world.key.clone();
    let ours = world.medium("ours.png", None, png(64, 64)).await["id"].clone();
    let mine = limited(&world, json!({ "tenant_id": "mine" })).await;
    world.key = mine.clone();
    let media = world.medium("mine.png", None, png(32, 32)).await["id"].clone();
    let post = |media: &Value| {
        let text = json!({ "content": "a", "media": [{ "id": media }] });
        json!({ "containers": [text], "accounts": ["ada"], "is_draft": true })
    };
    let (status, made) = world.call(Method::POST, "/posts", Some(&post(&media))).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let refused = api::request(&world, Method::POST, "/posts").json(&post(&ours));
    fail(refused, 422, "media_not_ready").await;
    let listed = world.get("/media").await;
    assert_eq!((ids(&listed), &listed["pagination"]["total"]), (vec![media.as_str().unwrap()], &json!(1)));

    // Another key of the tenant has it too, and a key of another tenant has not.
    let again = limited_by(&world, &whole, json!({ "tenant_id": "mine" })).await;
    assert_eq!(ids(&get(&world, &again, "/media").await), [media.as_str().unwrap()]);
    let theirs = limited_by(&world, &whole, json!({ "tenant_id": "theirs" })).await;
    assert_eq!(get(&world, &theirs, "/media").await["data"], json!([]));
    assert_eq!(ids(&get(&world, &whole, "/media").await).len(), 2);
}

/// Creates a limited key with the key `whole`.
async fn limited_by(world: &World, whole: &str, mut bound: Value) -> String {
    bound["name"] = json!("Limited");
    bound["scopes"] = json!(["*"]);
    let (status, made) = call(world, whole, Method::POST, "/api-keys", bound).await;
    assert_eq!(status, 201, "{made}");
    made["key"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn events_and_repeated_requests_stay_within_the_bound() {
    let scene = Scene::start().await;
    let world = &scene.world;
    let key = limited(world, json!({ "tenant_id": "mine" })).await;
    for (name, accounts) in [("mine", vec!["ada"]), ("theirs", vec!["bob"]), ("both", vec!["ada", "bob"])] {
        let post = json!({ "content": name, "accounts": accounts, "external_ref": name });
        world.ended(&world.post(post).await).await;
    }
    let events = get(world, &key, "/events").await["data"].clone();
    let seen: Vec<_> =
        events.as_array().unwrap().iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(seen.iter().filter(|name| **name == "account.connected").count(), 1, "{events}");
    assert_eq!(seen.iter().filter(|name| **name == "post.published").count(), 1, "{events}");
    assert!(!events.to_string().contains(scene.other()), "{events}");
    let all = world.get("/events").await["data"].to_string();
    assert_eq!(all.matches("post.published").count(), 3, "{all}");

    for (name, expected) in
        [("mine", (200, None)), ("theirs", (409, Some("conflict"))), ("both", (409, Some("conflict")))]
    {
        let post = json!({ "content": "Again", "accounts": ["ada"], "external_ref": name });
        let (status, answer) = call(world, &key, Method::POST, "/posts", post).await;
        assert_eq!((status, answer["code"].as_str()), expected, "{name}: {answer}");
    }
}

#[tokio::test]
async fn tools_of_a_limited_key_stay_within_its_bound() {
    let scene = Scene::start().await;
    let world = &scene.world;
    let key = limited(world, json!({ "tenant_id": "mine" })).await;
    let asked =
        mcp::ask(world, &key, "tools/call", json!({ "name": "list_accounts", "arguments": {} })).await;
    assert_eq!(ids(&asked["result"]["structuredContent"]), [scene.account()], "{asked}");
    let asked = json!({ "name": "get_post", "arguments": { "id": scene.mine["posts"] } });
    assert_eq!(mcp::ask(world, &key, "tools/call", asked).await["result"]["isError"], false);
    for (tool, arguments, code) in [
        ("get_post", json!({ "id": scene.theirs["posts"] }), "not_found"),
        ("delete_post", json!({ "id": scene.mixed }), "not_found"),
        ("get_account_capabilities", json!({ "id": scene.other() }), "not_found"),
        ("create_post", json!({ "content": "a", "accounts": [scene.other()] }), "account_not_found"),
        ("create_auth_url", json!({ "platform": "x", "tenant_id": "theirs" }), "forbidden"),
        ("list_webhooks", json!({}), "forbidden"),
        ("create_webhook", json!({ "url": "https://example.com", "events": ["*"] }), "forbidden"),
        ("get_usage", json!({}), "forbidden"),
        ("get_post", json!({}), "not_found"),
    ] {
        let problem = mcp::refused(world, &key, tool, arguments).await;
        assert_eq!(problem["code"], code, "{tool}: {problem}");
    }
}

/// The templates are read from the list, so that a new one is covered without a change here.
#[tokio::test]
async fn resources_are_read_by_who_may_call_their_tools() {
    let scene = Scene::start().await;
    let world = &scene.world;
    let read =
        async |key: &str, uri: &str| mcp::ask(world, key, "resources/read", json!({ "uri": uri })).await;
    let listed = mcp::ask(world, &world.key, "resources/templates/list", json!({})).await;
    let templates = listed["result"]["resourceTemplates"].as_array().unwrap();
    assert!(templates.len() >= 4, "{listed}");
    let mut callers: Vec<_> = scene.keys().await.map(|(kind, key)| (kind, key, -32002)).into();
    let (_, token) = world.call(Method::POST, "/client-tokens", Some(&json!({ "tenant_id": "mine" }))).await;
    callers.push(("client token", token["token"].as_str().unwrap().to_owned(), -32600));
    let live = Owner { mode: Mode::Live, ..world.owner };
    callers.push(("other mode", api::key(world, live, &[Scope::All]).await, -32002));
    let org = organizations::create(&world.db, "Other").await.unwrap();
    let stranger = Owner { org, mode: Mode::Test };
    callers.push(("other organization", api::key(world, stranger, &[Scope::All]).await, -32002));
    for template in templates {
        let template = template["uriTemplate"].as_str().unwrap();
        let resource = if template.contains("/accounts/") { "social-accounts" } else { "posts" };
        let uri = |id: &str| template.replace("{id}", id);
        let theirs = uri(&scene.theirs[resource]);
        assert!(read(&world.key, &theirs).await["result"]["contents"].is_array(), "{theirs}");
        for (kind, key, code) in &callers {
            let mut strangers = vec![theirs.clone()];
            strangers.extend((resource == "posts").then(|| uri(&scene.mixed)));
            for uri in strangers {
                let answer = read(key, &uri).await;
                assert_eq!(answer["error"]["code"], *code, "{kind} reads {uri}: {answer}");
            }
            let is_limited = ["tenant", "profile", "accounts"].contains(kind);
            let mine = read(key, &uri(&scene.mine[resource])).await;
            assert_eq!(mine["result"]["contents"].is_array(), is_limited, "{kind} reads {template}: {mine}");
        }
    }
}

#[tokio::test]
async fn a_bound_is_shown_checked_and_kept_by_a_rotation() {
    let scene = Scene::start().await;
    let world = &scene.world;
    let profile = &scene.mine["profiles"];
    for (bound, member) in [
        (json!({ "tenant_id": "mine" }), "tenant_id"),
        (json!({ "profile_id": profile }), "profile_id"),
        (json!({ "account_ids": [scene.account()] }), "account_ids"),
    ] {
        let mut body = bound.clone();
        body["name"] = json!("Limited");
        body["scopes"] = json!(["accounts:read"]);
        let (_, made) = world.call(Method::POST, "/api-keys", Some(&body)).await;
        let members = ["tenant_id", "profile_id", "account_ids"];
        for name in members {
            let expected = if name == member { &bound[member] } else { &Value::Null };
            assert_eq!(&made[name], expected, "{made}");
        }
        let listed = world.get("/api-keys").await["data"][0].clone();
        assert_eq!((&listed["id"], &listed[member]), (&made["id"], &bound[member]));
        let path = format!("/api-keys/{}/rotate", made["id"].as_str().unwrap());
        let (_, rotated) = world.call(Method::POST, &path, None).await;
        assert_eq!(rotated[member], bound[member], "{rotated}");
        let key = rotated["key"].as_str().unwrap();
        assert_eq!(ids(&get(world, key, "/social-accounts").await), [scene.account()]);
    }
    let unknown = uuid::Uuid::now_v7();
    for (bound, status, path) in [
        (json!({ "tenant_id": "a", "profile_id": profile }), 400, json!(["profile_id"])),
        (json!({ "tenant_id": "a", "account_ids": [scene.account()] }), 400, json!(["account_ids"])),
        (json!({ "tenant_id": "" }), 400, json!(["tenant_id"])),
        (json!({ "account_ids": [] }), 400, json!(["account_ids"])),
        (json!({ "profile_id": unknown }), 422, json!(["profile_id"])),
        (json!({ "account_ids": [scene.account(), unknown] }), 422, json!(["account_ids", 1])),
    ] {
        let mut body = bound.clone();
        body["name"] = json!("Limited");
        body["scopes"] = json!(["*"]);
        let (found, problem) = world.call(Method::POST, "/api-keys", Some(&body)).await;
        assert_eq!((found.as_u16(), &problem["errors"][0]["path"]), (status, &path), "{bound}: {problem}");
    }
}

#[tokio::test]
async fn operators_and_the_dashboard_create_limited_keys() {
    let scene = Scene::start().await;
    let world = &scene.world;
    let Owner { org, mode } = world.owner;
    let org = org.to_string();
    let (account, profile) = (scene.account(), scene.mine["profiles"].as_str());
    for bound in [["--tenant", "mine"], ["--profile", profile], ["--account", account]] {
        let args =
            ["org", "key", &org, "--mode", mode.as_str(), "--scope", "accounts:read", bound[0], bound[1]];
        let made = world.command(&args).await;
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let printed = String::from_utf8(made.stdout).unwrap();
        let key = printed.lines().last().unwrap();
        assert_eq!(ids(&get(world, key, "/social-accounts").await), [account], "{printed}");
        let (status, problem) = call(world, key, Method::GET, "/posts", Value::Null).await;
        assert_eq!((status, &problem["code"]), (403, &json!("insufficient_scope")), "{problem}");
    }
    let unknown = uuid::Uuid::now_v7().to_string();
    for args in [
        vec!["--tenant", "a", "--profile", profile],
        vec!["--profile", &unknown],
        vec!["--account", &unknown],
    ] {
        let args = [vec!["org", "key", &org, "--mode", mode.as_str()], args].concat();
        assert!(!world.command(&args).await.status.success(), "{args:?}");
    }

    let cookie = sign_in(world).await;
    let origin = world.base.trim_end_matches("/api/v1");
    let send = async |path: &str, cookie: &str, form: &[(&str, &str)]| {
        let request = browser().post(format!("{origin}/dashboard{path}")).form(form);
        let request = request.header(header::COOKIE, cookie).header(header::ORIGIN, origin);
        let answer = request.header("sec-fetch-site", "same-origin").send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    };
    for (field, value, words) in [
        ("tenant", "mine", "tenant mine".to_owned()),
        ("profile", profile, format!("profile {profile}")),
        ("accounts", account, format!("accounts {account}")),
    ] {
        let form = [("name", "Limited"), ("scope", "*"), (field, value)];
        let (status, page) = send("/keys", &cookie, &form).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        assert!(page.contains(&words), "{page}");
        let (_, rest) = page.split_once("<code class=\"secret\"").unwrap();
        let key = rest.split_once('>').unwrap().1.split_once('<').unwrap().0;
        assert_eq!(ids(&get(world, key, "/social-accounts").await), [account]);
        // The dashboard shows everything, so that a limited key doesn't open it.
        let (status, page) = send("/sign-in", "", &[("key", key)]).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        assert!(page.contains("limited to a part"), "{page}");
    }
}
