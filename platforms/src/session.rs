//! One account's calls to its platform: HTTP, credentials, classification.
//!
//! Adapters use the platform's real URLs. In test mode the origin is replaced here and nowhere
//! else: `https://api.x.com/2/tweets` becomes `{sandbox}/api.x.com/2/tweets`. Every reply is
//! classified here too, so that an adapter only ever sees success or a [`Failure`].

use crate::{
    Result,
    checkpoint::{Checkpoint, Checkpoints},
    classify,
    platform::Platform,
    reply::Reply,
    secrets::Secrets,
    versions::{self, Month},
};
use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{App, ErrorCode, Failure, Grant, Media, ip_ranges::AllowedRanges};
use futures::{Stream, StreamExt, stream};
use reqwest::{Body, Client, Method, Request, RequestBuilder, header::CONTENT_TYPE, multipart::Form};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fmt,
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use telemetry::trace;
use tracing::warn;
use url::Url;

/// Time limit of a call, including the response. Every activity's start-to-close timeout is longer, so that
/// no abandoned call is still in flight when the next attempt looks up its effect.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Minimum upload speed, in bytes a second: a large body gets more time than [`TIMEOUT`].
const MIN_UPLOAD_BYTES_PER_SECOND: u64 = 64 * 1024;

/// Returns the time limit of a call with a body of `length` bytes.
pub(crate) fn timeout_for(length: u64) -> Duration {
    TIMEOUT + Duration::from_secs(length / MIN_UPLOAD_BYTES_PER_SECOND)
}

/// Maximum size of a response: a server chosen by a user may send anything.
const MAX_RESPONSE_BYTES: usize = 8 << 20;

/// Chunk size of a streamed upload.
const STREAM_CHUNK_BYTES: u64 = 1 << 20;

/// HTTP client for the platforms, or for a sandbox in their place.
#[derive(Clone, Debug)]
pub struct Transport {
    client: Client,
    sandbox: Option<Url>,
    /// Addresses that are allowed in addition to public ones.
    allowed: AllowedRanges,
    observer: Option<Arc<dyn Observer>>,
    /// Forms of calls that the platform was seen to know, by [`Forms::key`]: for all calls of the process.
    known_forms: Arc<Mutex<BTreeMap<&'static str, String>>>,
}

/// The forms of a call in different versions of a platform's API. A form that the platform does not know is followed by
/// the next; the one that it knows is named first from then on.
pub(crate) struct Forms {
    /// Key under which the form that the platform knows is remembered.
    pub(crate) key: &'static str,
    /// Their names, the most likely first.
    pub(crate) names: Vec<String>,
    /// Gives a request the form with this name.
    pub(crate) apply: fn(&mut Request, &str),
    /// True for a refusal of the form alone, so that nothing was done.
    pub(crate) is_unknown: fn(&Reply) -> bool,
}

/// Sees the replies to an adapter's calls.
pub trait Observer: fmt::Debug + Send + Sync {
    /// Takes a reply to a call of the platform's own URL, whose query is left out; secrets are masked.
    fn observe(&self, method: &str, address: &str, reply: &Reply);
}

impl Transport {
    /// Creates a transport to the real platforms.
    ///
    /// # Errors
    ///
    /// When no TLS provider is installed in this process.
    pub fn real() -> reqwest::Result<Self> {
        Self::real_within(AllowedRanges::default())
    }

    /// Creates a transport to the real platforms and to ranges that the operator added, where a user's own server
    /// may be.
    ///
    /// # Errors
    ///
    /// When no TLS provider is installed in this process.
    pub fn real_within(allowed: AllowedRanges) -> reqwest::Result<Self> {
        let client = egress::filtered(allowed.clone()).https_only(true).build()?;
        Ok(Self { client, sandbox: None, allowed, observer: None, known_forms: Arc::default() })
    }

    /// Creates a transport to the sandbox at this URL.
    ///
    /// # Errors
    ///
    /// When no TLS provider is installed in this process.
    pub fn sandbox(at: Url) -> reqwest::Result<Self> {
        let client = egress::unfiltered().build()?;
        let allowed = AllowedRanges::default();
        Ok(Self { client, sandbox: Some(at), allowed, observer: None, known_forms: Arc::default() })
    }

