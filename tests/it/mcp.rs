//! MCP tools: the same functions, keys, scopes and limits as the API's.

use crate::{api::fail, api::key, media::serve, world};
use domain::scope::Scope;
use reqwest::{Method, RequestBuilder, StatusCode, header};
use serde_json::{Value, json};
use tests::{World, if_right, samples::png, wait_until};

fn url(world: &World) -> String {
    world.base.replace("/api/v1", "/api/mcp")
}

fn message(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

fn post(world: &World, key: &str, message: &Value) -> RequestBuilder {
    world
        .http
        .post(url(world))
        .bearer_auth(key)
        .header(header::ACCEPT, "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2025-11-25")
        .json(message)
}

/// Sends a message, and returns the whole JSON-RPC response.
pub(crate) async fn ask(world: &World, key: &str, method: &str, params: Value) -> Value {
    let response = post(world, key, &message(method, params)).send().await.unwrap();
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert_eq!(status, StatusCode::OK, "{method}: {text}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(1)), "{answer}");
    answer
}

/// Calls a tool that must succeed, and returns its result.
async fn call(world: &World, tool: &str, arguments: Value) -> Value {
    let answer = ask(world, &world.key, "tools/call", json!({ "name": tool, "arguments": arguments })).await;
    let result = &answer["result"];
    assert_eq!(result["isError"], false, "{tool}: {answer}");
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"], "{tool}");
    text
}

/// Calls a tool that must fail, and returns the problem document.
pub(crate) async fn refused(world: &World, key: &str, tool: &str, arguments: Value) -> Value {
    let answer = ask(world, key, "tools/call", json!({ "name": tool, "arguments": arguments })).await;
    let result = &answer["result"];
    assert_eq!(result["isError"], true, "{tool}: {answer}");
    assert!(result.get("structuredContent").is_none(), "{tool}: {answer}");
    let problem: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(problem["type"], "about:blank", "{problem}");
    problem
}

#[tokio::test]
async fn tools_are_listed_with_schemas_and_annotations() {
    let world = world().start().await;
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    let welcome = ask(&world, &world.key, "initialize", hello).await["result"].clone();
    assert_eq!(welcome["protocolVersion"], "2025-11-25");
    assert_eq!(welcome["serverInfo"]["name"], "fanfare");
    assert!(welcome["capabilities"]["tools"].is_object() && welcome["instructions"].is_string());
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(post(&world, &world.key, &initialized).send().await.unwrap().status(), 202);

    let listed = ask(&world, &world.key, "tools/list", json!({})).await;
    let hints: Vec<_> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            let hint = |name: &str| tool["annotations"][name].as_bool().unwrap();
            assert!(tool["title"].is_string() && tool["description"].is_string());
            assert_eq!(
                (&tool["inputSchema"]["type"], &tool["outputSchema"]["type"]),
                (&json!("object"), &json!("object"))
            );
            let name = tool["name"].as_str().unwrap();
            (
                name,
                [
                    hint("readOnlyHint"),
                    hint("destructiveHint"),
                    hint("idempotentHint"),
                    hint("openWorldHint"),
                ],
            )
        })
        .collect();
    let (yes, no) = (true, false);
    assert_eq!(
        hints,
        [
            ("list_accounts", [yes, no, yes, no]),
            ("get_account_capabilities", [yes, no, yes, no]),
            ("list_account_options", [yes, no, yes, yes]),
            ("get_account_limits", [yes, no, yes, yes]),
            ("create_post", [no, no, no, yes]),
            ("validate_post", [yes, no, yes, yes]),
            ("get_post", [yes, no, yes, no]),
            ("get_post_timeline", [yes, no, yes, no]),
            ("list_posts", [yes, no, yes, no]),
            ("update_post", [no, yes, yes, no]),
            ("delete_post", [no, yes, yes, no]),
            ("retry_post", [no, no, no, yes]),
            ("edit_published_post", [no, yes, yes, yes]),
            ("unpublish_post", [no, yes, yes, yes]),
            ("get_post_analytics", [yes, no, yes, yes]),
            ("find_slot", [yes, no, yes, no]),
            ("import_media", [no, no, no, yes]),
            ("get_media", [yes, no, yes, no]),
            ("update_media", [no, yes, yes, no]),
            ("create_auth_url", [no, no, no, no]),
            ("list_webhooks", [yes, no, yes, no]),
            ("create_webhook", [no, no, no, no]),
            ("list_events", [yes, no, yes, no]),
            ("list_requests", [yes, no, yes, no]),
            ("get_usage", [yes, no, yes, no]),
        ]
    );
}

