//! Planted secrets: nothing that the service shows, stores or logs contains one.
//!
//! The sandbox stands behind a platform that repeats the secrets of every request in its error messages
//! ([`Gossip`]), and that remembers every secret that passes. Whatever the service then answers, delivers, stores,
//! tells Temporal or logs is searched for all of them.

use super::{document, tenants::Tenant, world};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use futures::StreamExt;
use poem::{Body, Endpoint, EndpointExt, Request, Response, endpoint::BoxEndpoint};
use regex::Regex;
use reqwest::{Method, header, redirect::Policy};
use sandbox::{Access, AppStatus, Options, Sandbox};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};
use temporalio_client::{UntypedWorkflow, WorkflowFetchHistoryOptions};
use tests::{Receiver, World, login, proof::Section, temporal_client, wait_until};
use url::form_urlencoded;

/// Shortest secret that can be searched for.
const MIN_LENGTH: usize = 16;

/// Places that a failed test lists.
const MAX_LISTED: usize = 20;

/// Kinds of secrets, each of which must be planted.
const KINDS: [&str; 12] = [
    "access token",
    "refresh token",
    "client secret",
    "API key",
    "signing secret",
    "app password",
    "upload pass",
    "authorization code",
    "PKCE verifier",
    "session",
    "invitation",
    "key that opens",
];

/// Secrets by their text.
type Planted = Arc<Mutex<BTreeMap<String, &'static str>>>;

fn plant(planted: &Planted, kind: &'static str, secret: &str) {
    if secret.len() >= MIN_LENGTH {
        planted.lock().unwrap().entry(secret.to_owned()).or_insert(kind);
    }
}

/// A platform that repeats the secrets of a request in its error messages.
struct Gossip {
    platforms: BoxEndpoint<'static, Response>,
    planted: Planted,
    /// True to refuse authorization codes.
    refuses_codes: Arc<AtomicBool>,
}

impl Endpoint for Gossip {
    type Output = Response;

    async fn call(&self, mut request: Request) -> poem::Result<Response> {
        let body = request.take_body().into_bytes().await?;
        let is_control = request.uri().path().starts_with("/_");
        let heard = if is_control { Vec::new() } else { secrets_of(&request, &body) };
        for (kind, secret) in &heard {
            plant(&self.planted, kind, secret);
        }
        let is_code = heard.iter().any(|(kind, _)| *kind == "authorization code");
        request.set_body(body);
        let mut response = match is_code && self.refuses_codes.load(Ordering::SeqCst) {
            true => Response::builder().status(poem::http::StatusCode::BAD_REQUEST).body(r#"{"error":"no"}"#),
            false => self.platforms.get_response(request).await,
        };
        let mut body = response.take_body().into_bytes().await?.to_vec();
        let mut document: Value = serde_json::from_slice(&body).unwrap_or_default();
        if !is_control {
            plant_tokens(&self.planted, &document);
        }
        if !heard.is_empty() && response.status().as_u16() >= 400 {
            let repeated: Vec<_> = heard.iter().map(|(_, secret)| secret.as_str()).collect();
            let repeated = format!("You sent {}.", repeated.join(" and "));
            body = match document.as_object_mut() {
                Some(members) => {
                    for name in ["message", "detail", "error_description"] {
                        members.insert(name.to_owned(), json!(repeated));
                    }
                    if let Some(error) = members.get_mut("error").and_then(Value::as_object_mut) {
                        error.insert("message".to_owned(), json!(repeated));
                    }
                    document.to_string().into_bytes()
                }
                None => repeated.into_bytes(),
            };
        }
        response.set_body(Body::from(body));
        Ok(response)
    }
}

/// Returns the secrets of a request to a platform.
fn secrets_of(request: &Request, body: &[u8]) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let authorization = request.header("authorization").unwrap_or_default();
    if let Some(token) = authorization.strip_prefix("Bearer ") {
        found.push(("access token", token.to_owned()));
    }
    if let Some(basic) = authorization.strip_prefix("Basic ")
        && let Ok(text) = BASE64_STANDARD.decode(basic)
        && let Some((_, password)) = String::from_utf8_lossy(&text).split_once(':')
    {
        found.push(("client secret", password.to_owned()));
    }
    let kind = |name: &str| match name {
        "code" => Some("authorization code"),
        "code_verifier" => Some("PKCE verifier"),
        "refresh_token" => Some("refresh token"),
        "client_secret" => Some("client secret"),
        "access_token" | "fb_exchange_token" | "token" => Some("access token"),
        "password" => Some("app password"),
        _ => None,
    };
    let query = request.uri().query().unwrap_or_default().as_bytes();
    let is_form = request.content_type().is_some_and(|found| found.contains("urlencoded"));
    let form = if is_form { body } else { &[] };
    for (name, value) in form_urlencoded::parse(query).chain(form_urlencoded::parse(form)) {
        found.extend(kind(&name).map(|kind| (kind, value.into_owned())));
    }
    if let Ok(Value::Object(members)) = serde_json::from_slice(body) {
        for (name, value) in &members {
            found.extend(kind(name).zip(value.as_str().map(str::to_owned)));
        }
    }
    found.retain(|(_, secret)| secret.len() >= MIN_LENGTH);
    found
}

