//! What a caller is told when a call fails: problem documents (RFC 9457) and nothing else.
//!
//! The code decides the status, so that the two can't disagree. `detail` is for people and may change;
//! `code` and the issues' codes (those of Zod) are what a client may branch on.
//! <https://www.rfc-editor.org/rfc/rfc9457>

use crate::types::enum_string::EnumString;
use poem::{
    IntoResponse, Response,
    error::ResponseError,
    http::{HeaderName, HeaderValue, StatusCode, header},
};
use poem_openapi::{
    ApiResponse, Object, Union,
    registry::{MetaHeader, MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry},
    types::{MaybeUndefined, ToJSON, Type},
};
use serde_json::Value;
use std::{collections::BTreeMap, fmt};
use tracing::{error, warn};

/// The content type of a problem document.
const CONTENT_TYPE: &str = "application/problem+json";
/// The most issues of one problem.
pub(crate) const MAX_ISSUES: usize = 100;
/// The most characters of a text of the caller's that an issue repeats.
const MAX_QUOTE_LENGTH: usize = 64;
/// The most characters of an issue's message.
const MAX_MESSAGE_LENGTH: usize = 600;
/// The most steps of a path. No field that the document names lies deeper.
const MAX_PATH_LENGTH: usize = 12;
/// Seconds after which a call that found the database away may be repeated.
const RETRY_AFTER_SECONDS: u32 = 5;

domain::words! {
    /// Why a call failed.
    Code, "problem code" {
        /// The body or a parameter is wrong by itself.
        InvalidRequest = "invalid_request",
        /// The cursor was not made by this list for this caller.
        InvalidCursor = "invalid_cursor",
        /// Nobody registered an OAuth app for the platform.
        NoAppAvailable = "no_app_available",
        /// There is no valid key.
        Unauthorized = "unauthorized",
        /// The plan allows no more.
        QuotaExceeded = "quota_exceeded",
        /// The key lacks the scope.
        InsufficientScope = "insufficient_scope",
        /// The key may not do this.
        Forbidden = "forbidden",
        /// There is no such thing, or not for this caller.
        NotFound = "not_found",
        /// The path takes other methods.
        MethodNotAllowed = "method_not_allowed",
        /// The request did not arrive in time.
        RequestTimeout = "request_timeout",
        /// What exists stands against it.
        Conflict = "conflict",
        /// Publishing has begun, and what it publishes can't be changed any more.
        PublishingStarted = "publishing_started",
        /// The body is too large.
        PayloadTooLarge = "payload_too_large",
        /// What the body refers to is wrong.
        Unprocessable = "unprocessable",
        /// A medium is missing or not ready.
        MediaNotReady = "media_not_ready",
        /// An account is missing.
        AccountNotFound = "account_not_found",
        /// The platform knows no such login.
        InvalidCredentials = "invalid_credentials",
        /// A handle stands for several accounts.
        AmbiguousAccount = "ambiguous_account",
        /// No posting slot is open.
        NoOpenSlot = "no_open_slot",
        /// A platform would refuse the content.
        ContentRejected = "content_rejected",
        /// Too many calls.
        RateLimited = "rate_limited",
        /// A fault of ours.
        InternalError = "internal_error",
        /// Something we need is away for the moment.
        Unavailable = "unavailable",
    }
}

crate::types::enum_string::string_enum!(Code, "ProblemCode");

