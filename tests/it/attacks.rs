//! Sends invalid input to every operation.
//!
//! The operations are read from the OpenAPI document, so that a new operation is covered without a change
//! here. An invalid field is a 400 that names it, no request is a 5xx, and every error is a problem document.

use crate::{api, world};
use ::store::people::organizations;
use domain::{Owner, scope::Scope};
use reqwest::{Method, header};
use sandbox::{self, Access, Address, AppStatus, Options, Sandbox};
use serde_json::{Value, json};
use tests::{World, login::joined};

/// Returns the OpenAPI document and its operations: method, path and operation object.
pub(crate) async fn operations(world: &World) -> (Value, Vec<(Method, String, Value)>) {
    let url = format!("{}/openapi.json", world.base);
    let document: Value = world.http.get(url).send().await.unwrap().json().await.unwrap();
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let method: Method = method.to_uppercase().parse().unwrap();
            operations.push((method, path.clone(), operation.clone()));
        }
    }
    assert!(operations.len() > 40, "only {} operations were found", operations.len());
    (document, operations)
}

/// Resolves references, and the first alternative of `allOf` and `anyOf`.
fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(name) = schema["$ref"].as_str() {
        return resolve(document, document.pointer(&name[1..]).unwrap());
    }
    match ["allOf", "anyOf"].into_iter().find_map(|key| schema[key].get(0)) {
        Some(first) => resolve(document, first),
        None => schema,
    }
}

/// Sends a request and checks that the response is no 5xx, and a problem document if it is an error.
pub(crate) async fn send(
    world: &World,
    key: &str,
    method: &Method,
    path: &str,
    body: Option<&[u8]>,
) -> (u16, Value) {
    let mut request = world.http.request(method.clone(), format!("{}{path}", world.base)).bearer_auth(key);
    if let Some(body) = body {
        request = request.header(header::CONTENT_TYPE, "application/json").body(body.to_vec());
    }
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let what = || format!("{method} {path} {:?}", body.map(String::from_utf8_lossy));
    let answer: Value = response.json().await.unwrap_or_else(|error| panic!("{}: {status}, {error}", what()));
    assert!(status < 500, "{}: {answer}", what());
    if status >= 400 {
        assert_eq!(headers[header::CONTENT_TYPE], "application/problem+json", "{}", what());
        assert_eq!(
            (&answer["type"], &answer["status"]),
            (&json!("about:blank"), &json!(status)),
            "{}",
            what()
        );
        assert!(answer["title"].is_string() && answer["detail"].is_string(), "{}: {answer}", what());
        assert!(answer["code"].is_string(), "{}: {answer}", what());
    }
    (status, answer)
}

fn answer_has_failures(batch: &Value) -> bool {
    batch["errors"].as_array().is_some_and(|errors| !errors.is_empty())
}

