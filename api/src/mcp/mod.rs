//! The MCP server for language models, over Streamable HTTP.
//!
//! Requests are limited by IP address first; then the API's keys, scopes, limits and quotas apply, and
//! calling a tool counts as a call of its operation. There are no sessions, so that any process can answer
//! any call; `rmcp` implements the protocol. A tool is a line in [`tools`]: a name, a scope, annotations, and the
//! function that its operation calls; its schemas come from the operation's description in the document
//! ([`schema`]).
//! <https://modelcontextprotocol.io/specification/2025-11-25/basic/transports>

mod prompts;
mod resources;
mod schema;
mod tools;

use crate::{
    app::App,
    http::{
        admission,
        body::{self, Census, MAX_BYTES, Unread},
        caller::{Identity, identify},
        headers,
        problem::{Code, Problem, clip},
        request_id::RequestId,
    },
};
use poem::{
    Endpoint, IntoResponse, Request, Response,
    endpoint::TowerCompatExt,
    http::{HeaderValue, Method, StatusCode, header, request::Parts},
};
use poem_openapi::auth::{Bearer, BearerAuthorization};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams,
        GetPromptResponse, Implementation, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
        ReadResourceResponse, ReadResourceResult, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use serde_json::{Value, json};
use std::sync::Arc;
use tools::Tool;
use tracing::error;
use url::Url;

/// The path of the endpoint.
pub const PATH: &str = "/api/mcp";

/// Instructions for the model.
const INSTRUCTIONS: &str = "Fanfare publishes one piece of content to many social accounts. list_accounts \
    lists the accounts, validate_post checks a post against the platforms' limits, and create_post publishes \
    or schedules it. Publishing happens after create_post has returned: get_post shows the result for each \
    account, and get_post_timeline what happened and what comes next. A failed call returns a problem \
    document that lists every invalid field.";

/// Headers that the library reads, most of which count as absent for it if it can't.
const LIBRARY_HEADERS: [&str; 6] =
    ["MCP-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name", "Last-Event-ID", "Origin"];

/// JSON-RPC: the body is not JSON.
const PARSE_ERROR: i32 = -32700;
/// JSON-RPC: the body is not a request.
const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC: the parameters are invalid.
const INVALID_PARAMS: i32 = -32602;

/// Maximum number of values in a message, which the library parses into several forms.
const MAX_VALUES: usize = 50_000;
/// Maximum length of an id, a method or a tool name, in bytes; responses repeat them.
const MAX_NAME_BYTES: usize = 255;

/// The endpoint for clients of this base URL.
pub(crate) fn endpoint(base_url: &str) -> impl Endpoint<Output = Response> + 'static {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_BYTES)
        // DNS rebinding is harmless, since every call needs a key.
        .disable_allowed_hosts()
        .with_allowed_origins(Url::parse(base_url).map(|url| url.origin().ascii_serialization()))
        .enforce_origin_validation();
    let service = StreamableHttpService::new(|| Ok(Desk), Arc::new(NeverSessionManager::default()), config);
    Gate { inner: service.compat() }
}

/// Authenticates, counts and validates a request before the library handles it.
struct Gate<E> {
    inner: E,
}

impl<E: Endpoint> Endpoint for Gate<E> {
    type Output = Response;

    async fn call(&self, mut request: Request) -> poem::Result<Response> {
        let app = request.data::<App>().expect("the router adds the state to every request").clone();
        admission::count_mcp(&app, &request).await?;
        let bearer = Bearer::from_request(&request)?;
        for name in LIBRARY_HEADERS {
            headers::text(request.headers(), name)?;
        }
        let takes = *request.method() == Method::POST;
        let message = match takes {
            true => {
                let sent = request.take_body();
                let bytes = body::receive(&request, sent).await?;
                let message = parse(&bytes);
                request.set_body(bytes);
                message
            }
            false => Ok(Message::default()),
        };
        let tool = message.as_ref().ok().and_then(|message| message.tool);
        let (method, path) = tool.map_or((Method::POST, ""), |tool| (tool.method.clone(), &*tool.path));
        let caller = identify(&request, &bearer, &method, path).await?;
        if !takes {
            return Err(Problem::method_not_allowed("POST").into());
        }
        let message = match message {
            Ok(message) => message,
            Err(error) => return Ok(error.into_response()),
        };
        request.extensions_mut().insert(Arc::new(caller));
        // The response is always JSON, so a client need not accept event streams.
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        request.headers_mut().insert(header::ACCEPT, accepted);
        request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let response = self.inner.call(request).await?.into_response();
        envelop(response, message.id).await
    }
}

/// The parts of a message that authentication and counting need.
#[derive(Default)]
struct Message {
    /// Message id; null if it has none.
    id: Value,
    /// The called tool, if it exists.
    tool: Option<&'static Tool>,
}

/// A JSON-RPC error.
#[derive(Debug)]
struct RpcError {
    id: Value,
    code: i32,
    message: String,
}

impl RpcError {
    fn new(id: Value, code: i32, message: impl Into<String>) -> Self {
        Self { id, code, message: message.into() }
    }
}

impl IntoResponse for RpcError {
    fn into_response(self) -> Response {
        let error = json!({ "code": self.code, "message": self.message });
        Response::builder()
            .status(StatusCode::BAD_REQUEST)
            .content_type("application/json")
            .body(json!({ "jsonrpc": "2.0", "id": self.id, "error": error }).to_string())
    }
}

