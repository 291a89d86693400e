//! People: invitations, passkeys, roles and sessions of the dashboard, over HTTP.

use crate::{
    PROGRAM,
    api::{fail, key, request},
    browser::{Browser, Page},
    database,
    store::concurrent::until_waiting,
    world,
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{TimeDelta, Utc};
use domain::{
    Mode, Owner,
    member::Role,
    scope::{Scope, allows},
};
use reqwest::{Method, StatusCode, header};
use ring::{
    digest,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair},
};
use serde_json::{Value, json};
use std::process::Command;
use store::people::{self, audit::Actor, organizations, sessions, team};
use tests::{Receiver, World, if_right, now, wait_until};
use uuid::Uuid;

/// An authenticator with one passkey, which verifies its user.
pub(crate) struct Authenticator {
    pair: EcdsaKeyPair,
    id: Vec<u8>,
    handle: String,
    party: String,
    /// Number of signatures; authenticators that share a passkey between devices do not count.
    count: u32,
    /// Origin of the page, as the browser tells it.
    pub(crate) origin: String,
}

fn encode(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

impl Authenticator {
    /// Creates a passkey for a challenge, and returns it with the answer.
    pub(crate) fn create(world: &World, options: &Value) -> (Self, String) {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key.as_ref(), &random).unwrap();
        let port = world.base.rsplit(':').next().unwrap().split('/').next().unwrap();
        let created = Self {
            pair,
            id: rand::random::<[u8; 32]>().to_vec(),
            handle: options["user"]["id"].as_str().unwrap().to_owned(),
            party: options["rp"]["id"].as_str().unwrap().to_owned(),
            count: 0,
            origin: format!("http://localhost:{port}"),
        };
        // https://www.w3.org/TR/webauthn-3/#sctn-attested-credential-data, the key in COSE: EC2, ES256, P-256.
        let point = &created.pair.public_key().as_ref()[1..];
        let cose =
            [&b"\xa5\x01\x02\x03\x26\x20\x01\x21\x58\x20"[..], &point[..32], b"\x22\x58\x20", &point[32..]];
        let mut data = created.data(0x45);
        data.extend([0; 16]);
        data.extend([0, created.id.len() as u8]);
        data.extend(&created.id);
        data.extend(cose.concat());
        let head = b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58";
        let attestation = [&head[..], &[data.len() as u8], &data].concat();
        let client = created.client("webauthn.create", options);
        let answer = created.answer(json!({
            "clientDataJSON": encode(&client), "attestationObject": encode(&attestation), "transports": ["internal"],
        }));
        (created, answer)
    }

    /// Signs a challenge, and returns the answer.
    pub(crate) fn get(&self, options: &Value) -> String {
        let (data, client) = (self.data(0x05), self.client("webauthn.get", options));
        let signed = [&data[..], digest::digest(&digest::SHA256, &client).as_ref()].concat();
        let signature = self.pair.sign(&SystemRandom::new(), &signed).unwrap();
        self.answer(json!({
            "clientDataJSON": encode(&client), "authenticatorData": encode(&data),
            "signature": encode(signature.as_ref()), "userHandle": self.handle,
        }))
    }

    fn data(&self, flags: u8) -> Vec<u8> {
        let party = digest::digest(&digest::SHA256, self.party.as_bytes());
        [party.as_ref(), &[flags], &self.count.to_be_bytes()].concat()
    }

    fn client(&self, kind: &str, options: &Value) -> Vec<u8> {
        let Self { origin, .. } = self;
        let challenge = options["challenge"].as_str().unwrap();
        format!(r#"{{"type":"{kind}","challenge":"{challenge}","origin":"{origin}","crossOrigin":false}}"#)
            .into_bytes()
    }

    fn answer(&self, response: Value) -> String {
        json!({
            "id": encode(&self.id), "rawId": encode(&self.id), "type": "public-key",
            "authenticatorAttachment": "platform", "clientExtensionResults": {}, "response": response,
        })
        .to_string()
    }
}

/// Asks for a challenge as the script of a page does.
async fn challenge(browser: &Browser, path: &str) -> (Value, String) {
    let page = browser.get(path).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    let challenge: Value = serde_json::from_str(&page.text).unwrap();
    (challenge["options"].clone(), challenge["state"].as_str().unwrap().to_owned())
}

/// Accepts an invitation with a new passkey.
pub(crate) async fn accept(world: &World, invite_url: &str, name: &str) -> (Browser, Authenticator) {
    let mut browser = Browser::new(world);
    let path = invite_url.split_once("/dashboard").unwrap().1;
    let (options, state) = challenge(&browser, &format!("{path}/passkey")).await;
    let (passkey, answer) = Authenticator::create(world, &options);
    let page = browser.post(path, &[("name", name), ("state", &state), ("credential", &answer)]).await;
    assert_eq!(page.leads(), "/dashboard");
    browser.keep(&page);
    (browser, passkey)
}

/// Invites a person with a key, who accepts.
pub(crate) async fn join(
    world: &World,
    key: &str,
    email: &str,
    role: Role,
) -> (Browser, Authenticator, String) {
    let call = world.http.post(format!("{}/team", world.base)).bearer_auth(key);
    let member: Value = call
        .json(&json!({ "email": email, "role": role.as_str() }))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let url = member["invite_url"].as_str().unwrap_or_else(|| panic!("{member}"));
    let (browser, passkey) = accept(world, url, "Bob").await;
    (browser, passkey, member["id"].as_str().unwrap().to_owned())
}

async fn sign_in(browser: &mut Browser, passkey: &Authenticator) -> Page {
    let (options, state) = challenge(browser, "/sign-in/passkey").await;
    let answer = passkey.get(&options);
    let page = browser.post("/sign-in/passkey", &[("state", &state), ("credential", &answer)]).await;
    browser.keep(&page);
    page
}

async fn live_key(world: &World) -> String {
    key(world, Owner { mode: Mode::Live, ..world.owner }, &[Scope::All]).await
}

#[tokio::test]
async fn a_person_joins_with_a_passkey_and_signs_in_with_it() {
    let world = world().start().await;
    let (mut browser, passkey, member) = join(&world, &world.key, "bob@example.com", Role::Viewer).await;
    let page = browser.open("").await;
    assert!(page.contains("Bob, viewer") && page.contains("Test mode"), "{page}");
    let team = world.get("/team").await;
    assert_eq!((&team["data"][0]["status"], &team["data"][0]["name"]), (&json!("active"), &json!("Bob")));

    browser.post("/sign-out", &[]).await;
    assert_eq!(browser.get("").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(&mut browser, &passkey).await.leads(), "/dashboard");
    browser.open("").await;
    let entries = world.get("/account/audit?action=session.started&limit=1").await;
    let entry = &entries["data"][0];
    assert_eq!(entry["member"], "bob@example.com", "{entry}");
    assert_eq!((&entry["member_id"], &entry["object_id"]), (&json!(member), &json!(member)));
    assert_eq!((&entry["details"]["method"], &entry["address"]), (&json!("passkey"), &json!("127.0.0.1")));
}

#[tokio::test]
async fn an_answer_is_accepted_once_and_for_this_service_only() {
    let world = world().start().await;
    let (mut browser, mut passkey, _) = join(&world, &world.key, "bob@example.com", Role::Viewer).await;
    browser.post("/sign-out", &[]).await;
    let send = async |state: &str, answer: &str| {
        Browser::new(&world)
            .post("/sign-in/passkey", &[("state", state), ("credential", answer)])
            .await
            .status
    };
    let begin = async || challenge(&browser, "/sign-in/passkey").await;

    let (options, state) = begin().await;
    let answer = passkey.get(&options);
    let (other, other_state) = begin().await;
    assert_eq!(send(&other_state, &answer).await, StatusCode::UNAUTHORIZED, "another challenge's answer");
    assert_eq!(send("", &answer).await, StatusCode::UNAUTHORIZED);
    assert_eq!(send(&state[1..], &answer).await, StatusCode::UNAUTHORIZED);
    assert_eq!(send(&state, &answer).await, StatusCode::SEE_OTHER);
    assert_eq!(send(&state, &answer).await, StatusCode::UNAUTHORIZED, "a second time");

    // An authenticator that counts.
    passkey.count = 5;
    let (options, state) = begin().await;
    assert_eq!(send(&state, &passkey.get(&options)).await, StatusCode::SEE_OTHER);
    let own = std::mem::replace(&mut passkey.origin, "https://evil.example".to_owned());
    assert_eq!(send(&other_state, &passkey.get(&other)).await, StatusCode::UNAUTHORIZED, "another page's");
    passkey.origin = own;
    let party = std::mem::replace(&mut passkey.party, "evil.example".to_owned());
    assert_eq!(send(&other_state, &passkey.get(&other)).await, StatusCode::UNAUTHORIZED, "another party's");
    passkey.party = party;
    passkey.count = 4;
    assert_eq!(send(&other_state, &passkey.get(&other)).await, StatusCode::UNAUTHORIZED, "a copied key's");
    passkey.count = 6;
    let id = std::mem::replace(&mut passkey.id, vec![7; 32]);
    assert_eq!(send(&other_state, &passkey.get(&other)).await, StatusCode::UNAUTHORIZED, "unknown");
    passkey.id = id;
    assert_eq!(send(&other_state, &passkey.get(&other)).await, StatusCode::SEE_OTHER);
    let refused = world.get("/account/audit?action=session.refused").await;
    assert_eq!(refused["data"].as_array().unwrap().len(), 4, "{refused}");

    // A challenge for an invitation is for no other person and purpose.
    let body = json!({ "email": "eve@example.com", "role": "viewer" });
    let (_, eve) = world.call(Method::POST, "/team", Some(&body)).await;
    let path = eve["invite_url"].as_str().unwrap().split_once("/dashboard").unwrap().1.to_owned();
    let (options, state) = begin().await;
    let form = [("name", "Eve"), ("state", state.as_str()), ("credential", &passkey.get(&options))];
    assert_eq!(browser.post(&path, &form).await.status, StatusCode::BAD_REQUEST);
    // Nor does a challenge for a further passkey of a member accept an invitation, or the other way round.
    passkey.count = 7;
    assert_eq!(sign_in(&mut browser, &passkey).await.leads(), "/dashboard");
    let further = "/me/passkeys/options".to_owned();
    for (from, to) in [(further, path.as_str()), (format!("{path}/passkey"), "/me/passkeys")] {
        let (options, state) = challenge(&browser, &from).await;
        let (_, answer) = Authenticator::create(&world, &options);
        let form = [("name", "Eve"), ("state", state.as_str()), ("credential", &answer)];
        let page = browser.post(to, &form).await;
        assert_eq!(page.status, StatusCode::BAD_REQUEST, "{from}: {}", page.text);
        assert!(page.text.contains("took more than five minutes"), "{from}: {}", page.text);
    }
}

/// Pages that are there for everyone, with the scopes that the page asks for.
const PAGES: [(&str, &[Scope]); 11] = [
    ("", &[Scope::PostsRead, Scope::AccountsRead]),
    ("/posts", &[Scope::PostsRead, Scope::AccountsRead]),
    ("/compose", &[Scope::PostsWrite, Scope::AccountsRead, Scope::MediaRead]),
    ("/accounts", &[Scope::AccountsRead]),
    ("/media", &[Scope::MediaRead]),
    ("/webhooks", &[Scope::WebhooksRead]),
    ("/keys", &[Scope::KeysWrite]),
    ("/team", &[Scope::TeamRead]),
    ("/audit", &[Scope::TeamRead]),
    ("/usage", &[Scope::UsageRead]),
    ("/me", &[]),
];

/// Actions, with the scope that each asks for.
const ACTIONS: [(&str, Scope); 14] = [
    ("/compose", Scope::PostsWrite),
    ("/posts/7/cancel", Scope::PostsWrite),
    ("/posts/7/targets/8/retry", Scope::PostsWrite),
    ("/media/7/delete", Scope::MediaWrite),
    ("/accounts/connect", Scope::AccountsWrite),
    ("/accounts/7/disconnect", Scope::AccountsWrite),
    ("/accounts/7/check", Scope::AccountsRead),
    ("/webhooks", Scope::WebhooksWrite),
    ("/webhooks/7/reveal", Scope::WebhooksWrite),
    ("/webhooks/7/rotate", Scope::WebhooksWrite),
    ("/keys", Scope::KeysWrite),
    ("/keys/7/revoke", Scope::KeysWrite),
    ("/team", Scope::TeamWrite),
    ("/team/7/role", Scope::TeamWrite),
];

#[tokio::test]
async fn a_role_decides_what_opens_and_what_is_offered() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let post = world.post(json!({ "content": "Hello", "accounts": [account], "is_draft": true })).await;
    let post = format!("/posts/{}", post["id"].as_str().unwrap());
    for role in [Role::Viewer, Role::Publisher, Role::Admin, Role::Owner] {
        let (browser, ..) = join(&world, &world.key, &format!("{role}@example.com"), role).await;
        let may = |scope: Scope| allows(role.scopes(), scope);
        for (path, scopes) in PAGES {
            let page = browser.get(path).await;
            let is_open = scopes.iter().all(|scope| may(*scope));
            let expected = if is_open { StatusCode::OK } else { StatusCode::FORBIDDEN };
            assert_eq!(page.status, expected, "{role} {path}: {}", page.text);
            if !is_open {
                assert!(page.text.contains(&format!("Your role, {role}, does not include")), "{}", page.text);
            }
            let is_linked = page.text.contains(&format!(r#"href="/dashboard{path}""#));
            assert!(is_linked == is_open, "{role} {path}");
        }
        for (path, scope) in ACTIONS {
            let status = browser.post(path, &[]).await.status;
            assert_eq!(status == StatusCode::FORBIDDEN, !may(scope), "{role} {path}: {status}");
        }
        let page = browser.open(&post).await;
        assert_eq!(page.contains("Cancel this post…"), may(Scope::PostsWrite), "{role}: {page}");
        let page = browser.open("/accounts").await;
        assert_eq!(page.contains("Disconnect…"), may(Scope::AccountsWrite), "{role}: {page}");
        assert_eq!(page.contains("Connect an account"), may(Scope::AccountsWrite), "{role}: {page}");
    }
    // A key opens what its scopes allow.
    let mut browser = Browser::new(&world);
    let narrow = key(&world, world.owner, &[Scope::MediaRead]).await;
    assert_eq!(browser.sign_in(&narrow).await.leads(), "/dashboard");
    assert_eq!(browser.get("/media").await.status, StatusCode::OK);
    let page = browser.get("/posts").await;
    assert!(
        page.status == StatusCode::FORBIDDEN && page.text.contains("does not include the scope posts:read")
    );
    assert_eq!(browser.get("/nowhere").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_overview_and_actions_show_endpoints_only_to_those_who_may_read_them() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&format!("{}?token=t0ken-in-url", receiver.url)).await;
    let path = format!("/webhooks/{}", webhook["id"].as_str().unwrap());
    world.ended(&world.post(json!({ "content": "Hello", "accounts": [account] })).await).await;
    let fail = async || {
        let failed = sqlx::query(
            "update deliveries set status = 'failed', error = 'err0r-of-endpoint'
             where org_id = $1 and status = 'delivered'",
        );
        let failed = failed.bind(world.owner.org.0).execute(&world.db).await.unwrap().rows_affected();
        if_right(failed, |failed| *failed > 0)
    };
    wait_until("the delivery", fail).await;
    for role in [Role::Viewer, Role::Publisher, Role::Admin, Role::Owner] {
        let (browser, ..) = join(&world, &world.key, &format!("{role}@example.com"), role).await;
        let page = browser.open("").await;
        for words in ["t0ken-in-url", "rr0r-of-endpoint", "1 webhook endpoint fails"] {
            assert_eq!(page.contains(words), allows(role.scopes(), Scope::WebhooksRead), "{role}: {page}");
        }
    }
    // An action draws its page, so it needs the page's scopes too.
    let mut browser = Browser::new(&world);
    browser.sign_in(&key(&world, world.owner, &[Scope::WebhooksWrite]).await).await;
    for action in ["test", "pause", "reveal", "rotate"] {
        let page = browser.post(&format!("{path}/{action}"), &[]).await;
        assert_eq!(page.status, StatusCode::FORBIDDEN, "{action}: {}", page.text);
        assert!(!page.text.contains("t0ken-in-url"), "{action}: {}", page.text);
    }
}

#[tokio::test]
async fn a_changed_role_counts_at_once_and_a_removed_member_is_out() {
    let world = world().start().await;
    let (browser, passkey, member) = join(&world, &world.key, "bob@example.com", Role::Viewer).await;
    assert_eq!(browser.get("/compose").await.status, StatusCode::FORBIDDEN);
    let path = format!("/team/{member}");
    let (status, changed) = world.call(Method::PATCH, &path, Some(&json!({ "role": "publisher" }))).await;
    assert_eq!((status, &changed["role"]), (StatusCode::OK, &json!("publisher")), "{changed}");
    browser.open("/compose").await;
    let entry = world.get("/account/audit?limit=1").await["data"][0].clone();
    assert_eq!((&entry["action"], &entry["object_id"]), (&json!("member.role_changed"), &json!(member)));
    let details = json!({ "email": "bob@example.com", "from": "viewer", "role": "publisher" });
    assert_eq!(entry["details"], details);

    for (body, code) in [(json!({}), "invalid_request"), (json!({ "role": "king" }), "invalid_request")] {
        fail(request(&world, Method::PATCH, &path).json(&body), 400, code).await;
    }
    fail(request(&world, Method::PATCH, "/team/7").json(&json!({ "role": "viewer" })), 404, "not_found")
        .await;
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
    assert_eq!(browser.get("/compose").await.status, StatusCode::UNAUTHORIZED);
    // The person is in no other organization, so nothing of them is kept.
    let page = sign_in(&mut Browser::new(&world), &passkey).await;
    assert!(page.status == StatusCode::UNAUTHORIZED && page.text.contains("not known here"), "{}", page.text);
}

#[tokio::test]
async fn the_last_owner_stays_an_owner_and_few_scopes_decide_about_no_owner() {
    let world = world().start().await;
    let body = json!({ "email": "ada@example.com", "role": "owner" });
    let (_, ada) = world.call(Method::POST, "/team", Some(&body)).await;
    let path = format!("/team/{}", ada["id"].as_str().unwrap());
    fail(request(&world, Method::PATCH, &path).json(&json!({ "role": "viewer" })), 409, "conflict").await;
    let narrow = key(&world, world.owner, &[Scope::TeamWrite, Scope::PostsRead]).await;
    let with =
        |method, path: &str| world.http.request(method, format!("{}{path}", world.base)).bearer_auth(&narrow);
    for call in [
        with(Method::DELETE, &path),
        with(Method::PATCH, &path).json(&json!({ "role": "viewer" })),
        with(Method::POST, "/team").json(&json!({ "email": "eve@example.com", "role": "owner" })),
    ] {
        fail(call, 403, "forbidden").await;
    }
    let body = json!({ "email": "eve@example.com", "role": "owner" });
    world.call(Method::POST, "/team", Some(&body)).await;
    let (status, ada) = world.call(Method::PATCH, &path, Some(&json!({ "role": "viewer" }))).await;
    assert_eq!((status, &ada["role"]), (StatusCode::OK, &json!("viewer")), "{ada}");
}

#[tokio::test]
async fn a_test_key_leads_to_test_data_only() {
    let world = world().start().await;
    let live = live_key(&world).await;
    let (ada, _, ada_id) = join(&world, &live, "ada@example.com", Role::Owner).await;
    assert!(ada.open("").await.contains("Live mode"));
    let (bob, _, bob_id) = join(&world, &world.key, "bob@example.com", Role::Owner).await;
    assert!(bob.open("").await.contains("Test mode"));
    let org = world.owner.org.to_string();
    let form = [("organization", org.as_str()), ("mode", "live")];
    assert_eq!(bob.post("/me/switch", &form).await.status, StatusCode::NOT_FOUND);
    assert!(bob.open("").await.contains("Test mode"));
    let page = bob.post("/keys", &[("name", "mine"), ("scope", "*")]).await;
    assert!(page.secret().starts_with("sk_test_"), "{}", page.text);

    // Somebody with test data only decides nothing about those with live data, and is no second owner of it.
    let path = format!("/team/{ada_id}");
    fail(request(&world, Method::DELETE, &path), 403, "forbidden").await;
    fail(request(&world, Method::PATCH, &path).json(&json!({ "role": "viewer" })), 403, "forbidden").await;
    assert_eq!(bob.post(&format!("{path}/remove"), &[]).await.status, StatusCode::FORBIDDEN);
    let with_live =
        |method, path: &str| world.http.request(method, format!("{}{path}", world.base)).bearer_auth(&live);
    fail(with_live(Method::DELETE, &path), 409, "conflict").await;
    assert_eq!(
        with_live(Method::DELETE, &format!("/team/{bob_id}")).send().await.unwrap().status(),
        StatusCode::OK
    );
    let form = [("organization", org.as_str()), ("mode", "test")];
    assert_eq!(ada.post("/me/switch", &form).await.leads(), "/dashboard");
    assert!(ada.open("").await.contains("Test mode"));
}

#[tokio::test]
async fn an_address_identifies_no_person_and_a_person_switches_between_organizations() {
    let world = world().start().await;
    let (bob, _, _) = join(&world, &world.key, "bob@example.com", Role::Publisher).await;
    let org = organizations::create(&world.db, "Umbrella").await.unwrap();
    let other = key(&world, Owner { org, mode: Mode::Live }, &[Scope::All]).await;
    let invite = async |email: &str| {
        let call = world.http.post(format!("{}/team", world.base)).bearer_auth(&other);
        let body = json!({ "email": email, "role": "viewer" });
        let member: Value = call.json(&body).send().await.unwrap().json().await.unwrap();
        member["invite_url"].as_str().unwrap().to_owned()
    };
    // An administrator of the other organization opens their own invitation of Bob's address.
    let (eve, _) = accept(&world, &invite("bob@example.com").await, "Eve").await;
    let page = eve.open("/me").await;
    assert!(page.contains("Umbrella") && !page.contains("World"), "{page}");
    let form = [("organization", &*world.owner.org.to_string()), ("mode", "test")];
    assert_eq!(eve.post("/me/switch", &form).await.status, StatusCode::NOT_FOUND);

    let url = invite("bob@work.example").await;
    let path = url.split_once("/dashboard").unwrap().1;
    assert!(bob.open(path).await.contains("Accept as Bob"));
    let mut browser = bob;
    let page = browser.post(path, &[("name", "Robert"), ("as", "me")]).await;
    assert_eq!(page.leads(), "/dashboard");
    browser.keep(&page);
    let page = browser.open("").await;
    assert!(
        page.contains("Umbrella") && page.contains("Live mode") && page.contains("Robert, viewer"),
        "{page}"
    );
    assert_eq!(browser.post("/me/switch", &form).await.leads(), "/dashboard");
    let page = browser.open("").await;
    assert!(page.contains("World") && page.contains("Bob, publisher"), "{page}");
    let again = invite("bob@third.example").await;
    let page =
        browser.post(again.split_once("/dashboard").unwrap().1, &[("name", "Bob"), ("as", "me")]).await;
    assert!(
        page.status == StatusCode::CONFLICT && page.text.contains("a member of this organization already")
    );
}

#[tokio::test]
async fn each_organization_is_told_what_a_person_does_under_its_own_address() {
    let world = world().start().await;
    let (mut bob, passkey, here) = join(&world, &world.key, "bob@example.com", Role::Publisher).await;
    let org = organizations::create(&world.db, "Umbrella").await.unwrap();
    let other = key(&world, Owner { org, mode: Mode::Live }, &[Scope::All]).await;
    let with =
        |method, path: &str| world.http.request(method, format!("{}{path}", world.base)).bearer_auth(&other);
    let call = with(Method::POST, "/team").json(&json!({ "email": "bob@client.example", "role": "viewer" }));
    let invited: Value = call.send().await.unwrap().json().await.unwrap();
    let path = invited["invite_url"].as_str().unwrap().split_once("/dashboard").unwrap().1.to_owned();
    let page = bob.post(&path, &[("name", "Bob"), ("as", "me")]).await;
    bob.keep(&page);
    let there = invited["id"].as_str().unwrap();
    let newest = async |action: &str| {
        let query = format!("/account/audit?action={action}&limit=1");
        let elsewhere: Value = with(Method::GET, &query).send().await.unwrap().json().await.unwrap();
        [world.get(&query).await, elsewhere].map(|page| page["data"][0].clone())
    };
    let own = |entries: &[Value; 2]| {
        for (entry, email, id) in
            [(&entries[0], "bob@example.com", here.as_str()), (&entries[1], "bob@client.example", there)]
        {
            assert_eq!((&entry["member"], &entry["member_id"]), (&json!(email), &json!(id)), "{entry}");
        }
    };

    // Leading the session elsewhere ends it here and starts it there.
    let form = [("organization", &*world.owner.org.to_string()), ("mode", "test")];
    assert_eq!(bob.post("/me/switch", &form).await.leads(), "/dashboard");
    let [started, ended] =
        [newest("session.started").await[0].clone(), newest("session.ended").await[1].clone()];
    own(&[started.clone(), ended.clone()]);
    assert_eq!((&started["object_id"], &ended["object_id"]), (&json!(here), &json!(there)));
    assert_eq!(started["details"], json!({ "method": "switch" }));
    bob.post("/me/switch", &form).await;
    assert_eq!(newest("session.started").await[0]["id"], started["id"], "the organization is the same");

    let (options, state) = challenge(&bob, "/me/passkeys/options").await;
    let (_, answer) = Authenticator::create(&world, &options);
    let form = [("name", "Phone"), ("state", state.as_str()), ("credential", &answer)];
    assert_eq!(bob.post("/me/passkeys", &form).await.leads(), "/dashboard/me?done=passkey_added");
    own(&newest("passkey.added").await);
    // This session begins with live data, and so in the other organization.
    sign_in(&mut Browser::new(&world), &passkey).await;
    bob.post("/me/sessions/others/end", &[]).await;
    let ended = newest("session.ended").await;
    own(&[newest("session.started").await[0].clone(), ended[1].clone()]);
    assert_eq!(ended[1]["details"], json!({}));

    // One organization removes the member; the person stays in the other.
    let path = format!("/team/{here}");
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
    let mut phone = Browser::new(&world);
    assert_eq!(sign_in(&mut phone, &passkey).await.leads(), "/dashboard");
    assert!(phone.open("").await.contains("Umbrella"));
}

#[tokio::test]
async fn passkeys_are_added_and_removed_except_the_last() {
    let world = world().start().await;
    let (mut browser, first, _) = join(&world, &world.key, "bob@example.com", Role::Viewer).await;
    let ids = async |browser: &Browser| {
        let page = browser.open("/me").await;
        let found = page.split("/dashboard/me/passkeys/").skip(1);
        found
            .filter_map(|rest| Some(rest.split_once("/remove")?.0.to_owned()))
            .filter(|id| id.len() == 36)
            .collect::<Vec<_>>()
    };
    let [only] = &ids(&browser).await[..] else { panic!("one passkey") };
    let page = browser.post(&format!("/me/passkeys/{only}/remove"), &[]).await;
    assert!(page.status == StatusCode::CONFLICT && page.text.contains("only passkey"), "{}", page.text);

    let (options, state) = challenge(&browser, "/me/passkeys/options").await;
    assert_eq!(options["excludeCredentials"].as_array().unwrap().len(), 1, "{options}");
    let (_, answer) = Authenticator::create(&world, &options);
    let form = [("name", "Phone <b>"), ("state", state.as_str()), ("credential", &answer)];
    // Somebody else's challenge is of no use.
    let (eve, ..) = join(&world, &world.key, "eve@example.com", Role::Viewer).await;
    assert_eq!(eve.post("/me/passkeys", &form).await.status, StatusCode::BAD_REQUEST);
    let (options, state) = challenge(&browser, "/me/passkeys/options").await;
    let (second, answer) = Authenticator::create(&world, &options);
    let form = [("name", "Phone <b>"), ("state", state.as_str()), ("credential", &answer)];
    assert_eq!(browser.post("/me/passkeys", &form).await.leads(), "/dashboard/me?done=passkey_added");
    assert_eq!(browser.post("/me/passkeys", &form).await.status, StatusCode::BAD_REQUEST, "used before");
    assert!(browser.open("/me").await.contains("Phone &#60;b&#62;"));
    assert_eq!(world.get("/account/audit?limit=1").await["data"][0]["action"], "passkey.added");

    // Of the sessions that it started, only the present one goes on.
    let (mut lost, mut phone) = (Browser::new(&world), Browser::new(&world));
    sign_in(&mut lost, &first).await;
    sign_in(&mut phone, &second).await;
    assert_eq!(
        browser.post(&format!("/me/passkeys/{only}/remove"), &[]).await.leads(),
        "/dashboard/me?done=passkey_removed"
    );
    assert_eq!(lost.get("").await.status, StatusCode::UNAUTHORIZED);
    phone.open("").await;
    browser.open("").await;
    let entries = world.get("/account/audit?limit=2").await;
    let actions = ["session.ended", "passkey.removed"];
    let mut found: Vec<_> = entries["data"].as_array().unwrap().iter().map(|one| &one["action"]).collect();
    found.sort_by_key(|action| *action != actions[0]);
    assert_eq!(found, actions, "{entries}");
    let other = &ids(&eve).await[0];
    assert_eq!(
        browser.post(&format!("/me/passkeys/{other}/remove"), &[]).await.status,
        StatusCode::NOT_FOUND
    );
    let page = sign_in(&mut browser, &first).await;
    assert!(page.status == StatusCode::UNAUTHORIZED && page.text.contains("not known here"), "{}", page.text);
    assert_eq!(sign_in(&mut browser, &second).await.leads(), "/dashboard");
}

#[tokio::test]
async fn sessions_are_listed_ended_and_end_when_unused() {
    let world = world().start().await;
    let (mut browser, passkey, _) = join(&world, &world.key, "bob@example.com", Role::Viewer).await;
    let mut phone = Browser::new(&world);
    sign_in(&mut phone, &passkey).await;
    let mut laptop = Browser::new(&world);
    sign_in(&mut laptop, &passkey).await;
    let others = async |browser: &Browser| {
        let page = browser.open("/me").await;
        let found = page.split("/dashboard/me/sessions/").skip(1);
        found
            .filter_map(|rest| Some(rest.split_once("/end")?.0.to_owned()))
            .filter(|id| id.len() == 64)
            .collect::<Vec<_>>()
    };
    assert_eq!(others(&browser).await.len(), 2);
    // Another's session can't be ended.
    let (eve, ..) = join(&world, &world.key, "eve@example.com", Role::Owner).await;
    eve.post(&format!("/me/sessions/{}/end", session_id(&phone)), &[]).await;
    phone.open("").await;
    let page = laptop.post(&format!("/me/sessions/{}/end", session_id(&phone)), &[]).await;
    assert_eq!(page.leads(), "/dashboard/me?done=sessions_ended");
    assert_eq!(others(&laptop).await, [session_id(&browser)]);
    laptop.post("/me/sessions/others/end", &[]).await;
    assert_eq!(others(&laptop).await.len(), 0);
    for ended in [&browser, &phone] {
        assert_eq!(ended.get("").await.status, StatusCode::UNAUTHORIZED);
    }

    // Signing in again ends the session that the browser had.
    let before = laptop.cookie.clone();
    sign_in(&mut laptop, &passkey).await;
    let now = std::mem::replace(&mut laptop.cookie, before);
    assert_eq!(laptop.get("").await.status, StatusCode::UNAUTHORIZED);
    laptop.cookie = now;
    let age = async |age: TimeDelta| {
        sqlx::query("update sessions set last_used_at = $1 where org_id = $2")
            .bind(Utc::now() - age)
            .bind(world.owner.org.0)
            .execute(&world.db)
            .await
            .unwrap();
    };
    age(TimeDelta::minutes(119)).await;
    // A request by which a page updates itself is no use.
    let poll = laptop.http.get(format!("{}/dashboard", laptop.origin)).header(header::COOKIE, &laptop.cookie);
    assert_eq!(poll.header("sec-fetch-mode", "cors").send().await.unwrap().status(), StatusCode::OK);
    let used = async || {
        let used: (bool,) = sqlx::query_as(
            "select last_used_at > now() - interval '1 minute' from sessions where org_id = $1 and last_used_at is not null
             order by created_at desc limit 1",
        )
        .bind(world.owner.org.0)
        .fetch_one(&world.db)
        .await
        .unwrap();
        used.0
    };
    assert!(!used().await);
    laptop.open("").await;
    assert!(used().await, "opening a page is a use");
    age(TimeDelta::minutes(121)).await;
    assert_eq!(laptop.get("").await.status, StatusCode::UNAUTHORIZED);
    sign_in(&mut browser, &passkey).await;
    sqlx::query("update sessions set expires_at = now() where org_id = $1")
        .bind(world.owner.org.0)
        .execute(&world.db)
        .await
        .unwrap();
    assert_eq!(browser.get("").await.status, StatusCode::UNAUTHORIZED, "twelve hours are over");
}

/// The id of a browser's session: the digest of its cookie.
fn session_id(browser: &Browser) -> String {
    let (_, token) = browser.cookie.split_once('=').unwrap();
    hex::encode(digest::digest(&digest::SHA256, token.as_bytes()))
}

#[tokio::test]
async fn keys_tell_which_member_created_them() {
    let world = world().start().await;
    let (ada, _, _) = join(&world, &world.key, "ada@example.com", Role::Owner).await;
    ada.post("/keys", &[("name", "Robot"), ("scope", "posts:read")]).await;
    let keys = world.get("/api-keys").await;
    let robot = keys["data"].as_array().unwrap().iter().find(|key| key["name"] == "Robot").unwrap();
    assert_eq!(robot["created_by"], "ada@example.com");
    let body = json!({ "name": "by API", "scopes": ["posts:read"] });
    assert_eq!(world.call(Method::POST, "/api-keys", Some(&body)).await.1["created_by"], Value::Null);
    assert!(ada.open("/keys").await.contains("by ada@example.com"));
}

#[tokio::test]
async fn what_was_being_written_survives_the_end_of_a_session() {
    let world = world().start().await;
    let mut browser = Browser::signed_in(&world).await;
    let cookie = std::mem::take(&mut browser.cookie);
    let form = [("text", "A long & <careful> text"), ("is_draft", "true"), ("action", "preview")];
    let page = browser.post("/compose", &form).await;
    assert!(page.status == StatusCode::UNAUTHORIZED && page.text.contains("what you have written is kept"));
    let kept = page.text.split_once(r#"name="kept" value=""#).unwrap().1.split_once('"').unwrap().0;
    let kept = kept.replace("&#38;", "&").replace("&amp;", "&");
    browser.cookie = cookie;
    // A wrong key first.
    let page = browser.post("/sign-in", &[("key", "sk_test_wrong"), ("kept", &kept)]).await;
    assert!(page.status == StatusCode::UNAUTHORIZED && page.text.contains("A+long"), "{}", page.text);
    let page = browser.post("/sign-in", &[("key", &world.key), ("kept", &kept)]).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("A long &#38; &#60;careful&#62; text"), "{}", page.text);
    assert!(page.headers.contains_key(header::SET_COOKIE));
}

#[tokio::test]
async fn the_dashboard_counts_like_the_api() {
    let limits = json!({
        "webhooks": { "limit": 3, "window": 86_400 }, "dashboard": { "limit": 5, "window": 86_400 },
    });
    let world = world().set("FANFARE_RATE_LIMITS", &limits.to_string()).start().await;
    let browser = Browser::signed_in(&world).await;
    for _ in 0..3 {
        assert_eq!(browser.post("/webhooks", &[("url", "nonsense")]).await.status, StatusCode::BAD_REQUEST);
    }
    let page = browser.post("/webhooks", &[("url", "nonsense")]).await;
    assert!(page.status == StatusCode::TOO_MANY_REQUESTS && page.text.contains("Rate limit exceeded"));
    let body = json!({ "url": "nonsense", "events": ["*"] });
    fail(request(&world, Method::POST, "/webhooks").json(&body), 429, "rate_limited").await;
    let mut opened = 0;
    while browser.get("/usage").await.status == StatusCode::OK {
        opened += 1;
        assert!(opened <= 5, "more pages than the limit");
    }
    world.get("/posts").await;
}

#[tokio::test]
async fn two_installations_on_one_host_do_not_sign_each_other_out() {
    let (one, other) = (world().start().await, world().set("FANFARE_IDLE_TIMEOUT", "70").start().await);
    assert_ne!(one.base, other.base);
    let (one, other) = (Browser::signed_in(&one).await, Browser::signed_in(&other).await);
    let name = |browser: &Browser| browser.cookie.split_once('=').unwrap().0.to_owned();
    assert_ne!(name(&one), name(&other));
    assert!(name(&one).starts_with("fanfare-"));
}

#[tokio::test]
async fn a_refused_key_is_recorded_where_it_is_known() {
    let world = world().start().await;
    let mut browser = Browser::new(&world);
    let text = key(&world, world.owner, &[Scope::All]).await;
    let keys = world.get("/api-keys").await;
    let id = keys["data"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(world.call(Method::DELETE, &format!("/api-keys/{id}"), None).await.0, StatusCode::OK);
    assert_eq!(browser.sign_in(&text).await.status, StatusCode::UNAUTHORIZED);
    browser.sign_in("sk_test_unknown").await;
    let entries = world.get("/account/audit?action=session.refused").await;
    let [entry] = &entries["data"].as_array().unwrap()[..] else { panic!("one entry: {entries}") };
    assert_eq!((&entry["object_id"], &entry["address"]), (&json!(id), &json!("127.0.0.1")));
}

#[tokio::test]
async fn an_operator_invites_the_first_owner() {
    let world = world().start().await;
    let url = tests::database_url(&PROGRAM).await;
    let base = "https://fanfare.example/api/v1";
    let run = |command: &[&str]| {
        let output = Command::new(*PROGRAM)
            .args(command)
            .args(["--database-url", &url, "--base-url", base])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let printed = run(&["org", "create", "Acme", "--owner", "ada@example.com"]);
    let invitation = printed.lines().find_map(|line| line.strip_prefix("invitation   ")).unwrap();
    assert!(invitation.starts_with("https://fanfare.example/dashboard/invite/"), "{printed}");
    let org = printed.lines().next().unwrap().strip_prefix("organization ").unwrap();
    let printed = run(&["org", "invite", org, "bob@example.com"]);
    assert!(printed.starts_with("https://fanfare.example/dashboard/invite/"), "{printed}");
    drop(world);
}

#[tokio::test]
async fn an_operator_invites_the_only_owner_again_who_lost_their_passkey() {
    let world = world().start().await;
    let org = world.owner.org.to_string();
    let live = live_key(&world).await;
    let (mut ada, lost, id) = join(&world, &live, "ada@example.com", Role::Owner).await;
    ada.open("").await;
    let invite = async |arguments: &[&str]| {
        let output = world.command(&[&["org", "invite", &org][..], arguments].concat()).await;
        (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let (is_done, said) = invite(&["ada@example.com"]).await;
    assert!(!is_done && said.contains("in the team already") && said.contains("--again"), "{said}");
    let (is_done, said) = invite(&["eve@example.com", "--again"]).await;
    assert!(!is_done && said.contains("no member"), "{said}");

    let (is_done, url) = invite(&["Ada@example.com", "--again"]).await;
    assert!(is_done, "{url}");
    assert_eq!(ada.get("").await.status, StatusCode::UNAUTHORIZED, "the session has ended");
    let page = sign_in(&mut ada, &lost).await;
    assert!(page.status == StatusCode::UNAUTHORIZED && page.text.contains("not known here"), "{}", page.text);
    let team = world.get("/team").await;
    let member = &team["data"][0];
    let found = ["id", "status", "role", "name", "joined_at"].map(|name| member[name].clone());
    assert_eq!(found, [json!(id), json!("invited"), json!("owner"), Value::Null, Value::Null], "{team}");
    let entry = world.get("/account/audit?action=member.invited&limit=1").await["data"][0].clone();
    assert_eq!(
        (&entry["actor"], &entry["object_id"], &entry["details"]),
        (
            &json!("operator"),
            &json!(id),
            &json!({ "email": "ada@example.com", "role": "owner", "again": true })
        )
    );
    // Once more, because the address was lost: the first one does not count any more.
    let (_, second) = invite(&["ada@example.com", "--again", "--role", "admin"]).await;
    let first = url.trim().split_once("/dashboard").unwrap().1;
    assert_eq!(Browser::new(&world).get(first).await.status, StatusCode::NOT_FOUND);
    let (ada, _) = accept(&world, second.trim(), "Ada").await;
    assert!(ada.open("").await.contains("Ada, admin"));
}

#[tokio::test]
async fn logins_and_acceptances_side_by_side_make_one_person_one_member() {
    let db = database().await;
    let org = organizations::create(&db, "Acme").await.unwrap();
    let owner = Owner { org, mode: Mode::Live };
    for email in ["bob@example.com", "bob@work.example"] {
        team::invite(&db, owner, email, Role::Viewer, None, &Actor::OPERATOR, now()).await.unwrap();
    }
    let (issuer, subject) = ("https://sso.example".to_owned(), "7".to_owned());
    let identity =
        people::Identity { issuer, subject, email: Some("bob@example.com".to_owned()), name: None };
    let [invited] = &people::invitations(&db, &identity, now()).await.unwrap()[..] else {
        panic!("one invitation")
    };
    let join = || {
        let (db, identity, member) = (db.clone(), identity.clone(), invited.member);
        tokio::spawn(async move {
            people::join_with(&db, &identity, member, &Actor::OPERATOR, now()).await.unwrap()
        })
    };
    let sign_in =
        async || people::sign_in_with(&db, &identity, &Actor::OPERATOR, now()).await.unwrap().unwrap();
    let joined = async |token: String| match sessions::find(&db, &token, true, now()).await.unwrap() {
        Some(sessions::Session { holder: sessions::Holder::Member(member), .. }) => {
            (member.person.0, member.email)
        }
        other => panic!("{other:?}"),
    };
    // A first acceptance with the identity has not committed yet when another one of the organization begins.
    let person = Uuid::now_v7();
    let mut first = store::begin(&db).await.unwrap();
    sqlx::query("insert into people values ($1, now())").bind(person).execute(&mut *first).await.unwrap();
    sqlx::query("insert into identities values ('https://sso.example', '7', $1, now())")
        .bind(person)
        .execute(&mut *first)
        .await
        .unwrap();
    let second = join();
    until_waiting(&db, 1).await;
    sqlx::query(
        "update members set person_id = $1, status = 'active', joined_at = now() where email = 'bob@work.example'",
    )
    .bind(person)
    .execute(&mut *first)
    .await
    .unwrap();
    first.commit().await.unwrap();
    let member = (person, "bob@work.example".to_owned());
    assert_eq!(second.await.unwrap(), None, "they are a member already");
    assert_eq!(joined(sign_in().await).await, member);

    // Nor has one of a person who is known.
    sqlx::query("update members set person_id = null, status = 'invited'").execute(&db).await.unwrap();
    let mut acceptance = store::begin(&db).await.unwrap();
    sqlx::query(
        "update members set person_id = $1, status = 'active', joined_at = now() where email = 'bob@work.example'",
    )
    .bind(person)
    .execute(&mut *acceptance)
    .await
    .unwrap();
    let second = join();
    until_waiting(&db, 1).await;
    acceptance.commit().await.unwrap();
    assert_eq!(second.await.unwrap(), None);
    assert_eq!(joined(sign_in().await).await, member);
}
