//! Errors of the API: problem documents (RFC 9457).
//!
//! The code determines the status. `detail` is for people and may change; clients can rely on `code` and on
//! the issues' codes, which are those of Zod. <https://www.rfc-editor.org/rfc/rfc9457>

use crate::{http::request_id::RequestId, types::enum_string::EnumString};
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

/// Content type of a problem document.
const CONTENT_TYPE: &str = "application/problem+json";
/// Maximum number of issues of a problem.
pub(crate) const MAX_ISSUES: usize = 100;
/// Maximum length of caller-provided text in an issue, in characters.
const MAX_QUOTE_LENGTH: usize = 64;
/// Maximum length of an issue's message, in characters.
const MAX_MESSAGE_LENGTH: usize = 600;
/// Maximum length of an issue's path; no documented field is deeper.
const MAX_PATH_LENGTH: usize = 12;
/// `Retry-After` in seconds when the database is unavailable.
const RETRY_AFTER_SECONDS: u32 = 5;

domain::string_enum! {
    /// Problem codes.
    Code, "problem code" {
        /// The body or a parameter is invalid.
        InvalidRequest = "invalid_request",
        /// The cursor is not from this list or this caller.
        InvalidCursor = "invalid_cursor",
        /// No OAuth app is registered for the platform.
        NoAppAvailable = "no_app_available",
        /// The API key is missing or invalid.
        Unauthorized = "unauthorized",
        /// The plan's quota is used up.
        QuotaExceeded = "quota_exceeded",
        /// The API key lacks the required scope.
        InsufficientScope = "insufficient_scope",
        /// The API key may not do this.
        Forbidden = "forbidden",
        /// The resource does not exist or belongs to another owner.
        NotFound = "not_found",
        /// The path does not support the method.
        MethodNotAllowed = "method_not_allowed",
        /// The request body did not arrive in time.
        RequestTimeout = "request_timeout",
        /// Conflicts with the current state.
        Conflict = "conflict",
        /// Publishing has begun, or the post has ended; it can't be edited.
        PublishingStarted = "publishing_started",
        /// The request body is too large.
        PayloadTooLarge = "payload_too_large",
        /// The request refers to something invalid.
        Unprocessable = "unprocessable",
        /// A media asset is missing or not ready.
        MediaNotReady = "media_not_ready",
        /// An account does not exist.
        AccountNotFound = "account_not_found",
        /// The platform rejected the credentials.
        InvalidCredentials = "invalid_credentials",
        /// A handle matches several accounts.
        AmbiguousAccount = "ambiguous_account",
        /// No posting slot is open.
        NoOpenSlot = "no_open_slot",
        /// A platform would reject the content.
        ContentRejected = "content_rejected",
        /// The platform lets no app delete posts.
        DeletionUnsupported = "deletion_unsupported",
        /// The platform lets no app change such posts.
        EditingUnsupported = "editing_unsupported",
        /// The account must be connected again, with the scopes that the request needs.
        ReconnectRequired = "reconnect_required",
        /// The rate limit is exceeded.
        RateLimited = "rate_limited",
        /// Internal error.
        InternalError = "internal_error",
        /// A dependency is temporarily unavailable.
        Unavailable = "unavailable",
    }
}

crate::types::enum_string::openapi_enum!(Code, "ProblemCode");

impl Code {
    /// HTTP status of the code.
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
            | Self::ContentRejected
            | Self::DeletionUnsupported
            | Self::EditingUnsupported
            | Self::ReconnectRequired => StatusCode::UNPROCESSABLE_ENTITY,
            Self::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Self::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// An API error.
#[derive(Debug)]
pub struct Problem {
    /// Problem code.
    pub code: Code,
    /// Human-readable explanation.
    pub detail: String,
    /// Issues of single fields, at most [`MAX_ISSUES`].
    pub issues: Vec<Issue>,
    is_cut: bool,
    quota: Option<Quota>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// An exhausted quota.
#[derive(Debug)]
struct Quota {
    limit: u64,
    used: u64,
    upgrade_url: Option<String>,
}

impl Problem {
    /// A problem without issues.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { code, detail, issues: Vec::new(), is_cut: false, quota: None, headers: Vec::new() }
    }

    /// Adds issues of single fields.
    #[must_use]
    pub fn with_issues(self, issues: Vec<Issue>) -> Self {
        Self { issues, ..self }.with_at_most(MAX_ISSUES)
    }

    /// Adds further issues.
    #[must_use]
    pub fn with_more_issues(mut self, more: Vec<Issue>) -> Self {
        self.issues.extend(more);
        self.with_at_most(MAX_ISSUES)
    }