/// Returns the path with every parameter replaced by `with`.
pub(crate) fn filled(path: &str, with: &str) -> String {
    let fill = |segment: &str| if segment.starts_with('{') { with.to_owned() } else { segment.to_owned() };
    path.split('/').map(fill).collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn every_invalid_field_is_named() {
    let world = world().start().await;
    world.connect("x", "fanfare").await;
    world.connect("bluesky", "fanfare.bsky.social").await;
    let (document, operations) = operations(&world).await;
    let mut sent = 0;
    for (method, path, operation) in &operations {
        let Some(content) = operation["requestBody"]["content"].get("application/json") else { continue };
        let schema = resolve(&document, &content["schema"]);
        let example = content["example"].as_object().unwrap();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let path = filled(path, "x");
        for (name, property) in schema["properties"].as_object().unwrap() {
            let property = resolve(&document, property);
            // A nullable member has two types.
            let is_nullable = property["type"].is_array();
            let kind = property["type"].as_array().map_or(&property["type"], |kinds| &kinds[0]);
            let kind = kind.as_str().unwrap_or_default();
            let mut wrong: Vec<Value> =
                [json!(7.5), json!("\u{1f4a3}"), json!(true), json!([[]]), json!({ "a": [] })]
                    .into_iter()
                    .filter(|value| match value {
                        Value::Number(_) => !matches!(kind, "number" | ""),
                        Value::String(_) => !matches!(kind, "string" | ""),
                        Value::Bool(_) => kind != "boolean",
                        Value::Array(_) => kind != "array",
                        _ => kind != "object",
                    })
                    .collect();
            match kind {
                "string" => {
                    wrong.push(json!("a\u{0}b"));
                    wrong.extend(
                        property["maxLength"].as_u64().map(|most| json!("a".repeat(most as usize + 1))),
                    );
                    wrong.extend(property.get("format").map(|_| json!("none of that kind")));
                    wrong.extend(property.get("enum").map(|_| json!("none of these")));
                }
                "array" => wrong.extend([json!([null]), json!([{ "a": { "b": "\u{0}" } }])]),
                "integer" => wrong.extend([json!(u64::MAX), json!(-1), json!(1e300)]),
                "object" => wrong.push(json!({ "a\u{0}": 1 })),
                _ => {}
            }
            if required.contains(&json!(name)) && !is_nullable {
                wrong.push(Value::Null);
            }
            for value in wrong {
                let mut body = example.clone();
                body.insert(name.clone(), value);
                let text = serde_json::to_vec(&body).unwrap();
                let (status, problem) = send(&world, &world.key, method, &path, Some(&text)).await;
                // A missing resource may be reported first, and items of a batch fail individually.
                if status == 404 || status == 207 && answer_has_failures(&problem) {
                    continue;
                }
                let issues = problem["errors"].as_array().cloned().unwrap_or_default();
                let is_named = issues.iter().any(|issue| issue["path"][0] == json!(name));
                assert!(status == 400 && is_named, "{method} {path} {}: {status} {problem}", json!(body));
                sent += 1;
            }
            if required.contains(&json!(name)) {
                let mut body = example.clone();
                body.remove(name);
                let text = serde_json::to_vec(&body).unwrap();
                let (status, problem) = send(&world, &world.key, method, &path, Some(&text)).await;
                let is_told = problem["errors"][0]["received"] == "undefined";
                assert!(
                    status == 404 || status == 400 && is_told,
                    "{method} {path} without {name}: {problem}"
                );
            }
        }
    }
    assert!(sent > 200, "only {sent} wrong bodies were sent");
}

#[tokio::test]
async fn every_operation_except_pending_logins_requires_a_key() {
    let world = world().start().await;
    let (_, operations) = operations(&world).await;
    let mut asked = 0;
    for (method, path, _) in &operations {
        let url = format!("{}{}", world.base, filled(path, "x"));
        let answer = world.http.request(method.clone(), url).send().await.unwrap();
        let (status, is_login) = (answer.status(), path.starts_with("/social-accounts/pending/"));
        let problem: Value = answer.json().await.unwrap();
        // A pending login is authorized by the token in its path, and this token is unknown.
        let expected = if is_login { (404, "not_found") } else { (401, "unauthorized") };
        assert_eq!((status.as_u16(), problem["code"].as_str().unwrap()), expected, "{method} {path}");
        asked += usize::from(!is_login);
    }
    assert!(asked > 40, "only {asked} operations required a key");
}

#[tokio::test]
async fn a_malformed_body_is_rejected() {
    let world = world().start().await;
    let (_, operations) = operations(&world).await;
    let bomb = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let twins = format!("{{{}}}", vec![r#""content":"a""#; 1000].join(","));
    for (method, path, operation) in &operations {
        let path = filled(path, "x");
        let takes_body = operation.get("requestBody").is_some();
        for body in [
            &b"{"[..],
            b"nul",
            b"[]",
            b"\"a\"",
            b"7",
            b"{\"a\":\"\xff\"}",
            b"\xef\xbb\xbf{}",
            b"{}{}",
            b"{\"a\":1e999}",
            b"{\"a\":\"\\ud800\"}",
            bomb.as_bytes(),
            twins.as_bytes(),
        ] {
            let (status, answer) = send(&world, &world.key, method, &path, Some(body)).await;
            let is_odd = body != twins.as_bytes();
            assert!(
                !takes_body || !is_odd || matches!(status, 400 | 404),
                "{method} {path}: {status} {answer}"
            );
        }
    }
}

#[tokio::test]
async fn invalid_parameters_are_rejected() {
    let world = world().start().await;
    let (_, operations) = operations(&world).await;
    let long = "a".repeat(4000);
    for (method, path, operation) in &operations {
        if path.contains('{') {
            for id in [
                "7",
                "%00",
                "%ff",
                "%2e%2e",
                "%2f",
                "a%20b",
                "'%20or%201=1--",
                "%F0%9F%92%A3",
                "-1",
                "null",
                "undefined",
                "00000000-0000-0000-0000-000000000000",
                "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
                long.as_str(),
            ] {
                let body = operation.get("requestBody").map(|_| &b"{}"[..]);
                let (status, answer) = send(&world, &world.key, method, &filled(path, id), body).await;
                // Clients normalize `..` to the parent path, which may have other methods.
                let is_elsewhere = id == "%2e%2e" && status == 405;
                assert!(
                    is_elsewhere || matches!(status, 400 | 404),
                    "{method} {path} with {id}: {status} {answer}"
                );
            }
        }
        let queries = operation["parameters"].as_array().into_iter().flatten();
        for name in queries.filter(|parameter| parameter["in"] == "query").map(|parameter| &parameter["name"])
        {
            let name = name.as_str().unwrap();
            for value in ["", "%00", "%ff", "-1", "99999999999999999999999", "null", "[]", "'", long.as_str()]
            {
                let query = format!("{}?{name}={value}", filled(path, "7"));
                send(&world, &world.key, method, &query, None).await;
                let twice = format!("{query}&{name}={value}");
                let (status, answer) = send(&world, &world.key, method, &twice, None).await;
                assert!(matches!(status, 400 | 404), "{twice}: {status} {answer}");
            }
        }
    }
}

#[tokio::test]
async fn organizations_share_no_accounts_in_a_public_sandbox() {
    let token = "a token of sixteen or more";
    let access = Access { token: Some(token.to_owned()), ..Access::default() };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let sandbox =
        Sandbox::open_with(Options { data: None, clock: tests::now, app: AppStatus::New }, access).unwrap();
    let listener = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let place = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let serving = tokio::spawn(sandbox::serve(sandbox, listener, std::future::pending()));
    let settings = [("FANFARE_SANDBOX_URL", place.as_str()), ("FANFARE_SANDBOX_TOKEN", token)];
    let world = settings.iter().fold(world(), |world, (name, value)| world.set(name, value));
    let mut world = world.start().await;

    let mine = joined(&world, "x", "ada", json!({})).await;
    let post = world.post(json!({ "content": "Only mine", "accounts": [mine] })).await;
    let ended = world.ended(&post).await;
    let page = ended["targets"][0]["platform_post_url"].as_str().unwrap();
    assert!(page.starts_with(&place), "{page}");
    assert!(world.http.get(page).send().await.unwrap().text().await.unwrap().contains("Only mine"));
    let journal = world.http.get(format!("{place}/_journal")).send().await.unwrap();
    assert_eq!(journal.status(), 401);

    // The same username connected in another organization is another account.
    let mut owners = vec![world.owner];
    let stranger = organizations::create(&world.db, "Stranger").await.unwrap();
    world.owner = Owner { org: stranger, ..world.owner };
    world.key = api::key(&world, world.owner, &[Scope::All]).await;
    owners.push(world.owner);
    let theirs = joined(&world, "x", "ada", json!({})).await;
    let path = format!("/social-accounts/{theirs}/imports");
    let (_, import) = world.call(Method::POST, &path, Some(&json!({}))).await;
    let one = format!("{path}/{}", import["id"].as_str().unwrap());
    let import = world.until_at(&one, "a completed import", |import| import["status"] == "completed").await;
    assert_eq!((&import["imported_count"], &import["skipped_count"]), (&json!(0), &json!(0)), "{import}");
    let post = world.post(json!({ "content": "Only theirs", "accounts": [theirs] })).await;
    assert_eq!(world.ended(&post).await["status"], "published");
    let address = Address::new(place.parse().unwrap(), Some(token.to_owned()));
    for owner in owners {
        let journal = format!("{}/_journal?account=ada&accepted=true", address.of(owner.org));
        let journal = world.http.get(journal).bearer_auth(token).send().await.unwrap();
        let journal: Value = journal.json().await.unwrap();
        assert_eq!(journal["entries"].as_array().unwrap().len(), 1, "{journal}");
    }
    serving.abort();
}

#[tokio::test]
async fn proxy_environment_variables_are_ignored() {
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let names = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    let world = names.iter().fold(world(), |world, name| world.set(name, &address)).set("NO_PROXY", "");
    let world = world.start().await;
    world.connect("x", "ada").await;
    let post = world.post(json!({ "content": "Directly", "accounts": ["ada"] })).await;
    assert_eq!(world.ended(&post).await["status"], "published");
    proxy.set_nonblocking(true).unwrap();
    assert!(proxy.accept().is_err(), "the proxy received a connection");
}