    /// Returns the same transport with an observer of all replies.
    #[must_use]
    pub fn observed_by(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Returns the same transport, whose calls to LinkedIn name this version of its API first.
    #[must_use]
    pub fn with_linkedin_version(self, version: Option<Month>) -> Self {
        let known = version.map(|version| (versions::LINKEDIN, version.to_string()));
        Self { known_forms: Arc::new(Mutex::new(known.into_iter().collect())), ..self }
    }

    fn known_forms(&self) -> MutexGuard<'_, BTreeMap<&'static str, String>> {
        self.known_forms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the same transport to another address of the sandbox; a transport to the real platforms is
    /// unchanged.
    pub fn toward(&self, at: Url) -> Self {
        Self { sandbox: self.sandbox.as_ref().map(|_| at), ..self.clone() }
    }

    /// Returns a client for connections that are upgraded, which only HTTP/1.1 allows.
    pub(crate) fn upgradable(&self) -> reqwest::Result<Client> {
        let client = match &self.sandbox {
            None => egress::filtered(self.allowed.clone()).https_only(true),
            Some(_) => egress::unfiltered(),
        };
        egress::http1_only(client).build()
    }

    /// Returns the URL to call for a platform's URL.
    pub fn rewrite_url(&self, address: &str) -> String {
        match &self.sandbox {
            None => address.to_owned(),
            // A URL returned by the sandbox is left unchanged.
            Some(sandbox) if is_below(sandbox, address) => address.to_owned(),
            Some(sandbox) => in_sandbox(sandbox, address),
        }
    }

    /// Returns the platform's URL for one that is called, without its query.
    fn platform_url(&self, address: &str) -> String {
        let address = address.split(['?', '#']).next().unwrap_or_default();
        match &self.sandbox {
            Some(sandbox) if is_below(sandbox, address) => {
                let rest = &address[sandbox.as_str().trim_end_matches('/').len()..];
                format!("https://{}", rest.trim_start_matches('/'))
            }
            _ => address.to_owned(),
        }
    }
}

/// Returns true if a URL is already one of the sandbox.
fn is_below(sandbox: &Url, address: &str) -> bool {
    let rest = address.strip_prefix(sandbox.as_str().trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the sandbox's URL for a platform's URL: the host becomes the first segment of the path.
pub fn in_sandbox(sandbox: &Url, address: &str) -> String {
    let rest = address.strip_prefix("https://").unwrap_or(address);
    format!("{}/{rest}", sandbox.as_str().trim_end_matches('/'))
}

/// The account that a session acts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The platform's id.
    pub network_unique_id: String,
    /// Handle.
    pub username: String,
    /// Type, for example `profile` or `page`.
    pub account_type: String,
}

/// Source of media bytes.
#[async_trait]
pub trait MediaStore: Send + Sync {
    /// Returns the bytes of a range of at most a few MiB.
    async fn read(&self, media: &Media, range: Range<u64>) -> Result<Bytes>;

    /// Returns a signed, expiring URL for platforms that fetch media themselves, ending with the file's
    /// name.
    async fn address(&self, media: &Media) -> Result<Url>;
}

/// One account's calls to its platform.
#[derive(Clone)]
pub struct Session<'a> {
    /// The platform.
    pub platform: &'static dyn Platform,
    /// The account.
    pub account: &'a Account,
    /// The account's grant.
    pub grant: &'a Grant,
    /// The app that received the grant, if the platform has apps.
    pub app: Option<&'a App>,
    /// The clock.
    pub now: fn() -> DateTime<Utc>,
    /// Transport.
    pub transport: &'a Transport,
    /// Storage of checkpoints.
    pub checkpoints: &'a dyn Checkpoints,
    /// Source of media bytes.
    pub media: Arc<dyn MediaStore>,
    /// Difference of the platform's clock, as its replies tell it.
    pub skew: Arc<ClockSkew>,
}

/// The difference between a platform's clock and ours, in seconds, by the date of its last reply.
#[derive(Debug, Default)]
pub struct ClockSkew(AtomicI64);

impl ClockSkew {
    fn record(&self, reply: &Reply) {
        if let Some(date) = classify::date(reply) {
            self.0.store((reply.at - date).num_seconds(), Ordering::Relaxed);
        }
    }

    /// Returns the time by which our clock is ahead.
    pub(crate) fn ahead(&self) -> TimeDelta {
        TimeDelta::seconds(self.0.load(Ordering::Relaxed))
    }
}

impl Session<'_> {
    /// Returns a GET request.
    pub fn get(&self, address: impl AsRef<str>) -> Call {
        self.call(Method::GET, address.as_ref())
    }

    /// Returns a POST request.
    pub fn post(&self, address: impl AsRef<str>) -> Call {
        self.call(Method::POST, address.as_ref())
    }

    /// Returns a PATCH request.
    pub fn patch(&self, address: impl AsRef<str>) -> Call {
        self.call(Method::PATCH, address.as_ref())
    }

    /// Returns a PUT request.
    pub fn put(&self, address: impl AsRef<str>) -> Call {
        self.call(Method::PUT, address.as_ref())
    }

    /// Returns a DELETE request.
    pub fn delete(&self, address: impl AsRef<str>) -> Call {
        self.call(Method::DELETE, address.as_ref())
    }

    /// Persists the step of `prepare`.
    ///
    /// # Errors
    ///
    /// When it could not be stored; the next attempt then repeats the step.
    pub async fn save(&self, step: &impl Serialize) -> Result<()> {
        self.checkpoints.save(&Checkpoint::of(step)).await
    }

    /// Returns a range of a medium's bytes.
    ///
    /// # Errors
    ///
    /// When they can't be read.
    pub async fn read(&self, media: &Media, range: Range<u64>) -> Result<Bytes> {
        self.media.read(media, range).await
    }

    /// Tells the post's owner about a part of a live post that differs from what was asked for.
    ///
    /// # Errors
    ///
    /// When it can't be stored.
    pub async fn note(&self, message: &str) -> Result<()> {
        self.checkpoints.note(message).await
    }

    /// Returns true if something new may be published for the post, such as a crosspost of it.
    ///
    /// # Errors
    ///
    /// When it can't be read.
    pub(crate) async fn may_publish(&self) -> Result<bool> {
        self.checkpoints.may_publish().await
    }

    /// Streams all bytes of a medium, so that memory does not grow with the file.
    pub fn stream(&self, media: &Media) -> impl Stream<Item = Result<Bytes>> + Send + 'static {
        self.slice(media, 0..media.size_bytes)
    }