/// Plants the tokens that a platform issues.
fn plant_tokens(planted: &Planted, document: &Value) {
    match document {
        Value::Array(items) => items.iter().for_each(|item| plant_tokens(planted, item)),
        Value::Object(members) => {
            for (name, value) in members {
                match (name.as_str(), value.as_str()) {
                    ("access_token" | "accessJwt", Some(token)) => plant(planted, "access token", token),
                    ("refresh_token" | "refreshJwt", Some(token)) => plant(planted, "refresh token", token),
                    _ => plant_tokens(planted, value),
                }
            }
        }
        _ => {}
    }
}

/// A service under observation.
struct Observed {
    world: World,
    http: reqwest::Client,
    planted: Planted,
    /// Texts that were seen, with their places.
    seen: Vec<(String, String)>,
}

impl Observed {
    /// Sends a request, keeps the whole answer, and returns its body.
    async fn send(&mut self, what: &str, request: reqwest::RequestBuilder) -> (u16, String) {
        let (status, headers, text) = self.send_unseen(request).await;
        self.seen.push((format!("the answer to {what}"), format!("{status}\n{headers}\n{text}")));
        (status, text)
    }

    /// Sends a request whose answer may show a secret: the only one that does.
    async fn send_unseen(&self, request: reqwest::RequestBuilder) -> (u16, String, String) {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), format!("{:?}", response.headers()));
        (status, headers, response.text().await.unwrap_or_default())
    }

    /// Calls the API, and keeps the answer.
    async fn call(&mut self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let mut request = self.http.request(method.clone(), format!("{}{path}", self.world.base));
        request = request.bearer_auth(&self.world.key);
        if let Some(body) = body {
            request = request.json(body);
        }
        let (_, text) = self.send(&format!("{method} {path}"), request).await;
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Calls the API for an answer that shows a secret, plants it, and returns the answer.
    async fn issued(&self, kind: &'static str, path: &str, body: Value, member: &str) -> Value {
        let (status, answer) = self.world.call(Method::POST, path, Some(&body)).await;
        assert_eq!(status.as_u16(), 201, "{path}: {answer}");
        let shown = answer[member].as_str().unwrap();
        // A link ends with its token.
        let secret = shown.rsplit(['/', '=']).next().unwrap();
        plant(&self.planted, kind, secret);
        answer
    }

    /// Panics if a text contains a secret, without printing it.
    fn judge(&self) -> (usize, usize, usize) {
        let planted = self.planted.lock().unwrap().clone();
        let kinds: BTreeSet<_> = planted.values().copied().collect();
        for kind in KINDS {
            assert!(kinds.contains(kind), "no {kind} was planted, but {kinds:?}");
        }
        let bytes: usize = self.seen.iter().map(|(_, text)| text.len()).sum();
        let mut found = Vec::new();
        for (secret, kind) in &planted {
            let encoded: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
            let variants = [
                secret.clone(),
                encoded,
                hex::encode(secret),
                BASE64_STANDARD.encode(secret),
                BASE64_URL_SAFE_NO_PAD.encode(secret),
            ];
            for (place, text) in &self.seen {
                let at = variants.iter().find_map(|variant| Some((text.find(variant)?, variant)));
                found.extend(at.map(|(at, variant)| {
                    let before: String = text[..at].chars().rev().take(300).collect();
                    let before: String = before.chars().rev().collect();
                    let after: String = text[at + variant.len()..].chars().take(100).collect();
                    format!("{kind} in {place}: {before}<here>{after}")
                }));
            }
        }
        found.truncate(MAX_LISTED);
        assert!(found.is_empty(), "{}", found.join("\n\n"));
        (planted.len(), self.seen.len(), bytes)
    }
}

