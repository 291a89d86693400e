//! A browser of the dashboard's pages, for the tests that use them.

use crate::{World, if_right, wait_until};
use reqwest::{Client, StatusCode, header, redirect::Policy};

/// A browser without scripts.
pub struct Browser {
    /// Client that follows no redirects.
    pub http: Client,
    /// Origin of the pages.
    pub origin: String,
    /// Cookies that it sends, as a header has them.
    pub cookie: String,
}

/// A response: a page or a redirect.
pub struct Page {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: header::HeaderMap,
    /// Text.
    pub text: String,
}

impl Browser {
    /// Returns a browser without cookies.
    pub fn new(world: &World) -> Self {
        let http = Client::builder().redirect(Policy::none()).build().expect("a client");
        let origin = world.base.trim_end_matches("/api/v1").to_owned();
        Self { http, origin, cookie: String::new() }
    }

    /// Returns a browser that is signed in with the world's key.
    pub async fn signed_in(world: &World) -> Self {
        let mut browser = Self::new(world);
        let page = browser.sign_in(&world.key).await;
        assert_eq!(page.status, StatusCode::SEE_OTHER, "{}", page.text);
        browser
    }

    /// Signs in with a key.
    pub async fn sign_in(&mut self, key: &str) -> Page {
        let page = self.post("/sign-in", &[("key", key)]).await;
        self.keep(&page);
        page
    }

    /// Keeps the cookie of a page.
    pub fn keep(&mut self, page: &Page) {
        if let Some(cookie) = page.headers.get(header::SET_COOKIE) {
            let cookie = cookie.to_str().expect("text");
            cookie.split(';').next().unwrap_or_default().clone_into(&mut self.cookie);
        }
    }

    /// Opens a page of the dashboard.
    pub async fn get(&self, path: &str) -> Page {
        let request = self.http.get(format!("{}/dashboard{path}", self.origin));
        Page::of(request.header(header::COOKIE, &self.cookie)).await
    }

    /// Returns the text of a page that must be 200.
    pub async fn open(&self, path: &str) -> String {
        let page = self.get(path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}: {}", page.text);
        page.text
    }

    /// Sends a form of the dashboard.
    pub async fn post(&self, path: &str, form: &[(&str, &str)]) -> Page {
        let request = self.http.post(format!("{}/dashboard{path}", self.origin)).form(form);
        let request = request.header(header::COOKIE, &self.cookie);
        Page::of(request.header(header::ORIGIN, &self.origin).header("sec-fetch-site", "same-origin")).await
    }

    /// Waits until a page contains `words`.
    pub async fn until(&self, path: &str, words: &str) -> String {
        let what = format!("{words} at {path}");
        wait_until(&what, async || if_right(self.open(path).await, |page| page.contains(words))).await
    }
}

impl Page {
    /// Sends a request, and returns its answer.
    pub async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.expect("an answer");
        let (status, headers) = (response.status(), response.headers().clone());
        Self { status, headers, text: response.text().await.expect("text") }
    }

    /// Returns the cookies that the page sets, as a browser sends them back.
    pub fn cookies(&self) -> String {
        let set = self.headers.get_all(header::SET_COOKIE).iter();
        let pairs = set.map(|cookie| cookie.to_str().expect("text").split(';').next().unwrap_or_default());
        pairs.collect::<Vec<_>>().join("; ")
    }

    /// Returns the location of a redirect.
    pub fn leads(&self) -> &str {
        assert_eq!(self.status, StatusCode::SEE_OTHER, "{}", self.text);
        self.headers[header::LOCATION].to_str().expect("text")
    }

    /// Returns the text of the element that holds a secret.
    pub fn secret(&self) -> &str {
        let (_, rest) = self.text.split_once("<code class=\"secret\"").expect("the page shows a secret");
        let (_, rest) = rest.split_once('>').expect("an element");
        rest.split_once('<').expect("an element").0
    }
}