    /// Streams a range of a medium's bytes.
    pub fn slice(
        &self,
        media: &Media,
        range: Range<u64>,
    ) -> impl Stream<Item = Result<Bytes>> + Send + 'static {
        let (store, media) = (self.media.clone(), media.clone());
        let end = range.end;
        stream::iter(range.step_by(STREAM_CHUNK_BYTES as usize)).then(move |start| {
            let (store, media) = (store.clone(), media.clone());
            async move { store.read(&media, start..(start + STREAM_CHUNK_BYTES).min(end)).await }
        })
    }

    /// Tells the owner of a live video that it lacks a part, as [`Self::note_refusal_of`] does.
    ///
    /// # Errors
    ///
    /// The same.
    pub(crate) async fn note_refusal(
        &self,
        answer: Result<()>,
        part: &str,
        advice: &str,
        is_last: bool,
    ) -> Result<()> {
        self.note_refusal_of("video", answer, part, advice, is_last).await
    }

    /// Tells the owner of a live post, which the message calls `what`, that it lacks a part, and ignores the failure, if
    /// it is permanent, lasts a day, or `is_last`. The advice follows a 403.
    ///
    /// # Errors
    ///
    /// Any other failure, and one to store the message.
    pub(crate) async fn note_refusal_of(
        &self,
        what: &str,
        answer: Result<()>,
        part: &str,
        advice: &str,
        is_last: bool,
    ) -> Result<()> {
        match answer {
            Err(failure)
                if is_last || failure.code.is_permanent() || failure.code == ErrorCode::RateLimited =>
            {
                let advice = if failure.code == ErrorCode::Rejected(403) { advice } else { "" };
                let said = failure.message.trim_end_matches('.');
                self.note(&format!("The {what} is live without {part}: {said}{advice}")).await
            }
            answer => answer,
        }
    }

    /// Returns the session's secrets: its tokens, its app password and the secret of its app.
    fn secrets(&self) -> Secrets {
        let grant = self.grant;
        let app = self.app.and_then(|app| app.client_secret.as_deref());
        let mut secrets = Secrets::default();
        let all =
            [Some(&*grant.access_token), grant.refresh_token(), grant.extra["app_password"].as_str(), app];
        all.into_iter().flatten().for_each(|secret| secrets.add(secret));
        secrets
    }

    fn call(&self, method: Method, address: &str) -> Call {
        let url = self.transport.rewrite_url(address);
        let observer = self.transport.observer.as_ref();
        Call {
            observed: observer.map(|observer| Observed {
                observer: observer.clone(),
                method: method.clone(),
                address: self.transport.platform_url(address),
            }),
            http: self.transport.client.request(method, url).timeout(TIMEOUT),
            platform: self.platform,
            authorization: Some(bearer(&self.grant.access_token)),
            has_grant: true,
            secrets: self.secrets(),
            now: self.now,
            skew: self.skew.clone(),
            transport: self.transport.clone(),
            forms: None,
        }
    }
}

