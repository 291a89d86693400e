//! A browser of the dashboard's pages, for the tests that use them.

use reqwest::{Client, StatusCode, header, redirect::Policy};
use tests::{World, if_right, wait_until};

/// A browser without scripts.
pub(crate) struct Browser {
    pub(crate) http: Client,
    pub(crate) origin: String,
    pub(crate) cookie: String,
}

/// A response: a page or a redirect.
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) headers: header::HeaderMap,
    pub(crate) text: String,
}

impl Browser {
    pub(crate) fn new(world: &World) -> Self {
        let http = Client::builder().redirect(Policy::none()).build().unwrap();
        let origin = world.base.trim_end_matches("/api/v1").to_owned();
        Self { http, origin, cookie: String::new() }
    }

    /// Returns a browser that is signed in with the world's key.
    pub(crate) async fn signed_in(world: &World) -> Self {
        let mut browser = Self::new(world);
        let page = browser.sign_in(&world.key).await;
        assert_eq!(page.status, StatusCode::SEE_OTHER, "{}", page.text);
        browser
    }

    pub(crate) async fn sign_in(&mut self, key: &str) -> Page {
        let page = self.post("/sign-in", &[("key", key)]).await;
        self.keep(&page);
        page
    }

    /// Keeps the cookie of a page.
    pub(crate) fn keep(&mut self, page: &Page) {
        if let Some(cookie) = page.headers.get(header::SET_COOKIE) {
            self.cookie = cookie.to_str().unwrap().split(';').next().unwrap().to_owned();
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Page {
        let request = self.http.get(format!("{}/dashboard{path}", self.origin));
        Page::of(request.header(header::COOKIE, &self.cookie)).await
    }

    /// Returns the text of a page that must be 200.
    pub(crate) async fn open(&self, path: &str) -> String {
        let page = self.get(path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}: {}", page.text);
        page.text
    }

    pub(crate) async fn post(&self, path: &str, form: &[(&str, &str)]) -> Page {
        let request = self.http.post(format!("{}/dashboard{path}", self.origin)).form(form);
        let request = request.header(header::COOKIE, &self.cookie);
        Page::of(request.header(header::ORIGIN, &self.origin).header("sec-fetch-site", "same-origin")).await
    }

    /// Waits until a page contains `words`.
    pub(crate) async fn until(&self, path: &str, words: &str) -> String {
        let what = format!("{words} at {path}");
        wait_until(&what, async || if_right(self.open(path).await, |page| page.contains(words))).await
    }
}

impl Page {
    pub(crate) async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        Self { status, headers, text: response.text().await.unwrap() }
    }

    /// Returns the location of a redirect.
    pub(crate) fn leads(&self) -> &str {
        assert_eq!(self.status, StatusCode::SEE_OTHER, "{}", self.text);
        self.headers[header::LOCATION].to_str().unwrap()
    }

    /// Returns the text of the element that holds a secret.
    pub(crate) fn secret(&self) -> &str {
        let (_, rest) = self.text.split_once("<code class=\"secret\"").expect("the page shows a secret");
        rest.split_once('>').unwrap().1.split_once('<').unwrap().0
    }
}