    /// Limits the number of issues and mentions in `detail` that there are more.
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

    /// Adds the exhausted quota.
    #[must_use]
    pub fn with_quota(self, limit: u64, used: u64, upgrade_url: Option<String>) -> Self {
        Self { quota: Some(Quota { limit, used, upgrade_url }), ..self }
    }

    /// Serializes the problem document.
    pub(crate) fn document(self) -> Value {
        Document::from(self).to_json().unwrap_or_default()
    }

    /// Adds `Retry-After`.
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Self {
        self.with_header(header::RETRY_AFTER, seconds.into())
    }

    /// Response headers.
    pub fn headers(&self) -> impl Iterator<Item = &(HeaderName, HeaderValue)> {
        self.headers.iter()
    }

    fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// 400: the body is invalid.
    pub fn invalid_body(issues: Vec<Issue>) -> Self {
        // So common a mistake that its message goes into the detail, without the example.
        let detail = match &issues[..] {
            [issue] if issue.is_no_date_at("scheduled_at") => {
                let mut rule = issue.message.split(',').next().unwrap_or_default().to_owned();
                rule.get_mut(..1).map(str::make_ascii_lowercase);
                format!("scheduled_at {rule}")
            }
            _ => "invalid request body".to_owned(),
        };
        Self::new(Code::InvalidRequest, detail).with_issues(issues)
    }

    /// 400: query parameters are invalid.
    pub fn invalid_parameters(issues: Vec<Issue>) -> Self {
        Self::new(Code::InvalidRequest, "invalid request parameters").with_issues(issues)
    }

    /// 401: no `Authorization` header, or one without a bearer token.
    pub fn no_bearer() -> Self {
        Self::unauthorized("missing or malformed Authorization header, expected: Bearer <API key>")
    }

    /// 401: the key is unknown, revoked or expired, without saying which.
    pub fn invalid_key() -> Self {
        Self::unauthorized("invalid or expired API key")
    }

    /// 401: the credentials are missing or invalid.
    pub(crate) fn unauthorized(detail: &str) -> Self {
        Self::new(Code::Unauthorized, detail)
            .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// 404: the caller has no resource with this id.
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("{what} not found"))
    }

    /// 405: the path does not support the method. `allow` lists those it supports.
    pub fn method_not_allowed(allow: &str) -> Self {
        let value = HeaderValue::from_str(allow).expect("method names are plain ASCII");
        Self::new(Code::MethodNotAllowed, format!("this path takes {allow}"))
            .with_header(header::ALLOW, value)
    }

    /// 408: the body did not arrive in time.
    pub fn timed_out() -> Self {
        Self::new(Code::RequestTimeout, "the request body did not arrive in time")
    }

    /// 413: the body is too large.
    pub fn too_large() -> Self {
        Self::new(Code::PayloadTooLarge, "the request body exceeds 1 MiB")
    }

    /// 500: an internal error, without details.
    pub fn internal() -> Self {
        Self::new(Code::InternalError, "an unexpected error occurred; try again later")
    }

    /// 503: a dependency is unavailable; the call can be retried.
    pub fn unavailable() -> Self {
        Self::away("the service is temporarily unavailable; try again later", RETRY_AFTER_SECONDS)
    }

    /// 503: a dependency is unavailable; the call can be retried after the given seconds.
    pub fn away(detail: impl Into<String>, seconds: u32) -> Self {
        Self::new(Code::Unavailable, detail).retry_after(seconds)
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        if store::is_unavailable(&error) {
            warn!(error = %error, "The database is unavailable");
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

/// The title of a status: its reason phrase, in the wording that the API documents.
pub fn title(status: StatusCode) -> &'static str {
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => "Payload Too Large",
        StatusCode::UNPROCESSABLE_ENTITY => "Unprocessable Entity",
        status => status.canonical_reason().unwrap_or("Error"),
    }
}

/// An error of one field. Depending on `code` it has more members: `expected` and `received`; `minimum` or
/// `maximum` with `type` and `inclusive`; `validation`; `options`; `keys`.
#[derive(Clone, Debug, PartialEq, Object)]
pub struct Issue {
    /// Path of the field: keys and 0-based indices.
    pub path: Vec<Segment>,
    /// Machine-readable code of the error.
    pub code: String,
    /// Human-readable error.
    pub message: String,
    /// Further members, depending on the code.
    #[oai(flatten)]
    pub extras: BTreeMap<String, Value>,
}

impl Issue {
    /// An issue with any code.
    pub fn new<S: Into<Segment>>(
        path: impl IntoIterator<Item = S>,
        code: &str,
        message: impl Into<String>,
    ) -> Self {
        let path = path.into_iter().take(MAX_PATH_LENGTH).map(Into::into).collect();
        let message = clip_to(&message.into(), MAX_MESSAGE_LENGTH);
        Self { path, code: code.to_owned(), message, extras: BTreeMap::new() }
    }