/// A request under construction.
#[must_use = "a call does nothing until it is sent"]
pub struct Call {
    http: RequestBuilder,
    platform: &'static dyn Platform,
    authorization: Option<String>,
    /// False if it has nothing of the account's grant.
    has_grant: bool,
    /// Masked in the reply.
    secrets: Secrets,
    now: fn() -> DateTime<Utc>,
    skew: Arc<ClockSkew>,
    transport: Transport,
    forms: Option<Forms>,
    observed: Option<Observed>,
}

/// A call that an observer sees.
struct Observed {
    observer: Arc<dyn Observer>,
    method: Method,
    address: String,
}

impl Call {
    /// Adds query parameters.
    pub fn query(mut self, query: &(impl Serialize + ?Sized)) -> Self {
        self.http = self.http.query(query);
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.http = self.http.header(name, value.as_ref());
        self
    }

    /// Sends JSON.
    pub fn json(mut self, body: &(impl Serialize + ?Sized)) -> Self {
        self.http = self.http.json(body);
        self
    }

    /// Sends a form.
    pub fn form(mut self, body: &(impl Serialize + ?Sized)) -> Self {
        self.http = self.http.form(body);
        self
    }

    /// Sends a multipart form.
    pub fn multipart(mut self, form: Form) -> Self {
        self.http = self.http.multipart(form);
        self
    }

    /// Sends bytes.
    pub fn bytes(mut self, mime: &str, body: Bytes) -> Self {
        self.http = self.http.header(CONTENT_TYPE, mime).body(body);
        self
    }

    /// Streams `length` bytes, and extends the time limit for the minimum upload speed.
    pub fn upload(
        mut self,
        mime: &str,
        length: u64,
        body: impl Stream<Item = Result<Bytes>> + Send + 'static,
    ) -> Self {
        self.http = self
            .http
            .header(CONTENT_TYPE, mime)
            .header(reqwest::header::CONTENT_LENGTH, length)
            .body(Body::wrap_stream(body))
            .timeout(timeout_for(length));
        self
    }

    /// Extends the time limit for a body of this length at the minimum upload speed.
    pub fn timeout_for_body(mut self, length: u64) -> Self {
        self.http = self.http.timeout(timeout_for(length));
        self
    }

    /// Authorizes with another bearer token than the grant's access token.
    pub fn bearer(mut self, token: &str) -> Self {
        self.authorization = Some(bearer(token));
        self.hiding(token)
    }

    /// Masks a secret of the request in the reply, in addition to those of the session.
    pub fn hiding(mut self, secret: &str) -> Self {
        self.secrets.add(secret);
        self
    }

