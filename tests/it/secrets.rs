//! Only workers decrypt secrets, their keys can be rotated, and secrets appear in no other place.

use crate::{
    connect::finalize,
    replay::{client, walk},
    world,
};
use domain::{AccountId, Mode};
use futures::StreamExt;
use platforms::Grant;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::{collections::BTreeSet, path::PathBuf, process::Stdio};
use store::{
    accounts::grants,
    upkeep::vault::{self, KeyId, Opener, PrivateKey},
};
use temporalio_client::WorkflowFetchHistoryOptions;
use temporalio_common::UntypedWorkflow;
use tests::{PATIENCE, Receiver, World, login::several, wait_until};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

/// Text that shares no part with any text of the program.
const CANARY: &str = "Zq7-Xv2kWj9_Qp4";

/// Checks every setting that holds a secret, in every command that has it.
#[tokio::test]
async fn a_malformed_secret_is_named_and_not_shown() {
    let private = PrivateKey::generate();
    let directory = std::env::temp_dir();
    let fit = [
        ("DATABASE_URL", "postgres://fanfare@127.0.0.1:9/fanfare".to_owned()),
        ("FANFARE_SECRET", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned()),
        ("FANFARE_SEAL_KEY", format!("1:{}", private.public())),
        ("FANFARE_OPEN_KEYS", format!("1:{}", private.reveal())),
        ("FANFARE_MEDIA", format!("file://{}", directory.display())),
        ("FANFARE_START_TIMEOUT", "1".to_owned()),
    ];
    let run = async |path: &[String], variable: &str, value: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fanfare-under-test"));
        command.args(path).env_clear().envs(fit.clone()).env(variable, value).kill_on_drop(true);
        let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("it ends").unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    };
    let quotes = |said: &str, secret: &str| {
        secret.as_bytes().windows(7).any(|part| said.contains(str::from_utf8(part).unwrap()))
    };
    let whole = private.reveal();
    let key = &whole[..42];
    let mut seen = BTreeSet::new();
    for (path, variable) in secret_settings(&server::command(), &[]) {
        // Too short, and no key, URL or JSON at all; then almost valid keys, JSON and URLs.
        let values = [
            CANARY.to_owned(),
            format!("2:{key}"),
            key.to_owned(),
            format!("{{\"x\": {{\"client_id\": \"id\", \"client_secret\": [\"{CANARY}\"]}}}}"),
            format!("[{{\"key\": \"{CANARY}\", \"posts\": \"{CANARY}\"}}]"),
            format!("http//user:{CANARY}@host"),
        ];
        let wrong = match variable.as_str() {
            // Any text that is long enough is a token.
            "FANFARE_SANDBOX_TOKEN" | "FANFARE_OPERATOR_TOKEN" => 1,
            _ if takes_any_text(&variable) => 0,
            _ => values.len(),
        };
        for value in &values[..wrong] {
            let (code, said) = run(&path, &variable, value).await;
            assert_eq!(code, Some(2), "{path:?} with {variable}={value}: {said}");
            assert!(said.contains(&variable), "{path:?} does not name {variable}: {said}");
            assert!(!quotes(&said, CANARY) && !quotes(&said, key), "{path:?} shows {variable}: {said}");
        }
        seen.insert(variable);
    }
    for variable in
        ["DATABASE_URL", "FANFARE_OPEN_KEYS", "FANFARE_SECRET", "FANFARE_SHARED_APPS", "FANFARE_MEDIA"]
    {
        assert!(seen.contains(variable), "{variable} is not among {seen:?}");
    }

    // URLs with a secret that fail to parse or to connect.
    for url in [
        format!("postgres://fanfare:{CANARY}@127.0.0.1:9/fanfare"),
        format!("postgres://fanfare:{CANARY}@127.0.0.1:port/fanfare"),
        format!("postgres://fanfare@127.0.0.1:9/fanfare?sslpassword={CANARY}"),
        format!("postgres://fanfare@127.0.0.1:9/fanfare?sslmode={CANARY}"),
    ] {
        let (code, said) = run(&["migrate".to_owned()], "DATABASE_URL", &url).await;
        assert!(code.is_some_and(|code| code > 0), "{url}: {said}");
        assert!(!quotes(&said, CANARY), "DATABASE_URL={url} is shown: {said}");
    }
}