#[tokio::test]
async fn planted_secrets_are_found_nowhere() {
    let mut section = Section::new("7c-hostile-secrets", "Planted secrets");
    let (mut observed, refuses_codes, log) = start().await;
    let receiver = Receiver::start().await;
    let planted = observed.planted.clone();

    // Everything that is issued once.
    let signing =
        json!({ "url": receiver.url, "events": ["*"], "signing_secret": "whsec_planted-0c5e9f77a1b2" });
    let webhook = observed.issued("signing secret", "/webhooks", signing, "signing_secret").await;
    let key = json!({ "name": "second", "scopes": ["posts:read"] });
    observed.issued("API key", "/api-keys", key, "key").await;
    let person = json!({ "email": "grace@example.com", "role": "viewer" });
    observed.issued("invitation", "/team", person, "invite_url").await;
    let file = json!({ "filename": "later.png" });
    observed.issued("upload pass", "/media/upload", file, "upload_url").await;
    let client_secret = "planted-client-secret-5dbd1b2c";
    plant(&planted, "client secret", client_secret);
    for (platform, secret) in [("youtube", json!(client_secret)), ("reddit", json!([client_secret]))] {
        let app = json!({ "platform": platform, "client_id": "id", "client_secret": secret });
        observed.call(Method::POST, "/social-networks", Some(&app)).await;
    }

    // Logins: accepted, refused with an error that repeats the code and the verifier, and denied.
    let x = accepted(&mut observed, "x", "ada").await;
    refuses_codes.store(true, Ordering::SeqCst);
    for name in ["x", "facebook"] {
        let back = login::consented(&observed.world, name, "eve").await;
        arrived(&mut observed, &back).await;
    }
    refuses_codes.store(false, Ordering::SeqCst);
    let token = login::several(&observed.world, "facebook", "ada,bob").await;
    let offered = observed.call(Method::GET, &format!("/social-accounts/pending/{token}"), None).await;
    let pages = json!({ "page_ids": [offered["data"][0]["id"]] });
    let finalize = format!("/social-accounts/pending/{token}/finalize");
    observed.call(Method::POST, &finalize, Some(&json!({ "page_ids": ["none of these"] }))).await;
    observed.call(Method::POST, &finalize, Some(&pages)).await;
    let account = observed.world.account("bluesky", "ada.bsky.social").await;
    let password = account.grant.extra["app_password"].as_str().unwrap().to_owned();
    plant(&planted, "app password", &password);
    for password in ["planted-and-wrong-1", &password] {
        plant(&planted, "app password", password);
        let body = json!({ "identifier": "ada.bsky.social", "app_password": password });
        observed.call(Method::POST, "/social-accounts/bluesky/connect", Some(&body)).await;
        let body = json!({ "identifier": [password], "app_password": { "a": password } });
        observed.call(Method::POST, "/social-accounts/bluesky/connect", Some(&body)).await;
    }
    let listed = observed.world.get("/social-accounts").await;
    let accounts: Vec<_> = listed["data"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
    assert_eq!(accounts.len(), 3, "{listed}");

    // Every use of a token: accepted, refused by the platform in each way, expired, and revoked.
    let mut posts = Vec::new();
    for content in
        ["One", "Two #sandbox-400", "Three #sandbox-401", "Four #sandbox-403", "Five #sandbox-500x1"]
    {
        posts.push(observed.world.post(json!({ "content": content, "accounts": accounts })).await);
    }
    for post in &posts {
        observed.world.ended(post).await;
    }
    observed.world.expire_tokens("x", "ada").await;
    observed.world.expire_tokens("bluesky", "ada.bsky.social").await;
    let post = observed.world.post(json!({ "content": "Six", "accounts": accounts })).await;
    observed.world.ended(&post).await;
    posts.push(post);
    let imports = format!("/social-accounts/{x}/imports");
    let import = observed.call(Method::POST, &imports, Some(&json!({}))).await;
    let import = format!("{imports}/{}", import["id"].as_str().unwrap());
    observed.world.until_at(&import, "the import", |import| import["finished_at"].is_string()).await;
    everything(&mut observed, "while the accounts work").await;
    for (platform, name) in [("x", "ada"), ("bluesky", "ada.bsky.social"), ("facebook", "ada")] {
        observed.world.revoke_grants(platform, name).await;
    }
    let post = observed.world.post(json!({ "content": "Seven", "accounts": accounts })).await;
    observed.world.ended(&post).await;
    posts.push(post);
    everything(&mut observed, "after the grants were revoked").await;
    dashboard(&mut observed, &webhook).await;
    tools(&mut observed, &receiver.url).await;

    for id in &accounts {
        let path = format!("/social-accounts/{}", id.as_str().unwrap());
        observed.call(Method::DELETE, &path, None).await;
    }
    receiver.events(&vec!["account.disconnected"; accounts.len()]).await;
    for delivery in receiver.all() {
        let text = format!("{:?}\n{}", delivery.headers, String::from_utf8_lossy(&delivery.body));
        observed.seen.push((format!("the delivery of {}", delivery.event()), text));
    }
    let rows = rows(&mut observed).await;
    let histories = histories(&mut observed).await;
    assert!(observed.world.stop("all").await);
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("Published target") && log.lines().count() > 100, "the log of the service");
    observed.seen.push(("the log".to_owned(), log));
    // The platform did repeat them, and the messages arrived.
    assert!(observed.seen.iter().any(|(_, text)| text.contains("You sent ***")), "no message was repeated");
    let (secrets, texts, bytes) = observed.judge();
    let types = types_that_print_secrets();
    assert!(types.is_empty(), "these types print secrets: {types:?}");
    section.text(
        "A platform that repeats the tokens, codes, verifiers and passwords of each request in its errors; then \
         every operation, timeline, event, page and tool, the rows of all tables and of the outbox, the histories \
         of all workflows and the log at level `debug` were searched for every secret that had passed, plain and \
         encoded. No secret was found, and no type that has one prints it.",
    );
    section.figure("Kinds of secrets", KINDS.len());
    section.figure("Secrets", secrets);
    section.figure("Texts searched", texts);
    section.figure("MiB searched", bytes >> 20);
    section.figure("Rows", rows);
    section.figure("Workflow histories", histories);
    section.write();
}

