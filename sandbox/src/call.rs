//! A request as a platform sees it, and what it answers.
//!
//! By the time a platform is asked, the body has been read and large bytes have been put away, so
//! that answering is one synchronous step: nothing can come between a check and what it protects.

use super::{fault::Fault, files::Upload};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use poem::http::{HeaderMap, Method, StatusCode};
use serde_json::Value;
use std::time::Duration;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// How a body is taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intake {
    /// Whole, in memory, up to this many bytes.
    Whole(usize),
    /// Whole, up to this many bytes, as a JSON object whose texts are fields.
    Members(usize),
    /// As an upload of raw bytes.
    Bytes,
    /// As a multipart form, whose part of this name, or of one of several between bars, is an upload.
    Form(&'static str),
}

/// A medium that a request named by its address.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// The address.
    pub(crate) address: String,
    /// What stood there, or why nothing could be had.
    pub(crate) upload: Result<Upload, String>,
}

/// One request.
#[derive(Debug)]
pub(crate) struct Call {
    /// The method.
    pub(crate) method: Method,
    /// The platform's host that was meant; empty where the sandbox itself was addressed.
    pub(crate) host: String,
    /// The path on that host, percent-decoded.
    pub(crate) path: String,
    /// The query, in order.
    pub(crate) query: Vec<(String, String)>,
    /// The headers.
    pub(crate) headers: HeaderMap,
    /// The body, or what is small enough of a form.
    pub(crate) body: Bytes,
    /// The text fields of a form, multipart or not.
    pub(crate) fields: Vec<(String, String)>,
    /// The bytes that came with it.
    pub(crate) upload: Option<Upload>,
    /// What the platform fetched for it.
    pub(crate) fetched: Vec<Fetched>,
    /// Whether the body was larger than the intake allows; it was read to its end and forgotten.
    pub(crate) is_too_large: bool,
    /// Where it came from.
    pub(crate) peer: String,
}

impl Call {
    /// A query parameter.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        first(&self.query, name)
    }

    /// All values of a query parameter that may be repeated.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> + 'a {
        self.query
            .iter()
            .filter(move |(key, _)| key == name || key.strip_suffix("[]") == Some(name))
            .map(|(_, value)| value.as_str())
    }

    /// A form field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        first(&self.fields, name)
    }

    /// What stood at an address that the request named.
    pub(crate) fn at(&self, address: &str) -> Option<&Upload> {
        let fetched = self.fetched.iter().find(|fetched| fetched.address == address)?;
        fetched.upload.as_ref().ok()
    }

    /// A header, as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The media type of the body, without parameters.
    pub(crate) fn mime(&self) -> Option<&str> {
        self.header("content-type")?.split(';').next().map(str::trim)
    }

    /// The path's segments.
    pub(crate) fn segments(&self) -> Vec<&str> {
        self.path.split('/').filter(|segment| !segment.is_empty()).collect()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }

    /// The bearer token.
    pub(crate) fn bearer(&self) -> Option<&str> {
        let (scheme, token) = self.header("authorization")?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    }

    /// User and password of basic authorization (RFC 7617).
    pub(crate) fn basic(&self) -> Option<(String, String)> {
        let (scheme, credentials) = self.header("authorization")?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let credentials = String::from_utf8(BASE64_STANDARD.decode(credentials.trim()).ok()?).ok()?;
        let (user, password) = credentials.split_once(':')?;
        Some((user.to_owned(), password.to_owned()))
    }
}

fn first<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// The one message of a WebSocket.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// What is said; `None` where nothing ever is.
    pub(crate) body: Option<Value>,
    /// When, from now.
    pub(crate) after: Duration,
}

/// What a platform answers, and what it did.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: StatusCode,
    /// Further headers.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The media type of the body.
    pub(crate) mime: &'static str,
    /// The body.
    pub(crate) body: Bytes,
    /// The posts that came into being by it.
    pub(crate) published: Vec<String>,
    /// The fault that was asked for and takes place.
    pub(crate) fault: Option<Box<Fault>>,
    /// What is said over the connection once it has become a WebSocket.
    pub(crate) socket: Option<Box<Message>>,
    /// Whether it is a page for people and so none of the journal's business.
    pub(crate) is_page: bool,
}

impl Answer {
    /// A JSON body.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::bytes(status, "application/json; charset=utf-8", body.to_string().into())
    }

    /// A body of any kind.
    pub(crate) fn bytes(status: u16, mime: &'static str, body: Bytes) -> Self {
        let status = StatusCode::from_u16(status).expect("a documented status");
        Self {
            status,
            headers: Vec::new(),
            mime,
            body,
            published: Vec::new(),
            fault: None,
            socket: None,
            is_page: false,
        }
    }

    /// No body.
    pub(crate) fn empty(status: u16) -> Self {
        Self::bytes(status, "", Bytes::new())
    }

    /// A page for people.
    pub(crate) fn page(status: u16, html: String) -> Self {
        Self { is_page: true, ..Self::bytes(status, "text/html; charset=utf-8", html.into()) }
    }

    /// Sends a browser elsewhere.
    pub(crate) fn redirect(to: &str) -> Self {
        Self { is_page: true, ..Self::empty(302) }.with("location", to)
    }

    /// Turns the connection into a WebSocket (RFC 6455, section 4.2.2), or tells why not.
    pub(crate) fn socket(call: &Call, message: Message) -> Self {
        let is_asked = call.header("upgrade").is_some_and(|value| value.eq_ignore_ascii_case("websocket"));
        match call.header("sec-websocket-key").filter(|_| is_asked) {
            None => Self::empty(426).with("upgrade", "websocket"),
            Some(key) => Self { socket: Some(Box::new(message)), is_page: true, ..Self::empty(101) }
                .with("upgrade", "websocket")
                .with("connection", "Upgrade")
                .with("sec-websocket-accept", derive_accept_key(key.as_bytes())),
        }
    }

    /// No answer at all, because of a fault.
    pub(crate) fn silence(fault: Fault) -> Self {
        Self { fault: Some(Box::new(fault)), ..Self::empty(500) }
    }

    /// Adds a header.
    pub(crate) fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    /// Says what came into being.
    pub(crate) fn publishing(mut self, id: impl Into<String>) -> Self {
        self.published.push(id.into());
        self
    }

    /// Says which fault takes place.
    pub(crate) fn because(mut self, fault: impl Into<Option<Fault>>) -> Self {
        self.fault = fault.into().map(Box::new);
        self
    }
}
