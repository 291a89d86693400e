//! An organization's own OAuth apps, and the authorization URLs that connecting an account begins with.

use crate::{
    api::{fail, key, request},
    database, world,
};
use api::connect::oauth_state::Key;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{Mode, Owner, scope::Scope};
use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use store::{
    accounts::{
        networks,
        oauth_states::{self, AuthorizationRequest, Begun, Claim},
    },
    people::organizations,
    upkeep::vault,
};
use tests::World;
use url::Url;

const SECRET: &str = "xyzzy-the-client-secret";

async fn register(world: &World, body: Value) -> (StatusCode, Value) {
    world.call(Method::POST, "/social-networks", Some(&body)).await
}

fn path(network: &Value) -> String {
    format!("/social-networks/{}", network["id"].as_str().unwrap())
}

fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap().parse().unwrap()
}

/// Returns the network without its timestamps.
fn timeless(network: &Value) -> Value {
    let mut network = network.clone();
    let object = network.as_object_mut().unwrap();
    object.remove("created_at");
    object.remove("updated_at");
    network
}

#[tokio::test]
async fn a_platform_has_one_app_and_updates_change_only_the_fields_sent() {
    let world = world().start().await;
    let (status, first) = register(&world, json!({ "platform": "youtube", "client_id": null })).await;
    assert_eq!(status, StatusCode::CREATED, "{first}");
    let fresh = json!({
        "id": first["id"], "platform": "youtube", "display_name": null, "client_id": null,
        "redirect_uri": null, "scopes": [], "extra_config": {}, "is_enabled": true,
    });
    assert_eq!(timeless(&first), fresh);

    let body = json!({
        "platform": "youtube", "client_id": "id", "client_secret": SECRET, "display_name": "Ours",
        "redirect_uri": "https://example.com/callback", "scopes": ["a", "b"],
        "extra_config": { "any": [1, { "thing": null }] }, "is_enabled": false, "unknown": 1,
    });
    let (status, second) = register(&world, body.clone()).await;
    let mut expected = body.clone();
    let object = expected.as_object_mut().unwrap();
    object.remove("client_secret");
    object.remove("unknown");
    object.insert("id".to_owned(), first["id"].clone());
    assert_eq!((status, timeless(&second)), (StatusCode::OK, expected.clone()));
    assert_eq!(second["created_at"], first["created_at"]);
    assert!(time(&second["updated_at"]) > time(&first["updated_at"]));

    // Omitted fields keep their values, and null counts as omitted.
    let again = json!({ "platform": "youtube", "display_name": null, "scopes": null, "is_enabled": true });
    let (status, third) = register(&world, again).await;
    expected["is_enabled"] = json!(true);
    assert_eq!((status, timeless(&third)), (StatusCode::OK, expected.clone()));

    for platform in ["x", "bluesky", "reddit"] {
        assert_eq!(register(&world, json!({ "platform": platform })).await.0, StatusCode::CREATED);
    }
    let list = world.get("/social-networks").await;
    let platforms: Vec<_> = list["data"].as_array().unwrap().iter().map(|one| &one["platform"]).collect();
    assert_eq!(platforms, ["bluesky", "reddit", "x", "youtube"]);
    assert_eq!(list.as_object().unwrap().len(), 1, "no cursor: it is the whole list");
    assert_eq!(world.get(&path(&first)).await, third);

    let patch = async |body: Value| {
        let (status, network) = world.call(Method::PATCH, &path(&first), Some(&body)).await;
        assert_eq!(status, StatusCode::OK, "{network}");
        network
    };
    let nothing = patch(json!({})).await;
    assert_eq!(timeless(&nothing), expected);
    assert!(time(&nothing["updated_at"]) > time(&third["updated_at"]));
    for (key, value) in
        [("display_name", json!("Theirs")), ("scopes", json!([])), ("extra_config", json!({}))]
    {
        expected[key] = value.clone();
        assert_eq!(timeless(&patch(json!({ key: value })).await), expected, "{key}");
    }
    let cleared = patch(
        json!({ "display_name": null, "client_id": null, "redirect_uri": null, "client_secret": null }),
    );
    assert_eq!(timeless(&cleared.await), fresh);
    let id = networks::list(&world.db, world.owner).await.unwrap()[3].id;
    let credentials = networks::credentials(&world.db, world.owner, id).await.unwrap().unwrap();
    assert_eq!(credentials.secret_sealed, None);
}