    /// Authorizes with the app's own credentials (RFC 7617).
    pub fn basic(mut self, user: &str, password: &str) -> Self {
        self.authorization = None;
        self.http = self.http.basic_auth(user, Some(password));
        self
    }

    /// Sends nothing of the account's grant: to an address with a token of its own, to public data, or to another service
    /// with a token for that, which [`Call::bearer`] adds. A refusal says nothing of the grant.
    pub fn without_grant(mut self) -> Self {
        self.has_grant = false;
        self.authorized_otherwise()
    }

    /// Repeats it in another form while the platform does not know the form. A streamed body is sent once.
    pub(crate) fn in_forms(mut self, forms: Forms) -> Self {
        self.forms = Some(forms);
        self
    }

    /// Authorizes by the query, the body or another header.
    pub fn authorized_otherwise(mut self) -> Self {
        self.authorization = None;
        self
    }

    /// Sends it and parses the response.
    ///
    /// # Errors
    ///
    /// Any reply that is not a success, classified. A 2xx with an invalid body is ambiguous: only a look-up
    /// shows its effect.
    pub async fn send<T: DeserializeOwned>(self) -> Result<T> {
        self.reply().await?.read()
    }

    /// Sends it and parses the response, which contains tokens.
    ///
    /// # Errors
    ///
    /// As [`Call::send`].
    pub async fn send_for_secrets<T: DeserializeOwned>(self) -> Result<T> {
        self.reply().await?.read_secrets()
    }

    /// Sends it and ignores the body of a success.
    ///
    /// # Errors
    ///
    /// Any reply that is no success, classified.
    pub async fn send_ok(self) -> Result<()> {
        self.reply().await.map(drop)
    }

    /// Sends a deletion; a missing object (404) is a success.
    ///
    /// # Errors
    ///
    /// Any other reply that is no success, classified.
    pub async fn delete_ok(self) -> Result<()> {
        match self.send_ok().await {
            Err(failure) if failure.code == ErrorCode::Rejected(404) => Ok(()),
            answer => answer,
        }
    }

    /// Sends it and returns the whole reply of a success.
    ///
    /// # Errors
    ///
    /// Any reply that is no success, classified.
    pub async fn reply(self) -> Result<Reply> {
        let platform = self.platform;
        self.send_raw().await?.into_result(platform)
    }

    /// Sends it and returns the reply with any status, for calls whose errors the adapter interprets.
    ///
    /// # Errors
    ///
    /// Only when there is no reply, or it is too long.
    pub async fn send_raw(self) -> Result<Reply> {
        let Self { http, platform, authorization, has_grant, secrets, now, skew, transport, forms, observed } =
            self;
        let http = match authorization {
            Some(value) => http.header(reqwest::header::AUTHORIZATION, value),
            None => http,
        };
        let (client, request) = http.build_split();
        let mut request = request.map_err(network_failure)?;
        let exchange = Exchange { client, has_grant, secrets, now, skew, observed };
        let Some(forms) = forms else { return exchange.send(request).await };
        let known = transport.known_forms().get(forms.key).cloned();
        let others = forms.names.iter().filter(|name| known.as_ref() != Some(*name));
        let names: Vec<&String> = known.iter().chain(others).collect();
        let is_known = |name: &str| names.first().is_some_and(|first| *first == name);
        for (index, name) in names.iter().enumerate() {
            let next = request.try_clone().filter(|_| index + 1 < names.len());
            (forms.apply)(&mut request, name);
            let reply = exchange.send(request).await?;
            match next {
                Some(next) if (forms.is_unknown)(&reply) => request = next,
                _ => {
                    if !is_known(name) && reply.status.is_success() {
                        warn!("{} knows {name}, and no more {}", platform.name(), names[0]);
                        transport.known_forms().insert(forms.key, (*name).clone());
                    }
                    return Ok(reply);
                }
            }
        }
        Err(Failure::network("a call without a form", false))
    }
}

/// The parts of a call that each of its requests needs.
struct Exchange {
    client: Client,
    has_grant: bool,
    secrets: Secrets,
    now: fn() -> DateTime<Utc>,
    skew: Arc<ClockSkew>,
    observed: Option<Observed>,
}

