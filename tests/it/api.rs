//! Behavior common to all endpoints: authentication, scopes, problem documents, idempotency and pagination.

use crate::world;
use chrono::Utc;
use domain::{Mode, Owner, scope::Scope};
use futures::future::join_all;
use reqwest::{
    Method, RequestBuilder, StatusCode,
    header::{self, HeaderValue},
};
use serde_json::{Value, json};
use std::{collections::HashSet, time::Duration};
use store::{
    accounts,
    bounds::unbounded,
    people::{
        keys::{self, NewKey},
        organizations,
    },
    posts::{self, Container, NewPost},
};
use tests::{World, samples::png};

/// Creates a key for an owner and returns its text.
pub(crate) async fn key(world: &World, owner: Owner, scopes: &[Scope]) -> String {
    let new = NewKey { owner, name: "another".to_owned(), scopes: scopes.to_vec(), expires_at: None };
    keys::create(&world.db, new, Utc::now()).await.unwrap().1
}

pub(crate) fn request(world: &World, method: Method, path: &str) -> RequestBuilder {
    world.http.request(method, format!("{}{path}", world.base)).bearer_auth(&world.key)
}

/// Sends a request that must fail, checks the problem document, and returns the headers and the document.
pub(crate) async fn fail(request: RequestBuilder, status: u16, code: &str) -> (header::HeaderMap, Value) {
    let response = request.send().await.unwrap();
    let (found, headers) = (response.status().as_u16(), response.headers().clone());
    let text = response.text().await.unwrap();
    let problem: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{found}: not JSON: {text}"));
    assert_eq!((found, &problem["code"]), (status, &json!(code)), "{problem}");
    assert_eq!(headers[header::CONTENT_TYPE], "application/problem+json");
    assert_eq!((&problem["type"], &problem["status"]), (&json!("about:blank"), &json!(status)));
    assert!(problem["title"].is_string() && problem["detail"].is_string(), "{problem}");
    assert_eq!(problem["request_id"], headers["x-request-id"].to_str().unwrap(), "{problem}");
    (headers, problem)
}