#[tokio::test]
async fn a_deleted_app_is_not_found_until_it_is_registered_again() {
    let world = world().start().await;
    let body = json!({ "platform": "x", "client_id": "id", "client_secret": SECRET, "scopes": ["a"] });
    let (_, network) = register(&world, body).await;
    let (status, deleted) = world.call(Method::DELETE, &path(&network), None).await;
    assert_eq!((status, deleted), (StatusCode::OK, json!({ "id": network["id"], "deleted": true })));
    for method in [Method::GET, Method::DELETE] {
        fail(request(&world, method, &path(&network)), 404, "not_found").await;
    }
    fail(request(&world, Method::PATCH, &path(&network)).json(&json!({})), 404, "not_found").await;
    assert_eq!(world.get("/social-networks").await, json!({ "data": [] }));

    // Accounts that were connected through it still refresh their tokens with its secret.
    let id = network["id"].as_str().unwrap().parse().unwrap();
    let kept = networks::credentials(&world.db, world.owner, id).await.unwrap().unwrap();
    assert!(kept.client_id.as_deref() == Some("id") && kept.secret_sealed.is_some());

    let (status, revived) = register(&world, json!({ "platform": "x", "display_name": "New" })).await;
    assert_eq!((status, &revived["id"]), (StatusCode::CREATED, &network["id"]));
    assert_eq!((&revived["client_id"], &revived["scopes"]), (&json!("id"), &json!([])));
    assert!(revived["is_enabled"] == true && time(&revived["created_at"]) > time(&network["created_at"]));
    // Omitted credentials stay, as in an update.
    let after = networks::credentials(&world.db, world.owner, id).await.unwrap().unwrap();
    assert_eq!((after.client_id, after.secret_sealed), (kept.client_id, kept.secret_sealed));
}

#[tokio::test]
async fn concurrent_registrations_of_a_platform_create_one_app() {
    let world = world().start().await;
    for round in 0..3 {
        let bodies = (0..8).map(|index| json!({ "platform": "x", "display_name": format!("App {index}") }));
        let answers = join_all(bodies.map(|body| register(&world, body))).await;
        let created = answers.iter().filter(|(status, _)| *status == StatusCode::CREATED).count();
        let updated = answers.iter().filter(|(status, _)| *status == StatusCode::OK).count();
        assert_eq!((created, updated), (1, 7), "{round}: {answers:?}");
        let ids: HashSet<_> = answers.iter().map(|(_, network)| network["id"].to_string()).collect();
        assert_eq!(ids.len(), 1);
        // From the second round on, a deleted app is registered again.
        world.call(Method::DELETE, &path(&answers[0].1), None).await;
    }
}

