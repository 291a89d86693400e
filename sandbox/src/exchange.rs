//! A request as a simulator sees it, and its response.
//!
//! The body has been read and large uploads have been stored before a simulator is called, so that it
//! responds in one synchronous step: nothing can happen between a check and the change that it protects.

use super::{fault::Fault, files::Upload};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use poem::http::{HeaderMap, Method, StatusCode};
use serde_json::Value;
use std::time::Duration;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// Parsing mode of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyMode {
    /// In memory, up to this many bytes.
    Buffered(usize),
    /// In memory, up to this many bytes, as a JSON object whose text members become fields.
    JsonFields(usize),
    /// As an upload of raw bytes.
    Upload,
    /// As a multipart form, whose part of this name is an upload; several names are separated by bars.
    Multipart(&'static str),
}

/// A medium that a request gave by its address.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) address: String,
    /// The fetched bytes, or why fetching failed.
    pub(crate) upload: Result<Upload, String>,
}

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// The platform's host; empty when the client uses the sandbox as the platform.
    pub(crate) host: String,
    /// The path on that host, percent-decoded.
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    /// The body, unless it is an upload.
    pub(crate) body: Bytes,
    /// The text fields of a form, multipart or not.
    pub(crate) fields: Vec<(String, String)>,
    /// The uploaded bytes.
    pub(crate) upload: Option<Upload>,
    /// Media that were fetched for it.
    pub(crate) fetched: Vec<Fetched>,
    /// True when the body was larger than its mode allows; it was read to its end and dropped.
    pub(crate) is_too_large: bool,
    /// IP address of the client.
    pub(crate) peer: String,
}

impl Request {
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        first(&self.query, name)
    }

    /// Returns all values of a query parameter that may be repeated.
    pub(crate) fn query_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> + 'a {
        self.query
            .iter()
            .filter(move |(key, _)| key == name || key.strip_suffix("[]") == Some(name))
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        first(&self.fields, name)
    }

    /// Returns the file fetched from a URL.
    pub(crate) fn fetched(&self, address: &str) -> Option<&Upload> {
        let fetched = self.fetched.iter().find(|fetched| fetched.address == address)?;
        fetched.upload.as_ref().ok()
    }

    /// Returns a header, as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the media type of the body, without parameters.
    pub(crate) fn mime(&self) -> Option<&str> {
        self.header("content-type")?.split(';').next().map(str::trim)
    }

    /// Returns the path's segments.
    pub(crate) fn segments(&self) -> Vec<&str> {
        self.path.split('/').filter(|segment| !segment.is_empty()).collect()
    }

    pub(crate) fn json(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }

    /// Returns whether a text of a form or of a JSON body has a control character. Platforms refuse these, or drop them
    /// without a word; here each is refused. White space is what people type.
    pub(crate) fn has_control_characters(&self) -> bool {
        fn is_wrong(text: &str) -> bool {
            text.contains(|c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r'))
        }
        fn has_wrong(value: &Value) -> bool {
            match value {
                Value::String(text) => is_wrong(text),
                Value::Array(items) => items.iter().any(has_wrong),
                Value::Object(members) => members.values().any(has_wrong),
                _ => false,
            }
        }
        self.fields.iter().any(|(_, text)| is_wrong(text)) || self.json().is_ok_and(|body| has_wrong(&body))
    }

    pub(crate) fn bearer(&self) -> Option<&str> {
        let (scheme, token) = self.header("authorization")?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    }

    /// Returns user and password of basic authorization (RFC 7617).
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

/// Returns the value of the first pair with this name.
pub(crate) fn first<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// The only message of a WebSocket.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// Body; `None` for a socket that stays silent.
    pub(crate) body: Option<Value>,
    /// Delay before it is sent.
    pub(crate) after: Duration,
}

/// Cause of a refusal. Every refusal names one, so that a new rule about content can't be overlooked: the suite of the
/// platforms publishes a sample for each [`Cause::Content`], and fails where the check lets it pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A rule about the content of a post: its text, media and settings. The key names the rule on its platform.
    Content(&'static str),
    /// The same, of a schema: the member and the constraint.
    Schema(String),
    /// The form of the request, which no author chooses: a missing parameter, a wrong content type, a number of a piece.
    Protocol,
    /// Everything else: credentials, permissions, quotas, the existence of objects, what an address leads to, the time, and
    /// faults on purpose.
    State,
}

