//! Signing in at an OpenID provider, which runs in the test.

use crate::{
    api::key,
    browser::{Browser, Page},
    people, replay, world,
};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use domain::{Mode, Owner, member::Role, scope::Scope};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use poem::{
    EndpointExt, Route, Server, get, handler,
    http::StatusCode as Status,
    listener::{Acceptor, Listener, TcpListener},
    post,
    web::{Data, Form, Json},
};
use reqwest::{Method, StatusCode, header};
use ring::{
    digest,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair},
};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};
use store::people::organizations;
use tests::World;
use url::Url;
use uuid::Uuid;

/// The client's secret at the provider.
const SECRET: &str = "s3cret & more";

/// An OpenID provider at which one person is signed in.
#[derive(Clone)]
struct Provider {
    issuer: String,
    state: Arc<Mutex<State>>,
}

/// Claims that the provider makes and the key that signs them, and the authorization codes that it issued.
struct State {
    claims: Value,
    header: Header,
    key: Vec<u8>,
    published: Value,
    codes: HashMap<String, Value>,
    /// Status with which it answers each exchange of a code, if it does not work.
    failing: Option<Status>,
}

/// Generates a signing key, and the public key as the provider publishes it.
fn pair() -> (Vec<u8>, Value) {
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key.as_ref(), &random).unwrap();
    let point = &pair.public_key().as_ref()[1..];
    let coordinate = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let published = json!({
        "kty": "EC", "crv": "P-256", "kid": "one", "use": "sig", "alg": "ES256",
        "x": coordinate(&point[..32]), "y": coordinate(&point[32..]),
    });
    (key.as_ref().to_vec(), published)
}

#[handler]
fn discovery(provider: Data<&Provider>) -> Json<Value> {
    let issuer = &provider.issuer;
    Json(json!({
        "issuer": issuer, "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"), "jwks_uri": format!("{issuer}/keys"),
    }))
}

#[handler]
fn keys(provider: Data<&Provider>) -> Json<Value> {
    Json(json!({ "keys": [provider.state.lock().unwrap().published] }))
}

/// Exchanges a code once, for the client that it was issued to, with the verifier.
#[handler]
fn token(
    provider: Data<&Provider>,
    request: &poem::Request,
    Form(form): Form<HashMap<String, String>>,
) -> (Status, Json<Value>) {
    let mut state = provider.state.lock().unwrap();
    if let Some(status) = state.failing {
        return (status, Json(json!({ "error": "temporarily_unavailable" })));
    }
    let refuse = |error: &str| (Status::BAD_REQUEST, Json(json!({ "error": error })));
    let client = format!("Basic {}", BASE64_STANDARD.encode("fanfare:s3cret+%26+more"));
    if request.header("authorization") != Some(&client) {
        return refuse("invalid_client");
    }
    let Some(asked) = state.codes.remove(&form["code"]) else { return refuse("invalid_grant") };
    let challenge = digest::digest(&digest::SHA256, form["code_verifier"].as_bytes());
    if asked["code_challenge"] != BASE64_URL_SAFE_NO_PAD.encode(challenge)
        || asked["redirect_uri"] != form["redirect_uri"].as_str()
        || asked["code_challenge_method"] != "S256"
    {
        return refuse("invalid_grant");
    }
    let mut claims = state.claims.clone();
    let issued = jsonwebtoken::get_current_timestamp();
    for (name, value) in [
        ("iss", json!(provider.issuer)),
        ("aud", json!("fanfare")),
        ("nonce", asked["nonce"].clone()),
        ("iat", json!(issued)),
        ("exp", json!(issued + 300)),
    ] {
        claims.as_object_mut().unwrap().entry(name).or_insert(value);
    }
    let signing = match state.header.alg {
        Algorithm::HS256 => EncodingKey::from_secret(&state.key),
        _ => EncodingKey::from_ec_der(&state.key),
    };
    let token = jsonwebtoken::encode(&state.header, &claims, &signing).unwrap();
    (Status::OK, Json(json!({ "id_token": token, "access_token": "a", "token_type": "Bearer" })))
}

