//! Cross-origin requests to the operations that client tokens can call.
//!
//! Any origin may send them, since a token and no cookie authorizes them: a holder of the token could send them without
//! a browser as well. Other operations take API keys, which belong on no page.

use crate::{
    app::PREFIX,
    http::{headers, reach},
};
use poem::{
    Endpoint, IntoResponse, Middleware, Request, Response,
    http::{HeaderValue, Method, StatusCode, header},
};

/// Time for which a browser keeps the answer to a preflight, in seconds.
const MAX_AGE: &str = "600";

/// Answers preflights. It is inside of the middleware that gives every response its id.
pub(crate) struct Preflight;

impl<E: Endpoint> Middleware<E> for Preflight {
    type Output = WithPreflight<E>;

    fn transform(&self, inner: E) -> Self::Output {
        WithPreflight(inner)
    }
}

/// An endpoint that answers preflights.
pub(crate) struct WithPreflight<E>(E);

impl<E: Endpoint> Endpoint for WithPreflight<E> {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        match announced(&request).filter(|method| reach::is_for_clients(method, path(&request))) {
            Some(method) => Ok(Response::builder()
                .status(StatusCode::NO_CONTENT)
                .header(header::ACCESS_CONTROL_ALLOW_METHODS, method.as_str())
                .header(header::ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type")
                .header(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE)
                .finish()),
            None => Ok(self.0.call(request).await?.into_response()),
        }
    }
}

/// The method that a preflight announces; `None` if the request is none.
fn announced(request: &Request) -> Option<Method> {
    let wanted = headers::lines(request.headers(), "Access-Control-Request-Method").next()?;
    wanted.parse().ok().filter(|_| *request.method() == Method::OPTIONS)
}

fn path(request: &Request) -> &str {
    request.uri().path().strip_prefix(PREFIX).unwrap_or_default()
}

/// Lets pages read responses. It is outside, so that they can read errors as well.
pub(crate) struct ClientCors;

impl<E: Endpoint> Middleware<E> for ClientCors {
    type Output = WithCors<E>;

    fn transform(&self, inner: E) -> Self::Output {
        WithCors(inner)
    }
}

/// An endpoint behind the middleware.
pub(crate) struct WithCors<E>(E);

impl<E: Endpoint> Endpoint for WithCors<E> {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        let method = announced(&request).unwrap_or_else(|| request.method().clone());
        let is_for_clients = reach::is_for_clients(&method, path(&request));
        let mut response = self.0.call(request).await?.into_response();
        if !is_for_clients {
            return Ok(response);
        }
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        let exposed = "retry-after, x-ratelimit-limit, x-ratelimit-remaining, x-request-id";
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(exposed));
        Ok(response)
    }
}
