//! The log of an organization's requests.

use crate::{
    http::{
        body::Json,
        caller::{Call, Caller, UsageRead},
        page::List,
        problem::Problem,
        query::Query,
        request_id::RequestId,
    },
    openapi::{tag::Tag, validate::Rules},
    types::timestamp::Timestamp,
};
use poem_openapi::{Object, OpenApi};
use store::usage::requests;

/// The operation on requests.
pub struct Requests;

#[OpenApi(tag = "Tag::Usage")]
impl Requests {
    /// List requests
    ///
    /// Lists the requests that API keys of the organization made in the mode of the caller's key, newest first:
    /// those of the last seven days, at most 10,000. A request is listed a moment after its response; in rare
    /// cases, such as the end of a server, one is missing. Scope `usage:read`.
    #[oai(path = "/account/requests", method = "get", operation_id = "listRequests")]
    async fn list(
        &self,
        caller: Caller<UsageRead>,
        query: Query<Filter>,
    ) -> Result<Json<RequestPage>, Problem> {
        Ok(Json(list(&caller.call(), query.0).await?))
    }
}

/// Lists the caller's requests.
pub async fn list(call: &Call<'_>, filter: Filter) -> Result<RequestPage, Problem> {
    let page = List::Requests.request(call, filter.limit, filter.cursor.as_deref())?;
    let filter = requests::Filter { min_status: filter.min_status, path: filter.path };
    let found = requests::list(call.db(), call.owner, &filter, page).await?;
    let next_cursor = List::Requests.next(call, found.next);
    Ok(RequestPage { data: found.items.into_iter().map(LoggedRequest::from).collect(), next_cursor })
}

/// Filter for requests.
#[derive(Debug, Default, Object)]
#[oai(rename = "RequestFilter")]
pub struct Filter {
    /// Page size, 1 to 100; values outside are clamped. 25 by default.
    pub limit: Option<i64>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Requests that were answered with this status or a higher one, for example 400 for all errors.
    #[oai(validator(minimum(value = "100"), maximum(value = "599")))]
    pub min_status: Option<i32>,
    /// Requests whose path begins like this, for example `/api/v1/posts`.
    #[oai(validator(max_length = 200))]
    pub path: Option<String>,
}

impl Rules for Filter {}

/// A page of requests.
#[derive(Debug, Object)]
pub struct RequestPage {
    /// The requests, newest first.
    pub data: Vec<LoggedRequest>,
    /// Cursor of the next page; null on the last page.
    #[oai(nullable)]
    pub next_cursor: Option<String>,
}

/// A request and its response.
#[derive(Debug, Object)]
pub struct LoggedRequest {
    /// Id, as in the response's `X-Request-Id`.
    pub request_id: String,
    /// HTTP method.
    pub method: String,
    /// Pattern of the path, without ids: `/api/v1/posts/{id}`.
    pub path: String,
    /// HTTP status of the response.
    pub status: i32,
    /// Time until the response, in milliseconds.
    pub duration_ms: i32,
    /// Last four characters of the API key.
    pub last_four: String,
    /// Time of the request.
    pub at: Timestamp,
}

impl From<requests::Entry> for LoggedRequest {
    fn from(entry: requests::Entry) -> Self {
        Self {
            request_id: RequestId::from(entry.id).to_string(),
            method: entry.method,
            path: entry.path,
            status: entry.status,
            duration_ms: entry.duration_ms,
            last_four: entry.last_four,
            at: entry.at.into(),
        }
    }
}