#[tokio::test]
async fn a_tool_does_what_its_operation_does() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let accounts = call(&world, "list_accounts", json!({ "platform": "x" })).await;
    assert_eq!(accounts, world.get("/social-accounts?platform=x").await);
    assert_eq!(call(&world, "list_accounts", json!({ "platform": "threads" })).await["data"], json!([]));

    let body = json!({ "content": "By a model", "accounts": ["ada"], "external_ref": "model-1" });
    let verdict = call(&world, "validate_post", body.clone()).await;
    assert_eq!(verdict["valid"], true);
    let post = call(&world, "create_post", body.clone()).await;
    assert_eq!(call(&world, "create_post", body).await["id"], post["id"], "a repeated ref creates no post");
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published");
    let id = json!({ "id": post["id"] });
    assert_eq!(call(&world, "get_post", id.clone()).await, ended);
    let listed = call(&world, "list_posts", json!({ "status": "published", "limit": 1 })).await;
    assert_eq!(listed["data"][0]["id"], post["id"]);
    let analytics = call(&world, "get_post_analytics", id.clone()).await;
    assert_eq!(analytics["post_id"], post["id"]);

    let later = json!({ "content": "Later", "accounts": ["ada"], "scheduled_at": "2040-01-01T00:00:00Z" });
    let planned = call(&world, "create_post", later).await;
    let edit = json!({ "id": planned["id"], "content": "Much later" });
    let edited = call(&world, "update_post", edit).await;
    assert_eq!(edited["containers"][0]["content"], "Much later");
    assert_eq!(edited["scheduled_at"], planned["scheduled_at"]);
    let picture = world.medium("a.png", None, png(8, 8)).await;
    let shown = json!([{ "id": picture["id"], "alt_text": "Ada" }]);
    let body = json!({ "id": planned["id"], "containers": [{ "content": "Lok", "media": shown }] });
    call(&world, "update_post", body).await;
    let edited = call(&world, "update_post", json!({ "id": planned["id"], "content": "Look" })).await;
    assert_eq!(edited["containers"][0]["media"], shown, "a new text keeps the media");
    let found = call(&world, "get_post", json!({ "id": planned["id"] })).await;
    assert_eq!(found["containers"], edited["containers"]);
    let deleted = call(&world, "delete_post", json!({ "id": planned["id"] })).await;
    assert_eq!(deleted, json!({ "id": planned["id"], "canceled": true }));

    let slots = json!({ "social_account_id": null, "slots": [{ "weekday": "friday", "time": "09:30" }] });
    world.call(Method::PUT, "/scheduling/slots", Some(&slots)).await;
    let asked =
        json!({ "account": "ada", "timezone": "Asia/Tokyo", "after": "2040-01-01T00:00:00Z", "count": 2 });
    let found = call(&world, "find_slot", asked).await;
    assert_eq!(found["slots"], json!(["2040-01-06T00:30:00.000Z", "2040-01-13T00:30:00.000Z"]));

    // Nothing listens there, which only the worker finds out.
    let medium = json!({ "url": "http://127.0.0.1:9/a.png", "alt_text": "Ada" });
    let medium = call(&world, "import_media", medium).await;
    assert_eq!((&medium["status"], &medium["alt_text"]), (&json!("pending_upload"), &json!("Ada")));
    let described = call(&world, "update_media", json!({ "id": picture["id"], "alt_text": "Ada" })).await;
    assert_eq!((&described["id"], &described["alt_text"]), (&picture["id"], &json!("Ada")));

    let begun = call(&world, "create_auth_url", json!({ "platform": "x", "tenant_id": "acme" })).await;
    assert!(begun["auth_url"].as_str().unwrap().contains("state="));
    let hook = json!({ "url": "http://127.0.0.1:9/hook", "events": ["post.published"] });
    let webhook = call(&world, "create_webhook", hook).await;
    assert!(webhook["signing_secret"].is_string());
    let webhooks = call(&world, "list_webhooks", json!({})).await;
    assert_eq!(webhooks["data"][0]["id"], webhook["id"]);
    assert_eq!(call(&world, "get_usage", json!({})).await["usage"]["posts"]["current"], 1);
}