impl Provider {
    async fn start() -> Self {
        let acceptor = TcpListener::bind("127.0.0.1:0").into_acceptor().await.unwrap();
        let address = acceptor.local_addr().remove(0);
        let issuer = format!("http://{}", address.as_socket_addr().unwrap());
        let (key, published) = pair();
        let header = Header { kid: Some("one".to_owned()), ..Header::new(Algorithm::ES256) };
        let (claims, codes, failing) = (json!({}), HashMap::new(), None);
        let state = State { claims, header, key, published, codes, failing };
        let provider = Self { issuer, state: Arc::new(Mutex::new(state)) };
        let routes = Route::new()
            .at("/.well-known/openid-configuration", get(discovery))
            .at("/keys", get(keys))
            .at("/token", post(token))
            .data(provider.clone());
        tokio::spawn(Server::new_with_acceptor(acceptor).run(routes));
        provider
    }

    /// Signs a person in at the provider.
    fn is(&self, claims: Value) {
        self.state.lock().unwrap().claims = claims;
    }

    async fn world(&self) -> World {
        world()
            .set("FANFARE_OIDC_ISSUER", &self.issuer)
            .set("FANFARE_OIDC_CLIENT_ID", "fanfare")
            .set("FANFARE_OIDC_CLIENT_SECRET", SECRET)
            .set("FANFARE_OIDC_NAME", "Acme SSO")
            .start()
            .await
    }

    /// Consents to a login that a browser began, and returns where the browser goes from there.
    fn consent(&self, page: &Page) -> String {
        let url = Url::parse(page.leads()).unwrap();
        assert_eq!(url.as_str().split('?').next().unwrap(), format!("{}/authorize", self.issuer));
        let asked: HashMap<_, _> = url.query_pairs().into_owned().collect();
        assert_eq!((asked["response_type"].as_str(), asked["client_id"].as_str()), ("code", "fanfare"));
        assert_eq!(asked["scope"], "openid email profile");
        let code = BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 16]>());
        let path = asked["redirect_uri"].split_once("/dashboard").unwrap().1.to_owned();
        let back = format!("{path}?code={code}&state={}", asked["state"]);
        self.state.lock().unwrap().codes.insert(code, json!(asked));
        back
    }
}

/// Signs in at the provider and comes back.
async fn sign_in(world: &World, provider: &Provider) -> (Browser, Page) {
    let mut browser = Browser::new(world);
    let page = browser.get("/sign-in/openid?next=/dashboard/posts").await;
    browser.cookie = page.cookies();
    let page = browser.get(&provider.consent(&page)).await;
    browser.cookie = page.cookies();
    (browser, page)
}

/// Accepts the invitation of an organization on the page that lists them.
async fn join(browser: &mut Browser, page: &Page, organization: &str) -> Page {
    let offered = page.text.split("name=\"member\" value=\"").skip(1);
    let one = offered.into_iter().find(|one| one.contains(&format!("Join {organization}"))).unwrap();
    let page = browser.post("/sign-in/openid/join", &[("member", one.split('"').next().unwrap())]).await;
    browser.cookie = page.cookies();
    page
}

async fn invite(world: &World, email: &str, role: &str) {
    let body = json!({ "email": email, "role": role });
    assert_eq!(world.call(Method::POST, "/team", Some(&body)).await.0, StatusCode::CREATED);
}