/// Parses the id and the tool of a message.
fn parse(bytes: &[u8]) -> Result<Message, RpcError> {
    if Census::of(bytes).values() > MAX_VALUES {
        let reason = format!("a message holds at most {MAX_VALUES} values");
        return Err(RpcError::new(Value::Null, INVALID_REQUEST, reason));
    }
    let message = body::parse(bytes).map_err(|unread| {
        let code = match unread {
            Unread::TooLarge => INVALID_REQUEST,
            Unread::Malformed(_) => PARSE_ERROR,
        };
        RpcError::new(Value::Null, code, format!("the message {unread}"))
    })?;
    let id = message["id"].clone();
    if message["jsonrpc"] != "2.0" {
        let reason = "not a JSON-RPC 2.0 message; batches are not supported";
        return Err(RpcError::new(Value::Null, INVALID_REQUEST, reason));
    }
    let is_short = |value: &Value| value.as_str().is_some_and(|text| text.len() <= MAX_NAME_BYTES);
    if !(id.is_null() || is_short(&id) || id.is_i64()) {
        let reason = format!("an id is an integer or a string of at most {MAX_NAME_BYTES} bytes");
        return Err(RpcError::new(Value::Null, INVALID_REQUEST, reason));
    }
    if !is_short(&message["method"]) {
        let reason = format!("a method is a string of at most {MAX_NAME_BYTES} bytes");
        return Err(RpcError::new(id, INVALID_REQUEST, reason));
    }
    if message["method"] != "tools/call" {
        return Ok(Message { id, tool: None });
    }
    let params = &message["params"];
    let Some(name) = params["name"].as_str().filter(|name| name.len() <= MAX_NAME_BYTES) else {
        return Err(RpcError::new(id, INVALID_PARAMS, "params.name must be the name of a tool"));
    };
    if !(params["arguments"].is_null() || params["arguments"].is_object()) {
        return Err(RpcError::new(id, INVALID_PARAMS, "params.arguments must be an object"));
    }
    Ok(Message { id, tool: tools::find(name) })
}

/// Converts a plain-text error of the library to a JSON-RPC error or problem document.
async fn envelop(response: Response, id: Value) -> poem::Result<Response> {
    let status = response.status();
    let is_json = response.content_type().is_some_and(|found| found.starts_with("application/json"));
    if is_json || status.is_success() {
        return Ok(response);
    }
    let reason = response.into_body().into_string().await.unwrap_or_default();
    match status {
        StatusCode::FORBIDDEN => Err(Problem::new(Code::Forbidden, clip(&reason)).into()),
        status if status.is_client_error() => {
            Ok(RpcError::new(id, INVALID_REQUEST, clip(&reason)).into_response())
        }
        _ => {
            error!(%status, reason, "A message was not answered");
            Err(Problem::internal().into())
        }
    }
}

/// The handler of messages.
struct Desk;

impl ServerHandler for Desk {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build(),
        )
        .with_server_info(Implementation::new("fanfare", env!("CARGO_PKG_VERSION")))
        .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _cx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all().iter().map(Tool::describe).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = tools::find(&request.name)
            .ok_or_else(|| ErrorData::invalid_params(format!("there is no tool {}", request.name), None))?;
        let caller = caller(&cx);
        let answer = async {
            let answer = tool.call(&caller, request.arguments.unwrap_or_default()).await;
            answer.map_err(|problem| problem.document().to_string())
        };
        // The library runs this in a task of its own.
        let id = caller.request().unwrap_or_else(RequestId::generate);
        Ok(match id.scope(answer).await {
            Ok(answer) => CallToolResult::structured(answer),
            // Not as structured content, which clients validate against the tool's schema.
            Err(document) => CallToolResult::error(vec![ContentBlock::text(document)]),
        }
        .into())
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _cx: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list()))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _cx: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = caller(&cx);
        let id = caller.request().unwrap_or_else(RequestId::generate);
        let content = id.scope(resources::read(&caller, &request.uri)).await?;
        Ok(ReadResourceResult::new(vec![content]).into())
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _cx: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _cx: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Ok(prompts::get(&request.name, &request.arguments.unwrap_or_default())?.into())
    }
}

/// Returns the caller of a message.
fn caller(cx: &RequestContext<RoleServer>) -> Arc<Identity> {
    let caller = cx.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Arc<Identity>>());
    caller.expect("the gate has authenticated the caller").clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_told_apart() {
        for (text, code) in [
            ("{", PARSE_ERROR),
            ("", PARSE_ERROR),
            ("[]", INVALID_REQUEST),
            ("7", INVALID_REQUEST),
            (r#"{"method":"tools/list"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":[],"method":"tools/list"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, INVALID_PARAMS),
            (&format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"a"}}"#, "a".repeat(256)), INVALID_REQUEST),
            (&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "a".repeat(256)), INVALID_REQUEST),
            (&format!("[{}0]", "0,".repeat(MAX_VALUES)), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#, INVALID_PARAMS),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_post","arguments":[]}}"#,
                INVALID_PARAMS,
            ),
        ] {
            assert_eq!(parse(text.as_bytes()).err().map(|error| error.code), Some(code), "{text}");
        }
        let call = |name: &str| {
            let message =
                json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": { "name": name } });
            parse(message.to_string().as_bytes()).unwrap()
        };
        assert_eq!(
            call("create_post").tool.map(|tool| (tool.method.clone(), &*tool.path)),
            Some((Method::POST, "/posts"))
        );
        assert!(call("launch_rocket").tool.is_none());
        assert_eq!(call("get_post").id, "a");
    }
}