impl Cause {
    /// Returns the key of a rule about content.
    fn rule(&self) -> Option<&str> {
        match self {
            Self::Content(key) => Some(key),
            Self::Schema(key) => Some(key),
            Self::Protocol | Self::State => None,
        }
    }
}

/// A response, or the response that refuses the request.
pub(crate) type Outcome = Result<Response, Response>;

/// A platform's response, and the effects of the request.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    /// Further headers.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The media type of the body.
    pub(crate) mime: &'static str,
    pub(crate) body: Bytes,
    /// Ids of the posts that the request published.
    pub(crate) published: Box<[String]>,
    /// Fault that applies to it.
    pub(crate) fault: Option<Box<Fault>>,
    /// Message to send once the connection is a WebSocket.
    pub(crate) socket: Option<Box<Message>>,
    /// True for pages for people, which the journal leaves out.
    pub(crate) is_page: bool,
    /// Cause of a refusal, or of a failure that it reports.
    pub(crate) cause: Option<Box<Cause>>,
}

impl Response {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::bytes(status, "application/json; charset=utf-8", body.to_string().into())
    }

    /// Creates a response with a body of any kind.
    pub(crate) fn bytes(status: u16, mime: &'static str, body: Bytes) -> Self {
        let status = StatusCode::from_u16(status).expect("a documented status");
        Self {
            status,
            headers: Vec::new(),
            mime,
            body,
            published: Box::default(),
            fault: None,
            socket: None,
            is_page: false,
            cause: None,
        }
    }

    /// Creates a response without a body.
    pub(crate) fn empty(status: u16) -> Self {
        Self::bytes(status, "", Bytes::new())
    }

    /// Creates a page for people.
    pub(crate) fn page(status: u16, html: String) -> Self {
        Self { is_page: true, ..Self::bytes(status, "text/html; charset=utf-8", html.into()) }
    }

    /// Redirects a browser.
    pub(crate) fn redirect(to: &str) -> Self {
        Self { is_page: true, ..Self::empty(302) }.with("location", to)
    }

    /// Upgrades the connection to a WebSocket (RFC 6455, section 4.2.2), or asks for the upgrade.
    pub(crate) fn socket(request: &Request, message: Message) -> Self {
        let is_asked = request.header("upgrade").is_some_and(|value| value.eq_ignore_ascii_case("websocket"));
        match request.header("sec-websocket-key").filter(|_| is_asked) {
            None => Self::empty(426).with("upgrade", "websocket"),
            Some(key) => Self { socket: Some(Box::new(message)), is_page: true, ..Self::empty(101) }
                .with("upgrade", "websocket")
                .with("connection", "Upgrade")
                .with("sec-websocket-accept", derive_accept_key(key.as_bytes())),
        }
    }

    /// Creates a response that is never sent, because of a fault.
    pub(crate) fn silence(fault: Fault) -> Self {
        Self { fault: Some(Box::new(fault)), ..Self::empty(500) }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    /// Names the cause of a refusal, or of a failure that the response reports.
    pub(crate) fn because(mut self, cause: impl Into<Option<Cause>>) -> Self {
        self.cause = cause.into().map(Box::new);
        self
    }

    /// Returns the rule about content that refused the request, or because of which processing failed.
    pub(crate) fn rule(&self) -> Option<&str> {
        self.cause.as_ref().and_then(|cause| cause.rule())
    }

    /// Adds a published post.
    pub(crate) fn with_post(mut self, id: impl Into<String>) -> Self {
        let mut all = std::mem::take(&mut self.published).into_vec();
        all.push(id.into());
        self.published = all.into();
        self
    }

    /// Sets the fault that applies.
    pub(crate) fn with_fault(mut self, fault: impl Into<Option<Fault>>) -> Self {
        self.fault = fault.into().map(Box::new);
        self
    }
}