#[tokio::test]
async fn a_verified_address_leads_to_its_invitation() {
    let provider = Provider::start().await;
    let world = provider.world().await;
    let page = Browser::new(&world).get("").await;
    assert!(page.text.contains("Sign in with Acme SSO"), "{}", page.text);
    let bob = json!({ "sub": "7", "email": "Bob@Example.com", "email_verified": true, "name": "Bob" });
    provider.is(bob.clone());
    let (_, page) = sign_in(&world, &provider).await;
    assert!(
        page.status == StatusCode::UNAUTHORIZED && page.text.contains("Nobody has invited"),
        "{}",
        page.text
    );

    invite(&world, "bob@example.com", "publisher").await;
    provider.is(json!({ "sub": "7", "email": "bob@example.com", "email_verified": false }));
    let (_, page) = sign_in(&world, &provider).await;
    assert!(
        page.status == StatusCode::UNAUTHORIZED && page.text.contains("has not verified"),
        "{}",
        page.text
    );

    provider.is(bob);
    let (mut browser, page) = sign_in(&world, &provider).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    let page = join(&mut browser, &page, "World").await;
    assert_eq!(page.leads(), "/dashboard/posts");
    let set = page.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Strict"), "{set}");
    assert!(browser.open("").await.contains("Bob, publisher"));
    let entry = world.get("/account/audit?action=session.started&limit=1").await["data"][0].clone();
    assert_eq!(
        (&entry["member"], &entry["details"]["method"]),
        (&json!("bob@example.com"), &json!("openid"))
    );

    // The session that the browser had when it set out ends, although its cookie stays behind on the way back.
    let (earlier, mut again) = (browser.cookie.clone(), browser);
    let page = again.get("/sign-in/openid").await;
    again.cookie = page.cookies();
    let page = again.get(&provider.consent(&page)).await;
    assert_eq!(page.leads(), "/dashboard");
    again.cookie = page.cookies();
    again.open("").await;
    again.cookie = earlier;
    assert_eq!(again.get("").await.status, StatusCode::UNAUTHORIZED);

    // Both requests replay. Those of other tests are listed with them, because nobody is known yet who asks.
    let (client, nobody) = (replay::client().await, Uuid::nil().to_string());
    let (mut known, mut names) = (HashSet::new(), HashSet::new());
    while names.len() < 2 {
        let id = replay::fresh(&client, &nobody, &known).await;
        let is_finish = replay::history(&client, &id).await.contains("finish_open_id");
        let name = if is_finish { "worker_request-openid_finish" } else { "worker_request-openid_begin" };
        replay::replay(&world, name, &id).await;
        names.insert(name);
        known.insert(id);
    }

    // The person stays the same when the address changes, and their address at another provider's is nobody's.
    provider.is(json!({ "sub": "7", "email": "robert@example.com", "email_verified": "true" }));
    let (browser, _) = sign_in(&world, &provider).await;
    assert!(browser.open("").await.contains("Bob, publisher"));
    provider.is(json!({ "sub": "8", "email": "bob@example.com", "email_verified": true }));
    let (_, page) = sign_in(&world, &provider).await;
    assert!(
        page.status == StatusCode::UNAUTHORIZED && page.text.contains("Nobody has invited"),
        "{}",
        page.text
    );

    // An invitation of another organization waits until the person accepts it.
    let org = organizations::create(&world.db, "AAA").await.unwrap();
    let other = key(&world, Owner { org, mode: Mode::Live }, &[Scope::All]).await;
    let call = world.http.post(format!("{}/team", world.base)).bearer_auth(&other);
    call.json(&json!({ "email": "bob@work.example", "role": "viewer" })).send().await.unwrap();
    provider.is(json!({ "sub": "7", "email": "bob@work.example", "email_verified": true }));
    let (mut browser, page) = sign_in(&world, &provider).await;
    assert!(
        page.text.contains("Continue without joining") && page.text.contains("/dashboard/posts"),
        "{}",
        page.text
    );
    let me = browser.open("/me").await;
    assert!(!me.contains("AAA") && me.contains("World"), "{me}");
    join(&mut browser, &page, "AAA").await;
    let me = browser.open("/me").await;
    assert!(me.contains("AAA") && me.contains("World"), "{me}");
    let (_, page) = sign_in(&world, &provider).await;
    assert_eq!(page.leads(), "/dashboard/posts");
}

