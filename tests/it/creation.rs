//! Creation of posts, their fields and limits, and lists of posts and accounts.

use crate::world;
use ::store::accounts::{self, Connect};
use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tests::World;

fn path(post: &Value) -> String {
    format!("/posts/{}", post["id"].as_str().unwrap())
}

/// Connects a Bluesky account with the username of an account on X, and returns its id.
async fn namesake(world: &World, username: &str) -> String {
    let connect = Connect {
        platform: "bluesky".to_owned(),
        profile: domain::AccountProfile {
            network_unique_id: format!("did:web:{username}"),
            username: username.to_owned(),
            display_name: username.to_owned(),
            account_type: "profile".to_owned(),
            profile_image_url: None,
            profile_url: None,
        },
        tenant_id: None,
        social_network_id: None,
        scopes: Vec::new(),
        token_expires_at: None,
        grant_expires_at: None,
    };
    let mut tx = ::store::begin(&world.db).await.unwrap();
    let connected =
        accounts::upsert(&mut tx, world.owner, connect, |_| Vec::new(), tests::now()).await.unwrap();
    tx.commit().await.unwrap();
    connected.account.id.to_string()
}

#[tokio::test]
async fn a_created_post_returns_every_requested_field() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let body = json!({
        "containers": [{ "content": "Main" }, { "content": "Comment" }, { "content": "Thread" }],
        "accounts": ["ada"], "scheduled_at": "2040-01-02T03:04:05+01:00", "external_ref": "ref",
        "config": { "x": { "reply_settings": "following" } },
    });
    let post = world.post(body).await;
    let keys: BTreeSet<_> = post.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "id",
        "status",
        "is_draft",
        "scheduled_at",
        "published_at",
        "reply_to",
        "default_config",
        "external_ref",
        "metadata",
        "created_at",
        "updated_at",
        "containers",
        "variants",
        "targets",
    ];
    assert_eq!(keys, expected.into());
    assert_eq!((&post["status"], &post["is_draft"]), (&json!("scheduled"), &json!(false)));
    assert_eq!(post["scheduled_at"], "2040-01-02T02:04:05.000Z");
    assert_eq!((&post["published_at"], &post["external_ref"]), (&Value::Null, &json!("ref")));
    assert_eq!(post["default_config"], json!({ "x": { "reply_settings": "following" } }));
    let containers: Vec<_> = post["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|container| json!([container["position"], container["role"], container["content"]]))
        .collect();
    let expected = json!([[0, "main", "Main"], [1, "first_comment", "Comment"], [2, "thread", "Thread"]]);
    assert_eq!(json!(containers), expected);
    let target = &post["targets"][0];
    assert_eq!(
        json!([target["social_account_id"], target["platform"], target["status"], target["attempts"]]),
        json!([ada, "x", "pending", 0])
    );
    let empty = [
        "platform_post_id",
        "platform_post_url",
        "error_code",
        "error_message",
        "error_source",
        "next_attempt_at",
        "published_at",
    ];
    for key in empty {
        assert_eq!(target.get(key), Some(&Value::Null), "{key}");
    }
    let id = post["id"].as_str().unwrap();
    let read = world.get(&format!("/posts/{id}")).await;
    assert_eq!(read["targets"][0]["id"], target["id"]);
    let summary = world.get("/posts").await["data"][0].clone();
    let keys: BTreeSet<_> = summary.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = ["id", "status", "is_draft", "scheduled_at", "published_at", "created_at"];
    assert_eq!(keys, expected.into());

    let now = world.post(json!({ "content": "Now", "accounts": [ada], "config": null })).await;
    assert_eq!((&now["status"], &now["default_config"]), (&json!("queued"), &json!({})));
}

#[tokio::test]
async fn limits_are_exact() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let texts = |count: usize| vec![json!({ "content": "a" }); count];
    let draft = |mut body: Value| {
        body["accounts"] = json!(["ada"]);
        body["is_draft"] = json!(true);
        body
    };
    for body in [
        json!({ "containers": texts(1) }),
        json!({ "containers": texts(10) }),
        json!({ "content": "a".repeat(280) }),
        json!({ "content": "a", "external_ref": "r".repeat(255) }),
        json!({ "content": "a", "external_ref": "é".repeat(255) }),
    ] {
        world.post(draft(body)).await;
    }
    for (body, path, code) in [
        (json!({ "containers": [] }), json!(["containers"]), "too_small"),
        (json!({ "containers": texts(11) }), json!(["containers"]), "too_big"),
        (json!({ "content": "" }), json!(["content"]), "too_small"),
        (json!({ "content": "a", "external_ref": "" }), json!(["external_ref"]), "too_small"),
        (json!({ "content": "a", "external_ref": "é".repeat(256) }), json!(["external_ref"]), "too_big"),
    ] {
        let (status, problem) = world.call(Method::POST, "/posts", Some(&draft(body.clone()))).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        let issue = &problem["errors"][0];
        assert_eq!((&issue["path"], &issue["code"]), (&path, &json!(code)), "{body}: {problem}");
    }
    let create = async |content: &str, accounts: usize| {
        let body = json!({ "content": content, "accounts": vec!["ada"; accounts], "is_draft": true });
        let (status, answer) = world.call(Method::POST, "/posts", Some(&body)).await;
        (status.as_u16(), answer["errors"].clone())
    };
    assert_eq!(create("a", 1000).await.0, 201);
    let (status, errors) = create("a", 1001).await;
    assert_eq!((status, errors.as_array().map(Vec::len)), (400, Some(1)), "{errors}");
    assert_eq!((&errors[0]["path"], &errors[0]["code"]), (&json!(["accounts"]), &json!("too_big")));
    assert_eq!(errors[0]["maximum"], 1000);
    // A draft may be too long for X; a text that is too long for every platform is a 400.
    assert_eq!(create(&"é".repeat(100_000), 1).await.0, 201);
    let (status, errors) = create(&"é".repeat(100_001), 1).await;
    assert_eq!((status, &errors[0]["code"]), (400, &json!("too_big")), "{errors}");
}

