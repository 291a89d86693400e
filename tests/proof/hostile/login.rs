//! Logins, as a platform's user and a browser do them.

use reqwest::{Client, Method, StatusCode, header, redirect::Policy};
use serde_json::json;
use std::collections::HashMap;
use tests::World;
use url::Url;

/// The client's redirect URI.
const BACK: &str = "http://localhost:3000/done";

fn browser() -> Client {
    Client::builder().redirect(Policy::none()).build().unwrap()
}

/// Returns the authorization URL of a platform.
pub(crate) async fn begin(world: &World, platform: &str) -> Url {
    let path = format!("/social-networks/{platform}/auth-url");
    let body = json!({ "redirect_uri": BACK });
    let (status, answer) = world.call(Method::POST, &path, Some(&body)).await;
    assert_eq!(status, StatusCode::OK, "{platform}: {answer}");
    answer["auth_url"].as_str().unwrap().parse().unwrap()
}

/// Allows an authorization, and returns where the platform sends the browser.
pub(crate) async fn consented(world: &World, platform: &str, username: &str) -> Url {
    let asked = begin(world, platform).await;
    let mut form: Vec<_> = asked.query_pairs().into_owned().collect();
    form.extend([("username", username), ("decision", "allow")].map(|(n, v)| (n.to_owned(), v.to_owned())));
    let decided = browser().post(asked).form(&form).send().await.unwrap();
    decided.headers()[header::LOCATION].to_str().unwrap().parse().unwrap()
}

/// Opens the callback, and returns the status and the parameters of the redirect to the client.
pub(crate) async fn arrive(back: &Url) -> (StatusCode, HashMap<String, String>) {
    let response = browser().get(back.clone()).send().await.unwrap();
    let status = response.status();
    let location =
        response.headers().get(header::LOCATION).map(|to| to.to_str().unwrap().parse::<Url>().unwrap());
    (status, location.map(|to| to.query_pairs().into_owned().collect()).unwrap_or_default())
}

/// Makes a login that covers several accounts, and returns the token of the pending choice.
pub(crate) async fn several(world: &World, platform: &str, username: &str) -> String {
    let (_, told) = arrive(&consented(world, platform, username).await).await;
    assert_eq!(told.get("status").map(String::as_str), Some("pending"), "{told:?}");
    told["token"].clone()
}

/// Returns a query parameter.
pub(crate) fn parameter(url: &Url, name: &str) -> String {
    url.query_pairs().find(|(known, _)| known == name).unwrap().1.into_owned()
}
