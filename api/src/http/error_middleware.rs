//! The outermost middleware: gives every request its id, and converts every error to a problem document.

use crate::{
    app::DASHBOARD_PATH,
    http::{
        headers,
        problem::{Code, Problem},
        rate_limits::RateLimitHeaders,
        request_id::{self, RequestId},
        request_log::{Answer, Noted, RequestLog},
    },
};
use poem::{
    Endpoint, IntoResponse, Middleware, Request, Response,
    error::{MethodNotAllowedError, NotFoundError, ParsePathError, ReadBodyError},
    http::Method,
};
use poem_openapi::{OpenApi, error::AuthorizationError};
use std::{any::Any, sync::Arc, time::Instant};
use telemetry::{metrics, trace};
use tracing::{debug, error};

/// The methods that each path allows, from the same declarations as the routes.
#[derive(Clone, Debug, Default)]
pub struct Routes(Vec<(Vec<String>, Vec<Method>)>);

impl Routes {
    /// The operations of `T` under a prefix.
    pub fn of<T: OpenApi>(prefix: &str) -> Self {
        let mut routes = Self::default();
        for path in T::meta().into_iter().flat_map(|api| api.paths) {
            let methods = path.operations.into_iter().map(|operation| operation.method);
            routes.add(&format!("{prefix}{}", path.path), methods);
        }
        routes
    }

    /// Adds a route.
    #[must_use]
    pub fn with(mut self, path: &str, method: Method) -> Self {
        self.add(path, [method]);
        self
    }

    fn add(&mut self, path: &str, methods: impl IntoIterator<Item = Method>) {
        let path: Vec<_> = path.split('/').map(str::to_owned).collect();
        match self.0.iter_mut().find(|(known, _)| *known == path) {
            Some((_, known)) => known.extend(methods),
            None => self.0.push((path, methods.into_iter().collect())),
        }
    }

    /// The pattern of a path, `/posts/{id}`; `None` for an unknown one.
    pub fn pattern(&self, path: &str) -> Option<String> {
        self.route(path).map(|(pattern, _)| pattern.join("/"))
    }

    fn route(&self, path: &str) -> Option<&(Vec<String>, Vec<Method>)> {
        let path: Vec<_> = path.split('/').collect();
        let is_parameter = |segment: &String| segment.starts_with('{');
        let fits = |route: &[String]| {
            route.len() == path.len()
                && route.iter().zip(&path).all(|(known, found)| is_parameter(known) || known == found)
        };
        // As in the router, a literal takes precedence over a parameter.
        self.0
            .iter()
            .filter(|(route, _)| fits(route))
            .min_by_key(|(route, _)| route.iter().map(is_parameter).collect::<Vec<_>>())
    }

    /// The value of `Allow` for a path.
    pub fn allow(&self, path: &str) -> String {
        let mut methods: Vec<_> =
            self.route(path).into_iter().flat_map(|(_, methods)| methods).map(Method::as_str).collect();
        // Every GET answers HEAD.
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods.sort_unstable();
        methods.join(", ")
    }
}

/// Middleware that converts errors to problem documents.
pub struct Envelope {
    routes: Arc<Routes>,
    log: Option<RequestLog>,
}

impl Envelope {
    /// Creates the middleware for endpoints with these routes.
    pub fn new(routes: Routes) -> Self {
        Self { routes: routes.into(), log: None }
    }

    /// Also logs the requests of API keys.
    #[must_use]
    pub fn with_log(self, log: RequestLog) -> Self {
        Self { log: Some(log), ..self }
    }
}

impl<E: Endpoint> Middleware<E> for Envelope {
    type Output = Enveloped<E>;

    fn transform(&self, inner: E) -> Self::Output {
        Enveloped { inner, routes: self.routes.clone(), log: self.log.clone() }
    }
}

/// An endpoint behind the middleware.
pub struct Enveloped<E> {
    inner: E,
    routes: Arc<Routes>,
    log: Option<RequestLog>,
}

impl<E: Endpoint> Endpoint for Enveloped<E> {
    type Output = Response;

    async fn call(&self, mut request: Request) -> poem::Result<Response> {
        let path = request.uri().path().to_owned();
        let rate_limits = RateLimitHeaders::default();
        request.set_data(rate_limits.clone());
        let noted = Noted::default();
        request.set_data(noted.clone());
        let (began, at) = (Instant::now(), self.log.as_ref().map(RequestLog::now));
        let (id, headers, method) =
            (RequestId::generate(), request.headers().clone(), request.method().clone());
        let answer = async {
            let response = match self.inner.call(request).await {
                Ok(response) => response.into_response(),
                Err(error) => self.problem(error, &path).into_response(),
            };
            // Without the path, which may contain a token.
            debug!(%method, status = response.status().as_u16(), "Answered a request");
            response
        };
        let sent = headers::lines(&headers, request_id::HEADER.as_str()).next();
        // A malformed one begins a new trace: https://www.w3.org/TR/trace-context/#a-traceparent-is-received
        let traceparent = headers::lines(&headers, "traceparent").next();
        let mut response =
            trace::with_caller(traceparent.as_deref(), id.scope_of(sent.as_deref(), answer)).await;
        let status = response.status().as_u16();
        let pattern = self.routes.pattern(&path);
        metrics::request(operation(&method, &path, pattern.as_deref()), status, began.elapsed());
        if let (Some(log), Some(at)) = (&self.log, at) {
            let path = pattern.unwrap_or_default();
            log.append(id, at, &noted, Answer { method: &method, path, status, duration: began.elapsed() });
        }
        rate_limits.write(response.headers_mut());
        response.headers_mut().insert(request_id::HEADER, id.value());
        Ok(response)
    }
}