impl Code {
    /// The HTTP status that goes with it.
    pub fn status(self) -> StatusCode {
        match self {
            Self::InvalidRequest | Self::InvalidCursor | Self::NoAppAvailable => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::QuotaExceeded => StatusCode::PAYMENT_REQUIRED,
            Self::InsufficientScope | Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::Conflict | Self::PublishingStarted => StatusCode::CONFLICT,
            Self::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unprocessable
            | Self::MediaNotReady
            | Self::AccountNotFound
            | Self::InvalidCredentials
            | Self::AmbiguousAccount
            | Self::NoOpenSlot
            | Self::ContentRejected => StatusCode::UNPROCESSABLE_ENTITY,
            Self::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Self::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// A failed call.
#[derive(Debug)]
pub struct Problem {
    /// Why.
    pub code: Code,
    /// Why, for people.
    pub detail: String,
    /// Issues of single fields, at most [`MAX_ISSUES`]; empty where no field is at fault.
    pub issues: Vec<Issue>,
    is_cut: bool,
    quota: Option<Quota>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// What a quota is, and where a larger one can be had.
#[derive(Debug)]
struct Quota {
    limit: u64,
    used: u64,
    upgrade_url: Option<String>,
}

impl Problem {
    /// A problem of this kind.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { code, detail, issues: Vec::new(), is_cut: false, quota: None, headers: Vec::new() }
    }

    /// Says which fields are to blame.
    #[must_use]
    pub fn with_issues(self, issues: Vec<Issue>) -> Self {
        Self { issues, ..self }.with_at_most(MAX_ISSUES)
    }

    /// Lists no more issues than these many, and says so where there are more.
    #[must_use]
    pub(crate) fn with_at_most(mut self, most: usize) -> Self {
        if self.issues.len() > most {
            self.issues.truncate(most);
            if !self.is_cut {
                self.detail.push_str("; there are more errors than are listed");
            }
            self.is_cut = true;
        }
        self
    }

    /// Says which quota is used up.
    #[must_use]
    pub fn with_quota(self, limit: u64, used: u64, upgrade_url: Option<String>) -> Self {
        Self { quota: Some(Quota { limit, used, upgrade_url }), ..self }
    }

    /// The document that a caller is sent.
    pub(crate) fn document(self) -> Value {
        Document::from(self).to_json().unwrap_or_default()
    }

    /// Says when to come back.
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Self {
        self.with_header(header::RETRY_AFTER, seconds.into())
    }

    fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// A body that is wrong by itself.
    pub fn invalid_body(issues: Vec<Issue>) -> Self {
        // The one format that so many get wrong that its message goes into the detail.
        let detail = match &issues[..] {
            [issue] if issue.is_no_date_at("scheduled_at") => "scheduled_at must be an ISO 8601 timestamp",
            _ => "invalid request body",
        };
        Self::new(Code::InvalidRequest, detail).with_issues(issues)
    }

    /// Query parameters that are wrong by themselves.
    pub fn invalid_parameters(issues: Vec<Issue>) -> Self {
        Self::new(Code::InvalidRequest, "invalid request parameters").with_issues(issues)
    }

    /// No `Authorization` header, or one that is no bearer token.
    pub fn no_bearer() -> Self {
        Self::unauthorized("missing or malformed Authorization header, expected: Bearer <API key>")
    }

    /// A key that is unknown, revoked or expired: which of these is nobody's business.
    pub fn invalid_key() -> Self {
        Self::unauthorized("invalid or expired API key")
    }

    fn unauthorized(detail: &str) -> Self {
        Self::new(Code::Unauthorized, detail)
            .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// Nothing of that kind with that id, for this caller.
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("{what} not found"))
    }

    /// A known path with a method it does not take. `allow` lists those it takes.
    pub fn method_not_allowed(allow: &str) -> Self {
        let value = HeaderValue::from_str(allow).expect("method names are plain ASCII");
        Self::new(Code::MethodNotAllowed, format!("this path takes {allow}"))
            .with_header(header::ALLOW, value)
    }

    /// A body that did not arrive in time.
    pub fn timed_out() -> Self {
        Self::new(Code::RequestTimeout, "the request body did not arrive in time")
    }

    /// A body above the ceiling.
    pub fn too_large() -> Self {
        Self::new(Code::PayloadTooLarge, "the request body exceeds 1 MiB")
    }

    /// A fault of ours, of which the caller learns no more.
    pub fn internal() -> Self {
        Self::new(Code::InternalError, "an unexpected error occurred; try again later")
    }

    /// Something we need is away; the call may be repeated.
    pub fn unavailable() -> Self {
        Self::away("the service is temporarily unavailable; try again later", RETRY_AFTER_SECONDS)
    }

    /// Something that this call needs is away; it may be repeated after so many seconds.
    pub fn away(detail: impl Into<String>, seconds: u32) -> Self {
        Self::new(Code::Unavailable, detail).retry_after(seconds)
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        if store::is_unavailable(&error) {
            warn!(error = %error, "The database is away");
            return Self::unavailable();
        }
        error!(error = %error, "A statement failed");
        Self::internal()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

impl std::error::Error for Problem {}

impl ResponseError for Problem {
    fn status(&self) -> StatusCode {
        self.code.status()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.code.status();
        let headers = self.headers.clone();
        let mut response =
            Response::builder().status(status).content_type(CONTENT_TYPE).body(self.document().to_string());
        response.headers_mut().extend(headers);
        response
    }
}

/// The contract's name for a status, where HTTP's own has changed since.
pub(crate) fn title(status: StatusCode) -> &'static str {
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => "Payload Too Large",
        StatusCode::UNPROCESSABLE_ENTITY => "Unprocessable Entity",
        status => status.canonical_reason().unwrap_or("Error"),
    }
}

/// One thing that is wrong with a body or a parameter. Depending on `code` it carries more: `expected`
/// and `received`; `minimum` or `maximum` with `type` and `inclusive`; `validation`; `options`; `keys`.
#[derive(Clone, Debug, PartialEq, Object)]
pub struct Issue {
    /// Keys and 0-based indices that lead to the field.
    pub path: Vec<Segment>,
    /// What is wrong.
    pub code: String,
    /// What is wrong, for people.
    pub message: String,
    /// What goes with the code.
    #[oai(flatten)]
    pub extras: BTreeMap<String, Value>,
}

impl Issue {
    /// An issue of any code.
    pub fn new<S: Into<Segment>>(
        path: impl IntoIterator<Item = S>,
        code: &str,
        message: impl Into<String>,
    ) -> Self {
        let path = path.into_iter().take(MAX_PATH_LENGTH).map(Into::into).collect();
        let message = clip_to(&message.into(), MAX_MESSAGE_LENGTH);
        Self { path, code: code.to_owned(), message, extras: BTreeMap::new() }
    }

    /// A rule that no other code stands for.
    pub fn custom<S: Into<Segment>>(path: impl IntoIterator<Item = S>, message: impl Into<String>) -> Self {
        Self::new(path, "custom", message)
    }

    /// A fault of the whole rather than of a field.
    pub fn whole(message: impl Into<String>) -> Self {
        Self::custom::<Segment>([], message)
    }

    /// Something of another type than it must be; `undefined` is what is missing.
    pub fn wrong_type(path: &[Segment], expected: &str, received: &str) -> Self {
        let message = match received {
            "undefined" => "Required".to_owned(),
            _ => format!("Expected {expected}, received {received}"),
        };
        let issue = Self::new(path.iter().cloned(), "invalid_type", message);
        issue.with("expected", expected).with("received", received)
    }

    /// Says more.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.extras.insert(key.to_owned(), value.into());
        self
    }

    fn is_no_date_at(&self, key: &str) -> bool {
        self.path == [Segment::from(key)] && self.extras.get("validation") == Some(&"datetime".into())
    }
}

/// A text of the caller's as an issue repeats it: no more than its beginning.
pub(crate) fn clip(text: &str) -> String {
    clip_to(text, MAX_QUOTE_LENGTH)
}

fn clip_to(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A step towards a field: a key of an object or an index of an array.
#[derive(Clone, Debug, PartialEq, Union)]
#[oai(one_of)]
pub enum Segment {
    /// A key.
    Key(String),
    /// An index, from 0.
    Index(u64),
}

impl From<&str> for Segment {
    fn from(key: &str) -> Self {
        Self::Key(clip(key))
    }
}

impl From<usize> for Segment {
    fn from(index: usize) -> Self {
        Self::Index(index as u64)
    }
}

/// Why a call failed (RFC 9457).
#[derive(Object)]
#[oai(rename = "Problem")]
struct Document {
    /// Always `about:blank`: the status says what kind of problem it is.
    #[oai(rename = "type")]
    kind: String,
    /// The name of the status.
    title: String,
    /// The HTTP status.
    status: u16,
    /// What happened, for people; may change.
    detail: String,
    /// What happened, for machines.
    code: EnumString<Code>,
    /// What is wrong with which field.
    #[oai(skip_serializing_if_is_none)]
    errors: Option<Vec<Issue>>,
    /// With `quota_exceeded`: the same as `code`.
    #[oai(skip_serializing_if_is_none)]
    reason: Option<EnumString<Code>>,
    /// With `quota_exceeded`: how much the plan allows.
    #[oai(skip_serializing_if_is_none)]
    limit: Option<u64>,
    /// With `quota_exceeded`: how much is used.
    #[oai(skip_serializing_if_is_none)]
    used: Option<u64>,
    /// With `quota_exceeded`: where more can be had; null where the operator named no place.
    #[oai(nullable, rename = "upgradeUrl", skip_serializing_if = "MaybeUndefined::is_undefined")]
    upgrade_url: MaybeUndefined<String>,
}

impl From<Problem> for Document {
    fn from(problem: Problem) -> Self {
        let (code, status) = (EnumString::of(problem.code.as_str()), problem.code.status());
        let quota = problem.quota.as_ref();
        Self {
            kind: "about:blank".to_owned(),
            title: title(status).to_owned(),
            status: status.as_u16(),
            detail: problem.detail,
            reason: quota.map(|_| code.clone()),
            limit: quota.map(|quota| quota.limit),
            used: quota.map(|quota| quota.used),
            upgrade_url: quota.map(|quota| quota.upgrade_url.clone()).into(),
            code,
            errors: Some(problem.issues).filter(|issues| !issues.is_empty()),
        }
    }
}

/// Every operation can fail in these ways.
impl ApiResponse for Problem {
    fn meta() -> MetaResponses {
        let seconds = || MetaHeader {
            name: "Retry-After".to_owned(),
            description: Some("Seconds to wait".to_owned()),
            required: true,
            deprecated: false,
            schema: MetaSchemaRef::Inline(Box::new(MetaSchema::new("integer"))),
        };
        let response = |status, description, headers| MetaResponse {
            description,
            status: Some(status),
            status_range: None,
            content: vec![MetaMediaType { content_type: CONTENT_TYPE, schema: Document::schema_ref() }],
            headers,
        };
        let responses = vec![
            response(400, "The body or a parameter is wrong by itself", vec![]),
            response(401, "There is no valid API key", vec![]),
            response(402, "The plan's quota is used up", vec![]),
            response(403, "The key lacks the scope", vec![]),
            response(404, "There is no such thing, or not for this caller", vec![]),
            response(408, "The body did not arrive in time", vec![]),
            response(409, "What exists stands against it", vec![]),
            response(413, "The body exceeds 1 MiB", vec![]),
            response(422, "What the body refers to is wrong", vec![]),
            response(429, "Too many calls", vec![seconds()]),
            response(500, "A fault of the service; safe to repeat later", vec![]),
            response(503, "The service is away for the moment", vec![seconds()]),
        ];
        MetaResponses { responses }
    }

    fn register(registry: &mut Registry) {
        Document::register(registry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_problem_is_the_contracts_envelope() {
        let problem = Problem::invalid_body(vec![Issue::wrong_type(
            &["containers".into(), 0.into(), "content".into()],
            "string",
            "number",
        )]);
        assert_eq!(
            Document::from(problem).to_json(),
            Some(json!({
                "type": "about:blank",
                "title": "Bad Request",
                "status": 400,
                "detail": "invalid request body",
                "code": "invalid_request",
                "errors": [{
                    "path": ["containers", 0, "content"],
                    "code": "invalid_type",
                    "message": "Expected string, received number",
                    "expected": "string",
                    "received": "number",
                }],
            }))
        );
    }

    #[test]
    fn of_many_issues_the_first_are_listed() {
        let problem = |count: usize| {
            Problem::invalid_body(
                (0..count).map(|index| Issue::custom([Segment::from(index)], "no")).collect(),
            )
        };
        let (all, more) = (problem(MAX_ISSUES), problem(MAX_ISSUES + 1));
        assert_eq!((all.issues.len(), all.detail.as_str()), (MAX_ISSUES, "invalid request body"));
        let cut = "invalid request body; there are more errors than are listed";
        assert_eq!((more.issues.len(), more.detail.as_str()), (MAX_ISSUES, cut));
        let less = more.with_at_most(1);
        assert_eq!((less.issues.len(), less.detail.as_str()), (1, cut));
    }

    #[test]
    fn an_issue_repeats_no_long_text_of_the_callers() {
        let long = "é".repeat(1000);
        let issue = Issue::custom(vec![Segment::from(&*long); 1000], long.clone());
        let clipped = format!("{}…", "é".repeat(64));
        assert_eq!(issue.path, vec![Segment::Key(clipped); 12]);
        assert_eq!(issue.message, format!("{}…", "é".repeat(600)));
    }

    #[test]
    fn a_used_up_quota_says_how_much_and_where_there_is_more() {
        let problem = |url: Option<&str>| {
            let problem = Problem::new(Code::QuotaExceeded, "none left");
            Document::from(problem.with_quota(5, 7, url.map(str::to_owned))).to_json().unwrap()
        };
        let told = problem(Some("https://e.test/up"));
        assert_eq!((&told["status"], &told["title"]), (&json!(402), &json!("Payment Required")));
        assert_eq!((&told["code"], &told["reason"]), (&json!("quota_exceeded"), &json!("quota_exceeded")));
        assert_eq!((&told["limit"], &told["used"]), (&json!(5), &json!(7)));
        assert_eq!(told["upgradeUrl"], "https://e.test/up");
        assert_eq!(problem(None).get("upgradeUrl"), Some(&Value::Null));
    }

    #[test]
    fn a_missing_database_asks_to_come_back() {
        let response = Problem::from(store::Error::PoolTimedOut).into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()["retry-after"], "5");
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        assert_eq!(Problem::from(store::Error::RowNotFound).code, Code::InternalError);
    }
}
