//! Replies of platforms, in which secrets are masked.
//!
//! A reply says nothing of success or failure: [`crate::classify`] reads that from it, with the platform's help.

use crate::{Result, secrets::Secrets};
use chrono::{DateTime, Utc};
use domain::Failure;
use reqwest::{StatusCode, header::HeaderMap};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;

/// A platform's response.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as JSON, with secrets masked; `null` if it is not JSON.
    pub body: Value,
    /// The body as text, with secrets masked.
    pub text: String,
    /// When it was received.
    pub at: DateTime<Utc>,
    /// False if its call had nothing of the account's grant.
    pub(crate) has_grant: bool,
    /// The body with its secrets, if it has some.
    pub(crate) unmasked: Option<Unmasked>,
}

/// A body with secrets. Prints as `***`.
#[derive(Clone)]
pub(crate) struct Unmasked(Value);

impl fmt::Debug for Unmasked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Reply {
    /// Returns a reply in which these secrets, and the tokens that it contains itself, are masked.
    pub(crate) fn new(
        status: StatusCode,
        headers: HeaderMap,
        mut body: Value,
        mut text: String,
        at: DateTime<Utc>,
        mut secrets: Secrets,
    ) -> Self {
        secrets.add_tokens(&body);
        let mut unmasked = None;
        if secrets.are_in(&text) {
            unmasked = Some(Unmasked(body.clone()));
            secrets.mask(&mut text);
            secrets.mask_document(&mut body);
        }
        Self { status, headers, body, text, at, has_grant: true, unmasked }
    }

    /// Returns a reply for tests, at a fixed time.
    #[cfg(test)]
    pub(crate) fn of(status: u16, headers: &[(&'static str, &str)], text: &str) -> Self {
        let headers = headers.iter().map(|(name, value)| {
            (reqwest::header::HeaderName::from_static(name), value.parse().expect("a header of a test"))
        });
        let status = StatusCode::from_u16(status).expect("a status of a test");
        let body = serde_json::from_str(text).unwrap_or(Value::Null);
        let at = DateTime::from_timestamp(1_800_000_000, 0).expect("a moment of a test");
        Self::new(status, headers.collect(), body, text.to_owned(), at, Secrets::default())
    }

    /// True for the refusal by a page of an edge or a proxy in between, such as a challenge to browsers: APIs refuse in
    /// JSON, and storage in XML. It says nothing of the content, of an object or of the grant, unless the request is too
    /// large for the edge, which it is at each try (RFC 9110, section 15.5.14; Pinterest's answers 413 with a page). A
    /// throttled call stays one.
    pub(crate) fn is_block(&self) -> bool {
        let is_refusal =
            matches!(self.status.as_u16(), 400..=407 | 409..=412 | 415..=424 | 426..=428 | 430 | 432..=499);
        is_refusal && self.is_page()
    }

    /// True for HTML, by its type or its beginning.
    fn is_page(&self) -> bool {
        if self.body.is_object() || self.body.is_array() {
            return false;
        }
        let mut text = self.text.trim_start_matches('\u{feff}').trim_start();
        while let Some((_, rest)) = text.strip_prefix("<!--").and_then(|comment| comment.split_once("-->")) {
            text = rest.trim_start();
        }
        let is_html = self.header("content-type").is_some_and(|mime| mime.starts_with("text/html"));
        let begins =
            |page: &str| text.get(..page.len()).is_some_and(|start| start.eq_ignore_ascii_case(page));
        text.starts_with('<') && (is_html || begins("<!doctype html") || begins("<html"))
    }

    /// Returns the body as `T`, which is an object; an empty body reads as `null`.
    ///
    /// # Errors
    ///
    /// An ambiguous failure when the body does not match `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        // Serde would read `[]` as an object without members, such as a list without posts.
        if self.body.is_array() {
            return Err(self.unreadable("it is a list"));
        }
        serde_json::from_value(self.body.clone()).map_err(|error| self.unreadable(error))
    }

    /// Returns the body as a list.
    ///
    /// # Errors
    ///
    /// As [`Reply::read`].
    pub(crate) fn read_list<T: DeserializeOwned>(&self) -> Result<Vec<T>> {
        serde_json::from_value(self.body.clone()).map_err(|error| self.unreadable(error))
    }

    /// Returns the body as `T`, with its tokens.
    ///
    /// # Errors
    ///
    /// As [`Reply::read`], without quoting the body.
    pub fn read_secrets<T: DeserializeOwned>(&self) -> Result<T> {
        let body = self.unmasked.as_ref().map_or(&self.body, |unmasked| &unmasked.0);
        if body.is_array() {
            return Err(self.unreadable("it is a list"));
        }
        serde_json::from_value(body.clone())
            .map_err(|_| self.unreadable("a member is missing, or of another type"))
    }

    fn unreadable(&self, why: impl fmt::Display) -> Failure {
        let status = self.status.as_u16();
        Failure::upstream(502, format!("answered {status} with a body that can't be read: {why}"))
    }

    /// Returns a header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize)]
    struct Posts {
        #[serde(default)]
        posts: Vec<Value>,
    }

    #[derive(Deserialize)]
    struct Tokens {
        access_token: String,
    }

    fn reply_with(secret: &str, status: u16, text: &str) -> Reply {
        let Reply { status, headers, at, .. } = Reply::of(status, &[], "");
        let mut secrets = Secrets::default();
        secrets.add(secret);
        Reply::new(
            status,
            headers,
            serde_json::from_str(text).unwrap_or_default(),
            text.to_owned(),
            at,
            secrets,
        )
    }

    #[test]
    fn secrets_are_masked_wherever_a_reply_repeats_them() {
        let secret = "an access token of the request";
        let body = json!({ "error": { "message": format!("bad token {secret}") }, "list": [secret] });
        let reply = reply_with(secret, 400, &body.to_string());
        let expected = json!({ "error": { "message": "bad token ***" }, "list": ["***"] });
        assert_eq!((&reply.body, reply.text.contains(secret)), (&expected, false));
        assert_eq!(classify::message(&reply), "bad token ***");
        assert_eq!(
            classify::message(&reply_with(secret, 502, &format!("<p>{secret}"))),
            "HTTP 502 Bad Gateway: <p>***"
        );
        assert!(!format!("{reply:?}").contains(secret));

        let issued = json!({ "access_token": "a token that is new to us" }).to_string();
        let reply = reply_with("", 200, &issued);
        assert_eq!(reply.body, json!({ "access_token": "***" }));
        assert_eq!(reply.read_secrets::<Tokens>().unwrap().access_token, "a token that is new to us");
        let failure = reply.read_secrets::<u8>().unwrap_err();
        assert!(failure.is_ambiguous() && !failure.message.contains("new to us"), "{failure}");
        // Too short to be told from ordinary text.
        assert_eq!(reply_with("ordinary", 400, "ordinary").text, "ordinary");
    }

    #[test]
    fn a_list_is_not_an_object_without_members() {
        for text in ["[]", "[[]]", "null", "", "7", "<html>"] {
            let failure = Reply::of(200, &[], text).read::<Posts>().unwrap_err();
            assert!(failure.is_ambiguous(), "{text}: {failure}");
        }
        assert!(Reply::of(200, &[], "{}").read::<Posts>().unwrap().posts.is_empty());
    }
}
