//! An OpenID provider.

use super::{Proven, rounds};
use crate::PROGRAM;
use regex::Regex;
use reqwest::{Client, Method, Response, StatusCode, header, redirect::Policy};
use serde_json::json;
use std::collections::BTreeMap;
use tests::{
    World,
    browser::{Browser, Page},
    network::Port,
    packages::Packages,
};
use url::Url;

/// Secret of the client at the provider.
const SECRET: &str = "of the client, 32 characters long";

/// A person's browser at the provider.
struct Visitor {
    http: Client,
    cookies: BTreeMap<String, String>,
}

impl Visitor {
    fn new() -> Self {
        let http = Client::builder().redirect(Policy::none()).build().unwrap();
        Self { http, cookies: BTreeMap::new() }
    }

    async fn send(&mut self, url: &Url, form: Option<&[(&str, &str)]>) -> Response {
        let request = match form {
            Some(form) => self.http.post(url.clone()).form(form),
            None => self.http.get(url.clone()),
        };
        let cookies: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let answer = request.header(header::COOKIE, cookies.join("; ")).send().await.unwrap();
        for cookie in answer.headers().get_all(header::SET_COOKIE) {
            let pair = cookie.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        answer
    }

    /// Signs in at the provider and consents, and returns where the browser goes then.
    async fn consent(&mut self, begun: &Page) -> String {
        let mut url = Url::parse(begun.leads()).unwrap();
        let origin = url.origin();
        let [action, prompt] =
            [r#"action="([^"]+)""#, r#"name="prompt" value="([^"]+)""#].map(|part| Regex::new(part).unwrap());
        let mut answer = self.send(&url, None).await;
        for _ in 0..20 {
            if let Some(location) = answer.headers().get(header::LOCATION) {
                url = url.join(location.to_str().unwrap()).unwrap();
                if url.origin() != origin {
                    return url.to_string();
                }
                answer = self.send(&url, None).await;
                continue;
            }
            let (status, page) = (answer.status(), answer.text().await.unwrap());
            let found = |part: &Regex| {
                let found = part.captures(&page).unwrap_or_else(|| panic!("{url}: {status} {page}"));
                found[1].replace("&amp;", "&")
            };
            let target = url.join(&found(&action)).unwrap();
            let asked = found(&prompt);
            answer =
                self.send(&target, Some(&[("prompt", &asked), ("login", "ada"), ("password", "any")])).await;
            url = target;
        }
        panic!("the provider sends its visitor in circles")
    }
}

/// Returns the path below the dashboard's of an address.
fn path(address: &str) -> &str {
    address.split_once("/dashboard").unwrap().1
}

/// Begins to sign in.
async fn begin(world: &World) -> (Browser, Page) {
    let mut browser = Browser::new(world);
    let page = browser.get("/sign-in/openid").await;
    browser.cookie = page.cookies();
    (browser, page)
}

/// Kills and stops the provider in the middle of signing in.
pub(super) async fn prove(packages: &Packages) -> Proven {
    let port = Port::reserve();
    let number = port.address.port().to_string();
    let world = World::of(&PROGRAM)
        .set("FANFARE_OIDC_ISSUER", &format!("http://{}", port.address))
        .set("FANFARE_OIDC_CLIENT_ID", "fanfare")
        .set("FANFARE_OIDC_CLIENT_SECRET", SECRET)
        .start()
        .await;
    let invitation = json!({ "email": "ada@example.com", "role": "viewer" });
    assert_eq!(world.call(Method::POST, "/team", Some(&invitation)).await.0, StatusCode::CREATED);
    let mut signed_in = 0;
    // Nobody listens yet.
    let (_, page) = begin(&world).await;
    is_told_to_come_again(&page);
    // The service tells where it wants the person to be sent back to.
    let any = packages.start("provider.mjs", &[&number, "http://localhost/any"]).await;
    let asked = Url::parse(begin(&world).await.1.leads()).unwrap();
    let (_, redirect) = asked.query_pairs().find(|(name, _)| name == "redirect_uri").unwrap();
    any.kill().await;
    let start = async || packages.start("provider.mjs", &[&number, &redirect]).await;
    let mut provider = start().await;
    for _ in 0..rounds() {
        // It is killed when it has sent the person back, and forgets what it issued.
        let (browser, page) = begin(&world).await;
        let back = Visitor::new().consent(&page).await;
        provider.kill().await;
        is_told_to_come_again(&browser.get(path(&back)).await);
        provider = start().await;
        let page = browser.get(path(&back)).await;
        assert_eq!(page.status, StatusCode::UNAUTHORIZED, "a code that it has forgotten: {}", page.text);

        // It does not answer for a while.
        let (browser, page) = begin(&world).await;
        let back = Visitor::new().consent(&page).await;
        provider.pause();
        let arriving = async { browser.get(path(&back)).await };
        let meanwhile = async {
            // Meanwhile others are answered.
            let other = Browser::signed_in(&world).await;
            other.open("").await;
            provider.resume();
        };
        let (page, ()) = tokio::join!(arriving, meanwhile);
        if page.status == StatusCode::SERVICE_UNAVAILABLE {
            is_told_to_come_again(&page);
        } else {
            signed_in += enter(browser, page).await;
        }
        let (browser, page) = begin(&world).await;
        let back = Visitor::new().consent(&page).await;
        let page = browser.get(path(&back)).await;
        signed_in += enter(browser, page).await;
    }
    let team = world.get("/team").await;
    let members: Vec<_> = team["data"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(members, ["active"], "one person joined once: {team}");
    Proven {
        program: "OpenID provider (`oidc-provider`)",
        kills: rounds(),
        stops: rounds(),
        things: format!("one person joined once, and signed in {signed_in} times"),
    }
}

/// Checks that a page says that the provider is away.
fn is_told_to_come_again(page: &Page) {
    assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE, "{}", page.text);
    let words = ["sign in again", "can&#39;t be used now"];
    assert!(words.iter().any(|words| page.text.contains(words)), "{}", page.text);
}

/// Joins the organization if the page offers it, and checks that the person is signed in.
async fn enter(mut browser: Browser, page: Page) -> usize {
    browser.cookie = page.cookies();
    if page.status == StatusCode::OK {
        let (_, member) = page.text.split_once("name=\"member\" value=\"").expect("an invitation");
        let joined =
            browser.post("/sign-in/openid/join", &[("member", member.split('"').next().unwrap())]).await;
        browser.cookie = joined.cookies();
    }
    assert!(browser.open("").await.contains(", viewer"));
    1
}
