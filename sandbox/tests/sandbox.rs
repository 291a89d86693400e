//! The sandbox from outside, over HTTP: publishing, refusals and their wording, persistence,
//! and failures on purpose.

#![expect(clippy::unwrap_used, reason = "a test that can't go on says so by panicking")]

extern crate fanfare_sandbox as sandbox;

use chrono::{DateTime, TimeDelta, Utc};
use domain::OrgId;
use reqwest::{Client, Response, StatusCode};
use sandbox::{Access, Address, AppStatus, Options, Sandbox, serve};
use serde_json::{Value, json};
use std::{
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    sync::{Once, atomic::AtomicI64, atomic::Ordering},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x03\x08\x06\0\0\0";
const MP4: &[u8] = b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom\0\0\0\x08free";

#[expect(clippy::disallowed_methods, reason = "a test is a composition root of its own")]
fn clock() -> DateTime<Utc> {
    std::time::SystemTime::now().into()
}

struct World {
    sandbox: Sandbox,
    address: SocketAddr,
    http: Client,
    server: tokio::task::JoinHandle<anyhow::Result<()>>,
}

impl World {
    fn new() -> Self {
        Self::open(None, clock)
    }

    fn open(data: Option<PathBuf>, clock: fn() -> DateTime<Utc>) -> Self {
        Self::with("127.0.0.1:0", data, clock, Access::default())
    }

    /// Starts a sandbox that other machines can reach.
    fn exposed(data: Option<PathBuf>, token: Option<&str>) -> Self {
        let access = Access { token: token.map(str::to_owned), ..Access::default() };
        Self::with("0.0.0.0:0", data, clock, access)
    }

    fn with(listen: &str, data: Option<PathBuf>, clock: fn() -> DateTime<Utc>, access: Access) -> Self {
        static TLS: Once = Once::new();
        TLS.call_once(|| {
            rustls::crypto::ring::default_provider().install_default().unwrap();
        });
        let sandbox = Sandbox::open_with(Options { data, clock, app: AppStatus::New }, access).unwrap();
        let listener = TcpListener::bind(listen).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], listener.local_addr().unwrap().port()));
        let server = tokio::spawn(serve(sandbox.clone(), listener, std::future::pending()));
        #[expect(clippy::disallowed_methods, reason = "the test stands outside, as a client library does")]
        let http = Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self { sandbox, address, http, server }
    }

    fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    async fn settings(&self, settings: Value) {
        let reply = self.http.post(self.at("/_settings")).json(&settings).send().await.unwrap();
        assert_eq!(reply.status(), 200);
    }

    async fn journal(&self, query: &str) -> Vec<Value> {
        let reply = self.http.get(self.at(&format!("/_journal?{query}"))).send().await.unwrap();
        reply.json::<Value>().await.unwrap()["entries"].as_array().unwrap().clone()
    }

    fn x(&self, username: &str) -> X<'_> {
        let connected = self.sandbox.connect("x", username).unwrap();
        X {
            world: self,
            id: connected.identity.profile.network_unique_id,
            token: connected.grant.access_token,
        }
    }

    fn bluesky(&self, username: &str) -> Bluesky<'_> {
        let connected = self.sandbox.connect("bluesky", username).unwrap();
        Bluesky {
            world: self,
            did: connected.identity.profile.network_unique_id,
            token: connected.grant.access_token,
            refresh: connected.grant.refresh_token.unwrap(),
            extra: connected.grant.extra,
        }
    }
}

struct X<'a> {
    world: &'a World,
    id: String,
    token: String,
}

impl X<'_> {
    fn url(&self, path: &str) -> String {
        self.world.at(&format!("/api.x.com/2{path}"))
    }

    async fn try_post(&self, path: &str, body: &Value) -> reqwest::Result<Response> {
        self.world.http.post(self.url(path)).bearer_auth(&self.token).json(body).send().await
    }

    async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        read(self.try_post(path, &body).await.unwrap()).await
    }

    async fn tweet(&self, text: &str) -> (StatusCode, Value) {
        self.post("/tweets", json!({ "text": text })).await
    }

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        read(self.world.http.get(self.url(path)).bearer_auth(&self.token).send().await.unwrap()).await
    }
}

struct Bluesky<'a> {
    world: &'a World,
    did: String,
    token: String,
    refresh: String,
    extra: Value,
}

impl Bluesky<'_> {
    fn url(&self, method: &str) -> String {
        self.world.at(&format!("/bsky.social/xrpc/{method}"))
    }

    async fn post(&self, method: &str, body: Value) -> (StatusCode, Value) {
        read(
            self.world.http.post(self.url(method)).bearer_auth(&self.token).json(&body).send().await.unwrap(),
        )
        .await
    }

    async fn get(&self, method: &str) -> (StatusCode, Value) {
        read(self.world.http.get(self.url(method)).bearer_auth(&self.token).send().await.unwrap()).await
    }

    async fn put(&self, rkey: &str, record: &Value) -> (StatusCode, Value) {
        let body = json!({ "repo": self.did, "collection": POST, "rkey": rkey, "record": record });
        self.post("com.atproto.repo.putRecord", body).await
    }

    async fn upload(&self, bytes: &'static [u8], mime: &str) -> Value {
        let request = self.world.http.post(self.url("com.atproto.repo.uploadBlob")).bearer_auth(&self.token);
        let (status, body) =
            read(request.header("content-type", mime).body(bytes).send().await.unwrap()).await;
        assert_eq!(status, 200, "{body}");
        body["blob"].clone()
    }
}

const POST: &str = "app.bsky.feed.post";

fn record(text: &str) -> Value {
    json!({ "$type": POST, "text": text, "createdAt": "2026-01-02T03:04:05.678Z" })
}