#[tokio::test]
async fn nothing_but_the_providers_answer_to_this_browser_signs_in() {
    let provider = Provider::start().await;
    let world = provider.world().await;
    invite(&world, "bob@example.com", "owner").await;
    let bob = json!({ "sub": "7", "email": "bob@example.com", "email_verified": true });
    let with = |name: &str, value: Value| {
        let mut claims = bob.clone();
        claims[name] = value;
        claims
    };
    for claims in [
        with("nonce", json!("of another login")),
        with("aud", json!("another client")),
        with("iss", json!("https://another.example")),
        with("exp", json!(1_700_000_000)),
        with("azp", json!("another client")),
        json!({ "sub": "7", "aud": ["fanfare", "another"], "email": "bob@example.com", "email_verified": true }),
    ] {
        provider.is(claims.clone());
        let (_, page) = sign_in(&world, &provider).await;
        assert!(page.status == StatusCode::UNAUTHORIZED && page.text.contains("not accepted"), "{claims}");
    }
    provider.is(bob.clone());
    let change = |change: &dyn Fn(&mut State)| change(&mut provider.state.lock().unwrap());
    let published = provider.state.lock().unwrap().published.clone();
    // Signed with the client's secret, with another key, or without naming one of the provider's.
    let own = provider.state.lock().unwrap().key.clone();
    for (algorithm, id, key) in [
        (Algorithm::HS256, "one", SECRET.as_bytes().to_vec()),
        (Algorithm::HS256, "one", published.to_string().into_bytes()),
        (Algorithm::ES256, "one", pair().0),
        (Algorithm::ES256, "two", own.clone()),
    ] {
        change(&|state| {
            state.header = Header { kid: Some(id.to_owned()), ..Header::new(algorithm) };
            state.key = key.clone();
        });
        let (_, page) = sign_in(&world, &provider).await;
        assert!(
            page.status == StatusCode::UNAUTHORIZED && page.text.contains("not accepted"),
            "{algorithm:?} {id}"
        );
    }
    change(&|state| {
        state.header = Header { kid: Some("one".to_owned()), ..Header::new(Algorithm::ES256) };
        state.key = own.clone();
    });

    let mut browser = Browser::new(&world);
    let begun = browser.get("/sign-in/openid").await;
    let cookie = begun.cookies();
    let set = begun.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Lax") && set.contains("Max-Age=600"), "{set}");
    let back = provider.consent(&begun);
    // Another browser, to which the address was sent, and one that began another login.
    let page = browser.get(&back).await;
    assert!(
        page.status == StatusCode::UNAUTHORIZED && page.text.contains("another browser"),
        "{}",
        page.text
    );
    browser.cookie = browser.get("/sign-in/openid").await.cookies();
    assert!(browser.get(&back).await.text.contains("another browser"));
    browser.cookie = cookie.clone();
    assert!(browser.get(&format!("{back}x")).await.text.contains("another browser"), "another state");
    let denied = back.split_once("code=").unwrap().1.split_once('&').unwrap();
    let page = browser.get(&format!("/sign-in/openid/callback?error=access_denied&{}", denied.1)).await;
    assert!(
        page.status == StatusCode::UNAUTHORIZED && page.text.contains("did not sign you in"),
        "{}",
        page.text
    );
    assert!(browser.get(&back).await.text.contains("Join World"));
    assert_eq!(browser.get(&back).await.status, StatusCode::UNAUTHORIZED, "a second time");
}

/// It says nothing of the person, who is told to come again.
#[tokio::test]
async fn a_provider_that_is_away_refuses_nobody() {
    let provider = Provider::start().await;
    let world = provider.world().await;
    invite(&world, "bob@example.com", "owner").await;
    provider.is(json!({ "sub": "7", "email": "bob@example.com", "email_verified": true }));
    for failing in [Status::SERVICE_UNAVAILABLE, Status::BAD_GATEWAY, Status::TOO_MANY_REQUESTS] {
        provider.state.lock().unwrap().failing = Some(failing);
        let (_, page) = sign_in(&world, &provider).await;
        assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE, "{failing}: {}", page.text);
        assert!(page.text.contains("sign in again"), "{failing}: {}", page.text);
    }
    provider.state.lock().unwrap().failing = Some(Status::BAD_REQUEST);
    let (_, page) = sign_in(&world, &provider).await;
    assert_eq!(page.status, StatusCode::UNAUTHORIZED, "{}", page.text);
    provider.state.lock().unwrap().failing = None;
    let (_, page) = sign_in(&world, &provider).await;
    assert!(page.text.contains("Join World"), "{}", page.text);
}