/// A model pins a picture from an address to the right board, and follows it to the end.
#[tokio::test]
async fn a_picture_from_an_address_is_pinned_to_a_board() {
    let world = world()
        .approved()
        .platforms(&["pinterest"])
        .set("FANFARE_EGRESS_ALLOW", "127.0.0.2/32")
        .start()
        .await;
    let account = world.connect("pinterest", "ada").await;
    let (origin, serving) = serve(png(200, 300)).await;
    let medium = call(&world, "import_media", json!({ "url": format!("{origin}/a.png") })).await;
    let medium = wait_until("the picture", async || {
        if_right(call(&world, "get_media", json!({ "id": medium["id"] })).await, |one| {
            one["status"] == "ready"
        })
    })
    .await;
    let accepts = call(&world, "get_account_capabilities", json!({ "id": account })).await;
    assert!(accepts["options"].as_array().unwrap().contains(&json!("boards")), "{accepts:#}");
    let boards = call(&world, "list_account_options", json!({ "id": account, "kind": "boards" })).await;
    let settings = json!({ "board_id": boards["data"][0]["id"] });
    let post = call(
        &world,
        "create_post",
        json!({
            "containers": [{ "content": "Look", "media": [{ "id": medium["id"] }] }],
            "accounts": [account], "config": { "pinterest": settings },
        }),
    )
    .await;
    assert_eq!(world.ended(&post).await["status"], "published");
    let timeline = call(&world, "get_post_timeline", json!({ "id": post["id"] })).await;
    assert_eq!((timeline["data"][0]["kind"].as_str(), &timeline["next"]), (Some("created"), &json!([])));
    serving.abort();
}

#[tokio::test]
async fn posts_are_listed_by_metadata() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let draft = |order: &str| json!({ "content": "a", "accounts": ["ada"], "is_draft": true, "metadata": { "order": order } });
    let post = call(&world, "create_post", draft("7")).await;
    call(&world, "create_post", draft("8")).await;
    let found = call(&world, "list_posts", json!({ "metadata": { "order": "7" } })).await;
    assert_eq!((&found["data"][0]["id"], found["data"].as_array().unwrap().len()), (&post["id"], 1));
}

#[tokio::test]
async fn a_failed_call_returns_the_whole_problem_document() {
    let world = world().start().await;
    let problem = refused(&world, &world.key, "create_post", json!({ "content": 7, "is_draft": "no" })).await;
    assert_eq!((&problem["status"], &problem["code"]), (&json!(400), &json!("invalid_request")));
    let named = |problem: &Value| -> Vec<Value> {
        problem["errors"].as_array().unwrap().iter().map(|issue| issue["path"][0].clone()).collect()
    };
    let mut fields = named(&problem);
    fields.sort_by_key(Value::to_string);
    assert_eq!(fields, ["accounts", "content", "is_draft"]);
    let problem = refused(&world, &world.key, "update_post", json!({ "id": 7, "content": [] })).await;
    assert_eq!(named(&problem), ["id", "content"]);
    let problem = refused(&world, &world.key, "get_post", json!({})).await;
    assert_eq!(problem["errors"][0]["received"], "undefined");

    // The tool runs in a task of the library, with the id of its request.
    let arguments = json!({ "name": "get_post", "arguments": {} });
    let response = post(&world, &world.key, &message("tools/call", arguments)).send().await.unwrap();
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    let text = response.text().await.unwrap();
    assert!(text.contains(&id), "{id}: {text}");

    let missing = json!({ "id": "01a1fd4e-5c28-77ae-bcfb-3b1a03485be9" });
    let problem = refused(&world, &world.key, "get_post", missing).await;
    assert_eq!((&problem["status"], &problem["code"]), (&json!(404), &json!("not_found")));
    let nobody = json!({ "content": "Hello", "accounts": ["nobody"] });
    let problem = refused(&world, &world.key, "create_post", nobody).await;
    assert_eq!((&problem["status"], &problem["code"]), (&json!(422), &json!("account_not_found")));
    let problem = refused(&world, &world.key, "list_posts", json!({ "cursor": "made-up" })).await;
    assert_eq!(problem["code"], "invalid_cursor");
}

#[tokio::test]
async fn a_tool_needs_its_scope() {
    let world = world().start().await;
    let tools = ask(&world, &world.key, "tools/list", json!({})).await;
    let mute = key(&world, world.owner, &[Scope::TeamRead]).await;
    for tool in tools["result"]["tools"].as_array().unwrap() {
        let problem = refused(&world, &mute, tool["name"].as_str().unwrap(), json!({})).await;
        assert_eq!((&problem["status"], &problem["code"]), (&json!(403), &json!("insufficient_scope")));
        let scope = problem["detail"].as_str().unwrap().rsplit(' ').next().unwrap();
        assert!(tool["description"].as_str().unwrap().contains(scope), "{problem}");
    }
    let reader = key(&world, world.owner, &[Scope::PostsRead]).await;
    let listed = ask(&world, &reader, "tools/call", json!({ "name": "list_posts" })).await;
    assert_eq!(listed["result"]["structuredContent"]["data"], json!([]));
    fail(post(&world, "sk_test_wrong", &message("tools/list", json!({}))), 401, "unauthorized").await;
    fail(world.http.post(url(&world)).json(&message("ping", json!({}))), 401, "unauthorized").await;
}