#[tokio::test]
async fn every_failure_is_a_problem_document() {
    let world = world().start().await;
    let id = uuid::Uuid::now_v7();

    for path in ["/nowhere", "/posts/", "/posts/%ff", "/posts/7/nowhere", ""] {
        fail(request(&world, Method::GET, path), 404, "not_found").await;
    }
    for (method, path, allow) in [
        (Method::PUT, "/posts".to_owned(), "GET, HEAD, POST"),
        (Method::PUT, format!("/posts/{id}"), "DELETE, GET, HEAD, PATCH"),
        (Method::OPTIONS, format!("/posts/{id}/timeline"), "GET, HEAD"),
        (Method::POST, "/social-accounts".to_owned(), "GET, HEAD"),
        (Method::POST, "/openapi.json".to_owned(), "GET, HEAD"),
    ] {
        let (headers, _) = fail(request(&world, method, &path), 405, "method_not_allowed").await;
        assert_eq!(headers[header::ALLOW], allow, "{path}");
    }
    for path in ["/posts/7", "/social-accounts/7", "/webhooks/7"] {
        fail(request(&world, Method::GET, path), 404, "not_found").await;
        let (prefix, _) = path.rsplit_once('/').unwrap();
        fail(request(&world, Method::GET, &format!("{prefix}/{id}")), 404, "not_found").await;
    }

    let post = || request(&world, Method::POST, "/posts").header(header::CONTENT_TYPE, "application/json");
    let deep = format!(r#"{{"content":"a","x":{}1{}}}"#, r#"{"a":"#.repeat(1000), "}".repeat(1000));
    for body in [
        &b""[..],
        b"{",
        b"[]",
        b"null",
        b"\"a\"",
        b"{\"content\":\"\xff\"}",
        b"{\"content\":\"\\ud800\"}",
        deep.as_bytes(),
    ] {
        let (_, problem) = fail(post().body(body.to_vec()), 400, "invalid_request").await;
        assert_eq!(problem["errors"].as_array().unwrap().len(), 1, "{problem}");
    }
    let text = request(&world, Method::POST, "/posts").header(header::CONTENT_TYPE, "text/plain").body("{}");
    fail(text, 400, "invalid_request").await;

    let large = format!(r#"{{"content":"{}","accounts":["ada"]}}"#, "a".repeat(3 << 20));
    fail(post().body(large.clone()), 413, "payload_too_large").await;
    let chunks = futures::stream::iter(
        large
            .into_bytes()
            .chunks(65_536)
            .map(<[u8]>::to_vec)
            .map(Ok::<_, std::io::Error>)
            .collect::<Vec<_>>(),
    );
    fail(post().body(reqwest::Body::wrap_stream(chunks)), 413, "payload_too_large").await;
}

#[tokio::test]
async fn every_response_has_a_request_id_of_its_own() {
    let world = world().start().await;
    let root = world.base.trim_end_matches("/api/v1");
    let mut seen = HashSet::new();
    for (method, url, status) in [
        (Method::GET, format!("{}/posts", world.base), 200),
        (Method::GET, format!("{}/posts", world.base), 200),
        (Method::GET, format!("{}/posts/7", world.base), 404),
        (Method::PUT, format!("{}/posts", world.base), 405),
        (Method::GET, format!("{}/openapi.json", world.base), 200),
        (Method::GET, format!("{}/connect/callback", world.base), 400),
        (Method::GET, format!("{}/connect/choose/none", world.base), 404),
        (Method::GET, format!("{root}/api/mcp"), 405),
        (Method::GET, format!("{root}/nowhere"), 404),
        (Method::GET, format!("{root}/dashboard"), 401),
        (Method::GET, format!("{root}/docs"), 200),
        (Method::GET, format!("{root}/healthz"), 200),
    ] {
        // A client can't choose the id.
        let sent = "req_00000000000000000000000000000000";
        let request = world.http.request(method, &url).bearer_auth(&world.key).header("X-Request-Id", sent);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status, "{url}");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff", "{url}");
        assert!(!response.headers().contains_key("strict-transport-security"), "{url}: not with https");
        let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
        assert!(id.starts_with("req_") && id.len() == 36 && id != sent, "{url}: {id}");
        assert!(seen.insert(id), "{url}: another response had the same id");
    }
}

#[tokio::test]
async fn all_errors_of_a_body_are_returned_together() {
    let world = world().start().await;
    for (path, body, expected) in [
        (
            "/posts",
            json!({
                "content": 5, "containers": [{ "content": "" }, { "media": [{ "id": 7 }] }], "accounts": [],
                "scheduled_at": "tomorrow", "is_draft": "yes", "config": { "x": 1, "twitter": {} },
                "external_ref": "r".repeat(256), "queue_timezone": "Mars/Olympus", "tiktok": [],
            }),
            json!([
                [["accounts"], "too_small"],
                [["config"], "unrecognized_keys"],
                [["config", "x"], "invalid_type"],
                [["containers"], "custom"],
                [["containers", 0, "content"], "too_small"],
                [["containers", 1, "content"], "invalid_type"],
                [["containers", 1, "media", 0, "id"], "invalid_type"],
                [["content"], "invalid_type"],
                [["external_ref"], "too_big"],
                [["is_draft"], "invalid_type"],
                [["queue_timezone"], "custom"],
                [["scheduled_at"], "invalid_string"],
                [["tiktok"], "invalid_type"],
            ]),
        ),
        ("/posts", json!({}), json!([[["accounts"], "invalid_type"], [["content"], "custom"]])),
        (
            "/posts",
            json!({ "content": "a\u{0}", "accounts": ["ada"], "x": { "a\u{0}": 1 } }),
            json!([[["content"], "custom"], [["x", "a\u{0}"], "custom"]]),
        ),
        (
            "/posts",
            json!({ "content": "a", "accounts": ["ada"], "queued_from_account": "ada", "is_draft": true }),
            json!([[["queued_from_account"], "custom"]]),
        ),
        (
            "/webhooks",
            json!({ "url": "nowhere", "events": ["post.gone"], "signing_secret": "" }),
            json!([
                [["events", 0], "invalid_enum_value"],
                [["signing_secret"], "too_small"],
                [["url"], "invalid_string"],
            ]),
        ),
        ("/webhooks", json!({ "events": [] }), json!([[["events"], "too_small"], [["url"], "invalid_type"]])),
        (
            "/webhooks",
            json!({ "url": "https://10.0.0.1/", "events": ["*"] }),
            json!([[["url"], "invalid_string"]]),
        ),
        (
            "/webhooks",
            json!({ "url": "ftp://127.0.0.1/", "events": ["*"] }),
            json!([[["url"], "invalid_string"]]),
        ),
    ] {
        let (_, problem) =
            fail(request(&world, Method::POST, path).json(&body), 400, "invalid_request").await;
        let issues = problem["errors"].as_array().unwrap();
        let mut reported: Vec<_> = issues.iter().map(|issue| json!([issue["path"], issue["code"]])).collect();
        reported.sort_by_key(Value::to_string);
        let mut expected = expected.as_array().unwrap().clone();
        expected.sort_by_key(Value::to_string);
        assert_eq!(reported, expected, "{body}");
    }
    let (_, problem) = fail(
        request(&world, Method::GET, "/posts?limit=ten&status=gone&created_after=soon&social_account_id=7"),
        400,
        "invalid_request",
    )
    .await;
    let reported: Vec<_> =
        problem["errors"].as_array().unwrap().iter().map(|issue| &issue["path"][0]).collect();
    assert_eq!(reported, ["limit", "status", "social_account_id", "created_after"]);
}

#[tokio::test]
async fn errors_that_depend_on_stored_data_are_422() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let bob = world.connect("bluesky", "bob").await;
    let long = "a".repeat(10_000);
    for (body, code) in [
        (json!({ "content": "a", "accounts": ["ada", "nobody"] }), "account_not_found"),
        (json!({ "content": "a", "accounts": [uuid::Uuid::now_v7()] }), "account_not_found"),
        (json!({ "content": "a", "accounts": ["ada"], "queued_from_account": bob }), "unprocessable"),
        (json!({ "content": "a", "accounts": ["ada"], "queued_from_account": "ada" }), "no_open_slot"),
        (
            json!({ "containers": [{ "content": "", "media": [{ "id": "none" }] }], "accounts": ["ada"] }),
            "media_not_ready",
        ),
        (json!({ "content": long, "accounts": ["ada", bob] }), "content_rejected"),
    ] {
        let (_, problem) = fail(request(&world, Method::POST, "/posts").json(&body), 422, code).await;
        if code == "content_rejected" {
            let platforms: HashSet<_> =
                problem["errors"].as_array().unwrap().iter().map(|issue| &issue["platform"]).collect();
            assert_eq!(platforms, HashSet::from([&json!("x"), &json!("bluesky")]), "{problem}");
        }
    }
    assert_eq!(world.get("/posts").await["data"], json!([]), "a rejected post is not stored");
}