/// Starts the service with such a platform. Returns it, the switch that makes the platform refuse codes, and the
/// log.
async fn start() -> (Observed, Arc<AtomicBool>, std::path::PathBuf) {
    let planted = Planted::default();
    let mut world = world().running(&[]).platforms(&["x", "bluesky", "facebook"]).start().await;
    let opened =
        Sandbox::open_with(Options { data: None, clock: tests::now, app: AppStatus::New }, Access::default())
            .unwrap();
    let refuses_codes = Arc::new(AtomicBool::new(false));
    let gossip = Gossip {
        platforms: opened.endpoint().map_to_response().boxed(),
        planted: planted.clone(),
        refuses_codes: refuses_codes.clone(),
    };
    let place = format!("http://{}", tests::serve(gossip).await);
    world.set("FANFARE_SANDBOX_URL", &place);
    world.sandbox_url.clone_from(&place);
    world.set("RUST_LOG", "debug");
    for name in ["FANFARE_OPEN_KEYS", "FANFARE_SECRET"] {
        let secret = world.variable(name).rsplit(':').next().unwrap().to_owned();
        plant(&planted, "key that opens", &secret);
    }
    let log = tests::directory().join(format!("hostile-secrets-{}.log", world.owner.org));
    world.log_to(&log);
    // The outbox is emptied as soon as it was written.
    tests::sql(
        &world.db,
        "create table seen_messages (message text);
         create function see() returns trigger language plpgsql as
           $$ begin insert into seen_messages values (to_jsonb(new)::text); return new; end $$;
         create trigger see before insert or update on outbox for each row execute function see();",
    )
    .await;
    world.run("all").await;
    world.set_sandbox(json!({ "lag_ms": 0, "limits": { "bluesky.logins": 1_000_000 } })).await;
    plant(&planted, "API key", &world.key);
    let http = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
    (Observed { world, http, planted, seen: Vec::new() }, refuses_codes, log)
}

