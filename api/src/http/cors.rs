//! Cross-origin requests to the operations that client tokens can call.
//!
//! Any origin may send them, since a token and no cookie authorizes them: whoever has the token could send them
//! without a browser as well. Other operations take API keys, which belong on no page.

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

/// The middleware.
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
        let wanted = headers::lines(request.headers(), "Access-Control-Request-Method").next();
        let wanted = wanted.and_then(|method| method.parse::<Method>().ok());
        let is_preflight = *request.method() == Method::OPTIONS && wanted.is_some();
        let method = wanted.filter(|_| is_preflight).unwrap_or_else(|| request.method().clone());
        let path = request.uri().path().strip_prefix(PREFIX).unwrap_or_default();
        if !reach::is_for_clients(&method, path) {
            return Ok(self.0.call(request).await?.into_response());
        }
        let mut response = if is_preflight {
            Response::builder()
                .status(StatusCode::NO_CONTENT)
                .header(header::ACCESS_CONTROL_ALLOW_METHODS, method.as_str())
                .header(header::ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type")
                .header(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE)
                .finish()
        } else {
            self.0.call(request).await?.into_response()
        };
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        let exposed = "retry-after, x-ratelimit-limit, x-ratelimit-remaining, x-request-id";
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(exposed));
        Ok(response)
    }
}