#[tokio::test]
async fn a_key_allows_only_its_scopes() {
    let world = world().start().await;
    let bare = world.http.get(format!("{}/posts", world.base));
    let (headers, _) = fail(bare.try_clone().unwrap(), 401, "unauthorized").await;
    assert_eq!(headers[header::WWW_AUTHENTICATE], "Bearer");
    for value in ["Basic YTpi", "Bearer", "Bearer sk_test_unknown", &world.key] {
        let request = bare.try_clone().unwrap().header(header::AUTHORIZATION, value);
        fail(request, 401, "unauthorized").await;
    }
    let reader = key(&world, world.owner, &[Scope::PostsRead]).await;
    let call =
        |method, path: &str| world.http.request(method, format!("{}{path}", world.base)).bearer_auth(&reader);
    assert_eq!(call(Method::GET, "/posts").send().await.unwrap().status(), StatusCode::OK);
    for (method, path, scope) in [
        (Method::POST, "/posts", "posts:write"),
        (Method::DELETE, "/posts/7", "posts:write"),
        (Method::GET, "/social-accounts", "accounts:read"),
        (Method::GET, "/webhooks", "webhooks:read"),
        (Method::POST, "/webhooks", "webhooks:write"),
    ] {
        // The scope is checked before the body is parsed.
        let (_, problem) = fail(call(method, path).body("{"), 403, "insufficient_scope").await;
        assert!(problem["detail"].as_str().unwrap().contains(scope), "{problem}");
    }
}

