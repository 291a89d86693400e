//! Forged tokens: whatever the service issues and takes back, changed at every byte, cut at every length,
//! encoded in another way, and used in another place than the one that it was issued for.

use super::{
    client::{Client, Request},
    seed,
    tenants::Tenant,
    world,
};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use domain::{Mode, Owner};
use futures::future::BoxFuture;
use rand::{SeedableRng, rngs::StdRng, seq::IndexedRandom};
use reqwest::{Method, StatusCode, header, redirect::Policy};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tests::{
    Receiver, World, login,
    proof::{Section, is_full},
    samples::png,
};
use url::form_urlencoded::byte_serialize;

/// Forgeries of each token in the short form.
const SAMPLE: usize = 60;

/// A token, and the request that it authorizes.
struct Token<'a> {
    name: &'static str,
    text: String,
    /// Makes the request with another text, and returns the status and the body.
    attempt: Box<dyn Fn(String) -> BoxFuture<'a, (u16, String)> + 'a>,
    /// Statuses of a refusal.
    refusals: &'static [u16],
    /// A text that every refusal contains.
    says: &'static str,
}

#[tokio::test]
async fn forged_tokens_are_refused() {
    let mut section = Section::new("7b-hostile-tokens", "Forged tokens");
    let mut random = StdRng::seed_from_u64(seed());
    let mut world = world().start().await;
    let receiver = Receiver::start().await;
    let mut victim = Tenant::of(&world, world.owner).await;
    victim.populate(&mut world, &receiver).await;
    let mut other = Tenant::new(&world).await;
    other.populate(&mut world, &receiver).await;
    let mut live = Tenant::of(&world, Owner { mode: Mode::Live, ..world.owner }).await;
    live.populate(&mut world, &receiver).await;
    let http = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
    let origin = world.base.trim_end_matches("/api/v1").to_owned();

    let swapped = cursors(&world, [&victim, &other, &live]).await;
    let issued = Issued::by(&world).await;
    let tokens = issued.tokens(&world, &http, &origin);
    let (mut count, kinds) = (0, tokens.len());
    for token in &tokens {
        let mut forged: Vec<_> = forgeries(&token.text).into_iter().collect();
        if !is_full() {
            forged = forged.sample(&mut random, SAMPLE).cloned().collect();
        }
        for text in forged {
            let (status, body) = (token.attempt)(text.clone()).await;
            assert!(
                token.refusals.contains(&status) && body.contains(token.says),
                "{}: {text:?} instead of {:?}: {status} {body}",
                token.name,
                token.text
            );
            count += 1;
        }
        println!("{}: {} characters", token.name, token.text.len());
    }
    // No forgery has used a token up.
    for token in &tokens {
        let (status, body) = (token.attempt)(token.text.clone()).await;
        assert!((200..400).contains(&status), "the real {}: {status} {body}", token.name);
    }
    let misused = issued.misuse(&world, &http, &origin).await;
    let forms = foreign_forms(&world, &http, &origin).await;
    let signatures = signatures(&receiver, &world).await;
    section.text(
        "Each token that the service issues was changed in every bit, cut at every length, extended and encoded in \
         another way, and used for another list, owner, file or action. Every attempt was refused, and afterwards \
         each real token still worked.",
    );
    section.figure("Tokens", kinds);
    section.figure("Forgeries refused", count);
    section.figure("Cursors of another list, owner, mode or filter", swapped);
    section.figure("Tokens used for another purpose", misused);
    section.figure("Forms that another site sent", forms);
    section.figure("Changed webhook deliveries", signatures);
    section.write();
}