async fn read(reply: Response) -> (StatusCode, Value) {
    let status = reply.status();
    let text = reply.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

#[tokio::test]
async fn x_publishes_lists_and_deletes() {
    let world = World::new();
    world.settings(json!({ "lag_ms": 0 })).await;
    let alice = world.x("alice");
    let (status, me) = alice.get("/users/me?user.fields=profile_image_url,subscription_type").await;
    assert_eq!((status, &me["data"]["id"]), (StatusCode::OK, &json!(alice.id)));

    let reply = alice.try_post("/tweets", &json!({ "text": "a < b & https://example.com/x" })).await.unwrap();
    assert_eq!(reply.status(), 201);
    assert_eq!(reply.headers()["x-rate-limit-remaining"], "99");
    let location = reply.headers()["location"].to_str().unwrap().to_owned();
    let first: Value = reply.json().await.unwrap();
    let first = first["data"]["id"].as_str().unwrap().to_owned();
    assert!(location.ends_with(&first));
    let (status, second) =
        alice.post("/tweets", json!({ "text": "and on", "reply": { "in_reply_to_tweet_id": first } })).await;
    assert_eq!(status, 201, "{second}");

    let path = format!(
        "/users/{}/tweets?max_results=5&tweet.fields=created_at,entities,referenced_tweets",
        alice.id
    );
    let (_, list) = alice.get(&path).await;
    assert_eq!(list["meta"]["result_count"], 2);
    assert_eq!(list["data"][0]["referenced_tweets"][0], json!({ "type": "replied_to", "id": first }));
    assert!(list["data"][1]["text"].as_str().unwrap().starts_with("a &lt; b &amp; https://t.co/"));
    assert_eq!(list["data"][1]["entities"]["urls"][0]["expanded_url"], "https://example.com/x");
    let (_, without) = alice.get(&format!("{path}&exclude=replies")).await;
    assert_eq!(without["meta"]["result_count"], 1);

    let figures = "tweet.fields=public_metrics,non_public_metrics";
    let (_, found) = alice.get(&format!("/tweets?ids={first},17&{figures}")).await;
    assert_eq!(found["data"][0]["public_metrics"]["reply_count"], 1);
    assert_eq!(found["errors"][0]["resource_id"], "17");
    let (_, stranger) = world.x("bob").get(&format!("/tweets?ids={first}&{figures}")).await;
    assert!(stranger["errors"][0]["type"].as_str().unwrap().ends_with("/not-authorized-for-field"));

    // The post's addresses on the platform work here.
    let page = world.http.get(world.at(&format!("/x.com/alice/status/{first}"))).send().await.unwrap();
    assert_eq!(page.status(), 200);
    assert!(page.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
    let html = page.text().await.unwrap();
    assert!(html.contains("a &#60; b") || html.contains("a &lt; b"), "{html}");
    assert!(html.contains("and on"));
    for path in ["/", "/x/alice", &format!("/x/alice/{first}")] {
        assert_eq!(world.http.get(world.at(path)).send().await.unwrap().status(), 200, "{path}");
    }
    assert_eq!(world.http.get(world.at("/x.com/alice/status/1")).send().await.unwrap().status(), 404);

    let gone = world
        .http
        .delete(alice.url(&format!("/tweets/{first}")))
        .bearer_auth(&alice.token)
        .send()
        .await
        .unwrap();
    assert_eq!(read(gone).await.1, json!({ "data": { "deleted": true } }));
    assert_eq!(
        alice.tweet("a < b & https://example.com/x").await.0,
        403,
        "a deleted text is still a duplicate"
    );

    let accepted = world.journal("account=alice&accepted=true").await;
    assert_eq!(accepted.len(), 2);
    assert_eq!(accepted[0]["post_id"], first);
    assert_eq!(accepted[0]["path"], "/2/tweets");
}

#[tokio::test]
async fn x_pages_a_long_timeline() {
    let world = World::new();
    world.settings(json!({ "lag_ms": 0 })).await;
    let alice = world.x("alice");
    for n in 0..12 {
        assert_eq!(alice.tweet(&format!("number {n}")).await.0, 201);
    }
    let (mut seen, mut next) = (Vec::new(), String::new());
    loop {
        let (_, page) = alice.get(&format!("/users/{}/tweets?max_results=5{next}", alice.id)).await;
        seen.extend(
            page["data"].as_array().unwrap().iter().map(|post| post["text"].as_str().unwrap().to_owned()),
        );
        match page["meta"]["next_token"].as_str() {
            Some(token) => next = format!("&pagination_token={token}"),
            None => break,
        }
    }
    assert_eq!(seen, (0..12).rev().map(|n| format!("number {n}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn x_refuses_what_x_refuses() {
    let world = World::new();
    let alice = world.x("alice");
    let (_, stranger) = world.x("bob").tweet("nobody was asked").await;
    let (_, summons) = world.x("bob").tweet("what do you say, @Alice?").await;
    let reply =
        |to: &Value| json!({ "text": "an answer", "reply": { "in_reply_to_tweet_id": to["data"]["id"] } });

    let bad = [
        json!({ "text": null }),
        json!({ "text": "" }),
        json!({ "text": "a", "media": {} }),
        json!({ "text": "a", "media": { "media_ids": [] } }),
        json!({ "text": "a", "media": { "media_ids": ["1"] } }),
        json!({ "text": "a", "reply": null }),
        json!({ "text": "a", "nonsense": true }),
        json!({ "text": "a", "reply_settings": "everyone" }),
        json!({ "text": "a", "poll": { "options": ["one"], "duration_minutes": 5 } }),
        json!({ "text": "a", "poll": { "options": ["one", "two"], "duration_minutes": 4 } }),
        json!({ "text": "a", "quote_tweet_id": "1", "poll": { "options": ["one", "two"], "duration_minutes": 5 } }),
        json!({ "text": "a", "reply": { "in_reply_to_tweet_id": 17 } }),
    ];
    for body in bad {
        let (status, problem) = alice.post("/tweets", body.clone()).await;
        assert_eq!(status, 400, "{body}: {problem}");
        assert!(problem["type"].as_str().unwrap().ends_with("/problems/invalid-request"), "{problem}");
    }
    let (refused, uninvited) = (
        "You are not permitted to perform this action.",
        "You can only reply to or quote posts where you are mentioned or are the author.",
    );
    for (body, detail) in [
        (json!({ "text": "a".repeat(281) }), refused),
        (json!({ "text": "日".repeat(141) }), refused),
        (json!({ "text": "$TSLA and $AAPL" }), "A post may have a maximum of one cashtag."),
        (json!({ "text": "a", "reply": { "in_reply_to_tweet_id": "1" } }), refused),
        (json!({ "text": "a", "quote_tweet_id": "1" }), refused),
        (reply(&stranger), uninvited),
    ] {
        let (status, problem) = alice.post("/tweets", body.clone()).await;
        assert_eq!((status, &problem["detail"]), (StatusCode::FORBIDDEN, &json!(detail)), "{body}");
    }
    assert_eq!(alice.post("/tweets", reply(&summons)).await.0, 201);
    assert_eq!(alice.tweet(&"a".repeat(280)).await.0, 201);
    let (status, problem) = alice.tweet(&"a".repeat(280)).await;
    assert_eq!(status, 403);
    assert_eq!(problem["detail"], "You are not allowed to create a Tweet with duplicate content.");

    let unauthorized =
        json!({ "title": "Unauthorized", "type": "about:blank", "status": 401, "detail": "Unauthorized" });
    let stranger = X { world: &world, id: String::new(), token: "nonsense".into() };
    assert_eq!(stranger.tweet("a").await, (StatusCode::UNAUTHORIZED, unauthorized.clone()));
    let expired = world.http.post(world.at("/_accounts/x/alice/tokens/expire")).send().await.unwrap();
    assert_eq!(expired.status(), 204);
    assert_eq!(alice.tweet("later").await, (StatusCode::UNAUTHORIZED, unauthorized));

    world.settings(json!({ "limits": { "x.posts": 1 } })).await;
    let carol = world.x("carol");
    assert_eq!(carol.tweet("one").await.0, 201);
    let reply = carol.try_post("/tweets", &json!({ "text": "two" })).await.unwrap();
    assert_eq!(reply.status(), 429);
    assert_eq!(reply.headers()["x-rate-limit-remaining"], "0");
    let reset: i64 = reply.headers()["x-rate-limit-reset"].to_str().unwrap().parse().unwrap();
    assert!(reset > clock().timestamp());
}

#[tokio::test]
async fn x_grants_by_oauth_and_rotates() {
    let world = World::new();
    let verifier = "a-verifier-of-more-than-forty-three-characters-in-all";
    let challenge = {
        use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
        use sha2::Digest;
        BASE64_URL_SAFE_NO_PAD.encode(sha2::Sha256::digest(verifier))
    };
    let app = world.sandbox.connect("x", "dave").unwrap().app.unwrap();
    let asked = [
        ("response_type", "code"),
        ("client_id", app.client_id.as_str()),
        ("redirect_uri", "https://app.example/callback"),
        ("scope", "tweet.read tweet.write users.read offline.access"),
        ("state", "st"),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ];
    let page = world.http.get(world.at("/x.com/i/oauth2/authorize")).query(&asked).send().await.unwrap();
    assert_eq!(page.status(), 200);
    assert!(page.text().await.unwrap().contains("Allow"));
    let without =
        world.http.get(world.at("/x.com/i/oauth2/authorize")).query(&asked[..5]).send().await.unwrap();
    assert_eq!(without.status(), 400, "PKCE is required");

    let decide = async |decision: &str| {
        let mut form = asked.to_vec();
        form.extend([("decision", decision), ("username", "dave")]);
        let reply = world.http.post(world.at("/x.com/i/oauth2/authorize")).form(&form).send().await.unwrap();
        assert_eq!(reply.status(), 302);
        let location = url::Url::parse(reply.headers()["location"].to_str().unwrap()).unwrap();
        location.query_pairs().into_owned().collect::<std::collections::HashMap<_, _>>()
    };
    let denied = decide("deny").await;
    assert_eq!((denied["error"].as_str(), denied["state"].as_str()), ("access_denied", "st"));

    let token = async |form: &[(&str, &str)], with_secret: bool| {
        let mut request = world.http.post(world.at("/api.x.com/2/oauth2/token")).form(form);
        if with_secret {
            request = request.basic_auth(&app.client_id, app.client_secret.as_ref());
        }
        read(request.send().await.unwrap()).await
    };
    let exchange = |code: String, verifier: &str| {
        [
            ("grant_type", "authorization_code".to_owned()),
            ("code", code),
            ("redirect_uri", "https://app.example/callback".to_owned()),
            ("code_verifier", verifier.to_owned()),
            ("client_id", app.client_id.clone()),
        ]
    };
    let form = exchange(decide("allow").await["code"].clone(), verifier);
    let form: Vec<(&str, &str)> = form.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let (status, refused) = token(&form, false).await;
    assert_eq!((status, &refused["error"]), (StatusCode::UNAUTHORIZED, &json!("unauthorized_client")));
    let (status, granted) = token(&form, true).await;
    assert_eq!(status, 200, "{granted}");
    assert_eq!(granted["expires_in"], 7200);
    let (status, refused) = token(&form, true).await;
    assert_eq!(status, 400, "a code is good once");
    assert_eq!(refused["error_description"], "Value passed for the authorization code was invalid.");
    let form = exchange(decide("allow").await["code"].clone(), "another verifier");
    let form: Vec<(&str, &str)> = form.iter().map(|(key, value)| (*key, value.as_str())).collect();
    assert_eq!(token(&form, true).await.0, 400);

    let refresh = granted["refresh_token"].as_str().unwrap();
    let form = [("grant_type", "refresh_token"), ("refresh_token", refresh)];
    let (status, renewed) = token(&form, true).await;
    assert_eq!(status, 200, "{renewed}");
    let dead =
        json!({ "error": "invalid_request", "error_description": "Value passed for the token was invalid." });
    assert_eq!(token(&form, true).await, (StatusCode::BAD_REQUEST, dead.clone()));
    let dave =
        X { world: &world, id: String::new(), token: renewed["access_token"].as_str().unwrap().into() };
    assert_eq!(dave.tweet("by consent").await.0, 201);
    let upload =
        dave.post("/media/upload/initialize", json!({ "media_type": "image/png", "total_bytes": 3 })).await;
    assert_eq!(upload.0, 403, "media.write was not granted");

    let revoked = world.http.post(world.at("/_accounts/x/dave/tokens/revoke")).send().await.unwrap();
    assert_eq!(revoked.status(), 204);
    let form =
        [("grant_type", "refresh_token"), ("refresh_token", renewed["refresh_token"].as_str().unwrap())];
    assert_eq!(token(&form, true).await, (StatusCode::BAD_REQUEST, dead));
    let body = json!({ "grant_type": "refresh_token", "refresh_token": refresh });
    let request = world.http.post(world.at("/api.x.com/2/oauth2/token")).json(&body);
    let reply = request.basic_auth(&app.client_id, app.client_secret.as_ref()).send().await.unwrap();
    let description = read(reply).await.1["error_description"].clone();
    assert_eq!(description, "Value passed for the token was invalid.", "JSON is read as well as a form");
    let journal = world.journal("account=dave&path=/2/oauth2/token").await;
    assert!(journal.len() >= 4);
    assert!(!json!(journal).to_string().contains(refresh));
}

#[tokio::test]
async fn x_takes_media_in_one_piece_and_in_segments() {
    static AHEAD: AtomicI64 = AtomicI64::new(0);
    fn later() -> DateTime<Utc> {
        clock() + TimeDelta::milliseconds(AHEAD.load(Ordering::Relaxed))
    }
    let world = World::open(None, later);
    world.settings(json!({ "processing_ms": 60_000 })).await;
    let alice = world.x("alice");
    let part = |bytes: &'static [u8]| reqwest::multipart::Part::bytes(bytes).file_name("a.bin");
    let upload = async |category: &str, bytes: &'static [u8]| {
        let form = reqwest::multipart::Form::new()
            .text("media_category", category.to_owned())
            .part("media", part(bytes));
        let request = world.http.post(alice.url("/media/upload")).bearer_auth(&alice.token).multipart(form);
        read(request.send().await.unwrap()).await
    };
    let (status, image) = upload("tweet_image", PNG).await;
    assert_eq!(status, 200, "{image}");
    assert_eq!(image["data"]["image"], json!({ "image_type": "image/png", "w": 2, "h": 3 }));
    assert_eq!(upload("tweet_image", MP4).await.0, 400);
    assert_eq!(upload("banner", PNG).await.0, 400);
    let image = image["data"]["id"].as_str().unwrap();
    let alt = json!({ "id": image, "metadata": { "alt_text": { "text": "two by three" } } });
    assert_eq!(alice.post("/media/metadata", alt).await.0, 200);
    let long = json!({ "id": image, "metadata": { "alt_text": { "text": "a".repeat(1001) } } });
    assert_eq!(alice.post("/media/metadata", long).await.0, 400);

    let (_, begun) = alice
        .post(
            "/media/upload/initialize",
            json!({ "media_type": "video/mp4", "media_category": "tweet_video", "total_bytes": MP4.len() }),
        )
        .await;
    let video = begun["data"]["id"].as_str().unwrap().to_owned();
    let (first, second) = MP4.split_at(20);
    for (index, bytes) in [(1, second), (0, first)] {
        let finalized = alice.post(&format!("/media/upload/{video}/finalize"), json!({})).await;
        assert_eq!(finalized.0, 400, "a segment is missing");
        let form = reqwest::multipart::Form::new()
            .text("segment_index", index.to_string())
            .part("media", part(bytes));
        let url = alice.url(&format!("/media/upload/{video}/append"));
        let reply = world.http.post(url).bearer_auth(&alice.token).multipart(form).send().await.unwrap();
        assert_eq!(reply.status(), 200);
    }
    let (status, finished) = alice.post(&format!("/media/upload/{video}/finalize"), json!({})).await;
    assert_eq!(status, 200, "{finished}");
    assert_eq!(finished["data"]["processing_info"]["state"], "pending");
    let body = |ids: &[&str]| json!({ "text": "look", "media": { "media_ids": ids } });
    let (status, early) = alice.post("/tweets", body(&[&video])).await;
    assert_eq!(status, 400);
    assert_eq!(early["errors"][0]["message"], "Your media IDs are invalid.");
    AHEAD.store(30_000, Ordering::Relaxed);
    let path = format!("/media/upload?command=STATUS&media_id={video}");
    assert_eq!(alice.get(&path).await.1["data"]["processing_info"]["state"], "in_progress");
    AHEAD.store(61_000, Ordering::Relaxed);
    assert_eq!(alice.get(&path).await.1["data"]["processing_info"]["state"], "succeeded");
    assert_eq!(alice.post("/tweets", body(&[&video, image])).await.0, 400, "a video stands alone");
    assert_eq!(world.x("bob").post("/tweets", body(&[image])).await.0, 400, "it is another's");
    let (status, post) = alice.post("/tweets", body(&[&video])).await;
    assert_eq!(status, 201, "{post}");
    assert_eq!(alice.post("/tweets", body(&[image])).await.0, 201, "media make a text another post");

    let id = post["data"]["id"].as_str().unwrap();
    let expand =
        "tweet.fields=entities,attachments&expansions=attachments.media_keys&media.fields=public_metrics";
    let (_, found) = alice.get(&format!("/tweets/{id}?{expand}")).await;
    assert_eq!(found["includes"]["media"][0]["type"], "video");
    assert!(found["data"]["text"].as_str().unwrap().starts_with("look https://t.co/"));
}

#[tokio::test]
async fn bluesky_sessions_are_made_rotated_and_ended() {
    static AHEAD: AtomicI64 = AtomicI64::new(0);
    fn later() -> DateTime<Utc> {
        clock() + TimeDelta::minutes(AHEAD.load(Ordering::Relaxed))
    }
    let world = World::open(None, later);
    let alice = world.bluesky("alice");
    assert_eq!(alice.extra["identifier"], "alice.bsky.social");
    let login = async |password: &Value| {
        let body = json!({ "identifier": alice.extra["identifier"], "password": password });
        read(world.http.post(alice.url("com.atproto.server.createSession")).json(&body).send().await.unwrap())
            .await
    };
    let (status, session) = login(&alice.extra["app_password"]).await;
    assert_eq!(status, 200, "{session}");
    assert_eq!(session["did"], alice.did);
    assert_eq!(session["didDoc"]["service"][0]["serviceEndpoint"], "https://bsky.social");
    let (status, refused) = login(&json!("wrong")).await;
    assert_eq!(status, 401);
    assert_eq!(
        refused,
        json!({ "error": "AuthenticationRequired", "message": "Invalid identifier or password" })
    );

    let with = async |method: &str, token: &str| {
        let request = if method.ends_with("getSession") {
            world.http.get(alice.url(method))
        } else {
            world.http.post(alice.url(method))
        };
        read(request.bearer_auth(token).send().await.unwrap()).await
    };
    let refresh = "com.atproto.server.refreshSession";
    let show = "com.atproto.server.getSession";
    assert_eq!(with(show, &alice.token).await.0, 200);
    assert_eq!(with(show, "nonsense").await.1["error"], "InvalidToken");
    assert_eq!(
        with(refresh, &alice.token).await.1["error"],
        "InvalidToken",
        "an access token refreshes nothing"
    );
    let bare = read(world.http.get(alice.url(show)).send().await.unwrap()).await;
    assert_eq!((bare.0, &bare.1["error"]), (StatusCode::UNAUTHORIZED, &json!("AuthMissing")));

    let (status, first) = with(refresh, &alice.refresh).await;
    assert_eq!(status, 200);
    assert_eq!(with(refresh, &alice.refresh).await.0, 200, "the old one works for two more hours");
    AHEAD.store(121, Ordering::Relaxed);
    let (status, expired) = with(show, &alice.token).await;
    assert_eq!((status, &expired["error"]), (StatusCode::BAD_REQUEST, &json!("ExpiredToken")));
    let (status, revoked) = with(refresh, &alice.refresh).await;
    assert_eq!((status, &revoked["message"]), (StatusCode::BAD_REQUEST, &json!("Token has been revoked")));
    let (status, second) = with(refresh, first["refreshJwt"].as_str().unwrap()).await;
    assert_eq!(status, 200);
    assert_eq!(with("com.atproto.server.deleteSession", second["refreshJwt"].as_str().unwrap()).await.0, 200);
    assert_eq!(with(refresh, second["refreshJwt"].as_str().unwrap()).await.1["error"], "ExpiredToken");

    let fresh = world.bluesky("alice");
    world.http.post(world.at("/_accounts/bluesky/alice/tokens/expire")).send().await.unwrap();
    assert_eq!(with(show, &fresh.token).await.1["error"], "ExpiredToken");
    world.http.post(world.at("/_accounts/bluesky/alice/revoke")).send().await.unwrap();
    assert_eq!(with(refresh, &fresh.refresh).await.1["message"], "Token has been revoked");
    assert_eq!(login(&fresh.extra["app_password"]).await.0, 401);

    world.settings(json!({ "limits": { "bluesky.logins": 0 } })).await;
    let body = json!({ "identifier": "alice.bsky.social", "password": "a" });
    let reply =
        world.http.post(alice.url("com.atproto.server.createSession")).json(&body).send().await.unwrap();
    assert_eq!(reply.status(), 429);
    assert!(reply.headers().contains_key("retry-after") && reply.headers().contains_key("ratelimit-reset"));
}

#[tokio::test]
async fn bluesky_writes_once_under_one_key() {
    let world = World::new();
    world.settings(json!({ "lag_ms": 0 })).await;
    let alice = world.bluesky("alice");
    let rkey = "3lfdtxhjaws2a";
    let (status, first) = alice.put(rkey, &record("hello")).await;
    assert_eq!(status, 200, "{first}");
    assert!(first["commit"]["cid"].is_string());
    assert_eq!(first["validationStatus"], "valid");
    let (status, again) = alice.put(rkey, &record("hello")).await;
    assert_eq!((status, &again["cid"]), (StatusCode::OK, &first["cid"]));
    assert!(again.get("commit").is_none());
    let create = json!({ "repo": alice.did, "collection": POST, "rkey": rkey, "record": record("hello") });
    let (status, taken) = alice.post("com.atproto.repo.createRecord", create).await;
    assert_eq!((status, &taken["error"]), (StatusCode::INTERNAL_SERVER_ERROR, &json!("InternalServerError")));
    let only = json!({ "repo": alice.did, "collection": POST, "rkey": rkey, "record": record("hello"), "swapRecord": null });
    let (status, swap) = alice.post("com.atproto.repo.putRecord", only).await;
    assert_eq!((status, &swap["error"]), (StatusCode::BAD_REQUEST, &json!("InvalidSwap")));
    let moved =
        json!({ "repo": alice.did, "collection": POST, "record": record("b"), "swapCommit": first["cid"] });
    assert_eq!(alice.post("com.atproto.repo.createRecord", moved).await.1["error"], "InvalidSwap");
    assert_eq!(world.journal("accepted=true").await.len(), 1);

    let get = format!("com.atproto.repo.getRecord?repo={}&collection={POST}&rkey=", alice.did);
    assert_eq!(alice.get(&format!("{get}{rkey}")).await.1["value"]["text"], "hello");
    assert_eq!(alice.get(&format!("{get}3lfdtxhjaws2b")).await.1["error"], "RecordNotFound");

    let strong = json!({ "uri": first["uri"], "cid": first["cid"] });
    let mut answer = record("and on");
    answer["reply"] = json!({ "root": strong, "parent": strong });
    let (status, _) = alice
        .post(
            "com.atproto.repo.createRecord",
            json!({ "repo": alice.did, "collection": POST, "record": answer }),
        )
        .await;
    assert_eq!(status, 200);
    let (_, posts) = alice
        .get(&format!(
            "app.bsky.feed.getPosts?uris={}&uris=at://{}/{POST}/gone",
            first["uri"].as_str().unwrap(),
            alice.did
        ))
        .await;
    assert_eq!(posts["posts"].as_array().unwrap().len(), 1);
    assert_eq!(posts["posts"][0]["replyCount"], 1);
    let (_, feed) =
        alice.get(&format!("app.bsky.feed.getAuthorFeed?actor={}&filter=posts_no_replies", alice.did)).await;
    assert_eq!(feed["feed"].as_array().unwrap().len(), 1);
    world.settings(json!({ "lag_ms": 3_600_000 })).await;
    let (_, feed) = alice.get(&format!("app.bsky.feed.getAuthorFeed?actor={}", alice.did)).await;
    assert_eq!(feed["feed"], json!([]), "the read side lags");

    for actor in [alice.did.as_str(), "alice.bsky.social"] {
        let page =
            world.http.get(world.at(&format!("/bsky.app/profile/{actor}/post/{rkey}"))).send().await.unwrap();
        assert_eq!(page.status(), 200);
        assert!(page.text().await.unwrap().contains("hello"));
    }
    let delete = json!({ "repo": alice.did, "collection": POST, "rkey": rkey });
    assert!(alice.post("com.atproto.repo.deleteRecord", delete.clone()).await.1["commit"].is_object());
    assert_eq!(alice.post("com.atproto.repo.deleteRecord", delete).await, (StatusCode::OK, json!({})));

    let writes = json!([
        { "$type": "com.atproto.repo.applyWrites#create", "collection": POST, "rkey": "3lfdtxhjaws2c", "value": record("one") },
        { "$type": "com.atproto.repo.applyWrites#create", "collection": POST, "rkey": "not a key", "value": record("two") },
    ]);
    let (status, _) =
        alice.post("com.atproto.repo.applyWrites", json!({ "repo": alice.did, "writes": writes })).await;
    assert_eq!(status, 400);
    assert_eq!(alice.get(&format!("{get}3lfdtxhjaws2c")).await.0, 400, "all or nothing");
}

#[tokio::test]
async fn bluesky_refuses_what_its_lexicons_forbid() {
    let world = World::new();
    let alice = world.bluesky("alice");
    let image = alice.upload(PNG, "text/plain").await;
    assert_eq!(image["mimeType"], "image/png", "the bytes tell");
    let embed = |blob: &Value, alt: Value| {
        let mut post = record("see");
        post["embed"] =
            json!({ "$type": "app.bsky.embed.images", "images": [{ "image": blob, "alt": alt }] });
        post
    };
    let mut unknown = image.clone();
    unknown["ref"]["$link"] = json!("bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku");
    let mut wrong = image.clone();
    wrong["mimeType"] = json!("image/jpeg");
    let text = alice.upload(b"just some text", "text/plain").await;
    for (record, error, message) in [
        (
            record(&"a".repeat(301)),
            "InvalidRequest",
            "grapheme too big (maximum 300, got 301) at $.record.text",
        ),
        (json!({ "$type": POST, "text": "a" }), "InvalidRequest", "createdAt"),
        (json!({ "$type": "app.bsky.feed.like", "text": "a" }), "InvalidRequest", "$type"),
        (embed(&unknown, json!("")), "BlobNotFound", "Could not find blob"),
        (embed(&wrong, json!("")), "InvalidMimeType", "does not match"),
        (embed(&text, json!("")), "InvalidMimeType", "image/*"),
        (embed(&image, Value::Null), "InvalidRequest", "alt"),
    ] {
        let (status, body) = alice.put("3lfdtxhjaws2a", &record).await;
        assert_eq!((status, body["error"].as_str()), (StatusCode::BAD_REQUEST, Some(error)), "{body}");
        assert!(body["message"].as_str().unwrap().contains(message), "{body}");
    }
    let (status, body) = alice.put("my-key", &record("a")).await;
    assert_eq!(status, 400);
    assert!(body["message"].as_str().unwrap().contains("Invalid TID string"), "{body}");
    let other = world.bluesky("bob").did;
    let foreign = json!({ "repo": other, "collection": POST, "record": record("a") });
    assert_eq!(alice.post("com.atproto.repo.createRecord", foreign).await.0, 401);
    assert_eq!(alice.put("3lfdtxhjaws2a", &embed(&image, json!(""))).await.0, 200);
    assert_eq!(alice.get("com.example.unknown").await.0, 501);

    world.settings(json!({ "limits": { "bluesky.points_hour": 5 } })).await;
    let bob = world.bluesky("bob");
    assert_eq!(bob.put("3lfdtxhjaws2a", &record("one")).await.0, 200);
    let (status, body) = bob.put("3lfdtxhjaws2b", &record("two")).await;
    assert_eq!((status, &body["error"]), (StatusCode::TOO_MANY_REQUESTS, &json!("RateLimitExceeded")));
}

#[tokio::test]
async fn bluesky_processes_videos() {
    let world = World::new();
    world.settings(json!({ "processing_ms": 3_600_000 })).await;
    let alice = world.bluesky("alice");
    let (_, auth) = alice
        .get("com.atproto.server.getServiceAuth?aud=did:web:bsky.social&lxm=com.atproto.repo.uploadBlob")
        .await;
    let token = auth["token"].as_str().unwrap().to_owned();
    let service = |method: &str| world.at(&format!("/video.bsky.app/xrpc/app.bsky.video.{method}"));
    let upload = async |token: &str| {
        let url = format!("{}?did={}&name=a.mp4", service("uploadVideo"), alice.did);
        let request = world.http.post(url).bearer_auth(token).header("content-type", "video/mp4").body(MP4);
        read(request.send().await.unwrap()).await
    };
    assert_eq!(upload(&alice.token).await.0, 401, "an access token is for another audience");
    let (status, job) = upload(&token).await;
    assert_eq!(status, 200, "{job}");
    let status_of = async |id: &Value| {
        let url = format!("{}?jobId={}", service("getJobStatus"), id.as_str().unwrap());
        read(world.http.get(url).send().await.unwrap()).await.1["jobStatus"].clone()
    };
    assert!(status_of(&job["jobId"]).await.get("blob").is_none());
    world.settings(json!({ "processing_ms": 0 })).await;
    let done = status_of(&job["jobStatus"]["jobId"]).await;
    assert_eq!(done["state"], "JOB_STATE_COMPLETED");
    let mut post = record("watch");
    post["embed"] = json!({ "$type": "app.bsky.embed.video", "video": done["blob"] });
    let (status, body) = alice.put("3lfdtxhjaws2a", &post).await;
    assert_eq!(status, 200, "{body}");
    let (status, again) = upload(&token).await;
    assert_eq!((status, &again["error"]), (StatusCode::CONFLICT, &json!("already_exists")));
    assert!(again["blob"].is_object());

    let call = async |method: &str, body: Value| {
        read(world.http.post(service(method)).bearer_auth(&token).json(&body).send().await.unwrap()).await
    };
    let (status, begun) =
        call("startUpload", json!({ "sizeBytes": MP4.len(), "mimeType": "video/mp4" })).await;
    assert_eq!((status, &begun["partCount"]), (StatusCode::OK, &json!(1)));
    let id = begun["jobId"].clone();
    assert_eq!(call("finishUpload", json!({ "jobId": id })).await.1["error"], "MissingParts");
    let part = async |bytes: &'static [u8]| {
        let url = format!("{}?jobId={}&partNumber=1", service("uploadPart"), id.as_str().unwrap());
        let request =
            world.http.post(url).bearer_auth(&token).header("content-type", "application/octet-stream");
        read(request.body(bytes).send().await.unwrap()).await
    };
    assert_eq!(part(b"short").await.1["error"], "PartSizeMismatch");
    assert_eq!(part(MP4).await.0, 200);
    let (_, finished) = call("finishUpload", json!({ "jobId": id })).await;
    assert_eq!(finished["completedJobId"], job["jobId"], "the same bytes are the same job");
    assert_eq!(call("finishUpload", json!({ "jobId": id })).await.0, 200);
}

#[tokio::test]
async fn faults_strike_as_often_as_they_are_told() {
    let world = World::new();
    let alice = world.x("alice");
    let refused = alice.try_post("/tweets", &json!({ "text": "#sandbox-429x2 hello" })).await.unwrap();
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["x-rate-limit-remaining"], "0");
    assert_eq!(alice.tweet("#sandbox-429x2 hello").await.0, 429);
    assert_eq!(alice.tweet("#sandbox-429x2 hello").await.0, 201);
    for (word, status) in [("400", 400), ("401", 401), ("403", 403), ("500", 500), ("503", 503)] {
        for _ in 0..2 {
            assert_eq!(alice.tweet(&format!("#sandbox-{word}")).await.0, status);
        }
    }
    let (status, body) = alice.tweet("#sandbox-garbage").await;
    assert_eq!(status, 201);
    assert!(body.is_string(), "it can't be parsed: {body}");
    assert_eq!(alice.tweet("#sandbox-500-after").await.0, 500);
    assert_eq!(alice.tweet("#sandbox-500-after").await.0, 403, "the first one was accepted");
    for word in ["lost-reply", "drop"] {
        let error =
            alice.try_post("/tweets", &json!({ "text": format!("#sandbox-{word}") })).await.unwrap_err();
        assert!(error.is_request() && !error.is_connect(), "{error:?}");
    }
    let entries = world.journal("account=alice&fault=lost-reply").await;
    assert_eq!(
        (entries.len(), &entries[0]["accepted"], &entries[0]["status"]),
        (1, &json!(true), &Value::Null)
    );
    let entries = world.journal("account=alice&fault=drop").await;
    assert_eq!(
        (entries.len(), &entries[0]["accepted"], &entries[0]["status"]),
        (1, &json!(false), &Value::Null)
    );
    assert_eq!(world.journal("account=alice&accepted=true").await.len(), 4);

    let bob = world.bluesky("bob");
    let (status, body) = bob.put("3lfdtxhjaws2a", &record("#sandbox-401x1")).await;
    assert_eq!((status, &body["error"]), (StatusCode::BAD_REQUEST, &json!("ExpiredToken")));
    assert_eq!(bob.put("3lfdtxhjaws2a", &record("#sandbox-401x1")).await.0, 200);
    assert_eq!(bob.put("3lfdtxhjaws2b", &record("#sandbox-500-after")).await.0, 500);
    let (status, body) = bob.put("3lfdtxhjaws2b", &record("#sandbox-500-after")).await;
    assert_eq!(status, 200, "the same record once more changes nothing: {body}");
    let (status, body) = bob.put("3lfdtxhjaws2c", &record("#sandbox-429")).await;
    assert_eq!((status, &body["error"]), (StatusCode::TOO_MANY_REQUESTS, &json!("RateLimitExceeded")));
    assert_eq!(world.journal("platform=bluesky&accepted=true").await.len(), 2);

    let stuck = async {
        let url = world.at("/_journal/wait?fault=stuck");
        world.http.get(url).send().await.unwrap().json::<Value>().await.unwrap()["entries"][0].clone()
    };
    tokio::select! {
        answer = alice.tweet("#sandbox-stuck") => panic!("answered {answer:?}"),
        entry = stuck => assert_eq!((&entry["accepted"], &entry["status"]), (&json!(false), &Value::Null)),
    }
    world.settings(json!({ "slow_ms": 1 })).await;
    assert_eq!(alice.tweet("#sandbox-slow").await.0, 201);
}

#[tokio::test]
async fn a_lost_reply_closes_the_connection_without_a_byte() {
    let world = World::new();
    let alice = world.x("alice");
    let body = json!({ "text": "#sandbox-lost-reply" }).to_string();
    let request = format!(
        "POST /api.x.com/2/tweets HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        alice.token,
        body.len(),
    );
    let mut socket = tokio::net::TcpStream::connect(world.address).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    // The connection ends without a byte, in one way or another.
    let _ = socket.read_to_end(&mut received).await;
    assert_eq!(String::from_utf8_lossy(&received), "");
}

#[tokio::test]
async fn a_hold_keeps_a_request_before_or_after() {
    let world = World::new();
    let alice = world.x("alice");
    let hold = async |spec: Value| {
        let reply = world.http.post(world.at("/_holds")).json(&spec).send().await.unwrap();
        assert_eq!(reply.status(), 201);
        reply.json::<Value>().await.unwrap()["id"].as_u64().unwrap()
    };
    let wait = async |id: u64, phase: &str| {
        let url = world.at(&format!("/_holds/{id}/wait?phase={phase}"));
        world.http.get(url).send().await.unwrap().json::<Value>().await.unwrap()["phase"].clone()
    };
    let spec = |when: &str, nth: u64| json!({ "platform": "x", "account": "alice", "path_prefix": "/2/tweets", "method": "POST", "nth": nth, "when": when });

    // The second of two requests is held before: nothing happens, not even when the client leaves.
    let before = hold(spec("before", 2)).await;
    assert_eq!(alice.tweet("one").await.0, 201);
    {
        let held = alice.tweet("two");
        tokio::select! {
            _ = held => panic!("it is held"),
            phase = wait(before, "held") => assert_eq!(phase, "held"),
        }
    }
    assert_eq!(wait(before, "dropped").await, "dropped");
    let reply = world.http.get(world.at("/_journal/wait?fault=hold-before&count=1")).send().await.unwrap();
    let entries = reply.json::<Value>().await.unwrap()["entries"].clone();
    assert_eq!((&entries[0]["accepted"], &entries[0]["status"]), (&json!(false), &Value::Null));
    assert_eq!(alice.tweet("two").await.0, 201, "it was never said");

    // Held after: the post is published while the response is withheld, and the client still gets it.
    let after = hold(spec("after", 1)).await;
    let (answered, ()) = tokio::join!(alice.tweet("three"), async {
        assert_eq!(wait(after, "held").await, "held");
        assert_eq!(world.journal("accepted=true").await.len(), 3);
        let released = world.http.delete(world.at(&format!("/_holds/{after}"))).send().await.unwrap();
        assert_eq!(released.status(), 204);
    });
    assert_eq!(answered.0, 201);

    let late = world.http.get(world.at("/_journal/wait?count=1000&timeout_ms=1")).send().await.unwrap();
    assert_eq!(late.status(), 408);
}

#[tokio::test]
async fn what_was_accepted_survives_the_process() {
    let folder = std::env::temp_dir().join(format!("fanfare-sandbox-{}", uuid::Uuid::now_v7()));
    let world = World::open(Some(folder.clone()), clock);
    world.settings(json!({ "lag_ms": 0 })).await;
    let (alice, bob) = (world.x("alice"), world.bluesky("bob"));
    assert_eq!(alice.tweet("#sandbox-500x2 kept").await.0, 500);
    let (_, post) = alice.tweet("kept").await;
    let image = bob.upload(PNG, "image/png").await;
    let (token, bob_token) = (alice.token, bob.token);
    let elsewhere =
        Sandbox::open(Options { data: Some(folder.clone()), clock, app: AppStatus::New }).map(drop);
    assert!(elsewhere.unwrap_err().to_string().contains("open elsewhere"));
    // No orderly shutdown: only the log is left, and its last line was cut short.
    world.server.abort();
    assert!(world.server.await.unwrap_err().is_cancelled());
    drop((world.http, world.sandbox));
    let log = folder.join("log.jsonl");
    let mut lines = loop {
        // Connections of the aborted server are dropped one by one.
        match std::fs::File::create(folder.join("lock")).unwrap().try_lock() {
            Ok(()) => break std::fs::read_to_string(&log).unwrap(),
            Err(_) => tokio::task::yield_now().await,
        }
    };
    lines.push_str("[[\"x.post\",\"0\",{\"id");
    std::fs::write(&log, lines).unwrap();

    let world = World::open(Some(folder), clock);
    let alice = X { world: &world, id: world.x("alice").id, token };
    let (status, list) = alice.get(&format!("/users/{}/tweets", alice.id)).await;
    assert_eq!((status, &list["data"][0]["id"]), (StatusCode::OK, &post["data"]["id"]), "{list}");
    assert_eq!(alice.tweet("kept").await.0, 403, "a duplicate is one after a restart as well");
    assert_eq!(alice.tweet("#sandbox-500x2 kept").await.0, 500, "the second of two");
    assert_eq!(alice.tweet("#sandbox-500x2 kept").await.0, 201);
    let mut bob = world.bluesky("bob");
    bob.token = bob_token;
    let mut post = record("a picture");
    post["embed"] = json!({ "$type": "app.bsky.embed.images", "images": [{ "image": image, "alt": "" }] });
    assert_eq!(bob.put("3lfdtxhjaws2a", &post).await.0, 200);
    let blob =
        format!("com.atproto.sync.getBlob?did={}&cid={}", bob.did, image["ref"]["$link"].as_str().unwrap());
    let bytes = world.http.get(bob.url(&blob)).send().await.unwrap().bytes().await.unwrap();
    assert_eq!(bytes, PNG);
    assert_eq!(world.journal("account=alice&accepted=true").await.len(), 2);
}

#[tokio::test]
async fn clients_that_take_the_sandbox_for_the_platform_are_served() {
    let world = World::new();
    let reply = world
        .http
        .post(world.at("/_accounts"))
        .json(&json!({ "platform": "bluesky", "username": "eve" }))
        .send()
        .await
        .unwrap();
    assert_eq!(reply.status(), 201);
    let connected: Value = reply.json().await.unwrap();
    let extra = &connected["grant"]["extra"];
    let body = json!({ "identifier": extra["identifier"], "password": extra["app_password"] });
    let login =
        world.http.post(world.at("/xrpc/com.atproto.server.createSession")).json(&body).send().await.unwrap();
    let session: Value = login.json().await.unwrap();
    assert!(session.get("didDoc").is_none(), "it would lead the client to the real server");
    assert_eq!(session["did"], connected["identity"]["network_unique_id"]);

    let reply = world
        .http
        .post(world.at("/_accounts"))
        .json(&json!({ "platform": "x", "username": "eve" }))
        .send()
        .await
        .unwrap();
    let connected: Value = reply.json().await.unwrap();
    let token = connected["grant"]["access_token"].as_str().unwrap();
    let me = world.http.get(world.at("/2/users/me")).bearer_auth(token).send().await.unwrap();
    assert_eq!(me.status(), 200);
    let nobody = world
        .http
        .post(world.at("/_accounts"))
        .json(&json!({ "platform": "x", "username": "no spaces" }))
        .send()
        .await
        .unwrap();
    assert_eq!(nobody.status(), 400);
    assert_eq!(world.http.get(world.at("/nowhere.example/v1")).send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn the_control_panel_spoils_what_an_account_tries_next() {
    let world = World::new();
    let (alice, bob) = (world.x("alice"), world.x("bob"));
    let send = |path: &str, form: &[(&str, &str)]| world.http.post(world.at(path)).form(form);
    let fail = |word, tries| {
        let form = [("platform", "x"), ("username", "alice"), ("word", word), ("tries", tries)];
        send("/_panel/faults", &form).send()
    };
    let shown = async || world.http.get(world.at("/")).send().await.unwrap().text().await.unwrap();

    let reply = fail("503", "2").await.unwrap();
    assert_eq!(
        (reply.status(), &reply.headers()["location"]),
        (StatusCode::SEE_OTHER, &"/#x-alice".parse().unwrap())
    );
    assert!(shown().await.contains("Next 2 attempts: 503"));
    assert_eq!(bob.tweet("one").await.0, 201, "it is another's");
    assert_eq!(alice.tweet("one").await.0, 503);
    assert!(shown().await.contains("Next attempt: 503"));
    assert_eq!(alice.tweet("two").await.0, 503);
    assert_eq!(alice.tweet("one").await.0, 201);

    fail("lost-reply", "1").await.unwrap();
    assert!(alice.try_post("/tweets", &json!({ "text": "three" })).await.is_err());
    assert_eq!(world.journal("account=alice&accepted=true").await.len(), 2, "it was accepted");
    assert_eq!(alice.tweet("four").await.0, 201);

    fail("drop", "9").await.unwrap();
    fail("drop", "0").await.unwrap();
    assert!(!shown().await.contains(">Remove</button>"), "it was taken back");
    assert_eq!(alice.tweet("five").await.0, 201);

    for (path, form, status) in [
        (
            "/_panel/faults",
            vec![("platform", "x"), ("username", "alice"), ("word", "odd"), ("tries", "1")],
            400,
        ),
        (
            "/_panel/faults",
            vec![("platform", "x"), ("username", "eve"), ("word", "429"), ("tries", "1")],
            404,
        ),
        ("/_panel/tokens", vec![("platform", "x"), ("username", "eve"), ("end", "revoke")], 404),
        ("/_panel/settings", vec![("odd", "1")], 400),
        ("/_panel/settings", vec![("lag_ms", "soon")], 400),
    ] {
        assert_eq!(send(path, &form).send().await.unwrap().status(), status, "{path} {form:?}");
    }
    let tokens = [("platform", "x"), ("username", "alice"), ("end", "expire")];
    for (path, form) in [("/_panel/tokens", &tokens[..]), ("/_panel/settings", &[("lag_ms", "7")])] {
        let foreign = send(path, form).header("sec-fetch-site", "cross-site").send().await.unwrap();
        assert_eq!(foreign.status(), 403, "another site sent it");
    }
    assert_eq!(alice.tweet("six").await.0, 201);
    assert_eq!(send("/_panel/tokens", &tokens).send().await.unwrap().status(), 303);
    assert_eq!(alice.tweet("seven").await.0, 401);
    let latest = shown().await.split("Latest requests").nth(1).unwrap().to_owned();
    for words in ["POST api.x.com/2/tweets", ">401<", ">published<", ">lost-reply<", "no answer"] {
        assert!(latest.contains(words), "{words}: {latest}");
    }
    assert!(!shown().await.contains(" selected>Reviewed"));
    send("/_panel/settings", &[("lag_ms", "7"), ("app", "approved")]).send().await.unwrap();
    assert!(shown().await.contains(" selected>Reviewed"));
    let settings: Value = world.http.get(world.at("/_settings")).send().await.unwrap().json().await.unwrap();
    assert_eq!((&settings["lag_ms"], &settings["slow_ms"]), (&json!(7), &json!(5_000)));
}

#[tokio::test]
async fn pages_load_their_own_files_and_nothing_else() {
    let world = World::new();
    world.x("alice").tweet("one").await;
    let consent = "/www.linkedin.com/oauth/v2/authorization?response_type=code&scope=openid\
        &client_id={id}&redirect_uri=https%3A%2F%2Fapp.example%2F";
    let app = world.sandbox.connect("linkedin", "dave").unwrap().app.unwrap();
    let consent = consent.replace("{id}", &app.client_id);
    for (path, is_consent) in [("/", false), ("/x/alice", false), ("/x/nobody", false), (&consent, true)] {
        let page = world.http.get(world.at(path)).send().await.unwrap();
        let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none'; style-src 'self';"), "{policy}");
        // The form of a consent page leads to the app, and on to where the app sends its user.
        assert_eq!(policy.contains("form-action 'self'"), !is_consent, "{path}: {policy}");
        let html = page.text().await.unwrap();
        assert!(html.contains("Sandbox") && !html.contains("<script") && !html.contains("style="), "{html}");
        let files: Vec<_> = ["href=\"/_assets/", "src=\"/_assets/"]
            .iter()
            .flat_map(|start| html.split(start).skip(1))
            .map(|rest| rest.split(['"', '#']).next().unwrap())
            .collect();
        assert!(files.len() > 2, "{path}: {html}");
        for file in files {
            let served = world.http.get(world.at(&format!("/_assets/{file}"))).send().await.unwrap();
            assert_eq!(served.status(), 200, "{file}");
            let kind = if file.starts_with("style.css") { "text/css" } else { "image/svg+xml" };
            assert!(served.headers()["content-type"].to_str().unwrap().starts_with(kind), "{file}");
        }
    }
    assert_eq!(world.http.get(world.at("/_assets/other")).send().await.unwrap().status(), 404);
}

const TOKEN: &str = "a token of sixteen or more";

/// Returns the address of an organization's part of a sandbox.
fn part(world: &World, token: &str, org: u128) -> String {
    let url = world.at("/").parse().unwrap();
    let org = OrgId(uuid::Uuid::from_u128(org));
    Address::new(url, Some(token.to_owned())).of(org).as_str().trim_end_matches('/').to_owned()
}

#[tokio::test]
async fn a_name_that_somebody_leads_here_reaches_nothing() {
    let world = World::new();
    for (host, status) in
        [("evil.example", 421), ("evil.example:80", 421), ("localhost:8090", 200), ("sandbox", 200)]
    {
        for path in ["/", "/_journal", "/_settings"] {
            let reply = world.http.get(world.at(path)).header("host", host).send().await.unwrap();
            assert_eq!(reply.status(), status, "{host} {path}");
        }
    }
}

#[tokio::test]
async fn beyond_its_machine_a_sandbox_asks_for_its_token() {
    let world = World::exposed(None, Some(TOKEN));
    let paths = [
        "/",
        "//",
        "/_journal",
        "/_journal/wait?timeout_ms=1&count=0",
        "/_settings",
        "/x/ada",
        "/_media/a",
        "/api.x.com/2/users/me",
        "/2/users/me",
    ];
    for path in paths {
        let reply = world.http.get(world.at(path)).send().await.unwrap();
        assert_eq!(reply.status(), 401, "{path}");
        assert!(reply.headers()["www-authenticate"].to_str().unwrap().starts_with("Basic"), "{path}");
        let wrong = world.http.get(world.at(path)).bearer_auth("a token of sixteen or less").send().await;
        assert_eq!(wrong.unwrap().status(), 401, "{path}");
    }
    for path in ["/_accounts", "/_holds", "/_settings", "/_panel/settings", "/_panel/faults"] {
        let reply = world.http.post(world.at(path)).json(&json!({})).send().await.unwrap();
        assert_eq!(reply.status(), 401, "{path}");
    }
    assert_eq!(world.http.get(world.at("/_health")).send().await.unwrap().status(), 204);
    for path in ["/", "/_journal", "/_settings"] {
        let reply = world.http.get(world.at(path)).bearer_auth(TOKEN).send().await.unwrap();
        assert_eq!(reply.status(), 200, "{path}");
        let reply = world.http.get(world.at(path)).basic_auth("anybody", Some(TOKEN)).send().await.unwrap();
        assert_eq!(reply.status(), 200, "{path}");
    }

    // Without a token, clients on its machine control it, but not through a proxy.
    let world = World::exposed(None, None);
    assert_eq!(world.http.get(world.at("/_journal")).send().await.unwrap().status(), 200);
    let proxied = world.http.get(world.at("/_journal")).header("x-forwarded-for", "203.0.113.7");
    assert_eq!(proxied.send().await.unwrap().status(), 401);
    // On loopback all is open, even with a token.
    let world = World::with(
        "127.0.0.1:0",
        None,
        clock,
        Access { token: Some(TOKEN.to_owned()), ..Access::default() },
    );
    assert_eq!(world.http.get(world.at("/_journal")).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn organizations_share_nothing_in_a_sandbox() {
    let folder = std::env::temp_dir().join(format!("sandbox-orgs-{}", uuid::Uuid::now_v7()));
    let world = World::exposed(Some(folder.clone()), Some(TOKEN));
    let (one, other) = (part(&world, TOKEN, 1), part(&world, TOKEN, 2));
    let wish = json!({ "platform": "x", "username": "ada" });
    let made = async |at: &str| -> String {
        let call = world.http.post(format!("{at}/_accounts")).bearer_auth(TOKEN).json(&wish);
        let made: Value = call.send().await.unwrap().json().await.unwrap();
        made["grant"]["access_token"].as_str().unwrap().to_owned()
    };
    let (ones, others) = (made(&one).await, made(&other).await);
    let tweet = async |at: &str, token: &str, text: &str| {
        let call = world.http.post(format!("{at}/api.x.com/2/tweets")).bearer_auth(token);
        call.json(&json!({ "text": text })).send().await.unwrap().status().as_u16()
    };
    assert_eq!(tweet(&one, &ones, "a secret of one").await, 201);
    assert_eq!((tweet(&other, &ones, "a").await, tweet(&one, &others, "a").await), (401, 401));
    let shown =
        async |at: &str| world.http.get(format!("{at}/x/ada")).send().await.unwrap().text().await.unwrap();
    assert!(!shown(&other).await.contains("a secret"));
    let page = shown(&one).await;
    assert!(page.contains("a secret of one"), "{page}");
    // Its links stay below its address, and work.
    let prefix = one.strip_prefix(&world.at("")).unwrap();
    let links: Vec<_> =
        page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect();
    assert!(links.len() > 2 && links.iter().all(|link| link.starts_with(prefix)), "{links:?}");
    let style = links.iter().find(|link| link.contains("style.css")).unwrap();
    assert_eq!(world.http.get(world.at(style)).send().await.unwrap().status(), 200);
    let post = links.iter().rfind(|link| link.matches('/').count() > 4).unwrap();
    let post = world.http.get(world.at(post)).send().await.unwrap();
    assert!(post.text().await.unwrap().contains("a secret of one"));

    // Control paths of an organization require the token and show that organization only.
    let journal = async |at: &str| -> Value {
        let call = world.http.get(format!("{at}/_journal?accepted=true")).bearer_auth(TOKEN);
        call.send().await.unwrap().json::<Value>().await.unwrap()["entries"].take()
    };
    assert_eq!(journal(&one).await.as_array().unwrap().len(), 1);
    assert_eq!((journal(&other).await, journal(&world.at("")).await), (json!([]), json!([])));
    for path in ["", "/", "/_journal", "/_settings", "//_journal"] {
        let reply = world.http.get(format!("{one}{path}")).send().await.unwrap();
        assert_eq!(reply.status(), 401, "{path}");
    }
    let slow = json!({ "slow_ms": 7 });
    world.http.post(format!("{one}/_settings")).bearer_auth(TOKEN).json(&slow).send().await.unwrap();
    let settings = async |at: &str| -> Value {
        let call = world.http.get(format!("{at}/_settings")).bearer_auth(TOKEN);
        call.send().await.unwrap().json::<Value>().await.unwrap()["slow_ms"].take()
    };
    assert_eq!((settings(&one).await, settings(&other).await), (json!(7), json!(5_000)));

    // Without the token no other organization's part is found.
    let made_up = part(&world, "another token of sixteen", 1);
    assert_eq!(world.http.get(format!("{made_up}/x/ada")).send().await.unwrap().status(), 404);

    world.server.abort();
    drop(world);
    std::fs::remove_dir_all(folder).unwrap();
}