#[tokio::test]
async fn an_account_is_identified_by_id_username_or_network_id() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let account = world.get(&format!("/social-accounts/{ada}")).await;
    let names = [json!(ada), json!("ada"), account["network_unique_id"].clone()];
    let body = json!({ "content": "a", "accounts": names, "is_draft": true });
    let post = world.post(body).await;
    assert_eq!(post["targets"].as_array().unwrap().len(), 1, "an account named three times is one target");
    assert_eq!(post["targets"][0]["social_account_id"], json!(ada));

    // With the same username on another platform only the id is unambiguous.
    let same = namesake(&world, "ada").await;
    let body = json!({ "content": "a", "accounts": ["ada"], "is_draft": true });
    let (status, problem) = world.call(Method::POST, "/posts", Some(&body)).await;
    assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("ambiguous_account")), "{problem}");
    assert_eq!(problem["errors"][0]["path"], json!(["accounts", 0]));
    let post = world.post(json!({ "content": "a", "accounts": [same, ada], "is_draft": true })).await;
    assert_eq!(post["targets"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn settings_are_sent_only_to_their_platform() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    let post = world
        .post(json!({
            "content": "Whom it may concern", "accounts": ["ada", "ada.bsky.social"],
            "x": { "reply_settings": "nobody at all" },
            "config": { "x": { "reply_settings": "following", "later": 1 }, "bluesky": { "languages": ["eo"] } },
        }))
        .await;
    let expected = json!({
        "x": { "reply_settings": "following", "later": 1 },
        "bluesky": { "languages": ["eo"] },
    });
    assert_eq!(post["default_config"], expected);
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    let record = ended["targets"].as_array().unwrap().iter().find(|target| target["platform"] == "bluesky");
    let uri = record.unwrap()["platform_post_id"].as_str().unwrap();
    let (repo, rest) = uri.strip_prefix("at://").unwrap().split_once('/').unwrap();
    let (collection, key) = rest.split_once('/').unwrap();
    let url = format!(
        "{}/bsky.social/xrpc/com.atproto.repo.getRecord?repo={repo}&collection={collection}&rkey={key}",
        world.sandbox_url
    );
    let record: Value = world.http.get(url).send().await.unwrap().json().await.unwrap();
    assert_eq!(record["value"]["langs"], json!(["eo"]), "{record:#}");
    assert!(!record.to_string().contains("following"), "{record:#}");
}

#[tokio::test]
async fn settings_are_returned_unchanged() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let odd = json!({
        "largest": [f64::MAX, f64::MIN, u64::MAX, i64::MIN],
        "smallest": [5e-324, f64::MIN_POSITIVE, 0.1, 1e22],
        "": { "\u{1}\u{fffd}\u{10ffff}": null, "nested": [[[[{}]]]] },
    });
    let body = json!({ "content": "a", "accounts": ["ada"], "is_draft": true, "config": { "reddit": odd } });
    let post = world.post(body).await;
    assert_eq!(post["default_config"], json!({ "reddit": odd }));
    assert_eq!(world.get(&path(&post)).await["default_config"], json!({ "reddit": odd }));
    // A number outside the range of a double is rejected.
    let body = r#"{"content":"a","accounts":["ada"],"is_draft":true,"config":{"reddit":{"n":1e400}}}"#;
    let request = world.http.post(format!("{}/posts", world.base)).bearer_auth(&world.key);
    let response = request.header(header::CONTENT_TYPE, "application/json").body(body).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn deleting_a_published_post_leaves_it_on_the_platform() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let post = world.post(json!({ "content": "Stays", "accounts": ["ada"] })).await;
    let ended = world.ended(&post).await;
    let (status, body) = world.call(Method::DELETE, &path(&post), None).await;
    assert_eq!((status, body), (StatusCode::OK, json!({ "id": post["id"], "canceled": true })));
    assert_eq!(world.call(Method::GET, &path(&post), None).await.0, StatusCode::NOT_FOUND);
    assert_eq!(world.call(Method::DELETE, &path(&post), None).await.0, StatusCode::NOT_FOUND);
    let url = ended["targets"][0]["platform_post_url"].as_str().unwrap();
    let page = world.http.get(url).send().await.unwrap();
    assert!(page.status().is_success() && page.text().await.unwrap().contains("Stays"));
}