/// Connects an account by a login, and returns its id.
async fn accepted(observed: &mut Observed, platform: &str, username: &str) -> String {
    let back = login::consented(&observed.world, platform, username).await;
    let location = arrived(observed, &back).await;
    let location: url::Url = location.parse().unwrap();
    login::parameters(&location)["account_ids"].clone()
}

/// Opens a login's callback, and returns where it leads.
async fn arrived(observed: &mut Observed, back: &url::Url) -> String {
    plant(&observed.planted, "authorization code", &login::parameters(back)["code"]);
    let request = observed.http.get(back.clone());
    let (_, headers, text) = observed.send_unseen(request.try_clone().unwrap()).await;
    observed.seen.push(("the end of a login".to_owned(), format!("{headers}\n{text}")));
    let (_, rest) = headers.split_once("\"location\": \"").unwrap_or_default();
    rest.split('"').next().unwrap_or_default().to_owned()
}

/// Calls every operation that only reads or checks, with every id, and every other with a wrong body.
async fn everything(observed: &mut Observed, when: &str) {
    let url = format!("{}/openapi.json", observed.world.base);
    let document: Value = observed.http.get(url).send().await.unwrap().json().await.unwrap();
    let operations = document::operations(&document);
    let mut own = Tenant::of(&observed.world, observed.world.owner).await;
    own.key.clone_from(&observed.world.key);
    own.view(&mut super::client::Client::of(&observed.world), &operations).await;
    for operation in &operations {
        let is_read = operation.method == Method::GET;
        let is_check = ["/test", "/retry", "/redeliver", "/posts/validate", "/auth-url"]
            .iter()
            .any(|end| operation.path.ends_with(end));
        let first = operation.parameters().first().map(|name| operation.collection(name).to_owned());
        let ids = match first.as_deref().map(|collection| own.ids.get(collection)) {
            Some(Some(ids)) => ids.clone(),
            _ => vec![String::new()],
        };
        for id in ids {
            let mut is_first = true;
            let path = operation.filled(|parameter| match std::mem::take(&mut is_first) && !id.is_empty() {
                true => id.clone(),
                false => own.parameter(operation, parameter),
            });
            let what = format!("{} {path} {when}", operation.method);
            let request =
                observed.http.request(operation.method.clone(), format!("{}{path}", observed.world.base));
            let request = request.bearer_auth(&observed.world.key);
            if is_read || is_check {
                let request = match &operation.body {
                    Some(body) => request.json(&body.example),
                    None => request,
                };
                observed.send(&what, request).await;
            } else if let Some(body) = &operation.body {
                // Each member is a list with the secret.
                let wrong: Value =
                    body.members.iter().map(|name| (name.clone(), json!([[password(observed)]]))).collect();
                observed.send(&what, request.json(&wrong)).await;
            }
        }
    }
    let origin = observed.world.base.trim_end_matches("/api/v1").to_owned();
    for path in ["/healthz", "/docs", "/api/v1/openapi.json", "/metrics", "/nothing"] {
        let request = observed.http.get(format!("{origin}{path}")).bearer_auth(&observed.world.key);
        observed.send(path, request).await;
    }
}

/// Returns one of the planted app passwords.
fn password(observed: &Observed) -> String {
    let planted = observed.planted.lock().unwrap();
    planted.iter().find(|(_, kind)| **kind == "app password").unwrap().0.clone()
}

