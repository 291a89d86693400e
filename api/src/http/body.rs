//! JSON request and response bodies.
//!
//! A body is read up to a size limit, validated as a whole against its schema and rules, and only then
//! parsed. JSON from MCP calls and batch items takes the same path.

use crate::{
    http::{
        headers,
        problem::{Code, Issue, Problem, clip},
    },
    openapi::{
        unknown,
        validate::{Rules, Schema},
    },
};
use poem::{FromRequest, IntoResponse, Request, RequestBody, Response, http::header::EXPECT};
use poem_openapi::{
    ApiExtractor, ApiExtractorType, ApiResponse, ExtractParamOptions,
    payload::{ParsePayload, Payload},
    registry::{MetaMediaType, MetaRequest, MetaResponse, MetaResponses, MetaSchemaRef, Registry},
    types::{MaybeUndefined, ParseFromJSON, ToJSON, Type},
};
use serde_json::{Map, Value};
use std::{collections::HashMap, fmt, hash::Hash, time::Duration};
use store::Change;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Maximum size of a body, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// Maximum number of objects and arrays in a body; small ones take far more memory than text.
const MAX_CONTAINERS: usize = 20_000;
/// How much of a refused body is read and dropped, in bytes and time: a client that is still sending when the
/// connection closes does not see the response.
pub const DRAIN_LIMIT: (u64, Duration) = (16 << 20, Duration::from_secs(10));

/// A JSON body.
#[derive(Clone, Debug)]
pub struct Json<T>(pub T);

/// Validates and parses a JSON value.
///
/// # Errors
///
/// All issues, if the value violates the schema or a rule.
pub fn read<T: ParseFromJSON + Rules + 'static>(value: Value) -> Result<T, Problem> {
    let issues = check::<T>(&value);
    parsed(value, issues)
}

/// Validates and parses a JSON value that has no unknown members.
///
/// # Errors
///
/// All issues, if the value violates the schema or a rule, or has an unknown member.
pub(crate) fn read_closed<T: ParseFromJSON + Rules + 'static>(value: Value) -> Result<T, Problem> {
    let issues = check_closed::<T>(&value);
    parsed(value, issues)
}

fn parsed<T: ParseFromJSON>(value: Value, issues: Vec<Issue>) -> Result<T, Problem> {
    if !issues.is_empty() {
        return Err(Problem::invalid_body(issues));
    }
    T::parse_from_json(Some(value))
        .map_err(|error| Problem::invalid_body(vec![Issue::whole(error.into_message())]))
}

/// Why a text is not read as JSON. Displays as the rest of a sentence about the text.
#[derive(Debug)]
pub enum Unread {
    /// There are too many objects and arrays.
    TooLarge,
    /// It is not JSON.
    Malformed(serde_json::Error),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => write!(f, "holds more than {MAX_CONTAINERS} objects and arrays"),
            Self::Malformed(error) => write!(f, "is not valid JSON: {error}"),
        }
    }
}

/// Parses JSON text, within the limit of objects and arrays.
///
/// # Errors
///
/// If it is not JSON, or too large.
pub fn parse(bytes: &[u8]) -> Result<Value, Unread> {
    if Census::of(bytes).containers > MAX_CONTAINERS {
        return Err(Unread::TooLarge);
    }
    serde_json::from_slice(bytes).map_err(Unread::Malformed)
}

/// Parses JSON texts of the database, within the limit of objects and arrays of one body; `None` if they have more together.
pub(crate) fn parse_stored<K: Eq + Hash>(texts: HashMap<K, String>) -> Option<HashMap<K, Value>> {
    let containers: usize = texts.values().map(|text| Census::of(text.as_bytes()).containers).sum();
    let parsed = texts.into_iter().map(|(key, text)| {
        (key, serde_json::from_str(&text).expect("the database has what was serialized here"))
    });
    (containers <= MAX_CONTAINERS).then(|| parsed.collect())
}

/// Counts the objects and arrays of a JSON text without parsing it.
#[derive(Debug, Default)]
pub(crate) struct Census {
    /// Number of objects and arrays.
    containers: usize,
    commas: usize,
}

impl Census {
    /// Counts a text in one pass.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let (mut census, mut is_text, mut is_escaped) = (Self::default(), false, false);
        for byte in bytes {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = is_text,
                b'"' => is_text = !is_text,
                b'{' | b'[' if !is_text => census.containers += 1,
                b',' if !is_text => census.commas += 1,
                _ => {}
            }
        }
        census
    }

    /// Upper bound of the number of values.
    pub(crate) fn values(&self) -> usize {
        1 + self.commas + self.containers
    }
}

/// All issues of a value.
pub(crate) fn check<T: Type + Rules + 'static>(value: &Value) -> Vec<Issue> {
    let mut issues = violations::<T>(value);
    if T::REFUSES_SLIPS {
        issues.extend(unknown::issues(&unknown::of::<T>(value), false));
    }
    issues
}

/// All issues of a value that has no unknown members.
pub(crate) fn check_closed<T: Type + Rules + 'static>(value: &Value) -> Vec<Issue> {
    let mut issues = violations::<T>(value);
    issues.extend(unknown::issues(&unknown::of::<T>(value), true));
    issues
}

fn violations<T: Type + Rules + 'static>(value: &Value) -> Vec<Issue> {
    let mut issues = Schema::of::<T>().check(value, T::NULL);
    if let Value::Object(object) = value {
        T::check(object, &mut issues);
    }
    issues
}