#[tokio::test]
async fn another_owner_sees_nothing() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let post = world.post(json!({ "content": "Mine", "accounts": ["ada"], "is_draft": true })).await;
    let webhook = world.subscribe("http://127.0.0.1:9/hook").await;
    let stranger = organizations::create(&world.db, "Stranger").await.unwrap();
    for owner in [Owner { mode: Mode::Live, ..world.owner }, Owner { org: stranger, ..world.owner }] {
        let other = key(&world, owner, &[Scope::All]).await;
        let call = |method, path: String| {
            world.http.request(method, format!("{}{path}", world.base)).bearer_auth(&other)
        };
        let paths = [
            format!("/posts/{}", post["id"].as_str().unwrap()),
            format!("/webhooks/{}", webhook["id"].as_str().unwrap()),
        ];
        for path in paths {
            fail(call(Method::GET, path.clone()), 404, "not_found").await;
            fail(call(Method::DELETE, path), 404, "not_found").await;
        }
        fail(call(Method::GET, format!("/social-accounts/{account}")), 404, "not_found").await;
        for list in ["/posts", "/social-accounts", "/webhooks"] {
            let body: Value = call(Method::GET, list.to_owned()).send().await.unwrap().json().await.unwrap();
            assert_eq!(body["data"], json!([]), "{list}");
        }
        let body = json!({ "content": "Theirs", "accounts": [account] });
        fail(call(Method::POST, "/posts".to_owned()).json(&body), 422, "account_not_found").await;
    }
}

#[tokio::test]
async fn an_idempotency_key_belongs_to_one_organization_and_mode() {
    let mut world = world().start().await;
    let elsewhere = organizations::create(&world.db, "Elsewhere").await.unwrap();
    let body = json!({ "content": "Once", "accounts": ["ada"], "is_draft": true, "external_ref": "order-7" });
    let mut ids = HashSet::new();
    let own = world.owner;
    for owner in [own, Owner { mode: Mode::Live, ..own }, Owner { org: elsewhere, ..own }] {
        world.key = key(&world, owner, &[Scope::All]).await;
        world.owner = owner;
        world.connect("x", "ada").await;
        for expected in [StatusCode::CREATED, StatusCode::OK] {
            let (status, post) = world.call(Method::POST, "/posts", Some(&body)).await;
            assert_eq!(status, expected, "{owner:?}: {post}");
            ids.insert(post["id"].to_string());
        }
    }
    assert_eq!(ids.len(), 3, "one post per organization and mode");
}

#[tokio::test]
async fn an_idempotency_key_creates_one_post_from_header_or_body() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let body = json!({ "content": "Once", "accounts": ["ada"], "is_draft": true });
    let send =
        || request(&world, Method::POST, "/posts").json(&body).header("Idempotency-Key", "order-7").send();
    let answers: Vec<_> = join_all((0..8).map(|_| send())).await.into_iter().map(Result::unwrap).collect();
    let is_replay = |answer: &reqwest::Response| {
        answer.headers().get("Idempotent-Replayed").is_some_and(|value| value == "true")
    };
    let created =
        answers.iter().filter(|answer| answer.status() == StatusCode::CREATED && !is_replay(answer)).count();
    let replayed =
        answers.iter().filter(|answer| answer.status() == StatusCode::OK && is_replay(answer)).count();
    assert_eq!((created, replayed), (1, 7));
    let mut ids = HashSet::new();
    for answer in answers {
        let post: Value = answer.json().await.unwrap();
        assert_eq!(post["external_ref"], "order-7");
        ids.insert(post["id"].to_string());
    }
    assert_eq!(ids.len(), 1);

    // The rest of the body is ignored, and the key may be in the body instead of the header.
    let (status, again) = world
        .call(
            Method::POST,
            "/posts",
            Some(&json!({ "content": "Other", "accounts": ["nobody"], "external_ref": "order-7" })),
        )
        .await;
    assert_eq!((status, ids.contains(&again["id"].to_string())), (StatusCode::OK, true));
    // The key of a deleted post returns that post, in its current state.
    let path = format!("/posts/{}", again["id"].as_str().unwrap());
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
    let replay = send().await.unwrap();
    assert!(is_replay(&replay) && replay.status() == StatusCode::OK);
    let replay: Value = replay.json().await.unwrap();
    assert_eq!((&replay["id"], &replay["status"]), (&again["id"], &json!("canceled")));
    // The body's key takes precedence.
    let both = request(&world, Method::POST, "/posts").header("Idempotency-Key", "order-8");
    let body = json!({ "content": "a", "accounts": ["ada"], "external_ref": "order-7" });
    let both = both.json(&body).send().await.unwrap();
    assert!(is_replay(&both));
    assert_eq!(both.json::<Value>().await.unwrap()["id"], again["id"]);
    let long = request(&world, Method::POST, "/posts").header("Idempotency-Key", "r".repeat(256));
    fail(long.json(&json!({ "content": "a", "accounts": ["ada"] })), 400, "invalid_request").await;
    assert_eq!(world.get("/posts").await["data"], json!([]));
}