#[tokio::test]
async fn a_client_secret_is_readable_to_workers_only() {
    let mut world = world().running(&[]).everywhere().start().await;
    let log = std::env::temp_dir().join(format!("fanfare-log-{}", uuid::Uuid::now_v7()));
    world.set("RUST_LOG", "debug");
    world.log_to(&log);
    world.run("all").await;

    let mut answers = Vec::new();
    let mut keep = |(_, body): (StatusCode, Value)| {
        answers.push(body.to_string());
        body
    };
    let body = json!({ "platform": "x", "client_id": "id", "client_secret": SECRET });
    let network = keep(register(&world, body).await);
    let id = network["id"].as_str().unwrap().parse().unwrap();
    let sealed = async || {
        networks::credentials(&world.db, world.owner, id).await.unwrap().unwrap().secret_sealed.unwrap()
    };
    let first = sealed().await;
    let opened = |sealed: &[u8]| {
        let aad = vault::aad_client_secret(world.owner, id);
        String::from_utf8(world.opener.open(sealed, &aad).unwrap()).unwrap()
    };
    assert_eq!(opened(&first), SECRET);
    assert!(!first.windows(8).any(|window| window == &SECRET.as_bytes()[..8]));

    // If no secret is sent, the ciphertext stays unchanged; a new secret replaces it.
    keep(register(&world, json!({ "platform": "x", "display_name": "Ours" })).await);
    keep(world.call(Method::PATCH, &path(&network), Some(&json!({ "display_name": "Mine" }))).await);
    assert_eq!(sealed().await, first);
    let longer = format!("{SECRET}-2");
    keep(world.call(Method::PATCH, &path(&network), Some(&json!({ "client_secret": longer }))).await);
    assert_eq!(opened(&sealed().await), longer);
    keep(register(&world, json!({ "platform": "x", "client_secret": SECRET })).await);
    assert_eq!(opened(&sealed().await), SECRET);

    // Error responses do not contain it either.
    for body in [
        json!({ "platform": SECRET }),
        json!({ "platform": "x", "client_secret": [SECRET] }),
        json!({ "platform": "x", "client_secret": format!("{SECRET}\u{0}") }),
        json!({ "platform": "x", "client_secret": SECRET.repeat(200) }),
        json!({ "platform": "x", "client_secret": SECRET, "scopes": 7 }),
    ] {
        let (status, problem) = register(&world, body.clone()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{problem}");
        // The contract repeats an unknown platform in the error.
        if body["platform"] != SECRET {
            answers.push(problem.to_string());
        }
    }
    answers.push(world.get("/social-networks").await.to_string());
    answers.push(world.get(&path(&network)).await.to_string());
    answers.push(world.call(Method::POST, "/social-networks/x/auth-url", None).await.1.to_string());
    for answer in &answers {
        assert!(!answer.contains(SECRET) && !answer.contains("client_secret\":\""), "{answer}");
    }
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(&log).unwrap();
    assert!(text.contains("DEBUG") && !text.contains(SECRET), "no debug log, or it has the secret");
}

/// Returns bodies with faulty fields, each with the paths and codes that are reported for a new app and a changed one.
fn faulty_fields() -> Vec<(Value, Value)> {
    vec![
        (json!({ "client_id": "" }), json!([[["client_id"], "too_small"]])),
        (json!({ "client_id": "a".repeat(1025) }), json!([[["client_id"], "too_big"]])),
        (json!({ "client_secret": "" }), json!([[["client_secret"], "too_small"]])),
        (json!({ "client_secret": "a".repeat(4097) }), json!([[["client_secret"], "too_big"]])),
        (
            json!({ "client_secret": 7, "client_id": [] }),
            json!([[["client_id"], "invalid_type"], [["client_secret"], "invalid_type"]]),
        ),
        (json!({ "display_name": "a".repeat(256) }), json!([[["display_name"], "too_big"]])),
        (json!({ "display_name": "a\u{0}" }), json!([[["display_name"], "custom"]])),
        (json!({ "redirect_uri": "nowhere" }), json!([[["redirect_uri"], "invalid_string"]])),
        (json!({ "redirect_uri": "http://example.com/" }), json!([[["redirect_uri"], "invalid_string"]])),
        (
            json!({ "redirect_uri": format!("https://example.com/{}", "a".repeat(2048)) }),
            json!([[["redirect_uri"], "too_big"]]),
        ),
        (json!({ "scopes": "a b" }), json!([[["scopes"], "invalid_type"]])),
        (
            json!({ "scopes": ["a", "", 7, null] }),
            json!([
                [["scopes", 1], "too_small"],
                [["scopes", 2], "invalid_type"],
                [["scopes", 3], "invalid_type"]
            ]),
        ),
        (json!({ "scopes": ["a".repeat(256)] }), json!([[["scopes", 0], "too_big"]])),
        (json!({ "scopes": vec!["a"; 101] }), json!([[["scopes"], "too_big"]])),
        (json!({ "extra_config": [] }), json!([[["extra_config"], "invalid_type"]])),
        (
            json!({ "extra_config": { "a": { "b\u{0}": 1 } } }),
            json!([[["extra_config", "a", "b\u{0}"], "custom"]]),
        ),
        (
            json!({ "extra_config": { "redirect_uris": "https://a" } }),
            json!([[["extra_config", "redirect_uris"], "custom"]]),
        ),
        (
            json!({ "extra_config": { "redirect_uris": [1] } }),
            json!([[["extra_config", "redirect_uris"], "custom"]]),
        ),
        (
            json!({ "extra_config": { "preset": "everything" } }),
            json!([[["extra_config", "preset"], "custom"]]),
        ),
        (
            json!({ "extra_config": { "preset": 1, "access": "some", "authorize_parameters": ["a"] } }),
            json!([
                [["extra_config", "preset"], "custom"],
                [["extra_config", "authorize_parameters"], "custom"],
                [["extra_config", "access"], "custom"],
            ]),
        ),
        (
            json!({ "extra_config": { "authorize_parameters": { "state": "ours", "config_id": "1" } } }),
            json!([[["extra_config", "authorize_parameters", "state"], "custom"]]),
        ),
        (json!({ "is_enabled": "true" }), json!([[["is_enabled"], "invalid_type"]])),
    ]
}

#[tokio::test]
async fn invalid_fields_of_an_app_are_reported() {
    let world = world().start().await;
    let (_, network) = register(&world, json!({ "platform": "tiktok" })).await;
    let faults = |problem: &Value| -> Value {
        let reported = problem["errors"].as_array().unwrap().iter();
        reported.map(|issue| json!([issue["path"], issue["code"]])).collect()
    };
    for (body, expected) in faulty_fields() {
        let (_, problem) =
            fail(request(&world, Method::PATCH, &path(&network)).json(&body), 400, "invalid_request").await;
        assert_eq!(faults(&problem), expected, "PATCH {body}");
        let mut body = body;
        body["platform"] = json!("x");
        let (_, problem) =
            fail(request(&world, Method::POST, "/social-networks").json(&body), 400, "invalid_request").await;
        assert_eq!(faults(&problem), expected, "POST {body}");
    }
    for (body, expected) in [
        (json!({}), json!([[["platform"], "invalid_type"]])),
        (json!({ "platform": null }), json!([[["platform"], "invalid_type"]])),
        (json!({ "platform": "twitter" }), json!([[["platform"], "invalid_enum_value"]])),
        (json!({ "platform": "X" }), json!([[["platform"], "invalid_enum_value"]])),
        (json!([]), json!([[[], "invalid_type"]])),
    ] {
        let (_, problem) =
            fail(request(&world, Method::POST, "/social-networks").json(&body), 400, "invalid_request").await;
        assert_eq!(faults(&problem), expected, "{body}");
    }
    let nulls = json!({ "scopes": null, "extra_config": null, "is_enabled": null });
    let (_, problem) =
        fail(request(&world, Method::PATCH, &path(&network)).json(&nulls), 400, "invalid_request").await;
    assert!(problem["errors"].as_array().unwrap().iter().all(|issue| issue["received"] == "null"));
    assert_eq!(problem["errors"].as_array().unwrap().len(), 3, "{problem}");
    fail(request(&world, Method::PATCH, &path(&network)), 400, "invalid_request").await;
    let twice = r#"{"platform":"x","display_name":"a","display_name":"b"}"#;
    let twice = request(&world, Method::POST, "/social-networks")
        .header("content-type", "application/json")
        .body(twice);
    let twice: Value = twice.send().await.unwrap().json().await.unwrap();
    assert_eq!(twice["display_name"], "b", "the last of duplicate keys counts");
    assert_eq!(world.get("/social-networks").await["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn apps_belong_to_one_owner_and_require_their_scopes() {
    let world = world().start().await;
    let (_, network) = register(&world, json!({ "platform": "x", "client_id": "mine" })).await;
    let stranger = organizations::create(&world.db, "Stranger").await.unwrap();
    for owner in [Owner { mode: Mode::Live, ..world.owner }, Owner { org: stranger, ..world.owner }] {
        let other = key(&world, owner, &[Scope::All]).await;
        let call = |method, path: &str| {
            world.http.request(method, format!("{}{path}", world.base)).bearer_auth(&other)
        };
        let path = path(&network);
        fail(call(Method::GET, &path), 404, "not_found").await;
        fail(call(Method::PATCH, &path).json(&json!({ "display_name": "Theirs" })), 404, "not_found").await;
        fail(call(Method::DELETE, &path), 404, "not_found").await;
        let list: Value = call(Method::GET, "/social-networks").send().await.unwrap().json().await.unwrap();
        assert_eq!(list["data"], json!([]));
        let theirs =
            call(Method::POST, "/social-networks").json(&json!({ "platform": "x" })).send().await.unwrap();
        assert_eq!(theirs.status(), StatusCode::CREATED);
    }
    assert_eq!(world.get(&path(&network)).await, network);
    for id in ["7", "%00", "x", &uuid::Uuid::now_v7().to_string()] {
        fail(request(&world, Method::GET, &format!("/social-networks/{id}")), 404, "not_found").await;
    }
    let reader = key(&world, world.owner, &[Scope::NetworksRead]).await;
    let call =
        |method, path: &str| world.http.request(method, format!("{}{path}", world.base)).bearer_auth(&reader);
    assert_eq!(call(Method::GET, "/social-networks").send().await.unwrap().status(), StatusCode::OK);
    for (method, path, scope) in [
        (Method::POST, "/social-networks".to_owned(), "networks:write"),
        (Method::PATCH, path(&network), "networks:write"),
        (Method::DELETE, path(&network), "networks:write"),
        (Method::POST, "/social-networks/x/auth-url".to_owned(), "accounts:write"),
    ] {
        let (_, problem) = fail(call(method, &path).body("{"), 403, "insufficient_scope").await;
        assert!(problem["detail"].as_str().unwrap().contains(scope), "{problem}");
    }
}

/// Returns the authorization URL and its parameters.
async fn authorize(world: &World, body: Option<&Value>) -> (Url, HashMap<String, String>) {
    let (status, answer) = world.call(Method::POST, "/social-networks/x/auth-url", body).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert_eq!(answer.as_object().unwrap().len(), 1);
    let url: Url = answer["auth_url"].as_str().unwrap().parse().unwrap();
    let query = url.query_pairs().into_owned().collect();
    (url, query)
}

/// Claims the authorization request of a state, and returns it.
async fn intent(world: &World, state: &str) -> AuthorizationRequest {
    let state = Key::derive(&[0; 32]).open(state, Utc::now()).unwrap();
    assert_eq!(state.owner, world.owner);
    match oauth_states::claim(&world.db, state.owner, state.id).await.unwrap().unwrap() {
        Claim::First(intent) => intent,
        Claim::Repeated(_) => panic!("the state was claimed before"),
    }
}

#[tokio::test]
async fn authorization_urls_use_the_organizations_app_or_the_shared_one() {
    let world = world().start().await;
    let shared = sandbox::app("x").unwrap().client_id;
    let ours = format!("{}/connect/callback", world.base);

    // A missing body counts as an empty one.
    let (url, query) = authorize(&world, None).await;
    assert!(url.as_str().starts_with(&format!("{}/x.com/i/oauth2/authorize?", world.sandbox_url)), "{url}");
    assert_eq!((&query["client_id"], &query["redirect_uri"]), (&shared, &ours));
    assert_eq!((query["response_type"].as_str(), query["code_challenge_method"].as_str()), ("code", "S256"));
    assert!(query["state"].len() <= 500 && query["scope"].contains("tweet.write"));
    let page = world.http.get(url.clone()).send().await.unwrap();
    assert_eq!(page.status(), StatusCode::OK, "the sandbox shows a consent page: {url}");
    let plain = intent(&world, &query["state"]).await;
    assert_eq!((plain.network, plain.callback, plain.redirect_uri), (None, ours.clone(), None));
    assert_eq!(plain.scopes.join(" "), query["scope"]);
    assert_ne!(authorize(&world, Some(&json!({}))).await.1["state"], query["state"]);

    let ada = world.connect("x", "ada").await;
    let account = world.get(&format!("/social-accounts/{ada}")).await;
    let (_, network) = register(
        &world,
        json!({
            "platform": "x", "client_id": "our own", "scopes": ["tweet.read"],
            "redirect_uri": "https://example.com/callback",
        }),
    )
    .await;
    let narrowed = ["tweet.read", "tweet.write", "media.write", "offline.access", "users.read", "a+b"];
    let body = json!({
        "redirect_uri": "http://localhost:3000/done?a=b", "tenant_id": "t-1", "scopes": narrowed,
        "reconnect_account_id": ada, "force_reauth": true,
    });
    let (_, query) = authorize(&world, Some(&body)).await;
    assert_eq!(query["client_id"], "our own");
    assert_eq!(query["redirect_uri"], "https://example.com/callback");
    assert_eq!(query["scope"], narrowed.join(" "));
    let bound = intent(&world, &query["state"]).await;
    assert_eq!(
        bound,
        AuthorizationRequest {
            platform: "x".to_owned(),
            network: Some(network["id"].as_str().unwrap().parse().unwrap()),
            callback: "https://example.com/callback".to_owned(),
            redirect_uri: Some("http://localhost:3000/done?a=b".to_owned()),
            tenant_id: Some("t-1".to_owned()),
            scopes: narrowed.map(str::to_owned).to_vec(),
            account: Some(ada.parse().unwrap()),
            network_unique_id: Some(account["network_unique_id"].as_str().unwrap().to_owned()),
            is_forced: true,
            confirm: false,
            begun: Begun { with: bound.begun.with, ..Begun::default() },
        }
    );
    let (_, query) = authorize(&world, None).await;
    assert_eq!(query["scope"], "tweet.read", "the app's scopes, if the call names none");

    // If the app is disabled, deleted or has no client id, the shared app and our callback are used.
    for body in [json!({ "is_enabled": false }), json!({ "is_enabled": true, "client_id": null })] {
        world.call(Method::PATCH, &path(&network), Some(&body)).await;
        let (_, query) = authorize(&world, None).await;
        assert_eq!((&query["client_id"], &query["redirect_uri"]), (&shared, &ours), "{body}");
    }
    world.call(Method::DELETE, &path(&network), None).await;
    assert_eq!(authorize(&world, None).await.1["client_id"], shared);
}

#[tokio::test]
async fn an_authorization_url_requires_an_app() {
    let mut world = world().own().everywhere().start().await;
    let auth_url = |platform: &str| format!("/social-networks/{platform}/auth-url");
    for platform in ["twitter", "X", "7", "%00"] {
        fail(request(&world, Method::POST, &auth_url(platform)), 404, "not_found").await;
    }
    let (_, problem) =
        fail(request(&world, Method::POST, &auth_url("bluesky")), 400, "no_app_available").await;
    assert!(
        problem["detail"].as_str().unwrap().contains("POST /social-accounts/bluesky/connect"),
        "{problem}"
    );
    for platform in platforms::IDS.into_iter().filter(|id| platforms::get(id).is_none()) {
        fail(request(&world, Method::POST, &auth_url(platform)), 400, "no_app_available").await;
    }

    let live = key(&world, Owner { mode: Mode::Live, ..world.owner }, &[Scope::All]).await;
    let test = std::mem::replace(&mut world.key, live);
    fail(request(&world, Method::POST, &auth_url("x")), 400, "no_app_available").await;
    register(&world, json!({ "platform": "x", "client_id": "live", "is_enabled": false })).await;
    fail(request(&world, Method::POST, &auth_url("x")), 400, "no_app_available").await;
    register(&world, json!({ "platform": "x", "is_enabled": true })).await;
    let (url, query) = authorize(&world, None).await;
    assert_eq!((url.host_str(), query["client_id"].as_str()), (Some("x.com"), "live"));
    // A program on the user's own machine, in live mode as well.
    let loopback = authorize(&world, Some(&json!({ "redirect_uri": "http://localhost/" }))).await.1;
    assert_eq!(loopback["client_id"], "live");
    let http = json!({ "redirect_uri": "http://example.com/" });
    fail(request(&world, Method::POST, &auth_url("x")).json(&http), 400, "invalid_request").await;
    let (_, network) = register(&world, json!({ "platform": "x" })).await;
    world.call(Method::DELETE, &path(&network), None).await;

    // The operator shares an app: workers get its secret, the API needs only its client id.
    world.kill("all").await;
    world.set("FANFARE_SHARED_APPS", r#"{"x":{"client_id":"shared","client_secret":"s"}}"#);
    world.run("all").await;
    assert_eq!(authorize(&world, None).await.1["client_id"], "shared");
    world.kill("all").await;
    world.set("FANFARE_SHARED_APPS", "");
    world.set("FANFARE_SHARED_CLIENTS", r#"{"x":"named"}"#);
    world.run("all").await;
    assert_eq!(authorize(&world, None).await.1["client_id"], "named");
    world.key = test;
    assert_ne!(authorize(&world, None).await.1["client_id"], "named", "test mode ignores shared live apps");
}

#[tokio::test]
async fn authorization_parameters_are_validated() {
    let world = world().start().await;
    let (ada, bob) = (world.connect("x", "ada").await, world.connect("bluesky", "bob.bsky.social").await);
    let ask = |body: Value| request(&world, Method::POST, "/social-networks/x/auth-url").json(&body);
    for (body, path, code) in [
        (json!({ "redirect_uri": "nowhere" }), "redirect_uri", "invalid_string"),
        (json!({ "redirect_uri": "http://example.com/" }), "redirect_uri", "invalid_string"),
        (json!({ "redirect_uri": "javascript:alert(1)" }), "redirect_uri", "invalid_string"),
        (json!({ "redirect_uri": "https://a:b@example.com/" }), "redirect_uri", "invalid_string"),
        (json!({ "redirect_uri": "https://example.com/#a" }), "redirect_uri", "invalid_string"),
        (json!({ "redirect_uri": 7 }), "redirect_uri", "invalid_type"),
        (json!({ "tenant_id": "" }), "tenant_id", "too_small"),
        (json!({ "tenant_id": "a".repeat(256) }), "tenant_id", "too_big"),
        (json!({ "tenant_id": "a\u{0}" }), "tenant_id", "custom"),
        (json!({ "scopes": [] }), "scopes", "too_small"),
        (json!({ "scopes": [""] }), "scopes", "too_small"),
        (json!({ "reconnect_account_id": "ada" }), "reconnect_account_id", "invalid_string"),
        (json!({ "expected_network_unique_id": 7 }), "expected_network_unique_id", "invalid_type"),
        (json!({ "force_reauth": "yes" }), "force_reauth", "invalid_type"),
    ] {
        let (_, problem) = fail(ask(body.clone()), 400, "invalid_request").await;
        let issues = problem["errors"].as_array().unwrap();
        assert_eq!((&issues[0]["path"][0], &issues[0]["code"]), (&json!(path), &json!(code)), "{body}");
        assert_eq!(issues.len(), 1, "{problem}");
    }
    for account in [bob.clone(), uuid::Uuid::now_v7().to_string()] {
        let (_, problem) =
            fail(ask(json!({ "reconnect_account_id": account })), 422, "account_not_found").await;
        assert_eq!(problem["errors"][0]["path"], json!(["reconnect_account_id"]));
    }
    let both = json!({ "reconnect_account_id": ada, "expected_network_unique_id": "somebody else" });
    fail(ask(both), 422, "unprocessable").await;
    let (_, query) = authorize(&world, Some(&json!({ "expected_network_unique_id": "1234" }))).await;
    assert_eq!(intent(&world, &query["state"]).await.network_unique_id.as_deref(), Some("1234"));

    let allowed = "https://example.com/done";
    register(&world, json!({ "platform": "x", "extra_config": { "redirect_uris": [allowed] } })).await;
    for other in ["https://example.com/done/", "https://example.com/", "https://example.org/done"] {
        let (_, problem) = fail(ask(json!({ "redirect_uri": other })), 400, "invalid_request").await;
        assert_eq!(problem["errors"][0]["path"], json!(["redirect_uri"]));
    }
    let (_, query) = authorize(&world, Some(&json!({ "redirect_uri": allowed }))).await;
    assert_eq!(intent(&world, &query["state"]).await.redirect_uri.as_deref(), Some(allowed));
    authorize(&world, None).await;

    // An app's own scheme is allowed where it is listed.
    let app = "com.example.app:/connected";
    fail(ask(json!({ "redirect_uri": app })), 400, "invalid_request").await;
    register(&world, json!({ "platform": "x", "extra_config": { "redirect_uris": [app] } })).await;
    let (_, query) = authorize(&world, Some(&json!({ "redirect_uri": app }))).await;
    assert_eq!(intent(&world, &query["state"]).await.redirect_uri.as_deref(), Some(app));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authorization_is_claimed_once() {
    let db = database().await;
    let owner = Owner { org: organizations::create(&db, "Acme").await.unwrap(), mode: Mode::Test };
    let intent = AuthorizationRequest {
        platform: "x".to_owned(),
        network: None,
        callback: "https://example.com/callback".to_owned(),
        redirect_uri: None,
        tenant_id: None,
        scopes: vec!["a".to_owned()],
        account: None,
        network_unique_id: None,
        is_forced: false,
        confirm: false,
        begun: Begun { account_tenant: Some("t".to_owned()), ..Begun::default() },
    };
    let now = Utc::now();
    let keep = async |at: DateTime<Utc>| {
        oauth_states::store(&db, owner, &intent, at, at + TimeDelta::minutes(15)).await.unwrap()
    };
    let id = keep(now).await;
    let stranger = Owner { mode: Mode::Live, ..owner };
    assert_eq!(oauth_states::claim(&db, stranger, id).await.unwrap(), None);
    let claims = join_all((0..16).map(|_| oauth_states::claim(&db, owner, id))).await;
    let claims: Vec<_> = claims.into_iter().map(|claim| claim.unwrap().unwrap()).collect();
    let first = claims.iter().filter(|claim| **claim == Claim::First(intent.clone())).count();
    let repeated = claims.iter().filter(|claim| **claim == Claim::Repeated(intent.clone())).count();
    assert_eq!((first, repeated), (1, 15));

    // A late callback still finds its request, until a new request deletes it a day after its expiry.
    keep(now + TimeDelta::hours(24)).await;
    assert!(oauth_states::claim(&db, owner, id).await.unwrap().is_some());
    keep(now + TimeDelta::hours(25)).await;
    assert_eq!(oauth_states::claim(&db, owner, id).await.unwrap(), None);
}