/// Opens every page of the dashboard, and makes each of its checks.
async fn dashboard(observed: &mut Observed, webhook: &Value) {
    let origin = observed.world.base.trim_end_matches("/api/v1").to_owned();
    let form = |path: &str, fields: &[(&str, &str)]| {
        let request = observed.http.post(format!("{origin}/dashboard{path}")).form(fields);
        request.header(header::ORIGIN, &origin)
    };
    let cookie = login::sign_in(&observed.world).await;
    plant(&observed.planted, "session", cookie.split_once('=').unwrap().1);
    let wrong = form("/sign-in", &[("key", "sk_test_planted-and-wrong-0000000000000000")]);
    let webhook = webhook["id"].as_str().unwrap();
    let mut requests = vec![("signing in with a wrong key".to_owned(), wrong)];
    let mut paths: Vec<_> =
        ["", "/posts", "/compose", "/accounts", "/webhooks", "/media", "/keys", "/team", "/usage"]
            .map(str::to_owned)
            .into();
    paths.push(format!("/webhooks/{webhook}"));
    for (list, path) in [("/posts?limit=100", "/posts"), ("/posts?limit=100", "/compose?post=")] {
        for item in observed.world.get(list).await["data"].as_array().unwrap() {
            paths.push(format!("{path}/{}", item["id"].as_str().unwrap()));
        }
    }
    for path in paths {
        let request = observed.http.get(format!("{origin}/dashboard{path}")).header(header::COOKIE, &cookie);
        requests.push((format!("the page {path}"), request));
    }
    for account in observed.world.get("/social-accounts").await["data"].as_array().unwrap() {
        let path = format!("/accounts/{}/check", account["id"].as_str().unwrap());
        requests.push((format!("the form {path}"), form(&path, &[]).header(header::COOKIE, &cookie)));
    }
    let password = password(observed);
    for (path, fields) in [
        (format!("/webhooks/{webhook}/test"), vec![]),
        (
            "/accounts/bluesky".to_owned(),
            vec![("identifier", "ada.bsky.social"), ("app_password", password.as_str())],
        ),
        ("/accounts/bluesky".to_owned(), vec![("identifier", ""), ("app_password", password.as_str())]),
        ("/keys".to_owned(), vec![("name", "")]),
        ("/team".to_owned(), vec![("email", "nobody")]),
        ("/webhooks".to_owned(), vec![("url", "nowhere")]),
    ] {
        requests.push((format!("the form {path}"), form(&path, &fields).header(header::COOKIE, &cookie)));
    }
    for (what, request) in requests {
        observed.send(&what, request).await;
    }
}

/// Calls every tool of the MCP endpoint, with ids and without.
async fn tools(observed: &mut Observed, receiver: &str) {
    let url = observed.world.base.replace("/api/v1", "/api/mcp");
    let message = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let ask = |observed: &Observed, message: &Value| {
        let request = observed.http.post(&url).bearer_auth(&observed.world.key).json(message);
        request.header(header::ACCEPT, "application/json, text/event-stream")
    };
    let request = ask(observed, &message("tools/list", json!({})));
    let (_, listed) = observed.send("tools/list", request).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    // Only this answer shows the secret.
    let signing = "whsec_planted-for-a-tool-3b9d";
    plant(&observed.planted, "signing secret", signing);
    let arguments = json!({ "url": receiver, "events": ["*"], "signing_secret": signing });
    let call = message("tools/call", json!({ "name": "create_webhook", "arguments": arguments }));
    let (_, _, shown) = observed.send_unseen(ask(observed, &call)).await;
    assert!(shown.contains(signing), "{shown}");
    let post = observed.world.get("/posts").await["data"][0]["id"].clone();
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert!(tools.len() > 10, "only {} tools", tools.len());
    for tool in tools {
        let secret = json!([password(observed)]);
        let wrong = json!({ "id": post, "content": secret, "url": secret, "signing_secret": secret });
        for arguments in [json!({}), json!({ "id": post }), wrong] {
            let call = message("tools/call", json!({ "name": tool["name"], "arguments": arguments }));
            let request = ask(observed, &call);
            observed.send(&format!("the tool {}", tool["name"]), request).await;
        }
    }
}