    /// An issue with the code `custom`.
    pub fn custom<S: Into<Segment>>(path: impl IntoIterator<Item = S>, message: impl Into<String>) -> Self {
        Self::new(path, "custom", message)
    }

    /// An issue of the whole body.
    pub fn whole(message: impl Into<String>) -> Self {
        Self::custom::<Segment>([], message)
    }

    /// An issue for a wrong type; a missing value has the type `undefined`.
    pub fn wrong_type(path: &[Segment], expected: &str, received: &str) -> Self {
        let message = match received {
            "undefined" => "Required".to_owned(),
            _ => format!("Expected {expected}, received {received}"),
        };
        let issue = Self::new(path.iter().cloned(), "invalid_type", message);
        issue.with("expected", expected).with("received", received)
    }

    /// Puts the path of its value before the issue's.
    #[must_use]
    pub fn under(mut self, path: &[Segment]) -> Self {
        self.path = path.iter().cloned().chain(self.path).take(MAX_PATH_LENGTH).collect();
        self
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.extras.insert(key.to_owned(), value.into());
        self
    }

    fn is_no_date_at(&self, key: &str) -> bool {
        self.path == [Segment::from(key)] && self.extras.get("validation") == Some(&"datetime".into())
    }
}

/// Truncates caller-provided text for an issue.
pub fn clip(text: &str) -> String {
    clip_to(text, MAX_QUOTE_LENGTH)
}

fn clip_to(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Part of a path: a key of an object or an index of an array.
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

/// A problem document (RFC 9457).
#[derive(Object)]
#[oai(rename = "Problem")]
struct Document {
    /// Always `about:blank`; `code` identifies the problem.
    #[oai(rename = "type")]
    kind: String,
    /// Reason phrase of the HTTP status.
    title: String,
    /// HTTP status.
    status: u16,
    /// Human-readable explanation; may change.
    detail: String,
    /// Machine-readable problem code.
    code: EnumString<Code>,
    /// Id of the request, as in the header `X-Request-Id`. Quote it when asking for help.
    #[oai(skip_serializing_if_is_none)]
    request_id: Option<String>,
    /// Errors of single fields.
    #[oai(skip_serializing_if_is_none)]
    errors: Option<Vec<Issue>>,
    /// With `quota_exceeded`: the same as `code`.
    #[oai(skip_serializing_if_is_none)]
    reason: Option<EnumString<Code>>,
    /// With `quota_exceeded`: the plan's limit.
    #[oai(skip_serializing_if_is_none)]
    limit: Option<u64>,
    /// With `quota_exceeded`: the amount used.
    #[oai(skip_serializing_if_is_none)]
    used: Option<u64>,
    /// With `quota_exceeded`: URL for upgrading; null if none is configured.
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
            request_id: RequestId::current().map(|id| id.to_string()),
            reason: quota.map(|_| code.clone()),
            limit: quota.map(|quota| quota.limit),
            used: quota.map(|quota| quota.used),
            upgrade_url: quota.map(|quota| quota.upgrade_url.clone()).into(),
            code,
            errors: Some(problem.issues).filter(|issues| !issues.is_empty()),
        }
    }
}

/// Error responses of all operations.
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
            response(400, "The body or a parameter is invalid", vec![]),
            response(401, "There is no valid API key", vec![]),
            response(402, "The plan's quota is used up", vec![]),
            response(403, "The API key lacks the required scope", vec![]),
            response(404, "The resource does not exist or belongs to another owner", vec![]),
            response(408, "The body did not arrive in time", vec![]),
            response(409, "Conflicts with the current state", vec![]),
            response(413, "The body exceeds 1 MiB", vec![]),
            response(422, "The request refers to something missing or invalid", vec![]),
            response(429, "Too many calls", vec![seconds()]),
            response(500, "Internal error; retry later", vec![]),
            response(503, "The service is temporarily unavailable", vec![seconds()]),
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
        let body = problem(Some("https://e.test/up"));
        assert_eq!((&body["status"], &body["title"]), (&json!(402), &json!("Payment Required")));
        assert_eq!((&body["code"], &body["reason"]), (&json!("quota_exceeded"), &json!("quota_exceeded")));
        assert_eq!((&body["limit"], &body["used"]), (&json!(5), &json!(7)));
        assert_eq!(body["upgradeUrl"], "https://e.test/up");
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