#[tokio::test]
async fn an_invalid_message_is_refused_with_a_json_rpc_error() {
    let world = world().start().await;
    let send = async |body: &str| {
        let request = post(&world, &world.key, &Value::Null).body(body.to_owned());
        let response = request.send().await.unwrap();
        let (status, answer) = (response.status().as_u16(), response.json::<Value>().await.unwrap());
        assert_eq!(answer["jsonrpc"], "2.0", "{body}: {answer}");
        assert!(answer["error"]["message"].is_string(), "{body}: {answer}");
        (status, answer["error"]["code"].as_i64().unwrap())
    };
    for (body, expected) in [
        ("{", (400, -32700)),
        ("", (400, -32700)),
        ("[]", (400, -32600)),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, (400, -32600)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["get_post"]}}"#, (400, -32602)),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_post","arguments":"x"}}"#,
            (400, -32602),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"launch_rocket"}}"#,
            (200, -32602),
        ),
    ] {
        assert_eq!(send(body).await, expected, "{body}");
    }
    let (_, code) = send(r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#).await;
    assert_eq!(code, -32601);
    send(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;

    // HTTP errors are problem documents, as in the API.
    let ping = message("ping", json!({}));
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let request = world.http.request(method, url(&world)).bearer_auth(&world.key);
        let (headers, _) = fail(request, 405, "method_not_allowed").await;
        assert_eq!(headers[header::ALLOW], "POST");
    }
    let large = post(&world, &world.key, &message("ping", json!({ "a": "a".repeat(1 << 20) })));
    fail(large, 413, "payload_too_large").await;
    let text =
        world.http.post(url(&world)).bearer_auth(&world.key).header(header::CONTENT_TYPE, "text/plain");
    fail(text.body(ping.to_string()), 400, "invalid_request").await;
    let strange = post(&world, &world.key, &ping).header(header::ORIGIN, "https://evil.example.com");
    fail(strange, 403, "forbidden").await;
    let own = world.base.replace("/api/v1", "");
    let same = post(&world, &world.key, &ping).header(header::ORIGIN, own).send().await.unwrap();
    assert_eq!(same.status(), 200);
    // A client without an `Accept` header gets JSON.
    let plain = world.http.post(url(&world)).bearer_auth(&world.key).json(&ping).send().await.unwrap();
    assert_eq!(
        (plain.status(), &plain.headers()[header::CONTENT_TYPE]),
        (StatusCode::OK, &"application/json".parse().unwrap())
    );
    let dated = plain_version(&world, "1999-01-01").await;
    assert_eq!(dated.0, 400, "{}", dated.1);
}

