//! Logins, as people and their browsers do them: on a platform, and on the dashboard.

use crate::{PATIENCE, World, now};
use domain::PersonId;
use reqwest::{Client, Method, Response, StatusCode, header, redirect::Policy};
use serde_json::{Value, json};
use std::{collections::HashMap, time::Instant};
use store::people::{self, Acceptance, Invitee, audit::Actor, passkeys::NewPasskey};
use url::Url;
use uuid::Uuid;

/// The client's redirect URI.
pub const BACK: &str = "http://localhost:3000/done?from=fanfare";
/// The error of a login that no worker finished in time.
const UNFINISHED: &str = "the service could not finish the login; start again";

/// Returns a browser that does not follow redirects.
pub fn browser() -> Client {
    Client::builder().redirect(Policy::none()).build().expect("a client")
}

/// Returns the target of a redirect.
pub fn location(response: &Response) -> Url {
    assert_eq!(response.status(), StatusCode::FOUND, "{response:?}");
    response.headers()[header::LOCATION].to_str().expect("text").parse().expect("a URL")
}

/// Returns the query parameters of a URL.
pub fn parameters(url: &Url) -> HashMap<String, String> {
    url.query_pairs().into_owned().collect()
}

/// Returns the query parameters of a redirect to the client.
pub fn reported(url: &Url) -> HashMap<String, String> {
    assert!(url.as_str().starts_with(BACK), "{url}");
    parameters(url)
}

/// Begins a login and returns the platform's authorization URL.
pub async fn begin(world: &World, platform: &str, body: Value) -> Url {
    let path = format!("/social-networks/{platform}/auth-url");
    let (status, answer) = world.call(Method::POST, &path, Some(&body)).await;
    assert_eq!(status, StatusCode::OK, "{platform}: {answer}");
    answer["auth_url"].as_str().expect("an authorization URL").parse().expect("a URL")
}

/// Submits the consent form and returns the redirect; None if the platform does not know the username.
pub async fn decide(asked: &Url, username: &str, decision: &str) -> Option<Url> {
    let page = browser().get(asked.clone()).send().await.expect("an answer");
    assert_eq!(page.status(), StatusCode::OK, "{asked}");
    assert!(page.text().await.expect("a page").contains("<form"), "{asked}");
    let mut form: Vec<_> = asked.query_pairs().into_owned().collect();
    form.push(("username".to_owned(), username.to_owned()));
    form.push(("decision".to_owned(), decision.to_owned()));
    let decided = browser().post(asked.clone()).form(&form).send().await.expect("an answer");
    (decided.status() != StatusCode::BAD_REQUEST).then(|| location(&decided))
}

/// Begins a login and allows it, and returns the redirect to the callback.
pub async fn consented(world: &World, platform: &str, username: &str) -> Url {
    let asked = begin(world, platform, json!({ "redirect_uri": BACK })).await;
    decide(&asked, username, "allow").await.expect("the platform knows the username")
}

/// Requests the callback URL.
pub async fn arrive(back: &Url) -> Response {
    browser().get(back.clone()).send().await.expect("an answer")
}

/// Performs a whole login and returns the parameters of the redirect to the client. Starts again, as the user is told to,
/// if no worker finished it in time, as happens on a busy machine.
pub async fn walk(world: &World, platform: &str, username: &str, mut body: Value) -> HashMap<String, String> {
    body["redirect_uri"] = json!(BACK);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let asked = begin(world, platform, body.clone()).await;
        let back = decide(&asked, username, "allow").await.expect("the platform knows the username");
        let reported = reported(&location(&arrive(&back).await));
        let is_late = reported.get("error_description").is_some_and(|text| text == UNFINISHED);
        if !is_late || Instant::now() > deadline {
            return reported;
        }
    }
}

/// Performs a login that connects one account, and returns the account's id.
pub async fn joined(world: &World, platform: &str, username: &str, body: Value) -> String {
    let reported = walk(world, platform, username, body).await;
    assert_eq!(reported["status"], "connected", "{platform}: {reported:?}");
    reported["account_ids"].clone()
}

/// Performs a login that covers several accounts, and returns the token of the pending login.
pub async fn several(world: &World, platform: &str, username: &str) -> String {
    let reported = walk(world, platform, username, json!({ "tenant_id": "t-1" })).await;
    assert_eq!(
        (reported["status"].as_str(), reported["tenant_id"].as_str()),
        ("pending", "t-1"),
        "{reported:?}"
    );
    reported["token"].clone()
}

/// Signs in to the dashboard with the world's key, and returns the session's cookie as `name=value`.
pub async fn sign_in(world: &World) -> String {
    sign_in_at(&world.base, &world.key).await
}

/// Signs in to the dashboard of an API with a key, and returns the session's cookie as `name=value`.
pub async fn sign_in_at(base: &str, key: &str) -> String {
    let origin = base.trim_end_matches("/api/v1");
    let request = browser().post(format!("{origin}/dashboard/sign-in")).form(&[("key", key)]);
    let request = request.header(header::ORIGIN, origin).header("sec-fetch-site", "same-origin");
    let entered = request.send().await.expect("an answer");
    assert_eq!(entered.status(), StatusCode::SEE_OTHER, "{entered:?}");
    let cookie = entered.headers()[header::SET_COOKIE].to_str().expect("text");
    cookie.split(';').next().expect("a cookie").to_owned()
}

/// Accepts an invitation as a new person, whose passkey can't sign in again, and returns the cookie of the session. `like`
/// is the cookie of another session of the service.
pub async fn join(world: &World, invite_url: &str, like: &str) -> String {
    let token = invite_url.rsplit('/').next().expect("a token");
    let passkey = NewPasskey {
        credential_id: Uuid::new_v4().as_bytes().to_vec(),
        static_state: Vec::new(),
        dynamic_state: Vec::new(),
        name: "Passkey".to_owned(),
    };
    let person = Invitee::New(PersonId(Uuid::now_v7()), passkey);
    let accepted = people::accept(&world.db, token, person, "Somebody", &Actor::OPERATOR, now()).await;
    let Ok(Acceptance::Joined(session)) = accepted else { panic!("{invite_url}: {accepted:?}") };
    let (name, _) = like.split_once('=').expect("a cookie");
    format!("{name}={session}")
}