#[tokio::test]
async fn a_person_joins_only_what_they_choose() {
    let provider = Provider::start().await;
    let world = provider.world().await;
    // Anybody can invite any address, also before the person's own organization does.
    let org = organizations::create(&world.db, "Aaardvark").await.unwrap();
    let stranger = key(&world, Owner { org, mode: Mode::Live }, &[Scope::All]).await;
    let call = world.http.post(format!("{}/team", world.base)).bearer_auth(&stranger);
    call.json(&json!({ "email": "bob@example.com", "role": "owner" })).send().await.unwrap();
    invite(&world, "bob@example.com", "viewer").await;
    let invited = async |key: &str| {
        let call = world.http.get(format!("{}/team", world.base)).bearer_auth(key);
        let team: Value = call.send().await.unwrap().json().await.unwrap();
        team["data"].as_array().unwrap().iter().filter(|member| member["status"] == "invited").count()
    };
    provider.is(json!({ "sub": "7", "email": "bob@example.com", "email_verified": true }));
    let (mut browser, page) = sign_in(&world, &provider).await;
    assert!(page.text.contains("Join Aaardvark") && page.text.contains("Join World"), "{}", page.text);
    assert!(!page.text.contains("Continue without joining"), "{}", page.text);
    assert_eq!(browser.get("").await.status, StatusCode::UNAUTHORIZED, "nobody is signed in yet");
    assert_eq!((invited(&stranger).await, invited(&world.key).await), (1, 1));
    // A choice is of one who came back from the provider, among the invitations of their address.
    let other = json!({ "email": "eve@example.com", "role": "viewer" });
    let (_, eve) = world.call(Method::POST, "/team", Some(&other)).await;
    for member in [eve["id"].as_str().unwrap(), &Uuid::now_v7().to_string(), "x", ""] {
        let page = browser.post("/sign-in/openid/join", &[("member", member)]).await;
        assert_eq!(page.status, StatusCode::UNAUTHORIZED, "{member}: {}", page.text);
    }
    let bob =
        page.text.split("name=\"member\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let stolen = Browser::new(&world).post("/sign-in/openid/join", &[("member", &bob)]).await;
    assert_eq!(stolen.status, StatusCode::UNAUTHORIZED);
    assert_eq!(join(&mut browser, &page, "World").await.leads(), "/dashboard/posts");
    assert_eq!((invited(&stranger).await, invited(&world.key).await), (1, 1), "the stranger's, and Eve's");
    // An organization that one has joined opens, no matter which others have invited.
    let (browser, page) = sign_in(&world, &provider).await;
    assert!(page.text.contains("Join Aaardvark") && !page.text.contains("Join World"), "{}", page.text);
    assert!(browser.open("").await.contains(", viewer"));
}

/// A person who joined with a passkey links their identity at the provider on their own page.
#[tokio::test]
async fn an_identity_is_linked_and_unlinked_by_the_person_themselves() {
    let provider = Provider::start().await;
    let world = provider.world().await;
    let bob = json!({ "sub": "7", "email": "bob@other.example", "email_verified": true });
    provider.is(bob.clone());
    let (browser, ..) = people::join(&world, &world.key, "bob@example.com", Role::Viewer).await;
    let (_, page) = sign_in(&world, &provider).await;
    assert_eq!(page.status, StatusCode::UNAUTHORIZED, "the identity is nobody's: {}", page.text);

    /// Begins on the person's page, and comes back as browsers do: without the cookie of the session.
    async fn link(world: &World, provider: &Provider, browser: &Browser) -> Page {
        let begun = browser.post("/me/identities", &[]).await;
        let mut back = Browser::new(world);
        back.cookie = begun.cookies();
        back.get(&provider.consent(&begun)).await
    }
    let me = browser.get("/me").await;
    assert!(me.text.contains("Link your identity at Acme SSO"), "{}", me.text);
    let policy = me.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.contains("form-action 'self' https:"), "the form leads to the provider: {policy}");
    let begun = browser.post("/me/identities", &[]).await;
    let back = provider.consent(&begun);
    let state = back.split_once("&state=").unwrap().1;
    let mut denied = Browser::new(&world);
    denied.cookie = begun.cookies();
    let page = denied.get(&format!("/sign-in/openid/callback?error=access_denied&state={state}")).await;
    assert_eq!(page.leads(), "/dashboard/me?done=identity_refused");
    for _ in 0..2 {
        assert_eq!(link(&world, &provider, &browser).await.leads(), "/dashboard/me?done=identity_linked");
    }
    let entries = world.get("/account/audit?action=identity.linked").await;
    let [entry] = &entries["data"].as_array().unwrap()[..] else { panic!("one entry: {entries:#}") };
    assert_eq!(
        (&entry["member"], &entry["details"]["issuer"]),
        (&json!("bob@example.com"), &json!(provider.issuer))
    );
    let (_, page) = sign_in(&world, &provider).await;
    assert_eq!(page.leads(), "/dashboard/posts", "{}", page.text);

    // It belongs to Bob, even if somebody else is signed in at the provider with it.
    let (eve, ..) = people::join(&world, &world.key, "eve@example.com", Role::Viewer).await;
    assert_eq!(link(&world, &provider, &eve).await.leads(), "/dashboard/me?done=identity_taken");
    let form = [("issuer", provider.issuer.as_str()), ("subject", "7")];
    assert_eq!(eve.post("/me/identities/unlink", &form).await.status, StatusCode::NOT_FOUND);
    // A session that ended meanwhile links nothing.
    provider.is(json!({ "sub": "8" }));
    let begun = eve.post("/me/identities", &[]).await;
    assert_eq!(eve.post("/sign-out", &[]).await.leads(), "/dashboard");
    let mut back = Browser::new(&world);
    back.cookie = begun.cookies();
    assert_eq!(back.get(&provider.consent(&begun)).await.leads(), "/dashboard/me");
    let (_, page) = sign_in(&world, &provider).await;
    assert_eq!(page.status, StatusCode::UNAUTHORIZED, "{}", page.text);

    provider.is(bob);
    assert_eq!(
        browser.post("/me/identities/unlink", &form).await.leads(),
        "/dashboard/me?done=identity_unlinked"
    );
    assert_eq!(world.get("/account/audit?limit=1").await["data"][0]["action"], "identity.unlinked");
    let (_, page) = sign_in(&world, &provider).await;
    assert_eq!(page.status, StatusCode::UNAUTHORIZED, "{}", page.text);
}

/// Either a passkey or an identity stays.
#[tokio::test]
async fn the_last_way_to_sign_in_is_not_unlinked() {
    let provider = Provider::start().await;
    let world = provider.world().await;
    invite(&world, "bob@example.com", "viewer").await;
    provider.is(json!({ "sub": "7", "email": "bob@example.com", "email_verified": true }));
    let (mut browser, page) = sign_in(&world, &provider).await;
    join(&mut browser, &page, "World").await;
    let form = [("issuer", provider.issuer.as_str()), ("subject", "7")];
    let page = browser.post("/me/identities/unlink", &form).await;
    assert!(
        page.status == StatusCode::CONFLICT && page.text.contains("only way to sign in"),
        "{}",
        page.text
    );
    let (_, page) = sign_in(&world, &provider).await;
    assert_eq!(page.leads(), "/dashboard/posts");
}