async fn plain_version(world: &World, version: &str) -> (u16, Value) {
    let request = world.http.post(url(world)).bearer_auth(&world.key).header("MCP-Protocol-Version", version);
    let response = request.json(&message("tools/list", json!({}))).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn a_tool_call_counts_in_the_bucket_of_its_operation() {
    // Windows that do not end during the test.
    let bucket = |limit: u32| json!({ "limit": limit, "window": 86_400 });
    let limits = json!({ "global": bucket(100), "posts": bucket(2), "mcp": bucket(1000) });
    let world = world().set("FANFARE_RATE_LIMITS", &limits.to_string()).start().await;
    let send = async |tool: &str| {
        let params = json!({ "name": tool, "arguments": {} });
        let response = post(&world, &world.key, &message("tools/call", params)).send().await.unwrap();
        let level = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        (response.status().as_u16(), level("x-ratelimit-limit"), level("x-ratelimit-remaining"))
    };
    let expected = |status, limit: &str, left: &str| (status, limit.to_owned(), left.to_owned());
    assert_eq!(send("list_posts").await, expected(200, "100", "99"));
    // Calls with invalid arguments count too.
    assert_eq!(send("create_post").await, expected(200, "2", "1"));
    assert_eq!(send("delete_post").await, expected(200, "2", "0"));
    let call = message("tools/call", json!({ "name": "create_post", "arguments": {} }));
    let (headers, _) = fail(post(&world, &world.key, &call), 429, "rate_limited").await;
    assert!(headers.contains_key(header::RETRY_AFTER));
    assert_eq!(send("get_post").await.0, 200, "reads are still allowed");
    let (status, _) = world.call(Method::POST, "/posts", Some(&json!({}))).await;
    assert_eq!(status, 429, "the API's calls are counted in the same bucket");
}

#[tokio::test]
async fn resources_and_prompts_lead_to_what_the_tools_tell() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let post = world.post(json!({ "content": "Shown to a model", "accounts": [account] })).await;
    let post = world.ended(&post).await;
    let id = post["id"].as_str().unwrap();
    let list = async |method: &str, key: &str, name: &str| -> Vec<String> {
        let answer = ask(&world, &world.key, method, json!({})).await;
        let all = answer["result"][key].as_array().unwrap().clone();
        let shown = |one: &Value| {
            assert!(one["title"].is_string() && one["description"].is_string(), "{one}");
            one[name].as_str().unwrap().to_owned()
        };
        all.iter().map(shown).collect()
    };
    let read = async |key: &str, uri: &str| ask(&world, key, "resources/read", json!({ "uri": uri })).await;
    let content = |answer: &Value| -> Value {
        let content = &answer["result"]["contents"][0];
        assert_eq!(content["mimeType"], "application/json", "{answer}");
        serde_json::from_str(content["text"].as_str().unwrap()).unwrap()
    };
    let platforms = list("resources/list", "resources", "uri").await;
    assert_eq!(platforms.len(), 11, "{platforms:?}");
    for uri in &platforms {
        let accepted = content(&read(&world.key, uri).await);
        assert_eq!(*uri, format!("fanfare://platforms/{}", accepted["platform"].as_str().unwrap()));
        assert_eq!(accepted["config_schema"]["type"], "object", "{uri}");
    }
    let templates = list("resources/templates/list", "resourceTemplates", "uriTemplate").await;
    assert_eq!(
        templates,
        [
            "fanfare://accounts/{id}/capabilities",
            "fanfare://accounts/{id}/limits",
            "fanfare://posts/{id}",
            "fanfare://posts/{id}/timeline",
        ]
    );
    assert_eq!(content(&read(&world.key, &format!("fanfare://posts/{id}")).await), post);
    for (uri, path) in [
        (format!("fanfare://posts/{id}/timeline"), format!("/posts/{id}/timeline")),
        (
            format!("fanfare://accounts/{account}/capabilities"),
            format!("/social-accounts/{account}/capabilities"),
        ),
    ] {
        assert_eq!(content(&read(&world.key, &uri).await), world.get(&path).await, "{uri}");
    }
    let limits = content(&read(&world.key, &format!("fanfare://accounts/{account}/limits")).await);
    assert_eq!((&limits["limits"][0]["used"], &limits["limits"][0]["limit"]), (&json!(1), &json!(100)));
    // Errors have the problem document; a resource needs the scope of its tool.
    let missing = read(&world.key, &format!("fanfare://posts/{}", uuid::Uuid::now_v7())).await;
    assert_eq!(
        (&missing["error"]["code"], &missing["error"]["data"]["code"]),
        (&json!(-32002), &json!("not_found"))
    );
    let nowhere = read(&world.key, "file:///etc/passwd").await;
    assert_eq!(nowhere["error"]["data"]["code"], "not_found");
    let mute = key(&world, world.owner, &[Scope::TeamRead]).await;
    let refused = read(&mute, &format!("fanfare://posts/{id}")).await;
    assert_eq!(refused["error"]["data"]["code"], "insufficient_scope", "{refused}");

    assert_eq!(list("prompts/list", "prompts", "name").await, ["publish_picture", "explain_stuck_post"]);
    let asked = json!({ "name": "explain_stuck_post", "arguments": { "id": id } });
    let prompt = ask(&world, &world.key, "prompts/get", asked).await;
    let message = &prompt["result"]["messages"][0];
    assert_eq!(message["role"], "user");
    let text = message["content"]["text"].as_str().unwrap();
    assert!(text.contains(id) && text.contains("get_post_timeline"), "{text}");
    let asked = json!({ "name": "publish_picture", "arguments": { "url": "https://example.com/a.png" } });
    let refused = ask(&world, &world.key, "prompts/get", asked).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");

    let events = call(&world, "list_events", json!({})).await;
    assert_eq!(events, world.get("/events").await);
    assert!(!events["data"].as_array().unwrap().is_empty());
    let logged = wait_until("a logged request", async || {
        if_right(call(&world, "list_requests", json!({})).await, |page| {
            !page["data"].as_array().unwrap().is_empty()
        })
    })
    .await;
    assert!(logged["data"][0]["request_id"].is_string() || logged["data"][0]["id"].is_string(), "{logged}");
}