/// Returns all forgeries of a token.
fn forgeries(text: &str) -> BTreeSet<String> {
    let mut forged = BTreeSet::new();
    let bytes = text.as_bytes();
    for at in 0..bytes.len() {
        for bit in 0..7 {
            let mut changed = bytes.to_vec();
            changed[at] ^= 1 << bit;
            forged.extend(String::from_utf8(changed).ok());
        }
        forged.insert(text[..at].to_owned());
        forged.insert(text[at + 1..].to_owned());
        forged.insert(format!("{}{}", &text[..at], &text[at + 1..]));
    }
    for more in ["A", "=", "==", "\0", "%00", ".", "-"] {
        forged.extend([format!("{text}{more}"), format!("{more}{text}")]);
    }
    forged.extend([text.to_uppercase(), text.to_lowercase(), text.chars().rev().collect()]);
    forged.extend([format!("{text}{text}"), hex::encode(text), BASE64_STANDARD.encode(text)]);
    if let Ok(content) = BASE64_URL_SAFE_NO_PAD.decode(text) {
        for at in 0..content.len() {
            for bit in 0..8 {
                let mut changed = content.clone();
                changed[at] ^= 1 << bit;
                forged.insert(BASE64_URL_SAFE_NO_PAD.encode(changed));
            }
            forged.insert(BASE64_URL_SAFE_NO_PAD.encode(&content[..at]));
        }
        forged.extend([hex::encode(&content), BASE64_STANDARD.encode(&content)]);
        forged.insert(BASE64_URL_SAFE_NO_PAD.encode(vec![0; content.len()]));
    }
    forged.remove(text);
    forged
}

/// Tokens that were issued, of each kind.
struct Issued {
    cursors: Vec<(&'static str, String)>,
    key: String,
    /// Name of the session's cookie.
    cookie: String,
    session: String,
    invitation: String,
    pending: String,
    /// A login's way back, and its state.
    back: url::Url,
    state: String,
    upload: String,
    download: String,
}

impl Issued {
    /// Obtains one token of each kind.
    async fn by(world: &World) -> Self {
        let account = account(world).await;
        let webhook = first(world, "/webhooks").await;
        let mut cursors = Vec::new();
        for (name, path) in [
            ("cursor of posts", "/posts".to_owned()),
            ("cursor of accounts", "/social-accounts".to_owned()),
            ("cursor of deliveries", format!("/webhooks/{webhook}/deliveries")),
            ("cursor of imported posts", format!("/social-accounts/{account}/imported-posts")),
        ] {
            let page = world.get(&format!("{path}?limit=1")).await;
            let cursor =
                page["next_cursor"].as_str().unwrap_or_else(|| panic!("{path} has one page: {page}"));
            cursors.push((name, format!("{path}?cursor={cursor}")));
        }
        let cookie = login::sign_in(world).await;
        let (cookie, session) =
            cookie.split_once('=').map(|(name, token)| (name.to_owned(), token.to_owned())).unwrap();
        let invited = json!({ "email": "grace@example.com", "role": "viewer" });
        let (_, invited) = world.call(Method::POST, "/team", Some(&invited)).await;
        let invitation = invited["invite_url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        let pending = login::several(world, "facebook", "ada,bob").await;
        let back = login::consented(world, "x", "grace").await;
        let state = login::parameters(&back)["state"].clone();
        let media = world.declare(json!({ "filename": "later.png" })).await;
        let upload = media["upload_url"].as_str().unwrap().to_owned();
        let ready = world.get("/media?status=ready").await;
        let download = ready["data"][0]["url"].as_str().unwrap().to_owned();
        let key = world.key.clone();
        Self { cursors, key, cookie, session, invitation, pending, back, state, upload, download }
    }

    fn tokens<'a>(&'a self, world: &'a World, http: &'a reqwest::Client, origin: &'a str) -> Vec<Token<'a>> {
        let get = move |url: String| async move { answer(http.get(url)).await };
        let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20");
        let mut tokens = Vec::new();
        for (name, path) in &self.cursors {
            let (path, cursor) = path.split_once('=').unwrap();
            tokens.push(Token {
                name,
                text: cursor.to_owned(),
                attempt: Box::new(move |text| {
                    let url = format!("{}{path}={}", world.base, encoded(&text));
                    Box::pin(answer(http.get(url).bearer_auth(&world.key)))
                }),
                refusals: &[400],
                says: "\"code\":\"invalid_",
            });
        }
        tokens.push(Token {
            name: "API key",
            text: self.key.clone(),
            attempt: Box::new(move |text| {
                let value = header::HeaderValue::from_bytes(format!("Bearer {text}").as_bytes());
                let Ok(value) = value else { return Box::pin(async { (401, "unauthorized".to_owned()) }) };
                let request = http.get(format!("{}/account/usage", world.base));
                Box::pin(answer(request.header(header::AUTHORIZATION, value)))
            }),
            refusals: &[401],
            says: "unauthorized",
        });
        tokens.push(Token {
            name: "API key, signing in",
            text: self.key.clone(),
            attempt: Box::new(move |text| {
                let request = http.post(format!("{origin}/dashboard/sign-in")).form(&[("key", text)]);
                Box::pin(answer(request.header(header::ORIGIN, origin)))
            }),
            refusals: &[401],
            says: "This key",
        });
        tokens.push(Token {
            name: "session",
            text: self.session.clone(),
            attempt: Box::new(move |text| {
                let value = header::HeaderValue::from_bytes(format!("{}={text}", self.cookie).as_bytes());
                let Ok(value) = value else { return Box::pin(async { (401, "Sign in".to_owned()) }) };
                Box::pin(answer(http.get(format!("{origin}/dashboard/keys")).header(header::COOKIE, value)))
            }),
            refusals: &[401],
            says: "Sign in",
        });
        tokens.push(Token {
            name: "invitation",
            text: self.invitation.clone(),
            attempt: Box::new(move |text| {
                Box::pin(get(format!("{origin}/dashboard/invite/{}", encoded(&text))))
            }),
            // Without a token, the page to sign in.
            refusals: &[401, 404],
            says: "",
        });
        for (name, path) in
            [("pending login", "/social-accounts/pending/"), ("page of a pending login", "/connect/choose/")]
        {
            tokens.push(Token {
                name,
                text: self.pending.clone(),
                attempt: Box::new(move |text| {
                    Box::pin(get(format!("{}{path}{}", world.base, encoded(&text))))
                }),
                refusals: &[400, 404],
                says: "",
            });
        }
        let (upload, pass) = self.upload.split_once("?pass=").unwrap();
        tokens.push(Token {
            name: "upload pass",
            text: pass.to_owned(),
            attempt: Box::new(move |text| {
                let request = http.put(format!("{upload}?pass={}", encoded(&text))).body(png(64, 64));
                Box::pin(answer(request))
            }),
            refusals: &[403],
            says: "forbidden",
        });
        let (download, name) = self.download.rsplit_once('/').unwrap();
        let (download, pass) = download.rsplit_once('/').unwrap();
        tokens.push(Token {
            name: "media address",
            text: pass.to_owned(),
            attempt: Box::new(move |text| Box::pin(get(format!("{download}/{}/{name}", encoded(&text))))),
            refusals: &[403, 404],
            says: "code",
        });
        // The last, since the real one can be used once.
        tokens.push(Token {
            name: "state of a login",
            text: self.state.clone(),
            attempt: Box::new(move |text| {
                let mut back = self.back.clone();
                let kept: Vec<_> = back.query_pairs().into_owned().collect();
                let kept = kept.iter().map(|(name, value)| {
                    (name.as_str(), if name == "state" { text.as_str() } else { value.as_str() })
                });
                let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).finish();
                back.set_query(Some(&query));
                Box::pin(get(back.into()))
            }),
            refusals: &[400],
            says: "<h1 ",
        });
        tokens
    }