/// Adds all rows of the database, and returns their number.
async fn rows(observed: &mut Observed) -> usize {
    let query = "select table_name::text from information_schema.tables
        where table_schema = 'public' and table_type = 'BASE TABLE'";
    let tables: Vec<String> = sqlx::query_scalar(query).fetch_all(&observed.world.db).await.unwrap();
    let mut count = 0;
    for table in tables {
        let query = sqlx::AssertSqlSafe(format!("select to_jsonb(t)::text from {table} t"));
        let rows: Vec<String> = sqlx::query_scalar(query).fetch_all(&observed.world.db).await.unwrap();
        assert!(table != "seen_messages" || rows.len() > 10, "only {} messages were seen", rows.len());
        count += rows.len();
        observed.seen.push((format!("the table {table}"), rows.join("\n")));
    }
    count
}

/// Adds the histories of all workflows, with their payloads, and returns their number.
async fn histories(observed: &mut Observed) -> usize {
    let client = temporal_client(&tests::shared(&crate::PROGRAM).await.temporal).await;
    let query = format!("FanfareOrg = '{}'", observed.world.owner.org);
    let kinds = [
        "WorkerRequest",
        "DrainEndpoint",
        "DisconnectAccount",
        "ImportPosts",
        "PublishPost",
        "PublishTarget",
    ];
    // The list lags.
    let listed = wait_until("every type of workflow", async || {
        let found: Vec<_> = client.list_workflows(query.clone(), Default::default()).collect().await;
        let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
        let types: BTreeSet<_> = found.iter().map(|found| found.workflow_type().to_owned()).collect();
        if kinds.iter().all(|kind| types.contains(*kind)) { Ok(found) } else { Err(format!("{types:?}")) }
    })
    .await;
    for found in &listed {
        let handle = client.get_workflow_handle::<UntypedWorkflow>(found.id());
        let json = handle.fetch_history(WorkflowFetchHistoryOptions::default()).to_json().await.unwrap();
        let mut text = String::from_utf8(json.to_vec()).unwrap();
        unpack(&serde_json::from_str(&text).unwrap(), &mut text);
        observed.seen.push((format!("the history of {}", found.id()), text));
    }
    listed.len()
}

/// Appends the decoded payloads of a history.
fn unpack(value: &Value, into: &mut String) {
    match value {
        Value::String(text) => {
            let plain =
                BASE64_STANDARD.decode(text).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            into.extend(plain.ok().map(|plain| format!("\n{plain}")));
        }
        Value::Array(items) => items.iter().for_each(|item| unpack(item, into)),
        Value::Object(members) => members.values().for_each(|member| unpack(member, into)),
        _ => {}
    }
}

/// Returns the types of the product that derive `Debug` and have a secret among their members.
fn types_that_print_secrets() -> Vec<String> {
    let declared = Regex::new(
        r"(?s)#\[derive\([^)]*\bDebug\b[^)]*\)\](?:\s*#\[[^\n]*\])*\s*(?:pub(?:\([a-z]+\))? )?struct (\w+)[^{;(]*\{(.*?)\n\s*\}",
    )
    .unwrap();
    let member = Regex::new(
        r"(?m)^\s*(?:pub(?:\([a-z]+\))? )?(client_secret|app_password|signing_secret|access_token|refresh_token|access_jwt|refresh_jwt|password|verifier|key|upload_url|invite_url): (?:Option<)?(?:String|&'a str|Text<)",
    )
    .unwrap();
    let mut found = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let crates = [
        "domain",
        "store",
        "media",
        "egress",
        "platforms",
        "publishing",
        "workflows",
        "activities",
        "starter",
        "api",
        "dashboard",
        "server",
    ];
    let mut files = 0;
    for folder in crates {
        let mut folders = vec![root.join(folder).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                if path.extension().is_none_or(|end| end != "rs") {
                    continue;
                }
                files += 1;
                let source = std::fs::read_to_string(&path).unwrap();
                for declaration in declared.captures_iter(&source) {
                    let secret = member.captures(&declaration[2]).map(|member| member[1].to_owned());
                    found.extend(
                        secret.map(|secret| format!("{}: {}.{secret}", path.display(), &declaration[1])),
                    );
                }
            }
        }
    }
    assert!(files > 100, "only {files} files were read");
    // These keys name a plan.
    found.retain(|found| !found.ends_with("Plan.key") && !found.ends_with("PlanName.key"));
    found
}