#[tokio::test]
async fn an_idempotency_key_in_the_header_is_any_text_or_an_error() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let send = async |lines: &[&[u8]], more: Value| {
        let mut body = json!({ "content": "Once", "accounts": ["ada"], "is_draft": true });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut request = request(&world, Method::POST, "/posts").json(&body);
        for line in lines {
            request = request.header("Idempotency-Key", HeaderValue::from_bytes(line).unwrap());
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let long = "é".repeat(255);
    for key in ["commande-été-7", "注文 7", &long] {
        let (status, first) = send(&[key.as_bytes()], json!({})).await;
        assert_eq!((status, &first["external_ref"]), (201, &json!(key)), "{first}");
        for (lines, more) in [(&[key.as_bytes()][..], json!({})), (&[], json!({ "external_ref": key }))] {
            let (status, replay) = send(lines, more).await;
            assert_eq!((status, &replay["id"]), (200, &first["id"]), "{key}");
        }
    }
    let too_long = "é".repeat(256);
    for lines in [
        &[&b"commande-\xe9t\xe9-7"[..]][..],
        &[b"one", b"other"],
        &[b"same", b"same"],
        &[b""],
        &[too_long.as_bytes()],
    ] {
        let (status, problem) = send(lines, json!({})).await;
        assert_eq!(
            (status, &problem["detail"]),
            (400, &json!("invalid Idempotency-Key header")),
            "{problem}"
        );
        assert_eq!(problem["errors"][0]["path"], json!(["Idempotency-Key"]), "{problem}");
        // The body's key counts, and the header is not consulted.
        let key = format!("{lines:?}").chars().take(200).collect::<String>();
        let (status, post) = send(lines, json!({ "external_ref": key })).await;
        assert_eq!((status, &post["external_ref"]), (201, &json!(key)), "{post}");
    }
}

#[tokio::test]
async fn a_header_that_cannot_be_read_is_refused_and_never_counts_as_absent() {
    let world = world().start().await;
    let root = world.base.trim_end_matches("/api/v1");
    let bytes = |text: &[u8]| HeaderValue::from_bytes(text).unwrap();
    let create = || request(&world, Method::POST, "/posts").body("{}");
    let ask = || world.http.post(format!("{root}/api/mcp")).bearer_auth(&world.key).body("{}");
    for (request, name) in [
        (create().header("Content-Type", bytes(b"text/pl\xe4in")), "Content-Type"),
        (
            create().header("Content-Type", "application/json").header("Content-Type", "text/plain"),
            "Content-Type",
        ),
        (ask().header("MCP-Protocol-Version", bytes(b"\xe9")), "MCP-Protocol-Version"),
        (ask().header("Mcp-Session-Id", bytes(b"\xe9")), "Mcp-Session-Id"),
        (ask().header("Origin", bytes(b"https://\xe9")), "Origin"),
    ] {
        let (_, problem) = fail(request, 400, "invalid_request").await;
        assert_eq!(problem["errors"][0]["path"], json!([name]), "{problem}");
    }
    let key = format!("Bearer {}", world.key);
    let read = || world.http.get(format!("{}/posts", world.base));
    let twice = read().header("Authorization", &key).header("Authorization", "Bearer sk_test_other");
    fail(twice, 401, "unauthorized").await;
    fail(read().header("Authorization", bytes(b"Bearer \xe9")), 401, "unauthorized").await;
    // A header that only describes the request is read as far as it can be.
    for (name, value) in
        [("X-Request-Id", &b"\xe9"[..]), ("traceparent", b"\xe9"), ("User-Agent", b"caf\xe9/1.0")]
    {
        let answer = read().bearer_auth(&world.key).header(name, bytes(value)).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{name}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_body_is_told_truly() {
    let world = world().start().await;
    let create = |body: String| request(&world, Method::POST, "/posts").body(body);
    for (content_type, body, path, message) in [
        ("text/plain", "{}".to_owned(), json!([]), "must be application/json, not text/plain"),
        ("application/json", format!("[{}[]]", "[],".repeat(20_000)), json!([]), "holds more than 20000"),
        ("application/json", "{".to_owned(), json!([]), "is not valid JSON"),
        (
            "application/json",
            json!({ "content": "a", "accounts": ["ada"], "scheduled_at": "2031-01-01" }).to_string(),
            json!(["scheduled_at"]),
            "Needs a time of day",
        ),
        (
            "application/json",
            json!({ "content": "a", "accounts": ["ada"], "scheduled_at": "soon" }).to_string(),
            json!(["scheduled_at"]),
            "ISO 8601",
        ),
    ] {
        let is_json = message.contains("JSON");
        let request = create(body).header("Content-Type", content_type);
        let (_, problem) = fail(request, 400, "invalid_request").await;
        let issue = &problem["errors"][0];
        assert_eq!(issue["path"], path, "{problem}");
        let told = issue["message"].as_str().unwrap();
        assert!(told.contains(message) && (is_json || !told.contains("JSON")), "{told}");
    }
    let date = json!({ "content": "a", "accounts": ["ada"], "scheduled_at": "2031-01-01" }).to_string();
    let request = create(date).header("Content-Type", "application/json");
    let (_, problem) = fail(request, 400, "invalid_request").await;
    assert!(problem["detail"].as_str().unwrap().contains("needs a time of day"), "{problem}");
}

#[tokio::test]
async fn a_list_is_paginated_to_its_end_and_its_cursor_works_for_no_other_list() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let page = store::page::Request { after: None, limit: 1 };
    let account = accounts::list(&world.db, unbounded(world.owner), &accounts::Filter::default(), page)
        .await
        .unwrap()
        .items
        .remove(0);
    let now = Utc::now();
    for _ in 0..5 {
        // All have the same creation time, so that the id decides the order.
        let new = NewPost {
            is_draft: true,
            reply_to: None,
            scheduled_at: None,
            default_config: json!({}),
            external_ref: None,
            metadata: posts::Metadata::default(),
            containers: vec![Container::new(0, "a".to_owned(), Vec::new())],
            accounts: vec![(account.id, account.platform.clone())],
            deviations: posts::Deviations::default(),
            imports: Vec::new(),
            request_id: None,
            horizon: Duration::ZERO,
        };
        posts::create(&world.db, unbounded(world.owner), new, now).await.unwrap();
    }
    let all = world.get("/posts?limit=100").await;
    assert_eq!((all["data"].as_array().unwrap().len(), &all["next_cursor"]), (5, &Value::Null));
    let (mut walked, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = world.get(&format!("/posts?limit=2{cursor}")).await;
        walked.extend(page["data"].as_array().unwrap().clone());
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(json!(walked), all["data"]);

    let live = key(&world, Owner { mode: Mode::Live, ..world.owner }, &[Scope::All]).await;
    let stolen = world.http.get(format!("{}/posts?{cursor}", world.base)).bearer_auth(live);
    fail(stolen, 400, "invalid_cursor").await;
    for path in
        [format!("/social-accounts?{cursor}"), format!("/posts?{cursor}A"), "/posts?cursor=".to_owned()]
    {
        fail(request(&world, Method::GET, &path), 400, "invalid_cursor").await;
    }
    for (limit, length) in [("0", 1), ("-7", 1), ("1000", 5), ("99999999999999999999", 5)] {
        let page = world.get(&format!("/posts?limit={limit}")).await;
        assert_eq!(page["data"].as_array().unwrap().len(), length, "{limit}");
    }
}

#[tokio::test]
async fn a_signing_secret_is_shown_once() {
    let world = world().start().await;
    let webhook = world.subscribe("http://127.0.0.1:9/hook").await;
    let secret = webhook["signing_secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_") && secret.len() > 40, "{secret}");
    let path = format!("/webhooks/{}", webhook["id"].as_str().unwrap());
    for text in [world.get(&path).await.to_string(), world.get("/webhooks").await.to_string()] {
        assert!(!text.contains("signing_secret") && !text.contains(secret), "{text}");
    }
    let (status, body) = world.call(Method::DELETE, &path, None).await;
    assert_eq!((status, body), (StatusCode::OK, json!({ "id": webhook["id"], "deleted": true })));
    fail(request(&world, Method::GET, &path), 404, "not_found").await;
}

#[tokio::test]
async fn the_openapi_document_and_the_docs_page_need_no_key() {
    let world = world().start().await;
    let document: Value =
        world.http.get(format!("{}/openapi.json", world.base)).send().await.unwrap().json().await.unwrap();
    assert_eq!(document["servers"], json!([{ "url": world.base }]));
    let root = world.base.trim_end_matches("/api/v1");
    let page = world.http.get(format!("{root}/docs")).send().await.unwrap();
    assert_eq!(page.status(), StatusCode::OK);
    let policy = page.headers()["content-security-policy"].to_str().unwrap();
    for part in ["frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(page.text().await.unwrap().contains("createPost"));
    let health = world.http.get(format!("{root}/healthz")).send().await.unwrap();
    assert_eq!(health.status(), StatusCode::OK);
}

#[tokio::test]
async fn behind_https_browsers_are_told_to_use_nothing_else() {
    let world = world().set("FANFARE_BASE_URL", "https://fanfare.example/api/v1").start().await;
    let root = world.base.trim_end_matches("/api/v1");
    for path in ["/api/v1/posts", "/dashboard", "/docs", "/nowhere"] {
        let answer = world.http.get(format!("{root}{path}")).send().await.unwrap();
        assert_eq!(answer.headers()["strict-transport-security"], "max-age=63072000", "{path}");
    }
}

#[tokio::test]
async fn requests_are_logged_for_their_organization_and_mode() {
    let world = world().start().await;
    let (headers, _) = fail(request(&world, Method::GET, "/posts/7"), 404, "not_found").await;
    let sent = |headers: &header::HeaderMap| headers["x-request-id"].to_str().unwrap().to_owned();
    let missing = sent(&headers);
    let narrow = key(&world, world.owner, &[Scope::PostsRead]).await;
    let call = world.http.delete(format!("{}/posts/7?token=secret", world.base)).bearer_auth(&narrow);
    let refused = sent(&fail(call, 403, "insufficient_scope").await.0);
    let nobody = world.http.get(format!("{}/posts", world.base)).bearer_auth("sk_test_none");
    let unknown = sent(&fail(nobody, 401, "unauthorized").await.0);
    let other = key(&world, Owner { mode: Mode::Live, ..world.owner }, &[Scope::All]).await;
    let elsewhere = world.http.get(format!("{}/posts", world.base)).bearer_auth(&other).send().await.unwrap();
    let elsewhere = sent(elsewhere.headers());

    let find = |page: &Value, id: &str| {
        page["data"].as_array().unwrap().iter().find(|entry| entry["request_id"] == *id).cloned()
    };
    let both = |page: &Value| find(page, &missing).is_some() && find(page, &refused).is_some();
    let page = world.until_at("/account/requests?limit=100", "both requests", both).await;
    let described = |id: &str| {
        let entry = find(&page, id).unwrap();
        assert!(entry["duration_ms"].as_i64() >= Some(0) && entry["at"].is_string(), "{entry}");
        json!([entry["method"], entry["path"], entry["status"], entry["last_four"]])
    };
    let last_four = |key: &str| key[key.len() - 4..].to_owned();
    assert_eq!(described(&missing), json!(["GET", "/api/v1/posts/{id}", 404, last_four(&world.key)]));
    assert_eq!(described(&refused), json!(["DELETE", "/api/v1/posts/{id}", 403, last_four(&narrow)]));
    assert_eq!((find(&page, &unknown), find(&page, &elsewhere)), (None, None));

    let first = world.get("/account/requests?limit=1").await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = world.get(&format!("/account/requests?limit=1&cursor={cursor}")).await;
    assert!(first["data"][0]["at"].as_str() >= second["data"][0]["at"].as_str(), "newest first");
}

#[tokio::test]
async fn a_path_answers_405_to_each_method_that_the_document_lacks() {
    let world = world().start().await;
    let document: Value = serde_json::from_str(include_str!("../../api/openapi.json")).unwrap();
    assert!(document["info"]["description"].as_str().unwrap().contains("405"));
    for (path, operations) in document["paths"].as_object().unwrap() {
        let mut allowed: Vec<_> =
            operations.as_object().unwrap().keys().map(|name| name.to_uppercase()).collect();
        allowed.retain(|method| method != "PARAMETERS");
        allowed.extend(allowed.contains(&"GET".to_owned()).then(|| "HEAD".to_owned()));
        allowed.sort();
        let lacking = ["PUT", "POST", "PATCH", "DELETE"]
            .into_iter()
            .find(|method| !allowed.iter().any(|one| one == method));
        let method: Method = lacking.unwrap().parse().unwrap();
        let path = path.replace(['{', '}'], "");
        let (headers, _) = fail(request(&world, method, &path), 405, "method_not_allowed").await;
        // A literal path may also be an id of the path with a parameter.
        let found: Vec<_> = headers[header::ALLOW].to_str().unwrap().split(", ").collect();
        assert!(
            allowed.iter().all(|method| found.contains(&method.as_str())),
            "{path}: {found:?}, {allowed:?}"
        );
    }
}

#[tokio::test]
async fn an_account_an_asset_a_target_and_analytics_have_these_members_and_no_other() {
    let world = world().start().await;
    let id = world.connect("x", "ada").await;
    let asset = world.medium("a.png", None, png(8, 8)).await;
    let post = world.post(json!({ "content": "Hello", "accounts": [id] })).await;
    let post = world.ended(&post).await;
    let analytics = world.get(&format!("/posts/{}/analytics", post["id"].as_str().unwrap())).await;
    let account = world.get(&format!("/social-accounts/{id}")).await;
    let asset = world.get(&format!("/media/{}", asset["id"].as_str().unwrap())).await;
    for (value, members) in [
        (
            &account,
            "account_type created_at display_name grant_expires_at id last_error_code last_synced_at network_unique_id platform \
             profile_id profile_image_url profile_url scopes social_network_id status tenant_id token_expires_at \
             unavailable updated_at username",
        ),
        (
            &asset,
            "alt_text content_type created_at duration_ms error expires_at facts filename has_location height id kind sha256 \
             size status url width",
        ),
        (
            &post["targets"][0],
            "attempts edited_at edits error_code error_message error_source id missing next_attempt_at platform \
             platform_post_id platform_post_url published_at reply_to_platform_post_id scheduled_at social_account_id status unpublished_at \
             variant",
        ),
        (&analytics, "aggregated_metrics metrics_by_account post_id"),
        (
            &analytics["metrics_by_account"][0],
            "captured_at clicks comments engagement_rate impressions likes platform reach saves shares stale \
             target_id video_views",
        ),
        (
            &analytics["aggregated_metrics"],
            "total_clicks total_comments total_impressions total_likes total_reach total_saves total_shares \
             total_video_views",
        ),
    ] {
        let mut found: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
        found.sort_unstable();
        assert_eq!(found, members.split_whitespace().collect::<Vec<_>>());
    }
}
