//! The door of the MCP endpoint, beside the API: a ceiling per address before anything is known of
//! the caller, then the same keys and limits as everywhere.
//!
//! Behind the door there is nothing yet.

use crate::{
    App,
    caller::identify,
    limits,
    problem::{Code, Problem},
};
use poem::{Request, Response, handler, web::Data};

/// The path of the endpoint.
pub const PATH: &str = "/api/mcp";

/// Lets in who may come in.
#[handler]
pub(crate) async fn door(app: Data<&App>, request: &Request) -> poem::Result<Response> {
    limits::greet(&app, request).await?;
    identify(request).await?;
    Err(Problem::new(Code::NotFound, "there is nothing at this path").into())
}