/// Returns the name of an operation for metrics. It has few values, whatever clients send.
fn operation(method: &Method, path: &str, pattern: Option<&str>) -> String {
    let method = match method.as_str() {
        known @ ("GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS") => known,
        _ => "OTHER",
    };
    match pattern {
        Some(pattern) => format!("{method} {pattern}"),
        None if path.starts_with(DASHBOARD_PATH) => format!("{method} {DASHBOARD_PATH}"),
        None => "other".to_owned(),
    }
}

impl<E> Enveloped<E> {
    fn problem(&self, error: poem::Error, path: &str) -> Problem {
        let error = match error.downcast::<Problem>() {
            Ok(problem) => return problem,
            Err(error) => error,
        };
        if error.is::<AuthorizationError>() {
            return Problem::no_bearer();
        }
        if error.is::<MethodNotAllowedError>() {
            return Problem::method_not_allowed(&self.routes.allow(path));
        }
        // A path that can't be decoded does not exist either.
        if error.is::<NotFoundError>() || error.is::<ParsePathError>() {
            return Problem::new(Code::NotFound, "there is no resource at this path");
        }
        if matches!(error.downcast_ref(), Some(ReadBodyError::PayloadTooLarge)) {
            return Problem::too_large();
        }
        match error.status() {
            status if status.is_client_error() => Problem::new(Code::InvalidRequest, error.to_string()),
            _ => {
                error!(error = %error, "A request failed with an unexpected error");
                Problem::internal()
            }
        }
    }
}

/// Converts a panic to an internal error without details.
pub fn panicked(panic: Box<dyn Any + Send>) -> Problem {
    let message = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
    error!(panic = message.as_deref().unwrap_or("?"), "A handler panicked");
    Problem::internal()
}

#[cfg(test)]
mod tests {
    use super::*;
    use poem::{
        EndpointExt, Route, get, handler,
        http::{StatusCode, header},
        middleware::CatchPanic,
    };

    #[handler]
    fn fall() -> String {
        panic!("a secret")
    }

    #[test]
    fn a_path_takes_the_methods_of_its_route() {
        let routes = Routes::default()
            .with("/posts", Method::POST)
            .with("/posts", Method::GET)
            .with("/posts/{id}", Method::DELETE)
            .with("/posts/batch", Method::POST);
        for (path, allow) in [
            ("/posts", "GET, HEAD, POST"),
            ("/posts/7", "DELETE"),
            ("/posts/batch", "POST"),
            ("/nowhere", ""),
        ] {
            assert_eq!(routes.allow(path), allow, "{path}");
        }
        for (path, pattern) in
            [("/posts/7", Some("/posts/{id}")), ("/posts/batch", Some("/posts/batch")), ("/nowhere", None)]
        {
            assert_eq!(routes.pattern(path).as_deref(), pattern, "{path}");
        }
    }

    #[test]
    fn an_operation_has_few_names() {
        for (method, path, pattern, name) in [
            ("GET", "/api/v1/posts/7", Some("/api/v1/posts/{id}"), "GET /api/v1/posts/{id}"),
            ("BREW", "/api/v1/posts/7", Some("/api/v1/posts/{id}"), "OTHER /api/v1/posts/{id}"),
            ("POST", "/dashboard/posts/7/retry", None, "POST /dashboard"),
            ("GET", "/wp-login.php", None, "other"),
            ("BREW", "/coffee", None, "other"),
        ] {
            assert_eq!(operation(&Method::from_bytes(method.as_bytes()).unwrap(), path, pattern), name);
        }
    }

    #[tokio::test]
    async fn failures_of_every_origin_leave_as_problems() {
        let app = Route::new()
            .at("/fall", get(fall))
            .with(CatchPanic::new().with_handler(panicked))
            .with(Envelope::new(Routes::default().with("/fall", Method::GET)));
        for (method, path, status, code) in [
            (Method::GET, "/fall", 500, "internal_error"),
            (Method::PUT, "/fall", 405, "method_not_allowed"),
            (Method::GET, "/nowhere", 404, "not_found"),
        ] {
            let request = Request::builder().method(method).uri_str(path).finish();
            let response = app.get_response(request).await;
            let id = response.header("x-request-id").unwrap().to_owned();
            assert_eq!(response.status(), StatusCode::from_u16(status).unwrap());
            assert_eq!(response.content_type(), Some("application/problem+json"));
            let allow = response.header(header::ALLOW.as_str()).map(str::to_owned);
            assert_eq!(allow.as_deref(), (status == 405).then_some("GET, HEAD"));
            let body = response.into_body().into_string().await.unwrap();
            assert!(body.contains(code) && !body.contains("secret"), "{body}");
            assert!(body.contains(&format!(r#""request_id":"{id}""#)), "{id}: {body}");
        }
    }
}