/// A request body that clears a nullable field.
pub(crate) fn change<T>(sent: MaybeUndefined<T>) -> Change<T> {
    match sent {
        MaybeUndefined::Undefined => Change::Keep,
        MaybeUndefined::Null => Change::Clear,
        MaybeUndefined::Value(value) => Change::Set(value),
    }
}

impl<T: Type> Payload for Json<T> {
    const CONTENT_TYPE: &'static str = "application/json";

    fn schema_ref() -> MetaSchemaRef {
        T::schema_ref()
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }
}

impl<T: ParseFromJSON + Rules + 'static> ParsePayload for Json<T> {
    const IS_REQUIRED: bool = !T::IS_OPTIONAL;

    async fn from_request(request: &Request, body: &mut RequestBody) -> poem::Result<Self> {
        let body = <poem::Body as FromRequest>::from_request(request, body).await?;
        let bytes = receive(request, body).await?;
        if bytes.is_empty() && T::IS_OPTIONAL {
            return Ok(Self(read(Value::Object(Map::new()))?));
        }
        if bytes.is_empty() {
            let issue = Issue::wrong_type(&[], "object", "undefined");
            return Err(Problem::invalid_body(vec![issue]).into());
        }
        let value = parse(&bytes)
            .map_err(|unread| Problem::invalid_body(vec![Issue::whole(format!("The body {unread}"))]));
        drop(bytes);
        Ok(Self(read(value?)?))
    }
}

/// Reads the body of a request, if its content type is JSON and it is not too large.
pub(crate) async fn receive(request: &Request, body: poem::Body) -> Result<Vec<u8>, Problem> {
    if let Some(found) = headers::text(request.headers(), "Content-Type")?.filter(|found| !is_json(found)) {
        let rule = format!("body must be application/json, not {}", clip(found));
        let problem = Problem::new(Code::InvalidRequest, format!("the {rule}"));
        return Err(problem.with_issues(vec![Issue::whole(format!("The {rule}"))]));
    }
    let announced = headers::length(request.headers())?;
    if announced.is_some_and(|length| length > MAX_BYTES as u64) && request.headers().contains_key(EXPECT) {
        // The client waits for "100 Continue", which is not sent.
        return Err(Problem::too_large());
    }
    swallow(body.into_async_read()).await
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// Reads a body, unless it is too large.
async fn swallow(mut body: impl AsyncRead + Unpin) -> Result<Vec<u8>, Problem> {
    let broken = |error| Problem::new(Code::InvalidRequest, format!("the body could not be read: {error}"));
    let mut bytes = Vec::new();
    (&mut body).take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).await.map_err(broken)?;
    if bytes.len() <= MAX_BYTES {
        return Ok(bytes);
    }
    drain(body, DRAIN_LIMIT).await;
    Err(Problem::too_large())
}

/// Reads and drops the rest of a refused body, up to a limit in bytes and time.
pub async fn drain(rest: impl AsyncRead + Unpin, (most, time): (u64, Duration)) {
    let mut rest = rest.take(most);
    // The response is the same if this fails.
    let _ = tokio::time::timeout(time, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
}

impl<'a, T: ParseFromJSON + Rules + 'static> ApiExtractor<'a> for Json<T> {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::RequestObject];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        T::register(registry);
    }

    fn request_meta() -> Option<MetaRequest> {
        let content = vec![MetaMediaType { content_type: Self::CONTENT_TYPE, schema: T::schema_ref() }];
        Some(MetaRequest { description: None, required: !T::IS_OPTIONAL, content })
    }

    async fn from_request(
        request: &'a Request,
        body: &mut RequestBody,
        _: ExtractParamOptions<()>,
    ) -> poem::Result<Self> {
        <Self as ParsePayload>::from_request(request, body).await
    }
}

impl<T: ToJSON> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        Response::builder().content_type(Self::CONTENT_TYPE).body(self.0.to_json_string())
    }
}

impl<T: ToJSON> ApiResponse for Json<T> {
    fn meta() -> MetaResponses {
        let content = vec![MetaMediaType { content_type: Self::CONTENT_TYPE, schema: T::schema_ref() }];
        let status = Some(200);
        let response =
            MetaResponse { description: "Done", status, status_range: None, content, headers: Vec::new() };
        MetaResponses { responses: vec![response] }
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_goes_by_several_names() {
        for (content_type, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/merge-patch+json", true),
            ("text/plain", false),
            ("application/x-www-form-urlencoded", false),
            ("", false),
        ] {
            assert_eq!(is_json(content_type), expected, "{content_type}");
        }
    }

    #[test]
    fn objects_and_arrays_are_counted_before_they_are_read() {
        for (text, expected) in [
            ("", (0, 0)),
            ("7", (0, 0)),
            (r#"{"a":[{},[]]}"#, (4, 1)),
            (r#""[{,""#, (0, 0)),
            (r#"["[\",[", {"\\": []}]"#, (3, 1)),
        ] {
            let Census { containers, commas } = Census::of(text.as_bytes());
            assert_eq!((containers, commas), expected, "{text}");
        }
        let nested = |count: usize| format!("[{}[]]", "[],".repeat(count - 2));
        assert!(parse(nested(MAX_CONTAINERS).as_bytes()).is_ok());
        assert!(parse(nested(MAX_CONTAINERS + 1).as_bytes()).is_err());
    }

    #[tokio::test]
    async fn a_body_may_fill_the_ceiling_and_not_pass_it() {
        let whole = vec![b' '; MAX_BYTES];
        assert_eq!(swallow(&whole[..]).await.unwrap().len(), MAX_BYTES);
        let over = vec![b' '; MAX_BYTES + 1];
        assert_eq!(swallow(&over[..]).await.unwrap_err().code, Code::PayloadTooLarge);
    }
}