/// Returns true for a secret of another service, whose form is not checked.
fn takes_any_text(variable: &str) -> bool {
    variable.starts_with("AWS_") || ["FANFARE_OIDC_CLIENT_SECRET", "TEMPORAL_API_KEY"].contains(&variable)
}

/// Checks every setting that holds a secret, in every command that has it.
#[tokio::test]
async fn a_secret_from_a_file_is_required_to_be_readable_valid_and_the_only_one() {
    let private = PrivateKey::generate();
    let directory = tests::directory().join("secret-files");
    std::fs::create_dir_all(&directory).unwrap();
    let malformed = directory.join("malformed");
    std::fs::write(&malformed, "Zq7-Xv2k\n").unwrap();
    let [empty, binary, missing] = ["empty", "binary", CANARY].map(|name| directory.join(name));
    std::fs::write(&empty, " \n").unwrap();
    std::fs::write(&binary, [CANARY.as_bytes(), &[0xff]].concat()).unwrap();
    let fit = [
        ("DATABASE_URL", "postgres://fanfare@127.0.0.1:9/fanfare".to_owned()),
        ("FANFARE_SECRET", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned()),
        ("FANFARE_SEAL_KEY", format!("1:{}", private.public())),
        ("FANFARE_OPEN_KEYS", format!("1:{}", private.reveal())),
        ("FANFARE_MEDIA", format!("file://{}", directory.display())),
    ];
    let run = async |path: &[String], unset: &str, set: &[(&str, &std::ffi::OsStr)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fanfare-under-test"));
        command.args(path).env_clear().envs(fit.clone()).env_remove(unset).envs(set.iter().copied());
        let output = tokio::time::timeout(PATIENCE, command.kill_on_drop(true).output()).await;
        let output = output.expect("it ends").unwrap();
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let mut seen = BTreeSet::new();
    for (path, variable) in secret_settings(&server::command(), &[]) {
        let file = format!("{variable}_FILE");
        if !takes_any_text(&variable) {
            let (code, said) = run(&path, &variable, &[(&file, malformed.as_ref())]).await;
            assert_eq!(code, Some(2), "{path:?} with {file}: {said}");
            assert!(said.contains(&file) && !said.contains("Zq7-Xv2k"), "{path:?} with {file}: {said}");
        }
        let help = run(&[&path[..], &["--help".to_owned()]].concat(), "", &[]).await.1;
        let (_, listed) = help.split_once("append _FILE to").unwrap_or_else(|| panic!("{path:?}: {help}"));
        assert!(listed.contains(&variable), "{path:?}: {help}");
        if !seen.insert(variable.clone()) {
            continue;
        }
        let (code, said) = run(&path, "", &[(&variable, CANARY.as_ref()), (&file, malformed.as_ref())]).await;
        let both = format!("error: {variable} and {file} are both set: remove one\n");
        assert_eq!((code, said), (Some(2), both), "{path:?}");
        for (unfit, reason) in [
            (&missing, "does not name a readable file: No such file or directory (os error 2)"),
            (&directory, "does not name a readable file: Is a directory (os error 21)"),
            (&binary, "does not name a readable file: stream did not contain valid UTF-8"),
            (&empty, "names an empty file"),
        ] {
            let (code, said) = run(&path, &variable, &[(&file, unfit.as_ref())]).await;
            assert_eq!((code, said), (Some(2), format!("error: {file} {reason}\n")), "{path:?}");
        }
    }
    for variable in ["FANFARE_SEAL_KEY", "FANFARE_SANDBOX_TOKEN", "AWS_SECRET_ACCESS_KEY"] {
        assert!(seen.contains(variable), "{variable} is not among {seen:?}");
    }
}

#[tokio::test]
async fn a_service_runs_with_secrets_from_files() {
    let mut world = world().running(&[]).start().await;
    world.connect("x", "ada").await;
    let directory = tests::directory().join("service-secrets");
    std::fs::create_dir_all(&directory).unwrap();
    let secrets: BTreeSet<_> =
        secret_settings(&server::command(), &[]).into_iter().map(|(_, variable)| variable).collect();
    let mut moved = 0;
    for (name, value) in world.environment().to_vec() {
        if secrets.contains(&name) {
            let file = directory.join(&name);
            std::fs::write(&file, format!("{value}\n")).unwrap();
            world.set(&name, "");
            world.set(&format!("{name}_FILE"), file.to_str().unwrap());
            moved += 1;
        }
    }
    assert!(moved >= 6, "{moved} of {secrets:?}");
    world.run("all").await;
    publishes(&world, "From files", "ada").await;
    // Standard error and the command line show none.
    let pid = world.pids()[0];
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    assert!(arguments.ends_with(b"fanfare-under-test\0all\0"), "{}", String::from_utf8_lossy(&arguments));
}

/// Returns the settings with hidden values, each with the path of the command that takes it.
fn secret_settings(command: &clap::Command, path: &[String]) -> Vec<(Vec<String>, String)> {
    let own = command.get_arguments().filter(|argument| argument.is_hide_env_values_set());
    let own = own.filter_map(|argument| Some((path.to_vec(), argument.get_env()?.to_str()?.to_owned())));
    let commands = command.get_subcommands().filter(|command| command.get_name() != "help");
    let below = commands
        .flat_map(|command| secret_settings(command, &[path, &[command.get_name().to_owned()]].concat()));
    own.chain(below).collect()
}

/// The client secret of an OAuth app.
const CLIENT_SECRET: &str = "planted-client-secret-5dbd1b2c";
/// The signing secret of a webhook endpoint.
const SIGNING_SECRET: &str = "whsec_planted-signing-secret-0c5e9f77";

async fn publishes(world: &World, content: &str, account: &str) {
    let post = world.post(json!({ "content": content, "accounts": [account] })).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{content}: {ended:#}");
}

#[tokio::test]
async fn the_api_runs_without_the_decryption_key() {
    let mut world = world().running(&[]).everywhere().start().await;
    let account = world.connect("x", "ada").await;
    let ring = world.set("FANFARE_OPEN_KEYS", "").unwrap();
    world.run("api").await;
    world.get(&format!("/social-accounts/{account}")).await;
    let app = json!({ "platform": "youtube", "client_id": "id", "client_secret": CLIENT_SECRET });
    assert_eq!(world.call(Method::POST, "/social-networks", Some(&app)).await.0, StatusCode::CREATED);
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let post = world.post(json!({ "content": "Sealed", "accounts": ["ada"] })).await;
    let refused = world.command(&["worker"]).await;
    assert!(!refused.status.success(), "a worker requires the key");
    world.set("FANFARE_OPEN_KEYS", &ring);
    world.run("worker").await;
    assert_eq!(world.ended(&post).await["status"], "published");
    receiver.events(&["post.published"]).await;
}

#[tokio::test]
async fn encryption_keys_are_rotated_while_the_service_runs() {
    let mut world = world().approved().own().platforms(&["x", "google_business", "youtube"]).start().await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let app = json!({ "platform": "youtube", "client_id": "id", "client_secret": CLIENT_SECRET });
    assert_eq!(world.call(Method::POST, "/social-networks", Some(&app)).await.0, StatusCode::CREATED);
    let mut ids = Vec::new();
    for n in 0..12 {
        ids.push(world.connect("x", &format!("user{n}")).await);
    }
    ids.sort_unstable();
    let token = several(&world, "google_business", "ada").await;
    publishes(&world, "With the old key", "user0").await;

    // Workers must have the new key before any process encrypts with it.
    let new = PrivateKey::generate();
    let old = world.set("FANFARE_OPEN_KEYS", "").unwrap();
    world.set("FANFARE_OPEN_KEYS", &format!("2:{},{old}", new.reveal()));
    world.set("FANFARE_SEAL_KEY", &format!("2:{}", new.public()));
    assert!(world.stop("all").await);
    world.run("all").await;
    publishes(&world, "With both keys", "user1").await;

    // Halfway through the accounts, the command waits for a locked row, and is killed there.
    let middle: AccountId = ids[6].parse().unwrap();
    let mut busy = ::store::begin(&world.db).await.unwrap();
    let lock = sqlx::query("select from accounts where id = $1 for update").bind(middle.0);
    lock.fetch_one(&mut *busy).await.unwrap();
    let mut child = world.spawn(&["key", "reseal", "--batch", "2"], Stdio::piped());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    loop {
        let line = lines.next_line().await.unwrap().expect("it runs until it is killed");
        if line.contains("6 re-encrypted, about 6 left") {
            break;
        }
    }
    publishes(&world, "Between the keys", "user2").await;
    child.kill().await.unwrap();
    let only_new = Opener::new((KeyId(2), new.clone()), []);
    assert_eq!(opened(&world, &only_new, &ids).await, 6);
    busy.rollback().await.unwrap();

    let done = world.command(&["key", "reseal", "--batch", "2"]).await;
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{said}\n{}", String::from_utf8_lossy(&done.stderr));
    // Six accounts, the client secret, the signing secret and the pending login. Postgres may have completed
    // the write for which the killed process was waiting.
    assert!(
        ["Re-encrypted 9 values", "Re-encrypted 8 values"].iter().any(|end| said.contains(end)),
        "{said}"
    );
    assert_eq!(opened(&world, &only_new, &ids).await, 12);
    let again = world.command(&["key", "reseal"]).await;
    assert!(String::from_utf8(again.stdout).unwrap().contains("Re-encrypted 0 values"));

    // Without the old key, all stored secrets can still be decrypted.
    world.set("FANFARE_OPEN_KEYS", &format!("2:{}", new.reveal()));
    assert!(world.stop("all").await);
    world.run("all").await;
    let (_, offered) = world.call(Method::GET, &format!("/social-accounts/pending/{token}"), None).await;
    let (status, chosen) = finalize(&world, &token, &[offered["data"][0]["id"].as_str().unwrap()]).await;
    assert_eq!(status, StatusCode::CREATED, "{chosen}");
    let before = receiver.all().len();
    for n in [0, 6, 11] {
        publishes(&world, "With the new key", &format!("user{n}")).await;
    }
    let arrived = receiver.until("signed deliveries", |all| all.len() >= before + 6).await;
    let secret = webhook["signing_secret"].as_str().unwrap();
    assert!(arrived.iter().all(|delivery| delivery.signed(secret).is_some()));
}

#[tokio::test]
async fn a_missing_key_is_reported_and_its_secrets_are_left_unchanged() {
    let mut world = world().own().start().await;
    let account = world.connect("x", "ada").await;
    let stranger = PrivateKey::generate();
    let ring = world.set("FANFARE_OPEN_KEYS", &format!("7:{}", stranger.reveal())).unwrap();
    let refused = world.command(&["key", "reseal"]).await;
    let (said, why) =
        (String::from_utf8(refused.stdout).unwrap(), String::from_utf8(refused.stderr).unwrap());
    assert!(!refused.status.success());
    assert!(said.contains(&account) && said.contains("key 1, which is not in the ring"), "{said}");
    assert!(why.contains("1 still need another key"), "{why}");
    world.set("FANFARE_OPEN_KEYS", &ring);
    publishes(&world, "As before", "ada").await;
}

/// Returns how many of the accounts' grants this opener decrypts.
async fn opened(world: &World, opener: &Opener, ids: &[String]) -> usize {
    let mut count = 0;
    for id in ids {
        let id = id.parse().unwrap();
        let grant = grants::get(&world.db, world.owner, id).await.unwrap().unwrap();
        count += usize::from(opener.open(&grant.sealed, &vault::aad_grant(world.owner, id)).is_ok());
    }
    count
}

/// Secrets that must not appear, and the texts to search for them.
#[derive(Default)]
struct Search {
    secrets: BTreeSet<(&'static str, String)>,
    seen: Vec<(String, String)>,
}

impl Search {
    /// Adds a secret to search for.
    fn hide(&mut self, what: &'static str, secret: &str) {
        assert!(secret.len() >= 16, "{what} is too short to search for");
        self.secrets.insert((what, secret.to_owned()));
    }

    /// Adds the secrets in an account's current grant.
    async fn hide_grant(&mut self, world: &World, account: &str) {
        let id = account.parse().unwrap();
        let sealed = grants::get(&world.db, world.owner, id).await.unwrap().unwrap().sealed;
        let plain = world.opener.open(&sealed, &vault::aad_grant(world.owner, id)).unwrap();
        let grant: Grant = serde_json::from_slice(&plain).unwrap();
        self.hide("an access token", &grant.access_token);
        if let Some(token) = &grant.refresh_token {
            self.hide("a refresh token", token);
        }
        if let Some(password) = grant.extra["app_password"].as_str() {
            self.hide("an app password", password);
        }
    }

    /// Calls the API, and adds the whole response to the texts.
    async fn call(&mut self, world: &World, method: Method, path: &str, body: Option<Value>) -> Value {
        let url = format!("{}{path}", world.base);
        let mut request = world.http.request(method.clone(), url).bearer_auth(&world.key);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        let headers = format!("{:?}", answer.headers());
        let text = answer.text().await.unwrap();
        self.seen.push((format!("the answer to {method} {path}"), format!("{headers}\n{text}")));
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    /// Adds the histories of all workflows of an organization, with payloads, and returns the workflow types.
    async fn histories(&mut self, org: &str) -> BTreeSet<String> {
        let client = client().await;
        let found: Vec<_> =
            client.list_workflows(format!("FanfareOrg = '{org}'"), Default::default()).collect().await;
        let mut kinds = BTreeSet::new();
        for found in found {
            let found = found.unwrap();
            kinds.insert(found.workflow_type().to_owned());
            let handle = client.get_workflow_handle::<UntypedWorkflow>(found.id());
            let json = handle.fetch_history(WorkflowFetchHistoryOptions::default()).to_json().await.unwrap();
            let mut text = String::from_utf8(json.to_vec()).unwrap();
            let history = serde_json::from_str(&text).unwrap();
            walk(&history, "", &mut |_, part| text.extend(["\n", part]));
            self.seen.push((format!("the history of {}", found.id()), text));
        }
        kinds
    }

    /// Panics if a text contains a secret, without printing the secret.
    fn judge(&self) {
        for (place, text) in &self.seen {
            for (what, secret) in &self.secrets {
                assert!(!text.contains(secret.as_str()), "{what} is in {place}");
            }
        }
    }
}

#[tokio::test]
async fn no_secret_is_in_any_log_answer_history_or_error() {
    let mut world = world().running(&[]).everywhere().start().await;
    let mut search = Search::default();
    let log: PathBuf = tests::directory().join(format!("secrets-{}.log", world.owner.org));
    world.log_to(&log);
    world.set("RUST_LOG", "debug");
    let ring = world.set("FANFARE_OPEN_KEYS", "").unwrap();
    world.set("FANFARE_OPEN_KEYS", &ring);
    search.hide("the key that opens", ring.split_once(':').unwrap().1);
    let shared = "planted-shared-app-secret-b1946ac9";
    world.set(
        "FANFARE_SHARED_APPS",
        &json!({ "x": { "client_id": "id", "client_secret": shared } }).to_string(),
    );
    search.hide("the secret of a shared app", shared);
    world.run("api").await;
    world.run("worker").await;

    search.hide("an API key", &world.key.clone());
    search.hide("a client secret", CLIENT_SECRET);
    search.hide("a signing secret", SIGNING_SECRET);
    search.hide("the secret of the sandbox's app", "fanfare-sandbox-secret");
    let receiver = Receiver::start().await;
    let x = world.connect("x", "ada").await;
    let bluesky = world.connect("bluesky", "ada.bsky.social").await;
    search.hide_grant(&world, &x).await;
    search.hide_grant(&world, &bluesky).await;

    let app = json!({ "platform": "youtube", "client_id": "id", "client_secret": CLIENT_SECRET });
    search.call(&world, Method::POST, "/social-networks", Some(app)).await;
    let wrong = json!({ "platform": 1, "client_secret": [CLIENT_SECRET] });
    search.call(&world, Method::POST, "/social-networks", Some(wrong)).await;
    search.call(&world, Method::GET, "/social-networks", None).await;
    // Only the response to creation shows a signing secret or a key, so it is not searched.
    let hook = json!({ "url": receiver.url, "events": ["*"], "signing_secret": SIGNING_SECRET });
    let (status, hook) = world.call(Method::POST, "/webhooks", Some(&hook)).await;
    assert_eq!((status, &hook["signing_secret"]), (StatusCode::CREATED, &json!(SIGNING_SECRET)));
    let hook = format!("/webhooks/{}", hook["id"].as_str().unwrap());
    let wrong =
        json!({ "url": "nowhere", "events": [SIGNING_SECRET.len()], "signing_secret": SIGNING_SECRET });
    search.call(&world, Method::POST, "/webhooks", Some(wrong)).await;
    // A tool's response shows the secret as well.
    let arguments = json!({ "url": receiver.url, "events": ["*"], "signing_secret": SIGNING_SECRET });
    let params = json!({ "name": "create_webhook", "arguments": arguments });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let tool =
        world.http.post(world.base.replace("/api/v1", "/api/mcp")).bearer_auth(&world.key).json(&message);
    let tool = tool.header("accept", "application/json, text/event-stream").send().await.unwrap();
    assert!(tool.text().await.unwrap().contains(SIGNING_SECRET));
    let body = json!({ "name": "second", "scopes": ["posts:read"] });
    let (_, key) = world.call(Method::POST, "/api-keys", Some(&body)).await;
    search.hide("another API key", key["key"].as_str().unwrap());
    let path = format!("/api-keys/{}", key["id"].as_str().unwrap());
    search.call(&world, Method::DELETE, &path, None).await;
    let revoked = world.http.get(format!("{}/posts", world.base)).bearer_auth(key["key"].as_str().unwrap());
    let revoked = revoked.send().await.unwrap();
    assert_eq!(revoked.status(), StatusCode::UNAUTHORIZED);
    search.seen.push(("the answer to a revoked key".to_owned(), revoked.text().await.unwrap()));

    // Every use of a token: published, rejected, refreshed, lost.
    let both = json!(["ada", "ada.bsky.social"]);
    let mut posts = vec![world.post(json!({ "content": "One", "accounts": both })).await];
    world.ended(&posts[0]).await;
    for (platform, account) in [("x", "ada"), ("bluesky", "ada.bsky.social")] {
        world.expire_tokens(platform, account).await;
    }
    for content in ["Two", "Three #sandbox-401", "Four #sandbox-400", "Five #sandbox-500x1"] {
        let post = world.post(json!({ "content": content, "accounts": both })).await;
        world.ended(&post).await;
        posts.push(post);
        search.hide_grant(&world, &x).await;
        search.hide_grant(&world, &bluesky).await;
    }
    world.revoke_grants("x", "ada").await;
    let last = world.post(json!({ "content": "Six", "accounts": both })).await;
    world.ended(&last).await;
    posts.push(last);
    for post in &posts {
        let path = format!("/posts/{}", post["id"].as_str().unwrap());
        for more in ["", "/timeline", "/analytics"] {
            search.call(&world, Method::GET, &format!("{path}{more}"), None).await;
        }
    }
    for account in [&x, &bluesky] {
        let path = format!("/social-accounts/{account}");
        for more in ["", "/health", "/capabilities"] {
            search.call(&world, Method::GET, &format!("{path}{more}"), None).await;
        }
    }
    let body = json!({ "redirect_uri": "https://example.com/done" });
    search.call(&world, Method::POST, "/social-networks/x/auth-url", Some(body)).await;
    search.call(&world, Method::POST, &format!("{hook}/test"), None).await;
    for path in ["/posts", "/social-accounts", "/webhooks", "/api-keys", "/account/usage"] {
        search.call(&world, Method::GET, path, None).await;
    }
    search.call(&world, Method::GET, &hook, None).await;
    search.call(&world, Method::GET, &format!("{hook}/deliveries"), None).await;
    for account in [&x, &bluesky] {
        search.call(&world, Method::DELETE, &format!("/social-accounts/{account}"), None).await;
    }
    receiver.events(&["account.disconnected", "account.disconnected"]).await;
    for delivery in receiver.all() {
        let text = format!("{:?}\n{}", delivery.headers, String::from_utf8_lossy(&delivery.body));
        search.seen.push((format!("the delivery of {}", delivery.event()), text));
    }
    let origin = world.base.trim_end_matches("/api/v1").to_owned();
    for path in ["/healthz", "/docs", "/api/v1/openapi.json"] {
        let answer = world.http.get(format!("{origin}{path}")).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        search.seen.push((path.to_owned(), answer.text().await.unwrap()));
    }
    let metrics = world.http.get(format!("{origin}/metrics")).send().await.unwrap().status();
    assert_eq!(metrics, StatusCode::NOT_FOUND, "if metrics are served here, they must be searched too");

    // Temporal's list lags, so wait until it has every workflow type.
    let org = world.owner.org.to_string();
    let kinds =
        ["WorkerRequest", "DrainEndpoint", "DisconnectAccount", "PublishPost", "PublishTarget", "RenewGrant"]
            .map(str::to_owned);
    let listed = async || {
        let found = search.histories(&org).await;
        if found == BTreeSet::from(kinds.clone()) { Ok(()) } else { Err(format!("{found:?}")) }
    };
    wait_until("every workflow type", listed).await;
    assert!(world.stop("worker").await && world.stop("api").await);
    let log = std::fs::read_to_string(&log).unwrap();
    // The searched texts are not empty.
    assert!(
        log.contains("Published target") && log.contains("messages to Temporal"),
        "the log of both processes"
    );
    assert!(search.seen.iter().any(|(place, text)| place.contains("renew-grant-") && text.contains(&x)));
    assert_eq!(world.owner.mode, Mode::Test);
    search.seen.push(("the log".to_owned(), log));
    assert!(search.secrets.len() > 12, "only {} secrets to search for", search.secrets.len());
    search.judge();
}

/// Who replaces every line that a rotation prints must not end what the secret has signed.
#[tokio::test]
async fn a_further_key_is_printed_without_a_new_secret() {
    let world = world().start().await;
    for (args, expected) in [
        (&["key", "generate"][..], &["FANFARE_SEAL_KEY", "FANFARE_OPEN_KEYS", "FANFARE_SECRET"][..]),
        (&["key", "generate", "--id", "2"], &["FANFARE_SEAL_KEY", "FANFARE_OPEN_KEYS"]),
    ] {
        let printed = String::from_utf8(world.command(args).await.stdout).unwrap();
        let names: Vec<_> = printed.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        assert_eq!(names, expected, "{args:?}");
    }
}