    /// Uses tokens for other purposes than their own, and returns the number of attempts.
    async fn misuse(&self, world: &World, http: &reqwest::Client, origin: &str) -> usize {
        let mut count = 0;
        let (upload, pass) = self.upload.split_once("?pass=").unwrap();
        let other = world.declare(json!({ "filename": "other.png" })).await;
        let (other, other_pass) = other["upload_url"].as_str().unwrap().split_once("?pass=").unwrap();
        let (download, name) = self.download.rsplit_once('/').unwrap();
        let (download, download_pass) = download.rsplit_once('/').unwrap();
        for (address, pass) in
            [(upload, other_pass), (other, pass), (download, download_pass), (download, pass)]
        {
            let (status, body) = answer(http.put(format!("{address}?pass={pass}")).body(png(64, 64))).await;
            assert_eq!(status, 403, "PUT {address} with the pass of another file or action: {body}");
            count += 1;
        }
        for (address, pass) in [(download, pass), (upload, download_pass), (other, other_pass)] {
            let (status, body) = answer(http.get(format!("{address}/{pass}/{name}"))).await;
            assert!(matches!(status, 403 | 404), "GET {address} with another pass: {status} {body}");
            count += 1;
        }
        // Every token in the place of every other.
        let all = [&self.session, &self.invitation, &self.pending, &self.state];
        for token in all {
            for (name, request) in [
                (
                    "session",
                    http.get(format!("{origin}/dashboard/keys"))
                        .header(header::COOKIE, format!("{}={token}", self.cookie)),
                ),
                ("invitation", http.get(format!("{origin}/dashboard/invite/{token}"))),
                ("pending login", http.get(format!("{}/social-accounts/pending/{token}", world.base))),
                ("state", http.get(format!("{}/connect/callback?code=1&state={token}", world.base))),
                ("cursor", http.get(format!("{}/posts?cursor={token}", world.base)).bearer_auth(&world.key)),
                ("key", http.get(format!("{}/posts", world.base)).bearer_auth(token)),
            ] {
                let is_own = match name {
                    "session" => token == &self.session,
                    "invitation" => token == &self.invitation,
                    "pending login" => token == &self.pending,
                    "state" => token == &self.state,
                    _ => false,
                };
                if !is_own {
                    let (status, body) = answer(request).await;
                    assert!((400..500).contains(&status), "a token as {name}: {status} {body}");
                    count += 1;
                }
            }
        }
        // A code that was issued for another login.
        let (mine, theirs) =
            (login::consented(world, "x", "heidi").await, login::consented(world, "x", "ivan").await);
        let code = login::parameters(&theirs)["code"].clone();
        let mut mixed = mine.clone();
        mixed
            .query_pairs_mut()
            .clear()
            .extend_pairs([("state", login::parameters(&mine)["state"].clone()), ("code", code)]);
        let accounts = world.get("/social-accounts").await["data"].as_array().unwrap().len();
        let told = login::reported(&login::location(&login::arrive(&mixed).await));
        assert_eq!(told["status"], "error", "{told:?}");
        assert_eq!(world.get("/social-accounts").await["data"].as_array().unwrap().len(), accounts);
        count + 1
    }
}

/// Uses the cursors of each list with every other list, owner and mode, which refuse them, and with other filters
/// of its own, which select from the owner's rows all the same. Returns the number of attempts.
async fn cursors(world: &World, tenants: [&Tenant; 3]) -> usize {
    let mut client = Client::of(world);
    let mut count = 0;
    let mut issued: Vec<(usize, String, String)> = Vec::new();
    let mut lists: Vec<(usize, String)> = Vec::new();
    for (index, tenant) in tenants.iter().enumerate() {
        let mut read =
            async |path: &str| client.send(&tenant.key, &Request::new(&Method::GET, path)).await.json();
        let webhook = read("/webhooks").await["data"][0]["id"].as_str().unwrap().to_owned();
        let account = read("/social-accounts").await["data"][0]["id"].as_str().unwrap().to_owned();
        for path in [
            "/posts".to_owned(),
            "/social-accounts".to_owned(),
            format!("/webhooks/{webhook}/deliveries"),
            format!("/social-accounts/{account}/imports"),
            format!("/social-accounts/{account}/imported-posts"),
        ] {
            let page = read(&format!("{path}?limit=1")).await;
            if let Some(cursor) = page["next_cursor"].as_str() {
                issued.push((index, path.clone(), cursor.to_owned()));
            }
            lists.push((index, path));
        }
    }
    for (from, origin, cursor) in &issued {
        for (to, path) in &lists {
            let own = from == to && origin == path;
            let request = Request::new(&Method::GET, format!("{path}?cursor={cursor}"));
            let answer = client.send(&tenants[*to].key, &request).await;
            let expected = if own { StatusCode::OK } else { StatusCode::BAD_REQUEST };
            assert_eq!(answer.status, expected, "cursor of {origin} at {path}: {}", answer.text);
            assert!(own || answer.json()["code"] == "invalid_cursor", "{}", answer.text);
            count += 1;
        }
    }
    for status in ["draft", "scheduled", "published", "failed"] {
        let (_, _, cursor) = issued.iter().find(|(from, path, _)| *from == 0 && path == "/posts").unwrap();
        let path = format!("/posts?status={status}&cursor={cursor}");
        let answer = client.send(&tenants[0].key, &Request::new(&Method::GET, path)).await;
        let page = answer.json();
        let rows = page["data"].as_array().unwrap();
        assert!(rows.iter().all(|post| post["status"] == status), "{status}: {page}");
        count += 1;
    }
    count
}

/// Sends forms of the dashboard as another site would, and returns their number.
async fn foreign_forms(world: &World, http: &reqwest::Client, origin: &str) -> usize {
    let cookie = login::sign_in(world).await;
    let account = account(world).await;
    let post = first(world, "/posts").await;
    let webhook = first(world, "/webhooks").await;
    let host = origin.trim_start_matches("http://");
    let port = host.rsplit(':').next().unwrap();
    let origins = [
        String::new(),
        "null".to_owned(),
        "https://example.com".to_owned(),
        format!("http://{host}.example.com"),
        format!("http://example.com:{port}"),
        format!("http://localhost:{port}"),
        "http://127.0.0.1:1".to_owned(),
        "http://127.0.0.1".to_owned(),
        format!("http://example.com#{host}"),
        format!("http://example.com/?{host}"),
        format!("http://{host}@example.com"),
        format!("ws://{host}"),
        format!("file://{host}"),
        host.to_owned(),
        format!(" {origin} {origin}"),
    ];
    let mut count = 0;
    for path in [
        format!("/accounts/{account}/disconnect"),
        format!("/posts/{post}/cancel"),
        format!("/webhooks/{webhook}/delete"),
        format!("/webhooks/{webhook}/rotate"),
        "/keys".to_owned(),
        "/sign-out".to_owned(),
    ] {
        for from in &origins {
            let mut request = http.post(format!("{origin}/dashboard{path}")).form(&[("name", "theirs")]);
            request = request.header(header::COOKIE, &cookie);
            if !from.is_empty() {
                request = request.header(header::ORIGIN, from);
            }
            let (status, body) = answer(request).await;
            assert_eq!(status, 403, "{path} from {from:?}: {body}");
            count += 1;
        }
    }
    world.get(&format!("/social-accounts/{account}")).await;
    world.get(&format!("/posts/{post}")).await;
    world.get(&format!("/webhooks/{webhook}")).await;
    count
}

/// Changes a delivery in each byte, and checks that its signature fits no more. Returns the number of changes.
async fn signatures(receiver: &Receiver, world: &World) -> usize {
    let webhook = world.subscribe(&receiver.url).await;
    let secret = webhook["signing_secret"].as_str().unwrap();
    let (before, path) =
        (receiver.all().len(), format!("/webhooks/{}/test", webhook["id"].as_str().unwrap()));
    assert_eq!(world.call(Method::POST, &path, None).await.0, StatusCode::OK);
    let delivery = receiver.until("the sample", |all| all.len() > before).await.pop().unwrap();
    assert!(delivery.signed(secret).is_some());
    let mut count = 0;
    for at in 0..delivery.body.len() {
        let mut changed = delivery.clone();
        changed.body[at] ^= 1;
        assert_eq!(changed.signed(secret), None, "byte {at} of the body");
        changed.body.truncate(at);
        assert_eq!(changed.signed(secret), None, "the first {at} bytes of the body");
        count += 2;
    }
    for forged in forgeries(delivery.header("x-fanfare-signature")) {
        let mut changed = delivery.clone();
        let value = changed.headers.iter_mut().find(|(name, _)| name == "x-fanfare-signature").unwrap();
        value.1.clone_from(&forged);
        assert_eq!(changed.signed(secret), None, "{forged}");
        count += 1;
    }
    // HMAC pads a key with zeros, so that trailing ones make no difference. The API accepts no U+0000.
    for secret in forgeries(secret).into_iter().filter(|secret| !secret.ends_with('\0')) {
        assert_eq!(delivery.signed(&secret), None, "{secret}");
        count += 1;
    }
    count
}

async fn answer(request: reqwest::RequestBuilder) -> (u16, String) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap_or_default())
}

async fn first(world: &World, path: &str) -> String {
    let list: Value = world.get(path).await;
    list["data"][0]["id"].as_str().unwrap().to_owned()
}

async fn account(world: &World) -> String {
    first(world, "/social-accounts?username=ada").await
}