impl Exchange {
    /// Sends a request and reads the reply.
    async fn send(&self, request: Request) -> Result<Reply> {
        // The span has no path or query, which may hold secrets, and the request no `traceparent`: platforms have no
        // part in the trace.
        let (method, host) =
            (request.method().clone(), request.url().host_str().unwrap_or_default().to_owned());
        let attributes = [("http.request.method", method.as_str()), ("server.address", &host)];
        let sent = async {
            let answer = self.client.execute(request).await;
            match &answer {
                Ok(answer) => {
                    let status = answer.status();
                    trace::note_number("http.response.status_code", status.as_u16().into());
                    // As OpenTelemetry's conventions for clients say.
                    if status.is_client_error() || status.is_server_error() {
                        trace::fail(status.as_str().to_owned());
                    }
                }
                Err(_) => trace::fail("network_error"),
            }
            answer
        };
        let mut answer = trace::call(method.as_str(), &attributes, sent).await.map_err(network_failure)?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut bytes = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(network_failure)? {
            if bytes.len() + piece.len() > MAX_RESPONSE_BYTES {
                let most = MAX_RESPONSE_BYTES >> 20;
                return Err(Failure::upstream(502, format!("answered {status} with more than {most} MiB")));
            }
            bytes.extend_from_slice(&piece);
        }
        let body = serde_json::from_slice(&bytes).map_or(Value::Null, without_nul);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let reply = Reply::new(status, headers, body, text, (self.now)(), self.secrets.clone());
        let reply = Reply { has_grant: self.has_grant, ..reply };
        self.skew.record(&reply);
        if let Some(Observed { observer, method, address }) = &self.observed {
            observer.observe(method.as_str(), address, &reply);
        }
        Ok(reply)
    }
}

/// Returns a document without U+0000, which Postgres does not store: U+FFFD replaces it.
fn without_nul(document: Value) -> Value {
    let clean = |text: String| if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
    match document {
        Value::String(text) => Value::String(clean(text)),
        Value::Array(items) => items.into_iter().map(without_nul).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (clean(name), without_nul(value))).collect()
        }
        other => other,
    }
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// Returns a request that got no reply. Without a connection nothing was sent; any
/// other error may have come after the platform had read the request. A file that can't be sent, whatever is tried, is
/// not the network's failure.
fn network_failure(error: reqwest::Error) -> Failure {
    let sent = !(error.is_connect() || error.is_builder());
    // The URL may contain a token, so the message omits it.
    let error = error.without_url();
    let mut message = error.to_string();
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(&error);
    while let Some(inner) = cause {
        match inner.downcast_ref::<Failure>() {
            Some(unread) if unread.code.is_permanent() => return unread.clone(),
            // A part of the body was not read: the failure of its store says more than that of the connection.
            Some(unread) => return Failure::network(&unread.message, sent),
            None => message = format!("{message}: {inner}"),
        }
        cause = inner.source();
    }
    Failure::network(message, sent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn a_users_server_may_be_in_a_range_that_the_operator_added() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        for (scheme, allowed, is_reached) in [
            ("https", AllowedRanges::default(), false),
            ("https", AllowedRanges::loopback(), true),
            ("http", AllowedRanges::loopback(), false),
        ] {
            let transport = Transport::real_within(allowed).expect("a transport");
            let call = transport.client.get(format!("{scheme}://localhost:{port}/xrpc")).send();
            let was_reached = tokio::select! {
                accepted = listener.accept() => accepted.is_ok(),
                ended = call => ended.is_ok(),
            };
            assert_eq!(was_reached, is_reached, "{scheme}");
        }
    }

    #[test]
    fn a_document_is_stored_without_the_character_that_postgres_refuses() {
        let found = without_nul(json!({ "a\0": ["b\0c", 1, null, { "d": "\0" }] }));
        assert_eq!(found, json!({ "a\u{fffd}": ["b\u{fffd}c", 1, null, { "d": "\u{fffd}" }] }));
    }
}