#[tokio::test]
async fn accounts_are_filtered_by_every_parameter() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let bob = world.connect("x", "bob").await;
    let sky = namesake(&world, "ada").await;
    let patch = json!({ "tenant_id": "acme" });
    world.call(Method::PATCH, &format!("/social-accounts/{bob}"), Some(&patch)).await;
    let network_unique_id = world.get(&format!("/social-accounts/{sky}")).await["network_unique_id"].clone();
    let network_unique_id = network_unique_id.as_str().unwrap();
    for (query, expected) in [
        (String::new(), vec![&sky, &bob, &ada]),
        ("platform=x".to_owned(), vec![&bob, &ada]),
        ("username=ada".to_owned(), vec![&sky, &ada]),
        ("username=ada&platform=x".to_owned(), vec![&ada]),
        ("username=Bob".to_owned(), vec![]),
        ("tenant_id=acme".to_owned(), vec![&bob]),
        (format!("id={sky}"), vec![&sky]),
        (format!("network_unique_id={network_unique_id}"), vec![&sky]),
        (format!("networkUniqueId={network_unique_id}"), vec![&sky]),
        (format!("networkUniqueId={network_unique_id}&platform=x"), vec![]),
    ] {
        let page = world.get(&format!("/social-accounts?{query}")).await;
        let found: Vec<_> =
            page["data"].as_array().unwrap().iter().map(|account| account["id"].as_str().unwrap()).collect();
        assert_eq!(found, expected, "{query}");
    }
    let page = world.get("/social-accounts?limit=2").await;
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("/social-accounts?limit=2&cursor={cursor}")).await;
    assert_eq!((&rest["data"][0]["id"], &rest["next_cursor"]), (&json!(ada), &Value::Null));
}

#[tokio::test]
async fn a_page_has_25_rows_by_default() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let draft = json!({ "content": "a", "accounts": ["ada"], "is_draft": true });
    for count in [20, 6] {
        let batch = json!({ "posts": vec![&draft; count] });
        assert_eq!(world.call(Method::POST, "/posts/batch", Some(&batch)).await.0, StatusCode::MULTI_STATUS);
    }
    let page = world.get("/posts").await;
    assert_eq!(page["data"].as_array().unwrap().len(), 25);
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("/posts?cursor={cursor}")).await;
    assert_eq!((rest["data"].as_array().unwrap().len(), &rest["next_cursor"]), (1, &Value::Null));
}

#[tokio::test]
async fn without_its_database_the_api_returns_503() {
    let mut world = world().running(&[]).start().await;
    world.set("DATABASE_URL", "postgres://fanfare@127.0.0.1:9/fanfare");
    let log = tests::directory().join(format!("without-database-{}.log", world.owner.org));
    world.log_to(&log);
    world.run("api").await;
    let draft = json!({ "content": "a", "accounts": ["ada"], "is_draft": true });
    for (method, path, body) in [
        (Method::GET, "/posts", None),
        (Method::GET, "/posts/7", None),
        (Method::POST, "/posts", Some(&draft)),
        (Method::GET, "/social-accounts", None),
        (Method::GET, "/webhooks", None),
    ] {
        let request = world.http.request(method, format!("{}{path}", world.base)).bearer_auth(&world.key);
        let request = request.header("X-Request-Id", "proxy-7");
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert!(response.headers()[header::RETRY_AFTER].to_str().unwrap().parse::<u32>().unwrap() > 0);
        let problem: Value = response.json().await.unwrap();
        assert_eq!((&problem["code"], &problem["status"]), (&json!("unavailable"), &json!(503)), "{problem}");
        let text = std::fs::read_to_string(&log).unwrap();
        let id = problem["request_id"].as_str().unwrap();
        let mut lines = text.lines().filter(|line| line.contains(id));
        let line = lines.next().unwrap_or_else(|| panic!("no line has {id}: {text}"));
        assert!(line.contains("The database is unavailable") && line.contains("proxy-7"), "{line}");
    }
    // Endpoints without a database query still respond.
    let document = world.http.get(format!("{}/openapi.json", world.base)).send().await.unwrap();
    assert_eq!(document.status(), StatusCode::OK);
    let root = world.base.trim_end_matches("/api/v1");
    // A restart would not bring the database back.
    for (probe, status) in [("healthz", StatusCode::OK), ("readyz", StatusCode::SERVICE_UNAVAILABLE)] {
        let health = world.http.get(format!("{root}/{probe}")).send().await.unwrap();
        assert_eq!(health.status(), status, "{probe}");
    }
}
